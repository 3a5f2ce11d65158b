/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What older kernels spell differently. The rest of the module is written for
 * the newest upstream; HAVE_* come from kcompat-probe.sh.
 */
#ifndef _DAPX_KCOMPAT_H
#define _DAPX_KCOMPAT_H

#include <linux/eventfd.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>

#include "kcompat_config.h"

/* A variable that a kernel which zeroes all of the stack leaves alone. GCC 12. */
#if __has_attribute(__uninitialized__)
#define __dapx_uninitialized __attribute__((__uninitialized__))
#else
#define __dapx_uninitialized
#endif

/* Linux 6.3 */
#ifndef HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

/* Linux 6.8 */
#ifndef HAVE_EVENTFD_SIGNAL_ONE_ARG
#define eventfd_signal(ctx) eventfd_signal(ctx, 1)
#endif

/* Linux 6.13 */
#ifndef HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#endif /* _DAPX_KCOMPAT_H */
