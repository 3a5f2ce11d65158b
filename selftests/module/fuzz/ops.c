// SPDX-License-Identifier: GPL-2.0
#include <pthread.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

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

static struct side sides[2];
static int domain_file;

static struct {
	const struct program *program;
	struct ops_result *result;
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
	struct ops_result *result = running.result;

	me->side = &sides[op_side(op)];
	me->other = &sides[!op_side(op)];
	while (times--) {
		coverage_begin();
		coverage_note(state_of(me->side, kind, op->arg[0]));
		op_kinds[kind].run(me, op->arg);
		edges += coverage_end();
		if (me->nth.n && kind != OP_fail) {
			nth_disarm(&me->nth);
			me->nth.n = 0;
		}
	}
	if (edges) {
		__atomic_fetch_add(&result->edges, edges, __ATOMIC_RELAXED);
		if (result->length <= at)
			result->length = at + 1;
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

static int set_up(const struct program *program)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		if (host_set_up(&sides[i].host, i) || host_xrc(&sides[i].host, domain_file))
			return -1;
	return program_has(program, OP_scene) ?
		scenes_set_up(&sides[0].host, &sides[1].host) : 0;
}

int ops_run(const struct program *program, unsigned int buffer, struct ops_result *result)
{
	pthread_t threads[PROGRAM_THREADS];
	unsigned int n = 1, i;

	if (set_up(program))
		return -1;
	for (i = 0; i < program->length; i++)
		if (op_thread(&program->ops[i]) >= n)
			n = op_thread(&program->ops[i]) + 1;
	running.program = program;
	running.result = result;
	running.buffer = buffer;
	pthread_barrier_init(&running.barrier, NULL, n);
	for (i = 1; i < n; i++)
		if (pthread_create(&threads[i], NULL, ops_thread, (void *)(uintptr_t)i))
			return -1;
	ops_thread(NULL);
	for (i = 1; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
