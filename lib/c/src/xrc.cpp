// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// <dapx/c.h>: shared receive queues, XRC domains, XRC receive queue pairs.
#include "handles.hpp"

using namespace dapx::c;

dapxc_xrcd* dapxc_xrcd_open(const dapxc_context* context, int fd, int oflag, uint64_t user_data)
{
    if (context == nullptr)
        return fail(invalid());
    return make<dapxc_xrcd>(dapx::XrcDomain::open(context->object, fd, oflag, user_data));
}

uint32_t dapxc_xrcd_handle(const dapxc_xrcd* xrcd)
{
    return handle_of(xrcd);
}

int dapxc_xrcd_close(dapxc_xrcd* xrcd)
{
    return take_back(xrcd);
}

dapxc_srq* dapxc_srq_create(const dapxc_pd* pd, const dapxc_evd* evd, uint32_t depth,
                            uint32_t max_sge, uint64_t user_data)
{
    if (pd == nullptr)
        return fail(invalid());
    return make<dapxc_srq>(dapx::Srq::create(
        pd->object, {.depth = depth, .max_sge = max_sge, .user_data = user_data}, object_of(evd)));
}

dapxc_srq* dapxc_srq_create_xrc(const dapxc_xrcd* xrcd, const dapxc_pd* pd, const dapxc_evd* evd,
                                uint32_t depth, uint32_t max_sge, uint64_t user_data)
{
    if (xrcd == nullptr || pd == nullptr || evd == nullptr)
        return fail(invalid());
    return make<dapxc_srq>(
        dapx::Srq::create_xrc(xrcd->object, pd->object, evd->object,
                              {.depth = depth, .max_sge = max_sge, .user_data = user_data}));
}

int dapxc_srq_post_recv(dapxc_srq* srq, uint64_t wr_id, const dapx_sge* segments, uint32_t num_sge,
                        uint32_t flags)
{
    if (srq == nullptr || !valid_bytes(segments, num_sge) || !valid_recv_flags(flags))
        return EINVAL;
    return errno_of(srq->object.post_recv(wr_id, std::span(segments, num_sge), doorbell_of(flags),
                                          recv_flags_of(flags)));
}

int dapxc_srq_submit(dapxc_srq* srq)
{
    return srq != nullptr ? errno_of(srq->object.submit()) : EINVAL;
}

int dapxc_srq_resize(dapxc_srq* srq, uint32_t depth)
{
    return srq != nullptr ? errno_of(srq->object.resize(depth)) : invalid();
}

int dapxc_srq_set_limit(dapxc_srq* srq, uint32_t receives)
{
    return srq != nullptr ? errno_of(srq->object.set_limit(receives)) : invalid();
}

int dapxc_srq_query(const dapxc_srq* srq, dapx_srq_query* query)
{
    if (srq == nullptr || !has_room(query, offsetof(dapx_srq_query, out_pd)))
        return invalid();
    query->srq = srq->object.handle();
    return ask(srq->object.context(), *query, "cannot query the shared receive queue");
}

uint32_t dapxc_srq_handle(const dapxc_srq* srq)
{
    return handle_of(srq);
}

uint32_t dapxc_srq_number(const dapxc_srq* srq)
{
    return srq != nullptr ? srq->object.number() : 0;
}

int dapxc_srq_free(dapxc_srq* srq)
{
    return take_back(srq);
}

int dapxc_xrc_qp_create(const dapxc_xrcd* xrcd, const dapxc_evd* evd, uint64_t user_data,
                        uint32_t* qp_num)
{
    if (xrcd == nullptr || qp_num == nullptr)
        return invalid();
    auto qp = dapx::XrcQp::create(xrcd->object, object_of(evd), user_data);
    if (qp)
        *qp_num = qp->release();
    return errno_of(qp);
}

int dapxc_xrc_qp_register(const dapxc_xrcd* xrcd, uint32_t qp_num, const dapxc_evd* evd,
                          uint64_t user_data)
{
    if (xrcd == nullptr)
        return invalid();
    auto qp = dapx::XrcQp::register_with(xrcd->object, qp_num, object_of(evd), user_data);
    if (qp)
        (void)qp->release();
    // To register twice is to register once: there is no object that could end it.
    return !qp && qp.error().code() == EEXIST ? 0 : errno_of(qp);
}

int dapxc_xrc_qp_unregister(const dapxc_xrcd* xrcd, uint32_t qp_num)
{
    return xrcd != nullptr ? errno_of(dapx::XrcQp::unregister(xrcd->object, qp_num)) : invalid();
}

int dapxc_xrc_qp_disconnect(const dapxc_xrcd* xrcd, uint32_t qp_num)
{
    return xrcd != nullptr ? errno_of(dapx::XrcQp::disconnect(xrcd->object, qp_num)) : invalid();
}

int dapxc_xrc_qp_modify(const dapxc_xrcd* xrcd, uint32_t qp_num, const dapx_qp_attr* step)
{
    if (xrcd == nullptr || step == nullptr)
        return invalid();
    return errno_of(dapx::XrcQp::step(xrcd->object, qp_num, *step));
}

int dapxc_xrc_qp_accept(const dapxc_xrcd* xrcd, uint32_t qp_num, dapxc_cm* request,
                        const void* private_data, size_t private_data_len)
{
    if (xrcd == nullptr || request == nullptr || !valid_bytes(private_data, private_data_len))
        return invalid();
    const auto done = dapx::XrcQp::accept(xrcd->object, qp_num, std::move(request->object),
                                          bytes(private_data, private_data_len));
    if (done)
        delete request;
    return errno_of(done);
}

int dapxc_xrc_qp_query(const dapxc_xrcd* xrcd, uint32_t qp_num, dapx_xrc_qp_query* query)
{
    if (xrcd == nullptr || !has_room(query, offsetof(dapx_xrc_qp_query, out_xrc_qp)))
        return invalid();
    query->xrcd = xrcd->object.handle();
    query->qp_num = qp_num;
    return ask(xrcd->object.context(), *query, "cannot query the receive queue pair");
}
