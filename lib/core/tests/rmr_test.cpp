// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Remote memory regions: what reaches the module, and in which order.
#include "fake_module.hpp"

#include <dapx/dapx.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cerrno>

namespace dapx::test {
namespace {

struct RmrTest : ::testing::Test {
    FakeModule module;
    Context context = Context::open("rxe0", module.node()).value();
    Pd pd = Pd::create(context).value();
    Evd evd = Evd::create(context).value();
    Endpoint endpoint = Endpoint::create(pd, evd, {.send_depth = 4}).value();
    std::array<std::uint64_t, 8> memory{};
    MemoryRegion region =
        MemoryRegion::create(pd, std::span(memory), Access::local_write | Access::remote_write)
            .value();
    Rmr rmr = Rmr::create(pd, 5).value();

    RmrTest() { module.set_state(endpoint.handle(), DAPX_EP_CONNECTED); }
};

TEST_F(RmrTest, Create)
{
    const auto argument = module.last<dapx_rmr_create>(DAPX_RMR_CREATE);
    EXPECT_EQ(argument.pd, pd.handle());
    EXPECT_EQ(argument.user_data, 5U);
    EXPECT_TRUE(rmr.free());
    EXPECT_EQ(module.last<dapx_free>(DAPX_FREE).type, std::uint32_t{DAPX_OBJECT_RMR});
}

TEST_F(RmrTest, Bind)
{
    const auto remote = rmr.bind(endpoint, 9, region, 3, 17, Access::remote_write);
    ASSERT_TRUE(remote);
    EXPECT_EQ(remote->rkey, 0x4321U);
    EXPECT_EQ(remote->addr, region.addr() + 3);
    const auto argument = module.last<dapx_rmr_bind>(DAPX_RMR_BIND);
    EXPECT_EQ(argument.rmr, rmr.handle());
    EXPECT_EQ(argument.ep, endpoint.handle());
    EXPECT_EQ(argument.mr, region.handle());
    EXPECT_EQ(argument.addr, region.addr() + 3);
    EXPECT_EQ(argument.length, 17U);
    EXPECT_EQ(argument.access, std::uint32_t{DAPX_ACCESS_REMOTE_WRITE});
    EXPECT_EQ(argument.wr_id, 9U);
    EXPECT_EQ(argument.flags, std::uint32_t{DAPX_BIND_SIGNALED});
    ASSERT_TRUE(rmr.bind(endpoint, 9, region, 3, 17, Access::remote_write, SendFlags::quiet));
    EXPECT_EQ(module.last<dapx_rmr_bind>(DAPX_RMR_BIND).flags, std::uint32_t{DAPX_BIND_QUIET});
}

TEST_F(RmrTest, Unbind)
{
    ASSERT_TRUE(rmr.unbind(endpoint, 9, SendFlags::none));
    const auto argument = module.last<dapx_rmr_bind>(DAPX_RMR_BIND);
    EXPECT_EQ(argument.mr, 0U);
    EXPECT_EQ(argument.addr, 0U);
    EXPECT_EQ(argument.length, 0U);
    EXPECT_EQ(argument.flags, 0U);
    EXPECT_EQ(argument.wr_id, 9U);
}

TEST_F(RmrTest, WhatWasPostedBeforeIsPublishedBefore)
{
    const std::uint32_t tail = *module.send_ring(endpoint.handle()).tail();
    ASSERT_EQ(endpoint.post_send(1, region.segment(0, 8), SendFlags::signalled, Doorbell::later),
              PostResult::ok);
    EXPECT_EQ(*module.send_ring(endpoint.handle()).tail(), tail);
    ASSERT_TRUE(rmr.bind(endpoint, 2, region, 0, 8, Access::remote_write));
    EXPECT_EQ(*module.send_ring(endpoint.handle()).tail(), tail + 1);
}

TEST_F(RmrTest, EmptyBindIsNoUnbind)
{
    const auto bound = rmr.bind(endpoint, 9, region, 0, 0, Access::remote_write);
    ASSERT_FALSE(bound);
    EXPECT_EQ(bound.error().code(), EINVAL);
    EXPECT_EQ(module.count(DAPX_RMR_BIND), 0U);
}

TEST_F(RmrTest, BindErrors)
{
    module.fail_next(DAPX_RMR_BIND, EACCES);
    const auto bound = rmr.bind(endpoint, 9, region, 0, 8, Access::remote_read);
    ASSERT_FALSE(bound);
    EXPECT_EQ(bound.error().code(), EACCES);
    EXPECT_EQ(bound.error().call(), "DAPX_RMR_BIND");
    EXPECT_NE(bound.error().message().find("cannot bind"), std::string::npos);
    module.fail_next(DAPX_RMR_BIND, ENOENT);
    EXPECT_NE(rmr.unbind(endpoint, 9).error().message().find("cannot unbind"), std::string::npos);
}

TEST_F(RmrTest, Query)
{
    const auto info = rmr.query();
    ASSERT_TRUE(info);
    EXPECT_EQ(info->mr, 3U);
    EXPECT_EQ(info->access, Access::remote_read);
    // All there is was asked for.
    EXPECT_EQ(info->length, 31U);
}

} // namespace
} // namespace dapx::test
