// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// <dapx/c.h>: CM ids.
#include "handles.hpp"

using namespace dapx::c;

namespace {

dapx::Address address_of(const sockaddr* address) noexcept
{
    return address != nullptr ? dapx::Address(*address) : dapx::Address();
}

} // namespace

dapxc_cm* dapxc_cm_create(const dapxc_evd* evd, uint64_t user_data)
{
    if (evd == nullptr)
        return fail(invalid());
    return make<dapxc_cm>(dapx::CmId::create(evd->object, user_data));
}

int dapxc_cm_modify(dapxc_cm* cm, dapx_cm_modify* options)
{
    if (cm == nullptr || !has_room(options, offsetof(dapx_cm_modify, mask)))
        return invalid();
    options->cm = cm->object.handle();
    return ask(cm->object.context(), *options, "cannot set options of the CM id");
}

int dapxc_cm_bind(dapxc_cm* cm, const sockaddr* address)
{
    if (cm == nullptr || address == nullptr)
        return invalid();
    return errno_of(cm->object.bind(dapx::Address(*address)));
}

int dapxc_cm_listen(dapxc_cm* cm, uint32_t backlog)
{
    return cm != nullptr ? errno_of(cm->object.listen(backlog)) : invalid();
}

int dapxc_cm_resolve_address(dapxc_cm* cm, const sockaddr* destination, const sockaddr* source,
                             uint64_t deadline)
{
    if (cm == nullptr || destination == nullptr)
        return invalid();
    return errno_of(cm->object.resolve_address(dapx::Address(*destination), address_of(source),
                                               deadline_of(deadline)));
}

int dapxc_cm_resolve_route(dapxc_cm* cm, uint64_t deadline)
{
    return cm != nullptr ? errno_of(cm->object.resolve_route(deadline_of(deadline))) : invalid();
}

dapxc_cm* dapxc_cm_request(dapxc_cm* listener, const dapx_event* event)
{
    if (listener == nullptr || event == nullptr || event->type != DAPX_EVENT_CONNECT_REQUEST)
        return fail(invalid());
    dapx::Event copy;
    copy.raw() = *event;
    return make<dapxc_cm>(dapx::CmId::request(listener->object, copy));
}

int dapxc_cm_take(dapxc_cm* request, const dapxc_evd* evd, uint64_t user_data)
{
    if (request == nullptr || evd == nullptr)
        return invalid();
    return errno_of(request->object.take(evd->object, user_data));
}

int dapxc_cm_query(const dapxc_cm* cm, dapx_cm_query* query)
{
    if (cm == nullptr || !has_room(query, offsetof(dapx_cm_query, out_state)))
        return invalid();
    query->cm = cm->object.handle();
    return ask(cm->object.context(), *query, "cannot query the CM id");
}

int dapxc_cm_reject(dapxc_cm* request, const void* private_data, size_t private_data_len)
{
    if (request == nullptr || !valid_bytes(private_data, private_data_len))
        return invalid();
    const auto done = request->object.reject(bytes(private_data, private_data_len));
    if (done)
        delete request;
    return errno_of(done);
}

int dapxc_cm_ack(dapxc_cm* cm, uint32_t events)
{
    return cm != nullptr ? errno_of(cm->object.ack(events)) : invalid();
}

uint32_t dapxc_cm_handle(const dapxc_cm* cm)
{
    return handle_of(cm);
}

int dapxc_cm_free(dapxc_cm* cm)
{
    return take_back(cm);
}

int dapxc_cm_discard(dapxc_cm* cm)
{
    if (cm == nullptr)
        return invalid();
    const auto done = cm->object.discard();
    if (done)
        delete cm;
    return errno_of(done);
}
