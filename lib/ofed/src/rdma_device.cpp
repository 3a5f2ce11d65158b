// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "rdma_device.hpp"

#include "calls.hpp"
#include "rdma_abi.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <net/if.h>
#include <string>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

namespace dapx::verbs {

namespace {

std::mutex rdma_devices_lock;
std::vector<std::unique_ptr<RdmaDevice>> devices;
/// Ids may still name them.
std::vector<std::unique_ptr<RdmaDevice>> gone;

/// The kernel's command takes 64 KiB.
constexpr std::size_t max_gids = UINT16_MAX / sizeof(ibv_gid_entry);

/// Names of all RDMA devices, when they were looked for.
std::vector<std::string> seen;

std::vector<std::string> names_of_all()
{
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator("/sys/class/infiniband", none))
        names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
}

/// How long addresses are taken for the same.
constexpr std::chrono::seconds memory(1);

/// @p address as a socket would have it that sends to @p destination. 0 or an errno.
int source_of(const core::Address& destination, core::Address& address) noexcept
{
    const int fd = socket(destination.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    sockaddr_storage name{};
    socklen_t length = sizeof(name);
    int error = 0;
    const core::Address to =
        destination.with_port(destination.port() != 0 ? destination.port() : 1);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&to.storage()), sizeof(to.storage())) != 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length) != 0)
        error = errno;
    close(fd);
    address = core::Address(name).with_port(0);
    return error;
}

} // namespace

bool RdmaDevice::is_there() const noexcept
{
    return context_->core().query_device().has_value();
}

/// By the GID table, whose entries name their interfaces; but those of iWARP may not.
std::vector<core::Address> RdmaDevice::find_addresses() const noexcept
try {
    std::vector<ibv_gid_entry> gids(max_gids);
    const ssize_t count = DAPX_LIBIBVERBS(_ibv_query_gid_table)(
        context_->behind(), gids.data(), gids.size(), 0, sizeof(ibv_gid_entry));
    gids.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    std::vector<std::string> interfaces;
    for (const ibv_gid_entry& gid : gids) {
        char name[IF_NAMESIZE];
        if (gid.ndev_ifindex != 0 && if_indextoname(gid.ndev_ifindex, name) != nullptr)
            interfaces.emplace_back(name);
    }
    if (!interfaces.empty())
        return core::Address::of_interfaces(interfaces);
    auto all = core::Address::of_device(context_->device().ibdev());
    return all ? std::move(*all) : std::vector<core::Address>{};
} catch (const std::bad_alloc&) {
    return {};
}

std::vector<core::Address> RdmaDevice::addresses() noexcept
{
    const std::lock_guard guard(lock_);
    if (core::Clock::now() - looked_at_ >= memory) {
        addresses_ = find_addresses();
        looked_at_ = core::Clock::now();
    }
    return addresses_;
}

/// With rdma_devices_lock.
void RdmaDevice::find_new() noexcept
try {
    for (auto& device : devices)
        if (!device->is_there())
            gone.push_back(std::move(device));
    std::erase(devices, nullptr);
    ibv_device** list = ibv_get_device_list(nullptr);
    for (ibv_device** one = list; one != nullptr && *one != nullptr; ++one) {
        const Device* device = Device::find(*one);
        if (device == nullptr || std::ranges::any_of(devices, [device](const auto& known) {
                return &known->context().device() == device;
            }))
            continue;
        if (Context* context = Context::open(*device))
            devices.push_back(std::make_unique<RdmaDevice>(*context));
    }
    if (list != nullptr)
        ibv_free_device_list(list);
} catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): what is known stays so
}

std::vector<RdmaDevice*> RdmaDevice::all() noexcept
try {
    const std::lock_guard guard(rdma_devices_lock);
    // To attach to each device takes long: only if there are others than the last time.
    std::vector<std::string> names = names_of_all();
    const auto lives = [](const auto& device) { return device->is_there(); };
    if (names != seen || devices.empty() || !std::ranges::all_of(devices, lives)) {
        find_new();
        seen = std::move(names);
    }
    std::vector<RdmaDevice*> found;
    for (const auto& device : devices)
        if (device->is_there())
            found.push_back(device.get());
    return found;
} catch (const std::bad_alloc&) {
    return {};
}

bool RdmaDevice::any() noexcept
{
    return !all().empty();
}

RdmaDevice* RdmaDevice::with(const core::Address& address) noexcept
{
    const core::Address wanted = address.with_port(0);
    for (RdmaDevice* device : all())
        for (const core::Address& own : device->addresses())
            // Of a link-local address, the interface may be left open.
            if (own == wanted || own.host().starts_with(wanted.host() + "%"))
                return device;
    return nullptr;
}

int RdmaDevice::route_to(const core::Address& destination, RdmaDevice*& device,
                         core::Address& source) noexcept
{
    if (const int error = source_of(destination, source))
        return error;
    device = with(source);
    return device != nullptr ? 0 : ENODEV;
}

ibv_pd* RdmaDevice::pd() noexcept
{
    const std::lock_guard guard(lock_);
    if (pd_ == nullptr)
        pd_ = ibv_alloc_pd(verbs());
    return pd_;
}

ibv_xrcd* RdmaDevice::xrcd() noexcept
{
    const std::lock_guard guard(lock_);
    if (xrcd_ == nullptr) {
        ibv_xrcd_init_attr attr{};
        attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
        attr.fd = -1;
        attr.oflags = O_CREAT;
        xrcd_ = open_xrcd(verbs(), &attr);
    }
    return xrcd_;
}

} // namespace dapx::verbs

using namespace dapx::verbs;

DAPX_VERBS ibv_context** rdma_get_devices(int* num_devices)
{
    const std::vector<RdmaDevice*> all = RdmaDevice::all();
    if (all.empty())
        return DAPX_LIBRDMACM(rdma_get_devices)(num_devices);
    auto** list = static_cast<ibv_context**>(std::calloc(all.size() + 1, sizeof(ibv_context*)));
    if (list != nullptr)
        std::ranges::transform(all, list, [](const RdmaDevice* one) { return one->verbs(); });
    else
        errno = ENOMEM;
    if (num_devices != nullptr)
        *num_devices = list != nullptr ? static_cast<int>(all.size()) : 0;
    return list;
}

DAPX_VERBS void rdma_free_devices(ibv_context** list)
{
    if (list == nullptr || Context::find(list[0]) == nullptr)
        return DAPX_LIBRDMACM(rdma_free_devices)(list);
    std::free(static_cast<void*>(list));
}
