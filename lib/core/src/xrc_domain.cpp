// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/xrc_domain.hpp>

#include "ioctl.hpp"

#include <cerrno>
#include <utility>

#include <fcntl.h>

namespace dapx {

Result<XrcDomain> XrcDomain::open(const Context& context, int fd, int oflag,
                                  std::uint64_t user_data) noexcept
{
    // Numbers of the C library, which the module does not know.
    if ((oflag & ~(O_CREAT | O_EXCL)) != 0)
        return std::unexpected(detail::explain_xrcd(EINVAL));
    ::dapx_xrcd_open argument{};
    argument.fd = fd;
    argument.user_data = user_data;
    if ((oflag & O_CREAT) != 0)
        argument.flags |= DAPX_XRCD_CREATE;
    if ((oflag & O_EXCL) != 0)
        argument.flags |= DAPX_XRCD_EXCL;
    if (const int error = detail::command(context.fd(), argument); error != 0)
        return std::unexpected(detail::explain_xrcd(error));
    return XrcDomain(device_of(context), argument.out_xrcd);
}

Result<XrcDomain::Joined> XrcDomain::join(const Context& context, int fd,
                                          std::uint64_t user_data) noexcept
{
    for (;;) {
        auto made = open(context, fd, O_CREAT | O_EXCL, user_data);
        if (made)
            return Joined{.domain = std::move(*made), .created = true};
        if (made.error().code() != EEXIST)
            return std::unexpected(std::move(made).error());
        auto found = open(context, fd, 0, user_data);
        if (found)
            return Joined{.domain = std::move(*found), .created = false};
        // Its last user has closed it in between.
        if (found.error().code() != ENOENT)
            return std::unexpected(std::move(found).error());
    }
}

} // namespace dapx
