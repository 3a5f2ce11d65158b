// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What of the RDMA CM the module has no counterpart for: EOPNOTSUPP on ids of this library.
#include "rdma_id.hpp"

using namespace dapx::verbs;

static int not_supported(const RdmaId& /*id*/) noexcept
{
    return EOPNOTSUPP;
}

// Datagrams.

DAPX_VERBS int rdma_join_multicast(rdma_cm_id* id, sockaddr* addr, void* context)
{
    return on_id(id, not_supported,
                 [=] { return DAPX_LIBRDMACM(rdma_join_multicast)(id, addr, context); });
}

DAPX_VERBS int rdma_join_multicast_ex(rdma_cm_id* id, rdma_cm_join_mc_attr_ex* attr, void* context)
{
    return on_id(id, not_supported,
                 [=] { return DAPX_LIBRDMACM(rdma_join_multicast_ex)(id, attr, context); });
}

DAPX_VERBS int rdma_leave_multicast(rdma_cm_id* id, sockaddr* addr)
{
    return on_id(id, not_supported, [=] { return DAPX_LIBRDMACM(rdma_leave_multicast)(id, addr); });
}

// Enhanced connection establishment: what vendors agree on.

DAPX_VERBS int rdma_set_local_ece(rdma_cm_id* id, ibv_ece* ece)
{
    return on_id(id, not_supported, [=] { return DAPX_LIBRDMACM(rdma_set_local_ece)(id, ece); });
}

DAPX_VERBS int rdma_get_remote_ece(rdma_cm_id* id, ibv_ece* ece)
{
    return on_id(id, not_supported, [=] { return DAPX_LIBRDMACM(rdma_get_remote_ece)(id, ece); });
}

DAPX_VERBS int rdma_reject_ece(rdma_cm_id* id, const void* private_data, std::uint8_t length)
{
    return on_id(id, not_supported,
                 [=] { return DAPX_LIBRDMACM(rdma_reject_ece)(id, private_data, length); });
}
