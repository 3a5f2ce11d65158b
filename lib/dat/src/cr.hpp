// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "ep.hpp"

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

private:
    TakenRequest request_;
    core::CmInfo info_;
    Needed<Ep> ep_;
};

} // namespace dapx::dat
