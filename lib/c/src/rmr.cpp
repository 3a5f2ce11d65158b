// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// <dapx/c.h>: remote memory regions.
#include "handles.hpp"

using namespace dapx::c;

namespace {

constexpr std::uint32_t bind_flags = DAPX_BIND_SIGNALED | DAPX_BIND_QUIET;

dapx::SendFlags flags_of(std::uint32_t flags) noexcept
{
    dapx::SendFlags how = dapx::SendFlags::none;
    if ((flags & DAPX_BIND_SIGNALED) != 0)
        how |= dapx::SendFlags::signalled;
    if ((flags & DAPX_BIND_QUIET) != 0)
        how |= dapx::SendFlags::quiet;
    return how;
}

/// The endpoint through which one is bound; nullptr if it is of XRC.
dapx::Endpoint* binder(dapxc_ep& ep) noexcept
{
    return std::get_if<dapx::Endpoint>(&ep.either);
}

int not_by_xrc() noexcept
{
    return keep(EOPNOTSUPP, "an endpoint of XRC binds no remote memory regions");
}

} // namespace

dapxc_rmr* dapxc_rmr_create(const dapxc_pd* pd, uint64_t user_data)
{
    if (pd == nullptr)
        return fail(invalid());
    return make<dapxc_rmr>(dapx::Rmr::create(pd->object, user_data));
}

int dapxc_rmr_bind(dapxc_rmr* rmr, dapxc_ep* ep, const dapxc_mr* mr, const void* addr,
                   size_t length, uint32_t access, uint32_t flags, uint64_t wr_id, uint32_t* rkey)
{
    if (rmr == nullptr || ep == nullptr || mr == nullptr || rkey == nullptr ||
        (flags & ~bind_flags) != 0)
        return invalid();
    dapx::Endpoint* endpoint = binder(*ep);
    if (endpoint == nullptr)
        return not_by_xrc();
    // Before the region's start it wraps around, and the module refuses it.
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(addr) - mr->object.addr();
    const auto bound = rmr->object.bind(*endpoint, wr_id, mr->object, offset, length,
                                        dapx::Access{access}, flags_of(flags));
    if (!bound)
        return keep(bound.error());
    *rkey = bound->rkey;
    return 0;
}

int dapxc_rmr_unbind(dapxc_rmr* rmr, dapxc_ep* ep, uint32_t flags, uint64_t wr_id)
{
    if (rmr == nullptr || ep == nullptr || (flags & ~bind_flags) != 0)
        return invalid();
    dapx::Endpoint* endpoint = binder(*ep);
    if (endpoint == nullptr)
        return not_by_xrc();
    return errno_of(rmr->object.unbind(*endpoint, wr_id, flags_of(flags)));
}

int dapxc_rmr_query(const dapxc_rmr* rmr, dapx_rmr_query* query)
{
    if (rmr == nullptr || !has_room(query, offsetof(dapx_rmr_query, mask)))
        return invalid();
    query->rmr = rmr->object.handle();
    return ask(rmr->object.context(), *query, "cannot query the remote memory region");
}

uint32_t dapxc_rmr_handle(const dapxc_rmr* rmr)
{
    return handle_of(rmr);
}

int dapxc_rmr_free(dapxc_rmr* rmr)
{
    return take_back(rmr);
}
