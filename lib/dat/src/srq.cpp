// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "srq.hpp"

#include "evd.hpp"
#include "functions.hpp"
#include "limits.hpp"

namespace dapx::dat {

std::expected<std::unique_ptr<Srq>, DAT_RETURN> Srq::create(Pz& pz,
                                                            const DAT_SRQ_ATTR& attr) noexcept
{
    Ia& ia = pz.ia();
    Slot* slot = Slot::take(handle_type, ia.provider().table);
    if (slot == nullptr)
        return std::unexpected(no_memory());
    const Ref<Evd> events(ia.async_evd());
    auto queue =
        core::Srq::create(pz.domain(),
                          {.depth = static_cast<std::uint32_t>(attr.max_recv_dtos),
                           .max_sge = static_cast<std::uint32_t>(std::max(attr.max_recv_iov, 1)),
                           .user_data = slot->user_data()},
                          events ? &events->queue() : nullptr);
    if (!queue) {
        slot->give_back();
        return std::unexpected(error_of(queue.error(), DAT_RESOURCE_SRQ));
    }
    auto srq = make_at<Srq>(slot, ia, pz, std::move(*queue), attr);
    if (srq == nullptr)
        return std::unexpected(no_memory());
    return srq;
}

DAT_RETURN Srq::post(std::span<const core::Segment> segments, DAT_DTO_COOKIE cookie) noexcept
{
    const std::lock_guard lock(mutex_);
    return result_of(queue_.post_recv(cookie.as_64, segments));
}

DAT_RETURN Srq::resize(DAT_COUNT depth) noexcept
{
    const std::lock_guard lock(mutex_);
    const auto receives = static_cast<std::uint32_t>(depth);
    if (depth <= 0 || depth < attr_.low_watermark || receives > ia().device().max_srq_depth)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    // The ring may be larger than was asked for.
    if (receives > queue_.depth())
        if (const auto done = queue_.resize(receives); !done)
            return error_of(done.error(), DAT_RESOURCE_SRQ);
    attr_.max_recv_dtos = depth;
    return DAT_SUCCESS;
}

DAT_RETURN Srq::set_low_watermark(DAT_COUNT low) noexcept
{
    const std::lock_guard lock(mutex_);
    if (low < 0 || low > attr_.max_recv_dtos)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    const auto set = queue_.set_limit(static_cast<std::uint32_t>(low));
    if (!set)
        return set.error().code() == EBADFD ? error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_ASYNC)
                                            : error_of(set.error());
    attr_.low_watermark = low;
    return DAT_SUCCESS;
}

void Srq::query(DAT_SRQ_PARAM& param) noexcept
{
    const std::lock_guard lock(mutex_);
    param.ia_handle = ia().consumer_handle();
    param.srq_state = DAT_SRQ_STATE_OPERATIONAL;
    param.pz_handle = pz_.handle();
    param.max_recv_dtos = attr_.max_recv_dtos;
    param.max_recv_iov = attr_.max_recv_iov;
    param.low_watermark = attr_.low_watermark;
    // As the provider's attributes say (srq_info_supported).
    param.available_dto_count = DAT_VALUE_UNKNOWN;
    param.outstanding_dto_count = DAT_VALUE_UNKNOWN;
}

DAT_RETURN Srq::release() noexcept
{
    return freed(queue_.free());
}

DAT_RETURN provider_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR* attr,
                               DAT_SRQ_HANDLE* handle) noexcept
{
    const Ref<Ia> ia(ia_handle);
    if (!ia)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    const Ref<Pz> pz(pz_handle);
    if (!pz || &pz->ia() != ia.get())
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
    if (!core::has(ia->device().caps, core::DeviceCap::srq))
        return error(DAT_MODEL_NOT_SUPPORTED);
    if (attr == nullptr || attr->max_recv_dtos <= 0 ||
        static_cast<std::uint32_t>(attr->max_recv_dtos) > ia->device().max_srq_depth ||
        attr->max_recv_iov < 0 || attr->max_recv_iov > limits_of(*ia).segments ||
        attr->low_watermark < 0 || attr->low_watermark > attr->max_recv_dtos)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    if (handle == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    auto srq = Srq::create(*pz, *attr);
    if (!srq)
        return srq.error();
    if (attr->low_watermark != DAT_SRQ_LW_DEFAULT)
        if (const DAT_RETURN armed = (*srq)->set_low_watermark(attr->low_watermark))
            return armed;
    return hand_out(std::move(*srq), *handle);
}

DAT_RETURN provider_srq_query(DAT_SRQ_HANDLE handle, DAT_SRQ_PARAM_MASK mask,
                              DAT_SRQ_PARAM* param) noexcept
{
    const Ref<Srq> srq(handle);
    if (!srq)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
    if (const DAT_RETURN bad = check_query(mask, DAT_SRQ_FIELD_ALL, param))
        return bad;
    srq->query(*param);
    return DAT_SUCCESS;
}

DAT_RETURN provider_srq_resize(DAT_SRQ_HANDLE handle, DAT_COUNT depth) noexcept
{
    const Ref<Srq> srq(handle);
    if (!srq)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
    return srq->resize(depth);
}

DAT_RETURN provider_srq_set_lw(DAT_SRQ_HANDLE handle, DAT_COUNT low) noexcept
{
    const Ref<Srq> srq(handle);
    if (!srq)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
    return srq->set_low_watermark(low);
}

DAT_RETURN provider_srq_post_recv(DAT_SRQ_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET* triplets,
                                  DAT_DTO_COOKIE cookie) noexcept
{
    const Ref<Srq> srq(handle);
    if (!srq)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
    Segments segments;
    if (!segments.assign(count, triplets))
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    return srq->post(segments.span(), cookie);
}

DAT_RETURN provider_srq_free(DAT_SRQ_HANDLE handle) noexcept
{
    return free_handle<Srq>(handle, DAT_INVALID_HANDLE_SRQ, DAT_INVALID_STATE_SRQ_IN_USE);
}

} // namespace dapx::dat
