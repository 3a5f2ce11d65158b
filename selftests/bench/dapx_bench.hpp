// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What comparisons over libdapx share.
#pragma once

#include "bench.hpp"

#include <dapx/dapx.hpp>

#include <type_traits>
#include <utility>

namespace bench {

template <class T> T must(dapx::Result<T>&& result)
{
    if (!result)
        die("%s", result.error().message().c_str());
    if constexpr (!std::is_void_v<T>)
        return std::move(*result);
}

inline void must(dapx::PostResult post, const char* call)
{
    if (post != dapx::PostResult::ok) [[unlikely]]
        die("%s", dapx::explain(post, call).message().c_str());
}

/// Takes one completion, which has to be one of success, if there is one.
inline Done take_completion(dapx::Evd& evd)
{
    dapx::Event event;
    if (!evd.poll(event))
        return Done::nothing;
    if (!event.is_completion() || event.status() != dapx::Status::success)
        die("%s", event.describe().c_str());
    return event.opcode() == dapx::Opcode::recv ? Done::received : Done::sent;
}

} // namespace bench
