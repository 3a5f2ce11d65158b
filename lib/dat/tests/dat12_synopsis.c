// SPDX-License-Identifier: GPL-2.0
/*
 * The headers of DAT 1.2 against its manual: each call is declared again, as its page
 * in section 3DAT has it, and numbers and layouts are asserted. To compile and to link
 * it is the test.
 *
 * Where a page cannot be right, the declaration is that of the headers of 1.2:
 *   dat_ep_create, dat_ep_create_with_srq, dat_ep_modify, dat_ep_post_rdma_read,
 *   dat_ep_post_rdma_write, dat_rmr_bind	the page leaves out a const
 *   dat_registry_add_provider			the page has one const too many
 *   dat_psp_create_any				the page has conn_qual as a value, not as a result
 *   dat_ep_post_rdma_write, dat_get_handle_type	the page has another name
 *   dat_strerror				the page calls a parameter "return"
 *   dat_evd_create, dat_ia_openv		no page
 */
#include <dat/udat.h>
#include <dat/dat_registry.h>

#include <stddef.h>

/* ---- the calls ---- */

/* Parentheses keep the macro away. */
DAT_RETURN (dat_ia_open)(IN const DAT_NAME_PTR ia_name_ptr, IN DAT_COUNT async_evd_min_qlen,
		INOUT DAT_EVD_HANDLE *async_evd_handle, OUT DAT_IA_HANDLE *ia_handle);

DAT_RETURN dat_ia_openv(IN const DAT_NAME_PTR ia_name_ptr, IN DAT_COUNT async_evd_min_qlen,
		INOUT DAT_EVD_HANDLE *async_evd_handle, OUT DAT_IA_HANDLE *ia_handle,
		IN DAT_UINT32 dat_major, IN DAT_UINT32 dat_minor, IN DAT_BOOLEAN thread_safe);
DAT_RETURN dat_ia_query(IN DAT_IA_HANDLE ia_handle, OUT DAT_EVD_HANDLE *async_evd_handle,
		IN DAT_IA_ATTR_MASK ia_attr_mask, OUT DAT_IA_ATTR *ia_attributes,
		IN DAT_PROVIDER_ATTR_MASK provider_attr_mask,
		OUT DAT_PROVIDER_ATTR *provider_attributes);
DAT_RETURN dat_ia_close(IN DAT_IA_HANDLE ia_handle, IN DAT_CLOSE_FLAGS ia_flags);
DAT_RETURN dat_set_consumer_context(IN DAT_HANDLE dat_handle, IN DAT_CONTEXT context);
DAT_RETURN dat_get_consumer_context(IN DAT_HANDLE dat_handle, OUT DAT_CONTEXT *context);
DAT_RETURN dat_get_handle_type(IN DAT_HANDLE dat_handle, OUT DAT_HANDLE_TYPE *handle_type);
DAT_RETURN dat_cno_create(IN DAT_IA_HANDLE ia_handle, IN DAT_OS_WAIT_PROXY_AGENT agent,
		OUT DAT_CNO_HANDLE *cno_handle);
DAT_RETURN dat_cno_modify_agent(IN DAT_CNO_HANDLE cno_handle, IN DAT_OS_WAIT_PROXY_AGENT agent);
DAT_RETURN dat_cno_query(IN DAT_CNO_HANDLE cno_handle, IN DAT_CNO_PARAM_MASK cno_param_mask,
		OUT DAT_CNO_PARAM *cno_param);
DAT_RETURN dat_cno_free(IN DAT_CNO_HANDLE cno_handle);
DAT_RETURN dat_cno_wait(IN DAT_CNO_HANDLE cno_handle, IN DAT_TIMEOUT timeout,
		OUT DAT_EVD_HANDLE *evd_handle);
DAT_RETURN dat_cr_query(IN DAT_CR_HANDLE cr_handle, IN DAT_CR_PARAM_MASK cr_param_mask,
		OUT DAT_CR_PARAM *cr_param);
DAT_RETURN dat_cr_accept(IN DAT_CR_HANDLE cr_handle, IN DAT_EP_HANDLE ep_handle,
		IN DAT_COUNT private_data_size, IN const DAT_PVOID private_data);
DAT_RETURN dat_cr_reject(IN DAT_CR_HANDLE cr_handle);
DAT_RETURN dat_cr_handoff(IN DAT_CR_HANDLE cr_handle, IN DAT_CONN_QUAL handoff);
DAT_RETURN dat_evd_create(IN DAT_IA_HANDLE ia_handle, IN DAT_COUNT evd_min_qlen,
		IN DAT_CNO_HANDLE cno_handle, IN DAT_EVD_FLAGS evd_flags,
		OUT DAT_EVD_HANDLE *evd_handle);
DAT_RETURN dat_evd_query(IN DAT_EVD_HANDLE evd_handle, IN DAT_EVD_PARAM_MASK evd_param_mask,
		OUT DAT_EVD_PARAM *evd_param);
DAT_RETURN dat_evd_modify_cno(IN DAT_EVD_HANDLE evd_handle, IN DAT_CNO_HANDLE cno_handle);
DAT_RETURN dat_evd_enable(IN DAT_EVD_HANDLE evd_handle);
DAT_RETURN dat_evd_disable(IN DAT_EVD_HANDLE evd_handle);
DAT_RETURN dat_evd_wait(IN DAT_EVD_HANDLE evd_handle, IN DAT_TIMEOUT timeout,
		IN DAT_COUNT threshold, OUT DAT_EVENT *event, OUT DAT_COUNT *nmore);
DAT_RETURN dat_evd_resize(IN DAT_EVD_HANDLE evd_handle, IN DAT_COUNT evd_min_qlen);
DAT_RETURN dat_evd_post_se(IN DAT_EVD_HANDLE evd_handle, IN const DAT_EVENT *event);
DAT_RETURN dat_evd_dequeue(IN DAT_EVD_HANDLE evd_handle, OUT DAT_EVENT *event);
DAT_RETURN dat_evd_free(IN DAT_EVD_HANDLE evd_handle);
DAT_RETURN dat_evd_set_unwaitable(IN DAT_EVD_HANDLE evd_handle);
DAT_RETURN dat_evd_clear_unwaitable(IN DAT_EVD_HANDLE evd_handle);
DAT_RETURN dat_ep_create(IN DAT_IA_HANDLE ia_handle, IN DAT_PZ_HANDLE pz_handle,
		IN DAT_EVD_HANDLE recv_evd_handle, IN DAT_EVD_HANDLE request_evd_handle,
		IN DAT_EVD_HANDLE connect_evd_handle, IN const DAT_EP_ATTR *ep_attributes,
		OUT DAT_EP_HANDLE *ep_handle);
DAT_RETURN dat_ep_create_with_srq(IN DAT_IA_HANDLE ia_handle, IN DAT_PZ_HANDLE pz_handle,
		IN DAT_EVD_HANDLE recv_evd_handle, IN DAT_EVD_HANDLE request_evd_handle,
		IN DAT_EVD_HANDLE connect_evd_handle, IN DAT_SRQ_HANDLE srq_handle,
		IN const DAT_EP_ATTR *ep_attributes, OUT DAT_EP_HANDLE *ep_handle);
DAT_RETURN dat_ep_query(IN DAT_EP_HANDLE ep_handle, IN DAT_EP_PARAM_MASK ep_param_mask,
		OUT DAT_EP_PARAM *ep_param);
DAT_RETURN dat_ep_modify(IN DAT_EP_HANDLE ep_handle, IN DAT_EP_PARAM_MASK ep_param_mask,
		IN const DAT_EP_PARAM *ep_param);
DAT_RETURN dat_ep_connect(IN DAT_EP_HANDLE ep_handle, IN DAT_IA_ADDRESS_PTR remote_ia_address,
		IN DAT_CONN_QUAL remote_conn_qual, IN DAT_TIMEOUT timeout,
		IN DAT_COUNT private_data_size, IN const DAT_PVOID private_data, IN DAT_QOS qos,
		IN DAT_CONNECT_FLAGS connect_flags);
DAT_RETURN dat_ep_dup_connect(IN DAT_EP_HANDLE ep_handle, IN DAT_EP_HANDLE dup_ep_handle,
		IN DAT_TIMEOUT timeout, IN DAT_COUNT private_data_size,
		IN const DAT_PVOID private_data, IN DAT_QOS qos);
DAT_RETURN dat_ep_disconnect(IN DAT_EP_HANDLE ep_handle, IN DAT_CLOSE_FLAGS disconnect_flags);
DAT_RETURN dat_ep_post_send(IN DAT_EP_HANDLE ep_handle, IN DAT_COUNT num_segments,
		IN DAT_LMR_TRIPLET *local_iov, IN DAT_DTO_COOKIE user_cookie,
		IN DAT_COMPLETION_FLAGS completion_flags);
DAT_RETURN dat_ep_post_recv(IN DAT_EP_HANDLE ep_handle, IN DAT_COUNT num_segments,
		IN DAT_LMR_TRIPLET *local_iov, IN DAT_DTO_COOKIE user_cookie,
		IN DAT_COMPLETION_FLAGS completion_flags);
DAT_RETURN dat_ep_post_rdma_read(IN DAT_EP_HANDLE ep_handle, IN DAT_COUNT num_segments,
		IN DAT_LMR_TRIPLET *local_iov, IN DAT_DTO_COOKIE user_cookie,
		IN const DAT_RMR_TRIPLET *remote_buffer,
		IN DAT_COMPLETION_FLAGS completion_flags);
DAT_RETURN dat_ep_post_rdma_write(IN DAT_EP_HANDLE ep_handle, IN DAT_COUNT num_segments,
		IN DAT_LMR_TRIPLET *local_iov, IN DAT_DTO_COOKIE user_cookie,
		IN const DAT_RMR_TRIPLET *remote_buffer,
		IN DAT_COMPLETION_FLAGS completion_flags);
DAT_RETURN dat_ep_get_status(IN DAT_EP_HANDLE ep_handle, OUT DAT_EP_STATE *ep_state,
		OUT DAT_BOOLEAN *recv_idle, OUT DAT_BOOLEAN *request_idle);
DAT_RETURN dat_ep_recv_query(IN DAT_EP_HANDLE ep_handle, OUT DAT_COUNT *nbufs_allocated,
		OUT DAT_COUNT *bufs_alloc_span);
DAT_RETURN dat_ep_set_watermark(IN DAT_EP_HANDLE ep_handle, IN DAT_COUNT soft_high_watermark,
		IN DAT_COUNT hard_high_watermark);
DAT_RETURN dat_ep_reset(IN DAT_EP_HANDLE ep_handle);
DAT_RETURN dat_ep_free(IN DAT_EP_HANDLE ep_handle);
DAT_RETURN dat_srq_create(IN DAT_IA_HANDLE ia_handle, IN DAT_PZ_HANDLE pz_handle,
		IN DAT_SRQ_ATTR *srq_attr, OUT DAT_SRQ_HANDLE *srq_handle);
DAT_RETURN dat_srq_query(IN DAT_SRQ_HANDLE srq_handle, IN DAT_SRQ_PARAM_MASK srq_param_mask,
		OUT DAT_SRQ_PARAM *srq_param);
DAT_RETURN dat_srq_resize(IN DAT_SRQ_HANDLE srq_handle, IN DAT_COUNT srq_max_recv_dto);
DAT_RETURN dat_srq_set_lw(IN DAT_SRQ_HANDLE srq_handle, IN DAT_COUNT low_watermark);
DAT_RETURN dat_srq_post_recv(IN DAT_SRQ_HANDLE srq_handle, IN DAT_COUNT num_segments,
		IN DAT_LMR_TRIPLET *local_iov, IN DAT_DTO_COOKIE user_cookie);
DAT_RETURN dat_srq_free(IN DAT_SRQ_HANDLE srq_handle);
DAT_RETURN dat_lmr_create(IN DAT_IA_HANDLE ia_handle, IN DAT_MEM_TYPE mem_type,
		IN DAT_REGION_DESCRIPTION region_description, IN DAT_VLEN length,
		IN DAT_PZ_HANDLE pz_handle, IN DAT_MEM_PRIV_FLAGS mem_privileges,
		OUT DAT_LMR_HANDLE *lmr_handle, OUT DAT_LMR_CONTEXT *lmr_context,
		OUT DAT_RMR_CONTEXT *rmr_context, OUT DAT_VLEN *registered_size,
		OUT DAT_VADDR *registered_address);
DAT_RETURN dat_lmr_query(IN DAT_LMR_HANDLE lmr_handle, IN DAT_LMR_PARAM_MASK lmr_param_mask,
		OUT DAT_LMR_PARAM *lmr_param);
DAT_RETURN dat_lmr_free(IN DAT_LMR_HANDLE lmr_handle);
DAT_RETURN dat_lmr_sync_rdma_read(IN DAT_IA_HANDLE ia_handle,
		IN const DAT_LMR_TRIPLET *local_segments, IN DAT_VLEN num_segments);
DAT_RETURN dat_lmr_sync_rdma_write(IN DAT_IA_HANDLE ia_handle,
		IN const DAT_LMR_TRIPLET *local_segments, IN DAT_VLEN num_segments);
DAT_RETURN dat_rmr_create(IN DAT_PZ_HANDLE pz_handle, OUT DAT_RMR_HANDLE *rmr_handle);
DAT_RETURN dat_rmr_query(IN DAT_RMR_HANDLE rmr_handle, IN DAT_RMR_PARAM_MASK rmr_param_mask,
		OUT DAT_RMR_PARAM *rmr_param);
DAT_RETURN dat_rmr_bind(IN DAT_RMR_HANDLE rmr_handle, IN const DAT_LMR_TRIPLET *lmr_triplet,
		IN DAT_MEM_PRIV_FLAGS mem_privileges, IN DAT_EP_HANDLE ep_handle,
		IN DAT_RMR_COOKIE user_cookie, IN DAT_COMPLETION_FLAGS completion_flags,
		OUT DAT_RMR_CONTEXT *rmr_context);
DAT_RETURN dat_rmr_free(IN DAT_RMR_HANDLE rmr_handle);
DAT_RETURN dat_psp_create(IN DAT_IA_HANDLE ia_handle, IN DAT_CONN_QUAL conn_qual,
		IN DAT_EVD_HANDLE evd_handle, IN DAT_PSP_FLAGS psp_flags,
		OUT DAT_PSP_HANDLE *psp_handle);
DAT_RETURN dat_psp_create_any(IN DAT_IA_HANDLE ia_handle, OUT DAT_CONN_QUAL *conn_qual,
		IN DAT_EVD_HANDLE evd_handle, IN DAT_PSP_FLAGS psp_flags,
		OUT DAT_PSP_HANDLE *psp_handle);
DAT_RETURN dat_psp_query(IN DAT_PSP_HANDLE psp_handle, IN DAT_PSP_PARAM_MASK psp_param_mask,
		OUT DAT_PSP_PARAM *psp_param);
DAT_RETURN dat_psp_free(IN DAT_PSP_HANDLE psp_handle);
DAT_RETURN dat_rsp_create(IN DAT_IA_HANDLE ia_handle, IN DAT_CONN_QUAL conn_qual,
		IN DAT_EP_HANDLE ep_handle, IN DAT_EVD_HANDLE evd_handle,
		OUT DAT_RSP_HANDLE *rsp_handle);
DAT_RETURN dat_rsp_query(IN DAT_RSP_HANDLE rsp_handle, IN DAT_RSP_PARAM_MASK rsp_param_mask,
		OUT DAT_RSP_PARAM *rsp_param);
DAT_RETURN dat_rsp_free(IN DAT_RSP_HANDLE rsp_handle);
DAT_RETURN dat_pz_create(IN DAT_IA_HANDLE ia_handle, OUT DAT_PZ_HANDLE *pz_handle);
DAT_RETURN dat_pz_query(IN DAT_PZ_HANDLE pz_handle, IN DAT_PZ_PARAM_MASK pz_param_mask,
		OUT DAT_PZ_PARAM *pz_param);
DAT_RETURN dat_pz_free(IN DAT_PZ_HANDLE pz_handle);
DAT_RETURN dat_registry_list_providers(IN DAT_COUNT max_to_return,
		OUT DAT_COUNT *number_entries, OUT DAT_PROVIDER_INFO *(dat_provider_list[]));
DAT_RETURN dat_strerror(IN DAT_RETURN status, OUT const char **major_message,
		OUT const char **minor_message);
DAT_RETURN dat_registry_add_provider(IN DAT_PROVIDER *provider,
		IN const DAT_PROVIDER_INFO *provider_info);
DAT_RETURN dat_registry_remove_provider(IN DAT_PROVIDER *provider,
		IN const DAT_PROVIDER_INFO *provider_info);
void dat_provider_init(IN const DAT_PROVIDER_INFO *provider_info, IN const char *instance_data);
void dat_provider_fini(IN const DAT_PROVIDER_INFO *provider_info);

/* ---- the slots of the table have the types of the calls, in the order of 1.2 ---- */

#define SAME_TYPE(function, type)					\
	_Static_assert(__builtin_types_compatible_p(__typeof__(&(function)), type), #function)

#define SLOT(number, call)						\
	SAME_TYPE(dat_##call, __typeof__(((DAT_PROVIDER *)0)->call##_func));	\
	_Static_assert(offsetof(DAT_PROVIDER, call##_func) ==		\
		       (2 + (number)) * sizeof(void *), #call)

SLOT(0, ia_open);
SLOT(1, ia_query);
SLOT(2, ia_close);
SLOT(3, set_consumer_context);
SLOT(4, get_consumer_context);
SLOT(5, get_handle_type);
SLOT(6, cno_create);
SLOT(7, cno_modify_agent);
SLOT(8, cno_query);
SLOT(9, cno_free);
SLOT(10, cno_wait);
SLOT(11, cr_query);
SLOT(12, cr_accept);
SLOT(13, cr_reject);
SLOT(14, cr_handoff);
SLOT(15, evd_create);
SLOT(16, evd_query);
SLOT(17, evd_modify_cno);
SLOT(18, evd_enable);
SLOT(19, evd_disable);
SLOT(20, evd_wait);
SLOT(21, evd_resize);
SLOT(22, evd_post_se);
SLOT(23, evd_dequeue);
SLOT(24, evd_free);
SLOT(25, ep_create);
SLOT(26, ep_query);
SLOT(27, ep_modify);
SLOT(28, ep_connect);
SLOT(29, ep_dup_connect);
SLOT(30, ep_disconnect);
SLOT(31, ep_post_send);
SLOT(32, ep_post_recv);
SLOT(33, ep_post_rdma_read);
SLOT(34, ep_post_rdma_write);
SLOT(35, ep_get_status);
SLOT(36, ep_free);
SLOT(37, lmr_create);
SLOT(38, lmr_query);
SLOT(39, lmr_free);
SLOT(40, rmr_create);
SLOT(41, rmr_query);
SLOT(42, rmr_bind);
SLOT(43, rmr_free);
SLOT(44, psp_create);
SLOT(45, psp_query);
SLOT(46, psp_free);
SLOT(47, rsp_create);
SLOT(48, rsp_query);
SLOT(49, rsp_free);
SLOT(50, pz_create);
SLOT(51, pz_query);
SLOT(52, pz_free);
SLOT(53, psp_create_any);
SLOT(54, ep_reset);
SLOT(55, evd_set_unwaitable);
SLOT(56, evd_clear_unwaitable);
SLOT(57, lmr_sync_rdma_read);
SLOT(58, lmr_sync_rdma_write);
SLOT(59, ep_create_with_srq);
SLOT(60, ep_recv_query);
SLOT(61, ep_set_watermark);
SLOT(62, srq_create);
SLOT(63, srq_free);
SLOT(64, srq_post_recv);
SLOT(65, srq_query);
SLOT(66, srq_resize);
SLOT(67, srq_set_lw);

_Static_assert(sizeof(DAT_PROVIDER) == 70 * sizeof(void *), "DAT_PROVIDER");
SAME_TYPE(dat_ia_openv, DAT_IA_OPENV_FUNC);
SAME_TYPE(DAT_PROVIDER_INIT_FUNC_NAME, DAT_PROVIDER_INIT_FUNC);
SAME_TYPE(DAT_PROVIDER_FINI_FUNC_NAME, DAT_PROVIDER_FINI_FUNC);

/* ---- numbers ---- */

#define VALUE(name, value)	_Static_assert((name) == (value), #name)

VALUE(DAT_VERSION_MAJOR, 1);
VALUE(DAT_VERSION_MINOR, 2);
VALUE(DAT_THREADSAFE, DAT_TRUE);
VALUE(DAT_TRUE, 1);
VALUE(DAT_FALSE, 0);
VALUE(DAT_OPTIMAL_ALIGNMENT, 256);
VALUE(DAT_NAME_MAX_LENGTH, 256);
VALUE(DAT_LMR_COOKIE_SIZE, 40);
VALUE(DAT_TIMEOUT_INFINITE, 0xffffffffu);
VALUE(DAT_WATERMARK_INFINITE, -1);
VALUE(DAT_HW_DEFAULT, -1);
VALUE(DAT_SRQ_LW_DEFAULT, 0);
VALUE(DAT_VALUE_UNKNOWN, -2);

VALUE(DAT_CLASS_SUCCESS, 0u);
VALUE(DAT_CLASS_WARNING, 0x40000000u);
VALUE(DAT_CLASS_ERROR, 0x80000000u);
VALUE(DAT_GET_TYPE(0x800a0062u), DAT_PROVIDER_NOT_FOUND);
VALUE(DAT_GET_SUBTYPE(0x800a0062u), DAT_NAME_NOT_REGISTERED);
VALUE(DAT_IS_WARNING(0x800a0062u), 0);
VALUE(DAT_IS_WARNING(0x40000000u), DAT_CLASS_WARNING);

VALUE(DAT_SUCCESS, 0);
VALUE(DAT_ABORT, 1 << 16);
VALUE(DAT_CONN_QUAL_IN_USE, 2 << 16);
VALUE(DAT_INSUFFICIENT_RESOURCES, 3 << 16);
VALUE(DAT_INTERNAL_ERROR, 4 << 16);
VALUE(DAT_INVALID_HANDLE, 5 << 16);
VALUE(DAT_INVALID_PARAMETER, 6 << 16);
VALUE(DAT_INVALID_STATE, 7 << 16);
VALUE(DAT_LENGTH_ERROR, 8 << 16);
VALUE(DAT_MODEL_NOT_SUPPORTED, 9 << 16);
VALUE(DAT_PROVIDER_NOT_FOUND, 10 << 16);
VALUE(DAT_PRIVILEGES_VIOLATION, 11 << 16);
VALUE(DAT_PROTECTION_VIOLATION, 12 << 16);
VALUE(DAT_QUEUE_EMPTY, 13 << 16);
VALUE(DAT_QUEUE_FULL, 14 << 16);
VALUE(DAT_TIMEOUT_EXPIRED, 15 << 16);
VALUE(DAT_PROVIDER_ALREADY_REGISTERED, 16 << 16);
VALUE(DAT_PROVIDER_IN_USE, 17 << 16);
VALUE(DAT_INVALID_ADDRESS, 18 << 16);
VALUE(DAT_INTERRUPTED_CALL, 19 << 16);
VALUE(DAT_CONN_QUAL_UNAVAILABLE, 20 << 16);
VALUE(DAT_NOT_IMPLEMENTED, 0xfff << 16);

VALUE(DAT_NO_SUBTYPE, 0);
VALUE(DAT_SUB_INTERRUPTED, 1);
VALUE(DAT_RESOURCE_MEMORY, 2);
VALUE(DAT_RESOURCE_SRQ, 10);
VALUE(DAT_INVALID_HANDLE_IA, 11);
VALUE(DAT_INVALID_HANDLE_CNO, 19);
VALUE(DAT_INVALID_HANDLE_SRQ, 25);
VALUE(DAT_INVALID_HANDLE1, 26);
VALUE(DAT_INVALID_HANDLE10, 35);
VALUE(DAT_INVALID_ARG1, 36);
VALUE(DAT_INVALID_ARG10, 45);
VALUE(DAT_INVALID_STATE_EP_UNCONNECTED, 46);
VALUE(DAT_INVALID_STATE_EP_NOTREADY, 56);
VALUE(DAT_INVALID_STATE_EP_UNCONFTENTATIVE, 65);
VALUE(DAT_INVALID_STATE_CNO_IN_USE, 66);
VALUE(DAT_INVALID_STATE_EVD_OPEN, 68);
VALUE(DAT_INVALID_STATE_EVD_IN_USE, 73);
VALUE(DAT_INVALID_STATE_IA_IN_USE, 79);
VALUE(DAT_INVALID_STATE_PZ_FREE, 83);
VALUE(DAT_INVALID_STATE_SRQ_IN_USE, 86);
VALUE(DAT_PRIVILEGES_READ, 87);
VALUE(DAT_PROTECTION_READ, 91);
VALUE(DAT_INVALID_ADDRESS_UNSUPPORTED, 95);
VALUE(DAT_NAME_NOT_REGISTERED, 98);
VALUE(DAT_THREAD_SAFETY_NOT_FOUND, 101);

VALUE(DAT_HANDLE_TYPE_CR, 0);
VALUE(DAT_HANDLE_TYPE_EP, 1);
VALUE(DAT_HANDLE_TYPE_EVD, 2);
VALUE(DAT_HANDLE_TYPE_IA, 3);
VALUE(DAT_HANDLE_TYPE_LMR, 4);
VALUE(DAT_HANDLE_TYPE_PSP, 5);
VALUE(DAT_HANDLE_TYPE_PZ, 6);
VALUE(DAT_HANDLE_TYPE_RMR, 7);
VALUE(DAT_HANDLE_TYPE_RSP, 8);
VALUE(DAT_HANDLE_TYPE_CNO, 9);
VALUE(DAT_HANDLE_TYPE_SRQ, 10);

VALUE(DAT_COMPLETION_SUPPRESS_FLAG, 0x01);
VALUE(DAT_COMPLETION_SOLICITED_WAIT_FLAG, 0x02);
VALUE(DAT_COMPLETION_UNSIGNALLED_FLAG, 0x04);
VALUE(DAT_COMPLETION_BARRIER_FENCE_FLAG, 0x08);
VALUE(DAT_COMPLETION_EVD_THRESHOLD_FLAG, 0x10);
VALUE(DAT_CLOSE_DEFAULT, 0);
VALUE(DAT_CLOSE_GRACEFUL_FLAG, 1);
VALUE(DAT_CONNECT_MULTIPATH_FLAG, 1);
VALUE(DAT_PSP_PROVIDER_FLAG, 1);
VALUE(DAT_EVD_SOFTWARE_FLAG, 0x001);
VALUE(DAT_EVD_CR_FLAG, 0x010);
VALUE(DAT_EVD_DTO_FLAG, 0x020);
VALUE(DAT_EVD_CONNECTION_FLAG, 0x040);
VALUE(DAT_EVD_RMR_BIND_FLAG, 0x080);
VALUE(DAT_EVD_ASYNC_FLAG, 0x100);
VALUE(DAT_EVD_DEFAULT_FLAG, 0x1f0);
VALUE(DAT_QOS_PREMIUM, 8);
VALUE(DAT_MEM_PRIV_READ_FLAG, 0x03);
VALUE(DAT_MEM_PRIV_WRITE_FLAG, 0x30);
VALUE(DAT_MEM_PRIV_ALL_FLAG, 0x33);
VALUE(DAT_MEM_TYPE_LMR, 1);
VALUE(DAT_MEM_TYPE_SHARED_VIRTUAL, 2);
VALUE(DAT_PSP_CREATES_EP_ALWAYS, 2);
VALUE(DAT_PZ_SHAREABLE, 2);

VALUE(DAT_EP_STATE_UNCONNECTED, 0);
VALUE(DAT_EP_STATE_UNCONFIGURED_UNCONNECTED, 1);
VALUE(DAT_EP_STATE_RESERVED, 2);
VALUE(DAT_EP_STATE_UNCONFIGURED_RESERVED, 3);
VALUE(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, 4);
VALUE(DAT_EP_STATE_UNCONFIGURED_PASSIVE, 5);
VALUE(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, 6);
VALUE(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING, 7);
VALUE(DAT_EP_STATE_UNCONFIGURED_TENTATIVE, 8);
VALUE(DAT_EP_STATE_CONNECTED, 9);
VALUE(DAT_EP_STATE_DISCONNECT_PENDING, 10);
VALUE(DAT_EP_STATE_DISCONNECTED, 11);
VALUE(DAT_EP_STATE_COMPLETION_PENDING, 12);
VALUE(DAT_SRQ_STATE_OPERATIONAL, 0);
VALUE(DAT_SRQ_STATE_ERROR, 1);
VALUE(DAT_EVD_STATE_ENABLED, 0x01);
VALUE(DAT_EVD_STATE_DISABLED, 0x02);
VALUE(DAT_EVD_STATE_WAITABLE, 0x04);
VALUE(DAT_EVD_STATE_UNWAITABLE, 0x08);
VALUE(DAT_EVD_STATE_CONFIG_NOTIFY, 0x10);
VALUE(DAT_EVD_STATE_CONFIG_SOLICITED, 0x20);
VALUE(DAT_EVD_STATE_CONFIG_THRESHOLD, 0x30);

VALUE(DAT_DTO_COMPLETION_EVENT, 0x00001);
VALUE(DAT_RMR_BIND_COMPLETION_EVENT, 0x01001);
VALUE(DAT_CONNECTION_REQUEST_EVENT, 0x02001);
VALUE(DAT_CONNECTION_EVENT_ESTABLISHED, 0x04001);
VALUE(DAT_CONNECTION_EVENT_PEER_REJECTED, 0x04002);
VALUE(DAT_CONNECTION_EVENT_NON_PEER_REJECTED, 0x04003);
VALUE(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, 0x04004);
VALUE(DAT_CONNECTION_EVENT_DISCONNECTED, 0x04005);
VALUE(DAT_CONNECTION_EVENT_BROKEN, 0x04006);
VALUE(DAT_CONNECTION_EVENT_TIMED_OUT, 0x04007);
VALUE(DAT_CONNECTION_EVENT_UNREACHABLE, 0x04008);
VALUE(DAT_ASYNC_ERROR_EVD_OVERFLOW, 0x08001);
VALUE(DAT_ASYNC_ERROR_IA_CATASTROPHIC, 0x08002);
VALUE(DAT_ASYNC_ERROR_EP_BROKEN, 0x08003);
VALUE(DAT_ASYNC_ERROR_TIMED_OUT, 0x08004);
VALUE(DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, 0x08005);
VALUE(DAT_SOFTWARE_EVENT, 0x10001);

VALUE(DAT_DTO_SUCCESS, 0);
VALUE(DAT_DTO_ERR_FLUSHED, 1);
VALUE(DAT_DTO_ERR_LOCAL_LENGTH, 2);
VALUE(DAT_DTO_ERR_REMOTE_ACCESS, 6);
VALUE(DAT_DTO_ERR_RECEIVER_NOT_READY, 9);
VALUE(DAT_RMR_OPERATION_FAILED, 11);
VALUE(DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT, 2);
VALUE(DAT_SRQ_LOW_WATERMARK_EVENT, 2);

VALUE(DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR, UINT64_C(1) << 31);
VALUE(DAT_IA_FIELD_IA_VENDOR_ATTR, UINT64_C(1) << 34);
VALUE(DAT_IA_ALL, UINT64_C(0x7ffffffff));
VALUE(DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR, UINT64_C(1) << 25);
VALUE(DAT_PROVIDER_FIELD_ALL, UINT64_C(0x3ffffff));
VALUE(DAT_EP_FIELD_SRQ_HANDLE, UINT64_C(1) << 10);
VALUE(DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE, UINT64_C(1) << 12);
VALUE(DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR, UINT64_C(1) << 30);
VALUE(DAT_EP_FIELD_ALL, UINT64_C(0x7ffff7ff));
VALUE(DAT_LMR_FIELD_LMR_CONTEXT, 0x040);
VALUE(DAT_LMR_FIELD_ALL, 0x3ff);
VALUE(DAT_RMR_FIELD_ALL, 0x1f);
VALUE(DAT_SRQ_FIELD_ALL, 0xff);
VALUE(DAT_PZ_FIELD_ALL, 0x01);
VALUE(DAT_PSP_FIELD_ALL, 0x0f);
VALUE(DAT_RSP_FIELD_ALL, 0x0f);
VALUE(DAT_CR_FIELD_ALL, 0x1f);
VALUE(DAT_EVD_FIELD_ALL, 0x1f);
VALUE(DAT_CNO_FIELD_ALL, 0x3);

/* ---- layouts, where pointers have 64 bits ---- */

#if UINTPTR_MAX > 0xffffffffu
#define SIZE(type, size)	_Static_assert(sizeof(type) == (size), #type)
#define AT(type, member, offset)					\
	_Static_assert(offsetof(type, member) == (offset), #type "." #member)

SIZE(DAT_LMR_TRIPLET, 24);
AT(DAT_LMR_TRIPLET, virtual_address, 8);
AT(DAT_LMR_TRIPLET, segment_length, 16);
SIZE(DAT_RMR_TRIPLET, 24);
AT(DAT_RMR_TRIPLET, target_address, 8);
AT(DAT_RMR_TRIPLET, segment_length, 16);
SIZE(DAT_CONTEXT, 8);
SIZE(DAT_REGION_DESCRIPTION, 16);
SIZE(DAT_IA_ATTR, 688);
AT(DAT_IA_ATTR, ia_address_ptr, 528);
AT(DAT_IA_ATTR, max_lmr_block_size, 568);
AT(DAT_IA_ATTR, max_message_size, 592);
AT(DAT_IA_ATTR, max_srqs, 624);
AT(DAT_IA_ATTR, num_transport_attr, 660);
AT(DAT_IA_ATTR, vendor_attr, 680);
SIZE(DAT_PROVIDER_ATTR, 504);
AT(DAT_PROVIDER_ATTR, lmr_mem_types_supported, 272);
AT(DAT_PROVIDER_ATTR, evd_stream_merging_supported, 312);
AT(DAT_PROVIDER_ATTR, srq_supported, 456);
AT(DAT_PROVIDER_ATTR, provider_specific_attr, 496);
SIZE(DAT_PROVIDER_INFO, 268);
AT(DAT_PROVIDER_INFO, is_thread_safe, 264);
SIZE(DAT_LMR_PARAM, 80);
AT(DAT_LMR_PARAM, region_desc, 16);
AT(DAT_LMR_PARAM, mem_priv, 48);
AT(DAT_LMR_PARAM, lmr_context, 52);
AT(DAT_LMR_PARAM, registered_size, 64);
SIZE(DAT_RMR_PARAM, 48);
AT(DAT_RMR_PARAM, lmr_triplet, 16);
AT(DAT_RMR_PARAM, rmr_context, 44);
SIZE(DAT_EP_ATTR, 104);
AT(DAT_EP_ATTR, max_message_size, 8);
AT(DAT_EP_ATTR, qos, 24);
AT(DAT_EP_ATTR, srq_soft_hw, 60);
AT(DAT_EP_ATTR, ep_transport_specific, 80);
AT(DAT_EP_ATTR, ep_provider_specific, 96);
SIZE(DAT_EP_PARAM, 192);
AT(DAT_EP_PARAM, local_ia_address_ptr, 16);
AT(DAT_EP_PARAM, srq_handle, 80);
AT(DAT_EP_PARAM, ep_attr, 88);
SIZE(DAT_SRQ_PARAM, 48);
AT(DAT_SRQ_PARAM, outstanding_dto_count, 40);
SIZE(DAT_CNO_PARAM, 24);
AT(DAT_CNO_PARAM, agent, 8);
SIZE(DAT_EVD_PARAM, 32);
AT(DAT_EVD_PARAM, evd_qlen, 8);
AT(DAT_EVD_PARAM, cno_handle, 16);
AT(DAT_EVD_PARAM, evd_flags, 24);
SIZE(DAT_CR_PARAM, 40);
AT(DAT_CR_PARAM, private_data_size, 16);
AT(DAT_CR_PARAM, local_ep_handle, 32);
SIZE(DAT_PSP_PARAM, 32);
SIZE(DAT_RSP_PARAM, 32);
SIZE(DAT_DTO_COMPLETION_EVENT_DATA, 32);
AT(DAT_DTO_COMPLETION_EVENT_DATA, status, 16);
AT(DAT_DTO_COMPLETION_EVENT_DATA, transfered_length, 24);
SIZE(DAT_RMR_BIND_COMPLETION_EVENT_DATA, 24);
SIZE(DAT_CR_ARRIVAL_EVENT_DATA, 32);
AT(DAT_CR_ARRIVAL_EVENT_DATA, conn_qual, 16);
AT(DAT_CR_ARRIVAL_EVENT_DATA, cr_handle, 24);
SIZE(DAT_CONNECTION_EVENT_DATA, 24);
AT(DAT_CONNECTION_EVENT_DATA, private_data, 16);
SIZE(DAT_ASYNCH_ERROR_EVENT_DATA, 16);
SIZE(DAT_EVENT, 48);
AT(DAT_EVENT, evd_handle, 8);
AT(DAT_EVENT, event_data, 16);
#endif

/* ---- linking: each of them is in the library ---- */

#define CALL(name) (void (*)(void))name

void (*const calls[])(void) = {
	CALL(dat_ia_open),
	CALL(dat_ia_openv),
	CALL(dat_ia_query),
	CALL(dat_ia_close),
	CALL(dat_set_consumer_context),
	CALL(dat_get_consumer_context),
	CALL(dat_get_handle_type),
	CALL(dat_cno_create),
	CALL(dat_cno_modify_agent),
	CALL(dat_cno_query),
	CALL(dat_cno_free),
	CALL(dat_cno_wait),
	CALL(dat_cr_query),
	CALL(dat_cr_accept),
	CALL(dat_cr_reject),
	CALL(dat_cr_handoff),
	CALL(dat_evd_create),
	CALL(dat_evd_query),
	CALL(dat_evd_modify_cno),
	CALL(dat_evd_enable),
	CALL(dat_evd_disable),
	CALL(dat_evd_wait),
	CALL(dat_evd_resize),
	CALL(dat_evd_post_se),
	CALL(dat_evd_dequeue),
	CALL(dat_evd_free),
	CALL(dat_evd_set_unwaitable),
	CALL(dat_evd_clear_unwaitable),
	CALL(dat_ep_create),
	CALL(dat_ep_create_with_srq),
	CALL(dat_ep_query),
	CALL(dat_ep_modify),
	CALL(dat_ep_connect),
	CALL(dat_ep_dup_connect),
	CALL(dat_ep_disconnect),
	CALL(dat_ep_post_send),
	CALL(dat_ep_post_recv),
	CALL(dat_ep_post_rdma_read),
	CALL(dat_ep_post_rdma_write),
	CALL(dat_ep_get_status),
	CALL(dat_ep_recv_query),
	CALL(dat_ep_set_watermark),
	CALL(dat_ep_reset),
	CALL(dat_ep_free),
	CALL(dat_srq_create),
	CALL(dat_srq_query),
	CALL(dat_srq_resize),
	CALL(dat_srq_set_lw),
	CALL(dat_srq_post_recv),
	CALL(dat_srq_free),
	CALL(dat_lmr_create),
	CALL(dat_lmr_query),
	CALL(dat_lmr_free),
	CALL(dat_lmr_sync_rdma_read),
	CALL(dat_lmr_sync_rdma_write),
	CALL(dat_rmr_create),
	CALL(dat_rmr_query),
	CALL(dat_rmr_bind),
	CALL(dat_rmr_free),
	CALL(dat_psp_create),
	CALL(dat_psp_create_any),
	CALL(dat_psp_query),
	CALL(dat_psp_free),
	CALL(dat_rsp_create),
	CALL(dat_rsp_query),
	CALL(dat_rsp_free),
	CALL(dat_pz_create),
	CALL(dat_pz_query),
	CALL(dat_pz_free),
	CALL(dat_registry_list_providers),
	CALL(dat_strerror),
	CALL(dat_registry_add_provider),
	CALL(dat_registry_remove_provider),
};

int main(void)
{
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!calls[i])
			return 1;
	return 0;
}
