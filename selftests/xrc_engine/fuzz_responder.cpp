// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A responder, and a peer that sends anything. An input is a list of steps; in a segment, bits say
// what is put right, so that it gets as far as a segment of an honest peer.
#include "fuzz.hpp"

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace dapx::xrc::fuzz {
namespace {

enum Step : std::uint8_t {
    step_segment,
    step_post,
    step_queue,
    step_end,
    steps,
};

enum Right : std::uint8_t {
    right_hello = 1 << 0,  // all of a hello
    right_type = 1 << 1,   // a request
    right_seq = 1 << 2,    // what is expected
    right_queue = 1 << 3,  // one that was there at some time
    right_open = 1 << 4,   // what the message that is open began with
    right_length = 1 << 5, // as many data as belong there
    right_total = 1 << 6,  // a few segments at the most
    right_opcode = 1 << 7, // one that there is
};

struct Receive {
    u64 size = 0;
    bool broken = false;
    bool taken = false;
    bool done = false;
};

struct Queue {
    bool alive = true;
    std::size_t next = 0;
    std::vector<Receive> receives = {};
};

struct Peer : dapx_xrc_responder {
    std::vector<Queue> queues;
    // Keys below it are refused.
    std::uint32_t refused = 0;
    std::uint64_t word = 0;
    // What arrives.
    std::unique_ptr<std::uint8_t[]> buffer;
    std::uint32_t length = 0;
    std::uint32_t calls = 0;

    static Peer& of(dapx_xrc_responder* resp)
    {
        auto& peer = *static_cast<Peer*>(resp);
        check(!peer.failed, "goes on though it failed");
        ++peer.calls;
        return peer;
    }

    Queue& queue_at(void* queue)
    {
        auto& found = *static_cast<Queue*>(queue);
        check(&found >= queues.data() && &found < queues.data() + queues.size(), "no queue");
        check(found.alive, "a queue that is gone");
        return found;
    }

    Receive& receive_at(void* queue, void* receive)
    {
        Queue& found = queue_at(queue);
        const auto index = reinterpret_cast<std::uintptr_t>(receive) - 1;
        check(index < found.receives.size(), "no receive");
        check(found.receives[index].taken && !found.receives[index].done,
              "a receive that was not taken, or is done");
        return found.receives[index];
    }

    /// What did not arrive in this segment is another message's.
    void check_arrived(const void* from, std::uint32_t bytes) const
    {
        const auto* first = static_cast<const std::uint8_t*>(from);
        check(bytes > 0 && first >= buffer.get() + sizeof(dapx_xrc_request) &&
                  first + bytes <= buffer.get() + length,
              "data that did not arrive");
    }

    static void check_part(std::uint64_t total, std::uint32_t offset, std::uint32_t bytes)
    {
        check(std::uint64_t{offset} + bytes <= total, "memory behind the message's");
    }

    static void* find(dapx_xrc_responder* resp, u32 srqn)
    {
        Peer& peer = of(resp);
        return srqn < peer.queues.size() && peer.queues[srqn].alive ? &peer.queues[srqn] : nullptr;
    }

    static dapx_status take(dapx_xrc_responder* resp, void* queue, void** receive, u64* size)
    {
        Queue& found = of(resp).queue_at(queue);
        check(!resp->receive, "two receives for one message");
        if (found.next == found.receives.size())
            return DAPX_STATUS_RECEIVER_NOT_READY;
        found.receives[found.next].taken = true;
        *size = found.receives[found.next].size;
        *receive = reinterpret_cast<void*>(++found.next);
        return DAPX_STATUS_SUCCESS;
    }

    static bool place(dapx_xrc_responder* resp, void* queue, void* receive, u32 offset,
                      const void* from, u32 length)
    {
        Peer& peer = of(resp);
        const Receive& found = peer.receive_at(queue, receive);
        check_part(std::min<u64>(resp->total, found.size), offset, length);
        peer.check_arrived(from, length);
        return !found.broken;
    }

    static void complete(dapx_xrc_responder* resp, void* queue, void* receive,
                         const dapx_xrc_arrival* arrival)
    {
        Receive& found = of(resp).receive_at(queue, receive);
        check(arrival->status != DAPX_STATUS_SUCCESS || arrival->opcode == DAPX_OP_RDMA_WRITE_IMM ||
                  arrival->length <= found.size,
              "more than fits");
        found.done = true;
    }

    static bool write(dapx_xrc_responder* resp, void* queue, u32 rkey, u64, u32 total, u32 offset,
                      const void* from, u32 length)
    {
        Peer& peer = of(resp);
        (void)peer.queue_at(queue);
        check_part(total, offset, length);
        peer.check_arrived(from, length);
        return rkey >= peer.refused;
    }

    static bool read(dapx_xrc_responder* resp, void* queue, u32 rkey, u64, u32 total, u32 offset,
                     void* to, u32 length)
    {
        Peer& peer = of(resp);
        (void)peer.queue_at(queue);
        check_part(total, offset, length);
        touch(to, length);
        return rkey >= peer.refused;
    }

    static bool atomic(dapx_xrc_responder* resp, void* queue, u32 rkey, u64 addr, u8, u64, u64,
                       u64* old)
    {
        Peer& peer = of(resp);
        (void)peer.queue_at(queue);
        check(addr % sizeof(u64) == 0, "an atomic operation across a boundary");
        *old = peer.word++;
        return rkey >= peer.refused;
    }

    static constexpr dapx_xrc_responder_ops operations = {
        .find = find,
        .take = take,
        .place = place,
        .complete = complete,
        .write = write,
        .read = read,
        .atomic = atomic,
    };

    void put_right(std::uint8_t right, dapx_xrc_request& header, std::uint32_t& bytes)
    {
        if (right & right_type)
            header.type = DAPX_XRC_REQUEST;
        if (right & right_seq)
            header.seq = htole32(expected);
        if (right & right_queue)
            header.srqn = htole32(le32toh(header.srqn) % queues.size());
        if (right & right_opcode)
            header.opcode %= DAPX_OP_FETCH_ADD + 1;
        if (right & right_total)
            header.total = htole32(dapx_xrc_is_atomic(header.opcode)
                                       ? sizeof(u64)
                                       : le32toh(header.total) % (4 * DAPX_XRC_PAYLOAD));
        if ((right & right_open) && open) {
            header.opcode = opcode;
            header.srqn = htole32(srqn);
            header.total = htole32(total);
            header.rkey = htole32(rkey);
            header.addr = htole64(addr);
        }
        if (right & right_length) {
            const u32 left = le32toh(header.total) - (open ? done : 0);
            bytes = sizeof(header);
            if (!dapx_xrc_returns_data(header.opcode))
                bytes += std::min(left, DAPX_XRC_PAYLOAD);
        }
    }

    void arrives(Input& input)
    {
        const auto right = input.take<std::uint8_t>();
        length = input.take<std::uint16_t>() % (DAPX_XRC_SEGMENT_SIZE + 1);
        // What the last one left lies behind what comes now.
        dapx_xrc_request header{};
        if (right & right_hello) {
            const dapx_xrc_hello hello = {.type = DAPX_XRC_HELLO,
                                          .version = DAPX_XRC_VERSION,
                                          .segment_size = htole16(DAPX_XRC_SEGMENT_SIZE),
                                          .magic = htole32(DAPX_XRC_MAGIC),
                                          .limit = 0};
            std::memcpy(buffer.get(), &hello, sizeof(hello));
            length = sizeof(hello);
        } else {
            input.bytes(&header, sizeof(header));
            put_right(right, header, length);
            std::memcpy(buffer.get(), &header, std::min<std::size_t>(sizeof(header), length));
        }

        const bool was_failed = failed;
        const std::uint32_t was_expected = expected;
        calls = 0;
        dapx_xrc_reply reply{};
        dapx_xrc_respond(this, buffer.get(), length, &reply);
        check(!was_failed || (failed && reply.type == 0 && calls == 0), "failed, and yet answers");
        check(expected == was_expected ||
                  (expected == was_expected + 1 && reply.status == DAPX_STATUS_SUCCESS),
              "another segment is expected");
        check(reply.status == DAPX_STATUS_SUCCESS || !reply.has_data, "data of what was refused");
        check(reply.status == DAPX_STATUS_SUCCESS || expected == was_expected, "done, and refused");
        if (reply.status == DAPX_STATUS_RECEIVER_NOT_READY)
            check(!receive && !failed && deaf, "not ready, and yet something is kept");
        else if (reply.status != DAPX_STATUS_SUCCESS)
            check(failed && reply.now, "refused, and goes on");
        check(!failed || !receive, "failed, and keeps a receive");
        if (reply.type != 0) {
            const std::uint32_t answer = dapx_xrc_reply_build(this, &reply, 7, buffer.get());
            check(answer <= DAPX_XRC_SEGMENT_SIZE, "an answer is too long");
        }
    }

    void finish()
    {
        dapx_xrc_responder_end(this);
        for (const Queue& queue : queues) {
            for (const Receive& receive : queue.receives)
                check(!queue.alive || receive.taken == receive.done, "a receive never ends");
        }
    }
};

} // namespace
} // namespace dapx::xrc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace dapx::xrc::fuzz;
    Input input(data, size);
    Peer peer;
    dapx_xrc_responder_init(&peer, &Peer::operations);
    // To the byte, so that the sanitizer sees one more.
    peer.buffer.reset(new std::uint8_t[DAPX_XRC_SEGMENT_SIZE]{});
    peer.queues.resize(3);
    peer.refused = input.take<std::uint8_t>();
    peer.expected = static_cast<std::uint32_t>(input.take<std::int8_t>());
    bool ended = false;
    while (!input.empty()) {
        switch (input.take<std::uint8_t>() % steps) {
        case step_segment:
            peer.arrives(input);
            break;
        case step_post: {
            const auto queue = input.take<std::uint8_t>();
            const auto size = input.take<std::uint16_t>();
            peer.queues[queue % 3].receives.push_back({.size = size, .broken = queue >= 0xf0});
            break;
        }
        case step_queue: {
            Queue& queue = peer.queues[input.take<std::uint8_t>() % 3];
            if (queue.alive) {
                queue.alive = false;
                dapx_xrc_queue_gone(&peer, &queue);
            }
            break;
        }
        default:
            // Rarely: much comes to nothing behind it.
            ended = ended || input.take<std::uint8_t>() == 0xee;
            if (ended && !peer.failed)
                peer.finish();
            break;
        }
    }
    peer.finish();
    return 0;
}
