// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A second reader of segments, so that the engine is not measured by itself.
#pragma once

extern "C" {
#include "xrc/engine.h"
}

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <endian.h>

namespace dapx::xrc {

/// Where the request behind one that ends here begins.
constexpr std::size_t next_request(std::size_t end)
{
    return (end + DAPX_XRC_ALIGN - 1) / DAPX_XRC_ALIGN * DAPX_XRC_ALIGN;
}

/// Calls visit(header, data) for each request. @return what is wrong with the segment, else nullptr.
template <class Visit>
const char* each_request(const std::byte* bytes, std::size_t length, const Visit& visit)
{
    std::uint32_t seq = 0;
    std::size_t end = 0;
    for (std::size_t at = 0; at == 0 || end < length; at = next_request(end)) {
        dapx_xrc_request header{};
        if (at + sizeof(header) > length)
            return "half a header";
        if (!std::all_of(bytes + end, bytes + at, [](std::byte one) { return one == std::byte{}; }))
            return "something between two requests";
        std::memcpy(&header, bytes + at, sizeof(header));
        if (header.type != DAPX_XRC_REQUEST || header.opcode > DAPX_OP_FETCH_ADD)
            return "no request";
        if (le32toh(header.length) > length - at - sizeof(header))
            return "more data than there are";
        end = at + sizeof(header) + le32toh(header.length);
        if (dapx_xrc_returns_data(header.opcode) &&
            (at != 0 || end != length || header.length != 0))
            return "what returns data is not alone";
        if (at != 0 && le32toh(header.seq) != seq + 1)
            return "another number than the next";
        if ((header.demand != 0) != (at == 0))
            return "a demand belongs to the first request";
        if (at != 0 && (le16toh(header.flags) & DAPX_XRC_ASK))
            return "the first request asks";
        seq = le32toh(header.seq);
        visit(header, bytes + at + sizeof(header));
    }
    return nullptr;
}

} // namespace dapx::xrc
