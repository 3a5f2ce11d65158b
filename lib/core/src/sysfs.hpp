// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What sysfs says of RDMA devices. @p sysfs: where it is mounted; tests have one of their own.
#pragma once

#include <string>
#include <vector>

namespace dapx::detail {

[[nodiscard]] bool is_directory(const std::string& path);

/// Names in a directory, sorted; none if it cannot be read.
[[nodiscard]] std::vector<std::string> list_directory(const std::string& path);

/// The first line of a file; "" if it cannot be read (as unused entries of tables cannot).
[[nodiscard]] std::string read_line(const std::string& path);

[[nodiscard]] bool module_loaded(const std::string& sysfs = "/sys");

/// RDMA devices, sorted.
[[nodiscard]] std::vector<std::string> device_names(const std::string& sysfs);

/// The driver of the hardware, "mlx5_core"; "" if there is none. A software device may name the
/// driver of a network card.
[[nodiscard]] std::string hardware_driver(const std::string& device, const std::string& sysfs);

/// Network interfaces of one port, without repetition; @p port from 1.
[[nodiscard]] std::vector<std::string>
port_netdevs(const std::string& device, const std::string& port, const std::string& sysfs);

} // namespace dapx::detail
