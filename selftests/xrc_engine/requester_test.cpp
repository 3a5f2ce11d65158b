// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The sending half alone: the answers are made by hand, so what the world says of data that never
// arrived is no matter.
#include "segment.hpp"
#include "world.hpp"

#include <gtest/gtest.h>

#include <array>
#include <endian.h>
#include <sanitizer/asan_interface.h>
#include <utility>

namespace dapx::xrc::test {
namespace {

constexpr std::uint32_t payload = DAPX_XRC_PAYLOAD;
constexpr std::uint32_t plenty = 1000;
// Of a request without data. A message of so many bytes as are full shares no segment.
constexpr std::uint32_t size = sizeof(dapx_xrc_request);
constexpr std::uint32_t full = payload;

struct Request {
    dapx_xrc_request header;
    Bytes data;
};

using Numbers = std::vector<std::uint32_t>;

struct Alone {
    World world;

    explicit Alone(std::uint32_t room = 2 * plenty) : world({.room = room})
    {
        world.add_queue();
        world.add_queue();
    }
    Alone(const Alone&) = delete;
    Alone(Alone&&) = delete;
    Alone& operator=(const Alone&) = delete;
    Alone& operator=(Alone&&) = delete;
    ~Alone()
    {
        for (const std::string& violation : world.violations()) {
            if (violation != "done for its sender before it is for its receiver" &&
                violation != "what was read is wrong")
                ADD_FAILURE() << violation;
        }
    }

    /// The segment's first request.
    dapx_xrc_request sent(std::size_t index)
    {
        return world.to_responder.at(index).as<dapx_xrc_request>();
    }
    std::vector<Request> requests(std::size_t index)
    {
        std::vector<Request> found;
        const Bytes& bytes = *world.to_responder.at(index).bytes;
        const char* wrong = each_request(
            bytes.data(), bytes.size(), [&](const dapx_xrc_request& header, const std::byte* data) {
                found.push_back({header, Bytes(data, data + le32toh(header.length))});
            });
        EXPECT_EQ(wrong, nullptr);
        return found;
    }
    /// How many requests each segment on the wire has.
    Numbers shares()
    {
        Numbers found;
        for (std::size_t i = 0; i < world.to_responder.size(); ++i)
            found.push_back(static_cast<std::uint32_t>(requests(i).size()));
        return found;
    }
    /// The numbers of a segment's requests.
    Numbers seqs(std::size_t index)
    {
        Numbers found;
        for (const Request& request : requests(index))
            found.push_back(le32toh(request.header.seq));
        return found;
    }
    std::size_t bytes(std::size_t index) { return world.to_responder.at(index).bytes->size(); }
    std::uint32_t seq(std::size_t index) { return le32toh(sent(index).seq); }
    bool asks(std::size_t index) { return (le16toh(sent(index).flags) & DAPX_XRC_ASK) != 0; }
    /// The data of a request that has its segment for itself.
    std::size_t length(std::size_t index)
    {
        EXPECT_EQ(requests(index).size(), 1U);
        EXPECT_EQ(bytes(index), size + le32toh(sent(index).length));
        return le32toh(sent(index).length);
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
    world.submit({.total = full});
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
    World crowded{{.room = 0}};
    crowded.add_queue();
    crowded.submit({.total = 1});
    EXPECT_TRUE(crowded.to_responder.empty());
    EXPECT_FALSE(crowded.timer);
    crowded.requester.room = 1;
    crowded.transmit();
    EXPECT_EQ(crowded.to_responder.size(), 1U);
    // The second one too.
    ASSERT_TRUE(crowded.fire());
    EXPECT_EQ(crowded.to_responder.size(), 1U);
    crowded.requester.room = 1;
    crowded.transmit();
    EXPECT_EQ(crowded.to_responder.size(), 2U);
    EXPECT_EQ(crowded.timer, 10'000'000U);
}

TEST_F(XrcRequester, AnotherWelcomeOnlyBringsCredits)
{
    start({{.total = full}, {.total = full}, {.total = full}}, 1);
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
    // Two without data are as much as it takes.
    world.to_responder.clear();
    for (int i = 0; i < 3; ++i)
        world.enqueue({.opcode = DAPX_OP_RDMA_WRITE});
    world.enqueue({.total = 1});
    world.transmit();
    EXPECT_EQ(shares(), (Numbers{2, 1, 1}));
    EXPECT_EQ(bytes(0), 2 * size);
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

TEST_F(XrcRequester, WhatARequestSays)
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
    EXPECT_EQ(le32toh(sent(0).length), payload);
    EXPECT_EQ(le32toh(sent(1).length), 5U);
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
    ASSERT_TRUE(narrow.complete_send() && narrow.complete_send());
    ASSERT_EQ(narrow.to_responder.size(), 3U);
    ASSERT_TRUE(narrow.complete_send() && narrow.complete_send());
    ASSERT_EQ(narrow.to_responder.size(), 5U);
    // Room comes without an answer.
    for (std::size_t i = 0; i < 5; ++i)
        EXPECT_EQ(le16toh(narrow.to_responder[i].as<dapx_xrc_request>().flags),
                  i == 4 ? DAPX_XRC_ASK : 0);
}

TEST_F(XrcRequester, IsLentRoomOnlyForWhatItCanSend)
{
    World poor{{.room = 1, .spare = 3}};
    poor.add_queue();
    const auto ask = [&](std::size_t index) {
        const auto header = poor.to_responder.at(index).as<dapx_xrc_request>();
        return (le16toh(header.flags) & DAPX_XRC_ASK) != 0;
    };
    poor.submit({.total = 3 * payload});
    poor.submit({.total = 1});
    poor.submit({.total = 1});
    // The hello has the room of its own; nothing else can be sent yet.
    EXPECT_EQ(poor.to_responder.size(), 1U);
    EXPECT_EQ(poor.lent(), 0U);
    poor.to_responder.clear();
    poor.put_answer(World::bytes_of(hello(poor.requester.sent + 2)));
    ASSERT_TRUE(poor.deliver_answer());
    // As much as there are credits for.
    EXPECT_EQ(poor.to_responder.size(), 2U);
    EXPECT_EQ(poor.lent(), 2U);
    EXPECT_FALSE(ask(0));
    EXPECT_TRUE(ask(1));
    poor.put_answer(World::bytes_of(reply(0, poor.requester.limit + 5)));
    ASSERT_TRUE(poor.deliver_answer());
    // As much as there is.
    EXPECT_EQ(poor.to_responder.size(), 3U);
    EXPECT_EQ(poor.lent(), 3U);
    EXPECT_FALSE(ask(2));
    ASSERT_TRUE(poor.complete_send());
    // Both messages, which waited.
    EXPECT_EQ(poor.to_responder.size(), 4U);
    EXPECT_TRUE(ask(3));
    EXPECT_EQ(poor.shared, 1U);
    for (int i = 0; i < 4; ++i)
        ASSERT_TRUE(poor.complete_send());
    EXPECT_EQ(poor.to_responder.size(), 4U);
    EXPECT_EQ(poor.lent(), 0U);
    EXPECT_EQ(poor.requester.room, 1U);
    // What it has is used first.
    poor.submit({.total = 1});
    EXPECT_EQ(poor.lent(), 0U);
    poor.submit({.total = 1});
    EXPECT_EQ(poor.lent(), 1U);
    EXPECT_EQ(poor.violations(), std::vector<std::string>{});
}

TEST_F(XrcRequester, OnlyTheLastSegmentAsks)
{
    start({{.total = 3 * payload}, {.opcode = DAPX_OP_RDMA_WRITE, .total = full}, {.total = 0}});
    ASSERT_EQ(world.to_responder.size(), 5U);
    EXPECT_EQ(asking(), (std::vector<std::size_t>{4}));
    world.submit({.total = 1});
    EXPECT_EQ(asking(), (std::vector<std::size_t>{4, 5}));
    // The first of its requests does it for all: see each_request().
    for (int i = 0; i < 300; ++i)
        world.enqueue({.total = 1});
    world.transmit();
    EXPECT_EQ(shares(), (Numbers{1, 1, 1, 1, 1, 1, 128, 128, 44}));
    EXPECT_EQ(asking(), (std::vector<std::size_t>{4, 5, 8}));
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
    EXPECT_EQ(shares(), (Numbers{3}));
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
    // One request more than 32 bits of rounding up can count.
    start({{.total = 0xffffffff}, {.total = full}}, 2);
    EXPECT_EQ(world.to_responder.size(), 2U);
    answer(1);
    EXPECT_EQ(world.done(), 0U);
    EXPECT_EQ(world.requester.acked, 1U);
    // Its last requests, as if all before were done.
    const std::uint32_t requests = 0xffffffff / payload + 1;
    world.requester.next_seq = world.requester.acked = requests - 2;
    world.to_responder.clear();
    put(World::bytes_of(reply(requests - 2, world.requester.limit + 9)));
    ASSERT_EQ(world.to_responder.size(), 3U);
    EXPECT_EQ(length(0), payload);
    EXPECT_EQ(length(1), 0xffffffff % payload);
    EXPECT_EQ(length(2), full);
    answer(requests);
    EXPECT_EQ(world.done(), 1U);
    answer(requests + 1);
    EXPECT_EQ(world.done(), 2U);
}

// ----------------------------------------------------------------------------------- sharing

TEST_F(XrcRequester, WhatIsSubmittedOneByOneIsSentOneByOne)
{
    start({{.total = 1}});
    world.submit({.total = 1});
    world.submit({.total = 1});
    EXPECT_EQ(shares(), (Numbers{1, 1, 1}));
    EXPECT_EQ(asking(), (std::vector<std::size_t>{0, 1, 2}));
}

TEST_F(XrcRequester, WhatWaitsSharesASegment)
{
    // For a credit.
    start({{.total = full}}, 1);
    for (std::uint32_t i = 0; i < 4; ++i)
        world.submit({.total = i});
    EXPECT_EQ(shares(), (Numbers{1}));
    put(World::bytes_of(reply(1, world.requester.limit + 1)));
    EXPECT_EQ(shares(), (Numbers{1, 4}));
    // For what was not ready.
    answer(2, DAPX_STATUS_RECEIVER_NOT_READY);
    world.submit({.total = 4});
    put(World::bytes_of(reply(2, world.requester.limit + plenty)));
    world.to_responder.clear();
    ASSERT_TRUE(world.fire());
    EXPECT_EQ(shares(), (Numbers{4}));
    // For those that come with it.
    world.enqueue({.total = 5});
    world.enqueue({.total = 6});
    world.transmit();
    EXPECT_EQ(shares(), (Numbers{4, 2}));
    // For room.
    Alone narrow(2);
    narrow.start({{.total = full}});
    for (std::uint32_t i = 0; i < 4; ++i)
        narrow.world.submit({.total = i});
    EXPECT_EQ(narrow.shares(), (Numbers{1}));
    ASSERT_TRUE(narrow.world.complete_send());
    EXPECT_EQ(narrow.shares(), (Numbers{1, 4}));
}

TEST_F(XrcRequester, EachRequestOfASegmentIsItsMessages)
{
    start({{.total = 3, .solicited = true},
           {.opcode = DAPX_OP_RDMA_WRITE, .queue = 1, .total = 8, .rkey = 9},
           {.opcode = DAPX_OP_SEND_IMM, .imm = 0x01020304},
           {.opcode = DAPX_OP_RDMA_WRITE_IMM, .total = 1, .imm = 5},
           {.total = 21}});
    const std::vector<Request> all = requests(0);
    ASSERT_EQ(shares(), (Numbers{5}));
    EXPECT_EQ(seqs(0), (Numbers{0, 1, 2, 3, 4}));
    // The last one ends where its data do.
    EXPECT_EQ(bytes(0), size + 8 + size + 8 + size + size + 8 + size + 21);
    for (std::size_t i = 0; i < all.size(); ++i) {
        SCOPED_TRACE(i);
        const Message& message = world.message(i);
        const dapx_xrc_request& out = all[i].header;
        EXPECT_EQ(out.opcode, message.opcode);
        EXPECT_EQ(le16toh(out.flags) & DAPX_XRC_SOLICITED, i == 0 ? DAPX_XRC_SOLICITED : 0);
        EXPECT_EQ(le32toh(out.srqn), message.srqn);
        EXPECT_EQ(le32toh(out.total), message.total);
        EXPECT_EQ(le32toh(out.length), message.total);
        EXPECT_EQ(le32toh(out.rkey), message.rkey);
        EXPECT_EQ(le32toh(out.imm), message.imm);
        EXPECT_EQ(le64toh(out.addr), message.addr);
        for (std::size_t j = 0; j < message.total; ++j)
            EXPECT_EQ(all[i].data[j], static_cast<std::byte>((message.seed + j) % 251));
    }
    EXPECT_EQ(le32toh(all[0].header.demand), 5U);
}

TEST_F(XrcRequester, ASegmentIsFilledToTheByte)
{
    // Each takes 64 bytes.
    start(std::vector<Wanted>(129, {.total = 8}));
    EXPECT_EQ(shares(), (Numbers{128, 1}));
    EXPECT_EQ(bytes(0), std::size_t{DAPX_XRC_SEGMENT_SIZE});
    // Behind any first one, as much as is left.
    for (std::uint32_t before = 0; before < 40; ++before) {
        for (std::uint32_t more = 0; more < 2; ++more) {
            SCOPED_TRACE(testing::Message() << before << " bytes, and " << more);
            const std::uint32_t used = (size + before + 7) / 8 * 8;
            const std::uint32_t left = DAPX_XRC_SEGMENT_SIZE - used - size;
            Alone other;
            other.start({{.total = before}, {.total = left + more}, {.total = full}});
            EXPECT_EQ(other.shares(), more ? (Numbers{1, 1, 1}) : (Numbers{2, 1}));
            EXPECT_EQ(other.bytes(0), more ? size + before : std::size_t{DAPX_XRC_SEGMENT_SIZE});
        }
    }
    // Not even a header fits behind these.
    for (std::uint32_t left = 0; left < size + 16; ++left) {
        SCOPED_TRACE(left);
        Alone other;
        other.start({{.total = payload - left}, {.total = 0}});
        const bool fits = left / 8 * 8 >= size;
        EXPECT_EQ(other.shares(), fits ? (Numbers{2}) : (Numbers{1, 1}));
    }
}

TEST_F(XrcRequester, OnlyTheEndOfALongMessageShares)
{
    start({{.total = 1}, {.total = 2 * payload + 3}, {.total = 1}, {.total = payload + 1}});
    EXPECT_EQ(shares(), (Numbers{1, 1, 1, 2, 1, 1}));
    EXPECT_EQ(seqs(3), (Numbers{3, 4}));
    EXPECT_EQ(length(1), payload);
    EXPECT_EQ(length(2), payload);
    EXPECT_EQ(requests(3)[0].data.size(), 3U);
    EXPECT_EQ(length(4), payload);
    EXPECT_EQ(length(5), 1U);
    Alone other;
    other.start({{.total = full}, {.total = full}, {.total = 0}, {.total = full}});
    EXPECT_EQ(other.shares(), (Numbers{1, 1, 1, 1}));
}

TEST_F(XrcRequester, NothingOldIsBetweenRequests)
{
    // The world's buffers are full of something else.
    for (std::uint32_t total = 0; total <= 16; ++total) {
        SCOPED_TRACE(total);
        Alone other;
        other.start({{.total = total}, {.total = total}, {.total = 1}});
        ASSERT_EQ(other.shares(), (Numbers{3}));
        const Bytes& bytes = *other.world.to_responder[0].bytes;
        const std::size_t step = (size + total + 7) / 8 * 8;
        ASSERT_EQ(bytes.size(), 2 * step + size + 1);
        for (std::size_t at = size + total; at < step; ++at) {
            EXPECT_EQ(bytes[at], std::byte{});
            EXPECT_EQ(bytes[step + at], std::byte{});
        }
    }
}

TEST_F(XrcRequester, WhatReturnsDataIsAlone)
{
    for (const auto opcode : {DAPX_OP_RDMA_READ, DAPX_OP_COMPARE_SWAP, DAPX_OP_FETCH_ADD}) {
        for (const std::uint32_t total : {0U, 8U}) {
            SCOPED_TRACE(testing::Message() << "opcode " << opcode << ", " << total << " bytes");
            const Wanted alone = {.opcode = opcode, .total = total};
            const Wanted other = {.total = 1};
            Alone one;
            one.start({alone, other, other, alone, alone, other, alone});
            EXPECT_EQ(one.shares(), (Numbers{1, 2, 1, 1, 1, 1}));
            for (const std::size_t i : {0, 2, 3, 5})
                EXPECT_EQ(one.sent(i).opcode, opcode);
        }
    }
}

TEST_F(XrcRequester, AFenceHoldsWhenASegmentIsShared)
{
    const Wanted small = {.total = 1};
    const Wanted fenced = {.total = 1, .fence = true};
    start({{.opcode = DAPX_OP_FETCH_ADD}, small, small, fenced, small});
    // Those before it share one, and ask.
    EXPECT_EQ(shares(), (Numbers{1, 2}));
    EXPECT_EQ(asking(), (std::vector<std::size_t>{1}));
    world.submit(small);
    EXPECT_EQ(shares(), (Numbers{1, 2}));
    answer_data(1, 8);
    EXPECT_EQ(shares(), (Numbers{1, 2, 3}));
    EXPECT_EQ(seqs(2), (Numbers{3, 4, 5}));
    // Nothing to wait for.
    world.to_responder.clear();
    for (const Wanted& message : {small, fenced, fenced})
        world.enqueue(message);
    world.transmit();
    EXPECT_EQ(shares(), (Numbers{3}));
}

TEST_F(XrcRequester, MemoryThatFailsBehindAnother)
{
    start({{.total = full}});
    world.to_responder.clear();
    world.enqueue({.total = 1});
    world.enqueue({.total = 5, .broken_at = 0});
    world.enqueue({.total = 1});
    world.transmit();
    // Nothing of the segment is sent.
    EXPECT_TRUE(world.to_responder.empty());
    EXPECT_EQ(world.status(0), DAPX_STATUS_FLUSHED);
    EXPECT_EQ(world.status(1), DAPX_STATUS_FLUSHED);
    EXPECT_EQ(world.status(2), DAPX_STATUS_LOCAL_PROTECTION);
    EXPECT_EQ(world.status(3), DAPX_STATUS_FLUSHED);
    EXPECT_TRUE(world.requester.failed);
    EXPECT_EQ(world.violations(), std::vector<std::string>{});
}

TEST_F(XrcRequester, ASegmentIsDoneInPieces)
{
    start(std::vector<Wanted>(5, {.total = 1}));
    ASSERT_EQ(shares(), (Numbers{5}));
    for (std::uint32_t i = 0; i <= 5; ++i) {
        answer(i);
        EXPECT_EQ(world.done(), i);
    }
    answer(6);
    EXPECT_TRUE(world.requester.failed);
}

TEST_F(XrcRequester, DemandIsWhatIsNotDone)
{
    start({{.total = 1}, {.total = 1}, {.total = full}, {.total = 2 * payload}, {.total = 1}}, 2);
    ASSERT_EQ(shares(), (Numbers{2, 1}));
    // Two sent and three messages; three and two.
    EXPECT_EQ(le32toh(sent(0).demand), 5U);
    EXPECT_EQ(le32toh(sent(1).demand), 5U);
    put(World::bytes_of(reply(2, world.requester.limit + 3)));
    ASSERT_EQ(shares(), (Numbers{2, 1, 1, 1, 1}));
    EXPECT_EQ(le32toh(sent(2).demand), 4U);
    EXPECT_EQ(le32toh(sent(3).demand), 4U);
    EXPECT_EQ(le32toh(sent(4).demand), 4U);
}

// ------------------------------------------------------------------------------------ answers

TEST_F(XrcRequester, AMessageIsDoneWithItsLastRequest)
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
    // A segment of three requests, and three of one.
    for (int i = 0; i < 512; ++i) {
        const int status = i % 256;
        const std::uint32_t total = i < 256 ? 1 : full;
        if (status == DAPX_STATUS_SUCCESS || status == DAPX_STATUS_RECEIVER_NOT_READY)
            continue;
        SCOPED_TRACE(i);
        Alone other;
        other.start({{.total = total}, {.total = total}, {.total = total}});
        ASSERT_EQ(other.world.to_responder.size(), i < 256 ? 1U : 3U);
        other.answer(1, static_cast<dapx_status>(status));
        const bool known =
            status == DAPX_STATUS_REMOTE_ACCESS || status == DAPX_STATUS_REMOTE_INVALID ||
            status == DAPX_STATUS_REMOTE_OPERATION || status == DAPX_STATUS_REMOTE_QUEUE;
        EXPECT_EQ(other.world.status(0), DAPX_STATUS_SUCCESS);
        EXPECT_EQ(other.world.status(1), known ? status : DAPX_STATUS_BAD_RESPONSE);
        EXPECT_EQ(other.world.status(2), DAPX_STATUS_FLUSHED);
    }
}

TEST_F(XrcRequester, AnswersThatMakeNoSense)
{
    using Change = void (*)(dapx_xrc_answer&, Bytes&);
    // On the wire: a send of two requests, a read of two, a send. The first is done.
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
    start({{.total = 1}, {.total = payload + 1}, {.opcode = DAPX_OP_RDMA_WRITE, .total = full}});
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

TEST_F(XrcRequester, GoesBackIntoASegment)
{
    start({{.total = 1}, {.total = 2}, {.total = 3}, {.total = 4}, {.total = payload + 5}});
    ASSERT_EQ(shares(), (Numbers{4, 1, 1}));
    answer(2, DAPX_STATUS_RECEIVER_NOT_READY);
    EXPECT_EQ(world.done(), 2U);
    world.to_responder.clear();
    ASSERT_TRUE(world.fire());
    ASSERT_EQ(shares(), (Numbers{2, 1, 1}));
    EXPECT_EQ(seqs(0), (Numbers{2, 3}));
    EXPECT_EQ(requests(0)[0].data.size(), 3U);
    EXPECT_EQ(requests(0)[1].data.size(), 4U);
    // What came behind its last part before comes with it now.
    world.submit({.total = 6});
    answer(5, DAPX_STATUS_RECEIVER_NOT_READY);
    world.to_responder.clear();
    ASSERT_TRUE(world.fire());
    ASSERT_EQ(shares(), (Numbers{2}));
    EXPECT_EQ(seqs(0), (Numbers{5, 6}));
    EXPECT_EQ(requests(0)[0].data.size(), 5U);
    EXPECT_EQ(requests(0)[1].data.size(), 6U);
    answer(7);
    EXPECT_EQ(world.done(), 6U);
    EXPECT_FALSE(world.requester.failed);
}

TEST_F(XrcRequester, WhatIsSentAgainTakesCredits)
{
    start({{.total = full}, {.total = full}, {.total = full}}, 4);
    ASSERT_EQ(world.to_responder.size(), 3U);
    answer(0, DAPX_STATUS_RECEIVER_NOT_READY);
    world.to_responder.clear();
    ASSERT_TRUE(world.fire());
    ASSERT_EQ(world.to_responder.size(), 1U);
    EXPECT_EQ(asking(), (std::vector<std::size_t>{0}));
    put(World::bytes_of(reply(1, world.requester.limit + 2)));
    EXPECT_EQ(world.to_responder.size(), 3U);
    EXPECT_EQ(seq(2), 2U);
}

TEST_F(XrcRequester, NotReadyWithoutCredits)
{
    start({{.total = full}, {.total = full}}, 2);
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
    for (const auto& [at_once, total] :
         {std::pair{false, 1U}, {true, 1U}, {false, full}, {true, full}}) {
        Alone other;
        other.world.requester.retry_limit = 1;
        other.start(std::vector<Wanted>(20, {.total = total}));
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

// ------------------------------------------------------------------ what takes long, in pieces

constexpr std::uint32_t batch = 64;

TEST_F(XrcRequester, EndsABatchAtATimeWhenItFails)
{
    start(std::vector<Wanted>(2 * batch + 1, {.total = full}));
    world.break_requester();
    EXPECT_EQ(world.done(), batch);
    ASSERT_EQ(world.timer, 0U);
    ASSERT_TRUE(world.fire());
    EXPECT_EQ(world.done(), 2 * batch);
    // Its owner need not wait for the timer.
    world.break_requester(DAPX_STATUS_FLUSHED);
    EXPECT_TRUE(world.all_done());
    EXPECT_EQ(world.status(0), DAPX_STATUS_TRANSPORT);
    for (std::size_t i = 1; i < world.messages(); ++i)
        EXPECT_EQ(world.status(i), DAPX_STATUS_FLUSHED);
}

TEST_F(XrcRequester, WhatFailedMayBeInALaterBatch)
{
    start({{.total = full}});
    for (std::uint32_t i = 1; i < 2 * batch; ++i)
        world.enqueue({.total = full, .broken_at = i == batch + 1 ? 0 : ~std::uint64_t{0}});
    world.transmit();
    EXPECT_EQ(world.done(), batch);
    // Another failure is none of its own.
    world.break_requester();
    EXPECT_TRUE(world.all_done());
    for (std::size_t i = 0; i < world.messages(); ++i)
        EXPECT_EQ(world.status(i),
                  i == batch + 1 ? DAPX_STATUS_LOCAL_PROTECTION : DAPX_STATUS_FLUSHED);
}

TEST_F(XrcRequester, AnAnswerEndsNoMoreThanItMay)
{
    constexpr std::uint32_t most = 1024;
    constexpr std::uint32_t in_a_segment = (payload + size) / size;
    start(std::vector<Wanted>(3 * most), 3 * most);
    const std::uint32_t sent = world.requester.next_seq;
    EXPECT_GE(sent, most);
    EXPECT_LT(sent, most + in_a_segment);
    EXPECT_TRUE(asks(world.to_responder.size() - 1));
    answer(in_a_segment);
    EXPECT_EQ(world.done(), in_a_segment);
    EXPECT_GT(world.requester.next_seq, sent);
    EXPECT_LT(world.requester.next_seq, most + 2 * in_a_segment);
    EXPECT_TRUE(asks(world.to_responder.size() - 1));
}

/// Memory that must not be looked at; the sanitizer sees whoever does.
class Untouched {
public:
    Untouched(const World& world, std::size_t from, std::size_t to)
    {
        for (std::size_t i = from; i < to; ++i) {
            const dapx_xrc_message& message = world.message(i);
            messages_.push_back(&message);
            ASAN_POISON_MEMORY_REGION(&message, sizeof(message));
        }
    }
    Untouched(const Untouched&) = delete;
    Untouched(Untouched&&) = delete;
    Untouched& operator=(const Untouched&) = delete;
    Untouched& operator=(Untouched&&) = delete;
    ~Untouched()
    {
        for (const dapx_xrc_message* message : messages_)
            ASAN_UNPOISON_MEMORY_REGION(message, sizeof(*message));
    }

private:
    std::vector<const dapx_xrc_message*> messages_;
};

TEST_F(XrcRequester, GoesBackWithoutALookAtTheOthers)
{
    start(std::vector<Wanted>(10, {.total = full}));
    {
        const Untouched others(world, 1, 10);
        answer(0, DAPX_STATUS_RECEIVER_NOT_READY);
    }
    world.to_responder.clear();
    ASSERT_TRUE(world.fire());
    EXPECT_EQ(world.to_responder.size(), 10U);
    EXPECT_EQ(le32toh(sent(0).demand), 10U);
}

TEST_F(XrcRequester, AFenceIsCheckedWithoutALookAtTheOthers)
{
    start({{.opcode = DAPX_OP_RDMA_READ, .total = 1}, {.total = full}, {.total = full}});
    const Untouched others(world, 0, 2);
    world.submit({.total = 1, .fence = true});
    EXPECT_EQ(world.to_responder.size(), 3U);
}

} // namespace
} // namespace dapx::xrc::test
