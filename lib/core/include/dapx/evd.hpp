// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/deadline.hpp>
#include <dapx/detail/mapping.hpp>
#include <dapx/detail/ring.hpp>
#include <dapx/event.hpp>
#include <dapx/object.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <span>

namespace dapx {

/// An event dispatcher: a ring of completions, connection, CM, asynchronous and software events,
/// in one order. Verbs: a completion queue with its channel.
///
/// No event is lost: what finds no room in the ring waits in the module. There is one exception: of a
/// port whose event waits, only the latest state is reported; likewise of an SRQ, only the latest
/// error. Polling is done on shared memory, without system calls. Move-only; see Object for its end.
///
/// Thread safety: one thread at a time may consume (poll(), next(), resize()); wait() and post()
/// may be called by any number of threads beside it.
class DAPX_EXPORT Evd : public Object {
public:
    struct Options {
        std::uint32_t depth = 256;   ///< events, rounded up to a power of two
        bool async = false;          ///< also gets the asynchronous events of the device's ports
        std::uint64_t user_data = 0; ///< given back by Context::query_object()
    };

    /// Errors: EBADFD (context not attached), EINVAL (depth), EDQUOT, ENOMEM, EIO.
    /// Thread safety: any thread. Source: DAPX_EVD_CREATE.
    [[nodiscard]] static Result<Evd> create(const Context& context,
                                            const Options& options) noexcept;

    /// The same with defaults.
    [[nodiscard]] static Result<Evd> create(const Context& context) noexcept
    {
        return create(context, Options{});
    }

    /// Takes the oldest event out of the ring, if there is one. No system call, unless events
    /// wait in the module for room: then one that fetches them.
    /// Before sleeping on an eventfd, poll until this says false. Thread safety: the consumer.
    [[nodiscard]] bool poll(Event& event) noexcept
    {
        const std::byte* entry = ring_.front();
        if (entry == nullptr) [[unlikely]] {
            // Inlined, so that an empty poll is a few loads.
            if (!ring_.backlog())
                return false;
            fetch_backlog();
            entry = ring_.front();
            if (entry == nullptr)
                return false;
        }
        std::memcpy(&event.raw(), entry, sizeof(::dapx_event));
        ring_.pop();
        // Room for half a ring: fetch early, so that the module need not hold events back until
        // the ring is empty.
        if (ring_.at_half() && ring_.backlog_hint()) [[unlikely]]
            fetch_backlog();
        return true;
    }

    /// True if poll() would say false and has nothing to do: a few loads. False when in doubt, as
    /// between the last event and the first empty poll(). Thread safety: any thread, beside the
    /// consumer, but not beside resize().
    [[nodiscard]] bool quiet() const noexcept { return ring_.quiet(); }

    /// Takes up to events.size() events; returns how many. Otherwise as poll(Event&).
    [[nodiscard]] std::size_t poll(std::span<Event> events) noexcept
    {
        std::size_t count = 0;
        while (count < events.size() && poll(events[count]))
            ++count;
        return count;
    }

    /// Takes out what is in the ring of the object with this handle, so that nobody reads it any more:
    /// for who has freed that object, as no events of it come then. Thread safety: the consumer.
    void drop(std::uint32_t handle) noexcept
    {
        ring_.drop_if([handle](const std::byte* entry) {
            ::dapx_event event;
            std::memcpy(&event, entry, sizeof(event));
            return event.handle == handle;
        });
    }

    /// Waits until at least @p threshold events are in the ring; takes none. The last of them is
    /// not quiet (SendFlags::quiet, RecvFlags::quiet).
    /// @param threshold 1 to the depth.
    /// @return events in the ring.
    /// Errors: ETIMEDOUT, EINTR (a signal; not waited on), ECANCELED (freed meanwhile), EINVAL,
    /// EIO (device removed). Thread safety: any thread. Source: DAPX_EVD_WAIT.
    [[nodiscard]] Result<std::uint32_t> wait(std::uint32_t threshold = 1,
                                             Deadline deadline = no_deadline) noexcept;

    /// The same, for a time from now.
    template <class Rep, class Period>
    [[nodiscard]] Result<std::uint32_t> wait(std::uint32_t threshold,
                                             std::chrono::duration<Rep, Period> timeout) noexcept
    {
        return wait(threshold, deadline_after(timeout));
    }

    /// Waits for an event that its sender asked attention for (SendFlags::solicited), or that
    /// is no successful receive; for endpoints with EndpointOptions::solicited.
    /// As wait(1, deadline) otherwise. Source: DAPX_WAIT_SOLICITED.
    [[nodiscard]] Result<std::uint32_t> wait_solicited(Deadline deadline = no_deadline) noexcept;

    /// The next event, waited for if need be: poll() and wait() in one.
    /// Errors: as wait(), and EBADMSG (the ring's indices were overwritten).
    /// Thread safety: the consumer.
    [[nodiscard]] Result<Event> next(Deadline deadline = no_deadline) noexcept;

    /// The same, for a time from now.
    template <class Rep, class Period>
    [[nodiscard]] Result<Event> next(std::chrono::duration<Rep, Period> timeout) noexcept
    {
        return next(deadline_after(timeout));
    }

    /// The next event of type @p type, waited for till @p deadline. What comes before it is taken,
    /// too, and given to @p other, a function that takes a const Event&.
    /// Errors: as next(). Thread safety: the consumer.
    template <std::invocable<const Event&> Other>
    [[nodiscard]] Result<Event> next_of(EventType type, Deadline deadline, Other&& other)
    {
        for (;;) {
            auto event = next(deadline);
            if (!event || event->type() == type)
                return event;
            other(*event);
        }
    }

    /// The same; what comes before is dropped. For who has one thing under way.
    [[nodiscard]] Result<Event> next_of(EventType type, Deadline deadline = no_deadline) noexcept
    {
        return next_of(type, deadline, [](const Event&) noexcept {});
    }

    /// Has an eventfd(2) signalled once for each event from now on that is not quiet; -1 for none.
    /// It replaces the one before, and remains the caller's.
    /// Errors: EBADF or EINVAL (no eventfd). Thread safety: any thread.
    /// Source: DAPX_EVD_EVENTFD.
    [[nodiscard]] Result<void> set_eventfd(int eventfd) noexcept;

    /// Has an eventfd(2) signalled by the next event after each arm(), once. As set_eventfd()
    /// otherwise, which it replaces.
    /// Errors: EOPNOTSUPP (older module), EBADF or EINVAL (no eventfd). Thread safety: any thread.
    /// Source: DAPX_EVD_EVENTFD with DAPX_EVENTFD_ONCE.
    [[nodiscard]] Result<void> set_eventfd_once(int eventfd) noexcept;

    /// Has the next event signal the eventfd of set_eventfd_once(). Events that are there already
    /// do not: poll until there is none before sleeping. No system call, unless events wait in the
    /// module, as they do if an endpoint of the EVD has EndpointOptions::solicited.
    /// Thread safety: any thread, beside the consumer, but not beside resize().
    void arm() noexcept { arm(DAPX_ARM_ANY); }

    /// The same for the next event that is no successful work request, or is a receive whose sender
    /// asked for attention (SendFlags::solicited). Receives of endpoints without
    /// EndpointOptions::solicited all count. If it was armed for any event before, one receive that
    /// was not solicited may signal. Older modules do as arm(). Source: DAPX_ARM_SOLICITED.
    void arm_solicited() noexcept { arm(DAPX_ARM_SOLICITED); }

    /// True if arm() was called, and no event has signalled since. No system call.
    /// Thread safety: as arm().
    [[nodiscard]] bool armed() const noexcept { return ring_.armed(); }

    /// Replaces the ring by one of @p depth entries (rounded up); unread events stay, and so does
    /// what arm() asked for.
    /// Errors: EBUSY (more events than that in the ring), EINVAL, ENOMEM; nothing changed then,
    /// unless dead() says so: the new ring was made and could not be mapped, and the EVD is of no
    /// use until another resize() succeeds, after which the events are there again.
    /// Thread safety: the consumer. Source: DAPX_EVD_RESIZE.
    [[nodiscard]] Result<void> resize(std::uint32_t depth) noexcept;

    /// Puts in an event of type EventType::software. Also to wake who waits for one event; of a
    /// wait for more it is one.
    /// Errors: EAGAIN (ring full). Thread safety: any thread. Source: DAPX_EVD_POST.
    [[nodiscard]] Result<void> post(std::array<std::uint64_t, 2> data) noexcept;

    /// Events the ring holds.
    [[nodiscard]] std::uint32_t depth() const noexcept { return ring_.depth(); }

    /// Events in the ring now. Thread safety: the consumer.
    [[nodiscard]] std::uint32_t available() const noexcept { return ring_.available(); }

    /// True if no more events come: freed, device removed, the ring's indices overwritten, or this
    /// is a forked child.
    /// What is in the ring can still be read: poll() once more, as the last event may have come
    /// between an empty poll() and this. Thread safety: the consumer.
    [[nodiscard]] bool dead() const noexcept { return ring_.dead() || ring_.corrupted(); }

    /// Commands that poll() issued since the EVD was made. Thread safety: any thread.
    [[nodiscard]] std::uint64_t doorbells() const noexcept
    {
        return detail::barrier::counted(&doorbells_);
    }

    Evd(Evd&&) noexcept = default;
    Evd& operator=(Evd&&) noexcept = default;
    ~Evd() = default;

private:
    Evd(std::shared_ptr<const detail::Device> device, std::uint32_t handle) noexcept
        : Object(std::move(device), ObjectType::evd, handle)
    {
    }

    [[nodiscard]] Result<void> map(const ::dapx_ring_layout& layout,
                                   detail::Mapping&& place = {}) noexcept;
    [[nodiscard]] Result<std::uint32_t> wait(std::uint32_t threshold, Deadline deadline,
                                             std::uint32_t flags) noexcept;
    void fetch_backlog() noexcept;
    void ask_for_events() noexcept;
    void arm(std::uint32_t what) noexcept
    {
        // The module looks what the ring is armed for when it is asked for events.
        if (ring_.arm(what)) [[unlikely]]
            ask_for_events();
    }

    detail::Mapping mapping_;
    std::uint32_t entries_off_ = 0;
    detail::EventRing ring_;
    std::uint64_t doorbells_ = 0;
};

} // namespace dapx
