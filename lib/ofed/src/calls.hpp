// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The functions that programs call through a context, as <infiniband/verbs.h> has them inline.
#pragma once

#include "verbs_abi.hpp"

namespace dapx::verbs {

class RdmaId;

// cq.cpp
int poll_cq(ibv_cq* cq, int num_entries, ibv_wc* wc) noexcept;
int req_notify_cq(ibv_cq* cq, int solicited_only) noexcept;
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) noexcept;

// srq.cpp
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept;
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) noexcept;
int get_srq_num(ibv_srq* srq, std::uint32_t* number) noexcept;

// qp.cpp
int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept;
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept;
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) noexcept;
/// The same for an id of the CM, which connects it.
ibv_qp* create_qp_of(RdmaId& id, ibv_qp_init_attr_ex& attr) noexcept;
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr) noexcept;

// xrcd.cpp
ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr) noexcept;
int close_xrcd(ibv_xrcd* xrcd) noexcept;

// calls.cpp
int query_port(ibv_context* context, std::uint8_t port_num, ibv_port_attr* attr,
               std::size_t size) noexcept;
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t size) noexcept;

/// What is not among them stays nullptr: the inline functions then answer EOPNOTSUPP themselves.
void fill_in_calls(verbs_context& context) noexcept;

} // namespace dapx::verbs
