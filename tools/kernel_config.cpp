// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "kernel_config.hpp"

#include <memory>
#include <set>
#include <sstream>

#include <zlib.h>

namespace tools {

std::optional<std::string> read_maybe_compressed(const std::string& path)
{
    const std::unique_ptr<::gzFile_s, int (*)(::gzFile)> file(::gzopen(path.c_str(), "rbe"),
                                                              ::gzclose);
    if (!file)
        return std::nullopt;
    std::string text;
    char piece[4096];
    int got = 0;
    while ((got = ::gzread(file.get(), piece, sizeof(piece))) > 0)
        text.append(piece, static_cast<std::size_t>(got));
    // What was cut off is told here only.
    int code = Z_OK;
    ::gzerror(file.get(), &code);
    if (got < 0 || code < 0 || text.empty())
        return std::nullopt;
    return text;
}

std::optional<KernelConfig> read_kernel_config(const std::string& release)
{
    for (const std::string& path :
         {std::string("/proc/config.gz"), "/boot/config-" + release,
          "/lib/modules/" + release + "/config", "/lib/modules/" + release + "/build/.config"})
        if (auto text = read_maybe_compressed(path))
            return KernelConfig{.path = path, .text = std::move(*text)};
    return std::nullopt;
}

std::vector<std::string> missing_options(const std::string& config, const std::string& wanted)
{
    std::set<std::string> lines;
    std::istringstream all(config);
    for (std::string line; std::getline(all, line);)
        lines.insert(line);
    std::vector<std::string> missing;
    std::istringstream options(wanted);
    for (std::string option; options >> option;)
        if (!lines.contains(option + "=y") && !lines.contains(option + "=m"))
            missing.push_back(option);
    return missing;
}

} // namespace tools
