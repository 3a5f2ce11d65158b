// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <unistd.h>

namespace dapx::detail {

/// The open file of a context; closed with the last object that shares it.
class Device {
public:
    explicit Device(int fd) noexcept : fd_(fd) {}
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    ~Device() { ::close(fd_); }

    [[nodiscard]] int fd() const noexcept { return fd_; }

private:
    int fd_;
};

} // namespace dapx::detail
