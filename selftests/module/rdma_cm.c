// SPDX-License-Identifier: GPL-2.0
/*
 * The RDMA CM of librdmacm on dapx: linked with libdapx-verbs ahead of librdmacm.
 *
 * Tests that begin with destroy_id are named after the sentences of the manual page
 * rdma_destroy_id(3). After each test the RDMA subsystem must count what it counted
 * before.
 */
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/dice.h"
#include "harness/fabric.h"
#include "harness/machine.h"
#include "harness/resources.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 120

/* The synopsis of the manual page, as a compiler checks it. */
int rdma_destroy_id(struct rdma_cm_id *id);

/* Of an interface without an RDMA device, and of none at all. */
#define PLAIN_IP "10.9.9.1"
#define ALIEN_IP "10.9.9.2"
/* What the RDMA CM over InfiniBand says in REJECTED. */
#define NO_SUCH_SERVICE 8
#define BY_CONSUMER 28
/* What librdmacm takes for "all that the device has". */
#define NO_PARAM NULL

#define DEPTH 8

/* ---- ids ---- */

/* Four addresses may be in use at once. */
static struct sockaddr *at(const char *ip, __u16 port)
{
	static __thread struct __kernel_sockaddr_storage addrs[4];
	static __thread unsigned int last;
	struct __kernel_sockaddr_storage *addr = &addrs[last++ % 4];

	set_addr(addr, ip, port);
	return (struct sockaddr *)addr;
}

static const char *own_ip(void)
{
	return getenv("DAPX_IP");
}

static const char *peer_ip(void)
{
	return getenv("DAPX_PEER_IP");
}

static struct rdma_cm_id *new_id(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = NULL;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		because("rdma_create_id: %m");
	return id;
}

/* Bound to any free port of the address; *@port is set. */
static struct rdma_cm_id *listen_at(struct rdma_event_channel *channel, const char *ip,
				    __u16 *port)
{
	struct rdma_cm_id *id = new_id(channel);

	if (id && (rdma_bind_addr(id, at(ip, 0)) || rdma_listen(id, 4))) {
		because("listen at %s: %m", ip);
		rdma_destroy_id(id);
		id = NULL;
	}
	if (id)
		*port = ntohs(rdma_get_src_port(id));
	return id;
}

static struct ibv_qp_init_attr usual_qp(void)
{
	return (struct ibv_qp_init_attr){
		.cap = { DEPTH, DEPTH, 1, 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
}

static int make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = usual_qp();

	return rdma_create_qp(id, NULL, &attr) ? because("rdma_create_qp: %m") : 0;
}

/* Its queue pair first, if it has one; then it is NULL. */
static int drop(struct rdma_cm_id **id)
{
	int ret = 0;

	if (*id && (*id)->qp)
		rdma_destroy_qp(*id);
	if (*id && rdma_destroy_id(*id))
		ret = because("rdma_destroy_id: %m");
	*id = NULL;
	return ret;
}

/* ---- events ---- */

static bool readable(struct rdma_event_channel *channel, int ms)
{
	struct pollfd poll_fd = { .fd = channel->fd, .events = POLLIN };

	return poll(&poll_fd, 1, ms) == 1;
}

/* Without a wait: NULL with errno. */
static struct rdma_cm_event *glance(struct rdma_event_channel *channel)
{
	int flags = fcntl(channel->fd, F_GETFL), error;
	struct rdma_cm_event *event = NULL;

	fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK);
	if (rdma_get_cm_event(channel, &event))
		event = NULL;
	error = errno;
	fcntl(channel->fd, F_SETFL, flags);
	errno = error;
	return event;
}

/*
 * Takes @event if it tells of the timewait state's end, which comes half a second after the end of
 * any connection.
 */
static bool is_taken(struct rdma_cm_event *event)
{
	return event && event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT && !rdma_ack_cm_event(event);
}

/* There is no other event: neither does poll(2) say so, nor is one got. */
static int no_event(struct rdma_event_channel *channel, int ms)
{
	bool told = readable(channel, ms);
	struct rdma_cm_event *event = glance(channel);

	if (is_taken(event))
		return no_event(channel, 0);
	if (event)
		return because("an event: %s", rdma_event_str(event->event));
	if (told)
		return because("readable");
	return errno != EAGAIN ? because("rdma_get_cm_event: %m") : 0;
}

static int quiet(struct rdma_event_channel *channel)
{
	return no_event(channel, GLANCE_MS);
}

static struct rdma_cm_event *next(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	if (!readable(channel, PATIENCE_MS)) {
		because("no event");
		return NULL;
	}
	event = glance(channel);
	if (!event)
		because("readable, but rdma_get_cm_event: %m");
	return event;
}

/* The next event, which is this one of this id; to be acknowledged. */
static struct rdma_cm_event *next_is(struct rdma_event_channel *channel, struct rdma_cm_id *id,
				     enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next(channel);

	while (type != RDMA_CM_EVENT_TIMEWAIT_EXIT && is_taken(event))
		event = next(channel);
	if (!event || (event->id == id && event->event == type))
		return event;
	because("%s with %d%s", rdma_event_str(event->event), event->status,
		event->id == id ? "" : " of another id");
	rdma_ack_cm_event(event);
	return NULL;
}

/* The same without a fault, acknowledged. */
static int expect(struct rdma_event_channel *channel, struct rdma_cm_id *id,
		  enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next_is(channel, id, type);
	int status;

	if (!event)
		return -1;
	status = event->status;
	if (rdma_ack_cm_event(event))
		return because("rdma_ack_cm_event: %m");
	return status ? because("status %d", status) : 0;
}

/* The same with a status. */
static int expect_status(struct rdma_event_channel *channel, struct rdma_cm_id *id,
			 enum rdma_cm_event_type type, int expected)
{
	struct rdma_cm_event *event = next_is(channel, id, type);
	int status;

	if (!event)
		return -1;
	status = event->status;
	rdma_ack_cm_event(event);
	return status != expected ? because("status %d", status) : 0;
}

/* The id of the listener's next request. */
static int take_request(struct rdma_event_channel *channel,
			struct rdma_cm_id *listener,
			struct rdma_cm_id **id)
{
	struct rdma_cm_event *event = next(channel);
	int ret = 0;

	if (!event)
		return -1;
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST || event->listen_id != listener)
		ret = because("%s of another listener", rdma_event_str(event->event));
	*id = ret ? NULL : event->id;
	rdma_ack_cm_event(event);
	return ret;
}

/* ---- two hosts, with a channel each ---- */

FIXTURE(cm)
{
	struct rdma_event_channel *ca;
	struct rdma_event_channel *cb;
	struct rdma_cm_id *listener;	/* of b, once there is one */
	struct rdma_cm_id *a;		/* of a connection */
	struct rdma_cm_id *b;
	__u16 port;
	char before[512];
};

/* Devices stay open once they have been used, with a PD and an XRC domain each. */
static int warm_up(struct rdma_event_channel *channel, const char *ip)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_XRC_RECV };
	struct rdma_cm_id *id;
	__u16 port;
	int ret = 0;

	id = listen_at(channel, ip, &port);
	if (!id)
		return -1;
	if (rdma_create_qp(id, NULL, &attr))
		ret = because("rdma_create_qp: %m");
	return drop(&id) ?: ret;
}

FIXTURE_SETUP(cm)
{
	self->ca = rdma_create_event_channel();
	self->cb = rdma_create_event_channel();
	ASSERT_NE(NULL, self->ca);
	ASSERT_NE(NULL, self->cb);
	OK(warm_up(self->ca, own_ip()));
	OK(warm_up(self->ca, peer_ip()));
	OK(rdma_resources(self->before));
	self->listener = listen_at(self->cb, peer_ip(), &self->port);
	ASSERT_NE(NULL, self->listener) TH_LOG("%s", why());
}

FIXTURE_TEARDOWN(cm)
{
	EXPECT_EQ(0, drop(&self->a)) TH_LOG("%s", why());
	EXPECT_EQ(0, drop(&self->b)) TH_LOG("%s", why());
	EXPECT_EQ(0, drop(&self->listener)) TH_LOG("%s", why());
	rdma_destroy_event_channel(self->ca);
	rdma_destroy_event_channel(self->cb);
	EXPECT_EQ(0, await_resources(self->before)) TH_LOG("%s", why());
}

/* An id whose address, or also route to b is resolved. */
static int resolved(struct _test_data_cm *self, __u16 port, bool route, struct rdma_cm_id **id)
{
	*id = new_id(self->ca);
	if (!*id)
		return -1;
	if (rdma_resolve_addr(*id, at(own_ip(), 0), at(peer_ip(), port), PATIENCE_MS))
		return because("rdma_resolve_addr: %m");
	if (expect(self->ca, *id, RDMA_CM_EVENT_ADDR_RESOLVED))
		return -1;
	if (!route)
		return 0;
	if (rdma_resolve_route(*id, PATIENCE_MS))
		return because("rdma_resolve_route: %m");
	return expect(self->ca, *id, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/* Sends a's request, with private data if @data is not NULL. */
static int call(struct _test_data_cm *self, __u16 port, const char *data, struct rdma_cm_id **id)
{
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = data ? strlen(data) + 1 : 0,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};

	if (resolved(self, port, true, id) || make_qp(*id))
		return -1;
	return rdma_connect(*id, &param) ? because("rdma_connect: %m") : 0;
}

/* A call that nobody takes; iWARP is told by TCP, in the call itself. */
static int call_in_vain(struct _test_data_cm *self, __u16 port, int status)
{
	int ret = call(self, port, NULL, &self->a);

	if (on_siw())
		return ret && errno == ECONNREFUSED ? 0 : because("not refused");
	return ret ?: expect_status(self->ca, self->a, RDMA_CM_EVENT_REJECTED, status);
}

/* Calls, and takes the request: self->a and self->b. */
static int request(struct _test_data_cm *self)
{
	if (call(self, self->port, NULL, &self->a))
		return -1;
	return take_request(self->cb, self->listener, &self->b);
}

static int establish(struct _test_data_cm *self)
{
	if (request(self) || make_qp(self->b))
		return -1;
	if (rdma_accept(self->b, NO_PARAM))
		return because("rdma_accept: %m");
	if (expect(self->ca, self->a, RDMA_CM_EVENT_ESTABLISHED))
		return -1;
	return expect(self->cb, self->b, RDMA_CM_EVENT_ESTABLISHED);
}

static int await_wc(struct ibv_cq *cq, struct ibv_wc *wc)
{
	__u64 deadline = in_ms(PATIENCE_MS);

	while (!ibv_poll_cq(cq, 1, wc)) {
		if (now_ns() > deadline)
			return because("no completion");
		sleep_ms(1);
	}
	return wc->status ? because("%s", ibv_wc_status_str(wc->status)) : 0;
}

/* One message from @from to @to, by the calls of <rdma/rdma_verbs.h>. */
static int message(struct rdma_cm_id *from, struct rdma_cm_id *to)
{
	static char sent[64], got[64];
	struct ibv_mr *ms, *mg;
	struct ibv_wc wc;
	int ret = -1;

	snprintf(sent, sizeof(sent), "message %u", dice());
	memset(got, 0, sizeof(got));
	ms = rdma_reg_msgs(from, sent, sizeof(sent));
	mg = rdma_reg_msgs(to, got, sizeof(got));
	if (!ms || !mg)
		because("rdma_reg_msgs: %m");
	else if (rdma_post_recv(to, got, got, sizeof(got), mg) ||
		 rdma_post_send(from, sent, sent, sizeof(sent), ms, 0))
		because("post: %m");
	else if (!await_wc(from->send_cq, &wc) && !await_wc(to->recv_cq, &wc))
		ret = wc.wr_id == (uintptr_t)got && !strcmp(sent, got) ? 0 : because("not it");
	if (ms)
		rdma_dereg_mr(ms);
	if (mg)
		rdma_dereg_mr(mg);
	return ret;
}

/* ---- a destruction, of which it is seen whether it waits ---- */

struct destruction {
	struct rdma_cm_id *id;
	pthread_t thread;
	bool ended;
	int ret;
};

static void *destroys(void *arg)
{
	struct destruction *d = arg;

	d->ret = rdma_destroy_id(d->id);
	__atomic_store_n(&d->ended, true, __ATOMIC_RELEASE);
	return NULL;
}

static int destroy_begin(struct destruction *d, struct rdma_cm_id *id)
{
	*d = (struct destruction){ .id = id };
	return pthread_create(&d->thread, NULL, destroys, d);
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

/* ---- rdma_destroy_id(3): DESCRIPTION ---- */

/* "Destroys the specified rdma_cm_id": no call knows it any more, and no other is touched. */
TEST_F(cm, destroy_id_destroys_the_specified_id)
{
	struct rdma_cm_id *id, *other, *gone;
	__u16 port;

	OK(resolved(self, 7, true, &id));
	OK(resolved(self, 7, false, &other));
	gone = id;
	EXPECT_EQ(0, rdma_destroy_id(id));
	EXPECT_ERRNO(EINVAL, rdma_destroy_id(gone));
	EXPECT_ERRNO(EINVAL, rdma_bind_addr(gone, at(own_ip(), 0)));
	EXPECT_ERRNO(EINVAL, rdma_resolve_route(gone, PATIENCE_MS));
	EXPECT_ERRNO(EINVAL, rdma_listen(gone, 1));
	EXPECT_ERRNO(EINVAL, rdma_connect(gone, NO_PARAM));
	EXPECT_ERRNO(EINVAL, rdma_disconnect(gone));
	EXPECT_ERRNO(EINVAL, rdma_migrate_id(gone, self->cb));
	ASSERT_EQ(0, rdma_resolve_route(other, PATIENCE_MS));
	OK(expect(self->ca, other, RDMA_CM_EVENT_ROUTE_RESOLVED));
	OK(drop(&other));
	/* Its port is free again. */
	id = listen_at(self->ca, own_ip(), &port);
	ASSERT_NE(NULL, id);
	other = new_id(self->ca);
	EXPECT_ERRNO(EADDRINUSE, rdma_bind_addr(other, at(own_ip(), port)));
	OK(drop(&id));
	EXPECT_EQ(0, rdma_bind_addr(other, at(own_ip(), port)));
	OK(drop(&other));
}

/* "cancels any outstanding asynchronous operation": the search for an address, ... */
TEST_F(cm, destroy_id_cancels_address_resolution)
{
	unsigned int n = count(50, 1000), i;

	for (i = 0; i < n; i++) {
		struct rdma_cm_id *id = new_id(self->ca);

		/* One that is soon resolved, or one that never is. */
		ASSERT_EQ(0, rdma_resolve_addr(id, at(own_ip(), 0),
					       at(i % 2 ? peer_ip() : NOBODY_IP, 7),
					       PATIENCE_MS));
		if (i % 4 == 3)
			spin(dice() % 20000);
		ASSERT_EQ(0, rdma_destroy_id(id));
		OK(no_event(self->ca, 0));
	}
	OK(quiet(self->ca));
}

/* ... for a route, ... */
TEST_F(cm, destroy_id_cancels_route_resolution)
{
	unsigned int n = count(50, 1000), i;
	struct rdma_cm_id *id;

	for (i = 0; i < n; i++) {
		OK(resolved(self, 7, false, &id));
		ASSERT_EQ(0, rdma_resolve_route(id, PATIENCE_MS));
		if (i % 2)
			spin(dice() % 20000);
		ASSERT_EQ(0, rdma_destroy_id(id));
		OK(no_event(self->ca, 0));
	}
	OK(quiet(self->ca));
}

/* ... a request that the peer has not answered, ... */
TEST_F(cm, destroy_id_cancels_connect)
{
	OK(request(self));
	OK(drop(&self->a));
	OK(no_event(self->ca, 0));
	/* An answer comes too late. */
	OK(make_qp(self->b));
	rdma_accept(self->b, NO_PARAM);
	OK(quiet(self->ca));
}

/* ... one whose answer is there, but has not been got, ... */
TEST_F(cm, destroy_id_cancels_connect_that_is_answered)
{
	OK(request(self));
	OK(make_qp(self->b));
	ASSERT_EQ(0, rdma_accept(self->b, NO_PARAM));
	ASSERT_TRUE(readable(self->ca, PATIENCE_MS));
	OK(drop(&self->a));
	OK(quiet(self->ca));
}

/* ... the answer to a request, ... */
TEST_F(cm, destroy_id_cancels_accept)
{
	OK(request(self));
	OK(make_qp(self->b));
	ASSERT_EQ(0, rdma_accept(self->b, NO_PARAM));
	OK(drop(&self->b));
	OK(no_event(self->cb, 0));
	OK(quiet(self->cb));
}

/* ... the end of a connection, ... */
TEST_F(cm, destroy_id_cancels_disconnect)
{
	OK(establish(self));
	ASSERT_EQ(0, rdma_disconnect(self->a));
	OK(drop(&self->a));
	OK(quiet(self->ca));
	OK(expect(self->cb, self->b, RDMA_CM_EVENT_DISCONNECTED));
	OK(quiet(self->cb));
}

/* ... and listening: who has called and was not got yet is told. */
TEST_F(cm, destroy_id_cancels_listen)
{
	struct rdma_cm_id *one, *two;
	struct rdma_cm_event *event;
	int i;

	OK(call(self, self->port, NULL, &one));
	OK(call(self, self->port, NULL, &two));
	ASSERT_TRUE(readable(self->cb, PATIENCE_MS));
	OK(drop(&self->listener));
	OK(no_event(self->cb, 0));
	for (i = 0; i < 2; i++) {
		event = next(self->ca);
		ASSERT_NE(NULL, event) TH_LOG("%s", why());
		EXPECT_EQ(RDMA_CM_EVENT_REJECTED, event->event);
		EXPECT_TRUE(event->id == one || event->id == two);
		rdma_ack_cm_event(event);
	}
	OK(drop(&one));
	OK(drop(&two));
	OK(quiet(self->cb));
}

/* ---- rdma_destroy_id(3): RETURN VALUE ---- */

/* "Returns 0 on success": in whatever state it is. */
TEST_F(cm, destroy_id_returns_0_on_success)
{
	struct rdma_cm_id *id;

	EXPECT_EQ(0, rdma_destroy_id(new_id(self->ca)));
	id = new_id(self->ca);
	ASSERT_EQ(0, rdma_bind_addr(id, at(own_ip(), 0)));
	EXPECT_EQ(0, rdma_destroy_id(id));
	id = new_id(self->ca);
	ASSERT_EQ(0, rdma_resolve_addr(id, at(own_ip(), 0), at(NOBODY_IP, 7), PATIENCE_MS));
	EXPECT_EQ(0, rdma_destroy_id(id));
	OK(resolved(self, 7, false, &id));
	EXPECT_EQ(0, rdma_destroy_id(id));
	OK(resolved(self, 7, true, &id));
	EXPECT_EQ(0, rdma_destroy_id(id));
	/* A request, which is rejected by that. */
	OK(request(self));
	EXPECT_EQ(0, rdma_destroy_id(self->b));
	self->b = NULL;
	OK(expect_status(self->ca, self->a, RDMA_CM_EVENT_REJECTED, BY_CONSUMER));
	/* And whom it was sent by. */
	rdma_destroy_qp(self->a);
	EXPECT_EQ(0, rdma_destroy_id(self->a));
	self->a = NULL;
	/* After a connection, and during one. */
	OK(establish(self));
	ASSERT_EQ(0, rdma_disconnect(self->a));
	OK(expect(self->ca, self->a, RDMA_CM_EVENT_DISCONNECTED));
	OK(expect(self->cb, self->b, RDMA_CM_EVENT_DISCONNECTED));
	OK(drop(&self->a));
	OK(drop(&self->b));
	OK(establish(self));
	OK(drop(&self->a));
	OK(expect(self->cb, self->b, RDMA_CM_EVENT_DISCONNECTED));
	OK(drop(&self->b));
	EXPECT_EQ(0, rdma_destroy_id(self->listener));
	self->listener = NULL;
	OK(quiet(self->ca));
	OK(quiet(self->cb));
}

/* "or -1 on error. If an error occurs, errno will be set" */
TEST_F(cm, destroy_id_returns_an_error_with_errno)
{
	struct rdma_cm_id not_one = {};

	errno = 0;
	EXPECT_EQ(-1, rdma_destroy_id(NULL));
	EXPECT_EQ(EINVAL, errno);
	errno = 0;
	EXPECT_EQ(-1, rdma_destroy_id(&not_one));
	EXPECT_EQ(EINVAL, errno);
	OK(resolved(self, 7, true, &self->a));
	OK(make_qp(self->a));
	errno = 0;
	EXPECT_EQ(-1, rdma_destroy_id(self->a));
	EXPECT_EQ(EBUSY, errno);
}

/* ---- rdma_destroy_id(3): NOTES ---- */

/* "Users must free any associated QP with the rdma_cm_id before calling this routine" */
TEST_F(cm, destroy_id_queue_pair_first)
{
	struct ibv_qp_init_attr attr = {
		.cap = { DEPTH, DEPTH, 1, 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_cq *cq;

	OK(establish(self));
	EXPECT_ERRNO(EBUSY, rdma_destroy_id(self->a));
	/* It is as it was. */
	OK(message(self->a, self->b));
	OK(message(self->b, self->a));
	rdma_destroy_qp(self->a);
	EXPECT_EQ(NULL, self->a->qp);
	EXPECT_EQ(0, rdma_destroy_id(self->a));

	/* Whoever destroys it. */
	OK(resolved(self, 7, true, &self->a));
	cq = ibv_create_cq(self->a->verbs, 2 * DEPTH, NULL, NULL, 0);
	ASSERT_NE(NULL, cq);
	attr.send_cq = cq;
	attr.recv_cq = cq;
	ASSERT_EQ(0, rdma_create_qp(self->a, NULL, &attr));
	EXPECT_ERRNO(EBUSY, rdma_destroy_id(self->a));
	EXPECT_EQ(0, ibv_destroy_qp(self->a->qp));
	EXPECT_EQ(NULL, self->a->qp);
	EXPECT_EQ(0, rdma_destroy_id(self->a));
	self->a = NULL;
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/* "and ack all related events": it waits for that. */
TEST_F(cm, destroy_id_events_acknowledged_first)
{
	struct rdma_cm_event *one, *two;
	struct rdma_cm_id *id = new_id(self->ca);
	struct destruction d;

	ASSERT_EQ(0, rdma_resolve_addr(id, at(own_ip(), 0), at(peer_ip(), 7), PATIENCE_MS));
	one = next_is(self->ca, id, RDMA_CM_EVENT_ADDR_RESOLVED);
	ASSERT_NE(NULL, one) TH_LOG("%s", why());
	ASSERT_EQ(0, rdma_resolve_route(id, PATIENCE_MS));
	two = next_is(self->ca, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
	ASSERT_NE(NULL, two) TH_LOG("%s", why());
	ASSERT_EQ(0, destroy_begin(&d, id));
	EXPECT_FALSE(destroy_ended(&d, GLANCE_MS));
	EXPECT_EQ(0, rdma_ack_cm_event(two));
	EXPECT_FALSE(destroy_ended(&d, GLANCE_MS));
	EXPECT_EQ(0, rdma_ack_cm_event(one));
	ASSERT_TRUE(destroy_ended(&d, PATIENCE_MS));
	pthread_join(d.thread, NULL);
	EXPECT_EQ(0, d.ret);
	OK(quiet(self->ca));
}

/* Those of a listener are its requests, though they name another id. */
TEST_F(cm, destroy_id_requests_acknowledged_first)
{
	struct rdma_cm_event *event;
	struct destruction d;

	OK(call(self, self->port, NULL, &self->a));
	event = next(self->cb);
	ASSERT_NE(NULL, event) TH_LOG("%s", why());
	/* The request itself may go at any time. */
	EXPECT_EQ(0, rdma_destroy_id(event->id));
	ASSERT_EQ(0, destroy_begin(&d, self->listener));
	self->listener = NULL;
	EXPECT_FALSE(destroy_ended(&d, GLANCE_MS));
	EXPECT_EQ(0, rdma_ack_cm_event(event));
	ASSERT_TRUE(destroy_ended(&d, PATIENCE_MS));
	pthread_join(d.thread, NULL);
	EXPECT_EQ(0, d.ret);
	OK(expect_status(self->ca, self->a, RDMA_CM_EVENT_REJECTED, BY_CONSUMER));
}

/* ---- connections ---- */

TEST_F(cm, private_data_goes_both_ways)
{
	struct rdma_conn_param answer = { .private_data = "answer", .private_data_len = 7 };
	struct rdma_cm_event *event;

	OK(call(self, self->port, "question", &self->a));
	event = next(self->cb);
	ASSERT_NE(NULL, event) TH_LOG("%s", why());
	EXPECT_EQ(RDMA_CM_EVENT_CONNECT_REQUEST, event->event);
	EXPECT_EQ(self->listener, event->listen_id);
	self->b = event->id;
	ASSERT_LE(9, event->param.conn.private_data_len);
	EXPECT_EQ(0, memcmp("question", event->param.conn.private_data, 9));
	EXPECT_EQ(0, rdma_ack_cm_event(event));
	EXPECT_EQ(self->listener->verbs, self->b->verbs);
	EXPECT_EQ(self->cb, self->b->channel);

	OK(make_qp(self->b));
	ASSERT_EQ(0, rdma_accept(self->b, &answer));
	event = next_is(self->ca, self->a, RDMA_CM_EVENT_ESTABLISHED);
	ASSERT_NE(NULL, event) TH_LOG("%s", why());
	EXPECT_EQ(0, event->status);
	EXPECT_EQ(NULL, event->listen_id);
	ASSERT_LE(7, event->param.conn.private_data_len);
	EXPECT_EQ(0, memcmp("answer", event->param.conn.private_data, 7));
	if (!on_siw())
		EXPECT_EQ(self->b->qp->qp_num, event->param.conn.qp_num);
	EXPECT_EQ(1, event->param.conn.initiator_depth);
	EXPECT_EQ(0, rdma_ack_cm_event(event));
	OK(expect(self->cb, self->b, RDMA_CM_EVENT_ESTABLISHED));
	OK(message(self->a, self->b));
	OK(message(self->b, self->a));
}

TEST_F(cm, addresses_and_ports)
{
	struct sockaddr_in *addr;
	char ip[INET_ADDRSTRLEN];

	OK(establish(self));
	addr = (struct sockaddr_in *)rdma_get_peer_addr(self->a);
	EXPECT_STREQ(peer_ip(), inet_ntop(AF_INET, &addr->sin_addr, ip, sizeof(ip)));
	EXPECT_EQ(htons(self->port), rdma_get_dst_port(self->a));
	addr = (struct sockaddr_in *)rdma_get_local_addr(self->b);
	EXPECT_STREQ(peer_ip(), inet_ntop(AF_INET, &addr->sin_addr, ip, sizeof(ip)));
	EXPECT_EQ(htons(self->port), rdma_get_src_port(self->b));
	addr = (struct sockaddr_in *)rdma_get_peer_addr(self->b);
	EXPECT_STREQ(own_ip(), inet_ntop(AF_INET, &addr->sin_addr, ip, sizeof(ip)));
	EXPECT_NE(0, rdma_get_src_port(self->a));
	EXPECT_EQ(rdma_get_src_port(self->a), rdma_get_dst_port(self->b));
}

TEST_F(cm, rejected_with_private_data)
{
	struct rdma_cm_event *event;

	OK(request(self));
	ASSERT_EQ(0, rdma_reject(self->b, "no", 3));
	event = next_is(self->ca, self->a, RDMA_CM_EVENT_REJECTED);
	ASSERT_NE(NULL, event) TH_LOG("%s", why());
	EXPECT_EQ(BY_CONSUMER, event->status);
	EXPECT_LE(3, event->param.conn.private_data_len);
	if (event->param.conn.private_data_len >= 3)
		EXPECT_EQ(0, memcmp("no", event->param.conn.private_data, 3));
	EXPECT_EQ(0, rdma_ack_cm_event(event));
	OK(drop(&self->b));
	OK(quiet(self->cb));
}

TEST_F(cm, nobody_listens)
{
	OK(drop(&self->listener));
	OK(call_in_vain(self, self->port, NO_SUCH_SERVICE));
}

/* Each side hears of it once, whoever begins. */
TEST_F(cm, disconnect_from_either_side)
{
	int round;

	for (round = 0; round < 4; round++) {
		OK(establish(self));
		EXPECT_EQ(0, rdma_disconnect(round % 2 ? self->a : self->b));
		if (round >= 2)
			EXPECT_EQ(0, rdma_disconnect(round % 2 ? self->b : self->a));
		OK(expect(self->ca, self->a, RDMA_CM_EVENT_DISCONNECTED));
		OK(expect(self->cb, self->b, RDMA_CM_EVENT_DISCONNECTED));
		OK(quiet(self->ca));
		OK(quiet(self->cb));
		OK(drop(&self->a));
		OK(drop(&self->b));
	}
}

TEST_F(cm, disconnect_twice)
{
	OK(establish(self));
	EXPECT_EQ(0, rdma_disconnect(self->a));
	EXPECT_EQ(0, rdma_disconnect(self->a));
	OK(expect(self->ca, self->a, RDMA_CM_EVENT_DISCONNECTED));
	EXPECT_EQ(0, rdma_disconnect(self->a));
	OK(quiet(self->ca));
}

/* After the end of the connection, on each side. */
TEST_F(cm, timewait_exit)
{
	if (on_siw())
		SKIP(return, "iWARP has no timewait state");
	OK(establish(self));
	EXPECT_EQ(0, rdma_disconnect(self->a));
	OK(expect(self->ca, self->a, RDMA_CM_EVENT_DISCONNECTED));
	OK(expect(self->cb, self->b, RDMA_CM_EVENT_DISCONNECTED));
	OK(expect(self->ca, self->a, RDMA_CM_EVENT_TIMEWAIT_EXIT));
	OK(expect(self->cb, self->b, RDMA_CM_EVENT_TIMEWAIT_EXIT));
}

/* Whoever goes without a word is missed all the same. */
TEST_F(cm, a_queue_pair_that_goes_disconnects)
{
	OK(establish(self));
	rdma_destroy_qp(self->a);
	OK(expect(self->cb, self->b, RDMA_CM_EVENT_DISCONNECTED));
	OK(quiet(self->ca));
}

/* ---- queue pairs that the program takes through their states itself ---- */

/* Made by verbs; the id knows nothing of it, and the CQ is its own. */
static int make_foreign_qp(struct rdma_cm_id *id, struct ibv_qp **qp)
{
	struct ibv_qp_init_attr attr = usual_qp();

	attr.send_cq = ibv_create_cq(id->verbs, 2 * DEPTH, NULL, NULL, 0);
	attr.recv_cq = attr.send_cq;
	if (!attr.send_cq)
		return because("ibv_create_cq: %m");
	*qp = ibv_create_qp(id->pd, &attr);
	return *qp ? 0 : because("ibv_create_qp: %m");
}

static int drop_foreign_qp(struct ibv_qp *qp)
{
	struct ibv_cq *cq = qp->send_cq;

	return ibv_destroy_qp(qp) || ibv_destroy_cq(cq) ? because("destroying: %m") : 0;
}

/* As programs do it: with what rdma_init_qp_attr() returns, as it is. */
static int take_to(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask, ret;

	if (rdma_init_qp_attr(id, &attr, &mask))
		return because("rdma_init_qp_attr to %u: %m", state);
	ret = ibv_modify_qp(qp, &attr, mask);
	return ret ? because("ibv_modify_qp to %u: %s", state, strerror(ret)) : 0;
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) ? IBV_QPS_UNKNOWN : attr.qp_state;
}

/* One message of 8 bytes. */
static int foreign_message(struct ibv_qp *from, struct ibv_qp *to)
{
	static __u64 sent, got;
	struct ibv_mr *ms = ibv_reg_mr(from->pd, &sent, 8, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *mg = ibv_reg_mr(to->pd, &got, 8, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge to_send = { .addr = (uintptr_t)&sent, .length = 8 };
	struct ibv_sge to_get = { .addr = (uintptr_t)&got, .length = 8 };
	struct ibv_send_wr send = { .sg_list = &to_send, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_recv_wr recv = { .sg_list = &to_get, .num_sge = 1 };
	struct ibv_send_wr *bad_send;
	struct ibv_recv_wr *bad_recv;
	struct ibv_wc wc;
	int ret = -1;

	sent = dice();
	got = ~sent;
	if (!ms || !mg)
		return because("ibv_reg_mr: %m");
	to_send.lkey = ms->lkey;
	to_get.lkey = mg->lkey;
	if (ibv_post_recv(to, &recv, &bad_recv) || ibv_post_send(from, &send, &bad_send))
		because("post");
	else if (!await_wc(from->send_cq, &wc) && !await_wc(to->recv_cq, &wc))
		ret = sent == got ? 0 : because("not it");
	ibv_dereg_mr(ms);
	ibv_dereg_mr(mg);
	return ret;
}

/* The id and the queue pair of a's side, whose request has gone. */
static int call_by_steps(struct _test_data_cm *self, struct ibv_qp **qp)
{
	struct rdma_conn_param param = {
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};

	if (resolved(self, self->port, true, &self->a) || make_foreign_qp(self->a, qp) ||
	    take_to(self->a, *qp, IBV_QPS_INIT))
		return -1;
	param.qp_num = (*qp)->qp_num;
	return rdma_connect(self->a, &param) ? because("rdma_connect: %m") : 0;
}

static int accept_by_steps(struct rdma_cm_id *id, struct ibv_qp **qp, const char *data)
{
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = strlen(data) + 1,
		.responder_resources = 1,
		.initiator_depth = 1,
		.rnr_retry_count = 7,
	};

	if (make_foreign_qp(id, qp) || take_to(id, *qp, IBV_QPS_INIT) ||
	    take_to(id, *qp, IBV_QPS_RTR) || take_to(id, *qp, IBV_QPS_RTS))
		return -1;
	param.qp_num = (*qp)->qp_num;
	return rdma_accept(id, &param) ? because("rdma_accept: %m") : 0;
}

TEST_F(cm, by_steps)
{
	struct rdma_cm_event *event;
	struct ibv_qp *qa, *qb;

	if (on_siw())
		SKIP(return, "an iWARP driver takes the steps itself");
	OK(call_by_steps(self, &qa));
	OK(take_request(self->cb, self->listener, &self->b));
	OK(accept_by_steps(self->b, &qb, "welcome"));
	event = next_is(self->ca, self->a, RDMA_CM_EVENT_CONNECT_RESPONSE);
	ASSERT_NE(NULL, event) TH_LOG("%s", why());
	EXPECT_STREQ("welcome", event->param.conn.private_data);
	EXPECT_EQ(qb->qp_num, event->param.conn.qp_num);
	EXPECT_EQ(0, rdma_ack_cm_event(event));
	EXPECT_EQ(IBV_QPS_INIT, state_of(qa));
	OK(take_to(self->a, qa, IBV_QPS_RTR));
	EXPECT_EQ(IBV_QPS_RTR, state_of(qa));
	OK(take_to(self->a, qa, IBV_QPS_RTS));
	EXPECT_EQ(IBV_QPS_RTS, state_of(qa));
	EXPECT_EQ(IBV_QPS_RTS, state_of(qb));
	OK(quiet(self->cb));
	ASSERT_EQ(0, rdma_establish(self->a));
	OK(expect(self->cb, self->b, RDMA_CM_EVENT_ESTABLISHED));
	/* Whoever establishes it needs not be told. */
	OK(quiet(self->ca));
	EXPECT_ERRNO(EINVAL, rdma_establish(self->a));
	OK(foreign_message(qa, qb));
	OK(foreign_message(qb, qa));

	/* As long as its queue pair is there, an id is, too. */
	EXPECT_ERRNO(EBUSY, rdma_destroy_id(self->a));
	ASSERT_EQ(0, rdma_disconnect(self->a));
	OK(expect(self->ca, self->a, RDMA_CM_EVENT_DISCONNECTED));
	OK(expect(self->cb, self->b, RDMA_CM_EVENT_DISCONNECTED));
	OK(drop_foreign_qp(qa));
	OK(drop_foreign_qp(qb));
}

TEST_F(cm, by_steps_with_a_peer_that_takes_none)
{
	struct ibv_qp *qp;

	if (on_siw())
		SKIP(return, "an iWARP driver takes the steps itself");
	OK(call_by_steps(self, &qp));
	OK(take_request(self->cb, self->listener, &self->b));
	OK(make_qp(self->b));
	ASSERT_EQ(0, rdma_accept(self->b, NO_PARAM));
	OK(expect(self->ca, self->a, RDMA_CM_EVENT_CONNECT_RESPONSE));
	OK(take_to(self->a, qp, IBV_QPS_RTR));
	OK(take_to(self->a, qp, IBV_QPS_RTS));
	ASSERT_EQ(0, rdma_establish(self->a));
	OK(expect(self->cb, self->b, RDMA_CM_EVENT_ESTABLISHED));
	/* The other end goes, and this one with it. */
	rdma_destroy_qp(self->b);
	OK(expect(self->ca, self->a, RDMA_CM_EVENT_DISCONNECTED));
	OK(drop_foreign_qp(qp));
}

TEST_F(cm, by_steps_out_of_order)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct rdma_conn_param param = {};
	struct ibv_qp *qp;
	int mask;

	if (on_siw())
		SKIP(return, "an iWARP driver takes the steps itself");
	EXPECT_ERRNO(EINVAL, rdma_init_qp_attr(self->listener, &attr, &mask));
	OK(resolved(self, self->port, true, &self->a));
	OK(make_foreign_qp(self->a, &qp));
	EXPECT_EQ(0, rdma_init_qp_attr(self->a, &attr, &mask));
	EXPECT_EQ(IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, mask);
	/* Nobody has answered yet. */
	attr.qp_state = IBV_QPS_RTR;
	EXPECT_ERRNO(EINVAL, rdma_init_qp_attr(self->a, &attr, &mask));
	attr.qp_state = IBV_QPS_ERR;
	EXPECT_ERRNO(EINVAL, rdma_init_qp_attr(self->a, &attr, &mask));
	EXPECT_ERRNO(EINVAL, rdma_establish(self->a));
	/* No such queue pair, and one in RESET. */
	EXPECT_ERRNO(EINVAL, rdma_connect(self->a, NO_PARAM));
	EXPECT_ERRNO(EINVAL, rdma_connect(self->a, &param));
	param.qp_num = qp->qp_num;
	EXPECT_ERRNO(EINVAL, rdma_connect(self->a, &param));
	OK(take_to(self->a, qp, IBV_QPS_INIT));
	/* It begins anew, and has another number. */
	attr.qp_state = IBV_QPS_RESET;
	ASSERT_EQ(0, ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	EXPECT_EQ(IBV_QPS_RESET, state_of(qp));
	OK(take_to(self->a, qp, IBV_QPS_INIT));
	param.qp_num = qp->qp_num;
	ASSERT_EQ(0, rdma_connect(self->a, &param));
	OK(take_request(self->cb, self->listener, &self->b));
	ASSERT_EQ(0, rdma_reject(self->b, NULL, 0));
	OK(expect_status(self->ca, self->a, RDMA_CM_EVENT_REJECTED, BY_CONSUMER));
	OK(drop_foreign_qp(qp));
}

TEST_F(cm, no_steps_on_iwarp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	if (!on_siw())
		SKIP(return, "this is not iWARP");
	OK(resolved(self, self->port, true, &self->a));
	EXPECT_ERRNO(EOPNOTSUPP, rdma_init_qp_attr(self->a, &attr, &mask));
}

/* ---- requests that come to nothing ---- */

TEST_F(cm, peer_gives_up)
{
	struct rdma_cm_event *event;

	if (on_siw())
		SKIP(return, "iWARP says nothing of it");
	OK(request(self));
	OK(drop(&self->a));
	event = next(self->cb);
	ASSERT_NE(NULL, event) TH_LOG("%s", why());
	EXPECT_EQ(self->b, event->id);
	EXPECT_TRUE(event->event == RDMA_CM_EVENT_REJECTED ||
		    event->event == RDMA_CM_EVENT_CONNECT_ERROR ||
		    event->event == RDMA_CM_EVENT_UNREACHABLE)
		TH_LOG("%s", rdma_event_str(event->event));
	EXPECT_NE(0, event->status);
	EXPECT_EQ(0, rdma_ack_cm_event(event));
	OK(make_qp(self->b));
	EXPECT_ERRNO(EINVAL, rdma_accept(self->b, NO_PARAM));
	OK(quiet(self->cb));
}

/* Nobody has got the request yet: there is nothing to be got, or an id without a peer. */
TEST_F(cm, peer_gives_up_early)
{
	struct rdma_cm_event *event;

	OK(call(self, self->port, NULL, &self->a));
	ASSERT_TRUE(readable(self->cb, PATIENCE_MS));
	OK(drop(&self->a));
	sleep_ms(GLANCE_MS);
	event = glance(self->cb);
	if (event) {
		EXPECT_EQ(RDMA_CM_EVENT_CONNECT_REQUEST, event->event);
		self->b = event->id;
		EXPECT_EQ(0, rdma_ack_cm_event(event));
		event = on_siw() ? NULL : next(self->cb);
		if (event) {
			EXPECT_EQ(self->b, event->id);
			rdma_ack_cm_event(event);
		}
	}
	OK(quiet(self->cb));
	OK(drop(&self->b));
	OK(establish(self));
}

TEST_F(cm, request_outlives_its_listener)
{
	OK(request(self));
	OK(drop(&self->listener));
	OK(make_qp(self->b));
	ASSERT_EQ(0, rdma_accept(self->b, NO_PARAM));
	OK(expect(self->ca, self->a, RDMA_CM_EVENT_ESTABLISHED));
	OK(expect(self->cb, self->b, RDMA_CM_EVENT_ESTABLISHED));
	OK(message(self->a, self->b));
}

/* ---- addresses ---- */

/* Connects @from to @to, both of one port; the listener has all addresses. */
static int reach(struct _test_data_cm *self, struct rdma_cm_id *listener, const char *from,
		 const char *to)
{
	__u16 port = ntohs(rdma_get_src_port(listener));
	struct rdma_cm_id *a = new_id(self->ca), *b = NULL;
	int ret = -1;

	if (rdma_resolve_addr(a, at(from, 0), at(to, port), PATIENCE_MS))
		because("%s to %s: %m", from, to);
	else if (!expect(self->ca, a, RDMA_CM_EVENT_ADDR_RESOLVED) &&
		 !rdma_resolve_route(a, PATIENCE_MS) &&
		 !expect(self->ca, a, RDMA_CM_EVENT_ROUTE_RESOLVED) && !make_qp(a) &&
		 !rdma_connect(a, NO_PARAM) && !take_request(self->cb, listener, &b) &&
		 !make_qp(b) && !rdma_accept(b, NO_PARAM) &&
		 !expect(self->ca, a, RDMA_CM_EVENT_ESTABLISHED) &&
		 !expect(self->cb, b, RDMA_CM_EVENT_ESTABLISHED) && !message(a, b) &&
		 !rdma_disconnect(a) && !expect(self->ca, a, RDMA_CM_EVENT_DISCONNECTED) &&
		 !expect(self->cb, b, RDMA_CM_EVENT_DISCONNECTED))
		ret = 0;
	drop(&a);
	drop(&b);
	return ret;
}

TEST_F(cm, listener_of_all_addresses)
{
	const char *own6 = getenv("DAPX_IP6"), *peer6 = getenv("DAPX_PEER_IP6");
	struct rdma_cm_id *id;
	__u16 port;

	id = listen_at(self->cb, "0.0.0.0", &port);
	ASSERT_NE(NULL, id) TH_LOG("%s", why());
	EXPECT_NE(0, port);
	EXPECT_EQ(NULL, id->verbs);
	OK(reach(self, id, own_ip(), peer_ip()));
	OK(reach(self, id, peer_ip(), own_ip()));
	OK(drop(&id));
	id = listen_at(self->cb, "::", &port);
	ASSERT_NE(NULL, id) TH_LOG("%s", why());
	EXPECT_NE(0, port);
	OK(reach(self, id, own_ip(), peer_ip()));
	OK(reach(self, id, own6, peer6));
	OK(reach(self, id, peer6, own6));
	OK(drop(&id));
}

/* Which stands for all addresses, as it does for librdmacm. */
TEST_F(cm, listener_of_a_loopback_address)
{
	struct rdma_cm_id *id;
	__u16 port;

	id = listen_at(self->cb, "127.0.0.1", &port);
	ASSERT_NE(NULL, id) TH_LOG("%s", why());
	EXPECT_EQ(NULL, id->verbs);
	OK(reach(self, id, own_ip(), peer_ip()));
	OK(reach(self, id, peer_ip(), own_ip()));
	OK(drop(&id));
	id = listen_at(self->cb, "::1", &port);
	ASSERT_NE(NULL, id) TH_LOG("%s", why());
	EXPECT_EQ(NULL, id->verbs);
	OK(reach(self, id, getenv("DAPX_IP6"), getenv("DAPX_PEER_IP6")));
	OK(drop(&id));
}

TEST_F(cm, listener_of_one_family)
{
	struct rdma_cm_id *id = new_id(self->cb);
	int on = 1;

	ASSERT_EQ(0, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)));
	ASSERT_EQ(0, rdma_bind_addr(id, at("::", 0)));
	ASSERT_EQ(0, rdma_listen(id, 4));
	OK(reach(self, id, getenv("DAPX_IP6"), getenv("DAPX_PEER_IP6")));
	/* The port is one that somebody listens at, if not for this address. */
	OK(call_in_vain(self, ntohs(rdma_get_src_port(id)), BY_CONSUMER));
	OK(drop(&id));
}

static int set(struct rdma_cm_id *id, int option, int value)
{
	__u8 byte = value;

	if (option == RDMA_OPTION_ID_TOS || option == RDMA_OPTION_ID_ACK_TIMEOUT)
		return rdma_set_option(id, RDMA_OPTION_ID, option, &byte, sizeof(byte));
	return rdma_set_option(id, RDMA_OPTION_ID, option, &value, sizeof(value));
}

TEST_F(cm, options)
{
	struct rdma_cm_id *id = new_id(self->cb);
	int value = 1;

	EXPECT_EQ(0, set(id, RDMA_OPTION_ID_TOS, 0x28));
	EXPECT_EQ(0, set(id, RDMA_OPTION_ID_ACK_TIMEOUT, 14));
	EXPECT_EQ(0, set(id, RDMA_OPTION_ID_REUSEADDR, 1));
	EXPECT_EQ(0, set(id, RDMA_OPTION_ID_AFONLY, 1));
	EXPECT_ERRNO(EINVAL, set(id, RDMA_OPTION_ID_ACK_TIMEOUT, 32));
	EXPECT_ERRNO(EINVAL, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &value,
					     sizeof(value)));
	EXPECT_ERRNO(EINVAL, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR,
					     &value, 1));
	EXPECT_EQ(-1, set(id, 99, 1));
	OK(drop(&id));

	/* Until there is an address, and until there is a route. */
	OK(resolved(self, self->port, false, &self->a));
	EXPECT_EQ(0, set(self->a, RDMA_OPTION_ID_TOS, 0x28));
	EXPECT_ERRNO(EINVAL, set(self->a, RDMA_OPTION_ID_AFONLY, 1));
	ASSERT_EQ(0, rdma_resolve_route(self->a, PATIENCE_MS));
	OK(expect(self->ca, self->a, RDMA_CM_EVENT_ROUTE_RESOLVED));
	EXPECT_ERRNO(EINVAL, set(self->a, RDMA_OPTION_ID_TOS, 0x28));
	EXPECT_EQ(0, set(self->a, RDMA_OPTION_ID_ACK_TIMEOUT, 14));
}

TEST_F(cm, ids_at_the_same_address)
{
	struct rdma_cm_id *first = new_id(self->cb), *second = new_id(self->cb);
	struct sockaddr *taken;

	ASSERT_EQ(0, set(first, RDMA_OPTION_ID_REUSEADDR, 1));
	ASSERT_EQ(0, rdma_bind_addr(first, at(own_ip(), 0)));
	taken = at(own_ip(), ntohs(rdma_get_src_port(first)));
	EXPECT_ERRNO(EADDRINUSE, rdma_bind_addr(second, taken));
	ASSERT_EQ(0, set(second, RDMA_OPTION_ID_REUSEADDR, 1));
	EXPECT_EQ(0, rdma_bind_addr(second, taken));
	OK(drop(&first));
	OK(drop(&second));
}

/* Listening without an address is listening at all of them. */
TEST_F(cm, listener_without_an_address)
{
	struct rdma_cm_id *id = new_id(self->cb);

	ASSERT_EQ(0, rdma_listen(id, 4));
	EXPECT_NE(0, rdma_get_src_port(id));
	OK(reach(self, id, own_ip(), peer_ip()));
	OK(drop(&id));
}

TEST_F(cm, ports)
{
	struct rdma_cm_id *id = new_id(self->cb);

	EXPECT_NE(0, self->port);
	EXPECT_ERRNO(EADDRINUSE, rdma_bind_addr(id, at(peer_ip(), self->port)));
	/* Of which one address is enough. */
	EXPECT_ERRNO(EADDRINUSE, rdma_bind_addr(id, at("0.0.0.0", self->port)));
	/* It can be bound all the same, elsewhere, once. */
	ASSERT_EQ(0, rdma_bind_addr(id, at(own_ip(), self->port)));
	EXPECT_EQ(htons(self->port), rdma_get_src_port(id));
	EXPECT_ERRNO(EINVAL, rdma_bind_addr(id, at(own_ip(), 0)));
	OK(drop(&id));
}

TEST_F(cm, addresses_of_no_device)
{
	struct rdma_cm_id *id = new_id(self->ca);

	ASSERT_EQ(0, run("ip addr add " PLAIN_IP "/32 dev lo"));
	EXPECT_ERRNO(ENODEV, rdma_bind_addr(id, at(PLAIN_IP, 0)));
	EXPECT_ERRNO(EADDRNOTAVAIL, rdma_bind_addr(id, at(ALIEN_IP, 0)));
	EXPECT_ERRNO(ENODEV, rdma_resolve_addr(id, at(PLAIN_IP, 0), at(peer_ip(), 7), 1000));
	/* There is a way, but not by RDMA. */
	ASSERT_EQ(0, rdma_resolve_addr(id, NULL, at(PLAIN_IP, 7), 1000));
	OK(expect_status(self->ca, id, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV));
	EXPECT_EQ(0, run("ip addr del " PLAIN_IP "/32 dev lo"));
	/* There is none. */
	ASSERT_EQ(0, rdma_resolve_addr(id, NULL, at("192.0.2.1", 7), 1000));
	OK(expect_status(self->ca, id, RDMA_CM_EVENT_ADDR_ERROR, -ENETUNREACH));
	/* And after all that: */
	ASSERT_EQ(0, rdma_resolve_addr(id, NULL, at(peer_ip(), 7), PATIENCE_MS));
	OK(expect(self->ca, id, RDMA_CM_EVENT_ADDR_RESOLVED));
	OK(drop(&id));
}

TEST_F(cm, addresses_of_nobody)
{
	struct rdma_cm_event *event;

	self->a = new_id(self->ca);
	ASSERT_EQ(0, rdma_resolve_addr(self->a, at(own_ip(), 0), at(NOBODY_IP, 7), 200));
	event = next_is(self->ca, self->a, RDMA_CM_EVENT_ADDR_ERROR);
	ASSERT_NE(NULL, event) TH_LOG("%s", why());
	EXPECT_GT(0, event->status);
	EXPECT_EQ(0, rdma_ack_cm_event(event));
}

/* ---- channels ---- */

TEST_F(cm, channel_is_readable_while_there_is_an_event)
{
	struct rdma_cm_id *ids[3];
	int i;

	OK(quiet(self->ca));
	for (i = 0; i < 3; i++) {
		ids[i] = new_id(self->ca);
		ids[i]->context = &ids[i];
		ASSERT_EQ(0, rdma_resolve_addr(ids[i], at(own_ip(), 0), at(peer_ip(), 7),
					       PATIENCE_MS));
	}
	for (i = 0; i < 3; i++) {
		struct rdma_cm_event *event = next(self->ca);

		ASSERT_NE(NULL, event) TH_LOG("%s", why());
		EXPECT_EQ(RDMA_CM_EVENT_ADDR_RESOLVED, event->event);
		ASSERT_NE(NULL, event->id->context);
		EXPECT_EQ(event->id, *(struct rdma_cm_id **)event->id->context);
		/* Each once. */
		event->id->context = NULL;
		rdma_ack_cm_event(event);
	}
	OK(quiet(self->ca));
	for (i = 0; i < 3; i++)
		OK(drop(&ids[i]));
}

/* What the device tells of its ports is no event of a channel. */
TEST_F(cm, channel_and_a_port_that_changes)
{
	struct host a, b;

	OK(host_set_up(&a, 0));
	OK(host_set_up(&b, 1));
	OK(link_set(&b, &a, false));
	OK(link_set(&b, &a, true));
	OK(quiet(self->cb));
	OK(establish(self));
	host_close(&a);
	host_close(&b);
}

struct reader {
	struct rdma_event_channel *channel;
	unsigned int wanted;
	unsigned int got;	/* of ids with a context */
	int error;
	pthread_t thread;
};

static void *reads(void *arg)
{
	struct reader *reader = arg;
	struct rdma_cm_event *event;

	while (reader->got < reader->wanted && !reader->error) {
		if (rdma_get_cm_event(reader->channel, &event)) {
			reader->error = errno;
			break;
		}
		reader->got += !!event->id->context;
		if (rdma_ack_cm_event(event))
			reader->error = errno;
	}
	return NULL;
}

/* It waits while ids come, work and go; none of the others' events is lost. */
TEST_F(cm, channel_with_a_thread_that_waits)
{
	unsigned int n = count(100, 500), i;
	struct reader reader = { .channel = self->ca, .wanted = n };
	struct rdma_cm_id *ids[500];

	ASSERT_EQ(0, pthread_create(&reader.thread, NULL, reads, &reader));
	for (i = 0; i < n; i++) {
		struct rdma_cm_id *other = new_id(self->ca);

		ids[i] = new_id(self->ca);
		ids[i]->context = self;
		ASSERT_EQ(0, rdma_resolve_addr(other, at(own_ip(), 0), at(peer_ip(), 7),
					       PATIENCE_MS));
		ASSERT_EQ(0, rdma_resolve_addr(ids[i], at(own_ip(), 0), at(peer_ip(), 7),
					       PATIENCE_MS));
		spin(dice() % 20000);
		OK(drop(&other));
	}
	pthread_join(reader.thread, NULL);
	EXPECT_EQ(n, reader.got);
	EXPECT_EQ(0, reader.error);
	OK(quiet(self->ca));
	for (i = 0; i < n; i++)
		OK(drop(&ids[i]));
}

/* More than an event dispatcher of the module holds. */
TEST_F(cm, channel_with_many_requests)
{
	enum { N = 40 };
	struct rdma_cm_id *calling[N], *called[N], *id = new_id(self->cb);
	int i;

	ASSERT_EQ(0, rdma_bind_addr(id, at(peer_ip(), 0)));
	ASSERT_EQ(0, rdma_listen(id, N));
	for (i = 0; i < N; i++)
		OK(call(self, ntohs(rdma_get_src_port(id)), NULL, &calling[i]));
	for (i = 0; i < N; i++) {
		/* Wherever they are. */
		if (i == N / 4)
			ASSERT_EQ(0, rdma_migrate_id(id, self->ca));
		OK(take_request(i < N / 4 ? self->cb : self->ca, id, &called[i]));
	}
	OK(quiet(self->ca));
	OK(quiet(self->cb));
	for (i = 0; i < N; i++) {
		OK(drop(&calling[i]));
		OK(drop(&called[i]));
	}
	OK(drop(&id));
}

/* ---- rdma_migrate_id ---- */

static void *acknowledges_later(void *event)
{
	sleep_ms(2 * GLANCE_MS);
	rdma_ack_cm_event(event);
	return NULL;
}

TEST_F(cm, migrate_before_and_after_an_event)
{
	struct rdma_cm_id *id = new_id(self->ca);

	ASSERT_EQ(0, rdma_migrate_id(id, self->cb));
	EXPECT_EQ(self->cb, id->channel);
	ASSERT_EQ(0, rdma_resolve_addr(id, at(own_ip(), 0), at(peer_ip(), 7), PATIENCE_MS));
	OK(expect(self->cb, id, RDMA_CM_EVENT_ADDR_RESOLVED));
	OK(quiet(self->ca));
	/* One that nobody has got goes along. */
	ASSERT_EQ(0, rdma_resolve_route(id, PATIENCE_MS));
	ASSERT_TRUE(readable(self->cb, PATIENCE_MS));
	ASSERT_EQ(0, rdma_migrate_id(id, self->ca));
	OK(quiet(self->cb));
	OK(expect(self->ca, id, RDMA_CM_EVENT_ROUTE_RESOLVED));
	OK(quiet(self->ca));
	OK(drop(&id));
}

/* An event that this library itself makes goes along as well. */
TEST_F(cm, migrate_with_an_event_without_a_device)
{
	struct rdma_cm_id *id = new_id(self->ca);

	ASSERT_EQ(0, rdma_resolve_addr(id, NULL, at("192.0.2.1", 7), 1000));
	ASSERT_EQ(0, rdma_migrate_id(id, self->cb));
	OK(quiet(self->ca));
	OK(expect_status(self->cb, id, RDMA_CM_EVENT_ADDR_ERROR, -ENETUNREACH));
	OK(drop(&id));
}

TEST_F(cm, migrate_to_where_it_is)
{
	struct rdma_cm_id *id = new_id(self->ca);

	ASSERT_EQ(0, rdma_resolve_addr(id, at(own_ip(), 0), at(peer_ip(), 7), PATIENCE_MS));
	ASSERT_TRUE(readable(self->ca, PATIENCE_MS));
	ASSERT_EQ(0, rdma_migrate_id(id, self->ca));
	OK(expect(self->ca, id, RDMA_CM_EVENT_ADDR_RESOLVED));
	OK(quiet(self->ca));
	OK(drop(&id));
}

/* A request that is on its way, or there already, is got where the listener is then. */
TEST_F(cm, migrate_while_an_event_comes)
{
	struct rdma_event_channel *from = self->cb, *to = rdma_create_event_channel(), *old;
	unsigned int n = count(20, 400), i;
	__u64 begin, end, takes_ns = 0;

	ASSERT_NE(NULL, to);
	for (i = 0; i <= n; i++) {
		OK(call(self, self->port, NULL, &self->a));
		begin = now_ns();
		if (i) {
			end = begin + dice() % (2 * takes_ns);
			while (now_ns() < end)
				;
		} else {
			/* This one says how long it is on its way. */
			ASSERT_TRUE(readable(from, PATIENCE_MS));
			takes_ns = now_ns() - begin;
		}
		ASSERT_EQ(0, rdma_migrate_id(self->listener, to));
		OK(take_request(to, self->listener, &self->b));
		EXPECT_EQ(to, self->b->channel);
		OK(no_event(from, 0));
		OK(drop(&self->b));
		OK(drop(&self->a));
		old = from;
		from = to;
		to = old;
	}
	ASSERT_EQ(0, rdma_migrate_id(self->listener, self->cb));
	rdma_destroy_event_channel(from == self->cb ? to : from);
}

/* It waits until those that were got are acknowledged, as a destruction does. */
TEST_F(cm, migrate_waits_for_acknowledgements)
{
	struct rdma_cm_id *id = new_id(self->ca);
	struct rdma_cm_event *event;
	pthread_t thread;
	__u64 begin;

	ASSERT_EQ(0, rdma_resolve_addr(id, at(own_ip(), 0), at(peer_ip(), 7), PATIENCE_MS));
	event = next(self->ca);
	ASSERT_NE(NULL, event) TH_LOG("%s", why());
	ASSERT_EQ(0, pthread_create(&thread, NULL, acknowledges_later, event));
	begin = now_ns();
	EXPECT_EQ(0, rdma_migrate_id(id, self->cb));
	EXPECT_LE(GLANCE_MS * 1000000ULL, now_ns() - begin);
	pthread_join(thread, NULL);
	OK(drop(&id));
}

/* As servers do that have a channel for each connection. */
TEST_F(cm, migrate_a_request)
{
	struct rdma_event_channel *own = rdma_create_event_channel();

	ASSERT_NE(NULL, own);
	OK(request(self));
	ASSERT_EQ(0, rdma_migrate_id(self->b, own));
	OK(make_qp(self->b));
	ASSERT_EQ(0, rdma_accept(self->b, NO_PARAM));
	OK(expect(own, self->b, RDMA_CM_EVENT_ESTABLISHED));
	OK(expect(self->ca, self->a, RDMA_CM_EVENT_ESTABLISHED));
	OK(message(self->a, self->b));
	/* And back, connected. */
	ASSERT_EQ(0, rdma_migrate_id(self->b, self->cb));
	rdma_destroy_event_channel(own);
	ASSERT_EQ(0, rdma_disconnect(self->a));
	OK(expect(self->cb, self->b, RDMA_CM_EVENT_DISCONNECTED));
	OK(expect(self->ca, self->a, RDMA_CM_EVENT_DISCONNECTED));
	OK(quiet(self->cb));
}

TEST_F(cm, migrate_a_listener)
{
	OK(call(self, self->port, NULL, &self->a));
	ASSERT_TRUE(readable(self->cb, PATIENCE_MS));
	/* Both sides on one channel. */
	ASSERT_EQ(0, rdma_migrate_id(self->listener, self->ca));
	OK(quiet(self->cb));
	OK(take_request(self->ca, self->listener, &self->b));
	EXPECT_EQ(self->ca, self->b->channel);
}

/* Without a channel it is synchronous from then on, and with one not any more. */
TEST_F(cm, migrate_to_synchronous_and_back)
{
	struct rdma_cm_id *id = new_id(self->ca);

	ASSERT_EQ(0, rdma_migrate_id(id, NULL));
	ASSERT_EQ(0, rdma_resolve_addr(id, at(own_ip(), 0), at(peer_ip(), 7), PATIENCE_MS));
	ASSERT_NE(NULL, id->event);
	EXPECT_EQ(RDMA_CM_EVENT_ADDR_RESOLVED, id->event->event);
	ASSERT_EQ(0, rdma_migrate_id(id, self->ca));
	EXPECT_EQ(NULL, id->event);
	ASSERT_EQ(0, rdma_resolve_route(id, PATIENCE_MS));
	OK(expect(self->ca, id, RDMA_CM_EVENT_ROUTE_RESOLVED));
	OK(drop(&id));
}

/* ---- synchronous ids ---- */

/* What rdma_getaddrinfo(3) would say. */
static struct rdma_addrinfo info(int flags, enum ibv_qp_type type, const char *ip, __u16 port)
{
	struct rdma_addrinfo info = {
		.ai_flags = flags,
		.ai_family = AF_INET,
		.ai_qp_type = type,
		.ai_port_space = RDMA_PS_TCP,
	};

	if (flags & RAI_PASSIVE) {
		info.ai_src_addr = at(ip, port);
		info.ai_src_len = sizeof(struct sockaddr_in);
	} else {
		info.ai_dst_addr = at(ip, port);
		info.ai_dst_len = sizeof(struct sockaddr_in);
	}
	return info;
}

/* A server for one connection, of which it takes one message; with RC it sends it back. */
struct server {
	struct rdma_cm_id *listener;
	bool xrc;
	bool acknowledged;	/* the message, to the client: the server may go */
	char memory[64];
	const char *what;	/* did not work */
	int error;
	pthread_t thread;
};

static int fails(struct server *server, const char *what)
{
	server->error = errno ?: -1;
	server->what = what;
	return -1;
}

/* As librdmacm's rdma_xserver; the queue's number goes as private data. */
static int make_srq(struct rdma_cm_id *id, __be32 *number)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	__u32 srq_num;

	if (rdma_create_srq(id, NULL, &attr) || ibv_get_srq_num(id->srq, &srq_num))
		return -1;
	*number = htobe32(srq_num);
	return 0;
}

static int serve(struct server *server, struct rdma_cm_id *id, struct ibv_mr **mr)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7, .retry_count = 7 };
	struct ibv_wc wc;
	__be32 number;

	if (server->xrc) {
		if (make_srq(id, &number))
			return fails(server, "rdma_create_srq");
		param.private_data = &number;
		param.private_data_len = sizeof(number);
	}
	*mr = rdma_reg_msgs(id, server->memory, sizeof(server->memory));
	if (!*mr)
		return fails(server, "rdma_reg_msgs");
	if (rdma_post_recv(id, NULL, server->memory, sizeof(server->memory), *mr))
		return fails(server, "rdma_post_recv");
	if (rdma_accept(id, &param))
		return fails(server, "rdma_accept");
	if (rdma_get_recv_comp(id, &wc) != 1 || wc.status)
		return fails(server, "rdma_get_recv_comp");
	if (server->xrc)
		return 0;
	if (rdma_post_send(id, NULL, server->memory, sizeof(server->memory), *mr, 0))
		return fails(server, "rdma_post_send");
	if (rdma_get_send_comp(id, &wc) != 1 || wc.status)
		return fails(server, "rdma_get_send_comp");
	return rdma_disconnect(id) ? fails(server, "rdma_disconnect") : 0;
}

static void *serves(void *arg)
{
	struct server *server = arg;
	struct ibv_mr *mr = NULL;
	struct rdma_cm_id *id;
	__u64 deadline;

	if (rdma_get_request(server->listener, &id)) {
		fails(server, "rdma_get_request");
		return NULL;
	}
	serve(server, id, &mr);
	deadline = in_ms(PATIENCE_MS);
	while (!__atomic_load_n(&server->acknowledged, __ATOMIC_ACQUIRE) && now_ns() < deadline)
		sleep_ms(1);
	if (server->xrc && rdma_disconnect(id))
		fails(server, "rdma_disconnect");
	if (mr)
		rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	return NULL;
}

static int server_begin(struct server *server, bool xrc, __u16 *port)
{
	enum ibv_qp_type type = xrc ? IBV_QPT_XRC_RECV : IBV_QPT_RC;
	struct rdma_addrinfo passive = info(RAI_PASSIVE, type, peer_ip(), 0);
	struct ibv_qp_init_attr attr = usual_qp();

	*server = (struct server){ .xrc = xrc };
	attr.qp_type = type;
	if (rdma_create_ep(&server->listener, &passive, NULL, &attr))
		return because("rdma_create_ep: %m");
	if (rdma_listen(server->listener, 0))
		return because("rdma_listen: %m");
	*port = ntohs(rdma_get_src_port(server->listener));
	return pthread_create(&server->thread, NULL, serves, server);
}

static int server_end(struct server *server)
{
	pthread_join(server->thread, NULL);
	rdma_destroy_ep(server->listener);
	return server->what ? because("%s: %s", server->what, strerror(server->error)) : 0;
}

TEST_F(cm, synchronous)
{
	char sent[64] = "there and back", got[64] = "";
	struct ibv_qp_init_attr attr = usual_qp();
	struct rdma_addrinfo active;
	struct ibv_mr *ms, *mg;
	struct server server;
	struct rdma_cm_id *id;
	struct ibv_wc wc;
	__u16 port;

	OK(server_begin(&server, false, &port));
	active = info(0, IBV_QPT_RC, peer_ip(), port);
	ASSERT_EQ(0, rdma_create_ep(&id, &active, NULL, &attr)) TH_LOG("%m");
	ASSERT_NE(NULL, id->qp);
	ASSERT_NE(NULL, id->pd);
	ms = rdma_reg_msgs(id, sent, sizeof(sent));
	mg = rdma_reg_msgs(id, got, sizeof(got));
	ASSERT_NE(NULL, ms);
	ASSERT_NE(NULL, mg);
	ASSERT_EQ(0, rdma_post_recv(id, NULL, got, sizeof(got), mg));
	ASSERT_EQ(0, rdma_connect(id, NO_PARAM)) TH_LOG("%m");
	ASSERT_EQ(0, rdma_post_send(id, NULL, sent, sizeof(sent), ms, 0));
	ASSERT_EQ(1, rdma_get_send_comp(id, &wc));
	EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(1, rdma_get_recv_comp(id, &wc));
	EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
	EXPECT_STREQ(sent, got);
	__atomic_store_n(&server.acknowledged, true, __ATOMIC_RELEASE);
	EXPECT_EQ(0, rdma_disconnect(id));
	rdma_dereg_mr(ms);
	rdma_dereg_mr(mg);
	rdma_destroy_ep(id);
	OK(server_end(&server));
}

/* As librdmacm's rdma_xclient. */
TEST_F(cm, synchronous_xrc)
{
	char sent[64] = "by way of a shared queue";
	struct ibv_qp_init_attr attr = usual_qp();
	struct ibv_send_wr wr = { .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct rdma_addrinfo active;
	struct server server;
	struct rdma_cm_id *id;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	__be32 number;
	__u16 port;

	OK(server_begin(&server, true, &port));
	active = info(0, IBV_QPT_XRC_SEND, peer_ip(), port);
	ASSERT_EQ(0, rdma_create_ep(&id, &active, NULL, &attr)) TH_LOG("%m");
	mr = rdma_reg_msgs(id, sent, sizeof(sent));
	ASSERT_NE(NULL, mr);
	ASSERT_EQ(0, rdma_connect(id, NO_PARAM)) TH_LOG("%m");
	ASSERT_NE(NULL, id->event);
	ASSERT_LE(sizeof(number), id->event->param.conn.private_data_len);
	memcpy(&number, id->event->param.conn.private_data, sizeof(number));
	sge = (struct ibv_sge){ (uintptr_t)sent, sizeof(sent), mr->lkey };
	wr.sg_list = &sge;
	wr.qp_type.xrc.remote_srqn = be32toh(number);
	ASSERT_EQ(0, ibv_post_send(id->qp, &wr, &bad));
	ASSERT_EQ(1, rdma_get_send_comp(id, &wc));
	EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
	__atomic_store_n(&server.acknowledged, true, __ATOMIC_RELEASE);
	OK(server_end(&server));
	EXPECT_STREQ(sent, server.memory);
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
}

/* What goes wrong is the return value of the call that began it. */
TEST_F(cm, synchronous_errors)
{
	struct ibv_qp_init_attr attr = usual_qp();
	struct rdma_addrinfo active, none = {};
	struct rdma_cm_id *id = NULL;

	OK(drop(&self->listener));
	active = info(0, IBV_QPT_RC, peer_ip(), self->port);
	ASSERT_EQ(0, rdma_create_ep(&id, &active, NULL, &attr)) TH_LOG("%m");
	EXPECT_ERRNO(EINVAL, rdma_disconnect(id));
	EXPECT_ERRNO(ECONNREFUSED, rdma_connect(id, NO_PARAM));
	EXPECT_ERRNO(EINVAL, rdma_get_request(id, NULL));
	rdma_destroy_ep(id);
	id = NULL;
	active = info(0, IBV_QPT_RC, "192.0.2.1", 7);
	EXPECT_ERRNO(ENETUNREACH, rdma_create_ep(&id, &active, NULL, &attr));
	active = info(RAI_PASSIVE, IBV_QPT_RC, ALIEN_IP, 7);
	EXPECT_ERRNO(EADDRNOTAVAIL, rdma_create_ep(&id, &active, NULL, NULL));
	EXPECT_ERRNO(EOPNOTSUPP, rdma_create_ep(&id, &none, NULL, NULL));
	active.ai_src_addr = NULL;
	EXPECT_ERRNO(EINVAL, rdma_create_ep(&id, &active, NULL, NULL));
	active.ai_flags = 0;
	EXPECT_ERRNO(EINVAL, rdma_create_ep(&id, &active, NULL, NULL));
	EXPECT_ERRNO(EINVAL, rdma_create_ep(&id, NULL, NULL, NULL));
	EXPECT_ERRNO(EINVAL, rdma_create_ep(NULL, &active, NULL, NULL));
	EXPECT_EQ(NULL, id);
	/* Of a channel, there are events instead. */
	self->a = new_id(self->ca);
	EXPECT_ERRNO(EINVAL, rdma_get_request(self->a, &id));
}

/* ---- shared receive queues ---- */

TEST_F(cm, shared_receive_queue_of_an_id)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	struct rdma_cm_id *id = new_id(self->ca);

	/* Of no device yet. */
	EXPECT_ERRNO(EINVAL, rdma_create_srq(id, NULL, &attr));
	OK(drop(&id));
	OK(request(self));
	ASSERT_EQ(0, rdma_create_srq(self->b, NULL, &attr));
	EXPECT_ERRNO(EINVAL, rdma_create_srq(self->b, NULL, &attr));
	EXPECT_ERRNO(EINVAL, rdma_create_srq(self->b, NULL, NULL));
	OK(make_qp(self->b));
	EXPECT_EQ(self->b->srq, self->b->qp->srq);
	ASSERT_EQ(0, rdma_accept(self->b, NO_PARAM));
	OK(expect(self->ca, self->a, RDMA_CM_EVENT_ESTABLISHED));
	OK(expect(self->cb, self->b, RDMA_CM_EVENT_ESTABLISHED));
	OK(message(self->a, self->b));
	rdma_destroy_qp(self->b);
	EXPECT_NE(NULL, self->b->srq);
	rdma_destroy_srq(self->b);
	EXPECT_EQ(NULL, self->b->srq);
}

/* What could not be made takes nothing away. */
TEST_F(cm, shared_receive_queue_too_long)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1 << 30, .max_sge = 1 } };

	OK(establish(self));
	EXPECT_ERRNO(EINVAL, rdma_create_srq(self->b, NULL, &attr));
	ASSERT_NE(NULL, self->b->recv_cq);
	EXPECT_EQ(self->b->recv_cq, self->b->qp->recv_cq);
	EXPECT_EQ(self->b->recv_cq_channel, self->b->recv_cq->channel);
	EXPECT_EQ(self->b->send_cq, self->b->qp->send_cq);
	OK(message(self->a, self->b));
}

TEST_F(cm, queue_pair_beside_a_shared_receive_queue)
{
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = DEPTH, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_XRC,
	};
	struct ibv_qp_init_attr attr = usual_qp();
	struct ibv_cq *cq;

	OK(request(self));
	ASSERT_EQ(0, rdma_create_srq_ex(self->b, &srq)) TH_LOG("%m");
	cq = self->b->recv_cq;
	ASSERT_NE(NULL, cq);
	attr.qp_type = IBV_QPT_XRC_SEND;
	attr.cap.max_send_sge = 1000;
	EXPECT_ERRNO(EINVAL, rdma_create_qp(self->b, NULL, &attr));
	EXPECT_EQ(cq, self->b->recv_cq);
	EXPECT_EQ(NULL, self->b->send_cq);
	attr.cap.max_send_sge = 1;
	ASSERT_EQ(0, rdma_create_qp(self->b, NULL, &attr)) TH_LOG("%m");
	EXPECT_NE(NULL, self->b->send_cq);
	rdma_destroy_qp(self->b);
	EXPECT_EQ(NULL, self->b->send_cq);
	EXPECT_EQ(cq, self->b->recv_cq);
	rdma_destroy_srq(self->b);
	EXPECT_EQ(NULL, self->b->recv_cq);
}

/* ---- bad input ---- */

TEST_F(cm, no_objects)
{
	struct rdma_cm_id not_one = {}, *id = NULL;
	struct rdma_event_channel *channel = rdma_create_event_channel(), other;
	struct rdma_cm_event *event = NULL, some = {};
	struct ibv_qp_init_attr attr = usual_qp();

	EXPECT_ERRNO(EINVAL, rdma_create_id(self->ca, NULL, NULL, RDMA_PS_TCP));
	EXPECT_ERRNO(EINVAL, rdma_get_cm_event(NULL, &event));
	EXPECT_ERRNO(EINVAL, rdma_get_cm_event(self->ca, NULL));
	EXPECT_ERRNO(EINVAL, rdma_ack_cm_event(NULL));
	EXPECT_ERRNO(EINVAL, rdma_ack_cm_event(&some));
	EXPECT_ERRNO(EINVAL, rdma_bind_addr(NULL, at(own_ip(), 0)));
	EXPECT_ERRNO(EINVAL, rdma_create_qp(NULL, NULL, &attr));
	EXPECT_ERRNO(EINVAL, rdma_create_qp(&not_one, NULL, &attr));
	EXPECT_ERRNO(EINVAL, rdma_connect(&not_one, NO_PARAM));
	rdma_destroy_qp(NULL);
	rdma_destroy_srq(NULL);
	rdma_destroy_ep(NULL);
	rdma_destroy_event_channel(NULL);
	rdma_destroy_qp(&not_one);
	rdma_destroy_ep(&not_one);

	/* Gone. */
	memcpy(&other, channel, sizeof(other));
	rdma_destroy_event_channel(channel);
	EXPECT_ERRNO(EINVAL, rdma_get_cm_event(channel, &event));
	EXPECT_ERRNO(EINVAL, rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	EXPECT_ERRNO(EINVAL, rdma_create_id(&other, &id, NULL, RDMA_PS_TCP));
	rdma_destroy_event_channel(channel);
	self->a = new_id(self->ca);
	EXPECT_ERRNO(EINVAL, rdma_migrate_id(self->a, channel));
	EXPECT_ERRNO(EINVAL, rdma_bind_addr(self->a, NULL));
	EXPECT_ERRNO(EINVAL, rdma_resolve_addr(self->a, NULL, NULL, 1000));
	EXPECT_ERRNO(EINVAL, rdma_create_qp(self->a, NULL, NULL));
}

/* Of an id that goes on, so that only the event itself tells. */
TEST_F(cm, acknowledged_twice)
{
	struct rdma_cm_event *event;

	self->a = new_id(self->ca);
	ASSERT_EQ(0, rdma_resolve_addr(self->a, at(own_ip(), 0), at(peer_ip(), 7), PATIENCE_MS));
	event = next(self->ca);
	ASSERT_NE(NULL, event) TH_LOG("%s", why());
	EXPECT_EQ(0, rdma_ack_cm_event(event));
	EXPECT_ERRNO(EINVAL, rdma_ack_cm_event(event));
	/* The next one is still waited for. */
	ASSERT_EQ(0, rdma_resolve_route(self->a, PATIENCE_MS));
	OK(expect(self->ca, self->a, RDMA_CM_EVENT_ROUTE_RESOLVED));
}

TEST_F(cm, wrong_states)
{
	struct ibv_qp_init_attr attr = usual_qp();
	struct rdma_cm_id *id = new_id(self->ca), *taken;
	struct rdma_conn_param param = {};

	attr.qp_type = IBV_QPT_RC;
	/* Bound to nothing. */
	EXPECT_ERRNO(EINVAL, rdma_create_qp(id, NULL, &attr));
	EXPECT_ERRNO(EINVAL, rdma_resolve_route(id, 1000));
	EXPECT_ERRNO(EINVAL, rdma_connect(id, &param));
	EXPECT_ERRNO(EINVAL, rdma_accept(id, &param));
	EXPECT_ERRNO(EINVAL, rdma_reject(id, NULL, 0));
	EXPECT_ERRNO(EINVAL, rdma_disconnect(id));
	/* To a device, but with no address resolved. */
	ASSERT_EQ(0, rdma_bind_addr(id, at(own_ip(), 0)));
	OK(make_qp(id));
	EXPECT_ERRNO(EINVAL, rdma_create_qp(id, NULL, &attr));
	EXPECT_ERRNO(EINVAL, rdma_resolve_route(id, 1000));
	EXPECT_ERRNO(EINVAL, rdma_connect(id, &param));
	EXPECT_ERRNO(EINVAL, rdma_accept(id, &param));
	EXPECT_ERRNO(EINVAL, rdma_disconnect(id));
	EXPECT_ERRNO(EINVAL, rdma_reject(id, NULL, 0));
	OK(drop(&id));
	/* An address without a route. */
	OK(resolved(self, 7, false, &id));
	OK(make_qp(id));
	EXPECT_ERRNO(EINVAL, rdma_connect(id, &param));
	EXPECT_ERRNO(EINVAL, rdma_listen(id, 1));
	EXPECT_ERRNO(EINVAL, rdma_bind_addr(id, at(own_ip(), 0)));
	OK(drop(&id));
	/* A listener. */
	OK(make_qp(self->listener));
	EXPECT_ERRNO(EINVAL, rdma_accept(self->listener, &param));
	EXPECT_ERRNO(EINVAL, rdma_connect(self->listener, &param));
	EXPECT_ERRNO(EINVAL, rdma_reject(self->listener, NULL, 0));
	EXPECT_ERRNO(EINVAL, rdma_resolve_addr(self->listener, NULL, at(own_ip(), 7), 1000));
	rdma_destroy_qp(self->listener);
	/* Which listens all the same. */
	OK(establish(self));
	EXPECT_ERRNO(EINVAL, rdma_connect(self->a, &param));
	EXPECT_ERRNO(EINVAL, rdma_accept(self->b, &param));
	EXPECT_ERRNO(EINVAL, rdma_reject(self->b, NULL, 0));
	OK(message(self->a, self->b));
	/* Of no queue pair. */
	OK(call(self, self->port, NULL, &id));
	OK(take_request(self->cb, self->listener, &taken));
	EXPECT_ERRNO(EINVAL, rdma_accept(taken, NO_PARAM));
	EXPECT_ERRNO(EINVAL, rdma_accept(taken, &param));
	OK(drop(&taken));
	OK(expect_status(self->ca, id, RDMA_CM_EVENT_REJECTED, BY_CONSUMER));
	OK(drop(&id));
}

TEST_F(cm, queue_pairs_that_do_not_fit)
{
	struct ibv_qp_init_attr attr = usual_qp();
	struct rdma_conn_param param = {};
	struct ibv_device_attr device;
	struct ibv_context **devices;
	struct ibv_pd *pd = NULL;
	int i;

	attr.qp_type = IBV_QPT_UD;
	OK(resolved(self, self->port, true, &self->a));
	EXPECT_ERRNO(EOPNOTSUPP, rdma_create_qp(self->a, NULL, &attr));
	attr.qp_type = IBV_QPT_RC;
	devices = rdma_get_devices(NULL);
	ASSERT_NE(NULL, devices);
	for (i = 0; devices[i]; i++)
		if (devices[i] != self->a->verbs)
			pd = ibv_alloc_pd(devices[i]);
	rdma_free_devices(devices);
	ASSERT_NE(NULL, pd);
	EXPECT_ERRNO(EINVAL, rdma_create_qp(self->a, pd, &attr));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	EXPECT_EQ(NULL, self->a->qp);
	EXPECT_EQ(NULL, self->a->send_cq);

	OK(make_qp(self->a));
	ASSERT_EQ(0, ibv_query_device(self->a->verbs, &device));
	if (device.max_qp_init_rd_atom < 254) {
		param.initiator_depth = device.max_qp_init_rd_atom + 1;
		EXPECT_ERRNO(EINVAL, rdma_connect(self->a, &param));
		param.initiator_depth = 0;
	}
	if (device.max_qp_rd_atom < 254) {
		param.responder_resources = device.max_qp_rd_atom + 1;
		EXPECT_ERRNO(EINVAL, rdma_connect(self->a, &param));
	}
	/* It can still be connected, with all that there is. */
	param.initiator_depth = RDMA_MAX_INIT_DEPTH;
	param.responder_resources = RDMA_MAX_RESP_RES;
	EXPECT_EQ(0, rdma_connect(self->a, &param));
	OK(take_request(self->cb, self->listener, &self->b));
}

TEST_F(cm, not_supported)
{
	struct rdma_cm_join_mc_attr_ex join = {};
	struct rdma_cm_id *id = NULL;
	struct ibv_ece ece = {};
	int on = 1;

	EXPECT_ERRNO(EOPNOTSUPP, rdma_create_id(self->ca, &id, NULL, RDMA_PS_UDP));
	EXPECT_ERRNO(EOPNOTSUPP, rdma_create_id(self->ca, &id, NULL, RDMA_PS_IPOIB));
	EXPECT_EQ(NULL, id);
	OK(resolved(self, 7, false, &self->a));
	id = self->a;
	EXPECT_ERRNO(EOPNOTSUPP, rdma_join_multicast(id, at("239.1.1.1", 0), NULL));
	EXPECT_ERRNO(EOPNOTSUPP, rdma_join_multicast_ex(id, &join, NULL));
	EXPECT_ERRNO(EOPNOTSUPP, rdma_leave_multicast(id, at("239.1.1.1", 0)));
	EXPECT_ERRNO(EOPNOTSUPP, rdma_set_local_ece(id, &ece));
	EXPECT_ERRNO(EOPNOTSUPP, rdma_get_remote_ece(id, &ece));
	EXPECT_ERRNO(EOPNOTSUPP, rdma_reject_ece(id, NULL, 0));
	EXPECT_ERRNO(EOPNOTSUPP,
		     rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &on, sizeof(on)));
	EXPECT_ERRNO(EINVAL, rdma_notify(id, IBV_EVENT_PORT_ERR));
	EXPECT_EQ(0, rdma_notify(id, IBV_EVENT_COMM_EST));
}

/* ---- a device that goes ---- */

/* Says through @ready that there is a connection; all that was on its device is told, once. */
static int lives_through_a_removal(int ready)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	struct rdma_cm_id *listening, *other, *gone[3];
	struct _test_data_cm self = {};
	struct rdma_cm_event *event;
	unsigned int i, told = 0;
	__u16 port;

	self.ca = rdma_create_event_channel();
	self.cb = rdma_create_event_channel();
	if (!self.ca || !self.cb)
		return because("rdma_create_event_channel: %m");
	self.listener = listen_at(self.cb, peer_ip(), &self.port);
	listening = listen_at(self.ca, own_ip(), &port);
	if (!self.listener || !listening || establish(&self) ||
	    resolved(&self, self.port, true, &other))
		return -1;
	if (rdma_create_srq(self.a, NULL, &attr))
		return because("rdma_create_srq: %m");
	gone[0] = self.a;
	gone[1] = other;
	gone[2] = listening;
	if (write(ready, "c", 1) != 1)
		return because("write: %m");

	while (told != 7) {
		event = next(self.ca);
		if (!event)
			return -1;
		for (i = 0; i < 3 && event->id != gone[i]; i++)
			;
		if (i == 3 || told & 1 << i || event->event != RDMA_CM_EVENT_DEVICE_REMOVAL)
			return because("%s of %u", rdma_event_str(event->event), i);
		told |= 1 << i;
		rdma_ack_cm_event(event);
	}
	if (quiet(self.ca) ||
	    expect(self.cb, self.b, RDMA_CM_EVENT_DISCONNECTED))
		return -1;
	/* The module refuses nothing any more; the queue pair keeps what it has. */
	rdma_destroy_srq(self.a);
	if (!self.a->send_cq || !self.a->recv_cq)
		return because("the queue pair has lost its CQs");
	if (drop(&self.a) || drop(&other) || drop(&listening) || drop(&self.b) ||
	    drop(&self.listener))
		return -1;
	rdma_destroy_event_channel(self.ca);
	rdma_destroy_event_channel(self.cb);
	return 0;
}

/* Who is told must end before the removal does: it has the device open until then. */
TEST(device_removal)
{
	struct host host;
	int pipes[2], status;
	char byte;
	pid_t pid;

	ASSERT_EQ(0, pipe2(pipes, O_CLOEXEC));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(pipes[0]);
		if (!lives_through_a_removal(pipes[1]))
			_exit(0);
		fprintf(stderr, "# %s\n", why());
		_exit(1);
	}
	close(pipes[1]);
	EXPECT_EQ(1, read(pipes[0], &byte, 1));
	OK(host_open(&host, 0));
	OK(device_remove(&host));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	OK(device_add(&host));
	host_close(&host);
	close(pipes[0]);
}

/* ---- devices ---- */

TEST_F(cm, devices)
{
	char name[2][IBV_SYSFS_NAME_MAX];
	struct ibv_context **devices;
	int n = -1, i, found = 0;

	snprintf(name[0], sizeof(name[0]), "dapx_%s", getenv("DAPX_DEV"));
	snprintf(name[1], sizeof(name[1]), "dapx_%s", getenv("DAPX_PEER_DEV"));
	devices = rdma_get_devices(&n);
	ASSERT_NE(NULL, devices);
	EXPECT_EQ(2, n);
	for (i = 0; devices[i]; i++) {
		found += !strcmp(name[0], ibv_get_device_name(devices[i]->device));
		found += !strcmp(name[1], ibv_get_device_name(devices[i]->device));
	}
	EXPECT_EQ(2, i);
	EXPECT_EQ(2, found);
	/* An id's is one of them. */
	for (i = 0; devices[i] && devices[i] != self->listener->verbs; i++)
		;
	EXPECT_NE(NULL, devices[i]);
	rdma_free_devices(devices);
	devices = rdma_get_devices(NULL);
	ASSERT_NE(NULL, devices);
	EXPECT_NE(NULL, devices[0]);
	rdma_free_devices(devices);
}

TEST_HARNESS_MAIN
