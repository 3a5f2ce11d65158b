// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "module_files.hpp"

#include "files.hpp"

#include <sysfs.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>
#include <system_error>

namespace tools {

namespace {

namespace fs = std::filesystem;
using dapx::detail::list_directory;
using dapx::detail::read_line;

bool is_module(const std::string& file)
{
    return file == "dapx.ko" || file.starts_with("dapx.ko.");
}

/// Where make install, DKMS and others put modules; to look everywhere takes seconds.
std::string file_in(const std::string& folder)
{
    for (const char* place :
         {"/updates", "/updates/dkms", "/extra", "/extra/dapx", "/weak-updates"})
        for (const std::string& name : list_directory(folder + place))
            if (is_module(name))
                return folder + place + "/" + name;
    return {};
}

/// "updates/dapx.ko" of modules.dep.
std::string indexed_in(const std::string& folder)
{
    std::ifstream index(folder + "/modules.dep");
    for (std::string line; std::getline(index, line);) {
        const std::string file = line.substr(0, line.find(':'));
        if (is_module(file.substr(file.rfind('/') + 1)))
            return file;
    }
    return {};
}

/// In the order in which they count: a file hides others of its name.
std::map<std::string, std::string> modprobe_files(const std::string& root)
{
    std::map<std::string, std::string> files;
    for (const char* folder : {"/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d",
                               "/usr/lib/modprobe.d", "/lib/modprobe.d"})
        for (const std::string& name : list_directory(root + folder))
            if (name.ends_with(".conf"))
                files.emplace(name, std::string(folder) + "/" + name);
    return files;
}

std::optional<ModuleBan> ban_in_file(const std::string& path, const std::string& root)
{
    std::ifstream file(root + path);
    std::optional<ModuleBan> found;
    int number = 0;
    for (std::string line; std::getline(file, line);) {
        ++number;
        std::istringstream words(line);
        std::string verb;
        std::string module;
        std::string command;
        words >> verb >> module >> command;
        if (module != "dapx" || (verb != "blacklist" && verb != "install"))
            continue;
        const std::string program = command.substr(command.rfind('/') + 1);
        if (verb == "install" && program != "false" && program != "true")
            continue; // loads it in its own way
        if (!found || verb == "install")
            found = ModuleBan{.where = path + ", line " + std::to_string(number),
                              .by_name = verb == "install"};
    }
    return found;
}

bool lists_dapx(const std::string& names)
{
    std::istringstream all(names);
    for (std::string name; std::getline(all, name, ',');)
        if (name == "dapx")
            return true;
    return false;
}

std::optional<ModuleBan> ban_in_command_line(const std::string& root)
{
    std::ifstream file(root + "/proc/cmdline");
    for (std::string word; file >> word;) {
        const std::size_t equals = word.find('=');
        const std::string key = word.substr(0, equals);
        if (equals == std::string::npos || !lists_dapx(word.substr(equals + 1)))
            continue;
        if (key == "module_blacklist" || key == "modprobe.blacklist")
            return ModuleBan{.where = "the kernel's command line, " + key,
                             .by_name = key == "module_blacklist"};
    }
    return std::nullopt;
}

} // namespace

ModuleFiles find_module(const std::string& release, const std::string& root)
{
    const std::string modules = root + "/lib/modules";
    const std::string folder = modules + "/" + release;
    std::error_code ignored;
    ModuleFiles found;
    found.folder = fs::is_directory(folder, ignored);
    // The index may name a file that is gone.
    if (const std::string indexed = indexed_in(folder);
        !indexed.empty() && fs::exists(fs::path(folder) / indexed, ignored)) {
        found.indexed = true;
        found.file = (fs::path(folder) / indexed).string();
    } else {
        found.file = file_in(folder);
    }
    for (const std::string& kernel : list_directory(modules)) {
        const std::string other = modules + "/" + kernel;
        if (kernel != release && (!file_in(other).empty() || !indexed_in(other).empty()))
            found.other_kernels.push_back(kernel);
    }
    return found;
}

std::optional<ModuleBan> find_module_ban(const std::string& root)
{
    std::optional<ModuleBan> found = ban_in_command_line(root);
    for (const auto& [name, path] : modprobe_files(root)) {
        if (found && found->by_name)
            break;
        if (const auto ban = ban_in_file(path, root); ban && (!found || ban->by_name))
            found = ban;
    }
    return found;
}

bool signature_required(const std::string& root)
{
    // "none [integrity] confidentiality": what is in force is in brackets.
    const std::string lockdown = read_line(root + "/sys/kernel/security/lockdown");
    return read_line(root + "/sys/module/module/parameters/sig_enforce").starts_with('Y') ||
           lockdown.find("[integrity]") != std::string::npos ||
           lockdown.find("[confidentiality]") != std::string::npos;
}

std::optional<bool> has_signature(const std::string& path)
{
    const std::string_view mark = "~Module signature appended~\n";
    if (!path.ends_with(".ko"))
        return std::nullopt;
    std::ifstream file(path, std::ios::binary);
    if (!file)
        return std::nullopt;
    std::string end(mark.size(), '\0');
    file.seekg(-static_cast<std::streamoff>(mark.size()), std::ios::end);
    file.read(end.data(), static_cast<std::streamsize>(end.size()));
    return file && end == mark;
}

} // namespace tools
