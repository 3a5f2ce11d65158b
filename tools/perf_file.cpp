// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// dapx-perf --file: a file goes to the server by sends, then by RDMA writes.
#include "json_output.hpp"
#include "perf.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <zlib.h>

namespace perf {

namespace {

using tools::must;

constexpr std::uint32_t default_chunk = 64 * 1024;
constexpr std::uint64_t latency_rounds = 1000;
constexpr std::uint32_t latency_size = 8;

struct Transfer {
    const char* name;
    Stream stream;
    std::uint32_t peer_checksum;
};

std::unique_ptr<tools::Buffer> read_file(const std::string& path)
{
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (error)
        throw tools::Failure(fmt::format("cannot read {}: {}", path, error.message()));
    if (size == 0)
        throw tools::Failure(fmt::format("cannot send {}: it is empty", path));
    auto memory = std::make_unique<tools::Buffer>(size);
    std::ifstream file(path, std::ios::binary);
    file.read(reinterpret_cast<char*>(memory->data()), static_cast<std::streamsize>(size));
    if (!file)
        throw tools::Failure(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    return memory;
}

class FileSender {
public:
    FileSender(const Options& options, const Target& target, tools::Buffer& memory,
               std::uint32_t chunk)
        : options_(options), memory_(memory), chunk_(chunk),
          chunks_((memory.size() + chunk - 1) / chunk),
          region_(
              must(dapx::MemoryRegion::create(target.pd, memory.span(), dapx::Access::local_read))),
          connection_(target, options,
                      Hello{.magic = {},
                            .test = static_cast<std::uint32_t>(Test::file),
                            .op = {},
                            .size = chunk,
                            .depth = options.depth,
                            .more = 0,
                            .total = memory.size()})
    {
    }

    [[nodiscard]] tools::Nanoseconds connect_time() const { return connection_.connect_time(); }

    Transfer by_sends()
    {
        return transfer("send", true, [this](std::uint64_t index, dapx::Doorbell when) {
            return connection_.endpoint().rc().post_send(index, segment(index),
                                                         dapx::SendFlags::signalled, when);
        });
    }

    Transfer by_writes()
    {
        return transfer("RDMA write", false, [this](std::uint64_t index, dapx::Doorbell when) {
            dapx::RemoteAddress remote = connection_.remote();
            remote.addr += index * chunk_;
            return connection_.endpoint().rc().post_write(index, segment(index), remote,
                                                          dapx::SendFlags::signalled, when);
        });
    }

    void close() { connection_.close(); }

private:
    dapx::Segment segment(std::uint64_t index) const
    {
        const std::uint64_t offset = index * chunk_;
        const std::uint64_t length = std::min<std::uint64_t>(chunk_, memory_.size() - offset);
        return region_.segment(offset, static_cast<std::uint32_t>(length));
    }

    Transfer transfer(const char* name, bool by_sends, const Connection::PostOne& post_one)
    {
        tools::Progress progress(name, memory_.size(), !options_.as_json);
        const Connection::StreamOptions stream_options = {
            .count = chunks_,
            .depth = options_.depth,
            .batch = options_.batch,
            .needs_credit = by_sends,
            .timed = true,
        };
        Transfer result{name, {}, 0};
        result.stream = connection_.stream(stream_options, post_one, [&](std::uint64_t done) {
            progress.update(std::min<std::uint64_t>(done * chunk_, memory_.size()));
        });
        // The server sees sends arrive; of writes it must be told. The message of one byte comes
        // after them, as all on one connection; empty ones may come before.
        if (!by_sends && !tools::interrupted())
            must(connection_.endpoint().rc().post_send(0, region_.segment(0, 1),
                                                       dapx::SendFlags::none),
                 "post_send");
        const auto report = connection_.await_report();
        if (!report)
            throw tools::Failure("interrupted before all of the file was sent");
        result.peer_checksum = static_cast<std::uint32_t>(*report);
        progress.finish(fmt::format("{} in {}, {}", tools::bytes_text(memory_.size()),
                                    tools::time_text(result.stream.time),
                                    tools::rate_text(memory_.size(), result.stream.time)));
        return result;
    }

    const Options& options_;
    tools::Buffer& memory_;
    std::uint32_t chunk_;
    std::uint64_t chunks_;
    dapx::MemoryRegion region_;
    Connection connection_;
};

nlohmann::json to_json(const Transfer& transfer, std::uint64_t bytes, std::uint32_t own)
{
    const double seconds = std::chrono::duration<double>(transfer.stream.time).count();
    return {{"op", transfer.name},
            {"seconds", seconds},
            {"bytes_per_s", static_cast<double>(bytes) / seconds},
            {"messages", transfer.stream.count},
            {"latency", transfer.stream.latencies.json()},
            {"doorbells_per_post", transfer.stream.doorbells_per_post()},
            {"peer_crc32", fmt::format("{:08x}", transfer.peer_checksum)},
            {"match", transfer.peer_checksum == own}};
}

void print_transfer(const Transfer& transfer, std::uint32_t own, const Options& options,
                    std::uint32_t chunk)
{
    fmt::print("            each of {} messages of {}, {} in flight: {}\n", transfer.stream.count,
               tools::bytes_text(chunk), options.depth, transfer.stream.latencies.text());
    fmt::print("            {:.3f} doorbells per post\n", transfer.stream.doorbells_per_post());
    fmt::print("            crc32 {:08x} here, {:08x} there: {}\n", own, transfer.peer_checksum,
               own == transfer.peer_checksum ? "the same" : "DIFFERENT");
}

} // namespace

std::uint32_t checksum(std::span<const std::byte> data)
{
    return static_cast<std::uint32_t>(
        ::crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
}

int run_file(const Options& options)
{
    const std::uint32_t chunk = options.sizes.empty() ? default_chunk : options.sizes.front();
    const std::unique_ptr<tools::Buffer> memory = read_file(options.file);
    const std::uint32_t own = checksum(memory->span());
    const Target target(options);
    const std::string name = std::filesystem::path(options.file).filename().string();
    if (!options.as_json) {
        fmt::print("{} ({}) to {} from {} ({})\n", name, tools::bytes_text(memory->size()),
                   target.route.peer.to_string(), target.route.source.host(), target.device);
        std::fflush(stdout);
    }

    Options latency_options = options;
    latency_options.count = latency_rounds;
    const tools::Latencies latencies =
        measure_latency(target, latency_options, Op::send, latency_size, true);

    FileSender sender(options, target, *memory, chunk);
    if (!options.as_json) {
        fmt::print("{:<12}{}\n", "connect", tools::time_text(sender.connect_time()));
        fmt::print("{:<12}{} round trips of {}: {}\n", "latency", latencies.count(),
                   tools::bytes_text(latency_size), latencies.text());
        std::fflush(stdout);
    }
    const Transfer sends = sender.by_sends();
    if (!options.as_json)
        print_transfer(sends, own, options, chunk);
    const Transfer writes = sender.by_writes();
    if (!options.as_json)
        print_transfer(writes, own, options, chunk);
    sender.close();

    if (options.as_json) {
        const nlohmann::json json = {
            {"file", name},
            {"bytes", memory->size()},
            {"message_size", chunk},
            {"depth", options.depth},
            {"peer", target.route.peer.to_string()},
            {"source", target.route.source.host()},
            {"device", target.device},
            {"connect_us", static_cast<double>(sender.connect_time().count()) / 1e3},
            {"round_trip", latencies.json()},
            {"crc32", fmt::format("{:08x}", own)},
            {"transfers",
             {to_json(sends, memory->size(), own), to_json(writes, memory->size(), own)}}};
        fmt::print("{}", tools::json_text(json, {.json = true, .pretty = true}));
    }
    if (sends.peer_checksum != own || writes.peer_checksum != own)
        throw tools::Failure("what arrived is not what was sent: the checksums differ");
    return 0;
}

} // namespace perf
