// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "rdma_channel.hpp"

#include "rdma_device.hpp"
#include "rdma_id.hpp"
#include "registry.hpp"

#include <algorithm>
#include <atomic>
#include <dlfcn.h>
#include <iterator>
#include <sys/eventfd.h>
#include <unistd.h>

namespace dapx::verbs {

namespace {

Registry<EventChannel> channels;
Registry<RdmaEvent> events;

} // namespace

// ---------------------------------------------------------------------------------- events

RdmaEvent::RdmaEvent(RdmaId& about, RdmaId& counted, rdma_cm_event_type type, int how) noexcept
    : rdma_cm_event{}, counted_(&counted)
{
    id = &about;
    event = type;
    status = how;
}

RdmaEvent::~RdmaEvent()
{
    events.erase(*this);
}

RdmaEvent* RdmaEvent::create(RdmaId& about, RdmaId& counted, rdma_cm_event_type type,
                             int status) noexcept
{
    auto* event = new (std::nothrow) RdmaEvent(about, counted, type, status);
    if (event != nullptr && events.insert(*event))
        return event;
    delete event;
    return nullptr;
}

RdmaEvent* RdmaEvent::find(rdma_cm_event* event) noexcept
{
    return events.contains(event) ? static_cast<RdmaEvent*>(event) : nullptr;
}

void RdmaEvent::set_private_data(std::span<const std::byte> data) noexcept
{
    const std::size_t length = std::min(data.size(), private_data_.size());
    std::ranges::copy(data.first(length), private_data_.begin());
    param.conn.private_data = length != 0 ? private_data_.data() : nullptr;
    param.conn.private_data_len = static_cast<std::uint8_t>(length);
}

// -------------------------------------------------------------------------------- channels

EventChannel* EventChannel::create() noexcept
{
    const int fd = eventfd(0, EFD_CLOEXEC);
    if (fd < 0)
        return nullptr;
    auto* channel = new (std::nothrow) EventChannel(fd);
    if (channel == nullptr)
        close(fd);
    if (channel != nullptr && channels.insert(*channel))
        return channel;
    delete channel;
    return failed_null<EventChannel>(ENOMEM);
}

EventChannel* EventChannel::find(rdma_event_channel* channel) noexcept
{
    return channels.contains(channel) ? static_cast<EventChannel*>(channel) : nullptr;
}

EventChannel::~EventChannel()
{
    channels.erase(*this);
    close(fd);
}

bool EventChannel::add(RdmaId& id) noexcept
try {
    const std::lock_guard guard(lock_);
    ids_.push_back(&id);
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

void EventChannel::remove(RdmaId& id) noexcept
{
    const std::lock_guard guard(lock_);
    readiness_.took(id.unread());
    std::erase(ids_, &id);
    std::erase_if(told_, [&id](const Told& one) { return one.id == &id; });
}

bool EventChannel::move(RdmaId& id, EventChannel& to) noexcept
try {
    const std::scoped_lock guard(lock_, to.lock_);
    to.ids_.reserve(to.ids_.size() + 1);
    const auto is_of_id = [&id](const Told& one) { return one.id == &id; };
    std::ranges::copy_if(told_, std::back_inserter(to.told_), is_of_id);
    to.ids_.push_back(&id);
    std::erase_if(told_, is_of_id);
    std::erase(ids_, &id);
    // They were signalled here, except for what came just now.
    const std::int64_t moved = id.unread();
    readiness_.took(moved);
    to.readiness_.took(-moved);
    id.channel = &to;
    settle_locked();
    to.settle_locked();
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

bool EventChannel::tell(RdmaId& id, rdma_cm_event_type type, int status) noexcept
try {
    const std::lock_guard guard(lock_);
    told_.push_back({.id = &id, .type = type, .status = status});
    settle_locked();
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

void EventChannel::settle() noexcept
{
    const std::lock_guard guard(lock_);
    settle_locked();
}

void EventChannel::settle_locked() noexcept
{
    readiness_.clear();
    const auto has_event = [](const RdmaId* id) { return id->has_event(); };
    if (!told_.empty() || std::ranges::any_of(ids_, has_event))
        readiness_.signal();
}

RdmaEvent* EventChannel::find_event() noexcept
try {
    if (!told_.empty()) {
        const Told one = told_.front();
        told_.pop_front();
        return one.id->new_event(one.type, one.status);
    }
    // For the id of a request.
    ids_.reserve(ids_.size() + 1);
    for (std::size_t i = 0; i < ids_.size(); ++i) {
        RdmaId* made = nullptr;
        RdmaEvent* event = ids_[i]->take_event(made, readiness_);
        if (event == nullptr)
            continue;
        // The others first, the next time.
        std::ranges::rotate(ids_, ids_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        if (made != nullptr)
            ids_.push_back(made);
        return event;
    }
    return nullptr;
} catch (const std::bad_alloc&) {
    return nullptr;
}

RdmaEvent* EventChannel::take(std::uint64_t signals) noexcept
{
    const std::lock_guard guard(lock_);
    readiness_.signalled(signals);
    RdmaEvent* event = find_event();
    settle_locked();
    return event;
}

RdmaEvent* EventChannel::next() noexcept
{
    for (;;) {
        eventfd_t count = 0;
        if (eventfd_read(fd, &count) != 0)
            return nullptr;
        if (RdmaEvent* event = take(count))
            return event;
    }
}

/// What librdmacm makes, for rsocket(7), is its own. It may not be loaded, or not yet.
static bool is_from_librdmacm(const void* caller) noexcept
{
    return is_in_library_of(find_next_function("rdma_event_str"), caller);
}

static std::atomic<bool> used;

bool librdmacm_was_used() noexcept
{
    return used.load(std::memory_order_relaxed);
}

bool is_for_librdmacm(const void* caller) noexcept
{
    if (!is_from_librdmacm(caller) && RdmaDevice::any())
        return false;
    used.store(true, std::memory_order_relaxed);
    return true;
}

} // namespace dapx::verbs

// ------------------------------------------------------------------------------- functions

using namespace dapx::verbs;

DAPX_VERBS rdma_event_channel* rdma_create_event_channel(void)
{
    if (is_for_librdmacm(__builtin_return_address(0)))
        return DAPX_LIBRDMACM(rdma_create_event_channel)();
    return EventChannel::create();
}

DAPX_VERBS void rdma_destroy_event_channel(rdma_event_channel* channel)
{
    if (EventChannel* own = EventChannel::find(channel))
        delete own;
    else if (channel != nullptr && librdmacm_was_used())
        DAPX_LIBRDMACM(rdma_destroy_event_channel)(channel);
}

DAPX_VERBS int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event)
{
    EventChannel* own = EventChannel::find(channel);
    if (own == nullptr && channel != nullptr && librdmacm_was_used())
        return DAPX_LIBRDMACM(rdma_get_cm_event)(channel, event);
    if (own == nullptr || event == nullptr)
        return zero_or_errno(EINVAL);
    RdmaEvent* next = own->next();
    if (next == nullptr)
        return -1;
    *event = next;
    return 0;
}

DAPX_VERBS int rdma_ack_cm_event(rdma_cm_event* event)
{
    RdmaEvent* own = RdmaEvent::find(event);
    if (own == nullptr)
        return event != nullptr && librdmacm_was_used() ? DAPX_LIBRDMACM(rdma_ack_cm_event)(event)
                                                        : zero_or_errno(EINVAL);
    own->counted().acknowledge();
    delete own;
    return 0;
}
