// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/dapx.h>
#include <dapx/monitor.hpp>

#include "explain.hpp"
#include "object_table.hpp"

#include <array>
#include <cerrno>
#include <utility>

#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <poll.h>
#include <sys/socket.h>

namespace dapx {

namespace {

constexpr detail::NlAttempt opening{.call = "DAPX_GENL_GROUP_EVENTS",
                                    .attempt = "cannot listen to events"};
constexpr detail::NlAttempt reading{.call = "DAPX_GENL_CMD_EVENT", .attempt = "cannot read events"};

/// What may wait to be read; a process with a thousand endpoints tells some thousand at its end.
constexpr int room = 4 << 20;

} // namespace

namespace detail {

bool add_happening(std::vector<Happening>& happenings, const ::nlmsghdr* message) noexcept
{
    ObjectTable table;
    if (!read_object(table, message) || table[DAPX_OBJECT_ATTR_EVENT] == nullptr)
        return false;
    happenings.push_back({.event = nl_number(table[DAPX_OBJECT_ATTR_EVENT]),
                          .time = nl_large_number(table[DAPX_OBJECT_ATTR_TIME]),
                          .lost = nl_number(table[DAPX_OBJECT_ATTR_LOST]),
                          .context = nl_number(table[DAPX_OBJECT_ATTR_CONTEXT]),
                          .device = nl_text(table[DAPX_OBJECT_ATTR_DEVICE]),
                          .pid = nl_number(table[DAPX_OBJECT_ATTR_PID]),
                          .name = nl_text(table[DAPX_OBJECT_ATTR_NAME]),
                          .handle = number(table[DAPX_OBJECT_ATTR_HANDLE]),
                          .state = number(table[DAPX_OBJECT_ATTR_STATE]),
                          .mr = number(table[DAPX_OBJECT_ATTR_MR]),
                          .length = large_number(table[DAPX_OBJECT_ATTR_LENGTH]),
                          .domain = number(table[DAPX_OBJECT_ATTR_DOMAIN]),
                          .objects = number(table[DAPX_OBJECT_ATTR_OBJECTS]),
                          .cause = number(table[DAPX_OBJECT_ATTR_CAUSE]),
                          .duration = large_number(table[DAPX_OBJECT_ATTR_DURATION])});
    return true;
}

} // namespace detail

struct Monitor::State {
    detail::NlFamily family;
    std::array<char, 65536> buffer;
    bool overrun = false;
};

Monitor::Monitor(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Monitor::Monitor(Monitor&&) noexcept = default;
Monitor& Monitor::operator=(Monitor&&) noexcept = default;
Monitor::~Monitor() = default;

Result<Monitor> Monitor::open() noexcept
{
    auto family = detail::nl_open(opening);
    if (!family)
        return std::unexpected(family.error());
    ::nl_sock* socket = family->socket.get();
    const int group = ::genl_ctrl_resolve_grp(socket, DAPX_GENL_NAME, DAPX_GENL_GROUP_EVENTS);
    if (group < 0)
        return std::unexpected(
            detail::explain_libnl(group == -NLE_OBJ_NOTFOUND ? -NLE_OPNOTSUPP : group, opening));
    // As much as the system allows.
    const int size = room;
    (void)::setsockopt(::nl_socket_get_fd(socket), SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    (void)::setsockopt(::nl_socket_get_fd(socket), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
    const int error = ::nl_socket_add_membership(socket, group);
    if (error == -NLE_PERM)
        return std::unexpected(Error(EPERM, opening.call,
                                     std::string(opening.attempt) +
                                         ": on this kernel that takes the capability "
                                         "CAP_NET_ADMIN; run it as root"));
    if (error < 0)
        return std::unexpected(detail::explain_libnl(error, opening));
    return Monitor(std::make_unique<State>(State{.family = std::move(*family), .buffer = {}}));
}

int Monitor::fd() const noexcept
{
    return ::nl_socket_get_fd(state_->family.socket.get());
}

Result<std::vector<Happening>> Monitor::read() noexcept
{
    const Error overrun(ENOBUFS, "recv",
                        std::string(reading.attempt) +
                            ": more happened than the socket has room for, and some of it is lost; "
                            "read more often");
    if (std::exchange(state_->overrun, false))
        return std::unexpected(overrun);
    ::pollfd waiting = {.fd = fd(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, -1) < 0)
        return std::unexpected(detail::explain(errno, "poll", reading.attempt));
    std::vector<Happening> happenings;
    std::array<char, 65536>& buffer = state_->buffer;
    for (;;) {
        const ::ssize_t length = ::recv(fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (length < 0 && errno == EAGAIN)
            return happenings;
        if (length < 0 && errno == ENOBUFS) {
            if (happenings.empty())
                return std::unexpected(overrun);
            // What came before is told first.
            state_->overrun = true;
            return happenings;
        }
        if (length < 0)
            return std::unexpected(detail::explain(errno, "recv", reading.attempt));
        int left = static_cast<int>(length);
        for (auto* message = reinterpret_cast<::nlmsghdr*>(buffer.data());
             ::nlmsg_ok(message, left) != 0; message = ::nlmsg_next(message, &left))
            if (message->nlmsg_type == state_->family.number &&
                !detail::add_happening(happenings, message))
                return std::unexpected(detail::explain_not_understood(reading));
    }
}

} // namespace dapx
