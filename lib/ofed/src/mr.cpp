// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "mr.hpp"

#include "libibverbs.hpp"
#include "own.hpp"

namespace dapx::verbs {

namespace {

/// Flags that change nothing of what a program sees: hints, and rights that all memory has.
constexpr unsigned ignored_access =
    static_cast<unsigned>(IBV_ACCESS_OPTIONAL_RANGE) | static_cast<unsigned>(IBV_ACCESS_HUGETLB);

ibv_mr* reg_mr(Pd* pd, void* addr, std::size_t length, unsigned access) noexcept
{
    static constexpr struct {
        unsigned verbs;
        core::Access core;
    } rights[] = {
        {IBV_ACCESS_LOCAL_WRITE, core::Access::local_write},
        {IBV_ACCESS_REMOTE_WRITE, core::Access::remote_write},
        {IBV_ACCESS_REMOTE_READ, core::Access::remote_read},
        {IBV_ACCESS_REMOTE_ATOMIC, core::Access::remote_atomic},
    };
    if (pd == nullptr || !pd->owner().is_open())
        return failed_null<ibv_mr>(EINVAL);
    core::Access wanted = core::Access::local_read;
    access &= ~ignored_access;
    for (const auto& right : rights) {
        if ((access & right.verbs) != 0)
            wanted |= right.core;
        access &= ~right.verbs;
    }
    if (access != 0)
        return failed_null<ibv_mr>(EOPNOTSUPP);
    auto core = core::MemoryRegion::create(pd->core(), addr, length, wanted);
    if (!core)
        return failed_null<ibv_mr>(core.error().code());
    auto* mr = new (std::nothrow) Mr(*pd, addr, length, std::move(*core));
    if (mr == nullptr)
        return failed_null<ibv_mr>(ENOMEM);
    if (const int error = pd->add(*mr)) {
        (void)destroy(mr);
        return failed_null<ibv_mr>(error);
    }
    return mr;
}

} // namespace

} // namespace dapx::verbs

using namespace dapx::verbs;

DAPX_VERBS ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, size_t length, int access)
{
    if (is_foreign(pd))
        return DAPX_LIBIBVERBS(ibv_reg_mr)(pd, addr, length, access);
    return reg_mr(Pd::of(pd), addr, length, static_cast<unsigned>(access));
}

/// Peers name memory by its address: @p iova has to be that.
DAPX_VERBS ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, size_t length, std::uint64_t iova,
                                    unsigned int access)
{
    if (is_foreign(pd))
        return DAPX_LIBIBVERBS(ibv_reg_mr_iova2)(pd, addr, length, iova, access);
    if (iova != reinterpret_cast<std::uintptr_t>(addr))
        return failed_null<ibv_mr>(EOPNOTSUPP);
    return reg_mr(Pd::of(pd), addr, length, access);
}

DAPX_VERBS ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, size_t length, std::uint64_t iova,
                                   int access)
{
    if (is_foreign(pd))
        return DAPX_LIBIBVERBS(ibv_reg_mr_iova)(pd, addr, length, iova, access);
    return ibv_reg_mr_iova2(pd, addr, length, iova, static_cast<unsigned>(access));
}

DAPX_VERBS int ibv_dereg_mr(ibv_mr* mr)
{
    if (is_foreign(mr))
        return DAPX_LIBIBVERBS(ibv_dereg_mr)(mr);
    if (mr == nullptr)
        return failed(EINVAL);
    Pd& pd = *Pd::of(mr->pd);
    pd.remove(*Mr::of(mr));
    const int error = destroy(Mr::of(mr));
    // In use: it is still there.
    if (error != 0)
        (void)pd.add(*Mr::of(mr));
    return error;
}
