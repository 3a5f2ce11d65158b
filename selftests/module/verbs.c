// SPDX-License-Identifier: GPL-2.0
/*
 * Verbs, and the XRC calls of OFED 1.x, on dapx: linked with libdapx-verbs ahead of
 * libibverbs, as a program of those times would be.
 *
 * Tests that begin with open_xrc_domain are named after the sentences of that manual
 * page.
 */
#include <infiniband/verbs.h>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/dice.h"
#include "harness/fabric.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 120

#define MEMORY 65536
#define DEPTH 32
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* The synopses of the manual pages, as a compiler checks them. */
static struct ibv_xrc_domain *(*const open_domain)(struct ibv_context *context, int fd,
						   int oflag) = ibv_open_xrc_domain;
static int (*const close_domain)(struct ibv_xrc_domain *d) = ibv_close_xrc_domain;
static struct ibv_srq *(*const create_xrc_srq)(struct ibv_pd *pd,
					       struct ibv_xrc_domain *xrc_domain,
					       struct ibv_cq *xrc_cq,
					       struct ibv_srq_init_attr *srq_init_attr) =
	ibv_create_xrc_srq;

/* Everything that one host has. */
struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	char *memory;
	union ibv_gid gid;
	int gid_index;
};

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list, **one;
	struct ibv_context *context = NULL;

	list = ibv_get_device_list(NULL);
	for (one = list; list && *one; one++)
		if (!strcmp(ibv_get_device_name(*one), name))
			context = ibv_open_device(*one);
	if (list)
		ibv_free_device_list(list);
	return context;
}

static struct ibv_context *open_dapx(const char *device)
{
	char name[64];

	snprintf(name, sizeof(name), "dapx_%s", device);
	return open_device(name);
}

/* RoCE version 2 by IPv4, as its address is. */
static int find_gid(struct side *side)
{
	static const __u8 mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_port_attr port;
	int i;

	if (ibv_query_port(side->context, 1, &port))
		return because("ibv_query_port: %s", strerror(errno));
	for (i = 0; i < port.gid_tbl_len; i++) {
		struct ibv_gid_entry entry;

		if (ibv_query_gid_ex(side->context, 1, i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    memcmp(entry.gid.raw, mapped, sizeof(mapped)))
			continue;
		side->gid = entry.gid;
		side->gid_index = i;
		return 0;
	}
	return because("no GID of an IPv4 address");
}

static int side_open(struct side *side, const char *device)
{
	memset(side, 0, sizeof(*side));
	side->context = open_dapx(device);
	if (!side->context)
		return because("no dapx_%s: %s", device, strerror(errno));
	side->pd = ibv_alloc_pd(side->context);
	side->channel = ibv_create_comp_channel(side->context);
	if (!side->pd || !side->channel)
		return because("PD, channel: %s", strerror(errno));
	side->cq = ibv_create_cq(side->context, 2 * DEPTH, side, side->channel, 0);
	side->memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	if (!side->cq || side->memory == MAP_FAILED)
		return because("CQ, memory: %s", strerror(errno));
	side->mr = ibv_reg_mr(side->pd, side->memory, MEMORY, ACCESS);
	if (!side->mr)
		return because("ibv_reg_mr: %s", strerror(errno));
	return find_gid(side);
}

static int side_close(struct side *side)
{
	int ret;

	ret = ibv_dereg_mr(side->mr) ?: ibv_destroy_cq(side->cq) ?:
	      ibv_destroy_comp_channel(side->channel) ?: ibv_dealloc_pd(side->pd) ?:
	      ibv_close_device(side->context);
	munmap(side->memory, MEMORY);
	return ret ? because("something is left: %s", strerror(ret)) : 0;
}

static struct ibv_qp *make_qp(struct side *side, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = side->cq,
		.recv_cq = side->cq,
		.srq = srq,
		.cap = {
			.max_send_wr = DEPTH,
			.max_recv_wr = srq || type != IBV_QPT_RC ? 0 : DEPTH,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = 64,
		},
		.qp_type = type,
		.sq_sig_all = 1,
	};

	return ibv_create_qp(side->pd, &attr);
}

static struct ibv_qp_attr init_attr(void)
{
	return (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS,
	};
}

#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)

static struct ibv_qp_attr rtr_attr(const struct side *side, const struct side *peer, __u32 qp_num)
{
	return (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp_num,
		.rq_psn = 7,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = {
				.dgid = peer->gid,
				.sgid_index = side->gid_index,
				.hop_limit = 64,
			},
		},
	};
}

#define RTR_MASK (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |	\
		  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

static struct ibv_qp_attr rts_attr(void)
{
	return (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = 7,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
}

#define RTS_MASK (IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |	\
		  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

static int to_rts_with(struct ibv_qp *qp, const struct side *side, const struct side *peer,
		       __u32 peer_qp_num, int rights)
{
	struct ibv_qp_attr init = init_attr(), rtr = rtr_attr(side, peer, peer_qp_num);
	struct ibv_qp_attr rts = rts_attr();
	int ret;

	init.qp_access_flags = rights;
	ret = ibv_modify_qp(qp, &init, INIT_MASK) ?: ibv_modify_qp(qp, &rtr, RTR_MASK) ?:
	      ibv_modify_qp(qp, &rts, RTS_MASK);
	return ret ? because("ibv_modify_qp: %s", strerror(ret)) : 0;
}

static int to_rts(struct ibv_qp *qp, const struct side *side, const struct side *peer,
		  __u32 peer_qp_num)
{
	return to_rts_with(qp, side, peer, peer_qp_num, ACCESS);
}

static struct ibv_sge segment(const struct side *side, __u32 offset, __u32 length)
{
	return (struct ibv_sge) {
		.addr = (uintptr_t)side->memory + offset,
		.length = length,
		.lkey = side->mr->lkey,
	};
}

static int post_send(struct ibv_qp *qp, const struct side *side, __u64 id, __u32 length,
		     __u32 srq_num)
{
	struct ibv_sge sge = segment(side, 0, length);
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.xrc_remote_srq_num = srq_num,
	}, *bad;

	return ibv_post_send(qp, &wr, &bad);
}

static int post_recv(struct ibv_qp *qp, struct ibv_srq *srq, const struct side *side, __u64 id)
{
	struct ibv_sge sge = segment(side, MEMORY / 2, 4096);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);
}

static int next_wc(struct ibv_cq *cq, struct ibv_wc *wc)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	int n;

	do {
		n = ibv_poll_cq(cq, 1, wc);
		if (n)
			return n == 1 ? 0 : because("ibv_poll_cq: %d", n);
		sleep_ms(1);
	} while (now_ns() < deadline);
	return because("no completion");
}

static bool readable(int fd, int ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, ms) == 1;
}

/* A file whose name nobody else has. */
static int temporary_file(void)
{
	return memfd_create("verbs", 0);
}

/* ---- one host ---- */

FIXTURE(one) {
	struct side a;
	int fd;
};

FIXTURE_SETUP(one)
{
	OK(side_open(&self->a, getenv("DAPX_DEV")));
	self->fd = temporary_file();
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(one)
{
	close(self->fd);
	EXPECT_EQ(0, side_close(&self->a)) TH_LOG("%s", why());
}

#define EXPECT_NO_DOMAIN(error, ...)					\
	({								\
		struct ibv_xrc_domain *__domain;			\
									\
		errno = 0;						\
		__domain = open_domain(__VA_ARGS__);			\
		EXPECT_EQ(NULL, __domain);				\
		EXPECT_EQ(error, errno);				\
	})

/* "open an XRC domain for the InfiniBand device context or return a reference to an opened one" */
TEST_F(one, open_xrc_domain_or_return_a_reference_to_an_opened_one)
{
	struct ibv_xrc_domain *first, *second;

	first = open_domain(self->a.context, self->fd, O_CREAT);
	ASSERT_NE(NULL, first);
	EXPECT_EQ(self->a.context, first->context);
	second = open_domain(self->a.context, self->fd, 0);
	ASSERT_NE(NULL, second);
	EXPECT_EQ(0, close_domain(first));
	/* The second is one of its own. */
	first = open_domain(self->a.context, self->fd, 0);
	ASSERT_NE(NULL, first);
	EXPECT_EQ(0, close_domain(first));
	EXPECT_EQ(0, close_domain(second));
}

/* "O_CREAT: If a domain ... is already associated with the inode, this flag has no effect" */
TEST_F(one, open_xrc_domain_creat_has_no_effect_if_there_is_one)
{
	struct ibv_xrc_domain *first, *second;

	first = open_domain(self->a.context, self->fd, O_CREAT);
	second = open_domain(self->a.context, self->fd, O_CREAT);
	ASSERT_NE(NULL, first);
	ASSERT_NE(NULL, second);
	EXPECT_EQ(0, close_domain(first));
	EXPECT_EQ(0, close_domain(second));
}

/* "Otherwise, a new XRC domain is created and is associated with inode specified by fd" */
TEST_F(one, open_xrc_domain_creat_creates_one_of_the_inode)
{
	struct ibv_xrc_domain *domain, *same;
	char path[64];
	int again;

	EXPECT_NO_DOMAIN(EAGAIN, self->a.context, self->fd, 0);
	domain = open_domain(self->a.context, self->fd, O_CREAT);
	ASSERT_NE(NULL, domain);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->fd);
	again = open(path, O_RDONLY);
	ASSERT_LE(0, again);
	same = open_domain(self->a.context, again, 0);
	EXPECT_NE(NULL, same);
	EXPECT_EQ(0, close_domain(same));
	close(again);
	EXPECT_EQ(0, close_domain(domain));
}

/* "If O_EXCL and O_CREAT are set, open will fail if a domain associated with the inode exists." */
TEST_F(one, open_xrc_domain_excl_fails_if_there_is_one)
{
	struct ibv_xrc_domain *domain;

	domain = open_domain(self->a.context, self->fd, O_CREAT | O_EXCL);
	ASSERT_NE(NULL, domain);
	EXPECT_NO_DOMAIN(EEXIST, self->a.context, self->fd, O_CREAT | O_EXCL);
	EXPECT_EQ(0, close_domain(domain));
	domain = open_domain(self->a.context, self->fd, O_CREAT | O_EXCL);
	ASSERT_NE(NULL, domain);
	EXPECT_EQ(0, close_domain(domain));
}

/* "The check ... and creation ... is atomic with respect to other processes" */
TEST_F(one, open_xrc_domain_excl_is_atomic_among_processes)
{
	enum { PROCESSES = 8 };
	unsigned int rounds = count(20, 1000), round;
	const char *device = getenv("DAPX_DEV");

	for (round = 0; round < rounds; round++) {
		int go[2], done[2], i, status, winners = 0;
		pid_t pids[PROCESSES];
		char byte;

		ASSERT_EQ(0, pipe(go));
		ASSERT_EQ(0, pipe(done));
		for (i = 0; i < PROCESSES; i++) {
			pids[i] = fork();
			ASSERT_LE(0, pids[i]);
			if (!pids[i]) {
				struct ibv_context *context = open_dapx(device);
				struct ibv_xrc_domain *domain;
				int error;

				close(go[1]);
				close(done[1]);
				if (!context || read(go[0], &byte, 1))
					_exit(2);
				domain = open_domain(context, self->fd, O_CREAT | O_EXCL);
				error = errno;
				/* The winner holds it until all have tried. */
				if (domain && read(done[0], &byte, 1))
					_exit(2);
				_exit(domain ? 1 : error == EEXIST ? 0 : 2);
			}
		}
		close(go[0]);
		close(done[0]);
		close(go[1]);
		/* Losers end by themselves; then there is one left. */
		for (i = 0; i < PROCESSES - 1; i++) {
			ASSERT_LT(0, wait(&status));
			ASSERT_TRUE(WIFEXITED(status));
			EXPECT_EQ(0, WEXITSTATUS(status));
		}
		close(done[1]);
		ASSERT_LT(0, wait(&status));
		winners += WIFEXITED(status) && WEXITSTATUS(status) == 1;
		ASSERT_EQ(1, winners);
	}
}

/* "If fd equals -1, no inode is associated ..., and the only valid value for oflag is O_CREAT" */
TEST_F(one, open_xrc_domain_without_a_file)
{
	struct ibv_xrc_domain *one, *two;

	one = open_domain(self->a.context, -1, O_CREAT);
	two = open_domain(self->a.context, -1, O_CREAT);
	ASSERT_NE(NULL, one);
	ASSERT_NE(NULL, two);
	EXPECT_NO_DOMAIN(EINVAL, self->a.context, -1, 0);
	EXPECT_NO_DOMAIN(EINVAL, self->a.context, -1, O_CREAT | O_EXCL);
	EXPECT_NO_DOMAIN(EINVAL, self->a.context, -1, O_EXCL);
	EXPECT_EQ(0, close_domain(one));
	EXPECT_EQ(0, close_domain(two));
}

/* "closes the XRC domain d. If this is the last reference, the XRC domain will be destroyed." */
TEST_F(one, open_xrc_domain_the_last_reference_destroys_it)
{
	struct ibv_xrc_domain *first, *second;

	first = open_domain(self->a.context, self->fd, O_CREAT);
	second = open_domain(self->a.context, self->fd, O_CREAT);
	ASSERT_NE(NULL, first);
	ASSERT_NE(NULL, second);
	EXPECT_EQ(0, close_domain(first));
	EXPECT_NO_DOMAIN(EEXIST, self->a.context, self->fd, O_CREAT | O_EXCL);
	EXPECT_EQ(0, close_domain(second));
	EXPECT_NO_DOMAIN(EAGAIN, self->a.context, self->fd, 0);
}

/* "a pointer to an opened XRC, or NULL if the request fails"; "0 ..., or the value of errno" */
TEST_F(one, open_xrc_domain_return_values)
{
	int closed = temporary_file(), pipes[2];

	close(closed);
	EXPECT_NO_DOMAIN(EBADF, self->a.context, closed, O_CREAT);
	ASSERT_EQ(0, pipe(pipes));
	EXPECT_NO_DOMAIN(EINVAL, self->a.context, pipes[0], O_CREAT);
	EXPECT_NO_DOMAIN(EINVAL, self->a.context, self->fd, O_CREAT | O_TRUNC);
	EXPECT_NO_DOMAIN(EINVAL, self->a.context, self->fd, O_EXCL);
	EXPECT_NO_DOMAIN(EINVAL, NULL, self->fd, O_CREAT);
	EXPECT_EQ(EINVAL, close_domain(NULL));
	close(pipes[0]);
	close(pipes[1]);
}

/* "check if the IBV_DEVICE_XRC bit is set in the device capabilities flags" */
TEST_F(one, open_xrc_domain_capability)
{
	struct ibv_device_attr attr;

	ASSERT_EQ(0, ibv_query_device(self->a.context, &attr));
	EXPECT_TRUE(attr.device_cap_flags & IBV_DEVICE_XRC);
	EXPECT_LT(0, attr.max_qp);
	EXPECT_LT(0, attr.max_cqe);
	EXPECT_LT(0, attr.max_srq);
}

/* Of libibverbs' devices, those that have no XRC say so. */
TEST(open_xrc_domain_on_a_device_of_libibverbs)
{
	struct ibv_context *context = open_device(getenv("DAPX_DEV"));
	int fd = temporary_file();

	ASSERT_NE(NULL, context);
	EXPECT_NO_DOMAIN(EOPNOTSUPP, context, fd, O_CREAT);
	close(fd);
	EXPECT_EQ(0, ibv_close_device(context));
}

static struct ibv_srq *make_xrc_srq(struct side *side, struct ibv_xrc_domain *domain)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };

	return create_xrc_srq(side->pd, domain, side->cq, &attr);
}

/* "ibv_close_xrc_domain() may fail if any QP or SRQ are still associated with the XRC domain" */
TEST_F(one, open_xrc_domain_close_may_fail_while_it_is_used)
{
	struct ibv_xrc_domain *domain;
	struct ibv_qp_init_attr attr = {};
	struct ibv_srq *srq;
	__u32 qp_num;

	domain = open_domain(self->a.context, self->fd, O_CREAT);
	ASSERT_NE(NULL, domain);
	srq = make_xrc_srq(&self->a, domain);
	ASSERT_NE(NULL, srq);
	EXPECT_NE(0, srq->xrc_srq_num);
	EXPECT_EQ(EBUSY, close_domain(domain));
	EXPECT_EQ(0, ibv_destroy_srq(srq));

	attr.xrc_domain = domain;
	ASSERT_EQ(0, ibv_create_xrc_rcv_qp(&attr, &qp_num));
	EXPECT_EQ(EBUSY, close_domain(domain));
	EXPECT_EQ(0, ibv_unreg_xrc_rcv_qp(domain, qp_num));
	EXPECT_EQ(0, close_domain(domain));
}

TEST_F(one, receive_queue_pair_lives_while_somebody_is_registered)
{
	struct ibv_xrc_domain *domain;
	struct ibv_qp_init_attr attr = {}, init;
	struct ibv_qp_attr got;
	int to_child[2], to_parent[2], status;
	__u32 qp_num;
	pid_t child;
	char byte = 0;

	domain = open_domain(self->a.context, self->fd, O_CREAT);
	ASSERT_NE(NULL, domain);
	attr.xrc_domain = domain;
	ASSERT_EQ(0, ibv_create_xrc_rcv_qp(&attr, &qp_num));
	/* Who made it is registered; to register twice is to register once. */
	EXPECT_EQ(0, ibv_reg_xrc_rcv_qp(domain, qp_num));
	ASSERT_EQ(0, ibv_query_xrc_rcv_qp(domain, qp_num, &got, IBV_QP_STATE, &init));
	EXPECT_EQ(IBV_QPS_RESET, got.qp_state);
	EXPECT_EQ(domain, init.xrc_domain);
	EXPECT_EQ(IBV_QPT_XRC, init.qp_type);
	EXPECT_EQ(1, init.cap.max_send_wr);
	EXPECT_EQ(0, init.cap.max_recv_wr);

	ASSERT_EQ(0, pipe(to_child));
	ASSERT_EQ(0, pipe(to_parent));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		struct ibv_context *context = open_dapx(getenv("DAPX_DEV"));
		struct ibv_xrc_domain *theirs;

		close(to_child[1]);
		theirs = context ? open_domain(context, self->fd, 0) : NULL;
		if (!theirs || ibv_reg_xrc_rcv_qp(theirs, qp_num) ||
		    write(to_parent[1], &byte, 1) != 1 || read(to_child[0], &byte, 1))
			_exit(1);
		/* It has survived its maker's registration. */
		_exit(ibv_query_xrc_rcv_qp(theirs, qp_num, &got, IBV_QP_STATE, &init) ||
		      ibv_unreg_xrc_rcv_qp(theirs, qp_num) ||
		      ibv_reg_xrc_rcv_qp(theirs, qp_num) != EINVAL);
	}
	close(to_child[0]);
	ASSERT_EQ(1, read(to_parent[0], &byte, 1));
	EXPECT_EQ(0, ibv_unreg_xrc_rcv_qp(domain, qp_num));
	EXPECT_EQ(EINVAL, ibv_unreg_xrc_rcv_qp(domain, qp_num));
	close(to_child[1]);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(EINVAL, ibv_reg_xrc_rcv_qp(domain, qp_num));
	EXPECT_EQ(0, close_domain(domain));
}

/* ibv_open_qp() by another context, that of another process as a rule. */
TEST_F(one, receive_queue_pair_is_opened)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = self->fd,
		.oflags = O_CREAT,
	};
	struct ibv_qp_init_attr_ex create = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};
	struct ibv_qp_open_attr open = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE |
			     IBV_QP_OPEN_ATTR_CONTEXT,
		.qp_context = self,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_context *context = open_dapx(getenv("DAPX_DEV"));
	struct ibv_qp_attr init = init_attr(), error = { .qp_state = IBV_QPS_ERR }, got;
	struct ibv_qp_init_attr created;
	struct ibv_async_event event;
	struct ibv_xrcd *ours, *theirs;
	struct ibv_qp *qp, *opened;

	ASSERT_NE(NULL, context);
	ours = ibv_open_xrcd(self->a.context, &domain);
	theirs = ibv_open_xrcd(context, &domain);
	ASSERT_NE(NULL, ours);
	ASSERT_NE(NULL, theirs);
	create.xrcd = ours;
	qp = ibv_create_qp_ex(self->a.context, &create);
	ASSERT_NE(NULL, qp);

	open.qp_num = qp->qp_num;
	open.xrcd = ours;
	EXPECT_EQ(NULL, ibv_open_qp(self->a.context, &open));
	EXPECT_EQ(EEXIST, errno);
	EXPECT_EQ(NULL, ibv_open_qp(context, &open));
	EXPECT_EQ(EINVAL, errno);
	open.xrcd = theirs;
	open.qp_type = IBV_QPT_RC;
	EXPECT_EQ(NULL, ibv_open_qp(context, &open));
	EXPECT_EQ(EINVAL, errno);
	open.qp_type = IBV_QPT_XRC_RECV;
	open.qp_num = 0xffffff;
	EXPECT_EQ(NULL, ibv_open_qp(context, &open));
	EXPECT_EQ(EINVAL, errno);
	open.qp_num = qp->qp_num;
	opened = ibv_open_qp(context, &open);
	ASSERT_NE(NULL, opened);
	EXPECT_EQ(self, opened->qp_context);
	EXPECT_EQ(qp->qp_num, opened->qp_num);

	/* One queue pair, which ends by either, and lives as long as one of them has it. */
	ASSERT_EQ(0, ibv_modify_qp(qp, &init, INIT_MASK));
	ASSERT_EQ(0, ibv_query_qp(opened, &got, IBV_QP_STATE, &created));
	EXPECT_EQ(IBV_QPS_INIT, got.qp_state);
	ASSERT_EQ(0, ibv_modify_qp(opened, &error, IBV_QP_STATE));
	ASSERT_EQ(0, ibv_get_async_event(self->a.context, &event));
	EXPECT_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, event.event_type);
	EXPECT_EQ(qp, event.element.qp);
	ibv_ack_async_event(&event);
	EXPECT_EQ(0, ibv_destroy_qp(qp));
	ASSERT_EQ(0, ibv_query_qp(opened, &got, IBV_QP_STATE, &created));
	EXPECT_EQ(IBV_QPS_ERR, got.qp_state);
	EXPECT_EQ(0, ibv_destroy_qp(opened));
	EXPECT_EQ(NULL, ibv_open_qp(context, &open));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(0, ibv_close_xrcd(ours));
	EXPECT_EQ(0, ibv_close_xrcd(theirs));
	EXPECT_EQ(0, ibv_close_device(context));
}

TEST_F(one, receive_queue_pair_bad_input)
{
	struct ibv_xrc_domain *domain, *other;
	struct ibv_qp_init_attr attr = {}, init;
	struct ibv_qp_attr step = init_attr(), got;
	__u32 qp_num;

	domain = open_domain(self->a.context, self->fd, O_CREAT);
	other = open_domain(self->a.context, -1, O_CREAT);
	ASSERT_NE(NULL, domain);
	ASSERT_NE(NULL, other);
	EXPECT_EQ(EINVAL, ibv_create_xrc_rcv_qp(NULL, &qp_num));
	EXPECT_EQ(EINVAL, ibv_create_xrc_rcv_qp(&attr, &qp_num));
	attr.xrc_domain = domain;
	ASSERT_EQ(0, ibv_create_xrc_rcv_qp(&attr, &qp_num));
	EXPECT_EQ(EINVAL, ibv_reg_xrc_rcv_qp(other, qp_num));
	EXPECT_EQ(EINVAL, ibv_reg_xrc_rcv_qp(domain, 0xffffff));
	EXPECT_EQ(EINVAL, ibv_reg_xrc_rcv_qp(NULL, qp_num));
	EXPECT_EQ(EINVAL, ibv_unreg_xrc_rcv_qp(other, qp_num));
	EXPECT_EQ(EINVAL, ibv_query_xrc_rcv_qp(other, qp_num, &got, IBV_QP_STATE, &init));
	EXPECT_EQ(EINVAL, ibv_modify_xrc_rcv_qp(other, qp_num, &step, INIT_MASK));
	/* Not all that INIT needs; a step that there is not from here. */
	EXPECT_EQ(EINVAL, ibv_modify_xrc_rcv_qp(domain, qp_num, &step, IBV_QP_STATE));
	step.qp_state = IBV_QPS_RTR;
	EXPECT_EQ(EINVAL, ibv_modify_xrc_rcv_qp(domain, qp_num, &step, RTR_MASK));
	EXPECT_EQ(0, ibv_unreg_xrc_rcv_qp(domain, qp_num));
	EXPECT_EQ(0, close_domain(other));
	EXPECT_EQ(0, close_domain(domain));
}

TEST_F(one, devices_are_added_behind_those_of_libibverbs)
{
	struct ibv_device **list, *real = NULL, *own = NULL;
	const char *device = getenv("DAPX_DEV");
	char name[64];
	int n, i;

	snprintf(name, sizeof(name), "dapx_%s", device);
	list = ibv_get_device_list(&n);
	ASSERT_NE(NULL, list);
	for (i = 0; list[i]; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), device)) {
			EXPECT_EQ(NULL, own);
			real = list[i];
		} else if (!strcmp(ibv_get_device_name(list[i]), name)) {
			own = list[i];
		}
	}
	EXPECT_EQ(n, i);
	ASSERT_NE(NULL, real);
	ASSERT_NE(NULL, own);
	/* librdmacm finds devices by it, and shall not find this one. */
	EXPECT_NE(ibv_get_device_guid(real), ibv_get_device_guid(own));
	EXPECT_EQ(-1, ibv_get_device_index(own));
	EXPECT_LE(0, ibv_get_device_index(real));
	EXPECT_EQ(0, strcmp(real->ibdev_path, own->ibdev_path));
	ibv_free_device_list(list);
	ibv_free_device_list(NULL);
}

TEST_F(one, ports_are_those_of_the_device_behind)
{
	struct ibv_context *real = open_device(getenv("DAPX_DEV"));
	struct ibv_port_attr theirs, ours;
	union ibv_gid gid, real_gid;
	__be16 pkey, real_pkey;

	ASSERT_NE(NULL, real);
	ASSERT_EQ(0, ibv_query_port(real, 1, &theirs));
	ASSERT_EQ(0, ibv_query_port(self->a.context, 1, &ours));
	EXPECT_EQ(theirs.state, ours.state);
	EXPECT_EQ(theirs.active_mtu, ours.active_mtu);
	EXPECT_EQ(theirs.link_layer, ours.link_layer);
	ASSERT_EQ(0, ibv_query_gid(real, 1, self->a.gid_index, &real_gid));
	ASSERT_EQ(0, ibv_query_gid(self->a.context, 1, self->a.gid_index, &gid));
	EXPECT_EQ(0, memcmp(&gid, &real_gid, sizeof(gid)));
	ASSERT_EQ(0, ibv_query_pkey(real, 1, 0, &real_pkey));
	ASSERT_EQ(0, ibv_query_pkey(self->a.context, 1, 0, &pkey));
	EXPECT_EQ(real_pkey, pkey);
	EXPECT_NE(0, ibv_query_port(self->a.context, 99, &ours));
	EXPECT_EQ(0, ibv_close_device(real));
}

TEST_F(one, destroyed_in_the_wrong_order)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	srq = ibv_create_srq(self->a.pd, &attr);
	ASSERT_NE(NULL, srq);
	EXPECT_LE(DEPTH, attr.attr.max_wr);
	qp = make_qp(&self->a, IBV_QPT_RC, srq);
	ASSERT_NE(NULL, qp);
	EXPECT_EQ(EBUSY, ibv_destroy_srq(srq));
	EXPECT_EQ(EBUSY, ibv_destroy_cq(self->a.cq));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->a.pd));
	EXPECT_EQ(EBUSY, ibv_destroy_comp_channel(self->a.channel));
	EXPECT_EQ(0, ibv_destroy_qp(qp));
	EXPECT_EQ(0, ibv_destroy_srq(srq));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->a.pd));
}

TEST_F(one, nothing_and_what_is_not_there)
{
	struct ibv_qp_init_attr attr = { .send_cq = self->a.cq, .recv_cq = self->a.cq,
					 .qp_type = IBV_QPT_UD };
	struct ibv_ah_attr ah = {};

	EXPECT_EQ(EINVAL, ibv_dealloc_pd(NULL));
	EXPECT_EQ(EINVAL, ibv_destroy_cq(NULL));
	EXPECT_EQ(EINVAL, ibv_destroy_qp(NULL));
	EXPECT_EQ(EINVAL, ibv_destroy_srq(NULL));
	EXPECT_EQ(EINVAL, ibv_dereg_mr(NULL));
	EXPECT_EQ(EINVAL, ibv_close_device(NULL));
	EXPECT_EQ(EINVAL, ibv_destroy_comp_channel(NULL));
	EXPECT_EQ(NULL, ibv_create_qp(self->a.pd, &attr));
	EXPECT_EQ(EOPNOTSUPP, errno);
	attr.qp_type = IBV_QPT_RC;
	attr.send_cq = NULL;
	EXPECT_EQ(NULL, ibv_create_qp(self->a.pd, &attr));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(NULL, ibv_create_cq(self->a.context, 0, NULL, NULL, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(NULL, ibv_create_cq(self->a.context, 1, NULL, NULL, 12345));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(NULL, ibv_create_ah(self->a.pd, &ah));
	EXPECT_EQ(EOPNOTSUPP, errno);
	EXPECT_EQ(NULL, ibv_alloc_mw(self->a.pd, IBV_MW_TYPE_1));
	EXPECT_EQ(EOPNOTSUPP, errno);
	EXPECT_EQ(NULL, ibv_reg_mr(self->a.pd, self->a.memory, 64, IBV_ACCESS_ON_DEMAND));
	EXPECT_EQ(EOPNOTSUPP, errno);
	EXPECT_EQ(NULL, ibv_reg_mr(self->a.pd, self->a.memory, 64, IBV_ACCESS_REMOTE_WRITE));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(NULL, ibv_reg_mr(self->a.pd, (void *)4096, 64, IBV_ACCESS_LOCAL_WRITE));
	EXPECT_EQ(EFAULT, errno);
}

/* For that, libibverbs looks into all devices of the list, which have to be its own. */
TEST(import_of_no_device)
{
	int fd = open("/dev/null", O_RDWR);

	ASSERT_LE(0, fd);
	EXPECT_EQ(NULL, ibv_import_device(fd));
	close(fd);
}

TEST_F(one, calls_that_are_not_supported)
{
	union ibv_gid gid = self->a.gid;
	struct ibv_flow_attr flow = {};
	struct ibv_ece ece = {};
	struct ibv_qp *qp;

	qp = make_qp(&self->a, IBV_QPT_RC, NULL);
	ASSERT_NE(NULL, qp);
	EXPECT_EQ(EOPNOTSUPP, ibv_attach_mcast(qp, &gid, 0));
	EXPECT_EQ(EOPNOTSUPP, ibv_detach_mcast(qp, &gid, 0));
	EXPECT_EQ(NULL, ibv_create_flow(qp, &flow));
	EXPECT_EQ(EOPNOTSUPP, errno);
	errno = 0;
	EXPECT_EQ(IBV_REREG_MR_ERR_INPUT,
		  ibv_rereg_mr(self->a.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0));
	EXPECT_EQ(EOPNOTSUPP, errno);
	EXPECT_EQ(NULL, ibv_reg_dmabuf_mr(self->a.pd, 0, 4096, 0, -1, ACCESS));
	EXPECT_EQ(EOPNOTSUPP, errno);
	EXPECT_EQ(NULL, ibv_import_device(self->a.context->cmd_fd));
	EXPECT_EQ(EOPNOTSUPP, errno);
	EXPECT_EQ(NULL, ibv_import_pd(self->a.context, 1));
	EXPECT_EQ(EOPNOTSUPP, errno);
	errno = 0;
	EXPECT_EQ(NULL, ibv_import_mr(self->a.pd, 1));
	EXPECT_EQ(EOPNOTSUPP, errno);
	errno = 0;
	EXPECT_EQ(NULL, ibv_import_dm(self->a.context, 1));
	EXPECT_EQ(EOPNOTSUPP, errno);
	EXPECT_EQ(EOPNOTSUPP, ibv_set_ece(qp, &ece));
	EXPECT_EQ(EOPNOTSUPP, ibv_query_ece(qp, &ece));
	ASSERT_EQ(0, ibv_destroy_qp(qp));
}

/* A receive whose memory is not registered puts its queue out of service. */
TEST_F(one, fault_of_a_shared_queue)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	struct ibv_sge nowhere = { .addr = (uintptr_t)self->a.memory, .length = 8, .lkey = ~0 };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &nowhere, .num_sge = 1 }, *bad;
	struct ibv_async_event event;
	struct ibv_srq *srq;

	srq = ibv_create_srq(self->a.pd, &attr);
	ASSERT_NE(NULL, srq);
	EXPECT_EQ(ENOTRECOVERABLE, ibv_post_srq_recv(srq, &wr, &bad));
	EXPECT_EQ(&wr, bad);
	ASSERT_TRUE(readable(self->a.context->async_fd, PATIENCE_MS));
	ASSERT_EQ(0, ibv_get_async_event(self->a.context, &event));
	EXPECT_EQ(IBV_EVENT_SRQ_ERR, event.event_type);
	EXPECT_EQ(srq, event.element.srq);
	ibv_ack_async_event(&event);
	EXPECT_EQ(0, ibv_destroy_srq(srq));
}

struct reader {
	struct ibv_context *context;
	atomic_bool done;
	unsigned int events;
	unsigned int in_vain;		/* the descriptor was readable for nothing */
};

static void *reads_at_once(void *arg)
{
	struct reader *reader = arg;
	struct ibv_async_event event;
	bool over, expected;

	do {
		over = reader->done;
		expected = readable(reader->context->async_fd, 0);
		while (!ibv_get_async_event(reader->context, &event)) {
			ibv_ack_async_event(&event);
			reader->events++;
			expected = false;
		}
		reader->in_vain += expected;
	} while (!over);
	return NULL;
}

/* Whoever polls it, and then gets an event, does not wait, however soon the event was read. */
TEST_F(one, descriptor_is_readable_while_there_is_an_event)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_sge nowhere = { .addr = 0, .length = 8, .lkey = ~0U };
	struct ibv_recv_wr wr = { .sg_list = &nowhere, .num_sge = 1 }, *bad;
	struct reader reader = { .context = self->a.context };
	struct ibv_srq *srqs[100];
	pthread_t thread;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(srqs); i++)
		srqs[i] = ibv_create_srq(self->a.pd, &attr);
	ASSERT_NE(NULL, srqs[ARRAY_SIZE(srqs) - 1]);
	fcntl(self->a.context->async_fd, F_SETFL, O_NONBLOCK);
	ASSERT_EQ(0, pthread_create(&thread, NULL, reads_at_once, &reader));
	for (i = 0; i < ARRAY_SIZE(srqs); i++)
		EXPECT_EQ(ENOTRECOVERABLE, ibv_post_srq_recv(srqs[i], &wr, &bad));
	reader.done = true;
	pthread_join(thread, NULL);
	EXPECT_EQ(ARRAY_SIZE(srqs), reader.events);
	EXPECT_EQ(0, reader.in_vain);
	EXPECT_FALSE(readable(self->a.context->async_fd, GLANCE_MS));
	for (i = 0; i < ARRAY_SIZE(srqs); i++)
		EXPECT_EQ(0, ibv_destroy_srq(srqs[i]));
}

/* Each context is told, and a port has nothing to acknowledge. */
TEST_F(one, port_goes_down_and_comes_up)
{
	enum ibv_event_type expected[] = { IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE };
	struct ibv_context *contexts[2] = { self->a.context, open_dapx(getenv("DAPX_DEV")) };
	struct ibv_async_event event;
	struct host host, peer;
	int up, i;

	ASSERT_NE(NULL, contexts[1]);
	OK(host_open(&host, 0));
	OK(host_open(&peer, 1));
	for (up = 0; up < 2; up++) {
		OK(link_set(&host, &peer, up));
		for (i = 0; i < 2; i++) {
			ASSERT_TRUE(readable(contexts[i]->async_fd, PATIENCE_MS));
			ASSERT_EQ(0, ibv_get_async_event(contexts[i], &event));
			EXPECT_EQ(expected[up], event.event_type);
			EXPECT_EQ(1, event.element.port_num);
			ibv_ack_async_event(&event);
		}
	}
	host_close(&host);
	host_close(&peer);
	EXPECT_EQ(0, ibv_close_device(contexts[1]));
}

/* A context that is closed is not the next one's, and objects outlive it. */
TEST_F(one, closed_context)
{
	struct ibv_context *context = open_dapx(getenv("DAPX_DEV"));
	struct ibv_device_attr attr;
	struct ibv_pd *pd;

	ASSERT_NE(NULL, context);
	pd = ibv_alloc_pd(context);
	ASSERT_NE(NULL, pd);
	EXPECT_EQ(0, ibv_close_device(context));
	EXPECT_EQ(EINVAL, ibv_close_device(context));
	EXPECT_EQ(EINVAL, ibv_query_device(context, &attr));
	EXPECT_EQ(NULL, ibv_alloc_pd(context));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(NULL, ibv_reg_mr(pd, self->a.memory, 64, ACCESS));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	EXPECT_EQ(EINVAL, ibv_close_device(context));
}

TEST_F(one, steps_need_their_attributes)
{
	struct ibv_qp_attr init = init_attr(), attr, got;
	struct ibv_qp_init_attr created;
	struct ibv_qp *qp;

	qp = make_qp(&self->a, IBV_QPT_RC, NULL);
	ASSERT_NE(NULL, qp);
	EXPECT_EQ(EINVAL, ibv_modify_qp(qp, &init, IBV_QP_STATE));
	EXPECT_EQ(EINVAL, ibv_modify_qp(qp, &init, INIT_MASK | IBV_QP_RQ_PSN));
	EXPECT_EQ(EINVAL, ibv_modify_qp(qp, &init, INIT_MASK | 1 << 30));
	attr = rtr_attr(&self->a, &self->a, 17);
	EXPECT_EQ(EINVAL, ibv_modify_qp(qp, &attr, RTR_MASK));
	init.port_num = 77;
	EXPECT_EQ(EINVAL, ibv_modify_qp(qp, &init, INIT_MASK));
	init.port_num = 1;
	ASSERT_EQ(0, ibv_modify_qp(qp, &init, INIT_MASK));
	EXPECT_EQ(IBV_QPS_INIT, qp->state);
	/* Once more, as it is. */
	EXPECT_EQ(0, ibv_modify_qp(qp, &init, INIT_MASK));
	/* Back, and on again. */
	got.qp_state = IBV_QPS_RESET;
	ASSERT_EQ(0, ibv_modify_qp(qp, &got, IBV_QP_STATE));
	EXPECT_EQ(EINVAL, post_recv(qp, NULL, &self->a, 1));
	ASSERT_EQ(0, ibv_modify_qp(qp, &init, INIT_MASK));
	ASSERT_EQ(0, post_recv(qp, NULL, &self->a, 1));
	ASSERT_EQ(0, ibv_modify_qp(qp, &attr, RTR_MASK));
	attr.qp_state = IBV_QPS_SQD;
	EXPECT_EQ(EOPNOTSUPP, ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	ASSERT_EQ(0, ibv_query_qp(qp, &got, ~0, &created));
	EXPECT_EQ(IBV_QPS_RTR, got.qp_state);
	EXPECT_EQ(17, got.dest_qp_num);
	EXPECT_EQ(7, got.rq_psn);
	EXPECT_EQ(IBV_MTU_1024, got.path_mtu);
	EXPECT_EQ(ACCESS, got.qp_access_flags);
	EXPECT_LE(64, got.cap.max_inline_data);
	EXPECT_EQ(self->a.cq, created.recv_cq);
	EXPECT_EQ(IBV_QPT_RC, created.qp_type);
	EXPECT_EQ(1, created.sq_sig_all);
	EXPECT_EQ(0, ibv_destroy_qp(qp));
}

TEST_F(one, error_before_the_connection)
{
	struct ibv_qp_attr init = init_attr(), error = { .qp_state = IBV_QPS_ERR }, got;
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp_init_attr created;
	struct ibv_qp *qp;
	struct ibv_wc wc;

	qp = make_qp(&self->a, IBV_QPT_RC, NULL);
	ASSERT_NE(NULL, qp);
	EXPECT_EQ(EINVAL, ibv_modify_qp(qp, &error, IBV_QP_STATE));
	ASSERT_EQ(0, ibv_modify_qp(qp, &init, INIT_MASK));
	ASSERT_EQ(0, post_recv(qp, NULL, &self->a, 1));
	ASSERT_EQ(0, ibv_modify_qp(qp, &error, IBV_QP_STATE));
	EXPECT_EQ(IBV_QPS_ERR, qp->state);
	OK(next_wc(self->a.cq, &wc));
	EXPECT_EQ(1, wc.wr_id);
	EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
	ASSERT_EQ(0, ibv_query_qp(qp, &got, ~0, &created));
	EXPECT_EQ(IBV_QPS_ERR, got.qp_state);
	ASSERT_EQ(0, ibv_modify_qp(qp, &reset, IBV_QP_STATE));
	ASSERT_EQ(0, ibv_modify_qp(qp, &init, INIT_MASK));
	EXPECT_EQ(0, ibv_destroy_qp(qp));
}

/* A later step may name again what has to stay, and the RNR timer, which may change. */
TEST_F(one, steps_name_what_an_earlier_one_has_set)
{
	struct ibv_qp_attr init = init_attr(), rtr, rts, got;
	struct ibv_qp_init_attr created;
	struct ibv_qp *qp;

	qp = make_qp(&self->a, IBV_QPT_RC, NULL);
	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, ibv_modify_qp(qp, &init, INIT_MASK));
	rtr = rtr_attr(&self->a, &self->a, 17);
	rtr.pkey_index = 1;
	EXPECT_EQ(EOPNOTSUPP, ibv_modify_qp(qp, &rtr, RTR_MASK | IBV_QP_PKEY_INDEX));
	rtr.pkey_index = 0;
	ASSERT_EQ(0, ibv_modify_qp(qp, &rtr, RTR_MASK | IBV_QP_PKEY_INDEX));
	rts = rts_attr();
	rts.min_rnr_timer = rtr.min_rnr_timer + 1;
	ASSERT_EQ(0, ibv_modify_qp(qp, &rts, RTS_MASK | IBV_QP_MIN_RNR_TIMER));
	ASSERT_EQ(0, ibv_query_qp(qp, &got, ~0, &created));
	EXPECT_EQ(IBV_QPS_RTS, got.qp_state);
	EXPECT_EQ(rts.min_rnr_timer, got.min_rnr_timer);
	rts.min_rnr_timer = 32;
	EXPECT_EQ(EINVAL, ibv_modify_qp(qp, &rts, IBV_QP_MIN_RNR_TIMER));
	rts.min_rnr_timer = 1;
	EXPECT_EQ(0, ibv_modify_qp(qp, &rts, IBV_QP_MIN_RNR_TIMER));
	ASSERT_EQ(0, ibv_query_qp(qp, &got, ~0, &created));
	EXPECT_EQ(1, got.min_rnr_timer);
	EXPECT_EQ(0, ibv_destroy_qp(qp));
}

/* ---- two hosts ---- */

FIXTURE(two) {
	struct side a, b;
	struct ibv_qp *qa, *qb;
};

/* FIXTURE_DATA(two), which checkpatch does not take for a type, is struct _test_data_two. */
static int qps_destroy(struct _test_data_two *self)
{
	int error = 0;

	if (self->qa)
		error = ibv_destroy_qp(self->qa);
	if (self->qb && !error)
		error = ibv_destroy_qp(self->qb);
	self->qa = NULL;
	self->qb = NULL;
	return error;
}

/* New ones in place of those that there are; the second receives from @srq, if there is one. */
static int qps_connect(struct _test_data_two *self, struct ibv_srq *srq)
{
	if (qps_destroy(self))
		return because("a queue pair cannot be destroyed");
	self->qa = make_qp(&self->a, IBV_QPT_RC, NULL);
	self->qb = make_qp(&self->b, IBV_QPT_RC, srq);
	if (!self->qa || !self->qb)
		return because("a queue pair: %m");
	return to_rts(self->qa, &self->a, &self->b, self->qb->qp_num) ||
	       to_rts(self->qb, &self->b, &self->a, self->qa->qp_num) ? -1 : 0;
}

FIXTURE_SETUP(two)
{
	OK(side_open(&self->a, getenv("DAPX_DEV")));
	OK(side_open(&self->b, getenv("DAPX_PEER_DEV")));
	OK(qps_connect(self, NULL));
}

FIXTURE_TEARDOWN(two)
{
	EXPECT_EQ(0, qps_destroy(self));
	EXPECT_EQ(0, side_close(&self->a)) TH_LOG("%s", why());
	EXPECT_EQ(0, side_close(&self->b)) TH_LOG("%s", why());
}

TEST_F(two, message)
{
	struct ibv_wc wc;

	memcpy(self->a.memory, "hello", 6);
	ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, 22));
	ASSERT_EQ(0, post_send(self->qa, &self->a, 11, 6, 0));
	OK(next_wc(self->a.cq, &wc));
	EXPECT_EQ(11, wc.wr_id);
	EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
	EXPECT_EQ(IBV_WC_SEND, wc.opcode);
	EXPECT_EQ(self->qa->qp_num, wc.qp_num);
	OK(next_wc(self->b.cq, &wc));
	EXPECT_EQ(22, wc.wr_id);
	EXPECT_EQ(IBV_WC_RECV, wc.opcode);
	EXPECT_EQ(6, wc.byte_len);
	EXPECT_EQ(0, wc.wc_flags);
	EXPECT_EQ(self->qb->qp_num, wc.qp_num);
	EXPECT_EQ(0, strcmp("hello", self->b.memory + MEMORY / 2));
	EXPECT_EQ(0, ibv_poll_cq(self->b.cq, 1, &wc));
}

TEST_F(two, write_read_and_immediate_data)
{
	struct ibv_sge sge = segment(&self->a, 0, 8);
	struct ibv_send_wr read = {
		.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
		.wr.rdma = { (uintptr_t)self->b.memory + 8, self->b.mr->rkey },
	}, write = {
		.wr_id = 1, .next = &read, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = htobe32(0x12345678),
		.wr.rdma = { (uintptr_t)self->b.memory, self->b.mr->rkey },
	}, *bad;
	struct ibv_wc wc;

	memcpy(self->a.memory, "to_there", 8);
	memcpy(self->b.memory + 8, "to_here.", 8);
	ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, 3));
	ASSERT_EQ(0, ibv_post_send(self->qa, &write, &bad));
	OK(next_wc(self->b.cq, &wc));
	EXPECT_EQ(IBV_WC_RECV_RDMA_WITH_IMM, wc.opcode);
	EXPECT_EQ(IBV_WC_WITH_IMM, wc.wc_flags);
	EXPECT_EQ(htobe32(0x12345678), wc.imm_data);
	EXPECT_EQ(8, wc.byte_len);
	OK(next_wc(self->a.cq, &wc));
	EXPECT_EQ(IBV_WC_RDMA_WRITE, wc.opcode);
	OK(next_wc(self->a.cq, &wc));
	EXPECT_EQ(2, wc.wr_id);
	EXPECT_EQ(IBV_WC_RDMA_READ, wc.opcode);
	EXPECT_EQ(0, memcmp(self->b.memory, "to_there", 8));
	EXPECT_EQ(0, memcmp(self->a.memory, "to_here.", 8));
}

/* What is inline is free on return, whatever it is made of. */
TEST_F(two, inline_data_of_several_pieces)
{
	char one[] = "from two ", two[] = "pieces";
	struct ibv_sge sges[] = {
		{ .addr = (uintptr_t)one, .length = strlen(one) },
		{ .addr = (uintptr_t)two, .length = sizeof(two) },
	};
	struct ibv_send_wr wr = {
		.sg_list = sges, .num_sge = 2, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE,
	}, *bad;
	struct ibv_wc wc;

	ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, 1));
	ASSERT_EQ(0, ibv_post_send(self->qa, &wr, &bad));
	memset(one, 'x', sizeof(one));
	memset(two, 'x', sizeof(two));
	OK(next_wc(self->b.cq, &wc));
	EXPECT_EQ(0, strcmp("from two pieces", self->b.memory + MEMORY / 2));
	sges[0].length = 4096;
	EXPECT_EQ(ENOMEM, ibv_post_send(self->qa, &wr, &bad));
	EXPECT_EQ(&wr, bad);
}

/* What stands before one that cannot be posted is. */
TEST_F(two, list_with_a_bad_request)
{
	struct ibv_sge sge = segment(&self->a, 0, 4);
	struct ibv_send_wr wr[3] = {}, *bad = NULL;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 3; i++) {
		wr[i].wr_id = i;
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_SEND;
	}
	wr[1].opcode = IBV_WR_LOCAL_INV;
	ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, 1));
	EXPECT_EQ(EOPNOTSUPP, ibv_post_send(self->qa, wr, &bad));
	EXPECT_EQ(&wr[1], bad);
	OK(next_wc(self->a.cq, &wc));
	EXPECT_EQ(0, wc.wr_id);
	EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
	wr[0].num_sge = 3;
	EXPECT_EQ(EINVAL, ibv_post_send(self->qa, wr, &bad));
	EXPECT_EQ(&wr[0], bad);
}

TEST_F(two, full_queue)
{
	int error = 0, posted = 0;
	struct ibv_wc wc;

	/* Nobody receives: they wait. */
	while (!error && posted <= 4 * DEPTH) {
		error = post_send(self->qa, &self->a, posted, 4, 0);
		posted += !error;
	}
	EXPECT_EQ(ENOMEM, error);
	EXPECT_LE(DEPTH, posted);
	EXPECT_EQ(0, ibv_destroy_qp(self->qa));
	/* None of them is told of any more. */
	EXPECT_EQ(0, ibv_poll_cq(self->a.cq, 1, &wc));
	self->qa = NULL;
}

TEST_F(two, completions_go_with_their_queue_pair)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, i));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, post_send(self->qa, &self->a, i, 4, 0));
	/* All are received, and nobody has read of it. */
	for (i = 0; i < 4; i++)
		OK(next_wc(self->a.cq, &wc));
	sleep_ms(GLANCE_MS);
	EXPECT_EQ(0, ibv_destroy_qp(self->qb));
	self->qb = NULL;
	EXPECT_EQ(0, ibv_poll_cq(self->b.cq, 1, &wc));
}

TEST_F(two, error_state_flushes)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_wc wc;

	ASSERT_EQ(0, post_recv(self->qa, NULL, &self->a, 5));
	ASSERT_EQ(0, ibv_modify_qp(self->qa, &error, IBV_QP_STATE));
	OK(next_wc(self->a.cq, &wc));
	EXPECT_EQ(5, wc.wr_id);
	EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
	EXPECT_EQ(self->qa->qp_num, wc.qp_num);
	ASSERT_EQ(0, post_send(self->qa, &self->a, 6, 4, 0));
	OK(next_wc(self->a.cq, &wc));
	EXPECT_EQ(6, wc.wr_id);
	EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
	/* And back: the number is a new one. */
	ASSERT_EQ(0, ibv_modify_qp(self->qa, &reset, IBV_QP_STATE));
	EXPECT_EQ(IBV_QPS_RESET, self->qa->state);
	EXPECT_EQ(EINVAL, post_recv(self->qa, NULL, &self->a, 7));
	EXPECT_EQ(EINVAL, post_send(self->qa, &self->a, 7, 4, 0));
	ASSERT_EQ(0, ibv_modify_qp(self->qb, &error, IBV_QP_STATE));
	ASSERT_EQ(0, ibv_modify_qp(self->qb, &reset, IBV_QP_STATE));
	OK(to_rts(self->qa, &self->a, &self->b, self->qb->qp_num));
	OK(to_rts(self->qb, &self->b, &self->a, self->qa->qp_num));
	ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, 8));
	ASSERT_EQ(0, post_send(self->qa, &self->a, 9, 4, 0));
	OK(next_wc(self->b.cq, &wc));
	EXPECT_EQ(8, wc.wr_id);
	EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
}

TEST_F(two, remote_access_is_refused)
{
	struct ibv_sge sge = segment(&self->a, 0, 8);
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { (uintptr_t)self->b.memory + MEMORY, self->b.mr->rkey },
	}, *bad;
	struct ibv_qp_init_attr created;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	ASSERT_EQ(0, ibv_post_send(self->qa, &wr, &bad));
	OK(next_wc(self->a.cq, &wc));
	EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, wc.status);
	ASSERT_EQ(0, ibv_query_qp(self->qa, &attr, IBV_QP_STATE, &created));
	EXPECT_EQ(IBV_QPS_ERR, attr.qp_state);
}

static int reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

/* Whatever those of the memory are, which permits all. */
TEST_F(two, rights_of_a_queue_pair)
{
	static const struct {
		int right;
		enum ibv_wr_opcode opcode;
	} uses[] = {
		{ IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE },
		{ IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ },
		{ IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD },
	};
	struct ibv_sge sge = segment(&self->a, 0, 8);
	const int all = ACCESS | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_qp_attr attr = { .qp_access_flags = all };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	unsigned int i, refused;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	mr = ibv_reg_mr(self->b.pd, self->b.memory, MEMORY, all);
	ASSERT_NE(NULL, mr);
	for (refused = 0; refused < ARRAY_SIZE(uses); refused++) {
		ASSERT_EQ(0, reset(self->qa));
		ASSERT_EQ(0, reset(self->qb));
		OK(to_rts(self->qa, &self->a, &self->b, self->qb->qp_num));
		OK(to_rts_with(self->qb, &self->b, &self->a, self->qa->qp_num,
			       all & ~uses[refused].right));
		EXPECT_EQ(EOPNOTSUPP, ibv_modify_qp(self->qb, &attr, IBV_QP_ACCESS_FLAGS));
		memset(self->a.memory, 1, 8);
		memset(self->b.memory, 2, 8);
		for (i = 1; i <= ARRAY_SIZE(uses); i++) {
			wr.opcode = uses[(refused + i) % ARRAY_SIZE(uses)].opcode;
			if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
				wr.wr.atomic.remote_addr = (uintptr_t)self->b.memory;
				wr.wr.atomic.rkey = mr->rkey;
			} else {
				wr.wr.rdma.remote_addr = (uintptr_t)self->b.memory;
				wr.wr.rdma.rkey = mr->rkey;
			}
			ASSERT_EQ(0, ibv_post_send(self->qa, &wr, &bad));
			OK(next_wc(self->a.cq, &wc));
			EXPECT_EQ(i < ARRAY_SIZE(uses) ? IBV_WC_SUCCESS : IBV_WC_REM_INV_REQ_ERR,
				  wc.status);
		}
	}
	EXPECT_EQ(0, ibv_dereg_mr(mr));
}

/* One event for each time that the CQ was armed, by the next completion. */
TEST_F(two, completion_events)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	int i;

	fcntl(self->b.channel->fd, F_SETFL, O_NONBLOCK);
	EXPECT_EQ(-1, ibv_get_cq_event(self->b.channel, &cq, &context));
	EXPECT_EQ(EAGAIN, errno);
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, i));
	/* Not armed: silent. */
	ASSERT_EQ(0, post_send(self->qa, &self->a, 0, 4, 0));
	OK(next_wc(self->b.cq, &wc));
	EXPECT_FALSE(readable(self->b.channel->fd, GLANCE_MS));
	/* Armed, and two come: one event. */
	ASSERT_EQ(0, ibv_req_notify_cq(self->b.cq, 0));
	ASSERT_EQ(0, post_send(self->qa, &self->a, 1, 4, 0));
	ASSERT_EQ(0, post_send(self->qa, &self->a, 2, 4, 0));
	ASSERT_TRUE(readable(self->b.channel->fd, PATIENCE_MS));
	OK(next_wc(self->b.cq, &wc));
	OK(next_wc(self->b.cq, &wc));
	ASSERT_EQ(0, ibv_get_cq_event(self->b.channel, &cq, &context));
	EXPECT_EQ(self->b.cq, cq);
	EXPECT_EQ(&self->b, context);
	EXPECT_EQ(-1, ibv_get_cq_event(self->b.channel, &cq, &context));
	EXPECT_FALSE(readable(self->b.channel->fd, GLANCE_MS));
	/* Armed and fired twice, and nobody asked: two. */
	ASSERT_EQ(0, ibv_req_notify_cq(self->b.cq, 0));
	ASSERT_EQ(0, post_send(self->qa, &self->a, 3, 4, 0));
	OK(next_wc(self->b.cq, &wc));
	ASSERT_TRUE(readable(self->b.channel->fd, PATIENCE_MS));
	ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, 4));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b.cq, 0));
	ASSERT_EQ(0, post_send(self->qa, &self->a, 4, 4, 0));
	OK(next_wc(self->b.cq, &wc));
	sleep_ms(GLANCE_MS);
	ASSERT_EQ(0, ibv_get_cq_event(self->b.channel, &cq, &context));
	ASSERT_EQ(0, ibv_get_cq_event(self->b.channel, &cq, &context));
	EXPECT_EQ(-1, ibv_get_cq_event(self->b.channel, &cq, &context));
	ibv_ack_cq_events(self->b.cq, 3);
}

static int post_solicited(struct ibv_qp *qp, const struct side *side, __u64 id)
{
	struct ibv_sge sge = segment(side, 0, 4);
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SOLICITED | IBV_SEND_SIGNALED,
	}, *bad;

	return ibv_post_send(qp, &wr, &bad);
}

/* The queue pair is made after the CQ was armed for them. */
TEST_F(two, solicited_completion_events)
{
	struct ibv_cq *cq, *own = self->b.cq;
	struct ibv_wc wc;
	void *context;
	int i;

	ASSERT_EQ(0, qps_destroy(self));
	self->b.cq = ibv_create_cq(self->b.context, DEPTH, NULL, self->b.channel, 0);
	ASSERT_NE(NULL, self->b.cq);
	ASSERT_EQ(0, ibv_req_notify_cq(self->b.cq, 1));
	OK(qps_connect(self, NULL));
	fcntl(self->b.channel->fd, F_SETFL, O_NONBLOCK);
	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, i));
	for (i = 0; i < 4; i += 2) {
		ASSERT_EQ(0, post_send(self->qa, &self->a, i, 4, 0));
		EXPECT_FALSE(readable(self->b.channel->fd, GLANCE_MS));
		ASSERT_EQ(0, post_solicited(self->qa, &self->a, i + 1));
		ASSERT_TRUE(readable(self->b.channel->fd, PATIENCE_MS));
		ASSERT_EQ(0, ibv_get_cq_event(self->b.channel, &cq, &context));
		EXPECT_EQ(self->b.cq, cq);
		ASSERT_EQ(0, ibv_req_notify_cq(self->b.cq, 1));
		OK(next_wc(self->b.cq, &wc));
		EXPECT_EQ(i, wc.wr_id);
		OK(next_wc(self->b.cq, &wc));
		EXPECT_EQ(i + 1, wc.wr_id);
	}
	EXPECT_FALSE(readable(self->b.channel->fd, 0));
	/* Its own requests that succeed are none. */
	ASSERT_EQ(0, post_recv(self->qa, NULL, &self->a, 1));
	ASSERT_EQ(0, post_solicited(self->qb, &self->b, 77));
	OK(next_wc(self->b.cq, &wc));
	EXPECT_EQ(77, wc.wr_id);
	EXPECT_FALSE(readable(self->b.channel->fd, GLANCE_MS));
	/* A request for any is not narrowed by the next one. */
	ASSERT_EQ(0, ibv_req_notify_cq(self->b.cq, 0));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b.cq, 1));
	ASSERT_EQ(0, post_send(self->qa, &self->a, 4, 4, 0));
	ASSERT_TRUE(readable(self->b.channel->fd, PATIENCE_MS));
	ASSERT_EQ(0, ibv_get_cq_event(self->b.channel, &cq, &context));
	ibv_ack_cq_events(self->b.cq, 3);
	ASSERT_EQ(0, qps_destroy(self));
	ASSERT_EQ(0, ibv_destroy_cq(self->b.cq));
	self->b.cq = own;
}

struct polling {
	struct ibv_cq *cq;
	int found;
	bool done;
};

/* Ends at the first system call that is not its own end. */
static void *poll_without_system_calls(void *arg)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
	};
	struct sock_fprog program = { ARRAY_SIZE(filter), filter };
	struct polling *polling = arg;
	struct ibv_wc wc;
	int i;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return NULL;
	for (i = 0; i < 1000; i++) {
		polling->found |= ibv_poll_cq(polling->cq, 1, &wc);
		polling->found |= ibv_req_notify_cq(polling->cq, 0);
	}
	polling->done = true;
	syscall(SYS_exit, 0);
	return NULL;
}

TEST_F(two, an_empty_cq_is_polled_and_armed_without_system_calls)
{
	struct polling polling = { .cq = self->a.cq };
	pthread_t thread;

	if (prctl(PR_GET_SECCOMP) < 0)
		SKIP(return, "a kernel without seccomp");
	ASSERT_EQ(0, pthread_create(&thread, NULL, poll_without_system_calls, &polling));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_TRUE(polling.done);
	EXPECT_EQ(0, polling.found);
}

static void *acknowledge_later(void *cq)
{
	sleep_ms(300);
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

TEST_F(two, destroying_a_cq_waits_for_acknowledgements)
{
	struct ibv_cq *cq, *own;
	struct ibv_wc wc;
	pthread_t thread;
	void *context;
	__u64 begin;

	ASSERT_EQ(0, qps_destroy(self));
	own = self->b.cq;
	self->b.cq = ibv_create_cq(self->b.context, DEPTH, NULL, self->b.channel, 0);
	ASSERT_NE(NULL, self->b.cq);
	OK(qps_connect(self, NULL));
	ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, 1));
	ASSERT_EQ(0, ibv_req_notify_cq(self->b.cq, 0));
	ASSERT_EQ(0, post_send(self->qa, &self->a, 1, 4, 0));
	ASSERT_EQ(0, ibv_get_cq_event(self->b.channel, &cq, &context));
	EXPECT_EQ(self->b.cq, cq);
	OK(next_wc(cq, &wc));
	EXPECT_EQ(0, ibv_destroy_qp(self->qb));
	self->qb = NULL;
	begin = now_ns();
	ASSERT_EQ(0, pthread_create(&thread, NULL, acknowledge_later, cq));
	EXPECT_EQ(0, ibv_destroy_cq(cq));
	EXPECT_LE(250000000ULL, now_ns() - begin);
	pthread_join(thread, NULL);
	self->b.cq = own;
}

struct event_waiter {
	struct side *side;
	bool async;
	pid_t tid;
	int error;
};

static void *wait_for_event(void *arg)
{
	struct event_waiter *waiter = arg;
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;
	int ret;

	__atomic_store_n(&waiter->tid, gettid(), __ATOMIC_RELEASE);
	ret = waiter->async ? ibv_get_async_event(waiter->side->context, &event) :
			      ibv_get_cq_event(waiter->side->channel, &cq, &context);
	waiter->error = ret ? errno : 0;
	return NULL;
}

static int signals;

static void count_signal(int signal)
{
	__atomic_add_fetch(&signals, 1, __ATOMIC_RELEASE);
}

static int on_signal(int flags)
{
	struct sigaction action = { .sa_handler = count_signal, .sa_flags = flags };

	return sigaction(SIGUSR1, &action, NULL);
}

/* It ends the wait, unless the program wants its calls to be restarted. */
TEST_F(one, a_signal_while_an_event_is_waited_for)
{
	pthread_t thread;
	int async;

	for (async = 0; async < 2; async++) {
		struct event_waiter waiter = { .side = &self->a, .async = async };

		ASSERT_EQ(0, on_signal(SA_RESTART));
		ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_event, &waiter));
		OK(await_asleep_in(&waiter.tid, SYS_read));
		ASSERT_EQ(0, pthread_kill(thread, SIGUSR1));
		while (__atomic_load_n(&signals, __ATOMIC_ACQUIRE) == 2 * async)
			sleep_ms(1);
		OK(await_asleep_in(&waiter.tid, SYS_read));
		ASSERT_EQ(0, on_signal(0));
		ASSERT_EQ(0, pthread_kill(thread, SIGUSR1));
		pthread_join(thread, NULL);
		EXPECT_EQ(EINTR, waiter.error);
		EXPECT_EQ(2 * async + 2, signals);
	}
}

/* What waits in it stays, in its order. */
TEST_F(two, a_cq_is_resized)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, i));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, post_send(self->qa, &self->a, i, 4, 0));
	for (i = 0; i < 3; i++)
		OK(next_wc(self->a.cq, &wc));
	EXPECT_EQ(EINVAL, ibv_resize_cq(self->b.cq, 0));
	EXPECT_EQ(EINVAL, ibv_resize_cq(NULL, DEPTH));
	ASSERT_EQ(0, ibv_resize_cq(self->b.cq, 8 * DEPTH));
	EXPECT_LE(8 * DEPTH, self->b.cq->cqe);
	OK(next_wc(self->b.cq, &wc));
	EXPECT_EQ(0, wc.wr_id);
	ASSERT_EQ(0, ibv_resize_cq(self->b.cq, 2));
	EXPECT_GT(8 * DEPTH, self->b.cq->cqe);
	for (i = 1; i < 3; i++) {
		OK(next_wc(self->b.cq, &wc));
		EXPECT_EQ(i, wc.wr_id);
		EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
	}
	/* More than its room come now: they wait in the module. */
	for (i = 0; i < DEPTH; i++)
		ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, i));
	for (i = 0; i < DEPTH; i++) {
		ASSERT_EQ(0, post_send(self->qa, &self->a, i, 4, 0));
		OK(next_wc(self->a.cq, &wc));
	}
	for (i = 0; i < DEPTH; i++) {
		OK(next_wc(self->b.cq, &wc));
		EXPECT_EQ(i, wc.wr_id);
	}
}

/* Nobody has read the event of a CQ that goes: the channel forgets it. */
TEST_F(two, a_cq_takes_its_event_along)
{
	struct ibv_cq *gone, *cq;
	struct ibv_qp *qp;
	void *context;

	gone = ibv_create_cq(self->b.context, DEPTH, NULL, self->b.channel, 0);
	ASSERT_NE(NULL, gone);
	cq = self->b.cq;
	self->b.cq = gone;
	qp = make_qp(&self->b, IBV_QPT_RC, NULL);
	self->b.cq = cq;
	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, ibv_req_notify_cq(gone, 0));
	/* Flushed: a completion. */
	{
		struct ibv_qp_attr init = init_attr(), rtr, error = { .qp_state = IBV_QPS_ERR };

		rtr = rtr_attr(&self->b, &self->a, 17);
		ASSERT_EQ(0, ibv_modify_qp(qp, &init, INIT_MASK));
		ASSERT_EQ(0, post_recv(qp, NULL, &self->b, 1));
		ASSERT_EQ(0, ibv_modify_qp(qp, &rtr, RTR_MASK));
		ASSERT_EQ(0, ibv_modify_qp(qp, &error, IBV_QP_STATE));
	}
	ASSERT_TRUE(readable(self->b.channel->fd, PATIENCE_MS));
	EXPECT_EQ(0, ibv_destroy_qp(qp));
	EXPECT_EQ(0, ibv_destroy_cq(gone));
	EXPECT_FALSE(readable(self->b.channel->fd, GLANCE_MS));
	fcntl(self->b.channel->fd, F_SETFL, O_NONBLOCK);
	EXPECT_EQ(-1, ibv_get_cq_event(self->b.channel, &cq, &context));
	EXPECT_EQ(EAGAIN, errno);
}

/* What the child of a process gets from its parent's objects; 0 if all is as it should be. */
static int use_as_a_child(struct side *side, struct ibv_qp *qp)
{
	struct ibv_wc wc;

	if (post_send(qp, side, 1, 4, 0) != EPERM)
		return 1;
	if (post_recv(qp, NULL, side, 2) != EPERM)
		return 2;
	if (ibv_poll_cq(side->cq, 1, &wc))
		return 3;
	if (ibv_alloc_pd(side->context) || errno != EPERM)
		return 4;
	if (ibv_destroy_qp(qp) != EPERM || ibv_dereg_mr(side->mr) != EPERM ||
	    ibv_destroy_cq(side->cq) != EPERM)
		return 5;
	return 0;
}

TEST_F(two, objects_stay_the_parents)
{
	struct ibv_wc wc;
	int status;
	pid_t pid;

	ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, 5));
	pid = fork();
	if (!pid)
		_exit(use_as_a_child(&self->a, self->qa));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	ASSERT_EQ(0, post_send(self->qa, &self->a, 6, 4, 0));
	OK(next_wc(self->b.cq, &wc));
	EXPECT_EQ(5, wc.wr_id);
	EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
}

static void *removes(void *host)
{
	return device_remove(host) ? (void *)why() : NULL;
}

/* It says so, all that was on it can be destroyed, and then the removal goes through. */
TEST_F(two, device_that_is_removed)
{
	struct ibv_qp_attr init = init_attr(), error = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp_init_attr attr = {};
	struct ibv_xrc_domain *domain;
	struct ibv_async_event event;
	struct ibv_qp *idle;
	struct ibv_wc wc;
	pthread_t thread;
	struct host host;
	__u32 qp_num;
	void *failed;

	OK(host_open(&host, 0));
	ASSERT_EQ(0, post_recv(self->qa, NULL, &self->a, 1));
	idle = make_qp(&self->a, IBV_QPT_RC, NULL);
	ASSERT_NE(NULL, idle);
	ASSERT_EQ(0, ibv_modify_qp(idle, &init, INIT_MASK));
	domain = open_domain(self->a.context, -1, O_CREAT);
	ASSERT_NE(NULL, domain);
	attr.xrc_domain = domain;
	ASSERT_EQ(0, ibv_create_xrc_rcv_qp(&attr, &qp_num));
	ASSERT_EQ(0, pthread_create(&thread, NULL, removes, &host));
	ASSERT_TRUE(readable(self->a.context->async_fd, PATIENCE_MS));
	ASSERT_EQ(0, ibv_get_async_event(self->a.context, &event));
	EXPECT_EQ(IBV_EVENT_DEVICE_FATAL, event.event_type);
	ibv_ack_async_event(&event);
	EXPECT_FALSE(readable(self->a.context->async_fd, GLANCE_MS));
	EXPECT_EQ(EIO, post_send(self->qa, &self->a, 2, 8, 0));
	EXPECT_EQ(EIO, ibv_modify_qp(idle, &error, IBV_QP_STATE));
	EXPECT_EQ(EIO, ibv_modify_xrc_rcv_qp(domain, qp_num, &error, IBV_QP_STATE));
	EXPECT_EQ(EIO, ibv_modify_xrc_rcv_qp(domain, qp_num, &init, INIT_MASK));
	EXPECT_EQ(EIO, ibv_reg_xrc_rcv_qp(domain, qp_num));
	EXPECT_EQ(0, ibv_destroy_qp(idle));
	EXPECT_EQ(0, ibv_unreg_xrc_rcv_qp(domain, qp_num));
	EXPECT_EQ(0, close_domain(domain));
	EXPECT_EQ(NULL, ibv_alloc_pd(self->a.context));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(0, qps_destroy(self));
	OK(side_close(&self->a));
	ASSERT_EQ(0, pthread_join(thread, &failed));
	EXPECT_EQ(NULL, failed) TH_LOG("%s", (char *)failed);

	/* It comes back, and is another one. */
	OK(device_add(&host));
	host_close(&host);
	OK(side_open(&self->a, host.device));
	OK(qps_connect(self, NULL));
	ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, 22));
	ASSERT_EQ(0, post_send(self->qa, &self->a, 11, 8, 0));
	OK(next_wc(self->a.cq, &wc));
	EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
	OK(next_wc(self->b.cq, &wc));
	EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
}

/* Receives that wait stay where they are in order, and there is room for more. */
TEST_F(two, an_srq_is_resized)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 2, .max_sge = 1 } };
	struct ibv_srq_attr change = { .max_wr = 4 * DEPTH }, got;
	struct ibv_srq *srq;
	struct ibv_wc wc;
	int i;

	srq = ibv_create_srq(self->b.pd, &attr);
	ASSERT_NE(NULL, srq);
	OK(qps_connect(self, srq));
	ASSERT_EQ(0, post_recv(NULL, srq, &self->b, 0));
	ASSERT_EQ(0, ibv_modify_srq(srq, &change, IBV_SRQ_MAX_WR));
	ASSERT_EQ(0, ibv_query_srq(srq, &got));
	EXPECT_LE(4 * DEPTH, got.max_wr);
	for (i = 1; i < 4 * DEPTH; i++)
		ASSERT_EQ(0, post_recv(NULL, srq, &self->b, i));
	for (i = 0; i < 4 * DEPTH; i++) {
		ASSERT_EQ(0, post_send(self->qa, &self->a, i, 4, IBV_SEND_SIGNALED));
		OK(next_wc(self->a.cq, &wc));
		OK(next_wc(self->b.cq, &wc));
		EXPECT_EQ(i, wc.wr_id);
	}
	change.max_wr = 0;
	EXPECT_EQ(EINVAL, ibv_modify_srq(srq, &change, IBV_SRQ_MAX_WR));
	EXPECT_EQ(0, qps_destroy(self));
	EXPECT_EQ(0, ibv_destroy_srq(srq));
}

TEST_F(two, limit_event_of_a_shared_queue)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	struct ibv_srq_attr limit = { .srq_limit = 2 }, got;
	struct ibv_async_event event;
	struct ibv_srq *srq;
	struct ibv_wc wc;
	int i;

	srq = ibv_create_srq(self->b.pd, &attr);
	ASSERT_NE(NULL, srq);
	OK(qps_connect(self, srq));
	fcntl(self->b.context->async_fd, F_SETFL, O_NONBLOCK);
	EXPECT_EQ(-1, ibv_get_async_event(self->b.context, &event));
	EXPECT_EQ(EAGAIN, errno);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, post_recv(NULL, srq, &self->b, i));
	ASSERT_EQ(0, ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	ASSERT_EQ(0, ibv_query_srq(srq, &got));
	EXPECT_EQ(2, got.srq_limit);
	EXPECT_EQ(EINVAL, ibv_modify_srq(srq, &limit, IBV_SRQ_MAX_WR));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, post_send(self->qa, &self->a, i, 4, 0));
		OK(next_wc(self->b.cq, &wc));
		EXPECT_EQ(self->qb->qp_num, wc.qp_num);
	}
	ASSERT_TRUE(readable(self->b.context->async_fd, PATIENCE_MS));
	ASSERT_EQ(0, ibv_get_async_event(self->b.context, &event));
	EXPECT_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, event.event_type);
	EXPECT_EQ(srq, event.element.srq);
	EXPECT_FALSE(readable(self->b.context->async_fd, GLANCE_MS));
	ibv_ack_async_event(&event);
	EXPECT_EQ(0, qps_destroy(self));
	EXPECT_EQ(0, ibv_destroy_srq(srq));
}

/* In place of those that there are; the first one has the extended interface. */
static int qps_connect_extended(struct _test_data_two *self)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = self->a.cq, .recv_cq = self->a.cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 2,
			 .max_recv_sge = 1, .max_inline_data = 64 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = self->a.pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
	};

	if (qps_destroy(self))
		return because("ibv_destroy_qp");
	self->qa = ibv_create_qp_ex(self->a.context, &attr);
	if (!self->qa)
		return because("ibv_create_qp_ex: %m");
	self->qb = make_qp(&self->b, IBV_QPT_RC, NULL);
	if (!self->qb)
		return because("ibv_create_qp: %m");
	if (to_rts(self->qa, &self->a, &self->b, self->qb->qp_num))
		return -1;
	return to_rts(self->qb, &self->b, &self->a, self->qa->qp_num);
}

TEST_F(two, extended_interface_of_some_requests_only)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = self->a.cq, .recv_cq = self->a.cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = self->a.pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO,
	};

	EXPECT_EQ(NULL, ibv_qp_to_qp_ex(self->qa));
	EXPECT_EQ(NULL, ibv_create_qp_ex(self->a.context, &attr));
	EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_F(two, requests_of_the_extended_interface)
{
	struct ibv_qp_ex *ex;
	struct ibv_wc wc;

	OK(qps_connect_extended(self));
	ex = ibv_qp_to_qp_ex(self->qa);
	ASSERT_NE(NULL, ex);
	ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, 1));
	ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, 2));

	/* Given up: nothing of it is posted. */
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, self->a.mr->lkey, (uintptr_t)self->a.memory, 4);
	ibv_wr_abort(ex);

	memcpy(self->a.memory, "written", 8);
	ibv_wr_start(ex);
	ex->wr_id = 2;
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, "inline", 7);
	ex->wr_id = 3;
	ibv_wr_rdma_write_imm(ex, self->b.mr->rkey, (uintptr_t)self->b.memory, htobe32(99));
	ibv_wr_set_sge(ex, self->a.mr->lkey, (uintptr_t)self->a.memory, 8);
	ASSERT_EQ(0, ibv_wr_complete(ex));
	OK(next_wc(self->b.cq, &wc));
	EXPECT_EQ(1, wc.wr_id);
	EXPECT_EQ(7, wc.byte_len);
	EXPECT_EQ(0, strcmp("inline", self->b.memory + MEMORY / 2));
	OK(next_wc(self->b.cq, &wc));
	EXPECT_EQ(htobe32(99), wc.imm_data);
	EXPECT_EQ(0, strcmp("written", self->b.memory));
	OK(next_wc(self->a.cq, &wc));
	EXPECT_EQ(2, wc.wr_id);
	OK(next_wc(self->a.cq, &wc));
	EXPECT_EQ(3, wc.wr_id);
	EXPECT_EQ(0, ibv_poll_cq(self->a.cq, 1, &wc));
}

/* What is wrong with one request is known before any is posted. */
TEST_F(two, requests_of_the_extended_interface_all_or_none)
{
	struct ibv_sge list[3] = {};
	struct ibv_data_buf long_data = { .addr = self->a.memory, .length = 65 };
	struct ibv_qp_ex *ex;
	struct ibv_wc wc;
	int wrong;

	OK(qps_connect_extended(self));
	ex = ibv_qp_to_qp_ex(self->qa);
	ASSERT_NE(NULL, ex);
	ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, 1));
	for (wrong = 0; wrong < 5; wrong++) {
		ibv_wr_start(ex);
		ex->wr_id = 1;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send(ex);
		ibv_wr_set_inline_data(ex, "first", 6);
		ibv_wr_send(ex);
		switch (wrong) {
		case 0:
			ibv_wr_set_sge_list(ex, 3, list);
			break;
		case 1:
			ibv_wr_set_inline_data_list(ex, 1, &long_data);
			break;
		case 2:
			ibv_wr_set_sge(ex, self->a.mr->lkey, (uintptr_t)self->a.memory, 4);
			ibv_wr_set_sge(ex, self->a.mr->lkey, (uintptr_t)self->a.memory, 4);
			break;
		case 3:
			ibv_wr_set_inline_data(ex, "second", 7);
			ibv_wr_set_sge(ex, self->a.mr->lkey, (uintptr_t)self->a.memory, 4);
			break;
		case 4:
			ibv_wr_set_sge(ex, self->a.mr->lkey, (uintptr_t)self->a.memory, 4);
			ibv_wr_set_inline_data(ex, "second", 7);
			break;
		}
		EXPECT_EQ(wrong == 1 ? ENOMEM : EINVAL, ibv_wr_complete(ex)) TH_LOG("%d", wrong);
	}
	ibv_wr_start(ex);
	ibv_wr_set_inline_data(ex, "of none", 8);
	EXPECT_EQ(EINVAL, ibv_wr_complete(ex));

	ibv_wr_start(ex);
	ex->wr_id = 2;
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, "good", 5);
	ASSERT_EQ(0, ibv_wr_complete(ex));
	OK(next_wc(self->b.cq, &wc));
	EXPECT_EQ(5, wc.byte_len);
	OK(next_wc(self->a.cq, &wc));
	EXPECT_EQ(2, wc.wr_id);
	EXPECT_EQ(0, ibv_poll_cq(self->a.cq, 1, &wc));
}

/* Begins with the next completion, or goes on to it. */
static int poll_ex(struct ibv_cq_ex *cq, bool begin)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	struct ibv_poll_cq_attr attr = {};
	int error;

	do {
		error = begin ? ibv_start_poll(cq, &attr) : ibv_next_poll(cq);
		if (error != ENOENT)
			return error ? because("%s", strerror(error)) : 0;
		sleep_ms(1);
	} while (now_ns() < deadline);
	return because("no completion");
}

TEST_F(two, completions_of_the_extended_interface)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = DEPTH, .cq_context = self, .channel = self->b.channel,
		.wc_flags = IBV_WC_STANDARD_FLAGS, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	struct ibv_poll_cq_attr attr = {}, unknown = { .comp_mask = 1 };
	struct ibv_sge sge = segment(&self->a, 0, 8);
	struct ibv_send_wr write = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htobe32(77),
		.wr.rdma = { (uintptr_t)self->b.memory, self->b.mr->rkey },
	}, *bad;
	struct ibv_cq_ex *ex;
	struct ibv_cq *fired;
	struct ibv_wc wc;
	void *context;

	ASSERT_EQ(0, qps_destroy(self));
	ASSERT_EQ(0, ibv_destroy_cq(self->b.cq));
	ex = ibv_create_cq_ex(self->b.context, &init);
	ASSERT_NE(NULL, ex);
	EXPECT_LE(DEPTH, ex->cqe);
	self->b.cq = ibv_cq_ex_to_cq(ex);
	OK(qps_connect(self, NULL));
	EXPECT_EQ(EINVAL, ibv_start_poll(ex, &unknown));
	EXPECT_EQ(ENOENT, ibv_start_poll(ex, &attr));

	ASSERT_EQ(0, ibv_req_notify_cq(self->b.cq, 0));
	ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, 1));
	ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, 2));
	ASSERT_EQ(0, post_recv(self->qb, NULL, &self->b, 3));
	ASSERT_EQ(0, post_send(self->qa, &self->a, 11, 6, 0));
	ASSERT_EQ(0, ibv_post_send(self->qa, &write, &bad));
	ASSERT_EQ(0, ibv_get_cq_event(self->b.channel, &fired, &context));
	EXPECT_EQ(self->b.cq, fired);
	EXPECT_EQ(self, context);
	ibv_ack_cq_events(fired, 1);

	OK(poll_ex(ex, true));
	EXPECT_EQ(1, ex->wr_id);
	EXPECT_EQ(IBV_WC_SUCCESS, ex->status);
	EXPECT_EQ(IBV_WC_RECV, ibv_wc_read_opcode(ex));
	EXPECT_EQ(6, ibv_wc_read_byte_len(ex));
	EXPECT_EQ(0, ibv_wc_read_wc_flags(ex));
	EXPECT_EQ(self->qb->qp_num, ibv_wc_read_qp_num(ex));
	OK(poll_ex(ex, false));
	EXPECT_EQ(2, ex->wr_id);
	EXPECT_EQ(IBV_WC_RECV_RDMA_WITH_IMM, ibv_wc_read_opcode(ex));
	EXPECT_EQ(IBV_WC_WITH_IMM, ibv_wc_read_wc_flags(ex));
	EXPECT_EQ(htobe32(77), ibv_wc_read_imm_data(ex));
	EXPECT_EQ(ENOENT, ibv_next_poll(ex));
	ibv_end_poll(ex);

	/* Both interfaces take from the same ring. */
	ASSERT_EQ(0, ibv_modify_qp(self->qb, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_ERR },
				   IBV_QP_STATE));
	OK(next_wc(self->b.cq, &wc));
	EXPECT_EQ(3, wc.wr_id);
	EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
}

TEST_F(one, completion_queues_that_are_not_supported)
{
	struct ibv_cq_init_attr_ex stamps = {
		.cqe = DEPTH, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	}, parent = {
		.cqe = DEPTH, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = self->a.pd,
	}, flags = {
		.cqe = DEPTH, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = 1 << 2,
	}, none = {}, vector = {
		.cqe = DEPTH, .comp_vector = self->a.context->num_comp_vectors,
	};

	EXPECT_EQ(NULL, ibv_create_cq_ex(self->a.context, &stamps));
	EXPECT_EQ(EOPNOTSUPP, errno);
	errno = 0;
	EXPECT_EQ(NULL, ibv_create_cq_ex(self->a.context, &parent));
	EXPECT_EQ(EOPNOTSUPP, errno);
	errno = 0;
	EXPECT_EQ(NULL, ibv_create_cq_ex(self->a.context, &flags));
	EXPECT_EQ(EOPNOTSUPP, errno);
	EXPECT_EQ(NULL, ibv_create_cq_ex(self->a.context, &none));
	EXPECT_EQ(EINVAL, errno);
	errno = 0;
	EXPECT_EQ(NULL, ibv_create_cq_ex(self->a.context, &vector));
	EXPECT_EQ(EINVAL, errno);
}

/* A sender at @from, connected with a new receive queue pair of @domain, which is of @to. */
static struct ibv_qp *make_xrc_pair(struct side *from, struct side *to,
				    struct ibv_xrc_domain *domain, __u32 *qp_num)
{
	struct ibv_qp_init_attr attr = { .xrc_domain = domain };
	struct ibv_qp *sender = make_qp(from, IBV_QPT_XRC, NULL);
	struct ibv_qp_attr init = init_attr(), rtr;

	if (!sender || ibv_create_xrc_rcv_qp(&attr, qp_num))
		return NULL;
	rtr = rtr_attr(to, from, sender->qp_num);
	if (ibv_modify_xrc_rcv_qp(domain, *qp_num, &init, INIT_MASK) ||
	    ibv_modify_xrc_rcv_qp(domain, *qp_num, &rtr, RTR_MASK) ||
	    to_rts(sender, from, to, *qp_num))
		return NULL;
	return sender;
}

static bool is_event_of(struct ibv_context *context, __u32 qp_num, int type)
{
	struct ibv_async_event event;
	bool right;

	if (!readable(context->async_fd, PATIENCE_MS) || ibv_get_async_event(context, &event))
		return false;
	right = (int)event.event_type == (type | (int)IBV_XRC_QP_EVENT_FLAG) &&
		event.element.xrc_qp_num == qp_num;
	ibv_ack_async_event(&event);
	return right;
}

/* OFED's way from end to end: three queues behind one receive queue pair. */
TEST_F(two, xrc_of_ofed)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_xrc_domain *domain;
	struct ibv_srq *srqs[3];
	__u32 qp_num;
	struct ibv_qp *sender;
	struct ibv_srq_attr limit = { .srq_limit = 1 };
	struct ibv_async_event event;
	struct ibv_wc wc;
	int fd = temporary_file(), i;

	domain = open_domain(self->b.context, fd, O_CREAT);
	ASSERT_NE(NULL, domain);
	for (i = 0; i < 3; i++) {
		srqs[i] = make_xrc_srq(&self->b, domain);
		ASSERT_NE(NULL, srqs[i]);
		ASSERT_EQ(0, post_recv(NULL, srqs[i], &self->b, 100 + i));
	}
	sender = make_xrc_pair(&self->a, &self->b, domain, &qp_num);
	ASSERT_NE(NULL, sender);

	for (i = 2; i >= 0; i--) {
		snprintf(self->a.memory, 16, "to queue %d", i);
		ASSERT_EQ(0, post_send(sender, &self->a, i, 11, srqs[i]->xrc_srq_num));
		OK(next_wc(self->b.cq, &wc));
		EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
		EXPECT_EQ(100 + i, wc.wr_id);
		EXPECT_EQ(qp_num, wc.qp_num);
		EXPECT_EQ(0, strcmp(self->a.memory, self->b.memory + MEMORY / 2));
		OK(next_wc(self->a.cq, &wc));
		EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
	}
	/* Its first message is an event, by its number. */
	EXPECT_TRUE(is_event_of(self->b.context, qp_num, IBV_EVENT_COMM_EST));
	/* A queue's limit is an event of the device, not of its CQ. */
	ASSERT_EQ(0, post_recv(NULL, srqs[0], &self->b, 200));
	ASSERT_EQ(0, ibv_modify_srq(srqs[0], &limit, IBV_SRQ_LIMIT));
	ASSERT_EQ(0, post_send(sender, &self->a, 3, 4, srqs[0]->xrc_srq_num));
	ASSERT_TRUE(readable(self->b.context->async_fd, PATIENCE_MS));
	ASSERT_EQ(0, ibv_get_async_event(self->b.context, &event));
	EXPECT_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, event.event_type);
	EXPECT_EQ(srqs[0], event.element.srq);
	ibv_ack_async_event(&event);

	ASSERT_EQ(0, ibv_modify_xrc_rcv_qp(domain, qp_num, &error, IBV_QP_STATE));
	EXPECT_TRUE(is_event_of(self->b.context, qp_num, IBV_EVENT_QP_LAST_WQE_REACHED));
	EXPECT_EQ(0, ibv_destroy_qp(sender));
	EXPECT_EQ(0, ibv_unreg_xrc_rcv_qp(domain, qp_num));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, ibv_destroy_srq(srqs[i]));
	EXPECT_EQ(0, close_domain(domain));
	close(fd);
}

/* OFED tells each process that is registered of what becomes of a receive queue pair. */
TEST_F(two, events_of_a_receive_queue_pair_reach_all_who_are_registered)
{
	struct ibv_xrc_domain *domain, *of_other;
	struct ibv_qp_init_attr created;
	struct ibv_qp_attr got;
	struct ibv_context *other;
	int fd = temporary_file();
	struct ibv_qp *sender;
	struct ibv_srq *srq;
	struct ibv_wc wc;
	__u32 qp_num;

	other = ibv_open_device(self->b.context->device);
	ASSERT_NE(NULL, other);
	domain = open_domain(self->b.context, fd, O_CREAT);
	ASSERT_NE(NULL, domain);
	of_other = open_domain(other, fd, 0);
	ASSERT_NE(NULL, of_other);
	srq = make_xrc_srq(&self->b, domain);
	ASSERT_NE(NULL, srq);
	ASSERT_EQ(0, post_recv(NULL, srq, &self->b, 1));
	sender = make_xrc_pair(&self->a, &self->b, domain, &qp_num);
	ASSERT_NE(NULL, sender);
	ASSERT_EQ(0, ibv_reg_xrc_rcv_qp(of_other, qp_num));

	ASSERT_EQ(0, post_send(sender, &self->a, 1, 8, srq->xrc_srq_num));
	OK(next_wc(self->b.cq, &wc));
	EXPECT_EQ(1, wc.wr_id);
	EXPECT_TRUE(is_event_of(self->b.context, qp_num, IBV_EVENT_COMM_EST));
	EXPECT_TRUE(is_event_of(other, qp_num, IBV_EVENT_COMM_EST));
	/* A queue that is not there ends the connection. */
	ASSERT_EQ(0, post_send(sender, &self->a, 2, 8, srq->xrc_srq_num + 1));
	EXPECT_TRUE(is_event_of(self->b.context, qp_num, IBV_EVENT_QP_FATAL));
	EXPECT_TRUE(is_event_of(other, qp_num, IBV_EVENT_QP_FATAL));
	ASSERT_EQ(0, ibv_query_xrc_rcv_qp(of_other, qp_num, &got, IBV_QP_STATE, &created));
	EXPECT_EQ(IBV_QPS_ERR, got.qp_state);

	EXPECT_EQ(0, ibv_destroy_qp(sender));
	EXPECT_EQ(0, ibv_unreg_xrc_rcv_qp(domain, qp_num));
	EXPECT_EQ(0, ibv_unreg_xrc_rcv_qp(of_other, qp_num));
	EXPECT_EQ(0, ibv_destroy_srq(srq));
	EXPECT_EQ(0, close_domain(domain));
	EXPECT_EQ(0, close_domain(of_other));
	EXPECT_EQ(0, ibv_close_device(other));
	close(fd);
}

TEST_HARNESS_MAIN
