/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * <infiniband/verbs.h> with the XRC calls that OFED 1.x had, for programs that were written for those. With the flags of
 * 'pkg-config --cflags --libs dapx-ofed' it is found in front of libibverbs' own, which it includes.
 *
 * What is said of each function here is told at length by its manual page: ibv_open_xrc_domain(3),
 * ibv_create_xrc_srq(3), ibv_create_xrc_rcv_qp(3), ibv_reg_xrc_rcv_qp(3). Any thread may call any of them.
 */
#ifndef DAPX_OFED_INFINIBAND_VERBS_H
#define DAPX_OFED_INFINIBAND_VERBS_H

/* OFED's structure has a member more, at its end. */
#define ibv_qp_init_attr ibv_qp_init_attr_without_xrc
#include_next <infiniband/verbs.h>
#undef ibv_qp_init_attr

#ifdef __cplusplus
extern "C" {
#endif

/** An XRC domain. Made by ibv_open_xrc_domain(), and its until ibv_close_xrc_domain(). */
struct ibv_xrc_domain {
	struct ibv_context *context;
	uint32_t handle;
};

/** As libibverbs has it, and for IBV_QPT_XRC and receive queue pairs: the domain. */
struct ibv_qp_init_attr {
	void *qp_context;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;
	struct ibv_qp_cap cap;
	enum ibv_qp_type qp_type;
	int sq_sig_all;
	struct ibv_xrc_domain *xrc_domain;
};

/* The sending side; OFED's connected types were one. */
#define IBV_QPT_XRC IBV_QPT_XRC_SEND

/* Members that libibverbs' structures have by other names. */
#define xrc_remote_srq_num qp_type.xrc.remote_srqn	/* of struct ibv_send_wr */
#define xrc_srq_num handle				/* of struct ibv_srq, from ibv_create_xrc_srq() */
#define xrc_qp_num port_num				/* of struct ibv_async_event, element */

/** In event_type: the event is of the receive queue pair element.xrc_qp_num. It needs no acknowledgement. */
enum ibv_event_flags {
	IBV_XRC_QP_EVENT_FLAG = -0x7fffffff - 1,
};

/**
 * ibv_open_xrc_domain - open the domain of a file, or make it
 * @context: a device of dapx
 * @fd: a regular file, which remains the caller's and may be closed; -1 for a domain of no file
 * @oflag: 0, O_CREAT, or O_CREAT | O_EXCL, as of open(2); with @fd -1: O_CREAT
 *
 * To look for a domain of the file's inode and to make it is one step among all processes.
 *
 * Return: the domain; NULL and errno: EAGAIN (there is none, and no O_CREAT), EEXIST (there is one, and O_EXCL), EINVAL
 * (@oflag, no regular file, no device), EBADF, EACCES (the file may not be written), EDQUOT, ENOMEM, EOPNOTSUPP (not a
 * device of dapx).
 */
struct ibv_xrc_domain *ibv_open_xrc_domain(struct ibv_context *context, int fd, int oflag);

/**
 * ibv_close_xrc_domain - close a domain; the last one to close it ends it
 * @d: is gone if that succeeds
 *
 * Return: 0; EBUSY (it has queues or queue pairs of this process, or registrations of it), EINVAL.
 */
int ibv_close_xrc_domain(struct ibv_xrc_domain *d);

/**
 * ibv_create_xrc_srq - make a shared receive queue of a domain
 * @pd: of its receives, and of memory that peers reach by way of it
 * @xrc_domain: is used until ibv_destroy_srq()
 * @xrc_cq: where its receives complete
 * @srq_init_attr: sizes; what came out, which is not less, is written there
 *
 * Return: the queue, of which xrc_srq_num is its number for peers; NULL and errno, as ibv_create_srq() has it.
 */
struct ibv_srq *ibv_create_xrc_srq(struct ibv_pd *pd, struct ibv_xrc_domain *xrc_domain, struct ibv_cq *xrc_cq,
				   struct ibv_srq_init_attr *srq_init_attr);

/**
 * ibv_create_xrc_rcv_qp - make a receive queue pair, and register with it
 * @init_attr: of it, only xrc_domain counts
 * @xrc_rcv_qpn: its number is written there
 *
 * Return: 0 or an errno.
 */
int ibv_create_xrc_rcv_qp(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn);

/**
 * ibv_modify_xrc_rcv_qp - connect it: a step to INIT, then one to RTR; one to RTS may follow
 * @xrc_domain: the one that it is of
 * @qp_num: its number
 * @attr: as for ibv_modify_qp()
 * @attr_mask: likewise
 *
 * Return: 0; EINVAL (no such number, or not a step from its state), EACCES (this process is not registered), or another
 * errno.
 */
int ibv_modify_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t qp_num, struct ibv_qp_attr *attr,
			  int attr_mask);

/**
 * ibv_query_xrc_rcv_qp - what was set, and its state
 * @xrc_domain: the one that it is of
 * @qp_num: its number
 * @attr: is written
 * @attr_mask: what is asked for; all is told
 * @init_attr: is written
 *
 * Return: 0; EINVAL (no such number), or another errno.
 */
int ibv_query_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t qp_num, struct ibv_qp_attr *attr,
			 int attr_mask, struct ibv_qp_init_attr *init_attr);

/**
 * ibv_reg_xrc_rcv_qp - register with it: it lives as long as a process is
 * @xrc_domain: the one that it is of
 * @qp_num: its number
 *
 * To register twice is to register once.
 *
 * Return: 0; EINVAL (no such number in this domain: it may have died), or another errno.
 */
int ibv_reg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t qp_num);

/**
 * ibv_unreg_xrc_rcv_qp - the registration ends; with the last one, the queue pair does
 * @xrc_domain: the one that it is of
 * @qp_num: its number
 *
 * Return: 0; EINVAL (no such number, or not registered).
 */
int ibv_unreg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t qp_num);

#ifdef __cplusplus
}
#endif

/* Functions of libibverbs that take the structure with a member less. */
static inline struct ibv_qp *dapx_ofed_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return ibv_create_qp(pd, (struct ibv_qp_init_attr_without_xrc *)attr);
}
#define ibv_create_qp(pd, attr) dapx_ofed_create_qp(pd, attr)

static inline int dapx_ofed_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
				     struct ibv_qp_init_attr *init_attr)
{
	return ibv_query_qp(qp, attr, attr_mask, (struct ibv_qp_init_attr_without_xrc *)init_attr);
}
#define ibv_query_qp(qp, attr, attr_mask, init_attr) dapx_ofed_query_qp(qp, attr, attr_mask, init_attr)

#endif /* DAPX_OFED_INFINIBAND_VERBS_H */
