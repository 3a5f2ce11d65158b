// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "lmr.hpp"

namespace dapx::dat {

class Ep;

/// A remote memory region.
class Rmr : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_RMR;

    Rmr(Slot& slot, Ia& ia, Pz& pz, core::Rmr window) noexcept
        : Object(slot, ia), pz_(&pz), window_(std::move(window))
    {
    }

    [[nodiscard]] const Pz* pz() const noexcept { return pz_.get(); }

    /// @param region nullptr to unbind.
    [[nodiscard]] DAT_RETURN bind(Ep& ep, const Lmr* region, const DAT_LMR_TRIPLET& triplet,
                                  DAT_MEM_PRIV_FLAGS privileges, DAT_RMR_COOKIE cookie,
                                  DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT& context) noexcept;
    [[nodiscard]] DAT_RETURN query(DAT_RMR_PARAM& param) const noexcept;

private:
    [[nodiscard]] DAT_RETURN release() noexcept override;

    Needed<Pz> pz_;
    core::Rmr window_;
};

} // namespace dapx::dat
