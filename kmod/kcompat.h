/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What older kernels spell differently. The rest of the module is written for
 * the newest upstream; HAVE_* come from kcompat-probe.sh.
 */
#ifndef _DAPX_KCOMPAT_H
#define _DAPX_KCOMPAT_H

#include <linux/eventfd.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/netlink.h>

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

/* Linux 6.3 */
#ifndef HAVE_FILE_MNT_IDMAP
#define file_mnt_idmap(file) file_mnt_user_ns(file)
#endif

/* Linux 6.8 */
#ifndef HAVE_EVENTFD_SIGNAL_ONE_ARG
#define eventfd_signal(ctx) eventfd_signal(ctx, 1)
#endif

/* Linux 6.12 */
#ifndef fd_file
#define fd_file(f) ((f).file)
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

/*
 * Linux 6.5. Before, who gets a message cannot be chosen among the listeners: so they need the
 * right to see all.
 */
#ifdef HAVE_NETLINK_BROADCAST_FILTERED
#define DAPX_LISTENER_NEEDS 0
#else
#define DAPX_LISTENER_NEEDS GENL_MCAST_CAP_NET_ADMIN
static inline int netlink_broadcast_filtered(struct sock *from, struct sk_buff *skb, u32 portid,
					     u32 group, gfp_t gfp,
					     int (*filter)(struct sock *sk, struct sk_buff *skb,
							   void *data), void *data)
{
	return netlink_broadcast(from, skb, portid, group, gfp);
}
#endif

#endif /* _DAPX_KCOMPAT_H */
