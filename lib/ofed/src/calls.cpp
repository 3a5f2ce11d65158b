// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "calls.hpp"

#include "context.hpp"

#include <algorithm>
#include <cstring>

namespace dapx::verbs {

int query_port(ibv_context* context, std::uint8_t port_num, ibv_port_attr* attr,
               std::size_t size) noexcept
{
    const Context& own = Context::of(context);
    if (!own.is_open())
        return failed(EINVAL);
    const verbs_context* behind = verbs_get_ctx_op(own.behind(), query_port);
    if (behind != nullptr)
        return behind->query_port(own.behind(), port_num, attr, size);
    // Of old, without what newer members tell.
    std::memset(attr, 0, size);
    return ibv_query_port(own.behind(), port_num, reinterpret_cast<_compat_ibv_port_attr*>(attr));
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t size) noexcept
{
    const Context& own = Context::of(context);
    if (!own.is_open() || size < sizeof(attr->orig_attr) ||
        (input != nullptr && input->comp_mask != 0))
        return failed(EINVAL);
    ibv_device_attr_ex all{};
    if (const int error = own.query(all.orig_attr))
        return error;
    all.phys_port_cnt_ex = all.orig_attr.phys_port_cnt;
    std::memset(attr, 0, size);
    std::memcpy(attr, &all, std::min(size, sizeof(all)));
    return 0;
}

void fill_in_calls(verbs_context& context) noexcept
{
    context.context.ops.poll_cq = poll_cq;
    context.context.ops.req_notify_cq = req_notify_cq;
    context.context.ops.post_srq_recv = post_srq_recv;
    context.context.ops.post_send = post_send;
    context.context.ops.post_recv = post_recv;
    context.query_port = query_port;
    context.query_device_ex = query_device_ex;
    context.create_cq_ex = create_cq_ex;
    context.create_srq_ex = create_srq_ex;
    context.get_srq_num = get_srq_num;
    context.create_qp_ex = create_qp_ex;
    context.open_qp = open_qp;
    context.open_xrcd = open_xrcd;
    context.close_xrcd = close_xrcd;
}

} // namespace dapx::verbs
