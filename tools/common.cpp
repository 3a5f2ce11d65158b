// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "common.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include <sys/mman.h>

namespace tools {

namespace {

volatile std::sig_atomic_t signal_seen = 0;

// A signal that arrives just before a wait begins does not end it; so no wait is longer.
constexpr auto longest_wait = std::chrono::milliseconds(250);
constexpr auto mixed_poll = std::chrono::microseconds(200);

/// The reason that the peer gave with its reject, if it is a text of these tools.
std::string reject_reason(const dapx::EndpointBase& endpoint)
{
    const auto info = endpoint.query();
    if (!info)
        return {};
    std::string text;
    for (const std::byte b : info->private_data) {
        const char c = static_cast<char>(b);
        if (c == '\0')
            break;
        if (c < ' ' || c > '~')
            return {};
        text += c;
    }
    return text;
}

} // namespace

void must(dapx::PostResult post, const char* call)
{
    if (post != dapx::PostResult::ok) [[unlikely]]
        throw Failure(dapx::explain(post, call).message());
}

std::string choose_device(const std::string& wanted)
{
    // Without the module, that is the cause to tell, not what it does to devices.
    (void)must(dapx::Context::open_node());
    if (!wanted.empty())
        return wanted;
    auto device = dapx::DeviceList::read().only_usable();
    if (!device && device.error().code() == ENOTUNIQ)
        throw Failure(device.error().message() + " with -d");
    return must(std::move(device));
}

Route choose_route(const std::string& host, std::uint16_t port, const std::string& source,
                   const std::string& device)
{
    const std::vector<dapx::Address> peers = must(dapx::Address::parse_all(host, port));
    if (!source.empty()) {
        const std::vector<dapx::Address> sources = must(dapx::Address::parse_all(source, 0));
        for (const dapx::Address& peer : peers)
            for (const dapx::Address& own : sources)
                if (own.family() == peer.family())
                    return {peer, own};
        return {peers.front(), sources.front()};
    }
    for (const dapx::Address& peer : peers)
        if (const auto own = dapx::Address::source_for(device, peer); own)
            return {peer, own->with_port(0)};
    return {peers.front(), must(dapx::Address::source_for(device, peers.front()))};
}

bool interrupted()
{
    return signal_seen != 0;
}

void catch_interrupts()
{
    struct ::sigaction action{};
    action.sa_handler = [](int) { signal_seen = 1; };
    // No SA_RESTART: waits are to end.
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
}

std::optional<dapx::Event> next_event(dapx::Evd& evd, Waiting waiting, dapx::Deadline deadline)
{
    const auto event = try_next_event(evd, waiting, deadline);
    if (event)
        return *event;
    if (event.error() == NoEvent::late)
        throw Failure("no answer from the peer in time");
    return std::nullopt;
}

std::expected<dapx::Event, NoEvent> try_next_event(dapx::Evd& evd, Waiting waiting,
                                                   dapx::Deadline deadline)
{
    dapx::Event event;
    if (evd.poll(event))
        return event;
    dapx::Deadline poll_until{};
    if (waiting == Waiting::poll)
        poll_until = dapx::no_deadline;
    else if (waiting == Waiting::mixed)
        poll_until = dapx::Clock::now() + mixed_poll;
    for (;;) {
        // The clock costs more than a look at the ring.
        for (int looks = 0; looks < 64; ++looks)
            if (evd.poll(event))
                return event;
        if (interrupted())
            return std::unexpected(NoEvent::interrupted);
        if (evd.dead()) {
            // The last event may have come in between.
            if (evd.poll(event))
                return event;
            throw Failure("the RDMA device was removed");
        }
        const dapx::Deadline now = dapx::Clock::now();
        if (now >= deadline)
            return std::unexpected(NoEvent::late);
        if (now < poll_until)
            continue;
        const auto events = evd.wait(1, std::min(deadline, now + longest_wait));
        if (!events && events.error().code() != ETIMEDOUT && events.error().code() != EINTR)
            throw Failure(events.error().message());
    }
}

Buffer::Buffer(std::size_t size) : size_(size)
{
    void* memory = ::mmap(nullptr, std::max<std::size_t>(size, 1), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        throw Failure(fmt::format("cannot allocate {} bytes of memory", size));
    data_ = static_cast<std::byte*>(memory);
}

Buffer::~Buffer()
{
    ::munmap(data_, std::max<std::size_t>(size_, 1));
}

void await_connection(const dapx::EndpointBase& endpoint, dapx::Evd& evd, const dapx::Address& peer,
                      dapx::Deadline deadline)
{
    const std::string attempt = "cannot connect to " + peer.to_string() + ": ";
    while (const auto event = next_event(evd, Waiting::wait, deadline)) {
        if (event->type() != dapx::EventType::connection)
            continue;
        switch (event->connection()) {
        case dapx::Connection::established:
            return;
        case dapx::Connection::peer_rejected:
            if (const std::string reason = reject_reason(endpoint); !reason.empty())
                throw Failure(attempt + reason);
            throw Failure(attempt + event->describe());
        case dapx::Connection::non_peer_rejected:
            if (event->error() == EPROTO)
                throw Failure(attempt + event->describe());
            throw Failure(attempt + describe(event->connection()) +
                          "; start the server there first, and mind its port");
        case dapx::Connection::timed_out:
            throw Failure(attempt + describe(event->connection()) +
                          "; see whether the address is right, and reached from this RDMA device");
        case dapx::Connection::unreachable:
            throw Failure(attempt + describe(event->connection()) +
                          "; name another with -d, or a source address with -S");
        default:
            throw Failure(attempt + event->describe());
        }
    }
    throw Failure("interrupted");
}

void await_reader(const dapx::Context& context)
{
    if (dapx::has(must(context.query_device()).caps, dapx::DeviceCap::iwarp))
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

Failure lost(const dapx::Address& peer, const dapx::Event& event)
{
    if (event.is_connection(dapx::Connection::disconnected))
        return Failure("the server at " + peer.to_string() +
                       " ended the connection; see what it says, and start it again");
    return Failure("lost the connection to " + peer.to_string() + ": " + event.describe() +
                   "; see whether the server there still runs, and its host is reached");
}

} // namespace tools
