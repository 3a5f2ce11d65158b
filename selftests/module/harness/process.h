/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Processes of a test: how they end, and with what rights they run.
 */
#ifndef DAPX_HARNESS_PROCESS_H
#define DAPX_HARNESS_PROCESS_H

#include <sys/types.h>

/* A user without any rights, and without files. */
#define NOBODY 65534

/* Exit code, or 256 plus the signal that killed it. */
int wait_for(pid_t pid);
void kill_and_wait(pid_t pid);

/*
 * A process that makes something, and has it until it is killed. Returns when it is made; -1,
 * with why(), if it is not.
 */
pid_t keeper(int (*make)(void *arg), void *arg);
/*
 * Has another process do something, as @user (0: who calls) and after @prepare, if there is one.
 * 0, or -1 with why().
 */
int do_as(uid_t user, int (*prepare)(void), int (*what)(void *arg), void *arg);

/* Of the calling process: 0, or -1 with errno. */
int become(uid_t user);
int drop_net_admin(void);
int own_network(void);
/* A user namespace, and a network namespace that belongs to it. */
int own_namespaces(void);

#endif /* DAPX_HARNESS_PROCESS_H */
