// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: XRC receive queue pairs: the receiving ends of connections, which belong to a
 * domain and outlive the process that made them
 *
 * Each has a receive queue of its own, of a buffer or two while it is idle. More come out of
 * its domain's pool while its peer has use for them. So what a peer was promised is
 * always there, and one that sends more than that hurts no other.
 *
 * A segment is copied to where it belongs when it arrives, and its buffer is ready for
 * the next; only the data of a read go back in the buffer in which it was asked for.
 */
#include <linux/slab.h>
#include <net/netlink.h>
#include <rdma/ib_cm.h>

#include "dapx_private.h"
#include "xrc_engine.h"

/* An answer without data: one is on its way at a time, as a later one says all that it says. */
#define DAPX_XRC_PLAIN_SIZE 32

/* The module's own, as the process gives none: 67 ms, and so often; to rxe, 7 is without end. */
#define DAPX_XRC_TIMEOUT 14
#define DAPX_XRC_RETRIES 6
/* 0.64 ms */
#define DAPX_XRC_RNR_TIMER 12
/* For the last answer to arrive, if nobody says that it has. */
#define DAPX_XRC_CLOSE_DELAY (2 * HZ)

enum dapx_xrc_qp_todo {
	DAPX_XRC_QP_TODO_BREAK,		/* queue pair to error, tell the peer */
	DAPX_XRC_QP_TODO_ESTABLISHED,	/* a message came before the CM's last one */
};

struct dapx_xrc_qp {
	struct dapx_xrc_domain *domain;	/* kept by the registrations */
	struct dapx_user *user;		/* who made it */
	struct list_head entry;		/* domain->qps */
	u64 serial;
	struct list_head registrations;	/* domain->lock and events_lock to change */
	unsigned int num_registrations;	/* domain->lock; 0: it is being destroyed */
	u32 qp_num;

	struct mutex mutex;		/* steps of the queue pair, cm_id; above lock */
	struct ib_qp *qp;
	struct ib_cq *cq;
	struct irq_work cq_irq_work;
	struct dapx_qp_attr attr;	/* with the state */
	struct rdma_cm_id *cm_id;
	unsigned long answered_at;
	unsigned long received_at;	/* jiffies, and bit 0; the last segment; 0: none */
	unsigned long todo;
	struct work_struct work;
	struct delayed_work close_work;

	spinlock_t events_lock;		/* (irq) registrations, what they were told, below */
	bool established;
	u32 ended;			/* the event that told so; 0: not ended */

	spinlock_t lock;		/* (bh) all below */
	struct dapx_xrc_responder resp;
	bool stopped;			/* nothing is posted any more */
	unsigned int own;		/* buffers that are never another's */
	unsigned int share;		/* buffers it has: posted, or on their way with data */
	unsigned int posted;
	u32 arrived;			/* segments */
	u32 advertised;			/* limit of the last answer */
	bool reply_pending;			/* an answer that found no room */
	enum dapx_status pending_status;
	u64 not_ready;
	struct list_head buffers;
	struct ib_cqe plain_cqe;
	bool plain_busy;
	void *plain_va;
	u64 plain_dma;
};

/* A context's registration. */
struct dapx_xrc_registration {
	struct dapx_object obj;
	struct dapx_xrcd *xrcd;
	struct dapx_xrc_qp *qp;
	u32 qp_num, domain_id;		/* also when these are gone */
	struct dapx_evd *evd;		/* NULL: none */
	struct list_head entry;		/* qp->registrations */
	struct dapx_event_source events;
	struct dapx_event_node established;
	struct dapx_event_node disconnected;
	struct dapx_event_node error;
	bool notified_end;
};

static struct dapx_xrc_registration *to_dapx_xrc_registration(struct dapx_object *obj)
{
	return container_of(obj, struct dapx_xrc_registration, obj);
}

/* -------------------------------------------------------------------- events */

/* Any context; with events_lock. */
static void dapx_xrc_registration_notify(struct dapx_xrc_registration *reg, u32 what)
{
	struct dapx_event event = {
		.type = DAPX_EVENT_ASYNC,
		.handle = reg->obj.handle,
		.user_data = reg->obj.user_data,
		.async = { .what = what, .qp_num = reg->qp_num },
	};

	if (what != DAPX_ASYNC_XRC_QP_ESTABLISHED)
		reg->notified_end = true;
	if (!reg->evd)
		return;
	dapx_evd_post_async(reg->evd, what == DAPX_ASYNC_XRC_QP_ESTABLISHED ? &reg->established :
				      what == DAPX_ASYNC_XRC_QP_DISCONNECTED ? &reg->disconnected :
				      &reg->error, &event);
}

/* To all that are registered. Any context; with events_lock. */
static void dapx_xrc_qp_notify(struct dapx_xrc_qp *qp, u32 what)
{
	struct dapx_xrc_registration *reg;

	list_for_each_entry(reg, &qp->registrations, entry)
		dapx_xrc_registration_notify(reg, what);
}

static void dapx_xrc_qp_queue(struct dapx_xrc_qp *qp, enum dapx_xrc_qp_todo todo)
{
	set_bit(todo, &qp->todo);
	queue_work(qp->user->works, &qp->work);
}

static void dapx_xrc_qp_established(struct dapx_xrc_qp *qp)
{
	unsigned long flags;
	bool news;

	spin_lock_irqsave(&qp->events_lock, flags);
	news = !qp->established;
	qp->established = true;
	if (news)
		dapx_xrc_qp_notify(qp, DAPX_ASYNC_XRC_QP_ESTABLISHED);
	spin_unlock_irqrestore(&qp->events_lock, flags);
	if (news)
		dapx_xrc_qp_queue(qp, DAPX_XRC_QP_TODO_ESTABLISHED);
}

/* The connection is over; it is told once. Any context. */
static void dapx_xrc_qp_notify_end(struct dapx_xrc_qp *qp, u32 what)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->events_lock, flags);
	if (!qp->ended) {
		qp->ended = what;
		dapx_xrc_qp_notify(qp, what);
	}
	spin_unlock_irqrestore(&qp->events_lock, flags);
}

/* Who registers with one whose connection is over hears of it: nothing else will ever come. */
static void dapx_xrc_registration_notify_late(struct dapx_xrc_registration *reg)
{
	struct dapx_xrc_qp *qp = reg->qp;

	spin_lock_irq(&qp->events_lock);
	if (qp->ended && !reg->notified_end)
		dapx_xrc_registration_notify(reg, qp->ended);
	spin_unlock_irq(&qp->events_lock);
}

static void dapx_xrc_qp_end(struct dapx_xrc_qp *qp, u32 what)
{
	dapx_xrc_qp_notify_end(qp, what);
	dapx_xrc_qp_queue(qp, DAPX_XRC_QP_TODO_BREAK);
}

static void dapx_xrc_qp_fail(struct dapx_xrc_qp *qp)
{
	dapx_xrc_qp_end(qp, DAPX_ASYNC_XRC_QP_ERROR);
}

/*
 * The peer is about to hear what it did wrong. A queue pair in error would take that
 * back; and it may never be told that it has arrived, as then the peer's is in error.
 */
static void dapx_xrc_qp_refused(struct dapx_xrc_qp *qp)
{
	dapx_xrc_qp_notify_end(qp, DAPX_ASYNC_XRC_QP_ERROR);
	queue_delayed_work(qp->user->works, &qp->close_work, DAPX_XRC_CLOSE_DELAY);
}

/*
 * An answer has arrived, and none is left to be given. On iWARP it has only been sent: there
 * who hears that it is refused ends the connection.
 */
static void dapx_xrc_qp_answered(struct dapx_xrc_qp *qp)
{
	if (qp->resp.failed && !qp->domain->dev->iwarp)
		mod_delayed_work(qp->user->works, &qp->close_work, 0);
}

/* ------------------------------------------------------- what the engine asks for */

static struct dapx_xrc_qp *dapx_xrc_qp_of(struct dapx_xrc_responder *resp)
{
	return container_of(resp, struct dapx_xrc_qp, resp);
}

/*
 * Without a reference: who ends a queue comes to each queue pair of its domain first. One
 * of another domain is not looked into, and freed after a grace period.
 */
static void *dapx_xrc_find(struct dapx_xrc_responder *resp, u32 srqn)
{
	struct dapx_xrc_domain *domain = dapx_xrc_qp_of(resp)->domain;
	struct dapx_srq *srq = xa_load(&domain->dev->xrc_srqs, srqn);

	return srq && srq->domain == domain ? srq : NULL;
}

static enum dapx_status dapx_xrc_take(struct dapx_xrc_responder *resp, void *queue,
				      void **receive, u64 *size)
{
	enum dapx_status status;

	*receive = dapx_srq_take(queue, &status, size);
	if (status == DAPX_STATUS_SUCCESS || status == DAPX_STATUS_RECEIVER_NOT_READY)
		return status;
	return DAPX_STATUS_REMOTE_OPERATION;
}

static bool dapx_xrc_place(struct dapx_xrc_responder *resp, void *queue, void *receive,
			   u32 offset, const void *from, u32 length)
{
	return dapx_srq_place(queue, receive, offset, from, length);
}

static void dapx_xrc_complete(struct dapx_xrc_responder *resp, void *queue, void *receive,
			      const struct dapx_xrc_arrival *arrival)
{
	struct dapx_slot *slot = receive;
	struct dapx_event *event = &slot->node.event;

	event->completion.flags |= DAPX_COMPLETION_XRC;
	event->completion.qp_num = dapx_xrc_qp_of(resp)->qp_num;
	slot->node.solicited = arrival->solicited;
	if (arrival->status == DAPX_STATUS_SUCCESS) {
		event->completion.byte_len = arrival->length;
		if (arrival->opcode != DAPX_OP_SEND) {
			event->completion.flags |= DAPX_COMPLETION_IMM;
			event->completion.imm_data = arrival->imm;
		}
		if (arrival->opcode == DAPX_OP_RDMA_WRITE_IMM)
			event->completion.opcode = DAPX_OP_RECV_RDMA_IMM;
	}
	dapx_srq_complete(queue, slot, arrival->status);
}

static bool dapx_xrc_write(struct dapx_xrc_responder *resp, void *queue, u32 rkey, u64 addr,
			   u32 total, u32 offset, const void *from, u32 length)
{
	struct dapx_srq *srq = queue;

	return dapx_mr_copy_by_key(srq->pd, rkey, addr, total, offset, (void *)from, length, true);
}

static bool dapx_xrc_read(struct dapx_xrc_responder *resp, void *queue, u32 rkey, u64 addr,
			  u32 total, u32 offset, void *to, u32 length)
{
	struct dapx_srq *srq = queue;

	return dapx_mr_copy_by_key(srq->pd, rkey, addr, total, offset, to, length, false);
}

static bool dapx_xrc_atomic(struct dapx_xrc_responder *resp, void *queue, u32 rkey, u64 addr,
			    u8 opcode, u64 compare_add, u64 swap, u64 *old)
{
	struct dapx_srq *srq = queue;

	return dapx_mr_atomic_by_key(srq->pd, rkey, addr, opcode == DAPX_OP_FETCH_ADD,
				     compare_add, swap, old);
}

static const struct dapx_xrc_responder_ops dapx_xrc_responder_ops = {
	.find = dapx_xrc_find,
	.take = dapx_xrc_take,
	.place = dapx_xrc_place,
	.complete = dapx_xrc_complete,
	.write = dapx_xrc_write,
	.read = dapx_xrc_read,
	.atomic = dapx_xrc_atomic,
};

/* -------------------------------------------------------------------- the wire */

static struct dapx_xrc_qp *dapx_xrc_qp_of_cq(struct ib_cq *cq)
{
	return cq->cq_context;
}

static void dapx_xrc_segment_arrived(struct ib_cq *cq, struct ib_wc *wc);

/* Buffers that its peer has use for. */
static u32 dapx_xrc_qp_wanted(const struct dapx_xrc_qp *qp)
{
	return clamp(qp->resp.demand, qp->own, DAPX_XRC_CREDITS);
}

/* One more buffer for what arrives; or for the others of the domain, if it is one too many. */
static void dapx_xrc_qp_post(struct dapx_xrc_qp *qp, struct dapx_xrc_buffer *buffer)
{
	int ret;

	if (qp->posted >= dapx_xrc_qp_wanted(qp) && qp->share > qp->own) {
		qp->share--;
		dapx_xrc_pool_give(qp->domain->pool, buffer);
		return;
	}
	ret = dapx_xrc_post_recv(qp->qp, buffer, dapx_xrc_segment_arrived);
	if (ret)
		dapx_xrc_qp_fail(qp);
	else
		qp->posted++;
}

/* As many as the peer has use for, as far as there are. */
static void dapx_xrc_qp_grow(struct dapx_xrc_qp *qp)
{
	while (qp->posted < dapx_xrc_qp_wanted(qp) && qp->share < DAPX_XRC_CREDITS &&
	       dapx_xrc_pool_take(qp->domain->pool, &qp->buffers)) {
		qp->share++;
		dapx_xrc_qp_post(qp, list_first_entry(&qp->buffers, struct dapx_xrc_buffer, entry));
	}
}

/* What the peer may send in all: what has arrived, and what there is a buffer for. */
static u32 dapx_xrc_qp_limit(struct dapx_xrc_qp *qp)
{
	qp->advertised = qp->arrived + qp->posted;
	return qp->advertised;
}

static void dapx_xrc_qp_answer(struct dapx_xrc_qp *qp, const struct dapx_xrc_reply *reply)
{
	struct ib_sge sge = { .addr = qp->plain_dma, .lkey = qp->qp->pd->local_dma_lkey };
	struct ib_send_wr wr = {
		.wr_cqe = &qp->plain_cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};

	if (qp->plain_busy) {
		/* Bad news is not to be forgotten for a word on credits. */
		if (!qp->reply_pending || reply->status != DAPX_STATUS_SUCCESS)
			qp->pending_status = reply->status;
		qp->reply_pending = true;
		return;
	}
	sge.length = dapx_xrc_reply_build(&qp->resp, reply, dapx_xrc_qp_limit(qp), qp->plain_va);
	ib_dma_sync_single_for_device(qp->qp->device, sge.addr, sge.length, DMA_TO_DEVICE);
	qp->plain_busy = true;
	if (ib_post_send(qp->qp, &wr, NULL)) {
		qp->plain_busy = false;
		dapx_xrc_qp_fail(qp);
	}
}

/* An answer of no news but credits, or one that had to wait. */
static void dapx_xrc_qp_answer_again(struct dapx_xrc_qp *qp, enum dapx_status status)
{
	struct dapx_xrc_reply reply = {
		.type = DAPX_XRC_ANSWER,
		.status = status,
	};

	qp->reply_pending = false;
	dapx_xrc_qp_answer(qp, &reply);
}

static void dapx_xrc_plain_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct dapx_xrc_qp *qp = dapx_xrc_qp_of_cq(cq);

	spin_lock_bh(&qp->lock);
	qp->plain_busy = false;
	if (wc->status != IB_WC_SUCCESS) {
		if (wc->status != IB_WC_WR_FLUSH_ERR)
			dapx_xrc_qp_fail(qp);
	} else if (!qp->stopped && qp->reply_pending) {
		dapx_xrc_qp_answer_again(qp, qp->pending_status);
	} else if (!qp->stopped) {
		dapx_xrc_qp_answered(qp);
	}
	spin_unlock_bh(&qp->lock);
}

/* The data of a read are on the peer's side. */
static void dapx_xrc_data_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct dapx_xrc_buffer *buffer = container_of(wc->wr_cqe, struct dapx_xrc_buffer, cqe);
	struct dapx_xrc_qp *qp = dapx_xrc_qp_of_cq(cq);

	spin_lock_bh(&qp->lock);
	if (wc->status != IB_WC_SUCCESS) {
		if (wc->status != IB_WC_WR_FLUSH_ERR)
			dapx_xrc_qp_fail(qp);
	} else if (!qp->stopped) {
		dapx_xrc_qp_post(qp, buffer);
		/* The peer may have been left without credits. What is owed will tell it. */
		if (qp->advertised == qp->arrived && qp->posted && !qp->reply_pending)
			dapx_xrc_qp_answer_again(qp, DAPX_STATUS_SUCCESS);
	}
	spin_unlock_bh(&qp->lock);
}

static void dapx_xrc_segment_arrived(struct ib_cq *cq, struct ib_wc *wc)
{
	struct dapx_xrc_buffer *buffer = container_of(wc->wr_cqe, struct dapx_xrc_buffer, cqe);
	struct dapx_xrc_qp *qp = dapx_xrc_qp_of_cq(cq);
	struct dapx_xrc_reply reply;
	u32 length;

	spin_lock_bh(&qp->lock);
	qp->posted--;
	if (wc->status != IB_WC_SUCCESS) {
		if (wc->status != IB_WC_WR_FLUSH_ERR)
			dapx_xrc_qp_fail(qp);
		goto out;
	}
	WRITE_ONCE(qp->received_at, jiffies | 1);
	if (qp->stopped)
		goto out;
	qp->arrived++;
	if (unlikely(!qp->established))
		dapx_xrc_qp_established(qp);

	ib_dma_sync_single_for_cpu(qp->qp->device, buffer->dma, DAPX_XRC_SEGMENT_SIZE,
				   DMA_BIDIRECTIONAL);
	rcu_read_lock();
	dapx_xrc_respond(&qp->resp, buffer->va, wc->byte_len, &reply);
	rcu_read_unlock();
	if (reply.status == DAPX_STATUS_RECEIVER_NOT_READY)
		qp->not_ready++;

	if (!reply.has_data)
		dapx_xrc_qp_post(qp, buffer);
	dapx_xrc_qp_grow(qp);
	if (reply.has_data) {
		length = dapx_xrc_reply_build(&qp->resp, &reply, dapx_xrc_qp_limit(qp),
					      buffer->va);
		if (dapx_xrc_post_send(qp->qp, buffer, length, dapx_xrc_data_done))
			dapx_xrc_qp_fail(qp);
		/* It says all that another one could. */
		qp->reply_pending = false;
		goto out;
	}
	/* First: the peer disconnects when it hears why, but that did not end the connection. */
	if (reply.now && qp->resp.failed)
		dapx_xrc_qp_refused(qp);
	if (reply.now)
		dapx_xrc_qp_answer(qp, &reply);
	else if (qp->advertised == qp->arrived && !qp->resp.failed)
		/* Nothing more could come, not even what was dropped. */
		dapx_xrc_qp_answer_again(qp, DAPX_STATUS_SUCCESS);
out:
	spin_unlock_bh(&qp->lock);
}

static void dapx_xrc_cq_irq_work(struct irq_work *work)
{
	struct dapx_xrc_qp *qp = container_of(work, struct dapx_xrc_qp, cq_irq_work);

	irq_poll_sched(&qp->cq->iop);
}

static void dapx_xrc_cq_handler(struct ib_cq *cq, void *context)
{
	dapx_cq_notify(cq, &dapx_xrc_qp_of_cq(cq)->cq_irq_work);
}

static void dapx_xrc_qp_event(struct ib_event *event, void *context)
{
	struct dapx_xrc_qp *qp = context;

	switch (event->event) {
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
		dapx_xrc_qp_fail(qp);
		break;
	default:
		break;
	}
}

/* ------------------------------------------------------------------ queue pair */

/* With qp->mutex. Nothing more is taken, answered or completed. */
static void dapx_xrc_qp_stop(struct dapx_xrc_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	spin_lock_bh(&qp->lock);
	qp->stopped = true;
	dapx_xrc_responder_end(&qp->resp);
	spin_unlock_bh(&qp->lock);
	if (qp->attr.state != DAPX_QP_RESET && qp->attr.state != DAPX_QP_ERROR)
		ib_modify_qp(qp->qp, &attr, IB_QP_STATE);
	WRITE_ONCE(qp->attr.state, DAPX_QP_ERROR);
}

static void dapx_xrc_qp_work(struct work_struct *work)
{
	struct dapx_xrc_qp *qp = container_of(work, struct dapx_xrc_qp, work);
	unsigned long todo = xchg(&qp->todo, 0);

	mutex_lock(&qp->mutex);
	/* The CM has to know, or it would not let go as of a connection. */
	if (todo & BIT(DAPX_XRC_QP_TODO_ESTABLISHED) && qp->cm_id)
		rdma_notify(qp->cm_id, IB_EVENT_COMM_EST);
	if (todo & BIT(DAPX_XRC_QP_TODO_BREAK)) {
		dapx_xrc_qp_stop(qp);
		if (qp->cm_id)
			rdma_disconnect(qp->cm_id);
	}
	mutex_unlock(&qp->mutex);
}

static void dapx_xrc_qp_close_work(struct work_struct *work)
{
	struct delayed_work *dwork = to_delayed_work(work);
	struct dapx_xrc_qp *qp = container_of(dwork, struct dapx_xrc_qp, close_work);

	dapx_xrc_qp_queue(qp, DAPX_XRC_QP_TODO_BREAK);
}

/* Its last queue pair is gone. */
void dapx_xrc_domain_drain(struct dapx_xrc_domain *domain)
{
	if (!domain->pool)
		return;
	dapx_xrc_pool_destroy(domain->dev->ibdev, domain->pool);
	domain->pool = NULL;
	dapx_xrc_put(domain->dev);
}

/* Its first one is made. With domain->lock. */
static int dapx_xrc_domain_fill(struct dapx_xrc_domain *domain)
{
	int ret;

	if (domain->pool)
		return 0;
	ret = dapx_xrc_get(domain->dev);
	if (ret)
		return ret;
	domain->pool = dapx_xrc_pool_create(domain->dev->ibdev);
	if (!domain->pool) {
		dapx_xrc_put(domain->dev);
		return -ENOMEM;
	}
	return 0;
}

static int dapx_xrc_qp_make(struct dapx_xrc_qp *qp)
{
	struct dapx_device *dev = qp->domain->dev;
	struct ib_qp_init_attr attr = {
		.event_handler = dapx_xrc_qp_event,
		.qp_context = qp,
		.cap = {
			.max_send_wr = DAPX_XRC_CREDITS + 1,
			.max_recv_wr = DAPX_XRC_CREDITS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};

	qp->cq = __ib_alloc_cq_any(dev->ibdev, qp, attr.cap.max_send_wr + attr.cap.max_recv_wr,
				   IB_POLL_SOFTIRQ, qp->domain->owner);
	if (IS_ERR(qp->cq))
		return PTR_ERR(qp->cq);
	qp->cq->comp_handler = dapx_xrc_cq_handler;
	attr.send_cq = qp->cq;
	attr.recv_cq = qp->cq;
	qp->qp = ib_create_qp_kernel(dev->xrc_pd, &attr, qp->domain->owner);
	if (IS_ERR(qp->qp)) {
		ib_free_cq(qp->cq);
		return PTR_ERR(qp->qp) == -ENFILE ? -ENOMEM : PTR_ERR(qp->qp);
	}
	qp->qp_num = qp->qp->qp_num;
	return 0;
}

/* With domain->lock. */
static struct dapx_xrc_qp *dapx_xrc_qp_create(struct dapx_xrc_domain *domain,
					      struct dapx_user *user)
{
	struct ib_device *ibdev = domain->dev->ibdev;
	struct dapx_xrc_qp *qp;
	int ret;

	ret = dapx_xrc_domain_fill(domain);
	if (ret)
		return ERR_PTR(ret);
	qp = kzalloc(sizeof(*qp), GFP_KERNEL_ACCOUNT);
	if (!qp)
		return ERR_PTR(-ENOMEM);
	qp->domain = domain;
	dapx_user_hold(user);
	qp->user = user;
	INIT_LIST_HEAD(&qp->registrations);
	INIT_LIST_HEAD(&qp->buffers);
	mutex_init(&qp->mutex);
	spin_lock_init(&qp->events_lock);
	spin_lock_init(&qp->lock);
	init_irq_work(&qp->cq_irq_work, dapx_xrc_cq_irq_work);
	INIT_WORK(&qp->work, dapx_xrc_qp_work);
	INIT_DELAYED_WORK(&qp->close_work, dapx_xrc_qp_close_work);
	dapx_xrc_responder_init(&qp->resp, &dapx_xrc_responder_ops);
	qp->resp.rnr_timer = DAPX_XRC_RNR_TIMER;
	ret = -ENOMEM;
	qp->plain_cqe.done = dapx_xrc_plain_done;
	qp->plain_va = kzalloc(DAPX_XRC_PLAIN_SIZE, GFP_KERNEL_ACCOUNT);
	if (!qp->plain_va)
		goto err_qp;
	qp->plain_dma = ib_dma_map_single(ibdev, qp->plain_va, DAPX_XRC_PLAIN_SIZE, DMA_TO_DEVICE);
	if (ib_dma_mapping_error(ibdev, qp->plain_dma))
		goto err_plain;
	qp->own = dapx_xrc_min_credits(domain->dev);
	ret = dapx_xrc_buffers_create(ibdev, &qp->buffers, qp->own);
	if (ret)
		goto err_map;
	qp->share = qp->own;
	ret = dapx_xrc_qp_make(qp);
	if (ret)
		goto err_buffers;
	qp->serial = dapx_xrc_generation_inc();
	list_add_tail(&qp->entry, &domain->qps);
	return qp;

err_buffers:
	dapx_xrc_buffers_destroy(ibdev, &qp->buffers);
err_map:
	ib_dma_unmap_single(ibdev, qp->plain_dma, DAPX_XRC_PLAIN_SIZE, DMA_TO_DEVICE);
err_plain:
	kfree(qp->plain_va);
err_qp:
	dapx_user_put(user);
	kfree(qp);
	return ERR_PTR(ret);
}

/*
 * Nobody is registered with it: no command finds it, and no event goes anywhere. In the
 * order in which endpoints end.
 */
static void dapx_xrc_qp_destroy(struct dapx_xrc_qp *qp)
{
	struct dapx_xrc_domain *domain = qp->domain;
	struct ib_device *ibdev = domain->dev->ibdev;
	struct rdma_cm_id *id;

	dapx_device_let_acknowledge(domain->dev, READ_ONCE(qp->received_at));
	mutex_lock(&qp->mutex);
	dapx_xrc_qp_stop(qp);
	id = qp->cm_id;
	qp->cm_id = NULL;
	mutex_unlock(&qp->mutex);
	if (id) {
		dapx_cm_delay_reject(qp->answered_at);
		rdma_destroy_id(id);
	}
	dapx_device_silence_qp(domain->dev, qp->qp);
	ib_destroy_qp(qp->qp);
	irq_work_sync(&qp->cq_irq_work);
	ib_process_cq_direct(qp->cq, -1);
	ib_free_cq(qp->cq);
	cancel_delayed_work_sync(&qp->close_work);
	cancel_work_sync(&qp->work);

	/* No queue that ends needs to come here any more. */
	mutex_lock(&domain->lock);
	list_del(&qp->entry);
	mutex_unlock(&domain->lock);
	/* What was lent is given back. */
	for (; qp->share > qp->own; qp->share--)
		dapx_xrc_pool_give(domain->pool, list_first_entry(&qp->buffers,
								  struct dapx_xrc_buffer, entry));
	dapx_xrc_buffers_destroy(ibdev, &qp->buffers);
	ib_dma_unmap_single(ibdev, qp->plain_dma, DAPX_XRC_PLAIN_SIZE, DMA_TO_DEVICE);
	dapx_user_put(qp->user);
	kfree(qp->plain_va);
	kfree(qp);
}

/* An SRQ ends, and is not found any more: when this returns, no message has it. */
void dapx_xrc_srq_gone(struct dapx_xrc_domain *domain, struct dapx_srq *srq)
{
	struct dapx_xrc_qp *qp;

	mutex_lock(&domain->lock);
	dapx_xrc_generation_inc();
	list_del_init(&srq->entry);
	list_for_each_entry(qp, &domain->qps, entry) {
		spin_lock_bh(&qp->lock);
		dapx_xrc_queue_gone(&qp->resp, srq);
		spin_unlock_bh(&qp->lock);
	}
	mutex_unlock(&domain->lock);
}

/* --------------------------------------------------------------- registrations */

static struct dapx_xrc_registration *dapx_xrc_qp_registration(struct dapx_xrc_qp *qp,
							      struct dapx_context *ctx)
{
	struct dapx_xrc_registration *reg;

	lockdep_assert_held(&qp->domain->lock);
	list_for_each_entry(reg, &qp->registrations, entry)
		if (reg->obj.ctx == ctx)
			return reg;
	return NULL;
}

static struct dapx_xrc_qp *dapx_xrc_qp_find(struct dapx_xrc_domain *domain, u32 qp_num)
{
	struct dapx_xrc_qp *qp;

	lockdep_assert_held(&domain->lock);
	list_for_each_entry(qp, &domain->qps, entry)
		if (qp->qp_num == qp_num && qp->num_registrations)
			return qp;
	return NULL;
}

static void dapx_xrc_qp_add(struct dapx_xrc_qp *qp, struct dapx_xrc_registration *reg)
{
	reg->qp = qp;
	reg->qp_num = qp->qp_num;
	reg->domain_id = qp->domain->id;
	spin_lock_irq(&qp->events_lock);
	list_add_tail(&reg->entry, &qp->registrations);
	spin_unlock_irq(&qp->events_lock);
	qp->num_registrations++;
	dapx_xrc_generation_inc();
}

/* Returns whether it was the last one. */
static bool dapx_xrc_qp_remove(struct dapx_xrc_qp *qp, struct dapx_xrc_registration *reg)
{
	spin_lock_irq(&qp->events_lock);
	list_del_init(&reg->entry);
	spin_unlock_irq(&qp->events_lock);
	dapx_xrc_generation_inc();
	return !--qp->num_registrations;
}

static void dapx_xrc_registration_destroy(struct dapx_object *obj)
{
	struct dapx_xrc_registration *reg = to_dapx_xrc_registration(obj);
	bool last = false;

	if (reg->qp) {
		mutex_lock(&reg->qp->domain->lock);
		last = dapx_xrc_qp_remove(reg->qp, reg);
		mutex_unlock(&reg->qp->domain->lock);
	}
	if (last)
		dapx_xrc_qp_destroy(reg->qp);
	if (reg->evd) {
		dapx_evd_drop(reg->evd, &reg->events);
		dapx_object_unuse(&reg->evd->obj);
	}
	if (reg->xrcd)
		dapx_object_unuse(&reg->xrcd->obj);
}

static int dapx_xrc_registration_fill(struct dapx_object *obj, struct sk_buff *skb)
{
	struct dapx_xrc_registration *reg = to_dapx_xrc_registration(obj);

	if (nla_put_u32(skb, DAPX_OBJECT_ATTR_DOMAIN, reg->domain_id) ||
	    nla_put_u32(skb, DAPX_OBJECT_ATTR_QP, reg->qp_num))
		return -EMSGSIZE;
	return 0;
}

const struct dapx_object_class dapx_xrc_qp_class = {
	.type = DAPX_OBJECT_XRC_QP,
	.size = sizeof(struct dapx_xrc_registration),
	.destroy = dapx_xrc_registration_destroy,
	.fill = dapx_xrc_registration_fill,
};

static void dapx_xrc_registration_abort(struct dapx_xrc_registration *reg)
{
	dapx_xrc_registration_destroy(&reg->obj);
	dapx_object_abort(&reg->obj);
}

/* Not of a queue pair yet. */
static struct dapx_xrc_registration *dapx_xrc_registration_create(struct dapx_context *ctx,
								  u32 xrcd, u32 evd,
								  u64 user_data)
{
	struct dapx_xrc_registration *reg;
	struct dapx_object *obj;
	int ret;

	obj = dapx_object_alloc(ctx, &dapx_xrc_qp_class);
	if (IS_ERR(obj))
		return ERR_CAST(obj);
	reg = to_dapx_xrc_registration(obj);
	INIT_LIST_HEAD(&reg->entry);
	dapx_event_source_init(&reg->events, obj, NULL);
	reg->established.source = &reg->events;
	reg->disconnected.source = &reg->events;
	reg->error.source = &reg->events;
	reg->obj.user_data = user_data;
	ret = dapx_xrcd_use(ctx, xrcd, &reg->xrcd);
	if (ret)
		goto err;
	if (evd) {
		obj = dapx_object_use(ctx, evd, DAPX_OBJECT_EVD);
		if (IS_ERR(obj)) {
			ret = PTR_ERR(obj);
			goto err;
		}
		reg->evd = to_dapx_evd(obj);
	}
	return reg;

err:
	dapx_xrc_registration_abort(reg);
	return ERR_PTR(ret);
}

int dapx_cmd_xrc_qp_create(struct dapx_ucmd *ucmd)
{
	struct dapx_xrc_qp_create *cmd = ucmd->cmd;
	struct dapx_xrc_registration *reg;
	struct dapx_xrc_domain *domain;
	struct dapx_xrc_qp *qp;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	reg = dapx_xrc_registration_create(ucmd->ctx, cmd->xrcd, cmd->evd, cmd->user_data);
	if (IS_ERR(reg))
		return PTR_ERR(reg);
	domain = reg->xrcd->domain;
	mutex_lock(&domain->lock);
	qp = dapx_xrc_qp_create(domain, ucmd->ctx->user);
	if (!IS_ERR(qp))
		dapx_xrc_qp_add(qp, reg);
	mutex_unlock(&domain->lock);
	ret = PTR_ERR_OR_ZERO(qp);
	if (!ret) {
		cmd->out_xrc_qp = reg->obj.handle;
		cmd->out_qp_num = qp->qp_num;
		ret = dapx_respond(ucmd);
	}
	if (ret)
		dapx_xrc_registration_abort(reg);
	else
		dapx_object_publish(&reg->obj);
	return ret;
}

int dapx_cmd_xrc_qp_register(struct dapx_ucmd *ucmd)
{
	struct dapx_xrc_qp_register *cmd = ucmd->cmd;
	struct dapx_xrc_registration *reg, *old = NULL;
	struct dapx_xrc_domain *domain;
	struct dapx_xrc_qp *qp;
	int ret;

	if (cmd->flags & ~DAPX_XRC_QP_REGISTER_EXCL)
		return -EOPNOTSUPP;
	reg = dapx_xrc_registration_create(ucmd->ctx, cmd->xrcd, cmd->evd, cmd->user_data);
	if (IS_ERR(reg))
		return PTR_ERR(reg);
	domain = reg->xrcd->domain;
	mutex_lock(&domain->lock);
	qp = dapx_xrc_qp_find(domain, cmd->qp_num);
	if (qp)
		old = dapx_xrc_qp_registration(qp, ucmd->ctx);
	cmd->out_xrc_qp = old ? old->obj.handle : reg->obj.handle;
	if (qp && !old)
		dapx_xrc_qp_add(qp, reg);
	mutex_unlock(&domain->lock);

	ret = qp ? 0 : -EINVAL;
	if (old && cmd->flags & DAPX_XRC_QP_REGISTER_EXCL)
		ret = -EEXIST;
	if (!ret)
		ret = dapx_respond(ucmd);
	if (ret || old) {
		dapx_xrc_registration_abort(reg);
		return ret;
	}
	/* Not of a command that fails; and before anybody can free it. */
	dapx_xrc_registration_notify_late(reg);
	dapx_object_publish(&reg->obj);
	return 0;
}

/* A queue pair for a command, with domain->lock held; see dapx_xrc_qp_unlock(). */
static struct dapx_xrc_qp *dapx_xrc_qp_lock(struct dapx_context *ctx, u32 xrcd_handle, u32 qp_num,
					    bool registered, struct dapx_xrcd **xrcd)
{
	struct dapx_xrc_qp *qp;
	int ret;

	ret = dapx_xrcd_use(ctx, xrcd_handle, xrcd);
	if (ret)
		return ERR_PTR(ret);
	mutex_lock(&(*xrcd)->domain->lock);
	qp = dapx_xrc_qp_find((*xrcd)->domain, qp_num);
	ret = -EINVAL;
	if (qp && registered && !dapx_xrc_qp_registration(qp, ctx))
		ret = -EACCES;
	else if (qp)
		return qp;
	mutex_unlock(&(*xrcd)->domain->lock);
	dapx_object_unuse(&(*xrcd)->obj);
	return ERR_PTR(ret);
}

static void dapx_xrc_qp_unlock(struct dapx_xrcd *xrcd)
{
	mutex_unlock(&xrcd->domain->lock);
	dapx_object_unuse(&xrcd->obj);
}

int dapx_cmd_xrc_qp_unregister(struct dapx_ucmd *ucmd)
{
	const struct dapx_xrc_qp_unregister *cmd = ucmd->cmd;
	struct dapx_xrc_registration *reg;
	struct dapx_xrcd *xrcd;
	struct dapx_xrc_qp *qp;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	qp = dapx_xrc_qp_lock(ucmd->ctx, cmd->xrcd, cmd->qp_num, false, &xrcd);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	reg = dapx_xrc_qp_registration(qp, ucmd->ctx);
	/* Whoever takes the handle out ends it: this, or a free. */
	ret = reg ? dapx_object_unpublish(&reg->obj, false) : -EINVAL;
	dapx_xrc_qp_unlock(xrcd);
	if (ret)
		return ret == -ENOENT ? -EINVAL : ret;
	dapx_xrc_registration_destroy(&reg->obj);
	dapx_object_put(&reg->obj);
	return 0;
}

/* -------------------------------------------------------------------- connecting */

/* With qp->mutex. */
static int dapx_xrc_qp_step(struct dapx_xrc_qp *qp, struct ib_qp_attr *attr, int mask)
{
	struct dapx_xrc_buffer *buffer, *next;
	int ret;

	if (mask & IB_QP_ACCESS_FLAGS)
		attr->qp_access_flags = IB_ACCESS_LOCAL_WRITE;
	/* Its peer only sends. What rxe cannot allocate for more, it says when it is too late. */
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		attr->max_dest_rd_atomic = 0;
	ret = ib_modify_qp(qp->qp, attr, mask);
	if (ret)
		return ret == -ENODATA ? -EINVAL : ret;
	if (attr->qp_state != IB_QPS_INIT)
		return 0;
	spin_lock_bh(&qp->lock);
	list_for_each_entry_safe(buffer, next, &qp->buffers, entry)
		dapx_xrc_qp_post(qp, buffer);
	spin_unlock_bh(&qp->lock);
	return 0;
}

/* Answers go the other way; to programs it does not send, so they say nothing of it. */
static int dapx_xrc_qp_ready_to_answer(struct dapx_xrc_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.sq_psn = dapx_xrc_answer_psn(qp->qp_num, qp->attr.dest_qp_num),
		.timeout = DAPX_XRC_TIMEOUT,
		.retry_cnt = DAPX_XRC_RETRIES,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	return dapx_xrc_qp_step(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT |
				IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC);
}

static int dapx_xrc_qp_modify(struct dapx_xrc_qp *qp, const struct dapx_qp_attr *step)
{
	struct ib_qp_attr attr;
	int mask, ret;

	if (qp->domain->dev->iwarp)
		return -EOPNOTSUPP;
	ret = dapx_qp_attr_build(qp->domain->dev, qp->attr.port, step, &attr, &mask);
	if (ret)
		return ret;
	if (qp->cm_id || step->state != qp->attr.state + 1)
		return -EBADFD;
	switch (step->state) {
	case DAPX_QP_INIT:
		ret = dapx_xrc_qp_step(qp, &attr, mask);
		if (ret)
			return ret;
		qp->attr.port = step->port;
		qp->attr.pkey_index = step->pkey_index;
		break;
	case DAPX_QP_RTR:
		ret = dapx_xrc_qp_step(qp, &attr, mask);
		if (ret)
			return ret;
		qp->attr = (struct dapx_qp_attr) {
			.dest_qp_num = step->dest_qp_num,
			.rq_psn = step->rq_psn,
			.pkey_index = qp->attr.pkey_index,
			.dlid = step->dlid,
			.max_dest_rd_atomic = step->max_dest_rd_atomic,
			.port = qp->attr.port,
			.sgid_index = step->sgid_index,
			.hop_limit = step->hop_limit,
			.traffic_class = step->traffic_class,
			.flow_label = step->flow_label,
			.sl = step->sl,
			.path_mtu = step->path_mtu,
			.min_rnr_timer = step->min_rnr_timer,
		};
		memcpy(qp->attr.dgid, step->dgid, sizeof(qp->attr.dgid));
		spin_lock_bh(&qp->lock);
		qp->resp.rnr_timer = step->min_rnr_timer;
		spin_unlock_bh(&qp->lock);
		ret = dapx_xrc_qp_ready_to_answer(qp);
		if (ret) {
			dapx_xrc_qp_stop(qp);
			return ret;
		}
		break;
	default:
		qp->attr.sq_psn = step->sq_psn;
		qp->attr.max_rd_atomic = step->max_rd_atomic;
		qp->attr.timeout = step->timeout;
		qp->attr.retry_count = step->retry_count;
		qp->attr.rnr_retry = step->rnr_retry;
		break;
	}
	qp->attr.state = step->state;
	return 0;
}

int dapx_cmd_xrc_qp_modify(struct dapx_ucmd *ucmd)
{
	const struct dapx_xrc_qp_modify *cmd = ucmd->cmd;
	struct dapx_xrcd *xrcd;
	struct dapx_xrc_qp *qp;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (memchr_inv(cmd->qp.__reserved, 0, sizeof(cmd->qp.__reserved)))
		return -EINVAL;
	qp = dapx_xrc_qp_lock(ucmd->ctx, cmd->xrcd, cmd->qp_num, true, &xrcd);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	mutex_lock(&qp->mutex);
	ret = dapx_xrc_qp_modify(qp, &cmd->qp);
	mutex_unlock(&qp->mutex);
	dapx_xrc_qp_unlock(xrcd);
	return ret;
}

static int dapx_xrc_qp_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct dapx_xrc_qp *qp = id->context;

	WRITE_ONCE(qp->answered_at, 0);
	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		dapx_xrc_qp_end(qp, DAPX_ASYNC_XRC_QP_DISCONNECTED);
		break;
	default:
		/* The set-up came to nothing. */
		dapx_xrc_qp_fail(qp);
		break;
	}
	return 0;
}

static int dapx_xrc_qp_cm_step(struct dapx_xrc_qp *qp, struct rdma_cm_id *id,
			       enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };
	int mask, ret;

	ret = rdma_init_qp_attr(id, &attr, &mask);
	if (ret)
		return ret;
	if (mask & IB_QP_DEST_QPN)
		qp->attr.dest_qp_num = attr.dest_qp_num;
	if (mask & IB_QP_MIN_RNR_TIMER)
		attr.min_rnr_timer = DAPX_XRC_RNR_TIMER;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		attr.max_rd_atomic = 1;
	return dapx_xrc_qp_step(qp, &attr, mask);
}

/* With qp->mutex, and the id's handler mutex. */
static int dapx_xrc_qp_accept(struct dapx_xrc_qp *qp, struct rdma_cm_id *id,
			      const struct dapx_xrc_qp_accept *cmd)
{
	u8 private_data[DAPX_CM_HEADER_MAX + DAPX_PRIVATE_DATA_MAX];
	struct rdma_conn_param param = {
		.private_data = private_data,
		.private_data_len = sizeof(struct dapx_xrc_cm_header) + cmd->private_data_len,
		.responder_resources = 1,
		.initiator_depth = 1,
		.flow_control = 1,
		.rnr_retry_count = 7,
		.qp_num = qp->qp_num,
	};
	bool iwarp = qp->domain->dev->iwarp;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR };
	int mask, ret;

	dapx_xrc_cm_header_write(private_data);
	memcpy(private_data + sizeof(struct dapx_xrc_cm_header), cmd->private_data,
	       cmd->private_data_len);
	/* Refused when the peer has given up: before anything has changed. */
	ret = iwarp ? 0 : rdma_init_qp_attr(id, &attr, &mask);
	if (!ret)
		ret = dapx_xrc_qp_cm_step(qp, id, IB_QPS_INIT);
	if (ret)
		return ret == -EINVAL ? -EBADFD : ret;

	/* From here on failures are the connection's. */
	id->event_handler = dapx_xrc_qp_cm_handler;
	id->context = qp;
	qp->cm_id = id;
	qp->attr.state = DAPX_QP_RTS;
	/* Odd: 0 is none. */
	WRITE_ONCE(qp->answered_at, jiffies | 1);
	if (!iwarp)
		ret = dapx_xrc_qp_cm_step(qp, id, IB_QPS_RTR) ?:
		      dapx_xrc_qp_cm_step(qp, id, IB_QPS_RTS);
	if (ret)
		rdma_reject(id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
	else
		ret = rdma_accept(id, &param);
	if (ret)
		dapx_xrc_qp_fail(qp);
	return 0;
}

/* @cm is claimed. */
static int dapx_xrc_qp_take_request(struct dapx_xrc_qp *qp, struct dapx_cm *cm,
				    const struct dapx_xrc_qp_accept *cmd)
{
	struct rdma_cm_id *id;
	int ret = -EBADFD;

	mutex_lock(&qp->mutex);
	id = cm->id;
	if (qp->attr.state == DAPX_QP_RESET && !qp->cm_id) {
		rdma_lock_handler(id);
		ret = dapx_xrc_qp_accept(qp, id, cmd);
		rdma_unlock_handler(id);
	}
	mutex_unlock(&qp->mutex);
	if (!ret) {
		mutex_lock(&cm->id_mutex);
		cm->id = NULL;
		mutex_unlock(&cm->id_mutex);
	}
	return ret;
}

int dapx_cmd_xrc_qp_accept(struct dapx_ucmd *ucmd)
{
	const struct dapx_xrc_qp_accept *cmd = ucmd->cmd;
	struct dapx_object *obj;
	struct dapx_xrcd *xrcd;
	struct dapx_xrc_qp *qp;
	struct dapx_cm *cm;
	bool claimed = false;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->__reserved || cmd->private_data_len >
	    IB_CM_REP_PRIVATE_DATA_SIZE - sizeof(struct dapx_xrc_cm_header))
		return -EINVAL;
	qp = dapx_xrc_qp_lock(ucmd->ctx, cmd->xrcd, cmd->qp_num, true, &xrcd);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	obj = dapx_object_get(ucmd->ctx, cmd->cm, DAPX_OBJECT_CM);
	if (IS_ERR(obj)) {
		dapx_xrc_qp_unlock(xrcd);
		return PTR_ERR(obj);
	}
	cm = to_dapx_cm(obj);

	/* Neither changes. */
	ret = -EBADFD;
	if (READ_ONCE(cm->state) == DAPX_CM_REQUEST && !cm->xrc)
		ret = -EPROTO;
	else if (!cm->candidate)
		claimed = dapx_cm_claim_request(cm);
	if (claimed)
		ret = dapx_xrc_qp_take_request(qp, cm, cmd);
	dapx_xrc_qp_unlock(xrcd);
	if (!ret)
		dapx_cm_request_handed_over(cm);
	else if (claimed)
		dapx_cm_unclaim_request(cm);
	dapx_object_put(obj);
	return ret;
}

int dapx_cmd_xrc_qp_query(struct dapx_ucmd *ucmd)
{
	struct dapx_xrc_qp_query *cmd = ucmd->cmd;
	struct dapx_xrc_registration *reg;
	struct dapx_xrcd *xrcd;
	struct dapx_xrc_qp *qp;

	if (cmd->flags)
		return -EOPNOTSUPP;
	qp = dapx_xrc_qp_lock(ucmd->ctx, cmd->xrcd, cmd->qp_num, false, &xrcd);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	reg = dapx_xrc_qp_registration(qp, ucmd->ctx);
	cmd->out_xrc_qp = reg ? reg->obj.handle : 0;
	cmd->out_registrations = qp->num_registrations;
	spin_lock_bh(&qp->lock);
	cmd->out_messages = qp->resp.messages;
	cmd->out_not_ready = qp->not_ready;
	spin_unlock_bh(&qp->lock);
	mutex_lock(&qp->mutex);
	cmd->out_qp = qp->attr;
	mutex_unlock(&qp->mutex);
	dapx_xrc_qp_unlock(xrcd);
	return dapx_respond(ucmd);
}

/* -------------------------------------------------------------------- listing */

static bool dapx_xrc_qp_is_of(const struct dapx_xrc_qp *qp, kuid_t user)
{
	struct dapx_xrc_registration *reg;

	list_for_each_entry(reg, &qp->registrations, entry)
		if (uid_eq(dapx_context_owner(reg->obj.ctx), user))
			return true;
	return false;
}

/*
 * Calls @fn for the queue pairs with a serial number behind @after, in its order, until
 * it does not return 0. With domain->lock, under which no step is taken but that to error.
 */
int dapx_xrc_qps_each(struct dapx_xrc_domain *domain, u64 after, kuid_t user,
		      int (*fn)(const struct dapx_xrc_qp_info *info, void *context),
		      void *context)
{
	struct dapx_xrc_qp_info info;
	struct dapx_xrc_qp *qp;
	int ret = 0;

	lockdep_assert_held(&domain->lock);
	list_for_each_entry(qp, &domain->qps, entry) {
		if (qp->serial <= after || !qp->num_registrations)
			continue;
		info = (struct dapx_xrc_qp_info) {
			.serial = qp->serial,
			.qp_num = qp->qp_num,
			.state = READ_ONCE(qp->attr.state),
			.registrations = qp->num_registrations,
			.own = dapx_xrc_qp_is_of(qp, user),
		};
		spin_lock_bh(&qp->lock);
		info.messages = qp->resp.messages;
		info.not_ready = qp->not_ready;
		spin_unlock_bh(&qp->lock);
		ret = fn(&info, context);
		if (ret)
			break;
	}
	return ret;
}
