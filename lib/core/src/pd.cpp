// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/pd.hpp>

#include "ioctl.hpp"

namespace dapx {

Result<Pd> Pd::create(const Context& context, std::uint64_t user_data) noexcept
{
    ::dapx_pd_create argument{};
    argument.user_data = user_data;
    if (auto done = detail::command(context.fd(), argument, "cannot make a protection domain");
        !done)
        return std::unexpected(std::move(done).error());
    return Pd(device_of(context), ObjectType::pd, argument.out_pd);
}

} // namespace dapx
