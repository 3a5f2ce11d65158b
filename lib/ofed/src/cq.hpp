// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "context.hpp"

#include <vector>

namespace dapx::verbs {

class Cq;

/// A completion channel: an eventfd that is signalled once for each time that one of its CQs was armed
/// and got a completion.
class Channel : public ibv_comp_channel {
public:
    [[nodiscard]] static Channel* of(ibv_comp_channel* channel) noexcept
    {
        return static_cast<Channel*>(channel);
    }

    Channel(Context& owner, int eventfd) noexcept;
    ~Channel();

    [[nodiscard]] Context& owner() const noexcept { return Context::of(context); }

    [[nodiscard]] bool add(Cq& cq) noexcept;
    void remove(Cq& cq) noexcept;
    [[nodiscard]] bool unused() noexcept;

    /// From now on the next completion of @p cq is an event, or the next solicited one. That does not
    /// narrow an earlier request for any, which is outstanding.
    void arm(Cq& cq, bool solicited_only) noexcept;

    /// The CQ whose event this is, waited for unless fd is O_NONBLOCK. nullptr and errno.
    [[nodiscard]] Cq* next_event() noexcept;

private:
    friend class Cq;

    /// One whose event nobody has got yet, or nullptr.
    [[nodiscard]] Cq* take() noexcept;

    std::mutex lock_;
    std::vector<Cq*> cqs_;
};

/// A completion queue: an EVD's ring. Its first members are those of struct ibv_cq.
class Cq : public ibv_cq_ex {
public:
    [[nodiscard]] static Cq* of(ibv_cq* cq) noexcept
    {
        return static_cast<Cq*>(reinterpret_cast<ibv_cq_ex*>(cq));
    }
    [[nodiscard]] ibv_cq* verbs() noexcept { return ibv_cq_ex_to_cq(this); }

    Cq(Context& owner, Channel* events, void* consumer, core::Evd core) noexcept;
    ~Cq();

    [[nodiscard]] Context& owner() const noexcept { return Context::of(context); }
    [[nodiscard]] core::Evd& core() noexcept { return core_; }

    /// Whether the program has asked for solicited completions: then endpoints have to distinguish
    /// receives, which costs a command for each look at an empty CQ.
    [[nodiscard]] bool was_armed_for_solicited() const noexcept { return for_solicited_; }

    /// As ibv_poll_cq().
    [[nodiscard]] int poll(int num_entries, ibv_wc* wc) noexcept;

    /// One completion after the other, as struct ibv_cq_ex has it. Until end_polling() no other thread
    /// polls. 0, or ENOENT; if begin_polling() fails, end_polling() is not called.
    [[nodiscard]] int begin_polling(const ibv_poll_cq_attr* attr) noexcept;
    [[nodiscard]] int poll_next() noexcept;
    void end_polling() noexcept { lock_.unlock(); }
    /// The completion that was polled last.
    [[nodiscard]] const ibv_wc& polled() const noexcept { return polled_; }

    /// 0 or an errno.
    [[nodiscard]] int resize(std::uint32_t depth) noexcept;

    /// Of object @p handle, which is gone, nothing is polled any more.
    void drop(std::uint32_t handle) noexcept;

    /// Waits until each event that was got is acknowledged. Nobody gets new ones any more.
    void await_acknowledgements() noexcept;

private:
    friend class Channel;

    std::mutex lock_; ///< who reads the ring
    core::Evd core_;
    ibv_wc polled_{};
    std::atomic<bool> for_solicited_{false};
    // Under the channel's lock:
    bool armed_ = false;          ///< by the program; the module may have disarmed it meanwhile
    bool solicited_only_ = false; ///< that is what it was armed for
    unsigned untaken_ = 0;        ///< events from before it was armed last
    unsigned reported_ = 0;       ///< events that were got
};

/// Puts the functions of struct ibv_cq_ex into @p cq.
void set_poll_ops(Cq& cq) noexcept;

} // namespace dapx::verbs
