// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "context.hpp"

#include <mutex>
#include <vector>

namespace dapx::verbs {

/// An RDMA device as ids of the CM use it: opened once for all of them, with a protection domain and
/// an XRC domain for those that name none. It stays open, as librdmacm's do.
class RdmaDevice {
public:
    /// All that dapx can use now.
    [[nodiscard]] static std::vector<RdmaDevice*> all() noexcept;

    /// Whether there is one.
    [[nodiscard]] static bool any() noexcept;

    /// The one with this address, whatever its port. nullptr: dapx has none.
    [[nodiscard]] static RdmaDevice* with(const core::Address& address) noexcept;

    /// The one from which the routing table leads to @p destination, and the own address then.
    /// 0 or an errno.
    [[nodiscard]] static int route_to(const core::Address& destination, RdmaDevice*& device,
                                      core::Address& source) noexcept;

    [[nodiscard]] Context& context() const noexcept { return *context_; }
    [[nodiscard]] ibv_context* verbs() const noexcept { return &context_->context; }
    /// As they were at some time of the last second.
    [[nodiscard]] std::vector<core::Address> addresses() noexcept;

    /// For ids that are given none; nullptr and errno.
    [[nodiscard]] ibv_pd* pd() noexcept;
    [[nodiscard]] ibv_xrcd* xrcd() noexcept;

    explicit RdmaDevice(Context& context) noexcept : context_(&context) {}

private:
    static void find_new() noexcept;
    [[nodiscard]] std::vector<core::Address> find_addresses() const noexcept;
    [[nodiscard]] bool is_there() const noexcept;

    Context* context_;
    std::mutex lock_;
    std::vector<core::Address> addresses_;
    core::Clock::time_point looked_at_{};
    ibv_pd* pd_ = nullptr;
    ibv_xrcd* xrcd_ = nullptr;
};

} // namespace dapx::verbs
