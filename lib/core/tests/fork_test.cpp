// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What a forked child may do with the objects of its parent: nothing, without harm.
#include "fake_module.hpp"

#include <dapx/dapx.hpp>

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <optional>
#include <span>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dapx::test {
namespace {

constexpr std::span<const Segment> none{};

struct ForkTest : ::testing::Test {
    FakeModule module;
    std::optional<Context> context = Context::open("rxe0", module.node()).value();
    std::optional<Pd> pd = Pd::create(*context).value();
    std::optional<Evd> evd = Evd::create(*context, {.depth = 4}).value();
    std::optional<Srq> srq = Srq::create(*pd, {.depth = 4}).value();
    std::optional<Endpoint> endpoint =
        Endpoint::create(*pd, *evd, {.send_depth = 4, .recv_depth = 4, .max_inline = 64}).value();

    ForkTest() { module.set_state(endpoint->handle(), DAPX_EP_CONNECTED); }

    void destroy_all()
    {
        endpoint.reset();
        srq.reset();
        evd.reset();
        pd.reset();
        context.reset();
    }
};

int status_of(pid_t child)
{
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
}

/// Runs @p body in a child; true if it failed no expectation there, and was not killed.
template <class Body> [[nodiscard]] bool passes_in_child(Body body)
{
    const pid_t child = ::fork();
    if (child == 0) {
        body();
        ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    return status_of(child) == 0;
}

TEST_F(ForkTest, EventsAreTheParents)
{
    ASSERT_TRUE(evd->post({1, 2}));
    ASSERT_TRUE(passes_in_child([&] {
        Event event;
        EXPECT_FALSE(evd->poll(event));
        EXPECT_EQ(evd->available(), 0U);
        EXPECT_FALSE(evd->quiet());
        EXPECT_TRUE(evd->dead());
        evd->arm();
        EXPECT_FALSE(evd->armed());
        evd->drop(endpoint->handle());
        EXPECT_EQ(evd->next(Clock::now()).error().code(), EPERM);
        EXPECT_EQ(evd->resize(8).error().code(), EPERM);
    }));
    Event event;
    EXPECT_TRUE(evd->poll(event));
}

TEST_F(ForkTest, PostsAnswerThatTheProcessIsWrong)
{
    const std::array<std::byte, 8> data{};
    ASSERT_EQ(endpoint->post_send_inline(1, data, SendFlags::signalled, Doorbell::later),
              PostResult::ok);
    ASSERT_TRUE(passes_in_child([&] {
        EXPECT_EQ(endpoint->state(), EpState::disconnected);
        EXPECT_EQ(endpoint->send_room(), 0U);
        EXPECT_EQ(endpoint->post_send_inline(2, data), PostResult::wrong_process);
        EXPECT_EQ(endpoint->post_recv(3, none), PostResult::wrong_process);
        EXPECT_EQ(endpoint->submit(), PostResult::wrong_process);
        EXPECT_EQ(srq->post_recv(4, none), PostResult::wrong_process);
    }));
    EXPECT_EQ(endpoint->state(), EpState::connected);
    EXPECT_EQ(endpoint->submit(), PostResult::ok);
    EXPECT_EQ(*module.send_ring(endpoint->handle()).tail(), 0U);
}

TEST_F(ForkTest, DestructorsLeaveTheChildsOwnMemoryAlone)
{
    ASSERT_EQ(module.mappings.size(), 3U);
    ASSERT_TRUE(passes_in_child([&] {
        // The next allocation may have any address where a ring of the parent is.
        for (const auto& [address, size] : module.mappings)
            ASSERT_EQ(::mmap(address, size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
                      address);
        destroy_all();
        for (const auto& [address, size] : module.mappings)
            EXPECT_EQ(::msync(address, size, MS_ASYNC), 0) << "unmapped";
    }));
}

TEST_F(ForkTest, DestructorsFreeNothingOfTheChilds)
{
    ASSERT_TRUE(passes_in_child([&] {
        FakeModule own;
        // The number of the descriptor comes back, as after closefrom(3).
        ::close(context->fd());
        const Context other = Context::open("rxe0", own.node()).value();
        ASSERT_EQ(other.fd(), pd->context().fd());
        const Pd second = Pd::create(other).value();
        pd.reset();
        EXPECT_EQ(own.count(DAPX_FREE), 0U);
    }));
}

TEST_F(ForkTest, ChildHasItsOwnContext)
{
    ASSERT_TRUE(passes_in_child([&] {
        FakeModule own;
        const Context other = Context::open("rxe0", own.node()).value();
        Evd events = Evd::create(other, {.depth = 4}).value();
        ASSERT_TRUE(events.post({7, 8}));
        EXPECT_EQ(events.next().value().software()[0], 7U);
        EXPECT_TRUE(evd->dead());
        EXPECT_TRUE(passes_in_child([&] {
            FakeModule third;
            const Context last = Context::open("rxe0", third.node()).value();
            EXPECT_TRUE(events.dead());
            EXPECT_TRUE(evd->dead());
        }));
        EXPECT_FALSE(events.dead());
    }));
}

TEST_F(ForkTest, ChildMadeWithoutForkHandlers)
{
    const auto child =
        static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    if (child == 0) {
        Event event;
        ::_exit(!evd->poll(event) && endpoint->post_recv(3, none) == PostResult::wrong_process ? 0
                                                                                               : 1);
    }
    EXPECT_EQ(status_of(child), 0);
}

} // namespace
} // namespace dapx::test
