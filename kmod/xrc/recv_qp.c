// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: XRC receive queue pairs, which belong to a domain and outlive the process that created
 * them
 *
 * Each has a receive queue of its own, with one or two buffers while it is idle. It borrows
 * more from its domain's pool while its peer can use them. So every credit that a peer has is
 * backed by a posted buffer, and a peer that sends more than its credits allow harms no other.
 *
 * When a segment arrives, it is copied to its destination, and its buffer is ready for the
 * next. Only the data of a read are sent back in the buffer in which the request arrived.
 */
#include <linux/slab.h>

#include "xrc/recv_qp.h"

/*
 * An answer without data. Only one is in flight at a time, as each repeats all that the earlier
 * ones said.
 */
#define DAPX_XRC_PLAIN_SIZE 32

/* How long the last answer may take to arrive, if its completion does not come first. */
#define DAPX_XRC_CLOSE_DELAY (2 * HZ)

/* -------------------------------------------------------------------- events */

void dapx_xrc_qp_queue_break(struct dapx_xrc_qp *qp)
{
	queue_work(qp->user->works, &qp->work);
}

static void dapx_xrc_qp_established(struct dapx_xrc_qp *qp)
{
	unsigned long flags;
	bool news;

	spin_lock_irqsave(&qp->events_lock, flags);
	news = !qp->established;
	WRITE_ONCE(qp->established, true);
	if (news)
		dapx_xrc_qp_notify(qp, DAPX_ASYNC_XRC_QP_ESTABLISHED);
	spin_unlock_irqrestore(&qp->events_lock, flags);
}

/* Reports the end of the connection, once. Called in any context. */
void dapx_xrc_qp_notify_end(struct dapx_xrc_qp *qp, u32 what)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->events_lock, flags);
	if (!qp->ended) {
		WRITE_ONCE(qp->ended, what);
		dapx_xrc_qp_notify(qp, what);
	}
	spin_unlock_irqrestore(&qp->events_lock, flags);
}

void dapx_xrc_qp_end(struct dapx_xrc_qp *qp, u32 what)
{
	dapx_xrc_qp_notify_end(qp, what);
	dapx_xrc_qp_queue_break(qp);
}

void dapx_xrc_qp_fail(struct dapx_xrc_qp *qp)
{
	dapx_xrc_qp_end(qp, DAPX_ASYNC_XRC_QP_ERROR);
}

/*
 * The peer is about to get an answer that says what it did wrong. Moving the queue pair to
 * error now would cancel that answer, so wait for its completion. The completion may never
 * come, because the answer makes the peer move its own queue pair to error; hence the delayed
 * work.
 */
static void dapx_xrc_qp_refused(struct dapx_xrc_qp *qp)
{
	dapx_xrc_qp_notify_end(qp, DAPX_ASYNC_XRC_QP_ERROR);
	queue_delayed_work(qp->user->works, &qp->close_work, DAPX_XRC_CLOSE_DELAY);
}

/*
 * An answer has arrived at the peer, and no other is pending. On iWARP it has only been sent;
 * there the peer ends the connection when it gets the error.
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
 * Takes no reference: before an SRQ is destroyed, dapx_xrc_srq_gone() visits every queue pair
 * of its domain. Of an SRQ of another domain only the pointer to its domain is read; SRQs are
 * freed after a grace period.
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

	to_dapx_srq_slot(slot)->qp_num = dapx_xrc_qp_of(resp)->qp_num;
	slot->node.flags |= DAPX_COMPLETION_XRC;
	if (!arrival->solicited && slot->node.notify == DAPX_NOTIFY_ALL)
		slot->node.notify = DAPX_NOTIFY_ANY;
	if (arrival->status == DAPX_STATUS_SUCCESS) {
		slot->node.byte_len = arrival->length;
		if (arrival->opcode != DAPX_OP_SEND) {
			slot->node.flags |= DAPX_COMPLETION_IMM;
			slot->node.imm_data = arrival->imm;
		}
		if (arrival->opcode == DAPX_OP_RDMA_WRITE_IMM)
			slot->node.opcode = DAPX_OP_RECV_RDMA_IMM;
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

/* Returns how many buffers the peer can use. */
static u32 dapx_xrc_qp_wanted(const struct dapx_xrc_qp *qp)
{
	return clamp(qp->resp.demand, qp->own, DAPX_XRC_CREDITS);
}

/*
 * Posts a buffer for incoming segments, or gives it back to the domain's pool if there are
 * enough.
 */
void dapx_xrc_qp_post(struct dapx_xrc_qp *qp, struct dapx_xrc_buffer *buffer)
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

/* Posts as many buffers as the peer can use, if the pool has them. */
static void dapx_xrc_qp_grow(struct dapx_xrc_qp *qp)
{
	while (qp->posted < dapx_xrc_qp_wanted(qp) && qp->share < DAPX_XRC_CREDITS &&
	       dapx_xrc_pool_take(qp->domain->pool, &qp->buffers)) {
		qp->share++;
		dapx_xrc_qp_post(qp, list_first_entry(&qp->buffers, struct dapx_xrc_buffer, entry));
	}
}

/*
 * Returns how many segments the peer may have sent in total: one for each that has arrived, and
 * one for each posted buffer.
 */
static u32 dapx_xrc_qp_limit(struct dapx_xrc_qp *qp)
{
	qp->advertised = qp->arrived + qp->posted;
	return qp->advertised;
}

static void dapx_xrc_plain_done(struct ib_cq *cq, struct ib_wc *wc);

static void dapx_xrc_qp_answer(struct dapx_xrc_qp *qp, const struct dapx_xrc_reply *reply)
{
	u32 length;

	if (qp->plain_busy) {
		/* A credit update must not overwrite a pending error reply. */
		if (!qp->reply_pending || reply->status != DAPX_STATUS_SUCCESS)
			qp->pending_status = reply->status;
		qp->reply_pending = true;
		return;
	}
	length = dapx_xrc_reply_build(&qp->resp, reply, dapx_xrc_qp_limit(qp), qp->plain.va);
	qp->plain_busy = true;
	if (dapx_xrc_post_send(qp->qp, &qp->plain, length, dapx_xrc_plain_done)) {
		qp->plain_busy = false;
		dapx_xrc_qp_fail(qp);
	}
}

/* Sends a credit update, or an answer that was pending. */
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

/* The data of a read have arrived at the peer. */
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
		/* The peer may be out of credits. If an answer is pending, it will bring them. */
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
	if (unlikely(!READ_ONCE(qp->established)))
		dapx_xrc_qp_established(qp);

	dapx_xrc_buffer_read(qp->qp->device, buffer, DAPX_XRC_SEGMENT_SIZE);
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
		/* This answer says all that a pending one would. */
		qp->reply_pending = false;
		goto out;
	}
	/*
	 * Report the error before sending the answer: on getting it, the peer disconnects,
	 * which must not be reported as the reason.
	 */
	if (reply.now && qp->resp.failed)
		dapx_xrc_qp_refused(qp);
	if (reply.now)
		dapx_xrc_qp_answer(qp, &reply);
	else if (qp->advertised == qp->arrived && !qp->resp.failed)
		/* The peer is out of credits: it could not even repeat what was dropped. */
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

/* From here on nothing is received, answered or completed. Called with qp->mutex held. */
void dapx_xrc_qp_stop(struct dapx_xrc_qp *qp)
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

	mutex_lock(&qp->mutex);
	dapx_xrc_qp_stop(qp);
	if (qp->cm_id)
		rdma_disconnect(qp->cm_id);
	mutex_unlock(&qp->mutex);
}

static void dapx_xrc_qp_close_work(struct work_struct *work)
{
	struct delayed_work *dwork = to_delayed_work(work);
	struct dapx_xrc_qp *qp = container_of(dwork, struct dapx_xrc_qp, close_work);

	/* The peer may have the answer while what it answers is not yet acknowledged. */
	dapx_device_let_acknowledge(qp->domain->dev, READ_ONCE(qp->received_at));
	dapx_xrc_qp_queue_break(qp);
}

static int dapx_xrc_qp_make(struct dapx_xrc_qp *qp)
{
	struct dapx_device *dev = qp->domain->dev;
	struct dapx_qp_params params = {
		.pd = dev->xrc_pd,
		.owner = qp->domain->owner,
		.context = qp,
		.event_handler = dapx_xrc_qp_event,
		.cq_handler = dapx_xrc_cq_handler,
		.send_depth = DAPX_XRC_CREDITS + 1,
		.recv_depth = DAPX_XRC_CREDITS,
		.max_send_sge = 1,
		.max_recv_sge = 1,
	};
	struct dapx_qp made;
	int ret;

	ret = dapx_qp_create(dev, &params, &made);
	if (ret)
		return ret;
	qp->qp = made.qp;
	qp->cq = made.cq;
	qp->qp_num = qp->qp->qp_num;
	return 0;
}

/* Called with domain->lock held. */
struct dapx_xrc_qp *dapx_xrc_qp_create(struct dapx_xrc_domain *domain, struct dapx_user *user)
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
	ret = dapx_xrc_buffer_init(ibdev, &qp->plain, DAPX_XRC_PLAIN_SIZE);
	if (ret)
		goto err_qp;
	qp->own = dapx_xrc_min_credits(domain->dev);
	ret = dapx_xrc_buffers_create(ibdev, &qp->buffers, qp->own);
	if (ret)
		goto err_plain;
	qp->share = qp->own;
	ret = dapx_xrc_qp_make(qp);
	if (ret)
		goto err_buffers;
	qp->serial = dapx_xrc_generation_inc();
	list_add_tail(&qp->entry, &domain->qps);
	return qp;

err_buffers:
	dapx_xrc_buffers_destroy(ibdev, &qp->buffers);
err_plain:
	dapx_xrc_buffer_exit(ibdev, &qp->plain);
err_qp:
	dapx_user_put(user);
	kfree(qp);
	return ERR_PTR(ret);
}

/*
 * No registration is left, so no command finds the queue pair, and its events go nowhere. The
 * steps are in the same order as for endpoints.
 */
void dapx_xrc_qp_destroy(struct dapx_xrc_qp *qp)
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
	dapx_qp_destroy(domain->dev, qp->qp, dapx_device_silence_qp(domain->dev, qp->qp), qp->cq,
			&qp->cq_irq_work);
	cancel_delayed_work_sync(&qp->close_work);
	cancel_work_sync(&qp->work);

	/* From here on dapx_xrc_srq_gone() need not visit this queue pair. */
	mutex_lock(&domain->lock);
	list_del(&qp->entry);
	mutex_unlock(&domain->lock);
	for (; qp->share > qp->own; qp->share--)
		dapx_xrc_pool_give(domain->pool, list_first_entry(&qp->buffers,
								  struct dapx_xrc_buffer, entry));
	dapx_xrc_buffers_destroy(ibdev, &qp->buffers);
	dapx_xrc_buffer_exit(ibdev, &qp->plain);
	dapx_user_put(qp->user);
	kfree(qp);
}

/* @srq is not found any more. When this returns, no message uses it. */
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
 * Calls @fn for the queue pairs with a serial number above @after, in ascending order, until it
 * returns something other than 0. Called with domain->lock held, under which a queue pair
 * changes its state only to error.
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
			.state = dapx_xrc_qp_state(qp),
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
