// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// dapx-ping: messages to a dapx-ping --server and back, one at a time, like ping(8).
#include "client_endpoint.hpp"
#include "command_line.hpp"
#include "common.hpp"
#include "json_output.hpp"
#include "measure.hpp"
#include "server.hpp"
#include "wire.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using tools::Buffer;
using tools::must;

constexpr std::uint16_t default_port = 7710;
constexpr std::uint32_t max_size = 1 << 20;
constexpr std::uint32_t atomic_size = 8;

enum class Op : std::uint32_t { send = 1, write = 2, read = 3, fetch_add = 4 };

const std::map<std::string, Op> op_names = {
    {"send", Op::send}, {"write", Op::write}, {"read", Op::read}, {"fetch-add", Op::fetch_add}};

/// Private data of the connect.
struct Hello {
    tools::Le64 magic;
    tools::Le32 op;
    tools::Le32 size;
};
constexpr std::uint64_t hello_magic = 0x31676e6970786164; // "daxping1"

/// Private data of the accept: where the client may write, read and add.
struct Welcome {
    tools::Le64 addr;
    tools::Le32 rkey;
    /// Milliseconds within which the server has to hear of the client; 0: for ever. An empty
    /// message, which is not answered, says that it is there.
    tools::Le64 idle_timeout;
};

/// The same of XRC, and the queue that is the client's.
struct XrcWelcome {
    Welcome memory;
    tools::Le32 srq;
};

struct Options {
    tools::ServerOptions server;
    bool serve = false;
    std::string host;
    std::string device;
    std::string source;
    std::uint16_t port = default_port;
    std::uint64_t count = 0;
    double interval = 1;
    double timeout = 5;
    std::uint32_t size = 64;
    Op op = Op::send;
    bool xrc = false;
    std::string domain;
    bool quiet = false;
    bool as_json = false;
    tools::Waiting waiting = tools::Waiting::wait;
};

dapx::EndpointOptions endpoint_options(const dapx::Context& context, std::uint64_t id = 0)
{
    const dapx::DeviceAttributes device = must(context.query_device());
    return {.send_depth = 16,
            .recv_depth = 16,
            .max_rd_atomic = static_cast<std::uint16_t>(std::min(device.max_rd_atomic, 1U)),
            .max_dest_rd_atomic =
                static_cast<std::uint16_t>(std::min(device.max_dest_rd_atomic, 1U)),
            .user_data = id};
}

/// Data that is another for each ping.
void fill(std::span<std::byte> data, std::uint64_t seq)
{
    std::uint64_t state = seq * 0x9e3779b97f4a7c15;
    for (std::byte& b : data) {
        state = state * 6364136223846793005 + 1442695040888963407;
        b = static_cast<std::byte>(state >> 56);
    }
}

// --- Server -----------------------------------------------------------------------------------

dapx::Access rights(const Hello& hello)
{
    switch (Op{std::uint32_t{hello.op}}) {
    case Op::send:
        return dapx::Access::local_write;
    case Op::write:
    case Op::read:
        // Both are verified: what was written is read back, what is read was written.
        return dapx::Access::local_write | dapx::Access::remote_write | dapx::Access::remote_read;
    case Op::fetch_add:
        return dapx::Access::local_write | dapx::Access::remote_atomic;
    }
    throw tools::Refused("unknown operation; use the same version of dapx-ping on both sides");
}

Welcome welcome(const dapx::MemoryRegion& region, const tools::SessionResources& resources)
{
    const dapx::RemoteAddress remote = region.remote();
    return {.addr = remote.addr,
            .rkey = remote.rkey,
            .idle_timeout = static_cast<std::uint64_t>(resources.idle_timeout.count())};
}

// A slot is free again when its message was answered, or seen, so a few are in turn.
constexpr std::uint32_t slots = 4;

/// Sends each message back, and has memory for the other operations.
class EchoSession : public tools::Session {
public:
    EchoSession(const tools::SessionResources& resources, const Hello& hello)
        : size_(hello.size), memory_(std::size_t{size_} * slots),
          region_(must(dapx::MemoryRegion::create(resources.pd, memory_.span(), rights(hello)))),
          endpoint_(must(dapx::Endpoint::create(
              resources.pd, resources.evd, endpoint_options(resources.pd.context(), resources.id))))
    {
        for (std::uint32_t slot = 0; slot < slots; ++slot)
            post_receive(slot);
        welcome_ = welcome(region_, resources);
    }

    void accept(dapx::CmId&& request) override
    {
        must(endpoint_.accept(std::move(request), {.private_data = tools::bytes_of(welcome_)}));
    }

    void on_completion(const dapx::Event& event) override
    {
        const auto slot = static_cast<std::uint32_t>(event.wr_id());
        if (event.opcode() == dapx::Opcode::recv && event.byte_len() != 0)
            must(endpoint_.post_send(slot, segment(slot, event.byte_len())), "post_send");
        else
            post_receive(slot);
    }

private:
    dapx::Segment segment(std::uint32_t slot, std::uint32_t length) const
    {
        return region_.segment(std::uint64_t{slot} * size_, length);
    }

    void post_receive(std::uint32_t slot)
    {
        must(endpoint_.post_recv(slot, segment(slot, size_)), "post_recv");
    }

    std::uint32_t size_;
    Buffer memory_;
    dapx::MemoryRegion region_;
    dapx::Endpoint endpoint_;
    Welcome welcome_;
};

/// Takes each message out of a shared receive queue, and has memory for the other operations. A
/// receive queue pair cannot send: that a message has arrived the client knows by its own request,
/// which ends when the data are where they belong. That they are the right ones is seen here.
class XrcSession : public tools::Session {
public:
    /// @param shared nullptr for a domain of this client's own, so that no other client reaches
    ///               its queue.
    XrcSession(const tools::SessionResources& resources, const Hello& hello,
               const dapx::XrcDomain* shared)
        : size_(hello.size), memory_(std::size_t{size_} * slots), expected_(size_),
          own_domain_(own_domain(resources, shared)),
          domain_(shared == nullptr ? *own_domain_ : *shared),
          region_(must(dapx::MemoryRegion::create(resources.pd, memory_.span(), rights(hello), 0,
                                                  dapx::RegionFlags::xrc))),
          srq_(must(dapx::Srq::create_xrc(domain_, resources.pd, resources.evd,
                                          {.depth = slots, .user_data = resources.id}))),
          qp_(must(dapx::XrcQp::create(domain_, &resources.evd, resources.id))),
          welcome_{.memory = welcome(region_, resources), .srq = srq_.number()}
    {
        for (std::uint32_t slot = 0; slot < slots; ++slot)
            post_receive(slot);
    }

    void accept(dapx::CmId&& request) override
    {
        must(qp_.accept(std::move(request), tools::bytes_of(welcome_)));
    }

    void on_completion(const dapx::Event& event) override
    {
        const auto slot = static_cast<std::uint32_t>(event.wr_id());
        if (event.byte_len() == 0) {
            post_receive(slot);
            return;
        }
        fill(expected_.span(), ++messages_);
        if (event.byte_len() != size_ ||
            !std::ranges::equal(expected_.span(), memory_.part(std::size_t{slot} * size_, size_)))
            throw tools::Failure(fmt::format("seq={}: what came is not what was sent", messages_));
        post_receive(slot);
    }

private:
    static std::unique_ptr<dapx::XrcDomain> own_domain(const tools::SessionResources& resources,
                                                       const dapx::XrcDomain* shared)
    {
        if (shared != nullptr)
            return nullptr;
        return std::make_unique<dapx::XrcDomain>(
            must(dapx::XrcDomain::open(resources.pd.context(), -1, O_CREAT)));
    }

    void post_receive(std::uint32_t slot)
    {
        must(srq_.post_recv(slot, region_.segment(std::uint64_t{slot} * size_, size_)),
             "post_recv");
    }

    std::uint32_t size_;
    Buffer memory_;
    Buffer expected_;
    std::unique_ptr<dapx::XrcDomain> own_domain_;
    const dapx::XrcDomain& domain_;
    dapx::MemoryRegion region_;
    dapx::Srq srq_;
    dapx::XrcQp qp_;
    XrcWelcome welcome_;
    std::uint64_t messages_ = 0;
};

/// @param domain of a file, which all clients share; nullptr: none.
std::unique_ptr<tools::Session> make_session(const tools::SessionResources& resources,
                                             const Options& options, const dapx::XrcDomain* domain)
{
    const auto hello = tools::message_from<Hello>(resources.hello);
    if (!hello || hello->magic != hello_magic)
        throw tools::Refused("this is a dapx-ping server, for dapx-ping only");
    if (hello->size == 0 || hello->size > max_size)
        throw tools::Refused("bad message size");
    if (resources.xrc) {
        if (!options.xrc)
            throw tools::Refused("the server was started without --xrc");
        return std::make_unique<XrcSession>(resources, *hello, domain);
    }
    return std::make_unique<EchoSession>(resources, *hello);
}

dapx::XrcDomain open_domain(const dapx::Context& context, const std::string& file)
{
    const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        throw tools::Failure(fmt::format("cannot open {}: {}", file, std::strerror(errno)));
    auto domain = dapx::XrcDomain::open(context, fd, O_CREAT);
    ::close(fd);
    return must(std::move(domain));
}

int serve(Options& options)
{
    options.server.device = tools::choose_device(options.device);
    options.server.address = options.source;
    options.server.port = options.port;
    options.server.waiting = options.waiting;
    tools::catch_interrupts();
    // Outlives the sessions, which are the server's.
    std::optional<dapx::XrcDomain> domain;
    tools::Server server(options.server, [&](const tools::SessionResources& resources) {
        return make_session(resources, options, domain ? &*domain : nullptr);
    });
    if (!options.domain.empty())
        domain = open_domain(server.context(), options.domain);
    return server.run();
}

// --- Client -----------------------------------------------------------------------------------

class Client {
public:
    explicit Client(const Options& options)
        : options_(options), device_(tools::choose_device(options.device)),
          route_(tools::choose_route(options.host, options.port, options.source, device_)),
          context_(must(dapx::Context::open(device_))), pd_(must(dapx::Pd::create(context_))),
          evd_(must(dapx::Evd::create(context_, {.depth = 64}))),
          memory_(std::size_t{2} * options.size),
          region_(must(dapx::MemoryRegion::create(pd_, memory_.span(), dapx::Access::local_write, 0,
                                                  options.xrc ? dapx::RegionFlags::xrc
                                                              : dapx::RegionFlags::none))),
          out_(memory_.part(0, options.size)), in_(memory_.part(options.size, options.size)),
          endpoint_(pd_, evd_, endpoint_options(context_), options.xrc)
    {
        // Those of XRC are the module's.
        if (options.op == Op::fetch_add && !options.xrc &&
            !dapx::has(must(context_.query_device()).caps, dapx::DeviceCap::atomics))
            throw tools::Failure(
                fmt::format("RDMA device {} has no atomics; choose another --op", device_));
    }

    int run()
    {
        tools::catch_interrupts();
        connect();
        if (!options_.as_json)
            fmt::print("PING {} from {} ({}): {}{}, {}\n", route_.peer.to_string(),
                       route_.source.host(), device_, op_name(), options_.xrc ? " by XRC" : "",
                       tools::bytes_text(options_.size));
        std::fflush(stdout);
        try {
            ping_all();
        } catch (const tools::Failure&) {
            report();
            throw;
        }
        report();
        // Where all went well the peer is told; where not, the process' end does it.
        (void)endpoint_->disconnect();
        return latencies_.count() == 0 ? tools::exit_failure : 0;
    }

private:
    void connect()
    {
        const Hello hello = {.magic = hello_magic,
                             .op = static_cast<std::uint32_t>(options_.op),
                             .size = options_.size};
        const auto start = dapx::Clock::now();
        const auto deadline = dapx::deadline_after(timeout());
        must(endpoint_->connect(route_.peer, {.source = route_.source,
                                              .deadline = deadline,
                                              .private_data = tools::bytes_of(hello)}));
        tools::await_connection(*endpoint_, evd_, route_.peer, deadline + 1s);
        connect_time_ = dapx::Clock::now() - start;
        tools::await_reader(context_);
        const std::vector<std::byte> answer = must(endpoint_->query()).private_data;
        const auto welcome = tools::message_from<Welcome>(answer);
        const auto xrc = tools::message_from<XrcWelcome>(answer);
        if (!welcome || (options_.xrc && !xrc))
            throw tools::Failure("the peer's answer is not that of a dapx-ping server");
        remote_ = {.addr = welcome->addr, .rkey = welcome->rkey};
        if (options_.xrc)
            endpoint_.set_srq(xrc->srq);
        if (welcome->idle_timeout != 0) {
            alive_interval_ = std::chrono::milliseconds(welcome->idle_timeout) / 3;
            next_alive_ = dapx::Clock::now() + alive_interval_;
        }
    }

    void ping_all()
    {
        const auto interval = std::chrono::duration_cast<dapx::Clock::duration>(
            std::chrono::duration<double>(options_.interval));
        auto next = dapx::Clock::now();
        for (std::uint64_t seq = 1; options_.count == 0 || seq <= options_.count; ++seq) {
            sleep_until(next);
            if (tools::interrupted())
                return;
            keep_alive();
            ++sent_;
            const auto time = ping(seq);
            if (!time)
                return;
            latencies_.add(*time);
            if (!options_.quiet && !options_.as_json) {
                fmt::print("{} from {}: seq={} time={}\n", tools::bytes_text(options_.size),
                           route_.peer.host(), seq, tools::time_text(*time));
                std::fflush(stdout);
            }
            next = std::max(next + interval, dapx::Clock::now());
        }
    }

    /// One operation, verified. @return its time; none if interrupted.
    std::optional<tools::Nanoseconds> ping(std::uint64_t seq)
    {
        switch (options_.op) {
        case Op::send:
            return ping_send(seq);
        case Op::write:
            return ping_write(seq);
        case Op::read:
            return ping_read(seq);
        case Op::fetch_add:
            return ping_fetch_add(seq);
        }
        return std::nullopt;
    }

    /// A message goes out, and comes back: from posting it to seeing it in the EVD. By XRC none
    /// comes back: until its data are in the memory of a receive of the peer's.
    std::optional<tools::Nanoseconds> ping_send(std::uint64_t seq)
    {
        fill(seq);
        if (options_.xrc) {
            const auto start = dapx::Clock::now();
            post("post_send", [&](auto& to) { return to.post_send(seq, out_segment()); });
            return await_completion(start);
        }
        must(endpoint_.rc().post_recv(seq, in_segment()), "post_recv");
        const auto start = dapx::Clock::now();
        must(endpoint_.rc().post_send(seq, out_segment(), dapx::SendFlags::none), "post_send");
        return finish(start, seq);
    }

    /// Bytes are put into the peer's memory: until its device has acknowledged them.
    std::optional<tools::Nanoseconds> ping_write(std::uint64_t seq)
    {
        fill(seq);
        const auto start = dapx::Clock::now();
        post("post_write", [&](auto& to) { return to.post_write(seq, out_segment(), remote_); });
        const auto time = await_completion(start);
        if (!time)
            return time;
        // Not counted: to see that they are there.
        const auto check = dapx::Clock::now();
        post("post_read", [&](auto& to) { return to.post_read(seq, in_segment(), remote_); });
        return finish(check, seq) ? time : std::nullopt;
    }

    /// Bytes are fetched from the peer's memory, where they were put before.
    std::optional<tools::Nanoseconds> ping_read(std::uint64_t seq)
    {
        fill(seq);
        post("post_write", [&](auto& to) { return to.post_write(seq, out_segment(), remote_); });
        if (!await_completion(dapx::Clock::now()))
            return std::nullopt;
        const auto start = dapx::Clock::now();
        post("post_read", [&](auto& to) { return to.post_read(seq, in_segment(), remote_); });
        return finish(start, seq);
    }

    /// One is added to a number of the peer's, which counts the pings.
    std::optional<tools::Nanoseconds> ping_fetch_add(std::uint64_t seq)
    {
        const auto start = dapx::Clock::now();
        post("post_fetch_add",
             [&](auto& to) { return to.post_fetch_add(seq, in_segment(), remote_, 1); });
        const auto time = await_completion(start);
        std::uint64_t before = 0;
        std::memcpy(&before, in_.data(), sizeof(before));
        if (time && before != seq - 1)
            throw tools::Failure(fmt::format("seq={}: the peer's counter was {} instead of {}", seq,
                                             before, seq - 1));
        return time;
    }

    std::optional<tools::Nanoseconds> await_completion(dapx::Deadline start)
    {
        const auto event = tools::next_event(
            evd_, options_.waiting, start + std::chrono::ceil<dapx::Clock::duration>(timeout()));
        const auto end = dapx::Clock::now();
        if (!event)
            return std::nullopt;
        if (!event->is_completion() || event->status() != dapx::Status::success)
            throw tools::lost(route_.peer, *event);
        return end - start;
    }

    /// Awaits the operation that brings the data of ping @p seq to in_, and compares it.
    std::optional<tools::Nanoseconds> finish(dapx::Deadline start, std::uint64_t seq)
    {
        const auto time = await_completion(start);
        if (time && !std::equal(in_.begin(), in_.end(), out_.begin()))
            throw tools::Failure(fmt::format("seq={}: what came back is not what was sent", seq));
        return time;
    }

    void fill(std::uint64_t seq)
    {
        ::fill(out_, seq);
        std::ranges::fill(in_, std::byte{0});
    }

    void report() const
    {
        if (options_.as_json) {
            const nlohmann::json result = {
                {"peer", route_.peer.to_string()},
                {"source", route_.source.host()},
                {"device", device_},
                {"op", op_name()},
                {"xrc", options_.xrc},
                {"size", options_.size},
                {"sent", sent_},
                {"received", latencies_.count()},
                {"connect_us", static_cast<double>(connect_time_.count()) / 1e3},
                {"latency", latencies_.json()},
                {"send_doorbells", endpoint_->send_doorbells()},
            };
            fmt::print("{}", tools::json_text(result, {.json = true, .pretty = true}));
            return;
        }
        fmt::print("--- {} ---\n", route_.peer.to_string());
        fmt::print("{} sent, {} answered, connected in {}\n", sent_, latencies_.count(),
                   tools::time_text(connect_time_));
        if (latencies_.count() != 0)
            fmt::print("{} {}\n", options_.op == Op::send && !options_.xrc ? "round trip" : "time",
                       latencies_.text());
    }

    void sleep_until(dapx::Deadline when)
    {
        // In slices: sleeping goes on after a signal.
        while (!tools::interrupted() && dapx::Clock::now() < when) {
            keep_alive();
            std::this_thread::sleep_until(std::min(when, dapx::Clock::now() + 100ms));
        }
    }

    /// Tells the server that there is a client, if it is time to: between messages, and as it does
    /// not see writes, reads and atomics.
    void keep_alive()
    {
        const auto now = dapx::Clock::now();
        if (now < next_alive_)
            return;
        post("post_send", [&](auto& to) {
            return to.post_send(0, std::span<const dapx::Segment>(), dapx::SendFlags::none);
        });
        next_alive_ = now + alive_interval_;
    }

    const char* op_name() const
    {
        for (const auto& [name, op] : op_names)
            if (op == options_.op)
                return name.c_str();
        return "";
    }

    std::chrono::duration<double> timeout() const
    {
        return std::chrono::duration<double>(options_.timeout);
    }

    template <class Post> void post(const char* call, const Post& one)
    {
        must(endpoint_.post(one), call);
    }

    dapx::Segment out_segment() const { return region_.segment(0, options_.size); }
    dapx::Segment in_segment() const { return region_.segment(options_.size, options_.size); }

    const Options& options_;
    std::string device_;
    tools::Route route_;
    dapx::Context context_;
    dapx::Pd pd_;
    dapx::Evd evd_;
    Buffer memory_;
    dapx::MemoryRegion region_;
    std::span<std::byte> out_;
    std::span<std::byte> in_;
    tools::ClientEndpoint endpoint_;
    dapx::RemoteAddress remote_;
    std::chrono::milliseconds alive_interval_{};
    dapx::Deadline next_alive_ = dapx::no_deadline;
    tools::Nanoseconds connect_time_{};
    tools::Latencies latencies_;
    std::uint64_t sent_ = 0;
};

} // namespace

int main(int argc, char** argv)
{
    Options options;
    CLI::App app("Sends messages to a dapx-ping server over RDMA and times the answers.",
                 "dapx-ping");
    app.set_version_flag("--version", "dapx-ping " DAPX_VERSION);
    app.add_option("host", options.host, "Name or address of the server");
    auto* server = app.add_flag("--server", options.serve, "Be the server");
    tools::add_server_options(app, options.server);
    app.add_option("-d,--device", options.device, "RDMA device; default: the only usable one");
    app.add_option("-S,--source", options.source,
                   "Own address; default: the device's that fits, for a server all of them");
    app.add_option("-p,--port", options.port, "Port of the server")->capture_default_str();
    app.add_option("-c,--count", options.count, "End after so many; default: when interrupted");
    app.add_option("-i,--interval", options.interval, "Seconds from one to the next")
        ->check(tools::seconds(0))
        ->capture_default_str();
    app.add_option("-W,--timeout", options.timeout, "Seconds to wait for an answer")
        ->check(tools::seconds(0.001))
        ->capture_default_str();
    app.add_option("-s,--size", options.size, "Bytes of a message; k and m may follow")
        ->transform(CLI::AsSizeValue(false).description(""))
        ->check(CLI::Range(std::uint32_t{1}, max_size).description(""))
        ->capture_default_str();
    app.add_option("--op", options.op, "send, write, read or fetch-add")
        ->transform(tools::one_of(op_names))
        ->type_name("OP");
    auto* xrc = app.add_flag("--xrc", options.xrc,
                             "By XRC, one way only; a server takes either kind of client then");
    app.add_option("--domain", options.domain,
                   "With --server --xrc: file whose XRC domain to be in; default: one of its own")
        ->needs(xrc)
        ->needs(server);
    app.add_flag("-q,--quiet", options.quiet, "Print the summary only");
    app.add_flag("-j,--json", options.as_json, "Print the summary only, as JSON");
    tools::add_waiting_options(app, options.waiting);
    return tools::run(app, argc, argv, [&] {
        if (options.serve == !options.host.empty())
            throw tools::UsageError("give either --server or the host of one; see --help");
        if (options.op == Op::fetch_add)
            options.size = atomic_size;
        return options.serve ? serve(options) : Client(options).run();
    });
}
