// SPDX-License-Identifier: GPL-2.0
#include <stdarg.h>
#include <stdio.h>

#include "why.h"

static __thread char why_text[1536] = "no reason was noted";

const char *why(void)
{
	return why_text;
}

int because(const char *format, ...)
{
	int error = errno;
	va_list args;

	va_start(args, format);
	vsnprintf(why_text, sizeof(why_text), format, args);
	va_end(args);
	errno = error;
	return -1;
}
