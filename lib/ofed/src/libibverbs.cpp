// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "libibverbs.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace dapx::verbs {

void* find_next_function(const char* name) noexcept
{
    if (void* function = dlsym(RTLD_NEXT, name))
        return function;
    // A program that loads what it needs by dlopen(3) has them outside the scope of RTLD_NEXT.
    constexpr const char* libraries[] = {"libibverbs.so.1", "librdmacm.so.1"};
    for (const char* library : libraries)
        if (void* loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD))
            if (void* function = dlsym(loaded, name))
                return function;
    return nullptr;
}

void* next_function(const char* name) noexcept
{
    void* function = find_next_function(name);
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

bool is_in_library_of(const void* function, const void* caller) noexcept
{
    Dl_info library{};
    Dl_info from{};
    return function != nullptr && dladdr(function, &library) != 0 && dladdr(caller, &from) != 0 &&
           from.dli_fbase == library.dli_fbase;
}

} // namespace dapx::verbs
