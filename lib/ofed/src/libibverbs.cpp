// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "libibverbs.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace dapx::verbs {

void* next_function(const char* name) noexcept
{
    void* function = dlsym(RTLD_NEXT, name);
    if (function == nullptr) {
        std::fprintf(
            stderr,
            "libdapx-verbs: no %s behind it: load libibverbs.so.1 after libdapx-verbs.so, and for rdma_*() "
            "librdmacm.so.1\n",
            name);
        std::abort();
    }
    return function;
}

} // namespace dapx::verbs
