// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "dat.hpp"

#include <cerrno>

namespace dapx::dat {

DAT_RETURN error_of(int code, DAT_RETURN_SUBTYPE resource) noexcept
{
    switch (code) {
    case EAGAIN:
    case EDQUOT:
    case ENOMEM:
        return error(DAT_INSUFFICIENT_RESOURCES, resource);
    case EFAULT:
    case EINVAL:
    case EOVERFLOW:
        return error(DAT_INVALID_PARAMETER);
    case EOPNOTSUPP:
    case ENOTTY: // The module is older than the library.
        return error(DAT_MODEL_NOT_SUPPORTED);
    case EACCES:
        return error(DAT_PRIVILEGES_VIOLATION);
    case EBADFD:
    case EBUSY:
        return error(DAT_INVALID_STATE);
    case ENOENT:
    case EPERM:
        return error(DAT_INVALID_HANDLE);
    case EADDRINUSE:
        return error(DAT_CONN_QUAL_IN_USE);
    case EADDRNOTAVAIL:
        return error(DAT_INVALID_ADDRESS);
    case ETIMEDOUT:
        return error(DAT_TIMEOUT_EXPIRED);
    case EINTR:
        return error(DAT_INTERRUPTED_CALL);
    case ECANCELED:
        return error(DAT_ABORT);
    default:
        return error(DAT_INTERNAL_ERROR);
    }
}

DAT_RETURN freed(const core::Result<void>& result) noexcept
{
    if (result)
        return DAT_SUCCESS;
    switch (result.error().code()) {
    case EIO:
    case ENOENT:
    case EPERM:
        return DAT_SUCCESS;
    default:
        return error_of(result.error());
    }
}

} // namespace dapx::dat
