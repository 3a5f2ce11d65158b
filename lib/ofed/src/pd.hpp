// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "context.hpp"

#include <vector>

namespace dapx::verbs {

class Mr;

class Pd : public ibv_pd {
public:
    Pd(Context& owner, core::Pd core) noexcept : core_(std::move(core))
    {
        context = &owner.context;
        handle = core_.handle();
        owner.get();
    }

    [[nodiscard]] static Pd* of(ibv_pd* pd) noexcept { return static_cast<Pd*>(pd); }

    [[nodiscard]] Context& owner() const noexcept { return Context::of(context); }
    [[nodiscard]] core::Pd& core() noexcept { return core_; }

    /// Memory comes: from now on it is for XRC as soon as something else of the PD is. 0 or an errno.
    [[nodiscard]] int add(Mr& mr) noexcept;
    void remove(Mr& mr) noexcept;

    /// The first thing of XRC comes: a program does not say for what it registers memory, and memory
    /// for XRC is pinned twice. 0, or an errno: then some of it may be already.
    [[nodiscard]] int enable_xrc() noexcept;

private:
    core::Pd core_;
    std::mutex lock_;
    bool xrc_ = false;
    std::vector<Mr*> mrs_;
};

} // namespace dapx::verbs
