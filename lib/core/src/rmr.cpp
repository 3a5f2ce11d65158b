// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/rmr.hpp>

#include "ioctl.hpp"
#include "one_context.hpp"

#include <dapx/endpoint.hpp>
#include <dapx/pd.hpp>

namespace dapx {

namespace {

/// The module orders a bind by what is published, so that has to be all that was posted.
Result<::dapx_rmr_bind> bind_to(int fd, Endpoint& endpoint, ::dapx_rmr_bind argument,
                                SendFlags flags) noexcept
{
    if (has(flags, SendFlags::signalled))
        argument.flags |= DAPX_BIND_SIGNALED;
    if (has(flags, SendFlags::quiet))
        argument.flags |= DAPX_BIND_QUIET;
    argument.ep = endpoint.handle();
    if (const PostResult submitted = endpoint.submit(); submitted != PostResult::ok)
        return std::unexpected(explain(submitted, "DAPX_RMR_BIND"));
    auto done = argument.length != 0
                    ? detail::command(fd, argument, "cannot bind the remote memory region")
                    : detail::command(fd, argument, "cannot unbind the remote memory region");
    if (!done)
        return std::unexpected(std::move(done).error());
    return argument;
}

} // namespace

Result<Rmr> Rmr::create(const Pd& pd, std::uint64_t user_data) noexcept
{
    const Context context = pd.context();
    ::dapx_rmr_create argument{};
    argument.pd = pd.handle();
    argument.user_data = user_data;
    if (auto done = detail::command(context.fd(), argument, "cannot make a remote memory region");
        !done)
        return std::unexpected(std::move(done).error());
    return Rmr(device_of(context), argument.out_rmr);
}

Result<RemoteAddress> Rmr::bind(Endpoint& endpoint, std::uint64_t wr_id, const MemoryRegion& region,
                                std::uint64_t offset, std::uint64_t length, Access access,
                                SendFlags flags) noexcept
{
    // To the module that would be an unbind.
    if (length == 0)
        return std::unexpected(
            detail::explain(EINVAL, "DAPX_RMR_BIND", "cannot bind the remote memory region"));
    if (auto same = detail::check_one_context(
            "DAPX_RMR_BIND", "cannot bind the remote memory region", *this, {&endpoint, &region});
        !same)
        return std::unexpected(std::move(same).error());
    ::dapx_rmr_bind argument{};
    argument.rmr = handle();
    argument.mr = region.handle();
    argument.addr = region.addr() + offset;
    argument.length = length;
    argument.access = static_cast<std::uint32_t>(access);
    argument.wr_id = wr_id;
    const auto bound = bind_to(fd(), endpoint, argument, flags);
    if (!bound)
        return std::unexpected(bound.error());
    return RemoteAddress{.addr = bound->addr, .rkey = bound->out_rkey};
}

Result<void> Rmr::unbind(Endpoint& endpoint, std::uint64_t wr_id, SendFlags flags) noexcept
{
    if (auto same = detail::check_one_context(
            "DAPX_RMR_BIND", "cannot unbind the remote memory region", *this, {&endpoint});
        !same)
        return same;
    ::dapx_rmr_bind argument{};
    argument.rmr = handle();
    argument.wr_id = wr_id;
    if (const auto unbound = bind_to(fd(), endpoint, argument, flags); !unbound)
        return std::unexpected(unbound.error());
    return {};
}

Result<Rmr::Info> Rmr::query() const noexcept
{
    ::dapx_rmr_query argument{};
    argument.rmr = handle();
    argument.mask = DAPX_RMR_FIELD_PD | DAPX_RMR_FIELD_MR | DAPX_RMR_FIELD_RANGE |
                    DAPX_RMR_FIELD_ACCESS | DAPX_RMR_FIELD_RKEY;
    if (auto done = detail::command(fd(), argument, "cannot query the remote memory region"); !done)
        return std::unexpected(std::move(done).error());
    return Info{.pd = argument.out_pd,
                .mr = argument.out_mr,
                .addr = argument.out_addr,
                .length = argument.out_length,
                .access = Access{argument.out_access},
                .rkey = argument.out_rkey};
}

} // namespace dapx
