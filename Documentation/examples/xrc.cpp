// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Two receivers share an XRC domain by a file, and a sender reaches both over one connection. Either may die and restart:
//     dapx-example-xrc rxe1 10.0.0.2 FILE 1    the first of them; the second with 2
//     dapx-example-xrc rxe0 10.0.0.2           on the other host: the sender, which reads lines as "2 hello"
#include <dapx/dapx.hpp>
#include <dapx/must.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iostream>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static constexpr std::uint32_t receivers = 2, depth = 4, length = 256;
using Queues = std::array<std::uint32_t, receivers>;

// In the file, where it outlives the receivers. One that restarts replaces its number.
struct Board {
    std::atomic<std::uint32_t> qp_num; // the receive queue pair of the latest connection
    std::array<std::atomic<std::uint32_t>, receivers> queues;
};

static void receive(const dapx::Pd& pd, const dapx::Address& address, const char* name,
                    unsigned who)
{
    const int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void* at = MAP_FAILED;
    if (file >= 0 && ftruncate(file, sizeof(Board)) == 0)
        at = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED)
        dapx::fail(std::string(name) + ": " + std::strerror(errno));
    auto& board = *static_cast<Board*>(at);

    const auto domain = must(dapx::XrcDomain::join(pd.context(), file)).domain;
    dapx::Evd evd = must(dapx::Evd::create(pd.context()));
    char texts[depth][length];
    const auto region = must(dapx::MemoryRegion::create(
        pd, std::span(texts), dapx::Access::local_write, 0, dapx::RegionFlags::xrc));
    dapx::Srq srq = must(dapx::Srq::create_xrc(domain, pd, evd, {.depth = depth}));
    for (std::uint32_t i = 0; i < depth; ++i)
        must(srq.post_recv(i, region.segment(i * length, length)));
    board.queues[who - 1] = srq.number();
    std::printf("receiver %u: process %d, queue %u\n", who, getpid(), srq.number());

    dapx::CmId listener = must(dapx::CmId::create(evd));
    bool leads = false;
    std::optional<dapx::XrcQp> qp;
    for (std::uint32_t qp_num = 0;;) {
        const auto event = evd.next(std::chrono::milliseconds(100));
        // When both are ready, the first that binds the address leads. When it dies, the other one does.
        const Queues queues = {board.queues[0], board.queues[1]};
        leads = leads || (queues[0] && queues[1] && listener.bind(address) && listener.listen());
        // The receive queue pair belongs to the domain, and lives while a process is registered with it.
        if (qp_num != board.qp_num) {
            qp_num = board.qp_num;
            if (auto other = dapx::XrcQp::register_with(domain, qp_num, &evd))
                qp = std::move(*other);
        }
        if (!event && event.error().code() == ETIMEDOUT)
            continue;
        if (must(event).is_completion()) {
            std::printf("receiver %u: %.*s\n", who, int(event->byte_len()), texts[event->wr_id()]);
            must(srq.post_recv(event->wr_id(), region.segment(event->wr_id() * length, length)));
        } else if (event->type() == dapx::EventType::connect_request) {
            qp = must(dapx::XrcQp::create(domain, &evd));
            board.qp_num = qp_num = qp->number();
            std::printf("receiver %u: makes receive queue pair %u\n", who, qp_num);
            must(qp->accept(must(dapx::CmId::request(listener, *event)),
                            std::as_bytes(std::span(queues))));
        } else if (event->async() == dapx::AsyncEvent::xrc_qp_disconnected) {
            return; // The sender is done.
        }
    }
}

// Over one connection. False if that ended too early: line is what has to be sent again.
static bool send(const dapx::Pd& pd, const char* device, const dapx::Address& to, std::string& line)
{
    dapx::Evd evd = must(dapx::Evd::create(pd.context()));
    dapx::XrcEndpoint endpoint = must(dapx::XrcEndpoint::create(pd, evd, {.max_inline = length}));
    must(endpoint.connect(to, {.source = must(dapx::Address::source_for(device, to))}));
    dapx::Event event = must(evd.next_of(dapx::EventType::connection));
    std::printf("sender: %s\n", event.describe().c_str());
    Queues queues{};
    const std::vector<std::byte> answer = must(endpoint.query()).private_data;
    std::memcpy(queues.data(), answer.data(), std::min(answer.size(), sizeof(queues)));
    while (event.succeeded() && (!line.empty() || std::getline(std::cin, line))) {
        const std::uint32_t who = line[0] - '1';
        if (who >= receivers || line.size() < 3)
            dapx::fail("a line is a receiver's number and a text, as \"2 hello\"");
        const auto text = std::as_bytes(std::span(line).subspan(2));
        must(endpoint.to(queues[who]).post_send_inline(0, text));
        event = must(evd.next_of(dapx::EventType::completion));
        std::printf("sender: to receiver %u: %s\n", who + 1, event.describe().c_str());
        if (event.succeeded())
            line.clear();
    }
    return event.succeeded();
}

int main(int argc, char** argv)
{
    const unsigned who = argc == 5 ? std::strtoul(argv[4], nullptr, 10) : 0;
    if (argc != 3 && (who < 1 || who > receivers))
        return std::puts("usage: dapx-example-xrc DEVICE ADDRESS [FILE 1|2]"), 2;
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const dapx::Address address = must(dapx::Address::parse(argv[2], 7702));
    const dapx::Pd pd = must(dapx::Pd::create(must(dapx::Context::open(argv[1]))));
    if (argc == 5)
        return receive(pd, address, argv[3], who), 0;
    for (std::string line; !send(pd, argv[1], address, line);)
        sleep(1);
}
