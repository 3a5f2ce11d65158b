/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Failures that the kernel injects below functions of the module: allocations and copies to
 * and from user space.
 *
 * Functions return 0, or -1 with a sentence in why().
 */
#ifndef DAPX_HARNESS_FAULTS_H
#define DAPX_HARNESS_FAULTS_H

#include <stdbool.h>

/* For all tasks, from now on. Nothing fails yet. */
int faults_limit_to_module(void);

/* The n-th that the thread comes to, from nth_arm() on, fails. */
struct nth {
	int fd;
	unsigned int n;
};

/* Of the calling thread. */
int nth_open(struct nth *nth);
int nth_arm(struct nth *nth);
/* Whether the failure came; the answer itself may be made to fail. */
bool nth_disarm(struct nth *nth);

#endif /* DAPX_HARNESS_FAULTS_H */
