// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "pd.hpp"

namespace dapx::verbs {

class Mr : public ibv_mr {
public:
    Mr(Pd& domain, void* start, std::size_t bytes, core::MemoryRegion core) noexcept
        : core_(std::move(core))
    {
        context = domain.context;
        pd = &domain;
        addr = start;
        length = bytes;
        handle = core_.handle();
        lkey = core_.handle();
        rkey = core_.rkey();
        owner().get();
    }

    [[nodiscard]] static Mr* of(ibv_mr* mr) noexcept { return static_cast<Mr*>(mr); }
    [[nodiscard]] Context& owner() const noexcept { return Context::of(context); }
    [[nodiscard]] core::MemoryRegion& core() noexcept { return core_; }

private:
    core::MemoryRegion core_;
};

} // namespace dapx::verbs
