// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/dapx.h>
#include <dapx/xrc_domain_list.hpp>

#include "explain.hpp"
#include "netlink.hpp"
#include "sysfs.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

namespace dapx {

namespace {

constexpr const char* call = "DAPX_GENL_CMD_XRCD_GET";
constexpr const char* attempt = "cannot list the XRC domains";

/// How often to begin anew when something came or went meanwhile.
constexpr int attempts = 5;
/// For one answer of the kernel's; it fills what it is given.
constexpr std::size_t answer_size = 32768;

template <std::size_t N> using Table = std::array<::nlattr*, N>;

using DomainTable = Table<DAPX_XRCD_ATTR_QP + 1>;
using OpenTable = Table<DAPX_XRCD_OPEN_NAME + 1>;
using SrqTable = Table<DAPX_XRCD_SRQ_PID + 1>;
using QpTable = Table<DAPX_XRCD_QP_NOT_READY + 1>;

constexpr ::nla_policy of_type(std::uint16_t type) noexcept
{
    return {.type = type, .minlen = 0, .maxlen = 0};
}

template <class T> using PolicyFor = std::array<::nla_policy, std::tuple_size_v<T>>;

constexpr auto domain_policy = [] {
    PolicyFor<DomainTable> policy{};
    policy[DAPX_XRCD_ATTR_ID] = of_type(NLA_U32);
    policy[DAPX_XRCD_ATTR_DEVICE] = of_type(NLA_STRING);
    policy[DAPX_XRCD_ATTR_PATH] = of_type(NLA_STRING);
    policy[DAPX_XRCD_ATTR_PARTIAL] = of_type(NLA_FLAG);
    policy[DAPX_XRCD_ATTR_OPENS] = of_type(NLA_U32);
    policy[DAPX_XRCD_ATTR_SRQS] = of_type(NLA_U32);
    policy[DAPX_XRCD_ATTR_QPS] = of_type(NLA_U32);
    policy[DAPX_XRCD_ATTR_OPEN] = of_type(NLA_NESTED);
    policy[DAPX_XRCD_ATTR_SRQ] = of_type(NLA_NESTED);
    policy[DAPX_XRCD_ATTR_QP] = of_type(NLA_NESTED);
    return policy;
}();

constexpr auto open_policy = [] {
    PolicyFor<OpenTable> policy{};
    policy[DAPX_XRCD_OPEN_PID] = of_type(NLA_U32);
    policy[DAPX_XRCD_OPEN_NAME] = of_type(NLA_STRING);
    return policy;
}();

constexpr auto srq_policy = [] {
    PolicyFor<SrqTable> policy{};
    policy[DAPX_XRCD_SRQ_NUMBER] = of_type(NLA_U32);
    policy[DAPX_XRCD_SRQ_PID] = of_type(NLA_U32);
    return policy;
}();

constexpr auto qp_policy = [] {
    PolicyFor<QpTable> policy{};
    policy[DAPX_XRCD_QP_NUMBER] = of_type(NLA_U32);
    policy[DAPX_XRCD_QP_STATE] = of_type(NLA_U32);
    policy[DAPX_XRCD_QP_REGISTRATIONS] = of_type(NLA_U32);
    policy[DAPX_XRCD_QP_MESSAGES] = of_type(NLA_U64);
    policy[DAPX_XRCD_QP_NOT_READY] = of_type(NLA_U64);
    return policy;
}();

template <std::size_t N>
bool parse(Table<N>& table, ::nlattr* first, int length,
           const std::array<::nla_policy, N>& policy) noexcept
{
    return ::nla_parse(table.data(), static_cast<int>(N - 1), first, length, policy.data()) == 0;
}

template <std::size_t N>
bool parse_nested(Table<N>& table, ::nlattr* nest,
                  const std::array<::nla_policy, N>& policy) noexcept
{
    return parse(table, static_cast<::nlattr*>(::nla_data(nest)), ::nla_len(nest), policy);
}

std::uint32_t number(const ::nlattr* attribute) noexcept
{
    return attribute == nullptr ? 0 : ::nla_get_u32(attribute);
}

std::uint64_t large_number(const ::nlattr* attribute) noexcept
{
    return attribute == nullptr ? 0 : ::nla_get_u64(attribute);
}

/// With or without a zero behind it.
std::string text(const ::nlattr* attribute) noexcept
{
    if (attribute == nullptr)
        return {};
    const auto* data = static_cast<const char*>(::nla_data(attribute));
    return {data, ::strnlen(data, static_cast<std::size_t>(::nla_len(attribute)))};
}

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
            if (!parse_nested(table, nest, open_policy))
                return false;
            add_process(domain, {.pid = number(table[DAPX_XRCD_OPEN_PID]),
                                 .name = text(table[DAPX_XRCD_OPEN_NAME]),
                                 .opens = 1});
            break;
        }
        case DAPX_XRCD_ATTR_SRQ: {
            SrqTable table;
            if (!parse_nested(table, nest, srq_policy))
                return false;
            domain.srqs.push_back({.number = number(table[DAPX_XRCD_SRQ_NUMBER]),
                                   .pid = number(table[DAPX_XRCD_SRQ_PID])});
            break;
        }
        case DAPX_XRCD_ATTR_QP: {
            QpTable table;
            if (!parse_nested(table, nest, qp_policy))
                return false;
            domain.qps.push_back({
                .number = number(table[DAPX_XRCD_QP_NUMBER]),
                .state = number(table[DAPX_XRCD_QP_STATE]),
                .registrations = number(table[DAPX_XRCD_QP_REGISTRATIONS]),
                .messages = large_number(table[DAPX_XRCD_QP_MESSAGES]),
                .not_ready = large_number(table[DAPX_XRCD_QP_NOT_READY]),
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
    domain.device = text(table[DAPX_XRCD_ATTR_DEVICE]);
    if (table[DAPX_XRCD_ATTR_PATH] != nullptr)
        domain.path = text(table[DAPX_XRCD_ATTR_PATH]);
    domain.partial = table[DAPX_XRCD_ATTR_PARTIAL] != nullptr;
    domain.total_opens = number(table[DAPX_XRCD_ATTR_OPENS]);
    domain.total_srqs = number(table[DAPX_XRCD_ATTR_SRQS]);
    domain.total_qps = number(table[DAPX_XRCD_ATTR_QPS]);
}

struct Dump {
    std::vector<XrcDomainInfo> domains;
    bool understood = true;
};

int take(::nl_msg* message, void* context) noexcept
{
    auto& dump = *static_cast<Dump*>(context);
    dump.understood = detail::add_xrc_domain(dump.domains, ::nlmsg_hdr(message)) && dump.understood;
    return NL_OK;
}

struct Free {
    void operator()(::nl_sock* socket) const noexcept { ::nl_socket_free(socket); }
};

Error explain_libnl(int error) noexcept
{
    if (error == -NLE_NOMEM)
        return detail::explain(ENOMEM, call, attempt);
    return Error(EPROTO, call, std::string(attempt) + ": netlink: " + ::nl_geterror(error));
}

Error explain_no_family() noexcept
{
    if (!detail::module_loaded())
        return Error(ENOENT, call,
                     std::string(attempt) +
                         ": the dapx module is not loaded; run 'modprobe dapx' as root");
    return Error(EOPNOTSUPP, call,
                 std::string(attempt) + ": the dapx module that is loaded is older than this "
                                        "library and lacks what was asked for; load a newer one");
}

/// 0 or one of libnl's errors.
int dump_once(::nl_sock* socket, int family, Dump& dump) noexcept
{
    dump = {};
    ::nl_socket_modify_cb(socket, NL_CB_VALID, NL_CB_CUSTOM, take, &dump);
    const int sent =
        ::genl_send_simple(socket, family, DAPX_GENL_CMD_XRCD_GET, DAPX_GENL_VERSION, NLM_F_DUMP);
    return sent < 0 ? sent : ::nl_recvmsgs_default(socket);
}

} // namespace

namespace detail {

bool add_xrc_domain(std::vector<XrcDomainInfo>& domains, const ::nlmsghdr* message) noexcept
{
    auto* header = const_cast<::nlmsghdr*>(message);
    if (::genlmsg_valid_hdr(header, 0) == 0)
        return false;
    auto* genl = static_cast<::genlmsghdr*>(::nlmsg_data(header));
    ::nlattr* first = ::genlmsg_attrdata(genl, 0);
    const int length = ::genlmsg_attrlen(genl, 0);
    DomainTable table;
    if (!parse(table, first, length, domain_policy) || table[DAPX_XRCD_ATTR_ID] == nullptr)
        return false;

    XrcDomainInfo told;
    told.id = number(table[DAPX_XRCD_ATTR_ID]);
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
    const std::unique_ptr<::nl_sock, Free> socket(::nl_socket_alloc());
    if (!socket)
        return std::unexpected(detail::explain(ENOMEM, call, attempt));
    if (const int error = ::genl_connect(socket.get()); error < 0)
        return std::unexpected(explain_libnl(error));
    const int family = ::genl_ctrl_resolve(socket.get(), DAPX_GENL_NAME);
    if (family == -NLE_OBJ_NOTFOUND)
        return std::unexpected(explain_no_family());
    if (family < 0)
        return std::unexpected(explain_libnl(family));
    ::nl_socket_set_msg_buf_size(socket.get(), answer_size);

    Dump dump;
    int error = -NLE_DUMP_INTR;
    for (int i = 0; i < attempts && error == -NLE_DUMP_INTR; ++i)
        error = dump_once(socket.get(), family, dump);
    if (error < 0 && error != -NLE_DUMP_INTR)
        return std::unexpected(explain_libnl(error));
    if (!dump.understood)
        return std::unexpected(Error(EPROTO, call,
                                     std::string(attempt) +
                                         ": the dapx module told what this library cannot read; "
                                         "use a module and a library of one version"));
    return std::move(dump.domains);
}

} // namespace dapx
