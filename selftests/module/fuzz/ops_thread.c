// SPDX-License-Identifier: GPL-2.0
/*
 * Operations on the process itself and its threads.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "../harness/fabric.h"
#include "ops.h"

/* ---- threads ---- */

/* The threads of a program meet here: ops_thread() sees to it. */
void op_together(struct actor *me, const __u8 *arg)
{
}

void schedule_thread(int policy, bool cpu0, bool cpu1)
{
	const struct sched_param param = {};
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	if (cpu0)
		CPU_SET(0, &cpus);
	if (cpu1)
		CPU_SET(1, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	sched_setscheduler(0, policy, &param);
}

void op_sched(struct actor *me, const __u8 *arg)
{
	schedule_thread(arg[0] % 2 ? SCHED_IDLE : SCHED_OTHER, arg[1] % 3 != 1, arg[1] % 3 != 0);
}

/* Waits until the kernel has taken something from a queue since the threads met. */
void op_until(struct actor *me, const __u8 *arg)
{
	unsigned int n = arg[0] % QUEUES, tries;
	struct ring *ring;
	__u32 handle;

	ring = some_queue(me, n, &handle);
	for (tries = 0; ring->head && tries < 100; tries++) {
		if (__atomic_load_n(ring->head, __ATOMIC_ACQUIRE) != me->side->seen[n])
			break;
		usleep(50);
	}
}

void op_pause(struct actor *me, const __u8 *arg)
{
	usleep((arg[0] + 1) * (arg[1] % 4 ? 20 : 200));
}

/* Keeps the others of its CPU from going on. */
void op_burn(struct actor *me, const __u8 *arg)
{
	__u64 end = in_ms(1 + arg[0] % 16);

	while (now_ns() < end)
		;
}

void op_die(struct actor *me, const __u8 *arg)
{
	if (is_last_program)
		kill(getpid(), SIGKILL);
}

void op_fail(struct actor *me, const __u8 *arg)
{
	if (!faults_work || me->nth.fd < 0)
		return;
	me->nth.n = 1 + arg[0] % 64;
	nth_arm(&me->nth);
}

/* ---- anything ---- */

void op_free(struct actor *me, const __u8 *arg)
{
	free_handle(me, arg[0] < 128 ? arg[0] : odd_handle(me, arg[0]), arg[1] % 2 + 1);
}

/* What uses others is freed first. */
void op_free_all(struct actor *me, const __u8 *arg)
{
	const struct side *side = me->side;
	unsigned int i;

	for (i = 0; i < REQUESTS; i++)
		free_handle(me, side->request[i], DAPX_FREE_DISCARD);
	for (i = 0; i < CMS; i++)
		free_handle(me, side->cm[i], DAPX_FREE_DISCARD);
	for (i = 0; i < WINDOWS; i++)
		free_handle(me, side->window[i], 0);
	for (i = 0; i < EPS; i++)
		free_handle(me, side->ep[i].handle, 0);
	for (i = 0; i < SRQS; i++)
		free_handle(me, side->srq[i].handle, 0);
	for (i = 0; i < EVDS; i++)
		free_handle(me, side->evd[i].handle, 0);
}

void op_close(struct actor *me, const __u8 *arg)
{
	if (is_last_program)
		close(me->side->host.fd);
}

void op_scene(struct actor *me, const __u8 *arg)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	__u64 values[2];
	unsigned int i;

	for (i = 0; i < 2; i++)
		values[i] = arg[3 + i] < 64 ? odd_handle(me, arg[3 + i]) :
					      odd_value(arg[3 + i]);
	/* The thread that has it may never return. */
	if (pthread_mutex_trylock(&mutex))
		return;
	scenes_play(arg[0] & 127, arg + 1, values, arg[5] % 3);
	pthread_mutex_unlock(&mutex);
}

void op_remove(struct actor *me, const __u8 *arg)
{
	/* Or the commands would wait for all other processes to be idle, with the device gone. */
	schedule_thread(SCHED_OTHER, true, true);
	device_remove(&me->side->host);
	device_add(&me->side->host);
}
