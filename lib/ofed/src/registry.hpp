// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <mutex>
#include <new>
#include <unordered_set>

namespace dapx::verbs {

/// The living objects of a class: which of the pointers that programs give are this library's. Those
/// of librdmacm have no mark of their own by which they could be told.
///
/// Thread safety: any thread.
template <class Object> class Registry {
public:
    /// False: no memory.
    [[nodiscard]] bool insert(const Object& object) noexcept
    try {
        const std::lock_guard guard(lock_);
        objects_.insert(&object);
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }

    void erase(const Object& object) noexcept
    {
        const std::lock_guard guard(lock_);
        objects_.erase(&object);
    }

    [[nodiscard]] bool contains(const void* object) noexcept
    {
        const std::lock_guard guard(lock_);
        return objects_.contains(object);
    }

    /// One that @p is says yes to. nullptr: none.
    template <class Is> [[nodiscard]] Object* find_if(Is is) noexcept
    {
        const std::lock_guard guard(lock_);
        for (const void* object : objects_)
            if (auto* candidate = static_cast<Object*>(const_cast<void*>(object)); is(*candidate))
                return candidate;
        return nullptr;
    }

private:
    std::mutex lock_;
    std::unordered_set<const void*> objects_;
};

} // namespace dapx::verbs
