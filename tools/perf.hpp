// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// dapx-perf: what its files share; and how its two ends talk.
#pragma once

#include "client_endpoint.hpp"
#include "common.hpp"
#include "measure.hpp"
#include "server.hpp"
#include "wire.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace perf {

enum class Test : std::uint32_t { latency = 1, rate = 2, bandwidth = 3, file = 4 };
enum class Op : std::uint32_t { send = 1, write = 2, read = 3 };

const char* name_of(Test test);
const char* name_of(Op op);

struct Options {
    tools::ServerOptions server;
    bool serve = false;
    std::uint64_t max_size = std::uint64_t{1} << 30;   ///< server: most memory for one client
    std::uint64_t max_memory = std::uint64_t{2} << 30; ///< server: most memory for all clients
    std::string output;                                ///< server: where a received file goes

    std::string host;
    std::string device;
    std::string source;
    std::uint16_t port = 7711;
    std::vector<Test> tests;
    std::vector<Op> ops;
    std::vector<std::uint32_t> sizes; ///< empty: what suits the test
    std::uint32_t depth = 32;
    std::uint32_t batch = 1; ///< requests posted before the doorbell
    std::uint64_t count = 0; ///< operations of a test; 0: as long as time says
    double time = 1;         ///< seconds of a test
    std::string file;
    bool xrc = false; ///< server: takes clients of XRC, too
    bool as_json = false;
    tools::Waiting waiting = tools::Waiting::mixed;
};

/// Private data of the connect: what the client is going to do.
struct Hello {
    tools::Le64 magic;
    tools::Le32 test;
    tools::Le32 op;
    tools::Le32 size;  ///< bytes of a message; of a chunk of the file
    tools::Le32 depth; ///< messages in flight
    tools::Le32 more;  ///< another connection follows this one
    tools::Le64 total; ///< bytes of the file
};
inline constexpr std::uint64_t hello_magic = 0x3166726570706164; // "dapperf1"
static_assert(sizeof(Hello) <= 48, "what a connect's private data holds over IP addresses, by XRC");

/// Private data of the accept: memory that the client may write to and read from.
struct Welcome {
    tools::Le64 addr;
    tools::Le32 rkey;
    /// Milliseconds within which the server has to hear of the client; 0: for ever. While it
    /// writes and reads, which the server does not see, an empty message now and then says that
    /// it is there.
    tools::Le64 idle_timeout;
};

/// The same of XRC, and the queue that is the client's.
struct XrcWelcome {
    Welcome memory;
    tools::Le32 srq;
};

/// A message from the server to the client beside the data. By XRC there is none: its receiving
/// end cannot send.
struct Control {
    enum Kind : std::uint32_t {
        credit = 1, ///< so many messages may have been sent by now, in all
        report = 2, ///< checksum of what arrived
    };
    tools::Le32 kind;
    tools::Le64 value;
};

/// Receives that the server has posted before the client begins: the first credit.
constexpr std::uint64_t first_credit(std::uint64_t depth)
{
    return 2 * depth;
}

/// CRC-32, as of gzip.
std::uint32_t checksum(std::span<const std::byte> data);

/// Sizes for an endpoint that has @p sends and @p receives in flight.
dapx::EndpointOptions endpoint_options(const dapx::Context& context, std::uint32_t sends,
                                       std::uint32_t receives, std::uint64_t id = 0);

/// The server's end of one connection. @p budget outlives it.
std::unique_ptr<tools::Session> make_session(const tools::SessionResources& resources,
                                             const Options& options, tools::MemoryBudget& budget);

/// Where the client goes, chosen once for all its connections.
struct Target {
    explicit Target(const Options& options);

    std::string device;
    tools::Route route;
    dapx::Context context;
    dapx::Pd pd;
};

/// What a stream of messages gave.
struct Stream {
    std::uint64_t count = 0;
    tools::Nanoseconds time{};
    std::uint64_t doorbells = 0;
    tools::Latencies latencies; ///< from posting to completion, if asked for

    [[nodiscard]] double doorbells_per_post() const
    {
        return count == 0 ? 0 : static_cast<double>(doorbells) / static_cast<double>(count);
    }
};

/// The client's end of one connection.
class Connection {
public:
    /// Connects. Failure if that does not work.
    Connection(const Target& target, const Options& options, Hello hello);

    /// Memory that its requests may name.
    static dapx::MemoryRegion make_region(const Target& target, const Options& options,
                                          std::span<std::byte> memory);

    /// Posts message @p index; wr_id must be @p index.
    using PostOne = std::function<dapx::PostResult(std::uint64_t index, dapx::Doorbell when)>;
    using OnProgress = std::function<void(std::uint64_t done)>;

    struct StreamOptions {
        std::uint64_t count = 0; ///< 0: until @p until
        dapx::Deadline until = dapx::no_deadline;
        std::uint32_t depth = 1;
        std::uint32_t batch = 1;
        bool needs_credit = false; ///< the messages take receives of the peer
        bool timed = false;        ///< takes the latency of each
    };

    /// Keeps messages in flight until all are done, or interrupted(): then fewer are.
    Stream stream(const StreamOptions& options, const PostOne& post_one,
                  const OnProgress& on_progress = {});

    /// Waits for the next Control::report; none if interrupted().
    std::optional<std::uint64_t> await_report();

    /// To be called often while nothing is sent that the server sees: tells it that the client is
    /// there, if it is time to.
    void keep_alive(dapx::Deadline now);

    /// Waits for a completion of @p opcode; others are handled meanwhile. False if interrupted().
    bool await(dapx::Opcode opcode);

    /// Ends the connection and waits for its end.
    void close();

    tools::ClientEndpoint& endpoint() { return endpoint_; }
    [[nodiscard]] dapx::RemoteAddress remote() const { return remote_; }
    [[nodiscard]] tools::Nanoseconds connect_time() const { return connect_time_; }

private:
    static constexpr std::uint32_t control_slots = 16;
    /// wr_ids of receives of control messages begin here.
    static constexpr std::uint64_t control_wr_id = std::uint64_t{1} << 63;

    /// None if interrupted().
    std::optional<dapx::Event> next();
    /// Failure if it is bad news. @return true if it is a completion of another thing than a
    /// control message.
    bool handle(const dapx::Event& event);
    void post_control(std::uint64_t wr_id);

    const Options& options_;
    dapx::Address peer_;
    dapx::Evd evd_;
    tools::Buffer control_;
    dapx::MemoryRegion control_region_;
    tools::ClientEndpoint endpoint_;
    dapx::RemoteAddress remote_;
    tools::Nanoseconds connect_time_{};
    std::chrono::milliseconds alive_interval_{};
    dapx::Deadline next_alive_ = dapx::no_deadline;
    std::uint64_t credit_;
    std::optional<std::uint64_t> report_;
};

/// Runs the tests that @p options name.
int run_bench(const Options& options);

/// Latency of messages of @p size bytes and back, or of other operations.
tools::Latencies measure_latency(const Target& target, const Options& options, Op op,
                                 std::uint32_t size, bool more,
                                 tools::Nanoseconds* connect_time = nullptr);

/// Sends a file.
int run_file(const Options& options);

} // namespace perf
