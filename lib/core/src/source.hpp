// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Which of several addresses to connect from.
#pragma once

#include <dapx/address.hpp>

#include <span>

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

} // namespace dapx::detail
