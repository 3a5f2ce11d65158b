// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The functions of the provider's table, each in the file of its object, and what they share.
#pragma once

#include "ia.hpp"

namespace dapx::dat {

/// Microseconds from now.
[[nodiscard]] inline core::Deadline deadline_of(DAT_TIMEOUT timeout) noexcept
{
    return timeout == DAT_TIMEOUT_INFINITE
               ? core::no_deadline
               : core::deadline_after(std::chrono::microseconds(timeout));
}

/// dat_*_query's other arguments. DAT_SUCCESS, or what is wrong.
template <class Mask>
[[nodiscard]] DAT_RETURN check_query(Mask mask, std::uint64_t known, const void* param) noexcept
{
    if ((static_cast<std::uint64_t>(mask) & ~known) != 0)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    if (param == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    return DAT_SUCCESS;
}

/// Whether a request can be posted with these flags, by an endpoint whose attribute for requests is
/// @p configured: that has to allow DAT_COMPLETION_UNSIGNALLED_FLAG.
[[nodiscard]] constexpr bool valid(DAT_COMPLETION_FLAGS flags,
                                   DAT_COMPLETION_FLAGS configured) noexcept
{
    return (flags & ~(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
                      DAT_COMPLETION_BARRIER_FENCE_FLAG |
                      (configured & DAT_COMPLETION_UNSIGNALLED_FLAG))) == 0;
}

[[nodiscard]] DAT_RETURN result_of(core::PostResult post) noexcept;

/// The line of dat.conf that @p name was registered by; nullptr for none.
[[nodiscard]] const Provider* find_provider(const char* name, bool thread_safe) noexcept;

/// Fills in the slots that the versions of DAT do not have in common.
void add_slots_of_version(DAT_PROVIDER& table) noexcept;

/// For a slot of what the module has no means for; Documentation/dat.rst has the reasons.
template <class... Args> DAT_RETURN refuse(Args...) noexcept
{
    return error(DAT_MODEL_NOT_SUPPORTED);
}

template <bool thread_safe>
DAT_RETURN provider_ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE* async_evd,
                            DAT_IA_HANDLE* handle) noexcept;
DAT_RETURN provider_ia_close(DAT_IA_HANDLE, DAT_CLOSE_FLAGS) noexcept;
DAT_RETURN provider_ia_query(DAT_IA_HANDLE, DAT_EVD_HANDLE*, DAT_IA_ATTR_MASK, DAT_IA_ATTR*,
                             DAT_PROVIDER_ATTR_MASK, DAT_PROVIDER_ATTR*) noexcept;
DAT_RETURN provider_set_consumer_context(DAT_HANDLE, DAT_CONTEXT) noexcept;
DAT_RETURN provider_get_consumer_context(DAT_HANDLE, DAT_CONTEXT*) noexcept;
DAT_RETURN provider_get_handle_type(DAT_HANDLE, DAT_HANDLE_TYPE*) noexcept;
DAT_RETURN provider_cr_query(DAT_CR_HANDLE, DAT_CR_PARAM_MASK, DAT_CR_PARAM*) noexcept;
DAT_RETURN provider_cr_accept(DAT_CR_HANDLE, DAT_EP_HANDLE, DAT_COUNT, const DAT_PVOID) noexcept;
DAT_RETURN provider_cr_reject(DAT_CR_HANDLE, DAT_COUNT, const DAT_PVOID) noexcept;
DAT_RETURN provider_cr_handoff(DAT_CR_HANDLE, DAT_CONN_QUAL) noexcept;
DAT_RETURN provider_evd_resize(DAT_EVD_HANDLE, DAT_COUNT) noexcept;
DAT_RETURN provider_evd_post_se(DAT_EVD_HANDLE, const DAT_EVENT*) noexcept;
DAT_RETURN provider_evd_dequeue(DAT_EVD_HANDLE, DAT_EVENT*) noexcept;
DAT_RETURN provider_evd_free(DAT_EVD_HANDLE) noexcept;
DAT_RETURN provider_evd_query(DAT_EVD_HANDLE, DAT_EVD_PARAM_MASK, DAT_EVD_PARAM*) noexcept;
DAT_RETURN provider_ep_create(DAT_IA_HANDLE, DAT_PZ_HANDLE, DAT_EVD_HANDLE, DAT_EVD_HANDLE,
                              DAT_EVD_HANDLE, const DAT_EP_ATTR*, DAT_EP_HANDLE*) noexcept;
DAT_RETURN provider_ep_create_with_srq(DAT_IA_HANDLE, DAT_PZ_HANDLE, DAT_EVD_HANDLE, DAT_EVD_HANDLE,
                                       DAT_EVD_HANDLE, DAT_SRQ_HANDLE, const DAT_EP_ATTR*,
                                       DAT_EP_HANDLE*) noexcept;
DAT_RETURN provider_ep_query(DAT_EP_HANDLE, DAT_EP_PARAM_MASK, DAT_EP_PARAM*) noexcept;
DAT_RETURN provider_ep_modify(DAT_EP_HANDLE, DAT_EP_PARAM_MASK, const DAT_EP_PARAM*) noexcept;
DAT_RETURN provider_ep_connect(DAT_EP_HANDLE, DAT_IA_ADDRESS_PTR, DAT_CONN_QUAL, DAT_TIMEOUT,
                               DAT_COUNT, const DAT_PVOID, DAT_QOS, DAT_CONNECT_FLAGS) noexcept;
DAT_RETURN provider_ep_dup_connect(DAT_EP_HANDLE, DAT_EP_HANDLE, DAT_TIMEOUT, DAT_COUNT,
                                   const DAT_PVOID, DAT_QOS) noexcept;
DAT_RETURN provider_ep_disconnect(DAT_EP_HANDLE, DAT_CLOSE_FLAGS) noexcept;
DAT_RETURN provider_ep_post_send(DAT_EP_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET*, DAT_DTO_COOKIE,
                                 DAT_COMPLETION_FLAGS) noexcept;
DAT_RETURN provider_ep_post_recv(DAT_EP_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET*, DAT_DTO_COOKIE,
                                 DAT_COMPLETION_FLAGS) noexcept;
DAT_RETURN provider_ep_post_rdma_read(DAT_EP_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET*, DAT_DTO_COOKIE,
                                      const DAT_RMR_TRIPLET*, DAT_COMPLETION_FLAGS) noexcept;
DAT_RETURN provider_ep_post_rdma_write(DAT_EP_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET*, DAT_DTO_COOKIE,
                                       const DAT_RMR_TRIPLET*, DAT_COMPLETION_FLAGS) noexcept;
DAT_RETURN provider_ep_get_status(DAT_EP_HANDLE, DAT_EP_STATE*, DAT_BOOLEAN*,
                                  DAT_BOOLEAN*) noexcept;
DAT_RETURN provider_ep_free(DAT_EP_HANDLE) noexcept;
DAT_RETURN provider_ep_reset(DAT_EP_HANDLE) noexcept;
DAT_RETURN provider_ep_recv_query(DAT_EP_HANDLE, DAT_COUNT*, DAT_COUNT*) noexcept;
DAT_RETURN provider_lmr_free(DAT_LMR_HANDLE) noexcept;
DAT_RETURN provider_lmr_sync_rdma_read(DAT_IA_HANDLE, const DAT_LMR_TRIPLET*, DAT_VLEN) noexcept;
DAT_RETURN provider_lmr_sync_rdma_write(DAT_IA_HANDLE, const DAT_LMR_TRIPLET*, DAT_VLEN) noexcept;
DAT_RETURN provider_rmr_create(DAT_PZ_HANDLE, DAT_RMR_HANDLE*) noexcept;
DAT_RETURN provider_rmr_query(DAT_RMR_HANDLE, DAT_RMR_PARAM_MASK, DAT_RMR_PARAM*) noexcept;
DAT_RETURN provider_rmr_bind(DAT_RMR_HANDLE, DAT_LMR_HANDLE, const DAT_LMR_TRIPLET*,
                             DAT_MEM_PRIV_FLAGS, DAT_VA_TYPE, DAT_EP_HANDLE, DAT_RMR_COOKIE,
                             DAT_COMPLETION_FLAGS, DAT_RMR_CONTEXT*) noexcept;
DAT_RETURN provider_rmr_free(DAT_RMR_HANDLE) noexcept;
DAT_RETURN provider_psp_create(DAT_IA_HANDLE, DAT_CONN_QUAL, DAT_EVD_HANDLE, DAT_PSP_FLAGS,
                               DAT_PSP_HANDLE*) noexcept;
DAT_RETURN provider_psp_create_any(DAT_IA_HANDLE, DAT_CONN_QUAL*, DAT_EVD_HANDLE, DAT_PSP_FLAGS,
                                   DAT_PSP_HANDLE*) noexcept;
DAT_RETURN provider_psp_query(DAT_PSP_HANDLE, DAT_PSP_PARAM_MASK, DAT_PSP_PARAM*) noexcept;
DAT_RETURN provider_psp_free(DAT_PSP_HANDLE) noexcept;
DAT_RETURN provider_rsp_create(DAT_IA_HANDLE, DAT_CONN_QUAL, DAT_EP_HANDLE, DAT_EVD_HANDLE,
                               DAT_RSP_HANDLE*) noexcept;
DAT_RETURN provider_rsp_query(DAT_RSP_HANDLE, DAT_RSP_PARAM_MASK, DAT_RSP_PARAM*) noexcept;
DAT_RETURN provider_rsp_free(DAT_RSP_HANDLE) noexcept;
DAT_RETURN provider_pz_create(DAT_IA_HANDLE, DAT_PZ_HANDLE*) noexcept;
DAT_RETURN provider_pz_query(DAT_PZ_HANDLE, DAT_PZ_PARAM_MASK, DAT_PZ_PARAM*) noexcept;
DAT_RETURN provider_pz_free(DAT_PZ_HANDLE) noexcept;
DAT_RETURN provider_srq_create(DAT_IA_HANDLE, DAT_PZ_HANDLE, DAT_SRQ_ATTR*,
                               DAT_SRQ_HANDLE*) noexcept;
DAT_RETURN provider_srq_set_lw(DAT_SRQ_HANDLE, DAT_COUNT) noexcept;
DAT_RETURN provider_srq_free(DAT_SRQ_HANDLE) noexcept;
DAT_RETURN provider_srq_query(DAT_SRQ_HANDLE, DAT_SRQ_PARAM_MASK, DAT_SRQ_PARAM*) noexcept;
DAT_RETURN provider_srq_resize(DAT_SRQ_HANDLE, DAT_COUNT) noexcept;
DAT_RETURN provider_srq_post_recv(DAT_SRQ_HANDLE, DAT_COUNT, DAT_LMR_TRIPLET*,
                                  DAT_DTO_COOKIE) noexcept;
DAT_RETURN provider_ia_ha_related(DAT_IA_HANDLE, const DAT_NAME_PTR, DAT_BOOLEAN*) noexcept;
DAT_RETURN provider_lmr_create(DAT_IA_HANDLE, DAT_MEM_TYPE, DAT_REGION_DESCRIPTION, DAT_VLEN,
                               DAT_PZ_HANDLE, DAT_MEM_PRIV_FLAGS, DAT_VA_TYPE, DAT_LMR_HANDLE*,
                               DAT_LMR_CONTEXT*, DAT_RMR_CONTEXT*, DAT_VLEN*, DAT_VADDR*) noexcept;
DAT_RETURN provider_lmr_query(DAT_LMR_HANDLE, DAT_LMR_PARAM_MASK, DAT_LMR_PARAM*) noexcept;
DAT_RETURN provider_evd_create(DAT_IA_HANDLE, DAT_COUNT, DAT_CNO_HANDLE, DAT_EVD_FLAGS,
                               DAT_EVD_HANDLE*) noexcept;
DAT_RETURN provider_evd_modify_cno(DAT_EVD_HANDLE, DAT_CNO_HANDLE) noexcept;
DAT_RETURN provider_cno_create(DAT_IA_HANDLE, DAT_OS_WAIT_PROXY_AGENT, DAT_CNO_HANDLE*) noexcept;
DAT_RETURN provider_cno_fd_create(DAT_IA_HANDLE, DAT_FD*, DAT_CNO_HANDLE*) noexcept;
DAT_RETURN provider_cno_trigger(DAT_CNO_HANDLE, DAT_EVD_HANDLE*) noexcept;
DAT_RETURN provider_cno_modify_agent(DAT_CNO_HANDLE, DAT_OS_WAIT_PROXY_AGENT) noexcept;
DAT_RETURN provider_cno_query(DAT_CNO_HANDLE, DAT_CNO_PARAM_MASK, DAT_CNO_PARAM*) noexcept;
DAT_RETURN provider_cno_free(DAT_CNO_HANDLE) noexcept;
DAT_RETURN provider_cno_wait(DAT_CNO_HANDLE, DAT_TIMEOUT, DAT_EVD_HANDLE*) noexcept;
DAT_RETURN provider_evd_enable(DAT_EVD_HANDLE) noexcept;
DAT_RETURN provider_evd_wait(DAT_EVD_HANDLE, DAT_TIMEOUT, DAT_COUNT, DAT_EVENT*,
                             DAT_COUNT*) noexcept;
DAT_RETURN provider_evd_disable(DAT_EVD_HANDLE) noexcept;
DAT_RETURN provider_evd_set_unwaitable(DAT_EVD_HANDLE) noexcept;
DAT_RETURN provider_evd_clear_unwaitable(DAT_EVD_HANDLE) noexcept;

} // namespace dapx::dat
