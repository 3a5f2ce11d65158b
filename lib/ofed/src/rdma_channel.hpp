// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "eventfd.hpp"
#include "rdma_abi.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

namespace dapx::verbs {

class RdmaId;

/// An event as rdma_get_cm_event() gives it away, until it is acknowledged.
class RdmaEvent : public rdma_cm_event {
public:
    /// @param counted where it is acknowledged: the id, or the listener of a request. nullptr: no
    /// memory.
    [[nodiscard]] static RdmaEvent* create(RdmaId& about, RdmaId& counted, rdma_cm_event_type type,
                                           int status) noexcept;

    /// nullptr: it is librdmacm's, or was acknowledged.
    [[nodiscard]] static RdmaEvent* find(rdma_cm_event* event) noexcept;

    RdmaEvent(RdmaId& about, RdmaId& counted, rdma_cm_event_type type, int status) noexcept;
    RdmaEvent(const RdmaEvent&) = delete;
    RdmaEvent& operator=(const RdmaEvent&) = delete;
    ~RdmaEvent();

    [[nodiscard]] RdmaId& counted() const noexcept { return *counted_; }

    /// Of a connection: what comes with it.
    void set_private_data(std::span<const std::byte> data) noexcept;

private:
    RdmaId* counted_;
    std::array<std::byte, UINT8_MAX> private_data_{};
};

/// An event channel. Each id has an event dispatcher of its own, which signals the channel's
/// descriptor; whoever takes an event, or an id with its events, leaves it readable exactly if there
/// are more. So an id can change its channel at any time, and takes its events along when it goes.
class EventChannel : public rdma_event_channel {
public:
    /// nullptr and errno.
    [[nodiscard]] static EventChannel* create() noexcept;

    /// nullptr: it is librdmacm's.
    [[nodiscard]] static EventChannel* find(rdma_event_channel* channel) noexcept;

    explicit EventChannel(int eventfd) noexcept : rdma_event_channel{eventfd}, readiness_(eventfd)
    {
    }
    EventChannel(const EventChannel&) = delete;
    EventChannel& operator=(const EventChannel&) = delete;
    ~EventChannel();

    /// The next event, waited for unless fd is O_NONBLOCK. nullptr and errno.
    [[nodiscard]] RdmaEvent* next() noexcept;

    /// False: no memory.
    [[nodiscard]] bool add(RdmaId& id) noexcept;
    /// With what was told of it. What it still signals is up to settle().
    void remove(RdmaId& id) noexcept;
    /// To another channel, with its events. False: no memory.
    [[nodiscard]] bool move(RdmaId& id, EventChannel& to) noexcept;

    /// An event that no module tells. False: no memory.
    [[nodiscard]] bool tell(RdmaId& id, rdma_cm_event_type type, int status) noexcept;

    /// Makes the descriptor readable exactly if there is an event.
    void settle() noexcept;

    /// Of what ids of this channel have.
    [[nodiscard]] std::mutex& lock() noexcept { return lock_; }

private:
    struct Told {
        RdmaId* id;
        rdma_cm_event_type type;
        int status;
    };

    // With the lock.
    [[nodiscard]] RdmaEvent* find_event() noexcept;
    void settle_locked() noexcept;

    [[nodiscard]] RdmaEvent* take(std::uint64_t signals) noexcept;

    std::mutex lock_;
    std::vector<RdmaId*> ids_;
    std::deque<Told> told_;
    Readiness readiness_;
};

} // namespace dapx::verbs
