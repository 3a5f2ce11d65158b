// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "xrc_recv_qp.hpp"

#include "own.hpp"
#include "qp_steps.hpp"

#include <cstring>

namespace dapx::verbs {

ibv_qp_state verbs_state(core::QpState state) noexcept
{
    switch (state) {
    case core::QpState::reset:
        return IBV_QPS_RESET;
    case core::QpState::init:
        return IBV_QPS_INIT;
    case core::QpState::ready_to_receive:
        return IBV_QPS_RTR;
    case core::QpState::ready_to_send:
        return IBV_QPS_RTS;
    default:
        return IBV_QPS_ERR;
    }
}

void fill_in(ibv_qp_attr& attr, const core::XrcQpInfo& info) noexcept
{
    attr.qp_state = verbs_state(info.state);
    attr.cur_qp_state = attr.qp_state;
    attr.path_mig_state = IBV_MIG_MIGRATED;
    attr.pkey_index = info.pkey_index;
    attr.port_num = info.port;
    attr.qp_access_flags = rights_without(static_cast<std::uint8_t>(info.refused));
    attr.dest_qp_num = info.path.dest_qp_num;
    attr.rq_psn = info.path.rq_psn;
    attr.path_mtu = static_cast<ibv_mtu>(info.path.path_mtu);
    attr.min_rnr_timer = info.path.min_rnr_timer;
    attr.max_dest_rd_atomic = static_cast<std::uint8_t>(info.path.max_dest_rd_atomic);
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = info.port;
    attr.ah_attr.dlid = info.path.dlid;
    attr.ah_attr.sl = info.path.sl;
    attr.ah_attr.grh.sgid_index = info.path.sgid_index;
    attr.ah_attr.grh.hop_limit = info.path.hop_limit;
    attr.ah_attr.grh.traffic_class = info.path.traffic_class;
    attr.ah_attr.grh.flow_label = info.path.flow_label;
    std::memcpy(attr.ah_attr.grh.dgid.raw, info.path.dgid.data(), info.path.dgid.size());
    // What it has, whatever was asked for.
    attr.cap = {.max_send_wr = 1,
                .max_recv_wr = 0,
                .max_send_sge = 1,
                .max_recv_sge = 0,
                .max_inline_data = 0};
}

XrcRecvQp::XrcRecvQp(Xrcd& domain, void* consumer, RdmaId* cm) noexcept
    : Qp(domain.owner(), IBV_QPT_XRC_RECV, consumer, cm), domain_(domain)
{
}

int XrcRecvQp::take(core::Result<core::XrcQp> made) noexcept
{
    if (!made)
        return made.error().code();
    core_ = std::move(*made);
    qp_base.handle = core_->handle();
    qp_base.qp_num = core_->number();
    qp_base.state = current_state();
    return 0;
}

int XrcRecvQp::create() noexcept
{
    const core::Evd* evd = connect_evd() != nullptr ? connect_evd() : &owner().async_evd();
    return take(core::XrcQp::create(domain_.core(), evd, cookie_of(*this)));
}

int XrcRecvQp::open(std::uint32_t qp_num) noexcept
{
    return take(
        core::XrcQp::register_with(domain_.core(), qp_num, &owner().async_evd(), cookie_of(*this)));
}

ibv_qp_state XrcRecvQp::current_state() const noexcept
{
    const auto info = core_->query();
    return info ? verbs_state(info->state) : IBV_QPS_ERR;
}

void XrcRecvQp::query(ibv_qp_attr& attr, ibv_qp_init_attr& init) noexcept
{
    attr = attributes();
    attr.qp_state = IBV_QPS_ERR;
    if (const auto info = core_->query())
        fill_in(attr, *info);
    init = {};
    init.qp_context = qp_base.qp_context;
    init.cap = attr.cap;
    init.qp_type = IBV_QPT_XRC_RECV;
}

int XrcRecvQp::step(const ::dapx_qp_attr& step) noexcept
{
    auto done = core::XrcQp::step(domain_.core(), core_->number(), step);
    return done ? 0 : done.error().code();
}

/// Others may be registered with it: it is connected once, and ends with the last of them.
int XrcRecvQp::reset() noexcept
{
    return current_state() == IBV_QPS_RESET ? 0 : EOPNOTSUPP;
}

/// For all that are registered with it.
int XrcRecvQp::to_error() noexcept
{
    if (current_state() == IBV_QPS_ERR)
        return 0;
    auto done = core_->disconnect();
    return done ? 0 : done.error().code();
}

int XrcRecvQp::end() noexcept
{
    if (const int error = free_core(*core_))
        return error;
    owner().drop_events(qp_base.handle);
    return 0;
}

// ------------------------------------------------------------------------------- connection

/// It only receives, and so it only accepts.
int XrcRecvQp::connect(const core::CmId& /*id*/, const core::ConnectOptions& /*options*/,
                       RdAtomic /*rd_atomic*/) noexcept
{
    return EOPNOTSUPP;
}

int XrcRecvQp::accept(core::CmId&& request, const core::AcceptOptions& options,
                      RdAtomic /*rd_atomic*/) noexcept
{
    auto done = core_->accept(std::move(request), options.private_data);
    return done ? 0 : done.error().code();
}

int XrcRecvQp::disconnect() noexcept
{
    return to_error();
}

void XrcRecvQp::describe_connection(RdmaEvent& /*event*/) const noexcept {}

} // namespace dapx::verbs
