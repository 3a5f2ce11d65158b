// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What is behind the opaque pointers of <dapx/c.h>, and how results become errnos.
#pragma once

#include "ioctl.hpp"

#include <dapx/c.h>
#include <dapx/dapx.hpp>

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <variant>

struct dapxc_context {
    dapx::Context object;
};
struct dapxc_pd {
    dapx::Pd object;
};
struct dapxc_mr {
    dapx::MemoryRegion object;
};
struct dapxc_evd {
    dapx::Evd object;
};
struct dapxc_rmr {
    dapx::Rmr object;
};
struct dapxc_srq {
    dapx::Srq object;
};
struct dapxc_xrcd {
    dapx::XrcDomain object;
};
struct dapxc_ep {
    std::variant<dapx::Endpoint, dapx::XrcEndpoint> either;
    /// What both kinds have.
    dapx::EndpointBase& object =
        std::visit([](dapx::EndpointBase& both) -> dapx::EndpointBase& { return both; }, either);
};
struct dapxc_cm {
    dapx::CmId object;
};

namespace dapx::c {

/// Keeps the sentence for dapxc_error_text(). @return the errno.
int keep(const Error& error) noexcept;

/// The same for an errno that is this interface's own.
int keep(int code, const char* attempt) noexcept;

/// What is wrong with an argument.
inline int invalid() noexcept
{
    return keep(EINVAL, "a pointer that is needed is NULL, or a number out of range");
}

template <class T> int errno_of(const Result<T>& result) noexcept
{
    return result ? 0 : keep(result.error());
}

inline int errno_of(PostResult post) noexcept
{
    return static_cast<int>(post);
}

/// NULL, with errno.
inline std::nullptr_t fail(int error) noexcept
{
    errno = error;
    return nullptr;
}

/// The object that was made, in memory of its own; or NULL, with errno.
template <class Handle, class T> Handle* make(Result<T> result) noexcept
{
    if (!result)
        return fail(keep(result.error()));
    auto* handle = new (std::nothrow) Handle{std::move(*result)};
    return handle != nullptr ? handle : fail(keep(ENOMEM, "out of memory"));
}

/// Frees the object, and its memory unless that is still in use. What is gone in the module, as a
/// request whose listener was freed, is freed with that.
template <class Handle> int take_back(Handle* handle) noexcept
{
    if (handle == nullptr)
        return invalid();
    const auto freed = handle->object.free();
    if (!freed && freed.error().code() != ENOENT && freed.error().code() != EIO)
        return keep(freed.error());
    delete handle;
    return !freed && freed.error().code() == EIO ? keep(freed.error()) : 0;
}

template <class Handle> std::uint32_t handle_of(const Handle* handle) noexcept
{
    return handle != nullptr ? handle->object.handle() : 0;
}

template <class Handle> auto* object_of(Handle* handle) noexcept
{
    return handle != nullptr ? &handle->object : nullptr;
}

inline Deadline deadline_of(std::uint64_t deadline) noexcept
{
    constexpr auto last = static_cast<std::uint64_t>(Clock::duration::max().count());
    return deadline >= last ? no_deadline
                            : Deadline(Clock::duration(static_cast<Clock::rep>(deadline)));
}

inline Doorbell doorbell_of(std::uint32_t flags) noexcept
{
    return (flags & DAPXC_POST_LATER) != 0 ? Doorbell::later : Doorbell::now;
}

inline RecvFlags recv_flags_of(std::uint32_t flags) noexcept
{
    return (flags & DAPXC_POST_QUIET) != 0 ? RecvFlags::quiet : RecvFlags::none;
}

inline bool valid_post_flags(std::uint32_t flags) noexcept
{
    return (flags & ~std::uint32_t{DAPXC_POST_LATER}) == 0;
}

inline bool valid_recv_flags(std::uint32_t flags) noexcept
{
    return (flags & ~std::uint32_t{DAPXC_POST_LATER | DAPXC_POST_QUIET}) == 0;
}

/// Bytes that a length and a pointer describe; a pointer is needed if there are any.
inline bool valid_bytes(const void* data, std::size_t length) noexcept
{
    return data != nullptr || length == 0;
}

inline std::span<const std::byte> bytes(const void* data, std::size_t length) noexcept
{
    return {static_cast<const std::byte*>(data), length};
}

/// Issues a command whose struct is the caller's, of the size that the caller knows.
template <class T> int ask(const Context& context, T& argument, const char* attempt) noexcept
{
    const int error = detail::issue(context.fd(), detail::command_of<T>, &argument);
    return error == 0 ? 0 : keep(detail::explain(error, detail::command_of<T>.name, attempt));
}

/// Whether a struct of the caller's has room for what is written here before the module checks
/// the rest: up to @p end.
template <class T> bool has_room(const T* argument, std::size_t end) noexcept
{
    return argument != nullptr && argument->size >= end;
}

} // namespace dapx::c
