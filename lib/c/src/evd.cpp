// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// <dapx/c.h>: events.
#include "handles.hpp"

using namespace dapx::c;

dapxc_evd* dapxc_evd_create(const dapxc_context* context, uint32_t depth, uint32_t flags,
                            uint64_t user_data)
{
    if (context == nullptr)
        return fail(invalid());
    if ((flags & ~std::uint32_t{DAPX_EVD_ASYNC}) != 0)
        return fail(keep(EOPNOTSUPP, "an unknown flag of an event dispatcher"));
    return make<dapxc_evd>(dapx::Evd::create(
        context->object,
        {.depth = depth, .async = (flags & DAPX_EVD_ASYNC) != 0, .user_data = user_data}));
}

int dapxc_evd_poll(dapxc_evd* evd, dapx_event* events, size_t max, size_t* count)
{
    if (evd == nullptr || (events == nullptr && max != 0) || count == nullptr)
        return EINVAL;
    *count = 0;
    dapx::Event event;
    while (*count < max && evd->object.poll(event))
        events[(*count)++] = event.raw();
    if (*count != 0 || max == 0 || !evd->object.dead())
        return 0;
    // The last event may have come in between; after it, none does.
    if (evd->object.poll(event)) {
        events[(*count)++] = event.raw();
        return 0;
    }
    // The ring of a forked child is dead for a reason that only the module tells.
    const int error = dapx::detail::doorbell(evd->object.context().fd(), evd->object.handle(),
                                             DAPX_DOORBELL_EVENTS);
    return error == EPERM ? EPERM : EIO;
}

int dapxc_evd_wait(dapxc_evd* evd, uint32_t flags, uint32_t threshold, uint64_t deadline,
                   uint32_t* count)
{
    if (evd == nullptr)
        return invalid();
    dapx_evd_wait argument{};
    argument.size = sizeof(argument);
    argument.flags = flags;
    argument.evd = evd->object.handle();
    argument.threshold = threshold;
    argument.deadline = deadline;
    const int error = ask(evd->object.context(), argument, "cannot wait for events");
    if (count != nullptr)
        *count = argument.out_events;
    return error;
}

int dapxc_evd_set_eventfd(dapxc_evd* evd, int eventfd)
{
    return evd != nullptr ? errno_of(evd->object.set_eventfd(eventfd)) : invalid();
}

int dapxc_evd_set_eventfd_once(dapxc_evd* evd, int eventfd)
{
    return evd != nullptr ? errno_of(evd->object.set_eventfd_once(eventfd)) : invalid();
}

int dapxc_evd_arm(dapxc_evd* evd, uint32_t what)
{
    if (evd == nullptr || (what != DAPX_ARM_ANY && what != DAPX_ARM_SOLICITED))
        return invalid();
    if (what == DAPX_ARM_SOLICITED)
        evd->object.arm_solicited();
    else
        evd->object.arm();
    return 0;
}

int dapxc_evd_resize(dapxc_evd* evd, uint32_t depth)
{
    return evd != nullptr ? errno_of(evd->object.resize(depth)) : invalid();
}

int dapxc_evd_post(dapxc_evd* evd, uint64_t data0, uint64_t data1)
{
    return evd != nullptr ? errno_of(evd->object.post({data0, data1})) : invalid();
}

uint32_t dapxc_evd_handle(const dapxc_evd* evd)
{
    return handle_of(evd);
}

int dapxc_evd_free(dapxc_evd* evd)
{
    return take_back(evd);
}
