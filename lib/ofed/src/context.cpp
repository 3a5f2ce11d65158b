// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "context.hpp"

#include "async_event.hpp"
#include "calls.hpp"
#include "libibverbs.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <sys/eventfd.h>
#include <type_traits>
#include <unistd.h>

namespace dapx::verbs {

namespace {

/// Events of ports, and of each object a few: more wait in the module.
constexpr std::uint32_t async_depth = 256;

std::mutex free_lock;
Context* free_contexts;

} // namespace

Context* Context::find(ibv_context* context) noexcept
{
    // Nobody else has these functions.
    return context != nullptr && context->ops.poll_cq == poll_cq ? &of(context) : nullptr;
}

Context* Context::open(const Device& device) noexcept
{
    Context* context = nullptr;
    {
        const std::lock_guard guard(free_lock);
        if (free_contexts != nullptr) {
            context = free_contexts;
            free_contexts = context->next_free_;
        }
    }
    if (context == nullptr)
        context = new (std::nothrow) Context;
    if (context == nullptr)
        return failed_null<Context>(ENOMEM);
    context->references_ = 1;
    if (const int error = context->init(device)) {
        context->put();
        return failed_null<Context>(error);
    }
    context->open_ = true;
    return context;
}

int Context::init(const Device& device) noexcept
{
    std::memset(static_cast<verbs_context*>(this), 0, sizeof(verbs_context));
    sz = sizeof(verbs_context);
    context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    context.device = const_cast<Device*>(&device);
    context.cmd_fd = -1;
    context.async_fd = -1;
    pthread_mutex_init(&context.mutex, nullptr);
    fill_in_calls(*this);

    device_ = &device;
    behind_ = device.open_behind();
    if (behind_ == nullptr)
        return errno;
    auto core = core::Context::open(device.ibdev());
    if (!core)
        return core.error().code();
    core_ = std::move(*core);
    auto attributes = core_->query_device();
    if (!attributes)
        return attributes.error().code();
    attributes_ = std::move(*attributes);
    auto async = core::Evd::create(*core_, {.depth = async_depth, .async = true});
    if (!async)
        return async.error().code();
    async_ = std::move(*async);
    context.async_fd = eventfd(0, EFD_CLOEXEC);
    if (context.async_fd < 0)
        return errno;
    if (auto done = async_->set_eventfd(context.async_fd); !done)
        return done.error().code();
    async_readiness_ = Readiness(context.async_fd);
    context.cmd_fd = core_->fd();
    context.num_comp_vectors = std::max(behind_->num_comp_vectors, 1);
    return 0;
}

void Context::exit() noexcept
{
    async_.reset();
    core_.reset();
    if (context.async_fd >= 0)
        ::close(context.async_fd);
    if (behind_ != nullptr)
        DAPX_LIBIBVERBS(ibv_close_device)(behind_);
    behind_ = nullptr;
    pthread_mutex_destroy(&context.mutex);
}

void Context::close() noexcept
{
    if (open_.exchange(false))
        put();
}

void Context::put() noexcept
{
    if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1)
        return;
    exit();
    const std::lock_guard guard(free_lock);
    next_free_ = free_contexts;
    free_contexts = this;
}

int Context::query(ibv_device_attr& attr) const noexcept
{
    if (const int error = DAPX_LIBIBVERBS(ibv_query_device)(behind_, &attr))
        return error;
    const auto at_most = [](int& limit, std::uint32_t own) {
        limit = static_cast<int>(std::min<std::uint32_t>(own, INT32_MAX));
    };
    const auto info = core_->info();
    const std::uint32_t max_objects = info ? info->max_objects : INT32_MAX;
    const auto has = [&](core::DeviceCap cap) { return (attributes_.caps & cap) == cap; };

    attr.node_guid = device_->guid();
    attr.device_cap_flags &= IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR |
                             IBV_DEVICE_SHUTDOWN_PORT | IBV_DEVICE_INIT_TYPE |
                             IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
                             IBV_DEVICE_RC_RNR_NAK_GEN;
    attr.device_cap_flags |= IBV_DEVICE_XRC;
    attr.max_mr_size = attributes_.max_mr_size;
    at_most(attr.max_qp, std::min(attributes_.max_ep, max_objects));
    at_most(attr.max_qp_wr, std::min(attributes_.max_send_depth, attributes_.max_recv_depth));
    at_most(attr.max_sge, std::min(attributes_.max_send_sge, attributes_.max_recv_sge));
    attr.max_sge_rd = std::min(attr.max_sge_rd, attr.max_sge);
    at_most(attr.max_cq,
            std::min<std::uint32_t>(static_cast<std::uint32_t>(attr.max_cq), max_objects));
    at_most(attr.max_cqe, info ? info->max_ring_depth : 1);
    at_most(attr.max_mr,
            std::min<std::uint32_t>(static_cast<std::uint32_t>(attr.max_mr), max_objects));
    at_most(attr.max_pd,
            std::min<std::uint32_t>(static_cast<std::uint32_t>(attr.max_pd), max_objects));
    at_most(attr.max_qp_rd_atom, attributes_.max_dest_rd_atomic);
    at_most(attr.max_qp_init_rd_atom, attributes_.max_rd_atomic);
    at_most(attr.max_srq, max_objects);
    at_most(attr.max_srq_wr, attributes_.max_srq_depth);
    at_most(attr.max_srq_sge, attributes_.max_recv_sge);
    if (!has(core::DeviceCap::atomics))
        attr.atomic_cap = IBV_ATOMIC_NONE;
    attr.max_ee_rd_atom = attr.max_ee_init_rd_atom = attr.max_ee = attr.max_rdd = 0;
    attr.max_mw = attr.max_raw_ipv6_qp = attr.max_raw_ethy_qp = 0;
    attr.max_mcast_grp = attr.max_mcast_qp_attach = attr.max_total_mcast_qp_attach = 0;
    attr.max_ah = attr.max_fmr = attr.max_map_per_fmr = 0;
    return 0;
}

// ------------------------------------------------------------------- asynchronous events

/// With the lock. @p signals: those that the caller has read.
bool Context::take_event(ibv_async_event& event, std::uint64_t signals) noexcept
{
    bool taken = false;
    core::Event raw;
    async_readiness_.signalled(signals);
    while (!taken && async_->poll(raw)) {
        async_readiness_.took(1);
        taken = report(raw, event);
    }
    async_readiness_.clear();
    if (async_->available() != 0)
        async_readiness_.signal();
    return taken;
}

int Context::next_event(ibv_async_event& event) noexcept
{
    for (std::uint64_t signals = 0;;) {
        {
            const std::lock_guard guard(async_lock_);
            if (take_event(event, signals))
                return 0;
        }
        // Unlike poll(), it goes on after a signal whose handler has SA_RESTART, as libibverbs does.
        if (read(context.async_fd, &signals, sizeof(signals)) < 0)
            return -1;
    }
}

void Context::drop_events(std::uint32_t handle) noexcept
{
    const std::lock_guard guard(async_lock_);
    const std::uint32_t waiting = async_->available();
    async_->drop(handle);
    async_readiness_.took(std::int64_t{waiting} - async_->available());
}

} // namespace dapx::verbs

// ------------------------------------------------------------------------------ functions

using dapx::verbs::Context;
using dapx::verbs::Device;
using dapx::verbs::failed;

DAPX_VERBS ibv_context* ibv_open_device(ibv_device* device)
{
    const Device* own = Device::find(device);
    if (own == nullptr)
        return DAPX_LIBIBVERBS(ibv_open_device)(device);
    Context* context = Context::open(*own);
    return context != nullptr ? &context->context : nullptr;
}

DAPX_VERBS int ibv_close_device(ibv_context* context)
{
    Context* own = Context::find(context);
    if (own == nullptr)
        return context != nullptr ? DAPX_LIBIBVERBS(ibv_close_device)(context) : failed(EINVAL);
    if (!own->is_open())
        return failed(EINVAL);
    own->close();
    return 0;
}

DAPX_VERBS int ibv_query_device(ibv_context* context, ibv_device_attr* attr)
{
    const Context* own = Context::find(context);
    if (own == nullptr)
        return DAPX_LIBIBVERBS(ibv_query_device)(context, attr);
    return own->is_open() ? own->query(*attr) : failed(EINVAL);
}

/// What is told of a port is that of the device behind.
template <class Result, class... Rest>
static Result ask_behind(Result (*function)(ibv_context*, Rest...), ibv_context* context,
                         std::type_identity_t<Rest>... rest) noexcept
{
    if (const Context* own = Context::find(context)) {
        if (!own->is_open()) {
            errno = EINVAL;
            return -1;
        }
        context = own->behind();
    }
    return function(context, rest...);
}

DAPX_VERBS int ibv_query_port(ibv_context* context, std::uint8_t port_num,
                              _compat_ibv_port_attr* port_attr)
{
    return ask_behind(DAPX_LIBIBVERBS(ibv_query_port), context, port_num, port_attr);
}

DAPX_VERBS int ibv_query_gid(ibv_context* context, std::uint8_t port_num, int index, ibv_gid* gid)
{
    return ask_behind(DAPX_LIBIBVERBS(ibv_query_gid), context, port_num, index, gid);
}

DAPX_VERBS int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port_num,
                                 std::uint32_t gid_index, ibv_gid_entry* entry, std::uint32_t flags,
                                 size_t entry_size)
{
    return ask_behind(DAPX_LIBIBVERBS(_ibv_query_gid_ex), context, port_num, gid_index, entry,
                      flags, entry_size);
}

DAPX_VERBS ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries,
                                        size_t max_entries, std::uint32_t flags, size_t entry_size)
{
    return ask_behind(DAPX_LIBIBVERBS(_ibv_query_gid_table), context, entries, max_entries, flags,
                      entry_size);
}

DAPX_VERBS int ibv_query_pkey(ibv_context* context, std::uint8_t port_num, int index, __be16* pkey)
{
    return ask_behind(DAPX_LIBIBVERBS(ibv_query_pkey), context, port_num, index, pkey);
}

DAPX_VERBS int ibv_get_pkey_index(ibv_context* context, std::uint8_t port_num, __be16 pkey)
{
    return ask_behind(DAPX_LIBIBVERBS(ibv_get_pkey_index), context, port_num, pkey);
}

/// In no header: of rdma-core's own, and called by ibv_devinfo(1) with any context.
DAPX_VERBS int ibv_query_gid_type(ibv_context* context, std::uint8_t port_num, unsigned int index,
                                  int* type)
{
    return ask_behind(DAPX_LIBIBVERBS(ibv_query_gid_type), context, port_num, index, type);
}

DAPX_VERBS int ibv_get_async_event(ibv_context* context, ibv_async_event* event)
{
    Context* own = Context::find(context);
    if (own == nullptr)
        return DAPX_LIBIBVERBS(ibv_get_async_event)(context, event);
    if (own->is_open())
        return own->next_event(*event);
    errno = EINVAL;
    return -1;
}
