// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/xrc_qp.hpp>

#include "ioctl.hpp"
#include "one_context.hpp"
#include "private_data.hpp"
#include "qp_step.hpp"

#include <dapx/cm_id.hpp>
#include <dapx/evd.hpp>
#include <dapx/xrc_domain.hpp>

namespace dapx {

namespace {

/// Issues a command that names a receive queue pair by its number.
template <class T>
Result<void> command(int fd, T& argument, std::uint32_t domain, std::uint32_t qp_num,
                     const char* attempt) noexcept
{
    argument.xrcd = domain;
    argument.qp_num = qp_num;
    if (const int error = detail::command(fd, argument); error != 0)
        return std::unexpected(
            detail::explain_xrc_qp(error, detail::command_of<T>.name, attempt, qp_num));
    return {};
}

Result<void> take_step(int fd, std::uint32_t domain, std::uint32_t qp_num,
                       const ::dapx_qp_attr& step) noexcept
{
    ::dapx_xrc_qp_modify argument{};
    argument.qp = step;
    return command(fd, argument, domain, qp_num, "cannot connect");
}

Result<void> end_connection(int fd, std::uint32_t domain, std::uint32_t qp_num) noexcept
{
    ::dapx_xrc_qp_disconnect argument{};
    return command(fd, argument, domain, qp_num, "cannot disconnect");
}

Result<XrcQpInfo> ask(int fd, std::uint32_t domain, std::uint32_t qp_num) noexcept
{
    ::dapx_xrc_qp_query argument{};
    if (auto done = command(fd, argument, domain, qp_num, "cannot query"); !done)
        return std::unexpected(std::move(done).error());
    return XrcQpInfo{
        .state = QpState{argument.out_qp.state},
        .registration = argument.out_xrc_qp,
        .registrations = argument.out_registrations,
        .messages = argument.out_messages,
        .not_ready = argument.out_not_ready,
        .port = argument.out_qp.port,
        .pkey_index = argument.out_qp.pkey_index,
        .refused = static_cast<Access>(argument.out_qp.refused),
        .path = detail::path_from_abi(argument.out_qp),
    };
}

} // namespace

const char* describe(QpState state) noexcept
{
    switch (state) {
    case QpState::reset:
        return "reset";
    case QpState::init:
        return "init";
    case QpState::ready_to_receive:
        return "rtr";
    case QpState::ready_to_send:
        return "rts";
    case QpState::error:
        return "error";
    }
    return "unknown state";
}

Result<XrcQp> XrcQp::create(const XrcDomain& domain, const Evd* evd,
                            std::uint64_t user_data) noexcept
{
    if (auto same = detail::check_one_context(
            "DAPX_XRC_QP_CREATE", "cannot make an XRC receive queue pair", domain, {evd});
        !same)
        return std::unexpected(std::move(same).error());
    const Context context = domain.context();
    ::dapx_xrc_qp_create argument{};
    argument.xrcd = domain.handle();
    argument.evd = evd != nullptr ? evd->handle() : 0;
    argument.user_data = user_data;
    if (auto done =
            detail::command(context.fd(), argument, "cannot make an XRC receive queue pair");
        !done)
        return std::unexpected(std::move(done).error());
    return XrcQp(device_of(context), argument.out_xrc_qp, domain.handle(), argument.out_qp_num);
}

Result<XrcQp> XrcQp::register_with(const XrcDomain& domain, std::uint32_t qp_num, const Evd* evd,
                                   std::uint64_t user_data) noexcept
{
    if (auto same = detail::check_one_context(
            "DAPX_XRC_QP_REGISTER", "cannot register with the receive queue pair", domain, {evd});
        !same)
        return std::unexpected(std::move(same).error());
    const Context context = domain.context();
    ::dapx_xrc_qp_register argument{};
    // Two objects of one registration would end it for each other.
    argument.flags = DAPX_XRC_QP_REGISTER_EXCL;
    argument.evd = evd != nullptr ? evd->handle() : 0;
    argument.user_data = user_data;
    if (auto done =
            command(context.fd(), argument, domain.handle(), qp_num, "cannot register with");
        !done)
        return std::unexpected(std::move(done).error());
    return XrcQp(device_of(context), argument.out_xrc_qp, domain.handle(), qp_num);
}

Result<void> XrcQp::init(std::uint8_t port, std::uint16_t pkey_index, Access refused) noexcept
{
    return take_step(fd(), domain_, number_, detail::init_step(port, pkey_index, refused));
}

Result<void> XrcQp::ready_to_receive(const ReadyToReceive& path) noexcept
{
    return take_step(fd(), domain_, number_, detail::to_abi(path));
}

Result<void> XrcQp::ready_to_send(const ReadyToSend& options) noexcept
{
    return take_step(fd(), domain_, number_, detail::to_abi(options));
}

Result<void> XrcQp::step(const XrcDomain& domain, std::uint32_t qp_num,
                         const ::dapx_qp_attr& step) noexcept
{
    return take_step(domain.context().fd(), domain.handle(), qp_num, step);
}

Result<void> XrcQp::accept(CmId&& request, std::span<const std::byte> private_data) noexcept
{
    return accept(*this, fd(), domain_, number_, request, private_data);
}

Result<void> XrcQp::accept(const XrcDomain& domain, std::uint32_t qp_num, CmId&& request,
                           std::span<const std::byte> private_data) noexcept
{
    return accept(domain, domain.context().fd(), domain.handle(), qp_num, request, private_data);
}

Result<void> XrcQp::accept(const Object& by, int fd, std::uint32_t domain, std::uint32_t qp_num,
                           CmId& request, std::span<const std::byte> private_data) noexcept
{
    if (auto same = detail::check_one_context("DAPX_XRC_QP_ACCEPT", "cannot accept the connection",
                                              by, {&request});
        !same)
        return same;
    ::dapx_xrc_qp_accept argument{};
    argument.cm = request.handle();
    if (auto done = detail::copy_private_data(private_data, argument.private_data,
                                              argument.private_data_len);
        !done)
        return done;
    auto done = command(fd, argument, domain, qp_num, "cannot accept the connection with");
    if (!done)
        return std::unexpected(
            detail::blame_private_data(std::move(done).error(), fd, private_data.size(),
                                       &::dapx_query_device::out_max_accept_data, true));
    request.forget();
    return {};
}

Result<void> XrcQp::disconnect() noexcept
{
    return end_connection(fd(), domain_, number_);
}

Result<void> XrcQp::disconnect(const XrcDomain& domain, std::uint32_t qp_num) noexcept
{
    return end_connection(domain.context().fd(), domain.handle(), qp_num);
}

Result<XrcQpInfo> XrcQp::query() const noexcept
{
    return ask(fd(), domain_, number_);
}

Result<XrcQpInfo> XrcQp::query(const XrcDomain& domain, std::uint32_t qp_num) noexcept
{
    return ask(domain.context().fd(), domain.handle(), qp_num);
}

std::uint32_t XrcQp::release() noexcept
{
    forget();
    return number_;
}

Result<void> XrcQp::unregister(const XrcDomain& domain, std::uint32_t qp_num) noexcept
{
    ::dapx_xrc_qp_unregister argument{};
    return command(domain.context().fd(), argument, domain.handle(), qp_num,
                   "cannot unregister from");
}

} // namespace dapx
