/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is left to chance: counts of rounds, numbers, moments.
 */
#ifndef DAPX_HARNESS_DICE_H
#define DAPX_HARNESS_DICE_H

#include <pthread.h>
#include <stdbool.h>
#include <linux/types.h>

/* How often to do something: @usual times DAPX_SCALE, or @full if that is "full". */
unsigned int count(unsigned int usual, unsigned int full);

/*
 * Numbers for choosing moments and data. Who asks for the first one prints the seed, and
 * takes it from the environment, DAPX_SEED, if it is there: to see a run again.
 */
__u32 dice(void);

/*
 * Something that is done by another thread while this one goes on, at a moment
 * within @longest_us; tell where it fell, and the next one falls better.
 */
struct moment {
	unsigned int longest_us;
	void (*act)(void *arg);
	void *arg;
	pthread_t thread;
};

int moment_start(struct moment *moment);
void moment_await(struct moment *moment);
void moment_fell(struct moment *moment, bool too_late);

/*
 * How many turns to spin() before a step that is to fall together with one of a thread
 * that started at the same time: tell who came first, and the next one falls closer. The
 * way is made in large steps until the other one came first for the first time, or last.
 */
struct aim {
	unsigned int turns;
	bool fell;
	bool fell_late;
	bool close;
};

unsigned int aim_turns(const struct aim *aim);
void aim_fell(struct aim *aim, bool too_late);

#endif /* DAPX_HARNESS_DICE_H */
