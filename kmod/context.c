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

unsigned int dapx_max_user_objects = 262144;
module_param_named(max_user_objects, dapx_max_user_objects, uint, 0644);
MODULE_PARM_DESC(max_user_objects,
		 "Objects that all contexts of one user may hold (default 262144)");

/* What one user's contexts hold together, contexts included. */
struct dapx_user {
	refcount_t refs;		/* dapx_users' xa_lock for the last */
	uid_t uid;
	atomic_t objects;
	atomic_t connecting;		/* threads that connect for the user */
};

/* Each takes a thread of the kernel while its peer does not answer. */
#define DAPX_MAX_USER_CONNECTING 256

static DEFINE_XARRAY(dapx_users);

/* All, for those who list them. */
static DEFINE_XARRAY_ALLOC1(dapx_contexts);
static u32 dapx_next_context;		/* dapx_contexts' xa_lock */

static struct dapx_user *dapx_user_get(uid_t uid)
{
	struct dapx_user *user, *new;

	new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
	if (!new)
		return NULL;
	refcount_set(&new->refs, 1);
	new->uid = uid;

	xa_lock(&dapx_users);
	user = __xa_cmpxchg(&dapx_users, uid, NULL, new, GFP_KERNEL_ACCOUNT);
	if (xa_is_err(user)) {
		xa_unlock(&dapx_users);
		kfree(new);
		return NULL;
	}
	if (!user) {
		xa_unlock(&dapx_users);
		return new;
	}
	refcount_inc(&user->refs);
	xa_unlock(&dapx_users);
	kfree(new);
	return user;
}

static void dapx_user_put(struct dapx_user *user)
{
	bool last;

	xa_lock(&dapx_users);
	last = refcount_dec_and_test(&user->refs);
	if (last)
		__xa_erase(&dapx_users, user->uid);
	xa_unlock(&dapx_users);
	if (last)
		kfree(user);
}

static int dapx_user_charge(struct dapx_user *user)
{
	if (atomic_inc_return(&user->objects) <= READ_ONCE(dapx_max_user_objects))
		return 0;
	atomic_dec(&user->objects);
	return -EDQUOT;
}

bool dapx_user_begin_connect(struct dapx_user *user)
{
	if (atomic_inc_return(&user->connecting) <= DAPX_MAX_USER_CONNECTING)
		return true;
	atomic_dec(&user->connecting);
	return false;
}

void dapx_user_end_connect(struct dapx_user *user)
{
	atomic_dec(&user->connecting);
}

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
	atomic_dec(&ctx->user->objects);
err_context:
	atomic_dec(&ctx->num_objects);
	return ret;
}

void dapx_context_uncharge(struct dapx_context *ctx, struct dapx_object *obj)
{
	dapx_cgroup_uncharge(ctx, obj);
	atomic_dec(&ctx->user->objects);
	atomic_dec(&ctx->num_objects);
}

/*
 * The process is gone, though a forked child or a passed descriptor may keep the
 * file open. Teardown sleeps for long: not here, in the middle of exit_mmap.
 */
static void dapx_notifier_release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct dapx_context *ctx = container_of(notifier, struct dapx_context, notifier);

	dapx_context_get(ctx);
	if (!queue_work(dapx_wq, &ctx->death_work))
		dapx_context_put(ctx);
}

static const struct mmu_notifier_ops dapx_notifier_ops = {
	.release = dapx_notifier_release,
};

static void dapx_context_death(struct work_struct *work)
{
	struct dapx_context *ctx = container_of(work, struct dapx_context, death_work);

	dapx_context_teardown(ctx, DAPX_GENL_CAUSE_EXITED);
	dapx_context_put(ctx);
}

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
	INIT_WORK(&ctx->death_work, dapx_context_death);

	ctx->user = dapx_user_get(from_kuid(&init_user_ns, current_euid()));
	if (!ctx->user) {
		ret = -ENOMEM;
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
	atomic_dec(&ctx->user->objects);
err_user:
	dapx_user_put(ctx->user);
err_free:
	kfree(ctx);
	return ret;
}

static void dapx_context_release(struct kref *kref)
{
	struct dapx_context *ctx = container_of(kref, struct dapx_context, kref);

	xa_destroy(&ctx->objects);
	xa_destroy(&ctx->mrs);
	xa_destroy(&ctx->rings);
	put_pid(ctx->pid);
	put_net(ctx->net);
	atomic_dec(&ctx->user->objects);
	dapx_user_put(ctx->user);
	kfree(ctx);
}

struct dapx_context *dapx_context_next(u32 id)
{
	struct dapx_context *ctx;
	unsigned long index = id;

	xa_lock(&dapx_contexts);
	ctx = xa_find(&dapx_contexts, &index, U32_MAX, XA_PRESENT);
	if (ctx)
		kref_get(&ctx->kref);
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
 * A command is in flight from enter to leave: teardown waits for it. What sleeps
 * at a user's will leaves first.
 */
int dapx_context_enter(struct dapx_context *ctx)
{
	int ret;

	ret = down_read_killable(&ctx->sem);
	if (ret)
		return ret;
	if (!READ_ONCE(ctx->dead))
		return 0;
	up_read(&ctx->sem);
	return -EIO;
}

void dapx_context_leave(struct dapx_context *ctx)
{
	up_read(&ctx->sem);
}

static void dapx_context_stop_endpoints(struct dapx_context *ctx)
{
	struct dapx_object *obj;
	unsigned long handle;

	/* All queue pairs to error before the first drain: they drain at once. */
	xa_for_each(&ctx->objects, handle, obj) {
		if (obj->class->type == DAPX_OBJECT_EP)
			dapx_ep_stop(container_of(obj, struct dapx_ep, obj));
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
		if (dapx_cm_listener(container_of(obj, struct dapx_cm, obj))) {
			xa_erase(&ctx->objects, handle);
			dapx_context_uncharge(ctx, obj);
			obj->class->destroy(obj);
			dapx_object_put(obj);
		}
		dapx_object_put(obj);
	}
}

/* Another one may take the device away meanwhile. */
static void dapx_context_tell(struct dapx_context *ctx, const struct dapx_happening *what)
{
	if (dapx_device_hold(ctx))
		dapx_netlink_tell(ctx, what);
	dapx_device_unhold();
}

/*
 * The one end of a context: its file's close, its process' death, its device's
 * removal. Safe to call again, and from several of them at once.
 */
void dapx_context_teardown(struct dapx_context *ctx, enum dapx_genl_cause cause)
{
	struct dapx_object *obj;
	unsigned long handle;
	bool first;

	first = !cmpxchg64(&ctx->ending_since, 0, ktime_get_ns());
	if (first)
		dapx_context_tell(ctx, &(struct dapx_happening) {
				  .event = DAPX_GENL_EVENT_CONTEXT_ENDING,
				  .state = cause,
				  .number = atomic_read(&ctx->num_objects) });
	WRITE_ONCE(ctx->dead, true);
	down_write(&ctx->sem);

	dapx_context_destroy_listeners(ctx);
	dapx_context_stop_endpoints(ctx);
	dapx_objects_destroy(ctx, DAPX_OBJECT_EP);
	dapx_objects_destroy(ctx, DAPX_OBJECT_CM);
	dapx_objects_destroy(ctx, DAPX_OBJECT_XRC_QP);
	dapx_objects_destroy(ctx, DAPX_OBJECT_SRQ);
	dapx_objects_destroy(ctx, DAPX_OBJECT_RMR);
	dapx_objects_destroy(ctx, DAPX_OBJECT_MR);
	if (cause == DAPX_GENL_CAUSE_REMOVED) {
		xa_for_each(&ctx->objects, handle, obj)
			if (obj->class->type == DAPX_OBJECT_EVD)
				dapx_evd_device_removed(container_of(obj, struct dapx_evd, obj));
	}
	dapx_objects_destroy(ctx, DAPX_OBJECT_XRCD);
	dapx_objects_destroy(ctx, DAPX_OBJECT_EVD);
	dapx_objects_destroy(ctx, DAPX_OBJECT_PD);

	/* With the semaphore: for who waits for it the device goes next. */
	if (first)
		dapx_context_tell(ctx, &(struct dapx_happening) {
				  .event = DAPX_GENL_EVENT_CONTEXT_ENDED,
				  .large = ktime_get_ns() - ctx->ending_since });
	up_write(&ctx->sem);
}

void dapx_context_close(struct dapx_context *ctx)
{
	/* First: callbacks of listeners charge to ctx->mm, which the notifier keeps. */
	dapx_context_teardown(ctx, current->flags & PF_EXITING ? DAPX_GENL_CAUSE_EXITED :
								 DAPX_GENL_CAUSE_CLOSED);
	mmu_notifier_unregister(&ctx->notifier, ctx->mm);
	if (cancel_work_sync(&ctx->death_work))
		dapx_context_put(ctx);
	xa_erase(&dapx_contexts, ctx->id);
	dapx_device_detach(ctx);
	dapx_context_put(ctx);
}
