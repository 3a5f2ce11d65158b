/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause) */
/*
 * dapx: the user-space interface of /dev/dapx
 *
 * This header alone defines the ABI.
 */
#ifndef _UAPI_DAPX_H
#define _UAPI_DAPX_H

#include <linux/ioctl.h>
#include <linux/socket.h>
#include <linux/types.h>

/**
 * DOC: General ioctl format
 *
 * Every command takes one struct whose first member, @size, is its length as the caller
 * knows it. A short struct is refused. A longer struct is accepted if the part that this
 * kernel does not know is zero. So libraries and modules of different versions work
 * together. The kernel writes members named @out_*, and only reads the others. Reserved
 * members must be zero.
 *
 * An open file is a context: it is attached to one RDMA device, and belongs to the
 * process (the address space) that opened it. Objects are named by handles, which are
 * never zero and are not reused soon.
 *
 * The errno identifies the kind of error:
 *
 *  - ENOTTY: unknown command
 *  - E2BIG: the struct is longer than this kernel knows, and the rest is not zero; or it
 *    is longer than a page
 *  - EINVAL: malformed: short struct, reserved member not zero, value out of range
 *  - EOPNOTSUPP: a flag or value that this kernel or this device does not support
 *  - EOVERFLOW: an address plus a length wraps around
 *  - EFAULT: a pointer that cannot be read or written
 *  - ENOENT: no such handle, or the object is of another class
 *  - EBADFD: the object's (or the context's) state does not permit it
 *  - EBUSY: in use by another object; nothing was changed
 *  - EPERM: the caller is not the process that opened the file
 *  - EACCES: the memory is not mapped with the requested rights; a port below 1024
 *    without privilege; a file that the caller neither owns nor may write; an XRC receive
 *    queue pair with which the context is not registered
 *  - EBADF: not an open descriptor
 *  - EEXIST: an object that was to be created exclusively exists already
 *  - EPROTO: one side of a connection speaks XRC, the other does not
 *  - ENODEV: no RDMA device of this name, or not in this network namespace
 *  - EIO: the device was removed; all that is left to do is close the file
 *  - ENOMEM: no memory, or more than RLIMIT_MEMLOCK
 *  - EDQUOT: a limit of the module (objects per context or per user) is reached
 *  - EAGAIN: there is no room in the ring now
 *  - EBADMSG: the indices in a ring are impossible
 *  - ENOTRECOVERABLE: a shared receive queue is out of service because one of its receives
 *    is malformed or names unsuitable memory; DAPX_ASYNC_SRQ_ERROR names the receive
 *  - ETIMEDOUT, EINTR: a wait ended before its condition was met
 *  - ECANCELED: the object was freed during the wait
 *  - EADDRNOTAVAIL, EADDRINUSE: as in bind(2)
 *
 * Times are absolute, in nanoseconds of CLOCK_MONOTONIC.
 */

#define DAPX_TYPE 0xDA

enum dapx_cmd {
	DAPX_CMD_INFO = 0x80,
	DAPX_CMD_ATTACH,
	DAPX_CMD_QUERY_DEVICE,
	DAPX_CMD_QUERY_OBJECT,
	DAPX_CMD_FREE,
	DAPX_CMD_DOORBELL,
	DAPX_CMD_PD_CREATE,
	DAPX_CMD_MR_CREATE,
	DAPX_CMD_EVD_CREATE,
	DAPX_CMD_EVD_WAIT,
	DAPX_CMD_EVD_RESIZE,
	DAPX_CMD_EVD_EVENTFD,
	DAPX_CMD_EVD_POST,
	DAPX_CMD_SRQ_CREATE,
	DAPX_CMD_EP_CREATE,
	DAPX_CMD_EP_QUERY,
	DAPX_CMD_EP_MODIFY,
	DAPX_CMD_EP_CONNECT,
	DAPX_CMD_EP_ACCEPT,
	DAPX_CMD_EP_DISCONNECT,
	DAPX_CMD_EP_RESET,
	DAPX_CMD_CM_CREATE,
	DAPX_CMD_CM_BIND,
	DAPX_CMD_CM_LISTEN,
	DAPX_CMD_CM_RESOLVE,
	DAPX_CMD_CM_QUERY,
	DAPX_CMD_CM_REJECT,
	DAPX_CMD_CM_ACK,
	DAPX_CMD_RMR_CREATE,
	DAPX_CMD_RMR_BIND,
	DAPX_CMD_RMR_QUERY,
	DAPX_CMD_XRCD_OPEN,
	DAPX_CMD_SRQ_MODIFY,
	DAPX_CMD_SRQ_QUERY,
	DAPX_CMD_XRC_QP_CREATE,
	DAPX_CMD_XRC_QP_REGISTER,
	DAPX_CMD_XRC_QP_UNREGISTER,
	DAPX_CMD_XRC_QP_MODIFY,
	DAPX_CMD_XRC_QP_ACCEPT,
	DAPX_CMD_XRC_QP_QUERY,
	DAPX_CMD_MR_MODIFY,
	DAPX_CMD_CM_TAKE,
	DAPX_CMD_CM_MODIFY,
	DAPX_CMD_XRC_QP_DISCONNECT,
	DAPX_CMD_SRQ_RESIZE,
	DAPX_CMD_EP_RESIZE,
	DAPX_CMD_EP_ESTABLISH,
};

#define DAPX_DEVICE_NAME_MAX 64
#define DAPX_PRIVATE_DATA_MAX 196
/* Wait forever. */
#define DAPX_NO_DEADLINE (~0ULL)

/**
 * enum dapx_object_type - Classes of objects
 * @DAPX_OBJECT_ANY: in a query or a free: any class
 * @DAPX_OBJECT_PD: protection domain (DAT: PZ)
 * @DAPX_OBJECT_MR: memory region (DAT: LMR)
 * @DAPX_OBJECT_EVD: event dispatcher, a ring of events
 * @DAPX_OBJECT_SRQ: shared receive queue
 * @DAPX_OBJECT_EP: endpoint
 * @DAPX_OBJECT_CM: connection manager id: active, listening, or a connection request
 *	that waits to be answered
 * @DAPX_OBJECT_RMR: remote memory region: a window of an MR, lent to peers
 * @DAPX_OBJECT_XRCD: a reference to an XRC domain
 * @DAPX_OBJECT_XRC_QP: a registration with an XRC receive queue pair
 */
enum dapx_object_type {
	DAPX_OBJECT_ANY = 0,
	DAPX_OBJECT_PD = 1,
	DAPX_OBJECT_MR = 2,
	DAPX_OBJECT_EVD = 3,
	DAPX_OBJECT_SRQ = 4,
	DAPX_OBJECT_EP = 5,
	DAPX_OBJECT_CM = 6,
	DAPX_OBJECT_RMR = 7,
	DAPX_OBJECT_XRCD = 8,
	DAPX_OBJECT_XRC_QP = 9,
};

/**
 * enum dapx_feature - Bits of dapx_info.out_features
 * @DAPX_FEATURE_RC: endpoints for reliable connections
 * @DAPX_FEATURE_SRQ: plain shared receive queues
 * @DAPX_FEATURE_RMR: remote memory regions
 * @DAPX_FEATURE_XRC: XRC domains, receive queues and connections, on any device
 * @DAPX_FEATURE_QUIET: DAPX_SEND_QUIET, DAPX_RECV_QUIET, DAPX_BIND_QUIET
 */
enum dapx_feature {
	DAPX_FEATURE_RC = 1 << 0,
	DAPX_FEATURE_SRQ = 1 << 1,
	DAPX_FEATURE_RMR = 1 << 2,
	DAPX_FEATURE_XRC = 1 << 3,
	DAPX_FEATURE_QUIET = 1 << 4,
};

/**
 * struct dapx_info - ioctl(DAPX_INFO): what this module can do
 * @size: sizeof(struct dapx_info)
 * @flags: Must be 0
 * @out_features: enum dapx_feature
 * @out_max_objects: maximum number of objects of one context
 * @out_max_user_objects: maximum number of objects of all contexts of one user
 * @out_max_ring_depth: maximum number of entries of any ring
 * @out_max_sge: maximum number of segments of a work request
 * @out_max_inline: maximum number of bytes of inline data
 * @out_max_backlog: maximum number of connection requests that may wait on a listener
 *
 * Needs no device.
 */
struct dapx_info {
	__u32 size;
	__u32 flags;
	__aligned_u64 out_features;
	__u32 out_max_objects;
	__u32 out_max_user_objects;
	__u32 out_max_ring_depth;
	__u32 out_max_sge;
	__u32 out_max_inline;
	__u32 out_max_backlog;
};

#define DAPX_INFO _IO(DAPX_TYPE, DAPX_CMD_INFO)

/**
 * struct dapx_attach - ioctl(DAPX_ATTACH): bind the context to a device, once
 * @size: sizeof(struct dapx_attach)
 * @flags: Must be 0
 * @device: name of the RDMA device, NUL-terminated
 *
 * EOPNOTSUPP: the device's driver is not known to be safe for kernel-owned queues with user
 * memory.
 */
struct dapx_attach {
	__u32 size;
	__u32 flags;
	char device[DAPX_DEVICE_NAME_MAX];
};

#define DAPX_ATTACH _IO(DAPX_TYPE, DAPX_CMD_ATTACH)

/**
 * enum dapx_device_cap - Bits of dapx_query_device.out_caps
 * @DAPX_DEVICE_ATOMICS: compare-and-swap, fetch-and-add
 * @DAPX_DEVICE_SRQ: shared receive queues
 * @DAPX_DEVICE_IWARP: an iWARP device: no immediate data, no QP number exchange
 * @DAPX_DEVICE_IMM: immediate data
 * @DAPX_DEVICE_QP_EXCHANGE: endpoints can be connected by exchanging QP numbers
 * @DAPX_DEVICE_SOLICITED: the device distinguishes solicited receives (DAPX_EP_SOLICITED)
 * @DAPX_DEVICE_TIMEWAIT_EXIT: endpoints can be told of the end of the timewait state
 *	(DAPX_EP_TIMEWAIT_EXIT)
 */
enum dapx_device_cap {
	DAPX_DEVICE_ATOMICS = 1 << 0,
	DAPX_DEVICE_SRQ = 1 << 1,
	DAPX_DEVICE_IWARP = 1 << 2,
	DAPX_DEVICE_IMM = 1 << 3,
	DAPX_DEVICE_QP_EXCHANGE = 1 << 4,
	DAPX_DEVICE_SOLICITED = 1 << 5,
	DAPX_DEVICE_TIMEWAIT_EXIT = 1 << 6,
};

/**
 * struct dapx_query_device - ioctl(DAPX_QUERY_DEVICE)
 * @size: sizeof(struct dapx_query_device)
 * @flags: Must be 0
 * @out_device: name of the device
 * @out_caps: enum dapx_device_cap
 * @out_node_guid: as the driver reports it, in network byte order
 * @out_max_mr_size: bytes
 * @out_max_ep: maximum number of queue pairs of the device
 * @out_max_send_depth: maximum number of requests of an endpoint
 * @out_max_recv_depth: maximum number of receives of an endpoint
 * @out_max_srq_depth: maximum number of receives of a shared receive queue
 * @out_max_send_sge: maximum number of segments of a request
 * @out_max_recv_sge: maximum number of segments of a receive
 * @out_max_inline: maximum number of bytes of inline data
 * @out_max_rd_atomic: maximum number of reads and atomics in flight, as initiator
 * @out_max_dest_rd_atomic: the same, as responder
 * @out_max_msg_size: maximum number of bytes of one message
 * @out_ports: number of ports
 * @out_max_connect_data: maximum private data of a connect, in bytes, for IP addresses: 56;
 *	8 less with DAPX_EP_XRC
 * @out_max_accept_data: maximum private data of an accept, in bytes: 196; 8 less with
 *	DAPX_XRC_QP_ACCEPT
 * @out_max_reject_data: maximum private data of a reject, in bytes
 * @out_active_mtu: current MTU of the first port: bytes of data in a packet
 * @__reserved: Must be 0
 */
struct dapx_query_device {
	__u32 size;
	__u32 flags;
	char out_device[DAPX_DEVICE_NAME_MAX];
	__aligned_u64 out_caps;
	__aligned_u64 out_node_guid;
	__aligned_u64 out_max_mr_size;
	__u32 out_max_ep;
	__u32 out_max_send_depth;
	__u32 out_max_recv_depth;
	__u32 out_max_srq_depth;
	__u32 out_max_send_sge;
	__u32 out_max_recv_sge;
	__u32 out_max_inline;
	__u32 out_max_rd_atomic;
	__u32 out_max_dest_rd_atomic;
	__u32 out_max_msg_size;
	__u32 out_ports;
	__u16 out_max_connect_data;
	__u16 out_max_accept_data;
	__u16 out_max_reject_data;
	__u16 out_active_mtu;
	__u16 __reserved[2];
};

#define DAPX_QUERY_DEVICE _IO(DAPX_TYPE, DAPX_CMD_QUERY_DEVICE)

/**
 * enum dapx_query_flags - dapx_query_object.flags
 * @DAPX_QUERY_NEXT: the object with the next larger handle, so that a context's
 *	objects can be listed; ENOENT after the last
 */
enum dapx_query_flags {
	DAPX_QUERY_NEXT = 1 << 0,
};

/**
 * struct dapx_query_object - ioctl(DAPX_QUERY_OBJECT): what a handle names
 * @size: sizeof(struct dapx_query_object)
 * @flags: enum dapx_query_flags
 * @handle: the object; with DAPX_QUERY_NEXT: any number
 * @type: enum dapx_object_type; objects of other classes are skipped (ENOENT without
 *	DAPX_QUERY_NEXT)
 * @out_handle: the object
 * @out_type: its class
 * @out_users: number of objects that keep it from being freed
 * @out_state: endpoint: enum dapx_ep_state; CM id: enum dapx_cm_state; else 0
 * @out_user_data: as given at its creation
 */
struct dapx_query_object {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 type;
	__u32 out_handle;
	__u32 out_type;
	__u32 out_users;
	__u32 out_state;
	__aligned_u64 out_user_data;
};

#define DAPX_QUERY_OBJECT _IO(DAPX_TYPE, DAPX_CMD_QUERY_OBJECT)

/**
 * enum dapx_free_flags - dapx_free.flags
 * @DAPX_FREE_NOWAIT: CM ids: return EBUSY instead of waiting for acknowledgements
 * @DAPX_FREE_DISCARD: CM ids: do not require acknowledgements. In one step, the id stops
 *	delivering events, and its events that wait for room in the EVD are dropped. Events
 *	in the ring can still be read, and should be ignored
 */
enum dapx_free_flags {
	DAPX_FREE_NOWAIT = 1 << 0,
	DAPX_FREE_DISCARD = 1 << 1,
};

/**
 * struct dapx_free - ioctl(DAPX_FREE): free an object
 * @size: sizeof(struct dapx_free)
 * @flags: enum dapx_free_flags
 * @handle: the object
 * @type: its class; DAPX_OBJECT_ANY for any class
 *
 * EBUSY while other objects use the object. When the call returns 0, the handle is invalid,
 * and the device no longer accesses what belonged to the object.
 *
 * MR, RMR: the keys are dead, and not one byte changes any more. An MR is in use while a
 * window of it is bound, or while a bind of one waits in a request queue. An RMR can always
 * be freed; a bind of it that still waits then binds nothing.
 *
 * EP: EBADFD in the states RESERVED, PASSIVE_CONNECTION_PENDING and
 * TENTATIVE_CONNECTION_PENDING. In all others, a connection set-up is aborted, a connection is
 * broken, and no further event of the endpoint appears.
 *
 * CM: cancels pending operations. A connection request is rejected; so are all requests that
 * wait on a listener and were not taken. EBUSY while an endpoint is attached. The call waits
 * until the id's events are acknowledged; EINTR leaves the id unchanged.
 */
struct dapx_free {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 type;
};

#define DAPX_FREE _IO(DAPX_TYPE, DAPX_CMD_FREE)

/**
 * DOC: Rings
 *
 * A ring is memory of the module that the process maps. The kernel chooses its layout;
 * the create command returns the offsets. Indices are free-running 32-bit counters. The
 * consumer moves @head, the producer moves @tail; both are stored with release semantics,
 * and loaded with acquire semantics. The entry with index i is at entries_off + (i %
 * depth) * stride. If head and tail are more than @depth entries apart, the object that
 * owns the ring is broken.
 */

/**
 * struct dapx_ring_layout - Where things are in a ring's mapping
 * @mmap_offset: offset for mmap(2) of the context's descriptor
 * @mmap_size: length for mmap(2); PROT_READ | PROT_WRITE, MAP_SHARED
 * @head_off: __u32, consumer's index
 * @tail_off: __u32, producer's index
 * @flags_off: __u32, enum dapx_ring_flags, written by the kernel
 * @entries_off: first entry
 * @stride: bytes from one entry to the next
 * @depth: entries, a power of two
 * @arm_off: EVD rings: __u32, enum dapx_arm, written by the process to have the next event
 *	signal an eventfd with DAPX_EVENTFD_ONCE; 0 for rings that have no such word
 */
struct dapx_ring_layout {
	__aligned_u64 mmap_offset;
	__u32 mmap_size;
	__u32 head_off;
	__u32 tail_off;
	__u32 flags_off;
	__u32 entries_off;
	__u32 stride;
	__u32 depth;
	__u32 arm_off;
};

/**
 * enum dapx_ring_flags - The flags word of a ring
 * @DAPX_RING_BUSY: work rings: the kernel will look at the ring again by itself, so
 *	DAPX_DOORBELL is not needed. It does so at the next completion or, if the process
 *	has several unread events, within 100 microseconds. The process needs a full barrier
 *	between moving the tail and reading this flag
 * @DAPX_RING_BACKLOG: EVD rings: events wait in the kernel, for room or to be fetched;
 *	DAPX_DOORBELL on the EVD moves them into the ring. The process needs a full barrier
 *	between moving the head and reading this flag
 * @DAPX_RING_DEAD: the kernel no longer uses this ring: its object was freed, the device
 *	was removed, or the indices were impossible
 */
enum dapx_ring_flags {
	DAPX_RING_BUSY = 1 << 0,
	DAPX_RING_BACKLOG = 1 << 1,
	DAPX_RING_DEAD = 1 << 2,
};

/**
 * enum dapx_doorbell_flags - dapx_doorbell.flags
 * @DAPX_DOORBELL_SEND: endpoint: requests were published
 * @DAPX_DOORBELL_RECV: endpoint or SRQ: receives were published
 * @DAPX_DOORBELL_EVENTS: EVD: there is room for waiting events
 */
enum dapx_doorbell_flags {
	DAPX_DOORBELL_SEND = 1 << 0,
	DAPX_DOORBELL_RECV = 1 << 1,
	DAPX_DOORBELL_EVENTS = 1 << 2,
};

/**
 * struct dapx_doorbell - ioctl(DAPX_DOORBELL): look at a ring
 * @size: sizeof(struct dapx_doorbell)
 * @flags: enum dapx_doorbell_flags, at least one, matching the object's class
 * @handle: an endpoint, an SRQ or an EVD
 * @__reserved: Must be 0
 *
 * EBADFD: requests on an endpoint that is not connected and has not been (they stay in
 * the ring). An error of a single work request is reported by its completion, never here.
 */
struct dapx_doorbell {
	__u32 size;
	__u32 flags;
	__u32 handle;
	__u32 __reserved;
};

#define DAPX_DOORBELL _IO(DAPX_TYPE, DAPX_CMD_DOORBELL)

/**
 * struct dapx_pd_create - ioctl(DAPX_PD_CREATE): make a protection domain
 * @size: sizeof(struct dapx_pd_create)
 * @flags: Must be 0
 * @user_data: returned by queries
 * @out_pd: handle
 * @__reserved: Must be 0
 */
struct dapx_pd_create {
	__u32 size;
	__u32 flags;
	__aligned_u64 user_data;
	__u32 out_pd;
	__u32 __reserved;
};

#define DAPX_PD_CREATE _IO(DAPX_TYPE, DAPX_CMD_PD_CREATE)

/**
 * enum dapx_access - Rights on memory; local reading is always allowed
 * @DAPX_ACCESS_LOCAL_WRITE: receives, reads and atomics may write data here
 * @DAPX_ACCESS_REMOTE_WRITE: peers may write; needs LOCAL_WRITE
 * @DAPX_ACCESS_REMOTE_READ: peers may read
 * @DAPX_ACCESS_REMOTE_ATOMIC: peers may use atomics; needs LOCAL_WRITE
 */
enum dapx_access {
	DAPX_ACCESS_LOCAL_WRITE = 1 << 0,
	DAPX_ACCESS_REMOTE_WRITE = 1 << 1,
	DAPX_ACCESS_REMOTE_READ = 1 << 2,
	DAPX_ACCESS_REMOTE_ATOMIC = 1 << 3,
};

/**
 * enum dapx_mr_flags - dapx_mr_create.flags, dapx_mr_modify.flags
 * @DAPX_MR_XRC: use the MR for XRC, too: for receives of XRC SRQs, for requests of XRC
 *	endpoints, and for access by peers through an XRC SRQ of the same PD. The pages
 *	are pinned a second time, and count twice
 */
enum dapx_mr_flags {
	DAPX_MR_XRC = 1 << 0,
};

/**
 * struct dapx_mr_create - ioctl(DAPX_MR_CREATE): register memory
 * @size: sizeof(struct dapx_mr_create)
 * @flags: enum dapx_mr_flags
 * @pd: protection domain
 * @access: enum dapx_access
 * @addr: start of the range in the caller's address space
 * @length: bytes, not 0
 * @user_data: returned by queries
 * @out_mr: handle; work requests name memory by it
 * @out_rkey: what a peer needs, with the address; 0 without remote rights
 *
 * The pages are pinned and count against RLIMIT_MEMLOCK. EFAULT: not all of the range is
 * mapped. EACCES: it is not mapped with the rights that @access needs.
 */
struct dapx_mr_create {
	__u32 size;
	__u32 flags;
	__u32 pd;
	__u32 access;
	__aligned_u64 addr;
	__aligned_u64 length;
	__aligned_u64 user_data;
	__u32 out_mr;
	__u32 out_rkey;
};

#define DAPX_MR_CREATE _IO(DAPX_TYPE, DAPX_CMD_MR_CREATE)

/**
 * struct dapx_mr_modify - ioctl(DAPX_MR_MODIFY): add uses to an MR
 * @size: sizeof(struct dapx_mr_modify)
 * @flags: enum dapx_mr_flags: flags to add, at least one. A flag that the MR has already
 *	has no effect; none is removed
 * @mr: handle, which stays the same, as do the keys
 * @__reserved: Must be 0
 *
 * Fails as DAPX_MR_CREATE does: the pages pinned for XRC are those that are mapped in the
 * MR's range now. Work requests that are published after the call has returned can use
 * it.
 */
struct dapx_mr_modify {
	__u32 size;
	__u32 flags;
	__u32 mr;
	__u32 __reserved;
};

#define DAPX_MR_MODIFY _IO(DAPX_TYPE, DAPX_CMD_MR_MODIFY)

/**
 * enum dapx_event_type - dapx_event.type
 * @DAPX_EVENT_COMPLETION: a work request completed: @completion
 * @DAPX_EVENT_CONNECTION: an event of an endpoint's connection: @connection
 * @DAPX_EVENT_CONNECT_REQUEST: a peer requests a connection: @request
 * @DAPX_EVENT_CM: an event of a CM id without an endpoint: @cm
 * @DAPX_EVENT_ASYNC: an asynchronous event: @async
 * @DAPX_EVENT_SOFTWARE: posted by DAPX_EVD_POST: @software
 */
enum dapx_event_type {
	DAPX_EVENT_COMPLETION = 1,
	DAPX_EVENT_CONNECTION = 2,
	DAPX_EVENT_CONNECT_REQUEST = 3,
	DAPX_EVENT_CM = 4,
	DAPX_EVENT_ASYNC = 5,
	DAPX_EVENT_SOFTWARE = 6,
};

/**
 * enum dapx_status - Outcome of a work request
 * @DAPX_STATUS_SUCCESS: done
 * @DAPX_STATUS_FLUSHED: the connection has ended. The outcome of a request is unknown: the
 *	peer may have received all, some or none of it. A receive contains no message
 * @DAPX_STATUS_LOCAL_LENGTH: the lengths of message and buffer do not match
 * @DAPX_STATUS_LOCAL_OPERATION: malformed request
 * @DAPX_STATUS_LOCAL_PROTECTION: the memory is not registered, or not for this use
 * @DAPX_STATUS_BAD_RESPONSE: invalid response from the peer
 * @DAPX_STATUS_REMOTE_ACCESS: the peer's memory does not permit this access
 * @DAPX_STATUS_REMOTE_INVALID: the peer refused the request as invalid
 * @DAPX_STATUS_REMOTE_OPERATION: the peer could not carry out the request
 * @DAPX_STATUS_TRANSPORT: no response after all retries; the peer may have received
 *	the message nevertheless
 * @DAPX_STATUS_RECEIVER_NOT_READY: the peer had no receive posted, even at the last retry
 * @DAPX_STATUS_GENERAL: any other error
 * @DAPX_STATUS_REMOTE_QUEUE: XRC: the peer has no SRQ with this number, perhaps because its
 *	owner has freed it or died
 */
enum dapx_status {
	DAPX_STATUS_SUCCESS = 0,
	DAPX_STATUS_FLUSHED = 1,
	DAPX_STATUS_LOCAL_LENGTH = 2,
	DAPX_STATUS_LOCAL_OPERATION = 3,
	DAPX_STATUS_LOCAL_PROTECTION = 4,
	DAPX_STATUS_BAD_RESPONSE = 5,
	DAPX_STATUS_REMOTE_ACCESS = 6,
	DAPX_STATUS_REMOTE_INVALID = 7,
	DAPX_STATUS_REMOTE_OPERATION = 8,
	DAPX_STATUS_TRANSPORT = 9,
	DAPX_STATUS_RECEIVER_NOT_READY = 10,
	DAPX_STATUS_GENERAL = 11,
	DAPX_STATUS_REMOTE_QUEUE = 12,
};

/**
 * enum dapx_opcode - What a work request does
 * @DAPX_OP_SEND: send
 * @DAPX_OP_SEND_IMM: send with immediate data
 * @DAPX_OP_RDMA_WRITE: write to the peer's memory
 * @DAPX_OP_RDMA_WRITE_IMM: the same, and complete a receive of the peer with immediate
 *	data
 * @DAPX_OP_RDMA_READ: read from the peer's memory
 * @DAPX_OP_COMPARE_SWAP: atomic on 8 bytes of the peer's memory
 * @DAPX_OP_FETCH_ADD: atomic on 8 bytes of the peer's memory
 * @DAPX_OP_RECV: completions only: a receive
 * @DAPX_OP_RECV_RDMA_IMM: completions only: a receive consumed by RDMA_WRITE_IMM
 * @DAPX_OP_RMR_BIND: completions only: a DAPX_RMR_BIND
 */
enum dapx_opcode {
	DAPX_OP_SEND = 0,
	DAPX_OP_SEND_IMM = 1,
	DAPX_OP_RDMA_WRITE = 2,
	DAPX_OP_RDMA_WRITE_IMM = 3,
	DAPX_OP_RDMA_READ = 4,
	DAPX_OP_COMPARE_SWAP = 5,
	DAPX_OP_FETCH_ADD = 6,
	DAPX_OP_RECV = 128,
	DAPX_OP_RECV_RDMA_IMM = 129,
	DAPX_OP_RMR_BIND = 130,
};

/**
 * enum dapx_completion_flags - dapx_event.completion.flags
 * @DAPX_COMPLETION_IMM: @imm_data is valid
 * @DAPX_COMPLETION_SRQ: @srq is valid: the receive came from that SRQ
 * @DAPX_COMPLETION_XRC: @qp_num is valid: the XRC receive queue pair that the message
 *	arrived on
 */
enum dapx_completion_flags {
	DAPX_COMPLETION_IMM = 1 << 0,
	DAPX_COMPLETION_SRQ = 1 << 1,
	DAPX_COMPLETION_XRC = 1 << 2,
};

/**
 * enum dapx_connection_event - dapx_event.connection.what
 * @DAPX_CONNECTION_ESTABLISHED: connected; no receive of the connection completes before
 *	this event is in its EVD
 * @DAPX_CONNECTION_PEER_REJECTED: the peer's consumer rejected the request
 * @DAPX_CONNECTION_NON_PEER_REJECTED: rejected, but not by the peer's consumer: there is no
 *	listener at this address and port
 * @DAPX_CONNECTION_ACCEPT_ERROR: the request was accepted, but the connection was not
 *	established
 * @DAPX_CONNECTION_DISCONNECTED: ended by a disconnect of either side
 * @DAPX_CONNECTION_BROKEN: ended by an error
 * @DAPX_CONNECTION_TIMED_OUT: no answer in time
 * @DAPX_CONNECTION_UNREACHABLE: there is no route to the address
 * @DAPX_CONNECTION_TIMEWAIT_EXIT: no packet of the connection, which has ended, is under way any
 *	more; only with DAPX_EP_TIMEWAIT_EXIT, and unless the endpoint is reset or freed before
 * @DAPX_CONNECTION_RESPONSE: the peer accepted, and DAPX_EP_ESTABLISH is to follow; only with
 *	DAPX_CONNECT_STEPS
 *
 * DAPX_CONNECTION_DISCONNECTED and DAPX_CONNECTION_BROKEN come after the completions of all
 * requests and receives that were published before the connection ended, successful or not.
 * Three exceptions: work requests that stay in their ring because the EVD of their completions
 * has no room; receives of an SRQ; a device that does not flush within 5 seconds.
 */
enum dapx_connection_event {
	DAPX_CONNECTION_ESTABLISHED = 1,
	DAPX_CONNECTION_PEER_REJECTED = 2,
	DAPX_CONNECTION_NON_PEER_REJECTED = 3,
	DAPX_CONNECTION_ACCEPT_ERROR = 4,
	DAPX_CONNECTION_DISCONNECTED = 5,
	DAPX_CONNECTION_BROKEN = 6,
	DAPX_CONNECTION_TIMED_OUT = 7,
	DAPX_CONNECTION_UNREACHABLE = 8,
	DAPX_CONNECTION_TIMEWAIT_EXIT = 9,
	DAPX_CONNECTION_RESPONSE = 10,
};

/**
 * enum dapx_cm_event - dapx_event.cm.what
 * @DAPX_CM_ADDR_RESOLVED: the address is resolved, and can be reached through this device
 * @DAPX_CM_ADDR_ERROR: it cannot; @error says why
 * @DAPX_CM_ROUTE_RESOLVED: ready for DAPX_EP_CONNECT
 * @DAPX_CM_ROUTE_ERROR: no route; @error says why
 * @DAPX_CM_REQUEST_ENDED: the peer of a request that was taken gave up before it was
 *	answered; the id can only be freed. @error: ECONNREFUSED: the peer withdrew the
 *	request; ETIMEDOUT: the peer does not respond any more; ECONNABORTED: any other
 *	cause
 */
enum dapx_cm_event {
	DAPX_CM_ADDR_RESOLVED = 1,
	DAPX_CM_ADDR_ERROR = 2,
	DAPX_CM_ROUTE_RESOLVED = 3,
	DAPX_CM_ROUTE_ERROR = 4,
	DAPX_CM_REQUEST_ENDED = 5,
};

/**
 * enum dapx_async_event - dapx_event.async.what
 * @DAPX_ASYNC_DEVICE_REMOVED: the device was removed; the last event of every EVD (if the
 *	ring has no room, only DAPX_RING_DEAD reports it)
 * @DAPX_ASYNC_PORT_ACTIVE: a port came up: @port
 * @DAPX_ASYNC_PORT_ERROR: a port went down: @port
 * @DAPX_ASYNC_EP_ERROR: the device reported a fatal error of an endpoint: @handle
 * @DAPX_ASYNC_SRQ_ERROR: an SRQ is out of service: @handle. @error: EACCES: the memory of its
 *	receive @wr_id is not registered, or not for this use; EINVAL: that receive is
 *	malformed; EBADMSG: the ring's indices are impossible; EIO: the device reported a
 *	fatal error
 * @DAPX_ASYNC_SRQ_LIMIT: an SRQ has fewer receives than its limit: @handle
 * @DAPX_ASYNC_XRC_QP_ESTABLISHED: a receive queue pair received its first message: @qp_num
 * @DAPX_ASYNC_XRC_QP_DISCONNECTED: the peer of a receive queue pair ended the connection, or
 *	DAPX_XRC_QP_DISCONNECT did: @qp_num
 * @DAPX_ASYNC_XRC_QP_ERROR: the connection of a receive queue pair ended with an error:
 *	@qp_num
 */
enum dapx_async_event {
	DAPX_ASYNC_DEVICE_REMOVED = 1,
	DAPX_ASYNC_PORT_ACTIVE = 2,
	DAPX_ASYNC_PORT_ERROR = 3,
	DAPX_ASYNC_EP_ERROR = 4,
	DAPX_ASYNC_SRQ_ERROR = 5,
	DAPX_ASYNC_SRQ_LIMIT = 6,
	DAPX_ASYNC_XRC_QP_ESTABLISHED = 7,
	DAPX_ASYNC_XRC_QP_DISCONNECTED = 8,
	DAPX_ASYNC_XRC_QP_ERROR = 9,
};

/**
 * struct dapx_event - An entry of an EVD ring
 * @type: enum dapx_event_type
 * @handle: the object that the event is about; 0 for none. For a receive of an XRC SRQ, that
 *	SRQ
 * @user_data: the user data of that object
 * @completion: a work request completed. Only @wr_id, @status and @opcode are valid unless it
 *	succeeded; not even @flags. @opcode: that of the request, whatever its outcome; for a
 *	failed receive DAPX_OP_RECV. @byte_len: bytes received; for other requests, the bytes
 *	of their segments or inline data
 * @connection: @error: a negative errno, or 0; DAPX_EP_QUERY returns the private data
 * @request: @cm: handle of the request; @ep: endpoint reserved or made for it, or 0;
 *	DAPX_CM_QUERY returns the private data and the addresses
 * @cm: @error: a negative errno, or 0
 * @async: @port: from 1; @qp_num: for XRC receive queue pairs; @error: for
 *	DAPX_ASYNC_SRQ_ERROR a negative errno; older modules: 0
 * @software: as posted
 * @__reserved: zero
 */
struct dapx_event {
	__u32 type;
	__u32 handle;
	__aligned_u64 user_data;
	union {
		struct {
			__aligned_u64 wr_id;
			__u32 status;
			__u32 opcode;
			__u32 byte_len;
			__u32 imm_data;
			__u32 flags;
			__u32 srq;
			__u32 qp_num;
			__u32 __reserved0;
		} completion;
		struct {
			__u32 what;
			__s32 error;
		} connection;
		struct {
			__u32 cm;
			__u32 ep;
		} request;
		struct {
			__u32 what;
			__s32 error;
		} cm;
		struct {
			__u32 what;
			__u32 port;
			__u32 qp_num;
			__s32 error;
			__aligned_u64 wr_id;
		} async;
		struct {
			__aligned_u64 data[2];
		} software;
		__aligned_u64 __reserved[6];
	};
};

/**
 * enum dapx_evd_flags - dapx_evd_create.flags
 * @DAPX_EVD_ASYNC: receives the asynchronous events of the device's ports
 */
enum dapx_evd_flags {
	DAPX_EVD_ASYNC = 1 << 0,
};

/**
 * struct dapx_evd_create - ioctl(DAPX_EVD_CREATE): make an event ring
 * @size: sizeof(struct dapx_evd_create)
 * @flags: enum dapx_evd_flags
 * @depth: entries, rounded up to a power of two. Further events are not lost: they wait
 *	in the kernel. There is one exception: of a port whose event waits, only the latest
 *	state is reported; likewise of an SRQ, only the latest error
 * @__reserved: Must be 0
 * @user_data: returned by queries
 * @out_evd: handle
 * @__reserved2: Must be 0
 * @out_ring: layout of the ring
 */
struct dapx_evd_create {
	__u32 size;
	__u32 flags;
	__u32 depth;
	__u32 __reserved;
	__aligned_u64 user_data;
	__u32 out_evd;
	__u32 __reserved2;
	struct dapx_ring_layout out_ring;
};

#define DAPX_EVD_CREATE _IO(DAPX_TYPE, DAPX_CMD_EVD_CREATE)

/**
 * enum dapx_wait_flags - dapx_evd_wait.flags
 * @DAPX_WAIT_SOLICITED: receives count only if their message was solicited
 *	(DAPX_SEND_SOLICITED) or if they failed; needs endpoints made with
 *	DAPX_EP_SOLICITED. While another thread waits for any event of the EVD, or the EVD
 *	has an eventfd that was not armed for DAPX_ARM_SOLICITED, every receive counts
 */
enum dapx_wait_flags {
	DAPX_WAIT_SOLICITED = 1 << 0,
};

/**
 * struct dapx_evd_wait - ioctl(DAPX_EVD_WAIT): wait for events
 * @size: sizeof(struct dapx_evd_wait)
 * @flags: enum dapx_wait_flags
 * @evd: handle
 * @threshold: number of events to wait for, from 1 to the depth; 1 with
 *	DAPX_WAIT_SOLICITED
 * @deadline: when to give up; DAPX_NO_DEADLINE for never
 * @out_events: events in the ring now; also valid with ETIMEDOUT and EINTR
 * @__reserved: Must be 0
 *
 * Any number of threads may wait. The call takes no event out of the ring. Quiet events
 * (DAPX_SEND_QUIET) count together with the next one that is not quiet. A full ring satisfies
 * every threshold if an event that is not quiet waits for room.
 */
struct dapx_evd_wait {
	__u32 size;
	__u32 flags;
	__u32 evd;
	__u32 threshold;
	__aligned_u64 deadline;
	__u32 out_events;
	__u32 __reserved;
};

#define DAPX_EVD_WAIT _IO(DAPX_TYPE, DAPX_CMD_EVD_WAIT)

/**
 * struct dapx_evd_resize - ioctl(DAPX_EVD_RESIZE): replace the ring
 * @size: sizeof(struct dapx_evd_resize)
 * @flags: Must be 0
 * @evd: handle
 * @depth: new number of entries, not less than the events in the ring (EBUSY)
 * @out_ring: the new ring, with the same indices; the unread events are in it
 *
 * The caller must not consume from the old ring or arm it during the call. The old ring's
 * mapping stays valid, marked DAPX_RING_DEAD, until it is unmapped. If the old ring was
 * armed, the new ring is.
 */
struct dapx_evd_resize {
	__u32 size;
	__u32 flags;
	__u32 evd;
	__u32 depth;
	struct dapx_ring_layout out_ring;
};

#define DAPX_EVD_RESIZE _IO(DAPX_TYPE, DAPX_CMD_EVD_RESIZE)

/**
 * enum dapx_arm - What the process writes at dapx_ring_layout.arm_off
 * @DAPX_ARM_ANY: the next event signals. So does any value that is not 0 and not listed here
 * @DAPX_ARM_SOLICITED: the next event signals that is no successful work request, or is a
 *	receive whose message was solicited. Receives can be distinguished as for
 *	DAPX_WAIT_SOLICITED; those of other endpoints all count. If the EVD was armed for any
 *	event before, one receive that was not solicited may signal. Older modules take it for
 *	DAPX_ARM_ANY
 */
enum dapx_arm {
	DAPX_ARM_ANY = 1,
	DAPX_ARM_SOLICITED = 2,
};

/**
 * enum dapx_eventfd_flags - dapx_evd_eventfd.flags
 * @DAPX_EVENTFD_ONCE: signalled only by an event that finds the ring armed for it, which
 *	disarms the ring. To arm it, the process writes an enum dapx_arm at
 *	dapx_ring_layout.arm_off; then, after a full barrier, it looks for events: the next
 *	one signals, those already in the ring do not. If the ring shows DAPX_RING_BACKLOG,
 *	DAPX_DOORBELL is a part of looking. After each signal, the ring has to be armed again
 */
enum dapx_eventfd_flags {
	DAPX_EVENTFD_ONCE = 1 << 0,
};

/**
 * struct dapx_evd_eventfd - ioctl(DAPX_EVD_EVENTFD): signal an eventfd
 * @size: sizeof(struct dapx_evd_eventfd)
 * @flags: enum dapx_eventfd_flags
 * @evd: handle
 * @fd: an eventfd(2), signalled once for each event from now on that is not quiet; -1 for
 *	none. Replaces the previous one
 */
struct dapx_evd_eventfd {
	__u32 size;
	__u32 flags;
	__u32 evd;
	__s32 fd;
};

#define DAPX_EVD_EVENTFD _IO(DAPX_TYPE, DAPX_CMD_EVD_EVENTFD)

/**
 * struct dapx_evd_post - ioctl(DAPX_EVD_POST): post a software event
 * @size: sizeof(struct dapx_evd_post)
 * @flags: Must be 0
 * @evd: handle
 * @__reserved: Must be 0
 * @data: returned in dapx_event.software
 *
 * EAGAIN: the ring is full.
 */
struct dapx_evd_post {
	__u32 size;
	__u32 flags;
	__u32 evd;
	__u32 __reserved;
	__aligned_u64 data[2];
};

#define DAPX_EVD_POST _IO(DAPX_TYPE, DAPX_CMD_EVD_POST)

/**
 * struct dapx_sge - A segment of memory
 * @mr: handle of an MR of the endpoint's (or the SRQ's) PD
 * @length: bytes
 * @addr: address in the process
 */
struct dapx_sge {
	__u32 mr;
	__u32 length;
	__aligned_u64 addr;
};

/**
 * enum dapx_send_flags - dapx_send_wr.flags
 * @DAPX_SEND_SIGNALED: deliver a completion event also when the request succeeds (failures
 *	always have one)
 * @DAPX_SEND_SOLICITED: mark the message as solicited, to wake a DAPX_WAIT_SOLICITED waiter
 * @DAPX_SEND_FENCE: start only after earlier reads and atomics have completed
 * @DAPX_SEND_INLINE: the entry contains @inline_len bytes of data instead of segments; writes
 *	and sends only
 * @DAPX_SEND_QUIET: the event of a success is delivered, but ends no DAPX_EVD_WAIT and signals
 *	no eventfd. It counts when a later event does. Needs DAPX_FEATURE_QUIET
 */
enum dapx_send_flags {
	DAPX_SEND_SIGNALED = 1 << 0,
	DAPX_SEND_SOLICITED = 1 << 1,
	DAPX_SEND_FENCE = 1 << 2,
	DAPX_SEND_INLINE = 1 << 3,
	DAPX_SEND_QUIET = 1 << 4,
};

/**
 * struct dapx_send_wr - An entry of an endpoint's request ring
 * @wr_id: returned in the completion
 * @opcode: enum dapx_opcode
 * @num_sge: number of segments after this header
 * @flags: enum dapx_send_flags
 * @remote_srqn: endpoints with DAPX_EP_XRC: number of the peer's SRQ, for every operation,
 *	not 0; other endpoints: must be 0
 * @remote_addr: RDMA and atomics: address in the peer
 * @rkey: RDMA and atomics: the peer's key
 * @inline_len: with DAPX_SEND_INLINE: bytes after this header; else 0
 * @compare_add: atomics: the value to compare with, or to add
 * @swap: compare-and-swap: the new value
 * @imm_data: immediate data, in a byte order of the sender's choice
 * @__reserved: Must be 0
 *
 * Segments (or inline data) follow immediately. Members that an operation does not use are
 * ignored.
 */
struct dapx_send_wr {
	__aligned_u64 wr_id;
	__u8 opcode;
	__u8 num_sge;
	__u16 flags;
	__u32 remote_srqn;
	__aligned_u64 remote_addr;
	__u32 rkey;
	__u32 inline_len;
	union {
		struct {
			__aligned_u64 compare_add;
			__aligned_u64 swap;
		};
		struct {
			__u32 imm_data;
			__u32 __reserved;
		};
	};
};

/**
 * enum dapx_recv_flags - dapx_recv_wr.flags
 * @DAPX_RECV_QUIET: as DAPX_SEND_QUIET. Has no effect if the endpoint has DAPX_EP_SOLICITED and
 *	the message was solicited
 */
enum dapx_recv_flags {
	DAPX_RECV_QUIET = 1 << 0,
};

/**
 * struct dapx_recv_wr - An entry of a receive ring
 * @wr_id: returned in the completion
 * @num_sge: number of segments after this header
 * @flags: enum dapx_recv_flags
 */
struct dapx_recv_wr {
	__aligned_u64 wr_id;
	__u32 num_sge;
	__u32 flags;
};

/**
 * struct dapx_srq_create - ioctl(DAPX_SRQ_CREATE): make a shared receive queue
 * @size: sizeof(struct dapx_srq_create)
 * @flags: Must be 0
 * @pd: protection domain of its receives
 * @depth: receives, rounded up to a power of two
 * @max_sge: segments of a receive, at least 1
 * @xrcd: the XRC domain that it belongs to; 0 for a plain SRQ, for endpoints
 * @evd: receives its asynchronous events and, with @xrcd, its completions; 0 for none, for a
 *	plain SRQ only
 * @out_srq: handle
 * @out_srq_num: with @xrcd: its number, 24 bits, unique on the device and not reused soon;
 *	else 0
 * @async_evd: receives its asynchronous events instead of @evd; 0 for @evd
 * @user_data: returned by queries, and in each completion of an XRC SRQ
 * @out_ring: its receive ring, of struct dapx_recv_wr
 *
 * Receives of an XRC SRQ name memory that was registered with DAPX_MR_XRC. They need no
 * doorbell: the module reads a receive when a message needs it.
 */
struct dapx_srq_create {
	__u32 size;
	__u32 flags;
	__u32 pd;
	__u32 depth;
	__u32 max_sge;
	__u32 xrcd;
	__u32 evd;
	__u32 out_srq;
	__u32 out_srq_num;
	__u32 async_evd;
	__aligned_u64 user_data;
	struct dapx_ring_layout out_ring;
};

#define DAPX_SRQ_CREATE _IO(DAPX_TYPE, DAPX_CMD_SRQ_CREATE)

/**
 * struct dapx_srq_modify - ioctl(DAPX_SRQ_MODIFY): ask for a limit event
 * @size: sizeof(struct dapx_srq_modify)
 * @flags: Must be 0
 * @srq: handle
 * @limit: DAPX_ASYNC_SRQ_LIMIT is delivered, once, when a message has taken a receive and
 *	fewer than this are left; at most the depth; 0 for never
 *
 * EBADFD: the SRQ has no EVD for it.
 */
struct dapx_srq_modify {
	__u32 size;
	__u32 flags;
	__u32 srq;
	__u32 limit;
};

#define DAPX_SRQ_MODIFY _IO(DAPX_TYPE, DAPX_CMD_SRQ_MODIFY)

/**
 * struct dapx_srq_query - ioctl(DAPX_SRQ_QUERY)
 * @size: sizeof(struct dapx_srq_query)
 * @flags: Must be 0
 * @srq: handle
 * @out_pd: handle
 * @out_xrcd: handle; 0 for a plain SRQ
 * @out_evd: handle; 0 for none
 * @out_srq_num: as from DAPX_SRQ_CREATE
 * @out_depth: receives that the ring holds
 * @out_max_sge: segments of a receive
 * @out_limit: 0 if none is set, or if the event has been delivered
 * @out_async_evd: handle; 0 for none
 * @__reserved: Must be 0
 */
struct dapx_srq_query {
	__u32 size;
	__u32 flags;
	__u32 srq;
	__u32 out_pd;
	__u32 out_xrcd;
	__u32 out_evd;
	__u32 out_srq_num;
	__u32 out_depth;
	__u32 out_max_sge;
	__u32 out_limit;
	__u32 out_async_evd;
	__u32 __reserved;
};

#define DAPX_SRQ_QUERY _IO(DAPX_TYPE, DAPX_CMD_SRQ_QUERY)

/**
 * struct dapx_srq_resize - ioctl(DAPX_SRQ_RESIZE): replace the ring
 * @size: sizeof(struct dapx_srq_resize)
 * @flags: Must be 0
 * @srq: handle
 * @depth: new number of receives, rounded up to a power of two, as for DAPX_SRQ_CREATE; not
 *	less than those that wait in the ring, nor than the limit (EBUSY)
 * @out_ring: the new ring, with the same indices and the receives that wait
 *
 * The caller must not post during the call; if it does, EBUSY is returned and the old ring
 * stays in use. The mapping of the old ring stays valid, marked DAPX_RING_DEAD, until it is
 * unmapped.
 *
 * The device's queue keeps the depth with which the SRQ was created, and further receives
 * wait in the ring. While the ring is deeper than the device's queue, the module counts the
 * receives for DAPX_ASYNC_SRQ_LIMIT, when they complete.
 */
struct dapx_srq_resize {
	__u32 size;
	__u32 flags;
	__u32 srq;
	__u32 depth;
	struct dapx_ring_layout out_ring;
};

#define DAPX_SRQ_RESIZE _IO(DAPX_TYPE, DAPX_CMD_SRQ_RESIZE)

/**
 * enum dapx_ep_state - An endpoint's state (DAT's names)
 * @DAPX_EP_UNCONNECTED: new, or reset
 * @DAPX_EP_RESERVED: a listener holds it for its first request
 * @DAPX_EP_PASSIVE_PENDING: a request arrived for it
 * @DAPX_EP_ACTIVE_PENDING: connecting
 * @DAPX_EP_TENTATIVE_PENDING: made by the module for a request
 * @DAPX_EP_COMPLETION_PENDING: accepted, not yet connected
 * @DAPX_EP_CONNECTED: connected
 * @DAPX_EP_DISCONNECT_PENDING: disconnecting gracefully
 * @DAPX_EP_DISCONNECTED: was connected, or failed to connect
 */
enum dapx_ep_state {
	DAPX_EP_UNCONNECTED = 0,
	DAPX_EP_RESERVED = 1,
	DAPX_EP_PASSIVE_PENDING = 2,
	DAPX_EP_ACTIVE_PENDING = 3,
	DAPX_EP_TENTATIVE_PENDING = 4,
	DAPX_EP_COMPLETION_PENDING = 5,
	DAPX_EP_CONNECTED = 6,
	DAPX_EP_DISCONNECT_PENDING = 7,
	DAPX_EP_DISCONNECTED = 8,
};

/**
 * enum dapx_ep_flags - dapx_ep_attr.flags
 * @DAPX_EP_SOLICITED: distinguish receives of solicited messages; needs
 *	DAPX_DEVICE_SOLICITED. The price: its receive EVD always shows DAPX_RING_BACKLOG, as
 *	other receives are fetched only on request
 * @DAPX_EP_XRC: the sending side of XRC: its requests go to SRQs of the domain to which the
 *	peer's receive queue pair belongs. It has no receives. Segments name memory that was
 *	registered with DAPX_MR_XRC
 * @DAPX_EP_TIMEWAIT_EXIT: report DAPX_CONNECTION_TIMEWAIT_EXIT of connections through the RDMA
 *	CM; needs DAPX_DEVICE_TIMEWAIT_EXIT
 */
enum dapx_ep_flags {
	DAPX_EP_SOLICITED = 1 << 0,
	DAPX_EP_XRC = 1 << 1,
	DAPX_EP_TIMEWAIT_EXIT = 1 << 2,
};

/**
 * struct dapx_ep_attr - The sizes of an endpoint
 * @flags: enum dapx_ep_flags
 * @send_depth: requests, rounded up to a power of two, at least 1
 * @recv_depth: receives, rounded up to a power of two; 0 for none, or with an SRQ
 * @max_send_sge: segments of a request
 * @max_recv_sge: segments of a receive
 * @max_inline: bytes of inline data; times @send_depth, at most 4 MiB (else ENOMEM)
 * @max_rd_atomic: reads and atomics in flight as initiator
 * @max_dest_rd_atomic: the same as responder
 */
struct dapx_ep_attr {
	__u32 flags;
	__u32 send_depth;
	__u32 recv_depth;
	__u16 max_send_sge;
	__u16 max_recv_sge;
	__u32 max_inline;
	__u16 max_rd_atomic;
	__u16 max_dest_rd_atomic;
};

/**
 * struct dapx_ep_create - ioctl(DAPX_EP_CREATE): make an endpoint
 * @size: sizeof(struct dapx_ep_create)
 * @flags: Must be 0
 * @pd: protection domain
 * @srq: plain SRQ of the same PD that receives are taken from; 0 for the endpoint's own ring
 * @request_evd: receives completions of requests
 * @recv_evd: receives completions of receives; 0 if the endpoint has no receives
 * @connect_evd: receives events of its connection; 0 for none: until DAPX_EP_MODIFY sets
 *	one, the endpoint can be connected only by exchanging QP numbers (else EBADFD)
 * @xrcd: with DAPX_EP_XRC: a domain that the endpoint keeps from being closed; or 0
 * @out_ep: handle
 * @async_evd: receives DAPX_ASYNC_EP_ERROR; 0 for @connect_evd
 * @user_data: returned in each of its events
 * @attr: sizes
 * @out_qp_num: the queue pair's number
 * @out_state_off: offset of a __u32 in the rings' mapping: enum dapx_ep_state, to be read only
 * @out_send_ring: requests, of struct dapx_send_wr
 * @out_recv_ring: receives, of struct dapx_recv_wr; depth 0 if there is none. Both rings are
 *	parts of one mapping
 */
struct dapx_ep_create {
	__u32 size;
	__u32 flags;
	__u32 pd;
	__u32 srq;
	__u32 request_evd;
	__u32 recv_evd;
	__u32 connect_evd;
	__u32 xrcd;
	__u32 out_ep;
	__u32 async_evd;
	__aligned_u64 user_data;
	struct dapx_ep_attr attr;
	__u32 out_qp_num;
	__u32 out_state_off;
	struct dapx_ring_layout out_send_ring;
	struct dapx_ring_layout out_recv_ring;
};

#define DAPX_EP_CREATE _IO(DAPX_TYPE, DAPX_CMD_EP_CREATE)

/**
 * struct dapx_ep_query - ioctl(DAPX_EP_QUERY)
 * @size: sizeof(struct dapx_ep_query)
 * @flags: Must be 0
 * @ep: handle
 * @out_state: enum dapx_ep_state
 * @out_pd: handle; 0 for none, as for the following
 * @out_srq: handle
 * @out_request_evd: handle
 * @out_recv_evd: handle
 * @out_connect_evd: handle
 * @out_cm: handle of the CM id that it was connected with, if that is one of the consumer's
 * @out_user_data: as given
 * @out_attr: actual sizes
 * @out_qp_num: the queue pair's number; 0 while there is none
 * @out_remote_qp_num: the peer's; 0 while not connected
 * @out_requests: requests posted whose completions are not in the ring of the EVD yet
 * @out_receives: likewise receives; 0 with an SRQ
 * @out_state_off: as from DAPX_EP_CREATE, for an endpoint made by a listener
 * @out_private_data_len: bytes of private data of the peer's last accept or reject
 * @out_private_data: private data of the peer's last accept or reject
 * @out_async_evd: handle, as given; 0 for @out_connect_evd
 * @out_local: own address; family 0 while unknown
 * @out_remote: the peer's address
 * @out_send_ring: as from DAPX_EP_CREATE
 * @out_recv_ring: as from DAPX_EP_CREATE
 * @out_reject_reason: after DAPX_CONNECTION_PEER_REJECTED and _NON_PEER_REJECTED: the
 *	reason code of the peer's connection manager, see the InfiniBand specification
 *	(28: its consumer); over iWARP the driver's errno (siw: ECONNRESET for its consumer)
 * @out_rd_atomic: reads and atomics in flight as initiator, as negotiated with the peer;
 *	0 while not connected. iWARP: as requested
 * @out_dest_rd_atomic: the same as responder
 */
struct dapx_ep_query {
	__u32 size;
	__u32 flags;
	__u32 ep;
	__u32 out_state;
	__u32 out_pd;
	__u32 out_srq;
	__u32 out_request_evd;
	__u32 out_recv_evd;
	__u32 out_connect_evd;
	__u32 out_cm;
	__aligned_u64 out_user_data;
	struct dapx_ep_attr out_attr;
	__u32 out_qp_num;
	__u32 out_remote_qp_num;
	__u32 out_requests;
	__u32 out_receives;
	__u32 out_state_off;
	__u32 out_private_data_len;
	__u8 out_private_data[DAPX_PRIVATE_DATA_MAX];
	__u32 out_async_evd;
	struct __kernel_sockaddr_storage out_local;
	struct __kernel_sockaddr_storage out_remote;
	struct dapx_ring_layout out_send_ring;
	struct dapx_ring_layout out_recv_ring;
	__u32 out_reject_reason;
	__u16 out_rd_atomic;
	__u16 out_dest_rd_atomic;
};

#define DAPX_EP_QUERY _IO(DAPX_TYPE, DAPX_CMD_EP_QUERY)

/**
 * enum dapx_ep_modify_mask - dapx_ep_modify.mask
 * @DAPX_EP_MODIFY_PD: @pd; UNCONNECTED or TENTATIVE only, before any receive is
 *	posted; of an endpoint with an SRQ, the SRQ's own
 * @DAPX_EP_MODIFY_REQUEST_EVD: @request_evd; before the connection request is answered
 * @DAPX_EP_MODIFY_RECV_EVD: @recv_evd; likewise, and only while the device has no receive that
 *	was taken from the ring, and no event of one waits for room in the old EVD
 * @DAPX_EP_MODIFY_CONNECT_EVD: @connect_evd; likewise, and alone also in CONNECTED without a CM id
 * @DAPX_EP_MODIFY_RD_ATOMIC: @max_rd_atomic and @max_dest_rd_atomic; likewise
 * @DAPX_EP_MODIFY_USER_DATA: @user_data; likewise
 * @DAPX_EP_MODIFY_QP: @qp; cannot be combined with others
 * @DAPX_EP_MODIFY_RNR_TIMER: @min_rnr_timer; likewise before the request is answered, and alone
 *	also in CONNECTED. EOPNOTSUPP: iWARP, or an endpoint of XRC
 */
enum dapx_ep_modify_mask {
	DAPX_EP_MODIFY_PD = 1 << 0,
	DAPX_EP_MODIFY_REQUEST_EVD = 1 << 1,
	DAPX_EP_MODIFY_RECV_EVD = 1 << 2,
	DAPX_EP_MODIFY_CONNECT_EVD = 1 << 3,
	DAPX_EP_MODIFY_RD_ATOMIC = 1 << 4,
	DAPX_EP_MODIFY_USER_DATA = 1 << 5,
	DAPX_EP_MODIFY_QP = 1 << 6,
	DAPX_EP_MODIFY_RNR_TIMER = 1 << 7,
};

/**
 * enum dapx_qp_state - Steps of connecting by exchanging QP numbers
 * @DAPX_QP_RESET: a receive queue pair on which no step was taken yet; output only
 * @DAPX_QP_INIT: receives are taken from the ring; the endpoint stays
 *	UNCONNECTED
 * @DAPX_QP_RTR: messages are received; the endpoint is COMPLETION_PENDING
 * @DAPX_QP_RTS: ready to send; the endpoint is CONNECTED, without an event
 * @DAPX_QP_ERROR: a receive queue pair whose connection has ended; output only
 */
enum dapx_qp_state {
	DAPX_QP_RESET = 0,
	DAPX_QP_INIT = 1,
	DAPX_QP_RTR = 2,
	DAPX_QP_RTS = 3,
	DAPX_QP_ERROR = 4,
};

/**
 * struct dapx_qp_attr - A step of connecting a queue pair by exchanging QP numbers
 * @state: enum dapx_qp_state
 * @dest_qp_num: RTR: the peer's queue pair
 * @rq_psn: RTR: the peer's first packet number, 24 bits
 * @sq_psn: RTS: own first packet number, 24 bits
 * @dgid: RTR: the peer's GID
 * @pkey_index: INIT
 * @dlid: RTR: the peer's LID; 0 on Ethernet
 * @max_rd_atomic: RTS: reads and atomics in flight as initiator
 * @max_dest_rd_atomic: RTR: the same as responder
 * @port: INIT: own port, from 1
 * @sgid_index: RTR: own GID
 * @hop_limit: RTR
 * @traffic_class: RTR
 * @sl: RTR: service level
 * @path_mtu: RTR: enum ib_mtu: 1 for 256 bytes to 5 for 4096
 * @min_rnr_timer: RTR: 5 bits, see the InfiniBand specification
 * @timeout: RTS: 5 bits: 4.096 us * 2^timeout to the first retry
 * @retry_count: RTS: 0 to 7
 * @rnr_retry: RTS: 0 to 7; 7 for no limit
 * @refused: INIT: enum dapx_access, remote rights: what the peer may not do by this connection,
 *	whatever the memory permits
 * @__reserved: Must be 0
 * @flow_label: RTR: 20 bits
 *
 * Members that a state does not use are ignored.
 */
struct dapx_qp_attr {
	__u32 state;
	__u32 dest_qp_num;
	__u32 rq_psn;
	__u32 sq_psn;
	__u8 dgid[16];
	__u16 pkey_index;
	__u16 dlid;
	__u16 max_rd_atomic;
	__u16 max_dest_rd_atomic;
	__u8 port;
	__u8 sgid_index;
	__u8 hop_limit;
	__u8 traffic_class;
	__u8 sl;
	__u8 path_mtu;
	__u8 min_rnr_timer;
	__u8 timeout;
	__u8 retry_count;
	__u8 rnr_retry;
	__u8 refused;
	__u8 __reserved;
	__u32 flow_label;
};

/**
 * struct dapx_ep_modify - ioctl(DAPX_EP_MODIFY)
 * @size: sizeof(struct dapx_ep_modify)
 * @flags: Must be 0
 * @ep: handle
 * @mask: enum dapx_ep_modify_mask
 * @pd: handle
 * @request_evd: handle
 * @recv_evd: handle
 * @connect_evd: handle
 * @user_data: new cookie
 * @max_rd_atomic: reads and atomics in flight as initiator
 * @max_dest_rd_atomic: the same as responder
 * @min_rnr_timer: how long the peer waits, at least, if it finds no receive: 5 bits, see the
 *	InfiniBand specification. Connections through the RDMA CM begin with 12, for 0.64 ms;
 *	others with what RTR sets
 * @__reserved: Must be 0
 * @qp: the step
 */
struct dapx_ep_modify {
	__u32 size;
	__u32 flags;
	__u32 ep;
	__u32 mask;
	__u32 pd;
	__u32 request_evd;
	__u32 recv_evd;
	__u32 connect_evd;
	__aligned_u64 user_data;
	__u16 max_rd_atomic;
	__u16 max_dest_rd_atomic;
	__u8 min_rnr_timer;
	__u8 __reserved[3];
	struct dapx_qp_attr qp;
};

#define DAPX_EP_MODIFY _IO(DAPX_TYPE, DAPX_CMD_EP_MODIFY)

/**
 * struct dapx_ep_resize - ioctl(DAPX_EP_RESIZE): replace the rings and the queue pair
 * @size: sizeof(struct dapx_ep_resize)
 * @flags: Must be 0
 * @ep: handle, UNCONNECTED, RESERVED, PASSIVE_PENDING or TENTATIVE_PENDING
 * @srq: plain SRQ of the same PD that receives are taken from; 0 for the endpoint's own ring
 * @attr: sizes and flags
 * @out_qp_num: the new queue pair's number; 0 while the endpoint has no PD
 * @out_state_off: offset of the state, as for DAPX_EP_CREATE
 * @out_send_ring: requests
 * @out_recv_ring: receives; depth 0 if there is none
 *
 * EBADFD: another state, the queue pair has left RESET, or a request or receive was posted. On
 * any error the old rings stay in use. The caller must not post during the call. The mapping
 * of the old rings stays valid, marked DAPX_RING_DEAD, until it is unmapped.
 *
 * An endpoint of which the recv_evd was not set cannot get receives (EINVAL), unless a
 * listener made it. EOPNOTSUPP: one of XRC.
 */
struct dapx_ep_resize {
	__u32 size;
	__u32 flags;
	__u32 ep;
	__u32 srq;
	struct dapx_ep_attr attr;
	__u32 out_qp_num;
	__u32 out_state_off;
	struct dapx_ring_layout out_send_ring;
	struct dapx_ring_layout out_recv_ring;
};

#define DAPX_EP_RESIZE _IO(DAPX_TYPE, DAPX_CMD_EP_RESIZE)

/**
 * enum dapx_connect_flags - dapx_ep_connect.flags and dapx_ep_accept.flags
 * @DAPX_CONNECT_STEPS: the process takes the queue pair through its states, by
 *	DAPX_EP_MODIFY_QP with dapx_cm_query.out_qp. EOPNOTSUPP: iWARP, or an endpoint of XRC
 *
 * The side that connects takes the step to INIT first. When DAPX_CONNECTION_RESPONSE says that
 * the peer has accepted, it takes those to RTR and RTS, in which the endpoint stays
 * ACTIVE_PENDING, and then DAPX_EP_ESTABLISH.
 *
 * The side that accepts takes all steps first. The endpoint, which is CONNECTED by them, becomes
 * COMPLETION_PENDING.
 */
enum dapx_connect_flags {
	DAPX_CONNECT_STEPS = 1 << 0,
};

/**
 * struct dapx_ep_connect - ioctl(DAPX_EP_CONNECT): connect an endpoint
 * @size: sizeof(struct dapx_ep_connect)
 * @flags: enum dapx_connect_flags
 * @ep: handle, UNCONNECTED
 * @cm: a CM id whose route is resolved; or 0, and the module makes one for @dst. With
 *	DAPX_CONNECT_STEPS, 0 is EINVAL
 * @dst: address and port of the listener; not with @cm
 * @src: own address; family 0 to use the routing table; not with @cm
 * @deadline: when to give up; DAPX_NO_DEADLINE for the transport's own limit
 * @retry_count: of the transport, 0 to 7
 * @rnr_retry_count: 0 to 7; 7 for no limit
 * @private_data_len: bytes; at most dapx_query_device.out_max_connect_data, with
 *	DAPX_EP_XRC 8 less
 * @private_data: for the listener
 *
 * Returns at once; an event reports the outcome. After any other event than
 * DAPX_CONNECTION_ESTABLISHED, the endpoint is DISCONNECTED, and needs DAPX_EP_RESET before
 * it can be connected again.
 */
struct dapx_ep_connect {
	__u32 size;
	__u32 flags;
	__u32 ep;
	__u32 cm;
	struct __kernel_sockaddr_storage dst;
	struct __kernel_sockaddr_storage src;
	__aligned_u64 deadline;
	__u8 retry_count;
	__u8 rnr_retry_count;
	__u16 private_data_len;
	__u8 private_data[DAPX_PRIVATE_DATA_MAX];
};

#define DAPX_EP_CONNECT _IO(DAPX_TYPE, DAPX_CMD_EP_CONNECT)

/**
 * struct dapx_ep_accept - ioctl(DAPX_EP_ACCEPT): accept a connection request
 * @size: sizeof(struct dapx_ep_accept)
 * @flags: enum dapx_connect_flags
 * @ep: the endpoint reserved or made for the request; else one that is UNCONNECTED, or CONNECTED
 *	by steps
 * @cm: the request; its handle is invalid after success
 * @rnr_retry_count: 0 to 7; 7 for no limit
 * @__reserved: Must be 0
 * @private_data_len: bytes
 * @private_data: for the peer
 *
 * An event reports the outcome. A call that fails changes nothing. EOPNOTSUPP: @ep has
 * DAPX_EP_XRC. EPROTO: the peer's endpoint has DAPX_EP_XRC.
 */
struct dapx_ep_accept {
	__u32 size;
	__u32 flags;
	__u32 ep;
	__u32 cm;
	__u8 rnr_retry_count;
	__u8 __reserved;
	__u16 private_data_len;
	__u8 private_data[DAPX_PRIVATE_DATA_MAX];
};

#define DAPX_EP_ACCEPT _IO(DAPX_TYPE, DAPX_CMD_EP_ACCEPT)

/**
 * struct dapx_ep_establish - ioctl(DAPX_EP_ESTABLISH): answer the peer that accepted
 * @size: sizeof(struct dapx_ep_establish)
 * @flags: Must be 0
 * @ep: handle; with DAPX_CONNECT_STEPS, after DAPX_CONNECTION_RESPONSE and the step to RTS
 * @__reserved: Must be 0
 *
 * Tells the peer that this side is ready. The endpoint is CONNECTED then, without an event. If the
 * peer cannot be told, an event says so.
 */
struct dapx_ep_establish {
	__u32 size;
	__u32 flags;
	__u32 ep;
	__u32 __reserved;
};

#define DAPX_EP_ESTABLISH _IO(DAPX_TYPE, DAPX_CMD_EP_ESTABLISH)

/**
 * enum dapx_disconnect_flags - dapx_ep_disconnect.flags
 * @DAPX_DISCONNECT_ABRUPT: do not wait for requests in flight
 */
enum dapx_disconnect_flags {
	DAPX_DISCONNECT_ABRUPT = 1 << 0,
};

/**
 * struct dapx_ep_disconnect - ioctl(DAPX_EP_DISCONNECT)
 * @size: sizeof(struct dapx_ep_disconnect)
 * @flags: enum dapx_disconnect_flags
 * @ep: handle
 * @__reserved: Must be 0
 *
 * An event reports the end, after the last completion. The call has no effect in DISCONNECTED,
 * nor in DISCONNECT_PENDING unless it is abrupt. If it is abrupt, it also ends an endpoint that
 * is UNCONNECTED with its queue pair in INIT: its receives are flushed. It returns at once, with
 * one exception: rxe completes a receive before it acknowledges it, so an abrupt disconnect over
 * rxe waits until a recent receive has been acknowledged, a second at most.
 *
 * The peer stays connected until its requests are acknowledged, a quarter of a second at
 * most: the last messages that were received here may not have been acknowledged yet. iWARP
 * does not wait.
 */
struct dapx_ep_disconnect {
	__u32 size;
	__u32 flags;
	__u32 ep;
	__u32 __reserved;
};

#define DAPX_EP_DISCONNECT _IO(DAPX_TYPE, DAPX_CMD_EP_DISCONNECT)

/**
 * struct dapx_ep_reset - ioctl(DAPX_EP_RESET): make it UNCONNECTED again
 * @size: sizeof(struct dapx_ep_reset)
 * @flags: Must be 0
 * @ep: handle, DISCONNECTED (or UNCONNECTED: no effect)
 * @out_qp_num: the new queue pair's number
 *
 * Waits until the device has flushed the endpoint's work, 5 seconds at most. The event that
 * reports the end of the connection is delivered before the call returns.
 *
 * Both rings are empty afterwards, with head and tail where tail was. Events that are in
 * an EVD ring stay there. Events that were not in one yet are lost; consider work requests
 * that have no completion as flushed.
 */
struct dapx_ep_reset {
	__u32 size;
	__u32 flags;
	__u32 ep;
	__u32 out_qp_num;
};

#define DAPX_EP_RESET _IO(DAPX_TYPE, DAPX_CMD_EP_RESET)

/**
 * enum dapx_cm_state - A CM id's state
 * @DAPX_CM_IDLE: made
 * @DAPX_CM_BOUND: has a local address
 * @DAPX_CM_RESOLVING: address or route resolution is in progress
 * @DAPX_CM_ADDR_READY: the address is resolved
 * @DAPX_CM_ROUTE_READY: the route is resolved
 * @DAPX_CM_LISTENING: listens
 * @DAPX_CM_REQUEST: a connection request that waits to be answered
 * @DAPX_CM_ATTACHED: an endpoint uses it
 * @DAPX_CM_ENDED: its endpoint was freed, or its address belongs to another device, or the
 *	peer of a request that was taken gave up: it can only be freed
 */
enum dapx_cm_state {
	DAPX_CM_IDLE = 0,
	DAPX_CM_BOUND = 1,
	DAPX_CM_RESOLVING = 2,
	DAPX_CM_ADDR_READY = 3,
	DAPX_CM_ROUTE_READY = 4,
	DAPX_CM_LISTENING = 5,
	DAPX_CM_REQUEST = 6,
	DAPX_CM_ATTACHED = 7,
	DAPX_CM_ENDED = 8,
};

/**
 * struct dapx_cm_create - ioctl(DAPX_CM_CREATE): make a CM id
 * @size: sizeof(struct dapx_cm_create)
 * @flags: Must be 0
 * @evd: EVD that receives its events
 * @out_cm: handle
 * @user_data: returned in each of its events
 */
struct dapx_cm_create {
	__u32 size;
	__u32 flags;
	__u32 evd;
	__u32 out_cm;
	__aligned_u64 user_data;
};

#define DAPX_CM_CREATE _IO(DAPX_TYPE, DAPX_CMD_CM_CREATE)

/**
 * struct dapx_cm_bind - ioctl(DAPX_CM_BIND): give a CM id a local address
 * @size: sizeof(struct dapx_cm_bind)
 * @flags: Must be 0
 * @cm: handle, IDLE
 * @__reserved: Must be 0
 * @addr: address of the attached device (or the unspecified address) and port; port 0 for any
 *	free port, which DAPX_CM_QUERY returns
 *
 * EADDRNOTAVAIL: the address belongs to another device.
 */
struct dapx_cm_bind {
	__u32 size;
	__u32 flags;
	__u32 cm;
	__u32 __reserved;
	struct __kernel_sockaddr_storage addr;
};

#define DAPX_CM_BIND _IO(DAPX_TYPE, DAPX_CMD_CM_BIND)

/**
 * enum dapx_listen_mode - Which endpoint a connection request gets
 * @DAPX_LISTEN_CONSUMER: none; the consumer names one when it accepts
 * @DAPX_LISTEN_RESERVED: the one named here, for a single request; after that the listener
 *	accepts no more. Meanwhile the endpoint is RESERVED
 * @DAPX_LISTEN_TENTATIVE: one that the module makes with the sizes given here, without PD and
 *	EVDs, which DAPX_EP_MODIFY sets
 */
enum dapx_listen_mode {
	DAPX_LISTEN_CONSUMER = 0,
	DAPX_LISTEN_RESERVED = 1,
	DAPX_LISTEN_TENTATIVE = 2,
};

/**
 * struct dapx_cm_listen - ioctl(DAPX_CM_LISTEN): listen for connection requests
 * @size: sizeof(struct dapx_cm_listen)
 * @flags: Must be 0
 * @cm: handle, BOUND
 * @mode: enum dapx_listen_mode
 * @backlog: requests that may wait to be answered; further ones are rejected; 0 for the
 *	module's limit. TENTATIVE: fewer if their endpoints would take more than 16 MiB
 * @ep: RESERVED: the endpoint; else 0
 * @attr: TENTATIVE: sizes of the endpoints; else zero
 * @__reserved: Must be 0
 *
 * EOPNOTSUPP: @ep or @attr has DAPX_EP_XRC, with which an endpoint can only connect.
 */
struct dapx_cm_listen {
	__u32 size;
	__u32 flags;
	__u32 cm;
	__u32 mode;
	__u32 backlog;
	__u32 ep;
	struct dapx_ep_attr attr;
	__u32 __reserved;
};

#define DAPX_CM_LISTEN _IO(DAPX_TYPE, DAPX_CMD_CM_LISTEN)

/**
 * enum dapx_resolve_what - dapx_cm_resolve.what
 * @DAPX_RESOLVE_ADDR: the address; from IDLE or BOUND
 * @DAPX_RESOLVE_ROUTE: the route; from ADDR_READY
 */
enum dapx_resolve_what {
	DAPX_RESOLVE_ADDR = 1,
	DAPX_RESOLVE_ROUTE = 2,
};

/**
 * struct dapx_cm_resolve - ioctl(DAPX_CM_RESOLVE): resolve an address or a route
 * @size: sizeof(struct dapx_cm_resolve)
 * @flags: Must be 0
 * @cm: handle
 * @what: enum dapx_resolve_what
 * @deadline: when to give up; DAPX_NO_DEADLINE for 4 seconds
 * @dst: with ADDR: address and port of the listener
 * @src: with ADDR: own address; family 0 for the address that the id is bound to, else for the
 *	one that the routing table selects
 *
 * Returns at once; an event of type DAPX_EVENT_CM reports the outcome. A step that failed can
 * be tried again.
 */
struct dapx_cm_resolve {
	__u32 size;
	__u32 flags;
	__u32 cm;
	__u32 what;
	__aligned_u64 deadline;
	struct __kernel_sockaddr_storage dst;
	struct __kernel_sockaddr_storage src;
};

#define DAPX_CM_RESOLVE _IO(DAPX_TYPE, DAPX_CMD_CM_RESOLVE)

/**
 * struct dapx_cm_query - ioctl(DAPX_CM_QUERY)
 * @size: sizeof(struct dapx_cm_query)
 * @flags: Must be 0
 * @cm: handle
 * @out_state: enum dapx_cm_state
 * @out_ep: endpoint that uses it, or is reserved or made for the request; or 0
 * @out_evd: EVD that receives its events
 * @out_requests: listener: requests that wait to be answered and were not taken
 * @out_unacked: number of events that are not acknowledged
 * @out_user_data: as given
 * @out_listener: request: handle of the listener; 0 once it was taken
 * @out_private_data_len: bytes
 * @out_private_data: request: the peer's. May end with zeroes that the peer did not send
 *	(InfiniBand does not transmit the length)
 * @out_xrc: request: 1 if the peer's endpoint has DAPX_EP_XRC. Such a request is accepted by
 *	DAPX_XRC_QP_ACCEPT, others by DAPX_EP_ACCEPT
 * @out_local: own address and port; family 0 while unknown
 * @out_remote: the peer's
 * @out_remote_qp_num: request: the peer's queue pair. Up to @out_rnr_retry_count, the
 *	following are valid only for a request, too
 * @out_srq: 1 if the peer's endpoint has a shared receive queue
 * @out_responder_resources: reads and atomics in flight that the peer asks this side to
 *	accept as responder
 * @out_initiator_depth: reads and atomics in flight that the peer would accept
 * @out_retry_count: of the transport, as requested by the peer; 0 over iWARP
 * @out_rnr_retry_count: likewise
 * @out_port: any id: port of the device, from 1; 0 while unknown
 * @out_qp: any id but a listener, not on iWARP: the steps with which DAPX_CONNECT_STEPS begins
 *	or goes on. @state: the last one that is known: INIT with an address, RTS of a request
 *	and of one that the peer has accepted; RESET: none. The members of all steps up to that one
 *	are valid
 */
struct dapx_cm_query {
	__u32 size;
	__u32 flags;
	__u32 cm;
	__u32 out_state;
	__u32 out_ep;
	__u32 out_evd;
	__u32 out_requests;
	__u32 out_unacked;
	__aligned_u64 out_user_data;
	__u32 out_listener;
	__u32 out_private_data_len;
	__u8 out_private_data[DAPX_PRIVATE_DATA_MAX];
	__u32 out_xrc;
	struct __kernel_sockaddr_storage out_local;
	struct __kernel_sockaddr_storage out_remote;
	__u32 out_remote_qp_num;
	__u32 out_srq;
	__u8 out_responder_resources;
	__u8 out_initiator_depth;
	__u8 out_retry_count;
	__u8 out_rnr_retry_count;
	__u32 out_port;
	struct dapx_qp_attr out_qp;
};

#define DAPX_CM_QUERY _IO(DAPX_TYPE, DAPX_CMD_CM_QUERY)

/**
 * struct dapx_cm_reject - ioctl(DAPX_CM_REJECT): reject a connection request
 * @size: sizeof(struct dapx_cm_reject)
 * @flags: Must be 0
 * @cm: the request; its handle is invalid afterwards
 * @private_data_len: bytes
 * @private_data: for the peer
 * @__reserved: Must be 0
 *
 * A RESERVED endpoint becomes UNCONNECTED; one that the module made is freed.
 */
struct dapx_cm_reject {
	__u32 size;
	__u32 flags;
	__u32 cm;
	__u32 private_data_len;
	__u8 private_data[DAPX_PRIVATE_DATA_MAX];
	__u32 __reserved;
};

#define DAPX_CM_REJECT _IO(DAPX_TYPE, DAPX_CMD_CM_REJECT)

/**
 * struct dapx_cm_ack - ioctl(DAPX_CM_ACK): acknowledge events of a CM id
 * @size: sizeof(struct dapx_cm_ack)
 * @flags: Must be 0
 * @cm: handle of an id that the consumer made, or took
 * @events: number of events to acknowledge, not more than there are (EINVAL)
 *
 * Applies to events of type DAPX_EVENT_CM and DAPX_EVENT_CONNECT_REQUEST (which count for the
 * listener). Freeing the id waits until all are acknowledged.
 */
struct dapx_cm_ack {
	__u32 size;
	__u32 flags;
	__u32 cm;
	__u32 events;
};

#define DAPX_CM_ACK _IO(DAPX_TYPE, DAPX_CMD_CM_ACK)

/**
 * struct dapx_cm_take - ioctl(DAPX_CM_TAKE): make a connection request an id of its own
 * @size: sizeof(struct dapx_cm_take)
 * @flags: Must be 0
 * @cm: a request of a listener without endpoints (DAPX_LISTEN_CONSUMER; else EINVAL)
 * @evd: EVD that receives its events from now on
 * @user_data: returned in each of them
 *
 * The request no longer belongs to the listener: it does not count against the listener's
 * backlog, and the listener may be freed before it. It can still be accepted
 * (DAPX_EP_ACCEPT, DAPX_XRC_QP_ACCEPT), rejected or freed, by the same handle.
 *
 * If the peer gives up before the request is answered, or did so before the call,
 * DAPX_CM_REQUEST_ENDED reports it; but iWARP devices do not notice until the request is
 * accepted. EBADFD: @cm is not a request, or was answered or taken already.
 */
struct dapx_cm_take {
	__u32 size;
	__u32 flags;
	__u32 cm;
	__u32 evd;
	__aligned_u64 user_data;
};

#define DAPX_CM_TAKE _IO(DAPX_TYPE, DAPX_CMD_CM_TAKE)

/**
 * enum dapx_cm_modify_mask - dapx_cm_modify.mask
 * @DAPX_CM_MODIFY_TOS: @tos; IDLE, BOUND or ADDR_READY, as the route depends on it
 * @DAPX_CM_MODIFY_ACK_TIMEOUT: @ack_timeout; likewise, or in ROUTE_READY, or for a connection
 *	request. EOPNOTSUPP: iWARP devices have none
 * @DAPX_CM_MODIFY_REUSEADDR: @reuseaddr; IDLE, or BOUND to set it
 * @DAPX_CM_MODIFY_AFONLY: @afonly; IDLE or BOUND
 */
enum dapx_cm_modify_mask {
	DAPX_CM_MODIFY_TOS = 1 << 0,
	DAPX_CM_MODIFY_ACK_TIMEOUT = 1 << 1,
	DAPX_CM_MODIFY_REUSEADDR = 1 << 2,
	DAPX_CM_MODIFY_AFONLY = 1 << 3,
};

/**
 * struct dapx_cm_modify - ioctl(DAPX_CM_MODIFY): set the options of a CM id
 * @size: sizeof(struct dapx_cm_modify)
 * @flags: Must be 0
 * @cm: handle
 * @mask: enum dapx_cm_modify_mask: the options to set; the members of others are ignored
 * @tos: type of service (IPv6: traffic class) of all packets of the connection that this id
 *	makes, both ways. Over iWARP a hint to the driver, which siw ignores
 * @ack_timeout: 5 bits: 4.096 us * 2^ack_timeout until this side sends a request again that the
 *	peer did not acknowledge; 0 for never. If it is set before the route is resolved, the
 *	peer is asked to use it, too
 * @reuseaddr: 1: other ids that have it, too, may be bound to the same address and port. Only
 *	one of them can listen, and only while no other is bound; 0: not
 * @afonly: 1: an id that is bound to :: uses IPv6 addresses only; 0: IPv4 addresses as well. If
 *	it is not set: as net.ipv6.bindv6only says
 * @__reserved: Must be 0
 *
 * EBADFD: the id's state does not permit one of them; then none is set. Connections that a
 * listener accepts have the TOS that the peer chose, and the ack timeout that is set for the
 * request.
 */
struct dapx_cm_modify {
	__u32 size;
	__u32 flags;
	__u32 cm;
	__u32 mask;
	__u8 tos;
	__u8 ack_timeout;
	__u8 reuseaddr;
	__u8 afonly;
	__u32 __reserved;
};

#define DAPX_CM_MODIFY _IO(DAPX_TYPE, DAPX_CMD_CM_MODIFY)

/**
 * struct dapx_rmr_create - ioctl(DAPX_RMR_CREATE): make a remote memory region
 * @size: sizeof(struct dapx_rmr_create)
 * @flags: Must be 0
 * @pd: protection domain
 * @__reserved: Must be 0
 * @user_data: returned by queries
 * @out_rmr: handle
 * @__reserved2: Must be 0
 *
 * A new RMR is not bound to any memory, so no peer can access it. It belongs to the PD,
 * not to an endpoint.
 */
struct dapx_rmr_create {
	__u32 size;
	__u32 flags;
	__u32 pd;
	__u32 __reserved;
	__aligned_u64 user_data;
	__u32 out_rmr;
	__u32 __reserved2;
};

#define DAPX_RMR_CREATE _IO(DAPX_TYPE, DAPX_CMD_RMR_CREATE)

/**
 * enum dapx_bind_flags - dapx_rmr_bind.flags
 * @DAPX_BIND_SIGNALED: deliver a completion event also when the bind succeeds
 * @DAPX_BIND_QUIET: as DAPX_SEND_QUIET
 */
enum dapx_bind_flags {
	DAPX_BIND_SIGNALED = 1 << 0,
	DAPX_BIND_QUIET = 1 << 1,
};

/**
 * struct dapx_rmr_bind - ioctl(DAPX_RMR_BIND): bind a remote memory region
 * @size: sizeof(struct dapx_rmr_bind)
 * @flags: enum dapx_bind_flags
 * @rmr: what is bound
 * @ep: endpoint in whose request queue the bind is ordered
 * @mr: MR of which the window is a part; 0 to unbind
 * @access: enum dapx_access, remote rights only. For remote writes and atomics, the MR needs
 *	DAPX_ACCESS_LOCAL_WRITE; it needs no remote rights itself
 * @addr: start of the window, in the caller's address space
 * @length: bytes; 0 to unbind, then @mr, @access and @addr must be 0, too
 * @wr_id: returned in the completion event
 * @out_rkey: what a peer needs, with the address; never one of the last 65536 keys that were
 *	allocated. 0 for an unbind
 * @__reserved: Must be 0
 *
 * The bind is carried out when all requests that were published before the call have
 * completed, and before any request that is published later is started. It then completes on
 * the request EVD, with opcode DAPX_OP_RMR_BIND, and the RMR's previous window is revoked, as
 * finally as by a free. @out_rkey is valid from then on.
 *
 * Endpoint, MR and RMR must belong to the same PD. The memory must still be mapped; it is
 * pinned once more, and counts against RLIMIT_MEMLOCK.
 *
 * EBADFD unless the endpoint is CONNECTED or DISCONNECTED. If it is DISCONNECTED, the bind
 * completes as flushed, as pending requests do, and the RMR is unchanged. EACCES: @access
 * includes writing, but the MR may not be written. EAGAIN: as many binds as the request ring
 * has entries are pending already, or their events wait for room in the EVD.
 */
struct dapx_rmr_bind {
	__u32 size;
	__u32 flags;
	__u32 rmr;
	__u32 ep;
	__u32 mr;
	__u32 access;
	__aligned_u64 addr;
	__aligned_u64 length;
	__aligned_u64 wr_id;
	__u32 out_rkey;
	__u32 __reserved;
};

#define DAPX_RMR_BIND _IO(DAPX_TYPE, DAPX_CMD_RMR_BIND)

/**
 * enum dapx_rmr_field - dapx_rmr_query.mask
 * @DAPX_RMR_FIELD_PD: @out_pd
 * @DAPX_RMR_FIELD_MR: @out_mr
 * @DAPX_RMR_FIELD_RANGE: @out_addr, @out_length
 * @DAPX_RMR_FIELD_ACCESS: @out_access
 * @DAPX_RMR_FIELD_RKEY: @out_rkey
 */
enum dapx_rmr_field {
	DAPX_RMR_FIELD_PD = 1 << 0,
	DAPX_RMR_FIELD_MR = 1 << 1,
	DAPX_RMR_FIELD_RANGE = 1 << 2,
	DAPX_RMR_FIELD_ACCESS = 1 << 3,
	DAPX_RMR_FIELD_RKEY = 1 << 4,
};

/**
 * struct dapx_rmr_query - ioctl(DAPX_RMR_QUERY): what a remote memory region is
 *	bound to
 * @size: sizeof(struct dapx_rmr_query)
 * @flags: Must be 0
 * @rmr: handle
 * @mask: enum dapx_rmr_field: fields to return; the others are 0
 * @out_pd: protection domain
 * @out_mr: 0 if not bound; then all of the following are 0
 * @out_addr: start of the window
 * @out_length: bytes
 * @out_access: enum dapx_access
 * @out_rkey: as returned by the bind
 *
 * Binds that still wait in a request queue are not shown.
 */
struct dapx_rmr_query {
	__u32 size;
	__u32 flags;
	__u32 rmr;
	__u32 mask;
	__u32 out_pd;
	__u32 out_mr;
	__aligned_u64 out_addr;
	__aligned_u64 out_length;
	__u32 out_access;
	__u32 out_rkey;
};

#define DAPX_RMR_QUERY _IO(DAPX_TYPE, DAPX_CMD_RMR_QUERY)

/**
 * enum dapx_xrcd_flags - How to open an XRC domain
 * @DAPX_XRCD_CREATE: create the domain if it does not exist
 * @DAPX_XRCD_EXCL: with DAPX_XRCD_CREATE: EEXIST if it exists
 */
enum dapx_xrcd_flags {
	DAPX_XRCD_CREATE = 1 << 0,
	DAPX_XRCD_EXCL = 1 << 1,
};

/**
 * struct dapx_xrcd_open - ioctl(DAPX_XRCD_OPEN): open an XRC domain
 * @size: sizeof(struct dapx_xrcd_open)
 * @flags: enum dapx_xrcd_flags
 * @fd: a regular file, or -1
 * @out_xrcd: handle
 * @user_data: returned by DAPX_QUERY_OBJECT
 *
 * A domain is identified by the device and the file's inode: all contexts that open it through
 * that file share it, whatever name or descriptor they use. Looking a domain up and creating
 * it is one atomic step. The caller must be allowed to write the file, or own it, and the
 * mount through which it was opened must not be read-only (EACCES); the mode of the
 * descriptor does not matter. The domain outlives the descriptor and the file's name, and
 * keeps the file system mounted.
 *
 * With @fd -1 the domain is private to the caller, and DAPX_XRCD_CREATE must be the only flag.
 *
 * Each open is a separate reference. DAPX_FREE drops it (EBUSY while it is in use), and
 * dropping the last one ends the domain.
 */
struct dapx_xrcd_open {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 out_xrcd;
	__aligned_u64 user_data;
};

#define DAPX_XRCD_OPEN _IO(DAPX_TYPE, DAPX_CMD_XRCD_OPEN)

/**
 * DOC: XRC receive queue pairs
 *
 * A receive queue pair is the receiving end of a connection from one endpoint with
 * DAPX_EP_XRC, and serves all SRQs of its domain. It belongs to the domain, and lives as
 * long as some context is registered with it; the context that makes it is registered
 * with it. It is named by its queue pair number on the device. EINVAL: there is no such
 * number in this domain.
 */

/**
 * struct dapx_xrc_qp_create - ioctl(DAPX_XRC_QP_CREATE): make a receive queue pair
 * @size: sizeof(struct dapx_xrc_qp_create)
 * @flags: Must be 0
 * @xrcd: handle
 * @evd: EVD that receives its asynchronous events; 0 for none
 * @user_data: returned in each of its events
 * @out_xrc_qp: handle of the caller's registration
 * @out_qp_num: number of the receive queue pair
 */
struct dapx_xrc_qp_create {
	__u32 size;
	__u32 flags;
	__u32 xrcd;
	__u32 evd;
	__aligned_u64 user_data;
	__u32 out_xrc_qp;
	__u32 out_qp_num;
};

#define DAPX_XRC_QP_CREATE _IO(DAPX_TYPE, DAPX_CMD_XRC_QP_CREATE)

/**
 * enum dapx_xrc_qp_register_flags - dapx_xrc_qp_register.flags
 * @DAPX_XRC_QP_REGISTER_EXCL: EEXIST if the context has a registration already
 */
enum dapx_xrc_qp_register_flags {
	DAPX_XRC_QP_REGISTER_EXCL = 1 << 0,
};

/**
 * struct dapx_xrc_qp_register - ioctl(DAPX_XRC_QP_REGISTER): register with a receive
 *	queue pair
 * @size: sizeof(struct dapx_xrc_qp_register)
 * @flags: enum dapx_xrc_qp_register_flags
 * @xrcd: handle
 * @qp_num: number
 * @evd: EVD that receives its asynchronous events; 0 for none
 * @out_xrc_qp: handle of the registration. A context has at most one for each queue pair: if
 *	it has one already, that one is returned and nothing changes, unless
 *	DAPX_XRC_QP_REGISTER_EXCL is set
 * @user_data: returned in each of its events
 *
 * If its connection has ended already, @evd receives the event that reports the end.
 */
struct dapx_xrc_qp_register {
	__u32 size;
	__u32 flags;
	__u32 xrcd;
	__u32 qp_num;
	__u32 evd;
	__u32 out_xrc_qp;
	__aligned_u64 user_data;
};

#define DAPX_XRC_QP_REGISTER _IO(DAPX_TYPE, DAPX_CMD_XRC_QP_REGISTER)

/**
 * struct dapx_xrc_qp_unregister - ioctl(DAPX_XRC_QP_UNREGISTER)
 * @size: sizeof(struct dapx_xrc_qp_unregister)
 * @flags: Must be 0
 * @xrcd: handle
 * @qp_num: number
 *
 * The same as DAPX_FREE of the registration. Ending the last registration destroys the
 * queue pair. EINVAL also if the context is not registered with it.
 */
struct dapx_xrc_qp_unregister {
	__u32 size;
	__u32 flags;
	__u32 xrcd;
	__u32 qp_num;
};

#define DAPX_XRC_QP_UNREGISTER _IO(DAPX_TYPE, DAPX_CMD_XRC_QP_UNREGISTER)

/**
 * struct dapx_xrc_qp_disconnect - ioctl(DAPX_XRC_QP_DISCONNECT): end the connection of a
 *	receive queue pair
 * @size: sizeof(struct dapx_xrc_qp_disconnect)
 * @flags: Must be 0
 * @xrcd: handle
 * @qp_num: number
 *
 * For all contexts that are registered with it: each receives
 * DAPX_ASYNC_XRC_QP_DISCONNECTED. When the call returns, no further message arrives, and a
 * message of which a part is missing is dropped. The queue pair stays in DAPX_QP_ERROR until
 * its last registration ends. A peer that connected by the CM is told; any other notices when
 * it sends. EACCES: the context is not registered with it. EBADFD: it is in DAPX_QP_RESET, or
 * its connection has ended.
 */
struct dapx_xrc_qp_disconnect {
	__u32 size;
	__u32 flags;
	__u32 xrcd;
	__u32 qp_num;
};

#define DAPX_XRC_QP_DISCONNECT _IO(DAPX_TYPE, DAPX_CMD_XRC_QP_DISCONNECT)

/**
 * struct dapx_xrc_qp_modify - ioctl(DAPX_XRC_QP_MODIFY): connect a receive queue pair by
 *	exchanging QP numbers
 * @size: sizeof(struct dapx_xrc_qp_modify)
 * @flags: Must be 0
 * @xrcd: handle
 * @qp_num: number
 * @qp: the step: INIT, then RTR; RTS may follow and has no effect. RTR sets the RNR timer that
 *	senders get when an SRQ has no receive
 *
 * EACCES: the context is not registered with it. EBADFD: the step is not possible from its
 * state.
 */
struct dapx_xrc_qp_modify {
	__u32 size;
	__u32 flags;
	__u32 xrcd;
	__u32 qp_num;
	struct dapx_qp_attr qp;
};

#define DAPX_XRC_QP_MODIFY _IO(DAPX_TYPE, DAPX_CMD_XRC_QP_MODIFY)

/**
 * struct dapx_xrc_qp_accept - ioctl(DAPX_XRC_QP_ACCEPT): connect a receive queue pair
 *	through the CM
 * @size: sizeof(struct dapx_xrc_qp_accept)
 * @flags: Must be 0
 * @xrcd: handle
 * @qp_num: number of a receive queue pair on which no step was taken yet
 * @cm: connection request from an endpoint with DAPX_EP_XRC (else EPROTO) to a listener
 *	without endpoints; its handle is invalid after success
 * @__reserved: Must be 0
 * @private_data_len: bytes; at most 8 less than dapx_query_device.out_max_accept_data
 * @private_data: for the peer
 *
 * A call that fails changes nothing.
 */
struct dapx_xrc_qp_accept {
	__u32 size;
	__u32 flags;
	__u32 xrcd;
	__u32 qp_num;
	__u32 cm;
	__u16 __reserved;
	__u16 private_data_len;
	__u8 private_data[DAPX_PRIVATE_DATA_MAX];
};

#define DAPX_XRC_QP_ACCEPT _IO(DAPX_TYPE, DAPX_CMD_XRC_QP_ACCEPT)

/**
 * struct dapx_xrc_qp_query - ioctl(DAPX_XRC_QP_QUERY)
 * @size: sizeof(struct dapx_xrc_qp_query)
 * @flags: Must be 0
 * @xrcd: handle
 * @qp_num: number
 * @out_xrc_qp: handle of the caller's registration; 0: it has none
 * @out_registrations: number of contexts that are registered with it
 * @out_messages: number of messages that arrived completely
 * @out_not_ready: number of times that an SRQ had no receive for a message
 * @out_qp: state, and the values that the steps set: @dest_qp_num, @port, ...
 *
 * Any context that has the domain open may query.
 */
struct dapx_xrc_qp_query {
	__u32 size;
	__u32 flags;
	__u32 xrcd;
	__u32 qp_num;
	__u32 out_xrc_qp;
	__u32 out_registrations;
	__aligned_u64 out_messages;
	__aligned_u64 out_not_ready;
	struct dapx_qp_attr out_qp;
};

#define DAPX_XRC_QP_QUERY _IO(DAPX_TYPE, DAPX_CMD_XRC_QP_QUERY)

/**
 * DOC: Generic netlink
 *
 * The family DAPX_GENL_NAME lists contexts, objects and XRC domains, without access to the
 * device node. Its commands, with NLM_F_DUMP and no attributes, cover all devices that the
 * socket's network namespace sees: DAPX_GENL_CMD_XRCD_GET lists the XRC domains,
 * DAPX_GENL_CMD_CONTEXT_GET the contexts, DAPX_GENL_CMD_OBJECT_GET all their objects.
 *
 * A context or an object is one message, in the order of contexts and handles. Everything
 * that exists during the whole dump is listed exactly once. A dump never waits for a command
 * of another process.
 *
 * Members of the group DAPX_GENL_GROUP_EVENTS are notified of what happens, in order, by
 * messages DAPX_GENL_CMD_EVENT: in the network namespace of the process that owns the
 * context, and in the initial one if the device is visible there. DAPX_OBJECT_ATTR_PID is
 * the PID in the initial PID namespace. A listener that reads too slowly gets ENOBUFS from
 * recvmsg(2).
 *
 * A domain is one or more messages with the same DAPX_XRCD_ATTR_ID. The first of them has the
 * attributes that occur once. DAPX_XRCD_ATTR_OPEN, DAPX_XRCD_ATTR_SRQ and DAPX_XRCD_ATTR_QP
 * can be in any of them, one for each item. Everything that exists during the whole dump is
 * listed exactly once. NLM_F_DUMP_INTR is set if something was added or removed meanwhile.
 *
 * A process with CAP_NET_ADMIN, in the user namespace that owns the device's network
 * namespace, sees everything. Others see the contexts of their own user with their objects,
 * the domains that a process of their own user has open, and in these what belongs to such
 * processes. DAPX_XRCD_ATTR_PARTIAL marks such a domain; the numbers in its first message
 * still count everything. What counts are the effective capabilities and user of the
 * process that asks, as far as the socket was opened with the same.
 */

#define DAPX_GENL_NAME "dapx"
#define DAPX_GENL_VERSION 1
#define DAPX_GENL_GROUP_EVENTS "events"

/**
 * enum dapx_genl_cmd - Commands of the generic netlink family
 * @DAPX_GENL_CMD_XRCD_GET: dump: XRC domains; answers have enum dapx_xrcd_attr
 * @DAPX_GENL_CMD_CONTEXT_GET: dump: contexts; answers have enum dapx_object_attr
 * @DAPX_GENL_CMD_OBJECT_GET: dump: objects of contexts; answers have enum dapx_object_attr
 * @DAPX_GENL_CMD_EVENT: not a request: notification to listeners, in enum
 *	dapx_object_attr
 */
enum dapx_genl_cmd {
	DAPX_GENL_CMD_XRCD_GET = 1,
	DAPX_GENL_CMD_CONTEXT_GET = 2,
	DAPX_GENL_CMD_OBJECT_GET = 3,
	DAPX_GENL_CMD_EVENT = 4,
};

/**
 * enum dapx_genl_event - Events that listeners of DAPX_GENL_GROUP_EVENTS receive
 * @DAPX_GENL_EVENT_CONTEXT_NEW: a process has attached a context to a device
 * @DAPX_GENL_EVENT_CONTEXT_ENDING: teardown of a context begins: DAPX_OBJECT_ATTR_CAUSE, and
 *	the number of its objects. Endpoints, windows and domains are reported as they end
 * @DAPX_GENL_EVENT_CONTEXT_ENDED: nothing of the context is left: DAPX_OBJECT_ATTR_DURATION
 * @DAPX_GENL_EVENT_EP_STATE: an endpoint's new state
 * @DAPX_GENL_EVENT_RMR_REVOKED: a window was revoked: its key is dead
 * @DAPX_GENL_EVENT_DOMAIN_NEW: this context has created an XRC domain
 * @DAPX_GENL_EVENT_DOMAIN_GONE: this context, the last user of a domain, has closed it
 * @DAPX_GENL_EVENT_EP_GONE: an endpoint has no queue pair and no connection any more
 */
enum dapx_genl_event {
	DAPX_GENL_EVENT_CONTEXT_NEW = 1,
	DAPX_GENL_EVENT_CONTEXT_ENDING = 2,
	DAPX_GENL_EVENT_CONTEXT_ENDED = 3,
	DAPX_GENL_EVENT_EP_STATE = 4,
	DAPX_GENL_EVENT_RMR_REVOKED = 5,
	DAPX_GENL_EVENT_DOMAIN_NEW = 6,
	DAPX_GENL_EVENT_DOMAIN_GONE = 7,
	DAPX_GENL_EVENT_EP_GONE = 8,
};

/**
 * enum dapx_genl_cause - Why a context ends
 * @DAPX_GENL_CAUSE_CLOSED: its process closed the file
 * @DAPX_GENL_CAUSE_EXITED: its process exited or was killed
 * @DAPX_GENL_CAUSE_REMOVED: its device was removed
 */
enum dapx_genl_cause {
	DAPX_GENL_CAUSE_CLOSED = 1,
	DAPX_GENL_CAUSE_EXITED = 2,
	DAPX_GENL_CAUSE_REMOVED = 3,
};

/**
 * enum dapx_object_attr - Attributes of a context, and of an object
 * @DAPX_OBJECT_ATTR_PAD: padding, for alignment
 * @DAPX_OBJECT_ATTR_CONTEXT: u32, not 0: identifies the open file; not reused soon
 * @DAPX_OBJECT_ATTR_DEVICE: string: name of the RDMA device. Missing if the context is not
 *	attached, or its device was removed
 * @DAPX_OBJECT_ATTR_PID: u32: the process, as DAPX_XRCD_OPEN_PID
 * @DAPX_OBJECT_ATTR_NAME: string: its name, as DAPX_XRCD_OPEN_NAME
 * @DAPX_OBJECT_ATTR_USER: u32: of a context: id of the user that opened it, in the reader's user
 *	namespace
 * @DAPX_OBJECT_ATTR_OBJECTS: u32: of a context: number of its objects
 * @DAPX_OBJECT_ATTR_ENDING: flag: of a context: it is being torn down, or its process or its
 *	device is gone. Its objects are no longer listed
 * @DAPX_OBJECT_ATTR_TYPE: u32: enum dapx_object_type
 * @DAPX_OBJECT_ATTR_HANDLE: u32: as the process names it
 * @DAPX_OBJECT_ATTR_USERS: u32: as dapx_query_object.out_users
 * @DAPX_OBJECT_ATTR_STATE: u32: as dapx_query_object.out_state
 * @DAPX_OBJECT_ATTR_BUSY: flag: a command is working on the object; attributes that it
 *	may be changing are left out
 * @DAPX_OBJECT_ATTR_PD: u32: handle of its protection domain
 * @DAPX_OBJECT_ATTR_MR: u32: of an RMR that is bound: handle of its memory region
 * @DAPX_OBJECT_ATTR_SRQ: u32: of an endpoint: handle of its shared receive queue
 * @DAPX_OBJECT_ATTR_QP: u32: number of the queue pair, of an endpoint or a registration
 * @DAPX_OBJECT_ATTR_REMOTE_QP: u32: the peer's; 0 if unknown
 * @DAPX_OBJECT_ATTR_LOCAL: struct __kernel_sockaddr_storage: of an endpoint or a CM id
 * @DAPX_OBJECT_ATTR_REMOTE: struct __kernel_sockaddr_storage: the peer's
 * @DAPX_OBJECT_ATTR_NUMBER: u32: of an XRC SRQ: as dapx_srq_create.out_srq_num
 * @DAPX_OBJECT_ATTR_DOMAIN: u32: of objects that belong to an XRC domain:
 *	DAPX_XRCD_ATTR_ID
 * @DAPX_OBJECT_ATTR_ACCESS: u32: enum dapx_access
 * @DAPX_OBJECT_ATTR_LENGTH: u64: bytes of a memory region, or of a window
 * @DAPX_OBJECT_ATTR_DEPTH: u32: entries of an EVD's or an SRQ's ring
 * @DAPX_OBJECT_ATTR_UNREAD: u32: events in an EVD's ring
 * @DAPX_OBJECT_ATTR_FULL: flag: more events wait for room in that ring
 * @DAPX_OBJECT_ATTR_LIMIT: u32: of an SRQ, as dapx_srq_query.out_limit
 * @DAPX_OBJECT_ATTR_REQUESTS: u32: of an endpoint: requests in flight; of a listener:
 *	connection requests that wait
 * @DAPX_OBJECT_ATTR_RECEIVES: u32: of an endpoint or an SRQ: receives that the device has
 * @DAPX_OBJECT_ATTR_POSTED: u64: of an endpoint: requests taken since it was made; of an SRQ:
 *	receives
 * @DAPX_OBJECT_ATTR_RECEIVED: u64: of an endpoint: messages received
 * @DAPX_OBJECT_ATTR_EVENTS: u64: of an EVD: events delivered to it
 * @DAPX_OBJECT_ATTR_EVENT: u32: enum dapx_genl_event
 * @DAPX_OBJECT_ATTR_TIME: u64: when the event happened, in nanoseconds of CLOCK_MONOTONIC
 * @DAPX_OBJECT_ATTR_LOST: u32: number of earlier events that could not be reported
 * @DAPX_OBJECT_ATTR_CAUSE: u32: enum dapx_genl_cause
 * @DAPX_OBJECT_ATTR_DURATION: u64: of a teardown, in nanoseconds
 */
enum dapx_object_attr {
	DAPX_OBJECT_ATTR_PAD = 1,
	DAPX_OBJECT_ATTR_CONTEXT = 2,
	DAPX_OBJECT_ATTR_DEVICE = 3,
	DAPX_OBJECT_ATTR_PID = 4,
	DAPX_OBJECT_ATTR_NAME = 5,
	DAPX_OBJECT_ATTR_USER = 6,
	DAPX_OBJECT_ATTR_OBJECTS = 7,
	DAPX_OBJECT_ATTR_ENDING = 8,
	DAPX_OBJECT_ATTR_TYPE = 9,
	DAPX_OBJECT_ATTR_HANDLE = 10,
	DAPX_OBJECT_ATTR_USERS = 11,
	DAPX_OBJECT_ATTR_STATE = 12,
	DAPX_OBJECT_ATTR_BUSY = 13,
	DAPX_OBJECT_ATTR_PD = 14,
	DAPX_OBJECT_ATTR_MR = 15,
	DAPX_OBJECT_ATTR_SRQ = 16,
	DAPX_OBJECT_ATTR_QP = 17,
	DAPX_OBJECT_ATTR_REMOTE_QP = 18,
	DAPX_OBJECT_ATTR_LOCAL = 19,
	DAPX_OBJECT_ATTR_REMOTE = 20,
	DAPX_OBJECT_ATTR_NUMBER = 21,
	DAPX_OBJECT_ATTR_DOMAIN = 22,
	DAPX_OBJECT_ATTR_ACCESS = 23,
	DAPX_OBJECT_ATTR_LENGTH = 24,
	DAPX_OBJECT_ATTR_DEPTH = 25,
	DAPX_OBJECT_ATTR_UNREAD = 26,
	DAPX_OBJECT_ATTR_FULL = 27,
	DAPX_OBJECT_ATTR_LIMIT = 28,
	DAPX_OBJECT_ATTR_REQUESTS = 29,
	DAPX_OBJECT_ATTR_RECEIVES = 30,
	DAPX_OBJECT_ATTR_POSTED = 31,
	DAPX_OBJECT_ATTR_RECEIVED = 32,
	DAPX_OBJECT_ATTR_EVENTS = 33,
	DAPX_OBJECT_ATTR_EVENT = 34,
	DAPX_OBJECT_ATTR_TIME = 35,
	DAPX_OBJECT_ATTR_LOST = 36,
	DAPX_OBJECT_ATTR_CAUSE = 37,
	DAPX_OBJECT_ATTR_DURATION = 38,
};

/**
 * enum dapx_xrcd_attr - Attributes of an XRC domain
 * @DAPX_XRCD_ATTR_ID: u32, not 0; in each message. Not reused soon
 * @DAPX_XRCD_ATTR_DEVICE: string: name of the RDMA device
 * @DAPX_XRCD_ATTR_PATH: string: the file, by the name through which it was opened when the
 *	domain was created, or to which that was renamed since, as the reader sees it: as in
 *	/proc/self/maps, with " (deleted)" appended if the name was removed. Empty if it is
 *	longer than PATH_MAX or, without CAP_NET_ADMIN, if it is not below the reader's root
 *	or in another mount namespace. Missing if the domain has no file
 * @DAPX_XRCD_ATTR_PARTIAL: flag: only items of the reader's own user are listed
 * @DAPX_XRCD_ATTR_OPENS: u32: number of references to it
 * @DAPX_XRCD_ATTR_SRQS: u32: number of its shared receive queues
 * @DAPX_XRCD_ATTR_QPS: u32: number of its receive queue pairs
 * @DAPX_XRCD_ATTR_OPEN: nested: enum dapx_xrcd_open_attr: a reference to it; a process may
 *	have several
 * @DAPX_XRCD_ATTR_SRQ: nested: enum dapx_xrcd_srq_attr
 * @DAPX_XRCD_ATTR_QP: nested: enum dapx_xrcd_qp_attr. It belongs to a user that has a context
 *	registered with it
 */
enum dapx_xrcd_attr {
	DAPX_XRCD_ATTR_ID = 1,
	DAPX_XRCD_ATTR_DEVICE = 2,
	DAPX_XRCD_ATTR_PATH = 3,
	DAPX_XRCD_ATTR_PARTIAL = 4,
	DAPX_XRCD_ATTR_OPENS = 5,
	DAPX_XRCD_ATTR_SRQS = 6,
	DAPX_XRCD_ATTR_QPS = 7,
	DAPX_XRCD_ATTR_OPEN = 8,
	DAPX_XRCD_ATTR_SRQ = 9,
	DAPX_XRCD_ATTR_QP = 10,
};

/**
 * enum dapx_xrcd_open_attr - Attributes of a reference to an XRC domain
 * @DAPX_XRCD_OPEN_PID: u32: PID of the process in the reader's PID namespace; 0 if the process
 *	is in another one
 * @DAPX_XRCD_OPEN_NAME: string: its name; missing if the process is in another PID namespace,
 *	or about to exit
 */
enum dapx_xrcd_open_attr {
	DAPX_XRCD_OPEN_PID = 1,
	DAPX_XRCD_OPEN_NAME = 2,
};

/**
 * enum dapx_xrcd_srq_attr - Attributes of a shared receive queue of an XRC domain
 * @DAPX_XRCD_SRQ_NUMBER: u32: as dapx_srq_create.out_srq_num
 * @DAPX_XRCD_SRQ_PID: u32: the process that made it, as DAPX_XRCD_OPEN_PID
 */
enum dapx_xrcd_srq_attr {
	DAPX_XRCD_SRQ_NUMBER = 1,
	DAPX_XRCD_SRQ_PID = 2,
};

/**
 * enum dapx_xrcd_qp_attr - Attributes of a receive queue pair of an XRC domain
 * @DAPX_XRCD_QP_PAD: padding, for alignment
 * @DAPX_XRCD_QP_NUMBER: u32: as dapx_xrc_qp_create.out_qp_num
 * @DAPX_XRCD_QP_STATE: u32: enum dapx_qp_state
 * @DAPX_XRCD_QP_REGISTRATIONS: u32: as dapx_xrc_qp_query.out_registrations
 * @DAPX_XRCD_QP_MESSAGES: u64: as dapx_xrc_qp_query.out_messages
 * @DAPX_XRCD_QP_NOT_READY: u64: as dapx_xrc_qp_query.out_not_ready
 */
enum dapx_xrcd_qp_attr {
	DAPX_XRCD_QP_PAD = 1,
	DAPX_XRCD_QP_NUMBER = 2,
	DAPX_XRCD_QP_STATE = 3,
	DAPX_XRCD_QP_REGISTRATIONS = 4,
	DAPX_XRCD_QP_MESSAGES = 5,
	DAPX_XRCD_QP_NOT_READY = 6,
};

#endif /* _UAPI_DAPX_H */
