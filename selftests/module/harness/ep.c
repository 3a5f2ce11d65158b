// SPDX-License-Identifier: GPL-2.0
#include <stdint.h>
#include <string.h>

#include "dice.h"
#include "ep.h"
#include "machine.h"

void ep_usual(const struct host *host, struct dapx_ep_create *cmd)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->pd = host->pd;
	cmd->request_evd = host->done.handle;
	cmd->recv_evd = host->recv.handle;
	cmd->connect_evd = host->conn.handle;
	cmd->attr.send_depth = EP_DEPTH;
	cmd->attr.recv_depth = EP_DEPTH;
	cmd->attr.max_send_sge = host->sge;
	cmd->attr.max_recv_sge = host->sge;
	cmd->attr.max_inline = EP_INLINE;
	cmd->attr.max_rd_atomic = 8;
	cmd->attr.max_dest_rd_atomic = 8;
}

static int ep_map(struct ep *ep, const struct dapx_ring_layout *send,
		  const struct dapx_ring_layout *recv, __u32 state_off)
{
	if (ring_map(ep->host->fd, send, &ep->send))
		return -1;
	ep->state = (__u32 *)((__u8 *)ep->send.map + state_off);
	/* Both are in one mapping. */
	if (recv->depth && recv->mmap_offset == send->mmap_offset) {
		__u8 *map = ep->send.map;

		ep->recv.head = (__u32 *)(map + recv->head_off);
		ep->recv.tail = (__u32 *)(map + recv->tail_off);
		ep->recv.flags = (__u32 *)(map + recv->flags_off);
		ep->recv.entries = map + recv->entries_off;
		ep->recv.stride = recv->stride;
		ep->recv.depth = recv->depth;
		return 0;
	}
	errno = EPROTO;
	if (recv->depth)
		return because("the endpoint's rings are not in one mapping");
	return 0;
}

int ep_make(struct host *host, struct dapx_ep_create *cmd, struct ep *ep)
{
	memset(ep, 0, sizeof(*ep));
	if (_test_cmd_ep_create(host->fd, cmd))
		return because("DAPX_EP_CREATE: %m");
	ep->host = host;
	ep->handle = cmd->out_ep;
	ep->qp_num = cmd->out_qp_num;
	ep->attr = cmd->attr;
	return ep_map(ep, &cmd->out_send_ring, &cmd->out_recv_ring,
		      cmd->out_state_off);
}

int ep_resize(struct ep *ep, const struct dapx_ep_attr *attr, __u32 srq)
{
	struct dapx_ep_resize cmd = { .ep = ep->handle, .srq = srq, .attr = *attr };

	if (_test_cmd_ep_resize(ep->host->fd, &cmd))
		return because("DAPX_EP_RESIZE: %m");
	ep_forget(ep);
	ep->qp_num = cmd.out_qp_num;
	ep->attr = cmd.attr;
	return ep_map(ep, &cmd.out_send_ring, &cmd.out_recv_ring,
		      cmd.out_state_off);
}

int ep_create(struct host *host, struct ep *ep)
{
	struct dapx_ep_create cmd;

	ep_usual(host, &cmd);
	return ep_make(host, &cmd, ep);
}

int ep_adopt(struct host *host, __u32 handle, struct ep *ep)
{
	struct dapx_ep_query query = { .ep = handle };

	memset(ep, 0, sizeof(*ep));
	if (_test_cmd_ep_query(host->fd, &query))
		return because("DAPX_EP_QUERY: %m");
	ep->host = host;
	ep->handle = handle;
	ep->qp_num = query.out_qp_num;
	ep->attr = query.out_attr;
	return ep_map(ep, &query.out_send_ring, &query.out_recv_ring,
		      query.out_state_off);
}

void ep_forget(struct ep *ep)
{
	ring_unmap(&ep->send);
	memset(&ep->recv, 0, sizeof(ep->recv));
	ep->state = NULL;
}

int ep_destroy(struct ep *ep)
{
	struct dapx_free cmd = { .handle = ep->handle, .type = DAPX_OBJECT_EP };
	int ret = _test_cmd_free(ep->host->fd, &cmd);

	if (ret)
		return because("DAPX_FREE of an endpoint: %m");
	ep_forget(ep);
	return 0;
}

__u32 ep_state(const struct ep *ep)
{
	struct dapx_ep_query query = { .ep = ep->handle };

	if (_test_cmd_ep_query(ep->host->fd, &query))
		return ~0u;
	return query.out_state;
}

__u32 ep_shown_state(const struct ep *ep)
{
	return __atomic_load_n(ep->state, __ATOMIC_ACQUIRE);
}

int ep_await_state(const struct ep *ep, __u32 state)
{
	__u64 deadline = in_ms(PATIENCE_MS);

	while (ep_state(ep) != state || ep_shown_state(ep) != state) {
		if (now_ns() > deadline) {
			errno = ETIMEDOUT;
			return because("the endpoint is in state %u (shown %u), not in %u",
				       ep_state(ep), ep_shown_state(ep), state);
		}
		sleep_ms(1);
	}
	return 0;
}

int expect_refusal(struct ep *ep, __u64 wr_id)
{
	struct evd *conn = &ep->host->conn;
	struct dapx_event event;

	if (!on_siw()) {
		if (expect_completion(&ep->host->done, wr_id,
				      DAPX_STATUS_REMOTE_ACCESS, NULL))
			return -1;
		return expect_connection(conn, ep->handle,
					 DAPX_CONNECTION_BROKEN, NULL);
	}
	if (evd_next(&ep->host->done, &event, PATIENCE_MS))
		return -1;
	if (event.type != DAPX_EVENT_COMPLETION ||
	    event.completion.wr_id != wr_id)
		return because("%s instead of 0x%llx", event_text(&event),
			       wr_id);
	if (evd_next_connection(conn, ep->handle, &event))
		return -1;
	if (event.type != DAPX_EVENT_CONNECTION || event.handle != ep->handle ||
	    (event.connection.what != DAPX_CONNECTION_BROKEN &&
	     event.connection.what != DAPX_CONNECTION_DISCONNECTED))
		return because("%s instead of a broken connection",
			       event_text(&event));
	return ep_await_state(ep, DAPX_EP_DISCONNECTED);
}

int ep_push_send(struct ep *ep, const struct dapx_send_wr *wr, const void *rest)
{
	__u8 entry[sizeof(*wr) + 4096];
	size_t size = wr->flags & DAPX_SEND_INLINE ?
		wr->inline_len : wr->num_sge * sizeof(struct dapx_sge);

	memcpy(entry, wr, sizeof(*wr));
	if (size)
		memcpy(entry + sizeof(*wr), rest, size);
	return ring_push(&ep->send, entry, sizeof(*wr) + size);
}

int ep_push_recv(struct ep *ep, const struct dapx_recv_wr *wr,
		 const struct dapx_sge *sge)
{
	__u8 entry[sizeof(*wr) + 4096];
	size_t size = wr->num_sge * sizeof(*sge);

	memcpy(entry, wr, sizeof(*wr));
	if (size)
		memcpy(entry + sizeof(*wr), sge, size);
	return ring_push(&ep->recv, entry, sizeof(*wr) + size);
}

int ep_post_send(struct ep *ep, const struct dapx_send_wr *wr, const void *rest)
{
	if (ep_push_send(ep, wr, rest))
		return -1;
	return ring_bell(ep->host->fd, ep->handle, DAPX_DOORBELL_SEND,
			 &ep->send);
}

int ep_post_recv(struct ep *ep, const struct dapx_recv_wr *wr,
		 const struct dapx_sge *sge)
{
	if (ep_push_recv(ep, wr, sge))
		return -1;
	return ring_bell(ep->host->fd, ep->handle, DAPX_DOORBELL_RECV,
			 &ep->recv);
}

int ep_send(struct ep *ep, __u64 wr_id, __u32 offset, __u32 length)
{
	struct dapx_sge sge = host_sge(ep->host, offset, length);
	struct dapx_send_wr wr = {
		.wr_id = wr_id,
		.opcode = DAPX_OP_SEND,
		.num_sge = 1,
		.flags = DAPX_SEND_SIGNALED,
	};

	return ep_post_send(ep, &wr, &sge);
}

int ep_recv(struct ep *ep, __u64 wr_id, __u32 offset, __u32 length)
{
	struct dapx_sge sge = host_sge(ep->host, offset, length);
	struct dapx_recv_wr wr = { .wr_id = wr_id, .num_sge = 1 };

	return ep_post_recv(ep, &wr, &sge);
}

#define EXCHANGE_BYTES 256

static int ep_one_way(struct ep *from, struct ep *to)
{
	/* The last pages of the memory are kept for this. */
	const __u32 out = HOST_MEMORY - 4096, in = HOST_MEMORY - 8192;
	__u64 wr_id = 0xe000000000000000ULL | dice();
	struct dapx_event event;
	unsigned int i;

	for (i = 0; i < EXCHANGE_BYTES; i++)
		from->host->mem[out + i] = dice();
	memset(to->host->mem + in, 0, EXCHANGE_BYTES);
	if (ep_recv(to, wr_id, in, EXCHANGE_BYTES) ||
	    ep_send(from, wr_id + 1, out, EXCHANGE_BYTES) ||
	    expect_completion(&from->host->done, wr_id + 1,
			      DAPX_STATUS_SUCCESS, NULL) ||
	    expect_completion(&to->host->recv, wr_id, DAPX_STATUS_SUCCESS,
			      &event))
		return -1;
	errno = EPROTO;
	if (event.handle != to->handle ||
	    event.completion.opcode != DAPX_OP_RECV ||
	    event.completion.byte_len != EXCHANGE_BYTES)
		return because("%s instead of a receive of %u bytes",
			       event_text(&event), EXCHANGE_BYTES);
	if (memcmp(from->host->mem + out, to->host->mem + in, EXCHANGE_BYTES))
		return because("the message arrived with other bytes");
	return 0;
}

int ep_exchange(struct ep *a, struct ep *b)
{
	return ep_one_way(a, b) || ep_one_way(b, a) ? -1 : 0;
}

int ep_rdma(struct ep *ep, __u64 wr_id, __u8 opcode, __u32 mr, const __u8 *at,
	    __u32 length, const __u8 *remote, __u32 rkey)
{
	struct dapx_sge sge = {
		.mr = mr, .length = length, .addr = (uintptr_t)at,
	};
	struct dapx_send_wr wr = {
		.wr_id = wr_id, .opcode = opcode, .num_sge = 1,
		.flags = DAPX_SEND_SIGNALED, .rkey = rkey,
		.remote_addr = (uintptr_t)remote,
	};

	return ep_post_send(ep, &wr, &sge);
}

static int ep_disconnect(struct ep *ep)
{
	struct dapx_ep_disconnect cmd = {
		.ep = ep->handle, .flags = DAPX_DISCONNECT_ABRUPT,
	};

	if (_test_cmd_ep_disconnect(ep->host->fd, &cmd))
		return because("DAPX_EP_DISCONNECT: %m");
	return 0;
}

static int ep_reset(struct ep *ep)
{
	struct dapx_ep_reset cmd = { .ep = ep->handle };

	if (_test_cmd_ep_reset(ep->host->fd, &cmd))
		return because("DAPX_EP_RESET: %m");
	ep->qp_num = cmd.out_qp_num;
	return 0;
}

int disconnect_reset(struct ep *a, struct ep *b)
{
	if (ep_disconnect(a) || ep_disconnect(b) ||
	    ep_await_state(a, DAPX_EP_DISCONNECTED) ||
	    ep_await_state(b, DAPX_EP_DISCONNECTED) ||
	    ep_reset(a) || ep_reset(b))
		return -1;
	evd_drain(&a->host->done);
	evd_drain(&a->host->recv);
	evd_drain(&a->host->conn);
	evd_drain(&b->host->done);
	evd_drain(&b->host->recv);
	evd_drain(&b->host->conn);
	return 0;
}
