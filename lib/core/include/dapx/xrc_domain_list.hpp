// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/error.hpp>
#include <dapx/qp.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dapx {

/// An XRC domain of this machine, and what is in it. A plain value: a snapshot.
/// Source: enum dapx_xrcd_attr.
struct XrcDomainInfo {
    /// A process that has it open.
    struct Process {
        std::uint32_t pid = 0;   ///< 0: of another PID namespace; all of these are one entry
        std::string name;        ///< "" of another PID namespace, or of one that is just ending
        std::uint32_t opens = 0; ///< how often
    };
    /// A shared receive queue.
    struct Srq {
        std::uint32_t number = 0;
        std::uint32_t pid = 0; ///< of the process that made it
    };
    /// A receive queue pair.
    struct Qp {
        std::uint32_t number = 0;
        QpState state = QpState::reset;
        std::uint32_t registrations = 0; ///< contexts that are registered with it
        std::uint64_t messages = 0;      ///< that arrived whole
        std::uint64_t not_ready = 0;     ///< times that an SRQ had no receive for one
    };

    std::uint32_t id = 0;            ///< not soon used again
    std::string device;              ///< "rxe0"
    std::optional<std::string> path; ///< none: of no file; "": longer than a path may be
    bool partial = false;            ///< the lists have only what is the caller's user's own
    std::uint32_t total_opens = 0;   ///< also of others
    std::uint32_t total_srqs = 0;
    std::uint32_t total_qps = 0;
    std::vector<Process> processes;
    std::vector<Srq> srqs;
    std::vector<Qp> qps;
};

/// The XRC domains of all RDMA devices that the caller's network namespace has. Needs no context,
/// and no right to open one. With CAP_NET_ADMIN one sees all, without it what one's own user has
/// a part in. On a machine where domains come and go all the time some of these may be missing,
/// or be told as they were.
/// Errors: ENOENT (module not loaded), EOPNOTSUPP (a module that is older), ENOMEM; others: the
/// sentence says what libnl says. Thread safety: any thread. Source: DAPX_GENL_CMD_XRCD_GET.
[[nodiscard]] DAPX_EXPORT Result<std::vector<XrcDomainInfo>> list_xrc_domains() noexcept;

} // namespace dapx
