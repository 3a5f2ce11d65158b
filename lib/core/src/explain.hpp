// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Sentences for errnos: cause and remedy, for a person.
#pragma once

#include <dapx/address.hpp>
#include <dapx/error.hpp>
#include <dapx/object_type.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace dapx::detail {

// Without memory for a sentence, each gives the errno with "out of memory" for a sentence.

/// Instead of a sentence; short enough to be kept in the string itself.
inline constexpr const char* no_memory_for_text = "out of memory";

/// What @p code means for a command, and the remedy: "timed out".
[[nodiscard]] std::string cause(int code);

/// An Error that says "@p attempt: cause; remedy". Both texts have to be literals.
[[nodiscard]] inline Error explain(int code, const char* call, const char* attempt) noexcept
{
    return {code, call, Error::Attempt{attempt}};
}

/// An Error that says "@p attempt ADDRESS: cause; remedy".
[[nodiscard]] Error explain_address(int code, const char* call, const char* attempt,
                                    const Address& address) noexcept;

/// Why @p call of the system failed: "@p attempt: " and what the C library says of @p code.
[[nodiscard]] Error explain_system(int code, const char* call, const char* attempt) noexcept;

/// That the layout of a ring makes no sense.
[[nodiscard]] Error explain_layout() noexcept;

/// That the objects of one call are of two contexts.
[[nodiscard]] Error explain_contexts(const char* call, const char* attempt) noexcept;

/// That @p size bytes of private data are more than @p most, which go along with a command.
[[nodiscard]] Error explain_private_data(std::size_t size, std::size_t most) noexcept;

/// Why open(2) of the device node failed. @p sysfs: where it is mounted.
[[nodiscard]] Error explain_open(int code, const std::string& node,
                                 const std::string& sysfs = "/sys") noexcept;

/// Why DAPX_ATTACH failed.
[[nodiscard]] Error explain_attach(int code, const std::string& device,
                                   const std::string& sysfs = "/sys") noexcept;

/// Why @p call, DAPX_MR_CREATE or DAPX_MR_MODIFY, failed. @p length: bytes. @p xrc: whether it was
/// for XRC, too.
[[nodiscard]] Error explain_mr(int code, std::uint64_t length, bool xrc = false,
                               const char* call = "DAPX_MR_CREATE") noexcept;

/// Why DAPX_FREE failed for an object of @p type.
[[nodiscard]] Error explain_free(int code, ObjectType type) noexcept;

/// Why DAPX_XRCD_OPEN failed.
[[nodiscard]] Error explain_xrcd(int code) noexcept;

/// Why DAPX_SRQ_MODIFY failed.
[[nodiscard]] Error explain_srq_limit(int code) noexcept;

/// Why the ring of @p what could not be replaced.
[[nodiscard]] Error explain_resize(int code, const char* call, const char* what) noexcept;

/// Why a command on receive queue pair @p qp_num failed.
[[nodiscard]] Error explain_xrc_qp(int code, const char* call, const char* attempt,
                                   std::uint32_t qp_num) noexcept;

/// "8 MiB", "64 KiB", "100 bytes": whole units only.
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

} // namespace dapx::detail
