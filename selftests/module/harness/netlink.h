/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Generic netlink: asking, and the attributes of answers.
 */
#ifndef DAPX_HARNESS_NETLINK_H
#define DAPX_HARNESS_NETLINK_H

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <string.h>

#include "dapx.h"

int ask(int fd, __u16 family, __u16 flags, __u8 cmd, const char *name);

static inline const struct nlattr *next_attr(const struct nlattr *attr)
{
	return (const void *)attr + NLA_ALIGN(attr->nla_len);
}

#define for_each_attr(attr, from, end)					\
	for (attr = (const void *)(from);				\
	     (const void *)attr < (const void *)(end);			\
	     attr = next_attr(attr))

static inline const void *value(const struct nlattr *attr)
{
	return (const void *)attr + NLA_HDRLEN;
}

static inline __u32 number(const struct nlattr *attr)
{
	return *(const __u32 *)value(attr);
}

static inline __u64 large(const struct nlattr *attr)
{
	__u64 n;

	memcpy(&n, value(attr), sizeof(n));
	return n;
}

int family_of(int fd);
int nl_socket(void);

/* ---- contexts, objects, events ---- */

/* One message: numbers and flags; the rest by name. */
struct thing {
	bool has[DAPX_OBJECT_ATTR_DURATION + 1];
	__u64 is[DAPX_OBJECT_ATTR_DURATION + 1];
	char device[DAPX_DEVICE_NAME_MAX];
	char name[16];
	struct __kernel_sockaddr_storage local, remote;
};

int thing_read(struct thing *thing, const struct nlmsghdr *header);

#define EXPECT_IS(expected, thing, attr)				\
	({								\
		EXPECT_TRUE((thing)->has[DAPX_OBJECT_ATTR_##attr])	\
			TH_LOG("no " #attr);				\
		EXPECT_EQ((__u64)(expected),				\
			  (thing)->is[DAPX_OBJECT_ATTR_##attr]);	\
	})

#endif /* DAPX_HARNESS_NETLINK_H */
