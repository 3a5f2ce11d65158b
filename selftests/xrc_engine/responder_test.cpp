// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The receiving half alone: what arrives is made by hand.
#include "world.hpp"

#include <gtest/gtest.h>

#include <endian.h>

namespace dapx::xrc::test {
namespace {

constexpr std::uint32_t payload = DAPX_XRC_PAYLOAD;
constexpr std::uint32_t srqn = 0x700;
constexpr std::uint32_t rkey = 5;
constexpr std::uint64_t addr = 0x10000;

struct Alone {
    World world;

    Alone() { world.add_queue(); }

    static dapx_xrc_hello hello()
    {
        return {.type = DAPX_XRC_HELLO,
                .version = DAPX_XRC_VERSION,
                .segment_size = htole16(DAPX_XRC_SEGMENT_SIZE),
                .magic = htole32(DAPX_XRC_MAGIC),
                .limit = 0};
    }

    static dapx_xrc_request request(std::uint32_t seq, dapx_opcode opcode, std::uint32_t total)
    {
        dapx_xrc_request header{};
        header.type = DAPX_XRC_REQUEST;
        header.opcode = static_cast<std::uint8_t>(opcode);
        header.seq = htole32(seq);
        header.demand = htole32(1);
        header.srqn = htole32(srqn);
        header.total = htole32(total);
        header.rkey = htole32(rkey);
        header.addr = htole64(addr);
        return header;
    }

    void greet()
    {
        arrives(World::bytes_of(hello()));
        ASSERT_TRUE(world.responder.greeted);
        world.to_requester.clear();
    }

    void arrives(Bytes bytes)
    {
        world.put_request(std::move(bytes));
        world.deliver_request();
    }
    /// With the data that belong there, of a message that began with segment 0.
    void arrives(const dapx_xrc_request& header, std::size_t data = 0)
    {
        Bytes bytes = World::bytes_of(header, data);
        for (std::size_t i = 0; i < data; ++i)
            bytes[sizeof(header) + i] =
                static_cast<std::byte>((le32toh(header.seq) * payload + i) % 251);
        arrives(std::move(bytes));
    }

    dapx_xrc_answer answer() { return world.to_requester.back().as<dapx_xrc_answer>(); }

    /// There is one answer, and it says so. Afterwards nothing is heard any more.
    void expect_refused(dapx_status status, std::uint32_t expected)
    {
        ASSERT_EQ(world.to_requester.size(), 1U);
        EXPECT_EQ(answer().type, DAPX_XRC_ANSWER);
        EXPECT_EQ(answer().status, status);
        EXPECT_EQ(answer().flags, 0);
        EXPECT_EQ(le32toh(answer().expected), expected);
        EXPECT_EQ(world.to_requester.back().bytes->size(), sizeof(dapx_xrc_answer));
        EXPECT_TRUE(world.responder.failed);
        const std::size_t taken = world.queue(0).next;
        arrives(request(expected, DAPX_OP_SEND, 0));
        arrives(World::bytes_of(hello()));
        EXPECT_EQ(world.to_requester.size(), 1U);
        EXPECT_EQ(world.queue(0).next, taken);
    }
};

struct XrcResponder : ::testing::Test, Alone {};

// ------------------------------------------------------------------------------------- hellos

TEST_F(XrcResponder, WelcomesAHello)
{
    for (int i = 0; i < 2; ++i) {
        arrives(World::bytes_of(hello()));
        ASSERT_EQ(world.to_requester.size(), 1U + i);
        const auto welcome = world.to_requester.back().as<dapx_xrc_hello>();
        EXPECT_EQ(world.to_requester.back().bytes->size(), sizeof(welcome));
        EXPECT_EQ(welcome.type, DAPX_XRC_WELCOME);
        EXPECT_EQ(welcome.version, DAPX_XRC_VERSION);
        EXPECT_EQ(le16toh(welcome.segment_size), DAPX_XRC_SEGMENT_SIZE);
        EXPECT_EQ(le32toh(welcome.magic), std::uint32_t{DAPX_XRC_MAGIC});
        // Sixteen buffers, of which this one is in use.
        EXPECT_EQ(le32toh(welcome.limit), 16U + i);
    }
    EXPECT_FALSE(world.responder.failed);
}

TEST_F(XrcResponder, HellosThatAreNotWelcome)
{
    using Change = void (*)(dapx_xrc_hello&, Bytes&);
    const std::vector<Change> changes = {
        [](dapx_xrc_hello& in, Bytes&) { in.type = DAPX_XRC_WELCOME; },
        [](dapx_xrc_hello& in, Bytes&) { in.version = DAPX_XRC_VERSION + 1; },
        [](dapx_xrc_hello& in, Bytes&) { in.version = 0; },
        [](dapx_xrc_hello& in, Bytes&) { in.magic ^= htole32(0x80000000); },
        [](dapx_xrc_hello& in, Bytes&) { in.segment_size = htole16(DAPX_XRC_SEGMENT_SIZE - 1); },
        [](dapx_xrc_hello&, Bytes& bytes) { bytes.pop_back(); },
        [](dapx_xrc_hello&, Bytes& bytes) { bytes.emplace_back(); },
        [](dapx_xrc_hello&, Bytes& bytes) { bytes.resize(1); },
        [](dapx_xrc_hello&, Bytes& bytes) { bytes.clear(); },
    };
    for (std::size_t i = 0; i < changes.size(); ++i) {
        SCOPED_TRACE(i);
        Alone other;
        other.world.put_request(World::bytes_of(hello()));
        World::change<dapx_xrc_hello>(other.world.to_responder, 0, changes[i]);
        other.world.deliver_request();
        other.expect_refused(DAPX_STATUS_REMOTE_INVALID, 0);
    }
}

TEST_F(XrcResponder, LargerSegmentsOfThePeerAreNoMatter)
{
    dapx_xrc_hello large = hello();
    large.segment_size = 0xffff;
    arrives(World::bytes_of(large));
    EXPECT_TRUE(world.responder.greeted);
    const auto welcome = world.to_requester.back().as<dapx_xrc_hello>();
    EXPECT_EQ(le16toh(welcome.segment_size), DAPX_XRC_SEGMENT_SIZE);
}

TEST_F(XrcResponder, ARequestBeforeTheHello)
{
    world.post(0);
    arrives(request(0, DAPX_OP_SEND, 0));
    expect_refused(DAPX_STATUS_REMOTE_INVALID, 0);
    EXPECT_FALSE(world.receive(0, 0).taken);
}

TEST_F(XrcResponder, AHelloBehindARequest)
{
    // Done, half done, and not ready.
    for (int i = 0; i < 3; ++i) {
        Alone other;
        if (i != 2)
            other.world.post(0);
        other.greet();
        other.arrives(request(0, DAPX_OP_SEND, i == 1 ? payload + 1 : payload), payload);
        other.world.to_requester.clear();
        other.arrives(World::bytes_of(hello()));
        other.expect_refused(DAPX_STATUS_REMOTE_INVALID, i == 2 ? 0 : 1);
    }
}

// ----------------------------------------------------------------------------------- requests

TEST_F(XrcResponder, AnswersWhoAsks)
{
    greet();
    for (int i = 0; i < 3; ++i)
        world.post(0);
    arrives(request(0, DAPX_OP_SEND, 0));
    EXPECT_TRUE(world.to_requester.empty());
    EXPECT_TRUE(world.receive(0, 0).arrival);
    dapx_xrc_request asking = request(1, DAPX_OP_SEND, 3);
    asking.flags = htole16(DAPX_XRC_ASK);
    arrives(asking, 3);
    ASSERT_EQ(world.to_requester.size(), 1U);
    EXPECT_EQ(answer().status, DAPX_STATUS_SUCCESS);
    EXPECT_EQ(le32toh(answer().expected), 2U);
    EXPECT_EQ(le32toh(answer().limit), 3U + 15U);
    EXPECT_EQ(answer().flags, 0);
}

TEST_F(XrcResponder, KnowsWhatTheRequesterWants)
{
    greet();
    dapx_xrc_request wanting = request(0, DAPX_OP_RDMA_WRITE, 0);
    wanting.demand = htole32(12345);
    arrives(wanting);
    EXPECT_EQ(world.responder.demand, 12345U);
}

TEST_F(XrcResponder, AReadIsAnsweredUnasked)
{
    greet();
    world.enqueue({.opcode = DAPX_OP_RDMA_READ, .total = payload + 1, .rkey = rkey});
    arrives(request(0, DAPX_OP_RDMA_READ, payload + 1));
    ASSERT_EQ(world.to_requester.size(), 1U);
    EXPECT_EQ(answer().flags, DAPX_XRC_DATA);
    EXPECT_EQ(le32toh(answer().expected), 1U);
    EXPECT_EQ(world.to_requester[0].bytes->size(), sizeof(dapx_xrc_answer) + payload);
    arrives(request(1, DAPX_OP_RDMA_READ, payload + 1));
    ASSERT_EQ(world.to_requester.size(), 2U);
    EXPECT_EQ(world.to_requester[1].bytes->size(), sizeof(dapx_xrc_answer) + 1);
    // Of nothing, too.
    arrives(request(2, DAPX_OP_RDMA_READ, 0));
    ASSERT_EQ(world.to_requester.size(), 3U);
    EXPECT_EQ(answer().flags, DAPX_XRC_DATA);
    EXPECT_EQ(world.to_requester[2].bytes->size(), sizeof(dapx_xrc_answer));
}

TEST_F(XrcResponder, RequestsThatMakeNoSense)
{
    using Change = void (*)(dapx_xrc_request&, Bytes&);
    // Each is done to a send of one segment, for which there is a receive.
    const std::vector<std::pair<const char*, Change>> changes = {
        {"no type", [](dapx_xrc_request& in, Bytes&) { in.type = 0; }},
        {"an answer", [](dapx_xrc_request& in, Bytes&) { in.type = DAPX_XRC_ANSWER; }},
        {"a welcome", [](dapx_xrc_request& in, Bytes&) { in.type = DAPX_XRC_WELCOME; }},
        {"another type", [](dapx_xrc_request& in, Bytes&) { in.type = 5; }},
        {"no such operation", [](dapx_xrc_request& in, Bytes&) { in.opcode = 7; }},
        {"a receive", [](dapx_xrc_request& in, Bytes&) { in.opcode = DAPX_OP_RECV; }},
        {"the last operation", [](dapx_xrc_request& in, Bytes&) { in.opcode = 255; }},
        {"too early", [](dapx_xrc_request& in, Bytes&) { in.seq = htole32(1); }},
        {"too late", [](dapx_xrc_request& in, Bytes&) { in.seq = htole32(~0U); }},
        {"cut off",
         [](dapx_xrc_request&, Bytes& bytes) { bytes.resize(sizeof(dapx_xrc_request) - 1); }},
        {"one byte", [](dapx_xrc_request&, Bytes& bytes) { bytes.resize(1); }},
        {"nothing", [](dapx_xrc_request&, Bytes& bytes) { bytes.clear(); }},
        {"too few data", [](dapx_xrc_request&, Bytes& bytes) { bytes.pop_back(); }},
        {"too many data", [](dapx_xrc_request&, Bytes& bytes) { bytes.emplace_back(); }},
        {"data in a read", [](dapx_xrc_request& in, Bytes&) { in.opcode = DAPX_OP_RDMA_READ; }},
        {"data in an atomic operation",
         [](dapx_xrc_request& in, Bytes&) { in.opcode = DAPX_OP_FETCH_ADD; }},
        {"an atomic operation on 4 bytes",
         [](dapx_xrc_request& in, Bytes& bytes) {
             in.opcode = DAPX_OP_COMPARE_SWAP;
             in.total = htole32(4);
             bytes.resize(sizeof(dapx_xrc_request));
         }},
        {"an atomic operation on 16 bytes",
         [](dapx_xrc_request& in, Bytes& bytes) {
             in.opcode = DAPX_OP_FETCH_ADD;
             in.total = htole32(16);
             bytes.resize(sizeof(dapx_xrc_request));
         }},
        {"an atomic operation across a boundary",
         [](dapx_xrc_request& in, Bytes& bytes) {
             in.opcode = DAPX_OP_FETCH_ADD;
             in.addr = htole64(addr + 4);
             bytes.resize(sizeof(dapx_xrc_request));
         }},
        {"longer than a segment",
         [](dapx_xrc_request& in, Bytes&) { in.total = htole32(payload + 8); }},
    };
    for (const auto& [what, change] : changes) {
        SCOPED_TRACE(what);
        Alone other;
        other.greet();
        other.world.post(0);
        other.world.enqueue({.opcode = DAPX_OP_FETCH_ADD, .rkey = rkey});
        other.world.to_responder.clear();
        other.world.put_request(World::bytes_of(request(0, DAPX_OP_SEND, 8), 8));
        World::change<dapx_xrc_request>(other.world.to_responder, 0, change);
        other.world.deliver_request();
        // A receive that was taken for it ends.
        const Receive& receive = other.world.receive(0, 0);
        EXPECT_EQ(receive.filled, 0U);
        EXPECT_EQ(receive.taken, receive.arrival.has_value());
        if (receive.arrival) {
            EXPECT_EQ(receive.arrival->status, DAPX_STATUS_FLUSHED);
        }
        EXPECT_EQ(other.world.region(rkey).word, 0U);
        other.expect_refused(DAPX_STATUS_REMOTE_INVALID, 0);
        EXPECT_EQ(other.world.violations(), std::vector<std::string>{});
    }
}

TEST_F(XrcResponder, SegmentsThatDoNotBelongTogether)
{
    using Change = void (*)(dapx_xrc_request&, Bytes&);
    const std::vector<std::pair<const char*, Change>> changes = {
        {"operation", [](dapx_xrc_request& in, Bytes&) { in.opcode = DAPX_OP_SEND_IMM; }},
        {"queue", [](dapx_xrc_request& in, Bytes&) { in.srqn = htole32(srqn + 1); }},
        {"more", [](dapx_xrc_request& in, Bytes&) { in.total = htole32(payload + 9); }},
        {"fewer", [](dapx_xrc_request& in, Bytes&) { in.total = htole32(payload + 7); }},
        {"much less", [](dapx_xrc_request& in, Bytes&) { in.total = htole32(8); }},
        {"key", [](dapx_xrc_request& in, Bytes&) { in.rkey = 0; }},
        {"address", [](dapx_xrc_request& in, Bytes&) { in.addr = 0; }},
        {"too few data", [](dapx_xrc_request&, Bytes& bytes) { bytes.pop_back(); }},
        {"too many data", [](dapx_xrc_request&, Bytes& bytes) { bytes.emplace_back(); }},
        {"no data",
         [](dapx_xrc_request&, Bytes& bytes) { bytes.resize(sizeof(dapx_xrc_request)); }},
        {"a whole segment",
         [](dapx_xrc_request&, Bytes& bytes) { bytes.resize(DAPX_XRC_SEGMENT_SIZE); }},
        {"again", [](dapx_xrc_request& in, Bytes&) { in.seq = 0; }},
    };
    for (const auto& [what, change] : changes) {
        SCOPED_TRACE(what);
        Alone other;
        other.greet();
        other.world.post(0);
        other.arrives(request(0, DAPX_OP_SEND, payload + 8), payload);
        ASSERT_TRUE(other.world.receive(0, 0).taken && !other.world.receive(0, 0).arrival);
        other.world.put_request(World::bytes_of(request(1, DAPX_OP_SEND, payload + 8), 8));
        World::change<dapx_xrc_request>(other.world.to_responder, 0, change);
        other.world.deliver_request();
        EXPECT_EQ(other.world.receive(0, 0).arrival->status, DAPX_STATUS_FLUSHED);
        EXPECT_EQ(other.world.receive(0, 0).filled, payload);
        other.expect_refused(DAPX_STATUS_REMOTE_INVALID, 1);
    }
}

// ---------------------------------------------------------------------------------- not ready

TEST_F(XrcResponder, IsDeafUntilItComesAgain)
{
    greet();
    world.responder.rnr_timer = 14;
    arrives(request(0, DAPX_OP_SEND, 3), 3);
    ASSERT_EQ(world.to_requester.size(), 1U);
    EXPECT_EQ(answer().status, DAPX_STATUS_RECEIVER_NOT_READY);
    EXPECT_EQ(answer().rnr_timer, 14);
    EXPECT_EQ(le32toh(answer().expected), 0U);
    EXPECT_FALSE(world.responder.open);
    EXPECT_EQ(world.responder.receive, nullptr);
    world.post(0);
    world.post(0);
    arrives(request(1, DAPX_OP_SEND, 3), 3);
    EXPECT_EQ(world.to_requester.size(), 1U);
    EXPECT_FALSE(world.receive(0, 0).taken);
    arrives(request(0, DAPX_OP_SEND, 3), 3);
    arrives(request(1, DAPX_OP_SEND, 3), 3);
    EXPECT_EQ(world.responder.expected, 2U);
    EXPECT_EQ(world.receive(0, 1).arrival->status, DAPX_STATUS_SUCCESS);
    // No more deaf: this is a mistake now.
    arrives(request(3, DAPX_OP_SEND, 3), 3);
    EXPECT_TRUE(world.responder.failed);
}

TEST_F(XrcResponder, AnswersWhoAsksThoughDeaf)
{
    // Else a requester would not hear of the credits that what is dropped gives back.
    greet();
    arrives(request(0, DAPX_OP_SEND, 3), 3);
    dapx_xrc_request asking = request(1, DAPX_OP_SEND, 3);
    asking.flags = htole16(DAPX_XRC_ASK);
    arrives(asking, 3);
    ASSERT_EQ(world.to_requester.size(), 2U);
    EXPECT_EQ(answer().status, DAPX_STATUS_SUCCESS);
    EXPECT_EQ(answer().flags, 0);
    EXPECT_EQ(le32toh(answer().expected), 0U);
    EXPECT_EQ(le32toh(answer().limit), 3U + 15U);
    EXPECT_TRUE(world.responder.deaf);
}

TEST_F(XrcResponder, IsNotDeafToNonsense)
{
    greet();
    arrives(request(0, DAPX_OP_SEND, 3), 3);
    world.to_requester.clear();
    arrives(Bytes(1000));
    expect_refused(DAPX_STATUS_REMOTE_INVALID, 0);
}

TEST_F(XrcResponder, AnotherMessageMayComeInItsPlace)
{
    // Nothing is kept of what was not ready.
    greet();
    arrives(request(0, DAPX_OP_SEND, 3), 3);
    arrives(request(0, DAPX_OP_RDMA_WRITE, 0));
    EXPECT_FALSE(world.responder.failed);
    EXPECT_EQ(world.responder.expected, 1U);
}

// ---------------------------------------------------------------------------------------- end

TEST_F(XrcResponder, FlushesHalfAMessage)
{
    greet();
    world.post(0);
    arrives(request(0, DAPX_OP_SEND, payload + 1), payload);
    world.break_responder();
    EXPECT_EQ(world.receive(0, 0).arrival->status, DAPX_STATUS_FLUSHED);
    world.break_responder();
    arrives(request(1, DAPX_OP_SEND, payload + 1), 1);
    EXPECT_TRUE(world.to_requester.empty());
    EXPECT_EQ(world.violations(), std::vector<std::string>{});
}

TEST_F(XrcResponder, AQueueThatWentIsLeftAlone)
{
    greet();
    world.post(0);
    arrives(request(0, DAPX_OP_SEND, payload + 1), payload);
    world.kill(0);
    world.break_responder();
    EXPECT_FALSE(world.receive(0, 0).arrival);
    EXPECT_EQ(world.violations(), std::vector<std::string>{});
}

TEST_F(XrcResponder, NoQueueForAnyOperation)
{
    for (int opcode = DAPX_OP_SEND; opcode <= DAPX_OP_FETCH_ADD; ++opcode) {
        Alone other;
        other.greet();
        dapx_xrc_request lost = request(0, static_cast<dapx_opcode>(opcode), 8);
        lost.srqn = htole32(DAPX_XRC_MAX_SRQN + 1);
        other.arrives(lost, opcode < DAPX_OP_RDMA_READ ? 8 : 0);
        other.expect_refused(DAPX_STATUS_REMOTE_ACCESS, 0);
    }
}

} // namespace
} // namespace dapx::xrc::test
