// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "doctor.hpp"
#include "files.hpp"

#include "kernel_config.hpp"
#include "privilege.hpp"
#include "requirements.hpp"

#include <dapx/context.hpp>
#include <dapx/device_list.hpp>
#include <rdma_netlink.hpp>
#include <sysfs.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <memory>
#include <system_error>

#include <grp.h>
#include <link.h>
#include <linux/capability.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace tools {

namespace {

namespace fs = std::filesystem;
using dapx::detail::list_directory;
using dapx::detail::read_line;

std::optional<std::uint64_t> number(const std::string& text, int base = 10)
{
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end == text.data())
        return std::nullopt;
    return value;
}

std::string user_name(::uid_t uid)
{
    const ::passwd* entry = ::getpwuid(uid);
    return entry != nullptr ? entry->pw_name : std::to_string(uid);
}

std::string group_name(::gid_t gid)
{
    const ::group* entry = ::getgrgid(gid);
    return entry != nullptr ? entry->gr_name : std::to_string(gid);
}

bool lists_member(::gid_t gid, const std::string& user)
{
    const ::group* entry = ::getgrgid(gid);
    for (char** member = entry != nullptr ? entry->gr_mem : nullptr;
         member != nullptr && *member != nullptr; ++member)
        if (*member == user)
            return true;
    return false;
}

KernelFacts kernel_facts()
{
    KernelFacts facts;
    ::utsname name{};
    if (::uname(&name) == 0)
        facts.release = name.release;
    if (const auto config = read_kernel_config(facts.release)) {
        facts.config = config->path;
        facts.missing_options = missing_options(config->text, required_options);
    }
    return facts;
}

ModuleFacts module_facts(const std::string& release)
{
    ModuleFacts facts;
    facts.loaded = dapx::Context::module_loaded();
    if (!facts.loaded) {
        facts.files = find_module(release);
        facts.ban = find_module_ban();
        facts.must_be_signed = signature_required();
        facts.has_signature = has_signature(facts.files.file);
        return facts;
    }
    facts.version = read_line("/sys/module/dapx/version");
    const std::string folder = "/sys/module/dapx/parameters";
    for (const std::string& name : list_directory(folder))
        if (const auto value = number(read_line(folder + "/" + name)))
            facts.parameters[name] = *value;
    return facts;
}

std::vector<std::string> missing_features(const dapx::ModuleInfo& info)
{
    std::vector<std::string> missing;
    if (!info.rc)
        missing.emplace_back("rc");
    if (!info.srq)
        missing.emplace_back("srq");
    if (!info.rmr)
        missing.emplace_back("rmr");
    if (!info.xrc)
        missing.emplace_back("xrc");
    return missing;
}

NodeFacts node_facts()
{
    NodeFacts facts;
    struct ::stat status{};
    facts.exists = ::stat(dapx::Context::default_node, &status) == 0;
    facts.device_number = read_line("/sys/class/misc/dapx/dev");
    if (const std::size_t colon = facts.device_number.find(':'); colon != std::string::npos)
        facts.device_number[colon] = ' ';
    if (!facts.exists)
        return facts;
    facts.mode = status.st_mode & 07777U;
    if (S_ISCHR(status.st_mode))
        facts.number = fmt::format("{} {}", major(status.st_rdev), minor(status.st_rdev));
    facts.owner = user_name(status.st_uid) + ":" + group_name(status.st_gid);
    if (status.st_gid != 0) {
        facts.group = group_name(status.st_gid);
        facts.member = lists_member(status.st_gid, user_name(::geteuid()));
    }
    const auto context = dapx::Context::open_node();
    const auto info = context ? context->info() : std::unexpected(context.error());
    if (info) {
        facts.opened = true;
        facts.missing_features = missing_features(*info);
        return facts;
    }
    facts.denied = info.error().call() == "open" &&
                   (info.error().code() == EACCES || info.error().code() == EPERM);
    facts.error = info.error().message();
    return facts;
}

CallerFacts caller_facts()
{
    CallerFacts facts;
    facts.user = user_name(::geteuid());
    facts.may_lock_all = has_capability(CAP_IPC_LOCK);
    ::rlimit limit{};
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        facts.locked_memory = limit.rlim_cur;
    return facts;
}

/// "0.1.0" of libdapx.so.0.1.0, the file that this process has loaded; "" if it is called otherwise.
std::string library_version()
{
    std::string path;
    ::dl_iterate_phdr(
        [](::dl_phdr_info* info, std::size_t /*size*/, void* found) {
            if (std::strstr(info->dlpi_name, "/libdapx.so") == nullptr)
                return 0;
            *static_cast<std::string*>(found) = info->dlpi_name;
            return 1;
        },
        &path);
    std::error_code error;
    const std::string file = fs::canonical(path, error).filename().string();
    const std::string stem = "libdapx.so.";
    // Two dots: else it has the version of the ABI only.
    if (error || !file.starts_with(stem) || std::ranges::count(file.substr(stem.size()), '.') < 2)
        return {};
    return file.substr(stem.size());
}

unsigned netdev_flags(const std::string& netdev)
{
    const std::string text = read_line("/sys/class/net/" + netdev + "/flags");
    return text.starts_with("0x") ? static_cast<unsigned>(number(text.substr(2), 16).value_or(0))
                                  : 0;
}

bool has_gid(const std::string& device, std::uint32_t port)
{
    const std::string folder = fmt::format("/sys/class/infiniband/{}/ports/{}/gids", device, port);
    // A device has many, of which the first are in use.
    for (int i = 0; i < 16; ++i)
        if (read_line(fmt::format("{}/{}", folder, i)).find_first_not_of(":0") != std::string::npos)
            return true;
    return false;
}

DeviceFacts device_facts(const dapx::DeviceInfo& device, bool node)
{
    DeviceFacts facts;
    facts.name = device.name;
    facts.driver = device.driver;
    facts.address = !device.addresses.empty();
    // Without the node, why it cannot be opened has been said once.
    if (!device.usable && node) {
        const auto context = dapx::Context::open(device.name);
        if (!context) {
            facts.refused = context.error().code() == EOPNOTSUPP;
            facts.error = context.error().message();
        }
    }
    for (const dapx::PortInfo& port : device.ports)
        facts.ports.push_back(
            {.number = port.number,
             .state = port.state,
             .netdev = port.netdev,
             .netdev_here = exists("/sys/class/net/" + port.netdev),
             .netdev_up = (netdev_flags(port.netdev) & static_cast<unsigned>(IFF_UP)) != 0,
             .gid = has_gid(device.name, port.number)});
    return facts;
}

/// For an rxe device: the first Ethernet that is up; "" if none is.
std::string likely_netdev()
{
    for (const std::string& name : list_directory("/sys/class/net"))
        if (read_line("/sys/class/net/" + name + "/type") == std::to_string(ARPHRD_ETHER) &&
            read_line("/sys/class/net/" + name + "/operstate") == "up")
            return name;
    return {};
}

struct Close {
    void operator()(void* library) const noexcept { ::dlclose(library); }
};
using Library = std::unique_ptr<void, Close>;

/// Why not, if it cannot.
std::optional<std::string> cannot_load(const std::string& library)
{
    if (Library(::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL)))
        return std::nullopt;
    const char* why = ::dlerror();
    return why != nullptr ? why : library;
}

std::vector<DatFacts> dat_facts()
{
    // As the registries look for it.
    const char* other = std::getenv("DAT_OVERRIDE");
    const std::string file = other != nullptr && *other != '\0' ? other : "/etc/dat.conf";
    std::vector<DatFacts> facts;
    for (const DatConfName& name : names_in_dat_conf(read_file(file).value_or("")))
        facts.push_back({.file = file,
                         .name = name,
                         .device = exists("/sys/class/infiniband/" + name.device),
                         .library = !cannot_load(name.library)});
    return facts;
}

/// Beside this program.
bool has_dapx_run()
{
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    return !error && exists((self.parent_path() / "dapx-run").string());
}

} // namespace

Facts gather_facts()
{
    Facts facts;
    facts.kernel = kernel_facts();
    facts.module = module_facts(facts.kernel.release);
    if (facts.module.loaded)
        facts.node = node_facts();
    facts.caller = caller_facts();
    facts.tool_version = DAPX_VERSION;
    facts.library_version = library_version();
    facts.devices_shared = dapx::detail::rdma_devices_shared().value_or(true);
    for (const dapx::DeviceInfo& device : dapx::DeviceList::read())
        facts.devices.push_back(device_facts(device, facts.node.opened));
    if (facts.devices.empty())
        facts.netdev = likely_netdev();
    facts.dat = dat_facts();
    facts.verbs = has_dapx_run();
    if (facts.verbs)
        facts.verbs_error = cannot_load("libdapx-verbs.so");
    return facts;
}

} // namespace tools
