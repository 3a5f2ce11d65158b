// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "wire.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tools {
namespace {

struct Message {
    Le64 wide;
    Le32 narrow;
};

TEST(Wire, IsLittleEndianAndPacked)
{
    const Message message = {.wide = 0x0102030405060708, .narrow = 0xfffefdfc};
    const auto bytes = bytes_of(message);
    ASSERT_EQ(bytes.size(), 12U);
    EXPECT_EQ(bytes[0], std::byte{8});
    EXPECT_EQ(bytes[7], std::byte{1});
    EXPECT_EQ(bytes[8], std::byte{0xfc});
}

TEST(Wire, ComesBackFromPaddedBytes)
{
    const Message message = {.wide = ~0ULL, .narrow = 1};
    const auto sent = bytes_of(message);
    std::vector<std::byte> received(sent.begin(), sent.end());
    received.resize(56);
    const auto back = message_from<Message>(received);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->wide, ~0ULL);
    EXPECT_EQ(back->narrow, 1U);
    EXPECT_FALSE(message_from<Message>(sent.first(11)));
}

} // namespace
} // namespace tools
