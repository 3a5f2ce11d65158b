// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "cr.hpp"
#include "ep.hpp"

#include <deque>

namespace dapx::dat {

/// What connection requests come to: a listener, and the EVD that tells of them.
class ServicePoint : public Object {
public:
    /// The library's handle, by which events name it.
    [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
    [[nodiscard]] DAT_CONN_QUAL qualifier() const noexcept { return qualifier_; }
    [[nodiscard]] Evd& evd() const noexcept { return *evd_; }

    /// Begins to listen on the IA's address. @p qualifier: 0 for any free one.
    [[nodiscard]] DAT_RETURN listen(DAT_CONN_QUAL qualifier) noexcept;

    /// Takes over the request that an event tells of; nullptr if its peer has given up.
    [[nodiscard]] std::unique_ptr<Cr> arrived(const core::Event& event) noexcept;

protected:
    /// Does no more listen; its EVD is free.
    void leave() noexcept;

    ServicePoint(Slot& slot, Ia& ia, Evd& evd) noexcept : Object(slot, ia), evd_(&evd) {}

    [[nodiscard]] DAT_RETURN release() noexcept override;

    std::shared_ptr<Listener> listener_;

private:
    /// Says which endpoints requests are for.
    [[nodiscard]] virtual core::Result<void> take_requests() noexcept = 0;
    /// The endpoint of a request; nullptr if it is the consumer's to choose.
    [[nodiscard]] virtual std::unique_ptr<Ep> adopt(const core::Event& event) noexcept = 0;
    [[nodiscard]] virtual Ep* reserved() noexcept { return nullptr; }

    Needed<Evd> evd_;
    std::uint32_t number_ = 0;
    DAT_CONN_QUAL qualifier_ = 0;
};

/// A public service point: any number of requests.
class Psp : public ServicePoint {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_PSP;

    Psp(Slot& slot, Ia& ia, Evd& evd, DAT_PSP_FLAGS flags)
        : ServicePoint(slot, ia, evd), flags_(flags)
    {
    }

    [[nodiscard]] DAT_PSP_FLAGS flags() const noexcept { return flags_; }

    /// Takes a request that came to another service point; its EVD will tell. On an error @p request is
    /// as before.
    [[nodiscard]] DAT_RETURN hand_over(TakenRequest& request) noexcept;
    /// One of those.
    [[nodiscard]] std::unique_ptr<Cr> handed_over() noexcept;

private:
    [[nodiscard]] core::Result<void> take_requests() noexcept override;
    [[nodiscard]] std::unique_ptr<Ep> adopt(const core::Event& event) noexcept override;

    DAT_PSP_FLAGS flags_;
    std::mutex mutex_;
    std::deque<TakenRequest> handed_over_;
};

/// A reserved service point: one request, for one endpoint.
///
/// When the request has come, it is gone, but for dat_rsp_free: some programs call that, others do
/// not.
class Rsp : public ServicePoint {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_RSP;

    Rsp(Slot& slot, Ia& ia, Evd& evd, Ep& ep) noexcept : ServicePoint(slot, ia, evd), ep_(&ep) {}

    [[nodiscard]] bool counts() const noexcept override { return !spent_; }
    /// Listens anew, for a request that comes to more.
    void renew() noexcept;
    /// Its request has come.
    void spend() noexcept;
    [[nodiscard]] DAT_RETURN query(DAT_RSP_PARAM& param) noexcept;

private:
    [[nodiscard]] core::Result<void> take_requests() noexcept override;
    [[nodiscard]] std::unique_ptr<Ep> adopt(const core::Event&) noexcept override
    {
        return nullptr;
    }
    [[nodiscard]] Ep* reserved() noexcept override { return ep_.get(); }

    std::mutex mutex_;
    std::atomic<bool> spent_{false};
    Needed<Ep> ep_;
};

} // namespace dapx::dat
