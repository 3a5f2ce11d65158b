// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <cstdint>

namespace dapx {

/// Sizes of an endpoint. An XrcEndpoint has no receives, and ignores theirs. Source: struct dapx_ep_attr.
struct EndpointOptions {
    std::uint32_t send_depth = 64;        ///< requests, rounded up to a power of two, at least 1
    std::uint32_t recv_depth = 64;        ///< receives, likewise; 0 for none; with an SRQ, too
    std::uint16_t max_send_sge = 1;       ///< segments of a request
    std::uint16_t max_recv_sge = 1;       ///< segments of a receive
    std::uint32_t max_inline = 64;        ///< bytes of inline data
    std::uint16_t max_rd_atomic = 1;      ///< reads and atomics in flight as initiator
    std::uint16_t max_dest_rd_atomic = 1; ///< the same as responder
    bool solicited = false;      ///< receives tell whether their sender asked for attention
    bool timewait_exit = false;  ///< Connection::timewait_exit is reported
    std::uint64_t user_data = 0; ///< comes with each of its events
};

} // namespace dapx
