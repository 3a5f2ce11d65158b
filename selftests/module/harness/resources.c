// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "resources.h"
#include "why.h"

int rdma_resources(char text[512])
{
	/* Without the devices' numbers, which are others when they come back. */
	FILE *pipe = popen("rdma resource show | sed 's/^[0-9]*: //' | sort",
			   "r");
	size_t got;

	if (!pipe)
		return because("rdma resource show: %m");
	got = fread(text, 1, 511, pipe);
	text[got] = 0;
	pclose(pipe);
	return got ? 0 : because("'rdma resource show' shows nothing");
}

int await_resources(const char *text)
{
	/* An id that a peer does not answer is the CM's for a minute. */
	__u64 deadline = in_ms(in_virtual_time() ? 120000 : PATIENCE_MS);
	char now[512];

	for (;;) {
		if (rdma_resources(now))
			return -1;
		if (!strcmp(now, text))
			return 0;
		if (now_ns() > deadline)
			return because("leaked: before:\n%snow:\n%s", text, now);
		sleep_ms(50);
	}
}
