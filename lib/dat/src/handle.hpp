// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Handles. A DAT handle is the address of a Slot. Slots lie in memory that is never given back nor
// used for anything else, so that the first word, which the registry reads to find the provider,
// and the state behind it can be read for ever: a freed handle answers as such, to any thread. A
// slot rests for a long time before it is used again.
#pragma once

#include "dat.hpp"

// Its functions inline, as its licence lets free software have them.
#define _LGPL_SOURCE // NOLINT(bugprone-reserved-identifier): the library's
#include <urcu/urcu-bp.h>

#include <atomic>
#include <expected>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace dapx::dat {

class Ia;
class Object;

struct alignas(64) Slot {
    const DAT_PROVIDER* provider; ///< what the registry calls
    std::atomic<std::uint64_t> state;
    Object* object;
    DAT_HANDLE_TYPE type;
    Slot* next; ///< while it rests

    static constexpr std::uint64_t alive = 1;
    static constexpr std::uint64_t closing = 2; ///< somebody is about to free it
    static constexpr std::uint64_t user = 4;

    /// There is an object, and nobody is about to free it.
    [[nodiscard]] bool lives() const noexcept
    {
        return (state.load(std::memory_order_acquire) & (alive | closing)) == alive;
    }

    /// One user more, if there is an object that nobody is about to free.
    [[nodiscard]] bool enter() noexcept
    {
        std::uint64_t now = state.load(std::memory_order_acquire);
        do {
            if ((now & (alive | closing)) != alive)
                return false;
        } while (!state.compare_exchange_weak(now, now + user, std::memory_order_acq_rel,
                                              std::memory_order_acquire));
        return true;
    }
    void leave() noexcept { state.fetch_sub(user, std::memory_order_release); }

    /// A slot for a new object, not alive yet; nullptr if there is none.
    [[nodiscard]] static Slot* take(DAT_HANDLE_TYPE type, const DAT_PROVIDER& provider) noexcept;
    void give_back() noexcept;

    /// What events bring back.
    [[nodiscard]] std::uint64_t user_data() const noexcept
    {
        return reinterpret_cast<std::uintptr_t>(this);
    }

    /// @return nullptr if @p address, a handle or user_data(), was never one.
    [[nodiscard]] static Slot* of(std::uint64_t address) noexcept
    {
        const auto offset = address - reinterpret_cast<std::uintptr_t>(all);
        if (all == nullptr || offset >= capacity * sizeof(Slot) || offset % sizeof(Slot) != 0)
            return nullptr;
        return all + offset / sizeof(Slot);
    }

    static constexpr std::size_t capacity = std::size_t{1} << 20U;
    static Slot* all; ///< of the process, one behind the other
};

/// What a handle names.
class Object {
public:
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
    virtual ~Object() { slot_.give_back(); }

    [[nodiscard]] DAT_HANDLE handle() const noexcept { return &slot_; }
    [[nodiscard]] DAT_HANDLE_TYPE type() const noexcept { return slot_.type; }
    /// What it belongs to; an IA is its own.
    [[nodiscard]] Ia& ia() const noexcept { return ia_; }
    [[nodiscard]] std::uint64_t user_data() const noexcept { return slot_.user_data(); }

    /// True once somebody is about to free it: who waits on it has to go.
    [[nodiscard]] bool closing() const noexcept
    {
        return (slot_.state.load() & Slot::closing) != 0;
    }

    /// False if it is there only to be freed: no reason to keep an IA open.
    [[nodiscard]] virtual bool counts() const noexcept { return true; }

    /// Other objects that need this one.
    [[nodiscard]] int uses() const noexcept { return uses_.load(std::memory_order_acquire); }

    /// The consumer's own.
    std::atomic<DAT_UINT64> consumer_context{0};

protected:
    Object(Slot& slot, Ia& ia) noexcept : slot_(slot), ia_(ia) {}

private:
    friend class Use;
    friend std::expected<DAT_HANDLE, DAT_RETURN> publish(std::unique_ptr<Object> object) noexcept;
    friend DAT_RETURN destroy(Slot& slot) noexcept;

    /// Makes waiters leave; closing() is set.
    virtual void interrupt() noexcept {}
    /// Frees what is below; there are no other users. On an error nothing has changed.
    [[nodiscard]] virtual DAT_RETURN release() noexcept { return DAT_SUCCESS; }

    Slot& slot_;
    Ia& ia_;
    std::atomic<int> uses_{0};
};

/// Keeps an object from being freed by its consumer: an endpoint's share in its PZ, say.
class Use {
public:
    Use() = default;
    explicit Use(Object* object) noexcept : object_(object)
    {
        if (object_ != nullptr)
            object_->uses_.fetch_add(1, std::memory_order_acq_rel);
    }
    Use(Use&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Use& operator=(Use&& other) noexcept
    {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Use()
    {
        if (object_ != nullptr)
            object_->uses_.fetch_sub(1, std::memory_order_acq_rel);
    }

private:
    Object* object_ = nullptr;
};

/// The same for an object that is asked something, too.
template <class T> class Needed {
public:
    Needed() = default;
    explicit Needed(T* object) noexcept : use_(object), object_(object) {}

    explicit operator bool() const noexcept { return object_ != nullptr; }
    T* get() const noexcept { return object_; }
    T* operator->() const noexcept { return object_; }
    T& operator*() const noexcept { return *object_; }
    [[nodiscard]] DAT_HANDLE handle() const noexcept
    {
        return object_ == nullptr ? DAT_HANDLE_NULL : object_->handle();
    }

private:
    Use use_;
    T* object_ = nullptr;
};

/// A user of an object: while one exists, the object does.
template <class T> class Ref {
public:
    Ref() = default;

    /// Empty if @p handle is none of a T that lives.
    explicit Ref(DAT_HANDLE handle) noexcept : Ref(reinterpret_cast<std::uintptr_t>(handle)) {}

    /// The same for what an event brings back.
    explicit Ref(std::uint64_t user_data) noexcept
    {
        Slot* slot = Slot::of(user_data);
        if (slot == nullptr || !slot->enter())
            return;
        if constexpr (!std::is_same_v<T, Object>)
            if (slot->type != T::handle_type) {
                slot->leave();
                return;
            }
        slot_ = slot;
    }
    Ref(Ref&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
    Ref& operator=(Ref&& other) noexcept
    {
        std::swap(slot_, other.slot_);
        return *this;
    }
    ~Ref()
    {
        if (slot_ != nullptr)
            slot_->leave();
    }

    explicit operator bool() const noexcept { return slot_ != nullptr; }
    T* get() const noexcept { return slot_ == nullptr ? nullptr : static_cast<T*>(slot_->object); }
    T* operator->() const noexcept { return get(); }
    T& operator*() const noexcept { return *get(); }

    /// For destroy(), which ends the use.
    [[nodiscard]] Slot& hand_over() noexcept { return *std::exchange(slot_, nullptr); }

private:
    Slot* slot_ = nullptr;
};

/// A glance at an object, by loads alone: it stays as long as this does, if its release() waits for
/// glances. No more than a look: nothing here may wait.
template <class T> class Glance {
public:
    explicit Glance(DAT_HANDLE handle) noexcept
    {
        urcu_bp_read_lock();
        const Slot* slot = Slot::of(reinterpret_cast<std::uintptr_t>(handle));
        if (slot != nullptr && slot->lives() && slot->type == T::handle_type)
            object_ = static_cast<const T*>(slot->object);
    }
    Glance(const Glance&) = delete;
    Glance& operator=(const Glance&) = delete;
    ~Glance() { urcu_bp_read_unlock(); }

    explicit operator bool() const noexcept { return object_ != nullptr; }
    const T* operator->() const noexcept { return object_; }

    /// Until all those are over that began before.
    static void wait() noexcept { urcu_bp_synchronize_rcu(); }

private:
    const T* object_ = nullptr;
};

/// A new T, not known to anybody yet. @p slot comes back at its end, or if there is no memory for
/// it: then nullptr, as without a @p slot.
template <class T, class... Args>
[[nodiscard]] std::unique_ptr<T> make_at(Slot* slot, Args&&... args) noexcept
try {
    if (slot == nullptr)
        return nullptr;
    std::unique_ptr<T> made(new (std::nothrow) T(*slot, std::forward<Args>(args)...));
    if (made == nullptr)
        slot->give_back();
    return made;
} catch (const std::bad_alloc&) { // of a member: the object had the slot
    return nullptr;
}

/// What a call returns that finds no memory.
[[nodiscard]] inline DAT_RETURN no_memory() noexcept
{
    return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
}

/// Gives a new object to its IA, which frees it at its end. On an error, as when the IA is being
/// closed, the object is gone.
[[nodiscard]] std::expected<DAT_HANDLE, DAT_RETURN>
publish(std::unique_ptr<Object> object) noexcept;

/// The same, and its handle to the consumer.
[[nodiscard]] DAT_RETURN hand_out(std::unique_ptr<Object> object, DAT_HANDLE& handle) noexcept;

/// Frees an object of which the caller is a user, and no longer afterwards: waiters and other users
/// leave first. DAT_INVALID_STATE: other objects need it, and nothing has changed.
/// DAT_INVALID_HANDLE: somebody else frees it.
[[nodiscard]] DAT_RETURN destroy(Slot& slot) noexcept;

/// dat_*_free. @p invalid, @p in_use: subtypes.
template <class T>
[[nodiscard]] DAT_RETURN free_handle(DAT_HANDLE handle, DAT_RETURN_SUBTYPE invalid,
                                     DAT_RETURN_SUBTYPE in_use) noexcept
{
    Ref<T> object(handle);
    const DAT_RETURN result =
        object ? destroy(object.hand_over()) : error(DAT_INVALID_HANDLE, invalid);
    switch (DAT_GET_TYPE(result)) {
    case DAT_INVALID_HANDLE:
        return error(DAT_INVALID_HANDLE, invalid);
    case DAT_INVALID_STATE:
        return error(DAT_INVALID_STATE, in_use);
    default:
        return result;
    }
}

} // namespace dapx::dat
