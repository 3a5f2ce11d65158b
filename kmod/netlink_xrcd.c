// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: dumps of XRC domains and of their contents, by generic netlink
 *
 * A dump takes as many messages as it needs, and holds nothing between two of them. It
 * remembers serial numbers, whose order does not change when entries come and go. So an entry
 * that exists all the time is reported once, and the dump never refers to one that may be gone.
 */
#include <linux/dcache.h>
#include <linux/fs_struct.h>
#include <linux/limits.h>
#include <linux/mount.h>
#include <linux/slab.h>

#include "netlink.h"
#include "srq.h"
#include "xrc/xrc.h"

/* Where to continue; in cb->ctx. */
struct dapx_xrcd_cursor {
	u32 domain;			/* id; all before it are done */
	bool begun;			/* its head was sent ... */
	unsigned int list;		/* ... and its lists before this one ... */
	u64 item;			/* ... and of this list all up to this serial */
};

struct dapx_xrcd_dump {
	struct dapx_netlink_reader reader;
	struct sk_buff *skb;
	struct netlink_callback *cb;
	struct dapx_xrcd_cursor *cursor;
	char *path;			/* buffer of PATH_MAX bytes */
	struct dapx_xrc_domain *domain;	/* its lock is held */
};

static bool dapx_xrcd_visible(struct dapx_xrcd_dump *dump)
{
	struct dapx_xrcd *xrcd;

	lockdep_assert_held(&dump->domain->lock);
	/* The device and the path are valid only while a context has the domain open. */
	if (list_empty(&dump->domain->xrcds) ||
	    !dapx_netlink_sees_device(&dump->reader, dump->domain->dev->ibdev))
		return false;
	list_for_each_entry(xrcd, &dump->domain->xrcds, entry)
		if (dapx_netlink_sees(&dump->reader, xrcd->obj.ctx))
			return true;
	return false;
}

static int dapx_xrcd_put_opens(struct dapx_xrcd_dump *dump)
{
	struct sk_buff *skb = dump->skb;
	struct dapx_context *ctx;
	struct dapx_xrcd *xrcd;
	struct nlattr *nest;

	list_for_each_entry(xrcd, &dump->domain->xrcds, entry) {
		ctx = xrcd->obj.ctx;
		if (xrcd->serial <= dump->cursor->item || !dapx_netlink_sees(&dump->reader, ctx))
			continue;
		nest = nla_nest_start(skb, DAPX_XRCD_ATTR_OPEN);
		if (!nest)
			return -EMSGSIZE;
		if (dapx_netlink_put_process(&dump->reader, skb, ctx, DAPX_XRCD_OPEN_PID,
					     DAPX_XRCD_OPEN_NAME)) {
			nla_nest_cancel(skb, nest);
			return -EMSGSIZE;
		}
		nla_nest_end(skb, nest);
		dump->cursor->item = xrcd->serial;
	}
	return 0;
}

static int dapx_xrcd_put_srqs(struct dapx_xrcd_dump *dump)
{
	struct sk_buff *skb = dump->skb;
	struct dapx_context *ctx;
	struct dapx_srq *srq;
	struct nlattr *nest;

	list_for_each_entry(srq, &dump->domain->srqs, entry) {
		ctx = srq->obj.ctx;
		if (srq->serial <= dump->cursor->item || !dapx_netlink_sees(&dump->reader, ctx))
			continue;
		nest = nla_nest_start(skb, DAPX_XRCD_ATTR_SRQ);
		if (!nest)
			return -EMSGSIZE;
		if (nla_put_u32(skb, DAPX_XRCD_SRQ_NUMBER, srq->number) ||
		    nla_put_u32(skb, DAPX_XRCD_SRQ_PID, dapx_netlink_pid(&dump->reader, ctx))) {
			nla_nest_cancel(skb, nest);
			return -EMSGSIZE;
		}
		nla_nest_end(skb, nest);
		dump->cursor->item = srq->serial;
	}
	return 0;
}

static int dapx_xrcd_put_qp(const struct dapx_xrc_qp_info *info, void *context)
{
	struct dapx_xrcd_dump *dump = context;
	struct sk_buff *skb = dump->skb;
	struct nlattr *nest;

	if (!dump->reader.all && !info->own)
		return 0;
	nest = nla_nest_start(skb, DAPX_XRCD_ATTR_QP);
	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u32(skb, DAPX_XRCD_QP_NUMBER, info->qp_num) ||
	    nla_put_u32(skb, DAPX_XRCD_QP_STATE, info->state) ||
	    nla_put_u32(skb, DAPX_XRCD_QP_REGISTRATIONS, info->registrations) ||
	    nla_put_u64_64bit(skb, DAPX_XRCD_QP_MESSAGES, info->messages, DAPX_XRCD_QP_PAD) ||
	    nla_put_u64_64bit(skb, DAPX_XRCD_QP_NOT_READY, info->not_ready, DAPX_XRCD_QP_PAD)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	dump->cursor->item = info->serial;
	return 0;
}

static int dapx_xrcd_put_qps(struct dapx_xrcd_dump *dump)
{
	return dapx_xrc_qps_each(dump->domain, dump->cursor->item, dump->reader.user,
				 dapx_xrcd_put_qp, dump);
}

static int dapx_xrcd_count_qp(const struct dapx_xrc_qp_info *info, void *context)
{
	++*(u32 *)context;
	return 0;
}

static u32 dapx_xrcd_count(const struct list_head *list)
{
	struct list_head *entry;
	u32 count = 0;

	list_for_each(entry, list)
		count++;
	return count;
}

/* Hides paths in another mount namespace or outside the reader's root. A memfd has no path. */
static bool dapx_xrcd_shows_path(const struct dapx_xrcd_dump *dump)
{
	const struct path *path = &dump->domain->path;
	struct path root;
	bool shows;

	if (dump->reader.all || (path->dentry->d_op && path->dentry->d_op->d_dname))
		return true;
	get_fs_root(current->fs, &root);
	shows = path_is_under(path, &root);
	path_put(&root);
	return shows;
}

/* The attributes that are sent once for a domain. */
static int dapx_xrcd_put_head(struct dapx_xrcd_dump *dump)
{
	struct dapx_xrc_domain *domain = dump->domain;
	struct sk_buff *skb = dump->skb;
	const char *path;
	u32 qps = 0;

	if (domain->path.mnt) {
		path = dapx_xrcd_shows_path(dump) ?
		       d_path(&domain->path, dump->path, PATH_MAX) : NULL;
		if (nla_put_string(skb, DAPX_XRCD_ATTR_PATH, IS_ERR_OR_NULL(path) ? "" : path))
			return -EMSGSIZE;
	}
	dapx_xrc_qps_each(domain, 0, dump->reader.user, dapx_xrcd_count_qp, &qps);
	if (nla_put_string(skb, DAPX_XRCD_ATTR_DEVICE, domain->dev->name) ||
	    nla_put_u32(skb, DAPX_XRCD_ATTR_OPENS, dapx_xrcd_count(&domain->xrcds)) ||
	    nla_put_u32(skb, DAPX_XRCD_ATTR_SRQS, dapx_xrcd_count(&domain->srqs)) ||
	    nla_put_u32(skb, DAPX_XRCD_ATTR_QPS, qps) ||
	    (!dump->reader.all && nla_put_flag(skb, DAPX_XRCD_ATTR_PARTIAL)))
		return -EMSGSIZE;
	return 0;
}

static int (*const dapx_xrcd_lists[])(struct dapx_xrcd_dump *dump) = {
	dapx_xrcd_put_opens,
	dapx_xrcd_put_srqs,
	dapx_xrcd_put_qps,
};

static int dapx_xrcd_put_lists(struct dapx_xrcd_dump *dump)
{
	struct dapx_xrcd_cursor *cursor = dump->cursor;
	int ret;

	for (; cursor->list < ARRAY_SIZE(dapx_xrcd_lists); cursor->list++, cursor->item = 0) {
		ret = dapx_xrcd_lists[cursor->list](dump);
		if (ret)
			return ret;
	}
	return 0;
}

/* Writes one message with as much of a domain as fits. -EMSGSIZE: some of it is left. */
static int dapx_xrcd_put_domain(struct dapx_xrcd_dump *dump)
{
	struct netlink_callback *cb = dump->cb;
	struct sk_buff *skb = dump->skb;
	void *header;
	int ret;

	header = dapx_netlink_put_header(skb, cb, DAPX_GENL_CMD_XRCD_GET);
	if (!header)
		return -EMSGSIZE;
	ret = nla_put_u32(skb, DAPX_XRCD_ATTR_ID, dump->domain->id);
	if (!ret && !dump->cursor->begun)
		ret = dapx_xrcd_put_head(dump);
	if (ret) {
		genlmsg_cancel(skb, header);
		return ret;
	}
	dump->cursor->begun = true;
	ret = dapx_xrcd_put_lists(dump);
	genlmsg_end(skb, header);
	return ret;
}

int dapx_netlink_xrcd_start(struct netlink_callback *cb)
{
	/* An empty message has room for a head with the longest path. */
	cb->min_dump_alloc = PATH_MAX + 512;
	return 0;
}

int dapx_netlink_xrcd_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dapx_xrcd_cursor *cursor = (struct dapx_xrcd_cursor *)cb->ctx;
	struct dapx_xrcd_dump dump = {
		.skb = skb,
		.cb = cb,
		.cursor = cursor,
	};
	int ret = 0;

	BUILD_BUG_ON(sizeof(*cursor) > sizeof(cb->ctx));
	dapx_netlink_reader_init(&dump.reader, cb);
	dump.path = kmalloc(PATH_MAX, GFP_KERNEL);
	if (!dump.path)
		return -ENOMEM;

	/* Avoid 0, which means no sequence number. */
	cb->seq = (u32)dapx_xrc_generation() ?: 1;
	while (!ret) {
		dump.domain = dapx_xrc_domain_next(cursor->domain);
		if (!dump.domain)
			break;
		if (dump.domain->id != cursor->domain)
			*cursor = (struct dapx_xrcd_cursor) { .domain = dump.domain->id };
		mutex_lock(&dump.domain->lock);
		if (dapx_xrcd_visible(&dump))
			ret = dapx_xrcd_put_domain(&dump);
		mutex_unlock(&dump.domain->lock);
		if (!ret)
			*cursor = (struct dapx_xrcd_cursor) { .domain = dump.domain->id + 1 };
		dapx_xrc_domain_put(dump.domain);
		cond_resched();
	}
	kfree(dump.path);
	/* If there is no room left, the rest comes in the next message. */
	return skb->len ?: ret;
}
