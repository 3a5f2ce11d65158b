// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "device.hpp"
#include "eventfd.hpp"
#include "late.hpp"
#include "verbs_abi.hpp"

#include <dapx/dapx.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace dapx::verbs {

namespace core = dapx;

/// An open device, of the layout that <infiniband/verbs.h> gives away: inline functions there call
/// through it.
///
/// Objects keep it; so it ends when it is closed and the last of them is gone. Its memory is never
/// given back, but used for the next one: whoever still has a pointer to it finds it closed.
class Context : public verbs_context {
public:
    /// nullptr and errno: of dapx, or of libibverbs for the device behind.
    [[nodiscard]] static Context* open(const Device& device) noexcept;

    /// @p context as one of these, open or closed. nullptr: it is none, and libibverbs' or nobody's.
    [[nodiscard]] static Context* find(ibv_context* context) noexcept;

    /// The same for a context that is known to be one, as that of an object of this library.
    [[nodiscard]] static Context& of(ibv_context* context) noexcept
    {
        return *static_cast<Context*>(verbs_get_ctx(context));
    }

    void close() noexcept;
    [[nodiscard]] bool is_open() const noexcept { return open_.load(std::memory_order_relaxed); }

    /// An object comes, and goes.
    void get() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    void put() noexcept;

    [[nodiscard]] const Device& device() const noexcept { return *device_; }
    /// libibverbs' context on the device behind.
    [[nodiscard]] ibv_context* behind() const noexcept { return behind_; }
    [[nodiscard]] const core::Context& core() const noexcept { return *core_; }
    [[nodiscard]] const core::DeviceAttributes& attributes() const noexcept { return attributes_; }
    /// Where asynchronous events of its objects go.
    [[nodiscard]] const core::Evd& async_evd() const noexcept { return *async_; }

    /// What the device behind says, with the limits of dapx. 0 or an errno.
    [[nodiscard]] int query(ibv_device_attr& attr) const noexcept;

    /// The next asynchronous event; waits for it unless async_fd is O_NONBLOCK. 0, or -1 and errno.
    [[nodiscard]] int next_event(ibv_async_event& event) noexcept;

    /// The module sends no more events about object @p handle: those that wait are dropped.
    void drop_events(std::uint32_t handle) noexcept;

private:
    Context() noexcept = default;
    /// 0 or an errno.
    [[nodiscard]] int init(const Device& device) noexcept;
    void exit() noexcept;
    [[nodiscard]] bool take_event(ibv_async_event& event, std::uint64_t signals) noexcept;

    const Device* device_ = nullptr;
    ibv_context* behind_ = nullptr;
    Late<core::Context> core_;
    core::DeviceAttributes attributes_;
    std::mutex async_lock_; ///< who reads async_
    Late<core::Evd> async_;
    Readiness async_readiness_;
    std::atomic<unsigned> references_ = 0;
    std::atomic<bool> open_ = false;
    Context* next_free_ = nullptr;
};

} // namespace dapx::verbs
