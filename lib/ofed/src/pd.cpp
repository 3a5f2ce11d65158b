// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "pd.hpp"

#include "libibverbs.hpp"
#include "mr.hpp"
#include "own.hpp"

namespace dapx::verbs {

int Pd::add(Mr& mr) noexcept
try {
    const std::lock_guard guard(lock_);
    if (xrc_)
        if (auto done = mr.core().enable_xrc(); !done)
            return done.error().code();
    mrs_.push_back(&mr);
    return 0;
} catch (const std::bad_alloc&) {
    return ENOMEM;
}

void Pd::remove(Mr& mr) noexcept
{
    const std::lock_guard guard(lock_);
    std::erase(mrs_, &mr);
}

int Pd::enable_xrc() noexcept
{
    const std::lock_guard guard(lock_);
    if (xrc_)
        return 0;
    for (Mr* mr : mrs_)
        if (auto done = mr->core().enable_xrc(); !done)
            return done.error().code();
    xrc_ = true;
    return 0;
}

static ibv_pd* alloc_pd(Context& context) noexcept
{
    auto core = core::Pd::create(context.core());
    if (!core)
        return failed_null<ibv_pd>(core.error().code());
    return made(new (std::nothrow) Pd(context, std::move(*core)));
}

} // namespace dapx::verbs

using namespace dapx::verbs;

DAPX_VERBS ibv_pd* ibv_alloc_pd(ibv_context* context)
{
    Context* own = Context::find(context);
    if (own == nullptr)
        return DAPX_LIBIBVERBS(ibv_alloc_pd)(context);
    return own->is_open() ? alloc_pd(*own) : failed_null<ibv_pd>(EINVAL);
}

DAPX_VERBS int ibv_dealloc_pd(ibv_pd* pd)
{
    if (is_foreign(pd))
        return DAPX_LIBIBVERBS(ibv_dealloc_pd)(pd);
    return destroy(Pd::of(pd));
}
