// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/context.hpp>
#include <dapx/error.hpp>
#include <dapx/object_type.hpp>

#include <cstdint>
#include <utility>

namespace dapx {

/// An object of a context: its handle, and a share in the open file. What all classes have.
///
/// Move-only. The destructor frees the object and ignores errors: what is still in use then
/// (EBUSY) lives on without a name until the context is closed, so destroy users first; members
/// declared in the order PD, MR, EVD, endpoint are destroyed in the right one. In a forked child
/// it frees nothing: the object is the parent's.
class DAPX_EXPORT Object {
public:
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;

    /// The number by which commands, segments and events name it; 0 if freed or moved from.
    [[nodiscard]] std::uint32_t handle() const noexcept { return handle_; }

    /// True if it names an object.
    explicit operator bool() const noexcept { return handle_ != 0; }

    /// The context it was made in. Undefined after it was moved from or freed.
    [[nodiscard]] Context context() const noexcept { return Context(device_); }

    /// Whether both were made in one context, as objects of one call have to be (else EINVAL).
    /// True of one that was moved from.
    [[nodiscard]] bool shares_context(const Object& other) const noexcept
    {
        return device_ == other.device_ || device_ == nullptr || other.device_ == nullptr;
    }

    /// Frees the object. On error nothing changed and the object is as valid as before.
    /// Errors: EBUSY (in use by another object), EINTR (CM ids with unacknowledged events),
    /// EBADFD (endpoints in some states), EIO (device removed).
    /// Thread safety: no other call on this object at the same time. Source: DAPX_FREE.
    [[nodiscard]] Result<void> free() noexcept;

protected:
    Object() = default;
    Object(std::shared_ptr<const detail::Device> device, ObjectType type,
           std::uint32_t handle) noexcept
        : device_(std::move(device)), type_(type), handle_(handle)
    {
    }
    Object(Object&& other) noexcept
        : device_(std::move(other.device_)), type_(other.type_),
          handle_(std::exchange(other.handle_, 0))
    {
    }
    Object& operator=(Object&& other) noexcept
    {
        if (this != &other) {
            dispose();
            device_ = std::move(other.device_);
            type_ = other.type_;
            handle_ = std::exchange(other.handle_, 0);
        }
        return *this;
    }
    ~Object() { dispose(); }

    /// Forgets the object, whose handle the module has taken back.
    void forget() noexcept { handle_ = 0; }

    /// Frees without waiting, a CM id with the events that nobody acknowledged. @return 0, or an errno: then it is as before.
    [[nodiscard]] int try_free() noexcept;

    /// What a new object of @p context has a share in.
    [[nodiscard]] static const std::shared_ptr<const detail::Device>&
    device_of(const Context& context) noexcept
    {
        return context.device_;
    }
    [[nodiscard]] const std::shared_ptr<const detail::Device>& device() const noexcept
    {
        return device_;
    }
    [[nodiscard]] int fd() const noexcept;

    /// True if there is an object, and it is this process', not that of a parent.
    [[nodiscard]] bool owned_here() const noexcept;

private:
    void dispose() noexcept;

    std::shared_ptr<const detail::Device> device_;
    ObjectType type_ = ObjectType::any;
    std::uint32_t handle_ = 0;
};

} // namespace dapx
