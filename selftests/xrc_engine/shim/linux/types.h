/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the XRC engine (kmod/xrc/engine.h) takes from the kernel's headers, for user space: this
 * folder's files stand in for those of the same name.
 */
#ifndef _DAPX_SHIM_TYPES_H
#define _DAPX_SHIM_TYPES_H

#include_next <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#endif
