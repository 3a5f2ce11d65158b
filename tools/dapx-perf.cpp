// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// dapx-perf: how fast an endpoint is, and a file sent over it.
#include "command_line.hpp"
#include "perf.hpp"

#include <map>

namespace {

int serve(perf::Options& options)
{
    options.server.device = tools::choose_device(options.device);
    options.server.address = options.source;
    options.server.port = options.port;
    options.server.waiting = options.waiting;
    // Outlives the sessions, which are the server's.
    tools::MemoryBudget budget(options.max_size, options.max_memory);
    tools::Server server(options.server, [&](const tools::SessionResources& resources) {
        return perf::make_session(resources, options, budget);
    });
    return server.run();
}

} // namespace

int main(int argc, char** argv)
{
    using perf::Op;
    using perf::Test;
    const std::map<std::string, Test> tests = {
        {"latency", Test::latency}, {"rate", Test::rate}, {"bandwidth", Test::bandwidth}};
    const std::map<std::string, Op> ops = {
        {"send", Op::send}, {"write", Op::write}, {"read", Op::read}};

    perf::Options options;
    CLI::App app("Measures latency, message rate and bandwidth of RDMA through dapx, or sends a "
                 "file.",
                 "dapx-perf");
    app.set_version_flag("--version", "dapx-perf " DAPX_VERSION);
    app.add_option("host", options.host, "Name or address of the server");
    app.add_flag("--server", options.serve, "Be the server");
    tools::add_server_options(app, options.server);
    app.add_option("--max-size", options.max_size,
                   "With --server: most bytes of memory for one client")
        ->transform(CLI::AsSizeValue(false).description(""));
    app.add_option("--max-memory", options.max_memory,
                   "With --server: most bytes of memory for all clients together")
        ->transform(CLI::AsSizeValue(false).description(""));
    app.add_option("--output", options.output, "With --server: where to write a received file");
    app.add_option("-d,--device", options.device, "RDMA device; default: the only usable one");
    app.add_option("-S,--source", options.source,
                   "Own address; default: the device's that fits, for a server all of them");
    app.add_option("-p,--port", options.port, "Port of the server")->capture_default_str();
    app.add_option("--test", options.tests, "latency, rate, bandwidth; default: all")
        ->transform(tools::one_of(tests))
        ->type_name("TEST")
        ->delimiter(',')
        ->allow_extra_args(false);
    app.add_option("--op", options.ops, "send, write, read; default: all")
        ->transform(tools::one_of(ops))
        ->type_name("OP")
        ->delimiter(',')
        ->allow_extra_args(false);
    app.add_option("-s,--size", options.sizes,
                   "Bytes of a message; k and m may follow; default: 8, for bandwidth and files "
                   "64k")
        ->transform(CLI::AsSizeValue(false).description(""))
        ->check(CLI::PositiveNumber)
        ->delimiter(',')
        ->allow_extra_args(false);
    app.add_option("-q,--depth", options.depth, "Messages in flight")
        ->check(CLI::Range(1U, 4096U).description(""))
        ->capture_default_str();
    app.add_option("--batch", options.batch, "Messages posted before the doorbell")
        ->check(CLI::Range(1U, 4096U).description(""))
        ->capture_default_str();
    auto* count = app.add_option("-n,--count", options.count, "Messages of each test")
                      ->check(CLI::PositiveNumber);
    app.add_option("-t,--time", options.time, "Seconds of each test")
        ->check(tools::seconds(0.001))
        ->capture_default_str()
        ->excludes(count);
    app.add_option("--file", options.file,
                   "Send this file, by sends and then by RDMA writes, instead of measuring");
    app.add_flag("--xrc", options.xrc, "By XRC; a server takes either kind of client then");
    app.add_flag("-j,--json", options.as_json, "Print JSON");
    tools::add_waiting_options(app, options.waiting);

    return tools::run(app, argc, argv, [&] {
        if (options.serve == !options.host.empty())
            throw tools::UsageError("give either --server or the host of one; see --help");
        if (options.xrc && !options.serve && !options.file.empty())
            throw tools::UsageError("--file needs the server's answers, which XRC has none of; "
                                    "leave out --xrc");
        if (options.tests.empty())
            options.tests = {Test::latency, Test::rate, Test::bandwidth};
        if (options.ops.empty())
            options.ops = {Op::send, Op::write, Op::read};
        tools::catch_interrupts();
        if (options.serve)
            return serve(options);
        return options.file.empty() ? perf::run_bench(options) : perf::run_file(options);
    });
}
