// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/mapping.hpp>
#include <dapx/object.hpp>
#include <dapx/pd.hpp>
#include <dapx/receive_queue.hpp>

namespace dapx {

/// A shared receive queue: one ring of receives for many endpoints. Move-only; see Object for its
/// end.
///
/// Thread safety: one thread at a time may post; different queues are independent.
class DAPX_EXPORT Srq : public Object {
public:
    struct Options {
        std::uint32_t depth = 256;   ///< receives, rounded up to a power of two
        std::uint32_t max_sge = 1;   ///< segments of a receive, at least 1
        std::uint64_t user_data = 0; ///< given back by Context::query_object()
    };

    /// Errors: EOPNOTSUPP (the device has none), EINVAL, EDQUOT, ENOMEM, EIO.
    /// Thread safety: any thread. Source: DAPX_SRQ_CREATE.
    [[nodiscard]] static Result<Srq> create(const Pd& pd, const Options& options) noexcept;

    /// Posts a receive of any endpoint of this queue. As Endpoint::post_recv().
    Post post_recv(std::uint64_t wr_id, std::span<const Segment> segments,
                   Doorbell when = Doorbell::now) noexcept
    {
        return queue_.post(wr_id, segments, when);
    }

    /// Publishes receives that were posted with Doorbell::later. Thread safety: the poster.
    Post submit() noexcept { return queue_.submit(); }

    /// Receives the ring holds.
    [[nodiscard]] std::uint32_t depth() const noexcept { return queue_.ring().depth(); }

    /// Commands issued by posting since the queue was made.
    [[nodiscard]] std::uint64_t doorbells() const noexcept { return queue_.ring().doorbells(); }

    Srq(Srq&&) noexcept = default;
    Srq& operator=(Srq&&) noexcept = default;
    ~Srq() = default;

private:
    Srq(std::shared_ptr<const detail::Device> device, std::uint32_t handle) noexcept
        : Object(std::move(device), ObjectType::srq, handle)
    {
    }

    Mapping mapping_;
    ReceiveQueue queue_;
};

} // namespace dapx
