// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the module's messages say.
#pragma once

#include <dapx/xrc_domain_list.hpp>

#include <vector>

struct nlmsghdr;

namespace dapx::detail {

/// Adds what one message tells: a domain, or more of one that is there already.
/// @return false: it is not to be understood, and @p domains is as it was.
[[nodiscard]] bool add_xrc_domain(std::vector<XrcDomainInfo>& domains,
                                  const ::nlmsghdr* message) noexcept;

} // namespace dapx::detail
