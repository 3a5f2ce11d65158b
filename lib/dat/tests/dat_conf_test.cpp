// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "dat_conf.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

namespace dapx::dat::registry {
namespace {

TEST(RegistryConf, Line)
{
    const auto entry =
        parse_entry(R"(dapx-rxe0 u1.2 threadsafe default libdapx-dat.so.1 dapx.0.1 "rxe0 x" "")");
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->ia_name, "dapx-rxe0");
    EXPECT_EQ(entry->major, 1U);
    EXPECT_EQ(entry->minor, 2U);
    EXPECT_TRUE(entry->thread_safe);
    EXPECT_EQ(entry->library, "libdapx-dat.so.1");
    EXPECT_EQ(entry->ia_parameters, "rxe0 x");
}

TEST(RegistryConf, BlanksDoNotMatter)
{
    const auto entry = parse_entry("  ia\tu1.2  nonthreadsafe\tdefault lib dapx.0.1 p \"\"");
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->ia_name, "ia");
    EXPECT_FALSE(entry->thread_safe);
    EXPECT_EQ(entry->ia_parameters, "p");
}

TEST(RegistryConf, WhatIsNoEntry)
{
    for (const char* const line : {
             "",
             "   ",
             "# ia u1.2 threadsafe default lib dapx.0.1 \"\" \"\"",
             "#ia u1.2 threadsafe default lib dapx.0.1 \"\" \"\"",
             "ia k1.2 threadsafe default lib dapx.0.1 \"\" \"\"",
             "ia u1 threadsafe default lib dapx.0.1 \"\" \"\"",
             "ia u1.2x threadsafe default lib dapx.0.1 \"\" \"\"",
             "ia ux.2 threadsafe default lib dapx.0.1 \"\" \"\"",
             "ia u1.99999999999 threadsafe default lib dapx.0.1 \"\" \"\"",
             "ia u1.2 safe default lib dapx.0.1 \"\" \"\"",
             "ia u1.2 threadsafe nondefault lib dapx.0.1 \"\" \"\"",
             "ia u1.2 threadsafe defaults lib dapx.0.1 \"\" \"\"",
             "ia u1.2 threadsafe default lib",
             "ia u1.2 threadsafe",
         })
        EXPECT_FALSE(parse_entry(line)) << line;
}

TEST(RegistryConf, FileWithOthers)
{
    std::istringstream file(
        "# comment\n"
        "ofa u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"eth2 0\" \"\"\n"
        "damaged\n\n"
        "dapx-rxe0 u1.2 threadsafe default libdapx-dat.so.1 dapx.0.1 \"rxe0\" \"\"");
    const auto entries = parse_entries(file);
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[0].major, 2U);
    EXPECT_EQ(entries[1].ia_parameters, "rxe0");
}

TEST(RegistryConf, Path)
{
    ::unsetenv("DAT_OVERRIDE");
    EXPECT_EQ(dat_conf_path(), "/etc/dat.conf");
    ::setenv("DAT_OVERRIDE", "/tmp/other", 1);
    EXPECT_EQ(dat_conf_path(), "/tmp/other");
}

} // namespace
} // namespace dapx::dat::registry
