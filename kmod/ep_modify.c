// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: changes of an endpoint after its creation: its objects, and transitions of its queue
 * pair
 */
#include "ep.h"

/*
 * The pointer to the EVD of @q's completions is read and changed with @q's lock, and changed
 * only while the queue has nothing that could still complete to the old EVD. Other code that
 * reads the pointer, to wake waiters, does so under RCU. EBADFD: an entry was taken.
 */
static int dapx_ep_change_evd(struct dapx_queue *q, struct dapx_evd **place, struct dapx_evd *evd)
{
	int ret = 0;

	spin_lock_bh(&q->lock);
	if (!q->ops || dapx_queue_all_ended(q)) {
		/* These are binds, and events of an SRQ's receives from an earlier connection. */
		dapx_queue_drop_events(q, *place);
		WRITE_ONCE(*place, evd);
	} else {
		ret = -EBADFD;
	}
	spin_unlock_bh(&q->lock);
	return ret;
}

/* The objects that a mask asks for, looked up and in use. */
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
	struct dapx_qp new;
	int ret;

	/* The same check as at creation. */
	if (ep->srq && ep->srq->pd != pd)
		return -EINVAL;
	if (ep->rq.ops && ep->rq.head != READ_ONCE(*ep->rq.view.tail))
		return -EBADFD;
	if (atomic_read(&ep->rq.outstanding) || READ_ONCE(ep->qp_state) != IB_QPS_RESET)
		return -EBADFD;
	ret = dapx_ep_make_qp(ep, pd, &new);
	if (ret)
		return ret;
	dapx_ep_destroy_qp(ep);
	dapx_ep_install_qp(ep, &new);
	if (old)
		dapx_pd_del_member(old, &ep->pd_member);
	ep->pd = pd;
	dapx_pd_add_member(pd, &ep->pd_member);
	change->pd = old ? &old->obj : NULL;
	return 0;
}

/* The queue pair of a connection has it at once; -EBADFD: the connection ended just now. */
static int dapx_ep_change_rnr_timer(struct dapx_ep *ep, u8 timer)
{
	struct ib_qp_attr attr = { .min_rnr_timer = timer };
	int ret = 0;

	if (READ_ONCE(ep->state) == DAPX_EP_CONNECTED)
		ret = dapx_ep_qp_modify(ep, &attr, IB_QP_MIN_RNR_TIMER);
	if (!ret)
		WRITE_ONCE(ep->min_rnr_timer, timer);
	return ret == -ECANCELED ? -EBADFD : ret;
}

static int dapx_ep_modify_fields(struct dapx_ep *ep, const struct dapx_ep_modify *cmd)
{
	const struct ib_device_attr *dev = &ep->obj.ctx->dev->ibdev->attrs;
	enum dapx_ep_state state = READ_ONCE(ep->state);
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
	if (cmd->mask & DAPX_EP_MODIFY_RNR_TIMER) {
		if (cmd->min_rnr_timer > 31)
			goto out;
		ret = -EOPNOTSUPP;
		if (ep->obj.ctx->dev->iwarp || ep->attr.flags & DAPX_EP_XRC)
			goto out;
	}

	ret = -EBADFD;
	switch (state) {
	case DAPX_EP_UNCONNECTED:
	case DAPX_EP_TENTATIVE_PENDING:
		break;
	case DAPX_EP_RESERVED:
	case DAPX_EP_PASSIVE_PENDING:
		if (cmd->mask & DAPX_EP_MODIFY_PD)
			goto out;
		break;
	case DAPX_EP_CONNECTED:
		if (cmd->mask != DAPX_EP_MODIFY_RNR_TIMER &&
		    (cmd->mask != DAPX_EP_MODIFY_CONNECT_EVD || ep->cm))
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
	/* This does not fail after a change of PD: then the queue pair never took a receive. */
	if (cmd->mask & DAPX_EP_MODIFY_RECV_EVD) {
		evd = ep->recv_evd;
		ret = dapx_ep_change_evd(&ep->rq, &ep->recv_evd, to_dapx_evd(change.recv_evd));
		if (ret)
			goto out;
		if (evd)
			dapx_ep_unuse_recv_evd(ep, evd);
		dapx_ep_use_recv_evd(ep, ep->recv_evd);
		change.recv_evd = evd ? &evd->obj : NULL;
	}
	/* Nor does this: no request is taken before a connection. */
	if (cmd->mask & DAPX_EP_MODIFY_REQUEST_EVD) {
		evd = ep->request_evd;
		ret = dapx_ep_change_evd(&ep->sq, &ep->request_evd,
					 to_dapx_evd(change.request_evd));
		if (ret)
			goto out;
		change.request_evd = evd ? &evd->obj : NULL;
	}
	/* This fails only if the connection ends just now; then nothing else was asked for. */
	if (cmd->mask & DAPX_EP_MODIFY_RNR_TIMER) {
		ret = dapx_ep_change_rnr_timer(ep, cmd->min_rnr_timer);
		if (ret)
			goto out;
	}
	spin_lock_irq(&ep->lock);
	/* Else the event of the connection's end, which may wait in the old EVD, would be lost. */
	if (cmd->mask & DAPX_EP_MODIFY_CONNECT_EVD && state == DAPX_EP_CONNECTED &&
	    ep->state != state) {
		spin_unlock_irq(&ep->lock);
		ret = -EBADFD;
		goto out;
	}
	if (cmd->mask & DAPX_EP_MODIFY_CONNECT_EVD) {
		evd = ep->connect_evd;
		if (evd)
			dapx_evd_drop(evd, &ep->connection_events);
		ep->connect_evd = to_dapx_evd(change.connect_evd);
		change.connect_evd = evd ? &evd->obj : NULL;
	}
	if (cmd->mask & DAPX_EP_MODIFY_USER_DATA)
		WRITE_ONCE(ep->obj.user_data, cmd->user_data);
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

/* Returns false if the endpoint is in another state than @from by now. */
static bool dapx_ep_change_state(struct dapx_ep *ep, enum dapx_ep_state from,
				 enum dapx_ep_state to)
{
	bool as_expected;

	spin_lock_irq(&ep->lock);
	as_expected = ep->state == from;
	if (as_expected && from != to)
		dapx_ep_set_state(ep, to);
	spin_unlock_irq(&ep->lock);
	return as_expected;
}

/* What the step to a state, the index, starts from, and what becomes of the endpoint. */
struct dapx_ep_step {
	enum ib_qp_state qp_from;
	enum dapx_ep_state from;
	enum dapx_ep_state to;
};

/* Without the CM. */
static const struct dapx_ep_step dapx_ep_steps[] = {
	[DAPX_QP_INIT] = { IB_QPS_RESET, DAPX_EP_UNCONNECTED, DAPX_EP_UNCONNECTED },
	[DAPX_QP_RTR] = { IB_QPS_INIT, DAPX_EP_UNCONNECTED, DAPX_EP_COMPLETION_PENDING },
	[DAPX_QP_RTS] = { IB_QPS_RTR, DAPX_EP_COMPLETION_PENDING, DAPX_EP_CONNECTED },
};

/* After the response of a peer that accepted, whom DAPX_EP_ESTABLISH answers. */
static const struct dapx_ep_step dapx_ep_steps_of_response[] = {
	[DAPX_QP_RTR] = { IB_QPS_INIT, DAPX_EP_ACTIVE_PENDING, DAPX_EP_ACTIVE_PENDING },
	[DAPX_QP_RTS] = { IB_QPS_RTR, DAPX_EP_ACTIVE_PENDING, DAPX_EP_ACTIVE_PENDING },
};

static int dapx_ep_modify_qp(struct dapx_ep *ep, const struct dapx_qp_attr *step)
{
	const struct dapx_ep_step *steps = ep->cm ? dapx_ep_steps_of_response : dapx_ep_steps;
	struct dapx_device *dev = ep->obj.ctx->dev;
	enum dapx_ep_state from, to;
	struct ib_qp_attr attr;
	int mask, ret;
	bool early;

	if (dev->iwarp)
		return -EOPNOTSUPP;
	if (!ep->qp || (ep->cm && (!READ_ONCE(ep->responded) || step->state == DAPX_QP_INIT)))
		return -EBADFD;
	ret = dapx_qp_attr_build(dev, ep->port, step, &attr, &mask);
	if (ret)
		return ret;
	from = steps[step->state].from;
	to = steps[step->state].to;
	if (READ_ONCE(ep->qp_state) != steps[step->state].qp_from ||
	    READ_ONCE(ep->state) != from)
		return -EBADFD;
	if (mask & IB_QP_ACCESS_FLAGS)
		attr.qp_access_flags = ep->transport->access_flags(ep) &
				       ~dapx_access_to_ib(step->refused);
	if (ep->transport->adjust_step)
		ep->transport->adjust_step(ep, step, &attr, mask);

	/*
	 * In RTR, a message may come and break the connection before dapx_ep_qp_modify() returns,
	 * and an endpoint without a connection would ignore that: the state changes first.
	 */
	early = step->state == DAPX_QP_RTR;
	if (early && !dapx_ep_change_state(ep, from, to))
		return -EBADFD;
	ret = dapx_ep_qp_modify(ep, &attr, mask);
	if (ret && early)
		dapx_ep_change_state(ep, to, from);
	/* The queue pair is in error, or the GID index has no GID. */
	if (ret)
		return ret == -ECANCELED ? -EBADFD : ret == -ENODATA ? -EINVAL : ret;

	spin_lock_irq(&ep->lock);
	if (step->state == DAPX_QP_INIT)
		ep->port = step->port;
	else if (step->state == DAPX_QP_RTR)
		WRITE_ONCE(ep->remote_qp_num, step->dest_qp_num);
	spin_unlock_irq(&ep->lock);
	/* A message may have broken the connection already: then its state stays. */
	if (!early)
		dapx_ep_change_state(ep, from, to);
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
			  DAPX_EP_MODIFY_QP | DAPX_EP_MODIFY_RNR_TIMER))
		return -EOPNOTSUPP;
	if (memchr_inv(cmd->__reserved, 0, sizeof(cmd->__reserved)) || cmd->qp.__reserved ||
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

/* --------------------------------------------------------------------- sizes */

static int dapx_ep_check_resize(struct dapx_ep *ep, const struct dapx_ep_attr *attr,
				const struct dapx_srq *srq)
{
	int ret;

	if ((ep->attr.flags | attr->flags) & DAPX_EP_XRC)
		return -EOPNOTSUPP;
	ret = dapx_ep_attr_check(ep->obj.ctx, attr, srq);
	if (ret)
		return ret;
	/* The same checks as at creation. */
	if (srq && (srq->pd != ep->pd || srq->xrcd))
		return -EINVAL;
	if ((srq || attr->recv_depth) && !ep->recv_evd && !ep->tentative)
		return -EINVAL;
	switch (READ_ONCE(ep->state)) {
	case DAPX_EP_UNCONNECTED:
	case DAPX_EP_RESERVED:
	case DAPX_EP_PASSIVE_PENDING:
	case DAPX_EP_TENTATIVE_PENDING:
		return READ_ONCE(ep->qp_state) == IB_QPS_RESET &&
		       dapx_queue_is_unused(&ep->sq) && dapx_queue_is_unused(&ep->rq) ?
		       0 : -EBADFD;
	default:
		return -EBADFD;
	}
}

/* What may fail comes first, so that a failure changes nothing. Then @rings are the old ones. */
static int dapx_ep_resize(struct dapx_ep *ep, struct dapx_ep_rings *rings, struct dapx_srq *srq,
			  struct dapx_ucmd *ucmd)
{
	struct dapx_ep_resize *cmd = ucmd->cmd;
	struct dapx_qp new = {};
	int ret;

	if (ep->pd) {
		ret = dapx_ep_make_other_qp(ep, rings, srq, &new);
		if (ret)
			return ret;
	}
	cmd->out_qp_num = new.qp ? new.qp->qp_num : 0;
	cmd->out_state_off = DAPX_EP_STATE_OFF;
	cmd->out_send_ring = rings->send_layout;
	cmd->out_recv_ring = rings->recv_layout;
	ret = dapx_respond(ucmd);
	if (!ret)
		ret = dapx_ep_exchange_rings(ep, rings);
	if (ret) {
		if (new.qp)
			dapx_qp_discard(&new);
		return ret;
	}
	if (ep->recv_evd && rings->attr.flags & DAPX_EP_SOLICITED)
		dapx_evd_del_lazy(ep->recv_evd, &ep->lazy);
	if (new.qp) {
		dapx_ep_destroy_qp(ep);
		dapx_ep_install_qp(ep, &new);
	}
	if (ep->recv_evd)
		dapx_ep_use_recv_evd(ep, ep->recv_evd);
	dapx_ep_update_modes(ep);
	return 0;
}

int dapx_cmd_ep_resize(struct dapx_ucmd *ucmd)
{
	const struct dapx_ep_resize *cmd = ucmd->cmd;
	struct dapx_srq *srq = NULL;
	struct dapx_ep_rings *rings;
	struct dapx_ep *ep;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	ep = dapx_ep_lock(ucmd->ctx, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	if (cmd->srq) {
		srq = dapx_use_srq(ucmd->ctx, cmd->srq);
		if (IS_ERR(srq)) {
			ret = PTR_ERR(srq);
			goto out_unlock;
		}
	}
	ret = dapx_ep_check_resize(ep, &cmd->attr, srq);
	if (ret)
		goto out_srq;
	rings = dapx_ep_make_rings(ep, &cmd->attr);
	if (IS_ERR(rings)) {
		ret = PTR_ERR(rings);
		goto out_srq;
	}
	ret = dapx_ep_resize(ep, rings, srq, ucmd);
	if (!ret)
		swap(ep->srq, srq);
	dapx_ep_free_rings(ep, rings);
out_srq:
	if (srq)
		dapx_object_unuse(&srq->obj);
out_unlock:
	dapx_ep_unlock(ep);
	return ret;
}
