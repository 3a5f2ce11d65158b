// SPDX-License-Identifier: GPL-2.0
/*
 * Every command with each of its allocations and copies failing in turn: it
 * says so or succeeds, changes nothing if it says so, leaks nothing, and works
 * afterwards. Needs a kernel with fault injection; only failures below functions
 * of the module are injected. (Who runs the tests looks for leaked memory.)
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/fabric.h"
#include "harness/faults.h"
#include "harness/machine.h"
#include "harness/resources.h"
#include "harness/snapshot.h"
#include "harness/xrc.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 3000

/* More failures than any command has places for; if it is hit, raise it. */
#define MOST 600

/* ---- scenes: what a command needs, and how it is undone ---- */

struct stage {
	struct host a;
	struct host b;
	struct ep ea;			/* made for each try */
	struct ep eb;
	struct listener listener;	/* of a */
	__u32 request;			/* at a */
	__u32 handle;			/* of what there is for the command */
	struct listener there;		/* of b */
	__u32 xrc_qp;			/* a's registration */
	struct host other;		/* another context of a's device, if it is open */
};

static int gone(int fd, __u32 handle)
{
	struct dapx_free cmd = { .handle = handle };

	if (!handle)
		return 0;
	if (_test_cmd_free(fd, &cmd))
		return because("undoing: DAPX_FREE: %m");
	return 0;
}

/* Takes and acknowledges whatever came. */
static void drain(struct host *host)
{
	struct dapx_event event;

	evd_drain(&host->done);
	evd_drain(&host->recv);
	while (evd_poll(&host->conn, &event)) {
		struct dapx_cm_ack ack = { .cm = event.handle, .events = 1 };

		if (event.type == DAPX_EVENT_CONNECT_REQUEST ||
		    event.type == DAPX_EVENT_CM)
			_test_cmd_cm_ack(host->fd, &ack);
	}
}

static int nothing_needed(struct stage *s, void *cmd)
{
	return 0;
}

static int bare_file(struct stage *s, void *cmd)
{
	struct dapx_attach *c = cmd;

	snprintf(c->device, sizeof(c->device), "%s", s->a.device);
	s->handle = open(DAPX_NODE, O_RDWR | O_CLOEXEC);
	return (int)s->handle < 0 ? because(DAPX_NODE ": %m") : 0;
}

static int a_pd(struct stage *s, void *cmd)
{
	struct dapx_pd_create pd = {};

	if (_test_cmd_pd_create(s->a.fd, &pd))
		return because("DAPX_PD_CREATE: %m");
	s->handle = pd.out_pd;
	return 0;
}

static int for_query_object(struct stage *s, void *cmd)
{
	((struct dapx_query_object *)cmd)->handle = s->a.pd;
	return 0;
}

static int for_free(struct stage *s, void *cmd)
{
	if (a_pd(s, cmd))
		return -1;
	((struct dapx_free *)cmd)->handle = s->handle;
	return 0;
}

static int for_mr_create(struct stage *s, void *cmd)
{
	struct dapx_mr_create *c = cmd;

	c->pd = s->a.pd;
	c->addr = (uintptr_t)s->a.mem;
	c->length = 65536;
	c->access = DAPX_ACCESS_LOCAL_WRITE;
	return 0;
}

static int for_mr_create_xrc(struct stage *s, void *cmd)
{
	struct dapx_mr_create *c = cmd;

	for_mr_create(s, cmd);
	c->flags = DAPX_MR_XRC;
	c->access |= DAPX_ACCESS_REMOTE_READ;
	return 0;
}

static int for_evd_create(struct stage *s, void *cmd)
{
	((struct dapx_evd_create *)cmd)->depth = 16;
	return 0;
}

/* Of which the list of pages is more than a page. */
static int for_evd_create_large(struct stage *s, void *cmd)
{
	((struct dapx_evd_create *)cmd)->depth = 32768;
	return 0;
}

static int an_evd(struct stage *s)
{
	struct dapx_evd_create evd = { .depth = 16 };
	struct dapx_evd_post post = {};
	int i;

	if (_test_cmd_evd_create(s->a.fd, &evd))
		return because("DAPX_EVD_CREATE: %m");
	s->handle = evd.out_evd;
	post.evd = evd.out_evd;
	for (i = 0; i < 4; i++)
		if (_test_cmd_evd_post(s->a.fd, &post))
			return because("DAPX_EVD_POST: %m");
	return 0;
}

static int for_evd_wait(struct stage *s, void *cmd)
{
	struct dapx_evd_wait *c = cmd;

	if (an_evd(s))
		return -1;
	c->evd = s->handle;
	c->threshold = 1;
	return 0;
}

static int for_evd_resize(struct stage *s, void *cmd)
{
	struct dapx_evd_resize *c = cmd;

	if (an_evd(s))
		return -1;
	c->evd = s->handle;
	c->depth = 256;
	return 0;
}

static int for_evd_eventfd(struct stage *s, void *cmd)
{
	struct dapx_evd_eventfd *c = cmd;

	if (an_evd(s))
		return -1;
	c->evd = s->handle;
	c->fd = -1;
	return 0;
}

static int for_evd_post(struct stage *s, void *cmd)
{
	if (an_evd(s))
		return -1;
	((struct dapx_evd_post *)cmd)->evd = s->handle;
	return 0;
}

static int for_srq_create(struct stage *s, void *cmd)
{
	struct dapx_srq_create *c = cmd;

	c->pd = s->a.pd;
	c->depth = 8;
	c->max_sge = 1;
	return 0;
}

static int for_ep_create(struct stage *s, void *cmd)
{
	ep_usual(&s->a, cmd);
	return 0;
}

static int an_ep(struct stage *s)
{
	return ep_create(&s->a, &s->ea);
}

static int connected(struct stage *s)
{
	if (an_ep(s) || ep_create(&s->b, &s->eb))
		return -1;
	return connect_cm(&s->ea, &s->eb);
}

/* Requests and receives: those of a connected endpoint. */
static int for_doorbell(struct stage *s, void *cmd)
{
	struct dapx_doorbell *c = cmd;
	struct dapx_sge sge = host_sge(&s->a, 0, 64);
	struct dapx_send_wr wr = {
		.opcode = DAPX_OP_RDMA_WRITE, .num_sge = 1,
		.flags = DAPX_SEND_SIGNALED,
		.remote_addr = (uintptr_t)s->b.mem, .rkey = s->b.rkey,
	};
	struct dapx_recv_wr recv = { .num_sge = 1 };
	int i;

	if (connected(s))
		return -1;
	for (i = 0; i < 4; i++)
		if (ep_push_send(&s->ea, &wr, &sge) ||
		    ep_push_recv(&s->ea, &recv, &sge))
			return -1;
	c->handle = s->ea.handle;
	c->flags = DAPX_DOORBELL_SEND | DAPX_DOORBELL_RECV;
	return 0;
}

static int for_ep_query(struct stage *s, void *cmd)
{
	if (an_ep(s))
		return -1;
	((struct dapx_ep_query *)cmd)->ep = s->ea.handle;
	return 0;
}

static int for_ep_modify(struct stage *s, void *cmd)
{
	struct dapx_ep_modify *c = cmd;

	if (an_ep(s))
		return -1;
	c->ep = s->ea.handle;
	c->mask = DAPX_EP_MODIFY_PD | DAPX_EP_MODIFY_REQUEST_EVD |
		  DAPX_EP_MODIFY_RD_ATOMIC;
	c->pd = s->a.pd;
	c->request_evd = s->a.conn.handle;
	return 0;
}

static int for_ep_resize(struct stage *s, void *cmd)
{
	struct dapx_ep_resize *c = cmd;

	if (an_ep(s))
		return -1;
	c->ep = s->ea.handle;
	c->attr = s->ea.attr;
	c->attr.send_depth = 2 * EP_DEPTH;
	return 0;
}

static int for_ep_modify_init(struct stage *s, void *cmd)
{
	struct dapx_ep_modify *c = cmd;

	if (an_ep(s))
		return -1;
	c->ep = s->ea.handle;
	c->mask = DAPX_EP_MODIFY_QP;
	c->qp.state = DAPX_QP_INIT;
	c->qp.port = 1;
	return 0;
}

static int for_ep_modify_rtr(struct stage *s, void *cmd)
{
	struct dapx_ep_modify *c = cmd;
	__u8 gid[16];

	if (an_ep(s) || qp_init(&s->ea))
		return -1;
	c->ep = s->ea.handle;
	c->mask = DAPX_EP_MODIFY_QP;
	c->qp.state = DAPX_QP_RTR;
	c->qp.dest_qp_num = 17;
	c->qp.path_mtu = 3;
	c->qp.hop_limit = 64;
	c->qp.sgid_index = host_gid_index(&s->a, gid);
	return host_gid_index(&s->b, c->qp.dgid) < 0 ? -1 : 0;
}

static int for_ep_connect(struct stage *s, void *cmd)
{
	if (an_ep(s))
		return -1;
	connect_usual(&s->ea, &s->there, cmd);
	return 0;
}

static int a_request(struct stage *s)
{
	struct dapx_event event;

	drain(&s->a);
	if (ep_create(&s->b, &s->eb) || listener_open(&s->a, &s->listener) ||
	    ep_connect(&s->eb, &s->listener) ||
	    listener_request(&s->listener, &event))
		return -1;
	s->request = event.request.cm;
	return 0;
}

static int for_ep_accept(struct stage *s, void *cmd)
{
	struct dapx_ep_accept *c = cmd;

	if (a_request(s) || an_ep(s))
		return -1;
	c->ep = s->ea.handle;
	c->cm = s->request;
	c->rnr_retry_count = 7;
	return 0;
}

static int for_ep_establish(struct stage *s, void *cmd)
{
	struct dapx_cm_query query = {};
	struct dapx_event event;

	drain(&s->a);
	drain(&s->b);
	if (an_ep(s) || ep_create(&s->b, &s->eb) ||
	    ep_prepare_steps(&s->ea, &s->there, &s->handle))
		return -1;
	if (ep_connect_steps(&s->ea, s->handle))
		return because("DAPX_EP_CONNECT: %m");
	if (listener_request(&s->there, &event) || ep_accept_steps(&s->eb, event.request.cm) ||
	    expect_connection(&s->a.conn, s->ea.handle, DAPX_CONNECTION_RESPONSE, NULL))
		return -1;
	query.cm = s->handle;
	if (_test_cmd_cm_query(s->a.fd, &query))
		return because("DAPX_CM_QUERY: %m");
	((struct dapx_ep_establish *)cmd)->ep = s->ea.handle;
	return qp_steps(&s->ea, &query.out_qp, DAPX_QP_INIT, DAPX_QP_RTS);
}

static int for_ep_disconnect(struct stage *s, void *cmd)
{
	if (connected(s))
		return -1;
	((struct dapx_ep_disconnect *)cmd)->ep = s->ea.handle;
	return 0;
}

static int for_ep_reset(struct stage *s, void *cmd)
{
	struct dapx_ep_disconnect disconnect = {};

	if (connected(s))
		return -1;
	disconnect.ep = s->ea.handle;
	disconnect.flags = DAPX_DISCONNECT_ABRUPT;
	if (_test_cmd_ep_disconnect(s->a.fd, &disconnect))
		return because("DAPX_EP_DISCONNECT: %m");
	((struct dapx_ep_reset *)cmd)->ep = s->ea.handle;
	return ep_await_state(&s->ea, DAPX_EP_DISCONNECTED);
}

static int for_cm_create(struct stage *s, void *cmd)
{
	((struct dapx_cm_create *)cmd)->evd = s->a.conn.handle;
	return 0;
}

static int a_cm(struct stage *s)
{
	struct dapx_cm_create cmd = { .evd = s->a.conn.handle };

	if (_test_cmd_cm_create(s->a.fd, &cmd))
		return because("DAPX_CM_CREATE: %m");
	s->handle = cmd.out_cm;
	return 0;
}

static int for_cm_bind(struct stage *s, void *cmd)
{
	struct dapx_cm_bind *c = cmd;

	if (a_cm(s))
		return -1;
	c->cm = s->handle;
	set_addr(&c->addr, s->a.addr, 0);
	return 0;
}

static int for_cm_listen(struct stage *s, void *cmd)
{
	struct dapx_cm_listen *c = cmd;
	struct dapx_cm_bind bind = {};

	if (for_cm_bind(s, &bind))
		return -1;
	if (_test_cmd_cm_bind(s->a.fd, &bind))
		return because("DAPX_CM_BIND: %m");
	c->cm = s->handle;
	return 0;
}

static int for_cm_listen_reserved(struct stage *s, void *cmd)
{
	struct dapx_cm_listen *c = cmd;

	if (for_cm_listen(s, cmd) || an_ep(s))
		return -1;
	c->mode = DAPX_LISTEN_RESERVED;
	c->ep = s->ea.handle;
	return 0;
}

static int for_cm_resolve(struct stage *s, void *cmd)
{
	struct dapx_cm_resolve *c = cmd;

	if (a_cm(s))
		return -1;
	c->cm = s->handle;
	c->what = DAPX_RESOLVE_ADDR;
	c->deadline = in_ms(PATIENCE_MS);
	set_addr(&c->dst, s->b.addr, 7);
	set_addr(&c->src, s->a.addr, 0);
	return 0;
}

static int for_cm_query(struct stage *s, void *cmd)
{
	if (a_cm(s))
		return -1;
	((struct dapx_cm_query *)cmd)->cm = s->handle;
	return 0;
}

static int for_cm_reject(struct stage *s, void *cmd)
{
	if (a_request(s))
		return -1;
	((struct dapx_cm_reject *)cmd)->cm = s->request;
	return 0;
}

static int for_cm_modify(struct stage *s, void *cmd)
{
	struct dapx_cm_modify *c = cmd;

	if (a_cm(s))
		return -1;
	c->cm = s->handle;
	c->mask = DAPX_CM_MODIFY_TOS;
	return 0;
}

static int for_cm_take(struct stage *s, void *cmd)
{
	struct dapx_cm_take *c = cmd;

	if (a_request(s))
		return -1;
	c->cm = s->request;
	/* Whose events drain() acknowledges: the peer is about to give up. */
	c->evd = s->a.conn.handle;
	s->handle = s->request;
	return 0;
}

static int for_cm_ack(struct stage *s, void *cmd)
{
	struct dapx_cm_resolve resolve = {};

	drain(&s->a);
	if (for_cm_resolve(s, &resolve))
		return -1;
	if (_test_cmd_cm_resolve(s->a.fd, &resolve))
		return because("DAPX_CM_RESOLVE: %m");
	if (expect_cm(&s->a.conn, s->handle, DAPX_CM_ADDR_RESOLVED, NULL))
		return -1;
	((struct dapx_cm_ack *)cmd)->cm = s->handle;
	((struct dapx_cm_ack *)cmd)->events = 1;
	return 0;
}

/* Frees an endpoint, a listener ... in whatever state the try left it. */
static int for_free_connected(struct stage *s, void *cmd)
{
	if (connected(s))
		return -1;
	((struct dapx_free *)cmd)->handle = s->ea.handle;
	return 0;
}

static int for_rmr_create(struct stage *s, void *cmd)
{
	((struct dapx_rmr_create *)cmd)->pd = s->a.pd;
	return 0;
}

static int for_rmr_query(struct stage *s, void *cmd)
{
	struct dapx_rmr_create rmr = { .pd = s->a.pd };

	if (_test_cmd_rmr_create(s->a.fd, &rmr))
		return because("DAPX_RMR_CREATE: %m");
	s->handle = rmr.out_rmr;
	((struct dapx_rmr_query *)cmd)->rmr = rmr.out_rmr;
	((struct dapx_rmr_query *)cmd)->mask = RMR_FIELDS;
	return 0;
}

static int for_rmr_bind(struct stage *s, void *cmd)
{
	struct dapx_rmr_bind *c = cmd;
	struct dapx_rmr_query query = {};

	if (connected(s) || for_rmr_query(s, &query))
		return -1;
	c->rmr = query.rmr;
	c->ep = s->ea.handle;
	c->mr = s->a.mr;
	c->addr = (uintptr_t)s->a.mem + 1;
	c->length = 5000;
	c->access = DAPX_ACCESS_REMOTE_READ;
	return 0;
}

/* Exclusively: a domain that a try left over shows in the next one. */
static int for_xrcd_open(struct stage *s, void *cmd)
{
	struct dapx_xrcd_open *c = cmd;
	static int file = -1;

	if (file < 0)
		file = memfd_create("domain", MFD_CLOEXEC);
	c->fd = file;
	c->flags = DAPX_XRCD_CREATE | DAPX_XRCD_EXCL;
	return file < 0 ? because("memfd_create: %m") : 0;
}

/* Once: what hosts need for XRC. */
static int xrc_host(struct host *host)
{
	int file, ret;

	if (host->xrcd)
		return 0;
	file = memfd_create("domain", MFD_CLOEXEC);
	if (file < 0)
		return because("memfd_create: %m");
	ret = host_xrc(host, file);
	close(file);
	return ret;
}

static int for_mr_modify(struct stage *s, void *cmd)
{
	struct dapx_mr_modify *c = cmd;
	struct dapx_mr_create mr = {};

	for_mr_create(s, &mr);
	mr.access |= DAPX_ACCESS_REMOTE_READ;
	if (_test_cmd_mr_create(s->a.fd, &mr))
		return because("DAPX_MR_CREATE: %m");
	s->handle = mr.out_mr;
	c->mr = mr.out_mr;
	c->flags = DAPX_MR_XRC;
	return 0;
}

static int for_srq_create_xrc(struct stage *s, void *cmd)
{
	struct dapx_srq_create *c = cmd;

	if (xrc_host(&s->a))
		return -1;
	c->xrcd = s->a.xrcd;
	c->evd = s->a.recv.handle;
	return for_srq_create(s, cmd);
}

static int an_srq(struct stage *s, bool xrc)
{
	struct dapx_srq_create cmd = {};

	if (xrc ? for_srq_create_xrc(s, &cmd) : for_srq_create(s, &cmd))
		return -1;
	cmd.evd = s->a.conn.handle;
	if (_test_cmd_srq_create(s->a.fd, &cmd))
		return because("DAPX_SRQ_CREATE: %m");
	s->handle = cmd.out_srq;
	return 0;
}

static int for_srq_modify(struct stage *s, void *cmd)
{
	if (an_srq(s, false))
		return -1;
	((struct dapx_srq_modify *)cmd)->srq = s->handle;
	((struct dapx_srq_modify *)cmd)->limit = 3;
	return 0;
}

static int for_srq_modify_xrc(struct stage *s, void *cmd)
{
	if (an_srq(s, true))
		return -1;
	((struct dapx_srq_modify *)cmd)->srq = s->handle;
	((struct dapx_srq_modify *)cmd)->limit = 3;
	return 0;
}

static int for_srq_query(struct stage *s, void *cmd)
{
	if (an_srq(s, true))
		return -1;
	((struct dapx_srq_query *)cmd)->srq = s->handle;
	return 0;
}

static int for_srq_resize(struct stage *s, void *cmd)
{
	struct dapx_srq_resize *c = cmd;

	if (an_srq(s, false))
		return -1;
	c->srq = s->handle;
	c->depth = 64;
	return 0;
}

static int for_ep_create_xrc(struct stage *s, void *cmd)
{
	if (xrc_host(&s->a))
		return -1;
	xrc_usual(&s->a, cmd);
	return 0;
}

static int an_xrc_ep(struct stage *s)
{
	return xrc_host(&s->a) ? -1 : xrc_ep_create(&s->a, &s->ea);
}

static int for_ep_connect_xrc(struct stage *s, void *cmd)
{
	if (an_xrc_ep(s))
		return -1;
	connect_usual(&s->ea, &s->there, cmd);
	return 0;
}

/* Its receives are taken from then on. */
static int for_ep_modify_xrc(struct stage *s, void *cmd)
{
	struct dapx_ep_modify *c = cmd;

	if (an_xrc_ep(s))
		return -1;
	c->ep = s->ea.handle;
	c->mask = DAPX_EP_MODIFY_QP;
	c->qp.state = DAPX_QP_INIT;
	c->qp.port = 1;
	return 0;
}

static int an_xrc_qp(struct stage *s, __u32 *xrcd, __u32 *qp_num)
{
	struct dapx_xrc_qp_create cmd = { .evd = s->a.conn.handle };

	if (xrc_host(&s->a))
		return -1;
	cmd.xrcd = s->a.xrcd;
	if (_test_cmd_xrc_qp_create(s->a.fd, &cmd))
		return because("DAPX_XRC_QP_CREATE: %m");
	s->xrc_qp = cmd.out_xrc_qp;
	*xrcd = cmd.xrcd;
	*qp_num = cmd.out_qp_num;
	return 0;
}

/* The first of a new domain: with all that the domain's queue pairs share. */
static int for_xrc_qp_create(struct stage *s, void *cmd)
{
	struct dapx_xrcd_open xrcd = { .fd = -1, .flags = DAPX_XRCD_CREATE };
	struct dapx_xrc_qp_create *c = cmd;

	if (_test_cmd_xrcd_open(s->a.fd, &xrcd))
		return because("DAPX_XRCD_OPEN: %m");
	s->handle = xrcd.out_xrcd;
	c->xrcd = xrcd.out_xrcd;
	c->evd = s->a.conn.handle;
	return 0;
}

/* Another context has the queue pair, of a domain that both share. */
static int for_xrc_qp_register(struct stage *s, void *cmd)
{
	struct dapx_xrcd_open xrcd = { .flags = DAPX_XRCD_CREATE };
	struct dapx_xrc_qp_register *c = cmd;
	static __u32 qp_num;

	if (!s->other.device) {
		xrcd.fd = memfd_create("domain", MFD_CLOEXEC);
		if (host_open(&s->other, 0) || host_attach(&s->other))
			return -1;
		if (_test_cmd_xrcd_open(s->other.fd, &xrcd))
			return because("DAPX_XRCD_OPEN: %m");
		s->other.xrcd = xrcd.out_xrcd;
		if (xrc_qp_make(&s->other, &qp_num))
			return -1;
		if (_test_cmd_xrcd_open(s->a.fd, &xrcd))
			return because("DAPX_XRCD_OPEN: %m");
		s->a.xrcd = xrcd.out_xrcd;
		close(xrcd.fd);
	}
	c->xrcd = s->a.xrcd;
	c->qp_num = qp_num;
	c->evd = s->a.conn.handle;
	return 0;
}

/* When it has worked, there is nothing to be freed. */
static int for_xrc_qp_unregister(struct stage *s, void *cmd)
{
	struct dapx_xrc_qp_unregister *c = cmd;
	int ret = an_xrc_qp(s, &c->xrcd, &c->qp_num);

	s->xrc_qp = 0;
	return ret;
}

static int for_xrc_qp_disconnect(struct stage *s, void *cmd)
{
	struct dapx_xrc_qp_disconnect *c = cmd;
	struct dapx_xrc_qp_modify init = { .qp = { .state = DAPX_QP_INIT, .port = 1 } };

	if (an_xrc_qp(s, &init.xrcd, &init.qp_num))
		return -1;
	if (_test_cmd_xrc_qp_modify(s->a.fd, &init))
		return because("DAPX_XRC_QP_MODIFY to INIT: %m");
	c->xrcd = init.xrcd;
	c->qp_num = init.qp_num;
	return 0;
}

static int for_xrc_qp_modify(struct stage *s, void *cmd)
{
	struct dapx_xrc_qp_modify *c = cmd;

	c->qp.state = DAPX_QP_INIT;
	c->qp.port = 1;
	return an_xrc_qp(s, &c->xrcd, &c->qp_num);
}

static int for_xrc_qp_modify_rtr(struct stage *s, void *cmd)
{
	struct dapx_xrc_qp_modify *c = cmd;
	__u8 gid[16];

	if (for_xrc_qp_modify(s, cmd))
		return -1;
	if (_test_cmd_xrc_qp_modify(s->a.fd, c))
		return because("DAPX_XRC_QP_MODIFY to INIT: %m");
	c->qp.state = DAPX_QP_RTR;
	c->qp.dest_qp_num = 17;
	c->qp.path_mtu = 3;
	c->qp.hop_limit = 64;
	c->qp.max_dest_rd_atomic = 1;
	c->qp.sgid_index = host_gid_index(&s->a, gid);
	return host_gid_index(&s->b, c->qp.dgid) < 0 ? -1 : 0;
}

static int for_xrc_qp_accept(struct stage *s, void *cmd)
{
	struct dapx_xrc_qp_accept *c = cmd;
	struct dapx_event event;

	drain(&s->a);
	if (xrc_host(&s->b) || xrc_ep_create(&s->b, &s->eb) ||
	    an_xrc_qp(s, &c->xrcd, &c->qp_num) ||
	    listener_open(&s->a, &s->listener) ||
	    ep_connect(&s->eb, &s->listener) ||
	    listener_request(&s->listener, &event))
		return -1;
	s->request = event.request.cm;
	c->cm = s->request;
	return 0;
}

static int for_xrc_qp_query(struct stage *s, void *cmd)
{
	struct dapx_xrc_qp_query *c = cmd;

	return an_xrc_qp(s, &c->xrcd, &c->qp_num);
}

/* ---- the tests, once for each scene ---- */

FIXTURE(fail)
{
	struct stage s;
	struct nth nth;
	char before[512];
	__u8 cmd[1024];
	__u8 good[1024];
};

FIXTURE_VARIANT(fail)
{
	unsigned int request;
	size_t size;
	int (*base)(struct stage *s, void *cmd);
	/* Offset of the handle that it makes; 0 for none. */
	size_t made;
	bool on_bare_file;
	bool xrc;
	/* Nothing of XRC is there that would stay with the device. */
	bool fresh_device;
};

#define FAIL(name, upper, base_)					\
	{								\
		.request = DAPX_##upper,				\
		.size = sizeof(struct dapx_##name),			\
		.base = base_,						\
	}
#define FAIL_MAKING(name, upper, base_, out)				\
	{								\
		.request = DAPX_##upper,				\
		.size = sizeof(struct dapx_##name),			\
		.base = base_,						\
		.made = offsetof(struct dapx_##name, out),		\
	}
#define FAIL_XRC(name, upper, base_)					\
	{								\
		.request = DAPX_##upper,				\
		.size = sizeof(struct dapx_##name),			\
		.base = base_,						\
		.xrc = true,						\
	}
#define FAIL_XRC_MAKING(name, upper, base_, out)			\
	{								\
		.request = DAPX_##upper,				\
		.size = sizeof(struct dapx_##name),			\
		.base = base_,						\
		.made = offsetof(struct dapx_##name, out),		\
		.xrc = true,						\
	}

FIXTURE_VARIANT_ADD(fail, info) FAIL(info, INFO, nothing_needed);
FIXTURE_VARIANT_ADD(fail, attach)
{
	.request = DAPX_ATTACH,
	.size = sizeof(struct dapx_attach),
	.base = bare_file,
	.on_bare_file = true,
};

FIXTURE_VARIANT_ADD(fail, query_device)
	FAIL(query_device, QUERY_DEVICE, nothing_needed);
FIXTURE_VARIANT_ADD(fail, query_object)
	FAIL(query_object, QUERY_OBJECT, for_query_object);
FIXTURE_VARIANT_ADD(fail, free) FAIL(free, FREE, for_free);
FIXTURE_VARIANT_ADD(fail, free_connected)
	FAIL(free, FREE, for_free_connected);
FIXTURE_VARIANT_ADD(fail, doorbell) FAIL(doorbell, DOORBELL, for_doorbell);
FIXTURE_VARIANT_ADD(fail, pd_create)
	FAIL_MAKING(pd_create, PD_CREATE, nothing_needed, out_pd);
FIXTURE_VARIANT_ADD(fail, mr_create)
	FAIL_MAKING(mr_create, MR_CREATE, for_mr_create, out_mr);
FIXTURE_VARIANT_ADD(fail, evd_create)
	FAIL_MAKING(evd_create, EVD_CREATE, for_evd_create, out_evd);
FIXTURE_VARIANT_ADD(fail, evd_create_large)
	FAIL_MAKING(evd_create, EVD_CREATE, for_evd_create_large, out_evd);
FIXTURE_VARIANT_ADD(fail, evd_wait) FAIL(evd_wait, EVD_WAIT, for_evd_wait);
FIXTURE_VARIANT_ADD(fail, evd_resize)
	FAIL(evd_resize, EVD_RESIZE, for_evd_resize);
FIXTURE_VARIANT_ADD(fail, evd_eventfd)
	FAIL(evd_eventfd, EVD_EVENTFD, for_evd_eventfd);
FIXTURE_VARIANT_ADD(fail, evd_post) FAIL(evd_post, EVD_POST, for_evd_post);
FIXTURE_VARIANT_ADD(fail, srq_create)
	FAIL_MAKING(srq_create, SRQ_CREATE, for_srq_create, out_srq);
FIXTURE_VARIANT_ADD(fail, ep_create)
	FAIL_MAKING(ep_create, EP_CREATE, for_ep_create, out_ep);
FIXTURE_VARIANT_ADD(fail, ep_query) FAIL(ep_query, EP_QUERY, for_ep_query);
FIXTURE_VARIANT_ADD(fail, ep_modify)
	FAIL(ep_modify, EP_MODIFY, for_ep_modify);
FIXTURE_VARIANT_ADD(fail, ep_resize)
	FAIL(ep_resize, EP_RESIZE, for_ep_resize);
FIXTURE_VARIANT_ADD(fail, srq_resize)
	FAIL(srq_resize, SRQ_RESIZE, for_srq_resize);
FIXTURE_VARIANT_ADD(fail, ep_modify_init)
	FAIL(ep_modify, EP_MODIFY, for_ep_modify_init);
FIXTURE_VARIANT_ADD(fail, ep_modify_rtr)
	FAIL(ep_modify, EP_MODIFY, for_ep_modify_rtr);
FIXTURE_VARIANT_ADD(fail, ep_connect)
	FAIL(ep_connect, EP_CONNECT, for_ep_connect);
FIXTURE_VARIANT_ADD(fail, ep_accept)
	FAIL(ep_accept, EP_ACCEPT, for_ep_accept);
FIXTURE_VARIANT_ADD(fail, ep_establish)
	FAIL(ep_establish, EP_ESTABLISH, for_ep_establish);
FIXTURE_VARIANT_ADD(fail, ep_disconnect)
	FAIL(ep_disconnect, EP_DISCONNECT, for_ep_disconnect);
FIXTURE_VARIANT_ADD(fail, ep_reset) FAIL(ep_reset, EP_RESET, for_ep_reset);
FIXTURE_VARIANT_ADD(fail, cm_create)
	FAIL_MAKING(cm_create, CM_CREATE, for_cm_create, out_cm);
FIXTURE_VARIANT_ADD(fail, cm_bind) FAIL(cm_bind, CM_BIND, for_cm_bind);
FIXTURE_VARIANT_ADD(fail, cm_listen)
	FAIL(cm_listen, CM_LISTEN, for_cm_listen);
FIXTURE_VARIANT_ADD(fail, cm_listen_reserved)
	FAIL(cm_listen, CM_LISTEN, for_cm_listen_reserved);
FIXTURE_VARIANT_ADD(fail, cm_resolve)
	FAIL(cm_resolve, CM_RESOLVE, for_cm_resolve);
FIXTURE_VARIANT_ADD(fail, cm_query) FAIL(cm_query, CM_QUERY, for_cm_query);
FIXTURE_VARIANT_ADD(fail, cm_reject)
	FAIL(cm_reject, CM_REJECT, for_cm_reject);
FIXTURE_VARIANT_ADD(fail, cm_modify)
	FAIL(cm_modify, CM_MODIFY, for_cm_modify);
FIXTURE_VARIANT_ADD(fail, cm_take) FAIL(cm_take, CM_TAKE, for_cm_take);
FIXTURE_VARIANT_ADD(fail, cm_ack) FAIL(cm_ack, CM_ACK, for_cm_ack);
FIXTURE_VARIANT_ADD(fail, rmr_create)
	FAIL_MAKING(rmr_create, RMR_CREATE, for_rmr_create, out_rmr);
FIXTURE_VARIANT_ADD(fail, rmr_bind) FAIL(rmr_bind, RMR_BIND, for_rmr_bind);
FIXTURE_VARIANT_ADD(fail, rmr_query)
	FAIL(rmr_query, RMR_QUERY, for_rmr_query);
FIXTURE_VARIANT_ADD(fail, xrcd_open)
	FAIL_MAKING(xrcd_open, XRCD_OPEN, for_xrcd_open, out_xrcd);
FIXTURE_VARIANT_ADD(fail, mr_create_xrc)
	FAIL_XRC_MAKING(mr_create, MR_CREATE, for_mr_create_xrc, out_mr);
FIXTURE_VARIANT_ADD(fail, mr_modify)
	FAIL_XRC(mr_modify, MR_MODIFY, for_mr_modify);
FIXTURE_VARIANT_ADD(fail, srq_create_xrc)
	FAIL_XRC_MAKING(srq_create, SRQ_CREATE, for_srq_create_xrc, out_srq);
FIXTURE_VARIANT_ADD(fail, srq_modify)
	FAIL(srq_modify, SRQ_MODIFY, for_srq_modify);
FIXTURE_VARIANT_ADD(fail, srq_modify_xrc)
	FAIL_XRC(srq_modify, SRQ_MODIFY, for_srq_modify_xrc);
FIXTURE_VARIANT_ADD(fail, srq_query)
	FAIL_XRC(srq_query, SRQ_QUERY, for_srq_query);
FIXTURE_VARIANT_ADD(fail, ep_create_xrc)
{
	.request = DAPX_EP_CREATE,
	.size = sizeof(struct dapx_ep_create),
	.base = for_ep_create_xrc,
	.made = offsetof(struct dapx_ep_create, out_ep),
	.xrc = true,
	.fresh_device = true,
};

FIXTURE_VARIANT_ADD(fail, ep_connect_xrc)
	FAIL_XRC(ep_connect, EP_CONNECT, for_ep_connect_xrc);
FIXTURE_VARIANT_ADD(fail, ep_modify_xrc)
	FAIL_XRC(ep_modify, EP_MODIFY, for_ep_modify_xrc);
FIXTURE_VARIANT_ADD(fail, xrc_qp_create)
{
	.request = DAPX_XRC_QP_CREATE,
	.size = sizeof(struct dapx_xrc_qp_create),
	.base = for_xrc_qp_create,
	.made = offsetof(struct dapx_xrc_qp_create, out_xrc_qp),
	.xrc = true,
	.fresh_device = true,
};

FIXTURE_VARIANT_ADD(fail, xrc_qp_register)
	FAIL_XRC_MAKING(xrc_qp_register, XRC_QP_REGISTER, for_xrc_qp_register,
			out_xrc_qp);
FIXTURE_VARIANT_ADD(fail, xrc_qp_unregister)
	FAIL_XRC(xrc_qp_unregister, XRC_QP_UNREGISTER, for_xrc_qp_unregister);
FIXTURE_VARIANT_ADD(fail, xrc_qp_disconnect)
	FAIL_XRC(xrc_qp_disconnect, XRC_QP_DISCONNECT, for_xrc_qp_disconnect);
FIXTURE_VARIANT_ADD(fail, xrc_qp_modify)
	FAIL_XRC(xrc_qp_modify, XRC_QP_MODIFY, for_xrc_qp_modify);
FIXTURE_VARIANT_ADD(fail, xrc_qp_modify_rtr)
	FAIL_XRC(xrc_qp_modify, XRC_QP_MODIFY, for_xrc_qp_modify_rtr);
FIXTURE_VARIANT_ADD(fail, xrc_qp_accept)
	FAIL_XRC(xrc_qp_accept, XRC_QP_ACCEPT, for_xrc_qp_accept);
FIXTURE_VARIANT_ADD(fail, xrc_qp_query)
	FAIL_XRC(xrc_qp_query, XRC_QP_QUERY, for_xrc_qp_query);

/* What the first use of XRC makes stays until the device goes. */
static int use_xrc(unsigned int number)
{
	struct host host;
	struct ep ep;

	if (host_set_up(&host, number) || xrc_ep_create(&host, &ep))
		return -1;
	ep_forget(&ep);
	host_close(&host);
	return 0;
}

FIXTURE_SETUP(fail)
{
	if (nth_open(&self->nth))
		SKIP(return, "this kernel injects no faults: %s", why());
	OK(faults_limit_to_module());
	if (variant->xrc) {
		OK(use_xrc(0));
		OK(use_xrc(1));
	}
	OK(rdma_resources(self->before));
	OK(host_set_up(&self->s.a, 0));
	if (variant->fresh_device) {
		host_close(&self->s.a);
		ASSERT_EQ(0, device_remove(&self->s.a));
		ASSERT_EQ(0, device_add(&self->s.a));
		OK(host_set_up(&self->s.a, 0));
	}
	OK(host_set_up(&self->s.b, 1));
	OK(listener_open(&self->s.b, &self->s.there));
	if (on_siw() && (variant->request == DAPX_EP_MODIFY ||
			 variant->request == DAPX_XRC_QP_MODIFY))
		SKIP(return, "iWARP has no exchange of QP numbers");
}

FIXTURE_TEARDOWN(fail)
{
	host_close(&self->s.a);
	host_close(&self->s.b);
	if (self->s.other.device)
		host_close(&self->s.other);
	EXPECT_EQ(0, await_resources(self->before)) TH_LOG("%s", why());
}

/* Everything that is left of one try. */
static int strike(struct stage *s, bool bare)
{
	int ret = 0;

	if (s->ea.state) {
		struct dapx_free cmd = { .handle = s->ea.handle };

		/* The try may have freed it, or reserved it. */
		if (ep_state(&s->ea) == DAPX_EP_RESERVED) {
			ret = gone(s->a.fd, s->handle);
			s->handle = 0;
		}
		_test_cmd_free(s->a.fd, &cmd);
		ep_forget(&s->ea);
	}
	if (s->eb.state) {
		struct dapx_free cmd = { .handle = s->eb.handle };

		_test_cmd_free(s->b.fd, &cmd);
		ep_forget(&s->eb);
	}
	if (s->xrc_qp)
		ret |= gone(s->a.fd, s->xrc_qp);
	s->xrc_qp = 0;
	sched_yield();
	drain(&s->a);
	drain(&s->b);
	if (s->listener.cm) {
		ret |= gone(s->a.fd, s->listener.cm);
		memset(&s->listener, 0, sizeof(s->listener));
	}
	if (bare) {
		close(s->handle);
	} else if (s->handle) {
		struct dapx_free cmd = {
			.handle = s->handle, .flags = DAPX_FREE_NOWAIT,
		};
		__u64 deadline = in_ms(PATIENCE_MS);

		/* An id may still have an event to come. */
		while (_test_cmd_free(s->a.fd, &cmd) && errno == EBUSY) {
			drain(&s->a);
			if (now_ns() > deadline)
				return because("undoing: EBUSY for ever");
		}
	}
	s->handle = 0;
	s->request = 0;
	return ret;
}

TEST_F(fail, each)
{
	struct snapshot before, after;
	struct stage *s = &self->s;
	unsigned int failed = 0, survived = 0, n;
	__u32 made;
	bool hit = true;
	int fd, ret, error;

	for (n = 1; hit; n++) {
		ASSERT_GT(MOST, n);
		memset(self->cmd, 0, sizeof(self->cmd));
		OK(variant->base(s, self->cmd));
		*(__u32 *)self->cmd = variant->size;
		memcpy(self->good, self->cmd, sizeof(self->cmd));
		fd = variant->on_bare_file ? (int)s->handle : s->a.fd;
		OK(snapshot_take(fd, &before));

		self->nth.n = n;
		ASSERT_EQ(0, nth_arm(&self->nth));
		ret = ioctl(fd, variant->request, self->cmd);
		error = errno;
		hit = nth_disarm(&self->nth);

		if (ret) {
			ASSERT_TRUE(hit)
				TH_LOG("failure %u: %s, without a cause", n,
				       strerror(error));
			EXPECT_TRUE(error == ENOMEM || error == EFAULT ||
				    (error == ENOENT &&
				     variant->request == DAPX_FREE))
				TH_LOG("failure %u: %s", n, strerror(error));
			/* Whatever failed, nothing happened. */
			OK(snapshot_take(fd, &after));
			EXPECT_TRUE(snapshot_same(&before, &after))
				TH_LOG("failure %u (%s) changed %s", n,
				       strerror(error), why());
			/* And it can be had now. */
			failed++;
			ret = ioctl(fd, variant->request, self->good);
			EXPECT_EQ(0, ret)
				TH_LOG("after failure %u: %s", n,
				       strerror(errno));
			memcpy(self->cmd, self->good, sizeof(self->cmd));
		} else {
			free(before.data);
			survived += hit;
		}
		if (variant->made) {
			memcpy(&made, self->cmd + variant->made, sizeof(made));
			OK(gone(fd, made));
		}
		OK(strike(s, variant->on_bare_file));
	}
	TH_LOG("%u failures reported, %u without effect", failed, survived);
	/* The connection that a message needs can still be made. */
	OK(connected(s));
	OK(ep_exchange(&s->ea, &s->eb));
	OK(strike(s, false));
}

/* ---- the file itself ---- */

TEST(open_and_close)
{
	struct nth nth = {};
	unsigned int failed = 0;
	bool hit = true;
	int fd;

	if (nth_open(&nth))
		SKIP(return, "this kernel injects no faults: %s", why());
	OK(faults_limit_to_module());
	for (nth.n = 1; hit; nth.n++) {
		ASSERT_GT(MOST, nth.n);
		ASSERT_EQ(0, nth_arm(&nth));
		fd = open(DAPX_NODE, O_RDWR | O_CLOEXEC);
		hit = nth_disarm(&nth);
		if (fd < 0) {
			EXPECT_TRUE(hit);
			failed++;
		} else {
			close(fd);
		}
	}
	TH_LOG("%u failures", failed);
}

TEST_HARNESS_MAIN
