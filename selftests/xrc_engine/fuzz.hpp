// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What both fuzzers share.
#pragma once

extern "C" {
#include "xrc/engine.h"
}

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <endian.h>

namespace dapx::xrc::fuzz {

/// The input, piece by piece; zeros behind its end.
class Input {
public:
    Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

    [[nodiscard]] bool empty() const { return size_ == 0; }

    void bytes(void* to, std::size_t length)
    {
        const std::size_t there = std::min(length, size_);
        std::memcpy(to, data_, there);
        std::memset(static_cast<std::uint8_t*>(to) + there, 0, length - there);
        data_ += there;
        size_ -= there;
    }

    template <class Value> Value take()
    {
        Value value{};
        bytes(&value, sizeof(value));
        return value;
    }

private:
    const std::uint8_t* data_;
    std::size_t size_;
};

inline void check(bool condition, const char* text)
{
    if (condition)
        return;
    std::fprintf(stderr, "the engine: %s\n", text);
    std::abort();
}

/// The sanitizer looks at both ends; all between takes time.
inline void touch(void* memory, std::size_t length)
{
    static_cast<volatile std::uint8_t*>(memory)[0] = 0xda;
    static_cast<volatile std::uint8_t*>(memory)[length - 1] = 0xda;
}

} // namespace dapx::xrc::fuzz
