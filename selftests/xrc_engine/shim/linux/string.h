/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef _DAPX_SHIM_STRING_H
#define _DAPX_SHIM_STRING_H

#include <string.h>

#endif
