// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "pz.hpp"

#include <array>

namespace dapx::dat {

/// A local memory region. Its context in triplets is the region's handle of the library.
class Lmr : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_LMR;

    /// As it was asked for.
    struct Description {
        DAT_MEM_TYPE type;
        DAT_REGION_DESCRIPTION region;
        DAT_MEM_PRIV_FLAGS privileges;
    };

    Lmr(Slot& slot, Ia& ia, Pz& pz, const Description& description,
        core::MemoryRegion region) noexcept;

    [[nodiscard]] const Pz* pz() const noexcept { return pz_.get(); }
    [[nodiscard]] const core::MemoryRegion& region() const noexcept { return region_; }
    [[nodiscard]] DAT_MEM_PRIV_FLAGS privileges() const noexcept { return description_.privileges; }
    [[nodiscard]] DAT_LMR_CONTEXT lmr_context() const noexcept { return number_; }
    [[nodiscard]] DAT_RMR_CONTEXT rmr_context() const noexcept { return region_.rkey(); }
    void query(DAT_LMR_PARAM& param) noexcept;

private:
    [[nodiscard]] DAT_RETURN release() noexcept override;

    Needed<Pz> pz_;
    Description description_;
    /// Of shared memory: a copy, as queries give a pointer to it.
    std::array<char, DAT_LMR_COOKIE_SIZE> cookie_{};
    core::MemoryRegion region_;
    std::uint32_t number_;
};

/// The library's rights for privileges. Remote writing implies that the device may write there.
[[nodiscard]] core::Access access_of(DAT_MEM_PRIV_FLAGS privileges) noexcept;

/// Triplets as the library's segments, at most as many as an endpoint takes.
class Segments {
public:
    /// Segments of no length name no memory, and are left out.
    [[nodiscard]] bool assign(DAT_COUNT count, const DAT_LMR_TRIPLET* triplets) noexcept;

    [[nodiscard]] std::span<const core::Segment> span() const noexcept
    {
        return {segments_.data(), count_};
    }
    /// Bytes of all of them.
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

    static constexpr std::size_t max = 64;

private:
    std::size_t count_ = 0;
    std::uint64_t bytes_ = 0;
    std::array<core::Segment, max> segments_;
};

} // namespace dapx::dat
