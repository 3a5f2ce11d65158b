// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Reading enum dapx_object_attr: what is not there is none.
#pragma once

#include <dapx/address.hpp>
#include <dapx/dapx.h>

#include "netlink.hpp"

#include <cstdint>
#include <cstring>
#include <optional>

#include <netlink/attr.h>

namespace dapx::detail {

using ObjectTable = NlTable<DAPX_OBJECT_ATTR_DURATION + 1>;

inline constexpr auto object_policy = [] {
    NlPolicyFor<ObjectTable> types{};
    types.fill(nl_type(NLA_U32));
    types[DAPX_OBJECT_ATTR_PAD] = nl_type(NLA_UNSPEC);
    for (const auto text : {DAPX_OBJECT_ATTR_DEVICE, DAPX_OBJECT_ATTR_NAME})
        types[text] = nl_type(NLA_STRING);
    for (const auto flag : {DAPX_OBJECT_ATTR_ENDING, DAPX_OBJECT_ATTR_BUSY, DAPX_OBJECT_ATTR_FULL})
        types[flag] = nl_type(NLA_FLAG);
    for (const auto large :
         {DAPX_OBJECT_ATTR_LENGTH, DAPX_OBJECT_ATTR_POSTED, DAPX_OBJECT_ATTR_RECEIVED,
          DAPX_OBJECT_ATTR_EVENTS, DAPX_OBJECT_ATTR_TIME, DAPX_OBJECT_ATTR_DURATION})
        types[large] = nl_type(NLA_U64);
    for (const auto address : {DAPX_OBJECT_ATTR_LOCAL, DAPX_OBJECT_ATTR_REMOTE})
        types[address] = {
            .type = NLA_UNSPEC, .minlen = sizeof(::__kernel_sockaddr_storage), .maxlen = 0};
    return types;
}();

inline bool read_object(ObjectTable& table, const ::nlmsghdr* message) noexcept
{
    ::nlattr* first = nullptr;
    int length = 0;
    return nl_attributes(message, first, length) && nl_parse(table, first, length, object_policy) &&
           table[DAPX_OBJECT_ATTR_CONTEXT] != nullptr;
}

inline std::optional<std::uint32_t> number(const ::nlattr* attribute) noexcept
{
    return attribute == nullptr ? std::nullopt : std::optional(::nla_get_u32(attribute));
}

inline std::optional<std::uint64_t> large_number(const ::nlattr* attribute) noexcept
{
    return attribute == nullptr ? std::nullopt : std::optional(::nla_get_u64(attribute));
}

inline std::optional<Address> address(const ::nlattr* attribute) noexcept
{
    if (attribute == nullptr)
        return std::nullopt;
    ::sockaddr_storage storage;
    std::memcpy(&storage, ::nla_data(attribute), sizeof(storage));
    return Address(storage);
}

} // namespace dapx::detail
