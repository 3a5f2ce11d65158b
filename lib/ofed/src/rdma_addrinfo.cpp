// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Names into addresses, for ids of this library: librdmacm's function asks for /dev/infiniband/rdma_cm first, which those
// do not need. What it answers is laid out as librdmacm's, whose rdma_freeaddrinfo() frees it.
#include "rdma_device.hpp"
#include "rdma_id.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <netdb.h>

namespace dapx::verbs {

namespace {

using AddrInfo =
    std::unique_ptr<rdma_addrinfo,
                    decltype([](rdma_addrinfo* info) { DAPX_LIBRDMACM(rdma_freeaddrinfo)(info); })>;

/// False: no memory.
bool copy(const sockaddr* from, socklen_t length, sockaddr*& to, socklen_t& to_length) noexcept
{
    if (from == nullptr || length == 0)
        return true;
    to = static_cast<sockaddr*>(std::malloc(length));
    if (to == nullptr)
        return false;
    std::memcpy(to, from, length);
    to_length = length;
    return true;
}

addrinfo hints_of(const rdma_addrinfo& hints) noexcept
{
    addrinfo all{};
    if ((hints.ai_flags & RAI_PASSIVE) != 0)
        all.ai_flags |= AI_PASSIVE;
    if ((hints.ai_flags & RAI_NUMERICHOST) != 0)
        all.ai_flags |= AI_NUMERICHOST;
    all.ai_family = hints.ai_family;
    const bool datagrams = hints.ai_qp_type == IBV_QPT_UD || hints.ai_port_space == RDMA_PS_UDP ||
                           hints.ai_port_space == RDMA_PS_IPOIB;
    all.ai_socktype = datagrams ? SOCK_DGRAM : SOCK_STREAM;
    return all;
}

/// As rdma_getaddrinfo(): 0, a code of getaddrinfo(3), or -1 and errno.
int look_up(const char* node, const char* service, const rdma_addrinfo& hints,
            rdma_addrinfo& info) noexcept
{
    const addrinfo wanted = hints_of(hints);
    addrinfo* found = nullptr;
    if (const int error = getaddrinfo(node, service, &wanted, &found))
        return error;
    const std::unique_ptr<addrinfo, decltype([](addrinfo* list) { freeaddrinfo(list); })> owner(
        found);
    info.ai_flags = hints.ai_flags & RAI_PASSIVE;
    info.ai_family = found->ai_family;
    const bool copied =
        info.ai_flags != 0
            ? copy(found->ai_addr, found->ai_addrlen, info.ai_src_addr, info.ai_src_len)
            : copy(found->ai_addr, found->ai_addrlen, info.ai_dst_addr, info.ai_dst_len);
    return copied ? 0 : zero_or_errno(ENOMEM);
}

} // namespace

} // namespace dapx::verbs

using namespace dapx::verbs;

DAPX_VERBS int rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints,
                                rdma_addrinfo** res)
{
    if (is_for_librdmacm(__builtin_return_address(0)))
        return DAPX_LIBRDMACM(rdma_getaddrinfo)(node, service, hints, res);
    if (res == nullptr || (node == nullptr && service == nullptr && hints == nullptr))
        return zero_or_errno(EINVAL);
    const rdma_addrinfo none{};
    const rdma_addrinfo& wanted = hints != nullptr ? *hints : none;
    AddrInfo info(static_cast<rdma_addrinfo*>(std::calloc(1, sizeof(rdma_addrinfo))));
    if (!info)
        return zero_or_errno(ENOMEM);
    const bool datagrams =
        wanted.ai_port_space == RDMA_PS_UDP || wanted.ai_port_space == RDMA_PS_IPOIB;
    info->ai_qp_type = wanted.ai_qp_type != 0 ? wanted.ai_qp_type
                       : datagrams            ? IBV_QPT_UD
                                              : IBV_QPT_RC;
    info->ai_port_space = wanted.ai_port_space != 0        ? wanted.ai_port_space
                          : info->ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP
                                                           : RDMA_PS_TCP;
    if (node != nullptr || service != nullptr) {
        if (const int error = look_up(node, service, wanted, *info))
            return error;
    } else {
        info->ai_flags = wanted.ai_flags;
        info->ai_family = wanted.ai_family;
        if (!copy(wanted.ai_dst_addr, wanted.ai_dst_len, info->ai_dst_addr, info->ai_dst_len))
            return zero_or_errno(ENOMEM);
    }
    if (info->ai_src_len == 0 &&
        !copy(wanted.ai_src_addr, wanted.ai_src_len, info->ai_src_addr, info->ai_src_len))
        return zero_or_errno(ENOMEM);
    *res = info.release();
    return 0;
}
