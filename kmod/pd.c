// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: protection domains
 */
#include "dapx_private.h"

/* How long, and how often, to look for queue pairs in error. */
#define DAPX_QP_CHECKS 10
#define DAPX_QP_CHECK_MS 100

/* The next endpoint behind @handle, with a reference; NULL: there is none. */
static struct dapx_ep *dapx_pd_next_ep(struct dapx_pd *pd, unsigned long *handle)
{
	struct xarray *objects = &pd->obj.ctx->objects;
	struct dapx_ep *ep = NULL;
	struct dapx_object *obj;

	xa_lock(objects);
	while ((obj = xa_find_after(objects, handle, U32_MAX, XA_PRESENT))) {
		if (obj->class->type != DAPX_OBJECT_EP)
			continue;
		ep = to_dapx_ep(obj);
		if (READ_ONCE(ep->pd) == pd) {
			kref_get(&obj->kref);
			break;
		}
		ep = NULL;
	}
	xa_unlock(objects);
	return ep;
}

static void dapx_pd_check_qps(struct work_struct *work)
{
	struct dapx_pd *pd = container_of(to_delayed_work(work), struct dapx_pd, check_work);
	unsigned int left = READ_ONCE(pd->checks_left);
	unsigned long handle = 0;
	struct dapx_ep *ep;

	while ((ep = dapx_pd_next_ep(pd, &handle))) {
		dapx_ep_check_qp_error(ep);
		dapx_object_put(&ep->obj);
		cond_resched();
	}
	if (!left)
		return;
	WRITE_ONCE(pd->checks_left, left - 1);
	dapx_object_queue_delayed(&pd->obj, &pd->check_work, msecs_to_jiffies(DAPX_QP_CHECK_MS));
}

/*
 * A peer that was in the middle of a read is refused, and the queue pair is in error.
 * rxe has no event for that, and up to 6.1 its refusal names a packet that the peer
 * ignores: unless told by the CM, it would ask for ever.
 */
void dapx_pd_key_revoked(struct dapx_pd *pd)
{
	if (!pd->obj.ctx->dev->silent_errors)
		return;
	/* One that has not begun sees this, too. */
	if (READ_ONCE(pd->checks_left) == DAPX_QP_CHECKS - 1 &&
	    delayed_work_pending(&pd->check_work))
		return;
	WRITE_ONCE(pd->checks_left, DAPX_QP_CHECKS - 1);
	dapx_object_queue_delayed(&pd->obj, &pd->check_work, msecs_to_jiffies(DAPX_QP_CHECK_MS));
}

int dapx_cmd_pd_create(struct dapx_ucmd *ucmd)
{
	struct dapx_pd_create *cmd = ucmd->cmd;
	struct dapx_object *obj;
	struct dapx_pd *pd;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->__reserved)
		return -EINVAL;
	obj = dapx_object_alloc(ucmd->ctx, &dapx_pd_class);
	if (IS_ERR(obj))
		return PTR_ERR(obj);
	pd = to_dapx_pd(obj);
	pd->obj.user_data = cmd->user_data;
	INIT_DELAYED_WORK(&pd->check_work, dapx_pd_check_qps);
	pd->ibpd = __ib_alloc_pd(ucmd->ctx->dev->ibdev, 0, ucmd->ctx->owner);
	if (IS_ERR(pd->ibpd)) {
		ret = PTR_ERR(pd->ibpd);
		goto err_abort;
	}
	cmd->out_pd = obj->handle;
	ret = dapx_respond(ucmd);
	if (ret)
		goto err_pd;
	dapx_object_publish(obj);
	return 0;

err_pd:
	ib_dealloc_pd(pd->ibpd);
err_abort:
	dapx_object_abort(obj);
	return ret;
}

static void dapx_pd_destroy(struct dapx_object *obj)
{
	struct dapx_pd *pd = to_dapx_pd(obj);

	cancel_delayed_work_sync(&pd->check_work);
	ib_dealloc_pd(pd->ibpd);
}

const struct dapx_object_class dapx_pd_class = {
	.type = DAPX_OBJECT_PD,
	.size = sizeof(struct dapx_pd),
	.destroy = dapx_pd_destroy,
};
