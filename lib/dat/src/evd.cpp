// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "evd.hpp"

#include "event.hpp"
#include "functions.hpp"

#include <limits>

#include <sched.h>

namespace dapx::dat {

std::expected<std::unique_ptr<Evd>, DAT_RETURN>
Evd::create(Ia& ia, DAT_COUNT depth, Cno* cno, DAT_EVD_FLAGS flags, Async async) noexcept
{
    Slot* slot = Slot::take(handle_type, ia.provider().table);
    if (slot == nullptr)
        return std::unexpected(no_memory());
    auto queue = core::Evd::create(ia.context(), {.depth = static_cast<std::uint32_t>(depth),
                                                  .async = async == Async::yes,
                                                  .user_data = slot->user_data()});
    if (!queue) {
        slot->give_back();
        return std::unexpected(error_of(queue.error(), DAT_RESOURCE_TEVD));
    }
    auto evd = make_at<Evd>(slot, ia, std::move(*queue), depth, flags);
    if (evd == nullptr)
        return std::unexpected(no_memory());
    if (const DAT_RETURN joined = evd->set_cno(cno); joined != DAT_SUCCESS)
        return std::unexpected(joined);
    return evd;
}

Evd::~Evd()
{
    if (!cno_)
        return;
    // Those who wait look whether this was the last one. By then the CNO may be gone.
    const std::shared_ptr<CnoWaitSet> set = cno_->set();
    input_.reset();
    cno_ = Needed<Cno>();
    set->poke();
}

bool Evd::take_turn(Turn turn) noexcept
{
    for (;;) {
        Turn now = Turn::nobody;
        if (turn_.compare_exchange_weak(now, turn, std::memory_order_acquire))
            return true;
        if (now == Turn::waiter)
            return false;
        if (now == Turn::taker)
            sched_yield(); // soon over
    }
}

void Evd::leave_turn() noexcept
{
    left_over_.store(!taken_.empty(), std::memory_order_relaxed);
    turn_.store(Turn::nobody, std::memory_order_release);
}

bool Evd::quiet() const noexcept
{
    return turn_.load(std::memory_order_acquire) == Turn::nobody &&
           !left_over_.load(std::memory_order_relaxed) && queue_.quiet();
}

bool Evd::poll(DAT_EVENT& event) noexcept
{
    core::Event raw;
    while (queue_.poll(raw))
        if (translate(raw, *this, event))
            return true;
    return false;
}

bool Evd::take(DAT_EVENT& event) noexcept
{
    if (taken_.empty())
        return poll(event);
    event = taken_.front();
    taken_.pop_front();
    return true;
}

DAT_RETURN Evd::dequeue(DAT_EVENT& event) noexcept
{
    if (!take_turn(Turn::taker)) [[unlikely]]
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
    const bool found = take(event);
    leave_turn();
    return found ? DAT_RETURN{DAT_SUCCESS} : error(DAT_QUEUE_EMPTY);
}

void Evd::settle() noexcept
{
    if (!take_turn(Turn::taker))
        return;
    // Without memory they stay in the queue.
    (void)set_aside(std::numeric_limits<std::size_t>::max());
    leave_turn();
}

bool Evd::set_aside(std::size_t count) noexcept
try {
    while (taken_.size() < count) {
        taken_.emplace_back();
        if (!poll(taken_.back())) {
            taken_.pop_back();
            break;
        }
    }
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

DAT_COUNT Evd::count() noexcept
{
    // Of what is in the queue, not all is an event to the consumer.
    (void)set_aside(taken_.size() + queue_.available());
    return static_cast<DAT_COUNT>(taken_.size());
}

DAT_RETURN Evd::wait_for(std::size_t threshold, core::Deadline deadline) noexcept
{
    for (;;) {
        if (!set_aside(threshold))
            return no_memory();
        if (taken_.size() >= threshold)
            return DAT_SUCCESS;
        // Before the look at why not to wait: wake() does it the other way round.
        missing_ = static_cast<std::uint32_t>(threshold - taken_.size());
        if (closing())
            return error(DAT_ABORT);
        if (!waitable_)
            return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
        const auto came = solicited_streams != 0 ? queue_.wait_solicited(deadline)
                                                 : queue_.wait(missing_, deadline);
        if (!came)
            return error_of(came.error());
        // The module counts events of which there is none here: the ring was overwritten, and
        // waiting again would return at once, for ever.
        if (queue_.available() == 0)
            return error(DAT_INTERNAL_ERROR);
    }
}

DAT_RETURN Evd::wait(DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT& event,
                     DAT_COUNT& more) noexcept
{
    if (threshold < 1 || threshold > depth_)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    if (threshold > 1 && solicited_streams != 0)
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_CONFIG_SOLICITED);
    if (threshold > 1 && quiet_streams != 0)
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_CONFIG_NOTIFY);
    if (!waitable_)
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
    const core::Deadline deadline = deadline_of(timeout);
    if (!take_turn(Turn::waiter))
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
    const auto wanted = static_cast<std::size_t>(threshold);
    // Without sleep if there is enough: the CNO need not know then.
    DAT_RETURN result = set_aside(wanted) ? DAT_RETURN{DAT_SUCCESS} : no_memory();
    if (result == DAT_SUCCESS && taken_.size() < wanted) {
        set_waited(true);
        result = wait_for(wanted, deadline);
        missing_ = 0;
        set_waited(false);
    }
    if (result == DAT_SUCCESS)
        (void)take(event);
    more = count();
    leave_turn();
    return result;
}

DAT_RETURN Evd::post(const DAT_EVENT& event) noexcept
{
    const auto pointer =
        reinterpret_cast<std::uintptr_t>(event.event_data.software_event_data.pointer);
    const auto posted = queue_.post({pointer, software_event});
    if (posted)
        return DAT_SUCCESS;
    return posted.error().code() == EAGAIN ? error(DAT_QUEUE_FULL) : error_of(posted.error());
}

void Evd::wake() noexcept
{
    // As many as it sleeps for: without a waiter none, as they take up room of the consumer's. A
    // full queue wakes, too.
    for (std::uint32_t count = missing_; count > 0; --count)
        if (!queue_.post({0, wake_event}))
            return;
}

DAT_RETURN Evd::resize(DAT_COUNT depth) noexcept
{
    if (!take_turn(Turn::taker))
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
    // Of the ring that goes.
    Glance<Evd>::wait();
    DAT_RETURN result = error(DAT_INVALID_STATE);
    if (static_cast<std::size_t>(depth) >= taken_.size() + queue_.available()) {
        const auto resized = queue_.resize(static_cast<std::uint32_t>(depth));
        result = resized ? DAT_RETURN{DAT_SUCCESS} : error_of(resized.error(), DAT_RESOURCE_TEVD);
        if (resized)
            depth_ = depth;
    }
    leave_turn();
    return result;
}

void Evd::notify() noexcept
{
    const bool tell = input_ && enabled_ && !waited_;
    (void)queue_.set_eventfd(tell ? input_->eventfd() : -1);
}

void Evd::set_waited(bool waited) noexcept
{
    const std::lock_guard lock(cno_mutex_);
    waited_ = waited;
    if (input_)
        notify();
}

DAT_RETURN Evd::set_cno(Cno* cno) noexcept
{
    {
        const std::lock_guard lock(cno_mutex_);
        std::optional<CnoInput> input;
        if (cno != nullptr) {
            auto made = CnoInput::create(*cno, handle());
            if (!made)
                return made.error();
            input = std::move(*made);
        }
        std::swap(input_, input);
        cno_ = cno == nullptr ? Needed<Cno>() : Needed<Cno>(cno);
        if (input_ || input)
            notify();
    }
    trigger_if_any();
    return DAT_SUCCESS;
}

void Evd::enable(bool enabled) noexcept
{
    {
        const std::lock_guard lock(cno_mutex_);
        enabled_ = enabled;
        notify();
    }
    if (enabled)
        trigger_if_any();
}

void Evd::trigger_if_any() noexcept
{
    if (!take_turn(Turn::taker))
        return;
    const bool any = !taken_.empty() || queue_.available() != 0;
    leave_turn();
    const std::lock_guard lock(cno_mutex_);
    if (any && input_ && enabled_)
        input_->trigger();
}

void Evd::set_waitable(bool waitable) noexcept
{
    waitable_ = waitable;
    if (!waitable)
        wake();
}

void Evd::query(DAT_EVD_PARAM& param) noexcept
{
    const std::lock_guard lock(cno_mutex_);
    int state = enabled_ ? DAT_EVD_STATE_ENABLED : DAT_EVD_STATE_DISABLED;
    state |= waitable_ ? DAT_EVD_STATE_WAITABLE : DAT_EVD_STATE_UNWAITABLE;
    state |= solicited_streams != 0 ? DAT_EVD_STATE_CONFIG_SOLICITED : DAT_EVD_STATE_CONFIG_NOTIFY;
    param.ia_handle = ia().consumer_handle();
    param.evd_qlen = depth_;
    param.evd_state = static_cast<DAT_EVD_STATE>(state);
    param.cno_handle = cno_.handle();
    param.evd_flags = flags_;
}

DAT_RETURN Evd::release() noexcept
{
    Glance<Evd>::wait();
    return freed(queue_.free());
}

namespace {

constexpr auto evd_kinds = static_cast<DAT_EVD_FLAGS>(DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DEFAULT_FLAG);

DAT_RETURN invalid_evd() noexcept
{
    return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
}

} // namespace

DAT_RETURN provider_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT depth, DAT_CNO_HANDLE cno_handle,
                               DAT_EVD_FLAGS flags, DAT_EVD_HANDLE* handle) noexcept
{
    const Ref<Ia> ia(ia_handle);
    if (!ia)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    if (depth <= 0 || static_cast<std::uint32_t>(depth) > ia->module().max_ring_depth)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    const Ref<Cno> cno(cno_handle);
    if (cno_handle != DAT_HANDLE_NULL && (!cno || &cno->ia() != ia.get()))
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
    if (flags == 0 || (flags & ~evd_kinds) != 0)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    if (handle == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
    auto evd = Evd::create(*ia, depth, cno.get(), flags, Evd::Async::no);
    if (!evd)
        return evd.error();
    return hand_out(std::move(*evd), *handle);
}

DAT_RETURN provider_evd_query(DAT_EVD_HANDLE handle, DAT_EVD_PARAM_MASK mask,
                              DAT_EVD_PARAM* param) noexcept
{
    const Ref<Evd> evd(handle);
    if (!evd)
        return invalid_evd();
    if (const DAT_RETURN bad = check_query(mask, DAT_EVD_FIELD_ALL, param))
        return bad;
    evd->query(*param);
    return DAT_SUCCESS;
}

DAT_RETURN provider_evd_modify_cno(DAT_EVD_HANDLE handle, DAT_CNO_HANDLE cno_handle) noexcept
{
    const Ref<Evd> evd(handle);
    if (!evd)
        return invalid_evd();
    const Ref<Cno> cno(cno_handle);
    if (cno_handle != DAT_HANDLE_NULL && (!cno || &cno->ia() != &evd->ia()))
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
    return evd->set_cno(cno.get());
}

DAT_RETURN provider_evd_enable(DAT_EVD_HANDLE handle) noexcept
{
    const Ref<Evd> evd(handle);
    if (!evd)
        return invalid_evd();
    evd->enable(true);
    return DAT_SUCCESS;
}

DAT_RETURN provider_evd_disable(DAT_EVD_HANDLE handle) noexcept
{
    const Ref<Evd> evd(handle);
    if (!evd)
        return invalid_evd();
    evd->enable(false);
    return DAT_SUCCESS;
}

DAT_RETURN provider_evd_set_unwaitable(DAT_EVD_HANDLE handle) noexcept
{
    const Ref<Evd> evd(handle);
    if (!evd)
        return invalid_evd();
    evd->set_waitable(false);
    return DAT_SUCCESS;
}

DAT_RETURN provider_evd_clear_unwaitable(DAT_EVD_HANDLE handle) noexcept
{
    const Ref<Evd> evd(handle);
    if (!evd)
        return invalid_evd();
    evd->set_waitable(true);
    return DAT_SUCCESS;
}

DAT_RETURN provider_evd_wait(DAT_EVD_HANDLE handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
                             DAT_EVENT* event, DAT_COUNT* more) noexcept
{
    const Ref<Evd> evd(handle);
    if (!evd)
        return invalid_evd();
    if (event == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    if (more == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
    return evd->wait(timeout, threshold, *event, *more);
}

DAT_RETURN provider_evd_dequeue(DAT_EVD_HANDLE handle, DAT_EVENT* event) noexcept
{
    // Programs poll: an empty EVD costs neither a lock nor an atomic operation.
    if (event != nullptr)
        if (const Glance<Evd> evd(handle); evd && evd->quiet())
            return error(DAT_QUEUE_EMPTY);
    const Ref<Evd> evd(handle);
    if (!evd)
        return invalid_evd();
    if (event == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    return evd->dequeue(*event);
}

DAT_RETURN provider_evd_post_se(DAT_EVD_HANDLE handle, const DAT_EVENT* event) noexcept
{
    const Ref<Evd> evd(handle);
    if (!evd || !evd->takes(DAT_EVD_SOFTWARE_FLAG))
        return invalid_evd();
    if (event == nullptr || event->event_number != DAT_SOFTWARE_EVENT)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    return evd->post(*event);
}

DAT_RETURN provider_evd_resize(DAT_EVD_HANDLE handle, DAT_COUNT depth) noexcept
{
    const Ref<Evd> evd(handle);
    if (!evd)
        return invalid_evd();
    if (depth <= 0 || static_cast<std::uint32_t>(depth) > evd->ia().module().max_ring_depth)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    return evd->resize(depth);
}

DAT_RETURN provider_evd_free(DAT_EVD_HANDLE handle) noexcept
{
    return free_handle<Evd>(handle, DAT_INVALID_HANDLE1, DAT_INVALID_STATE_EVD_IN_USE);
}

} // namespace dapx::dat
