// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Handles, their lifetime, errors, event dispatchers: against the stand-in for the module.
#include "fake_module.hpp"

#include <dapx/c.h>
#include <dapx/dapx.hpp>
#include <dapx/must.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>

namespace dapx::test {
namespace {

struct ObjectTest : ::testing::Test {
    FakeModule module;
    Context context = Context::open("rxe0", module.node()).value();
    Pd pd = Pd::create(context, 7).value();
};

TEST_F(ObjectTest, NodeThatIsNotDapx)
{
    const auto other = Context::open_node("/dev/null");
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code(), ENOTTY);
    EXPECT_EQ(other.error().call(), "open");
    EXPECT_NE(other.error().message().find("/dev/null: it is not the device node"),
              std::string::npos);
}

TEST_F(ObjectTest, MissingNode)
{
    const auto none = Context::open("rxe0", "/nonexistent/dapx");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code(), ENOENT);
    EXPECT_EQ(none.error().call(), "open");
}

TEST_F(ObjectTest, AttachErrors)
{
    const auto unsafe = Context::open("mthca0", module.node());
    ASSERT_FALSE(unsafe);
    EXPECT_EQ(unsafe.error().code(), EOPNOTSUPP);
    EXPECT_EQ(unsafe.error().call(), "DAPX_ATTACH");
    // Longer than the ABI's field: no command that would cut it off.
    const std::size_t commands = module.count(DAPX_ATTACH);
    EXPECT_EQ(Context::open(std::string(64, 'x'), module.node()).error().code(), ENODEV);
    EXPECT_EQ(Context::open("", module.node()).error().code(), ENODEV);
    EXPECT_EQ(module.count(DAPX_ATTACH), commands);
}

TEST_F(ObjectTest, InfoNamesFeatures)
{
    const ModuleInfo info = context.info().value();
    EXPECT_TRUE(info.rc);
    EXPECT_TRUE(info.srq);
    EXPECT_TRUE(info.xrc);
    EXPECT_EQ(info.max_objects, 1000U);
}

TEST_F(ObjectTest, CommandsCarryTheirSize)
{
    EXPECT_EQ(module.last<dapx_pd_create>(DAPX_PD_CREATE).size, sizeof(dapx_pd_create));
    EXPECT_EQ(module.last<dapx_pd_create>(DAPX_PD_CREATE).user_data, 7U);
    EXPECT_EQ(module.last<dapx_attach>(DAPX_ATTACH).size, sizeof(dapx_attach));
}

TEST_F(ObjectTest, DestructorFrees)
{
    const std::size_t before = module.objects().size();
    {
        const Pd other = Pd::create(context).value();
        EXPECT_EQ(module.objects().size(), before + 1);
    }
    EXPECT_EQ(module.objects().size(), before);
    EXPECT_EQ(module.last<dapx_free>(DAPX_FREE).type, std::uint32_t{DAPX_OBJECT_PD});
}

TEST_F(ObjectTest, MovingKeepsOneOwner)
{
    const std::size_t before = module.count(DAPX_FREE);
    {
        Pd a = Pd::create(context).value();
        const std::uint32_t handle = a.handle();
        Pd b = std::move(a);
        EXPECT_FALSE(a); // NOLINT(bugprone-use-after-move): what is tested
        EXPECT_EQ(b.handle(), handle);
        b = Pd::create(context).value();
        EXPECT_EQ(module.count(DAPX_FREE), before + 1);
        EXPECT_FALSE(module.objects().contains(handle));
    }
    EXPECT_EQ(module.count(DAPX_FREE), before + 2);
}

TEST_F(ObjectTest, FreeThatFailsLeavesItValid)
{
    module.busy.insert(pd.handle());
    const auto busy = pd.free();
    ASSERT_FALSE(busy);
    EXPECT_EQ(busy.error().code(), EBUSY);
    EXPECT_EQ(busy.error().call(), "DAPX_FREE");
    EXPECT_TRUE(pd);
    module.busy.clear();
    EXPECT_TRUE(pd.free());
    EXPECT_FALSE(pd);
}

TEST_F(ObjectTest, ObjectsKeepTheFileOpen)
{
    const int fd = context.fd();
    {
        const Context gone = std::move(context);
    }
    EXPECT_TRUE(MemoryRegion::create(pd, &fd, sizeof(fd), Access::local_read));
    EXPECT_EQ(pd.context().fd(), fd);
}

TEST_F(ObjectTest, SignalsAreRetriedExceptWhereACallWaits)
{
    module.fail_next(DAPX_PD_CREATE, EINTR);
    EXPECT_TRUE(Pd::create(context));
    Evd evd = Evd::create(context).value();
    module.fail_next(DAPX_EVD_WAIT, EINTR);
    EXPECT_EQ(evd.wait().error().code(), EINTR);
    module.fail_next(DAPX_FREE, EINTR);
    EXPECT_EQ(evd.free().error().code(), EINTR);
    EXPECT_TRUE(evd);
}

TEST_F(ObjectTest, MemoryRegion)
{
    std::vector<std::uint64_t> memory(8);
    const auto region =
        MemoryRegion::create(pd, std::span(memory), Access::local_write | Access::remote_read);
    ASSERT_TRUE(region);
    const auto argument = module.last<dapx_mr_create>(DAPX_MR_CREATE);
    EXPECT_EQ(argument.addr, reinterpret_cast<std::uint64_t>(memory.data()));
    EXPECT_EQ(argument.length, 64U);
    EXPECT_EQ(argument.access,
              std::uint32_t{DAPX_ACCESS_LOCAL_WRITE} | std::uint32_t{DAPX_ACCESS_REMOTE_READ});
    EXPECT_EQ(argument.pd, pd.handle());
    const Segment segment = region->segment(16, 8);
    EXPECT_EQ(segment.mr, region->handle());
    EXPECT_EQ(segment.addr, argument.addr + 16);
    EXPECT_EQ(segment.length, 8U);
    EXPECT_EQ(region->remote(8).addr, argument.addr + 8);
    EXPECT_EQ(region->remote().rkey, 0x1234U);
    module.fail_next(DAPX_MR_CREATE, EACCES);
    const auto refused = MemoryRegion::create(pd, std::span(memory), Access::local_write);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().call(), "DAPX_MR_CREATE");
    EXPECT_NE(refused.error().message().find("map it writable"), std::string::npos);
}

TEST_F(ObjectTest, MemoryRegionBecomesOneOfXrc)
{
    std::vector<std::uint64_t> memory(8);
    auto region = MemoryRegion::create(pd, std::span(memory), Access::local_write).value();
    ASSERT_TRUE(region.enable_xrc());
    const auto argument = module.last<dapx_mr_modify>(DAPX_MR_MODIFY);
    EXPECT_EQ(argument.mr, region.handle());
    EXPECT_EQ(argument.flags, std::uint32_t{DAPX_MR_XRC});
    module.fail_next(DAPX_MR_MODIFY, EFAULT);
    const auto refused = region.enable_xrc();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().call(), "DAPX_MR_MODIFY");
    EXPECT_EQ(refused.error().message(),
              "cannot register 64 bytes of memory: not all of the memory is mapped");
    EXPECT_TRUE(region);
}

TEST_F(ObjectTest, EvdPollsAcrossTheWrapAround)
{
    Evd evd = Evd::create(context, {.depth = 4}).value();
    Event event;
    EXPECT_FALSE(evd.poll(event));
    const std::size_t commands = module.count(DAPX_EVD_WAIT) + module.count(DAPX_DOORBELL);
    for (std::uint64_t i = 0; i < 20; ++i) {
        dapx_event raw{};
        raw.type = DAPX_EVENT_COMPLETION;
        raw.handle = 5;
        raw.completion.wr_id = i;
        raw.completion.opcode = DAPX_OP_RECV;
        raw.completion.flags = DAPX_COMPLETION_IMM;
        raw.completion.imm_data = 99;
        module.put_event(evd.handle(), raw);
        ASSERT_TRUE(evd.poll(event));
        EXPECT_TRUE(event.is_completion());
        EXPECT_EQ(event.wr_id(), i);
        EXPECT_EQ(event.imm_data(), 99U);
        EXPECT_EQ(event.srq(), 0U);
        EXPECT_FALSE(evd.poll(event));
    }
    EXPECT_EQ(module.count(DAPX_EVD_WAIT) + module.count(DAPX_DOORBELL), commands)
        << "polling is to do no system call";
}

TEST_F(ObjectTest, EvdPollsManyAtOnce)
{
    Evd evd = Evd::create(context, {.depth = 8}).value();
    for (std::uint64_t i = 0; i < 5; ++i)
        ASSERT_TRUE(evd.post({i, 2 * i}));
    std::array<Event, 4> events;
    EXPECT_EQ(evd.poll(events), 4U);
    EXPECT_EQ(events[3].type(), EventType::software);
    EXPECT_EQ(events[3].software()[1], 6U);
    EXPECT_EQ(evd.poll(events), 1U);
    EXPECT_EQ(evd.poll(events), 0U);
}

TEST_F(ObjectTest, EvdFetchesTheBacklogWhenEmpty)
{
    Evd evd = Evd::create(context, {.depth = 4}).value();
    *module.evd_ring(evd.handle()).flags() = DAPX_RING_BACKLOG;
    Event event;
    EXPECT_FALSE(evd.poll(event));
    EXPECT_EQ(evd.doorbells(), 1U);
    const auto doorbell = module.last<dapx_doorbell>(DAPX_DOORBELL);
    EXPECT_EQ(doorbell.flags, std::uint32_t{DAPX_DOORBELL_EVENTS});
    EXPECT_EQ(doorbell.handle, evd.handle());
    *module.evd_ring(evd.handle()).flags() = DAPX_RING_BACKLOG | DAPX_RING_DEAD;
    EXPECT_FALSE(evd.poll(event));
    EXPECT_EQ(evd.doorbells(), 1U) << "a dead ring's backlog is not asked for";
    EXPECT_TRUE(evd.dead());
}

TEST_F(ObjectTest, EvdFetchesTheBacklogAtHalf)
{
    Evd evd = Evd::create(context, {.depth = 4}).value();
    for (std::uint64_t i = 0; i < 4; ++i)
        ASSERT_TRUE(evd.post({i, 0}));
    *module.evd_ring(evd.handle()).flags() = DAPX_RING_BACKLOG;
    Event event;
    for (int i = 0; i < 3; ++i)
        ASSERT_TRUE(evd.poll(event));
    EXPECT_GE(evd.doorbells(), 1U);
    EXPECT_LE(evd.doorbells(), 2U);
}

TEST_F(ObjectTest, EvdWaits)
{
    Evd evd = Evd::create(context, {.depth = 4}).value();
    const auto deadline = Clock::now();
    EXPECT_EQ(evd.wait(2, deadline).error().code(), ETIMEDOUT);
    const auto argument = module.last<dapx_evd_wait>(DAPX_EVD_WAIT);
    EXPECT_EQ(argument.threshold, 2U);
    EXPECT_EQ(argument.deadline, static_cast<std::uint64_t>(deadline.time_since_epoch().count()));
    ASSERT_TRUE(evd.post({1, 1}));
    EXPECT_EQ(evd.wait().value(), 1U);
    EXPECT_EQ(module.last<dapx_evd_wait>(DAPX_EVD_WAIT).deadline, DAPX_NO_DEADLINE);
    EXPECT_EQ(evd.wait(1, std::chrono::hours::max()).value(), 1U);
    EXPECT_EQ(module.last<dapx_evd_wait>(DAPX_EVD_WAIT).deadline, DAPX_NO_DEADLINE);
    EXPECT_EQ(evd.next().value().type(), EventType::software);
    EXPECT_EQ(evd.next(std::chrono::milliseconds(1)).error().code(), ETIMEDOUT);
    (void)evd.wait_solicited();
    EXPECT_EQ(module.last<dapx_evd_wait>(DAPX_EVD_WAIT).flags, std::uint32_t{DAPX_WAIT_SOLICITED});
}

TEST_F(ObjectTest, EvdResizeKeepsUnreadEvents)
{
    Evd evd = Evd::create(context, {.depth = 4}).value();
    for (std::uint64_t i = 0; i < 4; ++i)
        ASSERT_TRUE(evd.post({i, 0}));
    Event event;
    ASSERT_TRUE(evd.poll(event));
    EXPECT_EQ(evd.resize(2).error().code(), EBUSY);
    ASSERT_TRUE(evd.resize(16));
    EXPECT_EQ(evd.depth(), 16U);
    for (std::uint64_t i = 4; i < 12; ++i)
        ASSERT_TRUE(evd.post({i, 0}));
    for (std::uint64_t i = 1; i < 12; ++i) {
        ASSERT_TRUE(evd.poll(event));
        EXPECT_EQ(event.software()[0], i);
    }
    EXPECT_FALSE(evd.poll(event));
}

TEST_F(ObjectTest, EvdResizeWithoutAddressSpaceChangesNothing)
{
    Evd evd = Evd::create(context, {.depth = 4}).value();
    ASSERT_TRUE(evd.post({1, 0}));
    module.fail_mmap(0, ENOMEM);
    const auto resized = evd.resize(1024);
    ASSERT_FALSE(resized);
    EXPECT_EQ(resized.error().code(), ENOMEM);
    EXPECT_EQ(evd.depth(), 4U);
    EXPECT_FALSE(evd.dead());
    ASSERT_TRUE(evd.post({2, 0}));
    Event event;
    for (std::uint64_t i = 1; i <= 2; ++i) {
        ASSERT_TRUE(evd.poll(event));
        EXPECT_EQ(event.software()[0], i);
    }
}

TEST_F(ObjectTest, EvdWhoseNewRingCannotBeMappedIsDeadUntilItIsResized)
{
    Evd evd = Evd::create(context, {.depth = 4}).value();
    ASSERT_TRUE(evd.post({1, 0}));
    module.fail_mmap(1, ENOMEM);
    EXPECT_EQ(evd.resize(16).error().code(), ENOMEM);
    Event event;
    EXPECT_FALSE(evd.poll(event)) << "the event is in the new ring";
    EXPECT_TRUE(evd.dead());
    EXPECT_EQ(evd.next(std::chrono::milliseconds(1)).error().code(), EBADMSG);
    ASSERT_TRUE(evd.resize(8));
    EXPECT_FALSE(evd.dead());
    ASSERT_TRUE(evd.poll(event));
    EXPECT_EQ(event.software()[0], 1U);
    EXPECT_FALSE(evd.poll(event));
}

TEST_F(ObjectTest, NextOfAKind)
{
    Evd evd = Evd::create(context, {.depth = 8}).value();
    dapx_event event{};
    event.type = DAPX_EVENT_COMPLETION;
    event.completion.wr_id = 5;
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(evd.post({1, 0}));
        module.put_event(evd.handle(), event);
    }
    EXPECT_EQ(evd.next_of(EventType::completion).value().wr_id(), 5U);
    int others = 0;
    const auto count = [&](const Event& other) {
        EXPECT_EQ(other.type(), EventType::software);
        ++others;
    };
    EXPECT_EQ(evd.next_of(EventType::completion, no_deadline, count).value().wr_id(), 5U);
    EXPECT_EQ(others, 1);
    const auto late =
        evd.next_of(EventType::completion, deadline_after(std::chrono::milliseconds(1)));
    EXPECT_EQ(late.error().code(), ETIMEDOUT);
}

TEST_F(ObjectTest, MustEndsTheProcessWithTheSentence)
{
    EXPECT_EQ(must(Result<int>(3)), 3);
    must(PostResult::ok);
    EXPECT_EXIT(must(Context::open("rxe0", "/no/such/node")), ::testing::ExitedWithCode(1),
                "^dapx-core-test: .*/no/such/node");
    EXPECT_EXIT(must(PostResult::full, "post_send"), ::testing::ExitedWithCode(1),
                "cannot post \\(post_send\\): the ring is full");
    Event broken;
    broken.raw().type = DAPX_EVENT_CONNECTION;
    broken.raw().connection.what = DAPX_CONNECTION_BROKEN;
    EXPECT_EXIT(must_succeed(broken), ::testing::ExitedWithCode(1), "the connection broke");
}

TEST_F(ObjectTest, NextEndsIfTheRingWasOverwritten)
{
    Evd evd = Evd::create(context, {.depth = 4}).value();
    *module.evd_ring(evd.handle()).tail() += 5;
    const auto none = evd.next(std::chrono::milliseconds(1));
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code(), EBADMSG);
    EXPECT_NE(none.error().message().find("overwritten"), std::string::npos);
}

TEST_F(ObjectTest, LastEventBeforeTheEndOfARingIsRead)
{
    constexpr unsigned rounds = 2000;
    dapxc_context* own = dapxc_open("rxe0", module.node());
    dapxc_evd* evd = dapxc_evd_create(own, 4, 0, 0);
    ASSERT_NE(evd, nullptr);
    const FakeModule::Ring& ring = module.evd_ring(dapxc_evd_handle(evd));
    std::atomic<unsigned> round = 0;
    // The module's part: the last event, then the end.
    std::thread ends([&] {
        for (unsigned i = 1; i <= rounds; ++i) {
            while (round.load() != i)
                std::this_thread::yield();
            module.put_event(dapxc_evd_handle(evd), {});
            __atomic_or_fetch(ring.flags(), DAPX_RING_DEAD, __ATOMIC_RELEASE);
        }
    });
    unsigned without_its_event = 0;
    for (unsigned i = 1; i <= rounds; ++i) {
        round = i;
        std::size_t events = 0;
        std::size_t count = 0;
        dapx_event event;
        while (dapxc_evd_poll(evd, &event, 1, &count) == 0)
            events += count;
        if (events == 0) {
            ++without_its_event;
            __atomic_and_fetch(ring.flags(), ~std::uint32_t{DAPX_RING_DEAD}, __ATOMIC_RELAXED);
            EXPECT_EQ(dapxc_evd_poll(evd, &event, 1, &count), 0);
        }
        __atomic_and_fetch(ring.flags(), ~std::uint32_t{DAPX_RING_DEAD}, __ATOMIC_RELAXED);
    }
    ends.join();
    EXPECT_EQ(without_its_event, 0U) << "of " << rounds;
    EXPECT_EQ(dapxc_evd_free(evd), 0);
    EXPECT_EQ(dapxc_close(own), 0);
}

TEST_F(ObjectTest, EvdIsArmedWithoutACommand)
{
    Evd evd = Evd::create(context, {.depth = 4}).value();
    ASSERT_TRUE(evd.set_eventfd_once(5));
    const auto argument = module.last<dapx_evd_eventfd>(DAPX_EVD_EVENTFD);
    EXPECT_EQ(argument.flags, std::uint32_t{DAPX_EVENTFD_ONCE});
    EXPECT_EQ(argument.evd, evd.handle());
    EXPECT_EQ(argument.fd, 5);
    EXPECT_FALSE(evd.armed());
    evd.arm();
    EXPECT_TRUE(evd.armed());
    EXPECT_EQ(*module.evd_ring(evd.handle()).armed(), 1U);
    *module.evd_ring(evd.handle()).armed() = 0;
    EXPECT_FALSE(evd.armed());
    EXPECT_EQ(module.count(DAPX_EVD_EVENTFD), 1U);
    evd.arm_solicited();
    EXPECT_EQ(*module.evd_ring(evd.handle()).armed(), std::uint32_t{DAPX_ARM_SOLICITED});
    EXPECT_TRUE(evd.armed());
    EXPECT_EQ(module.count(DAPX_DOORBELL), 0U);
    // While events have to be fetched, the module has to know.
    *module.evd_ring(evd.handle()).flags() = DAPX_RING_BACKLOG;
    evd.arm();
    EXPECT_EQ(*module.evd_ring(evd.handle()).armed(), std::uint32_t{DAPX_ARM_ANY});
    EXPECT_EQ(module.count(DAPX_DOORBELL), 1U);
    *module.evd_ring(evd.handle()).flags() = 0;
    // In the new ring it is the new word.
    ASSERT_TRUE(evd.resize(16));
    evd.arm();
    EXPECT_EQ(*module.evd_ring(evd.handle()).armed(), 1U);
    ASSERT_TRUE(evd.set_eventfd(5));
    EXPECT_EQ(module.last<dapx_evd_eventfd>(DAPX_EVD_EVENTFD).flags, 0U);
}

TEST_F(ObjectTest, EvdOutlivesItsHandleForReading)
{
    Evd evd = Evd::create(context, {.depth = 4}).value();
    ASSERT_TRUE(evd.post({3, 4}));
    ASSERT_TRUE(evd.free());
    Event event;
    ASSERT_TRUE(evd.poll(event));
    EXPECT_EQ(event.software()[0], 3U);
}

TEST_F(ObjectTest, LayoutsThatMakeNoSenseAreRefused)
{
    for (const auto flaw : {FakeModule::Flaw::outside, FakeModule::Flaw::odd_depth,
                            FakeModule::Flaw::short_stride, FakeModule::Flaw::arm_outside}) {
        module.flaw = flaw;
        const std::size_t objects = module.objects().size();
        const auto evd = Evd::create(context, {.depth = 4});
        ASSERT_FALSE(evd);
        EXPECT_EQ(evd.error().code(), EPROTO);
        EXPECT_EQ(module.objects().size(), objects) << "the module's object is left behind";
    }
}

TEST_F(ObjectTest, ListenerGoesWithWhatNobodyAcknowledged)
{
    Evd evd = Evd::create(context).value();
    std::uint32_t handle = 0;
    {
        const CmId listener = CmId::create(evd, 3).value();
        handle = listener.handle();
        module.unacked = 3;
    }
    EXPECT_FALSE(module.objects().contains(handle));
    EXPECT_EQ(module.last<dapx_free>(DAPX_FREE).flags, std::uint32_t{DAPX_FREE_DISCARD});

    CmId listener = CmId::create(evd, 3).value();
    handle = listener.handle();
    EXPECT_EQ(listener.free().error().code(), EBUSY);
    EXPECT_TRUE(listener);
    ASSERT_TRUE(listener.discard());
    EXPECT_FALSE(listener);
    EXPECT_FALSE(module.objects().contains(handle));
}

TEST_F(ObjectTest, CmIdCommands)
{
    Evd evd = Evd::create(context).value();
    CmId id = CmId::create(evd).value();
    const Address address = Address::parse("10.0.0.2", 77).value();
    ASSERT_TRUE(id.bind(address));
    const auto bind = module.last<dapx_cm_bind>(DAPX_CM_BIND);
    EXPECT_EQ(std::memcmp(&bind.addr, &address.storage(), sizeof(bind.addr)), 0);
    ASSERT_TRUE(id.listen(5));
    EXPECT_EQ(module.last<dapx_cm_listen>(DAPX_CM_LISTEN).backlog, 5U);
    ASSERT_TRUE(id.listen_tentative({.send_depth = 3}));
    const auto listen = module.last<dapx_cm_listen>(DAPX_CM_LISTEN);
    EXPECT_EQ(listen.mode, std::uint32_t{DAPX_LISTEN_TENTATIVE});
    EXPECT_EQ(listen.attr.send_depth, 3U);
    ASSERT_TRUE(id.resolve_address(address));
    const auto resolve = module.last<dapx_cm_resolve>(DAPX_CM_RESOLVE);
    EXPECT_EQ(resolve.what, std::uint32_t{DAPX_RESOLVE_ADDR});
    EXPECT_EQ(resolve.deadline, DAPX_NO_DEADLINE);
    EXPECT_EQ(resolve.src.ss_family, 0);
    ASSERT_TRUE(id.modify({}));
    EXPECT_EQ(module.last<dapx_cm_modify>(DAPX_CM_MODIFY).mask, 0U);
    ASSERT_TRUE(id.modify({.tos = 40, .one_family = true}));
    const auto some = module.last<dapx_cm_modify>(DAPX_CM_MODIFY);
    EXPECT_EQ(some.cm, id.handle());
    EXPECT_EQ(some.mask, std::uint32_t{DAPX_CM_MODIFY_TOS | DAPX_CM_MODIFY_AFONLY});
    EXPECT_EQ(some.tos, 40);
    EXPECT_EQ(some.afonly, 1);
    ASSERT_TRUE(id.modify({.ack_timeout = 14, .reuse_address = true}));
    const auto rest = module.last<dapx_cm_modify>(DAPX_CM_MODIFY);
    EXPECT_EQ(rest.mask, std::uint32_t{DAPX_CM_MODIFY_ACK_TIMEOUT | DAPX_CM_MODIFY_REUSEADDR});
    EXPECT_EQ(rest.ack_timeout, 14);
    EXPECT_EQ(rest.reuseaddr, 1);
    module.fail_next(DAPX_CM_MODIFY, EBADFD);
    EXPECT_EQ(id.modify({.tos = 1}).error().call(), "DAPX_CM_MODIFY");
    module.fail_next(DAPX_CM_BIND, EADDRINUSE);
    const auto in_use = id.bind(address);
    ASSERT_FALSE(in_use);
    EXPECT_EQ(in_use.error().message(),
              "cannot bind to 10.0.0.2:77: the port is in use; choose another");
}

TEST_F(ObjectTest, RequestIsAcknowledgedAndEmptyOnceAnswered)
{
    Evd evd = Evd::create(context).value();
    CmId listener = CmId::create(evd).value();
    // The stand-in makes no requests: an id plays one.
    CmId played = CmId::create(evd).value();
    module.unacked = 1;
    Event event;
    event.raw().type = DAPX_EVENT_CONNECT_REQUEST;
    event.raw().request.cm = played.handle();
    CmId request = CmId::request(listener, event).value();
    EXPECT_EQ(module.unacked, 0U);
    EXPECT_EQ(module.last<dapx_cm_ack>(DAPX_CM_ACK).cm, listener.handle());
    ASSERT_TRUE(request.take(evd, 8));
    const auto take = module.last<dapx_cm_take>(DAPX_CM_TAKE);
    EXPECT_EQ(take.cm, request.handle());
    EXPECT_EQ(take.evd, evd.handle());
    EXPECT_EQ(take.user_data, 8U);
    module.fail_next(DAPX_CM_TAKE, EBADFD);
    EXPECT_EQ(request.take(evd).error().call(), "DAPX_CM_TAKE");
    EXPECT_TRUE(request);
    const std::string reason = "no";
    module.fail_next(DAPX_CM_REJECT, EINVAL);
    EXPECT_FALSE(request.reject(std::as_bytes(std::span(reason))));
    EXPECT_TRUE(request);
    EXPECT_TRUE(request.reject(std::as_bytes(std::span(reason))));
    EXPECT_FALSE(request);
    EXPECT_EQ(module.last<dapx_cm_reject>(DAPX_CM_REJECT).private_data_len, 2U);
    const std::vector<std::byte> long_data(DAPX_PRIVATE_DATA_MAX + 1);
    EXPECT_EQ(played.reject(long_data).error().code(), EINVAL);
}

} // namespace
} // namespace dapx::test
