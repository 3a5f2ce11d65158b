// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "explain.hpp"

#include <dapx/dapx.h>
#include <dapx/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace dapx::detail {

/// Puts private data into the array and length of a command.
template <class Length>
[[nodiscard]] Result<void> copy_private_data(std::span<const std::byte> data,
                                             std::uint8_t (&array)[DAPX_PRIVATE_DATA_MAX],
                                             Length& length) noexcept
{
    if (data.size() > sizeof(array))
        return std::unexpected(explain_private_data(data.size(), sizeof(array)));
    if (!data.empty())
        std::memcpy(array, data.data(), data.size());
    length = static_cast<Length>(data.size());
    return {};
}

/// Takes private data out of a query's answer.
[[nodiscard]] inline std::vector<std::byte>
private_data(const std::uint8_t (&array)[DAPX_PRIVATE_DATA_MAX], std::uint32_t length) noexcept
{
    const auto bytes = std::as_bytes(std::span(array));
    const auto count = std::min<std::size_t>(length, bytes.size());
    return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count)};
}

} // namespace dapx::detail
