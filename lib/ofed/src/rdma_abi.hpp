// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// <rdma/rdma_cma.h>, and what its functions return.
#pragma once

#include "libibverbs.hpp"
#include "verbs_abi.hpp"

#include <rdma/rdma_cma.h>

namespace dapx::verbs {

/// For functions that return 0, or -1 and errno. @p error: 0 or an errno.
inline int zero_or_errno(int error) noexcept
{
    if (error == 0)
        return 0;
    errno = error;
    return -1;
}

} // namespace dapx::verbs

/// librdmacm's function, as DAPX_LIBIBVERBS().
#define DAPX_LIBRDMACM(name) DAPX_LIBIBVERBS(name)
