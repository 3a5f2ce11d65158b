// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/object.hpp>

namespace dapx {

/// A protection domain: memory, endpoints and shared receive queues of one domain work together.
/// In DAT's terms a protection zone. Move-only; see Object for its end.
class DAPX_EXPORT Pd : public Object {
public:
    /// @param context   attached to a device.
    /// @param user_data given back by Context::query_object().
    /// Errors: EBADFD (not attached), EDQUOT, ENOMEM, EIO. Thread safety: any thread.
    /// Source: DAPX_PD_CREATE.
    [[nodiscard]] static Result<Pd> create(const Context& context,
                                           std::uint64_t user_data = 0) noexcept;

private:
    using Object::Object;
};

} // namespace dapx
