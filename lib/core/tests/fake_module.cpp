// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "fake_module.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdarg>
#include <stdexcept>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dapx::test {

namespace {

constexpr std::size_t memory_size = 4 << 20;
constexpr std::size_t page = 4096;
// First bytes of a ring; entries follow.
constexpr std::uint32_t ring_head = 256;
// Not where a new ring would naturally begin.
constexpr std::uint32_t first_index = 0xffffffff;

template <class T> T& as(void* argument)
{
    return *static_cast<T*>(argument);
}

struct BusyItself {
    BusyItself() { FakeModule::busy_itself = true; }
    ~BusyItself() { FakeModule::busy_itself = false; }
};

} // namespace

FakeModule* FakeModule::active = nullptr;
bool FakeModule::busy_itself = false;

FakeModule::FakeModule()
{
    owner_ = ::getpid();
    memory_fd_ = ::memfd_create("fake-dapx", MFD_CLOEXEC);
    if (memory_fd_ < 0 || ::ftruncate(memory_fd_, memory_size) != 0)
        throw std::runtime_error("memfd_create");
    void* memory = ::mmap(nullptr, memory_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd_, 0);
    if (memory == MAP_FAILED)
        throw std::runtime_error("mmap");
    memory_ = static_cast<std::byte*>(memory);
    active = this;
}

FakeModule::~FakeModule()
{
    active = nullptr;
    ::munmap(memory_, memory_size);
    ::close(memory_fd_);
}

int FakeModule::open_node()
{
    const BusyItself busy_itself_now;
    const int fd = ::dup(memory_fd_);
    fds_.insert(fd);
    return fd;
}

std::size_t FakeModule::count(unsigned long request) const
{
    return static_cast<std::size_t>(std::count_if(
        calls_.begin(), calls_.end(), [&](const Call& call) { return call.request == request; }));
}

void FakeModule::set_state(std::uint32_t ep, dapx_ep_state state)
{
    *rings_.at({ep, 0}).word(state_offsets_.at(ep)) = state;
}

void FakeModule::put_event(std::uint32_t evd, const dapx_event& event)
{
    const Ring& ring = evd_ring(evd);
    std::memcpy(ring.entry(*ring.tail()), &event, sizeof(event));
    __atomic_store_n(ring.tail(), *ring.tail() + 1, __ATOMIC_RELEASE);
}

void FakeModule::fail_mmap(std::size_t before, int error)
{
    mmaps_until_error_ = before + 1;
    mmap_error_ = error;
}

bool FakeModule::mmap_fails() noexcept
{
    if (mmaps_until_error_ == 0 || --mmaps_until_error_ != 0)
        return false;
    errno = mmap_error_;
    return true;
}

int FakeModule::command(unsigned long request, void* argument)
{
    const BusyItself busy_itself_now;
    if (::getpid() != owner_) {
        errno = EPERM;
        return -1;
    }
    std::uint32_t size = 0;
    std::memcpy(&size, argument, sizeof(size));
    const auto* bytes = static_cast<const std::byte*>(argument);
    calls_.push_back({request, {bytes, bytes + size}});
    int error = 0;
    if (auto& errors = errors_[request]; !errors.empty()) {
        error = errors.front();
        errors.pop_front();
    } else {
        error = run(request, argument);
    }
    if (error == 0)
        return 0;
    errno = error;
    return -1;
}

std::uint32_t FakeModule::add(std::uint32_t type)
{
    objects_[++next_handle_] = type;
    return next_handle_;
}

std::size_t FakeModule::map_pages(std::size_t size)
{
    const std::size_t offset = used_;
    used_ += (size + page - 1) / page * page;
    if (used_ > memory_size)
        throw std::runtime_error("the fake module's memory is used up");
    return offset;
}

dapx_ring_layout FakeModule::lay_out(std::uint64_t offset, std::uint32_t mapping_size,
                                     std::uint32_t ring_offset, std::uint32_t depth,
                                     std::uint32_t stride)
{
    dapx_ring_layout layout{};
    layout.mmap_offset = offset;
    layout.mmap_size = flaw == Flaw::outside ? ring_offset + ring_head : mapping_size;
    layout.head_off = ring_offset;
    layout.tail_off = ring_offset + 64;
    layout.flags_off = ring_offset + 128;
    layout.arm_off = flaw == Flaw::arm_outside ? mapping_size : ring_offset + 192;
    layout.entries_off = ring_offset + ring_head;
    layout.stride = flaw == Flaw::short_stride ? 8 : stride;
    layout.depth = flaw == Flaw::odd_depth ? depth - 1 : depth;
    return layout;
}

int FakeModule::run(unsigned long request, void* argument)
{
    switch (request) {
    case DAPX_INFO: {
        auto& info = as<dapx_info>(argument);
        info.out_features = DAPX_FEATURE_RC | DAPX_FEATURE_SRQ | DAPX_FEATURE_XRC;
        info.out_max_objects = 1000;
        info.out_max_ring_depth = 4096;
        return 0;
    }
    case DAPX_ATTACH: {
        const std::string name = as<dapx_attach>(argument).device;
        return std::find(devices.begin(), devices.end(), name) == devices.end() ? EOPNOTSUPP : 0;
    }
    case DAPX_QUERY_DEVICE:
        as<dapx_query_device>(argument).out_max_connect_data = 56;
        as<dapx_query_device>(argument).out_max_accept_data = 196;
        as<dapx_query_device>(argument).out_max_reject_data = 148;
        return 0;
    case DAPX_PD_CREATE:
        as<dapx_pd_create>(argument).out_pd = add(DAPX_OBJECT_PD);
        return 0;
    case DAPX_MR_CREATE:
        as<dapx_mr_create>(argument).out_mr = add(DAPX_OBJECT_MR);
        as<dapx_mr_create>(argument).out_rkey = 0x1234;
        return 0;
    case DAPX_EVD_CREATE:
        return create_evd(as<dapx_evd_create>(argument));
    case DAPX_EVD_RESIZE:
        return resize_evd(as<dapx_evd_resize>(argument));
    case DAPX_EVD_WAIT: {
        auto& wait = as<dapx_evd_wait>(argument);
        const Ring& ring = evd_ring(wait.evd);
        wait.out_events = *ring.tail() - *ring.head();
        return wait.out_events >= wait.threshold ? 0 : ETIMEDOUT;
    }
    case DAPX_EVD_POST: {
        const auto& post = as<dapx_evd_post>(argument);
        dapx_event event{};
        event.type = DAPX_EVENT_SOFTWARE;
        event.software.data[0] = post.data[0];
        event.software.data[1] = post.data[1];
        put_event(post.evd, event);
        return 0;
    }
    case DAPX_SRQ_CREATE: {
        auto& srq = as<dapx_srq_create>(argument);
        const std::uint32_t stride =
            static_cast<std::uint32_t>(sizeof(dapx_recv_wr) + srq.max_sge * sizeof(dapx_sge));
        const std::uint32_t depth = std::bit_ceil(srq.depth);
        const std::uint32_t size = ring_head + depth * stride;
        const std::size_t offset = map_pages(size);
        srq.out_srq = add(DAPX_OBJECT_SRQ);
        srq.out_srq_num = srq.xrcd != 0 ? 0xabc : 0;
        srq.out_ring = lay_out(offset, size, 0, depth, stride);
        rings_[{srq.out_srq, 1}] = {memory_ + offset, srq.out_ring};
        return 0;
    }
    case DAPX_EP_CREATE:
        return create_ep(as<dapx_ep_create>(argument));
    case DAPX_SRQ_RESIZE:
        return resize_srq(as<dapx_srq_resize>(argument));
    case DAPX_EP_RESIZE:
        make_rings(as<dapx_ep_resize>(argument).ep, as<dapx_ep_resize>(argument));
        as<dapx_ep_resize>(argument).out_qp_num = 19;
        return 0;
    case DAPX_EP_RESET: {
        auto& reset = as<dapx_ep_reset>(argument);
        for (const int which : {0, 1})
            if (const auto ring = rings_.find({reset.ep, which}); ring != rings_.end())
                *ring->second.head() = *ring->second.tail();
        reset.out_qp_num = 18;
        return 0;
    }
    case DAPX_CM_CREATE:
        as<dapx_cm_create>(argument).out_cm = add(DAPX_OBJECT_CM);
        return 0;
    case DAPX_CM_QUERY:
        as<dapx_cm_query>(argument).out_unacked = unacked;
        as<dapx_cm_query>(argument).out_xrc = xrc_request ? 1 : 0;
        as<dapx_cm_query>(argument).out_qp.state = DAPX_QP_RTS;
        as<dapx_cm_query>(argument).out_qp.port = 1;
        as<dapx_cm_query>(argument).out_qp.dest_qp_num = 20;
        as<dapx_cm_query>(argument).out_qp.sq_psn = 21;
        return 0;
    case DAPX_CM_ACK:
        if (as<dapx_cm_ack>(argument).events > unacked)
            return EINVAL;
        unacked -= as<dapx_cm_ack>(argument).events;
        return 0;
    case DAPX_RMR_CREATE:
        as<dapx_rmr_create>(argument).out_rmr = add(DAPX_OBJECT_RMR);
        return 0;
    case DAPX_RMR_BIND:
        as<dapx_rmr_bind>(argument).out_rkey = 0x4321;
        return 0;
    case DAPX_XRCD_OPEN:
        as<dapx_xrcd_open>(argument).out_xrcd = add(DAPX_OBJECT_XRCD);
        return 0;
    case DAPX_RMR_QUERY: {
        auto& query = as<dapx_rmr_query>(argument);
        query.out_mr = 3;
        query.out_length = query.mask;
        query.out_access = DAPX_ACCESS_REMOTE_READ;
        return 0;
    }
    case DAPX_FREE: {
        const auto& free = as<dapx_free>(argument);
        const auto object = objects_.find(free.handle);
        if (object == objects_.end() ||
            (free.type != DAPX_OBJECT_ANY && free.type != object->second))
            return ENOENT;
        if (busy.contains(free.handle) || (object->second == DAPX_OBJECT_CM && unacked != 0 &&
                                           (free.flags & DAPX_FREE_DISCARD) == 0))
            return EBUSY;
        objects_.erase(object);
        std::erase_if(xrc_qps, [&](const auto& entry) { return entry.second == free.handle; });
        return 0;
    }
    default:
        return run_xrc(request, argument);
    }
}

int FakeModule::run_xrc(unsigned long request, void* argument)
{
    switch (request) {
    case DAPX_SRQ_QUERY: {
        auto& query = as<dapx_srq_query>(argument);
        query.out_xrcd = 3;
        query.out_evd = 4;
        query.out_srq_num = 0xabc;
        query.out_depth = 8;
        query.out_max_sge = 2;
        query.out_limit = 5;
        return 0;
    }
    case DAPX_XRC_QP_CREATE: {
        auto& create = as<dapx_xrc_qp_create>(argument);
        create.out_xrc_qp = add(DAPX_OBJECT_XRC_QP);
        create.out_qp_num = 1000 + create.out_xrc_qp;
        xrc_qps[create.out_qp_num] = create.out_xrc_qp;
        return 0;
    }
    case DAPX_XRC_QP_REGISTER: {
        auto& reg = as<dapx_xrc_qp_register>(argument);
        const auto qp = xrc_qps.find(reg.qp_num);
        if (qp == xrc_qps.end())
            return EINVAL;
        if (qp->second != 0 && (reg.flags & DAPX_XRC_QP_REGISTER_EXCL) != 0)
            return EEXIST;
        // 0: another context's.
        if (qp->second == 0)
            qp->second = add(DAPX_OBJECT_XRC_QP);
        reg.out_xrc_qp = qp->second;
        return 0;
    }
    case DAPX_XRC_QP_UNREGISTER: {
        const auto qp = xrc_qps.find(as<dapx_xrc_qp_unregister>(argument).qp_num);
        if (qp == xrc_qps.end() || qp->second == 0)
            return EINVAL;
        objects_.erase(qp->second);
        xrc_qps.erase(qp);
        return 0;
    }
    case DAPX_XRC_QP_MODIFY:
        return find_xrc_qp(as<dapx_xrc_qp_modify>(argument).qp_num);
    case DAPX_XRC_QP_DISCONNECT:
        return find_xrc_qp(as<dapx_xrc_qp_disconnect>(argument).qp_num);
    case DAPX_XRC_QP_ACCEPT:
        if (!xrc_request)
            return EPROTO;
        objects_.erase(as<dapx_xrc_qp_accept>(argument).cm);
        return find_xrc_qp(as<dapx_xrc_qp_accept>(argument).qp_num);
    case DAPX_XRC_QP_QUERY: {
        auto& query = as<dapx_xrc_qp_query>(argument);
        if (!xrc_qps.contains(query.qp_num))
            return EINVAL;
        query.out_xrc_qp = xrc_qps.at(query.qp_num);
        query.out_registrations = 2;
        query.out_messages = 30;
        query.out_not_ready = 4;
        query.out_qp.state = DAPX_QP_RTR;
        query.out_qp.dest_qp_num = 77;
        query.out_qp.port = 1;
        query.out_qp.dgid[15] = 9;
        return 0;
    }
    default:
        return 0;
    }
}

int FakeModule::find_xrc_qp(std::uint32_t qp_num) const
{
    const auto qp = xrc_qps.find(qp_num);
    if (qp == xrc_qps.end())
        return EINVAL;
    return qp->second == 0 ? EACCES : 0;
}

int FakeModule::create_evd(dapx_evd_create& argument)
{
    const std::uint32_t depth = std::bit_ceil(argument.depth);
    const std::uint32_t size = ring_head + depth * static_cast<std::uint32_t>(sizeof(dapx_event));
    const std::size_t offset = map_pages(size);
    argument.out_evd = add(DAPX_OBJECT_EVD);
    argument.out_ring = lay_out(offset, size, 0, depth, sizeof(dapx_event));
    const Ring ring{memory_ + offset, argument.out_ring};
    *ring.head() = *ring.tail() = first_index;
    rings_[{argument.out_evd, 0}] = ring;
    return 0;
}

int FakeModule::resize_evd(dapx_evd_resize& argument)
{
    const Ring old = evd_ring(argument.evd);
    const std::uint32_t depth = std::bit_ceil(argument.depth);
    if (*old.tail() - *old.head() > depth)
        return EBUSY;
    const std::uint32_t size = ring_head + depth * static_cast<std::uint32_t>(sizeof(dapx_event));
    const std::size_t offset = map_pages(size);
    argument.out_ring = lay_out(offset, size, 0, depth, sizeof(dapx_event));
    const Ring ring{memory_ + offset, argument.out_ring};
    *ring.head() = *old.head();
    *ring.tail() = *old.tail();
    for (std::uint32_t i = *old.head(); i != *old.tail(); ++i)
        std::memcpy(ring.entry(i), old.entry(i), sizeof(dapx_event));
    *old.flags() |= DAPX_RING_DEAD;
    rings_[{argument.evd, 0}] = ring;
    return 0;
}

int FakeModule::resize_srq(dapx_srq_resize& argument)
{
    const Ring old = recv_ring(argument.srq);
    const std::uint32_t depth = std::bit_ceil(argument.depth);
    if (*old.tail() - *old.head() > depth)
        return EBUSY;
    const std::uint32_t size = ring_head + depth * old.layout.stride;
    const std::size_t offset = map_pages(size);
    argument.out_ring = lay_out(offset, size, 0, depth, old.layout.stride);
    const Ring ring{memory_ + offset, argument.out_ring};
    *ring.head() = *old.head();
    *ring.tail() = *old.tail();
    for (std::uint32_t i = *old.head(); i != *old.tail(); ++i)
        std::memcpy(ring.entry(i), old.entry(i), old.layout.stride);
    *old.flags() |= DAPX_RING_DEAD;
    rings_[{argument.srq, 1}] = ring;
    return 0;
}

int FakeModule::create_ep(dapx_ep_create& argument)
{
    argument.out_ep = add(DAPX_OBJECT_EP);
    argument.out_qp_num = 17;
    make_rings(argument.out_ep, argument);
    return 0;
}

template <class Argument> void FakeModule::make_rings(std::uint32_t ep, Argument& argument)
{
    const dapx_ep_attr& attr = argument.attr;
    const auto send_stride = static_cast<std::uint32_t>(
        sizeof(dapx_send_wr) +
        (std::max<std::size_t>(attr.max_send_sge * sizeof(dapx_sge), attr.max_inline) + 7) / 8 * 8);
    const auto recv_stride =
        static_cast<std::uint32_t>(sizeof(dapx_recv_wr) + attr.max_recv_sge * sizeof(dapx_sge));
    const std::uint32_t send_depth = std::bit_ceil(attr.send_depth);
    const std::uint32_t recv_depth = attr.recv_depth == 0 ? 0 : std::bit_ceil(attr.recv_depth);
    const std::uint32_t recv_offset = ring_head + send_depth * send_stride;
    const std::uint32_t state_offset = recv_offset + ring_head + recv_depth * recv_stride;
    const std::uint32_t size = state_offset + 64;
    const std::size_t offset = map_pages(size);
    argument.out_state_off = state_offset;
    argument.out_send_ring = lay_out(offset, size, 0, send_depth, send_stride);
    argument.out_recv_ring = {};
    state_offsets_[ep] = state_offset;
    rings_[{ep, 0}] = {memory_ + offset, argument.out_send_ring};
    const Ring& send = send_ring(ep);
    *send.head() = *send.tail() = first_index;
    rings_.erase({ep, 1});
    if (recv_depth != 0) {
        argument.out_recv_ring = lay_out(offset, size, recv_offset, recv_depth, recv_stride);
        rings_[{ep, 1}] = {memory_ + offset, argument.out_recv_ring};
    }
}

} // namespace dapx::test

// The linker sends the library's calls of these here (--wrap).
extern "C" {

int __real_open(const char* path, int flags, ...);
int __real_ioctl(int fd, unsigned long request, ...);
void* __real_mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t offset);

int __wrap_open(const char* path, int flags, ...)
{
    using dapx::test::FakeModule;
    if (FakeModule::active != nullptr && std::strcmp(path, FakeModule::active->node()) == 0)
        return FakeModule::active->open_node();
    std::va_list list;
    va_start(list, flags);
    const mode_t mode = va_arg(list, mode_t);
    va_end(list);
    return __real_open(path, flags, mode);
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
    using dapx::test::FakeModule;
    std::va_list list;
    va_start(list, request);
    void* argument = va_arg(list, void*);
    va_end(list);
    if (FakeModule::active != nullptr && FakeModule::active->owns(fd))
        return FakeModule::active->command(request, argument);
    return __real_ioctl(fd, request, argument);
}

void* __wrap_mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t offset)
{
    using dapx::test::FakeModule;
    if (FakeModule::active == nullptr)
        return __real_mmap(address, size, protection, flags, fd, offset);
    if (FakeModule::active->mmap_fails())
        return MAP_FAILED;
    void* const base = __real_mmap(address, size, protection, flags, fd, offset);
    if (base != MAP_FAILED && FakeModule::active->owns(fd)) {
        ::madvise(base, size, MADV_DONTFORK);
        FakeModule::busy_itself = true;
        FakeModule::active->mappings.emplace_back(base, size);
        FakeModule::busy_itself = false;
    }
    return base;
}
}
