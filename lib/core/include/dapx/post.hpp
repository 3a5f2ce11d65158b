// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/dapx.h>
#include <dapx/error.hpp>
#include <dapx/flags.hpp>

#include <cerrno>
#include <cstdint>

namespace dapx {

/// What became of a post: an errno without the cost of a sentence, for the hot path.
///
/// Values beside the named ones are errnos of DAPX_DOORBELL; explain() has a sentence for each.
/// With full, bad_state and bad_request nothing was posted; after any other error the request is
/// in the ring, and the endpoint, or the queue, is of no more use.
enum class [[nodiscard]] PostResult : int {
    ok = 0,
    full = EAGAIN,         ///< no room in the ring: take completions first
    bad_state = EBADFD,    ///< a request on an endpoint that is not connected and was not
    bad_request = EINVAL,  ///< more segments or inline bytes than the endpoint was made for
    broken_ring = EBADMSG, ///< the ring's indices were overwritten
    out_of_service = ENOTRECOVERABLE, ///< an Srq in which a receive was bad: AsyncEvent::srq_error
    device_removed = EIO,             ///< the device is gone
    freed = ENOENT,                   ///< the endpoint is freed
    wrong_process = EPERM,            ///< a fork()ed child
};

/// The Error for a post that failed. @p call is a literal, e.g. "post_send".
[[nodiscard]] DAPX_EXPORT Error explain(PostResult post, const char* call) noexcept;

/// How a request is carried out. Source: enum dapx_send_flags.
enum class SendFlags : std::uint16_t {
    none = 0,                        ///< no completion event if it succeeds
    signalled = DAPX_SEND_SIGNALED,  ///< a completion event also if it succeeds
    solicited = DAPX_SEND_SOLICITED, ///< asks for the peer's attention (Evd::wait_solicited())
    fence = DAPX_SEND_FENCE,         ///< starts after earlier reads and atomics have ended
    quiet = DAPX_SEND_QUIET,         ///< its success wakes nobody; if ModuleInfo::quiet
};
template <> inline constexpr bool is_flags<SendFlags> = true;

/// How a receive completes. Source: enum dapx_recv_flags.
enum class RecvFlags : std::uint32_t {
    none = 0,
    quiet = DAPX_RECV_QUIET, ///< its success wakes nobody; if ModuleInfo::quiet
};

/// When the module is told of a post.
enum class Doorbell : std::uint8_t {
    now,   ///< at once, with all that was staged before
    later, ///< with the next Doorbell::now, or submit(): a batch costs one command at most
};

} // namespace dapx
