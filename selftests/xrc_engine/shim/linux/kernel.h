/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef _DAPX_SHIM_KERNEL_H
#define _DAPX_SHIM_KERNEL_H

#include <linux/types.h>

/* As in the kernel, only of one type: else the compiler warns of the comparison of pointers. */
#define min(a, b) ({		\
	__typeof__(a) _a = (a);	\
	__typeof__(b) _b = (b);	\
				\
	(void)(&_a == &_b);	\
	_a < _b ? _a : _b;	\
})
#define min_t(type, a, b) min((type)(a), (type)(b))
/* To a power of two. */
#define ALIGN(x, a) (((x) + (__typeof__(x))(a) - 1) & ~((__typeof__(x))(a) - 1))

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define cpu_to_le16(x) ((__le16)(x))
#define cpu_to_le32(x) ((__le32)(x))
#define cpu_to_le64(x) ((__le64)(x))
#else
#define cpu_to_le16(x) ((__le16)__builtin_bswap16(x))
#define cpu_to_le32(x) ((__le32)__builtin_bswap32(x))
#define cpu_to_le64(x) ((__le64)__builtin_bswap64(x))
#endif
#define le16_to_cpu(x) ((u16)cpu_to_le16(x))
#define le32_to_cpu(x) ((u32)cpu_to_le32(x))
#define le64_to_cpu(x) ((u64)cpu_to_le64(x))

#endif
