// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "dice.h"
#include "why.h"

unsigned int count(unsigned int usual, unsigned int full)
{
	const char *scale = getenv("DAPX_SCALE");
	double scaled;

	if (!scale || !*scale)
		return usual;
	if (!strcmp(scale, "full"))
		return full;
	scaled = usual * atof(scale);
	return scaled < 1 ? 1 : scaled;
}

static __u64 seed;
static unsigned int dice_threads;
static __thread __u64 dice_state;
static __thread __u32 next_seed;

static void before_fork(void)
{
	next_seed = dice();
}

/* Or the threads of each child would have the same dice_threads. */
static void in_child(void)
{
	seed = next_seed;
	dice_threads = 0;
	dice_state = 0;
}

static void choose_seed(void)
{
	const char *text = getenv("DAPX_SEED");

	seed = text && *text ? strtoull(text, NULL, 0) : now_ns() / 1000 % 1000000000;
	printf("# DAPX_SEED=%llu\n", (unsigned long long)seed);
	pthread_atfork(before_fork, NULL, in_child);
}

__u32 dice(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (!dice_state) {
		pthread_once(&once, choose_seed);
		dice_state = (seed << 32) + __atomic_fetch_add(&dice_threads, 1, __ATOMIC_RELAXED);
		dice_state = dice_state * 0x9e3779b97f4a7c15 | 1;
	}
	dice_state ^= dice_state << 13;
	dice_state ^= dice_state >> 7;
	dice_state ^= dice_state << 17;
	return dice_state >> 16;
}

static void *moment_thread(void *arg)
{
	const struct moment *moment = arg;

	usleep(dice() % moment->longest_us);
	moment->act(moment->arg);
	return NULL;
}

int moment_start(struct moment *moment)
{
	int error = pthread_create(&moment->thread, NULL, moment_thread, moment);

	return error ? because("pthread_create: %s", strerror(error)) : 0;
}

void moment_await(struct moment *moment)
{
	pthread_join(moment->thread, NULL);
}

void moment_fell(struct moment *moment, bool too_late)
{
	unsigned int us = moment->longest_us;

	if (too_late)
		moment->longest_us = us > 1 ? us / 2 : 1;
	else if (us < 16 * 1000)
		moment->longest_us = us + us / 4 + 1;
}

unsigned int aim_turns(const struct aim *aim)
{
	return aim->turns + dice() % (aim->turns / 64 + 1);
}

void aim_fell(struct aim *aim, bool too_late)
{
	unsigned int step;

	if (aim->fell && aim->fell_late != too_late)
		aim->close = true;
	aim->fell = true;
	aim->fell_late = too_late;
	step = aim->turns / (aim->close ? 256 : 8) + 1;
	if (!too_late)
		aim->turns += step;
	else if (aim->turns >= step)
		aim->turns -= step;
}
