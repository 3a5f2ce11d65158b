// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: endpoints: creation, states and teardown
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include <net/netlink.h>

#include "ep.h"
#include "trace.h"
#include "xrc/xrc.h"

/* The mapping of the rings: the state, the control words of both rings, then their entries. */
#define DAPX_EP_SEND_CONTROL_OFF DAPX_RING_LINE
#define DAPX_EP_RECV_CONTROL_OFF (DAPX_EP_SEND_CONTROL_OFF + DAPX_RING_CONTROL_SIZE)
#define DAPX_EP_ENTRIES_OFF (DAPX_EP_RECV_CONTROL_OFF + DAPX_RING_CONTROL_SIZE)

/*
 * A device that flushes nothing for this long never will, and the queue pair is destroyed
 * without draining. Only ticks that the thread saw are counted: if a virtual machine is stopped
 * for a while, the device does not hang.
 */
#define DAPX_DRAIN_TICKS (5 * HZ)

/*
 * Looks up an endpoint for a command that reads several of its members, or changes it. The
 * endpoint is alive, and its mutex is held.
 */
struct dapx_ep *dapx_ep_lock(struct dapx_context *ctx, u32 handle)
{
	struct dapx_ep *ep = dapx_get_ep(ctx, handle);

	if (IS_ERR(ep))
		return ep;
	mutex_lock(&ep->obj.mutex);
	if (!ep->dead)
		return ep;
	dapx_ep_unlock(ep);
	return ERR_PTR(-ENOENT);
}

void dapx_ep_unlock(struct dapx_ep *ep)
{
	mutex_unlock(&ep->obj.mutex);
	dapx_object_put(&ep->obj);
}

/* --------------------------------------------------------------------- state */

void dapx_ep_set_state(struct dapx_ep *ep, enum dapx_ep_state state)
{
	lockdep_assert_held(&ep->lock);
	trace_dapx_ep_state(&ep->obj, ep->state, state);
	WRITE_ONCE(ep->state, state);
	/* The process reads this. The module never reads what the process writes there. */
	WRITE_ONCE(*ep->state_word, state);
	dapx_netlink_notify(ep->obj.ctx, &(struct dapx_notification) {
			    .event = DAPX_GENL_EVENT_EP_STATE,
			    .handle = ep->obj.handle,
			    .state = state });
}

/* Called after each completion that may be the last one of a connection that is over. */
static void dapx_ep_try_end(struct dapx_ep *ep)
{
	if (READ_ONCE(ep->end_pending) && dapx_queue_is_flushed(&ep->sq) &&
	    dapx_queue_is_flushed(&ep->rq))
		dapx_ep_post_end(ep);
}

/* Called after each change of the endpoint's state, or of the queue pair's. */
void dapx_ep_update_modes(struct dapx_ep *ep)
{
	dapx_queue_update_mode(&ep->sq);
	dapx_queue_update_mode(&ep->rq);
	dapx_queue_run(&ep->rq);
	dapx_queue_run(&ep->sq);
	dapx_ep_try_end(ep);
}

/*
 * Takes no lock, as slots are freed below evd->lock, which is below ep->lock. So work may be
 * queued during teardown; it then does nothing.
 */
void dapx_ep_queue(struct dapx_ep *ep, enum dapx_ep_todo todo)
{
	if (READ_ONCE(ep->dead))
		return;
	set_bit(todo, &ep->todo);
	dapx_object_queue_work(&ep->obj, &ep->work);
}

static void dapx_ep_fill_event(struct dapx_ep *ep, struct dapx_stored_event *stored, u32 what,
			       int error)
{
	stored->node.notify = DAPX_NOTIFY_ALL;
	stored->event = (struct dapx_event) {
		.type = DAPX_EVENT_CONNECTION,
		.handle = ep->obj.handle,
		.user_data = ep->obj.user_data,
		.connection = { .what = what, .error = error },
	};
}

void dapx_ep_post_event(struct dapx_ep *ep, struct dapx_stored_event *stored, u32 what, int error)
{
	lockdep_assert_held(&ep->lock);
	if (ep->dead || !ep->connect_evd)
		return;
	dapx_ep_fill_event(ep, stored, what, error);
	dapx_evd_post(ep->connect_evd, &stored->node);
}

/*
 * The connection is over. The event that reports it comes after the last completion; but a
 * device that does not flush must not hold it up.
 */
void dapx_ep_end(struct dapx_ep *ep, u32 what, int error)
{
	lockdep_assert_held(&ep->lock);
	dapx_ep_set_state(ep, DAPX_EP_DISCONNECTED);
	if (ep->dead || !ep->connect_evd)
		return;
	dapx_ep_fill_event(ep, &ep->end, what, error);
	WRITE_ONCE(ep->end_by, jiffies + DAPX_DRAIN_TICKS);
	WRITE_ONCE(ep->end_pending, true);
	dapx_object_requeue_delayed(&ep->obj, &ep->deadline, DAPX_DRAIN_TICKS);
}

static void dapx_ep_post_timewait_exit(struct dapx_ep *ep)
{
	if (!ep->timewait_over || ep->end_pending || ep->state != DAPX_EP_DISCONNECTED)
		return;
	ep->timewait_over = false;
	dapx_ep_post_event(ep, &ep->timewait_exit, DAPX_CONNECTION_TIMEWAIT_EXIT, 0);
}

/* The CM's timewait state is over, but the event of the connection's end may still wait. */
void dapx_ep_timewait_exit(struct dapx_ep *ep)
{
	spin_lock_irq(&ep->lock);
	ep->timewait_over = ep->attr.flags & DAPX_EP_TIMEWAIT_EXIT;
	dapx_ep_post_timewait_exit(ep);
	spin_unlock_irq(&ep->lock);
}

/* Posts the event of the connection's end, unless it has been posted. Any context. */
void dapx_ep_post_end(struct dapx_ep *ep)
{
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	if (ep->end_pending && !ep->dead && ep->connect_evd)
		dapx_evd_post(ep->connect_evd, &ep->end.node);
	WRITE_ONCE(ep->end_pending, false);
	dapx_ep_post_timewait_exit(ep);
	spin_unlock_irqrestore(&ep->lock, flags);
}

/* The connection ends by an error. Any context. */
void dapx_ep_fail(struct dapx_ep *ep)
{
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	if (ep->dead)
		goto out;
	switch (ep->state) {
	case DAPX_EP_COMPLETION_PENDING:
		dapx_ep_end(ep, DAPX_CONNECTION_ACCEPT_ERROR, -ECONNABORTED);
		break;
	case DAPX_EP_ACTIVE_PENDING:
		/* Only from RTR on, which takes a response of the peer. */
		if (!ep->responded)
			goto out;
		fallthrough;
	case DAPX_EP_CONNECTED:
	case DAPX_EP_DISCONNECT_PENDING:
		dapx_ep_end(ep, DAPX_CONNECTION_BROKEN, -EIO);
		break;
	case DAPX_EP_DISCONNECTED:
		/* The end was reported already, but the rings may have something to flush. */
		break;
	default:
		goto out;
	}
	set_bit(DAPX_EP_TODO_BREAK, &ep->todo);
	dapx_object_queue_work(&ep->obj, &ep->work);
out:
	spin_unlock_irqrestore(&ep->lock, flags);
}

/* Ends the connection if the status of a completion shows that it broke. */
void dapx_ep_check_status(struct dapx_ep *ep, enum dapx_status status)
{
	if (status == DAPX_STATUS_SUCCESS)
		return;
	/*
	 * An iWARP device flushes when the stream ends, before its connection manager reports
	 * how. An InfiniBand queue pair flushes only after an error, or when the module told it
	 * to.
	 */
	if (status == DAPX_STATUS_FLUSHED && ep->obj.ctx->dev->iwarp)
		return;
	dapx_ep_fail(ep);
}

/* The device has completed one of the endpoint's requests or receives. */
void dapx_ep_completed(struct dapx_ep *ep)
{
	if (unlikely(READ_ONCE(ep->state) == DAPX_EP_DISCONNECTED || READ_ONCE(ep->dead)) &&
	    !atomic_read(&ep->sq.outstanding) && !atomic_read(&ep->rq.outstanding)) {
		wake_up(&ep->drained);
		dapx_ep_try_end(ep);
	}
	if (unlikely(READ_ONCE(ep->state) == DAPX_EP_DISCONNECT_PENDING ||
		     READ_ONCE(ep->peer_left)) &&
	    dapx_queue_idle(&ep->sq))
		dapx_ep_queue(ep, DAPX_EP_TODO_DISCONNECT);
}

static void dapx_ep_work(struct work_struct *work)
{
	struct dapx_ep *ep = container_of(work, struct dapx_ep, work);
	unsigned long todo = xchg(&ep->todo, 0);

	if (READ_ONCE(ep->dead))
		return;
	if (todo & BIT(DAPX_EP_TODO_KICK)) {
		dapx_queue_run(&ep->rq);
		dapx_queue_run(&ep->sq);
		dapx_ep_completed(ep);
	}
	if (todo & BIT(DAPX_EP_TODO_BIND)) {
		dapx_queue_pass_barriers(&ep->sq);
		dapx_ep_completed(ep);
	}
	if (todo & BIT(DAPX_EP_TODO_DISCONNECT))
		dapx_ep_disconnect_drained(ep);
	if (todo & BIT(DAPX_EP_TODO_BREAK)) {
		dapx_ep_qp_to_error(ep);
		dapx_ep_update_modes(ep);
		dapx_cm_disconnect(ep->cm);
	}
}

/* -------------------------------------------------------------------- making */

static u32 dapx_ep_known_flags(const struct dapx_device *dev)
{
	u32 flags = DAPX_EP_XRC;

	if (dev->caps & DAPX_DEVICE_SOLICITED)
		flags |= DAPX_EP_SOLICITED;
	if (dev->caps & DAPX_DEVICE_TIMEWAIT_EXIT)
		flags |= DAPX_EP_TIMEWAIT_EXIT;
	return flags;
}

int dapx_ep_attr_check(struct dapx_context *ctx, const struct dapx_ep_attr *attr, bool srq)
{
	const struct ib_device_attr *dev = &ctx->dev->ibdev->attrs;
	u32 max_depth = dapx_device_max_depth(ctx->dev);

	if (attr->flags & ~dapx_ep_known_flags(ctx->dev))
		return -EOPNOTSUPP;
	/* It has no receives, so there are no solicited ones. */
	if (attr->flags & DAPX_EP_XRC &&
	    (attr->flags & DAPX_EP_SOLICITED || srq || attr->recv_depth))
		return -EINVAL;
	if (!attr->send_depth || attr->send_depth > max_depth || attr->recv_depth > max_depth ||
	    (srq && attr->recv_depth))
		return -EINVAL;
	if (!attr->max_send_sge || attr->max_send_sge > min_t(u32, DAPX_MAX_SGE, dev->max_send_sge))
		return -EINVAL;
	if (attr->recv_depth ? !attr->max_recv_sge ||
	    attr->max_recv_sge > min_t(u32, DAPX_MAX_SGE, dev->max_recv_sge) :
	    attr->max_recv_sge > DAPX_MAX_SGE)
		return -EINVAL;
	if (attr->max_inline > DAPX_MAX_INLINE ||
	    attr->max_rd_atomic > min(dev->max_qp_init_rd_atom, U8_MAX) ||
	    attr->max_dest_rd_atomic > min(dev->max_qp_rd_atom, U8_MAX))
		return -EINVAL;
	return 0;
}

/* The layout of an endpoint's rings, and the size of their memory. */
struct dapx_ep_plan {
	u32 send_stride, recv_stride;
	u32 recv_off;
	size_t size;
};

static void dapx_ep_plan(struct dapx_ep_plan *plan, const struct dapx_ep_attr *attr)
{
	plan->send_stride = dapx_send_stride(attr->max_send_sge, attr->max_inline);
	plan->recv_stride = dapx_recv_stride(attr->max_recv_sge);
	plan->recv_off = DAPX_EP_ENTRIES_OFF +
			 roundup_pow_of_two(attr->send_depth) * plan->send_stride;
	plan->size = plan->recv_off;
	if (attr->recv_depth)
		plan->size += roundup_pow_of_two(attr->recv_depth) * plan->recv_stride;
}

/* Returns the memory that an endpoint with @attr takes at least. */
size_t dapx_ep_memory(const struct dapx_ep_attr *attr)
{
	struct dapx_ep_plan plan;

	dapx_ep_plan(&plan, attr);
	return sizeof(struct dapx_ep) + plan.size +
	       (attr->send_depth + attr->recv_depth) * sizeof(struct dapx_slot);
}

/* Makes rings and queues that other threads do not find. @wanted has been checked. */
struct dapx_ep_rings *dapx_ep_make_rings(struct dapx_ep *ep, const struct dapx_ep_attr *wanted)
{
	struct dapx_ep_attr *attr;
	struct dapx_ep_rings *rings;
	struct dapx_ep_plan plan;
	int ret;

	rings = kzalloc(sizeof(*rings), GFP_KERNEL_ACCOUNT);
	if (!rings)
		return ERR_PTR(-ENOMEM);
	attr = &rings->attr;
	*attr = *wanted;
	attr->send_depth = roundup_pow_of_two(attr->send_depth);
	if (attr->recv_depth)
		attr->recv_depth = roundup_pow_of_two(attr->recv_depth);
	dapx_ep_plan(&plan, attr);
	rings->ring = dapx_ring_create(ep->obj.ctx, plan.size);
	if (IS_ERR(rings->ring)) {
		ret = PTR_ERR(rings->ring);
		rings->ring = NULL;
		goto err;
	}
	dapx_ring_view_init(&rings->sq.view, rings->ring, DAPX_EP_SEND_CONTROL_OFF,
			    DAPX_EP_ENTRIES_OFF, attr->send_depth, plan.send_stride,
			    &rings->send_layout);
	ret = dapx_queue_init(&rings->sq, ep->transport->send_ops, ep, attr->max_send_sge,
			      ep->transport->maps_inline ? attr->max_inline : 0);
	if (!ret && attr->recv_depth) {
		dapx_ring_view_init(&rings->rq.view, rings->ring, DAPX_EP_RECV_CONTROL_OFF,
				    plan.recv_off, attr->recv_depth, plan.recv_stride,
				    &rings->recv_layout);
		ret = dapx_queue_init(&rings->rq, &dapx_recv_ops, ep, attr->max_recv_sge, 0);
	}
	if (!ret)
		return rings;
err:
	dapx_ep_free_rings(ep, rings);
	return ERR_PTR(ret);
}

/*
 * Exchanges the endpoint's rings with @rings. Nothing is in either, and the endpoint has no work;
 * EBADFD: it has.
 */
int dapx_ep_exchange_rings(struct dapx_ep *ep, struct dapx_ep_rings *rings)
{
	int ret;

	ret = dapx_queue_exchange(&ep->sq, &rings->sq);
	if (ret)
		return ret;
	ret = dapx_queue_exchange(&ep->rq, &rings->rq);
	if (ret) {
		dapx_queue_exchange(&ep->sq, &rings->sq);
		return ret;
	}
	swap(ep->attr, rings->attr);
	swap(ep->send_layout, rings->send_layout);
	swap(ep->recv_layout, rings->recv_layout);
	spin_lock_irq(&ep->lock);
	swap(ep->ring, rings->ring);
	ep->state_word = ep->ring->va + DAPX_EP_STATE_OFF;
	WRITE_ONCE(*ep->state_word, ep->state);
	spin_unlock_irq(&ep->lock);
	return 0;
}

void dapx_ep_free_rings(struct dapx_ep *ep, struct dapx_ep_rings *rings)
{
	dapx_ep_unmap_inline(ep, &rings->sq);
	dapx_queue_exit(&rings->sq);
	dapx_queue_exit(&rings->rq);
	dapx_ring_destroy(rings->ring);
	kfree(rings);
}

/*
 * Creates an endpoint with rings and slots, but without PD, EVDs and queue pair. @attr has been
 * checked.
 */
struct dapx_ep *dapx_ep_alloc(struct dapx_context *ctx, const struct dapx_ep_attr *attr,
			      bool srq)
{
	struct dapx_ep_rings *rings;
	struct dapx_object *obj;
	struct dapx_ep *ep;
	int ret;

	obj = dapx_object_alloc(ctx, &dapx_ep_class);
	if (IS_ERR(obj))
		return ERR_CAST(obj);
	ep = to_dapx_ep(obj);
	spin_lock_init(&ep->lock);
	mutex_init(&ep->qp_mutex);
	spin_lock_init(&ep->recv_cq_lock);
	ep->lazy.fetch = dapx_ep_fetch_lazy;
	ep->min_rnr_timer = DAPX_MIN_RNR_TIMER;
	ep->pd_member.check = dapx_ep_check_qp_error;
	INIT_WORK(&ep->recv_cq_work, dapx_ep_recv_cq_work);
	init_irq_work(&ep->cq_irq_work, dapx_ep_cq_irq_work);
	init_waitqueue_head(&ep->drained);
	INIT_WORK(&ep->work, dapx_ep_work);
	INIT_DELAYED_WORK(&ep->deadline, dapx_ep_deadline);
	dapx_queue_init_events(&ep->sq, obj);
	/* Without receives of its own, the endpoint has the events of those of an SRQ. */
	dapx_queue_init_events(&ep->rq, obj);
	dapx_event_source_init(&ep->connection_events, obj, NULL);
	dapx_event_source_init(&ep->async_events, obj, NULL);
	ep->response.node.source = &ep->connection_events;
	ep->outcome.node.source = &ep->connection_events;
	ep->end.node.source = &ep->connection_events;
	ep->timewait_exit.node.source = &ep->connection_events;
	ep->async.node.source = &ep->connection_events;

	ep->transport = attr->flags & DAPX_EP_XRC ? &dapx_xrc_transport : &dapx_rc_transport;
	rings = dapx_ep_make_rings(ep, attr);
	if (IS_ERR(rings)) {
		ret = PTR_ERR(rings);
		goto err;
	}
	/* It has none, so this does not fail. */
	dapx_ep_exchange_rings(ep, rings);
	dapx_ep_free_rings(ep, rings);
	ret = ep->transport->create ? ep->transport->create(ep) : 0;
	if (ret)
		goto err;
	dapx_ep_update_modes(ep);
	return ep;

err:
	dapx_object_abort(obj);
	return ERR_PTR(ret);
}

/* Destroys an endpoint that has not been published. */
void dapx_ep_abort(struct dapx_ep *ep)
{
	dapx_ep_class.destroy(&ep->obj);
	dapx_object_abort(&ep->obj);
}

/* Receives may have to be fetched when the process asks for events. */
void dapx_ep_use_recv_evd(struct dapx_ep *ep, struct dapx_evd *evd)
{
	if (!(ep->attr.flags & DAPX_EP_SOLICITED))
		return;
	dapx_evd_add_lazy(evd, &ep->lazy);
	/* A thread may be waiting for any event there already. */
	dapx_ep_arm(ep, evd);
}

void dapx_ep_unuse_recv_evd(struct dapx_ep *ep, struct dapx_evd *evd)
{
	if (ep->attr.flags & DAPX_EP_SOLICITED)
		dapx_evd_del_lazy(evd, &ep->lazy);
}

/* Takes an optional EVD into use; handle 0 means none. */
static int dapx_ep_use_evd(struct dapx_ep *ep, u32 handle, struct dapx_evd **place)
{
	struct dapx_evd *evd;

	if (!handle)
		return 0;
	evd = dapx_use_evd(ep->obj.ctx, handle);
	if (IS_ERR(evd))
		return PTR_ERR(evd);
	*place = evd;
	return 0;
}

static int dapx_ep_use_srq(struct dapx_ep *ep, u32 handle)
{
	struct dapx_srq *srq = dapx_use_srq(ep->obj.ctx, handle);

	if (IS_ERR(srq))
		return PTR_ERR(srq);
	ep->srq = srq;
	/*
	 * Devices differ in which PD they check a receive against, so both must be the same.
	 * Devices do not know XRC's SRQs.
	 */
	return srq->pd != ep->pd || srq->xrcd ? -EINVAL : 0;
}

static int dapx_ep_use_xrcd(struct dapx_ep *ep, u32 handle)
{
	struct dapx_xrcd *xrcd;

	if (!(ep->attr.flags & DAPX_EP_XRC))
		return -EINVAL;
	xrcd = dapx_use_xrcd(ep->obj.ctx, handle);
	if (IS_ERR(xrcd))
		return PTR_ERR(xrcd);
	ep->xrcd = xrcd;
	return 0;
}

/* If this fails, dapx_ep_destroy() releases the objects that are in use by then. */
static int dapx_ep_use_objects(struct dapx_ep *ep, const struct dapx_ep_create *cmd)
{
	struct dapx_pd *pd = dapx_use_pd(ep->obj.ctx, cmd->pd);
	struct dapx_evd *evd;
	int ret = 0;

	if (IS_ERR(pd))
		return PTR_ERR(pd);
	ep->pd = pd;
	dapx_pd_add_member(pd, &ep->pd_member);
	if (cmd->srq)
		ret = dapx_ep_use_srq(ep, cmd->srq);
	if (ret)
		return ret;
	evd = dapx_use_evd(ep->obj.ctx, cmd->request_evd);
	if (IS_ERR(evd))
		return PTR_ERR(evd);
	ep->request_evd = evd;
	ret = dapx_ep_use_evd(ep, cmd->connect_evd, &ep->connect_evd);
	if (!ret)
		ret = dapx_ep_use_evd(ep, cmd->async_evd, &ep->async_evd);
	if (ep->async_evd)
		ep->async.node.source = &ep->async_events;
	if (!ret && cmd->xrcd)
		ret = dapx_ep_use_xrcd(ep, cmd->xrcd);
	if (ret)
		return ret;
	if (!cmd->recv_evd)
		return cmd->srq || cmd->attr.recv_depth ? -EINVAL : 0;
	evd = dapx_use_evd(ep->obj.ctx, cmd->recv_evd);
	if (IS_ERR(evd))
		return PTR_ERR(evd);
	ep->recv_evd = evd;
	dapx_ep_use_recv_evd(ep, evd);
	return 0;
}

int dapx_cmd_ep_create(struct dapx_ucmd *ucmd)
{
	struct dapx_ep_create *cmd = ucmd->cmd;
	struct dapx_qp new;
	struct dapx_ep *ep;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->srq) {
		/* Checked before the sizes, as with an SRQ some are not allowed. */
		struct dapx_srq *srq = dapx_get_srq(ucmd->ctx, cmd->srq);

		if (IS_ERR(srq))
			return PTR_ERR(srq);
		dapx_object_put(&srq->obj);
	}
	ret = dapx_ep_attr_check(ucmd->ctx, &cmd->attr, cmd->srq);
	if (ret)
		return ret;
	ep = dapx_ep_alloc(ucmd->ctx, &cmd->attr, cmd->srq);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	ep->obj.user_data = cmd->user_data;
	ret = dapx_ep_use_objects(ep, cmd);
	if (ret)
		goto err;
	ret = dapx_ep_make_qp(ep, ep->pd, &new);
	if (ret)
		goto err;
	dapx_ep_install_qp(ep, &new);

	cmd->out_ep = ep->obj.handle;
	cmd->out_qp_num = ep->qp->qp_num;
	cmd->out_state_off = DAPX_EP_STATE_OFF;
	cmd->out_send_ring = ep->send_layout;
	cmd->out_recv_ring = ep->recv_layout;
	ret = dapx_respond(ucmd);
	if (ret)
		goto err;
	dapx_object_publish(&ep->obj);
	return 0;

err:
	dapx_ep_abort(ep);
	return ret;
}

/* ------------------------------------------------------------------ teardown */

/*
 * Steps 1 and 2 of the teardown, and the beginning of step 4: from here on the endpoint takes
 * no work, and the device drops or flushes what it has.
 */
static void dapx_ep_stop(struct dapx_object *obj)
{
	struct dapx_ep *ep = to_dapx_ep(obj);
	unsigned long flags;
	bool dead;

	/* Before the endpoint is marked dead, so that it continues meanwhile. */
	if (READ_ONCE(ep->qp_state) != IB_QPS_ERR && !READ_ONCE(ep->dead))
		dapx_device_let_acknowledge(ep->obj.ctx->dev, READ_ONCE(ep->received_at));
	spin_lock_irqsave(&ep->lock, flags);
	dead = ep->dead;
	WRITE_ONCE(ep->dead, true);
	spin_unlock_irqrestore(&ep->lock, flags);
	if (dead)
		return;
	trace_dapx_teardown(&ep->obj, "stop");
	if (ep->cm)
		dapx_cm_begin_shutdown(ep->cm);
	cancel_work_sync(&ep->work);
	cancel_delayed_work_sync(&ep->deadline);
	dapx_ep_update_modes(ep);
	dapx_queue_quiesce(&ep->sq);
	dapx_ep_qp_stop(ep);
}

static int dapx_ep_outstanding(struct dapx_ep *ep)
{
	return atomic_read(&ep->sq.outstanding) + atomic_read(&ep->rq.outstanding);
}

/* The wait is bounded: a device that does not flush must not delay the exit of a process. */
static void dapx_ep_drain(struct dapx_ep *ep)
{
	int left = dapx_ep_outstanding(ep), before;
	unsigned int ticks = 0;

	while (left) {
		dapx_ep_fetch(ep);
		wait_event_timeout(ep->drained, !dapx_ep_outstanding(ep), 1);
		before = left;
		left = dapx_ep_outstanding(ep);
		ticks = left == before ? ticks + 1 : 0;
		if (ticks >= DAPX_DRAIN_TICKS) {
			pr_warn_ratelimited("dapx: %s does not flush qp 0x%x\n",
					    ep->obj.ctx->dev->name, ep->qp->qp_num);
			break;
		}
	}
}

static void dapx_ep_drop_events(struct dapx_ep *ep)
{
	dapx_queue_drop_events(&ep->sq, ep->request_evd);
	dapx_queue_drop_events(&ep->rq, ep->recv_evd);
	if (ep->connect_evd)
		dapx_evd_drop(ep->connect_evd, &ep->connection_events);
	if (ep->async_evd)
		dapx_evd_drop(ep->async_evd, &ep->async_events);
}

/*
 * Steps 3 and 4 of the teardown of a stopped endpoint, and the beginning of step 5. May be
 * called again.
 */
static void dapx_ep_settle(struct dapx_object *obj)
{
	struct dapx_ep *ep = to_dapx_ep(obj);

	if (ep->settled)
		return;

	/* 3.: the connection manager is done, and none of its callbacks runs */
	trace_dapx_teardown(&ep->obj, "cm");
	if (ep->cm) {
		dapx_cm_shutdown(ep->cm);
		dapx_cm_cancel_destroy(ep->cm);
	}

	/* 4.: nothing is left at the device, which may have dropped it in step 2 */
	trace_dapx_teardown(&ep->obj, "drain");
	if (ep->qp && !dapx_device_drops(obj->ctx->dev)) {
		dapx_ep_drain(ep);
		/* Endpoints that settle together share the grace period that this begins. */
		ep->silence = dapx_device_silence_qp(obj->ctx->dev, ep->qp);
	}
	ep->settled = true;
}

/*
 * The ordered teardown of an endpoint, for whatever reason it ends. The numbers are those of
 * Documentation/architecture.rst.
 */
static void dapx_ep_teardown(struct dapx_ep *ep)
{
	/* 1. and 2.: nothing is posted, the ring has no consumer, no work runs */
	dapx_ep_stop(&ep->obj);

	/* 3. and 4. */
	dapx_ep_settle(&ep->obj);

	/* 5.: the queue pair and its CQs are destroyed: no completion handler runs any more */
	trace_dapx_teardown(&ep->obj, "destroy");
	dapx_ep_destroy_qp(ep);

	/* 6.: none of its events waits for room in an EVD, and nothing queues its work any more */
	trace_dapx_teardown(&ep->obj, "events");
	dapx_ep_drop_events(ep);
	cancel_work_sync(&ep->work);
	dapx_queue_drop_barriers(&ep->sq);
	if (ep->cm)
		dapx_cm_release_ep(ep->cm);
	ep->cm = NULL;
	dapx_netlink_notify(ep->obj.ctx, &(struct dapx_notification) {
			    .event = DAPX_GENL_EVENT_EP_GONE,
			    .handle = ep->obj.handle });
}

static void dapx_ep_destroy(struct dapx_object *obj)
{
	struct dapx_ep *ep = to_dapx_ep(obj);

	dapx_ep_teardown(ep);
	if (ep->transport->destroy)
		ep->transport->destroy(ep);
	dapx_ep_unmap_inline(ep, &ep->sq);
	if (ep->recv_evd) {
		dapx_ep_unuse_recv_evd(ep, ep->recv_evd);
		dapx_object_unuse(&ep->recv_evd->obj);
	}
	if (ep->async_evd)
		dapx_object_unuse(&ep->async_evd->obj);
	if (ep->connect_evd)
		dapx_object_unuse(&ep->connect_evd->obj);
	if (ep->request_evd)
		dapx_object_unuse(&ep->request_evd->obj);
	if (ep->xrcd)
		dapx_object_unuse(&ep->xrcd->obj);
	if (ep->srq)
		dapx_object_unuse(&ep->srq->obj);
	if (ep->pd) {
		dapx_pd_del_member(ep->pd, &ep->pd_member);
		dapx_object_unuse(&ep->pd->obj);
	}
}

/* Delivers all remaining events of a connection that is over. */
static void dapx_ep_finish(struct dapx_ep *ep)
{
	dapx_ep_qp_to_error(ep);
	dapx_ep_update_modes(ep);
	dapx_ep_drain(ep);
	/* The work completes binds that were waiting for the requests. */
	flush_work(&ep->work);
	dapx_ep_update_modes(ep);
	dapx_ep_post_end(ep);
}

/* Tears the endpoint down, and initializes it again. The endpoint's mutex is held. */
static void dapx_ep_reinit(struct dapx_ep *ep, const struct dapx_qp *new)
{
	dapx_ep_finish(ep);
	dapx_ep_teardown(ep);
	if (ep->transport->reset)
		ep->transport->reset(ep);
	dapx_queue_reset(&ep->sq);
	if (ep->rq.ops)
		dapx_queue_reset(&ep->rq);
	dapx_ep_install_qp(ep, new);

	spin_lock_irq(&ep->lock);
	ep->todo = 0;
	WRITE_ONCE(ep->remote_qp_num, 0);
	ep->reject_reason = 0;
	ep->agreed_rd_atomic = 0;
	ep->agreed_dest_rd_atomic = 0;
	ep->peer_data_len = 0;
	ep->answered = false;
	ep->by_steps = false;
	WRITE_ONCE(ep->responded, false);
	ep->timewait_over = false;
	WRITE_ONCE(ep->established, false);
	WRITE_ONCE(ep->peer_left, false);
	WRITE_ONCE(ep->received_at, 0);
	ep->settled = false;
	WRITE_ONCE(ep->dead, false);
	dapx_ep_set_state(ep, DAPX_EP_UNCONNECTED);
	spin_unlock_irq(&ep->lock);
	dapx_ep_update_modes(ep);
}

static int dapx_ep_free(struct dapx_object *obj, struct dapx_ucmd *ucmd)
{
	struct dapx_ep *ep = to_dapx_ep(obj);
	unsigned long flags;
	int ret = 0;

	mutex_lock(&obj->mutex);
	spin_lock_irqsave(&ep->lock, flags);
	switch (ep->state) {
	case DAPX_EP_RESERVED:
	case DAPX_EP_PASSIVE_PENDING:
	case DAPX_EP_TENTATIVE_PENDING:
		ret = -EBADFD;
		break;
	default:
		break;
	}
	spin_unlock_irqrestore(&ep->lock, flags);
	if (!ret)
		ret = dapx_object_unpublish(obj, false);
	if (!ret)
		dapx_ep_destroy(obj);
	mutex_unlock(&obj->mutex);
	if (!ret)
		dapx_object_put(obj);
	return ret;
}

static void dapx_ep_release(struct dapx_object *obj)
{
	struct dapx_ep *ep = to_dapx_ep(obj);

	dapx_queue_exit(&ep->sq);
	dapx_queue_exit(&ep->rq);
	dapx_ring_destroy(ep->ring);
}

static u32 dapx_ep_object_state(struct dapx_object *obj)
{
	return READ_ONCE(to_dapx_ep(obj)->state);
}

static int dapx_ep_fill(struct dapx_object *obj, struct sk_buff *skb)
{
	struct dapx_ep *ep = to_dapx_ep(obj);

	if (READ_ONCE(ep->dead))
		return 0;
	if ((ep->pd && nla_put_u32(skb, DAPX_OBJECT_ATTR_PD, ep->pd->obj.handle)) ||
	    (ep->srq && nla_put_u32(skb, DAPX_OBJECT_ATTR_SRQ, ep->srq->obj.handle)) ||
	    (ep->qp && nla_put_u32(skb, DAPX_OBJECT_ATTR_QP, ep->qp->qp_num)) ||
	    nla_put_u32(skb, DAPX_OBJECT_ATTR_REMOTE_QP, READ_ONCE(ep->remote_qp_num)) ||
	    nla_put_u32(skb, DAPX_OBJECT_ATTR_REQUESTS, atomic_read(&ep->sq.outstanding)) ||
	    nla_put_u32(skb, DAPX_OBJECT_ATTR_RECEIVES, atomic_read(&ep->rq.outstanding)) ||
	    nla_put_u64_64bit(skb, DAPX_OBJECT_ATTR_POSTED, READ_ONCE(ep->sq.taken),
			      DAPX_OBJECT_ATTR_PAD) ||
	    nla_put_u64_64bit(skb, DAPX_OBJECT_ATTR_RECEIVED, READ_ONCE(ep->received),
			      DAPX_OBJECT_ATTR_PAD))
		return -EMSGSIZE;
	return ep->cm ? dapx_cm_put_addresses(ep->cm, skb) : 0;
}

static int dapx_ep_doorbell(struct dapx_object *obj, u32 doorbells)
{
	struct dapx_ep *ep = to_dapx_ep(obj);
	int ret = 0;

	if (doorbells & DAPX_DOORBELL_RECV) {
		if (!READ_ONCE(ep->rq.ops))
			return -EINVAL;
		ret = dapx_queue_run(&ep->rq);
		if (ret)
			return ret;
	}
	if (doorbells & DAPX_DOORBELL_SEND) {
		switch (READ_ONCE(ep->state)) {
		case DAPX_EP_CONNECTED:
		case DAPX_EP_DISCONNECTED:
			ret = dapx_queue_run(&ep->sq);
			break;
		default:
			ret = -EBADFD;
			break;
		}
	}
	return ret;
}

const struct dapx_object_class dapx_ep_class = {
	.type = DAPX_OBJECT_EP,
	.size = sizeof(struct dapx_ep),
	.free = dapx_ep_free,
	.doorbells = DAPX_DOORBELL_SEND | DAPX_DOORBELL_RECV,
	.doorbell = dapx_ep_doorbell,
	.stop = dapx_ep_stop,
	.settle = dapx_ep_settle,
	.destroy = dapx_ep_destroy,
	.release = dapx_ep_release,
	.state = dapx_ep_object_state,
	.fill_locked = dapx_ep_fill,
};

/* ------------------------------------------------------------------ commands */

static u32 dapx_handle_of(const struct dapx_object *obj)
{
	return obj->handle;
}

/*
 * Reports the negotiated depths. An iWARP driver negotiates them, but does not report the
 * result.
 */
static void dapx_ep_agreed(struct dapx_ep *ep, struct dapx_ep_query *cmd)
{
	bool connected = READ_ONCE(ep->state) == DAPX_EP_CONNECTED ||
			 READ_ONCE(ep->state) == DAPX_EP_DISCONNECT_PENDING;
	bool iwarp = ep->obj.ctx->dev->iwarp;

	cmd->out_rd_atomic = 0;
	cmd->out_dest_rd_atomic = 0;
	if (!connected)
		return;
	mutex_lock(&ep->qp_mutex);
	cmd->out_rd_atomic = iwarp ? ep->conn_param.initiator_depth : ep->agreed_rd_atomic;
	cmd->out_dest_rd_atomic = iwarp ? ep->conn_param.responder_resources :
					  ep->agreed_dest_rd_atomic;
	mutex_unlock(&ep->qp_mutex);
}

int dapx_cmd_ep_query(struct dapx_ucmd *ucmd)
{
	struct dapx_ep_query *cmd = ucmd->cmd;
	struct dapx_ep *ep;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	ep = dapx_ep_lock(ucmd->ctx, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	cmd->out_pd = ep->pd ? dapx_handle_of(&ep->pd->obj) : 0;
	cmd->out_srq = ep->srq ? dapx_handle_of(&ep->srq->obj) : 0;
	cmd->out_request_evd = ep->request_evd ? dapx_handle_of(&ep->request_evd->obj) : 0;
	cmd->out_recv_evd = ep->recv_evd ? dapx_handle_of(&ep->recv_evd->obj) : 0;
	cmd->out_connect_evd = ep->connect_evd ? dapx_handle_of(&ep->connect_evd->obj) : 0;
	cmd->out_async_evd = ep->async_evd ? dapx_handle_of(&ep->async_evd->obj) : 0;
	cmd->out_user_data = ep->obj.user_data;
	cmd->out_attr = ep->attr;
	cmd->out_qp_num = ep->qp ? ep->qp->qp_num : 0;
	cmd->out_requests = dapx_queue_posted(&ep->sq);
	cmd->out_receives = ep->rq.ops ? dapx_queue_posted(&ep->rq) : 0;
	cmd->out_state_off = DAPX_EP_STATE_OFF;
	cmd->out_send_ring = ep->send_layout;
	cmd->out_recv_ring = ep->recv_layout;
	memset(&cmd->out_local, 0, sizeof(cmd->out_local));
	memset(&cmd->out_remote, 0, sizeof(cmd->out_remote));
	cmd->out_cm = 0;
	spin_lock_irq(&ep->lock);
	cmd->out_state = ep->state;
	cmd->out_remote_qp_num = ep->remote_qp_num;
	cmd->out_private_data_len = ep->peer_data_len;
	memcpy(cmd->out_private_data, ep->peer_data, sizeof(ep->peer_data));
	cmd->out_reject_reason = ep->reject_reason;
	spin_unlock_irq(&ep->lock);
	dapx_ep_agreed(ep, cmd);
	if (ep->cm) {
		cmd->out_cm = dapx_handle_of(&ep->cm->obj);
		dapx_cm_addresses(ep->cm, &cmd->out_local, &cmd->out_remote);
	}
	ret = dapx_respond(ucmd);
	dapx_ep_unlock(ep);
	return ret;
}

int dapx_cmd_ep_reset(struct dapx_ucmd *ucmd)
{
	struct dapx_ep_reset *cmd = ucmd->cmd;
	struct dapx_qp new;
	struct dapx_ep *ep;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	ep = dapx_ep_lock(ucmd->ctx, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	switch (READ_ONCE(ep->state)) {
	case DAPX_EP_UNCONNECTED:
		cmd->out_qp_num = ep->qp ? ep->qp->qp_num : 0;
		ret = dapx_respond(ucmd);
		break;
	case DAPX_EP_DISCONNECTED:
		/* What may fail comes first, so that a failure changes nothing. */
		ret = dapx_ep_make_qp(ep, ep->pd, &new);
		if (ret)
			break;
		cmd->out_qp_num = new.qp->qp_num;
		ret = dapx_respond(ucmd);
		if (ret)
			dapx_qp_discard(&new);
		else
			dapx_ep_reinit(ep, &new);
		break;
	default:
		ret = -EBADFD;
		break;
	}
	dapx_ep_unlock(ep);
	return ret;
}
