// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host.h"
#include "machine.h"

static const char *setting(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

int node_chmod(int mode)
{
	struct stat node;

	if (stat(DAPX_NODE, &node) || chmod(DAPX_NODE, mode))
		return -1;
	return node.st_mode & 07777;
}

int host_open(struct host *host, unsigned int number)
{
	memset(host, 0, sizeof(*host));
	host->number = number;
	if (number) {
		host->device = setting("DAPX_PEER_DEV", "rxe1");
		host->addr = setting("DAPX_PEER_IP", "10.0.0.2");
		host->addr6 = setting("DAPX_PEER_IP6", "fd00:d::2");
	} else {
		host->device = setting("DAPX_DEV", "rxe0");
		host->addr = setting("DAPX_IP", "10.0.0.1");
		host->addr6 = setting("DAPX_IP6", "fd00:d::1");
	}
	host->fd = open(DAPX_NODE, O_RDWR | O_CLOEXEC);
	if (host->fd < 0)
		return because(DAPX_NODE ": %m");
	return 0;
}

int host_attach(struct host *host)
{
	struct dapx_attach attach = {};

	snprintf(attach.device, sizeof(attach.device), "%s", host->device);
	if (_test_cmd_attach(host->fd, &attach))
		return because("DAPX_ATTACH to %s: %m", host->device);
	if (_test_cmd_query_device(host->fd, &host->limits))
		return because("DAPX_QUERY_DEVICE of %s: %m", host->device);
	host->sge = EP_SGE;
	if (host->limits.out_max_send_sge < host->sge)
		host->sge = host->limits.out_max_send_sge;
	if (host->limits.out_max_recv_sge < host->sge)
		host->sge = host->limits.out_max_recv_sge;
	return 0;
}

int host_furnish(struct host *host)
{
	struct dapx_pd_create pd = {};
	struct dapx_mr_create mr = {};

	if (_test_cmd_pd_create(host->fd, &pd))
		return because("DAPX_PD_CREATE: %m");
	host->pd = pd.out_pd;
	if (evd_make(host->fd, 256, 0, &host->done) ||
	    evd_make(host->fd, 256, 0, &host->recv) ||
	    evd_make(host->fd, 256, 0, &host->conn))
		return -1;

	host->mem = mmap(NULL, HOST_MEMORY, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (host->mem == MAP_FAILED)
		return because("mmap: %m");
	mr.pd = host->pd;
	mr.addr = (uintptr_t)host->mem;
	mr.length = HOST_MEMORY;
	mr.access = DAPX_ACCESS_LOCAL_WRITE | DAPX_ACCESS_REMOTE_WRITE |
		    DAPX_ACCESS_REMOTE_READ;
	if (host->limits.out_caps & DAPX_DEVICE_ATOMICS)
		mr.access |= DAPX_ACCESS_REMOTE_ATOMIC;
	if (_test_cmd_mr_create(host->fd, &mr))
		return because("DAPX_MR_CREATE: %m");
	host->mr = mr.out_mr;
	host->rkey = mr.out_rkey;
	return 0;
}

int host_set_up(struct host *host, unsigned int number)
{
	if (host_open(host, number) || host_attach(host) || host_furnish(host))
		return -1;
	return 0;
}

void host_close(struct host *host)
{
	ring_unmap(&host->done.ring);
	ring_unmap(&host->recv.ring);
	ring_unmap(&host->conn.ring);
	if (host->fd >= 0)
		close(host->fd);
	if (host->mem)
		munmap(host->mem, HOST_MEMORY);
	host->fd = -1;
	host->mem = NULL;
}

int host_gid_index(const struct host *host, __u8 gid[16])
{
	__u8 wanted[16] = { [10] = 0xff, [11] = 0xff }, found[16];
	const char *line;
	char path[160];
	int i;

	inet_pton(AF_INET, host->addr, wanted + 12);
	for (i = 0; i < 32; i++) {
		snprintf(path, sizeof(path),
			 "/sys/class/infiniband/%s/ports/1/gids/%d",
			 host->device, i);
		line = read_line(path);
		if (!line || inet_pton(AF_INET6, line, found) != 1 ||
		    memcmp(found, wanted, sizeof(found)))
			continue;
		snprintf(path, sizeof(path),
			 "/sys/class/infiniband/%s/ports/1/gid_attrs/types/%d",
			 host->device, i);
		line = read_line(path);
		if (!line || strcmp(line, "RoCE v2"))
			continue;
		memcpy(gid, found, sizeof(found));
		return i;
	}
	errno = ENOENT;
	return because("%s has no RoCE v2 GID for %s", host->device, host->addr);
}

struct dapx_sge host_sge(const struct host *host, __u32 offset, __u32 length)
{
	struct dapx_sge sge = {
		.mr = host->mr,
		.length = length,
		.addr = (uintptr_t)host->mem + offset,
	};

	return sge;
}

__u32 users_of(const struct host *host, __u32 handle)
{
	struct dapx_query_object query = { .handle = handle };

	return _test_cmd_query_object(host->fd, &query) ? ~0U : query.out_users;
}
