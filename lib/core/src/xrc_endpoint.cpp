// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/xrc_endpoint.hpp>

#include <dapx/evd.hpp>
#include <dapx/pd.hpp>
#include <dapx/xrc_domain.hpp>

namespace dapx {

Result<XrcEndpoint> XrcEndpoint::create(const Pd& pd, const Evds& evds,
                                        const EndpointOptions& options,
                                        const XrcDomain* domain) noexcept
{
    EndpointOptions sizes = options;
    sizes.recv_depth = 0;
    sizes.max_recv_sge = 0;
    const Evds sending = {.request = evds.request, .connect = evds.connect, .async = evds.async};
    const auto made = issue_create(pd, sending, sizes, DAPX_EP_XRC, nullptr, domain);
    if (!made)
        return std::unexpected(made.error());
    XrcEndpoint endpoint(device_of(pd.context()), made->out_ep, made->out_qp_num, true);
    if (auto done =
            endpoint.map(made->out_send_ring, made->out_recv_ring, made->out_state_off, sizes);
        !done)
        return std::unexpected(std::move(done).error());
    return endpoint;
}

} // namespace dapx
