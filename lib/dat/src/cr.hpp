// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "ep.hpp"

#include <mutex>

namespace dapx::dat {

/// What connection requests come to. It lasts as long as a request that came to it, as the module
/// ends those with it.
struct Listener {
    explicit Listener(core::CmId listener) noexcept : id(std::move(listener)) {}

    core::CmId id;
};

/// A connection request that has been taken over.
struct TakenRequest {
    std::shared_ptr<Listener> listener;
    core::CmId id;
};

/// A connection request that waits for its answer.
class Cr : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_CR;

    /// @param ep reserved or made for it; nullptr for none.
    Cr(Slot& slot, Ia& ia, TakenRequest request, core::CmInfo info, Ep* ep) noexcept
        : Object(slot, ia), request_(std::move(request)), info_(std::move(info)), ep_(ep)
    {
    }

    [[nodiscard]] TakenRequest& request() noexcept { return request_; }
    [[nodiscard]] Ep* ep() const noexcept { return ep_.get(); }
    void query(DAT_CR_PARAM& param) noexcept;

    /// For the length of an answer: one thread at a time gives it. False: it has been given.
    class Answer {
    public:
        explicit Answer(Cr& cr) : lock_(cr.mutex_), cr_(cr) {}
        explicit operator bool() const noexcept { return !cr_.answered_; }
        /// Before destroy(), which waits for those who wait here.
        void given() noexcept
        {
            cr_.answered_ = true;
            lock_.unlock();
        }

    private:
        std::unique_lock<std::mutex> lock_;
        Cr& cr_;
    };

private:
    TakenRequest request_;
    core::CmInfo info_;
    Needed<Ep> ep_;
    std::mutex mutex_;
    bool answered_ = false; ///< mutex_
};

} // namespace dapx::dat
