// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "ioctl.hpp"

#include <dapx/dapx.h>
#include <dapx/error.hpp>

#include <algorithm>
#include <cerrno>
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

/// What XRC leaves of @p most bytes of private data: in 8, the module says that it is XRC.
[[nodiscard]] inline std::uint16_t xrc_limit(std::uint16_t most) noexcept
{
    return static_cast<std::uint16_t>(most - std::min<std::uint16_t>(most, 8));
}

/// What @p error is if it comes of more private data, @p size bytes, than go along with a command:
/// of XRC or not, @p most of what DAPX_QUERY_DEVICE tells. Else as it is.
[[nodiscard]] inline Error blame_private_data(Error error, int fd, std::size_t size,
                                              std::uint16_t dapx_query_device::* most,
                                              bool xrc) noexcept
{
    ::dapx_query_device device{};
    if (error.code() != EINVAL || size == 0 || command(fd, device) != 0)
        return error;
    const std::size_t limit = xrc ? xrc_limit(device.*most) : device.*most;
    return size > limit ? explain_private_data(size, limit) : error;
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
