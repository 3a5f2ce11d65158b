// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "bench.hpp"

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <map>
#include <memory>
#include <new>
#include <rdma_netlink.hpp>
#include <sched.h>
#include <sstream>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace bench {

void die(const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    std::fprintf(stderr, "%s: ", program_invocation_short_name);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    va_end(arguments);
    _exit(1);
}

void report(const char* name, double value)
{
    std::printf("%s %.9g\n", name, value);
    std::fflush(stdout);
}

std::string environment(const char* name, const char* otherwise)
{
    const char* value = std::getenv(name);
    return value != nullptr ? value : otherwise;
}

void write_file(const char* path, const char* text)
{
    std::ofstream(path) << text << std::flush;
}

namespace {

std::string first_line(const std::string& path)
{
    std::ifstream file(path);
    std::string line;
    if (!std::getline(file, line))
        die("cannot read %s", path.c_str());
    return line;
}

} // namespace

LocalGid ipv4_gid(const std::string& device)
{
    // dapx_rxe0 is rxe0 to those who use it by verbs.
    const std::string name = device.starts_with("dapx_") ? device.substr(5) : device;
    const std::string folder = "/sys/class/infiniband/" + name + "/ports/1/gids/";
    for (std::uint8_t index = 0; index < 16; ++index) {
        // "0000:0000:0000:0000:0000:ffff:0a00:0001"
        std::string text = first_line(folder + std::to_string(index));
        if (!text.starts_with("0000:0000:0000:0000:0000:ffff:"))
            continue;
        std::erase(text, ':');
        LocalGid local{index, {}};
        for (std::size_t i = 0; i < local.gid.size(); ++i)
            local.gid[i] = static_cast<std::uint8_t>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
        return local;
    }
    die("%s has no IPv4 address", device.c_str());
}

std::span<std::byte> allocate(std::size_t size)
{
    constexpr std::size_t huge_page = std::size_t{2} << 20;
    const std::size_t whole = (size + huge_page - 1) / huge_page * huge_page;
    std::size_t space = whole + huge_page;
    void* memory = mmap(nullptr, space, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || std::align(huge_page, whole, memory, space) == nullptr)
        die("no memory: %m");
    // To register pages costs less where they lie side by side: that must not be a matter of luck.
    madvise(memory, whole, MADV_HUGEPAGE);
    if (madvise(memory, size, MADV_POPULATE_WRITE) != 0)
        die("no memory: %m");
    return {static_cast<std::byte*>(memory), size};
}

// --- Processes ----------------------------------------------------------------------------------

void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0)
        die("cannot run on CPU %d: %m", cpu);
}

void Channel::write(const void* data, std::size_t size) const
{
    if (::write(fd_, data, size) != static_cast<ssize_t>(size))
        die("the other process is gone");
}

void Channel::read(void* data, std::size_t size) const
{
    // Whole messages, as the socket is of type SOCK_SEQPACKET.
    if (::read(fd_, data, size) != static_cast<ssize_t>(size))
        die("the other process is gone");
}

namespace {

std::pair<int, int> socket_pair()
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
        die("socketpair: %m");
    return {fds[0], fds[1]};
}

void reap(pid_t pid, const char* name)
{
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die("the %s failed", name);
}

void kill_and_reap(pid_t pid)
{
    int status = 0;
    if (::kill(pid, SIGKILL) != 0 || waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
        die("the process to be killed has ended before");
}

} // namespace

Controller::Controller(const std::function<void(End&)>& body)
    : client_{environment("DAPX_DEV", "rxe0"), -1, Channel(-1)},
      server_{environment("DAPX_PEER_DEV", "rxe1"), -1, Channel(-1)}
{
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        die("no memory: %m");
    auto* shared = new (memory) Shared{};
    const auto [client_peer, server_peer] = socket_pair();

    for (Process* process : {&client_, &server_}) {
        const bool client = process == &client_;
        const auto [ours, theirs] = socket_pair();
        const pid_t pid = fork();
        if (pid < 0)
            die("fork: %m");
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            pin(client ? 0 : 1);
            close(ours);
            close(client ? server_peer : client_peer);
            End end{client, process->device, Channel(client ? client_peer : server_peer),
                    Channel(theirs), *shared};
            body(end);
            std::exit(0);
        }
        close(theirs);
        process->pid = pid;
        process->channel = Channel(ours);
    }
    close(client_peer);
    close(server_peer);
}

void Controller::meet() const
{
    client_.channel.meet();
    server_.channel.meet();
}

void Controller::join() const
{
    reap(client_.pid, "client");
    reap(server_.pid, "server");
}

void Controller::kill_client(unsigned objects) const
{
    kill_and_reap(client_.pid);
    while (device_objects(client_.device) > objects)
        usleep(100);
}

void Controller::kill_server() const
{
    kill_and_reap(server_.pid);
}

Victim::Victim(const std::function<void()>& body) : pid_(fork())
{
    if (pid_ < 0)
        die("fork: %m");
    if (pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        body();
        die("it has not waited for its death");
    }
    int status = 0;
    if (waitpid(pid_, &status, WUNTRACED) != pid_ || !WIFSTOPPED(status))
        die("the process to be killed has ended before");
}

void Victim::await_death()
{
    for (;;)
        raise(SIGSTOP);
}

void Victim::kill() const
{
    kill_and_reap(pid_);
}

// --- Measures -----------------------------------------------------------------------------------

SystemCalls::SystemCalls()
{
    perf_event_attr attr{};
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.size = sizeof(attr);
    attr.config = std::stoull(first_line("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id"));
    fd_ = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
    if (fd_ < 0)
        die("cannot count system calls: %m");
    take();
}

SystemCalls::~SystemCalls()
{
    close(fd_);
}

std::uint64_t SystemCalls::take()
{
    std::uint64_t now = 0;
    if (read(fd_, &now, sizeof(now)) != sizeof(now))
        die("cannot count system calls: %m");
    // The read itself is counted.
    const std::uint64_t since = now - before_ - 1;
    before_ = now;
    return since;
}

void SystemCalls::hold()
{
    const SystemCalls calls;
    char byte = 0;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
}

double kernel_memory()
{
    // What was freed a moment ago is free after a grace period, and what the CPUs count apart is
    // summed up on request.
    syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
    write_file("/proc/sys/vm/drop_caches", "3\n");
    usleep(200'000);
    write_file("/proc/sys/vm/stat_refresh", "1\n");

    std::map<std::string, double> bytes;
    std::ifstream file("/proc/meminfo");
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string name;
        double kilobytes = 0;
        words >> name >> kilobytes;
        bytes[name] = kilobytes * 1024;
    }
    // Free pages that a CPU keeps for itself are not in MemFree: "    count: 63".
    double kept = 0;
    std::ifstream zones("/proc/zoneinfo");
    for (std::string line; std::getline(zones, line);) {
        std::istringstream words(line);
        std::string name;
        double pages = 0;
        if (words >> name >> pages && name == "count:")
            kept += pages * static_cast<double>(getpagesize());
    }
    return bytes["MemTotal:"] - bytes["MemFree:"] - kept - bytes["AnonPages:"] - bytes["Cached:"] -
           bytes["Buffers:"];
}

unsigned device_objects(const std::string& device)
{
    const auto objects = dapx::detail::count_rdma_objects(device, {"qp", "mr"});
    if (!objects)
        die("%s: %s", device.c_str(), objects.error().error_code().message().c_str());
    return static_cast<unsigned>(*objects);
}

std::uint64_t link_bytes()
{
    const std::string netdev = environment("DAPX_NETDEV", "va");
    return std::stoull(first_line("/sys/class/net/" + netdev + "/statistics/tx_bytes"));
}

} // namespace bench
