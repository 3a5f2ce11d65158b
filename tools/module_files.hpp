// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Where the module's file lies, and what keeps modprobe(8) or the kernel from loading it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tools {

struct ModuleFiles {
    bool folder = false;                    ///< the kernel's own is there
    bool indexed = false;                   ///< modprobe finds it
    std::string file;                       ///< "": there is none for this kernel
    std::vector<std::string> other_kernels; ///< that have one
};

/// @param root in front of "/lib/modules"; tests have one of their own.
ModuleFiles find_module(const std::string& release, const std::string& root = "");

struct ModuleBan {
    std::string where;    ///< "/etc/modprobe.d/x.conf, line 3"
    bool by_name = false; ///< also 'modprobe dapx', not just loading at boot
};

/// What bars the module: 'blacklist' and 'install' of modprobe.d(5), and the kernel's command line.
std::optional<ModuleBan> find_module_ban(const std::string& root = "");

/// Whether the kernel loads only modules whose signature it trusts, as with Secure Boot.
bool signature_required(const std::string& root = "");

/// None if the file is compressed, or cannot be read.
std::optional<bool> has_signature(const std::string& file);

} // namespace tools
