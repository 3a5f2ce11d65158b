// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: the queue pair of an endpoint
 */
#include "ep.h"

void dapx_ep_cq_irq_work(struct irq_work *work)
{
	struct dapx_ep *ep = container_of(work, struct dapx_ep, cq_irq_work);

	irq_poll_sched(&ep->cq->iop);
}

static void dapx_ep_cq_handler(struct ib_cq *cq, void *context)
{
	struct dapx_ep *ep = context;
	const struct dapx_queue *rq = ep->srq ? &ep->srq->rq : &ep->rq;
	struct dapx_evd *recv_evd, *request_evd;

	if (!dapx_cq_notify(cq, &ep->cq_irq_work))
		return;
	rcu_read_lock();
	recv_evd = READ_ONCE(ep->recv_evd);
	request_evd = READ_ONCE(ep->request_evd);
	/* A thread that is woken for a quiet completion would only go back to sleep. */
	if (recv_evd && !READ_ONCE(rq->quiet))
		dapx_evd_expect(recv_evd);
	if (request_evd && request_evd != recv_evd && !READ_ONCE(ep->sq.quiet))
		dapx_evd_expect(request_evd);
	rcu_read_unlock();
}

static void dapx_ep_qp_event(struct ib_event *event, void *context)
{
	struct dapx_event fatal = {
		.type = DAPX_EVENT_ASYNC,
		.async.what = DAPX_ASYNC_EP_ERROR,
	};
	struct dapx_ep *ep = context;
	struct dapx_evd *evd;
	unsigned long flags;

	switch (event->event) {
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
		/*
		 * Newer kernels' rxe raises the event before it refuses the request, and does
		 * not refuse it any more if the queue pair is in error by then.
		 */
		if (ep->obj.ctx->dev->driver->silent_errors)
			dapx_pd_check_soon(ep->pd);
		else
			dapx_ep_fail(ep);
		break;
	default:
		break;
	}
}

static int dapx_ep_map_inline(struct dapx_ep *ep, struct dapx_queue *sq)
{
	struct ib_device *ibdev = ep->obj.ctx->dev->ibdev;
	size_t size = (size_t)sq->view.depth * sq->max_inline;
	u64 dma;

	if (!sq->inline_data || sq->inline_dma)
		return 0;
	dma = ib_dma_map_single(ibdev, sq->inline_data, size, DMA_TO_DEVICE);
	if (ib_dma_mapping_error(ibdev, dma))
		return -ENOMEM;
	sq->inline_dma = dma;
	return 0;
}

/* @sq is the endpoint's request queue, or the one that it had. */
void dapx_ep_unmap_inline(struct dapx_ep *ep, struct dapx_queue *sq)
{
	if (sq->inline_dma)
		ib_dma_unmap_single(ep->obj.ctx->dev->ibdev, sq->inline_dma,
				    (size_t)sq->view.depth * sq->max_inline, DMA_TO_DEVICE);
	sq->inline_dma = 0;
}

static int dapx_ep_create_qp(struct dapx_ep *ep, struct dapx_pd *pd,
			     const struct dapx_ep_attr *attr, struct dapx_srq *srq,
			     struct dapx_qp *new)
{
	struct dapx_device *dev = ep->obj.ctx->dev;
	struct dapx_qp_params params = {
		.pd = pd->ibpd,
		.context = ep,
		.owner = ep->obj.ctx->owner,
		.event_handler = dapx_ep_qp_event,
		.cq_handler = dapx_ep_cq_handler,
	};

	ep->transport->qp_params(ep, attr, srq, &params);
	return dapx_qp_create(dev, &params, new);
}

/* Creates the queue pair and its CQs, before an old queue pair is destroyed. */
int dapx_ep_make_qp(struct dapx_ep *ep, struct dapx_pd *pd, struct dapx_qp *new)
{
	int ret = dapx_ep_map_inline(ep, &ep->sq);

	return ret ? ret : dapx_ep_create_qp(ep, pd, &ep->attr, ep->srq, new);
}

/* The same for rings and an SRQ that the endpoint will have. */
int dapx_ep_make_other_qp(struct dapx_ep *ep, struct dapx_ep_rings *rings, struct dapx_srq *srq,
			  struct dapx_qp *new)
{
	int ret = dapx_ep_map_inline(ep, &rings->sq);

	return ret ? ret : dapx_ep_create_qp(ep, ep->pd, &rings->attr, srq, new);
}

void dapx_ep_install_qp(struct dapx_ep *ep, const struct dapx_qp *new)
{
	mutex_lock(&ep->qp_mutex);
	ep->cq = new->cq;
	ep->qp = new->qp;
	/* Another thread may fetch receives already. */
	spin_lock_bh(&ep->recv_cq_lock);
	ep->recv_cq = new->recv_cq;
	spin_unlock_bh(&ep->recv_cq_lock);
	ep->silent_error = false;
	WRITE_ONCE(ep->qp_state, IB_QPS_RESET);
	mutex_unlock(&ep->qp_mutex);
	/*
	 * A thread may have been waiting for any event, solicited or not, since before this CQ
	 * existed.
	 */
	if (new->recv_cq && ep->recv_evd)
		dapx_ep_arm(ep, ep->recv_evd);
}

/*
 * The queue pair is in ERROR or RESET, where dapx_ep_check_qp_error() does not look at it. When
 * this returns, no completion handler runs any more.
 */
void dapx_ep_destroy_qp(struct dapx_ep *ep)
{
	struct ib_cq *recv_cq;

	/*
	 * Receives of an SRQ are not waited for. This also completes those that the device has
	 * returned.
	 */
	dapx_qp_destroy(ep->obj.ctx->dev, ep->qp, ep->silence, ep->cq, &ep->cq_irq_work);
	mutex_lock(&ep->qp_mutex);
	ep->qp = NULL;
	ep->cq = NULL;
	WRITE_ONCE(ep->qp_state, IB_QPS_RESET);
	mutex_unlock(&ep->qp_mutex);
	if (ep->recv_cq) {
		/* Without a queue pair nothing queues this work any more. */
		cancel_work_sync(&ep->recv_cq_work);
		dapx_ep_fetch(ep);
		spin_lock_bh(&ep->recv_cq_lock);
		recv_cq = ep->recv_cq;
		ep->recv_cq = NULL;
		spin_unlock_bh(&ep->recv_cq_lock);
		ib_destroy_cq(recv_cq);
	}
}

/* Returns ECANCELED if the queue pair is in error already; it stays there. */
int dapx_ep_qp_modify(struct dapx_ep *ep, struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state from;
	int ret = -ECANCELED;

	mutex_lock(&ep->qp_mutex);
	from = ep->qp_state;
	if (ep->qp && from != IB_QPS_ERR) {
		ret = dapx_qp_modify(ep->qp, attr, mask);
		if (!ret && mask & IB_QP_MAX_QP_RD_ATOMIC)
			ep->agreed_rd_atomic = attr->max_rd_atomic;
		if (!ret && mask & IB_QP_MAX_DEST_RD_ATOMIC)
			ep->agreed_dest_rd_atomic = attr->max_dest_rd_atomic;
		if (!ret && mask & IB_QP_STATE)
			WRITE_ONCE(ep->qp_state, attr->qp_state);
		/* The process may have moved it to INIT before the RDMA CM does. */
		if (!ret && ep->transport->start && from == IB_QPS_RESET &&
		    attr->qp_state == IB_QPS_INIT)
			ret = ep->transport->start(ep);
	}
	mutex_unlock(&ep->qp_mutex);
	return ret;
}

void dapx_ep_qp_to_error(struct dapx_ep *ep)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	mutex_lock(&ep->qp_mutex);
	if (ep->qp && ep->qp_state != IB_QPS_ERR) {
		/* RESET has no transition to ERROR, and there is nothing to flush. */
		if (ep->qp_state != IB_QPS_RESET)
			ib_modify_qp(ep->qp, &attr, IB_QP_STATE);
		WRITE_ONCE(ep->qp_state, IB_QPS_ERR);
		if (ep->recv_cq && ep->recv_evd)
			dapx_object_queue_work(&ep->obj, &ep->recv_cq_work);
	}
	if (ep->transport->stop)
		ep->transport->stop(ep);
	mutex_unlock(&ep->qp_mutex);
}

/*
 * For teardown: the device drops what it has, or begins to flush it. Also a queue pair in RESET
 * counts as one in error, as nobody may move it anywhere else.
 */
void dapx_ep_qp_stop(struct dapx_ep *ep)
{
	mutex_lock(&ep->qp_mutex);
	if (ep->qp && dapx_device_drops(ep->obj.ctx->dev)) {
		ep->silence = dapx_device_silence_qp(ep->obj.ctx->dev, ep->qp);
		WRITE_ONCE(ep->qp_state, IB_QPS_ERR);
	}
	mutex_unlock(&ep->qp_mutex);
	dapx_ep_qp_to_error(ep);
}

/* For devices that raise no event once a peer's request has moved the queue pair to error. */
void dapx_ep_check_qp_error(struct dapx_pd_member *member)
{
	struct dapx_ep *ep = container_of(member, struct dapx_ep, pd_member);
	struct ib_qp_attr attr = {};
	struct ib_qp_init_attr init;
	bool broken = false;

	mutex_lock(&ep->qp_mutex);
	/* Teardown sets ep->dead before it takes this mutex. */
	if (!READ_ONCE(ep->dead) && ep->qp && ep->qp_state == IB_QPS_RTS &&
	    !ib_query_qp(ep->qp, &attr, IB_QP_STATE, &init) && attr.qp_state == IB_QPS_ERR) {
		/* Fail the endpoint at the second check, so that the peer gets its NAK first. */
		broken = ep->silent_error;
		ep->silent_error = true;
	}
	mutex_unlock(&ep->qp_mutex);
	if (broken)
		dapx_ep_fail(ep);
}
