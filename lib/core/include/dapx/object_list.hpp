// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/address.hpp>
#include <dapx/error.hpp>
#include <dapx/object_type.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dapx {

/// An open file of /dev/dapx on this machine. A plain value: a snapshot.
/// Source: enum dapx_object_attr.
struct ContextEntry {
    std::uint32_t id = 0;      ///< not soon used again
    std::string device;        ///< "rxe0"; "": not attached, or the device was removed
    std::uint32_t pid = 0;     ///< 0: of another PID namespace
    std::string name;          ///< "" of another PID namespace, or of one that is just ending
    std::uint32_t user = 0;    ///< who opened it
    std::uint32_t objects = 0; ///< how many it has
    bool ending = false;       ///< it is taken down: its objects are not told any more
};

/// An object of a context. A plain value: a snapshot. What a class does not have, or what a
/// command was just working on, is not there. Source: enum dapx_object_attr.
struct ObjectEntry {
    std::uint32_t context = 0; ///< ContextEntry::id
    std::string device;        ///< as ContextEntry::device
    std::uint32_t pid = 0;
    std::string name;
    ObjectType type = ObjectType::any;
    std::uint32_t handle = 0; ///< as the process names it
    std::uint32_t users = 0;  ///< objects that forbid to free it
    bool busy = false;        ///< a command works on it
    /// Of an endpoint enum dapx_ep_state, of a CM id enum dapx_cm_state; of an RMR whether it is
    /// bound.
    std::optional<std::uint32_t> state;
    std::optional<std::uint32_t> pd;            ///< handle
    std::optional<std::uint32_t> mr;            ///< handle; of a bound RMR
    std::optional<std::uint32_t> srq;           ///< handle; of an endpoint
    std::optional<std::uint32_t> qp_num;        ///< of an endpoint, of a receive queue pair
    std::optional<std::uint32_t> remote_qp_num; ///< 0: not known
    std::optional<Address> local;
    std::optional<Address> remote;
    std::optional<std::uint32_t> number;   ///< of an XRC SRQ
    std::optional<std::uint32_t> domain;   ///< XrcDomainInfo::id
    std::optional<std::uint32_t> access;   ///< enum dapx_access
    std::optional<std::uint64_t> length;   ///< bytes
    std::optional<std::uint32_t> depth;    ///< entries of a ring
    std::optional<std::uint32_t> unread;   ///< events
    bool full = false;                     ///< more events wait for room
    std::optional<std::uint32_t> limit;    ///< of an SRQ
    std::optional<std::uint32_t> requests; ///< under way; waiting on a listener
    std::optional<std::uint32_t> receives; ///< that the device has
    std::optional<std::uint64_t> posted;   ///< since it was made
    std::optional<std::uint64_t> received; ///< messages
    std::optional<std::uint64_t> events;   ///< that an EVD was given
};

/// The contexts of all processes that the caller may see, and their objects: with CAP_NET_ADMIN
/// all of its network namespace, without it those of its own user. Needs no context, and no right
/// to open one. Waits for no other process' command.
/// Errors: ENOENT (module not loaded), EOPNOTSUPP (a module that is older), ENOMEM; others: the
/// sentence says what libnl says. Thread safety: any thread.
/// Source: DAPX_GENL_CMD_CONTEXT_GET, DAPX_GENL_CMD_OBJECT_GET.
[[nodiscard]] DAPX_EXPORT Result<std::vector<ContextEntry>> list_contexts() noexcept;
[[nodiscard]] DAPX_EXPORT Result<std::vector<ObjectEntry>> list_objects() noexcept;

} // namespace dapx
