// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// DAT 2.0, in whose terms the provider is written: nothing to translate. What 1.2 lacks is named here,
// as v1/interface.hpp has to do without.
#pragma once

#include <dat2/udat.h>

#include <dat2/dat_registry.h>

// The registry gives consumers a number for an IA. It has no declaration of this in its headers.
extern "C" DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* other);

namespace dapx::dat {

/// Where calls have the arguments that 1.2 has elsewhere.
namespace argument {
inline constexpr DAT_RETURN_SUBTYPE lmr_create_handle = DAT_INVALID_ARG8;
inline constexpr DAT_RETURN_SUBTYPE rmr_bind_triplet = DAT_INVALID_ARG3;
inline constexpr DAT_RETURN_SUBTYPE rmr_bind_privileges = DAT_INVALID_ARG4;
inline constexpr DAT_RETURN_SUBTYPE rmr_bind_flags = DAT_INVALID_ARG8;
} // namespace argument

/// As consumers name an IA.
[[nodiscard]] inline DAT_IA_HANDLE consumer_handle_of(DAT_IA_HANDLE ia) noexcept
{
    DAT_IA_HANDLE number = DAT_HANDLE_NULL;
    return dats_get_ia_handle(ia, &number) == DAT_SUCCESS ? number : ia;
}

[[nodiscard]] inline DAT_VADDR target_of(const DAT_RMR_TRIPLET& triplet) noexcept
{
    return triplet.virtual_address;
}

// Fills in what 1.2 does not tell.
inline void complete(DAT_IA_ATTR& attr) noexcept
{
    attr.zb_supported = DAT_FALSE;
    attr.extension_supported = DAT_EXTENSION_NONE;
}

inline void complete(DAT_PROVIDER_ATTR& attr) noexcept
{
    attr.rdma_read_lmr_rmr_context_exposure = DAT_FALSE;
    attr.rmr_scope_supported = DAT_RMR_SCOPE_PZ;
}

inline void complete(DAT_LMR_PARAM& param) noexcept
{
    param.va_type = DAT_VA_TYPE_VA;
}

inline void complete(DAT_RMR_PARAM& param) noexcept
{
    param.rmr_scope = DAT_RMR_SCOPE_PZ;
    param.va_type = DAT_VA_TYPE_VA;
}

inline void complete(DAT_DTO_COMPLETION_EVENT_DATA& data, DAT_DTOS operation) noexcept
{
    data.operation = operation;
    data.rmr_context = 0;
}

inline void complete(DAT_CR_ARRIVAL_EVENT_DATA& data) noexcept
{
    data.truncate_flag = DAT_FALSE;
}

/// @p agent: nullptr for none. @p descriptor: -1 for none.
inline void tell_proxy(DAT_CNO_PARAM& param, const DAT_OS_WAIT_PROXY_AGENT* agent,
                       int descriptor) noexcept
{
    if (descriptor >= 0) {
        param.proxy_type = DAT_PROXY_TYPE_FD;
        param.proxy.fd = descriptor;
    } else if (agent != nullptr) {
        param.proxy_type = DAT_PROXY_TYPE_AGENT;
        param.proxy.agent = *agent;
    } else {
        param.proxy_type = DAT_PROXY_TYPE_NONE;
        param.proxy.none = nullptr;
    }
}

} // namespace dapx::dat
