// SPDX-License-Identifier: GPL-2.0
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#include "clock.h"
#include "machine.h"
#include "why.h"

bool in_virtual_time(void)
{
	const char *time = getenv("DAPX_TIME");

	return time && !strcmp(time, "virtual");
}

unsigned int patience_ms(void)
{
	const char *time = getenv("DAPX_TIME");

	if (!time || !strcmp(time, "real"))
		return 120000;
	return on_debug_kernel() ? 60000 : 15000;
}

__u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

__u64 in_ms(unsigned int ms)
{
	return now_ns() + ms * 1000000ULL;
}

void sleep_until(__u64 ns)
{
	struct timespec moment = { ns / 1000000000, ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL) == EINTR)
		;
}

void sleep_ms(unsigned int ms)
{
	sleep_until(in_ms(ms));
}

/* @request: the second argument, or 0 for any. */
static int await_call(const pid_t *tid, unsigned long wanted, unsigned long request)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	char path[64];

	for (;;) {
		pid_t id = __atomic_load_n(tid, __ATOMIC_ACQUIRE);
		unsigned long number, argument;
		const char *line = NULL;

		if (id) {
			snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", id);
			line = read_line(path);
		}
		/* Of one that sleeps: the number of the call and its arguments. */
		if (line && sscanf(line, "%lu %*x %lx", &number, &argument) == 2 &&
		    number == wanted && (!request || argument == request))
			return 0;
		if (now_ns() > deadline) {
			errno = ETIMEDOUT;
			return because("the thread does not wait in its call: %s",
				       line ?: "it is not there");
		}
		sleep_ms(1);
	}
}

int await_asleep(const pid_t *tid, unsigned long request)
{
	return await_call(tid, SYS_ioctl, request);
}

int await_asleep_in(const pid_t *tid, unsigned long number)
{
	return await_call(tid, number, 0);
}

void spin(unsigned int turns)
{
	for (; turns; turns--) {
		__asm__ volatile("" : : : "memory");
		if (turns % 64 == 0)
			relax();
	}
}

static void end_turn(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#endif
}

static bool by_turns;

__attribute__((constructor)) static void look_whether_by_turns(void)
{
	const char *time = getenv("DAPX_TIME");

	by_turns = time && strcmp(time, "real");
}

void relax(void)
{
	/* Where CPUs do run at once, it would only blur the moment. */
	if (by_turns)
		end_turn();
}

void give_way(void)
{
	end_turn();
	sched_yield();
}
