// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/dapx.h>
#include <dapx/endpoint_options.hpp>

namespace dapx::detail {

[[nodiscard]] inline ::dapx_ep_attr to_abi(const EndpointOptions& options) noexcept
{
    return {
        .flags = (options.solicited ? std::uint32_t{DAPX_EP_SOLICITED} : 0) |
                 (options.timewait_exit ? std::uint32_t{DAPX_EP_TIMEWAIT_EXIT} : 0),
        .send_depth = options.send_depth,
        .recv_depth = options.recv_depth,
        .max_send_sge = options.max_send_sge,
        .max_recv_sge = options.max_recv_sge,
        .max_inline = options.max_inline,
        .max_rd_atomic = options.max_rd_atomic,
        .max_dest_rd_atomic = options.max_dest_rd_atomic,
    };
}

[[nodiscard]] inline EndpointOptions from_abi(const ::dapx_ep_attr& attr,
                                              std::uint64_t user_data) noexcept
{
    return {
        .send_depth = attr.send_depth,
        .recv_depth = attr.recv_depth,
        .max_send_sge = attr.max_send_sge,
        .max_recv_sge = attr.max_recv_sge,
        .max_inline = attr.max_inline,
        .max_rd_atomic = attr.max_rd_atomic,
        .max_dest_rd_atomic = attr.max_dest_rd_atomic,
        .solicited = (attr.flags & DAPX_EP_SOLICITED) != 0,
        .timewait_exit = (attr.flags & DAPX_EP_TIMEWAIT_EXIT) != 0,
        .user_data = user_data,
    };
}

} // namespace dapx::detail
