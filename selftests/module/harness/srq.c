// SPDX-License-Identifier: GPL-2.0
#include "srq.h"

int srq_make(struct host *host, __u32 depth, __u32 max_sge, struct srq *srq)
{
	struct dapx_srq_create cmd = {
		.pd = host->pd, .depth = depth, .max_sge = max_sge,
	};

	if (_test_cmd_srq_create(host->fd, &cmd))
		return because("DAPX_SRQ_CREATE: %m");
	srq->host = host;
	srq->handle = cmd.out_srq;
	return ring_map(host->fd, &cmd.out_ring, &srq->ring);
}

/* Maps the new ring, and unmaps the old one. */
int srq_resize(struct srq *srq, __u32 depth)
{
	struct dapx_srq_resize cmd = { .srq = srq->handle, .depth = depth };

	if (_test_cmd_srq_resize(srq->host->fd, &cmd))
		return because("DAPX_SRQ_RESIZE: %m");
	ring_unmap(&srq->ring);
	return ring_map(srq->host->fd, &cmd.out_ring, &srq->ring);
}

int srq_recv(struct srq *srq, __u64 wr_id, __u32 offset, __u32 length)
{
	struct {
		struct dapx_recv_wr wr;
		struct dapx_sge sge;
	} entry = {
		.wr = { .wr_id = wr_id, .num_sge = 1 },
		.sge = host_sge(srq->host, offset, length),
	};

	if (ring_push(&srq->ring, &entry, sizeof(entry)))
		return -1;
	return ring_bell(srq->host->fd, srq->handle, DAPX_DOORBELL_RECV,
			 &srq->ring);
}
