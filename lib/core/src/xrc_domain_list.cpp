// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/dapx.h>
#include <dapx/xrc_domain_list.hpp>

#include "netlink.hpp"

#include <algorithm>
#include <utility>

#include <netlink/attr.h>

namespace dapx {

namespace {

using detail::NlPolicyFor;
using detail::NlTable;

using DomainTable = NlTable<DAPX_XRCD_ATTR_QP + 1>;
using OpenTable = NlTable<DAPX_XRCD_OPEN_NAME + 1>;
using SrqTable = NlTable<DAPX_XRCD_SRQ_PID + 1>;
using QpTable = NlTable<DAPX_XRCD_QP_NOT_READY + 1>;

constexpr auto domain_policy = [] {
    NlPolicyFor<DomainTable> policy{};
    policy[DAPX_XRCD_ATTR_ID] = detail::nl_type(NLA_U32);
    policy[DAPX_XRCD_ATTR_DEVICE] = detail::nl_type(NLA_STRING);
    policy[DAPX_XRCD_ATTR_PATH] = detail::nl_type(NLA_STRING);
    policy[DAPX_XRCD_ATTR_PARTIAL] = detail::nl_type(NLA_FLAG);
    policy[DAPX_XRCD_ATTR_OPENS] = detail::nl_type(NLA_U32);
    policy[DAPX_XRCD_ATTR_SRQS] = detail::nl_type(NLA_U32);
    policy[DAPX_XRCD_ATTR_QPS] = detail::nl_type(NLA_U32);
    policy[DAPX_XRCD_ATTR_OPEN] = detail::nl_type(NLA_NESTED);
    policy[DAPX_XRCD_ATTR_SRQ] = detail::nl_type(NLA_NESTED);
    policy[DAPX_XRCD_ATTR_QP] = detail::nl_type(NLA_NESTED);
    return policy;
}();

constexpr auto open_policy = [] {
    NlPolicyFor<OpenTable> policy{};
    policy[DAPX_XRCD_OPEN_PID] = detail::nl_type(NLA_U32);
    policy[DAPX_XRCD_OPEN_NAME] = detail::nl_type(NLA_STRING);
    return policy;
}();

constexpr auto srq_policy = [] {
    NlPolicyFor<SrqTable> policy{};
    policy[DAPX_XRCD_SRQ_NUMBER] = detail::nl_type(NLA_U32);
    policy[DAPX_XRCD_SRQ_PID] = detail::nl_type(NLA_U32);
    return policy;
}();

constexpr auto qp_policy = [] {
    NlPolicyFor<QpTable> policy{};
    policy[DAPX_XRCD_QP_NUMBER] = detail::nl_type(NLA_U32);
    policy[DAPX_XRCD_QP_STATE] = detail::nl_type(NLA_U32);
    policy[DAPX_XRCD_QP_REGISTRATIONS] = detail::nl_type(NLA_U32);
    policy[DAPX_XRCD_QP_MESSAGES] = detail::nl_type(NLA_U64);
    policy[DAPX_XRCD_QP_NOT_READY] = detail::nl_type(NLA_U64);
    return policy;
}();

void add_process(XrcDomainInfo& domain, XrcDomainInfo::Process process) noexcept
{
    const auto known =
        std::ranges::find(domain.processes, process.pid, &XrcDomainInfo::Process::pid);
    if (known != domain.processes.end())
        known->opens += process.opens;
    else
        domain.processes.push_back(std::move(process));
}

bool add_parts(XrcDomainInfo& domain, ::nlattr* first, int length) noexcept
{
    int left = length;
    for (::nlattr* nest = first; ::nla_ok(nest, left) != 0; nest = ::nla_next(nest, &left)) {
        switch (::nla_type(nest)) {
        case DAPX_XRCD_ATTR_OPEN: {
            OpenTable table;
            if (!detail::nl_parse_nested(table, nest, open_policy))
                return false;
            add_process(domain, {.pid = detail::nl_number(table[DAPX_XRCD_OPEN_PID]),
                                 .name = detail::nl_text(table[DAPX_XRCD_OPEN_NAME]),
                                 .opens = 1});
            break;
        }
        case DAPX_XRCD_ATTR_SRQ: {
            SrqTable table;
            if (!detail::nl_parse_nested(table, nest, srq_policy))
                return false;
            domain.srqs.push_back({.number = detail::nl_number(table[DAPX_XRCD_SRQ_NUMBER]),
                                   .pid = detail::nl_number(table[DAPX_XRCD_SRQ_PID])});
            break;
        }
        case DAPX_XRCD_ATTR_QP: {
            QpTable table;
            if (!detail::nl_parse_nested(table, nest, qp_policy))
                return false;
            domain.qps.push_back({
                .number = detail::nl_number(table[DAPX_XRCD_QP_NUMBER]),
                .state = QpState{detail::nl_number(table[DAPX_XRCD_QP_STATE])},
                .registrations = detail::nl_number(table[DAPX_XRCD_QP_REGISTRATIONS]),
                .messages = detail::nl_large_number(table[DAPX_XRCD_QP_MESSAGES]),
                .not_ready = detail::nl_large_number(table[DAPX_XRCD_QP_NOT_READY]),
            });
            break;
        }
        default:
            break;
        }
    }
    return true;
}

void add_head(XrcDomainInfo& domain, const DomainTable& table) noexcept
{
    domain.device = detail::nl_text(table[DAPX_XRCD_ATTR_DEVICE]);
    if (table[DAPX_XRCD_ATTR_PATH] != nullptr)
        domain.path = detail::nl_text(table[DAPX_XRCD_ATTR_PATH]);
    domain.partial = table[DAPX_XRCD_ATTR_PARTIAL] != nullptr;
    domain.total_opens = detail::nl_number(table[DAPX_XRCD_ATTR_OPENS]);
    domain.total_srqs = detail::nl_number(table[DAPX_XRCD_ATTR_SRQS]);
    domain.total_qps = detail::nl_number(table[DAPX_XRCD_ATTR_QPS]);
}

} // namespace

namespace detail {

bool add_xrc_domain(std::vector<XrcDomainInfo>& domains, const ::nlmsghdr* message) noexcept
{
    ::nlattr* first = nullptr;
    int length = 0;
    DomainTable table;
    if (!nl_attributes(message, first, length) || !nl_parse(table, first, length, domain_policy) ||
        table[DAPX_XRCD_ATTR_ID] == nullptr)
        return false;

    XrcDomainInfo told;
    told.id = detail::nl_number(table[DAPX_XRCD_ATTR_ID]);
    add_head(told, table);
    if (!add_parts(told, first, length))
        return false;
    // The messages of a domain follow each other.
    if (domains.empty() || domains.back().id != told.id) {
        domains.push_back(std::move(told));
        return true;
    }
    XrcDomainInfo& domain = domains.back();
    for (XrcDomainInfo::Process& process : told.processes)
        add_process(domain, std::move(process));
    domain.srqs.insert(domain.srqs.end(), told.srqs.begin(), told.srqs.end());
    domain.qps.insert(domain.qps.end(), told.qps.begin(), told.qps.end());
    return true;
}

} // namespace detail

Result<std::vector<XrcDomainInfo>> list_xrc_domains() noexcept
{
    std::vector<XrcDomainInfo> domains;
    const auto done = detail::nl_dump(
        {.command = DAPX_GENL_CMD_XRCD_GET,
         .attempt = {.call = "DAPX_GENL_CMD_XRCD_GET", .attempt = "cannot list the XRC domains"},
         .begin = [&domains] { domains.clear(); },
         .message =
             [&domains](const ::nlmsghdr* message) {
                 return detail::add_xrc_domain(domains, message);
             }});
    if (!done)
        return std::unexpected(done.error());
    return domains;
}

} // namespace dapx
