// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The workloads over libdapx.
#include "workloads.hpp"

#include <dapx/dapx.hpp>

#include <optional>
#include <utility>

namespace {

using namespace bench;

template <class T> T must(dapx::Result<T>&& result)
{
    if (!result)
        die("%s", result.error().message().c_str());
    if constexpr (!std::is_void_v<T>)
        return std::move(*result);
}

void must(dapx::Post post, const char* call)
{
    if (post != dapx::Post::ok) [[unlikely]]
        die("%s", dapx::explain(post, call).message().c_str());
}

class Device {
public:
    Device(const std::string& name, std::span<std::byte> memory)
        : local(ipv4_gid(name)), memory(memory), context(must(dapx::Context::open(name))),
          pd(must(dapx::Pd::create(context))),
          mr(must(dapx::MemoryRegion::create(
              pd, memory, dapx::Access::local_write | dapx::Access::remote_write)))
    {
    }

    LocalGid local;
    std::span<std::byte> memory;
    dapx::Context context;
    dapx::Pd pd;
    dapx::MemoryRegion mr;
};

class Endpoint {
public:
    Endpoint(Device& device, Depths depths)
        : device_(&device),
          evd_(must(dapx::Evd::create(device.context, {.depth = depths.send + depths.recv}))),
          endpoint_(must(dapx::Endpoint::create(device.pd, evd_,
                                                {.send_depth = depths.send,
                                                 .recv_depth = depths.recv,
                                                 .max_send_sge = 1,
                                                 .max_recv_sge = 1,
                                                 .max_inline = small_size})))
    {
        must(endpoint_.qp_init(port));
    }

    [[nodiscard]] Address address() const
    {
        return {.qp_num = endpoint_.qp_num(),
                .rkey = device_->mr.rkey(),
                .memory = device_->mr.addr(),
                .gid = device_->local.gid};
    }

    void connect(const Address& peer)
    {
        must(endpoint_.qp_ready_to_receive({.dest_qp_num = peer.qp_num,
                                            .dgid = peer.gid,
                                            .sgid_index = device_->local.index,
                                            .hop_limit = hop_limit,
                                            .path_mtu = path_mtu,
                                            .min_rnr_timer = min_rnr_timer}));
        must(endpoint_.qp_ready_to_send(
            {.timeout = timeout, .retry_count = retries, .rnr_retry = retries}));
    }

    void send()
    {
        must(endpoint_.post_send_inline(0, device_->memory.first(small_size)), "post_send_inline");
    }

    void write(const Address& peer)
    {
        must(endpoint_.post_write(0, device_->mr.segment(0, large_size),
                                  {.addr = peer.memory, .rkey = peer.rkey}),
             "post_write");
    }

    void receive()
    {
        must(endpoint_.post_recv(0, device_->mr.segment(0, small_size)), "post_recv");
    }

    void make_window() { window_ = must(dapx::Rmr::create(device_->pd)); }

    void bind_window()
    {
        must(window_->bind(endpoint_, 0, device_->mr, 0, window_size, dapx::Access::remote_write));
    }

    void unbind_window() { must(window_->unbind(endpoint_, 0)); }

    /// Lets a peer in, and takes that back.
    void lend(std::uint32_t size)
    {
        dapx::Rmr rmr = must(dapx::Rmr::create(device_->pd));
        must(rmr.bind(endpoint_, 0, device_->mr, 0, size, dapx::Access::remote_write,
                      dapx::SendFlags::none));
        must(rmr.free());
    }

    Done poll()
    {
        dapx::Event event;
        if (!evd_.poll(event))
            return Done::nothing;
        if (!event.is_completion() || event.status() != dapx::Status::success)
            die("%s", event.describe().c_str());
        return event.opcode() == dapx::Opcode::recv ? Done::received : Done::sent;
    }

private:
    Device* device_;
    dapx::Evd evd_;
    dapx::Endpoint endpoint_;
    std::optional<dapx::Rmr> window_;
};

struct Dapx {
    using Device = ::Device;
    using Endpoint = ::Endpoint;
};

} // namespace

int main(int argc, char** argv)
{
    return bench::main<Dapx>(argc, argv);
}
