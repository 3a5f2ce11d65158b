// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "ia.hpp"

#include "evd.hpp"
#include "functions.hpp"
#include "limits.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

namespace dapx::dat {

Ia::Ia(Slot& slot, const Provider& provider, core::Context context, core::ModuleInfo module,
       core::DeviceAttributes device, core::Address address, core::Pd no_pd,
       core::Evd no_evd) noexcept
    : Object(slot, *this), provider_(provider), context_(std::move(context)), module_(module),
      device_(std::move(device)), address_(address), no_pd_(std::move(no_pd)),
      no_evd_(std::move(no_evd)), mtu_(std::to_string(device_.active_mtu))
{
}

std::expected<std::unique_ptr<Ia>, DAT_RETURN> Ia::open(const Provider& provider) noexcept
try {
    const auto fail = [&](const core::Error& why) {
        explain(provider.info.ia_name, why.message());
        const bool absent = why.code() == ENOENT || why.code() == ENODEV;
        return std::unexpected(absent ? error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED)
                                      : error_of(why, DAT_RESOURCE_DEVICE));
    };
    auto context = core::Context::open(provider.device);
    if (!context)
        return fail(context.error());
    auto module = context->info();
    if (!module)
        return fail(module.error());
    auto device = context->query_device();
    if (!device)
        return fail(device.error());
    auto addresses = core::Address::of_device(provider.device);
    if (!addresses)
        return fail(addresses.error());
    if (addresses->empty()) {
        explain(provider.info.ia_name,
                provider.device + ": no network interface with an address, which connections need");
        return std::unexpected(error(DAT_INVALID_ADDRESS));
    }
    auto pd = core::Pd::create(*context);
    if (!pd)
        return fail(pd.error());
    auto evd = core::Evd::create(*context, {.depth = 2});
    if (!evd)
        return fail(evd.error());
    auto ia =
        make_at<Ia>(Slot::take(handle_type, provider.table), provider, std::move(*context), *module,
                    std::move(*device), addresses->front(), std::move(*pd), std::move(*evd));
    if (ia == nullptr)
        return std::unexpected(no_memory());
    return ia;
} catch (const std::bad_alloc&) {
    return std::unexpected(no_memory());
}

DAT_IA_ADDRESS_PTR Ia::address_ptr() const noexcept
{
    return as_ia_address(address_);
}

DAT_IA_HANDLE Ia::consumer_handle() const noexcept
{
    return consumer_handle_of(handle());
}

void Ia::set_async_evd(Evd& evd) noexcept
{
    async_evd_ = evd.handle();
    async_evd_use_ = Use(&evd);
}

DAT_RETURN Ia::add(Object& object) noexcept
try {
    const std::lock_guard lock(mutex_);
    if (closed_)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    objects_.insert(&object);
    return DAT_SUCCESS;
} catch (const std::bad_alloc&) {
    return no_memory();
}

void Ia::remove(Object& object) noexcept
{
    const std::lock_guard lock(mutex_);
    objects_.erase(&object);
}

void Ia::add_listener(std::uint32_t number, const std::shared_ptr<Listener>& listener)
{
    const std::lock_guard lock(mutex_);
    std::erase_if(listeners_, [](const auto& entry) { return entry.second.expired(); });
    listeners_.insert_or_assign(number, listener);
}

std::shared_ptr<Listener> Ia::listener(std::uint32_t number) noexcept
{
    const std::lock_guard lock(mutex_);
    const auto found = listeners_.find(number);
    return found == listeners_.end() ? nullptr : found->second.lock();
}

void Ia::destroy_all(DAT_HANDLE_TYPE type) noexcept
{
    // In the set's order, as others may come and go meanwhile.
    Object* last = nullptr;
    for (;;) {
        DAT_HANDLE handle = DAT_HANDLE_NULL;
        {
            const std::lock_guard lock(mutex_);
            const auto next =
                std::find_if(objects_.upper_bound(last), objects_.end(),
                             [&](const Object* object) { return object->type() == type; });
            if (next == objects_.end())
                return;
            last = *next;
            handle = last->handle();
        }
        if (Ref<Object> object(handle); object && object->type() == type)
            (void)destroy(object.hand_over());
    }
}

DAT_RETURN Ia::close(DAT_CLOSE_FLAGS flags) noexcept
{
    {
        const std::lock_guard lock(mutex_);
        const auto needed = [&](const Object* object) {
            return object->handle() != async_evd_ && object->counts();
        };
        if (flags == DAT_CLOSE_GRACEFUL_FLAG && std::ranges::any_of(objects_, needed))
            return error(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE);
        if (std::exchange(closed_, true))
            return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    }
    async_evd_use_ = Use();
    // Users before what they use. What another thread makes just now goes, too, as soon as it finds
    // that it is too late.
    while (!empty()) {
        for (const DAT_HANDLE_TYPE type :
             {DAT_HANDLE_TYPE_CR, DAT_HANDLE_TYPE_RSP, DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_EP,
              DAT_HANDLE_TYPE_RMR, DAT_HANDLE_TYPE_LMR, DAT_HANDLE_TYPE_SRQ, DAT_HANDLE_TYPE_EVD,
              DAT_HANDLE_TYPE_CNO, DAT_HANDLE_TYPE_PZ})
            destroy_all(type);
        if (!empty())
            std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return DAT_SUCCESS;
}

bool Ia::empty() noexcept
{
    const std::lock_guard lock(mutex_);
    return objects_.empty();
}

namespace {

template <std::size_t N> void copy_text(char (&to)[N], const std::string& text) noexcept
{
    const std::size_t length = std::min(text.size(), N - 1);
    std::memcpy(to, text.data(), length);
    to[length] = '\0';
}

void fill(DAT_IA_ATTR& attr, const Ia& ia) noexcept
{
    const core::DeviceAttributes& device = ia.device();
    const core::ModuleInfo& module = ia.module();
    const Limits limits = limits_of(ia);
    const auto objects = static_cast<DAT_COUNT>(module.max_objects);
    attr = {};
    copy_text(attr.adapter_name, ia.provider().info.ia_name);
    copy_text(attr.vendor_name, device.name);
    attr.ia_address_ptr = ia.address_ptr();
    attr.max_eps = std::min(static_cast<DAT_COUNT>(device.max_ep), objects);
    attr.max_dto_per_ep = limits.dtos;
    attr.max_rdma_read_per_ep_in = limits.reads_in;
    attr.max_rdma_read_per_ep_out = limits.reads_out;
    attr.max_rdma_read_per_ep_in_guaranteed = DAT_TRUE;
    attr.max_rdma_read_per_ep_out_guaranteed = DAT_TRUE;
    attr.max_evds = objects;
    attr.max_evd_qlen = static_cast<DAT_COUNT>(module.max_ring_depth);
    attr.max_iov_segments_per_dto = limits.segments;
    attr.max_lmrs = objects;
    attr.max_lmr_block_size =
        static_cast<DAT_SEG_LENGTH>(std::min<std::uint64_t>(device.max_mr_size, ~DAT_SEG_LENGTH{}));
    attr.max_lmr_virtual_address = ~DAT_VADDR{};
    attr.max_pzs = objects;
    attr.max_message_size = device.max_msg_size;
    attr.max_rdma_size = device.max_msg_size;
    attr.max_rmrs = objects;
    attr.max_rmr_target_address = ~DAT_VADDR{};
    if (core::has(device.caps, core::DeviceCap::srq)) {
        attr.max_srqs = objects;
        attr.max_ep_per_srq = attr.max_eps;
        attr.max_recv_per_srq = static_cast<DAT_COUNT>(device.max_srq_depth);
    }
    attr.max_iov_segments_per_rdma_read = limits.segments;
    attr.max_iov_segments_per_rdma_write = limits.segments;
    attr.max_rdma_read_in = limits.reads_in;
    attr.max_rdma_read_out = limits.reads_out;
    complete(attr);
}

void fill(DAT_PROVIDER_ATTR& attr, const Ia& ia) noexcept
{
    // A member is const: the header leaves no other way to write it.
    std::memset(static_cast<void*>(&attr), 0, sizeof(attr));
    copy_text(attr.provider_name, "dapx");
    attr.provider_version_major = 0;
    attr.provider_version_minor = 1;
    // The registry finds the line of dat.conf by these at the end.
    attr.dapl_version_major = ia.provider().info.dapl_version_major;
    attr.dapl_version_minor = ia.provider().info.dapl_version_minor;
    attr.is_thread_safe = ia.provider().info.is_thread_safe;
    attr.lmr_mem_types_supported = static_cast<DAT_MEM_TYPE>(
        DAT_MEM_TYPE_VIRTUAL | DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_SHARED_VIRTUAL);
    attr.iov_ownership_on_return = DAT_IOV_CONSUMER;
    attr.dat_qos_supported = DAT_QOS_BEST_EFFORT;
    attr.completion_flags_supported = static_cast<DAT_COMPLETION_FLAGS>(
        DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
        (ia.module().quiet ? DAT_COMPLETION_UNSIGNALLED_FLAG : 0) |
        DAT_COMPLETION_BARRIER_FENCE_FLAG | DAT_COMPLETION_EVD_THRESHOLD_FLAG);
    attr.max_private_data_size = ia.device().max_connect_data;
    attr.supports_multipath = DAT_FALSE;
    attr.ep_creator = DAT_PSP_CREATES_EP_IFASKED;
    attr.pz_support = DAT_PZ_UNIQUE;
    attr.optimal_buffer_alignment = 4096;
    constexpr DAT_BOOLEAN all[6][6] = {
        {DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE},
        {DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE},
        {DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE},
        {DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE},
        {DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE},
        {DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE, DAT_TRUE},
    };
    std::memcpy(const_cast<DAT_BOOLEAN*>(&attr.evd_stream_merging_supported[0][0]), all,
                sizeof(all));
    attr.srq_supported = core::has(ia.device().caps, core::DeviceCap::srq) ? DAT_TRUE : DAT_FALSE;
    attr.dto_async_return_guaranteed = DAT_TRUE;
    complete(attr);
    attr.num_provider_specific_attr = static_cast<DAT_COUNT>(ia.provider_attributes().size());
    attr.provider_specific_attr = const_cast<DAT_NAMED_ATTR*>(ia.provider_attributes().data());
}

} // namespace

template <bool thread_safe>
DAT_RETURN provider_ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE* async_evd,
                            DAT_IA_HANDLE* handle) noexcept
{
    if (async_evd == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    if (handle == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    const bool elsewhere = *async_evd == DAT_EVD_ASYNC_EXISTS;
    if (!elsewhere && *async_evd != DAT_HANDLE_NULL)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC);
    if (!elsewhere && qlen <= 0)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    const Provider* provider = find_provider(name, thread_safe);
    if (provider == nullptr)
        return error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
    auto ia = Ia::open(*provider);
    if (!ia)
        return ia.error();
    if (!elsewhere) {
        auto evd = Evd::create(**ia, qlen, nullptr, DAT_EVD_ASYNC_FLAG, Evd::Async::yes);
        if (!evd)
            return evd.error();
        (*ia)->set_async_evd(**evd);
        if (const DAT_RETURN failed = hand_out(std::move(*evd), *async_evd))
            return failed;
    }
    return hand_out(std::move(*ia), *handle);
}
template DAT_RETURN provider_ia_open<false>(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*,
                                            DAT_IA_HANDLE*) noexcept;
template DAT_RETURN provider_ia_open<true>(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*,
                                           DAT_IA_HANDLE*) noexcept;

DAT_RETURN provider_ia_query(DAT_IA_HANDLE handle, DAT_EVD_HANDLE* async_evd, DAT_IA_ATTR_MASK mask,
                             DAT_IA_ATTR* attr, DAT_PROVIDER_ATTR_MASK provider_mask,
                             DAT_PROVIDER_ATTR* provider_attr) noexcept
{
    const Ref<Ia> ia(handle);
    if (!ia)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    if ((mask & ~DAT_IA_FIELD_ALL) != 0)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    if (mask != 0 && attr == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    if ((provider_mask & ~DAT_PROVIDER_FIELD_ALL) != 0)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
    if (provider_mask != 0 && provider_attr == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
    if (async_evd != nullptr)
        *async_evd = ia->async_evd() == DAT_HANDLE_NULL ? DAT_EVD_OUT_OF_SCOPE : ia->async_evd();
    if (mask != 0)
        fill(*attr, *ia);
    if (provider_mask != 0)
        fill(*provider_attr, *ia);
    return DAT_SUCCESS;
}

DAT_RETURN provider_ia_close(DAT_IA_HANDLE handle, DAT_CLOSE_FLAGS flags) noexcept
{
    Ref<Ia> ia(handle);
    if (!ia)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    if (const DAT_RETURN closed = ia->close(flags); closed != DAT_SUCCESS)
        return closed;
    return destroy(ia.hand_over());
}

DAT_RETURN provider_ia_ha_related(DAT_IA_HANDLE handle, const DAT_NAME_PTR name,
                                  DAT_BOOLEAN* related) noexcept
{
    const Ref<Ia> ia(handle);
    if (!ia)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    if (name == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    if (related == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    // Of one device there is one port here: nothing takes over for it.
    *related = DAT_FALSE;
    return DAT_SUCCESS;
}

DAT_RETURN provider_set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context) noexcept
{
    const Ref<Object> object(handle);
    if (!object)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
    object->consumer_context.store(context.as_64, std::memory_order_relaxed);
    return DAT_SUCCESS;
}

DAT_RETURN provider_get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT* context) noexcept
{
    const Ref<Object> object(handle);
    if (!object)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
    if (context == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    context->as_64 = object->consumer_context.load(std::memory_order_relaxed);
    return DAT_SUCCESS;
}

DAT_RETURN provider_get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE* type) noexcept
{
    const Ref<Object> object(handle);
    if (!object)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
    if (type == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    *type = object->type();
    return DAT_SUCCESS;
}

} // namespace dapx::dat
