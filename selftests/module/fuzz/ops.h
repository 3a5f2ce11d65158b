/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The operations of programs: a process with a context on each of two devices, and objects that
 * its threads make, join, change, use and free. Results are not looked at.
 */
#ifndef DAPX_FUZZ_OPS_H
#define DAPX_FUZZ_OPS_H

#include "../harness/ep.h"
#include "../harness/faults.h"
#include "../harness/srq.h"
#include "program.h"

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#endif

#define EVDS 4
#define SRQS 3
#define EPS 4
/* Receive queues: those of SRQs, and endpoints' own. */
#define QUEUES (SRQS + EPS)
#define RECV_QPS 2
#define CMS 3
#define REQUESTS 2
#define WINDOWS 2
/* The second argument of op_recv_qp() that unregisters. */
#define LEAVE 7
/* A byte that names an object names a wrong one from here on. */
#define ODD_HANDLE 0xe0

/* An object that was freed, and how far the events had come when that was done. */
struct gone {
	__u32 handle;
	struct {
		const void *map;	/* of the ring */
		__u32 tail;
	} evd[EVDS];
};

/*
 * The objects of one context. Threads use all of this without locks, as a careless program
 * would. Rings stay mapped until the process ends, so that it seldom ends by a SIGSEGV.
 */
struct side {
	struct host host;
	__u8 gid[16];
	int gid_index;
	struct evd evd[EVDS];
	struct srq srq[SRQS];
	__u32 srq_num[SRQS];
	struct ep ep[EPS];
	__u32 recv_qp[RECV_QPS];	/* numbers of XRC receive queue pairs */
	__u32 cm[CMS];
	__u16 port;			/* of the listener that was made last */
	__u32 request[REQUESTS];
	__u32 window[WINDOWS];
	__u32 window_key;
	__u32 seen[QUEUES];		/* heads when the threads last met */
	struct gone gone[64];		/* the first ones that were freed */
	unsigned int num_gone;
	bool scribbled;			/* over an EVD's ring: its events mean nothing */
};

/* A thread, and the sides of the operation that it performs. */
struct actor {
	struct side *side;
	struct side *other;
	struct nth nth;
};

/*
 * A process runs so many programs, one after the other: it takes longer to begin and to end than
 * most of them.
 */
#define LIFE_MAX 16

struct life {
	unsigned int length;
	struct program programs[LIFE_MAX];
};

/* What the process leaves in memory that it shares with its parent. */
struct life_result {
	unsigned int begun;		/* programs */
	char finding[128];		/* what was wrong, if anything was */
	struct {
		unsigned int edges;	/* that this program was the first to reach */
		unsigned int length;	/* up to the operation that reached the last of them */
	} programs[LIFE_MAX];
};

/* Once, before any fork. */
int ops_prepare(void);
/*
 * Runs the programs in this process, with the buffers of coverage.h from number @buffer on, as
 * long as they leave it what it needs. -1: a device is not there.
 */
int ops_live(const struct life *life, unsigned int buffer, struct life_result *result);

/* ---- for operations ---- */

#define OP(name, ...) void op_##name(struct actor *me, const __u8 *arg);
#include "ops_list.h"
#undef OP

extern int eventfd_of_all;
extern bool faults_work;
/* Others follow, which need the process and its contexts. */
extern bool is_last_program;

__u64 odd_value(__u8 byte);
__u32 odd_handle(const struct actor *me, __u8 byte);
__u32 some_evd(const struct actor *me, __u8 byte);
__u32 some_mr(const struct actor *me, __u8 byte);
struct ep *some_ep(const struct actor *me, __u8 byte);
struct ring *some_queue(const struct actor *me, __u8 byte, __u32 *handle);
__u32 state_of(const struct side *side, unsigned int kind, __u8 number);
__u32 qp_number_of(const struct side *side, const struct ep *ep);
/* Takes a queue pair of an endpoint to this state, and to RTR towards a queue pair of @to. */
void ep_step(const struct side *side, __u32 ep, __u32 state, const struct side *to, __u32 qp_num);
/* Whether this event, number @index of the EVD, came after its object was gone. */
bool is_of_gone(const struct side *side, const struct evd *evd, __u32 index,
		const struct dapx_event *event);
void free_handle(const struct actor *me, __u32 handle, __u32 flags);
void schedule_thread(int policy, bool cpu0, bool cpu1);

/* ---- scenes.c: the commands of abi.c ---- */

/* With the sides' hosts; by one thread at a time. */
int scenes_set_up(const struct host *a, const struct host *b);
/* The scene of this number, with some of its members changed: which ones, and to what. */
void scenes_play(unsigned int number, const __u8 *members, const __u64 *values, unsigned int n);

#endif /* DAPX_FUZZ_OPS_H */
