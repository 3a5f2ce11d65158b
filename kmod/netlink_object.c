// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: dumps of contexts and of their objects, by generic netlink
 *
 * Each context and each object is a message. A dump remembers the ids of the last one and holds
 * nothing between two datagrams. It waits for no lock: a context in teardown, and an object
 * that a command works on, are only reported as being in that state.
 */
#include <linux/sched.h>

#include "ep.h"
#include "netlink.h"
#include "xrc/xrc.h"

/* Where to continue; in cb->ctx. */
struct dapx_object_cursor {
	u32 context;			/* id; all before it are done */
	u32 handle;			/* the objects of @context up to it are done */
};

struct dapx_object_dump {
	struct dapx_netlink_reader reader;
	struct sk_buff *skb;
	struct netlink_callback *cb;
	char device[IB_DEVICE_NAME_MAX];	/* of the context; "": none */
};

/* Returns whether the reader sees @ctx. If so, dump->device is set. */
static bool dapx_object_dump_look(struct dapx_object_dump *dump, struct dapx_context *ctx)
{
	struct ib_device *ibdev = dapx_device_hold(ctx);
	bool visible;

	dump->device[0] = '\0';
	if (ibdev) {
		visible = dapx_netlink_sees_device(&dump->reader, ibdev);
		strscpy(dump->device, ctx->dev->name, sizeof(dump->device));
	} else {
		visible = dapx_netlink_sees_net(&dump->reader, ctx->net);
	}
	dapx_device_unhold();
	return visible && dapx_netlink_sees(&dump->reader, ctx);
}

/* The attributes of the owner, which all messages have. */
static int dapx_object_put_owner(const struct dapx_object_dump *dump,
				 const struct dapx_context *ctx)
{
	struct sk_buff *skb = dump->skb;

	if (nla_put_u32(skb, DAPX_OBJECT_ATTR_CONTEXT, ctx->id) ||
	    (dump->device[0] && nla_put_string(skb, DAPX_OBJECT_ATTR_DEVICE, dump->device)))
		return -EMSGSIZE;
	return dapx_netlink_put_process(&dump->reader, skb, ctx, DAPX_OBJECT_ATTR_PID,
					DAPX_OBJECT_ATTR_NAME);
}

static int dapx_object_put_context(struct dapx_object_dump *dump, struct dapx_context *ctx)
{
	struct user_namespace *users = sk_user_ns(NETLINK_CB(dump->cb->skb).sk);
	struct sk_buff *skb = dump->skb;
	void *header;

	header = dapx_netlink_put_header(skb, dump->cb, DAPX_GENL_CMD_CONTEXT_GET);
	if (!header)
		return -EMSGSIZE;
	if (dapx_object_put_owner(dump, ctx) ||
	    nla_put_u32(skb, DAPX_OBJECT_ATTR_USER,
			from_kuid_munged(users, dapx_context_owner(ctx))) ||
	    nla_put_u32(skb, DAPX_OBJECT_ATTR_OBJECTS, atomic_read(&ctx->num_objects)) ||
	    (READ_ONCE(ctx->dead) && nla_put_flag(skb, DAPX_OBJECT_ATTR_ENDING))) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return 0;
}

static int dapx_object_put_one(struct dapx_object_dump *dump, struct dapx_object *obj)
{
	const struct dapx_object_class *class = obj->class;
	struct sk_buff *skb = dump->skb;
	void *header;
	int ret;

	header = dapx_netlink_put_header(skb, dump->cb, DAPX_GENL_CMD_OBJECT_GET);
	if (!header)
		return -EMSGSIZE;
	ret = dapx_object_put_owner(dump, obj->ctx);
	if (!ret)
		ret = nla_put_u32(skb, DAPX_OBJECT_ATTR_TYPE, class->type);
	if (!ret)
		ret = nla_put_u32(skb, DAPX_OBJECT_ATTR_HANDLE, obj->handle);
	if (!ret)
		ret = nla_put_u32(skb, DAPX_OBJECT_ATTR_USERS, READ_ONCE(obj->users));
	if (!ret && class->state)
		ret = nla_put_u32(skb, DAPX_OBJECT_ATTR_STATE, class->state(obj));
	if (!ret && class->fill)
		ret = class->fill(obj, skb);
	/* What commands may change or remove. */
	if (!ret && class->fill_locked) {
		if (mutex_trylock(&obj->mutex)) {
			ret = class->fill_locked(obj, skb);
			mutex_unlock(&obj->mutex);
		} else {
			ret = nla_put_flag(skb, DAPX_OBJECT_ATTR_BUSY);
		}
	}
	if (ret)
		genlmsg_cancel(skb, header);
	else
		genlmsg_end(skb, header);
	return ret;
}

static int dapx_object_put_objects(struct dapx_object_dump *dump, struct dapx_context *ctx,
				   struct dapx_object_cursor *cursor)
{
	struct dapx_object *obj;
	unsigned long handle = cursor->handle;
	int ret = 0;

	/* While the semaphore is held, the device stays as well. */
	if (!down_read_trylock(&ctx->sem))
		return 0;
	while (!ret && !READ_ONCE(ctx->dead)) {
		obj = dapx_object_get_next(ctx, &handle, DAPX_OBJECT_ANY);
		if (!obj)
			break;
		ret = dapx_object_put_one(dump, obj);
		dapx_object_put(obj);
		if (!ret)
			cursor->handle = handle;
	}
	up_read(&ctx->sem);
	return ret;
}

static int dapx_object_dump(struct sk_buff *skb, struct netlink_callback *cb, bool contexts)
{
	struct dapx_object_cursor *cursor = (struct dapx_object_cursor *)cb->ctx;
	struct dapx_object_dump dump = { .skb = skb, .cb = cb };
	struct dapx_context *ctx;
	int ret = 0;

	BUILD_BUG_ON(sizeof(*cursor) > sizeof(cb->ctx));
	dapx_netlink_reader_init(&dump.reader, cb);
	while (!ret) {
		ctx = dapx_context_next(cursor->context);
		if (!ctx)
			break;
		if (ctx->id != cursor->context)
			*cursor = (struct dapx_object_cursor) { .context = ctx->id };
		if (dapx_object_dump_look(&dump, ctx))
			ret = contexts ? dapx_object_put_context(&dump, ctx) :
					 dapx_object_put_objects(&dump, ctx, cursor);
		if (!ret)
			*cursor = (struct dapx_object_cursor) { .context = ctx->id + 1 };
		dapx_context_put(ctx);
		cond_resched();
	}
	/* Without room left: the rest comes in the next datagram. */
	return skb->len ?: ret;
}

int dapx_netlink_context_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dapx_object_dump(skb, cb, true);
}

int dapx_netlink_object_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dapx_object_dump(skb, cb, false);
}
