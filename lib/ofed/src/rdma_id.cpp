// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "rdma_id.hpp"

#include "qp.hpp"
#include "qp_steps.hpp"
#include "registry.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <sys/socket.h>
#include <unistd.h>

namespace dapx::verbs {

namespace {

Registry<RdmaId> ids;

/// More wait in the module.
constexpr std::uint32_t event_depth = 16;

/// The errno that librdmacm has for it.
int error_of(const core::Error& error) noexcept
{
    return error.code() == EBADFD ? EINVAL : error.code();
}

template <class Value> int error_of(const core::Result<Value>& result) noexcept
{
    return result ? 0 : error_of(result.error());
}

std::span<const std::byte> private_data_of(const rdma_conn_param* param) noexcept
{
    if (param == nullptr || param->private_data == nullptr)
        return {};
    return {static_cast<const std::byte*>(param->private_data), param->private_data_len};
}

core::Deadline deadline_in(int ms) noexcept
{
    return core::deadline_after(std::chrono::milliseconds(ms));
}

bool is_loopback(const core::Address& address) noexcept
{
    return address.host().starts_with("127.") || address.host() == "::1";
}

void set_address(sockaddr_storage& to, const core::Address& from) noexcept
{
    std::memcpy(&to, &from.storage(), sizeof(to));
}

/// The GID that RoCE has for it.
ibv_gid gid_of(const core::Address& address) noexcept
{
    ibv_gid gid{};
    if (address.family() == AF_INET6) {
        const auto& in6 = reinterpret_cast<const sockaddr_in6&>(address.storage());
        std::memcpy(gid.raw, &in6.sin6_addr, sizeof(gid.raw));
    } else if (address.family() == AF_INET) {
        const auto& in = reinterpret_cast<const sockaddr_in&>(address.storage());
        gid.raw[10] = gid.raw[11] = 0xff;
        std::memcpy(gid.raw + 12, &in.sin_addr, sizeof(in.sin_addr));
    }
    return gid;
}

/// Why no device has @p address: it is an interface's without one, or nobody's here.
int no_device_with(const core::Address& address) noexcept
{
    const int fd = socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    const core::Address any_port = address.with_port(0);
    const bool local = ::bind(fd, reinterpret_cast<const sockaddr*>(&any_port.storage()),
                              sizeof(any_port.storage())) == 0;
    close(fd);
    return local ? ENODEV : EADDRNOTAVAIL;
}

int apply(core::CmOptions options, const RdmaDevice& device, core::CmId& cm) noexcept
{
    // iWARP has no such timeout; librdmacm accepts it there, too.
    if (core::has(device.context().attributes().caps, core::DeviceCap::iwarp))
        options.ack_timeout.reset();
    return options == core::CmOptions{} ? 0 : error_of(cm.modify(options));
}

/// Numbers that events have with librdmacm: of InfiniBand's reasons to reject.
constexpr int no_such_service = 8;
constexpr int by_consumer = 28;

/// How many reads and atomics; @p at_most the device's.
std::uint16_t depth_of(unsigned wanted, std::uint32_t at_most) noexcept
{
    return static_cast<std::uint16_t>(std::min<std::uint32_t>(wanted, at_most));
}

} // namespace

// ------------------------------------------------------------------------ coming and going

RdmaId::RdmaId(EventChannel* events, void* consumer, rdma_port_space port_space,
               ibv_qp_type type) noexcept
    : rdma_cm_id{}
{
    channel = events;
    context = consumer;
    ps = port_space;
    qp_type = type;
}

RdmaId::~RdmaId()
{
    ids.erase(*this);
}

RdmaId* RdmaId::create(EventChannel* channel, void* consumer, rdma_port_space ps,
                       ibv_qp_type qp_type) noexcept
{
    std::unique_ptr<EventChannel> own;
    if (channel == nullptr) {
        own.reset(EventChannel::create());
        if (!own)
            return nullptr;
        channel = own.get();
    }
    std::unique_ptr<RdmaId> id(new (std::nothrow) RdmaId(channel, consumer, ps, qp_type));
    if (!id || !ids.insert(*id))
        return failed_null<RdmaId>(ENOMEM);
    id->own_channel_ = std::move(own);
    return id.release();
}

RdmaId* RdmaId::find(rdma_cm_id* id) noexcept
{
    return ids.contains(id) ? static_cast<RdmaId*>(id) : nullptr;
}

int RdmaId::destroy() noexcept
{
    if (own_qp_ != nullptr)
        return EBUSY;
    events().remove(*this);
    if (event != nullptr)
        rdma_ack_cm_event(event);
    event = nullptr;
    {
        std::unique_lock guard(ack_lock_);
        acked_.wait(guard, [this] { return acknowledged_ == reported_; });
    }
    // Nothing of it signals the channel any more.
    legs_.clear();
    events().settle();
    delete this;
    return 0;
}

void RdmaId::acknowledge() noexcept
{
    const std::lock_guard guard(ack_lock_);
    ++acknowledged_;
    acked_.notify_all();
}

void RdmaId::set_qp(Qp& of_this) noexcept
{
    own_qp_ = &of_this;
}

void RdmaId::forget_qp() noexcept
{
    const std::lock_guard guard(events().lock());
    own_qp_ = nullptr;
    qp = nullptr;
}

// ------------------------------------------------------------------------ devices, addresses

core::Result<core::Evd> RdmaId::make_evd(const RdmaDevice& device,
                                         const EventChannel& events) noexcept
{
    auto evd = core::Evd::create(device.context().core(), {.depth = event_depth});
    if (evd)
        if (auto done = evd->set_eventfd(events.fd); !done)
            return std::unexpected(std::move(done).error());
    return evd;
}

int RdmaId::make_leg(RdmaDevice& device) noexcept
try {
    auto evd = make_evd(device, events());
    if (!evd)
        return error_of(evd);
    auto made = core::CmId::create(*evd);
    if (!made)
        return error_of(made);
    if (const int error = apply(options_, device, *made))
        return error;
    const std::lock_guard guard(events().lock());
    legs_.push_back({.device = &device, .evd = std::move(*evd), .cm = std::move(*made)});
    return 0;
} catch (const std::bad_alloc&) {
    return ENOMEM;
}

void RdmaId::drop_legs() noexcept
{
    const std::lock_guard guard(events().lock());
    legs_.clear();
}

void RdmaId::keep_leg_of(const RdmaDevice& device) noexcept
{
    const std::lock_guard guard(events().lock());
    const auto kept = std::ranges::find(legs_, &device, &Leg::device);
    const std::size_t left = kept != legs_.end() ? 1 : 0;
    // Not one over another: what an EVD is used by goes before it.
    if (left != 0)
        std::swap(legs_.front(), *kept);
    while (legs_.size() > left)
        legs_.pop_back();
}

void RdmaId::set_device(RdmaDevice& device) noexcept
{
    device_ = &device;
    verbs = device.verbs();
    if (pd == nullptr)
        pd = device.pd();
    port_num = 1;
}

void RdmaId::set_addresses(const core::CmInfo& info) noexcept
{
    set_address(route.addr.src_storage, info.local);
    set_address(route.addr.dst_storage, info.remote);
    route.addr.addr.ibaddr = {
        .sgid = gid_of(info.local), .dgid = gid_of(info.remote), .pkey = 0xffff};
}

int RdmaId::bind_to(RdmaDevice& device, const core::Address& address) noexcept
{
    if (const int error = make_leg(device))
        return error;
    if (auto done = legs_.back().cm.bind(address); !done) {
        const std::lock_guard guard(events().lock());
        legs_.pop_back();
        return error_of(done);
    }
    return 0;
}

/// To each address, as the module's ids are of one device: the unspecified one would be taken by the
/// first of them.
int RdmaId::bind_to_each(const core::Address& address) noexcept
{
    const bool one_family = address.family() == AF_INET || options_.one_family.value_or(false);
    std::uint16_t port = address.port();
    for (RdmaDevice* device : RdmaDevice::all()) {
        for (const core::Address& own : device->addresses()) {
            if (own.family() != address.family() && one_family)
                continue;
            if (const int error = bind_to(*device, own.with_port(port)))
                return error;
            if (port != 0)
                continue;
            const auto got = legs_.back().cm.local_address();
            if (!got)
                return error_of(got);
            port = got->port();
        }
    }
    set_address(route.addr.src_storage, address.with_port(port));
    return legs_.empty() ? ENODEV : 0;
}

int RdmaId::bind_everywhere(const core::Address& address) noexcept
{
    // A port that is free at one address may be in use at another.
    constexpr int attempts = 8;
    int error = 0;
    for (int i = 0; i < (address.port() != 0 ? 1 : attempts); ++i) {
        error = bind_to_each(address);
        if (error == 0)
            return 0;
        drop_legs();
        if (error != EADDRINUSE)
            break;
    }
    return error;
}

int RdmaId::bind(const core::Address& address) noexcept
{
    if (!legs_.empty() || !address)
        return EINVAL;
    // The RDMA CM takes a loopback address for the unspecified one.
    if (address.is_any() || is_loopback(address))
        return bind_everywhere(address);
    RdmaDevice* on = RdmaDevice::with(address);
    if (on == nullptr)
        return no_device_with(address);
    if (const int error = bind_to(*on, address))
        return error;
    set_device(*on);
    if (const auto got = legs_.front().cm.local_address())
        set_address(route.addr.src_storage, *got);
    return 0;
}

core::CmId* RdmaId::cm() noexcept
{
    if (device_ == nullptr || !legs_.front().cm)
        return nullptr;
    return &legs_.front().cm;
}

int RdmaId::resolve_address(const core::Address& from, const core::Address& destination,
                            int timeout_ms) noexcept
{
    if (!destination || destination.is_any())
        return EINVAL;
    if (from && (!from.is_any() || from.port() != 0) && legs_.empty())
        if (const int error = bind(from))
            return error;
    core::Address source;
    if (device_ == nullptr) {
        RdmaDevice* on = nullptr;
        int error = RdmaDevice::route_to(destination, on, source);
        if (error == ENODEV && is_loopback(source)) {
            const std::vector<RdmaDevice*> all = RdmaDevice::all();
            on = all.empty() ? nullptr : all.front();
            source = {};
            error = on != nullptr ? 0 : ENODEV;
        }
        if (error != 0) {
            if (!events().tell(*this, RDMA_CM_EVENT_ADDR_ERROR, -error))
                return ENOMEM;
            return complete();
        }
        if (!legs_.empty())
            keep_leg_of(*on);
        if (legs_.empty())
            if (const int failed = make_leg(*on))
                return failed;
        // Where it is bound to is where it goes out.
        if (const auto info = legs_.front().cm.query(); info && info->state == core::CmState::bound)
            source = {};
        device_ = on;
    }
    if (cm() == nullptr)
        return EINVAL;
    set_address(route.addr.dst_storage, destination);
    if (auto done = cm()->resolve_address(destination, source, deadline_in(timeout_ms)); !done)
        return error_of(done);
    return complete();
}

int RdmaId::resolve_route(int timeout_ms) noexcept
{
    if (cm() == nullptr)
        return EINVAL;
    if (auto done = cm()->resolve_route(deadline_in(timeout_ms)); !done)
        return error_of(done);
    return complete();
}

int RdmaId::listen(int backlog) noexcept
{
    if (legs_.empty())
        if (const int error = bind(core::Address::any(AF_INET, 0)))
            return error;
    for (Leg& leg : legs_) {
        if (!leg.cm)
            return EINVAL;
        if (auto done = leg.cm.listen(static_cast<std::uint32_t>(std::max(backlog, 0))); !done)
            return error_of(done);
    }
    return 0;
}

// ------------------------------------------------------------------------------ connections

namespace {

/// @p param: nullptr for all that the device has.
int rd_atomic_of(const rdma_conn_param* param, const core::DeviceAttributes& device,
                 core::EndpointChanges::RdAtomic& rd_atomic) noexcept
{
    constexpr unsigned all = 0xff; // RDMA_MAX_INIT_DEPTH, RDMA_MAX_RESP_RES
    const unsigned initiator = param != nullptr ? unsigned{param->initiator_depth} : all;
    const unsigned responder = param != nullptr ? unsigned{param->responder_resources} : all;
    if ((initiator != all && initiator > device.max_rd_atomic) ||
        (responder != all && responder > device.max_dest_rd_atomic))
        return EINVAL;
    rd_atomic = {.initiator = depth_of(initiator, device.max_rd_atomic),
                 .responder = depth_of(responder, device.max_dest_rd_atomic)};
    return 0;
}

} // namespace

int RdmaId::check_connection(const rdma_conn_param* param,
                             core::EndpointChanges::RdAtomic& rd_atomic) noexcept
{
    if (cm() == nullptr)
        return EINVAL;
    if (const int error = rd_atomic_of(param, device_->context().attributes(), rd_atomic))
        return error;
    return choose_qp(param);
}

/// Its own, or the one that @p param names by its number.
int RdmaId::choose_qp(const rdma_conn_param* param) noexcept
{
    if (own_qp_ != nullptr && !by_steps_)
        return 0;
    EndpointQp* named = param != nullptr ? EndpointQp::find(verbs, param->qp_num) : nullptr;
    if (named == nullptr)
        return EINVAL;
    if (const int error = named->join(*this))
        return error == EBADFD ? EINVAL : error;
    by_steps_ = true;
    return 0;
}

int RdmaId::connect(const rdma_conn_param* param) noexcept
{
    core::EndpointChanges::RdAtomic rd_atomic;
    if (const int error = check_connection(param, rd_atomic))
        return error;
    establishes_ = by_steps_;
    core::ConnectOptions options{.by_steps = by_steps_, .private_data = private_data_of(param)};
    if (param != nullptr) {
        options.retry_count = std::min<std::uint8_t>(param->retry_count, 7);
        options.rnr_retry_count = std::min<std::uint8_t>(param->rnr_retry_count, 7);
    }
    if (const int error = own_qp_->connect(*cm(), options, rd_atomic))
        return error == EBADFD ? EINVAL : error;
    return complete();
}

int RdmaId::accept(const rdma_conn_param* param) noexcept
{
    core::EndpointChanges::RdAtomic rd_atomic;
    if (const int error = check_connection(param, rd_atomic))
        return error;
    core::AcceptOptions options{.by_steps = by_steps_, .private_data = private_data_of(param)};
    if (param != nullptr)
        options.rnr_retry_count = std::min<std::uint8_t>(param->rnr_retry_count, 7);
    {
        // Events of the request are acknowledged with it.
        const std::lock_guard guard(events().lock());
        if (const int error = own_qp_->accept(std::move(*cm()), options, rd_atomic))
            return error == EBADFD || error == EPROTO ? EINVAL : error;
    }
    return complete();
}

int RdmaId::establish() noexcept
{
    if (own_qp_ == nullptr || !establishes_)
        return EINVAL;
    const int error = own_qp_->establish();
    return error == EBADFD ? EINVAL : error;
}

int RdmaId::fill_step(ibv_qp_attr& attr, int& mask) noexcept
{
    if (cm() == nullptr)
        return EINVAL;
    // Its driver takes them itself.
    if (core::has(device_->context().attributes().caps, core::DeviceCap::iwarp))
        return EOPNOTSUPP;
    const auto info = cm()->query();
    return info ? verbs::fill_step(info->steps, attr, mask) : error_of(info);
}

int RdmaId::reject(std::span<const std::byte> private_data) noexcept
{
    const std::lock_guard guard(events().lock());
    if (cm() == nullptr)
        return EINVAL;
    return error_of(cm()->reject(private_data));
}

int RdmaId::disconnect() noexcept
{
    if (own_qp_ == nullptr)
        return EINVAL;
    if (const int error = own_qp_->disconnect())
        return error == EBADFD ? EINVAL : error;
    return disconnected_ ? 0 : complete();
}

/// Of the ids that there are, and of those that it makes later.
int RdmaId::set_options(const core::CmOptions& options) noexcept
{
    // Which addresses it listens on was decided when it was bound.
    if (options.one_family && !legs_.empty())
        return EINVAL;
    for (Leg& leg : legs_) {
        if (!leg.cm)
            return EINVAL;
        if (const int error = apply(options, *leg.device, leg.cm))
            return error;
    }
    if (options.tos)
        options_.tos = options.tos;
    if (options.ack_timeout)
        options_.ack_timeout = options.ack_timeout;
    if (options.reuse_address)
        options_.reuse_address = options.reuse_address;
    if (options.one_family)
        options_.one_family = options.one_family;
    return 0;
}

int RdmaId::set_option(int level, int option, const void* value, std::size_t length) noexcept
{
    if (level != RDMA_OPTION_ID)
        return EOPNOTSUPP;
    std::uint8_t byte = 0;
    int number = 0;
    const bool is_byte = option == RDMA_OPTION_ID_TOS || option == RDMA_OPTION_ID_ACK_TIMEOUT;
    if (value == nullptr || length != (is_byte ? sizeof(byte) : sizeof(number)))
        return EINVAL;
    if (is_byte)
        std::memcpy(&byte, value, sizeof(byte));
    else
        std::memcpy(&number, value, sizeof(number));
    switch (option) {
    case RDMA_OPTION_ID_TOS:
        return set_options({.tos = byte});
    case RDMA_OPTION_ID_ACK_TIMEOUT:
        return byte > 31 ? EINVAL : set_options({.ack_timeout = byte});
    case RDMA_OPTION_ID_REUSEADDR:
        return set_options({.reuse_address = number != 0});
    case RDMA_OPTION_ID_AFONLY:
        return set_options({.one_family = number != 0});
    default:
        return ENOSYS; // as librdmacm
    }
}

/// Of a synchronous id: waits for what was begun.
int RdmaId::complete() noexcept
{
    if (!is_synchronous())
        return 0;
    if (event != nullptr)
        rdma_ack_cm_event(event);
    event = own_channel_->next();
    if (event == nullptr)
        return errno;
    return event->event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED : std::abs(event->status);
}

int RdmaId::migrate(EventChannel* to) noexcept
{
    std::unique_ptr<EventChannel> own;
    if (to == nullptr) {
        if (is_synchronous())
            return EINVAL;
        own.reset(EventChannel::create());
        if (!own)
            return errno;
        to = own.get();
    }
    EventChannel& from = events();
    if (to == &from)
        return 0;
    for (Leg& leg : legs_)
        if (auto done = leg.evd.set_eventfd(to->fd); !done)
            return error_of(done);
    if (!from.move(*this, *to))
        return ENOMEM;
    if (event != nullptr)
        rdma_ack_cm_event(event);
    event = nullptr;
    {
        std::unique_lock guard(ack_lock_);
        acked_.wait(guard, [this] { return acknowledged_ == reported_; });
    }
    own_channel_ = std::move(own);
    return 0;
}

// ----------------------------------------------------------------------------------- events

RdmaEvent* RdmaId::new_event(rdma_cm_event_type type, int status) noexcept
{
    RdmaEvent* made = RdmaEvent::create(*this, *this, type, status);
    const std::lock_guard guard(ack_lock_);
    reported_ += made != nullptr ? 1 : 0;
    return made;
}

bool RdmaId::has_event() const noexcept
{
    return std::ranges::any_of(legs_, [](const Leg& leg) { return leg.evd.available() != 0; });
}

std::int64_t RdmaId::unread() const noexcept
{
    std::int64_t count = 0;
    for (const Leg& leg : legs_)
        count += leg.evd.available();
    return count;
}

RdmaEvent* RdmaId::take_event(RdmaId*& made, Readiness& readiness) noexcept
{
    for (Leg& leg : legs_) {
        core::Event raw;
        while (leg.evd.poll(raw)) {
            readiness.took(1);
            if (RdmaEvent* found = translate(leg, raw, made))
                return found;
        }
    }
    return nullptr;
}

RdmaEvent* RdmaId::translate(Leg& leg, const core::Event& raw, RdmaId*& made) noexcept
{
    switch (raw.type()) {
    case core::EventType::cm:
        return cm_event(leg, raw);
    case core::EventType::connection:
        return connection_event(raw);
    case core::EventType::connect_request:
        return request_event(leg, raw, made);
    case core::EventType::async:
        return async_event(raw);
    default:
        return nullptr;
    }
}

RdmaEvent* RdmaId::cm_event(Leg& leg, const core::Event& raw) noexcept
{
    if (leg.cm)
        (void)leg.cm.ack();
    switch (raw.cm()) {
    case core::CmEvent::addr_resolved:
        set_device(*leg.device);
        if (const auto info = leg.cm.query())
            set_addresses(*info);
        return new_event(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    case core::CmEvent::addr_error:
        return new_event(RDMA_CM_EVENT_ADDR_ERROR, -raw.error());
    case core::CmEvent::route_resolved:
        return new_event(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    case core::CmEvent::route_error:
        return new_event(RDMA_CM_EVENT_ROUTE_ERROR, -raw.error());
    case core::CmEvent::request_ended:
        if (raw.error() == ECONNREFUSED)
            return new_event(RDMA_CM_EVENT_REJECTED, by_consumer);
        return new_event(raw.error() == ETIMEDOUT ? RDMA_CM_EVENT_UNREACHABLE
                                                  : RDMA_CM_EVENT_CONNECT_ERROR,
                         -raw.error());
    }
    return nullptr;
}

RdmaEvent* RdmaId::connection_event(const core::Event& raw) noexcept
{
    RdmaEvent* made = nullptr;
    switch (raw.connection()) {
    case core::Connection::response:
        made = new_event(RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
        break;
    case core::Connection::established:
        made = new_event(RDMA_CM_EVENT_ESTABLISHED, 0);
        break;
    case core::Connection::peer_rejected:
        made = new_event(RDMA_CM_EVENT_REJECTED, by_consumer);
        break;
    case core::Connection::non_peer_rejected:
        return new_event(RDMA_CM_EVENT_REJECTED, no_such_service);
    case core::Connection::accept_error:
        return new_event(RDMA_CM_EVENT_CONNECT_ERROR,
                         raw.error() != 0 ? -raw.error() : -ECONNABORTED);
    case core::Connection::timed_out:
        return new_event(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    case core::Connection::unreachable:
        return new_event(RDMA_CM_EVENT_UNREACHABLE, raw.error() != 0 ? -raw.error() : -ENETUNREACH);
    case core::Connection::disconnected:
    case core::Connection::broken:
        disconnected_ = true;
        return new_event(RDMA_CM_EVENT_DISCONNECTED, 0);
    case core::Connection::timewait_exit:
        return new_event(RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
    }
    if (made != nullptr && own_qp_ != nullptr)
        own_qp_->describe_connection(*made);
    return made;
}

/// Of the receiving side of XRC, or of the device.
RdmaEvent* RdmaId::async_event(const core::Event& raw) noexcept
{
    switch (raw.async()) {
    case core::AsyncEvent::device_removed:
        return new_event(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
    case core::AsyncEvent::xrc_qp_established:
        return new_event(RDMA_CM_EVENT_ESTABLISHED, 0);
    case core::AsyncEvent::xrc_qp_disconnected:
    case core::AsyncEvent::xrc_qp_error:
        disconnected_ = true;
        return new_event(RDMA_CM_EVENT_DISCONNECTED, 0);
    default:
        return nullptr;
    }
}

int RdmaId::become_request(RdmaDevice& device, core::CmId request,
                           const core::CmInfo& info) noexcept
try {
    auto evd = make_evd(device, events());
    if (!evd)
        return error_of(evd);
    if (auto done = request.take(*evd); !done)
        return error_of(done);
    legs_.push_back({.device = &device, .evd = std::move(*evd), .cm = std::move(request)});
    set_device(device);
    set_addresses(info);
    return 0;
} catch (const std::bad_alloc&) {
    return ENOMEM;
}

/// Makes the request an id of its own, which is on this one's channel, or on one of its own. If it
/// cannot be made, or the peer has given up, there is no event: the request is rejected.
RdmaEvent* RdmaId::request_event(Leg& leg, const core::Event& raw, RdmaId*& made) noexcept
{
    auto request = core::CmId::request(leg.cm, raw);
    if (!request)
        return nullptr;
    const auto info = request->query();
    if (!info)
        return nullptr;
    std::unique_ptr<RdmaId> id(
        RdmaId::create(is_synchronous() ? nullptr : &events(), context, ps, qp_type));
    if (!id || id->become_request(*leg.device, std::move(*request), *info) != 0)
        return nullptr;
    RdmaEvent* told = RdmaEvent::create(*id, *this, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    if (told == nullptr || (is_synchronous() && !id->own_channel_->add(*id))) {
        delete told;
        return nullptr;
    }
    const core::DeviceAttributes& limits = leg.device->context().attributes();
    told->listen_id = this;
    told->set_private_data(info->private_data);
    // An iWARP request has no number, and says nothing that an accept could take over.
    const bool tells = info->remote_qp_num != 0;
    rdma_conn_param& conn = told->param.conn;
    const unsigned responder = tells ? info->responder_resources : unsigned{RDMA_MAX_RESP_RES};
    const unsigned initiator = tells ? info->initiator_depth : unsigned{RDMA_MAX_INIT_DEPTH};
    conn.responder_resources =
        static_cast<std::uint8_t>(depth_of(responder, limits.max_dest_rd_atomic));
    conn.initiator_depth = static_cast<std::uint8_t>(depth_of(initiator, limits.max_rd_atomic));
    conn.retry_count = tells ? info->retry_count : 7;
    conn.rnr_retry_count = tells ? info->rnr_retry_count : 7;
    conn.srq = info->srq ? 1 : 0;
    conn.qp_num = info->remote_qp_num;
    {
        const std::lock_guard guard(ack_lock_);
        ++reported_;
    }
    RdmaId* child = id.release();
    made = is_synchronous() ? nullptr : child;
    return told;
}

} // namespace dapx::verbs

// --------------------------------------------------------------------------------- functions

using namespace dapx::verbs;

DAPX_VERBS int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                              rdma_port_space ps)
{
    EventChannel* own = channel != nullptr ? EventChannel::find(channel) : nullptr;
    const bool theirs = channel != nullptr ? own == nullptr && librdmacm_was_used()
                                           : is_for_librdmacm(__builtin_return_address(0));
    if (theirs)
        return DAPX_LIBRDMACM(rdma_create_id)(channel, id, context, ps);
    if (id == nullptr || (channel != nullptr && own == nullptr))
        return zero_or_errno(EINVAL);
    if (ps != RDMA_PS_TCP && ps != RDMA_PS_IB)
        return zero_or_errno(EOPNOTSUPP);
    RdmaId* made = RdmaId::create(own, context, ps, IBV_QPT_RC);
    if (made == nullptr)
        return -1;
    if (!EventChannel::find(made->channel)->add(*made)) {
        (void)made->destroy();
        return zero_or_errno(ENOMEM);
    }
    *id = made;
    return 0;
}

DAPX_VERBS int rdma_destroy_id(rdma_cm_id* id)
{
    return on_id(
        id, [](RdmaId& own) { return own.destroy(); },
        [=] { return DAPX_LIBRDMACM(rdma_destroy_id)(id); });
}

DAPX_VERBS int rdma_bind_addr(rdma_cm_id* id, sockaddr* addr)
{
    return on_id(
        id, [=](RdmaId& own) { return addr != nullptr ? own.bind(dapx::Address(*addr)) : EINVAL; },
        [=] { return DAPX_LIBRDMACM(rdma_bind_addr)(id, addr); });
}

DAPX_VERBS int rdma_resolve_addr(rdma_cm_id* id, sockaddr* src_addr, sockaddr* dst_addr,
                                 int timeout_ms)
{
    return on_id(
        id,
        [=](RdmaId& own) {
            if (dst_addr == nullptr)
                return EINVAL;
            return own.resolve_address(src_addr != nullptr ? dapx::Address(*src_addr)
                                                           : dapx::Address(),
                                       dapx::Address(*dst_addr), timeout_ms);
        },
        [=] { return DAPX_LIBRDMACM(rdma_resolve_addr)(id, src_addr, dst_addr, timeout_ms); });
}

DAPX_VERBS int rdma_resolve_route(rdma_cm_id* id, int timeout_ms)
{
    return on_id(
        id, [=](RdmaId& own) { return own.resolve_route(timeout_ms); },
        [=] { return DAPX_LIBRDMACM(rdma_resolve_route)(id, timeout_ms); });
}

DAPX_VERBS int rdma_listen(rdma_cm_id* id, int backlog)
{
    return on_id(
        id, [=](RdmaId& own) { return own.listen(backlog); },
        [=] { return DAPX_LIBRDMACM(rdma_listen)(id, backlog); });
}

DAPX_VERBS int rdma_connect(rdma_cm_id* id, rdma_conn_param* conn_param)
{
    return on_id(
        id, [=](RdmaId& own) { return own.connect(conn_param); },
        [=] { return DAPX_LIBRDMACM(rdma_connect)(id, conn_param); });
}

DAPX_VERBS int rdma_accept(rdma_cm_id* id, rdma_conn_param* conn_param)
{
    return on_id(
        id, [=](RdmaId& own) { return own.accept(conn_param); },
        [=] { return DAPX_LIBRDMACM(rdma_accept)(id, conn_param); });
}

DAPX_VERBS int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* attr, int* mask)
{
    return on_id(
        id,
        [=](RdmaId& own) {
            return attr != nullptr && mask != nullptr ? own.fill_step(*attr, *mask) : EINVAL;
        },
        [=] { return DAPX_LIBRDMACM(rdma_init_qp_attr)(id, attr, mask); });
}

DAPX_VERBS int rdma_establish(rdma_cm_id* id)
{
    return on_id(
        id, [](RdmaId& own) { return own.establish(); },
        [=] { return DAPX_LIBRDMACM(rdma_establish)(id); });
}

DAPX_VERBS int rdma_reject(rdma_cm_id* id, const void* private_data, std::uint8_t private_data_len)
{
    return on_id(
        id,
        [=](RdmaId& own) {
            const auto* data = static_cast<const std::byte*>(private_data);
            return own.reject({data, data != nullptr ? private_data_len : std::size_t{0}});
        },
        [=] { return DAPX_LIBRDMACM(rdma_reject)(id, private_data, private_data_len); });
}

DAPX_VERBS int rdma_disconnect(rdma_cm_id* id)
{
    return on_id(
        id, [](RdmaId& own) { return own.disconnect(); },
        [=] { return DAPX_LIBRDMACM(rdma_disconnect)(id); });
}

DAPX_VERBS int rdma_set_option(rdma_cm_id* id, int level, int optname, void* optval, size_t optlen)
{
    return on_id(
        id, [=](RdmaId& own) { return own.set_option(level, optname, optval, optlen); },
        [=] { return DAPX_LIBRDMACM(rdma_set_option)(id, level, optname, optval, optlen); });
}

DAPX_VERBS int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel)
{
    return on_id(
        id,
        [=](RdmaId& own) {
            EventChannel* to = EventChannel::find(channel);
            return channel != nullptr && to == nullptr ? EINVAL : own.migrate(to);
        },
        [=] { return DAPX_LIBRDMACM(rdma_migrate_id)(id, channel); });
}

/// The module follows the connection itself.
DAPX_VERBS int rdma_notify(rdma_cm_id* id, ibv_event_type event)
{
    return on_id(
        id, [=](RdmaId&) { return event == IBV_EVENT_COMM_EST ? 0 : EINVAL; },
        [=] { return DAPX_LIBRDMACM(rdma_notify)(id, event); });
}
