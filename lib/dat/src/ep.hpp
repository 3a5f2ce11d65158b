// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "evd.hpp"
#include "lmr.hpp"
#include "pz.hpp"
#include "request_log.hpp"
#include "rmr.hpp"
#include "srq.hpp"

namespace dapx::dat {

/// An endpoint.
class Ep : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_EP;

    /// What one is made of; nullptr for what it gets later, or never.
    struct Parts {
        Pz* pz;
        Evd* recv;
        Evd* request;
        Evd* connect;
        Srq* srq;
    };

    /// @param attr checked.
    [[nodiscard]] static std::expected<std::unique_ptr<Ep>, DAT_RETURN>
    create(Ia& ia, const Parts& parts, const DAT_EP_ATTR& attr) noexcept;

    /// One that the module made for a connection request.
    [[nodiscard]] static std::unique_ptr<Ep> adopt(Ia& ia, core::Endpoint endpoint) noexcept;

    /// The attributes of who gives none; @p srq: receives come from one.
    [[nodiscard]] static DAT_EP_ATTR default_attr(const Ia& ia) noexcept;
    /// What an endpoint that the module makes is like.
    [[nodiscard]] static core::EndpointOptions options_of(const DAT_EP_ATTR& attr) noexcept;
    [[nodiscard]] static bool check(const Ia& ia, const DAT_EP_ATTR& attr) noexcept;

    Ep(Slot& slot, Ia& ia, core::Endpoint endpoint, const Parts& parts, const DAT_EP_ATTR& attr);
    ~Ep() override;

    /// The library's handle, by which events name it.
    [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
    [[nodiscard]] core::Endpoint& endpoint() noexcept { return endpoint_; }
    [[nodiscard]] core::EpState state() const noexcept { return endpoint_.state(); }
    [[nodiscard]] const Pz* pz() const noexcept
    {
        const std::lock_guard lock(mutex_);
        return pz_.get();
    }
    /// A PZ, and EVDs for what may come: what a connection needs. DAT_SUCCESS, or what is missing.
    [[nodiscard]] DAT_RETURN configured() const noexcept;

    // --- Requests and receives ------------------------------------------------------------------

    /// Posts what @p post(wr_id, flags) does to the endpoint, and remembers what it was.
    template <class Post>
    [[nodiscard]] DAT_RETURN post_request(Request request, DAT_COMPLETION_FLAGS flags,
                                          Post post) noexcept;
    /// @param quiet its success notifies nobody.
    [[nodiscard]] DAT_RETURN post_recv(std::span<const core::Segment> segments,
                                       DAT_DTO_COOKIE cookie, bool quiet) noexcept;

    /// An event has come. Called by whose turn it is on the EVD.
    [[nodiscard]] Request request_ended(std::uint64_t number) noexcept
    {
        return log_.ended(number);
    }
    /// @return the peer's private data, which stays until the endpoint is freed or reset.
    [[nodiscard]] std::span<std::byte> connection_changed(core::Connection what) noexcept;

    // --- Connection -----------------------------------------------------------------------------

    [[nodiscard]] DAT_RETURN connect(const core::Address& destination, DAT_TIMEOUT timeout,
                                     std::span<const std::byte> private_data) noexcept;
    [[nodiscard]] DAT_RETURN disconnect(DAT_CLOSE_FLAGS flags) noexcept;
    [[nodiscard]] DAT_RETURN reset() noexcept;
    /// Whom it was last connected to by connect().
    [[nodiscard]] core::Address destination() const noexcept;

    [[nodiscard]] DAT_RETURN modify(DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM& param) noexcept;
    [[nodiscard]] DAT_RETURN query(DAT_EP_PARAM& param) noexcept;
    /// What is not nullptr is told.
    [[nodiscard]] DAT_RETURN status(DAT_EP_STATE* state, DAT_BOOLEAN* recv_idle,
                                    DAT_BOOLEAN* request_idle) noexcept;
    [[nodiscard]] bool has_srq() const noexcept { return has_srq_; }
    /// Its attributes: which flags requests and receives may be posted with.
    [[nodiscard]] DAT_COMPLETION_FLAGS request_flags() const noexcept { return request_flags_; }
    [[nodiscard]] DAT_COMPLETION_FLAGS recv_flags() const noexcept { return recv_flags_; }
    /// Counts the receives that were posted and have not ended; DAT_VALUE_UNKNOWN with an SRQ.
    [[nodiscard]] DAT_RETURN receives(DAT_COUNT& count) noexcept;

private:
    /// Takes EVDs and attributes into use, which go together: EVDs know how their streams notify.
    void use(Evd* recv, Evd* request, const DAT_EP_ATTR& attr) noexcept;
    static void merge(DAT_EP_ATTR& attr, DAT_EP_PARAM_MASK mask,
                      const DAT_EP_ATTR& wanted) noexcept;
    /// Whether the rings that there are will do.
    [[nodiscard]] bool fits(const DAT_EP_ATTR& attr) const noexcept;
    /// Makes rings for @p attr. @param srq nullptr: receives of its own.
    [[nodiscard]] DAT_RETURN resize(const DAT_EP_ATTR& attr, Srq* srq) noexcept;
    [[nodiscard]] DAT_RETURN release() noexcept override;

    core::Endpoint endpoint_;
    const std::uint32_t number_;
    // Changed with all three mutexes held, read with one.
    Needed<Pz> pz_;
    Needed<Evd> recv_;
    Needed<Evd> request_;
    Needed<Evd> connect_;
    Needed<Srq> srq_;
    std::atomic<bool> has_srq_; ///< of srq_; read without a mutex
    DAT_EP_ATTR made_;          ///< what the rings are made for
    DAT_EP_ATTR attr_{};
    std::atomic<DAT_COMPLETION_FLAGS> request_flags_{DAT_COMPLETION_DEFAULT_FLAG}; ///< of attr_
    std::atomic<DAT_COMPLETION_FLAGS> recv_flags_{DAT_COMPLETION_DEFAULT_FLAG};    ///< likewise

    std::mutex request_mutex_; ///< of posting requests
    RequestLog log_;
    std::mutex recv_mutex_; ///< of posting receives

    mutable std::mutex mutex_; ///< of what follows
    bool active_ = false;      ///< this side has connected, or tries to
    core::Address destination_;
    core::Address local_;
    core::Address remote_;
    std::vector<std::byte> private_data_;
};

/// The code for what the library says of @p ep.
[[nodiscard]] DAT_RETURN error_of(const Ep& ep, const core::Error& why) noexcept;

/// DAT_SUCCESS, or DAT_INVALID_STATE if @p ep is in none of these states.
[[nodiscard]] DAT_RETURN wrong_state(const Ep& ep,
                                     std::initializer_list<core::EpState> right) noexcept;

template <class Post>
DAT_RETURN Ep::post_request(Request request, DAT_COMPLETION_FLAGS flags, Post post) noexcept
{
    request.suppressed = (flags & DAT_COMPLETION_SUPPRESS_FLAG) != 0;
    const std::lock_guard lock(request_mutex_);
    if (!request_) [[unlikely]]
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_EVD_REQUEST);
    if (log_.full()) [[unlikely]] {
        // Of requests whose end nobody asks for, the events may lie there yet.
        request_->settle();
        if (log_.full())
            return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
    }
    core::SendFlags how = core::SendFlags::none;
    if (!request.suppressed)
        how |= core::SendFlags::signalled;
    else if (log_.wants_signal())
        // The consumer does not see this event, so it notifies nobody. But a thread that waits has
        // to take it.
        how |= !ia().module().quiet || request_->is_waited_on()
                   ? core::SendFlags::signalled
                   : core::SendFlags::signalled | core::SendFlags::quiet;
    if ((flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0)
        how |= core::SendFlags::quiet;
    if ((flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) != 0)
        how |= core::SendFlags::solicited;
    if ((flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) != 0)
        how |= core::SendFlags::fence;
    // Remembered first: its event may come before the call returns.
    const std::uint64_t number = log_.next();
    log_.put(request);
    const DAT_RETURN posted = post(number, how);
    if (posted == DAT_SUCCESS) [[likely]]
        log_.keep(core::has(how, core::SendFlags::signalled));
    return posted;
}

} // namespace dapx::dat
