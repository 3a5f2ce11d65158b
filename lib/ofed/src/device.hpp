// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "verbs_abi.hpp"

#include <string>

namespace dapx::verbs {

/// An RDMA device by way of dapx: "dapx_rxe0" for rxe0. There is one for each name, made when it is
/// first seen, and it stays: programs keep pointers to devices beyond the list.
class Device : public ibv_device {
public:
    /// That of libibverbs's device @p behind. nullptr: no memory.
    [[nodiscard]] static Device* of(const ibv_device& behind) noexcept;

    /// @p device as one of these, or nullptr.
    [[nodiscard]] static Device* find(const ibv_device* device) noexcept;

    /// Of the device behind: "rxe0".
    [[nodiscard]] const std::string& ibdev() const noexcept { return ibdev_; }

    /// Its own, in network order: what the device behind has, marked as locally administered. So
    /// whoever looks for that device by its GUID, as librdmacm does, does not find this one.
    [[nodiscard]] __be64 guid() const noexcept { return guid_; }

    /// A context of libibverbs on the device behind, or nullptr and errno.
    [[nodiscard]] ibv_context* open_behind() const noexcept;

    /// For of().
    Device(const ibv_device& behind, __be64 guid_behind);

private:
    std::string ibdev_;
    __be64 guid_;
    Device* next_ = nullptr; ///< all of them, for good
};

} // namespace dapx::verbs
