// SPDX-License-Identifier: GPL-2.0
/*
 * Connection management: addresses, listeners, requests and their answers, and
 * the ends that a connection attempt can come to.
 */
#include <arpa/inet.h>
#include <glob.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/dice.h"
#include "harness/fabric.h"
#include "harness/machine.h"
#include "harness/process.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 300

FIXTURE(cm)
{
	struct host a;
	struct host b;
	struct ep ea;
	struct ep eb;
	const struct host *muted;
};

FIXTURE_SETUP(cm)
{
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	OK(ep_create(&self->a, &self->ea));
	OK(ep_create(&self->b, &self->eb));
}

FIXTURE_TEARDOWN(cm)
{
	if (self->muted)
		host_mute(self->muted, false);
	host_close(&self->a);
	host_close(&self->b);
}

static bool is_addr(const struct __kernel_sockaddr_storage *addr,
		    const char *ip)
{
	struct __kernel_sockaddr_storage wanted;

	set_addr(&wanted, ip, get_port(addr));
	if (wanted.ss_family != addr->ss_family)
		return false;
	if (addr->ss_family == AF_INET)
		return !memcmp(&((struct sockaddr_in *)addr)->sin_addr,
			       &((struct sockaddr_in *)&wanted)->sin_addr, 4);
	return !memcmp(&((struct sockaddr_in6 *)addr)->sin6_addr,
		       &((struct sockaddr_in6 *)&wanted)->sin6_addr, 16);
}

static bool local_is(const struct host *host, __u32 cm, const char *ip)
{
	struct dapx_cm_query query = { .cm = cm };

	return !_test_cmd_cm_query(host->fd, &query) &&
	       is_addr(&query.out_local, ip);
}

/* ---- binding and listening ---- */

TEST_F(cm, fresh)
{
	struct dapx_cm_query query;
	__u32 cm;

	cm = test_cmd(cm_create, self->a.fd, .evd = self->a.conn.handle,
		      .user_data = 0x1234567890).out_cm;
	query = CM_QUERY(&self->a, cm);
	EXPECT_EQ(DAPX_CM_IDLE, query.out_state);
	EXPECT_EQ(self->a.conn.handle, query.out_evd);
	EXPECT_EQ(0x1234567890, query.out_user_data);
	EXPECT_EQ(0, query.out_ep);
	EXPECT_EQ(0, query.out_requests);
	EXPECT_EQ(0, query.out_unacked);
	EXPECT_EQ(0, query.out_listener);
	EXPECT_EQ(0, query.out_private_data_len);
	EXPECT_EQ(0, query.out_local.ss_family);
	EXPECT_EQ(0, query.out_remote.ss_family);
	test_cmd(free, self->a.fd, .handle = cm, .type = DAPX_OBJECT_CM);
}

TEST_F(cm, bind_any_port)
{
	struct dapx_cm_query query;
	__u32 first = CM_NEW(&self->a), second = CM_NEW(&self->a);
	__u16 port;

	ASSERT_EQ(0, cm_bind_to(&self->a, first, self->a.addr, 0));
	query = CM_QUERY(&self->a, first);
	EXPECT_EQ(DAPX_CM_BOUND, query.out_state);
	EXPECT_TRUE(is_addr(&query.out_local, self->a.addr));
	port = get_port(&query.out_local);
	EXPECT_NE(0, port);
	ASSERT_EQ(0, cm_bind_to(&self->a, second, self->a.addr, 0));
	EXPECT_NE(port, cm_local_port(&self->a, second));
	EXPECT_NE(0, cm_local_port(&self->a, second));
}

TEST_F(cm, bind_taken_port)
{
	__u32 first = CM_NEW(&self->a), second = CM_NEW(&self->a);
	__u16 port;

	ASSERT_EQ(0, cm_bind_to(&self->a, first, self->a.addr, 0));
	port = cm_local_port(&self->a, first);
	EXPECT_ERRNO(EADDRINUSE, cm_bind_to(&self->a, second, self->a.addr, port));
	EXPECT_EQ(DAPX_CM_IDLE, CM_QUERY(&self->a, second).out_state);
	EXPECT_EQ(0, CM_QUERY(&self->a, second).out_local.ss_family);
	test_cmd(cm_listen, self->a.fd, .cm = first);
	EXPECT_ERRNO(EADDRINUSE, cm_bind_to(&self->a, second, self->a.addr, port));
	/* Of another address it is another port. */
	ASSERT_EQ(0, cm_bind_to(&self->b, CM_NEW(&self->b), self->b.addr, port));
	/* Given back when its owner goes. */
	test_cmd(free, self->a.fd, .handle = first);
	ASSERT_EQ(0, cm_bind_to(&self->a, second, self->a.addr, port));
	EXPECT_EQ(port, cm_local_port(&self->a, second));
}

TEST_F(cm, bind_where)
{
	__u32 cm = CM_NEW(&self->a);

	EXPECT_ERRNO(EADDRNOTAVAIL, cm_bind_to(&self->a, cm, self->b.addr, 0));
	EXPECT_ERRNO(EADDRNOTAVAIL, cm_bind_to(&self->a, cm, self->b.addr6, 0));
	EXPECT_ERRNO(EADDRNOTAVAIL, cm_bind_to(&self->a, cm, "203.0.113.7", 0));
	EXPECT_EQ(DAPX_CM_IDLE, CM_QUERY(&self->a, cm).out_state);
	ASSERT_EQ(0, cm_bind_to(&self->a, cm, self->a.addr6, 0));
	EXPECT_TRUE(local_is(&self->a, cm, self->a.addr6));
	EXPECT_ERRNO(EBADFD, cm_bind_to(&self->a, cm, self->a.addr, 0));
	EXPECT_TRUE(local_is(&self->a, cm, self->a.addr6));

	cm = CM_NEW(&self->a);
	ASSERT_EQ(0, cm_bind_to(&self->a, cm, "0.0.0.0", 0));
	EXPECT_NE(0, cm_local_port(&self->a, cm));
}

TEST_F(cm, listen)
{
	__u32 cm = CM_NEW(&self->a);

	test_err(EBADFD, cm_listen, self->a.fd, .cm = cm);
	ASSERT_EQ(0, cm_bind_to(&self->a, cm, self->a.addr, 0));
	test_cmd(cm_listen, self->a.fd, .cm = cm, .backlog = 3);
	EXPECT_EQ(DAPX_CM_LISTENING, CM_QUERY(&self->a, cm).out_state);
	EXPECT_EQ(DAPX_CM_LISTENING,
		  test_cmd(query_object, self->a.fd, .handle = cm).out_state);
	test_err(EBADFD, cm_listen, self->a.fd, .cm = cm, .backlog = 3);
	EXPECT_ERRNO(EBADFD, cm_bind_to(&self->a, cm, self->a.addr, 0));
	EXPECT_ERRNO(EBADFD, cm_resolve_addr(&self->a, cm, self->b.addr, 1, NULL,
					     PATIENCE_MS));
	test_err(EBADFD, cm_reject, self->a.fd, .cm = cm);
	test_err(EBADFD, ep_accept, self->a.fd, .cm = cm,
		 .ep = self->ea.handle);
}

/* ---- requests ---- */

TEST_F(cm, request)
{
	struct dapx_cm_query query;
	struct dapx_event event;
	struct listener listener;
	__u32 first, second;
	struct ep other;

	OK(listener_open(&self->b, &listener));
	OK(ep_create(&self->a, &other));
	OK(ep_connect(&self->ea, &listener));
	OK(expect_request(&self->b.conn, listener.cm, &event));
	first = event.request.cm;
	query = CM_QUERY(&self->b, first);
	EXPECT_EQ(DAPX_CM_REQUEST, query.out_state);
	EXPECT_EQ(listener.cm, query.out_listener);
	EXPECT_EQ(0, query.out_ep);
	EXPECT_TRUE(is_addr(&query.out_local, self->b.addr));
	EXPECT_TRUE(is_addr(&query.out_remote, self->a.addr));
	EXPECT_EQ(listener.port, get_port(&query.out_local));
	EXPECT_EQ(1, CM_QUERY(&self->b, listener.cm).out_requests);
	EXPECT_EQ(1, CM_QUERY(&self->b, listener.cm).out_unacked);

	OK(ep_connect(&other, &listener));
	OK(expect_request(&self->b.conn, listener.cm, &event));
	second = event.request.cm;
	EXPECT_NE(first, second);
	EXPECT_EQ(2, CM_QUERY(&self->b, listener.cm).out_requests);
	EXPECT_EQ(2, CM_QUERY(&self->b, listener.cm).out_unacked);
	test_err(EINVAL, cm_ack, self->b.fd, .cm = listener.cm, .events = 3);
	test_cmd(cm_ack, self->b.fd, .cm = listener.cm, .events = 2);
	EXPECT_EQ(0, CM_QUERY(&self->b, listener.cm).out_unacked);

	/* Answered in the other order. */
	OK(ep_accept(&self->eb, second));
	OK(expect_connection(&self->a.conn, other.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	EXPECT_EQ(1, CM_QUERY(&self->b, listener.cm).out_requests);
	test_cmd(cm_reject, self->b.fd, .cm = first);
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_PEER_REJECTED, NULL));
	EXPECT_EQ(0, CM_QUERY(&self->b, listener.cm).out_requests);
	test_err(ENOENT, cm_query, self->b.fd, .cm = first);
	test_err(ENOENT, cm_query, self->b.fd, .cm = second);
	test_err(ENOENT, cm_reject, self->b.fd, .cm = first);
}

/* The event tells what the listener was given. */
TEST_F(cm, cookies)
{
	struct dapx_ep_create cmd;
	struct dapx_event event;
	struct listener listener = { .host = &self->b };
	struct ep ep;

	listener.cm = test_cmd(cm_create, self->b.fd, .user_data = 0xabc,
			       .evd = self->b.conn.handle).out_cm;
	ASSERT_EQ(0, cm_bind_to(&self->b, listener.cm, self->b.addr, 0));
	listener.port = cm_local_port(&self->b, listener.cm);
	test_cmd(cm_listen, self->b.fd, .cm = listener.cm);
	ep_usual(&self->a, &cmd);
	cmd.user_data = 0xdef;
	OK(ep_make(&self->a, &cmd, &ep));
	OK(ep_connect(&ep, &listener));
	OK(listener_request(&listener, &event));
	EXPECT_EQ(listener.cm, event.handle);
	EXPECT_EQ(0xabc, event.user_data);
	OK(ep_accept(&self->eb, event.request.cm));
	OK(expect_connection(&self->a.conn, ep.handle,
			     DAPX_CONNECTION_ESTABLISHED, &event));
	EXPECT_EQ(0xdef, event.user_data);
}

FIXTURE(family)
{
	struct host a;
	struct host b;
	struct ep ea;
	struct ep eb;
};

FIXTURE_VARIANT(family)
{
	bool six;
	bool src;
	bool any;
};

FIXTURE_VARIANT_ADD(family, v4)
{
	.src = true,
};

FIXTURE_VARIANT_ADD(family, v6)
{
	.six = true,
	.src = true,
};

FIXTURE_VARIANT_ADD(family, v4_source_by_route)
{
	.src = false,
};

FIXTURE_VARIANT_ADD(family, v6_source_by_route)
{
	.six = true,
};

FIXTURE_VARIANT_ADD(family, v4_to_any)
{
	.src = true,
	.any = true,
};

FIXTURE_VARIANT_ADD(family, v6_to_any)
{
	.six = true,
	.src = true,
	.any = true,
};

FIXTURE_SETUP(family)
{
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	OK(ep_create(&self->a, &self->ea));
	OK(ep_create(&self->b, &self->eb));
}

FIXTURE_TEARDOWN(family)
{
	host_close(&self->a);
	host_close(&self->b);
}

TEST_F(family, connect)
{
	const char *from = variant->six ? self->a.addr6 : self->a.addr;
	const char *to = variant->six ? self->b.addr6 : self->b.addr;
	const char *any = variant->six ? "::" : "0.0.0.0";
	struct dapx_ep_connect cmd = {};
	struct dapx_ep_query query;
	struct listener listener = { .host = &self->b };
	struct dapx_event event;

	listener.cm = CM_NEW(&self->b);
	ASSERT_EQ(0, cm_bind_to(&self->b, listener.cm, variant->any ? any : to, 0))
		TH_LOG("%m");
	test_cmd(cm_listen, self->b.fd, .cm = listener.cm);
	listener.port = cm_local_port(&self->b, listener.cm);
	connect_usual(&self->ea, &listener, &cmd);
	set_addr(&cmd.dst, to, listener.port);
	if (variant->src)
		set_addr(&cmd.src, from, 0);
	else
		memset(&cmd.src, 0, sizeof(cmd.src));
	ASSERT_EQ(0, _test_cmd_ep_connect(self->a.fd, &cmd));
	OK(listener_request(&listener, &event));
	OK(ep_accept(&self->eb, event.request.cm));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	query = test_cmd(ep_query, self->a.fd, .ep = self->ea.handle);
	EXPECT_TRUE(is_addr(&query.out_local, from));
	EXPECT_TRUE(is_addr(&query.out_remote, to));
	query = test_cmd(ep_query, self->b.fd, .ep = self->eb.handle);
	EXPECT_TRUE(is_addr(&query.out_local, to));
	EXPECT_TRUE(is_addr(&query.out_remote, from));
	OK(ep_exchange(&self->ea, &self->eb));
}

/* ---- private data ---- */

static void fill(__u8 *data, unsigned int length, unsigned int seed)
{
	while (length--)
		*data++ = 1 + (seed++ * 7) % 255;
}

/* All of it, then nothing but zeroes. */
static bool has_data(const __u8 *got, __u32 got_len, unsigned int length,
		     unsigned int seed)
{
	__u8 wanted[DAPX_PRIVATE_DATA_MAX] = {};

	fill(wanted, length, seed);
	return got_len >= length && got_len <= DAPX_PRIVATE_DATA_MAX &&
	       !memcmp(got, wanted, sizeof(wanted));
}

TEST_F(cm, private_data)
{
	const unsigned int most_connect = self->a.limits.out_max_connect_data;
	const unsigned int most_accept = self->a.limits.out_max_accept_data;
	const unsigned int lengths[][2] = {
		{ 0, 0 }, { 1, 1 }, { 55, 63 },
		{ most_connect, 64 }, { 56, most_accept },
	};
	struct dapx_ep_connect connect;
	struct dapx_ep_accept accept;
	struct dapx_ep_query end;
	struct dapx_cm_query request;
	struct listener listener;
	struct dapx_event event;
	int i;

	OK(listener_open(&self->b, &listener));
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		connect_usual(&self->ea, &listener, &connect);
		connect.private_data_len = lengths[i][0];
		fill(connect.private_data, lengths[i][0], i);
		ASSERT_EQ(0, _test_cmd_ep_connect(self->a.fd, &connect));
		OK(listener_request(&listener, &event));
		request = CM_QUERY(&self->b, event.request.cm);
		EXPECT_TRUE(has_data(request.out_private_data,
				     request.out_private_data_len,
				     lengths[i][0], i))
			TH_LOG("%u bytes of %u", request.out_private_data_len,
			       lengths[i][0]);
		memset(&accept, 0, sizeof(accept));
		accept.ep = self->eb.handle;
		accept.cm = event.request.cm;
		accept.rnr_retry_count = 7;
		accept.private_data_len = lengths[i][1];
		fill(accept.private_data, lengths[i][1], i + 100);
		ASSERT_EQ(0, _test_cmd_ep_accept(self->b.fd, &accept));
		OK(expect_connection(&self->a.conn, self->ea.handle,
				     DAPX_CONNECTION_ESTABLISHED, NULL));
		OK(expect_connection(&self->b.conn, self->eb.handle,
				     DAPX_CONNECTION_ESTABLISHED, NULL));
		end = test_cmd(ep_query, self->a.fd, .ep = self->ea.handle);
		EXPECT_TRUE(has_data(end.out_private_data,
				     end.out_private_data_len, lengths[i][1],
				     i + 100))
			TH_LOG("%u bytes of %u", end.out_private_data_len,
			       lengths[i][1]);
		/* The other side has nothing of the sort. */
		end = test_cmd(ep_query, self->b.fd, .ep = self->eb.handle);
		EXPECT_EQ(0, end.out_private_data_len);
		OK(disconnect_reset(&self->ea, &self->eb));
	}
	/* A reset endpoint has forgotten it. */
	end = test_cmd(ep_query, self->a.fd, .ep = self->ea.handle);
	EXPECT_EQ(0, end.out_private_data_len);
}

/* What an answer depends on, and what came of it. */
TEST_F(cm, request_tells_what_is_asked)
{
	struct dapx_ep_modify depths = { .mask = DAPX_EP_MODIFY_RD_ATOMIC };
	struct dapx_ep_connect connect;
	struct dapx_cm_query request;
	struct listener listener;
	struct dapx_ep_query end;
	struct dapx_event event;

	depths.ep = self->ea.handle;
	depths.max_rd_atomic = 3;
	depths.max_dest_rd_atomic = 5;
	ASSERT_EQ(0, _test_cmd_ep_modify(self->a.fd, &depths));
	depths.ep = self->eb.handle;
	depths.max_rd_atomic = 4;
	depths.max_dest_rd_atomic = 2;
	ASSERT_EQ(0, _test_cmd_ep_modify(self->b.fd, &depths));
	OK(listener_open(&self->b, &listener));
	EXPECT_EQ(1, CM_QUERY(&self->b, listener.cm).out_port);
	connect_usual(&self->ea, &listener, &connect);
	connect.retry_count = 6;
	connect.rnr_retry_count = 5;
	ASSERT_EQ(0, _test_cmd_ep_connect(self->a.fd, &connect));
	OK(listener_request(&listener, &event));
	request = CM_QUERY(&self->b, event.request.cm);
	EXPECT_EQ(1, request.out_port);
	EXPECT_EQ(0, request.out_srq);
	if (!on_siw()) {
		EXPECT_EQ(self->ea.qp_num, request.out_remote_qp_num);
		EXPECT_EQ(3, request.out_responder_resources);
		EXPECT_EQ(5, request.out_initiator_depth);
		EXPECT_EQ(6, request.out_retry_count);
		EXPECT_EQ(5, request.out_rnr_retry_count);
	}
	end = test_cmd(ep_query, self->b.fd, .ep = self->eb.handle);
	EXPECT_EQ(0, end.out_rd_atomic);
	EXPECT_EQ(0, end.out_dest_rd_atomic);
	OK(ep_accept(&self->eb, event.request.cm));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	end = test_cmd(ep_query, self->a.fd, .ep = self->ea.handle);
	EXPECT_EQ(on_siw() ? 3 : 2, end.out_rd_atomic);
	EXPECT_EQ(on_siw() ? 5 : 4, end.out_dest_rd_atomic);
	end = test_cmd(ep_query, self->b.fd, .ep = self->eb.handle);
	EXPECT_NE(0, end.out_rd_atomic);
	if (!on_siw()) {
		EXPECT_EQ(4, end.out_rd_atomic);
		EXPECT_EQ(2, end.out_dest_rd_atomic);
	}
	OK(disconnect_reset(&self->ea, &self->eb));
	end = test_cmd(ep_query, self->a.fd, .ep = self->ea.handle);
	EXPECT_EQ(0, end.out_rd_atomic);
}

/* By its consumer, or as nobody listens. */
TEST_F(cm, reject_tells_why)
{
	struct listener listener;
	struct dapx_ep_query end;
	struct dapx_event event;

	OK(listener_open(&self->b, &listener));
	OK(ep_connect(&self->ea, &listener));
	OK(listener_request(&listener, &event));
	test_cmd(cm_reject, self->b.fd, .cm = event.request.cm);
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_PEER_REJECTED, NULL));
	end = test_cmd(ep_query, self->a.fd, .ep = self->ea.handle);
	/* siw's own code for a reply that rejects. */
	EXPECT_EQ(on_siw() ? ECONNRESET : 28, end.out_reject_reason);
	test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
	end = test_cmd(ep_query, self->a.fd, .ep = self->ea.handle);
	EXPECT_EQ(0, end.out_reject_reason);
	OK(listener_close(&listener));
	if (on_siw())
		return;
	OK(ep_connect(&self->ea, &listener));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_NON_PEER_REJECTED, NULL));
	end = test_cmd(ep_query, self->a.fd, .ep = self->ea.handle);
	EXPECT_EQ(8, end.out_reject_reason);
}

TEST_F(cm, private_data_of_reject)
{
	const unsigned int lengths[] = {
		0, 1, 64, self->a.limits.out_max_reject_data,
	};
	struct dapx_cm_reject reject;
	struct dapx_ep_query end;
	struct listener listener;
	struct dapx_event event;
	int i;

	OK(listener_open(&self->b, &listener));
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		OK(ep_connect(&self->ea, &listener));
		OK(listener_request(&listener, &event));
		memset(&reject, 0, sizeof(reject));
		reject.cm = event.request.cm;
		reject.private_data_len = lengths[i];
		fill(reject.private_data, lengths[i], i);
		ASSERT_EQ(0, _test_cmd_cm_reject(self->b.fd, &reject));
		OK(expect_connection(&self->a.conn, self->ea.handle,
				     DAPX_CONNECTION_PEER_REJECTED, NULL));
		end = test_cmd(ep_query, self->a.fd, .ep = self->ea.handle);
		EXPECT_EQ(DAPX_EP_DISCONNECTED, end.out_state);
		EXPECT_TRUE(has_data(end.out_private_data,
				     end.out_private_data_len, lengths[i], i))
			TH_LOG("%u bytes of %u", end.out_private_data_len,
			       lengths[i]);
		test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
	}
	OK(connect_through(&self->ea, &listener, &self->eb));
	OK(ep_exchange(&self->ea, &self->eb));
}

/* ---- modes of listening ---- */

TEST_F(cm, reserved)
{
	struct dapx_cm_listen mode = {
		.mode = DAPX_LISTEN_RESERVED, .ep = self->eb.handle,
	};
	struct listener listener;
	struct dapx_event event;
	struct ep other;

	OK(listener_open_as(&self->b, &mode, &listener));
	EXPECT_EQ(DAPX_EP_RESERVED, ep_shown_state(&self->eb));
	EXPECT_EQ(self->eb.handle, CM_QUERY(&self->b, listener.cm).out_ep);
	test_err(EBADFD, free, self->b.fd, .handle = self->eb.handle);
	OK(ep_connect(&self->ea, &listener));
	OK(listener_request(&listener, &event));
	EXPECT_EQ(self->eb.handle, event.request.ep);
	EXPECT_EQ(DAPX_EP_PASSIVE_PENDING, ep_shown_state(&self->eb));
	EXPECT_EQ(self->eb.handle, CM_QUERY(&self->b, event.request.cm).out_ep);
	test_err(EBADFD, free, self->b.fd, .handle = self->eb.handle);

	/* One request, no more. */
	OK(ep_create(&self->a, &other));
	OK(ep_connect(&other, &listener));
	OK(evd_next(&self->a.conn, &event, PATIENCE_MS));
	EXPECT_EQ(other.handle, event.handle);
	EXPECT_TRUE(event.connection.what == DAPX_CONNECTION_PEER_REJECTED ||
		    event.connection.what == DAPX_CONNECTION_NON_PEER_REJECTED)
		TH_LOG("event %u", event.connection.what);
	OK(evd_quiet(&self->b.conn));
}

TEST_F(cm, reserved_accept)
{
	struct dapx_cm_listen mode = {
		.mode = DAPX_LISTEN_RESERVED, .ep = self->eb.handle,
	};
	struct listener listener;
	struct dapx_event event;
	struct ep wrong;

	OK(listener_open_as(&self->b, &mode, &listener));
	OK(ep_connect(&self->ea, &listener));
	OK(listener_request(&listener, &event));
	/* It is for this endpoint; a call that fails changes nothing. */
	OK(ep_create(&self->b, &wrong));
	EXPECT_EQ(-1, ep_accept(&wrong, event.request.cm));
	EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_state(&wrong));
	EXPECT_EQ(DAPX_EP_PASSIVE_PENDING, ep_state(&self->eb));
	OK(ep_accept(&self->eb, event.request.cm));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(ep_exchange(&self->ea, &self->eb));
	OK(listener_close(&listener));
	OK(ep_exchange(&self->ea, &self->eb));
}

TEST_F(cm, reserved_reject)
{
	struct dapx_cm_listen mode = {
		.mode = DAPX_LISTEN_RESERVED, .ep = self->eb.handle,
	};
	struct listener listener;
	struct dapx_event event;

	OK(listener_open_as(&self->b, &mode, &listener));
	OK(ep_connect(&self->ea, &listener));
	OK(listener_request(&listener, &event));
	test_cmd(cm_reject, self->b.fd, .cm = event.request.cm);
	EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_shown_state(&self->eb));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_PEER_REJECTED, NULL));
	OK(listener_close(&listener));
	/* It can be used for another. */
	test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
	OK(connect_cm(&self->ea, &self->eb));
	OK(ep_exchange(&self->ea, &self->eb));
}

TEST_F(cm, reserved_and_released)
{
	struct dapx_cm_listen mode = {
		.mode = DAPX_LISTEN_RESERVED, .ep = self->eb.handle,
	};
	struct listener listener;

	OK(listener_open_as(&self->b, &mode, &listener));
	OK(listener_close(&listener));
	EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_shown_state(&self->eb));
	OK(ep_destroy(&self->eb));
}

/* Asks again and again what a listener has, which may be gone or not be there yet. */
struct asker {
	const struct host *host;
	atomic_uint cm;			/* 0: no more */
	__u32 ep;
	unsigned int wrong;
};

static void *asks(void *arg)
{
	struct asker *asker = arg;
	struct dapx_cm_query query = {};

	while ((query.cm = asker->cm))
		if (!_test_cmd_cm_query(asker->host->fd, &query) && query.out_ep &&
		    query.out_ep != asker->ep)
			asker->wrong++;
	return NULL;
}

/* A listener's endpoint is there or not, whoever looks meanwhile (KCSAN looks, too). */
TEST_F(cm, reserved_while_it_is_queried)
{
	struct dapx_cm_listen mode = {
		.mode = DAPX_LISTEN_RESERVED, .ep = self->eb.handle,
	};
	struct asker asker = { .host = &self->b, .ep = self->eb.handle };
	unsigned int n = count(2000, 10000), round;
	struct listener listener;
	pthread_t thread;

	/* Handles are given out in turn, so the next one is known. */
	asker.cm = CM_NEW(&self->b) + 1;
	ASSERT_EQ(0, pthread_create(&thread, NULL, asks, &asker));
	for (round = 0; round < n; round++) {
		OK(listener_open_as(&self->b, &mode, &listener));
		OK(listener_close(&listener));
		asker.cm = listener.cm + 1;
	}
	asker.cm = 0;
	pthread_join(thread, NULL);
	EXPECT_EQ(0, asker.wrong);
	EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_shown_state(&self->eb));
}

TEST_F(cm, tentative)
{
	struct dapx_cm_listen mode = { .mode = DAPX_LISTEN_TENTATIVE };
	struct dapx_ep_create usual;
	struct dapx_ep_query query;
	struct listener listener;
	struct dapx_event event, again;
	struct ep ep, other;

	ep_usual(&self->b, &usual);
	mode.attr = usual.attr;
	mode.attr.send_depth = 5;
	OK(listener_open_as(&self->b, &mode, &listener));
	OK(ep_connect(&self->ea, &listener));
	OK(listener_request(&listener, &event));
	ASSERT_NE(0, event.request.ep);
	EXPECT_EQ(event.request.ep, CM_QUERY(&self->b, event.request.cm).out_ep);
	query = test_cmd(ep_query, self->b.fd, .ep = event.request.ep);
	EXPECT_EQ(DAPX_EP_TENTATIVE_PENDING, query.out_state);
	EXPECT_EQ(0, query.out_pd);
	EXPECT_EQ(0, query.out_request_evd);
	EXPECT_EQ(0, query.out_recv_evd);
	EXPECT_EQ(0, query.out_connect_evd);
	EXPECT_EQ(8, query.out_attr.send_depth);
	EXPECT_EQ(EP_DEPTH, query.out_attr.recv_depth);
	OK(ep_adopt(&self->b, event.request.ep, &ep));
	EXPECT_EQ(DAPX_EP_TENTATIVE_PENDING, ep_shown_state(&ep));
	test_err(EBADFD, free, self->b.fd, .handle = ep.handle);

	/* Without PD and EVDs it cannot be connected. */
	EXPECT_EQ(-1, ep_accept(&ep, event.request.cm));
	EXPECT_EQ(DAPX_EP_TENTATIVE_PENDING, ep_state(&ep));
	test_cmd(ep_modify, self->b.fd, .ep = ep.handle,
		 .mask = DAPX_EP_MODIFY_PD | DAPX_EP_MODIFY_REQUEST_EVD |
			 DAPX_EP_MODIFY_RECV_EVD | DAPX_EP_MODIFY_CONNECT_EVD |
			 DAPX_EP_MODIFY_USER_DATA,
		 .pd = self->b.pd, .request_evd = self->b.done.handle,
		 .recv_evd = self->b.recv.handle, .user_data = 0x99,
		 .connect_evd = self->b.conn.handle);

	/* Each request has its own. */
	OK(ep_create(&self->a, &other));
	OK(ep_connect(&other, &listener));
	OK(listener_request(&listener, &again));
	EXPECT_NE(event.request.ep, again.request.ep);

	OK(ep_recv(&ep, 1, 0, 64));
	OK(ep_accept(&ep, event.request.cm));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(expect_connection(&self->b.conn, ep.handle,
			     DAPX_CONNECTION_ESTABLISHED, &event));
	EXPECT_EQ(0x99, event.user_data);
	OK(ep_send(&self->ea, 2, 0, 64));
	OK(expect_completion(&self->b.recv, 1, DAPX_STATUS_SUCCESS, &event));
	EXPECT_EQ(0x99, event.user_data);
	OK(expect_completion(&self->a.done, 2, DAPX_STATUS_SUCCESS, NULL));
	OK(ep_exchange(&self->ea, &ep));

	/* One that is rejected goes with its endpoint. */
	test_cmd(cm_reject, self->b.fd, .cm = again.request.cm);
	test_err(ENOENT, ep_query, self->b.fd, .ep = again.request.ep);
	OK(expect_connection(&self->a.conn, other.handle,
			     DAPX_CONNECTION_PEER_REJECTED, NULL));
	/* The accepted one is like any other now. */
	OK(listener_close(&listener));
	OK(ep_exchange(&self->ea, &ep));
	OK(ep_destroy(&ep));
}

TEST_F(cm, backlog)
{
	enum { BACKLOG = 3, TRIED = 6 };
	struct dapx_cm_listen mode = { .backlog = BACKLOG };
	unsigned int rejected = 0, i;
	struct ep ep[TRIED], another;
	__u32 waiting[BACKLOG];
	struct listener listener;
	struct dapx_event event;

	OK(listener_open_as(&self->b, &mode, &listener));
	for (i = 0; i < TRIED; i++) {
		OK(ep_create(&self->a, &ep[i]));
		OK(ep_connect(&ep[i], &listener));
	}
	while (rejected < TRIED - BACKLOG) {
		OK(evd_next(&self->a.conn, &event, PATIENCE_MS));
		EXPECT_TRUE(event.connection.what ==
			    DAPX_CONNECTION_PEER_REJECTED ||
			    event.connection.what ==
			    DAPX_CONNECTION_NON_PEER_REJECTED)
			TH_LOG("event %u", event.connection.what);
		rejected++;
	}
	for (i = 0; i < BACKLOG; i++) {
		OK(expect_request(&self->b.conn, listener.cm, &event));
		waiting[i] = event.request.cm;
	}
	OK(evd_quiet(&self->b.conn));
	EXPECT_EQ(BACKLOG, CM_QUERY(&self->b, listener.cm).out_requests);
	test_cmd(cm_ack, self->b.fd, .cm = listener.cm, .events = BACKLOG);
	/* An answer makes room for one. */
	test_cmd(cm_reject, self->b.fd, .cm = waiting[0]);
	OK(evd_next(&self->a.conn, &event, PATIENCE_MS));
	EXPECT_EQ(DAPX_CONNECTION_PEER_REJECTED, event.connection.what);
	OK(ep_create(&self->a, &another));
	OK(connect_through(&another, &listener, &self->eb));
	EXPECT_EQ(BACKLOG - 1, CM_QUERY(&self->b, listener.cm).out_requests);
}

/* What peers make a listener's process allocate has a limit in bytes as well. */
/* Whoever gets it gives it the sizes that it wants, before it has a PD or after that. */
TEST_F(cm, tentative_resized)
{
	struct dapx_cm_listen mode = { .mode = DAPX_LISTEN_TENTATIVE };
	struct dapx_ep_create usual;
	struct listener listener;
	struct dapx_event event;
	struct dapx_ep_attr attr;
	struct ep ep;

	ep_usual(&self->b, &usual);
	mode.attr = usual.attr;
	mode.attr.recv_depth = 2;
	OK(listener_open_as(&self->b, &mode, &listener));
	OK(ep_connect(&self->ea, &listener));
	OK(listener_request(&listener, &event));
	OK(ep_adopt(&self->b, event.request.ep, &ep));
	attr = usual.attr;
	attr.recv_depth = 2 * EP_DEPTH;
	OK(ep_resize(&ep, &attr, 0));
	EXPECT_EQ(0, ep.qp_num);
	EXPECT_EQ(2 * EP_DEPTH, ep.recv.depth);
	EXPECT_EQ(DAPX_EP_TENTATIVE_PENDING, ep_shown_state(&ep));
	test_cmd(ep_modify, self->b.fd, .ep = ep.handle,
		 .mask = DAPX_EP_MODIFY_PD | DAPX_EP_MODIFY_REQUEST_EVD |
			 DAPX_EP_MODIFY_RECV_EVD | DAPX_EP_MODIFY_CONNECT_EVD,
		 .pd = self->b.pd, .request_evd = self->b.done.handle,
		 .recv_evd = self->b.recv.handle, .connect_evd = self->b.conn.handle);
	attr.send_depth = 2 * EP_DEPTH;
	OK(ep_resize(&ep, &attr, 0));
	EXPECT_NE(0, ep.qp_num);
	EXPECT_EQ(2 * EP_DEPTH, ep.send.depth);
	OK(ep_accept(&ep, event.request.cm));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(expect_connection(&self->b.conn, ep.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(ep_exchange(&self->ea, &ep));
	ep_forget(&ep);
}

TEST_F(cm, tentative_memory)
{
	enum { TRIED = 12, MEMORY = 16 << 20 };
	struct dapx_cm_listen mode = { .mode = DAPX_LISTEN_TENTATIVE };
	const struct dapx_query_device *limits = &self->b.limits;
	unsigned int requests = 0, rejected = 0, entry, i;
	struct listener listener;
	struct dapx_event event;
	struct ep ep[TRIED];

	mode.attr = (struct dapx_ep_attr) {
		.send_depth = limits->out_max_send_depth,
		.recv_depth = limits->out_max_recv_depth,
		.max_send_sge = 1, .max_recv_sge = 1,
	};
	OK(listener_open_as(&self->b, &mode, &listener));
	for (i = 0; i < TRIED; i++) {
		OK(ep_create(&self->a, &ep[i]));
		OK(ep_connect(&ep[i], &listener));
	}
	while (requests + rejected < TRIED) {
		if (evd_poll(&self->b.conn, &event))
			requests++;
		else if (evd_poll(&self->a.conn, &event))
			rejected++;
		else
			sleep_ms(1);
	}
	entry = sizeof(struct dapx_send_wr) + sizeof(struct dapx_recv_wr);
	EXPECT_LT(0, requests);
	EXPECT_LT(0, rejected);
	EXPECT_GE(MEMORY, (requests - 1) * limits->out_max_send_depth * entry);
	test_cmd(cm_ack, self->b.fd, .cm = listener.cm, .events = requests);
	OK(listener_close(&listener));
	for (i = 0; i < TRIED; i++)
		OK(ep_destroy(&ep[i]));
}

/* ---- requests that become ids of their own ---- */

#define TAKE(host, cm_, evd_, data)					\
	test_cmd(cm_take, (host)->fd, .cm = (cm_), .evd = (evd_)->handle, \
		 .user_data = (data))

TEST_F(cm, taken)
{
	enum { ACCEPT, REJECT, FREE, ENDS };
	struct dapx_ep_connect connect;
	struct dapx_cm_query query;
	struct listener listener;
	struct dapx_event event;
	struct evd evd;
	__u32 request;
	int how;

	OK(evd_make(self->b.fd, 8, 0, &evd));
	OK(listener_open(&self->b, &listener));
	test_err(EBADFD, cm_take, self->b.fd, .cm = listener.cm,
		 .evd = evd.handle);
	for (how = 0; how < ENDS; how++) {
		connect_usual(&self->ea, &listener, &connect);
		connect.private_data_len = 40;
		fill(connect.private_data, 40, how);
		ASSERT_EQ(0, _test_cmd_ep_connect(self->a.fd, &connect));
		OK(listener_request(&listener, &event));
		request = event.request.cm;
		test_err(ENOENT, cm_take, self->b.fd, .cm = request,
			 .evd = NO_HANDLE);
		EXPECT_EQ(1, CM_QUERY(&self->b, listener.cm).out_requests);
		TAKE(&self->b, request, &evd, 0x7a4e0 + how);
		query = CM_QUERY(&self->b, request);
		EXPECT_EQ(DAPX_CM_REQUEST, query.out_state);
		EXPECT_EQ(0, query.out_listener);
		EXPECT_EQ(evd.handle, query.out_evd);
		EXPECT_EQ(0x7a4e0 + how, query.out_user_data);
		EXPECT_EQ(0, query.out_ep);
		EXPECT_EQ(0, query.out_unacked);
		EXPECT_EQ(0, query.out_xrc);
		EXPECT_TRUE(has_data(query.out_private_data,
				     query.out_private_data_len, 40, how));
		EXPECT_TRUE(is_addr(&query.out_local, self->b.addr));
		EXPECT_TRUE(is_addr(&query.out_remote, self->a.addr));
		EXPECT_EQ(0, CM_QUERY(&self->b, listener.cm).out_requests);
		EXPECT_EQ(1, users_of(&self->b, evd.handle));
		test_err(EBUSY, free, self->b.fd, .handle = evd.handle);
		/* Once. */
		test_err(EBADFD, cm_take, self->b.fd, .cm = request,
			 .evd = self->b.conn.handle);
		test_err(EBADFD, cm_listen, self->b.fd, .cm = request);
		EXPECT_ERRNO(EBADFD, cm_bind_to(&self->b, request,
						self->b.addr, 0));
		switch (how) {
		case ACCEPT:
			OK(ep_accept(&self->eb, request));
			OK(expect_connection(&self->a.conn, self->ea.handle,
					     DAPX_CONNECTION_ESTABLISHED, NULL));
			OK(expect_connection(&self->b.conn, self->eb.handle,
					     DAPX_CONNECTION_ESTABLISHED, NULL));
			OK(ep_exchange(&self->ea, &self->eb));
			OK(disconnect_reset(&self->ea, &self->eb));
			break;
		case REJECT:
			test_cmd(cm_reject, self->b.fd, .cm = request,
				 .private_data_len = 3,
				 .private_data = { 1, 2, 3 });
			OK(expect_connection(&self->a.conn, self->ea.handle,
					     DAPX_CONNECTION_PEER_REJECTED,
					     NULL));
			EXPECT_EQ(3, test_cmd(ep_query, self->a.fd,
					      .ep = self->ea.handle)
				     .out_private_data[2]);
			test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
			break;
		case FREE:
			test_cmd(free, self->b.fd, .handle = request,
				 .type = DAPX_OBJECT_CM);
			OK(evd_next(&self->a.conn, &event, PATIENCE_MS));
			EXPECT_EQ(DAPX_EVENT_CONNECTION, event.type);
			EXPECT_EQ(DAPX_EP_DISCONNECTED,
				  ep_shown_state(&self->ea));
			test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
			break;
		}
		test_err(ENOENT, cm_query, self->b.fd, .cm = request);
		test_err(ENOENT, cm_take, self->b.fd, .cm = request,
			 .evd = evd.handle);
		EXPECT_EQ(0, users_of(&self->b, evd.handle));
		OK(evd_quiet(&evd));
	}
	/* The listener is as before. */
	OK(connect_through(&self->ea, &listener, &self->eb));
	test_cmd(free, self->b.fd, .handle = evd.handle);
}

/* The listener's limit is on those that it has. */
TEST_F(cm, taken_out_of_the_backlog)
{
	struct dapx_cm_listen mode = { .backlog = 1 };
	struct listener listener;
	struct dapx_event event;
	struct ep ep[3], peer;
	__u32 request[3];
	int i;

	OK(listener_open_as(&self->b, &mode, &listener));
	for (i = 0; i < 3; i++) {
		OK(ep_create(&self->a, &ep[i]));
		OK(ep_connect(&ep[i], &listener));
		OK(listener_request(&listener, &event));
		request[i] = event.request.cm;
		TAKE(&self->b, request[i], &self->b.conn, i);
		EXPECT_EQ(0, CM_QUERY(&self->b, listener.cm).out_requests);
	}
	/* It goes at once, and takes none along. */
	OK(listener_close(&listener));
	for (i = 3; i--; ) {
		OK(ep_create(&self->b, &peer));
		OK(ep_accept(&peer, request[i]));
		OK(expect_connection(&self->a.conn, ep[i].handle,
				     DAPX_CONNECTION_ESTABLISHED, NULL));
		OK(expect_connection(&self->b.conn, peer.handle,
				     DAPX_CONNECTION_ESTABLISHED, NULL));
		OK(ep_exchange(&ep[i], &peer));
		ep_forget(&peer);
		ep_forget(&ep[i]);
	}
}

/* What a listener has an endpoint for stays with it. */
TEST_F(cm, not_taken)
{
	struct dapx_cm_listen mode = {};
	struct dapx_ep_create usual;
	struct listener listener;
	struct dapx_event event;
	struct ep peer;

	ep_usual(&self->b, &usual);
	for (mode.mode = DAPX_LISTEN_RESERVED;
	     mode.mode <= DAPX_LISTEN_TENTATIVE; mode.mode++) {
		bool reserved = mode.mode == DAPX_LISTEN_RESERVED;

		mode.ep = reserved ? self->eb.handle : 0;
		memset(&mode.attr, 0, sizeof(mode.attr));
		if (!reserved)
			mode.attr = usual.attr;
		OK(ep_create(&self->a, &peer));
		OK(listener_open_as(&self->b, &mode, &listener));
		OK(ep_connect(&peer, &listener));
		OK(listener_request(&listener, &event));
		test_err(EINVAL, cm_take, self->b.fd, .cm = event.request.cm,
			 .evd = self->b.conn.handle);
		EXPECT_EQ(1, CM_QUERY(&self->b, listener.cm).out_requests);
		EXPECT_EQ(listener.cm, CM_QUERY(&self->b, event.request.cm)
				       .out_listener);
		test_cmd(cm_reject, self->b.fd, .cm = event.request.cm);
		OK(expect_connection(&self->a.conn, peer.handle,
				     DAPX_CONNECTION_PEER_REJECTED, NULL));
		OK(listener_close(&listener));
		ep_forget(&peer);
	}
}

/* Before it is taken, or after: there is one event of it, for who took it. */
TEST_F(cm, taken_and_withdrawn)
{
	struct listener listener;
	struct dapx_event event;
	struct evd evd;
	__u32 request;
	int late;

	if (on_siw())
		SKIP(return, "iWARP does not tell before a request is accepted");
	OK(evd_make(self->b.fd, 8, 0, &evd));
	OK(listener_open(&self->b, &listener));
	for (late = 0; late < 2; late++) {
		OK(ep_connect(&self->ea, &listener));
		OK(listener_request(&listener, &event));
		request = event.request.cm;
		if (!late)
			TAKE(&self->b, request, &evd, 0x90e);
		test_cmd(ep_disconnect, self->a.fd, .ep = self->ea.handle);
		OK(expect_connection(&self->a.conn, self->ea.handle,
				     DAPX_CONNECTION_DISCONNECTED, NULL));
		test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
		if (late) {
			sleep_ms(10 * GLANCE_MS);
			EXPECT_EQ(DAPX_CM_REQUEST,
				  CM_QUERY(&self->b, request).out_state);
			TAKE(&self->b, request, &evd, 0x90e);
		}
		OK(expect_cm(&evd, request, DAPX_CM_REQUEST_ENDED, &event));
		EXPECT_EQ(0x90e, event.user_data);
		EXPECT_EQ(-ECONNREFUSED, event.cm.error);
		EXPECT_EQ(DAPX_CM_ENDED, CM_QUERY(&self->b, request).out_state);
		EXPECT_EQ(1, CM_QUERY(&self->b, request).out_unacked);
		test_err(EBADFD, ep_accept, self->b.fd, .cm = request,
			 .ep = self->eb.handle);
		test_err(EBADFD, cm_reject, self->b.fd, .cm = request);
		test_err(EBADFD, cm_take, self->b.fd, .cm = request,
			 .evd = evd.handle);
		test_err(EBUSY, free, self->b.fd, .handle = request,
			 .flags = DAPX_FREE_NOWAIT);
		test_cmd(cm_ack, self->b.fd, .cm = request, .events = 1);
		test_cmd(free, self->b.fd, .handle = request);
		OK(evd_quiet(&evd));
	}
	/* Of one that nobody took there is none; that it is gone shows when it is accepted. */
	OK(ep_connect(&self->ea, &listener));
	OK(listener_request(&listener, &event));
	test_cmd(ep_disconnect, self->a.fd, .ep = self->ea.handle);
	sleep_ms(10 * GLANCE_MS);
	OK(evd_quiet(&self->b.conn));
	test_err(EBADFD, ep_accept, self->b.fd, .cm = event.request.cm,
		 .ep = self->eb.handle);
	test_cmd(free, self->b.fd, .handle = event.request.cm);
	EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_shown_state(&self->eb));
}

/* The listener's own event may still wait for room: it does not come any more. */
TEST_F(cm, taken_before_it_was_announced)
{
	struct listener listener;
	struct dapx_query_object object = { .flags = DAPX_QUERY_NEXT };
	__u64 deadline = in_ms(PATIENCE_MS);
	struct dapx_event event;
	struct evd small, evd;
	__u32 conn;

	OK(evd_make(self->b.fd, 1, 0, &small));
	OK(evd_make(self->b.fd, 8, 0, &evd));
	test_cmd(evd_post, self->b.fd, .evd = small.handle);
	conn = self->b.conn.handle;
	self->b.conn.handle = small.handle;
	OK(listener_open(&self->b, &listener));
	self->b.conn.handle = conn;
	OK(ep_connect(&self->ea, &listener));
	while (!CM_QUERY(&self->b, listener.cm).out_unacked) {
		ASSERT_GT(deadline, now_ns());
		sleep_ms(1);
	}
	object.handle = listener.cm;
	object.type = DAPX_OBJECT_CM;
	ASSERT_EQ(0, _test_cmd_query_object(self->b.fd, &object));
	TAKE(&self->b, object.out_handle, &evd, 0);
	ASSERT_TRUE(evd_poll(&small, &event));
	EXPECT_EQ(DAPX_EVENT_SOFTWARE, event.type);
	OK(evd_quiet(&small));
	test_cmd(cm_ack, self->b.fd, .cm = listener.cm, .events = 1);
	OK(listener_close(&listener));
	test_cmd(free, self->b.fd, .handle = small.handle);
	OK(ep_accept(&self->eb, object.out_handle));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
}

/* ---- attempts that come to nothing ---- */

TEST_F(cm, nobody_listens)
{
	struct listener nobody = { .host = &self->b, .port = 1 };

	OK(ep_connect(&self->ea, &nobody));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_NON_PEER_REJECTED, NULL));
	EXPECT_EQ(DAPX_EP_DISCONNECTED, ep_shown_state(&self->ea));
	OK(evd_quiet(&self->a.conn));
	test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
	OK(connect_cm(&self->ea, &self->eb));
}

static int connect_nowhere(struct host *host, struct ep *ep, const char *ip,
			   bool by_route, unsigned int ms)
{
	struct listener nobody = { .host = host, .port = 7 };
	struct dapx_ep_connect cmd;

	connect_usual(ep, &nobody, &cmd);
	set_addr(&cmd.dst, ip, 7);
	if (by_route)
		memset(&cmd.src, 0, sizeof(cmd.src));
	cmd.deadline = in_ms(ms);
	return _test_cmd_ep_connect(host->fd, &cmd);
}

TEST_F(cm, unreachable)
{
	OK(ep_recv(&self->ea, 1, 0, 8));
	run("ip route delete unreachable 203.0.113.0/24");
	ASSERT_EQ(0, run("ip route add unreachable 203.0.113.0/24"));
	/* With a source, its device would be searched for a neighbour. */
	ASSERT_EQ(0, connect_nowhere(&self->a, &self->ea, "203.0.113.7", true,
				     PATIENCE_MS / 2))
		TH_LOG("%s", strerror(errno));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_UNREACHABLE, NULL));
	run("ip route delete unreachable 203.0.113.0/24");
	EXPECT_EQ(DAPX_EP_DISCONNECTED, ep_shown_state(&self->ea));
	/* Its receives are flushed as those of any that disconnects. */
	OK(expect_completion(&self->a.recv, 1, DAPX_STATUS_FLUSHED, NULL));
	test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
}

/* A neighbour that does not answer. */
TEST_F(cm, no_neighbour)
{
	struct dapx_event event;

	ASSERT_EQ(0, connect_nowhere(&self->a, &self->ea, "10.0.0.77", false,
				     1000));
	OK(evd_next(&self->a.conn, &event, PATIENCE_MS));
	EXPECT_EQ(DAPX_EVENT_CONNECTION, event.type);
	EXPECT_EQ(self->ea.handle, event.handle);
	EXPECT_TRUE(event.connection.what == DAPX_CONNECTION_UNREACHABLE ||
		    event.connection.what == DAPX_CONNECTION_TIMED_OUT)
		TH_LOG("event %u, error %d", event.connection.what,
		       event.connection.error);
	EXPECT_EQ(DAPX_EP_DISCONNECTED, ep_shown_state(&self->ea));
}

/* A peer that says nothing holds up nobody: neither who connects meanwhile, nor who gives up. */
TEST_F(cm, silent_peer)
{
	const char *dev = getenv("DAPX_NETDEV");
	struct listener listener;
	struct ep other;
	__u64 start;

	run("ip neigh replace 10.0.0.99 lladdr 02:da:00:00:00:99 nud permanent dev %s", dev);
	ASSERT_EQ(0, run("ip route replace 10.0.0.99 dev %s src %s", dev, self->a.addr));
	ASSERT_EQ(0, connect_nowhere(&self->a, &self->ea, "10.0.0.99", false, PATIENCE_MS * 100));

	OK(listener_open(&self->b, &listener));
	OK(ep_create(&self->a, &other));
	OK(connect_through(&other, &listener, &self->eb));
	OK(ep_exchange(&other, &self->eb));

	start = now_ns();
	EXPECT_EQ(DAPX_EP_ACTIVE_PENDING, ep_shown_state(&self->ea));
	OK(ep_destroy(&self->ea));
	EXPECT_GT(10ULL * 1000000000, now_ns() - start);
	run("ip route delete 10.0.0.99 dev %s", dev);
	run("ip neigh delete 10.0.0.99 dev %s", dev);
}

#define SILENT_PEERS 6

/* How many threads connect, on iWARP. */
static unsigned int connecting(void)
{
	unsigned int found = 0;
	glob_t threads;
	const char *name;
	size_t i;

	if (glob("/proc/[0-9]*/comm", 0, NULL, &threads))
		return 0;
	for (i = 0; i < threads.gl_pathc; i++) {
		name = read_line(threads.gl_pathv[i]);
		found += name && !strcmp(name, "dapx_connect");
	}
	globfree(&threads);
	return found;
}

static pid_t connects_to_silent_peers(void)
{
	struct ep ep[SILENT_PEERS];
	struct host host;
	pid_t pid = fork();
	int i;

	if (pid)
		return pid;
	if (host_set_up(&host, 0))
		_exit(1);
	for (i = 0; i < SILENT_PEERS; i++)
		if (ep_create(&host, &ep[i]) ||
		    connect_nowhere(&host, &ep[i], "10.0.0.99", false, PATIENCE_MS * 100))
			_exit(2);
	for (;;)
		pause();
}

/* The end of a process takes no longer with several of them than with one. */
TEST_F(cm, silent_peers_of_a_killed_process)
{
	const char *dev = getenv("DAPX_NETDEV");
	__u64 deadline = in_ms(PATIENCE_MS), start, took;
	pid_t pid;

	if (!on_siw())
		SKIP(return, "only an iWARP driver waits for a peer");
	run("ip neigh replace 10.0.0.99 lladdr 02:da:00:00:00:99 nud permanent dev %s", dev);
	ASSERT_EQ(0, run("ip route replace 10.0.0.99 dev %s src %s", dev, self->a.addr));
	pid = connects_to_silent_peers();
	ASSERT_LT(0, pid);
	while (connecting() < SILENT_PEERS && now_ns() < deadline)
		sleep_ms(1);
	EXPECT_EQ(SILENT_PEERS, connecting());
	start = now_ns();
	ASSERT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(256 + SIGKILL, wait_for(pid));
	took = now_ns() - start;
	if (in_virtual_time())
		EXPECT_GT(SILENT_PEERS / 2 * 1000000000ULL, took)
			TH_LOG("%llu ms", (unsigned long long)took / 1000000);
	run("ip route delete 10.0.0.99 dev %s", dev);
	run("ip neigh delete 10.0.0.99 dev %s", dev);
}

/* An address that another device than the attached one would reach. */
TEST_F(cm, over_another_device)
{
	struct listener listener;
	struct dapx_ep_connect cmd;

	OK(listener_open(&self->a, &listener));
	connect_usual(&self->ea, &listener, &cmd);
	set_addr(&cmd.src, self->b.addr, 0);
	ASSERT_EQ(0, _test_cmd_ep_connect(self->a.fd, &cmd));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_UNREACHABLE, NULL));
	EXPECT_EQ(DAPX_EP_DISCONNECTED, ep_shown_state(&self->ea));
}

TEST_F(cm, deadline)
{
	struct listener listener;
	struct dapx_ep_connect cmd;
	struct dapx_event event;
	unsigned int ms = 500;
	__u64 start, took;
	int past, ret;

	OK(listener_open(&self->b, &listener));
	for (past = 0; past < 2; past++) {
		connect_usual(&self->ea, &listener, &cmd);
		start = now_ns();
		cmd.deadline = past ? start - 1 : start + ms * 1000000ULL;
		ASSERT_EQ(0, _test_cmd_ep_connect(self->a.fd, &cmd));
		OK(expect_connection(&self->a.conn, self->ea.handle,
				     DAPX_CONNECTION_TIMED_OUT, NULL));
		took = now_ns() - start;
		EXPECT_GT((ms + PATIENCE_MS) * 1000000ULL, took);
		if (!past)
			EXPECT_LE(ms * 1000000ULL, took);
		EXPECT_EQ(DAPX_EP_DISCONNECTED, ep_shown_state(&self->ea));
		test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
		if (past)
			continue;
		/* A machine that is busy may not get as far as a request. */
		if (evd_next(&self->b.conn, &event, GLANCE_MS)) {
			ms *= 2;
			ASSERT_GT(PATIENCE_MS, ms) TH_LOG("no request comes");
			past--;
			continue;
		}
		ASSERT_EQ(DAPX_EVENT_CONNECT_REQUEST, event.type);
		test_cmd(cm_ack, self->b.fd, .cm = listener.cm, .events = 1);
		/* An answer that comes too late ends in an error. */
		ret = _test_cmd(ep_accept, self->b.fd, .ep = self->eb.handle,
				.cm = event.request.cm, .rnr_retry_count = 7);
		if (ret)
			continue;
		OK(evd_next(&self->b.conn, &event, PATIENCE_MS));
		/* iWARP accepts before it hears that nobody is there. */
		if (on_siw() && event.type == DAPX_EVENT_CONNECTION &&
		    event.connection.what == DAPX_CONNECTION_ESTABLISHED)
			OK(evd_next(&self->b.conn, &event, PATIENCE_MS));
		EXPECT_EQ(DAPX_EVENT_CONNECTION, event.type);
		EXPECT_TRUE(event.connection.what ==
			    DAPX_CONNECTION_ACCEPT_ERROR ||
			    event.connection.what ==
			    DAPX_CONNECTION_DISCONNECTED)
			TH_LOG("event %u", event.connection.what);
		EXPECT_EQ(DAPX_EP_DISCONNECTED, ep_state(&self->eb));
		test_cmd(ep_reset, self->b.fd, .ep = self->eb.handle);
	}
	OK(listener_close(&listener));
	evd_drain(&self->b.conn);
	OK(connect_cm(&self->ea, &self->eb));
}

TEST_F(cm, aborted_by_disconnect)
{
	struct listener listener;
	struct dapx_event event;

	OK(listener_open(&self->b, &listener));
	OK(ep_recv(&self->ea, 1, 0, 8));
	OK(ep_connect(&self->ea, &listener));
	OK(listener_request(&listener, &event));
	test_cmd(ep_disconnect, self->a.fd, .ep = self->ea.handle);
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_DISCONNECTED, NULL));
	EXPECT_EQ(DAPX_EP_DISCONNECTED, ep_shown_state(&self->ea));
	OK(expect_completion(&self->a.recv, 1, DAPX_STATUS_FLUSHED, NULL));
	OK(evd_quiet(&self->a.conn));
	test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
}

/* The peer's word that it is connected is lost, and then it says goodbye. */
TEST_F(cm, goodbye_before_the_last_word)
{
	struct listener listener;
	struct dapx_event event;

	if (on_siw())
		SKIP(return, "an iWARP connection has no third message");
	OK(listener_open(&self->b, &listener));
	OK(ep_connect(&self->ea, &listener));
	OK(listener_request(&listener, &event));
	OK(host_mute(&self->a, true));
	OK(ep_accept(&self->eb, event.request.cm));
	EXPECT_EQ(0, expect_connection(&self->a.conn, self->ea.handle,
				       DAPX_CONNECTION_ESTABLISHED, NULL))
		TH_LOG("%s", why());
	EXPECT_EQ(DAPX_EP_COMPLETION_PENDING, ep_shown_state(&self->eb));
	OK(host_mute(&self->a, false));
	test_cmd(ep_disconnect, self->a.fd, .ep = self->ea.handle);
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_DISCONNECTED, NULL));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_DISCONNECTED, NULL));
}

/* ---- resolving step by step ---- */

TEST_F(cm, resolve)
{
	struct dapx_cm_query query;
	struct listener listener;
	struct dapx_event event;
	__u32 cm = CM_NEW(&self->a);

	OK(listener_open(&self->b, &listener));
	EXPECT_ERRNO(EBADFD, cm_resolve_route(&self->a, cm));
	ASSERT_EQ(0, cm_resolve_addr(&self->a, cm, self->b.addr, listener.port,
				     self->a.addr, PATIENCE_MS));
	OK(expect_cm(&self->a.conn, cm, DAPX_CM_ADDR_RESOLVED, &event));
	EXPECT_EQ(0, event.cm.error);
	query = CM_QUERY(&self->a, cm);
	EXPECT_EQ(DAPX_CM_ADDR_READY, query.out_state);
	EXPECT_EQ(1, query.out_unacked);
	EXPECT_TRUE(is_addr(&query.out_local, self->a.addr));
	EXPECT_TRUE(is_addr(&query.out_remote, self->b.addr));
	EXPECT_EQ(listener.port, get_port(&query.out_remote));
	EXPECT_ERRNO(EBADFD, cm_resolve_addr(&self->a, cm, self->b.addr, 1,
					     self->a.addr, PATIENCE_MS));
	test_err(EBADFD, ep_connect, self->a.fd, .ep = self->ea.handle,
		 .cm = cm, .deadline = DAPX_NO_DEADLINE);

	ASSERT_EQ(0, cm_resolve_route(&self->a, cm));
	OK(expect_cm(&self->a.conn, cm, DAPX_CM_ROUTE_RESOLVED, NULL));
	EXPECT_EQ(DAPX_CM_ROUTE_READY, CM_QUERY(&self->a, cm).out_state);
	EXPECT_EQ(2, CM_QUERY(&self->a, cm).out_unacked);
	test_cmd(ep_connect, self->a.fd, .ep = self->ea.handle, .cm = cm,
		 .deadline = DAPX_NO_DEADLINE, .retry_count = 7,
		 .rnr_retry_count = 7);
	query = CM_QUERY(&self->a, cm);
	EXPECT_EQ(DAPX_CM_ATTACHED, query.out_state);
	EXPECT_EQ(self->ea.handle, query.out_ep);
	EXPECT_EQ(cm, test_cmd(ep_query, self->a.fd,
			       .ep = self->ea.handle).out_cm);
	OK(listener_request(&listener, &event));
	OK(ep_accept(&self->eb, event.request.cm));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(ep_exchange(&self->ea, &self->eb));
}

/* What was bound is where it comes from. */
TEST_F(cm, resolve_bound)
{
	__u32 cm = CM_NEW(&self->a);
	__u16 port;

	ASSERT_EQ(0, cm_bind_to(&self->a, cm, self->a.addr, 0));
	port = cm_local_port(&self->a, cm);
	ASSERT_EQ(0, cm_resolve_addr(&self->a, cm, self->b.addr, 7, NULL,
				     PATIENCE_MS));
	OK(expect_cm(&self->a.conn, cm, DAPX_CM_ADDR_RESOLVED, NULL));
	EXPECT_EQ(port, cm_local_port(&self->a, cm));
	EXPECT_TRUE(local_is(&self->a, cm, self->a.addr));
}

TEST_F(cm, resolve_errors)
{
	struct dapx_event event;
	__u32 cm = CM_NEW(&self->a);

	ASSERT_EQ(0, cm_resolve_addr(&self->a, cm, "203.0.113.7", 7, self->a.addr,
				     1000));
	OK(expect_cm(&self->a.conn, cm, DAPX_CM_ADDR_ERROR, &event));
	EXPECT_GT(0, event.cm.error);
	EXPECT_EQ(DAPX_CM_BOUND, CM_QUERY(&self->a, cm).out_state);
	EXPECT_ERRNO(EBADFD, cm_resolve_route(&self->a, cm));
	EXPECT_ERRNO(EBADFD, cm_bind_to(&self->a, cm, self->a.addr, 0));
	/* Another address may be tried. */
	ASSERT_EQ(0, cm_resolve_addr(&self->a, cm, self->b.addr, 7, NULL,
				     PATIENCE_MS));
	OK(expect_cm(&self->a.conn, cm, DAPX_CM_ADDR_RESOLVED, NULL));

	/* A route that is known to lead nowhere. */
	cm = CM_NEW(&self->a);
	run("ip route delete unreachable 203.0.113.0/24");
	ASSERT_EQ(0, run("ip route add unreachable 203.0.113.0/24"));
	ASSERT_EQ(0, cm_resolve_addr(&self->a, cm, "203.0.113.7", 7, NULL,
				     PATIENCE_MS));
	run("ip route delete unreachable 203.0.113.0/24");
	OK(expect_cm(&self->a.conn, cm, DAPX_CM_ADDR_ERROR, &event));
	EXPECT_GT(0, event.cm.error);

	/* Reached, but by another device. */
	cm = CM_NEW(&self->a);
	if (cm_resolve_addr(&self->a, cm, self->a.addr, 7, self->b.addr,
			    PATIENCE_MS)) {
		EXPECT_EQ(EADDRNOTAVAIL, errno);
		return;
	}
	OK(expect_cm(&self->a.conn, cm, DAPX_CM_ADDR_ERROR, &event));
	EXPECT_GT(0, event.cm.error);
}

/* An address that nobody has, until the deadline. */
TEST_F(cm, resolves_as_long_as_asked)
{
	const __u64 second = 1000000000;
	struct dapx_cm_resolve cmd = {
		.what = DAPX_RESOLVE_ADDR, .deadline = DAPX_NO_DEADLINE,
	};
	__u64 start;

	cmd.cm = CM_NEW(&self->a);
	set_addr(&cmd.dst, NOBODY_IP, 7);
	set_addr(&cmd.src, self->a.addr, 0);
	start = now_ns();
	ASSERT_EQ(0, _test_cmd_cm_resolve(self->a.fd, &cmd));
	OK(expect_cm(&self->a.conn, cmd.cm, DAPX_CM_ADDR_ERROR, NULL));
	EXPECT_LE(start + 4 * second, now_ns());

	start = now_ns();
	cmd.deadline = start + 7 * second;
	ASSERT_EQ(0, _test_cmd_cm_resolve(self->a.fd, &cmd));
	OK(expect_cm(&self->a.conn, cmd.cm, DAPX_CM_ADDR_ERROR, NULL));
	EXPECT_LE(start + 7 * second, now_ns());
}

/* ---- options ---- */

#define CM_SET(host, handle, ...)					\
	test_cmd(cm_modify, (host)->fd, .cm = (handle), __VA_ARGS__)

TEST_F(cm, options_by_state)
{
	const __u32 all = DAPX_CM_MODIFY_TOS | DAPX_CM_MODIFY_REUSEADDR | DAPX_CM_MODIFY_AFONLY;
	__u32 cm = CM_NEW(&self->a);

	CM_SET(&self->a, cm, .mask = 0);
	/* Members that are not in the mask are not looked at. */
	CM_SET(&self->a, cm, .mask = DAPX_CM_MODIFY_TOS, .afonly = 9, .ack_timeout = 99);
	CM_SET(&self->a, cm, .mask = all, .reuseaddr = 1);
	CM_SET(&self->a, cm, .mask = all);
	if (on_siw())
		test_err(EOPNOTSUPP, cm_modify, self->a.fd, .cm = cm,
			 .mask = DAPX_CM_MODIFY_ACK_TIMEOUT, .ack_timeout = 14);

	ASSERT_EQ(0, cm_bind_to(&self->a, cm, self->a.addr, 0));
	test_err(EBADFD, cm_modify, self->a.fd, .cm = cm, .mask = DAPX_CM_MODIFY_REUSEADDR);
	CM_SET(&self->a, cm, .mask = all, .reuseaddr = 1);

	ASSERT_EQ(0, cm_resolve_addr(&self->a, cm, self->b.addr, 7, NULL, PATIENCE_MS));
	OK(expect_cm(&self->a.conn, cm, DAPX_CM_ADDR_RESOLVED, NULL));
	CM_SET(&self->a, cm, .mask = DAPX_CM_MODIFY_TOS, .tos = 8);
	test_err(EBADFD, cm_modify, self->a.fd, .cm = cm, .mask = DAPX_CM_MODIFY_AFONLY);
	test_err(EBADFD, cm_modify, self->a.fd, .cm = cm, .mask = all, .reuseaddr = 1);
	ASSERT_EQ(0, cm_resolve_route(&self->a, cm));
	OK(expect_cm(&self->a.conn, cm, DAPX_CM_ROUTE_RESOLVED, NULL));
	test_err(EBADFD, cm_modify, self->a.fd, .cm = cm, .mask = DAPX_CM_MODIFY_TOS);
	if (!on_siw())
		CM_SET(&self->a, cm, .mask = DAPX_CM_MODIFY_ACK_TIMEOUT, .ack_timeout = 14);

	cm = CM_NEW(&self->a);
	ASSERT_EQ(0, cm_bind_to(&self->a, cm, self->a.addr, 0));
	test_cmd(cm_listen, self->a.fd, .cm = cm);
	test_err(EBADFD, cm_modify, self->a.fd, .cm = cm, .mask = DAPX_CM_MODIFY_TOS);
	test_err(EBADFD, cm_modify, self->a.fd, .cm = cm, .mask = DAPX_CM_MODIFY_REUSEADDR,
		 .reuseaddr = 1);
	test_err(EBADFD, cm_modify, self->a.fd, .cm = cm, .mask = DAPX_CM_MODIFY_AFONLY);
}

/* Connects ea of @a to eb of @b by @cm, whose options are set. */
#define CONNECT_BY_ID(cm_, listener_, event_)						\
do {											\
	ASSERT_EQ(0, cm_resolve_addr(&self->a, cm_, self->b.addr, (listener_)->port,	\
				     self->a.addr, PATIENCE_MS));			\
	OK(expect_cm(&self->a.conn, cm_, DAPX_CM_ADDR_RESOLVED, NULL));		\
	ASSERT_EQ(0, cm_resolve_route(&self->a, cm_));					\
	OK(expect_cm(&self->a.conn, cm_, DAPX_CM_ROUTE_RESOLVED, NULL));		\
	test_cmd(ep_connect, self->a.fd, .ep = self->ea.handle, .cm = (cm_),		\
		 .deadline = DAPX_NO_DEADLINE, .retry_count = 3, .rnr_retry_count = 7); \
	OK(listener_request(listener_, event_));					\
} while (0)

#define BOTH_ARE_CONNECTED()								\
do {											\
	OK(expect_connection(&self->a.conn, self->ea.handle,				\
			     DAPX_CONNECTION_ESTABLISHED, NULL));			\
	OK(expect_connection(&self->b.conn, self->eb.handle,				\
			     DAPX_CONNECTION_ESTABLISHED, NULL));			\
} while (0)

/* Packets of reliable connections that @fd has seen from @host: those with @tos, and others. */
static void count_packets(int fd, const struct host *host, __u8 tos, unsigned int *with,
			  unsigned int *without)
{
	struct {
		struct iphdr ip;
		struct udphdr udp;
		__u8 opcode[4];
	} packet;
	struct in_addr from;

	inet_pton(AF_INET, host->addr, &from);
	while (recv(fd, &packet, sizeof(packet), MSG_DONTWAIT) == sizeof(packet)) {
		if (packet.ip.saddr != from.s_addr || packet.ip.protocol != IPPROTO_UDP ||
		    packet.udp.dest != htons(4791) || packet.opcode[0] >> 5)
			continue;
		(*(packet.ip.tos == tos ? with : without))++;
	}
}

TEST_F(cm, tos_of_a_connection)
{
	unsigned int with[2] = {}, without[2] = {};
	__u32 cm = CM_NEW(&self->a);
	struct listener listener;
	struct dapx_event event;
	int i, seen[2];

	if (on_siw())
		SKIP(return, "siw ignores the type of service");
	for (i = 0; i < 2; i++) {
		seen[i] = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP));
		ASSERT_LE(0, seen[i]);
	}
	OK(listener_open(&self->b, &listener));
	CM_SET(&self->a, cm, .mask = DAPX_CM_MODIFY_TOS, .tos = 0x28);
	CONNECT_BY_ID(cm, &listener, &event);
	OK(ep_accept(&self->eb, event.request.cm));
	BOTH_ARE_CONNECTED();
	OK(ep_exchange(&self->ea, &self->eb));
	count_packets(seen[0], &self->a, 0x28, &with[0], &without[0]);
	count_packets(seen[1], &self->b, 0x28, &with[1], &without[1]);
	for (i = 0; i < 2; i++) {
		EXPECT_LT(0, with[i]);
		EXPECT_EQ(0, without[i]);
		close(seen[i]);
	}
}

/* On the active side it is an option of the id, on the passive one of the request. */
TEST_F(cm, ack_timeout)
{
	struct ep *sender;
	struct listener listener;
	struct dapx_event event;
	int passive;
	__u64 start;
	__u32 cm;

	if (on_siw())
		SKIP(return, "iWARP has none");
	OK(listener_open(&self->b, &listener));
	for (passive = 0; passive < 2; passive++) {
		cm = CM_NEW(&self->a);
		/* The peer would do as it is asked, were it asked before the route is known. */
		if (!passive)
			CM_SET(&self->a, cm, .mask = DAPX_CM_MODIFY_ACK_TIMEOUT,
			       .ack_timeout = 10);
		CONNECT_BY_ID(cm, &listener, &event);
		if (passive)
			CM_SET(&self->b, event.request.cm, .mask = DAPX_CM_MODIFY_ACK_TIMEOUT,
			       .ack_timeout = 10);
		OK(ep_accept(&self->eb, event.request.cm));
		BOTH_ARE_CONNECTED();
		OK(ep_exchange(&self->ea, &self->eb));

		sender = passive ? &self->eb : &self->ea;
		/* Acknowledgements are lost. */
		self->muted = passive ? &self->a : &self->b;
		OK(host_mute(self->muted, true));
		start = now_ns();
		OK(ep_send(sender, 7, 0, 8));
		OK(expect_completion(&sender->host->done, 7, DAPX_STATUS_TRANSPORT, NULL));
		EXPECT_GT(1000000000ULL, now_ns() - start);
		OK(host_mute(self->muted, false));
		self->muted = NULL;
		OK(ep_await_state(&self->ea, DAPX_EP_DISCONNECTED));
		OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));
		test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
		test_cmd(ep_reset, self->b.fd, .ep = self->eb.handle);
		evd_drain(&self->a.conn);
		evd_drain(&self->b.conn);
		evd_drain(&self->a.recv);
		evd_drain(&self->b.recv);
	}
}

TEST_F(cm, reuseaddr)
{
	__u32 first = CM_NEW(&self->a), second = CM_NEW(&self->a), third = CM_NEW(&self->a);
	__u16 port;

	CM_SET(&self->a, first, .mask = DAPX_CM_MODIFY_REUSEADDR, .reuseaddr = 1);
	ASSERT_EQ(0, cm_bind_to(&self->a, first, self->a.addr, 0));
	port = cm_local_port(&self->a, first);
	EXPECT_ERRNO(EADDRINUSE, cm_bind_to(&self->a, second, self->a.addr, port));
	CM_SET(&self->a, second, .mask = DAPX_CM_MODIFY_REUSEADDR, .reuseaddr = 1);
	ASSERT_EQ(0, cm_bind_to(&self->a, second, self->a.addr, port));
	EXPECT_EQ(port, cm_local_port(&self->a, second));

	/* A port is listened at by one. */
	test_err(EADDRINUSE, cm_listen, self->a.fd, .cm = first);
	test_cmd(free, self->a.fd, .handle = second);
	test_cmd(cm_listen, self->a.fd, .cm = first);
	CM_SET(&self->a, third, .mask = DAPX_CM_MODIFY_REUSEADDR, .reuseaddr = 1);
	EXPECT_ERRNO(EADDRINUSE, cm_bind_to(&self->a, third, self->a.addr, port));
}

/* One listener for each family, at the same port. */
TEST_F(cm, afonly)
{
	struct listener four = { .host = &self->b, .cm = CM_NEW(&self->b) };
	__u32 six = CM_NEW(&self->b);

	CM_SET(&self->b, six, .mask = DAPX_CM_MODIFY_AFONLY, .afonly = 1);
	/* An option stays when an address that is another device's is refused. */
	EXPECT_ERRNO(EADDRNOTAVAIL, cm_bind_to(&self->b, six, self->a.addr6, 0));
	ASSERT_EQ(0, cm_bind_to(&self->b, six, "::", 0));
	test_cmd(cm_listen, self->b.fd, .cm = six);
	four.port = cm_local_port(&self->b, six);
	ASSERT_NE(0, four.port);
	ASSERT_EQ(0, cm_bind_to(&self->b, four.cm, "0.0.0.0", four.port))
		TH_LOG("%s", strerror(errno));
	test_cmd(cm_listen, self->b.fd, .cm = four.cm);
	OK(connect_through(&self->ea, &four, &self->eb));

	/* Otherwise IPv4 addresses are its, too. */
	six = CM_NEW(&self->b);
	CM_SET(&self->b, six, .mask = DAPX_CM_MODIFY_AFONLY, .afonly = 0);
	ASSERT_EQ(0, cm_bind_to(&self->b, six, "::", 0));
	EXPECT_ERRNO(EADDRNOTAVAIL, cm_bind_to(&self->b, CM_NEW(&self->b), "0.0.0.0",
					       cm_local_port(&self->b, six)));
}

TEST_HARNESS_MAIN
