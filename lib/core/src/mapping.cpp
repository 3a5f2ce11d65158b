// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/mapping.hpp>

#include <cerrno>
#include <cstring>

#include <sys/mman.h>

namespace dapx {

Mapping::~Mapping()
{
    if (base_ != nullptr && owner_.here())
        ::munmap(base_, size_);
}

Result<Mapping> Mapping::create(int fd, std::uint64_t offset, std::size_t size) noexcept
{
    const auto owner = detail::Owner::current();
    if (!owner)
        return std::unexpected(owner.error());
    void* base =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (base == MAP_FAILED)
        return std::unexpected(
            Error(errno, "mmap", std::string("cannot map a ring: ") + std::strerror(errno)));
    Mapping mapping;
    mapping.base_ = static_cast<std::byte*>(base);
    mapping.size_ = size;
    mapping.owner_ = *owner;
    return mapping;
}

} // namespace dapx
