// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "common.hpp"

#include <dapx/endpoint.hpp>
#include <dapx/xrc_endpoint.hpp>

#include <variant>

namespace tools {

/// The endpoint of a client: of a reliable connection, or of XRC. As a pointer, to what both have.
class ClientEndpoint {
public:
    ClientEndpoint(const dapx::Pd& pd, const dapx::Evd& evd, const dapx::EndpointOptions& options,
                   bool xrc)
        : either_(xrc ? Either(must(dapx::XrcEndpoint::create(pd, evd, options)))
                      : Either(must(dapx::Endpoint::create(pd, evd, options))))
    {
    }

    const dapx::EndpointBase& operator*() const
    {
        return *std::visit([](const auto& both) -> const dapx::EndpointBase* { return &both; },
                           either_);
    }
    dapx::EndpointBase& operator*()
    {
        return std::visit([](dapx::EndpointBase& both) -> dapx::EndpointBase& { return both; },
                          either_);
    }
    const dapx::EndpointBase* operator->() const { return &**this; }
    dapx::EndpointBase* operator->() { return &**this; }

    /// The one that has receives; not of XRC.
    dapx::Endpoint& rc() { return std::get<dapx::Endpoint>(either_); }

    /// XRC: the server's queue that requests go to from now on.
    void set_srq(std::uint32_t number) { srq_ = number; }

    /// Calls @p post with what has post_send() and the others.
    template <class Post> dapx::PostResult post(const Post& post)
    {
        if (auto* endpoint = std::get_if<dapx::Endpoint>(&either_))
            return post(*endpoint);
        dapx::SrqTarget target = std::get<dapx::XrcEndpoint>(either_).to(srq_);
        return post(target);
    }

private:
    using Either = std::variant<dapx::Endpoint, dapx::XrcEndpoint>;

    Either either_;
    std::uint32_t srq_ = 0;
};

} // namespace tools
