// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/device_list.hpp>

#include <string>
#include <vector>

namespace dapx::detail {

/// As DeviceList::read(). @p sysfs: where it is mounted. @p node: dapx's. Tests have their own.
[[nodiscard]] std::vector<DeviceInfo> read_devices(const std::string& sysfs,
                                                   const char* node) noexcept;

} // namespace dapx::detail
