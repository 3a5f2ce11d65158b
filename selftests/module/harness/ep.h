/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Endpoints.
 */
#ifndef DAPX_HARNESS_EP_H
#define DAPX_HARNESS_EP_H

#include "host.h"

#define EP_DEPTH 64
#define EP_INLINE 64

struct ep {
	struct host *host;
	__u32 handle;
	__u32 qp_num;
	struct ring send;
	struct ring recv;
	const __u32 *state;
	struct dapx_ep_attr attr;
};

/* Fills in what a usual endpoint has; change it before ep_make(). */
void ep_usual(const struct host *host, struct dapx_ep_create *cmd);
int ep_make(struct host *host, struct dapx_ep_create *cmd, struct ep *ep);
/* Maps the new rings, and unmaps the old ones. @srq: 0 for none. */
int ep_resize(struct ep *ep, const struct dapx_ep_attr *attr, __u32 srq);
/* Usual endpoint. */
int ep_create(struct host *host, struct ep *ep);
/* Maps the rings of an endpoint that a listener made. */
int ep_adopt(struct host *host, __u32 handle, struct ep *ep);
/* Frees it and unmaps its rings. */
int ep_destroy(struct ep *ep);
/* Only unmaps. */
void ep_forget(struct ep *ep);
__u32 ep_state(const struct ep *ep);
/*
 * The peer refuses what the request does there, and the connection is broken. On
 * iWARP a write is done when it is sent: there the connection's end is all.
 */
int expect_refusal(struct ep *ep, __u64 wr_id);
/* Waits until the endpoint has this state. */
int ep_await_state(const struct ep *ep, __u32 state);
__u32 ep_shown_state(const struct ep *ep);

/*
 * Publishing; @rest are segments, or inline data. Only the doorbell variants
 * tell the kernel, if it asks for that.
 */
int ep_push_send(struct ep *ep, const struct dapx_send_wr *wr, const void *rest);
int ep_push_recv(struct ep *ep, const struct dapx_recv_wr *wr,
		 const struct dapx_sge *sge);
int ep_post_send(struct ep *ep, const struct dapx_send_wr *wr, const void *rest);
int ep_post_recv(struct ep *ep, const struct dapx_recv_wr *wr,
		 const struct dapx_sge *sge);
/* Signalled send, and receive, of one segment of the host's memory. */
int ep_send(struct ep *ep, __u64 wr_id, __u32 offset, __u32 length);
int ep_recv(struct ep *ep, __u64 wr_id, __u32 offset, __u32 length);
/* Signalled, between one local segment and the peer's memory. */
int ep_rdma(struct ep *ep, __u64 wr_id, __u8 opcode, __u32 mr, const __u8 *at,
	    __u32 length, const __u8 *remote, __u32 rkey);
/* One message each way, with its bytes compared: the connection works. */
int ep_exchange(struct ep *a, struct ep *b);
/* Takes both to UNCONNECTED: disconnect, wait for the events, reset, drain. */
int disconnect_reset(struct ep *a, struct ep *b);

#endif /* DAPX_HARNESS_EP_H */
