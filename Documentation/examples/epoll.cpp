// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// An event dispatcher in a poll loop, beside another descriptor: lines of stdin go to the peer, and what it says is printed.
//     dapx-example-epoll rxe1 10.0.0.2 listen     on RDMA device rxe1's address
//     dapx-example-epoll rxe0 10.0.0.2 connect    from RDMA device rxe0
#include <dapx/dapx.hpp>
#include <dapx/must.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static constexpr std::uint32_t length = 4096;
static constexpr std::uint32_t depth = 16;

static int check(int result, const char* what)
{
    if (result < 0)
        dapx::fail(std::string(what) + ": " + std::strerror(errno));
    return result;
}

class Talk {
public:
    Talk(const char* device, const dapx::Address& address, bool listens)
        : pd_(must(dapx::Pd::create(must(dapx::Context::open(device))))),
          evd_(must(dapx::Evd::create(pd_.context()))),
          region_(
              must(dapx::MemoryRegion::create(pd_, std::span(places_), dapx::Access::local_write))),
          listener_(must(dapx::CmId::create(evd_))),
          endpoint_(must(
              dapx::Endpoint::create(pd_, evd_, {.recv_depth = depth, .max_inline = length / 16})))
    {
        for (std::uint32_t i = 0; i < depth; ++i)
            must(endpoint_.post_recv(i, region_.segment(std::uint64_t{i} * length, length)));
        if (listens) {
            must(listener_.bind(address));
            must(listener_.listen());
        } else {
            must(endpoint_.connect(address,
                                   {.source = must(dapx::Address::source_for(device, address))}));
        }
    }

    void run()
    {
        const int signal = check(eventfd(0, EFD_CLOEXEC), "eventfd");
        const int poll = check(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
        must(evd_.set_eventfd_once(signal));
        watch(poll, signal);
        while (!ended_) {
            // In this order: what comes after arm() signals, what was there before does not.
            evd_.arm();
            if (dapx::Event event; evd_.poll(event)) {
                do
                    handle(event, poll);
                while (evd_.poll(event));
                continue;
            }
            epoll_event ready{};
            if (check(epoll_wait(poll, &ready, 1, -1), "epoll_wait") == 0)
                continue;
            std::uint64_t count = 0;
            if (ready.data.fd == signal)
                check(static_cast<int>(read(signal, &count, sizeof(count))), "read");
            else
                say();
        }
    }

private:
    static void watch(int poll, int fd)
    {
        epoll_event interest{};
        interest.events = EPOLLIN;
        interest.data.fd = fd;
        check(epoll_ctl(poll, EPOLL_CTL_ADD, fd, &interest), "epoll_ctl");
    }

    void handle(const dapx::Event& event, int poll)
    {
        if (event.type() == dapx::EventType::connect_request) {
            must(endpoint_.accept(must(dapx::CmId::request(listener_, event))));
        } else if (event.is_connection(dapx::Connection::established)) {
            watch(poll, STDIN_FILENO);
        } else if (event.is_connection(dapx::Connection::disconnected)) {
            ended_ = true;
        } else if (event.is_completion() && event.status() == dapx::Status::flushed) {
            return; // Nothing more is said.
        } else if (!event.succeeded()) {
            dapx::fail(event.describe());
        } else if (event.is_completion() && event.opcode() == dapx::Opcode::recv) {
            std::fwrite(&places_[event.wr_id() * length], 1, event.byte_len(), stdout);
            std::fflush(stdout);
            must(endpoint_.post_recv(event.wr_id(),
                                     region_.segment(event.wr_id() * length, length)));
        }
    }

    // Inline: what was read is free again at once. End of file ends the connection when all of it is there.
    void say()
    {
        std::array<std::byte, length / 16> text;
        const int size =
            check(static_cast<int>(read(STDIN_FILENO, text.data(), text.size())), "read");
        if (size == 0)
            return must(endpoint_.disconnect());
        must(endpoint_.post_send_inline(0, std::span(text).first(static_cast<std::size_t>(size))));
    }

    std::array<char, std::size_t{depth} * length> places_{};
    dapx::Pd pd_;
    dapx::Evd evd_;
    dapx::MemoryRegion region_;
    dapx::CmId listener_;
    dapx::Endpoint endpoint_;
    bool ended_ = false;
};

int main(int argc, char** argv)
{
    const std::string role = argc == 4 ? argv[3] : "";
    if (role != "listen" && role != "connect")
        return std::puts("usage: dapx-example-epoll DEVICE ADDRESS listen|connect"), 2;
    Talk(argv[1], must(dapx::Address::parse(argv[2], 7704)), role == "listen").run();
}
