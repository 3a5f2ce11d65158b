// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A job on two hosts, of which each process sends to each process of the other host: what its connections take over RC,
// one for each pair of processes, and over XRC, one for each process and host.
#include "dapx_bench.hpp"

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace bench;

constexpr unsigned most = 32;
constexpr unsigned depth = 4;

/// What all processes see. Where a peer is reached: by [host][process][process of the other host].
struct Job {
    pthread_barrier_t barrier;
    unsigned processes;
    int domains[2];
    Address addresses[2][most][most];

    void meet() { pthread_barrier_wait(&barrier); }
};

struct Rank {
    Job* job;
    unsigned host;
    unsigned number;

    [[nodiscard]] Address& address(unsigned peer) const
    {
        return job->addresses[host][number][peer];
    }
    [[nodiscard]] const Address& address_of(unsigned peer, unsigned towards) const
    {
        return job->addresses[1 - host][peer][towards];
    }
};

struct Message {
    std::uint32_t host;
    std::uint32_t number;
};

/// What each process has, in either way. The messages that come have a place each in its memory.
struct Process {
    explicit Process(const Rank& rank)
        : rank(rank), device(rank.host == 0 ? environment("DAPX_DEV", "rxe0")
                                            : environment("DAPX_PEER_DEV", "rxe1")),
          local(ipv4_gid(device)), memory(allocate(4096)),
          context(must(dapx::Context::open(device))), pd(must(dapx::Pd::create(context))),
          evd(must(dapx::Evd::create(context, {.depth = 4 * most})))
    {
    }

    [[nodiscard]] dapx::ReadyToReceive path(std::uint32_t qp_num, const Gid& gid) const
    {
        return {.dest_qp_num = qp_num,
                .dgid = gid,
                .sgid_index = local.index,
                .hop_limit = hop_limit,
                .path_mtu = path_mtu,
                .min_rnr_timer = min_rnr_timer};
    }

    static void ready_to_send(dapx::EndpointBase& endpoint)
    {
        must(endpoint.qp_ready_to_send(
            {.timeout = timeout, .retry_count = retries, .rnr_retry = retries}));
    }

    [[nodiscard]] std::span<const std::byte> message() const
    {
        static Message own;
        own = {rank.host, rank.number};
        return std::as_bytes(std::span(&own, 1));
    }

    Rank rank;
    std::string device;
    LocalGid local;
    std::span<std::byte> memory;
    dapx::Context context;
    dapx::Pd pd;
    dapx::Evd evd;
};

class RcProcess : public Process {
public:
    explicit RcProcess(const Rank& rank)
        : Process(rank),
          mr_(must(dapx::MemoryRegion::create(pd, memory, dapx::Access::local_write)))
    {
    }

    void make()
    {
        for (unsigned peer = 0; peer < rank.job->processes; ++peer) {
            endpoints_.push_back(must(dapx::Endpoint::create(pd, evd,
                                                             {.send_depth = depth,
                                                              .recv_depth = depth,
                                                              .max_send_sge = 1,
                                                              .max_recv_sge = 1,
                                                              .max_inline = small_size})));
            must(endpoints_[peer].qp_init(port));
            must(endpoints_[peer].post_recv(peer, mr_.segment(peer * small_size, small_size)),
                 "post_recv");
            rank.address(peer).qp_num = endpoints_[peer].qp_num();
            rank.address(peer).gid = local.gid;
        }
    }

    void connect()
    {
        for (unsigned peer = 0; peer < rank.job->processes; ++peer) {
            const Address& address = rank.address_of(peer, rank.number);
            must(endpoints_[peer].qp_ready_to_receive(path(address.qp_num, address.gid)));
            ready_to_send(endpoints_[peer]);
        }
    }

    void send(unsigned peer)
    {
        must(endpoints_[peer].post_send_inline(0, message()), "post_send_inline");
    }

private:
    dapx::MemoryRegion mr_;
    std::vector<dapx::Endpoint> endpoints_;
};

class XrcProcess : public Process {
public:
    explicit XrcProcess(const Rank& rank)
        : Process(rank), mr_(must(dapx::MemoryRegion::create(pd, memory, dapx::Access::local_write,
                                                             0, dapx::RegionFlags::xrc)))
    {
    }

    void make()
    {
        domain_.push_back(
            must(dapx::XrcDomain::open(context, rank.job->domains[rank.host], O_CREAT)));
        const dapx::XrcDomain& domain = domain_.front();
        srq_.push_back(must(dapx::Srq::create_xrc(
            domain, pd, evd, {.depth = depth * rank.job->processes, .max_sge = 1})));
        receiver_.push_back(must(dapx::XrcQp::create(domain)));
        sender_.push_back(must(dapx::XrcEndpoint::create(pd, evd,
                                                         {.send_depth = depth * rank.job->processes,
                                                          .max_send_sge = 1,
                                                          .max_inline = small_size})));
        must(receiver_.front().init(port));
        must(sender_.front().qp_init(port));
        for (unsigned peer = 0; peer < rank.job->processes; ++peer)
            must(srq_.front().post_recv(peer, mr_.segment(peer * small_size, small_size)),
                 "post_recv");
        Address& address = rank.address(0);
        address.qp_num = sender_.front().qp_num();
        address.receiver = receiver_.front().number();
        address.srqs[0] = srq_.front().number();
        address.gid = local.gid;
    }

    /// With the process of the same number.
    void connect()
    {
        const Address& peer = rank.address_of(rank.number, 0);
        must(receiver_.front().ready_to_receive(path(peer.qp_num, peer.gid)));
        must(sender_.front().qp_ready_to_receive(path(peer.receiver, peer.gid)));
        ready_to_send(sender_.front());
    }

    void send(unsigned peer)
    {
        must(sender_.front().to(rank.address_of(peer, 0).srqs[0]).post_send_inline(0, message()),
             "post_send_inline");
    }

private:
    dapx::MemoryRegion mr_;
    std::vector<dapx::XrcDomain> domain_;
    std::vector<dapx::Srq> srq_;
    std::vector<dapx::XrcQp> receiver_;
    std::vector<dapx::XrcEndpoint> sender_;
};

/// From each one of the other host one message, and all of one's own sent.
void exchange(auto& process)
{
    const unsigned processes = process.rank.job->processes;
    std::vector<bool> heard(processes);
    for (unsigned peer = 0; peer < processes; ++peer)
        process.send(peer);
    for (unsigned received = 0, sent = 0; received < processes || sent < processes;) {
        const dapx::Event event = must(process.evd.next());
        if (!event.is_completion() || event.status() != dapx::Status::success)
            die("%s", event.describe().c_str());
        if (event.opcode() != dapx::Opcode::recv) {
            ++sent;
            continue;
        }
        ++received;
        Message message;
        std::memcpy(&message, &process.memory[event.wr_id() * small_size], sizeof(message));
        if (message.host != 1 - process.rank.host || message.number >= processes ||
            heard[message.number])
            die("a message of process %u of host %u", message.number, message.host);
        heard[message.number] = true;
    }
}

template <class Process> void run_process(const Rank& rank)
{
    Process process(rank);
    rank.job->meet();
    rank.job->meet();
    process.make();
    rank.job->meet();
    process.connect();
    rank.job->meet();
    exchange(process);
    rank.job->meet();
}

Job* make_job(unsigned processes)
{
    void* at =
        mmap(nullptr, sizeof(Job), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        die("no memory");
    auto* job = new (at) Job{};
    pthread_barrierattr_t attr;
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&job->barrier, &attr, 2 * processes + 1);
    job->processes = processes;
    for (int& file : job->domains)
        file = memfd_create("domain", MFD_CLOEXEC);
    return job;
}

unsigned queue_pairs()
{
    return device_objects(environment("DAPX_DEV", "rxe0")) +
           device_objects(environment("DAPX_PEER_DEV", "rxe1"));
}

} // namespace

int main(int argc, char** argv)
{
    const std::string_view transport = argc == 4 ? argv[1] : "";
    const auto processes = static_cast<unsigned>(argc == 4 ? std::atoi(argv[3]) : 0);
    if ((transport != "rc" && transport != "xrc") || std::string_view(argv[2]) != "all-to-all" ||
        processes == 0 || processes > most)
        die("usage: %s rc|xrc all-to-all PROCESSES (on each host, at most %u)", argv[0], most);
    alarm(300);
    Job* job = make_job(processes);
    for (unsigned i = 0; i < 2 * processes; ++i) {
        const Rank rank{job, i / processes, i % processes};
        const pid_t pid = fork();
        if (pid < 0)
            die("cannot fork");
        if (pid != 0)
            continue;
        alarm(300);
        transport == "rc" ? run_process<RcProcess>(rank) : run_process<XrcProcess>(rank);
        _exit(0);
    }
    job->meet();
    const unsigned objects = queue_pairs();
    const double before = kernel_memory();
    job->meet();
    const auto start = Clock::now();
    job->meet();
    job->meet();
    report("setup", seconds(Clock::now() - start) * 1e3);
    report("memory", kernel_memory() - before);
    report("queue_pairs", queue_pairs() - objects);
    job->meet();
    report("exchanged", seconds(Clock::now() - start) * 1e3);
    for (unsigned i = 0; i < 2 * processes; ++i) {
        int status = 0;
        if (wait(&status) < 0 || status != 0)
            die("a process failed");
    }
    return 0;
}
