// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "dat.hpp"

#include <algorithm>
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
        : newest_(std::make_unique<Table>(capacity_for(depth))), table_(newest_.get())
    {
    }

    /// Makes room for @p depth requests under way. The poster; throws std::bad_alloc.
    void grow(std::uint32_t depth)
    {
        if (capacity_for(depth) <= newest_->capacity)
            return;
        auto larger = std::make_unique<Table>(capacity_for(depth));
        for (std::uint64_t n = next_ - std::min(next_, newest_->capacity); n != next_; ++n)
            larger->at(n) = newest_->at(n);
        larger->before = std::move(newest_);
        newest_ = std::move(larger);
        table_.store(newest_.get(), std::memory_order_release);
    }

    [[nodiscard]] bool full() const noexcept
    {
        return next_ - ended_.load(std::memory_order_acquire) >= newest_->capacity;
    }

    /// True if the next request has to have an event, though its consumer wants none: without, the
    /// log would fill up.
    [[nodiscard]] bool wants_signal() const noexcept
    {
        return next_ - signalled_ >= newest_->capacity / 4;
    }

    /// The next request's number; put() notes what it is, keep() that it was posted.
    [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
    void put(const Request& request) noexcept { newest_->at(next_) = request; }
    void keep(bool signalled) noexcept
    {
        if (signalled)
            signalled_ = next_;
        ++next_;
    }

    /// The request that has ended.
    [[nodiscard]] Request ended(std::uint64_t number) noexcept
    {
        const Request request = table_.load(std::memory_order_acquire)->at(number);
        ended_.store(number + 1, std::memory_order_release);
        return request;
    }

private:
    struct Table {
        explicit Table(std::uint64_t size)
            : capacity(size), requests(std::make_unique<Request[]>(size))
        {
        }

        [[nodiscard]] Request& at(std::uint64_t number) const noexcept
        {
            return requests[number & (capacity - 1)];
        }

        const std::uint64_t capacity;
        const std::unique_ptr<Request[]> requests;
        std::unique_ptr<Table> before; ///< which a thread may still be looking at
    };

    [[nodiscard]] static std::uint64_t capacity_for(std::uint32_t depth) noexcept
    {
        return std::bit_ceil(2 * std::uint64_t{std::max(depth, 1U)});
    }

    std::unique_ptr<Table> newest_; ///< the poster's
    std::atomic<const Table*> table_;
    std::uint64_t next_ = 0;
    std::uint64_t signalled_ = 0;
    std::atomic<std::uint64_t> ended_{0};
};

} // namespace dapx::dat
