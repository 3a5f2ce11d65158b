// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <cstdint>

namespace dapx::verbs {

/// Reads an eventfd(2) without a wait, whatever O_NONBLOCK says: how often it was signalled.
std::uint64_t read_signals(int eventfd) noexcept;

/// Keeps an eventfd(2) readable exactly while there is an event in a ring or another place. The module
/// puts an event into a ring, then signals the descriptor. Used with the lock of who reads the events.
class Readiness {
public:
    explicit Readiness(int eventfd = -1) noexcept : fd_(eventfd) {}

    /// Who waits by read(2) has read this.
    void signalled(std::uint64_t times) noexcept;
    /// So many events were taken out of rings; or, if negative, came with a ring whose events were
    /// signalled elsewhere.
    void took(std::int64_t events) noexcept { unsignalled_ += events; }

    /// Then look for an event, and if there is one, signal(): what comes after the look does it itself.
    void clear() noexcept;
    void signal() noexcept;

private:
    int fd_;
    /// Events taken, less those whose signal was read: if more were taken, their signals are about to
    /// come.
    std::int64_t unsignalled_ = 0;
    bool own_signal_ = false; ///< of signal(), not read yet
};

} // namespace dapx::verbs
