// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the functions of all object classes begin and end with.
#pragma once

#include "context.hpp"

#include <cerrno>
#include <new>

namespace dapx::verbs {

/// True for an object that is libibverbs' own. Of this library's, and for nullptr, it is false.
template <class Object> [[nodiscard]] bool is_foreign(const Object* object) noexcept
{
    return object != nullptr && Context::find(object->context) == nullptr;
}

/// What a create function returns. @p object: from new (std::nothrow).
template <class Object> [[nodiscard]] Object* made(Object* object) noexcept
{
    return object != nullptr ? object : failed_null<Object>(ENOMEM);
}

/// Of a call that frees something; what ended with its device is free. 0, or an errno: then nothing
/// has changed.
[[nodiscard]] inline int freed(const core::Result<void>& done) noexcept
{
    return done || done.error().code() == EIO ? 0 : done.error().code();
}

/// Frees what the module has of an object, likewise.
template <class Core> [[nodiscard]] int free_core(Core& core) noexcept
{
    return freed(core.free());
}

/// Frees what the module has of @p object, then @p object, which was made by new. 0, or an errno: then
/// nothing has changed.
template <class Object> [[nodiscard]] int destroy(Object* object) noexcept
{
    if (object == nullptr)
        return failed(EINVAL);
    if (const int error = free_core(object->core()))
        return failed(error);
    Context& owner = object->owner();
    delete object;
    owner.put();
    return 0;
}

/// The same for one whose asynchronous events have to be acknowledged.
template <class Object> [[nodiscard]] int end_and_delete(Object& object) noexcept
{
    if (const int error = object.end())
        return failed(error);
    object.await_acknowledgements();
    Context& owner = object.owner();
    delete &object;
    owner.put();
    return 0;
}

} // namespace dapx::verbs
