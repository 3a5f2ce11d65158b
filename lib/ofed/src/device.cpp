// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "device.hpp"

#include "libibverbs.hpp"

#include <dapx/context.hpp>

#include <cstdlib>
#include <cstring>
#include <endian.h>
#include <memory>
#include <mutex>
#include <new>

namespace dapx::verbs {

namespace {

constexpr std::uint64_t locally_administered = std::uint64_t{2} << 56;

std::mutex devices_lock;
Device* first_device;

/// In front of what programs get stands the list of libibverbs that it was made of.
ibv_device** new_list(ibv_device** behind, int capacity) noexcept
{
    const auto entries = static_cast<std::size_t>(capacity) + 2;
    auto** list = static_cast<ibv_device**>(std::calloc(entries, sizeof(ibv_device*)));
    if (list == nullptr)
        return nullptr;
    list[0] = reinterpret_cast<ibv_device*>(behind);
    return list + 1;
}

ibv_device** behind_list(ibv_device** list) noexcept
{
    return reinterpret_cast<ibv_device**>(list[-1]);
}

} // namespace

Device::Device(const ibv_device& behind, __be64 guid_behind)
    : ibv_device(behind), ibdev_(behind.name),
      guid_(htobe64(be64toh(guid_behind) ^ locally_administered))
{
    _ops = {};
    const std::string own = "dapx_" + ibdev_;
    std::strncpy(name, own.c_str(), sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
}

Device* Device::of(const ibv_device& behind) noexcept
try {
    const std::lock_guard guard(devices_lock);
    for (Device* device = first_device; device != nullptr; device = device->next_)
        if (device->ibdev_ == behind.name)
            return device;
    const __be64 guid = DAPX_LIBIBVERBS(ibv_get_device_guid)(const_cast<ibv_device*>(&behind));
    auto made = std::make_unique<Device>(behind, guid);
    made->next_ = first_device;
    first_device = made.release();
    return first_device;
} catch (const std::bad_alloc&) {
    return nullptr;
}

Device* Device::find(const ibv_device* device) noexcept
{
    const std::lock_guard guard(devices_lock);
    for (Device* one = first_device; one != nullptr; one = one->next_)
        if (one == device)
            return one;
    return nullptr;
}

ibv_context* Device::open_behind() const noexcept
{
    ibv_device** list = DAPX_LIBIBVERBS(ibv_get_device_list)(nullptr);
    if (list == nullptr)
        return nullptr;
    ibv_context* context = nullptr;
    errno = ENODEV;
    for (ibv_device** one = list; *one != nullptr; ++one) {
        if (ibdev_ == (*one)->name) {
            context = DAPX_LIBIBVERBS(ibv_open_device)(*one);
            break;
        }
    }
    const int error = errno;
    DAPX_LIBIBVERBS(ibv_free_device_list)(list);
    errno = error;
    return context;
}

} // namespace dapx::verbs

using dapx::verbs::Device;

/// Devices of libibverbs first, as it has them; then those of dapx, of each that it can use now. For
/// libibverbs itself only the former, as it looks into what it takes for its own: ibv_import_device().
DAPX_VERBS ibv_device** ibv_get_device_list(int* num_devices)
{
    const bool for_libibverbs = dapx::verbs::is_in_library_of(
        reinterpret_cast<const void*>(DAPX_LIBIBVERBS(ibv_get_device_list)),
        __builtin_return_address(0));
    int count = 0;
    int total = 0;
    ibv_device** behind = DAPX_LIBIBVERBS(ibv_get_device_list)(&count);
    if (num_devices != nullptr)
        *num_devices = 0;
    if (behind == nullptr)
        return nullptr;
    ibv_device** list = dapx::verbs::new_list(behind, 2 * count);
    if (list == nullptr) {
        DAPX_LIBIBVERBS(ibv_free_device_list)(behind);
        return dapx::verbs::failed_null<ibv_device*>(ENOMEM);
    }
    for (int i = 0; i < count; ++i)
        list[total++] = behind[i];
    for (int i = 0; i < count && !for_libibverbs; ++i) {
        if (!dapx::Context::open(behind[i]->name))
            continue;
        if (Device* device = Device::of(*behind[i]))
            list[total++] = device;
    }
    if (num_devices != nullptr)
        *num_devices = total;
    errno = 0;
    return list;
}

DAPX_VERBS void ibv_free_device_list(ibv_device** list)
{
    if (list == nullptr)
        return;
    DAPX_LIBIBVERBS(ibv_free_device_list)(dapx::verbs::behind_list(list));
    std::free(static_cast<void*>(list - 1));
}

DAPX_VERBS const char* ibv_get_device_name(ibv_device* device)
{
    return device != nullptr ? device->name : nullptr;
}

DAPX_VERBS __be64 ibv_get_device_guid(ibv_device* device)
{
    if (const Device* own = Device::find(device))
        return own->guid();
    return DAPX_LIBIBVERBS(ibv_get_device_guid)(device);
}

/// Those of dapx are no devices of the kernel's RDMA netlink: -1.
DAPX_VERBS int ibv_get_device_index(ibv_device* device)
{
    if (Device::find(device) == nullptr)
        return DAPX_LIBIBVERBS(ibv_get_device_index)(device);
    errno = EOPNOTSUPP;
    return -1;
}
