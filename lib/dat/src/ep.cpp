// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "ep.hpp"

#include "functions.hpp"
#include "limits.hpp"

namespace dapx::dat {

namespace {

DAT_EP_STATE state_of(core::EpState state) noexcept
{
    switch (state) {
    case core::EpState::unconnected:
        return DAT_EP_STATE_UNCONNECTED;
    case core::EpState::reserved:
        return DAT_EP_STATE_RESERVED;
    case core::EpState::passive_pending:
        return DAT_EP_STATE_PASSIVE_CONNECTION_PENDING;
    case core::EpState::active_pending:
        return DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
    case core::EpState::tentative_pending:
        return DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;
    case core::EpState::completion_pending:
        return DAT_EP_STATE_COMPLETION_PENDING;
    case core::EpState::connected:
        return DAT_EP_STATE_CONNECTED;
    case core::EpState::disconnect_pending:
        return DAT_EP_STATE_DISCONNECT_PENDING;
    case core::EpState::disconnected:
        break;
    }
    return DAT_EP_STATE_DISCONNECTED;
}

/// DAT_INVALID_STATE, with the state as its subtype.
DAT_RETURN in_state(core::EpState state) noexcept
{
    switch (state) {
    case core::EpState::unconnected:
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED);
    case core::EpState::reserved:
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED);
    case core::EpState::passive_pending:
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_PASSCONNPENDING);
    case core::EpState::active_pending:
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_ACTCONNPENDING);
    case core::EpState::tentative_pending:
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_TENTCONNPENDING);
    case core::EpState::completion_pending:
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_COMPLPENDING);
    case core::EpState::connected:
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED);
    case core::EpState::disconnect_pending:
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCPENDING);
    case core::EpState::disconnected:
        break;
    }
    return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED);
}

constexpr bool in_range(DAT_COUNT value, DAT_COUNT limit) noexcept
{
    return value >= 0 && value <= limit;
}

} // namespace

DAT_RETURN error_of(const Ep& ep, const core::Error& why) noexcept
{
    return why.code() == EBADFD ? in_state(ep.state()) : dat::error_of(why, DAT_RESOURCE_TEP);
}

DAT_RETURN wrong_state(const Ep& ep, std::initializer_list<core::EpState> right) noexcept
{
    const core::EpState now = ep.state();
    return std::ranges::find(right, now) != right.end() ? DAT_RETURN{DAT_SUCCESS} : in_state(now);
}

DAT_EP_ATTR Ep::default_attr(const Ia& ia) noexcept
{
    const Limits limits = limits_of(ia);
    DAT_EP_ATTR attr{};
    attr.service_type = DAT_SERVICE_TYPE_RC;
    attr.max_message_size = ia.device().max_msg_size;
    attr.max_rdma_size = ia.device().max_msg_size;
    attr.qos = DAT_QOS_BEST_EFFORT;
    attr.max_recv_dtos = std::min(64, limits.dtos);
    attr.max_request_dtos = std::min(64, limits.dtos);
    attr.max_recv_iov = std::min(4, limits.segments);
    attr.max_request_iov = std::min(4, limits.segments);
    attr.max_rdma_read_in = std::min(4, limits.reads_in);
    attr.max_rdma_read_out = std::min(4, limits.reads_out);
    attr.srq_soft_hw = DAT_HW_DEFAULT;
    attr.max_rdma_read_iov = attr.max_request_iov;
    attr.max_rdma_write_iov = attr.max_request_iov;
    return attr;
}

bool Ep::check(const Ia& ia, const DAT_EP_ATTR& attr) noexcept
{
    const Limits limits = limits_of(ia);
    const bool quiet = ((attr.request_completion_flags | attr.recv_completion_flags) &
                        DAT_COMPLETION_UNSIGNALLED_FLAG) != 0;
    return attr.service_type == DAT_SERVICE_TYPE_RC && (!quiet || ia.module().quiet) &&
           attr.qos == DAT_QOS_BEST_EFFORT && attr.max_message_size <= ia.device().max_msg_size &&
           attr.max_rdma_size <= ia.device().max_msg_size &&
           in_range(attr.max_recv_dtos, limits.dtos) &&
           in_range(attr.max_request_dtos, limits.dtos) &&
           in_range(attr.max_recv_iov, limits.segments) &&
           in_range(attr.max_request_iov, limits.segments) &&
           in_range(attr.max_rdma_read_in, limits.reads_in) &&
           in_range(attr.max_rdma_read_out, limits.reads_out) &&
           in_range(attr.max_rdma_read_iov, limits.segments) &&
           in_range(attr.max_rdma_write_iov, limits.segments);
}

core::EndpointOptions Ep::options_of(const DAT_EP_ATTR& attr) noexcept
{
    const DAT_COUNT request_iov =
        std::max({attr.max_request_iov, attr.max_rdma_read_iov, attr.max_rdma_write_iov, 1});
    return {
        .send_depth = static_cast<std::uint32_t>(std::max(attr.max_request_dtos, 1)),
        .recv_depth = static_cast<std::uint32_t>(attr.max_recv_dtos),
        .max_send_sge = static_cast<std::uint16_t>(request_iov),
        .max_recv_sge = static_cast<std::uint16_t>(std::max(attr.max_recv_iov, 1)),
        .max_inline = 0,
        .max_rd_atomic = static_cast<std::uint16_t>(std::max(attr.max_rdma_read_out, 1)),
        .max_dest_rd_atomic = static_cast<std::uint16_t>(std::max(attr.max_rdma_read_in, 1)),
        .solicited = (attr.recv_completion_flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) != 0,
    };
}

Ep::Ep(Slot& slot, Ia& ia, core::Endpoint endpoint, const Parts& parts, const DAT_EP_ATTR& attr)
    : Object(slot, ia), endpoint_(std::move(endpoint)), number_(endpoint_.handle()), pz_(parts.pz),
      connect_(parts.connect), srq_(parts.srq), has_srq_(parts.srq != nullptr), made_(attr),
      log_(static_cast<std::uint32_t>(attr.max_request_dtos))
{
    use(parts.recv, parts.request, attr);
}

Ep::~Ep()
{
    use(nullptr, nullptr, attr_);
}

void Ep::use(Evd* recv, Evd* request, const DAT_EP_ATTR& attr) noexcept
{
    const auto count = [](Evd* evd, DAT_COMPLETION_FLAGS flags, int change) {
        if (evd == nullptr)
            return;
        if ((flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) != 0)
            evd->solicited_streams += change;
        if ((flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0)
            evd->quiet_streams += change;
    };
    const auto count_both = [&](int change) {
        count(recv_.get(), attr_.recv_completion_flags, change);
        // Of requests the flag is one of posting.
        count(request_.get(),
              static_cast<DAT_COMPLETION_FLAGS>(attr_.request_completion_flags &
                                                DAT_COMPLETION_UNSIGNALLED_FLAG),
              change);
    };
    count_both(-1);
    recv_ = recv == nullptr ? Needed<Evd>() : Needed<Evd>(recv);
    request_ = request == nullptr ? Needed<Evd>() : Needed<Evd>(request);
    attr_ = attr;
    request_flags_ = attr.request_completion_flags;
    recv_flags_ = attr.recv_completion_flags;
    count_both(1);
}

std::expected<std::unique_ptr<Ep>, DAT_RETURN> Ep::create(Ia& ia, const Parts& parts,
                                                          const DAT_EP_ATTR& attr) noexcept
{
    Slot* slot = Slot::take(handle_type, ia.provider().table);
    if (slot == nullptr)
        return std::unexpected(no_memory());
    const auto queue = [&](const Evd* evd) -> const core::Evd& {
        return evd == nullptr ? ia.no_evd() : evd->queue();
    };
    core::EndpointOptions options = options_of(attr);
    options.user_data = slot->user_data();
    auto endpoint =
        core::Endpoint::create(parts.pz == nullptr ? ia.no_pd() : parts.pz->domain(),
                               {.request = queue(parts.request),
                                .recv = &queue(parts.recv),
                                .connect = queue(parts.connect)},
                               options, parts.srq == nullptr ? nullptr : &parts.srq->queue());
    if (!endpoint) {
        slot->give_back();
        return std::unexpected(dat::error_of(endpoint.error(), DAT_RESOURCE_TEP));
    }
    auto ep = make_at<Ep>(slot, ia, std::move(*endpoint), parts, attr);
    if (ep == nullptr)
        return std::unexpected(no_memory());
    return ep;
}

std::unique_ptr<Ep> Ep::adopt(Ia& ia, core::Endpoint endpoint) noexcept
{
    auto ep = make<Ep>(ia, std::move(endpoint), Parts{}, default_attr(ia));
    if (ep == nullptr)
        return nullptr;
    const core::EndpointChanges changes = {.user_data = ep->user_data()};
    return ep->endpoint_.modify(changes) ? std::move(ep) : nullptr;
}

DAT_RETURN Ep::configured() const noexcept
{
    const std::lock_guard lock(mutex_);
    if (!pz_)
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_PZ);
    if (!connect_)
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_EVD_CONNECT);
    if (srq_ && !recv_)
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_EVD_RECV);
    return DAT_SUCCESS;
}

DAT_RETURN Ep::post_recv(std::span<const core::Segment> segments, DAT_DTO_COOKIE cookie,
                         bool quiet) noexcept
{
    const std::lock_guard lock(recv_mutex_);
    if (!recv_) [[unlikely]]
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_EVD_RECV);
    return result_of(endpoint_.post_recv(cookie.as_64, segments, core::Doorbell::now,
                                         quiet ? core::RecvFlags::quiet : core::RecvFlags::none));
}

std::span<std::byte> Ep::connection_changed(core::Connection what) noexcept
{
    const std::lock_guard lock(mutex_);
    // The passive side has seen its peer's with the request.
    if (!active_ ||
        (what != core::Connection::established && what != core::Connection::peer_rejected))
        return {};
    auto info = endpoint_.query();
    if (!info)
        return {};
    private_data_ = std::move(info->private_data);
    return private_data_;
}

DAT_RETURN Ep::connect(const core::Address& destination, DAT_TIMEOUT timeout,
                       std::span<const std::byte> private_data) noexcept
{
    if (const DAT_RETURN missing = configured())
        return missing;
    const std::lock_guard lock(mutex_);
    const bool same_family = ia().address().family() == destination.family();
    // The event may come at once.
    const bool was_active = std::exchange(active_, true);
    const auto begun =
        endpoint_.connect(destination, {.source = same_family ? ia().address() : core::Address(),
                                        .deadline = deadline_of(timeout),
                                        .private_data = private_data});
    if (!begun) {
        active_ = was_active;
        return error_of(*this, begun.error());
    }
    destination_ = destination;
    return DAT_SUCCESS;
}

core::Address Ep::destination() const noexcept
{
    const std::lock_guard lock(mutex_);
    return destination_;
}

DAT_RETURN Ep::disconnect(DAT_CLOSE_FLAGS flags) noexcept
{
    switch (state()) {
    case core::EpState::disconnected:
        return DAT_SUCCESS;
    case core::EpState::disconnect_pending:
        if (flags == DAT_CLOSE_GRACEFUL_FLAG)
            return DAT_SUCCESS;
        break;
    case core::EpState::active_pending:
    case core::EpState::completion_pending:
        flags = DAT_CLOSE_ABRUPT_FLAG;
        break;
    default:
        break;
    }
    const auto ended =
        flags == DAT_CLOSE_GRACEFUL_FLAG ? endpoint_.disconnect() : endpoint_.disconnect_now();
    // It may have ended by itself in between.
    if (ended || state() == core::EpState::disconnected)
        return DAT_SUCCESS;
    return error_of(*this, ended.error());
}

DAT_RETURN Ep::reset() noexcept
{
    const std::scoped_lock lock(request_mutex_, recv_mutex_, mutex_);
    if (state() == core::EpState::unconnected)
        return DAT_SUCCESS;
    if (const auto done = endpoint_.reset(); !done)
        return error_of(*this, done.error());
    private_data_.clear();
    active_ = false;
    destination_ = core::Address();
    return DAT_SUCCESS;
}

DAT_RETURN Ep::modify(DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM& param) noexcept
{
    constexpr DAT_EP_PARAM_MASK never =
        DAT_EP_FIELD_IA_HANDLE | DAT_EP_FIELD_EP_STATE | DAT_EP_FIELD_COMM |
        DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR | DAT_EP_FIELD_LOCAL_PORT_QUAL |
        DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR | DAT_EP_FIELD_REMOTE_PORT_QUAL;
    constexpr DAT_EP_PARAM_MASK sizes =
        DAT_EP_FIELD_EP_ATTR_ALL &
        ~(DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR | DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR |
          DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR | DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR);
    if ((mask & never) != 0 || (mask & ~DAT_EP_FIELD_ALL) != 0)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    const std::scoped_lock lock(request_mutex_, recv_mutex_, mutex_);
    using enum core::EpState;
    if (const DAT_RETURN wrong =
            wrong_state(*this, {unconnected, reserved, passive_pending, tentative_pending}))
        return wrong;

    core::EndpointChanges changes;
    Ref<Pz> pz;
    if ((mask & DAT_EP_FIELD_PZ_HANDLE) != 0) {
        if (const DAT_RETURN wrong = wrong_state(*this, {unconnected, tentative_pending}))
            return wrong;
        pz = Ref<Pz>(param.pz_handle);
        if (!pz || &pz->ia() != &ia())
            return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
        changes.pd = &pz->domain();
    }
    Ref<Evd> recv;
    Ref<Evd> request;
    Ref<Evd> connect;
    const auto take = [&](DAT_EP_PARAM_MASK field, DAT_EVD_HANDLE handle, DAT_EVD_FLAGS needed,
                          Ref<Evd>& evd, const core::Evd*& change) {
        if ((mask & field) == 0)
            return true;
        evd = Ref<Evd>(handle);
        if (!evd || &evd->ia() != &ia() || !evd->takes(needed))
            return false;
        change = &evd->queue();
        return true;
    };
    if (!take(DAT_EP_FIELD_RECV_EVD_HANDLE, param.recv_evd_handle, DAT_EVD_DTO_FLAG, recv,
              changes.recv_evd))
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV);
    if (!take(DAT_EP_FIELD_REQUEST_EVD_HANDLE, param.request_evd_handle, DAT_EVD_DTO_FLAG, request,
              changes.request_evd))
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
    if (!take(DAT_EP_FIELD_CONNECT_EVD_HANDLE, param.connect_evd_handle, DAT_EVD_CONNECTION_FLAG,
              connect, changes.connect_evd))
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);

    Ref<Srq> srq;
    if ((mask & DAT_EP_FIELD_SRQ_HANDLE) != 0 && param.srq_handle != DAT_HANDLE_NULL) {
        srq = Ref<Srq>(param.srq_handle);
        if (!srq || &srq->ia() != &ia() || srq->pz() != (pz ? pz.get() : pz_.get()))
            return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
    }
    Srq* const receives_from = (mask & DAT_EP_FIELD_SRQ_HANDLE) != 0 ? srq.get() : srq_.get();

    DAT_EP_ATTR attr = attr_;
    if ((mask & sizes) != 0) {
        merge(attr, mask, param.ep_attr);
        if (!check(ia(), attr))
            return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
        const core::EndpointOptions options = options_of(attr);
        changes.rd_atomic = core::EndpointChanges::RdAtomic{
            .initiator = options.max_rd_atomic, .responder = options.max_dest_rd_atomic};
    }
    const bool other_rings = receives_from != srq_.get() || !fits(attr);
    // The new rings are empty.
    if (other_rings) {
        const auto info = endpoint_.query();
        if (!info)
            return error_of(*this, info.error());
        if (info->receives != 0)
            return in_state(info->state);
    }
    if (const auto changed = endpoint_.modify(changes); !changed)
        return error_of(*this, changed.error());
    if (pz)
        pz_ = Needed<Pz>(pz.get());
    if (connect)
        connect_ = Needed<Evd>(connect.get());
    Evd* const takes_receives = recv ? recv.get() : recv_.get();
    Evd* const takes_requests = request ? request.get() : request_.get();
    // Now that it has the PZ and the EVDs. Without memory for the rings, it keeps them.
    const DAT_RETURN resized = other_rings ? resize(attr, receives_from) : DAT_RETURN{DAT_SUCCESS};
    use(takes_receives, takes_requests, resized == DAT_SUCCESS ? attr : attr_);
    return resized;
}

DAT_RETURN Ep::resize(const DAT_EP_ATTR& attr, Srq* srq) noexcept
try {
    log_.grow(static_cast<std::uint32_t>(attr.max_request_dtos));
    const auto resized =
        endpoint_.resize(options_of(attr), srq == nullptr ? nullptr : &srq->queue());
    if (!resized)
        return error_of(*this, resized.error());
    made_ = attr;
    srq_ = srq == nullptr ? Needed<Srq>() : Needed<Srq>(srq);
    has_srq_ = srq != nullptr;
    return DAT_SUCCESS;
} catch (const std::bad_alloc&) {
    return no_memory();
}

void Ep::merge(DAT_EP_ATTR& attr, DAT_EP_PARAM_MASK mask, const DAT_EP_ATTR& wanted) noexcept
{
    const auto take = [&](DAT_EP_PARAM_MASK field, auto DAT_EP_ATTR::* member) {
        if ((mask & field) != 0)
            attr.*member = wanted.*member;
    };
    take(DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE, &DAT_EP_ATTR::service_type);
    take(DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &DAT_EP_ATTR::max_message_size);
    take(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE, &DAT_EP_ATTR::max_rdma_size);
    take(DAT_EP_FIELD_EP_ATTR_QOS, &DAT_EP_ATTR::qos);
    take(DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &DAT_EP_ATTR::recv_completion_flags);
    take(DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS, &DAT_EP_ATTR::request_completion_flags);
    take(DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &DAT_EP_ATTR::max_recv_dtos);
    take(DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &DAT_EP_ATTR::max_request_dtos);
    take(DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, &DAT_EP_ATTR::max_recv_iov);
    take(DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, &DAT_EP_ATTR::max_request_iov);
    take(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN, &DAT_EP_ATTR::max_rdma_read_in);
    take(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT, &DAT_EP_ATTR::max_rdma_read_out);
    take(DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &DAT_EP_ATTR::srq_soft_hw);
    take(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV, &DAT_EP_ATTR::max_rdma_read_iov);
    take(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV, &DAT_EP_ATTR::max_rdma_write_iov);
}

bool Ep::fits(const DAT_EP_ATTR& attr) const noexcept
{
    const core::EndpointOptions wanted = options_of(attr);
    const core::EndpointOptions now = options_of(made_);
    return wanted.send_depth <= endpoint_.send_depth() &&
           (srq_ || wanted.recv_depth <= endpoint_.recv_depth()) &&
           wanted.max_send_sge <= now.max_send_sge && wanted.max_recv_sge <= now.max_recv_sge &&
           wanted.solicited == now.solicited;
}

DAT_RETURN Ep::query(DAT_EP_PARAM& param) noexcept
{
    const std::lock_guard lock(mutex_);
    auto info = endpoint_.query();
    if (!info)
        return error_of(*this, info.error());
    local_ = info->local ? info->local : ia().address();
    remote_ = info->remote;
    param = {};
    param.ia_handle = ia().consumer_handle();
    param.ep_state = state_of(info->state);
    param.local_ia_address_ptr = as_ia_address(local_);
    param.local_port_qual = info->local.port();
    if (remote_) {
        param.remote_ia_address_ptr = as_ia_address(remote_);
        param.remote_port_qual = remote_.port();
    }
    param.pz_handle = pz_.handle();
    param.recv_evd_handle = recv_.handle();
    param.request_evd_handle = request_.handle();
    param.connect_evd_handle = connect_.handle();
    param.srq_handle = srq_.handle();
    param.ep_attr = attr_;
    return DAT_SUCCESS;
}

DAT_RETURN Ep::status(DAT_EP_STATE* state, DAT_BOOLEAN* recv_idle,
                      DAT_BOOLEAN* request_idle) noexcept
{
    auto info = endpoint_.query();
    if (!info)
        return error_of(*this, info.error());
    if (state != nullptr)
        *state = state_of(info->state);
    if (recv_idle != nullptr)
        *recv_idle = info->receives == 0 ? DAT_TRUE : DAT_FALSE;
    if (request_idle != nullptr)
        *request_idle = info->requests == 0 ? DAT_TRUE : DAT_FALSE;
    return DAT_SUCCESS;
}

DAT_RETURN Ep::receives(DAT_COUNT& count) noexcept
{
    // Of a shared queue an endpoint has taken what has not ended: never seen from here.
    if (has_srq_) {
        count = DAT_VALUE_UNKNOWN;
        return DAT_SUCCESS;
    }
    const auto info = endpoint_.query();
    if (!info)
        return error_of(*this, info.error());
    count = static_cast<DAT_COUNT>(info->receives);
    return DAT_SUCCESS;
}

DAT_RETURN Ep::release() noexcept
{
    const DAT_RETURN result = freed(endpoint_.free());
    return DAT_GET_TYPE(result) == DAT_INVALID_STATE ? in_state(state()) : result;
}

namespace {

DAT_RETURN invalid_ep() noexcept
{
    return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

DAT_RETURN create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_EVD_HANDLE recv_handle,
                  DAT_EVD_HANDLE request_handle, DAT_EVD_HANDLE connect_handle, Srq* srq,
                  const DAT_EP_ATTR* wanted, DAT_EP_HANDLE* handle) noexcept
{
    const Ref<Ia> ia(ia_handle);
    if (!ia)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    const Ref<Pz> pz(pz_handle);
    if (pz_handle != DAT_HANDLE_NULL && (!pz || &pz->ia() != ia.get()))
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
    const Ref<Evd> recv(recv_handle);
    const Ref<Evd> request(request_handle);
    const Ref<Evd> connect(connect_handle);
    const auto wrong = [&](DAT_EVD_HANDLE given, const Ref<Evd>& evd, DAT_EVD_FLAGS needed) {
        return given != DAT_HANDLE_NULL && (!evd || &evd->ia() != ia.get() || !evd->takes(needed));
    };
    if (wrong(recv_handle, recv, DAT_EVD_DTO_FLAG))
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV);
    if (wrong(request_handle, request, DAT_EVD_DTO_FLAG))
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
    if (wrong(connect_handle, connect, DAT_EVD_CONNECTION_FLAG))
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
    if (srq != nullptr && (&srq->ia() != ia.get() || srq->pz() != pz.get()))
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
    const DAT_EP_ATTR attr = wanted == nullptr ? Ep::default_attr(*ia) : *wanted;
    if (!Ep::check(*ia, attr))
        return error(DAT_INVALID_PARAMETER, srq == nullptr ? DAT_INVALID_ARG6 : DAT_INVALID_ARG7);
    if (handle == nullptr)
        return error(DAT_INVALID_PARAMETER, srq == nullptr ? DAT_INVALID_ARG7 : DAT_INVALID_ARG8);
    auto ep = Ep::create(*ia,
                         {.pz = pz.get(),
                          .recv = recv.get(),
                          .request = request.get(),
                          .connect = connect.get(),
                          .srq = srq},
                         attr);
    if (!ep)
        return ep.error();
    return hand_out(std::move(*ep), *handle);
}

} // namespace

DAT_RETURN provider_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
                              DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
                              const DAT_EP_ATTR* attr, DAT_EP_HANDLE* handle) noexcept
{
    return create(ia, pz, recv, request, connect, nullptr, attr, handle);
}

DAT_RETURN provider_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
                                       DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
                                       DAT_SRQ_HANDLE srq_handle, const DAT_EP_ATTR* attr,
                                       DAT_EP_HANDLE* handle) noexcept
{
    const Ref<Srq> srq(srq_handle);
    if (!srq)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
    return create(ia, pz, recv, request, connect, srq.get(), attr, handle);
}

DAT_RETURN provider_ep_query(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask,
                             DAT_EP_PARAM* param) noexcept
{
    const Ref<Ep> ep(handle);
    if (!ep)
        return invalid_ep();
    if (const DAT_RETURN bad = check_query(mask, DAT_EP_FIELD_ALL, param))
        return bad;
    return ep->query(*param);
}

DAT_RETURN provider_ep_modify(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask,
                              const DAT_EP_PARAM* param) noexcept
{
    const Ref<Ep> ep(handle);
    if (!ep)
        return invalid_ep();
    if (param == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    return ep->modify(mask, *param);
}

DAT_RETURN provider_ep_get_status(DAT_EP_HANDLE handle, DAT_EP_STATE* state, DAT_BOOLEAN* recv_idle,
                                  DAT_BOOLEAN* request_idle) noexcept
{
    const Ref<Ep> ep(handle);
    if (!ep)
        return invalid_ep();
    return ep->status(state, recv_idle, request_idle);
}

DAT_RETURN provider_ep_recv_query(DAT_EP_HANDLE handle, DAT_COUNT* count, DAT_COUNT* span) noexcept
{
    const Ref<Ep> ep(handle);
    if (!ep)
        return invalid_ep();
    DAT_COUNT receives = 0;
    if (const DAT_RETURN failed = ep->receives(receives))
        return failed;
    if (count != nullptr)
        *count = receives;
    if (span != nullptr)
        *span = receives;
    return DAT_SUCCESS;
}

DAT_RETURN provider_ep_connect(DAT_EP_HANDLE handle, DAT_IA_ADDRESS_PTR address,
                               DAT_CONN_QUAL qualifier, DAT_TIMEOUT timeout, DAT_COUNT size,
                               const DAT_PVOID data, DAT_QOS qos, DAT_CONNECT_FLAGS flags) noexcept
{
    const Ref<Ep> ep(handle);
    if (!ep)
        return invalid_ep();
    if (address == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    const core::Address destination(*address);
    if (!destination)
        return error(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
    if (port_of(qualifier) == 0)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    if (timeout == 0)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    const auto told = private_data(size, data, ep->ia().device().max_connect_data);
    if (!told)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
    if (qos != DAT_QOS_BEST_EFFORT || (flags & DAT_CONNECT_MULTIPATH_REQUIRED_FLAG) != 0)
        return error(DAT_MODEL_NOT_SUPPORTED);
    return ep->connect(destination.with_port(port_of(qualifier)), timeout, *told);
}

DAT_RETURN provider_ep_dup_connect(DAT_EP_HANDLE handle, DAT_EP_HANDLE other_handle,
                                   DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data,
                                   DAT_QOS qos) noexcept
{
    const Ref<Ep> ep(handle);
    if (!ep)
        return invalid_ep();
    const Ref<Ep> other(other_handle);
    if (!other)
        return invalid_ep();
    if (timeout == 0)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    const auto told = private_data(size, data, ep->ia().device().max_connect_data);
    if (!told)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
    if (qos != DAT_QOS_BEST_EFFORT)
        return error(DAT_MODEL_NOT_SUPPORTED);
    const core::Address destination = other->destination();
    if (!destination)
        return in_state(other->state());
    return ep->connect(destination, timeout, *told);
}

DAT_RETURN provider_ep_disconnect(DAT_EP_HANDLE handle, DAT_CLOSE_FLAGS flags) noexcept
{
    const Ref<Ep> ep(handle);
    if (!ep)
        return invalid_ep();
    if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    return ep->disconnect(flags);
}

DAT_RETURN provider_ep_reset(DAT_EP_HANDLE handle) noexcept
{
    const Ref<Ep> ep(handle);
    if (!ep)
        return invalid_ep();
    return ep->reset();
}

DAT_RETURN provider_ep_free(DAT_EP_HANDLE handle) noexcept
{
    {
        const Ref<Ep> ep(handle);
        if (!ep)
            return invalid_ep();
        using enum core::EpState;
        const core::EpState now = ep->state();
        if (now == reserved || now == passive_pending || now == tentative_pending)
            return in_state(now);
    }
    return free_handle<Ep>(handle, DAT_INVALID_HANDLE_EP, DAT_INVALID_STATE_EP_NOTREADY);
}

namespace {

/// The library's call for a request of segments. @p room: bytes at the other end, as far as told.
template <class Post>
DAT_RETURN post(DAT_EP_HANDLE handle, DAT_DTOS operation, DAT_COUNT count,
                const DAT_LMR_TRIPLET* triplets, DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
                DAT_RETURN_SUBTYPE flags_argument, DAT_VLEN room, Post call) noexcept
{
    const Ref<Ep> ep(handle);
    if (!ep) [[unlikely]]
        return invalid_ep();
    Segments segments;
    if (!segments.assign(count, triplets)) [[unlikely]]
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    if (!valid(flags, ep->request_flags())) [[unlikely]]
        return error(DAT_INVALID_PARAMETER, flags_argument);
    if (segments.bytes() > room) [[unlikely]]
        return error(DAT_LENGTH_ERROR);
    const Request request = {.cookie = cookie.as_64,
                             .length = static_cast<DAT_SEG_LENGTH>(segments.bytes()),
                             .operation = operation};
    return ep->post_request(request, flags, [&](std::uint64_t number, core::SendFlags how) {
        const core::PostResult posted = call(ep->endpoint(), number, segments.span(), how);
        return posted == core::PostResult::bad_state ? in_state(ep->state()) : result_of(posted);
    });
}

core::RemoteAddress remote_of(const DAT_RMR_TRIPLET& triplet) noexcept
{
    return {.addr = target_of(triplet), .rkey = triplet.rmr_context};
}

} // namespace

DAT_RETURN provider_ep_post_send(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET* triplets,
                                 DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags) noexcept
{
    return post(handle, DAT_DTO_SEND, count, triplets, cookie, flags, DAT_INVALID_ARG5, ~DAT_VLEN{},
                [](core::Endpoint& endpoint, std::uint64_t number, auto segments, auto how) {
                    return endpoint.post_send(number, segments, how);
                });
}

DAT_RETURN provider_ep_post_rdma_read(DAT_EP_HANDLE handle, DAT_COUNT count,
                                      DAT_LMR_TRIPLET* triplets, DAT_DTO_COOKIE cookie,
                                      const DAT_RMR_TRIPLET* remote,
                                      DAT_COMPLETION_FLAGS flags) noexcept
{
    if (remote == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
    return post(handle, DAT_DTO_RDMA_READ, count, triplets, cookie, flags, DAT_INVALID_ARG6,
                remote->segment_length,
                [&](core::Endpoint& endpoint, std::uint64_t number, auto segments, auto how) {
                    return endpoint.post_read(number, segments, remote_of(*remote), how);
                });
}

DAT_RETURN provider_ep_post_rdma_write(DAT_EP_HANDLE handle, DAT_COUNT count,
                                       DAT_LMR_TRIPLET* triplets, DAT_DTO_COOKIE cookie,
                                       const DAT_RMR_TRIPLET* remote,
                                       DAT_COMPLETION_FLAGS flags) noexcept
{
    if (remote == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
    return post(handle, DAT_DTO_RDMA_WRITE, count, triplets, cookie, flags, DAT_INVALID_ARG6,
                remote->segment_length,
                [&](core::Endpoint& endpoint, std::uint64_t number, auto segments, auto how) {
                    return endpoint.post_write(number, segments, remote_of(*remote), how);
                });
}

DAT_RETURN provider_ep_post_recv(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET* triplets,
                                 DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags) noexcept
{
    const Ref<Ep> ep(handle);
    if (!ep)
        return invalid_ep();
    if (ep->has_srq())
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
    Segments segments;
    if (!segments.assign(count, triplets))
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    const bool quiet = (flags & ep->recv_flags() & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0;
    if (flags != DAT_COMPLETION_DEFAULT_FLAG &&
        !(quiet && flags == DAT_COMPLETION_UNSIGNALLED_FLAG))
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
    return ep->post_recv(segments.span(), cookie, quiet);
}

} // namespace dapx::dat
