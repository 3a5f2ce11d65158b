// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "verbs_abi.hpp"

#include <dapx/event.hpp>

namespace dapx::verbs {

/// The module's event in verbs' terms; it counts as got by its object. False: verbs have no such
/// event.
[[nodiscard]] bool report(const dapx::Event& from, ibv_async_event& event) noexcept;

} // namespace dapx::verbs
