// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/dapx.h>
#include <dapx/object_list.hpp>

#include "object_table.hpp"

namespace dapx {

namespace {

/// A dump of which each message is one T.
template <class T, bool (*add)(std::vector<T>&, const ::nlmsghdr*) noexcept>
Result<std::vector<T>> list(std::uint8_t command, const detail::NlAttempt& attempt) noexcept
{
    std::vector<T> result;
    const auto done = detail::nl_dump(
        {.command = command,
         .attempt = attempt,
         .begin = [&result] { result.clear(); },
         .message = [&result](const ::nlmsghdr* message) { return add(result, message); }});
    if (!done)
        return std::unexpected(done.error());
    return result;
}

} // namespace

namespace detail {

bool add_context(std::vector<ContextEntry>& contexts, const ::nlmsghdr* message) noexcept
{
    ObjectTable table;
    if (!read_object(table, message))
        return false;
    contexts.push_back({.id = nl_number(table[DAPX_OBJECT_ATTR_CONTEXT]),
                        .device = nl_text(table[DAPX_OBJECT_ATTR_DEVICE]),
                        .pid = nl_number(table[DAPX_OBJECT_ATTR_PID]),
                        .name = nl_text(table[DAPX_OBJECT_ATTR_NAME]),
                        .user = nl_number(table[DAPX_OBJECT_ATTR_USER]),
                        .objects = nl_number(table[DAPX_OBJECT_ATTR_OBJECTS]),
                        .ending = table[DAPX_OBJECT_ATTR_ENDING] != nullptr});
    return true;
}

bool add_object(std::vector<ObjectEntry>& objects, const ::nlmsghdr* message) noexcept
{
    ObjectTable table;
    if (!read_object(table, message) || table[DAPX_OBJECT_ATTR_TYPE] == nullptr ||
        table[DAPX_OBJECT_ATTR_HANDLE] == nullptr)
        return false;
    objects.push_back({
        .context = nl_number(table[DAPX_OBJECT_ATTR_CONTEXT]),
        .device = nl_text(table[DAPX_OBJECT_ATTR_DEVICE]),
        .pid = nl_number(table[DAPX_OBJECT_ATTR_PID]),
        .name = nl_text(table[DAPX_OBJECT_ATTR_NAME]),
        .type = static_cast<ObjectType>(nl_number(table[DAPX_OBJECT_ATTR_TYPE])),
        .handle = nl_number(table[DAPX_OBJECT_ATTR_HANDLE]),
        .users = nl_number(table[DAPX_OBJECT_ATTR_USERS]),
        .busy = table[DAPX_OBJECT_ATTR_BUSY] != nullptr,
        .state = number(table[DAPX_OBJECT_ATTR_STATE]),
        .pd = number(table[DAPX_OBJECT_ATTR_PD]),
        .mr = number(table[DAPX_OBJECT_ATTR_MR]),
        .srq = number(table[DAPX_OBJECT_ATTR_SRQ]),
        .qp_num = number(table[DAPX_OBJECT_ATTR_QP]),
        .remote_qp_num = number(table[DAPX_OBJECT_ATTR_REMOTE_QP]),
        .local = address(table[DAPX_OBJECT_ATTR_LOCAL]),
        .remote = address(table[DAPX_OBJECT_ATTR_REMOTE]),
        .number = number(table[DAPX_OBJECT_ATTR_NUMBER]),
        .domain = number(table[DAPX_OBJECT_ATTR_DOMAIN]),
        .access = number(table[DAPX_OBJECT_ATTR_ACCESS]),
        .length = large_number(table[DAPX_OBJECT_ATTR_LENGTH]),
        .depth = number(table[DAPX_OBJECT_ATTR_DEPTH]),
        .unread = number(table[DAPX_OBJECT_ATTR_UNREAD]),
        .full = table[DAPX_OBJECT_ATTR_FULL] != nullptr,
        .limit = number(table[DAPX_OBJECT_ATTR_LIMIT]),
        .requests = number(table[DAPX_OBJECT_ATTR_REQUESTS]),
        .receives = number(table[DAPX_OBJECT_ATTR_RECEIVES]),
        .posted = large_number(table[DAPX_OBJECT_ATTR_POSTED]),
        .received = large_number(table[DAPX_OBJECT_ATTR_RECEIVED]),
        .events = large_number(table[DAPX_OBJECT_ATTR_EVENTS]),
    });
    return true;
}

} // namespace detail

Result<std::vector<ContextEntry>> list_contexts() noexcept
{
    return list<ContextEntry, detail::add_context>(
        DAPX_GENL_CMD_CONTEXT_GET, {"DAPX_GENL_CMD_CONTEXT_GET", "cannot list the contexts"});
}

Result<std::vector<ObjectEntry>> list_objects() noexcept
{
    return list<ObjectEntry, detail::add_object>(
        DAPX_GENL_CMD_OBJECT_GET, {"DAPX_GENL_CMD_OBJECT_GET", "cannot list the objects"});
}

} // namespace dapx
