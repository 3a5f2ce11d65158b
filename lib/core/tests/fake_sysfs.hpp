// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <stdlib.h>

namespace dapx::test {

/// A folder that looks like /sys as far as RDMA devices go; gone with the object.
class FakeSysfs {
public:
    FakeSysfs()
    {
        std::string name = std::filesystem::temp_directory_path() / "dapx-sysfs-XXXXXX";
        path_ = ::mkdtemp(name.data());
    }
    FakeSysfs(const FakeSysfs&) = delete;
    FakeSysfs& operator=(const FakeSysfs&) = delete;
    ~FakeSysfs() { std::filesystem::remove_all(path_); }

    [[nodiscard]] const std::string& path() const { return path_; }

    void directory(const std::string& name) const
    {
        std::filesystem::create_directories(path_ + "/" + name);
    }

    void file(const std::string& name, const std::string& text) const
    {
        std::filesystem::create_directories(
            std::filesystem::path(path_ + "/" + name).parent_path());
        std::ofstream(path_ + "/" + name) << text;
    }

    void device(const std::string& name, const std::string& node_type, const std::string& state,
                const std::string& link_layer) const
    {
        const std::string base = "class/infiniband/" + name;
        file(base + "/node_type", node_type + "\n");
        file(base + "/ports/1/state", state + "\n");
        file(base + "/ports/1/link_layer", link_layer + "\n");
    }

    /// An InfiniBand device, whose port is down.
    void hardware(const std::string& name, const std::string& driver) const
    {
        device(name, "1: CA", "1: DOWN", "InfiniBand");
        directory("drivers/" + driver);
        directory("class/infiniband/" + name + "/device");
        std::filesystem::create_directory_symlink(
            path_ + "/drivers/" + driver, path_ + "/class/infiniband/" + name + "/device/driver");
    }

    /// A RoCE device on a network interface, as the rxe driver shows it.
    void rxe(const std::string& name, const std::string& netdev) const
    {
        const std::string base = "class/infiniband/" + name;
        device(name, "1: CA", "4: ACTIVE", "Ethernet");
        file(base + "/ports/1/gid_attrs/ndevs/0", netdev + "\n");
        file(base + "/ports/1/gid_attrs/ndevs/1", netdev + "\n");
        file(base + "/ports/1/gid_attrs/ndevs/2", "");
    }

private:
    std::string path_;
};

} // namespace dapx::test
