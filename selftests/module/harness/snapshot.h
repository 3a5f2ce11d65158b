/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every object of a context with its state: a call that fails changes none.
 */
#ifndef DAPX_HARNESS_SNAPSHOT_H
#define DAPX_HARNESS_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

/* Every object of a context, with its state; two are compared by memcmp. */
struct snapshot {
	size_t size;
	__u8 *data;
};

int snapshot_take(int fd, struct snapshot *snapshot);
/* True if nothing changed, else why() says what; drops both. */
bool snapshot_same(struct snapshot *before, struct snapshot *after);

#endif /* DAPX_HARNESS_SNAPSHOT_H */
