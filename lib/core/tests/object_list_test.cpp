// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What is made of the module's messages, which are made up here.
#include "netlink.hpp"

#include <dapx/dapx.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

namespace dapx::test {
namespace {

class Message {
public:
    Message() { ::genlmsg_put(message_.get(), 0, 1, 30, 0, NLM_F_MULTI, command, 1); }

    Message& put(int type, std::uint32_t value)
    {
        ::nla_put_u32(message_.get(), type, value);
        return *this;
    }
    Message& large(int type, std::uint64_t value)
    {
        ::nla_put_u64(message_.get(), type, value);
        return *this;
    }
    Message& flag(int type)
    {
        ::nla_put_flag(message_.get(), type);
        return *this;
    }
    Message& text(int type, const char* value)
    {
        ::nla_put_string(message_.get(), type, value);
        return *this;
    }
    Message& bytes(int type, const void* data, int length)
    {
        ::nla_put(message_.get(), type, length, data);
        return *this;
    }

    [[nodiscard]] const ::nlmsghdr* header() const { return ::nlmsg_hdr(message_.get()); }

private:
    static constexpr int command = DAPX_GENL_CMD_OBJECT_GET;

    struct Free {
        void operator()(::nl_msg* message) const { ::nlmsg_free(message); }
    };
    std::unique_ptr<::nl_msg, Free> message_{::nlmsg_alloc()};
};

TEST(ObjectList, Context)
{
    std::vector<ContextEntry> contexts;
    ASSERT_TRUE(detail::add_context(contexts, Message()
                                                  .put(DAPX_OBJECT_ATTR_CONTEXT, 7)
                                                  .text(DAPX_OBJECT_ATTR_DEVICE, "rxe0")
                                                  .put(DAPX_OBJECT_ATTR_PID, 100)
                                                  .text(DAPX_OBJECT_ATTR_NAME, "job")
                                                  .put(DAPX_OBJECT_ATTR_USER, 1000)
                                                  .put(DAPX_OBJECT_ATTR_OBJECTS, 12)
                                                  .header()));
    ASSERT_TRUE(detail::add_context(
        contexts,
        Message().put(DAPX_OBJECT_ATTR_CONTEXT, 8).flag(DAPX_OBJECT_ATTR_ENDING).header()));
    ASSERT_EQ(contexts.size(), 2U);
    EXPECT_EQ(contexts[0].id, 7U);
    EXPECT_EQ(contexts[0].device, "rxe0");
    EXPECT_EQ(contexts[0].pid, 100U);
    EXPECT_EQ(contexts[0].name, "job");
    EXPECT_EQ(contexts[0].user, 1000U);
    EXPECT_EQ(contexts[0].objects, 12U);
    EXPECT_FALSE(contexts[0].ending);
    EXPECT_EQ(contexts[1].device, "");
    EXPECT_TRUE(contexts[1].ending);
}

TEST(ObjectList, Endpoint)
{
    ::sockaddr_storage remote{};
    auto& in = reinterpret_cast<::sockaddr_in&>(remote);
    in.sin_family = AF_INET;
    in.sin_port = htons(7471);
    in.sin_addr.s_addr = htonl(0x0a000002);
    std::vector<ObjectEntry> objects;
    ASSERT_TRUE(
        detail::add_object(objects, Message()
                                        .put(DAPX_OBJECT_ATTR_CONTEXT, 7)
                                        .put(DAPX_OBJECT_ATTR_TYPE, DAPX_OBJECT_EP)
                                        .put(DAPX_OBJECT_ATTR_HANDLE, 9)
                                        .put(DAPX_OBJECT_ATTR_STATE, DAPX_EP_CONNECTED)
                                        .bytes(DAPX_OBJECT_ATTR_REMOTE, &remote, sizeof(remote))
                                        .bytes(DAPX_OBJECT_ATTR_PAD, nullptr, 0)
                                        .large(DAPX_OBJECT_ATTR_POSTED, 1ULL << 40)
                                        .header()));
    ASSERT_EQ(objects.size(), 1U);
    EXPECT_EQ(objects[0].type, ObjectType::ep);
    EXPECT_EQ(objects[0].state, std::uint32_t{DAPX_EP_CONNECTED});
    EXPECT_EQ(objects[0].remote->to_string(), "10.0.0.2:7471");
    EXPECT_EQ(objects[0].posted, 1ULL << 40);
    EXPECT_FALSE(objects[0].local);
    EXPECT_FALSE(objects[0].received);
    EXPECT_FALSE(objects[0].busy);
}

TEST(ObjectList, NotToBeUnderstood)
{
    std::vector<ObjectEntry> objects;
    std::vector<ContextEntry> contexts;
    const std::uint16_t half = 1;
    // Of no context, of no class, without a handle; an address and a number that are too short.
    EXPECT_FALSE(detail::add_context(contexts, Message().put(DAPX_OBJECT_ATTR_PID, 1).header()));
    EXPECT_FALSE(detail::add_object(
        objects,
        Message().put(DAPX_OBJECT_ATTR_CONTEXT, 7).put(DAPX_OBJECT_ATTR_HANDLE, 9).header()));
    EXPECT_FALSE(detail::add_object(objects, Message()
                                                 .put(DAPX_OBJECT_ATTR_CONTEXT, 7)
                                                 .put(DAPX_OBJECT_ATTR_TYPE, DAPX_OBJECT_PD)
                                                 .header()));
    for (const int type : {DAPX_OBJECT_ATTR_REMOTE, DAPX_OBJECT_ATTR_USERS})
        EXPECT_FALSE(detail::add_object(objects, Message()
                                                     .put(DAPX_OBJECT_ATTR_CONTEXT, 7)
                                                     .put(DAPX_OBJECT_ATTR_TYPE, DAPX_OBJECT_PD)
                                                     .put(DAPX_OBJECT_ATTR_HANDLE, 9)
                                                     .bytes(type, &half, sizeof(half))
                                                     .header()));
    EXPECT_TRUE(objects.empty() && contexts.empty());
    // A newer module tells more.
    EXPECT_TRUE(detail::add_context(
        contexts, Message().put(DAPX_OBJECT_ATTR_CONTEXT, 7).put(1000, 1).header()));
}

} // namespace
} // namespace dapx::test
