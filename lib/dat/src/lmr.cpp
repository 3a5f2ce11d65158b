// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "lmr.hpp"

#include "functions.hpp"

#include <bit>
#include <cstring>
#include <utility>

namespace dapx::dat {

core::Access access_of(DAT_MEM_PRIV_FLAGS privileges) noexcept
{
    core::Access access = core::Access::local_read;
    if ((privileges & (DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)) != 0)
        access |= core::Access::local_write;
    if ((privileges & DAT_MEM_PRIV_REMOTE_WRITE_FLAG) != 0)
        access |= core::Access::remote_write;
    if ((privileges & DAT_MEM_PRIV_REMOTE_READ_FLAG) != 0)
        access |= core::Access::remote_read;
    return access;
}

bool Segments::assign(DAT_COUNT count, const DAT_LMR_TRIPLET* triplets) noexcept
{
    if (count < 0 || (count > 0 && triplets == nullptr))
        return false;
    for (const DAT_LMR_TRIPLET& triplet : std::span(triplets, static_cast<std::size_t>(count))) {
        if (triplet.segment_length == 0)
            continue;
        if (count_ == max || !std::in_range<std::uint32_t>(triplet.segment_length))
            return false;
        segments_[count_++] = {.mr = triplet.lmr_context,
                               .length = static_cast<std::uint32_t>(triplet.segment_length),
                               .addr = triplet.virtual_address};
        bytes_ += triplet.segment_length;
    }
    return true;
}

Lmr::Lmr(Slot& slot, Ia& ia, Pz& pz, const Description& description,
         core::MemoryRegion region) noexcept
    : Object(slot, ia), pz_(&pz), description_(description), region_(std::move(region)),
      number_(region_.handle())
{
    if (description_.type == DAT_MEM_TYPE_SHARED_VIRTUAL) {
        DAT_LMR_COOKIE& cookie = description_.region.for_shared_memory.shared_memory_id;
        std::memcpy(cookie_.data(), *cookie, cookie_.size());
        cookie = reinterpret_cast<DAT_LMR_COOKIE>(cookie_.data());
    }
}

void Lmr::query(DAT_LMR_PARAM& param) noexcept
{
    param.ia_handle = ia().consumer_handle();
    param.mem_type = description_.type;
    param.region_desc = description_.region;
    param.length = region_.length();
    param.pz_handle = pz_.handle();
    param.mem_priv = description_.privileges;
    complete(param);
    param.lmr_context = lmr_context();
    param.rmr_context = rmr_context();
    param.registered_size = region_.length();
    param.registered_address = region_.addr();
}

DAT_RETURN Lmr::release() noexcept
{
    return freed(region_.free());
}

namespace {

/// Where the memory is. @p length: bytes.
std::expected<const void*, DAT_RETURN> address_of(DAT_MEM_TYPE type,
                                                  const DAT_REGION_DESCRIPTION& region,
                                                  DAT_VLEN length, const Ia& ia) noexcept
{
    switch (type) {
    case DAT_MEM_TYPE_VIRTUAL:
        return region.for_va;
    case DAT_MEM_TYPE_SHARED_VIRTUAL:
        if (region.for_shared_memory.shared_memory_id == nullptr)
            return std::unexpected(error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
        return region.for_shared_memory.virtual_address;
    case DAT_MEM_TYPE_LMR: {
        const Ref<Lmr> other(region.for_lmr_handle);
        if (!other || &other->ia() != &ia)
            return std::unexpected(error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR));
        if (length > other->region().length())
            return std::unexpected(error(DAT_LENGTH_ERROR));
        return std::bit_cast<const void*>(other->region().addr());
    }
    }
    return std::unexpected(error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
}

} // namespace

DAT_RETURN provider_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE type,
                               DAT_REGION_DESCRIPTION region, DAT_VLEN length,
                               DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
                               DAT_VA_TYPE va_type, DAT_LMR_HANDLE* handle,
                               DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context,
                               DAT_VLEN* registered_size, DAT_VADDR* registered_address) noexcept
{
    const Ref<Ia> ia(ia_handle);
    if (!ia)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    const Ref<Pz> pz(pz_handle);
    if (!pz || &pz->ia() != ia.get())
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
    if (length == 0)
        return error(DAT_LENGTH_ERROR);
    if ((privileges & ~DAT_MEM_PRIV_ALL_FLAG) != 0)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
    if (va_type != DAT_VA_TYPE_VA)
        return error(DAT_MODEL_NOT_SUPPORTED);
    if (handle == nullptr)
        return error(DAT_INVALID_PARAMETER, argument::lmr_create_handle);
    const auto address = address_of(type, region, length, *ia);
    if (!address)
        return address.error();
    auto made = core::MemoryRegion::create(pz->domain(), *address, length, access_of(privileges));
    if (!made)
        return error_of(made.error(), DAT_RESOURCE_MEMORY_REGION);
    auto lmr = make<Lmr>(*ia, *pz,
                         Lmr::Description{.type = type, .region = region, .privileges = privileges},
                         std::move(*made));
    if (lmr == nullptr)
        return no_memory();
    if (lmr_context != nullptr)
        *lmr_context = lmr->lmr_context();
    if (rmr_context != nullptr)
        *rmr_context = lmr->rmr_context();
    if (registered_size != nullptr)
        *registered_size = lmr->region().length();
    if (registered_address != nullptr)
        *registered_address = lmr->region().addr();
    return hand_out(std::move(lmr), *handle);
}

DAT_RETURN provider_lmr_query(DAT_LMR_HANDLE handle, DAT_LMR_PARAM_MASK mask,
                              DAT_LMR_PARAM* param) noexcept
{
    const Ref<Lmr> lmr(handle);
    if (!lmr)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
    if (const DAT_RETURN bad = check_query(mask, DAT_LMR_FIELD_ALL, param))
        return bad;
    lmr->query(*param);
    return DAT_SUCCESS;
}

DAT_RETURN provider_lmr_free(DAT_LMR_HANDLE handle) noexcept
{
    return free_handle<Lmr>(handle, DAT_INVALID_HANDLE_LMR, DAT_INVALID_STATE_LMR_IN_USE);
}

namespace {

/// Devices that need it do not exist among those of the module: memory is coherent with them.
DAT_RETURN sync(DAT_IA_HANDLE handle, const DAT_LMR_TRIPLET* triplets, DAT_VLEN count) noexcept
{
    const Ref<Ia> ia(handle);
    if (!ia)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    if (triplets == nullptr && count != 0)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return DAT_SUCCESS;
}

} // namespace

DAT_RETURN provider_lmr_sync_rdma_read(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET* triplets,
                                       DAT_VLEN count) noexcept
{
    return sync(ia, triplets, count);
}

DAT_RETURN provider_lmr_sync_rdma_write(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET* triplets,
                                        DAT_VLEN count) noexcept
{
    return sync(ia, triplets, count);
}

} // namespace dapx::dat
