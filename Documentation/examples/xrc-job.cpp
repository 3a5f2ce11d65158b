// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A job on XRC, whose processes may be killed at any moment: see "A job on XRC" in Documentation/xrc-job.rst.
//     dapx-example-xrc-job rxe1 10.0.0.2 receive FILE WHO    each of the receivers, WHO from 0 to 9; again if it died
//     dapx-example-xrc-job rxe0 10.0.0.2 send COUNT          on the other host: COUNT messages to each of them
#include <dapx/dapx.hpp>
#include <dapx/must.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace std::chrono_literals;

static constexpr std::uint32_t receivers = 10;
static constexpr std::uint32_t depth = 32; // receives of each receiver, and messages in flight
static constexpr std::uint32_t length = 3000;

// What the sender knows of a receiver. It gets those of all receivers when it connects: 80 of the 188 bytes of private data
// of an accept. In the machine's byte order, as both sides are the same program.
struct Place {
    std::uint32_t queue; // 0: none yet
    std::uint32_t next;  // the number of the message that it processes next
};
using Places = std::array<Place, receivers>;

// What the sender requests when it connects.
enum class Word : std::uint32_t { connect, done };

struct Message {
    std::uint32_t to;
    std::uint32_t number;
    std::array<unsigned char, length - 8> data;
};

static void fill(Message& message, std::uint32_t to, std::uint32_t number)
{
    message.to = to;
    message.number = number;
    for (std::uint32_t i = 0; i < message.data.size(); ++i)
        message.data[i] = static_cast<unsigned char>(i / 3 + 31 * to + 101 * number);
}

// What both sides have: memory for messages, and an event dispatcher.
struct Side {
    Side(const char* device, dapx::Access access)
        : pd(must(dapx::Pd::create(must(dapx::Context::open(device))))),
          evd(must(dapx::Evd::create(pd.context()))), messages(depth),
          region(must(dapx::MemoryRegion::create(pd, std::span(messages), access, 0,
                                                 dapx::RegionFlags::xrc)))
    {
    }

    dapx::Segment segment(std::uint64_t place) const
    {
        return region.segment(place * sizeof(Message), sizeof(Message));
    }

    dapx::Pd pd;
    dapx::Evd evd;
    std::vector<Message> messages;
    dapx::MemoryRegion region;
};

// ------------------------------------------------------------------------------------ receiving

// In the file that the receivers share, where it outlives them.
struct Board {
    std::atomic<std::uint32_t> qp_num; // of the last receive queue pair
    std::atomic<std::uint32_t> done;
    std::array<std::atomic<std::uint32_t>, receivers> queues;
    std::array<std::atomic<std::uint32_t>, receivers> next;
};

class Receiver : Side {
public:
    Receiver(const char* device, const dapx::Address& address, const char* file, std::uint32_t who)
        : Side(device, dapx::Access::local_write), address_(address), who_(who),
          file_(open_file(file)), board_(map_board(file_)),
          domain_(must(dapx::XrcDomain::join(pd.context(), file_)).domain),
          srq_(must(dapx::Srq::create_xrc(domain_, pd, evd, {.depth = depth, .max_sge = 1})))
    {
        for (std::uint32_t i = 0; i < depth; ++i)
            post(i);
        // From now on the sender may learn of this queue.
        board_.queues[who_] = srq_.number();
    }

    void run()
    {
        // The last event of each receive queue pair is the end of its connection.
        while (board_.done == 0 || !qps_.empty()) {
            lead();
            stay_registered();
            // Not longer: the leader may die at any time, and no event reports that.
            const auto event = evd.next(50ms);
            if (event)
                handle(*event);
            else if (event.error().code() != ETIMEDOUT)
                dapx::fail(event.error().message());
        }
        std::printf("receiver %u: %u messages; here %u of them, and %u twice\n", who_,
                    board_.next[who_].load(), processed_, duplicates_);
    }

private:
    static int open_file(const char* name)
    {
        const int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        return file >= 0 && ftruncate(file, sizeof(Board)) == 0 ? file
                                                                : (std::perror(name), exit(1), -1);
    }

    static Board& map_board(int file)
    {
        void* at = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        return *static_cast<Board*>(at != MAP_FAILED ? at : (std::perror("mmap"), exit(1), at));
    }

    void post(std::uint64_t place) { must(srq_.post_recv(place, segment(place))); }

    // The receiver that has the lock listens. The kernel releases the lock of a process that dies.
    void lead()
    {
        struct flock lock{};
        lock.l_type = F_WRLCK;
        if (listener_ || fcntl(file_, F_SETLK, &lock) != 0)
            return;
        auto listener = must(dapx::CmId::create(evd));
        // The port is in use until the kernel has torn down the previous leader.
        if (!listener.bind(address_) || !listener.listen())
            return;
        listener_ = std::move(listener);
        std::printf("receiver %u: leads\n", who_);
        std::fflush(stdout);
    }

    // A receive queue pair belongs to the domain, and lives while a process is registered with it, so all register.
    void stay_registered()
    {
        const std::uint32_t newest = board_.qp_num;
        if (newest == known_)
            return;
        known_ = newest;
        if (auto qp = dapx::XrcQp::register_with(domain_, newest, &evd))
            qps_.push_back(std::move(*qp));
    }

    void handle(const dapx::Event& event)
    {
        if (event.type() == dapx::EventType::connect_request)
            accept(event);
        else if (event.is_completion())
            process(event);
        // The connection has ended, on either side. The sender makes a new one, with a new receive queue pair.
        else if (event.async() == dapx::AsyncEvent::xrc_qp_error ||
                 event.async() == dapx::AsyncEvent::xrc_qp_disconnected)
            std::erase_if(qps_, [&](const auto& qp) { return qp.number() == event.qp_num(); });
        else if (!event.succeeded())
            dapx::fail(event.describe());
    }

    void accept(const dapx::Event& event)
    {
        dapx::CmId request = must(dapx::CmId::request(*listener_, event));
        const auto info = request.query();
        if (!info)
            return; // The sender has given up.
        auto word = Word::connect;
        std::memcpy(&word, info->private_data.data(),
                    std::min(sizeof(word), info->private_data.size()));
        Places places;
        for (std::uint32_t i = 0; i < receivers; ++i)
            places[i] = {.queue = board_.queues[i], .next = board_.next[i]};
        dapx::XrcQp qp = must(dapx::XrcQp::create(domain_, &evd));
        if (!qp.accept(std::move(request), std::as_bytes(std::span(places))))
            return;
        known_ = qp.number();
        board_.qp_num = known_;
        qps_.push_back(std::move(qp));
        if (word == Word::done)
            board_.done = 1;
    }

    // A lower number is that of a duplicate; a higher one would mean that a message was lost.
    void process(const dapx::Event& event)
    {
        if (event.succeeded()) {
            const Message& message = messages[event.wr_id()];
            Message expected;
            fill(expected, who_, message.number);
            const std::uint32_t next = board_.next[who_];
            if (event.byte_len() != sizeof(Message) || message.to != who_ ||
                message.data != expected.data || message.number > next)
                dapx::fail("a damaged message, or not the next one");
            ++(message.number < next ? duplicates_ : processed_);
            board_.next[who_] = std::max(next, message.number + 1);
        } // Otherwise the connection broke while the message was arriving.
        post(event.wr_id());
    }

    dapx::Address address_;
    std::uint32_t who_;
    int file_;
    Board& board_;
    dapx::XrcDomain domain_;
    dapx::Srq srq_;
    std::optional<dapx::CmId> listener_;
    std::vector<dapx::XrcQp> qps_;
    std::uint32_t known_ = 0;
    std::uint32_t processed_ = 0;
    std::uint32_t duplicates_ = 0;
};

// -------------------------------------------------------------------------------------- sending

class Sender : Side {
public:
    Sender(const char* device, const dapx::Address& address)
        : Side(device, dapx::Access::local_read), address_(address),
          source_(must(dapx::Address::source_for(device, address))),
          endpoint_(must(dapx::XrcEndpoint::create(pd, evd, {.send_depth = depth})))
    {
    }

    // Until each receiver has processed @p count messages, which the accept of a connection reports.
    void run(std::uint32_t count)
    {
        for (;;) {
            connect(Word::connect);
            const auto has_all = [&](const Place& place) { return place.next >= count; };
            if (std::ranges::all_of(places_, has_all))
                break;
            if (send_all(count))
                std::this_thread::sleep_for(20ms); // until they have processed what was sent
            close();
        }
        close();
        connect(Word::done);
        std::printf("sender: %u messages to each of %u receivers; sent %llu, connected %u times\n",
                    count, receivers, static_cast<unsigned long long>(sent_), connections_);
    }

private:
    // Until a receiver leads, and accepts.
    void connect(Word word)
    {
        for (;; std::this_thread::sleep_for(20ms)) {
            must(endpoint_.reset());
            must(endpoint_.connect(address_, {.source = source_,
                                              .deadline = dapx::deadline_after(5s),
                                              .private_data = std::as_bytes(std::span(&word, 1))}));
            const auto event = must(evd.next_of(dapx::EventType::connection));
            if (event.is_connection(dapx::Connection::established))
                break;
        }
        ++connections_;
        const std::vector<std::byte> answer = must(endpoint_.query()).private_data;
        if (answer.size() < sizeof(places_))
            dapx::fail("the private data are too short");
        std::memcpy(&places_, answer.data(), sizeof(places_));
    }

    // Forgets what is in flight: the next accept reports what the receivers have processed.
    void close()
    {
        must(endpoint_.disconnect_now());
        while (endpoint_.state() != dapx::EpState::disconnected)
            must(evd.next_of(dapx::EventType::connection));
        must(endpoint_.reset());
        dapx::Event event;
        while (evd.poll(event)) {
        }
    }

    // The next message for each receiver in turn. @return false: the connection broke.
    bool send_all(std::uint32_t count)
    {
        std::uint32_t in_flight = 0; // Requests complete in order, so the oldest makes room.
        for (bool more = true; more;) {
            more = false;
            for (std::uint32_t to = 0; to < receivers; ++to) {
                Place& place = places_[to];
                if (place.queue == 0 || place.next >= count)
                    continue;
                if (in_flight == depth && !completed(in_flight))
                    return false;
                const auto slot = static_cast<std::uint32_t>(sent_++ % depth);
                fill(messages[slot], to, place.next++);
                must(endpoint_.to(place.queue).post_send(slot, segment(slot)));
                ++in_flight;
                more = true;
            }
        }
        while (in_flight != 0)
            if (!completed(in_flight))
                return false;
        return true;
    }

    // True if the oldest has arrived; false if the connection broke, as with Status::remote_queue for a dead receiver.
    bool completed(std::uint32_t& in_flight)
    {
        --in_flight;
        const dapx::Event event = must(evd.next());
        return event.is_completion() && event.succeeded();
    }

    dapx::Address address_;
    dapx::Address source_;
    dapx::XrcEndpoint endpoint_;
    Places places_{};
    std::uint64_t sent_ = 0;
    std::uint32_t connections_ = 0;
};

int main(int argc, char** argv)
{
    const std::string role = argc > 4 ? argv[3] : "";
    if (!(role == "receive" && argc == 6) && !(role == "send" && argc == 5))
        return std::puts(
                   "usage: dapx-example-xrc-job DEVICE ADDRESS receive FILE WHO | send COUNT"),
               2;
    const dapx::Address address = must(dapx::Address::parse(argv[2], 7703));
    const auto number = static_cast<std::uint32_t>(std::strtoul(argv[argc - 1], nullptr, 10));
    if (role == "send")
        Sender(argv[1], address).run(number);
    else if (number < receivers)
        Receiver(argv[1], address, argv[4], number).run();
    else
        return std::fprintf(stderr, "there are %u receivers\n", receivers), 2;
}
