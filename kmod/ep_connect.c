// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: connecting endpoints and taking them apart, by the RDMA CM
 *
 * The module steps the queue pair itself (the CM does not know of it), so that
 * only it decides when a queue pair changes, and an endpoint has one before it
 * has a CM id.
 */
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "ep.h"
#include "trace.h"

/* A transition of the queue pair, with the attributes that the CM has negotiated with the peer. */
struct dapx_qp_step {
	struct ib_qp_attr attr;
	int mask;
};

static int dapx_ep_qp_step_init(struct dapx_ep *ep, struct rdma_cm_id *id,
				enum ib_qp_state state, struct dapx_qp_step *step)
{
	int ret;

	step->attr = (struct ib_qp_attr) { .qp_state = state };
	ret = rdma_init_qp_attr(id, &step->attr, &step->mask);
	if (ret)
		return ret;
	if (step->mask & IB_QP_ACCESS_FLAGS)
		step->attr.qp_access_flags = ep->transport->access_flags(ep);
	if (step->mask & IB_QP_MIN_RNR_TIMER)
		step->attr.min_rnr_timer = READ_ONCE(ep->min_rnr_timer);
	/* The peer may ask for more than the endpoint or the device supports. */
	if (step->mask & IB_QP_MAX_DEST_RD_ATOMIC)
		step->attr.max_dest_rd_atomic = min(step->attr.max_dest_rd_atomic,
						    ep->conn_param.responder_resources);
	if (step->mask & IB_QP_MAX_QP_RD_ATOMIC)
		step->attr.max_rd_atomic = min(step->attr.max_rd_atomic,
					       ep->conn_param.initiator_depth);
	return 0;
}

static int dapx_ep_qp_step(struct dapx_ep *ep, struct rdma_cm_id *id, enum ib_qp_state state)
{
	struct dapx_qp_step step;
	int ret;

	ret = dapx_ep_qp_step_init(ep, id, state, &step);
	if (ret)
		return ret;
	return dapx_ep_qp_modify(ep, &step.attr, step.mask);
}

/* Makes the queue pair ready to receive and to send. */
static int dapx_ep_qp_connect(struct dapx_ep *ep, struct rdma_cm_id *id)
{
	int ret;

	/* An iWARP driver makes the other transitions itself when it has the connection. */
	if (ep->obj.ctx->dev->iwarp)
		return 0;
	ret = dapx_ep_qp_step(ep, id, IB_QPS_RTR);
	if (ret)
		return ret;
	return dapx_ep_qp_step(ep, id, IB_QPS_RTS);
}

/* A peer that has no neighbour entry is reported early, even if the deadline is minutes away. */
static int dapx_ep_resolve_timeout_ms(const struct dapx_ep *ep)
{
	return min(dapx_cm_timeout_ms(ep->connect_deadline), DAPX_RESOLVE_TIMEOUT_MS);
}

/* ------------------------------------------------- what the CM tells, in its callbacks */

static void dapx_ep_take_peer_data(struct dapx_ep *ep, const void *data, u32 length)
{
	lockdep_assert_held(&ep->lock);
	if (ep->transport->is_header && ep->transport->is_header(data, length)) {
		data += ep->transport->cm_header_size;
		length -= ep->transport->cm_header_size;
	}
	ep->peer_data_len = data ? min_t(u32, length, sizeof(ep->peer_data)) : 0;
	memset(ep->peer_data, 0, sizeof(ep->peer_data));
	if (ep->peer_data_len)
		memcpy(ep->peer_data, data, ep->peer_data_len);
}

/* The connection set-up failed. Returns false if the endpoint is not being connected. */
static bool dapx_ep_connect_failed(struct dapx_ep *ep, u32 what, int error, const void *data,
				   u32 length)
{
	bool failed = true;

	spin_lock_irq(&ep->lock);
	switch (ep->state) {
	case DAPX_EP_ACTIVE_PENDING:
		break;
	case DAPX_EP_COMPLETION_PENDING:
		what = DAPX_CONNECTION_ACCEPT_ERROR;
		break;
	default:
		failed = false;
		break;
	}
	if (failed) {
		dapx_ep_take_peer_data(ep, data, length);
		dapx_ep_set_state(ep, DAPX_EP_DISCONNECTED);
		dapx_ep_post_event(ep, &ep->outcome, what, error);
	}
	spin_unlock_irq(&ep->lock);
	if (!failed)
		return false;
	cancel_delayed_work(&ep->deadline);
	dapx_ep_qp_to_error(ep);
	dapx_ep_update_modes(ep);
	return true;
}

/* Called before the event that reports the reject. */
static void dapx_ep_refused(struct dapx_ep *ep, int reason)
{
	spin_lock_irq(&ep->lock);
	if (ep->state == DAPX_EP_ACTIVE_PENDING)
		ep->reject_reason = abs(reason);
	spin_unlock_irq(&ep->lock);
}

/* The peer accepted, with these parameters and private data. */
static void dapx_ep_answered(struct dapx_ep *ep, const struct rdma_conn_param *conn)
{
	spin_lock_irq(&ep->lock);
	if (ep->state == DAPX_EP_ACTIVE_PENDING) {
		dapx_ep_take_peer_data(ep, conn->private_data, conn->private_data_len);
		WRITE_ONCE(ep->remote_qp_num, conn->qp_num);
		if (ep->by_steps) {
			WRITE_ONCE(ep->responded, true);
			dapx_ep_post_event(ep, &ep->response, DAPX_CONNECTION_RESPONSE, 0);
		} else {
			ep->answered = true;
		}
	}
	spin_unlock_irq(&ep->lock);
}

/*
 * Makes the endpoint CONNECTED. Any context. Returns whether this call did it. A process that
 * establishes the connection itself gets no event, as from other steps.
 */
static bool dapx_ep_connected(struct dapx_ep *ep)
{
	bool connected = false, silent;
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	silent = ep->by_steps && ep->state == DAPX_EP_ACTIVE_PENDING;
	if (ep->cm && !ep->dead &&
	    ((ep->state == DAPX_EP_ACTIVE_PENDING && ep->answered) ||
	     ep->state == DAPX_EP_COMPLETION_PENDING)) {
		dapx_ep_set_state(ep, DAPX_EP_CONNECTED);
		if (!silent)
			dapx_ep_post_event(ep, &ep->outcome, DAPX_CONNECTION_ESTABLISHED, 0);
		/*
		 * Release: a completion handler that sees this posts its event after
		 * ESTABLISHED.
		 */
		smp_store_release(&ep->established, true);
		/* With the lock, as the end of the connection sets the timer anew. */
		cancel_delayed_work(&ep->deadline);
		connected = true;
	}
	spin_unlock_irqrestore(&ep->lock, flags);
	if (!connected)
		return false;
	dapx_ep_update_modes(ep);
	return true;
}

/*
 * A message of the peer may arrive before the CM reports the connection. A process should not
 * get completions of an endpoint that is not connected yet, so the message makes it CONNECTED
 * as well. In softirq, before the completion of the message.
 */
void dapx_ep_message_arrived(struct dapx_ep *ep)
{
	dapx_ep_connected(ep);
}

/* The connection ends without an error. Returns whether there was one. */
static bool dapx_ep_disconnected(struct dapx_ep *ep)
{
	bool ended = true;

	spin_lock_irq(&ep->lock);
	switch (ep->state) {
	case DAPX_EP_CONNECTED:
	case DAPX_EP_DISCONNECT_PENDING:
	case DAPX_EP_ACTIVE_PENDING:
		dapx_ep_end(ep, DAPX_CONNECTION_DISCONNECTED, 0);
		break;
	case DAPX_EP_COMPLETION_PENDING:
		dapx_ep_end(ep, DAPX_CONNECTION_ACCEPT_ERROR, 0);
		break;
	case DAPX_EP_UNCONNECTED:
		/* From INIT on, the queue pair may have receives to flush. */
		if (READ_ONCE(ep->qp_state) == IB_QPS_INIT) {
			dapx_ep_end(ep, DAPX_CONNECTION_DISCONNECTED, 0);
			break;
		}
		fallthrough;
	default:
		ended = false;
		break;
	}
	spin_unlock_irq(&ep->lock);
	if (!ended)
		return false;
	dapx_ep_qp_to_error(ep);
	dapx_ep_update_modes(ep);
	return true;
}

/* The CM has the last message of the handshake. What was to end since the first message ends. */
static void dapx_ep_late_established(struct dapx_ep *ep, struct rdma_cm_id *id)
{
	if (!READ_ONCE(ep->established))
		return;
	if (READ_ONCE(ep->state) == DAPX_EP_DISCONNECTED)
		rdma_disconnect(id);
	else
		dapx_ep_completed(ep);
}

/*
 * The peer has disconnected. It may still acknowledge requests that it received before: rxe
 * completes a receive before it acknowledges it, and the disconnect takes another way. So these
 * requests may succeed for a moment longer.
 */
static bool dapx_ep_waits_for_acks(struct dapx_ep *ep)
{
	bool awaits = false;

	spin_lock_irq(&ep->lock);
	if (!ep->dead && !ep->obj.ctx->dev->iwarp && atomic_read(&ep->sq.outstanding) &&
	    (ep->state == DAPX_EP_CONNECTED || ep->state == DAPX_EP_DISCONNECT_PENDING)) {
		WRITE_ONCE(ep->peer_left, true);
		dapx_object_queue_delayed(&ep->obj, &ep->deadline, DAPX_ACKNOWLEDGE_TIME);
		awaits = true;
	}
	spin_unlock_irq(&ep->lock);
	if (awaits)
		/* All may have been acknowledged by now. */
		dapx_ep_completed(ep);
	return awaits;
}

/* Checked before the first message, as a peer of another transport could not interpret it. */
static bool dapx_ep_peer_fits(struct dapx_ep *ep, const struct rdma_conn_param *conn)
{
	return !ep->transport->is_header ||
	       ep->transport->is_header(conn->private_data, conn->private_data_len);
}

static int dapx_ep_send_request(struct dapx_ep *ep, struct rdma_cm_id *id)
{
	int ret;

	if (!ep->by_steps) {
		ret = dapx_ep_qp_step(ep, id, IB_QPS_INIT);
		if (ret)
			return ret;
		dapx_ep_update_modes(ep);
	}
	ep->conn_param.qp_num = ep->qp->qp_num;
	ep->conn_param.srq = ep->srq ? 1 : 0;
	dapx_cm_mark_sent(ep->cm);
	return rdma_connect_locked(id, &ep->conn_param);
}

static u32 dapx_ep_failure_event(int error)
{
	switch (error) {
	case -ETIMEDOUT:
		return DAPX_CONNECTION_TIMED_OUT;
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -EPIPE:
		/* iWARP: no listener, or one that was freed before it read the request */
	case -EPROTO:
		/* the peer listens, but with another transport */
		return DAPX_CONNECTION_NON_PEER_REJECTED;
	default:
		return DAPX_CONNECTION_UNREACHABLE;
	}
}

/* With the id's handler mutex held. A set-up that was aborted gets no further. */
int dapx_ep_cm_event(struct dapx_ep *ep, struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;
	const void *data;
	u8 length = 0;
	int ret = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (READ_ONCE(ep->state) != DAPX_EP_ACTIVE_PENDING)
			break;
		if (id->device != ep->obj.ctx->dev->ibdev) {
			ret = -EADDRNOTAVAIL;
			dapx_cm_destroy_async(id->context);
		} else {
			ret = rdma_resolve_route(id, dapx_ep_resolve_timeout_ms(ep));
		}
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (READ_ONCE(ep->state) != DAPX_EP_ACTIVE_PENDING)
			break;
		if (ep->obj.ctx->dev->iwarp)
			ret = dapx_cm_connect_aside(id->context);
		else
			ret = dapx_ep_send_request(ep, id);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		if (READ_ONCE(ep->state) != DAPX_EP_ACTIVE_PENDING)
			break;
		if (!dapx_ep_peer_fits(ep, conn)) {
			rdma_reject(id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
			ret = -EPROTO;
			break;
		}
		if (ep->by_steps) {
			dapx_cm_note_steps(id->context, id, IB_QPS_RTS);
			dapx_ep_answered(ep, conn);
			break;
		}
		ret = dapx_ep_qp_connect(ep, id);
		if (!ret) {
			dapx_ep_answered(ep, conn);
			ret = rdma_accept(id, NULL);
		}
		if (!ret)
			dapx_ep_connected(ep);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		/* On iWARP, this is also the answer to the active side. */
		if (ep->obj.ctx->dev->iwarp && !dapx_ep_peer_fits(ep, conn)) {
			rdma_disconnect(id);
			ret = -EPROTO;
			break;
		}
		dapx_ep_answered(ep, conn);
		if (!dapx_ep_connected(ep))
			dapx_ep_late_established(ep, id);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		/*
		 * The removed device is another one: the context is told of its own device's
		 * removal first.
		 */
		ret = -EADDRNOTAVAIL;
		dapx_cm_destroy_async(id->context);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		dapx_ep_connect_failed(ep, DAPX_CONNECTION_UNREACHABLE, event->status, NULL, 0);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		/* A message came, but never the last one of the handshake. */
		if (READ_ONCE(ep->established))
			dapx_ep_disconnected(ep);
		else
			ret = event->status < 0 ? event->status : -EHOSTUNREACH;
		break;
	case RDMA_CM_EVENT_REJECTED:
		data = rdma_consumer_reject_data(id, event, &length);
		/* siw does not tell that the consumer rejected; on iWARP nothing else can. */
		if (ep->obj.ctx->dev->iwarp) {
			data = event->param.conn.private_data;
			length = event->param.conn.private_data_len;
		}
		dapx_ep_refused(ep, event->status);
		if (dapx_ep_connect_failed(ep, data || ep->obj.ctx->dev->iwarp ?
					   DAPX_CONNECTION_PEER_REJECTED :
					   DAPX_CONNECTION_NON_PEER_REJECTED,
					   -ECONNREFUSED, data, length))
			break;
		/* The peer accepted, and left before it knew of the connection. */
		dapx_ep_disconnected(ep);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		/*
		 * Only a connected peer disconnects; its message that establishes the
		 * connection may be lost or late.
		 */
		dapx_ep_connected(ep);
		/* An iWARP stream was reset. */
		if (ep->obj.ctx->dev->iwarp && event->status)
			dapx_ep_fail(ep);
		/* This also answers the peer, which waits for it. */
		else if (!dapx_ep_waits_for_acks(ep) && dapx_ep_disconnected(ep))
			rdma_disconnect(id);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		dapx_ep_timewait_exit(ep);
		break;
	default:
		break;
	}
	if (ret)
		dapx_ep_connect_failed(ep, dapx_ep_failure_event(ret), ret, NULL, 0);
	return 0;
}

/* Runs in a thread of its own. */
void dapx_ep_connect_now(struct dapx_ep *ep, struct rdma_cm_id *id)
{
	int ret = 0;

	rdma_lock_handler(id);
	if (READ_ONCE(ep->state) == DAPX_EP_ACTIVE_PENDING)
		ret = dapx_ep_send_request(ep, id);
	rdma_unlock_handler(id);
	if (ret)
		dapx_ep_connect_failed(ep, dapx_ep_failure_event(ret), ret, NULL, 0);
}

void dapx_ep_deadline(struct work_struct *work)
{
	struct dapx_ep *ep = container_of(to_delayed_work(work), struct dapx_ep, deadline);
	bool expired = false;

	if (READ_ONCE(ep->end_pending)) {
		/* Otherwise the timer expired for something earlier, and is set anew. */
		if (time_after_eq(jiffies, READ_ONCE(ep->end_by)))
			dapx_ep_post_end(ep);
		return;
	}
	if (READ_ONCE(ep->peer_left)) {
		if (dapx_ep_disconnected(ep))
			dapx_cm_disconnect(ep->cm);
		return;
	}
	spin_lock_irq(&ep->lock);
	if (ep->state == DAPX_EP_ACTIVE_PENDING) {
		dapx_ep_set_state(ep, DAPX_EP_DISCONNECTED);
		dapx_ep_post_event(ep, &ep->outcome, DAPX_CONNECTION_TIMED_OUT, -ETIMEDOUT);
		expired = true;
	}
	spin_unlock_irq(&ep->lock);
	if (!expired)
		return;
	dapx_ep_qp_to_error(ep);
	dapx_ep_update_modes(ep);
	/* Nested, as teardown waits for this work with the endpoint's mutex. */
	mutex_lock_nested(&ep->cm->obj.mutex, SINGLE_DEPTH_NESTING);
	dapx_cm_shutdown(ep->cm);
	mutex_unlock(&ep->cm->obj.mutex);
}

/* ------------------------------------------------------------------- connect */

/* Returns whether the endpoint has everything that connecting and accepting need. */
static bool dapx_ep_is_complete(struct dapx_ep *ep)
{
	return ep->qp && ep->request_evd && ep->connect_evd &&
	       (ep->recv_evd || (!ep->rq.ops && !ep->srq));
}

/* Returns whether the queue pair is in a state from which the module takes it to RTS. */
static bool dapx_ep_has_fresh_qp(struct dapx_ep *ep)
{
	enum ib_qp_state qp_state = READ_ONCE(ep->qp_state);

	return qp_state == IB_QPS_RESET || qp_state == IB_QPS_INIT;
}

/* Returns why a process cannot take the endpoint's queue pair through its states, or 0. */
static int dapx_ep_check_steps(struct dapx_ep *ep)
{
	return ep->obj.ctx->dev->iwarp || ep->attr.flags & DAPX_EP_XRC ? -EOPNOTSUPP : 0;
}

static int dapx_ep_enter_active(struct dapx_ep *ep, struct dapx_cm *cm, bool by_steps)
{
	int ret = -EBADFD;

	spin_lock_irq(&ep->lock);
	if (!ep->dead && ep->state == DAPX_EP_UNCONNECTED) {
		dapx_ep_set_state(ep, DAPX_EP_ACTIVE_PENDING);
		ep->cm = cm;
		ep->by_steps = by_steps;
		ret = 0;
	}
	spin_unlock_irq(&ep->lock);
	return ret;
}

/* Undoes dapx_ep_enter_active(), unless an event has already changed the state. */
static bool dapx_ep_leave_active(struct dapx_ep *ep)
{
	bool left = false;

	spin_lock_irq(&ep->lock);
	if (ep->state == DAPX_EP_ACTIVE_PENDING) {
		dapx_ep_set_state(ep, DAPX_EP_UNCONNECTED);
		ep->cm = NULL;
		left = true;
	}
	spin_unlock_irq(&ep->lock);
	return left;
}

/* Connects with an id of the consumer, whose route is resolved. */
static int dapx_ep_connect_by_id(struct dapx_ep *ep, u32 handle, bool by_steps)
{
	struct dapx_cm *cm = dapx_use_cm(ep->obj.ctx, handle);
	int ret = -EBADFD;

	if (IS_ERR(cm))
		return PTR_ERR(cm);
	mutex_lock_nested(&cm->obj.mutex, SINGLE_DEPTH_NESTING);
	if (READ_ONCE(cm->state) != DAPX_CM_ROUTE_READY || !cm->id)
		goto err;
	rdma_lock_handler(cm->id);
	ret = dapx_ep_enter_active(ep, cm, by_steps);
	if (!ret) {
		dapx_cm_set_ep(cm, ep);
		ret = dapx_ep_send_request(ep, cm->id);
		if (ret && !dapx_ep_leave_active(ep))
			ret = 0;
		if (ret)
			dapx_cm_set_ep(cm, NULL);
	}
	rdma_unlock_handler(cm->id);
	if (ret)
		goto err;
	dapx_cm_set_state(cm, DAPX_CM_ATTACHED);
	mutex_unlock(&cm->obj.mutex);
	return 0;

err:
	mutex_unlock(&cm->obj.mutex);
	dapx_object_unuse(&cm->obj);
	return ret;
}

static int dapx_ep_connect_to(struct dapx_ep *ep, struct dapx_ep_connect *cmd)
{
	struct sockaddr *src = cmd->src.ss_family ? (struct sockaddr *)&cmd->src : NULL;
	struct dapx_cm *cm;
	int ret;

	cm = dapx_cm_for_ep(ep);
	if (IS_ERR(cm))
		return PTR_ERR(cm);
	/* As for any id that belongs to another device: see dapx_cm_destroy_async(). */
	mutex_lock_nested(&cm->obj.mutex, SINGLE_DEPTH_NESTING);
	ret = dapx_ep_enter_active(ep, cm, false);
	if (!ret) {
		ret = rdma_resolve_addr(cm->id, src, (struct sockaddr *)&cmd->dst,
					dapx_ep_resolve_timeout_ms(ep));
		if (dapx_cm_no_route(ret)) {
			dapx_ep_connect_failed(ep, DAPX_CONNECTION_UNREACHABLE, ret, NULL, 0);
			ret = 0;
		}
		if (ret && !dapx_ep_leave_active(ep))
			ret = 0;
	}
	mutex_unlock(&cm->obj.mutex);
	if (!ret)
		return 0;

	dapx_cm_shutdown(cm);
	dapx_cm_cancel_destroy(cm);
	dapx_cm_release_ep(cm);
	return ret == -ENODEV ? -EADDRNOTAVAIL : ret;
}

/*
 * Starts the timer, unless the set-up is over already: a peer that has left meanwhile may have
 * the timer in use.
 */
static void dapx_ep_begin_deadline(struct dapx_ep *ep)
{
	u64 now = ktime_get_ns();

	if (ep->connect_deadline == DAPX_NO_DEADLINE)
		return;
	spin_lock_irq(&ep->lock);
	/* Rounded up, and the current tick may be nearly over. */
	if (ep->state == DAPX_EP_ACTIVE_PENDING)
		dapx_object_queue_delayed(&ep->obj, &ep->deadline, 2 +
					  nsecs_to_jiffies(ep->connect_deadline -
							   min(ep->connect_deadline, now)));
	spin_unlock_irq(&ep->lock);
}

int dapx_cmd_ep_connect(struct dapx_ucmd *ucmd)
{
	struct dapx_ep_connect *cmd = ucmd->cmd;
	struct dapx_ep *ep;
	bool by_steps = cmd->flags & DAPX_CONNECT_STEPS;
	u8 rnr_retry;
	u32 header;
	int ret;

	if (cmd->flags & ~DAPX_CONNECT_STEPS)
		return -EOPNOTSUPP;
	ep = dapx_ep_lock(ucmd->ctx, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	header = ep->transport->cm_header_size;
	ret = -EINVAL;
	if (cmd->private_data_len + header >
	    IB_CM_REQ_PRIVATE_DATA_SIZE - DAPX_CM_IP_HEADER_SIZE ||
	    cmd->retry_count > 7 || cmd->rnr_retry_count > 7)
		goto out;
	if (cmd->cm ? cmd->dst.ss_family || cmd->src.ss_family :
	    !dapx_addr_valid(&cmd->dst) ||
	    by_steps || (cmd->src.ss_family && cmd->src.ss_family != cmd->dst.ss_family))
		goto out;
	ret = by_steps ? dapx_ep_check_steps(ep) : 0;
	if (ret)
		goto out;
	ret = -EBADFD;
	if (READ_ONCE(ep->state) != DAPX_EP_UNCONNECTED || ep->cm || !dapx_ep_is_complete(ep))
		goto out;
	if (by_steps ? READ_ONCE(ep->qp_state) != IB_QPS_INIT : !dapx_ep_has_fresh_qp(ep))
		goto out;
	rnr_retry = cmd->rnr_retry_count;
	if (ep->transport->prepare_connect)
		ep->transport->prepare_connect(ep, ep->private_data, &rnr_retry);
	memcpy(ep->private_data + header, cmd->private_data, sizeof(cmd->private_data));
	ep->conn_param = (struct rdma_conn_param) {
		.private_data = ep->private_data,
		.private_data_len = header + cmd->private_data_len,
		.responder_resources = ep->attr.max_dest_rd_atomic,
		.initiator_depth = ep->attr.max_rd_atomic,
		.flow_control = 1,
		.retry_count = cmd->retry_count,
		.rnr_retry_count = rnr_retry,
	};
	ep->connect_deadline = cmd->deadline;
	if (cmd->deadline <= ktime_get_ns()) {
		/*
		 * The deadline has passed: the outcome is the same, and the peer gets no
		 * request.
		 */
		spin_lock_irq(&ep->lock);
		dapx_ep_set_state(ep, DAPX_EP_DISCONNECTED);
		dapx_ep_post_event(ep, &ep->outcome, DAPX_CONNECTION_TIMED_OUT, -ETIMEDOUT);
		spin_unlock_irq(&ep->lock);
		dapx_ep_qp_to_error(ep);
		dapx_ep_update_modes(ep);
		ret = 0;
		goto out;
	}
	ret = cmd->cm ? dapx_ep_connect_by_id(ep, cmd->cm, by_steps) : dapx_ep_connect_to(ep, cmd);
	if (!ret)
		dapx_ep_begin_deadline(ep);
out:
	dapx_ep_unlock(ep);
	return ret;
}

/* -------------------------------------------------------------------- accept */

/*
 * The endpoint waits for the peer. A connection by steps may have ended just now, by a message of
 * somebody else.
 */
static int dapx_ep_enter_passive(struct dapx_ep *ep, struct dapx_cm *cm, bool by_steps)
{
	int ret = -EBADFD;

	spin_lock_irq(&ep->lock);
	if (!by_steps || ep->state == DAPX_EP_CONNECTED) {
		dapx_ep_set_state(ep, DAPX_EP_COMPLETION_PENDING);
		ep->cm = cm;
		ep->by_steps = by_steps;
		WRITE_ONCE(ep->remote_qp_num, cm->remote_qp_num);
		ep->tentative = false;
		ret = 0;
	}
	spin_unlock_irq(&ep->lock);
	return ret;
}

/*
 * A call that fails changes nothing. So everything that can be checked is checked before the
 * first transition. A later failure is reported by an event.
 */
static int dapx_ep_accept_request(struct dapx_ep *ep, struct dapx_cm *cm,
				  const struct dapx_ep_accept *cmd)
{
	bool by_steps = cmd->flags & DAPX_CONNECT_STEPS;
	struct dapx_qp_step step;
	int ret;

	ep->conn_param = (struct rdma_conn_param) {
		.private_data = cmd->private_data,
		.private_data_len = cmd->private_data_len,
		.responder_resources = by_steps ? ep->agreed_dest_rd_atomic :
				       min_t(u8, ep->attr.max_dest_rd_atomic,
					     cm->responder_resources),
		.initiator_depth = by_steps ? ep->agreed_rd_atomic :
				   min_t(u8, ep->attr.max_rd_atomic, cm->initiator_depth),
		.flow_control = 1,
		.rnr_retry_count = cmd->rnr_retry_count,
		.srq = ep->srq ? 1 : 0,
		.qp_num = ep->qp->qp_num,
	};

	rdma_lock_handler(cm->id);
	/* The CM refuses this when the peer has given up. */
	ret = ep->obj.ctx->dev->iwarp ? 0 : dapx_ep_qp_step_init(ep, cm->id, IB_QPS_RTR, &step);
	if (!ret && !by_steps)
		ret = dapx_ep_qp_step(ep, cm->id, IB_QPS_INIT);
	if (!ret)
		ret = dapx_ep_enter_passive(ep, cm, by_steps);
	if (ret)
		goto out;
	dapx_cm_set_ep(cm, ep);
	dapx_ep_update_modes(ep);

	dapx_cm_mark_sent(cm);
	ret = by_steps ? 0 : dapx_ep_qp_connect(ep, cm->id);
	if (ret)
		rdma_reject(cm->id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
	else
		ret = rdma_accept(cm->id, &ep->conn_param);
	if (ret)
		dapx_ep_connect_failed(ep, DAPX_CONNECTION_ACCEPT_ERROR, ret, NULL, 0);
	ret = 0;
out:
	/* It points into the command. */
	ep->conn_param.private_data = NULL;
	rdma_unlock_handler(cm->id);
	return ret;
}

int dapx_cmd_ep_accept(struct dapx_ucmd *ucmd)
{
	struct dapx_ep_accept *cmd = ucmd->cmd;
	bool by_steps = cmd->flags & DAPX_CONNECT_STEPS;
	enum dapx_ep_state expected;
	struct dapx_cm *cm;
	struct dapx_ep *ep;
	bool claimed = false;
	int ret;

	if (cmd->flags & ~DAPX_CONNECT_STEPS)
		return -EOPNOTSUPP;
	if (cmd->__reserved || cmd->rnr_retry_count > 7 ||
	    cmd->private_data_len > IB_CM_REP_PRIVATE_DATA_SIZE)
		return -EINVAL;
	ep = dapx_ep_lock(ucmd->ctx, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	cm = dapx_get_cm(ucmd->ctx, cmd->cm);
	if (IS_ERR(cm)) {
		dapx_ep_unlock(ep);
		return PTR_ERR(cm);
	}

	ret = -EOPNOTSUPP;
	if (!ep->transport->accepts || (by_steps && dapx_ep_check_steps(ep)))
		goto out;
	ret = -EPROTO;
	if (cm->xrc)
		goto out;
	ret = -EBADFD;
	if (!dapx_cm_claim_request(cm))
		goto out;
	claimed = true;
	expected = by_steps ? DAPX_EP_CONNECTED : !cm->candidate ? DAPX_EP_UNCONNECTED :
		   ep->tentative ? DAPX_EP_TENTATIVE_PENDING : DAPX_EP_PASSIVE_PENDING;
	if ((cm->candidate && cm->candidate != ep) || READ_ONCE(ep->state) != expected || ep->cm ||
	    !dapx_ep_is_complete(ep) || (!by_steps && !dapx_ep_has_fresh_qp(ep)))
		goto out;
	ret = dapx_cgroup_charge(&ep->obj);
	if (ret)
		goto out;
	ret = dapx_ep_accept_request(ep, cm, cmd);
	if (!ret) {
		dapx_cm_request_accepted(cm);
		claimed = false;
	}
out:
	/* dapx_cm_unclaim_request() may take the mutex of the request's endpoint. */
	mutex_unlock(&ep->obj.mutex);
	if (claimed)
		dapx_cm_unclaim_request(cm);
	dapx_object_put(&ep->obj);
	dapx_object_put(&cm->obj);
	/* The CM returns EINVAL for an id in the wrong state: the peer gave up. */
	return claimed && ret == -EINVAL ? -EBADFD : ret;
}

/* Answers the peer that accepted, with by_steps. Returns why this is not the time, or 0. */
static int dapx_ep_establish(struct dapx_ep *ep)
{
	bool may;
	int ret;

	if (READ_ONCE(ep->qp_state) != IB_QPS_RTS)
		return -EBADFD;
	spin_lock_irq(&ep->lock);
	may = ep->responded && ep->state == DAPX_EP_ACTIVE_PENDING;
	if (may)
		ep->answered = true;
	spin_unlock_irq(&ep->lock);
	if (!may)
		return -EBADFD;
	ret = dapx_cm_establish(ep->cm);
	if (!ret)
		dapx_ep_connected(ep);
	else if (!dapx_ep_connect_failed(ep, dapx_ep_failure_event(ret), ret, NULL, 0))
		dapx_ep_fail(ep);
	return 0;
}

int dapx_cmd_ep_establish(struct dapx_ucmd *ucmd)
{
	const struct dapx_ep_establish *cmd = ucmd->cmd;
	struct dapx_ep *ep;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->__reserved)
		return -EINVAL;
	ep = dapx_ep_lock(ucmd->ctx, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	ret = dapx_ep_establish(ep);
	dapx_ep_unlock(ep);
	return ret;
}

/* ---------------------------------------------------------------- disconnect */

/*
 * All requests are done, for which a graceful disconnect of this side or of the peer has
 * waited. In ep->work.
 */
void dapx_ep_disconnect_drained(struct dapx_ep *ep)
{
	bool peer_left = READ_ONCE(ep->peer_left);

	if (!peer_left && READ_ONCE(ep->state) != DAPX_EP_DISCONNECT_PENDING)
		return;
	if (!dapx_queue_idle(&ep->sq))
		return;
	/* With a CM id, a disconnect of this side is over when the peer has answered. */
	if ((peer_left || !ep->cm) && !dapx_ep_disconnected(ep))
		return;
	dapx_cm_disconnect(ep->cm);
}

static int dapx_ep_disconnect_graceful(struct dapx_ep *ep)
{
	bool begun = false;

	/* First of all, so that nothing is taken that is published after the call. */
	dapx_queue_limit(&ep->sq, true);
	spin_lock_irq(&ep->lock);
	if (ep->state == DAPX_EP_CONNECTED) {
		dapx_ep_set_state(ep, DAPX_EP_DISCONNECT_PENDING);
		begun = true;
	}
	spin_unlock_irq(&ep->lock);
	/* The connection broke just now: then everything published is flushed. */
	if (!begun)
		dapx_queue_limit(&ep->sq, false);
	dapx_ep_update_modes(ep);
	dapx_ep_completed(ep);
	return 0;
}

int dapx_cmd_ep_disconnect(struct dapx_ucmd *ucmd)
{
	struct dapx_ep_disconnect *cmd = ucmd->cmd;
	bool abrupt = cmd->flags & DAPX_DISCONNECT_ABRUPT;
	struct dapx_ep *ep;
	int ret = 0;

	if (cmd->flags & ~DAPX_DISCONNECT_ABRUPT)
		return -EOPNOTSUPP;
	if (cmd->__reserved)
		return -EINVAL;
	ep = dapx_ep_lock(ucmd->ctx, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	switch (READ_ONCE(ep->state)) {
	case DAPX_EP_UNCONNECTED:
		if (!abrupt || !dapx_ep_disconnected(ep))
			ret = -EBADFD;
		break;
	case DAPX_EP_ACTIVE_PENDING:
	case DAPX_EP_COMPLETION_PENDING:
		/* This aborts the set-up, and the peer is told. */
		dapx_ep_disconnected(ep);
		if (ep->cm)
			dapx_cm_shutdown(ep->cm);
		break;
	case DAPX_EP_CONNECTED:
		if (!abrupt) {
			ret = dapx_ep_disconnect_graceful(ep);
			break;
		}
		dapx_device_let_acknowledge(ep->obj.ctx->dev, READ_ONCE(ep->received_at));
		fallthrough;
	case DAPX_EP_DISCONNECT_PENDING:
		if (abrupt && dapx_ep_disconnected(ep))
			dapx_cm_disconnect(ep->cm);
		break;
	case DAPX_EP_DISCONNECTED:
		break;
	default:
		ret = -EBADFD;
		break;
	}
	dapx_ep_unlock(ep);
	return ret;
}
