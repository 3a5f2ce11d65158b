// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/export.hpp>

#include <expected>
#include <string>
#include <system_error>

namespace dapx {

/// Why a call failed: an errno for the program, a sentence for the person in front of it.
///
/// A plain value. The library throws nothing. If there is no memory for the sentence, that is
/// "out of memory", and the errno as it would be; what gives a string or a list of its own ends
/// the process then (std::terminate), as every noexcept function of the standard library does.
class DAPX_EXPORT Error {
public:
    /// @param code    errno, positive.
    /// @param call    the system call or command that answered it, e.g. "DAPX_MR_CREATE".
    /// @param message a sentence with the cause and, where there is one, the remedy.
    Error(int code, std::string call, std::string message) noexcept;

    /// The errno, positive. What each means for a command: the opening comment of <dapx/dapx.h>.
    [[nodiscard]] int code() const noexcept { return code_; }

    /// The same, for std::error_code comparisons (std::errc::no_such_device, ...).
    [[nodiscard]] std::error_code error_code() const noexcept
    {
        return {code_, std::generic_category()};
    }

    /// The call that failed, e.g. "DAPX_ATTACH", "open", "mmap".
    [[nodiscard]] const std::string& call() const noexcept { return call_; }

    /// The sentence: no capital, no full stop, no errno number; ready for "program: %s\n".
    [[nodiscard]] const std::string& message() const noexcept { return message_; }

private:
    int code_;
    std::string call_;
    std::string message_;
};

/// A T, or why there is none.
template <class T> using Result = std::expected<T, Error>;

} // namespace dapx
