/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A host: a context with what a connection needs.
 */
#ifndef DAPX_HARNESS_HOST_H
#define DAPX_HARNESS_HOST_H

#include "command.h"
#include "evd.h"

#define HOST_MEMORY (256 * 1024)
#define EP_SGE 8	/* or what the device has: host.sge */

struct host {
	int fd;
	unsigned int number;		/* 0 or 1: which device */
	const char *device;
	const char *addr;
	const char *addr6;
	struct dapx_query_device limits;
	__u32 sge;			/* of its endpoints */
	__u32 pd;
	struct evd done;		/* completions of requests */
	struct evd recv;		/* completions of receives */
	struct evd conn;		/* connections, requests, CM ids */
	__u8 *mem;
	__u32 mr;
	__u32 rkey;
	__u32 xrcd;			/* 0: none */
};

/* Gives the device node another mode; the one that it had, or -1 with errno. */
int node_chmod(int mode);
/* Opens the device node only. */
int host_open(struct host *host, unsigned int number);
int host_attach(struct host *host);
/* PD, EVDs, and HOST_MEMORY bytes with all rights. */
int host_furnish(struct host *host);
/* The three in a row. */
int host_set_up(struct host *host, unsigned int number);
void host_close(struct host *host);
/* The GID index of the host's IPv4 address; -1 without. */
int host_gid_index(const struct host *host, __u8 gid[16]);

/* One segment of the host's memory. */
struct dapx_sge host_sge(const struct host *host, __u32 offset, __u32 length);

/* How many objects point to this one; ~0 if there is none. */
__u32 users_of(const struct host *host, __u32 handle);

#endif /* DAPX_HARNESS_HOST_H */
