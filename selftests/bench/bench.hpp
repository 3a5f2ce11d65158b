// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the comparison needs besides an RDMA API: two pinned processes, ways to exchange what they
// must know of each other, and measures taken from outside of what is measured.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <sys/types.h>

namespace bench {

[[noreturn, gnu::format(printf, 1, 2)]] void die(const char* format, ...);

using Clock = std::chrono::steady_clock;

inline double seconds(Clock::duration time)
{
    return std::chrono::duration<double>(time).count();
}

/// A variable of the environment.
std::string environment(const char* name, const char* otherwise);

/// Puts @p text into a file of /proc or /sys, if it is there.
void write_file(const char* path, const char* text);

/// Writes a result, for selftests/bench/run to read.
void report(const char* name, double value);

// --- What both APIs are asked for ---------------------------------------------------------------

/// Requests and receives that an endpoint holds.
struct Depths {
    std::uint32_t send;
    std::uint32_t recv;
};

/// How completions are waited for.
enum class Waits { polling, asleep };

/// The small message. Its bytes are copied into the request.
inline constexpr std::uint32_t small_size = 8;
/// The large one, in registered memory.
inline constexpr std::uint32_t large_size = 64 * 1024;

/// A window of it.
inline constexpr std::uint32_t window_size = 4096;

inline constexpr std::uint8_t port = 1;
inline constexpr std::uint8_t path_mtu = 3; ///< 1024 bytes, the most that rxe has over Ethernet
inline constexpr std::uint8_t hop_limit = 64;
inline constexpr std::uint8_t min_rnr_timer = 1; ///< 10 us
inline constexpr std::uint8_t timeout = 14;      ///< 67 ms
inline constexpr std::uint8_t retries = 7;

using Gid = std::array<std::uint8_t, 16>;

/// All that a peer has to know of an endpoint.
struct Address {
    std::uint32_t qp_num;
    std::uint32_t rkey;
    std::uint64_t memory;
    Gid gid;
    std::uint32_t receiver;             ///< XRC: receive queue pair
    std::array<std::uint32_t, 16> srqs; ///< XRC: numbers of its queues
};

/// What a poll found.
enum class Done { nothing, sent, received };

/// A device's IPv4 address, as a GID.
struct LocalGid {
    std::uint8_t index;
    Gid gid;
};
LocalGid ipv4_gid(const std::string& device);

/// Page-aligned memory, present.
std::span<std::byte> allocate(std::size_t size);

// --- Processes ----------------------------------------------------------------------------------

/// Keeps this thread on a CPU.
void pin(int cpu);

/// One end of a socket between two processes.
class Channel {
public:
    explicit Channel(int fd) : fd_(fd) {}

    template <class T> void send(const T& value) const { write(&value, sizeof(value)); }
    template <class T> T receive() const
    {
        T value;
        read(&value, sizeof(value));
        return value;
    }
    /// Goes on when the other end has got to the same point.
    void meet() const
    {
        send('.');
        receive<char>();
    }

private:
    void write(const void* data, std::size_t size) const;
    void read(void* data, std::size_t size) const;

    int fd_;
};

/// Memory that both ends see: what they tell each other without a system call or a message.
struct Shared {
    std::atomic<std::uint64_t>
        taken; ///< messages that the server has taken and posted receives for
};

/// One of the two processes that talk to each other.
struct End {
    bool client;
    std::string device;
    Channel peer;
    Channel controller;
    Shared& shared;
};

/// The process that starts the two ends and observes them.
class Controller {
public:
    /// Runs @p body twice: as the client on the first CPU and $DAPX_DEV, as the server on the
    /// second CPU and $DAPX_PEER_DEV.
    explicit Controller(const std::function<void(End&)>& body);

    /// Goes on when both ends have called End::controller.meet().
    void meet() const;
    /// Waits for the end of both.
    void join() const;
    /// Kills the client, and waits until it is reaped and its device's objects are as many as
    /// @p objects.
    void kill_client(unsigned objects) const;
    void kill_server() const;

    [[nodiscard]] const std::string& client_device() const { return client_.device; }

private:
    struct Process {
        std::string device;
        pid_t pid;
        Channel channel;
    };

    Process client_;
    Process server_;
};

/// A process that is there to be killed.
class Victim {
public:
    /// Goes on when @p body calls await_death().
    explicit Victim(const std::function<void()>& body);

    [[noreturn]] static void await_death();

    /// Also waits until it is gone, and its files are closed.
    void kill() const;

private:
    pid_t pid_;
};

// --- Measures -----------------------------------------------------------------------------------

/// Counts this thread's system calls, of whatever kind, as the kernel sees them.
class SystemCalls {
public:
    SystemCalls();
    ~SystemCalls();
    SystemCalls(const SystemCalls&) = delete;
    SystemCalls& operator=(const SystemCalls&) = delete;

    /// Since this was called last.
    std::uint64_t take();

    /// Keeps the kernel ready for counting until stdin ends.
    static void hold();

private:
    int fd_;
    std::uint64_t before_ = 0;
};

/// Bytes that the kernel uses for itself: neither free, nor a process' own memory, nor page cache.
double kernel_memory();

/// A device's queue pairs and memory regions. Asks the kernel, which takes less time than a program of
/// its own would: until they are gone is what some workloads measure.
unsigned device_objects(const std::string& device);

/// Bytes that the client's link has sent so far.
std::uint64_t link_bytes();

} // namespace bench
