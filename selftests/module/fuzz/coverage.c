// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <linux/kcov.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "coverage.h"

#define KCOV "/sys/kernel/debug/kcov"
#define BUFFERS_MAX 16
/* Program counters of one command; what is beyond is not seen. */
#define BUFFER_LENGTH (16 * 1024)

static struct {
	int fd;
	uint64_t *counters;		/* the first: how many there are */
} buffers[BUFFERS_MAX];
static unsigned int num_buffers;
static uint8_t *seen;			/* by edge */

static __thread uint64_t *followed;
static __thread unsigned int noted;

void coverage_open(unsigned int threads)
{
	size_t size = BUFFER_LENGTH * sizeof(uint64_t);

	seen = mmap(NULL, COVERAGE_SIZE, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seen == MAP_FAILED)
		seen = NULL;
	while (seen && num_buffers < threads && num_buffers < BUFFERS_MAX) {
		int fd = open(KCOV, O_RDWR | O_CLOEXEC);
		void *map;

		if (fd < 0)
			return;
		if (ioctl(fd, KCOV_INIT_TRACE, BUFFER_LENGTH)) {
			close(fd);
			return;
		}
		map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED) {
			close(fd);
			return;
		}
		buffers[num_buffers].fd = fd;
		buffers[num_buffers++].counters = map;
	}
}

bool coverage_works(void)
{
	return num_buffers;
}

unsigned int coverage_reached(void)
{
	unsigned int edges = 0, i;

	for (i = 0; seen && i < COVERAGE_SIZE; i++)
		edges += seen[i];
	return edges;
}

void coverage_forget(void)
{
	if (seen)
		memset(seen, 0, COVERAGE_SIZE);
}

void coverage_follow(unsigned int number)
{
	if (number < num_buffers && !ioctl(buffers[number].fd, KCOV_ENABLE, KCOV_TRACE_PC))
		followed = buffers[number].counters;
}

void coverage_begin(void)
{
	if (followed)
		__atomic_store_n(followed, 0, __ATOMIC_RELAXED);
}

static unsigned int edge(uint64_t from, uint64_t to)
{
	return ((from * 31 ^ to) * 0x9e3779b97f4a7c15) >> 48;
}

static bool is_first(uint64_t from, uint64_t to)
{
	uint8_t *place = &seen[edge(from, to)];

	return !*place && !__atomic_exchange_n(place, 1, __ATOMIC_RELAXED);
}

void coverage_note(uint32_t what)
{
	if (seen)
		noted += is_first(~0, what);
}

unsigned int coverage_end(void)
{
	uint64_t n, i, last = 0;
	unsigned int first = noted;

	noted = 0;
	if (!followed)
		return first;
	n = __atomic_load_n(followed, __ATOMIC_RELAXED);
	if (n > BUFFER_LENGTH - 1)
		n = BUFFER_LENGTH - 1;
	for (i = 1; i <= n; i++) {
		first += is_first(last, followed[i]);
		last = followed[i];
	}
	return first;
}
