// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The sending half alone: the answers are made by hand, so what the world says of data that never
// arrived is no matter.
#include "world.hpp"

#include <gtest/gtest.h>

#include <array>
#include <endian.h>

namespace dapx::xrc::test {
namespace {

constexpr std::uint32_t payload = DAPX_XRC_PAYLOAD;
constexpr std::uint32_t plenty = 1000;

struct Alone {
    World world{{.room = plenty}};

    Alone()
    {
        world.add_queue();
        world.add_queue();
    }

    dapx_xrc_request sent(std::size_t index)
    {
        return world.to_responder.at(index).as<dapx_xrc_request>();
    }
    std::uint32_t seq(std::size_t index) { return le32toh(sent(index).seq); }
    bool asks(std::size_t index) { return (le16toh(sent(index).flags) & DAPX_XRC_ASK) != 0; }
    std::size_t length(std::size_t index)
    {
        return world.to_responder.at(index).bytes->size() - sizeof(dapx_xrc_request);
    }
    /// Which of the segments on the wire ask.
    std::vector<std::size_t> asking()
    {
        std::vector<std::size_t> found;
        for (std::size_t i = 0; i < world.to_responder.size(); ++i) {
            if (asks(i))
                found.push_back(i);
        }
        return found;
    }

    void put(Bytes bytes)
    {
        world.put_answer(std::move(bytes));
        world.deliver_answer();
    }

    static dapx_xrc_hello hello(std::uint32_t limit)
    {
        return {.type = DAPX_XRC_WELCOME,
                .version = DAPX_XRC_VERSION,
                .segment_size = htole16(DAPX_XRC_SEGMENT_SIZE),
                .magic = htole32(DAPX_XRC_MAGIC),
                .limit = htole32(limit)};
    }

    /// @p credits: for what comes after the hellos.
    void welcome(std::uint32_t credits = plenty)
    {
        put(World::bytes_of(hello(world.requester.sent + credits)));
        ASSERT_FALSE(world.requester.failed);
        world.to_responder.clear();
        world.transmit();
    }

    static dapx_xrc_answer reply(std::uint32_t expected, std::uint32_t limit,
                                 dapx_status status = DAPX_STATUS_SUCCESS)
    {
        return {.type = DAPX_XRC_ANSWER,
                .status = static_cast<std::uint8_t>(status),
                .flags = 0,
                .rnr_timer = 0,
                .expected = htole32(expected),
                .limit = htole32(limit),
                .reserved = 0};
    }

    void answer(std::uint32_t expected, dapx_status status = DAPX_STATUS_SUCCESS)
    {
        put(World::bytes_of(reply(expected, world.requester.limit, status)));
    }

    void answer_data(std::uint32_t expected, std::size_t bytes)
    {
        dapx_xrc_answer header = reply(expected, world.requester.limit);
        header.flags = DAPX_XRC_DATA;
        put(World::bytes_of(header, bytes));
    }

    /// Greeted, and these messages submitted, of which the wire has what was sent.
    void start(const std::vector<Wanted>& wanted, std::uint32_t credits = plenty)
    {
        for (const Wanted& message : wanted)
            world.enqueue(message);
        world.transmit();
        world.to_responder.clear();
        put(World::bytes_of(hello(world.requester.sent + credits)));
        ASSERT_FALSE(world.requester.failed);
    }
};

struct XrcRequester : ::testing::Test, Alone {};

// ------------------------------------------------------------------------------------- hellos

TEST_F(XrcRequester, FirstComesAHello)
{
    EXPECT_TRUE(world.to_responder.empty());
    world.submit({.total = 10});
    world.submit({.total = 10});
    ASSERT_EQ(world.to_responder.size(), 1U);
    const auto greeting = world.to_responder[0].as<dapx_xrc_hello>();
    EXPECT_EQ(world.to_responder[0].bytes->size(), sizeof(greeting));
    EXPECT_EQ(greeting.type, DAPX_XRC_HELLO);
    EXPECT_EQ(greeting.version, DAPX_XRC_VERSION);
    EXPECT_EQ(le32toh(greeting.magic), std::uint32_t{DAPX_XRC_MAGIC});
    EXPECT_EQ(le16toh(greeting.segment_size), DAPX_XRC_SEGMENT_SIZE);
    EXPECT_EQ(world.timers, (std::vector<std::uint32_t>{50'000}));
    put(World::bytes_of(hello(plenty)));
    ASSERT_EQ(world.to_responder.size(), 3U);
    EXPECT_EQ(seq(1), 0U);
    EXPECT_EQ(seq(2), 1U);
}

TEST_F(XrcRequester, SaysHelloTwiceAndGivesUp)
{
    world.submit({.total = 10});
    world.submit({.total = 10});
    world.to_responder.clear();
    ASSERT_TRUE(world.fire());
    ASSERT_EQ(world.to_responder.size(), 1U);
    EXPECT_EQ(world.to_responder[0].as<dapx_xrc_hello>().type, DAPX_XRC_HELLO);
    EXPECT_EQ(world.timers, (std::vector<std::uint32_t>{50'000, 10'000'000}));
    EXPECT_EQ(world.done(), 0U);
    world.to_responder.clear();
    ASSERT_TRUE(world.fire());
    EXPECT_EQ(world.status(0), DAPX_STATUS_TRANSPORT);
    EXPECT_EQ(world.status(1), DAPX_STATUS_FLUSHED);
    EXPECT_TRUE(world.to_responder.empty());
}

TEST_F(XrcRequester, HelloWaitsForRoom)
{
    World full{{.room = 0}};
    full.add_queue();
    full.submit({.total = 1});
    EXPECT_TRUE(full.to_responder.empty());
    EXPECT_FALSE(full.timer);
    full.requester.room = 1;
    full.transmit();
    EXPECT_EQ(full.to_responder.size(), 1U);
    // The second one too.
    ASSERT_TRUE(full.fire());
    EXPECT_EQ(full.to_responder.size(), 1U);
    full.requester.room = 1;
    full.transmit();
    EXPECT_EQ(full.to_responder.size(), 2U);
    EXPECT_EQ(full.timer, 10'000'000U);
}

TEST_F(XrcRequester, AnotherWelcomeOnlyBringsCredits)
{
    start({{.total = 10}, {.total = 10}, {.total = 10}}, 1);
    EXPECT_EQ(world.to_responder.size(), 1U);
    dapx_xrc_hello second = hello(world.requester.limit + 1);
    second.segment_size = htole16(1000);
    put(World::bytes_of(second));
    EXPECT_EQ(world.to_responder.size(), 2U);
    EXPECT_EQ(world.requester.payload, payload);
    EXPECT_FALSE(world.requester.failed);
    // The timer of a hello may still come.
    ASSERT_TRUE(world.fire());
    EXPECT_EQ(world.to_responder.size(), 2U);
    EXPECT_EQ(world.done(), 0U);
}

TEST_F(XrcRequester, WelcomesThatMakeNoSense)
{
    using Change = void (*)(dapx_xrc_hello&, Bytes&);
    const std::array<Change, 9> changes = {
        [](dapx_xrc_hello& in, Bytes&) { in.version = DAPX_XRC_VERSION + 1; },
        [](dapx_xrc_hello& in, Bytes&) { in.magic ^= 1; },
        [](dapx_xrc_hello& in, Bytes&) { in.segment_size = 2 * sizeof(dapx_xrc_request) - 1; },
        [](dapx_xrc_hello& in, Bytes&) { in.segment_size = 0; },
        [](dapx_xrc_hello& in, Bytes&) { in.limit = htole32(1); },
        [](dapx_xrc_hello& in, Bytes&) { in.limit = htole32(65536 + 3); },
        [](dapx_xrc_hello& in, Bytes&) { in.type = DAPX_XRC_HELLO; },
        [](dapx_xrc_hello&, Bytes& bytes) { bytes.pop_back(); },
        [](dapx_xrc_hello&, Bytes& bytes) { bytes.emplace_back(); },
    };
    for (std::size_t i = 0; i < changes.size(); ++i) {
        SCOPED_TRACE(i);
        World spoilt;
        spoilt.add_queue();
        spoilt.submit({.total = 1});
        spoilt.submit({.total = 1});
        spoilt.put_answer(World::bytes_of(hello(10)));
        World::change<dapx_xrc_hello>(spoilt.to_requester, 0, changes[i]);
        spoilt.deliver_answer();
        EXPECT_EQ(spoilt.status(0), DAPX_STATUS_BAD_RESPONSE);
        EXPECT_EQ(spoilt.status(1), DAPX_STATUS_FLUSHED);
        EXPECT_EQ(spoilt.to_responder.size(), 1U);
    }
}

TEST_F(XrcRequester, WelcomeWithoutAHello)
{
    put(World::bytes_of(hello(10)));
    EXPECT_TRUE(world.requester.failed);
}

TEST_F(XrcRequester, SegmentsAreAsSmallAsThePeerWants)
{
    world.enqueue({.total = 100});
    world.enqueue({.opcode = DAPX_OP_RDMA_READ, .total = 57});
    world.transmit();
    world.to_responder.clear();
    dapx_xrc_hello small = hello(plenty);
    small.segment_size = htole16(2 * sizeof(dapx_xrc_request));
    put(World::bytes_of(small));
    ASSERT_EQ(world.to_responder.size(), 4U);
    EXPECT_EQ(length(0), 56U);
    EXPECT_EQ(length(1), 44U);
    EXPECT_EQ(length(2), 0U);
    answer_data(3, 56);
    EXPECT_EQ(world.done(), 1U);
    answer_data(4, 1);
    EXPECT_EQ(world.status(1), DAPX_STATUS_SUCCESS);
}

TEST_F(XrcRequester, SegmentsAreNotLargerThanItsOwn)
{
    world.enqueue({.total = 70'000});
    world.transmit();
    world.to_responder.clear();
    dapx_xrc_hello large = hello(plenty);
    large.segment_size = 0xffff;
    put(World::bytes_of(large));
    ASSERT_EQ(world.to_responder.size(), (70'000 + payload - 1) / payload);
    EXPECT_EQ(length(0), payload);
}

// ------------------------------------------------------------------------------------ sending

TEST_F(XrcRequester, WhatASegmentSays)
{
    start({{.opcode = DAPX_OP_SEND_IMM,
            .queue = 1,
            .total = payload + 5,
            .solicited = true,
            .imm = 0x01020304},
           {.opcode = DAPX_OP_COMPARE_SWAP, .compare_add = 3, .swap = 4, .rkey = 9}});
    ASSERT_EQ(world.to_responder.size(), 3U);
    for (std::size_t i = 0; i < 2; ++i) {
        const dapx_xrc_request out = sent(i);
        EXPECT_EQ(out.type, DAPX_XRC_REQUEST);
        EXPECT_EQ(out.opcode, DAPX_OP_SEND_IMM);
        EXPECT_EQ(le16toh(out.flags), DAPX_XRC_SOLICITED);
        EXPECT_EQ(le32toh(out.seq), i);
        EXPECT_EQ(le32toh(out.srqn), world.queue(1).srqn);
        EXPECT_EQ(le32toh(out.total), payload + 5);
        EXPECT_EQ(le32toh(out.imm), 0x01020304U);
    }
    EXPECT_EQ(length(0), payload);
    EXPECT_EQ(length(1), 5U);
    EXPECT_EQ(length(2), 0U);
    const dapx_xrc_request atomic = sent(2);
    EXPECT_EQ(le32toh(atomic.total), 8U);
    EXPECT_EQ(le32toh(atomic.rkey), 9U);
    EXPECT_EQ(le64toh(atomic.addr), world.message(1).addr);
    EXPECT_EQ(le64toh(atomic.compare_add), 3U);
    EXPECT_EQ(le64toh(atomic.swap), 4U);
    // One under way and two wanting to be; two, one; three, none.
    EXPECT_EQ(le32toh(sent(0).demand), 3U);
    EXPECT_EQ(le32toh(sent(1).demand), 3U);
    EXPECT_EQ(le32toh(sent(2).demand), 3U);
}

TEST_F(XrcRequester, SendsAsManyAsAreGranted)
{
    start({{.total = 2 * payload}, {.total = 2 * payload}, {.total = 1}}, 3);
    EXPECT_EQ(world.to_responder.size(), 3U);
    EXPECT_EQ(asking(), (std::vector<std::size_t>{2}));
    world.transmit();
    EXPECT_EQ(world.to_responder.size(), 3U);
    // An answer that grants no more.
    answer(1);
    EXPECT_EQ(world.to_responder.size(), 3U);
    put(World::bytes_of(reply(3, world.requester.limit + 1)));
    EXPECT_EQ(world.to_responder.size(), 4U);
    EXPECT_EQ(world.done(), 1U);
    put(World::bytes_of(reply(4, world.requester.limit + 5)));
    ASSERT_EQ(world.to_responder.size(), 5U);
    EXPECT_EQ(asking(), (std::vector<std::size_t>{2, 3, 4}));
    answer(5);
    EXPECT_EQ(world.status(2), DAPX_STATUS_SUCCESS);
}

TEST_F(XrcRequester, SendsAsManyAsThereIsRoomFor)
{
    start({{.total = 5 * payload}});
    ASSERT_EQ(world.to_responder.size(), 5U);
    World narrow{{.room = 2}};
    narrow.add_queue();
    narrow.submit({.total = 5 * payload});
    ASSERT_TRUE(narrow.deliver_request() && narrow.deliver_answer());
    EXPECT_EQ(narrow.to_responder.size(), 1U);
    EXPECT_EQ(le16toh(narrow.to_responder[0].as<dapx_xrc_request>().flags), DAPX_XRC_ASK);
    ASSERT_TRUE(narrow.complete_send() && narrow.complete_send());
    EXPECT_EQ(narrow.to_responder.size(), 3U);
}

TEST_F(XrcRequester, OnlyTheLastSegmentAsks)
{
    start({{.total = 3 * payload}, {.opcode = DAPX_OP_RDMA_WRITE, .total = 1}, {.total = 0}});
    ASSERT_EQ(world.to_responder.size(), 5U);
    EXPECT_EQ(asking(), (std::vector<std::size_t>{4}));
    world.submit({.total = 1});
    EXPECT_EQ(asking(), (std::vector<std::size_t>{4, 5}));
}

TEST_F(XrcRequester, AFenceWaitsForDataThatIsAskedFor)
{
    for (const auto opcode : {DAPX_OP_RDMA_READ, DAPX_OP_COMPARE_SWAP, DAPX_OP_FETCH_ADD}) {
        Alone other;
        other.start({{.opcode = DAPX_OP_SEND, .total = 1},
                     {.opcode = opcode, .total = 8},
                     {.total = 2 * payload, .fence = true},
                     {.total = 1, .fence = true}});
        ASSERT_EQ(other.world.to_responder.size(), 2U);
        EXPECT_EQ(other.asking(), (std::vector<std::size_t>{1}));
        other.answer(1);
        EXPECT_EQ(other.world.to_responder.size(), 2U);
        other.answer_data(2, 8);
        EXPECT_EQ(other.world.to_responder.size(), 5U);
        EXPECT_EQ(other.asking(), (std::vector<std::size_t>{1, 4}));
    }
    start({{.total = 1}, {.opcode = DAPX_OP_RDMA_WRITE, .total = 1}, {.total = 1, .fence = true}});
    EXPECT_EQ(world.to_responder.size(), 3U);
}

TEST_F(XrcRequester, MemoryThatFailsInTheMiddle)
{
    start({{.total = 1}});
    world.enqueue({.opcode = DAPX_OP_RDMA_WRITE, .total = 4 * payload, .broken_at = 2 * payload});
    world.enqueue({.total = 1});
    world.transmit();
    EXPECT_EQ(world.to_responder.size(), 3U);
    // The first may have arrived; nobody knows.
    EXPECT_EQ(world.status(0), DAPX_STATUS_FLUSHED);
    EXPECT_EQ(world.status(1), DAPX_STATUS_LOCAL_PROTECTION);
    EXPECT_EQ(world.status(2), DAPX_STATUS_FLUSHED);
    EXPECT_TRUE(world.requester.failed);
    EXPECT_EQ(world.violations(), std::vector<std::string>{});
}

TEST_F(XrcRequester, NothingIsTakenAfterAFailure)
{
    start({{.total = 1}});
    world.break_requester(DAPX_STATUS_TRANSPORT);
    EXPECT_EQ(world.status(0), DAPX_STATUS_TRANSPORT);
    world.to_responder.clear();
    world.submit({.total = 1});
    EXPECT_EQ(world.status(1), DAPX_STATUS_FLUSHED);
    world.break_requester(DAPX_STATUS_TRANSPORT);
    answer(1);
    world.timer = 1;
    ASSERT_TRUE(world.fire());
    EXPECT_EQ(world.done(), 2U);
    EXPECT_TRUE(world.to_responder.empty());
    EXPECT_EQ(world.violations(), std::vector<std::string>{});
}

TEST_F(XrcRequester, TheLongestMessage)
{
    // One segment more than 32 bits of rounding up can count.
    start({{.total = 0xffffffff}, {.total = 1}}, 2);
    EXPECT_EQ(world.to_responder.size(), 2U);
    answer(1);
    EXPECT_EQ(world.done(), 0U);
    EXPECT_EQ(world.requester.acked, 1U);
    // Its last segments, as if all before were done.
    const std::uint32_t segments = 0xffffffff / payload + 1;
    world.requester.next_seq = world.requester.acked = segments - 2;
    world.to_responder.clear();
    put(World::bytes_of(reply(segments - 2, world.requester.limit + 9)));
    ASSERT_EQ(world.to_responder.size(), 3U);
    EXPECT_EQ(length(0), payload);
    EXPECT_EQ(length(1), 0xffffffff % payload);
    EXPECT_EQ(length(2), 1U);
    answer(segments);
    EXPECT_EQ(world.done(), 1U);
    answer(segments + 1);
    EXPECT_EQ(world.done(), 2U);
}

// ------------------------------------------------------------------------------------ answers

TEST_F(XrcRequester, AMessageIsDoneWithItsLastSegment)
{
    start({{.total = 3 * payload}, {.total = 0}, {.total = 1}});
    answer(2);
    EXPECT_EQ(world.done(), 0U);
    answer(3);
    EXPECT_EQ(world.done(), 1U);
    answer(3);
    EXPECT_EQ(world.done(), 1U);
    answer(5);
    EXPECT_EQ(world.done(), 3U);
    EXPECT_EQ(world.status(2), DAPX_STATUS_SUCCESS);
}

TEST_F(XrcRequester, DataAreAnsweredOneByOne)
{
    start({{.total = 1}, {.opcode = DAPX_OP_RDMA_READ, .total = payload + 1}, {.total = 1}});
    ASSERT_EQ(world.to_responder.size(), 4U);
    answer_data(2, payload);
    EXPECT_EQ(world.done(), 1U);
    answer_data(3, 1);
    EXPECT_EQ(world.done(), 2U);
    answer(4);
    EXPECT_EQ(world.done(), 3U);
    EXPECT_EQ(world.status(2), DAPX_STATUS_SUCCESS);
}

TEST_F(XrcRequester, DataAreNotAnsweredWithWhatIsBehindThem)
{
    start({{.opcode = DAPX_OP_FETCH_ADD}, {.total = 1}});
    answer_data(2, 8);
    EXPECT_EQ(world.status(0), DAPX_STATUS_BAD_RESPONSE);
    EXPECT_EQ(world.status(1), DAPX_STATUS_FLUSHED);
    EXPECT_EQ(world.message(0).scattered, 0U);
}

TEST_F(XrcRequester, MemoryThatFailsWhenDataCome)
{
    start({{.total = 1},
           {.opcode = DAPX_OP_RDMA_READ, .total = payload + 1, .broken_at = payload},
           {.total = 1}});
    answer_data(2, payload);
    EXPECT_FALSE(world.requester.failed);
    answer_data(3, 1);
    EXPECT_EQ(world.status(0), DAPX_STATUS_SUCCESS);
    EXPECT_EQ(world.status(1), DAPX_STATUS_LOCAL_PROTECTION);
    EXPECT_EQ(world.status(2), DAPX_STATUS_FLUSHED);
}

TEST_F(XrcRequester, WhatThePeerRefuses)
{
    for (int status = 1; status < 256; ++status) {
        SCOPED_TRACE(status);
        Alone other;
        other.start({{.total = 1}, {.total = 1}, {.total = 1}});
        if (status == DAPX_STATUS_RECEIVER_NOT_READY)
            continue;
        other.answer(1, static_cast<dapx_status>(status));
        const bool known = status == DAPX_STATUS_REMOTE_ACCESS ||
                           status == DAPX_STATUS_REMOTE_INVALID ||
                           status == DAPX_STATUS_REMOTE_OPERATION;
        EXPECT_EQ(other.world.status(0), DAPX_STATUS_SUCCESS);
        EXPECT_EQ(other.world.status(1), known ? status : DAPX_STATUS_BAD_RESPONSE);
        EXPECT_EQ(other.world.status(2), DAPX_STATUS_FLUSHED);
    }
}

TEST_F(XrcRequester, AnswersThatMakeNoSense)
{
    using Change = void (*)(dapx_xrc_answer&, Bytes&);
    // On the wire: a send of two segments, a read of two, a send. The first is done.
    const std::vector<std::pair<const char*, Change>> changes = {
        {"backwards", [](dapx_xrc_answer& in, Bytes&) { in.expected = 0; }},
        {"not sent", [](dapx_xrc_answer& in, Bytes&) { in.expected = htole32(6); }},
        {"far away", [](dapx_xrc_answer& in, Bytes&) { in.expected = htole32(1U << 31); }},
        {"a read without data", [](dapx_xrc_answer& in, Bytes&) { in.expected = htole32(3); }},
        {"and with a flag only",
         [](dapx_xrc_answer& in, Bytes&) {
             in.expected = htole32(3);
             in.flags = DAPX_XRC_DATA;
         }},
        {"data of a send",
         [](dapx_xrc_answer& in, Bytes& bytes) {
             in.expected = htole32(2);
             in.flags = DAPX_XRC_DATA;
             bytes.resize(bytes.size() + payload);
         }},
        {"data of nothing",
         [](dapx_xrc_answer& in, Bytes& bytes) {
             in.flags = DAPX_XRC_DATA;
             bytes.resize(bytes.size() + 4);
         }},
        {"empty data of nothing", [](dapx_xrc_answer& in, Bytes&) { in.flags = DAPX_XRC_DATA; }},
        {"two reads in one",
         [](dapx_xrc_answer& in, Bytes& bytes) {
             in.expected = htole32(4);
             in.flags = DAPX_XRC_DATA;
             bytes.resize(bytes.size() + payload);
         }},
        {"a read and more in one",
         [](dapx_xrc_answer& in, Bytes& bytes) {
             in.expected = htole32(5);
             in.flags = DAPX_XRC_DATA;
             bytes.resize(bytes.size() + payload);
         }},
        {"too many data",
         [](dapx_xrc_answer& in, Bytes& bytes) {
             in.expected = htole32(3);
             in.flags = DAPX_XRC_DATA;
             bytes.resize(bytes.size() + payload + 1);
         }},
        {"too few data",
         [](dapx_xrc_answer& in, Bytes& bytes) {
             in.expected = htole32(3);
             in.flags = DAPX_XRC_DATA;
             bytes.resize(bytes.size() + payload - 1);
         }},
        {"data without the flag",
         [](dapx_xrc_answer& in, Bytes& bytes) {
             in.expected = htole32(3);
             bytes.resize(bytes.size() + payload);
         }},
        {"credits taken back",
         [](dapx_xrc_answer& in, Bytes&) { in.limit = htole32(le32toh(in.limit) - 1); }},
        {"absurd credits",
         [](dapx_xrc_answer& in, Bytes&) { in.limit = htole32(le32toh(in.limit) + 65537); }},
        {"more and more credits",
         [](dapx_xrc_answer& in, Bytes&) { in.limit = htole32(le32toh(in.limit) + 65500); }},
        {"no such timer", [](dapx_xrc_answer& in, Bytes&) { in.rnr_timer = 32; }},
        {"a hello", [](dapx_xrc_answer& in, Bytes&) { in.type = DAPX_XRC_HELLO; }},
        {"a request", [](dapx_xrc_answer& in, Bytes&) { in.type = DAPX_XRC_REQUEST; }},
        {"no type", [](dapx_xrc_answer& in, Bytes&) { in.type = 0; }},
        {"another type", [](dapx_xrc_answer& in, Bytes&) { in.type = 5; }},
        {"cut off", [](dapx_xrc_answer&, Bytes& bytes) { bytes.pop_back(); }},
        {"one byte", [](dapx_xrc_answer&, Bytes& bytes) { bytes.resize(1); }},
        {"nothing", [](dapx_xrc_answer&, Bytes& bytes) { bytes.clear(); }},
    };
    for (const auto& [what, change] : changes) {
        SCOPED_TRACE(what);
        Alone other;
        other.start({{.total = payload + 1},
                     {.opcode = DAPX_OP_RDMA_READ, .total = 2 * payload},
                     {.total = 1}});
        ASSERT_EQ(other.world.to_responder.size(), 5U);
        other.answer(1);
        other.world.put_answer(World::bytes_of(reply(2, other.world.requester.limit)));
        World::change<dapx_xrc_answer>(other.world.to_requester, 0, change);
        other.world.deliver_answer();
        EXPECT_TRUE(other.world.requester.failed);
        EXPECT_TRUE(other.world.all_done());
        std::size_t first = 0;
        while (other.world.status(first) == DAPX_STATUS_SUCCESS)
            ++first;
        EXPECT_LE(first, 1U);
        EXPECT_EQ(other.world.status(first), DAPX_STATUS_BAD_RESPONSE);
        for (std::size_t i = first + 1; i < 3; ++i)
            EXPECT_EQ(other.world.status(i), DAPX_STATUS_FLUSHED);
    }
}

TEST_F(XrcRequester, AnAnswerBeforeTheWelcome)
{
    world.submit({.total = 1});
    answer(0);
    EXPECT_EQ(world.status(0), DAPX_STATUS_BAD_RESPONSE);
}

TEST_F(XrcRequester, ARefusalOfNothing)
{
    for (const auto status : {DAPX_STATUS_RECEIVER_NOT_READY, DAPX_STATUS_REMOTE_ACCESS}) {
        Alone other;
        other.start({{.total = 1}});
        other.answer(1, status);
        EXPECT_EQ(other.world.status(0), DAPX_STATUS_SUCCESS);
        EXPECT_TRUE(other.world.requester.failed);
        other.world.submit({.total = 1});
        EXPECT_EQ(other.world.status(1), DAPX_STATUS_FLUSHED);
    }
}

// ---------------------------------------------------------------------------------- not ready

TEST_F(XrcRequester, GoesBackToWhatWasNotReady)
{
    start({{.total = 1}, {.total = payload + 1}, {.opcode = DAPX_OP_RDMA_WRITE, .total = 1}});
    ASSERT_EQ(world.to_responder.size(), 4U);
    answer(1, DAPX_STATUS_RECEIVER_NOT_READY);
    EXPECT_EQ(world.done(), 1U);
    EXPECT_EQ(world.timer, 655'360U);
    world.to_responder.clear();
    // Not before the time has come, whatever happens.
    world.submit({.total = 1});
    world.transmit();
    answer(1);
    EXPECT_TRUE(world.to_responder.empty());
    ASSERT_TRUE(world.fire());
    ASSERT_EQ(world.to_responder.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i)
        EXPECT_EQ(seq(i), 1 + i);
    EXPECT_EQ(length(0), payload);
    EXPECT_EQ(length(1), 1U);
    EXPECT_EQ(asking(), (std::vector<std::size_t>{3}));
    answer(5);
    EXPECT_EQ(world.done(), 4U);
    EXPECT_EQ(world.status(3), DAPX_STATUS_SUCCESS);
}

TEST_F(XrcRequester, GoesBackIntoTheMiddle)
{
    start({{.opcode = DAPX_OP_RDMA_WRITE_IMM, .total = 3 * payload}, {.total = 1}});
    answer(2, DAPX_STATUS_RECEIVER_NOT_READY);
    world.to_responder.clear();
    ASSERT_TRUE(world.fire());
    ASSERT_EQ(world.to_responder.size(), 2U);
    EXPECT_EQ(seq(0), 2U);
    EXPECT_EQ(length(0), payload);
    EXPECT_EQ(seq(1), 3U);
    answer(4);
    EXPECT_EQ(world.done(), 2U);
}

TEST_F(XrcRequester, WhatIsSentAgainTakesCredits)
{
    start({{.total = 1}, {.total = 1}, {.total = 1}}, 4);
    ASSERT_EQ(world.to_responder.size(), 3U);
    answer(0, DAPX_STATUS_RECEIVER_NOT_READY);
    world.to_responder.clear();
    ASSERT_TRUE(world.fire());
    ASSERT_EQ(world.to_responder.size(), 1U);
    EXPECT_EQ(asking(), (std::vector<std::size_t>{0}));
    put(World::bytes_of(reply(1, world.requester.limit + 2)));
    EXPECT_EQ(world.to_responder.size(), 3U);
}

TEST_F(XrcRequester, NotReadyWithoutCredits)
{
    start({{.total = 1}, {.total = 1}}, 2);
    answer(0, DAPX_STATUS_RECEIVER_NOT_READY);
    world.to_responder.clear();
    ASSERT_TRUE(world.fire());
    EXPECT_TRUE(world.to_responder.empty());
    put(World::bytes_of(reply(0, world.requester.limit + 1)));
    EXPECT_EQ(world.to_responder.size(), 1U);
}

TEST_F(XrcRequester, WaitsAsLongAsThePeerSays)
{
    const std::array<std::uint32_t, 32> microseconds = {
        655'360, 10,     20,     30,     40,     60,      80,      120,     160,     240,    320,
        480,     640,    960,    1'280,  1'920,  2'560,   3'840,   5'120,   7'680,   10'240, 15'360,
        20'480,  30'720, 40'960, 61'440, 81'920, 122'880, 163'840, 245'760, 327'680, 491'520};
    start({{.total = 1}});
    for (std::uint8_t i = 0; i < 32; ++i) {
        dapx_xrc_answer header = reply(0, world.requester.limit, DAPX_STATUS_RECEIVER_NOT_READY);
        header.rnr_timer = i;
        put(World::bytes_of(header));
        EXPECT_EQ(world.timer, microseconds.at(i));
        ASSERT_TRUE(world.fire());
    }
    EXPECT_EQ(world.done(), 0U);
}

TEST_F(XrcRequester, TriesAsOftenAsItMay)
{
    for (std::uint8_t limit = 0; limit < 7; ++limit) {
        Alone other;
        other.world.requester.retry_limit = limit;
        other.start({{.total = 1}, {.total = 1}});
        for (int i = 0; i < limit; ++i) {
            other.answer(0, DAPX_STATUS_RECEIVER_NOT_READY);
            ASSERT_TRUE(other.world.fire());
        }
        EXPECT_EQ(other.world.done(), 0U);
        other.answer(0, DAPX_STATUS_RECEIVER_NOT_READY);
        EXPECT_EQ(other.world.status(0), DAPX_STATUS_RECEIVER_NOT_READY);
        EXPECT_EQ(other.world.status(1), DAPX_STATUS_FLUSHED);
    }
}

TEST_F(XrcRequester, TriesForEver)
{
    world.requester.room = 2000;
    start({{.total = 1}});
    for (int i = 0; i < 1000; ++i) {
        put(World::bytes_of(reply(0, world.requester.limit + 1, DAPX_STATUS_RECEIVER_NOT_READY)));
        ASSERT_TRUE(world.fire());
    }
    EXPECT_EQ(world.done(), 0U);
    answer(1);
    EXPECT_EQ(world.status(0), DAPX_STATUS_SUCCESS);
}

TEST_F(XrcRequester, CountsTriesFromTheLastProgress)
{
    for (const bool at_once : {false, true}) {
        Alone other;
        other.world.requester.retry_limit = 1;
        other.start(std::vector<Wanted>(20, {.total = 1}));
        for (std::uint32_t i = 0; i < 20; ++i) {
            other.answer(i, DAPX_STATUS_RECEIVER_NOT_READY);
            ASSERT_TRUE(other.world.fire());
            if (!at_once)
                other.answer(i + 1);
        }
        EXPECT_FALSE(other.world.requester.failed);
        if (at_once) {
            other.answer(19, DAPX_STATUS_RECEIVER_NOT_READY);
            EXPECT_EQ(other.world.status(19), DAPX_STATUS_RECEIVER_NOT_READY);
        } else {
            EXPECT_EQ(other.world.status(19), DAPX_STATUS_SUCCESS);
        }
    }
}

TEST_F(XrcRequester, AReadIsAskedForAgainBehindWhatWasNotReady)
{
    start({{.total = 1}, {.opcode = DAPX_OP_RDMA_READ, .total = 4}, {.total = 1, .fence = true}});
    ASSERT_EQ(world.to_responder.size(), 2U);
    answer(0, DAPX_STATUS_RECEIVER_NOT_READY);
    world.to_responder.clear();
    ASSERT_TRUE(world.fire());
    // The fence holds this time, too.
    ASSERT_EQ(world.to_responder.size(), 2U);
    answer_data(2, 4);
    EXPECT_EQ(world.to_responder.size(), 3U);
    answer(3);
    EXPECT_EQ(world.done(), 3U);
}

} // namespace
} // namespace dapx::xrc::test
