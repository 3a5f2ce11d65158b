// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: receives: from a ring to the device, and back as events
 *
 * This file has the receives of endpoints, and what they share with those of SRQs.
 */
#include "ep.h"

u32 dapx_recv_stride(u32 max_sge)
{
	return ALIGN(sizeof(struct dapx_recv_wr) + max_sge * sizeof(struct dapx_sge), 32);
}

void dapx_recv_prepare(struct dapx_queue *q, struct dapx_slot *slot)
{
	const struct dapx_recv_wr *in = q->copy;

	slot->node.notify = dapx_queue_notify(q, in->flags & DAPX_RECV_QUIET, DAPX_NOTIFY_ALL);
	slot->node.signaled = true;
	slot->node.opcode = DAPX_OP_RECV;
	slot->node.flags = q->ops->srq ? DAPX_COMPLETION_SRQ : 0;
	slot->node.byte_len = 0;
	slot->node.imm_data = 0;
	slot->node.wr_id = in->wr_id;
}

/* Builds the device's work request from the copy of an entry. */
enum dapx_status dapx_recv_build(struct dapx_queue *q, struct dapx_pd *pd,
				 struct dapx_slot *slot, struct ib_recv_wr *wr)
{
	const struct dapx_recv_wr *in = q->copy;
	enum dapx_status status;
	u64 length;
	u32 num_sge;

	if (in->flags & ~DAPX_RECV_FLAGS)
		return DAPX_STATUS_LOCAL_OPERATION;
	status = dapx_segments_build(q, pd, in->num_sge, (const void *)(in + 1), true, &num_sge,
				     &length);
	if (status != DAPX_STATUS_SUCCESS)
		return status;
	*wr = (struct ib_recv_wr) {
		.wr_cqe = &slot->cqe,
		.sg_list = q->sges,
		.num_sge = num_sge,
	};
	return DAPX_STATUS_SUCCESS;
}

/* Completes a receive of @ep. The slot belongs to the endpoint or to its SRQ. */
void dapx_recv_complete(struct dapx_ep *ep, struct dapx_slot *slot, const struct ib_wc *wc)
{
	enum dapx_status status = dapx_wc_status(wc->status);

	if (status == DAPX_STATUS_SUCCESS) {
		WRITE_ONCE(ep->received_at, jiffies | 1);
		WRITE_ONCE(ep->received, ep->received + 1);
		slot->node.byte_len = wc->byte_len;
		if (wc->wc_flags & IB_WC_WITH_IMM) {
			slot->node.flags |= DAPX_COMPLETION_IMM;
			slot->node.imm_data = (__force u32)wc->ex.imm_data;
		}
		if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM)
			slot->node.opcode = DAPX_OP_RECV_RDMA_IMM;
		/*
		 * If the difference matters, dapx_ep_fetch() wakes those who wait for solicited
		 * events.
		 */
		if (ep->recv_cq && slot->node.notify == DAPX_NOTIFY_ALL)
			slot->node.notify = DAPX_NOTIFY_ANY;
		/* Acquire, as in dapx_ep_connected(). */
		if (unlikely(!smp_load_acquire(&ep->established)))
			dapx_ep_message_arrived(ep);
	}
	dapx_queue_complete(slot, READ_ONCE(ep->dead) ? NULL : ep->recv_evd, status);
	dapx_ep_check_status(ep, status);
}

/* -------------------------------------------------- those of an endpoint */

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
	dapx_slot_post(q, slot);
	ret = ib_post_recv(ep->qp, &wr, NULL);
	if (!ret)
		return DAPX_STATUS_SUCCESS;
	dapx_slot_unpost(q, slot);
	return dapx_post_status(ret);
}

static void dapx_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct dapx_slot *slot = container_of(wc->wr_cqe, struct dapx_slot, cqe);
	struct dapx_queue *q = dapx_slot_queue(slot);
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

const struct dapx_queue_ops dapx_recv_ops = {
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

/* -------------------------------------------------------- solicited ones */

/* Receives that are fetched at a time, as softirqs are off meanwhile. */
#define DAPX_FETCH_BATCH 64

/* Returns whether there may be more. */
static bool dapx_ep_fetch_some(struct dapx_ep *ep)
{
	unsigned int fetched = 0;
	struct ib_wc wc[4];
	int i, n;

	spin_lock_bh(&ep->recv_cq_lock);
	while (ep->recv_cq && fetched < DAPX_FETCH_BATCH &&
	       (n = ib_poll_cq(ep->recv_cq, ARRAY_SIZE(wc), wc)) > 0) {
		for (i = 0; i < n; i++)
			wc[i].wr_cqe->done(ep->recv_cq, &wc[i]);
		fetched += n;
	}
	spin_unlock_bh(&ep->recv_cq_lock);
	return fetched >= DAPX_FETCH_BATCH;
}

/*
 * Fetches the receives of an endpoint that distinguishes solicited ones: its CQ notifies only
 * of these, and the others are fetched when the process asks for events.
 *
 * It fetches no more than the CQ can have held when it was last armed. Later completions have
 * notified anew, and a process that posts as fast as this thread fetches cannot keep it here.
 */
void dapx_ep_fetch(struct dapx_ep *ep)
{
	u32 batches;

	spin_lock_bh(&ep->recv_cq_lock);
	batches = ep->recv_cq ? ep->recv_cq->cqe / DAPX_FETCH_BATCH + 1 : 0;
	spin_unlock_bh(&ep->recv_cq_lock);
	while (dapx_ep_fetch_some(ep) && batches--)
		cond_resched();
}

/*
 * @evd is the EVD of the receives. The caller keeps it, as the endpoint may be changing to
 * another one.
 *
 * Arms the CQ for solicited receives only, unless a thread waits for any event, or the flush of
 * a queue pair in error is to be seen, which not every device reports as solicited.
 */
void dapx_ep_arm(struct dapx_ep *ep, struct dapx_evd *evd)
{
	bool any = READ_ONCE(ep->qp_state) == IB_QPS_ERR || dapx_evd_wants_any(evd);

	/* The CQ is armed first: later completions notify anew, and earlier ones are fetched. */
	spin_lock_bh(&ep->recv_cq_lock);
	if (ep->recv_cq)
		ib_req_notify_cq(ep->recv_cq, any ? IB_CQ_NEXT_COMP : IB_CQ_SOLICITED);
	spin_unlock_bh(&ep->recv_cq_lock);
	dapx_ep_fetch(ep);
}

void dapx_ep_fetch_lazy(struct dapx_lazy_source *source, struct dapx_evd *evd)
{
	dapx_ep_arm(container_of(source, struct dapx_ep, lazy), evd);
}

void dapx_ep_recv_cq_work(struct work_struct *work)
{
	struct dapx_ep *ep = container_of(work, struct dapx_ep, recv_cq_work);
	struct dapx_evd *evd;

	/* With a reference: RCU keeps the memory of an EVD, but not its ring. */
	spin_lock_bh(&ep->rq.lock);
	evd = ep->recv_evd;
	if (evd)
		kref_get(&evd->obj.kref);
	spin_unlock_bh(&ep->rq.lock);
	if (!evd)
		return;
	dapx_ep_arm(ep, evd);
	dapx_evd_wake_solicited(evd);
	dapx_object_put(&evd->obj);
}

void dapx_ep_recv_cq_handler(struct ib_cq *cq, void *context)
{
	struct dapx_ep *ep = context;

	dapx_object_queue_work(&ep->obj, &ep->recv_cq_work);
}
