// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "explain.hpp"

#include <cstdio>
#include <cstdlib>

namespace dapx::dat {

void explain(const char* subject, const std::string& why) noexcept
{
    const char* wanted = std::getenv("DAT_DBG_TYPE");
    if (wanted != nullptr && std::strtol(wanted, nullptr, 0) != 0)
        std::fprintf(stderr, "%s: %s\n", subject, why.c_str());
}

} // namespace dapx::dat
