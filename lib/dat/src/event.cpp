// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "event.hpp"

#include "cr.hpp"
#include "ep.hpp"
#include "limits.hpp"
#include "sp.hpp"
#include "srq.hpp"

#include <bit>

namespace dapx::dat {

namespace {

/// The object that an event is about: by the slot it was made with, if that still has it.
template <class T> Ref<T> subject(const core::Event& raw) noexcept
{
    Ref<T> object(raw.user_data());
    return object && object->number() == raw.handle() ? std::move(object) : Ref<T>();
}

DAT_DTO_COMPLETION_STATUS status_of(core::Status status) noexcept
{
    switch (status) {
    case core::Status::success:
        return DAT_DTO_SUCCESS;
    case core::Status::flushed:
        return DAT_DTO_ERR_FLUSHED;
    case core::Status::local_length:
        return DAT_DTO_ERR_LOCAL_LENGTH;
    case core::Status::local_protection:
        return DAT_DTO_ERR_LOCAL_PROTECTION;
    case core::Status::bad_response:
        return DAT_DTO_ERR_BAD_RESPONSE;
    case core::Status::remote_access:
    case core::Status::remote_queue:
        return DAT_DTO_ERR_REMOTE_ACCESS;
    case core::Status::remote_invalid:
    case core::Status::remote_operation:
        return DAT_DTO_ERR_REMOTE_RESPONDER;
    case core::Status::transport:
        return DAT_DTO_ERR_TRANSPORT;
    case core::Status::receiver_not_ready:
        return DAT_DTO_ERR_RECEIVER_NOT_READY;
    case core::Status::local_operation:
    case core::Status::general:
        break;
    }
    return DAT_DTO_ERR_LOCAL_EP;
}

bool completion(const core::Event& raw, DAT_EVENT& event) noexcept
{
    const Ref<Ep> ep = subject<Ep>(raw);
    if (!ep)
        return false;
    const DAT_DTO_COMPLETION_STATUS status = status_of(raw.status());
    if (raw.opcode() == core::Opcode::recv || raw.opcode() == core::Opcode::recv_rdma_imm) {
        DAT_DTO_COMPLETION_EVENT_DATA& data = event.event_data.dto_completion_event_data;
        event.event_number = DAT_DTO_COMPLETION_EVENT;
        data.ep_handle = ep->handle();
        data.user_cookie.as_64 = raw.wr_id();
        data.status = status;
        data.transfered_length = raw.succeeded() ? raw.byte_len() : 0;
        complete(data, DAT_DTO_RECEIVE);
        return true;
    }
    const Request request = ep->request_ended(raw.wr_id());
    if (request.suppressed && raw.succeeded())
        return false;
    if (request.rmr != DAT_HANDLE_NULL) {
        DAT_RMR_BIND_COMPLETION_EVENT_DATA& data = event.event_data.rmr_completion_event_data;
        event.event_number = DAT_RMR_BIND_COMPLETION_EVENT;
        data.rmr_handle = request.rmr;
        data.user_cookie.as_64 = request.cookie;
        data.status = raw.succeeded() || raw.status() == core::Status::flushed
                          ? status
                          : DAT_RMR_OPERATION_FAILED;
        return true;
    }
    DAT_DTO_COMPLETION_EVENT_DATA& data = event.event_data.dto_completion_event_data;
    event.event_number = DAT_DTO_COMPLETION_EVENT;
    data.ep_handle = ep->handle();
    data.user_cookie.as_64 = request.cookie;
    data.status = status;
    data.transfered_length = raw.succeeded() ? request.length : 0;
    complete(data, request.operation);
    return true;
}

DAT_EVENT_NUMBER number_of(core::Connection what) noexcept
{
    switch (what) {
    case core::Connection::established:
        return DAT_CONNECTION_EVENT_ESTABLISHED;
    case core::Connection::peer_rejected:
        return DAT_CONNECTION_EVENT_PEER_REJECTED;
    case core::Connection::non_peer_rejected:
        return DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
    case core::Connection::accept_error:
        return DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR;
    case core::Connection::disconnected:
        return DAT_CONNECTION_EVENT_DISCONNECTED;
    case core::Connection::broken:
        return DAT_CONNECTION_EVENT_BROKEN;
    case core::Connection::timed_out:
        return DAT_CONNECTION_EVENT_TIMED_OUT;
    case core::Connection::unreachable:
        return DAT_CONNECTION_EVENT_UNREACHABLE;
    case core::Connection::timewait_exit:
    case core::Connection::response:
        break; // come only if asked for
    }
    return DAT_CONNECTION_EVENT_BROKEN;
}

bool connection(const core::Event& raw, DAT_EVENT& event) noexcept
{
    const Ref<Ep> ep = subject<Ep>(raw);
    if (!ep)
        return false;
    DAT_CONNECTION_EVENT_DATA& data = event.event_data.connect_event_data;
    event.event_number = number_of(raw.connection());
    data.ep_handle = ep->handle();
    const std::span<std::byte> told = ep->connection_changed(raw.connection());
    data.private_data_size = static_cast<DAT_COUNT>(told.size());
    data.private_data = told.empty() ? nullptr : told.data();
    // A connection that has ended takes no more of a shared receive queue: by now all that it took
    // has ended, which programs wait for to free the queue.
    if (!ep->has_srq() || ep->state() != core::EpState::disconnected)
        return true;
    if (const Ref<Evd> async(ep->ia().async_evd()); async)
        (void)async->queue().post({ep->user_data(), last_receive_event});
    return true;
}

bool arrival(const ServicePoint& point, std::unique_ptr<Cr> cr, DAT_EVENT& event) noexcept
{
    if (cr == nullptr)
        return false;
    const auto handle = publish(std::move(cr));
    if (!handle)
        return false;
    DAT_CR_ARRIVAL_EVENT_DATA& data = event.event_data.cr_arrival_event_data;
    event.event_number = DAT_CONNECTION_REQUEST_EVENT;
    data.sp_handle.psp_handle = point.handle();
    data.local_ia_address_ptr = point.ia().address_ptr();
    data.conn_qual = point.qualifier();
    data.cr_handle = *handle;
    complete(data);
    return true;
}

bool connection_request(const core::Event& raw, const Evd& evd, DAT_EVENT& event) noexcept
{
    if (const Ref<Psp> psp = subject<Psp>(raw))
        return arrival(*psp, psp->arrived(raw), event);
    const Ref<Rsp> rsp = subject<Rsp>(raw);
    if (!rsp) {
        // Its service point is gone: rejected, as it would be without a listener.
        if (const auto listener = evd.ia().listener(raw.handle()))
            (void)core::CmId::request(listener->id, raw);
        return false;
    }
    if (arrival(*rsp, rsp->arrived(raw), event)) {
        rsp->spend(); // it was for one request
        return true;
    }
    // The peer has given up meanwhile: this was no request.
    rsp->renew();
    return false;
}

void fill_broken(const Ep& ep, DAT_EVENT& event) noexcept
{
    event.event_number = DAT_ASYNC_ERROR_EP_BROKEN;
    event.event_data.asynch_error_event_data.dat_handle = ep.handle();
    event.event_data.asynch_error_event_data.reason = DAT_EP_TRANSFER_TO_ERROR;
}

bool software(const core::Event& raw, DAT_EVENT& event) noexcept
{
    const auto [pointer, kind] = raw.software();
    if (kind == software_event) {
        event.event_number = DAT_SOFTWARE_EVENT;
        event.event_data.software_event_data.pointer = std::bit_cast<DAT_PVOID>(pointer);
        return true;
    }
    if (kind == handoff_event)
        if (const Ref<Psp> psp(pointer); psp)
            return arrival(*psp, psp->handed_over(), event);
    if (kind == last_receive_event)
        if (const Ref<Ep> ep(pointer); ep) {
            fill_broken(*ep, event);
            return true;
        }
    return false;
}

bool asynchronous(const core::Event& raw, const Evd& evd, DAT_EVENT& event) noexcept
{
    DAT_ASYNCH_ERROR_EVENT_DATA& data = event.event_data.asynch_error_event_data;
    data.dat_handle = evd.ia().consumer_handle();
    switch (raw.async()) {
    case core::AsyncEvent::device_removed:
        event.event_number = DAT_ASYNC_ERROR_IA_CATASTROPHIC;
        data.reason = DAT_IA_CATASTROPHIC_ERROR;
        return true;
    case core::AsyncEvent::port_error:
        event.event_number = DAT_ASYNC_ERROR_IA_CATASTROPHIC;
        data.reason = DAT_IA_OTHER_ERROR;
        return true;
    case core::AsyncEvent::ep_error: {
        const Ref<Ep> ep = subject<Ep>(raw);
        if (!ep)
            return false;
        fill_broken(*ep, event);
        return true;
    }
    case core::AsyncEvent::srq_error:
    case core::AsyncEvent::srq_limit: {
        const Ref<Srq> srq = subject<Srq>(raw);
        if (!srq)
            return false;
        event.event_number = DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR;
        data.dat_handle = srq->handle();
        data.reason = raw.async() == core::AsyncEvent::srq_limit ? DAT_SRQ_LOW_WATERMARK_EVENT
                                                                 : DAT_SRQ_TRANSFER_TO_ERROR;
        return true;
    }
    default:
        return false;
    }
}

} // namespace

bool translate(const core::Event& raw, Evd& evd, DAT_EVENT& event) noexcept
{
    event.evd_handle = evd.handle();
    switch (raw.type()) {
    case core::EventType::completion:
        return completion(raw, event);
    case core::EventType::connection:
        return connection(raw, event);
    case core::EventType::connect_request:
        return connection_request(raw, evd, event);
    case core::EventType::async:
        return asynchronous(raw, evd, event);
    case core::EventType::software:
        return software(raw, event);
    case core::EventType::cm:
    case core::EventType::none:
        break;
    }
    return false;
}

} // namespace dapx::dat
