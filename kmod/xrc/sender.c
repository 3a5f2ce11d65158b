// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: the sending endpoint of an XRC connection
 *
 * Its rings, its states and its connection set-up are those of any endpoint. Its requests go to
 * the engine instead of the device, and are outstanding until the peer has answered.
 */
#include <linux/slab.h>

#include "ep.h"
#include "xrc/engine.h"
#include "xrc/xrc.h"

/* The death of a peer is noticed after this time and the retries of the queue pair. */
#define DAPX_XRC_PROBE_INTERVAL ms_to_ktime(1000)

/* A request, from its entry in the ring until its completion. Each slot has one. */
struct dapx_xrc_send {
	struct dapx_xrc_message msg;
	struct dapx_slot *slot;
	u32 num_sge;
	u32 inline_len;
	void *payload;			/* segments, or inline data */
};

struct dapx_xrc_sender {
	struct dapx_ep *ep;
	spinlock_t lock;		/* (bh) all below; below q->lock, above evd->lock */
	struct dapx_xrc_requester req;
	struct list_head idle;		/* buffers for segments */
	struct list_head busy;
	struct list_head answers;	/* all buffers for answers */
	unsigned int lent;		/* buffers for segments, from the device's pool */
	unsigned int ended;		/* requests done, but not retired yet */
	bool stopped;
	bool probing;			/* a probe is in flight */
	bool probes;			/* probe_timer runs */
	struct ib_cqe probe_cqe;
	struct hrtimer probe_timer;
	struct hrtimer timer;
	u32 stride;
	void *payloads;
	struct dapx_xrc_send sends[];
};

static bool dapx_xrc_has_imm(u8 opcode)
{
	return opcode == DAPX_OP_SEND_IMM || opcode == DAPX_OP_RDMA_WRITE_IMM;
}

static struct dapx_xrc_sender *dapx_xrc_sender_of(struct dapx_xrc_requester *req)
{
	return container_of(req, struct dapx_xrc_sender, req);
}

static void dapx_xrc_sender_lock(struct dapx_xrc_sender *sender)
	__acquires(&sender->lock)
{
	spin_lock_bh(&sender->lock);
}

/* Retires the requests that have ended, now that q->lock may be taken. */
static void dapx_xrc_sender_unlock(struct dapx_xrc_sender *sender)
	__releases(&sender->lock)
{
	unsigned int ended = sender->ended;
	struct dapx_ep *ep = sender->ep;

	sender->ended = 0;
	spin_unlock_bh(&sender->lock);
	if (!ended)
		return;
	while (ended--)
		dapx_queue_retire(&ep->sq);
	dapx_ep_completed(ep);
}

/* -------------------------------------------------------- what the engine asks for */

static void *dapx_xrc_send_buffer(struct dapx_xrc_requester *req)
{
	struct dapx_xrc_sender *sender = dapx_xrc_sender_of(req);
	struct dapx_xrc_buffer *buffer;

	buffer = list_first_entry(&sender->idle, struct dapx_xrc_buffer, entry);
	list_move(&buffer->entry, &sender->busy);
	dapx_xrc_buffer_read(sender->ep->qp->device, buffer, DAPX_XRC_SEGMENT_SIZE);
	return buffer->va;
}

/*
 * One buffer is the sender's own, so that it makes progress even if others have borrowed the
 * whole pool.
 */
static void dapx_xrc_send_make_room(struct dapx_xrc_requester *req)
{
	struct dapx_xrc_sender *sender = dapx_xrc_sender_of(req);
	struct dapx_xrc_pool *pool = sender->ep->obj.ctx->dev->xrc_pool;

	if (1 + sender->lent < DAPX_XRC_CREDITS && dapx_xrc_pool_take(pool, &sender->idle)) {
		sender->lent++;
		req->room++;
	}
}

/* Gives borrowed buffers that are idle back to the pool. */
static void dapx_xrc_send_give_back(struct dapx_xrc_sender *sender)
{
	struct dapx_xrc_pool *pool = sender->ep->obj.ctx->dev->xrc_pool;

	for (; sender->lent && sender->req.room; sender->lent--, sender->req.room--)
		dapx_xrc_pool_give(pool, list_first_entry(&sender->idle, struct dapx_xrc_buffer,
							  entry));
}

/* The engine fills one buffer at a time: the one that it asked for last. */
static struct dapx_xrc_buffer *dapx_xrc_send_filled(struct dapx_xrc_sender *sender)
{
	return list_first_entry(&sender->busy, struct dapx_xrc_buffer, entry);
}

static void dapx_xrc_segment_done(struct ib_cq *cq, struct ib_wc *wc);

static void dapx_xrc_send_segment(struct dapx_xrc_requester *req, void *va, u32 length)
{
	struct dapx_xrc_sender *sender = dapx_xrc_sender_of(req);
	struct dapx_xrc_buffer *buffer = dapx_xrc_send_filled(sender);

	/* If the queue pair is in error, the code that moved it there also ends the requests. */
	if (dapx_xrc_post_send(sender->ep->qp, buffer, length, dapx_xrc_segment_done)) {
		list_move(&buffer->entry, &sender->idle);
		dapx_ep_fail(sender->ep);
	}
}

static void dapx_xrc_send_discard(struct dapx_xrc_requester *req, void *va)
{
	struct dapx_xrc_sender *sender = dapx_xrc_sender_of(req);

	list_move(&dapx_xrc_send_filled(sender)->entry, &sender->idle);
}

static bool dapx_xrc_send_copy(struct dapx_xrc_requester *req, struct dapx_xrc_message *msg,
			       u32 offset, void *buffer, u32 length, bool write)
{
	struct dapx_xrc_send *send = container_of(msg, struct dapx_xrc_send, msg);
	struct dapx_ep *ep = dapx_xrc_sender_of(req)->ep;

	if (send->inline_len) {
		memcpy(buffer, send->payload + offset, length);
		return true;
	}
	return dapx_xrc_segments_copy(ep->obj.ctx, ep->pd, send->payload, send->num_sge, offset,
				      buffer, length, write);
}

static bool dapx_xrc_send_gather(struct dapx_xrc_requester *req, struct dapx_xrc_message *msg,
				 u32 offset, void *to, u32 length)
{
	return dapx_xrc_send_copy(req, msg, offset, to, length, false);
}

static bool dapx_xrc_send_scatter(struct dapx_xrc_requester *req, struct dapx_xrc_message *msg,
				  u32 offset, const void *from, u32 length)
{
	return dapx_xrc_send_copy(req, msg, offset, (void *)from, length, true);
}

static void dapx_xrc_send_done(struct dapx_xrc_requester *req, struct dapx_xrc_message *msg,
			       enum dapx_status status)
{
	struct dapx_xrc_send *send = container_of(msg, struct dapx_xrc_send, msg);
	struct dapx_xrc_sender *sender = dapx_xrc_sender_of(req);
	struct dapx_slot *slot = send->slot;
	struct dapx_ep *ep = sender->ep;

	sender->ended++;
	if (status == DAPX_STATUS_SUCCESS)
		slot->node.byte_len = msg->total;
	dapx_queue_complete(slot, ep->sq.ops->evd(&ep->sq), status);
	if (status != DAPX_STATUS_SUCCESS && status != DAPX_STATUS_FLUSHED)
		dapx_ep_fail(ep);
}

static void dapx_xrc_send_wait(struct dapx_xrc_requester *req, u32 usecs)
{
	struct dapx_xrc_sender *sender = dapx_xrc_sender_of(req);
	ktime_t time = ns_to_ktime((u64)usecs * NSEC_PER_USEC);

	if (!sender->stopped)
		hrtimer_start(&sender->timer, time, HRTIMER_MODE_REL_SOFT);
}

static const struct dapx_xrc_requester_ops dapx_xrc_requester_ops = {
	.buffer = dapx_xrc_send_buffer,
	.send = dapx_xrc_send_segment,
	.discard = dapx_xrc_send_discard,
	.gather = dapx_xrc_send_gather,
	.scatter = dapx_xrc_send_scatter,
	.done = dapx_xrc_send_done,
	.wait = dapx_xrc_send_wait,
	.make_room = dapx_xrc_send_make_room,
};

/* -------------------------------------------------------------------- the wire */

static void dapx_xrc_wire_failed(struct dapx_xrc_sender *sender, enum ib_wc_status error)
{
	enum dapx_status status = dapx_wc_status(error);

	/* A flush only follows from an error that is handled elsewhere. */
	if (status == DAPX_STATUS_FLUSHED)
		return;
	/*
	 * An error of the queue pair is not one of the request; the peer reports those in its
	 * answers.
	 */
	if (status != DAPX_STATUS_TRANSPORT)
		status = DAPX_STATUS_BAD_RESPONSE;
	dapx_xrc_requester_fail(&sender->req, status);
	dapx_ep_fail(sender->ep);
}

/* Returns whether all segments have arrived, but some requests have not been answered. */
static bool dapx_xrc_waits_for_answer(struct dapx_xrc_sender *sender)
{
	return !sender->stopped && !sender->req.failed && list_empty(&sender->busy) &&
	       !list_empty(&sender->req.messages);
}

static void dapx_xrc_probe_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct dapx_ep *ep = cq->cq_context;
	struct dapx_xrc_sender *sender = ep->xrc;

	dapx_xrc_sender_lock(sender);
	sender->probing = false;
	if (wc->status != IB_WC_SUCCESS)
		dapx_xrc_wire_failed(sender, wc->status);
	dapx_xrc_sender_unlock(sender);
}

/*
 * A peer that ends before it answers sends nothing more. The device notices that only if it has
 * something to send itself.
 */
static enum hrtimer_restart dapx_xrc_probe(struct hrtimer *timer)
{
	struct dapx_xrc_sender *sender = container_of(timer, struct dapx_xrc_sender, probe_timer);
	struct dapx_ep *ep = sender->ep;

	dapx_xrc_sender_lock(sender);
	sender->probes = !sender->stopped && !list_empty(&sender->req.messages);
	if (dapx_xrc_waits_for_answer(sender) && !sender->probing) {
		sender->probing = !dapx_xrc_post_probe(ep->qp, &sender->probe_cqe);
		if (!sender->probing)
			dapx_ep_fail(ep);
	}
	if (sender->probes)
		hrtimer_start(timer, DAPX_XRC_PROBE_INTERVAL, HRTIMER_MODE_REL_SOFT);
	dapx_xrc_sender_unlock(sender);
	return HRTIMER_NORESTART;
}

/* The buffer of a segment is free again. Whether its requests are done, only the answer says. */
static void dapx_xrc_segment_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct dapx_xrc_buffer *buffer = container_of(wc->wr_cqe, struct dapx_xrc_buffer, cqe);
	struct dapx_ep *ep = cq->cq_context;
	struct dapx_xrc_sender *sender = ep->xrc;

	dapx_xrc_sender_lock(sender);
	list_move(&buffer->entry, &sender->idle);
	sender->req.room++;
	if (wc->status != IB_WC_SUCCESS)
		dapx_xrc_wire_failed(sender, wc->status);
	else
		dapx_xrc_transmit(&sender->req);
	if (!sender->probes && dapx_xrc_waits_for_answer(sender) &&
	    !ep->obj.ctx->dev->iwarp) {
		hrtimer_start(&sender->probe_timer, DAPX_XRC_PROBE_INTERVAL,
			      HRTIMER_MODE_REL_SOFT);
		sender->probes = true;
	}
	/* Also after a failure of the connection: the process may keep the endpoint for long. */
	dapx_xrc_send_give_back(sender);
	dapx_xrc_sender_unlock(sender);
}

static void dapx_xrc_answer_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct dapx_xrc_buffer *buffer = container_of(wc->wr_cqe, struct dapx_xrc_buffer, cqe);
	struct dapx_ep *ep = cq->cq_context;
	struct dapx_xrc_sender *sender = ep->xrc;

	dapx_xrc_sender_lock(sender);
	if (wc->status != IB_WC_SUCCESS) {
		dapx_xrc_wire_failed(sender, wc->status);
	} else {
		WRITE_ONCE(ep->received_at, jiffies | 1);
		dapx_xrc_buffer_read(ep->obj.ctx->dev->ibdev, buffer, wc->byte_len);
		dapx_xrc_answered(&sender->req, buffer->va, wc->byte_len);
		if (!sender->stopped &&
		    dapx_xrc_post_recv(ep->qp, buffer, dapx_xrc_answer_done))
			dapx_ep_fail(ep);
	}
	dapx_xrc_sender_unlock(sender);
}

static enum hrtimer_restart dapx_xrc_timer(struct hrtimer *timer)
{
	struct dapx_xrc_sender *sender = container_of(timer, struct dapx_xrc_sender, timer);

	dapx_xrc_sender_lock(sender);
	if (!sender->stopped)
		dapx_xrc_waited(&sender->req);
	dapx_xrc_sender_unlock(sender);
	return HRTIMER_NORESTART;
}

/* -------------------------------------------------------------------- the ring */

static enum dapx_status dapx_xrc_check_segments(struct dapx_queue *q,
						const struct dapx_send_wr *in, bool write,
						u64 *length)
{
	const struct dapx_sge *sge = (const void *)(in + 1);
	struct dapx_ep *ep = q->owner;
	u32 i;

	*length = 0;
	if (in->inline_len || in->num_sge > q->max_sge)
		return DAPX_STATUS_LOCAL_OPERATION;
	for (i = 0; i < in->num_sge; i++) {
		if (!dapx_mr_copyable(ep->obj.ctx, ep->pd, &sge[i], write))
			return DAPX_STATUS_LOCAL_PROTECTION;
		*length += sge[i].length;
	}
	return *length > ep->obj.ctx->dev->max_msg_size ? DAPX_STATUS_LOCAL_LENGTH :
							  DAPX_STATUS_SUCCESS;
}

static enum dapx_status dapx_xrc_send_post(struct dapx_queue *q, struct dapx_slot *slot)
{
	const struct dapx_send_wr *in = q->copy;
	struct dapx_ep *ep = q->owner;
	struct dapx_xrc_sender *sender = ep->xrc;
	struct dapx_xrc_send *send = &sender->sends[slot - q->slots];
	bool returns_data = dapx_xrc_returns_data(in->opcode);
	bool is_inline = in->flags & DAPX_SEND_INLINE;
	enum dapx_status status;
	u64 length;

	if (in->opcode > DAPX_OP_FETCH_ADD || in->flags & ~DAPX_SEND_FLAGS ||
	    !in->remote_srqn || in->remote_srqn > DAPX_XRC_MAX_SRQN ||
	    (dapx_xrc_has_imm(in->opcode) && in->__reserved) ||
	    (dapx_xrc_is_atomic(in->opcode) && in->remote_addr % sizeof(u64)))
		return DAPX_STATUS_LOCAL_OPERATION;
	if (is_inline) {
		if (returns_data || in->num_sge || in->inline_len > ep->attr.max_inline)
			return DAPX_STATUS_LOCAL_OPERATION;
		length = in->inline_len;
	} else {
		status = dapx_xrc_check_segments(q, in, returns_data, &length);
		if (status != DAPX_STATUS_SUCCESS)
			return status;
	}
	if (dapx_xrc_is_atomic(in->opcode) && length != sizeof(u64))
		return DAPX_STATUS_LOCAL_LENGTH;

	send->slot = slot;
	send->num_sge = in->num_sge;
	send->inline_len = is_inline ? length : 0;
	memcpy(send->payload, in + 1,
	       is_inline ? length : in->num_sge * sizeof(struct dapx_sge));
	send->msg = (struct dapx_xrc_message) {
		.opcode = in->opcode,
		.fence = in->flags & DAPX_SEND_FENCE,
		.solicited = in->flags & DAPX_SEND_SOLICITED,
		.srqn = in->remote_srqn,
		.total = length,
		.rkey = in->rkey,
		.addr = in->remote_addr,
	};
	if (dapx_xrc_has_imm(in->opcode)) {
		send->msg.imm = in->imm_data;
	} else if (dapx_xrc_is_atomic(in->opcode)) {
		send->msg.compare_add = in->compare_add;
		send->msg.swap = in->swap;
	}

	status = DAPX_STATUS_FLUSHED;
	spin_lock_bh(&sender->lock);
	if (!sender->req.failed && !sender->stopped) {
		atomic_inc(&q->outstanding);
		dapx_xrc_submit(&sender->req, &send->msg);
		status = DAPX_STATUS_SUCCESS;
	}
	spin_unlock_bh(&sender->lock);
	return status;
}

/*
 * Sends all published requests together, so that the last segment asks for an answer to all of
 * them.
 */
static void dapx_xrc_send_posted(struct dapx_queue *q)
{
	struct dapx_ep *ep = q->owner;
	struct dapx_xrc_sender *sender = ep->xrc;

	spin_lock_bh(&sender->lock);
	if (!sender->stopped)
		dapx_xrc_transmit(&sender->req);
	/* Requests that ended here cannot be retired with q->lock held: leave that to the timer. */
	if (sender->ended)
		hrtimer_start(&sender->timer, 0, HRTIMER_MODE_REL_SOFT);
	spin_unlock_bh(&sender->lock);
}

static const struct dapx_queue_ops dapx_xrc_send_ops = {
	.defers_busy = true,
	.busy_from = 4,
	.busy_until = 1,
	.mode = dapx_send_mode,
	.prepare = dapx_send_prepare,
	.post = dapx_xrc_send_post,
	.posted = dapx_xrc_send_posted,
	.fault = dapx_send_fault,
	.kick = dapx_send_kick,
	.at_barrier = dapx_send_at_barrier,
	.evd = dapx_send_evd,
};

/* -------------------------------------------------------------------- lifetime */

/* The endpoint has its send queue already. */
static int dapx_xrc_sender_create(struct dapx_ep *ep)
{
	struct ib_device *ibdev = ep->obj.ctx->dev->ibdev;
	u32 depth = ep->sq.view.depth, i;
	struct dapx_xrc_sender *sender;
	int ret;

	ret = dapx_xrc_get(ep->obj.ctx->dev);
	if (ret)
		return ret;
	sender = kvzalloc(struct_size(sender, sends, depth), GFP_KERNEL_ACCOUNT);
	if (!sender) {
		ret = -ENOMEM;
		goto err_pd;
	}
	sender->ep = ep;
	spin_lock_init(&sender->lock);
	INIT_LIST_HEAD(&sender->idle);
	INIT_LIST_HEAD(&sender->busy);
	INIT_LIST_HEAD(&sender->answers);
	hrtimer_setup(&sender->timer, dapx_xrc_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	hrtimer_setup(&sender->probe_timer, dapx_xrc_probe, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
	sender->probe_cqe.done = dapx_xrc_probe_done;
	sender->stride = ep->sq.view.stride - sizeof(struct dapx_send_wr);
	ret = -ENOMEM;
	sender->payloads = kvcalloc(depth, sender->stride, GFP_KERNEL_ACCOUNT);
	if (!sender->payloads)
		goto err;
	for (i = 0; i < depth; i++)
		sender->sends[i].payload = sender->payloads + (size_t)i * sender->stride;
	ret = dapx_xrc_buffers_create(ibdev, &sender->idle, 1);
	if (ret)
		goto err;
	ret = dapx_xrc_buffers_create(ibdev, &sender->answers, dapx_xrc_answers(ep->obj.ctx->dev));
	if (ret)
		goto err;
	dapx_xrc_requester_init(&sender->req, &dapx_xrc_requester_ops, 1, 7);
	sender->stopped = true;
	ep->xrc = sender;
	return 0;

err:
	dapx_xrc_buffers_destroy(ibdev, &sender->idle);
	kvfree(sender->payloads);
	kvfree(sender);
err_pd:
	dapx_xrc_put(ep->obj.ctx->dev);
	return ret;
}

static void dapx_xrc_sender_set_retries(struct dapx_ep *ep, u8 rnr_retry)
{
	dapx_xrc_sender_lock(ep->xrc);
	ep->xrc->req.retry_limit = rnr_retry;
	dapx_xrc_sender_unlock(ep->xrc);
}

/* The queue pair accepts receives now. */
static int dapx_xrc_sender_start(struct dapx_ep *ep)
{
	struct dapx_xrc_sender *sender = ep->xrc;
	struct dapx_xrc_buffer *buffer;
	int ret = 0;

	dapx_xrc_sender_lock(sender);
	sender->stopped = false;
	list_for_each_entry(buffer, &sender->answers, entry) {
		ret = dapx_xrc_post_recv(ep->qp, buffer, dapx_xrc_answer_done);
		if (ret)
			break;
	}
	dapx_xrc_sender_unlock(sender);
	return ret;
}

/*
 * The connection or the endpoint ends: flushes all requests that are not done. May be called
 * again.
 */
static void dapx_xrc_sender_stop(struct dapx_ep *ep)
{
	struct dapx_xrc_sender *sender = ep->xrc;
	bool more;

	do {
		dapx_xrc_sender_lock(sender);
		sender->stopped = true;
		dapx_xrc_requester_fail(&sender->req, DAPX_STATUS_FLUSHED);
		more = !list_empty(&sender->req.messages);
		dapx_xrc_send_give_back(sender);
		dapx_xrc_sender_unlock(sender);
		cond_resched();
	} while (more);
	/* If the timer's handler is running, it may be retiring those requests. Wait for it. */
	hrtimer_cancel(&sender->timer);
	hrtimer_cancel(&sender->probe_timer);
	dapx_xrc_sender_lock(sender);
	sender->probes = false;
	dapx_xrc_sender_unlock(sender);
}

/* Returns to the state after dapx_xrc_sender_create(). The endpoint has no queue pair. */
static void dapx_xrc_sender_reset(struct dapx_ep *ep)
{
	struct dapx_xrc_sender *sender = ep->xrc;

	list_splice_init(&sender->busy, &sender->idle);
	sender->probing = false;
	sender->req.room = sender->lent + 1;
	dapx_xrc_send_give_back(sender);
	dapx_xrc_requester_init(&sender->req, &dapx_xrc_requester_ops, 1, 7);
}

/* The endpoint has no queue pair. */
static void dapx_xrc_sender_destroy(struct dapx_ep *ep)
{
	struct ib_device *ibdev = ep->obj.ctx->dev->ibdev;
	struct dapx_xrc_sender *sender = ep->xrc;

	if (!sender)
		return;
	dapx_xrc_sender_stop(ep);
	dapx_xrc_sender_reset(ep);
	dapx_xrc_buffers_destroy(ibdev, &sender->idle);
	dapx_xrc_buffers_destroy(ibdev, &sender->answers);
	kvfree(sender->payloads);
	kvfree(sender);
	ep->xrc = NULL;
	dapx_xrc_put(ep->obj.ctx->dev);
}

/* The queue pair uses the module's PD, and buffers of one segment each. */
static void dapx_xrc_sender_qp_params(const struct dapx_ep *ep, const struct dapx_ep_attr *attr,
				      const struct dapx_srq *srq, struct dapx_qp_params *params)
{
	params->pd = ep->obj.ctx->dev->xrc_pd;
	params->send_depth = DAPX_XRC_CREDITS + 1; /* and a probe */
	params->recv_depth = dapx_xrc_answers(ep->obj.ctx->dev);
	params->max_send_sge = 1;
	params->max_recv_sge = 1;
}

/* The peer only sends. */
static int dapx_xrc_sender_access_flags(const struct dapx_ep *ep)
{
	return IB_ACCESS_LOCAL_WRITE;
}

static void dapx_xrc_sender_adjust_step(struct dapx_ep *ep, const struct dapx_qp_attr *step,
					struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_RQ_PSN)
		attr->rq_psn = dapx_xrc_answer_psn(step->dest_qp_num, ep->qp->qp_num);
	if (mask & IB_QP_MIN_RNR_TIMER)
		attr->min_rnr_timer = DAPX_XRC_ANSWER_TIMER;
	if (mask & IB_QP_RNR_RETRY) {
		dapx_xrc_sender_set_retries(ep, step->rnr_retry);
		attr->rnr_retry = 7;
	}
}

/*
 * The requester counts the retries of messages. Those of the queue pair have no limit, as its
 * peer has a buffer for each credit.
 */
static void dapx_xrc_sender_prepare_connect(struct dapx_ep *ep, void *header, u8 *rnr_retry)
{
	dapx_xrc_cm_header_write(header);
	dapx_xrc_sender_set_retries(ep, *rnr_retry);
	*rnr_retry = 7;
}

const struct dapx_transport_ops dapx_xrc_transport = {
	.send_ops = &dapx_xrc_send_ops,
	.cm_header_size = sizeof(struct dapx_xrc_cm_header),
	.create = dapx_xrc_sender_create,
	.destroy = dapx_xrc_sender_destroy,
	.qp_params = dapx_xrc_sender_qp_params,
	.access_flags = dapx_xrc_sender_access_flags,
	.start = dapx_xrc_sender_start,
	.stop = dapx_xrc_sender_stop,
	.reset = dapx_xrc_sender_reset,
	.adjust_step = dapx_xrc_sender_adjust_step,
	.prepare_connect = dapx_xrc_sender_prepare_connect,
	.is_header = dapx_xrc_cm_header_is,
};
