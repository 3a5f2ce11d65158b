// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/object.hpp>

#include "device.hpp"
#include "ioctl.hpp"

namespace dapx {

namespace {

int issue_free(int fd, std::uint32_t handle, ObjectType type, std::uint32_t flags) noexcept
{
    ::dapx_free argument{};
    argument.flags = flags;
    argument.handle = handle;
    argument.type = static_cast<std::uint32_t>(type);
    return detail::command(fd, argument);
}

} // namespace

Result<void> Object::free() noexcept
{
    if (const int error = issue_free(fd(), handle_, type_, 0); error != 0)
        return std::unexpected(detail::explain_free(error, type_));
    handle_ = 0;
    return {};
}

int Object::try_free() noexcept
{
    const int error = issue_free(fd(), handle_, type_,
                                 type_ == ObjectType::cm ? std::uint32_t{DAPX_FREE_DISCARD} : 0);
    if (error == 0)
        handle_ = 0;
    return error;
}

int Object::fd() const noexcept
{
    return device_->fd();
}

bool Object::owned_here() const noexcept
{
    return handle_ != 0 && device_->here();
}

void Object::dispose() noexcept
{
    // Nobody could act on an error, nor wait, in a destructor.
    if (owned_here())
        (void)try_free();
    handle_ = 0;
}

} // namespace dapx
