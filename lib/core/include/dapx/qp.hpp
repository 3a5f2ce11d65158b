// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Steps of a connection by exchange of queue pair numbers: of Endpoint and of XrcQp.
#pragma once

#include <dapx/dapx.h>
#include <dapx/export.hpp>

#include <array>
#include <cstdint>

namespace dapx {

enum class Access : std::uint32_t;

/// The state of a queue pair that is connected by steps. Source: enum dapx_qp_state.
enum class QpState : std::uint32_t {
    reset = DAPX_QP_RESET, ///< took no step yet
    init = DAPX_QP_INIT,
    ready_to_receive = DAPX_QP_RTR,
    ready_to_send = DAPX_QP_RTS,
    error = DAPX_QP_ERROR, ///< its connection has ended
};

/// In one word, as in the tools: "rtr". Never nullptr.
[[nodiscard]] DAPX_EXPORT const char* describe(QpState state) noexcept;

/// The path to a peer whose QP number is known. Source: struct dapx_qp_attr, RTR.
struct ReadyToReceive {
    std::uint32_t dest_qp_num = 0;
    std::uint32_t rq_psn = 0; ///< the peer's first packet number, 24 bits
    std::array<std::uint8_t, 16> dgid{};
    std::uint16_t dlid = 0; ///< 0 on Ethernet
    std::uint8_t sgid_index = 0;
    std::uint8_t hop_limit = 64;
    std::uint8_t traffic_class = 0;
    std::uint8_t sl = 0;
    std::uint8_t path_mtu = 3; ///< 1 for 256 bytes to 5 for 4096
    std::uint8_t min_rnr_timer = 12;
    std::uint16_t max_dest_rd_atomic = 1;
    std::uint32_t flow_label = 0; ///< 20 bits
};

/// How to send to it. Source: struct dapx_qp_attr, RTS.
struct ReadyToSend {
    std::uint32_t sq_psn = 0;  ///< own first packet number, 24 bits
    std::uint8_t timeout = 14; ///< 4.096 us * 2^timeout to the first retry
    std::uint8_t retry_count = 7;
    std::uint8_t rnr_retry = 7;
    std::uint16_t max_rd_atomic = 1;
};

} // namespace dapx
