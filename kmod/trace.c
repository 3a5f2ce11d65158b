// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: the tracepoints are instantiated here
 */
#include "dapx_private.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
