// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: endpoints: what they are made of, and how they end
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include <net/netlink.h>

#include "dapx_private.h"
#include "trace.h"

/* The rings' mapping: state, control words of both rings, then their entries. */
#define DAPX_EP_STATE_OFF 0
#define DAPX_EP_SEND_CONTROL_OFF DAPX_RING_LINE
#define DAPX_EP_RECV_CONTROL_OFF (DAPX_EP_SEND_CONTROL_OFF + DAPX_RING_CONTROL_SIZE)
#define DAPX_EP_ENTRIES_OFF (DAPX_EP_RECV_CONTROL_OFF + DAPX_RING_CONTROL_SIZE)

/*
 * A device that flushes nothing for so long never will; then the queue pair is destroyed
 * undrained. It is counted in ticks that were seen: a machine that stood still, as a guest
 * may, has no device that hangs.
 */
#define DAPX_DRAIN_TICKS (5 * HZ)

/* An endpoint for a command that looks at all of it, or changes it: alive, its mutex held. */
struct dapx_ep *dapx_ep_lock(struct dapx_context *ctx, u32 handle)
{
	struct dapx_object *obj = dapx_object_get(ctx, handle, DAPX_OBJECT_EP);

	if (IS_ERR(obj))
		return ERR_CAST(obj);
	mutex_lock(&obj->mutex);
	if (!to_dapx_ep(obj)->dead)
		return to_dapx_ep(obj);
	dapx_ep_unlock(to_dapx_ep(obj));
	return ERR_PTR(-ENOENT);
}

void dapx_ep_unlock(struct dapx_ep *ep)
{
	mutex_unlock(&ep->obj.mutex);
	dapx_object_put(&ep->obj);
}

/* ------------------------------------------------------------------ receives */

static enum dapx_queue_mode dapx_recv_mode(struct dapx_queue *q)
{
	struct dapx_ep *ep = q->owner;

	if (READ_ONCE(ep->dead))
		return DAPX_QUEUE_STOP;
	if (READ_ONCE(ep->state) == DAPX_EP_DISCONNECTED)
		return DAPX_QUEUE_FLUSH;
	switch (READ_ONCE(ep->qp_state)) {
	case IB_QPS_INIT:
	case IB_QPS_RTR:
	case IB_QPS_RTS:
		return DAPX_QUEUE_RUN;
	default:
		return DAPX_QUEUE_HOLD;
	}
}

static enum dapx_status dapx_recv_post(struct dapx_queue *q, struct dapx_slot *slot)
{
	struct dapx_ep *ep = q->owner;
	enum dapx_status status;
	struct ib_recv_wr wr;
	int ret;

	status = dapx_recv_build(q, ep->pd, slot, &wr);
	if (status != DAPX_STATUS_SUCCESS)
		return status;
	dapx_slot_post(slot);
	ret = ib_post_recv(ep->qp, &wr, NULL);
	if (!ret)
		return DAPX_STATUS_SUCCESS;
	dapx_slot_unpost(slot);
	return dapx_post_status(ret);
}

static void dapx_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct dapx_slot *slot = container_of(wc->wr_cqe, struct dapx_slot, cqe);
	struct dapx_queue *q = slot->q;
	struct dapx_ep *ep = q->owner;

	dapx_slot_returned(slot);
	dapx_recv_complete(ep, slot, wc);
	dapx_queue_retire(q);
	dapx_ep_completed(ep);
}

static void dapx_recv_fault(struct dapx_queue *q)
{
	dapx_ep_fail(q->owner);
}

static void dapx_recv_kick(struct dapx_queue *q)
{
	dapx_ep_queue(q->owner, DAPX_EP_TODO_KICK);
}

static struct dapx_evd *dapx_recv_evd(struct dapx_queue *q)
{
	struct dapx_ep *ep = q->owner;

	return READ_ONCE(ep->dead) ? NULL : ep->recv_evd;
}

static const struct dapx_queue_ops dapx_recv_ops = {
	.hold_is_busy = true,
	.fault_at_once = true,
	.busy_from = DAPX_RECV_BUSY_FROM,
	.busy_until = DAPX_RECV_BUSY_UNTIL,
	.mode = dapx_recv_mode,
	.prepare = dapx_recv_prepare,
	.post = dapx_recv_post,
	.done = dapx_recv_done,
	.fault = dapx_recv_fault,
	.kick = dapx_recv_kick,
	.evd = dapx_recv_evd,
};

/*
 * Receives of an endpoint that tells solicited ones apart: its CQ wakes us for
 * those only, the others are fetched when the process looks for events.
 */
static void dapx_ep_fetch(struct dapx_ep *ep)
{
	struct ib_wc wc[4];
	int i, n;

	spin_lock_bh(&ep->recv_cq_lock);
	while (ep->recv_cq && (n = ib_poll_cq(ep->recv_cq, ARRAY_SIZE(wc), wc)) > 0)
		for (i = 0; i < n; i++)
			wc[i].wr_cqe->done(ep->recv_cq, &wc[i]);
	spin_unlock_bh(&ep->recv_cq_lock);
}

/*
 * @evd is that of the receives, held by the caller or by RCU: the endpoint may be losing it
 * just now.
 *
 * For solicited receives only, unless somebody waits for any, or the flush of a
 * queue pair in error is to be seen: not every device calls that solicited.
 */
void dapx_ep_arm(struct dapx_ep *ep, struct dapx_evd *evd)
{
	bool any = READ_ONCE(ep->qp_state) == IB_QPS_ERR || dapx_evd_wants_any(evd);

	/* Armed first: what comes later notifies anew, what came before is fetched. */
	spin_lock_bh(&ep->recv_cq_lock);
	if (ep->recv_cq)
		ib_req_notify_cq(ep->recv_cq, any ? IB_CQ_NEXT_COMP : IB_CQ_SOLICITED);
	spin_unlock_bh(&ep->recv_cq_lock);
	dapx_ep_fetch(ep);
}

static void dapx_ep_recv_cq_work(struct work_struct *work)
{
	struct dapx_ep *ep = container_of(work, struct dapx_ep, recv_cq_work);
	struct dapx_evd *evd;

	rcu_read_lock();
	evd = READ_ONCE(ep->recv_evd);
	if (evd) {
		dapx_ep_arm(ep, evd);
		dapx_evd_wake_solicited(evd);
	}
	rcu_read_unlock();
}

static void dapx_ep_recv_cq_handler(struct ib_cq *cq, void *context)
{
	struct dapx_ep *ep = context;

	dapx_object_queue_work(&ep->obj, &ep->recv_cq_work);
}

/* --------------------------------------------------------------------- state */

void dapx_ep_set_state(struct dapx_ep *ep, enum dapx_ep_state state)
{
	lockdep_assert_held(&ep->lock);
	trace_dapx_ep_state(&ep->obj, ep->state, state);
	WRITE_ONCE(ep->state, state);
	/* For the process to read; what it writes there is never looked at. */
	WRITE_ONCE(*ep->state_word, state);
	dapx_netlink_notify(ep->obj.ctx, &(struct dapx_notification) {
			    .event = DAPX_GENL_EVENT_EP_STATE,
			    .handle = ep->obj.handle,
			    .state = state });
}

/* After each change of state or of the queue pair's state. */
void dapx_ep_update_modes(struct dapx_ep *ep)
{
	dapx_queue_update_mode(&ep->sq);
	dapx_queue_update_mode(&ep->rq);
	dapx_queue_run(&ep->rq);
	dapx_queue_run(&ep->sq);
}

/*
 * Takes no lock: slots come free below evd->lock, which is taken below ep->lock.
 * So work may be queued while the endpoint ends; it then does nothing.
 */
void dapx_ep_queue(struct dapx_ep *ep, enum dapx_ep_todo todo)
{
	if (READ_ONCE(ep->dead))
		return;
	set_bit(todo, &ep->todo);
	dapx_object_queue_work(&ep->obj, &ep->work);
}

void dapx_ep_post_event(struct dapx_ep *ep, struct dapx_event_node *node, u32 what, int error)
{
	lockdep_assert_held(&ep->lock);
	if (ep->dead || !ep->connect_evd)
		return;
	node->solicited = true;
	node->event = (struct dapx_event) {
		.type = DAPX_EVENT_CONNECTION,
		.handle = ep->obj.handle,
		.user_data = ep->obj.user_data,
		.connection = { .what = what, .error = error },
	};
	dapx_evd_post(ep->connect_evd, node);
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
		dapx_ep_set_state(ep, DAPX_EP_DISCONNECTED);
		dapx_ep_post_event(ep, &ep->end, DAPX_CONNECTION_ACCEPT_ERROR, -ECONNABORTED);
		break;
	case DAPX_EP_CONNECTED:
	case DAPX_EP_DISCONNECT_PENDING:
		dapx_ep_set_state(ep, DAPX_EP_DISCONNECTED);
		dapx_ep_post_event(ep, &ep->end, DAPX_CONNECTION_BROKEN, -EIO);
		break;
	case DAPX_EP_DISCONNECTED:
		/* Not news, but the rings may have something to flush. */
		break;
	default:
		goto out;
	}
	set_bit(DAPX_EP_TODO_BREAK, &ep->todo);
	dapx_object_queue_work(&ep->obj, &ep->work);
out:
	spin_unlock_irqrestore(&ep->lock, flags);
}

/* What a completion's status says of the connection. */
void dapx_ep_check_status(struct dapx_ep *ep, enum dapx_status status)
{
	if (status == DAPX_STATUS_SUCCESS)
		return;
	/*
	 * An iWARP device flushes when the stream ends, before its connection manager
	 * says how. An InfiniBand queue pair only when it failed, or we told it to.
	 */
	if (status == DAPX_STATUS_FLUSHED && ep->obj.ctx->dev->iwarp)
		return;
	dapx_ep_fail(ep);
}

/* The device is done with one of its requests or receives. */
void dapx_ep_completed(struct dapx_ep *ep)
{
	if (unlikely(READ_ONCE(ep->dead)) && !atomic_read(&ep->sq.outstanding) &&
	    !atomic_read(&ep->rq.outstanding))
		wake_up(&ep->drained);
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
	if (todo & BIT(DAPX_EP_TODO_NOTIFY))
		dapx_cm_established(ep->cm);
	if (todo & BIT(DAPX_EP_TODO_KICK)) {
		dapx_queue_run(&ep->rq);
		dapx_queue_run(&ep->sq);
		dapx_ep_completed(ep);
	}
	if (todo & BIT(DAPX_EP_TODO_BIND))
		dapx_rmr_binds_pass(ep);
	if (todo & BIT(DAPX_EP_TODO_DISCONNECT))
		dapx_ep_disconnect_drained(ep);
	if (todo & BIT(DAPX_EP_TODO_BREAK)) {
		dapx_ep_qp_to_error(ep);
		dapx_ep_update_modes(ep);
		dapx_cm_disconnect(ep->cm);
	}
}

/* ---------------------------------------------------------------- queue pair */

static void dapx_cq_irq_work(struct irq_work *work)
{
	struct dapx_ep *ep = container_of(work, struct dapx_ep, cq_irq_work);

	irq_poll_sched(&ep->cq->iop);
}

static void dapx_cq_handler(struct ib_cq *cq, void *context)
{
	struct dapx_ep *ep = context;
	struct dapx_evd *recv_evd, *request_evd;

	if (!dapx_cq_notify(cq, &ep->cq_irq_work))
		return;
	rcu_read_lock();
	recv_evd = READ_ONCE(ep->recv_evd);
	request_evd = READ_ONCE(ep->request_evd);
	if (recv_evd)
		dapx_evd_expect(recv_evd);
	if (request_evd && request_evd != recv_evd)
		dapx_evd_expect(request_evd);
	rcu_read_unlock();
}

static void dapx_qp_event(struct ib_event *event, void *context)
{
	struct dapx_event fatal = {
		.type = DAPX_EVENT_ASYNC,
		.async.what = DAPX_ASYNC_EP_ERROR,
	};
	struct dapx_ep *ep = context;
	struct dapx_evd *evd;
	unsigned long flags;

	switch (event->event) {
	case IB_EVENT_COMM_EST:
		dapx_ep_queue(ep, DAPX_EP_TODO_NOTIFY);
		break;
	case IB_EVENT_QP_FATAL:
		spin_lock_irqsave(&ep->lock, flags);
		evd = ep->async_evd ? ep->async_evd : ep->connect_evd;
		fatal.handle = ep->obj.handle;
		fatal.user_data = ep->obj.user_data;
		if (!ep->dead && evd)
			dapx_evd_post_async(evd, &ep->async, &fatal);
		spin_unlock_irqrestore(&ep->lock, flags);
		dapx_ep_fail(ep);
		break;
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
		dapx_ep_fail(ep);
		break;
	default:
		break;
	}
}

int dapx_ep_access_flags(struct dapx_ep *ep)
{
	int flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;

	/* Its peers send, and nothing else. */
	if (ep->xrc)
		return IB_ACCESS_LOCAL_WRITE;
	if (ep->qp->device->attrs.atomic_cap != IB_ATOMIC_NONE)
		flags |= IB_ACCESS_REMOTE_ATOMIC;
	return flags;
}

/* What an endpoint needs of a device; made as a whole before the old one goes. */
struct dapx_ep_qp {
	struct ib_qp *qp;
	struct ib_cq *cq;
	struct ib_cq *recv_cq;
};

static int dapx_ep_map_inline(struct dapx_ep *ep)
{
	struct ib_device *ibdev = ep->obj.ctx->dev->ibdev;
	size_t size = (size_t)ep->sq.view.depth * ep->sq.max_inline;
	u64 dma;

	if (!ep->sq.inline_data || ep->sq.inline_dma)
		return 0;
	dma = ib_dma_map_single(ibdev, ep->sq.inline_data, size, DMA_TO_DEVICE);
	if (ib_dma_mapping_error(ibdev, dma))
		return -ENOMEM;
	ep->sq.inline_dma = dma;
	return 0;
}

static void dapx_ep_unmap_inline(struct dapx_ep *ep)
{
	if (ep->sq.inline_dma)
		ib_dma_unmap_single(ep->obj.ctx->dev->ibdev, ep->sq.inline_dma,
				    (size_t)ep->sq.view.depth * ep->sq.max_inline, DMA_TO_DEVICE);
	ep->sq.inline_dma = 0;
}

static int dapx_ep_make_qp(struct dapx_ep *ep, struct dapx_pd *pd, struct dapx_ep_qp *out)
{
	struct ib_device *ibdev = ep->obj.ctx->dev->ibdev;
	struct ib_pd *ibpd = ep->xrc ? ep->obj.ctx->dev->xrc_pd : pd->ibpd;
	u32 send_depth = ep->xrc ? DAPX_XRC_CREDITS : ep->attr.send_depth;
	u32 recv_depth = ep->xrc ? dapx_xrc_answers(ep->obj.ctx->dev) :
			 ep->srq ? ep->srq->rq.view.depth : ep->attr.recv_depth;
	bool lazy = ep->attr.flags & DAPX_EP_SOLICITED && recv_depth;
	struct ib_qp_init_attr attr = {
		.event_handler = dapx_qp_event,
		.qp_context = ep,
		.srq = ep->srq ? ep->srq->ibsrq : NULL,
		.cap = {
			.max_send_wr = send_depth,
			.max_recv_wr = ep->srq ? 0 : recv_depth,
			.max_send_sge = ep->xrc ? 1 : max_t(u32, ep->attr.max_send_sge, 1),
			.max_recv_sge = ep->xrc ? 1 : ep->srq ? 0 : ep->attr.max_recv_sge,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_cq_init_attr cq_attr = { .cqe = recv_depth };
	const char *owner = ep->obj.ctx->owner;
	int ret;

	ret = dapx_ep_map_inline(ep);
	if (ret)
		return ret;
	/* Sized by this endpoint's own rings: it cannot overflow. */
	out->cq = __ib_alloc_cq_any(ibdev, ep, send_depth + (lazy ? 0 : recv_depth),
				    IB_POLL_SOFTIRQ, owner);
	if (IS_ERR(out->cq))
		return PTR_ERR(out->cq);
	out->cq->comp_handler = dapx_cq_handler;
	out->recv_cq = NULL;
	if (lazy) {
		out->recv_cq = __ib_create_cq(ibdev, dapx_ep_recv_cq_handler, NULL, ep, &cq_attr,
					      owner);
		if (IS_ERR(out->recv_cq)) {
			ret = PTR_ERR(out->recv_cq);
			goto err_cq;
		}
		ib_req_notify_cq(out->recv_cq, IB_CQ_SOLICITED);
	}
	attr.send_cq = out->cq;
	attr.recv_cq = lazy ? out->recv_cq : out->cq;
	out->qp = ib_create_qp_kernel(ibpd, &attr, owner);
	if (IS_ERR(out->qp)) {
		ret = PTR_ERR(out->qp);
		goto err_recv_cq;
	}
	return 0;

err_recv_cq:
	if (out->recv_cq)
		ib_destroy_cq(out->recv_cq);
err_cq:
	ib_free_cq(out->cq);
	/* rxe has a socket for each queue pair. */
	return ret == -ENFILE ? -ENOMEM : ret;
}

/* One that was not installed. */
static void dapx_ep_discard_qp(const struct dapx_ep_qp *new)
{
	ib_destroy_qp(new->qp);
	if (new->recv_cq)
		ib_destroy_cq(new->recv_cq);
	ib_free_cq(new->cq);
}

static void dapx_ep_install_qp(struct dapx_ep *ep, const struct dapx_ep_qp *new)
{
	ep->cq = new->cq;
	ep->qp = new->qp;
	/* Another thread may look for events already. */
	spin_lock_bh(&ep->recv_cq_lock);
	ep->recv_cq = new->recv_cq;
	spin_unlock_bh(&ep->recv_cq_lock);
	ep->silent_error = false;
	WRITE_ONCE(ep->qp_state, IB_QPS_RESET);
}

/* When this returns, no completion handler runs any more. */
static void dapx_ep_destroy_qp(struct dapx_ep *ep)
{
	struct ib_cq *recv_cq;

	if (ep->qp) {
		dapx_device_silence_qp(ep->obj.ctx->dev, ep->qp);
		ib_destroy_qp(ep->qp);
	}
	ep->qp = NULL;
	/* Receives of an SRQ are not waited for: what the device gave back is taken here. */
	if (ep->cq) {
		irq_work_sync(&ep->cq_irq_work);
		ib_process_cq_direct(ep->cq, -1);
	}
	if (ep->recv_cq) {
		/* Without a queue pair nothing notifies any more. */
		cancel_work_sync(&ep->recv_cq_work);
		dapx_ep_fetch(ep);
		spin_lock_bh(&ep->recv_cq_lock);
		recv_cq = ep->recv_cq;
		ep->recv_cq = NULL;
		spin_unlock_bh(&ep->recv_cq_lock);
		ib_destroy_cq(recv_cq);
	}
	if (ep->cq)
		ib_free_cq(ep->cq);
	ep->cq = NULL;
	WRITE_ONCE(ep->qp_state, IB_QPS_RESET);
}

/* ECANCELED: the queue pair is in error already, and stays there. */
int dapx_ep_qp_modify(struct dapx_ep *ep, struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state from;
	int ret = -ECANCELED;

	mutex_lock(&ep->qp_mutex);
	from = ep->qp_state;
	if (ep->qp && from != IB_QPS_ERR) {
		ret = ib_modify_qp(ep->qp, attr, mask);
		if (!ret && mask & IB_QP_MAX_QP_RD_ATOMIC)
			ep->agreed_rd_atomic = attr->max_rd_atomic;
		if (!ret && mask & IB_QP_MAX_DEST_RD_ATOMIC)
			ep->agreed_dest_rd_atomic = attr->max_dest_rd_atomic;
		if (!ret && mask & IB_QP_STATE)
			WRITE_ONCE(ep->qp_state, attr->qp_state);
		/* Its consumer may have stepped it here before the RDMA CM does. */
		if (!ret && ep->xrc && from == IB_QPS_RESET && attr->qp_state == IB_QPS_INIT)
			ret = dapx_xrc_sender_start(ep);
	}
	mutex_unlock(&ep->qp_mutex);
	return ret;
}

void dapx_ep_qp_to_error(struct dapx_ep *ep)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	mutex_lock(&ep->qp_mutex);
	if (ep->qp && ep->qp_state != IB_QPS_ERR) {
		/* From RESET there is no way to ERROR, and nothing to flush. */
		if (ep->qp_state != IB_QPS_RESET)
			ib_modify_qp(ep->qp, &attr, IB_QP_STATE);
		WRITE_ONCE(ep->qp_state, IB_QPS_ERR);
		if (ep->recv_cq && ep->recv_evd)
			dapx_object_queue_work(&ep->obj, &ep->recv_cq_work);
	}
	if (ep->xrc)
		dapx_xrc_sender_stop(ep);
	mutex_unlock(&ep->qp_mutex);
}

/* For devices that do not say that a peer's request put the queue pair in error. */
void dapx_ep_check_qp_error(struct dapx_ep *ep)
{
	struct ib_qp_attr attr = {};
	struct ib_qp_init_attr init;
	bool broken = false;

	mutex_lock(&ep->qp_mutex);
	/* Whoever ends it says so first, and then takes this mutex. */
	if (!READ_ONCE(ep->dead) && ep->qp && ep->qp_state == IB_QPS_RTS &&
	    !ib_query_qp(ep->qp, &attr, IB_QP_STATE, &init) && attr.qp_state == IB_QPS_ERR) {
		/* At the second look: the peer is to hear of its refusal first. */
		broken = ep->silent_error;
		ep->silent_error = true;
	}
	mutex_unlock(&ep->qp_mutex);
	if (broken)
		dapx_ep_fail(ep);
}

/* -------------------------------------------------------------------- making */

int dapx_ep_attr_check(struct dapx_context *ctx, const struct dapx_ep_attr *attr, bool srq)
{
	const struct ib_device_attr *dev = &ctx->dev->ibdev->attrs;
	u32 max_depth = dapx_device_max_depth(ctx->dev);

	if (attr->flags & ~(DAPX_EP_SOLICITED | DAPX_EP_XRC) ||
	    (attr->flags & DAPX_EP_SOLICITED &&
	     !(dapx_device_caps(ctx->dev) & DAPX_DEVICE_SOLICITED)))
		return -EOPNOTSUPP;
	/* It has no receives, of which some could be solicited. */
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

/* Where an endpoint's rings are, and with them how large the memory is. */
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

/* What an endpoint with @attr takes at least. */
size_t dapx_ep_memory(const struct dapx_ep_attr *attr)
{
	struct dapx_ep_plan plan;

	dapx_ep_plan(&plan, attr);
	return sizeof(struct dapx_ep) + plan.size +
	       (attr->send_depth + attr->recv_depth) * sizeof(struct dapx_slot);
}

/* Rings and slots, without PD, EVDs and queue pair. @attr is checked. */
struct dapx_ep *dapx_ep_alloc(struct dapx_context *ctx, const struct dapx_ep_attr *attr,
			      bool srq)
{
	struct dapx_ep_plan plan;
	struct dapx_object *obj;
	struct dapx_ep *ep;
	bool xrc;
	int ret;

	obj = dapx_object_alloc(ctx, &dapx_ep_class);
	if (IS_ERR(obj))
		return ERR_CAST(obj);
	ep = to_dapx_ep(obj);
	spin_lock_init(&ep->lock);
	mutex_init(&ep->qp_mutex);
	spin_lock_init(&ep->recv_cq_lock);
	INIT_WORK(&ep->recv_cq_work, dapx_ep_recv_cq_work);
	init_irq_work(&ep->cq_irq_work, dapx_cq_irq_work);
	init_waitqueue_head(&ep->drained);
	INIT_WORK(&ep->work, dapx_ep_work);
	INIT_DELAYED_WORK(&ep->deadline, dapx_ep_deadline);
	dapx_queue_init_events(&ep->sq, obj, dapx_bind_gone);
	/* Without receives of its own, it has the events of an SRQ's. */
	dapx_queue_init_events(&ep->rq, obj, NULL);
	dapx_event_source_init(&ep->connection_events, obj, NULL);
	dapx_event_source_init(&ep->async_events, obj, NULL);
	ep->outcome.source = &ep->connection_events;
	ep->end.source = &ep->connection_events;
	ep->async.source = &ep->connection_events;

	ep->attr = *attr;
	ep->attr.send_depth = roundup_pow_of_two(attr->send_depth);
	if (attr->recv_depth)
		ep->attr.recv_depth = roundup_pow_of_two(attr->recv_depth);
	dapx_ep_plan(&plan, attr);
	ep->ring = dapx_ring_create(ctx, plan.size);
	if (IS_ERR(ep->ring)) {
		ret = PTR_ERR(ep->ring);
		ep->ring = NULL;
		goto err;
	}
	ep->state_word = ep->ring->va + DAPX_EP_STATE_OFF;

	dapx_ring_view_init(&ep->sq.view, ep->ring, DAPX_EP_SEND_CONTROL_OFF, DAPX_EP_ENTRIES_OFF,
			    ep->attr.send_depth, plan.send_stride, &ep->send_layout);
	xrc = attr->flags & DAPX_EP_XRC;
	ret = dapx_queue_init(&ep->sq, xrc ? &dapx_xrc_send_ops : &dapx_send_ops, ep,
			      attr->max_send_sge, xrc ? 0 : attr->max_inline);
	if (!ret && xrc)
		ret = dapx_xrc_sender_create(ep);
	if (ret)
		goto err;
	if (attr->recv_depth) {
		dapx_ring_view_init(&ep->rq.view, ep->ring, DAPX_EP_RECV_CONTROL_OFF,
				    plan.recv_off, ep->attr.recv_depth, plan.recv_stride,
				    &ep->recv_layout);
		ret = dapx_queue_init(&ep->rq, &dapx_recv_ops, ep, attr->max_recv_sge, 0);
		if (ret)
			goto err;
	}
	dapx_ep_update_modes(ep);
	return ep;

err:
	dapx_object_abort(obj);
	return ERR_PTR(ret);
}

/* Undoes dapx_ep_alloc() and what came after it, before it is published. */
void dapx_ep_abort(struct dapx_ep *ep)
{
	dapx_ep_class.destroy(&ep->obj);
	dapx_object_abort(&ep->obj);
}

static int dapx_evd_use(struct dapx_context *ctx, u32 handle, struct dapx_evd **evd)
{
	struct dapx_object *obj = dapx_object_use(ctx, handle, DAPX_OBJECT_EVD);

	if (IS_ERR(obj))
		return PTR_ERR(obj);
	*evd = to_dapx_evd(obj);
	return 0;
}

/*
 * The EVD to which @q's completions go is read under its lock, and changes under it, and
 * only while the queue has nothing that could still go to the old one. Who looks at the
 * pointer elsewhere does so under RCU, to wake whoever waits. EBADFD: something was taken.
 */
static int dapx_ep_change_evd(struct dapx_queue *q, struct dapx_evd **place, struct dapx_evd *evd)
{
	int ret = 0;

	spin_lock_bh(&q->lock);
	if (!q->ops || dapx_queue_all_ended(q)) {
		/* Binds, and what is left of an earlier connection's receives of an SRQ. */
		dapx_queue_drop_events(q, *place);
		WRITE_ONCE(*place, evd);
	} else {
		ret = -EBADFD;
	}
	spin_unlock_bh(&q->lock);
	return ret;
}

/* Of endpoints whose receives have to be fetched. */
static void dapx_ep_count_lazy(struct dapx_ep *ep, struct dapx_evd *evd, int change)
{
	if (ep->attr.flags & DAPX_EP_SOLICITED)
		dapx_evd_lazy(evd, change);
}

static int dapx_ep_use_objects(struct dapx_ep *ep, const struct dapx_ep_create *cmd)
{
	struct dapx_context *ctx = ep->obj.ctx;
	struct dapx_object *obj;
	struct dapx_evd *evd;
	int ret;

	obj = dapx_object_use(ctx, cmd->pd, DAPX_OBJECT_PD);
	if (IS_ERR(obj))
		return PTR_ERR(obj);
	ep->pd = to_dapx_pd(obj);
	if (cmd->srq) {
		obj = dapx_object_use(ctx, cmd->srq, DAPX_OBJECT_SRQ);
		if (IS_ERR(obj))
			return PTR_ERR(obj);
		ep->srq = to_dapx_srq(obj);
		/*
		 * Devices differ in whose keys a receive is checked against. Of an XRC SRQ they
		 * do not know.
		 */
		if (ep->srq->pd != ep->pd || ep->srq->xrcd)
			return -EINVAL;
	}
	ret = dapx_evd_use(ctx, cmd->request_evd, &ep->request_evd);
	if (ret)
		return ret;
	if (cmd->connect_evd) {
		ret = dapx_evd_use(ctx, cmd->connect_evd, &ep->connect_evd);
		if (ret)
			return ret;
	}
	if (cmd->async_evd) {
		ret = dapx_evd_use(ctx, cmd->async_evd, &ep->async_evd);
		if (ret)
			return ret;
		ep->async.source = &ep->async_events;
	}
	if (cmd->xrcd) {
		if (!ep->xrc)
			return -EINVAL;
		ret = dapx_xrcd_use(ctx, cmd->xrcd, &ep->xrcd);
		if (ret)
			return ret;
	}
	if (!cmd->recv_evd)
		return cmd->srq || cmd->attr.recv_depth ? -EINVAL : 0;
	ret = dapx_evd_use(ctx, cmd->recv_evd, &evd);
	if (ret)
		return ret;
	ep->recv_evd = evd;
	dapx_ep_count_lazy(ep, evd, 1);
	return 0;
}

int dapx_cmd_ep_create(struct dapx_ucmd *ucmd)
{
	struct dapx_ep_create *cmd = ucmd->cmd;
	struct dapx_ep_qp new;
	struct dapx_ep *ep;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->srq) {
		/* Before sizes are looked at, of which it forbids some. */
		struct dapx_object *srq = dapx_object_get(ucmd->ctx, cmd->srq, DAPX_OBJECT_SRQ);

		if (IS_ERR(srq))
			return PTR_ERR(srq);
		dapx_object_put(srq);
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
 * Steps 1 and 2 of the one ordering, and the start of step 4: from here on the
 * endpoint takes nothing, and the device flushes what it has.
 */
void dapx_ep_stop(struct dapx_ep *ep)
{
	unsigned long flags;
	bool dead;

	/* Before it is marked: meanwhile it goes on as it did. */
	if (READ_ONCE(ep->qp_state) != IB_QPS_ERR && !READ_ONCE(ep->dead))
		dapx_device_let_acknowledge(ep->obj.ctx->dev, READ_ONCE(ep->received_at));
	spin_lock_irqsave(&ep->lock, flags);
	dead = ep->dead;
	ep->dead = true;
	spin_unlock_irqrestore(&ep->lock, flags);
	if (dead)
		return;
	trace_dapx_teardown(&ep->obj, "stop");
	cancel_work_sync(&ep->work);
	cancel_delayed_work_sync(&ep->deadline);
	dapx_ep_update_modes(ep);
	dapx_queue_quiesce(&ep->sq);
	dapx_ep_qp_to_error(ep);
}

static int dapx_ep_outstanding(struct dapx_ep *ep)
{
	return atomic_read(&ep->sq.outstanding) + atomic_read(&ep->rq.outstanding);
}

/* Bounded: a device that does not flush must not hold up a process' end. */
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
 * The one ordering by which endpoints end, whoever ends them. The numbers are
 * those of Documentation/architecture.rst.
 */
static void dapx_ep_teardown(struct dapx_ep *ep)
{
	/* 1. and 2.: no posts, no ring consumer, no work of ours */
	dapx_ep_stop(ep);

	/* 3.: no connection manager, and no callback of it */
	trace_dapx_teardown(&ep->obj, "cm");
	if (ep->cm) {
		/* As dapx_ep_message_arrived() had begun to say. */
		if (ep->established)
			dapx_cm_established(ep->cm);
		dapx_cm_shutdown(ep->cm);
		dapx_cm_cancel_destroy(ep->cm);
	}

	/* 4.: the device has nothing any more */
	trace_dapx_teardown(&ep->obj, "drain");
	if (ep->qp)
		dapx_ep_drain(ep);

	/* 5.: the queue pair and its CQs: no completion handler runs any more */
	trace_dapx_teardown(&ep->obj, "destroy");
	dapx_ep_destroy_qp(ep);

	/* 6.: nothing of it waits for room in an EVD, nobody is left to queue its work */
	trace_dapx_teardown(&ep->obj, "events");
	dapx_ep_drop_events(ep);
	cancel_work_sync(&ep->work);
	dapx_rmr_binds_drop(ep);
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
	dapx_xrc_sender_destroy(ep);
	dapx_ep_unmap_inline(ep);
	if (ep->recv_evd) {
		dapx_ep_count_lazy(ep, ep->recv_evd, -1);
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
	if (ep->pd)
		dapx_object_unuse(&ep->pd->obj);
}

/* Ends as in a teardown, and begins anew. The endpoint's mutex is held. */
static void dapx_ep_reinit(struct dapx_ep *ep, const struct dapx_ep_qp *new)
{
	dapx_ep_teardown(ep);
	if (ep->xrc)
		dapx_xrc_sender_reset(ep);
	dapx_queue_reset(&ep->sq);
	if (ep->rq.ops)
		dapx_queue_reset(&ep->rq);
	dapx_ep_install_qp(ep, new);

	spin_lock_irq(&ep->lock);
	ep->todo = 0;
	ep->remote_qp_num = 0;
	ep->reject_reason = 0;
	ep->agreed_rd_atomic = 0;
	ep->agreed_dest_rd_atomic = 0;
	ep->peer_data_len = 0;
	ep->answered = false;
	ep->established = false;
	ep->peer_left = false;
	ep->received_at = 0;
	ep->dead = false;
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

const struct dapx_object_class dapx_ep_class = {
	.type = DAPX_OBJECT_EP,
	.size = sizeof(struct dapx_ep),
	.free = dapx_ep_free,
	.destroy = dapx_ep_destroy,
	.release = dapx_ep_release,
	.state = dapx_ep_object_state,
	.fill_locked = dapx_ep_fill,
};

/* ------------------------------------------------------------------ commands */

static int dapx_ep_ring_doorbell(struct dapx_ep *ep, u32 flags)
{
	int ret = 0;

	if (flags & DAPX_DOORBELL_RECV) {
		if (!ep->rq.ops)
			return -EINVAL;
		ret = dapx_queue_run(&ep->rq);
		if (ret)
			return ret;
	}
	if (flags & DAPX_DOORBELL_SEND) {
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

int dapx_cmd_doorbell(struct dapx_ucmd *ucmd)
{
	struct dapx_doorbell *cmd = ucmd->cmd;
	struct dapx_object *obj;
	u32 fitting;
	int ret;

	if (cmd->flags & ~(DAPX_DOORBELL_SEND | DAPX_DOORBELL_RECV | DAPX_DOORBELL_EVENTS))
		return -EOPNOTSUPP;
	if (!cmd->flags || cmd->__reserved)
		return -EINVAL;
	obj = dapx_object_get(ucmd->ctx, cmd->handle, DAPX_OBJECT_ANY);
	if (IS_ERR(obj))
		return PTR_ERR(obj);

	switch (obj->class->type) {
	case DAPX_OBJECT_EP:
		fitting = DAPX_DOORBELL_SEND | DAPX_DOORBELL_RECV;
		ret = cmd->flags & ~fitting ? -EINVAL :
		      dapx_ep_ring_doorbell(to_dapx_ep(obj), cmd->flags);
		break;
	case DAPX_OBJECT_SRQ:
		ret = cmd->flags & ~DAPX_DOORBELL_RECV ? -EINVAL :
		      dapx_srq_doorbell(to_dapx_srq(obj));
		break;
	case DAPX_OBJECT_EVD:
		ret = cmd->flags & ~DAPX_DOORBELL_EVENTS ? -EINVAL :
		      dapx_evd_doorbell(to_dapx_evd(obj));
		break;
	default:
		ret = -ENOENT;
		break;
	}
	dapx_object_put(obj);
	return ret;
}

static u32 dapx_handle_of(const struct dapx_object *obj)
{
	return obj->handle;
}

/* Depths; an iWARP driver agrees on them with the peer, and tells nobody. */
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
	cmd->out_requests = atomic_read(&ep->sq.outstanding);
	cmd->out_receives = atomic_read(&ep->rq.outstanding);
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

/* What a mask asks for, looked up and counted as used. */
struct dapx_ep_change {
	struct dapx_object *pd;
	struct dapx_object *request_evd;
	struct dapx_object *recv_evd;
	struct dapx_object *connect_evd;
};

static int dapx_ep_change_lookup(struct dapx_context *ctx, const struct dapx_ep_modify *cmd,
				 struct dapx_ep_change *change)
{
	struct {
		u32 bit;
		u32 handle;
		enum dapx_object_type type;
		struct dapx_object **obj;
	} wanted[] = {
		{ DAPX_EP_MODIFY_PD, cmd->pd, DAPX_OBJECT_PD, &change->pd },
		{ DAPX_EP_MODIFY_REQUEST_EVD, cmd->request_evd, DAPX_OBJECT_EVD,
		  &change->request_evd },
		{ DAPX_EP_MODIFY_RECV_EVD, cmd->recv_evd, DAPX_OBJECT_EVD, &change->recv_evd },
		{ DAPX_EP_MODIFY_CONNECT_EVD, cmd->connect_evd, DAPX_OBJECT_EVD,
		  &change->connect_evd },
	};
	struct dapx_object *obj;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (!(cmd->mask & wanted[i].bit))
			continue;
		obj = dapx_object_use(ctx, wanted[i].handle, wanted[i].type);
		if (IS_ERR(obj))
			return PTR_ERR(obj);
		*wanted[i].obj = obj;
	}
	return 0;
}

static void dapx_ep_change_drop(struct dapx_ep_change *change)
{
	if (change->pd)
		dapx_object_unuse(change->pd);
	if (change->request_evd)
		dapx_object_unuse(change->request_evd);
	if (change->recv_evd)
		dapx_object_unuse(change->recv_evd);
	if (change->connect_evd)
		dapx_object_unuse(change->connect_evd);
}

/* A new PD needs a new queue pair. */
static int dapx_ep_change_pd(struct dapx_ep *ep, struct dapx_ep_change *change)
{
	struct dapx_pd *old = ep->pd, *pd = to_dapx_pd(change->pd);
	struct dapx_ep_qp new;
	int ret;

	if (ep->rq.ops && ep->rq.head != READ_ONCE(*ep->rq.view.tail))
		return -EBADFD;
	if (atomic_read(&ep->rq.outstanding) || ep->qp_state != IB_QPS_RESET)
		return -EBADFD;
	ret = dapx_ep_make_qp(ep, pd, &new);
	if (ret)
		return ret;
	dapx_ep_destroy_qp(ep);
	dapx_ep_install_qp(ep, &new);
	ep->pd = pd;
	change->pd = old ? &old->obj : NULL;
	return 0;
}

static int dapx_ep_modify_fields(struct dapx_ep *ep, const struct dapx_ep_modify *cmd)
{
	const struct ib_device_attr *dev = &ep->obj.ctx->dev->ibdev->attrs;
	struct dapx_ep_change change = {};
	struct dapx_evd *evd;
	int ret;

	ret = dapx_ep_change_lookup(ep->obj.ctx, cmd, &change);
	if (ret)
		goto out;
	ret = -EINVAL;
	if (cmd->mask & DAPX_EP_MODIFY_RD_ATOMIC &&
	    (cmd->max_rd_atomic > min(dev->max_qp_init_rd_atom, U8_MAX) ||
	     cmd->max_dest_rd_atomic > min(dev->max_qp_rd_atom, U8_MAX)))
		goto out;

	ret = -EBADFD;
	switch (READ_ONCE(ep->state)) {
	case DAPX_EP_UNCONNECTED:
	case DAPX_EP_TENTATIVE_PENDING:
		break;
	case DAPX_EP_RESERVED:
	case DAPX_EP_PASSIVE_PENDING:
		if (cmd->mask & DAPX_EP_MODIFY_PD)
			goto out;
		break;
	default:
		goto out;
	}
	if (cmd->mask & DAPX_EP_MODIFY_PD) {
		ret = dapx_ep_change_pd(ep, &change);
		if (ret)
			goto out;
	}
	/* With a new PD this does not fail: the queue pair never took a receive. */
	if (cmd->mask & DAPX_EP_MODIFY_RECV_EVD) {
		evd = ep->recv_evd;
		ret = dapx_ep_change_evd(&ep->rq, &ep->recv_evd, to_dapx_evd(change.recv_evd));
		if (ret)
			goto out;
		dapx_ep_count_lazy(ep, ep->recv_evd, 1);
		if (evd)
			dapx_ep_count_lazy(ep, evd, -1);
		change.recv_evd = evd ? &evd->obj : NULL;
	}
	/* Nor does this: before a connection no request is taken. */
	if (cmd->mask & DAPX_EP_MODIFY_REQUEST_EVD) {
		evd = ep->request_evd;
		ret = dapx_ep_change_evd(&ep->sq, &ep->request_evd,
					 to_dapx_evd(change.request_evd));
		if (ret)
			goto out;
		change.request_evd = evd ? &evd->obj : NULL;
	}
	spin_lock_irq(&ep->lock);
	if (cmd->mask & DAPX_EP_MODIFY_CONNECT_EVD) {
		evd = ep->connect_evd;
		if (evd)
			dapx_evd_drop(evd, &ep->connection_events);
		ep->connect_evd = to_dapx_evd(change.connect_evd);
		change.connect_evd = evd ? &evd->obj : NULL;
	}
	if (cmd->mask & DAPX_EP_MODIFY_USER_DATA)
		ep->obj.user_data = cmd->user_data;
	spin_unlock_irq(&ep->lock);
	if (cmd->mask & DAPX_EP_MODIFY_RD_ATOMIC) {
		ep->attr.max_rd_atomic = cmd->max_rd_atomic;
		ep->attr.max_dest_rd_atomic = cmd->max_dest_rd_atomic;
	}
	ret = 0;
out:
	dapx_ep_change_drop(&change);
	return ret;
}

static int dapx_ep_modify_qp(struct dapx_ep *ep, const struct dapx_qp_attr *step)
{
	static const struct {
		enum ib_qp_state qp_from;
		enum dapx_ep_state from;
		enum dapx_ep_state to;
	} steps[] = {
		[DAPX_QP_INIT] = { IB_QPS_RESET, DAPX_EP_UNCONNECTED, DAPX_EP_UNCONNECTED },
		[DAPX_QP_RTR] = { IB_QPS_INIT, DAPX_EP_UNCONNECTED, DAPX_EP_COMPLETION_PENDING },
		[DAPX_QP_RTS] = { IB_QPS_RTR, DAPX_EP_COMPLETION_PENDING, DAPX_EP_CONNECTED },
	};
	struct dapx_device *dev = ep->obj.ctx->dev;
	enum dapx_ep_state from, to;
	struct ib_qp_attr attr;
	int mask, ret;

	if (dev->iwarp)
		return -EOPNOTSUPP;
	if (!ep->qp || ep->cm)
		return -EBADFD;
	ret = dapx_qp_attr_build(dev, ep->port, step, &attr, &mask);
	if (ret)
		return ret;
	from = steps[step->state].from;
	to = steps[step->state].to;
	if (ep->qp_state != steps[step->state].qp_from || READ_ONCE(ep->state) != from)
		return -EBADFD;
	if (mask & IB_QP_ACCESS_FLAGS)
		attr.qp_access_flags = dapx_ep_access_flags(ep);
	if (ep->xrc && mask & IB_QP_RQ_PSN)
		attr.rq_psn = dapx_xrc_answer_psn(step->dest_qp_num, ep->qp->qp_num);
	if (ep->xrc && mask & IB_QP_MIN_RNR_TIMER)
		attr.min_rnr_timer = DAPX_XRC_ANSWER_TIMER;
	if (ep->xrc && mask & IB_QP_RNR_RETRY) {
		dapx_xrc_sender_set_retries(ep, step->rnr_retry);
		attr.rnr_retry = 7;
	}

	ret = dapx_ep_qp_modify(ep, &attr, mask);
	/* A queue pair in error; a GID index without a GID. */
	if (ret)
		return ret == -ECANCELED ? -EBADFD : ret == -ENODATA ? -EINVAL : ret;

	spin_lock_irq(&ep->lock);
	if (step->state == DAPX_QP_INIT)
		ep->port = step->port;
	else if (step->state == DAPX_QP_RTR)
		ep->remote_qp_num = step->dest_qp_num;
	/* A message may have broken it already. */
	if (ep->state == from && from != to)
		dapx_ep_set_state(ep, to);
	spin_unlock_irq(&ep->lock);
	dapx_ep_update_modes(ep);
	return 0;
}

int dapx_cmd_ep_modify(struct dapx_ucmd *ucmd)
{
	const struct dapx_ep_modify *cmd = ucmd->cmd;
	struct dapx_ep *ep;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->mask & ~(DAPX_EP_MODIFY_PD | DAPX_EP_MODIFY_REQUEST_EVD |
			  DAPX_EP_MODIFY_RECV_EVD | DAPX_EP_MODIFY_CONNECT_EVD |
			  DAPX_EP_MODIFY_RD_ATOMIC | DAPX_EP_MODIFY_USER_DATA |
			  DAPX_EP_MODIFY_QP))
		return -EOPNOTSUPP;
	if (cmd->__reserved || memchr_inv(cmd->qp.__reserved, 0, sizeof(cmd->qp.__reserved)) ||
	    (cmd->mask & DAPX_EP_MODIFY_QP && cmd->mask != DAPX_EP_MODIFY_QP))
		return -EINVAL;
	ep = dapx_ep_lock(ucmd->ctx, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	if (cmd->mask & DAPX_EP_MODIFY_QP)
		ret = dapx_ep_modify_qp(ep, &cmd->qp);
	else
		ret = dapx_ep_modify_fields(ep, cmd);
	dapx_ep_unlock(ep);
	return ret;
}

int dapx_cmd_ep_reset(struct dapx_ucmd *ucmd)
{
	struct dapx_ep_reset *cmd = ucmd->cmd;
	struct dapx_ep_qp new;
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
		/* What may fail comes first: then nothing has changed. */
		ret = dapx_ep_make_qp(ep, ep->pd, &new);
		if (ret)
			break;
		cmd->out_qp_num = new.qp->qp_num;
		ret = dapx_respond(ucmd);
		if (ret)
			dapx_ep_discard_qp(&new);
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
