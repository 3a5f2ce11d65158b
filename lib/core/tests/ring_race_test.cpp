// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Two threads at the two ends of a ring, where one goes to sleep when it finds nothing to do and
// the other may save the wake-up: a missing store-load barrier on either side loses a wake-up
// sooner or later, which ends as a time-out here.
#include "ring_memory.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace dapx::test {
namespace {

using namespace detail;

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto patience = 10s;
constexpr auto duration = 3s;
constexpr std::uint32_t stride = 64;

/// Spins until @p condition. @return false after patience, which no living peer takes.
template <class Condition> bool spin_until(const Condition& condition)
{
    // Where the threads share a processor, the other must get it.
    constexpr std::uint32_t spins = 256;
    const auto end = Clock::now() + patience;
    for (std::uint32_t i = 1; !condition(); ++i) {
        if (i % spins != 0)
            continue;
        std::this_thread::yield();
        if (Clock::now() > end)
            return false;
    }
    return true;
}

/// A short, ever different time: so that the two ends meet at every point.
void jitter(std::uint32_t& state)
{
    state = state * 1664525 + 1013904223;
    for (std::uint32_t i = state >> 26; i != 0; --i)
        asm volatile("" ::: "memory");
}

TEST(RingRace, NoWakeUpOfTheModuleIsLost)
{
    RingMemory memory(8, stride, 0xffffff00U);
    std::atomic<std::uint64_t> doorbells{0};
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> taken{0};
    std::atomic<bool> wrong{false};

    std::thread module([&] {
        std::uint32_t head = *memory.head();
        std::uint64_t expected = 0;
        while (!stop.load(std::memory_order_relaxed)) {
            const std::uint32_t tail = barrier::load_acquire(memory.tail());
            if (head != tail) {
                std::uint64_t value = 0;
                std::memcpy(&value, memory.entry(head), sizeof(value));
                if (value != expected++)
                    wrong = true;
                barrier::store_release(memory.head(), ++head);
                taken.fetch_add(1, std::memory_order_release);
                continue;
            }
            // As the module goes to sleep: what rang before this point counts no more.
            const std::uint64_t seen = doorbells.load(std::memory_order_relaxed);
            __atomic_store_n(memory.flags(), 0U, __ATOMIC_RELAXED);
            barrier::full();
            if (barrier::load_acquire(memory.tail()) == head)
                (void)spin_until([&] {
                    return doorbells.load(std::memory_order_acquire) != seen ||
                           stop.load(std::memory_order_relaxed);
                });
            __atomic_store_n(memory.flags(), std::uint32_t{DAPX_RING_BUSY}, __ATOMIC_RELAXED);
        }
    });

    WorkRing ring(memory.base(), memory.layout());
    std::uint32_t random = 1;
    std::uint64_t posted = 0;
    const auto end = Clock::now() + duration;
    bool lost = false;
    while (!lost && Clock::now() < end) {
        for (int i = 0; i < 256 && !lost; ++i) {
            std::byte* entry = ring.claim();
            ASSERT_NE(entry, nullptr);
            std::memcpy(entry, &posted, sizeof(posted));
            ring.stage();
            ++posted;
            if (ring.publish())
                doorbells.fetch_add(1, std::memory_order_release);
            lost = !spin_until([&] { return taken.load(std::memory_order_acquire) == posted; });
            jitter(random);
        }
    }
    stop = true;
    module.join();
    EXPECT_FALSE(lost) << "after " << posted << " posts";
    EXPECT_FALSE(wrong);
    EXPECT_GT(ring.doorbells(), 0U);
    RecordProperty("posts", static_cast<int>(posted));
}

TEST(RingRace, NoSignalToTheArmedIsLost)
{
    // The module shows an event, and signals if it finds the ring armed; the consumer arms, looks,
    // and sleeps until the signal.
    RingMemory memory(8, stride, 0xffffff00U);
    std::atomic<std::uint64_t> signals{0};
    std::atomic<std::uint64_t> allowed{0};
    std::atomic<bool> stop{false};

    std::thread module([&] {
        std::uint32_t tail = *memory.tail();
        std::uint64_t produced = 0;
        std::uint32_t random = 7;
        while (!stop.load(std::memory_order_relaxed)) {
            if (produced == allowed.load(std::memory_order_acquire)) {
                (void)spin_until([&] {
                    return produced != allowed.load(std::memory_order_acquire) ||
                           stop.load(std::memory_order_relaxed);
                });
                continue;
            }
            jitter(random);
            std::memcpy(memory.entry(tail), &produced, sizeof(produced));
            ++produced;
            barrier::store_release(memory.tail(), ++tail);
            barrier::full();
            if (barrier::load_relaxed(memory.armed()) != 0) {
                barrier::store_relaxed(memory.armed(), 0);
                signals.fetch_add(1, std::memory_order_release);
            }
        }
    });

    EventRing ring(memory.base(), memory.layout());
    std::uint64_t consumed = 0;
    std::uint64_t slept = 0;
    std::uint32_t random = 1;
    bool lost = false;
    const auto end = Clock::now() + duration;
    while (!lost && Clock::now() < end) {
        const std::uint64_t seen = signals.load(std::memory_order_acquire);
        allowed.store(consumed + 1, std::memory_order_release);
        jitter(random);
        ring.arm();
        if (ring.front() == nullptr) {
            ++slept;
            lost = !spin_until([&] { return signals.load(std::memory_order_acquire) != seen; });
        }
        lost = lost || !spin_until([&] { return ring.front() != nullptr; });
        if (!lost) {
            ring.pop();
            ++consumed;
        }
    }
    stop = true;
    module.join();
    EXPECT_FALSE(lost) << "after " << consumed << " events";
    EXPECT_GT(slept, 0U);
    RecordProperty("events", static_cast<int>(consumed));
}

TEST(RingRace, NoBacklogIsForgotten)
{
    // The module puts in events, and holds back what finds no room; the consumer reads all, then
    // sleeps until it is woken by an event that found the ring empty (as an eventfd does).
    RingMemory memory(2, stride, 0xffffff00U);
    std::atomic<std::uint64_t> wakeups{0};
    std::atomic<std::uint64_t> fetches{0};
    std::atomic<std::uint64_t> allowed{0};
    std::atomic<bool> stop{false};

    std::thread module([&] {
        std::uint32_t tail = *memory.tail();
        std::uint64_t produced = 0;
        std::uint64_t fetched = 0;
        const auto has_room = [&] { return tail - barrier::load_acquire(memory.head()) < 2; };
        while (!stop.load(std::memory_order_relaxed)) {
            if (produced == allowed.load(std::memory_order_acquire)) {
                (void)spin_until([&] {
                    return produced != allowed.load(std::memory_order_acquire) ||
                           stop.load(std::memory_order_relaxed);
                });
                continue;
            }
            if (!has_room()) {
                fetched = fetches.load(std::memory_order_relaxed);
                memory.set_flag(DAPX_RING_BACKLOG);
                barrier::full();
                if (!has_room())
                    (void)spin_until([&] {
                        return fetches.load(std::memory_order_acquire) != fetched ||
                               stop.load(std::memory_order_relaxed);
                    });
                memory.clear_flag(DAPX_RING_BACKLOG);
                continue;
            }
            std::memcpy(memory.entry(tail), &produced, sizeof(produced));
            ++produced;
            barrier::store_release(memory.tail(), ++tail);
            wakeups.fetch_add(1, std::memory_order_release);
        }
    });

    EventRing ring(memory.base(), memory.layout());
    std::uint64_t consumed = 0;
    std::uint32_t random = 1;
    bool lost = false;
    bool wrong = false;
    const auto end = Clock::now() + duration;
    while (!lost && Clock::now() < end) {
        const std::uint64_t goal = consumed + 3;
        allowed.store(goal, std::memory_order_release);
        while (!lost && consumed < goal) {
            const std::uint64_t seen = wakeups.load(std::memory_order_acquire);
            while (const std::byte* entry = ring.front()) {
                std::uint64_t value = 0;
                std::memcpy(&value, entry, sizeof(value));
                wrong = wrong || value != consumed;
                ring.pop();
                ++consumed;
                jitter(random);
            }
            if (ring.backlog()) {
                fetches.fetch_add(1, std::memory_order_release);
                continue;
            }
            if (consumed < goal)
                lost = !spin_until([&] { return wakeups.load(std::memory_order_acquire) != seen; });
        }
    }
    stop = true;
    module.join();
    EXPECT_FALSE(lost) << "after " << consumed << " events";
    EXPECT_FALSE(wrong);
    EXPECT_GT(fetches.load(), 0U);
    RecordProperty("events", static_cast<int>(consumed));
}

} // namespace
} // namespace dapx::test
