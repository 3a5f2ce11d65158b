// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: shared receive queues of XRC domains
 *
 * They belong to the module, not to the device: a receive stays in the ring until a message
 * needs it.
 */
#include <linux/slab.h>

#include "ep.h"
#include "xrc/engine.h"
#include "xrc/xrc.h"

static struct dapx_recv_wr *dapx_srq_copy_of(struct dapx_srq *srq, struct dapx_slot *slot)
{
	return srq->copies + (to_dapx_srq_slot(slot) - srq->rq.srq_slots) * srq->rq.view.stride;
}

/* Receives leave the ring only when the engine takes one. */
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

	if (in->flags & ~DAPX_RECV_FLAGS || in->num_sge > q->max_sge)
		return dapx_srq_refuse(srq, slot, DAPX_STATUS_LOCAL_OPERATION);
	for (i = 0; i < in->num_sge; i++)
		if (!dapx_mr_copyable(q->obj->ctx, srq->pd, &sge[i], true))
			return dapx_srq_refuse(srq, slot, DAPX_STATUS_LOCAL_PROTECTION);
	memcpy(dapx_srq_copy_of(srq, slot), in, sizeof(*in) + in->num_sge * sizeof(*sge));
	return DAPX_STATUS_SUCCESS;
}

static struct dapx_evd *dapx_srq_xrc_evd(struct dapx_queue *q)
{
	struct dapx_srq *srq = q->owner;

	return srq->evd;
}

const struct dapx_queue_ops dapx_srq_xrc_ops = {
	.srq = true,
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

/* Takes the next receive for a message, and returns its size. Called in softirq. */
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

int dapx_srq_init_xrc(struct dapx_srq *srq)
{
	struct dapx_device *dev = srq->obj.ctx->dev;
	int ret;

	srq->domain = srq->xrcd->domain;
	srq->copies = kvcalloc(srq->rq.num_slots, srq->rq.view.stride, GFP_KERNEL_ACCOUNT);
	if (!srq->copies)
		return -ENOMEM;
	/* Only reserve the number: messages find the SRQ when it is published. */
	ret = xa_alloc_cyclic(&dev->xrc_srqs, &srq->number, NULL, XA_LIMIT(1, DAPX_XRC_MAX_SRQN),
			      &dev->xrc_next_srq, GFP_KERNEL_ACCOUNT);
	if (ret < 0) {
		srq->number = 0;
		return ret == -EBUSY ? -EDQUOT : ret;
	}
	return 0;
}

/* From here on messages find the SRQ. Cannot fail, since the number is reserved. */
void dapx_srq_publish_xrc(struct dapx_srq *srq)
{
	xa_store(&srq->obj.ctx->dev->xrc_srqs, srq->number, srq, GFP_KERNEL);
	mutex_lock(&srq->domain->lock);
	srq->serial = dapx_xrc_generation_inc();
	list_add_tail(&srq->entry, &srq->domain->srqs);
	mutex_unlock(&srq->domain->lock);
}

/* When this returns, no message uses the SRQ any more. */
void dapx_srq_unpublish_xrc(struct dapx_srq *srq)
{
	if (!srq->number)
		return;
	xa_erase(&srq->obj.ctx->dev->xrc_srqs, srq->number);
	dapx_xrc_srq_gone(srq->domain, srq);
}
