// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "lmr.hpp"

namespace dapx::dat {

/// A shared receive queue.
class Srq : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_SRQ;

    [[nodiscard]] static std::expected<std::unique_ptr<Srq>, DAT_RETURN>
    create(Pz& pz, const DAT_SRQ_ATTR& attr) noexcept;

    Srq(Slot& slot, Ia& ia, Pz& pz, core::Srq queue, const DAT_SRQ_ATTR& attr) noexcept
        : Object(slot, ia), pz_(&pz), queue_(std::move(queue)), number_(queue_.handle()),
          attr_(attr)
    {
    }

    /// The library's handle, by which events name it.
    [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
    [[nodiscard]] const Pz* pz() const noexcept { return pz_.get(); }
    [[nodiscard]] const core::Srq& queue() const noexcept { return queue_; }

    [[nodiscard]] DAT_RETURN post(std::span<const core::Segment> segments,
                                  DAT_DTO_COOKIE cookie) noexcept;
    [[nodiscard]] DAT_RETURN resize(DAT_COUNT depth) noexcept;
    [[nodiscard]] DAT_RETURN set_low_watermark(DAT_COUNT low) noexcept;
    void query(DAT_SRQ_PARAM& param) noexcept;

private:
    [[nodiscard]] DAT_RETURN release() noexcept override;

    Needed<Pz> pz_;
    core::Srq queue_;
    const std::uint32_t number_;
    std::mutex mutex_; ///< of posting, and of what was asked for
    DAT_SRQ_ATTR attr_;
};

} // namespace dapx::dat
