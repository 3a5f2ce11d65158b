// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "dat.hpp"

#include <atomic>
#include <bit>
#include <memory>

namespace dapx::dat {

/// A request, as its event will tell of it.
struct Request {
    DAT_UINT64 cookie = 0;
    DAT_HANDLE rmr = DAT_HANDLE_NULL; ///< of a bind
    DAT_SEG_LENGTH length = 0;
    DAT_DTOS operation = DAT_DTO_SEND;
    bool suppressed = false; ///< no event if it succeeds
};

/// The requests of an endpoint that are under way, by numbers that count up: a number is the wr_id.
///
/// One thread at a time posts, another may tell of ends. As requests end in order, the end of one
/// is the end of all before it.
class RequestLog {
public:
    /// @param depth requests that the endpoint takes.
    explicit RequestLog(std::uint32_t depth)
        : capacity_(std::bit_ceil(2 * std::max(depth, 1U))),
          requests_(std::make_unique<Request[]>(capacity_))
    {
    }

    [[nodiscard]] bool full() const noexcept
    {
        return next_ - ended_.load(std::memory_order_acquire) >= capacity_;
    }

    /// True if the next request has to have an event, though its consumer wants none: without, the
    /// log would fill up.
    [[nodiscard]] bool wants_signal() const noexcept { return next_ - signalled_ >= capacity_ / 4; }

    /// The next request's number; put() notes what it is, keep() that it was posted.
    [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
    void put(const Request& request) noexcept { requests_[next_ & (capacity_ - 1)] = request; }
    void keep(bool signalled) noexcept
    {
        if (signalled)
            signalled_ = next_;
        ++next_;
    }

    /// The request that has ended.
    [[nodiscard]] Request ended(std::uint64_t number) noexcept
    {
        const Request request = requests_[number & (capacity_ - 1)];
        ended_.store(number + 1, std::memory_order_release);
        return request;
    }

private:
    std::uint64_t capacity_;
    std::unique_ptr<Request[]> requests_;
    std::uint64_t next_ = 0;
    std::uint64_t signalled_ = 0;
    std::atomic<std::uint64_t> ended_{0};
};

} // namespace dapx::dat
