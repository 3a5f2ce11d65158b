// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// <infiniband/verbs.h>, without the macros that stand in front of functions which are defined here.
#pragma once

#include <infiniband/verbs.h>

#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace dapx::verbs {

/// For functions that return 0 or a positive errno, and set errno as well.
inline int failed(int error) noexcept
{
    errno = error;
    return error;
}

/// For functions that return nullptr and set errno.
template <class T> T* failed_null(int error) noexcept
{
    errno = error;
    return nullptr;
}

} // namespace dapx::verbs

/// What programs call.
#define DAPX_VERBS extern "C" __attribute__((visibility("default")))
