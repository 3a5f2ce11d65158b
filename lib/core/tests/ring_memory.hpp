// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/detail/ring.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dapx::test {

/// A ring in plain memory, and the module's end of it, with the indices where the module likes.
class RingMemory {
public:
    static constexpr std::uint32_t head_off = 64;
    static constexpr std::uint32_t tail_off = 128;
    static constexpr std::uint32_t flags_off = 192;
    static constexpr std::uint32_t arm_off = 256;
    static constexpr std::uint32_t entries_off = 320;

    RingMemory(std::uint32_t depth, std::uint32_t stride, std::uint32_t first_index = 0)
        : layout_{.mmap_offset = 0,
                  .mmap_size = entries_off + depth * stride,
                  .head_off = head_off,
                  .tail_off = tail_off,
                  .flags_off = flags_off,
                  .entries_off = entries_off,
                  .stride = stride,
                  .depth = depth,
                  .arm_off = arm_off},
          words_(layout_.mmap_size / sizeof(std::uint64_t))
    {
        *word(head_off) = first_index;
        *word(tail_off) = first_index;
    }

    [[nodiscard]] std::byte* base() { return reinterpret_cast<std::byte*>(words_.data()); }
    [[nodiscard]] const dapx_ring_layout& layout() const { return layout_; }

    [[nodiscard]] std::uint32_t* head() { return word(head_off); }
    [[nodiscard]] std::uint32_t* tail() { return word(tail_off); }
    [[nodiscard]] std::uint32_t* flags() { return word(flags_off); }
    [[nodiscard]] std::uint32_t* armed() { return word(arm_off); }
    [[nodiscard]] std::byte* entry(std::uint32_t index)
    {
        return base() + entries_off + std::size_t{index % layout_.depth} * layout_.stride;
    }

    void set_flag(std::uint32_t flag) { __atomic_or_fetch(flags(), flag, __ATOMIC_RELAXED); }
    void clear_flag(std::uint32_t flag) { __atomic_and_fetch(flags(), ~flag, __ATOMIC_RELAXED); }

private:
    std::uint32_t* word(std::uint32_t offset)
    {
        return reinterpret_cast<std::uint32_t*>(base() + offset);
    }

    dapx_ring_layout layout_;
    std::vector<std::uint64_t> words_;
};

} // namespace dapx::test
