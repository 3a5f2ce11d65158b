/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What of the module a thread's commands reach: edges between basic blocks, as KCOV reports
 * them. Of kernels without KCOV, and of a module that is built without it: what is noted.
 */
#ifndef DAPX_FUZZ_COVERAGE_H
#define DAPX_FUZZ_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

#define COVERAGE_SIZE 65536

/* Once, before any fork: buffers for so many threads. What was reached is shared by all. */
void coverage_open(unsigned int threads);
bool coverage_works(void);
/* Edges that were reached since coverage_forget(). */
unsigned int coverage_reached(void);
void coverage_forget(void);

/* The calling thread's commands are followed, with the buffer of this number. */
void coverage_follow(unsigned int number);
/* A command begins; its end tells how many edges it was the first to reach. */
void coverage_begin(void);
unsigned int coverage_end(void);
/*
 * In between: something that says what the kernel does, or did elsewhere, where KCOV does not
 * follow. What was not noted before counts as an edge.
 */
void coverage_note(uint32_t what);

#endif /* DAPX_FUZZ_COVERAGE_H */
