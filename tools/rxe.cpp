// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "rxe.hpp"

#include "files.hpp"

#include <dapx/device_list.hpp>
#include <rdma_netlink.hpp>
#include <sysfs.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include <net/if.h>
#include <unistd.h>

namespace tools {

namespace {

constexpr const char* rdma_class = "/sys/class/infiniband";
constexpr std::size_t longest_name = 63; // IB_DEVICE_NAME_MAX, without the zero

bool device_exists(const std::string& name)
{
    return exists(fmt::format("{}/{}", rdma_class, name));
}

std::string free_name()
{
    for (int i = 0;; ++i)
        if (std::string name = fmt::format("rxe{}", i); !device_exists(name))
            return name;
}

/// "": there is none.
std::string rxe_of(const std::string& netdev)
{
    for (const std::string& name : dapx::detail::list_directory(rdma_class))
        if (dapx::detail::read_line(fmt::format("{}/{}/parent", rdma_class, name)) == netdev)
            return name;
    return {};
}

constexpr const char* no_rdma = "the kernel has no RDMA; 'modprobe ib_core' as root says why";

std::string why_not_made(int code, const std::string& netdev, const std::string& name)
{
    switch (code) {
    case EPERM:
        if (::geteuid() != 0)
            return "permission denied; run it as root (CAP_NET_ADMIN)";
        return fmt::format("the kernel does not permit it on {}; name the interface below, if it "
                           "is a VLAN, and have CAP_NET_ADMIN",
                           netdev);
    case ENODEV:
        return fmt::format("there is no network interface {}; 'ip link' shows which there are",
                           netdev);
    case EEXIST:
        if (const std::string other = rxe_of(netdev); !other.empty())
            return fmt::format("it has one, {}; use that, or 'dapxctl rxe del {}' first", other,
                               other);
        [[fallthrough]];
    case ENFILE:
        return fmt::format("the name {} is taken; choose another", name);
    case EINVAL:
        // The kernel has tried to load it, and answers the same for whatever it does not like.
        if (!exists("/sys/module/rdma_rxe"))
            return "the kernel module rdma_rxe cannot be loaded; 'modprobe rdma_rxe' as root says "
                   "why";
        return fmt::format("the kernel does not take the name {}; choose another", name);
    case EPROTONOSUPPORT:
        return no_rdma;
    default:
        return fmt::format("{}; 'dmesg' may say why", std::generic_category().message(code));
    }
}

dapx::Error not_made(int code, const std::string& netdev, const std::string& name)
{
    return {code, "RDMA_NLDEV_CMD_NEWLINK",
            fmt::format("cannot make an rxe device on {}: {}", netdev,
                        why_not_made(code, netdev, name))};
}

std::string names_of(const dapx::DeviceList& devices)
{
    std::string names;
    for (const dapx::DeviceInfo& device : devices)
        names += (names.empty() ? "" : ", ") + device.name;
    return names.empty() ? "nor any other" : "there are: " + names;
}

dapx::Error not_deleted(int code, const std::string& name, const std::string& why)
{
    return {code, "RDMA_NLDEV_CMD_DELLINK", fmt::format("cannot delete {}: {}", name, why)};
}

} // namespace

dapx::Result<std::string> add_rxe(const std::string& netdev, std::string name)
{
    // What can be told without the kernel; it says the same of several causes.
    if (::if_nametoindex(netdev.c_str()) == 0)
        return std::unexpected(not_made(ENODEV, netdev, name));
    if (name.empty())
        name = free_name();
    if (name.size() > longest_name || name.find('/') != std::string::npos)
        return std::unexpected(
            dapx::Error(EINVAL, "RDMA_NLDEV_CMD_NEWLINK",
                        fmt::format("cannot make an rxe device on {}: a name has up to {} "
                                    "characters and no '/'; choose another",
                                    netdev, longest_name)));
    if (device_exists(name))
        return std::unexpected(not_made(ENFILE, netdev, name));
    if (const auto made = dapx::detail::new_rdma_link(name, "rxe", netdev); !made)
        return std::unexpected(not_made(made.error().code(), netdev, name));
    return name;
}

dapx::Result<void> delete_rxe(const std::string& name)
{
    const dapx::DeviceList devices = dapx::DeviceList::read();
    for (const dapx::DeviceInfo& device : devices) {
        if (device.name != name)
            continue;
        if (device.driver != "rxe")
            return std::unexpected(not_deleted(
                EMEDIUMTYPE, name,
                fmt::format("it is no rxe device, its driver is {}; 'dapxctl devices' shows which "
                            "are",
                            device.driver.empty() ? "another" : device.driver)));
        const auto deleted = dapx::detail::delete_rdma_link(name);
        if (deleted)
            return {};
        const int code = deleted.error().code();
        if (code == EPERM)
            return std::unexpected(
                not_deleted(code, name, "permission denied; run it as root (CAP_NET_ADMIN)"));
        return std::unexpected(
            not_deleted(code, name, code == EPROTONOSUPPORT ? no_rdma : deleted.error().message()));
    }
    return std::unexpected(
        not_deleted(ENODEV, name, "there is no such RDMA device; " + names_of(devices)));
}

} // namespace tools
