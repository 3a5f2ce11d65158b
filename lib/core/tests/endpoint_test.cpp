// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Posting: what gets into the rings, and when a doorbell is rung.
#include "fake_module.hpp"

#include <dapx/dapx.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cerrno>

namespace dapx::test {
namespace {

struct EndpointTest : ::testing::Test {
    FakeModule module;
    Context context = Context::open("rxe0", module.node()).value();
    Pd pd = Pd::create(context).value();
    Evd evd = Evd::create(context).value();
    Endpoint endpoint = Endpoint::create(pd, evd,
                                         {.send_depth = 4,
                                          .recv_depth = 4,
                                          .max_send_sge = 3,
                                          .max_recv_sge = 2,
                                          .max_inline = 64})
                            .value();
    std::uint32_t taken = 0xffffffff;

    EndpointTest() { module.set_state(endpoint.handle(), DAPX_EP_CONNECTED); }

    const FakeModule::Ring& ring() { return module.send_ring(endpoint.handle()); }

    /// The module takes the oldest request.
    dapx_send_wr take()
    {
        dapx_send_wr wr{};
        std::memcpy(&wr, ring().entry(taken), sizeof(wr));
        ++taken;
        __atomic_store_n(ring().head(), taken, __ATOMIC_RELEASE);
        return wr;
    }

    dapx_sge sge_of_last(std::size_t index)
    {
        dapx_sge sge{};
        std::memcpy(&sge, ring().entry(taken - 1) + sizeof(dapx_send_wr) + index * sizeof(sge),
                    sizeof(sge));
        return sge;
    }
};

TEST_F(EndpointTest, CreatePassesSizesOn)
{
    const auto argument = module.last<dapx_ep_create>(DAPX_EP_CREATE);
    EXPECT_EQ(argument.pd, pd.handle());
    EXPECT_EQ(argument.request_evd, evd.handle());
    EXPECT_EQ(argument.recv_evd, evd.handle());
    EXPECT_EQ(argument.connect_evd, evd.handle());
    EXPECT_EQ(argument.attr.max_send_sge, 3);
    EXPECT_EQ(endpoint.qp_num(), 17U);
    EXPECT_EQ(endpoint.send_depth(), 4U);
    EXPECT_EQ(endpoint.recv_depth(), 4U);
}

TEST_F(EndpointTest, Send)
{
    const std::array<Segment, 2> segments = {Segment{1, 10, 0x1000}, Segment{2, 20, 0x2000}};
    ASSERT_EQ(endpoint.post_send(77, segments, SendFlags::signalled | SendFlags::solicited),
              PostResult::ok);
    const dapx_send_wr wr = take();
    EXPECT_EQ(wr.wr_id, 77U);
    EXPECT_EQ(wr.opcode, DAPX_OP_SEND);
    EXPECT_EQ(wr.num_sge, 2);
    EXPECT_EQ(wr.flags, DAPX_SEND_SIGNALED | DAPX_SEND_SOLICITED);
    EXPECT_EQ(wr.inline_len, 0U);
    EXPECT_EQ(wr.remote_srqn, 0U);
    EXPECT_EQ(sge_of_last(0).mr, 1U);
    EXPECT_EQ(sge_of_last(1).addr, 0x2000U);
    EXPECT_EQ(sge_of_last(1).length, 20U);
}

TEST_F(EndpointTest, EmptyMessage)
{
    ASSERT_EQ(endpoint.post_send(1, std::span<const Segment>()), PostResult::ok);
    EXPECT_EQ(take().num_sge, 0);
}

TEST_F(EndpointTest, Inline)
{
    std::array<std::byte, 64> data;
    data.fill(std::byte{0x5a});
    ASSERT_EQ(endpoint.post_send_inline(1, data), PostResult::ok);
    data.fill(std::byte{0}); // free again at once
    const dapx_send_wr wr = take();
    EXPECT_EQ(wr.flags, DAPX_SEND_SIGNALED | DAPX_SEND_INLINE);
    EXPECT_EQ(wr.inline_len, 64U);
    EXPECT_EQ(wr.num_sge, 0);
    EXPECT_EQ(ring().entry(taken - 1)[sizeof(wr) + 63], std::byte{0x5a});
    ASSERT_EQ(endpoint.post_write_inline(2, data, {.addr = 9, .rkey = 8}, SendFlags::none),
              PostResult::ok);
    const dapx_send_wr write = take();
    EXPECT_EQ(write.opcode, DAPX_OP_RDMA_WRITE);
    EXPECT_EQ(write.flags, DAPX_SEND_INLINE);
    EXPECT_EQ(write.remote_addr, 9U);
}

TEST_F(EndpointTest, OtherOperations)
{
    const Segment segment{1, 8, 0x1000};
    const RemoteAddress remote{.addr = 0xabc0, .rkey = 0x55};
    ASSERT_EQ(endpoint.post_send_imm(1, std::span(&segment, 1), 0x01020304), PostResult::ok);
    dapx_send_wr wr = take();
    EXPECT_EQ(wr.opcode, DAPX_OP_SEND_IMM);
    EXPECT_EQ(wr.imm_data, 0x01020304U);
    EXPECT_EQ(wr.__reserved, 0U);

    ASSERT_EQ(endpoint.post_write(2, segment, remote, SendFlags::fence), PostResult::ok);
    wr = take();
    EXPECT_EQ(wr.opcode, DAPX_OP_RDMA_WRITE);
    EXPECT_EQ(wr.remote_addr, 0xabc0U);
    EXPECT_EQ(wr.rkey, 0x55U);
    EXPECT_EQ(wr.flags, DAPX_SEND_FENCE);

    ASSERT_EQ(endpoint.post_write_imm(3, std::span(&segment, 1), remote, 7), PostResult::ok);
    wr = take();
    EXPECT_EQ(wr.opcode, DAPX_OP_RDMA_WRITE_IMM);
    EXPECT_EQ(wr.imm_data, 7U);

    ASSERT_EQ(endpoint.post_read(4, segment, remote), PostResult::ok);
    EXPECT_EQ(take().opcode, DAPX_OP_RDMA_READ);

    ASSERT_EQ(endpoint.post_compare_swap(5, segment, remote, 11, 12), PostResult::ok);
    wr = take();
    EXPECT_EQ(wr.opcode, DAPX_OP_COMPARE_SWAP);
    EXPECT_EQ(wr.compare_add, 11U);
    EXPECT_EQ(wr.swap, 12U);

    ASSERT_EQ(endpoint.post_fetch_add(6, segment, remote, 13), PostResult::ok);
    wr = take();
    EXPECT_EQ(wr.opcode, DAPX_OP_FETCH_ADD);
    EXPECT_EQ(wr.compare_add, 13U);
    EXPECT_EQ(wr.swap, 0U);
}

TEST_F(EndpointTest, Receive)
{
    const std::array<Segment, 2> segments = {Segment{1, 10, 0x1000}, Segment{2, 20, 0x2000}};
    module.set_state(endpoint.handle(), DAPX_EP_UNCONNECTED);
    ASSERT_EQ(endpoint.post_recv(5, segments), PostResult::ok);
    const FakeModule::Ring& recv = module.recv_ring(endpoint.handle());
    EXPECT_EQ(*recv.tail(), 1U);
    dapx_recv_wr wr{};
    std::memcpy(&wr, recv.entry(0), sizeof(wr));
    EXPECT_EQ(wr.wr_id, 5U);
    EXPECT_EQ(wr.num_sge, 2U);
    EXPECT_EQ(wr.flags, 0U);
    EXPECT_EQ(module.last<dapx_doorbell>(DAPX_DOORBELL).flags, std::uint32_t{DAPX_DOORBELL_RECV});
    const std::array<Segment, 3> too_many{};
    EXPECT_EQ(endpoint.post_recv(6, too_many), PostResult::bad_request);
    EXPECT_EQ(endpoint.recvs_posted(), 1U);

    ASSERT_EQ(endpoint.post_recv(7, segments, Doorbell::now, RecvFlags::quiet), PostResult::ok);
    std::memcpy(&wr, recv.entry(1), sizeof(wr));
    EXPECT_EQ(wr.flags, std::uint32_t{DAPX_RECV_QUIET});
}

TEST_F(EndpointTest, NoReceiveRing)
{
    Endpoint other =
        Endpoint::create(pd, {.request = evd, .recv = nullptr, .connect = evd}, {.recv_depth = 0})
            .value();
    EXPECT_EQ(other.recv_depth(), 0U);
    EXPECT_EQ(other.post_recv(1, std::span<const Segment>()), PostResult::bad_request);
    EXPECT_TRUE(other.reset());
}

TEST_F(EndpointTest, EventsGoWhereTheyAreSent)
{
    EXPECT_EQ(module.last<dapx_ep_create>(DAPX_EP_CREATE).async_evd, 0U);
    const Evd async = Evd::create(context).value();
    (void)Endpoint::create(pd, {.request = evd, .recv = &evd, .connect = nullptr, .async = async},
                           {})
        .value();
    const auto argument = module.last<dapx_ep_create>(DAPX_EP_CREATE);
    EXPECT_EQ(argument.connect_evd, 0U);
    EXPECT_EQ(argument.async_evd, async.handle());
    EXPECT_EQ(argument.request_evd, evd.handle());
}

TEST_F(EndpointTest, TooMuchIsRefusedBeforeTheRing)
{
    const std::array<Segment, 4> segments{};
    EXPECT_EQ(endpoint.post_send(1, segments), PostResult::bad_request);
    const std::array<std::byte, 65> data{};
    EXPECT_EQ(endpoint.post_send_inline(1, data), PostResult::bad_request);
    EXPECT_EQ(endpoint.sends_posted(), 0U);
    EXPECT_EQ(*ring().tail(), 0xffffffffU);
}

TEST_F(EndpointTest, StateDecides)
{
    const Segment segment{1, 8, 0x1000};
    for (std::uint32_t state = DAPX_EP_UNCONNECTED; state <= DAPX_EP_DISCONNECTED; ++state) {
        module.set_state(endpoint.handle(), static_cast<dapx_ep_state>(state));
        EXPECT_EQ(endpoint.state(), EpState{state});
        const bool allowed = state == DAPX_EP_CONNECTED || state == DAPX_EP_DISCONNECTED;
        EXPECT_EQ(endpoint.post_send(1, segment), allowed ? PostResult::ok : PostResult::bad_state)
            << describe(EpState{state});
    }
    EXPECT_EQ(endpoint.sends_posted(), 2U);
}

TEST_F(EndpointTest, FullRing)
{
    const Segment segment{1, 8, 0x1000};
    for (std::uint64_t i = 0; i < 4; ++i)
        ASSERT_EQ(endpoint.post_send(i, segment), PostResult::ok);
    EXPECT_EQ(endpoint.post_send(4, segment), PostResult::full);
    EXPECT_EQ(take().wr_id, 0U);
    EXPECT_EQ(endpoint.post_send(4, segment), PostResult::ok);
    EXPECT_EQ(endpoint.post_send(5, segment), PostResult::full);
}

TEST_F(EndpointTest, FullDeadRingTellsWhatTheModuleSays)
{
    const Segment segment{1, 8, 0x1000};
    for (std::uint64_t i = 0; i < 4; ++i)
        ASSERT_EQ(endpoint.post_send(i, segment), PostResult::ok);
    *ring().flags() = DAPX_RING_DEAD;
    module.fail_next(DAPX_DOORBELL, EIO);
    EXPECT_EQ(endpoint.post_send(4, segment), PostResult::device_removed);
    module.fail_next(DAPX_DOORBELL, EBADMSG);
    EXPECT_EQ(endpoint.post_send(4, segment), PostResult::broken_ring);
}

TEST_F(EndpointTest, DoorbellErrorsComeBack)
{
    const Segment segment{1, 8, 0x1000};
    module.fail_next(DAPX_DOORBELL, EIO);
    EXPECT_EQ(endpoint.post_send(1, segment), PostResult::device_removed);
    module.fail_next(DAPX_DOORBELL, EINTR);
    EXPECT_EQ(endpoint.post_send(2, segment), PostResult::ok);
    EXPECT_EQ(module.count(DAPX_DOORBELL), 3U);
}

TEST_F(EndpointTest, ABatchCostsOneDoorbell)
{
    const Segment segment{1, 8, 0x1000};
    for (std::uint64_t i = 0; i < 3; ++i)
        ASSERT_EQ(endpoint.post_send(i, segment, SendFlags::none, Doorbell::later), PostResult::ok);
    EXPECT_EQ(module.count(DAPX_DOORBELL), 0U);
    EXPECT_EQ(*ring().tail(), 0xffffffffU);
    ASSERT_EQ(endpoint.submit(), PostResult::ok);
    EXPECT_EQ(module.count(DAPX_DOORBELL), 1U);
    EXPECT_EQ(*ring().tail(), 2U);
    ASSERT_EQ(endpoint.submit(), PostResult::ok);
    EXPECT_EQ(module.count(DAPX_DOORBELL), 1U);
    EXPECT_EQ(endpoint.sends_posted(), 3U);
    EXPECT_EQ(endpoint.send_doorbells(), 1U);
}

TEST_F(EndpointTest, BusyModuleNeedsNoDoorbell)
{
    const Segment segment{1, 8, 0x1000};
    *ring().flags() = DAPX_RING_BUSY;
    ASSERT_EQ(endpoint.post_send(1, segment), PostResult::ok);
    EXPECT_EQ(module.count(DAPX_DOORBELL), 0U);
    EXPECT_EQ(*ring().tail(), 0U);
}

TEST_F(EndpointTest, ResetFollowsTheModule)
{
    const Segment segment{1, 8, 0x1000};
    ASSERT_EQ(endpoint.post_send(1, segment), PostResult::ok);
    ASSERT_EQ(endpoint.post_send(2, segment, SendFlags::none, Doorbell::later), PostResult::ok);
    ASSERT_EQ(endpoint.post_recv(1, segment), PostResult::ok);
    ASSERT_TRUE(endpoint.reset());
    EXPECT_EQ(endpoint.qp_num(), 18U);
    taken = 0;
    for (std::uint64_t i = 10; i < 14; ++i)
        ASSERT_EQ(endpoint.post_send(i, segment), PostResult::ok);
    EXPECT_EQ(endpoint.post_send(14, segment), PostResult::full);
    EXPECT_EQ(take().wr_id, 10U);
}

TEST_F(EndpointTest, OtherSizes)
{
    const Segment segment{1, 8, 0x1000};
    ASSERT_EQ(endpoint.post_send(1, segment), PostResult::ok);
    const std::uint64_t posted = endpoint.sends_posted();
    const std::uint64_t doorbells = endpoint.send_doorbells();
    ASSERT_TRUE(endpoint.resize({.send_depth = 9, .recv_depth = 0, .max_inline = 0}));
    EXPECT_EQ(endpoint.qp_num(), 19U);
    EXPECT_EQ(endpoint.send_depth(), 16U);
    EXPECT_EQ(endpoint.recv_depth(), 0U);
    EXPECT_EQ(endpoint.post_recv(1, segment), PostResult::bad_request);
    module.set_state(endpoint.handle(), DAPX_EP_CONNECTED);
    for (std::uint64_t i = 0; i < 16; ++i)
        ASSERT_EQ(endpoint.post_send(i, segment), PostResult::ok);
    EXPECT_EQ(endpoint.post_send(16, segment), PostResult::full);
    EXPECT_EQ(endpoint.sends_posted(), posted + 16) << "since the endpoint was made";
    EXPECT_EQ(endpoint.send_doorbells(), doorbells + 16);
    EXPECT_EQ(endpoint.post_send_inline(17, std::as_bytes(std::span(&segment, 1))),
              PostResult::bad_request);
}

TEST_F(EndpointTest, OtherSizesWithAnSrq)
{
    Srq srq = Srq::create(pd, {.depth = 2, .max_sge = 1}).value();
    ASSERT_TRUE(endpoint.resize({}, &srq));
    const auto argument = module.last<dapx_ep_resize>(DAPX_EP_RESIZE);
    EXPECT_EQ(argument.ep, endpoint.handle());
    EXPECT_EQ(argument.srq, srq.handle());
    EXPECT_EQ(argument.attr.recv_depth, 0U);
    EXPECT_EQ(argument.attr.max_recv_sge, 0U);
    EXPECT_EQ(endpoint.recv_depth(), 0U);
}

TEST_F(EndpointTest, NewRingsThatCannotBeMapped)
{
    const Segment segment{1, 8, 0x1000};
    module.fail_mmap(0, ENOMEM);
    EXPECT_EQ(endpoint.resize({.send_depth = 32}).error().code(), ENOMEM);
    EXPECT_EQ(module.count(DAPX_EP_RESIZE), 0U);
    EXPECT_EQ(endpoint.post_send(1, segment), PostResult::ok);
    module.fail_mmap(1, ENOMEM);
    EXPECT_EQ(endpoint.resize({.send_depth = 32}).error().code(), ENOMEM);
    EXPECT_EQ(endpoint.send_depth(), 0U);
    EXPECT_EQ(endpoint.post_send(2, segment), PostResult::bad_request);
    EXPECT_EQ(endpoint.post_recv(2, segment), PostResult::bad_request);
    ASSERT_TRUE(endpoint.resize({.send_depth = 8}));
    module.set_state(endpoint.handle(), DAPX_EP_CONNECTED);
    EXPECT_EQ(endpoint.post_send(3, segment), PostResult::ok);
}

TEST_F(EndpointTest, SharedReceivesInAnotherRing)
{
    Srq srq = Srq::create(pd, {.depth = 2, .max_sge = 1}).value();
    const Segment segment{1, 8, 0x1000};
    ASSERT_EQ(srq.post_recv(1, segment), PostResult::ok);
    ASSERT_EQ(srq.post_recv(2, segment), PostResult::ok);
    const auto refused = srq.resize(1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), EBUSY);
    EXPECT_EQ(refused.error().message(),
              "cannot resize the shared receive queue: more waits in its ring than the new one "
              "holds; take it out first, or ask for more");
    ASSERT_TRUE(srq.resize(3));
    EXPECT_EQ(srq.depth(), 4U);
    ASSERT_EQ(srq.post_recv(3, segment), PostResult::ok);
    ASSERT_EQ(srq.post_recv(4, segment), PostResult::ok);
    EXPECT_EQ(srq.post_recv(5, segment), PostResult::full);
    EXPECT_EQ(srq.doorbells(), 4U);
    const auto& ring = module.recv_ring(srq.handle());
    for (std::uint32_t i = 0; i < 4; ++i) {
        dapx_recv_wr wr;
        std::memcpy(&wr, ring.entry(*ring.head() + i), sizeof(wr));
        EXPECT_EQ(wr.wr_id, i + 1U);
    }
}

TEST_F(EndpointTest, SharedReceivesWhoseNewRingCannotBeMapped)
{
    Srq srq = Srq::create(pd, {.depth = 2, .max_sge = 1}).value();
    const Segment segment{1, 8, 0x1000};
    module.fail_mmap(0, ENOMEM);
    EXPECT_EQ(srq.resize(8).error().code(), ENOMEM);
    EXPECT_EQ(module.count(DAPX_SRQ_RESIZE), 0U);
    EXPECT_EQ(srq.post_recv(1, segment), PostResult::ok);
    module.fail_mmap(1, ENOMEM);
    EXPECT_EQ(srq.resize(8).error().code(), ENOMEM);
    EXPECT_EQ(srq.depth(), 0U);
    EXPECT_EQ(srq.post_recv(2, segment), PostResult::bad_request);
    ASSERT_TRUE(srq.resize(8));
    EXPECT_EQ(srq.post_recv(3, segment), PostResult::ok);
}

TEST_F(EndpointTest, SharedReceives)
{
    Srq srq = Srq::create(pd, {.depth = 2, .max_sge = 1}).value();
    Endpoint other =
        Endpoint::create(pd, {.request = evd, .recv = &evd, .connect = evd}, {}, &srq).value();
    const auto argument = module.last<dapx_ep_create>(DAPX_EP_CREATE);
    EXPECT_EQ(argument.srq, srq.handle());
    EXPECT_EQ(argument.attr.recv_depth, 0U);
    const Segment segment{1, 8, 0x1000};
    EXPECT_EQ(other.post_recv(1, segment), PostResult::bad_request);
    ASSERT_EQ(srq.post_recv(1, std::span(&segment, 1)), PostResult::ok);
    const auto doorbell = module.last<dapx_doorbell>(DAPX_DOORBELL);
    EXPECT_EQ(doorbell.handle, srq.handle());
    EXPECT_EQ(doorbell.flags, std::uint32_t{DAPX_DOORBELL_RECV});
    ASSERT_EQ(srq.post_recv(2, std::span(&segment, 1)), PostResult::ok);
    EXPECT_EQ(srq.post_recv(3, std::span(&segment, 1)), PostResult::full);
}

TEST_F(EndpointTest, ConnectAndAccept)
{
    const Address peer = Address::parse("10.0.0.2", 5).value();
    const std::string data = "hello";
    ASSERT_TRUE(endpoint.connect(peer, {.private_data = std::as_bytes(std::span(data))}));
    const auto connect = module.last<dapx_ep_connect>(DAPX_EP_CONNECT);
    EXPECT_EQ(connect.ep, endpoint.handle());
    EXPECT_EQ(connect.cm, 0U);
    EXPECT_EQ(connect.private_data_len, 5);
    EXPECT_EQ(connect.retry_count, 7);
    EXPECT_EQ(connect.deadline, DAPX_NO_DEADLINE);
    EXPECT_EQ(std::memcmp(&connect.dst, &peer.storage(), sizeof(connect.dst)), 0);

    CmId request = CmId::create(evd).value();
    const std::uint32_t handle = request.handle();
    module.fail_next(DAPX_EP_ACCEPT, EBADFD);
    EXPECT_EQ(endpoint.accept(std::move(request)).error().code(), EBADFD);
    EXPECT_TRUE(request); // NOLINT(bugprone-use-after-move): unchanged, says the contract
    ASSERT_TRUE(endpoint.accept(std::move(request)));
    EXPECT_FALSE(request); // NOLINT(bugprone-use-after-move): taken, says the contract
    EXPECT_EQ(module.last<dapx_ep_accept>(DAPX_EP_ACCEPT).cm, handle);
}

TEST_F(EndpointTest, BySteps)
{
    CmId id = CmId::create(evd).value();
    const auto info = id.query();
    ASSERT_TRUE(info);
    EXPECT_EQ(info->steps.last, QpState::ready_to_send);
    EXPECT_EQ(info->steps.port, 1U);
    EXPECT_EQ(info->steps.ready_to_receive.dest_qp_num, 20U);
    EXPECT_EQ(info->steps.ready_to_send.sq_psn, 21U);
    ASSERT_TRUE(endpoint.connect(id, {.by_steps = true}));
    EXPECT_EQ(module.last<dapx_ep_connect>(DAPX_EP_CONNECT).flags,
              std::uint32_t{DAPX_CONNECT_STEPS});
    ASSERT_TRUE(endpoint.connect(id));
    EXPECT_EQ(module.last<dapx_ep_connect>(DAPX_EP_CONNECT).flags, 0U);
    ASSERT_TRUE(endpoint.establish());
    EXPECT_EQ(module.last<dapx_ep_establish>(DAPX_EP_ESTABLISH).ep, endpoint.handle());
    module.fail_next(DAPX_EP_ESTABLISH, EBADFD);
    EXPECT_EQ(endpoint.establish().error().code(), EBADFD);
    ASSERT_TRUE(endpoint.accept(std::move(id), {.by_steps = true}));
    EXPECT_EQ(module.last<dapx_ep_accept>(DAPX_EP_ACCEPT).flags, std::uint32_t{DAPX_CONNECT_STEPS});
}

TEST_F(EndpointTest, DisconnectAndModify)
{
    ASSERT_TRUE(endpoint.disconnect());
    EXPECT_EQ(module.last<dapx_ep_disconnect>(DAPX_EP_DISCONNECT).flags, 0U);
    ASSERT_TRUE(endpoint.disconnect_now());
    EXPECT_EQ(module.last<dapx_ep_disconnect>(DAPX_EP_DISCONNECT).flags,
              std::uint32_t{DAPX_DISCONNECT_ABRUPT});
    ASSERT_TRUE(endpoint.modify({.pd = &pd, .user_data = 9}));
    const auto modify = module.last<dapx_ep_modify>(DAPX_EP_MODIFY);
    EXPECT_EQ(modify.mask,
              std::uint32_t{DAPX_EP_MODIFY_PD} | std::uint32_t{DAPX_EP_MODIFY_USER_DATA});
    EXPECT_EQ(modify.user_data, 9U);
    ASSERT_TRUE(endpoint.qp_init(1));
    EXPECT_EQ(module.last<dapx_ep_modify>(DAPX_EP_MODIFY).qp.state, std::uint32_t{DAPX_QP_INIT});
}

} // namespace
} // namespace dapx::test
