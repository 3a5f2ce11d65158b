// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/address.hpp>
#include <dapx/dapx.h>

#include <cstring>

namespace dapx::detail {

static_assert(sizeof(::__kernel_sockaddr_storage) == sizeof(::sockaddr_storage));

inline void to_abi(const Address& address, ::__kernel_sockaddr_storage& out) noexcept
{
    std::memcpy(&out, &address.storage(), sizeof(out));
}

[[nodiscard]] inline Address from_abi(const ::__kernel_sockaddr_storage& in) noexcept
{
    ::sockaddr_storage storage;
    std::memcpy(&storage, &in, sizeof(storage));
    return Address(storage);
}

} // namespace dapx::detail
