/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef C_TEST_H
#define C_TEST_H

#include <stdio.h>
#include <stdlib.h>

/* Ends the program unless it is so. */
static inline void check(int so, const char *what, const char *file, int line)
{
	if (so)
		return;
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
	exit(1);
}

#define CHECK(what) check(!!(what), #what, __FILE__, __LINE__)

#endif
