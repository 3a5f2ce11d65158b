/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared receive queues.
 */
#ifndef DAPX_HARNESS_SRQ_H
#define DAPX_HARNESS_SRQ_H

#include "host.h"

struct srq {
	struct host *host;
	__u32 handle;
	struct ring ring;
};

int srq_make(struct host *host, __u32 depth, __u32 max_sge, struct srq *srq);
int srq_resize(struct srq *srq, __u32 depth);
int srq_recv(struct srq *srq, __u64 wr_id, __u32 offset, __u32 length);

#endif /* DAPX_HARNESS_SRQ_H */
