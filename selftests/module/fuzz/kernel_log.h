/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's log: programs go into it before they run, and faults show in it.
 */
#ifndef DAPX_FUZZ_KERNEL_LOG_H
#define DAPX_FUZZ_KERNEL_LOG_H

#include <stdbool.h>

#include "program.h"

/* Only what comes from now on is looked at. */
int kernel_log_open(void);
void kernel_log_program(const struct program *program);
/* Whether there is a fault, as log-check knows them, since this was asked last. */
bool kernel_log_has_fault(void);

#endif /* DAPX_FUZZ_KERNEL_LOG_H */
