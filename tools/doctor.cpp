// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "doctor.hpp"

#include "measure.hpp"
#include "requirements.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>

namespace tools {

namespace {

using Checks = std::vector<Check>;

/// systemd's default, and the kernel's since 5.16.
constexpr std::uint64_t usual_locked_memory = 8ULL << 20U;
/// What is less than this was not meant.
constexpr std::uint64_t least_parameter = 64;

Check good(const std::string& name, const std::string& text)
{
    return {.name = name, .health = Health::ok, .text = text, .remedy = {}};
}

Check warning(const std::string& name, const std::string& text, const std::string& remedy)
{
    return {.name = name, .health = Health::warning, .text = text, .remedy = remedy};
}

Check error(const std::string& name, const std::string& text, const std::string& remedy)
{
    return {.name = name, .health = Health::error, .text = text, .remedy = remedy};
}

Check check_kernel(const Facts& facts)
{
    const KernelFacts& kernel = facts.kernel;
    if (!std::regex_search(kernel.release, std::regex(required_release, std::regex::extended)))
        return error("kernel", kernel.release + " is older than dapx supports",
                     "boot Linux 6.1 or later");
    if (!kernel.missing_options.empty())
        return error("kernel",
                     fmt::format("{} lacks {} (by {})", kernel.release,
                                 fmt::join(kernel.missing_options, ", "), kernel.config),
                     "boot a kernel that has it, as Debian's linux-image-amd64");
    if (!kernel.config.empty())
        return good("kernel", kernel.release + " has what dapx needs");
    if (facts.module.loaded)
        return good("kernel", kernel.release + ", whose configuration cannot be read here");
    return warning("kernel", kernel.release + ", whose configuration cannot be read here",
                   fmt::format("find out whether it has {}", required_options));
}

Check check_module(const Facts& facts)
{
    const ModuleFacts& module = facts.module;
    const std::string& release = facts.kernel.release;
    const char* const load = "run 'modprobe dapx' as root";
    if (module.loaded)
        return good("module", "loaded");
    if (!module.files.folder)
        return error(
            "module", fmt::format("not loaded, and there is no /lib/modules/{}", release),
            "in a container, run 'modprobe dapx' on its host, as root; after an upgrade of "
            "the kernel, restart the machine");
    if (module.files.file.empty() && !module.files.other_kernels.empty())
        return error("module",
                     fmt::format("not loaded: it is not installed for this kernel, {}, but for {}",
                                 release, fmt::join(module.files.other_kernels, ", ")),
                     "install this kernel's headers and run 'dkms autoinstall', or build and "
                     "install it again, as root");
    if (module.files.file.empty())
        return error("module",
                     fmt::format("not loaded: it is not installed for this kernel, {}", release),
                     "install dapx-dkms and this kernel's headers, or run 'make install'");
    if (module.ban && module.ban->by_name)
        return error("module", "not loaded: blacklisted by " + module.ban->where,
                     fmt::format("take that out, and {}", load));
    if (!module.files.indexed)
        return error("module",
                     fmt::format("not loaded: {} is not in modules.dep", module.files.file),
                     "run 'depmod; modprobe dapx' as root");
    if (module.ban)
        return error("module",
                     fmt::format("not loaded when the machine started: blacklisted by {}",
                                 module.ban->where),
                     fmt::format("take that out, and {}", load));
    if (module.must_be_signed && module.has_signature == false)
        return error("module",
                     fmt::format("not loaded: this kernel loads signed modules only, and {} has no "
                                 "signature",
                                 module.files.file),
                     "enable DKMS to sign it, and enroll its key: Documentation/packaging.rst, "
                     "'Secure Boot'");
    if (module.must_be_signed)
        return error("module", "not loaded",
                     fmt::format("{}; if its key is rejected, enroll that: "
                                 "Documentation/packaging.rst, 'Secure Boot'",
                                 load));
    return error("module", "not loaded", load);
}

Check check_version(const Facts& facts)
{
    const std::string& module = facts.module.version;
    const std::string& library =
        facts.library_version.empty() ? facts.tool_version : facts.library_version;
    if (library != facts.tool_version)
        return warning("version",
                       fmt::format("dapxctl is {}, libdapx {}", facts.tool_version, library),
                       "install both of one version, and run 'ldconfig' as root");
    if (module != library)
        return warning("version",
                       fmt::format("the module that is loaded is {}, the library {}",
                                   module.empty() ? "of no version" : module, library),
                       "install both of one version, end what 'dapxctl show' lists, and run "
                       "'rmmod dapx; modprobe dapx' as root");
    return good("version", fmt::format("module and library are {}", library));
}

Check denied(const NodeFacts& node, const CallerFacts& caller)
{
    const std::string text = fmt::format("{} may not open /dev/dapx: it is {}, {:04o}", caller.user,
                                         node.owner, node.mode);
    if (node.group.empty() || (node.mode & 0060U) != 0060U)
        return error("node", text,
                     fmt::format("run 'chgrp rdma /dev/dapx; chmod 660 /dev/dapx; usermod -aG rdma "
                                 "{}' as root and log in again; for good: the udev rule "
                                 "60-dapx.rules",
                                 caller.user));
    if (node.member)
        return error("node", text,
                     fmt::format("log in again: {} is in group {} since", caller.user, node.group));
    return error(
        "node", text,
        fmt::format("run 'usermod -aG {} {}' as root and log in again", node.group, caller.user));
}

/// "what: why; remedy", as the library's errors are.
Check as_the_library_says(const std::string& name, const std::string& sentence)
{
    const std::size_t end = sentence.find("; ");
    if (end == std::string::npos)
        return error(name, sentence, "see Documentation/troubleshooting.rst for these words");
    return error(name, sentence.substr(0, end), sentence.substr(end + 2));
}

/// The module's number can change whenever it is loaded. A node that was made by hand, or passed
/// into a container, keeps the number that it had.
bool foreign(const NodeFacts& node)
{
    return !node.device_number.empty() && node.number != node.device_number;
}

Check check_node(const Facts& facts)
{
    const NodeFacts& node = facts.node;
    if (!node.exists)
        return error("node", "there is no /dev/dapx, though the module is loaded",
                     fmt::format("in a container, pass it in (docker: --device /dev/dapx), else "
                                 "run 'mknod -m 660 /dev/dapx c {}; chgrp rdma /dev/dapx' as root",
                                 node.device_number.empty() ? "10 MINOR" : node.device_number));
    if (foreign(node))
        return error(
            "node",
            fmt::format("/dev/dapx is {}, and the module is device {}",
                        node.number.empty() ? "no character device" : "device " + node.number,
                        node.device_number),
            fmt::format("in a container, pass it in again (docker: --device /dev/dapx), else run "
                        "'rm /dev/dapx; mknod -m 660 /dev/dapx c {}; chgrp rdma /dev/dapx' as root",
                        node.device_number));
    if (node.denied)
        return denied(node, facts.caller);
    if (!node.opened)
        return as_the_library_says("node", node.error);
    if (!node.missing_features.empty())
        return warning("node",
                       fmt::format("the module that is loaded lacks {}",
                                   fmt::join(node.missing_features, ", ")),
                       "load one of the library's version");
    return good("node", fmt::format("{} may use /dev/dapx, and it answers", facts.caller.user));
}

void check_parameters(Checks& checks, const Facts& facts)
{
    bool fine = true;
    for (const auto& [name, value] : facts.module.parameters) {
        const bool for_tests = name == "initial_index";
        if (for_tests ? value == 0 : value >= least_parameter)
            continue;
        fine = false;
        const std::string text =
            fmt::format("the module's {} is {}{}", name, value, for_tests ? ", for tests" : "");
        const std::string remedy =
            fmt::format("mend it in /etc/modprobe.d/dapx.conf, and run 'rmmod dapx; modprobe dapx' "
                        "as root ('modinfo -p dapx' has the defaults)");
        checks.push_back(value == 0 ? error("parameters", text, remedy)
                                    : warning("parameters", text, remedy));
    }
    if (fine && !facts.module.parameters.empty())
        checks.push_back(good("parameters", "nothing unusual"));
}

Check check_locked_memory(const CallerFacts& caller)
{
    const char* const remedy = "raise it with 'ulimit -l', or for good with a 'memlock' line in "
                               "/etc/security/limits.conf (a service: LimitMEMLOCK=)";
    if (caller.may_lock_all || !caller.locked_memory)
        return good("locked memory", fmt::format("{} may lock all of it", caller.user));
    const std::string text = fmt::format("{} may lock {} (RLIMIT_MEMLOCK)", caller.user,
                                         bytes_text(*caller.locked_memory));
    if (*caller.locked_memory == 0)
        return error("locked memory", text + ": no memory can be registered", remedy);
    if (*caller.locked_memory < usual_locked_memory)
        return warning("locked memory", text + ", which is little", remedy);
    return good("locked memory", text);
}

Check check_devices(const Facts& facts)
{
    if (!facts.devices.empty())
        return good("devices",
                    fmt::format("{} RDMA device{}, {}", facts.devices.size(),
                                facts.devices.size() == 1 ? "" : "s",
                                facts.devices_shared ? "of all network namespaces"
                                                     : "of this network namespace alone"));
    if (!facts.devices_shared)
        return error("devices",
                     "this network namespace has no RDMA device, and sees no other's ('rdma "
                     "system': exclusive)",
                     "run 'rdma dev set DEVICE netns NAME' where the device is, or this command "
                     "there; all see all after 'rdma system set netns shared'");
    return error("devices", "there is no RDMA device",
                 fmt::format("'dapxctl rxe add {}' as root makes one on a network interface",
                             facts.netdev.empty() ? "NETDEV" : facts.netdev));
}

/// What is wrong with a port; nothing if it is well.
std::optional<Check> check_port(const std::string& name, const PortFacts& port)
{
    if (!port.netdev.empty() && !port.netdev_here)
        return error(
            name,
            fmt::format("its network interface {} is in another network namespace", port.netdev),
            "run programs there ('ip netns exec NAME ...')");
    if (port.state != "ACTIVE") {
        const std::string text = fmt::format("port {} is {}", port.number,
                                             port.state.empty() ? "of no known state" : port.state);
        if (port.netdev.empty())
            return error(name, text, "see cable, switch and, with InfiniBand, the subnet manager");
        if (!port.netdev_up)
            return error(name,
                         fmt::format("{}: its network interface {} is down", text, port.netdev),
                         fmt::format("run 'ip link set {} up' as root", port.netdev));
        return error(name,
                     fmt::format("{}: its network interface {} has no carrier", text, port.netdev),
                     "see its cable, and the other end of it");
    }
    if (!port.gid)
        return error(name, fmt::format("port {} has no GID", port.number),
                     port.netdev.empty()
                         ? "see whether a subnet manager runs"
                         : fmt::format("run 'ip link set {0} down; ip link set {0} up' as root",
                                       port.netdev));
    return std::nullopt;
}

/// The first cause there is.
Check check_device(const DeviceFacts& device)
{
    const std::string name = "device " + device.name;
    if (device.refused)
        return error(name,
                     fmt::format("its driver{} is not one that dapx knows to be safe",
                                 device.driver.empty() ? "" : ", " + device.driver + ","),
                     fmt::format("'dapxctl rxe add {}' as root makes one that is",
                                 device.ports.empty() || device.ports.front().netdev.empty()
                                     ? "NETDEV"
                                     : device.ports.front().netdev));
    for (const PortFacts& port : device.ports)
        if (auto wrong = check_port(name, port))
            return *wrong;
    const std::string netdev = device.ports.empty() || device.ports.front().netdev.empty()
                                   ? "NETDEV"
                                   : device.ports.front().netdev;
    if (!device.address)
        return error(name, fmt::format("its network interface {} has no IP address", netdev),
                     fmt::format("run 'ip addr add ADDRESS/PREFIX dev {}' as root", netdev));
    if (!device.error.empty())
        return as_the_library_says(name, device.error);
    return good(name, "active, with an address");
}

/// One device that works is enough: of others, that they do not is worth a warning.
void check_each_device(Checks& checks, const Facts& facts)
{
    Checks found;
    for (const DeviceFacts& device : facts.devices)
        found.push_back(check_device(device));
    const bool some =
        std::ranges::any_of(found, [](const Check& check) { return check.health == Health::ok; });
    for (Check& check : found) {
        if (some && check.health == Health::error)
            check.health = Health::warning;
        checks.push_back(std::move(check));
    }
}

void check_dat(Checks& checks, const std::vector<DatFacts>& dat)
{
    bool fine = true;
    const std::string remedy =
        "run 'dapxctl dat-conf --install' as root: it writes dapx's lines anew";
    for (const DatFacts& facts : dat) {
        const std::string line = fmt::format("{}, line {}", facts.file, facts.name.line);
        fine = fine && facts.device && facts.library;
        if (!facts.device)
            checks.push_back(warning(
                "dat.conf", fmt::format("{}: there is no RDMA device {}", line, facts.name.device),
                remedy));
        else if (!facts.library)
            checks.push_back(warning(
                "dat.conf", fmt::format("{}: {} cannot be loaded", line, facts.name.library),
                "run 'ldconfig' as root, or install dapx-dat-provider"));
    }
    if (fine && !dat.empty())
        checks.push_back(
            good("dat.conf", fmt::format("{}: {} lines of dapx", dat.front().file, dat.size())));
}

std::string health_text(Health health)
{
    switch (health) {
    case Health::ok:
        return "ok";
    case Health::warning:
        return "warning";
    case Health::error:
        break;
    }
    return "error";
}

} // namespace

std::vector<Check> diagnose(const Facts& facts)
{
    Checks checks = {check_kernel(facts), check_module(facts)};
    // Without the module, nothing can be said of these.
    if (facts.module.loaded) {
        checks.push_back(check_version(facts));
        checks.push_back(check_node(facts));
        check_parameters(checks, facts);
    }
    checks.push_back(check_locked_memory(facts.caller));
    checks.push_back(check_devices(facts));
    check_each_device(checks, facts);
    check_dat(checks, facts.dat);
    if (facts.verbs_error)
        checks.push_back(warning("dapx-run", "cannot load its library: " + *facts.verbs_error,
                                 "run 'ldconfig' as root, or install libdapx-verbs"));
    else if (facts.verbs)
        checks.push_back(good("dapx-run", "finds its library"));
    return checks;
}

std::string checks_text(const std::vector<Check>& checks)
{
    std::vector<std::vector<std::string>> rows;
    rows.reserve(checks.size());
    for (const Check& check : checks)
        rows.push_back({health_text(check.health), check.name,
                        check.remedy.empty() ? check.text : check.text + "; " + check.remedy});
    return table_text(rows);
}

nlohmann::json checks_json(const std::vector<Check>& checks)
{
    nlohmann::json result = nlohmann::json::array();
    for (const Check& check : checks) {
        result.push_back(
            {{"name", check.name}, {"state", health_text(check.health)}, {"text", check.text}});
        result.back()["remedy"] =
            check.remedy.empty() ? nlohmann::json(nullptr) : nlohmann::json(check.remedy);
    }
    return result;
}

bool broken(const std::vector<Check>& checks)
{
    return std::ranges::any_of(checks,
                               [](const Check& check) { return check.health == Health::error; });
}

} // namespace tools
