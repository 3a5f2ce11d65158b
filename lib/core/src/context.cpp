// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/context.hpp>

#include "device.hpp"
#include "ioctl.hpp"
#include "private_data.hpp"
#include "sysfs.hpp"

#include <cerrno>
#include <cstring>

#include <new>

#include <fcntl.h>
#include <unistd.h>

namespace dapx {

namespace {

Result<ObjectInfo> look_up(int fd, std::uint32_t handle, ObjectType type,
                           std::uint32_t flags) noexcept
{
    ::dapx_query_object argument{};
    argument.flags = flags;
    argument.handle = handle;
    argument.type = static_cast<std::uint32_t>(type);
    if (auto done = detail::command(fd, argument, "cannot look up an object"); !done)
        return std::unexpected(std::move(done).error());
    return ObjectInfo{
        .handle = argument.out_handle,
        .type = ObjectType{argument.out_type},
        .users = argument.out_users,
        .state = argument.out_state,
        .user_data = argument.out_user_data,
    };
}

} // namespace

bool Context::module_loaded() noexcept
{
    return detail::module_loaded();
}

Result<Context> Context::open_node(const char* node) noexcept
{
    const auto owner = detail::Owner::current();
    if (!owner)
        return std::unexpected(owner.error());
    const int fd = ::open(node, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return std::unexpected(detail::explain_open(errno, node));
    std::shared_ptr<const detail::Device> device;
    try {
        device = std::make_shared<const detail::Device>(fd, *owner);
    } catch (const std::bad_alloc&) {
        ::close(fd);
        return std::unexpected(detail::explain(ENOMEM, "open", "cannot open the device node"));
    }
    Context context(std::move(device));
    // Any file can be opened under this name; only dapx answers this.
    if (const auto info = context.info(); !info)
        return std::unexpected(detail::explain_open(info.error().code(), node));
    return context;
}

Result<Context> Context::open(const std::string& device, const char* node) noexcept
{
    Result<Context> context = open_node(node);
    if (!context)
        return context;
    if (auto done = context->attach(device); !done)
        return std::unexpected(std::move(done).error());
    return context;
}

Result<void> Context::attach(const std::string& device) noexcept
{
    ::dapx_attach argument{};
    argument.size = sizeof(argument);
    if (device.empty() || device.size() >= sizeof(argument.device))
        return std::unexpected(detail::explain_attach(ENODEV, device));
    std::memcpy(argument.device, device.data(), device.size());
    if (const int error = detail::command(fd(), argument); error != 0)
        return std::unexpected(detail::explain_attach(error, device));
    return {};
}

Result<ModuleInfo> Context::info() const noexcept
{
    ::dapx_info argument{};
    if (auto done = detail::command(fd(), argument, "cannot ask the dapx module what it can do");
        !done)
        return std::unexpected(std::move(done).error());
    return ModuleInfo{
        .rc = (argument.out_features & DAPX_FEATURE_RC) != 0,
        .srq = (argument.out_features & DAPX_FEATURE_SRQ) != 0,
        .rmr = (argument.out_features & DAPX_FEATURE_RMR) != 0,
        .xrc = (argument.out_features & DAPX_FEATURE_XRC) != 0,
        .quiet = (argument.out_features & DAPX_FEATURE_QUIET) != 0,
        .features = argument.out_features,
        .max_objects = argument.out_max_objects,
        .max_user_objects = argument.out_max_user_objects,
        .max_ring_depth = argument.out_max_ring_depth,
        .max_sge = argument.out_max_sge,
        .max_inline = argument.out_max_inline,
        .max_backlog = argument.out_max_backlog,
    };
}

Result<DeviceAttributes> Context::query_device() const noexcept
{
    ::dapx_query_device argument{};
    if (auto done = detail::command(fd(), argument, "cannot query the RDMA device"); !done)
        return std::unexpected(std::move(done).error());
    return DeviceAttributes{
        .name = std::string(argument.out_device,
                            ::strnlen(argument.out_device, sizeof(argument.out_device))),
        .caps = DeviceCap{argument.out_caps},
        .node_guid = argument.out_node_guid,
        .max_mr_size = argument.out_max_mr_size,
        .max_ep = argument.out_max_ep,
        .max_send_depth = argument.out_max_send_depth,
        .max_recv_depth = argument.out_max_recv_depth,
        .max_srq_depth = argument.out_max_srq_depth,
        .max_send_sge = argument.out_max_send_sge,
        .max_recv_sge = argument.out_max_recv_sge,
        .max_inline = argument.out_max_inline,
        .max_rd_atomic = argument.out_max_rd_atomic,
        .max_dest_rd_atomic = argument.out_max_dest_rd_atomic,
        .max_msg_size = argument.out_max_msg_size,
        .ports = argument.out_ports,
        .max_connect_data = argument.out_max_connect_data,
        .max_accept_data = argument.out_max_accept_data,
        .max_reject_data = argument.out_max_reject_data,
        .active_mtu = argument.out_active_mtu,
        .max_xrc_connect_data = detail::xrc_limit(argument.out_max_connect_data),
        .max_xrc_accept_data = detail::xrc_limit(argument.out_max_accept_data),
    };
}

Result<ObjectInfo> Context::query_object(std::uint32_t handle, ObjectType type) const noexcept
{
    return look_up(fd(), handle, type, 0);
}

Result<ObjectInfo> Context::next_object(std::uint32_t handle, ObjectType type) const noexcept
{
    return look_up(fd(), handle, type, DAPX_QUERY_NEXT);
}

int Context::fd() const noexcept
{
    return device_->fd();
}

} // namespace dapx
