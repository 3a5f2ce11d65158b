// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace tools {

namespace {

// The smallest limit of all devices for a reject's private data.
constexpr std::size_t max_reason = 64;

// Looks for idle clients in the time after which one is ended, all of which have to find nothing:
// the time in which this process stood still, perhaps with all of the machine, counts as one. And
// how many events a busy server handles between two looks at the clock.
constexpr int looks = 4;
constexpr unsigned events_per_look = 64;

/// Tells the operator. That stderr cannot be written must not end the server, which strangers
/// make say things.
void note(const std::string& text) noexcept
{
    std::fprintf(stderr, "%s\n", text.c_str());
}

} // namespace

Server::Server(ServerOptions options, MakeSession make_session)
    : options_(std::move(options)), make_session_(std::move(make_session)),
      context_(must(dapx::Context::open(options_.device))),
      evd_(must(dapx::Evd::create(context_, {.depth = 1024})))
{
}

void Server::listen()
{
    std::vector<dapx::Address> addresses;
    if (options_.address.empty())
        addresses = must(dapx::Address::of_device(options_.device));
    else
        addresses.push_back(must(dapx::Address::parse(options_.address, 0)));
    if (addresses.empty())
        throw Failure(fmt::format("RDMA device {} has no IP address to listen on; give its network "
                                  "interface one with 'ip addr add'",
                                  options_.device));

    std::string names;
    std::uint16_t port = options_.port;
    for (const dapx::Address& address : addresses) {
        dapx::CmId listener = must(dapx::CmId::create(evd_));
        auto bound = listener.bind(address.with_port(port));
        // One address is enough; another may not be ready yet, as IPv6 ones are for a moment.
        if (!bound && !listeners_.empty())
            continue;
        must(std::move(bound));
        must(listener.listen());
        // With port 0 the system chose one, which is then used for all addresses.
        const dapx::Address local = must(listener.local_address());
        port = local.port();
        names += (names.empty() ? "" : ", ") + local.to_string();
        listeners_.push_back(std::move(listener));
    }
    if (!options_.quiet) {
        fmt::print("listening on {} ({})\n", names, options_.device);
        std::fflush(stdout);
    }
}

int Server::run()
{
    listen();
    unsigned events = 0;
    while (!done_ && !interrupted()) {
        const auto event = try_next_event(evd_, options_.waiting, next_look_);
        if (event)
            handle(*event);
        else if (event.error() == NoEvent::interrupted)
            break;
        if (!event || ++events % events_per_look == 0)
            end_idle();
    }
    return failed_ ? exit_failure : 0;
}

void Server::handle(const dapx::Event& event)
{
    switch (event.type()) {
    case dapx::EventType::connect_request:
        handle_request(event);
        return;
    case dapx::EventType::connection:
        if (event.connection() == dapx::Connection::established) {
            if (const auto client = clients_.find(event.user_data()); client != clients_.end())
                client->second.seen = true;
            return;
        }
        end_session(event.user_data(), event.connection() != dapx::Connection::disconnected,
                    event.describe());
        return;
    case dapx::EventType::completion:
        if (const auto client = clients_.find(event.user_data()); client != clients_.end()) {
            if (event.status() == dapx::Status::success) {
                client->second.seen = true;
                try {
                    client->second.session->on_completion(event);
                } catch (const std::exception& error) {
                    end_session(event.user_data(), true, error.what());
                }
            } else if (event.status() != dapx::Status::flushed) {
                // The connection is broken now, which an event of its own says next.
                note(event.describe());
            }
        }
        return;
    case dapx::EventType::async:
        handle_async(event);
        return;
    default:
        return;
    }
}

void Server::handle_async(const dapx::Event& event)
{
    switch (event.async()) {
    case dapx::AsyncEvent::device_removed:
        throw Failure(event.describe());
    case dapx::AsyncEvent::xrc_qp_disconnected:
    case dapx::AsyncEvent::xrc_qp_error:
        end_session(event.user_data(), event.async() == dapx::AsyncEvent::xrc_qp_error,
                    event.describe());
        return;
    default:
        return;
    }
}

void Server::handle_request(const dapx::Event& event)
{
    const auto listener = std::ranges::find(listeners_, event.handle(), &dapx::CmId::handle);
    if (listener == listeners_.end())
        return;
    auto request = dapx::CmId::request(*listener, event);
    if (!request)
        return;
    // A client that is gone again, or cannot be served, must not stop the server.
    const auto info = request->query();
    if (!info)
        return;
    const std::uint64_t id = next_id_++;
    try {
        if (clients_.size() >= options_.max_clients)
            throw Refused("this server has all its --max-clients; try again later");
        dapx::Pd pd = must(dapx::Pd::create(context_));
        auto session = make_session_({
            .pd = pd,
            .evd = evd_,
            .id = id,
            .peer = info->remote,
            .hello = info->private_data,
            .xrc = info->xrc,
            .idle_timeout = idle_timeout(),
        });
        session->accept(std::move(*request));
        clients_.emplace(id, Client{.pd = std::move(pd),
                                    .session = std::move(session),
                                    .name = info->remote.to_string()});
        if (clients_.size() == 1 && options_.idle_timeout != 0)
            next_look_ = dapx::Clock::now() + idle_timeout() / looks;
    } catch (const std::exception& error) {
        note(fmt::format("refused {}: {}", info->remote.to_string(), error.what()));
        const std::string reason = std::string(error.what()).substr(0, max_reason - 1) + '\0';
        if (*request)
            (void)request->reject(std::as_bytes(std::span(reason)));
    }
}

void Server::end_session(std::uint64_t id, bool failed, const std::string& why)
{
    const auto client = clients_.find(id);
    if (client == clients_.end())
        return;
    const bool last = client->second.session->is_last();
    clients_.erase(client);
    if (failed)
        note(fmt::format("a client was lost: {}", why));
    if (options_.once && (last || failed)) {
        done_ = true;
        failed_ = failed;
    }
}

std::chrono::milliseconds Server::idle_timeout() const
{
    return std::chrono::ceil<std::chrono::milliseconds>(
        std::chrono::duration<double>(options_.idle_timeout));
}

void Server::end_idle()
{
    const dapx::Deadline now = dapx::Clock::now();
    if (now < next_look_)
        return;
    std::vector<std::uint64_t> idle;
    for (auto& [id, client] : clients_) {
        client.unseen = std::exchange(client.seen, false) ? 0 : client.unseen + 1;
        if (client.unseen >= looks)
            idle.push_back(id);
    }
    for (const std::uint64_t id : idle)
        end_session(id, true,
                    fmt::format("nothing came from {} for {} s (--idle-timeout)",
                                clients_.at(id).name, options_.idle_timeout));
    next_look_ = clients_.empty() ? dapx::no_deadline : now + idle_timeout() / looks;
}

} // namespace tools
