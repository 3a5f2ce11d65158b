/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause) */
/*
 * dapx: the user-space interface of /dev/dapx
 *
 * Nothing but this header defines ABI.
 */
#ifndef _UAPI_DAPX_H
#define _UAPI_DAPX_H

#include <linux/ioctl.h>
#include <linux/socket.h>
#include <linux/types.h>

/**
 * DOC: General ioctl format
 *
 * Every command takes one struct whose first member, @size, is its length as
 * the caller knows it. A short struct is refused, a longer one is accepted when
 * what this kernel does not know is zero; so a library and a module of
 * different age work together. Members named @out_* are written by the kernel,
 * the others only read. Reserved members must be zero.
 *
 * One open file is one context: it is attached to one RDMA device, and belongs
 * to the process (the address space) that opened it. Objects are named by
 * handles, which are never zero and which are not soon used again.
 *
 * The errno says what is wrong:
 *
 *  - ENOTTY: unknown command
 *  - E2BIG: the struct is longer than known, and the rest is not zero; or longer than a page
 *  - EINVAL: malformed: short struct, reserved member set, value out of range
 *  - EOPNOTSUPP: a flag or value that this kernel or this device does not have
 *  - EOVERFLOW: an address plus a length wraps around
 *  - EFAULT: a pointer that cannot be read or written
 *  - ENOENT: no such handle, or it is of another class
 *  - EBADFD: the object's (or the context's) state does not permit it
 *  - EBUSY: in use by another object; nothing was changed
 *  - EPERM: the caller is not the process that opened the file
 *  - EACCES: the memory does not give the rights that are asked for; a port
 *    below 1024 without privilege; a file of others that the caller may not write; an
 *    XRC receive queue pair with which the context is not registered
 *  - EBADF: not an open descriptor
 *  - EEXIST: what was to be made exclusively is there already
 *  - EPROTO: one side of a connection speaks XRC, the other does not
 *  - ENODEV: no RDMA device of this name, or not in this network namespace
 *  - EIO: the device was removed; nothing but closing the file makes sense
 *  - ENOMEM: no memory, or more than RLIMIT_MEMLOCK
 *  - EDQUOT: a limit of the module (objects per context or per user) is reached
 *  - EAGAIN: no room in the ring now
 *  - EBADMSG: the indices in a ring are impossible
 *  - ENOTRECOVERABLE: a shared receive queue is out of service, as a receive in it is
 *    malformed, or its memory is not for it: DAPX_ASYNC_SRQ_ERROR tells which
 *  - ETIMEDOUT, EINTR: a wait ended without what was waited for
 *  - ECANCELED: the object was freed while it was waited for
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
};

#define DAPX_DEVICE_NAME_MAX 64
#define DAPX_PRIVATE_DATA_MAX 196
/* A wait without end. */
#define DAPX_NO_DEADLINE (~0ULL)

/**
 * enum dapx_object_type - Classes of objects
 * @DAPX_OBJECT_ANY: in a query or a free: whatever the handle names
 * @DAPX_OBJECT_PD: protection domain (DAT: PZ)
 * @DAPX_OBJECT_MR: memory region (DAT: LMR)
 * @DAPX_OBJECT_EVD: event dispatcher, a ring of events
 * @DAPX_OBJECT_SRQ: shared receive queue
 * @DAPX_OBJECT_EP: endpoint
 * @DAPX_OBJECT_CM: connection manager id: active, listening, or a connection
 *	request that waits for its answer
 * @DAPX_OBJECT_RMR: remote memory region: a window of an MR for peers
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
 * @DAPX_FEATURE_RC: endpoints of reliable connections
 * @DAPX_FEATURE_SRQ: plain shared receive queues
 * @DAPX_FEATURE_RMR: remote memory regions
 * @DAPX_FEATURE_XRC: XRC domains, receive queues and connections, on any device
 */
enum dapx_feature {
	DAPX_FEATURE_RC = 1 << 0,
	DAPX_FEATURE_SRQ = 1 << 1,
	DAPX_FEATURE_RMR = 1 << 2,
	DAPX_FEATURE_XRC = 1 << 3,
};

/**
 * struct dapx_info - ioctl(DAPX_INFO): what this module can do
 * @size: sizeof(struct dapx_info)
 * @flags: Must be 0
 * @out_features: enum dapx_feature
 * @out_max_objects: objects that one context may hold
 * @out_max_user_objects: objects that all contexts of one user may hold
 * @out_max_ring_depth: most entries of any ring
 * @out_max_sge: most segments of a work request
 * @out_max_inline: most bytes of inline data
 * @out_max_backlog: most connection requests that may wait on a listener
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
 * @device: name of the RDMA device, ended by a zero byte
 *
 * EOPNOTSUPP: a driver that is not known to be safe for kernel-owned queues
 * with user memory.
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
 * @DAPX_DEVICE_SOLICITED: solicited receives are told apart (DAPX_EP_SOLICITED)
 */
enum dapx_device_cap {
	DAPX_DEVICE_ATOMICS = 1 << 0,
	DAPX_DEVICE_SRQ = 1 << 1,
	DAPX_DEVICE_IWARP = 1 << 2,
	DAPX_DEVICE_IMM = 1 << 3,
	DAPX_DEVICE_QP_EXCHANGE = 1 << 4,
	DAPX_DEVICE_SOLICITED = 1 << 5,
};

/**
 * struct dapx_query_device - ioctl(DAPX_QUERY_DEVICE)
 * @size: sizeof(struct dapx_query_device)
 * @flags: Must be 0
 * @out_device: name of the device
 * @out_caps: enum dapx_device_cap
 * @out_node_guid: as the driver gives it, in network order
 * @out_max_mr_size: bytes
 * @out_max_ep: most queue pairs of the device
 * @out_max_send_depth: most requests of an endpoint
 * @out_max_recv_depth: most receives of an endpoint
 * @out_max_srq_depth: most receives of a shared receive queue
 * @out_max_send_sge: most segments of a request
 * @out_max_recv_sge: most segments of a receive
 * @out_max_inline: most bytes of inline data
 * @out_max_rd_atomic: most reads and atomics in flight, as initiator
 * @out_max_dest_rd_atomic: the same, as responder
 * @out_max_msg_size: most bytes of one message
 * @out_ports: number of ports
 * @out_max_connect_data: private data of a connect, bytes, IP addresses: 56; with
 *	DAPX_EP_XRC 8 less
 * @out_max_accept_data: private data of an accept, bytes: 196; with
 *	DAPX_XRC_QP_ACCEPT 8 less
 * @out_max_reject_data: private data of a reject, bytes
 * @out_active_mtu: bytes of data in a packet, of the first port as it is now
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
 * @type: enum dapx_object_type; others are passed over (ENOENT without NEXT)
 * @out_handle: the object
 * @out_type: its class
 * @out_users: objects that keep it from being freed
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
 * @DAPX_FREE_NOWAIT: CM ids: EBUSY instead of a wait for acknowledgements
 * @DAPX_FREE_DISCARD: CM ids: without acknowledgements. In one step no event of the id
 *	comes any more, and what waits for room in its EVD is dropped; what is in the
 *	ring can still be read, and is to be ignored
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
 * @type: its class; DAPX_OBJECT_ANY for whatever it is
 *
 * EBUSY while other objects use it. When it returns 0 the handle is invalid
 * and the device no longer touches what belonged to it.
 *
 * MR, RMR: the keys are dead and not one byte changes any more. An MR is in use
 * while a window of it is bound, or a bind of one waits in a request queue. An
 * RMR can be freed always; a bind of it that still waits then binds nothing.
 *
 * EP: EBADFD in the states RESERVED, PASSIVE_CONNECTION_PENDING and
 * TENTATIVE_CONNECTION_PENDING; in all others a set-up is aborted, a connection
 * is broken, and no further event of it appears.
 *
 * CM: cancels what is outstanding; a request is rejected, and so are those that
 * wait on a listener and were not taken. EBUSY while an endpoint is attached.
 * While events of it are not acknowledged the call waits; EINTR leaves the id as
 * it was.
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
 * A ring is memory of the module that the process maps. Its layout is the
 * kernel's choice: offsets come back from the create command. Indices are
 * free-running 32-bit counters: @head is moved by the consumer, @tail by the
 * producer, both with release semantics and read with acquire semantics; the
 * entry of index i is at entries_off + (i % depth) * stride. More than @depth
 * entries between head and tail break the object that owns the ring.
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
 * @arm_off: EVD rings: __u32, written by the process to be told of the next event by
 *	an eventfd with DAPX_EVENTFD_ONCE; 0 where there is none
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
 * @DAPX_RING_BUSY: work rings: the kernel will look at the ring again by itself,
 *	so that DAPX_DOORBELL is not needed: at the next completion, or, if the
 *	process has several events unread, within 100 microseconds. Needs a
 *	full barrier between moving the tail and reading this
 * @DAPX_RING_BACKLOG: EVD rings: events wait in the kernel for room, or to be
 *	asked for; DAPX_DOORBELL on the EVD moves them. Needs a full barrier
 *	between moving the head and reading this
 * @DAPX_RING_DEAD: nobody looks at this ring any more: its object was freed, the
 *	device is gone, or the indices were impossible
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
 * @DAPX_DOORBELL_EVENTS: EVD: there is room for events that wait
 */
enum dapx_doorbell_flags {
	DAPX_DOORBELL_SEND = 1 << 0,
	DAPX_DOORBELL_RECV = 1 << 1,
	DAPX_DOORBELL_EVENTS = 1 << 2,
};

/**
 * struct dapx_doorbell - ioctl(DAPX_DOORBELL): look at a ring
 * @size: sizeof(struct dapx_doorbell)
 * @flags: enum dapx_doorbell_flags, at least one, fitting the object
 * @handle: an endpoint, an SRQ or an EVD
 * @__reserved: Must be 0
 *
 * EBADFD: requests on an endpoint that is not connected and was not (they stay
 * in the ring). What is wrong with a single work request is told by its
 * completion, never here.
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
 * @user_data: given back by queries
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
 * @DAPX_ACCESS_LOCAL_WRITE: receives, reads and atomics may put data here
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
 * @DAPX_MR_XRC: also for XRC: for receives of its SRQs, requests of its endpoints,
 *	and for peers by way of an SRQ of the same PD. The pages are pinned a
 *	second time, and count twice
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
 * @user_data: given back by queries
 * @out_mr: handle; work requests name memory by it
 * @out_rkey: what a peer needs, with the address; 0 without remote rights
 *
 * The pages are pinned and count against RLIMIT_MEMLOCK. EFAULT: not all of the
 * range is mapped; EACCES: it is mapped with less than the rights ask for.
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
 * struct dapx_mr_modify - ioctl(DAPX_MR_MODIFY): use an MR for more
 * @size: sizeof(struct dapx_mr_modify)
 * @flags: enum dapx_mr_flags: what the MR gets, at least one; what it has already
 *	has no effect, and what it has it keeps
 * @mr: handle, which stays the same, as do the keys
 * @__reserved: Must be 0
 *
 * Errors as of DAPX_MR_CREATE: what is pinned for XRC are the pages that are mapped
 * in the MR's range now. Work requests published when it has returned find it so.
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
 * @DAPX_EVENT_COMPLETION: a work request ended: @completion
 * @DAPX_EVENT_CONNECTION: of an endpoint's connection: @connection
 * @DAPX_EVENT_CONNECT_REQUEST: a peer asks for a connection: @request
 * @DAPX_EVENT_CM: of a CM id without an endpoint: @cm
 * @DAPX_EVENT_ASYNC: asynchronous: @async
 * @DAPX_EVENT_SOFTWARE: put there by DAPX_EVD_POST: @software
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
 * enum dapx_status - How a work request ended
 * @DAPX_STATUS_SUCCESS: done
 * @DAPX_STATUS_FLUSHED: the endpoint was, or went, out of service. A request: unknown;
 *	the peer may have it, whole or in part. A receive: no message is in it
 * @DAPX_STATUS_LOCAL_LENGTH: message and buffer do not fit together
 * @DAPX_STATUS_LOCAL_OPERATION: a malformed request
 * @DAPX_STATUS_LOCAL_PROTECTION: memory that is not registered, or not for this
 * @DAPX_STATUS_BAD_RESPONSE: the peer's answer makes no sense
 * @DAPX_STATUS_REMOTE_ACCESS: the peer does not give this access to its memory
 * @DAPX_STATUS_REMOTE_INVALID: the peer calls the request invalid
 * @DAPX_STATUS_REMOTE_OPERATION: the peer could not carry it out
 * @DAPX_STATUS_TRANSPORT: no answer after all retries; the peer may have it all the same
 * @DAPX_STATUS_RECEIVER_NOT_READY: the peer had no receive posted, to the last try
 * @DAPX_STATUS_GENERAL: anything else
 * @DAPX_STATUS_REMOTE_QUEUE: XRC: the peer has no SRQ of this number, or not any more,
 *	as its owner has freed it or died
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
 * @DAPX_OP_RDMA_WRITE_IMM: the same, and take a receive to say so
 * @DAPX_OP_RDMA_READ: read from the peer's memory
 * @DAPX_OP_COMPARE_SWAP: atomic on 8 bytes of the peer's memory
 * @DAPX_OP_FETCH_ADD: atomic on 8 bytes of the peer's memory
 * @DAPX_OP_RECV: completions only: a receive
 * @DAPX_OP_RECV_RDMA_IMM: completions only: a receive taken by RDMA_WRITE_IMM
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
 * @DAPX_COMPLETION_SRQ: @srq is valid: the receive was one of that SRQ
 * @DAPX_COMPLETION_XRC: @qp_num is valid: the XRC receive queue pair by which it came
 */
enum dapx_completion_flags {
	DAPX_COMPLETION_IMM = 1 << 0,
	DAPX_COMPLETION_SRQ = 1 << 1,
	DAPX_COMPLETION_XRC = 1 << 2,
};

/**
 * enum dapx_connection_event - dapx_event.connection.what
 * @DAPX_CONNECTION_ESTABLISHED: connected; no receive of the connection completes
 *	before this is in its EVD
 * @DAPX_CONNECTION_PEER_REJECTED: the consumer on the other side said no
 * @DAPX_CONNECTION_NON_PEER_REJECTED: nobody listens, or not there
 * @DAPX_CONNECTION_ACCEPT_ERROR: an accepted connection did not come about
 * @DAPX_CONNECTION_DISCONNECTED: ended by a disconnect of either side
 * @DAPX_CONNECTION_BROKEN: ended by an error; some of what was under way may be flushed
 *	after it
 * @DAPX_CONNECTION_TIMED_OUT: no answer in time
 * @DAPX_CONNECTION_UNREACHABLE: no way to the address
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
};

/**
 * enum dapx_cm_event - dapx_event.cm.what
 * @DAPX_CM_ADDR_RESOLVED: the address is known, and is reached by this device
 * @DAPX_CM_ADDR_ERROR: it is not; @error says why
 * @DAPX_CM_ROUTE_RESOLVED: ready for DAPX_EP_CONNECT
 * @DAPX_CM_ROUTE_ERROR: no route; @error says why
 * @DAPX_CM_REQUEST_ENDED: a request that was taken: its peer gave up before it was
 *	answered; it can only be freed. @error: ECONNREFUSED: the peer withdrew it;
 *	ETIMEDOUT: the peer is not heard any more; ECONNABORTED: else
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
 * @DAPX_ASYNC_DEVICE_REMOVED: the device is gone; the last event of every EVD (of
 *	one without room, DAPX_RING_DEAD is all that tells)
 * @DAPX_ASYNC_PORT_ACTIVE: a port came up: @port
 * @DAPX_ASYNC_PORT_ERROR: a port went down: @port
 * @DAPX_ASYNC_EP_ERROR: the device gave up an endpoint: @handle
 * @DAPX_ASYNC_SRQ_ERROR: an SRQ is out of service: @handle. @error: EACCES: the memory
 *	of its receive @wr_id is not registered, or not for this; EINVAL: that receive is
 *	malformed; EBADMSG: the ring's indices are impossible; EIO: the device gave it up
 * @DAPX_ASYNC_SRQ_LIMIT: an SRQ has fewer receives than its limit: @handle
 * @DAPX_ASYNC_XRC_QP_ESTABLISHED: a receive queue pair got its first message: @qp_num
 * @DAPX_ASYNC_XRC_QP_DISCONNECTED: its peer ended the connection: @qp_num
 * @DAPX_ASYNC_XRC_QP_ERROR: its connection ended by an error: @qp_num
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
 * @handle: the object that it is about; 0 for none. A receive of an XRC SRQ: that
 * @user_data: of that object
 * @completion: a work request ended; all but @wr_id, @status and @opcode is
 *	valid only with success, @flags included. @opcode: that of the request, however
 *	it ended; a receive that failed is DAPX_OP_RECV. @byte_len: bytes that were
 *	received; of other requests those of their segments, or inline
 * @connection: @error: a negative errno, or 0; private data: DAPX_EP_QUERY
 * @request: @cm: handle of the request; @ep: endpoint reserved or made for it,
 *	or 0; private data and addresses: DAPX_CM_QUERY
 * @cm: @error: a negative errno, or 0
 * @async: @port: from 1; @qp_num: of XRC receive queue pairs; @error: of
 *	DAPX_ASYNC_SRQ_ERROR: a negative errno; 0 of older modules
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
 * @DAPX_EVD_ASYNC: gets the asynchronous events of the device's ports
 */
enum dapx_evd_flags {
	DAPX_EVD_ASYNC = 1 << 0,
};

/**
 * struct dapx_evd_create - ioctl(DAPX_EVD_CREATE): make an event ring
 * @size: sizeof(struct dapx_evd_create)
 * @flags: enum dapx_evd_flags
 * @depth: entries, rounded up to a power of two. Events beyond it are not lost:
 *	they wait in the kernel; asynchronous ones of one object (or of the ports) and
 *	kind as one event, which tells of the last
 * @__reserved: Must be 0
 * @user_data: given back by queries
 * @out_evd: handle
 * @__reserved2: Must be 0
 * @out_ring: where the ring is
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
 * @DAPX_WAIT_SOLICITED: receives count only if their sender asked for attention
 *	(DAPX_SEND_SOLICITED) or if they failed; needs endpoints made with
 *	DAPX_EP_SOLICITED. While others wait for any event of the EVD, or it has
 *	an eventfd, any receive counts
 */
enum dapx_wait_flags {
	DAPX_WAIT_SOLICITED = 1 << 0,
};

/**
 * struct dapx_evd_wait - ioctl(DAPX_EVD_WAIT): wait for events
 * @size: sizeof(struct dapx_evd_wait)
 * @flags: enum dapx_wait_flags
 * @evd: handle
 * @threshold: so many events, 1 to the depth; 1 with DAPX_WAIT_SOLICITED
 * @deadline: when to give up; DAPX_NO_DEADLINE for never
 * @out_events: events in the ring now; also valid with ETIMEDOUT and EINTR
 * @__reserved: Must be 0
 *
 * Any number of threads may wait. Nothing is taken out of the ring.
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
 * The caller must not consume from the old ring meanwhile, nor arm it. Its mapping
 * stays valid, marked DAPX_RING_DEAD, until it is unmapped. What was armed is armed
 * in the new ring.
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
 * enum dapx_eventfd_flags - dapx_evd_eventfd.flags
 * @DAPX_EVENTFD_ONCE: signalled only by an event that finds the ring armed, which it
 *	is no more then. To arm it the process writes 1 at
 *	dapx_ring_layout.arm_off; then, behind a full barrier, it looks for events:
 *	the next one signals, those that are there already do not. After each signal
 *	it has to be armed again. Any number but 0 counts as 1
 */
enum dapx_eventfd_flags {
	DAPX_EVENTFD_ONCE = 1 << 0,
};

/**
 * struct dapx_evd_eventfd - ioctl(DAPX_EVD_EVENTFD): signal an eventfd
 * @size: sizeof(struct dapx_evd_eventfd)
 * @flags: enum dapx_eventfd_flags
 * @evd: handle
 * @fd: an eventfd(2), signalled once for each event from now on; -1 for none.
 *	Replaces the one before
 */
struct dapx_evd_eventfd {
	__u32 size;
	__u32 flags;
	__u32 evd;
	__s32 fd;
};

#define DAPX_EVD_EVENTFD _IO(DAPX_TYPE, DAPX_CMD_EVD_EVENTFD)

/**
 * struct dapx_evd_post - ioctl(DAPX_EVD_POST): put in a software event
 * @size: sizeof(struct dapx_evd_post)
 * @flags: Must be 0
 * @evd: handle
 * @__reserved: Must be 0
 * @data: comes back in dapx_event.software
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
 * @mr: handle of the MR; its PD is the endpoint's (or the SRQ's)
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
 * @DAPX_SEND_SIGNALED: a completion event also when it succeeds (failures
 *	always have one)
 * @DAPX_SEND_SOLICITED: asks for the peer's attention
 * @DAPX_SEND_FENCE: starts after earlier reads and atomics have ended
 * @DAPX_SEND_INLINE: @inline_len bytes of data stand in the entry, in place of
 *	segments; writes and sends only
 */
enum dapx_send_flags {
	DAPX_SEND_SIGNALED = 1 << 0,
	DAPX_SEND_SOLICITED = 1 << 1,
	DAPX_SEND_FENCE = 1 << 2,
	DAPX_SEND_INLINE = 1 << 3,
};

/**
 * struct dapx_send_wr - An entry of an endpoint's request ring
 * @wr_id: comes back in the completion
 * @opcode: enum dapx_opcode
 * @num_sge: segments behind this header
 * @flags: enum dapx_send_flags
 * @remote_srqn: endpoints with DAPX_EP_XRC: number of the peer's SRQ, for each
 *	operation, not 0; of others: must be 0
 * @remote_addr: RDMA and atomics: address in the peer
 * @rkey: RDMA and atomics: the peer's key
 * @inline_len: with DAPX_SEND_INLINE: bytes behind this header; else 0
 * @compare_add: atomics: what is compared, or added
 * @swap: compare-and-swap: the new value
 * @imm_data: with immediate data: it, in the sender's byte order of choice
 * @__reserved: Must be 0
 *
 * Segments (or inline data) follow at once. Members that an operation has no
 * use for are not looked at.
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
 * struct dapx_recv_wr - An entry of a receive ring
 * @wr_id: comes back in the completion
 * @num_sge: segments behind this header
 * @flags: Must be 0
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
 * @xrcd: the XRC domain that it belongs to; 0: a plain one, for endpoints
 * @evd: its asynchronous events, and with @xrcd its completions; a plain one may
 *	have none: 0
 * @out_srq: handle
 * @out_srq_num: with @xrcd: its number, 24 bits, of which the device has no other
 *	and which is not soon used again; else 0
 * @async_evd: its asynchronous events, in place of @evd; 0: @evd
 * @user_data: given back by queries; comes with each completion of an XRC SRQ
 * @out_ring: its receive ring, of struct dapx_recv_wr
 *
 * Receives of an XRC SRQ name memory that was registered with DAPX_MR_XRC. They need
 * no doorbell: each is looked at when a message needs it.
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
 * @limit: DAPX_ASYNC_SRQ_LIMIT comes, once, when a message has taken a receive and
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
 * @out_xrcd: handle; 0 for a plain one
 * @out_evd: handle; 0 for none
 * @out_srq_num: as from DAPX_SRQ_CREATE
 * @out_depth: receives that the ring holds
 * @out_max_sge: segments of a receive
 * @out_limit: 0: none, or the event has come
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
 * enum dapx_ep_state - An endpoint's state (DAT's names)
 * @DAPX_EP_UNCONNECTED: fresh, or reset
 * @DAPX_EP_RESERVED: a listener holds it for its first request
 * @DAPX_EP_PASSIVE_PENDING: a request came for it
 * @DAPX_EP_ACTIVE_PENDING: connecting
 * @DAPX_EP_TENTATIVE_PENDING: made by the module for a request
 * @DAPX_EP_COMPLETION_PENDING: accepted, not yet connected
 * @DAPX_EP_CONNECTED: connected
 * @DAPX_EP_DISCONNECT_PENDING: disconnecting gracefully
 * @DAPX_EP_DISCONNECTED: was connected, or did not get there
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
 * @DAPX_EP_SOLICITED: its receives tell apart whether their sender asked for
 *	attention; needs DAPX_DEVICE_SOLICITED. The price: its receive EVD always
 *	shows DAPX_RING_BACKLOG, as other receives are fetched when they are
 *	asked for
 * @DAPX_EP_XRC: the sending side of XRC: its requests go to SRQs of the domain of the
 *	receive queue pair that it is connected with. It has no receives. Segments
 *	name memory that was registered with DAPX_MR_XRC
 */
enum dapx_ep_flags {
	DAPX_EP_SOLICITED = 1 << 0,
	DAPX_EP_XRC = 1 << 1,
};

/**
 * struct dapx_ep_attr - The sizes of an endpoint
 * @flags: enum dapx_ep_flags
 * @send_depth: requests, rounded up to a power of two, at least 1
 * @recv_depth: receives, rounded up to a power of two; 0 with an SRQ or for
 *	none
 * @max_send_sge: segments of a request
 * @max_recv_sge: segments of a receive
 * @max_inline: bytes of inline data; with @send_depth at most 4 MiB in all (else
 *	ENOMEM)
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
 * @srq: where receives come from, a plain one of the same PD; 0 for its own ring
 * @request_evd: completions of requests
 * @recv_evd: completions of receives; 0 if it has none
 * @connect_evd: events of its connection; 0 for nowhere: until DAPX_EP_MODIFY sets
 *	one, it can be connected by exchange of QP numbers only (else EBADFD)
 * @xrcd: with DAPX_EP_XRC: a domain that it keeps from being closed; or 0
 * @out_ep: handle
 * @async_evd: where DAPX_ASYNC_EP_ERROR goes; 0 for @connect_evd
 * @user_data: comes with each of its events
 * @attr: sizes
 * @out_qp_num: the queue pair's number
 * @out_state_off: __u32 in the rings' mapping, enum dapx_ep_state, for reading
 * @out_send_ring: requests, of struct dapx_send_wr
 * @out_recv_ring: receives, of struct dapx_recv_wr; depth 0 if there is none.
 *	Both rings are parts of one mapping
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
 * @out_pd: handle, 0 for none; so the following
 * @out_srq: handle
 * @out_request_evd: handle
 * @out_recv_evd: handle
 * @out_connect_evd: handle
 * @out_cm: handle of the CM id that it was connected with, if the consumer has it
 * @out_user_data: as given
 * @out_attr: sizes, as they came out
 * @out_qp_num: the queue pair's number; 0 while there is none
 * @out_remote_qp_num: the peer's; 0 while not connected
 * @out_requests: requests taken from the ring that have not ended
 * @out_receives: receives taken from the ring that have not ended
 * @out_state_off: as from DAPX_EP_CREATE, for an endpoint made by a listener
 * @out_private_data_len: bytes of private data that came with the last answer
 * @out_private_data: of the peer's accept or reject
 * @out_async_evd: handle, as given; 0 for @out_connect_evd
 * @out_local: own address; family 0 while not known
 * @out_remote: the peer's address
 * @out_send_ring: as from DAPX_EP_CREATE
 * @out_recv_ring: as from DAPX_EP_CREATE
 * @out_reject_reason: with DAPX_CONNECTION_PEER_REJECTED and _NON_PEER_REJECTED: the
 *	number that the peer's connection manager gives, see the InfiniBand
 *	specification (28: its consumer); over iWARP an errno
 * @out_rd_atomic: reads and atomics in flight as initiator, as agreed with the peer; 0
 *	while not connected. iWARP: as asked for
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
 *	posted
 * @DAPX_EP_MODIFY_REQUEST_EVD: @request_evd; before the connection is answered
 * @DAPX_EP_MODIFY_RECV_EVD: @recv_evd; likewise, and only while no receive that was taken
 *	from the ring is with the device, nor an event of one waits for room in the old EVD
 * @DAPX_EP_MODIFY_CONNECT_EVD: @connect_evd; likewise
 * @DAPX_EP_MODIFY_RD_ATOMIC: @max_rd_atomic and @max_dest_rd_atomic; likewise
 * @DAPX_EP_MODIFY_USER_DATA: @user_data; likewise
 * @DAPX_EP_MODIFY_QP: @qp; stands alone
 */
enum dapx_ep_modify_mask {
	DAPX_EP_MODIFY_PD = 1 << 0,
	DAPX_EP_MODIFY_REQUEST_EVD = 1 << 1,
	DAPX_EP_MODIFY_RECV_EVD = 1 << 2,
	DAPX_EP_MODIFY_CONNECT_EVD = 1 << 3,
	DAPX_EP_MODIFY_RD_ATOMIC = 1 << 4,
	DAPX_EP_MODIFY_USER_DATA = 1 << 5,
	DAPX_EP_MODIFY_QP = 1 << 6,
};

/**
 * enum dapx_qp_state - Steps of a connection by exchange of QP numbers
 * @DAPX_QP_RESET: of a receive queue pair that took no step yet; only told
 * @DAPX_QP_INIT: receives are taken from the ring; the endpoint stays
 *	UNCONNECTED
 * @DAPX_QP_RTR: messages are received; the endpoint is COMPLETION_PENDING
 * @DAPX_QP_RTS: ready to send; the endpoint is CONNECTED, without an event
 * @DAPX_QP_ERROR: of a receive queue pair whose connection has ended; only told
 */
enum dapx_qp_state {
	DAPX_QP_RESET = 0,
	DAPX_QP_INIT = 1,
	DAPX_QP_RTR = 2,
	DAPX_QP_RTS = 3,
	DAPX_QP_ERROR = 4,
};

/**
 * struct dapx_qp_attr - A step of a queue pair, by exchange of QP numbers
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
 * @rnr_retry: RTS: 0 to 7; 7 for without end
 * @__reserved: Must be 0
 * @flow_label: RTR: 20 bits
 *
 * What a state has no use for is not looked at.
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
	__u8 __reserved[2];
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
	__u32 __reserved;
	struct dapx_qp_attr qp;
};

#define DAPX_EP_MODIFY _IO(DAPX_TYPE, DAPX_CMD_EP_MODIFY)

/**
 * struct dapx_ep_connect - ioctl(DAPX_EP_CONNECT): connect an endpoint
 * @size: sizeof(struct dapx_ep_connect)
 * @flags: Must be 0
 * @ep: handle, UNCONNECTED
 * @cm: a CM id whose route is resolved; or 0: the module makes one for @dst
 * @dst: address and port of the listener; not with @cm
 * @src: own address; family 0 for what the routing table says; not with @cm
 * @deadline: when to give up; DAPX_NO_DEADLINE for the transport's own limit
 * @retry_count: of the transport, 0 to 7
 * @rnr_retry_count: 0 to 7; 7 for without end
 * @private_data_len: bytes; at most dapx_query_device.out_max_connect_data, with
 *	DAPX_EP_XRC 8 less
 * @private_data: for the listener
 *
 * Returns at once; the outcome is an event. After any other than
 * DAPX_CONNECTION_ESTABLISHED the endpoint is DISCONNECTED: DAPX_EP_RESET before the next.
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
 * struct dapx_ep_accept - ioctl(DAPX_EP_ACCEPT): say yes to a request
 * @size: sizeof(struct dapx_ep_accept)
 * @flags: Must be 0
 * @ep: the endpoint reserved or made for the request; else one that is
 *	UNCONNECTED
 * @cm: the request; its handle is invalid after success
 * @rnr_retry_count: 0 to 7; 7 for without end
 * @__reserved: Must be 0
 * @private_data_len: bytes
 * @private_data: for the peer
 *
 * The outcome is an event. A call that fails changes nothing. EOPNOTSUPP: an endpoint
 * with DAPX_EP_XRC; EPROTO: the request of one.
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
 * enum dapx_disconnect_flags - dapx_ep_disconnect.flags
 * @DAPX_DISCONNECT_ABRUPT: do not wait for requests that are under way
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
 * The end is an event. No effect in DISCONNECTED, and in DISCONNECT_PENDING
 * unless it is abrupt. Returns at once; but rxe completes a receive before it
 * acknowledges it, so an abrupt disconnect over rxe waits until the last receive
 * is 20 ms old.
 *
 * The peer stays connected until its requests are acknowledged, a quarter of a
 * second at most: what was received here last may not be yet. iWARP does without.
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
 * Both rings are empty afterwards, with head and tail where tail was. Events that are in
 * an EVD ring stay there; completions that were not yet are lost, and what they are of is
 * as if flushed.
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
 * @DAPX_CM_RESOLVING: address or route resolution is under way
 * @DAPX_CM_ADDR_READY: the address is resolved
 * @DAPX_CM_ROUTE_READY: the route is resolved
 * @DAPX_CM_LISTENING: listens
 * @DAPX_CM_REQUEST: a request that waits for its answer
 * @DAPX_CM_ATTACHED: an endpoint uses it
 * @DAPX_CM_ENDED: its endpoint is gone, or its address is another device's, or the
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
 * @evd: where its events go
 * @out_cm: handle
 * @user_data: comes with each of its events
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
 * @addr: address of the attached device (or the unspecified one) and port; port
 *	0 for any free one, which DAPX_CM_QUERY tells
 *
 * EADDRNOTAVAIL: the address is another device's.
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
 * enum dapx_listen_mode - Which endpoint a request gets
 * @DAPX_LISTEN_CONSUMER: none; the consumer names one when it accepts
 * @DAPX_LISTEN_RESERVED: the one named here, for one request; then the listener
 *	takes no more. The endpoint is RESERVED meanwhile
 * @DAPX_LISTEN_TENTATIVE: one made by the module, of the sizes given here,
 *	without PD and EVDs, which DAPX_EP_MODIFY sets
 */
enum dapx_listen_mode {
	DAPX_LISTEN_CONSUMER = 0,
	DAPX_LISTEN_RESERVED = 1,
	DAPX_LISTEN_TENTATIVE = 2,
};

/**
 * struct dapx_cm_listen - ioctl(DAPX_CM_LISTEN): take connection requests
 * @size: sizeof(struct dapx_cm_listen)
 * @flags: Must be 0
 * @cm: handle, BOUND
 * @mode: enum dapx_listen_mode
 * @backlog: requests that may wait for an answer; more are rejected; 0 for the
 *	module's limit. TENTATIVE: fewer if their endpoints would take more than 16 MiB
 * @ep: RESERVED: the endpoint; else 0
 * @attr: TENTATIVE: sizes of the endpoints; else zero
 * @__reserved: Must be 0
 *
 * EOPNOTSUPP: an endpoint with DAPX_EP_XRC, which only connects.
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
 * struct dapx_cm_resolve - ioctl(DAPX_CM_RESOLVE): find the way to an address
 * @size: sizeof(struct dapx_cm_resolve)
 * @flags: Must be 0
 * @cm: handle
 * @what: enum dapx_resolve_what
 * @deadline: when to give up; in any case after 4 seconds
 * @dst: with ADDR: address and port of the listener
 * @src: with ADDR: own address; family 0 for what was bound, or for what the
 *	routing table says
 *
 * Returns at once; the outcome is an event of type DAPX_EVENT_CM. A step that
 * failed can be tried again.
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
 * @out_ep: endpoint that uses it, or reserved or made for the request; or 0
 * @out_evd: where its events go
 * @out_requests: listener: requests that wait for an answer and were not taken
 * @out_unacked: events that are not acknowledged
 * @out_user_data: as given
 * @out_listener: request: handle of the listener; 0 once it was taken
 * @out_private_data_len: bytes
 * @out_private_data: request: the peer's. May have zeroes at the end that the
 *	peer did not send (InfiniBand does not tell the length)
 * @out_xrc: request: the peer's endpoint is one with DAPX_EP_XRC: it is accepted by
 *	DAPX_XRC_QP_ACCEPT; others by DAPX_EP_ACCEPT
 * @out_local: own address and port; family 0 while not known
 * @out_remote: the peer's
 * @out_remote_qp_num: request: the peer's queue pair; the following, too, of a request
 * @out_srq: 1: the peer's endpoint has a shared receive queue
 * @out_responder_resources: reads and atomics in flight that the peer would like to
 *	have answered here
 * @out_initiator_depth: those that it would answer
 * @out_retry_count: of the transport, that the peer asks for; 0 over iWARP
 * @out_rnr_retry_count: likewise
 * @out_port: any id: port of the device, from 1; 0 while not known
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
};

#define DAPX_CM_QUERY _IO(DAPX_TYPE, DAPX_CMD_CM_QUERY)

/**
 * struct dapx_cm_reject - ioctl(DAPX_CM_REJECT): say no to a request
 * @size: sizeof(struct dapx_cm_reject)
 * @flags: Must be 0
 * @cm: the request; its handle is invalid afterwards
 * @private_data_len: bytes
 * @private_data: for the peer
 * @__reserved: Must be 0
 *
 * A RESERVED endpoint becomes UNCONNECTED, one made by the module is gone.
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
 * @events: so many, not more than there are (EINVAL)
 *
 * Events of type DAPX_EVENT_CM, and DAPX_EVENT_CONNECT_REQUEST (they count for
 * the listener). Freeing the id waits for it.
 */
struct dapx_cm_ack {
	__u32 size;
	__u32 flags;
	__u32 cm;
	__u32 events;
};

#define DAPX_CM_ACK _IO(DAPX_TYPE, DAPX_CMD_CM_ACK)

/**
 * struct dapx_cm_take - ioctl(DAPX_CM_TAKE): make a request an id of its own
 * @size: sizeof(struct dapx_cm_take)
 * @flags: Must be 0
 * @cm: a request of a listener without endpoints (DAPX_LISTEN_CONSUMER; else EINVAL)
 * @evd: where its events go from now on
 * @user_data: comes with each of them
 *
 * The listener has no part in it any more: it does not count it, and may be freed
 * before it. It is still accepted (DAPX_EP_ACCEPT, DAPX_XRC_QP_ACCEPT), rejected or
 * freed, by the same handle.
 *
 * If the peer gives up before it is answered, or did so before the call,
 * DAPX_CM_REQUEST_ENDED tells; but iWARP devices say nothing of it until it is
 * accepted. EBADFD: no request, or one that is answered or taken already.
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
 * struct dapx_rmr_create - ioctl(DAPX_RMR_CREATE): make a remote memory region
 * @size: sizeof(struct dapx_rmr_create)
 * @flags: Must be 0
 * @pd: protection domain
 * @__reserved: Must be 0
 * @user_data: given back by queries
 * @out_rmr: handle
 * @__reserved2: Must be 0
 *
 * It is not bound to any memory: no peer can name it. It belongs to the PD and
 * to no endpoint.
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
 * @DAPX_BIND_SIGNALED: completes with an event also when it succeeds
 */
enum dapx_bind_flags {
	DAPX_BIND_SIGNALED = 1 << 0,
};

/**
 * struct dapx_rmr_bind - ioctl(DAPX_RMR_BIND): bind a remote memory region
 * @size: sizeof(struct dapx_rmr_bind)
 * @flags: enum dapx_bind_flags
 * @rmr: what is bound
 * @ep: endpoint in whose request queue the bind takes its place
 * @mr: memory of which the window is a part; 0 to unbind
 * @access: enum dapx_access, remote rights only. To write, and for atomics, the
 *	MR needs DAPX_ACCESS_LOCAL_WRITE; it needs no remote rights itself
 * @addr: start of the window, in the caller's address space
 * @length: bytes; 0: unbind, then @mr, @access and @addr must be 0, too
 * @wr_id: of the completion event
 * @out_rkey: what a peer needs, with the address; never one of the last 65536
 *	that were given out. 0 for an unbind
 * @__reserved: Must be 0
 *
 * The bind is done when all requests that were published before the call are
 * done, and before any that is published later is begun. Then it completes on
 * the request EVD, opcode DAPX_OP_RMR_BIND, and what the RMR was bound to before
 * is as dead as after a free. @out_rkey is valid from then on.
 *
 * Endpoint, MR and RMR must be of one PD. The memory must still be mapped; it is
 * pinned once more, and counts against RLIMIT_MEMLOCK.
 *
 * EBADFD unless the endpoint is CONNECTED or DISCONNECTED; in the latter the bind
 * completes as flushed, as all that waits does, and the RMR stays what it was.
 * EACCES: a right to write memory that the MR may not write. EAGAIN: as many binds as the
 * request ring has entries wait already, or their events do for room in the EVD.
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
 * @mask: enum dapx_rmr_field: what to answer; the rest is 0
 * @out_pd: protection domain
 * @out_mr: 0: not bound; then all below is 0
 * @out_addr: start of the window
 * @out_length: bytes
 * @out_access: enum dapx_access
 * @out_rkey: as answered by the bind
 *
 * Binds that still wait in a request queue do not show.
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
 * @DAPX_XRCD_CREATE: make the domain if there is none
 * @DAPX_XRCD_EXCL: with DAPX_XRCD_CREATE: EEXIST if there is one
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
 * @user_data: given back by DAPX_QUERY_OBJECT
 *
 * A domain is of the device and of the file's inode: all who open it by that
 * file, whatever name or descriptor they have it by, share it. To see whether
 * there is one and to make it is one step. The caller must be allowed to write
 * the file, or own it, and the mount that it was opened in must not be read-only
 * (EACCES); the descriptor's own mode does not matter. The domain outlives
 * descriptor and name, and keeps the file system mounted.
 *
 * With @fd -1 the domain is the caller's own, and DAPX_XRCD_CREATE has to be
 * there alone.
 *
 * Each open is a reference of its own; DAPX_FREE gives it back (EBUSY while it is
 * used), and the last one ends the domain.
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
 * A receive queue pair is the receiving end of a connection with one endpoint with
 * DAPX_EP_XRC, for all SRQs of its domain. It belongs to the domain, and lives as long
 * as some context is registered with it; whoever makes it is. It is named by its
 * number, the queue pair number of the device. EINVAL: no such number in this domain.
 */

/**
 * struct dapx_xrc_qp_create - ioctl(DAPX_XRC_QP_CREATE): make a receive queue pair
 * @size: sizeof(struct dapx_xrc_qp_create)
 * @flags: Must be 0
 * @xrcd: handle
 * @evd: where its asynchronous events go; 0 for nowhere
 * @user_data: comes with each of its events
 * @out_xrc_qp: handle of the caller's registration
 * @out_qp_num: number
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
 * struct dapx_xrc_qp_register - ioctl(DAPX_XRC_QP_REGISTER): share it
 * @size: sizeof(struct dapx_xrc_qp_register)
 * @flags: enum dapx_xrc_qp_register_flags
 * @xrcd: handle
 * @qp_num: number
 * @evd: where its asynchronous events go; 0 for nowhere
 * @out_xrc_qp: handle of the registration. A context has one at the most: if there is
 *	one already, this is it, and nothing changes, unless DAPX_XRC_QP_REGISTER_EXCL
 *	forbids it
 * @user_data: comes with each of its events
 *
 * If its connection has ended already, the event that told so comes to @evd.
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
 * The same as DAPX_FREE of the registration. The last one destroys the queue pair.
 * EINVAL also if the context is not registered with it.
 */
struct dapx_xrc_qp_unregister {
	__u32 size;
	__u32 flags;
	__u32 xrcd;
	__u32 qp_num;
};

#define DAPX_XRC_QP_UNREGISTER _IO(DAPX_TYPE, DAPX_CMD_XRC_QP_UNREGISTER)

/**
 * struct dapx_xrc_qp_modify - ioctl(DAPX_XRC_QP_MODIFY): connect it by exchange of
 *	QP numbers
 * @size: sizeof(struct dapx_xrc_qp_modify)
 * @flags: Must be 0
 * @xrcd: handle
 * @qp_num: number
 * @qp: the step: INIT, then RTR; RTS may follow and has no effect. The timer for
 *	receivers that are not ready is that of RTR
 *
 * EACCES: the context is not registered with it. EBADFD: not a step from its state.
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
 * struct dapx_xrc_qp_accept - ioctl(DAPX_XRC_QP_ACCEPT): connect it by the CM
 * @size: sizeof(struct dapx_xrc_qp_accept)
 * @flags: Must be 0
 * @xrcd: handle
 * @qp_num: number of one that took no step yet
 * @cm: a request of an endpoint with DAPX_EP_XRC (else EPROTO), of a listener without
 *	endpoints; its handle is invalid after success
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
 * @out_registrations: contexts that are registered with it
 * @out_messages: messages that arrived whole
 * @out_not_ready: times that an SRQ had no receive for one
 * @out_qp: state, and what the steps set: @dest_qp_num, @port, ...
 *
 * Whoever has the domain open may ask.
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
 * The family DAPX_GENL_NAME tells what is there, without the device node. Its commands,
 * with NLM_F_DUMP and no attributes, list what there is on all devices that the socket's
 * network namespace has: DAPX_GENL_CMD_XRCD_GET the XRC domains,
 * DAPX_GENL_CMD_CONTEXT_GET the contexts, DAPX_GENL_CMD_OBJECT_GET all their objects.
 *
 * A context or an object is one message, in the order of contexts and handles. What is
 * there during all of the dump is told once. A dump waits for nobody's command.
 *
 * Who joins the group DAPX_GENL_GROUP_EVENTS is told what happens, in order, in messages
 * DAPX_GENL_CMD_EVENT: in the network namespace of the process that has the context, and
 * in the first one if the device is seen there. DAPX_OBJECT_ATTR_PID is as the first PID
 * namespace counts. A listener that reads too slowly gets ENOBUFS from recvmsg(2).
 *
 * A domain is one message or several, which have the same DAPX_XRCD_ATTR_ID. The first
 * of them tells what there is one of; DAPX_XRCD_ATTR_OPEN, DAPX_XRCD_ATTR_SRQ and
 * DAPX_XRCD_ATTR_QP come in any of them, once for each thing. What is there during all
 * of the dump is told once. NLM_F_DUMP_INTR says that something came or went meanwhile.
 *
 * With CAP_NET_ADMIN, in the user namespace that owns the device's network namespace, one
 * sees everything. Without it: contexts of one's own user and their objects; the domains
 * that a process of one's own user has open, and of them what belongs to such processes;
 * DAPX_XRCD_ATTR_PARTIAL says so, and the numbers in the first message say how much there
 * is. What counts are the effective rights and user of who asks, as far as the socket was
 * opened with the same.
 */

#define DAPX_GENL_NAME "dapx"
#define DAPX_GENL_VERSION 1
#define DAPX_GENL_GROUP_EVENTS "events"

/**
 * enum dapx_genl_cmd - Commands of the generic netlink family
 * @DAPX_GENL_CMD_XRCD_GET: dump: XRC domains; answers have enum dapx_xrcd_attr
 * @DAPX_GENL_CMD_CONTEXT_GET: dump: contexts; answers have enum dapx_object_attr
 * @DAPX_GENL_CMD_OBJECT_GET: dump: objects of contexts; answers have enum dapx_object_attr
 * @DAPX_GENL_CMD_EVENT: not to be asked: what listeners are told, in enum dapx_object_attr
 */
enum dapx_genl_cmd {
	DAPX_GENL_CMD_XRCD_GET = 1,
	DAPX_GENL_CMD_CONTEXT_GET = 2,
	DAPX_GENL_CMD_OBJECT_GET = 3,
	DAPX_GENL_CMD_EVENT = 4,
};

/**
 * enum dapx_genl_event - What listeners of DAPX_GENL_GROUP_EVENTS are told
 * @DAPX_GENL_EVENT_CONTEXT_NEW: a process has attached a context to a device
 * @DAPX_GENL_EVENT_CONTEXT_ENDING: its teardown begins: DAPX_OBJECT_ATTR_CAUSE, and how
 *	many objects it has. Endpoints, windows and domains are told as they go
 * @DAPX_GENL_EVENT_CONTEXT_ENDED: nothing of it is left: DAPX_OBJECT_ATTR_DURATION
 * @DAPX_GENL_EVENT_EP_STATE: an endpoint's new state
 * @DAPX_GENL_EVENT_RMR_REVOKED: a window is closed: its key is dead
 * @DAPX_GENL_EVENT_DOMAIN_NEW: an XRC domain was made, by this context
 * @DAPX_GENL_EVENT_DOMAIN_GONE: its last user, this context, has closed it
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
 * @DAPX_GENL_CAUSE_EXITED: its process ended, by itself or killed
 * @DAPX_GENL_CAUSE_REMOVED: its device was removed
 */
enum dapx_genl_cause {
	DAPX_GENL_CAUSE_CLOSED = 1,
	DAPX_GENL_CAUSE_EXITED = 2,
	DAPX_GENL_CAUSE_REMOVED = 3,
};

/**
 * enum dapx_object_attr - Attributes of a context, and of an object
 * @DAPX_OBJECT_ATTR_PAD: nothing; so that others are aligned
 * @DAPX_OBJECT_ATTR_CONTEXT: u32, not 0: the open file. Not soon used again
 * @DAPX_OBJECT_ATTR_DEVICE: string: name of the RDMA device. Without it the context is
 *	not attached, or its device was removed
 * @DAPX_OBJECT_ATTR_PID: u32: the process, as DAPX_XRCD_OPEN_PID
 * @DAPX_OBJECT_ATTR_NAME: string: its name, as DAPX_XRCD_OPEN_NAME
 * @DAPX_OBJECT_ATTR_USER: u32: of a context: the user who opened it, as the reader's user
 *	namespace has it
 * @DAPX_OBJECT_ATTR_OBJECTS: u32: of a context: how many it has
 * @DAPX_OBJECT_ATTR_ENDING: flag: of a context: it is taken down, or its process or its
 *	device is gone. Its objects are not told any more
 * @DAPX_OBJECT_ATTR_TYPE: u32: enum dapx_object_type
 * @DAPX_OBJECT_ATTR_HANDLE: u32: as the process names it
 * @DAPX_OBJECT_ATTR_USERS: u32: as dapx_query_object.out_users
 * @DAPX_OBJECT_ATTR_STATE: u32: as dapx_query_object.out_state
 * @DAPX_OBJECT_ATTR_BUSY: flag: a command works on it: what it might be changing is not told
 * @DAPX_OBJECT_ATTR_PD: u32: handle of its protection domain
 * @DAPX_OBJECT_ATTR_MR: u32: of an RMR that is bound: handle of its memory region
 * @DAPX_OBJECT_ATTR_SRQ: u32: of an endpoint: handle of its shared receive queue
 * @DAPX_OBJECT_ATTR_QP: u32: number of the queue pair, of an endpoint or a registration
 * @DAPX_OBJECT_ATTR_REMOTE_QP: u32: the peer's; 0: not known
 * @DAPX_OBJECT_ATTR_LOCAL: struct __kernel_sockaddr_storage: of an endpoint or a CM id
 * @DAPX_OBJECT_ATTR_REMOTE: struct __kernel_sockaddr_storage: the peer's
 * @DAPX_OBJECT_ATTR_NUMBER: u32: of an XRC SRQ: as dapx_srq_create.out_srq_num
 * @DAPX_OBJECT_ATTR_DOMAIN: u32: of what belongs to XRC: DAPX_XRCD_ATTR_ID
 * @DAPX_OBJECT_ATTR_ACCESS: u32: enum dapx_access
 * @DAPX_OBJECT_ATTR_LENGTH: u64: bytes of a memory region, or of a window
 * @DAPX_OBJECT_ATTR_DEPTH: u32: entries of an EVD's or an SRQ's ring
 * @DAPX_OBJECT_ATTR_UNREAD: u32: events in an EVD's ring
 * @DAPX_OBJECT_ATTR_FULL: flag: more events wait for room in it
 * @DAPX_OBJECT_ATTR_LIMIT: u32: of an SRQ, as dapx_srq_query.out_limit
 * @DAPX_OBJECT_ATTR_REQUESTS: u32: what an endpoint has under way; connection requests
 *	that wait on a listener
 * @DAPX_OBJECT_ATTR_RECEIVES: u32: receives that the device has, of an endpoint or an SRQ
 * @DAPX_OBJECT_ATTR_POSTED: u64: requests of an endpoint that were taken since it was made;
 *	receives, of an SRQ
 * @DAPX_OBJECT_ATTR_RECEIVED: u64: messages that an endpoint received
 * @DAPX_OBJECT_ATTR_EVENTS: u64: events that an EVD was given
 * @DAPX_OBJECT_ATTR_EVENT: u32: enum dapx_genl_event
 * @DAPX_OBJECT_ATTR_TIME: u64: when it happened, in nanoseconds of CLOCK_MONOTONIC
 * @DAPX_OBJECT_ATTR_LOST: u32: of so many that happened before it nobody was told
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
 * @DAPX_XRCD_ATTR_ID: u32, not 0; in each message. Not soon used again
 * @DAPX_XRCD_ATTR_DEVICE: string: name of the RDMA device
 * @DAPX_XRCD_ATTR_PATH: string: the file, by the name it was found by when the domain
 *	was made, or that it was given since, as the reader sees it: as in /proc/self/maps,
 *	with " (deleted)" behind one that is gone. Empty: longer than PATH_MAX, or, without
 *	CAP_NET_ADMIN, not below the reader's root or of another mount namespace. Without it
 *	the domain is of no file
 * @DAPX_XRCD_ATTR_PARTIAL: flag: only what belongs to the reader's user is told
 * @DAPX_XRCD_ATTR_OPENS: u32: how often it is open
 * @DAPX_XRCD_ATTR_SRQS: u32: its shared receive queues
 * @DAPX_XRCD_ATTR_QPS: u32: its receive queue pairs
 * @DAPX_XRCD_ATTR_OPEN: nested: enum dapx_xrcd_open_attr: a reference to it, of which
 *	a process may have several
 * @DAPX_XRCD_ATTR_SRQ: nested: enum dapx_xrcd_srq_attr
 * @DAPX_XRCD_ATTR_QP: nested: enum dapx_xrcd_qp_attr; one's own: the user has a context
 *	that is registered with it
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
 * @DAPX_XRCD_OPEN_PID: u32: the process, as the reader counts; 0: it is in another PID
 *	namespace
 * @DAPX_XRCD_OPEN_NAME: string: its name; without it: it is in another PID namespace,
 *	or about to be gone
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
 * @DAPX_XRCD_QP_PAD: nothing; so that others are aligned
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
