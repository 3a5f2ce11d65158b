/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the test programs share: commands, rings, events, and two hosts that
 * can be connected. Everything here talks to /dev/dapx as any C program would,
 * without the library.
 *
 * Functions return 0, or -1 with errno and a sentence in why(); OK() asserts.
 */
#ifndef DAPX_UTILS_H
#define DAPX_UTILS_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "dapx.h"

#define DAPX_NODE "/dev/dapx"
/* What must happen is given this long. */
#define PATIENCE_MS patience_ms()
/* What must not happen is waited for this long. */
#define GLANCE_MS 100
/* A handle that nobody has. */
#define NO_HANDLE 0x7ffffff1u

#define sizeof_member(type, member) sizeof(((type *)0)->member)
#define offset_behind(type, member) \
	(offsetof(type, member) + sizeof_member(type, member))

/* ---- the three ways to give a command ---- */

/*
 * Before the call every out_ member is poisoned. Afterwards a call that failed
 * must have left the whole struct as it was, and one that succeeded must have
 * written every out_ member and nothing else; anything else is EPROTO.
 */
int dapx_ioctl(int fd, unsigned int request, void *command);

/* Gives the command and returns what ioctl(2) did. */
#define _test_cmd(name, fd, ...)					\
	({								\
		struct dapx_##name __cmd = { __VA_ARGS__ };		\
									\
		_test_cmd_##name(fd, &__cmd);				\
	})

/* The command must succeed; evaluates to its struct. */
#define test_cmd(name, fd, ...)						\
	({								\
		struct dapx_##name __cmd = { __VA_ARGS__ };		\
		int __ret = _test_cmd_##name(fd, &__cmd);		\
									\
		ASSERT_EQ(0, __ret)					\
			TH_LOG(#name ": %s", strerror(errno));		\
		__cmd;							\
	})

/* The command must fail with this errno. */
#define test_err(expected, name, fd, ...)				\
	EXPECT_ERRNO(expected, _test_cmd(name, fd, __VA_ARGS__))

#define EXPECT_ERRNO(expected, call)					\
	({								\
		int __ret = (call);					\
		int __error = __ret ? errno : 0;			\
									\
		EXPECT_EQ(expected, __error)				\
			TH_LOG("%s: %s instead of %s", #call,		\
			       strerror(__error), strerror(expected));	\
	})

#define OK(call)							\
	({								\
		ASSERT_EQ(0, call)					\
			TH_LOG("%s: %s", #call, why());			\
	})

#define DAPX_COMMAND_WRAPPER(lower, upper)				\
static inline int _test_cmd_##lower(int fd, struct dapx_##lower *cmd)	\
{									\
	cmd->size = sizeof(*cmd);					\
	return dapx_ioctl(fd, DAPX_##upper, cmd);			\
}

#define DAPX_COMMAND DAPX_COMMAND_WRAPPER
#include "dapx_commands.h"
#undef DAPX_COMMAND

/* ---- failure, counts, time ---- */

const char *why(void);
[[gnu::format(printf, 1, 2)]] int because(const char *format, ...);

/* How often to do something: @usual times DAPX_SCALE, or @full if that is "full". */
unsigned int count(unsigned int usual, unsigned int full);

/*
 * Whether the clock counts what this machine does, so that a limit on how long something
 * takes means something; else a busy host decides.
 */
bool in_virtual_time(void);
/* A debug kernel under emulation is slow, and a host that is busy. */
unsigned int patience_ms(void);
__u64 now_ns(void);
__u64 in_ms(unsigned int ms);
void sleep_ms(unsigned int ms);
/*
 * Something that is done by another thread while this one goes on, at a moment
 * within @longest_us; tell where it fell, and the next one falls better.
 */
struct moment {
	unsigned int longest_us;
	void (*act)(void *arg);
	void *arg;
	pthread_t thread;
};

int moment_start(struct moment *moment);
void moment_await(struct moment *moment);
void moment_fell(struct moment *moment, bool too_late);
/*
 * Waits until the thread of this process whose gettid() is, or comes to be, in @tid sleeps
 * in this command. Who has said that it is about to give it may not have got there.
 */
int await_asleep(const pid_t *tid, unsigned long request);
/* For a moment, of which sleeping would be too long. */
void spin(unsigned int turns);
/*
 * Numbers for choosing moments and data. Who asks for the first one prints the seed, and
 * takes it from the environment, DAPX_SEED, if it is there: to see a run again.
 */
__u32 dice(void);

bool on_siw(void);
bool on_debug_kernel(void);
/* First line of a file; NULL without it. Static buffer. */
const char *read_line(const char *path);
int write_line(const char *path, const char *text);
/* A module parameter that is a number; -1 if there is no such. */
long module_parameter(const char *name);
int set_module_parameter(const char *name, long value);
/* Pages that are pinned, in all of the machine. */
long pinned_pages(void);
/* Runs a shell command quietly; its exit code. */
[[gnu::format(printf, 1, 2)]] int run(const char *format, ...);

/*
 * A cgroup that the calling process can be put in, and the test be taken out of;
 * @controllers as cgroup.subtree_control takes them.
 */
#define CGROUP "/run/dapx-cgroup"
int cgroup_make(const char *controllers);
int cgroup_enter(const char *controllers);
void cgroup_leave(const char *device);

/* ---- rings ---- */

struct ring {
	void *map;
	size_t map_size;
	__u32 *head;
	__u32 *tail;
	__u32 *flags;
	__u32 *armed;			/* NULL: none */
	__u8 *entries;
	__u32 stride;
	__u32 depth;
};

int ring_map(int fd, const struct dapx_ring_layout *layout, struct ring *ring);
void ring_unmap(struct ring *ring);
__u32 ring_flags(const struct ring *ring);
__u32 ring_used(const struct ring *ring);
void *ring_entry(const struct ring *ring, __u32 index);
/* Producer: -1 with EAGAIN if the ring is full. Does not ring the doorbell. */
int ring_push(struct ring *ring, const void *entry, size_t size);

/* ---- event dispatchers ---- */

struct evd {
	int fd;
	__u32 handle;
	struct ring ring;
};

int evd_make(int fd, __u32 depth, __u32 flags, struct evd *evd);
/* One event, if there is one, without waiting. */
bool evd_poll(struct evd *evd, struct dapx_event *event);
int evd_next(struct evd *evd, struct dapx_event *event, unsigned int ms);
/* Of an eventfd with DAPX_EVENTFD_ONCE: by the next event. */
void evd_arm(struct evd *evd);
bool evd_armed(const struct evd *evd);
/* Nothing comes for a while. */
int evd_quiet(struct evd *evd);
/* Takes out and counts what is there. */
unsigned int evd_drain(struct evd *evd);

/* The next event must be this one; @event may be NULL. */
int expect_completion(struct evd *evd, __u64 wr_id, __u32 status,
		      struct dapx_event *event);
int expect_connection(struct evd *evd, __u32 ep, __u32 what,
		      struct dapx_event *event);
int expect_request(struct evd *evd, __u32 listener, struct dapx_event *event);
int expect_cm(struct evd *evd, __u32 cm, __u32 what, struct dapx_event *event);
int expect_async(struct evd *evd, __u32 what, struct dapx_event *event);

/* ---- hosts: a context with what a connection needs ---- */

#define HOST_MEMORY (256 * 1024)

struct host {
	int fd;
	unsigned int number;		/* 0 or 1: which device */
	const char *device;
	const char *addr;
	const char *addr6;
	struct dapx_query_device limits;
	__u32 sge;			/* of its endpoints */
	__u32 pd;
	struct evd done;		/* completions of requests */
	struct evd recv;		/* completions of receives */
	struct evd conn;		/* connections, requests, CM ids */
	__u8 *mem;
	__u32 mr;
	__u32 rkey;
	__u32 xrcd;			/* 0: none */
};

/* Opens the device node only. */
int host_open(struct host *host, unsigned int number);
int host_attach(struct host *host);
/* PD, EVDs, and HOST_MEMORY bytes with all rights. */
int host_furnish(struct host *host);
void host_close(struct host *host);
/* The three in a row. */
int host_set_up(struct host *host, unsigned int number);
/* The GID index of the host's IPv4 address; -1 without. */
int host_gid_index(const struct host *host, __u8 gid[16]);

/*
 * Takes the RDMA device away, as a driver's unbinding would, and brings it back
 * with its name, network device and addresses.
 */
int device_remove(const struct host *host);
int device_add(const struct host *host);
/* Cuts the cable from one host to the other, this way only, or mends it. */
int cable_set(const struct host *from, const struct host *to, bool whole);
/*
 * What leaves @host is lost. Not by cable_set(): to the RDMA CM a neighbour that changes
 * is the end of a set-up. While connections are set up only: what rxe sends in the moment
 * of the change has an error, which ends its queue pair.
 */
int host_mute(const struct host *host, bool muted);
/*
 * Takes the network device below @host down, or up again with what it lost by that:
 * addresses, and the way to @to.
 */
int link_set(const struct host *host, const struct host *to, bool up);
/* What the RDMA subsystem counts on both devices; two are compared by strcmp. */
int rdma_resources(char text[512]);
/* Waits until it counts this again: some of it goes a little later. */
int await_resources(const char *text);

/* How many objects point to this one; ~0 if there is none. */
__u32 users_of(const struct host *host, __u32 handle);

/* Every object of a context, with its state; two are compared by memcmp. */
struct snapshot {
	size_t size;
	__u8 *data;
};

int snapshot_take(int fd, struct snapshot *snapshot);
/* True if nothing changed, else why() says what; drops both. */
bool snapshot_same(struct snapshot *before, struct snapshot *after);

/* ---- endpoints ---- */

#define EP_DEPTH 64
#define EP_SGE 8	/* or what the device has: host.sge */
#define EP_INLINE 64

struct ep {
	struct host *host;
	__u32 handle;
	__u32 qp_num;
	struct ring send;
	struct ring recv;
	const __u32 *state;
	struct dapx_ep_attr attr;
};

/* Fills in what a usual endpoint has; change it before ep_make(). */
void ep_usual(const struct host *host, struct dapx_ep_create *cmd);
int ep_make(struct host *host, struct dapx_ep_create *cmd, struct ep *ep);
/* Usual endpoint. */
int ep_create(struct host *host, struct ep *ep);
/* Maps the rings of an endpoint that a listener made. */
int ep_adopt(struct host *host, __u32 handle, struct ep *ep);
/* Frees it and unmaps its rings. */
int ep_destroy(struct ep *ep);
/* Only unmaps. */
void ep_forget(struct ep *ep);
__u32 ep_state(const struct ep *ep);
/*
 * The peer refuses what the request does there, and the connection is broken. On
 * iWARP a write is done when it is sent: there the connection's end is all.
 */
int expect_refusal(struct ep *ep, __u64 wr_id);
/* Waits until the endpoint has this state. */
int ep_await_state(const struct ep *ep, __u32 state);
__u32 ep_shown_state(const struct ep *ep);

/*
 * Publishing; @rest are segments, or inline data. Only the doorbell variants
 * tell the kernel, if it asks for that.
 */
int ep_push_send(struct ep *ep, const struct dapx_send_wr *wr, const void *rest);
int ep_push_recv(struct ep *ep, const struct dapx_recv_wr *wr,
		 const struct dapx_sge *sge);
int ring_bell(int fd, __u32 handle, __u32 flag, const struct ring *ring);
int ep_post_send(struct ep *ep, const struct dapx_send_wr *wr, const void *rest);
int ep_post_recv(struct ep *ep, const struct dapx_recv_wr *wr,
		 const struct dapx_sge *sge);
/* One segment of the host's memory. */
struct dapx_sge host_sge(const struct host *host, __u32 offset, __u32 length);
/* Signalled send, and receive, of one segment of the host's memory. */
int ep_send(struct ep *ep, __u64 wr_id, __u32 offset, __u32 length);
int ep_recv(struct ep *ep, __u64 wr_id, __u32 offset, __u32 length);
/* Signalled, between one local segment and the peer's memory. */
int ep_rdma(struct ep *ep, __u64 wr_id, __u8 opcode, __u32 mr, const __u8 *at,
	    __u32 length, const __u8 *remote, __u32 rkey);
/* One message each way, with its bytes compared: the connection works. */
int ep_exchange(struct ep *a, struct ep *b);

/* ---- remote memory regions ---- */

#define RMR_FIELDS							\
	(DAPX_RMR_FIELD_PD | DAPX_RMR_FIELD_MR | DAPX_RMR_FIELD_RANGE |	\
	 DAPX_RMR_FIELD_ACCESS | DAPX_RMR_FIELD_RKEY)

/* ---- shared receive queues ---- */

struct srq {
	struct host *host;
	__u32 handle;
	struct ring ring;
};

int srq_make(struct host *host, __u32 depth, __u32 max_sge, struct srq *srq);
int srq_recv(struct srq *srq, __u64 wr_id, __u32 offset, __u32 length);

/* ---- connections ---- */

void set_addr(struct __kernel_sockaddr_storage *addr, const char *ip, __u16 port);
__u16 get_port(const struct __kernel_sockaddr_storage *addr);

/* A CM id of the host, with its events in host->conn. */
#define CM_NEW(host)							\
	test_cmd(cm_create, (host)->fd, .evd = (host)->conn.handle).out_cm
#define CM_QUERY(host, handle)						\
	test_cmd(cm_query, (host)->fd, .cm = (handle))

/* As the commands themselves: -1 with errno, and without a sentence. */
int cm_bind_to(const struct host *host, __u32 cm, const char *ip, __u16 port);
/* @src NULL: what the route says, or what it is bound to. */
int cm_resolve_addr(const struct host *host, __u32 cm, const char *dst,
		    __u16 port, const char *src, unsigned int ms);
int cm_resolve_route(const struct host *host, __u32 cm);
/* Own port of an id; 0 without. */
__u16 cm_local_port(const struct host *host, __u32 cm);

struct listener {
	struct host *host;
	__u32 cm;
	__u16 port;
};

/* Bound to the host's IPv4 address and any free port; events in host->conn. */
int listener_open(struct host *host, struct listener *listener);
int listener_open_as(struct host *host, const struct dapx_cm_listen *mode,
		     struct listener *listener);
int listener_close(struct listener *listener);
/* Takes the next request from the EVD, and acknowledges it. */
int listener_request(struct listener *listener, struct dapx_event *event);

void connect_usual(const struct ep *ep, const struct listener *to,
		   struct dapx_ep_connect *cmd);
/* Sends the request; the answer is up to the listener's owner. */
int ep_connect(struct ep *ep, const struct listener *to);
int ep_accept(struct ep *ep, __u32 request);
/* Through @listener, whose host owns @passive; both are CONNECTED afterwards. */
int connect_through(struct ep *active, struct listener *listener,
		    struct ep *passive);
/* The same, with a listener made for it. */
int connect_cm(struct ep *active, struct ep *passive);

/* What an exchange of QP numbers sets; no options: what is usual. */
struct qp_options {
	__u8 timeout;
	__u8 retry_count;
	__u8 rnr_retry;
	__u8 path_mtu;
};

int qp_init(struct ep *ep);
int qp_rtr(struct ep *ep, __u32 dest_qp_num, const __u8 dgid[16],
	   const struct qp_options *options);
int qp_rts(struct ep *ep, const struct qp_options *options);
/* Both are CONNECTED afterwards; no event. */
int connect_qp(struct ep *a, struct ep *b, const struct qp_options *options);
/* Takes both to UNCONNECTED: disconnect, wait for the events, reset, drain. */
int disconnect_reset(struct ep *a, struct ep *b);

/* ---- XRC ---- */

struct xrc_srq {
	struct srq srq;
	__u32 number;
};

/* Opens the domain of @file, and registers the host's memory for XRC. */
int host_xrc(struct host *host, int file);
/* Its completions come to host->recv. */
int xrc_srq_make(struct host *host, __u32 depth, struct xrc_srq *srq);
/* Its asynchronous events come to @async_evd; 0: to host->recv. */
int xrc_srq_make_with(struct host *host, __u32 depth, __u32 async_evd,
		      struct xrc_srq *srq);
/* The usual sending endpoint. */
void xrc_usual(const struct host *host, struct dapx_ep_create *cmd);
int xrc_ep_create(struct host *host, struct ep *ep);
/* A receive queue pair of the host's domain, with its events in host->conn. */
int xrc_qp_make(struct host *host, __u32 *qp_num);
/* By exchange of numbers, or on iWARP by the CM. */
int xrc_connect(struct ep *ep, struct host *host, __u32 qp_num);
int xrc_connect_cm(struct ep *ep, struct host *host, __u32 qp_num);
int xrc_connect_qp(struct ep *ep, struct host *host, __u32 qp_num,
		   const struct qp_options *options);
/* Signalled, of one segment of the host's memory. */
int xrc_send(struct ep *ep, __u32 srq_num, __u64 wr_id, __u32 offset,
	     __u32 length);

#endif /* DAPX_UTILS_H */
