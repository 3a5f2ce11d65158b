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

/* Of the calling process: 0, or -1 with errno. */
int become(uid_t user);
int drop_net_admin(void);
int own_network(void);
/* A user namespace, and a network namespace that belongs to it. */
int own_namespaces(void);

#endif /* DAPX_HARNESS_PROCESS_H */
