// SPDX-License-Identifier: GPL-2.0
/*
 * Every command, with everything wrong in turn: the length of its struct, the
 * memory that holds it, and each of its members. A scene is a call that would
 * succeed; each test spoils one thing about it, expects the errno of the
 * contract, and compares all objects before and after. In the end the same call
 * is made unspoilt and must succeed: so it was the one thing that was refused.
 *
 * check-abi-coverage reads this file: each command needs a scene of its name,
 * and each member of its struct a row of REJECT...() or ANY(). fuzz/scenes.c
 * includes it, for the scenes alone.
 */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/machine.h"
#include "harness/snapshot.h"
#include "harness/xrc.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 300

struct world {
	struct host a;			/* gives the commands under test */
	struct host b;			/* its peer */
	int fd;
	struct dapx_info info;
	__u32 stale;			/* a handle that was freed */
	__u32 idle_cm;			/* a CM id without an address */
	struct ep spare[4];
	unsigned int spares;
	struct host ear;		/* a, with an EVD for listeners only */
	struct host other;		/* another context of a's device, if it is open */
};

/* ---- what can be wrong with a member ---- */

enum reject_kind {
	REJECT_VALUE,
	REJECT_EACH_BYTE,		/* must be zero: each byte set in turn */
	REJECT_EACH_BIT,		/* each bit out of @value in turn */
	REJECT_BAD_HANDLE,
	REJECT_ABOVE_DEVICE,		/* one more than a limit of the device */
	REJECT_ABOVE_MODULE,		/* one more than a limit of the module */
	REJECT_CHANGED,			/* by @change */
	REJECT_NOTHING,			/* any value is good */
	REJECT_NEVER,
};

struct reject {
	const char *member;
	enum reject_kind kind;
	size_t offset;
	size_t size;
	int error;
	__u64 value;
	void (*change)(struct world *w, void *cmd);
};

#define MEMBER(name, m)							\
	.member = #m, .offset = offsetof(struct dapx_##name, m),	\
	.size = sizeof_member(struct dapx_##name, m)

#define REJECT(name, m, wrong, errno_)					\
	{ MEMBER(name, m), .kind = REJECT_VALUE, .value = (wrong),	\
	  .error = (errno_) }
/* Reserved, or of no use here: must be zero. */
#define REJECT_BYTES(name, m)						\
	{ MEMBER(name, m), .kind = REJECT_EACH_BYTE, .error = EINVAL }
#define REJECT_FLAGS(name, m, known)					\
	{ MEMBER(name, m), .kind = REJECT_EACH_BIT, .value = ~(known),	\
	  .error = EOPNOTSUPP }
/* No handle, one that was freed, one of another class, and 0. */
#define REJECT_HANDLE(name, m)						\
	{ MEMBER(name, m), .kind = REJECT_BAD_HANDLE, .value = 1,	\
	  .error = ENOENT }
/* The same where 0 stands for none. */
#define REJECT_OPTIONAL_HANDLE(name, m)					\
	{ MEMBER(name, m), .kind = REJECT_BAD_HANDLE, .error = ENOENT }
#define REJECT_OVER(name, m, limit)					\
	{ MEMBER(name, m), .kind = REJECT_ABOVE_DEVICE, .error = EINVAL,\
	  .value = offsetof(struct dapx_query_device, limit) |		\
		   sizeof_member(struct dapx_query_device, limit) << 32 }
#define REJECT_OVER_MODULE(name, m, limit)				\
	{ MEMBER(name, m), .kind = REJECT_ABOVE_MODULE, .error = EINVAL,\
	  .value = offsetof(struct dapx_info, limit) }
#define REJECT_BY(name, m, change_, errno_)				\
	{ MEMBER(name, m), .kind = REJECT_CHANGED, .change = (change_),	\
	  .error = (errno_) }
/* Filled with ones in the call that must succeed. */
#define ANY(name, m)							\
	{ MEMBER(name, m), .kind = REJECT_NOTHING }
/* Has good and bad values that only the network knows. */
#define UNKNOWABLE(name, m)						\
	{ MEMBER(name, m), .kind = REJECT_NEVER }

/* ---- scenes ---- */

static struct ep *spare_ep(struct world *w, struct host *host)
{
	struct ep *ep = &w->spare[w->spares++ % 4];

	ep_forget(ep);
	return ep_create(host, ep) ? NULL : ep;
}

static struct ep *spare_xrc_ep(struct world *w, struct host *host)
{
	struct ep *ep = &w->spare[w->spares++ % 4];

	ep_forget(ep);
	return xrc_ep_create(host, ep) ? NULL : ep;
}

/* What is left of earlier scenes goes to the old ones. */
static int fresh_evds(struct world *w)
{
	ring_unmap(&w->a.conn.ring);
	ring_unmap(&w->b.conn.ring);
	ring_unmap(&w->ear.conn.ring);
	if (evd_make(w->a.fd, 8, 0, &w->a.conn) ||
	    evd_make(w->b.fd, 8, 0, &w->b.conn))
		return -1;
	w->ear = w->a;
	return evd_make(w->a.fd, 8, 0, &w->ear.conn);
}

/* A request of b that waits at a. */
static int pending_request(struct world *w, __u32 *request)
{
	struct listener listener;
	struct dapx_event event;
	struct ep *ep;

	if (fresh_evds(w))
		return -1;
	ep = spare_ep(w, &w->b);
	if (!ep || listener_open(&w->ear, &listener) ||
	    ep_connect(ep, &listener) || listener_request(&listener, &event))
		return -1;
	*request = event.request.cm;
	return 0;
}

/* The same, of an XRC endpoint. */
static int pending_xrc_request(struct world *w, const struct dapx_cm_listen *mode,
			       __u32 *request)
{
	struct listener listener;
	struct dapx_event event;
	struct ep *ep;

	if (fresh_evds(w))
		return -1;
	ep = spare_xrc_ep(w, &w->b);
	if (!ep || listener_open_as(&w->ear, mode, &listener) ||
	    ep_connect(ep, &listener) || listener_request(&listener, &event))
		return -1;
	*request = event.request.cm;
	return 0;
}

static int open_domain(struct host *host, int file)
{
	struct dapx_xrcd_open cmd = { .fd = file, .flags = DAPX_XRCD_CREATE };

	if (_test_cmd_xrcd_open(host->fd, &cmd))
		return because("DAPX_XRCD_OPEN: %m");
	host->xrcd = cmd.out_xrcd;
	return 0;
}

/* Once: a domain of a and of another context. */
static int share_domain(struct world *w)
{
	int file, ret;

	if (w->a.xrcd)
		return 0;
	file = memfd_create("domain", MFD_CLOEXEC);
	if (file < 0)
		return because("memfd_create: %m");
	ret = host_open(&w->other, 0) || host_attach(&w->other) ||
	      open_domain(&w->other, file) || open_domain(&w->a, file) ? -1 : 0;
	close(file);
	return ret;
}

static int new_cm(struct world *w, __u32 *cm)
{
	struct dapx_cm_create cmd = { .evd = w->a.conn.handle };

	if (_test_cmd_cm_create(w->a.fd, &cmd))
		return because("DAPX_CM_CREATE: %m");
	*cm = cmd.out_cm;
	return 0;
}

static int bound_cm(struct world *w, __u32 *cm)
{
	struct dapx_cm_bind cmd = {};

	if (new_cm(w, cm))
		return -1;
	cmd.cm = *cm;
	set_addr(&cmd.addr, w->a.addr, 0);
	if (_test_cmd_cm_bind(w->a.fd, &cmd))
		return because("DAPX_CM_BIND: %m");
	return 0;
}

static int resolving(struct world *w, __u32 *cm, __u16 port)
{
	struct dapx_cm_resolve cmd = {
		.what = DAPX_RESOLVE_ADDR,
		.deadline = in_ms(PATIENCE_MS),
	};

	if (fresh_evds(w) || new_cm(w, cm))
		return -1;
	cmd.cm = *cm;
	set_addr(&cmd.dst, w->b.addr, port);
	set_addr(&cmd.src, w->a.addr, 0);
	if (_test_cmd_cm_resolve(w->a.fd, &cmd))
		return because("DAPX_CM_RESOLVE: %m");
	return expect_cm(&w->a.conn, *cm, DAPX_CM_ADDR_RESOLVED, NULL);
}

static int info(struct world *w, void *cmd)
{
	return 0;
}

static const struct reject rejects_info[] = {
	REJECT_FLAGS(info, flags, 0ULL),
	{}
};

static int attach(struct world *w, void *cmd)
{
	struct dapx_attach *c = cmd;

	if (w->fd != w->a.fd)
		close(w->fd);
	w->fd = open(DAPX_NODE, O_RDWR | O_CLOEXEC);
	if (w->fd < 0)
		return because(DAPX_NODE ": %m");
	snprintf(c->device, sizeof(c->device), "%s", w->a.device);
	return 0;
}

static void device_without_end(struct world *w, void *cmd)
{
	struct dapx_attach *c = cmd;

	memset(c->device, 'r', sizeof(c->device));
}

static void device_unknown(struct world *w, void *cmd)
{
	struct dapx_attach *c = cmd;

	snprintf(c->device, sizeof(c->device), "no_such_device");
}

static void device_nameless(struct world *w, void *cmd)
{
	struct dapx_attach *c = cmd;

	c->device[0] = 0;
}

static const struct reject rejects_attach[] = {
	REJECT_FLAGS(attach, flags, 0ULL),
	REJECT_BY(attach, device, device_without_end, EINVAL),
	REJECT_BY(attach, device, device_unknown, ENODEV),
	REJECT_BY(attach, device, device_nameless, EINVAL),
	{}
};

static int query_device(struct world *w, void *cmd)
{
	return 0;
}

static const struct reject rejects_query_device[] = {
	REJECT_FLAGS(query_device, flags, 0ULL),
	REJECT_BYTES(query_device, __reserved),
	{}
};

static int query_object(struct world *w, void *cmd)
{
	struct dapx_query_object *c = cmd;

	c->handle = w->a.pd;
	c->type = DAPX_OBJECT_PD;
	return 0;
}

static const struct reject rejects_query_object[] = {
	REJECT_FLAGS(query_object, flags, 1ULL),
	REJECT_HANDLE(query_object, handle),
	REJECT(query_object, type, DAPX_OBJECT_MR, ENOENT),
	REJECT(query_object, type, DAPX_OBJECT_XRC_QP + 1, EINVAL),
	REJECT(query_object, type, ~0U, EINVAL),
	{}
};

static int free_object(struct world *w, void *cmd)
{
	struct dapx_pd_create pd = {};
	struct dapx_free *c = cmd;

	if (_test_cmd_pd_create(w->fd, &pd))
		return because("DAPX_PD_CREATE: %m");
	c->handle = pd.out_pd;
	c->type = DAPX_OBJECT_PD;
	return 0;
}

static const struct reject rejects_free[] = {
	REJECT_FLAGS(free, flags, 3ULL),
	REJECT_HANDLE(free, handle),
	REJECT(free, type, DAPX_OBJECT_EVD, ENOENT),
	REJECT(free, type, DAPX_OBJECT_XRC_QP + 1, EINVAL),
	REJECT(free, type, ~0U, EINVAL),
	{}
};

static int doorbell(struct world *w, void *cmd)
{
	struct dapx_doorbell *c = cmd;

	c->handle = w->a.done.handle;
	c->flags = DAPX_DOORBELL_EVENTS;
	return 0;
}

static const struct reject rejects_doorbell[] = {
	REJECT_FLAGS(doorbell, flags, 7ULL),
	REJECT(doorbell, flags, 0, EINVAL),
	REJECT(doorbell, flags, DAPX_DOORBELL_SEND, EINVAL),
	REJECT(doorbell, flags, DAPX_DOORBELL_RECV, EINVAL),
	REJECT(doorbell, flags, DAPX_DOORBELL_RECV | DAPX_DOORBELL_EVENTS, EINVAL),
	REJECT_HANDLE(doorbell, handle),
	REJECT_BYTES(doorbell, __reserved),
	{}
};

static int doorbell_ep(struct world *w, void *cmd)
{
	struct dapx_doorbell *c = cmd;
	struct ep *ep = spare_ep(w, &w->a);

	if (!ep)
		return -1;
	c->handle = ep->handle;
	c->flags = DAPX_DOORBELL_RECV;
	return 0;
}

static const struct reject rejects_doorbell_ep[] = {
	REJECT(doorbell, flags, DAPX_DOORBELL_EVENTS, EINVAL),
	REJECT(doorbell, flags, DAPX_DOORBELL_RECV | DAPX_DOORBELL_EVENTS, EINVAL),
	REJECT(doorbell, flags, DAPX_DOORBELL_SEND, EBADFD),
	{}
};

static int doorbell_srq(struct world *w, void *cmd)
{
	struct dapx_doorbell *c = cmd;
	struct srq srq;

	if (srq_make(&w->a, 4, 1, &srq))
		return -1;
	c->handle = srq.handle;
	c->flags = DAPX_DOORBELL_RECV;
	return 0;
}

static const struct reject rejects_doorbell_srq[] = {
	REJECT(doorbell, flags, DAPX_DOORBELL_EVENTS, EINVAL),
	REJECT(doorbell, flags, DAPX_DOORBELL_SEND, EINVAL),
	{}
};

static int pd_create(struct world *w, void *cmd)
{
	return 0;
}

static const struct reject rejects_pd_create[] = {
	REJECT_FLAGS(pd_create, flags, 0ULL),
	REJECT_BYTES(pd_create, __reserved),
	ANY(pd_create, user_data),
	{}
};

static int mr_create(struct world *w, void *cmd)
{
	struct dapx_mr_create *c = cmd;

	c->pd = w->a.pd;
	c->access = DAPX_ACCESS_LOCAL_WRITE;
	c->addr = (uintptr_t)w->a.mem;
	c->length = HOST_MEMORY;
	return 0;
}

static void addr_unmapped(struct world *w, void *cmd)
{
	struct dapx_mr_create *c = cmd;
	void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	munmap(page, 4096);
	c->addr = (uintptr_t)page;
	c->length = 4096;
}

static const struct reject rejects_mr_create[] = {
	REJECT_FLAGS(mr_create, flags, 1ULL),
	REJECT_HANDLE(mr_create, pd),
	REJECT_FLAGS(mr_create, access, 15ULL),
	REJECT(mr_create, access, DAPX_ACCESS_REMOTE_WRITE, EINVAL),
	REJECT(mr_create, access, DAPX_ACCESS_REMOTE_ATOMIC, EINVAL),
	REJECT(mr_create, addr, ~0ULL - 4095, EOVERFLOW),
	REJECT_BY(mr_create, addr, addr_unmapped, EFAULT),
	REJECT(mr_create, length, 0, EINVAL),
	REJECT(mr_create, length, ~0ULL, EOVERFLOW),
	ANY(mr_create, user_data),
	{}
};

static int mr_create_xrc(struct world *w, void *cmd)
{
	struct dapx_mr_create *c = cmd;

	c->flags = DAPX_MR_XRC;
	return mr_create(w, cmd);
}

static const struct reject rejects_mr_create_xrc[] = {
	REJECT_FLAGS(mr_create, access, 15ULL),
	REJECT(mr_create, access, DAPX_ACCESS_REMOTE_WRITE, EINVAL),
	REJECT(mr_create, access, DAPX_ACCESS_REMOTE_ATOMIC, EINVAL),
	REJECT(mr_create, addr, ~0ULL - 4095, EOVERFLOW),
	REJECT_BY(mr_create, addr, addr_unmapped, EFAULT),
	REJECT(mr_create, length, 0, EINVAL),
	{}
};

static int mr_modify(struct world *w, void *cmd)
{
	struct dapx_mr_create mr = {};
	struct dapx_mr_modify *c = cmd;

	mr_create(w, &mr);
	if (_test_cmd_mr_create(w->a.fd, &mr))
		return because("DAPX_MR_CREATE: %m");
	c->mr = mr.out_mr;
	c->flags = DAPX_MR_XRC;
	return 0;
}

static const struct reject rejects_mr_modify[] = {
	REJECT_FLAGS(mr_modify, flags, 1ULL),
	REJECT(mr_modify, flags, 0, EINVAL),
	REJECT_HANDLE(mr_modify, mr),
	REJECT_BYTES(mr_modify, __reserved),
	{}
};

static int evd_create(struct world *w, void *cmd)
{
	struct dapx_evd_create *c = cmd;

	c->depth = 8;
	return 0;
}

static const struct reject rejects_evd_create[] = {
	REJECT_FLAGS(evd_create, flags, 1ULL),
	REJECT(evd_create, depth, 0, EINVAL),
	REJECT(evd_create, depth, ~0U, EINVAL),
	REJECT_OVER_MODULE(evd_create, depth, out_max_ring_depth),
	REJECT_BYTES(evd_create, __reserved),
	REJECT_BYTES(evd_create, __reserved2),
	ANY(evd_create, user_data),
	{}
};

static int evd_wait(struct world *w, void *cmd)
{
	struct dapx_evd_post post = { .evd = w->a.done.handle };
	struct dapx_evd_wait *c = cmd;

	if (_test_cmd_evd_post(w->fd, &post))
		return because("DAPX_EVD_POST: %m");
	c->evd = w->a.done.handle;
	c->threshold = 1;
	return 0;
}

static void threshold_solicited(struct world *w, void *cmd)
{
	struct dapx_evd_wait *c = cmd;

	c->flags = DAPX_WAIT_SOLICITED;
	c->threshold = 2;
}

static void threshold_above_depth(struct world *w, void *cmd)
{
	struct dapx_evd_wait *c = cmd;

	c->threshold = w->a.done.ring.depth + 1;
}

static const struct reject rejects_evd_wait[] = {
	REJECT_FLAGS(evd_wait, flags, 1ULL),
	REJECT_HANDLE(evd_wait, evd),
	REJECT(evd_wait, threshold, 0, EINVAL),
	REJECT(evd_wait, threshold, ~0U, EINVAL),
	REJECT_BY(evd_wait, threshold, threshold_above_depth, EINVAL),
	REJECT_BY(evd_wait, threshold, threshold_solicited, EINVAL),
	REJECT_BYTES(evd_wait, __reserved),
	ANY(evd_wait, deadline),
	{}
};

static int evd_resize(struct world *w, void *cmd)
{
	struct dapx_evd_post post = { .evd = w->a.recv.handle };
	struct dapx_evd_resize *c = cmd;
	unsigned int i;

	for (i = 0; i < 3; i++)
		if (_test_cmd_evd_post(w->fd, &post))
			return because("DAPX_EVD_POST: %m");
	c->evd = w->a.recv.handle;
	c->depth = 512;
	return 0;
}

static const struct reject rejects_evd_resize[] = {
	REJECT_FLAGS(evd_resize, flags, 0ULL),
	REJECT_HANDLE(evd_resize, evd),
	REJECT(evd_resize, depth, 0, EINVAL),
	REJECT(evd_resize, depth, ~0U, EINVAL),
	REJECT(evd_resize, depth, 2, EBUSY),
	REJECT_OVER_MODULE(evd_resize, depth, out_max_ring_depth),
	{}
};

static int evd_eventfd(struct world *w, void *cmd)
{
	struct dapx_evd_eventfd *c = cmd;

	c->evd = w->a.done.handle;
	c->fd = -1;
	return 0;
}

static void fd_no_eventfd(struct world *w, void *cmd)
{
	struct dapx_evd_eventfd *c = cmd;

	c->fd = w->a.fd;
}

static const struct reject rejects_evd_eventfd[] = {
	REJECT_FLAGS(evd_eventfd, flags, 1ULL),
	REJECT_HANDLE(evd_eventfd, evd),
	REJECT(evd_eventfd, fd, -2U, EINVAL),
	REJECT(evd_eventfd, fd, 1000000, EINVAL),
	REJECT_BY(evd_eventfd, fd, fd_no_eventfd, EINVAL),
	{}
};

static int evd_post(struct world *w, void *cmd)
{
	struct dapx_evd_post *c = cmd;

	c->evd = w->a.done.handle;
	return 0;
}

static const struct reject rejects_evd_post[] = {
	REJECT_FLAGS(evd_post, flags, 0ULL),
	REJECT_HANDLE(evd_post, evd),
	REJECT_BYTES(evd_post, __reserved),
	ANY(evd_post, data),
	{}
};

static int srq_create(struct world *w, void *cmd)
{
	struct dapx_srq_create *c = cmd;

	c->pd = w->a.pd;
	c->depth = 8;
	c->max_sge = 2;
	return 0;
}

static const struct reject rejects_srq_create[] = {
	REJECT_FLAGS(srq_create, flags, 0ULL),
	REJECT_HANDLE(srq_create, pd),
	REJECT(srq_create, depth, 0, EINVAL),
	REJECT(srq_create, depth, ~0U, EINVAL),
	REJECT_OVER(srq_create, depth, out_max_srq_depth),
	REJECT(srq_create, max_sge, 0, EINVAL),
	REJECT(srq_create, max_sge, ~0U, EINVAL),
	REJECT_OVER(srq_create, max_sge, out_max_recv_sge),
	REJECT_OPTIONAL_HANDLE(srq_create, xrcd),
	REJECT_OPTIONAL_HANDLE(srq_create, evd),
	REJECT_OPTIONAL_HANDLE(srq_create, async_evd),
	ANY(srq_create, user_data),
	{}
};

static int srq_create_xrc(struct world *w, void *cmd)
{
	struct dapx_srq_create *c = cmd;

	if (share_domain(w) || srq_create(w, cmd))
		return -1;
	c->xrcd = w->a.xrcd;
	c->evd = w->a.recv.handle;
	return 0;
}

static const struct reject rejects_srq_create_xrc[] = {
	REJECT_HANDLE(srq_create, pd),
	REJECT(srq_create, depth, 0, EINVAL),
	REJECT(srq_create, depth, ~0U, EINVAL),
	REJECT_OVER_MODULE(srq_create, depth, out_max_ring_depth),
	REJECT(srq_create, max_sge, 0, EINVAL),
	REJECT(srq_create, max_sge, ~0U, EINVAL),
	REJECT_OVER_MODULE(srq_create, max_sge, out_max_sge),
	REJECT_OPTIONAL_HANDLE(srq_create, xrcd),
	REJECT_OPTIONAL_HANDLE(srq_create, evd),
	REJECT(srq_create, evd, 0, EINVAL),
	REJECT_OPTIONAL_HANDLE(srq_create, async_evd),
	ANY(srq_create, user_data),
	{}
};

/* Of 8 receives. */
static int new_srq(struct world *w, bool xrc, __u32 evd, __u32 *srq)
{
	struct dapx_srq_create cmd = {};

	if (xrc ? srq_create_xrc(w, &cmd) : srq_create(w, &cmd))
		return -1;
	cmd.evd = evd;
	if (_test_cmd_srq_create(w->a.fd, &cmd))
		return because("DAPX_SRQ_CREATE: %m");
	*srq = cmd.out_srq;
	return 0;
}

static int srq_modify(struct world *w, void *cmd)
{
	struct dapx_srq_modify *c = cmd;

	c->limit = 3;
	return new_srq(w, false, w->a.conn.handle, &c->srq);
}

static void srq_without_evd(struct world *w, void *cmd)
{
	struct dapx_srq_modify *c = cmd;

	new_srq(w, false, 0, &c->srq);
}

static const struct reject rejects_srq_modify[] = {
	REJECT_FLAGS(srq_modify, flags, 0ULL),
	REJECT_HANDLE(srq_modify, srq),
	REJECT_BY(srq_modify, srq, srq_without_evd, EBADFD),
	REJECT(srq_modify, limit, 9, EINVAL),
	REJECT(srq_modify, limit, ~0U, EINVAL),
	{}
};

/* As many as there can be are not too many. */
static int srq_modify_xrc(struct world *w, void *cmd)
{
	struct dapx_srq_modify *c = cmd;

	c->limit = 8;
	return new_srq(w, true, w->a.conn.handle, &c->srq);
}

static const struct reject rejects_srq_modify_xrc[] = {
	REJECT_HANDLE(srq_modify, srq),
	REJECT(srq_modify, limit, 9, EINVAL),
	REJECT(srq_modify, limit, ~0U, EINVAL),
	{}
};

static int srq_query(struct world *w, void *cmd)
{
	struct dapx_srq_query *c = cmd;

	return new_srq(w, true, w->a.conn.handle, &c->srq);
}

static const struct reject rejects_srq_query[] = {
	REJECT_FLAGS(srq_query, flags, 0ULL),
	REJECT_HANDLE(srq_query, srq),
	REJECT_BYTES(srq_query, __reserved),
	{}
};

static int srq_resize_scene(struct world *w, void *cmd)
{
	struct dapx_srq_resize *c = cmd;

	c->depth = 64;
	return new_srq(w, false, 0, &c->srq);
}

static const struct reject rejects_srq_resize[] = {
	REJECT_FLAGS(srq_resize, flags, 0ULL),
	REJECT_HANDLE(srq_resize, srq),
	REJECT(srq_resize, depth, 0, EINVAL),
	REJECT(srq_resize, depth, ~0U, EINVAL),
	REJECT_OVER_MODULE(srq_resize, depth, out_max_ring_depth),
	{}
};

static int ep_create_base(struct world *w, void *cmd)
{
	ep_usual(&w->a, cmd);
	return 0;
}

static void ep_xrcd_of_plain(struct world *w, void *cmd)
{
	struct dapx_ep_create *c = cmd;

	share_domain(w);
	c->xrcd = w->a.xrcd;
}

static const struct reject rejects_ep_create[] = {
	REJECT_FLAGS(ep_create, flags, 0ULL),
	REJECT_HANDLE(ep_create, pd),
	REJECT_HANDLE(ep_create, request_evd),
	REJECT_OPTIONAL_HANDLE(ep_create, recv_evd),
	REJECT_OPTIONAL_HANDLE(ep_create, connect_evd),
	REJECT_OPTIONAL_HANDLE(ep_create, async_evd),
	REJECT_BY(ep_create, xrcd, ep_xrcd_of_plain, EINVAL),
	ANY(ep_create, user_data),
	REJECT_FLAGS(ep_create, attr.flags, 7ULL),
	/* It has receives. */
	REJECT(ep_create, attr.flags, DAPX_EP_XRC, EINVAL),
	REJECT(ep_create, attr.send_depth, 0, EINVAL),
	REJECT(ep_create, attr.send_depth, ~0U, EINVAL),
	REJECT_OVER(ep_create, attr.send_depth, out_max_send_depth),
	REJECT(ep_create, attr.recv_depth, ~0U, EINVAL),
	REJECT_OVER(ep_create, attr.recv_depth, out_max_recv_depth),
	REJECT(ep_create, attr.max_send_sge, 0, EINVAL),
	REJECT_OVER(ep_create, attr.max_send_sge, out_max_send_sge),
	REJECT(ep_create, attr.max_recv_sge, 0, EINVAL),
	REJECT_OVER(ep_create, attr.max_recv_sge, out_max_recv_sge),
	REJECT(ep_create, attr.max_inline, ~0U, EINVAL),
	REJECT_OVER(ep_create, attr.max_inline, out_max_inline),
	REJECT_OVER(ep_create, attr.max_rd_atomic, out_max_rd_atomic),
	REJECT_OVER(ep_create, attr.max_dest_rd_atomic, out_max_dest_rd_atomic),
	{}
};

static int ep_create_srq(struct world *w, void *cmd)
{
	struct dapx_ep_create *c = cmd;
	struct srq srq;

	ep_usual(&w->a, cmd);
	c->attr.recv_depth = 0;
	c->attr.max_recv_sge = 0;
	if (srq_make(&w->a, 8, 1, &srq))
		return -1;
	c->srq = srq.handle;
	return 0;
}

static void ep_srq_of_xrc(struct world *w, void *cmd)
{
	struct dapx_ep_create *c = cmd;

	new_srq(w, true, w->a.recv.handle, &c->srq);
}

static const struct reject rejects_ep_create_srq[] = {
	REJECT_OPTIONAL_HANDLE(ep_create, srq),
	REJECT_BY(ep_create, srq, ep_srq_of_xrc, EINVAL),
	REJECT(ep_create, recv_evd, 0, EINVAL),
	REJECT(ep_create, attr.recv_depth, 8, EINVAL),
	{}
};

static int ep_create_xrc(struct world *w, void *cmd)
{
	if (share_domain(w))
		return -1;
	xrc_usual(&w->a, cmd);
	return 0;
}

static void xrc_ep_with_srq(struct world *w, void *cmd)
{
	struct dapx_ep_create *c = cmd;

	new_srq(w, false, 0, &c->srq);
	c->recv_evd = w->a.recv.handle;
}

static void xrc_ep_solicited(struct world *w, void *cmd)
{
	struct dapx_ep_create *c = cmd;

	/* Elsewhere it is the device that does not have it. */
	if (w->a.limits.out_caps & DAPX_DEVICE_SOLICITED)
		c->attr.flags |= DAPX_EP_SOLICITED;
	else
		c->attr.recv_depth = 8;
}

static const struct reject rejects_ep_create_xrc[] = {
	REJECT_HANDLE(ep_create, pd),
	REJECT_OPTIONAL_HANDLE(ep_create, srq),
	REJECT_BY(ep_create, srq, xrc_ep_with_srq, EINVAL),
	REJECT_HANDLE(ep_create, request_evd),
	REJECT_OPTIONAL_HANDLE(ep_create, recv_evd),
	REJECT_OPTIONAL_HANDLE(ep_create, connect_evd),
	REJECT_OPTIONAL_HANDLE(ep_create, async_evd),
	REJECT_OPTIONAL_HANDLE(ep_create, xrcd),
	REJECT_FLAGS(ep_create, attr.flags, 7ULL),
	REJECT_BY(ep_create, attr.flags, xrc_ep_solicited, EINVAL),
	REJECT(ep_create, attr.send_depth, 0, EINVAL),
	REJECT_OVER(ep_create, attr.send_depth, out_max_send_depth),
	REJECT(ep_create, attr.recv_depth, 8, EINVAL),
	REJECT(ep_create, attr.max_send_sge, 0, EINVAL),
	REJECT_OVER(ep_create, attr.max_send_sge, out_max_send_sge),
	REJECT_OVER(ep_create, attr.max_inline, out_max_inline),
	{}
};

static int ep_query(struct world *w, void *cmd)
{
	struct dapx_ep_query *c = cmd;
	struct ep *ep = spare_ep(w, &w->a);

	if (!ep)
		return -1;
	c->ep = ep->handle;
	return 0;
}

static const struct reject rejects_ep_query[] = {
	REJECT_FLAGS(ep_query, flags, 0ULL),
	REJECT_HANDLE(ep_query, ep),
	{}
};

static int ep_resize_scene(struct world *w, void *cmd)
{
	struct dapx_ep_resize *c = cmd;
	struct ep *ep = spare_ep(w, &w->a);

	if (!ep)
		return -1;
	c->ep = ep->handle;
	c->attr = ep->attr;
	c->attr.recv_depth = 8;
	return 0;
}

static void resize_of_xrc(struct world *w, void *cmd)
{
	struct dapx_ep_resize *c = cmd;
	struct ep *ep;

	share_domain(w);
	ep = spare_xrc_ep(w, &w->a);
	if (ep)
		c->ep = ep->handle;
}

static const struct reject rejects_ep_resize[] = {
	REJECT_FLAGS(ep_resize, flags, 0ULL),
	REJECT_HANDLE(ep_resize, ep),
	REJECT_BY(ep_resize, ep, resize_of_xrc, EOPNOTSUPP),
	REJECT_FLAGS(ep_resize, attr.flags, 7ULL),
	REJECT(ep_resize, attr.flags, DAPX_EP_XRC, EOPNOTSUPP),
	REJECT(ep_resize, attr.send_depth, 0, EINVAL),
	REJECT(ep_resize, attr.send_depth, ~0U, EINVAL),
	REJECT_OVER(ep_resize, attr.send_depth, out_max_send_depth),
	REJECT(ep_resize, attr.recv_depth, ~0U, EINVAL),
	REJECT_OVER(ep_resize, attr.recv_depth, out_max_recv_depth),
	REJECT(ep_resize, attr.max_send_sge, 0, EINVAL),
	REJECT_OVER(ep_resize, attr.max_send_sge, out_max_send_sge),
	REJECT(ep_resize, attr.max_recv_sge, 0, EINVAL),
	REJECT_OVER(ep_resize, attr.max_recv_sge, out_max_recv_sge),
	REJECT(ep_resize, attr.max_inline, ~0U, EINVAL),
	REJECT_OVER(ep_resize, attr.max_inline, out_max_inline),
	REJECT_OVER(ep_resize, attr.max_rd_atomic, out_max_rd_atomic),
	REJECT_OVER(ep_resize, attr.max_dest_rd_atomic, out_max_dest_rd_atomic),
	{}
};

static int ep_resize_srq(struct world *w, void *cmd)
{
	struct dapx_ep_resize *c = cmd;
	struct srq srq;

	if (ep_resize_scene(w, cmd) || srq_make(&w->a, 8, 1, &srq))
		return -1;
	c->attr.recv_depth = 0;
	c->srq = srq.handle;
	return 0;
}

static void resize_srq_of_xrc(struct world *w, void *cmd)
{
	struct dapx_ep_resize *c = cmd;

	new_srq(w, true, w->a.recv.handle, &c->srq);
}

static const struct reject rejects_ep_resize_srq[] = {
	REJECT_OPTIONAL_HANDLE(ep_resize, srq),
	REJECT_BY(ep_resize, srq, resize_srq_of_xrc, EINVAL),
	REJECT(ep_resize, attr.recv_depth, 8, EINVAL),
	{}
};

static int ep_modify(struct world *w, void *cmd)
{
	struct dapx_ep_modify *c = cmd;
	struct dapx_pd_create pd = {};
	struct ep *ep = spare_ep(w, &w->a);

	if (!ep)
		return -1;
	if (_test_cmd_pd_create(w->fd, &pd))
		return because("DAPX_PD_CREATE: %m");
	c->ep = ep->handle;
	c->mask = DAPX_EP_MODIFY_PD | DAPX_EP_MODIFY_REQUEST_EVD |
		  DAPX_EP_MODIFY_RECV_EVD | DAPX_EP_MODIFY_CONNECT_EVD |
		  DAPX_EP_MODIFY_RD_ATOMIC | DAPX_EP_MODIFY_USER_DATA;
	c->pd = pd.out_pd;
	c->request_evd = w->a.conn.handle;
	c->recv_evd = w->a.done.handle;
	c->connect_evd = w->a.recv.handle;
	c->max_rd_atomic = 1;
	c->max_dest_rd_atomic = 1;
	return 0;
}

static const struct reject rejects_ep_modify[] = {
	REJECT_FLAGS(ep_modify, flags, 0ULL),
	REJECT_HANDLE(ep_modify, ep),
	REJECT_FLAGS(ep_modify, mask, 255ULL),
	REJECT_HANDLE(ep_modify, pd),
	REJECT_HANDLE(ep_modify, request_evd),
	REJECT_OPTIONAL_HANDLE(ep_modify, recv_evd),
	REJECT_HANDLE(ep_modify, connect_evd),
	REJECT_OVER(ep_modify, max_rd_atomic, out_max_rd_atomic),
	REJECT_OVER(ep_modify, max_dest_rd_atomic, out_max_dest_rd_atomic),
	ANY(ep_modify, user_data),
	REJECT(ep_modify, __reserved[2], 1, EINVAL),
	REJECT(ep_modify, qp.__reserved, 1, EINVAL),
	{}
};

static int ep_modify_rnr_timer(struct world *w, void *cmd)
{
	struct dapx_ep_modify *c = cmd;
	struct ep *ep = spare_ep(w, &w->a);

	if (!ep)
		return -1;
	c->ep = ep->handle;
	c->mask = DAPX_EP_MODIFY_RNR_TIMER;
	c->min_rnr_timer = 31;
	return 0;
}

static void rnr_timer_of_xrc(struct world *w, void *cmd)
{
	struct dapx_ep_modify *c = cmd;
	struct ep *ep = spare_xrc_ep(w, &w->a);

	if (ep)
		c->ep = ep->handle;
}

static const struct reject rejects_ep_modify_rnr_timer[] = {
	REJECT_HANDLE(ep_modify, ep),
	REJECT_BY(ep_modify, ep, rnr_timer_of_xrc, EOPNOTSUPP),
	REJECT(ep_modify, mask, DAPX_EP_MODIFY_RNR_TIMER | DAPX_EP_MODIFY_QP, EINVAL),
	REJECT(ep_modify, min_rnr_timer, 32, EINVAL),
	{}
};

static int ep_modify_init(struct world *w, void *cmd)
{
	struct dapx_ep_modify *c = cmd;
	struct ep *ep = spare_ep(w, &w->a);

	if (!ep)
		return -1;
	c->ep = ep->handle;
	c->mask = DAPX_EP_MODIFY_QP;
	c->qp.state = DAPX_QP_INIT;
	c->qp.port = 1;
	return 0;
}

static void port_too_high(struct world *w, void *cmd)
{
	struct dapx_ep_modify *c = cmd;

	c->qp.port = w->a.limits.out_ports + 1;
}

static const struct reject rejects_ep_modify_init[] = {
	REJECT(ep_modify, mask, DAPX_EP_MODIFY_QP | DAPX_EP_MODIFY_USER_DATA, EINVAL),
	REJECT(ep_modify, qp.state, 0, EINVAL),
	REJECT(ep_modify, qp.state, DAPX_QP_RTS + 1, EINVAL),
	REJECT(ep_modify, qp.state, DAPX_QP_RTS, EBADFD),
	REJECT(ep_modify, qp.port, 0, EINVAL),
	REJECT_BY(ep_modify, qp.port, port_too_high, EINVAL),
	REJECT(ep_modify, qp.pkey_index, 0xffff, EINVAL),
	REJECT(ep_modify, qp.refused, DAPX_ACCESS_LOCAL_WRITE, EINVAL),
	{}
};

static int ep_modify_rtr(struct world *w, void *cmd)
{
	struct dapx_ep_modify *c = cmd;
	struct ep *ep = spare_ep(w, &w->a);
	__u8 gid[16];
	int index;

	index = host_gid_index(&w->a, gid);
	if (!ep || index < 0 || host_gid_index(&w->b, c->qp.dgid) < 0 ||
	    qp_init(ep))
		return -1;
	c->ep = ep->handle;
	c->mask = DAPX_EP_MODIFY_QP;
	c->qp.state = DAPX_QP_RTR;
	c->qp.dest_qp_num = 17;
	c->qp.sgid_index = index;
	c->qp.path_mtu = 3;
	c->qp.hop_limit = 64;
	c->qp.max_dest_rd_atomic = 1;
	return 0;
}

static const struct reject rejects_ep_modify_rtr[] = {
	REJECT(ep_modify, qp.dest_qp_num, 1 << 24, EINVAL),
	REJECT(ep_modify, qp.rq_psn, 1 << 24, EINVAL),
	REJECT(ep_modify, qp.dlid, 1, EINVAL),
	REJECT(ep_modify, qp.sgid_index, 255, EINVAL),
	REJECT(ep_modify, qp.sl, 16, EINVAL),
	REJECT(ep_modify, qp.flow_label, 1 << 20, EINVAL),
	REJECT(ep_modify, qp.path_mtu, 0, EINVAL),
	REJECT(ep_modify, qp.path_mtu, 6, EINVAL),
	REJECT(ep_modify, qp.min_rnr_timer, 32, EINVAL),
	REJECT_OVER(ep_modify, qp.max_dest_rd_atomic, out_max_dest_rd_atomic),
	UNKNOWABLE(ep_modify, qp.dgid),
	ANY(ep_modify, qp.hop_limit),
	ANY(ep_modify, qp.traffic_class),
	{}
};

static int ep_modify_rts(struct world *w, void *cmd)
{
	struct dapx_ep_modify *c = cmd;
	struct ep *ep = spare_ep(w, &w->a);
	__u8 gid[16];

	if (!ep || host_gid_index(&w->b, gid) < 0 || qp_init(ep) ||
	    qp_rtr(ep, 17, gid, NULL))
		return -1;
	c->ep = ep->handle;
	c->mask = DAPX_EP_MODIFY_QP;
	c->qp.state = DAPX_QP_RTS;
	c->qp.timeout = 14;
	c->qp.retry_count = 7;
	c->qp.rnr_retry = 7;
	return 0;
}

static const struct reject rejects_ep_modify_rts[] = {
	REJECT(ep_modify, qp.sq_psn, 1 << 24, EINVAL),
	REJECT(ep_modify, qp.timeout, 32, EINVAL),
	REJECT(ep_modify, qp.retry_count, 8, EINVAL),
	REJECT(ep_modify, qp.rnr_retry, 8, EINVAL),
	REJECT_OVER(ep_modify, qp.max_rd_atomic, out_max_rd_atomic),
	{}
};

static int ep_connect_dst(struct world *w, void *cmd)
{
	struct ep *ep = spare_ep(w, &w->a);
	struct listener listener;

	if (!ep || listener_open(&w->b, &listener))
		return -1;
	connect_usual(ep, &listener, cmd);
	return 0;
}

static void dst_of_no_family(struct world *w, void *cmd)
{
	struct dapx_ep_connect *c = cmd;

	c->dst.ss_family = 0;
}

static void dst_of_unix(struct world *w, void *cmd)
{
	struct dapx_ep_connect *c = cmd;

	c->dst.ss_family = AF_UNIX;
}

static void src_of_unix(struct world *w, void *cmd)
{
	struct dapx_ep_connect *c = cmd;

	c->src.ss_family = AF_UNIX;
}

static void src_of_other_family(struct world *w, void *cmd)
{
	struct dapx_ep_connect *c = cmd;

	set_addr(&c->src, w->a.addr6, 0);
}

static const struct reject rejects_ep_connect[] = {
	REJECT_FLAGS(ep_connect, flags, 1ULL),
	REJECT(ep_connect, flags, DAPX_CONNECT_STEPS, EINVAL),
	REJECT_HANDLE(ep_connect, ep),
	REJECT_BY(ep_connect, dst, dst_of_no_family, EINVAL),
	REJECT_BY(ep_connect, dst, dst_of_unix, EINVAL),
	REJECT_BY(ep_connect, src, src_of_unix, EINVAL),
	REJECT_BY(ep_connect, src, src_of_other_family, EINVAL),
	REJECT(ep_connect, retry_count, 8, EINVAL),
	REJECT(ep_connect, rnr_retry_count, 8, EINVAL),
	REJECT_OVER(ep_connect, private_data_len, out_max_connect_data),
	REJECT(ep_connect, private_data_len, 0xffff, EINVAL),
	ANY(ep_connect, private_data),
	ANY(ep_connect, deadline),
	{}
};

/* The module's header goes before its private data. */
static int ep_connect_xrc(struct world *w, void *cmd)
{
	struct ep *ep = spare_xrc_ep(w, &w->a);
	struct listener listener;
	struct dapx_ep_connect *c = cmd;

	if (!ep || listener_open(&w->b, &listener))
		return -1;
	connect_usual(ep, &listener, cmd);
	c->private_data_len = w->a.limits.out_max_connect_data - 8;
	return 0;
}

static void connect_xrc_too_long(struct world *w, void *cmd)
{
	struct dapx_ep_connect *c = cmd;

	c->private_data_len++;
}

static const struct reject rejects_ep_connect_xrc[] = {
	REJECT_HANDLE(ep_connect, ep),
	REJECT_BY(ep_connect, dst, dst_of_no_family, EINVAL),
	REJECT(ep_connect, retry_count, 8, EINVAL),
	REJECT(ep_connect, rnr_retry_count, 8, EINVAL),
	REJECT_BY(ep_connect, private_data_len, connect_xrc_too_long, EINVAL),
	REJECT(ep_connect, private_data_len, 0xffff, EINVAL),
	ANY(ep_connect, private_data),
	{}
};

static int ep_connect_cm(struct world *w, void *cmd)
{
	struct dapx_ep_connect *c = cmd;
	struct ep *ep = spare_ep(w, &w->a);
	struct listener listener;
	struct dapx_cm_resolve route = {
		.what = DAPX_RESOLVE_ROUTE,
		.deadline = in_ms(PATIENCE_MS),
	};

	if (!ep || listener_open(&w->b, &listener) ||
	    resolving(w, &c->cm, listener.port))
		return -1;
	route.cm = c->cm;
	if (_test_cmd_cm_resolve(w->fd, &route))
		return because("DAPX_CM_RESOLVE: %m");
	if (expect_cm(&w->a.conn, c->cm, DAPX_CM_ROUTE_RESOLVED, NULL))
		return -1;
	c->ep = ep->handle;
	c->deadline = DAPX_NO_DEADLINE;
	return 0;
}

static void dst_with_cm(struct world *w, void *cmd)
{
	struct dapx_ep_connect *c = cmd;

	set_addr(&c->dst, w->b.addr, 7);
}

static void src_with_cm(struct world *w, void *cmd)
{
	struct dapx_ep_connect *c = cmd;

	set_addr(&c->src, w->a.addr, 0);
}

static void cm_not_resolved(struct world *w, void *cmd)
{
	struct dapx_ep_connect *c = cmd;

	c->cm = w->idle_cm;
}

static const struct reject rejects_ep_connect_cm[] = {
	REJECT_OPTIONAL_HANDLE(ep_connect, cm),
	REJECT_BY(ep_connect, cm, cm_not_resolved, EBADFD),
	REJECT_BY(ep_connect, dst, dst_with_cm, EINVAL),
	REJECT_BY(ep_connect, src, src_with_cm, EINVAL),
	{}
};

static int ep_accept_base(struct world *w, void *cmd)
{
	struct dapx_ep_accept *c = cmd;
	struct ep *ep;

	if (pending_request(w, &c->cm))
		return -1;
	ep = spare_ep(w, &w->a);
	if (!ep)
		return -1;
	c->ep = ep->handle;
	return 0;
}

static void accept_no_request(struct world *w, void *cmd)
{
	struct dapx_ep_accept *c = cmd;

	c->cm = w->idle_cm;
}

static void accept_xrc_request(struct world *w, void *cmd)
{
	static const struct dapx_cm_listen usual;
	struct dapx_ep_accept *c = cmd;

	pending_xrc_request(w, &usual, &c->cm);
}

static void accept_with_xrc_ep(struct world *w, void *cmd)
{
	struct dapx_ep_accept *c = cmd;

	c->ep = spare_xrc_ep(w, &w->a)->handle;
}

static const struct reject rejects_ep_accept[] = {
	REJECT_FLAGS(ep_accept, flags, 1ULL),
	REJECT_HANDLE(ep_accept, ep),
	REJECT_BY(ep_accept, ep, accept_with_xrc_ep, EOPNOTSUPP),
	REJECT_HANDLE(ep_accept, cm),
	REJECT_BY(ep_accept, cm, accept_xrc_request, EPROTO),
	REJECT_BY(ep_accept, cm, accept_no_request, EBADFD),
	REJECT(ep_accept, rnr_retry_count, 8, EINVAL),
	REJECT_BYTES(ep_accept, __reserved),
	REJECT_OVER(ep_accept, private_data_len, out_max_accept_data),
	REJECT(ep_accept, private_data_len, 0xffff, EINVAL),
	ANY(ep_accept, private_data),
	{}
};

static int ep_establish(struct world *w, void *cmd)
{
	struct dapx_ep_establish *c = cmd;
	struct dapx_cm_query query = {};
	struct ep *active, *passive;
	struct listener listener;
	struct dapx_event event;

	if (fresh_evds(w))
		return -1;
	active = spare_ep(w, &w->a);
	passive = spare_ep(w, &w->b);
	if (!active || !passive || listener_open(&w->b, &listener) ||
	    ep_prepare_steps(active, &listener, &query.cm))
		return -1;
	if (ep_connect_steps(active, query.cm))
		return because("DAPX_EP_CONNECT: %m");
	if (listener_request(&listener, &event) || ep_accept_steps(passive, event.request.cm) ||
	    expect_connection(&w->a.conn, active->handle, DAPX_CONNECTION_RESPONSE, NULL))
		return -1;
	if (_test_cmd_cm_query(w->fd, &query))
		return because("DAPX_CM_QUERY: %m");
	c->ep = active->handle;
	return qp_steps(active, &query.out_qp, DAPX_QP_INIT, DAPX_QP_RTS);
}

static void establish_without_a_response(struct world *w, void *cmd)
{
	struct dapx_ep_establish *c = cmd;
	struct ep *ep = spare_ep(w, &w->a);

	c->ep = ep ? ep->handle : 0;
}

static const struct reject rejects_ep_establish[] = {
	REJECT_FLAGS(ep_establish, flags, 0ULL),
	REJECT_HANDLE(ep_establish, ep),
	REJECT_BY(ep_establish, ep, establish_without_a_response, EBADFD),
	REJECT_BYTES(ep_establish, __reserved),
	{}
};

static int ep_disconnect(struct world *w, void *cmd)
{
	struct dapx_ep_disconnect *c = cmd;
	struct ep *ep, *peer;

	if (fresh_evds(w))
		return -1;
	ep = spare_ep(w, &w->a);
	peer = spare_ep(w, &w->b);
	if (!ep || !peer || connect_cm(ep, peer))
		return -1;
	c->ep = ep->handle;
	return 0;
}

static const struct reject rejects_ep_disconnect[] = {
	REJECT_FLAGS(ep_disconnect, flags, 1ULL),
	REJECT_HANDLE(ep_disconnect, ep),
	REJECT_BYTES(ep_disconnect, __reserved),
	{}
};

static int ep_reset(struct world *w, void *cmd)
{
	struct dapx_ep_reset *c = cmd;
	struct ep *ep = spare_ep(w, &w->a);

	if (!ep)
		return -1;
	c->ep = ep->handle;
	return 0;
}

static const struct reject rejects_ep_reset[] = {
	REJECT_FLAGS(ep_reset, flags, 0ULL),
	REJECT_HANDLE(ep_reset, ep),
	{}
};

static int cm_create(struct world *w, void *cmd)
{
	struct dapx_cm_create *c = cmd;

	c->evd = w->a.conn.handle;
	return 0;
}

static const struct reject rejects_cm_create[] = {
	REJECT_FLAGS(cm_create, flags, 0ULL),
	REJECT_HANDLE(cm_create, evd),
	ANY(cm_create, user_data),
	{}
};

static int cm_bind(struct world *w, void *cmd)
{
	struct dapx_cm_bind *c = cmd;

	set_addr(&c->addr, w->a.addr, 0);
	return new_cm(w, &c->cm);
}

static void bind_no_family(struct world *w, void *cmd)
{
	struct dapx_cm_bind *c = cmd;

	c->addr.ss_family = 0;
}

static void bind_unix(struct world *w, void *cmd)
{
	struct dapx_cm_bind *c = cmd;

	c->addr.ss_family = AF_UNIX;
}

static void bind_other_device(struct world *w, void *cmd)
{
	struct dapx_cm_bind *c = cmd;

	set_addr(&c->addr, w->b.addr, 0);
}

static void bind_elsewhere(struct world *w, void *cmd)
{
	struct dapx_cm_bind *c = cmd;

	set_addr(&c->addr, "203.0.113.1", 0);
}

static const struct reject rejects_cm_bind[] = {
	REJECT_FLAGS(cm_bind, flags, 0ULL),
	REJECT_HANDLE(cm_bind, cm),
	REJECT_BYTES(cm_bind, __reserved),
	REJECT_BY(cm_bind, addr, bind_no_family, EINVAL),
	REJECT_BY(cm_bind, addr, bind_unix, EINVAL),
	REJECT_BY(cm_bind, addr, bind_other_device, EADDRNOTAVAIL),
	REJECT_BY(cm_bind, addr, bind_elsewhere, EADDRNOTAVAIL),
	{}
};

static int cm_listen(struct world *w, void *cmd)
{
	struct dapx_cm_listen *c = cmd;

	return bound_cm(w, &c->cm);
}

static void listen_unbound(struct world *w, void *cmd)
{
	struct dapx_cm_listen *c = cmd;

	c->cm = w->idle_cm;
}

static const struct reject rejects_cm_listen[] = {
	REJECT_FLAGS(cm_listen, flags, 0ULL),
	REJECT_HANDLE(cm_listen, cm),
	REJECT_BY(cm_listen, cm, listen_unbound, EBADFD),
	REJECT(cm_listen, mode, DAPX_LISTEN_TENTATIVE + 1, EINVAL),
	REJECT(cm_listen, mode, DAPX_LISTEN_RESERVED, ENOENT),
	REJECT(cm_listen, mode, ~0U, EINVAL),
	REJECT_OVER_MODULE(cm_listen, backlog, out_max_backlog),
	REJECT(cm_listen, backlog, ~0U, EINVAL),
	REJECT(cm_listen, ep, 1, EINVAL),
	REJECT_BYTES(cm_listen, attr),
	REJECT_BYTES(cm_listen, __reserved),
	{}
};

static int cm_listen_reserved(struct world *w, void *cmd)
{
	struct dapx_cm_listen *c = cmd;
	struct ep *ep = spare_ep(w, &w->a);

	if (!ep || bound_cm(w, &c->cm))
		return -1;
	c->mode = DAPX_LISTEN_RESERVED;
	c->ep = ep->handle;
	return 0;
}

static void reserve_xrc_ep(struct world *w, void *cmd)
{
	struct dapx_cm_listen *c = cmd;

	c->ep = spare_xrc_ep(w, &w->a)->handle;
}

static const struct reject rejects_cm_listen_reserved[] = {
	REJECT_HANDLE(cm_listen, ep),
	REJECT_BY(cm_listen, ep, reserve_xrc_ep, EOPNOTSUPP),
	REJECT_BYTES(cm_listen, attr),
	{}
};

static int cm_listen_tentative(struct world *w, void *cmd)
{
	struct dapx_cm_listen *c = cmd;
	struct dapx_ep_create usual;

	ep_usual(&w->a, &usual);
	c->mode = DAPX_LISTEN_TENTATIVE;
	c->attr = usual.attr;
	return bound_cm(w, &c->cm);
}

static const struct reject rejects_cm_listen_tentative[] = {
	REJECT(cm_listen, ep, 1, EINVAL),
	REJECT_FLAGS(cm_listen, attr.flags, 5ULL),
	REJECT(cm_listen, attr.send_depth, 0, EINVAL),
	REJECT_OVER(cm_listen, attr.send_depth, out_max_send_depth),
	REJECT_OVER(cm_listen, attr.recv_depth, out_max_recv_depth),
	REJECT(cm_listen, attr.max_send_sge, 0, EINVAL),
	REJECT_OVER(cm_listen, attr.max_send_sge, out_max_send_sge),
	REJECT(cm_listen, attr.max_recv_sge, 0, EINVAL),
	REJECT_OVER(cm_listen, attr.max_recv_sge, out_max_recv_sge),
	REJECT_OVER(cm_listen, attr.max_inline, out_max_inline),
	REJECT_OVER(cm_listen, attr.max_rd_atomic, out_max_rd_atomic),
	REJECT_OVER(cm_listen, attr.max_dest_rd_atomic, out_max_dest_rd_atomic),
	{}
};

static int cm_resolve(struct world *w, void *cmd)
{
	struct dapx_cm_resolve *c = cmd;

	c->what = DAPX_RESOLVE_ADDR;
	c->deadline = in_ms(PATIENCE_MS);
	set_addr(&c->dst, w->b.addr, 7);
	set_addr(&c->src, w->a.addr, 0);
	return new_cm(w, &c->cm);
}

static void resolve_no_family(struct world *w, void *cmd)
{
	struct dapx_cm_resolve *c = cmd;

	c->dst.ss_family = 0;
}

static void resolve_unix(struct world *w, void *cmd)
{
	struct dapx_cm_resolve *c = cmd;

	c->dst.ss_family = AF_UNIX;
}

static void resolve_from_unix(struct world *w, void *cmd)
{
	struct dapx_cm_resolve *c = cmd;

	c->src.ss_family = AF_UNIX;
}

static void resolve_mixed(struct world *w, void *cmd)
{
	struct dapx_cm_resolve *c = cmd;

	set_addr(&c->src, w->a.addr6, 0);
}

static void resolve_route_first(struct world *w, void *cmd)
{
	struct dapx_cm_resolve *c = cmd;

	c->what = DAPX_RESOLVE_ROUTE;
	memset(&c->dst, 0, sizeof(c->dst));
	memset(&c->src, 0, sizeof(c->src));
}

static const struct reject rejects_cm_resolve[] = {
	REJECT_FLAGS(cm_resolve, flags, 0ULL),
	REJECT_HANDLE(cm_resolve, cm),
	REJECT(cm_resolve, what, 0, EINVAL),
	REJECT(cm_resolve, what, DAPX_RESOLVE_ROUTE + 1, EINVAL),
	REJECT_BY(cm_resolve, what, resolve_route_first, EBADFD),
	REJECT_BY(cm_resolve, dst, resolve_no_family, EINVAL),
	REJECT_BY(cm_resolve, dst, resolve_unix, EINVAL),
	REJECT_BY(cm_resolve, src, resolve_from_unix, EINVAL),
	REJECT_BY(cm_resolve, src, resolve_mixed, EINVAL),
	ANY(cm_resolve, deadline),
	{}
};

static int cm_query(struct world *w, void *cmd)
{
	struct dapx_cm_query *c = cmd;

	c->cm = w->idle_cm;
	return 0;
}

static const struct reject rejects_cm_query[] = {
	REJECT_FLAGS(cm_query, flags, 0ULL),
	REJECT_HANDLE(cm_query, cm),
	{}
};

static int cm_reject(struct world *w, void *cmd)
{
	struct dapx_cm_reject *c = cmd;

	return pending_request(w, &c->cm);
}

static void reject_no_request(struct world *w, void *cmd)
{
	struct dapx_cm_reject *c = cmd;

	c->cm = w->idle_cm;
}

static const struct reject rejects_cm_reject[] = {
	REJECT_FLAGS(cm_reject, flags, 0ULL),
	REJECT_HANDLE(cm_reject, cm),
	REJECT_BY(cm_reject, cm, reject_no_request, EBADFD),
	REJECT_OVER(cm_reject, private_data_len, out_max_reject_data),
	REJECT(cm_reject, private_data_len, ~0U, EINVAL),
	REJECT_BYTES(cm_reject, __reserved),
	ANY(cm_reject, private_data),
	{}
};

static int cm_take(struct world *w, void *cmd)
{
	struct dapx_cm_take *c = cmd;

	if (pending_request(w, &c->cm))
		return -1;
	c->evd = w->a.conn.handle;
	return 0;
}

static void take_no_request(struct world *w, void *cmd)
{
	struct dapx_cm_take *c = cmd;

	c->cm = w->idle_cm;
}

static const struct reject rejects_cm_take[] = {
	REJECT_FLAGS(cm_take, flags, 0ULL),
	REJECT_HANDLE(cm_take, cm),
	REJECT_BY(cm_take, cm, take_no_request, EBADFD),
	REJECT_HANDLE(cm_take, evd),
	ANY(cm_take, user_data),
	{}
};

static int cm_modify(struct world *w, void *cmd)
{
	struct dapx_cm_modify *c = cmd;

	c->mask = DAPX_CM_MODIFY_TOS | DAPX_CM_MODIFY_REUSEADDR | DAPX_CM_MODIFY_AFONLY;
	if (!on_siw())
		c->mask |= DAPX_CM_MODIFY_ACK_TIMEOUT;
	c->ack_timeout = 14;
	c->reuseaddr = 1;
	c->afonly = 1;
	return new_cm(w, &c->cm);
}

static void modify_long_timeout(struct world *w, void *cmd)
{
	struct dapx_cm_modify *c = cmd;

	c->mask = DAPX_CM_MODIFY_ACK_TIMEOUT;
	c->ack_timeout = 32;
}

static const struct reject rejects_cm_modify[] = {
	REJECT_FLAGS(cm_modify, flags, 0ULL),
	REJECT_HANDLE(cm_modify, cm),
	REJECT_FLAGS(cm_modify, mask, 15ULL),
	ANY(cm_modify, tos),
	REJECT_BY(cm_modify, ack_timeout, modify_long_timeout, EINVAL),
	REJECT(cm_modify, reuseaddr, 2, EINVAL),
	REJECT(cm_modify, afonly, 2, EINVAL),
	REJECT_BYTES(cm_modify, __reserved),
	{}
};

static int cm_ack(struct world *w, void *cmd)
{
	struct dapx_cm_ack *c = cmd;

	c->events = 1;
	return resolving(w, &c->cm, 7);
}

static const struct reject rejects_cm_ack[] = {
	REJECT_FLAGS(cm_ack, flags, 0ULL),
	REJECT_HANDLE(cm_ack, cm),
	REJECT(cm_ack, events, 2, EINVAL),
	REJECT(cm_ack, events, ~0U, EINVAL),
	{}
};

static int rmr_create(struct world *w, void *cmd)
{
	((struct dapx_rmr_create *)cmd)->pd = w->a.pd;
	return 0;
}

static const struct reject rejects_rmr_create[] = {
	REJECT_FLAGS(rmr_create, flags, 0ULL),
	REJECT_HANDLE(rmr_create, pd),
	REJECT_BYTES(rmr_create, __reserved),
	REJECT_BYTES(rmr_create, __reserved2),
	ANY(rmr_create, user_data),
	{}
};

static int new_rmr(struct world *w, __u32 pd, __u32 *rmr)
{
	struct dapx_rmr_create cmd = { .pd = pd };

	if (_test_cmd_rmr_create(w->a.fd, &cmd))
		return because("DAPX_RMR_CREATE: %m");
	*rmr = cmd.out_rmr;
	return 0;
}

/* On a connected endpoint, without an MR yet. */
static int rmr_unbind(struct world *w, void *cmd)
{
	struct dapx_rmr_bind *c = cmd;
	struct ep *ep, *peer;

	if (fresh_evds(w))
		return -1;
	ep = spare_ep(w, &w->a);
	peer = spare_ep(w, &w->b);
	if (!ep || !peer || connect_cm(ep, peer))
		return -1;
	c->ep = ep->handle;
	return new_rmr(w, w->a.pd, &c->rmr);
}

static const struct reject rejects_rmr_unbind[] = {
	REJECT(rmr_bind, mr, 1, EINVAL),
	REJECT(rmr_bind, addr, 1, EINVAL),
	REJECT(rmr_bind, access, DAPX_ACCESS_REMOTE_READ, EINVAL),
	{}
};

static int rmr_bind(struct world *w, void *cmd)
{
	struct dapx_rmr_bind *c = cmd;
	struct dapx_mr_create mr = {
		.pd = w->a.pd, .addr = (uintptr_t)w->a.mem, .length = 8192,
		.access = DAPX_ACCESS_LOCAL_WRITE | DAPX_ACCESS_REMOTE_WRITE,
	};

	if (_test_cmd_mr_create(w->a.fd, &mr))
		return because("DAPX_MR_CREATE: %m");
	c->mr = mr.out_mr;
	c->addr = mr.addr + 100;
	c->length = 1000;
	c->access = DAPX_ACCESS_REMOTE_WRITE;
	return rmr_unbind(w, cmd);
}

static void bind_foreign_rmr(struct world *w, void *cmd)
{
	struct dapx_pd_create pd = {};

	_test_cmd_pd_create(w->a.fd, &pd);
	new_rmr(w, pd.out_pd, &((struct dapx_rmr_bind *)cmd)->rmr);
}

static void bind_foreign_mr(struct world *w, void *cmd)
{
	struct dapx_pd_create pd = {};
	struct dapx_mr_create mr = {
		.addr = (uintptr_t)w->a.mem, .length = 8192,
		.access = DAPX_ACCESS_LOCAL_WRITE | DAPX_ACCESS_REMOTE_WRITE,
	};

	_test_cmd_pd_create(w->a.fd, &pd);
	mr.pd = pd.out_pd;
	_test_cmd_mr_create(w->a.fd, &mr);
	((struct dapx_rmr_bind *)cmd)->mr = mr.out_mr;
}

static void bind_to_write_read_only_mr(struct world *w, void *cmd)
{
	struct dapx_rmr_bind *c = cmd;
	struct dapx_mr_create mr = {
		.pd = w->a.pd, .addr = (uintptr_t)w->a.mem, .length = 8192,
		.access = DAPX_ACCESS_REMOTE_READ,
	};

	_test_cmd_mr_create(w->a.fd, &mr);
	c->mr = mr.out_mr;
	c->access = DAPX_ACCESS_REMOTE_WRITE;
}

static void bind_unconnected(struct world *w, void *cmd)
{
	((struct dapx_rmr_bind *)cmd)->ep = spare_ep(w, &w->a)->handle;
}

static void bind_before(struct world *w, void *cmd)
{
	((struct dapx_rmr_bind *)cmd)->addr -= 101;
}

static void bind_behind(struct world *w, void *cmd)
{
	((struct dapx_rmr_bind *)cmd)->addr += 8192 - 100 - 999;
}

static const struct reject rejects_rmr_bind[] = {
	REJECT_FLAGS(rmr_bind, flags, 3ULL),
	REJECT_HANDLE(rmr_bind, rmr),
	REJECT_BY(rmr_bind, rmr, bind_foreign_rmr, EINVAL),
	REJECT_HANDLE(rmr_bind, ep),
	REJECT_BY(rmr_bind, ep, bind_unconnected, EBADFD),
	REJECT_HANDLE(rmr_bind, mr),
	REJECT_BY(rmr_bind, mr, bind_foreign_mr, EINVAL),
	REJECT_FLAGS(rmr_bind, access, 14ULL),
	REJECT_BY(rmr_bind, access, bind_to_write_read_only_mr, EACCES),
	REJECT_BY(rmr_bind, addr, bind_before, EINVAL),
	REJECT_BY(rmr_bind, addr, bind_behind, EINVAL),
	REJECT(rmr_bind, addr, ~0ULL - 998, EOVERFLOW),
	REJECT(rmr_bind, length, 8192 - 99, EINVAL),
	REJECT(rmr_bind, length, ~0ULL, EOVERFLOW),
	REJECT_BYTES(rmr_bind, __reserved),
	ANY(rmr_bind, wr_id),
	{}
};

static int rmr_query(struct world *w, void *cmd)
{
	struct dapx_rmr_query *c = cmd;

	c->mask = DAPX_RMR_FIELD_PD | DAPX_RMR_FIELD_RKEY;
	return new_rmr(w, w->a.pd, &c->rmr);
}

static const struct reject rejects_rmr_query[] = {
	REJECT_FLAGS(rmr_query, flags, 0ULL),
	REJECT_HANDLE(rmr_query, rmr),
	REJECT_FLAGS(rmr_query, mask, 31ULL),
	{}
};

static int xrcd_open(struct world *w, void *cmd)
{
	struct dapx_xrcd_open *c = cmd;

	c->fd = memfd_create("domain", MFD_CLOEXEC);
	c->flags = DAPX_XRCD_CREATE | DAPX_XRCD_EXCL;
	return c->fd < 0 ? because("memfd_create: %m") : 0;
}

static const struct reject rejects_xrcd_open[] = {
	REJECT_FLAGS(xrcd_open, flags, 3ULL),
	REJECT(xrcd_open, flags, DAPX_XRCD_EXCL, EINVAL),
	REJECT(xrcd_open, flags, 0, ENOENT),
	REJECT(xrcd_open, fd, -1U, EINVAL),
	REJECT(xrcd_open, fd, 1U << 30, EBADF),
	ANY(xrcd_open, user_data),
	{}
};

/* ---- XRC receive queue pairs ---- */

static int own_xrc_qp(struct world *w, __u32 *xrcd, __u32 *qp_num)
{
	if (share_domain(w))
		return -1;
	*xrcd = w->a.xrcd;
	return xrc_qp_make(&w->a, qp_num);
}

/* All commands on them begin as this one does. */
#define XRC_QP(cmd) ((struct dapx_xrc_qp_query *)(cmd))

/* A domain in which there are none. */
static void other_domain(struct world *w, void *cmd)
{
	struct dapx_xrcd_open xrcd = { .fd = -1, .flags = DAPX_XRCD_CREATE };

	_test_cmd_xrcd_open(w->a.fd, &xrcd);
	XRC_QP(cmd)->xrcd = xrcd.out_xrcd;
}

/* It is another context's, that shares the domain. */
static void unregistered_qp(struct world *w, void *cmd)
{
	xrc_qp_make(&w->other, &XRC_QP(cmd)->qp_num);
}

/* A queue pair, but an endpoint's. */
static void qp_of_ep(struct world *w, void *cmd)
{
	XRC_QP(cmd)->qp_num = spare_ep(w, &w->a)->qp_num;
}

static int xrc_qp_create(struct world *w, void *cmd)
{
	struct dapx_xrc_qp_create *c = cmd;

	if (share_domain(w))
		return -1;
	c->xrcd = w->a.xrcd;
	c->evd = w->a.conn.handle;
	return 0;
}

static const struct reject rejects_xrc_qp_create[] = {
	REJECT_FLAGS(xrc_qp_create, flags, 0ULL),
	REJECT_HANDLE(xrc_qp_create, xrcd),
	REJECT_OPTIONAL_HANDLE(xrc_qp_create, evd),
	ANY(xrc_qp_create, user_data),
	{}
};

static int xrc_qp_register(struct world *w, void *cmd)
{
	struct dapx_xrc_qp_register *c = cmd;

	if (share_domain(w))
		return -1;
	c->xrcd = w->a.xrcd;
	c->evd = w->a.conn.handle;
	return xrc_qp_make(&w->other, &c->qp_num);
}

static const struct reject rejects_xrc_qp_register[] = {
	REJECT_FLAGS(xrc_qp_register, flags, 1ULL),
	REJECT_HANDLE(xrc_qp_register, xrcd),
	REJECT_BY(xrc_qp_register, xrcd, other_domain, EINVAL),
	REJECT(xrc_qp_register, qp_num, 0, EINVAL),
	REJECT(xrc_qp_register, qp_num, ~0U, EINVAL),
	REJECT_BY(xrc_qp_register, qp_num, qp_of_ep, EINVAL),
	REJECT_OPTIONAL_HANDLE(xrc_qp_register, evd),
	ANY(xrc_qp_register, user_data),
	{}
};

static int xrc_qp_unregister(struct world *w, void *cmd)
{
	struct dapx_xrc_qp_unregister *c = cmd;

	return own_xrc_qp(w, &c->xrcd, &c->qp_num);
}

static const struct reject rejects_xrc_qp_unregister[] = {
	REJECT_FLAGS(xrc_qp_unregister, flags, 0ULL),
	REJECT_HANDLE(xrc_qp_unregister, xrcd),
	REJECT_BY(xrc_qp_unregister, xrcd, other_domain, EINVAL),
	REJECT(xrc_qp_unregister, qp_num, 0, EINVAL),
	REJECT(xrc_qp_unregister, qp_num, ~0U, EINVAL),
	REJECT_BY(xrc_qp_unregister, qp_num, qp_of_ep, EINVAL),
	REJECT_BY(xrc_qp_unregister, qp_num, unregistered_qp, EINVAL),
	{}
};

/* To INIT. */
static int xrc_qp_modify(struct world *w, void *cmd)
{
	struct dapx_xrc_qp_modify *c = cmd;

	c->qp.state = DAPX_QP_INIT;
	c->qp.port = 1;
	return own_xrc_qp(w, &c->xrcd, &c->qp_num);
}

static void xrc_port_too_high(struct world *w, void *cmd)
{
	struct dapx_xrc_qp_modify *c = cmd;

	c->qp.port = w->a.limits.out_ports + 1;
}

static const struct reject rejects_xrc_qp_modify[] = {
	REJECT_FLAGS(xrc_qp_modify, flags, 0ULL),
	REJECT_HANDLE(xrc_qp_modify, xrcd),
	REJECT_BY(xrc_qp_modify, xrcd, other_domain, EINVAL),
	REJECT(xrc_qp_modify, qp_num, 0, EINVAL),
	REJECT(xrc_qp_modify, qp_num, ~0U, EINVAL),
	REJECT_BY(xrc_qp_modify, qp_num, qp_of_ep, EINVAL),
	REJECT_BY(xrc_qp_modify, qp_num, unregistered_qp, EACCES),
	REJECT(xrc_qp_modify, qp.state, DAPX_QP_RESET, EINVAL),
	REJECT(xrc_qp_modify, qp.state, DAPX_QP_ERROR, EINVAL),
	REJECT(xrc_qp_modify, qp.state, DAPX_QP_RTS, EBADFD),
	REJECT(xrc_qp_modify, qp.port, 0, EINVAL),
	REJECT_BY(xrc_qp_modify, qp.port, xrc_port_too_high, EINVAL),
	REJECT(xrc_qp_modify, qp.pkey_index, 0xffff, EINVAL),
	REJECT(xrc_qp_modify, qp.refused, 0xff, EINVAL),
	REJECT(xrc_qp_modify, qp.__reserved, 1, EINVAL),
	{}
};

static int xrc_qp_disconnect(struct world *w, void *cmd)
{
	struct dapx_xrc_qp_disconnect *c = cmd;
	struct dapx_xrc_qp_modify init = {};

	if (xrc_qp_modify(w, &init))
		return -1;
	if (_test_cmd_xrc_qp_modify(w->a.fd, &init))
		return because("DAPX_XRC_QP_MODIFY to INIT: %m");
	c->xrcd = init.xrcd;
	c->qp_num = init.qp_num;
	return 0;
}

/* Not connected, and not about to be. */
static void idle_qp(struct world *w, void *cmd)
{
	xrc_qp_make(&w->a, &XRC_QP(cmd)->qp_num);
}

static const struct reject rejects_xrc_qp_disconnect[] = {
	REJECT_FLAGS(xrc_qp_disconnect, flags, 0ULL),
	REJECT_HANDLE(xrc_qp_disconnect, xrcd),
	REJECT_BY(xrc_qp_disconnect, xrcd, other_domain, EINVAL),
	REJECT(xrc_qp_disconnect, qp_num, 0, EINVAL),
	REJECT(xrc_qp_disconnect, qp_num, ~0U, EINVAL),
	REJECT_BY(xrc_qp_disconnect, qp_num, qp_of_ep, EINVAL),
	REJECT_BY(xrc_qp_disconnect, qp_num, unregistered_qp, EACCES),
	REJECT_BY(xrc_qp_disconnect, qp_num, idle_qp, EBADFD),
	{}
};

static int xrc_qp_modify_rtr(struct world *w, void *cmd)
{
	struct dapx_xrc_qp_modify *c = cmd, init = {};
	__u8 gid[16];
	int index;

	index = host_gid_index(&w->a, gid);
	if (index < 0 || host_gid_index(&w->b, c->qp.dgid) < 0 ||
	    xrc_qp_modify(w, &init))
		return -1;
	if (_test_cmd_xrc_qp_modify(w->a.fd, &init))
		return because("DAPX_XRC_QP_MODIFY to INIT: %m");
	c->xrcd = init.xrcd;
	c->qp_num = init.qp_num;
	c->qp.state = DAPX_QP_RTR;
	c->qp.dest_qp_num = 17;
	c->qp.port = 1;			/* as INIT has it */
	c->qp.sgid_index = index;
	c->qp.path_mtu = 3;
	c->qp.hop_limit = 64;
	c->qp.max_dest_rd_atomic = 1;
	return 0;
}

static const struct reject rejects_xrc_qp_modify_rtr[] = {
	REJECT_BY(xrc_qp_modify, qp_num, unregistered_qp, EACCES),
	REJECT(xrc_qp_modify, qp.state, DAPX_QP_RESET, EINVAL),
	REJECT(xrc_qp_modify, qp.state, DAPX_QP_INIT, EBADFD),
	REJECT(xrc_qp_modify, qp.state, DAPX_QP_RTS, EBADFD),
	REJECT(xrc_qp_modify, qp.state, DAPX_QP_ERROR, EINVAL),
	REJECT(xrc_qp_modify, qp.dest_qp_num, 1 << 24, EINVAL),
	REJECT(xrc_qp_modify, qp.rq_psn, 1 << 24, EINVAL),
	REJECT(xrc_qp_modify, qp.dlid, 1, EINVAL),
	REJECT(xrc_qp_modify, qp.sgid_index, 255, EINVAL),
	REJECT(xrc_qp_modify, qp.sl, 16, EINVAL),
	REJECT(xrc_qp_modify, qp.flow_label, 1 << 20, EINVAL),
	REJECT(xrc_qp_modify, qp.path_mtu, 0, EINVAL),
	REJECT(xrc_qp_modify, qp.path_mtu, 6, EINVAL),
	REJECT(xrc_qp_modify, qp.min_rnr_timer, 32, EINVAL),
	REJECT_OVER(xrc_qp_modify, qp.max_dest_rd_atomic, out_max_dest_rd_atomic),
	UNKNOWABLE(xrc_qp_modify, qp.dgid),
	ANY(xrc_qp_modify, qp.hop_limit),
	ANY(xrc_qp_modify, qp.traffic_class),
	{}
};

static int xrc_qp_modify_rts(struct world *w, void *cmd)
{
	struct dapx_xrc_qp_modify *c = cmd;

	if (xrc_qp_modify_rtr(w, cmd))
		return -1;
	c->size = sizeof(*c);
	if (_test_cmd_xrc_qp_modify(w->a.fd, c))
		return because("DAPX_XRC_QP_MODIFY to RTR: %m");
	c->qp.state = DAPX_QP_RTS;
	c->qp.timeout = 14;
	c->qp.retry_count = 7;
	c->qp.rnr_retry = 7;
	return 0;
}

static const struct reject rejects_xrc_qp_modify_rts[] = {
	REJECT_BY(xrc_qp_modify, qp_num, unregistered_qp, EACCES),
	REJECT(xrc_qp_modify, qp.state, DAPX_QP_INIT, EBADFD),
	REJECT(xrc_qp_modify, qp.state, DAPX_QP_RTR, EBADFD),
	REJECT(xrc_qp_modify, qp.state, DAPX_QP_ERROR, EINVAL),
	REJECT(xrc_qp_modify, qp.sq_psn, 1 << 24, EINVAL),
	REJECT(xrc_qp_modify, qp.timeout, 32, EINVAL),
	REJECT(xrc_qp_modify, qp.retry_count, 8, EINVAL),
	REJECT(xrc_qp_modify, qp.rnr_retry, 8, EINVAL),
	REJECT_OVER(xrc_qp_modify, qp.max_rd_atomic, out_max_rd_atomic),
	{}
};

static int xrc_qp_accept(struct world *w, void *cmd)
{
	static const struct dapx_cm_listen usual;
	struct dapx_xrc_qp_accept *c = cmd;

	if (own_xrc_qp(w, &c->xrcd, &c->qp_num))
		return -1;
	c->private_data_len = w->a.limits.out_max_accept_data - 8;
	return pending_xrc_request(w, &usual, &c->cm);
}

static void xrc_accept_no_request(struct world *w, void *cmd)
{
	struct dapx_xrc_qp_accept *c = cmd;

	c->cm = w->idle_cm;
}

static void xrc_accept_plain(struct world *w, void *cmd)
{
	struct dapx_xrc_qp_accept *c = cmd;

	pending_request(w, &c->cm);
}

/* The listener has an endpoint for it. */
static void xrc_accept_reserved(struct world *w, void *cmd)
{
	struct dapx_cm_listen mode = { .mode = DAPX_LISTEN_RESERVED };
	struct dapx_xrc_qp_accept *c = cmd;

	mode.ep = spare_ep(w, &w->a)->handle;
	pending_xrc_request(w, &mode, &c->cm);
}

/* It is connected. */
static void xrc_accept_twice(struct world *w, void *cmd)
{
	struct dapx_xrc_qp_accept *c = cmd;

	xrc_qp_make(&w->a, &c->qp_num);
	xrc_connect(spare_xrc_ep(w, &w->b), &w->a, c->qp_num);
}

static void xrc_accept_too_long(struct world *w, void *cmd)
{
	struct dapx_xrc_qp_accept *c = cmd;

	c->private_data_len++;
}

static const struct reject rejects_xrc_qp_accept[] = {
	REJECT_FLAGS(xrc_qp_accept, flags, 0ULL),
	REJECT_HANDLE(xrc_qp_accept, xrcd),
	REJECT_BY(xrc_qp_accept, xrcd, other_domain, EINVAL),
	REJECT(xrc_qp_accept, qp_num, 0, EINVAL),
	REJECT(xrc_qp_accept, qp_num, ~0U, EINVAL),
	REJECT_BY(xrc_qp_accept, qp_num, qp_of_ep, EINVAL),
	REJECT_BY(xrc_qp_accept, qp_num, unregistered_qp, EACCES),
	REJECT_BY(xrc_qp_accept, qp_num, xrc_accept_twice, EBADFD),
	REJECT_HANDLE(xrc_qp_accept, cm),
	REJECT_BY(xrc_qp_accept, cm, xrc_accept_no_request, EBADFD),
	REJECT_BY(xrc_qp_accept, cm, xrc_accept_plain, EPROTO),
	REJECT_BY(xrc_qp_accept, cm, xrc_accept_reserved, EBADFD),
	REJECT_BYTES(xrc_qp_accept, __reserved),
	REJECT_BY(xrc_qp_accept, private_data_len, xrc_accept_too_long, EINVAL),
	REJECT(xrc_qp_accept, private_data_len, 0xffff, EINVAL),
	ANY(xrc_qp_accept, private_data),
	{}
};

static int xrc_qp_query(struct world *w, void *cmd)
{
	struct dapx_xrc_qp_query *c = cmd;

	return own_xrc_qp(w, &c->xrcd, &c->qp_num);
}

static const struct reject rejects_xrc_qp_query[] = {
	REJECT_FLAGS(xrc_qp_query, flags, 0ULL),
	REJECT_HANDLE(xrc_qp_query, xrcd),
	REJECT_BY(xrc_qp_query, xrcd, other_domain, EINVAL),
	REJECT(xrc_qp_query, qp_num, 0, EINVAL),
	REJECT(xrc_qp_query, qp_num, ~0U, EINVAL),
	REJECT_BY(xrc_qp_query, qp_num, qp_of_ep, EINVAL),
	{}
};

/* Who has the domain may ask. */
static int xrc_qp_query_other(struct world *w, void *cmd)
{
	struct dapx_xrc_qp_query *c = cmd;

	if (share_domain(w))
		return -1;
	c->xrcd = w->a.xrcd;
	return xrc_qp_make(&w->other, &c->qp_num);
}

static const struct reject rejects_xrc_qp_query_other[] = {
	REJECT_BY(xrc_qp_query, xrcd, other_domain, EINVAL),
	{}
};

/* ---- the tests, once for each scene ---- */

FIXTURE(cmd)
{
	struct world w;
	__u8 *room;			/* two pages, and one that is not there */
	__u8 cmd[1024];
};

FIXTURE_VARIANT(cmd)
{
	unsigned int request;
	size_t size;
	size_t least;			/* what is taken */
	int (*base)(struct world *w, void *cmd);
	const struct reject *rejects;
	unsigned int traits;
};

enum trait {
	PLAIN = 0,
	OUTS = 1 << 0,			/* something is written to its struct */
	QP = 1 << 1,			/* needs the exchange of QP numbers */
};

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

FIXTURE_SETUP(cmd)
{
	struct dapx_pd_create pd = {};
	struct dapx_free gone = {};

	OK(host_set_up(&self->w.a, 0));
	OK(host_set_up(&self->w.b, 1));
	self->w.ear = self->w.a;
	memset(&self->w.ear.conn, 0, sizeof(self->w.ear.conn));
	self->w.fd = self->w.a.fd;
	if ((variant->traits & QP) &&
	    !(self->w.a.limits.out_caps & DAPX_DEVICE_QP_EXCHANGE))
		SKIP(return, "%s has no exchange of QP numbers",
		     self->w.a.device);
	self->w.info = test_cmd(info, self->w.fd, 0);
	pd = test_cmd(pd_create, self->w.fd, 0);
	self->w.stale = pd.out_pd;
	gone.handle = pd.out_pd;
	ASSERT_EQ(0, _test_cmd_free(self->w.fd, &gone));
	OK(new_cm(&self->w, &self->w.idle_cm));

	self->room = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->room);
	/* Not unmapped: something else would be mapped there. */
	ASSERT_EQ(0, mprotect(self->room + 2 * PAGE, PAGE, PROT_NONE));
}

FIXTURE_TEARDOWN(cmd)
{
	if (self->w.fd != self->w.a.fd)
		close(self->w.fd);
	host_close(&self->w.a);
	host_close(&self->w.b);
	if (self->w.other.device)
		host_close(&self->w.other);
	munmap(self->room, 3 * PAGE);
}

#define SCENE(scene, name, upper, base_, traits_)			\
	{								\
		.request = DAPX_##upper,				\
		.size = sizeof(struct dapx_##name),			\
		.least = sizeof(struct dapx_##name),			\
		.base = base_,						\
		.rejects = rejects_##scene,				\
		.traits = traits_,					\
	}

/* One that has grown: @last was the last member at first. */
#define GROWN_SCENE(scene_, name, upper, base_, traits_, last)		\
	{								\
		.request = DAPX_##upper,				\
		.size = sizeof(struct dapx_##name),			\
		.least = offsetof(struct dapx_##name, last) +		\
			 sizeof_member(struct dapx_##name, last),	\
		.base = base_,						\
		.rejects = rejects_##scene_,				\
		.traits = traits_,					\
	}

FIXTURE_VARIANT_ADD(cmd, info)
	SCENE(info, info, INFO, info, OUTS);
FIXTURE_VARIANT_ADD(cmd, attach)
	SCENE(attach, attach, ATTACH, attach, PLAIN);
FIXTURE_VARIANT_ADD(cmd, query_device)
	SCENE(query_device, query_device, QUERY_DEVICE, query_device, OUTS);
FIXTURE_VARIANT_ADD(cmd, query_object)
	SCENE(query_object, query_object, QUERY_OBJECT, query_object, OUTS);
FIXTURE_VARIANT_ADD(cmd, free)
	SCENE(free, free, FREE, free_object, PLAIN);
FIXTURE_VARIANT_ADD(cmd, doorbell)
	SCENE(doorbell, doorbell, DOORBELL, doorbell, PLAIN);
FIXTURE_VARIANT_ADD(cmd, doorbell_ep)
	SCENE(doorbell_ep, doorbell, DOORBELL, doorbell_ep, PLAIN);
FIXTURE_VARIANT_ADD(cmd, doorbell_srq)
	SCENE(doorbell_srq, doorbell, DOORBELL, doorbell_srq, PLAIN);
FIXTURE_VARIANT_ADD(cmd, pd_create)
	SCENE(pd_create, pd_create, PD_CREATE, pd_create, OUTS);
FIXTURE_VARIANT_ADD(cmd, mr_create)
	SCENE(mr_create, mr_create, MR_CREATE, mr_create, OUTS);
FIXTURE_VARIANT_ADD(cmd, mr_create_xrc)
	SCENE(mr_create_xrc, mr_create, MR_CREATE, mr_create_xrc, OUTS);
FIXTURE_VARIANT_ADD(cmd, mr_modify)
	SCENE(mr_modify, mr_modify, MR_MODIFY, mr_modify, PLAIN);
FIXTURE_VARIANT_ADD(cmd, evd_create)
	SCENE(evd_create, evd_create, EVD_CREATE, evd_create, OUTS);
FIXTURE_VARIANT_ADD(cmd, evd_wait)
	SCENE(evd_wait, evd_wait, EVD_WAIT, evd_wait, OUTS);
FIXTURE_VARIANT_ADD(cmd, evd_resize)
	SCENE(evd_resize, evd_resize, EVD_RESIZE, evd_resize, OUTS);
FIXTURE_VARIANT_ADD(cmd, evd_eventfd)
	SCENE(evd_eventfd, evd_eventfd, EVD_EVENTFD, evd_eventfd, PLAIN);
FIXTURE_VARIANT_ADD(cmd, evd_post)
	SCENE(evd_post, evd_post, EVD_POST, evd_post, PLAIN);
FIXTURE_VARIANT_ADD(cmd, srq_create)
	SCENE(srq_create, srq_create, SRQ_CREATE, srq_create, OUTS);
FIXTURE_VARIANT_ADD(cmd, srq_create_xrc)
	SCENE(srq_create_xrc, srq_create, SRQ_CREATE, srq_create_xrc, OUTS);
FIXTURE_VARIANT_ADD(cmd, srq_modify)
	SCENE(srq_modify, srq_modify, SRQ_MODIFY, srq_modify, PLAIN);
FIXTURE_VARIANT_ADD(cmd, srq_modify_xrc)
	SCENE(srq_modify_xrc, srq_modify, SRQ_MODIFY, srq_modify_xrc, PLAIN);
FIXTURE_VARIANT_ADD(cmd, srq_query)
	SCENE(srq_query, srq_query, SRQ_QUERY, srq_query, OUTS);
FIXTURE_VARIANT_ADD(cmd, srq_resize)
	SCENE(srq_resize, srq_resize, SRQ_RESIZE, srq_resize_scene, OUTS);
FIXTURE_VARIANT_ADD(cmd, ep_establish)
	SCENE(ep_establish, ep_establish, EP_ESTABLISH, ep_establish, QP);
FIXTURE_VARIANT_ADD(cmd, ep_resize)
	SCENE(ep_resize, ep_resize, EP_RESIZE, ep_resize_scene, OUTS);
FIXTURE_VARIANT_ADD(cmd, ep_resize_srq)
	SCENE(ep_resize_srq, ep_resize, EP_RESIZE, ep_resize_srq, OUTS);
FIXTURE_VARIANT_ADD(cmd, ep_create)
	SCENE(ep_create, ep_create, EP_CREATE, ep_create_base, OUTS);
FIXTURE_VARIANT_ADD(cmd, ep_create_srq)
	SCENE(ep_create_srq, ep_create, EP_CREATE, ep_create_srq, OUTS);
FIXTURE_VARIANT_ADD(cmd, ep_create_xrc)
	SCENE(ep_create_xrc, ep_create, EP_CREATE, ep_create_xrc, OUTS);
FIXTURE_VARIANT_ADD(cmd, ep_query)
	GROWN_SCENE(ep_query, ep_query, EP_QUERY, ep_query, OUTS, out_recv_ring);
FIXTURE_VARIANT_ADD(cmd, ep_modify)
	SCENE(ep_modify, ep_modify, EP_MODIFY, ep_modify, PLAIN);
FIXTURE_VARIANT_ADD(cmd, ep_modify_rnr_timer)
	SCENE(ep_modify_rnr_timer, ep_modify, EP_MODIFY, ep_modify_rnr_timer, QP);
FIXTURE_VARIANT_ADD(cmd, ep_modify_init)
	SCENE(ep_modify_init, ep_modify, EP_MODIFY, ep_modify_init, QP);
FIXTURE_VARIANT_ADD(cmd, ep_modify_rtr)
	SCENE(ep_modify_rtr, ep_modify, EP_MODIFY, ep_modify_rtr, QP);
FIXTURE_VARIANT_ADD(cmd, ep_modify_rts)
	SCENE(ep_modify_rts, ep_modify, EP_MODIFY, ep_modify_rts, QP);
FIXTURE_VARIANT_ADD(cmd, ep_connect)
	SCENE(ep_connect, ep_connect, EP_CONNECT, ep_connect_dst, PLAIN);
FIXTURE_VARIANT_ADD(cmd, ep_connect_cm)
	SCENE(ep_connect_cm, ep_connect, EP_CONNECT, ep_connect_cm, PLAIN);
FIXTURE_VARIANT_ADD(cmd, ep_connect_xrc)
	SCENE(ep_connect_xrc, ep_connect, EP_CONNECT, ep_connect_xrc, PLAIN);
FIXTURE_VARIANT_ADD(cmd, ep_accept)
	SCENE(ep_accept, ep_accept, EP_ACCEPT, ep_accept_base, PLAIN);
FIXTURE_VARIANT_ADD(cmd, ep_disconnect)
	SCENE(ep_disconnect, ep_disconnect, EP_DISCONNECT, ep_disconnect, PLAIN);
FIXTURE_VARIANT_ADD(cmd, ep_reset)
	SCENE(ep_reset, ep_reset, EP_RESET, ep_reset, OUTS);
FIXTURE_VARIANT_ADD(cmd, cm_create)
	SCENE(cm_create, cm_create, CM_CREATE, cm_create, OUTS);
FIXTURE_VARIANT_ADD(cmd, cm_bind)
	SCENE(cm_bind, cm_bind, CM_BIND, cm_bind, PLAIN);
FIXTURE_VARIANT_ADD(cmd, cm_listen)
	SCENE(cm_listen, cm_listen, CM_LISTEN, cm_listen, PLAIN);
FIXTURE_VARIANT_ADD(cmd, cm_listen_reserved)
	SCENE(cm_listen_reserved, cm_listen, CM_LISTEN, cm_listen_reserved, PLAIN);
FIXTURE_VARIANT_ADD(cmd, cm_listen_tentative)
	SCENE(cm_listen_tentative, cm_listen, CM_LISTEN, cm_listen_tentative, PLAIN);
FIXTURE_VARIANT_ADD(cmd, cm_resolve)
	SCENE(cm_resolve, cm_resolve, CM_RESOLVE, cm_resolve, PLAIN);
FIXTURE_VARIANT_ADD(cmd, cm_query)
	GROWN_SCENE(cm_query, cm_query, CM_QUERY, cm_query, OUTS, out_remote);
FIXTURE_VARIANT_ADD(cmd, cm_reject)
	SCENE(cm_reject, cm_reject, CM_REJECT, cm_reject, PLAIN);
FIXTURE_VARIANT_ADD(cmd, cm_take)
	SCENE(cm_take, cm_take, CM_TAKE, cm_take, PLAIN);
FIXTURE_VARIANT_ADD(cmd, cm_modify)
	SCENE(cm_modify, cm_modify, CM_MODIFY, cm_modify, PLAIN);
FIXTURE_VARIANT_ADD(cmd, cm_ack)
	SCENE(cm_ack, cm_ack, CM_ACK, cm_ack, PLAIN);
FIXTURE_VARIANT_ADD(cmd, rmr_create)
	SCENE(rmr_create, rmr_create, RMR_CREATE, rmr_create, OUTS);
FIXTURE_VARIANT_ADD(cmd, rmr_bind)
	SCENE(rmr_bind, rmr_bind, RMR_BIND, rmr_bind, OUTS);
FIXTURE_VARIANT_ADD(cmd, rmr_unbind)
	SCENE(rmr_unbind, rmr_bind, RMR_BIND, rmr_unbind, OUTS);
FIXTURE_VARIANT_ADD(cmd, rmr_query)
	SCENE(rmr_query, rmr_query, RMR_QUERY, rmr_query, OUTS);
FIXTURE_VARIANT_ADD(cmd, xrcd_open)
	SCENE(xrcd_open, xrcd_open, XRCD_OPEN, xrcd_open, OUTS);
FIXTURE_VARIANT_ADD(cmd, xrc_qp_create)
	SCENE(xrc_qp_create, xrc_qp_create, XRC_QP_CREATE, xrc_qp_create, OUTS);
FIXTURE_VARIANT_ADD(cmd, xrc_qp_register)
	SCENE(xrc_qp_register, xrc_qp_register, XRC_QP_REGISTER, xrc_qp_register, OUTS);
FIXTURE_VARIANT_ADD(cmd, xrc_qp_unregister)
	SCENE(xrc_qp_unregister, xrc_qp_unregister, XRC_QP_UNREGISTER, xrc_qp_unregister, PLAIN);
FIXTURE_VARIANT_ADD(cmd, xrc_qp_disconnect)
	SCENE(xrc_qp_disconnect, xrc_qp_disconnect, XRC_QP_DISCONNECT, xrc_qp_disconnect, QP);
FIXTURE_VARIANT_ADD(cmd, xrc_qp_modify)
	SCENE(xrc_qp_modify, xrc_qp_modify, XRC_QP_MODIFY, xrc_qp_modify, QP);
FIXTURE_VARIANT_ADD(cmd, xrc_qp_modify_rtr)
	SCENE(xrc_qp_modify_rtr, xrc_qp_modify, XRC_QP_MODIFY, xrc_qp_modify_rtr, QP);
FIXTURE_VARIANT_ADD(cmd, xrc_qp_modify_rts)
	SCENE(xrc_qp_modify_rts, xrc_qp_modify, XRC_QP_MODIFY, xrc_qp_modify_rts, QP);
FIXTURE_VARIANT_ADD(cmd, xrc_qp_accept)
	SCENE(xrc_qp_accept, xrc_qp_accept, XRC_QP_ACCEPT, xrc_qp_accept, PLAIN);
FIXTURE_VARIANT_ADD(cmd, xrc_qp_query)
	SCENE(xrc_qp_query, xrc_qp_query, XRC_QP_QUERY, xrc_qp_query, OUTS);
FIXTURE_VARIANT_ADD(cmd, xrc_qp_query_other)
	SCENE(xrc_qp_query_other, xrc_qp_query, XRC_QP_QUERY, xrc_qp_query_other, OUTS);

#ifndef DAPX_SCENES_ONLY

/* Sets up the scene, and puts the good call into @cmd. */
#define SET_SCENE()							\
	({								\
		memset(self->cmd, 0, sizeof(self->cmd));		\
		OK(variant->base(&self->w, self->cmd));			\
		*(__u32 *)self->cmd = variant->size;			\
	})

/* A call that must fail and leave no trace: not in its struct, nor elsewhere. */
#define REFUSED(expected, arg, size)					\
	({								\
		struct snapshot __before, __after;			\
		__u8 __copy[2 * PAGE];					\
		int __got;						\
									\
		OK(snapshot_take(self->w.fd, &__before));		\
		memcpy(__copy, arg, size);				\
		__got = ioctl(self->w.fd, variant->request, arg) ?	\
			errno : 0;					\
		EXPECT_EQ(expected, __got);				\
		EXPECT_EQ(0, memcmp(__copy, arg, size));		\
		OK(snapshot_take(self->w.fd, &__after));		\
		EXPECT_TRUE(snapshot_same(&__before, &__after))		\
			TH_LOG("the refused call changed %s", why());	\
		__got;							\
	})

#define ACCEPTED(arg)							\
	({								\
		ASSERT_EQ(0, ioctl(self->w.fd, variant->request, arg))	\
			TH_LOG("the good call fails: %s", strerror(errno)); \
	})

TEST_F(cmd, length)
{
	size_t size = variant->size, i;
	__u8 *room = self->room;

	SET_SCENE();
	memcpy(room, self->cmd, size);
	*(__u32 *)room = 0;
	REFUSED(EINVAL, room, size);
	*(__u32 *)room = 4;
	REFUSED(EINVAL, room, size);
	*(__u32 *)room = variant->least - 1;
	REFUSED(EINVAL, room, size);
	if (variant->least < size) {
		/* As an older library sends it: what is behind it stays. */
		memcpy(room, self->cmd, variant->least);
		memset(room + variant->least, 0x5c, size - variant->least);
		*(__u32 *)room = variant->least;
		ACCEPTED(room);
		for (i = variant->least; i < size; i++)
			EXPECT_EQ(0x5c, room[i]);
		memcpy(room, self->cmd, size);
	}

	*(__u32 *)room = size + 1;
	room[size] = 1;
	REFUSED(E2BIG, room, size + 1);
	room[size] = 0;
	*(__u32 *)room = PAGE;
	room[PAGE - 1] = 0x80;
	REFUSED(E2BIG, room, PAGE);
	room[PAGE - 1] = 0;
	*(__u32 *)room = PAGE + 1;
	REFUSED(E2BIG, room, PAGE + 1);

	/* Longer, with zeroes. What lies behind is not looked at. */
	*(__u32 *)room = PAGE;
	room[PAGE] = 1;
	ACCEPTED(room);
	EXPECT_EQ(PAGE, *(__u32 *)room);

	/* Of just this length. */
	SET_SCENE();
	ACCEPTED(self->cmd);
}

TEST_F(cmd, fault)
{
	__u8 *edge = self->room + 2 * PAGE;
	size_t size = variant->size;
	int got;

	/* Nothing of it is there. */
	EXPECT_EQ(-1, ioctl(self->w.fd, variant->request, NULL));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, ioctl(self->w.fd, variant->request, edge));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, ioctl(self->w.fd, variant->request, (void *)-4096L));
	EXPECT_EQ(EFAULT, errno);

	/* Half of its length, half of it, all but its last byte. */
	SET_SCENE();
	memcpy(edge - 2, self->cmd, 2);
	REFUSED(EFAULT, edge - 2, 2);
	memcpy(edge - size / 2, self->cmd, size / 2);
	REFUSED(EFAULT, edge - size / 2, size / 2);
	memcpy(edge - (size - 1), self->cmd, size - 1);
	REFUSED(EFAULT, edge - (size - 1), size - 1);

	/* It is there, but not the tail that it says it has. */
	memcpy(edge - size, self->cmd, size);
	*(__u32 *)(edge - size) = size + 64;
	REFUSED(EFAULT, edge - size, size);
	*(__u32 *)(edge - size) = ~0U;
	REFUSED(E2BIG, edge - size, size);
	*(__u32 *)(edge - size) = size;

	/* It can be read only: enough, unless something is to be written. */
	ASSERT_EQ(0, mprotect(self->room, 2 * PAGE, PROT_READ));
	if (variant->traits & OUTS) {
		got = REFUSED(EFAULT, edge - size, size);
	} else {
		got = ioctl(self->w.fd, variant->request, edge - size) ?
			errno : 0;
		EXPECT_EQ(0, got);
	}
	ASSERT_EQ(0, mprotect(self->room, 2 * PAGE, PROT_READ | PROT_WRITE));

	/* At the very edge. */
	if (got) {
		ACCEPTED(edge - size);
	} else {
		SET_SCENE();
		memcpy(edge - size, self->cmd, size);
		ACCEPTED(edge - size);
	}
}

static __u64 get_member(const struct reject *reject, const void *cmd)
{
	__u64 value = 0;

	memcpy(&value, (const __u8 *)cmd + reject->offset, reject->size);
	return value;
}

static void set_member(const struct reject *reject, void *cmd, __u64 value)
{
	/* Little endian: the low bytes are first. */
	memcpy((__u8 *)cmd + reject->offset, &value, reject->size);
}

#define REFUSED_HERE(...)						\
	({								\
		int __is = REFUSED(reject->error, cmd, variant->size);	\
									\
		EXPECT_EQ(reject->error, __is)				\
			TH_LOG(__VA_ARGS__);				\
	})

TEST_F(cmd, rejection)
{
	const struct reject *reject;
	__u32 limit;
	__u8 cmd[1024];
	__u64 value;
	size_t i;

	SET_SCENE();
	for (reject = variant->rejects; reject->member; reject++) {
		memcpy(cmd, self->cmd, sizeof(cmd));
		switch (reject->kind) {
		case REJECT_VALUE:
			set_member(reject, cmd, reject->value);
			REFUSED_HERE("%s is 0x%llx", reject->member,
				     reject->value);
			break;
		case REJECT_EACH_BYTE:
			for (i = 0; i < reject->size; i++) {
				cmd[reject->offset + i] = 1;
				REFUSED_HERE("%s, byte %zu is set",
					     reject->member, i);
				cmd[reject->offset + i] = 0;
			}
			break;
		case REJECT_EACH_BIT:
			value = get_member(reject, cmd);
			for (i = 0; i < reject->size * 8; i++) {
				if (!(reject->value & 1ULL << i))
					continue;
				set_member(reject, cmd, value | 1ULL << i);
				REFUSED_HERE("%s, bit %zu is set",
					     reject->member, i);
			}
			break;
		case REJECT_BAD_HANDLE:
			set_member(reject, cmd, NO_HANDLE);
			REFUSED_HERE("%s names nothing", reject->member);
			set_member(reject, cmd, self->w.stale);
			REFUSED_HERE("%s was freed", reject->member);
			value = get_member(reject, self->cmd);
			if (value)
				value = test_cmd(query_object, self->w.fd,
						 .handle = value).out_type;
			set_member(reject, cmd, value == DAPX_OBJECT_PD ?
				   self->w.a.done.handle : self->w.a.pd);
			REFUSED_HERE("%s is of another class", reject->member);
			if (reject->value) {
				set_member(reject, cmd, 0);
				REFUSED_HERE("%s is 0", reject->member);
			}
			break;
		case REJECT_ABOVE_DEVICE:
		case REJECT_ABOVE_MODULE:
			limit = 0;
			if (reject->kind == REJECT_ABOVE_MODULE)
				memcpy(&limit, (__u8 *)&self->w.info +
				       reject->value, sizeof(limit));
			else
				memcpy(&limit, (__u8 *)&self->w.a.limits +
				       (__u32)reject->value,
				       reject->value >> 32);
			ASSERT_NE(0, limit);
			if (reject->size == 2 && limit >= 0xffff)
				break;
			set_member(reject, cmd, limit + 1);
			REFUSED_HERE("%s is %u, the limit is %u",
				     reject->member, limit + 1, limit);
			break;
		case REJECT_CHANGED:
			reject->change(&self->w, cmd);
			REFUSED_HERE("%s was spoilt", reject->member);
			break;
		case REJECT_NOTHING:
		case REJECT_NEVER:
			break;
		}
	}

	/* Unspoilt it succeeds, whatever stands in members that take anything. */
	for (reject = variant->rejects; reject->member; reject++)
		if (reject->kind == REJECT_NOTHING)
			memset(self->cmd + reject->offset, 0xff, reject->size);
	ACCEPTED(self->cmd);
}

TEST_F(cmd, unattached)
{
	int fd;

	SET_SCENE();
	if (variant->request == DAPX_INFO || variant->request == DAPX_ATTACH)
		return;
	fd = open(DAPX_NODE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_ERRNO(EBADFD, ioctl(fd, variant->request, self->cmd));
	close(fd);
}

/* ---- numbers that are no commands ---- */

TEST(unknown_command)
{
	struct dapx_info cmd = { .size = sizeof(cmd) };
	struct host a;
	int fd, nr;

	fd = open(DAPX_NODE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	OK(host_set_up(&a, 0));
	for (nr = 0; nr < 256; nr++) {
		if (nr >= DAPX_CMD_INFO && nr <= DAPX_CMD_EP_ESTABLISH)
			continue;
		EXPECT_ERRNO(ENOTTY, ioctl(fd, _IO(DAPX_TYPE, nr), &cmd));
		EXPECT_ERRNO(ENOTTY, ioctl(a.fd, _IO(DAPX_TYPE, nr), &cmd));
		/* Not even its argument is looked at. */
		EXPECT_ERRNO(ENOTTY, ioctl(a.fd, _IO(DAPX_TYPE, nr), NULL));
	}
	/* Another driver's, and a direction that is not in use. */
	EXPECT_ERRNO(ENOTTY, ioctl(a.fd, _IO(';', DAPX_CMD_INFO), &cmd));
	EXPECT_ERRNO(ENOTTY, ioctl(a.fd, _IOWR(DAPX_TYPE, DAPX_CMD_INFO,
					       struct dapx_info), &cmd));
	EXPECT_EQ(-1, ioctl(a.fd, 0));
	/* Reading and writing is not what the file is for. */
	EXPECT_EQ(-1, read(a.fd, &cmd, sizeof(cmd)));
	EXPECT_EQ(-1, write(a.fd, &cmd, sizeof(cmd)));
	host_close(&a);
	close(fd);
}

TEST_HARNESS_MAIN

#endif /* DAPX_SCENES_ONLY */
