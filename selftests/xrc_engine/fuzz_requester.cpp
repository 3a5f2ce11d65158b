// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A requester with messages, and a peer that answers anything. An input is a list of steps; in an
// answer, bits say what is put right, so that it gets as far as one of an honest peer.
#include "fuzz.hpp"

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
constexpr std::uint32_t room = 40;

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
    void* buffer_ = nullptr;
    bool timer = false;
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
        return sender.buffer_ = only.get();
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
        touch(to, length);
        check(of(req).buffer_ != nullptr, "gathers without a buffer");
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
        check(usecs > 0, "no time to wait");
        of(req).timer = true;
    }

    static constexpr dapx_xrc_requester_ops operations = {
        .buffer = buffer,
        .send = send,
        .discard = discard,
        .gather = gather,
        .scatter = scatter,
        .done = done,
        .wait = wait,
    };

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
        message.total = total;
        message.again = (flags & 0xe0) == 0xa0;
        // Long ones, too.
        if ((flags & 0xe0) == 0x60)
            message.total <<= 16;
        if (dapx_xrc_is_atomic(message.opcode))
            message.total = sizeof(u64);
        dapx_xrc_submit(this, &message);
        dapx_xrc_transmit(this);
    }

    /// How many data the segment before @p before is to be answered with.
    [[nodiscard]] std::uint32_t data_before(std::uint32_t before) const
    {
        for (std::size_t i = done_; i < messages_.size() && payload != 0; ++i) {
            const Message& message = messages_[i];
            const std::uint64_t segments =
                message.total == 0 ? 1 : (std::uint64_t{message.total} - 1) / payload + 1;
            const std::uint32_t index = before - 1 - message.first;
            if (index < segments)
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
                    DAPX_STATUS_SUCCESS,        DAPX_STATUS_RECEIVER_NOT_READY,
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
        check(!failed || done_ == messages_.size(), "failed, and something is left");
    }
};

} // namespace
} // namespace dapx::xrc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace dapx::xrc::fuzz;
    Input input(data, size);
    Sender sender;
    dapx_xrc_requester_init(&sender, &Sender::operations, room, input.take<std::uint8_t>() % 8);
    // Near the wrap-around, mostly.
    sender.next_seq = sender.acked = static_cast<std::uint32_t>(input.take<std::int8_t>());
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
                sender.under_way -= back;
                sender.room += back;
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
        check(sender.room + sender.under_way == room, "room was lost");
    }
    dapx_xrc_requester_fail(&sender, DAPX_STATUS_TRANSPORT);
    check(sender.done_ == sender.messages_.size(), "something is left");
    return 0;
}
