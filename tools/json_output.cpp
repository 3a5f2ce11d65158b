// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "json_output.hpp"

namespace tools {

std::string json_text(const nlohmann::json& value, const JsonStyle& style)
{
    return value.dump(style.pretty ? 2 : -1, ' ', false, nlohmann::json::error_handler_t::replace) +
           "\n";
}

} // namespace tools
