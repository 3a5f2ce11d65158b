// SPDX-License-Identifier: GPL-2.0
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "netlink.h"
#include "resources.h"
#include "why.h"

enum { DEVICES = 4, LINE = 120 };

static void describe_summary(const struct nlattr *summary, FILE *line)
{
	const struct nlattr *entry, *part;
	const char *name = "";
	__u64 n = 0;

	for_each_attr(entry, value(summary), next_attr(summary)) {
		for_each_attr(part, value(entry), next_attr(entry)) {
			if (part->nla_type == RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME)
				name = value(part);
			else if (part->nla_type == RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR)
				n = large(part);
		}
		fprintf(line, " %s %llu", name, (unsigned long long)n);
	}
}

/* "rxe0: pd 3 cq 2 ..." */
static int describe(const struct nlmsghdr *header, char text[LINE])
{
	const void *end = (const void *)header + header->nlmsg_len;
	const struct nlattr *attr;
	FILE *line;

	line = fmemopen(text, LINE, "w");
	if (!line)
		return because("fmemopen: %m");
	for_each_attr(attr, NLMSG_DATA(header), end) {
		/* The name comes first. */
		if (attr->nla_type == RDMA_NLDEV_ATTR_DEV_NAME)
			fprintf(line, "%s:", (const char *)value(attr));
		else if ((attr->nla_type & NLA_TYPE_MASK) == RDMA_NLDEV_ATTR_RES_SUMMARY)
			describe_summary(attr, line);
	}
	fclose(line);
	return 0;
}

/* Returns how many devices there are. */
static int read_lines(int fd, char lines[DEVICES][LINE])
{
	struct nlmsghdr request = {
		.nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_GET),
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
	};
	char answer[8192];
	struct nlmsghdr *header;
	ssize_t length;
	int n = 0;

	if (send(fd, &request, sizeof(request), 0) < 0)
		return because("send: %m");
	for (;;) {
		length = recv(fd, answer, sizeof(answer), 0);
		if (length < 0)
			return because("recv: %m");
		for (header = (void *)answer; NLMSG_OK(header, length);
		     header = NLMSG_NEXT(header, length)) {
			if (header->nlmsg_type == NLMSG_DONE)
				return n;
			if (header->nlmsg_type == NLMSG_ERROR || n == DEVICES)
				return because("no list of what the devices have");
			if (describe(header, lines[n++]))
				return -1;
		}
	}
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(a, b);
}

int rdma_resources(char text[512])
{
	char lines[DEVICES][LINE] = {};
	size_t used = 0;
	int fd, n, i;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	if (fd < 0)
		return because("socket: %m");
	n = read_lines(fd, lines);
	close(fd);
	if (n < 0)
		return -1;
	if (!n)
		return because("there is no RDMA device");
	/* By name: a device that was away comes back as the last one. */
	qsort(lines, n, sizeof(lines[0]), compare_lines);
	for (i = 0; i < n; i++)
		used += snprintf(text + used, 512 - used, "%s\n", lines[i]);
	return 0;
}

int await_resources(const char *text)
{
	/* An id that a peer does not answer is the CM's for a minute. */
	__u64 deadline = in_ms(in_virtual_time() ? 120000 : PATIENCE_MS);
	char now[512];

	for (;;) {
		if (rdma_resources(now))
			return -1;
		if (!strcmp(now, text))
			return 0;
		if (now_ns() > deadline)
			return because("leaked: before:\n%snow:\n%s", text, now);
		sleep_ms(50);
	}
}
