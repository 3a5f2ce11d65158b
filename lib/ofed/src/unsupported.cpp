// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Functions for objects that dapx has no counterpart of: EOPNOTSUPP for its own, libibverbs for all others.
#include "libibverbs.hpp"
#include "own.hpp"

#include <dapx/context.hpp>

#include <sys/stat.h>

using namespace dapx::verbs;

DAPX_VERBS ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr)
{
    return is_foreign(pd) ? DAPX_LIBIBVERBS(ibv_create_ah)(pd, attr)
                          : failed_null<ibv_ah>(EOPNOTSUPP);
}

DAPX_VERBS ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh,
                                         std::uint8_t port_num)
{
    return is_foreign(pd) ? DAPX_LIBIBVERBS(ibv_create_ah_from_wc)(pd, wc, grh, port_num)
                          : failed_null<ibv_ah>(EOPNOTSUPP);
}

DAPX_VERBS int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port_num, ibv_wc* wc,
                                   ibv_grh* grh, ibv_ah_attr* attr)
{
    return Context::find(context) == nullptr
               ? DAPX_LIBIBVERBS(ibv_init_ah_from_wc)(context, port_num, wc, grh, attr)
               : failed(EOPNOTSUPP);
}

DAPX_VERBS int ibv_resolve_eth_l2_from_gid(ibv_context* context, ibv_ah_attr* attr,
                                           std::uint8_t eth_mac[ETHERNET_LL_SIZE],
                                           std::uint16_t* vid)
{
    return Context::find(context) == nullptr
               ? DAPX_LIBIBVERBS(ibv_resolve_eth_l2_from_gid)(context, attr, eth_mac, vid)
               : failed(EOPNOTSUPP);
}

DAPX_VERBS int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid)
{
    return is_foreign(qp) ? DAPX_LIBIBVERBS(ibv_attach_mcast)(qp, gid, lid) : failed(EOPNOTSUPP);
}

DAPX_VERBS int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid)
{
    return is_foreign(qp) ? DAPX_LIBIBVERBS(ibv_detach_mcast)(qp, gid, lid) : failed(EOPNOTSUPP);
}

DAPX_VERBS int ibv_set_ece(ibv_qp* qp, ibv_ece* ece)
{
    return is_foreign(qp) ? DAPX_LIBIBVERBS(ibv_set_ece)(qp, ece) : failed(EOPNOTSUPP);
}

DAPX_VERBS int ibv_query_ece(ibv_qp* qp, ibv_ece* ece)
{
    return is_foreign(qp) ? DAPX_LIBIBVERBS(ibv_query_ece)(qp, ece) : failed(EOPNOTSUPP);
}

/// Nothing is known of it: 0.
DAPX_VERBS int ibv_query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode op, std::uint32_t flags)
{
    return is_foreign(qp) ? DAPX_LIBIBVERBS(ibv_query_qp_data_in_order)(qp, op, flags) : 0;
}

DAPX_VERBS int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, size_t length,
                            int access)
{
    if (is_foreign(mr))
        return DAPX_LIBIBVERBS(ibv_rereg_mr)(mr, flags, pd, addr, length, access);
    errno = EOPNOTSUPP;
    return IBV_REREG_MR_ERR_INPUT;
}

DAPX_VERBS ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, size_t length,
                                     std::uint64_t iova, int fd, int access)
{
    return is_foreign(pd) ? DAPX_LIBIBVERBS(ibv_reg_dmabuf_mr)(pd, offset, length, iova, fd, access)
                          : failed_null<ibv_mr>(EOPNOTSUPP);
}

/// Of a descriptor of the module's.
DAPX_VERBS ibv_context* ibv_import_device(int cmd_fd)
{
    struct stat node{};
    struct stat given{};
    if (stat(dapx::Context::default_node, &node) == 0 && fstat(cmd_fd, &given) == 0 &&
        S_ISCHR(given.st_mode) && given.st_rdev == node.st_rdev)
        return failed_null<ibv_context>(EOPNOTSUPP);
    return DAPX_LIBIBVERBS(ibv_import_device)(cmd_fd);
}

DAPX_VERBS ibv_pd* ibv_import_pd(ibv_context* context, std::uint32_t pd_handle)
{
    return Context::find(context) == nullptr ? DAPX_LIBIBVERBS(ibv_import_pd)(context, pd_handle)
                                             : failed_null<ibv_pd>(EOPNOTSUPP);
}

DAPX_VERBS void ibv_unimport_pd(ibv_pd* pd)
{
    if (is_foreign(pd))
        DAPX_LIBIBVERBS(ibv_unimport_pd)(pd);
}

DAPX_VERBS ibv_mr* ibv_import_mr(ibv_pd* pd, std::uint32_t mr_handle)
{
    return is_foreign(pd) ? DAPX_LIBIBVERBS(ibv_import_mr)(pd, mr_handle)
                          : failed_null<ibv_mr>(EOPNOTSUPP);
}

DAPX_VERBS void ibv_unimport_mr(ibv_mr* mr)
{
    if (is_foreign(mr))
        DAPX_LIBIBVERBS(ibv_unimport_mr)(mr);
}

DAPX_VERBS ibv_dm* ibv_import_dm(ibv_context* context, std::uint32_t dm_handle)
{
    return Context::find(context) == nullptr ? DAPX_LIBIBVERBS(ibv_import_dm)(context, dm_handle)
                                             : failed_null<ibv_dm>(EOPNOTSUPP);
}
