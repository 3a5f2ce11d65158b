// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "explain.hpp"

#include <dapx/object.hpp>

#include <cerrno>
#include <initializer_list>

namespace dapx::detail {

/// EINVAL if one of @p others, of which any may be nullptr, is of another context than @p object.
///
/// The module knows objects by numbers that count anew in each context: there the number of
/// another context's object names one of its own, or none.
[[nodiscard]] inline Result<void>
check_one_context(const char* call, const char* attempt, const Object& object,
                  std::initializer_list<const Object*> others) noexcept
{
    for (const Object* other : others)
        if (other != nullptr && !object.shares_context(*other))
            return std::unexpected(explain_contexts(call, attempt));
    return {};
}

} // namespace dapx::detail
