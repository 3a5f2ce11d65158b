// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/dapx.h>
#include <dapx/error.hpp>

#include <cstddef>
#include <cstdint>

namespace dapx::detail {

/// Whether a ring of @p entry_size or longer entries lies within its mapping as @p layout says.
/// It comes from the module; what is checked here is that library and module speak one language.
[[nodiscard]] Result<void> check_layout(const ::dapx_ring_layout& layout,
                                        std::size_t entry_size) noexcept;

/// Bytes of a mapping as the module makes it: @p entries_off bytes, then a ring of @p depth entries
/// (rounded up) of @p stride bytes.
[[nodiscard]] std::size_t mapping_size(std::uint64_t entries_off, std::uint32_t depth,
                                       std::uint64_t stride) noexcept;

} // namespace dapx::detail
