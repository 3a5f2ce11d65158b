// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the registry calls when a line of dat.conf is used for the first and the last time.
#include "functions.hpp"

#include <cstring>
#include <list>
#include <ranges>

namespace dapx::dat {

DAT_RETURN result_of(core::PostResult post) noexcept
{
    switch (post) {
    case core::PostResult::ok:
        return DAT_SUCCESS;
    case core::PostResult::full:
        return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
    case core::PostResult::bad_state:
        return error(DAT_INVALID_STATE);
    case core::PostResult::out_of_service:
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_ERROR);
    case core::PostResult::bad_request:
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    case core::PostResult::freed:
    case core::PostResult::wrong_process:
        return error(DAT_INVALID_HANDLE);
    case core::PostResult::broken_ring:
    case core::PostResult::device_removed:
        break;
    }
    return error(DAT_INTERNAL_ERROR);
}

namespace {

DAT_PROVIDER table(const char* name, bool thread_safe) noexcept
{
    DAT_PROVIDER table{};
    table.device_name = name;
    table.ia_open_func = thread_safe ? provider_ia_open<true> : provider_ia_open<false>;
    table.ia_query_func = provider_ia_query;
    table.ia_close_func = provider_ia_close;
    table.set_consumer_context_func = provider_set_consumer_context;
    table.get_consumer_context_func = provider_get_consumer_context;
    table.get_handle_type_func = provider_get_handle_type;
    table.cno_create_func = provider_cno_create;
    table.cno_modify_agent_func = provider_cno_modify_agent;
    table.cno_query_func = provider_cno_query;
    table.cno_free_func = provider_cno_free;
    table.cno_wait_func = provider_cno_wait;
    table.cr_query_func = provider_cr_query;
    table.cr_accept_func = provider_cr_accept;
    table.cr_handoff_func = provider_cr_handoff;
    table.evd_create_func = provider_evd_create;
    table.evd_query_func = provider_evd_query;
    table.evd_modify_cno_func = provider_evd_modify_cno;
    table.evd_enable_func = provider_evd_enable;
    table.evd_disable_func = provider_evd_disable;
    table.evd_wait_func = provider_evd_wait;
    table.evd_resize_func = provider_evd_resize;
    table.evd_post_se_func = provider_evd_post_se;
    table.evd_dequeue_func = provider_evd_dequeue;
    table.evd_free_func = provider_evd_free;
    table.ep_create_func = provider_ep_create;
    table.ep_query_func = provider_ep_query;
    table.ep_modify_func = provider_ep_modify;
    table.ep_connect_func = provider_ep_connect;
    table.ep_dup_connect_func = provider_ep_dup_connect;
    table.ep_disconnect_func = provider_ep_disconnect;
    table.ep_post_send_func = provider_ep_post_send;
    table.ep_post_recv_func = provider_ep_post_recv;
    table.ep_post_rdma_read_func = provider_ep_post_rdma_read;
    table.ep_post_rdma_write_func = provider_ep_post_rdma_write;
    table.ep_get_status_func = provider_ep_get_status;
    table.ep_free_func = provider_ep_free;
    table.lmr_query_func = provider_lmr_query;
    table.lmr_free_func = provider_lmr_free;
    table.rmr_create_func = provider_rmr_create;
    table.rmr_query_func = provider_rmr_query;
    table.rmr_free_func = provider_rmr_free;
    table.psp_create_func = provider_psp_create;
    table.psp_query_func = provider_psp_query;
    table.psp_free_func = provider_psp_free;
    table.rsp_create_func = provider_rsp_create;
    table.rsp_query_func = provider_rsp_query;
    table.rsp_free_func = provider_rsp_free;
    table.pz_create_func = provider_pz_create;
    table.pz_query_func = provider_pz_query;
    table.pz_free_func = provider_pz_free;
    table.psp_create_any_func = provider_psp_create_any;
    table.ep_reset_func = provider_ep_reset;
    table.evd_set_unwaitable_func = provider_evd_set_unwaitable;
    table.evd_clear_unwaitable_func = provider_evd_clear_unwaitable;
    table.lmr_sync_rdma_read_func = provider_lmr_sync_rdma_read;
    table.lmr_sync_rdma_write_func = provider_lmr_sync_rdma_write;
    table.ep_create_with_srq_func = provider_ep_create_with_srq;
    table.ep_recv_query_func = provider_ep_recv_query;
    table.ep_set_watermark_func = refuse;
    table.srq_create_func = provider_srq_create;
    table.srq_free_func = provider_srq_free;
    table.srq_post_recv_func = provider_srq_post_recv;
    table.srq_query_func = provider_srq_query;
    table.srq_resize_func = provider_srq_resize;
    table.srq_set_lw_func = provider_srq_set_lw;
    add_slots_of_version(table);
    return table;
}

class Registered {
public:
    /// Adds it to the registry, too.
    void add(const DAT_PROVIDER_INFO& info, const char* device)
    {
        const std::lock_guard lock(mutex_);
        // A line that was used before, too: programs may open and close without end.
        Provider* provider = find(info.ia_name, info.is_thread_safe == DAT_TRUE);
        const bool known = provider != nullptr && provider->device == device;
        if (!known) {
            std::list<Provider> made(1);
            provider = &made.front();
            provider->info = info;
            provider->device = device;
            provider->table = table(provider->info.ia_name, info.is_thread_safe == DAT_TRUE);
            providers_.splice(providers_.end(), made);
        }
        if (dat_registry_add_provider(&provider->table, &provider->info) != DAT_SUCCESS && !known)
            providers_.pop_back();
    }

    void remove(const DAT_PROVIDER_INFO& info) noexcept
    {
        const std::lock_guard lock(mutex_);
        // It stays here: freed handles lead to its table.
        if (Provider* provider = find(info.ia_name, info.is_thread_safe == DAT_TRUE))
            (void)dat_registry_remove_provider(&provider->table, &provider->info);
    }

    const Provider* look_up(const char* name, bool thread_safe) noexcept
    {
        const std::lock_guard lock(mutex_);
        return find(name, thread_safe);
    }

private:
    /// The newest: a line may be read again, with another device.
    Provider* find(const char* name, bool thread_safe) noexcept
    {
        for (Provider& provider : std::views::reverse(providers_))
            if (std::strcmp(provider.info.ia_name, name) == 0 &&
                (provider.info.is_thread_safe == DAT_TRUE) == thread_safe)
                return &provider;
        return nullptr;
    }

    std::mutex mutex_;
    std::list<Provider> providers_;
};

Registered& registered()
{
    // Never destroyed: freed handles lead to the tables.
    static auto* all = new Registered;
    return *all;
}

} // namespace

const Provider* find_provider(const char* name, bool thread_safe) noexcept
{
    return name == nullptr ? nullptr : registered().look_up(name, thread_safe);
}

} // namespace dapx::dat

/// @p parameters: the RDMA device's name.
extern "C" [[gnu::visibility("default")]] void
DAT_PROVIDER_INIT_FUNC_NAME(const DAT_PROVIDER_INFO* info, const char* parameters)
try {
    const std::string device(parameters == nullptr ? "" : parameters);
    const std::size_t begin = device.find_first_not_of(' ');
    if (begin == std::string::npos) {
        dapx::dat::explain(info->ia_name, "no RDMA device in its line of dat.conf; write it with "
                                          "'dapxctl dat-conf'");
        return;
    }
    dapx::dat::registered().add(*info,
                                device.substr(begin, device.find(' ', begin) - begin).c_str());
} catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): its name is not registered
}

extern "C" [[gnu::visibility("default")]] void
DAT_PROVIDER_FINI_FUNC_NAME(const DAT_PROVIDER_INFO* info)
{
    dapx::dat::registered().remove(*info);
}
