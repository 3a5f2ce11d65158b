// SPDX-License-Identifier: GPL-2.0
/*
 * The table of operations by state, cell by cell: an endpoint is brought into
 * each of the nine states, and each operation is tried on it. What is refused
 * is refused with EBADFD and changes nothing.
 */
#include <sys/ioctl.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/fabric.h"
#include "harness/machine.h"
#include "harness/qp.h"
#include "harness/snapshot.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 600

#define STATES 9

static const char * const state_names[STATES] = {
	"UNCONNECTED", "RESERVED", "PASSIVE_PENDING", "ACTIVE_PENDING",
	"TENTATIVE_PENDING", "COMPLETION_PENDING", "CONNECTED",
	"DISCONNECT_PENDING", "DISCONNECTED",
};

/* The endpoint under test is one of b; a is what it needs of a peer. */
struct scene {
	struct host a;
	struct host b;
	struct ep subject;
	struct ep peer;
	struct listener listener;	/* b's, if there is one for the subject */
	__u32 request;			/* the one for the subject, if any */
	__u32 other_request;		/* one for anybody, at b */
	__u32 pd;			/* another one of b */
	struct evd evd;			/* another one of b */
};

static int reserve(struct scene *s)
{
	struct dapx_cm_listen mode = {
		.mode = DAPX_LISTEN_RESERVED, .ep = s->subject.handle,
	};

	return listener_open_as(&s->b, &mode, &s->listener);
}

static int request_for_subject(struct scene *s, struct dapx_event *event)
{
	if (ep_connect(&s->peer, &s->listener) ||
	    listener_request(&s->listener, event))
		return -1;
	s->request = event->request.cm;
	return 0;
}

static int make_tentative(struct scene *s)
{
	struct dapx_cm_listen mode = { .mode = DAPX_LISTEN_TENTATIVE };
	struct dapx_ep_create usual;
	struct dapx_event event;

	ep_usual(&s->b, &usual);
	mode.attr = usual.attr;
	if (listener_open_as(&s->b, &mode, &s->listener) ||
	    request_for_subject(s, &event))
		return -1;
	ep_forget(&s->subject);
	return ep_adopt(&s->b, event.request.ep, &s->subject);
}

static int make_completion(struct scene *s)
{
	__u8 gid[16];

	/* By the CM this state is over too soon to be looked at. */
	if (host_gid_index(&s->a, gid) < 0 || qp_init(&s->subject) ||
	    qp_rtr(&s->subject, s->peer.qp_num, gid, NULL))
		return -1;
	return 0;
}

static int make_disconnect_pending(struct scene *s)
{
	struct dapx_ep_disconnect cmd = { .ep = s->subject.handle };

	/* Waits for a receive of the peer's that there never will be. */
	if (connect_cm(&s->peer, &s->subject) ||
	    ep_send(&s->subject, 1, 0, 8))
		return -1;
	if (_test_cmd_ep_disconnect(s->b.fd, &cmd))
		return because("DAPX_EP_DISCONNECT: %m");
	return 0;
}

static int make_disconnected(struct scene *s)
{
	struct dapx_ep_disconnect cmd = {
		.ep = s->subject.handle, .flags = DAPX_DISCONNECT_ABRUPT,
	};

	if (connect_cm(&s->peer, &s->subject))
		return -1;
	if (_test_cmd_ep_disconnect(s->b.fd, &cmd))
		return because("DAPX_EP_DISCONNECT: %m");
	return ep_await_state(&s->subject, DAPX_EP_DISCONNECTED);
}

static int make_active(struct scene *s)
{
	struct listener listener;
	struct dapx_event event;

	/* The request arrives, and is not answered. */
	if (listener_open(&s->a, &listener) ||
	    ep_connect(&s->subject, &listener))
		return -1;
	return listener_request(&listener, &event);
}

static int bring(struct scene *s, __u32 state)
{
	struct dapx_event event;
	int ret = 0;

	switch (state) {
	case DAPX_EP_UNCONNECTED:
		break;
	case DAPX_EP_RESERVED:
		ret = reserve(s);
		break;
	case DAPX_EP_PASSIVE_PENDING:
		ret = reserve(s) || request_for_subject(s, &event) ? -1 : 0;
		if (!ret && event.request.ep != s->subject.handle)
			ret = because("the request names another endpoint");
		break;
	case DAPX_EP_ACTIVE_PENDING:
		ret = make_active(s);
		break;
	case DAPX_EP_TENTATIVE_PENDING:
		ret = make_tentative(s);
		break;
	case DAPX_EP_COMPLETION_PENDING:
		ret = make_completion(s);
		break;
	case DAPX_EP_CONNECTED:
		ret = connect_cm(&s->peer, &s->subject);
		break;
	case DAPX_EP_DISCONNECT_PENDING:
		ret = make_disconnect_pending(s);
		break;
	case DAPX_EP_DISCONNECTED:
		ret = make_disconnected(s);
		break;
	}
	if (ret)
		return ret;
	errno = EPROTO;
	if (ep_state(&s->subject) != state ||
	    ep_shown_state(&s->subject) != state)
		return because("it is in state %u, shown as %u",
			       ep_state(&s->subject),
			       ep_shown_state(&s->subject));
	return 0;
}

static int scene_open(struct scene *s)
{
	struct dapx_pd_create pd = {};

	memset(s, 0, sizeof(*s));
	if (host_set_up(&s->a, 0) || host_set_up(&s->b, 1) ||
	    ep_create(&s->a, &s->peer) || ep_create(&s->b, &s->subject) ||
	    evd_make(s->b.fd, 8, 0, &s->evd))
		return -1;
	if (_test_cmd_pd_create(s->b.fd, &pd))
		return because("DAPX_PD_CREATE: %m");
	s->pd = pd.out_pd;
	return 0;
}

static void scene_close(struct scene *s)
{
	struct dapx_cm_reject reject = { .cm = s->other_request };
	bool active = s->subject.state &&
		      ep_shown_state(&s->subject) == DAPX_EP_ACTIVE_PENDING;

	ep_forget(&s->subject);
	ep_forget(&s->peer);
	ring_unmap(&s->evd.ring);
	/*
	 * Who has a request to answer goes first: an iWARP device does not let go of
	 * an attempt before that.
	 */
	if (s->other_request)
		_test_cmd_cm_reject(s->b.fd, &reject);
	if (active)
		host_close(&s->a);
	host_close(&s->b);
	if (!active)
		host_close(&s->a);
}

/* A request at b that any endpoint of b could be given. */
static int another_request(struct scene *s)
{
	struct listener listener;
	struct dapx_event event;
	struct ep ep;

	if (ep_create(&s->a, &ep) || listener_open(&s->b, &listener) ||
	    ep_connect(&ep, &listener) || listener_request(&listener, &event))
		return -1;
	s->other_request = event.request.cm;
	ep_forget(&ep);
	return 0;
}

/* ---- the operations ---- */

static int op_connect(struct scene *s)
{
	struct listener nobody = { .host = &s->a, .port = 1 };
	struct dapx_ep_connect cmd;

	connect_usual(&s->subject, &nobody, &cmd);
	return _test_cmd_ep_connect(s->b.fd, &cmd);
}

static int op_listen_reserved(struct scene *s)
{
	struct dapx_cm_listen cmd = { .mode = DAPX_LISTEN_RESERVED };
	struct dapx_cm_create create = { .evd = s->evd.handle };
	struct dapx_cm_bind bind = {};
	struct dapx_free gone = {};
	int ret, error;

	if (_test_cmd_cm_create(s->b.fd, &create))
		return -1;
	bind.cm = create.out_cm;
	set_addr(&bind.addr, s->b.addr, 0);
	cmd.cm = create.out_cm;
	cmd.ep = s->subject.handle;
	if (_test_cmd_cm_bind(s->b.fd, &bind))
		return -1;
	ret = _test_cmd_cm_listen(s->b.fd, &cmd);
	error = errno;
	if (ret) {
		gone.handle = create.out_cm;
		_test_cmd_free(s->b.fd, &gone);
	}
	errno = error;
	return ret;
}

static int op_disconnect(struct scene *s)
{
	struct dapx_ep_disconnect cmd = { .ep = s->subject.handle };

	return _test_cmd_ep_disconnect(s->b.fd, &cmd);
}

static int op_disconnect_abrupt(struct scene *s)
{
	struct dapx_ep_disconnect cmd = {
		.ep = s->subject.handle, .flags = DAPX_DISCONNECT_ABRUPT,
	};

	return _test_cmd_ep_disconnect(s->b.fd, &cmd);
}

static int op_post_send(struct scene *s)
{
	struct dapx_doorbell cmd = {
		.handle = s->subject.handle, .flags = DAPX_DOORBELL_SEND,
	};
	struct dapx_send_wr wr = { .wr_id = 0x51, .flags = DAPX_SEND_SIGNALED };

	/* Without it iWARP would break the connection. */
	if (ep_state(&s->subject) == DAPX_EP_CONNECTED &&
	    ep_recv(&s->peer, 1, 0, 8))
		return -1;
	if (ep_push_send(&s->subject, &wr, NULL))
		return -1;
	if (!_test_cmd_doorbell(s->b.fd, &cmd))
		return 0;
	/* What was refused stays in the ring until it is taken back. */
	--*s->subject.send.tail;
	return -1;
}

static int op_post_recv(struct scene *s)
{
	struct dapx_doorbell cmd = {
		.handle = s->subject.handle, .flags = DAPX_DOORBELL_RECV,
	};
	struct dapx_recv_wr wr = { .wr_id = 0x52 };

	if (ep_push_recv(&s->subject, &wr, NULL))
		return -1;
	return _test_cmd_doorbell(s->b.fd, &cmd);
}

static int modify(struct scene *s, __u32 mask)
{
	struct dapx_ep_modify cmd = {
		.ep = s->subject.handle,
		.mask = mask,
		.pd = s->pd,
		.request_evd = s->evd.handle,
		.recv_evd = s->evd.handle,
		.connect_evd = s->evd.handle,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.user_data = 0x77,
		.min_rnr_timer = 12,
		.qp.state = DAPX_QP_INIT,
		.qp.port = 1,
	};

	return _test_cmd_ep_modify(s->b.fd, &cmd);
}

static int op_resize(struct scene *s)
{
	struct dapx_ep_resize cmd = { .ep = s->subject.handle, .attr = s->subject.attr };
	int ret = _test_cmd_ep_resize(s->b.fd, &cmd);
	struct ring map;

	if (ret)
		return ret;
	/* The state is shown in the new mapping. */
	if (ring_map(s->b.fd, &cmd.out_send_ring, &map))
		return -1;
	ring_unmap(&s->subject.send);
	s->subject.send = map;
	s->subject.state = (__u32 *)((__u8 *)map.map + cmd.out_state_off);
	memset(&s->subject.recv, 0, sizeof(s->subject.recv));
	return 0;
}

static int op_modify_pd(struct scene *s)
{
	return modify(s, DAPX_EP_MODIFY_PD);
}

static int op_modify_request_evd(struct scene *s)
{
	return modify(s, DAPX_EP_MODIFY_REQUEST_EVD);
}

static int op_modify_recv_evd(struct scene *s)
{
	return modify(s, DAPX_EP_MODIFY_RECV_EVD);
}

static int op_modify_connect_evd(struct scene *s)
{
	return modify(s, DAPX_EP_MODIFY_CONNECT_EVD);
}

static int op_modify_rd_atomic(struct scene *s)
{
	return modify(s, DAPX_EP_MODIFY_RD_ATOMIC);
}

static int op_modify_user_data(struct scene *s)
{
	return modify(s, DAPX_EP_MODIFY_USER_DATA);
}

static int op_modify_rnr_timer(struct scene *s)
{
	return modify(s, DAPX_EP_MODIFY_RNR_TIMER);
}

static int op_modify_qp(struct scene *s)
{
	return modify(s, DAPX_EP_MODIFY_QP);
}

static int op_establish(struct scene *s)
{
	struct dapx_ep_establish cmd = { .ep = s->subject.handle };

	return _test_cmd_ep_establish(s->b.fd, &cmd);
}

static int op_reset(struct scene *s)
{
	struct dapx_ep_reset cmd = { .ep = s->subject.handle };

	return _test_cmd_ep_reset(s->b.fd, &cmd);
}

static int op_query(struct scene *s)
{
	struct dapx_ep_query cmd = { .ep = s->subject.handle };

	return _test_cmd_ep_query(s->b.fd, &cmd);
}

static int op_free(struct scene *s)
{
	struct dapx_free cmd = {
		.handle = s->subject.handle, .type = DAPX_OBJECT_EP,
	};

	return _test_cmd_free(s->b.fd, &cmd);
}

/* Of a request that is not for it in particular. */
static int op_accept_other(struct scene *s)
{
	struct dapx_ep_accept cmd = {
		.ep = s->subject.handle, .cm = s->other_request,
		.rnr_retry_count = 7,
	};

	return _test_cmd_ep_accept(s->b.fd, &cmd);
}

/* Of the request that it was reserved or made for. */
static int op_accept_own(struct scene *s)
{
	struct dapx_ep_accept cmd = {
		.ep = s->subject.handle, .cm = s->request,
		.rnr_retry_count = 7,
	};

	if (ep_state(&s->subject) == DAPX_EP_TENTATIVE_PENDING) {
		/* It has nothing yet; now it has. */
		struct dapx_ep_modify give = {
			.ep = s->subject.handle,
			.mask = DAPX_EP_MODIFY_PD | DAPX_EP_MODIFY_REQUEST_EVD |
				DAPX_EP_MODIFY_RECV_EVD |
				DAPX_EP_MODIFY_CONNECT_EVD,
			.pd = s->b.pd,
			.request_evd = s->b.done.handle,
			.recv_evd = s->b.recv.handle,
			.connect_evd = s->b.conn.handle,
		};

		if (_test_cmd_ep_modify(s->b.fd, &give))
			return -1;
	}
	return _test_cmd_ep_accept(s->b.fd, &cmd);
}

static int op_reject_own(struct scene *s)
{
	struct dapx_cm_reject cmd = { .cm = s->request };

	return _test_cmd_cm_reject(s->b.fd, &cmd);
}

static int op_free_listener(struct scene *s)
{
	struct dapx_free cmd = {
		.handle = s->listener.cm, .type = DAPX_OBJECT_CM,
	};

	return _test_cmd_free(s->b.fd, &cmd);
}

/* ---- the table ---- */

enum {
	NO = -1,			/* EBADFD */
	SKIP_CELL = -2,			/* makes no sense here */
	GONE = -3,			/* the handle is invalid afterwards */
	/* else the state that it has when the call is back, or shortly after */
};

#define UNC DAPX_EP_UNCONNECTED
#define RES DAPX_EP_RESERVED
#define PAS DAPX_EP_PASSIVE_PENDING
#define ACT DAPX_EP_ACTIVE_PENDING
#define TEN DAPX_EP_TENTATIVE_PENDING
#define COM DAPX_EP_COMPLETION_PENDING
#define CON DAPX_EP_CONNECTED
#define DIP DAPX_EP_DISCONNECT_PENDING
#define DIS DAPX_EP_DISCONNECTED

struct operation {
	const char *name;
	int (*give)(struct scene *s);
	int outcome[STATES];
};

static const struct operation operations[] = {
	/*			   UNC  RES  PAS  ACT  TEN  COM  CON  DIP  DIS */
	{ "connect", op_connect,
				 { DIS, NO,  NO,  NO,  NO,  NO,  NO,  NO,  NO } },
	{ "listen, reserved", op_listen_reserved,
				 { RES, NO,  NO,  NO,  NO,  NO,  NO,  NO,  NO } },
	{ "accept a request for anybody", op_accept_other,
				 { CON, NO,  NO,  NO,  NO,  NO,  NO,  NO,  NO } },
	{ "disconnect, graceful", op_disconnect,
				 { NO,  NO,  NO,  DIS, NO,  DIS, DIS, DIP, DIS } },
	{ "disconnect, abrupt", op_disconnect_abrupt,
				 { NO,  NO,  NO,  DIS, NO,  DIS, DIS, DIS, DIS } },
	{ "post a request", op_post_send,
				 { NO,  NO,  NO,  NO,  NO,  NO,  CON, NO,  DIS } },
	{ "post a receive", op_post_recv,
				 { UNC, RES, PAS, ACT, TEN, COM, CON, DIP, DIS } },
	{ "modify PD", op_modify_pd,
				 { UNC, NO,  NO,  NO,  TEN, NO,  NO,  NO,  NO } },
	{ "modify request EVD", op_modify_request_evd,
				 { UNC, RES, PAS, NO,  TEN, NO,  NO,  NO,  NO } },
	{ "modify receive EVD", op_modify_recv_evd,
				 { UNC, RES, PAS, NO,  TEN, NO,  NO,  NO,  NO } },
	{ "modify connection EVD", op_modify_connect_evd,
				 { UNC, RES, PAS, NO,  TEN, NO,  NO,  NO,  NO } },
	{ "modify reads in flight", op_modify_rd_atomic,
				 { UNC, RES, PAS, NO,  TEN, NO,  NO,  NO,  NO } },
	{ "modify cookie", op_modify_user_data,
				 { UNC, RES, PAS, NO,  TEN, NO,  NO,  NO,  NO } },
	{ "modify the RNR timer", op_modify_rnr_timer,
				 { UNC, RES, PAS, NO,  TEN, NO,  CON, NO,  NO } },
	{ "modify the queue pair", op_modify_qp,
				 { UNC, NO,  NO,  NO,  NO,  NO,  NO,  NO,  NO } },
	/* None of them is connected by steps. */
	{ "establish", op_establish,
				 { NO,  NO,  NO,  NO,  NO,  NO,  NO,  NO,  NO } },
	{ "resize", op_resize,	 { UNC, RES, PAS, NO,  TEN, NO,  NO,  NO,  NO } },
	{ "reset", op_reset,	 { UNC, NO,  NO,  NO,  NO,  NO,  NO,  NO,  UNC } },
	{ "query", op_query,	 { UNC, RES, PAS, ACT, TEN, COM, CON, DIP, DIS } },
	{ "free", op_free,
				 { GONE, NO, NO,  GONE, NO, GONE, GONE, GONE, GONE } },
	/* Ways out of the states that refuse to be freed. */
	{ "accept its own request", op_accept_own,
				 { SKIP_CELL, SKIP_CELL, CON, SKIP_CELL, CON,
				   SKIP_CELL, SKIP_CELL, SKIP_CELL, SKIP_CELL } },
	{ "reject its own request", op_reject_own,
				 { SKIP_CELL, SKIP_CELL, UNC, SKIP_CELL, GONE,
				   SKIP_CELL, SKIP_CELL, SKIP_CELL, SKIP_CELL } },
	{ "free its listener", op_free_listener,
				 { SKIP_CELL, UNC, UNC, SKIP_CELL, GONE,
				   SKIP_CELL, SKIP_CELL, SKIP_CELL, SKIP_CELL } },
};

FIXTURE(cell)
{
	struct scene scene;
};

FIXTURE_VARIANT(cell)
{
	__u32 state;
};

#define IN_STATE(state_) { .state = DAPX_EP_##state_ }

FIXTURE_VARIANT_ADD(cell, unconnected) IN_STATE(UNCONNECTED);
FIXTURE_VARIANT_ADD(cell, reserved) IN_STATE(RESERVED);
FIXTURE_VARIANT_ADD(cell, passive_pending) IN_STATE(PASSIVE_PENDING);
FIXTURE_VARIANT_ADD(cell, active_pending) IN_STATE(ACTIVE_PENDING);
FIXTURE_VARIANT_ADD(cell, tentative_pending) IN_STATE(TENTATIVE_PENDING);
FIXTURE_VARIANT_ADD(cell, completion_pending) IN_STATE(COMPLETION_PENDING);
FIXTURE_VARIANT_ADD(cell, connected) IN_STATE(CONNECTED);
FIXTURE_VARIANT_ADD(cell, disconnect_pending) IN_STATE(DISCONNECT_PENDING);
FIXTURE_VARIANT_ADD(cell, disconnected) IN_STATE(DISCONNECTED);

FIXTURE_SETUP(cell)
{
	if (on_siw() && (variant->state == DAPX_EP_COMPLETION_PENDING ||
			 variant->state == DAPX_EP_DISCONNECT_PENDING))
		SKIP(return, "iWARP cannot be held in %s",
		     state_names[variant->state]);
}

FIXTURE_TEARDOWN(cell)
{
	scene_close(&self->scene);
}

TEST_F(cell, every_operation)
{
	const struct operation *op;
	struct snapshot before, after;
	struct scene *s = &self->scene;
	__u32 tail;
	int ret;

	for (op = operations; op < operations + ARRAY_SIZE(operations); op++) {
		int outcome = op->outcome[variant->state];

		if (outcome == SKIP_CELL ||
		    (on_siw() && (op->give == op_modify_qp || op->give == op_modify_rnr_timer)))
			continue;
		OK(scene_open(s));
		OK(another_request(s));
		OK(bring(s, variant->state));
		OK(snapshot_take(s->b.fd, &before));
		tail = *s->b.conn.ring.tail;

		ret = op->give(s) ? errno : 0;
		if (outcome == NO) {
			EXPECT_EQ(EBADFD, ret)
				TH_LOG("%s in %s: %s", op->name,
				       state_names[variant->state],
				       strerror(ret));
			OK(snapshot_take(s->b.fd, &after));
			EXPECT_TRUE(snapshot_same(&before, &after))
				TH_LOG("%s in %s was refused and changed %s",
				       op->name, state_names[variant->state],
				       why());
			EXPECT_EQ(tail, *s->b.conn.ring.tail);
			EXPECT_EQ(variant->state, ep_shown_state(&s->subject));
		} else {
			EXPECT_EQ(0, ret)
				TH_LOG("%s in %s: %s", op->name,
				       state_names[variant->state],
				       strerror(ret));
			free(before.data);
			if (outcome == GONE)
				test_err(ENOENT, ep_query, s->b.fd,
					 .ep = s->subject.handle);
			else if (!ret)
				OK(ep_await_state(&s->subject, outcome));
		}
		scene_close(s);
	}
}

/* A context with an endpoint in this state can be closed. */
TEST_F(cell, closed)
{
	struct scene *s = &self->scene;
	int i;

	for (i = 0; i < 2; i++) {
		OK(scene_open(s));
		OK(bring(s, variant->state));
		if (i)
			host_close(&s->b);
		scene_close(s);
	}
}

/* So can one whose device went away in this state. */
TEST_F(cell, device_removed)
{
	struct scene *s = &self->scene;
	struct dapx_ep_query query = {};
	struct dapx_event event = {};

	OK(scene_open(s));
	OK(bring(s, variant->state));
	query.ep = s->subject.handle;
	OK(device_remove(&s->b));
	EXPECT_ERRNO(EIO, _test_cmd_ep_query(s->b.fd, &query));
	while (evd_poll(&s->b.conn, &event))
		;
	EXPECT_EQ(DAPX_EVENT_ASYNC, event.type);
	EXPECT_EQ(DAPX_ASYNC_DEVICE_REMOVED, event.async.what);
	EXPECT_TRUE(ring_flags(&s->subject.send) & DAPX_RING_DEAD);
	OK(device_add(&s->b));
	scene_close(s);

	/* The device is as good as new. */
	OK(scene_open(s));
	OK(connect_cm(&s->peer, &s->subject));
	OK(ep_exchange(&s->peer, &s->subject));
}

/* Work that is posted in DISCONNECTED ends at once. */
TEST(flushed_at_once)
{
	struct scene scene, *s = &scene;

	OK(scene_open(s));
	OK(bring(s, DAPX_EP_DISCONNECTED));
	ASSERT_EQ(0, op_post_send(s));
	OK(expect_completion(&s->b.done, 0x51, DAPX_STATUS_FLUSHED, NULL));
	ASSERT_EQ(0, op_post_recv(s));
	OK(expect_completion(&s->b.recv, 0x52, DAPX_STATUS_FLUSHED, NULL));
	scene_close(s);
}

TEST_HARNESS_MAIN
