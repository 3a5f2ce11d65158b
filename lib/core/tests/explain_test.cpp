// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "explain.hpp"

#include "fake_sysfs.hpp"

#include <dapx/dapx.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

// In a header that g++ does not install.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*,
                                                                             std::size_t),
                                                         void (*free_hook)(const volatile void*));

namespace dapx::test {
namespace {

void expect_contains(const std::string& text, const std::string& part)
{
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Explain, NoModule)
{
    const FakeSysfs sysfs;
    const Error error = detail::explain_open(ENOENT, "/dev/dapx", sysfs.path());
    EXPECT_EQ(error.code(), ENOENT);
    EXPECT_EQ(error.call(), "open");
    EXPECT_EQ(error.message(), "cannot open /dev/dapx: the dapx module is not loaded; run "
                               "'modprobe dapx' as root");
}

TEST(Explain, ModuleWithoutNode)
{
    FakeSysfs sysfs;
    sysfs.directory("module/dapx");
    expect_contains(detail::explain_open(ENOENT, "/dev/dapx", sysfs.path()).message(),
                    "in a container");
}

TEST(Explain, NodeOfAnotherDevice)
{
    FakeSysfs sysfs;
    sysfs.directory("module/dapx");
    for (const int code : {ENXIO, ENODEV, ENOTTY, EINVAL, EBADE})
        expect_contains(detail::explain_open(code, "/dev/dapx", sysfs.path()).message(),
                        "cannot open /dev/dapx: it is not the device node of the dapx module; ");
}

TEST(Explain, NoPermissionNamesTheGroup)
{
    const FakeSysfs sysfs;
    sysfs.file("node", "");
    const std::string node = sysfs.path() + "/node";
    ASSERT_EQ(::chmod(node.c_str(), 0660), 0);
    expect_contains(detail::explain_open(EACCES, node).message(), "permission denied");
    expect_contains(detail::explain_open(EACCES, node).message(), "group");
    expect_contains(detail::explain_open(EACCES, "/nowhere").message(), "group rdma");
}

TEST(Explain, UnknownDeviceNamesThoseThereAre)
{
    FakeSysfs sysfs;
    expect_contains(detail::explain_attach(ENODEV, "rxe7", sysfs.path()).message(),
                    "rdma link add");
    sysfs.rxe("rxe0", "lo");
    sysfs.rxe("rxe1", "lo");
    EXPECT_EQ(detail::explain_attach(ENODEV, "rxe7", sysfs.path()).message(),
              "there is no RDMA device rxe7; there are: rxe0, rxe1");
}

TEST(Explain, UnsafeDriverIsNamed)
{
    FakeSysfs sysfs;
    sysfs.hardware("mlx5_0", "mlx5_core");
    const Error error = detail::explain_attach(EOPNOTSUPP, "mlx5_0", sysfs.path());
    EXPECT_EQ(error.call(), "DAPX_ATTACH");
    expect_contains(error.message(), "its driver, mlx5_core,");
}

TEST(Explain, LockedMemoryNamesTheLimit)
{
    if (::geteuid() == 0) {
        // Root may lock all there is; the limit then is not the cause.
        expect_contains(detail::explain_mr(ENOMEM, 1 << 20).message(), "out of memory");
        return;
    }
    ::rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    limit.rlim_cur = 64 * 1024;
    ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    const std::string text = detail::explain_mr(ENOMEM, 1 << 20).message();
    expect_contains(text, "cannot register 1 MiB of memory");
    expect_contains(text, "64 KiB (RLIMIT_MEMLOCK)");
    expect_contains(text, "ulimit -l");
    // EPERM is about the limit only if that is 0.
    expect_contains(detail::explain_mr(EPERM, 1 << 20).message(), "after fork()");
    limit.rlim_cur = 0;
    ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    expect_contains(detail::explain_mr(EPERM, 1 << 20).message(), "may lock 0 bytes");
}

TEST(Explain, EveryErrnoOfTheContractHasASentence)
{
    for (const int code :
         {ENOTTY,     E2BIG,  EINVAL,  EOPNOTSUPP, EOVERFLOW,      EFAULT,    ENOENT,
          EBADFD,     EBUSY,  EPERM,   EACCES,     ENODEV,         EIO,       ENOMEM,
          EDQUOT,     EAGAIN, EBADMSG, ETIMEDOUT,  EINTR,          ECANCELED, EADDRNOTAVAIL,
          EADDRINUSE, EEXIST, EBADF,   EPROTO,     ENOTRECOVERABLE}) {
        const Error error = detail::explain(code, "DAPX_X", "cannot do it");
        EXPECT_EQ(error.code(), code);
        EXPECT_EQ(error.call(), "DAPX_X");
        expect_contains(error.message(), "cannot do it: ");
        // Not the C library's words, which name neither the object nor a remedy.
        EXPECT_EQ(error.message().find(std::strerror(code)), std::string::npos) << code;
        EXPECT_NE(error.message().back(), '.');
    }
    EXPECT_EQ(detail::explain(EIO, "x", "y").error_code(), std::errc::io_error);
}

TEST(Explain, SentenceIsComposedWhenAskedFor)
{
    static thread_local int allocations = 0;
    ASSERT_NE(0, __sanitizer_install_malloc_and_free_hooks(
                     [](const volatile void*, std::size_t) { ++allocations; },
                     [](const volatile void*) {}));
    allocations = 0;
    const Error error = detail::explain(ETIMEDOUT, "DAPX_EVD_WAIT", "cannot wait for events");
    const Error copy = error; // NOLINT(performance-unnecessary-copy-initialization)
    EXPECT_EQ(0, allocations);
    EXPECT_EQ(copy.message(), "cannot wait for events: timed out");
    EXPECT_LT(0, allocations);
}

TEST(Explain, MemoryForXrcCountsTwice)
{
    if (::geteuid() == 0)
        return;
    ::rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    limit.rlim_cur = std::min<::rlim_t>(limit.rlim_cur, 64 * 1024);
    ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    expect_contains(detail::explain_mr(ENOMEM, 1 << 20, true).message(), "counts twice");
}

TEST(Explain, Domain)
{
    expect_contains(detail::explain_free(EBUSY, ObjectType::xrcd).message(),
                    "cannot close the XRC domain");
    expect_contains(detail::explain_free(EBUSY, ObjectType::pd).message(),
                    "in use by another object");
}

TEST(Explain, Posts)
{
    expect_contains(explain(PostResult::full, "post_send").message(), "the ring is full");
    expect_contains(explain(PostResult::bad_state, "post_send").message(), "not connected");
    EXPECT_EQ(explain(PostResult::bad_state, "post_send").code(), EBADFD);
    EXPECT_EQ(explain(PostResult::device_removed, "post_recv").call(), "post_recv");
    expect_contains(explain(PostResult::device_removed, "post_recv").message(), "removed");
    expect_contains(explain(PostResult::bad_request, "post_recv").message(),
                    "for one that has none");
    expect_contains(explain(PostResult::broken_ring, "post_recv").message(), "stray write");
    expect_contains(explain(PostResult::out_of_service, "post_recv").message(),
                    "which its asynchronous event names");
}

TEST(Explain, Bytes)
{
    EXPECT_EQ(detail::bytes_text(100), "100 bytes");
    EXPECT_EQ(detail::bytes_text(1024), "1 KiB");
    EXPECT_EQ(detail::bytes_text(1025), "1025 bytes");
    EXPECT_EQ(detail::bytes_text(8ULL << 30), "8 GiB");
    EXPECT_EQ(detail::bytes_text(0), "0 bytes");
}

TEST(Explain, EventsInWords)
{
    Event event;
    event.raw().type = DAPX_EVENT_COMPLETION;
    event.raw().completion.status = DAPX_STATUS_REMOTE_ACCESS;
    EXPECT_EQ(event.describe(), "request failed: the peer does not give this access to its memory");
    EXPECT_FALSE(event.succeeded());
    // Whether it was done, nobody here knows.
    event.raw().completion.status = DAPX_STATUS_FLUSHED;
    EXPECT_EQ(event.describe(),
              "request failed: the connection ended before; the peer may have it");
    event.raw().completion.opcode = DAPX_OP_RECV;
    EXPECT_EQ(event.describe(), "receive without a message: the connection ended before");
    event.raw() = {};
    event.raw().type = DAPX_EVENT_CONNECTION;
    event.raw().connection.what = DAPX_CONNECTION_UNREACHABLE;
    event.raw().connection.error = -ENETUNREACH;
    EXPECT_EQ(event.error(), ENETUNREACH);
    expect_contains(event.describe(), "Network is unreachable");
    event.raw().connection.what = DAPX_CONNECTION_NON_PEER_REJECTED;
    event.raw().connection.error = -EPROTO;
    expect_contains(event.describe(), "speaks another protocol; XRC goes from");
    event.raw() = {};
    event.raw().type = DAPX_EVENT_ASYNC;
    event.raw().async.what = DAPX_ASYNC_XRC_QP_ERROR;
    event.raw().async.qp_num = 17;
    EXPECT_EQ(event.describe(), "the connection of an XRC receive queue pair broke (number 17)");
    EXPECT_FALSE(event.succeeded());
    event.raw().async.what = DAPX_ASYNC_SRQ_LIMIT;
    event.raw().async.qp_num = 0;
    expect_contains(event.describe(), "fewer receives than its limit");
    EXPECT_TRUE(event.succeeded());
    event.raw().async.what = DAPX_ASYNC_SRQ_ERROR;
    EXPECT_EQ(event.describe(), "a shared receive queue is out of service");
    event.raw().async.wr_id = 5;
    for (const auto& [error, text] :
         {std::pair(EACCES, "its receive with wr_id 5 names memory that is not registered"),
          std::pair(EINVAL, "its receive with wr_id 5 is malformed"),
          std::pair(EBADMSG, "its indices were overwritten"),
          std::pair(EIO, "the device gave it up")}) {
        event.raw().async.error = -error;
        EXPECT_EQ(event.error(), error);
        expect_contains(event.describe(), std::string("out of service: ") + text);
    }
    event.raw().type = 77;
    EXPECT_EQ(event.describe(), "unknown event");
}

} // namespace
} // namespace dapx::test
