/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * <dapx/c.h>: what each function brings to the module, and back.
 */
#include <dapx/c.h>

#include "c_test.h"
#include "fake_module_c.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct dapx_ep_attr sizes = {
	.send_depth = 4,
	.recv_depth = 4,
	.max_send_sge = 2,
	.max_recv_sge = 2,
	.max_inline = 64,
	.max_rd_atomic = 1,
	.max_dest_rd_atomic = 1,
};

static const char *node;
static struct dapxc_context *context;
static struct dapxc_pd *pd;
static struct dapxc_evd *evd;
static struct dapxc_xrcd *xrcd;

static void set_up(void)
{
	node = fake_begin();
	context = dapxc_open("rxe0", node);
	CHECK(context);
	pd = dapxc_pd_create(context, 7);
	CHECK(pd);
	evd = dapxc_evd_create(context, 16, DAPX_EVD_ASYNC, 8);
	CHECK(evd);
	xrcd = dapxc_xrcd_open(context, -1, O_CREAT, 9);
	CHECK(xrcd);
}

static void tear_down(void)
{
	CHECK(dapxc_xrcd_close(xrcd) == 0);
	CHECK(dapxc_evd_free(evd) == 0);
	CHECK(dapxc_pd_free(pd) == 0);
	CHECK(dapxc_close(context) == 0);
	CHECK(fake_objects() == 0);
	fake_end();
}

static void contexts(void)
{
	struct dapx_query_device query = { .size = sizeof(query) };
	struct dapx_info info = { .size = sizeof(info) };
	struct dapx_pd_create create;
	struct dapxc_pd *later;

	CHECK(dapxc_query_module(context, &info) == 0);
	CHECK(info.out_max_objects == 1000);
	CHECK(info.out_features & DAPX_FEATURE_XRC);
	CHECK(dapxc_query_device(context, &query) == 0);
	fake_fail_next(DAPX_QUERY_DEVICE, EIO);
	CHECK(dapxc_query_device(context, &query) == EIO);
	CHECK(strstr(dapxc_error_text(), "cannot query the RDMA device: the RDMA device was removed"));

	errno = 0;
	CHECK(!dapxc_open("mthca0", node));
	CHECK(errno == EOPNOTSUPP);
	CHECK(strstr(dapxc_error_text(), "mthca0"));

	/* Objects keep the file open. */
	later = NULL;
	{
		struct dapxc_context *other = dapxc_open("rxe0", node);

		CHECK(other);
		later = dapxc_pd_create(other, 77);
		CHECK(later);
		CHECK(dapxc_close(other) == 0);
	}
	fake_last(DAPX_PD_CREATE, &create, sizeof(create));
	CHECK(create.user_data == 77);
	CHECK(dapxc_pd_free(later) == 0);

	fake_fail_next(DAPX_PD_CREATE, EDQUOT);
	CHECK(!dapxc_pd_create(context, 0));
	CHECK(errno == EDQUOT);
}

static void freeing(void)
{
	struct dapxc_pd *used = dapxc_pd_create(context, 0);
	size_t objects = fake_objects();

	fake_fail_next(DAPX_FREE, EBUSY);
	CHECK(dapxc_pd_free(used) == EBUSY);
	CHECK(strstr(dapxc_error_text(), "in use by another object"));
	CHECK(fake_objects() == objects);
	CHECK(dapxc_pd_free(used) == 0);
	CHECK(fake_objects() == objects - 1);
	/* Of a device that was removed nothing is left but memory, which goes. */
	used = dapxc_pd_create(context, 0);
	fake_fail_next(DAPX_FREE, EIO);
	CHECK(dapxc_pd_free(used) == EIO);
	CHECK(fake_objects() == objects - 1);

	fake_busy(dapxc_xrcd_handle(xrcd));
	CHECK(dapxc_xrcd_close(xrcd) == EBUSY);
	CHECK(strstr(dapxc_error_text(), "cannot close the XRC domain"));
	fake_busy(0);
}

static void memory(void)
{
	struct dapx_mr_create create;
	struct dapx_mr_modify modify;
	char bytes[100];
	struct dapxc_mr *mr;

	mr = dapxc_mr_create(pd, bytes, sizeof(bytes),
			     DAPX_ACCESS_LOCAL_WRITE | DAPX_ACCESS_REMOTE_READ, DAPX_MR_XRC, 5);
	CHECK(mr);
	fake_last(DAPX_MR_CREATE, &create, sizeof(create));
	CHECK(create.addr == (uintptr_t)bytes);
	CHECK(create.length == sizeof(bytes));
	CHECK(create.access == (DAPX_ACCESS_LOCAL_WRITE | DAPX_ACCESS_REMOTE_READ));
	CHECK(create.flags == DAPX_MR_XRC);
	CHECK(create.user_data == 5);
	CHECK(dapxc_mr_handle(mr) != 0);
	CHECK(dapxc_mr_rkey(mr) == 0x1234);
	CHECK(dapxc_mr_enable_xrc(mr) == 0);
	fake_last(DAPX_MR_MODIFY, &modify, sizeof(modify));
	CHECK(modify.mr == dapxc_mr_handle(mr));
	fake_fail_next(DAPX_MR_MODIFY, ENOMEM);
	CHECK(dapxc_mr_enable_xrc(mr) == ENOMEM);
	CHECK(dapxc_mr_free(mr) == 0);
}

static void events(void)
{
	struct dapx_event raw = { .type = DAPX_EVENT_COMPLETION, .handle = 3, .user_data = 4 };
	struct dapx_event got[4];
	struct dapx_evd_wait wait;
	struct dapx_evd_create create;
	struct dapx_evd_eventfd eventfd;
	uint32_t there = 0;
	size_t count = 9;

	fake_last(DAPX_EVD_CREATE, &create, sizeof(create));
	CHECK(create.depth == 16);
	CHECK(create.flags == DAPX_EVD_ASYNC);
	CHECK(create.user_data == 8);

	CHECK(dapxc_evd_poll(evd, got, 4, &count) == 0);
	CHECK(count == 0);
	raw.completion.flags = DAPX_COMPLETION_SRQ | DAPX_COMPLETION_XRC;
	raw.completion.qp_num = 55;
	fake_put_event(dapxc_evd_handle(evd), &raw);
	CHECK(dapxc_evd_post(evd, 10, 11) == 0);
	CHECK(dapxc_evd_wait(evd, 0, 2, 1000, &there) == 0);
	CHECK(there == 2);
	fake_last(DAPX_EVD_WAIT, &wait, sizeof(wait));
	CHECK(wait.deadline == 1000);
	CHECK(wait.threshold == 2);
	CHECK(dapxc_evd_resize(evd, 32) == 0);
	CHECK(dapxc_evd_poll(evd, got, 4, &count) == 0);
	CHECK(count == 2);
	CHECK(!memcmp(&got[0], &raw, sizeof(raw)));
	CHECK(got[1].type == DAPX_EVENT_SOFTWARE);
	CHECK(got[1].software.data[1] == 11);
	CHECK(dapxc_evd_wait(evd, DAPX_WAIT_SOLICITED, 1, DAPX_NO_DEADLINE, NULL) == ETIMEDOUT);
	fake_last(DAPX_EVD_WAIT, &wait, sizeof(wait));
	CHECK(wait.flags == DAPX_WAIT_SOLICITED);
	CHECK(wait.deadline == DAPX_NO_DEADLINE);
	fake_fail_next(DAPX_EVD_WAIT, EINTR);
	CHECK(dapxc_evd_wait(evd, 0, 1, DAPX_NO_DEADLINE, NULL) == EINTR);
	CHECK(dapxc_evd_set_eventfd(evd, 12) == 0);
	fake_last(DAPX_EVD_EVENTFD, &eventfd, sizeof(eventfd));
	CHECK(eventfd.fd == 12 && eventfd.flags == 0);
	CHECK(dapxc_evd_set_eventfd_once(evd, 13) == 0);
	fake_last(DAPX_EVD_EVENTFD, &eventfd, sizeof(eventfd));
	CHECK(eventfd.fd == 13 && eventfd.flags == DAPX_EVENTFD_ONCE);
	CHECK(dapxc_evd_arm(evd, DAPX_ARM_ANY) == 0);
	CHECK(dapxc_evd_arm(evd, DAPX_ARM_SOLICITED) == 0);
	CHECK(dapxc_evd_arm(evd, 3) == EINVAL);
	CHECK(dapxc_evd_arm(NULL, DAPX_ARM_ANY) == EINVAL);

	/* What is left can be read of a dead one. */
	CHECK(dapxc_evd_post(evd, 1, 2) == 0);
	fake_kill_evd(dapxc_evd_handle(evd));
	CHECK(dapxc_evd_poll(evd, got, 4, &count) == 0);
	CHECK(count == 1);
	CHECK(dapxc_evd_poll(evd, got, 4, &count) == EIO);
	CHECK(count == 0);
}

static void domains(void)
{
	struct dapx_xrcd_open open;
	struct dapxc_xrcd *other;

	fake_last(DAPX_XRCD_OPEN, &open, sizeof(open));
	CHECK(open.fd == -1);
	CHECK(open.flags == DAPX_XRCD_CREATE);
	CHECK(open.user_data == 9);
	other = dapxc_xrcd_open(context, 5, O_CREAT | O_EXCL, 0);
	CHECK(other);
	fake_last(DAPX_XRCD_OPEN, &open, sizeof(open));
	CHECK(open.fd == 5);
	CHECK(open.flags == (DAPX_XRCD_CREATE | DAPX_XRCD_EXCL));
	CHECK(dapxc_xrcd_close(other) == 0);
	fake_fail_next(DAPX_XRCD_OPEN, ENOENT);
	CHECK(!dapxc_xrcd_open(context, 5, 0, 0));
	CHECK(errno == ENOENT);
	CHECK(strstr(dapxc_error_text(), "pass O_CREAT"));
}

static void queues(void)
{
	const struct dapx_sge segments[3] = { { .mr = 1, .length = 2, .addr = 3 } };
	struct dapx_srq_query query = { .size = sizeof(query) };
	struct dapx_srq_create create;
	struct dapx_srq_modify modify;
	struct dapx_srq_resize resize;
	struct dapx_recv_wr wr;
	struct dapxc_srq *plain, *srq;

	plain = dapxc_srq_create(pd, NULL, 4, 2, 6);
	CHECK(plain);
	fake_last(DAPX_SRQ_CREATE, &create, sizeof(create));
	CHECK(create.evd == 0 && create.xrcd == 0 && create.user_data == 6);
	CHECK(create.depth == 4 && create.max_sge == 2);
	CHECK(dapxc_srq_number(plain) == 0);
	CHECK(dapxc_srq_free(plain) == 0);
	plain = dapxc_srq_create(pd, evd, 4, 1, 0);
	fake_last(DAPX_SRQ_CREATE, &create, sizeof(create));
	CHECK(create.evd == dapxc_evd_handle(evd));

	srq = dapxc_srq_create_xrc(xrcd, pd, evd, 4, 2, 7);
	CHECK(srq);
	fake_last(DAPX_SRQ_CREATE, &create, sizeof(create));
	CHECK(create.xrcd == dapxc_xrcd_handle(xrcd) && create.evd == dapxc_evd_handle(evd));
	CHECK(create.user_data == 7);
	CHECK(dapxc_srq_number(srq) == 0xabc);
	CHECK(dapxc_srq_post_recv(srq, 21, segments, 2, DAPXC_POST_LATER) == 0);
	CHECK(fake_count(DAPX_DOORBELL) == 0);
	CHECK(dapxc_srq_submit(srq) == 0);
	CHECK(fake_count(DAPX_DOORBELL) == 1);
	memcpy(&wr, fake_last_recv(dapxc_srq_handle(srq)), sizeof(wr));
	CHECK(wr.wr_id == 21 && wr.num_sge == 2);
	CHECK(dapxc_srq_post_recv(srq, 22, segments, 3, 0) == EINVAL);
	CHECK(wr.flags == 0);
	CHECK(dapxc_srq_post_recv(srq, 22, NULL, 0, DAPXC_POST_QUIET) == 0);
	memcpy(&wr, fake_last_recv(dapxc_srq_handle(srq)), sizeof(wr));
	CHECK(wr.wr_id == 22 && wr.flags == DAPX_RECV_QUIET);
	CHECK(dapxc_srq_post_recv(srq, 23, segments, 1, 0) == 0);
	CHECK(dapxc_srq_post_recv(srq, 24, segments, 1, 0) == 0);
	CHECK(dapxc_srq_post_recv(srq, 25, segments, 1, 0) == EAGAIN);
	CHECK(dapxc_srq_resize(srq, 2) == EBUSY);
	CHECK(strstr(dapxc_error_text(), "more waits in its ring"));
	CHECK(dapxc_srq_resize(srq, 5) == 0);
	fake_last(DAPX_SRQ_RESIZE, &resize, sizeof(resize));
	CHECK(resize.srq == dapxc_srq_handle(srq) && resize.depth == 5);
	CHECK(dapxc_srq_post_recv(srq, 25, segments, 1, 0) == 0);
	CHECK(dapxc_srq_set_limit(srq, 3) == 0);
	fake_last(DAPX_SRQ_MODIFY, &modify, sizeof(modify));
	CHECK(modify.srq == dapxc_srq_handle(srq) && modify.limit == 3);
	fake_fail_next(DAPX_SRQ_MODIFY, EBADFD);
	CHECK(dapxc_srq_set_limit(srq, 3) == EBADFD);
	CHECK(dapxc_srq_query(srq, &query) == 0);
	CHECK(query.srq == dapxc_srq_handle(srq));
	CHECK(query.out_srq_num == 0xabc && query.out_limit == 5);
	CHECK(dapxc_srq_free(srq) == 0);
	CHECK(dapxc_srq_free(plain) == 0);
}

static void receive_queue_pairs(void)
{
	struct dapx_xrc_qp_query query = { .size = sizeof(query) };
	struct dapx_qp_attr step = { .state = DAPX_QP_INIT, .port = 1 };
	struct dapx_xrc_qp_create create;
	struct dapx_xrc_qp_register reg;
	struct dapx_xrc_qp_disconnect disconnect;
	struct dapx_xrc_qp_modify modify;
	struct dapx_xrc_qp_accept accept;
	struct dapxc_cm *request;
	uint32_t number = 0, cm;

	CHECK(dapxc_xrc_qp_create(xrcd, evd, 6, &number) == 0);
	CHECK(number != 0);
	fake_last(DAPX_XRC_QP_CREATE, &create, sizeof(create));
	CHECK(create.xrcd == dapxc_xrcd_handle(xrcd));
	CHECK(create.evd == dapxc_evd_handle(evd) && create.user_data == 6);
	CHECK(dapxc_xrc_qp_modify(xrcd, number, &step) == 0);
	fake_last(DAPX_XRC_QP_MODIFY, &modify, sizeof(modify));
	CHECK(modify.qp_num == number && !memcmp(&modify.qp, &step, sizeof(step)));
	fake_fail_next(DAPX_XRC_QP_MODIFY, EBADFD);
	CHECK(dapxc_xrc_qp_modify(xrcd, number, &step) == EBADFD);
	CHECK(dapxc_xrc_qp_query(xrcd, number, &query) == 0);
	CHECK(query.qp_num == number && query.xrcd == dapxc_xrcd_handle(xrcd));
	CHECK(query.out_messages == 30 && query.out_qp.dest_qp_num == 77);

	/* It is registered with already; then the registration lives until it is unregistered. */
	CHECK(dapxc_xrc_qp_register(xrcd, number, evd, 0) == 0);
	CHECK(dapxc_xrc_qp_register(xrcd, number, NULL, 0) == 0);
	CHECK(dapxc_xrc_qp_unregister(xrcd, number) == 0);
	CHECK(dapxc_xrc_qp_unregister(xrcd, number) == EINVAL);
	CHECK(dapxc_xrc_qp_register(xrcd, number, NULL, 0) == EINVAL);
	CHECK(strstr(dapxc_error_text(), "none of this number"));
	CHECK(dapxc_xrc_qp_query(xrcd, number, &query) == EINVAL);

	/* Another context's: for queries, and to register with. */
	fake_foreign_xrc_qp(50);
	CHECK(dapxc_xrc_qp_query(xrcd, 50, &query) == 0);
	CHECK(dapxc_xrc_qp_modify(xrcd, 50, &step) == EACCES);
	CHECK(dapxc_xrc_qp_disconnect(xrcd, 50) == EACCES);
	CHECK(dapxc_xrc_qp_register(xrcd, 50, evd, 12) == 0);
	fake_last(DAPX_XRC_QP_REGISTER, &reg, sizeof(reg));
	CHECK(reg.qp_num == 50 && reg.evd == dapxc_evd_handle(evd) && reg.user_data == 12);
	CHECK(dapxc_xrc_qp_modify(xrcd, 50, &step) == 0);

	request = dapxc_cm_create(evd, 0);
	cm = dapxc_cm_handle(request);
	CHECK(dapxc_xrc_qp_accept(xrcd, 50, request, "hi", 2) == EPROTO);
	fake_xrc_request(1);
	CHECK(dapxc_xrc_qp_accept(xrcd, 50, request, "hi", 2) == 0);
	fake_last(DAPX_XRC_QP_ACCEPT, &accept, sizeof(accept));
	CHECK(accept.cm == cm && accept.qp_num == 50);
	CHECK(accept.private_data_len == 2 && !memcmp(accept.private_data, "hi", 2));
	fake_xrc_request(0);
	CHECK(dapxc_xrc_qp_disconnect(xrcd, 50) == 0);
	fake_last(DAPX_XRC_QP_DISCONNECT, &disconnect, sizeof(disconnect));
	CHECK(disconnect.xrcd == dapxc_xrcd_handle(xrcd) && disconnect.qp_num == 50);
	CHECK(dapxc_xrc_qp_unregister(xrcd, 50) == 0);
}

/* Each operation, to a queue. */
static void requests(struct dapxc_ep *ep)
{
	static const uint8_t opcodes[] = {
		DAPX_OP_SEND, DAPX_OP_SEND_IMM, DAPX_OP_RDMA_WRITE, DAPX_OP_RDMA_WRITE_IMM,
		DAPX_OP_RDMA_READ, DAPX_OP_COMPARE_SWAP, DAPX_OP_FETCH_ADD,
	};
	const struct dapx_sge segments[2] = {
		{ .mr = 1, .length = 8, .addr = 0x1000 }, { .mr = 2, .length = 8, .addr = 0x2000 },
	};
	struct dapx_send_wr wr = { .flags = DAPX_SEND_SIGNALED, .remote_addr = 4, .rkey = 5 };
	const char *entry;
	size_t i;

	CHECK(dapxc_ep_post_send(ep, &wr, NULL, 0) == EBADFD);
	fake_set_state(dapxc_ep_handle(ep), DAPX_EP_CONNECTED);
	CHECK(dapxc_ep_state(ep) == DAPX_EP_CONNECTED);
	for (i = 0; i < sizeof(opcodes); i++) {
		/* Nobody takes them out of a ring of four. */
		if (i == 4)
			CHECK(dapxc_ep_reset(ep) == 0);
		wr.wr_id = 100 + i;
		wr.opcode = opcodes[i];
		wr.num_sge = 2;
		wr.remote_srqn = (uint32_t)(200 + i);
		wr.compare_add = 6;
		wr.swap = 7;
		CHECK(dapxc_ep_post_send(ep, &wr, segments, 0) == 0);
		entry = fake_last_send(dapxc_ep_handle(ep));
		CHECK(!memcmp(entry, &wr, sizeof(wr)));
		CHECK(!memcmp(entry + sizeof(wr), segments, sizeof(segments)));
	}
	CHECK(dapxc_ep_reset(ep) == 0);
	wr.num_sge = 3;
	CHECK(dapxc_ep_post_send(ep, &wr, segments, 0) == EINVAL);
	wr.opcode = DAPX_OP_SEND;
	wr.num_sge = 0;
	wr.flags = DAPX_SEND_INLINE;
	wr.inline_len = 5;
	i = fake_count(DAPX_DOORBELL);
	CHECK(dapxc_ep_post_send(ep, &wr, "hello", DAPXC_POST_LATER) == 0);
	CHECK(fake_count(DAPX_DOORBELL) == i);
	CHECK(dapxc_ep_submit(ep) == 0);
	CHECK(fake_count(DAPX_DOORBELL) == i + 1);
	entry = fake_last_send(dapxc_ep_handle(ep));
	CHECK(!memcmp(entry + sizeof(wr), "hello", 5));
	wr.inline_len = 65;
	CHECK(dapxc_ep_post_send(ep, &wr, "hello", 0) == EINVAL);
	wr.inline_len = 0;
	for (i = 0; i < 3; i++)
		CHECK(dapxc_ep_post_send(ep, &wr, NULL, 0) == 0);
	CHECK(dapxc_ep_post_send(ep, &wr, NULL, 0) == EAGAIN);
}

static void endpoints(void)
{
	const struct dapx_sge segment = { .mr = 1, .length = 8, .addr = 0x1000 };
	struct dapx_ep_query query = { .size = sizeof(query) };
	struct dapx_qp_attr step = { .state = DAPX_QP_RTS, .sq_psn = 9 };
	struct dapx_ep_create create;
	struct dapx_ep_modify modify, seen;
	struct dapx_ep_resize resize;
	struct dapx_ep_attr attr = sizes;
	struct dapx_recv_wr wr;
	struct dapxc_srq *srq;
	struct dapxc_ep *ep;

	ep = dapxc_ep_create_xrc(pd, evd, evd, xrcd, &sizes, 3);
	CHECK(ep);
	fake_last(DAPX_EP_CREATE, &create, sizeof(create));
	CHECK(create.attr.flags == DAPX_EP_XRC && create.attr.recv_depth == 0);
	CHECK(create.xrcd == dapxc_xrcd_handle(xrcd) && create.recv_evd == 0);
	CHECK(create.user_data == 3);
	requests(ep);
	CHECK(dapxc_ep_post_recv(ep, 1, &segment, 1, 0) == EINVAL);
	CHECK(dapxc_ep_submit_recv(ep) == 0);
	CHECK(dapxc_ep_free(ep) == 0);
	ep = dapxc_ep_create_xrc(pd, evd, evd, NULL, &sizes, 0);
	fake_last(DAPX_EP_CREATE, &create, sizeof(create));
	CHECK(create.xrcd == 0);
	CHECK(dapxc_ep_free(ep) == 0);
	/* By its flag, too. */
	attr.flags = DAPX_EP_XRC;
	ep = dapxc_ep_create(pd, evd, evd, evd, NULL, &attr, 0);
	fake_last(DAPX_EP_CREATE, &create, sizeof(create));
	CHECK(create.attr.flags == DAPX_EP_XRC && create.attr.recv_depth == 0);
	CHECK(create.recv_evd == 0);
	CHECK(dapxc_ep_post_recv(ep, 1, &segment, 1, 0) == EINVAL);
	CHECK(dapxc_ep_free(ep) == 0);
	attr.flags = 0;

	ep = dapxc_ep_create(pd, evd, evd, evd, NULL, &sizes, 4);
	CHECK(ep);
	fake_last(DAPX_EP_CREATE, &create, sizeof(create));
	CHECK(create.attr.flags == 0 && create.attr.recv_depth == 4);
	CHECK(create.recv_evd == dapxc_evd_handle(evd) && create.user_data == 4);
	CHECK(dapxc_ep_qp_num(ep) == 17);
	CHECK(dapxc_ep_post_recv(ep, 31, &segment, 1, DAPXC_POST_LATER) == 0);
	CHECK(dapxc_ep_submit_recv(ep) == 0);
	memcpy(&wr, fake_last_recv(dapxc_ep_handle(ep)), sizeof(wr));
	CHECK(wr.wr_id == 31 && wr.num_sge == 1);
	CHECK(dapxc_ep_modify_qp(ep, &step) == 0);
	fake_last(DAPX_EP_MODIFY, &modify, sizeof(modify));
	CHECK(modify.mask == DAPX_EP_MODIFY_QP && !memcmp(&modify.qp, &step, sizeof(step)));
	modify = (struct dapx_ep_modify) {
		.size = sizeof(modify),
		.mask = DAPX_EP_MODIFY_PD | DAPX_EP_MODIFY_USER_DATA,
		.pd = dapxc_pd_handle(pd),
		.user_data = 6,
	};
	CHECK(modify.pd != 0);
	CHECK(dapxc_ep_modify(ep, &modify) == 0);
	CHECK(modify.ep == dapxc_ep_handle(ep));
	fake_last(DAPX_EP_MODIFY, &seen, sizeof(seen));
	CHECK(!memcmp(&seen, &modify, sizeof(seen)));
	fake_fail_next(DAPX_EP_MODIFY, EBADFD);
	CHECK(dapxc_ep_modify(ep, &modify) == EBADFD);
	CHECK(strstr(dapxc_error_text(), "cannot change the endpoint"));
	CHECK(dapxc_ep_query(ep, &query) == 0);
	CHECK(query.ep == dapxc_ep_handle(ep));
	CHECK(dapxc_ep_free(ep) == 0);

	srq = dapxc_srq_create(pd, NULL, 4, 1, 0);
	attr.recv_depth = 0;
	ep = dapxc_ep_create(pd, evd, evd, evd, srq, &attr, 0);
	fake_last(DAPX_EP_CREATE, &create, sizeof(create));
	CHECK(create.srq == dapxc_srq_handle(srq));
	CHECK(dapxc_ep_resize(ep, &sizes, NULL) == 0);
	fake_last(DAPX_EP_RESIZE, &resize, sizeof(resize));
	CHECK(resize.ep == dapxc_ep_handle(ep) && resize.srq == 0);
	CHECK(!memcmp(&resize.attr, &sizes, sizeof(sizes)));
	CHECK(dapxc_ep_qp_num(ep) == 19);
	CHECK(dapxc_ep_post_recv(ep, 32, &segment, 1, 0) == 0);
	CHECK(dapxc_ep_resize(ep, &sizes, srq) == 0);
	fake_last(DAPX_EP_RESIZE, &resize, sizeof(resize));
	CHECK(resize.srq == dapxc_srq_handle(srq) && resize.attr.recv_depth == 0);
	CHECK(dapxc_ep_post_recv(ep, 33, &segment, 1, 0) == EINVAL);
	CHECK(dapxc_ep_free(ep) == 0);
	CHECK(dapxc_srq_free(srq) == 0);
	fake_fail_next(DAPX_EP_CREATE, ENOMEM);
	CHECK(!dapxc_ep_create(pd, evd, NULL, evd, NULL, &attr, 0));
	CHECK(errno == ENOMEM);
}

static void windows(void)
{
	struct dapx_rmr_query query = { .size = sizeof(query), .mask = DAPX_RMR_FIELD_MR };
	struct dapx_rmr_create create;
	struct dapx_rmr_bind bind;
	struct dapxc_ep *ep, *xrc;
	struct dapxc_rmr *rmr;
	struct dapxc_mr *mr;
	char bytes[100];
	uint32_t rkey = 0;

	mr = dapxc_mr_create(pd, bytes, sizeof(bytes), DAPX_ACCESS_LOCAL_WRITE, 0, 0);
	ep = dapxc_ep_create(pd, evd, evd, evd, NULL, &sizes, 0);
	xrc = dapxc_ep_create_xrc(pd, evd, evd, xrcd, &sizes, 0);
	rmr = dapxc_rmr_create(pd, 11);
	CHECK(rmr);
	fake_last(DAPX_RMR_CREATE, &create, sizeof(create));
	CHECK(create.pd == dapxc_pd_handle(pd) && create.user_data == 11);
	CHECK(dapxc_rmr_bind(rmr, ep, mr, bytes + 20, 30, DAPX_ACCESS_REMOTE_WRITE,
			     DAPX_BIND_SIGNALED | DAPX_BIND_QUIET, 12, &rkey) == 0);
	CHECK(rkey == 0x4321);
	fake_last(DAPX_RMR_BIND, &bind, sizeof(bind));
	CHECK(bind.rmr == dapxc_rmr_handle(rmr) && bind.ep == dapxc_ep_handle(ep));
	CHECK(bind.mr == dapxc_mr_handle(mr) && bind.access == DAPX_ACCESS_REMOTE_WRITE);
	CHECK(bind.addr == (uintptr_t)bytes + 20 && bind.length == 30 && bind.wr_id == 12);
	CHECK(bind.flags == (DAPX_BIND_SIGNALED | DAPX_BIND_QUIET));
	CHECK(dapxc_rmr_unbind(rmr, ep, 0, 13) == 0);
	fake_last(DAPX_RMR_BIND, &bind, sizeof(bind));
	CHECK(bind.flags == 0 && bind.mr == 0 && bind.length == 0 && bind.wr_id == 13);
	CHECK(dapxc_rmr_query(rmr, &query) == 0);
	CHECK(query.rmr == dapxc_rmr_handle(rmr) && query.out_mr == 3);

	/* What is refused leaves the key alone. */
	rkey = 5;
	fake_fail_next(DAPX_RMR_BIND, EACCES);
	CHECK(dapxc_rmr_bind(rmr, ep, mr, bytes, 1, DAPX_ACCESS_REMOTE_WRITE, 0, 0, &rkey) ==
	      EACCES);
	CHECK(dapxc_rmr_bind(rmr, ep, mr, bytes, 0, DAPX_ACCESS_REMOTE_WRITE, 0, 0, &rkey) ==
	      EINVAL);
	CHECK(dapxc_rmr_bind(rmr, xrc, mr, bytes, 1, DAPX_ACCESS_REMOTE_WRITE, 0, 0, &rkey) ==
	      EOPNOTSUPP);
	CHECK(dapxc_rmr_unbind(rmr, xrc, 0, 0) == EOPNOTSUPP);
	CHECK(rkey == 5);
	CHECK(dapxc_rmr_free(rmr) == 0);
	CHECK(dapxc_ep_free(xrc) == 0);
	CHECK(dapxc_ep_free(ep) == 0);
	CHECK(dapxc_mr_free(mr) == 0);
}

static void connections(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(77) };
	struct sockaddr_in from = { .sin_family = AF_INET };
	const struct dapxc_connect_options options = {
		.size = sizeof(options),
		.deadline = 5000,
		.retry_count = 3,
		.rnr_retry_count = 4,
		.private_data_len = 2,
		.private_data = "yo",
	};
	struct {
		struct dapxc_connect_options known;
		uint64_t more;
	} later = { .more = 0 };
	struct dapx_event event = { .type = DAPX_EVENT_CONNECT_REQUEST };
	struct dapx_cm_query query = { .size = sizeof(query) };
	struct dapxc_cm *cm, *listener, *request, *played;
	struct dapx_ep_connect connect;
	struct dapx_ep_accept accept;
	struct dapx_ep_disconnect disconnect;
	struct dapx_cm_resolve resolve;
	struct dapx_cm_reject reject;
	struct dapx_cm_take take;
	struct dapx_cm_bind bind;
	struct dapx_cm_listen listen;
	struct dapx_cm_modify modify = { .size = sizeof(modify), .mask = DAPX_CM_MODIFY_TOS,
					 .tos = 40 };
	struct dapxc_ep *ep, *xrc;

	to.sin_addr.s_addr = inet_addr("10.0.0.2");
	from.sin_addr.s_addr = inet_addr("10.0.0.1");
	ep = dapxc_ep_create(pd, evd, evd, evd, NULL, &sizes, 0);
	CHECK(dapxc_ep_connect(ep, (struct sockaddr *)&to, (struct sockaddr *)&from, &options) == 0);
	fake_last(DAPX_EP_CONNECT, &connect, sizeof(connect));
	CHECK(!memcmp(&connect.dst, &to, sizeof(to)) && !memcmp(&connect.src, &from, sizeof(from)));
	CHECK(connect.deadline == 5000 && connect.retry_count == 3 && connect.rnr_retry_count == 4);
	CHECK(connect.private_data_len == 2 && !memcmp(connect.private_data, "yo", 2));
	CHECK(dapxc_ep_connect(ep, (struct sockaddr *)&to, NULL, NULL) == 0);
	fake_last(DAPX_EP_CONNECT, &connect, sizeof(connect));
	CHECK(connect.deadline == DAPX_NO_DEADLINE && connect.rnr_retry_count == 7);
	CHECK(connect.src.ss_family == 0);

	cm = dapxc_cm_create(evd, 0);
	CHECK(cm);
	CHECK(dapxc_cm_resolve_address(cm, (struct sockaddr *)&to, NULL, DAPX_NO_DEADLINE) == 0);
	fake_last(DAPX_CM_RESOLVE, &resolve, sizeof(resolve));
	CHECK(resolve.what == DAPX_RESOLVE_ADDR && resolve.deadline == DAPX_NO_DEADLINE);
	CHECK(dapxc_cm_resolve_address(cm, (struct sockaddr *)&to, (struct sockaddr *)&from, 9) == 0);
	fake_last(DAPX_CM_RESOLVE, &resolve, sizeof(resolve));
	CHECK(!memcmp(&resolve.src, &from, sizeof(from)) && resolve.deadline == 9);
	CHECK(dapxc_cm_resolve_route(cm, 10) == 0);
	fake_last(DAPX_CM_RESOLVE, &resolve, sizeof(resolve));
	CHECK(resolve.what == DAPX_RESOLVE_ROUTE && resolve.deadline == 10);
	CHECK(dapxc_ep_connect_cm(ep, cm, &options) == 0);
	/* As of a later version, which asks for nothing that is new. */
	later.known = options;
	later.known.size = sizeof(later);
	CHECK(dapxc_ep_connect_cm(ep, cm, &later.known) == 0);
	fake_last(DAPX_EP_CONNECT, &connect, sizeof(connect));
	CHECK(connect.cm == dapxc_cm_handle(cm) && connect.dst.ss_family == 0);
	CHECK(connect.flags == 0);
	CHECK(dapxc_ep_connect_by_steps(ep, cm, &options) == 0);
	fake_last(DAPX_EP_CONNECT, &connect, sizeof(connect));
	CHECK(connect.cm == dapxc_cm_handle(cm) && connect.flags == DAPX_CONNECT_STEPS);
	fake_fail_next(DAPX_EP_ESTABLISH, EBADFD);
	CHECK(dapxc_ep_establish(ep) == EBADFD);
	CHECK(dapxc_ep_establish(ep) == 0);
	CHECK(dapxc_cm_free(cm) == 0);

	listener = dapxc_cm_create(evd, 0);
	fake_fail_next(DAPX_CM_MODIFY, EBADFD);
	CHECK(dapxc_cm_modify(listener, &modify) == EBADFD);
	CHECK(dapxc_cm_modify(listener, &modify) == 0);
	fake_last(DAPX_CM_MODIFY, &modify, sizeof(modify));
	CHECK(modify.cm == dapxc_cm_handle(listener) && modify.tos == 40);
	CHECK(modify.mask == DAPX_CM_MODIFY_TOS);
	CHECK(dapxc_cm_bind(listener, (struct sockaddr *)&from) == 0);
	fake_last(DAPX_CM_BIND, &bind, sizeof(bind));
	CHECK(!memcmp(&bind.addr, &from, sizeof(from)));
	CHECK(dapxc_cm_listen(listener, 5) == 0);
	fake_last(DAPX_CM_LISTEN, &listen, sizeof(listen));
	CHECK(listen.backlog == 5 && listen.mode == DAPX_LISTEN_CONSUMER);

	/* The stand-in makes no requests: ids play them. */
	played = dapxc_cm_create(evd, 0);
	event.request.cm = dapxc_cm_handle(played);
	fake_unacked(1);
	request = dapxc_cm_request(listener, &event);
	CHECK(request);
	CHECK(dapxc_cm_handle(request) == event.request.cm);
	xrc = dapxc_ep_create_xrc(pd, evd, evd, NULL, &sizes, 0);
	CHECK(dapxc_ep_accept(xrc, request, 7, NULL, 0) == EOPNOTSUPP);
	CHECK(dapxc_ep_free(xrc) == 0);
	fake_xrc_request(1);
	CHECK(dapxc_cm_query(request, &query) == 0);
	CHECK(query.out_xrc == 1 && query.cm == event.request.cm);
	fake_xrc_request(0);
	fake_fail_next(DAPX_EP_ACCEPT, EPROTO);
	CHECK(dapxc_ep_accept(ep, request, 5, "ok", 2) == EPROTO);
	CHECK(dapxc_ep_accept(ep, request, 5, "ok", 2) == 0);
	fake_last(DAPX_EP_ACCEPT, &accept, sizeof(accept));
	CHECK(accept.rnr_retry_count == 5 && accept.private_data_len == 2 && accept.flags == 0);
	CHECK(dapxc_cm_free(played) == 0);

	played = dapxc_cm_create(evd, 0);
	event.request.cm = dapxc_cm_handle(played);
	fake_unacked(1);
	request = dapxc_cm_request(listener, &event);
	CHECK(dapxc_ep_accept_by_steps(ep, request, 5, "ok", 2) == 0);
	fake_last(DAPX_EP_ACCEPT, &accept, sizeof(accept));
	CHECK(accept.flags == DAPX_CONNECT_STEPS);
	CHECK(dapxc_cm_free(played) == 0);

	played = dapxc_cm_create(evd, 0);
	event.request.cm = dapxc_cm_handle(played);
	fake_unacked(1);
	request = dapxc_cm_request(listener, &event);
	CHECK(dapxc_cm_reject(request, "no", 2) == 0);
	fake_last(DAPX_CM_REJECT, &reject, sizeof(reject));
	CHECK(reject.cm == event.request.cm && reject.private_data_len == 2);
	CHECK(dapxc_cm_free(played) == 0);

	played = dapxc_cm_create(evd, 0);
	event.request.cm = dapxc_cm_handle(played);
	fake_unacked(1);
	request = dapxc_cm_request(listener, &event);
	CHECK(dapxc_cm_take(request, evd, 14) == 0);
	fake_last(DAPX_CM_TAKE, &take, sizeof(take));
	CHECK(take.cm == event.request.cm && take.evd == dapxc_evd_handle(evd));
	CHECK(take.user_data == 14);
	fake_fail_next(DAPX_CM_TAKE, EBADFD);
	CHECK(dapxc_cm_take(request, evd, 14) == EBADFD);
	CHECK(dapxc_cm_free(played) == 0);
	CHECK(dapxc_cm_free(request) == 0);

	/* One that ended with its listener: only its memory is left. */
	played = dapxc_cm_create(evd, 0);
	event.request.cm = dapxc_cm_handle(played);
	fake_unacked(1);
	request = dapxc_cm_request(listener, &event);
	CHECK(dapxc_cm_free(played) == 0);
	CHECK(dapxc_cm_free(request) == 0);

	fake_unacked(2);
	CHECK(dapxc_cm_free(listener) == EBUSY);
	CHECK(dapxc_cm_ack(listener, 3) == EINVAL);
	CHECK(dapxc_cm_ack(listener, 1) == 0);
	CHECK(dapxc_cm_discard(listener) == 0);
	fake_unacked(0);

	CHECK(dapxc_ep_disconnect(ep, 0) == 0);
	CHECK(dapxc_ep_disconnect(ep, DAPX_DISCONNECT_ABRUPT) == 0);
	fake_last(DAPX_EP_DISCONNECT, &disconnect, sizeof(disconnect));
	CHECK(disconnect.flags == DAPX_DISCONNECT_ABRUPT);
	CHECK(dapxc_ep_free(ep) == 0);
}

/* What a forked child may do with what it inherits. */
static void forked(void)
{
	struct dapxc_ep *ep = dapxc_ep_create(pd, evd, evd, evd, NULL, &sizes, 0);
	struct dapxc_srq *srq = dapxc_srq_create(pd, evd, 4, 1, 0);
	struct dapx_send_wr wr = { .opcode = DAPX_OP_SEND };
	struct dapx_event event;
	size_t count;
	pid_t child;
	int status;

	fake_set_state(dapxc_ep_handle(ep), DAPX_EP_CONNECTED);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		CHECK(dapxc_evd_poll(evd, &event, 1, &count) == EPERM && count == 0);
		CHECK(dapxc_ep_post_send(ep, &wr, NULL, 0) == EPERM);
		CHECK(dapxc_ep_post_recv(ep, 1, NULL, 0, 0) == EPERM);
		CHECK(dapxc_srq_post_recv(srq, 1, NULL, 0, 0) == EPERM);
		CHECK(dapxc_ep_state(ep) == DAPX_EP_DISCONNECTED);
		CHECK(dapxc_ep_free(ep) == EPERM);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(dapxc_evd_poll(evd, &event, 1, &count) == 0);
	CHECK(dapxc_ep_post_send(ep, &wr, NULL, 0) == 0);
	CHECK(dapxc_ep_free(ep) == 0);
	CHECK(dapxc_srq_free(srq) == 0);
}

/* Whichever allocation of a call fails: it says so, or does without. */
static void out_of_memory(void)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct dapxc_ep *ep = dapxc_ep_create(pd, evd, evd, evd, NULL, &sizes, 0);
	struct dapxc_cm *cm = dapxc_cm_create(evd, 0);
	struct dapxc_context *other;
	struct dapxc_evd *made;
	unsigned int n, failures = 0;
	char bytes[100];
	int failed = 1;

	for (n = 0; failed; n++, failures += failed) {
		fake_fail_allocation(n);
		other = dapxc_open("rxe0", node);
		failed = fake_allocation_failed();
		CHECK(other ? dapxc_close(other) == 0 : failed && errno == ENOMEM);
	}
	for (n = 0, failed = 1; failed; n++, failures += failed) {
		fake_fail_allocation(n);
		CHECK(!dapxc_open("a device with a long name", node));
		failed = fake_allocation_failed();
		CHECK(errno == EOPNOTSUPP || (failed && errno == ENOMEM));
	}
	for (n = 0, failed = 1; failed; n++, failures += failed) {
		fake_fail_allocation(n);
		made = dapxc_evd_create(context, 4, 0, 0);
		failed = fake_allocation_failed();
		CHECK(made ? dapxc_evd_free(made) == 0 : failed && errno == ENOMEM);
	}
	for (n = 0, failed = 1; failed; n++, failures += failed) {
		fake_fail_next(DAPX_MR_CREATE, EACCES);
		fake_fail_allocation(n);
		CHECK(!dapxc_mr_create(pd, bytes, sizeof(bytes), 0, 0, 0));
		CHECK(errno == EACCES);
		failed = fake_allocation_failed();
	}
	for (n = 0, failed = 1; failed; n++, failures += failed) {
		fake_fail_next(DAPX_EP_CONNECT, EBADFD);
		fake_fail_allocation(n);
		CHECK(dapxc_ep_connect(ep, (struct sockaddr *)&to, NULL, NULL) == EBADFD);
		failed = fake_allocation_failed();
	}
	for (n = 0, failed = 1; failed; n++, failures += failed) {
		fake_fail_next(DAPX_CM_BIND, EADDRINUSE);
		fake_fail_allocation(n);
		CHECK(dapxc_cm_bind(cm, (struct sockaddr *)&to) == EADDRINUSE);
		failed = fake_allocation_failed();
	}
	CHECK(failures > 10);
	CHECK(dapxc_cm_free(cm) == 0);
	CHECK(dapxc_ep_free(ep) == 0);
}

int main(void)
{
	static void (*const tests[])(void) = {
		contexts, freeing, memory, events, domains, queues, receive_queue_pairs, endpoints,
		windows, connections, forked, out_of_memory,
	};
	size_t i;

	for (i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		set_up();
		tests[i]();
		tear_down();
	}
	return 0;
}
