// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "dat_conf.hpp"

#include <fmt/format.h>

#include <cstring>
#include <iomanip>
#include <sstream>
#include <utility>

namespace tools {

namespace {

// What is between them belongs to dapxctl. At the front of the file: so taking it out leaves the
// rest as it was, whatever that ended with.
constexpr const char* begin_mark =
    "# Written by 'dapxctl dat-conf --install', taken back by --remove\n";
constexpr const char* end_mark = "# End of what 'dapxctl dat-conf' has written\n";

// Version of DAT, and of the library's name.
constexpr std::pair<const char*, const char*> providers[] = {
#ifdef DAPX_DAT2
    {"u2.0", "2"},
#endif
    {"u1.2", "1"},
};

} // namespace

std::vector<DatConfEntry> dat_conf_entries(const dapx::DeviceList& devices,
                                           const std::string& folder)
{
    const std::string library = (folder.empty() ? "" : folder + "/") + "libdapx-dat.so.";
    std::vector<DatConfEntry> entries;
    for (const dapx::DeviceInfo& device : devices) {
        if (!device.usable)
            continue;
        for (const auto& [version, major] : providers)
            for (const bool thread_safe : {false, true})
                entries.push_back({.ia = "dapx-" + device.name,
                                   .device = device.name,
                                   .version = version,
                                   .thread_safe = thread_safe,
                                   .library = library + major});
    }
    return entries;
}

std::vector<DatConfName> names_in_dat_conf(const std::string& text)
{
    std::vector<DatConfName> names;
    std::istringstream all(text);
    int number = 0;
    for (std::string line; std::getline(all, line);) {
        ++number;
        // Adapter, version, thread-safety, "default", library, provider, device.
        std::istringstream fields(line);
        std::string field;
        std::string library;
        std::string device;
        for (int i = 0; i < 7 && fields >> std::quoted(field); ++i) {
            if (i == 0 && field.starts_with('#'))
                break;
            if (i == 4)
                library = field;
            if (i == 6)
                device = field;
        }
        if (library.substr(library.rfind('/') + 1).starts_with("libdapx-dat.so"))
            names.push_back({.line = number, .library = library, .device = device});
    }
    return names;
}

std::string dat_conf_text(const std::vector<DatConfEntry>& entries)
{
    std::string text;
    for (const DatConfEntry& entry : entries)
        text += fmt::format("{} {} {:13} default {} dapx.0.1 \"{}\" \"\"\n", entry.ia,
                            entry.version, entry.thread_safe ? "threadsafe" : "nonthreadsafe",
                            entry.library, entry.device);
    return text;
}

std::string without_dat_conf(const std::string& text)
{
    const std::size_t begin = text.find(begin_mark);
    if (begin == std::string::npos)
        return text;
    const std::size_t end = text.find(end_mark, begin);
    if (end == std::string::npos)
        return text;
    return text.substr(0, begin) + text.substr(end + std::strlen(end_mark));
}

std::string with_dat_conf(const std::string& text, const std::string& lines)
{
    return begin_mark + lines + end_mark + without_dat_conf(text);
}

} // namespace tools
