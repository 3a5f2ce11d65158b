// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The workloads over libibverbs.
#include "counted.hpp"
#include "workloads.hpp"

#include <array>
#include <cerrno>
#include <infiniband/verbs.h>
#include <utility>

namespace {

using namespace bench;

class Device {
public:
    Device(const std::string& name, std::span<std::byte> memory)
        : local(ipv4_gid(name)), memory(memory)
    {
        ibv_device** list = ibv_get_device_list(nullptr);
        for (ibv_device** device = list; device != nullptr && *device != nullptr; ++device)
            if (name == ibv_get_device_name(*device))
                context = ibv_open_device(*device);
        if (context == nullptr)
            die("cannot open %s: %m", name.c_str());
        ibv_free_device_list(list);
        pd = ibv_alloc_pd(context);
        if (pd == nullptr)
            die("ibv_alloc_pd: %m");
        constexpr int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
        mr = ibv_reg_mr(pd, memory.data(), memory.size(), access | IBV_ACCESS_MW_BIND);
        if (mr == nullptr && errno == EOPNOTSUPP) // there are no windows by libdapx-verbs
            mr = ibv_reg_mr(pd, memory.data(), memory.size(), access);
        if (mr == nullptr)
            die("ibv_reg_mr: %m");
    }

    LocalGid local;
    std::span<std::byte> memory;
    ibv_context* context = nullptr;
    ibv_pd* pd;
    ibv_mr* mr;
};

class Endpoint {
public:
    Endpoint(Device& device, Depths depths, Waits waits = Waits::polling) : device_(&device)
    {
        if (waits == Waits::asleep &&
            (channel_ = ibv_create_comp_channel(device.context)) == nullptr)
            die("ibv_create_comp_channel: %m");
        cq_ = ibv_create_cq(device.context, static_cast<int>(depths.send + depths.recv), nullptr,
                            channel_, 0);
        if (cq_ == nullptr)
            die("ibv_create_cq: %m");
        ibv_qp_init_attr init{};
        init.send_cq = cq_;
        init.recv_cq = cq_;
        init.cap = {.max_send_wr = depths.send,
                    .max_recv_wr = depths.recv,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = small_size};
        init.qp_type = IBV_QPT_RC;
        qp_ = ibv_create_qp(device.pd, &init);
        if (qp_ == nullptr)
            die("ibv_create_qp: %m");
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_INIT;
        attr.port_num = port;
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
        modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    }

    [[nodiscard]] Address address() const
    {
        return {.qp_num = qp_->qp_num,
                .rkey = device_->mr->rkey,
                .memory = reinterpret_cast<std::uint64_t>(device_->memory.data()),
                .gid = device_->local.gid,
                .receiver = 0,
                .srqs = {}};
    }

    void connect(const Address& peer)
    {
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_RTR;
        attr.path_mtu = static_cast<ibv_mtu>(path_mtu);
        attr.dest_qp_num = peer.qp_num;
        attr.rq_psn = 0;
        attr.max_dest_rd_atomic = 1;
        attr.min_rnr_timer = min_rnr_timer;
        attr.ah_attr.is_global = 1;
        attr.ah_attr.port_num = port;
        attr.ah_attr.grh.sgid_index = device_->local.index;
        attr.ah_attr.grh.hop_limit = hop_limit;
        std::ranges::copy(peer.gid, attr.ah_attr.grh.dgid.raw);
        modify(attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
        attr.qp_state = IBV_QPS_RTS;
        attr.sq_psn = 0;
        attr.timeout = timeout;
        attr.retry_cnt = retries;
        attr.rnr_retry = retries;
        attr.max_rd_atomic = 1;
        modify(attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                         IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
    }

    void send() { send(small_size, IBV_SEND_INLINE); }
    void send_large() { send(large_size, 0); }

    void send(std::uint32_t size, unsigned flags)
    {
        ibv_sge segment = whole_memory(size);
        ibv_send_wr request{};
        request.sg_list = &segment;
        request.num_sge = 1;
        request.opcode = IBV_WR_SEND;
        request.send_flags = IBV_SEND_SIGNALED | flags;
        post(request);
    }

    void send_list(std::uint32_t count)
    {
        ibv_sge segment = whole_memory(small_size);
        std::array<ibv_send_wr, 8> requests{};
        if (count > requests.size())
            die("a list of %u requests", count);
        for (std::uint32_t i = 0; i < count; ++i) {
            requests[i].sg_list = &segment;
            requests[i].num_sge = 1;
            requests[i].opcode = IBV_WR_SEND;
            requests[i].send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
            requests[i].next = i + 1 < count ? &requests[i + 1] : nullptr;
        }
        post(requests[0]);
    }

    void write(const Address& peer)
    {
        ibv_sge segment = whole_memory(large_size);
        ibv_send_wr request{};
        request.sg_list = &segment;
        request.num_sge = 1;
        request.opcode = IBV_WR_RDMA_WRITE;
        request.send_flags = IBV_SEND_SIGNALED;
        request.wr.rdma = {.remote_addr = peer.memory, .rkey = peer.rkey};
        post(request);
    }

    void receive() { receive(small_size); }
    void receive_large() { receive(large_size); }

    void receive(std::uint32_t size)
    {
        ibv_sge segment = whole_memory(size);
        ibv_recv_wr request{};
        request.sg_list = &segment;
        request.num_sge = 1;
        ibv_recv_wr* bad = nullptr;
        if (const int error = ibv_post_recv(qp_, &request, &bad); error != 0)
            die("ibv_post_recv: errno %d", error);
    }

    void make_window()
    {
        window_ = ibv_alloc_mw(device_->pd, IBV_MW_TYPE_2);
        if (window_ == nullptr)
            die("ibv_alloc_mw: %m");
    }

    void bind_window()
    {
        ibv_send_wr request{};
        request.opcode = IBV_WR_BIND_MW;
        request.send_flags = IBV_SEND_SIGNALED;
        request.bind_mw.mw = window_;
        request.bind_mw.rkey = ibv_inc_rkey(window_->rkey);
        request.bind_mw.bind_info = {.mr = device_->mr,
                                     .addr =
                                         reinterpret_cast<std::uint64_t>(device_->memory.data()),
                                     .length = window_size,
                                     .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
        post(request);
        window_->rkey = request.bind_mw.rkey;
    }

    void unbind_window()
    {
        ibv_send_wr request{};
        request.opcode = IBV_WR_LOCAL_INV;
        request.send_flags = IBV_SEND_SIGNALED;
        request.invalidate_rkey = window_->rkey;
        post(request);
    }

    /// Lets a peer in, and takes that back.
    void lend(std::uint32_t size)
    {
        ibv_mr* mr = ibv_reg_mr(device_->pd, device_->memory.data(), size,
                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        if (mr == nullptr || ibv_dereg_mr(mr) != 0)
            die("ibv_reg_mr: %m");
    }

    void keep_lent()
    {
        if (ibv_reg_mr(device_->pd, device_->memory.data(), window_size,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) == nullptr)
            die("ibv_reg_mr: %m");
    }

    void keep_window()
    {
        make_window();
        bind_window();
        while (poll() == Done::nothing) {
        }
    }

    Done poll()
    {
        ibv_wc completion;
        const int count = ibv_poll_cq(cq_, 1, &completion);
        if (count == 0)
            return Done::nothing;
        if (count < 0 || completion.status != IBV_WC_SUCCESS)
            die("a request failed: %s",
                count < 0 ? "ibv_poll_cq" : ibv_wc_status_str(completion.status));
        return (completion.opcode & IBV_WC_RECV) != 0 ? Done::received : Done::sent;
    }

    /// Arms the first time: what came before has to be polled for.
    void sleep()
    {
        if (!armed_) {
            if (const int error = ibv_req_notify_cq(cq_, 0); error != 0)
                die("ibv_req_notify_cq: errno %d", error);
        } else {
            ibv_cq* cq = nullptr;
            void* context = nullptr;
            if (ibv_get_cq_event(channel_, &cq, &context) != 0)
                die("ibv_get_cq_event: %m");
            ibv_ack_cq_events(cq, 1);
        }
        armed_ = !armed_;
    }

    /// A request list of none is invalid, so this is the same command for a request that is no good.
    void doorbell()
    {
        ibv_send_wr request{};
        request.opcode = IBV_WR_BIND_MW;
        ibv_send_wr* bad = nullptr;
        ibv_post_send(qp_, &request, &bad);
    }

    void end()
    {
        if (ibv_destroy_qp(qp_) != 0 || ibv_destroy_cq(cq_) != 0)
            die("ibv_destroy_qp: %m");
    }

private:
    [[nodiscard]] ibv_sge whole_memory(std::uint32_t length) const
    {
        return {.addr = reinterpret_cast<std::uint64_t>(device_->memory.data()),
                .length = length,
                .lkey = device_->mr->lkey};
    }

    void post(ibv_send_wr& request)
    {
        ibv_send_wr* bad = nullptr;
        if (const int error = ibv_post_send(qp_, &request, &bad); error != 0)
            die("ibv_post_send: errno %d", error);
    }

    void modify(ibv_qp_attr& attr, int mask)
    {
        if (const int error = ibv_modify_qp(qp_, &attr, mask); error != 0)
            die("ibv_modify_qp: errno %d", error);
    }

    Device* device_;
    ibv_comp_channel* channel_ = nullptr;
    bool armed_ = false;
    ibv_cq* cq_;
    ibv_qp* qp_;
    ibv_mw* window_ = nullptr;
};

struct Verbs {
    using Device = ::Device;
    using Endpoint = ::Endpoint;
};

} // namespace

int main(int argc, char** argv)
{
    if (counted::main<Verbs>(argc, argv))
        return 0;
    return bench::main<Verbs>(argc, argv);
}
