// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "evd.hpp"

namespace dapx::dat {

class Psp;

/// Second words of software events: one that only wakes, the consumer's, a request that was handed
/// over, and an endpoint that takes no more of its shared receive queue.
inline constexpr std::uint64_t wake_event = 0;
inline constexpr std::uint64_t software_event = 1;
inline constexpr std::uint64_t handoff_event = 2;
inline constexpr std::uint64_t last_receive_event = 3;

/// Makes DAT's event of what came into @p evd. False if there is none to make: the end of a request
/// that the consumer does not ask for, or something about an object that is freed.
[[nodiscard]] bool translate(const core::Event& raw, Evd& evd, DAT_EVENT& event) noexcept;

} // namespace dapx::dat
