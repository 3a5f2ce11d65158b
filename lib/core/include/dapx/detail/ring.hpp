// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The two ends of a ring that is shared with the module, and every memory barrier of the library.
// Layout and protocol: "DOC: Rings" in <dapx/dapx.h>. The module's end is the mirror image of what
// stands here, so each barrier names its partner.
#pragma once

#include <dapx/dapx.h>
#include <dapx/detail/owner.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dapx::detail {

namespace barrier {

/// Reads an index that the other side moves. Acquire: what the other side wrote before it moved
/// the index (an event's bytes; the end of its use of an entry) is seen by what follows.
inline std::uint32_t load_acquire(const std::uint32_t* p) noexcept
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/// Moves an index that the other side reads. Release: all reads and writes of entries before it
/// are done when the other side sees the index.
inline void store_release(std::uint32_t* p, std::uint32_t value) noexcept
{
    __atomic_store_n(p, value, __ATOMIC_RELEASE);
}

/// Reads a word whose order with others does not matter, or is made by full().
inline std::uint32_t load_relaxed(const std::uint32_t* p) noexcept
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/// Writes such a word.
inline void store_relaxed(std::uint32_t* p, std::uint32_t value) noexcept
{
    __atomic_store_n(p, value, __ATOMIC_RELAXED);
}

/// The same for a count, which one thread writes.
inline void store_relaxed(std::uint64_t* p, std::uint64_t value) noexcept
{
    __atomic_store_n(p, value, __ATOMIC_RELAXED);
}

/// Counts what other threads may ask for at any time: one thread adds, any reads.
inline void count(std::uint64_t* p) noexcept
{
    __atomic_store_n(p, __atomic_load_n(p, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/// What count() has counted.
inline std::uint64_t counted(const std::uint64_t* p) noexcept
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/// Store-load barrier: a store before it is visible before a load behind it is done. The only one
/// that x86 needs an instruction for.
inline void full() noexcept
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

} // namespace barrier

/// A ring that this process fills: requests, or receives. A view: owns no memory.
///
/// Entries are claimed and staged one at a time, and published together. One thread at a time.
/// In a forked child it is full and dead, and its memory is not touched.
/// Source: "DOC: Rings" in <dapx/dapx.h>.
class WorkRing {
public:
    WorkRing() = default;

    /// @param base   start of the mapping that @p layout describes; must outlive this object.
    /// @param layout from a create command, checked by the caller to lie within the mapping.
    /// @param owner  whose mapping it is.
    WorkRing(std::byte* base, const dapx_ring_layout& layout, Owner owner = {}) noexcept
        : owner_(owner), head_(reinterpret_cast<const std::uint32_t*>(base + layout.head_off)),
          tail_(reinterpret_cast<std::uint32_t*>(base + layout.tail_off)),
          flags_(reinterpret_cast<const std::uint32_t*>(base + layout.flags_off)),
          entries_(base + layout.entries_off), stride_(layout.stride), depth_(layout.depth)
    {
        resync();
    }

    /// Entries of the ring; 0 if there is none.
    [[nodiscard]] std::uint32_t depth() const noexcept { return depth_; }

    /// Bytes of an entry, header included.
    [[nodiscard]] std::uint32_t stride() const noexcept { return stride_; }

    /// The next free entry, or nullptr if the ring is full (or its indices are impossible).
    /// Claiming twice without stage() gives the same entry.
    [[nodiscard]] std::byte* claim() noexcept
    {
        if (!owner_.here()) [[unlikely]]
            return nullptr;
        if (next_ - head_seen_ >= depth_) {
            if (depth_ == 0)
                return nullptr;
            // Acquire: the module's copy of the entry that gets free is complete.
            head_seen_ = barrier::load_acquire(head_);
            // An impossible head (difference above the depth) reads as full.
            if (next_ - head_seen_ >= depth_)
                return nullptr;
        }
        return entries_ + static_cast<std::size_t>(next_ & (depth_ - 1)) * stride_;
    }

    /// Takes the claimed entry, written, as the next in order. The module does not see it yet.
    void stage() noexcept
    {
        ++next_;
        barrier::count(&staged_total_);
    }

    /// Shows the module all staged entries.
    /// @return true if it must be told by DAPX_DOORBELL, false if it looks by itself.
    [[nodiscard]] bool publish() noexcept
    {
        if (next_ == published_)
            return false;
        if (!owner_.here()) [[unlikely]]
            return true; // The doorbell answers EPERM.
        published_ = next_;
        // Release: whoever sees the tail sees the entries. Partner: the module's acquire of tail.
        barrier::store_release(tail_, next_);
        // Full: the tail must be visible before BUSY is read. Partner: the module clears BUSY,
        // full barrier, reads the tail once more. So either it sees the new tail, or this reads
        // BUSY as cleared and rings; without the barrier both could miss the other's store, and
        // the work would lie there for ever.
        barrier::full();
        if ((barrier::load_relaxed(flags_) & (DAPX_RING_BUSY | DAPX_RING_DEAD)) == DAPX_RING_BUSY)
            return false;
        barrier::count(&doorbells_);
        return true;
    }

    /// True if entries are staged that publish() has not shown.
    [[nodiscard]] bool has_staged() const noexcept { return next_ != published_; }

    /// Entries that the module has not taken yet, staged ones included. A snapshot.
    [[nodiscard]] std::uint32_t pending() const noexcept
    {
        return owner_.here() ? next_ - barrier::load_acquire(head_) : 0;
    }

    /// Entries that can be staged now; more if the module takes some meanwhile.
    [[nodiscard]] std::uint32_t room() const noexcept
    {
        if (!owner_.here())
            return 0;
        const std::uint32_t used = pending();
        return used < depth_ ? depth_ - used : 0;
    }

    /// True if nobody looks at this ring any more.
    [[nodiscard]] bool dead() const noexcept
    {
        return !owner_.here() || (barrier::load_relaxed(flags_) & DAPX_RING_DEAD) != 0;
    }

    /// Takes over the indices in the ring, after the module changed both (DAPX_EP_RESET). Staged
    /// entries are forgotten.
    void resync() noexcept
    {
        head_seen_ = barrier::load_acquire(head_);
        next_ = barrier::load_relaxed(tail_);
        published_ = next_;
    }

    /// Goes on with the counts of @p before, which this ring replaces.
    void count_on(const WorkRing& before) noexcept
    {
        barrier::store_relaxed(&doorbells_, before.doorbells());
        barrier::store_relaxed(&staged_total_, before.posted());
    }

    /// Times that publish() asked for a doorbell, since the ring was made. Any thread.
    [[nodiscard]] std::uint64_t doorbells() const noexcept { return barrier::counted(&doorbells_); }

    /// Entries staged since the ring was made. Any thread.
    [[nodiscard]] std::uint64_t posted() const noexcept { return barrier::counted(&staged_total_); }

private:
    Owner owner_;
    const std::uint32_t* head_ = nullptr;
    std::uint32_t* tail_ = nullptr;
    const std::uint32_t* flags_ = nullptr;
    std::byte* entries_ = nullptr;
    std::uint32_t stride_ = 0;
    std::uint32_t depth_ = 0;
    std::uint32_t next_ = 0;
    std::uint32_t published_ = 0;
    std::uint32_t head_seen_ = 0;
    std::uint64_t doorbells_ = 0;
    std::uint64_t staged_total_ = 0;
};

/// A ring that this process empties: events. A view: owns no memory.
///
/// One thread at a time. In a forked child it is empty and dead, and its memory is not touched.
/// Source: "DOC: Rings" in <dapx/dapx.h>.
class EventRing {
public:
    EventRing() = default;

    /// As WorkRing's. Reads on where the ring's head is.
    EventRing(std::byte* base, const dapx_ring_layout& layout, Owner owner = {}) noexcept
        : owner_(owner), head_(reinterpret_cast<std::uint32_t*>(base + layout.head_off)),
          tail_(reinterpret_cast<const std::uint32_t*>(base + layout.tail_off)),
          flags_(reinterpret_cast<const std::uint32_t*>(base + layout.flags_off)),
          armed_(layout.arm_off == 0 ? nullptr
                                     : reinterpret_cast<std::uint32_t*>(base + layout.arm_off)),
          entries_(base + layout.entries_off), stride_(layout.stride), depth_(layout.depth),
          next_(barrier::load_relaxed(head_)), tail_seen_(next_), ordered_(next_)
    {
    }

    /// Entries of the ring.
    [[nodiscard]] std::uint32_t depth() const noexcept { return depth_; }

    /// The oldest event, or nullptr if there is none. It stays there until pop().
    [[nodiscard]] const std::byte* front() noexcept
    {
        if (!owner_.here()) [[unlikely]]
            return nullptr;
        if (next_ == tail_seen_) {
            // Acquire: the event's bytes are written. Partner: the module's release of tail.
            const std::uint32_t tail = barrier::load_acquire(tail_);
            // More than the depth: somebody overwrote the index. The module marks the ring DEAD
            // when it looks; nothing in it can be trusted.
            if (tail - next_ > depth_)
                return nullptr;
            tail_seen_ = tail;
            if (next_ == tail)
                return nullptr;
        }
        return entry(next_);
    }

    /// Gives the entry of front() back.
    void pop() noexcept
    {
        barrier::store_relaxed(&next_, next_ + 1);
        // Release: the event was read before its entry is free. Partner: the module's acquire of
        // head before it writes a new event there.
        barrier::store_release(head_, next_);
    }

    /// Takes out the events that can be read now and for which @p is_dropped (entry) says so; the order
    /// of the others stays.
    template <class Predicate> void drop_if(Predicate is_dropped) noexcept
    {
        if (!owner_.here())
            return;
        const std::uint32_t tail = barrier::load_acquire(tail_);
        if (tail - next_ > depth_)
            return;
        tail_seen_ = tail;
        // Those that stay move up, the last one first. Entries of events are this side's until pop().
        std::uint32_t to = tail;
        for (std::uint32_t from = tail; from != next_;) {
            const std::byte* event = entry(--from);
            if (!is_dropped(event) && --to != from)
                std::memcpy(entry(to), event, stride_);
        }
        while (next_ != to)
            pop();
    }

    /// Forgets what can be read, without a word to the module: it is in another ring by now.
    void abandon() noexcept { next_ = tail_seen_ = ordered_ = barrier::load_relaxed(tail_); }

    /// For an empty ring: true if events wait in the module, to be asked for by DAPX_DOORBELL.
    [[nodiscard]] bool backlog() noexcept
    {
        if (!owner_.here()) [[unlikely]]
            return false;
        if (ordered_ != next_) {
            // Full: the head must be visible before BACKLOG is read. Partner: the module sets
            // BACKLOG, full barrier, reads the head once more. Once for each head is enough: it
            // is between moving the head and going to sleep that the flag must not be missed.
            barrier::full();
            // Release: who sees it in quiet() reads BACKLOG behind that barrier.
            barrier::store_release(&ordered_, next_);
        }
        return backlog_hint();
    }

    /// The same without the barrier: may miss a flag that was set just now. For calls on the way,
    /// while there are more events to read.
    [[nodiscard]] bool backlog_hint() const noexcept
    {
        return (barrier::load_relaxed(flags_) & (DAPX_RING_BACKLOG | DAPX_RING_DEAD)) ==
               DAPX_RING_BACKLOG;
    }

    /// True if front() would say nullptr and backlog() false, by nothing but loads. Any thread, beside
    /// the one that consumes. False when in doubt: so after each pop(), until backlog() was asked,
    /// and in a forked child.
    [[nodiscard]] bool quiet() const noexcept
    {
        if (!owner_.here()) [[unlikely]]
            return false;
        const std::uint32_t next = barrier::load_acquire(&ordered_);
        // In this order: what another thread takes meanwhile makes the indices differ.
        return barrier::load_acquire(tail_) == next && barrier::load_relaxed(&next_) == next &&
               !backlog_hint();
    }

    /// Asks for a signal by the next event that @p what (enum dapx_arm) includes. Who then finds the
    /// ring empty, and no BACKLOG, will be signalled. True if there is BACKLOG. Without effect on a
    /// ring of a module that has no such signals, and in a forked child.
    bool arm(std::uint32_t what = DAPX_ARM_ANY) noexcept
    {
        if (armed_ == nullptr || !owner_.here())
            return false;
        barrier::store_relaxed(armed_, what);
        // Full: armed must be visible before the ring is looked at. Partner: the module shows an
        // event, full barrier, reads armed.
        barrier::full();
        return backlog_hint();
    }

    /// True if arm() was called, and no event has signalled since.
    [[nodiscard]] bool armed() const noexcept
    {
        return armed_ != nullptr && owner_.here() && barrier::load_relaxed(armed_) != 0;
    }

    /// True after every half ring of pop()s.
    [[nodiscard]] bool at_half() const noexcept { return (next_ & (depth_ / 2 - 1)) == 0; }

    /// Events that can be read now. A snapshot; 0 if the indices are impossible.
    [[nodiscard]] std::uint32_t available() const noexcept
    {
        if (!owner_.here())
            return 0;
        const std::uint32_t count = barrier::load_acquire(tail_) - next_;
        return count > depth_ ? 0 : count;
    }

    /// True if the indices are impossible: somebody overwrote them.
    [[nodiscard]] bool corrupted() const noexcept
    {
        return owner_.here() && barrier::load_acquire(tail_) - next_ > depth_;
    }

    /// True if nobody puts anything into this ring any more: what front() does not
    /// find after this, never comes.
    [[nodiscard]] bool dead() const noexcept
    {
        // Acquire: the last event is seen by what follows. Partner: the module, which marks the
        // ring after it moved the tail.
        return !owner_.here() || (barrier::load_acquire(flags_) & DAPX_RING_DEAD) != 0;
    }

private:
    [[nodiscard]] std::byte* entry(std::uint32_t index) const noexcept
    {
        return entries_ + static_cast<std::size_t>(index & (depth_ - 1)) * stride_;
    }

    Owner owner_;
    std::uint32_t* head_ = nullptr;
    const std::uint32_t* tail_ = nullptr;
    const std::uint32_t* flags_ = nullptr;
    std::uint32_t* armed_ = nullptr;
    std::byte* entries_ = nullptr;
    std::uint32_t stride_ = 0;
    std::uint32_t depth_ = 0;
    std::uint32_t next_ = 0;
    std::uint32_t tail_seen_ = 0;
    std::uint32_t ordered_ = 0;
};

} // namespace dapx::detail
