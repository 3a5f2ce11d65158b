// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/detail/mapping.hpp>

#include "explain.hpp"

#include <cerrno>

#include <sys/mman.h>

namespace dapx::detail {

Mapping::~Mapping()
{
    if (base_ != nullptr && owner_.here())
        ::munmap(base_, size_);
}

Result<Mapping> Mapping::create(int fd, std::uint64_t offset, std::size_t size) noexcept
{
    return map(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
}

Result<Mapping> Mapping::reserve(std::size_t size) noexcept
{
    // Shared, so that it is not joined with what is beside it: to replace a part of a mapping
    // would take more of them, of which a process has only so many.
    return map(nullptr, size, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

Result<Mapping> Mapping::create_at(Mapping&& place, int fd, std::uint64_t offset,
                                   std::size_t size) noexcept
{
    if (size > place.size_)
        return create(fd, offset, size);
    // Where it fails, the place may be another thread's already, so it is left alone then.
    std::byte* const base = std::exchange(place.base_, nullptr);
    auto mapping = map(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset);
    if (mapping)
        mapping->size_ = place.size_; // What is left of the place is the new mapping's.
    return mapping;
}

Result<Mapping> Mapping::map(void* address, std::size_t size, int protection, int flags, int fd,
                             std::uint64_t offset) noexcept
{
    const auto owner = Owner::current();
    if (!owner)
        return std::unexpected(owner.error());
    void* base = ::mmap(address, size, protection, flags, fd, static_cast<off_t>(offset));
    if (base == MAP_FAILED)
        return std::unexpected(explain_system(errno, "mmap", "cannot map a ring"));
    Mapping mapping;
    mapping.base_ = static_cast<std::byte*>(base);
    mapping.size_ = size;
    mapping.owner_ = *owner;
    return mapping;
}

} // namespace dapx::detail
