// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "xrcd.hpp"

#include "measure.hpp"
#include "privilege.hpp"

#include <dapx/qp.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace tools {

namespace {

using nlohmann::json;
using Domain = dapx::XrcDomainInfo;
using Rows = std::vector<std::vector<std::string>>;

/// Length of the UTF-8 sequence that begins at @p at; 0: none does.
std::size_t sequence(const std::string& text, std::size_t at)
{
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(at);
    const std::size_t length = first < 0x80                    ? 1
                               : first >= 0xc2 && first < 0xe0 ? 2
                               : first >= 0xe0 && first < 0xf0 ? 3
                               : first >= 0xf0 && first < 0xf5 ? 4
                                                               : 0;
    if (length == 0 || at + length > text.size())
        return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(at + i) & 0xc0) != 0x80)
            return 0;
    // U+0080 to U+009F control a terminal, too.
    return length == 2 && first == 0xc2 && byte(at + 1) < 0xa0 ? 0 : length;
}

std::string name_of(const Domain& domain, std::uint32_t pid)
{
    const auto process = std::ranges::find(domain.processes, pid, &Domain::Process::pid);
    return process == domain.processes.end() || process->name.empty() ? "-"
                                                                      : printable(process->name);
}

std::string path_text(const Domain& domain)
{
    if (!domain.path)
        return "(no file)";
    return domain.path->empty() ? "(path not visible)" : printable(*domain.path);
}

struct Hidden {
    std::uint32_t opens = 0;
    std::uint32_t srqs = 0;
    std::uint32_t qps = 0;
};

/// What there is more than what is told: it may have changed since it was counted.
Hidden hidden(const Domain& domain)
{
    const auto more = [](std::uint32_t total, std::uint64_t shown) {
        return shown < total ? total - static_cast<std::uint32_t>(shown) : 0;
    };
    std::uint64_t opens = 0;
    for (const Domain::Process& process : domain.processes)
        opens += process.opens;
    if (!domain.partial)
        return {};
    return {.opens = more(domain.total_opens, opens),
            .srqs = more(domain.total_srqs, domain.srqs.size()),
            .qps = more(domain.total_qps, domain.qps.size())};
}

std::string counted(std::uint32_t count, const char* what)
{
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// Set in under its domain.
std::string indented(const Rows& rows, const std::vector<std::size_t>& right)
{
    if (rows.size() == 1)
        return {};
    std::string text;
    std::string line;
    for (const char c : table_text(rows, right)) {
        line += c;
        if (c == '\n') {
            text += "  " + line;
            line.clear();
        }
    }
    return text;
}

std::string domain_text(const Domain& domain)
{
    std::string text = fmt::format("{} on {}\n", path_text(domain), domain.device);
    Rows rows = {{"PROCESS", "OPENS", "NAME"}};
    for (const Domain::Process& process : domain.processes)
        rows.push_back({pid_text(process.pid), fmt::format("{}", process.opens),
                        process.name.empty() ? "-" : printable(process.name)});
    text += indented(rows, {0, 1});
    rows = {{"SRQ", "OWNER", "NAME"}};
    for (const Domain::Srq& srq : domain.srqs)
        rows.push_back(
            {fmt::format("{}", srq.number), pid_text(srq.pid), name_of(domain, srq.pid)});
    text += indented(rows, {0, 1});
    rows = {{"QP", "STATE", "REGISTRATIONS", "MESSAGES", "NOT READY"}};
    for (const Domain::Qp& qp : domain.qps)
        rows.push_back({fmt::format("{}", qp.number), describe(qp.state),
                        fmt::format("{}", qp.registrations), fmt::format("{}", qp.messages),
                        fmt::format("{}", qp.not_ready)});
    text += indented(rows, {0, 2, 3, 4});
    if (domain.partial) {
        const Hidden more = hidden(domain);
        text += fmt::format("  hidden, of other users: {}, {}, {}; shown with CAP_NET_ADMIN\n",
                            counted(more.opens, "open"), counted(more.srqs, "SRQ"),
                            counted(more.qps, "QP"));
    }
    return text;
}

} // namespace

std::string pid_text(std::uint32_t pid)
{
    return pid == 0 ? "-" : fmt::format("{}", pid);
}

std::string printable(const std::string& name)
{
    std::string text;
    for (std::size_t i = 0; i < name.size();) {
        const std::size_t length = sequence(name, i);
        const auto c = static_cast<unsigned char>(name[i]);
        if (length == 0 || c < 0x20 || c == 0x7f) {
            text += fmt::format("\\x{:02x}", c);
            ++i;
            continue;
        }
        text += name.substr(i, length);
        i += length;
    }
    return text;
}

std::string xrcd_text(const std::vector<Domain>& domains, bool all)
{
    if (domains.empty())
        return none_text("open XRC domain", all);
    std::string text;
    for (const Domain& domain : domains)
        text += (text.empty() ? "" : "\n") + domain_text(domain);
    return text;
}

json xrcd_json(const std::vector<Domain>& domains)
{
    json result = json::array();
    for (const Domain& domain : domains) {
        json processes = json::array();
        for (const Domain::Process& process : domain.processes)
            processes.push_back(
                {{"pid", process.pid}, {"name", process.name}, {"opens", process.opens}});
        json srqs = json::array();
        for (const Domain::Srq& srq : domain.srqs)
            srqs.push_back({{"number", srq.number}, {"pid", srq.pid}});
        json qps = json::array();
        for (const Domain::Qp& qp : domain.qps)
            qps.push_back({{"number", qp.number},
                           {"state", describe(qp.state)},
                           {"registrations", qp.registrations},
                           {"messages", qp.messages},
                           {"not_ready", qp.not_ready}});
        const Hidden more = hidden(domain);
        json entry = {{"id", domain.id},
                      {"device", domain.device},
                      {"path", nullptr},
                      {"processes", processes},
                      {"srqs", srqs},
                      {"qps", qps},
                      {"partial", domain.partial},
                      {"hidden", {{"opens", more.opens}, {"srqs", more.srqs}, {"qps", more.qps}}}};
        if (domain.path)
            entry["path"] = *domain.path;
        result.push_back(entry);
    }
    return result;
}

} // namespace tools
