// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "sp.hpp"

#include "event.hpp"
#include "functions.hpp"
#include "limits.hpp"

namespace dapx::dat {

DAT_RETURN ServicePoint::listen(DAT_CONN_QUAL qualifier) noexcept
try {
    auto id = core::CmId::create(evd_->queue(), user_data());
    if (!id)
        return error_of(id.error(), DAT_RESOURCE_TEP);
    number_ = id->handle();
    listener_ = std::make_shared<Listener>(std::move(*id));
    if (const auto bound = listener_->id.bind(ia().address().with_port(port_of(qualifier))); !bound)
        return error_of(bound.error(), DAT_RESOURCE_TEP);
    const auto address = listener_->id.local_address();
    if (!address)
        return error_of(address.error());
    // Before the first request can come.
    qualifier_ = qualifier != 0 ? qualifier : address->port();
    ia().add_listener(number_, listener_);
    if (const auto listening = take_requests(); !listening)
        return error_of(listening.error(), DAT_RESOURCE_TEP);
    return DAT_SUCCESS;
} catch (const std::bad_alloc&) {
    return no_memory();
}

std::unique_ptr<Cr> ServicePoint::arrived(const core::Event& event) noexcept
{
    if (listener_ == nullptr)
        return nullptr;
    auto id = core::CmId::request(listener_->id, event);
    if (!id)
        return nullptr;
    auto info = id->query();
    if (!info)
        return nullptr;
    std::unique_ptr<Ep> made;
    if (event.request_endpoint() != 0 && reserved() == nullptr) {
        made = adopt(event);
        if (made == nullptr)
            return nullptr;
    }
    Ep* ep = made == nullptr ? reserved() : made.get();
    auto cr = make<Cr>(ia(), TakenRequest{.listener = listener_, .id = std::move(*id)},
                       std::move(*info), ep);
    if (cr != nullptr && made != nullptr && !publish(std::move(made)))
        return nullptr;
    return cr;
}

void ServicePoint::leave() noexcept
{
    // Ends with the last request that came to it; what has not been taken is rejected.
    listener_.reset();
    evd_ = Needed<Evd>();
}

DAT_RETURN ServicePoint::release() noexcept
{
    leave();
    return DAT_SUCCESS;
}

core::Result<void> Psp::take_requests() noexcept
{
    return flags_ == DAT_PSP_PROVIDER_FLAG
               ? listener_->id.listen_tentative(Ep::options_of(Ep::default_attr(ia())))
               : listener_->id.listen();
}

std::unique_ptr<Ep> Psp::adopt(const core::Event& event) noexcept
{
    auto endpoint = core::Endpoint::adopt(ia().context(), event.request_endpoint());
    return endpoint ? Ep::adopt(ia(), std::move(*endpoint)) : nullptr;
}

DAT_RETURN Psp::hand_over(TakenRequest& request) noexcept
try {
    const std::lock_guard lock(mutex_);
    handed_over_.push_back(std::move(request));
    const auto posted = evd().queue().post({user_data(), handoff_event});
    if (posted)
        return DAT_SUCCESS;
    request = std::move(handed_over_.back());
    handed_over_.pop_back();
    return posted.error().code() == EAGAIN ? error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD)
                                           : error_of(posted.error());
} catch (const std::bad_alloc&) {
    return no_memory();
}

std::unique_ptr<Cr> Psp::handed_over() noexcept
{
    const std::lock_guard lock(mutex_);
    if (handed_over_.empty())
        return nullptr;
    TakenRequest request = std::move(handed_over_.front());
    handed_over_.pop_front();
    auto info = request.id.query();
    if (!info)
        return nullptr;
    return make<Cr>(ia(), std::move(request), std::move(*info), nullptr);
}

void Rsp::renew() noexcept
{
    const std::lock_guard lock(mutex_);
    if (spent_)
        return;
    listener_.reset();
    (void)listen(qualifier());
}

void Rsp::spend() noexcept
{
    const std::lock_guard lock(mutex_);
    spent_ = true;
    leave();
    ep_ = Needed<Ep>();
}

DAT_RETURN Rsp::query(DAT_RSP_PARAM& param) noexcept
{
    const std::lock_guard lock(mutex_);
    if (spent_)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
    param.ia_handle = ia().consumer_handle();
    param.conn_qual = qualifier();
    param.evd_handle = evd().handle();
    param.ep_handle = ep_.handle();
    return DAT_SUCCESS;
}

core::Result<void> Rsp::take_requests() noexcept
{
    return listener_->id.listen_reserved(ep_->endpoint());
}

namespace {

DAT_RETURN create_psp(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL wanted, DAT_EVD_HANDLE evd_handle,
                      DAT_PSP_FLAGS flags, DAT_PSP_HANDLE* handle,
                      DAT_CONN_QUAL* qualifier) noexcept
{
    const Ref<Ia> ia(ia_handle);
    if (!ia)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    const Ref<Evd> evd(evd_handle);
    if (!evd || &evd->ia() != ia.get() || !evd->takes(DAT_EVD_CR_FLAG))
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
    if (flags != DAT_PSP_CONSUMER_FLAG && flags != DAT_PSP_PROVIDER_FLAG)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    if (handle == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
    auto psp = make<Psp>(*ia, *evd, flags);
    if (psp == nullptr)
        return no_memory();
    // An event may come at once; it finds the service point only if that is known.
    Psp& point = *psp;
    if (const DAT_RETURN failed = hand_out(std::move(psp), *handle))
        return failed;
    if (const DAT_RETURN failed = point.listen(wanted)) {
        (void)free_handle<Psp>(*handle, DAT_NO_SUBTYPE, DAT_NO_SUBTYPE);
        *handle = DAT_HANDLE_NULL;
        return failed;
    }
    if (qualifier != nullptr)
        *qualifier = point.qualifier();
    return DAT_SUCCESS;
}

} // namespace

DAT_RETURN provider_psp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL qualifier, DAT_EVD_HANDLE evd,
                               DAT_PSP_FLAGS flags, DAT_PSP_HANDLE* handle) noexcept
{
    if (port_of(qualifier) == 0)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    return create_psp(ia, qualifier, evd, flags, handle, nullptr);
}

DAT_RETURN provider_psp_create_any(DAT_IA_HANDLE ia, DAT_CONN_QUAL* qualifier, DAT_EVD_HANDLE evd,
                                   DAT_PSP_FLAGS flags, DAT_PSP_HANDLE* handle) noexcept
{
    if (qualifier == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    return create_psp(ia, 0, evd, flags, handle, qualifier);
}

DAT_RETURN provider_psp_query(DAT_PSP_HANDLE handle, DAT_PSP_PARAM_MASK mask,
                              DAT_PSP_PARAM* param) noexcept
{
    const Ref<Psp> psp(handle);
    if (!psp)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
    if (const DAT_RETURN bad = check_query(mask, DAT_PSP_FIELD_ALL, param))
        return bad;
    param->ia_handle = psp->ia().consumer_handle();
    param->conn_qual = psp->qualifier();
    param->evd_handle = psp->evd().handle();
    param->psp_flags = psp->flags();
    return DAT_SUCCESS;
}

DAT_RETURN provider_psp_free(DAT_PSP_HANDLE handle) noexcept
{
    return free_handle<Psp>(handle, DAT_INVALID_HANDLE_PSP, DAT_NO_SUBTYPE);
}

DAT_RETURN provider_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL qualifier,
                               DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
                               DAT_RSP_HANDLE* handle) noexcept
{
    const Ref<Ia> ia(ia_handle);
    if (!ia)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    if (port_of(qualifier) == 0)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    const Ref<Ep> ep(ep_handle);
    if (!ep || &ep->ia() != ia.get())
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
    const Ref<Evd> evd(evd_handle);
    if (!evd || &evd->ia() != ia.get() || !evd->takes(DAT_EVD_CR_FLAG))
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
    if (handle == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
    if (const DAT_RETURN wrong = wrong_state(*ep, {core::EpState::unconnected}))
        return wrong;
    auto rsp = make<Rsp>(*ia, *evd, *ep);
    if (rsp == nullptr)
        return no_memory();
    Rsp& point = *rsp;
    if (const DAT_RETURN failed = hand_out(std::move(rsp), *handle))
        return failed;
    if (const DAT_RETURN failed = point.listen(qualifier)) {
        (void)free_handle<Rsp>(*handle, DAT_NO_SUBTYPE, DAT_NO_SUBTYPE);
        *handle = DAT_HANDLE_NULL;
        return failed;
    }
    return DAT_SUCCESS;
}

DAT_RETURN provider_rsp_query(DAT_RSP_HANDLE handle, DAT_RSP_PARAM_MASK mask,
                              DAT_RSP_PARAM* param) noexcept
{
    const Ref<Rsp> rsp(handle);
    if (!rsp)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
    if (const DAT_RETURN bad = check_query(mask, DAT_RSP_FIELD_ALL, param))
        return bad;
    return rsp->query(*param);
}

DAT_RETURN provider_rsp_free(DAT_RSP_HANDLE handle) noexcept
{
    return free_handle<Rsp>(handle, DAT_INVALID_HANDLE_RSP, DAT_NO_SUBTYPE);
}

} // namespace dapx::dat
