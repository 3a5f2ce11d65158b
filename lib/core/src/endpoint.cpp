// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/endpoint.hpp>

#include "endpoint_attr.hpp"
#include "ioctl.hpp"
#include "one_context.hpp"
#include "private_data.hpp"

#include <dapx/cm_id.hpp>
#include <dapx/evd.hpp>
#include <dapx/pd.hpp>
#include <dapx/srq.hpp>

namespace dapx {

namespace {

/// With an SRQ it has no receives of its own.
EndpointOptions sizes_with(const EndpointOptions& options, const Srq* srq) noexcept
{
    EndpointOptions sizes = options;
    if (srq != nullptr) {
        sizes.recv_depth = 0;
        sizes.max_recv_sge = 0;
    }
    return sizes;
}

} // namespace

Result<Endpoint> Endpoint::create(const Pd& pd, const Evds& evds, const EndpointOptions& options,
                                  const Srq* srq) noexcept
{
    const EndpointOptions sizes = sizes_with(options, srq);
    const auto made = issue_create(pd, evds, sizes, 0, srq, nullptr);
    if (!made)
        return std::unexpected(made.error());
    Endpoint endpoint(device_of(pd.context()), made->out_ep, made->out_qp_num, false);
    if (auto done =
            endpoint.map(made->out_send_ring, made->out_recv_ring, made->out_state_off, sizes);
        !done)
        return std::unexpected(std::move(done).error());
    return endpoint;
}

Result<void> Endpoint::resize(const EndpointOptions& options, const Srq* srq) noexcept
{
    return issue_resize(sizes_with(options, srq), srq);
}

Result<Endpoint> Endpoint::adopt(const Context& context, std::uint32_t handle) noexcept
{
    ::dapx_ep_query argument{};
    argument.ep = handle;
    if (auto done = detail::command(context.fd(), argument, "cannot take over the endpoint"); !done)
        return std::unexpected(std::move(done).error());
    Endpoint endpoint(device_of(context), handle, argument.out_qp_num, false);
    if (auto done = endpoint.map(argument.out_send_ring, argument.out_recv_ring,
                                 argument.out_state_off, detail::from_abi(argument.out_attr, 0));
        !done)
        return std::unexpected(std::move(done).error());
    return endpoint;
}

Result<void> Endpoint::accept(CmId&& request, const AcceptOptions& options) noexcept
{
    if (auto same = detail::check_one_context("DAPX_EP_ACCEPT", "cannot accept the connection",
                                              *this, {&request});
        !same)
        return same;
    ::dapx_ep_accept argument{};
    argument.ep = handle();
    argument.cm = request.handle();
    argument.flags = options.by_steps ? DAPX_CONNECT_STEPS : 0;
    argument.rnr_retry_count = options.rnr_retry_count;
    if (auto done = detail::copy_private_data(options.private_data, argument.private_data,
                                              argument.private_data_len);
        !done)
        return done;
    auto done = detail::command(fd(), argument, "cannot accept the connection");
    if (!done)
        return std::unexpected(
            detail::blame_private_data(std::move(done).error(), fd(), options.private_data.size(),
                                       &::dapx_query_device::out_max_accept_data, false));
    request.forget();
    return {};
}

} // namespace dapx
