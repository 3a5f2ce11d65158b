// SPDX-License-Identifier: GPL-2.0
/*
 * DAT (uDAPL) programs on dapx, by the registry and dat.conf as any of them.
 *
 * Tests that begin with rmr_free, rmr_query or ep_free are named after the
 * sentences of those manual pages.
 */
#include "dat_versions.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/dice.h"
#include "harness/fabric.h"
#include "harness/machine.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 120

#define MEMORY 65536
#define DEPTH 64
#define PORT 7800
/* Microseconds. */
#define SOON 100000
#define LATER 20000000

/* What the C library calls for epoll_wait(). */
#ifdef SYS_epoll_wait
#define EPOLL_WAIT_NR SYS_epoll_wait
#else
#define EPOLL_WAIT_NR SYS_epoll_pwait
#endif

#define SUCCEEDS(call) ASSERT_EQ(DAT_SUCCESS, (call))
/* The type of an error, and that it is one. */
#define FAILS(type, call)							\
	ASSERT_EQ((DAT_RETURN)(DAT_CLASS_ERROR | (type)),		\
		  (call) & ~(DAT_RETURN)DAT_SUBTYPE_MASK)
/* The same with the subtype. */
#define FAILS_AS(type, subtype, call)					\
	ASSERT_EQ((DAT_RETURN)(DAT_CLASS_ERROR | (type)) | (subtype), (call))

/* Everything that one side of a connection has. */
struct side {
	DAT_IA_HANDLE ia;
	DAT_IA_ATTR attr;
	DAT_EVD_HANDLE async, cr, conn, recv, request;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	char *memory;
};

/*
 * libdat2 reads dat.conf as it is loaded. So the program starts once more, with
 * one that names the devices here and the provider of this build.
 */
__attribute__((constructor)) static void configure(int argc, char **argv)
{
	const char *build = getenv("DAPX_BUILD") ?: "build";
	char command[1024], path[64];
	int fd;

	if (getenv("DAT_OVERRIDE"))
		return;
	fd = memfd_create("dat.conf", 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	snprintf(command, sizeof(command),
		 "%s/tools/dapxctl dat-conf --library-folder \"$(realpath %s)/lib/dat\" >&%d",
		 build, build, fd);
	if (fd < 0 || system(command) || setenv("DAT_OVERRIDE", path, 1))
		exit(1);
	execv("/proc/self/exe", argv);
	exit(1);
}

static DAT_RETURN open_ia(const char *device, struct side *side)
{
	char name[64];

	snprintf(name, sizeof(name), "dapx-%s", device);
	side->async = DAT_HANDLE_NULL;
	return dat_ia_open(name, 8, &side->async, &side->ia);
}

static DAT_RETURN create_evd(struct side *side, DAT_EVD_FLAGS flags,
			     DAT_EVD_HANDLE *evd)
{
	return dat_evd_create(side->ia, 2 * DEPTH, DAT_HANDLE_NULL, flags, evd);
}

static DAT_RETURN create_ep(struct side *side, DAT_EP_HANDLE *ep)
{
	return dat_ep_create(side->ia, side->pz, side->recv, side->request,
			     side->conn, NULL, ep);
}

static DAT_RETURN register_memory(struct side *side, DAT_MEM_PRIV_FLAGS rights,
				  DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *local,
				  DAT_RMR_CONTEXT *remote)
{
	DAT_REGION_DESCRIPTION region = { .for_va = side->memory };
	DAT_VLEN size;
	DAT_VADDR address;

	return create_lmr(side->ia, DAT_MEM_TYPE_VIRTUAL, region, MEMORY, side->pz, rights,
			  lmr, local, remote, &size, &address);
}

static bool set_up(const char *device, struct side *side)
{
	side->memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return side->memory != MAP_FAILED && !open_ia(device, side) &&
	       !dat_ia_query(side->ia, NULL, DAT_IA_FIELD_ALL, &side->attr, 0, NULL) &&
	       !create_evd(side, DAT_EVD_CR_FLAG, &side->cr) &&
	       !create_evd(side, DAT_EVD_CONNECTION_FLAG, &side->conn) &&
	       !create_evd(side, DAT_EVD_DTO_FLAG, &side->recv) &&
	       !create_evd(side, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG,
			   &side->request) &&
	       !dat_pz_create(side->ia, &side->pz) && !create_ep(side, &side->ep) &&
	       !register_memory(side, DAT_MEM_PRIV_ALL_FLAG, &side->lmr,
				&side->lmr_context, &side->rmr_context);
}

static DAT_EVENT_NUMBER next(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	DAT_COUNT more;

	return dat_evd_wait(evd, LATER, 1, event, &more) ? 0 : event->event_number;
}

static DAT_RETURN connect_to(struct side *from, DAT_EP_HANDLE ep,
			     struct side *to, DAT_CONN_QUAL port)
{
	return dat_ep_connect(ep, to->attr.ia_address_ptr, port, LATER, 0, NULL,
			      DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

/* Connects from->ep with to->ep. */
static bool connect_both(struct side *from, struct side *to)
{
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL port;
	DAT_EVENT event;

	return !dat_psp_create_any(to->ia, &port, to->cr, DAT_PSP_CONSUMER_FLAG,
				   &psp) &&
	       !connect_to(from, from->ep, to, port) &&
	       next(to->cr, &event) == DAT_CONNECTION_REQUEST_EVENT &&
	       !dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle,
			      to->ep, 0, NULL) &&
	       next(to->conn, &event) == DAT_CONNECTION_EVENT_ESTABLISHED &&
	       next(from->conn, &event) == DAT_CONNECTION_EVENT_ESTABLISHED &&
	       !dat_psp_free(psp);
}

static DAT_CONTEXT cookie_of(DAT_UINT64 number)
{
	DAT_CONTEXT cookie = { .as_64 = number };

	return cookie;
}

static DAT_LMR_TRIPLET part(struct side *side, size_t offset, DAT_VLEN length)
{
	DAT_LMR_TRIPLET triplet = {
		.virtual_address = (uintptr_t)side->memory + offset,
		.segment_length = length,
		.lmr_context = side->lmr_context,
	};

	return triplet;
}

static DAT_RETURN post_recv(struct side *side, DAT_UINT64 cookie)
{
	DAT_LMR_TRIPLET segment = part(side, 0, 4096);

	return dat_ep_post_recv(side->ep, 1, &segment,
				cookie_of(cookie),
				DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN post_send(struct side *side, DAT_VLEN length,
			    DAT_UINT64 cookie, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET segment = part(side, 4096, length);

	return dat_ep_post_send(side->ep, 1, &segment,
				cookie_of(cookie), flags);
}

/* From this side's memory to @to's, by @context. */
static DAT_RETURN post_write(struct side *side, struct side *to, DAT_VLEN length,
			     DAT_RMR_CONTEXT context, DAT_UINT64 cookie)
{
	DAT_LMR_TRIPLET segment = part(side, 0, length);
	DAT_RMR_TRIPLET remote = {
		.TARGET = (uintptr_t)to->memory,
		.segment_length = length,
		.rmr_context = context,
	};

	return dat_ep_post_rdma_write(side->ep, 1, &segment,
				      cookie_of(cookie), &remote,
				      DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN bind_window_to(struct side *side, DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr,
				 DAT_LMR_TRIPLET triplet, DAT_MEM_PRIV_FLAGS rights,
			    DAT_RMR_CONTEXT *context)
{
	return bind_rmr(rmr, lmr, &triplet, rights, side->ep, cookie_of(77), context);
}

/* Binds, and waits until that is done. */
static DAT_RETURN bind_window(struct side *side, DAT_RMR_HANDLE rmr, DAT_VLEN length,
			      DAT_RMR_CONTEXT *context)
{
	DAT_RETURN rc = bind_window_to(side, rmr, side->lmr, part(side, 0, length),
				  DAT_MEM_PRIV_REMOTE_READ_FLAG |
				  DAT_MEM_PRIV_REMOTE_WRITE_FLAG, context);
	DAT_EVENT event;

	if (rc)
		return rc;
	if (next(side->request, &event) != DAT_RMR_BIND_COMPLETION_EVENT ||
	    event.event_data.rmr_completion_event_data.status != DAT_RMR_BIND_SUCCESS ||
	    event.event_data.rmr_completion_event_data.rmr_handle != rmr ||
	    event.event_data.rmr_completion_event_data.user_cookie.as_64 != 77)
		return DAT_INTERNAL_ERROR;
	return DAT_SUCCESS;
}

static DAT_EP_STATE state_of(DAT_EP_HANDLE ep)
{
	DAT_EP_STATE state;

	return dat_ep_get_status(ep, &state, NULL, NULL) ? (DAT_EP_STATE)-1 : state;
}

FIXTURE(dat)
{
	struct side a;
	struct side b;
};

FIXTURE_SETUP(dat)
{
	ASSERT_TRUE(set_up(getenv("DAPX_DEV") ?: "rxe0", &self->a));
	ASSERT_TRUE(set_up(getenv("DAPX_PEER_DEV") ?: "rxe1", &self->b));
}

FIXTURE_TEARDOWN(dat)
{
	/* Whatever a test has left. */
	EXPECT_EQ(DAT_SUCCESS, dat_ia_close(self->a.ia, DAT_CLOSE_ABRUPT_FLAG));
	EXPECT_EQ(DAT_SUCCESS, dat_ia_close(self->b.ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* --- dat_rmr_free(3) ------------------------------------------------------ */

TEST_F(dat, rmr_free_destroys_an_instance_of_the_rmr)
{
	DAT_RMR_HANDLE rmr;

	SUCCEEDS(dat_rmr_create(self->a.pz, &rmr));
	/* It was in the way. */
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE, dat_pz_free(self->a.pz));
	SUCCEEDS(dat_rmr_free(rmr));
}

TEST_F(dat, rmr_free_use_of_the_handle_in_any_subsequent_operation_fails)
{
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;
	DAT_RMR_PARAM param;
	DAT_CONTEXT mine;

	ASSERT_TRUE(connect_both(&self->a, &self->b));
	SUCCEEDS(dat_rmr_create(self->a.pz, &rmr));
	SUCCEEDS(dat_rmr_free(rmr));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR,
		 dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR,
		 bind_window(&self->a, rmr, 4096, &context));
	FAILS(DAT_INVALID_HANDLE, dat_get_consumer_context(rmr, &mine));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR, dat_rmr_free(rmr));
}

TEST_F(dat, rmr_free_request_that_arrived_after_it_completed_fails)
{
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;
	DAT_EVENT event;

	ASSERT_TRUE(connect_both(&self->a, &self->b));
	SUCCEEDS(dat_rmr_create(self->b.pz, &rmr));
	SUCCEEDS(bind_window(&self->b, rmr, 4096, &context));
	memset(self->a.memory, 0x11, 4096);
	SUCCEEDS(post_write(&self->a, &self->b, 4096, context, 1));
	ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->a.request, &event));
	ASSERT_EQ(DAT_DTO_SUCCESS, event.event_data.dto_completion_event_data.status);
	ASSERT_EQ(0, memcmp(self->a.memory, self->b.memory, 4096));

	SUCCEEDS(dat_rmr_free(rmr));
	memset(self->a.memory, 0x22, 4096);
	SUCCEEDS(post_write(&self->a, &self->b, 4096, context, 2));
	/* "reports a protection violation ... and the connection is broken" */
	ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->a.request, &event));
	EXPECT_EQ(DAT_DTO_ERR_REMOTE_ACCESS,
		  event.event_data.dto_completion_event_data.status);
	EXPECT_EQ(2, event.event_data.dto_completion_event_data.user_cookie.as_64);
	EXPECT_EQ(DAT_CONNECTION_EVENT_BROKEN, next(self->a.conn, &event));
	EXPECT_EQ(DAT_EP_STATE_DISCONNECTED, state_of(self->a.ep));
	for (int i = 0; i < 4096; i++)
		ASSERT_EQ(0x11, self->b.memory[i]);
}

TEST_F(dat, rmr_free_request_that_arrived_before_might_or_might_not_complete)
{
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;
	DAT_EVENT event;
	int succeeded = 0;
	bool failed = false;
	char *copy;
	int i;

	ASSERT_TRUE(connect_both(&self->a, &self->b));
	SUCCEEDS(dat_rmr_create(self->b.pz, &rmr));
	SUCCEEDS(bind_window(&self->b, rmr, MEMORY, &context));
	memset(self->a.memory, 0x33, MEMORY);
	for (i = 0; i < 8; i++)
		SUCCEEDS(post_write(&self->a, &self->b, MEMORY, context, i));
	/* In the middle of them. */
	ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->a.request, &event));
	succeeded += event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS;
	memset(self->a.memory, 0x44, MEMORY);
	SUCCEEDS(dat_rmr_free(rmr));
	copy = malloc(MEMORY);
	ASSERT_NE(NULL, copy);
	memcpy(copy, self->b.memory, MEMORY);
	for (i = 1; i < 8; i++) {
		DAT_DTO_COMPLETION_STATUS status;

		ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->a.request, &event));
		status = event.event_data.dto_completion_event_data.status;
		ASSERT_EQ(i, event.event_data.dto_completion_event_data.user_cookie.as_64);
		if (status == DAT_DTO_SUCCESS) {
			ASSERT_FALSE(failed);
			succeeded++;
		} else {
			/* The first that fails says why, the others are flushed. */
			ASSERT_EQ(failed ? DAT_DTO_ERR_FLUSHED : DAT_DTO_ERR_REMOTE_ACCESS,
				  status);
			failed = true;
		}
	}
	if (failed)
		EXPECT_EQ(DAT_CONNECTION_EVENT_BROKEN, next(self->a.conn, &event));
	EXPECT_LE(1, succeeded);
	/* Not a byte has changed since it returned. */
	EXPECT_EQ(0, memcmp(copy, self->b.memory, MEMORY));
	free(copy);
}

TEST_F(dat, rmr_free_is_allowed_on_either_bound_or_unbound_rmr)
{
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr[2];

	ASSERT_TRUE(connect_both(&self->a, &self->b));
	SUCCEEDS(dat_rmr_create(self->a.pz, &rmr[0]));
	SUCCEEDS(dat_rmr_create(self->a.pz, &rmr[1]));
	SUCCEEDS(bind_window(&self->a, rmr[0], 4096, &context));
	SUCCEEDS(dat_rmr_free(rmr[0]));
	SUCCEEDS(dat_rmr_free(rmr[1]));
}

TEST_F(dat, rmr_free_unbinds_a_bound_one)
{
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;

	ASSERT_TRUE(connect_both(&self->a, &self->b));
	SUCCEEDS(dat_rmr_create(self->a.pz, &rmr));
	SUCCEEDS(bind_window(&self->a, rmr, 4096, &context));
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE, dat_lmr_free(self->a.lmr));
	SUCCEEDS(dat_rmr_free(rmr));
	SUCCEEDS(dat_lmr_free(self->a.lmr));
}

/* Needs no endpoint: it has no way to fail. */
TEST_F(dat, rmr_free_without_the_endpoint_it_was_bound_by)
{
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;

	ASSERT_TRUE(connect_both(&self->a, &self->b));
	SUCCEEDS(dat_rmr_create(self->a.pz, &rmr));
	SUCCEEDS(bind_window(&self->a, rmr, 4096, &context));
	SUCCEEDS(dat_ep_free(self->a.ep));
	SUCCEEDS(dat_rmr_free(rmr));
	SUCCEEDS(dat_lmr_free(self->a.lmr));
}

TEST_F(dat, rmr_free_the_rmr_handle_handle_is_invalid)
{
	FAILS(DAT_INVALID_HANDLE, dat_rmr_free(DAT_HANDLE_NULL));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR, dat_rmr_free(self->a.lmr));
}

/* --- dat_rmr_query(3) ----------------------------------------------------- */

TEST_F(dat, rmr_query_provides_rmr_parameters)
{
	DAT_RMR_CONTEXT context;
	DAT_RMR_PARAM param;
	DAT_RMR_HANDLE rmr;

	ASSERT_TRUE(connect_both(&self->a, &self->b));
	SUCCEEDS(dat_rmr_create(self->a.pz, &rmr));
	SUCCEEDS(bind_window(&self->a, rmr, 8192, &context));
	SUCCEEDS(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	EXPECT_EQ(self->a.ia, param.ia_handle);
	EXPECT_EQ(self->a.pz, param.pz_handle);
	EXPECT_EQ((uintptr_t)self->a.memory, param.lmr_triplet.virtual_address);
	EXPECT_EQ(8192, param.lmr_triplet.segment_length);
	EXPECT_EQ(self->a.lmr_context, param.lmr_triplet.lmr_context);
	EXPECT_EQ(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
		  param.mem_priv);
	EXPECT_EQ(context, param.rmr_context);
}

TEST_F(dat, rmr_query_mask_allows_to_specify_which_parameters)
{
	DAT_RMR_PARAM param;
	DAT_RMR_HANDLE rmr;

	SUCCEEDS(dat_rmr_create(self->a.pz, &rmr));
	SUCCEEDS(dat_rmr_query(rmr, DAT_RMR_FIELD_PZ_HANDLE, &param));
	EXPECT_EQ(self->a.pz, param.pz_handle);
	SUCCEEDS(dat_rmr_query(rmr, 0, &param));
}

TEST_F(dat, rmr_query_not_all_parameters_have_a_value_at_all_times)
{
	DAT_RMR_PARAM param;
	DAT_RMR_HANDLE rmr;

	SUCCEEDS(dat_rmr_create(self->a.pz, &rmr));
	/* Asking is no fault; what has no value is 0. */
	SUCCEEDS(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	EXPECT_EQ(self->a.ia, param.ia_handle);
	EXPECT_EQ(self->a.pz, param.pz_handle);
	EXPECT_EQ(0, param.rmr_context);
	EXPECT_EQ(0, param.lmr_triplet.segment_length);
}

TEST_F(dat, rmr_query_the_mask_is_invalid)
{
	DAT_RMR_PARAM param;
	DAT_RMR_HANDLE rmr;

	SUCCEEDS(dat_rmr_create(self->a.pz, &rmr));
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		 dat_rmr_query(rmr, DAT_RMR_FIELD_ALL + 1, &param));
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		 dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, NULL));
}

TEST_F(dat, rmr_query_the_rmr_handle_is_invalid)
{
	DAT_RMR_PARAM param;

	FAILS(DAT_INVALID_HANDLE, dat_rmr_query(DAT_HANDLE_NULL, DAT_RMR_FIELD_ALL, &param));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR,
		 dat_rmr_query(self->a.pz, DAT_RMR_FIELD_ALL, &param));
}

/* --- dat_rmr_bind --------------------------------------------------------- */

TEST_F(dat, rmr_bind_gives_a_new_context_and_ends_the_old)
{
	DAT_RMR_CONTEXT first, second;
	DAT_RMR_HANDLE rmr;
	DAT_EVENT event;

	ASSERT_TRUE(connect_both(&self->a, &self->b));
	SUCCEEDS(dat_rmr_create(self->b.pz, &rmr));
	SUCCEEDS(bind_window(&self->b, rmr, 4096, &first));
	SUCCEEDS(bind_window(&self->b, rmr, 4096, &second));
	EXPECT_NE(first, second);
	SUCCEEDS(post_write(&self->a, &self->b, 64, second, 1));
	ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->a.request, &event));
	EXPECT_EQ(DAT_DTO_SUCCESS, event.event_data.dto_completion_event_data.status);
	SUCCEEDS(post_write(&self->a, &self->b, 64, first, 2));
	ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->a.request, &event));
	EXPECT_EQ(DAT_DTO_ERR_REMOTE_ACCESS,
		  event.event_data.dto_completion_event_data.status);
}

TEST_F(dat, rmr_bind_of_length_0_unbinds)
{
	DAT_RMR_CONTEXT context, undefined;
	DAT_RMR_HANDLE rmr;
	DAT_EVENT event;

	ASSERT_TRUE(connect_both(&self->a, &self->b));
	SUCCEEDS(dat_rmr_create(self->b.pz, &rmr));
	SUCCEEDS(bind_window(&self->b, rmr, 4096, &context));
	SUCCEEDS(bind_window(&self->b, rmr, 0, &undefined));
	SUCCEEDS(dat_lmr_free(self->b.lmr));
	SUCCEEDS(post_write(&self->a, &self->b, 64, context, 2));
	ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->a.request, &event));
	EXPECT_EQ(DAT_DTO_ERR_REMOTE_ACCESS,
		  event.event_data.dto_completion_event_data.status);
}

TEST_F(dat, rmr_bind_refuses)
{
	DAT_LMR_TRIPLET good = part(&self->a, 0, 4096), bad;
	DAT_RMR_CONTEXT context;
	DAT_PZ_HANDLE other_pz;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT local;
	DAT_RMR_HANDLE rmr, other_rmr;

	SUCCEEDS(dat_rmr_create(self->a.pz, &rmr));
	/* Not connected. */
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED,
		 bind_window(&self->a, rmr, 4096, &context));
	ASSERT_TRUE(connect_both(&self->a, &self->b));

#ifndef DAT_1_2
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR,
		 bind_window_to(&self->a, rmr, DAT_HANDLE_NULL, good,
				DAT_MEM_PRIV_REMOTE_READ_FLAG, &context));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR,
		 bind_window_to(&self->a, rmr, self->a.ep, good,
				DAT_MEM_PRIV_REMOTE_READ_FLAG, &context));
#endif
	bad = part(&self->a, MEMORY - 4095, 4096);
	FAILS(DAT_INVALID_PARAMETER, bind_window_to(&self->a, rmr, self->a.lmr, bad,
						    DAT_MEM_PRIV_REMOTE_READ_FLAG, &context));
	bad = good;
	bad.lmr_context ^= 1;
	FAILS(DAT_INVALID_PARAMETER, bind_window_to(&self->a, rmr, self->a.lmr, bad,
						    DAT_MEM_PRIV_REMOTE_READ_FLAG, &context));

	/* The memory's own rights. */
	SUCCEEDS(register_memory(&self->a, DAT_MEM_PRIV_LOCAL_READ_FLAG, &lmr, &local, NULL));
	bad = good;
	bad.lmr_context = local;
	FAILS_AS(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE,
		 bind_window_to(&self->a, rmr, lmr, bad, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, &context));

	/* Another PZ. */
	SUCCEEDS(dat_pz_create(self->a.ia, &other_pz));
	SUCCEEDS(dat_rmr_create(other_pz, &other_rmr));
	FAILS(DAT_PROTECTION_VIOLATION,
	      bind_window_to(&self->a, other_rmr, self->a.lmr, good,
			     DAT_MEM_PRIV_REMOTE_READ_FLAG, &context));
}

/* --- dat_ep_free(3) ------------------------------------------------------- */

TEST_F(dat, ep_free_destroys_an_instance_of_the_endpoint)
{
	SUCCEEDS(dat_ep_free(self->a.ep));
	/* What it kept is free now. */
	SUCCEEDS(dat_lmr_free(self->a.lmr));
	SUCCEEDS(dat_pz_free(self->a.pz));
}

TEST_F(dat, ep_free_in_any_state_except_reserved_and_pending_ones)
{
	DAT_EP_HANDLE ep;
	DAT_EVENT event;
	DAT_PSP_HANDLE psp;

	/* Unconnected, with receives. */
	SUCCEEDS(create_ep(&self->a, &ep));
	SUCCEEDS(dat_ep_free(ep));
	SUCCEEDS(post_recv(&self->a, 1));
	SUCCEEDS(dat_ep_free(self->a.ep));
	/* Active connection pending: nobody answers. */
	SUCCEEDS(create_ep(&self->a, &ep));
	SUCCEEDS(dat_psp_create(self->b.ia, PORT, self->b.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	SUCCEEDS(connect_to(&self->a, ep, &self->b, PORT));
	ASSERT_EQ(DAT_CONNECTION_REQUEST_EVENT, next(self->b.cr, &event));
	EXPECT_EQ(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, state_of(ep));
	SUCCEEDS(dat_ep_free(ep));
	SUCCEEDS(reject(event.event_data.cr_arrival_event_data.cr_handle));
	/* Connected, and disconnected. */
	SUCCEEDS(create_ep(&self->a, &self->a.ep));
	ASSERT_TRUE(connect_both(&self->a, &self->b));
	EXPECT_EQ(DAT_EP_STATE_CONNECTED, state_of(self->a.ep));
	SUCCEEDS(dat_ep_free(self->a.ep));
	ASSERT_NE(0, next(self->b.conn, &event));
	EXPECT_EQ(DAT_EP_STATE_DISCONNECTED, state_of(self->b.ep));
	SUCCEEDS(dat_ep_free(self->b.ep));
}

TEST_F(dat, ep_free_consumer_must_be_ready_for_completions_or_not)
{
	DAT_EVENT event;
	int i;

	ASSERT_TRUE(connect_both(&self->a, &self->b));
	for (i = 0; i < 8; i++) {
		SUCCEEDS(post_recv(&self->b, i));
		SUCCEEDS(post_recv(&self->a, i));
		SUCCEEDS(post_send(&self->a, 64, i, DAT_COMPLETION_DEFAULT_FLAG));
	}
	SUCCEEDS(dat_ep_free(self->a.ep));
	/* Whichever are there are those of this endpoint. */
	while (dat_evd_dequeue(self->a.request, &event) == DAT_SUCCESS)
		EXPECT_EQ(self->a.ep, event.event_data.dto_completion_event_data.ep_handle);
	while (dat_evd_dequeue(self->a.recv, &event) == DAT_SUCCESS)
		EXPECT_EQ(self->a.ep, event.event_data.dto_completion_event_data.ep_handle);
}

TEST_F(dat, ep_free_during_connection_setup_aborts_establishment)
{
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	SUCCEEDS(dat_psp_create(self->b.ia, PORT, self->b.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	SUCCEEDS(connect_to(&self->a, self->a.ep, &self->b, PORT));
	ASSERT_EQ(DAT_CONNECTION_REQUEST_EVENT, next(self->b.cr, &event));
	SUCCEEDS(dat_ep_free(self->a.ep));
	/* The peer may say yes; it comes to nothing. */
	if (dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, self->b.ep,
			  0, NULL) == DAT_SUCCESS) {
		ASSERT_NE(0, next(self->b.conn, &event));
		EXPECT_NE(DAT_CONNECTION_EVENT_ESTABLISHED, event.event_number);
	}
	/* And nothing is told here. */
	FAILS(DAT_QUEUE_EMPTY, dat_evd_dequeue(self->a.conn, &event));
}

TEST_F(dat, ep_free_in_the_reserved_state_after_its_rsp)
{
	DAT_RSP_HANDLE rsp;

	SUCCEEDS(dat_rsp_create(self->a.ia, PORT, self->a.ep, self->a.cr, &rsp));
	EXPECT_EQ(DAT_EP_STATE_RESERVED, state_of(self->a.ep));
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED, dat_ep_free(self->a.ep));
	SUCCEEDS(dat_rsp_free(rsp));
	EXPECT_EQ(DAT_EP_STATE_UNCONNECTED, state_of(self->a.ep));
	SUCCEEDS(dat_ep_free(self->a.ep));
}

TEST_F(dat, ep_free_in_the_passive_pending_state_after_the_reject)
{
	DAT_CR_ARRIVAL_EVENT_DATA *cr;
	DAT_RSP_HANDLE rsp;
	DAT_RSP_PARAM param;
	DAT_EVENT event;

	SUCCEEDS(dat_rsp_create(self->b.ia, PORT, self->b.ep, self->b.cr, &rsp));
	SUCCEEDS(connect_to(&self->a, self->a.ep, &self->b, PORT));
	ASSERT_EQ(DAT_CONNECTION_REQUEST_EVENT, next(self->b.cr, &event));
	cr = &event.event_data.cr_arrival_event_data;
	EXPECT_EQ(rsp, cr->sp_handle.rsp_handle);
	/* It was for one request. */
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP,
		 dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
	/* But for this, once: some programs do so, others do not. */
	SUCCEEDS(dat_rsp_free(rsp));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP, dat_rsp_free(rsp));
	EXPECT_EQ(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, state_of(self->b.ep));
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_PASSCONNPENDING,
		 dat_ep_free(self->b.ep));
	SUCCEEDS(reject(cr->cr_handle));
	EXPECT_EQ(DAT_EP_STATE_UNCONNECTED, state_of(self->b.ep));
	SUCCEEDS(dat_ep_free(self->b.ep));
	EXPECT_EQ(DAT_CONNECTION_EVENT_PEER_REJECTED, next(self->a.conn, &event));
}

TEST_F(dat, ep_free_in_the_tentative_pending_state_is_the_providers)
{
	DAT_CR_PARAM param;
	DAT_PSP_HANDLE psp;
	DAT_EP_STATE state;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	SUCCEEDS(dat_psp_create(self->b.ia, PORT, self->b.cr, DAT_PSP_PROVIDER_FLAG, &psp));
	SUCCEEDS(connect_to(&self->a, self->a.ep, &self->b, PORT));
	ASSERT_EQ(DAT_CONNECTION_REQUEST_EVENT, next(self->b.cr, &event));
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	SUCCEEDS(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	ASSERT_NE(DAT_HANDLE_NULL, param.local_ep_handle);
	EXPECT_EQ(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING, state_of(param.local_ep_handle));
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_TENTCONNPENDING,
		 dat_ep_free(param.local_ep_handle));
	SUCCEEDS(reject(cr));
	/* Destroyed as far as the consumer is concerned. */
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		 dat_ep_get_status(param.local_ep_handle, &state, NULL, NULL));
}

TEST_F(dat, ep_free_destroys_its_event_streams)
{
	ASSERT_TRUE(connect_both(&self->a, &self->b));
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE, dat_evd_free(self->a.recv));
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE, dat_evd_free(self->a.request));
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE, dat_evd_free(self->a.conn));
	SUCCEEDS(dat_ep_free(self->a.ep));
	SUCCEEDS(dat_evd_free(self->a.recv));
	SUCCEEDS(dat_evd_free(self->a.request));
	SUCCEEDS(dat_evd_free(self->a.conn));
}

TEST_F(dat, ep_free_use_of_the_handle_in_any_subsequent_operation_fails)
{
	DAT_EP_PARAM param;
	DAT_EP_STATE state;

	SUCCEEDS(dat_ep_free(self->a.ep));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		 dat_ep_query(self->a.ep, DAT_EP_FIELD_ALL, &param));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		 dat_ep_modify(self->a.ep, DAT_EP_FIELD_PZ_HANDLE, &param));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		 dat_ep_get_status(self->a.ep, &state, NULL, NULL));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		 connect_to(&self->a, self->a.ep, &self->b, PORT));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		 dat_ep_disconnect(self->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_reset(self->a.ep));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, post_recv(&self->a, 1));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		 post_send(&self->a, 1, 1, DAT_COMPLETION_DEFAULT_FLAG));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_free(self->a.ep));
}

TEST_F(dat, ep_free_the_ep_handle_is_invalid)
{
	FAILS(DAT_INVALID_HANDLE, dat_ep_free(DAT_HANDLE_NULL));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_free(self->a.pz));
}

/* --- Endpoints ------------------------------------------------------------ */

TEST_F(dat, completions_tell_all)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	ASSERT_TRUE(connect_both(&self->a, &self->b));
	SUCCEEDS(post_recv(&self->b, 0xfeedface00000001));
	memset(self->a.memory + 4096, 0x5a, 100);
	SUCCEEDS(post_send(&self->a, 100, 0xfeedface00000002, DAT_COMPLETION_DEFAULT_FLAG));
	dto = &event.event_data.dto_completion_event_data;
	ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->b.recv, &event));
	EXPECT_EQ(self->b.recv, event.evd_handle);
	EXPECT_EQ(self->b.ep, dto->ep_handle);
	EXPECT_EQ(0xfeedface00000001, dto->user_cookie.as_64);
	EXPECT_EQ(DAT_DTO_SUCCESS, dto->status);
	EXPECT_EQ(100, dto->transfered_length);
#ifndef DAT_1_2
	EXPECT_EQ(DAT_DTO_RECEIVE, dto->operation);
#endif
	EXPECT_EQ(0, memcmp(self->b.memory, self->a.memory + 4096, 100));
	ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->a.request, &event));
	EXPECT_EQ(self->a.ep, dto->ep_handle);
	EXPECT_EQ(0xfeedface00000002, dto->user_cookie.as_64);
	EXPECT_EQ(100, dto->transfered_length);
#ifndef DAT_1_2
	EXPECT_EQ(DAT_DTO_SEND, dto->operation);
#endif
}

TEST_F(dat, suppressed_completions_do_not_fill_anything_up)
{
	DAT_EVENT event;
	int i;

	ASSERT_TRUE(connect_both(&self->a, &self->b));
	/* Many times as many as an endpoint has room for. */
	for (i = 0; i < 20 * DEPTH; i++) {
		DAT_RETURN rc;

		SUCCEEDS(post_recv(&self->b, i));
		do
			rc = post_send(&self->a, 8, i, DAT_COMPLETION_SUPPRESS_FLAG);
		while (DAT_GET_TYPE(rc) == DAT_INSUFFICIENT_RESOURCES);
		SUCCEEDS(rc);
		ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->b.recv, &event));
		ASSERT_EQ(i, event.event_data.dto_completion_event_data.user_cookie.as_64);
	}
	FAILS(DAT_QUEUE_EMPTY, dat_evd_dequeue(self->a.request, &event));
	SUCCEEDS(post_recv(&self->b, i));
	SUCCEEDS(post_send(&self->a, 8, 4711, DAT_COMPLETION_DEFAULT_FLAG));
	ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->a.request, &event));
	EXPECT_EQ(4711, event.event_data.dto_completion_event_data.user_cookie.as_64);
}

TEST_F(dat, private_data_both_ways)
{
	char there[] = "from the active side", back[] = "and the answer";
	DAT_CR_PARAM param;
	DAT_CONN_QUAL port;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	SUCCEEDS(dat_psp_create_any(self->b.ia, &port, self->b.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	SUCCEEDS(dat_ep_connect(self->a.ep, self->b.attr.ia_address_ptr, port, LATER,
				sizeof(there), there, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	ASSERT_EQ(DAT_CONNECTION_REQUEST_EVENT, next(self->b.cr, &event));
	EXPECT_EQ(psp, event.event_data.cr_arrival_event_data.sp_handle.psp_handle);
	EXPECT_EQ(port, event.event_data.cr_arrival_event_data.conn_qual);
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	SUCCEEDS(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	ASSERT_LE((DAT_COUNT)sizeof(there), param.private_data_size);
	EXPECT_EQ(0, memcmp(param.private_data, there, sizeof(there)));
	EXPECT_EQ(AF_INET, param.remote_ia_address_ptr->sa_family);
	EXPECT_EQ(DAT_HANDLE_NULL, param.local_ep_handle);
	SUCCEEDS(dat_cr_accept(cr, self->b.ep, sizeof(back), back));
	ASSERT_EQ(DAT_CONNECTION_EVENT_ESTABLISHED, next(self->a.conn, &event));
	EXPECT_EQ(self->a.ep, event.event_data.connect_event_data.ep_handle);
	ASSERT_LE((DAT_COUNT)sizeof(back), event.event_data.connect_event_data.private_data_size);
	EXPECT_EQ(0, memcmp(event.event_data.connect_event_data.private_data, back,
			    sizeof(back)));
	ASSERT_EQ(DAT_CONNECTION_EVENT_ESTABLISHED, next(self->b.conn, &event));
	EXPECT_EQ(0, event.event_data.connect_event_data.private_data_size);
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR,
		 dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
}

TEST_F(dat, provider_makes_the_endpoint)
{
	DAT_EP_PARAM param = {};
	DAT_CR_PARAM request;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	SUCCEEDS(dat_psp_create(self->b.ia, PORT, self->b.cr, DAT_PSP_PROVIDER_FLAG, &psp));
	SUCCEEDS(connect_to(&self->a, self->a.ep, &self->b, PORT));
	ASSERT_EQ(DAT_CONNECTION_REQUEST_EVENT, next(self->b.cr, &event));
	SUCCEEDS(dat_cr_query(event.event_data.cr_arrival_event_data.cr_handle,
			      DAT_CR_FIELD_ALL, &request));
	/* Without a PZ and EVDs yet. */
	FAILS(DAT_INVALID_STATE,
	      dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle,
			    request.local_ep_handle, 0, NULL));
	param.pz_handle = self->b.pz;
	param.recv_evd_handle = self->b.recv;
	param.request_evd_handle = self->b.request;
	param.connect_evd_handle = self->b.conn;
	SUCCEEDS(dat_ep_modify(request.local_ep_handle,
			       DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
			 DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE,
			 &param));
	SUCCEEDS(dat_ep_free(self->b.ep));
	self->b.ep = request.local_ep_handle;
	SUCCEEDS(post_recv(&self->b, 5));
	SUCCEEDS(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle,
			       DAT_HANDLE_NULL, 0, NULL));
	ASSERT_EQ(DAT_CONNECTION_EVENT_ESTABLISHED, next(self->b.conn, &event));
	ASSERT_EQ(DAT_CONNECTION_EVENT_ESTABLISHED, next(self->a.conn, &event));
	SUCCEEDS(post_send(&self->a, 16, 6, DAT_COMPLETION_DEFAULT_FLAG));
	ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->b.recv, &event));
	EXPECT_EQ(5, event.event_data.dto_completion_event_data.user_cookie.as_64);
}

/* An endpoint that the provider made gets the sizes, or the SRQ, that its consumer wants. */
TEST_F(dat, provider_makes_an_endpoint_for_an_srq)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	DAT_EP_PARAM param = {};
	DAT_CR_PARAM request;
	DAT_PSP_HANDLE psp;
	DAT_SRQ_HANDLE srq;
	DAT_EVENT event;
	DAT_LMR_TRIPLET segment = part(&self->b, 0, 64);

	if (!self->b.attr.max_srqs)
		SKIP(return, "the device has no SRQs");
	SUCCEEDS(dat_srq_create(self->b.ia, self->b.pz, &attr, &srq));
	SUCCEEDS(dat_psp_create(self->b.ia, PORT, self->b.cr, DAT_PSP_PROVIDER_FLAG, &psp));
	SUCCEEDS(connect_to(&self->a, self->a.ep, &self->b, PORT));
	ASSERT_EQ(DAT_CONNECTION_REQUEST_EVENT, next(self->b.cr, &event));
	SUCCEEDS(dat_cr_query(event.event_data.cr_arrival_event_data.cr_handle,
			      DAT_CR_FIELD_ALL, &request));
	param.srq_handle = srq;
	/* It is of a PZ, and so has the endpoint to be. */
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ,
		 dat_ep_modify(request.local_ep_handle, DAT_EP_FIELD_SRQ_HANDLE, &param));
	param.pz_handle = self->b.pz;
	param.recv_evd_handle = self->b.recv;
	param.request_evd_handle = self->b.request;
	param.connect_evd_handle = self->b.conn;
	param.ep_attr.max_request_dtos = 4 * DEPTH;
	SUCCEEDS(dat_ep_modify(request.local_ep_handle,
			       DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
			       DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE |
			       DAT_EP_FIELD_SRQ_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS,
			       &param));
	SUCCEEDS(dat_ep_query(request.local_ep_handle, DAT_EP_FIELD_ALL, &param));
	EXPECT_EQ(srq, param.srq_handle);
	EXPECT_EQ(4 * DEPTH, param.ep_attr.max_request_dtos);
	SUCCEEDS(dat_ep_free(self->b.ep));
	self->b.ep = request.local_ep_handle;
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, post_recv(&self->b, 5));
	SUCCEEDS(dat_srq_post_recv(srq, 1, &segment, cookie_of(6)));
	SUCCEEDS(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle,
			       DAT_HANDLE_NULL, 0, NULL));
	ASSERT_EQ(DAT_CONNECTION_EVENT_ESTABLISHED, next(self->b.conn, &event));
	ASSERT_EQ(DAT_CONNECTION_EVENT_ESTABLISHED, next(self->a.conn, &event));
	SUCCEEDS(post_send(&self->a, 16, 7, DAT_COMPLETION_DEFAULT_FLAG));
	ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->b.recv, &event));
	EXPECT_EQ(6, event.event_data.dto_completion_event_data.user_cookie.as_64);
	FAILS(DAT_INVALID_STATE, dat_srq_free(srq));
	SUCCEEDS(dat_ep_free(self->b.ep));
	SUCCEEDS(dat_srq_free(srq));
}

TEST_F(dat, endpoint_gets_larger)
{
	DAT_EP_PARAM param = {};
	DAT_EVENT event;
	int i;

	param.ep_attr.max_recv_dtos = 4 * DEPTH;
	param.ep_attr.max_request_dtos = 4 * DEPTH;
	SUCCEEDS(dat_ep_modify(self->b.ep,
			       DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
			       DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &param));
	for (i = 0; i < 4 * DEPTH; i++)
		SUCCEEDS(post_recv(&self->b, i));
	/* What is posted would be lost. */
	param.ep_attr.max_recv_dtos = 8 * DEPTH;
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED,
		 dat_ep_modify(self->b.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param));
	SUCCEEDS(dat_ep_query(self->b.ep, DAT_EP_FIELD_ALL, &param));
	EXPECT_EQ(4 * DEPTH, param.ep_attr.max_recv_dtos);
	ASSERT_TRUE(connect_both(&self->a, &self->b));
	for (i = 0; i < 4 * DEPTH; i++) {
		SUCCEEDS(post_send(&self->a, 8, i, DAT_COMPLETION_DEFAULT_FLAG));
		ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->a.request, &event));
		ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->b.recv, &event));
		EXPECT_EQ(i, event.event_data.dto_completion_event_data.user_cookie.as_64);
	}
	for (i = 0; i < 4 * DEPTH; i++) {
		SUCCEEDS(post_recv(&self->a, i));
		SUCCEEDS(post_send(&self->b, 8, i, DAT_COMPLETION_SUPPRESS_FLAG));
		ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->a.recv, &event));
	}
}

TEST_F(dat, requests_are_handed_off)
{
	DAT_PSP_HANDLE first, second;
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;

	SUCCEEDS(create_evd(&self->b, DAT_EVD_CR_FLAG, &evd));
	SUCCEEDS(dat_psp_create(self->b.ia, PORT, self->b.cr, DAT_PSP_CONSUMER_FLAG, &first));
	SUCCEEDS(dat_psp_create(self->b.ia, PORT + 1, evd, DAT_PSP_CONSUMER_FLAG, &second));
	SUCCEEDS(connect_to(&self->a, self->a.ep, &self->b, PORT));
	ASSERT_EQ(DAT_CONNECTION_REQUEST_EVENT, next(self->b.cr, &event));
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_cr_handoff(cr, PORT + 2));
	SUCCEEDS(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	SUCCEEDS(dat_cr_handoff(cr, PORT + 1));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR,
		 dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	/* It does not depend on where it came to first. */
	SUCCEEDS(dat_psp_free(first));
	ASSERT_EQ(DAT_CONNECTION_REQUEST_EVENT, next(evd, &event));
	EXPECT_EQ(second, event.event_data.cr_arrival_event_data.sp_handle.psp_handle);
	EXPECT_EQ(PORT + 1, event.event_data.cr_arrival_event_data.conn_qual);
	SUCCEEDS(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, self->b.ep, 0,
			       NULL));
	ASSERT_EQ(DAT_CONNECTION_EVENT_ESTABLISHED, next(self->a.conn, &event));
}

/* Receives have ended when they are in the EVD, whether it is looked at or not. */
TEST_F(dat, endpoint_gets_larger_after_a_reset)
{
	DAT_COUNT count, span;
	DAT_EP_PARAM param = {};
	DAT_EVENT event;

	SUCCEEDS(post_recv(&self->a, 1));
	ASSERT_TRUE(connect_both(&self->a, &self->b));
	SUCCEEDS(dat_ep_disconnect(self->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	ASSERT_EQ(DAT_CONNECTION_EVENT_DISCONNECTED, next(self->a.conn, &event));
	SUCCEEDS(dat_ep_reset(self->a.ep));
	SUCCEEDS(dat_ep_recv_query(self->a.ep, &count, &span));
	EXPECT_EQ(0, count);
	EXPECT_EQ(0, span);
	param.ep_attr.max_recv_dtos = 4 * DEPTH;
	SUCCEEDS(dat_ep_modify(self->a.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param));
	ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->a.recv, &event));
	EXPECT_EQ(1, event.event_data.dto_completion_event_data.user_cookie.as_64);
}

/* There is no route, and a route that leads nowhere says so at once. */
TEST_F(dat, no_route_to_the_peer)
{
	struct sockaddr_in nowhere = { .sin_family = AF_INET };
	DAT_IA_ADDRESS_PTR address = (void *)&nowhere;
	DAT_EVENT event;

	ASSERT_EQ(1, inet_pton(AF_INET, "203.0.113.7", &nowhere.sin_addr));
	run("ip route delete unreachable 203.0.113.0/24");
	ASSERT_EQ(0, run("ip route add unreachable 203.0.113.0/24"));
	SUCCEEDS(dat_ep_connect(self->a.ep, address, PORT, LATER, 0, NULL, DAT_QOS_BEST_EFFORT,
				DAT_CONNECT_DEFAULT_FLAG));
	ASSERT_EQ(DAT_CONNECTION_EVENT_UNREACHABLE, next(self->a.conn, &event));
	run("ip route delete unreachable 203.0.113.0/24");
	EXPECT_EQ(self->a.ep, event.event_data.connect_event_data.ep_handle);
	EXPECT_EQ(DAT_EP_STATE_DISCONNECTED, state_of(self->a.ep));
}

struct handoff {
	pthread_barrier_t begin;
	DAT_CR_HANDLE cr;
	DAT_RETURN result;
};

static void *hand_off(void *arg)
{
	struct handoff *handoff = arg;

	pthread_barrier_wait(&handoff->begin);
	handoff->result = dat_cr_handoff(handoff->cr, PORT + 1);
	return NULL;
}

/* To the other thread its handle is invalid by then. */
TEST_F(dat, requests_are_answered_by_one_of_two_threads)
{
	struct handoff handoff;
	DAT_PSP_HANDLE first, second;
	DAT_RETURN rejected;
	DAT_EVD_HANDLE evd;
	pthread_t thread;
	DAT_EVENT event;
	int i;

	SUCCEEDS(create_evd(&self->b, DAT_EVD_CR_FLAG, &evd));
	SUCCEEDS(dat_psp_create(self->b.ia, PORT, self->b.cr, DAT_PSP_CONSUMER_FLAG, &first));
	SUCCEEDS(dat_psp_create(self->b.ia, PORT + 1, evd, DAT_PSP_CONSUMER_FLAG, &second));
	ASSERT_EQ(0, pthread_barrier_init(&handoff.begin, NULL, 2));
	for (i = 0; i < 30; i++) {
		SUCCEEDS(connect_to(&self->a, self->a.ep, &self->b, PORT));
		ASSERT_EQ(DAT_CONNECTION_REQUEST_EVENT, next(self->b.cr, &event));
		handoff.cr = event.event_data.cr_arrival_event_data.cr_handle;
		ASSERT_EQ(0, pthread_create(&thread, NULL, hand_off, &handoff));
		pthread_barrier_wait(&handoff.begin);
		rejected = reject(handoff.cr);
		pthread_join(thread, NULL);
		if (rejected == DAT_SUCCESS) {
			FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR, handoff.result);
		} else {
			FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR, rejected);
			SUCCEEDS(handoff.result);
			ASSERT_EQ(DAT_CONNECTION_REQUEST_EVENT, next(evd, &event));
			SUCCEEDS(reject(event.event_data.cr_arrival_event_data.cr_handle));
		}
		ASSERT_EQ(DAT_CONNECTION_EVENT_PEER_REJECTED, next(self->a.conn, &event));
		SUCCEEDS(dat_ep_reset(self->a.ep));
	}
	FAILS(DAT_QUEUE_EMPTY, dat_evd_dequeue(evd, &event));
	pthread_barrier_destroy(&handoff.begin);
}

/* --- Connections that do not come about ----------------------------------- */

TEST_F(dat, connect_to_nobody)
{
	DAT_EVENT event;

	SUCCEEDS(connect_to(&self->a, self->a.ep, &self->b, PORT));
	ASSERT_EQ(DAT_CONNECTION_EVENT_NON_PEER_REJECTED, next(self->a.conn, &event));
	EXPECT_EQ(self->a.ep, event.event_data.connect_event_data.ep_handle);
	EXPECT_EQ(DAT_EP_STATE_DISCONNECTED, state_of(self->a.ep));
	SUCCEEDS(dat_ep_reset(self->a.ep));
	EXPECT_EQ(DAT_EP_STATE_UNCONNECTED, state_of(self->a.ep));
	ASSERT_TRUE(connect_both(&self->a, &self->b));
}

/* Whoever answers learns it at once, or by an event. */
TEST_F(dat, connect_that_is_answered_too_late)
{
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	DAT_RETURN rc;

	SUCCEEDS(dat_psp_create(self->b.ia, PORT, self->b.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	SUCCEEDS(dat_ep_connect(self->a.ep, self->b.attr.ia_address_ptr, PORT, SOON, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	ASSERT_EQ(DAT_CONNECTION_REQUEST_EVENT, next(self->b.cr, &event));
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	ASSERT_EQ(DAT_CONNECTION_EVENT_TIMED_OUT, next(self->a.conn, &event));
	EXPECT_EQ(DAT_EP_STATE_DISCONNECTED, state_of(self->a.ep));
	rc = dat_cr_accept(cr, self->b.ep, 0, NULL);
	if (rc == DAT_SUCCESS) {
		ASSERT_EQ(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR,
			  next(self->b.conn, &event));
		EXPECT_EQ(DAT_EP_STATE_DISCONNECTED, state_of(self->b.ep));
		SUCCEEDS(dat_ep_reset(self->b.ep));
	} else {
		FAILS(DAT_INVALID_STATE, rc);
		EXPECT_EQ(DAT_EP_STATE_UNCONNECTED, state_of(self->b.ep));
		SUCCEEDS(reject(cr));
	}
	SUCCEEDS(dat_ep_reset(self->a.ep));
	ASSERT_TRUE(connect_both(&self->a, &self->b));
}

TEST_F(dat, requests_wait_for_room_in_their_evd)
{
	enum { ROOM = 2, REQUESTS = 3 * ROOM };
	DAT_EP_HANDLE ep[REQUESTS];
	DAT_PSP_HANDLE psp;
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;
	int i;

	SUCCEEDS(dat_evd_create(self->b.ia, ROOM, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &evd));
	SUCCEEDS(dat_psp_create(self->b.ia, PORT, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	for (i = 0; i < REQUESTS; i++) {
		SUCCEEDS(create_ep(&self->a, &ep[i]));
		SUCCEEDS(connect_to(&self->a, ep[i], &self->b, PORT));
	}
	for (i = 0; i < REQUESTS; i++) {
		ASSERT_EQ(DAT_CONNECTION_REQUEST_EVENT, next(evd, &event));
		SUCCEEDS(reject(event.event_data.cr_arrival_event_data.cr_handle));
		ASSERT_EQ(DAT_CONNECTION_EVENT_PEER_REJECTED, next(self->a.conn, &event));
	}
	FAILS(DAT_QUEUE_EMPTY, dat_evd_dequeue(evd, &event));
}

TEST_F(dat, psp_parameters)
{
	DAT_PSP_PARAM param;
	DAT_PSP_HANDLE psp, other;

	SUCCEEDS(dat_psp_create(self->b.ia, PORT, self->b.cr, DAT_PSP_PROVIDER_FLAG, &psp));
	FAILS(DAT_CONN_QUAL_IN_USE,
	      dat_psp_create(self->b.ia, PORT, self->b.cr, DAT_PSP_CONSUMER_FLAG, &other));
	SUCCEEDS(dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	EXPECT_EQ(self->b.ia, param.ia_handle);
	EXPECT_EQ(PORT, param.conn_qual);
	EXPECT_EQ(self->b.cr, param.evd_handle);
	EXPECT_EQ(DAT_PSP_PROVIDER_FLAG, param.psp_flags);
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_psp_query(psp, ~0U, &param));
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		 dat_psp_query(psp, DAT_PSP_FIELD_ALL, NULL));
	SUCCEEDS(dat_psp_free(psp));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP,
		 dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP, dat_psp_free(psp));
}

TEST_F(dat, endpoints_are_reset_and_connected_as_another)
{
	DAT_EP_HANDLE other;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	SUCCEEDS(dat_psp_create(self->b.ia, PORT, self->b.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	SUCCEEDS(dat_ep_reset(self->a.ep)); /* nothing to do */
	SUCCEEDS(connect_to(&self->a, self->a.ep, &self->b, PORT));
	ASSERT_EQ(DAT_CONNECTION_REQUEST_EVENT, next(self->b.cr, &event));
	SUCCEEDS(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, self->b.ep, 0,
			       NULL));
	ASSERT_EQ(DAT_CONNECTION_EVENT_ESTABLISHED, next(self->a.conn, &event));
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED, dat_ep_reset(self->a.ep));
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED,
		 connect_to(&self->a, self->a.ep, &self->b, PORT));

	SUCCEEDS(create_ep(&self->a, &other));
	SUCCEEDS(dat_ep_dup_connect(other, self->a.ep, LATER, 0, NULL, DAT_QOS_BEST_EFFORT));
	ASSERT_EQ(DAT_CONNECTION_REQUEST_EVENT, next(self->b.cr, &event));
	SUCCEEDS(reject(event.event_data.cr_arrival_event_data.cr_handle));
	ASSERT_EQ(DAT_CONNECTION_EVENT_PEER_REJECTED, next(self->a.conn, &event));
	EXPECT_EQ(other, event.event_data.connect_event_data.ep_handle);

	SUCCEEDS(dat_ep_disconnect(self->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	ASSERT_EQ(DAT_CONNECTION_EVENT_DISCONNECTED, next(self->a.conn, &event));
	SUCCEEDS(dat_ep_disconnect(self->a.ep, DAT_CLOSE_GRACEFUL_FLAG)); /* no effect */
	SUCCEEDS(dat_ep_reset(self->a.ep));
	EXPECT_EQ(DAT_EP_STATE_UNCONNECTED, state_of(self->a.ep));
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED,
		 dat_ep_disconnect(self->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	/* It has no peer any more. */
	SUCCEEDS(dat_ep_reset(other));
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED,
		 dat_ep_dup_connect(other, self->a.ep, LATER, 0, NULL, DAT_QOS_BEST_EFFORT));
}

TEST_F(dat, endpoint_parameters)
{
	DAT_COUNT count, span;
	DAT_EP_PARAM param;

	SUCCEEDS(post_recv(&self->a, 1));
	SUCCEEDS(post_recv(&self->a, 2));
	SUCCEEDS(dat_ep_recv_query(self->a.ep, &count, &span));
	EXPECT_EQ(2, count);
	EXPECT_EQ(2, span);
	SUCCEEDS(dat_ep_query(self->a.ep, DAT_EP_FIELD_ALL, &param));
	EXPECT_EQ(self->a.ia, param.ia_handle);
	EXPECT_EQ(DAT_EP_STATE_UNCONNECTED, param.ep_state);
	EXPECT_EQ(self->a.pz, param.pz_handle);
	EXPECT_EQ(self->a.recv, param.recv_evd_handle);
	EXPECT_EQ(self->a.request, param.request_evd_handle);
	EXPECT_EQ(self->a.conn, param.connect_evd_handle);
	EXPECT_LE(1, param.ep_attr.max_recv_dtos);
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		 dat_ep_modify(self->a.ep, DAT_EP_FIELD_EP_STATE, &param));
	FAILS(DAT_MODEL_NOT_SUPPORTED, dat_ep_set_watermark(self->a.ep, 1, 2));
}

TEST_F(dat, shared_receive_queues)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	DAT_EP_PARAM ep = {};
	DAT_LMR_TRIPLET segment;
	DAT_RMR_TRIPLET remote = {};
	DAT_SRQ_PARAM param;
	DAT_SRQ_HANDLE srq;
	DAT_EVENT event;
	int i;

	SUCCEEDS(dat_srq_create(self->b.ia, self->b.pz, &attr, &srq));
	SUCCEEDS(dat_ep_free(self->b.ep));
	SUCCEEDS(dat_ep_create_with_srq(self->b.ia, self->b.pz, self->b.recv, self->b.request,
					self->b.conn, srq, NULL, &self->b.ep));
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE, dat_srq_free(srq));
	ep.ep_attr.max_request_iov = 1;
	SUCCEEDS(dat_ep_modify(self->b.ep, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, &ep));
	ASSERT_TRUE(connect_both(&self->a, &self->b));
	segment = part(&self->b, 0, 64);
	for (i = 0; i < 4; i++)
		SUCCEEDS(dat_srq_post_recv(srq, 1, &segment, cookie_of(i)));
	SUCCEEDS(dat_srq_set_lw(srq, 3));
	for (i = 0; i < 2; i++) {
		SUCCEEDS(post_send(&self->a, 8, i, DAT_COMPLETION_DEFAULT_FLAG));
		ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->b.recv, &event));
		EXPECT_EQ(self->b.ep, event.event_data.dto_completion_event_data.ep_handle);
		EXPECT_EQ(i, event.event_data.dto_completion_event_data.user_cookie.as_64);
	}
	ASSERT_NE(0, next(self->b.async, &event));
	EXPECT_EQ(srq, event.event_data.asynch_error_event_data.dat_handle);
	EXPECT_EQ(DAT_SRQ_LOW_WATERMARK_EVENT, event.event_data.asynch_error_event_data.reason);
	SUCCEEDS(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	EXPECT_EQ(8, param.max_recv_dtos);
	EXPECT_EQ(3, param.low_watermark);
	FAILS(DAT_INVALID_PARAMETER, dat_srq_set_lw(srq, 9));
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_srq_resize(srq, 2));
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_srq_resize(srq, 0x40000000));
	/* What is read from or written to has a length, too. */
	remote.segment_length = 63;
	FAILS(DAT_LENGTH_ERROR,
	      dat_ep_post_rdma_write(self->b.ep, 1, &segment, cookie_of(1), &remote,
				     DAT_COMPLETION_DEFAULT_FLAG));
	SUCCEEDS(dat_ep_free(self->b.ep));
	SUCCEEDS(dat_srq_free(srq));
}

/* --- Memory --------------------------------------------------------------- */

TEST_F(dat, memory_of_all_types)
{
	char cookie[DAT_LMR_COOKIE_SIZE] = "known to both processes";
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_PARAM param;
	DAT_VADDR address;
	DAT_VLEN size;

	region.for_lmr_handle = self->a.lmr;
	SUCCEEDS(create_lmr(self->a.ia, DAT_MEM_TYPE_LMR, region, MEMORY, self->a.pz,
			    DAT_MEM_PRIV_LOCAL_READ_FLAG, &lmr, &context, NULL, &size,
			    &address));
	EXPECT_NE(self->a.lmr_context, context);
	EXPECT_EQ((uintptr_t)self->a.memory, address);
	SUCCEEDS(dat_lmr_free(lmr));

	region.for_shared_memory.virtual_address = self->a.memory;
	region.for_shared_memory.shared_memory_id = &cookie;
	SUCCEEDS(create_lmr(self->a.ia, DAT_MEM_TYPE_SHARED_VIRTUAL, region, MEMORY,
			    self->a.pz, DAT_MEM_PRIV_ALL_FLAG, &lmr, &context, NULL, &size,
			    &address));
	SUCCEEDS(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
	EXPECT_EQ(DAT_MEM_TYPE_SHARED_VIRTUAL, param.mem_type);
	EXPECT_EQ(0, memcmp(*param.region_desc.for_shared_memory.shared_memory_id, cookie,
			    sizeof(cookie)));
	SUCCEEDS(dat_lmr_free(lmr));

	region.for_va = self->a.memory;
	FAILS(DAT_LENGTH_ERROR, create_lmr(self->a.ia, DAT_MEM_TYPE_VIRTUAL, region, 0,
					   self->a.pz, DAT_MEM_PRIV_ALL_FLAG, &lmr,
					   &context, NULL, &size, &address));
#ifndef DAT_1_2
	FAILS(DAT_MODEL_NOT_SUPPORTED,
	      dat_lmr_create(self->a.ia, DAT_MEM_TYPE_VIRTUAL, region, MEMORY, self->a.pz,
			     DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB, &lmr, &context, NULL,
			     &size, &address));
#endif
	region.for_va = NULL;
	FAILS(DAT_INVALID_PARAMETER,
	      create_lmr(self->a.ia, DAT_MEM_TYPE_VIRTUAL, region, MEMORY, self->a.pz,
			 DAT_MEM_PRIV_ALL_FLAG, &lmr, &context, NULL, &size, &address));
}

/* --- Event dispatchers ---------------------------------------------------- */

static DAT_RETURN post_software(DAT_EVD_HANDLE evd, void *pointer)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	event.event_data.software_event_data.pointer = pointer;
	return dat_evd_post_se(evd, &event);
}

/* Memory is coherent for all devices that the module supports. */
TEST_F(dat, memory_is_in_step_with_the_device)
{
	DAT_LMR_TRIPLET segment = part(&self->a, 0, 4096);

	SUCCEEDS(dat_lmr_sync_rdma_read(self->a.ia, &segment, 1));
	SUCCEEDS(dat_lmr_sync_rdma_write(self->a.ia, &segment, 1));
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		 dat_lmr_sync_rdma_read(self->a.ia, NULL, 1));
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		 dat_lmr_sync_rdma_write(self->a.ia, NULL, 1));
	FAILS(DAT_INVALID_HANDLE, dat_lmr_sync_rdma_read(self->a.pz, &segment, 1));
	FAILS(DAT_INVALID_HANDLE, dat_lmr_sync_rdma_write(self->a.pz, &segment, 1));
}

/* What Documentation/dat.rst lists. */
TEST_F(dat, calls_of_other_models)
{
	FAILS(DAT_MODEL_NOT_SUPPORTED, dat_ep_set_watermark(self->a.ep, 1, 2));
	FAILS(DAT_MODEL_NOT_SUPPORTED,
	      dat_ep_connect(self->a.ep, self->b.attr.ia_address_ptr, PORT, LATER, 0, NULL,
			     DAT_QOS_LOW_LATENCY, DAT_CONNECT_DEFAULT_FLAG));
#ifndef DAT_1_2
	DAT_LMR_TRIPLET segment = part(&self->a, 0, 8);
	DAT_RMR_TRIPLET remote = { .segment_length = 8 };
	DAT_REGION_DESCRIPTION region = { .for_va = self->a.memory };
	DAT_CSP_PARAM csp_param;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT context;
	DAT_CSP_HANDLE csp;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;
	DAT_VADDR address;
	DAT_COMM comm = {};
	DAT_VLEN size;

	FAILS(DAT_MODEL_NOT_SUPPORTED,
	      dat_ep_connect(self->a.ep, self->b.attr.ia_address_ptr, PORT, LATER, 0, NULL,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_MULTIPATH_REQUIRED_FLAG));
	/* These libdat2 does not export; programs reach them by its macros. */
	FAILS(DAT_MODEL_NOT_SUPPORTED,
	      DAT_EP_POST_SEND_WITH_INVALIDATE(self->a.ep, 1, &segment, cookie_of(1),
					       DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE, 1));
	FAILS(DAT_MODEL_NOT_SUPPORTED,
	      DAT_EP_POST_RDMA_READ_TO_RMR(self->a.ep, &remote, cookie_of(1), &remote,
					   DAT_COMPLETION_DEFAULT_FLAG));
	FAILS(DAT_MODEL_NOT_SUPPORTED, DAT_RMR_CREATE_FOR_EP(self->a.pz, &rmr));
	FAILS(DAT_MODEL_NOT_SUPPORTED,
	      DAT_EP_COMMON_CONNECT(self->a.ep, self->b.attr.ia_address_ptr, LATER, 0, NULL));
	/* An IA's handle is the registry's, and there is no CSP: any other handle will do. */
	FAILS(DAT_MODEL_NOT_SUPPORTED,
	      DAT_CSP_CREATE(self->a.ep, &comm, self->a.attr.ia_address_ptr, self->a.cr, &csp));
	FAILS(DAT_MODEL_NOT_SUPPORTED,
	      DAT_CSP_QUERY(self->a.ep, DAT_CSP_FIELD_ALL, &csp_param));
	FAILS(DAT_MODEL_NOT_SUPPORTED, DAT_CSP_FREE(self->a.ep));
	FAILS(DAT_MODEL_NOT_SUPPORTED,
	      dat_lmr_create(self->a.ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, self->a.pz,
			     DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB, &lmr, &local, &context, &size,
			     &address));
	SUCCEEDS(dat_rmr_create(self->a.pz, &rmr));
	FAILS(DAT_MODEL_NOT_SUPPORTED,
	      dat_rmr_bind(rmr, self->a.lmr, &segment, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB,
			   self->a.ep, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG, &context));
#endif
}

TEST_F(dat, evd_rules)
{
	DAT_EVD_HANDLE evd;
	DAT_EVD_PARAM param;
	DAT_EVENT event;
	DAT_COUNT more;
	int i;

	SUCCEEDS(dat_evd_create(self->a.ia, 4, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd));
	FAILS(DAT_QUEUE_EMPTY, dat_evd_dequeue(evd, &event));
	FAILS(DAT_TIMEOUT_EXPIRED, dat_evd_wait(evd, 1000, 1, &event, &more));
	EXPECT_EQ(0, more);
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, dat_evd_wait(evd, 0, 0, &event, &more));
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, dat_evd_wait(evd, 0, 5, &event, &more));
	for (i = 0; i < 4; i++)
		SUCCEEDS(post_software(evd, &self->a.memory[i]));
	FAILS(DAT_QUEUE_FULL, post_software(evd, NULL));
	SUCCEEDS(dat_evd_wait(evd, 0, 3, &event, &more));
	EXPECT_EQ(DAT_SOFTWARE_EVENT, event.event_number);
	EXPECT_EQ(&self->a.memory[0], event.event_data.software_event_data.pointer);
	EXPECT_LE(2, more);
	SUCCEEDS(dat_evd_resize(evd, 8));
	for (i = 1; i < 4; i++) {
		SUCCEEDS(dat_evd_dequeue(evd, &event));
		EXPECT_EQ(&self->a.memory[i], event.event_data.software_event_data.pointer);
	}
	/* A threshold that is not reached takes nothing. */
	SUCCEEDS(post_software(evd, self));
	FAILS(DAT_TIMEOUT_EXPIRED, dat_evd_wait(evd, 1000, 2, &event, &more));
	EXPECT_EQ(1, more);
	SUCCEEDS(dat_evd_dequeue(evd, &event));
	EXPECT_EQ((void *)self, event.event_data.software_event_data.pointer);

	SUCCEEDS(dat_evd_set_unwaitable(evd));
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE,
		 dat_evd_wait(evd, 0, 1, &event, &more));
	SUCCEEDS(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	EXPECT_EQ(8, param.evd_qlen);
	EXPECT_EQ(DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_UNWAITABLE | DAT_EVD_STATE_CONFIG_NOTIFY,
		  param.evd_state);
	SUCCEEDS(dat_evd_clear_unwaitable(evd));
	FAILS(DAT_INVALID_HANDLE, post_software(self->a.conn, NULL));
	FAILS(DAT_INVALID_PARAMETER, dat_evd_create(self->a.ia, 0, DAT_HANDLE_NULL,
						    DAT_EVD_SOFTWARE_FLAG, &evd));
	FAILS(DAT_INVALID_PARAMETER, dat_evd_create(self->a.ia, 4, DAT_HANDLE_NULL, 0x1000, &evd));
}

TEST_F(dat, evd_unwaitable_with_nobody_waiting_keeps_its_room)
{
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;
	DAT_COUNT more;

	SUCCEEDS(dat_evd_create(self->a.ia, 4, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd));
	/* Nor does it count what a thread waited for in vain before. */
	FAILS(DAT_TIMEOUT_EXPIRED, dat_evd_wait(evd, 1000, 3, &event, &more));
	SUCCEEDS(dat_evd_set_unwaitable(evd));
	SUCCEEDS(dat_evd_clear_unwaitable(evd));
	for (int i = 0; i < 4; i++)
		SUCCEEDS(post_software(evd, &self->a.memory[i]));
	SUCCEEDS(dat_evd_wait(evd, 0, 4, &event, &more));
	EXPECT_EQ(3, more);
	SUCCEEDS(dat_evd_free(evd));
}

struct waiter {
	DAT_EVD_HANDLE evd;
	DAT_COUNT threshold;
	DAT_RETURN rc;
	DAT_EVENT event;
	pid_t tid;
	atomic_bool ended;
};

static void *wait_on_evd(void *argument)
{
	struct waiter *waiter = argument;
	DAT_COUNT more;

	__atomic_store_n(&waiter->tid, gettid(), __ATOMIC_RELEASE);
	waiter->rc = dat_evd_wait(waiter->evd, DAT_TIMEOUT_INFINITE,
				  waiter->threshold ?: 1, &waiter->event, &more);
	waiter->ended = true;
	return NULL;
}

/* A thread that sleeps in dat_evd_wait(). */
static int start(pthread_t *thread, struct waiter *waiter)
{
	waiter->tid = 0;
	waiter->ended = false;
	pthread_create(thread, NULL, wait_on_evd, waiter);
	return await_asleep(&waiter->tid, DAPX_EVD_WAIT);
}

TEST_F(dat, evd_has_one_waiter_at_a_time)
{
	struct waiter waiter = { .evd = self->a.conn };
	pthread_t thread;
	DAT_EVENT event;
	DAT_COUNT more;

	OK(start(&thread, &waiter));
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER,
		 dat_evd_wait(self->a.conn, 0, 1, &event, &more));
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER,
		 dat_evd_dequeue(self->a.conn, &event));
	SUCCEEDS(dat_evd_set_unwaitable(self->a.conn));
	pthread_join(thread, NULL);
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE, waiter.rc);
	SUCCEEDS(dat_evd_clear_unwaitable(self->a.conn));
	waiter.threshold = 3;
	OK(start(&thread, &waiter));
	SUCCEEDS(dat_evd_set_unwaitable(self->a.conn));
	pthread_join(thread, NULL);
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE, waiter.rc);
}

static void do_nothing(int number)
{
}

/* The wait ends, and takes nothing with it. */
TEST_F(dat, evd_wait_is_interrupted_by_a_signal)
{
	struct waiter waiter = { .threshold = 2 };
	struct sigaction action = { .sa_handler = do_nothing };
	DAT_EVENT event;
	pthread_t thread;

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	SUCCEEDS(dat_evd_create(self->a.ia, 4, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG,
				&waiter.evd));
	SUCCEEDS(post_software(waiter.evd, self));
	OK(start(&thread, &waiter));
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	FAILS(DAT_INTERRUPTED_CALL, waiter.rc);
	SUCCEEDS(dat_evd_dequeue(waiter.evd, &event));
	EXPECT_EQ((void *)self, event.event_data.software_event_data.pointer);
}

TEST_F(dat, evd_free_and_ia_close_wake_waiters)
{
	struct waiter waiter = { .evd = self->a.conn };
	pthread_t thread;

	SUCCEEDS(dat_ep_free(self->a.ep));
	OK(start(&thread, &waiter));
	SUCCEEDS(dat_evd_free(self->a.conn));
	pthread_join(thread, NULL);
	FAILS(DAT_ABORT, waiter.rc);

	/* Also if it waits for more than one event. */
	waiter.evd = self->a.cr;
	waiter.threshold = 5;
	OK(start(&thread, &waiter));
	SUCCEEDS(dat_ia_close(self->a.ia, DAT_CLOSE_ABRUPT_FLAG));
	pthread_join(thread, NULL);
	FAILS(DAT_ABORT, waiter.rc);
	SUCCEEDS(open_ia(getenv("DAPX_DEV") ?: "rxe0", &self->a));
}

struct looker {
	DAT_EVD_HANDLE evd;
	atomic_bool ends;
	atomic_int looks;
	DAT_RETURN rc;			/* what should not have been */
};

static void *look_into_evd(void *argument)
{
	struct looker *looker = argument;
	DAT_EVENT event;
	DAT_RETURN rc;

	while (!looker->ends) {
		rc = dat_evd_dequeue(__atomic_load_n(&looker->evd, __ATOMIC_RELAXED), &event);
		looker->looks++;
		if (DAT_GET_TYPE(rc) != DAT_QUEUE_EMPTY && DAT_GET_TYPE(rc) != DAT_INVALID_HANDLE)
			looker->rc = rc;
	}
	return NULL;
}

/*
 * A look into an empty EVD takes no lock: what it reads must not go meanwhile. Most
 * threads stand still in the middle of a look, and this one comes before all of them.
 */
TEST_F(dat, evd_goes_and_is_resized_while_threads_look)
{
	const struct sched_param first = { .sched_priority = 1 };
	struct looker looker = { .evd = self->a.conn };
	DAT_EVD_HANDLE evd = self->a.conn;
	pthread_t thread[8];
	DAT_EVENT event;
	unsigned int n = count(20, 3000), i;

	for (i = 0; i < ARRAY_SIZE(thread); i++)
		pthread_create(&thread[i], NULL, look_into_evd, &looker);
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_FIFO, &first));
	for (i = 0; i < n && !looker.rc; i++) {
		SUCCEEDS(dat_evd_create(self->a.ia, 4, DAT_HANDLE_NULL,
					DAT_EVD_SOFTWARE_FLAG, &evd));
		__atomic_store_n(&looker.evd, evd, __ATOMIC_RELAXED);
		usleep(5000);
		if (i % 2)
			SUCCEEDS(dat_evd_resize(evd, 4096));
		SUCCEEDS(dat_evd_free(evd));
		/* Before the next one lies where it lay. */
		usleep(10000);
	}
	looker.ends = true;
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		pthread_join(thread[i], NULL);
	SUCCEEDS(looker.rc);
	EXPECT_LT(n, looker.looks);
	FAILS(DAT_INVALID_HANDLE, dat_evd_dequeue(evd, &event));
}

/* What was posted is found, by whoever looks, and however often it was empty. */
TEST_F(dat, evd_that_was_empty_has_what_comes)
{
	DAT_EVENT event;
	DAT_EVD_HANDLE evd;
	int i, k;

	SUCCEEDS(dat_evd_create(self->a.ia, 4, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd));
	for (i = 0; i < 20; i++) {
		for (k = 0; k < i % 3; k++)
			FAILS(DAT_QUEUE_EMPTY, dat_evd_dequeue(evd, &event));
		for (k = 0; k <= i % 4; k++)
			SUCCEEDS(post_software(evd, &event));
		for (k = 0; k <= i % 4; k++)
			SUCCEEDS(dat_evd_dequeue(evd, &event));
	}
	FAILS(DAT_QUEUE_EMPTY, dat_evd_dequeue(evd, &event));
	SUCCEEDS(dat_evd_free(evd));
}

/* --- CNOs ----------------------------------------------------------------- */

TEST_F(dat, cno_waits_for_any_of_its_evds)
{
	DAT_EVD_HANDLE evd[2], hint;
	DAT_CNO_HANDLE cno;
	DAT_EVENT event;

	SUCCEEDS(dat_cno_create(self->a.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	FAILS(DAT_QUEUE_EMPTY, dat_cno_wait(cno, 1000, &hint));
	EXPECT_EQ(DAT_HANDLE_NULL, hint);
	for (int i = 0; i < 2; i++)
		SUCCEEDS(dat_evd_create(self->a.ia, 4, cno, DAT_EVD_SOFTWARE_FLAG, &evd[i]));
	SUCCEEDS(post_software(evd[1], self));
	SUCCEEDS(dat_cno_wait(cno, LATER, &hint));
	EXPECT_EQ(evd[1], hint);
	SUCCEEDS(dat_evd_dequeue(hint, &event));
	FAILS(DAT_QUEUE_EMPTY, dat_cno_wait(cno, 1000, &hint));
	/* Disabled, it tells nothing; enabled again, what is there. */
	SUCCEEDS(dat_evd_disable(evd[0]));
	SUCCEEDS(post_software(evd[0], self));
	FAILS(DAT_QUEUE_EMPTY, dat_cno_wait(cno, 1000, &hint));
	SUCCEEDS(dat_evd_enable(evd[0]));
	SUCCEEDS(dat_cno_wait(cno, LATER, &hint));
	EXPECT_EQ(evd[0], hint);
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE, dat_cno_free(cno));
	SUCCEEDS(dat_evd_modify_cno(evd[0], DAT_HANDLE_NULL));
	SUCCEEDS(dat_evd_free(evd[1]));
	SUCCEEDS(dat_cno_free(cno));
}

struct cno_waiter {
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;
	DAT_RETURN rc;
	pid_t tid;
	pthread_t thread;
};

static void *wait_on_cno(void *argument)
{
	struct cno_waiter *waiter = argument;

	__atomic_store_n(&waiter->tid, gettid(), __ATOMIC_RELEASE);
	waiter->rc = dat_cno_wait(waiter->cno, LATER, &waiter->evd);
	return NULL;
}

TEST_F(dat, cno_waiters_are_told_when_the_last_evd_is_freed)
{
	struct cno_waiter waiter[2] = {};
	DAT_EVD_HANDLE evd[2], hint;
	DAT_CNO_HANDLE cno;

	SUCCEEDS(dat_cno_create(self->a.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	for (int i = 0; i < 2; i++)
		SUCCEEDS(dat_evd_create(self->a.ia, 4, cno, DAT_EVD_SOFTWARE_FLAG, &evd[i]));
	/* One is left. */
	SUCCEEDS(dat_evd_free(evd[0]));
	FAILS(DAT_QUEUE_EMPTY, dat_cno_wait(cno, 1000, &hint));
	for (int i = 0; i < 2; i++) {
		waiter[i].cno = cno;
		waiter[i].evd = self;
		pthread_create(&waiter[i].thread, NULL, wait_on_cno, &waiter[i]);
		OK(await_asleep_in(&waiter[i].tid, EPOLL_WAIT_NR));
	}
	SUCCEEDS(dat_evd_free(evd[1]));
	for (int i = 0; i < 2; i++) {
		pthread_join(waiter[i].thread, NULL);
		SUCCEEDS(waiter[i].rc);
		EXPECT_EQ(DAT_HANDLE_NULL, waiter[i].evd);
	}
	SUCCEEDS(dat_cno_free(cno));
}

TEST_F(dat, cno_is_not_told_of_what_a_waiter_takes)
{
	struct waiter waiter = {};
	DAT_EVD_HANDLE hint;
	DAT_CNO_HANDLE cno;
	pthread_t thread;

	SUCCEEDS(dat_cno_create(self->a.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	SUCCEEDS(dat_evd_create(self->a.ia, 4, cno, DAT_EVD_SOFTWARE_FLAG, &waiter.evd));
	OK(start(&thread, &waiter));
	SUCCEEDS(post_software(waiter.evd, self));
	pthread_join(thread, NULL);
	SUCCEEDS(waiter.rc);
	FAILS(DAT_QUEUE_EMPTY, dat_cno_wait(cno, 1000, &hint));
}

struct agent {
	atomic_int calls;
	atomic_uintptr_t evd;
};

/* Has @number of the completions that @side asked for. */
static bool ended(struct side *side, DAT_UINT64 number)
{
	DAT_EVENT event;

	return dat_evd_dequeue(side->request, &event) == DAT_SUCCESS &&
	       event.event_data.dto_completion_event_data.user_cookie.as_64 == number &&
	       event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS;
}

/* Its event is there, but wakes no waiter and triggers no CNO; the next one does. */
TEST_F(dat, unsignalled_completions_notify_nobody)
{
	struct waiter waiter = { .evd = self->a.request };
	DAT_EP_PARAM param = {};
	DAT_EVD_HANDLE hint;
	DAT_CNO_HANDLE cno;
	pthread_t thread;
	DAT_EVENT event;
	DAT_COUNT more;
	int i;

	FAILS(DAT_INVALID_PARAMETER,
	      post_send(&self->a, 8, 0, DAT_COMPLETION_UNSIGNALLED_FLAG));
	param.ep_attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	SUCCEEDS(dat_ep_modify(self->a.ep, DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS, &param));
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_CONFIG_NOTIFY,
		 dat_evd_wait(self->a.request, 0, 2, &event, &more));
	ASSERT_TRUE(connect_both(&self->a, &self->b));
	for (i = 0; i < 4; i++)
		SUCCEEDS(post_recv(&self->b, i));

	OK(start(&thread, &waiter));
	SUCCEEDS(post_send(&self->a, 8, 0, DAT_COMPLETION_UNSIGNALLED_FLAG));
	ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->b.recv, &event));
	usleep(SOON);
	EXPECT_FALSE(waiter.ended);
	SUCCEEDS(post_send(&self->a, 8, 1, DAT_COMPLETION_DEFAULT_FLAG));
	pthread_join(thread, NULL);
	SUCCEEDS(waiter.rc);
	EXPECT_EQ(0, waiter.event.event_data.dto_completion_event_data.user_cookie.as_64);
	EXPECT_TRUE(ended(&self->a, 1));

	SUCCEEDS(dat_cno_create(self->a.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	SUCCEEDS(dat_evd_modify_cno(self->a.request, cno));
	SUCCEEDS(post_send(&self->a, 8, 2, DAT_COMPLETION_UNSIGNALLED_FLAG));
	FAILS(DAT_QUEUE_EMPTY, dat_cno_wait(cno, SOON, &hint));
	SUCCEEDS(post_send(&self->a, 8, 3, DAT_COMPLETION_DEFAULT_FLAG));
	SUCCEEDS(dat_cno_wait(cno, LATER, &hint));
	EXPECT_EQ(self->a.request, hint);
	EXPECT_TRUE(ended(&self->a, 2));
	EXPECT_TRUE(ended(&self->a, 3));
	SUCCEEDS(dat_evd_modify_cno(self->a.request, DAT_HANDLE_NULL));
	SUCCEEDS(dat_cno_free(cno));
}

TEST_F(dat, unsignalled_receives_notify_nobody)
{
	DAT_LMR_TRIPLET segment = part(&self->b, 0, 4096);
	struct waiter waiter = { .evd = self->b.recv };
	DAT_EP_PARAM param = {};
	pthread_t thread;
	DAT_EVENT event;

	FAILS(DAT_INVALID_PARAMETER,
	      dat_ep_post_recv(self->b.ep, 1, &segment, cookie_of(0),
			       DAT_COMPLETION_UNSIGNALLED_FLAG));
	param.ep_attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	SUCCEEDS(dat_ep_modify(self->b.ep, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &param));
	ASSERT_TRUE(connect_both(&self->a, &self->b));
	SUCCEEDS(dat_ep_post_recv(self->b.ep, 1, &segment, cookie_of(0),
				  DAT_COMPLETION_UNSIGNALLED_FLAG));
	SUCCEEDS(post_recv(&self->b, 1));
	OK(start(&thread, &waiter));
	SUCCEEDS(post_send(&self->a, 8, 0, DAT_COMPLETION_DEFAULT_FLAG));
	ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->a.request, &event));
	usleep(SOON);
	EXPECT_FALSE(waiter.ended);
	SUCCEEDS(post_send(&self->a, 8, 1, DAT_COMPLETION_DEFAULT_FLAG));
	pthread_join(thread, NULL);
	SUCCEEDS(waiter.rc);
	EXPECT_EQ(0, waiter.event.event_data.dto_completion_event_data.user_cookie.as_64);
	SUCCEEDS(dat_evd_dequeue(self->b.recv, &event));
	EXPECT_EQ(1, event.event_data.dto_completion_event_data.user_cookie.as_64);
}

/* The provider has asked for some of them. */
TEST_F(dat, suppressed_completions_are_not_counted)
{
	DAT_BOOLEAN idle = DAT_FALSE;
	DAT_COUNT more = ~0;
	DAT_EVENT event;
	int i;

	ASSERT_TRUE(connect_both(&self->a, &self->b));
	for (i = 0; i < DEPTH; i++)
		SUCCEEDS(post_recv(&self->b, i));
	for (i = 0; i < DEPTH; i++)
		SUCCEEDS(post_send(&self->a, 8, i, i == 0 || i == DEPTH - 1 ?
				   DAT_COMPLETION_DEFAULT_FLAG : DAT_COMPLETION_SUPPRESS_FLAG));
	for (i = 0; i < DEPTH; i++)
		ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->b.recv, &event));
	for (; !idle; usleep(100))
		SUCCEEDS(dat_ep_get_status(self->a.ep, NULL, NULL, &idle));
	SUCCEEDS(dat_evd_wait(self->a.request, LATER, 1, &event, &more));
	EXPECT_EQ(0, event.event_data.dto_completion_event_data.user_cookie.as_64);
	EXPECT_EQ(1, more);
	SUCCEEDS(dat_evd_dequeue(self->a.request, &event));
	EXPECT_EQ(DEPTH - 1, event.event_data.dto_completion_event_data.user_cookie.as_64);
	FAILS(DAT_QUEUE_EMPTY, dat_evd_dequeue(self->a.request, &event));
}

/* Nothing that the consumer sees has come. */
TEST_F(dat, suppressed_completions_trigger_no_cno)
{
	DAT_EVD_HANDLE hint;
	DAT_CNO_HANDLE cno;
	DAT_EVENT event;
	int i;

	ASSERT_TRUE(connect_both(&self->a, &self->b));
	SUCCEEDS(dat_cno_create(self->a.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	SUCCEEDS(dat_evd_modify_cno(self->a.request, cno));
	for (i = 0; i < 10 * DEPTH; i++) {
		SUCCEEDS(post_recv(&self->b, i));
		SUCCEEDS(post_send(&self->a, 8, i, DAT_COMPLETION_SUPPRESS_FLAG));
		ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->b.recv, &event));
	}
	FAILS(DAT_QUEUE_EMPTY, dat_cno_wait(cno, SOON, &hint));
	SUCCEEDS(dat_evd_modify_cno(self->a.request, DAT_HANDLE_NULL));
	SUCCEEDS(dat_cno_free(cno));
}

static void on_event(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	struct agent *agent = data;

	agent->evd = (uintptr_t)evd;
	agent->calls++;
}

TEST_F(dat, cno_calls_its_agent)
{
	struct agent agent = {};
	DAT_OS_WAIT_PROXY_AGENT proxy = { &agent, on_event };
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;

	SUCCEEDS(dat_cno_create(self->a.ia, proxy, &cno));
	SUCCEEDS(dat_evd_create(self->a.ia, 4, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	EXPECT_EQ((uintptr_t)on_event, (uintptr_t)agent_of(cno));
	SUCCEEDS(post_software(evd, self));
	while (!agent.calls)
		usleep(1000);
	EXPECT_EQ((uintptr_t)evd, agent.evd);
	SUCCEEDS(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
	/* Nobody calls it any more. */
	SUCCEEDS(post_software(evd, self));
	usleep(SOON);
	EXPECT_EQ(1, agent.calls);
}

#ifndef DAT_1_2
/* The registry's own: the handle that a provider knows an IA by. */
DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE ia, DAT_IA_HANDLE *other);

/* What libdat2 does not export is reached by the table. */
TEST_F(dat, cno_has_a_descriptor)
{
	DAT_PROVIDER *provider = *(DAT_PROVIDER **)self->a.pz;
	struct pollfd ready = { .events = POLLIN };
	DAT_EVD_HANDLE evd, hint;
	DAT_CNO_PARAM param;
	DAT_CNO_HANDLE cno;
	DAT_IA_HANDLE ia;
	DAT_EVENT event;

	SUCCEEDS(dats_get_ia_handle(self->a.ia, &ia));
	SUCCEEDS(provider->cno_fd_create_func(ia, &ready.fd, &cno));
	SUCCEEDS(dat_evd_create(self->a.ia, 4, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	SUCCEEDS(dat_cno_query(cno, DAT_CNO_FIELD_PROXY_TYPE, &param));
	EXPECT_EQ(DAT_PROXY_TYPE_FD, param.proxy_type);
	EXPECT_EQ(ready.fd, param.proxy.fd);
	EXPECT_EQ(0, poll(&ready, 1, 0));
	FAILS(DAT_QUEUE_EMPTY, provider->cno_trigger_func(cno, &hint));
	SUCCEEDS(post_software(evd, self));
	EXPECT_EQ(1, poll(&ready, 1, LATER / 1000));
	SUCCEEDS(provider->cno_trigger_func(cno, &hint));
	EXPECT_EQ(evd, hint);
	EXPECT_EQ(0, poll(&ready, 1, 0));
	SUCCEEDS(dat_evd_dequeue(evd, &event));
	FAILS(DAT_INVALID_STATE,
	      dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
}
#endif

/* --- Handles and IAs ------------------------------------------------------ */

struct freed {
	DAT_PZ_HANDLE pz;
	DAT_RETURN rc;
};

static void *use_freed(void *argument)
{
	struct freed *freed = argument;
	DAT_PZ_PARAM param;

	freed->rc = dat_pz_query(freed->pz, DAT_PZ_FIELD_ALL, &param);
	return NULL;
}

TEST_F(dat, freed_handles_are_invalid_to_all_threads_for_long)
{
	struct freed freed = { .rc = DAT_SUCCESS };
	pthread_t thread;
	DAT_PZ_HANDLE pz;
	int i;

	SUCCEEDS(dat_pz_create(self->a.ia, &freed.pz));
	SUCCEEDS(dat_pz_free(freed.pz));
	for (i = 0; i < 2000; i++) {
		SUCCEEDS(dat_pz_create(self->a.ia, &pz));
		ASSERT_NE(freed.pz, pz);
		SUCCEEDS(dat_pz_free(pz));
	}
	pthread_create(&thread, NULL, use_freed, &freed);
	pthread_join(thread, NULL);
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ, freed.rc);
}

/* Where the registry does not look at them before dapx does. */
TEST_F(dat, wild_handles)
{
	void *wild[] = { (void *)1, (void *)0x1000, self, (char *)self->a.pz + 8,
			 (void *)-1, self->a.conn };
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE evd;
	DAT_REGION_DESCRIPTION region = { .for_va = self->a.memory };
	DAT_VADDR address;
	DAT_VLEN size;
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;

	for (size_t i = 0; i < ARRAY_SIZE(wild); i++) {
		FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ,
			 dat_ep_create(self->a.ia, wild[i], self->a.recv, self->a.request,
				       self->a.conn, NULL, &ep));
		FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV,
			 dat_ep_create(self->a.ia, self->a.pz, wild[i], self->a.request,
				       self->a.conn, NULL, &ep));
		FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO,
			 dat_evd_create(self->a.ia, 4, wild[i], DAT_EVD_SOFTWARE_FLAG, &evd));
		FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ,
			 create_lmr(self->a.ia, DAT_MEM_TYPE_VIRTUAL, region, MEMORY,
				    wild[i], DAT_MEM_PRIV_ALL_FLAG, &lmr, &context, NULL,
				    &size, &address));
	}
	/* Another IA's. */
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ,
		 dat_ep_create(self->a.ia, self->b.pz, self->a.recv, self->a.request,
			       self->a.conn, NULL, &ep));
}

TEST_F(dat, handles_have_a_type_and_a_context)
{
	DAT_CONTEXT mine = { .as_64 = 0x123456789abcdef0 }, got;
	DAT_HANDLE_TYPE type;

	SUCCEEDS(dat_get_handle_type(self->a.ia, &type));
	EXPECT_EQ(DAT_HANDLE_TYPE_IA, type);
	SUCCEEDS(dat_get_handle_type(self->a.ep, &type));
	EXPECT_EQ(DAT_HANDLE_TYPE_EP, type);
	SUCCEEDS(dat_get_handle_type(self->a.conn, &type));
	EXPECT_EQ(DAT_HANDLE_TYPE_EVD, type);
	SUCCEEDS(dat_set_consumer_context(self->a.ep, mine));
	SUCCEEDS(dat_get_consumer_context(self->a.ep, &got));
	EXPECT_EQ(mine.as_64, got.as_64);
	SUCCEEDS(dat_get_consumer_context(self->a.pz, &got));
	EXPECT_EQ(0, got.as_64);
}

TEST_F(dat, ia_close_gracefully_only_without_objects)
{
	struct side other = {};
	DAT_PZ_HANDLE pz;

	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE,
		 dat_ia_close(self->a.ia, DAT_CLOSE_GRACEFUL_FLAG));
	SUCCEEDS(open_ia(getenv("DAPX_DEV") ?: "rxe0", &other));
	SUCCEEDS(dat_pz_create(other.ia, &pz));
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE,
		 dat_ia_close(other.ia, DAT_CLOSE_GRACEFUL_FLAG));
	SUCCEEDS(dat_pz_free(pz));
	/* The asynchronous EVD is the IA's. */
	FAILS_AS(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE, dat_evd_free(other.async));
	SUCCEEDS(dat_ia_close(other.ia, DAT_CLOSE_GRACEFUL_FLAG));
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ, dat_pz_free(pz));
}

TEST_F(dat, ia_close_abruptly_in_the_middle_of_everything)
{
	DAT_CONN_QUAL port;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_EP_HANDLE reserved;
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;
	DAT_EVENT event;
	int i;

	ASSERT_TRUE(connect_both(&self->a, &self->b));
	SUCCEEDS(dat_rmr_create(self->b.pz, &rmr));
	SUCCEEDS(bind_window(&self->b, rmr, MEMORY, &context));
	SUCCEEDS(create_ep(&self->b, &reserved));
	SUCCEEDS(dat_rsp_create(self->b.ia, PORT, reserved, self->b.cr, &rsp));
	SUCCEEDS(dat_psp_create_any(self->b.ia, &port, self->b.cr, DAT_PSP_PROVIDER_FLAG, &psp));
	for (i = 0; i < 4; i++)
		SUCCEEDS(post_write(&self->a, &self->b, MEMORY, context, i));
	SUCCEEDS(dat_ia_close(self->b.ia, DAT_CLOSE_ABRUPT_FLAG));
	ASSERT_NE(0, next(self->a.conn, &event));
	EXPECT_EQ(DAT_EP_STATE_DISCONNECTED, state_of(self->a.ep));
	SUCCEEDS(open_ia(getenv("DAPX_PEER_DEV") ?: "rxe1", &self->b));
}

/* All that is left is to let go of it, which succeeds. */
TEST_F(dat, ia_close_without_its_device)
{
	const char *device = getenv("DAPX_DEV") ?: "rxe0";
	struct waiter waiter = { .evd = self->a.cr };
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;
	pthread_t thread;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL port;
	struct host host = { .device = device, .addr = getenv("DAPX_IP") ?: "10.0.0.1" };
	DAT_EVENT event;

	SUCCEEDS(dat_psp_create_any(self->a.ia, &port, self->a.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	ASSERT_TRUE(connect_both(&self->a, &self->b));
	SUCCEEDS(dat_rmr_create(self->a.pz, &rmr));
	SUCCEEDS(bind_window(&self->a, rmr, 4096, &context));
	OK(start(&thread, &waiter));
	OK(device_remove(&host));
	pthread_join(thread, NULL);
	/* Each EVD tells, so that nobody waits in vain. */
	EXPECT_EQ(DAT_SUCCESS, waiter.rc);
	EXPECT_EQ(DAT_ASYNC_ERROR_IA_CATASTROPHIC, waiter.event.event_number);
	EXPECT_EQ(DAT_ASYNC_ERROR_IA_CATASTROPHIC, next(self->a.async, &event));
	EXPECT_EQ(self->a.ia, event.event_data.asynch_error_event_data.dat_handle);
	EXPECT_EQ(DAT_SUCCESS, dat_rmr_free(rmr));
	EXPECT_EQ(DAT_SUCCESS, dat_ep_free(self->a.ep));
	EXPECT_EQ(DAT_SUCCESS, dat_ia_close(self->a.ia, DAT_CLOSE_ABRUPT_FLAG));
	OK(device_add(&host));
	SUCCEEDS(open_ia(device, &self->a));
}

struct maker {
	DAT_IA_HANDLE ia;
	DAT_RETURN rc;
	atomic_int made;
};

static void *make_objects(void *argument)
{
	struct maker *maker = argument;
	DAT_EVD_HANDLE evd;
	DAT_RMR_HANDLE rmr;
	DAT_PZ_HANDLE pz;

	do {
		maker->rc = dat_pz_create(maker->ia, &pz);
		if (!maker->rc)
			maker->rc = dat_rmr_create(pz, &rmr);
		if (!maker->rc)
			maker->rc = dat_evd_create(maker->ia, 4, DAT_HANDLE_NULL,
						   DAT_EVD_SOFTWARE_FLAG, &evd);
		maker->made++;
	} while (!maker->rc);
	return NULL;
}

TEST_F(dat, ia_close_while_another_thread_makes_objects)
{
	struct side other = {};
	struct maker maker = {};
	pthread_t thread;
	int i;

	for (i = 0; i < 5; i++) {
		SUCCEEDS(open_ia(getenv("DAPX_DEV") ?: "rxe0", &other));
		maker.ia = other.ia;
		maker.made = 0;
		pthread_create(&thread, NULL, make_objects, &maker);
		while (maker.made < 3)
			usleep(100);
		SUCCEEDS(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
		pthread_join(thread, NULL);
		FAILS(DAT_INVALID_HANDLE, maker.rc);
	}
}

/* What the child of a process gets from its parent's objects; 0 if all is as it should be. */
static int use_as_a_child(struct side *side)
{
	const DAT_RETURN invalid = DAT_CLASS_ERROR | DAT_INVALID_HANDLE;
	DAT_EVENT event;
	DAT_PZ_HANDLE pz;
	DAT_COUNT more;
	DAT_RETURN rc[] = {
		post_send(side, 16, 1, DAT_COMPLETION_DEFAULT_FLAG),
		post_recv(side, 2),
		dat_evd_wait(side->conn, SOON, 1, &event, &more),
		dat_pz_create(side->ia, &pz),
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rc); i++)
		if ((rc[i] & ~(DAT_RETURN)DAT_SUBTYPE_MASK) != invalid)
			return 1 + i;
	if (dat_evd_dequeue(side->recv, &event) == DAT_SUCCESS)
		return 100;
	return dat_ia_close(side->ia, DAT_CLOSE_ABRUPT_FLAG) ? 101 : 0;
}

TEST_F(dat, objects_stay_the_parents)
{
	DAT_EVENT event;
	int status;
	pid_t pid;

	ASSERT_TRUE(connect_both(&self->a, &self->b));
	SUCCEEDS(post_recv(&self->b, 5));
	pid = fork();
	if (!pid)
		_exit(use_as_a_child(&self->a));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	SUCCEEDS(post_send(&self->a, 16, 6, DAT_COMPLETION_DEFAULT_FLAG));
	ASSERT_EQ(DAT_DTO_COMPLETION_EVENT, next(self->b.recv, &event));
	EXPECT_EQ(5, event.event_data.dto_completion_event_data.user_cookie.as_64);
	EXPECT_EQ(DAT_DTO_SUCCESS, event.event_data.dto_completion_event_data.status);
}

TEST_F(dat, ia_attributes)
{
	DAT_PROVIDER_ATTR attr;
	DAT_IA_ATTR ia;

	SUCCEEDS(dat_ia_query(self->a.ia, NULL, DAT_IA_FIELD_ALL, &ia,
			      DAT_PROVIDER_FIELD_ALL, &attr));
	EXPECT_EQ(0, strncmp(ia.adapter_name, "dapx-", 5));
	EXPECT_LE(1, ia.max_eps);
	EXPECT_LE(1, ia.max_rmrs);
	EXPECT_EQ(AF_INET, ia.ia_address_ptr->sa_family);
	EXPECT_STREQ("dapx", attr.provider_name);
	EXPECT_EQ(DAT_VERSION_MAJOR, attr.dapl_version_major);
	EXPECT_EQ(DAT_THREADSAFE, attr.is_thread_safe);
	EXPECT_LE(56, attr.max_private_data_size);
	EXPECT_EQ(DAT_PSP_CREATES_EP_IFASKED, attr.ep_creator);
}

/* A program that opens it. */
#ifdef DAT_1_2
#define OPEN_NONE "${DAPX_BUILD:-build}/Documentation/examples/dapx-example-dat12 dapx-none0"
#else
#define OPEN_NONE "dapltest -T L -D dapx-none0 -m 1 limit_ia"
#endif
#define TO_NONE "sed 's/rxe0/none0/g' >/tmp/dat.conf.$PPID"
#define WITH_NONE "DAT_OVERRIDE=/tmp/dat.conf.$PPID " OPEN_NONE " 2>&1"

TEST_F(dat, ia_of_no_device)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	FAILS(DAT_PROVIDER_NOT_FOUND, dat_ia_open("dapx-none", 8, &async, &ia));
	/* The registry reads its file once: a line of a device that is gone, by others. */
	ASSERT_EQ(0, system("cat $DAT_OVERRIDE |" TO_NONE));
	EXPECT_EQ(0, system("DAT_DBG_TYPE=1 " WITH_NONE " | grep '^dapx-none0: .*none0'"));
	EXPECT_EQ(0, system(WITH_NONE " | grep DAT_PROVIDER_NOT_FOUND"));
	ASSERT_EQ(0, system("rm /tmp/dat.conf.$PPID"));
}

#ifdef DAT_1_2
/* --- The registry, which is libdat2's for DAT 2.0 ------------------------- */

TEST_F(dat, registry_lists_what_can_be_opened)
{
	DAT_PROVIDER_INFO info[2], *list[] = { &info[0], &info[1] };
	DAT_COUNT count = 0;

	SUCCEEDS(dat_registry_list_providers(0, &count, NULL));
	EXPECT_EQ(4, count); /* two devices, for programs that are thread-safe and others */
	memset(info, 0, sizeof(info));
	SUCCEEDS(dat_registry_list_providers(2, &count, list));
	EXPECT_EQ(4, count);
	EXPECT_EQ(0, strncmp("dapx-", info[1].ia_name, 5));
	EXPECT_EQ(1, info[1].dapl_version_major);
	EXPECT_EQ(2, info[1].dapl_version_minor);
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		 dat_registry_list_providers(2, NULL, list));
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		 dat_registry_list_providers(2, &count, NULL));
}

TEST_F(dat, registry_says_what_is_missing)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	char name[64], none[DAT_NAME_MAX_LENGTH + 1];
	DAT_IA_HANDLE ia;

	snprintf(name, sizeof(name), "dapx-%s", getenv("DAPX_DEV") ?: "rxe0");
	FAILS_AS(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED,
		 dat_ia_openv("dapx-none", 8, &async, &ia, 1, 2, DAT_TRUE));
	FAILS_AS(DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND,
		 dat_ia_openv(name, 8, &async, &ia, 2, 0, DAT_TRUE));
	FAILS_AS(DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND,
		 dat_ia_openv(name, 8, &async, &ia, 1, 3, DAT_TRUE));
	/* Both kinds of programs, and those of an earlier minor version. */
	SUCCEEDS(dat_ia_openv(name, 8, &async, &ia, 1, 1, DAT_FALSE));
	SUCCEEDS(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	memset(none, 'x', sizeof(none) - 1);
	none[sizeof(none) - 1] = 0;
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1,
		 dat_ia_openv(none, 8, &async, &ia, 1, 2, DAT_TRUE));
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1,
		 dat_ia_openv(NULL, 8, &async, &ia, 1, 2, DAT_TRUE));
	FAILS_AS(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		 dat_ia_openv(name, 8, &async, NULL, 1, 2, DAT_TRUE));
}

TEST_F(dat, registry_without_a_file)
{
	EXPECT_EQ(0, system("DAT_OVERRIDE=/none DAT_DBG_TYPE=1 " OPEN_NONE
			    " 2>&1 | grep '^dapx-none0: cannot read /none: No such file'"));
	EXPECT_EQ(0, system("DAT_OVERRIDE=/none " OPEN_NONE " 2>&1 | grep DAT_PROVIDER_NOT_FOUND"));
	/* It is there, and cannot be read. */
	EXPECT_EQ(0, system("DAT_OVERRIDE=/tmp DAT_DBG_TYPE=1 " OPEN_NONE
			    " 2>&1 | grep '^dapx-none0: cannot read /tmp: Is a directory'"));
	EXPECT_EQ(0, system("DAT_OVERRIDE=/tmp " OPEN_NONE " 2>&1 | grep DAT_PROVIDER_NOT_FOUND"));
	/* A library that is none. */
	EXPECT_EQ(0, system("sed 's/ [^ ]*dapx-dat[^ ]* / libc.so.6 /' $DAT_OVERRIDE |"
		  TO_NONE));
	EXPECT_EQ(0, system("DAT_DBG_TYPE=1 " WITH_NONE " | grep 'is no library of a DAT'"));
	EXPECT_EQ(0, system("rm /tmp/dat.conf.$PPID"));
}

/* Of several lines for one adapter, the first whose library can be loaded. */
TEST_F(dat, registry_tries_the_next_line)
{
	ASSERT_EQ(0, system("sed 'h; s/ [^ ]*dapx-dat[^ ]* / libnone.so /; G' $DAT_OVERRIDE |"
			    TO_NONE));
	EXPECT_EQ(0, system("DAT_DBG_TYPE=1 " WITH_NONE " | grep '^dapx-none0: libnone.so'"));
	EXPECT_EQ(0, system("DAT_DBG_TYPE=1 " WITH_NONE " | grep '^dapx-none0: .*none0'"));
	EXPECT_EQ(0, system("rm /tmp/dat.conf.$PPID"));
}

/* As in libdat2, they name nothing that can be opened. */
TEST_F(dat, registry_ignores_nondefault_lines)
{
	ASSERT_EQ(0, system("sed 's/ default / nondefault /' $DAT_OVERRIDE |" TO_NONE));
	EXPECT_EQ(0, system("DAT_DBG_TYPE=1 " WITH_NONE
			    " | grep '^dapx-none0: no such u1.2 line'"));
	EXPECT_EQ(0, system("rm /tmp/dat.conf.$PPID"));
}

/* What the 2.0 registry would follow into nowhere. */
TEST_F(dat, registry_knows_handles)
{
	void *garbage[2] = { garbage, NULL };
	void *wild[] = { NULL, (void *)1, (void *)4095, (char *)self->a.pz + 1, garbage };
	DAT_EP_STATE state;
	DAT_EVENT event;
	DAT_CONTEXT mine;

	for (size_t i = 0; i < ARRAY_SIZE(wild); i++) {
		FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
			 dat_ep_get_status(wild[i], &state, NULL, NULL));
		FAILS(DAT_INVALID_HANDLE, dat_evd_dequeue(wild[i], &event));
		FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA,
			 dat_ia_close(wild[i], DAT_CLOSE_ABRUPT_FLAG));
		FAILS(DAT_INVALID_HANDLE, dat_get_consumer_context(wild[i], &mine));
	}
}

TEST_F(dat, registry_names_errors)
{
	const char *type, *subtype;

	SUCCEEDS(dat_strerror(DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_RMR,
			      &type, &subtype));
	EXPECT_STREQ("DAT_INVALID_HANDLE", type);
	EXPECT_STREQ("DAT_INVALID_HANDLE_RMR", subtype);
	SUCCEEDS(dat_strerror(DAT_SUCCESS, &type, &subtype));
	EXPECT_STREQ("DAT_SUCCESS", type);
	EXPECT_STREQ("DAT_NO_SUBTYPE", subtype);
	FAILS(DAT_INVALID_PARAMETER, dat_strerror(0x3ff10000, &type, &subtype));
	FAILS(DAT_INVALID_PARAMETER, dat_strerror(DAT_CLASS_ERROR | 0xfff, &type, &subtype));
}
#endif

/* --- no memory --------------------------------------------------------------- */

/* Of this thread: how many more until one fails; 0: none does. */
static __thread unsigned int allocations_left;
static __thread bool allocation_failed;
/* Of this thread: what its next one waits for; NULL: nothing. */
static __thread sem_t *allocation_waits;

extern void *__libc_malloc(size_t size);

/* The C library's, for all of the process, so that an allocation of the provider can fail. */
void *malloc(size_t size)
{
	sem_t *waits = allocation_waits;

	allocation_waits = NULL;
	if (waits)
		sem_wait(waits);
	if (!allocations_left || --allocations_left)
		return __libc_malloc(size);
	allocation_failed = true;
	errno = ENOMEM;
	return NULL;
}

struct half_made {
	DAT_IA_HANDLE ia;
	sem_t goes_on;
	pid_t maker, closer;
	DAT_RETURN made, closed;
};

static void *makes_half(void *arg)
{
	struct half_made *half = arg;
	DAT_PZ_HANDLE pz;

	__atomic_store_n(&half->maker, gettid(), __ATOMIC_RELEASE);
	allocation_waits = &half->goes_on;
	half->made = dat_pz_create(half->ia, &pz);
	return NULL;
}

static void *closes_meanwhile(void *arg)
{
	struct half_made *half = arg;

	__atomic_store_n(&half->closer, gettid(), __ATOMIC_RELEASE);
	half->closed = dat_ia_close(half->ia, DAT_CLOSE_ABRUPT_FLAG);
	return NULL;
}

/* Its handle would be of an IA that is gone. */
TEST_F(dat, ia_close_while_an_object_is_half_made)
{
	struct half_made half = {};
	struct side other = {};
	pthread_t maker, closer;

	SUCCEEDS(open_ia(getenv("DAPX_DEV") ?: "rxe0", &other));
	half.ia = other.ia;
	sem_init(&half.goes_on, 0, 0);
	ASSERT_EQ(0, pthread_create(&maker, NULL, makes_half, &half));
	OK(await_asleep_in(&half.maker, SYS_futex));
	ASSERT_EQ(0, pthread_create(&closer, NULL, closes_meanwhile, &half));
	/* It waits for the call that is under way. */
	OK(await_asleep_in(&half.closer, SYS_clock_nanosleep));
	sem_post(&half.goes_on);
	pthread_join(maker, NULL);
	pthread_join(closer, NULL);
	FAILS_AS(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA, half.made);
	SUCCEEDS(half.closed);
	sem_destroy(&half.goes_on);
}

static DAT_RETURN make_evd(struct side *side, DAT_HANDLE *handle)
{
	return create_evd(side, DAT_EVD_DTO_FLAG, handle);
}

static DAT_RETURN make_evd_with_cno(struct side *side, DAT_HANDLE *handle)
{
	DAT_CNO_HANDLE cno;
	DAT_RETURN rc;

	rc = dat_cno_create(side->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno);
	if (rc)
		return rc;
	rc = dat_evd_create(side->ia, DEPTH, cno, DAT_EVD_DTO_FLAG, handle);
	if (rc)
		dat_cno_free(cno);
	return rc;
}

static DAT_RETURN make_pz(struct side *side, DAT_HANDLE *handle)
{
	return dat_pz_create(side->ia, handle);
}

static DAT_RETURN make_ep(struct side *side, DAT_HANDLE *handle)
{
	return create_ep(side, handle);
}

static DAT_RETURN make_srq(struct side *side, DAT_HANDLE *handle)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = DEPTH, .max_recv_iov = 1 };

	return dat_srq_create(side->ia, side->pz, &attr, handle);
}

static DAT_RETURN make_lmr(struct side *side, DAT_HANDLE *handle)
{
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;

	return register_memory(side, DAT_MEM_PRIV_ALL_FLAG, handle, &local, &remote);
}

static DAT_RETURN make_rmr(struct side *side, DAT_HANDLE *handle)
{
	return dat_rmr_create(side->pz, handle);
}

static DAT_RETURN make_psp(struct side *side, DAT_HANDLE *handle)
{
	DAT_CONN_QUAL port;

	return dat_psp_create_any(side->ia, &port, side->cr, DAT_PSP_CONSUMER_FLAG, handle);
}

static DAT_RETURN make_rsp(struct side *side, DAT_HANDLE *handle)
{
	return dat_rsp_create(side->ia, PORT, side->ep, side->cr, handle);
}

static DAT_RETURN end_of_evd(DAT_HANDLE handle)
{
	DAT_EVD_PARAM param;
	DAT_RETURN rc = dat_evd_query(handle, DAT_EVD_FIELD_ALL, &param);

	rc = rc ?: dat_evd_free(handle);
	return rc || !param.cno_handle ? rc : dat_cno_free(param.cno_handle);
}

static DAT_RETURN end_of_pz(DAT_HANDLE handle) { return dat_pz_free(handle); }
static DAT_RETURN end_of_ep(DAT_HANDLE handle) { return dat_ep_free(handle); }
static DAT_RETURN end_of_srq(DAT_HANDLE handle) { return dat_srq_free(handle); }
static DAT_RETURN end_of_lmr(DAT_HANDLE handle) { return dat_lmr_free(handle); }
static DAT_RETURN end_of_rmr(DAT_HANDLE handle) { return dat_rmr_free(handle); }
static DAT_RETURN end_of_psp(DAT_HANDLE handle) { return dat_psp_free(handle); }
static DAT_RETURN end_of_rsp(DAT_HANDLE handle) { return dat_rsp_free(handle); }

/* Whichever allocation fails, the call says so, and nothing is left of it. */
TEST_F(dat, calls_that_find_no_memory_say_so)
{
	static const struct {
		const char *what;
		DAT_RETURN (*make)(struct side *side, DAT_HANDLE *handle);
		DAT_RETURN (*end)(DAT_HANDLE handle);
	} makers[] = {
		{ "EVD", make_evd, end_of_evd },
		{ "EVD with a CNO", make_evd_with_cno, end_of_evd },
		{ "PZ", make_pz, end_of_pz },
		{ "EP", make_ep, end_of_ep },
		{ "SRQ", make_srq, end_of_srq },
		{ "LMR", make_lmr, end_of_lmr },
		{ "RMR", make_rmr, end_of_rmr },
		{ "PSP", make_psp, end_of_psp },
		{ "RSP", make_rsp, end_of_rsp },
	};
	unsigned int i, n;
	DAT_HANDLE handle;
	DAT_RETURN rc;

	for (i = 0; i < sizeof(makers) / sizeof(*makers); i++) {
		for (n = 1; ; n++) {
			handle = DAT_HANDLE_NULL;
			allocation_failed = false;
			allocations_left = n;
			rc = makers[i].make(&self->a, &handle);
			allocations_left = 0;
			if (!rc) {
				SUCCEEDS(makers[i].end(handle));
				if (!allocation_failed)
					break;
				continue;
			}
			ASSERT_TRUE(allocation_failed)
				TH_LOG("%s: %#x", makers[i].what, rc);
			ASSERT_EQ((DAT_RETURN)(DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES),
				  rc & ~(DAT_RETURN)DAT_SUBTYPE_MASK)
				TH_LOG("%s, allocation %u: %#x", makers[i].what, n, rc);
		}
		ASSERT_LT(1, n) TH_LOG("%s", makers[i].what);
	}
	ASSERT_TRUE(connect_both(&self->a, &self->b));
}

/* The events stay where they are, for the next call. */
TEST_F(dat, evd_wait_that_finds_no_memory_loses_no_event)
{
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;
	DAT_COUNT more;
	int i;

	SUCCEEDS(create_evd(&self->a, DAT_EVD_SOFTWARE_FLAG, &evd));
	for (i = 0; i < DEPTH; i++)
		SUCCEEDS(post_software(evd, &self->a.memory[i]));
	allocations_left = 1;
	FAILS(DAT_INSUFFICIENT_RESOURCES, dat_evd_wait(evd, LATER, DEPTH, &event, &more));
	allocations_left = 0;
	SUCCEEDS(dat_evd_wait(evd, LATER, DEPTH, &event, &more));
	EXPECT_EQ(&self->a.memory[0], event.event_data.software_event_data.pointer);
	EXPECT_EQ(DEPTH - 1, more);
	for (i = 1; i < DEPTH; i++) {
		SUCCEEDS(dat_evd_dequeue(evd, &event));
		EXPECT_EQ(&self->a.memory[i], event.event_data.software_event_data.pointer);
	}
	SUCCEEDS(dat_evd_free(evd));
}

TEST_HARNESS_MAIN
