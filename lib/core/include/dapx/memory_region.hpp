// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/flags.hpp>
#include <dapx/object.hpp>

#include <cstddef>
#include <span>

namespace dapx {

class Pd;

/// A piece of registered memory in a work request: MR handle, length in bytes, address.
using Segment = ::dapx_sge;

/// A place in the peer's memory: what the peer's MemoryRegion::remote() told, sent by whatever way.
struct RemoteAddress {
    std::uint64_t addr = 0;
    std::uint32_t rkey = 0;
};

/// Rights on memory; local reading is always allowed. Source: enum dapx_access.
enum class Access : std::uint32_t {
    local_read = 0,
    local_write = DAPX_ACCESS_LOCAL_WRITE,     ///< receives, reads, atomics may put data here
    remote_write = DAPX_ACCESS_REMOTE_WRITE,   ///< peers may write; needs local_write
    remote_read = DAPX_ACCESS_REMOTE_READ,     ///< peers may read
    remote_atomic = DAPX_ACCESS_REMOTE_ATOMIC, ///< peers may use atomics; needs local_write
};
template <> inline constexpr bool is_flags<Access> = true;

/// What memory is registered for beside RC endpoints. Source: enum dapx_mr_flags.
enum class RegionFlags : std::uint32_t {
    none = 0,
    xrc = DAPX_MR_XRC, ///< also for XRC: receives of its queues, requests of its endpoints, and
                       ///< peers, by way of a queue of the same PD
};
template <> inline constexpr bool is_flags<RegionFlags> = true;

/// Registered memory: the device may use it. In DAT's terms an LMR.
///
/// The memory remains the caller's, who keeps it mapped as long as this object lives. Its pages
/// are pinned and count against RLIMIT_MEMLOCK, twice with RegionFlags::xrc. Move-only; see Object for its end: after free()
/// not one byte changes any more.
class DAPX_EXPORT MemoryRegion : public Object {
public:
    /// Registers memory.
    /// @param addr   start; needs no alignment.
    /// @param length bytes, not 0.
    /// Errors: ENOMEM (also RLIMIT_MEMLOCK), EFAULT (not mapped), EACCES (mapped with less
    /// rights), EOVERFLOW, EINVAL, EDQUOT, EIO. Thread safety: any thread.
    /// Source: DAPX_MR_CREATE.
    [[nodiscard]] static Result<MemoryRegion>
    create(const Pd& pd, const void* addr, std::size_t length, Access access,
           std::uint64_t user_data = 0, RegionFlags flags = RegionFlags::none) noexcept;

    /// The same for a span.
    template <class T, std::size_t N>
    [[nodiscard]] static Result<MemoryRegion> create(const Pd& pd, std::span<T, N> memory,
                                                     Access access, std::uint64_t user_data = 0,
                                                     RegionFlags flags = RegionFlags::none) noexcept
    {
        return create(pd, memory.data(), memory.size_bytes(), access, user_data, flags);
    }

    /// Makes it one that is also for XRC, as RegionFlags::xrc does at its creation; no effect if it is
    /// already. What was posted before may not find it so. On failure it stays what it was.
    /// Errors: as create(), and ENOENT (freed). Thread safety: any thread. Source: DAPX_MR_MODIFY.
    [[nodiscard]] Result<void> enable_xrc() noexcept;

    /// Start of the memory.
    [[nodiscard]] std::uint64_t addr() const noexcept { return addr_; }

    /// Bytes.
    [[nodiscard]] std::uint64_t length() const noexcept { return length_; }

    /// What a peer needs beside the address; 0 without remote rights.
    [[nodiscard]] std::uint32_t rkey() const noexcept { return rkey_; }

    /// A part of the memory, for a work request. The range is checked when the request is carried
    /// out (Status::local_protection). @p offset, @p length: bytes.
    [[nodiscard]] Segment segment(std::uint64_t offset, std::uint32_t length) const noexcept
    {
        return {.mr = handle(), .length = length, .addr = addr_ + offset};
    }

    /// What the peer has to know to reach the memory at @p offset bytes.
    [[nodiscard]] RemoteAddress remote(std::uint64_t offset = 0) const noexcept
    {
        return {.addr = addr_ + offset, .rkey = rkey_};
    }

private:
    MemoryRegion(std::shared_ptr<const detail::Device> device, std::uint32_t handle,
                 std::uint32_t rkey, std::uint64_t addr, std::uint64_t length) noexcept
        : Object(std::move(device), ObjectType::mr, handle), rkey_(rkey), addr_(addr),
          length_(length)
    {
    }

    std::uint32_t rkey_ = 0;
    std::uint64_t addr_ = 0;
    std::uint64_t length_ = 0;
};

} // namespace dapx
