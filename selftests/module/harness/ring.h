/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rings, as the kernel maps them.
 */
#ifndef DAPX_HARNESS_RING_H
#define DAPX_HARNESS_RING_H

#include <stddef.h>

#include "dapx.h"

struct ring {
	void *map;
	size_t map_size;
	__u32 *head;
	__u32 *tail;
	__u32 *flags;
	__u32 *armed;			/* NULL: none */
	__u8 *entries;
	__u32 stride;
	__u32 depth;
};

int ring_map(int fd, const struct dapx_ring_layout *layout, struct ring *ring);
void ring_unmap(struct ring *ring);
__u32 ring_flags(const struct ring *ring);
__u32 ring_used(const struct ring *ring);
/* Waits until the kernel has taken all entries of a ring of work. */
int ring_await_taken(const struct ring *ring);
void *ring_entry(const struct ring *ring, __u32 index);
/* Producer: -1 with EAGAIN if the ring is full. Does not ring the doorbell. */
int ring_push(struct ring *ring, const void *entry, size_t size);
int ring_bell(int fd, __u32 handle, __u32 flag, const struct ring *ring);

#endif /* DAPX_HARNESS_RING_H */
