// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: shared receive queues
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "dapx_private.h"

#define DAPX_SRQ_ENTRIES_OFF DAPX_RING_CONTROL_SIZE

static enum dapx_workq_mode dapx_srq_mode(struct dapx_workq *wq)
{
	struct dapx_srq *srq = wq->owner;

	return READ_ONCE(srq->dead) ? DAPX_WORKQ_STOP : DAPX_WORKQ_RUN;
}

static enum dapx_status dapx_srq_post(struct dapx_workq *wq, struct dapx_slot *slot)
{
	struct dapx_srq *srq = wq->owner;
	enum dapx_status status;
	struct ib_recv_wr wr;
	int ret;

	status = dapx_recv_build(wq, srq->pd, slot, &wr);
	if (status != DAPX_STATUS_SUCCESS) {
		/* No connection is to blame for a bad receive: the SRQ is out of service. */
		wq->corrupt = true;
		return status;
	}
	slot->node.event.completion.flags = DAPX_COMPLETION_SRQ;
	slot->node.event.completion.srq = wq->obj->handle;
	dapx_slot_give(slot);
	ret = ib_post_srq_recv(srq->ibsrq, &wr, NULL);
	if (!ret)
		return DAPX_STATUS_SUCCESS;
	dapx_slot_keep(slot);
	return dapx_post_status(ret);
}

static void dapx_srq_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct dapx_slot *slot = container_of(wc->wr_cqe, struct dapx_slot, cqe);
	struct dapx_ep *ep = cq->cq_context;	/* wc->qp may be destroyed */
	struct dapx_workq *wq = slot->wq;

	dapx_slot_returned(slot);
	slot->node.owner = &ep->obj;
	slot->node.event.handle = ep->obj.handle;
	slot->node.event.user_data = ep->obj.user_data;
	dapx_recv_complete(ep, slot, wc);
	dapx_workq_retire(wq);
}

static void dapx_srq_kick(struct dapx_workq *wq)
{
	struct dapx_srq *srq = wq->owner;

	queue_work(dapx_wq, &srq->work);
}

static void dapx_srq_work(struct work_struct *work)
{
	struct dapx_srq *srq = container_of(work, struct dapx_srq, work);

	dapx_workq_run(&srq->rq);
}

static struct dapx_evd *dapx_srq_evd(struct dapx_workq *wq)
{
	return NULL;
}

static const struct dapx_workq_ops dapx_srq_ops = {
	.busy_from = DAPX_RECV_BUSY_FROM,
	.busy_until = DAPX_RECV_BUSY_UNTIL,
	.mode = dapx_srq_mode,
	.prepare = dapx_recv_prepare,
	.post = dapx_srq_post,
	.done = dapx_srq_done,
	.kick = dapx_srq_kick,
	.evd = dapx_srq_evd,
};

int dapx_srq_doorbell(struct dapx_srq *srq)
{
	return dapx_workq_run(&srq->rq);
}

static int dapx_srq_init(struct dapx_srq *srq, struct dapx_srq_create *cmd)
{
	u32 depth = roundup_pow_of_two(cmd->depth);
	u32 stride = dapx_recv_stride(cmd->max_sge);
	struct ib_srq_init_attr attr = {
		.srq_context = srq,
		.srq_type = IB_SRQT_BASIC,
		.attr = { .max_wr = depth, .max_sge = cmd->max_sge },
	};
	int ret;

	srq->ring = dapx_ring_create(srq->obj.ctx, DAPX_SRQ_ENTRIES_OFF + (size_t)depth * stride);
	if (IS_ERR(srq->ring)) {
		ret = PTR_ERR(srq->ring);
		srq->ring = NULL;
		return ret;
	}
	dapx_ring_view_init(&srq->rq.view, srq->ring, 0, DAPX_SRQ_ENTRIES_OFF, depth, stride,
			    &cmd->out_ring);
	ret = dapx_workq_init(&srq->rq, &dapx_srq_ops, srq, &srq->obj, cmd->max_sge, 0);
	if (ret)
		return ret;

	srq->ibsrq = ib_create_srq(srq->pd->ibpd, &attr);
	if (IS_ERR(srq->ibsrq)) {
		ret = PTR_ERR(srq->ibsrq);
		srq->ibsrq = NULL;
		return ret;
	}
	dapx_workq_update_mode(&srq->rq);
	return 0;
}

int dapx_cmd_srq_create(struct dapx_ucmd *ucmd)
{
	struct dapx_srq_create *cmd = ucmd->cmd;
	struct dapx_context *ctx = ucmd->ctx;
	const struct ib_device_attr *attrs = &ctx->dev->ibdev->attrs;
	struct dapx_object *obj, *pd_obj;
	struct dapx_srq *srq;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (!attrs->max_srq)
		return -EOPNOTSUPP;
	pd_obj = dapx_object_use(ctx, cmd->pd, DAPX_OBJECT_PD);
	if (IS_ERR(pd_obj))
		return PTR_ERR(pd_obj);
	if (!cmd->depth || cmd->depth > dapx_max_ring_depth ||
	    roundup_pow_of_two(cmd->depth) > dapx_device_max_srq_depth(ctx->dev) ||
	    !cmd->max_sge || cmd->max_sge > min_t(u32, DAPX_MAX_SGE, attrs->max_srq_sge)) {
		dapx_object_unuse(pd_obj);
		return -EINVAL;
	}
	obj = dapx_object_alloc(ctx, &dapx_srq_class);
	if (IS_ERR(obj)) {
		dapx_object_unuse(pd_obj);
		return PTR_ERR(obj);
	}
	srq = container_of(obj, struct dapx_srq, obj);
	INIT_WORK(&srq->work, dapx_srq_work);
	srq->obj.user_data = cmd->user_data;
	srq->pd = container_of(pd_obj, struct dapx_pd, obj);
	ret = dapx_srq_init(srq, cmd);
	if (!ret) {
		cmd->out_srq = obj->handle;
		ret = dapx_respond(ucmd);
	}
	if (ret) {
		obj->class->destroy(obj);
		dapx_object_abort(obj);
		return ret;
	}
	dapx_object_publish(obj);
	return 0;
}

static void dapx_srq_destroy(struct dapx_object *obj)
{
	struct dapx_srq *srq = container_of(obj, struct dapx_srq, obj);

	WRITE_ONCE(srq->dead, true);
	dapx_workq_update_mode(&srq->rq);
	/* No endpoint uses it: nothing is left that could queue its work. */
	cancel_work_sync(&srq->work);
	if (srq->ibsrq)
		ib_destroy_srq(srq->ibsrq);
	dapx_object_unuse(&srq->pd->obj);
}

static void dapx_srq_release(struct dapx_object *obj)
{
	struct dapx_srq *srq = container_of(obj, struct dapx_srq, obj);

	dapx_workq_exit(&srq->rq);
	dapx_ring_destroy(srq->ring);
}

const struct dapx_object_class dapx_srq_class = {
	.type = DAPX_OBJECT_SRQ,
	.size = sizeof(struct dapx_srq),
	.destroy = dapx_srq_destroy,
	.release = dapx_srq_release,
};
