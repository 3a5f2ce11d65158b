// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/dapx.h>
#include <dapx/error.hpp>
#include <dapx/flags.hpp>
#include <dapx/object_type.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace dapx {

namespace detail {
class Device;
}

/// What the module can do, without any device. Source: struct dapx_info.
struct ModuleInfo {
    bool rc = false;               ///< endpoints of reliable connections
    bool srq = false;              ///< plain shared receive queues
    bool rmr = false;              ///< remote memory regions
    bool xrc = false;              ///< XRC, on any device
    bool quiet = false;            ///< SendFlags::quiet, RecvFlags::quiet
    std::uint64_t features = 0;    ///< all feature bits, also those that this library does not know
    std::uint32_t max_objects = 0; ///< of one context
    std::uint32_t max_user_objects = 0; ///< of all contexts of one user
    std::uint32_t max_ring_depth = 0;   ///< entries of any ring
    std::uint32_t max_sge = 0;          ///< segments of a work request
    std::uint32_t max_inline = 0;       ///< bytes of inline data
    std::uint32_t max_backlog = 0;      ///< requests that wait on a listener
};

/// Abilities of a device. Source: enum dapx_device_cap.
enum class DeviceCap : std::uint64_t {
    atomics = DAPX_DEVICE_ATOMICS,             ///< compare-and-swap, fetch-and-add
    srq = DAPX_DEVICE_SRQ,                     ///< shared receive queues
    iwarp = DAPX_DEVICE_IWARP,                 ///< an iWARP device
    imm = DAPX_DEVICE_IMM,                     ///< immediate data
    qp_exchange = DAPX_DEVICE_QP_EXCHANGE,     ///< can connect by exchange of QP numbers
    solicited = DAPX_DEVICE_SOLICITED,         ///< tells solicited receives apart
    timewait_exit = DAPX_DEVICE_TIMEWAIT_EXIT, ///< has Connection::timewait_exit
};
template <> inline constexpr bool is_flags<DeviceCap> = true;

/// Limits of the attached device. Source: struct dapx_query_device.
struct DeviceAttributes {
    std::string name;
    DeviceCap caps{};
    std::uint64_t node_guid = 0; ///< network order
    std::uint64_t max_mr_size = 0;
    std::uint32_t max_ep = 0;
    std::uint32_t max_send_depth = 0;
    std::uint32_t max_recv_depth = 0;
    std::uint32_t max_srq_depth = 0;
    std::uint32_t max_send_sge = 0;
    std::uint32_t max_recv_sge = 0;
    std::uint32_t max_inline = 0;
    std::uint32_t max_rd_atomic = 0;
    std::uint32_t max_dest_rd_atomic = 0;
    std::uint32_t max_msg_size = 0;
    std::uint32_t ports = 0;
    std::uint16_t max_connect_data = 0;     ///< bytes of private data of a connect
    std::uint16_t max_accept_data = 0;      ///< of an accept
    std::uint16_t max_reject_data = 0;      ///< of a reject
    std::uint16_t active_mtu = 0;           ///< bytes of data in a packet, of the first port now
    std::uint16_t max_xrc_connect_data = 0; ///< of a connect by XRC
    std::uint16_t max_xrc_accept_data = 0;  ///< of XrcQp::accept()
};

/// What a handle names. Source: struct dapx_query_object.
struct ObjectInfo {
    std::uint32_t handle = 0;
    ObjectType type{};
    std::uint32_t users = 0; ///< objects that keep it from being freed
    std::uint32_t state = 0; ///< EpState or CmState, or 0
    std::uint64_t user_data = 0;
};

/// An open /dev/dapx: the owner of all objects made in it, bound to one RDMA device.
///
/// A copy names the same context; the file is closed with the last copy and the last object made
/// in it. Belongs to the process that opened it: after fork() the child's calls answer EPERM,
/// posting too (PostResult::wrong_process), Evd::poll() gives no event, and destroying or freeing an
/// object touches neither the parent's nor what the child made itself.
/// All functions may be called from any thread at any time.
class DAPX_EXPORT Context {
public:
    /// The device node.
    static constexpr const char* default_node = "/dev/dapx";

    /// Whether the kernel has the dapx module, which open_node() may still refuse.
    [[nodiscard]] static bool module_loaded() noexcept;

    /// Opens the node, without a device: enough for info().
    /// Errors: ENOENT (module not loaded), EACCES (permission), ENOTTY, EINVAL or ENXIO (not dapx's
    /// node).
    [[nodiscard]] static Result<Context> open_node(const char* node = default_node) noexcept;

    /// Opens the node and attaches the context to an RDMA device, e.g. "rxe0".
    /// Errors: as open_node() and attach().
    [[nodiscard]] static Result<Context> open(const std::string& device,
                                              const char* node = default_node) noexcept;

    /// Binds the context to a device, once.
    /// Errors: ENODEV, EOPNOTSUPP (a driver that is not known to be safe), EBUSY (already bound).
    /// Source: DAPX_ATTACH.
    [[nodiscard]] Result<void> attach(const std::string& device) noexcept;

    /// Source: DAPX_INFO.
    [[nodiscard]] Result<ModuleInfo> info() const noexcept;

    /// Errors: EBADFD (not attached), EIO (device removed). Source: DAPX_QUERY_DEVICE.
    [[nodiscard]] Result<DeviceAttributes> query_device() const noexcept;

    /// Errors: ENOENT. Source: DAPX_QUERY_OBJECT.
    [[nodiscard]] Result<ObjectInfo> query_object(std::uint32_t handle,
                                                  ObjectType type = ObjectType::any) const noexcept;

    /// The object with the next larger handle: starting with 0, lists all of the context.
    /// Errors: ENOENT after the last. Source: DAPX_QUERY_OBJECT with DAPX_QUERY_NEXT.
    [[nodiscard]] Result<ObjectInfo> next_object(std::uint32_t handle,
                                                 ObjectType type = ObjectType::any) const noexcept;

    /// The descriptor, for poll(2) sets and debugging; remains the context's.
    [[nodiscard]] int fd() const noexcept;

private:
    friend class Object;

    explicit Context(std::shared_ptr<const detail::Device> device) noexcept
        : device_(std::move(device))
    {
    }

    std::shared_ptr<const detail::Device> device_;
};

} // namespace dapx
