// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

namespace dapx::verbs {

/// Reads an eventfd(2) without a wait, whatever O_NONBLOCK says. False: it was not signalled.
bool read_if_signalled(int eventfd) noexcept;

} // namespace dapx::verbs
