/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dapx: what the generic netlink files share
 */
#ifndef _DAPX_NETLINK_H
#define _DAPX_NETLINK_H

#include <linux/pid_namespace.h>
#include <net/genetlink.h>

#include "dapx_private.h"

extern struct genl_family dapx_netlink_family;

/* Multicast groups. */
#define DAPX_NETLINK_EVENTS 0

/* The process that reads. */
struct dapx_netlink_reader {
	struct sk_buff *request;
	struct pid_namespace *pid_ns;
	kuid_t user;			/* sees its own contexts */
	bool all;			/* sees all contexts of the device checked last */
};

void dapx_netlink_reader_init(struct dapx_netlink_reader *reader,
			      const struct netlink_callback *cb);
bool dapx_netlink_sees_device(struct dapx_netlink_reader *reader, struct ib_device *ibdev);
bool dapx_netlink_sees_net(struct dapx_netlink_reader *reader, struct net *net);
bool dapx_netlink_sees(const struct dapx_netlink_reader *reader, const struct dapx_context *ctx);
u32 dapx_netlink_pid(const struct dapx_netlink_reader *reader, const struct dapx_context *ctx);
void *dapx_netlink_put_header(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd);
int dapx_netlink_put_process(const struct dapx_netlink_reader *reader, struct sk_buff *skb,
			     const struct dapx_context *ctx, int pid_attr, int name_attr);

void dapx_netlink_events_init(const struct genl_family *family);
void dapx_netlink_events_exit(void);
int dapx_netlink_xrcd_start(struct netlink_callback *cb);
int dapx_netlink_xrcd_dump(struct sk_buff *skb, struct netlink_callback *cb);
int dapx_netlink_context_dump(struct sk_buff *skb, struct netlink_callback *cb);
int dapx_netlink_object_dump(struct sk_buff *skb, struct netlink_callback *cb);

#endif /* _DAPX_NETLINK_H */
