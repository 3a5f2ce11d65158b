/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A failed call of the harness: functions return 0, or -1 with errno and a sentence in
 * why(); OK() asserts.
 */
#ifndef DAPX_HARNESS_WHY_H
#define DAPX_HARNESS_WHY_H

#include <errno.h>
#include <string.h>

#define EXPECT_ERRNO(expected, call)					\
	({								\
		int __ret = (call);					\
		int __error = __ret ? errno : 0;			\
									\
		EXPECT_EQ(expected, __error)				\
			TH_LOG("%s: %s instead of %s", #call,		\
			       strerror(__error), strerror(expected));	\
	})

#define OK(call)							\
	({								\
		ASSERT_EQ(0, call)					\
			TH_LOG("%s: %s", #call, why());			\
	})

const char *why(void);
[[gnu::format(printf, 1, 2)]] int because(const char *format, ...);

#endif /* DAPX_HARNESS_WHY_H */
