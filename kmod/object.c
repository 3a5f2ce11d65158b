// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: handles, and the lifetime of the objects that they name
 */
#include <linux/cgroup_rdma.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "dapx_private.h"

unsigned int dapx_max_objects = 65536;
module_param_named(max_objects, dapx_max_objects, uint, 0644);
MODULE_PARM_DESC(max_objects, "Objects that one context may hold (default 65536)");

#ifdef CONFIG_CGROUP_RDMA
/*
 * Charges the cgroup of the current task. An object that a callback makes for a connection
 * request is charged when the process accepts or takes the request. Until then the listener's
 * backlog limits the number of such objects.
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

static void dapx_cgroup_uncharge(struct dapx_object *obj)
{
	if (obj->cg)
		rdmacg_uncharge(obj->cg, &obj->ctx->dev->ibdev->cg_device,
				RDMACG_RESOURCE_HCA_OBJECT);
	obj->cg = NULL;
}
#else
int dapx_cgroup_charge(struct dapx_object *obj)
{
	return 0;
}

static void dapx_cgroup_uncharge(struct dapx_object *obj)
{
}
#endif

/* Charges an object to its context, its user and its cgroup, or fails if a limit is reached. */
static int dapx_object_charge(struct dapx_object *obj)
{
	struct dapx_context *ctx = obj->ctx;
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

void dapx_object_uncharge(struct dapx_object *obj)
{
	struct dapx_context *ctx = obj->ctx;

	dapx_cgroup_uncharge(obj);
	dapx_user_uncharge(ctx->user);
	atomic_dec(&ctx->num_objects);
}

/*
 * Nobody finds the object by its handle before the caller publishes it, when nothing can fail
 * any more.
 */
struct dapx_object *dapx_object_alloc(struct dapx_context *ctx,
				      const struct dapx_object_class *class)
{
	struct dapx_object *obj;
	int ret;

	obj = kzalloc(class->size, GFP_KERNEL_ACCOUNT);
	if (!obj)
		return ERR_PTR(-ENOMEM);
	obj->ctx = ctx;
	ret = dapx_object_charge(obj);
	if (ret)
		goto err_free;
	kref_init(&obj->kref);
	mutex_init(&obj->mutex);
	INIT_LIST_HEAD(&obj->entry);
	obj->class = class;
	ret = xa_alloc_cyclic(&ctx->objects, &obj->handle, obj, xa_limit_31b,
			      &ctx->next_object, GFP_KERNEL_ACCOUNT);
	if (ret < 0)
		goto err_uncharge;
	return obj;

err_uncharge:
	dapx_object_uncharge(obj);
err_free:
	kfree(obj);
	return ERR_PTR(ret);
}

void dapx_object_publish(struct dapx_object *obj)
{
	struct dapx_context *ctx = obj->ctx;

	xa_lock(&ctx->objects);
	list_add_tail(&obj->entry, &ctx->of_type[obj->class->type]);
	xa_unlock(&ctx->objects);
}

/* Undoes dapx_object_alloc(); the caller has undone the rest. */
void dapx_object_abort(struct dapx_object *obj)
{
	xa_erase(&obj->ctx->objects, obj->handle);
	dapx_object_uncharge(obj);
	dapx_object_put(obj);
}

/* Makes an object one that has no handle and belongs to the object that it was created for. */
void dapx_object_make_internal(struct dapx_object *obj)
{
	xa_erase(&obj->ctx->objects, obj->handle);
	dapx_object_uncharge(obj);
	obj->handle = 0;
}

/* From now on the object's callbacks create objects, so teardown has to destroy it first. */
void dapx_object_make_source(struct dapx_object *obj)
{
	xa_lock(&obj->ctx->objects);
	if (!list_empty(&obj->entry))
		list_move_tail(&obj->entry, &obj->ctx->sources);
	xa_unlock(&obj->ctx->objects);
}

static bool dapx_object_is_published(const struct dapx_object *obj)
{
	return !list_empty(&obj->entry);
}

static bool dapx_object_is(const struct dapx_object *obj, enum dapx_object_type type)
{
	return obj && dapx_object_is_published(obj) &&
	       (type == DAPX_OBJECT_ANY || obj->class->type == type);
}

struct dapx_object *dapx_object_get(struct dapx_context *ctx, u32 handle,
				    enum dapx_object_type type)
{
	struct dapx_object *obj;

	xa_lock(&ctx->objects);
	obj = xa_load(&ctx->objects, handle);
	if (dapx_object_is(obj, type))
		kref_get(&obj->kref);
	else
		obj = ERR_PTR(-ENOENT);
	xa_unlock(&ctx->objects);
	return obj;
}

/*
 * Returns the next object after *@handle, with a reference, and updates *@handle. NULL after
 * the last.
 */
struct dapx_object *dapx_object_get_next(struct dapx_context *ctx, unsigned long *handle,
					 enum dapx_object_type type)
{
	struct dapx_object *obj;

	xa_lock(&ctx->objects);
	do {
		obj = xa_find_after(&ctx->objects, handle, U32_MAX, XA_PRESENT);
	} while (obj && !dapx_object_is(obj, type));
	if (obj)
		kref_get(&obj->kref);
	xa_unlock(&ctx->objects);
	return obj;
}

/* Like dapx_object_get(), and prevents the object from being freed until dapx_object_unuse(). */
struct dapx_object *dapx_object_use(struct dapx_context *ctx, u32 handle,
				    enum dapx_object_type type)
{
	struct dapx_object *obj;

	xa_lock(&ctx->objects);
	obj = xa_load(&ctx->objects, handle);
	if (dapx_object_is(obj, type)) {
		kref_get(&obj->kref);
		WRITE_ONCE(obj->users, obj->users + 1);
	} else {
		obj = ERR_PTR(-ENOENT);
	}
	xa_unlock(&ctx->objects);
	return obj;
}

void dapx_object_unuse(struct dapx_object *obj)
{
	xa_lock(&obj->ctx->objects);
	WRITE_ONCE(obj->users, obj->users - 1);
	xa_unlock(&obj->ctx->objects);
	dapx_object_put(obj);
}

/*
 * Erases a handle, but keeps the xarray entry of the handle that was freed last reserved.
 * Handles are allocated cyclically, so the next object gets a neighbouring handle, and finds
 * the xarray's nodes still allocated.
 */
static void dapx_object_release_id(struct dapx_object *obj, struct xa_state *xas)
{
	struct dapx_context *ctx = obj->ctx;

	list_del_init(&obj->entry);
	/* What xa_load() takes for NULL, and xa_alloc() for an entry in use. */
	xas_store(xas, XA_ZERO_ENTRY);
	__xa_erase(&ctx->objects, ctx->vacant);
	ctx->vacant = xas->xa_index;
}

/*
 * The part of dapx_object_unpublish() that does not sleep. The caller must then call
 * dapx_object_uncharge().
 */
int dapx_object_erase(struct dapx_object *obj, bool force)
{
	struct dapx_context *ctx = obj->ctx;
	XA_STATE(xas, &ctx->objects, obj->handle);
	int ret = 0;

	xas_lock(&xas);
	if (xas_load(&xas) != obj || !dapx_object_is_published(obj))
		ret = -ENOENT;
	else if (obj->users && !force)
		ret = -EBUSY;
	else
		dapx_object_release_id(obj, &xas);
	xas_unlock(&xas);
	return ret;
}

/*
 * Removes the handle. Returns 0 to exactly one caller, which must then call destroy() and put
 * the xarray's reference. Fails with EBUSY if the object has users, unless @force: then its
 * users are about to find it in a state in which they cannot use it.
 */
int dapx_object_unpublish(struct dapx_object *obj, bool force)
{
	int ret = dapx_object_erase(obj, force);

	if (!ret)
		dapx_object_uncharge(obj);
	return ret;
}

static void dapx_object_release(struct kref *kref)
{
	struct dapx_object *obj = container_of(kref, struct dapx_object, kref);

	if (obj->class->release)
		obj->class->release(obj);
	if (obj->class->rcu)
		kfree_rcu(obj, rcu);
	else
		kfree(obj);
}

void dapx_object_put(struct dapx_object *obj)
{
	kref_put(&obj->kref, dapx_object_release);
}

bool dapx_object_queue_work(struct dapx_object *obj, struct work_struct *work)
{
	return queue_work(obj->ctx->user->works, work);
}

bool dapx_object_queue_delayed(struct dapx_object *obj, struct delayed_work *work,
			       unsigned long delay)
{
	return queue_delayed_work(obj->ctx->user->works, work, delay);
}

/* Also if it is queued already: then at the new time. */
void dapx_object_requeue_delayed(struct dapx_object *obj, struct delayed_work *work,
				 unsigned long delay)
{
	mod_delayed_work(obj->ctx->user->works, work, delay);
}

/*
 * A step that the teardown takes with each object of a list. It takes them one after the other,
 * and so do helpers, works that run on other CPUs, as the step mostly waits for the device or
 * returns memory.
 */
#define DAPX_HELPERS 3U
#define DAPX_OBJECTS_PER_HELPER 16U

struct dapx_step {
	struct dapx_context *ctx;
	struct list_head *list;
	struct list_head *last;		/* objects.xa_lock: the one that was taken last */
	struct dapx_object *(*next)(struct dapx_step *step);
	void (*take)(struct dapx_object *obj);
};

struct dapx_helper {
	struct work_struct work;
	struct dapx_step *step;
};

static void dapx_step_run(struct dapx_step *step)
{
	struct dapx_object *obj;

	while ((obj = step->next(step))) {
		step->take(obj);
		cond_resched();
	}
}

static void dapx_helper_work(struct work_struct *work)
{
	dapx_step_run(container_of(work, struct dapx_helper, work)->step);
}

/*
 * Returns when the step is done with all objects. Does not wait for a helper to begin, so that
 * it ends even if the queue runs no further work.
 */
static void dapx_step_with_helpers(struct dapx_step *step)
{
	struct dapx_helper helpers[DAPX_HELPERS];
	unsigned int cpu = raw_smp_processor_id();
	unsigned int i, count;

	if (list_empty(step->list))
		return;
	count = atomic_read(&step->ctx->num_objects) / DAPX_OBJECTS_PER_HELPER;
	count = min3(count, num_online_cpus() - 1, DAPX_HELPERS);
	for (i = 0; i < count; i++) {
		INIT_WORK_ONSTACK(&helpers[i].work, dapx_helper_work);
		helpers[i].step = step;
		/* Left to itself, the work stays on CPUs that share a cache with this one. */
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
		queue_work_on(cpu, step->ctx->user->ends, &helpers[i].work);
	}
	dapx_step_run(step);
	for (i = 0; i < count; i++) {
		cancel_work_sync(&helpers[i].work);
		destroy_work_on_stack(&helpers[i].work);
	}
}

static struct dapx_object *dapx_step_next(struct dapx_step *step)
{
	struct dapx_object *obj = NULL;

	xa_lock(&step->ctx->objects);
	if (!list_is_last(step->last, step->list)) {
		step->last = step->last->next;
		obj = list_entry(step->last, struct dapx_object, entry);
	}
	xa_unlock(&step->ctx->objects);
	return obj;
}

/* For teardown: no command is in flight, and no source is left. */
void dapx_objects_each(struct dapx_context *ctx, enum dapx_object_type type,
		       void (*fn)(struct dapx_object *obj))
{
	struct list_head *list = &ctx->of_type[type];

	dapx_step_with_helpers(&(struct dapx_step) {
			       .ctx = ctx, .list = list, .last = list,
			       .next = dapx_step_next, .take = fn });
}

/* Removes the first object of a list and its handle; the caller gets the xarray's reference. */
static struct dapx_object *dapx_objects_take(struct dapx_step *step)
{
	struct dapx_context *ctx = step->ctx;
	struct dapx_object *obj;

	xa_lock(&ctx->objects);
	obj = list_first_entry_or_null(step->list, struct dapx_object, entry);
	if (obj) {
		list_del_init(&obj->entry);
		__xa_erase(&ctx->objects, obj->handle);
	}
	xa_unlock(&ctx->objects);
	return obj;
}

static void dapx_object_destroy(struct dapx_object *obj)
{
	dapx_object_uncharge(obj);
	obj->class->destroy(obj);
	dapx_object_put(obj);
}

static void dapx_objects_destroy_list(struct dapx_context *ctx, struct list_head *list)
{
	dapx_step_with_helpers(&(struct dapx_step) {
			       .ctx = ctx, .list = list,
			       .next = dapx_objects_take, .take = dapx_object_destroy });
}

/* For teardown: destroys all objects of a type, even those that have users. */
void dapx_objects_destroy(struct dapx_context *ctx, enum dapx_object_type type)
{
	dapx_objects_destroy_list(ctx, &ctx->of_type[type]);
}

/*
 * For teardown, before any other object is looked at: until these are destroyed, their
 * callbacks create and destroy other objects.
 */
void dapx_objects_destroy_sources(struct dapx_context *ctx)
{
	dapx_objects_destroy_list(ctx, &ctx->sources);
}

/*
 * Returns the object that @cmd frees, with a reference. This is the xarray's, from which the
 * object has been removed, or an additional one if its class has a free() of its own.
 */
static struct dapx_object *dapx_object_take(struct dapx_context *ctx, const struct dapx_free *cmd)
{
	XA_STATE(xas, &ctx->objects, cmd->handle);
	struct dapx_object *obj;

	xas_lock(&xas);
	obj = xas_load(&xas);
	if (xa_is_zero(obj) || !dapx_object_is(obj, cmd->type))
		obj = ERR_PTR(-ENOENT);
	else if (cmd->flags & DAPX_FREE_NOWAIT && obj->class->type != DAPX_OBJECT_CM)
		obj = ERR_PTR(-EOPNOTSUPP);
	else if (obj->class->free)
		kref_get(&obj->kref);
	else if (obj->users)
		obj = ERR_PTR(-EBUSY);
	else
		dapx_object_release_id(obj, &xas);
	xas_unlock(&xas);
	return obj;
}

int dapx_cmd_free(struct dapx_ucmd *ucmd)
{
	struct dapx_free *cmd = ucmd->cmd;
	struct dapx_object *obj;
	int ret = 0;

	if (cmd->flags & ~(DAPX_FREE_NOWAIT | DAPX_FREE_DISCARD))
		return -EOPNOTSUPP;
	if (cmd->type > DAPX_OBJECT_XRC_QP)
		return -EINVAL;
	obj = dapx_object_take(ucmd->ctx, cmd);
	if (IS_ERR(obj))
		return PTR_ERR(obj);
	if (obj->class->free) {
		ret = obj->class->free(obj, ucmd);
	} else {
		dapx_object_uncharge(obj);
		obj->class->destroy(obj);
	}
	dapx_object_put(obj);
	return ret;
}

int dapx_cmd_query_object(struct dapx_ucmd *ucmd)
{
	struct dapx_query_object *cmd = ucmd->cmd;
	struct dapx_context *ctx = ucmd->ctx;
	struct dapx_object *obj;
	unsigned long handle;

	if (cmd->flags & ~DAPX_QUERY_NEXT)
		return -EOPNOTSUPP;
	if (cmd->type > DAPX_OBJECT_XRC_QP)
		return -EINVAL;

	if (!(cmd->flags & DAPX_QUERY_NEXT)) {
		obj = dapx_object_get(ctx, cmd->handle, cmd->type);
		if (IS_ERR(obj))
			return PTR_ERR(obj);
	} else {
		handle = cmd->handle;
		obj = dapx_object_get_next(ctx, &handle, cmd->type);
		if (!obj)
			return -ENOENT;
	}

	cmd->out_handle = obj->handle;
	cmd->out_type = obj->class->type;
	cmd->out_users = READ_ONCE(obj->users);
	cmd->out_state = obj->class->state ? obj->class->state(obj) : 0;
	cmd->out_user_data = READ_ONCE(obj->user_data);
	dapx_object_put(obj);
	return dapx_respond(ucmd);
}
