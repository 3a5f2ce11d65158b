// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "sysfs.hpp"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <unistd.h>

namespace dapx::detail {

namespace fs = std::filesystem;

namespace {

std::string class_path(const std::string& device, const std::string& sysfs)
{
    return sysfs + "/class/infiniband/" + device;
}

void add_once(std::vector<std::string>& names, const std::string& name)
{
    if (!name.empty() && std::ranges::find(names, name) == names.end())
        names.push_back(name);
}

/// GID 0 of an iWARP device is the Ethernet address of its interface: "0242:ac11:0002:0000:...".
std::string netdev_of_gid(const std::string& gid, const std::string& sysfs)
{
    std::string digits;
    for (const char c : gid)
        if (c != ':')
            digits += c;
    digits.resize(std::min<std::size_t>(digits.size(), 12));
    if (digits.size() < 12 || digits == std::string(12, '0'))
        return {};
    for (const std::string& name : list_directory(sysfs + "/class/net")) {
        std::string mac = read_line(sysfs + "/class/net/" + name + "/address");
        std::erase(mac, ':');
        if (mac == digits)
            return name;
    }
    return {};
}

} // namespace

bool is_directory(const std::string& path)
{
    std::error_code ignored;
    return fs::is_directory(path, ignored);
}

std::vector<std::string> list_directory(const std::string& path)
{
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
        names.push_back(it->path().filename().string());
    std::ranges::sort(names);
    return names;
}

std::string read_line(const std::string& path)
{
    // Not a stream: most of a device's GIDs cannot be read, and a stream throws for each.
    char text[4096];
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return {};
    const ssize_t length = ::read(fd, text, sizeof(text));
    ::close(fd);
    const std::string_view all(text, length > 0 ? static_cast<std::size_t>(length) : 0);
    return std::string(all.substr(0, all.find('\n')));
}

bool module_loaded(const std::string& sysfs)
{
    return is_directory(sysfs + "/module/dapx");
}

std::vector<std::string> device_names(const std::string& sysfs)
{
    return list_directory(sysfs + "/class/infiniband");
}

std::string hardware_driver(const std::string& device, const std::string& sysfs)
{
    std::error_code error;
    const fs::path driver = fs::read_symlink(class_path(device, sysfs) + "/device/driver", error);
    return error ? std::string() : driver.filename().string();
}

std::vector<std::string> port_netdevs(const std::string& device, const std::string& port,
                                      const std::string& sysfs)
{
    const std::string path = class_path(device, sysfs);
    const std::string table = path + "/ports/" + port + "/gid_attrs/ndevs";
    // A thousand entries, of which the kernel takes the first that is free: what lies behind so many
    // empty ones is empty, too.
    constexpr int hole = 128;
    std::vector<std::string> names;
    std::error_code error;
    for (int index = 0, empty = 0; empty < hole; ++index) {
        const std::string entry = table + "/" + std::to_string(index);
        const std::string name = read_line(entry);
        if (name.empty() && !fs::exists(entry, error))
            break;
        empty = name.empty() ? empty + 1 : 0;
        add_once(names, name);
    }
    if (names.empty())
        add_once(names, read_line(path + "/parent"));
    if (names.empty() && read_line(path + "/node_type").starts_with("4"))
        add_once(names, netdev_of_gid(read_line(path + "/ports/" + port + "/gids/0"), sysfs));
    return names;
}

} // namespace dapx::detail
