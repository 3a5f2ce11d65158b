// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: handles and the lifetime of what they name
 */
#include <linux/slab.h>

#include "dapx_private.h"

/*
 * A handle is reserved first and published when nothing can fail any more, so
 * that nobody sees a half-made object.
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
	ret = dapx_context_charge(ctx, obj);
	if (ret)
		goto err_free;
	kref_init(&obj->kref);
	mutex_init(&obj->mutex);
	obj->class = class;
	ret = xa_alloc_cyclic(&ctx->objects, &obj->handle, NULL, xa_limit_31b,
			      &ctx->next_object, GFP_KERNEL_ACCOUNT);
	if (ret < 0)
		goto err_uncharge;
	return obj;

err_uncharge:
	dapx_context_uncharge(ctx, obj);
err_free:
	kfree(obj);
	return ERR_PTR(ret);
}

void dapx_object_publish(struct dapx_object *obj)
{
	/* Cannot fail: the slot is reserved. */
	xa_store(&obj->ctx->objects, obj->handle, obj, GFP_KERNEL);
}

/* Undoes dapx_object_alloc(); the caller has undone the rest. */
void dapx_object_abort(struct dapx_object *obj)
{
	xa_erase(&obj->ctx->objects, obj->handle);
	dapx_context_uncharge(obj->ctx, obj);
	dapx_object_put(obj);
}

/* An object that user space does not name, kept by the one that it was made for. */
void dapx_object_make_internal(struct dapx_object *obj)
{
	xa_erase(&obj->ctx->objects, obj->handle);
	dapx_context_uncharge(obj->ctx, obj);
	obj->handle = 0;
}

static bool dapx_object_is(const struct dapx_object *obj, enum dapx_object_type type)
{
	return obj && (type == DAPX_OBJECT_ANY || obj->class->type == type);
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

/* The first behind *@handle, which becomes its handle; NULL after the last. */
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

/* As dapx_object_get(), for a pointer that forbids to free the object. */
struct dapx_object *dapx_object_use(struct dapx_context *ctx, u32 handle,
				    enum dapx_object_type type)
{
	struct dapx_object *obj;

	xa_lock(&ctx->objects);
	obj = xa_load(&ctx->objects, handle);
	if (dapx_object_is(obj, type)) {
		kref_get(&obj->kref);
		obj->users++;
	} else {
		obj = ERR_PTR(-ENOENT);
	}
	xa_unlock(&ctx->objects);
	return obj;
}

void dapx_object_unuse(struct dapx_object *obj)
{
	xa_lock(&obj->ctx->objects);
	obj->users--;
	xa_unlock(&obj->ctx->objects);
	dapx_object_put(obj);
}

/*
 * The last one's place in the tree is kept. Handles are given in turn: the next object
 * is its neighbour, and finds the tree's nodes there instead of having them made anew.
 */
static void dapx_object_release_id(struct dapx_context *ctx, struct xa_state *xas)
{
	/* As dapx_object_alloc() reserves a place. */
	xas_store(xas, XA_ZERO_ENTRY);
	__xa_erase(&ctx->objects, ctx->vacant);
	ctx->vacant = xas->xa_index;
}

/*
 * Takes the handle away. Of several callers one gets 0; it must call destroy()
 * and put the reference that the xarray had. Users forbid it, unless @force: then
 * somebody is about to find out that the object's state has no use for him.
 */
int dapx_object_unpublish(struct dapx_object *obj, bool force)
{
	struct dapx_context *ctx = obj->ctx;
	XA_STATE(xas, &ctx->objects, obj->handle);
	int ret = 0;

	xas_lock(&xas);
	if (xas_load(&xas) != obj)
		ret = -ENOENT;
	else if (obj->users && !force)
		ret = -EBUSY;
	else
		dapx_object_release_id(ctx, &xas);
	xas_unlock(&xas);
	if (!ret)
		dapx_context_uncharge(ctx, obj);
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

/* Teardown: all of a class, used or not. No command is in flight. */
void dapx_objects_destroy(struct dapx_context *ctx, enum dapx_object_type type)
{
	struct dapx_object *obj;
	unsigned long handle;

	xa_for_each(&ctx->objects, handle, obj) {
		if (obj->class->type != type)
			continue;
		xa_erase(&ctx->objects, handle);
		dapx_context_uncharge(ctx, obj);
		obj->class->destroy(obj);
		dapx_object_put(obj);
		cond_resched();
	}
}

/*
 * The object that @cmd frees, with a reference: that of the xarray, from which it was
 * taken, or one more if its class has a way of its own.
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
		dapx_object_release_id(ctx, &xas);
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
		dapx_context_uncharge(ucmd->ctx, obj);
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
