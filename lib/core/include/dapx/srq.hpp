// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/detail/mapping.hpp>
#include <dapx/detail/receive_queue.hpp>
#include <dapx/object.hpp>
#include <dapx/post.hpp>

#include <cstdint>
#include <span>

namespace dapx {

class Evd;
class Pd;
class XrcDomain;

/// What Srq::query() tells; handles are 0 for none. Source: struct dapx_srq_query.
struct SrqInfo {
    std::uint32_t pd = 0;
    std::uint32_t xrc_domain = 0; ///< 0: a plain one
    std::uint32_t evd = 0;
    std::uint32_t async_evd = 0; ///< where its asynchronous events go
    std::uint32_t number = 0;    ///< as Srq::number()
    std::uint32_t depth = 0;     ///< receives that the ring holds
    std::uint32_t max_sge = 0;   ///< segments of a receive
    std::uint32_t limit = 0;     ///< 0: none, or its event has come
};

/// A shared receive queue: one ring of receives for many endpoints; or one of an XRC domain, whose
/// number peers name in each request. Move-only; see Object for its end.
///
/// Thread safety: one thread at a time may post; different queues are independent; the other
/// functions from any thread.
class DAPX_EXPORT Srq : public Object {
public:
    struct Options {
        std::uint32_t depth = 256;   ///< receives, rounded up to a power of two
        std::uint32_t max_sge = 1;   ///< segments of a receive, at least 1
        std::uint64_t user_data = 0; ///< comes with its asynchronous events; see create_xrc()
    };

    /// A plain one, for endpoints of the same PD.
    /// @param evd where its asynchronous events go (AsyncEvent::srq_limit, srq_error), used until
    ///            this object is freed; nullptr for nowhere.
    /// Errors: EOPNOTSUPP (the device has none), EINVAL, EDQUOT, ENOMEM, EIO.
    /// Thread safety: any thread. Source: DAPX_SRQ_CREATE.
    [[nodiscard]] static Result<Srq> create(const Pd& pd, const Options& options,
                                            const Evd* evd = nullptr) noexcept;

    /// One of an XRC domain: for the messages that come by any receive queue pair of the domain
    /// and name number(). Its receives, and what peers read and write by way of it, are memory of
    /// @p pd that was registered with RegionFlags::xrc. Domain, PD and EVD are used until it is
    /// freed.
    /// @param evd where its receives complete, with Event::is_xrc() and Options::user_data.
    /// @param async where its asynchronous events go; nullptr for @p evd, too.
    /// Errors: EINVAL, EDQUOT, ENOMEM, EIO. Thread safety: any thread. Source: DAPX_SRQ_CREATE.
    [[nodiscard]] static Result<Srq> create_xrc(const XrcDomain& domain, const Pd& pd,
                                                const Evd& evd, const Options& options,
                                                const Evd* async = nullptr) noexcept;

    /// Posts a receive of any endpoint of this queue. As Endpoint::post_recv().
    PostResult post_recv(std::uint64_t wr_id, std::span<const Segment> segments,
                         Doorbell when = Doorbell::now, RecvFlags flags = RecvFlags::none) noexcept
    {
        return queue_.post(wr_id, segments, when, flags);
    }

    /// The same for one segment.
    PostResult post_recv(std::uint64_t wr_id, const Segment& segment, Doorbell when = Doorbell::now,
                         RecvFlags flags = RecvFlags::none) noexcept
    {
        return queue_.post(wr_id, std::span(&segment, 1), when, flags);
    }

    /// Publishes receives that were posted with Doorbell::later. Thread safety: the poster.
    PostResult submit() noexcept { return queue_.submit(); }

    /// Asks for one event AsyncEvent::srq_limit: when a message has taken a receive and fewer than
    /// @p receives are left. @p receives: at most the depth; 0 for never.
    /// Errors: EBADFD (it has no EVD), EINVAL, EIO. Source: DAPX_SRQ_MODIFY.
    [[nodiscard]] Result<void> set_limit(std::uint32_t receives) noexcept;

    /// Replaces the ring by one of @p depth receives (rounded up); those that wait stay. What the
    /// device does not take is in the ring, so a plain queue may have more than it was made for.
    /// Errors: EBUSY (more than that wait, or set_limit() asked for more), EINVAL, ENOMEM; nothing
    /// changed then, unless depth() is 0: the new ring was made and could not be mapped, and nothing
    /// can be posted until another resize() succeeds.
    /// Thread safety: the poster. Source: DAPX_SRQ_RESIZE.
    [[nodiscard]] Result<void> resize(std::uint32_t depth) noexcept;

    /// Errors: ENOENT, EIO. Source: DAPX_SRQ_QUERY.
    [[nodiscard]] Result<SrqInfo> query() const noexcept;

    /// XRC: its number, 24 bits, by which peers name it (XrcEndpoint::to()); the device has no other
    /// of this number. 0 for a plain one.
    [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

    /// Receives the ring holds.
    [[nodiscard]] std::uint32_t depth() const noexcept { return queue_.ring().depth(); }

    /// Commands issued by posting since the queue was made.
    [[nodiscard]] std::uint64_t doorbells() const noexcept { return queue_.ring().doorbells(); }

    Srq(Srq&&) noexcept = default;
    Srq& operator=(Srq&&) noexcept = default;
    ~Srq() = default;

private:
    Srq(std::shared_ptr<const detail::Device> device, std::uint32_t handle) noexcept
        : Object(std::move(device), ObjectType::srq, handle)
    {
    }

    [[nodiscard]] static Result<Srq> create(const Pd& pd, const Options& options, const Evd* evd,
                                            const Evd* async, const XrcDomain* domain) noexcept;
    [[nodiscard]] Result<void> map(const ::dapx_ring_layout& layout,
                                   detail::Mapping&& place) noexcept;

    detail::Mapping mapping_;
    detail::ReceiveQueue queue_;
    std::uint32_t entries_off_ = 0;
    std::uint32_t stride_ = 0;
    std::uint32_t max_sge_ = 0;
    std::uint32_t number_ = 0;
};

} // namespace dapx
