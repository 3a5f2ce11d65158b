// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the machine does, counted and not timed. In virtual time and on one CPU, the same work costs
// the same each time, however busy the host is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace bench {

/// How this thread takes turns with the kernel's threads.
enum class Turns {
    until_asleep, ///< goes on until it sleeps; then they do, until they have nothing to do
    fair,         ///< for what waits for them in a loop
};
/// Leaves one CPU.
void prepare(Turns turns);

/// Who polls looks again when the kernel's threads have nothing to do any more: a loop would take
/// turns with them, and count differently each time.
void look_later();

/// Counts from start() to stop(), of the whole machine. What was begun earlier is over at start().
class Meter {
public:
    /// @param traced also system calls and work items. Counting these takes instructions.
    explicit Meter(bool traced);
    ~Meter();
    Meter(const Meter&) = delete;
    Meter& operator=(const Meter&) = delete;

    void start();
    void stop();

    /// instructions (idling takes none), context_switches, irq_works (interrupts by which the kernel
    /// defers work), softirq_KIND but for those that the machine has anyway; traced: system_calls,
    /// work_items.
    [[nodiscard]] const std::map<std::string, double>& counts() const { return counts_; }

private:
    [[nodiscard]] std::map<std::string, double> read() const;

    int system_calls_ = -1;
    int work_items_ = -1;
    std::map<std::string, double> before_;
    std::map<std::string, double> counts_;
    std::uint64_t started_ = 0;
};

/// Has @p body, which starts and stops the meter, run a few times, and reports what one of its
/// @p operations takes: in the run of the fewest instructions, and in one that was traced.
void count(unsigned operations, const std::function<void(Meter&)>& body);

} // namespace bench
