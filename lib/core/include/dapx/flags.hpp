// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <type_traits>

namespace dapx {

/// Specialise to true for an enum whose values are bits that may be combined.
template <class E> inline constexpr bool is_flags = false;

template <class E>
concept Flags = std::is_enum_v<E> && is_flags<E>;

template <Flags E> constexpr E operator|(E a, E b) noexcept
{
    using U = std::underlying_type_t<E>;
    return static_cast<E>(static_cast<U>(a) | static_cast<U>(b));
}

template <Flags E> constexpr E operator&(E a, E b) noexcept
{
    using U = std::underlying_type_t<E>;
    return static_cast<E>(static_cast<U>(a) & static_cast<U>(b));
}

template <Flags E> constexpr E& operator|=(E& a, E b) noexcept
{
    return a = a | b;
}

/// True if any bit of @p bits is set in @p value.
template <Flags E> constexpr bool has(E value, E bits) noexcept
{
    return static_cast<std::underlying_type_t<E>>(value & bits) != 0;
}

} // namespace dapx
