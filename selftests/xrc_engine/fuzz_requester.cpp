// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A requester with messages, and a peer that answers anything. An input is a list of steps; in an
// answer, bits say what is put right, so that it gets as far as one of an honest peer.
#include "fuzz.hpp"
#include "segment.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace dapx::xrc::fuzz {
namespace {

enum Step : std::uint8_t {
    step_answer,
    step_submit,
    step_room,
    step_timer,
    step_fail,
    steps,
};

enum Right : std::uint8_t {
    right_welcome = 1 << 0,  // all of a welcome but its limit
    right_type = 1 << 1,     // an answer
    right_expected = 1 << 2, // as far behind what is done as it says, of what was sent
    right_limit = 1 << 3,    // as many more as it says
    right_data = 1 << 4,     // as many data as were asked for
    right_status = 1 << 5,   // one that there may be
    right_timer = 1 << 6,
};

constexpr std::size_t most_messages = 200;
constexpr std::uint32_t most_room = 40;

struct Message : dapx_xrc_message {
    std::uint32_t gathered = 0;
    std::uint32_t scattered = 0;
    bool broken = false;
    bool again = false; // submits another one when it is done
    bool done = false;
};

struct Sender : dapx_xrc_requester {
    std::deque<Message> messages_;
    std::size_t done_ = 0;
    std::uint32_t under_way = 0;
    std::uint32_t spare = 0; // room that it is lent if it has none
    std::uint32_t lent = 0;
    void* buffer_ = nullptr;
    bool timer = false;
    bool asked = true; // with the last segment that was sent
    // Where the data of the requests in the buffer are.
    std::vector<std::pair<const void*, std::uint32_t>> gathered;
    // Of each number from the first: which part of which message it is.
    struct Part {
        std::size_t message = 0;
        std::uint32_t offset = 0;
    };
    std::vector<Part> parts{Part{}};
    std::uint32_t start = 0;
    // What arrives.
    std::unique_ptr<std::uint8_t[]> arrived;
    std::uint32_t arrived_length = 0;

    [[nodiscard]] bool reaches(const void* from, std::uint32_t length) const
    {
        const auto* first = static_cast<const std::uint8_t*>(from);
        return first >= arrived.get() + sizeof(dapx_xrc_answer) &&
               first + length <= arrived.get() + arrived_length;
    }

    static Sender& of(dapx_xrc_requester* req) { return *static_cast<Sender*>(req); }

    static void* buffer(dapx_xrc_requester* req)
    {
        Sender& sender = of(req);
        check(!sender.buffer_ && req->room > 0 && !req->failed, "a buffer that is not there");
        // To the byte, so that the sanitizer sees one more. Always the same: allocating takes time.
        static const std::unique_ptr<std::uint8_t[]> only(new std::uint8_t[DAPX_XRC_SEGMENT_SIZE]);
        // What was in it before.
        std::memset(only.get(), 0xa5, DAPX_XRC_SEGMENT_SIZE);
        sender.gathered.clear();
        return sender.buffer_ = only.get();
    }

    /// A request that is sent: the one that is next, or was once.
    void look_at(const dapx_xrc_request& header, const std::byte* data, std::size_t& with_data)
    {
        const std::uint32_t index = le32toh(header.seq) - start;
        check(index < parts.size(), "a request too far");
        const Part part = parts[index];
        check(part.message >= done_ && part.message < messages_.size(), "no message");
        const Message& message = messages_[part.message];
        const bool returns_data = dapx_xrc_returns_data(message.opcode);
        const std::uint32_t share = std::min(message.total - part.offset, payload);
        const std::uint32_t bytes = le32toh(header.length);
        check(header.opcode == message.opcode && le32toh(header.total) == message.total &&
                  le32toh(header.srqn) == message.srqn && bytes == (returns_data ? 0 : share),
              "another request");
        check(((le16toh(header.flags) & DAPX_XRC_SOLICITED) != 0) == message.solicited,
              "other flags");
        if (bytes > 0) {
            check(with_data < gathered.size() && gathered[with_data].first == data &&
                      gathered[with_data].second == bytes,
                  "other data");
            ++with_data;
        }
        for (std::size_t i = done_; message.fence && part.offset == 0 && i < part.message; ++i)
            check(!dapx_xrc_returns_data(messages_[i].opcode), "does not wait at a fence");
        const bool last =
            dapx_xrc_is_atomic(message.opcode) || message.total - part.offset <= share;
        const Part behind =
            last ? Part{part.message + 1, 0} : Part{part.message, part.offset + share};
        if (index + 1 == parts.size())
            parts.push_back(behind);
        check(parts[index + 1].message == behind.message &&
                  parts[index + 1].offset == behind.offset,
              "cut in another way than before");
    }

    void look_at_segment(const void* buffer, std::uint32_t length)
    {
        dapx_xrc_request first{};
        std::memcpy(&first, buffer, sizeof(first));
        std::size_t with_data = 0;
        std::uint32_t requests = 0;
        const char* wrong =
            each_request(static_cast<const std::byte*>(buffer), length,
                         [&](const dapx_xrc_request& header, const std::byte* data) {
                             ++requests;
                             look_at(header, data, with_data);
                         });
        check(!wrong, wrong);
        check(with_data == gathered.size(), "data of no request");
        check(length <= payload + sizeof(first), "more than the peer takes");
        check(le32toh(first.seq) + requests == next_seq, "another request than the next");
        check(le32toh(first.demand) ==
                  next_seq - acked + messages_.size() - parts[next_seq - start].message,
              "another demand");
        asked = le16toh(first.flags) & DAPX_XRC_ASK;
    }

    void give_back(void* buffer)
    {
        check(buffer && buffer == buffer_, "another buffer");
        buffer_ = nullptr;
    }

    static void send(dapx_xrc_requester* req, void* buffer, u32 length)
    {
        Sender& sender = of(req);
        check(length <= DAPX_XRC_SEGMENT_SIZE, "a segment is too long");
        check(static_cast<std::int32_t>(req->limit - req->sent) >= 0, "sent without a credit");
        check(!req->failed, "sends though it failed");
        if (req->payload != 0)
            sender.look_at_segment(buffer, length);
        sender.give_back(buffer);
        ++sender.under_way;
    }

    static void discard(dapx_xrc_requester* req, void* buffer) { of(req).give_back(buffer); }

    static bool gather(dapx_xrc_requester* req, dapx_xrc_message* msg, u32 offset, void* to,
                       u32 length)
    {
        auto& message = static_cast<Message&>(*msg);
        check(!message.done && !dapx_xrc_returns_data(message.opcode), "gathers what is done");
        check(length > 0 && std::uint64_t{offset} + length <= message.total, "gathers too much");
        Sender& sender = of(req);
        check(sender.buffer_ != nullptr, "gathers without a buffer");
        touch(to, length);
        sender.gathered.emplace_back(to, length);
        return !message.broken;
    }

    static bool scatter(dapx_xrc_requester* req, dapx_xrc_message* msg, u32 offset,
                        const void* from, u32 length)
    {
        auto& message = static_cast<Message&>(*msg);
        check(!message.done && dapx_xrc_returns_data(message.opcode), "scatters what is done");
        check(offset == message.scattered, "scatters in another order");
        check(length > 0 && std::uint64_t{offset} + length <= message.total, "scatters too much");
        check(of(req).reaches(from, length), "data that did not arrive");
        message.scattered += length;
        return !message.broken;
    }

    static void done(dapx_xrc_requester* req, dapx_xrc_message* msg, dapx_status status)
    {
        Sender& sender = of(req);
        auto& message = static_cast<Message&>(*msg);
        check(sender.done_ < sender.messages_.size() &&
                  &sender.messages_[sender.done_] == &message && !message.done,
              "done in another order, or twice");
        check(req->failed == (status != DAPX_STATUS_SUCCESS), "one failed, the rest not");
        check(status != DAPX_STATUS_SUCCESS || !dapx_xrc_returns_data(message.opcode) ||
                  message.scattered == message.total,
              "read is less than asked for");
        check(status != DAPX_STATUS_SUCCESS ||
                  static_cast<std::int32_t>(req->next_seq - message.first) > 0,
              "done, but not sent");
        message.done = true;
        ++sender.done_;
        if (message.again && sender.messages_.size() < most_messages) {
            Message& other = sender.messages_.emplace_back();
            other.total = message.total / 2;
            other.again = other.total > 0;
            dapx_xrc_submit(req, &other);
        }
    }

    static void wait(dapx_xrc_requester* req, u32 usecs)
    {
        check(usecs > 0 || req->failed, "no time to wait");
        of(req).timer = true;
    }

    static void make_room(dapx_xrc_requester* req)
    {
        Sender& sender = of(req);
        check(req->room == 0 && !req->failed && req->next && req->sent != req->limit,
              "room for nothing");
        if (sender.lent == sender.spare)
            return;
        ++sender.lent;
        ++req->room;
    }

    static constexpr dapx_xrc_requester_ops operations = {
        .buffer = buffer,
        .send = send,
        .discard = discard,
        .gather = gather,
        .scatter = scatter,
        .done = done,
        .wait = wait,
        .make_room = nullptr,
    };
    static constexpr dapx_xrc_requester_ops lending = [] {
        dapx_xrc_requester_ops ops = operations;
        ops.make_room = make_room;
        return ops;
    }();

    void submit(Input& input)
    {
        const auto flags = input.take<std::uint8_t>();
        const auto total = input.take<std::uint16_t>();
        if (messages_.size() == most_messages)
            return;
        Message& message = messages_.emplace_back();
        message.opcode = (flags & 7) % (DAPX_OP_FETCH_ADD + 1);
        message.fence = flags & 8;
        message.solicited = flags & 16;
        message.broken = (flags & 0xe0) == 0xe0;
        // Mostly such that several share a segment.
        message.total = flags & 0x20 ? total : total % 200;
        message.again = (flags & 0xe0) == 0xa0;
        // Long ones, too.
        if ((flags & 0xe0) == 0x60)
            message.total <<= 16;
        if (dapx_xrc_is_atomic(message.opcode))
            message.total = sizeof(u64);
        dapx_xrc_submit(this, &message);
        // Some wait for the next, or for an answer.
        if (total % 4 != 0)
            dapx_xrc_transmit(this);
    }

    /// How many data the request before @p before is to be answered with.
    [[nodiscard]] std::uint32_t data_before(std::uint32_t before) const
    {
        for (std::size_t i = done_; i < messages_.size() && payload != 0; ++i) {
            const Message& message = messages_[i];
            const std::uint64_t requests =
                message.total == 0 ? 1 : (std::uint64_t{message.total} - 1) / payload + 1;
            const std::uint32_t index = before - 1 - message.first;
            if (index < requests)
                return std::min(message.total - index * payload, payload);
            if (&message == next)
                break;
        }
        return 0;
    }

    void answered(Input& input)
    {
        const auto right = input.take<std::uint8_t>();
        std::uint32_t length = input.take<std::uint16_t>() % (DAPX_XRC_SEGMENT_SIZE + 1);
        dapx_xrc_answer header{};
        dapx_xrc_hello hello{};
        const void* from = &header;
        std::size_t size = sizeof(header);
        if (right & right_welcome) {
            hello = {.type = DAPX_XRC_WELCOME,
                     .version = DAPX_XRC_VERSION,
                     .segment_size = htole16(static_cast<std::uint16_t>(length)),
                     .magic = htole32(DAPX_XRC_MAGIC),
                     .limit = htole32(limit + input.take<std::uint8_t>())};
            from = &hello;
            size = sizeof(hello);
            length = sizeof(hello);
        } else {
            input.bytes(&header, sizeof(header));
            if (right & right_type)
                header.type = DAPX_XRC_ANSWER;
            if (right & right_expected)
                header.expected =
                    htole32(acked + le32toh(header.expected) % (next_seq - acked + 1));
            if (right & right_limit)
                header.limit = htole32(limit + le32toh(header.limit) % 64);
            if (right & right_status) {
                constexpr std::uint8_t statuses[] = {
                    DAPX_STATUS_SUCCESS,        DAPX_STATUS_SUCCESS,
                    DAPX_STATUS_REMOTE_QUEUE,   DAPX_STATUS_RECEIVER_NOT_READY,
                    DAPX_STATUS_REMOTE_ACCESS,  DAPX_STATUS_RECEIVER_NOT_READY,
                    DAPX_STATUS_REMOTE_INVALID, DAPX_STATUS_REMOTE_OPERATION};
                header.status = statuses[header.status % 8];
            }
            if (right & right_timer)
                header.rnr_timer %= 32;
            if (right & right_data)
                length = sizeof(header) +
                         (header.flags & DAPX_XRC_DATA ? data_before(le32toh(header.expected)) : 0);
        }
        // To the byte, so that the sanitizer sees one more.
        arrived.reset(new std::uint8_t[length]);
        arrived_length = length;
        std::memcpy(arrived.get(), from, std::min<std::size_t>(size, length));

        const bool was_failed = failed;
        const std::uint32_t was_acked = acked;
        const std::uint32_t was_sent = next_seq;
        dapx_xrc_answered(this, arrived.get(), length);
        check(!was_failed || failed, "failed, and goes on");
        check(acked - was_acked <= was_sent - was_acked, "done, but not sent");
        check(!failed || done_ == messages_.size() || timer, "failed, and something is left");
    }
};

} // namespace
} // namespace dapx::xrc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace dapx::xrc::fuzz;
    Input input(data, size);
    Sender sender;
    const auto options = input.take<std::uint8_t>();
    sender.spare = options >> 5;
    // There is little, if more is lent.
    const std::uint32_t room = sender.spare ? 1 + (options >> 3) % 4 : most_room;
    dapx_xrc_requester_init(&sender, sender.spare ? &Sender::lending : &Sender::operations, room,
                            options % 8);
    // Near the wrap-around, mostly.
    sender.next_seq = sender.acked = static_cast<std::uint32_t>(input.take<std::int8_t>());
    sender.start = sender.acked;
    const auto sent = static_cast<std::uint32_t>(input.take<std::int8_t>());
    sender.sent += sent;
    sender.limit += sent;
    while (!input.empty()) {
        const auto step = input.take<std::uint8_t>();
        switch (step % steps) {
        case step_answer:
            sender.answered(input);
            break;
        case step_submit:
            sender.submit(input);
            break;
        case step_room:
            if (sender.under_way > 0) {
                const std::uint32_t back = step >= 128 ? 1 : sender.under_way;
                const std::uint32_t returned = std::min(back, sender.lent);
                sender.under_way -= back;
                sender.lent -= returned;
                sender.room += back - returned;
                dapx_xrc_transmit(&sender);
            }
            break;
        case step_timer:
            if (sender.timer) {
                sender.timer = false;
                dapx_xrc_waited(&sender);
            }
            break;
        default:
            if (input.take<std::uint8_t>() == 0xee)
                dapx_xrc_requester_fail(&sender, DAPX_STATUS_TRANSPORT);
            break;
        }
        check(!sender.buffer_, "keeps a buffer");
        check(sender.room + sender.under_way == room + sender.lent, "room was lost");
        const bool waits_for_room = sender.room == 0 && sender.under_way > 0;
        check(sender.asked || sender.failed || sender.waiting || waits_for_room,
              "waits for an answer, but did not ask");
    }
    sender.timer = false;
    dapx_xrc_requester_fail(&sender, DAPX_STATUS_TRANSPORT);
    while (sender.timer) {
        sender.timer = false;
        dapx_xrc_waited(&sender);
    }
    check(sender.done_ == sender.messages_.size(), "something is left");
    return 0;
}
