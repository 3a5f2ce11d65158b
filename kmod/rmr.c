// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: remote memory regions: windows for peers, which can be revoked
 *
 * Each bind registers the memory of its window again, with a key of its own. The end of a bind
 * (unbind, rebind, free) deregisters it. So a window may have any size, revoking it needs no
 * endpoint, and it is final: a device's dereg_mr removes the key and waits for the packet that
 * is being copied. A work request that invalidates the key does not wait for that.
 *
 * A bind has a place in a request queue: it is a barrier in the endpoint's ring. When
 * everything before the barrier is done, the new window replaces the old one, which is revoked.
 * A bind is carried out at once if nothing is before it and the process asked for no event.
 */
#include <linux/overflow.h>
#include <linux/slab.h>
#include <net/netlink.h>

#include "ep.h"
#include "trace.h"

#define DAPX_RMR_FIELDS (DAPX_RMR_FIELD_PD | DAPX_RMR_FIELD_MR | DAPX_RMR_FIELD_RANGE | \
			 DAPX_RMR_FIELD_ACCESS | DAPX_RMR_FIELD_RKEY)

/* A bind that is pending in a request queue. */
struct dapx_bind {
	struct dapx_barrier barrier;
	struct dapx_rmr *rmr;		/* a reference; does not count in @users */
	struct list_head entry;		/* rmr->binds; empty: the RMR was freed */
	struct dapx_window window;	/* rmr's mutex; none: unbind, or freed */
};

/* ------------------------------------------------------------------- windows */

/* Waits for the process' memory. On success the window takes over the use of the MR. */
static int dapx_window_create(struct dapx_rmr *rmr, struct dapx_mr *mr,
			      const struct dapx_rmr_bind *cmd, struct dapx_window *window)
{
	u32 access = cmd->access;
	struct ib_mr *ibmr;

	/*
	 * Devices require local write access. It has no effect, as the local key is not
	 * disclosed.
	 */
	if (access & (DAPX_ACCESS_REMOTE_WRITE | DAPX_ACCESS_REMOTE_ATOMIC))
		access |= DAPX_ACCESS_LOCAL_WRITE;
	ibmr = dapx_mr_register(mr->pd, cmd->addr, cmd->length, access, true);
	if (IS_ERR(ibmr))
		return PTR_ERR(ibmr);
	*window = (struct dapx_window) {
		.ibmr = ibmr,
		.mr = mr,
		.addr = cmd->addr,
		.length = cmd->length,
		.access = cmd->access,
	};
	trace_dapx_rmr(&rmr->obj, "register", ibmr->rkey);
	return 0;
}

/* When this returns, the key is invalid and no byte changes any more. Drops the use of the MR. */
static void dapx_window_revoke(struct dapx_rmr *rmr, struct dapx_window *window)
{
	int ret;

	if (!window->ibmr)
		return;
	trace_dapx_rmr(&rmr->obj, "revoke", window->ibmr->rkey);
	ret = ib_dereg_mr(window->ibmr);
	WARN_ON_ONCE(ret);
	dapx_pd_check_soon(rmr->pd);
	dapx_netlink_notify(rmr->obj.ctx, &(struct dapx_notification) {
			    .event = DAPX_GENL_EVENT_RMR_REVOKED,
			    .handle = rmr->obj.handle,
			    .number = window->mr->obj.handle,
			    .large = window->length });
	dapx_object_unuse(&window->mr->obj);
	window->ibmr = NULL;
}

static u32 dapx_window_rkey(const struct dapx_window *window)
{
	return window->ibmr ? window->ibmr->rkey : 0;
}

/* --------------------------------------------------------------------- binds */

/* Replaces the window by the new one, and revokes the old one. */
static void dapx_rmr_set_window(struct dapx_rmr *rmr, struct dapx_window *window)
{
	lockdep_assert_held(&rmr->obj.mutex);
	swap(rmr->window, *window);
	trace_dapx_rmr(&rmr->obj, "bind", dapx_window_rkey(&rmr->window));
	dapx_window_revoke(rmr, window);
}

/* ------------------------------------------------------------------ commands */

static void dapx_bind_release(struct dapx_barrier *barrier)
{
	atomic_dec(&container_of(barrier->node.source->owner, struct dapx_ep, obj)->binds);
	kfree(container_of(barrier, struct dapx_bind, barrier));
}

/* If the bind failed, the RMR stays as it was. The bind is freed with its event. */
static void dapx_bind_complete(struct dapx_barrier *barrier, enum dapx_status status)
{
	struct dapx_bind *bind = container_of(barrier, struct dapx_bind, barrier);
	struct dapx_rmr *rmr = bind->rmr;

	mutex_lock_nested(&rmr->obj.mutex, SINGLE_DEPTH_NESTING);
	if (!list_empty(&bind->entry)) {
		list_del_init(&bind->entry);
		if (status == DAPX_STATUS_SUCCESS)
			dapx_rmr_set_window(rmr, &bind->window);
		else
			dapx_window_revoke(rmr, &bind->window);
	}
	mutex_unlock(&rmr->obj.mutex);
	bind->rmr = NULL;
	dapx_object_put(&rmr->obj);
}

/* Allocates dev->keys, if this is the first RMR on the device. */
static int dapx_rmr_prepare_keys(struct dapx_device *dev)
{
	struct dapx_keys *keys;

	if (READ_ONCE(dev->keys))
		return 0;
	keys = dapx_keys_create();
	if (!keys)
		return -ENOMEM;
	/* A full barrier: a reader that sees the pointer sees the keys initialised. */
	if (cmpxchg(&dev->keys, NULL, keys))
		dapx_keys_destroy(keys);
	return 0;
}

int dapx_cmd_rmr_create(struct dapx_ucmd *ucmd)
{
	struct dapx_rmr_create *cmd = ucmd->cmd;
	struct dapx_context *ctx = ucmd->ctx;
	struct dapx_object *obj;
	struct dapx_rmr *rmr;
	struct dapx_pd *pd;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->__reserved || cmd->__reserved2)
		return -EINVAL;
	pd = dapx_use_pd(ctx, cmd->pd);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	ret = dapx_rmr_prepare_keys(ctx->dev);
	if (ret)
		goto err_pd;
	obj = dapx_object_alloc(ctx, &dapx_rmr_class);
	if (IS_ERR(obj)) {
		ret = PTR_ERR(obj);
		goto err_pd;
	}
	rmr = to_dapx_rmr(obj);
	rmr->obj.user_data = cmd->user_data;
	rmr->pd = pd;
	INIT_LIST_HEAD(&rmr->binds);

	cmd->out_rmr = obj->handle;
	ret = dapx_respond(ucmd);
	if (ret)
		goto err_abort;
	dapx_object_publish(obj);
	return 0;

err_abort:
	dapx_object_abort(obj);
err_pd:
	dapx_object_unuse(&pd->obj);
	return ret;
}

/* While the MR is in use, its PD stays, which is also the RMR's. */
static int dapx_rmr_check_window(const struct dapx_rmr_bind *cmd, const struct dapx_rmr *rmr,
				 const struct dapx_mr *mr)
{
	u64 end;

	if (mr->pd != rmr->pd)
		return -EINVAL;
	if (cmd->access & DAPX_ACCESS_REMOTE_ATOMIC &&
	    mr->pd->ibpd->device->attrs.atomic_cap == IB_ATOMIC_NONE)
		return -EOPNOTSUPP;
	if (check_add_overflow(cmd->addr, cmd->length, &end))
		return -EOVERFLOW;
	if (cmd->addr < mr->addr || end > mr->addr + mr->length)
		return -EINVAL;
	if (cmd->access & (DAPX_ACCESS_REMOTE_WRITE | DAPX_ACCESS_REMOTE_ATOMIC) &&
	    !(mr->access & DAPX_ACCESS_LOCAL_WRITE))
		return -EACCES;
	return 0;
}

/* Locks the endpoint, if @rmr can be bound in its request queue. */
static int dapx_rmr_lock_ep(struct dapx_ep *ep, const struct dapx_rmr *rmr)
{
	int ret = 0;

	mutex_lock(&ep->obj.mutex);
	if (ep->dead)
		ret = -ENOENT;
	else if (ep->pd != rmr->pd)
		ret = -EINVAL;
	else if (READ_ONCE(ep->state) != DAPX_EP_CONNECTED &&
		 READ_ONCE(ep->state) != DAPX_EP_DISCONNECTED)
		ret = -EBADFD;
	/* The endpoint's mutex is held, so that the number can only decrease. */
	else if (atomic_read(&ep->binds) >= ep->sq.view.depth)
		ret = -EAGAIN;
	if (ret)
		mutex_unlock(&ep->obj.mutex);
	return ret;
}

/* Nothing is before the bind and the process wants no event, so it needs no place in the queue. */
static int dapx_rmr_bind_at_once(struct dapx_ucmd *ucmd, struct dapx_rmr *rmr,
				 struct dapx_window *window)
{
	int ret;

	mutex_lock_nested(&rmr->obj.mutex, SINGLE_DEPTH_NESTING);
	ret = rmr->dead ? -ENOENT : dapx_respond(ucmd);
	if (!ret)
		dapx_rmr_set_window(rmr, window);
	mutex_unlock(&rmr->obj.mutex);
	return ret;
}

static int dapx_rmr_queue_bind(struct dapx_ucmd *ucmd, struct dapx_ep *ep, struct dapx_rmr *rmr,
			       struct dapx_window *window)
{
	struct dapx_rmr_bind *cmd = ucmd->cmd;
	struct dapx_bind *bind;
	int ret;

	bind = kzalloc(sizeof(*bind), GFP_KERNEL_ACCOUNT);
	if (!bind)
		return -ENOMEM;
	bind->rmr = rmr;
	bind->window = *window;
	bind->barrier.complete = dapx_bind_complete;
	bind->barrier.release = dapx_bind_release;
	bind->barrier.node.source = &ep->sq.barrier_events;
	bind->barrier.node.notify =
		dapx_queue_notify(&ep->sq, cmd->flags & DAPX_BIND_QUIET, DAPX_NOTIFY_WAITERS);
	bind->barrier.node.signaled = cmd->flags & DAPX_BIND_SIGNALED;
	bind->barrier.node.opcode = DAPX_OP_RMR_BIND;
	bind->barrier.node.wr_id = cmd->wr_id;

	/* With the mutex the RMR is not freed between the answer and the bind. */
	mutex_lock_nested(&rmr->obj.mutex, SINGLE_DEPTH_NESTING);
	ret = rmr->dead ? -ENOENT : dapx_respond(ucmd);
	if (!ret) {
		kref_get(&rmr->obj.kref);
		atomic_inc(&ep->binds);
		list_add_tail(&bind->entry, &rmr->binds);
		dapx_queue_add_barrier(&ep->sq, &bind->barrier);
	}
	mutex_unlock(&rmr->obj.mutex);
	if (ret) {
		kfree(bind);
		return ret;
	}
	/* In most cases nothing is before the bind. */
	dapx_queue_pass_barriers(&ep->sq);
	dapx_ep_completed(ep);
	if (READ_ONCE(ep->sq.num_barriers))
		dapx_queue_run(&ep->sq);
	return 0;
}

/* Binds @rmr to @window, or to none. */
static int dapx_rmr_post_bind(struct dapx_ucmd *ucmd, struct dapx_ep *ep, struct dapx_rmr *rmr,
			      struct dapx_window *window)
{
	struct dapx_rmr_bind *cmd = ucmd->cmd;

	cmd->out_rkey = dapx_window_rkey(window);
	if (!(cmd->flags & DAPX_BIND_SIGNALED) && dapx_queue_is_clear(&ep->sq))
		return dapx_rmr_bind_at_once(ucmd, rmr, window);
	return dapx_rmr_queue_bind(ucmd, ep, rmr, window);
}

int dapx_cmd_rmr_bind(struct dapx_ucmd *ucmd)
{
	struct dapx_rmr_bind *cmd = ucmd->cmd;
	struct dapx_window window = {};
	struct dapx_mr *mr = NULL;
	struct dapx_rmr *rmr;
	struct dapx_ep *ep;
	int ret;

	if (cmd->flags & ~(DAPX_BIND_SIGNALED | DAPX_BIND_QUIET) ||
	    cmd->access & ~DAPX_ACCESS_REMOTE)
		return -EOPNOTSUPP;
	if (cmd->__reserved || (!cmd->length && (cmd->mr || cmd->addr || cmd->access)))
		return -EINVAL;
	rmr = dapx_get_rmr(ucmd->ctx, cmd->rmr);
	if (IS_ERR(rmr))
		return PTR_ERR(rmr);
	if (cmd->length) {
		mr = dapx_use_mr(ucmd->ctx, cmd->mr);
		if (IS_ERR(mr)) {
			ret = PTR_ERR(mr);
			goto out_rmr;
		}
		ret = dapx_rmr_check_window(cmd, rmr, mr);
		if (ret)
			goto out_mr;
	}
	ep = dapx_get_ep(ucmd->ctx, cmd->ep);
	if (IS_ERR(ep)) {
		ret = PTR_ERR(ep);
		goto out_mr;
	}
	/*
	 * The memory comes when whoever provides it likes, and other commands on the endpoint
	 * must not wait for that. So the endpoint is unlocked meanwhile, and checked again.
	 */
	ret = dapx_rmr_lock_ep(ep, rmr);
	if (mr && !ret) {
		mutex_unlock(&ep->obj.mutex);
		ret = dapx_window_create(rmr, mr, cmd, &window);
		if (ret)
			goto out_ep;
		mr = NULL;
		ret = dapx_rmr_lock_ep(ep, rmr);
	}
	if (!ret) {
		ret = dapx_rmr_post_bind(ucmd, ep, rmr, &window);
		mutex_unlock(&ep->obj.mutex);
	}
	if (ret)
		dapx_window_revoke(rmr, &window);
out_ep:
	dapx_object_put(&ep->obj);
out_mr:
	if (mr)
		dapx_object_unuse(&mr->obj);
out_rmr:
	dapx_object_put(&rmr->obj);
	return ret;
}

int dapx_cmd_rmr_query(struct dapx_ucmd *ucmd)
{
	struct dapx_rmr_query *cmd = ucmd->cmd;
	const struct dapx_window *window;
	struct dapx_rmr *rmr;
	bool bound;
	int ret;

	if (cmd->flags || cmd->mask & ~DAPX_RMR_FIELDS)
		return -EOPNOTSUPP;
	rmr = dapx_get_rmr(ucmd->ctx, cmd->rmr);
	if (IS_ERR(rmr))
		return PTR_ERR(rmr);

	cmd->out_mr = 0;
	cmd->out_addr = 0;
	cmd->out_length = 0;
	cmd->out_access = 0;
	cmd->out_rkey = 0;
	cmd->out_pd = 0;
	mutex_lock(&rmr->obj.mutex);
	/* In this case its PD may be gone, too. */
	if (rmr->dead) {
		ret = -ENOENT;
		goto out;
	}
	window = &rmr->window;
	bound = window->ibmr;
	if (cmd->mask & DAPX_RMR_FIELD_PD)
		cmd->out_pd = rmr->pd->obj.handle;
	if (bound && cmd->mask & DAPX_RMR_FIELD_MR)
		cmd->out_mr = window->mr->obj.handle;
	if (bound && cmd->mask & DAPX_RMR_FIELD_RANGE) {
		cmd->out_addr = window->addr;
		cmd->out_length = window->length;
	}
	if (bound && cmd->mask & DAPX_RMR_FIELD_ACCESS)
		cmd->out_access = window->access;
	if (cmd->mask & DAPX_RMR_FIELD_RKEY)
		cmd->out_rkey = dapx_window_rkey(window);
	ret = dapx_respond(ucmd);
out:
	mutex_unlock(&rmr->obj.mutex);
	dapx_object_put(&rmr->obj);
	return ret;
}

/* ---------------------------------------------------------------------- class */

/* Pending binds will bind nothing, but each still completes in its order. */
static void dapx_rmr_destroy(struct dapx_object *obj)
{
	struct dapx_rmr *rmr = to_dapx_rmr(obj);
	struct dapx_bind *bind, *next;

	mutex_lock(&obj->mutex);
	rmr->dead = true;
	dapx_window_revoke(rmr, &rmr->window);
	list_for_each_entry_safe(bind, next, &rmr->binds, entry) {
		list_del_init(&bind->entry);
		dapx_window_revoke(rmr, &bind->window);
	}
	mutex_unlock(&obj->mutex);
	dapx_object_unuse(&rmr->pd->obj);
}

/* 1: bound */
static u32 dapx_rmr_state(struct dapx_object *obj)
{
	/* As of some moment: the mutex is held while a window is revoked. */
	return data_race(!!to_dapx_rmr(obj)->window.ibmr);
}

static int dapx_rmr_fill(struct dapx_object *obj, struct sk_buff *skb)
{
	struct dapx_rmr *rmr = to_dapx_rmr(obj);

	if (rmr->dead)
		return 0;
	if (nla_put_u32(skb, DAPX_OBJECT_ATTR_PD, rmr->pd->obj.handle))
		return -EMSGSIZE;
	if (!rmr->window.ibmr)
		return 0;
	if (nla_put_u32(skb, DAPX_OBJECT_ATTR_MR, rmr->window.mr->obj.handle) ||
	    nla_put_u32(skb, DAPX_OBJECT_ATTR_ACCESS, rmr->window.access) ||
	    nla_put_u64_64bit(skb, DAPX_OBJECT_ATTR_LENGTH, rmr->window.length,
			      DAPX_OBJECT_ATTR_PAD))
		return -EMSGSIZE;
	return 0;
}

const struct dapx_object_class dapx_rmr_class = {
	.type = DAPX_OBJECT_RMR,
	.size = sizeof(struct dapx_rmr),
	.destroy = dapx_rmr_destroy,
	.state = dapx_rmr_state,
	.fill_locked = dapx_rmr_fill,
};
