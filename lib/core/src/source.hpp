// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Addresses of a device, and which of them to connect from.
#pragma once

#include <dapx/address.hpp>

#include <span>
#include <string>
#include <vector>

namespace dapx::detail {

/// An address of an interface.
struct LocalAddress {
    Address address;
    unsigned prefix = 0; ///< bits of its subnet
};

/// Whether @p destination is in the subnet of @p local.
[[nodiscard]] bool on_link(const LocalAddress& local, const Address& destination) noexcept;

/// The one of @p addresses to connect to @p destination from, as Address::source_for() says;
/// nullptr if none fits.
[[nodiscard]] const Address* best_source(std::span<const LocalAddress> addresses,
                                         const Address& destination) noexcept;

/// As Address::of_device(). @p sysfs: where it is mounted; tests have one of their own.
[[nodiscard]] Result<std::vector<Address>> addresses_of_device(const std::string& device,
                                                               const std::string& sysfs) noexcept;

/// As Address::source_for().
[[nodiscard]] Result<Address> source_for(const std::string& device, const Address& destination,
                                         const std::string& sysfs) noexcept;

} // namespace dapx::detail
