// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The receiving half alone: what arrives is made by hand.
#include "segment.hpp"
#include "world.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <endian.h>
#include <functional>

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
    /// A request with so many data, which say so. They are those of a message whose requests
    /// before this one are full.
    struct Part {
        dapx_xrc_request header;
        std::size_t data = 0;
    };

    static Bytes segment_of(const std::vector<Part>& parts)
    {
        Bytes bytes;
        for (Part part : parts) {
            bytes.resize(next_request(bytes.size()));
            part.header.length = htole32(static_cast<std::uint32_t>(part.data));
            const Bytes header = World::bytes_of(part.header);
            bytes.insert(bytes.end(), header.begin(), header.end());
            for (std::size_t i = 0; i < part.data; ++i)
                bytes.push_back(
                    static_cast<std::byte>((le32toh(part.header.seq) * payload + i) % 251));
        }
        return bytes;
    }
    void arrives(const dapx_xrc_request& header, std::size_t data = 0)
    {
        arrives(segment_of({{header, data}}));
    }
    void arrive(const std::vector<Part>& parts) { arrives(segment_of(parts)); }

    /// The world knows no messages; but what it says of receives and data counts.
    void expect_no_violation() const
    {
        for (const std::string& violation : world.violations())
            EXPECT_EQ(violation, "a message that nobody sent");
    }
    void expect_arrived(std::size_t queue, std::size_t index, std::uint32_t length) const
    {
        const Receive& receive = world.receive(queue, index);
        ASSERT_TRUE(receive.arrival);
        EXPECT_EQ(receive.arrival->status, DAPX_STATUS_SUCCESS);
        EXPECT_EQ(receive.arrival->length, length);
        EXPECT_EQ(receive.filled, length);
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
    // Each is done to a send of one request, for which there is a receive.
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
        {"fewer data than it says", [](dapx_xrc_request&, Bytes& bytes) { bytes.pop_back(); }},
        {"no data where it says some",
         [](dapx_xrc_request&, Bytes& bytes) { bytes.resize(sizeof(dapx_xrc_request)); }},
        {"data where it says none", [](dapx_xrc_request& in, Bytes&) { in.length = 0; }},
        {"too few data",
         [](dapx_xrc_request& in, Bytes& bytes) {
             in.length = htole32(7);
             bytes.pop_back();
         }},
        {"too many data",
         [](dapx_xrc_request& in, Bytes& bytes) {
             in.length = htole32(9);
             bytes.emplace_back();
         }},
        {"very many data", [](dapx_xrc_request& in, Bytes&) { in.length = htole32(1U << 31); }},
        {"as many data as there can be",
         [](dapx_xrc_request& in, Bytes&) { in.length = in.total = htole32(~0U); }},
        {"so many data that it ends where it begins",
         [](dapx_xrc_request& in, Bytes&) {
             in.length = in.total = htole32(0U - static_cast<std::uint32_t>(sizeof(in)));
         }},
        {"data in a read", [](dapx_xrc_request& in, Bytes&) { in.opcode = DAPX_OP_RDMA_READ; }},
        {"data in a read that says it has none",
         [](dapx_xrc_request& in, Bytes&) {
             in.opcode = DAPX_OP_RDMA_READ;
             in.length = 0;
         }},
        {"no data in a read that says it has some",
         [](dapx_xrc_request& in, Bytes& bytes) {
             in.opcode = DAPX_OP_RDMA_READ;
             bytes.resize(sizeof(dapx_xrc_request));
         }},
        {"data in an atomic operation",
         [](dapx_xrc_request& in, Bytes&) { in.opcode = DAPX_OP_FETCH_ADD; }},
        {"data in an atomic operation that says it has none",
         [](dapx_xrc_request& in, Bytes&) {
             in.opcode = DAPX_OP_FETCH_ADD;
             in.length = 0;
         }},
        {"an atomic operation on 4 bytes",
         [](dapx_xrc_request& in, Bytes& bytes) {
             in.opcode = DAPX_OP_COMPARE_SWAP;
             in.total = htole32(4);
             in.length = 0;
             bytes.resize(sizeof(dapx_xrc_request));
         }},
        {"an atomic operation on 16 bytes",
         [](dapx_xrc_request& in, Bytes& bytes) {
             in.opcode = DAPX_OP_FETCH_ADD;
             in.total = htole32(16);
             in.length = 0;
             bytes.resize(sizeof(dapx_xrc_request));
         }},
        {"an atomic operation across a boundary",
         [](dapx_xrc_request& in, Bytes& bytes) {
             in.opcode = DAPX_OP_FETCH_ADD;
             in.addr = htole64(addr + 4);
             in.length = 0;
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
        other.world.put_request(segment_of({{request(0, DAPX_OP_SEND, 8), 8}}));
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

TEST_F(XrcResponder, RequestsThatDoNotBelongTogether)
{
    using Change = void (*)(dapx_xrc_request&, Bytes&);
    const std::vector<std::pair<const char*, Change>> changes = {
        {"operation", [](dapx_xrc_request& in, Bytes&) { in.opcode = DAPX_OP_SEND_IMM; }},
        {"queue", [](dapx_xrc_request& in, Bytes&) { in.srqn = htole32(srqn + 1); }},
        {"more", [](dapx_xrc_request& in, Bytes&) { in.total = htole32(payload + 9); }},
        {"fewer", [](dapx_xrc_request& in, Bytes&) { in.total = htole32(payload + 7); }},
        {"much less", [](dapx_xrc_request& in, Bytes&) { in.total = htole32(8); }},
        {"more, and they come",
         [](dapx_xrc_request& in, Bytes& bytes) {
             in.total = htole32(payload + 9);
             in.length = htole32(9);
             bytes.emplace_back();
         }},
        {"fewer, and no more come",
         [](dapx_xrc_request& in, Bytes& bytes) {
             in.total = htole32(payload + 7);
             in.length = htole32(7);
             bytes.pop_back();
         }},
        {"key", [](dapx_xrc_request& in, Bytes&) { in.rkey = 0; }},
        {"address", [](dapx_xrc_request& in, Bytes&) { in.addr = 0; }},
        {"fewer data than it says", [](dapx_xrc_request&, Bytes& bytes) { bytes.pop_back(); }},
        {"too few data",
         [](dapx_xrc_request& in, Bytes& bytes) {
             in.length = htole32(7);
             bytes.pop_back();
         }},
        {"too many data",
         [](dapx_xrc_request& in, Bytes& bytes) {
             in.length = htole32(9);
             bytes.emplace_back();
         }},
        {"no data",
         [](dapx_xrc_request& in, Bytes& bytes) {
             in.length = 0;
             bytes.resize(sizeof(dapx_xrc_request));
         }},
        {"a whole segment",
         [](dapx_xrc_request& in, Bytes& bytes) {
             in.length = htole32(payload);
             bytes.resize(DAPX_XRC_SEGMENT_SIZE);
         }},
        {"again", [](dapx_xrc_request& in, Bytes&) { in.seq = 0; }},
    };
    for (const auto& [what, change] : changes) {
        SCOPED_TRACE(what);
        Alone other;
        other.greet();
        other.world.post(0);
        other.arrives(request(0, DAPX_OP_SEND, payload + 8), payload);
        ASSERT_TRUE(other.world.receive(0, 0).taken && !other.world.receive(0, 0).arrival);
        other.world.put_request(segment_of({{request(1, DAPX_OP_SEND, payload + 8), 8}}));
        World::change<dapx_xrc_request>(other.world.to_responder, 0, change);
        other.world.deliver_request();
        EXPECT_EQ(other.world.receive(0, 0).arrival->status, DAPX_STATUS_FLUSHED);
        EXPECT_EQ(other.world.receive(0, 0).filled, payload);
        other.expect_refused(DAPX_STATUS_REMOTE_INVALID, 1);
    }
}

// ------------------------------------------------------------------------ requests that share

TEST_F(XrcResponder, TakesAllRequestsOfASegment)
{
    greet();
    for (int i = 0; i < 4; ++i)
        world.post(0);
    world.enqueue({.opcode = DAPX_OP_RDMA_WRITE, .total = 11, .rkey = rkey});
    dapx_xrc_request imm = request(3, DAPX_OP_SEND_IMM, 0);
    imm.imm = htole32(77);
    imm.flags = htole16(DAPX_XRC_SOLICITED);
    arrive({{request(0, DAPX_OP_SEND, 3), 3},
            {request(1, DAPX_OP_SEND, 8), 8},
            {request(2, DAPX_OP_RDMA_WRITE, 11), 11},
            {imm, 0},
            {request(4, DAPX_OP_SEND, 61), 61}});
    // Nobody asked.
    EXPECT_TRUE(world.to_requester.empty());
    EXPECT_EQ(world.responder.expected, 5U);
    EXPECT_EQ(world.responder.messages, 5U);
    expect_arrived(0, 0, 3);
    expect_arrived(0, 1, 8);
    expect_arrived(0, 2, 0);
    EXPECT_EQ(world.receive(0, 2).arrival->imm, 77U);
    EXPECT_TRUE(world.receive(0, 2).arrival->solicited);
    expect_arrived(0, 3, 61);
    EXPECT_FALSE(world.receive(0, 3).arrival->solicited);
    EXPECT_EQ(world.region(rkey).filled, 11U);
    EXPECT_FALSE(world.responder.failed);
}

TEST_F(XrcResponder, TakesAsManyRequestsAsFit)
{
    greet();
    std::vector<Part> parts;
    for (std::uint32_t i = 0; i < DAPX_XRC_SEGMENT_SIZE / 64; ++i) {
        world.post(0, 8);
        parts.push_back({request(i, DAPX_OP_SEND, 8), 8});
    }
    ASSERT_EQ(segment_of(parts).size(), std::size_t{DAPX_XRC_SEGMENT_SIZE});
    parts[0].header.flags = htole16(DAPX_XRC_ASK);
    arrive(parts);
    ASSERT_EQ(world.to_requester.size(), 1U);
    EXPECT_EQ(answer().status, DAPX_STATUS_SUCCESS);
    EXPECT_EQ(le32toh(answer().expected), parts.size());
    // One segment, whatever is in it: the hello's buffer came back, this one did not yet.
    EXPECT_EQ(le32toh(answer().limit), 2U + 15U);
    EXPECT_EQ(world.responder.messages, parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i)
        expect_arrived(0, i, 8);
    expect_no_violation();
}

TEST_F(XrcResponder, TheEndOfALongMessageHasCompany)
{
    greet();
    world.post(0);
    world.post(0);
    world.post(0);
    arrive({{request(0, DAPX_OP_SEND, 2 * payload + 5), payload}});
    arrive({{request(1, DAPX_OP_SEND, 2 * payload + 5), payload}});
    arrive({{request(2, DAPX_OP_SEND, 2 * payload + 5), 5},
            {request(3, DAPX_OP_SEND, 1), 1},
            {request(4, DAPX_OP_SEND, 0), 0}});
    expect_arrived(0, 0, 2 * payload + 5);
    expect_arrived(0, 1, 1);
    expect_arrived(0, 2, 0);
    EXPECT_EQ(world.responder.messages, 3U);
    expect_no_violation();
}

TEST_F(XrcResponder, OnlyTheFirstRequestSpeaksForTheSegment)
{
    greet();
    for (int i = 0; i < 6; ++i)
        world.post(0);
    std::vector<Part> parts;
    for (std::uint32_t i = 0; i < 3; ++i) {
        parts.push_back({request(i, DAPX_OP_SEND, 1), 1});
        parts[i].header.demand = htole32(i == 0 ? 55 : 99);
        parts[i].header.flags = htole16(i == 0 ? 0 : DAPX_XRC_ASK);
    }
    arrive(parts);
    EXPECT_TRUE(world.to_requester.empty());
    EXPECT_EQ(world.responder.demand, 55U);
    for (std::uint32_t i = 0; i < 3; ++i) {
        parts[i].header.seq = htole32(3 + i);
        parts[i].header.flags = htole16(i == 0 ? DAPX_XRC_ASK : 0);
    }
    arrive(parts);
    ASSERT_EQ(world.to_requester.size(), 1U);
    EXPECT_EQ(le32toh(answer().expected), 6U);
    EXPECT_EQ(answer().flags, 0);
}

TEST_F(XrcResponder, SharedSegmentsThatMakeNoSense)
{
    // Sends of 3, 5 and 8 bytes: they begin here.
    constexpr std::size_t second = 64;
    constexpr std::size_t third = 128;
    constexpr std::size_t end = 192;
    const auto header_at = [](Bytes& bytes, std::size_t at, const auto& with) {
        dapx_xrc_request header{};
        std::memcpy(&header, &bytes.at(at), sizeof(header));
        with(header);
        std::memcpy(&bytes.at(at), &header, sizeof(header));
    };
    struct Case {
        std::string what;
        std::uint32_t done; // before it
        std::function<void(Bytes&)> change;
    };
    std::vector<Case> cases;
    const auto length_of = [&](std::size_t at, std::uint32_t length) {
        return [=](Bytes& bytes) {
            header_at(bytes, at, [&](dapx_xrc_request& in) { in.length = htole32(length); });
        };
    };
    for (std::size_t size = 56 + 3 + 1; size < second + sizeof(dapx_xrc_request); ++size)
        cases.push_back({"the second header ends at " + std::to_string(size), 1,
                         [=](Bytes& bytes) { bytes.resize(size); }});
    for (std::size_t size = second + sizeof(dapx_xrc_request); size < third - 3; ++size)
        cases.push_back({"the second one's data end at " + std::to_string(size), 1,
                         [=](Bytes& bytes) { bytes.resize(size); }});
    for (std::size_t size = third - 3 + 1; size < third + sizeof(dapx_xrc_request); ++size)
        cases.push_back({"the third header ends at " + std::to_string(size), 2,
                         [=](Bytes& bytes) { bytes.resize(size); }});
    // Also as many as a header has: it has no type.
    for (std::size_t more = 1; more < 64; ++more)
        cases.push_back({std::to_string(more) + " bytes behind the last", 3,
                         [=](Bytes& bytes) { bytes.resize(end + more); }});
    for (const std::uint8_t type : {0, 1, 2, 4, 5, 255})
        cases.push_back({"the second's type is " + std::to_string(type), 1, [=](Bytes& bytes) {
                             header_at(bytes, second,
                                       [&](dapx_xrc_request& in) { in.type = type; });
                         }});
    for (const std::uint32_t seq : {0U, 2U, 3U, ~0U})
        cases.push_back({"the second's number is " + std::to_string(seq), 1, [=](Bytes& bytes) {
                             header_at(bytes, second,
                                       [&](dapx_xrc_request& in) { in.seq = htole32(seq); });
                         }});
    for (const std::uint32_t length : {0U, 4U, 6U, 8U, 64U, 72U, 73U, 8000U, 1U << 31, ~0U,
                                       0U - 56U, 0U - 64U, 0U - 120U, 0U - 128U})
        cases.push_back(
            {"the second's length is " + std::to_string(length), 1, length_of(second, length)});
    for (const std::uint32_t length : {0U, 2U, 4U, 64U, ~0U, 0U - 56U})
        cases.push_back(
            {"the first's length is " + std::to_string(length), 0, length_of(0, length)});
    for (const std::uint32_t length : {0U, 7U, 9U, ~0U, 0U - 192U})
        cases.push_back(
            {"the third's length is " + std::to_string(length), 2, length_of(third, length)});
    cases.push_back({"the second is of more bytes than it has", 1, [=](Bytes& bytes) {
                         header_at(bytes, second,
                                   [](dapx_xrc_request& in) { in.total = htole32(6); });
                     }});
    cases.push_back({"the second is of fewer bytes than it has", 1, [=](Bytes& bytes) {
                         header_at(bytes, second,
                                   [](dapx_xrc_request& in) { in.total = htole32(4); });
                     }});
    cases.push_back({"the second is no operation", 1, [=](Bytes& bytes) {
                         header_at(bytes, second, [](dapx_xrc_request& in) { in.opcode = 7; });
                     }});
    cases.push_back({"the second begins too early", 1,
                     [=](Bytes& bytes) { bytes.erase(bytes.begin() + second - 1); }});
    cases.push_back({"the second begins too late", 1,
                     [=](Bytes& bytes) { bytes.insert(bytes.begin() + second, std::byte{}); }});
    for (const Case& one : cases) {
        SCOPED_TRACE(one.what);
        Alone other;
        other.greet();
        for (int i = 0; i < 4; ++i)
            other.world.post(0);
        Bytes bytes = segment_of({{request(0, DAPX_OP_SEND, 3), 3},
                                  {request(1, DAPX_OP_SEND, 5), 5},
                                  {request(2, DAPX_OP_SEND, 8), 8}});
        ASSERT_EQ(bytes.size(), end);
        one.change(bytes);
        other.arrives(std::move(bytes));
        constexpr std::uint32_t lengths[] = {3, 5, 8};
        for (std::uint32_t i = 0; i < one.done; ++i)
            other.expect_arrived(0, i, lengths[i]);
        for (std::size_t i = one.done; i < 4; ++i) {
            const Receive& receive = other.world.receive(0, i);
            EXPECT_EQ(receive.filled, 0U);
            EXPECT_EQ(receive.taken, receive.arrival.has_value());
            EXPECT_TRUE(!receive.taken ||
                        (i == one.done && receive.arrival->status == DAPX_STATUS_FLUSHED));
        }
        EXPECT_EQ(other.world.responder.messages, one.done);
        other.expect_refused(DAPX_STATUS_REMOTE_INVALID, one.done);
        other.expect_no_violation();
    }
}

TEST_F(XrcResponder, WhatIsBehindTheOnlyRequest)
{
    // Whether it ends where another one could begin or not.
    for (const std::uint32_t total : {0U, 3U, 8U}) {
        for (std::size_t more = 1; more < 64; ++more) {
            SCOPED_TRACE(testing::Message() << total << " bytes, and " << more);
            Alone other;
            other.greet();
            other.world.post(0);
            Bytes bytes = segment_of({{request(0, DAPX_OP_SEND, total), total}});
            bytes.resize(bytes.size() + more);
            other.arrives(std::move(bytes));
            other.expect_arrived(0, 0, total);
            other.expect_refused(DAPX_STATUS_REMOTE_INVALID, 1);
        }
    }
}

TEST_F(XrcResponder, WhatReturnsDataHasNoCompany)
{
    // The answer's data would take the place of the other requests.
    for (const auto opcode : {DAPX_OP_RDMA_READ, DAPX_OP_COMPARE_SWAP, DAPX_OP_FETCH_ADD}) {
        for (const std::uint32_t total : {0U, 8U}) {
            for (std::uint32_t at = 0; at < 3; ++at) {
                SCOPED_TRACE(testing::Message() << "opcode " << opcode << ", the " << at << "th");
                Alone other;
                other.greet();
                other.world.post(0);
                other.world.post(0);
                other.world.enqueue({.opcode = opcode, .total = 8, .rkey = rkey});
                std::vector<Part> parts;
                for (std::uint32_t i = 0; i < 3; ++i) {
                    parts.push_back({request(i, i == at ? opcode : DAPX_OP_SEND, 8), 8});
                    if (i == at) {
                        parts[i].data = 0;
                        parts[i].header.total = htole32(total);
                        parts[i].header.compare_add = 0;
                        parts[i].header.swap = htole64(1);
                        if (opcode == DAPX_OP_FETCH_ADD)
                            parts[i].header.compare_add = htole64(1);
                    }
                }
                other.arrive(parts);
                EXPECT_EQ(other.world.region(rkey).word, 0U);
                EXPECT_EQ(other.world.message(0).executed, 0U);
                EXPECT_FALSE(other.world.message(0).landed);
                EXPECT_EQ(other.world.queue(0).next, at);
                for (std::size_t i = 0; i < at; ++i)
                    other.expect_arrived(0, i, 8);
                other.expect_refused(DAPX_STATUS_REMOTE_INVALID, at);
                other.expect_no_violation();
            }
        }
    }
}

TEST_F(XrcResponder, TwoThatReturnDataInASegment)
{
    greet();
    world.enqueue({.opcode = DAPX_OP_FETCH_ADD, .rkey = rkey});
    dapx_xrc_request add = request(0, DAPX_OP_FETCH_ADD, 8);
    add.compare_add = htole64(1);
    dapx_xrc_request other = add;
    other.seq = htole32(1);
    arrive({{add, 0}, {other, 0}});
    EXPECT_EQ(world.region(rkey).word, 0U);
    expect_refused(DAPX_STATUS_REMOTE_INVALID, 0);
}

TEST_F(XrcResponder, RefusesInTheMiddleOfASegment)
{
    greet();
    for (int i = 0; i < 4; ++i)
        world.post(0);
    dapx_xrc_request lost = request(2, DAPX_OP_SEND, 1);
    lost.srqn = htole32(srqn + 1);
    arrive({{request(0, DAPX_OP_SEND, 1), 1},
            {request(1, DAPX_OP_SEND, 2), 2},
            {lost, 1},
            {request(3, DAPX_OP_SEND, 1), 1}});
    expect_arrived(0, 0, 1);
    expect_arrived(0, 1, 2);
    EXPECT_EQ(world.queue(0).next, 2U);
    EXPECT_EQ(world.responder.messages, 2U);
    expect_refused(DAPX_STATUS_REMOTE_QUEUE, 2);
    expect_no_violation();
}

// ---------------------------------------------------------------------------------- not ready

TEST_F(XrcResponder, NotReadyInTheMiddleOfASegment)
{
    // What is behind it is not done, though its own queue has a receive.
    greet();
    world.add_queue(2);
    world.post(0);
    dapx_xrc_request second = request(1, DAPX_OP_SEND, 2);
    dapx_xrc_request fourth = request(3, DAPX_OP_SEND, 4);
    dapx_xrc_request fifth = request(4, DAPX_OP_SEND, 5);
    for (dapx_xrc_request* in : {&second, &fourth, &fifth})
        in->srqn = htole32(srqn + 1);
    arrive({{request(0, DAPX_OP_SEND, 1), 1}, {request(1, DAPX_OP_SEND, 2), 2}, {fourth, 4}});
    ASSERT_EQ(world.to_requester.size(), 1U);
    EXPECT_EQ(answer().status, DAPX_STATUS_RECEIVER_NOT_READY);
    EXPECT_EQ(le32toh(answer().expected), 1U);
    EXPECT_EQ(answer().flags, 0);
    EXPECT_EQ(world.responder.messages, 1U);
    EXPECT_TRUE(world.responder.dropping);
    EXPECT_FALSE(world.responder.open);
    expect_arrived(0, 0, 1);
    EXPECT_FALSE(world.receive(1, 0).taken);
    world.post(0);
    // Dropped as a whole, also what is expected: it comes again as the first.
    arrive({{request(2, DAPX_OP_SEND, 3), 3}, {fourth, 4}, {fifth, 5}});
    arrive({{request(0, DAPX_OP_SEND, 1), 1}, {request(1, DAPX_OP_SEND, 2), 2}});
    EXPECT_EQ(world.to_requester.size(), 1U);
    EXPECT_EQ(world.responder.expected, 1U);
    EXPECT_FALSE(world.receive(0, 1).taken || world.receive(1, 0).taken);
    // Who asks is answered, once; nobody looks at what is behind.
    dapx_xrc_request asking = request(2, DAPX_OP_SEND, 3);
    asking.flags = htole16(DAPX_XRC_ASK);
    Bytes bytes = segment_of({{asking, 3}, {fourth, 4}});
    bytes.resize(bytes.size() + 10);
    arrives(std::move(bytes));
    ASSERT_EQ(world.to_requester.size(), 2U);
    EXPECT_EQ(answer().status, DAPX_STATUS_SUCCESS);
    EXPECT_EQ(le32toh(answer().expected), 1U);
    EXPECT_TRUE(world.responder.dropping);
    // Again, in other company.
    world.post(0);
    arrive({{request(1, DAPX_OP_SEND, 2), 2}});
    arrive({{request(2, DAPX_OP_SEND, 3), 3}, {fourth, 4}, {fifth, 5}});
    EXPECT_EQ(world.responder.expected, 5U);
    EXPECT_EQ(world.responder.messages, 5U);
    expect_arrived(0, 1, 2);
    expect_arrived(0, 2, 3);
    expect_arrived(1, 0, 4);
    expect_arrived(1, 1, 5);
    EXPECT_FALSE(world.responder.dropping);
    expect_no_violation();
}

TEST_F(XrcResponder, ImmediateDataNotReadyInTheMiddleOfASegment)
{
    greet();
    world.enqueue({.opcode = DAPX_OP_RDMA_WRITE_IMM, .total = 5, .rkey = rkey});
    const Part imm = {request(1, DAPX_OP_RDMA_WRITE_IMM, 5), 5};
    world.post(0);
    arrive({{request(0, DAPX_OP_SEND, 1), 1}, imm, {request(2, DAPX_OP_RDMA_WRITE, 0), 0}});
    ASSERT_EQ(world.to_requester.size(), 1U);
    EXPECT_EQ(answer().status, DAPX_STATUS_RECEIVER_NOT_READY);
    EXPECT_EQ(le32toh(answer().expected), 1U);
    EXPECT_EQ(world.responder.messages, 1U);
    world.post(0);
    arrive({imm, {request(2, DAPX_OP_RDMA_WRITE, 0), 0}});
    EXPECT_EQ(world.responder.expected, 3U);
    EXPECT_EQ(world.responder.messages, 3U);
    EXPECT_TRUE(world.receive(0, 1).arrival);
    EXPECT_EQ(world.region(rkey).filled, 5U);
}

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
    EXPECT_TRUE(world.responder.dropping);
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
        other.expect_refused(DAPX_STATUS_REMOTE_QUEUE, 0);
    }
}

} // namespace
} // namespace dapx::xrc::test
