// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The static registry of DAT: dat.conf.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dapx::dat::registry {

/// A line: an interface adapter, and the library that provides it.
struct Entry {
    std::string ia_name;
    std::uint32_t major = 0;
    std::uint32_t minor = 0;
    bool thread_safe = false;
    std::string library;
    std::string ia_parameters; ///< for the library
};

/// The entry of one line; nothing if it is none: empty, a comment, of the kernel's DAT, or damaged.
[[nodiscard]] std::optional<Entry> parse_entry(std::string_view line);

/// All of a file's.
[[nodiscard]] std::vector<Entry> parse_entries(std::istream& file);

/// Where the entries are: $DAT_OVERRIDE, otherwise /etc/dat.conf.
[[nodiscard]] std::string dat_conf_path();

} // namespace dapx::dat::registry
