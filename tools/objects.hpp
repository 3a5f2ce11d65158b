// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Contexts and their objects, written for people and for programs.
#pragma once

#include <dapx/object_list.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tools {

/// "ep": as the classes are called on the command line.
extern const std::map<std::string, dapx::ObjectType> object_classes;

/// Which of them to show.
struct ObjectFilter {
    std::optional<std::uint32_t> pid;
    std::string device; ///< "": any

    [[nodiscard]] bool matches(std::uint32_t pid_of, const std::string& device_of) const
    {
        return (!pid || *pid == pid_of) && (device.empty() || device == device_of);
    }
};

/// "connected". @param state enum dapx_ep_state.
std::string ep_state_text(std::uint32_t state);

/// A table; a sentence if there is none. @param all whether there is no more than what is told.
std::string contexts_text(const std::vector<dapx::ContextEntry>& contexts,
                          const ObjectFilter& filter, bool all);
/// The same of one class, or a table for each that has some (ObjectType::any).
/// @param statistics with columns of what was counted.
std::string objects_text(const std::vector<dapx::ObjectEntry>& objects, dapx::ObjectType type,
                         const ObjectFilter& filter, bool statistics, bool all);

nlohmann::json contexts_json(const std::vector<dapx::ContextEntry>& contexts,
                             const ObjectFilter& filter);
/// @param type of this class only; ObjectType::any: of all.
nlohmann::json objects_json(const std::vector<dapx::ObjectEntry>& objects, dapx::ObjectType type,
                            const ObjectFilter& filter);

} // namespace tools
