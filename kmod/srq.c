// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: shared receive queues
 *
 * A plain one belongs to the device, which takes its receives. One of an XRC domain
 * belongs to the module: a receive stays in the ring until a message needs it.
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include <net/netlink.h>

#include "dapx_private.h"
#include "xrc_engine.h"

#define DAPX_SRQ_ENTRIES_OFF DAPX_RING_CONTROL_SIZE

/* Any context, and also while the SRQ is being freed. */
static void dapx_srq_async(struct dapx_srq *srq, struct dapx_event_node *node, u32 what,
			   int error)
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
		dapx_evd_post_async(srq->async_evd, node, &event);
	spin_unlock_irqrestore(&srq->async_lock, flags);
}

static void dapx_srq_kick(struct dapx_queue *q)
{
	struct dapx_srq *srq = q->owner;

	dapx_object_queue_work(&srq->obj, &srq->work);
}

static void dapx_srq_work(struct work_struct *work)
{
	struct dapx_srq *srq = container_of(work, struct dapx_srq, work);

	dapx_queue_run(&srq->rq);
}

/* With the ring's lock. No connection is to blame for a bad receive: the SRQ is out of service. */
static enum dapx_status dapx_srq_refuse(struct dapx_srq *srq, struct dapx_slot *slot,
					enum dapx_status status)
{
	srq->bad_wr_id = slot->node.event.completion.wr_id;
	srq->bad_receive = status == DAPX_STATUS_LOCAL_PROTECTION ? -EACCES : -EINVAL;
	srq->rq.corrupt = true;
	return status;
}

static void dapx_srq_fault(struct dapx_queue *q)
{
	struct dapx_srq *srq = q->owner;

	dapx_srq_async(srq, &srq->error_event, DAPX_ASYNC_SRQ_ERROR, srq->bad_receive ?: -EBADMSG);
}

/* --------------------------------------------------------------------- plain */

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
	slot->node.event.completion.flags = DAPX_COMPLETION_SRQ;
	slot->node.event.completion.srq = q->obj->handle;
	dapx_slot_post(slot);
	ret = ib_post_srq_recv(srq->ibsrq, &wr, NULL);
	if (!ret)
		return DAPX_STATUS_SUCCESS;
	dapx_slot_unpost(slot);
	return dapx_post_status(ret);
}

static void dapx_srq_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct dapx_slot *slot = container_of(wc->wr_cqe, struct dapx_slot, cqe);
	struct dapx_ep *ep = cq->cq_context;	/* wc->qp may be destroyed */
	struct dapx_queue *q = slot->q;

	dapx_slot_returned(slot);
	slot->node.source = &ep->rq.events;
	slot->node.event.handle = ep->obj.handle;
	slot->node.event.user_data = ep->obj.user_data;
	dapx_recv_complete(ep, slot, wc);
	dapx_queue_retire(q);
}

static struct dapx_evd *dapx_srq_no_evd(struct dapx_queue *q)
{
	return NULL;
}

static const struct dapx_queue_ops dapx_srq_ops = {
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
		WRITE_ONCE(srq->limit, 0);
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

/* ----------------------------------------------------------------------- XRC */

static struct dapx_recv_wr *dapx_srq_copy_of(struct dapx_srq *srq, struct dapx_slot *slot)
{
	return srq->copies + (slot - srq->rq.slots) * srq->rq.view.stride;
}

/* What the engine takes is taken by it alone. */
static enum dapx_queue_mode dapx_srq_xrc_mode(struct dapx_queue *q)
{
	struct dapx_srq *srq = q->owner;

	return READ_ONCE(srq->dead) ? DAPX_QUEUE_STOP : DAPX_QUEUE_HOLD;
}

static enum dapx_status dapx_srq_xrc_post(struct dapx_queue *q, struct dapx_slot *slot)
{
	const struct dapx_recv_wr *in = q->copy;
	const struct dapx_sge *sge = (const void *)(in + 1);
	struct dapx_srq *srq = q->owner;
	u32 i;

	if (in->flags || in->num_sge > q->max_sge)
		return dapx_srq_refuse(srq, slot, DAPX_STATUS_LOCAL_OPERATION);
	for (i = 0; i < in->num_sge; i++)
		if (!dapx_mr_copyable(q->obj->ctx, srq->pd, &sge[i], true))
			return dapx_srq_refuse(srq, slot, DAPX_STATUS_LOCAL_PROTECTION);
	slot->node.event.completion.flags = DAPX_COMPLETION_SRQ;
	slot->node.event.completion.srq = q->obj->handle;
	memcpy(dapx_srq_copy_of(srq, slot), in, sizeof(*in) + in->num_sge * sizeof(*sge));
	return DAPX_STATUS_SUCCESS;
}

static struct dapx_evd *dapx_srq_xrc_evd(struct dapx_queue *q)
{
	struct dapx_srq *srq = q->owner;

	return srq->evd;
}

static const struct dapx_queue_ops dapx_srq_xrc_ops = {
	.hold_is_busy = true,
	.busy_from = 1,
	.busy_until = 1,
	.mode = dapx_srq_xrc_mode,
	.prepare = dapx_recv_prepare,
	.post = dapx_srq_xrc_post,
	.kick = dapx_srq_kick,
	.fault = dapx_srq_fault,
	.evd = dapx_srq_xrc_evd,
};

/* For a message: the next receive, and how much fits into it. In softirq. */
struct dapx_slot *dapx_srq_take(struct dapx_srq *srq, enum dapx_status *status, u64 *size)
{
	const struct dapx_recv_wr *wr;
	const struct dapx_sge *sge;
	struct dapx_slot *slot;
	u32 left, limit, i;

	slot = dapx_queue_pull(&srq->rq, status, &left);
	if (*status != DAPX_STATUS_SUCCESS) {
		if (*status != DAPX_STATUS_RECEIVER_NOT_READY)
			dapx_srq_fault(&srq->rq);
		return NULL;
	}
	limit = READ_ONCE(srq->limit);
	if (left < limit && cmpxchg(&srq->limit, limit, 0) == limit)
		dapx_srq_async(srq, &srq->limit_event, DAPX_ASYNC_SRQ_LIMIT, 0);
	wr = dapx_srq_copy_of(srq, slot);
	sge = (const void *)(wr + 1);
	*size = 0;
	for (i = 0; i < wr->num_sge; i++)
		*size += sge[i].length;
	return slot;
}

bool dapx_srq_place(struct dapx_srq *srq, struct dapx_slot *slot, u32 offset, const void *from,
		    u32 length)
{
	const struct dapx_recv_wr *wr = dapx_srq_copy_of(srq, slot);

	return dapx_xrc_segments_copy(srq->obj.ctx, srq->pd, (const void *)(wr + 1), wr->num_sge,
				      offset, (void *)from, length, true);
}

void dapx_srq_complete(struct dapx_srq *srq, struct dapx_slot *slot, enum dapx_status status)
{
	dapx_queue_complete(slot, srq->evd, status);
}

static int dapx_srq_init_xrc(struct dapx_srq *srq)
{
	struct dapx_device *dev = srq->obj.ctx->dev;
	int ret;

	srq->domain = srq->xrcd->domain;
	srq->copies = kvcalloc(srq->rq.view.depth, srq->rq.view.stride, GFP_KERNEL_ACCOUNT);
	if (!srq->copies)
		return -ENOMEM;
	/* Reserved: messages do not find it before it is published. */
	ret = xa_alloc_cyclic(&dev->xrc_srqs, &srq->number, NULL, XA_LIMIT(1, DAPX_XRC_MAX_SRQN),
			      &dev->xrc_next_srq, GFP_KERNEL_ACCOUNT);
	if (ret < 0) {
		srq->number = 0;
		return ret == -EBUSY ? -EDQUOT : ret;
	}
	return 0;
}

/* ------------------------------------------------------------------ lifetime */

int dapx_srq_doorbell(struct dapx_srq *srq)
{
	int ret = dapx_queue_run(&srq->rq);

	return ret == -EBADMSG && srq->bad_receive ? -ENOTRECOVERABLE : ret;
}

static int dapx_srq_init(struct dapx_srq *srq, struct dapx_srq_create *cmd)
{
	u32 depth = roundup_pow_of_two(cmd->depth);
	u32 stride = dapx_recv_stride(cmd->max_sge);
	int ret;

	srq->ring = dapx_ring_create(srq->obj.ctx, DAPX_SRQ_ENTRIES_OFF + (size_t)depth * stride);
	if (IS_ERR(srq->ring)) {
		ret = PTR_ERR(srq->ring);
		srq->ring = NULL;
		return ret;
	}
	dapx_ring_view_init(&srq->rq.view, srq->ring, 0, DAPX_SRQ_ENTRIES_OFF, depth, stride,
			    &cmd->out_ring);
	ret = dapx_queue_init(&srq->rq, srq->xrcd ? &dapx_srq_xrc_ops : &dapx_srq_ops, srq,
			      cmd->max_sge, 0);
	if (ret)
		return ret;
	ret = srq->xrcd ? dapx_srq_init_xrc(srq) : dapx_srq_init_plain(srq, cmd->max_sge);
	if (ret)
		return ret;
	dapx_queue_update_mode(&srq->rq);
	/* Says BUSY where no doorbell is needed. */
	dapx_queue_run(&srq->rq);
	return 0;
}

static int dapx_srq_use_evd(struct dapx_srq *srq, u32 handle, struct dapx_evd **evd)
{
	struct dapx_object *obj;

	if (!handle)
		return 0;
	obj = dapx_object_use(srq->obj.ctx, handle, DAPX_OBJECT_EVD);
	if (IS_ERR(obj))
		return PTR_ERR(obj);
	*evd = to_dapx_evd(obj);
	return 0;
}

static int dapx_srq_use_objects(struct dapx_srq *srq, const struct dapx_srq_create *cmd)
{
	struct dapx_context *ctx = srq->obj.ctx;
	struct dapx_object *obj;
	int ret;

	obj = dapx_object_use(ctx, cmd->pd, DAPX_OBJECT_PD);
	if (IS_ERR(obj))
		return PTR_ERR(obj);
	srq->pd = to_dapx_pd(obj);
	ret = dapx_srq_use_evd(srq, cmd->evd, &srq->evd);
	srq->async_evd = srq->evd;
	if (!ret && cmd->async_evd && cmd->async_evd != cmd->evd)
		ret = dapx_srq_use_evd(srq, cmd->async_evd, &srq->async_evd);
	if (ret)
		return ret;
	return cmd->xrcd ? dapx_xrcd_use(ctx, cmd->xrcd, &srq->xrcd) : 0;
}

static int dapx_srq_check_sizes(struct dapx_context *ctx, const struct dapx_srq_create *cmd)
{
	const struct ib_device_attr *attrs = &ctx->dev->ibdev->attrs;
	u32 max_depth = cmd->xrcd ? dapx_max_ring_depth : dapx_device_max_srq_depth(ctx->dev);
	u32 max_sge = cmd->xrcd ? DAPX_MAX_SGE : min_t(u32, DAPX_MAX_SGE, attrs->max_srq_sge);

	if (!cmd->depth || cmd->depth > dapx_max_ring_depth ||
	    roundup_pow_of_two(cmd->depth) > max_depth || !cmd->max_sge || cmd->max_sge > max_sge)
		return -EINVAL;
	/* Its completions have to go somewhere. */
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
	dapx_queue_init_events(&srq->rq, obj, NULL);
	dapx_event_source_init(&srq->async_events, obj, NULL);
	srq->limit_event.source = &srq->async_events;
	srq->error_event.source = &srq->async_events;
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
	if (srq->number) {
		/* Cannot fail: the place is reserved. */
		xa_store(&ctx->dev->xrc_srqs, srq->number, srq, GFP_KERNEL);
		mutex_lock(&srq->domain->lock);
		srq->serial = dapx_xrc_generation_inc();
		list_add_tail(&srq->entry, &srq->domain->srqs);
		mutex_unlock(&srq->domain->lock);
	}
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
	if (srq->number) {
		/* When no message has it any more. */
		xa_erase(&obj->ctx->dev->xrc_srqs, srq->number);
		dapx_xrc_srq_gone(srq->domain, srq);
	}
	dapx_queue_update_mode(&srq->rq);
	/* No endpoint uses it: nothing is left that could queue its work, but events that wait. */
	if (srq->ibsrq)
		ib_destroy_srq(srq->ibsrq);
	/* A doorbell that found a fault may be about to tell of it. */
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
	.destroy = dapx_srq_destroy,
	.fill_locked = dapx_srq_fill,
	.release = dapx_srq_release,
};

/* ------------------------------------------------------------------ commands */

int dapx_cmd_srq_modify(struct dapx_ucmd *ucmd)
{
	const struct dapx_srq_modify *cmd = ucmd->cmd;
	struct ib_srq_attr attr = { .srq_limit = cmd->limit };
	struct dapx_object *obj;
	struct dapx_srq *srq;
	int ret = 0;
	u32 old;

	if (cmd->flags)
		return -EOPNOTSUPP;
	obj = dapx_object_get(ucmd->ctx, cmd->srq, DAPX_OBJECT_SRQ);
	if (IS_ERR(obj))
		return PTR_ERR(obj);
	srq = to_dapx_srq(obj);
	mutex_lock(&obj->mutex);
	if (srq->dead)
		ret = -ENOENT;
	else if (cmd->limit > srq->rq.view.depth)
		ret = -EINVAL;
	else if (!srq->async_evd)
		ret = -EBADFD;
	if (!ret) {
		/* First: the event may come before the device has answered. */
		old = xchg(&srq->limit, cmd->limit);
		if (srq->ibsrq)
			ret = ib_modify_srq(srq->ibsrq, &attr, IB_SRQ_LIMIT);
		if (ret)
			WRITE_ONCE(srq->limit, old);
	}
	mutex_unlock(&obj->mutex);
	dapx_object_put(obj);
	return ret;
}

int dapx_cmd_srq_query(struct dapx_ucmd *ucmd)
{
	struct dapx_srq_query *cmd = ucmd->cmd;
	struct dapx_object *obj;
	struct dapx_srq *srq;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->__reserved)
		return -EINVAL;
	obj = dapx_object_get(ucmd->ctx, cmd->srq, DAPX_OBJECT_SRQ);
	if (IS_ERR(obj))
		return PTR_ERR(obj);
	srq = to_dapx_srq(obj);
	mutex_lock(&obj->mutex);
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
	mutex_unlock(&obj->mutex);
	dapx_object_put(obj);
	return ret;
}
