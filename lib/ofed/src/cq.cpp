// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "cq.hpp"

#include "calls.hpp"
#include "eventfd.hpp"
#include "libibverbs.hpp"
#include "own.hpp"
#include "qp.hpp"

#include <algorithm>
#include <limits>
#include <sys/eventfd.h>
#include <unistd.h>

namespace dapx::verbs {

// -------------------------------------------------------------------------------- channels

Channel::Channel(Context& owner, int eventfd) noexcept : ibv_comp_channel{}
{
    context = &owner.context;
    fd = eventfd;
    owner.get();
}

Channel::~Channel()
{
    ::close(fd);
}

bool Channel::add(Cq& cq) noexcept
try {
    const std::lock_guard guard(lock_);
    cqs_.push_back(&cq);
    ++refcnt;
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

bool Channel::unused() noexcept
{
    const std::lock_guard guard(lock_);
    return refcnt == 0;
}

/// What nobody has got of its events, nobody will: nor shall the descriptor speak of them.
void Channel::remove(Cq& cq) noexcept
{
    const std::lock_guard guard(lock_);
    if (cq.armed_ && !cq.core_.armed())
        ++cq.untaken_;
    for (; cq.untaken_ != 0; --cq.untaken_)
        (void)read_signals(fd);
    std::erase(cqs_, &cq);
    --refcnt;
}

void Channel::arm(Cq& cq, bool solicited_only) noexcept
{
    const std::lock_guard guard(lock_);
    if (solicited_only)
        cq.for_solicited_ = true;
    if (cq.armed_ && !cq.core_.armed())
        ++cq.untaken_;
    else if (cq.armed_ && solicited_only && !cq.solicited_only_)
        return;
    cq.armed_ = true;
    cq.solicited_only_ = solicited_only;
    if (solicited_only)
        cq.core_.arm_solicited();
    else
        cq.core_.arm();
}

Cq* Channel::take() noexcept
{
    const std::lock_guard guard(lock_);
    for (std::size_t i = 0; i < cqs_.size(); ++i) {
        Cq& cq = *cqs_[i];
        if (cq.untaken_ != 0)
            --cq.untaken_;
        else if (cq.armed_ && !cq.core_.armed())
            cq.armed_ = false;
        else
            continue;
        ++cq.reported_;
        // The others first, the next time.
        std::ranges::rotate(cqs_, cqs_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        return &cq;
    }
    return nullptr;
}

Cq* Channel::next_event() noexcept
{
    for (;;) {
        std::uint64_t one = 0;
        if (read(fd, &one, sizeof(one)) != sizeof(one))
            return nullptr;
        if (Cq* cq = take())
            return cq;
    }
}

// ------------------------------------------------------------------------------ completions

namespace {

ibv_wc_status wc_status(core::Status status) noexcept
{
    switch (status) {
    case core::Status::success:
        return IBV_WC_SUCCESS;
    case core::Status::flushed:
        return IBV_WC_WR_FLUSH_ERR;
    case core::Status::local_length:
        return IBV_WC_LOC_LEN_ERR;
    case core::Status::local_operation:
        return IBV_WC_LOC_QP_OP_ERR;
    case core::Status::local_protection:
        return IBV_WC_LOC_PROT_ERR;
    case core::Status::bad_response:
        return IBV_WC_BAD_RESP_ERR;
    case core::Status::remote_access:
    case core::Status::remote_queue:
        return IBV_WC_REM_ACCESS_ERR;
    case core::Status::remote_invalid:
        return IBV_WC_REM_INV_REQ_ERR;
    case core::Status::remote_operation:
        return IBV_WC_REM_OP_ERR;
    case core::Status::transport:
        return IBV_WC_RETRY_EXC_ERR;
    case core::Status::receiver_not_ready:
        return IBV_WC_RNR_RETRY_EXC_ERR;
    default:
        return IBV_WC_GENERAL_ERR;
    }
}

ibv_wc_opcode wc_opcode(core::Opcode opcode) noexcept
{
    switch (opcode) {
    case core::Opcode::rdma_write:
    case core::Opcode::rdma_write_imm:
        return IBV_WC_RDMA_WRITE;
    case core::Opcode::rdma_read:
        return IBV_WC_RDMA_READ;
    case core::Opcode::compare_swap:
        return IBV_WC_COMP_SWAP;
    case core::Opcode::fetch_add:
        return IBV_WC_FETCH_ADD;
    case core::Opcode::recv:
        return IBV_WC_RECV;
    case core::Opcode::recv_rdma_imm:
        return IBV_WC_RECV_RDMA_WITH_IMM;
    default:
        return IBV_WC_SEND;
    }
}

ibv_wc completion(const core::Event& event) noexcept
{
    ibv_wc wc{};
    wc.wr_id = event.wr_id();
    wc.status = wc_status(event.status());
    wc.opcode = wc_opcode(event.opcode());
    wc.byte_len = event.byte_len();
    if (const auto imm = event.imm_data()) {
        wc.wc_flags = IBV_WC_WITH_IMM;
        wc.imm_data = *imm;
    }
    wc.qp_num = event.is_xrc() ? event.qp_num() : qp_num_of(event);
    return wc;
}

} // namespace

Cq::Cq(Context& owner, Channel* events, void* consumer, core::Evd core) noexcept
    : ibv_cq_ex{}, core_(std::move(core))
{
    context = &owner.context;
    channel = events;
    cq_context = consumer;
    handle = core_.handle();
    cqe = static_cast<int>(core_.depth());
    pthread_mutex_init(&mutex, nullptr);
    pthread_cond_init(&cond, nullptr);
    owner.get();
}

Cq::~Cq()
{
    pthread_cond_destroy(&cond);
    pthread_mutex_destroy(&mutex);
}

int Cq::poll(int num_entries, ibv_wc* wc) noexcept
{
    const std::lock_guard guard(lock_);
    core::Event event;
    int count = 0;
    while (count < num_entries && core_.poll(event))
        // The device's end comes this way, too; who wants to know reads asynchronous events.
        if (event.is_completion())
            wc[count++] = completion(event);
    return count;
}

int Cq::begin_polling(const ibv_poll_cq_attr* attr) noexcept
{
    if (attr != nullptr && attr->comp_mask != 0)
        return EINVAL;
    lock_.lock();
    const int error = poll_next();
    if (error != 0)
        lock_.unlock();
    return error;
}

int Cq::poll_next() noexcept
{
    core::Event event;
    while (core_.poll(event)) {
        if (!event.is_completion())
            continue;
        polled_ = completion(event);
        wr_id = polled_.wr_id;
        status = polled_.status;
        return 0;
    }
    return ENOENT;
}

int Cq::resize(std::uint32_t depth) noexcept
{
    const std::lock_guard guard(lock_);
    // Nobody arms a ring that is being replaced.
    std::unique_lock<std::mutex> channel_guard;
    if (channel != nullptr)
        channel_guard = std::unique_lock(Channel::of(channel)->lock_);
    if (auto done = core_.resize(depth); !done)
        return done.error().code();
    cqe = static_cast<int>(core_.depth());
    return 0;
}

void Cq::drop(std::uint32_t object) noexcept
{
    const std::lock_guard guard(lock_);
    core_.drop(object);
}

void Cq::await_acknowledgements() noexcept
{
    pthread_mutex_lock(&mutex);
    while (comp_events_completed != reported_)
        pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
}

int poll_cq(ibv_cq* cq, int num_entries, ibv_wc* wc) noexcept
{
    return Cq::of(cq)->poll(num_entries, wc);
}

int req_notify_cq(ibv_cq* cq, int solicited_only) noexcept
{
    if (cq->channel != nullptr)
        Channel::of(cq->channel)->arm(*Cq::of(cq), solicited_only != 0);
    return 0;
}

static Cq* create_cq(Context& context, int cqe, void* cq_context, ibv_comp_channel* events,
                     int comp_vector) noexcept
{
    if (!context.is_open() || cqe <= 0 || comp_vector < 0 ||
        comp_vector >= context.context.num_comp_vectors ||
        (events != nullptr && events->context != &context.context))
        return failed_null<Cq>(EINVAL);
    Channel* channel = Channel::of(events);
    auto core = core::Evd::create(context.core(), {.depth = static_cast<std::uint32_t>(cqe)});
    if (!core)
        return failed_null<Cq>(core.error().code());
    if (channel != nullptr)
        if (auto done = core->set_eventfd_once(channel->fd); !done)
            return failed_null<Cq>(done.error().code());
    Cq* cq = made(new (std::nothrow) Cq(context, channel, cq_context, std::move(*core)));
    if (cq != nullptr && channel != nullptr && !channel->add(*cq)) {
        (void)destroy(cq);
        return failed_null<Cq>(ENOMEM);
    }
    return cq;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) noexcept
{
    // A CQ never overruns, and one thread polls as well as several.
    constexpr unsigned known_flags =
        IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    const bool has_flags = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0;
    if ((attr->wc_flags & ~std::uint64_t{IBV_WC_STANDARD_FLAGS}) != 0 ||
        (attr->comp_mask & ~unsigned{IBV_CQ_INIT_ATTR_MASK_FLAGS}) != 0 ||
        (has_flags && (attr->flags & ~known_flags) != 0))
        return failed_null<ibv_cq_ex>(EOPNOTSUPP);
    constexpr std::uint32_t most = std::numeric_limits<int>::max();
    Cq* cq = create_cq(Context::of(context), static_cast<int>(std::min(attr->cqe, most)),
                       attr->cq_context, attr->channel,
                       static_cast<int>(std::min(attr->comp_vector, most)));
    if (cq != nullptr)
        set_poll_ops(*cq);
    return cq;
}

} // namespace dapx::verbs

// ------------------------------------------------------------------------------- functions

using namespace dapx::verbs;

DAPX_VERBS ibv_comp_channel* ibv_create_comp_channel(ibv_context* context)
{
    Context* own = Context::find(context);
    if (own == nullptr)
        return DAPX_LIBIBVERBS(ibv_create_comp_channel)(context);
    if (!own->is_open())
        return failed_null<ibv_comp_channel>(EINVAL);
    const int fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    if (fd < 0)
        return nullptr;
    auto* channel = new (std::nothrow) Channel(*own, fd);
    if (channel == nullptr)
        ::close(fd);
    return made(channel);
}

DAPX_VERBS int ibv_destroy_comp_channel(ibv_comp_channel* channel)
{
    if (is_foreign(channel))
        return DAPX_LIBIBVERBS(ibv_destroy_comp_channel)(channel);
    if (channel == nullptr)
        return failed(EINVAL);
    Channel* own = Channel::of(channel);
    if (!own->unused())
        return failed(EBUSY);
    Context& owner = own->owner();
    delete own;
    owner.put();
    return 0;
}

DAPX_VERBS ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context,
                                 ibv_comp_channel* channel, int comp_vector)
{
    Context* own = Context::find(context);
    if (own == nullptr)
        return DAPX_LIBIBVERBS(ibv_create_cq)(context, cqe, cq_context, channel, comp_vector);
    Cq* cq = create_cq(*own, cqe, cq_context, channel, comp_vector);
    return cq != nullptr ? cq->verbs() : nullptr;
}

DAPX_VERBS int ibv_resize_cq(ibv_cq* cq, int cqe)
{
    if (is_foreign(cq))
        return DAPX_LIBIBVERBS(ibv_resize_cq)(cq, cqe);
    if (cq == nullptr || cqe <= 0)
        return failed(EINVAL);
    const int error = Cq::of(cq)->resize(static_cast<std::uint32_t>(cqe));
    return error != 0 ? failed(error) : 0;
}

DAPX_VERBS int ibv_destroy_cq(ibv_cq* cq)
{
    if (is_foreign(cq))
        return DAPX_LIBIBVERBS(ibv_destroy_cq)(cq);
    if (cq == nullptr)
        return failed(EINVAL);
    Cq* own = Cq::of(cq);
    if (const int error = free_core(own->core()))
        return failed(error);
    if (cq->channel != nullptr)
        Channel::of(cq->channel)->remove(*own);
    own->await_acknowledgements();
    Context& owner = own->owner();
    delete own;
    owner.put();
    return 0;
}

DAPX_VERBS int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context)
{
    if (is_foreign(channel))
        return DAPX_LIBIBVERBS(ibv_get_cq_event)(channel, cq, cq_context);
    if (channel == nullptr) {
        errno = EINVAL;
        return -1;
    }
    Cq* fired = Channel::of(channel)->next_event();
    if (fired == nullptr)
        return -1;
    *cq = fired->verbs();
    *cq_context = fired->cq_context;
    return 0;
}

DAPX_VERBS void ibv_ack_cq_events(ibv_cq* cq, unsigned int nevents)
{
    if (is_foreign(cq))
        return DAPX_LIBIBVERBS(ibv_ack_cq_events)(cq, nevents);
    if (cq == nullptr)
        return;
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += nevents;
    pthread_cond_signal(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}
