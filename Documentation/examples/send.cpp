// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Sends a message from one process to another:
//     dapx-example-send rxe1 10.0.0.2           waits for one on RDMA device rxe1's address
//     dapx-example-send rxe0 10.0.0.2 "hello"   sends one there through RDMA device rxe0
#include <dapx/dapx.hpp>
#include <dapx/must.hpp>

#include <cstdio>

static dapx::Event await(dapx::Evd& evd, dapx::EventType type)
{
    return must_succeed(evd.next_of(type, dapx::deadline_after(std::chrono::seconds(60))));
}

int main(int argc, char** argv)
{
    if (argc < 3)
        return std::puts("usage: dapx-example-send DEVICE ADDRESS [MESSAGE]"), 2;
    const dapx::Address address = must(dapx::Address::parse(argv[2], 7700));
    const dapx::Pd pd = must(dapx::Pd::create(must(dapx::Context::open(argv[1]))));
    dapx::Evd evd = must(dapx::Evd::create(pd.context()));
    char text[64] = {};
    auto region = must(dapx::MemoryRegion::create(pd, std::span(text), dapx::Access::local_write));
    dapx::Endpoint endpoint = must(dapx::Endpoint::create(pd, evd));

    if (argc == 3) { // A place for the message first, then the connection over which it comes.
        (void)endpoint.post_recv(1, region.segment(0, sizeof(text)));
        dapx::CmId listener = must(dapx::CmId::create(evd));
        must(listener.bind(address));
        must(listener.listen());
        const dapx::Event request = await(evd, dapx::EventType::connect_request);
        must(endpoint.accept(must(dapx::CmId::request(listener, request))));
        const dapx::Event message = await(evd, dapx::EventType::completion);
        std::printf("%.*s\n", static_cast<int>(message.byte_len()), text);
        while (endpoint.state() == dapx::EpState::connected) // The sender hangs up.
            (void)evd.next(std::chrono::seconds(1));
    } else {
        const auto length = std::string(argv[3]).copy(text, sizeof(text));
        must(endpoint.connect(address, {must(dapx::Address::source_for(argv[1], address))}));
        await(evd, dapx::EventType::connection);
        (void)endpoint.post_send(1, region.segment(0, static_cast<std::uint32_t>(length)));
        await(evd, dapx::EventType::completion);
    }
}
