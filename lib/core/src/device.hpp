// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/detail/owner.hpp>

#include <unistd.h>

namespace dapx::detail {

/// The open file of a context; closed with the last object that shares it.
class Device {
public:
    Device(int fd, const Owner& owner) noexcept : fd_(fd), owner_(owner) {}
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    ~Device() { ::close(fd_); }

    [[nodiscard]] int fd() const noexcept { return fd_; }

    /// False in a forked child, in which the number of the descriptor may be another file's.
    [[nodiscard]] bool here() const noexcept { return owner_.here(); }

private:
    int fd_;
    Owner owner_;
};

} // namespace dapx::detail
