/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections by an exchange of queue pair numbers.
 */
#ifndef DAPX_HARNESS_QP_H
#define DAPX_HARNESS_QP_H

#include "ep.h"

/* What an exchange of QP numbers sets; no options: what is usual. */
struct qp_options {
	__u8 timeout;
	__u8 retry_count;
	__u8 rnr_retry;
	__u8 path_mtu;
	__u8 refused;	/* by an XRC receive queue pair */
};

extern const struct qp_options qp_usual;

/* The number that it has now: each reset gives it another one. */
__u32 qp_number(const struct ep *ep);
int qp_init(struct ep *ep);
int qp_rtr(struct ep *ep, __u32 dest_qp_num, const __u8 dgid[16],
	   const struct qp_options *options);
int qp_rts(struct ep *ep, const struct qp_options *options);
/* Both are CONNECTED afterwards; no event. */
int connect_qp(struct ep *a, struct ep *b, const struct qp_options *options);

#endif /* DAPX_HARNESS_QP_H */
