// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/srq.hpp>

#include "ioctl.hpp"
#include "layout.hpp"

namespace dapx {

Result<Srq> Srq::create(const Pd& pd, const Options& options) noexcept
{
    const Context context = pd.context();
    ::dapx_srq_create argument{};
    argument.pd = pd.handle();
    argument.depth = options.depth;
    argument.max_sge = options.max_sge;
    argument.user_data = options.user_data;
    if (auto done = detail::command(context.fd(), argument, "cannot make a shared receive queue");
        !done)
        return std::unexpected(std::move(done).error());
    Srq srq(context.device(), argument.out_srq);
    const ::dapx_ring_layout& layout = argument.out_ring;
    const std::size_t entry = sizeof(::dapx_recv_wr) + options.max_sge * sizeof(::dapx_sge);
    if (auto done = detail::check_layout(layout, entry); !done)
        return std::unexpected(std::move(done).error());
    auto mapping = Mapping::create(context.fd(), layout.mmap_offset, layout.mmap_size);
    if (!mapping)
        return std::unexpected(std::move(mapping).error());
    srq.mapping_ = std::move(*mapping);
    srq.queue_ = ReceiveQueue(WorkRing(srq.mapping_.base(), layout), context.fd(), srq.handle(),
                              options.max_sge);
    return srq;
}

} // namespace dapx
