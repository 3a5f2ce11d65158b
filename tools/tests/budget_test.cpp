// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "budget.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <optional>

namespace tools {
namespace {

TEST(MemoryBudget, NoClientHasMoreThanItsPart)
{
    MemoryBudget budget(100, 1000);
    EXPECT_EQ(budget.take(100).bytes(), 100U);
    EXPECT_THROW((void)budget.take(101), Refused);
    EXPECT_THROW((void)budget.take(std::numeric_limits<std::uint64_t>::max()), Refused);
}

TEST(MemoryBudget, AllTogetherHaveALimit)
{
    MemoryBudget budget(100, 150);
    std::optional<MemoryBudget::Share> first = budget.take(100);
    EXPECT_THROW((void)budget.take(51), Refused);
    const MemoryBudget::Share second = budget.take(50);
    EXPECT_THROW((void)budget.take(1), Refused);
    first.reset();
    EXPECT_EQ(budget.take(100).bytes(), 100U);
}

TEST(MemoryBudget, AShareThatMovesIsCountedOnce)
{
    MemoryBudget budget(100, 100);
    {
        MemoryBudget::Share first = budget.take(60);
        const MemoryBudget::Share moved = std::move(first);
        EXPECT_THROW((void)budget.take(41), Refused);
    }
    EXPECT_EQ(budget.take(100).bytes(), 100U);
}

} // namespace
} // namespace tools
