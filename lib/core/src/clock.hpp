// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/dapx.h>
#include <dapx/deadline.hpp>

#include <chrono>
#include <cstdint>

namespace dapx::detail {

/// The module's form of a deadline: nanoseconds of CLOCK_MONOTONIC.
[[nodiscard]] inline std::uint64_t to_abi(Deadline deadline) noexcept
{
    if (deadline == no_deadline)
        return DAPX_NO_DEADLINE;
    const auto ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time_since_epoch()).count();
    return ns < 0 ? 0 : static_cast<std::uint64_t>(ns);
}

} // namespace dapx::detail
