// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "objects.hpp"

#include <dapx/dapx.h>

#include <gtest/gtest.h>

namespace tools {
namespace {

using dapx::ContextEntry;
using dapx::ObjectEntry;
using dapx::ObjectType;

std::vector<ObjectEntry> some()
{
    ObjectEntry ep;
    ep.device = "rxe0";
    ep.pid = 100;
    ep.name = "job";
    ep.type = ObjectType::ep;
    ep.handle = 9;
    ep.state = DAPX_EP_CONNECTED;
    ep.qp_num = 17;
    ep.remote_qp_num = 18;
    ep.local = dapx::Address::parse("10.0.0.1", 40001).value();
    ep.remote = dapx::Address::parse("10.0.0.2", 7471).value();
    ep.requests = 3;
    ep.receives = 16;
    ep.posted = 1000;
    ep.received = 7;
    ObjectEntry busy;
    busy.pid = 0;
    busy.type = ObjectType::ep;
    busy.handle = 12;
    busy.busy = true;
    busy.state = 77;
    ObjectEntry mr;
    mr.device = "rxe1";
    mr.pid = 4711;
    mr.name = "a\nb";
    mr.type = ObjectType::mr;
    mr.handle = 2;
    mr.pd = 1;
    mr.length = 4096;
    mr.access = DAPX_ACCESS_LOCAL_WRITE | DAPX_ACCESS_REMOTE_READ;
    return {ep, busy, mr};
}

TEST(Objects, Contexts)
{
    const std::vector<ContextEntry> contexts = {
        {.id = 3, .device = "rxe0", .pid = 100, .name = "job", .user = 1000, .objects = 12},
        {.id = 14, .device = "", .pid = 0, .name = "", .user = 0, .objects = 0, .ending = true}};
    EXPECT_EQ(contexts_text(contexts, {}, false), "CONTEXT  DEVICE  PID  NAME  USER    OBJECTS\n"
                                                  "      3  rxe0    100  job   1000         12\n"
                                                  "     14  -         -  -        0  0, ending\n");
    EXPECT_EQ(contexts_text(contexts, {.pid = 5, .device = ""}, false),
              "no open context that you may see (without CAP_NET_ADMIN: those of your own "
              "processes)\n");
    EXPECT_EQ(contexts_json(contexts, {.pid = {}, .device = "rxe0"}).dump(),
              R"([{"context":3,"device":"rxe0","ending":false,"name":"job","objects":12,)"
              R"("pid":100,"user":1000}])");
}

TEST(Objects, OneClass)
{
    EXPECT_EQ(objects_text(some(), ObjectType::ep, {}, false, false),
              "DEVICE  PID  NAME  HANDLE  STATE      QP  PEER QP  LOCAL           REMOTE         "
              "REQUESTS  RECEIVES\n"
              "rxe0    100  job        9  connected  17       18  10.0.0.1:40001  10.0.0.2:7471  "
              "       3        16\n"
              "-         -  -         12  77          -        -  -               -              "
              "       -         -\n");
    EXPECT_EQ(objects_text(some(), ObjectType::mr, {}, true, false),
              "DEVICE   PID  NAME    HANDLE  PD  BYTES  ACCESS\n"
              "rxe1    4711  a\\x0ab       2   1   4096  local-write,remote-read\n");
    EXPECT_EQ(objects_text(some(), ObjectType::rmr, {}, false, false),
              "no rmr that you may see (without CAP_NET_ADMIN: those of your own processes)\n");
    EXPECT_EQ(objects_text(some(), ObjectType::rmr, {}, false, true), "no rmr\n");
}

TEST(Objects, Statistics)
{
    const std::string text =
        objects_text(some(), ObjectType::ep, {.pid = 100, .device = ""}, true, false);
    EXPECT_NE(text.find("POSTED  RECEIVED\n"), std::string::npos) << text;
    EXPECT_NE(text.find("  1000         7\n"), std::string::npos) << text;
}

TEST(Objects, AllThatThereAre)
{
    const std::string text =
        objects_text(some(), ObjectType::any, {.pid = {}, .device = "rxe1"}, false, false);
    EXPECT_EQ(text.substr(0, 10), "mr\nDEVICE ");
    EXPECT_EQ(text.find("\n\n"), std::string::npos);
    EXPECT_EQ(objects_text({}, ObjectType::any, {}, false, false),
              "no object that you may see (without CAP_NET_ADMIN: those of your own processes)\n");
}

TEST(Objects, Json)
{
    const nlohmann::json json = objects_json(some(), ObjectType::any, {});
    ASSERT_EQ(json.size(), 3U);
    EXPECT_EQ(json[0]["class"], "ep");
    EXPECT_EQ(json[0]["state"], "connected");
    EXPECT_EQ(json[0]["remote"], "10.0.0.2:7471");
    EXPECT_EQ(json[0]["received"], 7);
    EXPECT_EQ(json[1]["busy"], true);
    EXPECT_FALSE(json[1].contains("remote"));
    EXPECT_EQ(json[2]["access"], nlohmann::json({"local-write", "remote-read"}));
    EXPECT_EQ(objects_json(some(), ObjectType::mr, {.pid = 100, .device = ""}).dump(), "[]");
}

} // namespace
} // namespace tools
