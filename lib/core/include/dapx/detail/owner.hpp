// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/error.hpp>

#include <cstdint>

namespace dapx::detail {

/// The address space that made an object. A context belongs to that alone, and fork() does not
/// pass its rings on: in a child their addresses are free, or by now something else's. So each
/// access to a ring, and each munmap(2), asks here() first.
///
/// A plain value. Thread safety: any thread.
class DAPX_EXPORT Owner {
public:
    /// Anybody: memory that is not a mapping of a context.
    Owner() = default;

    /// The calling process. Errors: ENOMEM.
    [[nodiscard]] static Result<Owner> current() noexcept;

    /// True in the address space of current(), false in a child. Two loads; no system call.
    [[nodiscard]] bool here() const noexcept
    {
        return __atomic_load_n(word_, __ATOMIC_RELAXED) == generation_;
    }

private:
    static constexpr std::uint32_t anybody = 0;

    Owner(const std::uint32_t* word, std::uint32_t generation) noexcept
        : word_(word), generation_(generation)
    {
    }

    const std::uint32_t* word_ = &anybody;
    std::uint32_t generation_ = anybody;
};

} // namespace dapx::detail
