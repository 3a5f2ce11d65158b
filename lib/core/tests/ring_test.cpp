// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "ring_memory.hpp"

#include <gtest/gtest.h>

namespace dapx::test {
namespace {

using namespace detail;

constexpr std::uint32_t stride = 64;

void stage(WorkRing& ring, std::uint64_t value)
{
    std::byte* entry = ring.claim();
    ASSERT_NE(entry, nullptr);
    std::memcpy(entry, &value, sizeof(value));
    ring.stage();
}

std::uint64_t value_at(RingMemory& memory, std::uint32_t index)
{
    std::uint64_t value = 0;
    std::memcpy(&value, memory.entry(index), sizeof(value));
    return value;
}

TEST(WorkRing, ShowsEntriesOnlyWhenPublished)
{
    RingMemory memory(4, stride);
    WorkRing ring(memory.base(), memory.layout());
    stage(ring, 10);
    stage(ring, 11);
    EXPECT_EQ(*memory.tail(), 0U);
    EXPECT_TRUE(ring.has_staged());
    EXPECT_TRUE(ring.publish());
    EXPECT_EQ(*memory.tail(), 2U);
    EXPECT_FALSE(ring.has_staged());
    EXPECT_EQ(value_at(memory, 0), 10U);
    EXPECT_EQ(value_at(memory, 1), 11U);
    EXPECT_EQ(ring.doorbells(), 1U);
    EXPECT_EQ(ring.posted(), 2U);
}

TEST(WorkRing, ClaimingTwiceGivesTheSameEntry)
{
    RingMemory memory(4, stride);
    WorkRing ring(memory.base(), memory.layout());
    EXPECT_EQ(ring.claim(), ring.claim());
}

TEST(WorkRing, PublishingNothingNeedsNoDoorbell)
{
    RingMemory memory(4, stride);
    WorkRing ring(memory.base(), memory.layout());
    EXPECT_FALSE(ring.publish());
    EXPECT_EQ(ring.doorbells(), 0U);
}

TEST(WorkRing, BusySavesTheDoorbell)
{
    RingMemory memory(4, stride);
    WorkRing ring(memory.base(), memory.layout());
    memory.set_flag(DAPX_RING_BUSY);
    stage(ring, 1);
    EXPECT_FALSE(ring.publish());
    EXPECT_EQ(*memory.tail(), 1U);
    memory.clear_flag(DAPX_RING_BUSY);
    stage(ring, 2);
    EXPECT_TRUE(ring.publish());
    EXPECT_EQ(ring.doorbells(), 1U);
}

TEST(WorkRing, DeadRingRingsEvenIfBusyWasLeft)
{
    RingMemory memory(4, stride);
    WorkRing ring(memory.base(), memory.layout());
    memory.set_flag(DAPX_RING_BUSY | DAPX_RING_DEAD);
    stage(ring, 1);
    EXPECT_TRUE(ring.publish());
    EXPECT_TRUE(ring.dead());
}

TEST(WorkRing, IsFullAtItsDepthAndFreeWhenTheModuleTook)
{
    RingMemory memory(4, stride);
    WorkRing ring(memory.base(), memory.layout());
    for (std::uint64_t i = 0; i < 4; ++i)
        stage(ring, i);
    EXPECT_EQ(ring.claim(), nullptr);
    EXPECT_EQ(ring.pending(), 4U);
    barrier::store_release(memory.head(), 1);
    EXPECT_EQ(ring.claim(), memory.entry(4));
    ring.stage();
    EXPECT_EQ(ring.claim(), nullptr);
}

TEST(WorkRing, WrapsAroundAt32Bits)
{
    constexpr std::uint32_t first = 0xfffffffeU;
    RingMemory memory(4, stride, first);
    WorkRing ring(memory.base(), memory.layout());
    for (std::uint32_t i = 0; i < 100; ++i) {
        stage(ring, i);
        EXPECT_TRUE(ring.publish());
        EXPECT_EQ(*memory.tail(), first + i + 1);
        EXPECT_EQ(value_at(memory, first + i), i);
        if (i >= 3)
            barrier::store_release(memory.head(), first + i - 2);
    }
    EXPECT_EQ(ring.pending(), 3U);
}

TEST(WorkRing, FullAcrossTheWrapAround)
{
    RingMemory memory(4, stride, 0xfffffffeU);
    WorkRing ring(memory.base(), memory.layout());
    for (std::uint64_t i = 0; i < 4; ++i)
        stage(ring, i);
    EXPECT_EQ(ring.claim(), nullptr);
    barrier::store_release(memory.head(), 0xffffffffU);
    EXPECT_NE(ring.claim(), nullptr);
}

TEST(WorkRing, ImpossibleHeadReadsAsFull)
{
    RingMemory memory(4, stride);
    WorkRing ring(memory.base(), memory.layout());
    for (std::uint64_t i = 0; i < 4; ++i)
        stage(ring, i);
    // Ahead of what was ever posted: nothing may be written on its word.
    barrier::store_release(memory.head(), 1000);
    EXPECT_EQ(ring.claim(), nullptr);
}

TEST(WorkRing, ResyncTakesTheModulesIndices)
{
    RingMemory memory(4, stride);
    WorkRing ring(memory.base(), memory.layout());
    stage(ring, 1);
    (void)ring.publish();
    stage(ring, 2); // never published: forgotten
    barrier::store_release(memory.head(), 1);
    ring.resync();
    EXPECT_FALSE(ring.has_staged());
    EXPECT_EQ(ring.pending(), 0U);
    stage(ring, 3);
    (void)ring.publish();
    EXPECT_EQ(*memory.tail(), 2U);
    EXPECT_EQ(value_at(memory, 1), 3U);
}

/// The module's end: puts an event in.
void produce(RingMemory& memory, std::uint64_t value)
{
    const std::uint32_t tail = *memory.tail();
    std::memcpy(memory.entry(tail), &value, sizeof(value));
    barrier::store_release(memory.tail(), tail + 1);
}

std::uint64_t take(EventRing& ring)
{
    const std::byte* entry = ring.front();
    if (entry == nullptr)
        return ~0ULL;
    std::uint64_t value = 0;
    std::memcpy(&value, entry, sizeof(value));
    ring.pop();
    return value;
}

TEST(EventRing, GivesEventsInOrder)
{
    RingMemory memory(4, stride);
    EventRing ring(memory.base(), memory.layout());
    EXPECT_EQ(ring.front(), nullptr);
    produce(memory, 5);
    produce(memory, 6);
    EXPECT_EQ(ring.available(), 2U);
    EXPECT_EQ(take(ring), 5U);
    EXPECT_EQ(*memory.head(), 1U);
    EXPECT_EQ(take(ring), 6U);
    EXPECT_EQ(ring.front(), nullptr);
    EXPECT_EQ(*memory.head(), 2U);
}

TEST(EventRing, WrapsAroundAt32Bits)
{
    RingMemory memory(4, stride, 0xfffffff0U);
    EventRing ring(memory.base(), memory.layout());
    for (std::uint64_t i = 0; i < 100; i += 4) {
        for (std::uint64_t k = 0; k < 4; ++k)
            produce(memory, i + k);
        EXPECT_EQ(ring.available(), 4U);
        for (std::uint64_t k = 0; k < 4; ++k)
            EXPECT_EQ(take(ring), i + k);
        EXPECT_EQ(ring.front(), nullptr);
    }
    EXPECT_EQ(*memory.head(), 0xfffffff0U + 100);
}

TEST(EventRing, ImpossibleTailGivesNoEvent)
{
    RingMemory memory(4, stride);
    EventRing ring(memory.base(), memory.layout());
    barrier::store_release(memory.tail(), 5);
    EXPECT_EQ(ring.front(), nullptr);
    EXPECT_TRUE(ring.corrupted());
    EXPECT_EQ(ring.available(), 0U);
    barrier::store_release(memory.tail(), 0xffffffffU);
    EXPECT_EQ(ring.front(), nullptr);
    EXPECT_TRUE(ring.corrupted());
}

TEST(EventRing, QuietWhenNothingIsToBeDone)
{
    RingMemory memory(4, stride);
    EventRing ring(memory.base(), memory.layout());
    EXPECT_TRUE(ring.quiet());
    produce(memory, 5);
    EXPECT_FALSE(ring.quiet());
    EXPECT_EQ(take(ring), 5U);
    // BACKLOG may have been set before the module saw the head: backlog() has to be asked once.
    EXPECT_FALSE(ring.quiet());
    EXPECT_EQ(ring.front(), nullptr);
    EXPECT_FALSE(ring.backlog());
    EXPECT_TRUE(ring.quiet());
    memory.set_flag(DAPX_RING_BACKLOG);
    EXPECT_FALSE(ring.quiet());
    memory.set_flag(DAPX_RING_DEAD);
    EXPECT_TRUE(ring.quiet());
}

TEST(EventRing, BacklogOnlyOfALivingRing)
{
    RingMemory memory(4, stride);
    EventRing ring(memory.base(), memory.layout());
    EXPECT_FALSE(ring.backlog());
    memory.set_flag(DAPX_RING_BACKLOG);
    EXPECT_TRUE(ring.backlog());
    EXPECT_TRUE(ring.backlog_hint());
    memory.set_flag(DAPX_RING_DEAD);
    EXPECT_FALSE(ring.backlog());
    EXPECT_TRUE(ring.dead());
}

TEST(EventRing, DropsSomeAndKeepsTheOrderOfOthers)
{
    const auto is_odd = [](const std::byte* entry) {
        std::uint64_t value = 0;
        std::memcpy(&value, entry, sizeof(value));
        return value % 2 == 1;
    };
    RingMemory memory(8, stride, 0xfffffffcU);
    EventRing ring(memory.base(), memory.layout());
    ring.drop_if(is_odd);
    EXPECT_EQ(ring.front(), nullptr);
    for (const std::uint64_t value : {1, 2, 3, 4, 6, 7})
        produce(memory, value);
    ring.drop_if(is_odd);
    EXPECT_EQ(ring.available(), 3U);
    EXPECT_EQ(*memory.head(), 0xfffffffcU + 3);
    for (const std::uint64_t value : {2U, 4U, 6U})
        EXPECT_EQ(take(ring), value);
    EXPECT_EQ(ring.front(), nullptr);
    produce(memory, 9);
    ring.drop_if(is_odd);
    EXPECT_EQ(ring.front(), nullptr);
    barrier::store_release(memory.tail(), *memory.tail() + 9);
    ring.drop_if(is_odd);
    EXPECT_TRUE(ring.corrupted());
}

TEST(EventRing, TellsEveryHalf)
{
    RingMemory memory(8, stride);
    EventRing ring(memory.base(), memory.layout());
    int halves = 0;
    for (int i = 0; i < 32; ++i) {
        produce(memory, 0);
        (void)take(ring);
        halves += ring.at_half() ? 1 : 0;
    }
    EXPECT_EQ(halves, 8);
}

TEST(EventRing, IsArmed)
{
    RingMemory memory(4, stride);
    EventRing ring(memory.base(), memory.layout());
    EXPECT_FALSE(ring.armed());
    ring.arm();
    EXPECT_TRUE(ring.armed());
    EXPECT_EQ(*memory.armed(), 1U);
    *memory.armed() = 0;
    EXPECT_FALSE(ring.armed());
    // A module without such signals.
    dapx_ring_layout older = memory.layout();
    older.arm_off = 0;
    EventRing unarmed(memory.base(), older);
    unarmed.arm();
    EXPECT_FALSE(unarmed.armed());
    EXPECT_EQ(*memory.head(), 0U);
}

TEST(EventRing, DepthOne)
{
    RingMemory memory(1, stride);
    EventRing ring(memory.base(), memory.layout());
    for (std::uint64_t i = 0; i < 10; ++i) {
        produce(memory, i);
        EXPECT_EQ(take(ring), i);
        EXPECT_EQ(ring.front(), nullptr);
    }
}

} // namespace
} // namespace dapx::test
