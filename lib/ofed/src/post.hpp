// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "segments.hpp"
#include "verbs_abi.hpp"

#include <dapx/post.hpp>

namespace dapx::verbs {

/// The errno that libibverbs' providers have for it.
[[nodiscard]] inline int post_error(dapx::PostResult post) noexcept
{
    switch (post) {
    case dapx::PostResult::full:
        return ENOMEM;
    case dapx::PostResult::bad_state:
        return EINVAL;
    default:
        return static_cast<int>(post);
    }
}

/// Posts a list of work requests: @p post_one each, then @p submit, so that a list costs one system
/// call at the most. What stands before one that cannot be posted is posted.
template <class Request, class PostOne, class Submit>
[[nodiscard]] int post_list(Request* wr, Request** bad_wr, PostOne post_one, Submit submit) noexcept
{
    int error = 0;
    Request* first = wr;
    for (; wr != nullptr; wr = wr->next) {
        error = post_one(*wr);
        if (error != 0)
            break;
    }
    if (const dapx::PostResult post = submit(); post != dapx::PostResult::ok && error == 0) {
        error = post_error(post);
        wr = first;
    }
    if (error != 0)
        *bad_wr = wr;
    return error;
}

/// The same for receives of @p queue, an endpoint or a shared queue.
template <class Queue, class Submit>
[[nodiscard]] int post_receives(Queue& queue, ibv_recv_wr* wr, ibv_recv_wr** bad_wr,
                                Submit submit) noexcept
{
    return post_list(
        wr, bad_wr,
        [&queue](const ibv_recv_wr& one) noexcept {
            const Segments segments(one.sg_list, one.num_sge);
            if (segments.is_too_long())
                return EINVAL;
            return post_error(queue.post_recv(one.wr_id, segments.span(), dapx::Doorbell::later));
        },
        submit);
}

} // namespace dapx::verbs
