// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "context.hpp"

namespace dapx::verbs {

/// As OFED's programs know it; struct ibv_xrcd has the first member of it.
struct OfedDomain {
    ibv_context* context;
    std::uint32_t handle;
};

class Xrcd : public OfedDomain {
public:
    [[nodiscard]] static Xrcd* of(OfedDomain* domain) noexcept
    {
        return static_cast<Xrcd*>(domain);
    }
    [[nodiscard]] static Xrcd* of(ibv_xrcd* xrcd) noexcept
    {
        return of(reinterpret_cast<OfedDomain*>(xrcd));
    }
    [[nodiscard]] ibv_xrcd* xrcd() noexcept
    {
        return reinterpret_cast<ibv_xrcd*>(static_cast<OfedDomain*>(this));
    }

    /// nullptr and errno.
    [[nodiscard]] static Xrcd* open(Context& owner, int fd, int oflags) noexcept;

    Xrcd(Context& owner, core::XrcDomain core) noexcept : OfedDomain{}, core_(std::move(core))
    {
        context = &owner.context;
        handle = core_.handle();
        owner.get();
    }

    [[nodiscard]] Context& owner() const noexcept { return Context::of(context); }
    [[nodiscard]] core::XrcDomain& core() noexcept { return core_; }

private:
    core::XrcDomain core_;
};

} // namespace dapx::verbs
