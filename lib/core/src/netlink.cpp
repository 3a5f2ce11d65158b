// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "netlink.hpp"

#include <dapx/dapx.h>

#include "explain.hpp"
#include "sysfs.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

namespace dapx::detail {

namespace {

/// How often to begin anew when something came or went meanwhile.
constexpr int attempts = 5;
/// For one answer of the kernel's; it fills what it is given.
constexpr std::size_t answer_size = 32768;

struct Answers {
    const NlDump& dump;
    bool understood = true;
};

int take(::nl_msg* message, void* context) noexcept
{
    auto& answers = *static_cast<Answers*>(context);
    answers.understood = answers.dump.message(::nlmsg_hdr(message)) && answers.understood;
    return NL_OK;
}

Error explain_older(const NlAttempt& attempt) noexcept
{
    return Error(EOPNOTSUPP, attempt.call,
                 std::string(attempt.attempt) +
                     ": the dapx module that is loaded is older than this library and lacks what "
                     "was asked for; load a newer one");
}

Error explain_no_family(const NlAttempt& attempt) noexcept
{
    if (!module_loaded())
        return Error(ENOENT, attempt.call,
                     std::string(attempt.attempt) +
                         ": the dapx module is not loaded; run 'modprobe dapx' as root");
    return explain_older(attempt);
}

/// 0 or one of libnl's errors.
int dump_once(::nl_sock* socket, int family, Answers& answers) noexcept
{
    answers.dump.begin();
    answers.understood = true;
    ::nl_socket_modify_cb(socket, NL_CB_VALID, NL_CB_CUSTOM, take, &answers);
    const int sent =
        ::genl_send_simple(socket, family, answers.dump.command, DAPX_GENL_VERSION, NLM_F_DUMP);
    return sent < 0 ? sent : ::nl_recvmsgs_default(socket);
}

} // namespace

std::uint32_t nl_number(const ::nlattr* attribute) noexcept
{
    return attribute == nullptr ? 0 : ::nla_get_u32(attribute);
}

std::uint64_t nl_large_number(const ::nlattr* attribute) noexcept
{
    return attribute == nullptr ? 0 : ::nla_get_u64(attribute);
}

/// With or without a zero behind it.
std::string nl_text(const ::nlattr* attribute) noexcept
{
    if (attribute == nullptr)
        return {};
    const auto* data = static_cast<const char*>(::nla_data(attribute));
    return {data, ::strnlen(data, static_cast<std::size_t>(::nla_len(attribute)))};
}

bool nl_attributes(const ::nlmsghdr* message, ::nlattr*& first, int& length) noexcept
{
    auto* header = const_cast<::nlmsghdr*>(message);
    if (::genlmsg_valid_hdr(header, 0) == 0)
        return false;
    auto* genl = static_cast<::genlmsghdr*>(::nlmsg_data(header));
    first = ::genlmsg_attrdata(genl, 0);
    length = ::genlmsg_attrlen(genl, 0);
    return true;
}

void NlFree::operator()(::nl_sock* socket) const noexcept
{
    ::nl_socket_free(socket);
}

Error explain_libnl(int error, const NlAttempt& attempt) noexcept
{
    if (error == -NLE_NOMEM)
        return explain(ENOMEM, attempt.call, attempt.attempt);
    if (error == -NLE_OPNOTSUPP)
        return explain_older(attempt);
    return Error(EPROTO, attempt.call,
                 std::string(attempt.attempt) + ": netlink: " + ::nl_geterror(error));
}

Result<NlFamily> nl_open(const NlAttempt& attempt) noexcept
{
    NlFamily family{.socket = std::unique_ptr<::nl_sock, NlFree>(::nl_socket_alloc()), .number = 0};
    if (!family.socket)
        return std::unexpected(explain(ENOMEM, attempt.call, attempt.attempt));
    if (const int error = ::genl_connect(family.socket.get()); error < 0)
        return std::unexpected(explain_libnl(error, attempt));
    family.number = ::genl_ctrl_resolve(family.socket.get(), DAPX_GENL_NAME);
    if (family.number == -NLE_OBJ_NOTFOUND)
        return std::unexpected(explain_no_family(attempt));
    if (family.number < 0)
        return std::unexpected(explain_libnl(family.number, attempt));
    return family;
}

Result<void> nl_dump(const NlDump& dump) noexcept
{
    const auto family = nl_open(dump.attempt);
    if (!family)
        return std::unexpected(family.error());
    ::nl_sock* socket = family->socket.get();
    ::nl_socket_set_msg_buf_size(socket, answer_size);

    Answers answers{.dump = dump};
    int error = -NLE_DUMP_INTR;
    for (int i = 0; i < attempts && error == -NLE_DUMP_INTR; ++i)
        error = dump_once(socket, family->number, answers);
    if (error < 0 && error != -NLE_DUMP_INTR)
        return std::unexpected(explain_libnl(error, dump.attempt));
    if (!answers.understood)
        return std::unexpected(explain_not_understood(dump.attempt));
    return {};
}

Error explain_not_understood(const NlAttempt& attempt) noexcept
{
    return Error(EPROTO, attempt.call,
                 std::string(attempt.attempt) +
                     ": the dapx module told what this library cannot read; use a module and a "
                     "library of one version");
}

} // namespace dapx::detail
