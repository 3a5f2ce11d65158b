// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "verbs_abi.hpp"

#include <dapx/endpoint_base.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace dapx::verbs {

/// Requests of struct ibv_qp_ex, which are built one after the other by its functions, and posted
/// together or not at all.
class SendBuilder {
public:
    /// Forgets what was built. @p limits of the requests that follow.
    void start(const ibv_qp_cap& limits) noexcept;

    /// A new request begins; what follows belongs to it. It gets segments or inline data once.
    void begin(const ::dapx_send_wr& wr) noexcept;
    void set_imm(__be32 imm) noexcept;
    void set_srq_number(std::uint32_t number) noexcept;
    void set_segments(std::span<const ibv_sge> list) noexcept;
    void set_inline(std::span<const ibv_data_buf> list) noexcept;
    /// It cannot be posted.
    void fail(int error) noexcept;

    /// 0 or an errno.
    [[nodiscard]] int post(dapx::EndpointBase& endpoint) const noexcept;

private:
    [[nodiscard]] ::dapx_send_wr header(std::size_t at) const noexcept;
    template <class Change> void change(Change change) noexcept;
    void append(const void* bytes, std::size_t size) noexcept;
    [[nodiscard]] bool takes_data() noexcept;

    ibv_qp_cap limits_{};
    std::vector<std::byte> requests_; ///< each a dapx_send_wr and what follows it in a ring
    std::size_t current_ = 0;         ///< where the one begins that is being built
    std::uint32_t count_ = 0;
    int error_ = 0;
};

class EndpointQp;

/// Puts the functions into @p qp.
void set_send_ops(EndpointQp& qp) noexcept;

} // namespace dapx::verbs
