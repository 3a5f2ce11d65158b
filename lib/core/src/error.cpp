// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/error.hpp>

#include "explain.hpp"

#include <dapx/post.hpp>

#include <new>

namespace dapx {

std::string Error::message() const noexcept
try {
    return attempt_ == nullptr ? message_ : std::string(attempt_) + ": " + detail::cause(code_);
} catch (const std::bad_alloc&) {
    return detail::no_memory_for_text;
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
        return Error(static_cast<int>(post), call,
                     attempt + ": " + detail::cause(static_cast<int>(post)));
    }
}

} // namespace dapx
