// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/error.hpp>

#include "explain.hpp"

#include <dapx/post.hpp>

namespace dapx {

Error::Error(int code, std::string call, std::string message) noexcept
    : code_(code), call_(std::move(call)), message_(std::move(message))
{
}

Error explain(PostResult post, const char* call) noexcept
{
    const std::string attempt = std::string("cannot post (") + call + ")";
    switch (post) {
    case PostResult::full:
        return Error(EAGAIN, call, attempt + ": the ring is full; take completions first");
    case PostResult::bad_state:
        return Error(EBADFD, call, attempt + ": the endpoint is not connected");
    case PostResult::bad_request:
        return Error(EINVAL, call,
                     attempt + ": more segments or inline bytes than the endpoint was made for, or "
                               "a receive for one that has none (it is of XRC, or has a shared "
                               "receive queue)");
    case PostResult::freed:
        return Error(ENOENT, call, attempt + ": the endpoint was freed");
    default:
        return detail::explain(static_cast<int>(post), call, attempt);
    }
}

} // namespace dapx
