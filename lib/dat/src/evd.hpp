// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "cno.hpp"
#include "ia.hpp"

#include <deque>
#include <expected>
#include <optional>

namespace dapx::dat {

/// An event dispatcher: an EVD of the library, whose events become DAT's as they are taken.
class Evd : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_EVD;

    enum class Async : bool { no, yes };

    /// @param cno nullptr for none.
    [[nodiscard]] static std::expected<std::unique_ptr<Evd>, DAT_RETURN>
    create(Ia& ia, DAT_COUNT depth, Cno* cno, DAT_EVD_FLAGS flags, Async async) noexcept;

    Evd(Slot& slot, Ia& ia, core::Evd queue, DAT_COUNT depth, DAT_EVD_FLAGS flags)
        : Object(slot, ia), queue_(std::move(queue)), depth_(depth), flags_(flags)
    {
    }
    ~Evd() override;

    [[nodiscard]] const core::Evd& queue() const noexcept { return queue_; }
    [[nodiscard]] core::Evd& queue() noexcept { return queue_; }

    /// Whether all streams of @p wanted may feed it.
    [[nodiscard]] bool takes(DAT_EVD_FLAGS wanted) const noexcept
    {
        return (flags_ & wanted) == wanted;
    }

    [[nodiscard]] DAT_RETURN wait(DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT& event,
                                  DAT_COUNT& more) noexcept;
    [[nodiscard]] DAT_RETURN dequeue(DAT_EVENT& event) noexcept;
    /// True if dequeue() would find nothing; false when in doubt. For a Glance.
    [[nodiscard]] bool quiet() const noexcept;
    [[nodiscard]] DAT_RETURN post(const DAT_EVENT& event) noexcept;
    [[nodiscard]] DAT_RETURN resize(DAT_COUNT depth) noexcept;
    [[nodiscard]] DAT_RETURN set_cno(Cno* cno) noexcept;
    void enable(bool enabled) noexcept;
    void set_waitable(bool waitable) noexcept;
    void query(DAT_EVD_PARAM& param) noexcept;

    /// Looks at what has come, so that requests whose end nobody wants to know of are ended. Not
    /// while somebody waits, who does it.
    void settle() noexcept;

    /// Endpoints whose receives wake waiters only if their sender asks for it.
    std::atomic<int> solicited_streams{0};
    /// Streams of endpoints some of whose completions wake nobody.
    std::atomic<int> quiet_streams{0};

    [[nodiscard]] bool is_waited_on() const noexcept
    {
        return turn_.load(std::memory_order_relaxed) == Turn::waiter;
    }

private:
    /// Who may take events: one thread at a time.
    enum class Turn : int { nobody, taker, waiter };

    [[nodiscard]] bool take_turn(Turn turn) noexcept;
    void leave_turn() noexcept;

    /// The next event of the queue that is one to the consumer.
    [[nodiscard]] bool poll(DAT_EVENT& event) noexcept;
    [[nodiscard]] bool take(DAT_EVENT& event) noexcept;
    /// Takes events out of the queue until @p count are set aside, if there are so many. False: there
    /// is no memory for more, and the next one is still in the queue.
    [[nodiscard]] bool set_aside(std::size_t count) noexcept;
    /// The events that the consumer would get now; all are set aside, as far as there is memory.
    [[nodiscard]] DAT_COUNT count() noexcept;
    [[nodiscard]] DAT_RETURN wait_for(std::size_t threshold, core::Deadline deadline) noexcept;
    /// Events of no meaning: they wake a waiter, if there is one, who looks why.
    void wake() noexcept;
    /// Connects the queue with the CNO, or not, as things are now.
    void notify() noexcept;
    /// A thread that waits here is told of events instead of the CNO.
    void set_waited(bool waited) noexcept;
    void trigger_if_any() noexcept;

    void interrupt() noexcept override { wake(); }
    [[nodiscard]] DAT_RETURN release() noexcept override;

    core::Evd queue_;
    std::atomic<DAT_COUNT> depth_;
    const DAT_EVD_FLAGS flags_;
    std::atomic<Turn> turn_{Turn::nobody};
    std::atomic<bool> waitable_{true};
    /// Events that a waiter sleeps for; 0 without one.
    std::atomic<std::uint32_t> missing_{0};
    /// Taken from the queue, not yet by the consumer. Belongs to whose turn it is.
    std::deque<DAT_EVENT> taken_;
    /// Whether that holds something, for who has no turn.
    std::atomic<bool> left_over_{false};

    std::mutex cno_mutex_; ///< of what follows
    Needed<Cno> cno_;
    std::optional<CnoInput> input_;
    bool enabled_ = true;
    bool waited_ = false;
};

} // namespace dapx::dat
