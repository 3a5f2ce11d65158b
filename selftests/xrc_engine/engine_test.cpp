// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Both halves together: what is submitted at one end happens at the other, once and in order.
#include "scene.hpp"

#include <gtest/gtest.h>

#include <random>

namespace dapx::xrc::test {
namespace {

constexpr std::uint32_t payload = DAPX_XRC_PAYLOAD;

TEST(XrcEngine, EveryOperationInEverySize)
{
    for (const std::uint32_t total : {0U, 1U, payload - 1, payload, payload + 1, 2 * payload,
                                      7 * payload + 3, (5U << 20) + 7}) {
        for (const auto opcode : {DAPX_OP_SEND, DAPX_OP_SEND_IMM, DAPX_OP_RDMA_WRITE,
                                  DAPX_OP_RDMA_WRITE_IMM, DAPX_OP_RDMA_READ}) {
            SCOPED_TRACE(testing::Message() << "opcode " << opcode << ", " << total << " bytes");
            Scene world;
            world.add_queue(1, total);
            world.submit({.opcode = opcode, .total = total, .solicited = true, .imm = 0xabcd});
            ASSERT_TRUE(world.settle());
            EXPECT_EQ(world.status(0), DAPX_STATUS_SUCCESS);
            const auto& arrival = world.receive(0, 0).arrival;
            ASSERT_EQ(arrival.has_value(),
                      opcode != DAPX_OP_RDMA_WRITE && opcode != DAPX_OP_RDMA_READ);
            if (arrival) {
                EXPECT_EQ(arrival->opcode, opcode);
                EXPECT_EQ(arrival->length, total);
                EXPECT_EQ(arrival->imm, 0xabcdU);
                EXPECT_TRUE(arrival->solicited);
            }
            // Also behind it, the next message finds its place.
            world.post(0);
            world.submit({.total = std::min(total, 3U)});
            ASSERT_TRUE(world.settle());
            EXPECT_EQ(world.status(1), DAPX_STATUS_SUCCESS);
        }
    }
}

TEST(XrcEngine, AtomicsReturnWhatWasThere)
{
    Scene world;
    world.add_queue();
    world.submit({.opcode = DAPX_OP_FETCH_ADD, .compare_add = 5, .rkey = 1});
    world.region(1).word = 0x123456789abcdef0U;
    ASSERT_TRUE(world.settle());
    EXPECT_EQ(world.status(0), DAPX_STATUS_SUCCESS);
    EXPECT_EQ(world.message(0).old, 0x123456789abcdef0U);
    EXPECT_EQ(world.region(1).word, 0x123456789abcdef5U);

    const auto compare_swap = [&](std::uint64_t compare, std::uint64_t swap) {
        const std::uint32_t rkey = 2 + static_cast<std::uint32_t>(world.messages());
        const std::size_t index = world.enqueue(
            {.opcode = DAPX_OP_COMPARE_SWAP, .compare_add = compare, .swap = swap, .rkey = rkey});
        world.region(rkey).word = 7;
        world.transmit();
        EXPECT_TRUE(world.settle());
        EXPECT_EQ(world.status(index), DAPX_STATUS_SUCCESS);
        EXPECT_EQ(world.message(index).old, 7U);
        return world.region(rkey).word;
    };
    EXPECT_EQ(compare_swap(7, ~std::uint64_t{0}), ~std::uint64_t{0});
    EXPECT_EQ(compare_swap(8, 1), 7U);
}

TEST(XrcEngine, MessagesToSeveralQueuesKeepTheirOrder)
{
    Scene world;
    for (int i = 0; i < 3; ++i)
        world.add_queue(20);
    for (std::uint32_t i = 0; i < 60; ++i)
        world.enqueue({.opcode = i % 7 == 0 ? DAPX_OP_RDMA_READ : DAPX_OP_SEND,
                       .queue = i % 3,
                       .total = (i * 977) % (3 * payload)});
    world.transmit();
    // That it is in order, and nothing twice, is what the world looks after.
    ASSERT_TRUE(world.settle());
    world.expect_all(DAPX_STATUS_SUCCESS);
}

TEST(XrcEngine, SmallMessagesToSeveralQueuesKeepTheirOrder)
{
    for (const bool own_steps : {false, true}) {
        Scene world({.buffers = 3, .room = 2, .own_steps = own_steps});
        for (int i = 0; i < 3; ++i)
            world.add_queue(600);
        for (std::uint32_t i = 0; i < 600; ++i) {
            constexpr dapx_opcode opcodes[] = {DAPX_OP_SEND, DAPX_OP_RDMA_WRITE_IMM,
                                               DAPX_OP_SEND_IMM, DAPX_OP_RDMA_WRITE};
            world.enqueue({.opcode = i % 97 == 96 ? DAPX_OP_FETCH_ADD : opcodes[i % 4],
                           .queue = i % 3,
                           .total = i % 37,
                           .fence = i % 53 == 0,
                           .imm = i});
        }
        world.transmit();
        ASSERT_TRUE(world.settle());
        world.expect_all(DAPX_STATUS_SUCCESS);
        EXPECT_GE(world.shared, 7U);
        // 600 of 56 to 96 bytes.
        EXPECT_LT(world.requester.sent, 30U);
    }
}

TEST(XrcEngine, WaitsInTheMiddleOfASegment)
{
    // Each of ten messages finds no receive; what is behind it finds one, and must wait.
    for (const auto opcode : {DAPX_OP_SEND, DAPX_OP_SEND_IMM, DAPX_OP_RDMA_WRITE_IMM}) {
        for (std::uint32_t which = 0; which < 10; ++which) {
            SCOPED_TRACE(testing::Message() << "opcode " << opcode << ", message " << which);
            Scene world;
            world.add_queue(9);
            world.add_queue();
            for (std::uint32_t i = 0; i < 10; ++i)
                world.enqueue(
                    {.opcode = opcode, .queue = i == which ? 1U : 0U, .total = i * 5, .imm = i});
            world.transmit();
            EXPECT_FALSE(world.settle(3));
            EXPECT_EQ(world.done(), which);
            EXPECT_EQ(world.queue(0).next, which);
            EXPECT_EQ(world.not_ready, 4U);
            EXPECT_EQ(world.not_ready_inside, which > 0 ? 1U : 0U);
            EXPECT_EQ(world.responder.messages, which);
            world.post(1);
            ASSERT_TRUE(world.settle());
            world.expect_all(DAPX_STATUS_SUCCESS);
            EXPECT_EQ(world.queue(0).next, 9U);
            EXPECT_EQ(world.receive(1, 0).arrival->imm, which);
            EXPECT_EQ(world.shared, which < 9 ? 5U : 1U);
        }
    }
}

TEST(XrcEngine, RefusedInTheMiddleOfASegment)
{
    for (std::uint32_t which = 0; which < 10; ++which) {
        for (int wrong = 0; wrong < 4; ++wrong) {
            SCOPED_TRACE(testing::Message() << "message " << which << ", case " << wrong);
            Scene world;
            world.add_queue(10);
            world.add_queue();
            world.post(1, 100, wrong == 3 ? 5 : 100);
            constexpr dapx_status statuses[] = {DAPX_STATUS_REMOTE_QUEUE, DAPX_STATUS_REMOTE_ACCESS,
                                                DAPX_STATUS_REMOTE_INVALID,
                                                DAPX_STATUS_REMOTE_OPERATION};
            for (std::uint32_t i = 0; i < 10; ++i) {
                Wanted wanted = {.total = i};
                if (i == which && wrong == 0)
                    wanted.srqn = 0x123;
                if (i == which && wrong == 1)
                    wanted = {.opcode = DAPX_OP_RDMA_WRITE, .total = 7, .rkey = 77};
                if (i == which && wrong == 2)
                    wanted = {.queue = 1, .total = 101};
                if (i == which && wrong == 3)
                    wanted = {.queue = 1, .total = 6};
                world.enqueue(wanted);
            }
            if (wrong == 1)
                world.region(77).writable = false;
            world.transmit();
            ASSERT_TRUE(world.settle());
            EXPECT_EQ(world.shared, 1U);
            EXPECT_EQ(world.requester.sent, 2U);
            world.expect_failed(which, statuses[wrong]);
            EXPECT_EQ(world.responder.messages, which);
            EXPECT_EQ(world.queue(0).next, which);
        }
    }
}

TEST(XrcEngine, AReadBetweenSmallMessages)
{
    // It is the only one of its segment, and what is behind it is behind it.
    Scene world;
    world.add_queue(40);
    for (std::uint32_t i = 0; i < 50; ++i)
        world.enqueue({.opcode = i % 5 == 2 ? DAPX_OP_RDMA_READ : DAPX_OP_SEND,
                       .total = 3 + i,
                       .fence = i % 5 == 4});
    world.transmit();
    ASSERT_TRUE(world.settle());
    world.expect_all(DAPX_STATUS_SUCCESS);
    EXPECT_GT(world.shared, 10U);
}

TEST(XrcEngine, FewCreditsLittleRoom)
{
    for (std::uint32_t buffers = 1; buffers <= 3; ++buffers) {
        for (std::uint32_t room = 1; room <= 3; ++room) {
            for (const bool own_steps : {false, true}) {
                SCOPED_TRACE(testing::Message() << buffers << " buffers, room for " << room);
                Scene world(
                    {.buffers = std::max(buffers, 2U), .room = room, .own_steps = own_steps});
                world.add_queue(20);
                for (std::uint32_t i = 0; i < 20; ++i)
                    world.submit({.total = i * payload / 4, .fence = i % 3 == 0});
                ASSERT_TRUE(world.settle());
                world.expect_all(DAPX_STATUS_SUCCESS);
                // The same, each in a segment of its own or more.
                for (std::uint32_t i = 0; i < 20; ++i) {
                    world.post(0);
                    world.submit({.total = payload + i * payload / 4, .fence = i % 3 == 0});
                }
                ASSERT_TRUE(world.settle());
                world.expect_all(DAPX_STATUS_SUCCESS);
            }
        }
    }
}

TEST(XrcEngine, NumbersWrapAround)
{
    for (std::uint32_t back = 0; back < 12; ++back) {
        SCOPED_TRACE(back);
        Scene world({.buffers = 4, .room = 3, .start = 0U - back});
        world.add_queue(1);
        world.add_queue(4);
        for (std::uint32_t i = 0; i < 4; ++i) {
            world.submit({.queue = 0, .total = payload + i});
            world.submit({.opcode = DAPX_OP_RDMA_READ, .total = 2 * payload});
            world.submit({.opcode = DAPX_OP_RDMA_WRITE_IMM, .queue = 1, .total = 2 * payload});
        }
        // The first queue has one receive; the others come late.
        for (std::uint32_t i = 1; i < 4; ++i) {
            EXPECT_FALSE(world.settle(2));
            EXPECT_EQ(world.done(), 3 * i);
            world.post(0);
        }
        ASSERT_TRUE(world.settle());
        world.expect_all(DAPX_STATUS_SUCCESS);
        EXPECT_GE(world.not_ready, 3U);
        EXPECT_LT(world.requester.sent, 100U);
    }
}

TEST(XrcEngine, WaitsForAReceive)
{
    Scene world;
    world.responder.rnr_timer = 12;
    world.add_queue();
    world.add_queue(2);
    world.submit({.total = 10});
    world.submit({.queue = 1, .total = 3 * payload});
    world.submit({.opcode = DAPX_OP_FETCH_ADD, .compare_add = 1});
    EXPECT_FALSE(world.settle(2));
    EXPECT_EQ(world.done(), 0U);
    EXPECT_EQ(world.not_ready, 3U);
    EXPECT_EQ(world.timers.back(), 640U);
    world.post(0);
    ASSERT_TRUE(world.settle());
    world.expect_all(DAPX_STATUS_SUCCESS);
    EXPECT_EQ(world.message(2).executed, 1U);
}

TEST(XrcEngine, WaitsWithAllCreditsUsed)
{
    // All that was granted lies behind the message that finds nothing, and is dropped: segments
    // of one message, and of many.
    for (const auto& [tells_unasked, total] :
         {std::pair{false, payload}, {true, payload}, {false, 2'000U}, {true, 2'000U}}) {
        Scene world({.buffers = 4, .tells_unasked = tells_unasked});
        world.add_queue();
        for (int i = 0; i < 9; ++i)
            world.submit({.total = total});
        EXPECT_FALSE(world.settle(2));
        EXPECT_EQ(world.not_ready, 3U);
        EXPECT_EQ(world.shared > 0, total != payload);
        for (int i = 0; i < 9; ++i)
            world.post(0);
        ASSERT_TRUE(world.settle());
        world.expect_all(DAPX_STATUS_SUCCESS);
    }
}

TEST(XrcEngine, ImmediateDataWaitsForAReceiveAtItsEnd)
{
    for (const std::uint32_t total : {0U, 5U, payload, payload + 1, 3 * payload}) {
        SCOPED_TRACE(total);
        Scene world;
        world.add_queue();
        world.submit({.opcode = DAPX_OP_RDMA_WRITE_IMM, .total = total, .imm = 99});
        world.submit({.total = 1});
        EXPECT_FALSE(world.settle(1));
        EXPECT_EQ(world.not_ready, 2U);
        EXPECT_EQ(world.done(), 0U);
        // All but the last request need no receive, and do not come again.
        EXPECT_EQ(world.responder.expected, total == 0 ? 0U : (total - 1) / payload);
        world.post(0, 0);
        world.post(0, 1);
        ASSERT_TRUE(world.settle());
        world.expect_all(DAPX_STATUS_SUCCESS);
        EXPECT_EQ(world.receive(0, 0).arrival->imm, 99U);
    }
}

TEST(XrcEngine, GivesUpWaitingForAReceive)
{
    for (const std::uint8_t limit : {0, 1, 3, 6}) {
        SCOPED_TRACE(int{limit});
        Scene world({.retry_limit = limit});
        world.add_queue();
        world.add_queue(1);
        world.submit({.queue = 1});
        world.submit({.queue = 0});
        world.submit({.queue = 1});
        ASSERT_TRUE(world.settle());
        EXPECT_EQ(world.not_ready, limit + 1U);
        world.expect_failed(1, DAPX_STATUS_RECEIVER_NOT_READY);
    }
}

TEST(XrcEngine, TooLongForItsReceive)
{
    for (const std::uint32_t total : {101U, payload + 1}) {
        Scene world;
        world.add_queue();
        world.post(0, 100);
        world.submit({.total = total});
        world.submit({.total = 1});
        ASSERT_TRUE(world.settle());
        EXPECT_EQ(world.receive(0, 0).arrival->status, DAPX_STATUS_LOCAL_LENGTH);
        EXPECT_EQ(world.receive(0, 0).filled, 0U);
        world.expect_failed(0, DAPX_STATUS_REMOTE_INVALID);
        EXPECT_TRUE(world.responder.failed);
    }
}

TEST(XrcEngine, NoSuchQueue)
{
    Scene world;
    world.add_queue(1);
    world.submit({.total = 1});
    world.submit({.opcode = DAPX_OP_RDMA_WRITE, .srqn = 0x123});
    world.submit({.total = 1});
    ASSERT_TRUE(world.settle());
    world.expect_failed(1, DAPX_STATUS_REMOTE_QUEUE);
}

TEST(XrcEngine, QueueGoesInTheMiddleOfAMessage)
{
    for (const auto opcode : {DAPX_OP_SEND, DAPX_OP_RDMA_WRITE_IMM, DAPX_OP_RDMA_READ}) {
        Scene world({.room = 2});
        world.add_queue(2);
        world.add_queue(2);
        world.submit({.queue = 1});
        world.submit({.opcode = opcode, .total = 5 * payload});
        world.submit({.queue = 1});
        while (world.responder.expected < 3)
            ASSERT_TRUE(world.deliver_request() || world.deliver_answer() || world.complete_send());
        world.kill(0);
        ASSERT_TRUE(world.settle());
        world.expect_failed(1, DAPX_STATUS_REMOTE_QUEUE);
        EXPECT_FALSE(world.receive(0, 0).arrival);
        world.break_responder();
        EXPECT_FALSE(world.receive(0, 0).arrival);
    }
}

TEST(XrcEngine, AnotherQueueThatGoesIsNoMatter)
{
    Scene world;
    world.add_queue(2);
    world.add_queue(2);
    world.submit({.queue = 1});
    ASSERT_TRUE(world.settle());
    world.submit({.total = 3 * payload});
    ASSERT_TRUE(world.deliver_request());
    world.kill(1);
    ASSERT_TRUE(world.settle());
    world.expect_all(DAPX_STATUS_SUCCESS);
}

TEST(XrcEngine, ReceiveWhoseMemoryFails)
{
    for (const std::uint64_t at : {0U, payload}) {
        Scene world;
        world.add_queue();
        world.post(0, 1 << 20, at);
        world.submit({.total = 3 * payload});
        world.submit({.total = 1});
        ASSERT_TRUE(world.settle());
        EXPECT_EQ(world.receive(0, 0).arrival->status, DAPX_STATUS_LOCAL_PROTECTION);
        world.expect_failed(0, DAPX_STATUS_REMOTE_OPERATION);
    }
}

TEST(XrcEngine, KeysThatDoNotGiveTheRights)
{
    for (const auto opcode : {DAPX_OP_RDMA_WRITE, DAPX_OP_RDMA_WRITE_IMM, DAPX_OP_RDMA_READ,
                              DAPX_OP_COMPARE_SWAP, DAPX_OP_FETCH_ADD}) {
        for (int wrong = 0; wrong < 4; ++wrong) {
            SCOPED_TRACE(testing::Message() << "opcode " << opcode << ", case " << wrong);
            Scene world;
            world.add_queue(3);
            world.submit({.total = 1});
            world.submit({.opcode = opcode, .total = 2 * payload, .rkey = 77});
            world.submit({.total = 1});
            Region& region = world.region(77);
            switch (wrong) {
            case 0:
                region.rkey = 78;
                break;
            case 1:
                region.readable = region.writable = false;
                break;
            case 2:
                region.addr += 8;
                break;
            default:
                region.length -= 1;
                break;
            }
            ASSERT_TRUE(world.settle());
            world.expect_failed(1, DAPX_STATUS_REMOTE_ACCESS);
            EXPECT_EQ(world.region(region.rkey).word, 0U);
        }
    }
}

TEST(XrcEngine, KeyGoesInTheMiddleOfAMessage)
{
    for (const auto opcode : {DAPX_OP_RDMA_WRITE, DAPX_OP_RDMA_WRITE_IMM, DAPX_OP_RDMA_READ}) {
        Scene world({.room = 1});
        world.add_queue(3);
        world.submit({.opcode = opcode, .total = 3 * payload, .rkey = 77});
        while (world.responder.expected < 2)
            ASSERT_TRUE(world.deliver_request() || world.deliver_answer() || world.complete_send());
        world.region(77).readable = world.region(77).writable = false;
        ASSERT_TRUE(world.settle());
        world.expect_failed(0, DAPX_STATUS_REMOTE_ACCESS);
        EXPECT_FALSE(world.receive(0, 0).taken);
    }
}

TEST(XrcEngine, TheConnectionGoesInTheMiddleOfAMessage)
{
    Scene world;
    world.add_queue(2);
    world.submit({.total = 1});
    ASSERT_TRUE(world.settle());
    world.submit({.total = 3 * payload});
    world.submit({.total = 1});
    ASSERT_TRUE(world.deliver_request());
    world.break_requester();
    world.expect_failed(1, DAPX_STATUS_TRANSPORT);
    ASSERT_TRUE(world.deliver_request());
    EXPECT_FALSE(world.receive(0, 1).arrival);
    world.break_responder();
    EXPECT_EQ(world.receive(0, 1).arrival->status, DAPX_STATUS_FLUSHED);
    // What is still on its way finds nobody.
    ASSERT_TRUE(world.settle());
    EXPECT_TRUE(world.to_requester.empty());
}

TEST(XrcEngine, WhoIsDoneMaySubmit)
{
    for (const bool breaks : {false, true}) {
        Scene world;
        world.add_queue(100);
        for (int i = 0; i < 5; ++i)
            world.submit({.total = 1});
        ASSERT_TRUE(world.deliver_request() && world.deliver_answer());
        world.submit_again = 20;
        if (breaks)
            world.break_requester();
        ASSERT_TRUE(world.settle());
        EXPECT_EQ(world.done(), 25U);
        if (breaks)
            world.expect_failed(0, DAPX_STATUS_TRANSPORT);
        else
            world.expect_all(DAPX_STATUS_SUCCESS);
    }
}

TEST(XrcEngine, BothHellosAreWelcome)
{
    Scene world;
    world.add_queue(1);
    world.submit({.total = 1});
    EXPECT_EQ(world.to_responder.size(), 1U);
    ASSERT_TRUE(world.fire());
    EXPECT_EQ(world.to_responder.size(), 2U);
    ASSERT_TRUE(world.settle());
    world.expect_all(DAPX_STATUS_SUCCESS);
    EXPECT_EQ(world.requester.sent, 3U);
}

TEST(XrcEngine, AnythingInAnyOrder)
{
    // Random messages, with the steps of everybody in random order.
    std::uint32_t shared = 0;
    std::uint32_t inside = 0;
    for (std::uint32_t seed = 0; seed < 1500; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        const auto below = [&](std::uint32_t limit) {
            return static_cast<std::uint32_t>(random() % limit);
        };
        Scene world({.buffers = 2 + below(4),
                     .room = 1 + below(4),
                     .spare = below(3),
                     .start = 0U - below(40),
                     .own_steps = true});
        const std::size_t queues = 1 + below(3);
        for (std::size_t i = 0; i < queues; ++i)
            world.add_queue(below(4));
        const std::uint32_t messages = 1 + below(25);
        int idle = 0;
        while (world.messages() < messages || !world.all_done()) {
            bool did = true;
            switch (below(8)) {
            case 0:
                did = world.messages() < messages;
                if (did)
                    world.enqueue({.opcode = static_cast<dapx_opcode>(below(7)),
                                   .queue = below(static_cast<std::uint32_t>(queues)),
                                   // Half of them share a segment, if they can.
                                   .total = below(2) == 0 ? below(4) * payload + below(3)
                                                          : below(below(2) == 0 ? 30 : 3'000),
                                   .fence = below(4) == 0,
                                   .imm = below(100)});
                if (below(2) == 0)
                    world.transmit();
                break;
            case 1:
                did = world.deliver_request();
                break;
            case 2:
                did = world.deliver_answer();
                break;
            case 3:
                did = world.complete_send();
                break;
            case 4:
                did = world.recycle();
                break;
            case 5:
                did = world.tell();
                break;
            case 6:
                did = world.fire();
                break;
            default:
                world.post(below(static_cast<std::uint32_t>(queues)));
                break;
            }
            idle = did ? 0 : idle + 1;
            ASSERT_LT(idle, 1000) << world.done() << " of " << world.messages();
        }
        world.expect_all(DAPX_STATUS_SUCCESS);
        shared += world.shared;
        inside += world.not_ready_inside;
    }
    EXPECT_GT(shared, 100U);
    EXPECT_GT(inside, 10U);
}

} // namespace
} // namespace dapx::xrc::test
