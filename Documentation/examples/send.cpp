// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Sends a message from one process to another:
//     dapx-example-send rxe1 10.0.0.2           waits for one on RDMA device rxe1's address
//     dapx-example-send rxe0 10.0.0.2 "hello"   sends one there through RDMA device rxe0
#include <dapx/dapx.hpp>

#include <cstdio>
#include <cstdlib>

template <class T> static T must(dapx::Result<T> result)
{
    if (!result)
        std::exit((std::fprintf(stderr, "send: %s\n", result.error().message().c_str()), 1));
    if constexpr (!std::is_void_v<T>)
        return std::move(*result);
}

static dapx::Event await(dapx::Evd& evd, dapx::EventType type)
{
    for (;;) {
        const dapx::Event event = must(evd.next(std::chrono::seconds(60)));
        if (event.type() == type && event.succeeded())
            return event;
        if (event.type() == type)
            std::exit((std::fprintf(stderr, "send: %s\n", event.describe().c_str()), 1));
    }
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
