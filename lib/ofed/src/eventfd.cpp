// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "eventfd.hpp"

#include <sys/uio.h>

namespace dapx::verbs {

std::uint64_t read_signals(int eventfd) noexcept
{
    std::uint64_t count = 0;
    const iovec into = {.iov_base = &count, .iov_len = sizeof(count)};
    return preadv2(eventfd, &into, 1, -1, RWF_NOWAIT) == sizeof(count) ? count : 0;
}

} // namespace dapx::verbs
