// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The slots of a 1.2 table that 2.0 has with other arguments.
#include "functions.hpp"
#include "lmr.hpp"
#include "rmr.hpp"

namespace dapx::dat {

namespace {

DAT_RETURN cr_reject(DAT_CR_HANDLE cr) noexcept
{
    return provider_cr_reject(cr, 0, nullptr);
}

DAT_RETURN lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
                      DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges,
                      DAT_LMR_HANDLE* handle, DAT_LMR_CONTEXT* lmr_context,
                      DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_size,
                      DAT_VADDR* registered_address) noexcept
{
    return provider_lmr_create(ia, type, region, length, pz, privileges, DAT_VA_TYPE_VA, handle,
                               lmr_context, rmr_context, registered_size, registered_address);
}

/// The LMR is named by its context only.
DAT_LMR_HANDLE lmr_of(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET* triplet) noexcept
{
    const Ref<Rmr> rmr(rmr_handle);
    if (!rmr || triplet == nullptr)
        return DAT_HANDLE_NULL;
    return rmr->ia().find([&](const Object& object) {
        return object.type() == Lmr::handle_type &&
               static_cast<const Lmr&>(object).lmr_context() == triplet->lmr_context;
    });
}

DAT_RETURN rmr_bind(DAT_RMR_HANDLE rmr, const DAT_LMR_TRIPLET* triplet,
                    DAT_MEM_PRIV_FLAGS privileges, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
                    DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT* context) noexcept
{
    const DAT_RETURN result = provider_rmr_bind(rmr, lmr_of(rmr, triplet), triplet, privileges,
                                                DAT_VA_TYPE_VA, ep, cookie, flags, context);
    // There is no such argument to be wrong: the context is.
    if (result == error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR))
        return error(DAT_INVALID_PARAMETER, argument::rmr_bind_triplet);
    return result;
}

} // namespace

void add_slots_of_version(DAT_PROVIDER& table) noexcept
{
    table.cr_reject_func = cr_reject;
    table.lmr_create_func = lmr_create;
    table.rmr_bind_func = rmr_bind;
}

} // namespace dapx::dat
