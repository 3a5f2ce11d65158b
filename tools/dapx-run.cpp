// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// dapx-run: a program of verbs on the devices of dapx.
#include "command_line.hpp"
#include "common.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <vector>

#include <unistd.h>

namespace {

// As of env(1) and others that run a program.
constexpr int exit_cannot_run = 126;
constexpr int exit_not_found = 127;

constexpr const char* library = "libdapx-verbs.so";

/// Where the dynamic linker finds the library: beside this program's other libraries.
std::string library_path()
{
    void* handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr)
        throw tools::Failure(fmt::format("cannot load {}: {}", library, dlerror()));
    Dl_info info{};
    void* function = dlsym(handle, "ibv_open_xrc_domain");
    if (function == nullptr || dladdr(function, &info) == 0)
        throw tools::Failure(fmt::format("{} is not that of dapx", library));
    std::string path = info.dli_fname;
    if (path.find_first_of(" :") != std::string::npos)
        throw tools::Failure(fmt::format(
            "cannot preload '{}': spaces and colons end a name there; move it elsewhere", path));
    return path;
}

/// Some device has to be there, or the program would look for it in vain.
void check_devices()
{
    const dapx::DeviceList list = dapx::DeviceList::read();
    for (const dapx::DeviceInfo& device : list)
        if (device.usable)
            return;
    tools::must(list.only_usable());
}

int run_program(const std::vector<std::string>& words)
{
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string& word : words)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    const int error = errno;
    fmt::print(stderr, "dapx-run: cannot run {}: {}\n", words[0], std::strerror(error));
    return error == ENOENT ? exit_not_found : exit_cannot_run;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{
        "Runs a program that uses verbs with the devices of dapx, dapx_rxe0 for rxe0, beside those of "
        "libibverbs.",
        "dapx-run"};
    app.set_version_flag("--version", "dapx-run " DAPX_VERSION);
    app.footer("dapx-run PROGRAM [ARGUMENT...]");
    app.prefix_command();
    app.allow_extras();
    return tools::run(app, argc, argv, [&] {
        const std::vector<std::string> words = app.remaining();
        if (words.empty())
            throw tools::UsageError("no program is named");
        check_devices();
        std::string preload = library_path();
        if (const char* others = std::getenv("LD_PRELOAD"); others != nullptr && *others != '\0')
            preload += fmt::format(":{}", others);
        setenv("LD_PRELOAD", preload.c_str(), 1);
        return run_program(words);
    });
}
