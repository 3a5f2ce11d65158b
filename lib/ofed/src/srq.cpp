// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "srq.hpp"

#include "calls.hpp"
#include "cookie.hpp"
#include "libibverbs.hpp"
#include "own.hpp"
#include "post.hpp"
#include "xrcd.hpp"

#include <algorithm>
#include <cerrno>

namespace dapx::verbs {

Srq::Srq(Pd& domain, void* consumer, Cq* completions) noexcept : ibv_srq{}, cq_(completions)
{
    context = domain.context;
    srq_context = consumer;
    pd = &domain;
    pthread_mutex_init(&mutex, nullptr);
    pthread_cond_init(&cond, nullptr);
    owner().get();
}

Srq::~Srq()
{
    pthread_cond_destroy(&cond);
    pthread_mutex_destroy(&mutex);
}

int Srq::init(Xrcd* domain, ibv_srq_attr& attr) noexcept
{
    const core::Srq::Options options = {
        .depth = attr.max_wr, .max_sge = std::max(attr.max_sge, 1U), .user_data = cookie_of(*this)};
    Pd& memory = *Pd::of(pd);
    if (domain != nullptr)
        if (const int error = memory.enable_xrc())
            return error;
    auto made = domain != nullptr
                    ? core::Srq::create_xrc(domain->core(), memory.core(), cq_->core(), options,
                                            &owner().async_evd())
                    : core::Srq::create(memory.core(), options, &owner().async_evd());
    if (!made)
        return made.error().code();
    core_ = std::move(*made);
    handle = core_->handle();
    attr = {.max_wr = core_->depth(), .max_sge = options.max_sge, .srq_limit = 0};
    return 0;
}

int Srq::post(ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept
{
    const std::lock_guard guard(lock_);
    return post_receives(*core_, wr, bad_wr, [this]() noexcept { return core_->submit(); });
}

int Srq::resize(std::uint32_t depth) noexcept
{
    const std::lock_guard guard(lock_);
    auto done = core_->resize(depth);
    if (done)
        return 0;
    // The module is older than the library.
    return done.error().code() == ENOTTY ? EOPNOTSUPP : done.error().code();
}

int Srq::end() noexcept
{
    const std::uint32_t object = core_->handle();
    if (const int error = free_core(*core_))
        return error;
    if (cq_ != nullptr)
        cq_->drop(object);
    owner().drop_events(object);
    return 0;
}

void Srq::await_acknowledgements() noexcept
{
    pthread_mutex_lock(&mutex);
    while (events_completed != reported_)
        pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept
{
    return Srq::of(srq)->post(wr, bad_wr);
}

Srq* Srq::create(Pd& pd, void* consumer, ibv_srq_attr& attr, Xrcd* domain, Cq* cq) noexcept
{
    auto* srq = new (std::nothrow) Srq(pd, consumer, cq);
    if (srq == nullptr)
        return failed_null<Srq>(ENOMEM);
    if (const int error = srq->init(domain, attr)) {
        Context& owner = srq->owner();
        delete srq;
        owner.put();
        return failed_null<Srq>(error);
    }
    return srq;
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) noexcept
{
    constexpr std::uint32_t for_xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    const std::uint32_t mask = attr->comp_mask;
    if ((mask & ~(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | for_xrc)) != 0)
        return failed_null<ibv_srq>(EOPNOTSUPP);
    const ibv_srq_type type =
        (mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 ? attr->srq_type : IBV_SRQT_BASIC;
    if (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC)
        return failed_null<ibv_srq>(EOPNOTSUPP);
    const bool xrc = type == IBV_SRQT_XRC;
    if ((mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attr->pd == nullptr || attr->pd->context != context ||
        !Context::of(context).is_open())
        return failed_null<ibv_srq>(EINVAL);
    if (xrc && ((mask & for_xrc) != for_xrc || attr->xrcd == nullptr || attr->cq == nullptr ||
                attr->xrcd->context != context || attr->cq->context != context))
        return failed_null<ibv_srq>(EINVAL);
    return Srq::create(*Pd::of(attr->pd), attr->srq_context, attr->attr,
                       xrc ? Xrcd::of(attr->xrcd) : nullptr, xrc ? Cq::of(attr->cq) : nullptr);
}

int get_srq_num(ibv_srq* srq, std::uint32_t* number) noexcept
{
    const Srq* own = Srq::of(srq);
    if (!own->is_xrc())
        return failed(EINVAL);
    *number = own->number();
    return 0;
}

} // namespace dapx::verbs

using namespace dapx::verbs;

DAPX_VERBS ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr)
{
    if (is_foreign(pd))
        return DAPX_LIBIBVERBS(ibv_create_srq)(pd, attr);
    if (pd == nullptr || attr == nullptr || !Pd::of(pd)->owner().is_open())
        return failed_null<ibv_srq>(EINVAL);
    return Srq::create(*Pd::of(pd), attr->srq_context, attr->attr, nullptr, nullptr);
}

DAPX_VERBS int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int attr_mask)
{
    if (is_foreign(srq))
        return DAPX_LIBIBVERBS(ibv_modify_srq)(srq, attr, attr_mask);
    if (srq == nullptr || attr == nullptr || (attr_mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0)
        return failed(EINVAL);
    if ((attr_mask & IBV_SRQ_MAX_WR) != 0)
        if (const int error = Srq::of(srq)->resize(attr->max_wr))
            return failed(error);
    if ((attr_mask & IBV_SRQ_LIMIT) == 0)
        return 0;
    auto done = Srq::of(srq)->core().set_limit(attr->srq_limit);
    return done ? 0 : failed(done.error().code());
}

DAPX_VERBS int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr)
{
    if (is_foreign(srq))
        return DAPX_LIBIBVERBS(ibv_query_srq)(srq, attr);
    if (srq == nullptr || attr == nullptr)
        return failed(EINVAL);
    auto info = Srq::of(srq)->core().query();
    if (!info)
        return failed(info.error().code());
    *attr = {.max_wr = info->depth, .max_sge = info->max_sge, .srq_limit = info->limit};
    return 0;
}

DAPX_VERBS int ibv_destroy_srq(ibv_srq* srq)
{
    if (is_foreign(srq))
        return DAPX_LIBIBVERBS(ibv_destroy_srq)(srq);
    if (srq == nullptr)
        return failed(EINVAL);
    return end_and_delete(*Srq::of(srq));
}
