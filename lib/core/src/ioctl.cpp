// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "ioctl.hpp"

#include <dapx/detail/receive_queue.hpp>

#include <cerrno>

#include <sys/ioctl.h>

namespace dapx::detail {

int issue(int fd, const Command& command, void* argument) noexcept
{
    for (;;) {
        const int result = ::ioctl(fd, command.request, argument);
        if (result == 0)
            return 0;
        // No command answers a positive number: then this is somebody else's device.
        if (result > 0)
            return EBADE;
        if (errno != EINTR || !command.retry_on_signal)
            return errno;
    }
}

int doorbell(int fd, std::uint32_t handle, std::uint32_t flags) noexcept
{
    ::dapx_doorbell argument = {
        .size = sizeof(argument),
        .flags = flags,
        .handle = handle,
        .__reserved = 0,
    };
    return issue(fd, command_of<::dapx_doorbell>, &argument);
}

PostResult explain_full(const WorkRing& ring, int fd, std::uint32_t handle,
                        std::uint32_t flags) noexcept
{
    if (!ring.dead())
        return PostResult::full;
    const int error = doorbell(fd, handle, flags);
    return error == 0 ? PostResult::full : PostResult{error};
}

} // namespace dapx::detail
