// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: shared receive queues
 *
 * A plain SRQ belongs to the device, to which its receives are posted. An SRQ of an XRC domain
 * belongs to the module: a receive stays in the ring until a message needs it.
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include <net/netlink.h>

#include "ep.h"
#include "xrc/xrc.h"

#define DAPX_SRQ_ENTRIES_OFF DAPX_RING_CONTROL_SIZE

/* Called in any context, also while the SRQ is being freed. */
void dapx_srq_async(struct dapx_srq *srq, struct dapx_stored_event *stored, u32 what, int error)
{
	struct dapx_event event = {
		.type = DAPX_EVENT_ASYNC,
		.handle = srq->obj.handle,
		.user_data = srq->obj.user_data,
		.async = { .what = what, .error = error, .wr_id = srq->bad_wr_id },
	};
	unsigned long flags;

	spin_lock_irqsave(&srq->async_lock, flags);
	if (srq->async_evd)
		dapx_evd_post_async(srq->async_evd, stored, &event);
	spin_unlock_irqrestore(&srq->async_lock, flags);
}

void dapx_srq_kick(struct dapx_queue *q)
{
	struct dapx_srq *srq = q->owner;

	dapx_object_queue_work(&srq->obj, &srq->work);
}

static void dapx_srq_work(struct work_struct *work)
{
	struct dapx_srq *srq = container_of(work, struct dapx_srq, work);

	dapx_queue_run(&srq->rq);
}

/*
 * No connection is to blame for a bad receive, so the SRQ goes out of service. Called with
 * rq.lock held.
 */
enum dapx_status dapx_srq_refuse(struct dapx_srq *srq, struct dapx_slot *slot,
				 enum dapx_status status)
{
	srq->bad_wr_id = slot->node.wr_id;
	srq->bad_receive = status == DAPX_STATUS_LOCAL_PROTECTION ? -EACCES : -EINVAL;
	srq->rq.corrupt = true;
	return status;
}

void dapx_srq_fault(struct dapx_queue *q)
{
	struct dapx_srq *srq = q->owner;

	dapx_srq_async(srq, &srq->error_event, DAPX_ASYNC_SRQ_ERROR, srq->bad_receive ?: -EBADMSG);
}

/* ------------------------------------------------------------ of the device */

static enum dapx_queue_mode dapx_srq_mode(struct dapx_queue *q)
{
	struct dapx_srq *srq = q->owner;

	return READ_ONCE(srq->dead) ? DAPX_QUEUE_STOP : DAPX_QUEUE_RUN;
}

static enum dapx_status dapx_srq_post(struct dapx_queue *q, struct dapx_slot *slot)
{
	struct dapx_srq *srq = q->owner;
	enum dapx_status status;
	struct ib_recv_wr wr;
	int ret;

	status = dapx_recv_build(q, srq->pd, slot, &wr);
	if (status != DAPX_STATUS_SUCCESS)
		return dapx_srq_refuse(srq, slot, status);
	dapx_slot_post(q, slot);
	ret = ib_post_srq_recv(srq->ibsrq, &wr, NULL);
	if (!ret)
		return DAPX_STATUS_SUCCESS;
	dapx_slot_unpost(q, slot);
	return dapx_post_status(ret);
}

/* The device knows only of the receives that it has, which may be fewer than those in the ring. */
static void dapx_srq_count(struct dapx_srq *srq)
{
	struct dapx_queue *q = &srq->rq;
	u32 limit = READ_ONCE(srq->limit), left;

	spin_lock_bh(&q->lock);
	left = atomic_read(&q->outstanding) + READ_ONCE(*q->view.tail) - q->head;
	spin_unlock_bh(&q->lock);
	if (left < limit && cmpxchg(&srq->limit, limit, 0) == limit)
		dapx_srq_async(srq, &srq->limit_event, DAPX_ASYNC_SRQ_LIMIT, 0);
}

static void dapx_srq_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct dapx_slot *slot = container_of(wc->wr_cqe, struct dapx_slot, cqe);
	struct dapx_ep *ep = cq->cq_context;	/* wc->qp may be destroyed */
	struct dapx_queue *q = dapx_slot_queue(slot);
	struct dapx_srq *srq = q->owner;

	dapx_slot_returned(slot);
	slot->node.source = &ep->rq.events;
	dapx_recv_complete(ep, slot, wc);
	dapx_queue_retire(q);
	if (READ_ONCE(srq->counts))
		dapx_srq_count(srq);
}

static struct dapx_evd *dapx_srq_no_evd(struct dapx_queue *q)
{
	return NULL;
}

static const struct dapx_queue_ops dapx_srq_ops = {
	.srq = true,
	.busy_from = DAPX_RECV_BUSY_FROM,
	.busy_until = DAPX_RECV_BUSY_UNTIL,
	.mode = dapx_srq_mode,
	.prepare = dapx_recv_prepare,
	.post = dapx_srq_post,
	.done = dapx_srq_done,
	.fault = dapx_srq_fault,
	.kick = dapx_srq_kick,
	.evd = dapx_srq_no_evd,
};

static void dapx_srq_event(struct ib_event *event, void *context)
{
	struct dapx_srq *srq = context;

	switch (event->event) {
	case IB_EVENT_SRQ_LIMIT_REACHED:
		/* A resize may have set the limit again that this event is for. */
		if (xchg(&srq->limit, 0))
			dapx_srq_async(srq, &srq->limit_event, DAPX_ASYNC_SRQ_LIMIT, 0);
		break;
	case IB_EVENT_SRQ_ERR:
		dapx_srq_async(srq, &srq->error_event, DAPX_ASYNC_SRQ_ERROR, -EIO);
		break;
	default:
		break;
	}
}

static int dapx_srq_init_plain(struct dapx_srq *srq, u32 max_sge)
{
	struct ib_srq_init_attr attr = {
		.event_handler = dapx_srq_event,
		.srq_context = srq,
		.srq_type = IB_SRQT_BASIC,
		.attr = { .max_wr = srq->rq.view.depth, .max_sge = max_sge },
	};
	struct ib_srq *ibsrq = ib_create_srq(srq->pd->ibpd, &attr);

	if (IS_ERR(ibsrq))
		return PTR_ERR(ibsrq);
	srq->ibsrq = ibsrq;
	return 0;
}

/* ------------------------------------------------------------------ lifetime */

static int dapx_srq_doorbell(struct dapx_object *obj, u32 doorbells)
{
	struct dapx_srq *srq = to_dapx_srq(obj);
	int ret = dapx_queue_run(&srq->rq);

	return ret == -EBADMSG && srq->bad_receive ? -ENOTRECOVERABLE : ret;
}

static struct dapx_ring *dapx_srq_ring_create(struct dapx_srq *srq, u32 depth, u32 max_sge,
					      struct dapx_ring_view *view,
					      struct dapx_ring_layout *layout)
{
	u32 stride = dapx_recv_stride(max_sge);
	struct dapx_ring *ring;

	depth = roundup_pow_of_two(depth);
	ring = dapx_ring_create(srq->obj.ctx, DAPX_SRQ_ENTRIES_OFF + (size_t)depth * stride);
	if (!IS_ERR(ring))
		dapx_ring_view_init(view, ring, 0, DAPX_SRQ_ENTRIES_OFF, depth, stride, layout);
	return ring;
}

static int dapx_srq_init(struct dapx_srq *srq, struct dapx_srq_create *cmd)
{
	int ret;

	srq->ring = dapx_srq_ring_create(srq, cmd->depth, cmd->max_sge, &srq->rq.view,
					 &cmd->out_ring);
	if (IS_ERR(srq->ring)) {
		ret = PTR_ERR(srq->ring);
		srq->ring = NULL;
		return ret;
	}
	ret = dapx_queue_init(&srq->rq, srq->xrcd ? &dapx_srq_xrc_ops : &dapx_srq_ops, srq,
			      cmd->max_sge, 0);
	if (ret)
		return ret;
	ret = srq->xrcd ? dapx_srq_init_xrc(srq) : dapx_srq_init_plain(srq, cmd->max_sge);
	if (ret)
		return ret;
	dapx_queue_update_mode(&srq->rq);
	/* Sets the flag BUSY if the process needs no doorbell. */
	dapx_queue_run(&srq->rq);
	return 0;
}

static int dapx_srq_use_evd(struct dapx_srq *srq, u32 handle, struct dapx_evd **place)
{
	struct dapx_evd *evd;

	if (!handle)
		return 0;
	evd = dapx_use_evd(srq->obj.ctx, handle);
	if (IS_ERR(evd))
		return PTR_ERR(evd);
	*place = evd;
	return 0;
}

static int dapx_srq_use_objects(struct dapx_srq *srq, const struct dapx_srq_create *cmd)
{
	struct dapx_pd *pd = dapx_use_pd(srq->obj.ctx, cmd->pd);
	struct dapx_xrcd *xrcd;
	int ret;

	if (IS_ERR(pd))
		return PTR_ERR(pd);
	srq->pd = pd;
	ret = dapx_srq_use_evd(srq, cmd->evd, &srq->evd);
	srq->async_evd = srq->evd;
	if (!ret && cmd->async_evd && cmd->async_evd != cmd->evd)
		ret = dapx_srq_use_evd(srq, cmd->async_evd, &srq->async_evd);
	if (ret || !cmd->xrcd)
		return ret;
	xrcd = dapx_use_xrcd(srq->obj.ctx, cmd->xrcd);
	if (IS_ERR(xrcd))
		return PTR_ERR(xrcd);
	srq->xrcd = xrcd;
	return 0;
}

static int dapx_srq_check_depth(struct dapx_context *ctx, u32 depth, bool xrc)
{
	u32 max_depth = xrc ? dapx_max_ring_depth : dapx_device_max_srq_depth(ctx->dev);

	return depth && depth <= dapx_max_ring_depth && roundup_pow_of_two(depth) <= max_depth ?
	       0 : -EINVAL;
}

static int dapx_srq_check_sizes(struct dapx_context *ctx, const struct dapx_srq_create *cmd)
{
	const struct ib_device_attr *attrs = &ctx->dev->ibdev->attrs;
	u32 max_sge = cmd->xrcd ? DAPX_MAX_SGE : min_t(u32, DAPX_MAX_SGE, attrs->max_srq_sge);

	if (dapx_srq_check_depth(ctx, cmd->depth, cmd->xrcd) || !cmd->max_sge ||
	    cmd->max_sge > max_sge)
		return -EINVAL;
	/* The completions of an XRC SRQ need an EVD. */
	return cmd->xrcd && !cmd->evd ? -EINVAL : 0;
}

int dapx_cmd_srq_create(struct dapx_ucmd *ucmd)
{
	struct dapx_srq_create *cmd = ucmd->cmd;
	struct dapx_context *ctx = ucmd->ctx;
	struct dapx_object *obj;
	struct dapx_srq *srq;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (!cmd->xrcd && !ctx->dev->ibdev->attrs.max_srq)
		return -EOPNOTSUPP;
	obj = dapx_object_alloc(ctx, &dapx_srq_class);
	if (IS_ERR(obj))
		return PTR_ERR(obj);
	srq = to_dapx_srq(obj);
	INIT_WORK(&srq->work, dapx_srq_work);
	INIT_LIST_HEAD(&srq->entry);
	spin_lock_init(&srq->async_lock);
	dapx_queue_init_events(&srq->rq, obj);
	dapx_event_source_init(&srq->async_events, obj, NULL);
	srq->limit_event.node.source = &srq->async_events;
	srq->error_event.node.source = &srq->async_events;
	srq->obj.user_data = cmd->user_data;
	ret = dapx_srq_use_objects(srq, cmd);
	if (!ret)
		ret = dapx_srq_check_sizes(ctx, cmd);
	if (!ret)
		ret = dapx_srq_init(srq, cmd);
	if (!ret) {
		cmd->out_srq = obj->handle;
		cmd->out_srq_num = srq->number;
		ret = dapx_respond(ucmd);
	}
	if (ret) {
		obj->class->destroy(obj);
		dapx_object_abort(obj);
		return ret;
	}
	if (srq->xrcd)
		dapx_srq_publish_xrc(srq);
	dapx_object_publish(obj);
	return 0;
}

static void dapx_srq_destroy(struct dapx_object *obj)
{
	struct dapx_srq *srq = to_dapx_srq(obj);
	struct dapx_evd *async_evd;

	mutex_lock(&obj->mutex);
	WRITE_ONCE(srq->dead, true);
	mutex_unlock(&obj->mutex);
	if (srq->xrcd)
		dapx_srq_unpublish_xrc(srq);
	dapx_queue_update_mode(&srq->rq);
	/* No endpoint uses the SRQ, so that only pending events can still queue its work. */
	if (srq->ibsrq)
		ib_destroy_srq(srq->ibsrq);
	/* A doorbell that found a fault may be about to report it. */
	spin_lock_irq(&srq->async_lock);
	async_evd = srq->async_evd;
	srq->async_evd = NULL;
	spin_unlock_irq(&srq->async_lock);
	if (async_evd)
		dapx_evd_drop(async_evd, &srq->async_events);
	if (async_evd && async_evd != srq->evd)
		dapx_object_unuse(&async_evd->obj);
	dapx_queue_drop_events(&srq->rq, srq->evd);
	if (srq->evd)
		dapx_object_unuse(&srq->evd->obj);
	cancel_work_sync(&srq->work);
	if (srq->xrcd)
		dapx_object_unuse(&srq->xrcd->obj);
	if (srq->pd)
		dapx_object_unuse(&srq->pd->obj);
}

static void dapx_srq_release(struct dapx_object *obj)
{
	struct dapx_srq *srq = to_dapx_srq(obj);

	kvfree(srq->copies);
	dapx_queue_exit(&srq->rq);
	dapx_ring_destroy(srq->ring);
}

static int dapx_srq_fill(struct dapx_object *obj, struct sk_buff *skb)
{
	struct dapx_srq *srq = to_dapx_srq(obj);

	if (srq->dead)
		return 0;
	if (nla_put_u32(skb, DAPX_OBJECT_ATTR_PD, srq->pd->obj.handle) ||
	    (srq->number && nla_put_u32(skb, DAPX_OBJECT_ATTR_NUMBER, srq->number)) ||
	    nla_put_u32(skb, DAPX_OBJECT_ATTR_DEPTH, srq->rq.view.depth) ||
	    nla_put_u32(skb, DAPX_OBJECT_ATTR_LIMIT, READ_ONCE(srq->limit)) ||
	    nla_put_u32(skb, DAPX_OBJECT_ATTR_RECEIVES, atomic_read(&srq->rq.outstanding)) ||
	    nla_put_u64_64bit(skb, DAPX_OBJECT_ATTR_POSTED, READ_ONCE(srq->rq.taken),
			      DAPX_OBJECT_ATTR_PAD))
		return -EMSGSIZE;
	return 0;
}

const struct dapx_object_class dapx_srq_class = {
	.type = DAPX_OBJECT_SRQ,
	.size = sizeof(struct dapx_srq),
	.rcu = true,
	.doorbells = DAPX_DOORBELL_RECV,
	.doorbell = dapx_srq_doorbell,
	.destroy = dapx_srq_destroy,
	.fill_locked = dapx_srq_fill,
	.release = dapx_srq_release,
};

/* ------------------------------------------------------------------ commands */

/*
 * Has the limit's event raised by the device, or, if the ring holds more than the device, by the
 * module.
 */
static int dapx_srq_arm(struct dapx_srq *srq, u32 limit)
{
	bool counts = srq->ibsrq && srq->rq.view.depth > srq->rq.num_slots;
	struct ib_srq_attr attr = { .srq_limit = counts ? 0 : limit };

	WRITE_ONCE(srq->counts, counts);
	return srq->ibsrq ? ib_modify_srq(srq->ibsrq, &attr, IB_SRQ_LIMIT) : 0;
}

int dapx_cmd_srq_modify(struct dapx_ucmd *ucmd)
{
	const struct dapx_srq_modify *cmd = ucmd->cmd;
	struct dapx_srq *srq;
	int ret = 0;
	u32 old;

	if (cmd->flags)
		return -EOPNOTSUPP;
	srq = dapx_get_srq(ucmd->ctx, cmd->srq);
	if (IS_ERR(srq))
		return PTR_ERR(srq);
	mutex_lock(&srq->obj.mutex);
	if (srq->dead)
		ret = -ENOENT;
	else if (cmd->limit > srq->rq.view.depth)
		ret = -EINVAL;
	else if (!srq->async_evd)
		ret = -EBADFD;
	if (!ret) {
		/* Set the limit first: the event may come before ib_modify_srq() returns. */
		old = xchg(&srq->limit, cmd->limit);
		ret = dapx_srq_arm(srq, cmd->limit);
		if (ret)
			WRITE_ONCE(srq->limit, old);
	}
	mutex_unlock(&srq->obj.mutex);
	dapx_object_put(&srq->obj);
	return ret;
}

int dapx_cmd_srq_query(struct dapx_ucmd *ucmd)
{
	struct dapx_srq_query *cmd = ucmd->cmd;
	struct dapx_srq *srq;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->__reserved)
		return -EINVAL;
	srq = dapx_get_srq(ucmd->ctx, cmd->srq);
	if (IS_ERR(srq))
		return PTR_ERR(srq);
	mutex_lock(&srq->obj.mutex);
	if (srq->dead) {
		ret = -ENOENT;
		goto out;
	}
	cmd->out_pd = srq->pd->obj.handle;
	cmd->out_xrcd = srq->xrcd ? srq->xrcd->obj.handle : 0;
	cmd->out_evd = srq->evd ? srq->evd->obj.handle : 0;
	cmd->out_async_evd = srq->async_evd ? srq->async_evd->obj.handle : 0;
	cmd->out_srq_num = srq->number;
	cmd->out_depth = srq->rq.view.depth;
	cmd->out_max_sge = srq->rq.max_sge;
	cmd->out_limit = READ_ONCE(srq->limit);
	ret = dapx_respond(ucmd);
out:
	mutex_unlock(&srq->obj.mutex);
	dapx_object_put(&srq->obj);
	return ret;
}

int dapx_cmd_srq_resize(struct dapx_ucmd *ucmd)
{
	struct dapx_srq_resize *cmd = ucmd->cmd;
	struct dapx_ring_view view;
	struct dapx_ring *ring;
	struct dapx_srq *srq;
	u32 tail;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	srq = dapx_get_srq(ucmd->ctx, cmd->srq);
	if (IS_ERR(srq))
		return PTR_ERR(srq);
	ret = dapx_srq_check_depth(ucmd->ctx, cmd->depth, srq->xrcd);
	if (ret)
		goto out_put;
	ring = dapx_srq_ring_create(srq, cmd->depth, srq->rq.max_sge, &view, &cmd->out_ring);
	if (IS_ERR(ring)) {
		ret = PTR_ERR(ring);
		goto out_put;
	}
	/* The device takes what it has room for. */
	dapx_queue_run(&srq->rq);
	mutex_lock(&srq->obj.mutex);
	ret = srq->dead ? -ENOENT : dapx_queue_copy_ring(&srq->rq, &view, &tail);
	if (!ret && READ_ONCE(srq->limit) > view.depth)
		ret = -EBUSY;
	/* Before the switch: if the response fails, the process keeps the old ring. */
	if (!ret)
		ret = dapx_respond(ucmd);
	if (!ret)
		ret = dapx_queue_switch_ring(&srq->rq, &view, tail);
	if (!ret) {
		swap(srq->ring, ring);
		/* If this fails, the limit's event comes early. */
		dapx_srq_arm(srq, READ_ONCE(srq->limit));
	}
	mutex_unlock(&srq->obj.mutex);
	/* A completion may be looking at the old ring. */
	if (!ret)
		synchronize_rcu();
	dapx_ring_destroy(ring);
out_put:
	dapx_object_put(&srq->obj);
	return ret;
}
