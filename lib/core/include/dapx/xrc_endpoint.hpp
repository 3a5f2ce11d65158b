// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/endpoint_base.hpp>
#include <dapx/endpoint_options.hpp>
#include <dapx/post.hpp>
#include <dapx/poster.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace dapx {

class SrqTarget;

/// The sending side of XRC: its requests go to shared receive queues of the domain of the receive
/// queue pair that it is connected with (XrcQp). Each names one: to(). Segments name memory that
/// was registered with RegionFlags::xrc. It has no receives, and accepts no connection: XrcQp does.
/// EndpointBase, from which it has most of its functions, says more.
class DAPX_EXPORT XrcEndpoint : public EndpointBase {
public:
    /// @param evds, options what is about receives is ignored.
    /// @param domain one that it keeps from being closed; nullptr for none. It needs none.
    /// Errors: as Endpoint::create(). Thread safety: any thread.
    /// Source: DAPX_EP_CREATE with DAPX_EP_XRC.
    [[nodiscard]] static Result<XrcEndpoint> create(const Pd& pd, const EndpointBase::Evds& evds,
                                                    const EndpointOptions& options,
                                                    const XrcDomain* domain = nullptr) noexcept;

    /// The same with one EVD for all events.
    [[nodiscard]] static Result<XrcEndpoint> create(const Pd& pd, const Evd& evd,
                                                    const EndpointOptions& options = {},
                                                    const XrcDomain* domain = nullptr) noexcept
    {
        return create(pd, Evds{.request = evd, .connect = evd}, options, domain);
    }

    /// Posts to the peer's queue of this number, as in endpoint.to(number).post_send(...). A plain
    /// value; posts as this endpoint does, while that lives and is not moved.
    /// @param srq_number as the peer's Srq::number(), sent by whatever way; 24 bits.
    [[nodiscard]] SrqTarget to(std::uint32_t srq_number) noexcept;

    XrcEndpoint(XrcEndpoint&&) noexcept = default;
    XrcEndpoint& operator=(XrcEndpoint&&) noexcept = default;
    ~XrcEndpoint() = default;

private:
    friend class SrqTarget;

    using EndpointBase::EndpointBase;
};

/// An XrcEndpoint and a queue of its peer: what XrcEndpoint::to() gives. Thread safety: that of
/// posting to the endpoint.
class SrqTarget : public Poster<SrqTarget> {
public:
    SrqTarget(XrcEndpoint& endpoint, std::uint32_t srq_number) noexcept
        : endpoint_(&endpoint), srq_number_(srq_number)
    {
    }

private:
    friend class Poster<SrqTarget>;

    PostResult post(detail::Request request, std::span<const Segment> segments, SendFlags flags,
                    Doorbell when) noexcept
    {
        request.remote_srqn = srq_number_;
        return endpoint_->post(request, segments, flags, when);
    }

    PostResult post_inline(detail::Request request, std::span<const std::byte> data,
                           SendFlags flags, Doorbell when) noexcept
    {
        request.remote_srqn = srq_number_;
        return endpoint_->post_inline(request, data, flags, when);
    }

    XrcEndpoint* endpoint_;
    std::uint32_t srq_number_;
};

inline SrqTarget XrcEndpoint::to(std::uint32_t srq_number) noexcept
{
    return SrqTarget(*this, srq_number);
}

} // namespace dapx
