// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: contexts: open files, who owns them, and how they end
 */
#include <linux/cred.h>
#include <linux/nsproxy.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "dapx_private.h"
#include "xrc/xrc.h"

/* How long a process that exits waits for the teardown of its context. */
#define DAPX_END_PATIENCE (60 * HZ)
/* How long the removal of a device waits for a context before it logs a warning. */
#define DAPX_REMOVAL_PATIENCE (10 * HZ)

/* All contexts, for netlink. */
static DEFINE_XARRAY_ALLOC1(dapx_contexts);
static u32 dapx_next_context;		/* dapx_contexts' xa_lock */

/* The process has exited. A forked child or a passed descriptor may still keep the file open. */
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
	unsigned int type;
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
	for (type = 0; type < DAPX_OBJECT_TYPES; type++)
		INIT_LIST_HEAD(&ctx->of_type[type]);
	INIT_LIST_HEAD(&ctx->sources);
	INIT_LIST_HEAD(&ctx->device_entry);
	INIT_WORK(&ctx->end_work, dapx_context_end_work);
	INIT_LIST_HEAD(&ctx->closed_domains);
	init_completion(&ctx->detached);
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
	/* Only reserve the id: the context is not complete yet. */
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
 * A command is in flight between enter and leave, and teardown waits for it. A command that may
 * sleep as long as the process wants leaves first, and fails if it cannot enter again.
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

/* The device may be detached concurrently, so hold it. */
static void dapx_context_notify(struct dapx_context *ctx, const struct dapx_notification *what)
{
	if (dapx_device_hold(ctx))
		dapx_netlink_notify(ctx, what);
	dapx_device_unhold();
}

static void dapx_object_stop(struct dapx_object *obj)
{
	obj->class->stop(obj);
}

static void dapx_object_settle(struct dapx_object *obj)
{
	obj->class->settle(obj);
}

static void dapx_object_device_removed(struct dapx_object *obj)
{
	obj->class->device_removed(obj);
}

static void dapx_context_teardown(struct dapx_context *ctx)
{
	dapx_context_notify(ctx, &(struct dapx_notification) {
			    .event = DAPX_GENL_EVENT_CONTEXT_ENDING,
			    .state = ctx->cause,
			    .number = atomic_read(&ctx->num_objects) });
	down_write(&ctx->sem);

	dapx_objects_destroy_sources(ctx);
	/*
	 * Endpoints take the steps that wait for the device side by side: all flush before the
	 * first is waited for, and all are silent before the first is destroyed.
	 */
	dapx_objects_each(ctx, DAPX_OBJECT_EP, dapx_object_stop);
	dapx_objects_each(ctx, DAPX_OBJECT_EP, dapx_object_settle);
	dapx_objects_destroy(ctx, DAPX_OBJECT_EP);
	dapx_objects_destroy(ctx, DAPX_OBJECT_CM);
	dapx_objects_destroy(ctx, DAPX_OBJECT_XRC_QP);
	dapx_objects_destroy(ctx, DAPX_OBJECT_SRQ);
	dapx_objects_destroy(ctx, DAPX_OBJECT_RMR);
	dapx_objects_destroy(ctx, DAPX_OBJECT_MR);
	if (ctx->cause == DAPX_GENL_CAUSE_REMOVED)
		dapx_objects_each(ctx, DAPX_OBJECT_EVD, dapx_object_device_removed);
	dapx_objects_destroy(ctx, DAPX_OBJECT_XRCD);
	dapx_objects_destroy(ctx, DAPX_OBJECT_EVD);
	dapx_objects_destroy(ctx, DAPX_OBJECT_PD);

	dapx_context_notify(ctx, &(struct dapx_notification) {
			    .event = DAPX_GENL_EVENT_CONTEXT_ENDED,
			    .large = ktime_get_ns() - READ_ONCE(ctx->ending_since) });
	up_write(&ctx->sem);
}

static void dapx_context_end_work(struct work_struct *work)
{
	struct dapx_context *ctx = container_of(work, struct dapx_context, end_work);
	struct dapx_xrc_domain *domain, *next;

	dapx_context_teardown(ctx);
	dapx_device_detach(ctx);
	complete_all(&ctx->detached);
	/* For these only who closes the context waits. */
	list_for_each_entry_safe(domain, next, &ctx->closed_domains, closed)
		dapx_xrc_domain_let_go(domain);
	complete_all(&ctx->ended);
	dapx_context_put(ctx);
}

/*
 * Starts the teardown of a context, once; the first cause counts: its file is closed, its
 * process dies, or its device is removed. Teardown runs in a work, so that contexts end in
 * parallel, and one that waits for its device or for a user's memory delays no other. Does not
 * sleep; may be called again.
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

/* When this returns, the context has nothing left on its device. */
void dapx_context_wait_detached(struct dapx_context *ctx)
{
	if (wait_for_completion_timeout(&ctx->detached, DAPX_REMOVAL_PATIENCE))
		return;
	pr_warn_ratelimited("dapx: the removal of %s waits for %s[%d]; if it does not go on by itself, end that process, and who serves its memory\n",
			    ctx->dev->name, ctx->comm, pid_nr(ctx->pid));
	wait_for_completion(&ctx->detached);
}

/*
 * A process that is killed stops waiting here, and teardown continues without it. A process
 * that exits cannot be killed any more, so its wait is bounded.
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
	/* So that a closed context is neither listed nor counted. */
	if (completion_done(&ctx->ended))
		flush_work(&ctx->end_work);
	dapx_context_put(ctx);
}
