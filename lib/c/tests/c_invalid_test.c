/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * <dapx/c.h>: NULL, and what is out of range, is answered, and does not reach the module.
 */
#include <dapx/c.h>

#include "c_test.h"
#include "fake_module_c.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* NULL, and errno is EINVAL. */
#define REFUSED(call)                  \
	do {                           \
		errno = 0;             \
		CHECK(!(call));        \
		CHECK(errno == EINVAL); \
	} while (0)

static struct dapxc_context *context;
static struct dapxc_pd *pd;
static struct dapxc_evd *evd;
static struct dapxc_xrcd *xrcd;
static struct dapxc_srq *srq;
static struct dapxc_ep *ep;
static struct dapxc_cm *cm;
static struct dapxc_mr *mr;
static struct dapxc_rmr *rmr;
static const struct dapx_ep_attr sizes = {
	.send_depth = 4, .recv_depth = 4, .max_send_sge = 1, .max_recv_sge = 1,
};

static void makers(const char *node)
{
	struct dapx_ep_attr attr = sizes;

	REFUSED(dapxc_open(NULL, node));
	CHECK(!dapxc_open("", node) && errno == ENODEV);
	CHECK(!dapxc_open("rxe0", "/nonexistent") && errno == ENOENT);
	REFUSED(dapxc_pd_create(NULL, 0));
	REFUSED(dapxc_mr_create(NULL, &attr, sizeof(attr), 0, 0, 0));
	REFUSED(dapxc_evd_create(NULL, 16, 0, 0));
	CHECK(!dapxc_evd_create(context, 16, ~0U, 0) && errno == EOPNOTSUPP);
	REFUSED(dapxc_xrcd_open(NULL, -1, O_CREAT, 0));
	REFUSED(dapxc_xrcd_open(context, -1, O_CREAT | O_TRUNC, 0));
	REFUSED(dapxc_srq_create(NULL, evd, 4, 1, 0));
	REFUSED(dapxc_srq_create_xrc(NULL, pd, evd, 4, 1, 0));
	REFUSED(dapxc_srq_create_xrc(xrcd, NULL, evd, 4, 1, 0));
	REFUSED(dapxc_srq_create_xrc(xrcd, pd, NULL, 4, 1, 0));
	REFUSED(dapxc_ep_create(NULL, evd, evd, evd, NULL, &sizes, 0));
	REFUSED(dapxc_ep_create(pd, NULL, evd, evd, NULL, &sizes, 0));
	REFUSED(dapxc_ep_create(pd, evd, evd, NULL, NULL, &sizes, 0));
	REFUSED(dapxc_ep_create(pd, evd, evd, evd, NULL, NULL, 0));
	REFUSED(dapxc_ep_create_xrc(NULL, evd, evd, xrcd, &sizes, 0));
	REFUSED(dapxc_ep_create_xrc(pd, NULL, evd, xrcd, &sizes, 0));
	REFUSED(dapxc_ep_create_xrc(pd, evd, NULL, xrcd, &sizes, 0));
	REFUSED(dapxc_ep_create_xrc(pd, evd, evd, xrcd, NULL, 0));
	attr.flags = 1U << 31;
	CHECK(!dapxc_ep_create(pd, evd, evd, evd, NULL, &attr, 0) && errno == EOPNOTSUPP);
	CHECK(!dapxc_ep_create_xrc(pd, evd, evd, xrcd, &attr, 0) && errno == EOPNOTSUPP);
	REFUSED(dapxc_rmr_create(NULL, 0));
	REFUSED(dapxc_cm_create(NULL, 0));
}

static void objects(void)
{
	struct dapx_query_device device = { .size = sizeof(device) };
	struct dapx_info info = { .size = sizeof(info) };
	struct dapx_srq_query srq_query = { .size = sizeof(srq_query) };
	struct dapx_sge segment = { .mr = 1 };

	CHECK(dapxc_close(NULL) == EINVAL);
	CHECK(dapxc_query_module(NULL, &info) == EINVAL);
	CHECK(dapxc_query_module(context, NULL) == EINVAL);
	CHECK(dapxc_query_device(NULL, &device) == EINVAL);
	CHECK(dapxc_query_device(context, NULL) == EINVAL);
	CHECK(dapxc_pd_handle(NULL) == 0);
	CHECK(dapxc_pd_free(NULL) == EINVAL);
	CHECK(dapxc_mr_handle(NULL) == 0);
	CHECK(dapxc_mr_rkey(NULL) == 0);
	CHECK(dapxc_mr_enable_xrc(NULL) == EINVAL);
	CHECK(dapxc_mr_free(NULL) == EINVAL);
	CHECK(dapxc_xrcd_handle(NULL) == 0);
	CHECK(dapxc_xrcd_close(NULL) == EINVAL);
	CHECK(dapxc_srq_post_recv(NULL, 0, &segment, 1, 0) == EINVAL);
	CHECK(dapxc_srq_post_recv(srq, 0, NULL, 1, 0) == EINVAL);
	CHECK(dapxc_srq_post_recv(srq, 0, &segment, 1, ~0U) == EINVAL);
	CHECK(dapxc_srq_submit(NULL) == EINVAL);
	CHECK(dapxc_srq_set_limit(NULL, 1) == EINVAL);
	CHECK(dapxc_srq_resize(NULL, 8) == EINVAL);
	CHECK(dapxc_srq_query(NULL, &srq_query) == EINVAL);
	CHECK(dapxc_srq_query(srq, NULL) == EINVAL);
	srq_query.size = 8;
	CHECK(dapxc_srq_query(srq, &srq_query) == EINVAL);
	CHECK(srq_query.srq == 0);
	CHECK(dapxc_srq_handle(NULL) == 0);
	CHECK(dapxc_srq_number(NULL) == 0);
	CHECK(dapxc_srq_free(NULL) == EINVAL);
}

static void events(void)
{
	struct dapx_event event;
	size_t count = 0;

	CHECK(dapxc_evd_poll(NULL, &event, 1, &count) == EINVAL);
	CHECK(dapxc_evd_poll(evd, NULL, 1, &count) == EINVAL);
	CHECK(dapxc_evd_poll(evd, &event, 1, NULL) == EINVAL);
	CHECK(dapxc_evd_poll(evd, NULL, 0, &count) == 0);
	CHECK(dapxc_evd_wait(NULL, 0, 1, 0, NULL) == EINVAL);
	CHECK(dapxc_evd_set_eventfd(NULL, -1) == EINVAL);
	CHECK(dapxc_evd_set_eventfd_once(NULL, -1) == EINVAL);
	CHECK(dapxc_evd_arm(NULL, DAPX_ARM_ANY) == EINVAL);
	CHECK(dapxc_evd_arm(evd, 0) == EINVAL);
	CHECK(dapxc_evd_resize(NULL, 8) == EINVAL);
	CHECK(dapxc_evd_post(NULL, 0, 0) == EINVAL);
	CHECK(dapxc_evd_handle(NULL) == 0);
	CHECK(dapxc_evd_free(NULL) == EINVAL);
}

static void receive_queue_pairs(void)
{
	struct dapx_xrc_qp_query query = { .size = sizeof(query) };
	struct dapx_qp_attr step = { .state = DAPX_QP_INIT };
	uint32_t number;

	CHECK(dapxc_xrc_qp_create(NULL, evd, 0, &number) == EINVAL);
	CHECK(dapxc_xrc_qp_create(xrcd, evd, 0, NULL) == EINVAL);
	CHECK(dapxc_xrc_qp_register(NULL, 1, evd, 0) == EINVAL);
	CHECK(dapxc_xrc_qp_unregister(NULL, 1) == EINVAL);
	CHECK(dapxc_xrc_qp_disconnect(NULL, 1) == EINVAL);
	CHECK(dapxc_xrc_qp_modify(NULL, 1, &step) == EINVAL);
	CHECK(dapxc_xrc_qp_modify(xrcd, 1, NULL) == EINVAL);
	CHECK(dapxc_xrc_qp_accept(NULL, 1, cm, NULL, 0) == EINVAL);
	CHECK(dapxc_xrc_qp_accept(xrcd, 1, NULL, NULL, 0) == EINVAL);
	CHECK(dapxc_xrc_qp_accept(xrcd, 1, cm, NULL, 1) == EINVAL);
	CHECK(dapxc_xrc_qp_query(NULL, 1, &query) == EINVAL);
	CHECK(dapxc_xrc_qp_query(xrcd, 1, NULL) == EINVAL);
	query.size = 12;
	CHECK(dapxc_xrc_qp_query(xrcd, 1, &query) == EINVAL);
}

static void endpoints(void)
{
	struct sockaddr_storage address = { .ss_family = AF_UNIX };
	const struct sockaddr *to = (const struct sockaddr *)&address;
	const struct dapxc_connect_options no_data = {
		.size = sizeof(no_data),
		.private_data_len = 1,
	};
	const struct dapxc_connect_options no_size = { .retry_count = 7 };
	struct {
		struct dapxc_connect_options known;
		uint64_t later;
	} longer = { .known = { .size = sizeof(longer) }, .later = 1 };
	struct dapx_ep_query query = { .size = sizeof(query) };
	struct dapx_ep_attr sizes = { .send_depth = 4, .max_send_sge = 1 };
	struct dapx_ep_modify changes = { .size = sizeof(changes) };
	struct dapx_send_wr wr = { .opcode = DAPX_OP_SEND, .num_sge = 1 };
	struct dapx_qp_attr step = { .state = DAPX_QP_INIT };
	struct dapx_sge segment = { .mr = 1 };

	CHECK(dapxc_ep_post_send(NULL, &wr, &segment, 0) == EINVAL);
	CHECK(dapxc_ep_post_send(ep, NULL, &segment, 0) == EINVAL);
	CHECK(dapxc_ep_post_send(ep, &wr, NULL, 0) == EINVAL);
	CHECK(dapxc_ep_post_send(ep, &wr, &segment, ~0U) == EINVAL);
	wr.flags = DAPX_SEND_INLINE;
	wr.num_sge = 0;
	wr.inline_len = 1;
	CHECK(dapxc_ep_post_send(ep, &wr, NULL, 0) == EINVAL);
	CHECK(dapxc_ep_submit(NULL) == EINVAL);
	CHECK(dapxc_ep_post_recv(NULL, 0, &segment, 1, 0) == EINVAL);
	CHECK(dapxc_ep_post_recv(ep, 0, NULL, 1, 0) == EINVAL);
	CHECK(dapxc_ep_post_recv(ep, 0, &segment, 1, ~0U) == EINVAL);
	CHECK(dapxc_ep_submit_recv(NULL) == EINVAL);
	CHECK(dapxc_ep_modify(NULL, &changes) == EINVAL);
	CHECK(dapxc_ep_modify(ep, NULL) == EINVAL);
	changes.size = 8;
	CHECK(dapxc_ep_modify(ep, &changes) == EINVAL);
	CHECK(changes.ep == 0);
	CHECK(dapxc_ep_modify_qp(NULL, &step) == EINVAL);
	CHECK(dapxc_ep_modify_qp(ep, NULL) == EINVAL);
	CHECK(dapxc_ep_connect(NULL, to, NULL, NULL) == EINVAL);
	CHECK(dapxc_ep_connect(ep, NULL, NULL, NULL) == EINVAL);
	CHECK(dapxc_ep_connect(ep, to, NULL, &no_data) == EINVAL);
	CHECK(dapxc_ep_connect(ep, to, NULL, &no_size) == EINVAL);
	CHECK(dapxc_ep_connect(ep, to, NULL, &longer.known) == E2BIG);
	CHECK(dapxc_ep_connect_cm(NULL, cm, NULL) == EINVAL);
	CHECK(dapxc_ep_connect_cm(ep, NULL, NULL) == EINVAL);
	CHECK(dapxc_ep_connect_cm(ep, cm, &no_data) == EINVAL);
	CHECK(dapxc_ep_accept(NULL, cm, 7, NULL, 0) == EINVAL);
	CHECK(dapxc_ep_accept(ep, NULL, 7, NULL, 0) == EINVAL);
	CHECK(dapxc_ep_accept(ep, cm, 7, NULL, 1) == EINVAL);
	CHECK(dapxc_ep_connect_by_steps(NULL, cm, NULL) == EINVAL);
	CHECK(dapxc_ep_connect_by_steps(ep, NULL, NULL) == EINVAL);
	CHECK(dapxc_ep_accept_by_steps(NULL, cm, 7, NULL, 0) == EINVAL);
	CHECK(dapxc_ep_accept_by_steps(ep, NULL, 7, NULL, 0) == EINVAL);
	CHECK(dapxc_ep_establish(NULL) == EINVAL);
	CHECK(dapxc_ep_disconnect(NULL, 0) == EINVAL);
	CHECK(dapxc_ep_disconnect(ep, ~0U) == EOPNOTSUPP);
	CHECK(dapxc_ep_reset(NULL) == EINVAL);
	CHECK(dapxc_ep_resize(NULL, &sizes, NULL) == EINVAL);
	CHECK(dapxc_ep_resize(ep, NULL, NULL) == EINVAL);
	sizes.flags = DAPX_EP_XRC;
	CHECK(dapxc_ep_resize(ep, &sizes, NULL) == EOPNOTSUPP);
	sizes.flags = ~0U & ~DAPX_EP_XRC;
	CHECK(dapxc_ep_resize(ep, &sizes, NULL) == EOPNOTSUPP);
	CHECK(dapxc_ep_query(NULL, &query) == EINVAL);
	CHECK(dapxc_ep_query(ep, NULL) == EINVAL);
	query.size = 4;
	CHECK(dapxc_ep_query(ep, &query) == EINVAL);
	CHECK(dapxc_ep_handle(NULL) == 0);
	CHECK(dapxc_ep_qp_num(NULL) == 0);
	CHECK(dapxc_ep_state(NULL) == 0);
	CHECK(dapxc_ep_free(NULL) == EINVAL);
}

static void windows(void)
{
	struct dapx_rmr_query query = { .size = sizeof(query) };
	uint32_t rkey = 0;

	CHECK(dapxc_rmr_bind(NULL, ep, mr, &query, 1, 0, 0, 0, &rkey) == EINVAL);
	CHECK(dapxc_rmr_bind(rmr, NULL, mr, &query, 1, 0, 0, 0, &rkey) == EINVAL);
	CHECK(dapxc_rmr_bind(rmr, ep, NULL, &query, 1, 0, 0, 0, &rkey) == EINVAL);
	CHECK(dapxc_rmr_bind(rmr, ep, mr, &query, 1, 0, 0, 0, NULL) == EINVAL);
	CHECK(dapxc_rmr_bind(rmr, ep, mr, &query, 1, 0, ~0U, 0, &rkey) == EINVAL);
	CHECK(dapxc_rmr_unbind(NULL, ep, 0, 0) == EINVAL);
	CHECK(dapxc_rmr_unbind(rmr, NULL, 0, 0) == EINVAL);
	CHECK(dapxc_rmr_unbind(rmr, ep, ~0U, 0) == EINVAL);
	CHECK(dapxc_rmr_query(NULL, &query) == EINVAL);
	CHECK(dapxc_rmr_query(rmr, NULL) == EINVAL);
	query.size = 8;
	CHECK(dapxc_rmr_query(rmr, &query) == EINVAL);
	CHECK(query.rmr == 0);
	CHECK(dapxc_rmr_handle(NULL) == 0);
	CHECK(dapxc_rmr_free(NULL) == EINVAL);
}

static void connections(void)
{
	static const char long_data[DAPX_PRIVATE_DATA_MAX + 1];
	struct sockaddr_storage address = { .ss_family = AF_UNIX };
	const struct sockaddr *to = (const struct sockaddr *)&address;
	struct dapx_event event = { .type = DAPX_EVENT_SOFTWARE };
	struct dapx_cm_query query = { .size = sizeof(query) };
	struct dapx_cm_modify modify = { .size = sizeof(modify) };

	CHECK(dapxc_cm_modify(NULL, &modify) == EINVAL);
	CHECK(dapxc_cm_modify(cm, NULL) == EINVAL);
	modify.size = 8;
	CHECK(dapxc_cm_modify(cm, &modify) == EINVAL);
	CHECK(dapxc_cm_bind(NULL, to) == EINVAL);
	CHECK(dapxc_cm_bind(cm, NULL) == EINVAL);
	CHECK(dapxc_cm_listen(NULL, 0) == EINVAL);
	CHECK(dapxc_cm_resolve_address(NULL, to, NULL, 0) == EINVAL);
	CHECK(dapxc_cm_resolve_address(cm, NULL, NULL, 0) == EINVAL);
	CHECK(dapxc_cm_resolve_route(NULL, 0) == EINVAL);
	REFUSED(dapxc_cm_request(NULL, &event));
	REFUSED(dapxc_cm_request(cm, NULL));
	REFUSED(dapxc_cm_request(cm, &event));
	CHECK(dapxc_cm_take(NULL, evd, 0) == EINVAL);
	CHECK(dapxc_cm_take(cm, NULL, 0) == EINVAL);
	CHECK(dapxc_cm_query(NULL, &query) == EINVAL);
	CHECK(dapxc_cm_query(cm, NULL) == EINVAL);
	query.size = 4;
	CHECK(dapxc_cm_query(cm, &query) == EINVAL);
	CHECK(dapxc_cm_reject(NULL, NULL, 0) == EINVAL);
	CHECK(dapxc_cm_reject(cm, NULL, 1) == EINVAL);
	CHECK(dapxc_cm_reject(cm, long_data, sizeof(long_data)) == EINVAL);
	CHECK(strstr(dapxc_error_text(), "private data"));
	CHECK(dapxc_ep_accept(ep, cm, 7, long_data, sizeof(long_data)) == EINVAL);
	CHECK(dapxc_cm_ack(NULL, 1) == EINVAL);
	CHECK(dapxc_cm_handle(NULL) == 0);
	CHECK(dapxc_cm_free(NULL) == EINVAL);
	CHECK(dapxc_cm_discard(NULL) == EINVAL);
}

/* Objects of two contexts in one call, whose numbers may be alike. */
static void of_two_contexts(const char *node)
{
	struct dapxc_context *other = dapxc_open("rxe0", node);
	struct dapxc_pd *its_pd = dapxc_pd_create(other, 0);
	struct dapxc_evd *its_evd = dapxc_evd_create(other, 16, 0, 0);
	struct dapxc_xrcd *its_xrcd = dapxc_xrcd_open(other, -1, O_CREAT, 0);
	struct dapxc_srq *its_srq = dapxc_srq_create(its_pd, its_evd, 4, 1, 0);
	struct dapxc_cm *its_cm = dapxc_cm_create(its_evd, 0);
	uint32_t number;

	CHECK(its_evd && its_xrcd && its_srq && its_cm);
	REFUSED(dapxc_srq_create(pd, its_evd, 4, 1, 0));
	REFUSED(dapxc_srq_create_xrc(its_xrcd, pd, evd, 4, 1, 0));
	REFUSED(dapxc_srq_create_xrc(xrcd, its_pd, evd, 4, 1, 0));
	REFUSED(dapxc_srq_create_xrc(xrcd, pd, its_evd, 4, 1, 0));
	REFUSED(dapxc_ep_create(its_pd, evd, evd, evd, NULL, &sizes, 0));
	CHECK(strstr(dapxc_error_text(), "of two contexts"));
	REFUSED(dapxc_ep_create(pd, its_evd, evd, evd, NULL, &sizes, 0));
	REFUSED(dapxc_ep_create(pd, evd, its_evd, evd, NULL, &sizes, 0));
	REFUSED(dapxc_ep_create(pd, evd, evd, its_evd, NULL, &sizes, 0));
	REFUSED(dapxc_ep_create(pd, evd, evd, evd, its_srq, &sizes, 0));
	REFUSED(dapxc_ep_create_xrc(its_pd, evd, evd, xrcd, &sizes, 0));
	REFUSED(dapxc_ep_create_xrc(pd, its_evd, evd, xrcd, &sizes, 0));
	REFUSED(dapxc_ep_create_xrc(pd, evd, its_evd, xrcd, &sizes, 0));
	REFUSED(dapxc_ep_create_xrc(pd, evd, evd, its_xrcd, &sizes, 0));
	CHECK(dapxc_xrc_qp_create(xrcd, its_evd, 0, &number) == EINVAL);
	CHECK(dapxc_xrc_qp_register(xrcd, 1, its_evd, 0) == EINVAL);
	CHECK(dapxc_xrc_qp_accept(xrcd, 1, its_cm, NULL, 0) == EINVAL);
	CHECK(dapxc_ep_connect_cm(ep, its_cm, NULL) == EINVAL);
	CHECK(dapxc_ep_accept(ep, its_cm, 7, NULL, 0) == EINVAL);
	CHECK(strstr(dapxc_error_text(), "of two contexts"));
	CHECK(dapxc_cm_free(its_cm) == 0);
	CHECK(dapxc_srq_free(its_srq) == 0);
	CHECK(dapxc_xrcd_close(its_xrcd) == 0);
	CHECK(dapxc_evd_free(its_evd) == 0);
	CHECK(dapxc_pd_free(its_pd) == 0);
	CHECK(dapxc_close(other) == 0);
}

int main(void)
{
	const char *node = fake_begin();
	static const unsigned long silent[] = {
		DAPX_DOORBELL, DAPX_EVD_WAIT, DAPX_SRQ_MODIFY, DAPX_SRQ_QUERY, DAPX_EP_QUERY,
		DAPX_EP_MODIFY, DAPX_EP_CONNECT, DAPX_EP_ACCEPT, DAPX_EP_DISCONNECT, DAPX_EP_RESET,
		DAPX_EP_RESIZE, DAPX_SRQ_RESIZE,
		DAPX_CM_BIND, DAPX_CM_LISTEN, DAPX_CM_RESOLVE, DAPX_CM_QUERY, DAPX_CM_REJECT,
		DAPX_CM_TAKE, DAPX_MR_MODIFY, DAPX_RMR_BIND, DAPX_RMR_QUERY,
		DAPX_CM_ACK, DAPX_CM_MODIFY, DAPX_XRC_QP_CREATE, DAPX_XRC_QP_REGISTER, DAPX_XRC_QP_UNREGISTER,
		DAPX_XRC_QP_MODIFY, DAPX_XRC_QP_ACCEPT, DAPX_XRC_QP_QUERY, DAPX_XRC_QP_DISCONNECT, DAPX_FREE,
	};
	size_t i;

	CHECK(!strcmp(dapxc_error_text(), ""));
	context = dapxc_open("rxe0", node);
	pd = dapxc_pd_create(context, 0);
	evd = dapxc_evd_create(context, 16, 0, 0);
	xrcd = dapxc_xrcd_open(context, -1, O_CREAT, 0);
	srq = dapxc_srq_create_xrc(xrcd, pd, evd, 4, 1, 0);
	ep = dapxc_ep_create(pd, evd, evd, evd, NULL, &sizes, 0);
	cm = dapxc_cm_create(evd, 0);
	mr = dapxc_mr_create(pd, &pd, sizeof(pd), 0, 0, 0);
	rmr = dapxc_rmr_create(pd, 0);
	CHECK(context && pd && evd && xrcd && srq && ep && cm && mr && rmr);
	makers(node);
	objects();
	events();
	receive_queue_pairs();
	endpoints();
	windows();
	connections();
	for (i = 0; i < sizeof(silent) / sizeof(*silent); i++)
		CHECK(fake_count(silent[i]) == 0);
	of_two_contexts(node);
	CHECK(dapxc_rmr_free(rmr) == 0);
	CHECK(dapxc_mr_free(mr) == 0);
	CHECK(dapxc_cm_free(cm) == 0);
	CHECK(dapxc_ep_free(ep) == 0);
	CHECK(dapxc_srq_free(srq) == 0);
	CHECK(dapxc_xrcd_close(xrcd) == 0);
	CHECK(dapxc_evd_free(evd) == 0);
	CHECK(dapxc_pd_free(pd) == 0);
	CHECK(dapxc_close(context) == 0);
	fake_end();
	return 0;
}
