/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Time: how long to wait for what must happen, and for what must not.
 */
#ifndef DAPX_HARNESS_CLOCK_H
#define DAPX_HARNESS_CLOCK_H

#include <stdbool.h>
#include <sys/types.h>
#include <linux/types.h>

/* What must happen is given this long. */
#define PATIENCE_MS patience_ms()
/* What must not happen is waited for this long. */
#define GLANCE_MS 100

/*
 * Whether the clock counts what this machine does, so that a limit on how long something
 * takes means something; else a busy host decides.
 */
bool in_virtual_time(void);
/* A debug kernel under emulation is slow, and a host that is busy. */
unsigned int patience_ms(void);
__u64 now_ns(void);
__u64 in_ms(unsigned int ms);
/* What now_ns() is then. */
void sleep_until(__u64 ns);
void sleep_ms(unsigned int ms);
/*
 * Waits until the thread of this process whose gettid() is, or comes to be, in @tid sleeps
 * in this command. Who has said that it is about to give it may not have got there.
 */
int await_asleep(const pid_t *tid, unsigned long request);
/* The same, in the system call of this number. */
int await_asleep_in(const pid_t *tid, unsigned long number);
/* For a moment, of which sleeping would be too long. */
void spin(unsigned int turns);
/*
 * For a loop that waits. In virtual time one thread of the host plays both CPUs in turn, each for
 * milliseconds unless it says that it only waits: relax() lets the other one go on, and give_way()
 * the other threads on the same CPU, too, for which it takes a system call.
 */
void relax(void);
void give_way(void);

#endif /* DAPX_HARNESS_CLOCK_H */
