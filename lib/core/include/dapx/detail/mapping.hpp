// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/detail/owner.hpp>
#include <dapx/error.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace dapx::detail {

/// A mapping of a context's file: the memory of one or two rings. Move-only; unmaps at its end,
/// except in a forked child, which has no part of it.
class DAPX_EXPORT Mapping {
public:
    Mapping() = default;
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    Mapping(Mapping&& other) noexcept
        : base_(std::exchange(other.base_, nullptr)), size_(std::exchange(other.size_, 0)),
          owner_(other.owner_)
    {
    }
    Mapping& operator=(Mapping&& other) noexcept
    {
        std::swap(base_, other.base_);
        std::swap(size_, other.size_);
        std::swap(owner_, other.owner_);
        return *this;
    }
    ~Mapping();

    /// Maps @p size bytes at @p offset of @p fd, readable and writable, shared.
    [[nodiscard]] static Result<Mapping> create(int fd, std::uint64_t offset,
                                                std::size_t size) noexcept;

    /// Addresses for a mapping of @p size bytes, which nothing can be at meanwhile.
    [[nodiscard]] static Result<Mapping> reserve(std::size_t size) noexcept;

    /// As create(), at the addresses of @p place if that is large enough.
    [[nodiscard]] static Result<Mapping> create_at(Mapping&& place, int fd, std::uint64_t offset,
                                                   std::size_t size) noexcept;

    [[nodiscard]] std::byte* base() const noexcept { return base_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    /// Whose memory it is: nobody else may touch it.
    [[nodiscard]] const Owner& owner() const noexcept { return owner_; }

private:
    [[nodiscard]] static Result<Mapping> map(void* address, std::size_t size, int protection,
                                             int flags, int fd, std::uint64_t offset) noexcept;

    std::byte* base_ = nullptr;
    std::size_t size_ = 0;
    Owner owner_;
};

} // namespace dapx::detail
