// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: protection domains
 */
#include "memory.h"

/* How many times, and how often, the queue pairs are checked for errors. */
#define DAPX_QP_CHECKS 10
#define DAPX_QP_CHECK_MS 100

static void dapx_pd_check_qps(struct work_struct *work)
{
	struct dapx_pd *pd = container_of(to_delayed_work(work), struct dapx_pd, check_work);
	unsigned int left = READ_ONCE(pd->checks_left);
	struct dapx_pd_member *member;

	mutex_lock(&pd->members_lock);
	list_for_each_entry(member, &pd->members, entry) {
		member->check(member);
		cond_resched();
	}
	mutex_unlock(&pd->members_lock);
	if (!left)
		return;
	/* Unless it has been renewed meanwhile. */
	cmpxchg(&pd->checks_left, left, left - 1);
	dapx_object_queue_delayed(&pd->obj, &pd->check_work, msecs_to_jiffies(DAPX_QP_CHECK_MS));
}

void dapx_pd_add_member(struct dapx_pd *pd, struct dapx_pd_member *member)
{
	mutex_lock(&pd->members_lock);
	list_add_tail(&member->entry, &pd->members);
	mutex_unlock(&pd->members_lock);
}

/* When this returns, check() is not running and will not be called any more. */
void dapx_pd_del_member(struct dapx_pd *pd, struct dapx_pd_member *member)
{
	mutex_lock(&pd->members_lock);
	list_del(&member->entry);
	mutex_unlock(&pd->members_lock);
}

/*
 * For drivers with silent_errors, when a peer's request may have been refused. A device refuses
 * the rest of a read whose key is revoked, and moves the queue pair to error. rxe raises no
 * event then, and up to 6.1 its NAK names a packet that the peer ignores. Unless the CM notifies
 * the peer, it would repeat its read forever. Any context.
 */
void dapx_pd_check_soon(struct dapx_pd *pd)
{
	if (!pd->obj.ctx->dev->driver->silent_errors)
		return;
	/* A check that has not begun covers this request as well. */
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
	mutex_init(&pd->members_lock);
	INIT_LIST_HEAD(&pd->members);
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
