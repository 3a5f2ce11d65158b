// SPDX-License-Identifier: GPL-2.0
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "command.h"

#define POISON 0xa5

/* What the ABI forbids in every call: it fails as no call does. */
static int break_test(const struct command *command, const char *what,
		      size_t offset)
{
	fprintf(stderr, "# DAPX_%s: %s at offset %zu\n", command->name, what,
		offset);
	errno = EPROTO;
	return -1;
}

static bool all_poison(const __u8 *bytes, size_t size)
{
	while (size--)
		if (*bytes++ != POISON)
			return false;
	return true;
}

int dapx_ioctl(int fd, const struct command *command, void *arg)
{
	__u8 before[1024], after[1024];
	const struct command_output *out;
	int ret, error;
	size_t i;

	if (command->size > sizeof(before))
		abort();
	for (out = command->outs; out->size; out++)
		memset((__u8 *)arg + out->offset, POISON, out->size);
	memcpy(before, arg, command->size);
	ret = ioctl(fd, command->request, arg);
	error = errno;
	if (ret > 0)
		return break_test(command, "positive return value", ret);

	memcpy(after, arg, command->size);
	for (out = command->outs; out->size; out++) {
		bool kept = all_poison(after + out->offset, out->size);
		bool waited = command->request == DAPX_EVD_WAIT &&
			      (error == ETIMEDOUT || error == EINTR);

		if ((!ret || waited) && kept)
			return break_test(command, "output not written",
					  out->offset);
		if (!ret || waited)
			memset(after + out->offset, POISON, out->size);
	}
	for (i = 0; i < command->size; i++)
		if (before[i] != after[i])
			return break_test(command,
					  ret ? "a failed call wrote" :
						"an input was written", i);
	errno = error;
	return ret;
}
