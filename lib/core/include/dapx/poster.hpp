// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/memory_region.hpp>
#include <dapx/post.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace dapx {

namespace detail {
/// A request without its segments.
struct Request {
    std::uint64_t wr_id;
    std::uint8_t opcode;
    std::uint32_t remote_srqn = 0;
    RemoteAddress remote{};
    std::uint64_t compare_add = 0;
    std::uint64_t swap = 0;
    std::uint32_t imm = 0;
};
} // namespace detail

/// The operations of an endpoint, of an Endpoint, and of XrcEndpoint::to(): of the queue that it names. EndpointBase says what
/// else there is to know: order, completions, threads.
template <class Derived> class Poster {
public:
    /// Posts a message. @p segments: at most max_send_sge, together at most max_msg_size bytes;
    /// none for an empty message. Source: DAPX_OP_SEND.
    PostResult post_send(std::uint64_t wr_id, std::span<const Segment> segments,
                         SendFlags flags = SendFlags::signalled,
                         Doorbell when = Doorbell::now) noexcept
    {
        return derived().post(Request{.wr_id = wr_id, .opcode = DAPX_OP_SEND}, segments, flags,
                              when);
    }

    /// The same for one segment.
    PostResult post_send(std::uint64_t wr_id, const Segment& segment,
                         SendFlags flags = SendFlags::signalled,
                         Doorbell when = Doorbell::now) noexcept
    {
        return post_send(wr_id, std::span(&segment, 1), flags, when);
    }

    /// Posts a message whose bytes are copied into the ring now: @p data needs no registration
    /// and is free again on return. At most max_inline bytes. Source: DAPX_SEND_INLINE.
    PostResult post_send_inline(std::uint64_t wr_id, std::span<const std::byte> data,
                                SendFlags flags = SendFlags::signalled,
                                Doorbell when = Doorbell::now) noexcept
    {
        return derived().post_inline(Request{.wr_id = wr_id, .opcode = DAPX_OP_SEND}, data, flags,
                                     when);
    }

    /// Posts a message with 32 bits of immediate data, in the byte order the caller likes.
    /// Source: DAPX_OP_SEND_IMM.
    PostResult post_send_imm(std::uint64_t wr_id, std::span<const Segment> segments,
                             std::uint32_t imm, SendFlags flags = SendFlags::signalled,
                             Doorbell when = Doorbell::now) noexcept
    {
        return derived().post(Request{.wr_id = wr_id, .opcode = DAPX_OP_SEND_IMM, .imm = imm},
                              segments, flags, when);
    }

    /// Posts an RDMA write: the segments, one after the other, go to @p remote.
    /// Source: DAPX_OP_RDMA_WRITE.
    PostResult post_write(std::uint64_t wr_id, std::span<const Segment> segments,
                          RemoteAddress remote, SendFlags flags = SendFlags::signalled,
                          Doorbell when = Doorbell::now) noexcept
    {
        return derived().post(
            Request{.wr_id = wr_id, .opcode = DAPX_OP_RDMA_WRITE, .remote = remote}, segments,
            flags, when);
    }

    /// The same for one segment.
    PostResult post_write(std::uint64_t wr_id, const Segment& segment, RemoteAddress remote,
                          SendFlags flags = SendFlags::signalled,
                          Doorbell when = Doorbell::now) noexcept
    {
        return post_write(wr_id, std::span(&segment, 1), remote, flags, when);
    }

    /// Posts an RDMA write of bytes that are copied into the ring now; see post_send_inline().
    PostResult post_write_inline(std::uint64_t wr_id, std::span<const std::byte> data,
                                 RemoteAddress remote, SendFlags flags = SendFlags::signalled,
                                 Doorbell when = Doorbell::now) noexcept
    {
        return derived().post_inline(
            Request{.wr_id = wr_id, .opcode = DAPX_OP_RDMA_WRITE, .remote = remote}, data, flags,
            when);
    }

    /// Posts an RDMA write that also takes a receive of the peer, whose completion has @p imm.
    /// Source: DAPX_OP_RDMA_WRITE_IMM.
    PostResult post_write_imm(std::uint64_t wr_id, std::span<const Segment> segments,
                              RemoteAddress remote, std::uint32_t imm,
                              SendFlags flags = SendFlags::signalled,
                              Doorbell when = Doorbell::now) noexcept
    {
        return derived().post(
            Request{.wr_id = wr_id, .opcode = DAPX_OP_RDMA_WRITE_IMM, .remote = remote, .imm = imm},
            segments, flags, when);
    }

    /// Posts an RDMA read from @p remote into the segments. Source: DAPX_OP_RDMA_READ.
    PostResult post_read(std::uint64_t wr_id, std::span<const Segment> segments,
                         RemoteAddress remote, SendFlags flags = SendFlags::signalled,
                         Doorbell when = Doorbell::now) noexcept
    {
        return derived().post(
            Request{.wr_id = wr_id, .opcode = DAPX_OP_RDMA_READ, .remote = remote}, segments, flags,
            when);
    }

    /// The same for one segment.
    PostResult post_read(std::uint64_t wr_id, const Segment& segment, RemoteAddress remote,
                         SendFlags flags = SendFlags::signalled,
                         Doorbell when = Doorbell::now) noexcept
    {
        return post_read(wr_id, std::span(&segment, 1), remote, flags, when);
    }

    /// Posts an atomic: if the 8 bytes at @p remote (8-byte aligned) are @p compare, they become
    /// @p swap. What they were goes to @p old (8 bytes). Source: DAPX_OP_COMPARE_SWAP.
    PostResult post_compare_swap(std::uint64_t wr_id, const Segment& old, RemoteAddress remote,
                                 std::uint64_t compare, std::uint64_t swap,
                                 SendFlags flags = SendFlags::signalled,
                                 Doorbell when = Doorbell::now) noexcept
    {
        return derived().post(Request{.wr_id = wr_id,
                                      .opcode = DAPX_OP_COMPARE_SWAP,
                                      .remote = remote,
                                      .compare_add = compare,
                                      .swap = swap},
                              std::span(&old, 1), flags, when);
    }

    /// Posts an atomic: @p add is added to the 8 bytes at @p remote (8-byte aligned). What they
    /// were goes to @p old (8 bytes). Source: DAPX_OP_FETCH_ADD.
    PostResult post_fetch_add(std::uint64_t wr_id, const Segment& old, RemoteAddress remote,
                              std::uint64_t add, SendFlags flags = SendFlags::signalled,
                              Doorbell when = Doorbell::now) noexcept
    {
        return derived().post(
            Request{
                .wr_id = wr_id, .opcode = DAPX_OP_FETCH_ADD, .remote = remote, .compare_add = add},
            std::span(&old, 1), flags, when);
    }

private:
    friend Derived;

    using Request = detail::Request;

    Poster() = default;

    Derived& derived() noexcept { return static_cast<Derived&>(*this); }
};

} // namespace dapx
