// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "pz.hpp"

#include "functions.hpp"

namespace dapx::dat {

DAT_RETURN Pz::release() noexcept
{
    return freed(domain_.free());
}

DAT_RETURN provider_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE* handle) noexcept
{
    const Ref<Ia> ia(ia_handle);
    if (!ia)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    if (handle == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    auto domain = core::Pd::create(ia->context());
    if (!domain)
        return error_of(domain.error(), DAT_RESOURCE_PROTECTION_DOMAIN);
    auto pz = make<Pz>(*ia, std::move(*domain));
    if (pz == nullptr)
        return no_memory();
    return hand_out(std::move(pz), *handle);
}

DAT_RETURN provider_pz_query(DAT_PZ_HANDLE handle, DAT_PZ_PARAM_MASK mask,
                             DAT_PZ_PARAM* param) noexcept
{
    const Ref<Pz> pz(handle);
    if (!pz)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
    if (const DAT_RETURN bad = check_query(mask, DAT_PZ_FIELD_ALL, param))
        return bad;
    param->ia_handle = pz->ia().consumer_handle();
    return DAT_SUCCESS;
}

DAT_RETURN provider_pz_free(DAT_PZ_HANDLE handle) noexcept
{
    return free_handle<Pz>(handle, DAT_INVALID_HANDLE_PZ, DAT_INVALID_STATE_PZ_IN_USE);
}

} // namespace dapx::dat
