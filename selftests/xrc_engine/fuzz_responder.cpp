// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A responder, and a peer that sends anything. An input is a list of steps; in a segment, bits say
// what is put right in each request, so that it gets as far as one of an honest peer.
#include "fuzz.hpp"
#include "segment.hpp"

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

/// Of a segment. Two bits more say how many requests it has.
enum Shape : std::uint8_t {
    shape_hello = 1 << 2,    // a hello instead
    shape_cut = 1 << 3,      // it ends anywhere
    shape_longer = 1 << 4,   // some bytes come behind the last request
    shape_together = 1 << 5, // requests begin where the one before ends
};

/// Of a request.
enum Right : std::uint8_t {
    right_data = 1 << 0,   // as many data as it says
    right_type = 1 << 1,   // a request
    right_seq = 1 << 2,    // what is expected
    right_queue = 1 << 3,  // one that was there at some time
    right_open = 1 << 4,   // what the message that is open began with
    right_length = 1 << 5, // what belongs there
    right_total = 1 << 6,  // a few bytes, or a few full requests
    right_opcode = 1 << 7, // one that there is
};

constexpr std::size_t most_requests = 4;

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
    // The requests in it that the engine may look into: those before the first that is none.
    struct Arrived {
        dapx_xrc_request header;
        std::size_t data = 0; // where they are
    };
    std::array<Arrived, DAPX_XRC_SEGMENT_SIZE / sizeof(dapx_xrc_request)> arrived{};
    std::uint32_t requests = 0;
    bool whole = false; // there is nothing else in it
    std::uint32_t first = 0;

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

    /// The one that is carried out.
    [[nodiscard]] const Arrived& current() const
    {
        check(expected - first < requests, "a request that did not arrive");
        return arrived[expected - first];
    }

    /// What did not arrive in this request is another message's.
    void check_arrived(const void* from, std::uint32_t bytes) const
    {
        const Arrived& request = current();
        check(bytes > 0 && from == buffer.get() + request.data &&
                  bytes == le32toh(request.header.length),
              "data that did not arrive");
    }

    void check_memory(std::uint32_t rkey, std::uint64_t addr) const
    {
        const dapx_xrc_request& header = current().header;
        check(rkey == le32toh(header.rkey) && addr == le64toh(header.addr), "another's memory");
    }

    /// The answer's data take the place of the segment.
    void check_alone() const
    {
        check(requests == 1 && whole && length == sizeof(dapx_xrc_request) &&
                  dapx_xrc_returns_data(current().header.opcode),
              "returns data, and is not alone");
    }

    /// Which requests there are. Nothing behind the first fault counts.
    void look_at_segment()
    {
        requests = 0;
        whole = false;
        first = expected;
        std::size_t at = 0;
        while (!whole && requests < arrived.size() && at + sizeof(dapx_xrc_request) <= length) {
            Arrived& next = arrived[requests];
            std::memcpy(&next.header, buffer.get() + at, sizeof(next.header));
            next.data = at + sizeof(next.header);
            const std::size_t end = next.data + le32toh(next.header.length);
            if (next.header.type != DAPX_XRC_REQUEST ||
                next.header.seq != htole32(expected + requests) || end > length ||
                (dapx_xrc_returns_data(next.header.opcode) && (at != 0 || end != length)))
                return;
            ++requests;
            whole = end == length;
            at = next_request(end);
        }
    }

    static void check_part(std::uint64_t total, std::uint32_t offset, std::uint32_t bytes)
    {
        check(std::uint64_t{offset} + bytes <= total, "memory behind the message's");
    }

    static void* find(dapx_xrc_responder* resp, u32 srqn)
    {
        Peer& peer = of(resp);
        check(!peer.open && srqn == le32toh(peer.current().header.srqn), "another queue");
        return srqn < peer.queues.size() && peer.queues[srqn].alive ? &peer.queues[srqn] : nullptr;
    }

    static dapx_status take(dapx_xrc_responder* resp, void* queue, void** receive, u64* size)
    {
        Queue& found = of(resp).queue_at(queue);
        check(!resp->receive, "two receives for one message");
        const std::uint8_t opcode = of(resp).current().header.opcode;
        check(opcode == DAPX_OP_SEND || opcode == DAPX_OP_SEND_IMM ||
                  opcode == DAPX_OP_RDMA_WRITE_IMM,
              "a receive for what takes none");
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
        if (arrival->status == DAPX_STATUS_SUCCESS) {
            const dapx_xrc_request& header = of(resp).current().header;
            check(arrival->opcode == header.opcode && arrival->length == le32toh(header.total),
                  "another message");
        }
        found.done = true;
    }

    static bool write(dapx_xrc_responder* resp, void* queue, u32 rkey, u64 addr, u32 total,
                      u32 offset, const void* from, u32 length)
    {
        Peer& peer = of(resp);
        (void)peer.queue_at(queue);
        peer.check_memory(rkey, addr);
        check_part(total, offset, length);
        peer.check_arrived(from, length);
        return rkey >= peer.refused;
    }

    static bool read(dapx_xrc_responder* resp, void* queue, u32 rkey, u64 addr, u32 total,
                     u32 offset, void* to, u32 length)
    {
        Peer& peer = of(resp);
        (void)peer.queue_at(queue);
        peer.check_memory(rkey, addr);
        peer.check_alone();
        check_part(total, offset, length);
        touch(to, length);
        return rkey >= peer.refused;
    }

    static bool atomic(dapx_xrc_responder* resp, void* queue, u32 rkey, u64 addr, u8, u64, u64,
                       u64* old)
    {
        Peer& peer = of(resp);
        (void)peer.queue_at(queue);
        peer.check_memory(rkey, addr);
        peer.check_alone();
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

    /// @p index: in the segment. A message is open for the first only: a part that is not the last
    /// fills its segment. @return how many data are behind the header.
    std::size_t put_right(std::uint8_t right, std::size_t index, dapx_xrc_request& header,
                          std::size_t bytes)
    {
        const bool continues = index == 0 && open;
        if (right & right_type)
            header.type = DAPX_XRC_REQUEST;
        if (right & right_seq)
            header.seq = htole32(expected + static_cast<std::uint32_t>(index));
        if (right & right_queue)
            header.srqn = htole32(le32toh(header.srqn) % queues.size());
        if (right & right_opcode)
            header.opcode %= DAPX_OP_FETCH_ADD + 1;
        if (right & right_total) {
            constexpr std::uint32_t most[] = {20, 3'000, DAPX_XRC_PAYLOAD + 1,
                                              4 * DAPX_XRC_PAYLOAD};
            const std::uint32_t raw = le32toh(header.total);
            header.total = htole32(dapx_xrc_is_atomic(header.opcode) ? sizeof(u64)
                                                                     : (raw >> 2) % most[raw & 3]);
        }
        if ((right & right_open) && continues) {
            header.opcode = opcode;
            header.srqn = htole32(srqn);
            header.total = htole32(total);
            header.rkey = htole32(rkey);
            header.addr = htole64(addr);
        }
        if (right & right_length) {
            const u32 left = le32toh(header.total) - (continues ? done : 0);
            header.length = dapx_xrc_returns_data(header.opcode)
                                ? 0
                                : htole32(std::min(left, DAPX_XRC_PAYLOAD));
        }
        return right & right_data ? le32toh(header.length) : bytes;
    }

    /// Puts what fits where the last segment was. What was there lies between requests, and behind
    /// the last.
    void build(Input& input, std::uint8_t shape)
    {
        const std::size_t count = 1 + shape % most_requests;
        std::size_t at = 0;
        std::size_t end = 0;
        for (std::size_t i = 0; i < count && at < DAPX_XRC_SEGMENT_SIZE; ++i) {
            const auto right = input.take<std::uint8_t>();
            const std::size_t bytes = input.take<std::uint16_t>() % (DAPX_XRC_SEGMENT_SIZE + 1);
            dapx_xrc_request header{};
            input.bytes(&header, sizeof(header));
            const std::size_t data = put_right(right, i, header, bytes);
            std::memcpy(buffer.get() + at, &header,
                        std::min(sizeof(header), DAPX_XRC_SEGMENT_SIZE - at));
            end = std::min<std::size_t>(at + sizeof(header) + data, DAPX_XRC_SEGMENT_SIZE);
            at = shape & shape_together ? end : next_request(end);
        }
        if (shape & shape_longer)
            end = std::min<std::size_t>(end + input.take<std::uint8_t>(), DAPX_XRC_SEGMENT_SIZE);
        if (shape & shape_cut)
            end = input.take<std::uint16_t>() % (DAPX_XRC_SEGMENT_SIZE + 1);
        length = static_cast<std::uint32_t>(end);
    }

    void arrives(Input& input)
    {
        const auto shape = input.take<std::uint8_t>();
        if (shape & shape_hello) {
            const dapx_xrc_hello hello = {.type = DAPX_XRC_HELLO,
                                          .version = DAPX_XRC_VERSION,
                                          .segment_size = htole16(DAPX_XRC_SEGMENT_SIZE),
                                          .magic = htole32(DAPX_XRC_MAGIC),
                                          .limit = 0};
            std::memcpy(buffer.get(), &hello, sizeof(hello));
            length = sizeof(hello);
        } else {
            build(input, shape);
        }
        look_at_segment();

        dapx_xrc_request head{};
        std::memcpy(&head, buffer.get(), std::min<std::size_t>(sizeof(head), length));
        const bool asks = le16toh(head.flags) & DAPX_XRC_ASK;
        const bool was_failed = failed;
        const bool was_dropping = dropping;
        const bool was_greeted = greeted;
        const std::uint64_t was_messages = messages;
        // A part that is not the last of its message: it is the segment's first, or none.
        const bool leaves_open =
            requests > 0 && !dapx_xrc_is_atomic(arrived[0].header.opcode) &&
            le32toh(arrived[0].header.total) - (open ? done : 0) > DAPX_XRC_PAYLOAD;
        calls = 0;
        dapx_xrc_reply reply{};
        dapx_xrc_respond(this, buffer.get(), length, &reply);
        check(!was_failed || (failed && reply.type == 0 && calls == 0), "failed, and yet answers");
        const std::uint32_t advance = expected - first;
        check(advance <= requests, "more is done than arrived");
        check(advance == 0 || was_greeted, "done before the hello");
        check(messages - was_messages == advance - (advance > 0 && leaves_open ? 1 : 0),
              "messages are counted wrong");
        check(reply.status == DAPX_STATUS_SUCCESS || !reply.has_data, "data of what was refused");
        const bool unheard = was_failed || reply.type == DAPX_XRC_WELCOME;
        const bool dropped =
            !unheard && was_dropping && dropping && reply.status == DAPX_STATUS_SUCCESS;
        if (unheard || dropped) {
            check(advance == 0 && calls == 0, "something is done though nothing is heard");
            check(!dropped || (requests == 0 && (reply.type != 0) == asks),
                  "what comes again is dropped, or not answered");
        } else if (reply.status == DAPX_STATUS_SUCCESS) {
            check(!dropping && whole && advance == requests, "done, but not all");
            check(reply.type != 0 && reply.now == (asks || reply.has_data),
                  "the segment's first request asks, and no other");
            check(demand == le32toh(head.demand), "another demand");
        } else {
            check(!whole || advance < requests, "all is done, and refused");
        }
        if (reply.status == DAPX_STATUS_RECEIVER_NOT_READY) {
            check(!receive && !failed && dropping, "not ready, and yet something is kept");
            check(advance < requests, "not ready for what did not arrive");
        } else if (reply.status != DAPX_STATUS_SUCCESS) {
            check(failed && reply.now, "refused, and goes on");
        }
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
