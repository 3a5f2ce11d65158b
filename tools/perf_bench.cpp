// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// dapx-perf's client: latency, message rate, bandwidth.
#include "json_output.hpp"
#include "perf.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace perf {

namespace {

using tools::must;

struct Result {
    Test test;
    Op op;
    std::uint32_t size;
    std::uint32_t depth;
    tools::Nanoseconds connect_time;
    Stream stream;
};

std::uint32_t default_size(Test test)
{
    return test == Test::bandwidth ? 64 * 1024 : 8;
}

dapx::Deadline end_of_test(const Options& options)
{
    return dapx::deadline_after(std::chrono::duration<double>(options.time));
}

Hello hello_for(const Options& options, Test test, Op op, std::uint32_t size, bool more)
{
    return {.magic = {},
            .test = static_cast<std::uint32_t>(test),
            .op = static_cast<std::uint32_t>(op),
            .size = size,
            .depth = test == Test::latency ? 1 : options.depth,
            .more = more,
            .total = {}};
}

/// One way of a stream: all messages from (to) the same memory, as only the way is measured.
Result run_stream(const Target& target, const Options& options, Test test, Op op,
                  std::uint32_t size, bool more)
{
    tools::Buffer memory(size);
    const dapx::MemoryRegion region = Connection::make_region(target, options, memory.span());
    Connection connection(target, options, hello_for(options, test, op, size, more));
    const dapx::Segment segment = region.segment(0, size);
    const dapx::RemoteAddress remote = connection.remote();
    const Connection::StreamOptions stream_options = {
        .count = options.count,
        .until = end_of_test(options),
        .depth = options.depth,
        .batch = options.batch,
        // By XRC a message that finds no receive waits for one.
        .needs_credit = op == Op::send && !options.xrc,
    };
    Stream stream = connection.stream(
        stream_options, [&](std::uint64_t index, dapx::Doorbell when) -> dapx::PostResult {
            constexpr auto flags = dapx::SendFlags::signalled;
            return connection.endpoint().post([&](auto& to) {
                switch (op) {
                case Op::send:
                    return to.post_send(index, segment, flags, when);
                case Op::write:
                    return to.post_write(index, segment, remote, flags, when);
                case Op::read:
                    return to.post_read(index, segment, remote, flags, when);
                }
                return dapx::PostResult::bad_request;
            });
        });
    connection.close();
    return {test, op, size, options.depth, connection.connect_time(), std::move(stream)};
}

Result run_latency(const Target& target, const Options& options, Op op, std::uint32_t size,
                   bool more)
{
    Result result{Test::latency, op, size, 1, {}, {}};
    result.stream.latencies =
        measure_latency(target, options, op, size, more, &result.connect_time);
    result.stream.count = result.stream.latencies.count();
    return result;
}

void print_table(const Target& target, const Options& options, const std::vector<Result>& results)
{
    fmt::print("{} from {} ({}){}\n\n", target.route.peer.to_string(), target.route.source.host(),
               target.device, options.xrc ? " by XRC" : "");
    std::vector<std::vector<std::string>> latency = {
        {"latency", "bytes", "count", "min", "median", "p99", "max"}};
    std::vector<std::vector<std::string>> streams = {
        {"throughput", "bytes", "in flight", "count", "rate", "bandwidth", "doorbells/post"}};
    for (const Result& result : results) {
        const Stream& stream = result.stream;
        if (result.test == Test::latency)
            latency.push_back({name_of(result.op), fmt::format("{}", result.size),
                               fmt::format("{}", stream.count),
                               tools::time_text(stream.latencies.min()),
                               tools::time_text(stream.latencies.median()),
                               tools::time_text(stream.latencies.p99()),
                               tools::time_text(stream.latencies.max())});
        else
            streams.push_back({name_of(result.op), fmt::format("{}", result.size),
                               fmt::format("{}", result.depth), fmt::format("{}", stream.count),
                               tools::count_rate_text(stream.count, stream.time),
                               tools::rate_text(stream.count * result.size, stream.time),
                               fmt::format("{:.3f}", stream.doorbells_per_post())});
    }
    if (latency.size() > 1)
        fmt::print("{}", tools::table_text(latency, {1, 2, 3, 4, 5, 6}));
    if (latency.size() > 1 && streams.size() > 1)
        fmt::print("\n");
    if (streams.size() > 1)
        fmt::print("{}", tools::table_text(streams, {1, 2, 3, 4, 5, 6}));
}

nlohmann::json to_json(const Result& result)
{
    nlohmann::json json = {
        {"test", name_of(result.test)},
        {"op", name_of(result.op)},
        {"size", result.size},
        {"depth", result.depth},
        {"count", result.stream.count},
        {"connect_us", static_cast<double>(result.connect_time.count()) / 1e3},
    };
    if (result.test == Test::latency) {
        json["latency"] = result.stream.latencies.json();
    } else {
        const double seconds = std::chrono::duration<double>(result.stream.time).count();
        const auto count = static_cast<double>(result.stream.count);
        json["seconds"] = seconds;
        json["messages_per_s"] = count / seconds;
        json["bytes_per_s"] = count * result.size / seconds;
        json["doorbells_per_post"] = result.stream.doorbells_per_post();
    }
    return json;
}

} // namespace

tools::Latencies measure_latency(const Target& target, const Options& options, Op op,
                                 std::uint32_t size, bool more, tools::Nanoseconds* connect_time)
{
    tools::Buffer memory(2 * std::size_t{size});
    const dapx::MemoryRegion region = Connection::make_region(target, options, memory.span());
    Connection connection(target, options, hello_for(options, Test::latency, op, size, more));
    if (connect_time != nullptr)
        *connect_time = connection.connect_time();
    tools::ClientEndpoint& endpoint = connection.endpoint();
    const dapx::RemoteAddress remote = connection.remote();
    const dapx::Segment out = region.segment(0, size);
    const dapx::Segment in = region.segment(size, size);
    const bool is_inline = size <= endpoint_options(target.context, 1, 1).max_inline;

    tools::Latencies latencies;
    const auto until = end_of_test(options);
    // By XRC nothing comes back: a message lasts until it is in the peer's receive.
    const bool echo = op == Op::send && !options.xrc;
    const dapx::SendFlags flags = echo ? dapx::SendFlags::none : dapx::SendFlags::signalled;
    if (echo)
        must(endpoint.rc().post_recv(0, in), "post_recv");
    for (std::uint64_t i = 0; !tools::interrupted(); ++i) {
        bool answered = false;
        const auto start = dapx::Clock::now();
        if (options.count != 0 ? i >= options.count : start >= until)
            break;
        if (op != Op::send)
            connection.keep_alive(start);
        switch (op) {
        case Op::send:
            must(endpoint.post([&](auto& to) {
                return is_inline ? to.post_send_inline(i, memory.part(0, size), flags)
                                 : to.post_send(i, out, flags);
            }),
                 "post_send");
            answered = connection.await(echo ? dapx::Opcode::recv : dapx::Opcode::send);
            break;
        case Op::write:
            must(endpoint.post([&](auto& to) {
                return is_inline ? to.post_write_inline(i, memory.part(0, size), remote)
                                 : to.post_write(i, out, remote);
            }),
                 "post_write");
            answered = connection.await(dapx::Opcode::rdma_write);
            break;
        case Op::read:
            must(endpoint.post([&](auto& to) { return to.post_read(i, in, remote); }), "post_read");
            answered = connection.await(dapx::Opcode::rdma_read);
            break;
        }
        if (!answered)
            break;
        latencies.add(dapx::Clock::now() - start);
        if (echo)
            must(endpoint.rc().post_recv(i + 1, in), "post_recv");
    }
    connection.close();
    return latencies;
}

int run_bench(const Options& options)
{
    const Target target(options);
    struct Run {
        Test test;
        Op op;
        std::uint32_t size;
    };
    std::vector<Run> runs;
    for (const Test test : options.tests)
        for (const std::uint32_t size :
             options.sizes.empty() ? std::vector{default_size(test)} : options.sizes)
            for (const Op op : options.ops)
                runs.push_back({test, op, size});

    std::vector<Result> results;
    for (std::size_t i = 0; i < runs.size() && !tools::interrupted(); ++i) {
        const auto& [test, op, size] = runs[i];
        const bool more = i + 1 < runs.size();
        results.push_back(test == Test::latency
                              ? run_latency(target, options, op, size, more)
                              : run_stream(target, options, test, op, size, more));
    }
    // What was measured until then is what was asked for.
    if (tools::interrupted())
        std::erase_if(results, [](const Result& result) { return result.stream.count == 0; });
    if (results.empty())
        throw tools::Failure("interrupted before anything was measured");
    if (!options.as_json) {
        print_table(target, options, results);
        return 0;
    }
    nlohmann::json list = nlohmann::json::array();
    for (const Result& result : results)
        list.push_back(to_json(result));
    const nlohmann::json json = {{"peer", target.route.peer.to_string()},
                                 {"source", target.route.source.host()},
                                 {"device", target.device},
                                 {"xrc", options.xrc},
                                 {"results", list}};
    fmt::print("{}", tools::json_text(json, {.json = true, .pretty = true}));
    return 0;
}

} // namespace perf
