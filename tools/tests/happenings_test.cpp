// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "happenings.hpp"

#include <dapx/dapx.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace tools {
namespace {

using dapx::Happening;

/// One and a half seconds after the machine began, which was at midnight.
Happening happening(std::uint32_t event)
{
    Happening result;
    result.event = event;
    result.time = 1'500'000'000;
    result.context = 3;
    result.device = "rxe0";
    result.pid = 4711;
    result.name = "a\nb";
    return result;
}

class Happenings : public ::testing::Test {
protected:
    void SetUp() override
    {
        ::setenv("TZ", "UTC", 1);
        ::tzset();
    }
};

TEST_F(Happenings, Text)
{
    EXPECT_EQ(happening_text(happening(DAPX_GENL_EVENT_CONTEXT_NEW), 0, true),
              "00:00:01.500000 rxe0 4711 a\\x0ab: context 3: attached\n");
    Happening ending = happening(DAPX_GENL_EVENT_CONTEXT_ENDING);
    ending.cause = DAPX_GENL_CAUSE_EXITED;
    ending.objects = 12;
    EXPECT_EQ(happening_text(ending, 3'600'000'000'000, false),
              "01:00:01.500000 rxe0 a\\x0ab: context 3: process ended, teardown of 12 objects "
              "begins\n");
    Happening ended = happening(DAPX_GENL_EVENT_CONTEXT_ENDED);
    ended.duration = 19'700'000;
    ended.lost = 5;
    EXPECT_EQ(happening_text(ended, 0, true),
              "(5 events before this one were lost)\n"
              "00:00:01.500000 rxe0 4711 a\\x0ab: context 3: gone, after 19.7 ms\n");
    Happening state = happening(DAPX_GENL_EVENT_EP_STATE);
    state.handle = 9;
    state.state = DAPX_EP_CONNECTED;
    EXPECT_NE(happening_text(state, 0, true).find(": endpoint 9: connected\n"), std::string::npos);
    Happening window = happening(DAPX_GENL_EVENT_RMR_REVOKED);
    window.handle = 7;
    window.mr = 2;
    window.length = 8192;
    EXPECT_NE(happening_text(window, 0, true).find(": RMR 7: revoked, 8 KiB of MR 2\n"),
              std::string::npos)
        << happening_text(window, 0, true);
    // Of a newer module.
    EXPECT_NE(happening_text(happening(99), 0, true).find(": event 99\n"), std::string::npos);
}

TEST_F(Happenings, Json)
{
    Happening ending = happening(DAPX_GENL_EVENT_CONTEXT_ENDING);
    ending.cause = DAPX_GENL_CAUSE_REMOVED;
    ending.objects = 12;
    const nlohmann::json json = happening_json(ending, 500'000'000, true);
    EXPECT_EQ(json["event"], "context-ending");
    EXPECT_EQ(json["time"], 2.0);
    EXPECT_EQ(json["cause"], "device removed");
    EXPECT_EQ(json["pid"], 4711);
    EXPECT_FALSE(json.contains("state"));
    EXPECT_FALSE(happening_json(ending, 0, false).contains("pid"));
}

} // namespace
} // namespace tools
