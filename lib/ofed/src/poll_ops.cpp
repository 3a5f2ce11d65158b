// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The functions of struct ibv_cq_ex.
#include "cq.hpp"

namespace dapx::verbs {

namespace {

Cq& own(ibv_cq_ex* cq) noexcept
{
    return *static_cast<Cq*>(cq);
}

/// One that returns this member of the completion.
template <auto member> auto read(ibv_cq_ex* cq) noexcept
{
    return own(cq).polled().*member;
}

} // namespace

/// All that a program can ask for (wc_flags), whether it did or not.
void set_poll_ops(Cq& cq) noexcept
{
    cq.start_poll = [](ibv_cq_ex* ex, ibv_poll_cq_attr* attr) {
        return own(ex).begin_polling(attr);
    };
    cq.next_poll = [](ibv_cq_ex* ex) { return own(ex).poll_next(); };
    cq.end_poll = [](ibv_cq_ex* ex) { own(ex).end_polling(); };
    cq.read_opcode = read<&ibv_wc::opcode>;
    cq.read_vendor_err = read<&ibv_wc::vendor_err>;
    cq.read_byte_len = read<&ibv_wc::byte_len>;
    cq.read_imm_data = read<&ibv_wc::imm_data>;
    cq.read_qp_num = read<&ibv_wc::qp_num>;
    cq.read_src_qp = read<&ibv_wc::src_qp>;
    cq.read_wc_flags = read<&ibv_wc::wc_flags>;
    cq.read_slid = [](ibv_cq_ex* ex) { return std::uint32_t{own(ex).polled().slid}; };
    cq.read_sl = read<&ibv_wc::sl>;
    cq.read_dlid_path_bits = read<&ibv_wc::dlid_path_bits>;
}

} // namespace dapx::verbs
