// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/evd.hpp>

#include "clock.hpp"
#include "ioctl.hpp"
#include "layout.hpp"

#include <dapx/detail/receive_queue.hpp>

#include <cerrno>

namespace dapx {

Result<Evd> Evd::create(const Context& context, const Options& options) noexcept
{
    ::dapx_evd_create argument{};
    argument.flags = options.async ? std::uint32_t{DAPX_EVD_ASYNC} : 0;
    argument.depth = options.depth;
    argument.user_data = options.user_data;
    if (auto done = detail::command(context.fd(), argument, "cannot make an event dispatcher");
        !done)
        return std::unexpected(std::move(done).error());
    Evd evd(device_of(context), argument.out_evd);
    if (auto done = evd.map(argument.out_ring); !done)
        return std::unexpected(std::move(done).error());
    return evd;
}

Result<void> Evd::map(const ::dapx_ring_layout& layout, detail::Mapping&& place) noexcept
{
    if (auto done = detail::check_layout(layout, sizeof(::dapx_event)); !done)
        return done;
    auto mapping =
        detail::Mapping::create_at(std::move(place), fd(), layout.mmap_offset, layout.mmap_size);
    if (!mapping)
        return std::unexpected(std::move(mapping).error());
    ring_ = detail::EventRing(mapping->base(), layout, mapping->owner());
    mapping_ = std::move(*mapping);
    entries_off_ = layout.entries_off;
    return {};
}

Result<std::uint32_t> Evd::wait(std::uint32_t threshold, Deadline deadline) noexcept
{
    return wait(threshold, deadline, 0);
}

Result<std::uint32_t> Evd::wait_solicited(Deadline deadline) noexcept
{
    return wait(1, deadline, DAPX_WAIT_SOLICITED);
}

Result<std::uint32_t> Evd::wait(std::uint32_t threshold, Deadline deadline,
                                std::uint32_t flags) noexcept
{
    ::dapx_evd_wait argument{};
    argument.flags = flags;
    argument.evd = handle();
    argument.threshold = threshold;
    argument.deadline = detail::to_abi(deadline);
    if (auto done = detail::command(fd(), argument, "cannot wait for events"); !done)
        return std::unexpected(std::move(done).error());
    return argument.out_events;
}

Result<Event> Evd::next(Deadline deadline) noexcept
{
    Event event;
    while (!poll(event)) {
        if (auto events = wait(1, deadline); !events)
            return std::unexpected(std::move(events).error());
        // The module has an index of its own. Where it counts events, and there is none here, the
        // one in the ring was overwritten: to wait again would return at once, for ever.
        if (ring_.available() == 0)
            return std::unexpected(
                detail::explain(EBADMSG, "DAPX_EVD_WAIT", "cannot wait for events"));
    }
    return event;
}

Result<void> Evd::set_eventfd(int eventfd) noexcept
{
    ::dapx_evd_eventfd argument{};
    argument.evd = handle();
    argument.fd = eventfd;
    return detail::command(fd(), argument, "cannot attach the eventfd");
}

Result<void> Evd::set_eventfd_once(int eventfd) noexcept
{
    ::dapx_evd_eventfd argument{};
    argument.flags = DAPX_EVENTFD_ONCE;
    argument.evd = handle();
    argument.fd = eventfd;
    return detail::command(fd(), argument, "cannot attach the eventfd");
}

Result<void> Evd::resize(std::uint32_t depth) noexcept
{
    ::dapx_evd_resize argument{};
    argument.evd = handle();
    argument.depth = depth;
    // Addresses first: once the module has switched, events go to the new ring.
    auto place =
        detail::Mapping::reserve(detail::mapping_size(entries_off_, depth, sizeof(::dapx_event)));
    if (!place)
        return std::unexpected(std::move(place).error());
    if (const int error = detail::command(fd(), argument); error != 0)
        return std::unexpected(
            detail::explain_resize(error, "DAPX_EVD_RESIZE", "the event dispatcher"));
    auto done = map(argument.out_ring, std::move(*place));
    if (!done)
        ring_.abandon();
    return done;
}

Result<void> Evd::post(std::array<std::uint64_t, 2> data) noexcept
{
    ::dapx_evd_post argument{};
    argument.evd = handle();
    argument.data[0] = data[0];
    argument.data[1] = data[1];
    return detail::command(fd(), argument, "cannot post an event");
}

void Evd::fetch_backlog() noexcept
{
    detail::barrier::count(&doorbells_);
    ask_for_events();
}

void Evd::ask_for_events() noexcept
{
    // An error means that no events come any more, which the ring itself tells: dead().
    (void)detail::doorbell(fd(), handle(), DAPX_DOORBELL_EVENTS);
}

} // namespace dapx
