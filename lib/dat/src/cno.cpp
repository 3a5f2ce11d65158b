// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "cno.hpp"

#include "functions.hpp"

#include <algorithm>
#include <cerrno>
#include <thread>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace dapx::dat {

namespace {

void signal(const Descriptor& eventfd) noexcept
{
    const std::uint64_t one = 1;
    (void)!write(eventfd.get(), &one, sizeof(one));
}

/// Edge-triggered: each signal wakes one waiter, and nobody needs to read it.
bool watch(int epoll, const Descriptor& eventfd, DAT_HANDLE whose) noexcept
{
    epoll_event interest{};
    interest.events = EPOLLIN | static_cast<std::uint32_t>(EPOLLET);
    interest.data.ptr = whose;
    return epoll_ctl(epoll, EPOLL_CTL_ADD, eventfd.get(), &interest) == 0;
}

} // namespace

Descriptor::~Descriptor()
{
    if (fd_ >= 0)
        ::close(fd_);
}

std::expected<std::shared_ptr<CnoWaitSet>, DAT_RETURN> CnoWaitSet::create() noexcept
try {
    Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
    Descriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (epoll.get() < 0 || wake.get() < 0 || !watch(epoll.get(), wake, DAT_HANDLE_NULL))
        return std::unexpected(error(DAT_INSUFFICIENT_RESOURCES));
    return std::make_shared<CnoWaitSet>(std::move(epoll), std::move(wake));
} catch (const std::bad_alloc&) {
    return std::unexpected(no_memory());
}

DAT_RETURN CnoWaitSet::wait(core::Deadline deadline, DAT_EVD_HANDLE& evd) noexcept
{
    using std::chrono::milliseconds;
    evd = DAT_HANDLE_NULL;
    for (;;) {
        // In milliseconds, rounded up; a long wait is several.
        int timeout = -1;
        if (deadline != core::no_deadline) {
            const auto left = std::chrono::ceil<milliseconds>(deadline - core::Clock::now());
            timeout = static_cast<int>(
                std::clamp(left, milliseconds(0), milliseconds(1'000'000)).count());
        }
        epoll_event ready{};
        const int count = epoll_wait(epoll_.get(), &ready, 1, timeout);
        if (count > 0) {
            evd = ready.data.ptr;
            if (evd == DAT_HANDLE_NULL && stopped_)
                signal(wake_); // for the next one
            return DAT_SUCCESS;
        }
        if (count < 0)
            return errno == EINTR ? error(DAT_INTERRUPTED_CALL) : error(DAT_INTERNAL_ERROR);
        if (core::Clock::now() >= deadline)
            return error(DAT_QUEUE_EMPTY);
    }
}

void CnoWaitSet::poke() const noexcept
{
    signal(wake_);
}

void CnoWaitSet::stop() noexcept
{
    stopped_ = true;
    signal(wake_);
}

std::expected<CnoInput, DAT_RETURN> CnoInput::create(Cno& cno, DAT_EVD_HANDLE evd) noexcept
{
    Descriptor eventfd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (eventfd.get() < 0 || !watch(cno.set()->epoll(), eventfd, evd))
        return std::unexpected(error(DAT_INSUFFICIENT_RESOURCES));
    return CnoInput(std::move(eventfd));
}

void CnoInput::trigger() const noexcept
{
    signal(eventfd_);
}

/// The thread that calls a consumer's agent. What it needs is shared with it, as the agent may be
/// the one who ends the CNO.
class Cno::Agent {
public:
    Agent(DAT_OS_WAIT_PROXY_AGENT agent, std::shared_ptr<CnoWaitSet> set)
        : state_(std::make_shared<State>(std::move(set)))
    {
        state_->agent = agent;
        thread_ = std::thread([state = state_] { run(*state); });
    }
    ~Agent()
    {
        state_->ending = true;
        if (thread_.get_id() == std::this_thread::get_id()) {
            thread_.detach();
            return;
        }
        // Another waiter may take a poke.
        while (!state_->ended) {
            state_->set->poke();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        thread_.join();
    }

    void replace(DAT_OS_WAIT_PROXY_AGENT agent) noexcept
    {
        const std::lock_guard lock(state_->mutex);
        state_->agent = agent;
    }
    [[nodiscard]] DAT_OS_WAIT_PROXY_AGENT function() const noexcept
    {
        const std::lock_guard lock(state_->mutex);
        return state_->agent;
    }

private:
    struct State {
        explicit State(std::shared_ptr<CnoWaitSet> waits) : set(std::move(waits)) {}

        std::shared_ptr<CnoWaitSet> set;
        std::atomic<bool> ending{false};
        std::atomic<bool> ended{false};
        std::mutex mutex;
        DAT_OS_WAIT_PROXY_AGENT agent{};
    };

    static void run(State& state) noexcept
    {
        while (!state.ending && !state.set->stopped()) {
            DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
            if (state.set->wait(core::no_deadline, evd) != DAT_SUCCESS || evd == DAT_HANDLE_NULL)
                continue;
            DAT_OS_WAIT_PROXY_AGENT agent{};
            {
                const std::lock_guard lock(state.mutex);
                agent = state.agent;
            }
            agent.proxy_agent_func(agent.instance_data, evd);
        }
        state.ended = true;
    }

    std::shared_ptr<State> state_;
    std::thread thread_;
};

Cno::Cno(Slot& slot, Ia& ia, std::shared_ptr<CnoWaitSet> set) noexcept
    : Object(slot, ia), set_(std::move(set))
{
}

Cno::~Cno() = default;

DAT_RETURN Cno::wait(DAT_TIMEOUT timeout, DAT_EVD_HANDLE& evd) noexcept
{
    const core::Deadline deadline = deadline_of(timeout);
    DAT_RETURN result = DAT_SUCCESS;
    bool woken = false;
    ++waiters_;
    do {
        result = set_->wait(deadline, evd);
        woken = result == DAT_SUCCESS && evd == DAT_HANDLE_NULL;
        // The end of one EVD of several is none of a waiter's business.
    } while (woken && uses() != 0 && !set_->stopped());
    // One poke wakes one.
    if (--waiters_ != 0 && woken)
        set_->poke();
    return result;
}

DAT_RETURN Cno::set_agent(DAT_OS_WAIT_PROXY_AGENT agent) noexcept
{
    // An agent that ends does so without the mutex: its last call may be under way.
    std::unique_ptr<Agent> ended;
    const std::lock_guard lock(agent_mutex_);
    if (agent.proxy_agent_func == nullptr)
        ended = std::move(agent_);
    else if (agent_ != nullptr)
        agent_->replace(agent);
    else
        try {
            agent_ = std::make_unique<Agent>(agent, set_);
        } catch (const std::exception&) { // no thread, or no memory
            return error(DAT_INSUFFICIENT_RESOURCES);
        }
    return DAT_SUCCESS;
}

void Cno::query(DAT_CNO_PARAM& param) const noexcept
{
    const std::lock_guard lock(agent_mutex_);
    param.ia_handle = ia().consumer_handle();
    const DAT_OS_WAIT_PROXY_AGENT agent =
        agent_ == nullptr ? DAT_OS_WAIT_PROXY_AGENT{} : agent_->function();
    tell_proxy(param, agent_ == nullptr ? nullptr : &agent, is_descriptor ? set_->epoll() : -1);
}

namespace {

/// What all ways of making one have in common.
DAT_RETURN create(DAT_IA_HANDLE ia_handle, bool is_descriptor, DAT_OS_WAIT_PROXY_AGENT agent,
                  DAT_CNO_HANDLE* handle, int* fd) noexcept
{
    const Ref<Ia> ia(ia_handle);
    if (!ia)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    auto set = CnoWaitSet::create();
    if (!set)
        return set.error();
    auto cno = make<Cno>(*ia, std::move(*set));
    if (cno == nullptr)
        return no_memory();
    cno->is_descriptor = is_descriptor;
    if (fd != nullptr)
        *fd = cno->set()->epoll();
    if (const DAT_RETURN failed = cno->set_agent(agent))
        return failed;
    return hand_out(std::move(cno), *handle);
}

} // namespace

DAT_RETURN provider_cno_create(DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent,
                               DAT_CNO_HANDLE* handle) noexcept
{
    if (handle == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    return create(ia, false, agent, handle, nullptr);
}

DAT_RETURN provider_cno_fd_create(DAT_IA_HANDLE ia, DAT_FD* fd, DAT_CNO_HANDLE* handle) noexcept
{
    if (fd == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    if (handle == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    return create(ia, true, {}, handle, fd);
}

DAT_RETURN provider_cno_modify_agent(DAT_CNO_HANDLE handle, DAT_OS_WAIT_PROXY_AGENT agent) noexcept
{
    const Ref<Cno> cno(handle);
    if (!cno)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
    if (cno->is_descriptor)
        return error(DAT_INVALID_STATE);
    return cno->set_agent(agent);
}

DAT_RETURN provider_cno_query(DAT_CNO_HANDLE handle, DAT_CNO_PARAM_MASK mask,
                              DAT_CNO_PARAM* param) noexcept
{
    const Ref<Cno> cno(handle);
    if (!cno)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
    // The header's ALL is not the union of the others.
    if (const DAT_RETURN bad = check_query(mask, DAT_CNO_FIELD_PROXY | DAT_CNO_FIELD_ALL, param))
        return bad;
    cno->query(*param);
    return DAT_SUCCESS;
}

DAT_RETURN provider_cno_wait(DAT_CNO_HANDLE handle, DAT_TIMEOUT timeout,
                             DAT_EVD_HANDLE* evd) noexcept
{
    const Ref<Cno> cno(handle);
    if (!cno)
        return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
    if (evd == nullptr)
        return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    return cno->wait(timeout, *evd);
}

DAT_RETURN provider_cno_trigger(DAT_CNO_HANDLE handle, DAT_EVD_HANDLE* evd) noexcept
{
    return provider_cno_wait(handle, 0, evd);
}

DAT_RETURN provider_cno_free(DAT_CNO_HANDLE handle) noexcept
{
    if (const Ref<Cno> cno(handle); cno && cno->waited_on())
        return error(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);
    return free_handle<Cno>(handle, DAT_INVALID_HANDLE_CNO, DAT_INVALID_STATE_CNO_IN_USE);
}

} // namespace dapx::dat
