// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: the generic netlink family, and which process sees what
 */
#include <linux/cred.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <net/sock.h>

#include "netlink.h"

void dapx_netlink_reader_init(struct dapx_netlink_reader *reader,
			      const struct netlink_callback *cb)
{
	reader->request = cb->skb;
	reader->pid_ns = task_active_pid_ns(current);
	reader->user = INVALID_UID;
	reader->all = false;
	/* As with capabilities, both the caller and the opener of the socket count. */
	if (uid_eq(NETLINK_CB(cb->skb).sk->sk_uid, current_euid()))
		reader->user = current_euid();
}

/*
 * To see everything, a reader needs CAP_NET_ADMIN in the user namespace that owns the network
 * namespace of the device. The reader's own namespace does not count: any process is root in a
 * namespace that it creates, and sees the devices of the initial network namespace there
 * (unless the mode of 'rdma system' is exclusive).
 */
bool dapx_netlink_sees_device(struct dapx_netlink_reader *reader, struct ib_device *ibdev)
{
	if (!rdma_dev_access_netns(ibdev, sock_net(reader->request->sk)))
		return false;
	reader->all = netlink_ns_capable(reader->request,
					 read_pnet(&ibdev->coredev.rdma_net)->user_ns,
					 CAP_NET_ADMIN);
	return true;
}

/* The same for a context without a device. */
bool dapx_netlink_sees_net(struct dapx_netlink_reader *reader, struct net *net)
{
	if (!net_eq(net, sock_net(reader->request->sk)))
		return false;
	reader->all = netlink_ns_capable(reader->request, net->user_ns, CAP_NET_ADMIN);
	return true;
}

/* Called after one of the two functions above has returned true. */
bool dapx_netlink_sees(const struct dapx_netlink_reader *reader, const struct dapx_context *ctx)
{
	return reader->all || uid_eq(dapx_context_owner(ctx), reader->user);
}

/* Returns 0 if the process is not in the reader's PID namespace. */
u32 dapx_netlink_pid(const struct dapx_netlink_reader *reader, const struct dapx_context *ctx)
{
	return pid_nr_ns(ctx->pid, reader->pid_ns);
}

/* Begins another message of a dump. */
void *dapx_netlink_put_header(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd)
{
	void *header = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
				   &dapx_netlink_family, NLM_F_MULTI, cmd);

	if (header)
		genl_dump_check_consistent(cb, header);
	return header;
}

int dapx_netlink_put_process(const struct dapx_netlink_reader *reader, struct sk_buff *skb,
			     const struct dapx_context *ctx, int pid_attr, int name_attr)
{
	u32 pid = dapx_netlink_pid(reader, ctx);
	char name[TASK_COMM_LEN];
	struct task_struct *task;

	if (nla_put_u32(skb, pid_attr, pid))
		return -EMSGSIZE;
	task = pid ? get_pid_task(ctx->pid, PIDTYPE_TGID) : NULL;
	if (!task)
		return 0;
	get_task_comm(name, task);
	put_task_struct(task);
	return nla_put_string(skb, name_attr, name);
}

/* No command has attributes. Reject them instead of ignoring what may get a meaning later. */
static const struct nla_policy dapx_netlink_policy[] = {
	[1] = { .type = NLA_REJECT },
};

static const struct genl_ops dapx_netlink_ops[] = {
	{
		.cmd = DAPX_GENL_CMD_XRCD_GET,
		.start = dapx_netlink_xrcd_start,
		.dumpit = dapx_netlink_xrcd_dump,
	},
	{
		.cmd = DAPX_GENL_CMD_CONTEXT_GET,
		.dumpit = dapx_netlink_context_dump,
	},
	{
		.cmd = DAPX_GENL_CMD_OBJECT_GET,
		.dumpit = dapx_netlink_object_dump,
	},
};

static const struct genl_multicast_group dapx_netlink_groups[] = {
	[DAPX_NETLINK_EVENTS] = {
		.name = DAPX_GENL_GROUP_EVENTS,
		.flags = DAPX_LISTENER_NEEDS,
	},
};

/* Has no module alias, since a query should not load the module. */
struct genl_family dapx_netlink_family __ro_after_init = {
	.name = DAPX_GENL_NAME,
	.version = DAPX_GENL_VERSION,
	.module = THIS_MODULE,
	.netnsok = true,
	.policy = dapx_netlink_policy,
	.maxattr = ARRAY_SIZE(dapx_netlink_policy) - 1,
	.parallel_ops = true,		/* waiting for a domain's lock delays no other dump */
	.ops = dapx_netlink_ops,
	.n_ops = ARRAY_SIZE(dapx_netlink_ops),
	.mcgrps = dapx_netlink_groups,
	.n_mcgrps = ARRAY_SIZE(dapx_netlink_groups),
};

int dapx_netlink_init(void)
{
	dapx_netlink_events_init(&dapx_netlink_family);
	return genl_register_family(&dapx_netlink_family);
}

void dapx_netlink_exit(void)
{
	dapx_netlink_events_exit();
	genl_unregister_family(&dapx_netlink_family);
}
