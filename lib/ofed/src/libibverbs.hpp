// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// libibverbs, which stands behind this library: it has the objects of all other devices, and what is told of ports.
#pragma once

#include "verbs_abi.hpp"

namespace dapx::verbs {

/// The function of this name in the next library that has one, or nullptr.
[[nodiscard]] void* find_next_function(const char* name) noexcept;

/// The same, but without any the process ends, with a line on why: it asked for what nobody has.
[[nodiscard]] void* next_function(const char* name) noexcept;

/// Whether @p caller, a return address, is in the library that has @p function. Such a library calls
/// its own functions by the names that programs do.
[[nodiscard]] bool is_in_library_of(const void* function, const void* caller) noexcept;

} // namespace dapx::verbs

/// That of libibverbs, of the same name and type as one that is defined here; looked up once.
#define DAPX_LIBIBVERBS(name)                                                                      \
    ([]() noexcept {                                                                               \
        static const auto function =                                                               \
            reinterpret_cast<decltype(&::name)>(::dapx::verbs::next_function(#name));              \
        return function;                                                                           \
    }())
