// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: an open file: whose it is, what it may hold, and how it all ends
 */
#include <linux/cgroup_rdma.h>
#include <linux/cred.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "dapx_private.h"

unsigned int dapx_max_objects = 65536;
module_param_named(max_objects, dapx_max_objects, uint, 0644);
MODULE_PARM_DESC(max_objects, "Objects that one context may hold (default 65536)");

/* How long a process that exits waits for the end of what it had. */
#define DAPX_END_PATIENCE (60 * HZ)
/* How long the removal of a device waits for a context until it says so. */
#define DAPX_REMOVAL_PATIENCE (10 * HZ)

/* All, for those who list them. */
static DEFINE_XARRAY_ALLOC1(dapx_contexts);
static u32 dapx_next_context;		/* dapx_contexts' xa_lock */

#ifdef CONFIG_CGROUP_RDMA
/*
 * Charges are the current task's. What a callback makes for a connection request has none
 * until the process accepts or takes the request; before, the listener's backlog limits it.
 */
int dapx_cgroup_charge(struct dapx_object *obj)
{
	int ret;

	if (obj->cg || current->flags & PF_KTHREAD)
		return 0;
	ret = rdmacg_try_charge(&obj->cg, &obj->ctx->dev->ibdev->cg_device,
				RDMACG_RESOURCE_HCA_OBJECT);
	return ret == -EAGAIN ? -EDQUOT : ret;
}

static void dapx_cgroup_uncharge(struct dapx_context *ctx, struct dapx_object *obj)
{
	if (obj->cg)
		rdmacg_uncharge(obj->cg, &ctx->dev->ibdev->cg_device, RDMACG_RESOURCE_HCA_OBJECT);
	obj->cg = NULL;
}
#else
int dapx_cgroup_charge(struct dapx_object *obj)
{
	return 0;
}

static void dapx_cgroup_uncharge(struct dapx_context *ctx, struct dapx_object *obj)
{
}
#endif

/* Counts an object, or says which limit forbids it. */
int dapx_context_charge(struct dapx_context *ctx, struct dapx_object *obj)
{
	int ret = -EDQUOT;

	if (atomic_inc_return(&ctx->num_objects) > READ_ONCE(dapx_max_objects))
		goto err_context;
	ret = dapx_user_charge(ctx->user);
	if (ret)
		goto err_context;
	ret = dapx_cgroup_charge(obj);
	if (ret)
		goto err_user;
	return 0;

err_user:
	dapx_user_uncharge(ctx->user);
err_context:
	atomic_dec(&ctx->num_objects);
	return ret;
}

void dapx_context_uncharge(struct dapx_context *ctx, struct dapx_object *obj)
{
	dapx_cgroup_uncharge(ctx, obj);
	dapx_user_uncharge(ctx->user);
	atomic_dec(&ctx->num_objects);
}

/* The process is gone, though a forked child or a passed descriptor may keep the file open. */
static void dapx_notifier_release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	dapx_context_end(container_of(notifier, struct dapx_context, notifier),
			 DAPX_GENL_CAUSE_EXITED);
}

static const struct mmu_notifier_ops dapx_notifier_ops = {
	.release = dapx_notifier_release,
};

static void dapx_context_end_work(struct work_struct *work);

int dapx_context_open(struct dapx_context **out)
{
	struct dapx_context *ctx;
	int ret;

	if (!current->mm)
		return -EPERM;
	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return -ENOMEM;
	kref_init(&ctx->kref);
	init_rwsem(&ctx->sem);
	xa_init_flags(&ctx->objects, XA_FLAGS_ALLOC1);
	xa_init(&ctx->mrs);
	xa_init_flags(&ctx->rings, XA_FLAGS_ALLOC1);
	INIT_LIST_HEAD(&ctx->device_entry);
	INIT_WORK(&ctx->end_work, dapx_context_end_work);
	init_completion(&ctx->ended);

	ctx->user = dapx_user_get(from_kuid(&init_user_ns, current_euid()));
	if (IS_ERR(ctx->user)) {
		ret = PTR_ERR(ctx->user);
		goto err_free;
	}
	ret = dapx_user_charge(ctx->user);
	if (ret)
		goto err_user;
	ctx->net = get_net(current->nsproxy->net_ns);
	ctx->pid = get_pid(task_tgid(current));
	get_task_comm(ctx->comm, current->group_leader);
	scnprintf(ctx->owner, sizeof(ctx->owner), "dapx:%d", task_tgid_nr(current));
	ctx->mm = current->mm;
	/* Only reserved: it is not whole. */
	ret = xa_alloc_cyclic(&dapx_contexts, &ctx->id, NULL, xa_limit_31b, &dapx_next_context,
			      GFP_KERNEL_ACCOUNT);
	if (ret < 0)
		goto err_net;
	ctx->notifier.ops = &dapx_notifier_ops;
	ret = mmu_notifier_register(&ctx->notifier, ctx->mm);
	if (ret)
		goto err_id;
	xa_store(&dapx_contexts, ctx->id, ctx, GFP_KERNEL);
	*out = ctx;
	return 0;

err_id:
	xa_erase(&dapx_contexts, ctx->id);
err_net:
	put_pid(ctx->pid);
	put_net(ctx->net);
	dapx_user_uncharge(ctx->user);
err_user:
	dapx_user_put(ctx->user);
err_free:
	kfree(ctx);
	return ret;
}

static void dapx_context_release(struct kref *kref)
{
	struct dapx_context *ctx = container_of(kref, struct dapx_context, kref);

	mmu_notifier_unregister(&ctx->notifier, ctx->mm);
	xa_erase(&dapx_contexts, ctx->id);
	xa_destroy(&ctx->objects);
	xa_destroy(&ctx->mrs);
	xa_destroy(&ctx->rings);
	put_pid(ctx->pid);
	put_net(ctx->net);
	dapx_user_uncharge(ctx->user);
	dapx_user_put(ctx->user);
	kfree(ctx);
}

struct dapx_context *dapx_context_next(u32 id)
{
	struct dapx_context *ctx;
	unsigned long index = id;

	xa_lock(&dapx_contexts);
	ctx = xa_find(&dapx_contexts, &index, U32_MAX, XA_PRESENT);
	while (ctx && !kref_get_unless_zero(&ctx->kref))
		ctx = xa_find_after(&dapx_contexts, &index, U32_MAX, XA_PRESENT);
	xa_unlock(&dapx_contexts);
	return ctx;
}

kuid_t dapx_context_owner(const struct dapx_context *ctx)
{
	return make_kuid(&init_user_ns, ctx->user->uid);
}

void dapx_context_get(struct dapx_context *ctx)
{
	kref_get(&ctx->kref);
}

void dapx_context_put(struct dapx_context *ctx)
{
	kref_put(&ctx->kref, dapx_context_release);
}

/*
 * A command is in flight from enter to leave: the end waits for it. What sleeps at a user's
 * will leaves first, and is done if it cannot enter again.
 */
int dapx_context_enter(struct dapx_ucmd *ucmd)
{
	struct dapx_context *ctx = ucmd->ctx;
	int ret;

	if (READ_ONCE(ctx->dead))
		return -EIO;
	ret = down_read_killable(&ctx->sem);
	if (ret)
		return ret;
	ucmd->entered = !READ_ONCE(ctx->dead);
	if (ucmd->entered)
		return 0;
	up_read(&ctx->sem);
	return -EIO;
}

void dapx_context_leave(struct dapx_ucmd *ucmd)
{
	if (ucmd->entered)
		up_read(&ucmd->ctx->sem);
	ucmd->entered = false;
}

static void dapx_context_stop_endpoints(struct dapx_context *ctx)
{
	struct dapx_object *obj;
	unsigned long handle;

	/* All queue pairs to error before the first drain: they drain at once. */
	xa_for_each(&ctx->objects, handle, obj) {
		if (obj->class->type == DAPX_OBJECT_EP)
			dapx_ep_stop(to_dapx_ep(obj));
		cond_resched();
	}
}

static void dapx_context_destroy_listeners(struct dapx_context *ctx)
{
	struct dapx_object *obj;
	unsigned long handle;

	xa_for_each(&ctx->objects, handle, obj) {
		/* With a reference: callbacks of listeners still make and end objects. */
		obj = dapx_object_get(ctx, handle, DAPX_OBJECT_CM);
		if (IS_ERR(obj))
			continue;
		if (dapx_cm_listener(to_dapx_cm(obj))) {
			xa_erase(&ctx->objects, handle);
			dapx_context_uncharge(ctx, obj);
			obj->class->destroy(obj);
			dapx_object_put(obj);
		}
		dapx_object_put(obj);
	}
}

/* Another one may take the device away meanwhile. */
static void dapx_context_notify(struct dapx_context *ctx, const struct dapx_notification *what)
{
	if (dapx_device_hold(ctx))
		dapx_netlink_notify(ctx, what);
	dapx_device_unhold();
}

static void dapx_context_teardown(struct dapx_context *ctx)
{
	struct dapx_object *obj;
	unsigned long handle;

	dapx_context_notify(ctx, &(struct dapx_notification) {
			    .event = DAPX_GENL_EVENT_CONTEXT_ENDING,
			    .state = ctx->cause,
			    .number = atomic_read(&ctx->num_objects) });
	down_write(&ctx->sem);

	dapx_context_destroy_listeners(ctx);
	dapx_context_stop_endpoints(ctx);
	dapx_objects_destroy(ctx, DAPX_OBJECT_EP);
	dapx_objects_destroy(ctx, DAPX_OBJECT_CM);
	dapx_objects_destroy(ctx, DAPX_OBJECT_XRC_QP);
	dapx_objects_destroy(ctx, DAPX_OBJECT_SRQ);
	dapx_objects_destroy(ctx, DAPX_OBJECT_RMR);
	dapx_objects_destroy(ctx, DAPX_OBJECT_MR);
	if (ctx->cause == DAPX_GENL_CAUSE_REMOVED) {
		xa_for_each(&ctx->objects, handle, obj)
			if (obj->class->type == DAPX_OBJECT_EVD)
				dapx_evd_device_removed(to_dapx_evd(obj));
	}
	dapx_objects_destroy(ctx, DAPX_OBJECT_XRCD);
	dapx_objects_destroy(ctx, DAPX_OBJECT_EVD);
	dapx_objects_destroy(ctx, DAPX_OBJECT_PD);

	dapx_context_notify(ctx, &(struct dapx_notification) {
			    .event = DAPX_GENL_EVENT_CONTEXT_ENDED,
			    .large = ktime_get_ns() - ctx->ending_since });
	up_write(&ctx->sem);
}

static void dapx_context_end_work(struct work_struct *work)
{
	struct dapx_context *ctx = container_of(work, struct dapx_context, end_work);

	dapx_context_teardown(ctx);
	dapx_device_detach(ctx);
	complete_all(&ctx->ended);
	dapx_context_put(ctx);
}

/*
 * The one end of a context, of which the first cause counts: its file's close, its process'
 * death, its device's removal. In a work: contexts end side by side, and one that waits for
 * its device or for a user's memory holds up nobody. Does not sleep; may be called again.
 */
void dapx_context_end(struct dapx_context *ctx, enum dapx_genl_cause cause)
{
	if (cmpxchg64(&ctx->ending_since, 0, ktime_get_ns()))
		return;
	ctx->cause = cause;
	WRITE_ONCE(ctx->dead, true);
	dapx_context_get(ctx);
	queue_work(ctx->user->ends, &ctx->end_work);
}

/* When this returns, nothing of the context is left on its device. */
void dapx_context_wait_end(struct dapx_context *ctx)
{
	if (wait_for_completion_timeout(&ctx->ended, DAPX_REMOVAL_PATIENCE))
		return;
	pr_warn_ratelimited("dapx: the removal of %s waits for %s[%d]; if it does not go on by itself, end that process, and who serves its memory\n",
			    ctx->dev->name, ctx->comm, pid_nr(ctx->pid));
	wait_for_completion(&ctx->ended);
}

/*
 * Who is killed is not kept: the end goes on without. A process that exits cannot be killed
 * any more.
 */
void dapx_context_close(struct dapx_context *ctx)
{
	bool exits = current->flags & PF_EXITING;

	dapx_context_end(ctx, exits ? DAPX_GENL_CAUSE_EXITED : DAPX_GENL_CAUSE_CLOSED);
	if (!exits)
		wait_for_completion_killable(&ctx->ended);
	else if (!wait_for_completion_timeout(&ctx->ended, DAPX_END_PATIENCE))
		pr_warn_ratelimited("dapx: %s[%d] exits before what it had on %s is gone: the device or its connection manager does not answer\n",
				    ctx->comm, pid_nr(ctx->pid),
				    ctx->dev ? ctx->dev->name : "no device");
	dapx_context_put(ctx);
}
