// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "cr.hpp"

#include "functions.hpp"
#include "limits.hpp"
#include "sp.hpp"

namespace dapx::dat {

void Cr::query(DAT_CR_PARAM& param) noexcept
{
    param.remote_ia_address_ptr = as_ia_address(info_.remote);
    param.remote_port_qual = info_.remote.port();
    param.private_data_size = static_cast<DAT_COUNT>(info_.private_data.size());
    param.private_data = info_.private_data.empty() ? nullptr : info_.private_data.data();
    param.local_ep_handle = ep_.handle();
}

namespace {

DAT_RETURN invalid_cr() noexcept
{
    return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
}

/// The peer may have given up meanwhile: then the request is of no more use, but no fault either.
DAT_RETURN answered(const core::Error& why) noexcept
{
    return why.code() == ENOENT ? error(DAT_INVALID_STATE) : error_of(why);
}

} // namespace

DAT_RETURN provider_cr_query(DAT_CR_HANDLE handle, DAT_CR_PARAM_MASK mask,
                             DAT_CR_PARAM* param) noexcept
{
    const Ref<Cr> cr(handle);
    if (!cr)
        return invalid_cr();
    if (const DAT_RETURN bad = check_query(mask, DAT_CR_FIELD_ALL, param))
        return bad;
    cr->query(*param);
    return DAT_SUCCESS;
}

DAT_RETURN provider_cr_accept(DAT_CR_HANDLE handle, DAT_EP_HANDLE ep_handle, DAT_COUNT size,
                              const DAT_PVOID data) noexcept
{
    Ref<Cr> cr(handle);
    if (!cr)
        return invalid_cr();
    Cr::Answer answer(*cr);
    if (!answer)
        return invalid_cr();
    // A request with an endpoint needs no other.
    const Ref<Ep> ep(ep_handle == DAT_HANDLE_NULL && cr->ep() != nullptr ? cr->ep()->handle()
                                                                         : ep_handle);
    if (!ep || &ep->ia() != &cr->ia() || (cr->ep() != nullptr && cr->ep() != ep.get()))
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
    const auto told = private_data(size, data, cr->ia().device().max_accept_data);
    if (!told)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    const core::EpState needed =
        cr->ep() == nullptr ? core::EpState::unconnected : cr->ep()->state();
    if (const DAT_RETURN wrong = wrong_state(*ep, {needed}))
        return wrong;
    if (const DAT_RETURN missing = ep->configured())
        return missing;
    if (const auto accepted =
            ep->endpoint().accept(std::move(cr->request().id), {.private_data = *told});
        !accepted)
        return answered(accepted.error());
    answer.given();
    (void)destroy(cr.hand_over());
    return DAT_SUCCESS;
}

DAT_RETURN provider_cr_reject(DAT_CR_HANDLE handle, DAT_COUNT size, const DAT_PVOID data) noexcept
{
    Ref<Cr> cr(handle);
    if (!cr)
        return invalid_cr();
    Cr::Answer answer(*cr);
    if (!answer)
        return invalid_cr();
    const auto told = private_data(size, data, cr->ia().device().max_reject_data);
    if (!told)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    // An endpoint that was made for it goes with it; one that was reserved is the consumer's again.
    const bool tentative =
        cr->ep() != nullptr && cr->ep()->state() == core::EpState::tentative_pending;
    Ref<Ep> ep(tentative ? cr->ep()->handle() : DAT_HANDLE_NULL);
    if (const auto rejected = cr->request().id.reject(*told);
        !rejected && rejected.error().code() != ENOENT)
        return error_of(rejected.error());
    answer.given();
    (void)destroy(cr.hand_over());
    if (ep)
        (void)destroy(ep.hand_over());
    return DAT_SUCCESS;
}

DAT_RETURN provider_cr_handoff(DAT_CR_HANDLE handle, DAT_CONN_QUAL qualifier) noexcept
{
    Ref<Cr> cr(handle);
    if (!cr)
        return invalid_cr();
    Cr::Answer answer(*cr);
    if (!answer)
        return invalid_cr();
    // With an endpoint of its own it cannot be anybody else's.
    if (cr->ep() != nullptr)
        return error(DAT_INVALID_STATE);
    const Ref<Psp> psp(cr->ia().find([&](const Object& object) {
        return object.type() == Psp::handle_type &&
               static_cast<const Psp&>(object).qualifier() == qualifier;
    }));
    if (!psp || psp->flags() != DAT_PSP_CONSUMER_FLAG)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    if (const DAT_RETURN failed = psp->hand_over(cr->request()))
        return failed;
    answer.given();
    return destroy(cr.hand_over());
}

} // namespace dapx::dat
