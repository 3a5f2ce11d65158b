// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/export.hpp>

#include <expected>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace dapx {

/// Why a call failed: an errno for the program, a sentence for the person in front of it.
///
/// A plain value. Most sentences are composed when somebody asks for them, so an error that a program
/// expects, as a time-out in a loop, takes no memory. The library throws nothing. If there is no
/// memory for the sentence, that is "out of memory", and the errno as it would be; what gives a string
/// or a list of its own ends the process then (std::terminate), as every noexcept function of the
/// standard library does.
class DAPX_EXPORT Error {
public:
    /// What was attempted, "cannot ...": a literal, as every copy of an Error refers to it.
    struct Attempt {
        const char* text;
    };

    /// The sentence is "attempt: cause; remedy", by the errno.
    /// @param code errno, positive.
    /// @param call the system call or command that answered it, e.g. "DAPX_MR_CREATE": a literal.
    Error(int code, const char* call, Attempt attempt) noexcept
        : code_(code), call_(call), attempt_(attempt.text)
    {
    }

    /// The same with a sentence of its own: the cause and, where there is one, the remedy.
    Error(int code, const char* call, std::string message) noexcept
        : code_(code), call_(call), message_(std::move(message))
    {
    }

    /// The errno, positive. What each means for a command: the opening comment of <dapx/dapx.h>.
    [[nodiscard]] int code() const noexcept { return code_; }

    /// The same, for std::error_code comparisons (std::errc::no_such_device, ...).
    [[nodiscard]] std::error_code error_code() const noexcept
    {
        return {code_, std::generic_category()};
    }

    /// The call that failed, e.g. "DAPX_ATTACH", "open", "mmap".
    [[nodiscard]] std::string_view call() const noexcept { return call_; }

    /// The sentence: no capital, no full stop, no errno number; ready for "program: %s\n".
    [[nodiscard]] std::string message() const noexcept;

private:
    int code_;
    const char* call_;
    const char* attempt_ = nullptr; ///< nullptr: message_ is the sentence
    std::string message_;
};

/// A T, or why there is none.
template <class T> using Result = std::expected<T, Error>;

} // namespace dapx
