// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "async_event.hpp"

#include "libibverbs.hpp"
#include "own.hpp"
#include "qp.hpp"
#include "srq.hpp"

#include <optional>

namespace dapx::verbs {

namespace {

/// OFED's IBV_XRC_QP_EVENT_FLAG: the element is the number of a receive queue pair.
constexpr unsigned ofed_qp_event = 0x80000000;

std::optional<ibv_event_type> event_type(dapx::AsyncEvent what) noexcept
{
    switch (what) {
    case dapx::AsyncEvent::device_removed:
        return IBV_EVENT_DEVICE_FATAL;
    case dapx::AsyncEvent::port_active:
        return IBV_EVENT_PORT_ACTIVE;
    case dapx::AsyncEvent::port_error:
        return IBV_EVENT_PORT_ERR;
    case dapx::AsyncEvent::ep_error:
    case dapx::AsyncEvent::xrc_qp_error:
        return IBV_EVENT_QP_FATAL;
    case dapx::AsyncEvent::srq_error:
        return IBV_EVENT_SRQ_ERR;
    case dapx::AsyncEvent::srq_limit:
        return IBV_EVENT_SRQ_LIMIT_REACHED;
    case dapx::AsyncEvent::xrc_qp_established:
        return IBV_EVENT_COMM_EST;
    case dapx::AsyncEvent::xrc_qp_disconnected:
        // No error: nothing more of it goes into any queue.
        return IBV_EVENT_QP_LAST_WQE_REACHED;
    }
    return std::nullopt;
}

bool is_of_srq(ibv_event_type type) noexcept
{
    return type == IBV_EVENT_SRQ_ERR || type == IBV_EVENT_SRQ_LIMIT_REACHED;
}

bool is_of_qp(ibv_event_type type) noexcept
{
    return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_COMM_EST ||
           type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

void acknowledge(pthread_mutex_t& mutex, pthread_cond_t& cond, std::uint32_t& completed) noexcept
{
    pthread_mutex_lock(&mutex);
    ++completed;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
}

} // namespace

bool report(const dapx::Event& from, ibv_async_event& event) noexcept
{
    if (from.type() != dapx::EventType::async)
        return false;
    const auto type = event_type(from.async());
    if (!type)
        return false;
    event = {};
    event.event_type = *type;
    if (is_of_srq(*type)) {
        Srq* srq = srq_of(from.user_data());
        srq->reported();
        event.element.srq = srq;
    } else if (from.user_data() == number_only) {
        event.event_type = static_cast<ibv_event_type>(*type | ofed_qp_event);
        event.element.port_num = static_cast<int>(from.qp_num());
    } else if (is_of_qp(*type)) {
        Qp* qp = qp_of(from.user_data());
        qp->reported();
        event.element.qp = &qp->qp_base;
    } else {
        event.element.port_num = static_cast<int>(from.port());
    }
    return true;
}

} // namespace dapx::verbs

using namespace dapx::verbs;

DAPX_VERBS void ibv_ack_async_event(ibv_async_event* event)
{
    if (is_of_srq(event->event_type)) {
        ibv_srq* srq = event->element.srq;
        if (!is_foreign(srq))
            return acknowledge(srq->mutex, srq->cond, srq->events_completed);
    } else if (is_of_qp(event->event_type)) {
        ibv_qp* qp = event->element.qp;
        if (!is_foreign(qp))
            return acknowledge(qp->mutex, qp->cond, qp->events_completed);
    }
    // Of a port, of OFED's, which need none, or of libibverbs' objects, which may be of other kinds, too.
    DAPX_LIBIBVERBS(ibv_ack_async_event)(event);
}
