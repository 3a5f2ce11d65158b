// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "ia.hpp"

#include <expected>
#include <memory>

namespace dapx::dat {

/// A file descriptor that is closed in the end.
class Descriptor {
public:
    explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept
    {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor();

    [[nodiscard]] int get() const noexcept { return fd_; }

private:
    int fd_;
};

/// What a CNO waits on: an epoll, edge-triggered, of an eventfd for each of its EVDs.
class CnoWaitSet {
public:
    [[nodiscard]] static std::expected<std::shared_ptr<CnoWaitSet>, DAT_RETURN> create() noexcept;

    CnoWaitSet(Descriptor epoll, Descriptor wake) noexcept
        : epoll_(std::move(epoll)), wake_(std::move(wake))
    {
    }

    [[nodiscard]] int epoll() const noexcept { return epoll_.get(); }

    /// Waits for an EVD that has been triggered, and takes its trigger. DAT_HANDLE_NULL: woken by
    /// poke() or stop(). Errors: DAT_QUEUE_EMPTY, DAT_INTERRUPTED_CALL.
    [[nodiscard]] DAT_RETURN wait(core::Deadline deadline, DAT_EVD_HANDLE& evd) noexcept;

    /// Ends one wait.
    void poke() const noexcept;
    /// Ends all waits, now and from now on.
    void stop() noexcept;
    [[nodiscard]] bool stopped() const noexcept { return stopped_; }

private:
    Descriptor epoll_;
    Descriptor wake_;
    std::atomic<bool> stopped_{false};
};

/// A consumer notification object: what its EVDs are told, it tells a waiter, an agent or a
/// descriptor.
class Cno : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_CNO;

    Cno(Slot& slot, Ia& ia, std::shared_ptr<CnoWaitSet> set) noexcept;
    ~Cno() override;

    [[nodiscard]] const std::shared_ptr<CnoWaitSet>& set() const noexcept { return set_; }
    [[nodiscard]] bool waited_on() const noexcept { return waiters_ != 0; }

    /// @p evd DAT_HANDLE_NULL with success: no EVD is left, or the CNO is about to be freed.
    [[nodiscard]] DAT_RETURN wait(DAT_TIMEOUT timeout, DAT_EVD_HANDLE& evd) noexcept;
    [[nodiscard]] DAT_RETURN set_agent(DAT_OS_WAIT_PROXY_AGENT agent) noexcept;
    void query(DAT_CNO_PARAM& param) const noexcept;

    /// Whether it was made to have a descriptor.
    bool is_descriptor = false;

private:
    class Agent;

    void interrupt() noexcept override { set_->stop(); }

    std::shared_ptr<CnoWaitSet> set_;
    std::atomic<int> waiters_{0};
    mutable std::mutex agent_mutex_;
    std::unique_ptr<Agent> agent_;
};

/// An EVD's place in a CNO.
class CnoInput {
public:
    [[nodiscard]] static std::expected<CnoInput, DAT_RETURN> create(Cno& cno,
                                                                    DAT_EVD_HANDLE evd) noexcept;
    CnoInput(CnoInput&&) = default;
    CnoInput& operator=(CnoInput&&) = default;
    ~CnoInput() = default;

    /// For core::Evd::set_eventfd(). Closed, it leaves the CNO.
    [[nodiscard]] int eventfd() const noexcept { return eventfd_.get(); }
    /// For events that were there before.
    void trigger() const noexcept;

private:
    explicit CnoInput(Descriptor eventfd) noexcept : eventfd_(std::move(eventfd)) {}

    Descriptor eventfd_;
};

} // namespace dapx::dat
