// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// DAT 1.2: the terms of 2.0, in which the provider is written, for a version that lacks them.
#pragma once

#include <dat/udat.h>

#include <dat/dat_registry.h>

namespace dapx::dat {

// Types of 2.0.
using DAT_SEG_LENGTH = DAT_VLEN;
using DAT_FD = int;
enum DAT_VA_TYPE { DAT_VA_TYPE_VA, DAT_VA_TYPE_ZB };
enum DAT_DTOS {
    DAT_DTO_SEND,
    DAT_DTO_RDMA_WRITE,
    DAT_DTO_RDMA_READ,
    DAT_DTO_RECEIVE,
    DAT_DTO_BIND_MW,
};

// Bits that nobody can set here.
inline constexpr int DAT_EP_FIELD_COMM = 0;
inline constexpr int DAT_CONNECT_MULTIPATH_REQUIRED_FLAG = 0;
inline constexpr int DAT_CNO_FIELD_PROXY = 0;

/// Where calls have the arguments that 2.0 has elsewhere.
namespace argument {
inline constexpr DAT_RETURN_SUBTYPE lmr_create_handle = DAT_INVALID_ARG7;
inline constexpr DAT_RETURN_SUBTYPE rmr_bind_triplet = DAT_INVALID_ARG2;
inline constexpr DAT_RETURN_SUBTYPE rmr_bind_privileges = DAT_INVALID_ARG3;
inline constexpr DAT_RETURN_SUBTYPE rmr_bind_flags = DAT_INVALID_ARG6;
} // namespace argument

/// As consumers name an IA.
[[nodiscard]] inline DAT_IA_HANDLE consumer_handle_of(DAT_IA_HANDLE ia) noexcept
{
    return ia;
}

[[nodiscard]] inline DAT_VADDR target_of(const DAT_RMR_TRIPLET& triplet) noexcept
{
    return triplet.target_address;
}

// 2.0 tells more.
inline void complete(const DAT_IA_ATTR&) noexcept {}
inline void complete(const DAT_PROVIDER_ATTR&) noexcept {}
inline void complete(const DAT_LMR_PARAM&) noexcept {}
inline void complete(const DAT_RMR_PARAM&) noexcept {}
inline void complete(const DAT_DTO_COMPLETION_EVENT_DATA&, DAT_DTOS) noexcept {}
inline void complete(const DAT_CR_ARRIVAL_EVENT_DATA&) noexcept {}

/// @p agent: nullptr for none.
inline void tell_proxy(DAT_CNO_PARAM& param, const DAT_OS_WAIT_PROXY_AGENT* agent, int) noexcept
{
    param.agent = agent == nullptr ? DAT_OS_WAIT_PROXY_AGENT_NULL : *agent;
}

} // namespace dapx::dat
