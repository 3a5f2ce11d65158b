// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// How much memory the clients of a server may take.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <utility>

namespace tools {

/// Thrown when a session is made: the client is told why it is not served.
struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Counts the memory of all clients. Outlives the shares. One thread.
class MemoryBudget {
public:
    /// What one client has taken; given back at its end. Move-only.
    class Share {
    public:
        Share(Share&& other) noexcept
            : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0))
        {
        }
        Share& operator=(Share&&) = delete;
        ~Share() { budget_->used_ -= bytes_; }

        [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

    private:
        friend class MemoryBudget;

        Share(MemoryBudget& budget, std::uint64_t bytes) noexcept : budget_(&budget), bytes_(bytes)
        {
        }

        MemoryBudget* budget_;
        std::uint64_t bytes_;
    };

    /// @param per_client most bytes of one client; @param total of all together.
    MemoryBudget(std::uint64_t per_client, std::uint64_t total) noexcept
        : per_client_(per_client), total_(total)
    {
    }
    MemoryBudget(const MemoryBudget&) = delete;
    MemoryBudget& operator=(const MemoryBudget&) = delete;

    /// Refused if that is more than one client may have, or than is left.
    [[nodiscard]] Share take(std::uint64_t bytes)
    {
        if (bytes > per_client_)
            throw Refused("larger than this server's --max-size");
        if (bytes > total_ - used_)
            throw Refused("this server's memory is in use; try again later");
        used_ += bytes;
        return Share(*this, bytes);
    }

private:
    std::uint64_t per_client_;
    std::uint64_t total_;
    std::uint64_t used_ = 0;
};

} // namespace tools
