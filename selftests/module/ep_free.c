// SPDX-License-Identifier: GPL-2.0
/*
 * Endpoints that are freed: at every moment of a set-up, under load, by several at
 * once. The peer is told, and nothing is left.
 */
#include <pthread.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/dice.h"
#include "harness/fabric.h"
#include "harness/machine.h"
#include "harness/qp.h"
#include "harness/resources.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 600

#define TARGET 4096

FIXTURE(ep_free)
{
	struct host a;
	struct host b;
	struct ep ea;
	struct ep eb;
	char before[512];
	struct processor processor;
};

FIXTURE_SETUP(ep_free)
{
	OK(rdma_resources(self->before));
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	OK(ep_create(&self->a, &self->ea));
	OK(ep_create(&self->b, &self->eb));
}

FIXTURE_TEARDOWN(ep_free)
{
	OK(processor_put_back(&self->processor));
	ep_forget(&self->ea);
	ep_forget(&self->eb);
	host_close(&self->a);
	host_close(&self->b);
	EXPECT_EQ(0, await_resources(self->before)) TH_LOG("%s", why());
}

/* ---- a set-up ---- */

/* A request that nobody will accept. */
static int refuse(const struct listener *listener, const struct dapx_event *event)
{
	struct dapx_cm_ack ack = { .cm = listener->cm, .events = 1 };
	struct dapx_cm_reject reject = { .cm = event->request.cm };

	if (_test_cmd_cm_ack(listener->host->fd, &ack) ||
	    _test_cmd_cm_reject(listener->host->fd, &reject))
		return because("refusing: %m");
	return 0;
}

/*
 * The connection ends; what its last event says. Requests that come late are refused:
 * @listener is NULL if there are none.
 */
static int last_word(struct evd *evd, const struct ep *ep, const struct listener *listener,
		     __u32 *what)
{
	struct dapx_event event;

	do {
		*what = DAPX_CONNECTION_ESTABLISHED;
		if (evd_next(evd, &event, PATIENCE_MS))
			return -1;
		if (listener && event.type == DAPX_EVENT_CONNECT_REQUEST) {
			if (refuse(listener, &event))
				return -1;
			continue;
		}
		if (event.type != DAPX_EVENT_CONNECTION || event.handle != ep->handle)
			return because("event %u of %#x", event.type, event.handle);
		*what = event.connection.what;
	} while (*what == DAPX_CONNECTION_ESTABLISHED);
	if (ep_state(ep) != DAPX_EP_DISCONNECTED)
		return because("in state %u after %u", ep_state(ep), *what);
	return 0;
}

/* Mostly short, up to 32 ms. */
static unsigned int some_us(void)
{
	return dice() % (1U << (dice() % 16));
}

struct freer {
	struct ep *ep;
	unsigned int after_us;
	__u64 begin_ns; /* or 0: when the thread runs */
	pthread_barrier_t *start;
	int error;
};

static void *frees(void *arg)
{
	struct freer *freer = arg;
	struct dapx_free gone = { .handle = freer->ep->handle };

	if (freer->start)
		pthread_barrier_wait(freer->start);
	if (freer->begin_ns)
		sleep_until(freer->begin_ns + freer->after_us * 1000ULL);
	else
		usleep(freer->after_us);
	freer->error = _test_cmd_free(freer->ep->host->fd, &gone) ? errno : 0;
	return NULL;
}

/*
 * A thread that begins when the set-up does runs when that leaves a processor to it. This one
 * is there before, and when its moment comes, it is first in line.
 */
static void *frees_punctually(void *arg)
{
	const struct sched_param first = { .sched_priority = 1 };
	struct freer *freer = arg;

	if (!sched_setscheduler(0, SCHED_FIFO, &first))
		return frees(freer);
	freer->error = errno;
	return NULL;
}

TEST_F(ep_free, active_at_any_moment_of_a_set_up)
{
	unsigned int n = count(200, 2000), round, established = 0, asked = 0, way_us = ~0U;
	struct dapx_event event;
	struct listener listener;
	pthread_t thread;
	__u32 what;

	OK(listener_open(&self->b, &listener));
	/* What a request takes to the peer: of three such ways a set-up consists. */
	for (round = 0; round < 5; round++) {
		__u64 begin = now_ns();
		unsigned int us;

		OK(ep_connect(&self->ea, &listener));
		OK(expect_request(&self->b.conn, listener.cm, &event));
		us = (now_ns() - begin) / 1000;
		way_us = us < way_us ? us : way_us;
		OK(refuse(&listener, &event));
		OK(last_word(&self->a.conn, &self->ea, &listener, &what));
		test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
	}
	TH_LOG("%u rounds, %u us for a request", n, way_us);
	for (round = 0; round < n; round++) {
		struct ep ea, eb;
		struct freer freer = {
			.ep = &ea,
			.begin_ns = in_ms(2),
			.after_us = round % 2 ? some_us() : dice() % (3 * way_us),
		};
		struct dapx_ep_accept accept = { .rnr_retry_count = 7 };

		OK(ep_create(&self->a, &ea));
		OK(ep_create(&self->b, &eb));
		ASSERT_EQ(0, pthread_create(&thread, NULL, frees_punctually, &freer));
		sleep_until(freer.begin_ns);
		if (ep_connect(&ea, &listener))
			EXPECT_EQ(ENOENT, errno);
		/* Whether a request comes depends on how far it got. */
		if (!evd_next(&self->b.conn, &event, freer.after_us / 1000 + GLANCE_MS)) {
			ASSERT_EQ(DAPX_EVENT_CONNECT_REQUEST, event.type);
			test_cmd(cm_ack, self->b.fd, .cm = listener.cm, .events = 1);
			asked++;
			accept.ep = eb.handle;
			accept.cm = event.request.cm;
			if (!_test_cmd_ep_accept(self->b.fd, &accept)) {
				OK(last_word(&self->b.conn, &eb, &listener, &what));
				EXPECT_TRUE(what == DAPX_CONNECTION_ACCEPT_ERROR ||
					    what == DAPX_CONNECTION_DISCONNECTED)
					TH_LOG("the peer hears %u", what);
				established += what == DAPX_CONNECTION_DISCONNECTED;
			} else {
				EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_state(&eb));
			}
		}
		ASSERT_EQ(0, pthread_join(thread, NULL));
		EXPECT_EQ(0, freer.error);
		ep_forget(&ea);
		/* None of it waits, or comes late. */
		evd_drain(&self->a.conn);
		OK(ep_destroy(&eb));
	}
	TH_LOG("%u requests came, %u were connected", asked, established);
	EXPECT_LT(0, asked);
	/* The moments are what the name says; but an iWARP device finishes what it began. */
	if (!on_siw())
		EXPECT_GT(n, established);
	OK(evd_quiet(&self->a.conn));
	while (!evd_next(&self->b.conn, &event, GLANCE_MS))
		OK(refuse(&listener, &event));
	OK(listener_close(&listener));
}

static int set_up_to_the_answer(struct host *host, struct ep *active,
				struct listener *listener, struct ep *passive)
{
	struct dapx_event event;

	return ep_create(host, active) || ep_create(listener->host, passive) ||
	       ep_connect(active, listener) ||
	       listener_request(listener, &event) ||
	       ep_accept(passive, event.request.cm) ? -1 : 0;
}

TEST_F(ep_free, passive_at_any_moment_of_a_set_up)
{
	unsigned int n = count(100, 2000), round, established = 0;
	struct listener listener;
	__u32 what;

	TH_LOG("%u rounds", n);
	OK(listener_open(&self->b, &listener));
	for (round = 0; round < n; round++) {
		struct ep ea, eb;

		OK(set_up_to_the_answer(&self->a, &ea, &listener, &eb));
		usleep(some_us());
		OK(ep_destroy(&eb));
		evd_drain(&self->b.conn);
		OK(last_word(&self->a.conn, &ea, &listener, &what));
		EXPECT_TRUE(what == DAPX_CONNECTION_PEER_REJECTED ||
			    what == DAPX_CONNECTION_NON_PEER_REJECTED ||
			    what == DAPX_CONNECTION_UNREACHABLE ||
			    what == DAPX_CONNECTION_DISCONNECTED)
			TH_LOG("the peer hears %u", what);
		established += what == DAPX_CONNECTION_DISCONNECTED;
		OK(ep_destroy(&ea));
	}
	TH_LOG("%u were connected", established);
	OK(evd_quiet(&self->b.conn));
	OK(listener_close(&listener));
}

/*
 * Of what leaves the second host, every other message waits: the one behind it
 * is there first, as in a peer whose CM handles them in several threads.
 */
static int overtake(bool on)
{
	return run("tc qdisc replace dev %s root %s",
		   getenv("DAPX_PEER_NETDEV"),
		   on ? "netem delay 20ms reorder 100% gap 2" : "noqueue");
}

TEST_F(ep_free, passive_right_after_its_answer)
{
	struct listener listener;
	unsigned int round;
	__u32 what;

	if (on_siw())
		SKIP(return, "TCP keeps the order");
	OK(listener_open(&self->b, &listener));
	OK(overtake(true));
	for (round = 0; round < 4; round++) {
		struct ep ea, eb;

		OK(set_up_to_the_answer(&self->a, &ea, &listener, &eb));
		OK(ep_destroy(&eb));
		OK(last_word(&self->a.conn, &ea, &listener, &what));
		OK(ep_destroy(&ea));
		evd_drain(&self->b.conn);
	}
	OK(overtake(false));
	OK(listener_close(&listener));
}

/* The peer is connected, but its word for it is lost: it hears a reject then. */
TEST_F(ep_free, before_the_peers_last_word)
{
	struct dapx_event event;
	struct listener listener;

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
	EXPECT_EQ(DAPX_EP_COMPLETION_PENDING, ep_state(&self->eb));
	OK(ep_destroy(&self->eb));
	OK(host_mute(&self->a, false));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_DISCONNECTED, NULL));
	EXPECT_EQ(DAPX_EP_DISCONNECTED, ep_state(&self->ea));
	OK(evd_quiet(&self->b.conn));
}

TEST_F(ep_free, connected)
{
	struct dapx_event event;
	__u32 what;
	int i;

	OK(connect_cm(&self->ea, &self->eb));
	for (i = 0; i < EP_DEPTH; i++) {
		OK(ep_recv(&self->ea, i, TARGET, 8));
		OK(ep_send(&self->ea, i, 0, 8));
	}
	/* If nobody told the device to flush, the kernel log would say so. */
	OK(ep_destroy(&self->ea));
	/* From now on there is nothing new of it. */
	while (evd_poll(&self->a.done, &event))
		EXPECT_EQ(self->ea.handle, event.handle);
	evd_drain(&self->a.recv);
	evd_drain(&self->a.conn);
	OK(evd_quiet(&self->a.done));
	OK(evd_quiet(&self->a.recv));
	OK(evd_quiet(&self->a.conn));
	EXPECT_EQ(0, users_of(&self->a, self->a.done.handle));
	test_cmd(free, self->a.fd, .handle = self->a.done.handle);
	test_cmd(free, self->a.fd, .handle = self->a.recv.handle);
	test_cmd(free, self->a.fd, .handle = self->a.conn.handle);
	test_cmd(free, self->a.fd, .handle = self->a.mr);
	test_cmd(free, self->a.fd, .handle = self->a.pd);
	/* An iWARP peer has no receive for most of these, and may find that first. */
	OK(last_word(&self->b.conn, &self->eb, NULL, &what));
	EXPECT_TRUE(what == DAPX_CONNECTION_DISCONNECTED ||
		    (on_siw() && what == DAPX_CONNECTION_BROKEN))
		TH_LOG("the peer hears %u", what);
}

TEST_F(ep_free, connecting)
{
	struct listener listener;
	struct dapx_event event;
	__u32 what;
	int ret;

	OK(listener_open(&self->b, &listener));
	OK(ep_connect(&self->ea, &listener));
	OK(listener_request(&listener, &event));
	OK(ep_destroy(&self->ea));
	OK(evd_quiet(&self->a.conn));
	/* Who accepts is told that it came to nothing. */
	ret = _test_cmd(ep_accept, self->b.fd, .ep = self->eb.handle,
			.cm = event.request.cm, .rnr_retry_count = 7);
	if (!ret) {
		OK(last_word(&self->b.conn, &self->eb, &listener, &what));
		EXPECT_TRUE(what == DAPX_CONNECTION_ACCEPT_ERROR ||
			    what == DAPX_CONNECTION_DISCONNECTED)
			TH_LOG("the peer hears %u", what);
	}
}

/* ---- a connection ---- */

/* More than the rings hold, both ways, and each kind of request. */
static void fill_rings(struct ep *ep, const struct ep *peer)
{
	struct dapx_send_wr wr = {
		.flags = DAPX_SEND_SIGNALED, .num_sge = 1,
		.remote_addr = (uintptr_t)peer->host->mem + TARGET,
		.rkey = peer->host->rkey,
	};
	struct dapx_sge sge = host_sge(ep->host, 0, 4096);
	unsigned int i;

	for (i = 0; i < 4 * EP_DEPTH; i++) {
		wr.opcode = i % 3 == 0 ? DAPX_OP_RDMA_WRITE :
			    i % 3 == 1 ? DAPX_OP_RDMA_READ : DAPX_OP_SEND;
		if (ep_post_send(ep, &wr, &sge))
			break;
	}
	for (i = 0; i < 4 * EP_DEPTH; i++)
		if (ep_recv(ep, i, TARGET, 4096))
			break;
}

static void drain_host(struct host *host)
{
	evd_drain(&host->done);
	evd_drain(&host->recv);
	evd_drain(&host->conn);
}

TEST_F(ep_free, under_full_rings_both_ways)
{
	unsigned int n = count(10, 500), round;

	TH_LOG("%u rounds", n);
	for (round = 0; round < n; round++) {
		struct ep ea, eb;

		OK(ep_create(&self->a, &ea));
		OK(ep_create(&self->b, &eb));
		OK(connect_cm(&ea, &eb));
		fill_rings(&ea, &eb);
		fill_rings(&eb, &ea);
		OK(ep_destroy(round % 2 ? &ea : &eb));
		OK(ep_await_state(round % 2 ? &eb : &ea, DAPX_EP_DISCONNECTED));
		OK(ep_destroy(round % 2 ? &eb : &ea));
		drain_host(&self->a);
		drain_host(&self->b);
	}
	OK(evd_quiet(&self->a.done));
	OK(evd_quiet(&self->b.done));
}

TEST_F(ep_free, both_ends_at_once)
{
	unsigned int n = count(40, 2000), round, i;
	pthread_barrier_t start;
	pthread_t threads[2];

	TH_LOG("%u rounds", n);
	ASSERT_EQ(0, pthread_barrier_init(&start, NULL, 2));
	for (round = 0; round < n; round++) {
		struct ep ea, eb;
		struct freer freers[2] = {
			{ .ep = &ea, .start = &start, .after_us = dice() % 100 },
			{ .ep = &eb, .start = &start, .after_us = dice() % 100 },
		};

		OK(ep_create(&self->a, &ea));
		OK(ep_create(&self->b, &eb));
		OK(connect_cm(&ea, &eb));
		if (round % 2) {
			fill_rings(&ea, &eb);
			fill_rings(&eb, &ea);
		}
		for (i = 0; i < 2; i++)
			ASSERT_EQ(0, pthread_create(&threads[i], NULL, frees, &freers[i]));
		for (i = 0; i < 2; i++) {
			ASSERT_EQ(0, pthread_join(threads[i], NULL));
			EXPECT_EQ(0, freers[i].error);
		}
		ep_forget(&ea);
		ep_forget(&eb);
		drain_host(&self->a);
		drain_host(&self->b);
	}
	OK(evd_quiet(&self->a.conn));
	OK(evd_quiet(&self->b.conn));
	pthread_barrier_destroy(&start);
}

/* What it got is acknowledged, though it goes before the device's worker has come to that. */
TEST_F(ep_free, acknowledges_what_it_received)
{
	unsigned int n = count(20, 5000), round;

	if (on_siw())
		SKIP(return, "an iWARP connection has a CM, by which the peer hears of its end");
	OK(processor_share(&self->processor));
	for (round = 0; round < n; round++) {
		struct ep ea, eb;

		OK(ep_create(&self->a, &ea));
		OK(ep_create(&self->b, &eb));
		OK(connect_qp(&ea, &eb, NULL));
		OK(ep_recv(&eb, round, TARGET, 8));
		OK(ep_send(&ea, round, 0, 8));
		OK(expect_completion(&self->b.recv, round, DAPX_STATUS_SUCCESS, NULL));
		OK(ep_destroy(&eb));
		ASSERT_EQ(0, expect_completion(&self->a.done, round, DAPX_STATUS_SUCCESS, NULL))
			TH_LOG("round %u: %s", round, why());
		OK(ep_destroy(&ea));
		ep_forget(&ea);
		ep_forget(&eb);
	}
}

/* Either the free comes first, or the removal has done it. */
TEST_F(ep_free, while_the_device_is_removed)
{
	unsigned int n = count(5, 100), round, i;
	pthread_t threads[4];

	TH_LOG("%u rounds", n);
	host_close(&self->a);
	for (round = 0; round < n; round++) {
		struct freer freers[4];
		struct ep ea[4], eb[4];
		struct host a;

		OK(host_set_up(&a, 0));
		for (i = 0; i < 4; i++) {
			OK(ep_create(&a, &ea[i]));
			OK(ep_create(&self->b, &eb[i]));
			if (i)
				OK(connect_cm(&ea[i], &eb[i]));
		}
		for (i = 0; i < 4; i += 2)
			fill_rings(&ea[i + 1], &eb[i + 1]);
		for (i = 0; i < 4; i++) {
			freers[i] = (struct freer) {
				.ep = &ea[i], .after_us = dice() % 50000,
			};
			ASSERT_EQ(0, pthread_create(&threads[i], NULL, frees, &freers[i]));
		}
		OK(device_remove(&a));
		for (i = 0; i < 4; i++) {
			ASSERT_EQ(0, pthread_join(threads[i], NULL));
			EXPECT_TRUE(!freers[i].error || freers[i].error == EIO)
				TH_LOG("%s", strerror(freers[i].error));
			ep_forget(&ea[i]);
		}
		OK(device_add(&a));
		host_close(&a);
		for (i = 0; i < 4; i++)
			OK(ep_destroy(&eb[i]));
		drain_host(&self->b);
	}
	OK(host_set_up(&self->a, 0));
}

TEST_HARNESS_MAIN
