// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// XRC queues, receive queue pairs and sending endpoints: what reaches the module, and errors.
#include "fake_module.hpp"

#include <dapx/dapx.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include <fcntl.h>

namespace dapx::test {
namespace {

struct XrcTest : ::testing::Test {
    FakeModule module;
    Context context = Context::open("rxe0", module.node()).value();
    Pd pd = Pd::create(context).value();
    Evd evd = Evd::create(context).value();
    XrcDomain domain = XrcDomain::open(context, -1, O_CREAT).value();
    std::uint32_t taken = 0xffffffff;

    static void expect_says(const Error& error, int code, const char* call, const char* text)
    {
        EXPECT_EQ(error.code(), code);
        EXPECT_EQ(error.call(), call);
        EXPECT_NE(error.message().find(text), std::string::npos) << error.message();
    }

    /// The module takes the oldest request of @p endpoint.
    dapx_send_wr take(const EndpointBase& endpoint)
    {
        dapx_send_wr wr{};
        const FakeModule::Ring& ring = module.send_ring(endpoint.handle());
        std::memcpy(&wr, ring.entry(taken), sizeof(wr));
        ++taken;
        __atomic_store_n(ring.head(), taken, __ATOMIC_RELEASE);
        return wr;
    }
};

TEST_F(XrcTest, Memory)
{
    std::array<std::uint64_t, 8> memory{};
    ASSERT_TRUE(
        MemoryRegion::create(pd, std::span(memory), Access::local_write, 5, RegionFlags::xrc));
    const auto argument = module.last<dapx_mr_create>(DAPX_MR_CREATE);
    EXPECT_EQ(argument.flags, std::uint32_t{DAPX_MR_XRC});
    EXPECT_EQ(argument.user_data, 5U);
    ASSERT_TRUE(MemoryRegion::create(pd, std::span(memory), Access::local_write));
    EXPECT_EQ(module.last<dapx_mr_create>(DAPX_MR_CREATE).flags, 0U);
}

TEST_F(XrcTest, PlainQueue)
{
    const Srq srq = Srq::create(pd, {.depth = 2, .user_data = 9}).value();
    auto argument = module.last<dapx_srq_create>(DAPX_SRQ_CREATE);
    EXPECT_EQ(argument.evd, 0U);
    EXPECT_EQ(argument.xrcd, 0U);
    EXPECT_EQ(argument.user_data, 9U);
    EXPECT_EQ(srq.number(), 0U);
    ASSERT_TRUE(Srq::create(pd, {.depth = 2}, &evd));
    argument = module.last<dapx_srq_create>(DAPX_SRQ_CREATE);
    EXPECT_EQ(argument.evd, evd.handle());
    EXPECT_EQ(argument.xrcd, 0U);
}

TEST_F(XrcTest, Queue)
{
    Srq srq = Srq::create_xrc(domain, pd, evd, {.depth = 2, .max_sge = 3}).value();
    const auto argument = module.last<dapx_srq_create>(DAPX_SRQ_CREATE);
    EXPECT_EQ(argument.xrcd, domain.handle());
    EXPECT_EQ(argument.evd, evd.handle());
    EXPECT_EQ(argument.pd, pd.handle());
    EXPECT_EQ(argument.max_sge, 3U);
    EXPECT_EQ(srq.number(), 0xabcU);
    const Segment segment{1, 8, 0x1000};
    ASSERT_EQ(srq.post_recv(1, segment), PostResult::ok);
    ASSERT_EQ(srq.post_recv(2, segment, Doorbell::later), PostResult::ok);
    EXPECT_EQ(srq.post_recv(3, segment), PostResult::full);
    ASSERT_EQ(srq.submit(), PostResult::ok);
    EXPECT_EQ(*module.recv_ring(srq.handle()).tail(), 2U);

    const SrqInfo info = srq.query().value();
    EXPECT_EQ(module.last<dapx_srq_query>(DAPX_SRQ_QUERY).srq, srq.handle());
    EXPECT_EQ(info.xrc_domain, 3U);
    EXPECT_EQ(info.evd, 4U);
    EXPECT_EQ(info.number, 0xabcU);
    EXPECT_EQ(info.depth, 8U);
    EXPECT_EQ(info.max_sge, 2U);
    EXPECT_EQ(info.limit, 5U);
}

TEST_F(XrcTest, Limit)
{
    Srq srq = Srq::create(pd, {.depth = 8}, &evd).value();
    ASSERT_TRUE(srq.set_limit(3));
    EXPECT_EQ(module.last<dapx_srq_modify>(DAPX_SRQ_MODIFY).srq, srq.handle());
    EXPECT_EQ(module.last<dapx_srq_modify>(DAPX_SRQ_MODIFY).limit, 3U);
    const auto says = [&](int code, const char* text) {
        module.fail_next(DAPX_SRQ_MODIFY, code);
        expect_says(srq.set_limit(3).error(), code, "DAPX_SRQ_MODIFY", text);
    };
    says(EBADFD, "no event dispatcher");
    says(EINVAL, "the most is its depth");
    says(EIO, "was removed");
}

TEST_F(XrcTest, DomainInUse)
{
    module.busy.insert(domain.handle());
    expect_says(domain.free().error(), EBUSY, "DAPX_FREE", "cannot close the XRC domain");
    EXPECT_TRUE(domain);
    module.busy.clear();
}

TEST_F(XrcTest, SendingEndpoint)
{
    XrcEndpoint endpoint =
        XrcEndpoint::create(pd, {.request = evd, .recv = &evd, .connect = evd}, {}, &domain)
            .value();
    const auto argument = module.last<dapx_ep_create>(DAPX_EP_CREATE);
    EXPECT_EQ(argument.attr.flags, std::uint32_t{DAPX_EP_XRC});
    EXPECT_EQ(argument.attr.recv_depth, 0U);
    EXPECT_EQ(argument.attr.max_recv_sge, 0U);
    EXPECT_EQ(argument.recv_evd, 0U);
    EXPECT_EQ(argument.request_evd, evd.handle());
    EXPECT_EQ(argument.connect_evd, evd.handle());
    EXPECT_EQ(argument.xrcd, domain.handle());
    ASSERT_TRUE(XrcEndpoint::create(pd, evd));
    EXPECT_EQ(module.last<dapx_ep_create>(DAPX_EP_CREATE).xrcd, 0U);
    ASSERT_TRUE(Endpoint::create(pd, evd));
    EXPECT_EQ(module.last<dapx_ep_create>(DAPX_EP_CREATE).attr.flags, 0U);
}

/// The limit is named, where that is what is wrong.
TEST_F(XrcTest, TooMuchPrivateData)
{
    const std::array<std::byte, 56> data{};
    const Address peer = Address::parse("10.0.0.2", 7).value();
    XrcEndpoint endpoint = XrcEndpoint::create(pd, evd).value();
    Endpoint plain = Endpoint::create(pd, evd).value();
    const auto connect = [&](EndpointBase& by, std::size_t size) {
        module.fail_next(DAPX_EP_CONNECT, EINVAL);
        return by.connect(peer, {.private_data = std::span(data).first(size)}).error().message();
    };
    EXPECT_NE(connect(endpoint, 49).find("49 bytes of private data: the most is 48"),
              std::string::npos);
    EXPECT_NE(connect(endpoint, 48).find("out of range"), std::string::npos);
    EXPECT_NE(connect(plain, 56).find("out of range"), std::string::npos);
    EXPECT_EQ(context.query_device()->max_xrc_connect_data, 48);
    EXPECT_EQ(context.query_device()->max_xrc_accept_data, 188);

    module.xrc_request = true;
    const std::array<std::byte, 189> more{};
    XrcQp qp = XrcQp::create(domain).value();
    CmId request = CmId::create(evd).value();
    module.fail_next(DAPX_XRC_QP_ACCEPT, EINVAL);
    expect_says(qp.accept(std::move(request), more).error(), EINVAL, "private data",
                "189 bytes of private data: the most is 188");
    EXPECT_TRUE(request);
    module.fail_next(DAPX_CM_REJECT, EINVAL);
    expect_says(request.reject(more).error(), EINVAL, "private data", "the most is 148");
}

TEST_F(XrcTest, EachOperationNamesAQueue)
{
    XrcEndpoint endpoint = XrcEndpoint::create(pd, evd, {.max_send_sge = 2}).value();
    module.set_state(endpoint.handle(), DAPX_EP_CONNECTED);
    const Segment segment{1, 8, 0x1000};
    const std::span one(&segment, 1);
    const RemoteAddress remote{.addr = 0xabc0, .rkey = 0x55};
    const std::array<std::byte, 3> data{};
    const auto expect = [&](PostResult post, dapx_opcode opcode, std::uint32_t srqn) {
        ASSERT_EQ(post, PostResult::ok);
        const dapx_send_wr wr = take(endpoint);
        EXPECT_EQ(wr.opcode, opcode);
        EXPECT_EQ(wr.remote_srqn, srqn);
    };
    expect(endpoint.to(11).post_send(1, segment), DAPX_OP_SEND, 11);
    expect(endpoint.to(12).post_send(1, one), DAPX_OP_SEND, 12);
    expect(endpoint.to(13).post_send_inline(1, data), DAPX_OP_SEND, 13);
    expect(endpoint.to(14).post_send_imm(1, one, 9), DAPX_OP_SEND_IMM, 14);
    expect(endpoint.to(15).post_write(1, segment, remote), DAPX_OP_RDMA_WRITE, 15);
    expect(endpoint.to(16).post_write_inline(1, data, remote), DAPX_OP_RDMA_WRITE, 16);
    expect(endpoint.to(17).post_write_imm(1, one, remote, 9), DAPX_OP_RDMA_WRITE_IMM, 17);
    expect(endpoint.to(18).post_read(1, segment, remote), DAPX_OP_RDMA_READ, 18);
    expect(endpoint.to(19).post_compare_swap(1, segment, remote, 1, 2), DAPX_OP_COMPARE_SWAP, 19);
    expect(endpoint.to(0xffffff).post_fetch_add(1, segment, remote, 1), DAPX_OP_FETCH_ADD,
           0xffffff);
}

template <class T>
concept Posts = requires(T& to, const Segment& segment) { to.post_send(1, segment); };
template <class T>
concept Receives =
    requires(T& endpoint, const Segment& segment) { endpoint.post_recv(1, segment); };
template <class T>
concept Accepts = requires(T& endpoint, CmId& request) { endpoint.accept(std::move(request)); };
template <class T>
concept NamesQueues = requires(T& endpoint) { endpoint.to(1); };

// A request by XRC that names no queue, or one by RC that names one, does not compile.
static_assert(Posts<Endpoint> && Receives<Endpoint> && Accepts<Endpoint> && !NamesQueues<Endpoint>);
static_assert(!Posts<XrcEndpoint> && !Receives<XrcEndpoint> && !Accepts<XrcEndpoint>);
static_assert(NamesQueues<XrcEndpoint> && Posts<SrqTarget> && !Receives<SrqTarget>);
static_assert(!Posts<EndpointBase> && !std::is_constructible_v<EndpointBase, XrcEndpoint>);
static_assert(!std::is_constructible_v<Endpoint, XrcEndpoint>);

TEST_F(XrcTest, RequestsInTheFormOfTheAbi)
{
    XrcEndpoint endpoint =
        XrcEndpoint::create(pd, evd, {.max_send_sge = 2, .max_inline = 16}).value();
    module.set_state(endpoint.handle(), DAPX_EP_CONNECTED);
    const std::array<Segment, 3> segments = {Segment{1, 8, 0x1000}, Segment{2, 9, 0x2000}};
    dapx_send_wr wr{};
    wr.wr_id = 4;
    wr.opcode = DAPX_OP_RDMA_WRITE_IMM;
    wr.num_sge = 2;
    wr.flags = DAPX_SEND_SIGNALED;
    wr.remote_srqn = 21;
    wr.remote_addr = 22;
    wr.rkey = 23;
    wr.imm_data = 24;
    ASSERT_EQ(endpoint.post_wr(wr, segments.data()), PostResult::ok);
    const FakeModule::Ring& ring = module.send_ring(endpoint.handle());
    EXPECT_EQ(std::memcmp(ring.entry(taken), &wr, sizeof(wr)), 0);
    EXPECT_EQ(std::memcmp(ring.entry(taken) + sizeof(wr), segments.data(), 32), 0);
    (void)take(endpoint);
    wr.num_sge = 3;
    EXPECT_EQ(endpoint.post_wr(wr, segments.data()), PostResult::bad_request);

    const std::array<std::byte, 17> data{std::byte{7}};
    wr.flags = DAPX_SEND_INLINE;
    wr.inline_len = 16;
    ASSERT_EQ(endpoint.post_wr(wr, data.data(), Doorbell::later), PostResult::ok);
    EXPECT_EQ(ring.entry(taken)[sizeof(wr)], std::byte{7});
    EXPECT_EQ(*ring.tail(), 0U);
    wr.inline_len = 17;
    EXPECT_EQ(endpoint.post_wr(wr, data.data()), PostResult::bad_request);
    EXPECT_EQ(endpoint.sends_posted(), 2U);
}

TEST_F(XrcTest, ReceiveQueuePair)
{
    XrcQp qp = XrcQp::create(domain, &evd, 6).value();
    const auto create = module.last<dapx_xrc_qp_create>(DAPX_XRC_QP_CREATE);
    EXPECT_EQ(create.xrcd, domain.handle());
    EXPECT_EQ(create.evd, evd.handle());
    EXPECT_EQ(create.user_data, 6U);
    EXPECT_EQ(qp.number(), 1000 + qp.handle());

    ASSERT_TRUE(qp.init(2, 3));
    auto modify = module.last<dapx_xrc_qp_modify>(DAPX_XRC_QP_MODIFY);
    EXPECT_EQ(modify.xrcd, domain.handle());
    EXPECT_EQ(modify.qp_num, qp.number());
    EXPECT_EQ(modify.qp.state, std::uint32_t{DAPX_QP_INIT});
    EXPECT_EQ(modify.qp.port, 2);
    EXPECT_EQ(modify.qp.pkey_index, 3);
    ReadyToReceive path{.dest_qp_num = 8, .rq_psn = 9, .path_mtu = 4, .min_rnr_timer = 1};
    path.dgid[15] = 5;
    ASSERT_TRUE(qp.ready_to_receive(path));
    modify = module.last<dapx_xrc_qp_modify>(DAPX_XRC_QP_MODIFY);
    EXPECT_EQ(modify.qp.state, std::uint32_t{DAPX_QP_RTR});
    EXPECT_EQ(modify.qp.dest_qp_num, 8U);
    EXPECT_EQ(modify.qp.dgid[15], 5);
    EXPECT_EQ(modify.qp.path_mtu, 4);
    EXPECT_EQ(modify.qp.min_rnr_timer, 1);
    ASSERT_TRUE(qp.ready_to_send({.sq_psn = 7}));
    modify = module.last<dapx_xrc_qp_modify>(DAPX_XRC_QP_MODIFY);
    EXPECT_EQ(modify.qp.state, std::uint32_t{DAPX_QP_RTS});
    EXPECT_EQ(modify.qp.sq_psn, 7U);

    const XrcQpInfo info = qp.query().value();
    EXPECT_EQ(info.state, QpState::ready_to_receive);
    EXPECT_STREQ(describe(info.state), "rtr");
    EXPECT_EQ(info.registration, qp.handle());
    EXPECT_EQ(info.registrations, 2U);
    EXPECT_EQ(info.messages, 30U);
    EXPECT_EQ(info.not_ready, 4U);
    EXPECT_EQ(info.port, 1);
    EXPECT_EQ(info.path.dest_qp_num, 77U);
    EXPECT_EQ(info.path.dgid[15], 9);

    const std::uint32_t number = qp.number();
    ASSERT_TRUE(qp.disconnect());
    EXPECT_EQ(module.last<dapx_xrc_qp_disconnect>(DAPX_XRC_QP_DISCONNECT).qp_num, number);
    module.fail_next(DAPX_XRC_QP_DISCONNECT, EBADFD);
    expect_says(qp.disconnect().error(), EBADFD, "DAPX_XRC_QP_DISCONNECT",
                "it is not connected, or its connection has ended");
    ASSERT_TRUE(qp.free());
    EXPECT_EQ(module.last<dapx_free>(DAPX_FREE).type, std::uint32_t{DAPX_OBJECT_XRC_QP});
    expect_says(XrcQp::query(domain, number).error(), EINVAL, "DAPX_XRC_QP_QUERY",
                "the domain has none of this number");
    ASSERT_TRUE(XrcQp::create(domain));
    EXPECT_EQ(module.last<dapx_xrc_qp_create>(DAPX_XRC_QP_CREATE).evd, 0U);
}

TEST_F(XrcTest, RegistrationByNumber)
{
    module.xrc_qps[55] = 0; // another context's
    EXPECT_TRUE(XrcQp::query(domain, 55));
    expect_says(XrcQp::disconnect(domain, 55).error(), EACCES, "DAPX_XRC_QP_DISCONNECT",
                "not registered with it; register first");
    expect_says(XrcQp::step(domain, 55, {}).error(), EACCES, "DAPX_XRC_QP_MODIFY",
                "not registered with it; register first");
    expect_says(XrcQp::unregister(domain, 55).error(), EINVAL, "DAPX_XRC_QP_UNREGISTER",
                "cannot unregister from receive queue pair 55");

    XrcQp qp = XrcQp::register_with(domain, 55, &evd, 3).value();
    const auto reg = module.last<dapx_xrc_qp_register>(DAPX_XRC_QP_REGISTER);
    EXPECT_EQ(reg.xrcd, domain.handle());
    EXPECT_EQ(reg.qp_num, 55U);
    EXPECT_EQ(reg.evd, evd.handle());
    EXPECT_EQ(reg.user_data, 3U);
    EXPECT_EQ(qp.number(), 55U);
    // A second object would end the only registration.
    expect_says(XrcQp::register_with(domain, 55).error(), EEXIST, "DAPX_XRC_QP_REGISTER",
                "this context is registered with it already");
    EXPECT_TRUE(module.objects().contains(qp.handle()));
    EXPECT_TRUE(XrcQp::step(domain, 55, {}));
    EXPECT_EQ(qp.release(), 55U);
    ASSERT_TRUE(XrcQp::unregister(domain, 55));
    EXPECT_EQ(module.last<dapx_xrc_qp_unregister>(DAPX_XRC_QP_UNREGISTER).qp_num, 55U);
    expect_says(XrcQp::register_with(domain, 55).error(), EINVAL, "DAPX_XRC_QP_REGISTER",
                "cannot register with receive queue pair 55: the domain has none of this number");
    expect_says(XrcQp::unregister(domain, 55).error(), EINVAL, "DAPX_XRC_QP_UNREGISTER",
                "not registered");
}

TEST_F(XrcTest, Accept)
{
    XrcQp qp = XrcQp::create(domain, &evd).value();
    CmId request = CmId::create(evd).value();
    EXPECT_FALSE(request.query().value().xrc);
    const std::string hello = "hello";
    const auto data = std::as_bytes(std::span(hello));
    expect_says(qp.accept(std::move(request), data).error(), EPROTO, "DAPX_XRC_QP_ACCEPT",
                "the peer's endpoint speaks no XRC; accept it with an endpoint");
    EXPECT_TRUE(request); // NOLINT(bugprone-use-after-move): unchanged, says the contract
    module.xrc_request = true;
    EXPECT_TRUE(request.query().value().xrc);
    const std::uint32_t handle = request.handle();
    ASSERT_TRUE(qp.accept(std::move(request), data));
    EXPECT_FALSE(request); // NOLINT(bugprone-use-after-move): taken, says the contract
    const auto accept = module.last<dapx_xrc_qp_accept>(DAPX_XRC_QP_ACCEPT);
    EXPECT_EQ(accept.xrcd, domain.handle());
    EXPECT_EQ(accept.qp_num, qp.number());
    EXPECT_EQ(accept.cm, handle);
    EXPECT_EQ(accept.private_data_len, 5);
    EXPECT_EQ(std::memcmp(accept.private_data, hello.data(), 5), 0);
    const std::vector<std::byte> long_data(DAPX_PRIVATE_DATA_MAX + 1);
    EXPECT_EQ(qp.accept(CmId::create(evd).value(), long_data).error().code(), EINVAL);
    EXPECT_TRUE(XrcQp::accept(domain, qp.number(), CmId::create(evd).value()));

    // The other way round: an endpoint is no answer to XRC.
    Endpoint endpoint = Endpoint::create(pd, evd).value();
    module.fail_next(DAPX_EP_ACCEPT, EPROTO);
    expect_says(endpoint.accept(CmId::create(evd).value()).error(), EPROTO, "DAPX_EP_ACCEPT",
                "one side of the connection speaks XRC");
}

TEST_F(XrcTest, StepErrors)
{
    XrcQp qp = XrcQp::create(domain).value();
    const auto says = [&](int code, const char* text) {
        module.fail_next(DAPX_XRC_QP_MODIFY, code);
        expect_says(qp.init().error(), code, "DAPX_XRC_QP_MODIFY", text);
    };
    says(EBADFD, "no step from its state");
    says(EINVAL, "a value of the step is out of range");
    says(EOPNOTSUPP, "does not support it");
    says(EIO, "was removed");
    module.fail_next(DAPX_XRC_QP_CREATE, EDQUOT);
    expect_says(XrcQp::create(domain).error(), EDQUOT, "DAPX_XRC_QP_CREATE",
                "cannot make an XRC receive queue pair: the limit of objects");
}

TEST_F(XrcTest, Events)
{
    Event event;
    event.raw().type = DAPX_EVENT_COMPLETION;
    event.raw().completion.opcode = DAPX_OP_RECV;
    event.raw().completion.flags = DAPX_COMPLETION_SRQ;
    event.raw().completion.srq = 5;
    event.raw().completion.qp_num = 99;
    EXPECT_FALSE(event.is_xrc());
    EXPECT_EQ(event.qp_num(), 0U);
    event.raw().completion.flags |= DAPX_COMPLETION_XRC;
    EXPECT_TRUE(event.is_xrc());
    EXPECT_EQ(event.qp_num(), 99U);
    EXPECT_EQ(event.srq(), 5U);
    event.raw() = {};
    event.raw().type = DAPX_EVENT_ASYNC;
    event.raw().async.what = DAPX_ASYNC_XRC_QP_DISCONNECTED;
    event.raw().async.qp_num = 98;
    EXPECT_FALSE(event.is_xrc());
    EXPECT_EQ(event.qp_num(), 98U);
    EXPECT_EQ(event.async(), AsyncEvent::xrc_qp_disconnected);
    EXPECT_FALSE(event.succeeded());
    event.raw().async.what = DAPX_ASYNC_XRC_QP_ESTABLISHED;
    EXPECT_TRUE(event.succeeded());
}

} // namespace
} // namespace dapx::test
