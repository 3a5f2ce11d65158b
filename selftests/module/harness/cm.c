// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "cm.h"

void set_addr(struct __kernel_sockaddr_storage *addr, const char *ip, __u16 port)
{
	memset(addr, 0, sizeof(*addr));
	if (strchr(ip, ':')) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		inet_pton(AF_INET6, ip, &in6->sin6_addr);
	} else {
		struct sockaddr_in *in = (struct sockaddr_in *)addr;

		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		inet_pton(AF_INET, ip, &in->sin_addr);
	}
}

__u16 get_port(const struct __kernel_sockaddr_storage *addr)
{
	/* The port is at the same place in both families. */
	return ntohs(((const struct sockaddr_in *)addr)->sin_port);
}

int cm_bind_to(const struct host *host, __u32 cm, const char *ip, __u16 port)
{
	struct dapx_cm_bind cmd = { .cm = cm };

	set_addr(&cmd.addr, ip, port);
	return _test_cmd_cm_bind(host->fd, &cmd);
}

int cm_resolve_addr(const struct host *host, __u32 cm, const char *dst,
		    __u16 port, const char *src, unsigned int ms)
{
	struct dapx_cm_resolve cmd = {
		.cm = cm, .what = DAPX_RESOLVE_ADDR, .deadline = in_ms(ms),
	};

	set_addr(&cmd.dst, dst, port);
	if (src)
		set_addr(&cmd.src, src, 0);
	return _test_cmd_cm_resolve(host->fd, &cmd);
}

int cm_resolve_route(const struct host *host, __u32 cm)
{
	struct dapx_cm_resolve cmd = {
		.cm = cm, .what = DAPX_RESOLVE_ROUTE,
		.deadline = in_ms(PATIENCE_MS),
	};

	return _test_cmd_cm_resolve(host->fd, &cmd);
}

__u16 cm_local_port(const struct host *host, __u32 cm)
{
	struct dapx_cm_query query = { .cm = cm };

	return _test_cmd_cm_query(host->fd, &query) ? 0 :
						      get_port(&query.out_local);
}

int listener_open_as(struct host *host, const struct dapx_cm_listen *mode,
		     struct listener *listener)
{
	struct dapx_cm_create create = { .evd = host->conn.handle };
	struct dapx_cm_listen listen = *mode;
	struct dapx_cm_query query = {};
	struct dapx_cm_bind bind = {};

	if (_test_cmd_cm_create(host->fd, &create))
		return because("DAPX_CM_CREATE: %m");
	bind.cm = create.out_cm;
	listen.cm = create.out_cm;
	/*
	 * More than a test has waiting at once. Over iWARP, the module's 1,024 would be twice as
	 * many allocations, and the debug kernel remembers of each who made it and who freed it.
	 */
	if (!listen.backlog)
		listen.backlog = 64;
	query.cm = create.out_cm;
	set_addr(&bind.addr, host->addr, 0);
	if (_test_cmd_cm_bind(host->fd, &bind))
		return because("DAPX_CM_BIND to %s: %m", host->addr);
	if (_test_cmd_cm_listen(host->fd, &listen))
		return because("DAPX_CM_LISTEN: %m");
	if (_test_cmd_cm_query(host->fd, &query))
		return because("DAPX_CM_QUERY: %m");
	listener->host = host;
	listener->cm = create.out_cm;
	listener->port = get_port(&query.out_local);
	errno = EPROTO;
	if (!listener->port)
		return because("a bound listener has no port");
	return 0;
}

int listener_open(struct host *host, struct listener *listener)
{
	struct dapx_cm_listen mode = { .mode = DAPX_LISTEN_CONSUMER };

	return listener_open_as(host, &mode, listener);
}

int listener_close(struct listener *listener)
{
	struct dapx_free cmd = {
		.handle = listener->cm,
		.type = DAPX_OBJECT_CM,
		.flags = DAPX_FREE_NOWAIT,
	};

	if (_test_cmd_free(listener->host->fd, &cmd))
		return because("DAPX_FREE of a listener: %m");
	return 0;
}

int listener_request(struct listener *listener, struct dapx_event *event)
{
	struct dapx_cm_ack ack = { .cm = listener->cm, .events = 1 };

	if (expect_request(&listener->host->conn, listener->cm, event))
		return -1;
	if (_test_cmd_cm_ack(listener->host->fd, &ack))
		return because("DAPX_CM_ACK of a listener: %m");
	return 0;
}

void connect_usual(const struct ep *ep, const struct listener *to,
		   struct dapx_ep_connect *cmd)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->ep = ep->handle;
	set_addr(&cmd->dst, to->host->addr, to->port);
	set_addr(&cmd->src, ep->host->addr, 0);
	cmd->deadline = in_ms(PATIENCE_MS);
	cmd->retry_count = 7;
	cmd->rnr_retry_count = 7;
}

int ep_connect(struct ep *ep, const struct listener *to)
{
	struct dapx_ep_connect cmd;

	connect_usual(ep, to, &cmd);
	if (_test_cmd_ep_connect(ep->host->fd, &cmd))
		return because("DAPX_EP_CONNECT: %m");
	return 0;
}

int ep_accept(struct ep *ep, __u32 request)
{
	struct dapx_ep_accept cmd = {
		.ep = ep->handle, .cm = request, .rnr_retry_count = 7,
	};

	if (_test_cmd_ep_accept(ep->host->fd, &cmd))
		return because("DAPX_EP_ACCEPT: %m");
	return 0;
}

int qp_steps(struct ep *ep, const struct dapx_qp_attr *steps, __u32 from, __u32 last)
{
	struct dapx_ep_modify cmd = {
		.ep = ep->handle, .mask = DAPX_EP_MODIFY_QP, .qp = *steps,
	};

	if (steps->state < last)
		return because("the CM knows the steps up to %u only", steps->state);
	for (cmd.qp.state = from + 1; cmd.qp.state <= last; cmd.qp.state++)
		if (_test_cmd_ep_modify(ep->host->fd, &cmd))
			return because("DAPX_EP_MODIFY to %u: %m", cmd.qp.state);
	return 0;
}

int ep_prepare_steps(struct ep *ep, const struct listener *to, __u32 *cm)
{
	struct host *host = ep->host;
	struct dapx_cm_create made = { .evd = host->conn.handle };
	struct dapx_cm_query query = {};
	struct dapx_cm_ack ack = { .events = 2 };

	if (_test_cmd_cm_create(host->fd, &made))
		return because("DAPX_CM_CREATE: %m");
	*cm = made.out_cm;
	query.cm = *cm;
	ack.cm = *cm;
	if (cm_resolve_addr(host, *cm, to->host->addr, to->port, host->addr, PATIENCE_MS))
		return because("DAPX_CM_RESOLVE, address: %m");
	if (expect_cm(&host->conn, *cm, DAPX_CM_ADDR_RESOLVED, NULL))
		return -1;
	if (cm_resolve_route(host, *cm))
		return because("DAPX_CM_RESOLVE, route: %m");
	if (expect_cm(&host->conn, *cm, DAPX_CM_ROUTE_RESOLVED, NULL))
		return -1;
	if (_test_cmd_cm_ack(host->fd, &ack))
		return because("DAPX_CM_ACK: %m");
	if (_test_cmd_cm_query(host->fd, &query))
		return because("DAPX_CM_QUERY: %m");
	return qp_steps(ep, &query.out_qp, DAPX_QP_RESET, DAPX_QP_INIT);
}

int ep_connect_steps(struct ep *ep, __u32 cm)
{
	struct dapx_ep_connect cmd = {
		.ep = ep->handle,
		.cm = cm,
		.flags = DAPX_CONNECT_STEPS,
		.deadline = in_ms(PATIENCE_MS),
		.retry_count = 7,
		.rnr_retry_count = 7,
	};

	return _test_cmd_ep_connect(ep->host->fd, &cmd);
}

int ep_accept_steps(struct ep *ep, __u32 request)
{
	struct dapx_cm_query query = { .cm = request };
	struct dapx_ep_accept cmd = {
		.ep = ep->handle, .cm = request, .flags = DAPX_CONNECT_STEPS,
		.rnr_retry_count = 7,
	};

	if (_test_cmd_cm_query(ep->host->fd, &query))
		return because("DAPX_CM_QUERY: %m");
	if (qp_steps(ep, &query.out_qp, DAPX_QP_RESET, DAPX_QP_RTS))
		return -1;
	if (_test_cmd_ep_accept(ep->host->fd, &cmd))
		return because("DAPX_EP_ACCEPT: %m");
	return 0;
}

int connect_through(struct ep *active, struct listener *listener,
		    struct ep *passive)
{
	struct dapx_event event;

	if (ep_connect(active, listener) ||
	    listener_request(listener, &event) ||
	    ep_accept(passive, event.request.cm) ||
	    expect_connection(&active->host->conn, active->handle,
			      DAPX_CONNECTION_ESTABLISHED, NULL) ||
	    expect_connection(&passive->host->conn, passive->handle,
			      DAPX_CONNECTION_ESTABLISHED, NULL))
		return -1;
	return 0;
}

int connect_cm(struct ep *active, struct ep *passive)
{
	struct listener listener;

	if (listener_open(passive->host, &listener) ||
	    connect_through(active, &listener, passive) ||
	    listener_close(&listener))
		return -1;
	return 0;
}
