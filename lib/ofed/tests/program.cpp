// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <cstdio>
#include <cstring>
#include <dlfcn.h>

template <class Function> static Function* function_of(void* library, const char* name)
{
    return reinterpret_cast<Function*>(dlsym(library, name));
}

int main(int argc, char** argv)
{
    void* plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (plugin == nullptr)
        return std::printf("no plug-in: %s\n", dlerror()), 1;
    const char* library = function_of<const char*()>(plugin, "plugin_called_library")();
    if (std::strstr(library, "libdapx-verbs") == nullptr)
        return std::printf("the plug-in calls %s\n", library), 1;
    // Without a device of dapx the answer is that of librdmacm, which depends on the host. That there is one
    // means that its function was found.
    const int error = function_of<int()>(plugin, "plugin_open_channel")();
    std::printf("the plug-in's channel: %s\n", std::strerror(error));
    return 0;
}
