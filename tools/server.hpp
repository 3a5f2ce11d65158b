// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The listening end of a tool: one thread, one EVD for everything, a session for each client.
#pragma once

#include "budget.hpp"
#include "common.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace tools {

/// What a session is made of.
struct SessionResources {
    const dapx::Pd& pd; ///< this client's alone: no key of another's memory is valid in it
    const dapx::Evd& evd;
    std::uint64_t id; ///< to be its objects' user_data: events find their session by it
    dapx::Address peer;
    std::span<const std::byte> hello; ///< the client's private data
    bool xrc;                         ///< whether the client's endpoint is one of XRC
    /// What it has to hear of within this time, or it ends the session; 0: for ever. To be told
    /// to the client.
    std::chrono::milliseconds idle_timeout;
};

/// One client.
class Session {
public:
    virtual ~Session() = default;

    /// Accepts the client's request. Failure: the client is told why.
    virtual void accept(dapx::CmId&& request) = 0;
    /// A work request ended successfully.
    virtual void on_completion(const dapx::Event& event) = 0;
    /// False if the same client will come back for more.
    [[nodiscard]] virtual bool is_last() const { return true; }
};

struct ServerOptions {
    std::string device;
    std::string address; ///< empty: all of the device's
    std::uint16_t port = 0;
    bool once = false; ///< end with the first client
    bool quiet = false;
    std::size_t max_clients = 64;
    double idle_timeout = 60; ///< seconds; 0: none
    Waiting waiting = Waiting::wait;
};

class Server {
public:
    using MakeSession = std::function<std::unique_ptr<Session>(const SessionResources&)>;

    /// Opens the device. Failure if that does not work.
    Server(ServerOptions options, MakeSession make_session);

    /// Listens, and serves clients until interrupted, or with ServerOptions::once until one is
    /// served. @return exit code.
    int run();

    /// In which everything of the sessions is made.
    [[nodiscard]] const dapx::Context& context() const { return context_; }

private:
    /// A client, and what is its own.
    struct Client {
        // Order matters: the session goes before what it uses.
        dapx::Pd pd;
        std::unique_ptr<Session> session;
        std::string name;
        bool seen = true; ///< something came since end_idle() looked last
        int unseen = 0;   ///< looks in a row that found nothing
    };

    void listen();
    void handle(const dapx::Event& event);
    void handle_async(const dapx::Event& event);
    void handle_request(const dapx::Event& event);
    void end_session(std::uint64_t id, bool failed, const std::string& why);
    /// Ends the sessions of which nothing was heard for too long, if it is time to look.
    void end_idle();
    [[nodiscard]] std::chrono::milliseconds idle_timeout() const;

    ServerOptions options_;
    MakeSession make_session_;
    // Order matters: sessions go before what they use.
    dapx::Context context_;
    dapx::Evd evd_;
    std::vector<dapx::CmId> listeners_;
    std::unordered_map<std::uint64_t, Client> clients_;
    dapx::Deadline next_look_ = dapx::no_deadline;
    std::uint64_t next_id_ = 1;
    bool done_ = false;
    bool failed_ = false;
};

} // namespace tools
