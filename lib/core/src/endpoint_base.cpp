// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/endpoint_base.hpp>

#include "clock.hpp"
#include "endpoint_attr.hpp"
#include "ioctl.hpp"
#include "layout.hpp"
#include "one_context.hpp"
#include "private_data.hpp"
#include "qp_step.hpp"
#include "sockaddr.hpp"

#include <dapx/cm_id.hpp>
#include <dapx/evd.hpp>
#include <dapx/pd.hpp>
#include <dapx/srq.hpp>
#include <dapx/xrc_domain.hpp>

#include <algorithm>

namespace dapx {

const char* describe(EpState state) noexcept
{
    switch (state) {
    case EpState::unconnected:
        return "unconnected";
    case EpState::reserved:
        return "reserved";
    case EpState::passive_pending:
        return "passive connection pending";
    case EpState::active_pending:
        return "active connection pending";
    case EpState::tentative_pending:
        return "tentative connection pending";
    case EpState::completion_pending:
        return "completion pending";
    case EpState::connected:
        return "connected";
    case EpState::disconnect_pending:
        return "disconnect pending";
    case EpState::disconnected:
        return "disconnected";
    }
    return "unknown state";
}

namespace {

std::uint32_t handle_of(const Object* object) noexcept
{
    return object != nullptr ? object->handle() : 0;
}

} // namespace

Result<::dapx_ep_create> EndpointBase::issue_create(const Pd& pd, const Evds& evds,
                                                    const EndpointOptions& options,
                                                    std::uint32_t flags, const Srq* srq,
                                                    const XrcDomain* domain) noexcept
{
    if (auto same = detail::check_one_context(
            "DAPX_EP_CREATE", "cannot make an endpoint", pd,
            {&evds.request, evds.recv, evds.connect.get(), evds.async.get(), srq, domain});
        !same)
        return std::unexpected(std::move(same).error());
    ::dapx_ep_create argument{};
    argument.pd = pd.handle();
    argument.srq = handle_of(srq);
    argument.request_evd = evds.request.handle();
    argument.recv_evd = handle_of(evds.recv);
    argument.connect_evd = handle_of(evds.connect.get());
    argument.async_evd = handle_of(evds.async.get());
    argument.xrcd = handle_of(domain);
    argument.user_data = options.user_data;
    argument.attr = detail::to_abi(options);
    argument.attr.flags |= flags;
    if (auto done = detail::command(pd.context().fd(), argument, "cannot make an endpoint"); !done)
        return std::unexpected(std::move(done).error());
    return argument;
}

Result<void> EndpointBase::map(const ::dapx_ring_layout& send, const ::dapx_ring_layout& recv,
                               std::uint32_t state_off, const EndpointOptions& options,
                               detail::Mapping&& place) noexcept
{
    const std::size_t send_entry =
        sizeof(::dapx_send_wr) +
        std::max<std::size_t>(options.max_send_sge * sizeof(::dapx_sge), options.max_inline);
    const std::size_t recv_entry =
        sizeof(::dapx_recv_wr) + options.max_recv_sge * sizeof(::dapx_sge);
    if (auto done = detail::check_layout(send, send_entry); !done)
        return done;
    if (recv.depth != 0) {
        // Both are parts of one mapping, which the send ring's layout describes.
        ::dapx_ring_layout both = recv;
        both.mmap_size = send.mmap_size;
        if (auto done = detail::check_layout(both, recv_entry); !done)
            return done;
    }
    auto mapping =
        detail::Mapping::create_at(std::move(place), fd(), send.mmap_offset, send.mmap_size);
    if (!mapping)
        return std::unexpected(std::move(mapping).error());
    std::byte* base = mapping->base();
    const detail::Owner owner = mapping->owner();
    use_rings(detail::WorkRing(base, send, owner),
              recv.depth != 0 ? detail::WorkRing(base, recv, owner) : detail::WorkRing(),
              options.max_recv_sge);
    mapping_ = std::move(*mapping);
    state_ = reinterpret_cast<const std::uint32_t*>(base + state_off);
    fd_ = fd();
    max_send_sge_ = options.max_send_sge;
    max_inline_ = options.max_inline;
    return {};
}

void EndpointBase::use_rings(detail::WorkRing send, detail::WorkRing recv,
                             std::uint32_t max_recv_sge) noexcept
{
    send.count_on(send_ring_);
    recv.count_on(recv_queue_.ring());
    send_ring_ = send;
    recv_queue_ = detail::ReceiveQueue(recv, fd(), handle(), max_recv_sge);
}

Result<void> EndpointBase::issue_resize(const EndpointOptions& options, const Srq* srq) noexcept
{
    if (auto same =
            detail::check_one_context("DAPX_EP_RESIZE", "cannot resize the endpoint", *this, {srq});
        !same)
        return same;
    ::dapx_ep_resize argument{};
    argument.ep = handle();
    argument.srq = handle_of(srq);
    argument.attr = detail::to_abi(options);
    // Addresses first: once the module has switched, the old rings are dead. More than it takes.
    constexpr std::uint64_t control = 4096;
    constexpr std::uint64_t line = 64;
    const std::uint64_t payload =
        std::max<std::uint64_t>(options.max_send_sge * sizeof(::dapx_sge), options.max_inline);
    auto place = detail::Mapping::reserve(
        detail::mapping_size(control, options.send_depth, sizeof(::dapx_send_wr) + payload + line) +
        detail::mapping_size(control, options.recv_depth,
                             sizeof(::dapx_recv_wr) + options.max_recv_sge * sizeof(::dapx_sge) +
                                 line));
    if (!place)
        return std::unexpected(std::move(place).error());
    if (auto done = detail::command(fd(), argument, "cannot resize the endpoint"); !done)
        return done;
    qp_num_ = argument.out_qp_num;
    auto done = map(argument.out_send_ring, argument.out_recv_ring, argument.out_state_off, options,
                    std::move(*place));
    if (!done)
        use_rings({}, {}, 0);
    return done;
}

Result<EndpointInfo> EndpointBase::query() const noexcept
{
    ::dapx_ep_query argument{};
    argument.ep = handle();
    if (auto done = detail::command(fd(), argument, "cannot query the endpoint"); !done)
        return std::unexpected(std::move(done).error());
    return EndpointInfo{
        .state = EpState{argument.out_state},
        .pd = argument.out_pd,
        .srq = argument.out_srq,
        .request_evd = argument.out_request_evd,
        .recv_evd = argument.out_recv_evd,
        .connect_evd = argument.out_connect_evd,
        .async_evd = argument.out_async_evd,
        .cm = argument.out_cm,
        .options = detail::from_abi(argument.out_attr, argument.out_user_data),
        .qp_num = argument.out_qp_num,
        .remote_qp_num = argument.out_remote_qp_num,
        .requests = argument.out_requests,
        .receives = argument.out_receives,
        .private_data =
            detail::private_data(argument.out_private_data, argument.out_private_data_len),
        .local = detail::from_abi(argument.out_local),
        .remote = detail::from_abi(argument.out_remote),
        .reject_reason = argument.out_reject_reason,
        .rd_atomic = argument.out_rd_atomic,
        .dest_rd_atomic = argument.out_dest_rd_atomic,
    };
}

namespace {

/// @param destination nullptr: the CM id's.
Result<void> connect(int fd, ::dapx_ep_connect& argument, const ConnectOptions& options,
                     const Address* destination, bool xrc) noexcept
{
    argument.flags = options.by_steps ? DAPX_CONNECT_STEPS : 0;
    argument.deadline = detail::to_abi(options.deadline);
    argument.retry_count = options.retry_count;
    argument.rnr_retry_count = options.rnr_retry_count;
    if (auto done = detail::copy_private_data(options.private_data, argument.private_data,
                                              argument.private_data_len);
        !done)
        return done;
    const int error = detail::command(fd, argument);
    if (error == 0)
        return {};
    return std::unexpected(detail::blame_private_data(
        destination != nullptr
            ? detail::explain_address(error, "DAPX_EP_CONNECT", "cannot connect to", *destination)
            : detail::explain(error, "DAPX_EP_CONNECT", "cannot connect"),
        fd, options.private_data.size(), &::dapx_query_device::out_max_connect_data, xrc));
}

} // namespace

Result<void> EndpointBase::connect(const Address& destination,
                                   const ConnectOptions& options) noexcept
{
    ::dapx_ep_connect argument{};
    argument.ep = handle();
    detail::to_abi(destination, argument.dst);
    detail::to_abi(options.source, argument.src);
    return dapx::connect(fd(), argument, options, &destination, xrc_);
}

Result<void> EndpointBase::connect(const CmId& id, const ConnectOptions& options) noexcept
{
    if (auto same = detail::check_one_context("DAPX_EP_CONNECT", "cannot connect", *this, {&id});
        !same)
        return same;
    ::dapx_ep_connect argument{};
    argument.ep = handle();
    argument.cm = id.handle();
    return dapx::connect(fd(), argument, options, nullptr, xrc_);
}

Result<void> EndpointBase::establish() noexcept
{
    ::dapx_ep_establish argument{};
    argument.ep = handle();
    return detail::command(fd(), argument, "cannot establish the connection");
}

Result<void> EndpointBase::disconnect() noexcept
{
    ::dapx_ep_disconnect argument{};
    argument.ep = handle();
    return detail::command(fd(), argument, "cannot disconnect");
}

Result<void> EndpointBase::disconnect_now() noexcept
{
    ::dapx_ep_disconnect argument{};
    argument.ep = handle();
    argument.flags = DAPX_DISCONNECT_ABRUPT;
    return detail::command(fd(), argument, "cannot disconnect");
}

Result<void> EndpointBase::reset() noexcept
{
    ::dapx_ep_reset argument{};
    argument.ep = handle();
    if (auto done = detail::command(fd(), argument, "cannot reset the endpoint"); !done)
        return done;
    qp_num_ = argument.out_qp_num;
    send_ring_.resync();
    if (recv_queue_.ring().depth() != 0)
        recv_queue_.ring().resync();
    return {};
}

Result<void> EndpointBase::modify(const EndpointChanges& changes) noexcept
{
    if (auto same = detail::check_one_context(
            "DAPX_EP_MODIFY", "cannot change the endpoint", *this,
            {changes.pd, changes.request_evd, changes.recv_evd, changes.connect_evd});
        !same)
        return same;
    ::dapx_ep_modify argument{};
    argument.ep = handle();
    if (changes.pd != nullptr) {
        argument.mask |= DAPX_EP_MODIFY_PD;
        argument.pd = changes.pd->handle();
    }
    if (changes.request_evd != nullptr) {
        argument.mask |= DAPX_EP_MODIFY_REQUEST_EVD;
        argument.request_evd = changes.request_evd->handle();
    }
    if (changes.recv_evd != nullptr) {
        argument.mask |= DAPX_EP_MODIFY_RECV_EVD;
        argument.recv_evd = changes.recv_evd->handle();
    }
    if (changes.connect_evd != nullptr) {
        argument.mask |= DAPX_EP_MODIFY_CONNECT_EVD;
        argument.connect_evd = changes.connect_evd->handle();
    }
    if (changes.rd_atomic) {
        argument.mask |= DAPX_EP_MODIFY_RD_ATOMIC;
        argument.max_rd_atomic = changes.rd_atomic->initiator;
        argument.max_dest_rd_atomic = changes.rd_atomic->responder;
    }
    if (changes.user_data) {
        argument.mask |= DAPX_EP_MODIFY_USER_DATA;
        argument.user_data = *changes.user_data;
    }
    if (changes.min_rnr_timer) {
        argument.mask |= DAPX_EP_MODIFY_RNR_TIMER;
        argument.min_rnr_timer = *changes.min_rnr_timer;
    }
    return detail::command(fd(), argument, "cannot change the endpoint");
}

Result<void> EndpointBase::qp_init(std::uint8_t port, std::uint16_t pkey_index,
                                   Access refused) noexcept
{
    return qp_step(detail::init_step(port, pkey_index, refused));
}

Result<void> EndpointBase::qp_ready_to_receive(const ReadyToReceive& path) noexcept
{
    return qp_step(detail::to_abi(path));
}

Result<void> EndpointBase::qp_ready_to_send(const ReadyToSend& options) noexcept
{
    return qp_step(detail::to_abi(options));
}

Result<void> EndpointBase::qp_step(const ::dapx_qp_attr& step) noexcept
{
    ::dapx_ep_modify argument{};
    argument.ep = handle();
    argument.mask = DAPX_EP_MODIFY_QP;
    argument.qp = step;
    return detail::command(fd(), argument, detail::attempt_of(step));
}

} // namespace dapx
