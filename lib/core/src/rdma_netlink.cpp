// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "rdma_netlink.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_netlink.h>

namespace dapx::detail {

namespace {

struct FreeSocket {
    void operator()(::nl_sock* socket) const noexcept { ::nl_socket_free(socket); }
};
struct FreeMessage {
    void operator()(::nl_msg* message) const noexcept { ::nlmsg_free(message); }
};
using Message = std::unique_ptr<::nl_msg, FreeMessage>;

/// Attributes of an answer, by number.
using Attributes = ::nlattr* [RDMA_NLDEV_ATTR_MAX];
using Take = std::function<void(Attributes&)>;

Error failed(int code)
{
    return {code, "RDMA netlink", std::generic_category().message(code)};
}

Message request(int command, int flags)
{
    return Message(::nlmsg_alloc_simple(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command), flags));
}

/// libnl's errors are fewer than the kernel's, of which each has a meaning here.
int take_error(::sockaddr_nl* /*from*/, ::nlmsgerr* error, void* code) noexcept
{
    *static_cast<int*>(code) = -error->error;
    return NL_STOP;
}

int take_answer(::nl_msg* message, void* take)
{
    Attributes attributes{};
    if (::nlmsg_parse(::nlmsg_hdr(message), 0, attributes, RDMA_NLDEV_ATTR_MAX - 1, nullptr) == 0)
        (*static_cast<Take*>(take))(attributes);
    return NL_OK;
}

/// Sends @p message, and hands what comes back to @p take; without it, waits for the kernel's word
/// that it is done.
Result<void> query(const Message& message, Take take)
{
    const std::unique_ptr<::nl_sock, FreeSocket> socket(::nl_socket_alloc());
    if (!socket || !message)
        return std::unexpected(failed(ENOMEM));
    if (::nl_connect(socket.get(), NETLINK_RDMA) < 0)
        return std::unexpected(failed(EPROTONOSUPPORT));
    int code = 0;
    ::nl_socket_modify_err_cb(socket.get(), NL_CB_CUSTOM, take_error, &code);
    ::nl_socket_modify_cb(socket.get(), NL_CB_VALID, NL_CB_CUSTOM, take_answer, &take);
    int error = ::nl_send_auto(socket.get(), message.get());
    if (error >= 0)
        error = take ? ::nl_recvmsgs_default(socket.get()) : ::nl_wait_for_ack(socket.get());
    if (code != 0 || error < 0)
        return std::unexpected(failed(code != 0 ? code : EPROTO));
    return {};
}

/// The number by which the kernel wants a device named.
Result<std::uint32_t> device_index(const std::string& name)
{
    std::optional<std::uint32_t> index;
    const auto listed = query(request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP), [&](Attributes& attributes) {
        const ::nlattr* number = attributes[RDMA_NLDEV_ATTR_DEV_INDEX];
        const ::nlattr* called = attributes[RDMA_NLDEV_ATTR_DEV_NAME];
        if (number != nullptr && called != nullptr && ::nla_get_string(called) == name)
            index = ::nla_get_u32(number);
    });
    if (!listed)
        return std::unexpected(listed.error());
    if (!index)
        return std::unexpected(failed(ENODEV));
    return *index;
}

/// One entry of a device's summary: adds how many there are if it is of one of @p kinds.
void count_entry(::nlattr* entry, std::initializer_list<std::string_view> kinds,
                 std::uint64_t& objects)
{
    Attributes attributes{};
    if (::nla_parse_nested(attributes, RDMA_NLDEV_ATTR_MAX - 1, entry, nullptr) < 0)
        return;
    const ::nlattr* kind = attributes[RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME];
    const ::nlattr* number = attributes[RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR];
    if (kind != nullptr && number != nullptr &&
        std::ranges::find(kinds, ::nla_get_string(kind)) != kinds.end())
        objects += ::nla_get_u64(number);
}

} // namespace

Result<void> new_rdma_link(const std::string& name, const std::string& type,
                           const std::string& netdev)
{
    const Message message = request(RDMA_NLDEV_CMD_NEWLINK, 0);
    if (!message || ::nla_put_string(message.get(), RDMA_NLDEV_ATTR_DEV_NAME, name.c_str()) < 0 ||
        ::nla_put_string(message.get(), RDMA_NLDEV_ATTR_LINK_TYPE, type.c_str()) < 0 ||
        ::nla_put_string(message.get(), RDMA_NLDEV_ATTR_NDEV_NAME, netdev.c_str()) < 0)
        return std::unexpected(failed(ENOMEM));
    return query(message, nullptr);
}

Result<void> delete_rdma_link(const std::string& name)
{
    const auto index = device_index(name);
    if (!index)
        return std::unexpected(index.error());
    const Message message = request(RDMA_NLDEV_CMD_DELLINK, 0);
    if (!message || ::nla_put_u32(message.get(), RDMA_NLDEV_ATTR_DEV_INDEX, *index) < 0)
        return std::unexpected(failed(ENOMEM));
    return query(message, nullptr);
}

Result<std::string> software_driver(const std::string& name)
{
    const auto index = device_index(name);
    if (!index)
        return std::unexpected(index.error());
    const Message message = request(RDMA_NLDEV_CMD_GET_CHARDEV, 0);
    if (!message || ::nla_put_u32(message.get(), RDMA_NLDEV_ATTR_DEV_INDEX, *index) < 0 ||
        ::nla_put_string(message.get(), RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs") < 0)
        return std::unexpected(failed(ENOMEM));
    std::optional<std::uint32_t> driver;
    const auto asked = query(message, [&](Attributes& attributes) {
        if (const ::nlattr* id = attributes[RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID])
            driver = ::nla_get_u32(id);
    });
    if (!asked)
        return std::unexpected(asked.error());
    if (driver == RDMA_DRIVER_RXE)
        return "rxe";
    if (driver == RDMA_DRIVER_SIW)
        return "siw";
    return "";
}

Result<std::uint64_t> count_rdma_objects(const std::string& device,
                                         std::initializer_list<std::string_view> kinds)
{
    const auto index = device_index(device);
    if (!index)
        return std::unexpected(index.error());
    const Message message = request(RDMA_NLDEV_CMD_RES_GET, 0);
    if (!message || ::nla_put_u32(message.get(), RDMA_NLDEV_ATTR_DEV_INDEX, *index) < 0)
        return std::unexpected(failed(ENOMEM));
    std::uint64_t objects = 0;
    const auto asked = query(message, [&](Attributes& attributes) {
        ::nlattr* summary = attributes[RDMA_NLDEV_ATTR_RES_SUMMARY];
        ::nlattr* entry = nullptr;
        int left = 0;
        if (summary != nullptr)
            nla_for_each_nested(entry, summary, left) count_entry(entry, kinds, objects);
    });
    if (!asked)
        return std::unexpected(asked.error());
    return objects;
}

Result<bool> rdma_devices_shared()
{
    bool shared = true;
    const auto asked = query(request(RDMA_NLDEV_CMD_SYS_GET, 0), [&](Attributes& attributes) {
        const ::nlattr* mode = attributes[RDMA_NLDEV_SYS_ATTR_NETNS_MODE];
        shared = mode == nullptr || ::nla_get_u8(mode) != 0;
    });
    if (!asked)
        return std::unexpected(asked.error());
    return shared;
}

} // namespace dapx::detail
