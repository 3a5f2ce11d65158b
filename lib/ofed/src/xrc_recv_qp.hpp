// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "qp.hpp"

namespace dapx::verbs {

/// The receiving side of XRC: a registration with a queue pair that processes share.
class XrcRecvQp final : public Qp {
public:
    XrcRecvQp(Xrcd& domain, void* consumer, RdmaId* cm) noexcept;
    ~XrcRecvQp() override { leave_cm(); }

    /// Makes a queue pair. 0 or an errno.
    [[nodiscard]] int create() noexcept;
    /// Registers with the one of this number. 0 or an errno.
    [[nodiscard]] int open(std::uint32_t qp_num) noexcept;

    [[nodiscard]] ibv_qp_state current_state() const noexcept override;
    void query(ibv_qp_attr& attr, ibv_qp_init_attr& init) noexcept override;
    [[nodiscard]] int end() noexcept override;

    [[nodiscard]] int connect(const core::CmId& id, const core::ConnectOptions& options,
                              RdAtomic rd_atomic) noexcept override;
    [[nodiscard]] int accept(core::CmId&& request, const core::AcceptOptions& options,
                             RdAtomic rd_atomic) noexcept override;
    [[nodiscard]] int disconnect() noexcept override;
    void describe_connection(RdmaEvent& event) const noexcept override;

private:
    [[nodiscard]] int take(core::Result<core::XrcQp> made) noexcept;
    [[nodiscard]] int step(const ::dapx_qp_attr& step) noexcept override;
    [[nodiscard]] int reset() noexcept override;
    [[nodiscard]] int to_error() noexcept override;

    Xrcd& domain_;
    Late<core::XrcQp> core_;
};

/// @p state in verbs' terms.
[[nodiscard]] ibv_qp_state verbs_state(core::QpState state) noexcept;

/// What others' steps and its own have set, for ibv_query_qp().
void fill_in(ibv_qp_attr& attr, const core::XrcQpInfo& info) noexcept;

} // namespace dapx::verbs
