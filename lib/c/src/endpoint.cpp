// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// <dapx/c.h>: endpoints.
#include "handles.hpp"

#include "endpoint_attr.hpp"

#include <algorithm>

using namespace dapx::c;

namespace {

bool known_flags(const dapx_ep_attr& attr) noexcept
{
    constexpr std::uint32_t known = DAPX_EP_SOLICITED | DAPX_EP_XRC | DAPX_EP_TIMEWAIT_EXIT;
    return (attr.flags & ~known) == 0;
}

std::nullptr_t unknown_flag() noexcept
{
    return fail(keep(EOPNOTSUPP, "an unknown flag of an endpoint"));
}

dapxc_ep* make_xrc(const dapxc_pd& pd, const dapxc_evd& request_evd, const dapxc_evd& connect_evd,
                   const dapxc_xrcd* xrcd, const dapx_ep_attr& attr,
                   std::uint64_t user_data) noexcept
{
    return make<dapxc_ep>(dapx::XrcEndpoint::create(
        pd.object, {.request = request_evd.object, .connect = connect_evd.object},
        dapx::detail::from_abi(attr, user_data), object_of(xrcd)));
}

/// What has receives, and accepts connections; nullptr of XRC.
dapx::Endpoint* rc_of(dapxc_ep& ep) noexcept
{
    return std::get_if<dapx::Endpoint>(&ep.either);
}

dapx::ConnectOptions options_of(const dapxc_connect_options* options) noexcept
{
    if (options == nullptr)
        return {};
    return {
        .deadline = deadline_of(options->deadline),
        .retry_count = options->retry_count,
        .rnr_retry_count = options->rnr_retry_count,
        .private_data = bytes(options->private_data, options->private_data_len),
    };
}

/// 0, or what is wrong with them. Members of later versions may be there, if they ask for nothing.
int check(const dapxc_connect_options* options) noexcept
{
    if (options == nullptr)
        return 0;
    if (options->size < sizeof(*options) ||
        !valid_bytes(options->private_data, options->private_data_len))
        return invalid();
    const auto more = bytes(options, options->size).subspan(sizeof(*options));
    if (std::ranges::any_of(more, [](std::byte b) { return b != std::byte{}; }))
        return keep(E2BIG, "the program was built for a later libdapx, and asks for what this one "
                           "lacks");
    return 0;
}

int connect_cm(dapxc_ep* ep, const dapxc_cm* cm, const dapxc_connect_options* options,
               bool by_steps) noexcept
{
    if (ep == nullptr || cm == nullptr)
        return invalid();
    if (const int error = check(options); error != 0)
        return error;
    dapx::ConnectOptions connect = options_of(options);
    connect.by_steps = by_steps;
    return errno_of(ep->object.connect(cm->object, connect));
}

int accept(dapxc_ep* ep, dapxc_cm* request, std::uint8_t rnr_retry_count, const void* private_data,
           std::size_t private_data_len, bool by_steps) noexcept
{
    if (ep == nullptr || request == nullptr || !valid_bytes(private_data, private_data_len))
        return invalid();
    dapx::Endpoint* rc = rc_of(*ep);
    if (rc == nullptr)
        return keep(EOPNOTSUPP,
                    "an XRC endpoint accepts no connection; dapxc_xrc_qp_accept() does");
    const auto done = rc->accept(std::move(request->object),
                                 {.rnr_retry_count = rnr_retry_count,
                                  .by_steps = by_steps,
                                  .private_data = bytes(private_data, private_data_len)});
    if (done)
        delete request;
    return errno_of(done);
}

} // namespace

dapxc_ep* dapxc_ep_create(const dapxc_pd* pd, const dapxc_evd* request_evd,
                          const dapxc_evd* recv_evd, const dapxc_evd* connect_evd,
                          const dapxc_srq* srq, const dapx_ep_attr* attr, uint64_t user_data)
{
    if (pd == nullptr || request_evd == nullptr || connect_evd == nullptr || attr == nullptr)
        return fail(invalid());
    if (!known_flags(*attr))
        return unknown_flag();
    if ((attr->flags & DAPX_EP_XRC) != 0)
        return srq == nullptr ? make_xrc(*pd, *request_evd, *connect_evd, nullptr, *attr, user_data)
                              : fail(invalid());
    return make<dapxc_ep>(dapx::Endpoint::create(pd->object,
                                                 {.request = request_evd->object,
                                                  .recv = object_of(recv_evd),
                                                  .connect = connect_evd->object},
                                                 dapx::detail::from_abi(*attr, user_data),
                                                 object_of(srq)));
}

dapxc_ep* dapxc_ep_create_xrc(const dapxc_pd* pd, const dapxc_evd* request_evd,
                              const dapxc_evd* connect_evd, const dapxc_xrcd* xrcd,
                              const dapx_ep_attr* attr, uint64_t user_data)
{
    if (pd == nullptr || request_evd == nullptr || connect_evd == nullptr || attr == nullptr)
        return fail(invalid());
    if (!known_flags(*attr))
        return unknown_flag();
    return make_xrc(*pd, *request_evd, *connect_evd, xrcd, *attr, user_data);
}

int dapxc_ep_post_send(dapxc_ep* ep, const dapx_send_wr* wr, const void* payload, uint32_t flags)
{
    if (ep == nullptr || wr == nullptr || !valid_post_flags(flags))
        return EINVAL;
    if (!valid_bytes(payload, (wr->flags & DAPX_SEND_INLINE) != 0 ? wr->inline_len : wr->num_sge))
        return EINVAL;
    return errno_of(ep->object.post_wr(*wr, payload, doorbell_of(flags)));
}

int dapxc_ep_submit(dapxc_ep* ep)
{
    return ep != nullptr ? errno_of(ep->object.submit()) : EINVAL;
}

int dapxc_ep_post_recv(dapxc_ep* ep, uint64_t wr_id, const dapx_sge* segments, uint32_t num_sge,
                       uint32_t flags)
{
    if (ep == nullptr || !valid_bytes(segments, num_sge) || !valid_recv_flags(flags))
        return EINVAL;
    dapx::Endpoint* rc = rc_of(*ep);
    if (rc == nullptr)
        return EINVAL;
    return errno_of(rc->post_recv(wr_id, std::span(segments, num_sge), doorbell_of(flags),
                                  recv_flags_of(flags)));
}

int dapxc_ep_submit_recv(dapxc_ep* ep)
{
    if (ep == nullptr)
        return EINVAL;
    dapx::Endpoint* rc = rc_of(*ep);
    return rc != nullptr ? errno_of(rc->submit_recv()) : 0;
}

int dapxc_ep_resize(dapxc_ep* ep, const dapx_ep_attr* attr, const dapxc_srq* srq)
{
    if (ep == nullptr || attr == nullptr)
        return invalid();
    dapx::Endpoint* rc = rc_of(*ep);
    if (rc == nullptr || (attr->flags & DAPX_EP_XRC) != 0)
        return keep(EOPNOTSUPP, "an endpoint of XRC keeps its sizes");
    if (!known_flags(*attr))
        return keep(EOPNOTSUPP, "an unknown flag of an endpoint");
    return errno_of(rc->resize(dapx::detail::from_abi(*attr, 0), object_of(srq)));
}

int dapxc_ep_modify(dapxc_ep* ep, dapx_ep_modify* changes)
{
    if (ep == nullptr || !has_room(changes, offsetof(dapx_ep_modify, mask)))
        return invalid();
    changes->ep = ep->object.handle();
    return ask(ep->object.context(), *changes, "cannot change the endpoint");
}

int dapxc_ep_modify_qp(dapxc_ep* ep, const dapx_qp_attr* step)
{
    if (ep == nullptr || step == nullptr)
        return invalid();
    return errno_of(ep->object.qp_step(*step));
}

int dapxc_ep_connect(dapxc_ep* ep, const sockaddr* destination, const sockaddr* source,
                     const dapxc_connect_options* options)
{
    if (ep == nullptr || destination == nullptr)
        return invalid();
    if (const int error = check(options); error != 0)
        return error;
    dapx::ConnectOptions connect = options_of(options);
    if (source != nullptr)
        connect.source = dapx::Address(*source);
    return errno_of(ep->object.connect(dapx::Address(*destination), connect));
}

int dapxc_ep_connect_cm(dapxc_ep* ep, const dapxc_cm* cm, const dapxc_connect_options* options)
{
    return connect_cm(ep, cm, options, false);
}

int dapxc_ep_connect_by_steps(dapxc_ep* ep, const dapxc_cm* cm,
                              const dapxc_connect_options* options)
{
    return connect_cm(ep, cm, options, true);
}

int dapxc_ep_accept(dapxc_ep* ep, dapxc_cm* request, uint8_t rnr_retry_count,
                    const void* private_data, size_t private_data_len)
{
    return accept(ep, request, rnr_retry_count, private_data, private_data_len, false);
}

int dapxc_ep_accept_by_steps(dapxc_ep* ep, dapxc_cm* request, uint8_t rnr_retry_count,
                             const void* private_data, size_t private_data_len)
{
    return accept(ep, request, rnr_retry_count, private_data, private_data_len, true);
}

int dapxc_ep_establish(dapxc_ep* ep)
{
    return ep != nullptr ? errno_of(ep->object.establish()) : invalid();
}

int dapxc_ep_disconnect(dapxc_ep* ep, uint32_t flags)
{
    if (ep == nullptr)
        return invalid();
    if ((flags & ~std::uint32_t{DAPX_DISCONNECT_ABRUPT}) != 0)
        return keep(EOPNOTSUPP, "an unknown flag of a disconnect");
    return errno_of((flags & DAPX_DISCONNECT_ABRUPT) != 0 ? ep->object.disconnect_now()
                                                          : ep->object.disconnect());
}

int dapxc_ep_reset(dapxc_ep* ep)
{
    return ep != nullptr ? errno_of(ep->object.reset()) : invalid();
}

int dapxc_ep_query(const dapxc_ep* ep, dapx_ep_query* query)
{
    if (ep == nullptr || !has_room(query, offsetof(dapx_ep_query, out_state)))
        return invalid();
    query->ep = ep->object.handle();
    return ask(ep->object.context(), *query, "cannot query the endpoint");
}

uint32_t dapxc_ep_handle(const dapxc_ep* ep)
{
    return handle_of(ep);
}

uint32_t dapxc_ep_qp_num(const dapxc_ep* ep)
{
    return ep != nullptr ? ep->object.qp_num() : 0;
}

uint32_t dapxc_ep_state(const dapxc_ep* ep)
{
    return ep != nullptr ? static_cast<std::uint32_t>(ep->object.state()) : 0;
}

int dapxc_ep_free(dapxc_ep* ep)
{
    return take_back(ep);
}
