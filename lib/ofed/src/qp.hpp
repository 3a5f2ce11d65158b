// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "cookie.hpp"
#include "cq.hpp"
#include "pd.hpp"
#include "send_ops.hpp"
#include "srq.hpp"
#include "xrcd.hpp"

#include <variant>

namespace dapx::verbs {

class RdmaEvent;
class RdmaId;

/// A queue pair. What is behind it differs: EndpointQp (RC, and the sending side of XRC), and
/// XrcRecvQp.
class Qp : public ibv_qp_ex {
public:
    [[nodiscard]] static Qp* of(ibv_qp* qp) noexcept
    {
        // The first member of what it is in.
        return static_cast<Qp*>(reinterpret_cast<ibv_qp_ex*>(qp));
    }

    Qp(const Qp&) = delete;
    Qp& operator=(const Qp&) = delete;
    virtual ~Qp();

    [[nodiscard]] Context& owner() const noexcept { return Context::of(qp_base.context); }

    /// The state that it is in now.
    [[nodiscard]] virtual ibv_qp_state current_state() const noexcept = 0;

    /// As ibv_modify_qp(): 0 or an errno.
    [[nodiscard]] int modify(const ibv_qp_attr& attr, int attr_mask) noexcept;

    /// As ibv_query_qp(); tells all that it knows.
    virtual void query(ibv_qp_attr& attr, ibv_qp_init_attr& init) noexcept = 0;

    /// Frees what the module has; then no completion and no event of it is found any more. 0 or an
    /// errno.
    [[nodiscard]] virtual int end() noexcept = 0;

    // --- Of one that the CM connects: 0 or an errno ----------------------------------------------

    using RdAtomic = core::EndpointChanges::RdAtomic;

    [[nodiscard]] virtual int connect(const core::CmId& id, const core::ConnectOptions& options,
                                      RdAtomic rd_atomic) noexcept = 0;
    /// On success @p request is empty.
    [[nodiscard]] virtual int accept(core::CmId&& request, const core::AcceptOptions& options,
                                     RdAtomic rd_atomic) noexcept = 0;
    /// By steps: answers the peer that accepted.
    [[nodiscard]] virtual int establish() noexcept { return EINVAL; }
    [[nodiscard]] virtual int disconnect() noexcept = 0;
    /// What came of the peer's with its answer.
    virtual void describe_connection(RdmaEvent& event) const noexcept = 0;

    /// Asynchronous events that were got.
    void reported() noexcept { ++reported_; }
    void await_acknowledgements() noexcept;

protected:
    /// @param cm that connects it; nullptr: the program does.
    Qp(Context& owner, ibv_qp_type type, void* consumer, RdmaId* cm) noexcept;

    /// From now on this id connects it, and not the one before.
    void join_cm(RdmaId& cm) noexcept;
    /// For the destructors of what it is in: from then on the CM asks it for nothing.
    void leave_cm() noexcept;

    /// Where events of its connection go; nullptr: nowhere.
    [[nodiscard]] const core::Evd* connect_evd() const noexcept;

    /// A change to a state, of which the mask was found right. 0 or an errno.
    [[nodiscard]] virtual int step(const ::dapx_qp_attr& step) noexcept = 0;
    [[nodiscard]] virtual int reset() noexcept = 0;
    [[nodiscard]] virtual int to_error() noexcept = 0;
    /// In RTS, of RC.
    [[nodiscard]] virtual int set_rnr_timer(std::uint8_t /*timer*/) noexcept { return EOPNOTSUPP; }

    /// What was set by modify().
    [[nodiscard]] const ibv_qp_attr& attributes() const noexcept { return attributes_; }

private:
    void remember(const ibv_qp_attr& attr, int attr_mask) noexcept;

    RdmaId* cm_;
    std::mutex modify_lock_;
    ibv_qp_attr attributes_{};
    std::atomic<unsigned> reported_ = 0;
};

/// The completion's queue pair, unless it came by XRC.
[[nodiscard]] inline std::uint32_t qp_num_of(const core::Event& event) noexcept
{
    const Qp* qp = qp_of(event.user_data());
    return qp != nullptr ? qp->qp_base.qp_num : 0;
}

/// RC, or the sending side of XRC: an endpoint.
class EndpointQp final : public Qp {
public:
    [[nodiscard]] static EndpointQp* of(ibv_qp* qp) noexcept
    {
        return static_cast<EndpointQp*>(Qp::of(qp));
    }

    EndpointQp(Pd& domain, const ibv_qp_init_attr_ex& attr, RdmaId* cm) noexcept;
    ~EndpointQp() override;

    /// The one of this number. nullptr: none.
    [[nodiscard]] static EndpointQp* find(const ibv_context* context,
                                          std::uint32_t qp_num) noexcept;

    /// It was made without @p cm, which connects it now. 0 or an errno.
    [[nodiscard]] int join(RdmaId& cm) noexcept;

    /// Makes the endpoint. 0 or an errno. @p cap what is wanted, and what came out.
    [[nodiscard]] int init(ibv_qp_cap& cap, std::uint64_t send_ops) noexcept;

    [[nodiscard]] int post_send(ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept;
    [[nodiscard]] int post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept;

    /// As ibv_qp_to_qp_ex(): nullptr unless it was made for that.
    [[nodiscard]] ibv_qp_ex* extended() noexcept { return has_send_ops_ ? this : nullptr; }

    [[nodiscard]] ibv_qp_state current_state() const noexcept override;
    void query(ibv_qp_attr& attr, ibv_qp_init_attr& init) noexcept override;
    [[nodiscard]] int end() noexcept override;

    [[nodiscard]] int connect(const core::CmId& id, const core::ConnectOptions& options,
                              RdAtomic rd_atomic) noexcept override;
    [[nodiscard]] int accept(core::CmId&& request, const core::AcceptOptions& options,
                             RdAtomic rd_atomic) noexcept override;
    [[nodiscard]] int establish() noexcept override;
    [[nodiscard]] int disconnect() noexcept override;
    void describe_connection(RdmaEvent& event) const noexcept override;

private:
    friend struct SendOps;

    [[nodiscard]] int step(const ::dapx_qp_attr& step) noexcept override;
    [[nodiscard]] int reset() noexcept override;
    [[nodiscard]] int to_error() noexcept override;
    [[nodiscard]] int set_rnr_timer(std::uint8_t timer) noexcept override;

    [[nodiscard]] bool is_xrc() const noexcept { return qp_base.qp_type == IBV_QPT_XRC_SEND; }
    [[nodiscard]] int post_one(const ibv_send_wr& wr) noexcept;
    /// RC: what has receives, and accepts connections; nullptr of XRC.
    [[nodiscard]] core::Endpoint* rc() noexcept { return std::get_if<core::Endpoint>(&endpoint_); }
    template <class T> [[nodiscard]] int take(core::Result<T> made) noexcept;
    [[nodiscard]] int renew() noexcept;
    void drop_completions() noexcept;

    ibv_qp_cap cap_{};
    bool signal_all_;
    bool made_by_cm_;
    bool has_send_ops_ = false;
    std::atomic<ibv_qp_state> step_ = IBV_QPS_RESET; ///< to which it was taken last
    std::mutex send_lock_;
    std::mutex recv_lock_;
    std::variant<std::monostate, core::Endpoint, core::XrcEndpoint> endpoint_; ///< set by init()
    core::EndpointBase* core_ = nullptr; ///< the same: what both kinds have
    SendBuilder builder_;                ///< with the lock of sends
};

/// ibv_send_flags as the module has them.
[[nodiscard]] std::uint16_t send_flags(unsigned flags, bool signal_all) noexcept;

} // namespace dapx::verbs
