/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What older kernels lack or spell differently. The rest of the module is written for the
 * newest upstream kernel. kcompat-probe.sh defines HAVE_*.
 */
#ifndef _DAPX_KCOMPAT_H
#define _DAPX_KCOMPAT_H

#include <linux/eventfd.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/netlink.h>
#include <linux/version.h>
#include <rdma/ib_umem.h>

#include "kcompat_config.h"

/* Exempts a variable in a kernel that zeroes all variables on the stack. Since GCC 12. */
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
 * Linux 6.4. Earlier kernels' rxe takes no packets in error. The step to RESET would free those
 * that another CPU is handling, and put their references to the queue pair twice.
 */
#if KERNEL_VERSION(6, 4, 0) > LINUX_VERSION_CODE
#define DAPX_RXE_SILENT_IN_ERROR true
#else
#define DAPX_RXE_SILENT_IN_ERROR false
#endif

/*
 * Linux 6.10. Earlier kernels' rxe handles a packet in a softirq, or in the thread that sent it
 * over the same device.
 */
#if KERNEL_VERSION(6, 10, 0) > LINUX_VERSION_CODE
#define DAPX_RXE_RECEIVES_IN_WORKER false
#else
#define DAPX_RXE_RECEIVES_IN_WORKER true
#endif

/*
 * Linux 6.5. Earlier kernels cannot choose among the listeners of a message, so all listeners
 * need the right to see everything.
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

/* Linux 7.2 */
#ifndef HAVE_IB_UMEM_GET_VA
#define ib_umem_get_va ib_umem_get
#endif

#endif /* _DAPX_KCOMPAT_H */
