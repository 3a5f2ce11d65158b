// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What an endpoint can be asked for: told by dat_ia_query, checked by dat_ep_create.
#pragma once

#include "ia.hpp"

#include <algorithm>

namespace dapx::dat {

struct Limits {
    DAT_COUNT dtos;
    DAT_COUNT segments;
    DAT_COUNT reads_in;
    DAT_COUNT reads_out;
};

[[nodiscard]] inline Limits limits_of(const Ia& ia) noexcept
{
    const core::DeviceAttributes& device = ia.device();
    const std::uint32_t dtos =
        std::min({device.max_send_depth, device.max_recv_depth, ia.module().max_ring_depth});
    const std::uint32_t segments =
        std::min({device.max_send_sge, device.max_recv_sge, ia.module().max_sge});
    return {.dtos = static_cast<DAT_COUNT>(dtos),
            .segments = static_cast<DAT_COUNT>(segments),
            .reads_in = static_cast<DAT_COUNT>(device.max_dest_rd_atomic),
            .reads_out = static_cast<DAT_COUNT>(device.max_rd_atomic)};
}

/// The private data of a call: at most @p limit bytes; nullopt if it is not.
[[nodiscard]] inline std::optional<std::span<const std::byte>>
private_data(DAT_COUNT size, const void* data, std::size_t limit) noexcept
{
    if (size < 0 || static_cast<std::size_t>(size) > limit || (size > 0 && data == nullptr))
        return std::nullopt;
    return std::span(static_cast<const std::byte*>(data), static_cast<std::size_t>(size));
}

/// An address as DAT has it: a sockaddr, which lives as long as @p address.
[[nodiscard]] inline DAT_IA_ADDRESS_PTR as_ia_address(const core::Address& address) noexcept
{
    return const_cast<DAT_IA_ADDRESS_PTR>(
        reinterpret_cast<const DAT_SOCK_ADDR*>(&address.storage()));
}

/// Of a connection qualifier the RDMA CM carries 16 bits, a port number; programs use larger ones,
/// and older providers cut them off alike. 0 for one that is none.
[[nodiscard]] constexpr std::uint16_t port_of(DAT_CONN_QUAL qualifier) noexcept
{
    return static_cast<std::uint16_t>(qualifier & 0xffff);
}

} // namespace dapx::dat
