// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "rdma_channel.hpp"
#include "rdma_device.hpp"

#include <dapx/dapx.hpp>

#include <condition_variable>
#include <memory>
#include <optional>
#include <vector>

namespace dapx::verbs {

class Qp;

/// A CM id of librdmacm's layout. It gets ids of the module when it is known on which devices: one on
/// a device's address, or a listener on one for each address of each device, if its own is
/// unspecified.
///
/// Functions return 0 or an errno, unless they say otherwise.
class RdmaId : public rdma_cm_id {
public:
    /// @param channel nullptr: one of its own; then each function that begins something waits for its
    /// end, as librdmacm's synchronous ids. nullptr and errno.
    [[nodiscard]] static RdmaId* create(EventChannel* channel, void* consumer, rdma_port_space ps,
                                        ibv_qp_type qp_type) noexcept;

    /// nullptr: it is librdmacm's, or none.
    [[nodiscard]] static RdmaId* find(rdma_cm_id* id) noexcept;

    /// Deletes it when all its events are acknowledged. EBUSY: its queue pair is to be destroyed first.
    [[nodiscard]] int destroy() noexcept;

    [[nodiscard]] int bind(const core::Address& address) noexcept;
    [[nodiscard]] int listen(int backlog) noexcept;
    [[nodiscard]] int resolve_address(const core::Address& source, const core::Address& destination,
                                      int timeout_ms) noexcept;
    [[nodiscard]] int resolve_route(int timeout_ms) noexcept;
    [[nodiscard]] int connect(const rdma_conn_param* param) noexcept;
    [[nodiscard]] int accept(const rdma_conn_param* param) noexcept;
    [[nodiscard]] int establish() noexcept;
    /// As rdma_init_qp_attr(): what takes a queue pair that is not the id's to @p attr.qp_state.
    [[nodiscard]] int fill_step(ibv_qp_attr& attr, int& mask) noexcept;
    [[nodiscard]] int reject(std::span<const std::byte> private_data) noexcept;
    [[nodiscard]] int disconnect() noexcept;
    [[nodiscard]] int set_option(int level, int option, const void* value,
                                 std::size_t length) noexcept;
    [[nodiscard]] int migrate(EventChannel* to) noexcept;

    /// Has a channel of its own.
    [[nodiscard]] bool is_synchronous() const noexcept { return own_channel_ != nullptr; }

    /// The device that it is bound to. nullptr: none yet, or several.
    [[nodiscard]] RdmaDevice* device() const noexcept { return device_; }

    /// Where events of its queue pair go; with device().
    [[nodiscard]] const core::Evd& evd() const noexcept { return legs_.front().evd; }

    /// From now on this queue pair is what it connects; until forget_qp().
    void set_qp(Qp& qp) noexcept;
    void forget_qp() noexcept;

    /// For listeners: what requests get, when rdma_get_request() takes them.
    void set_request_qp(const ibv_qp_init_attr& attr) noexcept { request_qp_ = attr; }
    /// nullptr: nothing.
    [[nodiscard]] const ibv_qp_init_attr* request_qp() const noexcept
    {
        return request_qp_ ? &*request_qp_ : nullptr;
    }

    // --- For its channel, with the channel's lock ---------------------------------------------

    /// nullptr: none, or no memory. @p made: an id that came with it, and is to be added.
    /// @p readiness: is told how many of the module's events were taken.
    [[nodiscard]] RdmaEvent* take_event(RdmaId*& made, Readiness& readiness) noexcept;
    [[nodiscard]] RdmaEvent* new_event(rdma_cm_event_type type, int status) noexcept;
    [[nodiscard]] bool has_event() const noexcept;
    /// The module's that are there to be taken.
    [[nodiscard]] std::int64_t unread() const noexcept;

    /// An event was acknowledged.
    void acknowledge() noexcept;

    RdmaId(EventChannel* events, void* consumer, rdma_port_space port_space,
           ibv_qp_type type) noexcept;
    RdmaId(const RdmaId&) = delete;
    RdmaId& operator=(const RdmaId&) = delete;
    ~RdmaId();

private:
    /// On one device.
    struct Leg {
        RdmaDevice* device;
        core::Evd evd;
        core::CmId cm; ///< empty for a request that was answered
    };

    [[nodiscard]] EventChannel& events() const noexcept
    {
        return *static_cast<EventChannel*>(channel);
    }
    [[nodiscard]] static core::Result<core::Evd> make_evd(const RdmaDevice& device,
                                                          const EventChannel& events) noexcept;
    [[nodiscard]] int make_leg(RdmaDevice& device) noexcept;
    void drop_legs() noexcept;
    void keep_leg_of(const RdmaDevice& device) noexcept;
    [[nodiscard]] int bind_to(RdmaDevice& device, const core::Address& address) noexcept;
    [[nodiscard]] int bind_to_each(const core::Address& address) noexcept;
    [[nodiscard]] int bind_everywhere(const core::Address& address) noexcept;
    void set_device(RdmaDevice& device) noexcept;
    void set_addresses(const core::CmInfo& info) noexcept;
    [[nodiscard]] int set_options(const core::CmOptions& options) noexcept;
    [[nodiscard]] core::CmId* cm() noexcept;
    [[nodiscard]] int choose_qp(const rdma_conn_param* param) noexcept;
    [[nodiscard]] int check_connection(const rdma_conn_param* param,
                                       core::EndpointChanges::RdAtomic& rd_atomic) noexcept;
    [[nodiscard]] int complete() noexcept;

    [[nodiscard]] RdmaEvent* translate(Leg& leg, const core::Event& raw, RdmaId*& made) noexcept;
    [[nodiscard]] RdmaEvent* cm_event(Leg& leg, const core::Event& raw) noexcept;
    [[nodiscard]] RdmaEvent* connection_event(const core::Event& raw) noexcept;
    [[nodiscard]] RdmaEvent* async_event(const core::Event& raw) noexcept;
    [[nodiscard]] RdmaEvent* request_event(Leg& leg, const core::Event& raw,
                                           RdmaId*& made) noexcept;
    [[nodiscard]] int become_request(RdmaDevice& device, core::CmId request,
                                     const core::CmInfo& info) noexcept;

    std::unique_ptr<EventChannel> own_channel_;
    RdmaDevice* device_ = nullptr;
    std::vector<Leg> legs_;
    core::CmOptions options_; ///< of each leg
    std::optional<ibv_qp_init_attr> request_qp_;
    Qp* own_qp_ = nullptr;
    bool by_steps_ = false;     ///< own_qp_ is the program's, which takes it through its states
    bool establishes_ = false;  ///< and says when it is connected
    bool disconnected_ = false; ///< the event was got
    std::mutex ack_lock_;
    std::condition_variable acked_;
    std::uint64_t reported_ = 0;
    std::uint64_t acknowledged_ = 0;
};

/// Whether librdmacm is to make what @p caller wants made: its own calls do, for rsocket(7), and
/// those of programs without a device of dapx.
[[nodiscard]] bool is_for_librdmacm(const void* caller) noexcept;

/// Whether it made any: else what is none of this library's is nothing at all.
[[nodiscard]] bool librdmacm_was_used() noexcept;

/// Of rdma_*(): @p own on an id of this library's, @p theirs on one of librdmacm's.
template <class Own, class Theirs>
[[nodiscard]] int on_id(rdma_cm_id* id, Own own, Theirs theirs) noexcept
{
    if (RdmaId* mine = RdmaId::find(id))
        return zero_or_errno(own(*mine));
    return id != nullptr && librdmacm_was_used() ? theirs() : zero_or_errno(EINVAL);
}

} // namespace dapx::verbs
