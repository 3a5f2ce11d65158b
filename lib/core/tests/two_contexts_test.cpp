// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Objects of two contexts, whose numbers are alike, in one call: refused before the module sees it.
#include "fake_module.hpp"

#include <dapx/dapx.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include <fcntl.h>

namespace dapx::test {
namespace {

/// What a program has in one context.
struct Side {
    explicit Side(FakeModule& module) : context(Context::open("rxe0", module.node()).value()) {}

    Context context;
    std::array<std::byte, 64> memory{};
    Pd pd = Pd::create(context).value();
    Evd evd = Evd::create(context).value();
    MemoryRegion region = MemoryRegion::create(pd, std::span(memory), Access::local_write).value();
    XrcDomain domain = XrcDomain::open(context, -1, O_CREAT).value();
    Srq srq = Srq::create(pd, {.depth = 2}).value();
    Endpoint endpoint = Endpoint::create(pd, evd).value();
    CmId cm = CmId::create(evd).value();
    Rmr rmr = Rmr::create(pd).value();
    XrcQp qp = XrcQp::create(domain).value();
};

struct TwoContextsTest : ::testing::Test {
    FakeModule module;
    Side here{module};
    Side there{module};

    template <class T>
    void expect_refused(const Result<T>& result, unsigned long request, const char* call)
    {
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().code(), EINVAL);
        EXPECT_EQ(result.error().call(), call);
        EXPECT_NE(result.error().message().find("of two contexts"), std::string::npos)
            << result.error().message();
        EXPECT_EQ(module.count(request), counted_.count(request) != 0 ? counted_[request] : 0);
    }

    TwoContextsTest()
    {
        for (const unsigned long request : {static_cast<unsigned long>(DAPX_EP_CREATE),
                                            static_cast<unsigned long>(DAPX_SRQ_CREATE),
                                            static_cast<unsigned long>(DAPX_XRC_QP_CREATE)})
            counted_[request] = module.count(request);
    }

private:
    std::map<unsigned long, std::size_t> counted_;
};

#define EXPECT_REFUSED(result, command) expect_refused(result, command, #command)

TEST_F(TwoContextsTest, Endpoints)
{
    EXPECT_REFUSED(Endpoint::create(here.pd, there.evd), DAPX_EP_CREATE);
    const auto with = [&](const Evd& request, const Evd& recv, const Evd& connect,
                          const Evd& async) {
        return Endpoint::create(
            here.pd, {.request = request, .recv = &recv, .connect = connect, .async = async}, {});
    };
    EXPECT_REFUSED(with(there.evd, here.evd, here.evd, here.evd), DAPX_EP_CREATE);
    EXPECT_REFUSED(with(here.evd, there.evd, here.evd, here.evd), DAPX_EP_CREATE);
    EXPECT_REFUSED(with(here.evd, here.evd, there.evd, here.evd), DAPX_EP_CREATE);
    EXPECT_REFUSED(with(here.evd, here.evd, here.evd, there.evd), DAPX_EP_CREATE);
    const Endpoint::Evds evds{.request = here.evd, .recv = &here.evd, .connect = here.evd};
    EXPECT_REFUSED(Endpoint::create(here.pd, evds, {}, &there.srq), DAPX_EP_CREATE);
    EXPECT_REFUSED(XrcEndpoint::create(here.pd, evds, {}, &there.domain), DAPX_EP_CREATE);
    EXPECT_TRUE(with(here.evd, here.evd, here.evd, here.evd));
}

TEST_F(TwoContextsTest, EndpointsMeetOthers)
{
    EXPECT_REFUSED(here.endpoint.connect(there.cm), DAPX_EP_CONNECT);
    EXPECT_REFUSED(here.endpoint.accept(std::move(there.cm)), DAPX_EP_ACCEPT);
    EXPECT_TRUE(there.cm);
    EXPECT_REFUSED(here.endpoint.modify({.pd = &there.pd}), DAPX_EP_MODIFY);
    EXPECT_REFUSED(here.endpoint.modify({.request_evd = &there.evd}), DAPX_EP_MODIFY);
    EXPECT_REFUSED(here.endpoint.modify({.recv_evd = &there.evd}), DAPX_EP_MODIFY);
    EXPECT_REFUSED(here.endpoint.modify({.connect_evd = &there.evd}), DAPX_EP_MODIFY);
    EXPECT_TRUE(here.endpoint.modify({.pd = &here.pd}));
}

TEST_F(TwoContextsTest, SharedReceiveQueues)
{
    EXPECT_REFUSED(Srq::create(here.pd, {}, &there.evd), DAPX_SRQ_CREATE);
    EXPECT_REFUSED(Srq::create_xrc(there.domain, here.pd, here.evd, {}), DAPX_SRQ_CREATE);
    EXPECT_REFUSED(Srq::create_xrc(here.domain, here.pd, there.evd, {}), DAPX_SRQ_CREATE);
    EXPECT_REFUSED(Srq::create_xrc(here.domain, here.pd, here.evd, {}, &there.evd),
                   DAPX_SRQ_CREATE);
    EXPECT_TRUE(Srq::create_xrc(here.domain, here.pd, here.evd, {}, &here.evd));
}

TEST_F(TwoContextsTest, CmIds)
{
    EXPECT_REFUSED(here.cm.take(there.evd), DAPX_CM_TAKE);
    EXPECT_REFUSED(here.cm.listen_reserved(there.endpoint), DAPX_CM_LISTEN);
    EXPECT_TRUE(here.cm.take(here.evd));
    EXPECT_TRUE(here.cm.listen_reserved(here.endpoint));
}

TEST_F(TwoContextsTest, Windows)
{
    EXPECT_REFUSED(here.rmr.bind(there.endpoint, 1, here.region, 0, 8, Access::remote_read),
                   DAPX_RMR_BIND);
    EXPECT_REFUSED(here.rmr.bind(here.endpoint, 1, there.region, 0, 8, Access::remote_read),
                   DAPX_RMR_BIND);
    EXPECT_REFUSED(here.rmr.unbind(there.endpoint, 1), DAPX_RMR_BIND);
    EXPECT_TRUE(here.rmr.bind(here.endpoint, 1, here.region, 0, 8, Access::remote_read));
}

TEST_F(TwoContextsTest, XrcReceiveQueuePairs)
{
    module.xrc_request = true;
    EXPECT_REFUSED(XrcQp::create(here.domain, &there.evd), DAPX_XRC_QP_CREATE);
    EXPECT_REFUSED(XrcQp::register_with(here.domain, here.qp.number(), &there.evd),
                   DAPX_XRC_QP_REGISTER);
    EXPECT_REFUSED(here.qp.accept(std::move(there.cm)), DAPX_XRC_QP_ACCEPT);
    EXPECT_REFUSED(XrcQp::accept(here.domain, here.qp.number(), std::move(there.cm)),
                   DAPX_XRC_QP_ACCEPT);
    EXPECT_TRUE(there.cm);
    EXPECT_TRUE(here.qp.accept(std::move(here.cm)));
}

} // namespace
} // namespace dapx::test
