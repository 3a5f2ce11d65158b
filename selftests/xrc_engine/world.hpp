// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Both halves of the XRC engine, and all that they need of the world: a wire that keeps the order,
// messages, queues with receives, memory with keys, a timer. It plays the owners of both halves,
// and notes whatever an engine must not do.
//
// Nothing happens by itself: each step is a call. A world can be copied at any time, and its state
// be told as a number.
#pragma once

extern "C" {
#include "xrc/engine.h"
}

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dapx::xrc {

using Bytes = std::vector<std::byte>;

/// What is on the wire. It stays as it was sent, so copies of a world share it.
struct Segment {
    std::shared_ptr<const Bytes> bytes;
    std::uint64_t digest = 0;

    template <class Header> [[nodiscard]] Header as() const
    {
        Header header{};
        std::memcpy(&header, bytes->data(), std::min(sizeof(header), bytes->size()));
        return header;
    }
};

struct Options {
    std::uint32_t buffers = 16; // of the responder
    std::uint32_t room = 16;    // of the requester
    std::uint32_t spare = 0;    // more room, which it is lent if it has none
    std::uint8_t retry_limit = 7;
    std::uint32_t start = 0; // of sequence numbers and credits
    // Buffers come back, sends complete, and deferred answers go out in steps of their own.
    bool own_steps = false;
    // The responder's owner tells a requester without credits when there are some again.
    bool tells_unasked = true;
};

/// What a test wants to be sent. Its data follow from its number.
struct Wanted {
    dapx_opcode opcode = DAPX_OP_SEND;
    std::size_t queue = 0;
    std::uint32_t total = 0;
    bool fence = false;
    bool solicited = false;
    std::uint32_t imm = 0;
    std::uint64_t compare_add = 0;
    std::uint64_t swap = 0;
    // The message's own memory fails from this byte on.
    std::uint64_t broken_at = ~std::uint64_t{0};
    // Else a key of its own.
    std::optional<std::uint32_t> rkey = {};
    std::optional<std::uint32_t> srqn = {};
};

struct Message : dapx_xrc_message {
    std::uint8_t seed = 0;
    std::uint64_t broken_at = 0;
    // At the peer: all has happened; at the sender: bytes that came back; atomics: how often.
    bool landed = false;
    std::uint32_t scattered = 0;
    std::uint32_t executed = 0;
    std::uint64_t old = 0;
    std::optional<dapx_status> status;
};

struct Receive {
    std::uint64_t size = 0;
    // Its memory fails from this byte on.
    std::uint64_t broken_at = ~std::uint64_t{0};
    bool taken = false;
    std::uint8_t seed = 0;
    std::uint32_t filled = 0;
    std::optional<dapx_xrc_arrival> arrival = {};
};

struct Queue {
    std::uint32_t srqn = 0;
    bool alive = true;
    std::size_t next = 0; // to be taken
    std::vector<Receive> receives = {};
};

/// Memory of the responder's side: what lies there follows from the seed.
struct Region {
    std::uint32_t rkey = 0;
    std::uint64_t addr = 0;
    std::uint64_t length = 0;
    bool readable = true;
    bool writable = true;
    std::uint8_t seed = 0;
    std::uint32_t filled = 0;
    std::uint64_t word = 0; // for atomics
};

class World {
public:
    explicit World(const Options& options = {});
    World(const World& other);
    World(World&&) = delete;
    World& operator=(const World&) = delete;
    World& operator=(World&&) = delete;
    ~World() = default;

    // ---------------------------------------------------------------- what a test does
    std::size_t add_queue(std::size_t receives = 0, std::uint64_t size = 1 << 20);
    void post(std::size_t queue, std::uint64_t size = 1 << 20,
              std::uint64_t broken_at = ~std::uint64_t{0});
    /// Queued, and sent as far as possible. Its region is made if it names none.
    std::size_t submit(const Wanted& wanted);
    /// Without sending.
    std::size_t enqueue(const Wanted& wanted);
    void transmit();
    void kill(std::size_t queue);
    /// The requester's owner, the responder's owner learns that the connection is gone.
    void break_requester(dapx_status status = DAPX_STATUS_TRANSPORT);
    void break_responder();

    // ---------------------------------------------------------------- steps; false: none to do
    bool deliver_request();
    bool deliver_answer();
    bool complete_send();
    bool recycle();
    bool tell();
    bool fire();
    /// All of them as long as there are any, with so many timers; false: there were more.
    bool settle(int timers = 1000);

    // ---------------------------------------------------------------- what is the case
    [[nodiscard]] const Message& message(std::size_t index) const { return messages_[index]; }
    [[nodiscard]] std::size_t messages() const { return messages_.size(); }
    [[nodiscard]] std::size_t done() const { return done_; }
    [[nodiscard]] std::optional<dapx_status> status(std::size_t index) const
    {
        return messages_[index].status;
    }
    [[nodiscard]] const Receive& receive(std::size_t queue, std::size_t index) const
    {
        return queues_[queue].receives[index];
    }
    [[nodiscard]] const Queue& queue(std::size_t index) const { return queues_[index]; }
    [[nodiscard]] Region& region(std::uint32_t rkey);
    [[nodiscard]] std::uint32_t lent() const { return lent_; }
    [[nodiscard]] bool all_done() const { return done_ == messages_.size(); }
    [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
    /// The same for worlds that go on in the same way.
    [[nodiscard]] std::uint64_t fingerprint() const;

    // ---------------------------------------------------------------- to be looked at, and spoilt
    struct Requester : dapx_xrc_requester {
        World* world = nullptr;
    } requester{};
    struct Responder : dapx_xrc_responder {
        World* world = nullptr;
    } responder{};
    std::deque<Segment> to_responder;
    std::deque<Segment> to_requester;
    std::optional<std::uint32_t> timer; // microseconds
    std::vector<std::uint32_t> timers;  // all that were set
    std::uint32_t not_ready = 0;        // answers
    std::uint32_t not_ready_inside = 0; // of them: of a segment of which something was done
    std::uint32_t shared = 0;           // segments of several requests that were sent
    std::uint32_t submit_again = 0;     // so often, a message that is done submits another one

    void put_request(Bytes bytes) { put(to_responder, std::move(bytes)); }
    void put_answer(Bytes bytes);
    template <class Header>
    static Bytes bytes_of(const Header& header, std::size_t more = 0)
    {
        Bytes bytes(sizeof(header) + more);
        std::memcpy(bytes.data(), &header, sizeof(header));
        return bytes;
    }
    /// Changes the header of what is the @p index-th on the wire.
    template <class Header, class Change>
    static void change(std::deque<Segment>& wire, std::size_t index, const Change& with)
    {
        Bytes bytes = *wire[index].bytes;
        Header header{};
        std::memcpy(&header, bytes.data(), sizeof(header));
        with(header, bytes);
        if (bytes.size() >= sizeof(header))
            std::memcpy(bytes.data(), &header, sizeof(header));
        wire[index] = sealed(std::move(bytes));
    }

private:
    friend struct Operations;

    static Segment sealed(Bytes bytes);
    static void put(std::deque<Segment>& wire, Bytes bytes)
    {
        wire.push_back(sealed(std::move(bytes)));
    }
    void expect(bool condition, const char* text);
    [[nodiscard]] std::uint32_t limit() const { return arrived_ + posted_; }
    void answer(const dapx_xrc_reply& reply, std::byte* buffer);
    void answer_unasked();
    void expect_nothing_kept();
    void land(Message& message);
    Message* by_key(std::uint32_t rkey);

    Options options_;
    std::deque<Message> messages_;
    std::vector<Queue> queues_;
    std::vector<Region> regions_;
    std::vector<std::string> violations_;
    std::size_t done_ = 0;
    std::uint32_t sending_ = 0;     // sends that did not complete
    std::uint32_t lent_ = 0;        // of what is spare
    std::uint32_t buffers_out_ = 0; // of the requester, asked for and not given back
    std::uint32_t granted_ = 0;     // the limit in the last answer
    std::uint32_t arrived_ = 0;     // segments, hellos included
    std::uint32_t posted_ = 0;      // buffers
    std::uint32_t used_ = 0;        // buffers that have to be posted again
    bool owes_answer_ = false;
};

} // namespace dapx::xrc
