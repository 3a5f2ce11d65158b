// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// dapxctl: what dapx can do here.
#include "common.hpp"
#include "measure.hpp"
#include "xrcd.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace {

using nlohmann::json;

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
    return names;
}

int info(bool as_json)
{
    const auto context = dapx::Context::open_node();
    if (!context && as_json)
        fmt::print("{}\n", json{{"module", dapx::Context::module_loaded()},
                                {"reason", context.error().message()}}
                               .dump(2));
    const dapx::ModuleInfo info = tools::must(tools::must(context).info());
    if (as_json) {
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
        fmt::print("{}\n", result.dump(2));
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
    return result;
}

std::string or_dash(const std::string& text)
{
    return text.empty() ? "-" : text;
}

int devices(bool as_json)
{
    const dapx::DeviceList list = dapx::DeviceList::read();
    if (as_json) {
        json result = json::array();
        for (const dapx::DeviceInfo& device : list)
            result.push_back(device_json(device));
        fmt::print("{}\n", result.dump(2));
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

int xrcd(bool as_json)
{
    const auto domains = tools::must(dapx::list_xrc_domains());
    if (as_json)
        // Paths and names are bytes, and JSON is UTF-8.
        fmt::print("{}\n",
                   tools::xrcd_json(domains).dump(2, ' ', false, json::error_handler_t::replace));
    else
        fmt::print("{}", tools::xrcd_text(domains));
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app("Shows what dapx can do on this machine.", "dapxctl");
    app.set_version_flag("--version", "dapxctl " DAPX_VERSION);
    app.require_subcommand(1);
    bool as_json = false;
    auto* info_command = app.add_subcommand("info", "Whether the module is there, and its limits");
    info_command->add_flag("-j,--json", as_json, "Print JSON");
    auto* devices_command = app.add_subcommand("devices", "RDMA devices, and which dapx can use");
    devices_command->add_flag("-j,--json", as_json, "Print JSON");
    auto* xrcd_command = app.add_subcommand("xrcd", "XRC domains, and what is in them");
    xrcd_command->add_flag("-j,--json", as_json, "Print JSON");
    xrcd_command->add_subcommand("show", "The same: all of them")
        ->add_flag("-j,--json", as_json, "Print JSON");
    return tools::run(app, argc, argv, [&] {
        if (xrcd_command->parsed())
            return xrcd(as_json);
        return info_command->parsed() ? info(as_json) : devices(as_json);
    });
}
