// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// -j and -p: JSON for programs, and for people who look at it.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace tools {

struct JsonStyle {
    bool json = false;   ///< -j
    bool pretty = false; ///< -p, of no effect without -j
};

/// With a newline behind it. Names that others gave are bytes, and JSON is UTF-8: what is none is
/// replaced.
std::string json_text(const nlohmann::json& value, const JsonStyle& style);

} // namespace tools
