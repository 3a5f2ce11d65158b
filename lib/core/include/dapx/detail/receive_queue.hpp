// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/detail/ring.hpp>
#include <dapx/export.hpp>
#include <dapx/memory_region.hpp>
#include <dapx/post.hpp>

#include <cstdint>
#include <cstring>
#include <span>

namespace dapx::detail {

/// DAPX_DOORBELL. @return 0 or an errno. Kept out of line: it is the slow way.
[[nodiscard]] DAPX_EXPORT int doorbell(int fd, std::uint32_t handle, std::uint32_t flags) noexcept;

/// Why a ring has no free entry: PostResult::full, or, if it is dead, what the module says to a doorbell.
[[nodiscard]] DAPX_EXPORT PostResult explain_full(const WorkRing& ring, int fd,
                                                  std::uint32_t handle,
                                                  std::uint32_t flags) noexcept;
/// The posting end of a receive ring; part of Endpoint and of Srq, which tell what it means.
class ReceiveQueue {
public:
    ReceiveQueue() = default;
    ReceiveQueue(WorkRing ring, int fd, std::uint32_t handle, std::uint32_t max_sge) noexcept
        : ring_(ring), fd_(fd), handle_(handle), max_sge_(max_sge)
    {
    }

    PostResult post(std::uint64_t wr_id, std::span<const Segment> segments, Doorbell when,
                    RecvFlags flags) noexcept
    {
        if (segments.size() > max_sge_) [[unlikely]]
            return PostResult::bad_request;
        std::byte* entry = ring_.claim();
        if (entry == nullptr) [[unlikely]]
            return ring_.depth() == 0 ? PostResult::bad_request
                                      : explain_full(ring_, fd_, handle_, DAPX_DOORBELL_RECV);
        const ::dapx_recv_wr wr = {
            .wr_id = wr_id,
            .num_sge = static_cast<std::uint32_t>(segments.size()),
            .flags = static_cast<std::uint32_t>(flags),
        };
        std::memcpy(entry, &wr, sizeof(wr));
        if (!segments.empty())
            std::memcpy(entry + sizeof(wr), segments.data(), segments.size_bytes());
        ring_.stage();
        return when == Doorbell::now ? submit() : PostResult::ok;
    }

    PostResult submit() noexcept
    {
        if (!ring_.publish())
            return PostResult::ok;
        return PostResult{doorbell(fd_, handle_, DAPX_DOORBELL_RECV)};
    }

    [[nodiscard]] WorkRing& ring() noexcept { return ring_; }
    [[nodiscard]] const WorkRing& ring() const noexcept { return ring_; }

private:
    WorkRing ring_;
    int fd_ = -1;
    std::uint32_t handle_ = 0;
    std::uint32_t max_sge_ = 0;
};

} // namespace dapx::detail
