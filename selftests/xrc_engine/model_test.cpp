// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Everything that can happen to a few messages, in every order: the engine itself is taken through
// all states that a world can reach. The world notes what must not happen in any of them; here it
// is seen that all come to their end.
#include "segment.hpp"
#include "world.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <unordered_map>

namespace dapx::xrc::test {
namespace {

constexpr std::uint32_t payload = DAPX_XRC_PAYLOAD;
constexpr std::size_t too_many = 5'000'000;

/// What happened somewhere.
struct Seen {
    bool shared = false;           // several requests in a segment
    bool not_ready_inside = false; // a segment of which something was done
    bool last_credit = false;      // went into a segment of several requests, more waiting
    bool dropping_several = false; // a segment of several requests was dropped
};

struct Setup {
    Options options;
    std::vector<Wanted> messages;
    // Of each queue: to be posted at any time.
    std::vector<std::size_t> receives;
    // What may happen once, at any time, but need not.
    bool queue_goes = false;
    bool connection_goes = false;
    // How the first message that fails may end.
    std::vector<dapx_status> failures = {};
    // Submitted together: so many at a time, else one by one.
    std::size_t batch = 1;
};

struct State {
    explicit State(const Options& options) : world(options) {}

    World world;
    std::size_t submitted = 0;
    std::vector<std::size_t> to_post;
    bool queue_may_go = false;
    bool connection_may_go = false;
    bool ended = false;

    [[nodiscard]] std::uint64_t fingerprint() const
    {
        std::uint64_t value = world.fingerprint();
        const auto add = [&](std::uint64_t more) {
            value = (value ^ more) * 0x9e3779b97f4a7c15U;
            value ^= value >> 29;
        };
        for (const std::size_t receives : to_post)
            add(receives);
        add(submitted);
        add((queue_may_go ? 1U : 0U) | (connection_may_go ? 2U : 0U) | (ended ? 4U : 0U));
        return value;
    }
};

class Search {
public:
    explicit Search(Setup setup) : setup_(std::move(setup)) {}

    [[nodiscard]] const Seen& seen() const { return seen_; }

    /// All states. @return what is wrong, and how it came about; empty: nothing.
    std::string run()
    {
        auto first = std::make_unique<State>(setup_.options);
        first->to_post = setup_.receives;
        for (std::size_t i = 0; i < setup_.receives.size(); ++i)
            first->world.add_queue();
        first->queue_may_go = setup_.queue_goes;
        first->connection_may_go = setup_.connection_goes;
        visit(std::move(first));
        while (!path_.empty() && wrong_.empty())
            step();
        if (wrong_.empty())
            look_for_the_end();
        std::printf("[ MODEL    ] %zu states, %zu steps%s%s\n", ends_.size(), steps_.size(),
                    wrong_.empty() ? "" : ", ", wrong_.c_str());
        return wrong_;
    }

private:
    struct Point {
        std::unique_ptr<State> state;
        std::uint32_t id = 0;
        std::size_t action = 0;
        bool moved = false;
    };

    struct Action {
        const char* name;
        // Whether it must happen sooner or later, if it can.
        bool must;
        std::function<bool(State&)> does;
    };

    /// Each returns false when it cannot be; then nothing has changed.
    std::vector<Action> actions() const
    {
        std::vector<Action> all = {
            {"request arrives", true, [](State& s) { return s.world.deliver_request(); }},
            {"answer arrives", true, [](State& s) { return s.world.deliver_answer(); }},
            {"send completes", true, [](State& s) { return s.world.complete_send(); }},
            {"buffer comes back", true, [](State& s) { return s.world.recycle(); }},
            // It suits nobody, perhaps.
            {"deferred answer", false, [](State& s) { return s.world.tell(); }},
            {"timer", true, [](State& s) { return s.world.fire(); }},
            {"submit", true,
             [this](State& s) {
                 if (s.submitted == setup_.messages.size())
                     return false;
                 for (std::size_t i = 0; i < setup_.batch; ++i) {
                     if (s.submitted < setup_.messages.size())
                         s.world.enqueue(setup_.messages[s.submitted++]);
                 }
                 s.world.transmit();
                 return true;
             }},
            {"queue goes", false,
             [](State& s) {
                 if (!s.queue_may_go)
                     return false;
                 s.queue_may_go = false;
                 s.world.kill(0);
                 return true;
             }},
            {"connection goes", false,
             [](State& s) {
                 if (!s.connection_may_go)
                     return false;
                 s.connection_may_go = false;
                 s.world.break_requester();
                 return true;
             }},
            {"responder ends", true,
             [](State& s) {
                 if (s.ended || !s.world.requester.failed)
                     return false;
                 s.ended = true;
                 s.world.break_responder();
                 return true;
             }},
        };
        for (std::size_t i = 0; i < setup_.receives.size(); ++i)
            all.push_back({"receive", true, [i](State& s) {
                               if (s.to_post[i] == 0)
                                   return false;
                               --s.to_post[i];
                               s.world.post(i);
                               return true;
                           }});
        return all;
    }

    void visit(std::unique_ptr<State> state)
    {
        look_at(state->world);
        const auto [found, is_new] =
            known_.try_emplace(state->fingerprint(), static_cast<std::uint32_t>(ends_.size()));
        if (!path_.empty() && actions_[path_.back().action - 1].must)
            steps_.emplace_back(path_.back().id, found->second);
        if (!is_new)
            return;
        ends_.push_back(false);
        path_.push_back({std::move(state), found->second});
        const World& world = path_.back().state->world;
        if (!world.violations().empty())
            fail(world.violations().front());
        if (ends_.size() > too_many)
            fail("too many states");
    }

    void look_at(const World& world)
    {
        const World* before = path_.empty() ? nullptr : &path_.back().state->world;
        seen_.not_ready_inside |= world.not_ready_inside > 0;
        if (!before)
            return;
        const bool shares = world.shared > before->shared;
        seen_.shared |= shares;
        seen_.last_credit |= shares && world.requester.sent == world.requester.limit &&
                             before->requester.limit - before->requester.sent <= 1 &&
                             world.requester.next != nullptr;
        seen_.dropping_several |= before->responder.dropping && world.responder.dropping &&
                                  world.to_responder.size() < before->to_responder.size() &&
                                  requests_of(before->to_responder.front()) > 1;
    }

    static std::size_t requests_of(const Segment& segment)
    {
        std::size_t requests = 0;
        (void)each_request(segment.bytes->data(), segment.bytes->size(),
                           [&](const dapx_xrc_request&, const std::byte*) { ++requests; });
        return requests;
    }

    void step()
    {
        Point& point = path_.back();
        // Actions that cannot be leave the copy as it is, for the next.
        std::unique_ptr<State> next;
        while (point.action < actions_.size()) {
            const Action& action = actions_[point.action++];
            if (!next)
                next = std::make_unique<State>(*point.state);
            if (!action.does(*next))
                continue;
            point.moved = point.moved || action.must;
            next->world.timers.clear();
            visit(std::move(next));
            return;
        }
        if (!point.moved)
            end(*point.state);
        if (wrong_.empty())
            path_.pop_back();
    }

    /// Nothing more can happen.
    void end(const State& state)
    {
        const World& world = state.world;
        if (state.submitted != setup_.messages.size() || !world.all_done()) {
            fail("waits for ever");
            return;
        }
        ends_[path_.back().id] = true;
        std::size_t i = 0;
        while (i < world.messages() && world.status(i) == DAPX_STATUS_SUCCESS)
            ++i;
        if (i == world.messages())
            return;
        if (std::ranges::find(setup_.failures, *world.status(i)) == setup_.failures.end())
            fail("fails as it must not");
        while (++i < world.messages()) {
            if (world.status(i) != DAPX_STATUS_FLUSHED)
                fail("goes on behind a failure");
        }
    }

    /// From every state: else there is a circle without a way out.
    void look_for_the_end()
    {
        std::vector<std::vector<std::uint32_t>> before(ends_.size());
        for (const auto& [from, to] : steps_)
            before[to].push_back(from);
        std::vector<std::uint32_t> reached;
        for (std::uint32_t i = 0; i < ends_.size(); ++i) {
            if (ends_[i])
                reached.push_back(i);
        }
        while (!reached.empty()) {
            const std::uint32_t id = reached.back();
            reached.pop_back();
            for (const std::uint32_t earlier : before[id]) {
                if (!ends_[earlier]) {
                    ends_[earlier] = true;
                    reached.push_back(earlier);
                }
            }
        }
        const auto lost = std::ranges::count(ends_, false);
        if (lost != 0)
            wrong_ = std::to_string(lost) + " states have no way to the end";
    }

    void fail(const std::string& what)
    {
        if (!wrong_.empty())
            return;
        wrong_ = what + ":";
        for (const Point& point : path_) {
            if (point.action != 0 && &point != &path_.back())
                wrong_ += std::string(" ") + actions_[point.action - 1].name + ";";
        }
    }

    Setup setup_;
    std::vector<Action> actions_ = actions();
    std::vector<Point> path_;
    std::unordered_map<std::uint64_t, std::uint32_t> known_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> steps_;
    std::vector<bool> ends_; // of each state: nothing more can happen, all is done
    std::string wrong_;
    Seen seen_;
};

std::string search(Setup setup, Seen* seen = nullptr)
{
    Search all(std::move(setup));
    std::string wrong = all.run();
    if (seen)
        *seen = all.seen();
    return wrong;
}

/// One alone shares a segment, if it can. So does the last of several requests.
Wanted send(std::size_t queue, std::uint32_t requests = 1)
{
    return {.queue = queue, .total = (requests - 1) * payload + 1};
}

/// Shares none.
Wanted full(std::size_t queue)
{
    return {.queue = queue, .total = payload};
}

/// Steps of their own for all, and few of everything.
Options few(std::uint32_t buffers, std::uint32_t room = 2)
{
    return {.buffers = buffers, .room = room, .own_steps = true};
}

TEST(XrcModel, ReceivesComeLate)
{
    for (std::uint32_t buffers = 2; buffers <= 3; ++buffers)
        EXPECT_EQ(search({.options = few(buffers),
                          .messages = {send(0), send(1, 2), send(0)},
                          .receives = {2, 1}}),
                  "");
}

TEST(XrcModel, SegmentsOfTheirOwn)
{
    for (std::uint32_t buffers = 2; buffers <= 3; ++buffers) {
        Seen seen;
        EXPECT_EQ(search({.options = few(buffers),
                          .messages = {full(0), full(1), full(0), full(1)},
                          .receives = {2, 2}},
                         &seen),
                  "");
        EXPECT_FALSE(seen.shared);
    }
}

TEST(XrcModel, SegmentsAreShared)
{
    // Credits come one by one; each of the messages may find no receive.
    Seen seen;
    EXPECT_EQ(search({.options = few(2, 2),
                      .messages = {send(0), send(1), send(0), full(1), send(0), send(1)},
                      .receives = {3, 3},
                      .batch = 3},
                     &seen),
              "");
    EXPECT_TRUE(seen.shared);
    EXPECT_TRUE(seen.not_ready_inside);
    EXPECT_TRUE(seen.last_credit);
    EXPECT_TRUE(seen.dropping_several);
}

TEST(XrcModel, SharedSegmentsInLittleRoom)
{
    for (const std::size_t batch : {1U, 4U}) {
        Seen seen;
        EXPECT_EQ(search({.options = few(2, 1),
                          .messages = {send(0), send(1), send(1, 2), send(0)},
                          .receives = {2, 2},
                          .batch = batch},
                         &seen),
                  "");
        EXPECT_TRUE(seen.shared);
        EXPECT_TRUE(seen.not_ready_inside);
    }
}

TEST(XrcModel, SharedSegmentsAndData)
{
    const Wanted add = {.opcode = DAPX_OP_FETCH_ADD, .compare_add = 1};
    const Wanted write = {.opcode = DAPX_OP_RDMA_WRITE_IMM, .queue = 1, .total = 3};
    Wanted fenced = send(0);
    fenced.fence = true;
    for (std::uint32_t buffers = 2; buffers <= 3; ++buffers) {
        Seen seen;
        EXPECT_EQ(search({.options = few(buffers),
                          .messages = {send(0), write, add, send(0), fenced, write},
                          .receives = {3, 2},
                          .batch = 6},
                         &seen),
                  "");
        EXPECT_TRUE(seen.shared);
        EXPECT_TRUE(seen.not_ready_inside);
    }
}

TEST(XrcModel, SharedSegmentsThatFail)
{
    Seen seen;
    EXPECT_EQ(
        search({.options = few(2),
                .messages = {send(1), send(0), send(1), send(0)},
                .receives = {2, 2},
                .queue_goes = true,
                .connection_goes = true,
                .failures = {DAPX_STATUS_REMOTE_QUEUE, DAPX_STATUS_TRANSPORT, DAPX_STATUS_FLUSHED},
                .batch = 4},
               &seen),
        "");
    EXPECT_TRUE(seen.shared);
    EXPECT_TRUE(seen.not_ready_inside);
    Options options = few(2);
    options.retry_limit = 1;
    EXPECT_EQ(search({.options = options,
                      .messages = {send(1), send(0), send(1), send(0)},
                      .receives = {2, 2},
                      .failures = {DAPX_STATUS_RECEIVER_NOT_READY},
                      .batch = 4},
                     &seen),
              "");
    EXPECT_TRUE(seen.not_ready_inside);
}

TEST(XrcModel, MoreBuffersThanMessages)
{
    EXPECT_EQ(search({.options = few(4, 3), .messages = {send(0), send(1)}, .receives = {1, 1}}),
              "");
}

TEST(XrcModel, LongMessagesInLittleRoom)
{
    EXPECT_EQ(search({.options = few(2, 1), .messages = {send(0, 3), send(0, 2)}, .receives = {2}}),
              "");
}

TEST(XrcModel, RoomIsLent)
{
    Options options = few(3, 1);
    for (options.spare = 1; options.spare <= 2; ++options.spare)
        EXPECT_EQ(search({.options = options,
                          .messages = {send(0, 2), send(1), full(0)},
                          .receives = {2, 1}}),
                  "");
}

TEST(XrcModel, NumbersWrapAround)
{
    Options options = few(2);
    options.start = 0U - 2;
    EXPECT_EQ(
        search(
            {.options = options, .messages = {send(0, 2), send(1), send(0)}, .receives = {2, 1}}),
        "");
}

TEST(XrcModel, DataBothWays)
{
    const Wanted read = {.opcode = DAPX_OP_RDMA_READ, .total = payload + 1};
    const Wanted write = {.opcode = DAPX_OP_RDMA_WRITE_IMM, .total = payload + 1};
    const Wanted add = {.opcode = DAPX_OP_FETCH_ADD, .compare_add = 1};
    Wanted fenced = send(0);
    fenced.fence = true;
    EXPECT_EQ(search({.options = few(2), .messages = {write, read, fenced}, .receives = {2}}), "");
    EXPECT_EQ(search({.options = few(2), .messages = {add, fenced, add}, .receives = {1}}), "");
    EXPECT_EQ(search({.options = few(3), .messages = {send(0), add, write}, .receives = {2}}), "");
}

TEST(XrcModel, TriesAreLimited)
{
    for (std::uint8_t limit = 0; limit <= 1; ++limit) {
        Options options = few(2);
        options.retry_limit = limit;
        EXPECT_EQ(search({.options = options,
                          .messages = {send(0), send(1, 2), send(0)},
                          .receives = {2, 1},
                          .failures = {DAPX_STATUS_RECEIVER_NOT_READY}}),
                  "");
    }
}

TEST(XrcModel, AQueueGoes)
{
    EXPECT_EQ(search({.options = few(2),
                      .messages = {send(0, 2), send(1), send(0)},
                      .receives = {2, 1},
                      .queue_goes = true,
                      .failures = {DAPX_STATUS_REMOTE_QUEUE}}),
              "");
}

TEST(XrcModel, TheConnectionGoes)
{
    EXPECT_EQ(search({.options = few(2),
                      .messages = {send(0, 2), send(1)},
                      .receives = {1, 1},
                      .connection_goes = true,
                      .failures = {DAPX_STATUS_TRANSPORT, DAPX_STATUS_FLUSHED}}),
              "");
}

TEST(XrcModel, NoticesAnOwnerThatKeepsCreditsToItself)
{
    Options options = few(2);
    options.tells_unasked = false;
    EXPECT_NE(search({.options = options, .messages = {send(0), send(0)}, .receives = {2}}), "");
}

TEST(XrcModel, NoticesAReceiveThatNeverComes)
{
    EXPECT_NE(search({.options = few(2), .messages = {send(0), send(0)}, .receives = {1}}), "");
}

} // namespace
} // namespace dapx::xrc::test
