// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The registry of DAT 1.2: which library provides an interface adapter, and whose a handle is.
#pragma once

#include <dat/udat.h>

#include <dat/dat_registry.h>

#include <list>
#include <mutex>
#include <span>
#include <string>

namespace dapx::dat::registry {

struct Entry;

/// A return code: class, type and subtype.
[[nodiscard]] constexpr DAT_RETURN error(DAT_RETURN_TYPE type,
                                         DAT_RETURN_SUBTYPE subtype = DAT_NO_SUBTYPE) noexcept
{
    return DAT_CLASS_ERROR | static_cast<DAT_RETURN>(type) | static_cast<DAT_RETURN>(subtype);
}

/// Whose a handle is: a handle begins with the address of its provider's table. nullptr for what is
/// none. @p handle is read if it can be an address.
[[nodiscard]] const DAT_PROVIDER* provider_of(DAT_HANDLE handle) noexcept;

/// One user of a provider, from the opening of an IA to its end: it loads the library, and unloads it.
///
/// Thread-safe. On an error nothing has changed.
[[nodiscard]] DAT_RETURN open_provider(const DAT_PROVIDER_INFO& wanted,
                                       const DAT_PROVIDER*& provider) noexcept;
void close_provider(const DAT_PROVIDER& provider) noexcept;

/// What could be opened. @return how many there are, of which the first are stored in @p infos.
[[nodiscard]] DAT_COUNT list_providers(std::span<DAT_PROVIDER_INFO* const> infos) noexcept;

/// From a provider's library.
[[nodiscard]] DAT_RETURN add_provider(const DAT_PROVIDER& provider,
                                      const DAT_PROVIDER_INFO& info) noexcept;
[[nodiscard]] DAT_RETURN remove_provider(const DAT_PROVIDER& provider,
                                         const DAT_PROVIDER_INFO& info) noexcept;

} // namespace dapx::dat::registry
