// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "ia.hpp"

namespace dapx::dat {

/// A protection zone.
class Pz : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_PZ;

    Pz(Slot& slot, Ia& ia, core::Pd domain) noexcept : Object(slot, ia), domain_(std::move(domain))
    {
    }

    [[nodiscard]] const core::Pd& domain() const noexcept { return domain_; }

private:
    [[nodiscard]] DAT_RETURN release() noexcept override;

    core::Pd domain_;
};

} // namespace dapx::dat
