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

/// How a connection is accepted. Source: struct dapx_ep_accept.
struct AcceptOptions {
    std::uint8_t rnr_retry_count = 7; ///< receiver not ready, 0 to 7; 7 for without end
    /// The program has taken the queue pair through its states. Not on iWARP.
    /// Source: DAPX_CONNECT_STEPS.
    bool by_steps = false;
    /// For the peer; read during the call. At most DeviceAttributes::max_accept_data bytes, 196.
    std::span<const std::byte> private_data = {};
};

/// One end of a reliable connection: requests, and receives of its own or of an SRQ. EndpointBase
/// and Poster, from which it has most of its functions, say more.
///
/// Each posted receive ends in exactly one completion on the receive EVD.
///
/// Thread safety: one thread at a time on the receive ring (post_recv(), submit_recv()), beside
/// that on the request ring and beside everything else; otherwise as EndpointBase.
class DAPX_EXPORT Endpoint : public EndpointBase, public Poster<Endpoint> {
public:
    /// @param srq where receives come from; nullptr for a ring of its own.
    /// Errors: EINVAL (also objects of two contexts), EOPNOTSUPP, EDQUOT, ENOMEM, EIO.
    /// Thread safety: any thread. Source: DAPX_EP_CREATE.
    [[nodiscard]] static Result<Endpoint> create(const Pd& pd, const EndpointBase::Evds& evds,
                                                 const EndpointOptions& options,
                                                 const Srq* srq = nullptr) noexcept;

    /// The same with one EVD for all events.
    [[nodiscard]] static Result<Endpoint> create(const Pd& pd, const Evd& evd,
                                                 const EndpointOptions& options = {}) noexcept
    {
        return create(pd, Evds{.request = evd, .recv = &evd, .connect = evd}, options);
    }

    /// Takes over an endpoint that a tentative listener made: Event::request_endpoint().
    /// Errors: ENOENT. Source: DAPX_EP_QUERY.
    [[nodiscard]] static Result<Endpoint> adopt(const Context& context,
                                                std::uint32_t handle) noexcept;

    /// Gives it other sizes, and with @p srq receives from there, before it is connected and while
    /// nothing is posted. EndpointOptions::user_data stays as it is. The queue pair has another
    /// number.
    /// Errors: EBADFD (state, or something was posted), EINVAL (also receives without an EVD for
    /// them), EDQUOT, ENOMEM, EIO; nothing changed then, unless send_depth() is 0: the new rings were
    /// made and could not be mapped, and nothing can be posted until another resize() succeeds.
    /// Thread safety: no other function meanwhile. Source: DAPX_EP_RESIZE.
    [[nodiscard]] Result<void> resize(const EndpointOptions& options,
                                      const Srq* srq = nullptr) noexcept;

    /// Posts a receive: the next message goes into the segments, at most max_recv_sge. Allowed in
    /// any state. PostResult::bad_request on an endpoint without a receive ring.
    /// Source: struct dapx_recv_wr.
    PostResult post_recv(std::uint64_t wr_id, std::span<const Segment> segments,
                         Doorbell when = Doorbell::now, RecvFlags flags = RecvFlags::none) noexcept
    {
        return recv_queue_.post(wr_id, segments, when, flags);
    }

    /// The same for one segment.
    PostResult post_recv(std::uint64_t wr_id, const Segment& segment, Doorbell when = Doorbell::now,
                         RecvFlags flags = RecvFlags::none) noexcept
    {
        return recv_queue_.post(wr_id, std::span(&segment, 1), when, flags);
    }

    /// Shows the module receives that were posted with Doorbell::later.
    PostResult submit_recv() noexcept { return recv_queue_.submit(); }

    /// Receives that the ring holds; 0 if it has none.
    [[nodiscard]] std::uint32_t recv_depth() const noexcept { return recv_queue_.ring().depth(); }

    /// Receives posted, and doorbell commands issued for them, since the endpoint was made.
    [[nodiscard]] std::uint64_t recvs_posted() const noexcept
    {
        return recv_queue_.ring().posted();
    }
    [[nodiscard]] std::uint64_t recv_doorbells() const noexcept
    {
        return recv_queue_.ring().doorbells();
    }

    /// Accepts a connection request; ends with a connection event. On success @p request is empty.
    /// Errors: EBADFD (state), EINVAL, ENOENT, EPROTO (a request of an XRC endpoint, which is for
    /// XrcQp::accept()). Source: DAPX_EP_ACCEPT.
    [[nodiscard]] Result<void> accept(CmId&& request, const AcceptOptions& options = {}) noexcept;

    Endpoint(Endpoint&&) noexcept = default;
    Endpoint& operator=(Endpoint&&) noexcept = default;
    ~Endpoint() = default;

private:
    friend class Poster<Endpoint>;

    using EndpointBase::EndpointBase;
};

} // namespace dapx
