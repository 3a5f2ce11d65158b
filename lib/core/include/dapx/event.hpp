// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/dapx.h>
#include <dapx/export.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace dapx {

/// What an event is about. Source: enum dapx_event_type.
enum class EventType : std::uint32_t {
    none = 0,
    completion = DAPX_EVENT_COMPLETION,
    connection = DAPX_EVENT_CONNECTION,
    connect_request = DAPX_EVENT_CONNECT_REQUEST,
    cm = DAPX_EVENT_CM,
    async = DAPX_EVENT_ASYNC,
    software = DAPX_EVENT_SOFTWARE,
};

/// How a work request ended. Source: enum dapx_status.
enum class Status : std::uint32_t {
    success = DAPX_STATUS_SUCCESS,
    /// The connection ended before. A request: unknown, the peer may have it, whole or in part: who
    /// sends it again by another connection has to let the peer know it by. A receive: no message
    /// is in it.
    flushed = DAPX_STATUS_FLUSHED,
    local_length = DAPX_STATUS_LOCAL_LENGTH,
    local_operation = DAPX_STATUS_LOCAL_OPERATION,
    local_protection = DAPX_STATUS_LOCAL_PROTECTION,
    bad_response = DAPX_STATUS_BAD_RESPONSE,
    remote_access = DAPX_STATUS_REMOTE_ACCESS,
    remote_invalid = DAPX_STATUS_REMOTE_INVALID,
    remote_operation = DAPX_STATUS_REMOTE_OPERATION,
    transport = DAPX_STATUS_TRANSPORT,
    receiver_not_ready = DAPX_STATUS_RECEIVER_NOT_READY,
    general = DAPX_STATUS_GENERAL,
    remote_queue = DAPX_STATUS_REMOTE_QUEUE, ///< XRC: no such queue, or its owner has gone
};

/// What a work request does. Source: enum dapx_opcode.
enum class Opcode : std::uint32_t {
    send = DAPX_OP_SEND,
    send_imm = DAPX_OP_SEND_IMM,
    rdma_write = DAPX_OP_RDMA_WRITE,
    rdma_write_imm = DAPX_OP_RDMA_WRITE_IMM,
    rdma_read = DAPX_OP_RDMA_READ,
    compare_swap = DAPX_OP_COMPARE_SWAP,
    fetch_add = DAPX_OP_FETCH_ADD,
    recv = DAPX_OP_RECV,
    recv_rdma_imm = DAPX_OP_RECV_RDMA_IMM,
    rmr_bind = DAPX_OP_RMR_BIND,
};

/// What happened to an endpoint's connection. Source: enum dapx_connection_event.
enum class Connection : std::uint32_t {
    established = DAPX_CONNECTION_ESTABLISHED,
    peer_rejected = DAPX_CONNECTION_PEER_REJECTED,
    non_peer_rejected = DAPX_CONNECTION_NON_PEER_REJECTED,
    accept_error = DAPX_CONNECTION_ACCEPT_ERROR,
    disconnected = DAPX_CONNECTION_DISCONNECTED,
    broken = DAPX_CONNECTION_BROKEN,
    timed_out = DAPX_CONNECTION_TIMED_OUT,
    unreachable = DAPX_CONNECTION_UNREACHABLE,
    timewait_exit = DAPX_CONNECTION_TIMEWAIT_EXIT, ///< only with EndpointOptions::timewait_exit
    response = DAPX_CONNECTION_RESPONSE,           ///< only with ConnectOptions::by_steps
};

/// What happened to a CM id. Source: enum dapx_cm_event.
enum class CmEvent : std::uint32_t {
    addr_resolved = DAPX_CM_ADDR_RESOLVED,
    addr_error = DAPX_CM_ADDR_ERROR,
    route_resolved = DAPX_CM_ROUTE_RESOLVED,
    route_error = DAPX_CM_ROUTE_ERROR,
    request_ended = DAPX_CM_REQUEST_ENDED, ///< the peer of a request that was taken gave up
};

/// Source: enum dapx_async_event.
enum class AsyncEvent : std::uint32_t {
    device_removed = DAPX_ASYNC_DEVICE_REMOVED,
    port_active = DAPX_ASYNC_PORT_ACTIVE,
    port_error = DAPX_ASYNC_PORT_ERROR,
    ep_error = DAPX_ASYNC_EP_ERROR,
    srq_error = DAPX_ASYNC_SRQ_ERROR,                     ///< out of service: Event::error()
    srq_limit = DAPX_ASYNC_SRQ_LIMIT,                     ///< Srq::set_limit()
    xrc_qp_established = DAPX_ASYNC_XRC_QP_ESTABLISHED,   ///< its first message came
    xrc_qp_disconnected = DAPX_ASYNC_XRC_QP_DISCONNECTED, ///< the peer ended the connection
    xrc_qp_error = DAPX_ASYNC_XRC_QP_ERROR,               ///< the connection broke
};

/// For a person: "the peer does not give this access to its memory". Never nullptr.
[[nodiscard]] DAPX_EXPORT const char* describe(Status status) noexcept;
/// For a person: "rdma write". Never nullptr.
[[nodiscard]] DAPX_EXPORT const char* describe(Opcode opcode) noexcept;
/// For a person: "nobody listens there". Never nullptr.
[[nodiscard]] DAPX_EXPORT const char* describe(Connection what) noexcept;
/// For a person. Never nullptr.
[[nodiscard]] DAPX_EXPORT const char* describe(CmEvent what) noexcept;
/// For a person. Never nullptr.
[[nodiscard]] DAPX_EXPORT const char* describe(AsyncEvent what) noexcept;

/// An event, copied out of an EVD's ring. A plain value of 64 bytes.
///
/// Which accessors mean something depends on type(). Source: struct dapx_event.
class Event {
public:
    [[nodiscard]] EventType type() const noexcept { return EventType{raw_.type}; }

    /// The object it is about: endpoint, listener, CM id, SRQ (of its receives by XRC, too),
    /// registration with an XRC receive queue pair; 0 for none.
    [[nodiscard]] std::uint32_t handle() const noexcept { return raw_.handle; }

    /// As given when that object was made.
    [[nodiscard]] std::uint64_t user_data() const noexcept { return raw_.user_data; }

    [[nodiscard]] bool is_completion() const noexcept { return raw_.type == DAPX_EVENT_COMPLETION; }
    [[nodiscard]] bool is_connection(Connection what) const noexcept
    {
        return raw_.type == DAPX_EVENT_CONNECTION && connection() == what;
    }

    /// True if what was begun succeeded: a request done, a connection established, an address or
    /// a route resolved. Of asynchronous events a port that came up, a limit that was reached and
    /// a receive queue pair's first message are no failures; connection requests and software
    /// events never are.
    [[nodiscard]] bool succeeded() const noexcept
    {
        switch (type()) {
        case EventType::completion:
            return status() == Status::success;
        case EventType::connection:
            return connection() == Connection::established;
        case EventType::cm:
            return cm() == CmEvent::addr_resolved || cm() == CmEvent::route_resolved;
        case EventType::async:
            return async() == AsyncEvent::port_active || async() == AsyncEvent::srq_limit ||
                   async() == AsyncEvent::xrc_qp_established;
        default:
            return true;
        }
    }

    /// Completion: as posted.
    [[nodiscard]] std::uint64_t wr_id() const noexcept { return raw_.completion.wr_id; }
    /// Completion: how it ended.
    [[nodiscard]] Status status() const noexcept { return Status{raw_.completion.status}; }
    /// Completion: what it was. What follows is valid only with Status::success.
    [[nodiscard]] Opcode opcode() const noexcept { return Opcode{raw_.completion.opcode}; }
    /// Completion: bytes received or read.
    [[nodiscard]] std::uint32_t byte_len() const noexcept { return raw_.completion.byte_len; }
    /// Completion of a receive: the sender's immediate data, as it wrote it.
    [[nodiscard]] std::optional<std::uint32_t> imm_data() const noexcept
    {
        if ((raw_.completion.flags & DAPX_COMPLETION_IMM) == 0)
            return std::nullopt;
        return raw_.completion.imm_data;
    }
    /// Completion of a receive: handle of the SRQ it came from, or 0.
    [[nodiscard]] std::uint32_t srq() const noexcept
    {
        return (raw_.completion.flags & DAPX_COMPLETION_SRQ) != 0 ? raw_.completion.srq : 0;
    }

    /// Completion of a receive that succeeded: whether it came by XRC; then qp_num() says by which
    /// queue pair. Of one that failed it means nothing: handle() is the queue's, as it is of any by
    /// XRC.
    [[nodiscard]] bool is_xrc() const noexcept
    {
        return is_completion() && (raw_.completion.flags & DAPX_COMPLETION_XRC) != 0;
    }

    /// Receive by XRC, or asynchronous event of an XRC receive queue pair: its number. Else 0.
    [[nodiscard]] std::uint32_t qp_num() const noexcept
    {
        if (raw_.type == DAPX_EVENT_ASYNC)
            return raw_.async.qp_num;
        return is_xrc() ? raw_.completion.qp_num : 0;
    }

    /// Connection event: what happened. The peer's private data: EndpointBase::query().
    [[nodiscard]] Connection connection() const noexcept
    {
        return Connection{raw_.connection.what};
    }

    /// Connection or CM event: the errno (positive) behind it, or 0. AsyncEvent::srq_error: EACCES
    /// (the memory of the receive bad_wr_id() is not registered, or not for this), EINVAL (that
    /// receive is malformed), EBADMSG (the ring's indices were overwritten), EIO (the device gave it
    /// up), or 0 (an older module does not tell).
    [[nodiscard]] int error() const noexcept
    {
        switch (raw_.type) {
        case DAPX_EVENT_CM:
            return -raw_.cm.error;
        case DAPX_EVENT_ASYNC:
            return -raw_.async.error;
        default:
            return -raw_.connection.error;
        }
    }

    /// AsyncEvent::srq_error with error() EACCES or EINVAL: wr_id of the receive.
    [[nodiscard]] std::uint64_t bad_wr_id() const noexcept { return raw_.async.wr_id; }

    /// Connection request: handle of the request, for CmId::request().
    [[nodiscard]] std::uint32_t request() const noexcept { return raw_.request.cm; }
    /// Connection request: endpoint reserved or made for it, or 0.
    [[nodiscard]] std::uint32_t request_endpoint() const noexcept { return raw_.request.ep; }

    /// CM event: what happened.
    [[nodiscard]] CmEvent cm() const noexcept { return CmEvent{raw_.cm.what}; }

    /// Asynchronous event: what happened.
    [[nodiscard]] AsyncEvent async() const noexcept { return AsyncEvent{raw_.async.what}; }
    /// Asynchronous event of a port: its number, from 1.
    [[nodiscard]] std::uint32_t port() const noexcept { return raw_.async.port; }

    /// Software event: as posted by Evd::post().
    [[nodiscard]] std::array<std::uint64_t, 2> software() const noexcept
    {
        return {raw_.software.data[0], raw_.software.data[1]};
    }

    /// A sentence for a person, whatever the type.
    [[nodiscard]] DAPX_EXPORT std::string describe() const noexcept;

    /// The bytes of the ABI.
    [[nodiscard]] const ::dapx_event& raw() const noexcept { return raw_; }
    [[nodiscard]] ::dapx_event& raw() noexcept { return raw_; }

private:
    ::dapx_event raw_{};
};
static_assert(sizeof(Event) == 64);

} // namespace dapx
