// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What is made of the module's messages, which are made up here.
#include "netlink.hpp"

#include <dapx/dapx.h>

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

namespace dapx::test {
namespace {

/// A message as the module sends it.
class Message {
public:
    explicit Message(std::uint32_t id)
    {
        ::genlmsg_put(message_.get(), 0, 1, 30, 0, NLM_F_MULTI, DAPX_GENL_CMD_XRCD_GET, 1);
        ::nla_put_u32(message_.get(), DAPX_XRCD_ATTR_ID, id);
    }

    Message& head(const char* device, std::uint32_t opens, std::uint32_t srqs, std::uint32_t qps)
    {
        ::nla_put_string(message_.get(), DAPX_XRCD_ATTR_DEVICE, device);
        ::nla_put_u32(message_.get(), DAPX_XRCD_ATTR_OPENS, opens);
        ::nla_put_u32(message_.get(), DAPX_XRCD_ATTR_SRQS, srqs);
        ::nla_put_u32(message_.get(), DAPX_XRCD_ATTR_QPS, qps);
        return *this;
    }
    Message& path(const char* path)
    {
        ::nla_put_string(message_.get(), DAPX_XRCD_ATTR_PATH, path);
        return *this;
    }
    Message& partial()
    {
        ::nla_put_flag(message_.get(), DAPX_XRCD_ATTR_PARTIAL);
        return *this;
    }
    Message& open(std::uint32_t pid, const char* name)
    {
        ::nlattr* nest = ::nla_nest_start(message_.get(), DAPX_XRCD_ATTR_OPEN);
        ::nla_put_u32(message_.get(), DAPX_XRCD_OPEN_PID, pid);
        if (name != nullptr)
            ::nla_put_string(message_.get(), DAPX_XRCD_OPEN_NAME, name);
        ::nla_nest_end(message_.get(), nest);
        return *this;
    }
    Message& srq(std::uint32_t number, std::uint32_t pid)
    {
        ::nlattr* nest = ::nla_nest_start(message_.get(), DAPX_XRCD_ATTR_SRQ);
        ::nla_put_u32(message_.get(), DAPX_XRCD_SRQ_NUMBER, number);
        ::nla_put_u32(message_.get(), DAPX_XRCD_SRQ_PID, pid);
        ::nla_nest_end(message_.get(), nest);
        return *this;
    }
    Message& qp(std::uint32_t number, std::uint64_t messages)
    {
        ::nlattr* nest = ::nla_nest_start(message_.get(), DAPX_XRCD_ATTR_QP);
        ::nla_put_u32(message_.get(), DAPX_XRCD_QP_NUMBER, number);
        ::nla_put_u32(message_.get(), DAPX_XRCD_QP_STATE, DAPX_QP_RTS);
        ::nla_put_u32(message_.get(), DAPX_XRCD_QP_REGISTRATIONS, 2);
        ::nla_put(message_.get(), DAPX_XRCD_QP_PAD, 0, nullptr);
        ::nla_put_u64(message_.get(), DAPX_XRCD_QP_MESSAGES, messages);
        ::nla_put_u64(message_.get(), DAPX_XRCD_QP_NOT_READY, 3);
        ::nla_nest_end(message_.get(), nest);
        return *this;
    }
    /// An SRQ with a number that is too short.
    Message& broken_srq()
    {
        ::nlattr* nest = ::nla_nest_start(message_.get(), DAPX_XRCD_ATTR_SRQ);
        ::nla_put_u16(message_.get(), DAPX_XRCD_SRQ_NUMBER, 1);
        ::nla_nest_end(message_.get(), nest);
        return *this;
    }
    /// Any attribute with a number.
    Message& put(int type, std::uint32_t value)
    {
        ::nla_put_u32(message_.get(), type, value);
        return *this;
    }

    [[nodiscard]] ::nlmsghdr* header() const { return ::nlmsg_hdr(message_.get()); }

private:
    struct Free {
        void operator()(::nl_msg* message) const { ::nlmsg_free(message); }
    };
    std::unique_ptr<::nl_msg, Free> message_{::nlmsg_alloc()};
};

bool add(std::vector<XrcDomainInfo>& domains, const Message& message)
{
    return detail::add_xrc_domain(domains, message.header());
}

TEST(XrcDomainList, OneMessageEach)
{
    std::vector<XrcDomainInfo> domains;
    ASSERT_TRUE(add(domains, Message(7)
                                 .head("rxe0", 3, 1, 1)
                                 .path("/dev/shm/job")
                                 .open(100, "a.out")
                                 .open(100, "a.out")
                                 .open(101, nullptr)
                                 .srq(5, 101)
                                 .qp(17, 1ULL << 40)));
    ASSERT_TRUE(add(domains, Message(9).head("rxe1", 2, 3, 4).partial()));
    ASSERT_EQ(domains.size(), 2U);

    const XrcDomainInfo& job = domains[0];
    EXPECT_EQ(job.id, 7U);
    EXPECT_EQ(job.device, "rxe0");
    EXPECT_EQ(job.path, "/dev/shm/job");
    EXPECT_FALSE(job.partial);
    ASSERT_EQ(job.processes.size(), 2U);
    EXPECT_EQ(job.processes[0].pid, 100U);
    EXPECT_EQ(job.processes[0].name, "a.out");
    EXPECT_EQ(job.processes[0].opens, 2U);
    EXPECT_EQ(job.processes[1].pid, 101U);
    EXPECT_EQ(job.processes[1].name, "");
    ASSERT_EQ(job.srqs.size(), 1U);
    EXPECT_EQ(job.srqs[0].number, 5U);
    EXPECT_EQ(job.srqs[0].pid, 101U);
    ASSERT_EQ(job.qps.size(), 1U);
    EXPECT_EQ(job.qps[0].number, 17U);
    EXPECT_EQ(job.qps[0].state, dapx::QpState::ready_to_send);
    EXPECT_EQ(job.qps[0].registrations, 2U);
    EXPECT_EQ(job.qps[0].messages, 1ULL << 40);
    EXPECT_EQ(job.qps[0].not_ready, 3U);

    EXPECT_FALSE(domains[1].path);
    EXPECT_TRUE(domains[1].partial);
    EXPECT_EQ(domains[1].total_opens, 2U);
    EXPECT_EQ(domains[1].total_srqs, 3U);
    EXPECT_EQ(domains[1].total_qps, 4U);
}

TEST(XrcDomainList, SeveralMessages)
{
    std::vector<XrcDomainInfo> domains;
    ASSERT_TRUE(add(domains, Message(7).head("rxe0", 3, 2, 1).path("").open(1, "a").open(2, "b")));
    ASSERT_TRUE(add(domains, Message(7).open(1, "a").srq(5, 1)));
    ASSERT_TRUE(add(domains, Message(7).srq(6, 2).qp(17, 0)));
    ASSERT_TRUE(add(domains, Message(8).head("rxe0", 1, 0, 0)));
    ASSERT_EQ(domains.size(), 2U);
    EXPECT_EQ(domains[0].device, "rxe0");
    EXPECT_EQ(domains[0].path, "");
    EXPECT_EQ(domains[0].total_opens, 3U);
    ASSERT_EQ(domains[0].processes.size(), 2U);
    EXPECT_EQ(domains[0].processes[0].opens, 2U);
    EXPECT_EQ(domains[0].srqs.size(), 2U);
    EXPECT_EQ(domains[0].qps.size(), 1U);
}

TEST(XrcDomainList, WhatANewerModuleTellsIsPassedOver)
{
    std::vector<XrcDomainInfo> domains;
    ASSERT_TRUE(add(domains, Message(7).head("rxe0", 1, 0, 0).put(99, 1).open(1, "a")));
    ASSERT_EQ(domains.size(), 1U);
    EXPECT_EQ(domains[0].processes.size(), 1U);
}

TEST(XrcDomainList, WhatIsNotToBeUnderstoodChangesNothing)
{
    std::vector<XrcDomainInfo> domains;
    ASSERT_TRUE(add(domains, Message(7).head("rxe0", 1, 0, 0)));
    EXPECT_FALSE(add(domains, Message(7).open(1, "a").broken_srq()));
    Message none(1);
    none.header()->nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
    EXPECT_FALSE(add(domains, none));
    Message cut(1);
    cut.header()->nlmsg_len = NLMSG_LENGTH(0);
    EXPECT_FALSE(add(domains, cut));
    Message shorter(1);
    ::nlattr* id =
        ::genlmsg_attrdata(static_cast<::genlmsghdr*>(::nlmsg_data(shorter.header())), 0);
    id->nla_len = NLA_HDRLEN + 2;
    EXPECT_FALSE(add(domains, shorter));
    ASSERT_EQ(domains.size(), 1U);
    EXPECT_TRUE(domains[0].processes.empty());
}

} // namespace
} // namespace dapx::test
