// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/memory_region.hpp>
#include <dapx/object.hpp>
#include <dapx/post.hpp>

#include <cstdint>

namespace dapx {

class Endpoint;
class Pd;

/// Remote memory region: a window of a MemoryRegion, which peers can use until it is taken back.
///
/// It belongs to a PD, and is bound through any endpoint of it. Taking back (free(), unbind(),
/// another bind()) is final: afterwards not one byte of the window changes any more, also by what was
/// under way, and whoever tries breaks his connection. What he is told depends on the device: rxe
/// refuses with Status::remote_access, but a read that was half way over on Linux 6.1 ends otherwise;
/// siw only ends the stream, so that his requests are flushed.
///
/// Move-only; see Object for its end. free() never fails on a living region, and needs no endpoint.
/// Thread safety: any thread.
class DAPX_EXPORT Rmr : public Object {
public:
    /// What it is bound to. Source: struct dapx_rmr_query.
    struct Info {
        std::uint32_t pd = 0;
        std::uint32_t mr = 0; ///< 0: not bound; then so is the rest
        std::uint64_t addr = 0;
        std::uint64_t length = 0; ///< bytes
        Access access = Access::local_read;
        std::uint32_t rkey = 0;
    };

    /// Not bound yet. Errors: EDQUOT, ENOMEM, EIO. Source: DAPX_RMR_CREATE.
    [[nodiscard]] static Result<Rmr> create(const Pd& pd, std::uint64_t user_data = 0) noexcept;

    /// Binds it to @p length bytes, not 0, of @p region from @p offset on, instead of what it is
    /// bound to. Takes its place among the requests of @p endpoint, and publishes those that were
    /// posted with Doorbell::later: when all of them are done it completes on the request EVD
    /// (Opcode::rmr_bind, @p wr_id), and what is posted later waits for it.
    /// @param access remote rights only. To write, and for atomics, @p region needs
    ///               Access::local_write; it needs no remote rights itself.
    /// @param flags  SendFlags::signalled, or none: then only a failure completes with an event.
    ///               SendFlags::quiet: its success wakes nobody.
    /// @return what the peer has to know; valid from the completion on. A new key each time.
    /// Errors: EBADFD (not connected), EINVAL (outside the region; another PD), EACCES (to write a
    /// region that may not be written), EOVERFLOW, EOPNOTSUPP (local rights), EAGAIN (too many binds wait),
    /// EFAULT (not mapped any more), ENOMEM (also RLIMIT_MEMLOCK), ENOENT, EIO.
    /// Thread safety: that of posting to @p endpoint. Source: DAPX_RMR_BIND.
    [[nodiscard]] Result<RemoteAddress> bind(Endpoint& endpoint, std::uint64_t wr_id,
                                             const MemoryRegion& region, std::uint64_t offset,
                                             std::uint64_t length, Access access,
                                             SendFlags flags = SendFlags::signalled) noexcept;

    /// Takes the window back, in its place among the requests of @p endpoint; as bind().
    [[nodiscard]] Result<void> unbind(Endpoint& endpoint, std::uint64_t wr_id,
                                      SendFlags flags = SendFlags::signalled) noexcept;

    /// Binds that still wait do not show. Errors: ENOENT, EIO. Source: DAPX_RMR_QUERY.
    [[nodiscard]] Result<Info> query() const noexcept;

    Rmr(Rmr&&) noexcept = default;
    Rmr& operator=(Rmr&&) noexcept = default;
    ~Rmr() = default;

private:
    Rmr(std::shared_ptr<const detail::Device> device, std::uint32_t handle) noexcept
        : Object(std::move(device), ObjectType::rmr, handle)
    {
    }
};

} // namespace dapx
