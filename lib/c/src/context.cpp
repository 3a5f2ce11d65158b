// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// <dapx/c.h>: errors, context, protection domains, memory.
#include "handles.hpp"

#include <string>

namespace dapx::c {

namespace {

std::string& error_text() noexcept
{
    thread_local std::string text;
    return text;
}

} // namespace

int keep(const Error& error) noexcept
{
    return keep(error.code(), error.message().c_str());
}

int keep(int code, const char* attempt) noexcept
{
    try {
        error_text() = attempt;
    } catch (const std::bad_alloc&) {
        // Better none than that of an earlier failure.
        error_text().clear();
    }
    return code;
}

} // namespace dapx::c

using namespace dapx::c;

const char* dapxc_error_text()
{
    return error_text().c_str();
}

dapxc_context* dapxc_open(const char* device, const char* node)
{
    if (device == nullptr)
        return fail(invalid());
    try {
        return make<dapxc_context>(
            dapx::Context::open(device, node != nullptr ? node : dapx::Context::default_node));
    } catch (const std::bad_alloc&) {
        return fail(keep(ENOMEM, "out of memory"));
    }
}

int dapxc_close(dapxc_context* context)
{
    if (context == nullptr)
        return invalid();
    delete context;
    return 0;
}

int dapxc_query_module(const dapxc_context* context, dapx_info* info)
{
    if (context == nullptr || info == nullptr)
        return invalid();
    return ask(context->object, *info, "cannot ask the dapx module what it can do");
}

int dapxc_query_device(const dapxc_context* context, dapx_query_device* query)
{
    if (context == nullptr || query == nullptr)
        return invalid();
    return ask(context->object, *query, "cannot query the RDMA device");
}

dapxc_pd* dapxc_pd_create(const dapxc_context* context, uint64_t user_data)
{
    if (context == nullptr)
        return fail(invalid());
    return make<dapxc_pd>(dapx::Pd::create(context->object, user_data));
}

uint32_t dapxc_pd_handle(const dapxc_pd* pd)
{
    return handle_of(pd);
}

int dapxc_pd_free(dapxc_pd* pd)
{
    return take_back(pd);
}

dapxc_mr* dapxc_mr_create(const dapxc_pd* pd, void* addr, size_t length, uint32_t access,
                          uint32_t flags, uint64_t user_data)
{
    if (pd == nullptr)
        return fail(invalid());
    return make<dapxc_mr>(dapx::MemoryRegion::create(pd->object, addr, length, dapx::Access{access},
                                                     user_data, dapx::RegionFlags{flags}));
}

uint32_t dapxc_mr_handle(const dapxc_mr* mr)
{
    return handle_of(mr);
}

uint32_t dapxc_mr_rkey(const dapxc_mr* mr)
{
    return mr != nullptr ? mr->object.rkey() : 0;
}

int dapxc_mr_enable_xrc(dapxc_mr* mr)
{
    return mr != nullptr ? errno_of(mr->object.enable_xrc()) : invalid();
}

int dapxc_mr_free(dapxc_mr* mr)
{
    return take_back(mr);
}
