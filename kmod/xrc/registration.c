// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: registrations of contexts with XRC receive queue pairs
 *
 * A registration keeps the queue pair alive, and gets its events.
 */
#include <net/netlink.h>

#include "xrc/recv_qp.h"

/* Called in any context, with events_lock held. */
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

/* Notifies all registrations. Called in any context, with events_lock held. */
void dapx_xrc_qp_notify(struct dapx_xrc_qp *qp, u32 what)
{
	struct dapx_xrc_registration *reg;

	list_for_each_entry(reg, &qp->registrations, entry)
		dapx_xrc_registration_notify(reg, what);
}

/*
 * A context that registers after the connection has ended gets the event of the end, as no
 * other event will follow.
 */
static void dapx_xrc_registration_notify_late(struct dapx_xrc_registration *reg)
{
	struct dapx_xrc_qp *qp = reg->qp;

	spin_lock_irq(&qp->events_lock);
	if (qp->ended && !reg->notified_end)
		dapx_xrc_registration_notify(reg, qp->ended);
	spin_unlock_irq(&qp->events_lock);
}

struct dapx_xrc_registration *dapx_xrc_qp_registration(struct dapx_xrc_qp *qp,
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

/* Returns whether it was the last registration. */
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

/* Creates a registration without a queue pair. */
static struct dapx_xrc_registration *dapx_xrc_registration_create(struct dapx_context *ctx,
								  u32 xrcd_handle,
								  u32 evd_handle,
								  u64 user_data)
{
	struct dapx_xrc_registration *reg;
	struct dapx_object *obj;
	struct dapx_xrcd *xrcd;
	struct dapx_evd *evd;
	int ret;

	obj = dapx_object_alloc(ctx, &dapx_xrc_qp_class);
	if (IS_ERR(obj))
		return ERR_CAST(obj);
	reg = to_dapx_xrc_registration(obj);
	INIT_LIST_HEAD(&reg->entry);
	dapx_event_source_init(&reg->events, obj, NULL);
	reg->established.node.source = &reg->events;
	reg->disconnected.node.source = &reg->events;
	reg->error.node.source = &reg->events;
	reg->obj.user_data = user_data;
	xrcd = dapx_use_xrcd(ctx, xrcd_handle);
	if (IS_ERR(xrcd)) {
		ret = PTR_ERR(xrcd);
		goto err;
	}
	reg->xrcd = xrcd;
	if (evd_handle) {
		evd = dapx_use_evd(ctx, evd_handle);
		if (IS_ERR(evd)) {
			ret = PTR_ERR(evd);
			goto err;
		}
		reg->evd = evd;
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
	/* The command cannot fail any more, and nobody can free the registration yet. */
	dapx_xrc_registration_notify_late(reg);
	dapx_object_publish(&reg->obj);
	return 0;
}

/* Finds a queue pair for a command. Keeps domain->lock held until dapx_xrc_qp_unlock(). */
struct dapx_xrc_qp *dapx_xrc_qp_lock(struct dapx_context *ctx, u32 xrcd_handle, u32 qp_num,
				     bool registered, struct dapx_xrcd **xrcd)
{
	struct dapx_xrc_qp *qp;
	int ret;

	*xrcd = dapx_use_xrcd(ctx, xrcd_handle);
	if (IS_ERR(*xrcd))
		return ERR_CAST(*xrcd);
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

void dapx_xrc_qp_unlock(struct dapx_xrcd *xrcd)
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
	/*
	 * The command that removes the handle destroys the registration: this one, or
	 * DAPX_CMD_FREE.
	 */
	ret = reg ? dapx_object_unpublish(&reg->obj, false) : -EINVAL;
	dapx_xrc_qp_unlock(xrcd);
	if (ret)
		return ret == -ENOENT ? -EINVAL : ret;
	dapx_xrc_registration_destroy(&reg->obj);
	dapx_object_put(&reg->obj);
	return 0;
}
