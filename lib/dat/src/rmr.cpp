// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "rmr.hpp"

#include "ep.hpp"
#include "functions.hpp"

namespace dapx::dat {

namespace {

DAT_MEM_PRIV_FLAGS privileges_of(core::Access access) noexcept
{
    int privileges = 0;
    if (core::has(access, core::Access::remote_read))
        privileges |= DAT_MEM_PRIV_REMOTE_READ_FLAG;
    if (core::has(access, core::Access::remote_write))
        privileges |= DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
    return static_cast<DAT_MEM_PRIV_FLAGS>(privileges);
}

/// Whether each remote right has its local one. DAT_SUCCESS, or what is missing.
DAT_RETURN within(DAT_MEM_PRIV_FLAGS wanted, DAT_MEM_PRIV_FLAGS given) noexcept
{
    if ((wanted & DAT_MEM_PRIV_REMOTE_READ_FLAG) != 0 &&
        (given & DAT_MEM_PRIV_LOCAL_READ_FLAG) == 0)
        return error(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ);
    if ((wanted & DAT_MEM_PRIV_REMOTE_WRITE_FLAG) != 0 &&
        (given & DAT_MEM_PRIV_LOCAL_WRITE_FLAG) == 0)
        return error(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE);
    return DAT_SUCCESS;
}

} // namespace

DAT_RETURN Rmr::bind(Ep& ep, const Lmr* region, const DAT_LMR_TRIPLET& triplet,
                     DAT_MEM_PRIV_FLAGS privileges, DAT_RMR_COOKIE cookie,
                     DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT& context) noexcept
{
    const Request request = {.cookie = cookie.as_64, .rmr = handle(), .operation = DAT_DTO_BIND_MW};
    return ep.post_request(
        request, flags, [&](std::uint64_t number, core::SendFlags how) noexcept -> DAT_RETURN {
            if (region == nullptr) {
                const auto unbound = window_.unbind(ep.endpoint(), number, how);
                return unbound ? DAT_RETURN{DAT_SUCCESS} : error_of(ep, unbound.error());
            }
            const auto bound = window_.bind(
                ep.endpoint(), number, region->region(),
                triplet.virtual_address - region->region().addr(), triplet.segment_length,
                // The window's rights are the peers'; the module adds what they need.
                access_of(privileges) & (core::Access::remote_read | core::Access::remote_write),
                how);
            if (!bound)
                return error_of(ep, bound.error());
            context = bound->rkey;
            return DAT_SUCCESS;
        });
}

DAT_RETURN Rmr::query(DAT_RMR_PARAM& param) const noexcept
{
    const auto info = window_.query();
    if (!info)
        return error_of(info.error());
    param = {};
    param.ia_handle = ia().consumer_handle();
    param.pz_handle = pz_.handle();
    complete(param);
    if (info->mr != 0) {
        param.lmr_triplet.virtual_address = info->addr;
        param.lmr_triplet.segment_length = static_cast<DAT_SEG_LENGTH>(info->length);
        param.lmr_triplet.lmr_context = info->mr;
        param.mem_priv = privileges_of(info->access);
        param.rmr_context = info->rkey;
    }
    return DAT_SUCCESS;
}

DAT_RETURN Rmr::release() noexcept
{
    return freed(window_.free());
}

DAT_RETURN provider_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE* handle) noexcept
{
    const Ref<Pz> pz(pz_handle);
    if (!pz)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
    if (handle == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    auto window = core::Rmr::create(pz->domain());
    if (!window)
        return error_of(window.error(), DAT_RESOURCE_MEMORY_REGION);
    auto rmr = make<Rmr>(pz->ia(), *pz, std::move(*window));
    if (rmr == nullptr)
        return no_memory();
    return hand_out(std::move(rmr), *handle);
}

DAT_RETURN provider_rmr_query(DAT_RMR_HANDLE handle, DAT_RMR_PARAM_MASK mask,
                              DAT_RMR_PARAM* param) noexcept
{
    const Ref<Rmr> rmr(handle);
    if (!rmr)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
    if (const DAT_RETURN bad = check_query(mask, DAT_RMR_FIELD_ALL, param))
        return bad;
    return rmr->query(*param);
}

DAT_RETURN provider_rmr_bind(DAT_RMR_HANDLE handle, DAT_LMR_HANDLE lmr_handle,
                             const DAT_LMR_TRIPLET* triplet, DAT_MEM_PRIV_FLAGS privileges,
                             DAT_VA_TYPE va_type, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie,
                             DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT* context) noexcept
{
    const Ref<Rmr> rmr(handle);
    if (!rmr)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
    const Ref<Ep> ep(ep_handle);
    if (!ep || &ep->ia() != &rmr->ia())
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
    if (triplet == nullptr)
        return error(DAT_INVALID_PARAMETER, argument::rmr_bind_triplet);
    if ((privileges & ~DAT_MEM_PRIV_ALL_FLAG) != 0)
        return error(DAT_INVALID_PARAMETER, argument::rmr_bind_privileges);
    if (va_type != DAT_VA_TYPE_VA)
        return error(DAT_MODEL_NOT_SUPPORTED);
    if (!valid(flags, ep->request_flags()))
        return error(DAT_INVALID_PARAMETER, argument::rmr_bind_flags);
    if (ep->pz() != rmr->pz())
        return error(DAT_PROTECTION_VIOLATION);
    DAT_RMR_CONTEXT ignored = 0;
    if (context == nullptr)
        context = &ignored;
    // A length of 0 unbinds.
    if (triplet->segment_length == 0)
        return rmr->bind(*ep, nullptr, *triplet, privileges, cookie, flags, *context);
    const Ref<Lmr> lmr(lmr_handle);
    if (!lmr || &lmr->ia() != &rmr->ia())
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
    if (triplet->lmr_context != lmr->lmr_context())
        return error(DAT_INVALID_PARAMETER, argument::rmr_bind_triplet);
    if (lmr->pz() != rmr->pz())
        return error(DAT_PROTECTION_VIOLATION);
    if (const DAT_RETURN missing = within(privileges, lmr->privileges()))
        return missing;
    return rmr->bind(*ep, lmr.get(), *triplet, privileges, cookie, flags, *context);
}

DAT_RETURN provider_rmr_free(DAT_RMR_HANDLE handle) noexcept
{
    return free_handle<Rmr>(handle, DAT_INVALID_HANDLE_RMR, DAT_NO_SUBTYPE);
}

} // namespace dapx::dat
