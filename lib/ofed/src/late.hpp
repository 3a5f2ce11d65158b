// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <optional>
#include <utility>

namespace dapx::verbs {

/// A member that is made after its object, which is not used before: init() of that object sets it, or
/// fails. So nobody asks whether it is there.
template <class T> class Late {
public:
    Late& operator=(T value) noexcept
    {
        value_ = std::move(value);
        return *this;
    }
    void reset() noexcept { value_.reset(); }

    // NOLINTBEGIN(bugprone-unchecked-optional-access): as above
    T& operator*() noexcept { return *value_; }
    const T& operator*() const noexcept { return *value_; }
    T* operator->() noexcept { return &*value_; }
    const T* operator->() const noexcept { return &*value_; }
    // NOLINTEND(bugprone-unchecked-optional-access)

private:
    std::optional<T> value_;
};

} // namespace dapx::verbs
