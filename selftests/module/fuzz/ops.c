// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../harness/evd.h"
#include "../harness/machine.h"
#include "../harness/xrc.h"
#include "coverage.h"
#include "ops.h"

const struct op_kind op_kinds[NUM_OPS] = {
#define OP(name_, weight_, args_)					\
	{ .name = #name_, .run = op_##name_, .args = args_, .weight = weight_ },
#include "ops_list.h"
#undef OP
};

int eventfd_of_all;
bool faults_work;
bool is_last_program;

static struct side sides[2];
static int domain_file;

static struct {
	const struct program *program;
	unsigned int *edges, *length;	/* of its result */
	unsigned int buffer;
	pthread_barrier_t barrier;
} running;

static void note_heads(void)
{
	unsigned int i, n;
	__u32 handle;

	for (i = 0; i < 2; i++) {
		const struct actor me = { .side = &sides[i], .other = &sides[!i] };

		for (n = 0; n < QUEUES; n++) {
			struct ring *ring = some_queue(&me, n, &handle);

			if (ring->head)
				sides[i].seen[n] = *ring->head;
		}
	}
}

static void come_together(void)
{
	if (pthread_barrier_wait(&running.barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
		note_heads();
	pthread_barrier_wait(&running.barrier);
}

static void perform(struct actor *me, unsigned int at)
{
	const struct op *op = &running.program->ops[at];
	unsigned int times = op_times(op), kind = op_kind(op), edges = 0;
	__u32 state;

	me->side = &sides[op_side(op)];
	me->other = &sides[!op_side(op)];
	while (times--) {
		coverage_begin();
		state = state_of(me->side, kind, op->arg[0]);
		errno = 0;
		op_kinds[kind].run(me, op->arg);
		coverage_note(state | (__u32)errno << 24);
		edges += coverage_end();
		if (me->nth.n && kind != OP_fail) {
			nth_disarm(&me->nth);
			me->nth.n = 0;
		}
	}
	if (edges) {
		__atomic_fetch_add(running.edges, edges, __ATOMIC_RELAXED);
		if (*running.length <= at)
			*running.length = at + 1;
	}
}

static void *ops_thread(void *arg)
{
	unsigned int number = (uintptr_t)arg, i;
	const struct program *program = running.program;
	struct actor me = { .nth.fd = -1 };

	if (faults_work)
		nth_open(&me.nth);
	coverage_follow(running.buffer + number);
	for (i = 0; i < program->length; i++) {
		if (op_kind(&program->ops[i]) == OP_together)
			come_together();
		else if (op_thread(&program->ops[i]) == number)
			perform(&me, i);
	}
	return NULL;
}

int ops_prepare(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct side *side = &sides[i];

		if (host_open(&side->host, i))
			return -1;
		if (!on_siw())
			side->gid_index = host_gid_index(&side->host, side->gid);
		host_close(&side->host);
	}
	domain_file = memfd_create("domain", MFD_CLOEXEC);
	eventfd_of_all = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	faults_work = !faults_limit_to_module();
	return domain_file < 0 || eventfd_of_all < 0 ? because("no descriptor: %m") : 0;
}

static void run_threads(const struct program *program)
{
	pthread_t threads[PROGRAM_THREADS];
	unsigned int wanted = 1, n, i;

	for (i = 0; i < program->length; i++)
		if (op_thread(&program->ops[i]) >= wanted)
			wanted = op_thread(&program->ops[i]) + 1;
	running.program = program;
	pthread_barrier_init(&running.barrier, NULL, wanted);
	for (n = 1; n < wanted; n++)
		if (pthread_create(&threads[n], NULL, ops_thread, (void *)(uintptr_t)n))
			_exit(1);
	ops_thread(NULL);
	while (--n)
		pthread_join(threads[n], NULL);
	pthread_barrier_destroy(&running.barrier);
	/* This thread was the program's first. */
	schedule_thread(SCHED_OTHER, true, true);
}

/* ---- between programs ---- */

static void read_all(struct side *side, struct life_result *result)
{
	struct dapx_event event;
	unsigned int i, n;
	__u32 index;

	/* Spoilt indices have events without end. */
	for (i = 0; i < EVDS; i++) {
		struct evd *evd = &side->evd[i];

		for (n = 0; n < 64 && evd->ring.map; n++) {
			index = *evd->ring.head;
			if (!evd_poll(evd, &event))
				break;
			if (is_of_gone(side, evd, index, &event))
				snprintf(result->finding, sizeof(result->finding),
					 "EVD %u: object %u was gone before event %u, of type %u",
					 evd->handle, event.handle, index, event.type);
		}
	}
}

/*
 * What the program left is freed, and events are read in between: whoever still has to do with
 * what is gone has the opportunity, and what is gone must not be heard of any more.
 */
static void take_apart(struct side *side, struct life_result *result)
{
	struct actor me = { .side = side };
	unsigned int i;

	read_all(side, result);
	for (i = 0; i < EPS; i++) {
		free_handle(&me, side->ep[i].handle, 0);
		read_all(side, result);
	}
	for (i = 0; i < SRQS; i++) {
		free_handle(&me, side->srq[i].handle, 0);
		read_all(side, result);
	}
	for (i = 0; i < RECV_QPS; i++)
		op_recv_qp(&me, (const __u8[]){ i, LEAVE, 0 });
	op_free_all(&me, NULL);
}

/* For the next program. */
static void forget(struct side *side)
{
	const struct side kept = *side;
	unsigned int i;

	for (i = 0; i < EVDS; i++)
		ring_unmap(&side->evd[i].ring);
	for (i = 0; i < SRQS; i++)
		ring_unmap(&side->srq[i].ring);
	for (i = 0; i < EPS; i++)
		ep_forget(&side->ep[i]);
	memset(side, 0, sizeof(*side));
	side->host = kept.host;
	memcpy(side->gid, kept.gid, sizeof(side->gid));
	side->gid_index = kept.gid_index;
}

/* Some programs free the memory of a context, or take its device away. */
static bool is_intact(const struct side *side)
{
	const struct host *host = &side->host;

	return users_of(host, host->mr) != ~0U && users_of(host, host->xrcd) != ~0U &&
	       users_of(host, host->conn.handle) != ~0U;
}

int ops_live(const struct life *life, unsigned int buffer, struct life_result *result)
{
	bool has_scenes = false;
	unsigned int n, i;

	for (i = 0; i < 2; i++)
		if (host_set_up(&sides[i].host, i) || host_xrc(&sides[i].host, domain_file))
			return -1;
	running.buffer = buffer;
	for (n = 0; n < life->length; n++) {
		if (!has_scenes && program_has(&life->programs[n], OP_scene)) {
			if (scenes_set_up(&sides[0].host, &sides[1].host))
				return -1;
			has_scenes = true;
		}
		running.edges = &result->programs[n].edges;
		running.length = &result->programs[n].length;
		is_last_program = n + 1 == life->length;
		__atomic_store_n(&result->begun, n + 1, __ATOMIC_RELAXED);
		run_threads(&life->programs[n]);
		for (i = 0; i < 2; i++)
			take_apart(&sides[i], result);
		for (i = 0; i < 2; i++)
			forget(&sides[i]);
		if (!is_intact(&sides[0]) || !is_intact(&sides[1]))
			break;
	}
	return 0;
}
