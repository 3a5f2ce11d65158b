// SPDX-License-Identifier: GPL-2.0
/*
 * Event dispatchers: order, waiting, being full, being resized, running over
 * 2^32, and indices that cannot be.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/dice.h"
#include "harness/machine.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 300

FIXTURE(evd)
{
	struct host a;
	struct host b;
	struct ep ea;
	struct ep eb;
	struct evd evd;			/* of depth 8 */
};

/* Where the indices of all rings begin. */
FIXTURE_VARIANT(evd)
{
	__u32 first_index;
};

FIXTURE_VARIANT_ADD(evd, from_zero)
{
	.first_index = 0,
};

/* Every ring goes over 2^32 in the middle of the test. */
FIXTURE_VARIANT_ADD(evd, wrapping)
{
	.first_index = 0xfffffffc,
};

FIXTURE_SETUP(evd)
{
	OK(set_module_parameter("initial_index", variant->first_index));
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	OK(ep_create(&self->a, &self->ea));
	OK(ep_create(&self->b, &self->eb));
	OK(evd_make(self->a.fd, 8, 0, &self->evd));
	ASSERT_EQ(8, self->evd.ring.depth);
	ASSERT_EQ(variant->first_index, *self->evd.ring.head);
	ASSERT_EQ(variant->first_index, *self->evd.ring.tail);
}

FIXTURE_TEARDOWN(evd)
{
	set_module_parameter("initial_index", 0);
	ring_unmap(&self->evd.ring);
	host_close(&self->a);
	host_close(&self->b);
}

static int post(struct evd *evd, __u64 number)
{
	struct dapx_evd_post cmd = {
		.evd = evd->handle, .data = { number, ~number },
	};

	if (_test_cmd_evd_post(evd->fd, &cmd))
		return because("DAPX_EVD_POST: %m");
	return 0;
}

static int take(struct evd *evd, __u64 number)
{
	struct dapx_event event;

	if (!evd_poll(evd, &event))
		return because("event %llu is not there", number);
	if (event.type != DAPX_EVENT_SOFTWARE ||
	    event.software.data[0] != number ||
	    event.software.data[1] != ~number)
		return because("event %llu instead of %llu",
			       event.software.data[0], number);
	return 0;
}

static int wait_events(struct evd *evd, __u32 threshold, __u64 deadline,
		       __u32 *events)
{
	struct dapx_evd_wait cmd = {
		.evd = evd->handle, .threshold = threshold, .deadline = deadline,
	};
	int ret = _test_cmd_evd_wait(evd->fd, &cmd);

	if (events)
		*events = cmd.out_events;
	return ret;
}

TEST_F(evd, depth)
{
	static const struct {
		__u32 asked;
		__u32 got;
	} depths[] = {
		{ 1, 1 }, { 2, 2 }, { 3, 4 }, { 5, 8 }, { 64, 64 }, { 65, 128 },
	};
	struct dapx_evd_create cmd;
	__u32 most;
	int i;

	for (i = 0; i < ARRAY_SIZE(depths); i++) {
		cmd = test_cmd(evd_create, self->a.fd, .depth = depths[i].asked);
		EXPECT_EQ(depths[i].got, cmd.out_ring.depth);
		EXPECT_EQ(sizeof(struct dapx_event), cmd.out_ring.stride);
	}
	most = test_cmd(info, self->a.fd, 0).out_max_ring_depth;
	cmd = test_cmd(evd_create, self->a.fd, .depth = most);
	EXPECT_EQ(most, cmd.out_ring.depth);
}

TEST_F(evd, software_events)
{
	struct dapx_evd_create cmd;
	struct dapx_event event;
	struct evd evd;
	__u64 i;

	cmd = test_cmd(evd_create, self->a.fd, .depth = 4, .user_data = 0x4711);
	evd.fd = self->a.fd;
	evd.handle = cmd.out_evd;
	OK(ring_map(evd.fd, &cmd.out_ring, &evd.ring));
	OK(post(&evd, 1));
	ASSERT_TRUE(evd_poll(&evd, &event));
	EXPECT_EQ(DAPX_EVENT_SOFTWARE, event.type);
	EXPECT_EQ(0x4711, event.user_data);
	EXPECT_EQ(1, event.software.data[0]);
	EXPECT_EQ(~1ULL, event.software.data[1]);
	for (i = 2; i < 6; i++)
		EXPECT_EQ(0, event.__reserved[i]);
	EXPECT_FALSE(evd_poll(&evd, &event));

	for (i = 0; i < 100; i++) {
		OK(post(&self->evd, i));
		OK(post(&self->evd, i + 1000));
		OK(take(&self->evd, i));
		OK(take(&self->evd, i + 1000));
	}
}

TEST_F(evd, full)
{
	__u64 i, round;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < 8; i++)
			OK(post(&self->evd, i));
		for (i = 0; i < 3; i++)
			test_err(EAGAIN, evd_post, self->a.fd,
				 .evd = self->evd.handle);
		EXPECT_EQ(8, ring_used(&self->evd.ring));
		OK(take(&self->evd, 0));
		OK(post(&self->evd, 8));
		test_err(EAGAIN, evd_post, self->a.fd, .evd = self->evd.handle);
		for (i = 1; i <= 8; i++)
			OK(take(&self->evd, i));
		EXPECT_EQ(0, ring_used(&self->evd.ring));
	}
}

TEST_F(evd, threshold)
{
	__u32 n, events, posted;

	for (posted = 0; posted <= 8; posted++) {
		for (n = 1; n <= 8; n++) {
			int ret = wait_events(&self->evd, n, 0, &events);

			if (n <= posted) {
				EXPECT_EQ(0, ret);
			} else {
				EXPECT_EQ(-1, ret);
				EXPECT_EQ(ETIMEDOUT, errno);
			}
			EXPECT_EQ(posted, events);
		}
		if (posted < 8)
			OK(post(&self->evd, posted));
	}
	/* Nothing was taken out. */
	for (posted = 0; posted < 8; posted++)
		OK(take(&self->evd, posted));
}

TEST_F(evd, deadline)
{
	__u64 start, took;

	/* Past, long past, and right now: at once. */
	start = now_ns();
	EXPECT_ERRNO(ETIMEDOUT, wait_events(&self->evd, 1, 0, NULL));
	EXPECT_ERRNO(ETIMEDOUT, wait_events(&self->evd, 1, 1, NULL));
	EXPECT_ERRNO(ETIMEDOUT, wait_events(&self->evd, 1, start, NULL));
	EXPECT_GT(10000000000ULL, now_ns() - start);

	/* It is a point in time, not a span. */
	start = now_ns();
	EXPECT_ERRNO(ETIMEDOUT, wait_events(&self->evd, 1, start + 50000000,
					    NULL));
	took = now_ns() - start;
	EXPECT_LE(50000000, took);
	EXPECT_GT(10000000000ULL, took) TH_LOG("%llu ns", took);

	/* What is there is there, however late. */
	OK(post(&self->evd, 1));
	EXPECT_EQ(0, wait_events(&self->evd, 1, 0, NULL));
	EXPECT_EQ(0, wait_events(&self->evd, 1, DAPX_NO_DEADLINE, NULL));
	EXPECT_EQ(0, wait_events(&self->evd, 1, DAPX_NO_DEADLINE - 1, NULL));
}

struct waiter {
	struct evd *evd;
	__u32 threshold;
	__u64 deadline;
	int error;
	__u32 events;
	pid_t tid;
	bool ended;
};

static bool has(const bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void set(bool *flag)
{
	__atomic_store_n(flag, true, __ATOMIC_RELEASE);
}

static void *waits(void *arg)
{
	struct waiter *waiter = arg;

	__atomic_store_n(&waiter->tid, gettid(), __ATOMIC_RELEASE);
	waiter->error = wait_events(waiter->evd, waiter->threshold,
				    waiter->deadline, &waiter->events) ?
			errno : 0;
	set(&waiter->ended);
	return NULL;
}

#define START(waiter, thread)						\
	({								\
		(waiter)->tid = 0;					\
		(waiter)->ended = false;				\
		ASSERT_EQ(0, pthread_create(thread, NULL, waits,	\
					    waiter));			\
		OK(await_asleep(&(waiter)->tid, DAPX_EVD_WAIT));	\
	})

TEST_F(evd, wakes_at_threshold)
{
	struct waiter waiter = { .evd = &self->evd, .threshold = 3,
				 .deadline = DAPX_NO_DEADLINE };
	pthread_t thread;

	START(&waiter, &thread);
	OK(post(&self->evd, 0));
	OK(post(&self->evd, 1));
	sleep_ms(GLANCE_MS);
	EXPECT_FALSE(has(&waiter.ended));
	OK(post(&self->evd, 2));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, waiter.error);
	EXPECT_EQ(3, waiter.events);
}

TEST_F(evd, many_waiters)
{
	struct waiter waiters[6] = {};
	pthread_t threads[6];
	int i;

	for (i = 0; i < 6; i++) {
		waiters[i].evd = &self->evd;
		waiters[i].threshold = 1 + i / 2;
		waiters[i].deadline = DAPX_NO_DEADLINE;
		START(&waiters[i], &threads[i]);
	}
	for (i = 0; i < 3; i++) {
		OK(post(&self->evd, i));
		ASSERT_EQ(0, pthread_join(threads[2 * i], NULL));
		ASSERT_EQ(0, pthread_join(threads[2 * i + 1], NULL));
		EXPECT_EQ(0, waiters[2 * i].error);
		EXPECT_EQ(0, waiters[2 * i + 1].error);
		if (i < 2)
			EXPECT_FALSE(has(&waiters[2 * i + 2].ended));
	}
}

static void nothing(int signal)
{
}

TEST_F(evd, interrupted)
{
	struct waiter waiter = { .evd = &self->evd, .threshold = 3,
				 .deadline = DAPX_NO_DEADLINE };
	struct sigaction action = { .sa_handler = nothing };
	pthread_t thread;
	int restart;

	OK(post(&self->evd, 0));
	for (restart = 0; restart < 2; restart++) {
		/* Not even where other calls would be restarted. */
		action.sa_flags = restart ? SA_RESTART : 0;
		ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
		START(&waiter, &thread);
		ASSERT_EQ(0, pthread_kill(thread, SIGUSR1));
		ASSERT_EQ(0, pthread_join(thread, NULL));
		EXPECT_EQ(EINTR, waiter.error);
		EXPECT_EQ(1, waiter.events);
	}
	OK(take(&self->evd, 0));
}

TEST_F(evd, freed_under_waiters)
{
	struct waiter waiters[4] = {};
	pthread_t threads[4];
	int i;

	for (i = 0; i < 4; i++) {
		waiters[i].evd = &self->evd;
		waiters[i].threshold = 1 + i;
		waiters[i].deadline = DAPX_NO_DEADLINE;
		START(&waiters[i], &threads[i]);
	}
	test_cmd(free, self->a.fd, .handle = self->evd.handle);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
		EXPECT_EQ(ECANCELED, waiters[i].error);
	}
	EXPECT_TRUE(ring_flags(&self->evd.ring) & DAPX_RING_DEAD);
	test_err(ENOENT, evd_wait, self->a.fd, .evd = self->evd.handle,
		 .threshold = 1);
}

/* What was in the ring stays readable. */
TEST_F(evd, readable_when_freed)
{
	__u64 i;

	for (i = 0; i < 5; i++)
		OK(post(&self->evd, i));
	test_cmd(free, self->a.fd, .handle = self->evd.handle);
	for (i = 0; i < 5; i++)
		OK(take(&self->evd, i));
}

static __u64 eventfd_count(int fd)
{
	__u64 value = 0;

	if (read(fd, &value, sizeof(value)) != sizeof(value))
		return 0;
	return value;
}

TEST_F(evd, eventfd)
{
	int fd, other, i;

	fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	other = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_LE(0, other);
	/* What was there before does not count. */
	OK(post(&self->evd, 0));
	test_cmd(evd_eventfd, self->a.fd, .evd = self->evd.handle, .fd = fd);
	EXPECT_EQ(0, eventfd_count(fd));
	for (i = 1; i < 4; i++)
		OK(post(&self->evd, i));
	EXPECT_EQ(3, eventfd_count(fd));
	/* Replaced, with the file closed: the new one only. */
	test_cmd(evd_eventfd, self->a.fd, .evd = self->evd.handle, .fd = other);
	OK(post(&self->evd, 4));
	EXPECT_EQ(0, eventfd_count(fd));
	EXPECT_EQ(1, eventfd_count(other));
	/* One that failed replaces nothing. */
	test_err(EINVAL, evd_eventfd, self->a.fd, .evd = self->evd.handle,
		 .fd = self->a.fd);
	OK(post(&self->evd, 5));
	EXPECT_EQ(1, eventfd_count(other));
	test_cmd(evd_eventfd, self->a.fd, .evd = self->evd.handle, .fd = -1);
	OK(post(&self->evd, 6));
	EXPECT_EQ(0, eventfd_count(fd));
	EXPECT_EQ(0, eventfd_count(other));
	close(fd);
	/* The EVD keeps it; a full ring signals nothing. */
	test_cmd(evd_eventfd, self->a.fd, .evd = self->evd.handle, .fd = other);
	OK(post(&self->evd, 7));
	test_err(EAGAIN, evd_post, self->a.fd, .evd = self->evd.handle);
	EXPECT_EQ(1, eventfd_count(other));
	close(other);
	for (i = 0; i < 8; i++)
		OK(take(&self->evd, i));
	OK(post(&self->evd, 8));
}

static int new_eventfd(void)
{
	return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

#define SIGNAL_ONCE(evd_, fd_)						\
	test_cmd(evd_eventfd, (evd_)->fd, .evd = (evd_)->handle,	\
		 .fd = (fd_), .flags = DAPX_EVENTFD_ONCE)

TEST_F(evd, armed_once)
{
	int fd = new_eventfd(), i;

	ASSERT_LE(0, fd);
	SIGNAL_ONCE(&self->evd, fd);
	EXPECT_FALSE(evd_armed(&self->evd));
	OK(post(&self->evd, 0));
	EXPECT_EQ(0, eventfd_count(fd));

	/* What is there unread does not count, and keeps it armed. */
	evd_arm(&self->evd);
	EXPECT_EQ(0, eventfd_count(fd));
	EXPECT_TRUE(evd_armed(&self->evd));
	OK(post(&self->evd, 1));
	EXPECT_EQ(1, eventfd_count(fd));
	EXPECT_FALSE(evd_armed(&self->evd));
	for (i = 2; i < 5; i++)
		OK(post(&self->evd, i));
	EXPECT_EQ(0, eventfd_count(fd));

	/* Armed twice is armed. */
	evd_arm(&self->evd);
	evd_arm(&self->evd);
	OK(post(&self->evd, 5));
	OK(post(&self->evd, 6));
	EXPECT_EQ(1, eventfd_count(fd));

	/* What finds no room and is refused is no event. */
	OK(post(&self->evd, 7));
	evd_arm(&self->evd);
	test_err(EAGAIN, evd_post, self->a.fd, .evd = self->evd.handle);
	EXPECT_EQ(0, eventfd_count(fd));
	EXPECT_TRUE(evd_armed(&self->evd));
	for (i = 0; i < 8; i++)
		OK(take(&self->evd, i));
	EXPECT_EQ(0, eventfd_count(fd));
	OK(post(&self->evd, 8));
	EXPECT_EQ(1, eventfd_count(fd));

	/* Without the flag each event signals, and nobody looks at the word. */
	test_cmd(evd_eventfd, self->a.fd, .evd = self->evd.handle, .fd = fd);
	OK(post(&self->evd, 9));
	evd_arm(&self->evd);
	OK(post(&self->evd, 10));
	EXPECT_EQ(2, eventfd_count(fd));
	EXPECT_TRUE(evd_armed(&self->evd));
	test_cmd(evd_eventfd, self->a.fd, .evd = self->evd.handle, .fd = -1,
		 .flags = DAPX_EVENTFD_ONCE);
	OK(post(&self->evd, 11));
	EXPECT_EQ(0, eventfd_count(fd));
	close(fd);
}

TEST_F(evd, armed_for_completions)
{
	struct pollfd wait = { .fd = new_eventfd(), .events = POLLIN };
	int i;

	ASSERT_LE(0, wait.fd);
	SIGNAL_ONCE(&self->a.recv, wait.fd);
	OK(connect_cm(&self->ea, &self->eb));
	for (i = 0; i < 10; i++) {
		bool arm = i % 2;

		if (arm)
			evd_arm(&self->a.recv);
		OK(ep_recv(&self->ea, i, 0, 64));
		OK(ep_send(&self->eb, i, 0, 64));
		if (arm)
			ASSERT_EQ(1, poll(&wait, 1, PATIENCE_MS));
		OK(expect_completion(&self->a.recv, i, DAPX_STATUS_SUCCESS,
				     NULL));
		OK(expect_completion(&self->b.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
		EXPECT_EQ(arm, eventfd_count(wait.fd));
		EXPECT_FALSE(evd_armed(&self->a.recv));
	}
	close(wait.fd);
}

/* Nobody but its owner has something of what stands in the word. */
TEST_F(evd, armed_with_rubbish)
{
	static const __u32 words[] = { 3, 0x80000000, 0xff00, ~0U };
	int fd = new_eventfd(), others = new_eventfd(), i;
	struct evd other;

	ASSERT_LE(0, fd);
	ASSERT_LE(0, others);
	OK(evd_make(self->a.fd, 8, 0, &other));
	SIGNAL_ONCE(&self->evd, fd);
	SIGNAL_ONCE(&other, others);
	for (i = 0; i < 100; i++) {
		*self->evd.ring.armed = i < ARRAY_SIZE(words) ? words[i] :
				dice() | 1;
		OK(post(&self->evd, i));
		OK(post(&other, i));
		EXPECT_EQ(1, eventfd_count(fd));
		EXPECT_FALSE(evd_armed(&self->evd));
		OK(take(&self->evd, i));
		OK(take(&other, i));
	}
	EXPECT_EQ(0, eventfd_count(others));
	close(fd);
	close(others);
}

TEST_F(evd, epoll)
{
	struct epoll_event want = { .events = EPOLLIN }, got;
	int fd, epoll;
	__u64 i;

	fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_LE(0, epoll);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &want));
	test_cmd(evd_eventfd, self->a.fd, .evd = self->a.recv.handle, .fd = fd);
	EXPECT_EQ(0, epoll_wait(epoll, &got, 1, 0));

	/* A real event, of a receive. */
	OK(connect_cm(&self->ea, &self->eb));
	for (i = 0; i < 10; i++) {
		OK(ep_recv(&self->ea, i, 0, 64));
		OK(ep_send(&self->eb, i, 0, 64));
		ASSERT_EQ(1, epoll_wait(epoll, &got, 1, PATIENCE_MS));
		EXPECT_EQ(1, eventfd_count(fd));
		OK(expect_completion(&self->a.recv, i, DAPX_STATUS_SUCCESS,
				     NULL));
		OK(expect_completion(&self->b.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
	}
	EXPECT_EQ(0, epoll_wait(epoll, &got, 1, 0));
	close(fd);
	close(epoll);
}

TEST_F(evd, resize)
{
	struct ring old = self->evd.ring;
	struct dapx_evd_resize cmd;
	__u64 i;

	/* Somewhere in the middle of the ring. */
	for (i = 0; i < 5; i++)
		OK(post(&self->evd, i));
	for (i = 0; i < 3; i++)
		OK(take(&self->evd, i));
	for (i = 5; i < 8; i++)
		OK(post(&self->evd, i));

	/* Five events: not less than that. */
	test_err(EBUSY, evd_resize, self->a.fd, .evd = self->evd.handle,
		 .depth = 4);
	EXPECT_EQ(0, ring_flags(&old) & DAPX_RING_DEAD);

	/* Larger. */
	cmd = test_cmd(evd_resize, self->a.fd, .evd = self->evd.handle,
		       .depth = 20);
	EXPECT_EQ(32, cmd.out_ring.depth);
	EXPECT_TRUE(ring_flags(&old) & DAPX_RING_DEAD);
	OK(ring_map(self->a.fd, &cmd.out_ring, &self->evd.ring));
	EXPECT_EQ(*old.head, *self->evd.ring.head);
	EXPECT_EQ(*old.tail, *self->evd.ring.tail);
	for (i = 8; i < 3 + 32; i++)
		OK(post(&self->evd, i));
	test_err(EAGAIN, evd_post, self->a.fd, .evd = self->evd.handle);
	for (i = 3; i < 31; i++)
		OK(take(&self->evd, i));
	ring_unmap(&old);

	/* Smaller, to just what is needed. */
	old = self->evd.ring;
	cmd = test_cmd(evd_resize, self->a.fd, .evd = self->evd.handle,
		       .depth = 4);
	EXPECT_EQ(4, cmd.out_ring.depth);
	OK(ring_map(self->a.fd, &cmd.out_ring, &self->evd.ring));
	for (i = 31; i < 35; i++)
		OK(take(&self->evd, i));
	OK(post(&self->evd, 35));
	OK(take(&self->evd, 35));
	ring_unmap(&old);
	/* A threshold has the new limit. */
	test_err(EINVAL, evd_wait, self->a.fd, .evd = self->evd.handle,
		 .threshold = 5);
}

/* The waiter goes on waiting, on the new ring. */
TEST_F(evd, resized_under_waiter)
{
	struct waiter waiter = { .evd = &self->evd, .threshold = 2,
				 .deadline = DAPX_NO_DEADLINE };
	pthread_t thread;

	START(&waiter, &thread);
	OK(post(&self->evd, 0));
	test_cmd(evd_resize, self->a.fd, .evd = self->evd.handle, .depth = 64);
	sleep_ms(GLANCE_MS);
	EXPECT_FALSE(has(&waiter.ended));
	OK(post(&self->evd, 1));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, waiter.error);
}

struct producer {
	struct evd *evd;
	unsigned int count;
	int error;
};

static void *produces(void *arg)
{
	struct producer *producer = arg;
	__u64 i;

	for (i = 0; i < producer->count && !producer->error; i++) {
		struct dapx_evd_post cmd = {
			.evd = producer->evd->handle, .data = { i, ~i },
		};

		while (_test_cmd_evd_post(producer->evd->fd, &cmd)) {
			if (errno != EAGAIN) {
				producer->error = errno;
				break;
			}
			give_way();
		}
	}
	return NULL;
}

struct visitor {
	struct evd *evd;
	unsigned int expected;		/* events that may have been posted */
	unsigned int posted;
	int error;
};

/* Posts one event after the other, each as soon as it is expected. */
static void *visits(void *arg)
{
	struct visitor *visitor = arg;

	for (;;) {
		unsigned int n = visitor->posted, expected, looks = 0;

		/* A system call for each look would blur the moment. */
		while ((expected = __atomic_load_n(&visitor->expected,
						   __ATOMIC_ACQUIRE)) == n) {
			if (++looks % 1000 == 0)
				give_way();
			else if (looks % 64 == 0)
				relax();
		}
		if (expected == ~0U)
			return NULL;
		/* No room: just now it is resized. */
		while (post(visitor->evd, n)) {
			visitor->error = errno;
			if (errno != EAGAIN)
				return NULL;
			visitor->error = 0;
			give_way();
		}
		__atomic_store_n(&visitor->posted, n + 1, __ATOMIC_RELEASE);
	}
}

/*
 * Arms and looks at the moment in which an event is posted, or resizes at any moment around
 * that, and sleeps until it is signalled: that must come.
 */
static int arm_against(struct evd *evd, unsigned int rounds, bool resize)
{
	struct pollfd wait = { .fd = new_eventfd(), .events = POLLIN };
	struct dapx_evd_eventfd eventfd = {
		.evd = evd->handle, .fd = wait.fd,
		.flags = DAPX_EVENTFD_ONCE,
	};
	struct visitor visitor = { .evd = evd };
	unsigned int i, slept = 0, armed = 0, resizes = 0;
	struct aim aim = { .turns = 2000 };
	__u64 signals = 0;
	pthread_t thread;
	int ret = 0;

	if (wait.fd < 0 || _test_cmd_evd_eventfd(evd->fd, &eventfd) ||
	    pthread_create(&thread, NULL, visits, &visitor))
		return because("%m");
	for (i = 0; i < rounds && !ret; i++) {
		unsigned int slept_before;
		struct dapx_event event;

		/* Each round begins alike: the visitor is back, and looks. */
		while (__atomic_load_n(&visitor.posted, __ATOMIC_ACQUIRE) != i)
			give_way();
		__atomic_store_n(&visitor.expected, i + 1, __ATOMIC_RELEASE);
		spin(resize ? dice() % (2 * aim.turns + 1) : aim_turns(&aim));
		slept_before = slept;
		for (;;) {
			struct dapx_evd_resize cmd = {
				.evd = evd->handle, .depth = 4U << dice() % 4,
			};

			evd_arm(evd);
			armed++;
			if (evd_poll(evd, &event))
				break;
			if (resize) {
				if (_test_cmd_evd_resize(evd->fd, &cmd)) {
					ret = because("DAPX_EVD_RESIZE: %m");
					break;
				}
				ring_unmap(&evd->ring);
				ret = ring_map(evd->fd, &cmd.out_ring,
					       &evd->ring);
				resizes++;
			}
			slept++;
			if (!ret && poll(&wait, 1, PATIENCE_MS) != 1)
				ret = because("no signal in round %u, %u posted, armed %u",
					      i, visitor.posted,
					      *evd->ring.armed);
			if (ret)
				break;
			/* It may be that of the last round: then once more. */
			signals += eventfd_count(wait.fd);
		}
		aim_fell(&aim, slept == slept_before);
		if (!ret && event.software.data[0] != i)
			ret = because("event %llu instead of %u",
				      event.software.data[0], i);
	}
	__atomic_store_n(&visitor.expected, ~0U, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	signals += eventfd_count(wait.fd);
	close(wait.fd);
	if (ret)
		return ret;
	if (visitor.error)
		return because("DAPX_EVD_POST: %s", strerror(visitor.error));
	if (!slept || signals > armed)
		return because("armed %u times, slept %u times, %llu signals",
			       armed, slept, signals);
	printf("# %u rounds, %u sleeps, %u resizes\n", rounds, slept, resizes);
	return 0;
}

/* In the moment in which it is armed: it is seen, or it signals. */
TEST_F(evd, armed_against_events)
{
	OK(arm_against(&self->evd, count(3000, 300000), false));
}

TEST_F(evd, resized_while_armed)
{
	struct ring old = self->evd.ring;
	struct dapx_evd_resize cmd;
	int fd = new_eventfd();

	ASSERT_LE(0, fd);
	SIGNAL_ONCE(&self->evd, fd);
	evd_arm(&self->evd);
	cmd = test_cmd(evd_resize, self->a.fd, .evd = self->evd.handle,
		       .depth = 16);
	OK(ring_map(self->a.fd, &cmd.out_ring, &self->evd.ring));
	EXPECT_TRUE(evd_armed(&self->evd));
	EXPECT_EQ(0, eventfd_count(fd));
	OK(post(&self->evd, 0));
	EXPECT_EQ(1, eventfd_count(fd));
	EXPECT_FALSE(evd_armed(&self->evd));

	/* Not armed is not armed, whatever the old ring says. */
	*old.armed = 1;
	cmd = test_cmd(evd_resize, self->a.fd, .evd = self->evd.handle,
		       .depth = 4);
	ring_unmap(&self->evd.ring);
	OK(ring_map(self->a.fd, &cmd.out_ring, &self->evd.ring));
	EXPECT_FALSE(evd_armed(&self->evd));
	OK(post(&self->evd, 1));
	EXPECT_EQ(0, eventfd_count(fd));
	OK(take(&self->evd, 0));
	OK(take(&self->evd, 1));
	ring_unmap(&old);
	close(fd);

	OK(arm_against(&self->evd, count(1000, 50000), true));
}

/* Resized again and again while events come: each is there once, in order. */
TEST_F(evd, resized_under_events)
{
	unsigned int n = count(3000, 200000), i, resizes = 0;
	struct producer producer = { .evd = &self->evd, .count = n };
	struct ring *ring = &self->evd.ring;
	__u64 next = 0;
	pthread_t thread;

	TH_LOG("%u events", n);
	ASSERT_EQ(0, pthread_create(&thread, NULL, produces, &producer));
	while (next < n) {
		struct dapx_evd_resize cmd = {
			.evd = self->evd.handle, .depth = 4U << dice() % 4,
		};

		ASSERT_EQ(0, producer.error);
		for (i = dice() % 8; i && next < n; i--) {
			struct dapx_event event;

			OK(evd_next(&self->evd, &event, PATIENCE_MS));
			ASSERT_EQ(next, event.software.data[0]);
			next++;
		}
		if (_test_cmd_evd_resize(self->a.fd, &cmd)) {
			ASSERT_EQ(EBUSY, errno);
			continue;
		}
		resizes++;
		ring_unmap(ring);
		OK(ring_map(self->a.fd, &cmd.out_ring, ring));
	}
	ASSERT_EQ(0, pthread_join(thread, NULL));
	TH_LOG("%u resizes", resizes);
	EXPECT_LT(0, resizes);
}

/* One producer against one consumer on a small ring. */
TEST_F(evd, order_under_load)
{
	unsigned int n = count(5000, 1000000);
	struct producer producer = { .evd = &self->evd, .count = n };
	struct dapx_event event;
	pthread_t thread;
	__u64 next;

	TH_LOG("%u events", n);
	ASSERT_EQ(0, pthread_create(&thread, NULL, produces, &producer));
	for (next = 0; next < n; next++) {
		OK(evd_next(&self->evd, &event, PATIENCE_MS));
		ASSERT_EQ(next, event.software.data[0]);
	}
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, producer.error);
	OK(evd_quiet(&self->evd));
}

/* An endpoint of @host whose completions of requests go to @evd. */
static int ep_to_evd(struct host *host, const struct evd *evd, struct ep *ep)
{
	struct dapx_ep_create cmd;

	ep_usual(host, &cmd);
	cmd.request_evd = evd->handle;
	return ep_make(host, &cmd, ep);
}

/* Completions that find the ring full wait, and come in order. */
TEST_F(evd, backlog)
{
	unsigned int n = count(10, 1000), round, i;
	struct dapx_event event;
	struct evd small;
	struct ep ep;

	TH_LOG("%u rounds", n);
	OK(evd_make(self->a.fd, 4, 0, &small));
	OK(ep_to_evd(&self->a, &small, &ep));
	OK(connect_cm(&ep, &self->eb));
	for (round = 0; round < n; round++) {
		__u64 deadline = in_ms(PATIENCE_MS);

		for (i = 0; i < 60; i++) {
			struct dapx_sge sge = host_sge(&self->a, 0, 8);
			struct dapx_send_wr wr = {
				.wr_id = i,
				.opcode = DAPX_OP_RDMA_WRITE,
				.num_sge = 1,
				.flags = DAPX_SEND_SIGNALED,
				.remote_addr = (uintptr_t)self->b.mem,
				.rkey = self->b.rkey,
			};

			OK(ep_post_send(&ep, &wr, &sge));
		}
		/* Until the kernel says that it keeps some back. */
		while (!(ring_flags(&small.ring) & DAPX_RING_BACKLOG)) {
			ASSERT_GT(deadline, now_ns());
			sleep_ms(1);
		}
		EXPECT_EQ(4, ring_used(&small.ring));
		/* They have the right of way. */
		test_err(EAGAIN, evd_post, self->a.fd, .evd = small.handle);
		if (round % 2)
			sleep_ms(10);
		for (i = 0; i < 60; i++) {
			OK(evd_next(&small, &event, PATIENCE_MS));
			ASSERT_EQ(DAPX_EVENT_COMPLETION, event.type);
			ASSERT_EQ(DAPX_STATUS_SUCCESS, event.completion.status);
			ASSERT_EQ(i, event.completion.wr_id);
		}
		EXPECT_FALSE(evd_poll(&small, &event));
		EXPECT_EQ(0, ring_flags(&small.ring) & DAPX_RING_BACKLOG);
	}
}

/* An event that finds no room signals as others: it is there, in the kernel. */
TEST_F(evd, armed_with_a_full_ring)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	int fd = new_eventfd(), i;
	struct dapx_event event;
	struct evd small;
	struct ep ep;

	ASSERT_LE(0, fd);
	OK(evd_make(self->a.fd, 2, 0, &small));
	SIGNAL_ONCE(&small, fd);
	OK(ep_to_evd(&self->a, &small, &ep));
	OK(connect_cm(&ep, &self->eb));
	for (i = 0; i < 3; i++) {
		if (i == 2)
			evd_arm(&small);
		OK(ep_recv(&self->eb, i, 0, 8));
		OK(ep_send(&ep, i, 0, 8));
		OK(expect_completion(&self->b.recv, i, DAPX_STATUS_SUCCESS,
				     NULL));
		while (i < 2 && ring_used(&small.ring) <= i) {
			ASSERT_GT(deadline, now_ns());
			sleep_ms(1);
		}
	}
	while (!(ring_flags(&small.ring) & DAPX_RING_BACKLOG)) {
		ASSERT_GT(deadline, now_ns());
		sleep_ms(1);
	}
	/* The flag comes first. */
	while (evd_armed(&small)) {
		ASSERT_GT(deadline, now_ns());
		sleep_ms(1);
	}
	while (!(i = eventfd_count(fd))) {
		ASSERT_GT(deadline, now_ns());
		sleep_ms(1);
	}
	EXPECT_EQ(1, i);
	EXPECT_EQ(2, ring_used(&small.ring));
	/* Moved into the ring it is no new one. */
	evd_arm(&small);
	for (i = 0; i < 3; i++) {
		OK(evd_next(&small, &event, PATIENCE_MS));
		EXPECT_EQ(i, event.completion.wr_id);
	}
	EXPECT_TRUE(evd_armed(&small));
	EXPECT_EQ(0, eventfd_count(fd));
	close(fd);
}

/*
 * Whoever polls looks at the flag only when it finds the ring empty; both ways
 * to get at what waits work, and no event waits with nobody knowing.
 */
TEST_F(evd, backlog_under_load)
{
	unsigned int n = count(3000, 100000), sent = 0, got = 0;
	struct dapx_event event;
	struct evd small;
	struct ep ep;
	__u64 last;

	TH_LOG("%u requests", n);
	OK(evd_make(self->a.fd, 2, 0, &small));
	OK(ep_to_evd(&self->a, &small, &ep));
	OK(connect_cm(&ep, &self->eb));
	last = now_ns();
	while (got < n) {
		while (sent < n && sent - got < EP_DEPTH) {
			struct dapx_sge sge = host_sge(&self->a, 0, 8);
			struct dapx_send_wr wr = {
				.wr_id = sent,
				.opcode = DAPX_OP_RDMA_WRITE,
				.num_sge = 1,
				.flags = DAPX_SEND_SIGNALED,
				.remote_addr = (uintptr_t)self->b.mem,
				.rkey = self->b.rkey,
			};

			if (ep_push_send(&ep, &wr, &sge))
				break;
			OK(ring_bell(self->a.fd, ep.handle, DAPX_DOORBELL_SEND,
				     &ep.send));
			sent++;
		}
		if (!evd_poll(&small, &event)) {
			ASSERT_GT(PATIENCE_MS * 1000000ULL, now_ns() - last)
				TH_LOG("%u sent, %u completed, ring flags %u, send ring flags %u",
				       sent, got, ring_flags(&small.ring),
				       ring_flags(&ep.send));
			continue;
		}
		last = now_ns();
		ASSERT_EQ(DAPX_STATUS_SUCCESS, event.completion.status);
		ASSERT_EQ(got, event.completion.wr_id);
		got++;
	}
	OK(evd_quiet(&small));
}

/* What a freed endpoint had waiting never comes; what is in the ring stays. */
TEST_F(evd, backlog_of_freed_endpoint)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	struct dapx_event event;
	struct evd small;
	unsigned int i;
	struct ep ep;

	OK(evd_make(self->a.fd, 4, 0, &small));
	OK(ep_to_evd(&self->a, &small, &ep));
	OK(connect_cm(&ep, &self->eb));
	for (i = 0; i < 20; i++)
		OK(ep_recv(&self->eb, i, 0, 8));
	for (i = 0; i < 20; i++)
		OK(ep_send(&ep, i, 0, 8));
	for (i = 0; i < 20; i++)
		OK(expect_completion(&self->b.recv, i, DAPX_STATUS_SUCCESS,
				     NULL));
	/* The peer has them all; the last ones may not be acknowledged yet. */
	while (!(ring_flags(&small.ring) & DAPX_RING_BACKLOG)) {
		ASSERT_GT(deadline, now_ns());
		sleep_ms(1);
	}
	OK(ep_destroy(&ep));
	for (i = 0; i < 4; i++) {
		ASSERT_TRUE(evd_poll(&small, &event));
		EXPECT_EQ(i, event.completion.wr_id);
	}
	OK(evd_quiet(&small));
	EXPECT_EQ(0, ring_flags(&small.ring));
	test_cmd(free, self->a.fd, .handle = small.handle);
}

/* ---- indices that cannot be ---- */

/* The EVD is broken, says so, and nothing else is. */
#define BROKEN(victim)							\
	({								\
		struct evd *__evd = (victim);				\
									\
		EXPECT_ERRNO(EBADMSG, wait_events(__evd, 1, 0, NULL));	\
		test_err(EBADMSG, evd_post, __evd->fd,			\
			 .evd = __evd->handle);				\
		test_err(EBADMSG, doorbell, __evd->fd,			\
			 .handle = __evd->handle,			\
			 .flags = DAPX_DOORBELL_EVENTS);		\
		EXPECT_TRUE(ring_flags(&__evd->ring) & DAPX_RING_DEAD);	\
		OK(post(&self->a.recv, 0x99));				\
		OK(take(&self->a.recv, 0x99));				\
	})

TEST_F(evd, head_beyond_tail)
{
	OK(post(&self->evd, 1));
	*self->evd.ring.head += 2;
	BROKEN(&self->evd);
	test_cmd(free, self->a.fd, .handle = self->evd.handle);
}

TEST_F(evd, head_far_behind)
{
	OK(post(&self->evd, 1));
	*self->evd.ring.head -= 8;
	BROKEN(&self->evd);
	test_err(EBADMSG, evd_resize, self->a.fd, .evd = self->evd.handle,
		 .depth = 64);
	test_cmd(free, self->a.fd, .handle = self->evd.handle);
}

/* A head that is put back, but not too far, only shows old events again. */
TEST_F(evd, head_put_back)
{
	OK(post(&self->evd, 1));
	OK(take(&self->evd, 1));
	*self->evd.ring.head -= 1;
	OK(take(&self->evd, 1));
	OK(post(&self->evd, 2));
	OK(take(&self->evd, 2));
}

/* The kernel's own index is not believed from the ring. */
TEST_F(evd, tail_overwritten)
{
	__u32 tail;

	OK(post(&self->evd, 1));
	tail = *self->evd.ring.tail;
	*self->evd.ring.tail = tail + 5;
	OK(post(&self->evd, 2));
	EXPECT_EQ(tail + 1, *self->evd.ring.tail);
	OK(take(&self->evd, 1));
	OK(take(&self->evd, 2));
	*self->evd.ring.flags = ~0U;
	OK(post(&self->evd, 3));
	OK(take(&self->evd, 3));
}

/* Rubbish everywhere, with work going on: the other EVDs have what is theirs. */
TEST_F(evd, rubbish_under_load)
{
	unsigned int n = count(20, 1000), round, i;
	struct evd victim;
	struct ep ep;

	TH_LOG("%u rounds", n);
	for (round = 0; round < n; round++) {
		OK(evd_make(self->a.fd, 8, 0, &victim));
		OK(ep_to_evd(&self->a, &victim, &ep));
		OK(connect_cm(&ep, &self->eb));
		for (i = 0; i < EP_DEPTH; i++) {
			struct dapx_sge sge = host_sge(&self->a, 0, 8);
			struct dapx_send_wr wr = {
				.wr_id = i,
				.opcode = DAPX_OP_RDMA_WRITE,
				.num_sge = 1,
				.flags = DAPX_SEND_SIGNALED,
				.remote_addr = (uintptr_t)self->b.mem,
				.rkey = self->b.rkey,
			};
			__u32 *words = victim.ring.map;

			OK(ep_post_send(&ep, &wr, &sge));
			if (i % 4 == 0)
				*victim.ring.head = dice();
			words[dice() % (victim.ring.map_size / 4)] = dice();
		}
		OK(post(&self->a.recv, 1));
		OK(take(&self->a.recv, 1));
		OK(ep_destroy(&ep));
		test_cmd(free, self->a.fd, .handle = victim.handle);
		ring_unmap(&victim.ring);
		OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));
		test_cmd(ep_reset, self->b.fd, .ep = self->eb.handle);
		evd_drain(&self->b.conn);
	}
	EXPECT_EQ(0, evd_drain(&self->a.done));
}

/* ---- attention: solicited events ---- */

static int send_flagged(struct ep *ep, __u64 wr_id, __u16 flags)
{
	struct dapx_sge sge = host_sge(ep->host, 0, 8);
	struct dapx_send_wr wr = {
		.wr_id = wr_id,
		.opcode = DAPX_OP_SEND,
		.num_sge = 1,
		.flags = DAPX_SEND_SIGNALED | flags,
	};

	return ep_post_send(ep, &wr, &sge);
}

static int wait_solicited(struct evd *evd, __u64 deadline)
{
	struct dapx_evd_wait cmd = {
		.evd = evd->handle, .threshold = 1, .deadline = deadline,
		.flags = DAPX_WAIT_SOLICITED,
	};

	return _test_cmd_evd_wait(evd->fd, &cmd);
}

TEST_F(evd, solicited)
{
	struct dapx_ep_create cmd;
	struct ep ep;
	int i;

	ep_usual(&self->b, &cmd);
	cmd.attr.flags = DAPX_EP_SOLICITED;
	if (!(self->b.limits.out_caps & DAPX_DEVICE_SOLICITED)) {
		EXPECT_ERRNO(EOPNOTSUPP, _test_cmd_ep_create(self->b.fd, &cmd));
		SKIP(return, "%s tells no solicited receives apart",
		     self->b.device);
	}
	OK(ep_make(&self->b, &cmd, &ep));
	OK(connect_cm(&self->ea, &ep));
	for (i = 0; i < 8; i++)
		OK(ep_recv(&ep, i, 0, 8));

	/* Receives that nobody asked attention for do not end the wait. */
	for (i = 0; i < 3; i++) {
		OK(send_flagged(&self->ea, i, 0));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
	}
	EXPECT_ERRNO(ETIMEDOUT, wait_solicited(&self->b.recv,
					       in_ms(GLANCE_MS)));
	OK(send_flagged(&self->ea, 3, DAPX_SEND_SOLICITED));
	EXPECT_EQ(0, wait_solicited(&self->b.recv, in_ms(PATIENCE_MS)));
	/* All of them are there, in order. */
	for (i = 0; i < 4; i++)
		OK(expect_completion(&self->b.recv, i, DAPX_STATUS_SUCCESS,
				     NULL));
	EXPECT_ERRNO(ETIMEDOUT, wait_solicited(&self->b.recv,
					       in_ms(GLANCE_MS)));
	/* Without the flag any will do. */
	OK(send_flagged(&self->ea, 4, 0));
	OK(expect_completion(&self->b.recv, 4, DAPX_STATUS_SUCCESS, NULL));
	/* Failed ones want attention: here by a disconnect. */
	test_cmd(ep_disconnect, self->b.fd, .ep = ep.handle,
		 .flags = DAPX_DISCONNECT_ABRUPT);
	EXPECT_EQ(0, wait_solicited(&self->b.recv, in_ms(PATIENCE_MS)));
	for (i = 5; i < 8; i++)
		OK(expect_completion(&self->b.recv, i, DAPX_STATUS_FLUSHED,
				     NULL));
}

/* Who waits for any event has each receive, also of an endpoint that is made meanwhile. */
TEST_F(evd, solicited_of_a_later_endpoint)
{
	struct waiter waiter = { .evd = &self->b.recv, .threshold = 1,
				 .deadline = in_ms(PATIENCE_MS) };
	struct dapx_ep_create cmd;
	pthread_t thread;
	struct ep ep;

	if (!(self->b.limits.out_caps & DAPX_DEVICE_SOLICITED))
		SKIP(return, "%s tells no solicited receives apart", self->b.device);
	START(&waiter, &thread);
	ep_usual(&self->b, &cmd);
	cmd.attr.flags = DAPX_EP_SOLICITED;
	OK(ep_make(&self->b, &cmd, &ep));
	OK(connect_cm(&self->ea, &ep));
	OK(ep_recv(&ep, 1, 0, 8));
	OK(send_flagged(&self->ea, 1, 0));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, waiter.error);
}

/* What cannot be told apart is wanted: receives of an endpoint without the flag, connections. */
TEST_F(evd, solicited_by_all_others)
{
	struct listener listener;
	struct dapx_event event;
	struct dapx_ep_create cmd;
	struct ep ep;

	ep_usual(&self->b, &cmd);
	cmd.connect_evd = self->b.recv.handle;
	OK(ep_make(&self->b, &cmd, &ep));
	OK(ep_recv(&ep, 1, 0, 8));
	OK(listener_open(&self->b, &listener));
	OK(ep_connect(&self->ea, &listener));
	OK(listener_request(&listener, &event));
	OK(ep_accept(&ep, event.request.cm));
	EXPECT_EQ(0, wait_solicited(&self->b.recv, in_ms(PATIENCE_MS)));
	OK(expect_connection(&self->b.recv, ep.handle, DAPX_CONNECTION_ESTABLISHED, NULL));
	EXPECT_ERRNO(ETIMEDOUT, wait_solicited(&self->b.recv, in_ms(GLANCE_MS)));
	OK(send_flagged(&self->ea, 1, 0));
	EXPECT_EQ(0, wait_solicited(&self->b.recv, in_ms(PATIENCE_MS)));
	OK(expect_completion(&self->b.recv, 1, DAPX_STATUS_SUCCESS, NULL));
}

/* @b's receives, from the first on, are distinguished. */
TEST_F(evd, armed_for_solicited_receives)
{
	struct pollfd wait = { .fd = new_eventfd(), .events = POLLIN };
	struct dapx_ep_create cmd;
	struct dapx_event event;
	struct ep ep;
	int i;

	ASSERT_LE(0, wait.fd);
	if (!(self->b.limits.out_caps & DAPX_DEVICE_SOLICITED))
		SKIP(return, "%s tells no solicited receives apart", self->b.device);
	SIGNAL_ONCE(&self->b.recv, wait.fd);
	evd_arm_for(&self->b.recv, DAPX_ARM_SOLICITED);
	ep_usual(&self->b, &cmd);
	cmd.attr.flags = DAPX_EP_SOLICITED;
	OK(ep_make(&self->b, &cmd, &ep));
	OK(connect_cm(&self->ea, &ep));
	for (i = 0; i < 8; i++)
		OK(ep_recv(&ep, i, 0, 8));

	/* Twice: the second arming is as exact as the first. */
	for (i = 0; i < 6; i++) {
		bool solicited = i % 3 == 2;

		OK(send_flagged(&self->ea, i, solicited ? DAPX_SEND_SOLICITED : 0));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS, NULL));
		ASSERT_EQ(solicited, poll(&wait, 1, solicited ? PATIENCE_MS : GLANCE_MS));
		EXPECT_EQ(solicited, eventfd_count(wait.fd));
		EXPECT_EQ(!solicited, evd_armed(&self->b.recv));
		if (i == 1)
			/* Nor does it signal when it is fetched. */
			OK(expect_completion(&self->b.recv, 0, DAPX_STATUS_SUCCESS, NULL));
		if (i == 2) {
			OK(expect_completion(&self->b.recv, 1, DAPX_STATUS_SUCCESS, NULL));
			OK(expect_completion(&self->b.recv, 2, DAPX_STATUS_SUCCESS, NULL));
			evd_arm_for(&self->b.recv, DAPX_ARM_SOLICITED);
			EXPECT_FALSE(evd_poll(&self->b.recv, &event));
		}
	}
	for (i = 3; i < 6; i++)
		OK(expect_completion(&self->b.recv, i, DAPX_STATUS_SUCCESS, NULL));

	/* For any again. */
	evd_arm(&self->b.recv);
	EXPECT_FALSE(evd_poll(&self->b.recv, &event));
	OK(send_flagged(&self->ea, 6, 0));
	ASSERT_EQ(1, poll(&wait, 1, PATIENCE_MS));
	EXPECT_FALSE(evd_armed(&self->b.recv));
	OK(expect_completion(&self->b.recv, 6, DAPX_STATUS_SUCCESS, NULL));
	close(wait.fd);
}

/* What cannot be told apart counts as solicited. */
TEST_F(evd, armed_for_solicited_and_all_others)
{
	struct pollfd wait = { .fd = new_eventfd(), .events = POLLIN };

	ASSERT_LE(0, wait.fd);
	SIGNAL_ONCE(&self->b.recv, wait.fd);
	OK(connect_cm(&self->ea, &self->eb));
	OK(ep_recv(&self->eb, 1, 0, 8));
	evd_arm_for(&self->b.recv, DAPX_ARM_SOLICITED);
	OK(send_flagged(&self->ea, 1, 0));
	ASSERT_EQ(1, poll(&wait, 1, PATIENCE_MS));
	EXPECT_EQ(1, eventfd_count(wait.fd));
	OK(expect_completion(&self->b.recv, 1, DAPX_STATUS_SUCCESS, NULL));

	evd_arm_for(&self->b.recv, DAPX_ARM_SOLICITED);
	OK(post(&self->b.recv, 2));
	EXPECT_EQ(1, eventfd_count(wait.fd));
	OK(take(&self->b.recv, 2));
	close(wait.fd);
}

/* A request that succeeded does not count, one that failed does. */
TEST_F(evd, armed_for_failures)
{
	struct pollfd wait = { .fd = new_eventfd(), .events = POLLIN };

	ASSERT_LE(0, wait.fd);
	SIGNAL_ONCE(&self->a.done, wait.fd);
	OK(connect_cm(&self->ea, &self->eb));
	OK(ep_recv(&self->eb, 1, 0, 8));
	evd_arm_for(&self->a.done, DAPX_ARM_SOLICITED);
	OK(send_flagged(&self->ea, 1, DAPX_SEND_SOLICITED));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_EQ(0, eventfd_count(wait.fd));
	EXPECT_TRUE(evd_armed(&self->a.done));
	test_cmd(ep_disconnect, self->a.fd, .ep = self->ea.handle,
		 .flags = DAPX_DISCONNECT_ABRUPT);
	OK(send_flagged(&self->ea, 2, 0));
	ASSERT_EQ(1, poll(&wait, 1, PATIENCE_MS));
	OK(expect_completion(&self->a.done, 2, DAPX_STATUS_FLUSHED, NULL));
	close(wait.fd);
}

/* ---- quiet events ---- */

/* Waits until @count events are in the ring, without asking the kernel. */
static int await_events(const struct evd *evd, __u32 count)
{
	__u64 deadline = in_ms(PATIENCE_MS);

	while (ring_used(&evd->ring) < count) {
		if (now_ns() > deadline)
			return because("%u events instead of %u", ring_used(&evd->ring), count);
		sleep_ms(1);
	}
	return 0;
}

TEST_F(evd, quiet_requests)
{
	struct waiter waiter = { .evd = &self->a.done, .threshold = 1,
				 .deadline = DAPX_NO_DEADLINE };
	int fd = new_eventfd(), i;
	pthread_t thread;
	__u32 events;

	ASSERT_LE(0, fd);
	OK(connect_cm(&self->ea, &self->eb));
	for (i = 0; i < 4; i++)
		OK(ep_recv(&self->eb, i, 0, 8));
	test_cmd(evd_eventfd, self->a.fd, .evd = self->a.done.handle, .fd = fd);

	/* It ends no wait: neither one that it meets, nor one that begins later. */
	START(&waiter, &thread);
	OK(send_flagged(&self->ea, 0, DAPX_SEND_QUIET));
	OK(await_events(&self->a.done, 1));
	EXPECT_ERRNO(ETIMEDOUT, wait_events(&self->a.done, 1, in_ms(GLANCE_MS), &events));
	EXPECT_EQ(1, events);
	EXPECT_ERRNO(ETIMEDOUT, wait_solicited(&self->a.done, 0));
	EXPECT_FALSE(has(&waiter.ended));
	EXPECT_EQ(0, eventfd_count(fd));

	/* The next one that is not quiet brings it along. */
	OK(send_flagged(&self->ea, 1, 0));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, waiter.error);
	EXPECT_EQ(2, waiter.events);
	EXPECT_EQ(0, wait_events(&self->a.done, 2, 0, NULL));
	EXPECT_EQ(1, eventfd_count(fd));

	/* Armed, the ring stays so. */
	SIGNAL_ONCE(&self->a.done, fd);
	evd_arm(&self->a.done);
	OK(send_flagged(&self->ea, 2, DAPX_SEND_QUIET));
	OK(await_events(&self->a.done, 3));
	EXPECT_TRUE(evd_armed(&self->a.done));
	OK(send_flagged(&self->ea, 3, 0));
	OK(await_events(&self->a.done, 4));
	EXPECT_EQ(0, wait_events(&self->a.done, 4, 0, NULL));
	EXPECT_EQ(1, eventfd_count(fd));
	for (i = 0; i < 4; i++)
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS, NULL));
	close(fd);
}

TEST_F(evd, quiet_failures_wake)
{
	int fd = new_eventfd();

	ASSERT_LE(0, fd);
	OK(connect_cm(&self->ea, &self->eb));
	test_cmd(ep_disconnect, self->a.fd, .ep = self->ea.handle,
		 .flags = DAPX_DISCONNECT_ABRUPT);
	test_cmd(evd_eventfd, self->a.fd, .evd = self->a.done.handle, .fd = fd);
	OK(send_flagged(&self->ea, 1, DAPX_SEND_QUIET));
	EXPECT_EQ(0, wait_events(&self->a.done, 1, in_ms(PATIENCE_MS), NULL));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_FLUSHED, NULL));
	EXPECT_EQ(1, eventfd_count(fd));
	close(fd);
}

TEST_F(evd, quiet_receives)
{
	struct dapx_sge sge = host_sge(&self->b, 0, 8);
	struct dapx_recv_wr wr = { .num_sge = 1 };
	int i;

	OK(connect_cm(&self->ea, &self->eb));
	for (i = 0; i < 3; i++) {
		wr.wr_id = i;
		wr.flags = i == 2 ? 0 : DAPX_RECV_QUIET;
		OK(ep_post_recv(&self->eb, &wr, &sge));
	}
	for (i = 0; i < 2; i++)
		OK(send_flagged(&self->ea, i, 0));
	OK(await_events(&self->b.recv, 2));
	EXPECT_ERRNO(ETIMEDOUT, wait_events(&self->b.recv, 1, in_ms(GLANCE_MS), NULL));
	OK(send_flagged(&self->ea, 2, 0));
	EXPECT_EQ(0, wait_events(&self->b.recv, 3, in_ms(PATIENCE_MS), NULL));
	for (i = 0; i < 3; i++)
		OK(expect_completion(&self->b.recv, i, DAPX_STATUS_SUCCESS, NULL));
}

TEST_F(evd, quiet_binds)
{
	__u32 rmr = test_cmd(rmr_create, self->a.fd, .pd = self->a.pd).out_rmr;
	int i;

	OK(connect_cm(&self->ea, &self->eb));
	for (i = 0; i < 2; i++) {
		test_cmd(rmr_bind, self->a.fd, .rmr = rmr, .ep = self->ea.handle,
			 .flags = DAPX_BIND_SIGNALED | (i ? 0 : DAPX_BIND_QUIET), .wr_id = i,
			 .mr = self->a.mr, .addr = (uintptr_t)self->a.mem, .length = 64,
			 .access = DAPX_ACCESS_REMOTE_READ);
		OK(await_events(&self->a.done, i + 1));
		if (!i)
			EXPECT_ERRNO(ETIMEDOUT, wait_events(&self->a.done, 1, 0, NULL));
	}
	EXPECT_EQ(0, wait_events(&self->a.done, 2, 0, NULL));
	for (i = 0; i < 2; i++)
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS, NULL));
}

/* A ring full of quiet events does not hide one that waits for room. */
TEST_F(evd, quiet_in_a_full_ring)
{
	struct evd small;
	struct ep ep;
	int i;

	OK(evd_make(self->a.fd, 2, 0, &small));
	OK(ep_to_evd(&self->a, &small, &ep));
	OK(connect_cm(&ep, &self->eb));
	for (i = 0; i < 4; i++)
		OK(ep_recv(&self->eb, i, 0, 8));
	for (i = 0; i < 3; i++)
		OK(send_flagged(&ep, i, DAPX_SEND_QUIET));
	OK(await_events(&small, 2));
	EXPECT_ERRNO(ETIMEDOUT, wait_events(&small, 1, in_ms(GLANCE_MS), NULL));
	OK(send_flagged(&ep, 3, 0));
	EXPECT_EQ(0, wait_events(&small, 2, in_ms(PATIENCE_MS), NULL));
	EXPECT_EQ(0, wait_solicited(&small, in_ms(PATIENCE_MS)));
	for (i = 0; i < 4; i++)
		OK(expect_completion(&small, i, DAPX_STATUS_SUCCESS, NULL));
}

/* ---- asynchronous events ---- */

FIXTURE(async)
{
	struct host host;
	struct evd all;
	struct evd none;
};

#define NETDEV "dapxt0"
#define RDMADEV "dapxt"

FIXTURE_SETUP(async)
{
	static char device[] = RDMADEV;

	run("modprobe dummy numdummies=0");
	run("rdma link delete " RDMADEV);
	run("ip link delete " NETDEV);
	if (run("ip link add " NETDEV " type dummy"))
		SKIP(return, "no dummy network device: %s", why());
	ASSERT_EQ(0, run("ip link set " NETDEV " up"));
	ASSERT_EQ(0, run("rdma link add " RDMADEV " type %s netdev " NETDEV,
			 on_siw() ? "siw" : "rxe")) TH_LOG("%s", why());
	OK(host_open(&self->host, 0));
	self->host.device = device;
	OK(host_attach(&self->host));
	OK(evd_make(self->host.fd, 8, DAPX_EVD_ASYNC, &self->all));
	OK(evd_make(self->host.fd, 8, 0, &self->none));
}

FIXTURE_TEARDOWN(async)
{
	host_close(&self->host);
	run("rdma link delete " RDMADEV);
	run("ip link delete " NETDEV);
}

TEST_F(async, port)
{
	struct dapx_event event;

	OK(evd_quiet(&self->all));
	ASSERT_EQ(0, run("ip link set " NETDEV " down"));
	OK(expect_async(&self->all, DAPX_ASYNC_PORT_ERROR, &event));
	EXPECT_EQ(1, event.async.port);
	ASSERT_EQ(0, run("ip link set " NETDEV " up"));
	OK(expect_async(&self->all, DAPX_ASYNC_PORT_ACTIVE, &event));
	EXPECT_EQ(1, event.async.port);
	/* Who did not ask is not told. */
	OK(evd_quiet(&self->none));
}

TEST_HARNESS_MAIN
