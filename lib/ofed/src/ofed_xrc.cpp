// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The XRC calls of OFED 1.x: <infiniband/verbs.h> of include/ofed has their prototypes.
#include "cq.hpp"
#include "own.hpp"
#include "pd.hpp"
#include "qp_steps.hpp"
#include "srq.hpp"
#include "xrc_recv_qp.hpp"
#include "xrcd.hpp"

namespace dapx::verbs {

namespace {

/// ibv_qp_init_attr, as it was.
struct OfedInitAttr : ibv_qp_init_attr {
    OfedDomain* xrc_domain;
};

/// For functions that return 0 or a positive errno, of a call that has no object left to keep.
template <class T> int ended(const core::Result<T>& result) noexcept
{
    return result ? 0 : failed(result.error().code());
}

/// The module keeps the registration, by the number.
template <class Made> int kept(Made made, std::uint32_t* number) noexcept
{
    if (!made)
        return failed(made.error().code());
    const std::uint32_t released = made->release();
    if (number != nullptr)
        *number = released;
    return 0;
}

} // namespace

} // namespace dapx::verbs

using namespace dapx::verbs;

DAPX_VERBS OfedDomain* ibv_open_xrc_domain(ibv_context* context, int fd, int oflag)
{
    Context* own = Context::find(context);
    if (own == nullptr)
        return failed_null<OfedDomain>(context != nullptr ? EOPNOTSUPP : EINVAL);
    return own->is_open() ? Xrcd::open(*own, fd, oflag) : failed_null<OfedDomain>(EINVAL);
}

DAPX_VERBS int ibv_close_xrc_domain(OfedDomain* domain)
{
    return destroy(Xrcd::of(domain));
}

DAPX_VERBS ibv_srq* ibv_create_xrc_srq(ibv_pd* pd, OfedDomain* domain, ibv_cq* cq,
                                       ibv_srq_init_attr* attr)
{
    if (pd == nullptr || domain == nullptr || cq == nullptr || attr == nullptr || is_foreign(pd) ||
        domain->context != pd->context || cq->context != pd->context)
        return failed_null<ibv_srq>(EINVAL);
    Srq* srq =
        Srq::create(*Pd::of(pd), attr->srq_context, attr->attr, Xrcd::of(domain), Cq::of(cq));
    // The name by which those programs read it is that of a member which they have no other use for.
    if (srq != nullptr)
        srq->ibv_srq::handle = srq->number();
    return srq;
}

DAPX_VERBS int ibv_create_xrc_rcv_qp(OfedInitAttr* attr, std::uint32_t* number)
{
    if (attr == nullptr || attr->xrc_domain == nullptr || number == nullptr)
        return failed(EINVAL);
    Xrcd& domain = *Xrcd::of(attr->xrc_domain);
    return kept(core::XrcQp::create(domain.core(), &domain.owner().async_evd(), number_only),
                number);
}

DAPX_VERBS int ibv_modify_xrc_rcv_qp(OfedDomain* domain, std::uint32_t qp_num, ibv_qp_attr* attr,
                                     int attr_mask)
{
    if (domain == nullptr || attr == nullptr)
        return failed(EINVAL);
    const core::XrcDomain& core = Xrcd::of(domain)->core();
    const auto info = core::XrcQp::query(core, qp_num);
    if (!info)
        return failed(info.error().code());
    const ibv_qp_state from = verbs_state(info->state);
    const ibv_qp_state to = (attr_mask & IBV_QP_STATE) != 0 ? attr->qp_state : from;
    if (const int error = check_step(IBV_QPT_XRC_RECV, from, to, attr_mask))
        return failed(error);
    ibv_qp_attr now{};
    fill_in(now, *info);
    if (changes_what_is_fixed(IBV_QPT_XRC_RECV, from, *attr, attr_mask, now))
        return failed(EOPNOTSUPP);
    if (to == from)
        return 0;
    if (to == IBV_QPS_RESET)
        return failed(EOPNOTSUPP);
    const int error =
        ended(to == IBV_QPS_ERR ? core::XrcQp::disconnect(core, qp_num)
                                : core::XrcQp::step(core, qp_num, step_of(to, *attr)));
    return error == EBADFD ? failed(EINVAL) : error;
}

DAPX_VERBS int ibv_query_xrc_rcv_qp(OfedDomain* domain, std::uint32_t qp_num, ibv_qp_attr* attr,
                                    int /* all is told */, OfedInitAttr* init)
{
    if (domain == nullptr || attr == nullptr || init == nullptr)
        return failed(EINVAL);
    const auto info = core::XrcQp::query(Xrcd::of(domain)->core(), qp_num);
    if (!info)
        return failed(info.error().code());
    *attr = {};
    fill_in(*attr, *info);
    *init = {};
    init->cap = attr->cap;
    init->qp_type = IBV_QPT_XRC_SEND;
    init->xrc_domain = domain;
    return 0;
}

DAPX_VERBS int ibv_reg_xrc_rcv_qp(OfedDomain* domain, std::uint32_t qp_num)
{
    if (domain == nullptr)
        return failed(EINVAL);
    Xrcd& own = *Xrcd::of(domain);
    auto made =
        core::XrcQp::register_with(own.core(), qp_num, &own.owner().async_evd(), number_only);
    // To register twice is to register once.
    if (!made && made.error().code() == EEXIST)
        return 0;
    return kept(std::move(made), nullptr);
}

DAPX_VERBS int ibv_unreg_xrc_rcv_qp(OfedDomain* domain, std::uint32_t qp_num)
{
    if (domain == nullptr)
        return failed(EINVAL);
    const int error = freed(core::XrcQp::unregister(Xrcd::of(domain)->core(), qp_num));
    return error == 0 ? 0 : failed(error);
}
