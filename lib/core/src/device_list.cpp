// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/device_list.hpp>

#include "devices.hpp"
#include "rdma_netlink.hpp"
#include "source.hpp"
#include "sysfs.hpp"

#include <dapx/context.hpp>

#include <algorithm>
#include <cerrno>

namespace dapx {

namespace {

/// "4: ACTIVE" -> "ACTIVE": sysfs writes number and name.
std::string after_colon(const std::string& text) noexcept
{
    const std::size_t colon = text.find(": ");
    return colon == std::string::npos ? text : text.substr(colon + 2);
}

std::string transport(const std::string& node_type, const std::string& link_layer) noexcept
{
    if (after_colon(node_type) == "RNIC")
        return "iWARP";
    if (link_layer == "Ethernet")
        return "RoCE";
    return link_layer;
}

DeviceInfo read_device(const std::string& name, const std::string& sysfs) noexcept
{
    const std::string path = sysfs + "/class/infiniband/" + name;
    DeviceInfo device;
    device.name = name;
    device.driver = detail::software_driver(name).value_or("");
    if (device.driver.empty())
        device.driver = detail::hardware_driver(name, sysfs);
    for (const std::string& number : detail::list_directory(path + "/ports")) {
        const std::string port = path + "/ports/" + number;
        const std::vector<std::string> netdevs = detail::port_netdevs(name, number, sysfs);
        device.ports.push_back({
            .number = static_cast<std::uint32_t>(std::atoi(number.c_str())),
            .state = after_colon(detail::read_line(port + "/state")),
            .link_layer = detail::read_line(port + "/link_layer"),
            .netdev = netdevs.empty() ? std::string() : netdevs.front(),
        });
    }
    std::ranges::sort(device.ports, {}, &PortInfo::number);
    device.transport =
        transport(detail::read_line(path + "/node_type"),
                  device.ports.empty() ? std::string() : device.ports.front().link_layer);
    if (auto addresses = detail::addresses_of_device(name, sysfs))
        device.addresses = std::move(*addresses);
    return device;
}

} // namespace

std::vector<DeviceInfo> detail::read_devices(const std::string& sysfs, const char* node) noexcept
{
    std::vector<DeviceInfo> devices;
    for (const std::string& name : device_names(sysfs)) {
        DeviceInfo device = read_device(name, sysfs);
        // The module's word counts, so it is asked, with a context that is closed at once.
        const auto context = Context::open(name, node);
        device.usable = context.has_value();
        if (!context)
            device.reason = context.error().message();
        devices.push_back(std::move(device));
    }
    return devices;
}

DeviceList DeviceList::read() noexcept
{
    return DeviceList(detail::read_devices("/sys", Context::default_node));
}

Result<std::string> DeviceList::only_usable() const noexcept
{
    std::string usable;
    std::size_t count = 0;
    for (const DeviceInfo& device : devices_) {
        if (!device.usable)
            continue;
        usable += (count++ == 0 ? "" : ", ") + device.name;
    }
    if (count == 1)
        return usable;
    if (count > 1)
        return std::unexpected(
            Error(ENOTUNIQ, "sysfs",
                  "there are several RDMA devices: " + usable + "; name the one to use"));
    if (devices_.empty())
        return std::unexpected(Error(ENODEV, "sysfs",
                                     "there is no RDMA device on this machine; 'rdma link add "
                                     "rxe0 type rxe netdev eth0' as root makes one on a network "
                                     "interface"));
    return std::unexpected(Error(ENODEV, "sysfs", devices_.front().reason));
}

} // namespace dapx
