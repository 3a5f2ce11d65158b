// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "qp.hpp"

#include "calls.hpp"
#include "libibverbs.hpp"
#include "own.hpp"
#include "qp_steps.hpp"
#include "rdma_id.hpp"
#include "xrc_recv_qp.hpp"

namespace dapx::verbs {

Qp::Qp(Context& owner, ibv_qp_type type, void* consumer, RdmaId* cm) noexcept : ibv_qp_ex{}, cm_(cm)
{
    qp_base.context = &owner.context;
    qp_base.qp_context = consumer;
    qp_base.qp_type = type;
    qp_base.state = IBV_QPS_RESET;
    pthread_mutex_init(&qp_base.mutex, nullptr);
    pthread_cond_init(&qp_base.cond, nullptr);
    owner.get();
    if (cm_ == nullptr)
        return;
    attributes_.qp_access_flags = rights_without(0);
    cm_->set_qp(*this);
}

Qp::~Qp()
{
    pthread_cond_destroy(&qp_base.cond);
    pthread_mutex_destroy(&qp_base.mutex);
}

void Qp::join_cm(RdmaId& cm) noexcept
{
    if (cm_ == &cm)
        return;
    leave_cm();
    cm_ = &cm;
    cm.set_qp(*this);
}

void Qp::leave_cm() noexcept
{
    if (cm_ != nullptr)
        cm_->forget_qp();
    cm_ = nullptr;
}

const core::Evd* Qp::connect_evd() const noexcept
{
    return cm_ != nullptr ? &cm_->evd() : nullptr;
}

int Qp::modify(const ibv_qp_attr& attr, int attr_mask) noexcept
{
    const std::lock_guard guard(modify_lock_);
    const ibv_qp_state from = current_state();
    const ibv_qp_state to = (attr_mask & IBV_QP_STATE) != 0 ? attr.qp_state : from;
    if ((attr_mask & IBV_QP_CUR_STATE) != 0 && attr.cur_qp_state != from)
        return EINVAL;
    int error = check_step(qp_base.qp_type, from, to, attr_mask);
    ibv_qp_attr now{};
    ibv_qp_init_attr created{};
    if (error == 0)
        query(now, created);
    if (error == 0 && changes_what_is_fixed(qp_base.qp_type, from, attr, attr_mask, now))
        return EOPNOTSUPP;
    if (error == 0 && to == IBV_QPS_RESET)
        error = reset();
    else if (error == 0 && to == IBV_QPS_ERR)
        error = to_error();
    else if (error == 0 && to != from)
        error = step(step_of(to, attr));
    if (error == 0 && to == IBV_QPS_RTS && qp_base.qp_type == IBV_QPT_RC &&
        (attr_mask & IBV_QP_MIN_RNR_TIMER) != 0)
        error = set_rnr_timer(attr.min_rnr_timer);
    if (error == EBADFD)
        return EINVAL;
    if (error == 0) {
        remember(attr, attr_mask);
        qp_base.state = to;
    }
    return error;
}

void Qp::remember(const ibv_qp_attr& attr, int attr_mask) noexcept
{
    const auto keep = [&](int bit, auto ibv_qp_attr::* member) {
        if ((attr_mask & bit) != 0)
            attributes_.*member = attr.*member;
    };
    if ((attr_mask & IBV_QP_STATE) != 0 && attr.qp_state == IBV_QPS_RESET)
        attributes_ = {};
    keep(IBV_QP_ACCESS_FLAGS, &ibv_qp_attr::qp_access_flags);
    keep(IBV_QP_PKEY_INDEX, &ibv_qp_attr::pkey_index);
    keep(IBV_QP_PORT, &ibv_qp_attr::port_num);
    keep(IBV_QP_AV, &ibv_qp_attr::ah_attr);
    keep(IBV_QP_PATH_MTU, &ibv_qp_attr::path_mtu);
    keep(IBV_QP_DEST_QPN, &ibv_qp_attr::dest_qp_num);
    keep(IBV_QP_RQ_PSN, &ibv_qp_attr::rq_psn);
    keep(IBV_QP_MAX_DEST_RD_ATOMIC, &ibv_qp_attr::max_dest_rd_atomic);
    keep(IBV_QP_MIN_RNR_TIMER, &ibv_qp_attr::min_rnr_timer);
    keep(IBV_QP_TIMEOUT, &ibv_qp_attr::timeout);
    keep(IBV_QP_RETRY_CNT, &ibv_qp_attr::retry_cnt);
    keep(IBV_QP_RNR_RETRY, &ibv_qp_attr::rnr_retry);
    keep(IBV_QP_SQ_PSN, &ibv_qp_attr::sq_psn);
    keep(IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic);
}

void Qp::await_acknowledgements() noexcept
{
    pthread_mutex_lock(&qp_base.mutex);
    while (qp_base.events_completed != reported_)
        pthread_cond_wait(&qp_base.cond, &qp_base.mutex);
    pthread_mutex_unlock(&qp_base.mutex);
}

// ---------------------------------------------------------------------------------- create

namespace {

constexpr std::uint64_t known_send_ops =
    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
    IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

/// Deletes what could not be made. @return nullptr and errno.
ibv_qp* not_made(Qp* qp, int error) noexcept
{
    Context& owner = qp->owner();
    delete qp;
    owner.put();
    return failed_null<ibv_qp>(error);
}

/// RC and XRC_SEND.
ibv_qp* create_endpoint_qp(ibv_context* context, ibv_qp_init_attr_ex& attr, RdmaId* cm) noexcept
{
    const bool rc = attr.qp_type == IBV_QPT_RC;
    const auto is_of = [context](const auto* object) {
        return object != nullptr && object->context == context;
    };
    if ((attr.comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || !is_of(attr.pd) || !is_of(attr.send_cq) ||
        (rc && !is_of(attr.recv_cq)) || (rc && attr.srq != nullptr && !is_of(attr.srq)) ||
        (attr.srq != nullptr && Srq::of(attr.srq)->is_xrc()))
        return failed_null<ibv_qp>(EINVAL);
    std::uint64_t send_ops = 0;
    if ((attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0)
        send_ops = attr.send_ops_flags;
    if ((send_ops & ~known_send_ops) != 0)
        return failed_null<ibv_qp>(EOPNOTSUPP);
    auto* qp = new (std::nothrow) EndpointQp(*Pd::of(attr.pd), attr, cm);
    if (qp == nullptr)
        return failed_null<ibv_qp>(ENOMEM);
    if (const int error = qp->init(attr.cap, send_ops))
        return not_made(qp, error);
    return &qp->qp_base;
}

ibv_qp* finish_recv_qp(XrcRecvQp* qp, int error) noexcept
{
    return error != 0 ? not_made(qp, error) : &qp->qp_base;
}

ibv_qp* create(ibv_context* context, ibv_qp_init_attr_ex* attr, RdmaId* cm) noexcept
{
    constexpr std::uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
                                    IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    if (!Context::of(context).is_open())
        return failed_null<ibv_qp>(EINVAL);
    if ((attr->comp_mask & ~known) != 0 ||
        ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && attr->create_flags != 0))
        return failed_null<ibv_qp>(EOPNOTSUPP);
    switch (attr->qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_XRC_SEND:
        return create_endpoint_qp(context, *attr, cm);
    case IBV_QPT_XRC_RECV: {
        if ((attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) == 0 || attr->xrcd == nullptr ||
            attr->xrcd->context != context)
            return failed_null<ibv_qp>(EINVAL);
        auto* qp = new (std::nothrow) XrcRecvQp(*Xrcd::of(attr->xrcd), attr->qp_context, cm);
        return qp != nullptr ? finish_recv_qp(qp, qp->create()) : failed_null<ibv_qp>(ENOMEM);
    }
    default:
        return failed_null<ibv_qp>(EOPNOTSUPP);
    }
}

} // namespace

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) noexcept
{
    return create(context, attr, nullptr);
}

ibv_qp* create_qp_of(RdmaId& id, ibv_qp_init_attr_ex& attr) noexcept
{
    return create(id.verbs, &attr, &id);
}

ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr) noexcept
{
    constexpr std::uint32_t needed =
        IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    if (!Context::of(context).is_open() || (attr->comp_mask & needed) != needed ||
        attr->xrcd == nullptr || attr->xrcd->context != context ||
        attr->qp_type != IBV_QPT_XRC_RECV)
        return failed_null<ibv_qp>(EINVAL);
    if ((attr->comp_mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT)) != 0)
        return failed_null<ibv_qp>(EOPNOTSUPP);
    void* consumer = (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0 ? attr->qp_context : nullptr;
    auto* qp = new (std::nothrow) XrcRecvQp(*Xrcd::of(attr->xrcd), consumer, nullptr);
    return qp != nullptr ? finish_recv_qp(qp, qp->open(attr->qp_num)) : failed_null<ibv_qp>(ENOMEM);
}

} // namespace dapx::verbs

// ------------------------------------------------------------------------------- functions

using namespace dapx::verbs;

DAPX_VERBS ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr)
{
    if (is_foreign(pd))
        return DAPX_LIBIBVERBS(ibv_create_qp)(pd, attr);
    if (pd == nullptr || attr == nullptr)
        return failed_null<ibv_qp>(EINVAL);
    ibv_qp_init_attr_ex all{};
    all.qp_context = attr->qp_context;
    all.send_cq = attr->send_cq;
    all.recv_cq = attr->recv_cq;
    all.srq = attr->srq;
    all.cap = attr->cap;
    all.qp_type = attr->qp_type;
    all.sq_sig_all = attr->sq_sig_all;
    all.comp_mask = IBV_QP_INIT_ATTR_PD;
    all.pd = pd;
    ibv_qp* qp = create_qp_ex(pd->context, &all);
    if (qp != nullptr)
        attr->cap = all.cap;
    return qp;
}

DAPX_VERBS int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int attr_mask)
{
    if (is_foreign(qp))
        return DAPX_LIBIBVERBS(ibv_modify_qp)(qp, attr, attr_mask);
    if (qp == nullptr || attr == nullptr)
        return failed(EINVAL);
    const int error = Qp::of(qp)->modify(*attr, attr_mask);
    return error != 0 ? failed(error) : 0;
}

DAPX_VERBS int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int attr_mask, ibv_qp_init_attr* init)
{
    if (is_foreign(qp))
        return DAPX_LIBIBVERBS(ibv_query_qp)(qp, attr, attr_mask, init);
    if (qp == nullptr || attr == nullptr || init == nullptr)
        return failed(EINVAL);
    Qp::of(qp)->query(*attr, *init);
    qp->state = attr->qp_state;
    return 0;
}

DAPX_VERBS int ibv_destroy_qp(ibv_qp* qp)
{
    if (is_foreign(qp))
        return DAPX_LIBIBVERBS(ibv_destroy_qp)(qp);
    if (qp == nullptr)
        return failed(EINVAL);
    return end_and_delete(*Qp::of(qp));
}
