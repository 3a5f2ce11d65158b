// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: notifications about contexts and their objects, by generic netlink
 *
 * Many events happen in atomic context. They are queued there, and a work sends them in the
 * same order. Nothing is queued while there are no listeners.
 *
 * A notification goes to the listeners in the network namespace of the process, and to those in
 * the initial one if the device is visible there. As in a dump, only listeners of the process'
 * user and those that may see everything receive it.
 */
#include <linux/cred.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <net/sock.h>

#include "netlink.h"

/* Notifications beyond this many pending ones are dropped, and counted. */
#define DAPX_NOTICES_MAX 4096

struct dapx_notice {
	struct list_head entry;
	struct dapx_context *ctx;
	struct user_namespace *user_ns;	/* CAP_NET_ADMIN there suffices */
	bool abroad;			/* also for the initial network namespace */
	u64 time;
	u32 lost;			/* dropped before this one */
	char device[IB_DEVICE_NAME_MAX];
	struct dapx_notification what;
};

static void dapx_netlink_notify_all(struct work_struct *work);

static DECLARE_WORK(dapx_notices_work, dapx_netlink_notify_all);

static const struct genl_family *dapx_notices_family;

static LIST_HEAD(dapx_notices);
static DEFINE_SPINLOCK(dapx_notices_lock);	/* (irq) the list and all below */
static unsigned int dapx_num_notices;
static u32 dapx_lost_notices;

static bool dapx_listened_to(struct net *net)
{
	return genl_has_listeners(dapx_notices_family, net, DAPX_NETLINK_EVENTS);
}

/* If @ctx was attached, it is not detached yet, so its device exists. Called in any context. */
void dapx_netlink_notify(struct dapx_context *ctx, const struct dapx_notification *what)
{
	struct dapx_notice *notice;
	struct ib_device *ibdev;
	unsigned long flags;
	bool abroad;

	/* Acquire: if @attached is set, so is ctx->dev. */
	if (!smp_load_acquire(&ctx->attached))
		return;
	ibdev = ctx->dev->ibdev;
	abroad = !net_eq(ctx->net, &init_net) && rdma_dev_access_netns(ibdev, &init_net);
	if (!dapx_listened_to(ctx->net) && !(abroad && dapx_listened_to(&init_net)))
		return;

	notice = kmalloc(sizeof(*notice), GFP_ATOMIC | __GFP_NOWARN);
	if (notice) {
		notice->ctx = ctx;
		notice->user_ns = get_user_ns(read_pnet(&ibdev->coredev.rdma_net)->user_ns);
		notice->abroad = abroad;
		notice->time = ktime_get_ns();
		notice->what = *what;
		strscpy(notice->device, ctx->dev->name, sizeof(notice->device));
		dapx_context_get(ctx);
	}
	spin_lock_irqsave(&dapx_notices_lock, flags);
	if (notice && dapx_num_notices < DAPX_NOTICES_MAX) {
		notice->lost = dapx_lost_notices;
		dapx_lost_notices = 0;
		dapx_num_notices++;
		list_add_tail(&notice->entry, &dapx_notices);
		notice = NULL;
		queue_work(dapx_wq, &dapx_notices_work);
	} else {
		dapx_lost_notices++;
	}
	spin_unlock_irqrestore(&dapx_notices_lock, flags);
	if (notice) {
		/* Cannot be the last reference, since the caller has one. */
		put_user_ns(notice->user_ns);
		dapx_context_put(ctx);
		kfree(notice);
	}
}

static int dapx_notice_put_what(const struct dapx_notice *notice, struct sk_buff *skb)
{
	const struct dapx_notification *what = &notice->what;
	u32 type = 0;

	switch (what->event) {
	case DAPX_GENL_EVENT_CONTEXT_ENDING:
		if (nla_put_u32(skb, DAPX_OBJECT_ATTR_CAUSE, what->state))
			return -EMSGSIZE;
		fallthrough;
	case DAPX_GENL_EVENT_CONTEXT_NEW:
		return nla_put_u32(skb, DAPX_OBJECT_ATTR_OBJECTS, what->number);
	case DAPX_GENL_EVENT_CONTEXT_ENDED:
		return nla_put_u64_64bit(skb, DAPX_OBJECT_ATTR_DURATION, what->large,
					 DAPX_OBJECT_ATTR_PAD);
	case DAPX_GENL_EVENT_EP_STATE:
		type = DAPX_OBJECT_EP;
		if (nla_put_u32(skb, DAPX_OBJECT_ATTR_STATE, what->state))
			return -EMSGSIZE;
		break;
	case DAPX_GENL_EVENT_EP_GONE:
		type = DAPX_OBJECT_EP;
		break;
	case DAPX_GENL_EVENT_RMR_REVOKED:
		type = DAPX_OBJECT_RMR;
		if (nla_put_u32(skb, DAPX_OBJECT_ATTR_MR, what->number) ||
		    nla_put_u64_64bit(skb, DAPX_OBJECT_ATTR_LENGTH, what->large,
				      DAPX_OBJECT_ATTR_PAD))
			return -EMSGSIZE;
		break;
	case DAPX_GENL_EVENT_DOMAIN_NEW:
	case DAPX_GENL_EVENT_DOMAIN_GONE:
		return nla_put_u32(skb, DAPX_OBJECT_ATTR_DOMAIN, what->number);
	}
	if (nla_put_u32(skb, DAPX_OBJECT_ATTR_TYPE, type) ||
	    nla_put_u32(skb, DAPX_OBJECT_ATTR_HANDLE, what->handle))
		return -EMSGSIZE;
	return 0;
}

static struct sk_buff *dapx_notice_message(const struct dapx_notice *notice)
{
	const struct dapx_context *ctx = notice->ctx;
	struct sk_buff *skb;
	void *header;

	skb = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!skb)
		return NULL;
	header = genlmsg_put(skb, 0, 0, dapx_notices_family, 0, DAPX_GENL_CMD_EVENT);
	if (!header ||
	    nla_put_u32(skb, DAPX_OBJECT_ATTR_EVENT, notice->what.event) ||
	    nla_put_u64_64bit(skb, DAPX_OBJECT_ATTR_TIME, notice->time, DAPX_OBJECT_ATTR_PAD) ||
	    (notice->lost && nla_put_u32(skb, DAPX_OBJECT_ATTR_LOST, notice->lost)) ||
	    nla_put_u32(skb, DAPX_OBJECT_ATTR_CONTEXT, ctx->id) ||
	    nla_put_string(skb, DAPX_OBJECT_ATTR_DEVICE, notice->device) ||
	    nla_put_u32(skb, DAPX_OBJECT_ATTR_PID, pid_nr(ctx->pid)) ||
	    nla_put_string(skb, DAPX_OBJECT_ATTR_NAME, ctx->comm) ||
	    dapx_notice_put_what(notice, skb)) {
		nlmsg_free(skb);
		return NULL;
	}
	genlmsg_end(skb, header);
	return skb;
}

/* Check the opener of the socket: current is a kernel thread, which has all capabilities. */
static int dapx_notice_hidden(struct sock *sk, struct sk_buff *skb, void *data)
{
	const struct dapx_notice *notice = data;

	return !uid_eq(sk->sk_uid, dapx_context_owner(notice->ctx)) &&
	       !sk_ns_capable(sk, notice->user_ns, CAP_NET_ADMIN);
}

static void dapx_notice_send(struct dapx_notice *notice, struct net *net)
{
	struct sk_buff *skb;

	if (!dapx_listened_to(net))
		return;
	skb = dapx_notice_message(notice);
	/*
	 * Without memory the notification is lost. A listener that is too slow gets an error
	 * from recvmsg().
	 */
	if (skb)
		netlink_broadcast_filtered(net->genl_sock, skb, 0,
					   dapx_notices_family->mcgrp_offset + DAPX_NETLINK_EVENTS,
					   GFP_KERNEL, dapx_notice_hidden, notice);
}

static struct dapx_notice *dapx_notice_next(void)
{
	struct dapx_notice *notice;

	spin_lock_irq(&dapx_notices_lock);
	notice = list_first_entry_or_null(&dapx_notices, struct dapx_notice, entry);
	if (notice) {
		list_del(&notice->entry);
		dapx_num_notices--;
	}
	spin_unlock_irq(&dapx_notices_lock);
	return notice;
}

static void dapx_netlink_notify_all(struct work_struct *work)
{
	struct dapx_notice *notice;

	while ((notice = dapx_notice_next())) {
		dapx_notice_send(notice, notice->ctx->net);
		if (notice->abroad)
			dapx_notice_send(notice, &init_net);
		put_user_ns(notice->user_ns);
		dapx_context_put(notice->ctx);
		kfree(notice);
		cond_resched();
	}
}

/* Called before any context exists. */
void dapx_netlink_events_init(const struct genl_family *family)
{
	dapx_notices_family = family;
}

/* No context is left, so no notification is queued any more. */
void dapx_netlink_events_exit(void)
{
	flush_work(&dapx_notices_work);
}
