// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "dat_conf.hpp"

#include <charconv>
#include <cstdlib>
#include <iomanip>
#include <sstream>

namespace dapx::dat::registry {

namespace {

/// "u1.2": user space's DAT, and its version.
bool parse_version(std::string_view word, Entry& entry)
{
    if (!word.starts_with('u'))
        return false;
    const char* const end = word.data() + word.size();
    const auto major = std::from_chars(word.data() + 1, end, entry.major);
    if (major.ec != std::errc{} || major.ptr == end || *major.ptr != '.')
        return false;
    const auto minor = std::from_chars(major.ptr + 1, end, entry.minor);
    return minor.ec == std::errc{} && minor.ptr == end;
}

} // namespace

std::optional<Entry> parse_entry(std::string_view line)
{
    std::istringstream words{std::string(line)};
    Entry entry;
    std::string version;
    std::string safety;
    std::string preference;
    std::string provider_version;
    words >> entry.ia_name >> version >> safety >> preference >> entry.library >>
        provider_version >> std::quoted(entry.ia_parameters);
    if (!words || entry.ia_name.starts_with('#') || !parse_version(version, entry))
        return std::nullopt;
    // As libdat2, which ignores "nondefault" lines.
    if (preference != "default")
        return std::nullopt;
    entry.thread_safe = safety == "threadsafe";
    if (!entry.thread_safe && safety != "nonthreadsafe")
        return std::nullopt;
    return entry;
}

std::vector<Entry> parse_entries(std::istream& file)
{
    std::vector<Entry> entries;
    for (std::string line; std::getline(file, line);)
        if (auto entry = parse_entry(line))
            entries.push_back(std::move(*entry));
    return entries;
}

std::string dat_conf_path()
{
    const char* const other = std::getenv("DAT_OVERRIDE");
    return other != nullptr ? other : "/etc/dat.conf";
}

} // namespace dapx::dat::registry
