// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// rxe devices: made on a network interface, and deleted.
#pragma once

#include <dapx/error.hpp>

#include <string>

namespace tools {

/// @param name "": the first free one of rxe0, rxe1, ...
/// @return its name. Errors: a sentence, with the kernel's errno.
[[nodiscard]] dapx::Result<std::string> add_rxe(const std::string& netdev, std::string name);

/// Errors: as add_rxe(); EMEDIUMTYPE: the device is another driver's.
[[nodiscard]] dapx::Result<void> delete_rxe(const std::string& name);

} // namespace tools
