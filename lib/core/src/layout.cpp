// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "layout.hpp"

#include "explain.hpp"

#include <bit>
#include <cerrno>
#include <cstdint>

#include <unistd.h>

namespace dapx::detail {

Result<void> check_layout(const ::dapx_ring_layout& layout, std::size_t entry_size) noexcept
{
    const auto word_fits = [&](std::uint32_t offset) {
        return offset % alignof(std::uint32_t) == 0 &&
               std::uint64_t{offset} + sizeof(std::uint32_t) <= layout.mmap_size;
    };
    const std::uint64_t end =
        layout.entries_off + std::uint64_t{layout.depth} * std::uint64_t{layout.stride};
    if (word_fits(layout.head_off) && word_fits(layout.tail_off) && word_fits(layout.flags_off) &&
        word_fits(layout.arm_off) && layout.entries_off % alignof(std::uint64_t) == 0 &&
        layout.stride % alignof(std::uint64_t) == 0 && layout.stride >= entry_size &&
        std::has_single_bit(layout.depth) && end <= layout.mmap_size)
        return {};
    return std::unexpected(explain_layout());
}

std::size_t mapping_size(std::uint64_t entries_off, std::uint32_t depth,
                         std::uint64_t stride) noexcept
{
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t size = entries_off + std::bit_ceil(std::uint64_t{depth}) * stride;
    return (size + page - 1) / page * page;
}

} // namespace dapx::detail
