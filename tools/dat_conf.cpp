// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "dat_conf.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <sstream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tools {

namespace {

// What is between them belongs to dapxctl. At the front of the file: so taking it out leaves the
// rest as it was, whatever that ended with.
constexpr const char* begin_mark =
    "# Written by 'dapxctl dat-conf --install', taken back by --remove\n";
constexpr const char* end_mark = "# End of what 'dapxctl dat-conf' has written\n";

/// With errno as the cause.
dapx::Error failed(const char* call, const std::string& what, const std::string& path)
{
    const int code = errno;
    return {code, call,
            fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(code))};
}

} // namespace

std::vector<DatConfEntry> dat_conf_entries(const dapx::DeviceList& devices,
                                           const std::string& folder)
{
    const std::string library = (folder.empty() ? "" : folder + "/") + "libdapx-dat.so.";
    std::vector<DatConfEntry> entries;
    for (const dapx::DeviceInfo& device : devices) {
        if (!device.usable)
            continue;
        for (const auto& [version, major] : {std::pair{"u2.0", "2"}, std::pair{"u1.2", "1"}})
            for (const bool thread_safe : {false, true})
                entries.push_back({.ia = "dapx-" + device.name,
                                   .device = device.name,
                                   .version = version,
                                   .thread_safe = thread_safe,
                                   .library = library + major});
    }
    return entries;
}

std::vector<DatConfName> names_in_dat_conf(const std::string& text)
{
    std::vector<DatConfName> names;
    std::istringstream all(text);
    int number = 0;
    for (std::string line; std::getline(all, line);) {
        ++number;
        // Adapter, version, thread-safety, "default", library, provider, device.
        std::istringstream fields(line);
        std::string field;
        std::string library;
        std::string device;
        for (int i = 0; i < 7 && fields >> std::quoted(field); ++i) {
            if (i == 0 && field.starts_with('#'))
                break;
            if (i == 4)
                library = field;
            if (i == 6)
                device = field;
        }
        if (library.substr(library.rfind('/') + 1).starts_with("libdapx-dat.so"))
            names.push_back({.line = number, .library = library, .device = device});
    }
    return names;
}

std::string dat_conf_text(const std::vector<DatConfEntry>& entries)
{
    std::string text;
    for (const DatConfEntry& entry : entries)
        text += fmt::format("{} {} {:13} default {} dapx.0.1 \"{}\" \"\"\n", entry.ia,
                            entry.version, entry.thread_safe ? "threadsafe" : "nonthreadsafe",
                            entry.library, entry.device);
    return text;
}

std::string without_dat_conf(const std::string& text)
{
    const std::size_t begin = text.find(begin_mark);
    if (begin == std::string::npos)
        return text;
    const std::size_t end = text.find(end_mark, begin);
    if (end == std::string::npos)
        return text;
    return text.substr(0, begin) + text.substr(end + std::strlen(end_mark));
}

std::string with_dat_conf(const std::string& text, const std::string& lines)
{
    return begin_mark + lines + end_mark + without_dat_conf(text);
}

dapx::Result<std::string> read_file(const std::string& path)
{
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return "";
    std::string text;
    char piece[4096];
    ssize_t got = -1;
    while (fd >= 0 && (got = ::read(fd, piece, sizeof(piece))) > 0)
        text.append(piece, static_cast<std::size_t>(got));
    if (got == 0) {
        ::close(fd);
        return text;
    }
    dapx::Error why = failed("read", "read", path);
    if (fd >= 0)
        ::close(fd);
    return std::unexpected(std::move(why));
}

dapx::Result<void> replace_file(const std::string& path, const std::string& text)
{
    // A link to it stays one.
    std::string target = path;
    if (char* real = ::realpath(path.c_str(), nullptr); real != nullptr) {
        target = real;
        std::free(real);
    }
    if (text.empty()) {
        if (::unlink(target.c_str()) != 0 && errno != ENOENT)
            return std::unexpected(failed("unlink", "remove", path));
        return {};
    }
    struct stat before{};
    const bool there = ::stat(target.c_str(), &before) == 0;
    std::string scratch = target + ".XXXXXX";
    const int fd = ::mkostemp(scratch.data(), O_CLOEXEC);
    if (fd < 0)
        return std::unexpected(failed("open", "write", path));
    bool good = ::fchmod(fd, there ? before.st_mode & 07777U : 0644U) == 0;
    if (good && there && (before.st_uid != ::geteuid() || before.st_gid != ::getegid()))
        good = ::fchown(fd, before.st_uid, before.st_gid) == 0;
    for (std::size_t done = 0; good && done < text.size();) {
        const ssize_t written = ::write(fd, text.data() + done, text.size() - done);
        good = written > 0;
        done += good ? static_cast<std::size_t>(written) : 0;
    }
    good = good && ::fsync(fd) == 0 && ::rename(scratch.c_str(), target.c_str()) == 0;
    if (good) {
        ::close(fd);
        return {};
    }
    dapx::Error why = failed("write", "write", path);
    ::close(fd);
    ::unlink(scratch.c_str());
    return std::unexpected(std::move(why));
}

} // namespace tools
