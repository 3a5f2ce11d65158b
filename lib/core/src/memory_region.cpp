// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/memory_region.hpp>

#include "ioctl.hpp"

#include <dapx/pd.hpp>

namespace dapx {

Result<MemoryRegion> MemoryRegion::create(const Pd& pd, const void* addr, std::size_t length,
                                          Access access, std::uint64_t user_data,
                                          RegionFlags flags) noexcept
{
    const Context context = pd.context();
    ::dapx_mr_create argument{};
    argument.flags = static_cast<std::uint32_t>(flags);
    argument.pd = pd.handle();
    argument.access = static_cast<std::uint32_t>(access);
    argument.addr = reinterpret_cast<std::uint64_t>(addr);
    argument.length = length;
    argument.user_data = user_data;
    if (const int error = detail::command(context.fd(), argument); error != 0)
        return std::unexpected(detail::explain_mr(error, length, has(flags, RegionFlags::xrc)));
    return MemoryRegion(device_of(context), argument.out_mr, argument.out_rkey, argument.addr,
                        length);
}

Result<void> MemoryRegion::enable_xrc() noexcept
{
    ::dapx_mr_modify argument{};
    argument.flags = DAPX_MR_XRC;
    argument.mr = handle();
    if (const int error = detail::command(fd(), argument); error != 0)
        return std::unexpected(detail::explain_mr(error, length_, true, "DAPX_MR_MODIFY"));
    return {};
}

} // namespace dapx
