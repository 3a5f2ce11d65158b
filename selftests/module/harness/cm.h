/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections by the CM: addresses, CM ids, listeners.
 */
#ifndef DAPX_HARNESS_CM_H
#define DAPX_HARNESS_CM_H

#include "ep.h"

/* Has a neighbour entry nowhere: its resolution takes as long as it may. */
#define NOBODY_IP "10.0.0.77"

void set_addr(struct __kernel_sockaddr_storage *addr, const char *ip, __u16 port);
__u16 get_port(const struct __kernel_sockaddr_storage *addr);

/* A CM id of the host, with its events in host->conn. */
#define CM_NEW(host)							\
	test_cmd(cm_create, (host)->fd, .evd = (host)->conn.handle).out_cm
#define CM_QUERY(host, handle)						\
	test_cmd(cm_query, (host)->fd, .cm = (handle))

/* As the commands themselves: -1 with errno, and without a sentence. */
int cm_bind_to(const struct host *host, __u32 cm, const char *ip, __u16 port);
/* @src NULL: what the route says, or what it is bound to. */
int cm_resolve_addr(const struct host *host, __u32 cm, const char *dst,
		    __u16 port, const char *src, unsigned int ms);
int cm_resolve_route(const struct host *host, __u32 cm);
/* Own port of an id; 0 without. */
__u16 cm_local_port(const struct host *host, __u32 cm);

struct listener {
	struct host *host;
	__u32 cm;
	__u16 port;
};

/* Bound to the host's IPv4 address and any free port; events in host->conn. */
int listener_open(struct host *host, struct listener *listener);
int listener_open_as(struct host *host, const struct dapx_cm_listen *mode,
		     struct listener *listener);
int listener_close(struct listener *listener);
/* Takes the next request from the EVD, and acknowledges it. */
int listener_request(struct listener *listener, struct dapx_event *event);

void connect_usual(const struct ep *ep, const struct listener *to,
		   struct dapx_ep_connect *cmd);
/* Sends the request; the answer is up to the listener's owner. */
int ep_connect(struct ep *ep, const struct listener *to);
int ep_accept(struct ep *ep, __u32 request);
/* Takes the queue pair from state @from on to @last, with what the CM knows of the steps. */
int qp_steps(struct ep *ep, const struct dapx_qp_attr *steps, __u32 from, __u32 last);
/* Resolves a new id to the listener, and takes the step to INIT; the request is not sent yet. */
int ep_prepare_steps(struct ep *ep, const struct listener *to, __u32 *cm);
/* The command itself: -1 with errno, and without a sentence. */
int ep_connect_steps(struct ep *ep, __u32 cm);
/* Takes all steps, and then accepts. */
int ep_accept_steps(struct ep *ep, __u32 request);
/* Through @listener, whose host owns @passive; both are CONNECTED afterwards. */
int connect_through(struct ep *active, struct listener *listener,
		    struct ep *passive);
/* The same, with a listener made for it. */
int connect_cm(struct ep *active, struct ep *passive);

#endif /* DAPX_HARNESS_CM_H */
