// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "xrcd.hpp"

#include "calls.hpp"
#include "own.hpp"

namespace dapx::verbs {

Xrcd* Xrcd::open(Context& owner, int fd, int oflags) noexcept
{
    auto core = core::XrcDomain::open(owner.core(), fd, oflags);
    if (!core) {
        // Programs that wait for another one to make the domain try again at this.
        const int error = core.error().code();
        return failed_null<Xrcd>(error == ENOENT ? EAGAIN : error);
    }
    return made(new (std::nothrow) Xrcd(owner, std::move(*core)));
}

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr) noexcept
{
    constexpr std::uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    Context& own = Context::of(context);
    if (attr == nullptr || !own.is_open() || (attr->comp_mask & needed) != needed)
        return failed_null<ibv_xrcd>(EINVAL);
    if ((attr->comp_mask & ~needed) != 0)
        return failed_null<ibv_xrcd>(EOPNOTSUPP);
    Xrcd* xrcd = Xrcd::open(own, attr->fd, attr->oflags);
    return xrcd != nullptr ? xrcd->xrcd() : nullptr;
}

int close_xrcd(ibv_xrcd* xrcd) noexcept
{
    return destroy(Xrcd::of(xrcd));
}

} // namespace dapx::verbs
