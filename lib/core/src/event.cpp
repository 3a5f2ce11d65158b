// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/event.hpp>

#include <cerrno>
#include <cstring>

namespace dapx {

const char* describe(Status status) noexcept
{
    switch (status) {
    case Status::success:
        return "success";
    case Status::flushed:
        return "the connection ended before; the peer may have it";
    case Status::local_length:
        return "message and buffer do not fit together";
    case Status::local_operation:
        return "malformed request";
    case Status::local_protection:
        return "memory that is not registered, or not for this";
    case Status::bad_response:
        return "the peer's answer makes no sense";
    case Status::remote_access:
        return "the peer does not give this access to its memory";
    case Status::remote_invalid:
        return "the peer calls the request invalid";
    case Status::remote_operation:
        return "the peer could not carry it out";
    case Status::transport:
        return "no answer from the peer after all retries";
    case Status::receiver_not_ready:
        return "the peer had no receive posted, to the last retry";
    case Status::general:
        return "an error of the device";
    case Status::remote_queue:
        return "the peer has no such shared receive queue (any more)";
    }
    return "unknown status";
}

const char* describe(Opcode opcode) noexcept
{
    switch (opcode) {
    case Opcode::send:
        return "send";
    case Opcode::send_imm:
        return "send with immediate data";
    case Opcode::rdma_write:
        return "RDMA write";
    case Opcode::rdma_write_imm:
        return "RDMA write with immediate data";
    case Opcode::rdma_read:
        return "RDMA read";
    case Opcode::compare_swap:
        return "compare-and-swap";
    case Opcode::fetch_add:
        return "fetch-and-add";
    case Opcode::recv:
        return "receive";
    case Opcode::recv_rdma_imm:
        return "receive of an RDMA write's immediate data";
    case Opcode::rmr_bind:
        return "bind of a remote memory region";
    }
    return "unknown operation";
}

const char* describe(Connection what) noexcept
{
    switch (what) {
    case Connection::established:
        return "connected";
    case Connection::peer_rejected:
        return "the peer rejected the connection";
    case Connection::non_peer_rejected:
        return "nobody listens there";
    case Connection::accept_error:
        return "the accepted connection did not come about";
    case Connection::disconnected:
        return "disconnected";
    case Connection::broken:
        return "the connection broke";
    case Connection::timed_out:
        return "no answer in time";
    case Connection::unreachable:
        return "there is no way to the address from this RDMA device";
    case Connection::timewait_exit:
        return "no packet of the connection is under way any more";
    case Connection::response:
        return "the peer accepted, and waits for an answer";
    }
    return "unknown connection event";
}

const char* describe(CmEvent what) noexcept
{
    switch (what) {
    case CmEvent::addr_resolved:
        return "address resolved";
    case CmEvent::addr_error:
        return "the address cannot be reached from this RDMA device";
    case CmEvent::route_resolved:
        return "route resolved";
    case CmEvent::route_error:
        return "there is no route to the address";
    case CmEvent::request_ended:
        return "the peer gave up its request for a connection";
    }
    return "unknown CM event";
}

const char* describe(AsyncEvent what) noexcept
{
    switch (what) {
    case AsyncEvent::device_removed:
        return "the RDMA device was removed";
    case AsyncEvent::port_active:
        return "a port came up";
    case AsyncEvent::port_error:
        return "a port went down";
    case AsyncEvent::ep_error:
        return "the device gave up an endpoint";
    case AsyncEvent::srq_error:
        return "a shared receive queue is out of service";
    case AsyncEvent::srq_limit:
        return "a shared receive queue has fewer receives than its limit";
    case AsyncEvent::xrc_qp_established:
        return "an XRC receive queue pair got its first message";
    case AsyncEvent::xrc_qp_disconnected:
        return "the peer of an XRC receive queue pair ended the connection";
    case AsyncEvent::xrc_qp_error:
        return "the connection of an XRC receive queue pair broke";
    }
    return "unknown asynchronous event";
}

namespace {

/// What put a shared receive queue out of service; "" if that is not told.
std::string cause_of_srq_error(const Event& event)
{
    const std::string receive = ": its receive with wr_id " + std::to_string(event.bad_wr_id());
    switch (event.error()) {
    case EACCES:
        return receive + " names memory that is not registered, or not for this (for XRC, if the "
                         "queue is of XRC)";
    case EINVAL:
        return receive + " is malformed";
    case EBADMSG:
        return ": its indices were overwritten, by a stray write of this program";
    case EIO:
        return ": the device gave it up";
    default:
        return "";
    }
}

} // namespace

std::string Event::describe() const noexcept
{
    const auto with_cause = [this](const char* text) {
        return error() == 0 ? std::string(text) : std::string(text) + ": " + std::strerror(error());
    };
    switch (type()) {
    case EventType::none:
        return "no event";
    case EventType::completion:
        if (status() == Status::flushed && opcode() == Opcode::recv)
            return "receive without a message: the connection ended before";
        // Of a request, a failed completion tells no opcode.
        return status() == Status::success
                   ? std::string(dapx::describe(opcode())) + " done"
                   : std::string("request failed: ") + dapx::describe(status());
    case EventType::connection:
        if (connection() == Connection::non_peer_rejected && error() == EPROTO)
            return "what listens there speaks another protocol; XRC goes from a dapx XRC endpoint "
                   "to a dapx receive queue pair";
        return with_cause(dapx::describe(connection()));
    case EventType::connect_request:
        return "a peer asks for a connection";
    case EventType::cm:
        return with_cause(dapx::describe(cm()));
    case EventType::async:
        if (async() == AsyncEvent::srq_error)
            return dapx::describe(async()) + cause_of_srq_error(*this);
        if (qp_num() != 0)
            return std::string(dapx::describe(async())) + " (number " + std::to_string(qp_num()) +
                   ")";
        return dapx::describe(async());
    case EventType::software:
        return "software event";
    }
    return "unknown event";
}

} // namespace dapx
