// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/context.hpp>
#include <dapx/object.hpp>

#include <cstdint>

namespace dapx {

/// A reference to an XRC domain: what processes share that have the same file. Move-only; see
/// Object for its end. The last reference ends the domain.
class DAPX_EXPORT XrcDomain : public Object {
public:
    /// Opens the domain of a file on the context's device.
    ///
    /// @param fd     a regular file that the caller owns or may write, however it was opened; remains the
    ///               caller's, and may be closed at once. Whoever has the same inode, by whatever
    ///               name, shares the domain. -1: a domain of the caller's own.
    /// @param oflag  as of open(2): 0 (there has to be one), O_CREAT, or O_CREAT | O_EXCL (there
    ///               must be none). To look and to make is one step. With @p fd -1: O_CREAT.
    /// Errors: EINVAL (@p oflag, or no regular file), EBADF, ENOENT (there is none), EEXIST,
    /// EACCES (the file may not be written), EDQUOT, ENOMEM, EIO.
    /// Thread safety: any thread. Source: DAPX_XRCD_OPEN; ibv_open_xrc_domain(3).
    [[nodiscard]] static Result<XrcDomain> open(const Context& context, int fd, int oflag,
                                                std::uint64_t user_data = 0) noexcept;

    struct Joined;

    /// Opens the domain of a file, and makes it if there is none: Joined::created says which. Of
    /// several that do so at once one makes it.
    /// Errors: as open(), but neither ENOENT nor EEXIST. Thread safety: any thread.
    [[nodiscard]] static Result<Joined> join(const Context& context, int fd,
                                             std::uint64_t user_data = 0) noexcept;

    XrcDomain(XrcDomain&&) noexcept = default;
    XrcDomain& operator=(XrcDomain&&) noexcept = default;
    ~XrcDomain() = default;

private:
    XrcDomain(std::shared_ptr<const detail::Device> device, std::uint32_t handle) noexcept
        : Object(std::move(device), ObjectType::xrcd, handle)
    {
    }
};

/// What XrcDomain::join() gives.
struct XrcDomain::Joined {
    XrcDomain domain;
    bool created; ///< this call made the domain
};

} // namespace dapx
