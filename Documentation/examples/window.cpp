// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Lends memory to a peer, and takes it back while the peer is writing:
//     dapx-example-window rxe1 10.0.0.2 lend    on RDMA device rxe1's address, to the first who comes
//     dapx-example-window rxe0 10.0.0.2 write   writes there through RDMA device rxe0 until refused
#include <dapx/dapx.hpp>
#include <dapx/must.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static dapx::Event await(dapx::Evd& evd, dapx::EventType type)
{
    return must_succeed(evd.next_of(type, dapx::deadline_after(60s)));
}

// What the lender tells the writer. The machine's byte order: both are the same program.
struct Invitation {
    dapx::RemoteAddress where;
    std::uint32_t length;
};

static constexpr std::size_t window_length = std::size_t{1} << 20;
static constexpr std::uint32_t piece = 64 * 1024;

static void lend(const dapx::Pd& pd, dapx::Evd& evd, const dapx::Address& address)
{
    // A window in the middle of the memory, which as a whole is not for the peer.
    std::vector<unsigned char> memory(2 * window_length, 0xee);
    const auto region = must(dapx::MemoryRegion::create(
        pd, std::span(memory), dapx::Access::local_write | dapx::Access::remote_write));
    const std::span window = std::span(memory).subspan(4711, window_length);
    dapx::Endpoint endpoint = must(dapx::Endpoint::create(pd, evd, {.max_inline = 64}));
    dapx::CmId listener = must(dapx::CmId::create(evd));
    must(listener.bind(address));
    must(listener.listen());
    const dapx::Event request = await(evd, dapx::EventType::connect_request);
    must(endpoint.accept(must(dapx::CmId::request(listener, request))));
    await(evd, dapx::EventType::connection);

    dapx::Rmr rmr = must(dapx::Rmr::create(pd));
    const Invitation invitation{.where = must(rmr.bind(endpoint, 1, region, 4711, window_length,
                                                       dapx::Access::remote_write)),
                                .length = window_length};
    await(evd, dapx::EventType::completion);
    std::printf("lender: bound %zu bytes, key 0x%x\n", window_length, invitation.where.rkey);
    (void)endpoint.post_send_inline(2, std::as_bytes(std::span(&invitation, 1)));

    std::this_thread::sleep_for(1s);
    const auto start = dapx::Clock::now();
    must(rmr.free());
    const auto took = dapx::Clock::now() - start;
    const auto written = std::ranges::count_if(window, [](auto c) { return c != 0xee; });
    std::ranges::fill(window, 0xee);
    std::printf("lender: freed in %lld us; the peer had written to %lld bytes\n",
                static_cast<long long>(took / 1us), static_cast<long long>(written));

    // It goes on writing until it hears of it.
    std::this_thread::sleep_for(1s);
    const auto late = std::ranges::count_if(memory, [](auto c) { return c != 0xee; });
    std::printf("lender: %lld bytes changed after that\n", static_cast<long long>(late));
    if (written == 0 || late != 0)
        std::exit(1);
}

static void write(const dapx::Pd& pd, dapx::Evd& evd, const char* device,
                  const dapx::Address& address)
{
    std::vector<unsigned char> data(piece, 0x11);
    const auto source =
        must(dapx::MemoryRegion::create(pd, std::span(data), dapx::Access::local_read));
    Invitation invitation{};
    const auto inbox = must(
        dapx::MemoryRegion::create(pd, &invitation, sizeof(invitation), dapx::Access::local_write));
    dapx::Endpoint endpoint = must(dapx::Endpoint::create(pd, evd));
    (void)endpoint.post_recv(0, inbox.segment(0, sizeof(invitation)));
    must(endpoint.connect(address, {must(dapx::Address::source_for(device, address))}));
    await(evd, dapx::EventType::connection);
    await(evd, dapx::EventType::completion);

    for (std::uint64_t done = 0;; ++done) {
        const std::uint64_t offset = done * piece % invitation.length;
        (void)endpoint.post_write(
            done, source.segment(0, piece),
            {.addr = invitation.where.addr + offset, .rkey = invitation.where.rkey});
        for (;;) {
            const dapx::Event event = must(evd.next(60s));
            if (event.is_completion() && event.status() == dapx::Status::success)
                break;
            std::printf("writer: %llu writes of %u bytes, then: %s\n",
                        static_cast<unsigned long long>(done), piece, event.describe().c_str());
            std::exit(event.is_completion() && event.status() == dapx::Status::remote_access ? 0
                                                                                             : 1);
        }
    }
}

int main(int argc, char** argv)
{
    const std::string role = argc == 4 ? argv[3] : "";
    if (role != "lend" && role != "write")
        return std::puts("usage: dapx-example-window DEVICE ADDRESS lend|write"), 2;
    const dapx::Address address = must(dapx::Address::parse(argv[2], 7701));
    const dapx::Pd pd = must(dapx::Pd::create(must(dapx::Context::open(argv[1]))));
    dapx::Evd evd = must(dapx::Evd::create(pd.context()));
    if (role == "lend")
        lend(pd, evd, address);
    else
        write(pd, evd, argv[1], address);
}
