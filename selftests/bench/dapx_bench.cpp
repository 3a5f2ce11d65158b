// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The workloads over libdapx.
#include "dapx_bench.hpp"
#include "counted.hpp"
#include "workloads.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <sys/ioctl.h>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace bench;

class Device {
public:
    Device(const std::string& name, std::span<std::byte> memory)
        : local(ipv4_gid(name)), memory(memory), context(must(dapx::Context::open(name))),
          pd(must(dapx::Pd::create(context))),
          mr(must(dapx::MemoryRegion::create(
              pd, memory, dapx::Access::local_write | dapx::Access::remote_write)))
    {
    }

    LocalGid local;
    std::span<std::byte> memory;
    dapx::Context context;
    dapx::Pd pd;
    dapx::MemoryRegion mr;
};

class Endpoint {
public:
    Endpoint(Device& device, Depths depths, Waits = Waits::polling)
        : device_(&device),
          evd_(must(dapx::Evd::create(device.context, {.depth = depths.send + depths.recv}))),
          endpoint_(must(dapx::Endpoint::create(device.pd, evd_,
                                                {.send_depth = depths.send,
                                                 .recv_depth = depths.recv,
                                                 .max_send_sge = 1,
                                                 .max_recv_sge = 1,
                                                 .max_inline = small_size})))
    {
        must(endpoint_.qp_init(port));
    }

    [[nodiscard]] Address address() const
    {
        return {.qp_num = endpoint_.qp_num(),
                .rkey = device_->mr.rkey(),
                .memory = device_->mr.addr(),
                .gid = device_->local.gid,
                .receiver = 0,
                .srqs = {}};
    }

    void connect(const Address& peer)
    {
        must(endpoint_.qp_ready_to_receive({.dest_qp_num = peer.qp_num,
                                            .dgid = peer.gid,
                                            .sgid_index = device_->local.index,
                                            .hop_limit = hop_limit,
                                            .path_mtu = path_mtu,
                                            .min_rnr_timer = min_rnr_timer}));
        must(endpoint_.qp_ready_to_send(
            {.timeout = timeout, .retry_count = retries, .rnr_retry = retries}));
    }

    void send()
    {
        must(endpoint_.post_send_inline(0, device_->memory.first(small_size)), "post_send_inline");
    }

    void send_list(std::uint32_t count)
    {
        for (std::uint32_t i = 0; i < count; ++i)
            must(endpoint_.post_send_inline(0, device_->memory.first(small_size),
                                            dapx::SendFlags::signalled, dapx::Doorbell::later),
                 "post_send_inline");
        must(endpoint_.submit(), "submit");
    }

    void send_from_memory()
    {
        must(endpoint_.post_send(0, device_->mr.segment(0, small_size)), "post_send");
    }

    void write(const Address& peer)
    {
        must(endpoint_.post_write(0, device_->mr.segment(0, large_size),
                                  {.addr = peer.memory, .rkey = peer.rkey}),
             "post_write");
    }

    void receive()
    {
        must(endpoint_.post_recv(0, device_->mr.segment(0, small_size)), "post_recv");
    }

    void send_large()
    {
        must(endpoint_.post_send(0, device_->mr.segment(0, large_size)), "post_send");
    }

    void receive_large()
    {
        must(endpoint_.post_recv(0, device_->mr.segment(0, large_size)), "post_recv");
    }

    void make_window()
    {
        window_ = std::make_unique<dapx::Rmr>(must(dapx::Rmr::create(device_->pd)));
    }

    void bind_window()
    {
        must(window_->bind(endpoint_, 0, device_->mr, 0, window_size, dapx::Access::remote_write));
    }

    void unbind_window() { must(window_->unbind(endpoint_, 0)); }

    /// Lets a peer in, and takes that back.
    void lend(std::uint32_t size)
    {
        dapx::Rmr rmr = must(dapx::Rmr::create(device_->pd));
        must(rmr.bind(endpoint_, 0, device_->mr, 0, size, dapx::Access::remote_write,
                      dapx::SendFlags::none));
        must(rmr.free());
    }

    void keep_lent()
    {
        dapx::Rmr rmr = must(dapx::Rmr::create(device_->pd));
        must(rmr.bind(endpoint_, 0, device_->mr, 0, window_size, dapx::Access::remote_write,
                      dapx::SendFlags::none));
        lent_.push_back(std::move(rmr));
    }

    /// There is nothing cheaper.
    void keep_window() { keep_lent(); }

    void take_back()
    {
        for (dapx::Rmr& rmr : lent_)
            must(rmr.free());
        lent_.clear();
    }

    Done poll() { return take_completion(evd_); }

    void sleep() { must(evd_.wait()); }

    void doorbell()
    {
        dapx_doorbell argument{};
        argument.size = sizeof(argument);
        argument.handle = endpoint_.handle();
        argument.flags = DAPX_DOORBELL_SEND;
        if (ioctl(device_->context.fd(), DAPX_DOORBELL, &argument) != 0)
            die("DAPX_DOORBELL: %m");
    }

    void end()
    {
        must(endpoint_.free());
        must(evd_.free());
    }

private:
    Device* device_;
    dapx::Evd evd_;
    dapx::Endpoint endpoint_;
    std::unique_ptr<dapx::Rmr> window_;
    std::vector<dapx::Rmr> lent_;
};

struct Dapx {
    using Device = ::Device;
    using Endpoint = ::Endpoint;
};

// --- Connections through the CM, step by step for all of them as cmtime does ---------------------

constexpr std::uint16_t connections_port = 7702;

class Connections {
public:
    Connections(End& end, unsigned count)
        : end_(&end), count_(count),
          pd_(must(dapx::Pd::create(must(dapx::Context::open(end.device))))),
          evd_(must(dapx::Evd::create(pd_.context(), {.depth = 4 * count})))
    {
        endpoints_.reserve(count);
    }

    void serve()
    {
        dapx::CmId listener = must(dapx::CmId::create(evd_));
        must(listener.bind(must(dapx::Address::parse(address(), connections_port))));
        must(listener.listen());
        end_->peer.meet();
        for (unsigned established = 0; established < count_;) {
            const dapx::Event event = must(evd_.next());
            if (event.type() == dapx::EventType::connect_request) {
                create();
                must(endpoints_.back().accept(must(dapx::CmId::request(listener, event))));
            } else if (event.is_connection(dapx::Connection::established)) {
                ++established;
            }
        }
        await(dapx::Connection::disconnected);
        endpoints_.clear();
        end_->peer.meet();
    }

    void connect()
    {
        end_->peer.meet();
        const auto start = Clock::now();
        for (unsigned i = 0; i < count_; ++i)
            create();
        const auto destination = must(dapx::Address::parse(address(), connections_port));
        const dapx::ConnectOptions options{
            .source = must(dapx::Address::parse(environment("DAPX_IP", "10.0.0.1"), 0))};
        for (dapx::Endpoint& endpoint : endpoints_)
            must(endpoint.connect(destination, options));
        await(dapx::Connection::established);
        for (dapx::Endpoint& endpoint : endpoints_)
            must(endpoint.disconnect());
        await(dapx::Connection::disconnected);
        endpoints_.clear();
        report("connections", seconds(Clock::now() - start) * 1e3);
        end_->peer.meet();
    }

private:
    static std::string address() { return environment("DAPX_PEER_IP", "10.0.0.2"); }

    void create()
    {
        endpoints_.push_back(must(dapx::Endpoint::create(
            pd_, evd_, {.send_depth = 1, .recv_depth = 1, .max_send_sge = 1, .max_recv_sge = 1})));
    }

    void await(dapx::Connection what)
    {
        for (unsigned i = 0; i < count_; ++i)
            if (const dapx::Event event = must(evd_.next()); !event.is_connection(what))
                die("%s", event.describe().c_str());
    }

    End* end_;
    unsigned count_;
    dapx::Pd pd_;
    dapx::Evd evd_;
    std::vector<dapx::Endpoint> endpoints_;
};

// --- A thread that posts, beside another ----------------------------------------------------------

/// Rings until @p beside has returned, which runs on the other CPU: half of the calls took at most so
/// many microseconds.
double doorbell_beside(Endpoint& endpoint, const std::function<void()>& beside)
{
    std::atomic<bool> done = false;
    std::jthread other([&] {
        pin(1);
        beside();
        done = true;
    });
    std::vector<double> samples;
    while (!done) {
        const auto start = Clock::now();
        endpoint.doorbell();
        samples.push_back(seconds(Clock::now() - start) * 1e6);
    }
    std::ranges::sort(samples);
    return samples[samples.size() / 2];
}

/// The system call of a post while another thread of the process frees windows, and while that thread
/// only computes, which takes as much of the host.
void doorbell_beside_frees(unsigned windows)
{
    counted::Pair<Dapx> pair({64, 64});
    for (unsigned i = 0; i < windows; ++i)
        pair.client.keep_lent();
    pin(0);
    Clock::duration time{};
    report("beside", doorbell_beside(pair.client, [&] {
               const auto start = Clock::now();
               pair.client.take_back();
               time = Clock::now() - start;
           }));
    report("alone", doorbell_beside(pair.client, [&] {
               for (const auto start = Clock::now(); Clock::now() - start < time;)
                   ;
           }));
}

/// A connection through the CM from end to end, by one thread that waits for each end's events in turn.
void count_connections(unsigned operations)
{
    constexpr dapx::EndpointOptions options{
        .send_depth = 1, .recv_depth = 1, .max_send_sge = 1, .max_recv_sge = 1};
    const auto open = [](const char* name, const char* otherwise) {
        return must(dapx::Context::open(environment(name, otherwise)));
    };
    const dapx::Pd client_pd = must(dapx::Pd::create(open("DAPX_DEV", "rxe0")));
    const dapx::Pd server_pd = must(dapx::Pd::create(open("DAPX_PEER_DEV", "rxe1")));
    dapx::Evd client_evd = must(dapx::Evd::create(client_pd.context()));
    dapx::Evd server_evd = must(dapx::Evd::create(server_pd.context()));
    const auto address =
        must(dapx::Address::parse(environment("DAPX_PEER_IP", "10.0.0.2"), connections_port));
    dapx::CmId listener = must(dapx::CmId::create(server_evd));
    must(listener.bind(address));
    must(listener.listen());
    const dapx::ConnectOptions from{
        .source = must(dapx::Address::parse(environment("DAPX_IP", "10.0.0.1"), 0))};
    const auto await = [](dapx::Evd& evd, dapx::Connection what) {
        if (const dapx::Event event = must(evd.next()); !event.is_connection(what))
            die("%s", event.describe().c_str());
    };
    const auto connect_once = [&] {
        dapx::Endpoint client = must(dapx::Endpoint::create(client_pd, client_evd, options));
        must(client.connect(address, from));
        const dapx::Event request = must(server_evd.next());
        dapx::Endpoint server = must(dapx::Endpoint::create(server_pd, server_evd, options));
        must(server.accept(must(dapx::CmId::request(listener, request))));
        await(server_evd, dapx::Connection::established);
        await(client_evd, dapx::Connection::established);
        must(client.disconnect());
        await(client_evd, dapx::Connection::disconnected);
        await(server_evd, dapx::Connection::disconnected);
    };

    prepare(Turns::fair);
    count(operations, [&](Meter& meter) {
        meter.start();
        for (unsigned i = 0; i < operations; ++i)
            connect_once();
        meter.stop();
    });
}

/// The death of a process whose endpoints have full rings and share an EVD that is full as well: all
/// of their receives end, and their events wait.
void count_backlogs(unsigned operations)
{
    constexpr std::uint32_t depth = 64;
    prepare(Turns::fair);
    count(operations, [&](Meter& meter) {
        const Victim victim([&] {
            const std::span<std::byte> memory = allocate(small_size);
            Device device(environment("DAPX_DEV", "rxe0"), memory);
            dapx::Evd evd = must(dapx::Evd::create(device.context, {.depth = 1}));
            std::vector<dapx::Endpoint> endpoints;
            endpoints.reserve(operations);
            for (unsigned i = 0; i < operations; ++i) {
                endpoints.push_back(must(dapx::Endpoint::create(
                    device.pd, evd,
                    {.send_depth = 1, .recv_depth = depth, .max_send_sge = 1, .max_recv_sge = 1})));
                must(endpoints.back().qp_init(port));
                for (std::uint32_t n = 0; n < depth; ++n)
                    must(endpoints.back().post_recv(0, device.mr.segment(0, small_size)),
                         "post_recv");
            }
            Victim::await_death();
        });
        meter.start();
        victim.kill();
        meter.stop();
    });
}

} // namespace

int main(int argc, char** argv)
{
    // Its peer is a program of its own: cmtime.
    if (argc == 3 && std::string_view(argv[1]) == "connections") {
        const Controller ends([count = std::stoul(argv[2])](End& end) {
            Connections connections(end, static_cast<unsigned>(count));
            end.client ? connections.connect() : connections.serve();
        });
        ends.join();
        return 0;
    }
    if (argc == 3 && std::string_view(argv[1]) == "doorbell-beside-frees")
        doorbell_beside_frees(static_cast<unsigned>(std::stoul(argv[2])));
    else if (argc == 3 && std::string_view(argv[1]) == "count-connection")
        count_connections(static_cast<unsigned>(std::stoul(argv[2])));
    else if (argc == 3 && std::string_view(argv[1]).starts_with("count-backlogs_of_"))
        count_backlogs(static_cast<unsigned>(std::stoul(argv[2])));
    else if (!counted::main<Dapx>(argc, argv))
        return bench::main<Dapx>(argc, argv);
    return 0;
}
