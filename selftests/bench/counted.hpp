// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What is counted, whatever the API: in one process that has both ends, each on its own device. An Api
// is as in workloads.hpp, and has
//
//   Endpoint(device, depths, Waits)
//   sleep()            after a poll that found nothing: until there is something, or once for nothing
//   doorbell()         the system call of a post, with nothing to do
//   end()              frees it
#pragma once

#include "bench.hpp"
#include "counters.hpp"

#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

namespace bench::counted {

enum class Messages { small, large };

template <class Endpoint> void receive(Endpoint& endpoint, Messages messages)
{
    if (messages == Messages::large)
        endpoint.receive_large();
    else
        endpoint.receive();
}

template <class Endpoint> void send(Endpoint& endpoint, Messages messages)
{
    if (messages == Messages::large)
        endpoint.send_large();
    else
        endpoint.send();
}

/// Both ends of a connection, and the memory that they use.
template <class Api> class Pair {
public:
    using Device = typename Api::Device;
    using Endpoint = typename Api::Endpoint;

    explicit Pair(Depths depths, Waits waits = Waits::polling, Messages messages = Messages::small)
        : memory_(allocate(large_size)), client_device_(environment("DAPX_DEV", "rxe0"), memory_),
          server_device_(environment("DAPX_PEER_DEV", "rxe1"), memory_),
          client(client_device_, depths, waits), server(server_device_, depths, waits)
    {
        for (Endpoint* end : {&client, &server})
            for (std::uint32_t i = 0; i < depths.recv; ++i)
                receive(*end, messages);
        client.connect(server.address());
        server.connect(client.address());
    }

    Device& client_device() { return client_device_; }

private:
    std::span<std::byte> memory_;
    Device client_device_;
    Device server_device_;

public:
    Endpoint client;
    Endpoint server;
};

/// Takes completions of an endpoint.
template <class Endpoint> class Taker {
public:
    explicit Taker(Endpoint& endpoint, Waits waits = Waits::polling,
                   Messages messages = Messages::small)
        : endpoint_(&endpoint), waits_(waits), kind_(messages)
    {
    }

    /// Until there were so many messages and so many requests done, since the last time. They come
    /// in either order.
    void take(int messages, int requests)
    {
        messages_ -= messages;
        requests_ -= requests;
        while (messages_ < 0 || requests_ < 0) {
            switch (endpoint_->poll()) {
            case Done::nothing:
                if (waits_ == Waits::asleep)
                    endpoint_->sleep();
                else
                    look_later();
                break;
            case Done::sent:
                ++requests_;
                break;
            case Done::received:
                ++messages_;
                receive(*endpoint_, kind_);
                break;
            }
        }
    }

private:
    Endpoint* endpoint_;
    Waits waits_;
    Messages kind_;
    int messages_ = 0;
    int requests_ = 0;
};

/// An 8-byte message there and back, for one thread that polls both ends, and sleeps at neither.
template <class Api> void round_trip(unsigned operations)
{
    Pair<Api> pair({64, 64});
    Taker client(pair.client);
    Taker server(pair.server);
    count(operations, [&](Meter& meter) {
        meter.start();
        for (unsigned i = 0; i < operations; ++i) {
            pair.client.send();
            server.take(1, 0);
            pair.server.send();
            client.take(1, 1);
            server.take(0, 1);
        }
        meter.stop();
    });
}

/// The same, by two threads that sleep.
template <class Api> void round_trip_asleep(unsigned operations)
{
    Pair<Api> pair({64, 64}, Waits::asleep);
    std::jthread server([&](const std::stop_token& stop) {
        Taker server(pair.server, Waits::asleep);
        while (!stop.stop_requested()) {
            server.take(1, 0);
            pair.server.send();
            server.take(0, 1);
        }
    });
    Taker client(pair.client, Waits::asleep);
    const auto go = [&] {
        pair.client.send();
        client.take(1, 1);
    };
    count(operations, [&](Meter& meter) {
        meter.start();
        for (unsigned i = 0; i < operations; ++i)
            go();
        meter.stop();
    });
    server.request_stop();
    go();
}

/// From a thread to another, @p in_flight at a time, both asleep until all have come.
template <class Api>
void stream(unsigned operations, Messages messages, unsigned in_flight, Depths depths)
{
    const auto all = static_cast<int>(in_flight);
    Pair<Api> pair(depths, Waits::asleep, messages);
    std::jthread server([&](const std::stop_token& stop) {
        Taker server(pair.server, Waits::asleep, messages);
        while (!stop.stop_requested())
            server.take(all, 0);
    });
    Taker client(pair.client, Waits::asleep, messages);
    const auto go = [&] {
        for (unsigned i = 0; i < in_flight; ++i)
            send(pair.client, messages);
        client.take(0, all);
    };
    count(operations / in_flight * in_flight, [&](Meter& meter) {
        meter.start();
        for (unsigned i = 0; i < operations / in_flight; ++i)
            go();
        meter.stop();
    });
    server.request_stop();
    go();
}

/// 8-byte messages.
template <class Api> void rate(unsigned operations)
{
    stream<Api>(operations, Messages::small, 32, {64, 128});
}

template <class Api> void sends_64KiB(unsigned operations)
{
    stream<Api>(operations, Messages::large, 8, {16, 32});
}

template <class Api> void doorbell(unsigned operations)
{
    Pair<Api> pair({64, 64});
    count(operations, [&](Meter& meter) {
        meter.start();
        for (unsigned i = 0; i < operations; ++i)
            pair.client.doorbell();
        meter.stop();
    });
}

/// A page for a peer, and back.
template <class Api> void window(unsigned operations)
{
    Pair<Api> pair({4, 4});
    count(operations, [&](Meter& meter) {
        meter.start();
        for (unsigned i = 0; i < operations; ++i)
            pair.client.lend(window_size);
        meter.stop();
    });
}

/// The same through a request of an endpoint, by a window that is there.
template <class Api> void bind(unsigned operations)
{
    Pair<Api> pair({4, 4}, Waits::asleep);
    Taker client(pair.client, Waits::asleep);
    pair.client.make_window();
    count(operations, [&](Meter& meter) {
        meter.start();
        for (unsigned i = 0; i < operations; ++i) {
            pair.client.bind_window();
            client.take(0, 1);
            pair.client.unbind_window();
            client.take(0, 1);
        }
        meter.stop();
    });
}

/// An endpoint that is made, connected by numbers, and freed.
template <class Api> void endpoint(unsigned operations)
{
    Pair<Api> pair({64, 64});
    count(operations, [&](Meter& meter) {
        meter.start();
        for (unsigned i = 0; i < operations; ++i) {
            typename Api::Endpoint made(pair.client_device(), {64, 64});
            made.connect(pair.server.address());
            made.end();
        }
        meter.stop();
    });
}

/// A second in which connected endpoints have nothing to do. Each endpoint counts as an operation.
template <class Api> void idle(unsigned operations)
{
    Pair<Api> pair({64, 64});
    std::vector<typename Api::Endpoint> endpoints;
    endpoints.reserve(operations);
    for (unsigned i = 0; i < operations; ++i) {
        endpoints.emplace_back(pair.client_device(), Depths{64, 64});
        endpoints.back().connect(pair.server.address());
    }
    count(operations, [&](Meter& meter) {
        meter.start();
        std::this_thread::sleep_for(std::chrono::seconds(1));
        meter.stop();
    });
}

/// The death of a process with connected endpoints, and 10 windows for the peer of each.
template <class Api> void kill(unsigned operations)
{
    constexpr unsigned windows = 10;
    Pair<Api> pair({64, 64});
    count(operations, [&](Meter& meter) {
        const Victim victim([&] {
            const std::span<std::byte> memory = allocate(window_size);
            typename Api::Device device(environment("DAPX_DEV", "rxe0"), memory);
            std::vector<typename Api::Endpoint> endpoints;
            endpoints.reserve(operations);
            for (unsigned i = 0; i < operations; ++i) {
                endpoints.emplace_back(device, Depths{64, 64});
                endpoints.back().connect(pair.server.address());
                for (unsigned window = 0; window < windows; ++window)
                    endpoints.back().keep_lent();
            }
            Victim::await_death();
        });
        meter.start();
        victim.kill();
        meter.stop();
    });
}

/// bench-API count-WORKLOAD COUNT. Returns whether it was asked for.
template <class Api> bool main(int argc, char** argv)
{
    using Workload = void (*)(unsigned);
    const std::string_view name = argc == 3 ? argv[1] : "";
    Workload workload = nullptr;
    if (name == "count-round_trip")
        workload = round_trip<Api>;
    else if (name == "count-round_trip_asleep")
        workload = round_trip_asleep<Api>;
    else if (name == "count-rate")
        workload = rate<Api>;
    else if (name == "count-sends_64KiB")
        workload = sends_64KiB<Api>;
    if constexpr (requires { &Api::Endpoint::make_window; }) {
        if (name == "count-doorbell")
            workload = doorbell<Api>;
        else if (name == "count-window")
            workload = window<Api>;
        else if (name == "count-bind")
            workload = bind<Api>;
        else if (name == "count-endpoint")
            workload = endpoint<Api>;
        else if (name == "count-idle")
            workload = idle<Api>;
        else if (name == "count-kill")
            workload = kill<Api>;
    }
    if (workload == nullptr)
        return false;
    // rxe waits in a loop for its own threads when a queue pair ends.
    const bool ends = name == "count-endpoint" || name == "count-kill";
    prepare(ends ? Turns::fair : Turns::until_asleep);
    workload(static_cast<unsigned>(std::atoi(argv[2])));
    return true;
}

} // namespace bench::counted
