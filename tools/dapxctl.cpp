// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// dapxctl: what dapx can do here.
#include "command_line.hpp"
#include "common.hpp"
#include "dat_conf.hpp"
#include "doctor.hpp"
#include "files.hpp"
#include "happenings.hpp"
#include "json_output.hpp"
#include "measure.hpp"
#include "objects.hpp"
#include "privilege.hpp"
#include "rxe.hpp"
#include "xrcd.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <optional>
#include <set>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace {

using nlohmann::json;

void print_json(const json& value, const tools::JsonStyle& style)
{
    fmt::print("{}", tools::json_text(value, style));
}

std::vector<std::string> feature_names(const dapx::ModuleInfo& info)
{
    std::vector<std::string> names;
    if (info.rc)
        names.emplace_back("rc");
    if (info.srq)
        names.emplace_back("srq");
    if (info.rmr)
        names.emplace_back("rmr");
    if (info.xrc)
        names.emplace_back("xrc");
    if (info.quiet)
        names.emplace_back("quiet");
    return names;
}

int info(const tools::JsonStyle& style)
{
    const auto context = dapx::Context::open_node();
    if (!context && style.json)
        print_json(
            {{"module", dapx::Context::module_loaded()}, {"reason", context.error().message()}},
            style);
    const dapx::ModuleInfo info = tools::must(tools::must(context).info());
    if (style.json) {
        const json result = {{"module", true},
                             {"node", dapx::Context::default_node},
                             {"features", feature_names(info)},
                             {"feature_bits", info.features},
                             {"limits",
                              {{"objects_per_context", info.max_objects},
                               {"objects_per_user", info.max_user_objects},
                               {"ring_depth", info.max_ring_depth},
                               {"segments", info.max_sge},
                               {"inline_bytes", info.max_inline},
                               {"listen_backlog", info.max_backlog}}}};
        print_json(result, style);
        return 0;
    }
    std::string features;
    for (const std::string& name : feature_names(info))
        features += (features.empty() ? "" : ", ") + name;
    fmt::print("{}", tools::table_text({
                         {"module", "loaded"},
                         {"node", dapx::Context::default_node},
                         {"features", features},
                         {"objects per context", fmt::format("{}", info.max_objects)},
                         {"objects per user", fmt::format("{}", info.max_user_objects)},
                         {"entries of a ring", fmt::format("{}", info.max_ring_depth)},
                         {"segments of a request", fmt::format("{}", info.max_sge)},
                         {"bytes of inline data", fmt::format("{}", info.max_inline)},
                         {"requests on a listener", fmt::format("{}", info.max_backlog)},
                     }));
    return 0;
}

std::vector<std::string> capability_names(dapx::DeviceCap caps)
{
    static constexpr std::pair<dapx::DeviceCap, const char*> names[] = {
        {dapx::DeviceCap::atomics, "atomics"},
        {dapx::DeviceCap::srq, "srq"},
        {dapx::DeviceCap::iwarp, "iwarp"},
        {dapx::DeviceCap::imm, "immediate_data"},
        {dapx::DeviceCap::qp_exchange, "qp_exchange"},
        {dapx::DeviceCap::solicited, "solicited"},
        {dapx::DeviceCap::timewait_exit, "timewait_exit"},
    };
    std::vector<std::string> result;
    for (const auto& [cap, name] : names)
        if (dapx::has(caps, cap))
            result.emplace_back(name);
    return result;
}

/// null where the caller may not use it.
json limits_json(const std::string& device)
{
    const auto context = dapx::Context::open(device);
    const auto attributes = context ? context->query_device() : std::unexpected(context.error());
    if (!attributes)
        return nullptr;
    return {{"capabilities", capability_names(attributes->caps)},
            {"region_bytes", attributes->max_mr_size},
            {"endpoints", attributes->max_ep},
            {"send_depth", attributes->max_send_depth},
            {"recv_depth", attributes->max_recv_depth},
            {"srq_depth", attributes->max_srq_depth},
            {"send_segments", attributes->max_send_sge},
            {"recv_segments", attributes->max_recv_sge},
            {"inline_bytes", attributes->max_inline},
            {"reads_as_initiator", attributes->max_rd_atomic},
            {"reads_as_responder", attributes->max_dest_rd_atomic},
            {"message_bytes", attributes->max_msg_size},
            {"mtu", attributes->active_mtu},
            {"private_data",
             {{"connect", attributes->max_connect_data},
              {"accept", attributes->max_accept_data},
              {"reject", attributes->max_reject_data},
              {"xrc_connect", attributes->max_xrc_connect_data},
              {"xrc_accept", attributes->max_xrc_accept_data}}}};
}

json device_json(const dapx::DeviceInfo& device)
{
    json ports = json::array();
    for (const dapx::PortInfo& port : device.ports)
        ports.push_back({{"port", port.number},
                         {"state", port.state},
                         {"link_layer", port.link_layer},
                         {"netdev", port.netdev}});
    json addresses = json::array();
    for (const dapx::Address& address : device.addresses)
        addresses.push_back(address.host());
    json result = {{"name", device.name},           {"driver", device.driver},
                   {"transport", device.transport}, {"ports", ports},
                   {"addresses", addresses},        {"usable", device.usable}};
    if (!device.usable)
        result["reason"] = device.reason;
    else
        result["limits"] = limits_json(device.name);
    return result;
}

std::string or_dash(const std::string& text)
{
    return text.empty() ? "-" : text;
}

int devices(const tools::JsonStyle& style)
{
    const dapx::DeviceList list = dapx::DeviceList::read();
    if (style.json) {
        json result = json::array();
        for (const dapx::DeviceInfo& device : list)
            result.push_back(device_json(device));
        print_json(result, style);
        return 0;
    }
    if (list.devices().empty()) {
        // Says so, and how to make one; nothing failed.
        fmt::print("{}\n", list.only_usable().error().message());
        return 0;
    }
    std::vector<std::vector<std::string>> rows = {
        {"DEVICE", "DRIVER", "TRANSPORT", "PORT", "STATE", "NETDEV", "ADDRESSES", "DAPX"}};
    for (const dapx::DeviceInfo& device : list) {
        std::string addresses;
        for (const dapx::Address& address : device.addresses)
            addresses += (addresses.empty() ? "" : ", ") + address.host();
        std::vector<std::string> row = {device.name, or_dash(device.driver),
                                        or_dash(device.transport)};
        bool first = true;
        for (const dapx::PortInfo& port : device.ports) {
            if (!first)
                row = {"", "", ""};
            row.push_back(fmt::format("{}", port.number));
            row.push_back(or_dash(port.state));
            row.push_back(or_dash(port.netdev));
            if (first) {
                row.push_back(or_dash(addresses));
                row.push_back(device.usable ? "yes" : "no: " + device.reason);
            }
            rows.push_back(row);
            first = false;
        }
    }
    fmt::print("{}", tools::table_text(rows));
    return 0;
}

struct ShowOptions {
    std::string what = "context";
    tools::ObjectFilter filter;
    bool statistics = false;
    std::optional<double> every; ///< seconds
};

/// What there is now.
void show_once(const ShowOptions& options, const tools::JsonStyle& style)
{
    if (options.what == "context") {
        const auto contexts = tools::must(dapx::list_contexts());
        if (style.json)
            print_json(tools::contexts_json(contexts, options.filter), style);
        else
            fmt::print("{}", tools::contexts_text(contexts, options.filter, tools::sees_all()));
        return;
    }
    const auto objects = tools::must(dapx::list_objects());
    const auto type =
        options.what == "all" ? dapx::ObjectType::any : tools::object_classes.at(options.what);
    if (style.json)
        print_json(tools::objects_json(objects, type, options.filter), style);
    else
        fmt::print("{}", tools::objects_text(objects, type, options.filter, options.statistics,
                                             tools::sees_all()));
}

int show(const ShowOptions& options, const tools::JsonStyle& style)
{
    if (!options.every) {
        show_once(options, style);
        return 0;
    }
    tools::catch_interrupts();
    const bool terminal = ::isatty(STDOUT_FILENO) == 1;
    while (!tools::interrupted()) {
        if (terminal)
            fmt::print("\x1b[H\x1b[2J");
        show_once(options, style);
        if (std::fflush(stdout) != 0)
            throw tools::Failure("cannot write the output");
        // Ends early when interrupted.
        ::usleep(static_cast<::useconds_t>(*options.every * 1e6));
    }
    return 0;
}

/// What to add to CLOCK_MONOTONIC for the time of day.
std::int64_t clock_offset()
{
    const auto now = [](::clockid_t clock) {
        ::timespec time{};
        ::clock_gettime(clock, &time);
        return (time.tv_sec * 1'000'000'000LL) + time.tv_nsec;
    };
    return now(CLOCK_REALTIME) - now(CLOCK_MONOTONIC);
}

/// Events have PIDs of the first PID namespace, which has this inode.
bool in_first_pid_namespace()
{
    struct ::stat status{};
    constexpr ::ino_t first = 0xEFFFFFFC;
    return ::stat("/proc/self/ns/pid", &status) == 0 && status.st_ino == first;
}

int monitor(const tools::ObjectFilter& filter, const tools::JsonStyle& style)
{
    auto listener = tools::must(dapx::Monitor::open());
    const std::int64_t offset = clock_offset();
    const bool pids = in_first_pid_namespace();
    if (filter.pid && !pids)
        throw tools::Failure("cannot tell processes apart by --pid: events have the PIDs of the "
                             "first PID namespace; run it there, or use -d");
    tools::catch_interrupts();
    while (!tools::interrupted()) {
        const auto happenings = listener.read();
        if (!happenings && happenings.error().code() == EINTR)
            continue;
        if (!happenings && happenings.error().code() == ENOBUFS) {
            fmt::print(stderr, "dapxctl: {}\n", happenings.error().message());
            continue;
        }
        if (!happenings)
            throw tools::Failure(happenings.error().message());
        for (const dapx::Happening& happening : *happenings) {
            if (!filter.matches(happening.pid, happening.device))
                continue;
            if (style.json)
                print_json(tools::happening_json(happening, offset, pids), style);
            else
                fmt::print("{}", tools::happening_text(happening, offset, pids));
        }
        if (std::fflush(stdout) != 0)
            throw tools::Failure("cannot write the output");
    }
    return 0;
}

int xrcd(const tools::JsonStyle& style)
{
    const auto domains = tools::must(dapx::list_xrc_domains());
    if (style.json)
        print_json(tools::xrcd_json(domains), style);
    else
        fmt::print("{}", tools::xrcd_text(domains, tools::sees_all()));
    return 0;
}

int doctor(const tools::JsonStyle& style)
{
    const std::vector<tools::Check> checks = tools::diagnose(tools::gather_facts());
    if (style.json)
        print_json(tools::checks_json(checks), style);
    else
        fmt::print("{}", tools::checks_text(checks));
    return tools::broken(checks) ? tools::exit_failure : 0;
}

struct RxeOptions {
    std::string netdev;
    std::string name; ///< of "add" "": the first that is free
};

int add_rxe(const RxeOptions& options)
{
    fmt::print("{}: made on {}\n", tools::must(tools::add_rxe(options.netdev, options.name)),
               options.netdev);
    return 0;
}

int delete_rxe(const RxeOptions& options)
{
    tools::must(tools::delete_rxe(options.name));
    fmt::print("{}: deleted\n", options.name);
    return 0;
}

struct DatConfOptions {
    bool install = false;
    bool remove = false;
    std::string file = "/etc/dat.conf";
    std::string folder;
};

int dat_conf(const DatConfOptions& options, const tools::JsonStyle& style)
{
    if (options.remove) {
        const std::string text = tools::must(tools::read_file(options.file));
        const std::string rest = tools::without_dat_conf(text);
        if (rest == text) {
            fmt::print("{}: nothing of dapx is there\n", options.file);
            return 0;
        }
        tools::must(tools::replace_file(options.file, rest));
        fmt::print("{}: as it was before dapx\n", options.file);
        return 0;
    }
    const dapx::DeviceList devices = dapx::DeviceList::read();
    const auto entries = tools::dat_conf_entries(devices, options.folder);
    if (style.json) {
        json result = json::array();
        for (const tools::DatConfEntry& entry : entries)
            result.push_back({{"ia", entry.ia},
                              {"device", entry.device},
                              {"version", entry.version},
                              {"thread_safe", entry.thread_safe},
                              {"library", entry.library}});
        print_json(result, style);
        return 0;
    }
    if (entries.empty())
        (void)tools::must(devices.only_usable()); // says why there is none
    const std::string lines = tools::dat_conf_text(entries);
    if (!options.install) {
        fmt::print("{}", lines);
        return 0;
    }
    const std::string text = tools::must(tools::read_file(options.file));
    const std::string with = tools::with_dat_conf(text, lines);
    if (with != text)
        tools::must(tools::replace_file(options.file, with));
    fmt::print("{}: {} lines of dapx{}\n", options.file, entries.size(),
               with == text ? ", as before" : "");
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app("Shows what dapx can do on this machine.", "dapxctl");
    app.set_version_flag("--version", "dapxctl " DAPX_VERSION);
    app.require_subcommand(1);
    tools::JsonStyle style;
    auto* info_command = app.add_subcommand("info", "Whether the module is there, and its limits");
    tools::add_json_options(*info_command, style);
    auto* devices_command = app.add_subcommand("devices", "RDMA devices, and which dapx can use");
    tools::add_json_options(*devices_command, style);
    auto* doctor_command =
        app.add_subcommand("doctor", "What is wrong on this machine, and what to do about it");
    tools::add_json_options(*doctor_command, style);
    auto* xrcd_command = app.add_subcommand("xrcd", "XRC domains, and what is in them");
    tools::add_json_options(*xrcd_command, style);
    tools::add_json_options(*xrcd_command->add_subcommand("show", "The same: all of them"), style);
    ShowOptions show_options;
    auto* show_command =
        app.add_subcommand("show", "Contexts of processes, and their objects of one class");
    tools::add_json_options(*show_command, style);
    std::set<std::string> classes = {"context", "all"};
    for (const auto& [name, type] : tools::object_classes)
        classes.insert(name);
    show_command->add_option("class", show_options.what, "What to show")
        ->check(CLI::IsMember(classes))
        ->capture_default_str();
    show_command->add_option("--pid", show_options.filter.pid, "Only of this process");
    show_command->add_option("-d,--device", show_options.filter.device, "Only on this RDMA device");
    show_command->add_flag("-s,--statistics", show_options.statistics,
                           "What was counted since it was made, too");
    show_command
        ->add_option("-w,--watch", show_options.every, "Again every so many seconds; default 1")
        ->expected(0, 1)
        ->default_str("1")
        ->check(CLI::Range(0.1, 3600.0));
    tools::ObjectFilter monitor_filter;
    auto* monitor_command =
        app.add_subcommand("monitor", "What happens to contexts and endpoints, as it happens");
    tools::add_json_options(*monitor_command, style, "Print JSON, a line for each event");
    monitor_command->add_option("--pid", monitor_filter.pid, "Only of this process");
    monitor_command->add_option("-d,--device", monitor_filter.device, "Only on this RDMA device");
    RxeOptions rxe_options;
    auto* rxe_command = app.add_subcommand("rxe", "Make and delete rxe (RoCE) devices");
    rxe_command->require_subcommand(1);
    auto* rxe_add = rxe_command->add_subcommand("add", "Make one on a network interface");
    rxe_add->add_option("netdev", rxe_options.netdev, "The network interface")->required();
    rxe_add->add_option("name", rxe_options.name,
                        "Its name; default: the first free one of rxe0, rxe1, ...");
    auto* rxe_del = rxe_command->add_subcommand("del", "Delete one");
    rxe_del->add_option("name", rxe_options.name, "Its name")->required();
    DatConfOptions dat_options;
    auto* dat_command =
        app.add_subcommand("dat-conf", "Lines of dat.conf for DAT (uDAPL) programs, to stdout");
    tools::add_json_options(*dat_command, style);
    auto* install = dat_command->add_flag("--install", dat_options.install,
                                          "Put them into the file, instead of those there");
    dat_command->add_flag("--remove", dat_options.remove, "Take them out of the file again")
        ->excludes(install);
    dat_command->add_option("--file", dat_options.file, "The file")->capture_default_str();
    dat_command->add_option("--library-folder", dat_options.folder,
                            "Where the providers are; default: where dlopen(3) looks");
    return tools::run(app, argc, argv, [&] {
        if (dat_command->parsed())
            return dat_conf(dat_options, style);
        if (monitor_command->parsed())
            return monitor(monitor_filter, style);
        if (show_command->parsed())
            return show(show_options, style);
        if (xrcd_command->parsed())
            return xrcd(style);
        if (doctor_command->parsed())
            return doctor(style);
        if (rxe_add->parsed())
            return add_rxe(rxe_options);
        if (rxe_del->parsed())
            return delete_rxe(rxe_options);
        return info_command->parsed() ? info(style) : devices(style);
    });
}
