// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/address.hpp>
#include <dapx/cm_id.hpp>
#include <dapx/endpoint_options.hpp>
#include <dapx/evd.hpp>
#include <dapx/flags.hpp>
#include <dapx/mapping.hpp>
#include <dapx/memory_region.hpp>
#include <dapx/object.hpp>
#include <dapx/pd.hpp>
#include <dapx/post.hpp>
#include <dapx/receive_queue.hpp>
#include <dapx/ring.hpp>
#include <dapx/srq.hpp>

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace dapx {

/// An endpoint's state (DAT's names). Source: enum dapx_ep_state.
enum class EpState : std::uint32_t {
    unconnected = DAPX_EP_UNCONNECTED,
    reserved = DAPX_EP_RESERVED,
    passive_pending = DAPX_EP_PASSIVE_PENDING,
    active_pending = DAPX_EP_ACTIVE_PENDING,
    tentative_pending = DAPX_EP_TENTATIVE_PENDING,
    completion_pending = DAPX_EP_COMPLETION_PENDING,
    connected = DAPX_EP_CONNECTED,
    disconnect_pending = DAPX_EP_DISCONNECT_PENDING,
    disconnected = DAPX_EP_DISCONNECTED,
};

/// For a person: "disconnected". Never nullptr.
[[nodiscard]] DAPX_EXPORT const char* describe(EpState state) noexcept;

/// How a request is carried out. Source: enum dapx_send_flags.
enum class SendFlags : std::uint16_t {
    none = 0,                        ///< no completion event if it succeeds
    signalled = DAPX_SEND_SIGNALED,  ///< a completion event also if it succeeds
    solicited = DAPX_SEND_SOLICITED, ///< asks for the peer's attention (Evd::wait_solicited())
    fence = DAPX_SEND_FENCE,         ///< starts after earlier reads and atomics have ended
};
template <> inline constexpr bool is_flags<SendFlags> = true;

/// How a connection is made. Source: struct dapx_ep_connect.
struct ConnectOptions {
    Address source = {};              ///< own address; none for what the routing table says
    Deadline deadline = no_deadline;  ///< when to give up; default: the transport's own limit
    std::uint8_t retry_count = 7;     ///< of the transport, 0 to 7
    std::uint8_t rnr_retry_count = 7; ///< receiver not ready, 0 to 7; 7 for without end
    std::span<const std::byte> private_data = {}; ///< for the listener; read during the call
};

/// How a connection is accepted. Source: struct dapx_ep_accept.
struct AcceptOptions {
    std::uint8_t rnr_retry_count = 7;             ///< receiver not ready, 0 to 7; 7 for without end
    std::span<const std::byte> private_data = {}; ///< for the peer; read during the call
};

/// Who can say what: Endpoint::query(). Source: struct dapx_ep_query.
struct EndpointInfo {
    EpState state{};
    std::uint32_t pd = 0;
    std::uint32_t srq = 0;
    std::uint32_t request_evd = 0;
    std::uint32_t recv_evd = 0;
    std::uint32_t connect_evd = 0;
    std::uint32_t cm = 0;
    EndpointOptions options; ///< sizes as they came out, and user_data
    std::uint32_t qp_num = 0;
    std::uint32_t remote_qp_num = 0;
    std::uint32_t requests = 0;          ///< taken from the ring, not ended
    std::uint32_t receives = 0;          ///< taken from the ring, not ended
    std::vector<std::byte> private_data; ///< of the peer's accept or reject; may have zeroes after
    Address local;
    Address remote;
};

/// What Endpoint::modify() changes: what is set. Source: enum dapx_ep_modify_mask.
struct EndpointChanges {
    const Pd* pd = nullptr;
    const Evd* request_evd = nullptr;
    const Evd* recv_evd = nullptr;
    const Evd* connect_evd = nullptr;
    struct RdAtomic {
        std::uint16_t initiator = 1;
        std::uint16_t responder = 1;
    };
    std::optional<RdAtomic> rd_atomic = std::nullopt;
    std::optional<std::uint64_t> user_data = std::nullopt;
};

/// The path to a peer whose QP number is known. Source: struct dapx_ep_modify, RTR.
struct ReadyToReceive {
    std::uint32_t dest_qp_num = 0;
    std::uint32_t rq_psn = 0; ///< the peer's first packet number, 24 bits
    std::array<std::uint8_t, 16> dgid{};
    std::uint16_t dlid = 0; ///< 0 on Ethernet
    std::uint8_t sgid_index = 0;
    std::uint8_t hop_limit = 64;
    std::uint8_t traffic_class = 0;
    std::uint8_t sl = 0;
    std::uint8_t path_mtu = 3; ///< 1 for 256 bytes to 5 for 4096
    std::uint8_t min_rnr_timer = 12;
    std::uint16_t max_dest_rd_atomic = 1;
};

/// Source: struct dapx_ep_modify, RTS.
struct ReadyToSend {
    std::uint32_t sq_psn = 0;  ///< own first packet number, 24 bits
    std::uint8_t timeout = 14; ///< 4.096 us * 2^timeout to the first retry
    std::uint8_t retry_count = 7;
    std::uint8_t rnr_retry = 7;
    std::uint16_t max_rd_atomic = 1;
};

/// One end of a connection: a ring of requests, a ring of receives (or an SRQ), a state.
///
/// Requests are carried out in the order posted. Each posted request or receive ends in exactly
/// one completion on the request or receive EVD, except successful requests that are not
/// SendFlags::signalled. The memory of a request is the device's until then.
///
/// What can be wrong with a single request is told by its completion; posting tells only of what
/// is in Post. post_*() do no system call when the module is at work on the ring anyway.
///
/// Move-only; see Object for its end. Thread safety: one thread at a time on the request ring (all
/// post_*() but post_recv(), and submit()), one on the receive ring (post_recv(), submit_recv());
/// these two beside each other and beside everything else; the other functions from any thread.
class DAPX_EXPORT Endpoint : public Object {
public:
    /// Where the events of an endpoint go; may be one and the same.
    struct Evds {
        const Evd& request; ///< completions of requests
        const Evd* recv;    ///< completions of receives; nullptr if it has none
        const Evd& connect; ///< connection events
    };

    /// @param srq where receives come from; nullptr for a ring of its own.
    /// Errors: EINVAL, EOPNOTSUPP, EDQUOT, ENOMEM, EIO. Thread safety: any thread.
    /// Source: DAPX_EP_CREATE.
    [[nodiscard]] static Result<Endpoint> create(const Pd& pd, const Evds& evds,
                                                 const EndpointOptions& options,
                                                 const Srq* srq = nullptr) noexcept;

    /// The same with one EVD for all events.
    [[nodiscard]] static Result<Endpoint> create(const Pd& pd, const Evd& evd,
                                                 const EndpointOptions& options = {}) noexcept
    {
        return create(pd, Evds{.request = evd, .recv = &evd, .connect = evd}, options);
    }

    /// Takes over an endpoint that a tentative listener made: Event::request_endpoint().
    /// Errors: ENOENT. Source: DAPX_EP_QUERY.
    [[nodiscard]] static Result<Endpoint> adopt(const Context& context,
                                                std::uint32_t handle) noexcept;

    // --- Posting: the hot path --------------------------------------------------------------

    /// Posts a message. @p segments: at most max_send_sge, together at most max_msg_size bytes;
    /// none for an empty message. Source: DAPX_OP_SEND.
    Post post_send(std::uint64_t wr_id, std::span<const Segment> segments,
                   SendFlags flags = SendFlags::signalled, Doorbell when = Doorbell::now) noexcept
    {
        return post(Header{.wr_id = wr_id, .opcode = DAPX_OP_SEND}, segments, flags, when);
    }

    /// The same for one segment.
    Post post_send(std::uint64_t wr_id, const Segment& segment,
                   SendFlags flags = SendFlags::signalled, Doorbell when = Doorbell::now) noexcept
    {
        return post_send(wr_id, std::span(&segment, 1), flags, when);
    }

    /// Posts a message whose bytes are copied into the ring now: @p data needs no registration
    /// and is free again on return. At most max_inline bytes. Source: DAPX_SEND_INLINE.
    Post post_send_inline(std::uint64_t wr_id, std::span<const std::byte> data,
                          SendFlags flags = SendFlags::signalled,
                          Doorbell when = Doorbell::now) noexcept
    {
        return post_inline(Header{.wr_id = wr_id, .opcode = DAPX_OP_SEND}, data, flags, when);
    }

    /// Posts a message with 32 bits of immediate data, in the byte order the caller likes.
    /// Source: DAPX_OP_SEND_IMM.
    Post post_send_imm(std::uint64_t wr_id, std::span<const Segment> segments, std::uint32_t imm,
                       SendFlags flags = SendFlags::signalled,
                       Doorbell when = Doorbell::now) noexcept
    {
        return post(Header{.wr_id = wr_id, .opcode = DAPX_OP_SEND_IMM, .imm = imm}, segments, flags,
                    when);
    }

    /// Posts an RDMA write: the segments, one after the other, go to @p remote.
    /// Source: DAPX_OP_RDMA_WRITE.
    Post post_write(std::uint64_t wr_id, std::span<const Segment> segments, RemoteAddress remote,
                    SendFlags flags = SendFlags::signalled, Doorbell when = Doorbell::now) noexcept
    {
        return post(Header{.wr_id = wr_id, .opcode = DAPX_OP_RDMA_WRITE, .remote = remote},
                    segments, flags, when);
    }

    /// The same for one segment.
    Post post_write(std::uint64_t wr_id, const Segment& segment, RemoteAddress remote,
                    SendFlags flags = SendFlags::signalled, Doorbell when = Doorbell::now) noexcept
    {
        return post_write(wr_id, std::span(&segment, 1), remote, flags, when);
    }

    /// Posts an RDMA write of bytes that are copied into the ring now; see post_send_inline().
    Post post_write_inline(std::uint64_t wr_id, std::span<const std::byte> data,
                           RemoteAddress remote, SendFlags flags = SendFlags::signalled,
                           Doorbell when = Doorbell::now) noexcept
    {
        return post_inline(Header{.wr_id = wr_id, .opcode = DAPX_OP_RDMA_WRITE, .remote = remote},
                           data, flags, when);
    }

    /// Posts an RDMA write that also takes a receive of the peer, whose completion has @p imm.
    /// Source: DAPX_OP_RDMA_WRITE_IMM.
    Post post_write_imm(std::uint64_t wr_id, std::span<const Segment> segments,
                        RemoteAddress remote, std::uint32_t imm,
                        SendFlags flags = SendFlags::signalled,
                        Doorbell when = Doorbell::now) noexcept
    {
        return post(
            Header{.wr_id = wr_id, .opcode = DAPX_OP_RDMA_WRITE_IMM, .remote = remote, .imm = imm},
            segments, flags, when);
    }

    /// Posts an RDMA read from @p remote into the segments. Source: DAPX_OP_RDMA_READ.
    Post post_read(std::uint64_t wr_id, std::span<const Segment> segments, RemoteAddress remote,
                   SendFlags flags = SendFlags::signalled, Doorbell when = Doorbell::now) noexcept
    {
        return post(Header{.wr_id = wr_id, .opcode = DAPX_OP_RDMA_READ, .remote = remote}, segments,
                    flags, when);
    }

    /// The same for one segment.
    Post post_read(std::uint64_t wr_id, const Segment& segment, RemoteAddress remote,
                   SendFlags flags = SendFlags::signalled, Doorbell when = Doorbell::now) noexcept
    {
        return post_read(wr_id, std::span(&segment, 1), remote, flags, when);
    }

    /// Posts an atomic: if the 8 bytes at @p remote (8-byte aligned) are @p compare, they become
    /// @p swap. What they were goes to @p old (8 bytes). Source: DAPX_OP_COMPARE_SWAP.
    Post post_compare_swap(std::uint64_t wr_id, const Segment& old, RemoteAddress remote,
                           std::uint64_t compare, std::uint64_t swap,
                           SendFlags flags = SendFlags::signalled,
                           Doorbell when = Doorbell::now) noexcept
    {
        return post(Header{.wr_id = wr_id,
                           .opcode = DAPX_OP_COMPARE_SWAP,
                           .remote = remote,
                           .compare_add = compare,
                           .swap = swap},
                    std::span(&old, 1), flags, when);
    }

    /// Posts an atomic: @p add is added to the 8 bytes at @p remote (8-byte aligned). What they
    /// were goes to @p old (8 bytes). Source: DAPX_OP_FETCH_ADD.
    Post post_fetch_add(std::uint64_t wr_id, const Segment& old, RemoteAddress remote,
                        std::uint64_t add, SendFlags flags = SendFlags::signalled,
                        Doorbell when = Doorbell::now) noexcept
    {
        return post(
            Header{
                .wr_id = wr_id, .opcode = DAPX_OP_FETCH_ADD, .remote = remote, .compare_add = add},
            std::span(&old, 1), flags, when);
    }

    /// Shows the module what was posted with Doorbell::later. Post::ok if there is nothing.
    Post submit() noexcept
    {
        if (!send_ring_.publish())
            return Post::ok;
        return Post{detail::doorbell(fd_, number_, DAPX_DOORBELL_SEND)};
    }

    /// Posts a receive: the next message goes into the segments, at most max_recv_sge. Allowed in
    /// any state. Post::bad_request on an endpoint without a receive ring.
    /// Source: struct dapx_recv_wr.
    Post post_recv(std::uint64_t wr_id, std::span<const Segment> segments,
                   Doorbell when = Doorbell::now) noexcept
    {
        return recv_queue_.post(wr_id, segments, when);
    }

    /// The same for one segment.
    Post post_recv(std::uint64_t wr_id, const Segment& segment,
                   Doorbell when = Doorbell::now) noexcept
    {
        return recv_queue_.post(wr_id, std::span(&segment, 1), when);
    }

    /// Shows the module receives that were posted with Doorbell::later.
    Post submit_recv() noexcept { return recv_queue_.submit(); }

    // --- State ------------------------------------------------------------------------------

    /// As the shared memory shows it now; no system call. Thread safety: any thread.
    [[nodiscard]] EpState state() const noexcept { return EpState{barrier::load_acquire(state_)}; }

    /// Errors: ENOENT, EIO. Thread safety: any thread. Source: DAPX_EP_QUERY.
    [[nodiscard]] Result<EndpointInfo> query() const noexcept;

    /// The queue pair's number, as of create() or the last reset().
    [[nodiscard]] std::uint32_t qp_num() const noexcept { return qp_num_; }

    /// Requests that the ring holds.
    [[nodiscard]] std::uint32_t send_depth() const noexcept { return send_ring_.depth(); }
    /// Receives that the ring holds; 0 if it has none.
    [[nodiscard]] std::uint32_t recv_depth() const noexcept { return recv_queue_.ring().depth(); }

    /// Requests posted, and doorbell commands issued for them, since the endpoint was made.
    [[nodiscard]] std::uint64_t sends_posted() const noexcept { return send_ring_.posted(); }
    [[nodiscard]] std::uint64_t send_doorbells() const noexcept { return send_ring_.doorbells(); }
    /// Receives posted, and doorbell commands issued for them, since the endpoint was made.
    [[nodiscard]] std::uint64_t recvs_posted() const noexcept
    {
        return recv_queue_.ring().posted();
    }
    [[nodiscard]] std::uint64_t recv_doorbells() const noexcept
    {
        return recv_queue_.ring().doorbells();
    }

    // --- Connection -------------------------------------------------------------------------

    /// Begins to connect to a listener; ends with a connection event.
    /// Errors: EBADFD (state), EINVAL (too much private data). Source: DAPX_EP_CONNECT.
    [[nodiscard]] Result<void> connect(const Address& destination,
                                       const ConnectOptions& options = {}) noexcept;

    /// The same by a CM id whose route is resolved; it must live as long as this endpoint.
    [[nodiscard]] Result<void> connect(const CmId& id, const ConnectOptions& options = {}) noexcept;

    /// Says yes to a request; ends with a connection event. On success @p request is empty.
    /// Errors: EBADFD (state), EINVAL, ENOENT. Source: DAPX_EP_ACCEPT.
    [[nodiscard]] Result<void> accept(CmId&& request, const AcceptOptions& options = {}) noexcept;

    /// Ends the connection when the requests under way have ended; a connection event tells.
    /// Errors: EBADFD. Source: DAPX_EP_DISCONNECT.
    [[nodiscard]] Result<void> disconnect() noexcept;

    /// Ends the connection now; requests under way are flushed. Source: DAPX_DISCONNECT_ABRUPT.
    [[nodiscard]] Result<void> abort() noexcept;

    /// Makes a disconnected endpoint unconnected again, with empty rings.
    /// Thread safety: nobody posts meanwhile. Errors: EBADFD. Source: DAPX_EP_RESET.
    [[nodiscard]] Result<void> reset() noexcept;

    /// Sets what @p changes names. Errors: EBADFD (state). Source: DAPX_EP_MODIFY.
    [[nodiscard]] Result<void> modify(const EndpointChanges& changes) noexcept;

    /// First step of a connection by exchange of QP numbers: receives are taken from the ring.
    /// @p port own port, from 1. Errors: EOPNOTSUPP (iWARP), EBADFD. Source: DAPX_QP_INIT.
    [[nodiscard]] Result<void> qp_init(std::uint8_t port = 1,
                                       std::uint16_t pkey_index = 0) noexcept;
    /// Second step. Source: DAPX_QP_RTR.
    [[nodiscard]] Result<void> qp_ready_to_receive(const ReadyToReceive& path) noexcept;
    /// Third step: the endpoint is connected, without an event. Source: DAPX_QP_RTS.
    [[nodiscard]] Result<void> qp_ready_to_send(const ReadyToSend& options) noexcept;

    Endpoint(Endpoint&&) noexcept = default;
    Endpoint& operator=(Endpoint&&) noexcept = default;
    ~Endpoint() = default;

private:
    friend struct EndpointTest;

    struct Header {
        std::uint64_t wr_id;
        std::uint8_t opcode;
        RemoteAddress remote{};
        std::uint64_t compare_add = 0;
        std::uint64_t swap = 0;
        std::uint32_t imm = 0;
    };

    Endpoint(std::shared_ptr<const detail::Device> device, std::uint32_t handle) noexcept
        : Object(std::move(device), ObjectType::ep, handle), number_(handle)
    {
    }

    [[nodiscard]] Result<void> map(const ::dapx_ring_layout& send, const ::dapx_ring_layout& recv,
                                   std::uint32_t state_off,
                                   const EndpointOptions& options) noexcept;

    /// An entry to write, or nullptr: then @p why says why.
    [[nodiscard]] std::byte* claim(Post& why) noexcept
    {
        // The module checks again; this is to fail early, without an entry left in the ring.
        const EpState now = state();
        if (now != EpState::connected && now != EpState::disconnected) [[unlikely]] {
            why = Post::bad_state;
            return nullptr;
        }
        std::byte* entry = send_ring_.claim();
        if (entry == nullptr) [[unlikely]]
            why = detail::explain_full(send_ring_, fd_, number_, DAPX_DOORBELL_SEND);
        return entry;
    }

    static void fill(std::byte* entry, const Header& header, std::uint8_t num_sge,
                     std::uint16_t flags, std::uint32_t inline_len) noexcept
    {
        ::dapx_send_wr wr;
        wr.wr_id = header.wr_id;
        wr.opcode = header.opcode;
        wr.num_sge = num_sge;
        wr.flags = flags;
        wr.remote_srqn = 0;
        wr.remote_addr = header.remote.addr;
        wr.rkey = header.remote.rkey;
        wr.inline_len = inline_len;
        if (header.opcode == DAPX_OP_SEND_IMM || header.opcode == DAPX_OP_RDMA_WRITE_IMM) {
            wr.compare_add = 0;
            wr.swap = 0;
            wr.imm_data = header.imm;
        } else {
            wr.compare_add = header.compare_add;
            wr.swap = header.swap;
        }
        std::memcpy(entry, &wr, sizeof(wr));
    }

    Post post(const Header& header, std::span<const Segment> segments, SendFlags flags,
              Doorbell when) noexcept
    {
        if (segments.size() > max_send_sge_) [[unlikely]]
            return Post::bad_request;
        Post why{};
        std::byte* entry = claim(why);
        if (entry == nullptr) [[unlikely]]
            return why;
        fill(entry, header, static_cast<std::uint8_t>(segments.size()),
             static_cast<std::uint16_t>(flags), 0);
        if (!segments.empty())
            std::memcpy(entry + sizeof(::dapx_send_wr), segments.data(), segments.size_bytes());
        send_ring_.stage();
        return when == Doorbell::now ? submit() : Post::ok;
    }

    Post post_inline(const Header& header, std::span<const std::byte> data, SendFlags flags,
                     Doorbell when) noexcept
    {
        if (data.size() > max_inline_) [[unlikely]]
            return Post::bad_request;
        Post why{};
        std::byte* entry = claim(why);
        if (entry == nullptr) [[unlikely]]
            return why;
        fill(entry, header, 0,
             static_cast<std::uint16_t>(static_cast<std::uint16_t>(flags) | DAPX_SEND_INLINE),
             static_cast<std::uint32_t>(data.size()));
        if (!data.empty())
            std::memcpy(entry + sizeof(::dapx_send_wr), data.data(), data.size());
        send_ring_.stage();
        return when == Doorbell::now ? submit() : Post::ok;
    }

    Mapping mapping_;
    WorkRing send_ring_;
    ReceiveQueue recv_queue_;
    const std::uint32_t* state_ = nullptr;
    int fd_ = -1;
    std::uint32_t number_ = 0;
    std::uint32_t max_send_sge_ = 0;
    std::uint32_t max_inline_ = 0;
    std::uint32_t qp_num_ = 0;
};

} // namespace dapx
