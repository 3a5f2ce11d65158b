// SPDX-License-Identifier: GPL-2.0
/*
 * Connections by the CM in which the process takes the queue pair through its states.
 */
#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/machine.h"
#include "harness/qp.h"
#include "harness/xrc.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 300

FIXTURE(steps)
{
	struct host a;
	struct host b;
	struct ep ea;
	struct ep eb;
	struct listener listener;
	__u32 cm;			/* that connects @ea, whose queue pair is in INIT */
};

FIXTURE_SETUP(steps)
{
	if (on_siw())
		SKIP(return, "an iWARP driver takes the steps itself");
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	OK(ep_create(&self->a, &self->ea));
	OK(ep_create(&self->b, &self->eb));
	OK(listener_open(&self->b, &self->listener));
	OK(ep_prepare_steps(&self->ea, &self->listener, &self->cm));
}

FIXTURE_TEARDOWN(steps)
{
	host_close(&self->a);
	host_close(&self->b);
}

/* Sends the request, and has its answer: the rest is up to the caller. */
static int until_response(struct ep *active, __u32 cm, struct listener *listener,
			  struct ep *passive)
{
	struct dapx_event event;

	if (ep_connect_steps(active, cm))
		return because("DAPX_EP_CONNECT: %m");
	if (listener_request(listener, &event) || ep_accept_steps(passive, event.request.cm))
		return -1;
	return expect_connection(&active->host->conn, active->handle, DAPX_CONNECTION_RESPONSE,
				 NULL);
}

static int take_steps(struct ep *ep, __u32 cm)
{
	struct dapx_cm_query query = { .cm = cm };

	if (_test_cmd_cm_query(ep->host->fd, &query))
		return because("DAPX_CM_QUERY: %m");
	return qp_steps(ep, &query.out_qp, DAPX_QP_INIT, DAPX_QP_RTS);
}

TEST_F(steps, on_both_sides)
{
	struct dapx_cm_query query = CM_QUERY(&self->a, self->cm);

	EXPECT_EQ(DAPX_QP_INIT, query.out_qp.state);
	EXPECT_EQ(1, query.out_qp.port);
	OK(until_response(&self->ea, self->cm, &self->listener, &self->eb));
	EXPECT_EQ(DAPX_EP_ACTIVE_PENDING, ep_state(&self->ea));
	EXPECT_EQ(DAPX_EP_COMPLETION_PENDING, ep_state(&self->eb));
	query = CM_QUERY(&self->a, self->cm);
	EXPECT_EQ(DAPX_QP_RTS, query.out_qp.state);
	EXPECT_EQ(qp_number(&self->eb), query.out_qp.dest_qp_num);
	OK(take_steps(&self->ea, self->cm));
	EXPECT_EQ(DAPX_EP_ACTIVE_PENDING, ep_state(&self->ea));
	test_cmd(ep_establish, self->a.fd, .ep = self->ea.handle);
	EXPECT_EQ(DAPX_EP_CONNECTED, ep_state(&self->ea));
	OK(expect_connection(&self->b.conn, self->eb.handle, DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(ep_exchange(&self->ea, &self->eb));
	OK(disconnect_reset(&self->ea, &self->eb));
	/* Afterwards they are as others. */
	OK(connect_through(&self->ea, &self->listener, &self->eb));
	OK(ep_exchange(&self->ea, &self->eb));
}

TEST_F(steps, with_a_peer_that_takes_none)
{
	struct dapx_event event;
	struct ep other;

	ASSERT_EQ(0, ep_connect_steps(&self->ea, self->cm));
	OK(listener_request(&self->listener, &event));
	OK(ep_accept(&self->eb, event.request.cm));
	OK(expect_connection(&self->a.conn, self->ea.handle, DAPX_CONNECTION_RESPONSE, NULL));
	OK(take_steps(&self->ea, self->cm));
	test_cmd(ep_establish, self->a.fd, .ep = self->ea.handle);
	EXPECT_EQ(DAPX_EP_CONNECTED, ep_state(&self->ea));
	OK(expect_connection(&self->b.conn, self->eb.handle, DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(ep_exchange(&self->ea, &self->eb));

	OK(disconnect_reset(&self->ea, &self->eb));
	OK(ep_create(&self->a, &other));
	OK(ep_connect(&other, &self->listener));
	OK(listener_request(&self->listener, &event));
	OK(ep_accept_steps(&self->eb, event.request.cm));
	OK(expect_connection(&self->a.conn, other.handle, DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(expect_connection(&self->b.conn, self->eb.handle, DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(ep_exchange(&other, &self->eb));
}

/* The peer is not told before the process says so: a whole other connection comes first. */
TEST_F(steps, established_by_the_process)
{
	struct ep oa, ob;

	OK(ep_create(&self->a, &oa));
	OK(ep_create(&self->b, &ob));
	OK(until_response(&self->ea, self->cm, &self->listener, &self->eb));
	OK(take_steps(&self->ea, self->cm));
	OK(connect_through(&oa, &self->listener, &ob));
	EXPECT_EQ(DAPX_EP_COMPLETION_PENDING, ep_state(&self->eb));
	test_cmd(ep_establish, self->a.fd, .ep = self->ea.handle);
	OK(expect_connection(&self->b.conn, self->eb.handle, DAPX_CONNECTION_ESTABLISHED, NULL));
	test_err(EBADFD, ep_establish, self->a.fd, .ep = self->ea.handle);
}

/* Private data, and how many reads there may be, as of other connections. */
TEST_F(steps, what_the_peer_says)
{
	struct dapx_cm_query query;
	struct dapx_ep_query ep;
	struct dapx_event event;

	ASSERT_EQ(0, ep_connect_steps(&self->ea, self->cm));
	OK(listener_request(&self->listener, &event));
	query = CM_QUERY(&self->b, event.request.cm);
	EXPECT_EQ(DAPX_QP_RTS, query.out_qp.state);
	EXPECT_EQ(qp_number(&self->ea), query.out_qp.dest_qp_num);
	OK(qp_steps(&self->eb, &query.out_qp, DAPX_QP_RESET, DAPX_QP_RTS));
	test_cmd(ep_accept, self->b.fd, .ep = self->eb.handle, .cm = event.request.cm,
		 .flags = DAPX_CONNECT_STEPS, .rnr_retry_count = 7, .private_data_len = 5,
		 .private_data = "hello");
	OK(expect_connection(&self->a.conn, self->ea.handle, DAPX_CONNECTION_RESPONSE, NULL));
	ep = test_cmd(ep_query, self->a.fd, .ep = self->ea.handle);
	EXPECT_EQ(0, memcmp(ep.out_private_data, "hello", 5));
	EXPECT_EQ(qp_number(&self->eb), ep.out_remote_qp_num);
	query = CM_QUERY(&self->a, self->cm);
	OK(take_steps(&self->ea, self->cm));
	test_cmd(ep_establish, self->a.fd, .ep = self->ea.handle);
	ep = test_cmd(ep_query, self->a.fd, .ep = self->ea.handle);
	EXPECT_EQ(query.out_qp.max_rd_atomic, ep.out_rd_atomic);
	EXPECT_EQ(query.out_qp.max_dest_rd_atomic, ep.out_dest_rd_atomic);
}

/* ---- refused ---- */

TEST_F(steps, out_of_order)
{
	struct dapx_qp_attr steps = CM_QUERY(&self->a, self->cm).out_qp;
	struct dapx_event event;

	test_err(EBADFD, ep_establish, self->a.fd, .ep = self->ea.handle);
	ASSERT_EQ(0, ep_connect_steps(&self->ea, self->cm));
	test_err(EBADFD, ep_establish, self->a.fd, .ep = self->ea.handle);
	OK(listener_request(&self->listener, &event));
	steps = CM_QUERY(&self->b, event.request.cm).out_qp;
	steps.state = DAPX_QP_RTR;
	/* Before the peer has accepted. */
	test_err(EBADFD, ep_modify, self->a.fd, .ep = self->ea.handle,
		 .mask = DAPX_EP_MODIFY_QP, .qp = steps);
	/* Before its own steps. */
	test_err(EBADFD, ep_accept, self->b.fd, .ep = self->eb.handle, .cm = event.request.cm,
		 .flags = DAPX_CONNECT_STEPS);
	OK(ep_accept_steps(&self->eb, event.request.cm));
	OK(expect_connection(&self->a.conn, self->ea.handle, DAPX_CONNECTION_RESPONSE, NULL));
	test_err(EBADFD, ep_establish, self->a.fd, .ep = self->ea.handle);
	steps = CM_QUERY(&self->a, self->cm).out_qp;
	test_err(EBADFD, ep_modify, self->a.fd, .ep = self->ea.handle,
		 .mask = DAPX_EP_MODIFY_QP, .qp = steps);
	OK(qp_steps(&self->ea, &steps, DAPX_QP_INIT, DAPX_QP_RTR));
	test_err(EBADFD, ep_establish, self->a.fd, .ep = self->ea.handle);
	OK(qp_steps(&self->ea, &steps, DAPX_QP_RTR, DAPX_QP_RTS));
	test_cmd(ep_establish, self->a.fd, .ep = self->ea.handle);
	OK(expect_connection(&self->b.conn, self->eb.handle, DAPX_CONNECTION_ESTABLISHED, NULL));
}

TEST_F(steps, without_the_first)
{
	struct ep other;
	__u32 cm;

	OK(ep_create(&self->a, &other));
	EXPECT_ERRNO(EBADFD, ep_connect_steps(&other, self->cm));
	EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_state(&other));
	/* Nor without an id. */
	EXPECT_ERRNO(EINVAL, ep_connect_steps(&self->ea, 0));
	ASSERT_EQ(0, ep_connect_steps(&self->ea, self->cm));
	/* Others are taken through them by the module. */
	OK(ep_prepare_steps(&other, &self->listener, &cm));
	test_cmd(ep_connect, self->a.fd, .ep = other.handle, .cm = cm,
		 .deadline = DAPX_NO_DEADLINE);
	test_err(EBADFD, ep_establish, self->a.fd, .ep = other.handle);
}

TEST_F(steps, not_of_xrc)
{
	struct ep xrc;

	OK(xrc_ep_create(&self->a, &xrc));
	EXPECT_ERRNO(EOPNOTSUPP, ep_connect_steps(&xrc, self->cm));
}

TEST(not_on_iwarp)
{
	struct dapx_event event;
	struct host a, b;
	struct listener listener;
	struct ep ea, eb;
	__u32 cm;

	if (!on_siw())
		SKIP(return, "this is not iWARP");
	OK(host_set_up(&a, 0));
	OK(host_set_up(&b, 1));
	OK(ep_create(&a, &ea));
	OK(ep_create(&b, &eb));
	OK(listener_open(&b, &listener));
	cm = CM_NEW(&a);
	ASSERT_EQ(0, cm_resolve_addr(&a, cm, b.addr, listener.port, a.addr, PATIENCE_MS));
	OK(expect_cm(&a.conn, cm, DAPX_CM_ADDR_RESOLVED, NULL));
	EXPECT_EQ(DAPX_QP_RESET, CM_QUERY(&a, cm).out_qp.state);
	EXPECT_ERRNO(EOPNOTSUPP, ep_connect_steps(&ea, cm));
	OK(ep_connect(&ea, &listener));
	OK(listener_request(&listener, &event));
	EXPECT_EQ(DAPX_QP_RESET, CM_QUERY(&b, event.request.cm).out_qp.state);
	test_err(EOPNOTSUPP, ep_accept, b.fd, .ep = eb.handle, .cm = event.request.cm,
		 .flags = DAPX_CONNECT_STEPS);
	host_close(&a);
	host_close(&b);
}

/* ---- ends ---- */

TEST_F(steps, rejected)
{
	struct dapx_event event;

	ASSERT_EQ(0, ep_connect_steps(&self->ea, self->cm));
	OK(listener_request(&self->listener, &event));
	test_cmd(cm_reject, self->b.fd, .cm = event.request.cm);
	OK(expect_connection(&self->a.conn, self->ea.handle, DAPX_CONNECTION_PEER_REJECTED,
			     NULL));
	test_err(EBADFD, ep_establish, self->a.fd, .ep = self->ea.handle);
}

TEST_F(steps, never_established)
{
	struct dapx_event event;

	test_cmd(ep_connect, self->a.fd, .ep = self->ea.handle, .cm = self->cm,
		 .flags = DAPX_CONNECT_STEPS, .deadline = in_ms(500), .rnr_retry_count = 7);
	OK(listener_request(&self->listener, &event));
	OK(ep_accept_steps(&self->eb, event.request.cm));
	OK(expect_connection(&self->a.conn, self->ea.handle, DAPX_CONNECTION_RESPONSE, NULL));
	OK(expect_connection(&self->a.conn, self->ea.handle, DAPX_CONNECTION_TIMED_OUT, NULL));
	test_err(EBADFD, ep_establish, self->a.fd, .ep = self->ea.handle);
	OK(expect_connection(&self->b.conn, self->eb.handle, DAPX_CONNECTION_ACCEPT_ERROR, NULL));
}

TEST_F(steps, freed_after_the_response)
{
	OK(until_response(&self->ea, self->cm, &self->listener, &self->eb));
	OK(take_steps(&self->ea, self->cm));
	OK(ep_destroy(&self->ea));
	OK(expect_connection(&self->b.conn, self->eb.handle, DAPX_CONNECTION_ACCEPT_ERROR, NULL));
	test_cmd(free, self->a.fd, .handle = self->cm);
}

TEST_F(steps, the_peer_leaves_after_its_response)
{
	OK(until_response(&self->ea, self->cm, &self->listener, &self->eb));
	OK(take_steps(&self->ea, self->cm));
	OK(ep_destroy(&self->eb));
	OK(ep_await_state(&self->ea, DAPX_EP_DISCONNECTED));
	test_err(EBADFD, ep_establish, self->a.fd, .ep = self->ea.handle);
	test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
}

/* By steps without the CM, the events of a connection can still be given an EVD. */
TEST_F(steps, connection_evd_of_a_connection_without_the_cm)
{
	struct ep ea, eb;

	OK(ep_create(&self->a, &ea));
	OK(ep_create(&self->b, &eb));
	OK(connect_qp(&ea, &eb, NULL));
	test_cmd(ep_modify, self->a.fd, .ep = ea.handle, .mask = DAPX_EP_MODIFY_CONNECT_EVD,
		 .connect_evd = self->a.done.handle);
	test_cmd(ep_disconnect, self->a.fd, .ep = ea.handle, .flags = DAPX_DISCONNECT_ABRUPT);
	OK(expect_connection(&self->a.done, ea.handle, DAPX_CONNECTION_DISCONNECTED, NULL));
}

TEST_HARNESS_MAIN
