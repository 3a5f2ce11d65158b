// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What is measured, whatever the API. An Api has
//
//   Api::Device(name, memory)          the device, with all of memory registered
//   Api::Endpoint(device, depths, waits)
//                                      fit to receive, not connected
//     address(), connect(peer)         by exchange of queue pair numbers
//     send(), write(peer), receive()   post one request, signalled, or one receive
//     make_window(), bind_window(), unbind_window()
//                                      a window for the peer; the latter two as requests
//     lend(size)                       memory for a peer, and back, at once
//     keep_lent()                      a page for a peer, until the process ends
//     keep_window()                    the same, by a window of registered memory
//     poll()                           takes one completion, if there is one
//     sleep()                          after a poll that found nothing: until there is something, or
//                                      once for nothing
//
// and, where it has them,
//
//     send_list(count)                 as so many send(), and tells the device once
//     send_from_memory()               as send(), its bytes not copied into the request
//     send_large(), receive_large()    a message of 64 KiB
#pragma once

#include "bench.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace bench {

/// One connection, and what is under way on it.
template <class Api> class Connection {
public:
    Connection(End& end, Depths depths, std::size_t memory = 4096, Waits waits = Waits::polling)
        : memory_(allocate(memory)), device_(end.device, memory_),
          endpoint_(device_, depths, waits), waits_(waits)
    {
        for (std::uint32_t i = 0; i < depths.recv; ++i)
            receive(memory);
        end.peer.send(endpoint_.address());
        peer_ = end.peer.template receive<Address>();
        endpoint_.connect(peer_);
        end.peer.meet();
    }

    /// Posts an 8-byte message when less than @p limit requests are under way.
    void send(std::uint32_t limit)
    {
        await_sent(limit);
        endpoint_.send();
        ++requests_;
    }

    /// Posts @p count of them at once when less than @p limit are under way with them.
    void send_list(std::uint32_t count, std::uint32_t limit)
    {
        await_sent(limit - count + 1);
        endpoint_.send_list(count);
        requests_ += count;
    }

    /// The same, not copied into the request.
    void send_from_memory(std::uint32_t limit)
    {
        await_sent(limit);
        endpoint_.send_from_memory();
        ++requests_;
    }

    /// Posts a message of 64 KiB.
    void send_large(std::uint32_t limit)
    {
        await_sent(limit);
        endpoint_.send_large();
        ++requests_;
    }

    /// Posts a receive that fits into that much memory.
    void receive(std::size_t memory)
    {
        if constexpr (requires { endpoint_.receive_large(); }) {
            if (memory >= large_size) {
                endpoint_.receive_large();
                return;
            }
        }
        endpoint_.receive();
    }

    /// Posts a write of 64 KiB.
    void write(std::uint32_t limit)
    {
        await_sent(limit);
        endpoint_.write(peer_);
        ++requests_;
    }

    /// A window is bound, and unbound; each is waited for.
    void bind_and_unbind()
    {
        endpoint_.bind_window();
        ++requests_;
        await_sent(1);
        endpoint_.unbind_window();
        ++requests_;
        await_sent(1);
    }

    void make_window() { endpoint_.make_window(); }
    void lend(std::uint32_t size) { endpoint_.lend(size); }

    /// Waits until less than @p limit requests are under way.
    void await_sent(std::uint32_t limit)
    {
        while (requests_ >= limit)
            wait();
    }

    /// Waits for a message; its receive has to be posted anew.
    void await_message()
    {
        while (messages_ == 0)
            wait();
        --messages_;
    }

    void receive() { endpoint_.receive(); }

    bool poll()
    {
        switch (endpoint_.poll()) {
        case Done::nothing:
            return false;
        case Done::sent:
            --requests_;
            return true;
        case Done::received:
            ++messages_;
            return true;
        }
        return false;
    }

    [[nodiscard]] std::uint32_t messages() const { return messages_; }

private:
    void wait()
    {
        if (!poll() && waits_ == Waits::asleep)
            endpoint_.sleep();
    }

    std::span<std::byte> memory_;
    typename Api::Device device_;
    typename Api::Endpoint endpoint_;
    Waits waits_;
    Address peer_{};
    std::uint32_t requests_ = 0;
    std::uint32_t messages_ = 0;
};

/// Small messages there and back, one at a time: half of the samples took at most "p50".
template <class Api> void latency(End& end, unsigned count, Waits waits)
{
    constexpr std::uint32_t depth = 64;
    Connection<Api> connection(end, {depth, depth}, 4096, waits);
    const unsigned warm_up = count / 10;
    std::vector<double> samples;
    samples.reserve(warm_up + count);
    for (unsigned i = 0; i < warm_up + count; ++i) {
        const auto start = Clock::now();
        if (end.client)
            connection.send(depth);
        connection.await_message();
        if (!end.client)
            connection.send(depth);
        samples.push_back(seconds(Clock::now() - start));
        connection.receive();
    }
    connection.await_sent(1);
    end.peer.meet();
    if (!end.client)
        return;
    samples.erase(samples.begin(), samples.begin() + warm_up);
    std::sort(samples.begin(), samples.end());
    for (const unsigned per_mille : {10, 100, 250, 500, 750, 900, 950, 990, 995, 999}) {
        char name[16];
        std::snprintf(name, sizeof(name), "p%g", per_mille / 10.0);
        report(name, samples[samples.size() * per_mille / 1000] * 1e6);
    }
}

/// As ib_send_lat does it: each end waits for the end of its message before it looks for the next.
template <class Api> void send_latency(End& end, unsigned count)
{
    Connection<Api> connection(end, {1, 512});
    std::vector<Clock::time_point> posted;
    posted.reserve(count);
    for (unsigned received = 0; posted.size() < count || received < count;) {
        if (received < count && !(posted.empty() && end.client)) {
            connection.await_message();
            connection.receive();
            ++received;
        }
        if (posted.size() < count) {
            posted.push_back(Clock::now());
            connection.send_from_memory(1);
            connection.await_sent(1);
        }
    }
    end.peer.meet();
    if (!end.client)
        return;
    std::vector<double> samples;
    samples.reserve(count);
    for (std::size_t i = 1; i < posted.size(); ++i)
        samples.push_back(seconds(posted[i] - posted[i - 1]) / 2);
    std::ranges::sort(samples);
    report("latency", samples[samples.size() / 2] * 1e6);
}

/// As ib_write_bw does it with messages of that size: all are signalled, and the first one counts.
template <class Api> void write_bandwidth(End& end, unsigned count)
{
    constexpr std::uint32_t in_flight = 128;
    Connection<Api> connection(end, {in_flight, 1}, large_size);
    if (end.client) {
        const auto start = Clock::now();
        for (unsigned i = 0; i < count; ++i)
            connection.write(in_flight);
        connection.await_sent(1);
        const double bytes = static_cast<double>(count) * large_size;
        report("bandwidth", bytes / seconds(Clock::now() - start) / (1 << 20));
    }
    end.peer.meet();
}

/// Small messages in one direction, posted one at a time with at most @p in_flight under way.
template <class Api> class Stream {
public:
    Stream(End& end, std::uint32_t in_flight)
        : end_(end), in_flight_(in_flight), connection_(end, {in_flight, recv_depth})
    {
    }

    void send(unsigned count)
    {
        for (unsigned i = 0; i < count; ++i, ++sent_) {
            // Never more messages than receives: the server tells through shared memory.
            while (sent_ - end_.shared.taken.load(std::memory_order_acquire) >= recv_depth)
                connection_.poll();
            connection_.send(in_flight_);
        }
    }

    /// The same, @p length at a time. @p count is a multiple of it.
    void send_lists(unsigned count, std::uint32_t length)
    {
        for (unsigned i = 0; i < count; i += length, sent_ += length) {
            while (sent_ + length - end_.shared.taken.load(std::memory_order_acquire) > recv_depth)
                connection_.poll();
            connection_.send_list(length, in_flight_);
        }
    }

    void take(unsigned count)
    {
        for (unsigned i = 0; i < count; ++i) {
            connection_.await_message();
            connection_.receive();
            end_.shared.taken.fetch_add(1, std::memory_order_release);
        }
    }

    void finish() { connection_.await_sent(1); }

private:
    static constexpr std::uint32_t recv_depth = 256;

    End& end_;
    std::uint32_t in_flight_;
    std::uint64_t sent_ = 0;
    Connection<Api> connection_;
};

template <class Api> void rate(End& end, unsigned count, std::uint32_t in_flight)
{
    Stream<Api> stream(end, in_flight);
    if (end.client) {
        stream.send(count / 10);
        const auto start = Clock::now();
        stream.send(count);
        stream.finish();
        report("rate", count / seconds(Clock::now() - start));
    } else {
        stream.take(count / 10 + count);
    }
    end.peer.meet();
}

/// The same, by lists of requests.
template <class Api> void rate_of_lists(End& end, unsigned count)
{
    constexpr std::uint32_t length = 8;
    const unsigned warm_up = count / 10 / length * length;
    count = count / length * length;
    Stream<Api> stream(end, 32);
    if (end.client) {
        stream.send_lists(warm_up, length);
        const auto start = Clock::now();
        stream.send_lists(count, length);
        stream.finish();
        report("rate", count / seconds(Clock::now() - start));
    } else {
        stream.take(warm_up + count);
    }
    end.peer.meet();
}

/// Messages of 64 KiB, which the server takes.
template <class Api> void large_sends(End& end, unsigned count)
{
    constexpr std::uint32_t in_flight = 16;
    constexpr std::uint32_t recv_depth = 64;
    Connection<Api> connection(end, {in_flight, recv_depth}, large_size);
    if (end.client) {
        const auto send = [&](unsigned number, unsigned sent) {
            for (unsigned i = 0; i < number; ++i, ++sent) {
                while (sent - end.shared.taken.load(std::memory_order_acquire) >= recv_depth)
                    connection.poll();
                connection.send_large(in_flight);
            }
        };
        send(count / 10, 0);
        const auto start = Clock::now();
        send(count, count / 10);
        connection.await_sent(1);
        const double bytes = static_cast<double>(count) * large_size;
        report("bandwidth", bytes / seconds(Clock::now() - start) / (1 << 20));
    } else {
        for (unsigned i = 0; i < count / 10 + count; ++i) {
            connection.await_message();
            connection.receive(large_size);
            end.shared.taken.fetch_add(1, std::memory_order_release);
        }
    }
    end.peer.meet();
}

/// System calls of posting small messages with 64 under way, and of posting receives.
template <class Api> void small_doorbells(End& end, unsigned count)
{
    Stream<Api> stream(end, 64);
    SystemCalls calls;
    if (end.client) {
        stream.send(count / 10);
        calls.take();
        stream.send(count);
        report("calls_per_send", static_cast<double>(calls.take()) / count);
        stream.finish();
    } else {
        stream.take(count / 10);
        calls.take();
        stream.take(count);
        report("calls_per_receive", static_cast<double>(calls.take()) / count);
    }
    end.peer.meet();
}

/// Writes of 64 KiB into the server's memory, while it sleeps.
template <class Api> void bandwidth(End& end, unsigned count)
{
    constexpr std::uint32_t in_flight = 16;
    Connection<Api> connection(end, {in_flight, 1}, large_size);
    if (end.client) {
        for (unsigned i = 0; i < count / 10; ++i)
            connection.write(in_flight);
        const std::uint64_t link_before = link_bytes();
        const auto start = Clock::now();
        for (unsigned i = 0; i < count; ++i)
            connection.write(in_flight);
        connection.await_sent(1);
        const double time = seconds(Clock::now() - start);
        const std::uint64_t payload = std::uint64_t{count} * large_size;
        if (link_bytes() - link_before < payload)
            die("the link between the devices carried less than the payload");
        report("bandwidth", static_cast<double>(payload) / time / (1 << 20));
    }
    end.peer.meet();
}

/// System calls of posting large writes with 64 under way, so that the device is never idle.
template <class Api> void large_doorbells(End& end, unsigned count)
{
    constexpr std::uint32_t depth = 64;
    Connection<Api> connection(end, {depth, 1}, large_size);
    if (end.client) {
        SystemCalls calls;
        for (std::uint32_t i = 0; i < depth; ++i)
            connection.write(depth);
        calls.take();
        for (unsigned i = 0; i < count; ++i)
            connection.write(depth);
        report("calls_per_write", static_cast<double>(calls.take()) / count);
        connection.await_sent(1);
    }
    end.peer.meet();
}

/// System calls of polling: while there is nothing, and while there are completions.
template <class Api> void polls(End& end, unsigned count)
{
    constexpr std::uint32_t depth = 64;
    Connection<Api> connection(end, {depth, depth});
    if (end.client) {
        for (std::uint32_t i = 0; i < depth; ++i)
            connection.send(depth);
        connection.await_sent(1);
        end.peer.meet();
    } else {
        SystemCalls calls;
        for (unsigned i = 0; i < count; ++i)
            if (connection.poll())
                break;
        while (connection.messages() < depth)
            connection.poll();
        for (unsigned i = 0; i < count; ++i)
            connection.poll();
        report("calls", static_cast<double>(calls.take()));
        end.peer.meet();
    }
}

/// Memory for a peer, and back: by a window of registered memory, and all at once.
template <class Api> void windows(End& end, unsigned count)
{
    Connection<Api> connection(end, {4, 4}, large_size);
    if (end.client) {
        const auto time = [count](auto body) {
            for (unsigned i = 0; i < count / 10; ++i)
                body();
            const auto start = Clock::now();
            for (unsigned i = 0; i < count; ++i)
                body();
            return seconds(Clock::now() - start) / count * 1e6;
        };
        report("lend_page", time([&] { connection.lend(window_size); }));
        report("lend_large", time([&] { connection.lend(large_size); }));
        connection.make_window();
        report("bind_unbind", time([&] { connection.bind_and_unbind(); }));
    }
    end.peer.meet();
}

/// Lends something to the peer of an endpoint; nullptr: nothing.
template <class Api> using Keep = void (Api::Endpoint::*)();

/// Many connected endpoints of depth 64, @p keep ten times for each: the memory of one, and the
/// time that all of a killed process take to go.
template <class Api> void endpoints_of_end(End& end, unsigned count, Keep<Api> keep)
{
    constexpr unsigned windows = 10;
    constexpr Depths depths{64, 64};
    const std::span<std::byte> memory = allocate(4096);
    typename Api::Device device(end.device, memory);
    std::vector<typename Api::Endpoint> endpoints;
    endpoints.reserve(count);
    const auto make = [&](unsigned number) {
        std::vector<Address> own(number);
        for (Address& address : own) {
            endpoints.emplace_back(device, depths);
            address = endpoints.back().address();
        }
        for (unsigned i = 0; i < number; ++i) {
            end.peer.send(own[i]);
            endpoints[endpoints.size() - number + i].connect(end.peer.template receive<Address>());
        }
        end.peer.meet();
    };

    // The first one makes what is there once, and is not counted.
    make(1);
    end.controller.meet();
    end.controller.meet();
    make(count);
    for (unsigned i = 0; end.client && keep != nullptr && i < count * windows; ++i)
        (endpoints[i % endpoints.size()].*keep)();
    end.controller.meet();
    for (;;)
        pause();
}

template <class Api> void endpoints(unsigned count, Keep<Api> keep)
{
    const Controller ends([count, keep](End& end) { endpoints_of_end<Api>(end, count, keep); });
    const unsigned before_all = device_objects(ends.client_device());
    ends.meet();
    const double before = kernel_memory();
    ends.meet();
    ends.meet();
    report("memory", (kernel_memory() - before) / (2 * count));
    const auto start = Clock::now();
    ends.kill_client(before_all);
    report("gone", seconds(Clock::now() - start));
    ends.kill_server();
}

/// What the device takes for a queue pair that does no more than an XRC receive queue pair's, and
/// for its CQ.
template <class Api> void receivers(unsigned count)
{
    typename Api::Device device(environment("DAPX_DEV", "rxe0"), allocate(4096));
    std::vector<typename Api::Endpoint> endpoints;
    endpoints.reserve(count + 1);
    const auto make = [&](unsigned number) {
        for (unsigned i = 0; i < number; ++i)
            endpoints.emplace_back(device, Depths{7, 6});
    };
    make(1);
    const double before = kernel_memory();
    make(count);
    report("memory", (kernel_memory() - before) / count);
}

/// bench-API WORKLOAD COUNT
template <class Api> int main(int argc, char** argv)
{
    const std::string_view workload = argc == 3 ? argv[1] : "";
    const auto count = static_cast<unsigned>(argc == 3 ? std::atoi(argv[2]) : 0);
    constexpr std::string_view rate_of = "rate-in-flight-";
    const auto run = [](auto body) { Controller(body).join(); };
    alarm(300);
    if constexpr (requires { &Api::Endpoint::send_large; }) {
        if (workload == "large-sends") {
            run([=](End& end) { large_sends<Api>(end, count); });
            return 0;
        }
    }
    if constexpr (requires { &Api::Endpoint::send_from_memory; }) {
        if (workload == "send-lat") {
            run([=](End& end) { send_latency<Api>(end, count); });
            return 0;
        }
    }
    if constexpr (requires { &Api::Endpoint::send_list; }) {
        if (workload == "rate-lists") {
            run([=](End& end) { rate_of_lists<Api>(end, count); });
            return 0;
        }
    }
    if (workload == "latency")
        run([=](End& end) { latency<Api>(end, count, Waits::polling); });
    else if (workload == "latency-asleep")
        run([=](End& end) { latency<Api>(end, count, Waits::asleep); });
    else if (workload == "rate")
        run([=](End& end) { rate<Api>(end, count, 32); });
    else if (workload.starts_with(rate_of)) {
        const auto in_flight =
            static_cast<std::uint32_t>(std::atoi(workload.data() + rate_of.size()));
        run([=](End& end) { rate<Api>(end, count, in_flight); });
    } else if constexpr (!requires { &Api::Endpoint::make_window; })
        die("usage: %s latency|latency-asleep|rate|rate-in-flight-N|large-sends COUNT", argv[0]);
    else if (workload == "write-bw")
        run([=](End& end) { write_bandwidth<Api>(end, count); });
    else if (workload == "bandwidth")
        run([=](End& end) { bandwidth<Api>(end, count); });
    else if (workload == "small-doorbells")
        run([=](End& end) { small_doorbells<Api>(end, count); });
    else if (workload == "large-doorbells")
        run([=](End& end) { large_doorbells<Api>(end, count); });
    else if (workload == "polls")
        run([=](End& end) { polls<Api>(end, count); });
    else if (workload == "windows")
        run([=](End& end) { windows<Api>(end, count); });
    else if (workload == "receivers")
        receivers<Api>(count);
    else if (workload == "endpoints")
        endpoints<Api>(count, nullptr);
    else if (workload == "endpoints-with-lent-pages")
        endpoints<Api>(count, &Api::Endpoint::keep_lent);
    else if (workload == "endpoints-with-windows")
        endpoints<Api>(count, &Api::Endpoint::keep_window);
    else if (workload == "hold-system-calls")
        SystemCalls::hold();
    else
        die("usage: %s latency|latency-asleep|rate|rate-in-flight-N|bandwidth|small-doorbells|"
            "large-doorbells|polls|windows|receivers|endpoints|endpoints-with-lent-pages|"
            "endpoints-with-windows|hold-system-calls "
            "COUNT",
            argv[0]);
    return 0;
}

} // namespace bench
