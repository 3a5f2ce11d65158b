// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "verbs_abi.hpp"

#include <dapx/memory_region.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace dapx::verbs {

/// More than any queue has (DAPX_MAX_SGE): who has more segments gets an error.
inline constexpr std::size_t max_segments = 32;

/// The segments of a work request, as the module names memory.
class Segments {
public:
    /// @p count more than max_segments is seen by the queue, which has less: is_too_long().
    Segments(const ibv_sge* list, int count) noexcept
        : count_(static_cast<std::size_t>(count)), too_long_(count < 0 || count_ > max_segments)
    {
        for (std::size_t i = 0; !too_long_ && i < count_; ++i)
            segments_[i] = {.mr = list[i].lkey, .length = list[i].length, .addr = list[i].addr};
    }

    [[nodiscard]] bool is_too_long() const noexcept { return too_long_; }
    [[nodiscard]] std::span<const dapx::Segment> span() const noexcept
    {
        return {segments_.data(), count_};
    }

private:
    std::array<dapx::Segment, max_segments> segments_;
    std::size_t count_;
    bool too_long_;
};

/// The bytes of a request that has them in itself: in one piece, or copied into one.
class InlineData {
public:
    InlineData(const ibv_sge* list, int count, std::uint32_t limit) noexcept
    {
        std::uint64_t total = 0;
        for (int i = 0; i < count; ++i)
            total += list[i].length;
        if (total > limit || total > max_inline) {
            too_long_ = true;
            return;
        }
        length_ = static_cast<std::uint32_t>(total);
        if (count == 1)
            bytes_ = address(list[0]);
        if (count <= 1)
            return;
        std::byte* end = copy_.data();
        for (int i = 0; i < count; ++i) {
            if (list[i].length != 0)
                std::memcpy(end, address(list[i]), list[i].length);
            end += list[i].length;
        }
        bytes_ = copy_.data();
    }

    [[nodiscard]] bool is_too_long() const noexcept { return too_long_; }
    [[nodiscard]] std::uint32_t length() const noexcept { return length_; }
    [[nodiscard]] const std::byte* bytes() const noexcept { return bytes_; }

private:
    static constexpr std::size_t max_inline = 512; ///< the most that the module takes

    [[nodiscard]] static const std::byte* address(const ibv_sge& sge) noexcept
    {
        return std::bit_cast<const std::byte*>(sge.addr);
    }

    std::array<std::byte, max_inline> copy_;
    const std::byte* bytes_ = nullptr;
    std::uint32_t length_ = 0;
    bool too_long_ = false;
};

} // namespace dapx::verbs
