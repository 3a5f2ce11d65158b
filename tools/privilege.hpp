// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the caller may do, and see.
#pragma once

#include <string>

namespace tools {

/// Whether it is in effect. @p capability CAP_...
bool has_capability(unsigned capability);

/// Whether the module tells this process of all there is, not only of what its own user has. False
/// if in doubt.
bool sees_all();

/// That there is no @p what; and if others may have some, that these are not shown.
std::string none_text(const std::string& what, bool all);

} // namespace tools
