// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// -j and -p: JSON for programs, and for people who look at it.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <string>

namespace tools {

struct JsonStyle {
    bool json = false;   ///< -j
    bool pretty = false; ///< -p, of no effect without -j
};

/// -j and -p. @p what what is printed, as --help says it.
void add_json_options(CLI::App& command, JsonStyle& style,
                      const std::string& what = "Print JSON, in a line");

/// With a newline behind it. Names that others gave are bytes, and JSON is UTF-8: what is none is
/// replaced.
std::string json_text(const nlohmann::json& value, const JsonStyle& style);

} // namespace tools
