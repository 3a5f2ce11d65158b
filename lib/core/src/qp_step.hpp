// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Steps of a queue pair, to and from the ABI's form.
#pragma once

#include <dapx/dapx.h>
#include <dapx/qp.hpp>

#include <algorithm>
#include <cstdint>

namespace dapx::detail {

[[nodiscard]] inline ::dapx_qp_attr init_step(std::uint8_t port, std::uint16_t pkey_index,
                                              Access refused) noexcept
{
    ::dapx_qp_attr step{};
    step.state = DAPX_QP_INIT;
    step.port = port;
    step.pkey_index = pkey_index;
    step.refused = static_cast<std::uint8_t>(refused);
    return step;
}

[[nodiscard]] inline ::dapx_qp_attr to_abi(const ReadyToReceive& path) noexcept
{
    ::dapx_qp_attr step{};
    step.state = DAPX_QP_RTR;
    step.dest_qp_num = path.dest_qp_num;
    step.rq_psn = path.rq_psn;
    std::ranges::copy(path.dgid, step.dgid);
    step.dlid = path.dlid;
    step.sgid_index = path.sgid_index;
    step.hop_limit = path.hop_limit;
    step.traffic_class = path.traffic_class;
    step.flow_label = path.flow_label;
    step.sl = path.sl;
    step.path_mtu = path.path_mtu;
    step.min_rnr_timer = path.min_rnr_timer;
    step.max_dest_rd_atomic = path.max_dest_rd_atomic;
    return step;
}

[[nodiscard]] inline ::dapx_qp_attr to_abi(const ReadyToSend& options) noexcept
{
    ::dapx_qp_attr step{};
    step.state = DAPX_QP_RTS;
    step.sq_psn = options.sq_psn;
    step.timeout = options.timeout;
    step.retry_count = options.retry_count;
    step.rnr_retry = options.rnr_retry;
    step.max_rd_atomic = options.max_rd_atomic;
    return step;
}

[[nodiscard]] inline ReadyToReceive path_from_abi(const ::dapx_qp_attr& qp) noexcept
{
    ReadyToReceive path{
        .dest_qp_num = qp.dest_qp_num,
        .rq_psn = qp.rq_psn,
        .dlid = qp.dlid,
        .sgid_index = qp.sgid_index,
        .hop_limit = qp.hop_limit,
        .traffic_class = qp.traffic_class,
        .sl = qp.sl,
        .path_mtu = qp.path_mtu,
        .min_rnr_timer = qp.min_rnr_timer,
        .max_dest_rd_atomic = qp.max_dest_rd_atomic,
        .flow_label = qp.flow_label,
    };
    std::ranges::copy(qp.dgid, path.dgid.begin());
    return path;
}

[[nodiscard]] inline ReadyToSend ready_to_send_from_abi(const ::dapx_qp_attr& qp) noexcept
{
    return {
        .sq_psn = qp.sq_psn,
        .timeout = qp.timeout,
        .retry_count = qp.retry_count,
        .rnr_retry = qp.rnr_retry,
        .max_rd_atomic = qp.max_rd_atomic,
    };
}

/// What a step attempts, for a sentence on its failure.
[[nodiscard]] inline const char* attempt_of(const ::dapx_qp_attr& step) noexcept
{
    switch (step.state) {
    case DAPX_QP_INIT:
        return "cannot initialise the queue pair";
    case DAPX_QP_RTR:
        return "cannot make the queue pair ready to receive";
    case DAPX_QP_RTS:
        return "cannot make the queue pair ready to send";
    default:
        return "cannot change the queue pair";
    }
}

} // namespace dapx::detail
