// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <sys/socket.h>

#include "netlink.h"
#include "why.h"

struct request {
	struct nlmsghdr header;
	struct genlmsghdr genl;
	struct nlattr attr;
	char name[GENL_NAMSIZ];
};

int ask(int fd, __u16 family, __u16 flags, __u8 cmd, const char *name)
{
	struct request request = {
		.header = {
			.nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN,
			.nlmsg_type = family,
			.nlmsg_flags = NLM_F_REQUEST | flags,
		},
		.genl = { .cmd = cmd, .version = 1 },
	};

	if (name) {
		request.attr.nla_type = CTRL_ATTR_FAMILY_NAME;
		request.attr.nla_len = NLA_HDRLEN + strlen(name) + 1;
		snprintf(request.name, sizeof(request.name), "%s", name);
		request.header.nlmsg_len += NLA_ALIGN(request.attr.nla_len);
	}
	if (send(fd, &request, request.header.nlmsg_len, 0) < 0)
		return because("send: %s", strerror(errno));
	return 0;
}

int family_of(int fd)
{
	char answer[8192];
	struct nlmsghdr *header = (void *)answer;
	const struct nlattr *attr;
	ssize_t length;

	if (ask(fd, GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY, DAPX_GENL_NAME))
		return -1;
	length = recv(fd, answer, sizeof(answer), 0);
	if (length < 0 || header->nlmsg_type == NLMSG_ERROR)
		return because("no such family");
	for_each_attr(attr, NLMSG_DATA(header) + GENL_HDRLEN, answer + length)
		if (attr->nla_type == CTRL_ATTR_FAMILY_ID)
			return *(const __u16 *)value(attr);
	return because("a family without a number");
}

int nl_socket(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
}

int thing_read(struct thing *thing, const struct nlmsghdr *header)
{
	const void *end = (const void *)header + header->nlmsg_len;
	const struct nlattr *attr;
	unsigned int type;

	memset(thing, 0, sizeof(*thing));
	for_each_attr(attr, NLMSG_DATA(header) + GENL_HDRLEN, end) {
		type = attr->nla_type & NLA_TYPE_MASK;
		if (type > DAPX_OBJECT_ATTR_DURATION)
			return because("attribute %u", type);
		thing->has[type] = true;
		switch (type) {
		case DAPX_OBJECT_ATTR_DEVICE:
			snprintf(thing->device, sizeof(thing->device), "%s",
				 (const char *)value(attr));
			break;
		case DAPX_OBJECT_ATTR_NAME:
			snprintf(thing->name, sizeof(thing->name), "%s",
				 (const char *)value(attr));
			break;
		case DAPX_OBJECT_ATTR_LOCAL:
			memcpy(&thing->local, value(attr), sizeof(thing->local));
			break;
		case DAPX_OBJECT_ATTR_REMOTE:
			memcpy(&thing->remote, value(attr), sizeof(thing->remote));
			break;
		default:
			if (attr->nla_len == NLA_HDRLEN + 8)
				thing->is[type] = large(attr);
			else if (attr->nla_len == NLA_HDRLEN + 4)
				thing->is[type] = number(attr);
		}
	}
	return thing->has[DAPX_OBJECT_ATTR_CONTEXT] ? 0 :
	       because("a thing of no context");
}
