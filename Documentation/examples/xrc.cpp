// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Processes that share an XRC domain by a file, and a peer that reaches all of them by one connection:
//     dapx-example-xrc rxe1 10.0.0.2 receive FILE   three times; the first makes the receiving end
//     dapx-example-xrc rxe0 10.0.0.2 send           on the other host; reads which of the three are sent to
#include <dapx/dapx.hpp>
#include <dapx/must.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace std::chrono_literals;

static dapx::Event await(dapx::Evd& evd, dapx::EventType type)
{
    return must_succeed(evd.next_of(type));
}

static constexpr std::uint32_t receivers = 3;
static constexpr std::uint32_t length = 100'000; // larger than any packet
static constexpr std::uint32_t depth = 4;

// In the file, which is empty at first: the domain's number for all, and each one's queue.
struct Shared {
    std::atomic<std::uint32_t> joined;
    std::atomic<std::uint32_t> qp_num;
    std::atomic<std::uint32_t> queues[receivers];
};

using Message = std::vector<unsigned char>;

static void fill(std::span<unsigned char> message, std::uint32_t receiver, std::uint32_t round)
{
    for (std::uint32_t i = 0; i < message.size(); ++i)
        message[i] = static_cast<unsigned char>(i / 7 + 31 * receiver + 101 * round);
}

static std::uint32_t wait_for(const std::atomic<std::uint32_t>& number)
{
    while (number == 0)
        std::this_thread::sleep_for(1ms);
    return number;
}

// The receiving end, which is the domain's: whoever registers with it keeps it alive.
static dapx::XrcQp receiving_end(const dapx::XrcDomain& domain, dapx::Evd& evd, Shared& shared,
                                 bool creator)
{
    if (!creator)
        return must(dapx::XrcQp::register_with(domain, wait_for(shared.qp_num), &evd));
    dapx::XrcQp qp = must(dapx::XrcQp::create(domain, &evd));
    shared.qp_num = qp.number();
    return qp;
}

// The peer learns all queues' numbers with the answer to its request.
static void accept(dapx::XrcQp& qp, dapx::Evd& evd, const dapx::Address& address, Shared& shared)
{
    std::uint32_t queues[receivers];
    for (std::uint32_t i = 0; i < receivers; ++i)
        queues[i] = wait_for(shared.queues[i]);
    dapx::CmId listener = must(dapx::CmId::create(evd));
    must(listener.bind(address));
    must(listener.listen());
    std::printf("receiver 1: listens\n");
    std::fflush(stdout);
    const dapx::Event request = await(evd, dapx::EventType::connect_request);
    must(qp.accept(must(dapx::CmId::request(listener, request)), std::as_bytes(std::span(queues))));
}

static void receive(const dapx::Pd& pd, dapx::Evd& evd, const dapx::Address& address,
                    const char* name)
{
    const int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void* at = MAP_FAILED;
    if (file >= 0 && ftruncate(file, sizeof(Shared)) == 0)
        at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED)
        std::exit((std::perror(name), 1));
    auto& shared = *static_cast<Shared*>(at);

    // Who opens it first is decided by the module.
    const auto [domain, creator] = must(dapx::XrcDomain::join(pd.context(), file));
    dapx::XrcQp qp = receiving_end(domain, evd, shared, creator);

    Message memory(std::size_t{depth} * length);
    const auto region = must(dapx::MemoryRegion::create(
        pd, std::span(memory), dapx::Access::local_write, 0, dapx::RegionFlags::xrc));
    dapx::Srq srq = must(dapx::Srq::create_xrc(domain, pd, evd, {.depth = depth, .max_sge = 1}));
    for (std::uint32_t i = 0; i < depth; ++i)
        (void)srq.post_recv(i, region.segment(std::size_t{i} * length, length));
    const std::uint32_t self = shared.joined++;
    if (self >= receivers)
        std::exit((std::fprintf(stderr, "xrc: there are %u already\n", receivers), 1));
    shared.queues[self] = srq.number();
    std::printf("receiver %u: process %d, queue %u, %s receive queue pair %u\n", self + 1, getpid(),
                srq.number(), creator ? "made" : "registered with", qp.number());
    std::fflush(stdout);
    if (creator)
        accept(qp, evd, address, shared);

    Message expected(length);
    for (std::uint32_t round = 1;; ++round) {
        dapx::Event event = must(evd.next());
        while (!event.is_completion() && event.async() != dapx::AsyncEvent::xrc_qp_disconnected)
            event = must(evd.next());
        if (!event.is_completion())
            break;
        const std::span message =
            std::span(memory).subspan(event.wr_id() * length, event.byte_len());
        fill(expected, self, round);
        const bool same = std::ranges::equal(message, expected);
        std::printf("receiver %u: message %u, %zu bytes, %s\n", self + 1, round, message.size(),
                    same ? "as sent" : "NOT AS SENT");
        std::fflush(stdout);
        if (!same)
            std::exit(1);
        (void)srq.post_recv(event.wr_id(), region.segment(event.wr_id() * length, length));
    }
    std::printf("receiver %u: the peer is gone\n", self + 1);
}

static void send(const dapx::Pd& pd, dapx::Evd& evd, const char* device,
                 const dapx::Address& address)
{
    Message message(length);
    const auto region = must(dapx::MemoryRegion::create(
        pd, std::span(message), dapx::Access::local_read, 0, dapx::RegionFlags::xrc));
    dapx::Endpoint endpoint = must(dapx::Endpoint::create_xrc(pd, evd, {}));
    must(endpoint.connect(address, {must(dapx::Address::source_for(device, address))}));
    await(evd, dapx::EventType::connection);
    std::uint32_t queues[receivers];
    const std::vector<std::byte> answer = must(endpoint.query()).private_data;
    std::memcpy(queues, answer.data(), std::min(answer.size(), sizeof(queues)));
    std::printf("sender: connected\n");

    std::string line;
    for (std::uint32_t round = 1; std::fflush(stdout), std::getline(std::cin, line); ++round) {
        std::istringstream words(line);
        for (std::uint32_t receiver; words >> receiver && receiver - 1 < receivers;) {
            fill(message, receiver - 1, round);
            (void)endpoint.to(queues[receiver - 1]).post_send(round, region.segment(0, length));
            await(evd, dapx::EventType::completion);
            std::printf("sender: round %u, receiver %u has its message\n", round, receiver);
        }
    }
}

int main(int argc, char** argv)
{
    const std::string role = argc > 3 ? argv[3] : "";
    if (!(role == "receive" && argc == 5) && !(role == "send" && argc == 4))
        return std::puts("usage: dapx-example-xrc DEVICE ADDRESS receive FILE | send"), 2;
    const dapx::Address address = must(dapx::Address::parse(argv[2], 7702));
    const dapx::Pd pd = must(dapx::Pd::create(must(dapx::Context::open(argv[1]))));
    dapx::Evd evd = must(dapx::Evd::create(pd.context()));
    if (role == "receive")
        receive(pd, evd, address, argv[4]);
    else
        send(pd, evd, argv[1], address);
}
