// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "handle.hpp"

#include "ia.hpp"

#include <chrono>
#include <mutex>
#include <thread>

#include <pthread.h>
#include <sys/mman.h>

namespace dapx::dat {

namespace {

/// All slots of the process: address space, of which only what is used becomes memory.
class SlotRegion {
public:
    static SlotRegion& instance() noexcept
    {
        static SlotRegion region;
        return region;
    }

    Slot* take() noexcept
    {
        const std::lock_guard lock(mutex_);
        if (resting_ > rest || (first_ != nullptr && used_ == Slot::capacity)) {
            Slot* slot = first_;
            first_ = slot->next;
            --resting_;
            return slot;
        }
        return Slot::all != nullptr && used_ < Slot::capacity ? Slot::all + used_++ : nullptr;
    }

    void give_back(Slot* slot) noexcept
    {
        const std::lock_guard lock(mutex_);
        slot->next = nullptr;
        (resting_++ == 0 ? first_ : last_->next) = slot;
        last_ = slot;
    }

private:
    /// Others that are freed before a slot is used again.
    static constexpr std::size_t rest = 65536;

    SlotRegion() noexcept
    {
        void* at = mmap(nullptr, Slot::capacity * sizeof(Slot), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at != MAP_FAILED)
            Slot::all = static_cast<Slot*>(at);
        // A child has none of the threads whose glances it might wait for.
        pthread_atfork(urcu_bp_before_fork, urcu_bp_after_fork_parent, urcu_bp_after_fork_child);
    }

    std::mutex mutex_;
    std::size_t used_ = 0;
    Slot* first_ = nullptr;
    Slot* last_ = nullptr;
    std::size_t resting_ = 0;
};

// Handles may be used by what runs at the program's end.
static_assert(std::is_trivially_destructible_v<SlotRegion>);

} // namespace

constinit Slot* Slot::all = nullptr;

Slot* Slot::take(DAT_HANDLE_TYPE type, const DAT_PROVIDER& provider) noexcept
{
    Slot* slot = SlotRegion::instance().take();
    if (slot != nullptr) {
        slot->provider = &provider;
        slot->type = type;
    }
    return slot;
}

void Slot::give_back() noexcept
{
    SlotRegion::instance().give_back(this);
}

std::expected<DAT_HANDLE, DAT_RETURN> publish(std::unique_ptr<Object> object) noexcept
{
    Slot& slot = object->slot_;
    slot.object = object.get();
    if (object.get() != &object->ia())
        if (const DAT_RETURN failed = object->ia().add(*object))
            return std::unexpected(failed);
    (void)object.release();
    slot.state.store(Slot::alive, std::memory_order_release);
    return &slot;
}

DAT_RETURN hand_out(std::unique_ptr<Object> object, DAT_HANDLE& handle) noexcept
{
    const auto published = publish(std::move(object));
    if (!published)
        return published.error();
    handle = *published;
    return DAT_SUCCESS;
}

DAT_RETURN destroy(Slot& slot) noexcept
{
    std::uint64_t now = slot.state.load(std::memory_order_acquire);
    do {
        if ((now & Slot::closing) != 0) {
            slot.leave();
            return error(DAT_INVALID_HANDLE);
        }
    } while (!slot.state.compare_exchange_weak(now, now | Slot::closing));
    Object* object = slot.object;
    DAT_RETURN result = error(DAT_INVALID_STATE);
    if (object->uses() == 0) {
        object->interrupt();
        // Calls that are under way: soon over, as nobody waits any more.
        while (slot.state.load(std::memory_order_acquire) / Slot::user > 1)
            std::this_thread::sleep_for(std::chrono::microseconds(20));
        // One of them may have made something that needs it.
        if (object->uses() == 0)
            result = object->release();
    }
    if (result != DAT_SUCCESS) {
        slot.state.fetch_and(~Slot::closing, std::memory_order_acq_rel);
        slot.leave();
        return result;
    }
    slot.state.store(0, std::memory_order_release);
    if (object != &object->ia())
        object->ia().remove(*object);
    delete object;
    return DAT_SUCCESS;
}

} // namespace dapx::dat
