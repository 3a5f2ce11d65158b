// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// RDMA netlink, as rdma(8) speaks it: devices of software drivers, whose RDMA devices are, and what they have. The tools
// and the benchmark are linked with this, too.
#pragma once

#include <dapx/error.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace dapx::detail {

/// An RDMA device of driver @p type ("rxe") on a network interface.
/// Errors: the kernel's own errno; EPROTONOSUPPORT without RDMA in the kernel.
[[nodiscard]] Result<void> new_rdma_link(const std::string& name, const std::string& type,
                                         const std::string& netdev);

/// Errors: as new_rdma_link(); ENODEV.
[[nodiscard]] Result<void> delete_rdma_link(const std::string& name);

/// "rxe" or "siw"; "" for the driver of a hardware device. sysfs does not tell: a software device has no driver
/// there, or the one of a network card, and its node_desc can be written (rdma-ndd does).
/// Errors: as delete_rdma_link().
[[nodiscard]] Result<std::string> software_driver(const std::string& name);

/// How many objects of @p kinds ("qp", "mr"), as rdma(8) calls them, a device has.
/// Errors: as delete_rdma_link().
[[nodiscard]] Result<std::uint64_t>
count_rdma_objects(const std::string& device, std::initializer_list<std::string_view> kinds);

/// Whether all network namespaces see all RDMA devices, or each its own ("exclusive").
/// Errors: as new_rdma_link().
[[nodiscard]] Result<bool> rdma_devices_shared();

} // namespace dapx::detail
