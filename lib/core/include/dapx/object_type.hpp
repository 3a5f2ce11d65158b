// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/dapx.h>

#include <cstdint>

namespace dapx {

/// Classes of objects. Source: enum dapx_object_type.
enum class ObjectType : std::uint32_t {
    any = DAPX_OBJECT_ANY,
    pd = DAPX_OBJECT_PD,
    mr = DAPX_OBJECT_MR,
    evd = DAPX_OBJECT_EVD,
    srq = DAPX_OBJECT_SRQ,
    ep = DAPX_OBJECT_EP,
    cm = DAPX_OBJECT_CM,
    rmr = DAPX_OBJECT_RMR,
    xrcd = DAPX_OBJECT_XRCD,
    xrc_qp = DAPX_OBJECT_XRC_QP,
};

} // namespace dapx
