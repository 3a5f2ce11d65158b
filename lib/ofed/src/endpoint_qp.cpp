// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "calls.hpp"
#include "libibverbs.hpp"
#include "own.hpp"
#include "post.hpp"
#include "qp.hpp"
#include "rdma_id.hpp"
#include "registry.hpp"
#include "segments.hpp"
#include "send_ops.hpp"

#include <algorithm>
#include <cstring>

namespace dapx::verbs {

namespace {

Registry<EndpointQp> endpoint_qps;

} // namespace

EndpointQp::EndpointQp(Pd& domain, const ibv_qp_init_attr_ex& attr, RdmaId* cm) noexcept
    : Qp(domain.owner(), attr.qp_type, attr.qp_context, cm), signal_all_(attr.sq_sig_all != 0),
      made_by_cm_(cm != nullptr)
{
    const bool rc = attr.qp_type == IBV_QPT_RC;
    qp_base.pd = &domain;
    qp_base.send_cq = attr.send_cq;
    qp_base.recv_cq = rc ? attr.recv_cq : nullptr;
    qp_base.srq = rc ? attr.srq : nullptr;
}

EndpointQp::~EndpointQp()
{
    endpoint_qps.erase(*this);
    leave_cm();
}

EndpointQp* EndpointQp::find(const ibv_context* context, std::uint32_t qp_num) noexcept
{
    return endpoint_qps.find_if([=](const EndpointQp& qp) {
        return qp.qp_base.context == context && qp.qp_base.qp_num == qp_num;
    });
}

template <class T> int EndpointQp::take(core::Result<T> made) noexcept
{
    if (!made)
        return made.error().code();
    core_ = &endpoint_.emplace<T>(std::move(*made));
    return 0;
}

int EndpointQp::init(ibv_qp_cap& cap, std::uint64_t send_ops) noexcept
{
    const bool receives = !is_xrc() && qp_base.srq == nullptr && cap.max_recv_wr != 0;
    if (cap.max_send_sge > max_segments || cap.max_recv_sge > max_segments)
        return EINVAL;
    const std::uint32_t send_sge = std::max(cap.max_send_sge, 1U);
    // Where segments fit, so many bytes do; programs count on what devices give unasked.
    const std::uint32_t inline_data = std::max<std::uint32_t>(
        cap.max_inline_data,
        std::min<std::uint32_t>(send_sge * sizeof(::dapx_sge), owner().attributes().max_inline));
    const bool solicited = !is_xrc() && Cq::of(qp_base.recv_cq)->was_armed_for_solicited() &&
                           core::has(owner().attributes().caps, core::DeviceCap::solicited);
    const core::EndpointOptions options = {
        .send_depth = std::max(cap.max_send_wr, 1U),
        .recv_depth = receives ? cap.max_recv_wr : 0,
        .max_send_sge = static_cast<std::uint16_t>(send_sge),
        .max_recv_sge = static_cast<std::uint16_t>(receives ? std::max(cap.max_recv_sge, 1U) : 0),
        .max_inline = inline_data,
        .solicited = solicited,
        .timewait_exit = core::has(owner().attributes().caps, core::DeviceCap::timewait_exit),
        .user_data = cookie_of(*this),
    };
    Pd& domain = *Pd::of(qp_base.pd);
    const core::Endpoint::Evds evds = {
        .request = Cq::of(qp_base.send_cq)->core(),
        .recv = is_xrc() ? nullptr : &Cq::of(qp_base.recv_cq)->core(),
        .connect = connect_evd(),
        .async = owner().async_evd(),
    };
    if (is_xrc())
        if (const int error = domain.enable_xrc())
            return error;
    const core::Srq* srq = qp_base.srq != nullptr ? &Srq::of(qp_base.srq)->core() : nullptr;
    if (const int error = is_xrc()
                              ? take(core::XrcEndpoint::create(domain.core(), evds, options))
                              : take(core::Endpoint::create(domain.core(), evds, options, srq)))
        return error;
    qp_base.handle = core_->handle();
    qp_base.qp_num = core_->qp_num();
    cap_ = {
        .max_send_wr = core_->send_depth(),
        .max_recv_wr = is_xrc() ? 0 : rc()->recv_depth(),
        .max_send_sge = options.max_send_sge,
        .max_recv_sge = options.max_recv_sge,
        .max_inline_data = options.max_inline,
    };
    cap = cap_;
    // As librdmacm's: receives may be posted at once.
    if (made_by_cm_) {
        step_ = IBV_QPS_INIT;
        qp_base.state = IBV_QPS_INIT;
    }
    if (send_ops != 0) {
        set_send_ops(*this);
        has_send_ops_ = true;
    }
    return endpoint_qps.insert(*this) ? 0 : ENOMEM;
}

// ----------------------------------------------------------------------------------- state

ibv_qp_state EndpointQp::current_state() const noexcept
{
    switch (core_->state()) {
    case core::EpState::unconnected:
    case core::EpState::active_pending:
        return step_;
    // Of the CM, it is there unless the program took it further.
    case core::EpState::completion_pending:
        return std::max(step_.load(), IBV_QPS_RTR);
    case core::EpState::connected:
    case core::EpState::disconnect_pending:
        return IBV_QPS_RTS;
    case core::EpState::disconnected:
        return IBV_QPS_ERR;
    default:
        return IBV_QPS_INIT;
    }
}

int EndpointQp::step(const ::dapx_qp_attr& step) noexcept
{
    if (auto done = core_->qp_step(step); !done)
        return done.error().code();
    step_ = step.state == DAPX_QP_INIT  ? IBV_QPS_INIT
            : step.state == DAPX_QP_RTR ? IBV_QPS_RTR
                                        : IBV_QPS_RTS;
    return 0;
}

/// An endpoint that was never connected cannot be reset, nor flushed: a new one takes its place.
int EndpointQp::renew() noexcept
{
    ibv_qp_cap cap = cap_;
    if (const int error = end())
        return error;
    step_ = IBV_QPS_RESET;
    return init(cap, has_send_ops_ ? 1 : 0);
}

int EndpointQp::to_error() noexcept
{
    const ibv_qp_state from = current_state();
    if (from == IBV_QPS_RESET)
        return EINVAL;
    auto done = core_->disconnect_now();
    const int error = done ? 0 : done.error().code();
    // A queue pair of the RDMA CM shows INIT before the module's has reached it.
    return from == IBV_QPS_INIT && error == EBADFD ? EOPNOTSUPP : error;
}

int EndpointQp::set_rnr_timer(std::uint8_t timer) noexcept
{
    auto done = core_->modify({.min_rnr_timer = timer});
    return done ? 0 : done.error().code();
}

/// Makes the module a new queue pair: the number changes.
int EndpointQp::reset() noexcept
{
    const ibv_qp_state from = current_state();
    if (from == IBV_QPS_RESET)
        return 0;
    const std::scoped_lock guard(send_lock_, recv_lock_);
    if (from == IBV_QPS_INIT)
        return renew();
    if (from != IBV_QPS_ERR)
        if (const int error = to_error())
            return error;
    if (auto done = core_->reset(); !done)
        return done.error().code();
    drop_completions();
    step_ = IBV_QPS_RESET;
    qp_base.qp_num = core_->qp_num();
    return 0;
}

void EndpointQp::query(ibv_qp_attr& attr, ibv_qp_init_attr& init) noexcept
{
    attr = attributes();
    attr.qp_state = current_state();
    attr.cur_qp_state = attr.qp_state;
    attr.path_mig_state = IBV_MIG_MIGRATED;
    attr.cap = cap_;
    init = {};
    init.qp_context = qp_base.qp_context;
    init.send_cq = qp_base.send_cq;
    init.recv_cq = qp_base.recv_cq;
    init.srq = qp_base.srq;
    init.cap = cap_;
    init.qp_type = qp_base.qp_type;
    init.sq_sig_all = signal_all_ ? 1 : 0;
}

void EndpointQp::drop_completions() noexcept
{
    Cq::of(qp_base.send_cq)->drop(qp_base.handle);
    if (qp_base.recv_cq != nullptr && qp_base.recv_cq != qp_base.send_cq)
        Cq::of(qp_base.recv_cq)->drop(qp_base.handle);
}

int EndpointQp::end() noexcept
{
    if (const int error = free_core(*core_))
        return error;
    drop_completions();
    owner().drop_events(qp_base.handle);
    return 0;
}

// ------------------------------------------------------------------------------- connection

int EndpointQp::join(RdmaId& cm) noexcept
{
    if (rc() == nullptr)
        return EOPNOTSUPP;
    if (auto done = core_->modify({.connect_evd = &cm.evd()}); !done)
        return done.error().code();
    join_cm(cm);
    return 0;
}

int EndpointQp::connect(const core::CmId& id, const core::ConnectOptions& options,
                        RdAtomic rd_atomic) noexcept
{
    if (auto done = core_->modify({.rd_atomic = rd_atomic}); !done)
        return done.error().code();
    auto done = core_->connect(id, options);
    return done ? 0 : done.error().code();
}

int EndpointQp::accept(core::CmId&& request, const core::AcceptOptions& options,
                       RdAtomic rd_atomic) noexcept
{
    if (rc() == nullptr)
        return EOPNOTSUPP;
    // By steps, they have set it.
    if (!options.by_steps)
        if (auto done = core_->modify({.rd_atomic = rd_atomic}); !done)
            return done.error().code();
    auto done = rc()->accept(std::move(request), options);
    return done ? 0 : done.error().code();
}

int EndpointQp::establish() noexcept
{
    auto done = core_->establish();
    return done ? 0 : done.error().code();
}

int EndpointQp::disconnect() noexcept
{
    if (core_->state() == core::EpState::disconnected)
        return 0;
    auto done = core_->disconnect_now();
    // Its end may have come meanwhile.
    return done || core_->state() == core::EpState::disconnected ? 0 : done.error().code();
}

void EndpointQp::describe_connection(RdmaEvent& event) const noexcept
{
    const auto info = core_->query();
    if (!info)
        return;
    event.set_private_data(info->private_data);
    event.param.conn.responder_resources =
        static_cast<std::uint8_t>(info->options.max_dest_rd_atomic);
    event.param.conn.initiator_depth = static_cast<std::uint8_t>(info->options.max_rd_atomic);
    event.param.conn.qp_num = info->remote_qp_num;
}

// --------------------------------------------------------------------------------- posting

namespace {

/// dapx' opcode, and what of ibv_send_wr belongs to it.
struct SendOpcode {
    std::uint8_t opcode;
    enum : std::uint8_t { message, rdma, atomic } kind;
    bool imm;
};

constexpr SendOpcode opcodes[] = {
    /* IBV_WR_RDMA_WRITE */ {DAPX_OP_RDMA_WRITE, SendOpcode::rdma, false},
    /* IBV_WR_RDMA_WRITE_WITH_IMM */ {DAPX_OP_RDMA_WRITE_IMM, SendOpcode::rdma, true},
    /* IBV_WR_SEND */ {DAPX_OP_SEND, SendOpcode::message, false},
    /* IBV_WR_SEND_WITH_IMM */ {DAPX_OP_SEND_IMM, SendOpcode::message, true},
    /* IBV_WR_RDMA_READ */ {DAPX_OP_RDMA_READ, SendOpcode::rdma, false},
    /* IBV_WR_ATOMIC_CMP_AND_SWP */ {DAPX_OP_COMPARE_SWAP, SendOpcode::atomic, false},
    /* IBV_WR_ATOMIC_FETCH_AND_ADD */ {DAPX_OP_FETCH_ADD, SendOpcode::atomic, false},
};

} // namespace

std::uint16_t send_flags(unsigned flags, bool signal_all) noexcept
{
    unsigned all = 0;
    if (signal_all || (flags & IBV_SEND_SIGNALED) != 0)
        all |= DAPX_SEND_SIGNALED;
    if ((flags & IBV_SEND_SOLICITED) != 0)
        all |= DAPX_SEND_SOLICITED;
    if ((flags & IBV_SEND_FENCE) != 0)
        all |= DAPX_SEND_FENCE;
    if ((flags & IBV_SEND_INLINE) != 0)
        all |= DAPX_SEND_INLINE;
    return static_cast<std::uint16_t>(all);
}

int EndpointQp::post_one(const ibv_send_wr& wr) noexcept
{
    if (static_cast<std::size_t>(wr.opcode) >= std::size(opcodes))
        return EOPNOTSUPP;
    const SendOpcode& op = opcodes[wr.opcode];
    ::dapx_send_wr out{};
    out.wr_id = wr.wr_id;
    out.opcode = op.opcode;
    out.flags = send_flags(wr.send_flags, signal_all_);
    if (is_xrc())
        out.remote_srqn = wr.qp_type.xrc.remote_srqn;
    if (op.kind == SendOpcode::rdma) {
        out.remote_addr = wr.wr.rdma.remote_addr;
        out.rkey = wr.wr.rdma.rkey;
    } else if (op.kind == SendOpcode::atomic) {
        out.remote_addr = wr.wr.atomic.remote_addr;
        out.rkey = wr.wr.atomic.rkey;
        out.compare_add = wr.wr.atomic.compare_add;
        out.swap = wr.wr.atomic.swap;
    }
    if (op.imm)
        out.imm_data = wr.imm_data;
    if ((out.flags & DAPX_SEND_INLINE) == 0) {
        const Segments segments(wr.sg_list, wr.num_sge);
        if (segments.is_too_long())
            return EINVAL;
        out.num_sge = static_cast<std::uint8_t>(wr.num_sge);
        return post_error(core_->post_wr(out, segments.span().data(), core::Doorbell::later));
    }
    const InlineData data(wr.sg_list, wr.num_sge, cap_.max_inline_data);
    if (data.is_too_long())
        return ENOMEM;
    out.inline_len = data.length();
    return post_error(core_->post_wr(out, data.bytes(), core::Doorbell::later));
}

int EndpointQp::post_send(ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept
{
    const std::lock_guard guard(send_lock_);
    return post_list(
        wr, bad_wr, [this](const ibv_send_wr& one) noexcept { return post_one(one); },
        [this]() noexcept { return core_->submit(); });
}

int EndpointQp::post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept
{
    const std::lock_guard guard(recv_lock_);
    core::Endpoint* receiver = rc();
    if (receiver == nullptr || receiver->recv_depth() == 0 || current_state() == IBV_QPS_RESET) {
        *bad_wr = wr;
        return EINVAL;
    }
    return post_receives(*receiver, wr, bad_wr,
                         [receiver]() noexcept { return receiver->submit_recv(); });
}

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept
{
    if (qp->qp_type != IBV_QPT_XRC_RECV) [[likely]]
        return EndpointQp::of(qp)->post_send(wr, bad_wr);
    *bad_wr = wr;
    return EINVAL;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept
{
    if (qp->qp_type != IBV_QPT_XRC_RECV) [[likely]]
        return EndpointQp::of(qp)->post_recv(wr, bad_wr);
    *bad_wr = wr;
    return EINVAL;
}

} // namespace dapx::verbs

using namespace dapx::verbs;

DAPX_VERBS ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp)
{
    if (is_foreign(qp))
        return DAPX_LIBIBVERBS(ibv_qp_to_qp_ex)(qp);
    if (qp == nullptr || qp->qp_type == IBV_QPT_XRC_RECV)
        return nullptr;
    return EndpointQp::of(qp)->extended();
}
