// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: requests of endpoints: from the ring to the device; the transport RC, whose requests
 * these are
 */
#include "ep.h"

struct dapx_send_op {
	enum ib_wr_opcode opcode;
	bool known;
	bool inlinable;
	bool imm;
	bool rdma;
	bool atomic;
	bool to_memory;		/* the response goes into the segments */
};

static const struct dapx_send_op dapx_send_op_table[] = {
	[DAPX_OP_SEND] = { IB_WR_SEND, .known = true, .inlinable = true },
	[DAPX_OP_SEND_IMM] = { IB_WR_SEND_WITH_IMM, .known = true, .inlinable = true, .imm = true },
	[DAPX_OP_RDMA_WRITE] = { IB_WR_RDMA_WRITE, .known = true, .inlinable = true, .rdma = true },
	[DAPX_OP_RDMA_WRITE_IMM] = { IB_WR_RDMA_WRITE_WITH_IMM, .known = true, .inlinable = true,
				     .imm = true, .rdma = true },
	[DAPX_OP_RDMA_READ] = { IB_WR_RDMA_READ, .known = true, .rdma = true, .to_memory = true },
	[DAPX_OP_COMPARE_SWAP] = { IB_WR_ATOMIC_CMP_AND_SWP, .known = true, .atomic = true,
				   .to_memory = true },
	[DAPX_OP_FETCH_ADD] = { IB_WR_ATOMIC_FETCH_AND_ADD, .known = true, .atomic = true,
				.to_memory = true },
};

enum dapx_queue_mode dapx_send_mode(struct dapx_queue *q)
{
	struct dapx_ep *ep = q->owner;

	if (READ_ONCE(ep->dead))
		return DAPX_QUEUE_STOP;
	switch (READ_ONCE(ep->state)) {
	case DAPX_EP_CONNECTED:
	case DAPX_EP_DISCONNECT_PENDING:
		return DAPX_QUEUE_RUN;
	case DAPX_EP_DISCONNECTED:
		return DAPX_QUEUE_FLUSH;
	default:
		return DAPX_QUEUE_HOLD;
	}
}

void dapx_send_prepare(struct dapx_queue *q, struct dapx_slot *slot)
{
	const struct dapx_send_wr *in = q->copy;

	slot->node.notify =
		dapx_queue_notify(q, in->flags & DAPX_SEND_QUIET, DAPX_NOTIFY_WAITERS);
	slot->node.signaled = in->flags & DAPX_SEND_SIGNALED;
	slot->node.opcode = in->opcode;
	slot->node.flags = 0;
	slot->node.byte_len = 0;
	slot->node.imm_data = 0;
	slot->node.wr_id = in->wr_id;
}

/*
 * Copies inline data once more: the device reads it later, when the process may have
 * overwritten the ring's entry.
 */
static enum dapx_status dapx_send_inline(struct dapx_queue *q, struct dapx_slot *slot,
					 const struct dapx_send_op *op, u32 *num_sge)
{
	const struct dapx_send_wr *in = q->copy;
	struct dapx_ep *ep = q->owner;
	size_t offset = (size_t)(slot - q->slots) * q->max_inline;

	if (!op->inlinable || in->num_sge || in->inline_len > q->max_inline)
		return DAPX_STATUS_LOCAL_OPERATION;
	*num_sge = 0;
	slot->node.byte_len = in->inline_len;
	if (!in->inline_len)
		return DAPX_STATUS_SUCCESS;
	memcpy(q->inline_data + offset, in + 1, in->inline_len);
	ib_dma_sync_single_for_device(ep->qp->device, q->inline_dma + offset, in->inline_len,
				      DMA_TO_DEVICE);
	q->sges[0] = (struct ib_sge) {
		.addr = q->inline_dma + offset,
		.length = in->inline_len,
		.lkey = ep->pd->ibpd->local_dma_lkey,
	};
	*num_sge = 1;
	return DAPX_STATUS_SUCCESS;
}

static enum dapx_status dapx_send_segments(struct dapx_queue *q, struct dapx_slot *slot,
					   const struct dapx_send_op *op, u32 *num_sge)
{
	const struct dapx_send_wr *in = q->copy;
	struct dapx_ep *ep = q->owner;
	enum dapx_status status;
	u64 length;

	if (in->inline_len)
		return DAPX_STATUS_LOCAL_OPERATION;
	status = dapx_segments_build(q, ep->pd, in->num_sge, (const void *)(in + 1),
				     op->to_memory, num_sge, &length);
	if (status != DAPX_STATUS_SUCCESS)
		return status;
	if (in->opcode == DAPX_OP_RDMA_READ &&
	    (*num_sge > ep->qp->device->attrs.max_sge_rd ||
	     (!*num_sge && q->obj->ctx->dev->iwarp)))
		return DAPX_STATUS_LOCAL_OPERATION;
	if (op->atomic && length != sizeof(u64))
		return DAPX_STATUS_LOCAL_LENGTH;
	/*
	 * A request transfers everything or fails. Devices differ in the length that they
	 * report here.
	 */
	slot->node.byte_len = length;
	return DAPX_STATUS_SUCCESS;
}

static enum dapx_status dapx_send_post(struct dapx_queue *q, struct dapx_slot *slot)
{
	const struct dapx_send_wr *in = q->copy;
	struct dapx_ep *ep = q->owner;
	u64 caps = q->obj->ctx->dev->caps;
	const struct dapx_send_op *op;
	enum dapx_status status;
	u32 num_sge;
	int ret;
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
	} out;

	if (in->opcode >= ARRAY_SIZE(dapx_send_op_table) || in->flags & ~DAPX_SEND_FLAGS ||
	    in->remote_srqn)
		return DAPX_STATUS_LOCAL_OPERATION;
	op = &dapx_send_op_table[in->opcode];
	if (!op->known || (op->imm && (!(caps & DAPX_DEVICE_IMM) || in->__reserved)) ||
	    (op->atomic && (!(caps & DAPX_DEVICE_ATOMICS) || in->remote_addr % sizeof(u64))))
		return DAPX_STATUS_LOCAL_OPERATION;

	if (in->flags & DAPX_SEND_INLINE)
		status = dapx_send_inline(q, slot, op, &num_sge);
	else
		status = dapx_send_segments(q, slot, op, &num_sge);
	if (status != DAPX_STATUS_SUCCESS)
		return status;

	memset(&out, 0, sizeof(out));
	out.wr.wr_cqe = &slot->cqe;
	out.wr.sg_list = q->sges;
	out.wr.num_sge = num_sge;
	out.wr.opcode = op->opcode;
	/* Every request is signalled, since the count of those in flight has to be exact. */
	out.wr.send_flags = IB_SEND_SIGNALED;
	if (in->flags & DAPX_SEND_SOLICITED)
		out.wr.send_flags |= IB_SEND_SOLICITED;
	if (in->flags & DAPX_SEND_FENCE)
		out.wr.send_flags |= IB_SEND_FENCE;
	if (op->imm)
		out.wr.ex.imm_data = (__force __be32)in->imm_data;
	if (op->rdma) {
		out.rdma.remote_addr = in->remote_addr;
		out.rdma.rkey = in->rkey;
	} else if (op->atomic) {
		out.atomic.remote_addr = in->remote_addr;
		out.atomic.rkey = in->rkey;
		out.atomic.compare_add = in->compare_add;
		out.atomic.swap = in->swap;
	}

	dapx_slot_post(q, slot);
	ret = ib_post_send(ep->qp, &out.wr, NULL);
	if (!ret)
		return DAPX_STATUS_SUCCESS;
	dapx_slot_unpost(q, slot);
	return dapx_post_status(ret);
}

static void dapx_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct dapx_slot *slot = container_of(wc->wr_cqe, struct dapx_slot, cqe);
	enum dapx_status status = dapx_wc_status(wc->status);
	struct dapx_queue *q = dapx_slot_queue(slot);
	struct dapx_ep *ep = q->owner;

	dapx_slot_returned(slot);
	dapx_queue_complete(slot, q->ops->evd(q), status);
	dapx_ep_check_status(ep, status);
	dapx_queue_retire(q);
	dapx_ep_completed(ep);
}

void dapx_send_fault(struct dapx_queue *q)
{
	dapx_ep_fail(q->owner);
}

void dapx_send_kick(struct dapx_queue *q)
{
	dapx_ep_queue(q->owner, DAPX_EP_TODO_KICK);
}

void dapx_send_at_barrier(struct dapx_queue *q)
{
	dapx_ep_queue(q->owner, DAPX_EP_TODO_BIND);
}

struct dapx_evd *dapx_send_evd(struct dapx_queue *q)
{
	struct dapx_ep *ep = q->owner;

	return READ_ONCE(ep->dead) ? NULL : ep->request_evd;
}

/*
 * rxe keeps one entry of a queue free, and rounds up to powers of two: a queue of 64 has the
 * memory of 128 there, and so has its CQ. So the last request of a ring waits until one of those
 * at the device is done. Receives cannot wait: as many messages may come at once.
 */
static u32 dapx_send_device_depth(u32 depth)
{
	return depth < 16 ? depth : depth - 1;
}

static const struct dapx_queue_ops dapx_send_ops = {
	.defers_busy = true,
	.busy_from = 4,
	.busy_until = 1,
	.device_depth = dapx_send_device_depth,
	.mode = dapx_send_mode,
	.prepare = dapx_send_prepare,
	.post = dapx_send_post,
	.done = dapx_send_done,
	.fault = dapx_send_fault,
	.kick = dapx_send_kick,
	.at_barrier = dapx_send_at_barrier,
	.evd = dapx_send_evd,
};

/* -------------------------------------------------------------------- RC */

static void dapx_rc_qp_params(const struct dapx_ep *ep, const struct dapx_ep_attr *attr,
			      const struct dapx_srq *srq, struct dapx_qp_params *params)
{
	params->srq = srq ? srq->ibsrq : NULL;
	params->send_depth = dapx_send_device_depth(attr->send_depth);
	params->recv_depth = srq ? srq->rq.num_slots : attr->recv_depth;
	params->max_send_sge = max_t(u32, attr->max_send_sge, 1);
	params->max_recv_sge = srq ? 0 : attr->max_recv_sge;
	if (attr->flags & DAPX_EP_SOLICITED && params->recv_depth)
		params->recv_cq_handler = dapx_ep_recv_cq_handler;
}

static int dapx_rc_access_flags(const struct dapx_ep *ep)
{
	int flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;

	if (ep->qp->device->attrs.atomic_cap != IB_ATOMIC_NONE)
		flags |= IB_ACCESS_REMOTE_ATOMIC;
	return flags;
}

const struct dapx_transport_ops dapx_rc_transport = {
	.send_ops = &dapx_send_ops,
	.maps_inline = true,
	.accepts = true,
	.qp_params = dapx_rc_qp_params,
	.access_flags = dapx_rc_access_flags,
};
