// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The slots of a 2.0 table that 1.2 has not, or with other arguments.
#include "functions.hpp"

#include <cstdarg>

namespace dapx::dat {

namespace {

DAT_RETURN refuse_extension(DAT_HANDLE, DAT_EXTENDED_OP, std::va_list) noexcept
{
    return error(DAT_MODEL_NOT_SUPPORTED);
}

} // namespace

void add_slots_of_version(DAT_PROVIDER& table) noexcept
{
    table.cr_reject_func = provider_cr_reject;
    table.lmr_create_func = provider_lmr_create;
    table.rmr_bind_func = provider_rmr_bind;
    table.csp_create_func = refuse;
    table.csp_query_func = refuse;
    table.csp_free_func = refuse;
    table.ep_common_connect_func = refuse;
    table.rmr_create_for_ep_func = refuse;
    table.ep_post_send_with_invalidate_func = refuse;
    table.ep_post_rdma_read_to_rmr_func = refuse;
    table.cno_fd_create_func = provider_cno_fd_create;
    table.cno_trigger_func = provider_cno_trigger;
    table.ia_ha_related_func = provider_ia_ha_related;
    table.handle_extendedop_func = refuse_extension;
}

} // namespace dapx::dat
