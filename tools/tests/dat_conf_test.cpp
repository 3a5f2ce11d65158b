// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "dat_conf.hpp"
#include "files.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tools {
namespace {

TEST(DatConf, Lines)
{
    const std::vector<DatConfEntry> entries = {
        {.ia = "dapx-rxe0", .device = "rxe0", .version = "u2.0", .library = "libdapx-dat.so.2"},
        {.ia = "dapx-rxe0",
         .device = "rxe0",
         .version = "u1.2",
         .thread_safe = true,
         .library = "/opt/libdapx-dat.so.1"},
    };
    EXPECT_EQ(
        dat_conf_text(entries),
        "dapx-rxe0 u2.0 nonthreadsafe default libdapx-dat.so.2 dapx.0.1 \"rxe0\" \"\"\n"
        "dapx-rxe0 u1.2 threadsafe    default /opt/libdapx-dat.so.1 dapx.0.1 \"rxe0\" \"\"\n");
}

TEST(DatConf, WhatItNames)
{
    const auto names = names_in_dat_conf(
        "# dapx-rxe9 u2.0 threadsafe default libdapx-dat.so.2 dapx.0.1 \"rxe9\" \"\"\n"
        "ofa-v2-rxe0 u2.0 threadsafe default libdaplofa.so.2 dapl.2.0 \"rxe0 1\" \"\"\n"
        "\n"
        "dapx-rxe0 u2.0 nonthreadsafe default /opt/libdapx-dat.so.2 dapx.0.1 \"rxe0\" \"\"\n"
        "x u1.2 threadsafe default libdapx-dat.so.1 dapx.0.1 \"a b\"\n"
        "cut u1.2 threadsafe default libdapx-dat.so.1\n");
    ASSERT_EQ(names.size(), 3U);
    EXPECT_EQ(names[0].line, 4);
    EXPECT_EQ(names[0].library, "/opt/libdapx-dat.so.2");
    EXPECT_EQ(names[0].device, "rxe0");
    EXPECT_EQ(names[1].device, "a b");
    EXPECT_EQ(names[2].line, 6);
    EXPECT_EQ(names[2].device, "");
}

TEST(DatConf, TakenBackToTheByte)
{
    for (const std::string before : {"", "ofa u2.0 x\n", "# no newline at the end", "\n\n"}) {
        const std::string with = with_dat_conf(before, "dapx line\n");
        EXPECT_NE(with.find("dapx line\n"), std::string::npos);
        EXPECT_EQ(without_dat_conf(with), before);
    }
}

TEST(DatConf, OnceHoweverOften)
{
    const std::string once = with_dat_conf("ofa\n", "dapx line\n");
    EXPECT_EQ(with_dat_conf(once, "dapx line\n"), once);
    EXPECT_EQ(without_dat_conf(with_dat_conf(once, "another\n")), "ofa\n");
}

TEST(DatConf, WhatIsCutOffIsLeftAlone)
{
    const std::string with = with_dat_conf("ofa\n", "dapx line\n");
    const std::string cut = with.substr(0, with.find("# End"));
    EXPECT_EQ(without_dat_conf(cut), cut);
}

class DatConfFile : public testing::Test {
protected:
    void SetUp() override
    {
        ASSERT_NE(::mkdtemp(folder.data()), nullptr);
        path = folder + "/dat.conf";
    }
    void TearDown() override
    {
        ::unlink(path.c_str());
        ::unlink((folder + "/link").c_str());
        EXPECT_EQ(::rmdir(folder.c_str()), 0) << "something is left";
    }
    [[nodiscard]] std::string content() const
    {
        std::ifstream file(path);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    std::string folder = "/tmp/dat_conf_test.XXXXXX";
    std::string path;
};

TEST_F(DatConfFile, ModeStays)
{
    ASSERT_TRUE(replace_file(path, "one"));
    ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
    ASSERT_TRUE(replace_file(path, "two"));
    EXPECT_EQ(content(), "two");
    struct stat now{};
    ASSERT_EQ(::stat(path.c_str(), &now), 0);
    EXPECT_EQ(now.st_mode & 07777U, 0640U);
}

TEST_F(DatConfFile, LinkStaysOne)
{
    ASSERT_TRUE(replace_file(path, "one"));
    const std::string link = folder + "/link";
    ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
    ASSERT_TRUE(replace_file(link, "two"));
    EXPECT_EQ(content(), "two");
    struct stat now{};
    ASSERT_EQ(::lstat(link.c_str(), &now), 0);
    EXPECT_TRUE(S_ISLNK(now.st_mode));
}

TEST_F(DatConfFile, EmptyGoes)
{
    ASSERT_TRUE(replace_file(path, "one"));
    ASSERT_TRUE(replace_file(path, ""));
    EXPECT_NE(::access(path.c_str(), F_OK), 0);
    EXPECT_TRUE(replace_file(path, "")) << "it is gone already";
}

TEST_F(DatConfFile, IsReadWhole)
{
    const std::string text(10'000, 'x');
    ASSERT_TRUE(replace_file(path, text));
    EXPECT_EQ(*read_file(path), text);
    EXPECT_EQ(*read_file(folder + "/none"), "");
}

TEST_F(DatConfFile, StaysAsItWasIfItCannotBeWritten)
{
    ASSERT_TRUE(replace_file(path, "one"));
    struct rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto handler = ::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit few{.rlim_cur = 100, .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &few), 0);
    const auto written = replace_file(path, std::string(1000, 'x'));
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    ::signal(SIGXFSZ, handler);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code(), EFBIG);
    EXPECT_EQ(content(), "one");
}

// Not replaced by a file: it may be /dev/stdout.
TEST_F(DatConfFile, PipeIsWrittenTo)
{
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
    ASSERT_TRUE(replace_file(path, "one"));
    char bytes[8];
    EXPECT_EQ(::read(reader, bytes, sizeof(bytes)), 3);
    ::close(reader);
    struct stat now{};
    ASSERT_EQ(::stat(path.c_str(), &now), 0);
    EXPECT_TRUE(S_ISFIFO(now.st_mode));
}

// What cannot be read is not taken for empty, and written over.
TEST_F(DatConfFile, SaysWhenItCannotBeRead)
{
    const auto read = read_file(folder);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), EISDIR);
    EXPECT_EQ(read.error().message(), "cannot read " + folder + ": Is a directory");
}

TEST_F(DatConfFile, SaysWhatIsWrong)
{
    const auto written = replace_file(folder + "/none/dat.conf", "one");
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code(), ENOENT);
    EXPECT_EQ(written.error().message(),
              "cannot write " + folder + "/none/dat.conf: No such file or directory");
}

} // namespace
} // namespace tools
