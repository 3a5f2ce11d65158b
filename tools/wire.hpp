// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// How the two ends of a tool talk: packed structs of little-endian numbers, in private data and
// in messages.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace tools {

/// A number in little-endian byte order, without alignment.
template <class T> class Little {
public:
    Little() = default;
    Little(T value) noexcept
    {
        for (std::size_t i = 0; i < sizeof(T); ++i)
            bytes_[i] = static_cast<std::uint8_t>(value >> (8 * i));
    }
    operator T() const noexcept
    {
        T value = 0;
        for (std::size_t i = 0; i < sizeof(T); ++i)
            value = static_cast<T>(value | static_cast<T>(T{bytes_[i]} << (8 * i)));
        return value;
    }

private:
    std::array<std::uint8_t, sizeof(T)> bytes_{};
};

using Le32 = Little<std::uint32_t>;
using Le64 = Little<std::uint64_t>;

/// The bytes of a message.
template <class T> std::span<const std::byte> bytes_of(const T& message) noexcept
{
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) == 1);
    return std::as_bytes(std::span(&message, 1));
}

/// A message out of bytes, of which there may be more (private data is padded with zeroes).
template <class T> std::optional<T> message_from(std::span<const std::byte> bytes) noexcept
{
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) == 1);
    if (bytes.size() < sizeof(T))
        return std::nullopt;
    T message;
    std::memcpy(&message, bytes.data(), sizeof(T));
    return message;
}

} // namespace tools
