// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "qp_steps.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace dapx::verbs {

namespace {

struct Masks {
    int needed;
    int allowed;
};

struct Step {
    ibv_qp_state from;
    ibv_qp_state to;
    Masks rc;
    Masks xrc_send;
    Masks xrc_recv;
};

constexpr int init_mask = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int path_mask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int responder_mask = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int requester_mask =
    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

constexpr Masks to_init = {.needed = init_mask, .allowed = 0};
constexpr Masks to_rtr = {.needed = path_mask | responder_mask,
                          .allowed = IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX};
constexpr Masks to_rts = {.needed = requester_mask,
                          .allowed = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER};
constexpr Masks init_again = {.needed = 0, .allowed = init_mask};
constexpr Masks again = {.needed = 0,
                         .allowed = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER};

constexpr Step steps[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, to_init, to_init, to_init},
    {IBV_QPS_INIT, IBV_QPS_INIT, init_again, init_again, init_again},
    // What OFED's programs name of the responder as well is not looked at.
    {IBV_QPS_INIT, IBV_QPS_RTR, to_rtr, {path_mask, to_rtr.allowed | responder_mask}, to_rtr},
    {IBV_QPS_RTR,
     IBV_QPS_RTS,
     to_rts,
     to_rts,
     {IBV_QP_TIMEOUT | IBV_QP_SQ_PSN, to_rts.allowed | requester_mask}},
    {IBV_QPS_RTS, IBV_QPS_RTS, again, again, again},
};

/// Changes that devices have, and the module has not.
bool is_known_elsewhere(ibv_qp_state to, int attr_mask) noexcept
{
    constexpr int paths = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
    return to == IBV_QPS_SQD || (attr_mask & (paths | IBV_QP_RATE_LIMIT)) != 0;
}

} // namespace

std::uint8_t refused_by(unsigned rights) noexcept
{
    unsigned refused = 0;
    if ((rights & IBV_ACCESS_REMOTE_WRITE) == 0)
        refused |= DAPX_ACCESS_REMOTE_WRITE;
    if ((rights & IBV_ACCESS_REMOTE_READ) == 0)
        refused |= DAPX_ACCESS_REMOTE_READ;
    if ((rights & IBV_ACCESS_REMOTE_ATOMIC) == 0)
        refused |= DAPX_ACCESS_REMOTE_ATOMIC;
    return static_cast<std::uint8_t>(refused);
}

unsigned rights_without(std::uint8_t refused) noexcept
{
    unsigned rights = IBV_ACCESS_LOCAL_WRITE;
    if ((refused & DAPX_ACCESS_REMOTE_WRITE) == 0)
        rights |= IBV_ACCESS_REMOTE_WRITE;
    if ((refused & DAPX_ACCESS_REMOTE_READ) == 0)
        rights |= IBV_ACCESS_REMOTE_READ;
    if ((refused & DAPX_ACCESS_REMOTE_ATOMIC) == 0)
        rights |= IBV_ACCESS_REMOTE_ATOMIC;
    return rights;
}

int check_step(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int attr_mask) noexcept
{
    attr_mask &= ~IBV_QP_STATE;
    // From any state, and with nothing.
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        return attr_mask == 0 ? 0 : EINVAL;
    if (is_known_elsewhere(to, attr_mask))
        return EOPNOTSUPP;
    for (const Step& step : steps) {
        if (step.from != from || step.to != to)
            continue;
        const Masks& masks = type == IBV_QPT_XRC_SEND   ? step.xrc_send
                             : type == IBV_QPT_XRC_RECV ? step.xrc_recv
                                                        : step.rc;
        return (attr_mask & masks.needed) == masks.needed &&
                       (attr_mask & ~(masks.needed | masks.allowed)) == 0
                   ? 0
                   : EINVAL;
    }
    return EINVAL;
}

bool changes_what_is_fixed(ibv_qp_type type, ibv_qp_state from, const ibv_qp_attr& attr,
                           int attr_mask, const ibv_qp_attr& now) noexcept
{
    int fixed = 0;
    if (from != IBV_QPS_RESET)
        fixed |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    if (type != IBV_QPT_RC && from != IBV_QPS_RESET && from != IBV_QPS_INIT)
        fixed |= IBV_QP_MIN_RNR_TIMER;
    const int named = attr_mask & fixed;
    return ((named & IBV_QP_PKEY_INDEX) != 0 && attr.pkey_index != now.pkey_index) ||
           ((named & IBV_QP_PORT) != 0 && attr.port_num != now.port_num) ||
           ((named & IBV_QP_MIN_RNR_TIMER) != 0 && attr.min_rnr_timer != now.min_rnr_timer) ||
           ((named & IBV_QP_ACCESS_FLAGS) != 0 &&
            refused_by(attr.qp_access_flags) != refused_by(now.qp_access_flags));
}

::dapx_qp_attr step_of(ibv_qp_state to, const ibv_qp_attr& attr) noexcept
{
    ::dapx_qp_attr step{};
    switch (to) {
    case IBV_QPS_INIT:
        step.state = DAPX_QP_INIT;
        step.pkey_index = attr.pkey_index;
        step.port = attr.port_num;
        step.refused = refused_by(attr.qp_access_flags);
        break;
    case IBV_QPS_RTR:
        step.state = DAPX_QP_RTR;
        step.dest_qp_num = attr.dest_qp_num;
        step.rq_psn = attr.rq_psn;
        step.path_mtu = static_cast<std::uint8_t>(attr.path_mtu);
        step.min_rnr_timer = attr.min_rnr_timer;
        step.max_dest_rd_atomic = attr.max_dest_rd_atomic;
        step.dlid = attr.ah_attr.dlid;
        step.sl = attr.ah_attr.sl;
        if (attr.ah_attr.is_global != 0) {
            std::memcpy(step.dgid, attr.ah_attr.grh.dgid.raw, sizeof(step.dgid));
            step.sgid_index = attr.ah_attr.grh.sgid_index;
            step.hop_limit = attr.ah_attr.grh.hop_limit;
            step.traffic_class = attr.ah_attr.grh.traffic_class;
            step.flow_label = attr.ah_attr.grh.flow_label;
        }
        break;
    default:
        step.state = DAPX_QP_RTS;
        step.sq_psn = attr.sq_psn;
        step.timeout = attr.timeout;
        step.retry_count = attr.retry_cnt;
        step.rnr_retry = attr.rnr_retry;
        step.max_rd_atomic = attr.max_rd_atomic;
        break;
    }
    return step;
}

int fill_step(const CmSteps& steps, ibv_qp_attr& attr, int& mask) noexcept
{
    const ibv_qp_state to = attr.qp_state;
    const ReadyToReceive& path = steps.ready_to_receive;
    const ReadyToSend& sending = steps.ready_to_send;
    if (to > static_cast<ibv_qp_state>(steps.last))
        return EINVAL;
    attr = {};
    attr.qp_state = to;
    switch (to) {
    case IBV_QPS_INIT:
        attr.port_num = steps.port;
        attr.pkey_index = steps.pkey_index;
        attr.qp_access_flags = rights_without(0);
        mask = IBV_QP_STATE | init_mask;
        return 0;
    case IBV_QPS_RTR:
        attr.dest_qp_num = path.dest_qp_num;
        attr.rq_psn = path.rq_psn;
        attr.path_mtu = static_cast<ibv_mtu>(path.path_mtu);
        attr.min_rnr_timer = path.min_rnr_timer;
        attr.max_dest_rd_atomic = static_cast<std::uint8_t>(path.max_dest_rd_atomic);
        attr.ah_attr.port_num = steps.port;
        attr.ah_attr.dlid = path.dlid;
        attr.ah_attr.sl = path.sl;
        attr.ah_attr.is_global = 1;
        std::ranges::copy(path.dgid, attr.ah_attr.grh.dgid.raw);
        attr.ah_attr.grh.sgid_index = path.sgid_index;
        attr.ah_attr.grh.hop_limit = path.hop_limit;
        attr.ah_attr.grh.traffic_class = path.traffic_class;
        attr.ah_attr.grh.flow_label = path.flow_label;
        mask = IBV_QP_STATE | to_rtr.needed;
        return 0;
    case IBV_QPS_RTS:
        attr.sq_psn = sending.sq_psn;
        attr.timeout = sending.timeout;
        attr.retry_cnt = sending.retry_count;
        attr.rnr_retry = sending.rnr_retry;
        attr.max_rd_atomic = static_cast<std::uint8_t>(sending.max_rd_atomic);
        mask = IBV_QP_STATE | to_rts.needed;
        return 0;
    default:
        return EINVAL;
    }
}

} // namespace dapx::verbs
