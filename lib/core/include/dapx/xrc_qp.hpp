// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/object.hpp>
#include <dapx/qp.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace dapx {

class CmId;
class Evd;
class XrcDomain;

/// What XrcQp::query() tells. Source: struct dapx_xrc_qp_query.
struct XrcQpInfo {
    QpState state{};
    std::uint32_t registration = 0;  ///< handle of this context's; 0: it has none
    std::uint32_t registrations = 0; ///< contexts that are registered with it
    std::uint64_t messages = 0;      ///< that arrived whole
    std::uint64_t not_ready = 0;     ///< times that a queue had no receive for one
    std::uint8_t port = 0;           ///< as set by init()
    std::uint16_t pkey_index = 0;
    Access refused{};    ///< likewise
    ReadyToReceive path; ///< as set by ready_to_receive(), or by the CM as far as it tells
};

/// A registration with an XRC receive queue pair: the receiving end of a connection with one
/// XrcEndpoint, for all shared receive queues of its domain.
///
/// The queue pair belongs to the domain, not to this process: whoever has the domain open can
/// register with it by its number, and it lives until the last registration ends, by free(), by
/// unregister() or with a context. Its events, with its number, go to all that are registered:
/// AsyncEvent::xrc_qp_established, xrc_qp_disconnected, xrc_qp_error.
///
/// It is connected by the CM, accept(), or by exchange of numbers, init() and ready_to_receive();
/// once, by any one that is registered. Move-only; see Object for its end. Domain and EVD are used
/// until then. Thread safety: any thread.
class DAPX_EXPORT XrcQp : public Object {
public:
    /// Makes one, and registers with it.
    /// @param evd where its events go; nullptr for nowhere.
    /// @param user_data comes with each of its events.
    /// Errors: EDQUOT, ENOMEM, EIO. Source: DAPX_XRC_QP_CREATE; ibv_create_xrc_rcv_qp(3).
    [[nodiscard]] static Result<XrcQp> create(const XrcDomain& domain, const Evd* evd = nullptr,
                                              std::uint64_t user_data = 0) noexcept;

    /// Registers with the one of number @p qp_num. A context has one registration at the most, as
    /// who makes a queue pair has. If its connection has ended already, the event that told so comes
    /// to @p evd at once.
    /// Errors: EINVAL (the domain has none of this number), EEXIST (this context is registered with
    /// it), EDQUOT, ENOMEM, EIO.
    /// Source: DAPX_XRC_QP_REGISTER with DAPX_XRC_QP_REGISTER_EXCL; ibv_reg_xrc_rcv_qp(3).
    [[nodiscard]] static Result<XrcQp> register_with(const XrcDomain& domain, std::uint32_t qp_num,
                                                     const Evd* evd = nullptr,
                                                     std::uint64_t user_data = 0) noexcept;

    /// Its number, by which it is registered with and connected.
    [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

    /// First step of a connection by exchange of numbers. @p port own port, from 1. @p refused: remote
    /// rights that the peer does not get, whatever the memory permits.
    /// Errors: EOPNOTSUPP (iWARP), EBADFD (not its first step, or accepted), EINVAL, EIO.
    /// Source: DAPX_XRC_QP_MODIFY, DAPX_QP_INIT.
    [[nodiscard]] Result<void> init(std::uint8_t port = 1, std::uint16_t pkey_index = 0,
                                    Access refused = {}) noexcept;

    /// Second and last step: messages come. ReadyToReceive::min_rnr_timer: how long the peer waits
    /// when a queue has no receive. Errors: as init(). Source: DAPX_QP_RTR.
    [[nodiscard]] Result<void> ready_to_receive(const ReadyToReceive& path) noexcept;

    /// May follow, and has no effect: for programs that make this step. Source: DAPX_QP_RTS.
    [[nodiscard]] Result<void> ready_to_send(const ReadyToSend& options) noexcept;

    /// Says yes to a request with CmInfo::xrc. What becomes of it the events tell. On success
    /// @p request is empty.
    /// @param private_data for the peer, which has them in XrcEndpoint::query(); at most
    ///                     DeviceAttributes::max_xrc_accept_data bytes, 188.
    /// Errors: EPROTO (a request that is not of XRC), EBADFD (not its first step; no request),
    /// EINVAL (too much data), ENOENT, EIO. Source: DAPX_XRC_QP_ACCEPT.
    [[nodiscard]] Result<void> accept(CmId&& request,
                                      std::span<const std::byte> private_data = {}) noexcept;

    /// Ends the connection for all that are registered: each has AsyncEvent::xrc_qp_disconnected,
    /// and no further message arrives. The registration stays.
    /// Errors: EBADFD (not connected, or ended already), EINVAL (it is gone), EIO.
    /// Source: DAPX_XRC_QP_DISCONNECT.
    [[nodiscard]] Result<void> disconnect() noexcept;

    /// Errors: EINVAL (it is gone), EIO. Source: DAPX_XRC_QP_QUERY.
    [[nodiscard]] Result<XrcQpInfo> query() const noexcept;

    /// Gives the registration up to its number: it ends by unregister(), or with the context.
    /// @return the number; the object is empty.
    std::uint32_t release() noexcept;

    // --- By number: for whoever has the domain open --------------------------------------------

    /// Also for contexts that are not registered. Errors: EINVAL (no such number), EIO.
    [[nodiscard]] static Result<XrcQpInfo> query(const XrcDomain& domain,
                                                 std::uint32_t qp_num) noexcept;

    /// Any step in the form of the ABI. Errors: as init(), EACCES (not registered), EINVAL (no such
    /// number). Source: DAPX_XRC_QP_MODIFY; ibv_modify_xrc_rcv_qp(3).
    [[nodiscard]] static Result<void> step(const XrcDomain& domain, std::uint32_t qp_num,
                                           const ::dapx_qp_attr& step) noexcept;

    /// Errors: as above, EACCES (not registered), EINVAL (no such number).
    [[nodiscard]] static Result<void> accept(const XrcDomain& domain, std::uint32_t qp_num,
                                             CmId&& request,
                                             std::span<const std::byte> private_data = {}) noexcept;

    /// Errors: as above, EACCES (not registered), EINVAL (no such number).
    [[nodiscard]] static Result<void> disconnect(const XrcDomain& domain,
                                                 std::uint32_t qp_num) noexcept;

    /// Ends this context's registration: what free() does, for who has no object of it.
    /// Errors: EINVAL (no such number, or not registered), EIO.
    /// Source: DAPX_XRC_QP_UNREGISTER; ibv_unreg_xrc_rcv_qp(3).
    [[nodiscard]] static Result<void> unregister(const XrcDomain& domain,
                                                 std::uint32_t qp_num) noexcept;

    XrcQp(XrcQp&&) noexcept = default;
    XrcQp& operator=(XrcQp&&) noexcept = default;
    ~XrcQp() = default;

private:
    XrcQp(std::shared_ptr<const detail::Device> device, std::uint32_t handle, std::uint32_t domain,
          std::uint32_t number) noexcept
        : Object(std::move(device), ObjectType::xrc_qp, handle), domain_(domain), number_(number)
    {
    }

    [[nodiscard]] static Result<void> accept(const Object& by, int fd, std::uint32_t domain,
                                             std::uint32_t qp_num, CmId& request,
                                             std::span<const std::byte> private_data) noexcept;

    std::uint32_t domain_ = 0;
    std::uint32_t number_ = 0;
};

} // namespace dapx
