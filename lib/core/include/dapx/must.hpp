// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// For programs that have nothing better to do about an error than to say it and end. Not part of
// <dapx/dapx.hpp>: a library does not end its program.
#pragma once

#include <dapx/error.hpp>
#include <dapx/event.hpp>
#include <dapx/post.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>

namespace dapx {

/// Ends the process with status 1, after "PROGRAM: SENTENCE" on stderr.
[[noreturn]] inline void fail(const std::string& sentence) noexcept
{
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, sentence.c_str());
    std::exit(1);
}

/// The value; or fail() with the error's sentence.
template <class T> T must(Result<T> result) noexcept
{
    if (!result)
        fail(result.error().message());
    if constexpr (!std::is_void_v<T>)
        return std::move(*result);
}

/// fail() unless it was posted. @p call for the sentence, e.g. "post_send".
inline void must(PostResult post, const char* call = "post") noexcept
{
    if (post != PostResult::ok)
        fail(explain(post, call).message());
}

/// An event of something that succeeded; or fail() with what happened instead.
inline Event must_succeed(Result<Event> result) noexcept
{
    const Event event = must(std::move(result));
    if (!event.succeeded())
        fail(event.describe());
    return event;
}

} // namespace dapx
