// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/srq.hpp>

#include "ioctl.hpp"
#include "layout.hpp"
#include "one_context.hpp"

#include <dapx/evd.hpp>
#include <dapx/pd.hpp>
#include <dapx/xrc_domain.hpp>

namespace dapx {

Result<Srq> Srq::create(const Pd& pd, const Options& options, const Evd* evd) noexcept
{
    return create(pd, options, evd, nullptr, nullptr);
}

Result<Srq> Srq::create_xrc(const XrcDomain& domain, const Pd& pd, const Evd& evd,
                            const Options& options, const Evd* async) noexcept
{
    return create(pd, options, &evd, async, &domain);
}

Result<Srq> Srq::create(const Pd& pd, const Options& options, const Evd* evd, const Evd* async,
                        const XrcDomain* domain) noexcept
{
    if (auto same = detail::check_one_context(
            "DAPX_SRQ_CREATE", "cannot make a shared receive queue", pd, {evd, async, domain});
        !same)
        return std::unexpected(std::move(same).error());
    const Context context = pd.context();
    ::dapx_srq_create argument{};
    argument.pd = pd.handle();
    argument.depth = options.depth;
    argument.max_sge = options.max_sge;
    argument.xrcd = domain != nullptr ? domain->handle() : 0;
    argument.evd = evd != nullptr ? evd->handle() : 0;
    argument.async_evd = async != nullptr ? async->handle() : 0;
    argument.user_data = options.user_data;
    if (auto done = detail::command(context.fd(), argument, "cannot make a shared receive queue");
        !done)
        return std::unexpected(std::move(done).error());
    Srq srq(device_of(context), argument.out_srq);
    srq.max_sge_ = options.max_sge;
    if (auto done = srq.map(argument.out_ring, {}); !done)
        return std::unexpected(std::move(done).error());
    srq.number_ = argument.out_srq_num;
    return srq;
}

Result<void> Srq::map(const ::dapx_ring_layout& layout, detail::Mapping&& place) noexcept
{
    const std::size_t entry = sizeof(::dapx_recv_wr) + max_sge_ * sizeof(::dapx_sge);
    if (auto done = detail::check_layout(layout, entry); !done)
        return done;
    auto mapping =
        detail::Mapping::create_at(std::move(place), fd(), layout.mmap_offset, layout.mmap_size);
    if (!mapping)
        return std::unexpected(std::move(mapping).error());
    detail::WorkRing ring(mapping->base(), layout, mapping->owner());
    ring.count_on(queue_.ring());
    queue_ = detail::ReceiveQueue(ring, fd(), handle(), max_sge_);
    mapping_ = std::move(*mapping);
    entries_off_ = layout.entries_off;
    stride_ = layout.stride;
    return {};
}

Result<void> Srq::resize(std::uint32_t depth) noexcept
{
    ::dapx_srq_resize argument{};
    argument.srq = handle();
    argument.depth = depth;
    // Addresses first: once the module has switched, it takes receives from the new ring.
    auto place = detail::Mapping::reserve(detail::mapping_size(entries_off_, depth, stride_));
    if (!place)
        return std::unexpected(std::move(place).error());
    if (const int error = detail::command(fd(), argument); error != 0)
        return std::unexpected(
            detail::explain_resize(error, "DAPX_SRQ_RESIZE", "the shared receive queue"));
    auto done = map(argument.out_ring, std::move(*place));
    if (!done) {
        detail::WorkRing none;
        none.count_on(queue_.ring());
        queue_ = detail::ReceiveQueue(none, fd(), handle(), max_sge_);
    }
    return done;
}

Result<void> Srq::set_limit(std::uint32_t receives) noexcept
{
    ::dapx_srq_modify argument{};
    argument.srq = handle();
    argument.limit = receives;
    if (const int error = detail::command(fd(), argument); error != 0)
        return std::unexpected(detail::explain_srq_limit(error));
    return {};
}

Result<SrqInfo> Srq::query() const noexcept
{
    ::dapx_srq_query argument{};
    argument.srq = handle();
    if (auto done = detail::command(fd(), argument, "cannot query the shared receive queue"); !done)
        return std::unexpected(std::move(done).error());
    return SrqInfo{
        .pd = argument.out_pd,
        .xrc_domain = argument.out_xrcd,
        .evd = argument.out_evd,
        .async_evd = argument.out_async_evd,
        .number = argument.out_srq_num,
        .depth = argument.out_depth,
        .max_sge = argument.out_max_sge,
        .limit = argument.out_limit,
    };
}

} // namespace dapx
