// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What happens to contexts, a line each.
#pragma once

#include <dapx/monitor.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace tools {

/// "12:00:01.234567 rxe0 4711 job: endpoint 9: connected"
/// @param offset what to add to CLOCK_MONOTONIC for CLOCK_REALTIME, in nanoseconds.
/// @param pids whether to show PIDs: they are of the first PID namespace.
std::string happening_text(const dapx::Happening& happening, std::int64_t offset, bool pids);

nlohmann::json happening_json(const dapx::Happening& happening, std::int64_t offset, bool pids);

} // namespace tools
