/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The machine that the test runs in: its kernel, files, commands, cgroups.
 */
#ifndef DAPX_HARNESS_MACHINE_H
#define DAPX_HARNESS_MACHINE_H

#include <stdbool.h>

bool on_siw(void);
bool on_debug_kernel(void);
/* Where the calling thread runs, and the threads that it creates from here on. */
void run_on(int cpu);
void run_anywhere(void);
/*
 * The calling thread and all workers of unbound queues on one processor, and this thread comes
 * before them: from where a worker wakes it, the worker goes on when it sleeps again. What it
 * changes for the whole machine is in @before, to be put back.
 */
struct processor {
	char preempt[32];
	char workers[64];
};

int processor_share(struct processor *before);
int processor_put_back(const struct processor *before);
/* First line of a file; NULL without it. Static buffer. */
const char *read_line(const char *path);
int write_line(const char *path, const char *text);
/* A module parameter that is a number; -1 if there is no such. */
long module_parameter(const char *name);
int set_module_parameter(const char *name, long value);
/* Pages that are pinned, in all of the machine. */
long pinned_pages(void);
/* Runs a shell command quietly; its exit code. */
[[gnu::format(printf, 1, 2)]] int run(const char *format, ...);

/*
 * A cgroup that the calling process can be put in, and the test be taken out of;
 * @controllers as cgroup.subtree_control takes them.
 */
#define CGROUP "/run/dapx-cgroup"
int cgroup_make(const char *controllers);
int cgroup_enter(const char *controllers);
void cgroup_leave(const char *device);

#endif /* DAPX_HARNESS_MACHINE_H */
