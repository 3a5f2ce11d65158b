// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "send_ops.hpp"

#include "post.hpp"
#include "qp.hpp"

#include <cstring>

namespace dapx::verbs {

void SendBuilder::start(const ibv_qp_cap& limits) noexcept
{
    limits_ = limits;
    requests_.clear();
    current_ = 0;
    count_ = 0;
    error_ = 0;
}

void SendBuilder::append(const void* bytes, std::size_t size) noexcept
try {
    const auto* first = static_cast<const std::byte*>(bytes);
    requests_.insert(requests_.end(), first, first + size);
} catch (const std::bad_alloc&) {
    fail(ENOMEM);
}

void SendBuilder::begin(const ::dapx_send_wr& wr) noexcept
{
    current_ = requests_.size();
    ++count_;
    append(&wr, sizeof(wr));
}

::dapx_send_wr SendBuilder::header(std::size_t at) const noexcept
{
    ::dapx_send_wr wr;
    std::memcpy(&wr, &requests_[at], sizeof(wr));
    return wr;
}

template <class Change> void SendBuilder::change(Change change) noexcept
{
    if (error_ != 0)
        return;
    if (count_ == 0)
        return fail(EINVAL);
    ::dapx_send_wr wr = header(current_);
    change(wr);
    std::memcpy(&requests_[current_], &wr, sizeof(wr));
}

void SendBuilder::set_imm(__be32 imm) noexcept
{
    change([=](::dapx_send_wr& wr) { wr.imm_data = imm; });
}

void SendBuilder::set_srq_number(std::uint32_t number) noexcept
{
    change([=](::dapx_send_wr& wr) { wr.remote_srqn = number; });
}

/// False: there is no request, or it has its data.
bool SendBuilder::takes_data() noexcept
{
    if (error_ == 0 && requests_.size() != current_ + sizeof(::dapx_send_wr))
        fail(EINVAL);
    return error_ == 0;
}

void SendBuilder::set_segments(std::span<const ibv_sge> list) noexcept
{
    if (list.size() > limits_.max_send_sge)
        return fail(EINVAL);
    if (!takes_data())
        return;
    change([&](::dapx_send_wr& wr) { wr.num_sge = static_cast<std::uint8_t>(list.size()); });
    for (const ibv_sge& sge : list) {
        const dapx::Segment segment = {.mr = sge.lkey, .length = sge.length, .addr = sge.addr};
        append(&segment, sizeof(segment));
    }
}

void SendBuilder::set_inline(std::span<const ibv_data_buf> list) noexcept
{
    std::size_t length = 0;
    for (const ibv_data_buf& buffer : list)
        length += buffer.length;
    if (length > limits_.max_inline_data)
        return fail(ENOMEM);
    if (!takes_data())
        return;
    change([&](::dapx_send_wr& wr) {
        wr.flags |= DAPX_SEND_INLINE;
        wr.inline_len = static_cast<std::uint32_t>(length);
    });
    for (const ibv_data_buf& buffer : list)
        append(buffer.addr, buffer.length);
}

void SendBuilder::fail(int error) noexcept
{
    if (error_ == 0)
        error_ = error;
}

int SendBuilder::post(dapx::EndpointBase& endpoint) const noexcept
{
    if (error_ != 0)
        return error_;
    if (count_ > endpoint.send_room())
        return ENOMEM;
    for (std::size_t at = 0; at < requests_.size();) {
        const ::dapx_send_wr wr = header(at);
        at += sizeof(wr);
        const dapx::PostResult posted =
            endpoint.post_wr(wr, requests_.data() + at, dapx::Doorbell::later);
        if (posted != dapx::PostResult::ok)
            return post_error(posted);
        at +=
            (wr.flags & DAPX_SEND_INLINE) != 0 ? wr.inline_len : wr.num_sge * sizeof(dapx::Segment);
    }
    return post_error(endpoint.submit());
}

/// The functions: each finds the queue pair by what it is in.
struct SendOps {
    static EndpointQp& own(ibv_qp_ex* qp) noexcept { return *EndpointQp::of(&qp->qp_base); }

    static void begin(ibv_qp_ex* qp, std::uint8_t opcode, std::uint64_t remote_addr = 0,
                      std::uint32_t rkey = 0, std::uint64_t compare_add = 0,
                      std::uint64_t swap = 0) noexcept
    {
        EndpointQp& self = own(qp);
        ::dapx_send_wr wr{};
        wr.wr_id = qp->wr_id;
        wr.opcode = opcode;
        wr.flags =
            send_flags(qp->wr_flags & ~static_cast<unsigned>(IBV_SEND_INLINE), self.signal_all_);
        wr.remote_addr = remote_addr;
        wr.rkey = rkey;
        wr.compare_add = compare_add;
        wr.swap = swap;
        self.builder_.begin(wr);
    }

    static void begin_imm(ibv_qp_ex* qp, std::uint8_t opcode, __be32 imm,
                          std::uint64_t remote_addr = 0, std::uint32_t rkey = 0) noexcept
    {
        begin(qp, opcode, remote_addr, rkey);
        own(qp).builder_.set_imm(imm);
    }

    static void start(ibv_qp_ex* qp) noexcept
    {
        own(qp).send_lock_.lock();
        own(qp).builder_.start(own(qp).cap_);
    }

    static int complete(ibv_qp_ex* qp) noexcept
    {
        EndpointQp& self = own(qp);
        const int error = self.builder_.post(*self.core_);
        self.send_lock_.unlock();
        return error;
    }

    static void abort(ibv_qp_ex* qp) noexcept { own(qp).send_lock_.unlock(); }

    static void set(EndpointQp& qp) noexcept
    {
        qp.wr_start = start;
        qp.wr_complete = complete;
        qp.wr_abort = abort;
        qp.wr_send = [](ibv_qp_ex* ex) { begin(ex, DAPX_OP_SEND); };
        qp.wr_send_imm = [](ibv_qp_ex* ex, __be32 imm) { begin_imm(ex, DAPX_OP_SEND_IMM, imm); };
        qp.wr_rdma_write = [](ibv_qp_ex* ex, std::uint32_t rkey, std::uint64_t addr) {
            begin(ex, DAPX_OP_RDMA_WRITE, addr, rkey);
        };
        qp.wr_rdma_write_imm = [](ibv_qp_ex* ex, std::uint32_t rkey, std::uint64_t addr,
                                  __be32 imm) {
            begin_imm(ex, DAPX_OP_RDMA_WRITE_IMM, imm, addr, rkey);
        };
        qp.wr_rdma_read = [](ibv_qp_ex* ex, std::uint32_t rkey, std::uint64_t addr) {
            begin(ex, DAPX_OP_RDMA_READ, addr, rkey);
        };
        qp.wr_atomic_cmp_swp = [](ibv_qp_ex* ex, std::uint32_t rkey, std::uint64_t addr,
                                  std::uint64_t compare, std::uint64_t swap) {
            begin(ex, DAPX_OP_COMPARE_SWAP, addr, rkey, compare, swap);
        };
        qp.wr_atomic_fetch_add = [](ibv_qp_ex* ex, std::uint32_t rkey, std::uint64_t addr,
                                    std::uint64_t add) {
            begin(ex, DAPX_OP_FETCH_ADD, addr, rkey, add);
        };
        qp.wr_set_xrc_srqn = [](ibv_qp_ex* ex, std::uint32_t number) {
            own(ex).builder_.set_srq_number(number);
        };
        qp.wr_set_sge = [](ibv_qp_ex* ex, std::uint32_t lkey, std::uint64_t addr,
                           std::uint32_t length) {
            const ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};
            own(ex).builder_.set_segments({&sge, 1});
        };
        qp.wr_set_sge_list = [](ibv_qp_ex* ex, std::size_t count, const ibv_sge* list) {
            own(ex).builder_.set_segments({list, count});
        };
        qp.wr_set_inline_data = [](ibv_qp_ex* ex, void* addr, std::size_t length) {
            const ibv_data_buf buffer = {.addr = addr, .length = length};
            own(ex).builder_.set_inline({&buffer, 1});
        };
        qp.wr_set_inline_data_list = [](ibv_qp_ex* ex, std::size_t count,
                                        const ibv_data_buf* list) {
            own(ex).builder_.set_inline({list, count});
        };
    }
};

void set_send_ops(EndpointQp& qp) noexcept
{
    SendOps::set(qp);
}

} // namespace dapx::verbs
