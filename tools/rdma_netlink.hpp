// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// RDMA netlink, as rdma(8) speaks it: devices of software drivers, and whose RDMA devices are.
#pragma once

#include <dapx/error.hpp>

#include <cstdint>
#include <string>

namespace tools {

/// An RDMA device of driver @p type ("rxe") on a network interface.
/// Errors: the kernel's own errno; EPROTONOSUPPORT without RDMA in the kernel.
[[nodiscard]] dapx::Result<void> new_rdma_link(const std::string& name, const std::string& type,
                                               const std::string& netdev);

/// Errors: as new_rdma_link(); ENODEV.
[[nodiscard]] dapx::Result<void> delete_rdma_link(const std::string& name);

/// Whether all network namespaces see all RDMA devices, or each its own ("exclusive").
/// Errors: as new_rdma_link().
[[nodiscard]] dapx::Result<bool> rdma_devices_shared();

} // namespace tools
