// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The configuration that the running kernel was built with.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tools {

struct KernelConfig {
    std::string path;
    std::string text;
};

/// Where distributions have it. None: it is in none of these places, or may not be read.
std::optional<KernelConfig> read_kernel_config(const std::string& release);

/// A file, compressed by gzip or not.
std::optional<std::string> read_maybe_compressed(const std::string& path);

/// Those of @p wanted ("CONFIG_A CONFIG_B") that are neither built in nor modules.
std::vector<std::string> missing_options(const std::string& config, const std::string& wanted);

} // namespace tools
