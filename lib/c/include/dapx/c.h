/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libdapx-c, for C and for what is built on C: opaque objects, and functions dapxc_*.
 * The ABI stays: a program that was compiled with this header works with every later
 * version of the library.
 *
 * A thin layer over the C++ classes, which say more of each object; structs, flags
 * and numbers are those of <dapx/dapx.h>, which also says what each errno means.
 * Documentation/xrc-ofed.rst: what OFED's XRC calls are here.
 *
 * Results
 *   What makes an object returns it, or NULL with errno. All else returns 0 or an
 *   errno, positive; getters return 0 for NULL. EINVAL is also the answer to NULL
 *   in the place of an object, or of memory that is needed. Nothing is thrown.
 *   dapxc_error_text() has a sentence for a person. ENOMEM: out of memory; never does
 *   the program end for that.
 *
 * Lifetime
 *   dapxc_*_free() takes the object back, and the pointer is invalid then, when it
 *   returns 0 or EIO (the device was removed: nothing is left to be freed in the
 *   kernel). Else it is as before: EBUSY while others use it, so free users first. Of
 *   what the kernel has freed already, as a request whose listener was freed, only the
 *   memory is left to be freed: 0.
 *   Objects keep their context's file open, also after dapxc_close().
 *
 * Threads
 *   Any function from any thread at any time, while nobody frees the object; but one
 *   thread at a time posts requests to an endpoint, one posts receives to an endpoint
 *   or SRQ, and one takes events out of an EVD or resizes it. After fork() a child
 *   needs a context of its own: EPERM, of posting and polling, too.
 *
 * Structs of <dapx/dapx.h> that begin with @size are passed to the module as they are:
 *   begin with struct dapx_srq_query query = { .size = sizeof(query) };
 *   the library fills in the object's handle. So a struct may grow in later versions.
 */
#ifndef DAPX_C_H
#define DAPX_C_H

#include <dapx/dapx.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DAPXC_API __attribute__((visibility("default")))

struct dapxc_context;
struct dapxc_pd;
struct dapxc_mr;
struct dapxc_evd;
struct dapxc_srq;
struct dapxc_xrcd;
struct dapxc_ep;
struct dapxc_rmr;
struct dapxc_cm;

/*
 * Why the last call of this thread failed that did, posting and polling aside: cause and
 * remedy, ready for "program: %s\n". "" if none did. Valid till this thread's next call.
 */
DAPXC_API const char *dapxc_error_text(void);

/* ------------------------------------------------------------------------ context */

/*
 * Opens @node (NULL: /dev/dapx), and attaches it to an RDMA device, such as "rxe0".
 * errno: ENOENT (the module is not loaded), EACCES, ENODEV, EOPNOTSUPP (a driver that
 * is not known to be safe), ENOMEM.
 */
DAPXC_API struct dapxc_context *dapxc_open(const char *device, const char *node);

/* The file is closed when the objects made in it are freed, too. */
DAPXC_API int dapxc_close(struct dapxc_context *context);

/* DAPX_INFO; DAPX_QUERY_DEVICE. */
DAPXC_API int dapxc_query_module(const struct dapxc_context *context, struct dapx_info *info);
DAPXC_API int dapxc_query_device(const struct dapxc_context *context,
				 struct dapx_query_device *query);

/* -------------------------------------------------------------- memory: PD and MR */

/* errno: EDQUOT, ENOMEM, EIO; so for all that is made. */
DAPXC_API struct dapxc_pd *dapxc_pd_create(const struct dapxc_context *context,
					   uint64_t user_data);
/* For struct dapx_ep_modify. */
DAPXC_API uint32_t dapxc_pd_handle(const struct dapxc_pd *pd);
DAPXC_API int dapxc_pd_free(struct dapxc_pd *pd);

/*
 * Registers memory, which remains the caller's. @access: enum dapx_access. @flags: enum
 * dapx_mr_flags; DAPX_MR_XRC if it is for XRC, too.
 * errno: ENOMEM (also RLIMIT_MEMLOCK), EFAULT, EACCES, EOVERFLOW, EINVAL, EOPNOTSUPP.
 */
DAPXC_API struct dapxc_mr *dapxc_mr_create(const struct dapxc_pd *pd, void *addr,
					   size_t length, uint32_t access, uint32_t flags,
					   uint64_t user_data);
/* For struct dapx_sge. */
DAPXC_API uint32_t dapxc_mr_handle(const struct dapxc_mr *mr);
/* For peers; 0 without remote rights. */
DAPXC_API uint32_t dapxc_mr_rkey(const struct dapxc_mr *mr);
/*
 * Makes it one that is also for XRC, as DAPX_MR_XRC does at its creation; no effect if it is
 * already. errno of dapxc_mr_create(); on failure it stays what it was.
 */
DAPXC_API int dapxc_mr_enable_xrc(struct dapxc_mr *mr);
/* Afterwards not one byte changes any more. */
DAPXC_API int dapxc_mr_free(struct dapxc_mr *mr);

/* --------------------------------------------------------------------- events: EVD */

/* @depth: events, rounded up. @flags: enum dapx_evd_flags. errno: EINVAL, EOPNOTSUPP. */
DAPXC_API struct dapxc_evd *dapxc_evd_create(const struct dapxc_context *context,
					     uint32_t depth, uint32_t flags,
					     uint64_t user_data);

/*
 * Takes up to @max events, the oldest first; *@count: so many, which may be 0. No system
 * call, unless events wait in the kernel for room. EIO: none is left, and none will come:
 * the device was removed, or the ring overwritten.
 */
DAPXC_API int dapxc_evd_poll(struct dapxc_evd *evd, struct dapx_event *events, size_t max,
			     size_t *count);

/*
 * Waits until @threshold events are there; takes none. @flags: enum dapx_wait_flags.
 * @deadline: nanoseconds of CLOCK_MONOTONIC, or DAPX_NO_DEADLINE. *@count, if not NULL:
 * events that are there. Any number of threads may wait. There is nothing to arm:
 * what came before the call counts.
 * ETIMEDOUT, EINTR (a signal), ECANCELED (freed), EINVAL, EIO.
 */
DAPXC_API int dapxc_evd_wait(struct dapxc_evd *evd, uint32_t flags, uint32_t threshold,
			     uint64_t deadline, uint32_t *count);

/*
 * Has an eventfd(2), which remains the caller's, signalled once for each event from now
 * on that is not quiet; -1 for none. There is nothing to arm either, but poll until there
 * is no event before sleeping on it. EBADF or EINVAL: no eventfd.
 */
DAPXC_API int dapxc_evd_set_eventfd(struct dapxc_evd *evd, int eventfd);

/*
 * As dapxc_evd_set_eventfd(), which it replaces, but signalled once for each
 * dapxc_evd_arm(). EOPNOTSUPP: an older module.
 */
DAPXC_API int dapxc_evd_set_eventfd_once(struct dapxc_evd *evd, int eventfd);
/*
 * Has the next event of those that @what (enum dapx_arm) names signal the eventfd. Events
 * that are there already do not: poll until there is none before sleeping on it. Any
 * thread, but not while another resizes the EVD. EINVAL: another @what.
 */
DAPXC_API int dapxc_evd_arm(struct dapxc_evd *evd, uint32_t what);

/*
 * EBUSY: more events than that are unread. ENOMEM: nothing changed; or, if dapxc_evd_poll()
 * says EIO then, the new ring could not be mapped, and has to be resized once more.
 */
DAPXC_API int dapxc_evd_resize(struct dapxc_evd *evd, uint32_t depth);

/*
 * Puts in an event of type DAPX_EVENT_SOFTWARE: also to wake who waits
 * for one event; a wait for more counts it as one of them. EAGAIN: full.
 */
DAPXC_API int dapxc_evd_post(struct dapxc_evd *evd, uint64_t data0, uint64_t data1);

/* As in DAPX_QUERY_OBJECT, and in queries of what uses it. */
DAPXC_API uint32_t dapxc_evd_handle(const struct dapxc_evd *evd);
DAPXC_API int dapxc_evd_free(struct dapxc_evd *evd);

/* --------------------------------------------------------------------- XRC domains */

/*
 * Opens the XRC domain of @fd, a regular file, or with -1 one of the caller's own.
 * @oflag: 0, O_CREAT, or O_CREAT | O_EXCL; with -1 O_CREAT.
 * errno: EINVAL, EBADF, ENOENT (there is none), EEXIST, EACCES (a file of others that
 * may not be written).
 */
DAPXC_API struct dapxc_xrcd *dapxc_xrcd_open(const struct dapxc_context *context, int fd,
					     int oflag, uint64_t user_data);
DAPXC_API uint32_t dapxc_xrcd_handle(const struct dapxc_xrcd *xrcd);
/* As dapxc_*_free(). EBUSY: queues, endpoints or registrations of this context use it. */
DAPXC_API int dapxc_xrcd_close(struct dapxc_xrcd *xrcd);

/* ----------------------------------------------------------- shared receive queues */

/*
 * For posting. LATER: not to be shown to the module before the next call without it. QUIET: of
 * receives, as DAPX_RECV_QUIET, which the module has to know (DAPX_FEATURE_QUIET).
 */
enum dapxc_post_flags {
	DAPXC_POST_LATER = 1 << 0,
	DAPXC_POST_QUIET = 1 << 1,
};

/*
 * A plain one. @depth: receives, rounded up. @max_sge: segments of each. @evd: where its
 * asynchronous events go, or NULL. errno: EOPNOTSUPP (the device has none), EINVAL.
 */
DAPXC_API struct dapxc_srq *dapxc_srq_create(const struct dapxc_pd *pd,
					     const struct dapxc_evd *evd, uint32_t depth,
					     uint32_t max_sge, uint64_t user_data);

/* One of a domain. @evd: where its receives complete, and its asynchronous events go. */
DAPXC_API struct dapxc_srq *dapxc_srq_create_xrc(const struct dapxc_xrcd *xrcd,
						 const struct dapxc_pd *pd,
						 const struct dapxc_evd *evd,
						 uint32_t depth, uint32_t max_sge,
						 uint64_t user_data);

/*
 * Posts a receive. @flags: enum dapxc_post_flags. EAGAIN: the queue is full. EINVAL: more
 * segments than the queue was made for. After any other error it is in the queue, which
 * is of no more use.
 */
DAPXC_API int dapxc_srq_post_recv(struct dapxc_srq *srq, uint64_t wr_id,
				  const struct dapx_sge *segments, uint32_t num_sge,
				  uint32_t flags);
/* Shows the module what was posted with DAPXC_POST_LATER. */
DAPXC_API int dapxc_srq_submit(struct dapxc_srq *srq);

/*
 * DAPX_SRQ_RESIZE. EBUSY: more receives than that wait. ENOMEM: nothing changed; or, if
 * posting says EINVAL then, the new ring could not be mapped, and has to be resized once
 * more. Nobody posts meanwhile.
 */
DAPXC_API int dapxc_srq_resize(struct dapxc_srq *srq, uint32_t depth);
/* DAPX_SRQ_MODIFY. EBADFD: it has no EVD. EINVAL: more than its depth. */
DAPXC_API int dapxc_srq_set_limit(struct dapxc_srq *srq, uint32_t receives);
DAPXC_API int dapxc_srq_query(const struct dapxc_srq *srq, struct dapx_srq_query *query);
DAPXC_API uint32_t dapxc_srq_handle(const struct dapxc_srq *srq);
/* For peers; 0 of a plain one. */
DAPXC_API uint32_t dapxc_srq_number(const struct dapxc_srq *srq);
DAPXC_API int dapxc_srq_free(struct dapxc_srq *srq);

/* ---------------------------------------------------------- XRC receive queue pairs */

/*
 * They belong to the domain and are named by their numbers; there are no objects of them
 * here. A queue pair ends with its last registration: dapxc_xrc_qp_unregister(), or the
 * end of the context's file. EINVAL: the domain has none of this number (any more).
 */

/*
 * Makes one, and registers with it. *@qp_num: its number. @evd: where its events go, or
 * NULL.
 */
DAPXC_API int dapxc_xrc_qp_create(const struct dapxc_xrcd *xrcd, const struct dapxc_evd *evd,
				  uint64_t user_data, uint32_t *qp_num);
/* Nothing changes if the context is registered with it already. */
DAPXC_API int dapxc_xrc_qp_register(const struct dapxc_xrcd *xrcd, uint32_t qp_num,
				    const struct dapxc_evd *evd, uint64_t user_data);
/* EINVAL also if the context is not registered with it. */
DAPXC_API int dapxc_xrc_qp_unregister(const struct dapxc_xrcd *xrcd, uint32_t qp_num);
/*
 * Ends its connection for all that are registered: each has DAPX_ASYNC_XRC_QP_DISCONNECTED.
 * EACCES: not registered with it. EBADFD: not connected, or ended already.
 */
DAPXC_API int dapxc_xrc_qp_disconnect(const struct dapxc_xrcd *xrcd, uint32_t qp_num);
/*
 * Connects it by exchange of numbers: DAPX_QP_INIT, DAPX_QP_RTR; DAPX_QP_RTS may follow.
 * EACCES: not registered with it. EBADFD: no step from its state. EOPNOTSUPP: iWARP.
 */
DAPXC_API int dapxc_xrc_qp_modify(const struct dapxc_xrcd *xrcd, uint32_t qp_num,
				  const struct dapx_qp_attr *step);
/*
 * Connects it by the CM. @request: one of an endpoint of XRC (dapx_cm_query.out_xrc); with
 * 0 it is gone. EPROTO: it is of another endpoint. EACCES, EBADFD: as above.
 */
DAPXC_API int dapxc_xrc_qp_accept(const struct dapxc_xrcd *xrcd, uint32_t qp_num,
				  struct dapxc_cm *request, const void *private_data,
				  size_t private_data_len);
/* Whether registered or not. */
DAPXC_API int dapxc_xrc_qp_query(const struct dapxc_xrcd *xrcd, uint32_t qp_num,
				 struct dapx_xrc_qp_query *query);

/* ----------------------------------------------------------------------- endpoints */

/*
 * An endpoint of RC. @recv_evd: may be NULL if it has no receives. @srq: a plain one, or
 * NULL. @attr: its sizes. errno: EINVAL, EOPNOTSUPP.
 */
DAPXC_API struct dapxc_ep *dapxc_ep_create(const struct dapxc_pd *pd,
					   const struct dapxc_evd *request_evd,
					   const struct dapxc_evd *recv_evd,
					   const struct dapxc_evd *connect_evd,
					   const struct dapxc_srq *srq,
					   const struct dapx_ep_attr *attr,
					   uint64_t user_data);

/* The sending side of XRC. @xrcd: a domain that it keeps from being closed, or NULL. */
DAPXC_API struct dapxc_ep *dapxc_ep_create_xrc(const struct dapxc_pd *pd,
					       const struct dapxc_evd *request_evd,
					       const struct dapxc_evd *connect_evd,
					       const struct dapxc_xrcd *xrcd,
					       const struct dapx_ep_attr *attr,
					       uint64_t user_data);

/*
 * Posts a request: @wr as in the ring, with @remote_srqn for XRC; @payload: wr->num_sge
 * segments (struct dapx_sge), or with DAPX_SEND_INLINE wr->inline_len bytes; not looked
 * at after the call. @flags: enum dapxc_post_flags.
 * EAGAIN: the ring is full. EBADFD: not connected. EINVAL: more than it was made for.
 * After any other error it is in the ring, and the endpoint is of no more use.
 */
DAPXC_API int dapxc_ep_post_send(struct dapxc_ep *ep, const struct dapx_send_wr *wr,
				 const void *payload, uint32_t flags);
DAPXC_API int dapxc_ep_submit(struct dapxc_ep *ep);
/* As dapxc_srq_post_recv(). EINVAL also of an endpoint without receives. */
DAPXC_API int dapxc_ep_post_recv(struct dapxc_ep *ep, uint64_t wr_id,
				 const struct dapx_sge *segments, uint32_t num_sge,
				 uint32_t flags);
DAPXC_API int dapxc_ep_submit_recv(struct dapxc_ep *ep);

/*
 * DAPX_EP_RESIZE: other sizes for an endpoint that is not connected, and to which nothing is
 * posted. @srq: a plain one, or NULL. EBADFD: it is, or something is. EOPNOTSUPP: one of XRC.
 * ENOMEM: as of dapxc_srq_resize(). Nobody posts meanwhile.
 */
DAPXC_API int dapxc_ep_resize(struct dapxc_ep *ep, const struct dapx_ep_attr *attr,
			      const struct dapxc_srq *srq);
/*
 * DAPX_EP_MODIFY: sets what @changes->mask names, all or nothing. @changes->size is the caller's
 * to set; the call sets its ep. EBADFD: not in this state.
 */
DAPXC_API int dapxc_ep_modify(struct dapxc_ep *ep, struct dapx_ep_modify *changes);
/* Connects it by exchange of numbers: DAPX_QP_INIT, DAPX_QP_RTR, DAPX_QP_RTS. */
DAPXC_API int dapxc_ep_modify_qp(struct dapxc_ep *ep, const struct dapx_qp_attr *step);

/*
 * NULL in its place: no deadline, 7, 7, and no private data. It may grow: begin with
 * { .size = sizeof(options), .deadline = DAPX_NO_DEADLINE, ... }. E2BIG: a member of a
 * later version is set, which this library does not have.
 */
struct dapxc_connect_options {
	uint32_t size;			/* of the struct, as the caller knows it */
	uint8_t retry_count;		/* 0 to 7 */
	uint8_t rnr_retry_count;	/* 0 to 7; 7 for without end */
	uint16_t private_data_len;	/* bytes */
	uint64_t deadline;		/* as of dapxc_evd_wait() */
	const void *private_data;	/* for the listener */
};

/*
 * Begins to connect; a connection event tells the outcome. After any other than
 * DAPX_CONNECTION_ESTABLISHED it takes a dapxc_ep_reset() before the next. @source: NULL
 * for what the routing table says. EBADFD (state), EINVAL: also more than 56 bytes of
 * private data, 48 of an endpoint of XRC; dapx_query_device has the numbers.
 */
DAPXC_API int dapxc_ep_connect(struct dapxc_ep *ep, const struct sockaddr *destination,
			       const struct sockaddr *source,
			       const struct dapxc_connect_options *options);
/* The same by a CM id whose route is resolved, and which is freed after the endpoint. */
DAPXC_API int dapxc_ep_connect_cm(struct dapxc_ep *ep, const struct dapxc_cm *cm,
				  const struct dapxc_connect_options *options);
/*
 * Accepts a request, which is gone with 0. EPROTO: it is of an endpoint of XRC. EOPNOTSUPP: @ep is
 * one.
 */
DAPXC_API int dapxc_ep_accept(struct dapxc_ep *ep, struct dapxc_cm *request,
			      uint8_t rnr_retry_count, const void *private_data,
			      size_t private_data_len);
/*
 * The same if the program takes the queue pair through its states: see DAPX_CONNECT_STEPS. What
 * dapxc_ep_modify_qp() needs is in dapx_cm_query.out_qp. EOPNOTSUPP: iWARP, or an endpoint of XRC.
 */
DAPXC_API int dapxc_ep_connect_by_steps(struct dapxc_ep *ep, const struct dapxc_cm *cm,
					const struct dapxc_connect_options *options);
DAPXC_API int dapxc_ep_accept_by_steps(struct dapxc_ep *ep, struct dapxc_cm *request,
				       uint8_t rnr_retry_count, const void *private_data,
				       size_t private_data_len);
/*
 * Answers the peer that accepted, by steps, after that to DAPX_QP_RTS. EBADFD: it has not, or the
 * step is to be taken first.
 */
DAPXC_API int dapxc_ep_establish(struct dapxc_ep *ep);
/* @flags: enum dapx_disconnect_flags. */
DAPXC_API int dapxc_ep_disconnect(struct dapxc_ep *ep, uint32_t flags);
/*
 * Nobody posts meanwhile. Events that are in an EVD's ring stay there; completions that
 * were not yet never come, and what they are of is as if flushed.
 */
DAPXC_API int dapxc_ep_reset(struct dapxc_ep *ep);

DAPXC_API int dapxc_ep_query(const struct dapxc_ep *ep, struct dapx_ep_query *query);
DAPXC_API uint32_t dapxc_ep_handle(const struct dapxc_ep *ep);
DAPXC_API uint32_t dapxc_ep_qp_num(const struct dapxc_ep *ep);
/* enum dapx_ep_state; no system call. */
DAPXC_API uint32_t dapxc_ep_state(const struct dapxc_ep *ep);
/* EBADFD: reserved for a listener, or a request for it waits. */
DAPXC_API int dapxc_ep_free(struct dapxc_ep *ep);

/* ---------------------------------------------------- remote memory regions (RMRs) */

/* A window of an MR, which peers can use until it is taken back; not bound yet. */
DAPXC_API struct dapxc_rmr *dapxc_rmr_create(const struct dapxc_pd *pd, uint64_t user_data);

/*
 * Binds it to @length bytes, not 0, of @mr from @addr on, instead of what it is bound to.
 * @access: enum dapx_access, remote rights only; to write, and for atomics, @mr needs
 * DAPX_ACCESS_LOCAL_WRITE. @flags: enum dapx_bind_flags. @ep: one of RC, of the same PD, among
 * whose requests it takes its place; it publishes those that were posted with DAPXC_POST_LATER.
 * It completes on the request EVD with opcode DAPX_OP_RMR_BIND and @wr_id, and from then on
 * *@rkey is valid: a new key each time.
 * EBADFD: not connected. EINVAL: outside @mr, or another PD. EACCES: to write an MR that may not
 * be written. EAGAIN: too many binds wait. EFAULT: not mapped any more. ENOMEM (also
 * RLIMIT_MEMLOCK), EOVERFLOW, EOPNOTSUPP (local rights; an endpoint of XRC).
 * Threads: as posting requests to @ep.
 */
DAPXC_API int dapxc_rmr_bind(struct dapxc_rmr *rmr, struct dapxc_ep *ep,
			     const struct dapxc_mr *mr, const void *addr, size_t length,
			     uint32_t access, uint32_t flags, uint64_t wr_id, uint32_t *rkey);
/* Takes the window back, in its place among the requests of @ep. As dapxc_rmr_bind(). */
DAPXC_API int dapxc_rmr_unbind(struct dapxc_rmr *rmr, struct dapxc_ep *ep, uint32_t flags,
			       uint64_t wr_id);
/* @query->size and @query->mask (enum dapx_rmr_field) are the caller's to set. */
DAPXC_API int dapxc_rmr_query(const struct dapxc_rmr *rmr, struct dapx_rmr_query *query);
DAPXC_API uint32_t dapxc_rmr_handle(const struct dapxc_rmr *rmr);
/*
 * Takes the window back at once, and frees it. Final: afterwards not one byte of it changes any
 * more, also by what was under way.
 */
DAPXC_API int dapxc_rmr_free(struct dapxc_rmr *rmr);

/* -------------------------------------------------------------------------- CM ids */

DAPXC_API struct dapxc_cm *dapxc_cm_create(const struct dapxc_evd *evd, uint64_t user_data);
/*
 * Sets the options that @options->mask names, all or none. @options->size is the caller's to set;
 * the call sets its cm. EBADFD (state), EINVAL, EOPNOTSUPP (an ack timeout on iWARP).
 */
DAPXC_API int dapxc_cm_modify(struct dapxc_cm *cm, struct dapx_cm_modify *options);
/* Port 0: any free one, which dapxc_cm_query() tells. EADDRINUSE, EADDRNOTAVAIL. */
DAPXC_API int dapxc_cm_bind(struct dapxc_cm *cm, const struct sockaddr *address);
/* Takes requests. @backlog: so many may wait; 0 for the module's limit. */
DAPXC_API int dapxc_cm_listen(struct dapxc_cm *cm, uint32_t backlog);
/*
 * Both begin what a CM event ends, which is to be acknowledged. @source may be NULL. @deadline:
 * DAPX_NO_DEADLINE for 4 seconds.
 */
DAPXC_API int dapxc_cm_resolve_address(struct dapxc_cm *cm, const struct sockaddr *destination,
				       const struct sockaddr *source, uint64_t deadline);
DAPXC_API int dapxc_cm_resolve_route(struct dapxc_cm *cm, uint64_t deadline);
/*
 * The request that @event, of type DAPX_EVENT_CONNECT_REQUEST, announces; acknowledges the
 * event. To be done once for each.
 */
DAPXC_API struct dapxc_cm *dapxc_cm_request(struct dapxc_cm *listener,
					    const struct dapx_event *event);
/*
 * Makes a request an id of its own, which outlives its listener. If the peer gives up before the
 * answer, DAPX_CM_REQUEST_ENDED comes to @evd. EBADFD: no request, answered, or taken already.
 * EINVAL: the listener has an endpoint for it.
 */
DAPXC_API int dapxc_cm_take(struct dapxc_cm *request, const struct dapxc_evd *evd,
			    uint64_t user_data);
DAPXC_API int dapxc_cm_query(const struct dapxc_cm *cm, struct dapx_cm_query *query);
/* Says no to a request, which is gone with 0. */
DAPXC_API int dapxc_cm_reject(struct dapxc_cm *request, const void *private_data,
			      size_t private_data_len);
/* Acknowledges so many CM events. */
DAPXC_API int dapxc_cm_ack(struct dapxc_cm *cm, uint32_t events);
DAPXC_API uint32_t dapxc_cm_handle(const struct dapxc_cm *cm);
/* Waits till all its events are acknowledged (EINTR: a signal). Rejects a request. */
DAPXC_API int dapxc_cm_free(struct dapxc_cm *cm);
/*
 * The same without acknowledgements: no event of it comes any more; one that is in the ring
 * already is to be ignored. EBUSY: an endpoint uses it.
 */
DAPXC_API int dapxc_cm_discard(struct dapxc_cm *cm);

#ifdef __cplusplus
}
#endif

#endif /* DAPX_C_H */
