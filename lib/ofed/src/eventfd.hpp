// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <cstdint>

namespace dapx::verbs {

/// Reads an eventfd(2) without a wait, whatever O_NONBLOCK says: how often it was signalled.
std::uint64_t read_signals(int eventfd) noexcept;

} // namespace dapx::verbs
