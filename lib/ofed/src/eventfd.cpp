// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "eventfd.hpp"

#include <algorithm>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

namespace dapx::verbs {

std::uint64_t read_signals(int eventfd) noexcept
{
    std::uint64_t count = 0;
    const iovec into = {.iov_base = &count, .iov_len = sizeof(count)};
    return preadv2(eventfd, &into, 1, -1, RWF_NOWAIT) == sizeof(count) ? count : 0;
}

void Readiness::signalled(std::uint64_t times) noexcept
{
    if (times == 0)
        return;
    unsignalled_ -= static_cast<std::int64_t>(times) - (own_signal_ ? 1 : 0);
    own_signal_ = false;
}

/// What is about to be signalled is waited for: otherwise the descriptor would become readable once
/// more, without an event.
void Readiness::clear() noexcept
{
    constexpr int patience_ms = 100;
    signalled(read_signals(fd_));
    pollfd readable = {.fd = fd_, .events = POLLIN, .revents = 0};
    while (unsignalled_ > 0 && poll(&readable, 1, patience_ms) == 1)
        signalled(read_signals(fd_));
    // They are not all awaited if a ring has just come from elsewhere, or gone there.
    unsignalled_ = std::min<std::int64_t>(unsignalled_, 0);
}

void Readiness::signal() noexcept
{
    own_signal_ = true;
    eventfd_write(fd_, 1);
}

} // namespace dapx::verbs
