// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "measure.hpp"

#include <gtest/gtest.h>

namespace tools {
namespace {

using namespace std::chrono_literals;

TEST(Texts, Times)
{
    EXPECT_EQ(time_text(850ns), "850 ns");
    EXPECT_EQ(time_text(1234ns), "1.23 us");
    EXPECT_EQ(time_text(27100ns), "27.1 us");
    EXPECT_EQ(time_text(3120us), "3.12 ms");
    EXPECT_EQ(time_text(160ms), "160 ms");
    EXPECT_EQ(time_text(12s), "12.0 s");
}

TEST(Texts, Bytes)
{
    EXPECT_EQ(bytes_text(8), "8 bytes");
    EXPECT_EQ(bytes_text(64 * 1024), "64 KiB");
    EXPECT_EQ(bytes_text(34707866), "33.1 MiB");
    EXPECT_EQ(rate_text(10 << 20, 500ms), "20.0 MiB/s");
    EXPECT_EQ(count_rate_text(1000, 500ms), "2000/s");
}

TEST(Latencies, Percentiles)
{
    Latencies latencies;
    EXPECT_EQ(latencies.median(), 0ns);
    for (int i = 100; i >= 1; --i)
        latencies.add(Nanoseconds(i));
    EXPECT_EQ(latencies.min(), 1ns);
    EXPECT_EQ(latencies.median(), 50ns);
    EXPECT_EQ(latencies.p99(), 99ns);
    EXPECT_EQ(latencies.max(), 100ns);
    latencies.add(1000ns);
    EXPECT_EQ(latencies.max(), 1000ns);
    EXPECT_EQ(latencies.json()["samples"], 101);
}

TEST(Latencies, FewSamples)
{
    Latencies latencies;
    latencies.add(5ns);
    EXPECT_EQ(latencies.min(), 5ns);
    EXPECT_EQ(latencies.p99(), 5ns);
    latencies.add(7ns);
    EXPECT_EQ(latencies.median(), 5ns);
    EXPECT_EQ(latencies.p99(), 7ns);
}

TEST(Table, AlignsColumns)
{
    EXPECT_EQ(table_text({{"name", "n"}, {"x", "100"}}, {1}), "name    n\nx     100\n");
    EXPECT_EQ(table_text({{"a", "b"}, {"long", ""}}), "a     b\nlong\n");
}

} // namespace
} // namespace tools
