// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What stands in the user_data of events: whose they are.
#pragma once

#include <bit>
#include <cstdint>

namespace dapx::verbs {

class Qp;
class Srq;

inline constexpr std::uint64_t srq_tag = 1;

/// Of a receive queue pair of OFED's calls, which is nothing but a number.
inline constexpr std::uint64_t number_only = 2;

[[nodiscard]] inline std::uint64_t cookie_of(const Qp& qp) noexcept
{
    return reinterpret_cast<std::uintptr_t>(&qp);
}

[[nodiscard]] inline std::uint64_t cookie_of(const Srq& srq) noexcept
{
    return reinterpret_cast<std::uintptr_t>(&srq) | srq_tag;
}

/// nullptr: it is not one of a QP.
[[nodiscard]] inline Qp* qp_of(std::uint64_t cookie) noexcept
{
    return (cookie & (srq_tag | number_only)) != 0 ? nullptr : std::bit_cast<Qp*>(cookie);
}

/// nullptr: it is not one of an SRQ.
[[nodiscard]] inline Srq* srq_of(std::uint64_t cookie) noexcept
{
    return (cookie & srq_tag) == 0 ? nullptr : std::bit_cast<Srq*>(cookie & ~srq_tag);
}

} // namespace dapx::verbs
