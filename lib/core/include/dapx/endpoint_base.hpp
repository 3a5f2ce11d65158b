// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What Endpoint and XrcEndpoint have in common.
#pragma once

#include <dapx/address.hpp>
#include <dapx/deadline.hpp>
#include <dapx/detail/mapping.hpp>
#include <dapx/detail/receive_queue.hpp>
#include <dapx/detail/ring.hpp>
#include <dapx/endpoint_options.hpp>
#include <dapx/flags.hpp>
#include <dapx/memory_region.hpp>
#include <dapx/object.hpp>
#include <dapx/post.hpp>
#include <dapx/poster.hpp>
#include <dapx/qp.hpp>

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace dapx {

class CmId;
class Evd;
class Pd;
class Srq;
class XrcDomain;

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

/// How a connection is made. Source: struct dapx_ep_connect.
struct ConnectOptions {
    Address source = {};              ///< own address; none for what the routing table says
    Deadline deadline = no_deadline;  ///< when to give up; default: the transport's own limit
    std::uint8_t retry_count = 7;     ///< of the transport, 0 to 7
    std::uint8_t rnr_retry_count = 7; ///< receiver not ready, 0 to 7; 7 for without end
    /// The program takes the queue pair through its states: qp_init() comes first, and
    /// Connection::response before the others, then establish(). Only by a CmId, and not on iWARP.
    /// Source: DAPX_CONNECT_STEPS.
    bool by_steps = false;
    /// For the listener; read during the call. At most DeviceAttributes::max_connect_data bytes,
    /// 56; of XRC max_xrc_connect_data, 48.
    std::span<const std::byte> private_data = {};
};

/// What EndpointBase::query() tells; handles are 0 for none. Source: struct dapx_ep_query.
struct EndpointInfo {
    EpState state{};
    std::uint32_t pd = 0;
    std::uint32_t srq = 0;
    std::uint32_t request_evd = 0;
    std::uint32_t recv_evd = 0;
    std::uint32_t connect_evd = 0;
    std::uint32_t async_evd = 0; ///< 0: connect_evd
    std::uint32_t cm = 0;
    EndpointOptions options; ///< sizes as they came out, and user_data
    std::uint32_t qp_num = 0;
    std::uint32_t remote_qp_num = 0;
    std::uint32_t requests = 0;          ///< posted, and their events not in the EVD yet
    std::uint32_t receives = 0;          ///< the same; 0 with an SRQ
    std::vector<std::byte> private_data; ///< of the peer's accept or reject; may have zeroes after
    Address local;
    Address remote;
    std::uint32_t reject_reason = 0;  ///< of the peer's connection manager; 28: of its program
    std::uint16_t rd_atomic = 0;      ///< in flight as initiator, as agreed; 0 while not connected
    std::uint16_t dest_rd_atomic = 0; ///< the same as responder
};

/// What EndpointBase::modify() changes: what is set. Source: enum dapx_ep_modify_mask.
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
    /// How long the peer waits, at least, if it finds no receive: InfiniBand's code, 0 to 31. Also while
    /// connected, if nothing else is set. Not XRC, nor iWARP (EOPNOTSUPP).
    std::optional<std::uint8_t> min_rnr_timer = std::nullopt;
};

/// One end of a connection: a ring of requests and a state. There is none that is only this: an
/// Endpoint receives, too, or has an SRQ; an XrcEndpoint sends to the peer's SRQs.
///
/// Requests are carried out in the order posted. Each posted request ends in exactly one
/// completion on the request EVD, except successful requests that are not SendFlags::signalled.
/// The memory of a request is the device's until then.
///
/// When the connection ends, what is under way is flushed (Status::flushed). The connection event
/// comes after all of these completions. Only receives of an SRQ may complete after it.
///
/// What can be wrong with a single request is told by its completion; posting tells only of what
/// is in PostResult. A post does no system call when the module is at work on the ring anyway.
///
/// Move-only; see Object for its end. Thread safety: one thread at a time on the request ring (all
/// posts of requests, and submit()), beside everything else; the other functions from any thread.
class DAPX_EXPORT EndpointBase : public Object {
public:
    /// An EVD, or nullptr for none.
    class EvdOrNone {
    public:
        EvdOrNone(const Evd& evd) noexcept : evd_(&evd) {}
        EvdOrNone(const Evd* evd) noexcept : evd_(evd) {}
        EvdOrNone(std::nullptr_t) noexcept {}

        /// nullptr for none.
        [[nodiscard]] const Evd* get() const noexcept { return evd_; }

    private:
        const Evd* evd_ = nullptr;
    };

    /// Where the events of an endpoint go; may be one and the same.
    struct Evds {
        const Evd& request;        ///< completions of requests
        const Evd* recv = nullptr; ///< completions of receives; nullptr if it has none
        /// Connection events; nullptr for nowhere. Then, until modify() sets one, it can be
        /// connected by exchange of QP numbers only.
        EvdOrNone connect = nullptr;
        EvdOrNone async = nullptr; ///< AsyncEvent::ep_error; nullptr for connect
    };

    /// Posts a request in the form of the ABI, for interfaces on top of this one. By XRC,
    /// wr.remote_srqn names the peer's queue.
    /// @param payload what follows it: wr.num_sge segments, or with DAPX_SEND_INLINE
    ///                wr.inline_len bytes; read during the call.
    PostResult post_wr(const ::dapx_send_wr& wr, const void* payload,
                       Doorbell when = Doorbell::now) noexcept
    {
        if ((wr.flags & DAPX_SEND_INLINE) != 0)
            return wr.inline_len > max_inline_ ? PostResult::bad_request
                                               : put(wr, payload, wr.inline_len, when);
        return wr.num_sge > max_send_sge_ ? PostResult::bad_request
                                          : put(wr, payload, wr.num_sge * sizeof(Segment), when);
    }

    /// Shows the module what was posted with Doorbell::later. PostResult::ok if there is nothing.
    PostResult submit() noexcept
    {
        if (!send_ring_.publish())
            return PostResult::ok;
        return PostResult{detail::doorbell(fd_, number_, DAPX_DOORBELL_SEND)};
    }

    // --- State ------------------------------------------------------------------------------

    /// As the shared memory shows it now; no system call. In a forked child
    /// EpState::disconnected. Thread safety: any thread.
    [[nodiscard]] EpState state() const noexcept
    {
        return mapping_.owner().here() ? EpState{detail::barrier::load_acquire(state_)}
                                       : EpState::disconnected;
    }

    /// Errors: ENOENT, EIO. Thread safety: any thread. Source: DAPX_EP_QUERY.
    [[nodiscard]] Result<EndpointInfo> query() const noexcept;

    /// The queue pair's number, as of create() or the last reset().
    [[nodiscard]] std::uint32_t qp_num() const noexcept { return qp_num_; }

    /// Requests that the ring holds.
    [[nodiscard]] std::uint32_t send_depth() const noexcept { return send_ring_.depth(); }
    /// Requests that can be posted now. Thread safety: the poster.
    [[nodiscard]] std::uint32_t send_room() const noexcept { return send_ring_.room(); }

    /// Requests posted, and doorbell commands issued for them, since the endpoint was made.
    /// Thread safety: any thread.
    [[nodiscard]] std::uint64_t sends_posted() const noexcept { return send_ring_.posted(); }
    [[nodiscard]] std::uint64_t send_doorbells() const noexcept { return send_ring_.doorbells(); }

    // --- Connection -------------------------------------------------------------------------

    /// Begins to connect to a listener; ends with a connection event. After any other than
    /// Connection::established the endpoint is EpState::disconnected, and takes a reset() before
    /// the next connect(). Connection::established has the peer's private data: query().
    /// Errors: EBADFD (state), EINVAL (too much private data). Source: DAPX_EP_CONNECT.
    [[nodiscard]] Result<void> connect(const Address& destination,
                                       const ConnectOptions& options = {}) noexcept;

    /// The same by a CM id whose route is resolved; it must live as long as this endpoint.
    [[nodiscard]] Result<void> connect(const CmId& id, const ConnectOptions& options = {}) noexcept;

    /// With ConnectOptions::by_steps, after qp_ready_to_send(): tells the peer that this side is
    /// ready. The endpoint is connected then, without an event. Errors: EBADFD.
    /// Source: DAPX_EP_ESTABLISH.
    [[nodiscard]] Result<void> establish() noexcept;

    /// Ends the connection when the requests under way have ended; a connection event tells.
    /// Errors: EBADFD. Source: DAPX_EP_DISCONNECT.
    [[nodiscard]] Result<void> disconnect() noexcept;

    /// Ends the connection now; requests under way are flushed. Without a connection, flushes the
    /// receives of a queue pair in INIT. Errors: EBADFD. Source: DAPX_DISCONNECT_ABRUPT.
    [[nodiscard]] Result<void> disconnect_now() noexcept;

    /// Makes a disconnected endpoint unconnected again, with empty rings. Events that are in the
    /// ring of an EVD stay there, and are those of the connection before; what has not come there,
    /// as Status::flushed of requests that were under way, never comes: whose completion did not is
    /// flushed. The queue pair has another number.
    /// Thread safety: nobody posts meanwhile. Errors: EBADFD. Source: DAPX_EP_RESET.
    [[nodiscard]] Result<void> reset() noexcept;

    /// Sets what @p changes names. Errors: EBADFD (state). Source: DAPX_EP_MODIFY.
    [[nodiscard]] Result<void> modify(const EndpointChanges& changes) noexcept;

    /// First step of a connection by exchange of QP numbers: receives are taken from the ring.
    /// @p port own port, from 1. @p refused: remote rights that the peer does not get, whatever the
    /// memory permits. Errors: EOPNOTSUPP (iWARP), EBADFD. Source: DAPX_QP_INIT.
    [[nodiscard]] Result<void> qp_init(std::uint8_t port = 1, std::uint16_t pkey_index = 0,
                                       Access refused = {}) noexcept;
    /// Second step. Source: DAPX_QP_RTR.
    [[nodiscard]] Result<void> qp_ready_to_receive(const ReadyToReceive& path) noexcept;
    /// Third step: the endpoint is connected, without an event. Source: DAPX_QP_RTS.
    [[nodiscard]] Result<void> qp_ready_to_send(const ReadyToSend& options) noexcept;
    /// Any of the three in the form of the ABI, for interfaces on top of this one.
    [[nodiscard]] Result<void> qp_step(const ::dapx_qp_attr& step) noexcept;

protected:
    EndpointBase(EndpointBase&&) noexcept = default;
    EndpointBase& operator=(EndpointBase&&) noexcept = default;
    ~EndpointBase() = default;

    EndpointBase(std::shared_ptr<const detail::Device> device, std::uint32_t handle,
                 std::uint32_t qp_num, bool xrc) noexcept
        : Object(std::move(device), ObjectType::ep, handle), number_(handle), qp_num_(qp_num),
          xrc_(xrc)
    {
    }

    /// DAPX_EP_CREATE. @param flags enum dapx_ep_flags, beside those of @p options.
    [[nodiscard]] static Result<::dapx_ep_create> issue_create(const Pd& pd, const Evds& evds,
                                                               const EndpointOptions& options,
                                                               std::uint32_t flags, const Srq* srq,
                                                               const XrcDomain* domain) noexcept;
    [[nodiscard]] Result<void> map(const ::dapx_ring_layout& send, const ::dapx_ring_layout& recv,
                                   std::uint32_t state_off, const EndpointOptions& options,
                                   detail::Mapping&& place = {}) noexcept;
    /// DAPX_EP_RESIZE.
    [[nodiscard]] Result<void> issue_resize(const EndpointOptions& options,
                                            const Srq* srq) noexcept;

    // For Poster.
    PostResult post(const detail::Request& request, std::span<const Segment> segments,
                    SendFlags flags, Doorbell when) noexcept
    {
        if (segments.size() > max_send_sge_) [[unlikely]]
            return PostResult::bad_request;
        return put(to_abi(request, static_cast<std::uint8_t>(segments.size()),
                          static_cast<std::uint16_t>(flags), 0),
                   segments.data(), segments.size_bytes(), when);
    }

    PostResult post_inline(const detail::Request& request, std::span<const std::byte> data,
                           SendFlags flags, Doorbell when) noexcept
    {
        if (data.size() > max_inline_) [[unlikely]]
            return PostResult::bad_request;
        return put(
            to_abi(request, 0,
                   static_cast<std::uint16_t>(static_cast<std::uint16_t>(flags) | DAPX_SEND_INLINE),
                   static_cast<std::uint32_t>(data.size())),
            data.data(), data.size(), when);
    }

    detail::ReceiveQueue recv_queue_; ///< empty without receives

private:
    /// In place of those that it has, whose counts go on.
    void use_rings(detail::WorkRing send, detail::WorkRing recv,
                   std::uint32_t max_recv_sge) noexcept;

    /// An entry to write, or nullptr: then @p why says why.
    [[nodiscard]] std::byte* claim(PostResult& why) noexcept
    {
        // The module checks again; this is to fail early, without an entry left in the ring.
        const EpState now = state();
        if (now != EpState::connected && now != EpState::disconnected) [[unlikely]] {
            why = PostResult::bad_state;
            return nullptr;
        }
        std::byte* entry = send_ring_.claim();
        if (entry == nullptr) [[unlikely]]
            why = send_ring_.depth() == 0
                      ? PostResult::bad_request
                      : detail::explain_full(send_ring_, fd_, number_, DAPX_DOORBELL_SEND);
        return entry;
    }

    static ::dapx_send_wr to_abi(const detail::Request& request, std::uint8_t num_sge,
                                 std::uint16_t flags, std::uint32_t inline_len) noexcept
    {
        ::dapx_send_wr wr;
        wr.wr_id = request.wr_id;
        wr.opcode = request.opcode;
        wr.num_sge = num_sge;
        wr.flags = flags;
        wr.remote_srqn = request.remote_srqn;
        wr.remote_addr = request.remote.addr;
        wr.rkey = request.remote.rkey;
        wr.inline_len = inline_len;
        if (request.opcode == DAPX_OP_SEND_IMM || request.opcode == DAPX_OP_RDMA_WRITE_IMM) {
            wr.compare_add = 0;
            wr.swap = 0;
            wr.imm_data = request.imm;
        } else {
            wr.compare_add = request.compare_add;
            wr.swap = request.swap;
        }
        return wr;
    }

    /// @p size bytes of @p payload are known to fit into an entry.
    PostResult put(const ::dapx_send_wr& wr, const void* payload, std::size_t size,
                   Doorbell when) noexcept
    {
        PostResult why{};
        std::byte* entry = claim(why);
        if (entry == nullptr) [[unlikely]]
            return why;
        std::memcpy(entry, &wr, sizeof(wr));
        if (size != 0)
            std::memcpy(entry + sizeof(wr), payload, size);
        send_ring_.stage();
        return when == Doorbell::now ? submit() : PostResult::ok;
    }

    detail::Mapping mapping_;
    detail::WorkRing send_ring_;
    const std::uint32_t* state_ = nullptr;
    int fd_ = -1;
    std::uint32_t number_ = 0;
    std::uint32_t max_send_sge_ = 0;
    std::uint32_t max_inline_ = 0;
    std::uint32_t qp_num_ = 0;
    bool xrc_ = false;
};

} // namespace dapx
