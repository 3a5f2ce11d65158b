// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "xrcd.hpp"

#include <dapx/dapx.h>

#include <gtest/gtest.h>

namespace tools {
namespace {

dapx::XrcDomainInfo job()
{
    return {.id = 7,
            .device = "rxe0",
            .path = "/dev/shm/job",
            .partial = false,
            .total_opens = 3,
            .total_srqs = 2,
            .total_qps = 1,
            .processes = {{.pid = 100, .name = "mpirun", .opens = 2},
                          {.pid = 4711, .name = "", .opens = 1}},
            .srqs = {{.number = 5, .pid = 100}, {.number = 16, .pid = 4711}},
            .qps = {{.number = 17,
                     .state = dapx::QpState::ready_to_send,
                     .registrations = 2,
                     .messages = 1024,
                     .not_ready = 3}}};
}

TEST(Xrcd, Text)
{
    EXPECT_EQ(xrcd_text({job()}, true), "/dev/shm/job on rxe0\n"
                                        "  PROCESS  OPENS  NAME\n"
                                        "      100      2  mpirun\n"
                                        "     4711      1  -\n"
                                        "  SRQ  OWNER  NAME\n"
                                        "    5    100  mpirun\n"
                                        "   16   4711  -\n"
                                        "  QP  STATE  REGISTRATIONS  MESSAGES  NOT READY\n"
                                        "  17  rts                2      1024          3\n");
}

TEST(Xrcd, SeveralAndWhatIsHidden)
{
    dapx::XrcDomainInfo partial;
    partial.device = "rxe1";
    partial.partial = true;
    partial.total_opens = 4;
    partial.total_srqs = 1;
    partial.processes = {{.pid = 0, .name = "", .opens = 1}};
    dapx::XrcDomainInfo deep;
    deep.device = "rxe0";
    deep.path = "";
    EXPECT_EQ(xrcd_text({partial, deep}, false),
              "(no file) on rxe1\n"
              "  PROCESS  OPENS  NAME\n"
              "        -      1  -\n"
              "  hidden, of other users: 3 opens, 1 SRQ, 0 QPs; shown with CAP_NET_ADMIN\n"
              "\n"
              "(path not visible) on rxe0\n");
    // What went meanwhile is not missing.
    partial.total_opens = 0;
    EXPECT_EQ(xrcd_json({partial})[0]["hidden"]["opens"], 0);
}

TEST(Xrcd, None)
{
    EXPECT_EQ(xrcd_text({}, false).find("no open XRC domain that you may see"), 0U);
    // Nothing is hidden from who sees all.
    EXPECT_EQ(xrcd_text({}, true), "no open XRC domain\n");
    EXPECT_EQ(xrcd_json({}).dump(), "[]");
}

TEST(Xrcd, Json)
{
    const nlohmann::json domain = xrcd_json({job(), {}})[0];
    EXPECT_EQ(domain["path"], "/dev/shm/job");
    EXPECT_EQ(domain["processes"][0]["name"], "mpirun");
    EXPECT_EQ(domain["srqs"][1]["pid"], 4711);
    EXPECT_EQ(domain["qps"][0]["state"], "rts");
    EXPECT_EQ(domain["qps"][0]["messages"], 1024);
    EXPECT_EQ(domain["hidden"]["qps"], 0);
    EXPECT_TRUE(xrcd_json({job(), {}})[1]["path"].is_null());
}

TEST(Xrcd, NamesDoNotControlTheTerminal)
{
    EXPECT_EQ(printable("/dev/shm/j\u00f6b \u20ac \U0001f600"),
              "/dev/shm/j\u00f6b \u20ac \U0001f600");
    EXPECT_EQ(printable("a\nb\x1b[2J\x7f"), "a\\x0ab\\x1b[2J\\x7f");
    EXPECT_EQ(printable("\xc2\x9b\xff\xc3"), "\\xc2\\x9b\\xff\\xc3");
    EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");
}

} // namespace
} // namespace tools
