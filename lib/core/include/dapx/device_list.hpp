// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/address.hpp>
#include <dapx/error.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dapx {

/// A port of an RDMA device, as sysfs tells.
struct PortInfo {
    std::uint32_t number = 0; ///< from 1
    std::string state;        ///< "ACTIVE", "DOWN", ...
    std::string link_layer;   ///< "Ethernet", "InfiniBand"
    std::string netdev;       ///< network interface, "" if none is known
};

/// An RDMA device, and whether dapx can use it.
struct DeviceInfo {
    std::string name;               ///< "rxe0"
    std::string driver;             ///< "rxe", "mlx5_core", ...; "" if it is not known
    std::string transport;          ///< "RoCE", "iWARP", "InfiniBand"
    std::vector<PortInfo> ports;    ///< in order of number
    std::vector<Address> addresses; ///< as Address::of_device()
    bool usable = false;            ///< attaching a context to it succeeds
    std::string reason;             ///< if not: why, a sentence as Error::message()
};

/// The RDMA devices of this machine, as this process sees them. A plain value: a snapshot.
class DAPX_EXPORT DeviceList {
public:
    /// Reads sysfs, and tries to attach a context to each device.
    /// Never fails: without devices the list is empty. Thread safety: any thread.
    [[nodiscard]] static DeviceList read() noexcept;

    /// A list of these devices.
    explicit DeviceList(std::vector<DeviceInfo> devices) noexcept : devices_(std::move(devices)) {}

    /// The only usable device.
    /// Errors: ENODEV (none: the sentence says why each is not), ENOTUNIQ (several: the
    /// sentence lists them).
    [[nodiscard]] Result<std::string> only_usable() const noexcept;

    /// In the order of their names.
    [[nodiscard]] const std::vector<DeviceInfo>& devices() const noexcept { return devices_; }

    [[nodiscard]] auto begin() const noexcept { return devices_.begin(); }
    [[nodiscard]] auto end() const noexcept { return devices_.end(); }

private:
    std::vector<DeviceInfo> devices_;
};

} // namespace dapx
