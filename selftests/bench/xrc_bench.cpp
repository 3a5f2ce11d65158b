// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The workloads over XRC: what is sent goes to as many queues as an Address has numbers for, in turn.
#include "counted.hpp"
#include "dapx_bench.hpp"
#include "workloads.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace bench;

class XrcDevice {
public:
    XrcDevice(const std::string& name, std::span<std::byte> memory)
        : local(ipv4_gid(name)), memory(memory), context(must(dapx::Context::open(name))),
          pd(must(dapx::Pd::create(context))),
          mr(must(dapx::MemoryRegion::create(pd, memory,
                                             dapx::Access::local_write | dapx::Access::remote_write,
                                             0, dapx::RegionFlags::xrc))),
          domain(must(dapx::XrcDomain::open(context, -1, O_CREAT)))
    {
    }

    LocalGid local;
    std::span<std::byte> memory;
    dapx::Context context;
    dapx::Pd pd;
    dapx::MemoryRegion mr;
    dapx::XrcDomain domain;
};

class XrcEndpoint {
public:
    XrcEndpoint(XrcDevice& device, Depths depths, Waits = Waits::polling)
        : device_(&device),
          evd_(must(dapx::Evd::create(device.context, {.depth = depths.send + depths.recv}))),
          endpoint_(must(dapx::XrcEndpoint::create(
              device.pd, evd_,
              {.send_depth = depths.send, .max_send_sge = 1, .max_inline = small_size}))),
          receiver_(must(dapx::XrcQp::create(device.domain)))
    {
        for (std::uint32_t i = 0; i < Address{}.srqs.size(); ++i)
            srqs_.push_back(must(dapx::Srq::create_xrc(
                device.domain, device.pd, evd_,
                {.depth = std::max<std::uint32_t>(1, depths.recv / Address{}.srqs.size()),
                 .max_sge = 1})));
        must(endpoint_.qp_init(port));
        must(receiver_.init(port));
    }

    [[nodiscard]] Address address() const
    {
        Address address{.qp_num = endpoint_.qp_num(),
                        .rkey = device_->mr.rkey(),
                        .memory = device_->mr.addr(),
                        .gid = device_->local.gid,
                        .receiver = receiver_.number(),
                        .srqs = {}};
        for (std::size_t i = 0; i < srqs_.size(); ++i)
            address.srqs[i] = srqs_[i].number();
        return address;
    }

    void connect(const Address& peer)
    {
        peer_ = peer;
        dapx::ReadyToReceive path{.dest_qp_num = peer.qp_num,
                                  .dgid = peer.gid,
                                  .sgid_index = device_->local.index,
                                  .hop_limit = hop_limit,
                                  .path_mtu = path_mtu,
                                  .min_rnr_timer = min_rnr_timer};
        must(receiver_.ready_to_receive(path));
        path.dest_qp_num = peer.receiver;
        must(endpoint_.qp_ready_to_receive(path));
        must(endpoint_.qp_ready_to_send(
            {.timeout = timeout, .retry_count = retries, .rnr_retry = retries}));
    }

    /// As the queue whose turn it is.
    auto next() { return endpoint_.to(peer_.srqs[sent_++ % peer_.srqs.size()]); }

    void send()
    {
        must(next().post_send_inline(0, device_->memory.first(small_size)), "post_send_inline");
    }

    void send_large()
    {
        must(next().post_send(0, device_->mr.segment(0, large_size)), "post_send");
    }

    void receive() { receive(small_size); }
    void receive_large() { receive(large_size); }

    Done poll() { return take_completion(evd_); }
    void sleep() { must(evd_.wait()); }

private:
    void receive(std::uint32_t size)
    {
        must(srqs_[posted_++ % srqs_.size()].post_recv(0, device_->mr.segment(0, size)),
             "post_recv");
    }

    XrcDevice* device_;
    dapx::Evd evd_;
    dapx::XrcEndpoint endpoint_;
    dapx::XrcQp receiver_;
    std::vector<dapx::Srq> srqs_;
    Address peer_{};
    unsigned sent_ = 0;
    unsigned posted_ = 0;
};

struct Xrc {
    using Device = XrcDevice;
    using Endpoint = XrcEndpoint;
};

/// Opening a domain that is there, a few times at once as a process would, beside a command that does nothing.
void domains(unsigned count)
{
    const int file = memfd_create("domain", 0);
    const dapx::Context context = must(dapx::Context::open(environment("DAPX_DEV", "rxe0")));
    const dapx::XrcDomain first = must(dapx::XrcDomain::open(context, file, O_CREAT));
    constexpr unsigned at_once = 16;
    std::vector<dapx::XrcDomain> opened;
    opened.reserve(at_once);
    Clock::duration nothing{};
    Clock::duration opening{};
    const unsigned rounds = count / at_once;

    for (unsigned round = 0; round < rounds; ++round) {
        auto start = Clock::now();
        for (unsigned i = 0; i < at_once; ++i) {
            dapx_info info{};
            info.size = sizeof(info);
            if (ioctl(context.fd(), DAPX_INFO, &info) != 0)
                die("DAPX_INFO failed");
        }
        nothing += Clock::now() - start;
        start = Clock::now();
        for (unsigned i = 0; i < at_once; ++i)
            opened.push_back(must(dapx::XrcDomain::open(context, file, 0)));
        opening += Clock::now() - start;
        opened.clear();
    }
    close(file);
    report("ioctl", seconds(nothing) / (rounds * at_once) * 1e6);
    report("open", seconds(opening) / (rounds * at_once) * 1e6);
}

/// The memory of a receive queue pair that nobody sends to.
void receivers(unsigned count)
{
    const dapx::Context context = must(dapx::Context::open(environment("DAPX_DEV", "rxe0")));
    const dapx::XrcDomain domain = must(dapx::XrcDomain::open(context, -1, O_CREAT));
    std::vector<dapx::XrcQp> receivers;
    receivers.reserve(count + 1);
    // The first one makes what the domain has once.
    const auto make = [&](unsigned number) {
        for (unsigned i = 0; i < number; ++i) {
            receivers.push_back(must(dapx::XrcQp::create(domain)));
            must(receivers.back().init(port));
        }
    };
    make(1);
    const double before = kernel_memory();
    make(count);
    report("memory", (kernel_memory() - before) / count);
}

} // namespace

int main(int argc, char** argv)
{
    const std::string_view workload = argc == 3 ? argv[1] : "";
    const auto count = static_cast<unsigned>(argc == 3 ? std::atoi(argv[2]) : 0);

    if (workload == "domains")
        domains(count);
    else if (workload == "receivers")
        receivers(count);
    else if (!counted::main<Xrc>(argc, argv))
        return bench::main<Xrc>(argc, argv);
    return 0;
}
