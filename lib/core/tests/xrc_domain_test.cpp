// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// XRC domains: what reaches the module.
#include "fake_module.hpp"

#include <dapx/dapx.hpp>

#include <gtest/gtest.h>

#include <cerrno>

#include <fcntl.h>

namespace dapx::test {
namespace {

struct XrcDomainTest : ::testing::Test {
    FakeModule module;
    Context context = Context::open("rxe0", module.node()).value();
};

TEST_F(XrcDomainTest, Open)
{
    auto domain = XrcDomain::open(context, 7, O_CREAT | O_EXCL, 5);
    ASSERT_TRUE(domain);
    EXPECT_EQ(module.last<dapx_xrcd_open>(DAPX_XRCD_OPEN).fd, 7);
    EXPECT_EQ(module.last<dapx_xrcd_open>(DAPX_XRCD_OPEN).user_data, 5U);
    EXPECT_EQ(module.last<dapx_xrcd_open>(DAPX_XRCD_OPEN).flags,
              std::uint32_t{DAPX_XRCD_CREATE | DAPX_XRCD_EXCL});
    ASSERT_TRUE(domain->free());
    EXPECT_EQ(module.last<dapx_free>(DAPX_FREE).type, std::uint32_t{DAPX_OBJECT_XRCD});
    ASSERT_TRUE(XrcDomain::open(context, -1, O_CREAT));
    EXPECT_EQ(module.last<dapx_xrcd_open>(DAPX_XRCD_OPEN).fd, -1);
    EXPECT_EQ(module.last<dapx_xrcd_open>(DAPX_XRCD_OPEN).flags, std::uint32_t{DAPX_XRCD_CREATE});
    ASSERT_TRUE(XrcDomain::open(context, 7, 0));
    EXPECT_EQ(module.last<dapx_xrcd_open>(DAPX_XRCD_OPEN).flags, 0U);
}

TEST_F(XrcDomainTest, JoinTellsWhoMadeIt)
{
    EXPECT_TRUE(XrcDomain::join(context, 7).value().created);
    EXPECT_EQ(module.last<dapx_xrcd_open>(DAPX_XRCD_OPEN).flags,
              std::uint32_t{DAPX_XRCD_CREATE | DAPX_XRCD_EXCL});
    module.fail_next(DAPX_XRCD_OPEN, EEXIST);
    const auto joined = XrcDomain::join(context, 7, 5);
    EXPECT_FALSE(joined.value().created);
    EXPECT_TRUE(joined.value().domain);
    EXPECT_EQ(module.last<dapx_xrcd_open>(DAPX_XRCD_OPEN).flags, 0U);
    EXPECT_EQ(module.last<dapx_xrcd_open>(DAPX_XRCD_OPEN).user_data, 5U);
    // It goes between the two looks.
    module.fail_next(DAPX_XRCD_OPEN, EEXIST);
    module.fail_next(DAPX_XRCD_OPEN, ENOENT);
    EXPECT_TRUE(XrcDomain::join(context, 7).value().created);
    module.fail_next(DAPX_XRCD_OPEN, EACCES);
    EXPECT_EQ(XrcDomain::join(context, 7).error().code(), EACCES);
}

TEST_F(XrcDomainTest, OtherFlagsDoNotReachTheModule)
{
    const auto domain = XrcDomain::open(context, 7, O_CREAT | O_TRUNC);
    ASSERT_FALSE(domain);
    EXPECT_EQ(domain.error().code(), EINVAL);
}

TEST_F(XrcDomainTest, ErrorsSayWhatToDo)
{
    const auto says = [&](int error) {
        module.fail_next(DAPX_XRCD_OPEN, error);
        const auto domain = XrcDomain::open(context, 7, O_CREAT);
        EXPECT_FALSE(domain);
        EXPECT_EQ(domain.error().code(), error);
        EXPECT_EQ(domain.error().call(), "DAPX_XRCD_OPEN");
        return domain.error().message();
    };
    EXPECT_NE(says(ENOENT).find("pass O_CREAT"), std::string::npos);
    EXPECT_NE(says(EEXIST).find("without O_EXCL"), std::string::npos);
    EXPECT_NE(says(EACCES).find("nor may you write it"), std::string::npos);
    EXPECT_NE(says(EBADF).find("not open"), std::string::npos);
    EXPECT_NE(says(EINVAL).find("regular file"), std::string::npos);
    EXPECT_NE(says(EDQUOT).find("limit of objects"), std::string::npos);
}

} // namespace
} // namespace dapx::test
