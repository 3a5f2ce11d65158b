// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "dapx_utils.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define POISON 0xa5

/* ---- failure ---- */

static __thread char why_text[1536] = "no reason was noted";

const char *why(void)
{
	return why_text;
}

int because(const char *format, ...)
{
	int error = errno;
	va_list args;

	va_start(args, format);
	vsnprintf(why_text, sizeof(why_text), format, args);
	va_end(args);
	errno = error;
	return -1;
}

/* ---- counts, time, files ---- */

unsigned int count(unsigned int usual, unsigned int full)
{
	const char *scale = getenv("DAPX_SCALE");
	double scaled;

	if (!scale || !*scale)
		return usual;
	if (!strcmp(scale, "full"))
		return full;
	scaled = usual * atof(scale);
	return scaled < 1 ? 1 : scaled;
}

bool in_virtual_time(void)
{
	const char *time = getenv("DAPX_TIME");

	return time && !strcmp(time, "virtual");
}

unsigned int patience_ms(void)
{
	const char *time = getenv("DAPX_TIME");

	if (!time || !strcmp(time, "real"))
		return 120000;
	return on_debug_kernel() ? 60000 : 15000;
}

__u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

__u64 in_ms(unsigned int ms)
{
	return now_ns() + ms * 1000000ULL;
}

void sleep_ms(unsigned int ms)
{
	struct timespec span = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&span, &span) && errno == EINTR)
		;
}

static void *moment_thread(void *arg)
{
	const struct moment *moment = arg;

	usleep(dice() % moment->longest_us);
	moment->act(moment->arg);
	return NULL;
}

int moment_start(struct moment *moment)
{
	int error = pthread_create(&moment->thread, NULL, moment_thread, moment);

	return error ? because("pthread_create: %s", strerror(error)) : 0;
}

void moment_await(struct moment *moment)
{
	pthread_join(moment->thread, NULL);
}

void moment_fell(struct moment *moment, bool too_late)
{
	unsigned int us = moment->longest_us;

	if (too_late)
		moment->longest_us = us > 1 ? us / 2 : 1;
	else if (us < 16 * 1000)
		moment->longest_us = us + us / 4 + 1;
}

int await_asleep(const pid_t *tid, unsigned long request)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	char path[64];

	for (;;) {
		pid_t id = __atomic_load_n(tid, __ATOMIC_ACQUIRE);
		unsigned long number, argument;
		const char *line = NULL;

		if (id) {
			snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", id);
			line = read_line(path);
		}
		/* Of one that sleeps: the number of the call and its arguments. */
		if (line && sscanf(line, "%lu %*x %lx", &number, &argument) == 2 &&
		    number == SYS_ioctl && argument == request)
			return 0;
		if (now_ns() > deadline) {
			errno = ETIMEDOUT;
			return because("the thread does not wait in its command: %s",
				       line ?: "it is not there");
		}
		sleep_ms(1);
	}
}

void spin(unsigned int turns)
{
	while (turns--)
		__asm__ volatile("" : : : "memory");
}

static __u64 seed;
static unsigned int dice_threads;
static __thread __u64 dice_state;
static __thread __u32 next_seed;

static void before_fork(void)
{
	next_seed = dice();
}

/* Or the threads of each child would have the same dice_threads. */
static void in_child(void)
{
	seed = next_seed;
	dice_threads = 0;
	dice_state = 0;
}

static void choose_seed(void)
{
	const char *text = getenv("DAPX_SEED");

	seed = text && *text ? strtoull(text, NULL, 0) : now_ns() / 1000 % 1000000000;
	printf("# DAPX_SEED=%llu\n", (unsigned long long)seed);
	pthread_atfork(before_fork, NULL, in_child);
}

__u32 dice(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (!dice_state) {
		pthread_once(&once, choose_seed);
		dice_state = (seed << 32) + __atomic_fetch_add(&dice_threads, 1, __ATOMIC_RELAXED);
		dice_state = dice_state * 0x9e3779b97f4a7c15 | 1;
	}
	dice_state ^= dice_state << 13;
	dice_state ^= dice_state >> 7;
	dice_state ^= dice_state << 17;
	return dice_state >> 16;
}

bool on_siw(void)
{
	const char *rdma = getenv("RDMA");

	return rdma && !strcmp(rdma, "siw");
}

bool on_debug_kernel(void)
{
	const char *kernel = getenv("DAPX_KERNEL");

	return kernel && !strcmp(kernel, "debug");
}

const char *read_line(const char *path)
{
	static char line[256];
	ssize_t got;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	got = read(fd, line, sizeof(line) - 1);
	close(fd);
	if (got < 0)
		return NULL;
	line[got] = 0;
	line[strcspn(line, "\n")] = 0;
	return line;
}

int write_line(const char *path, const char *text)
{
	ssize_t put;
	int fd;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return because("open %s: %m", path);
	put = write(fd, text, strlen(text));
	close(fd);
	if (put != (ssize_t)strlen(text))
		return because("write %s to %s: %m", text, path);
	return 0;
}

long module_parameter(const char *name)
{
	char path[128];
	const char *line;

	snprintf(path, sizeof(path), "/sys/module/dapx/parameters/%s", name);
	line = read_line(path);
	return line ? strtol(line, NULL, 0) : -1;
}

int set_module_parameter(const char *name, long value)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "/sys/module/dapx/parameters/%s", name);
	snprintf(text, sizeof(text), "%ld", value);
	return write_line(path, text);
}

int run(const char *format, ...)
{
	char command[512];
	va_list args;
	int status;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	strncat(command, " >/dev/null 2>&1",
		sizeof(command) - strlen(command) - 1);
	status = system(command);
	if (status)
		because("'%s' ended with %d", command, status);
	return status;
}

int cgroup_make(const char *controllers)
{
	mkdir(CGROUP, 0755);
	if (access(CGROUP "/cgroup.procs", F_OK) &&
	    mount("none", CGROUP, "cgroup2", 0, NULL))
		return because("mount of cgroup2: %m");
	if (write_line(CGROUP "/cgroup.subtree_control", controllers))
		return -1;
	mkdir(CGROUP "/dapx", 0755);
	return 0;
}

int cgroup_enter(const char *controllers)
{
	char text[64];

	if (cgroup_make(controllers))
		return -1;
	snprintf(text, sizeof(text), "%d", getpid());
	return write_line(CGROUP "/dapx/cgroup.procs", text);
}

void cgroup_leave(const char *device)
{
	char text[128];

	/*
	 * The kernel forgets a pool that has a limit when its cgroup goes, and
	 * stumbles over it when the device goes.
	 */
	snprintf(text, sizeof(text), "%s hca_object=max", device);
	if (!access(CGROUP "/dapx/rdma.max", F_OK))
		write_line(CGROUP "/dapx/rdma.max", text);
	snprintf(text, sizeof(text), "%d", getpid());
	write_line(CGROUP "/cgroup.procs", text);
	rmdir(CGROUP "/dapx");
}

long pinned_pages(void)
{
	unsigned long acquired = 0, released = 0;
	char line[128];
	FILE *file;

	write_line("/proc/sys/vm/stat_refresh", "1");
	file = fopen("/proc/vmstat", "r");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "nr_foll_pin_acquired %lu", &acquired) != 1 &&
		    sscanf(line, "nr_foll_pin_released %lu", &released) == 1)
			break;
	}
	if (file)
		fclose(file);
	return acquired - released;
}

/* ---- commands ---- */

struct span {
	__u16 offset;
	__u16 size;
};

#define OUT(name, member)						\
	{ offsetof(struct dapx_##name, member),				\
	  sizeof_member(struct dapx_##name, member) }

static const struct span outs_info[] = {
	OUT(info, out_features),
	OUT(info, out_max_objects),
	OUT(info, out_max_user_objects),
	OUT(info, out_max_ring_depth),
	OUT(info, out_max_sge),
	OUT(info, out_max_inline),
	OUT(info, out_max_backlog),
	{}
};

static const struct span outs_attach[] = { {} };

static const struct span outs_query_device[] = {
	OUT(query_device, out_device),
	OUT(query_device, out_caps),
	OUT(query_device, out_node_guid),
	OUT(query_device, out_max_mr_size),
	OUT(query_device, out_max_ep),
	OUT(query_device, out_max_send_depth),
	OUT(query_device, out_max_recv_depth),
	OUT(query_device, out_max_srq_depth),
	OUT(query_device, out_max_send_sge),
	OUT(query_device, out_max_recv_sge),
	OUT(query_device, out_max_inline),
	OUT(query_device, out_max_rd_atomic),
	OUT(query_device, out_max_dest_rd_atomic),
	OUT(query_device, out_max_msg_size),
	OUT(query_device, out_ports),
	OUT(query_device, out_max_connect_data),
	OUT(query_device, out_max_accept_data),
	OUT(query_device, out_max_reject_data),
	OUT(query_device, out_active_mtu),
	{}
};

static const struct span outs_query_object[] = {
	OUT(query_object, out_handle),
	OUT(query_object, out_type),
	OUT(query_object, out_users),
	OUT(query_object, out_state),
	OUT(query_object, out_user_data),
	{}
};

static const struct span outs_free[] = { {} };
static const struct span outs_doorbell[] = { {} };
static const struct span outs_pd_create[] = { OUT(pd_create, out_pd), {} };

static const struct span outs_mr_create[] = {
	OUT(mr_create, out_mr),
	OUT(mr_create, out_rkey),
	{}
};

static const struct span outs_mr_modify[] = { {} };

static const struct span outs_rmr_create[] = {
	OUT(rmr_create, out_rmr),
	{}
};

static const struct span outs_rmr_bind[] = {
	OUT(rmr_bind, out_rkey),
	{}
};

static const struct span outs_rmr_query[] = {
	OUT(rmr_query, out_pd),
	OUT(rmr_query, out_mr),
	OUT(rmr_query, out_addr),
	OUT(rmr_query, out_length),
	OUT(rmr_query, out_access),
	OUT(rmr_query, out_rkey),
	{}
};

static const struct span outs_xrcd_open[] = {
	OUT(xrcd_open, out_xrcd),
	{}
};

static const struct span outs_evd_create[] = {
	OUT(evd_create, out_evd),
	OUT(evd_create, out_ring),
	{}
};

static const struct span outs_evd_wait[] = { OUT(evd_wait, out_events), {} };
static const struct span outs_evd_resize[] = { OUT(evd_resize, out_ring), {} };
static const struct span outs_evd_eventfd[] = { {} };
static const struct span outs_evd_post[] = { {} };

static const struct span outs_srq_create[] = {
	OUT(srq_create, out_srq),
	OUT(srq_create, out_srq_num),
	OUT(srq_create, out_ring),
	{}
};

static const struct span outs_ep_create[] = {
	OUT(ep_create, out_ep),
	OUT(ep_create, out_qp_num),
	OUT(ep_create, out_state_off),
	OUT(ep_create, out_send_ring),
	OUT(ep_create, out_recv_ring),
	{}
};

static const struct span outs_ep_query[] = {
	OUT(ep_query, out_state),
	OUT(ep_query, out_pd),
	OUT(ep_query, out_srq),
	OUT(ep_query, out_request_evd),
	OUT(ep_query, out_recv_evd),
	OUT(ep_query, out_connect_evd),
	OUT(ep_query, out_async_evd),
	OUT(ep_query, out_cm),
	OUT(ep_query, out_user_data),
	OUT(ep_query, out_attr),
	OUT(ep_query, out_qp_num),
	OUT(ep_query, out_remote_qp_num),
	OUT(ep_query, out_requests),
	OUT(ep_query, out_receives),
	OUT(ep_query, out_state_off),
	OUT(ep_query, out_private_data_len),
	OUT(ep_query, out_private_data),
	OUT(ep_query, out_local),
	OUT(ep_query, out_remote),
	OUT(ep_query, out_send_ring),
	OUT(ep_query, out_recv_ring),
	OUT(ep_query, out_reject_reason),
	OUT(ep_query, out_rd_atomic),
	OUT(ep_query, out_dest_rd_atomic),
	{}
};

static const struct span outs_ep_modify[] = { {} };
static const struct span outs_ep_connect[] = { {} };
static const struct span outs_ep_accept[] = { {} };
static const struct span outs_ep_disconnect[] = { {} };
static const struct span outs_ep_reset[] = { OUT(ep_reset, out_qp_num), {} };
static const struct span outs_cm_create[] = { OUT(cm_create, out_cm), {} };
static const struct span outs_cm_bind[] = { {} };
static const struct span outs_cm_listen[] = { {} };
static const struct span outs_cm_resolve[] = { {} };

static const struct span outs_cm_query[] = {
	OUT(cm_query, out_state),
	OUT(cm_query, out_ep),
	OUT(cm_query, out_evd),
	OUT(cm_query, out_requests),
	OUT(cm_query, out_unacked),
	OUT(cm_query, out_user_data),
	OUT(cm_query, out_listener),
	OUT(cm_query, out_private_data_len),
	OUT(cm_query, out_private_data),
	OUT(cm_query, out_xrc),
	OUT(cm_query, out_local),
	OUT(cm_query, out_remote),
	OUT(cm_query, out_remote_qp_num),
	OUT(cm_query, out_srq),
	OUT(cm_query, out_responder_resources),
	OUT(cm_query, out_initiator_depth),
	OUT(cm_query, out_retry_count),
	OUT(cm_query, out_rnr_retry_count),
	OUT(cm_query, out_port),
	{}
};

static const struct span outs_cm_reject[] = { {} };
static const struct span outs_cm_ack[] = { {} };
static const struct span outs_cm_take[] = { {} };

static const struct span outs_srq_query[] = {
	OUT(srq_query, out_pd),
	OUT(srq_query, out_xrcd),
	OUT(srq_query, out_evd),
	OUT(srq_query, out_srq_num),
	OUT(srq_query, out_depth),
	OUT(srq_query, out_max_sge),
	OUT(srq_query, out_limit),
	OUT(srq_query, out_async_evd),
	{}
};

static const struct span outs_xrc_qp_create[] = {
	OUT(xrc_qp_create, out_xrc_qp),
	OUT(xrc_qp_create, out_qp_num),
	{}
};

static const struct span outs_xrc_qp_query[] = {
	OUT(xrc_qp_query, out_xrc_qp),
	OUT(xrc_qp_query, out_registrations),
	OUT(xrc_qp_query, out_messages),
	OUT(xrc_qp_query, out_not_ready),
	OUT(xrc_qp_query, out_qp),
	{}
};

static const struct span outs_srq_modify[] = { {} };
static const struct span outs_xrc_qp_register[] = {
	OUT(xrc_qp_register, out_xrc_qp),
	{}
};

static const struct span outs_xrc_qp_unregister[] = { {} };
static const struct span outs_xrc_qp_modify[] = { {} };
static const struct span outs_xrc_qp_accept[] = { {} };

struct command {
	unsigned int request;
	const char *name;
	size_t size;
	const struct span *outs;
};

static const struct command commands[] = {
#define DAPX_COMMAND(lower, upper)					\
	{ DAPX_##upper, #upper, sizeof(struct dapx_##lower), outs_##lower },
#include "dapx_commands.h"
#undef DAPX_COMMAND
};

static const struct command *find_command(unsigned int request)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (commands[i].request == request)
			return &commands[i];
	abort();
}

/* What the ABI forbids in every call: it fails as no call does. */
static int break_test(const struct command *command, const char *what,
		      size_t offset)
{
	fprintf(stderr, "# DAPX_%s: %s at offset %zu\n", command->name, what,
		offset);
	errno = EPROTO;
	return -1;
}

static bool all_poison(const __u8 *bytes, size_t size)
{
	while (size--)
		if (*bytes++ != POISON)
			return false;
	return true;
}

int dapx_ioctl(int fd, unsigned int request, void *arg)
{
	const struct command *command = find_command(request);
	__u8 before[1024], after[1024];
	const struct span *out;
	int ret, error;
	size_t i;

	if (command->size > sizeof(before))
		abort();
	for (out = command->outs; out->size; out++)
		memset((__u8 *)arg + out->offset, POISON, out->size);
	memcpy(before, arg, command->size);
	ret = ioctl(fd, request, arg);
	error = errno;
	if (ret > 0)
		return break_test(command, "positive return value", ret);

	memcpy(after, arg, command->size);
	for (out = command->outs; out->size; out++) {
		bool kept = all_poison(after + out->offset, out->size);
		bool waited = request == DAPX_EVD_WAIT &&
			      (error == ETIMEDOUT || error == EINTR);

		if ((!ret || waited) && kept)
			return break_test(command, "output not written",
					  out->offset);
		if (!ret || waited)
			memset(after + out->offset, POISON, out->size);
	}
	for (i = 0; i < command->size; i++)
		if (before[i] != after[i])
			return break_test(command,
					  ret ? "a failed call wrote" :
						"an input was written", i);
	errno = error;
	return ret;
}

/* ---- rings ---- */

int ring_map(int fd, const struct dapx_ring_layout *layout, struct ring *ring)
{
	__u8 *map;

	memset(ring, 0, sizeof(*ring));
	if (!layout->depth)
		return 0;
	map = mmap(NULL, layout->mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		   fd, layout->mmap_offset);
	if (map == MAP_FAILED)
		return because("mmap of a ring: %m");
	ring->map = map;
	ring->map_size = layout->mmap_size;
	ring->head = (__u32 *)(map + layout->head_off);
	ring->tail = (__u32 *)(map + layout->tail_off);
	ring->flags = (__u32 *)(map + layout->flags_off);
	ring->armed = layout->arm_off ? (__u32 *)(map + layout->arm_off) : NULL;
	ring->entries = map + layout->entries_off;
	ring->stride = layout->stride;
	ring->depth = layout->depth;
	return 0;
}

void ring_unmap(struct ring *ring)
{
	if (ring->map)
		munmap(ring->map, ring->map_size);
	memset(ring, 0, sizeof(*ring));
}

__u32 ring_flags(const struct ring *ring)
{
	return __atomic_load_n(ring->flags, __ATOMIC_ACQUIRE);
}

__u32 ring_used(const struct ring *ring)
{
	return __atomic_load_n(ring->tail, __ATOMIC_ACQUIRE) -
	       __atomic_load_n(ring->head, __ATOMIC_ACQUIRE);
}

void *ring_entry(const struct ring *ring, __u32 index)
{
	return ring->entries + (size_t)(index % ring->depth) * ring->stride;
}

int ring_push(struct ring *ring, const void *entry, size_t size)
{
	__u32 tail = __atomic_load_n(ring->tail, __ATOMIC_RELAXED);

	if (size > ring->stride) {
		errno = EINVAL;
		return because("an entry of %zu bytes in a stride of %u", size,
			       ring->stride);
	}
	/* Acquire: the kernel has read the entry that is overwritten. */
	if (tail - __atomic_load_n(ring->head, __ATOMIC_ACQUIRE) >= ring->depth) {
		errno = EAGAIN;
		return because("the ring is full");
	}
	memcpy(ring_entry(ring, tail), entry, size);
	/* Release: whoever sees the index sees the entry. */
	__atomic_store_n(ring->tail, tail + 1, __ATOMIC_RELEASE);
	return 0;
}

int ring_bell(int fd, __u32 handle, __u32 flag, const struct ring *ring)
{
	struct dapx_doorbell bell = { .flags = flag, .handle = handle };

	/* Full: the tail is out before the flag is read. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (ring_flags(ring) & DAPX_RING_BUSY)
		return 0;
	if (_test_cmd_doorbell(fd, &bell))
		return because("DAPX_DOORBELL: %m");
	return 0;
}

/* ---- event dispatchers ---- */

int evd_make(int fd, __u32 depth, __u32 flags, struct evd *evd)
{
	struct dapx_evd_create cmd = { .depth = depth, .flags = flags };

	if (_test_cmd_evd_create(fd, &cmd))
		return because("DAPX_EVD_CREATE: %m");
	evd->fd = fd;
	evd->handle = cmd.out_evd;
	return ring_map(fd, &cmd.out_ring, &evd->ring);
}

bool evd_poll(struct evd *evd, struct dapx_event *event)
{
	struct ring *ring = &evd->ring;
	__u32 head = __atomic_load_n(ring->head, __ATOMIC_RELAXED);

	if (head == __atomic_load_n(ring->tail, __ATOMIC_ACQUIRE)) {
		struct dapx_doorbell bell = {
			.flags = DAPX_DOORBELL_EVENTS, .handle = evd->handle,
		};

		/* Full: the head is out before the flag is read. */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!(ring_flags(ring) & DAPX_RING_BACKLOG) ||
		    _test_cmd_doorbell(evd->fd, &bell) ||
		    head == __atomic_load_n(ring->tail, __ATOMIC_ACQUIRE))
			return false;
	}
	memcpy(event, ring_entry(ring, head), sizeof(*event));
	/* Release: the entry has been read. */
	__atomic_store_n(ring->head, head + 1, __ATOMIC_RELEASE);
	return true;
}

int evd_next(struct evd *evd, struct dapx_event *event, unsigned int ms)
{
	struct dapx_evd_wait wait = {
		.evd = evd->handle, .threshold = 1, .deadline = in_ms(ms),
	};
	unsigned int tries;

	for (tries = 0; tries < 1000; tries++) {
		if (evd_poll(evd, event))
			return 0;
		if (_test_cmd_evd_wait(evd->fd, &wait))
			return because("DAPX_EVD_WAIT: %m");
	}
	errno = EPROTO;
	return because("DAPX_EVD_WAIT tells of %u events, the ring is empty",
		       wait.out_events);
}

void evd_arm(struct evd *evd)
{
	__atomic_store_n(evd->ring.armed, 1, __ATOMIC_RELAXED);
	/* Full: it is armed before the ring is looked at. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool evd_armed(const struct evd *evd)
{
	return __atomic_load_n(evd->ring.armed, __ATOMIC_RELAXED);
}

static const char *event_text(const struct dapx_event *event)
{
	static __thread char text[160];

	switch (event->type) {
	case DAPX_EVENT_COMPLETION:
		snprintf(text, sizeof(text),
			 "completion of 0x%llx, status %u, opcode %u, %u bytes, ep %u",
			 event->completion.wr_id, event->completion.status,
			 event->completion.opcode, event->completion.byte_len,
			 event->handle);
		break;
	case DAPX_EVENT_CONNECTION:
	case DAPX_EVENT_CM:
		snprintf(text, sizeof(text), "%s event %u, error %d, handle %u",
			 event->type == DAPX_EVENT_CM ? "CM" : "connection",
			 event->connection.what, event->connection.error,
			 event->handle);
		break;
	default:
		snprintf(text, sizeof(text), "event of type %u, handle %u, %u",
			 event->type, event->handle, event->async.what);
	}
	return text;
}

int evd_quiet(struct evd *evd)
{
	struct dapx_event event;

	if (evd_next(evd, &event, GLANCE_MS))
		return errno == ETIMEDOUT ? 0 : -1;
	return because("unexpected %s", event_text(&event));
}

unsigned int evd_drain(struct evd *evd)
{
	struct dapx_event event;
	unsigned int drained = 0;

	while (evd_poll(evd, &event))
		drained++;
	return drained;
}

static int expect(struct evd *evd, __u32 type, __u32 handle, __u32 what,
		  const char *text, struct dapx_event *event)
{
	struct dapx_event own;

	if (!event)
		event = &own;
	if (evd_next(evd, event, PATIENCE_MS))
		return because("%s %u of handle %u did not come: %m", text,
			       what, handle);
	errno = EPROTO;
	if (event->type != type || (handle && event->handle != handle))
		return because("%s instead of %s %u of handle %u",
			       event_text(event), text, what, handle);
	/* Both unions begin with the same member. */
	if (type != DAPX_EVENT_COMPLETION &&
	    type != DAPX_EVENT_CONNECT_REQUEST && event->cm.what != what)
		return because("%s instead of %s %u", event_text(event), text,
			       what);
	return 0;
}

int expect_completion(struct evd *evd, __u64 wr_id, __u32 status,
		      struct dapx_event *event)
{
	struct dapx_event own;

	if (!event)
		event = &own;
	if (expect(evd, DAPX_EVENT_COMPLETION, 0, status, "completion", event))
		return -1;
	if (event->completion.wr_id != wr_id ||
	    event->completion.status != status)
		return because("%s instead of 0x%llx with status %u",
			       event_text(event), wr_id, status);
	return 0;
}

int expect_connection(struct evd *evd, __u32 ep, __u32 what,
		      struct dapx_event *event)
{
	return expect(evd, DAPX_EVENT_CONNECTION, ep, what, "connection event",
		      event);
}

int expect_request(struct evd *evd, __u32 listener, struct dapx_event *event)
{
	return expect(evd, DAPX_EVENT_CONNECT_REQUEST, listener, 0,
		      "connection request", event);
}

int expect_cm(struct evd *evd, __u32 cm, __u32 what, struct dapx_event *event)
{
	return expect(evd, DAPX_EVENT_CM, cm, what, "CM event", event);
}

int expect_async(struct evd *evd, __u32 what, struct dapx_event *event)
{
	return expect(evd, DAPX_EVENT_ASYNC, 0, what, "asynchronous event",
		      event);
}

/* ---- hosts ---- */

static const char *setting(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

int host_open(struct host *host, unsigned int number)
{
	memset(host, 0, sizeof(*host));
	host->number = number;
	if (number) {
		host->device = setting("DAPX_PEER_DEV", "rxe1");
		host->addr = setting("DAPX_PEER_IP", "10.0.0.2");
		host->addr6 = setting("DAPX_PEER_IP6", "fd00:d::2");
	} else {
		host->device = setting("DAPX_DEV", "rxe0");
		host->addr = setting("DAPX_IP", "10.0.0.1");
		host->addr6 = setting("DAPX_IP6", "fd00:d::1");
	}
	host->fd = open(DAPX_NODE, O_RDWR | O_CLOEXEC);
	if (host->fd < 0)
		return because(DAPX_NODE ": %m");
	return 0;
}

int host_attach(struct host *host)
{
	struct dapx_attach attach = {};

	snprintf(attach.device, sizeof(attach.device), "%s", host->device);
	if (_test_cmd_attach(host->fd, &attach))
		return because("DAPX_ATTACH to %s: %m", host->device);
	if (_test_cmd_query_device(host->fd, &host->limits))
		return because("DAPX_QUERY_DEVICE of %s: %m", host->device);
	host->sge = EP_SGE;
	if (host->limits.out_max_send_sge < host->sge)
		host->sge = host->limits.out_max_send_sge;
	if (host->limits.out_max_recv_sge < host->sge)
		host->sge = host->limits.out_max_recv_sge;
	return 0;
}

int host_furnish(struct host *host)
{
	struct dapx_pd_create pd = {};
	struct dapx_mr_create mr = {};

	if (_test_cmd_pd_create(host->fd, &pd))
		return because("DAPX_PD_CREATE: %m");
	host->pd = pd.out_pd;
	if (evd_make(host->fd, 256, 0, &host->done) ||
	    evd_make(host->fd, 256, 0, &host->recv) ||
	    evd_make(host->fd, 256, 0, &host->conn))
		return -1;

	host->mem = mmap(NULL, HOST_MEMORY, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (host->mem == MAP_FAILED)
		return because("mmap: %m");
	mr.pd = host->pd;
	mr.addr = (uintptr_t)host->mem;
	mr.length = HOST_MEMORY;
	mr.access = DAPX_ACCESS_LOCAL_WRITE | DAPX_ACCESS_REMOTE_WRITE |
		    DAPX_ACCESS_REMOTE_READ;
	if (host->limits.out_caps & DAPX_DEVICE_ATOMICS)
		mr.access |= DAPX_ACCESS_REMOTE_ATOMIC;
	if (_test_cmd_mr_create(host->fd, &mr))
		return because("DAPX_MR_CREATE: %m");
	host->mr = mr.out_mr;
	host->rkey = mr.out_rkey;
	return 0;
}

int host_set_up(struct host *host, unsigned int number)
{
	if (host_open(host, number) || host_attach(host) || host_furnish(host))
		return -1;
	return 0;
}

void host_close(struct host *host)
{
	ring_unmap(&host->done.ring);
	ring_unmap(&host->recv.ring);
	ring_unmap(&host->conn.ring);
	if (host->fd >= 0)
		close(host->fd);
	if (host->mem)
		munmap(host->mem, HOST_MEMORY);
	host->fd = -1;
	host->mem = NULL;
}

int host_gid_index(const struct host *host, __u8 gid[16])
{
	__u8 wanted[16] = { [10] = 0xff, [11] = 0xff }, found[16];
	const char *line;
	char path[160];
	int i;

	inet_pton(AF_INET, host->addr, wanted + 12);
	for (i = 0; i < 32; i++) {
		snprintf(path, sizeof(path),
			 "/sys/class/infiniband/%s/ports/1/gids/%d",
			 host->device, i);
		line = read_line(path);
		if (!line || inet_pton(AF_INET6, line, found) != 1 ||
		    memcmp(found, wanted, sizeof(found)))
			continue;
		snprintf(path, sizeof(path),
			 "/sys/class/infiniband/%s/ports/1/gid_attrs/types/%d",
			 host->device, i);
		line = read_line(path);
		if (!line || strcmp(line, "RoCE v2"))
			continue;
		memcpy(gid, found, sizeof(found));
		return i;
	}
	errno = ENOENT;
	return because("%s has no RoCE v2 GID for %s", host->device, host->addr);
}

static const char *netdev_of(const struct host *host)
{
	static char netdev[2][64];
	const char *line;
	char path[128];

	/* Remembered, for when the device is not there to be asked. */
	if (!netdev[host->number][0]) {
		snprintf(path, sizeof(path),
			 "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/0",
			 host->device);
		line = read_line(path);
		if (line)
			snprintf(netdev[host->number],
				 sizeof(netdev[host->number]), "%.60s", line);
	}
	return netdev[host->number];
}

int device_remove(const struct host *host)
{
	if (!*netdev_of(host))
		return because("%s has no network device", host->device);
	return run("timeout 60 rdma link delete %s", host->device);
}

int device_add(const struct host *host)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	__u8 gid[16];

	if (run("rdma link add %s type %s netdev %s", host->device,
		on_siw() ? "siw" : "rxe", netdev_of(host)))
		return -1;
	if (on_siw())
		return 0;
	while (host_gid_index(host, gid) < 0) {
		if (now_ns() > deadline)
			return -1;
		sleep_ms(10);
	}
	return 0;
}

int cable_set(const struct host *from, const struct host *to, bool whole)
{
	/* What goes to somebody who is not there vanishes. */
	static const __u8 nobody[] = { 0x02, 0xda, 0, 0, 0, 0x99 };
	struct arpreq entry = { .arp_flags = ATF_PERM | ATF_COM };
	struct ifreq ifr = {};
	int fd, ret;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return because("socket: %m");
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", netdev_of(to));
	ret = ioctl(fd, SIOCGIFHWADDR, &ifr);
	if (!ret) {
		((struct sockaddr_in *)&entry.arp_pa)->sin_family = AF_INET;
		inet_pton(AF_INET, to->addr,
			  &((struct sockaddr_in *)&entry.arp_pa)->sin_addr);
		entry.arp_ha = ifr.ifr_hwaddr;
		if (!whole)
			memcpy(entry.arp_ha.sa_data, nobody, sizeof(nobody));
		snprintf(entry.arp_dev, sizeof(entry.arp_dev), "%s",
			 netdev_of(from));
		ret = ioctl(fd, SIOCSARP, &entry);
	}
	if (ret)
		because("the way from %s to %s: %m", netdev_of(from), to->addr);
	close(fd);
	return ret;
}

int host_mute(const struct host *host, bool muted)
{
	return run("tc qdisc replace dev %s root %s", netdev_of(host),
		   muted ? "blackhole" : "noqueue");
}

int link_set(const struct host *host, const struct host *to, bool up)
{
	const unsigned int table = 10 + host->number;
	char path[128], mac[32], dev[64];
	const char *line;
	__u8 gid[16];
	__u64 deadline;

	snprintf(dev, sizeof(dev), "%s", netdev_of(host));
	if (!up)
		return run("ip link set %s down", dev);
	snprintf(path, sizeof(path), "/sys/class/net/%s/address",
		 netdev_of(to));
	line = read_line(path);
	if (!line)
		return because("%s: %m", path);
	snprintf(mac, sizeof(mac), "%.31s", line);
	/* As selftests/vm/guest made it. */
	if (run("ip link set %s up", dev) ||
	    run("ip -6 addr replace %s/128 dev %s nodad", host->addr6, dev) ||
	    run("ip route replace %s dev %s src %s table %u", to->addr, dev,
		host->addr, table) ||
	    run("ip -6 route replace %s dev %s src %s table %u", to->addr6,
		dev, host->addr6, table) ||
	    run("ip neigh replace %s dev %s lladdr %s nud permanent", to->addr,
		dev, mac) ||
	    run("ip neigh replace %s dev %s lladdr %s nud permanent",
		to->addr6, dev, mac) ||
	    run("ip neigh replace fe80::da:ff:fe00:%u dev %s lladdr %s nud permanent",
		to->number + 1, dev, mac))
		return -1;
	deadline = in_ms(PATIENCE_MS);
	while (!on_siw() && host_gid_index(host, gid) < 0) {
		if (now_ns() > deadline)
			return -1;
		sleep_ms(10);
	}
	return 0;
}

int rdma_resources(char text[512])
{
	/* Without the devices' numbers, which are others when they come back. */
	FILE *pipe = popen("rdma resource show | sed 's/^[0-9]*: //' | sort",
			   "r");
	size_t got;

	if (!pipe)
		return because("rdma resource show: %m");
	got = fread(text, 1, 511, pipe);
	text[got] = 0;
	pclose(pipe);
	return got ? 0 : because("'rdma resource show' shows nothing");
}

int await_resources(const char *text)
{
	/* An id that a peer does not answer is the CM's for a minute. */
	__u64 deadline = in_ms(in_virtual_time() ? 120000 : PATIENCE_MS);
	char now[512];

	for (;;) {
		if (rdma_resources(now))
			return -1;
		if (!strcmp(now, text))
			return 0;
		if (now_ns() > deadline)
			return because("leaked: before:\n%snow:\n%s", text, now);
		sleep_ms(50);
	}
}

static int snapshot_add(struct snapshot *snapshot, const void *data, size_t size)
{
	__u8 *grown = realloc(snapshot->data, snapshot->size + size);

	if (!grown)
		return because("no memory");
	memcpy(grown + snapshot->size, data, size);
	snapshot->data = grown;
	snapshot->size += size;
	return 0;
}

__u32 users_of(const struct host *host, __u32 handle)
{
	struct dapx_query_object query = { .handle = handle };

	return _test_cmd_query_object(host->fd, &query) ? ~0U : query.out_users;
}

int snapshot_take(int fd, struct snapshot *snapshot)
{
	struct dapx_query_object object = { .flags = DAPX_QUERY_NEXT };

	memset(snapshot, 0, sizeof(*snapshot));
	for (;;) {
		int ret = _test_cmd_query_object(fd, &object);

		if (ret && (errno == ENOENT || errno == EBADFD))
			return 0;
		if (ret)
			return because("DAPX_QUERY_OBJECT: %m");
		if (snapshot_add(snapshot, &object, sizeof(object)))
			return -1;
		if (object.out_type == DAPX_OBJECT_EP) {
			struct dapx_ep_query ep = { .ep = object.out_handle };

			if (_test_cmd_ep_query(fd, &ep))
				return because("DAPX_EP_QUERY: %m");
			if (snapshot_add(snapshot, &ep, sizeof(ep)))
				return -1;
		}
		if (object.out_type == DAPX_OBJECT_CM) {
			struct dapx_cm_query cm = { .cm = object.out_handle };

			if (_test_cmd_cm_query(fd, &cm))
				return because("DAPX_CM_QUERY: %m");
			if (snapshot_add(snapshot, &cm, sizeof(cm)))
				return -1;
		}
		if (object.out_type == DAPX_OBJECT_SRQ) {
			struct dapx_srq_query srq = { .srq = object.out_handle };

			if (_test_cmd_srq_query(fd, &srq))
				return because("DAPX_SRQ_QUERY: %m");
			if (snapshot_add(snapshot, &srq, sizeof(srq)))
				return -1;
		}
		if (object.out_type == DAPX_OBJECT_RMR) {
			struct dapx_rmr_query rmr = {
				.rmr = object.out_handle, .mask = RMR_FIELDS,
			};

			if (_test_cmd_rmr_query(fd, &rmr))
				return because("DAPX_RMR_QUERY: %m");
			if (snapshot_add(snapshot, &rmr, sizeof(rmr)))
				return -1;
		}
		object.handle = object.out_handle;
	}
}

/* Notes which member of which answer is another one now. */
static void note_difference(const struct snapshot *before,
			    const struct snapshot *after)
{
	size_t entry = 0, at = 0, size;
	const char *name;

	while (at < before->size && at < after->size &&
	       before->data[at] == after->data[at])
		at++;
	if (at == before->size || at == after->size) {
		because("there are more or fewer objects");
		return;
	}
	/* Each entry begins with its own length. */
	for (;;) {
		size = *(const __u32 *)(before->data + entry);
		if (!size || at < entry + size)
			break;
		entry += size;
	}
	name = size == sizeof(struct dapx_ep_query) ? "ep_query" :
	       size == sizeof(struct dapx_cm_query) ? "cm_query" :
	       /* Of the same length. */
	       size == sizeof(struct dapx_rmr_query) ? "rmr_query or srq_query" :
						       "query_object";
	because("struct dapx_%s, offset %zu: 0x%x, then 0x%x", name, at - entry,
		before->data[at], after->data[at]);
}

bool snapshot_same(struct snapshot *before, struct snapshot *after)
{
	bool same = before->size == after->size &&
		    !memcmp(before->data, after->data, before->size);

	if (!same)
		note_difference(before, after);
	free(before->data);
	free(after->data);
	memset(before, 0, sizeof(*before));
	memset(after, 0, sizeof(*after));
	return same;
}

/* ---- endpoints ---- */

void ep_usual(const struct host *host, struct dapx_ep_create *cmd)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->pd = host->pd;
	cmd->request_evd = host->done.handle;
	cmd->recv_evd = host->recv.handle;
	cmd->connect_evd = host->conn.handle;
	cmd->attr.send_depth = EP_DEPTH;
	cmd->attr.recv_depth = EP_DEPTH;
	cmd->attr.max_send_sge = host->sge;
	cmd->attr.max_recv_sge = host->sge;
	cmd->attr.max_inline = EP_INLINE;
	cmd->attr.max_rd_atomic = 8;
	cmd->attr.max_dest_rd_atomic = 8;
}

static int ep_map(struct ep *ep, const struct dapx_ring_layout *send,
		  const struct dapx_ring_layout *recv, __u32 state_off)
{
	if (ring_map(ep->host->fd, send, &ep->send))
		return -1;
	ep->state = (__u32 *)((__u8 *)ep->send.map + state_off);
	/* Both are in one mapping. */
	if (recv->depth && recv->mmap_offset == send->mmap_offset) {
		__u8 *map = ep->send.map;

		ep->recv.head = (__u32 *)(map + recv->head_off);
		ep->recv.tail = (__u32 *)(map + recv->tail_off);
		ep->recv.flags = (__u32 *)(map + recv->flags_off);
		ep->recv.entries = map + recv->entries_off;
		ep->recv.stride = recv->stride;
		ep->recv.depth = recv->depth;
		return 0;
	}
	errno = EPROTO;
	if (recv->depth)
		return because("the endpoint's rings are not in one mapping");
	return 0;
}

int ep_make(struct host *host, struct dapx_ep_create *cmd, struct ep *ep)
{
	memset(ep, 0, sizeof(*ep));
	if (_test_cmd_ep_create(host->fd, cmd))
		return because("DAPX_EP_CREATE: %m");
	ep->host = host;
	ep->handle = cmd->out_ep;
	ep->qp_num = cmd->out_qp_num;
	ep->attr = cmd->attr;
	return ep_map(ep, &cmd->out_send_ring, &cmd->out_recv_ring,
		      cmd->out_state_off);
}

int ep_create(struct host *host, struct ep *ep)
{
	struct dapx_ep_create cmd;

	ep_usual(host, &cmd);
	return ep_make(host, &cmd, ep);
}

int ep_adopt(struct host *host, __u32 handle, struct ep *ep)
{
	struct dapx_ep_query query = { .ep = handle };

	memset(ep, 0, sizeof(*ep));
	if (_test_cmd_ep_query(host->fd, &query))
		return because("DAPX_EP_QUERY: %m");
	ep->host = host;
	ep->handle = handle;
	ep->qp_num = query.out_qp_num;
	ep->attr = query.out_attr;
	return ep_map(ep, &query.out_send_ring, &query.out_recv_ring,
		      query.out_state_off);
}

void ep_forget(struct ep *ep)
{
	ring_unmap(&ep->send);
	memset(&ep->recv, 0, sizeof(ep->recv));
	ep->state = NULL;
}

int ep_destroy(struct ep *ep)
{
	struct dapx_free cmd = { .handle = ep->handle, .type = DAPX_OBJECT_EP };
	int ret = _test_cmd_free(ep->host->fd, &cmd);

	if (ret)
		return because("DAPX_FREE of an endpoint: %m");
	ep_forget(ep);
	return 0;
}

__u32 ep_state(const struct ep *ep)
{
	struct dapx_ep_query query = { .ep = ep->handle };

	if (_test_cmd_ep_query(ep->host->fd, &query))
		return ~0u;
	return query.out_state;
}

__u32 ep_shown_state(const struct ep *ep)
{
	return __atomic_load_n(ep->state, __ATOMIC_ACQUIRE);
}

int ep_await_state(const struct ep *ep, __u32 state)
{
	__u64 deadline = in_ms(PATIENCE_MS);

	while (ep_state(ep) != state || ep_shown_state(ep) != state) {
		if (now_ns() > deadline) {
			errno = ETIMEDOUT;
			return because("the endpoint is in state %u (shown %u), not in %u",
				       ep_state(ep), ep_shown_state(ep), state);
		}
		sleep_ms(1);
	}
	return 0;
}

int expect_refusal(struct ep *ep, __u64 wr_id)
{
	struct evd *conn = &ep->host->conn;
	struct dapx_event event;

	if (!on_siw()) {
		if (expect_completion(&ep->host->done, wr_id,
				      DAPX_STATUS_REMOTE_ACCESS, NULL))
			return -1;
		return expect_connection(conn, ep->handle,
					 DAPX_CONNECTION_BROKEN, NULL);
	}
	if (evd_next(&ep->host->done, &event, PATIENCE_MS))
		return -1;
	if (event.type != DAPX_EVENT_COMPLETION ||
	    event.completion.wr_id != wr_id)
		return because("%s instead of 0x%llx", event_text(&event),
			       wr_id);
	if (evd_next(conn, &event, PATIENCE_MS))
		return -1;
	if (event.type != DAPX_EVENT_CONNECTION || event.handle != ep->handle ||
	    (event.connection.what != DAPX_CONNECTION_BROKEN &&
	     event.connection.what != DAPX_CONNECTION_DISCONNECTED))
		return because("%s instead of a broken connection",
			       event_text(&event));
	return ep_await_state(ep, DAPX_EP_DISCONNECTED);
}

int ep_push_send(struct ep *ep, const struct dapx_send_wr *wr, const void *rest)
{
	__u8 entry[sizeof(*wr) + 4096];
	size_t size = wr->flags & DAPX_SEND_INLINE ?
		wr->inline_len : wr->num_sge * sizeof(struct dapx_sge);

	memcpy(entry, wr, sizeof(*wr));
	if (size)
		memcpy(entry + sizeof(*wr), rest, size);
	return ring_push(&ep->send, entry, sizeof(*wr) + size);
}

int ep_push_recv(struct ep *ep, const struct dapx_recv_wr *wr,
		 const struct dapx_sge *sge)
{
	__u8 entry[sizeof(*wr) + 4096];
	size_t size = wr->num_sge * sizeof(*sge);

	memcpy(entry, wr, sizeof(*wr));
	if (size)
		memcpy(entry + sizeof(*wr), sge, size);
	return ring_push(&ep->recv, entry, sizeof(*wr) + size);
}

int ep_post_send(struct ep *ep, const struct dapx_send_wr *wr, const void *rest)
{
	if (ep_push_send(ep, wr, rest))
		return -1;
	return ring_bell(ep->host->fd, ep->handle, DAPX_DOORBELL_SEND,
			 &ep->send);
}

int ep_post_recv(struct ep *ep, const struct dapx_recv_wr *wr,
		 const struct dapx_sge *sge)
{
	if (ep_push_recv(ep, wr, sge))
		return -1;
	return ring_bell(ep->host->fd, ep->handle, DAPX_DOORBELL_RECV,
			 &ep->recv);
}

struct dapx_sge host_sge(const struct host *host, __u32 offset, __u32 length)
{
	struct dapx_sge sge = {
		.mr = host->mr,
		.length = length,
		.addr = (uintptr_t)host->mem + offset,
	};

	return sge;
}

int ep_send(struct ep *ep, __u64 wr_id, __u32 offset, __u32 length)
{
	struct dapx_sge sge = host_sge(ep->host, offset, length);
	struct dapx_send_wr wr = {
		.wr_id = wr_id,
		.opcode = DAPX_OP_SEND,
		.num_sge = 1,
		.flags = DAPX_SEND_SIGNALED,
	};

	return ep_post_send(ep, &wr, &sge);
}

int ep_recv(struct ep *ep, __u64 wr_id, __u32 offset, __u32 length)
{
	struct dapx_sge sge = host_sge(ep->host, offset, length);
	struct dapx_recv_wr wr = { .wr_id = wr_id, .num_sge = 1 };

	return ep_post_recv(ep, &wr, &sge);
}

#define EXCHANGE_BYTES 256

static int ep_one_way(struct ep *from, struct ep *to)
{
	/* The last pages of the memory are kept for this. */
	const __u32 out = HOST_MEMORY - 4096, in = HOST_MEMORY - 8192;
	__u64 wr_id = 0xe000000000000000ULL | dice();
	struct dapx_event event;
	unsigned int i;

	for (i = 0; i < EXCHANGE_BYTES; i++)
		from->host->mem[out + i] = dice();
	memset(to->host->mem + in, 0, EXCHANGE_BYTES);
	if (ep_recv(to, wr_id, in, EXCHANGE_BYTES) ||
	    ep_send(from, wr_id + 1, out, EXCHANGE_BYTES) ||
	    expect_completion(&from->host->done, wr_id + 1,
			      DAPX_STATUS_SUCCESS, NULL) ||
	    expect_completion(&to->host->recv, wr_id, DAPX_STATUS_SUCCESS,
			      &event))
		return -1;
	errno = EPROTO;
	if (event.handle != to->handle ||
	    event.completion.opcode != DAPX_OP_RECV ||
	    event.completion.byte_len != EXCHANGE_BYTES)
		return because("%s instead of a receive of %u bytes",
			       event_text(&event), EXCHANGE_BYTES);
	if (memcmp(from->host->mem + out, to->host->mem + in, EXCHANGE_BYTES))
		return because("the message arrived with other bytes");
	return 0;
}

int ep_rdma(struct ep *ep, __u64 wr_id, __u8 opcode, __u32 mr, const __u8 *at,
	    __u32 length, const __u8 *remote, __u32 rkey)
{
	struct dapx_sge sge = {
		.mr = mr, .length = length, .addr = (uintptr_t)at,
	};
	struct dapx_send_wr wr = {
		.wr_id = wr_id, .opcode = opcode, .num_sge = 1,
		.flags = DAPX_SEND_SIGNALED, .rkey = rkey,
		.remote_addr = (uintptr_t)remote,
	};

	return ep_post_send(ep, &wr, &sge);
}

int ep_exchange(struct ep *a, struct ep *b)
{
	return ep_one_way(a, b) || ep_one_way(b, a) ? -1 : 0;
}

/* ---- shared receive queues ---- */

int srq_make(struct host *host, __u32 depth, __u32 max_sge, struct srq *srq)
{
	struct dapx_srq_create cmd = {
		.pd = host->pd, .depth = depth, .max_sge = max_sge,
	};

	if (_test_cmd_srq_create(host->fd, &cmd))
		return because("DAPX_SRQ_CREATE: %m");
	srq->host = host;
	srq->handle = cmd.out_srq;
	return ring_map(host->fd, &cmd.out_ring, &srq->ring);
}

int srq_recv(struct srq *srq, __u64 wr_id, __u32 offset, __u32 length)
{
	struct {
		struct dapx_recv_wr wr;
		struct dapx_sge sge;
	} entry = {
		.wr = { .wr_id = wr_id, .num_sge = 1 },
		.sge = host_sge(srq->host, offset, length),
	};

	if (ring_push(&srq->ring, &entry, sizeof(entry)))
		return -1;
	return ring_bell(srq->host->fd, srq->handle, DAPX_DOORBELL_RECV,
			 &srq->ring);
}

/* ---- connections ---- */

void set_addr(struct __kernel_sockaddr_storage *addr, const char *ip, __u16 port)
{
	memset(addr, 0, sizeof(*addr));
	if (strchr(ip, ':')) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		inet_pton(AF_INET6, ip, &in6->sin6_addr);
	} else {
		struct sockaddr_in *in = (struct sockaddr_in *)addr;

		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		inet_pton(AF_INET, ip, &in->sin_addr);
	}
}

__u16 get_port(const struct __kernel_sockaddr_storage *addr)
{
	/* The port is at the same place in both families. */
	return ntohs(((const struct sockaddr_in *)addr)->sin_port);
}

int cm_bind_to(const struct host *host, __u32 cm, const char *ip, __u16 port)
{
	struct dapx_cm_bind cmd = { .cm = cm };

	set_addr(&cmd.addr, ip, port);
	return _test_cmd_cm_bind(host->fd, &cmd);
}

int cm_resolve_addr(const struct host *host, __u32 cm, const char *dst,
		    __u16 port, const char *src, unsigned int ms)
{
	struct dapx_cm_resolve cmd = {
		.cm = cm, .what = DAPX_RESOLVE_ADDR, .deadline = in_ms(ms),
	};

	set_addr(&cmd.dst, dst, port);
	if (src)
		set_addr(&cmd.src, src, 0);
	return _test_cmd_cm_resolve(host->fd, &cmd);
}

int cm_resolve_route(const struct host *host, __u32 cm)
{
	struct dapx_cm_resolve cmd = {
		.cm = cm, .what = DAPX_RESOLVE_ROUTE,
		.deadline = in_ms(PATIENCE_MS),
	};

	return _test_cmd_cm_resolve(host->fd, &cmd);
}

__u16 cm_local_port(const struct host *host, __u32 cm)
{
	struct dapx_cm_query query = { .cm = cm };

	return _test_cmd_cm_query(host->fd, &query) ? 0 :
						      get_port(&query.out_local);
}

int listener_open_as(struct host *host, const struct dapx_cm_listen *mode,
		     struct listener *listener)
{
	struct dapx_cm_create create = { .evd = host->conn.handle };
	struct dapx_cm_listen listen = *mode;
	struct dapx_cm_query query = {};
	struct dapx_cm_bind bind = {};

	if (_test_cmd_cm_create(host->fd, &create))
		return because("DAPX_CM_CREATE: %m");
	bind.cm = create.out_cm;
	listen.cm = create.out_cm;
	query.cm = create.out_cm;
	set_addr(&bind.addr, host->addr, 0);
	if (_test_cmd_cm_bind(host->fd, &bind))
		return because("DAPX_CM_BIND to %s: %m", host->addr);
	if (_test_cmd_cm_listen(host->fd, &listen))
		return because("DAPX_CM_LISTEN: %m");
	if (_test_cmd_cm_query(host->fd, &query))
		return because("DAPX_CM_QUERY: %m");
	listener->host = host;
	listener->cm = create.out_cm;
	listener->port = get_port(&query.out_local);
	errno = EPROTO;
	if (!listener->port)
		return because("a bound listener has no port");
	return 0;
}

int listener_open(struct host *host, struct listener *listener)
{
	struct dapx_cm_listen mode = { .mode = DAPX_LISTEN_CONSUMER };

	return listener_open_as(host, &mode, listener);
}

int listener_close(struct listener *listener)
{
	struct dapx_free cmd = {
		.handle = listener->cm,
		.type = DAPX_OBJECT_CM,
		.flags = DAPX_FREE_NOWAIT,
	};

	if (_test_cmd_free(listener->host->fd, &cmd))
		return because("DAPX_FREE of a listener: %m");
	return 0;
}

int listener_request(struct listener *listener, struct dapx_event *event)
{
	struct dapx_cm_ack ack = { .cm = listener->cm, .events = 1 };

	if (expect_request(&listener->host->conn, listener->cm, event))
		return -1;
	if (_test_cmd_cm_ack(listener->host->fd, &ack))
		return because("DAPX_CM_ACK of a listener: %m");
	return 0;
}

void connect_usual(const struct ep *ep, const struct listener *to,
		   struct dapx_ep_connect *cmd)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->ep = ep->handle;
	set_addr(&cmd->dst, to->host->addr, to->port);
	set_addr(&cmd->src, ep->host->addr, 0);
	cmd->deadline = in_ms(PATIENCE_MS);
	cmd->retry_count = 7;
	cmd->rnr_retry_count = 7;
}

int ep_connect(struct ep *ep, const struct listener *to)
{
	struct dapx_ep_connect cmd;

	connect_usual(ep, to, &cmd);
	if (_test_cmd_ep_connect(ep->host->fd, &cmd))
		return because("DAPX_EP_CONNECT: %m");
	return 0;
}

int ep_accept(struct ep *ep, __u32 request)
{
	struct dapx_ep_accept cmd = {
		.ep = ep->handle, .cm = request, .rnr_retry_count = 7,
	};

	if (_test_cmd_ep_accept(ep->host->fd, &cmd))
		return because("DAPX_EP_ACCEPT: %m");
	return 0;
}

int connect_through(struct ep *active, struct listener *listener,
		    struct ep *passive)
{
	struct dapx_event event;

	if (ep_connect(active, listener) ||
	    listener_request(listener, &event) ||
	    ep_accept(passive, event.request.cm) ||
	    expect_connection(&active->host->conn, active->handle,
			      DAPX_CONNECTION_ESTABLISHED, NULL) ||
	    expect_connection(&passive->host->conn, passive->handle,
			      DAPX_CONNECTION_ESTABLISHED, NULL))
		return -1;
	return 0;
}

int connect_cm(struct ep *active, struct ep *passive)
{
	struct listener listener;

	if (listener_open(passive->host, &listener) ||
	    connect_through(active, &listener, passive) ||
	    listener_close(&listener))
		return -1;
	return 0;
}

static const struct qp_options usual_options = {
	.timeout = 14,
	.retry_count = 7,
	.rnr_retry = 7,
	.path_mtu = 3,
};

int qp_init(struct ep *ep)
{
	struct dapx_ep_modify cmd = {
		.ep = ep->handle,
		.mask = DAPX_EP_MODIFY_QP,
		.qp.state = DAPX_QP_INIT,
		.qp.port = 1,
	};

	if (_test_cmd_ep_modify(ep->host->fd, &cmd))
		return because("DAPX_EP_MODIFY to INIT: %m");
	return 0;
}

int qp_rtr(struct ep *ep, __u32 dest_qp_num, const __u8 dgid[16],
	   const struct qp_options *options)
{
	struct dapx_ep_modify cmd = {
		.ep = ep->handle,
		.mask = DAPX_EP_MODIFY_QP,
		.qp.state = DAPX_QP_RTR,
		.qp.dest_qp_num = dest_qp_num,
		.qp.hop_limit = 64,
		.qp.min_rnr_timer = 1,
		.qp.max_dest_rd_atomic = 8,
	};
	__u8 sgid[16];
	int index;

	index = host_gid_index(ep->host, sgid);
	if (index < 0)
		return -1;
	cmd.qp.path_mtu = options ? options->path_mtu : usual_options.path_mtu;
	cmd.qp.sgid_index = index;
	memcpy(cmd.qp.dgid, dgid, sizeof(cmd.qp.dgid));
	if (_test_cmd_ep_modify(ep->host->fd, &cmd))
		return because("DAPX_EP_MODIFY to RTR: %m");
	return 0;
}

int qp_rts(struct ep *ep, const struct qp_options *options)
{
	struct dapx_ep_modify cmd = {
		.ep = ep->handle,
		.mask = DAPX_EP_MODIFY_QP,
		.qp.state = DAPX_QP_RTS,
		.qp.max_rd_atomic = 8,
	};

	if (!options)
		options = &usual_options;
	cmd.qp.timeout = options->timeout;
	cmd.qp.retry_count = options->retry_count;
	cmd.qp.rnr_retry = options->rnr_retry;
	if (_test_cmd_ep_modify(ep->host->fd, &cmd))
		return because("DAPX_EP_MODIFY to RTS: %m");
	return 0;
}

static __u32 current_qp_num(const struct ep *ep)
{
	struct dapx_ep_query query = { .ep = ep->handle };

	/* A reset endpoint has another one. */
	if (_test_cmd_ep_query(ep->host->fd, &query))
		return 0;
	return query.out_qp_num;
}

int connect_qp(struct ep *a, struct ep *b, const struct qp_options *options)
{
	__u8 gid_a[16], gid_b[16];

	if (host_gid_index(a->host, gid_a) < 0 ||
	    host_gid_index(b->host, gid_b) < 0 ||
	    qp_init(a) || qp_init(b) ||
	    qp_rtr(a, current_qp_num(b), gid_b, options) ||
	    qp_rtr(b, current_qp_num(a), gid_a, options) ||
	    qp_rts(a, options) || qp_rts(b, options))
		return -1;
	return 0;
}

/* ---- XRC ---- */

int host_xrc(struct host *host, int file)
{
	struct dapx_xrcd_open xrcd = { .fd = file, .flags = DAPX_XRCD_CREATE };
	struct dapx_mr_create mr = {
		.flags = DAPX_MR_XRC,
		.pd = host->pd,
		.addr = (uintptr_t)host->mem,
		.length = HOST_MEMORY,
		.access = DAPX_ACCESS_LOCAL_WRITE | DAPX_ACCESS_REMOTE_WRITE |
			  DAPX_ACCESS_REMOTE_READ | DAPX_ACCESS_REMOTE_ATOMIC,
	};
	struct dapx_free plain = { .handle = host->mr };

	if (_test_cmd_xrcd_open(host->fd, &xrcd))
		return because("DAPX_XRCD_OPEN: %m");
	host->xrcd = xrcd.out_xrcd;
	if (_test_cmd_mr_create(host->fd, &mr))
		return because("DAPX_MR_CREATE for XRC: %m");
	if (_test_cmd_free(host->fd, &plain))
		return because("DAPX_FREE: %m");
	host->mr = mr.out_mr;
	host->rkey = mr.out_rkey;
	return 0;
}

int xrc_srq_make(struct host *host, __u32 depth, struct xrc_srq *srq)
{
	return xrc_srq_make_with(host, depth, 0, srq);
}

int xrc_srq_make_with(struct host *host, __u32 depth, __u32 async_evd,
		      struct xrc_srq *srq)
{
	struct dapx_srq_create cmd = {
		.pd = host->pd, .depth = depth, .max_sge = 4,
		.xrcd = host->xrcd, .evd = host->recv.handle,
		.async_evd = async_evd,
	};

	if (_test_cmd_srq_create(host->fd, &cmd))
		return because("DAPX_SRQ_CREATE: %m");
	srq->srq.host = host;
	srq->srq.handle = cmd.out_srq;
	srq->number = cmd.out_srq_num;
	return ring_map(host->fd, &cmd.out_ring, &srq->srq.ring);
}

void xrc_usual(const struct host *host, struct dapx_ep_create *cmd)
{
	ep_usual(host, cmd);
	cmd->recv_evd = 0;
	cmd->xrcd = host->xrcd;
	cmd->attr.flags = DAPX_EP_XRC;
	cmd->attr.recv_depth = 0;
}

int xrc_ep_create(struct host *host, struct ep *ep)
{
	struct dapx_ep_create cmd;

	xrc_usual(host, &cmd);
	return ep_make(host, &cmd, ep);
}

int xrc_qp_make(struct host *host, __u32 *qp_num)
{
	struct dapx_xrc_qp_create cmd = {
		.xrcd = host->xrcd, .evd = host->conn.handle,
	};

	if (_test_cmd_xrc_qp_create(host->fd, &cmd))
		return because("DAPX_XRC_QP_CREATE: %m");
	*qp_num = cmd.out_qp_num;
	return 0;
}

int xrc_connect_qp(struct ep *ep, struct host *host, __u32 qp_num,
		   const struct qp_options *options)
{
	struct dapx_xrc_qp_modify init = {
		.xrcd = host->xrcd, .qp_num = qp_num,
		.qp = { .state = DAPX_QP_INIT, .port = 1 },
	};
	struct dapx_xrc_qp_modify rtr = {
		.xrcd = host->xrcd, .qp_num = qp_num,
		.qp = {
			.state = DAPX_QP_RTR,
			.dest_qp_num = current_qp_num(ep),
			.hop_limit = 64,
			.path_mtu = usual_options.path_mtu,
			.min_rnr_timer = 12,
			.max_dest_rd_atomic = 8,
		},
	};
	__u8 gid[16];
	int index;

	index = host_gid_index(host, gid);
	if (index < 0 || host_gid_index(ep->host, rtr.qp.dgid) < 0)
		return -1;
	rtr.qp.sgid_index = index;
	if (_test_cmd_xrc_qp_modify(host->fd, &init))
		return because("DAPX_XRC_QP_MODIFY to INIT: %m");
	if (_test_cmd_xrc_qp_modify(host->fd, &rtr))
		return because("DAPX_XRC_QP_MODIFY to RTR: %m");
	if (qp_init(ep) || qp_rtr(ep, qp_num, gid, options) ||
	    qp_rts(ep, options))
		return -1;
	return 0;
}

int xrc_connect_cm(struct ep *ep, struct host *host, __u32 qp_num)
{
	struct dapx_xrc_qp_accept cmd = {
		.xrcd = host->xrcd, .qp_num = qp_num,
	};
	struct listener listener;
	struct dapx_event event;

	if (listener_open(host, &listener) || ep_connect(ep, &listener) ||
	    listener_request(&listener, &event))
		return -1;
	cmd.cm = event.request.cm;
	if (_test_cmd_xrc_qp_accept(host->fd, &cmd))
		return because("DAPX_XRC_QP_ACCEPT: %m");
	if (expect_connection(&ep->host->conn, ep->handle,
			      DAPX_CONNECTION_ESTABLISHED, NULL))
		return -1;
	return listener_close(&listener);
}

int xrc_connect(struct ep *ep, struct host *host, __u32 qp_num)
{
	return on_siw() ? xrc_connect_cm(ep, host, qp_num) :
			  xrc_connect_qp(ep, host, qp_num, NULL);
}

int xrc_send(struct ep *ep, __u32 srq_num, __u64 wr_id, __u32 offset,
	     __u32 length)
{
	struct dapx_send_wr wr = {
		.wr_id = wr_id,
		.opcode = DAPX_OP_SEND,
		.num_sge = 1,
		.flags = DAPX_SEND_SIGNALED,
		.remote_srqn = srq_num,
	};
	struct dapx_sge sge = host_sge(ep->host, offset, length);

	return ep_post_send(ep, &wr, &sge);
}

static int ep_disconnect(struct ep *ep)
{
	struct dapx_ep_disconnect cmd = {
		.ep = ep->handle, .flags = DAPX_DISCONNECT_ABRUPT,
	};

	if (_test_cmd_ep_disconnect(ep->host->fd, &cmd))
		return because("DAPX_EP_DISCONNECT: %m");
	return 0;
}

static int ep_reset(struct ep *ep)
{
	struct dapx_ep_reset cmd = { .ep = ep->handle };

	if (_test_cmd_ep_reset(ep->host->fd, &cmd))
		return because("DAPX_EP_RESET: %m");
	ep->qp_num = cmd.out_qp_num;
	return 0;
}

int disconnect_reset(struct ep *a, struct ep *b)
{
	if (ep_disconnect(a) || ep_disconnect(b) ||
	    ep_await_state(a, DAPX_EP_DISCONNECTED) ||
	    ep_await_state(b, DAPX_EP_DISCONNECTED) ||
	    ep_reset(a) || ep_reset(b))
		return -1;
	evd_drain(&a->host->done);
	evd_drain(&a->host->recv);
	evd_drain(&a->host->conn);
	evd_drain(&b->host->done);
	evd_drain(&b->host->recv);
	evd_drain(&b->host->conn);
	return 0;
}
