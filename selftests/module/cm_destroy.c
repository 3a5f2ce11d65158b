// SPDX-License-Identifier: GPL-2.0
/*
 * The end of a CM id. The man page rdma_destroy_id(3) says in a few sentences what
 * it is; here each has a test that is named after it, and then come the moments
 * at which it can happen. After each test the RDMA subsystem must count what it
 * counted before.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/dice.h"
#include "harness/fabric.h"
#include "harness/machine.h"
#include "harness/resources.h"
#include "harness/snapshot.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 300

static void nothing(int signal)
{
}

FIXTURE(destroy)
{
	struct host a;
	struct host b;
	struct ep ea;
	struct ep eb;
	char before[512];
	struct processor processor;
};

FIXTURE_SETUP(destroy)
{
	struct sigaction action = { .sa_handler = nothing };

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	OK(rdma_resources(self->before));
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	OK(ep_create(&self->a, &self->ea));
	OK(ep_create(&self->b, &self->eb));
}

FIXTURE_TEARDOWN(destroy)
{
	OK(processor_put_back(&self->processor));
	ep_forget(&self->ea);
	ep_forget(&self->eb);
	host_close(&self->a);
	host_close(&self->b);
	EXPECT_EQ(0, await_resources(self->before)) TH_LOG("%s", why());
}

/* ---- a destruction, of which it is seen whether it waits ---- */

struct destruction {
	int fd;
	struct dapx_free cmd;
	pthread_t thread;
	pid_t tid;
	bool ended;
	int error;
};

static void *destroys(void *arg)
{
	struct destruction *d = arg;

	__atomic_store_n(&d->tid, gettid(), __ATOMIC_RELEASE);
	d->error = _test_cmd_free(d->fd, &d->cmd) ? errno : 0;
	__atomic_store_n(&d->ended, true, __ATOMIC_RELEASE);
	return NULL;
}

static struct destruction *destroy_begin(const struct host *host, __u32 cm,
					 __u32 flags)
{
	struct destruction *d = calloc(1, sizeof(*d));

	if (!d)
		abort();
	d->fd = host->fd;
	d->cmd.handle = cm;
	d->cmd.type = DAPX_OBJECT_CM;
	d->cmd.flags = flags;
	if (pthread_create(&d->thread, NULL, destroys, d))
		abort();
	return d;
}

static bool destroy_ended(struct destruction *d, unsigned int ms)
{
	__u64 deadline = in_ms(ms);

	while (!__atomic_load_n(&d->ended, __ATOMIC_ACQUIRE)) {
		if (now_ns() > deadline)
			return false;
		sleep_ms(1);
	}
	return true;
}

/* Its errno or 0. One that does not end by itself is ETIME, and left to itself. */
static int destroy_end(struct destruction *d)
{
	int error = ETIME;

	if (destroy_ended(d, PATIENCE_MS)) {
		pthread_join(d->thread, NULL);
		error = d->error;
		free(d);
	}
	return error;
}

static int destroy(const struct host *host, __u32 cm, __u32 flags)
{
	return destroy_end(destroy_begin(host, cm, flags));
}

/* It is destroyed at once, and nobody knows it any more. */
#define DESTROYED(host, cm_)						\
	({								\
		__u32 __cm = (cm_);					\
									\
		EXPECT_EQ(0, destroy(host, __cm, 0));			\
		test_err(ENOENT, cm_query, (host)->fd, .cm = __cm);	\
	})
#define TAKE(host, cm_)							\
	test_cmd(cm_take, (host)->fd, .cm = (cm_),			\
		 .evd = (host)->conn.handle)
#define ACK(host, cm_, n)						\
	test_cmd(cm_ack, (host)->fd, .cm = (cm_), .events = (n))

static bool rejected(const struct dapx_event *event)
{
	return event->type == DAPX_EVENT_CONNECTION &&
	       (event->connection.what == DAPX_CONNECTION_PEER_REJECTED ||
		event->connection.what == DAPX_CONNECTION_NON_PEER_REJECTED);
}

static int expect_rejected(struct evd *evd)
{
	struct dapx_event event;

	if (evd_next(evd, &event, PATIENCE_MS))
		return because("the peer was not told: %m");
	if (rejected(&event))
		return 0;
	errno = EPROTO;
	return because("event of type %u, %u: %d", event.type,
		       event.connection.what, event.connection.error);
}

/* An id of the host whose address, or also route to @port of @to is resolved. */
static int resolved(struct host *host, const struct host *to, __u16 port,
		    bool route, __u32 *cm)
{
	struct dapx_cm_create create = { .evd = host->conn.handle };

	if (_test_cmd_cm_create(host->fd, &create))
		return because("DAPX_CM_CREATE: %m");
	*cm = create.out_cm;
	if (cm_resolve_addr(host, *cm, to->addr, port, host->addr, PATIENCE_MS))
		return because("DAPX_CM_RESOLVE: %m");
	if (expect_cm(&host->conn, *cm, DAPX_CM_ADDR_RESOLVED, NULL))
		return -1;
	if (!route)
		return 0;
	if (cm_resolve_route(host, *cm))
		return because("DAPX_CM_RESOLVE: %m");
	return expect_cm(&host->conn, *cm, DAPX_CM_ROUTE_RESOLVED, NULL);
}

static int connect_by(struct ep *ep, __u32 cm)
{
	struct dapx_ep_connect cmd = {
		.ep = ep->handle, .cm = cm, .deadline = DAPX_NO_DEADLINE,
		.retry_count = 7, .rnr_retry_count = 7,
	};

	if (_test_cmd_ep_connect(ep->host->fd, &cmd))
		return because("DAPX_EP_CONNECT: %m");
	return 0;
}

/* ---- NAME ---- */

/* What it does: a communication identifier is released, and all that it held. */
TEST_F(destroy, releases_an_identifier)
{
	enum { N = 20 };
	char idle[512], held[512];
	struct evd evd;
	__u32 cm[N];
	__u16 port;
	int i;

	OK(evd_make(self->a.fd, 8, 0, &evd));
	OK(rdma_resources(idle));
	for (i = 0; i < N; i++)
		cm[i] = test_cmd(cm_create, self->a.fd, .evd = evd.handle)
				.out_cm;
	ASSERT_EQ(0, cm_bind_to(&self->a, cm[0], self->a.addr, 0));
	port = cm_local_port(&self->a, cm[0]);
	EXPECT_ERRNO(EADDRINUSE,
		     cm_bind_to(&self->a, cm[1], self->a.addr, port));
	OK(rdma_resources(held));
	EXPECT_STRNE(idle, held);
	test_err(EBUSY, free, self->a.fd, .handle = evd.handle);

	for (i = 0; i < N; i++)
		DESTROYED(&self->a, cm[i]);
	OK(await_resources(idle));
	test_cmd(free, self->a.fd, .handle = evd.handle);
	ring_unmap(&evd.ring);
	cm[0] = CM_NEW(&self->a);
	ASSERT_EQ(0, cm_bind_to(&self->a, cm[0], self->a.addr, port));
	EXPECT_EQ(port, cm_local_port(&self->a, cm[0]));
}

/* ---- ARGUMENTS ---- */

/* @id is the identifier that is destroyed: that one, and no other. */
TEST_F(destroy, of_the_id_that_is_named)
{
	__u32 cm[3];
	int i;

	for (i = 0; i < 3; i++) {
		cm[i] = CM_NEW(&self->a);
		ASSERT_EQ(0, cm_resolve_addr(&self->a, cm[i], self->b.addr, 7,
					     self->a.addr, PATIENCE_MS));
		OK(expect_cm(&self->a.conn, cm[i], DAPX_CM_ADDR_RESOLVED,
			     NULL));
		ACK(&self->a, cm[i], 1);
	}
	DESTROYED(&self->a, cm[1]);
	for (i = 0; i < 3; i += 2) {
		EXPECT_EQ(DAPX_CM_ADDR_READY,
			  CM_QUERY(&self->a, cm[i]).out_state);
		ASSERT_EQ(0, cm_resolve_route(&self->a, cm[i]));
		OK(expect_cm(&self->a.conn, cm[i], DAPX_CM_ROUTE_RESOLVED,
			     NULL));
	}
}

/* ---- DESCRIPTION ---- */

/* The id is destroyed: no call knows it any more. */
TEST_F(destroy, destroys_the_id)
{
	__u32 cm;

	OK(resolved(&self->a, &self->b, 7, true, &cm));
	ACK(&self->a, cm, 2);
	EXPECT_EQ(0, destroy(&self->a, cm, 0));
	EXPECT_ERRNO(ENOENT, cm_bind_to(&self->a, cm, self->a.addr, 0));
	EXPECT_ERRNO(ENOENT, cm_resolve_addr(&self->a, cm, self->b.addr, 7,
					     NULL, PATIENCE_MS));
	EXPECT_ERRNO(ENOENT, cm_resolve_route(&self->a, cm));
	test_err(ENOENT, cm_listen, self->a.fd, .cm = cm);
	test_err(ENOENT, cm_query, self->a.fd, .cm = cm);
	test_err(ENOENT, cm_reject, self->a.fd, .cm = cm);
	test_err(ENOENT, cm_ack, self->a.fd, .cm = cm, .events = 1);
	test_err(ENOENT, query_object, self->a.fd, .handle = cm);
	test_err(ENOENT, ep_connect, self->a.fd, .ep = self->ea.handle,
		 .cm = cm, .deadline = DAPX_NO_DEADLINE);
	test_err(ENOENT, ep_accept, self->a.fd, .ep = self->ea.handle,
		 .cm = cm);
	EXPECT_EQ(ENOENT, destroy(&self->a, cm, 0));
	EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_state(&self->ea));
}

/*
 * Outstanding asynchronous operations are cancelled: none of the five has an event
 * afterwards. First, the search for an address.
 */
TEST_F(destroy, cancels_address_resolution)
{
	unsigned int n = count(50, 2000), cancelled = 0, i;
	struct dapx_event event;
	int error;

	for (i = 0; i < n; i++) {
		__u32 cm = CM_NEW(&self->a);

		/* One that is soon resolved, or one that never is. */
		ASSERT_EQ(0, cm_resolve_addr(&self->a, cm,
					     i % 2 ? self->b.addr : NOBODY_IP,
					     7, self->a.addr, PATIENCE_MS));
		error = destroy(&self->a, cm, DAPX_FREE_NOWAIT);
		if (!error) {
			cancelled++;
		} else {
			/* Its event was faster. */
			ASSERT_EQ(EBUSY, error);
			ASSERT_TRUE(evd_poll(&self->a.conn, &event));
			ASSERT_EQ(cm, event.handle);
			ACK(&self->a, cm, 1);
			DESTROYED(&self->a, cm);
		}
		EXPECT_FALSE(evd_poll(&self->a.conn, &event));
	}
	TH_LOG("%u of %u before their event", cancelled, n);
	EXPECT_LE(n / 2, cancelled);
	OK(evd_quiet(&self->a.conn));
}

/*
 * Nothing looks for the address of an id that is gone, nor, for its sake, for that of
 * the next id in its place. Who waits for an event is woken before the search is over.
 */
TEST_F(destroy, ends_the_search)
{
	struct dapx_free gone = { .flags = DAPX_FREE_NOWAIT };
	unsigned int n = count(50, 2000), found = 0, i;
	struct dapx_event event;
	__u32 cm[3];

	OK(processor_share(&self->processor));
	for (i = 0; i < n; i++) {
		OK(resolved(&self->a, &self->b, 7, false, &cm[0]));
		ACK(&self->a, cm[0], 1);
		/* Nothing in between may sleep. */
		test_cmd(free, self->a.fd, .handle = cm[0]);
		cm[1] = CM_NEW(&self->a);
		ASSERT_EQ(0, cm_resolve_addr(&self->a, cm[1], self->b.addr, 7,
					     self->a.addr, PATIENCE_MS));
		gone.handle = cm[1];
		if (_test_cmd_free(self->a.fd, &gone)) {
			ASSERT_EQ(EBUSY, errno);
			OK(expect_cm(&self->a.conn, cm[1], DAPX_CM_ADDR_RESOLVED, NULL));
			ACK(&self->a, cm[1], 1);
			test_cmd(free, self->a.fd, .handle = cm[1]);
			found++;
		}
		cm[2] = CM_NEW(&self->a);
		ASSERT_EQ(0, cm_resolve_addr(&self->a, cm[2], NOBODY_IP, 7,
					     self->a.addr, PATIENCE_MS));
		sleep_ms(1);
		ASSERT_FALSE(evd_poll(&self->a.conn, &event)) {
			TH_LOG("round %u: an event of 0x%x", i, event.handle);
		}
		test_cmd(free, self->a.fd, .handle = cm[2]);
	}
	TH_LOG("%u of %u searches were faster", found, n);
}

TEST_F(destroy, cancels_route_resolution)
{
	unsigned int n = count(50, 2000), cancelled = 0, i;
	struct dapx_event event;
	__u32 cm;

	for (i = 0; i < n; i++) {
		struct dapx_free gone = { .flags = DAPX_FREE_NOWAIT };

		OK(resolved(&self->a, &self->b, 7, false, &cm));
		ACK(&self->a, cm, 1);
		gone.handle = cm;
		/* At once: a thread would be too late. */
		ASSERT_EQ(0, cm_resolve_route(&self->a, cm));
		if (!_test_cmd_free(self->a.fd, &gone)) {
			cancelled++;
		} else {
			ASSERT_EQ(EBUSY, errno);
			ASSERT_TRUE(evd_poll(&self->a.conn, &event));
			EXPECT_EQ(cm, event.handle);
			EXPECT_EQ(DAPX_CM_ROUTE_RESOLVED, event.cm.what);
			ACK(&self->a, cm, 1);
			DESTROYED(&self->a, cm);
		}
		EXPECT_FALSE(evd_poll(&self->a.conn, &event));
	}
	TH_LOG("%u of %u before their event", cancelled, n);
	OK(evd_quiet(&self->a.conn));
}

/* While it connects, an endpoint is attached: that goes first. */
TEST_F(destroy, cancels_connect)
{
	struct listener listener;
	struct dapx_event event;
	__u32 cm;

	OK(listener_open(&self->b, &listener));
	OK(resolved(&self->a, &self->b, listener.port, true, &cm));
	ACK(&self->a, cm, 2);
	OK(connect_by(&self->ea, cm));
	OK(listener_request(&listener, &event));
	EXPECT_EQ(EBUSY, destroy(&self->a, cm, 0));
	EXPECT_EQ(DAPX_EP_ACTIVE_PENDING, ep_shown_state(&self->ea));
	EXPECT_EQ(DAPX_CM_ATTACHED, CM_QUERY(&self->a, cm).out_state);

	/* iWARP: after ten seconds at most, see architecture.rst. */
	OK(ep_destroy(&self->ea));
	DESTROYED(&self->a, cm);
	/* An answer comes too late, and is no event here. */
	if (!ep_accept(&self->eb, event.request.cm))
		OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));
	OK(evd_quiet(&self->a.conn));
}

/* The same, with a peer that has not even heard of it. */
TEST_F(destroy, cancels_connect_that_nobody_hears)
{
	struct listener listener;
	__u64 begin;
	__u32 cm;
	int i;

	if (on_siw())
		SKIP(return, "TCP does not give up before 127 s");
	OK(listener_open(&self->b, &listener));
	for (i = 0; i < 3; i++) {
		struct ep ep;

		OK(ep_create(&self->a, &ep));
		/* First: that a neighbour changed is an event of its own. */
		OK(cable_set(&self->a, &self->b, false));
		OK(resolved(&self->a, &self->b, listener.port, true, &cm));
		ACK(&self->a, cm, 2);
		OK(connect_by(&ep, cm));
		EXPECT_EQ(EBUSY, destroy(&self->a, cm, 0));
		begin = now_ns();
		OK(ep_destroy(&ep));
		DESTROYED(&self->a, cm);
		EXPECT_GT(PATIENCE_MS * 1000000ULL, now_ns() - begin);
		OK(cable_set(&self->a, &self->b, true));
	}
	OK(evd_quiet(&self->a.conn));
	OK(evd_quiet(&self->b.conn));
}

/* The accepted request is the endpoint's, and goes with it. */
TEST_F(destroy, cancels_accept)
{
	struct listener listener;
	struct dapx_event event;

	if (on_siw())
		SKIP(return, "an accept of iWARP is over when it returns");
	OK(listener_open(&self->b, &listener));
	/* The answer will not arrive, so that it remains one. */
	OK(cable_set(&self->b, &self->a, false));
	OK(ep_connect(&self->ea, &listener));
	OK(listener_request(&listener, &event));
	OK(ep_accept(&self->eb, event.request.cm));
	EXPECT_EQ(DAPX_EP_COMPLETION_PENDING, ep_shown_state(&self->eb));
	EXPECT_EQ(ENOENT, destroy(&self->b, event.request.cm, 0));
	EXPECT_EQ(DAPX_EP_COMPLETION_PENDING, ep_shown_state(&self->eb));
	EXPECT_EQ(DAPX_EP_ACTIVE_PENDING, ep_shown_state(&self->ea));
	OK(ep_destroy(&self->eb));
	OK(cable_set(&self->b, &self->a, true));
	OK(evd_quiet(&self->b.conn));
	/* It does not know of an answer, so it still waits, and is ended here. */
	OK(ep_destroy(&self->ea));
	OK(evd_quiet(&self->a.conn));
}

struct acceptance {
	struct ep *ep;
	__u32 request;
	unsigned int delay;
	int error;
};

static void *accepts(void *arg)
{
	struct acceptance *acceptance = arg;
	struct dapx_ep_accept cmd = {
		.ep = acceptance->ep->handle, .cm = acceptance->request,
		.rnr_retry_count = 7,
	};

	while (acceptance->delay--)
		__asm__ volatile("" : : : "memory");
	acceptance->error =
		_test_cmd_ep_accept(acceptance->ep->host->fd, &cmd) ? errno : 0;
	return NULL;
}

/* A request, or its listener, is destroyed at the moment it is accepted: one wins. */
TEST_F(destroy, while_it_is_accepted)
{
	unsigned int n = count(30, 1500), accepted = 0, round;
	struct dapx_event event;

	for (round = 0; round < n; round++) {
		struct acceptance acceptance = {
			.ep = &self->eb, .delay = dice() % 20000,
		};
		bool whole = round % 3 == 1, taken = round % 3 == 2;
		struct listener listener;
		pthread_t thread;
		int error;

		OK(listener_open(&self->b, &listener));
		OK(ep_connect(&self->ea, &listener));
		OK(listener_request(&listener, &event));
		acceptance.request = event.request.cm;
		if (taken)
			TAKE(&self->b, acceptance.request);
		ASSERT_EQ(0, pthread_create(&thread, NULL, accepts,
					    &acceptance));
		error = destroy(&self->b, whole ? listener.cm :
				acceptance.request, 0);
		ASSERT_EQ(0, pthread_join(thread, NULL));
		if (whole) {
			EXPECT_EQ(0, error);
		} else {
			EXPECT_EQ(!error, !!acceptance.error)
				TH_LOG("destroy: %s, accept: %s",
				       strerror(error),
				       strerror(acceptance.error));
		}
		test_err(ENOENT, cm_query, self->b.fd,
			 .cm = acceptance.request);
		if (!acceptance.error) {
			accepted++;
			OK(expect_connection(&self->a.conn, self->ea.handle,
					     DAPX_CONNECTION_ESTABLISHED,
					     NULL));
			OK(expect_connection(&self->b.conn, self->eb.handle,
					     DAPX_CONNECTION_ESTABLISHED,
					     NULL));
			OK(disconnect_reset(&self->ea, &self->eb));
		} else {
			OK(expect_rejected(&self->a.conn));
			EXPECT_EQ(DAPX_EP_UNCONNECTED,
				  ep_shown_state(&self->eb));
			test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
		}
		if (!whole)
			OK(listener_close(&listener));
		OK(evd_quiet(&self->b.conn));
	}
	TH_LOG("%u of %u were accepted", accepted, n);
}

TEST_F(destroy, cancels_disconnect)
{
	struct listener listener;
	struct dapx_event event;
	__u32 cm;

	OK(listener_open(&self->b, &listener));
	OK(resolved(&self->a, &self->b, listener.port, true, &cm));
	ACK(&self->a, cm, 2);
	OK(connect_by(&self->ea, cm));
	OK(listener_request(&listener, &event));
	OK(ep_accept(&self->eb, event.request.cm));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	/* Waits for a receive of the peer's that there never will be. */
	OK(ep_send(&self->ea, 1, 0, 8));
	test_cmd(ep_disconnect, self->a.fd, .ep = self->ea.handle);
	/* iWARP cannot be held there: its sends do not wait. */
	if (!on_siw()) {
		EXPECT_EQ(DAPX_EP_DISCONNECT_PENDING,
			  ep_shown_state(&self->ea));
		OK(evd_quiet(&self->a.conn));
	}
	EXPECT_EQ(EBUSY, destroy(&self->a, cm, 0));
	EXPECT_EQ(DAPX_CM_ATTACHED, CM_QUERY(&self->a, cm).out_state);
	OK(ep_destroy(&self->ea));
	evd_drain(&self->a.conn);
	DESTROYED(&self->a, cm);
	OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));
	OK(evd_quiet(&self->a.conn));
}

/* Events that wait for room in an EVD are dropped as well. */
TEST_F(destroy, cancels_what_waits_for_room)
{
	struct dapx_event event;
	struct evd evd;
	__u64 deadline;
	__u32 cm;
	int i;

	OK(evd_make(self->a.fd, 4, 0, &evd));
	cm = test_cmd(cm_create, self->a.fd, .evd = evd.handle).out_cm;
	for (i = 0; i < evd.ring.depth; i++)
		test_cmd(evd_post, self->a.fd, .evd = evd.handle,
			 .data = { i, i });
	ASSERT_EQ(0, cm_resolve_addr(&self->a, cm, self->b.addr, 7,
				     self->a.addr, PATIENCE_MS));
	deadline = in_ms(PATIENCE_MS);
	while (!CM_QUERY(&self->a, cm).out_unacked && now_ns() < deadline)
		sleep_ms(1);
	ACK(&self->a, cm, 1);
	DESTROYED(&self->a, cm);
	for (i = 0; i < evd.ring.depth; i++) {
		ASSERT_TRUE(evd_poll(&evd, &event));
		EXPECT_EQ(DAPX_EVENT_SOFTWARE, event.type);
	}
	OK(evd_quiet(&evd));
	ring_unmap(&evd.ring);
}

/* ---- RETURN VALUE ---- */

/* 0 is success, in whatever state the id is. */
TEST_F(destroy, returns_0_on_success)
{
	struct listener listener;
	struct dapx_event event;
	struct ep other;
	__u32 cm;

	cm = CM_NEW(&self->a);
	EXPECT_EQ(DAPX_CM_IDLE, CM_QUERY(&self->a, cm).out_state);
	DESTROYED(&self->a, cm);

	cm = CM_NEW(&self->a);
	ASSERT_EQ(0, cm_bind_to(&self->a, cm, self->a.addr, 0));
	EXPECT_EQ(DAPX_CM_BOUND, CM_QUERY(&self->a, cm).out_state);
	DESTROYED(&self->a, cm);

	cm = CM_NEW(&self->a);
	ASSERT_EQ(0, cm_resolve_addr(&self->a, cm, NOBODY_IP, 7, self->a.addr,
				     PATIENCE_MS));
	EXPECT_EQ(DAPX_CM_RESOLVING, CM_QUERY(&self->a, cm).out_state);
	DESTROYED(&self->a, cm);

	OK(resolved(&self->a, &self->b, 7, false, &cm));
	ACK(&self->a, cm, 1);
	EXPECT_EQ(DAPX_CM_ADDR_READY, CM_QUERY(&self->a, cm).out_state);
	DESTROYED(&self->a, cm);

	OK(resolved(&self->a, &self->b, 7, true, &cm));
	ACK(&self->a, cm, 2);
	EXPECT_EQ(DAPX_CM_ROUTE_READY, CM_QUERY(&self->a, cm).out_state);
	DESTROYED(&self->a, cm);

	OK(listener_open(&self->b, &listener));
	OK(ep_create(&self->a, &other));
	OK(ep_connect(&other, &listener));
	OK(listener_request(&listener, &event));
	EXPECT_EQ(DAPX_CM_REQUEST,
		  CM_QUERY(&self->b, event.request.cm).out_state);
	DESTROYED(&self->b, event.request.cm);
	OK(expect_rejected(&self->a.conn));
	OK(ep_destroy(&other));

	OK(resolved(&self->a, &self->b, listener.port, true, &cm));
	ACK(&self->a, cm, 2);
	OK(connect_by(&self->ea, cm));
	OK(listener_request(&listener, &event));
	test_cmd(cm_reject, self->b.fd, .cm = event.request.cm);
	OK(expect_rejected(&self->a.conn));
	OK(ep_destroy(&self->ea));
	EXPECT_EQ(DAPX_CM_ENDED, CM_QUERY(&self->a, cm).out_state);
	DESTROYED(&self->a, cm);

	EXPECT_EQ(DAPX_CM_LISTENING,
		  CM_QUERY(&self->b, listener.cm).out_state);
	DESTROYED(&self->b, listener.cm);
	OK(evd_quiet(&self->a.conn));
	OK(evd_quiet(&self->b.conn));
}

/* -1 is an error, of which errno is the reason; and then nothing has changed. */
TEST_F(destroy, returns_an_error_with_errno)
{
	struct snapshot before, after;
	struct listener listener;
	struct dapx_event event;
	__u32 cm, gone, attached;

	gone = CM_NEW(&self->a);
	DESTROYED(&self->a, gone);
	OK(listener_open(&self->b, &listener));
	OK(resolved(&self->a, &self->b, listener.port, true, &attached));
	OK(connect_by(&self->ea, attached));
	OK(listener_request(&listener, &event));
	OK(resolved(&self->a, &self->b, 7, false, &cm));

	OK(snapshot_take(self->a.fd, &before));
	test_err(ENOENT, free, self->a.fd, .handle = NO_HANDLE);
	test_err(ENOENT, free, self->a.fd, .handle = gone);
	test_err(ENOENT, free, self->a.fd, .handle = cm,
		 .type = DAPX_OBJECT_EVD);
	test_err(EOPNOTSUPP, free, self->a.fd, .handle = cm,
		 .flags = 1u << 31);
	test_err(EBUSY, free, self->a.fd, .handle = cm,
		 .flags = DAPX_FREE_NOWAIT);
	test_err(EBUSY, free, self->a.fd, .handle = attached);
	OK(snapshot_take(self->a.fd, &after));
	EXPECT_TRUE(snapshot_same(&before, &after)) TH_LOG("%s", why());
}

/* ---- NOTES ---- */

/* Its queue pair goes first: EBUSY, at once, whatever else is to be done. */
TEST_F(destroy, queue_pair_first)
{
	struct listener listener;
	struct dapx_event event;
	__u32 cm;
	int i;

	OK(listener_open(&self->b, &listener));
	OK(resolved(&self->a, &self->b, listener.port, true, &cm));
	OK(connect_by(&self->ea, cm));
	OK(listener_request(&listener, &event));
	OK(ep_accept(&self->eb, event.request.cm));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	/* With events that are not acknowledged, and without; waiting or not. */
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(EBUSY, destroy(&self->a, cm, 0));
		EXPECT_EQ(EBUSY, destroy(&self->a, cm, DAPX_FREE_NOWAIT));
		OK(ep_exchange(&self->ea, &self->eb));
		if (!i)
			ACK(&self->a, cm, 2);
	}
	/* A connection that is over is attached all the same. */
	test_cmd(ep_disconnect, self->a.fd, .ep = self->ea.handle,
		 .flags = DAPX_DISCONNECT_ABRUPT);
	OK(ep_await_state(&self->ea, DAPX_EP_DISCONNECTED));
	EXPECT_EQ(EBUSY, destroy(&self->a, cm, 0));
	EXPECT_EQ(DAPX_CM_ATTACHED, CM_QUERY(&self->a, cm).out_state);
	OK(ep_destroy(&self->ea));
	EXPECT_EQ(DAPX_CM_ENDED, CM_QUERY(&self->a, cm).out_state);
	EXPECT_EQ(0, CM_QUERY(&self->a, cm).out_ep);
	DESTROYED(&self->a, cm);
}

/* All related events are acknowledged first: it waits for that. */
TEST_F(destroy, events_acknowledged_first)
{
	struct destruction *d;
	__u32 cm;

	OK(resolved(&self->a, &self->b, 7, true, &cm));
	d = destroy_begin(&self->a, cm, 0);
	OK(await_asleep(&d->tid, DAPX_FREE));
	ACK(&self->a, cm, 1);
	EXPECT_FALSE(destroy_ended(d, GLANCE_MS));
	EXPECT_EQ(1, CM_QUERY(&self->a, cm).out_unacked);
	ACK(&self->a, cm, 1);
	EXPECT_EQ(0, destroy_end(d));
	test_err(ENOENT, cm_query, self->a.fd, .cm = cm);
	OK(evd_quiet(&self->a.conn));
}

/* Interrupted, it is as it was: in all its parts, and to be used further. */
TEST_F(destroy, interrupted_changes_nothing)
{
	struct snapshot before, after;
	struct destruction *d;
	__u32 cm;

	OK(resolved(&self->a, &self->b, 7, false, &cm));
	OK(snapshot_take(self->a.fd, &before));
	d = destroy_begin(&self->a, cm, 0);
	OK(await_asleep(&d->tid, DAPX_FREE));
	ASSERT_EQ(0, pthread_kill(d->thread, SIGUSR1));
	ASSERT_EQ(EINTR, destroy_end(d));
	OK(snapshot_take(self->a.fd, &after));
	EXPECT_TRUE(snapshot_same(&before, &after)) TH_LOG("%s", why());
	EXPECT_EQ(1, CM_QUERY(&self->a, cm).out_unacked);
	ASSERT_EQ(0, cm_resolve_route(&self->a, cm));
	OK(expect_cm(&self->a.conn, cm, DAPX_CM_ROUTE_RESOLVED, NULL));
	ACK(&self->a, cm, 2);
	DESTROYED(&self->a, cm);
}

/* Or it does not wait, if it is told so. */
TEST_F(destroy, without_waiting)
{
	__u32 cm;

	OK(resolved(&self->a, &self->b, 7, true, &cm));
	EXPECT_EQ(EBUSY, destroy(&self->a, cm, DAPX_FREE_NOWAIT));
	ACK(&self->a, cm, 1);
	EXPECT_EQ(EBUSY, destroy(&self->a, cm, DAPX_FREE_NOWAIT));
	EXPECT_EQ(DAPX_CM_ROUTE_READY, CM_QUERY(&self->a, cm).out_state);
	ACK(&self->a, cm, 1);
	EXPECT_EQ(0, destroy(&self->a, cm, DAPX_FREE_NOWAIT));
}

/* Of several that wait one destroys it; the others hear that it is gone. */
TEST_F(destroy, several_wait)
{
	enum { N = 4 };
	struct destruction *d[N];
	unsigned int won = 0;
	__u32 cm;
	int i;

	OK(resolved(&self->a, &self->b, 7, false, &cm));
	for (i = 0; i < N; i++)
		d[i] = destroy_begin(&self->a, cm, 0);
	for (i = 0; i < N; i++)
		OK(await_asleep(&d[i]->tid, DAPX_FREE));
	EXPECT_FALSE(destroy_ended(d[0], GLANCE_MS));
	ACK(&self->a, cm, 1);
	for (i = 0; i < N; i++) {
		int error = destroy_end(d[i]);

		EXPECT_TRUE(!error || error == ENOENT) TH_LOG("%d", error);
		won += !error;
	}
	EXPECT_EQ(1, won);
}

/* Events of a listener are its requests; of one that is gone there are none. */
TEST_F(destroy, acknowledged_in_parts)
{
	struct listener listener;
	struct dapx_event event;
	struct ep other;

	OK(listener_open(&self->b, &listener));
	OK(ep_create(&self->a, &other));
	OK(ep_connect(&self->ea, &listener));
	OK(ep_connect(&other, &listener));
	OK(expect_request(&self->b.conn, listener.cm, NULL));
	OK(expect_request(&self->b.conn, listener.cm, &event));
	EXPECT_EQ(EBUSY, destroy(&self->b, listener.cm, DAPX_FREE_NOWAIT));
	/* Still all there. */
	EXPECT_EQ(2, CM_QUERY(&self->b, listener.cm).out_requests);
	ACK(&self->b, listener.cm, 1);
	EXPECT_EQ(EBUSY, destroy(&self->b, listener.cm, DAPX_FREE_NOWAIT));
	ACK(&self->b, listener.cm, 1);
	test_err(EINVAL, cm_ack, self->b.fd, .cm = listener.cm, .events = 1);
	OK(listener_close(&listener));
	test_err(ENOENT, cm_ack, self->b.fd, .cm = listener.cm, .events = 1);
	OK(expect_rejected(&self->a.conn));
	OK(expect_rejected(&self->a.conn));
	OK(ep_destroy(&other));
}

static bool await_cm_state(struct host *host, __u32 cm, __u32 state)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	struct dapx_cm_query query = { .cm = cm };

	do {
		if (!_test_cmd_cm_query(host->fd, &query) &&
		    query.out_state == state)
			return true;
		sleep_ms(1);
	} while (now_ns() < deadline);
	return false;
}

/* In one step, read or not, though another thread waits for acknowledgements. */
TEST_F(destroy, discards_events)
{
	struct destruction *d;
	struct evd events;
	__u32 cm;

	OK(evd_make(self->a.fd, 1, 0, &events));
	cm = test_cmd(cm_create, self->a.fd, .evd = events.handle).out_cm;
	ASSERT_EQ(0, cm_resolve_addr(&self->a, cm, self->b.addr, 7,
				     self->a.addr, PATIENCE_MS));
	ASSERT_TRUE(await_cm_state(&self->a, cm, DAPX_CM_ADDR_READY));
	ASSERT_EQ(0, cm_resolve_route(&self->a, cm));
	ASSERT_TRUE(await_cm_state(&self->a, cm, DAPX_CM_ROUTE_READY));
	EXPECT_EQ(2, CM_QUERY(&self->a, cm).out_unacked);
	d = destroy_begin(&self->a, cm, 0);
	EXPECT_FALSE(destroy_ended(d, GLANCE_MS));
	EXPECT_EQ(0, destroy(&self->a, cm, DAPX_FREE_DISCARD));
	EXPECT_EQ(ENOENT, destroy_end(d));
	test_err(ENOENT, cm_query, self->a.fd, .cm = cm);
	/* The second waited for room. */
	OK(expect_cm(&events, cm, DAPX_CM_ADDR_RESOLVED, NULL));
	OK(evd_quiet(&events));
	test_cmd(free, self->a.fd, .handle = events.handle,
		 .type = DAPX_OBJECT_EVD);
	ring_unmap(&events.ring);
}

/* Nobody's request is forgotten by it, and no endpoint's id. */
TEST_F(destroy, discards_requests)
{
	struct listener listener;
	__u32 cm;

	OK(listener_open(&self->b, &listener));
	OK(resolved(&self->a, &self->b, listener.port, true, &cm));
	OK(connect_by(&self->ea, cm));
	OK(expect_request(&self->b.conn, listener.cm, NULL));
	EXPECT_EQ(EBUSY, destroy(&self->a, cm, DAPX_FREE_DISCARD));
	EXPECT_EQ(0, destroy(&self->b, listener.cm, DAPX_FREE_DISCARD));
	OK(expect_rejected(&self->a.conn));
	OK(ep_destroy(&self->ea));
	EXPECT_EQ(0, destroy(&self->a, cm, DAPX_FREE_DISCARD));
}

/* ---- listeners, and requests that wait ---- */

/* A request is an id as well: to destroy it is to say no. */
TEST_F(destroy, request)
{
	struct listener listener;
	struct dapx_event event;

	OK(listener_open(&self->b, &listener));
	OK(ep_connect(&self->ea, &listener));
	OK(listener_request(&listener, &event));
	DESTROYED(&self->b, event.request.cm);
	OK(expect_rejected(&self->a.conn));
	EXPECT_EQ(0, CM_QUERY(&self->b, listener.cm).out_requests);
}

/* One that was taken is no part of its listener's end, nor that of its own. */
TEST_F(destroy, taken_outlives_its_listener)
{
	struct dapx_event event, other;
	struct listener listener;
	struct ep caller;
	int round;

	for (round = 0; round < 2; round++) {
		OK(ep_create(&self->a, &caller));
		OK(listener_open(&self->b, &listener));
		OK(ep_connect(&self->ea, &listener));
		OK(listener_request(&listener, &event));
		OK(ep_connect(&caller, &listener));
		OK(listener_request(&listener, &other));
		TAKE(&self->b, event.request.cm);
		DESTROYED(&self->b, listener.cm);
		/* The other one goes with it. */
		test_err(ENOENT, cm_query, self->b.fd, .cm = other.request.cm);
		OK(expect_rejected(&self->a.conn));
		OK(evd_quiet(&self->a.conn));
		EXPECT_EQ(DAPX_CM_REQUEST,
			  CM_QUERY(&self->b, event.request.cm).out_state);
		OK(ep_destroy(&caller));
		if (round) {
			DESTROYED(&self->b, event.request.cm);
			OK(expect_rejected(&self->a.conn));
			break;
		}
		OK(ep_accept(&self->eb, event.request.cm));
		OK(expect_connection(&self->a.conn, self->ea.handle,
				     DAPX_CONNECTION_ESTABLISHED, NULL));
		OK(expect_connection(&self->b.conn, self->eb.handle,
				     DAPX_CONNECTION_ESTABLISHED, NULL));
		OK(ep_exchange(&self->ea, &self->eb));
		OK(disconnect_reset(&self->ea, &self->eb));
	}
}

/* In the moment in which its listener, or its peer, goes: it is taken, or it is gone. */
TEST_F(destroy, while_it_is_taken)
{
	unsigned int n = count(30, 1500), taken = 0, round;
	struct dapx_event event;

	for (round = 0; round < n; round++) {
		bool peer = round % 2;
		struct dapx_cm_take take = { .evd = self->b.conn.handle };
		struct destruction *d = NULL;
		struct listener listener;
		int error;

		OK(listener_open(&self->b, &listener));
		OK(ep_connect(&self->ea, &listener));
		OK(listener_request(&listener, &event));
		take.cm = event.request.cm;
		if (peer)
			test_cmd(ep_disconnect, self->a.fd,
				 .ep = self->ea.handle);
		else
			d = destroy_begin(&self->b, listener.cm, 0);
		spin(dice() % 20000);
		error = _test_cmd_cm_take(self->b.fd, &take) ? errno : 0;
		if (d)
			EXPECT_EQ(0, destroy_end(d));
		if (error) {
			/* It went with its listener. */
			EXPECT_FALSE(peer);
			EXPECT_TRUE(error == ENOENT || error == EBADFD)
				TH_LOG("%s", strerror(error));
			test_err(ENOENT, cm_query, self->b.fd, .cm = take.cm);
			OK(expect_rejected(&self->a.conn));
		} else if (peer) {
			taken++;
			OK(expect_connection(&self->a.conn, self->ea.handle,
					     DAPX_CONNECTION_DISCONNECTED,
					     NULL));
			/* iWARP says nothing of it. */
			if (!on_siw()) {
				OK(expect_cm(&self->b.conn, take.cm,
					     DAPX_CM_REQUEST_ENDED, NULL));
				ACK(&self->b, take.cm, 1);
			}
			DESTROYED(&self->b, take.cm);
		} else {
			taken++;
			EXPECT_EQ(0, CM_QUERY(&self->b, take.cm).out_listener);
			OK(ep_accept(&self->eb, take.cm));
			OK(expect_connection(&self->a.conn, self->ea.handle,
					     DAPX_CONNECTION_ESTABLISHED,
					     NULL));
			OK(expect_connection(&self->b.conn, self->eb.handle,
					     DAPX_CONNECTION_ESTABLISHED,
					     NULL));
			OK(disconnect_reset(&self->ea, &self->eb));
		}
		if (error || peer)
			test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
		if (peer)
			OK(listener_close(&listener));
		OK(evd_quiet(&self->b.conn));
	}
	TH_LOG("%u of %u were taken", taken, n);
}

FIXTURE(listening)
{
	struct host a;
	struct host b;
	char before[512];
};

FIXTURE_VARIANT(listening)
{
	__u32 mode;
	unsigned int requests;
};

FIXTURE_VARIANT_ADD(listening, consumer)
{
	.mode = DAPX_LISTEN_CONSUMER,
	.requests = 4,
};

FIXTURE_VARIANT_ADD(listening, reserved)
{
	.mode = DAPX_LISTEN_RESERVED,
	.requests = 1,
};

FIXTURE_VARIANT_ADD(listening, tentative)
{
	.mode = DAPX_LISTEN_TENTATIVE,
	.requests = 4,
};

FIXTURE_SETUP(listening)
{
	OK(rdma_resources(self->before));
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
}

FIXTURE_TEARDOWN(listening)
{
	host_close(&self->a);
	host_close(&self->b);
	EXPECT_EQ(0, await_resources(self->before)) TH_LOG("%s", why());
}

#define MOST_REQUESTS 4

/* Peers are rejected; what was made or reserved for them is gone, or free. */
TEST_F(listening, goes_with_its_requests)
{
	struct dapx_cm_listen mode = { .mode = variant->mode };
	struct ep caller[MOST_REQUESTS], reserved;
	__u32 requests[MOST_REQUESTS], eps[MOST_REQUESTS];
	struct dapx_ep_create usual;
	struct listener listener;
	struct dapx_event event;
	int round, i;

	ep_usual(&self->b, &usual);
	OK(ep_create(&self->b, &reserved));
	if (variant->mode == DAPX_LISTEN_RESERVED)
		mode.ep = reserved.handle;
	if (variant->mode == DAPX_LISTEN_TENTATIVE)
		mode.attr = usual.attr;
	/* A leak of one would be seen; and a port or endpoint that is not free. */
	for (round = 0; round < 3; round++) {
		OK(listener_open_as(&self->b, &mode, &listener));
		for (i = 0; i < variant->requests; i++) {
			OK(ep_create(&self->a, &caller[i]));
			OK(ep_connect(&caller[i], &listener));
			OK(listener_request(&listener, &event));
			requests[i] = event.request.cm;
			eps[i] = event.request.ep;
		}
		OK(listener_close(&listener));
		for (i = 0; i < variant->requests; i++) {
			test_err(ENOENT, cm_query, self->b.fd,
				 .cm = requests[i]);
			OK(expect_rejected(&self->a.conn));
			if (variant->mode == DAPX_LISTEN_TENTATIVE)
				test_err(ENOENT, ep_query, self->b.fd,
					 .ep = eps[i]);
		}
		for (i = 0; i < variant->requests; i++)
			OK(ep_destroy(&caller[i]));
		EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_shown_state(&reserved));
		OK(evd_quiet(&self->b.conn));
		OK(evd_quiet(&self->a.conn));
	}
	OK(ep_destroy(&reserved));
}

/* With requests on their way: each peer gets its answer. */
TEST_F(listening, goes_while_requests_arrive)
{
	unsigned int n = count(10, 500), round, i;
	struct dapx_cm_listen mode = { .mode = variant->mode };
	struct ep caller[MOST_REQUESTS], reserved;
	struct dapx_ep_create usual;
	struct listener listener;
	struct dapx_event event;
	unsigned int seen = 0;

	TH_LOG("%u rounds", n);
	ep_usual(&self->b, &usual);
	OK(ep_create(&self->b, &reserved));
	if (variant->mode == DAPX_LISTEN_RESERVED)
		mode.ep = reserved.handle;
	if (variant->mode == DAPX_LISTEN_TENTATIVE)
		mode.attr = usual.attr;
	for (round = 0; round < n; round++) {
		struct dapx_free gone = { .flags = DAPX_FREE_NOWAIT };
		__u64 deadline = in_ms(PATIENCE_MS);

		OK(listener_open_as(&self->b, &mode, &listener));
		for (i = 0; i < MOST_REQUESTS; i++) {
			OK(ep_create(&self->a, &caller[i]));
			OK(ep_connect(&caller[i], &listener));
		}
		gone.handle = listener.cm;
		while (_test_cmd_free(self->b.fd, &gone)) {
			ASSERT_EQ(EBUSY, errno);
			ASSERT_GT(deadline, now_ns());
			while (evd_poll(&self->b.conn, &event)) {
				ACK(&self->b, listener.cm, 1);
				seen++;
			}
		}
		for (i = 0; i < MOST_REQUESTS; i++) {
			OK(evd_next(&self->a.conn, &event, PATIENCE_MS));
			/* siw forgets one that it was about to read: the caller gives up. */
			EXPECT_TRUE(rejected(&event) ||
				    (on_siw() && event.type == DAPX_EVENT_CONNECTION &&
				     event.connection.what == DAPX_CONNECTION_TIMED_OUT))
				TH_LOG("event of type %u, %u: %d", event.type,
				       event.connection.what, event.connection.error);
		}
		OK(evd_quiet(&self->b.conn));
		EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_shown_state(&reserved));
		for (i = 0; i < MOST_REQUESTS; i++)
			OK(ep_destroy(&caller[i]));
	}
	OK(ep_destroy(&reserved));
	TH_LOG("%u requests were seen", seen);
}

TEST_HARNESS_MAIN
