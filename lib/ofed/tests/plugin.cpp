// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <dlfcn.h>

/// The library whose function this one calls.
extern "C" const char* plugin_called_library()
{
    Dl_info info{};
    return dladdr(reinterpret_cast<const void*>(&rdma_create_event_channel), &info) != 0
               ? info.dli_fname
               : "";
}

/// Returns 0 or an errno value.
extern "C" int plugin_open_channel()
{
    rdma_event_channel* channel = rdma_create_event_channel();
    if (channel == nullptr)
        return errno;
    rdma_destroy_event_channel(channel);
    return 0;
}
