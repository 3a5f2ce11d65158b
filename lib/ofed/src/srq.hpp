// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "cq.hpp"
#include "pd.hpp"

namespace dapx::verbs {

class Xrcd;

/// A shared receive queue, of endpoints or of an XRC domain.
class Srq : public ibv_srq {
public:
    [[nodiscard]] static Srq* of(ibv_srq* srq) noexcept { return static_cast<Srq*>(srq); }

    /// nullptr and errno. @p attr: what is wanted, and what came out.
    /// @p domain, @p cq of XRC; of a plain one nullptr.
    [[nodiscard]] static Srq* create(Pd& pd, void* consumer, ibv_srq_attr& attr, Xrcd* domain,
                                     Cq* cq) noexcept;

    ~Srq();

    [[nodiscard]] Context& owner() const noexcept { return Context::of(context); }
    [[nodiscard]] core::Srq& core() noexcept { return *core_; }
    [[nodiscard]] bool is_xrc() const noexcept { return cq_ != nullptr; }
    /// XRC: whether its completions go there.
    [[nodiscard]] bool completes_to(const ibv_cq* cq) const noexcept
    {
        return is_xrc() && cq_->verbs() == cq;
    }
    /// XRC: its number.
    [[nodiscard]] std::uint32_t number() const noexcept { return core_->number(); }

    /// As ibv_post_srq_recv().
    [[nodiscard]] int post(ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept;

    /// As ibv_modify_srq() with IBV_SRQ_MAX_WR. 0 or an errno.
    [[nodiscard]] int resize(std::uint32_t depth) noexcept;

    /// Frees what the module has; then no completion and no event of it is found any more. 0 or an errno.
    [[nodiscard]] int end() noexcept;

    /// Asynchronous events that were got.
    void reported() noexcept { ++reported_; }
    void await_acknowledgements() noexcept;

private:
    Srq(Pd& domain, void* consumer, Cq* completions) noexcept;
    /// Makes what the module has of it. 0 or an errno.
    [[nodiscard]] int init(Xrcd* domain, ibv_srq_attr& attr) noexcept;

    std::mutex lock_; ///< who posts
    Late<core::Srq> core_;
    Cq* cq_;
    std::atomic<unsigned> reported_ = 0;
};

} // namespace dapx::verbs
