// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The interface that is provided, and what all of the provider's files need.
#pragma once

#include <dapx/dapx.hpp>

#include "explain.hpp"
#include "interface.hpp" // of v1 or v2: the library is compiled for each

namespace dapx::dat {

/// The library that this one stands on: both have an Evd, an Srq and so on.
namespace core = ::dapx;

/// A return code: class, type and subtype.
[[nodiscard]] constexpr DAT_RETURN error(DAT_RETURN_TYPE type,
                                         DAT_RETURN_SUBTYPE subtype = DAT_NO_SUBTYPE) noexcept
{
    return DAT_CLASS_ERROR | static_cast<DAT_RETURN>(type) | static_cast<DAT_RETURN>(subtype);
}

/// The code for what the library below says. @p resource: what there was not enough of, if so.
[[nodiscard]] DAT_RETURN error_of(int code,
                                  DAT_RETURN_SUBTYPE resource = DAT_RESOURCE_MEMORY) noexcept;
[[nodiscard]] inline DAT_RETURN error_of(const core::Error& why,
                                         DAT_RETURN_SUBTYPE resource = DAT_RESOURCE_MEMORY) noexcept
{
    return error_of(why.code(), resource);
}

/// What became of an object of the library below that its consumer frees. Without the device, and in
/// a fork()ed child, there is nothing left to free: that is no failure.
[[nodiscard]] DAT_RETURN freed(const core::Result<void>& result) noexcept;

} // namespace dapx::dat
