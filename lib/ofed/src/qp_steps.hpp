// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Which changes of state there are, and what each needs: as ib_core's table, which libibverbs' programs are
// used to.
#pragma once

#include "verbs_abi.hpp"

#include <dapx/cm_id.hpp>
#include <dapx/dapx.h>

namespace dapx::verbs {

/// 0: allowed, with these attributes; else an errno.
[[nodiscard]] int check_step(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to,
                             int attr_mask) noexcept;

/// Whether @p attr names another value than @p now for what no step from @p from on can change.
[[nodiscard]] bool changes_what_is_fixed(ibv_qp_type type, ibv_qp_state from,
                                         const ibv_qp_attr& attr, int attr_mask,
                                         const ibv_qp_attr& now) noexcept;

/// What a peer is refused by a queue pair that has these rights (IBV_ACCESS_*), and the other way.
[[nodiscard]] std::uint8_t refused_by(unsigned rights) noexcept;
[[nodiscard]] unsigned rights_without(std::uint8_t refused) noexcept;

/// The step as the module wants it; @p to is INIT, RTR or RTS.
[[nodiscard]] ::dapx_qp_attr step_of(ibv_qp_state to, const ibv_qp_attr& attr) noexcept;

/// What the CM knows of the step to @p attr.qp_state, as rdma_init_qp_attr(). 0, or EINVAL: nothing.
[[nodiscard]] int fill_step(const CmSteps& steps, ibv_qp_attr& attr, int& mask) noexcept;

} // namespace dapx::verbs
