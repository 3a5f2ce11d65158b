/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * uDAPL 1.2 for programs: names, numbers, layouts and signatures of that version.
 *
 * All dat_*() are functions, but dat_ia_open(), which passes on the version and the
 * thread safety that its caller was compiled with. Not for one program together with
 * <dat2/udat.h>: the same names have other layouts there.
 */
#ifndef DAPX_DAT_UDAT_H
#define DAPX_DAT_UDAT_H

#ifdef _UDAT_H_
#error "DAT 1.2 and another version of DAT in one program"
#endif

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DAT_VERSION_MAJOR		1
#define DAT_VERSION_MINOR		2

/* A program that needs no thread safety defines it as DAT_FALSE, before. */
#ifndef DAT_THREADSAFE
#define DAT_THREADSAFE			DAT_TRUE
#endif

#ifndef DAT_OPTIMAL_ALIGNMENT
#define DAT_OPTIMAL_ALIGNMENT		256
#endif

/* Only for the reader, of programs written like the manual. */
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef INOUT
#define INOUT
#endif

/* ---- basic types ---- */

typedef uint32_t DAT_UINT32;
typedef uint64_t DAT_UINT64;
typedef unsigned long DAT_UVERYLONG;
typedef void *DAT_PVOID;
typedef int DAT_COUNT;
typedef DAT_UINT64 DAT_PADDR;

typedef struct sockaddr DAT_SOCK_ADDR;
typedef struct sockaddr_in6 DAT_SOCK_ADDR6;
typedef DAT_SOCK_ADDR *DAT_IA_ADDRESS_PTR;

#define DAT_AF_INET			AF_INET
#define DAT_AF_INET6			AF_INET6

typedef enum dat_boolean {
	DAT_FALSE = 0,
	DAT_TRUE = 1
} DAT_BOOLEAN;

/* The length includes the final NUL. */
typedef char *DAT_NAME_PTR;
#define DAT_NAME_MAX_LENGTH		256

typedef struct dat_named_attr {
	const char *name;
	const char *value;
} DAT_NAMED_ATTR;

typedef union dat_context {
	DAT_PVOID as_ptr;
	DAT_UINT64 as_64;
	DAT_UVERYLONG as_index;
} DAT_CONTEXT;

typedef DAT_CONTEXT DAT_DTO_COOKIE;
typedef DAT_CONTEXT DAT_RMR_COOKIE;

typedef DAT_UINT64 DAT_CONN_QUAL;
typedef DAT_UINT64 DAT_PORT_QUAL;

typedef DAT_UINT32 DAT_LMR_CONTEXT;
typedef DAT_UINT32 DAT_RMR_CONTEXT;
typedef DAT_UINT64 DAT_VLEN;
typedef DAT_UINT64 DAT_VADDR;

/* In microseconds. */
typedef DAT_UINT32 DAT_TIMEOUT;
#define DAT_TIMEOUT_INFINITE		((DAT_TIMEOUT)~0)

/* ---- handles ---- */

typedef DAT_PVOID DAT_HANDLE;
typedef DAT_HANDLE DAT_IA_HANDLE;
typedef DAT_HANDLE DAT_PZ_HANDLE;
typedef DAT_HANDLE DAT_LMR_HANDLE;
typedef DAT_HANDLE DAT_RMR_HANDLE;
typedef DAT_HANDLE DAT_EP_HANDLE;
typedef DAT_HANDLE DAT_SRQ_HANDLE;
typedef DAT_HANDLE DAT_EVD_HANDLE;
typedef DAT_HANDLE DAT_CNO_HANDLE;
typedef DAT_HANDLE DAT_PSP_HANDLE;
typedef DAT_HANDLE DAT_RSP_HANDLE;
typedef DAT_HANDLE DAT_CR_HANDLE;

#define DAT_HANDLE_NULL			((DAT_HANDLE)NULL)

/* Into dat_ia_open(): no EVD is wanted; out of dat_ia_query(): there is none here. */
#define DAT_EVD_ASYNC_EXISTS		((DAT_EVD_HANDLE)0x1)
#define DAT_EVD_OUT_OF_SCOPE		((DAT_EVD_HANDLE)0x2)

typedef enum dat_handle_type {
	DAT_HANDLE_TYPE_CR = 0,
	DAT_HANDLE_TYPE_EP = 1,
	DAT_HANDLE_TYPE_EVD = 2,
	DAT_HANDLE_TYPE_IA = 3,
	DAT_HANDLE_TYPE_LMR = 4,
	DAT_HANDLE_TYPE_PSP = 5,
	DAT_HANDLE_TYPE_PZ = 6,
	DAT_HANDLE_TYPE_RMR = 7,
	DAT_HANDLE_TYPE_RSP = 8,
	DAT_HANDLE_TYPE_CNO = 9,
	DAT_HANDLE_TYPE_SRQ = 10
} DAT_HANDLE_TYPE;

/* ---- results: two bits of class, 14 of type, 16 of subtype ---- */

typedef DAT_UINT32 DAT_RETURN;

#define DAT_CLASS_SUCCESS		0x00000000
#define DAT_CLASS_WARNING		0x40000000
#define DAT_CLASS_ERROR			0x80000000
#define DAT_TYPE_MASK			0x3fff0000
#define DAT_SUBTYPE_MASK		0x0000ffff

#define DAT_IS_WARNING(status)		((DAT_UINT32)(status) & DAT_CLASS_WARNING)
#define DAT_GET_TYPE(status)		((DAT_UINT32)(status) & DAT_TYPE_MASK)
#define DAT_GET_SUBTYPE(status)		((DAT_UINT32)(status) & DAT_SUBTYPE_MASK)

typedef enum dat_return_type {
	DAT_SUCCESS = 0x00000000,
	DAT_ABORT = 0x00010000,
	DAT_CONN_QUAL_IN_USE = 0x00020000,
	DAT_INSUFFICIENT_RESOURCES = 0x00030000,
	DAT_INTERNAL_ERROR = 0x00040000,
	DAT_INVALID_HANDLE = 0x00050000,
	DAT_INVALID_PARAMETER = 0x00060000,
	DAT_INVALID_STATE = 0x00070000,
	DAT_LENGTH_ERROR = 0x00080000,
	DAT_MODEL_NOT_SUPPORTED = 0x00090000,
	DAT_PROVIDER_NOT_FOUND = 0x000a0000,
	DAT_PRIVILEGES_VIOLATION = 0x000b0000,
	DAT_PROTECTION_VIOLATION = 0x000c0000,
	DAT_QUEUE_EMPTY = 0x000d0000,
	DAT_QUEUE_FULL = 0x000e0000,
	DAT_TIMEOUT_EXPIRED = 0x000f0000,
	DAT_PROVIDER_ALREADY_REGISTERED = 0x00100000,
	DAT_PROVIDER_IN_USE = 0x00110000,
	DAT_INVALID_ADDRESS = 0x00120000,
	DAT_INTERRUPTED_CALL = 0x00130000,
	DAT_CONN_QUAL_UNAVAILABLE = 0x00140000,
	DAT_NOT_IMPLEMENTED = 0x0fff0000
} DAT_RETURN_TYPE;

/* DAT 1.0 */
#define DAT_NAME_NOT_FOUND		DAT_PROVIDER_NOT_FOUND

typedef enum dat_return_subtype {
	DAT_NO_SUBTYPE = 0,

	/* DAT_ABORT */
	DAT_SUB_INTERRUPTED = 1,

	/* DAT_INSUFFICIENT_RESOURCES */
	DAT_RESOURCE_MEMORY = 2,
	DAT_RESOURCE_DEVICE = 3,
	DAT_RESOURCE_TEP = 4,
	DAT_RESOURCE_TEVD = 5,
	DAT_RESOURCE_PROTECTION_DOMAIN = 6,
	DAT_RESOURCE_MEMORY_REGION = 7,
	DAT_RESOURCE_ERROR_HANDLER = 8,
	DAT_RESOURCE_CREDITS = 9,
	DAT_RESOURCE_SRQ = 10,

	/* DAT_INVALID_HANDLE */
	DAT_INVALID_HANDLE_IA = 11,
	DAT_INVALID_HANDLE_EP = 12,
	DAT_INVALID_HANDLE_LMR = 13,
	DAT_INVALID_HANDLE_RMR = 14,
	DAT_INVALID_HANDLE_PZ = 15,
	DAT_INVALID_HANDLE_PSP = 16,
	DAT_INVALID_HANDLE_RSP = 17,
	DAT_INVALID_HANDLE_CR = 18,
	DAT_INVALID_HANDLE_CNO = 19,
	DAT_INVALID_HANDLE_EVD_CR = 20,
	DAT_INVALID_HANDLE_EVD_REQUEST = 21,
	DAT_INVALID_HANDLE_EVD_RECV = 22,
	DAT_INVALID_HANDLE_EVD_CONN = 23,
	DAT_INVALID_HANDLE_EVD_ASYNC = 24,
	DAT_INVALID_HANDLE_SRQ = 25,
	DAT_INVALID_HANDLE1 = 26,
	DAT_INVALID_HANDLE2 = 27,
	DAT_INVALID_HANDLE3 = 28,
	DAT_INVALID_HANDLE4 = 29,
	DAT_INVALID_HANDLE5 = 30,
	DAT_INVALID_HANDLE6 = 31,
	DAT_INVALID_HANDLE7 = 32,
	DAT_INVALID_HANDLE8 = 33,
	DAT_INVALID_HANDLE9 = 34,
	DAT_INVALID_HANDLE10 = 35,

	/* DAT_INVALID_PARAMETER */
	DAT_INVALID_ARG1 = 36,
	DAT_INVALID_ARG2 = 37,
	DAT_INVALID_ARG3 = 38,
	DAT_INVALID_ARG4 = 39,
	DAT_INVALID_ARG5 = 40,
	DAT_INVALID_ARG6 = 41,
	DAT_INVALID_ARG7 = 42,
	DAT_INVALID_ARG8 = 43,
	DAT_INVALID_ARG9 = 44,
	DAT_INVALID_ARG10 = 45,

	/* DAT_INVALID_STATE */
	DAT_INVALID_STATE_EP_UNCONNECTED = 46,
	DAT_INVALID_STATE_EP_ACTCONNPENDING = 47,
	DAT_INVALID_STATE_EP_PASSCONNPENDING = 48,
	DAT_INVALID_STATE_EP_TENTCONNPENDING = 49,
	DAT_INVALID_STATE_EP_CONNECTED = 50,
	DAT_INVALID_STATE_EP_DISCONNECTED = 51,
	DAT_INVALID_STATE_EP_RESERVED = 52,
	DAT_INVALID_STATE_EP_COMPLPENDING = 53,
	DAT_INVALID_STATE_EP_DISCPENDING = 54,
	DAT_INVALID_STATE_EP_PROVIDERCONTROL = 55,
	DAT_INVALID_STATE_EP_NOTREADY = 56,
	DAT_INVALID_STATE_EP_RECV_WATERMARK = 57,
	DAT_INVALID_STATE_EP_PZ = 58,
	DAT_INVALID_STATE_EP_EVD_REQUEST = 59,
	DAT_INVALID_STATE_EP_EVD_RECV = 60,
	DAT_INVALID_STATE_EP_EVD_CONNECT = 61,
	DAT_INVALID_STATE_EP_UNCONFIGURED = 62,
	DAT_INVALID_STATE_EP_UNCONFRESERVED = 63,
	DAT_INVALID_STATE_EP_UNCONFPASSIVE = 64,
	DAT_INVALID_STATE_EP_UNCONFTENTATIVE = 65,
	DAT_INVALID_STATE_CNO_IN_USE = 66,
	DAT_INVALID_STATE_CNO_DEAD = 67,
	DAT_INVALID_STATE_EVD_OPEN = 68,
	DAT_INVALID_STATE_EVD_ENABLED = 69,
	DAT_INVALID_STATE_EVD_DISABLED = 70,
	DAT_INVALID_STATE_EVD_WAITABLE = 71,
	DAT_INVALID_STATE_EVD_UNWAITABLE = 72,
	DAT_INVALID_STATE_EVD_IN_USE = 73,
	DAT_INVALID_STATE_EVD_CONFIG_NOTIFY = 74,
	DAT_INVALID_STATE_EVD_CONFIG_SOLICITED = 75,
	DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD = 76,
	DAT_INVALID_STATE_EVD_WAITER = 77,
	DAT_INVALID_STATE_EVD_ASYNC = 78,
	DAT_INVALID_STATE_IA_IN_USE = 79,
	DAT_INVALID_STATE_LMR_IN_USE = 80,
	DAT_INVALID_STATE_LMR_FREE = 81,
	DAT_INVALID_STATE_PZ_IN_USE = 82,
	DAT_INVALID_STATE_PZ_FREE = 83,
	DAT_INVALID_STATE_SRQ_OPERATIONAL = 84,
	DAT_INVALID_STATE_SRQ_ERROR = 85,
	DAT_INVALID_STATE_SRQ_IN_USE = 86,

	/* DAT_PRIVILEGES_VIOLATION */
	DAT_PRIVILEGES_READ = 87,
	DAT_PRIVILEGES_WRITE = 88,
	DAT_PRIVILEGES_RDMA_READ = 89,
	DAT_PRIVILEGES_RDMA_WRITE = 90,

	/* DAT_PROTECTION_VIOLATION */
	DAT_PROTECTION_READ = 91,
	DAT_PROTECTION_WRITE = 92,
	DAT_PROTECTION_RDMA_READ = 93,
	DAT_PROTECTION_RDMA_WRITE = 94,

	/* DAT_INVALID_ADDRESS */
	DAT_INVALID_ADDRESS_UNSUPPORTED = 95,
	DAT_INVALID_ADDRESS_UNREACHABLE = 96,
	DAT_INVALID_ADDRESS_MALFORMED = 97,

	/* DAT_PROVIDER_NOT_FOUND */
	DAT_NAME_NOT_REGISTERED = 98,
	DAT_MAJOR_NOT_FOUND = 99,
	DAT_MINOR_NOT_FOUND = 100,
	DAT_THREAD_SAFETY_NOT_FOUND = 101
} DAT_RETURN_SUBTYPE;

/* ---- flags ---- */

typedef enum dat_completion_flags {
	DAT_COMPLETION_DEFAULT_FLAG = 0x00,
	DAT_COMPLETION_SUPPRESS_FLAG = 0x01,
	DAT_COMPLETION_SOLICITED_WAIT_FLAG = 0x02,
	DAT_COMPLETION_UNSIGNALLED_FLAG = 0x04,
	DAT_COMPLETION_BARRIER_FENCE_FLAG = 0x08,
	DAT_COMPLETION_EVD_THRESHOLD_FLAG = 0x10
} DAT_COMPLETION_FLAGS;

typedef enum dat_qos {
	DAT_QOS_BEST_EFFORT = 0x00,
	DAT_QOS_HIGH_THROUGHPUT = 0x01,
	DAT_QOS_LOW_LATENCY = 0x02,
	DAT_QOS_ECONOMY = 0x04,
	DAT_QOS_PREMIUM = 0x08
} DAT_QOS;

typedef enum dat_connect_flags {
	DAT_CONNECT_DEFAULT_FLAG = 0x00,
	DAT_CONNECT_MULTIPATH_FLAG = 0x01
} DAT_CONNECT_FLAGS;

typedef enum dat_close_flags {
	DAT_CLOSE_ABRUPT_FLAG = 0x00,
	DAT_CLOSE_GRACEFUL_FLAG = 0x01
} DAT_CLOSE_FLAGS;

#define DAT_CLOSE_DEFAULT		DAT_CLOSE_ABRUPT_FLAG

typedef enum dat_evd_flags {
	DAT_EVD_SOFTWARE_FLAG = 0x001,
	DAT_EVD_CR_FLAG = 0x010,
	DAT_EVD_DTO_FLAG = 0x020,
	DAT_EVD_CONNECTION_FLAG = 0x040,
	DAT_EVD_RMR_BIND_FLAG = 0x080,
	DAT_EVD_ASYNC_FLAG = 0x100,
	DAT_EVD_DEFAULT_FLAG = 0x1f0
} DAT_EVD_FLAGS;

typedef enum dat_psp_flags {
	DAT_PSP_CONSUMER_FLAG = 0x00,
	DAT_PSP_PROVIDER_FLAG = 0x01
} DAT_PSP_FLAGS;

typedef enum dat_mem_priv_flags {
	DAT_MEM_PRIV_NONE_FLAG = 0x00,
	DAT_MEM_PRIV_LOCAL_READ_FLAG = 0x01,
	DAT_MEM_PRIV_REMOTE_READ_FLAG = 0x02,
	DAT_MEM_PRIV_LOCAL_WRITE_FLAG = 0x10,
	DAT_MEM_PRIV_REMOTE_WRITE_FLAG = 0x20,
	DAT_MEM_PRIV_ALL_FLAG = 0x33
} DAT_MEM_PRIV_FLAGS;

/* DAT 1.0 */
#define DAT_MEM_PRIV_READ_FLAG \
	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG)
#define DAT_MEM_PRIV_WRITE_FLAG \
	(DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* ---- interface adapter ---- */

typedef struct dat_ia_attr {
	char adapter_name[DAT_NAME_MAX_LENGTH];
	char vendor_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 hardware_version_major;
	DAT_UINT32 hardware_version_minor;
	DAT_UINT32 firmware_version_major;
	DAT_UINT32 firmware_version_minor;
	DAT_IA_ADDRESS_PTR ia_address_ptr;
	DAT_COUNT max_eps;
	DAT_COUNT max_dto_per_ep;
	DAT_COUNT max_rdma_read_per_ep_in;
	DAT_COUNT max_rdma_read_per_ep_out;
	DAT_COUNT max_evds;
	DAT_COUNT max_evd_qlen;
	DAT_COUNT max_iov_segments_per_dto;
	DAT_COUNT max_lmrs;
	DAT_VLEN max_lmr_block_size;
	DAT_VADDR max_lmr_virtual_address;
	DAT_COUNT max_pzs;
	DAT_VLEN max_message_size;
	DAT_VLEN max_rdma_size;
	DAT_COUNT max_rmrs;
	DAT_VADDR max_rmr_target_address;
	DAT_COUNT max_srqs;
	DAT_COUNT max_ep_per_srq;
	DAT_COUNT max_recv_per_srq;
	DAT_COUNT max_iov_segments_per_rdma_read;
	DAT_COUNT max_iov_segments_per_rdma_write;
	DAT_COUNT max_rdma_read_in;
	DAT_COUNT max_rdma_read_out;
	DAT_BOOLEAN max_rdma_read_per_ep_in_guaranteed;
	DAT_BOOLEAN max_rdma_read_per_ep_out_guaranteed;
	DAT_COUNT num_transport_attr;
	DAT_NAMED_ATTR *transport_attr;
	DAT_COUNT num_vendor_attr;
	DAT_NAMED_ATTR *vendor_attr;
} DAT_IA_ATTR;

typedef DAT_UINT64 DAT_IA_ATTR_MASK;

#define DAT_IA_FIELD_NONE				UINT64_C(0x000000000)
#define DAT_IA_FIELD_IA_ADAPTER_NAME			UINT64_C(0x000000001)
#define DAT_IA_FIELD_IA_VENDOR_NAME			UINT64_C(0x000000002)
#define DAT_IA_FIELD_IA_HARDWARE_MAJOR_VERSION		UINT64_C(0x000000004)
#define DAT_IA_FIELD_IA_HARDWARE_MINOR_VERSION		UINT64_C(0x000000008)
#define DAT_IA_FIELD_IA_FIRMWARE_MAJOR_VERSION		UINT64_C(0x000000010)
#define DAT_IA_FIELD_IA_FIRMWARE_MINOR_VERSION		UINT64_C(0x000000020)
#define DAT_IA_FIELD_IA_ADDRESS_PTR			UINT64_C(0x000000040)
#define DAT_IA_FIELD_IA_MAX_EPS				UINT64_C(0x000000080)
#define DAT_IA_FIELD_IA_MAX_DTO_PER_EP			UINT64_C(0x000000100)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN		UINT64_C(0x000000200)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT	UINT64_C(0x000000400)
#define DAT_IA_FIELD_IA_MAX_EVDS			UINT64_C(0x000000800)
#define DAT_IA_FIELD_IA_MAX_EVD_QLEN			UINT64_C(0x000001000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_DTO	UINT64_C(0x000002000)
#define DAT_IA_FIELD_IA_MAX_LMRS			UINT64_C(0x000004000)
#define DAT_IA_FIELD_IA_MAX_LMR_BLOCK_SIZE		UINT64_C(0x000008000)
#define DAT_IA_FIELD_IA_MAX_LMR_VIRTUAL_ADDRESS		UINT64_C(0x000010000)
#define DAT_IA_FIELD_IA_MAX_PZS				UINT64_C(0x000020000)
#define DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE		UINT64_C(0x000040000)
#define DAT_IA_FIELD_IA_MAX_RDMA_SIZE			UINT64_C(0x000080000)
#define DAT_IA_FIELD_IA_MAX_RMRS			UINT64_C(0x000100000)
#define DAT_IA_FIELD_IA_MAX_RMR_TARGET_ADDRESS		UINT64_C(0x000200000)
#define DAT_IA_FIELD_IA_MAX_SRQS			UINT64_C(0x000400000)
#define DAT_IA_FIELD_IA_MAX_EP_PER_SRQ			UINT64_C(0x000800000)
#define DAT_IA_FIELD_IA_MAX_RECV_PER_SRQ		UINT64_C(0x001000000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_READ	UINT64_C(0x002000000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_WRITE	UINT64_C(0x004000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_IN		UINT64_C(0x008000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_OUT		UINT64_C(0x010000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN_GUARANTEED	UINT64_C(0x020000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT_GUARANTEED	UINT64_C(0x040000000)
#define DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR		UINT64_C(0x080000000)
#define DAT_IA_FIELD_IA_TRANSPORT_ATTR			UINT64_C(0x100000000)
#define DAT_IA_FIELD_IA_NUM_VENDOR_ATTR			UINT64_C(0x200000000)
#define DAT_IA_FIELD_IA_VENDOR_ATTR			UINT64_C(0x400000000)
#define DAT_IA_FIELD_ALL				UINT64_C(0x7ffffffff)

/* Members and masks of DAT 1.0 and 1.1 */
#define max_rdma_read_per_ep		max_rdma_read_per_ep_in
#define max_mtu_size			max_message_size
#define DAT_IA_FIELD_IA_MAX_MTU_SIZE	DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE
#define DAT_IA_ALL			DAT_IA_FIELD_ALL

/* ---- provider ---- */

typedef enum dat_mem_type {
	DAT_MEM_TYPE_VIRTUAL = 0x00,
	DAT_MEM_TYPE_LMR = 0x01,
	DAT_MEM_TYPE_SHARED_VIRTUAL = 0x02
} DAT_MEM_TYPE;

typedef enum dat_iov_ownership {
	DAT_IOV_CONSUMER = 0x0,
	DAT_IOV_PROVIDER_NOMOD = 0x1,
	DAT_IOV_PROVIDER_MOD = 0x2
} DAT_IOV_OWNERSHIP;

typedef enum dat_ep_creator_for_psp {
	DAT_PSP_CREATES_EP_NEVER = 0,
	DAT_PSP_CREATES_EP_IFASKED = 1,
	DAT_PSP_CREATES_EP_ALWAYS = 2
} DAT_EP_CREATOR_FOR_PSP;

typedef enum dat_pz_support {
	DAT_PZ_UNIQUE = 0,
	DAT_PZ_SAME = 1,
	DAT_PZ_SHAREABLE = 2
} DAT_PZ_SUPPORT;

/*
 * Rows and columns of evd_stream_merging_supported, like the bits of DAT_EVD_FLAGS:
 * software, connection requests, DTOs, connections, RMR binds, asynchronous errors.
 */
typedef struct dat_provider_attr {
	char provider_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 provider_version_major;
	DAT_UINT32 provider_version_minor;
	DAT_UINT32 dapl_version_major;
	DAT_UINT32 dapl_version_minor;
	DAT_MEM_TYPE lmr_mem_types_supported;
	DAT_IOV_OWNERSHIP iov_ownership_on_return;
	DAT_QOS dat_qos_supported;
	DAT_COMPLETION_FLAGS completion_flags_supported;
	DAT_BOOLEAN is_thread_safe;
	DAT_COUNT max_private_data_size;
	DAT_BOOLEAN supports_multipath;
	DAT_EP_CREATOR_FOR_PSP ep_creator;
	DAT_PZ_SUPPORT pz_support;
	DAT_UINT32 optimal_buffer_alignment;
	const DAT_BOOLEAN evd_stream_merging_supported[6][6];
	DAT_BOOLEAN srq_supported;
	DAT_COUNT srq_watermarks_supported;
	DAT_BOOLEAN srq_ep_pz_difference_supported;
	DAT_COUNT srq_info_supported;
	DAT_COUNT ep_recv_info_supported;
	DAT_BOOLEAN lmr_sync_req;
	DAT_BOOLEAN dto_async_return_guaranteed;
	DAT_BOOLEAN rdma_write_for_rdma_read_req;
	DAT_COUNT num_provider_specific_attr;
	DAT_NAMED_ATTR *provider_specific_attr;
} DAT_PROVIDER_ATTR;

typedef DAT_UINT64 DAT_PROVIDER_ATTR_MASK;

#define DAT_PROVIDER_FIELD_NONE				UINT64_C(0x0000000)
#define DAT_PROVIDER_FIELD_PROVIDER_NAME		UINT64_C(0x0000001)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MAJOR	UINT64_C(0x0000002)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MINOR	UINT64_C(0x0000004)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MAJOR		UINT64_C(0x0000008)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MINOR		UINT64_C(0x0000010)
#define DAT_PROVIDER_FIELD_LMR_MEM_TYPE_SUPPORTED	UINT64_C(0x0000020)
#define DAT_PROVIDER_FIELD_IOV_OWNERSHIP		UINT64_C(0x0000040)
#define DAT_PROVIDER_FIELD_DAT_QOS_SUPPORTED		UINT64_C(0x0000080)
#define DAT_PROVIDER_FIELD_COMPLETION_FLAGS_SUPPORTED	UINT64_C(0x0000100)
#define DAT_PROVIDER_FIELD_IS_THREAD_SAFE		UINT64_C(0x0000200)
#define DAT_PROVIDER_FIELD_MAX_PRIVATE_DATA_SIZE	UINT64_C(0x0000400)
#define DAT_PROVIDER_FIELD_SUPPORTS_MULTIPATH		UINT64_C(0x0000800)
#define DAT_PROVIDER_FIELD_EP_CREATOR			UINT64_C(0x0001000)
#define DAT_PROVIDER_FIELD_PZ_SUPPORT			UINT64_C(0x0002000)
#define DAT_PROVIDER_FIELD_OPTIMAL_BUFFER_ALIGNMENT	UINT64_C(0x0004000)
#define DAT_PROVIDER_FIELD_EVD_STREAM_MERGING_SUPPORTED	UINT64_C(0x0008000)
#define DAT_PROVIDER_FIELD_SRQ_SUPPORTED		UINT64_C(0x0010000)
#define DAT_PROVIDER_FIELD_SRQ_WATERMARKS_SUPPORTED	UINT64_C(0x0020000)
#define DAT_PROVIDER_FIELD_SRQ_EP_PZ_DIFFERENCE_SUPPORTED	UINT64_C(0x0040000)
#define DAT_PROVIDER_FIELD_SRQ_INFO_SUPPORTED		UINT64_C(0x0080000)
#define DAT_PROVIDER_FIELD_EP_RECV_INFO_SUPPORTED	UINT64_C(0x0100000)
#define DAT_PROVIDER_FIELD_LMR_SYNC_REQ			UINT64_C(0x0200000)
#define DAT_PROVIDER_FIELD_DTO_ASYNC_RETURN_GUARANTEED	UINT64_C(0x0400000)
#define DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ	UINT64_C(0x0800000)
#define DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR	UINT64_C(0x1000000)
#define DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR	UINT64_C(0x2000000)
#define DAT_PROVIDER_FIELD_ALL				UINT64_C(0x3ffffff)

typedef struct dat_provider_info {
	char ia_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 dapl_version_major;
	DAT_UINT32 dapl_version_minor;
	DAT_BOOLEAN is_thread_safe;
} DAT_PROVIDER_INFO;

/* ---- protection zone ---- */

typedef struct dat_pz_param {
	DAT_IA_HANDLE ia_handle;
} DAT_PZ_PARAM;

typedef enum dat_pz_param_mask {
	DAT_PZ_FIELD_IA_HANDLE = 0x01,
	DAT_PZ_FIELD_ALL = 0x01
} DAT_PZ_PARAM_MASK;

/* ---- memory ---- */

typedef struct dat_lmr_triplet {
	DAT_LMR_CONTEXT lmr_context;
	DAT_UINT32 pad;
	DAT_VADDR virtual_address;
	DAT_VLEN segment_length;
} DAT_LMR_TRIPLET;

typedef struct dat_rmr_triplet {
	DAT_RMR_CONTEXT rmr_context;
	DAT_UINT32 pad;
	DAT_VADDR target_address;
	DAT_VLEN segment_length;
} DAT_RMR_TRIPLET;

#define DAT_LMR_COOKIE_SIZE		40
typedef char (*DAT_LMR_COOKIE)[DAT_LMR_COOKIE_SIZE];

typedef struct dat_shared_memory {
	DAT_PVOID virtual_address;
	DAT_LMR_COOKIE shared_memory_id;
} DAT_SHARED_MEMORY;

/* DAT_MEM_TYPE says which member counts. */
typedef union dat_region_description {
	DAT_PVOID for_va;
	DAT_LMR_HANDLE for_lmr_handle;
	DAT_SHARED_MEMORY for_shared_memory;
} DAT_REGION_DESCRIPTION;

typedef struct dat_lmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region_desc;
	DAT_VLEN length;
	DAT_PZ_HANDLE pz_handle;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_VLEN registered_size;
	DAT_VADDR registered_address;
} DAT_LMR_PARAM;

typedef enum dat_lmr_param_mask {
	DAT_LMR_FIELD_IA_HANDLE = 0x001,
	DAT_LMR_FIELD_MEM_TYPE = 0x002,
	DAT_LMR_FIELD_REGION_DESC = 0x004,
	DAT_LMR_FIELD_LENGTH = 0x008,
	DAT_LMR_FIELD_PZ_HANDLE = 0x010,
	DAT_LMR_FIELD_MEM_PRIV = 0x020,
	DAT_LMR_FIELD_LMR_CONTEXT = 0x040,
	DAT_LMR_FIELD_RMR_CONTEXT = 0x080,
	DAT_LMR_FIELD_REGISTERED_SIZE = 0x100,
	DAT_LMR_FIELD_REGISTERED_ADDRESS = 0x200,
	DAT_LMR_FIELD_ALL = 0x3ff
} DAT_LMR_PARAM_MASK;

typedef struct dat_rmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_PZ_HANDLE pz_handle;
	DAT_LMR_TRIPLET lmr_triplet;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_RMR_CONTEXT rmr_context;
} DAT_RMR_PARAM;

typedef enum dat_rmr_param_mask {
	DAT_RMR_FIELD_IA_HANDLE = 0x01,
	DAT_RMR_FIELD_PZ_HANDLE = 0x02,
	DAT_RMR_FIELD_LMR_TRIPLET = 0x04,
	DAT_RMR_FIELD_MEM_PRIV = 0x08,
	DAT_RMR_FIELD_RMR_CONTEXT = 0x10,
	DAT_RMR_FIELD_ALL = 0x1f
} DAT_RMR_PARAM_MASK;

/* ---- endpoint ---- */

typedef enum dat_service_type {
	DAT_SERVICE_TYPE_RC = 0
} DAT_SERVICE_TYPE;

typedef enum dat_ep_state {
	DAT_EP_STATE_UNCONNECTED = 0,
	DAT_EP_STATE_UNCONFIGURED_UNCONNECTED = 1,
	DAT_EP_STATE_RESERVED = 2,
	DAT_EP_STATE_UNCONFIGURED_RESERVED = 3,
	DAT_EP_STATE_PASSIVE_CONNECTION_PENDING = 4,
	DAT_EP_STATE_UNCONFIGURED_PASSIVE = 5,
	DAT_EP_STATE_ACTIVE_CONNECTION_PENDING = 6,
	DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING = 7,
	DAT_EP_STATE_UNCONFIGURED_TENTATIVE = 8,
	DAT_EP_STATE_CONNECTED = 9,
	DAT_EP_STATE_DISCONNECT_PENDING = 10,
	DAT_EP_STATE_DISCONNECTED = 11,
	DAT_EP_STATE_COMPLETION_PENDING = 12
} DAT_EP_STATE;

/* DAT 1.0 */
#define DAT_EP_STATE_ERROR		DAT_EP_STATE_DISCONNECTED

typedef struct dat_ep_attr {
	DAT_SERVICE_TYPE service_type;
	DAT_VLEN max_message_size;
	DAT_VLEN max_rdma_size;
	DAT_QOS qos;
	DAT_COMPLETION_FLAGS recv_completion_flags;
	DAT_COMPLETION_FLAGS request_completion_flags;
	DAT_COUNT max_recv_dtos;
	DAT_COUNT max_request_dtos;
	DAT_COUNT max_recv_iov;
	DAT_COUNT max_request_iov;
	DAT_COUNT max_rdma_read_in;
	DAT_COUNT max_rdma_read_out;
	DAT_COUNT srq_soft_hw;
	DAT_COUNT max_rdma_read_iov;
	DAT_COUNT max_rdma_write_iov;
	DAT_COUNT ep_transport_specific_count;
	DAT_NAMED_ATTR *ep_transport_specific;
	DAT_COUNT ep_provider_specific_count;
	DAT_NAMED_ATTR *ep_provider_specific;
} DAT_EP_ATTR;

typedef struct dat_ep_param {
	DAT_IA_HANDLE ia_handle;
	DAT_EP_STATE ep_state;
	DAT_IA_ADDRESS_PTR local_ia_address_ptr;
	DAT_PORT_QUAL local_port_qual;
	DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
	DAT_PORT_QUAL remote_port_qual;
	DAT_PZ_HANDLE pz_handle;
	DAT_EVD_HANDLE recv_evd_handle;
	DAT_EVD_HANDLE request_evd_handle;
	DAT_EVD_HANDLE connect_evd_handle;
	DAT_SRQ_HANDLE srq_handle;
	DAT_EP_ATTR ep_attr;
} DAT_EP_PARAM;

/* Bit 11 is not used. */
typedef DAT_UINT64 DAT_EP_PARAM_MASK;

#define DAT_EP_FIELD_IA_HANDLE				UINT64_C(0x00000001)
#define DAT_EP_FIELD_EP_STATE				UINT64_C(0x00000002)
#define DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR		UINT64_C(0x00000004)
#define DAT_EP_FIELD_LOCAL_PORT_QUAL			UINT64_C(0x00000008)
#define DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR		UINT64_C(0x00000010)
#define DAT_EP_FIELD_REMOTE_PORT_QUAL			UINT64_C(0x00000020)
#define DAT_EP_FIELD_PZ_HANDLE				UINT64_C(0x00000040)
#define DAT_EP_FIELD_RECV_EVD_HANDLE			UINT64_C(0x00000080)
#define DAT_EP_FIELD_REQUEST_EVD_HANDLE			UINT64_C(0x00000100)
#define DAT_EP_FIELD_CONNECT_EVD_HANDLE			UINT64_C(0x00000200)
#define DAT_EP_FIELD_SRQ_HANDLE				UINT64_C(0x00000400)
#define DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE		UINT64_C(0x00001000)
#define DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE		UINT64_C(0x00002000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE		UINT64_C(0x00004000)
#define DAT_EP_FIELD_EP_ATTR_QOS			UINT64_C(0x00008000)
#define DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS	UINT64_C(0x00010000)
#define DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS	UINT64_C(0x00020000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS		UINT64_C(0x00040000)
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS		UINT64_C(0x00080000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV		UINT64_C(0x00100000)
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV		UINT64_C(0x00200000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN		UINT64_C(0x00400000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT		UINT64_C(0x00800000)
#define DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW		UINT64_C(0x01000000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV		UINT64_C(0x02000000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV		UINT64_C(0x04000000)
#define DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR		UINT64_C(0x08000000)
#define DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR	UINT64_C(0x10000000)
#define DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR		UINT64_C(0x20000000)
#define DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR	UINT64_C(0x40000000)
#define DAT_EP_FIELD_EP_ATTR_ALL			UINT64_C(0x7ffff000)
#define DAT_EP_FIELD_ALL				UINT64_C(0x7ffff7ff)

/* ---- shared receive queue ---- */

#define DAT_WATERMARK_INFINITE		((DAT_COUNT)~0)
#define DAT_HW_DEFAULT			DAT_WATERMARK_INFINITE
#define DAT_SRQ_LW_DEFAULT		0x0
#define DAT_VALUE_UNKNOWN		(((DAT_COUNT)~0) - 1)

typedef enum dat_srq_state {
	DAT_SRQ_STATE_OPERATIONAL = 0,
	DAT_SRQ_STATE_ERROR = 1
} DAT_SRQ_STATE;

typedef struct dat_srq_attr {
	DAT_COUNT max_recv_dtos;
	DAT_COUNT max_recv_iov;
	DAT_COUNT low_watermark;
} DAT_SRQ_ATTR;

typedef struct dat_srq_param {
	DAT_IA_HANDLE ia_handle;
	DAT_SRQ_STATE srq_state;
	DAT_PZ_HANDLE pz_handle;
	DAT_COUNT max_recv_dtos;
	DAT_COUNT max_recv_iov;
	DAT_COUNT low_watermark;
	DAT_COUNT available_dto_count;
	DAT_COUNT outstanding_dto_count;
} DAT_SRQ_PARAM;

typedef enum dat_srq_param_mask {
	DAT_SRQ_FIELD_IA_HANDLE = 0x001,
	DAT_SRQ_FIELD_SRQ_STATE = 0x002,
	DAT_SRQ_FIELD_PZ_HANDLE = 0x004,
	DAT_SRQ_FIELD_MAX_RECV_DTO = 0x008,
	DAT_SRQ_FIELD_MAX_RECV_IOV = 0x010,
	DAT_SRQ_FIELD_LOW_WATERMARK = 0x020,
	DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT = 0x040,
	DAT_SRQ_FIELD_OUTSTANDING_DTO_COUNT = 0x080,
	DAT_SRQ_FIELD_ALL = 0x0ff
} DAT_SRQ_PARAM_MASK;

/* ---- service points and connection requests ---- */

typedef struct dat_psp_param {
	DAT_IA_HANDLE ia_handle;
	DAT_CONN_QUAL conn_qual;
	DAT_EVD_HANDLE evd_handle;
	DAT_PSP_FLAGS psp_flags;
} DAT_PSP_PARAM;

typedef enum dat_psp_param_mask {
	DAT_PSP_FIELD_IA_HANDLE = 0x01,
	DAT_PSP_FIELD_CONN_QUAL = 0x02,
	DAT_PSP_FIELD_EVD_HANDLE = 0x04,
	DAT_PSP_FIELD_PSP_FLAGS = 0x08,
	DAT_PSP_FIELD_ALL = 0x0f
} DAT_PSP_PARAM_MASK;

typedef struct dat_rsp_param {
	DAT_IA_HANDLE ia_handle;
	DAT_CONN_QUAL conn_qual;
	DAT_EVD_HANDLE evd_handle;
	DAT_EP_HANDLE ep_handle;
} DAT_RSP_PARAM;

typedef enum dat_rsp_param_mask {
	DAT_RSP_FIELD_IA_HANDLE = 0x01,
	DAT_RSP_FIELD_CONN_QUAL = 0x02,
	DAT_RSP_FIELD_EVD_HANDLE = 0x04,
	DAT_RSP_FIELD_EP_HANDLE = 0x08,
	DAT_RSP_FIELD_ALL = 0x0f
} DAT_RSP_PARAM_MASK;

typedef struct dat_cr_param {
	DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
	DAT_PORT_QUAL remote_port_qual;
	DAT_COUNT private_data_size;
	DAT_PVOID private_data;
	DAT_EP_HANDLE local_ep_handle;
} DAT_CR_PARAM;

typedef enum dat_cr_param_mask {
	DAT_CR_FIELD_REMOTE_IA_ADDRESS_PTR = 0x01,
	DAT_CR_FIELD_REMOTE_PORT_QUAL = 0x02,
	DAT_CR_FIELD_PRIVATE_DATA_SIZE = 0x04,
	DAT_CR_FIELD_PRIVATE_DATA = 0x08,
	DAT_CR_FIELD_LOCAL_EP_HANDLE = 0x10,
	DAT_CR_FIELD_ALL = 0x1f
} DAT_CR_PARAM_MASK;

/* ---- event dispatcher ---- */

/* One of each pair, and one CONFIG: the last is the other two together. */
typedef enum dat_evd_state {
	DAT_EVD_STATE_ENABLED = 0x01,
	DAT_EVD_STATE_DISABLED = 0x02,
	DAT_EVD_STATE_WAITABLE = 0x04,
	DAT_EVD_STATE_UNWAITABLE = 0x08,
	DAT_EVD_STATE_CONFIG_NOTIFY = 0x10,
	DAT_EVD_STATE_CONFIG_SOLICITED = 0x20,
	DAT_EVD_STATE_CONFIG_THRESHOLD = 0x30
} DAT_EVD_STATE;

typedef struct dat_evd_param {
	DAT_IA_HANDLE ia_handle;
	DAT_COUNT evd_qlen;
	DAT_EVD_STATE evd_state;
	DAT_CNO_HANDLE cno_handle;
	DAT_EVD_FLAGS evd_flags;
} DAT_EVD_PARAM;

typedef enum dat_evd_param_mask {
	DAT_EVD_FIELD_IA_HANDLE = 0x01,
	DAT_EVD_FIELD_EVD_QLEN = 0x02,
	DAT_EVD_FIELD_EVD_STATE = 0x04,
	DAT_EVD_FIELD_CNO = 0x08,
	DAT_EVD_FIELD_EVD_FLAGS = 0x10,
	DAT_EVD_FIELD_ALL = 0x1f
} DAT_EVD_PARAM_MASK;

/* ---- consumer notification object ---- */

typedef void (*DAT_AGENT_FUNC)(DAT_PVOID instance_data, DAT_EVD_HANDLE evd_handle);

typedef struct dat_os_wait_proxy_agent {
	DAT_PVOID instance_data;
	DAT_AGENT_FUNC proxy_agent_func;
} DAT_OS_WAIT_PROXY_AGENT;

#ifdef __cplusplus
#define DAT_OS_WAIT_PROXY_AGENT_NULL	DAT_OS_WAIT_PROXY_AGENT{nullptr, nullptr}
#else
#define DAT_OS_WAIT_PROXY_AGENT_NULL	(DAT_OS_WAIT_PROXY_AGENT){NULL, NULL}
#endif

typedef struct dat_cno_param {
	DAT_IA_HANDLE ia_handle;
	DAT_OS_WAIT_PROXY_AGENT agent;
} DAT_CNO_PARAM;

typedef enum dat_cno_param_mask {
	DAT_CNO_FIELD_IA_HANDLE = 0x1,
	DAT_CNO_FIELD_AGENT = 0x2,
	DAT_CNO_FIELD_ALL = 0x3
} DAT_CNO_PARAM_MASK;

/* ---- events ---- */

typedef enum dat_event_number {
	DAT_DTO_COMPLETION_EVENT = 0x00001,

	DAT_RMR_BIND_COMPLETION_EVENT = 0x01001,

	DAT_CONNECTION_REQUEST_EVENT = 0x02001,

	DAT_CONNECTION_EVENT_ESTABLISHED = 0x04001,
	DAT_CONNECTION_EVENT_PEER_REJECTED = 0x04002,
	DAT_CONNECTION_EVENT_NON_PEER_REJECTED = 0x04003,
	DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR = 0x04004,
	DAT_CONNECTION_EVENT_DISCONNECTED = 0x04005,
	DAT_CONNECTION_EVENT_BROKEN = 0x04006,
	DAT_CONNECTION_EVENT_TIMED_OUT = 0x04007,
	DAT_CONNECTION_EVENT_UNREACHABLE = 0x04008,

	DAT_ASYNC_ERROR_EVD_OVERFLOW = 0x08001,
	DAT_ASYNC_ERROR_IA_CATASTROPHIC = 0x08002,
	DAT_ASYNC_ERROR_EP_BROKEN = 0x08003,
	DAT_ASYNC_ERROR_TIMED_OUT = 0x08004,
	DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR = 0x08005,

	DAT_SOFTWARE_EVENT = 0x10001
} DAT_EVENT_NUMBER;

typedef enum dat_dto_completion_status {
	DAT_DTO_SUCCESS = 0,
	DAT_DTO_ERR_FLUSHED = 1,
	DAT_DTO_ERR_LOCAL_LENGTH = 2,
	DAT_DTO_ERR_LOCAL_EP = 3,
	DAT_DTO_ERR_LOCAL_PROTECTION = 4,
	DAT_DTO_ERR_BAD_RESPONSE = 5,
	DAT_DTO_ERR_REMOTE_ACCESS = 6,
	DAT_DTO_ERR_REMOTE_RESPONDER = 7,
	DAT_DTO_ERR_TRANSPORT = 8,
	DAT_DTO_ERR_RECEIVER_NOT_READY = 9,
	DAT_DTO_ERR_PARTIAL_PACKET = 10,
	DAT_RMR_OPERATION_FAILED = 11
} DAT_DTO_COMPLETION_STATUS;

#define DAT_RMR_BIND_COMPLETION_STATUS	DAT_DTO_COMPLETION_STATUS

/* DAT 1.0 */
#define DAT_DTO_LENGTH_ERROR		DAT_DTO_ERR_LOCAL_LENGTH
#define DAT_DTO_FAILURE			DAT_DTO_ERR_FLUSHED
#define DAT_RMR_BIND_SUCCESS		DAT_DTO_SUCCESS
#define DAT_RMR_BIND_FAILURE		DAT_DTO_ERR_FLUSHED

/* The reasons in DAT_ASYNCH_ERROR_EVENT_DATA, by the type of its handle. */

typedef enum ia_async_error_reason {
	DAT_IA_CATASTROPHIC_ERROR = 0,
	DAT_IA_OTHER_ERROR = 1
} DAT_IA_ASYNC_ERROR_REASON;

typedef enum ep_async_error_reason {
	DAT_EP_TRANSFER_TO_ERROR = 0,
	DAT_EP_OTHER_ERROR = 1,
	DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT = 2
} DAT_EP_ASYNC_ERROR_REASON;

typedef enum ep_evd_error_reason {
	DAT_EVD_OVERFLOW_ERROR = 0,
	DAT_EVD_OTHER_ERROR = 1
} DAT_EVD_ASYNC_ERROR_REASON;

typedef enum ep_srq_error_reason {
	DAT_SRQ_TRANSFER_TO_ERROR = 0,
	DAT_SRQ_OTHER_ERROR = 1,
	DAT_SRQ_LOW_WATERMARK_EVENT = 2
} DAT_SRQ_ASYNC_ERROR_REASON;

typedef enum lmr_async_error_reason {
	DAT_LMR_OTHER_ERROR = 0
} DAT_LMR_ASYNC_ERROR_REASON;

typedef enum rmr_async_error_reason {
	DAT_RMR_OTHER_ERROR = 0
} DAT_RMR_ASYNC_ERROR_REASON;

typedef enum pz_async_error_reason {
	DAT_PZ_OTHER_ERROR = 0
} DAT_PZ_ASYNC_ERROR_REASON;

/* The length counts only after success; its name is spelt so in DAT. */
typedef struct dat_dto_completion_event_data {
	DAT_EP_HANDLE ep_handle;
	DAT_DTO_COOKIE user_cookie;
	DAT_DTO_COMPLETION_STATUS status;
	DAT_VLEN transfered_length;
} DAT_DTO_COMPLETION_EVENT_DATA;

typedef struct dat_rmr_bind_completion_event_data {
	DAT_RMR_HANDLE rmr_handle;
	DAT_RMR_COOKIE user_cookie;
	DAT_RMR_BIND_COMPLETION_STATUS status;
} DAT_RMR_BIND_COMPLETION_EVENT_DATA;

typedef union dat_sp_handle {
	DAT_RSP_HANDLE rsp_handle;
	DAT_PSP_HANDLE psp_handle;
} DAT_SP_HANDLE;

/* sp_handle is DAT_HANDLE_NULL of an RSP, which is gone by then. */
typedef struct dat_cr_arrival_event_data {
	DAT_SP_HANDLE sp_handle;
	DAT_IA_ADDRESS_PTR local_ia_address_ptr;
	DAT_CONN_QUAL conn_qual;
	DAT_CR_HANDLE cr_handle;
} DAT_CR_ARRIVAL_EVENT_DATA;

typedef struct dat_connection_event_data {
	DAT_EP_HANDLE ep_handle;
	DAT_COUNT private_data_size;
	DAT_PVOID private_data;
} DAT_CONNECTION_EVENT_DATA;

typedef struct dat_asynch_error_event_data {
	DAT_HANDLE dat_handle;
	DAT_COUNT reason;
} DAT_ASYNCH_ERROR_EVENT_DATA;

typedef struct dat_software_event_data {
	DAT_PVOID pointer;
} DAT_SOFTWARE_EVENT_DATA;

typedef union dat_event_data {
	DAT_DTO_COMPLETION_EVENT_DATA dto_completion_event_data;
	DAT_RMR_BIND_COMPLETION_EVENT_DATA rmr_completion_event_data;
	DAT_CR_ARRIVAL_EVENT_DATA cr_arrival_event_data;
	DAT_CONNECTION_EVENT_DATA connect_event_data;
	DAT_ASYNCH_ERROR_EVENT_DATA asynch_error_event_data;
	DAT_SOFTWARE_EVENT_DATA software_event_data;
} DAT_EVENT_DATA;

typedef struct dat_event {
	DAT_EVENT_NUMBER event_number;
	DAT_EVD_HANDLE evd_handle;
	DAT_EVENT_DATA event_data;
} DAT_EVENT;

/* ---- calls: interface adapter ---- */

extern DAT_RETURN dat_ia_openv(const DAT_NAME_PTR ia_name_ptr, DAT_COUNT async_evd_min_qlen,
		DAT_EVD_HANDLE *async_evd_handle, DAT_IA_HANDLE *ia_handle,
		DAT_UINT32 dat_major, DAT_UINT32 dat_minor, DAT_BOOLEAN thread_safe);
#define dat_ia_open(name, qlen, async_evd, ia) \
	dat_ia_openv((name), (qlen), (async_evd), (ia), \
		     DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_THREADSAFE)
extern DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd_handle,
		DAT_IA_ATTR_MASK ia_attr_mask, DAT_IA_ATTR *ia_attributes,
		DAT_PROVIDER_ATTR_MASK provider_attr_mask,
		DAT_PROVIDER_ATTR *provider_attributes);
extern DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS ia_flags);

/* ---- calls: any handle ---- */

extern DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context);
extern DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT *context);
extern DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE *handle_type);

/* ---- calls: consumer notification object ---- */

extern DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
		DAT_CNO_HANDLE *cno_handle);
extern DAT_RETURN dat_cno_modify_agent(DAT_CNO_HANDLE cno_handle,
		DAT_OS_WAIT_PROXY_AGENT agent);
extern DAT_RETURN dat_cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK cno_param_mask,
		DAT_CNO_PARAM *cno_param);
extern DAT_RETURN dat_cno_free(DAT_CNO_HANDLE cno_handle);
extern DAT_RETURN dat_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout,
		DAT_EVD_HANDLE *evd_handle);

/* ---- calls: connection request ---- */

extern DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK cr_param_mask,
		DAT_CR_PARAM *cr_param);
extern DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
		DAT_COUNT private_data_size, const DAT_PVOID private_data);
extern DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle);
extern DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff);

/* ---- calls: event dispatcher ---- */

extern DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
		DAT_CNO_HANDLE cno_handle, DAT_EVD_FLAGS evd_flags, DAT_EVD_HANDLE *evd_handle);
extern DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK evd_param_mask,
		DAT_EVD_PARAM *evd_param);
extern DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle);
extern DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd_handle);
extern DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd_handle);
extern DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout,
		DAT_COUNT threshold, DAT_EVENT *event, DAT_COUNT *nmore);
extern DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen);
extern DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event);
extern DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event);
extern DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd_handle);
extern DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle);
extern DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle);

/* ---- calls: endpoint ---- */

extern DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
		DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle,
		DAT_EVD_HANDLE connect_evd_handle, const DAT_EP_ATTR *ep_attributes,
		DAT_EP_HANDLE *ep_handle);
extern DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
		DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle,
		DAT_EVD_HANDLE connect_evd_handle, DAT_SRQ_HANDLE srq_handle,
		const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle);
extern DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
		DAT_EP_PARAM *ep_param);
extern DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
		const DAT_EP_PARAM *ep_param);
extern DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address,
		DAT_CONN_QUAL remote_conn_qual, DAT_TIMEOUT timeout,
		DAT_COUNT private_data_size, const DAT_PVOID private_data, DAT_QOS qos,
		DAT_CONNECT_FLAGS connect_flags);
extern DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE dup_ep_handle,
		DAT_TIMEOUT timeout, DAT_COUNT private_data_size, const DAT_PVOID private_data,
		DAT_QOS qos);
extern DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS disconnect_flags);
extern DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
		DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
		DAT_COMPLETION_FLAGS completion_flags);
extern DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
		DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
		DAT_COMPLETION_FLAGS completion_flags);
extern DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
		DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
		const DAT_RMR_TRIPLET *remote_buffer, DAT_COMPLETION_FLAGS completion_flags);
extern DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
		DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
		const DAT_RMR_TRIPLET *remote_buffer, DAT_COMPLETION_FLAGS completion_flags);
extern DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *ep_state,
		DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle);
extern DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *nbufs_allocated,
		DAT_COUNT *bufs_alloc_span);
extern DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft_high_watermark,
		DAT_COUNT hard_high_watermark);
extern DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep_handle);
extern DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep_handle);

/* ---- calls: shared receive queue ---- */

extern DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
		DAT_SRQ_ATTR *srq_attr, DAT_SRQ_HANDLE *srq_handle);
extern DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK srq_param_mask,
		DAT_SRQ_PARAM *srq_param);
extern DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_max_recv_dto);
extern DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark);
extern DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
		DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie);
extern DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq_handle);

/* ---- calls: memory ---- */

extern DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
		DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
		DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS mem_privileges,
		DAT_LMR_HANDLE *lmr_handle, DAT_LMR_CONTEXT *lmr_context,
		DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_size,
		DAT_VADDR *registered_address);
extern DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK lmr_param_mask,
		DAT_LMR_PARAM *lmr_param);
extern DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle);
extern DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle,
		const DAT_LMR_TRIPLET *local_segments, DAT_VLEN num_segments);
extern DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle,
		const DAT_LMR_TRIPLET *local_segments, DAT_VLEN num_segments);
extern DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle);
extern DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK rmr_param_mask,
		DAT_RMR_PARAM *rmr_param);
extern DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET *lmr_triplet,
		DAT_MEM_PRIV_FLAGS mem_privileges, DAT_EP_HANDLE ep_handle,
		DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags,
		DAT_RMR_CONTEXT *rmr_context);
extern DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr_handle);

/* ---- calls: service points ---- */

extern DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
		DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags, DAT_PSP_HANDLE *psp_handle);
extern DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
		DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags, DAT_PSP_HANDLE *psp_handle);
extern DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK psp_param_mask,
		DAT_PSP_PARAM *psp_param);
extern DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle);
extern DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
		DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE *rsp_handle);
extern DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK rsp_param_mask,
		DAT_RSP_PARAM *rsp_param);
extern DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle);

/* ---- calls: protection zone ---- */

extern DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle);
extern DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK pz_param_mask,
		DAT_PZ_PARAM *pz_param);
extern DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz_handle);

/* ---- calls: registry and errors ---- */

extern DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return,
		DAT_COUNT *number_entries, DAT_PROVIDER_INFO *(dat_provider_list[]));
extern DAT_RETURN dat_strerror(DAT_RETURN status, const char **major_message,
		const char **minor_message);

#ifdef __cplusplus
}
#endif

#endif /* DAPX_DAT_UDAT_H */
