/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Commands, given as any C program gives them to /dev/dapx: without the library.
 */
#ifndef DAPX_HARNESS_COMMAND_H
#define DAPX_HARNESS_COMMAND_H

#include <stddef.h>

#include "dapx.h"
#include "why.h"

#define DAPX_NODE "/dev/dapx"
/* A handle that nobody has. */
#define NO_HANDLE 0x7ffffff1u

#define sizeof_member(type, member) sizeof(((type *)0)->member)
#define offset_behind(type, member) \
	(offsetof(type, member) + sizeof_member(type, member))

/* All of what DAPX_RMR_QUERY can be asked for. */
#define RMR_FIELDS							\
	(DAPX_RMR_FIELD_PD | DAPX_RMR_FIELD_MR | DAPX_RMR_FIELD_RANGE |	\
	 DAPX_RMR_FIELD_ACCESS | DAPX_RMR_FIELD_RKEY)

struct command_output {
	__u16 offset;
	__u16 size;
};

struct command {
	unsigned int request;
	const char *name;
	size_t size;
	struct command_output outs[];	/* the last one has no size */
};

/*
 * Before the call every output is poisoned. Afterwards a call that failed must have left
 * the whole struct as it was, and one that succeeded must have written every output and
 * nothing else; anything else is EPROTO.
 */
int dapx_ioctl(int fd, const struct command *command, void *arg);

#define OUTPUT(member)							\
	{ offsetof(typeof(*cmd), member), sizeof(cmd->member) },

#define DAPX_COMMAND(lower, upper, ...)					\
static inline int _test_cmd_##lower(int fd, struct dapx_##lower *cmd)	\
{									\
	static const struct command command = {				\
		DAPX_##upper, #upper, sizeof(*cmd), { __VA_ARGS__ {} }	\
	};								\
									\
	cmd->size = sizeof(*cmd);					\
	return dapx_ioctl(fd, &command, cmd);				\
}

#include "commands.h"

#undef DAPX_COMMAND
#undef OUTPUT

/* Gives the command and returns what ioctl(2) did. */
#define _test_cmd(name, fd, ...)					\
	({								\
		struct dapx_##name __cmd = { __VA_ARGS__ };		\
									\
		_test_cmd_##name(fd, &__cmd);				\
	})

/* The command must succeed; evaluates to its struct. */
#define test_cmd(name, fd, ...)						\
	({								\
		struct dapx_##name __cmd = { __VA_ARGS__ };		\
		int __ret = _test_cmd_##name(fd, &__cmd);		\
									\
		ASSERT_EQ(0, __ret)					\
			TH_LOG(#name ": %s", strerror(errno));		\
		__cmd;							\
	})

/* The command must fail with this errno. */
#define test_err(expected, name, fd, ...)				\
	EXPECT_ERRNO(expected, _test_cmd(name, fd, __VA_ARGS__))

#endif /* DAPX_HARNESS_COMMAND_H */
