// SPDX-License-Identifier: GPL-2.0
/*
 * Every command of abi.c, from its table, so that a new one is here by itself: its scene is set
 * up, members are changed, and then it is given.
 */
#define DAPX_SCENES_ONLY
#include "../abi.c"

#include "ops.h"

static struct world world;
static bool ready;

/* Scenes take the events of their own EVDs, and replace these. */
static int own_evds(struct host *host)
{
	memset(&host->done, 0, sizeof(host->done));
	memset(&host->recv, 0, sizeof(host->recv));
	memset(&host->conn, 0, sizeof(host->conn));
	return evd_make(host->fd, 16, 0, &host->done) || evd_make(host->fd, 16, 0, &host->recv) ||
	       evd_make(host->fd, 16, 0, &host->conn) ? -1 : 0;
}

int scenes_set_up(const struct host *a, const struct host *b)
{
	world.a = *a;
	world.b = *b;
	if (own_evds(&world.a) || own_evds(&world.b))
		return -1;
	world.ear = world.a;
	memset(&world.ear.conn, 0, sizeof(world.ear.conn));
	world.fd = world.a.fd;
	world.stale = NO_HANDLE;
	ready = true;
	return 0;
}

static void change_member(const struct reject *rejects, __u8 *cmd, __u8 member, __u64 value)
{
	unsigned int n = 0;

	while (rejects[n].member)
		n++;
	if (!n)
		return;
	rejects += member % n;
	if (rejects->size <= sizeof(value))
		memcpy(cmd + rejects->offset, &value, rejects->size);
	else
		cmd[rejects->offset + value % rejects->size] = value >> 8;
}

/* Nobody here has time to wait. */
static void be_brief(unsigned int request, void *cmd)
{
	struct dapx_evd_wait *wait = cmd;
	struct dapx_free *gone = cmd;

	if (request == DAPX_EVD_WAIT)
		wait->deadline = in_ms(1);
	else if (request == DAPX_FREE)
		gone->flags |= DAPX_FREE_NOWAIT;
}

void scenes_play(unsigned int number, const __u8 *members, const __u64 *values, unsigned int n)
{
	struct __fixture_variant_metadata *variant = _cmd_fixture_object.variant;
	const struct _fixture_variant_cmd *scene;
	__u8 cmd[1024] = {};
	unsigned int i;

	if (!ready)
		return;
	while (number--)
		variant = variant->next ? variant->next : _cmd_fixture_object.variant;
	scene = variant->data;
	if (scene->traits & QP && !(world.a.limits.out_caps & DAPX_DEVICE_QP_EXCHANGE))
		return;
	/* The call is given even if its scene failed: then it names what is not there. */
	scene->base(&world, cmd);
	*(__u32 *)cmd = scene->size;
	for (i = 0; i < n; i++)
		change_member(scene->rejects, cmd, members[i], values[i]);
	be_brief(scene->request, cmd);
	ioctl(world.fd, scene->request, cmd);
	if (world.fd != world.a.fd) {
		close(world.fd);
		world.fd = world.a.fd;
	}
}
