// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: which XRC domains there are, and what is in them, by generic netlink
 *
 * A dump is as many messages as it takes. Between two of them nothing is held, and what
 * is remembered are numbers, which stay in order whatever comes and goes: so what is
 * there all the time is told once, and nothing is looked for that may be gone.
 */
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/limits.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include <net/sock.h>

#include "dapx_private.h"

/* Where to go on; in cb->ctx. */
struct dapx_netlink_cursor {
	u32 domain;			/* id; all before it are done */
	bool begun;			/* the head of this one was told ... */
	unsigned int list;		/* ... and its lists before this ... */
	u64 item;			/* ... and of this all up to this serial number */
};

struct dapx_netlink_dump {
	struct sk_buff *skb;
	struct netlink_callback *cb;
	struct dapx_netlink_cursor *cursor;
	struct pid_namespace *pid_ns;
	kuid_t user;			/* who asks; its own things are shown */
	char *path;			/* room for one */
	struct dapx_xrc_domain *domain;	/* with its lock */
	bool all;			/* not only what is the user's own */
};

static bool dapx_netlink_shows(const struct dapx_netlink_dump *dump,
			       const struct dapx_context *ctx)
{
	return dump->all || uid_eq(dapx_context_owner(ctx), dump->user);
}

/*
 * The right to see all is asked of those who own the device's network namespace: in a
 * namespace that one has made one is root, and the devices of the first one are seen in
 * each (unless "rdma system" says otherwise).
 */
static bool dapx_netlink_visible(struct dapx_netlink_dump *dump)
{
	struct dapx_xrcd *xrcd;
	struct ib_device *ibdev;

	lockdep_assert_held(&dump->domain->lock);
	/* While somebody has it open, its device and its path are there. */
	if (list_empty(&dump->domain->xrcds))
		return false;
	ibdev = dump->domain->dev->ibdev;
	if (!rdma_dev_access_netns(ibdev, sock_net(dump->cb->skb->sk)))
		return false;
	dump->all = netlink_ns_capable(dump->cb->skb,
				       read_pnet(&ibdev->coredev.rdma_net)->user_ns,
				       CAP_NET_ADMIN);
	list_for_each_entry(xrcd, &dump->domain->xrcds, entry)
		if (dapx_netlink_shows(dump, xrcd->obj.ctx))
			return true;
	return false;
}

/* 0: of a namespace of which the reader does not know. */
static u32 dapx_netlink_pid(const struct dapx_netlink_dump *dump, const struct dapx_context *ctx)
{
	return pid_nr_ns(ctx->pid, dump->pid_ns);
}

static bool dapx_netlink_name(const struct dapx_context *ctx, char name[TASK_COMM_LEN])
{
	struct task_struct *task;

	task = get_pid_task(ctx->pid, PIDTYPE_TGID);
	if (!task)
		return false;
	__get_task_comm(name, TASK_COMM_LEN, task);
	put_task_struct(task);
	return true;
}

static int dapx_netlink_put_opens(struct dapx_netlink_dump *dump)
{
	struct sk_buff *skb = dump->skb;
	char name[TASK_COMM_LEN];
	struct dapx_context *ctx;
	struct dapx_xrcd *xrcd;
	struct nlattr *nest;
	u32 pid;

	list_for_each_entry(xrcd, &dump->domain->xrcds, entry) {
		ctx = xrcd->obj.ctx;
		if (xrcd->serial <= dump->cursor->item || !dapx_netlink_shows(dump, ctx))
			continue;
		nest = nla_nest_start(skb, DAPX_XRCD_ATTR_OPEN);
		if (!nest)
			return -EMSGSIZE;
		pid = dapx_netlink_pid(dump, ctx);
		if (nla_put_u32(skb, DAPX_XRCD_OPEN_PID, pid) ||
		    (pid && dapx_netlink_name(ctx, name) &&
		     nla_put_string(skb, DAPX_XRCD_OPEN_NAME, name))) {
			nla_nest_cancel(skb, nest);
			return -EMSGSIZE;
		}
		nla_nest_end(skb, nest);
		dump->cursor->item = xrcd->serial;
	}
	return 0;
}

static int dapx_netlink_put_srqs(struct dapx_netlink_dump *dump)
{
	struct sk_buff *skb = dump->skb;
	struct dapx_srq *srq;
	struct nlattr *nest;

	list_for_each_entry(srq, &dump->domain->srqs, entry) {
		if (srq->serial <= dump->cursor->item || !dapx_netlink_shows(dump, srq->obj.ctx))
			continue;
		nest = nla_nest_start(skb, DAPX_XRCD_ATTR_SRQ);
		if (!nest)
			return -EMSGSIZE;
		if (nla_put_u32(skb, DAPX_XRCD_SRQ_NUMBER, srq->number) ||
		    nla_put_u32(skb, DAPX_XRCD_SRQ_PID, dapx_netlink_pid(dump, srq->obj.ctx))) {
			nla_nest_cancel(skb, nest);
			return -EMSGSIZE;
		}
		nla_nest_end(skb, nest);
		dump->cursor->item = srq->serial;
	}
	return 0;
}

static int dapx_netlink_put_qp(const struct dapx_xrc_qp_info *info, void *context)
{
	struct dapx_netlink_dump *dump = context;
	struct sk_buff *skb = dump->skb;
	struct nlattr *nest;

	if (!dump->all && !info->own)
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

static int dapx_netlink_put_qps(struct dapx_netlink_dump *dump)
{
	return dapx_xrc_qps_each(dump->domain, dump->cursor->item, dump->user,
				 dapx_netlink_put_qp, dump);
}

static int dapx_netlink_count_qp(const struct dapx_xrc_qp_info *info, void *context)
{
	++*(u32 *)context;
	return 0;
}

static u32 dapx_netlink_count(const struct list_head *list)
{
	struct list_head *entry;
	u32 count = 0;

	list_for_each(entry, list)
		count++;
	return count;
}

/* What is told of a domain once. */
static int dapx_netlink_put_head(struct dapx_netlink_dump *dump)
{
	struct dapx_xrc_domain *domain = dump->domain;
	struct sk_buff *skb = dump->skb;
	const char *path;
	u32 qps = 0;

	if (domain->path.mnt) {
		path = d_path(&domain->path, dump->path, PATH_MAX);
		if (nla_put_string(skb, DAPX_XRCD_ATTR_PATH, IS_ERR(path) ? "" : path))
			return -EMSGSIZE;
	}
	dapx_xrc_qps_each(domain, 0, dump->user, dapx_netlink_count_qp, &qps);
	if (nla_put_string(skb, DAPX_XRCD_ATTR_DEVICE, dev_name(&domain->dev->ibdev->dev)) ||
	    nla_put_u32(skb, DAPX_XRCD_ATTR_OPENS, dapx_netlink_count(&domain->xrcds)) ||
	    nla_put_u32(skb, DAPX_XRCD_ATTR_SRQS, dapx_netlink_count(&domain->srqs)) ||
	    nla_put_u32(skb, DAPX_XRCD_ATTR_QPS, qps) ||
	    (!dump->all && nla_put_flag(skb, DAPX_XRCD_ATTR_PARTIAL)))
		return -EMSGSIZE;
	return 0;
}

static int (*const dapx_netlink_lists[])(struct dapx_netlink_dump *dump) = {
	dapx_netlink_put_opens,
	dapx_netlink_put_srqs,
	dapx_netlink_put_qps,
};

static int dapx_netlink_put_lists(struct dapx_netlink_dump *dump)
{
	struct dapx_netlink_cursor *cursor = dump->cursor;
	int ret;

	for (; cursor->list < ARRAY_SIZE(dapx_netlink_lists); cursor->list++, cursor->item = 0) {
		ret = dapx_netlink_lists[cursor->list](dump);
		if (ret)
			return ret;
	}
	return 0;
}

/* One message of a domain, with as much of it as there is room for; -EMSGSIZE: not all. */
static int dapx_netlink_put_domain(struct dapx_netlink_dump *dump, const struct genl_family *family)
{
	struct netlink_callback *cb = dump->cb;
	struct sk_buff *skb = dump->skb;
	void *header;
	int ret;

	header = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, family,
			     NLM_F_MULTI, DAPX_GENL_CMD_XRCD_GET);
	if (!header)
		return -EMSGSIZE;
	genl_dump_check_consistent(cb, header);
	ret = nla_put_u32(skb, DAPX_XRCD_ATTR_ID, dump->domain->id);
	if (!ret && !dump->cursor->begun)
		ret = dapx_netlink_put_head(dump);
	if (ret) {
		genlmsg_cancel(skb, header);
		return ret;
	}
	dump->cursor->begun = true;
	ret = dapx_netlink_put_lists(dump);
	genlmsg_end(skb, header);
	return ret;
}

static int dapx_netlink_start(struct netlink_callback *cb)
{
	/* A head with the longest path finds room in an empty message. */
	cb->min_dump_alloc = PATH_MAX + 512;
	return 0;
}

static int dapx_netlink_dump(struct sk_buff *skb, struct netlink_callback *cb);

static const struct genl_ops dapx_netlink_ops[] = {
	{
		.cmd = DAPX_GENL_CMD_XRCD_GET,
		.start = dapx_netlink_start,
		.dumpit = dapx_netlink_dump,
	},
};

/* No alias by which asking would load the module: to look is not to use. */
static struct genl_family dapx_netlink_family __ro_after_init = {
	.name = DAPX_GENL_NAME,
	.version = DAPX_GENL_VERSION,
	.module = THIS_MODULE,
	.netnsok = true,
	.parallel_ops = true,		/* a domain that is waited for holds up nobody else */
	.ops = dapx_netlink_ops,
	.n_ops = ARRAY_SIZE(dapx_netlink_ops),
};

static int dapx_netlink_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dapx_netlink_cursor *cursor = (struct dapx_netlink_cursor *)cb->ctx;
	struct dapx_netlink_dump dump = {
		.skb = skb,
		.cb = cb,
		.cursor = cursor,
		.pid_ns = task_active_pid_ns(current),
		.user = INVALID_UID,
	};
	int ret = 0;

	BUILD_BUG_ON(sizeof(*cursor) > sizeof(cb->ctx));
	/* As with the capability: of who asks, and of who opened the socket. */
	if (uid_eq(NETLINK_CB(cb->skb).sk->sk_uid, current_euid()))
		dump.user = current_euid();
	dump.path = kmalloc(PATH_MAX, GFP_KERNEL);
	if (!dump.path)
		return -ENOMEM;

	/* Not 0, which is none. */
	cb->seq = (u32)dapx_xrc_changes() ?: 1;
	while (!ret) {
		dump.domain = dapx_xrc_domain_next(cursor->domain);
		if (!dump.domain)
			break;
		if (dump.domain->id != cursor->domain)
			*cursor = (struct dapx_netlink_cursor) { .domain = dump.domain->id };
		mutex_lock(&dump.domain->lock);
		if (dapx_netlink_visible(&dump))
			ret = dapx_netlink_put_domain(&dump, &dapx_netlink_family);
		mutex_unlock(&dump.domain->lock);
		if (!ret)
			*cursor = (struct dapx_netlink_cursor) { .domain = dump.domain->id + 1 };
		dapx_xrc_domain_put(dump.domain);
		cond_resched();
	}
	kfree(dump.path);
	/* Without room left: the rest comes in the next message. */
	return skb->len ?: ret;
}

int dapx_netlink_init(void)
{
	return genl_register_family(&dapx_netlink_family);
}

void dapx_netlink_exit(void)
{
	genl_unregister_family(&dapx_netlink_family);
}
