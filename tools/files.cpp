// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tools {

namespace {

namespace fs = std::filesystem;

/// With errno as the cause.
dapx::Error failed(const char* call, const std::string& what, const std::string& path)
{
    const int code = errno;
    return {code, call,
            fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(code))};
}

/// @p path, or what it is a link to, which stays one.
std::string target_of(const std::string& path)
{
    char* real = ::realpath(path.c_str(), nullptr);
    if (real == nullptr)
        return path;
    std::string target = real;
    std::free(real);
    return target;
}

/// False with errno.
bool write_all(int fd, std::span<const std::byte> bytes)
{
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0)
            bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return true;
}

dapx::Result<void> write_in_place(const std::string& path, std::span<const std::byte> bytes)
{
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return std::unexpected(failed("open", "write", path));
    dapx::Result<void> result;
    if (!write_all(fd, bytes))
        result = std::unexpected(failed("write", "write", path));
    ::close(fd);
    return result;
}

} // namespace

bool exists(const std::string& path)
{
    std::error_code ignored;
    return fs::exists(path, ignored);
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

dapx::Result<void> write_file(const std::string& path, std::span<const std::byte> bytes,
                              mode_t mode)
{
    const std::string target = target_of(path);
    struct stat before{};
    const bool there = ::stat(target.c_str(), &before) == 0;
    if (there && !S_ISREG(before.st_mode))
        return write_in_place(target, bytes);
    std::string scratch = target + ".XXXXXX";
    const int fd = ::mkostemp(scratch.data(), O_CLOEXEC);
    if (fd < 0)
        return std::unexpected(failed("open", "write", path));
    bool good = ::fchmod(fd, there ? before.st_mode & 07777U : mode) == 0;
    if (good && there && (before.st_uid != ::geteuid() || before.st_gid != ::getegid()))
        good = ::fchown(fd, before.st_uid, before.st_gid) == 0;
    good = good && write_all(fd, bytes) && ::fsync(fd) == 0 &&
           ::rename(scratch.c_str(), target.c_str()) == 0;
    if (good) {
        ::close(fd);
        return {};
    }
    dapx::Error why = failed("write", "write", path);
    ::close(fd);
    ::unlink(scratch.c_str());
    return std::unexpected(std::move(why));
}

dapx::Result<void> replace_file(const std::string& path, const std::string& text)
{
    if (!text.empty())
        return write_file(path, std::as_bytes(std::span(text)));
    if (::unlink(target_of(path).c_str()) != 0 && errno != ENOENT)
        return std::unexpected(failed("unlink", "remove", path));
    return {};
}

} // namespace tools
