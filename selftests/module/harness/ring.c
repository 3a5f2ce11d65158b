// SPDX-License-Identifier: GPL-2.0
#include <string.h>
#include <sys/mman.h>

#include "clock.h"
#include "command.h"
#include "ring.h"
#include "why.h"

int ring_map(int fd, const struct dapx_ring_layout *layout, struct ring *ring)
{
	__u8 *map;

	memset(ring, 0, sizeof(*ring));
	if (!layout->depth)
		return 0;
	map = mmap(NULL, layout->mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		   fd, layout->mmap_offset);
	if (map == MAP_FAILED)
		return because("mmap of a ring: %m");
	ring->map = map;
	ring->map_size = layout->mmap_size;
	ring->head = (__u32 *)(map + layout->head_off);
	ring->tail = (__u32 *)(map + layout->tail_off);
	ring->flags = (__u32 *)(map + layout->flags_off);
	ring->armed = layout->arm_off ? (__u32 *)(map + layout->arm_off) : NULL;
	ring->entries = map + layout->entries_off;
	ring->stride = layout->stride;
	ring->depth = layout->depth;
	return 0;
}

void ring_unmap(struct ring *ring)
{
	if (ring->map)
		munmap(ring->map, ring->map_size);
	memset(ring, 0, sizeof(*ring));
}

__u32 ring_flags(const struct ring *ring)
{
	return __atomic_load_n(ring->flags, __ATOMIC_ACQUIRE);
}

__u32 ring_used(const struct ring *ring)
{
	return __atomic_load_n(ring->tail, __ATOMIC_ACQUIRE) -
	       __atomic_load_n(ring->head, __ATOMIC_ACQUIRE);
}

int ring_await_taken(const struct ring *ring)
{
	__u64 deadline = in_ms(PATIENCE_MS);

	while (ring_used(ring)) {
		if (now_ns() > deadline)
			return because("the kernel has not taken %u entries",
				       ring_used(ring));
		sleep_ms(1);
	}
	return 0;
}

void *ring_entry(const struct ring *ring, __u32 index)
{
	return ring->entries + (size_t)(index % ring->depth) * ring->stride;
}

int ring_push(struct ring *ring, const void *entry, size_t size)
{
	__u32 tail = __atomic_load_n(ring->tail, __ATOMIC_RELAXED);

	if (size > ring->stride) {
		errno = EINVAL;
		return because("an entry of %zu bytes in a stride of %u", size,
			       ring->stride);
	}
	/* Acquire: the kernel has read the entry that is overwritten. */
	if (tail - __atomic_load_n(ring->head, __ATOMIC_ACQUIRE) >= ring->depth) {
		errno = EAGAIN;
		return because("the ring is full");
	}
	memcpy(ring_entry(ring, tail), entry, size);
	/* Release: whoever sees the index sees the entry. */
	__atomic_store_n(ring->tail, tail + 1, __ATOMIC_RELEASE);
	return 0;
}

int ring_bell(int fd, __u32 handle, __u32 flag, const struct ring *ring)
{
	struct dapx_doorbell bell = { .flags = flag, .handle = handle };

	/* Full: the tail is out before the flag is read. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (ring_flags(ring) & DAPX_RING_BUSY)
		return 0;
	if (_test_cmd_doorbell(fd, &bell))
		return because("DAPX_DOORBELL: %m");
	return 0;
}
