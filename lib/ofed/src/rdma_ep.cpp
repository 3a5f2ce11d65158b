// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What librdmacm makes of ids and verbs together: queue pairs of an id, and ids with all that they need.
#include "calls.hpp"
#include "qp.hpp"
#include "rdma_id.hpp"

namespace dapx::verbs {

namespace {

bool is_used(const rdma_cm_id& id, const ibv_cq* cq) noexcept
{
    return (id.qp != nullptr && (id.qp->send_cq == cq || id.qp->recv_cq == cq)) ||
           (id.srq != nullptr && Srq::of(id.srq)->completes_to(cq));
}

void destroy_if_unused(const rdma_cm_id& id, ibv_comp_channel*& channel, ibv_cq*& cq) noexcept
{
    if (cq != nullptr && (is_used(id, cq) || ibv_destroy_cq(cq) != 0))
        return;
    cq = nullptr;
    if (channel != nullptr)
        ibv_destroy_comp_channel(channel);
    channel = nullptr;
}

/// Those that neither its queue pair nor its shared receive queue uses. ibv_destroy_cq() would not
/// refuse the others if the device is gone.
void destroy_unused_cqs(rdma_cm_id& id) noexcept
{
    destroy_if_unused(id, id.send_cq_channel, id.send_cq);
    destroy_if_unused(id, id.recv_cq_channel, id.recv_cq);
}

/// Unless the id has it. 0 or an errno.
int make_cq(rdma_cm_id& id, std::uint32_t depth, ibv_comp_channel*& channel, ibv_cq*& cq) noexcept
{
    if (depth == 0 || cq != nullptr)
        return 0;
    channel = ibv_create_comp_channel(id.verbs);
    if (channel == nullptr)
        return errno;
    cq = ibv_create_cq(id.verbs, static_cast<int>(depth), &id, channel, 0);
    return cq != nullptr ? 0 : errno;
}

/// Those that the id has not. 0, or an errno: then it has no more than before.
int make_cqs(rdma_cm_id& id, std::uint32_t send_depth, std::uint32_t recv_depth) noexcept
{
    int error = make_cq(id, recv_depth, id.recv_cq_channel, id.recv_cq);
    if (error == 0)
        error = make_cq(id, send_depth, id.send_cq_channel, id.send_cq);
    if (error != 0)
        destroy_unused_cqs(id);
    return error;
}

bool differ(const ibv_cq* own, const ibv_cq* given) noexcept
{
    return own != nullptr && given != nullptr && own != given;
}

int create_qp(RdmaId& id, ibv_qp_init_attr_ex& attr) noexcept
{
    if (id.qp != nullptr || id.device() == nullptr || id.verbs == nullptr)
        return EINVAL;
    if ((attr.comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attr.pd == nullptr) {
        attr.comp_mask |= IBV_QP_INIT_ATTR_PD;
        attr.pd = id.pd;
    }
    if (attr.pd == nullptr || attr.pd->context != id.verbs || differ(id.send_cq, attr.send_cq) ||
        differ(id.recv_cq, attr.recv_cq))
        return EINVAL;
    if (attr.qp_type == IBV_QPT_XRC_RECV &&
        ((attr.comp_mask & IBV_QP_INIT_ATTR_XRCD) == 0 || attr.xrcd == nullptr)) {
        attr.comp_mask |= IBV_QP_INIT_ATTR_XRCD;
        attr.xrcd = id.device()->xrcd();
        if (attr.xrcd == nullptr)
            return errno;
    }
    const bool receives = attr.qp_type == IBV_QPT_RC;
    const bool needs_send_cq = attr.send_cq == nullptr && attr.qp_type != IBV_QPT_XRC_RECV;
    const bool needs_recv_cq = attr.recv_cq == nullptr && receives;
    if (const int error = make_cqs(id, needs_send_cq ? attr.cap.max_send_wr : 0,
                                   needs_recv_cq ? attr.cap.max_recv_wr : 0))
        return error;
    if (attr.send_cq == nullptr)
        attr.send_cq = id.send_cq;
    if (attr.recv_cq == nullptr)
        attr.recv_cq = id.recv_cq;
    if (attr.srq == nullptr && receives)
        attr.srq = id.srq;
    // Without a queue of one kind, its completions cannot come.
    if (attr.send_cq == nullptr)
        attr.send_cq = attr.recv_cq;
    if (attr.recv_cq == nullptr)
        attr.recv_cq = attr.send_cq;
    ibv_qp* qp = create_qp_of(id, attr);
    if (qp == nullptr) {
        const int error = errno;
        destroy_unused_cqs(id);
        return error;
    }
    id.qp = qp;
    if (id.pd == nullptr || attr.pd != nullptr)
        id.pd = attr.pd;
    return 0;
}

int create_qp(RdmaId& id, ibv_pd* pd, ibv_qp_init_attr& attr) noexcept
{
    ibv_qp_init_attr_ex all{};
    all.qp_context = attr.qp_context;
    all.send_cq = attr.send_cq;
    all.recv_cq = attr.recv_cq;
    all.srq = attr.srq;
    all.cap = attr.cap;
    all.qp_type = attr.qp_type;
    all.sq_sig_all = attr.sq_sig_all;
    all.comp_mask = IBV_QP_INIT_ATTR_PD;
    all.pd = pd;
    const int error = create_qp(id, all);
    if (error != 0)
        return error;
    attr.send_cq = all.send_cq;
    attr.recv_cq = all.recv_cq;
    attr.srq = all.srq;
    attr.cap = all.cap;
    return 0;
}

int create_srq(RdmaId& id, ibv_srq_init_attr_ex& attr) noexcept
{
    if ((attr.comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 || id.device() == nullptr ||
        id.verbs == nullptr || id.srq != nullptr)
        return EINVAL;
    if ((attr.comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attr.pd == nullptr) {
        attr.comp_mask |= IBV_SRQ_INIT_ATTR_PD;
        attr.pd = id.pd;
    }
    if (attr.srq_type == IBV_SRQT_XRC) {
        if ((attr.comp_mask & IBV_SRQ_INIT_ATTR_XRCD) == 0 || attr.xrcd == nullptr)
            attr.xrcd = id.device()->xrcd();
        if (attr.xrcd == nullptr)
            return errno;
        if ((attr.comp_mask & IBV_SRQ_INIT_ATTR_CQ) == 0 || attr.cq == nullptr) {
            if (const int error = make_cqs(id, 0, attr.attr.max_wr))
                return error;
            attr.cq = id.recv_cq;
        }
        attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    }
    id.srq = create_srq_ex(id.verbs, &attr);
    if (id.srq != nullptr)
        return 0;
    const int error = errno;
    destroy_unused_cqs(id);
    return error;
}

void destroy_qp(rdma_cm_id& id) noexcept
{
    if (id.qp != nullptr && ibv_destroy_qp(id.qp) == 0)
        id.qp = nullptr;
    destroy_unused_cqs(id);
}

void destroy_srq(rdma_cm_id& id) noexcept
{
    if (id.srq != nullptr && ibv_destroy_srq(id.srq) == 0)
        id.srq = nullptr;
    destroy_unused_cqs(id);
}

void destroy_ep(RdmaId& id) noexcept
{
    destroy_qp(id);
    destroy_srq(id);
    (void)id.destroy();
}

constexpr int resolve_ms = 2000;

int set_up(RdmaId& id, const rdma_addrinfo& info, ibv_pd* pd, ibv_qp_init_attr* attr) noexcept
{
    if ((info.ai_flags & RAI_PASSIVE) != 0) {
        if (info.ai_src_addr == nullptr)
            return EINVAL;
        if (pd != nullptr)
            id.pd = pd;
        if (attr != nullptr)
            id.set_request_qp(*attr);
        return id.bind(core::Address(*info.ai_src_addr));
    }
    if (info.ai_dst_addr == nullptr)
        return EINVAL;
    const core::Address source =
        info.ai_src_addr != nullptr ? core::Address(*info.ai_src_addr) : core::Address();
    if (const int error = id.resolve_address(source, core::Address(*info.ai_dst_addr), resolve_ms))
        return error;
    if (const int error = id.resolve_route(resolve_ms))
        return error;
    if (attr == nullptr)
        return 0;
    attr->qp_type = id.qp_type;
    return create_qp(id, pd, *attr);
}

/// Of a listener: the next request. 0 or an errno.
int get_request(RdmaId& listener, rdma_cm_id*& id) noexcept
{
    if (!listener.is_synchronous())
        return EINVAL;
    if (listener.event != nullptr)
        rdma_ack_cm_event(listener.event);
    listener.event = static_cast<EventChannel*>(listener.channel)->next();
    if (listener.event == nullptr)
        return errno;
    if (listener.event->status != 0)
        return std::abs(listener.event->status);
    if (listener.event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
        return EINVAL;
    auto& request = *static_cast<RdmaId*>(listener.event->id);
    if (const ibv_qp_init_attr* wanted = listener.request_qp()) {
        ibv_qp_init_attr attr = *wanted;
        attr.qp_type = listener.qp_type;
        if (const int error = create_qp(request, listener.pd, attr)) {
            (void)request.destroy();
            return error;
        }
    }
    id = &request;
    // The event goes with the request, which acknowledges it.
    id->event = std::exchange(listener.event, nullptr);
    return 0;
}

} // namespace

} // namespace dapx::verbs

using namespace dapx::verbs;

DAPX_VERBS int rdma_create_qp_ex(rdma_cm_id* id, ibv_qp_init_attr_ex* attr)
{
    return on_id(
        id, [=](RdmaId& own) { return attr != nullptr ? create_qp(own, *attr) : EINVAL; },
        [=] { return DAPX_LIBRDMACM(rdma_create_qp_ex)(id, attr); });
}

DAPX_VERBS int rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attr)
{
    return on_id(
        id, [=](RdmaId& own) { return attr != nullptr ? create_qp(own, pd, *attr) : EINVAL; },
        [=] { return DAPX_LIBRDMACM(rdma_create_qp)(id, pd, attr); });
}

DAPX_VERBS void rdma_destroy_qp(rdma_cm_id* id)
{
    (void)on_id(
        id,
        [](RdmaId& own) {
            destroy_qp(own);
            return 0;
        },
        [=] {
            DAPX_LIBRDMACM(rdma_destroy_qp)(id);
            return 0;
        });
}

DAPX_VERBS int rdma_create_srq_ex(rdma_cm_id* id, ibv_srq_init_attr_ex* attr)
{
    return on_id(
        id, [=](RdmaId& own) { return attr != nullptr ? create_srq(own, *attr) : EINVAL; },
        [=] { return DAPX_LIBRDMACM(rdma_create_srq_ex)(id, attr); });
}

DAPX_VERBS int rdma_create_srq(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* attr)
{
    return on_id(
        id,
        [=](RdmaId& own) {
            if (attr == nullptr)
                return EINVAL;
            ibv_srq_init_attr_ex all{};
            all.srq_context = attr->srq_context;
            all.attr = attr->attr;
            all.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
            all.srq_type = own.qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
            all.pd = pd;
            const int error = create_srq(own, all);
            if (error == 0)
                attr->attr = all.attr;
            return error;
        },
        [=] { return DAPX_LIBRDMACM(rdma_create_srq)(id, pd, attr); });
}

DAPX_VERBS void rdma_destroy_srq(rdma_cm_id* id)
{
    (void)on_id(
        id,
        [](RdmaId& own) {
            destroy_srq(own);
            return 0;
        },
        [=] {
            DAPX_LIBRDMACM(rdma_destroy_srq)(id);
            return 0;
        });
}

DAPX_VERBS int rdma_create_ep(rdma_cm_id** id, rdma_addrinfo* res, ibv_pd* pd,
                              ibv_qp_init_attr* qp_init_attr)
{
    if (is_for_librdmacm(__builtin_return_address(0)))
        return DAPX_LIBRDMACM(rdma_create_ep)(id, res, pd, qp_init_attr);
    if (id == nullptr || res == nullptr)
        return zero_or_errno(EINVAL);
    rdma_cm_id* made = nullptr;
    if (rdma_create_id(nullptr, &made, nullptr, static_cast<rdma_port_space>(res->ai_port_space)))
        return -1;
    RdmaId& own = *RdmaId::find(made);
    own.qp_type = static_cast<ibv_qp_type>(res->ai_qp_type);
    if (const int error = set_up(own, *res, pd, qp_init_attr)) {
        destroy_ep(own);
        return zero_or_errno(error);
    }
    *id = made;
    return 0;
}

DAPX_VERBS void rdma_destroy_ep(rdma_cm_id* id)
{
    (void)on_id(
        id,
        [](RdmaId& own) {
            destroy_ep(own);
            return 0;
        },
        [=] {
            DAPX_LIBRDMACM(rdma_destroy_ep)(id);
            return 0;
        });
}

DAPX_VERBS int rdma_get_request(rdma_cm_id* listen, rdma_cm_id** id)
{
    return on_id(
        listen, [=](RdmaId& own) { return id != nullptr ? get_request(own, *id) : EINVAL; },
        [=] { return DAPX_LIBRDMACM(rdma_get_request)(listen, id); });
}
