// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <string>

namespace dapx::dat {

/// A line on stderr for the person in front of the program, if DAT_DBG_TYPE asks for such.
void explain(const char* subject, const std::string& why) noexcept;

} // namespace dapx::dat
