// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Lines of dat.conf, by which the DAT registry finds dapx, and putting them into the file.
#pragma once

#include <dapx/device_list.hpp>

#include <string>
#include <vector>

namespace tools {

/// A line of dat.conf: one interface adapter for programs of one version and one thread-safety.
struct DatConfEntry {
    std::string ia;      ///< "dapx-rxe0"
    std::string device;  ///< "rxe0"
    std::string version; ///< "u2.0", "u1.2"
    bool thread_safe = false;
    std::string library; ///< what the registry loads
};

/// Of each device that dapx can use, for programs of DAT 2.0, if dapx was built with that provider,
/// and of 1.2: what those that are thread-safe ask for, and what others do. @p folder: of the
/// libraries; empty for where dlopen(3) looks.
std::vector<DatConfEntry> dat_conf_entries(const dapx::DeviceList& devices,
                                           const std::string& folder);

/// What a line of a dat.conf names, if it is one of dapx.
struct DatConfName {
    int line = 0; ///< from 1
    std::string library;
    std::string device;
};

/// Of @p text, a whole dat.conf, whoever wrote it.
std::vector<DatConfName> names_in_dat_conf(const std::string& text);

/// The lines.
std::string dat_conf_text(const std::vector<DatConfEntry>& entries);

/// @p text, a whole dat.conf, without what dapx has put there; as it was before then.
std::string without_dat_conf(const std::string& text);

/// @p text with @p lines of dapx, instead of those that it has.
std::string with_dat_conf(const std::string& text, const std::string& lines);

} // namespace tools
