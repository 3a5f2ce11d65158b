// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// XRC domains, written for people and for programs.
#pragma once

#include <dapx/xrc_domain_list.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace tools {

/// What others have named, fit for a terminal: control characters, and what is no UTF-8, as \xNN.
std::string printable(const std::string& name);

/// "-" for 0: the process is in another PID namespace.
std::string pid_text(std::uint32_t pid);

/// One block for each domain; a sentence if there is none. @param all whether there is no more
/// than what is told.
std::string xrcd_text(const std::vector<dapx::XrcDomainInfo>& domains, bool all);

nlohmann::json xrcd_json(const std::vector<dapx::XrcDomainInfo>& domains);

} // namespace tools
