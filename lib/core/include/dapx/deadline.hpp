// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <chrono>

namespace dapx {

/// Deadlines are absolute points on CLOCK_MONOTONIC, which is what steady_clock is on Linux.
using Clock = std::chrono::steady_clock;
/// A point of this clock.
using Deadline = Clock::time_point;

/// A wait without end.
inline constexpr Deadline no_deadline = Deadline::max();

/// The point @p timeout from now; a timeout too long to be told is without end.
template <class Rep, class Period>
[[nodiscard]] Deadline deadline_after(std::chrono::duration<Rep, Period> timeout) noexcept
{
    // Compared as floating point numbers, in which nothing overflows.
    using Seconds = std::chrono::duration<double>;
    const Deadline now = Clock::now();
    if (Seconds(timeout) <= Seconds(0))
        return now;
    if (Seconds(timeout) >= Seconds(no_deadline - now))
        return no_deadline;
    return now + std::chrono::ceil<Clock::duration>(timeout);
}

} // namespace dapx
