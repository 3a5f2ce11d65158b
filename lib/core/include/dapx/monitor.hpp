// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/error.hpp>
#include <dapx/export.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dapx {

/// What happened to a context or one of its objects. A plain value.
/// Source: enum dapx_genl_event.
struct Happening {
    std::uint32_t event = 0; ///< enum dapx_genl_event
    std::uint64_t time = 0;  ///< nanoseconds of CLOCK_MONOTONIC
    std::uint32_t lost = 0;  ///< of so many before it nobody was told
    std::uint32_t context = 0;
    std::string device;
    std::uint32_t pid = 0; ///< as the first PID namespace counts
    std::string name;      ///< of the process when it opened the context
    std::optional<std::uint32_t> handle;
    std::optional<std::uint32_t> state; ///< enum dapx_ep_state
    std::optional<std::uint32_t> mr;    ///< handle
    std::optional<std::uint64_t> length;
    std::optional<std::uint32_t> domain;
    std::optional<std::uint32_t> objects;
    std::optional<std::uint32_t> cause;    ///< enum dapx_genl_cause
    std::optional<std::uint64_t> duration; ///< nanoseconds
};

/// Listens to what happens to the contexts that the caller may see: as for list_contexts(); on
/// kernels before 6.5 only with CAP_NET_ADMIN. What happens between two reads is kept for the
/// next, as far as the socket has room.
/// Ownership: the socket is closed with it. Thread safety: one thread at a time.
class DAPX_EXPORT Monitor {
public:
    /// Listens from now on.
    /// Errors: ENOENT (module not loaded), EOPNOTSUPP (a module that is older), EPERM (needs
    /// CAP_NET_ADMIN here), ENOMEM; others: the sentence says what libnl says.
    [[nodiscard]] static Result<Monitor> open() noexcept;

    Monitor(Monitor&&) noexcept;
    Monitor& operator=(Monitor&&) noexcept;
    ~Monitor();

    /// Readable when there is something to read(); for poll(2).
    [[nodiscard]] int fd() const noexcept;

    /// What happened since, in order; waits for something if nothing did.
    /// Errors: EINTR (a signal), ENOBUFS (more than there was room for: some of it is lost, go on
    /// reading), ENODEV (the module was unloaded), EPROTO.
    [[nodiscard]] Result<std::vector<Happening>> read() noexcept;

private:
    struct State;
    explicit Monitor(std::unique_ptr<State> state) noexcept;

    std::unique_ptr<State> state_;
};

} // namespace dapx
