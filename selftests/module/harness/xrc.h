/* SPDX-License-Identifier: GPL-2.0 */
/*
 * XRC: domains, queues, sending endpoints, receive queue pairs.
 */
#ifndef DAPX_HARNESS_XRC_H
#define DAPX_HARNESS_XRC_H

#include "ep.h"
#include "qp.h"
#include "srq.h"

struct xrc_srq {
	struct srq srq;
	__u32 number;
};

/* Opens the domain of @file, and registers the host's memory for XRC. */
int host_xrc(struct host *host, int file);
/* Its completions come to host->recv. */
int xrc_srq_make(struct host *host, __u32 depth, struct xrc_srq *srq);
/* Its asynchronous events come to @async_evd; 0: to host->recv. */
int xrc_srq_make_with(struct host *host, __u32 depth, __u32 async_evd,
		      struct xrc_srq *srq);
/* The usual sending endpoint. */
void xrc_usual(const struct host *host, struct dapx_ep_create *cmd);
int xrc_ep_create(struct host *host, struct ep *ep);
/* A receive queue pair of the host's domain, with its events in host->conn. */
int xrc_qp_make(struct host *host, __u32 *qp_num);
/* By exchange of numbers, or on iWARP by the CM. */
int xrc_connect(struct ep *ep, struct host *host, __u32 qp_num);
int xrc_connect_cm(struct ep *ep, struct host *host, __u32 qp_num);
int xrc_connect_qp(struct ep *ep, struct host *host, __u32 qp_num,
		   const struct qp_options *options);
/* Signalled, of one segment of the host's memory. */
int xrc_send(struct ep *ep, __u32 srq_num, __u64 wr_id, __u32 offset,
	     __u32 length);

#endif /* DAPX_HARNESS_XRC_H */
