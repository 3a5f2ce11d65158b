// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/address.hpp>
#include <dapx/endpoint_options.hpp>
#include <dapx/evd.hpp>
#include <dapx/object.hpp>
#include <dapx/qp.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace dapx {

class Endpoint;
class XrcQp;

/// A CM id's state. Source: enum dapx_cm_state.
enum class CmState : std::uint32_t {
    idle = DAPX_CM_IDLE,
    bound = DAPX_CM_BOUND,
    resolving = DAPX_CM_RESOLVING,
    addr_ready = DAPX_CM_ADDR_READY,
    route_ready = DAPX_CM_ROUTE_READY,
    listening = DAPX_CM_LISTENING,
    request = DAPX_CM_REQUEST,
    attached = DAPX_CM_ATTACHED,
    ended = DAPX_CM_ENDED,
};

/// What takes a queue pair through its states: up to @p last, which is QpState::init when the
/// address is known, and QpState::ready_to_send of a request, and when the peer has accepted.
/// Source: dapx_cm_query.out_qp.
struct CmSteps {
    QpState last = QpState::reset; ///< reset: none is known; so always on iWARP
    std::uint8_t port = 0;
    std::uint16_t pkey_index = 0;
    ReadyToReceive ready_to_receive;
    ReadyToSend ready_to_send;
};

/// Source: struct dapx_cm_query.
struct CmInfo {
    CmState state{};
    std::uint32_t endpoint = 0; ///< that uses it, or is reserved or made for the request; or 0
    std::uint32_t evd = 0;      ///< where its events go
    std::uint32_t requests = 0; ///< listener: that wait for an answer, and were not taken
    std::uint32_t unacked = 0;  ///< events that are not acknowledged
    std::uint32_t listener = 0; ///< request: handle of the listener; 0 once it was taken
    std::uint64_t user_data = 0;
    std::vector<std::byte> private_data; ///< request: the peer's; may have zeroes at the end
    bool xrc = false; ///< request: of an XRC endpoint, for XrcQp::accept(), not Endpoint::accept()
    Address local;
    Address remote;
    std::uint32_t remote_qp_num = 0; ///< request: the peer's queue pair; so the following, but port
    bool srq = false;                ///< the peer's endpoint has a shared receive queue
    std::uint8_t responder_resources =
        0;                            ///< reads and atomics in flight that it would like to begin
    std::uint8_t initiator_depth = 0; ///< those that it would answer
    std::uint8_t retry_count = 0;     ///< that it asks for; 0 over iWARP, as the next
    std::uint8_t rnr_retry_count = 0;
    std::uint32_t port = 0; ///< of the device, from 1; 0 while not known
    CmSteps steps;          ///< for ConnectOptions::by_steps and AcceptOptions::by_steps
};

/// What CmId::modify() sets: what has a value. Source: struct dapx_cm_modify.
struct CmOptions {
    /// Type of service of the connection's packets, both ways; siw ignores it.
    std::optional<std::uint8_t> tos = std::nullopt;
    /// 4.096 us * 2^ack_timeout until a request that was not acknowledged is sent again; at most 31,
    /// 0 for never. iWARP has none.
    std::optional<std::uint8_t> ack_timeout = std::nullopt;
    /// Other ids that have it, too, may be bound to the same address and port.
    std::optional<bool> reuse_address = std::nullopt;
    /// An id that is bound to :: uses IPv6 addresses only.
    std::optional<bool> one_family = std::nullopt;

    [[nodiscard]] bool operator==(const CmOptions&) const noexcept = default;
};

/// A connection manager id: a listener, an active side, or a connection request that waits.
///
/// Move-only. The destructor is discard(). Whoever frees it rejects what waits on a listener and was
/// not taken by take(), read or not, and a request itself. While an endpoint uses the id
/// (CmState::attached) it is not freed: destroy the endpoint first.
///
/// Thread safety: any thread at any time, except while the object is moved or destroyed.
class DAPX_EXPORT CmId : public Object {
public:
    /// @param evd where its events go; used until this object is freed.
    /// @param user_data comes with each of its events.
    /// Errors: ENOENT, EDQUOT, ENOMEM, EIO. Source: DAPX_CM_CREATE.
    [[nodiscard]] static Result<CmId> create(const Evd& evd, std::uint64_t user_data = 0) noexcept;

    /// Takes over the request that an event of type EventType::connect_request announces, and
    /// acknowledges that event to the listener, @p listener. To be done once for each such event.
    /// That the peer has given up shows when it is answered; or by an event, once it is taken (take()).
    /// Errors: EINVAL (acknowledged already), ENOENT (the listener is gone), EIO.
    [[nodiscard]] static Result<CmId> request(CmId& listener, const Event& event) noexcept;

    /// Makes a request an id of its own, which has no more to do with its listener: that does not
    /// count it any more, and may be freed before it. If the peer gives up before the answer, or has
    /// done so, CmEvent::request_ended tells; but iWARP devices say nothing of it. To be
    /// acknowledged by ack().
    /// @param evd where its events go from now on; used until this object is freed.
    /// @param user_data comes with each of its events.
    /// Errors: EBADFD (no request, answered, or taken already), EINVAL (the listener has an endpoint
    /// for it), ENOENT, EIO. Source: DAPX_CM_TAKE.
    [[nodiscard]] Result<void> take(const Evd& evd, std::uint64_t user_data = 0) noexcept;

    /// Sets @p options: all of them, or none. Most before bind(), and the rest before the route is
    /// resolved; CmOptions::ack_timeout also before a request is accepted.
    /// Errors: EBADFD (state), EINVAL (ack_timeout above 31), EOPNOTSUPP (ack_timeout on iWARP).
    /// Source: DAPX_CM_MODIFY.
    [[nodiscard]] Result<void> modify(const CmOptions& options) noexcept;

    /// Gives it a local address of the device; port 0 for any free one: local_address() tells.
    /// Errors: EADDRINUSE, EADDRNOTAVAIL (another device's), EBADFD. Source: DAPX_CM_BIND.
    [[nodiscard]] Result<void> bind(const Address& address) noexcept;

    /// Takes requests; each gets the endpoint that accepts it.
    /// @param backlog requests that may wait for an answer; 0 for the module's limit.
    /// Errors: EBADFD (not bound), EINVAL. Source: DAPX_CM_LISTEN, DAPX_LISTEN_CONSUMER.
    [[nodiscard]] Result<void> listen(std::uint32_t backlog = 0) noexcept;

    /// Takes one request, for @p endpoint, which is reserved meanwhile.
    /// Source: DAPX_LISTEN_RESERVED.
    [[nodiscard]] Result<void> listen_reserved(Endpoint& endpoint) noexcept;

    /// Takes requests; the module makes an endpoint of these sizes for each, without PD and EVDs:
    /// Endpoint::adopt() takes it over. Source: DAPX_LISTEN_TENTATIVE.
    [[nodiscard]] Result<void> listen_tentative(const EndpointOptions& sizes,
                                                std::uint32_t backlog = 0) noexcept;

    /// Begins to find the way to @p destination; ends with a CM event. To be acknowledged by
    /// ack(). @p source: no address for what was bound, or what the routing table says.
    /// @p deadline: no_deadline for 4 seconds.
    /// Errors: EBADFD. Source: DAPX_CM_RESOLVE, DAPX_RESOLVE_ADDR.
    [[nodiscard]] Result<void> resolve_address(const Address& destination,
                                               const Address& source = {},
                                               Deadline deadline = no_deadline) noexcept;

    /// Begins to find the route; ends with a CM event. @p deadline: as above.
    /// Source: DAPX_RESOLVE_ROUTE.
    [[nodiscard]] Result<void> resolve_route(Deadline deadline = no_deadline) noexcept;

    /// Errors: ENOENT, EIO. Source: DAPX_CM_QUERY.
    [[nodiscard]] Result<CmInfo> query() const noexcept;

    /// The address it is bound to, with the port it got.
    [[nodiscard]] Result<Address> local_address() const noexcept;

    /// Says no to the request, which is gone then.
    /// @param private_data for the peer; at most DeviceAttributes::max_reject_data bytes.
    /// Errors: EINVAL (too much data), EBADFD (no request). Source: DAPX_CM_REJECT.
    [[nodiscard]] Result<void> reject(std::span<const std::byte> private_data = {}) noexcept;

    /// Acknowledges @p events CM or connection request events.
    /// Errors: EINVAL (more than there are). Source: DAPX_CM_ACK.
    [[nodiscard]] Result<void> ack(std::uint32_t events = 1) noexcept;

    CmId(CmId&&) noexcept = default;
    CmId& operator=(CmId&&) noexcept = default;
    ~CmId() = default;

    /// As free(), without acknowledgements: no event of it comes any more. One that is in the ring
    /// of its EVD already can still be read, and is to be ignored. The destructor does the same.
    /// Errors: EBUSY (an endpoint uses it), ENOENT, EIO. Source: DAPX_FREE, DAPX_FREE_DISCARD.
    [[nodiscard]] Result<void> discard() noexcept;

private:
    friend class Endpoint;
    friend class XrcQp;

    CmId(std::shared_ptr<const detail::Device> device, std::uint32_t handle) noexcept
        : Object(std::move(device), ObjectType::cm, handle)
    {
    }

    [[nodiscard]] Result<void> listen(std::uint32_t mode, std::uint32_t backlog,
                                      std::uint32_t endpoint,
                                      const EndpointOptions* sizes) noexcept;
};

} // namespace dapx
