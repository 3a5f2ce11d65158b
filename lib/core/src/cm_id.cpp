// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/cm_id.hpp>

#include "clock.hpp"
#include "endpoint_attr.hpp"
#include "ioctl.hpp"
#include "one_context.hpp"
#include "private_data.hpp"
#include "qp_step.hpp"
#include "sockaddr.hpp"

#include <dapx/endpoint.hpp>
#include <dapx/evd.hpp>

#include <cerrno>

namespace dapx {

Result<CmId> CmId::create(const Evd& evd, std::uint64_t user_data) noexcept
{
    const Context context = evd.context();
    ::dapx_cm_create argument{};
    argument.evd = evd.handle();
    argument.user_data = user_data;
    if (auto done = detail::command(context.fd(), argument, "cannot make a CM id"); !done)
        return std::unexpected(std::move(done).error());
    return CmId(device_of(context), argument.out_cm);
}

Result<CmId> CmId::request(CmId& listener, const Event& event) noexcept
{
    CmId request(listener.device(), event.request());
    if (auto done = listener.ack(); !done)
        return std::unexpected(std::move(done).error());
    return request;
}

Result<void> CmId::take(const Evd& evd, std::uint64_t user_data) noexcept
{
    if (auto same =
            detail::check_one_context("DAPX_CM_TAKE", "cannot take the request", *this, {&evd});
        !same)
        return same;
    ::dapx_cm_take argument{};
    argument.cm = handle();
    argument.evd = evd.handle();
    argument.user_data = user_data;
    return detail::command(fd(), argument, "cannot take the request");
}

Result<void> CmId::modify(const CmOptions& options) noexcept
{
    ::dapx_cm_modify argument{};
    argument.cm = handle();
    if (options.tos) {
        argument.mask |= DAPX_CM_MODIFY_TOS;
        argument.tos = *options.tos;
    }
    if (options.ack_timeout) {
        argument.mask |= DAPX_CM_MODIFY_ACK_TIMEOUT;
        argument.ack_timeout = *options.ack_timeout;
    }
    if (options.reuse_address) {
        argument.mask |= DAPX_CM_MODIFY_REUSEADDR;
        argument.reuseaddr = *options.reuse_address ? 1 : 0;
    }
    if (options.one_family) {
        argument.mask |= DAPX_CM_MODIFY_AFONLY;
        argument.afonly = *options.one_family ? 1 : 0;
    }
    return detail::command(fd(), argument, "cannot set options of the CM id");
}

Result<void> CmId::bind(const Address& address) noexcept
{
    ::dapx_cm_bind argument{};
    argument.cm = handle();
    detail::to_abi(address, argument.addr);
    if (const int error = detail::command(fd(), argument); error != 0)
        return std::unexpected(
            detail::explain_address(error, "DAPX_CM_BIND", "cannot bind to", address));
    return {};
}

Result<void> CmId::listen(std::uint32_t backlog) noexcept
{
    return listen(DAPX_LISTEN_CONSUMER, backlog, 0, nullptr);
}

Result<void> CmId::listen_reserved(Endpoint& endpoint) noexcept
{
    if (auto same =
            detail::check_one_context("DAPX_CM_LISTEN", "cannot listen", *this, {&endpoint});
        !same)
        return same;
    return listen(DAPX_LISTEN_RESERVED, 0, endpoint.handle(), nullptr);
}

Result<void> CmId::listen_tentative(const EndpointOptions& sizes, std::uint32_t backlog) noexcept
{
    return listen(DAPX_LISTEN_TENTATIVE, backlog, 0, &sizes);
}

Result<void> CmId::listen(std::uint32_t mode, std::uint32_t backlog, std::uint32_t endpoint,
                          const EndpointOptions* sizes) noexcept
{
    ::dapx_cm_listen argument{};
    argument.cm = handle();
    argument.mode = mode;
    argument.backlog = backlog;
    argument.ep = endpoint;
    if (sizes != nullptr)
        argument.attr = detail::to_abi(*sizes);
    return detail::command(fd(), argument, "cannot listen");
}

Result<void> CmId::resolve_address(const Address& destination, const Address& source,
                                   Deadline deadline) noexcept
{
    ::dapx_cm_resolve argument{};
    argument.cm = handle();
    argument.what = DAPX_RESOLVE_ADDR;
    argument.deadline = detail::to_abi(deadline);
    detail::to_abi(destination, argument.dst);
    detail::to_abi(source, argument.src);
    if (const int error = detail::command(fd(), argument); error != 0)
        return std::unexpected(
            detail::explain_address(error, "DAPX_CM_RESOLVE", "cannot resolve", destination));
    return {};
}

Result<void> CmId::resolve_route(Deadline deadline) noexcept
{
    ::dapx_cm_resolve argument{};
    argument.cm = handle();
    argument.what = DAPX_RESOLVE_ROUTE;
    argument.deadline = detail::to_abi(deadline);
    return detail::command(fd(), argument, "cannot resolve the route");
}

Result<CmInfo> CmId::query() const noexcept
{
    ::dapx_cm_query argument{};
    argument.cm = handle();
    if (auto done = detail::command(fd(), argument, "cannot query the CM id"); !done)
        return std::unexpected(std::move(done).error());
    return CmInfo{
        .state = CmState{argument.out_state},
        .endpoint = argument.out_ep,
        .evd = argument.out_evd,
        .requests = argument.out_requests,
        .unacked = argument.out_unacked,
        .listener = argument.out_listener,
        .user_data = argument.out_user_data,
        .private_data =
            detail::private_data(argument.out_private_data, argument.out_private_data_len),
        .xrc = argument.out_xrc != 0,
        .local = detail::from_abi(argument.out_local),
        .remote = detail::from_abi(argument.out_remote),
        .remote_qp_num = argument.out_remote_qp_num,
        .srq = argument.out_srq != 0,
        .responder_resources = argument.out_responder_resources,
        .initiator_depth = argument.out_initiator_depth,
        .retry_count = argument.out_retry_count,
        .rnr_retry_count = argument.out_rnr_retry_count,
        .port = argument.out_port,
        .steps = {.last = QpState{argument.out_qp.state},
                  .port = argument.out_qp.port,
                  .pkey_index = argument.out_qp.pkey_index,
                  .ready_to_receive = detail::path_from_abi(argument.out_qp),
                  .ready_to_send = detail::ready_to_send_from_abi(argument.out_qp)},
    };
}

Result<Address> CmId::local_address() const noexcept
{
    auto info = query();
    if (!info)
        return std::unexpected(std::move(info).error());
    return info->local;
}

Result<void> CmId::reject(std::span<const std::byte> private_data) noexcept
{
    ::dapx_cm_reject argument{};
    argument.cm = handle();
    if (auto done = detail::copy_private_data(private_data, argument.private_data,
                                              argument.private_data_len);
        !done)
        return done;
    auto done = detail::command(fd(), argument, "cannot reject the connection");
    if (!done)
        return std::unexpected(
            detail::blame_private_data(std::move(done).error(), fd(), private_data.size(),
                                       &::dapx_query_device::out_max_reject_data, false));
    forget();
    return {};
}

Result<void> CmId::ack(std::uint32_t events) noexcept
{
    ::dapx_cm_ack argument{};
    argument.cm = handle();
    argument.events = events;
    return detail::command(fd(), argument, "cannot acknowledge events");
}

Result<void> CmId::discard() noexcept
{
    if (const int error = try_free(); error != 0)
        return std::unexpected(detail::explain_free(error, ObjectType::cm));
    return {};
}

} // namespace dapx
