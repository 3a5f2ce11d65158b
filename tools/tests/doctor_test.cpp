// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What a virtual machine cannot be made to have, and files of odd content.
#include "doctor.hpp"
#include "kernel_config.hpp"
#include "module_files.hpp"
#include "requirements.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <zlib.h>

namespace tools {
namespace {

namespace fs = std::filesystem;

Facts well()
{
    Facts facts;
    facts.kernel = {.release = "6.12.1", .config = "/boot/config", .missing_options = {}};
    facts.module.loaded = true;
    facts.module.version = facts.tool_version = facts.library_version = "1.2.3";
    facts.node.exists = facts.node.opened = true;
    facts.caller.user = "me";
    DeviceFacts device;
    device.name = "rxe0";
    device.ports = {{.number = 1, .state = "ACTIVE", .netdev = "eth0"}};
    facts.devices = {device};
    return facts;
}

/// The check that is not ok, of which there is one.
Check only(const Facts& facts)
{
    const auto checks = diagnose(facts);
    std::vector<Check> wrong;
    std::ranges::copy_if(checks, std::back_inserter(wrong),
                         [](const Check& check) { return check.health != Health::ok; });
    EXPECT_EQ(wrong.size(), 1U) << checks_text(checks);
    return wrong.empty() ? Check{} : wrong.front();
}

TEST(Doctor, Well)
{
    EXPECT_EQ(checks_text(diagnose(well())),
              "ok  kernel         6.12.1 has what dapx needs\n"
              "ok  module         loaded\n"
              "ok  version        module and library are 1.2.3\n"
              "ok  node           me may use /dev/dapx, and it answers\n"
              "ok  locked memory  me may lock all of it\n"
              "ok  devices        1 RDMA device, of all network namespaces\n"
              "ok  device rxe0    active, with an address\n");
    EXPECT_FALSE(broken(diagnose(well())));
}

TEST(Doctor, ForeignDriver)
{
    Facts facts = well();
    facts.devices[0].driver = "irdma";
    facts.devices[0].refused = true;
    const Check check = only(facts);
    EXPECT_EQ(check.health, Health::error);
    EXPECT_EQ(check.text, "its driver, irdma, is not one that dapx knows to be safe");
    EXPECT_EQ(check.remedy, "'dapxctl rxe add eth0' as root makes one that is");
}

TEST(Doctor, OneDeviceIsEnough)
{
    Facts facts = well();
    facts.devices.push_back(facts.devices[0]);
    facts.devices[1].name = "irdma0";
    facts.devices[1].refused = true;
    EXPECT_EQ(only(facts).health, Health::warning);
    EXPECT_FALSE(broken(diagnose(facts)));
}

TEST(Doctor, OldKernel)
{
    for (const char* release : {"5.10.0-30-amd64", "6.0.1", "4.19.0"}) {
        Facts facts = well();
        facts.kernel.release = release;
        EXPECT_EQ(only(facts).remedy, "boot Linux 6.1 or later") << release;
    }
    for (const char* release : {"6.1.0-56-amd64", "6.12.1", "7.0.0", "10.2.1"}) {
        Facts facts = well();
        facts.kernel.release = release;
        EXPECT_FALSE(broken(diagnose(facts))) << release;
    }
}

TEST(Doctor, UnknownConfiguration)
{
    Facts facts = well();
    facts.kernel.config.clear();
    EXPECT_EQ(diagnose(facts)[0].health, Health::ok); // with the module loaded it has them
    facts.module = {};
    facts.module.files = {
        .folder = true, .indexed = true, .file = "/lib/x/dapx.ko", .other_kernels = {}};
    const auto checks = diagnose(facts);
    EXPECT_EQ(checks[0].health, Health::warning);
    EXPECT_NE(checks[0].remedy.find("CONFIG_INFINIBAND_USER_MEM"), std::string::npos);
    EXPECT_EQ(checks[1].remedy, "run 'modprobe dapx' as root");
}

TEST(Doctor, LibraryOfAnotherVersion)
{
    Facts facts = well();
    facts.library_version = facts.module.version = "1.2.4";
    EXPECT_EQ(only(facts).text, "dapxctl is 1.2.3, libdapx 1.2.4");
    facts = well();
    facts.library_version.clear(); // unknown: the tool's own counts
    EXPECT_EQ(diagnose(facts)[2].health, Health::ok);
}

TEST(Doctor, ModuleWithoutSignature)
{
    Facts facts = well();
    facts.module.loaded = false;
    facts.module.files = {
        .folder = true, .indexed = true, .file = "/m/dapx.ko", .other_kernels = {}};
    facts.module.has_signature = false;
    EXPECT_EQ(only(facts).text, "not loaded");
    EXPECT_EQ(only(facts).remedy, "run 'modprobe dapx' as root");
    facts.module.must_be_signed = true;
    EXPECT_EQ(only(facts).text, "not loaded: this kernel loads signed modules only, and "
                                "/m/dapx.ko has no signature");
    facts.module.has_signature = true;
    EXPECT_EQ(only(facts).text, "not loaded");
    EXPECT_NE(only(facts).remedy.find("Secure Boot"), std::string::npos);
}

TEST(Doctor, NodeSaysWhatTheLibrarySays)
{
    Facts facts = well();
    facts.node.opened = false;
    facts.node.error = "cannot open /dev/dapx: too many; raise it; or not";
    const Check check = only(facts);
    EXPECT_EQ(check.text, "cannot open /dev/dapx: too many");
    EXPECT_EQ(check.remedy, "raise it; or not");
    facts.node.error = "cannot open /dev/dapx: no reason";
    EXPECT_EQ(only(facts).text, facts.node.error);
}

TEST(Doctor, NodeOfAnotherDevice)
{
    Facts facts = well();
    facts.node.device_number = facts.node.number = "10 122";
    EXPECT_FALSE(broken(diagnose(facts)));
    facts.node.number = "10 121";
    facts.node.opened = false;
    facts.node.denied = true; // the number is the cause, whatever became of opening it
    EXPECT_EQ(only(facts).text, "/dev/dapx is device 10 121, and the module is device 10 122");
    facts.node.number.clear();
    EXPECT_EQ(only(facts).text,
              "/dev/dapx is no character device, and the module is device 10 122");
    facts.node.device_number.clear(); // sysfs does not say
    EXPECT_NE(only(facts).text.find("may not open"), std::string::npos);
}

TEST(Doctor, LackOfFeatures)
{
    Facts facts = well();
    facts.node.missing_features = {"rmr", "xrc"};
    EXPECT_EQ(only(facts).text, "the module that is loaded lacks rmr, xrc");
}

TEST(Doctor, NoGid)
{
    Facts facts = well();
    facts.devices[0].ports[0].gid = false;
    EXPECT_EQ(only(facts).text, "port 1 has no GID");
}

TEST(Doctor, InfiniBandPort)
{
    Facts facts = well();
    facts.devices[0].ports = {{.number = 2, .state = "INIT", .netdev = ""}};
    const Check check = only(facts);
    EXPECT_EQ(check.text, "port 2 is INIT");
    EXPECT_NE(check.remedy.find("subnet manager"), std::string::npos);
}

TEST(Doctor, ParametersForTests)
{
    Facts facts = well();
    facts.module.parameters = {{"initial_index", 0}, {"max_objects", 65536}};
    EXPECT_FALSE(broken(diagnose(facts)));
    facts.module.parameters["initial_index"] = 7;
    EXPECT_EQ(only(facts).text, "the module's initial_index is 7, for tests");
}

TEST(Doctor, Json)
{
    Facts facts = well();
    facts.devices.clear();
    const auto json = checks_json(diagnose(facts));
    EXPECT_EQ(json.front(), (nlohmann::json{{"name", "kernel"},
                                            {"state", "ok"},
                                            {"text", "6.12.1 has what dapx needs"},
                                            {"remedy", nullptr}}));
    EXPECT_EQ(json.back()["state"], "error");
    EXPECT_EQ(json.back()["remedy"],
              "'dapxctl rxe add NETDEV' as root makes one on a network interface");
}

TEST(KernelConfig, MissingOptions)
{
    const std::string config = "CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\nCONFIG_DD=y\n"
                               "CONFIG_E=n\n#CONFIG_F=y\nCONFIG_G=yes\n";
    EXPECT_EQ(missing_options(config, "CONFIG_A CONFIG_B"), std::vector<std::string>());
    EXPECT_EQ(
        missing_options(config, "CONFIG_C CONFIG_D CONFIG_E CONFIG_F CONFIG_G"),
        (std::vector<std::string>{"CONFIG_C", "CONFIG_D", "CONFIG_E", "CONFIG_F", "CONFIG_G"}));
    EXPECT_EQ(missing_options("", "CONFIG_A"), std::vector<std::string>{"CONFIG_A"});
    EXPECT_EQ(missing_options("", required_options).size(),
              static_cast<std::size_t>(std::ranges::count(std::string(required_options), ' ') + 1));
}

class Folder : public ::testing::Test {
protected:
    void SetUp() override { ASSERT_NE(::mkdtemp(root.data()), nullptr); }
    void TearDown() override { fs::remove_all(root); }

    void write(const std::string& path, const std::string& text) const
    {
        fs::create_directories(fs::path(root + path).parent_path());
        std::ofstream(root + path) << text;
    }

    std::string root = "/tmp/dapx-doctor-XXXXXX";
};

using KernelConfigFile = Folder;
using ModuleFile = Folder;
using ModuleBanned = Folder;
using ModuleSignature = Folder;

TEST_F(KernelConfigFile, CompressedOrNot)
{
    EXPECT_FALSE(read_maybe_compressed(root + "/none"));
    EXPECT_FALSE(read_maybe_compressed(root)); // a folder
    write("/empty", "");
    EXPECT_FALSE(read_maybe_compressed(root + "/empty"));
    write("/plain", "CONFIG_A=y\n");
    EXPECT_EQ(read_maybe_compressed(root + "/plain"), "CONFIG_A=y\n");
    ::gzFile file = ::gzopen((root + "/packed").c_str(), "wb");
    ASSERT_GT(::gzputs(file, "CONFIG_A=m\n"), 0);
    ASSERT_EQ(::gzclose(file), Z_OK);
    EXPECT_EQ(read_maybe_compressed(root + "/packed"), "CONFIG_A=m\n");
    fs::resize_file(root + "/packed", fs::file_size(root + "/packed") - 6);
    EXPECT_FALSE(read_maybe_compressed(root + "/packed"));
}

TEST_F(ModuleFile, Found)
{
    const ModuleFiles nothing = find_module("6.1", root);
    EXPECT_FALSE(nothing.folder || nothing.indexed);
    EXPECT_EQ(nothing.file, "");
    write("/lib/modules/6.1/updates/dkms/dapx.ko.xz", "");
    write("/lib/modules/6.2/modules.dep", "kernel/x.ko: dapx.ko\nupdates/dapx.ko: kernel/x.ko\n");
    write("/lib/modules/6.3/modules.dep", "kernel/notdapx.ko:\nkernel/dapx.kox:\n");
    const ModuleFiles found = find_module("6.1", root);
    EXPECT_TRUE(found.folder);
    EXPECT_FALSE(found.indexed);
    EXPECT_EQ(found.file, root + "/lib/modules/6.1/updates/dkms/dapx.ko.xz");
    EXPECT_EQ(found.other_kernels, std::vector<std::string>{"6.2"});
    EXPECT_FALSE(find_module("6.2", root).indexed); // the file itself is gone
    EXPECT_EQ(find_module("6.3", root).file, "");
    write("/lib/modules/6.2/updates/dapx.ko", "");
    EXPECT_TRUE(find_module("6.2", root).indexed);
}

TEST_F(ModuleBanned, ByFile)
{
    EXPECT_FALSE(find_module_ban(root));
    write("/etc/modprobe.d/a.conf", "blacklist other\n#blacklist dapx\nblacklist dapxx\n");
    write("/etc/modprobe.d/b.conf.old", "blacklist dapx\n");
    write("/etc/modprobe.d/c.conf", "install dapx /sbin/modprobe --ignore-install dapx\n");
    EXPECT_FALSE(find_module_ban(root));
    write("/usr/lib/modprobe.d/d.conf", "\n  blacklist\tdapx\n");
    ASSERT_TRUE(find_module_ban(root));
    EXPECT_EQ(find_module_ban(root)->where, "/usr/lib/modprobe.d/d.conf, line 2");
    EXPECT_FALSE(find_module_ban(root)->by_name);
    write("/run/modprobe.d/z.conf", "install dapx /bin/false\n");
    EXPECT_EQ(find_module_ban(root)->where, "/run/modprobe.d/z.conf, line 1");
    EXPECT_TRUE(find_module_ban(root)->by_name);
    // One of the administrator's hides both.
    write("/etc/modprobe.d/d.conf", "");
    write("/etc/modprobe.d/z.conf", "");
    EXPECT_FALSE(find_module_ban(root));
}

TEST_F(ModuleBanned, ByCommandLine)
{
    write("/proc/cmdline", "quiet module_blacklist=nouveau,dapx2 dapx root=dapx\n");
    EXPECT_FALSE(find_module_ban(root));
    write("/proc/cmdline", "quiet modprobe.blacklist=dapx\n");
    ASSERT_TRUE(find_module_ban(root));
    EXPECT_FALSE(find_module_ban(root)->by_name);
    write("/proc/cmdline", "module_blacklist=nouveau,dapx quiet\n");
    ASSERT_TRUE(find_module_ban(root));
    EXPECT_TRUE(find_module_ban(root)->by_name);
    EXPECT_EQ(find_module_ban(root)->where, "the kernel's command line, module_blacklist");
}

TEST_F(ModuleSignature, Required)
{
    EXPECT_FALSE(signature_required(root));
    write("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
    write("/sys/module/module/parameters/sig_enforce", "N\n");
    EXPECT_FALSE(signature_required(root));
    write("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
    EXPECT_TRUE(signature_required(root));
    write("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
    EXPECT_TRUE(signature_required(root));
    write("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
    write("/sys/module/module/parameters/sig_enforce", "Y\n");
    EXPECT_TRUE(signature_required(root));
}

TEST_F(ModuleSignature, AtTheEndOfTheFile)
{
    write("/dapx.ko", "ELF, key and ~Module signature appended~\n");
    EXPECT_EQ(has_signature(root + "/dapx.ko"), true);
    write("/dapx.ko", "~Module signature appended~\n, and more");
    EXPECT_EQ(has_signature(root + "/dapx.ko"), false);
    write("/dapx.ko", "short");
    EXPECT_EQ(has_signature(root + "/dapx.ko"), false);
    EXPECT_EQ(has_signature(root + "/none.ko"), std::nullopt);
    write("/dapx.ko.xz", "packed");
    EXPECT_EQ(has_signature(root + "/dapx.ko.xz"), std::nullopt);
}

} // namespace
} // namespace tools
