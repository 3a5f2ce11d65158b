// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the tools' command lines have in common.
#pragma once

#include "common.hpp"
#include "json_output.hpp"
#include "server.hpp"

#include <CLI/CLI.hpp>

#include <functional>
#include <map>
#include <string>
#include <type_traits>

namespace tools {

/// Parses the command line, then calls @p body; turns what goes wrong into a line on stderr.
/// @return the tool's exit code.
int run(CLI::App& app, int argc, char** argv, const std::function<int()>& body);

/// Longest time that an option takes, in seconds: a year, which any clock has room for.
inline constexpr double max_seconds = 365.0 * 24 * 60 * 60;

/// For an option in seconds, which need not be whole: at least @p least, at most max_seconds.
CLI::Validator seconds(double least);

/// For an option that takes one of @p names, which must outlive it.
template <typename Enum> CLI::Validator one_of(const std::map<std::string, Enum>& names)
{
    const auto to_value = [&names](std::string& text) -> std::string {
        if (const auto found = names.find(text); found != names.end()) {
            text = std::to_string(static_cast<std::underlying_type_t<Enum>>(found->second));
            return {};
        }
        std::string known;
        for (const auto& [name, value] : names)
            known += (known.empty() ? "" : ", ") + name;
        return "'" + text + "' is none of " + known;
    };
    return {to_value, ""};
}

/// --poll and --wait, for both ends of a tool.
void add_waiting_options(CLI::App& app, Waiting& waiting);

/// Adds --server's options.
void add_server_options(CLI::App& app, ServerOptions& options);

/// -j and -p. @p what what is printed, as --help says it.
void add_json_options(CLI::App& command, JsonStyle& style,
                      const std::string& what = "Print JSON, in a line");

} // namespace tools
