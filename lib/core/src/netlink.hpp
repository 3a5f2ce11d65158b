// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The module's generic netlink family: asking, and reading its attributes.
#pragma once

#include <dapx/error.hpp>
#include <dapx/monitor.hpp>
#include <dapx/object_list.hpp>
#include <dapx/xrc_domain_list.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <netlink/attr.h>

struct nl_sock;
struct nlmsghdr;

namespace dapx::detail {

/// Attributes by their number.
template <std::size_t N> using NlTable = std::array<::nlattr*, N>;

constexpr ::nla_policy nl_type(std::uint16_t type) noexcept
{
    return {.type = type, .minlen = 0, .maxlen = 0};
}

template <class Table> using NlPolicyFor = std::array<::nla_policy, std::tuple_size_v<Table>>;

template <std::size_t N>
[[nodiscard]] bool nl_parse(NlTable<N>& table, ::nlattr* first, int length,
                            const std::array<::nla_policy, N>& policy) noexcept
{
    return ::nla_parse(table.data(), static_cast<int>(N - 1), first, length, policy.data()) == 0;
}

template <std::size_t N>
[[nodiscard]] bool nl_parse_nested(NlTable<N>& table, ::nlattr* nest,
                                   const std::array<::nla_policy, N>& policy) noexcept
{
    return nl_parse(table, static_cast<::nlattr*>(::nla_data(nest)), ::nla_len(nest), policy);
}

/// What is not there is 0, or empty.
[[nodiscard]] std::uint32_t nl_number(const ::nlattr* attribute) noexcept;
[[nodiscard]] std::uint64_t nl_large_number(const ::nlattr* attribute) noexcept;
[[nodiscard]] std::string nl_text(const ::nlattr* attribute) noexcept;

/// The attributes of a message. @return false: it is none of the family's.
[[nodiscard]] bool nl_attributes(const ::nlmsghdr* message, ::nlattr*& first, int& length) noexcept;

/// How a failure is told.
struct NlAttempt {
    const char* call;    ///< "DAPX_GENL_CMD_XRCD_GET"
    const char* attempt; ///< "cannot list the XRC domains"
};

[[nodiscard]] Error explain_libnl(int error, const NlAttempt& attempt) noexcept;
[[nodiscard]] Error explain_not_understood(const NlAttempt& attempt) noexcept;

struct NlFree {
    void operator()(::nl_sock* socket) const noexcept;
};

/// A socket, and the number of the module's family.
struct NlFamily {
    std::unique_ptr<::nl_sock, NlFree> socket;
    int number;
};

[[nodiscard]] Result<NlFamily> nl_open(const NlAttempt& attempt) noexcept;

/// What a dump is asked with.
struct NlDump {
    std::uint8_t command;
    NlAttempt attempt;
    std::function<void()> begin;                    ///< forget what was told: it comes anew
    std::function<bool(const ::nlmsghdr*)> message; ///< false: not to be understood
};

[[nodiscard]] Result<void> nl_dump(const NlDump& dump) noexcept;

/// Adds what one message tells: a domain, or more of one that is there already.
/// @return false: it is not to be understood, and @p domains is as it was.
[[nodiscard]] bool add_xrc_domain(std::vector<XrcDomainInfo>& domains,
                                  const ::nlmsghdr* message) noexcept;

/// The same, of a message that tells one thing.
[[nodiscard]] bool add_context(std::vector<ContextEntry>& contexts,
                               const ::nlmsghdr* message) noexcept;
[[nodiscard]] bool add_object(std::vector<ObjectEntry>& objects,
                              const ::nlmsghdr* message) noexcept;

[[nodiscard]] bool add_happening(std::vector<Happening>& happenings,
                                 const ::nlmsghdr* message) noexcept;

} // namespace dapx::detail
