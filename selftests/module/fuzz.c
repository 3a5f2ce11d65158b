// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that do anything, in any order, several threads of each with the
 * same objects: the scenes of abi.c with members changed at will, objects that
 * are joined, connected, changed and freed at random, and rings that are
 * overwritten while the kernel reads them. They are killed at random moments,
 * and a device goes now and then. What they are answered is not looked at: the
 * kernel must not complain, and in the end must have what it had before.
 *
 * DAPX_FUZZ_SECONDS: how long. On the debug kernel this finds most.
 */
#define DAPX_SCENES_ONLY
#include "abi.c"
#include "harness/dice.h"
#include "harness/fabric.h"
#include "harness/resources.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define PLAYERS 3
#define EVDS 5
#define SRQS 3
#define EPS 6

static bool one_in(unsigned int n)
{
	return dice() % n == 0;
}

/* ---- commands of scenes, with members changed ---- */

static __u64 odd_value(void)
{
	static const __u64 values[] = {
		0, 1, 2, 3, 7, 8, 63, 64, 255, 4096, 0x7fffffff, 0x80000000, 0xffffffff,
		NO_HANDLE, 1ULL << 32, 1ULL << 63, ~0ULL, 0x7fffffffffffffffULL,
	};

	switch (dice() % 3) {
	case 0:
		return values[dice() % ARRAY_SIZE(values)];
	case 1:
		/* Handles are small numbers. */
		return 1 + dice() % 200;
	default:
		return (__u64)dice() << 32 | dice();
	}
}

static void change_member(const struct reject *rejects, void *cmd)
{
	__u64 value = odd_value();
	unsigned int n = 0;

	while (rejects[n].member)
		n++;
	if (!n)
		return;
	rejects += dice() % n;
	if (rejects->size <= sizeof(__u64))
		memcpy((__u8 *)cmd + rejects->offset, &value, rejects->size);
	else
		*((__u8 *)cmd + rejects->offset + dice() % rejects->size) = dice();
}

/* Nobody here has time to wait. */
static void be_brief(unsigned int request, void *cmd)
{
	struct dapx_evd_wait *wait = cmd;
	struct dapx_free *gone = cmd;

	if (request == DAPX_EVD_WAIT)
		wait->deadline = in_ms(1);
	else if (request == DAPX_FREE && one_in(2))
		gone->flags = DAPX_FREE_NOWAIT;
}

static void *plays_scenes(void *arg)
{
	struct world *w = arg;

	for (;;) {
		struct __fixture_variant_metadata *variant = _cmd_fixture_object.variant;
		const struct _fixture_variant_cmd *scene;
		unsigned int skip = dice() % 64, changes = dice() % 4;
		__u8 cmd[1024] = {};

		while (skip--)
			variant = variant->next ? variant->next : _cmd_fixture_object.variant;
		scene = variant->data;
		if (scene->traits & QP && !(w->a.limits.out_caps & DAPX_DEVICE_QP_EXCHANGE))
			continue;
		if (scene->base(w, cmd) && one_in(2))
			continue;
		*(__u32 *)cmd = scene->size;
		while (changes--)
			change_member(scene->rejects, cmd);
		be_brief(scene->request, cmd);
		ioctl(w->fd, scene->request, cmd);
		if (w->fd != w->a.fd) {
			close(w->fd);
			w->fd = w->a.fd;
		}
	}
	return NULL;
}

/* ---- objects that are joined at random ---- */

struct pool {
	struct host *host;
	struct evd evd[EVDS];
	struct srq srq[SRQS];
	struct ep ep[EPS];
};

static void forget(struct pool *pool, __u32 handle, __u32 flags)
{
	struct dapx_free cmd = { .size = sizeof(cmd), .handle = handle, .flags = flags };

	ioctl(pool->host->fd, DAPX_FREE, &cmd);
}

static __u32 some_evd(struct pool *pool)
{
	return one_in(20) ? odd_value() : pool->evd[dice() % EVDS].handle;
}

static void remake_evd(struct pool *pool)
{
	struct evd *evd = &pool->evd[dice() % EVDS];

	if (evd->handle)
		forget(pool, evd->handle, 0);
	ring_unmap(&evd->ring);
	memset(evd, 0, sizeof(*evd));
	evd_make(pool->host->fd, 1 << dice() % 4, one_in(4) ? DAPX_EVD_ASYNC : 0, evd);
}

static void remake_srq(struct pool *pool)
{
	struct srq *srq = &pool->srq[dice() % SRQS];
	struct dapx_srq_create cmd = {
		.pd = pool->host->pd, .depth = 1 << dice() % 6, .max_sge = 1 + dice() % 2,
		.async_evd = one_in(2) ? some_evd(pool) : 0,
	};

	if (srq->handle)
		forget(pool, srq->handle, 0);
	ring_unmap(&srq->ring);
	memset(srq, 0, sizeof(*srq));
	if (_test_cmd_srq_create(pool->host->fd, &cmd))
		return;
	srq->host = pool->host;
	srq->handle = cmd.out_srq;
	ring_map(pool->host->fd, &cmd.out_ring, &srq->ring);
}

static void remake_ep(struct pool *pool)
{
	struct ep *ep = &pool->ep[dice() % EPS];
	struct dapx_ep_create cmd;

	if (ep->handle)
		forget(pool, ep->handle, 0);
	ep_forget(ep);
	ep_usual(pool->host, &cmd);
	cmd.request_evd = some_evd(pool);
	cmd.recv_evd = some_evd(pool);
	cmd.connect_evd = some_evd(pool);
	cmd.attr.send_depth = 1 << dice() % 5;
	if (one_in(3)) {
		cmd.srq = pool->srq[dice() % SRQS].handle;
		cmd.attr.recv_depth = 0;
	} else {
		cmd.attr.recv_depth = 1 << dice() % 5;
	}
	ep_make(pool->host, &cmd, ep);
}

static void post_receives(struct pool *pool)
{
	struct ep *ep = &pool->ep[dice() % EPS];
	struct srq *srq = &pool->srq[dice() % SRQS];
	unsigned int n = 1 + dice() % 4;
	struct {
		struct dapx_recv_wr wr;
		struct dapx_sge sge;
	} entry = {
		.wr = { .wr_id = dice(), .num_sge = 1 },
		.sge = host_sge(pool->host, dice() % 4096, dice() % 512),
	};

	if (one_in(8))
		entry.sge.mr = odd_value();
	if (one_in(16))
		entry.wr.num_sge = dice();
	if (one_in(2) && srq->handle) {
		while (n-- && !ring_push(&srq->ring, &entry, sizeof(entry)))
			;
		ring_bell(pool->host->fd, srq->handle, DAPX_DOORBELL_RECV, &srq->ring);
	} else if (ep->handle && ep->recv.depth) {
		while (n-- && !ring_push(&ep->recv, &entry, sizeof(entry)))
			;
		ring_bell(pool->host->fd, ep->handle, DAPX_DOORBELL_RECV, &ep->recv);
	}
}

static void post_sends(struct pool *pool)
{
	struct ep *ep = &pool->ep[dice() % EPS];
	struct dapx_sge sge = host_sge(pool->host, dice() % 4096, dice() % 512);
	struct dapx_send_wr wr = {
		.wr_id = dice(), .opcode = dice() % 8, .flags = dice() % 16, .num_sge = 1,
	};
	unsigned int n = 1 + dice() % 4;

	if (!ep->handle)
		return;
	if (one_in(8))
		sge.mr = odd_value();
	while (n-- && !ep_push_send(ep, &wr, &sge))
		;
	ring_bell(pool->host->fd, ep->handle, DAPX_DOORBELL_SEND, &ep->send);
}

static void modify_ep(struct pool *pool)
{
	static const __u32 masks[] = {
		DAPX_EP_MODIFY_RECV_EVD, DAPX_EP_MODIFY_REQUEST_EVD,
		DAPX_EP_MODIFY_CONNECT_EVD, DAPX_EP_MODIFY_PD,
	};
	struct dapx_ep_modify cmd = {
		.size = sizeof(cmd),
		.ep = pool->ep[dice() % EPS].handle,
		.mask = masks[dice() % 4],
		.pd = pool->host->pd,
		.request_evd = some_evd(pool),
		.recv_evd = some_evd(pool),
		.connect_evd = some_evd(pool),
	};

	ioctl(pool->host->fd, DAPX_EP_MODIFY, &cmd);
}

static void step_ep(struct pool *pool)
{
	struct ep *ep = &pool->ep[dice() % EPS], *peer = &pool->ep[dice() % EPS];
	struct dapx_ep_disconnect disconnect = {
		.size = sizeof(disconnect), .ep = ep->handle,
		.flags = one_in(2) ? DAPX_DISCONNECT_ABRUPT : 0,
	};
	struct dapx_ep_reset reset = { .size = sizeof(reset), .ep = ep->handle };

	if (!ep->handle || !peer->handle)
		return;
	switch (dice() % 5) {
	case 0:
		qp_init(ep);
		break;
	case 1:
	case 2:
		if (pool->host->limits.out_caps & DAPX_DEVICE_QP_EXCHANGE)
			connect_qp(ep, peer, NULL);
		break;
	case 3:
		ioctl(pool->host->fd, DAPX_EP_DISCONNECT, &disconnect);
		break;
	default:
		ioctl(pool->host->fd, DAPX_EP_RESET, &reset);
		break;
	}
}

static void use_evd(struct pool *pool)
{
	struct evd *evd = &pool->evd[dice() % EVDS];
	struct dapx_evd_wait wait = {
		.size = sizeof(wait), .evd = evd->handle, .threshold = 1,
		.flags = one_in(2) ? DAPX_WAIT_SOLICITED : 0, .deadline = in_ms(1),
	};
	struct dapx_evd_resize resize = {
		.size = sizeof(resize), .evd = evd->handle, .depth = 1 << dice() % 5,
	};
	unsigned int n = dice() % 8;
	struct dapx_event event;

	if (!evd->handle)
		return;
	while (n-- && evd_poll(evd, &event))
		;
	if (one_in(4)) {
		ioctl(pool->host->fd, DAPX_EVD_WAIT, &wait);
	} else if (one_in(4) && !ioctl(pool->host->fd, DAPX_EVD_RESIZE, &resize)) {
		ring_unmap(&evd->ring);
		ring_map(pool->host->fd, &resize.out_ring, &evd->ring);
	}
}

static void *plays_with_objects(void *arg)
{
	static void (*const moves[])(struct pool *pool) = {
		remake_evd, remake_srq, remake_ep, post_receives, post_receives, post_sends,
		post_sends, modify_ep, modify_ep, step_ep, step_ep, use_evd, use_evd,
	};
	struct pool pool = { .host = arg };
	unsigned int i;

	for (i = 0; i < 20; i++)
		remake_evd(&pool);
	for (;;) {
		moves[dice() % ARRAY_SIZE(moves)](&pool);
		if (one_in(50))
			forget(&pool, 1 + dice() % 100, DAPX_FREE_NOWAIT);
	}
	return NULL;
}

/* ---- rings that are overwritten ---- */

static void *scribbles(void *arg)
{
	struct host *host = arg;

	for (;;) {
		off_t ring = (off_t)(1 + dice() % 60) * 4096;
		unsigned int n = dice() % 8;
		__u32 *map;

		map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, host->fd, ring);
		if (map == MAP_FAILED)
			continue;
		while (n--) {
			/* Indices and flags are at the beginning. */
			__u32 *word = &map[dice() % (one_in(2) ? 160 : 1024)];

			__atomic_store_n(word, one_in(2) ? *word + dice() % 4 : odd_value(),
					 __ATOMIC_RELAXED);
		}
		munmap(map, 4096);
		sleep_ms(1);
	}
	return NULL;
}

/* ---- players ---- */

static void play(void)
{
	static struct world w;
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (host_set_up(&w.a, 0) || host_set_up(&w.b, 1)) {
		host_close(&w.a);
		host_close(&w.b);
		sleep_ms(10);
	}
	w.ear = w.a;
	memset(&w.ear.conn, 0, sizeof(w.ear.conn));
	w.fd = w.a.fd;
	w.stale = NO_HANDLE;
	if (pthread_create(&thread, NULL, plays_with_objects, &w.a) ||
	    pthread_create(&thread, NULL, plays_with_objects, &w.a) ||
	    (one_in(2) && pthread_create(&thread, NULL, scribbles, &w.a)))
		_exit(1);
	plays_scenes(&w);
}

static pid_t start_player(void)
{
	pid_t pid = fork();

	if (!pid) {
		/* It may harm itself, and then its end is of no interest. */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		play();
		_exit(0);
	}
	return pid;
}

static int end_player(pid_t pid)
{
	__u64 deadline = in_ms(PATIENCE_MS);

	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		if (now_ns() > deadline)
			return because("process %d cannot be killed", pid);
		sleep_ms(1);
	}
	return 0;
}

TEST(anything)
{
	const char *seconds = getenv("DAPX_FUZZ_SECONDS");
	__u64 end = in_ms(1000 * (seconds ? atoi(seconds) : count(10, 600)));
	pid_t player[PLAYERS] = {};
	struct host host = {};
	char before[512];
	unsigned int i, kills = 0, removals = 0;

	OK(rdma_resources(before));
	OK(host_open(&host, 0));
	while (now_ns() < end) {
		i = dice() % PLAYERS;
		if (player[i]) {
			OK(end_player(player[i]));
			kills++;
		}
		player[i] = start_player();
		ASSERT_LT(0, player[i]);
		sleep_ms(50 + dice() % 500);
		if (one_in(12)) {
			OK(device_remove(&host));
			OK(device_add(&host));
			removals++;
		}
	}
	for (i = 0; i < PLAYERS; i++)
		if (player[i])
			OK(end_player(player[i]));
	host_close(&host);
	EXPECT_EQ(0, await_resources(before)) TH_LOG("%s", why());
	TH_LOG("%u kills, %u removals", kills, removals);
}

TEST_HARNESS_MAIN
