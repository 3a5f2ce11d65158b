// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "world.hpp"

#include "segment.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include <endian.h>

namespace dapx::xrc {

namespace {

// A prime, so that no piece of data looks like another of the same message.
constexpr std::uint32_t period = 251;

// What was in a buffer before.
constexpr std::byte stale{0xa5};

/// Byte n of data with a seed is (seed + n) % period.
const std::byte* pattern(std::uint32_t seed, std::uint64_t offset)
{
    static const auto table = [] {
        std::array<std::byte, DAPX_XRC_SEGMENT_SIZE + period> bytes{};
        for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = static_cast<std::byte>(i % period);
        return bytes;
    }();
    return table.data() + (seed + offset) % period;
}

void* handle(std::size_t index)
{
    return reinterpret_cast<void*>(index + 1);
}
std::size_t index_of(const void* handle)
{
    return reinterpret_cast<std::uintptr_t>(handle) - 1;
}

bool is_before_or_at(std::uint32_t one, std::uint32_t other)
{
    return static_cast<std::int32_t>(other - one) >= 0;
}

bool takes_receive(std::uint8_t opcode)
{
    return opcode == DAPX_OP_SEND || opcode == DAPX_OP_SEND_IMM || opcode == DAPX_OP_RDMA_WRITE_IMM;
}

/// Nobody is asked about these.
bool leaves_no_trace(const dapx_xrc_message& message)
{
    return message.total == 0 &&
           (message.opcode == DAPX_OP_RDMA_WRITE || message.opcode == DAPX_OP_RDMA_READ);
}

/// The first words of an answer or a welcome; the third of both is the limit.
std::array<std::uint32_t, 3> words_of(const Bytes& bytes)
{
    std::array<std::uint32_t, 3> words{};
    std::memcpy(words.data(), bytes.data(), std::min(sizeof(words), bytes.size()));
    for (std::uint32_t& word : words)
        word = le32toh(word);
    return words;
}

/// One after the other, in no particular way but well mixed.
class Digest {
public:
    void add(std::uint64_t value)
    {
        value_ = (value_ ^ value) * 0x9e3779b97f4a7c15U;
        value_ ^= value_ >> 32;
    }
    void add(std::string_view bytes) { add(std::hash<std::string_view>{}(bytes)); }
    [[nodiscard]] std::uint64_t value() const { return value_; }

private:
    std::uint64_t value_ = 0x1234567;
};

} // namespace

/// What the engines call.
struct Operations {
    static World& of(dapx_xrc_requester* req)
    {
        return *static_cast<World::Requester*>(req)->world;
    }
    static World& of(dapx_xrc_responder* resp)
    {
        return *static_cast<World::Responder*>(resp)->world;
    }

    // ---------------------------------------------------------------- the requester's
    static void* buffer(dapx_xrc_requester* req)
    {
        World& world = of(req);
        world.expect(req->room > 0, "a buffer is asked for without room");
        world.expect(++world.buffers_out_ == 1, "two buffers at once");
        void* buffer = ::operator new(DAPX_XRC_SEGMENT_SIZE);
        std::memset(buffer, static_cast<int>(stale), DAPX_XRC_SEGMENT_SIZE);
        return buffer;
    }

    static void give_back(World& world, void* buffer)
    {
        --world.buffers_out_;
        ::operator delete(buffer);
    }

    /// A segment of requests that is being sent.
    static void look_at(World& world, const std::byte* bytes, std::size_t length)
    {
        const World::Requester& req = world.requester;
        std::uint32_t requests = 0;
        std::uint32_t last = 0;
        const char* wrong =
            each_request(bytes, length, [&](const dapx_xrc_request& header, const std::byte*) {
                ++requests;
                last = le32toh(header.seq);
            });
        world.expect(wrong == nullptr, wrong);
        world.expect(last + 1 == req.next_seq, "another request than the next");
        world.expect(length <= req.payload + sizeof(dapx_xrc_request), "more than the peer takes");
        world.shared += requests > 1 ? 1 : 0;
    }

    static void send(dapx_xrc_requester* req, void* buffer, u32 length)
    {
        World& world = of(req);
        world.expect(is_before_or_at(req->sent, req->limit) &&
                         is_before_or_at(req->limit, world.granted_),
                     "sent without a credit");
        world.expect(length <= DAPX_XRC_SEGMENT_SIZE, "a segment is too long");
        const auto* bytes = static_cast<const std::byte*>(buffer);
        if (req->payload != 0)
            look_at(world, bytes, length);
        world.put_request(Bytes(bytes, bytes + length));
        give_back(world, buffer);
        ++world.sending_;
    }

    static void discard(dapx_xrc_requester* req, void* buffer) { give_back(of(req), buffer); }

    static bool gather(dapx_xrc_requester* req, dapx_xrc_message* msg, u32 offset, void* to,
                       u32 length)
    {
        const auto& message = static_cast<const Message&>(*msg);
        of(req).expect(std::uint64_t{offset} + length <= message.total, "gathers too much");
        if (std::uint64_t{offset} + length > message.broken_at)
            return false;
        std::memcpy(to, pattern(message.seed, offset), length);
        return true;
    }

    static bool scatter(dapx_xrc_requester* req, dapx_xrc_message* msg, u32 offset,
                        const void* from, u32 length)
    {
        World& world = of(req);
        auto& message = static_cast<Message&>(*msg);
        world.expect(std::uint64_t{offset} + length <= message.total, "scatters too much");
        if (std::uint64_t{offset} + length > message.broken_at)
            return false;
        world.expect(offset == message.scattered, "scatters in another order");
        if (dapx_xrc_is_atomic(message.opcode)) {
            __le64 old = 0;
            std::memcpy(&old, from, sizeof(old));
            message.old = old;
        } else {
            world.expect(std::memcmp(from, pattern(message.seed, offset), length) == 0,
                         "what was read is wrong");
        }
        message.scattered = offset + length;
        return true;
    }

    static void done(dapx_xrc_requester* req, dapx_xrc_message* msg, dapx_status status)
    {
        World& world = of(req);
        auto& message = static_cast<Message&>(*msg);
        world.expect(!message.status, "done twice");
        const bool in_order =
            world.done_ < world.messages_.size() && &world.messages_[world.done_] == &message;
        world.expect(in_order, "done in another order");
        world.expect(req->failed == (status != DAPX_STATUS_SUCCESS), "one failed, the rest not");
        if (status == DAPX_STATUS_SUCCESS) {
            world.expect(message.landed || leaves_no_trace(message),
                         "done for its sender before it is for its receiver");
            world.expect(!dapx_xrc_returns_data(message.opcode) ||
                             message.scattered == message.total,
                         "read is less than asked for");
        }
        message.status = status;
        ++world.done_;
        if (world.submit_again > 0) {
            --world.submit_again;
            world.enqueue({.total = 1});
        }
    }

    static void wait(dapx_xrc_requester* req, u32 usecs)
    {
        of(req).timer = usecs;
        of(req).timers.push_back(usecs);
    }

    static void make_room(dapx_xrc_requester* req)
    {
        World& world = of(req);
        world.expect(req->room == 0 && !req->failed && req->next, "room for nothing");
        if (world.lent_ == world.options_.spare)
            return;
        ++world.lent_;
        ++req->room;
    }

    // ---------------------------------------------------------------- the responder's
    static void* find(dapx_xrc_responder* resp, u32 srqn)
    {
        World& world = of(resp);
        for (std::size_t i = 0; i < world.queues_.size(); ++i) {
            if (world.queues_[i].srqn == srqn && world.queues_[i].alive)
                return handle(i);
        }
        return nullptr;
    }

    static Queue& queue_of(World& world, void* queue)
    {
        world.expect(queue != nullptr, "no queue");
        Queue& found = world.queues_.at(index_of(queue));
        world.expect(found.alive, "a queue that is gone");
        return found;
    }

    static Receive& receive_of(World& world, void* queue, void* receive)
    {
        world.expect(receive != nullptr, "no receive");
        Receive& found = queue_of(world, queue).receives.at(index_of(receive));
        world.expect(found.taken && !found.arrival, "a receive that was not taken, or is done");
        return found;
    }

    static dapx_status take(dapx_xrc_responder* resp, void* queue, void** receive, u64* size)
    {
        World& world = of(resp);
        Queue& found = queue_of(world, queue);
        world.expect(!resp->receive, "two receives for one message");
        if (found.next == found.receives.size())
            return DAPX_STATUS_RECEIVER_NOT_READY;
        *size = found.receives[found.next].size;
        found.receives[found.next].taken = true;
        *receive = handle(found.next++);
        return DAPX_STATUS_SUCCESS;
    }

    /// Data that come piece by piece, in order, and are those of a seed.
    template <class Place>
    static void fill(World& world, Place& place, u32 offset, const void* from, u32 length)
    {
        if (offset == 0) {
            place.seed = *static_cast<const std::uint8_t*>(from);
            place.filled = 0;
        }
        // The last piece before immediate data comes again if their queue had no receive.
        world.expect(offset <= place.filled && offset + length >= place.filled,
                     "placed in another order");
        world.expect(std::memcmp(from, pattern(place.seed, offset), length) == 0,
                     "the data are wrong");
        place.filled = offset + length;
    }

    static bool place(dapx_xrc_responder* resp, void* queue, void* receive, u32 offset,
                      const void* from, u32 length)
    {
        World& world = of(resp);
        Receive& found = receive_of(world, queue, receive);
        world.expect(std::uint64_t{offset} + length <= found.size, "placed behind the receive");
        if (std::uint64_t{offset} + length > found.broken_at)
            return false;
        fill(world, found, offset, from, length);
        return true;
    }

    static bool written(World& world, const Message& message)
    {
        const Region& region = world.region(message.rkey);
        return message.total == 0 ||
               (region.filled == message.total && region.seed == message.seed);
    }

    static void complete(dapx_xrc_responder* resp, void* queue, void* receive,
                         const dapx_xrc_arrival* arrival)
    {
        World& world = of(resp);
        Receive& found = receive_of(world, queue, receive);
        found.arrival = *arrival;
        if (arrival->status != DAPX_STATUS_SUCCESS)
            return;
        const auto next = std::ranges::find_if(world.messages_, [](const Message& message) {
            return !message.landed && takes_receive(message.opcode);
        });
        if (next == world.messages_.end()) {
            world.expect(false, "a message that nobody sent");
            return;
        }
        const Queue& itself = world.queues_[index_of(queue)];
        world.expect(next->srqn == itself.srqn && next->opcode == arrival->opcode &&
                         next->total == arrival->length && next->imm == arrival->imm &&
                         next->solicited == arrival->solicited,
                     "another message than the one that was sent next");
        if (next->opcode != DAPX_OP_RDMA_WRITE_IMM)
            world.expect(found.filled == next->total &&
                             (next->total == 0 || found.seed == next->seed),
                         "completed without its data");
        else
            world.expect(written(world, *next), "immediate data without what was written");
        world.land(*next);
    }

    static Region* region_of(World& world, void* queue, u32 rkey, u64 addr, u64 total,
                             std::uint64_t offset, u32 length)
    {
        (void)queue_of(world, queue);
        world.expect(offset + length <= total, "memory behind the message's");
        const auto found = std::ranges::find(world.regions_, rkey, &Region::rkey);
        if (found == world.regions_.end() || addr < found->addr ||
            addr - found->addr > found->length || total > found->length - (addr - found->addr))
            return nullptr;
        return &*found;
    }

    static bool write(dapx_xrc_responder* resp, void* queue, u32 rkey, u64 addr, u32 total,
                      u32 offset, const void* from, u32 length)
    {
        World& world = of(resp);
        Region* region = region_of(world, queue, rkey, addr, total, offset, length);
        if (!region || !region->writable)
            return false;
        fill(world, *region, offset, from, length);
        Message* message = world.by_key(rkey);
        if (message && message->opcode == DAPX_OP_RDMA_WRITE && region->filled == total)
            world.land(*message);
        return true;
    }

    static bool read(dapx_xrc_responder* resp, void* queue, u32 rkey, u64 addr, u32 total,
                     u32 offset, void* to, u32 length)
    {
        World& world = of(resp);
        const Region* region = region_of(world, queue, rkey, addr, total, offset, length);
        if (!region || !region->readable)
            return false;
        std::memcpy(to, pattern(region->seed, addr - region->addr + offset), length);
        Message* message = world.by_key(rkey);
        if (message && offset + length == total)
            world.land(*message);
        return true;
    }

    static bool atomic(dapx_xrc_responder* resp, void* queue, u32 rkey, u64 addr, u8 opcode,
                       u64 compare_add, u64 swap, u64* old)
    {
        World& world = of(resp);
        Region* region = region_of(world, queue, rkey, addr, sizeof(u64), 0, sizeof(u64));
        if (!region || !region->writable)
            return false;
        *old = region->word;
        if (opcode == DAPX_OP_FETCH_ADD)
            region->word += compare_add;
        else if (region->word == compare_add)
            region->word = swap;
        Message* message = world.by_key(rkey);
        if (message) {
            world.expect(++message->executed == 1, "an atomic operation twice");
            world.land(*message);
        }
        return true;
    }

    static constexpr dapx_xrc_requester_ops of_requester = {
        .buffer = buffer,
        .send = send,
        .discard = discard,
        .gather = gather,
        .scatter = scatter,
        .done = done,
        .wait = wait,
        .make_room = nullptr,
    };
    static constexpr dapx_xrc_requester_ops of_lent_to = [] {
        dapx_xrc_requester_ops ops = of_requester;
        ops.make_room = make_room;
        return ops;
    }();
    static constexpr dapx_xrc_responder_ops of_responder = {
        .find = find,
        .take = take,
        .place = place,
        .complete = complete,
        .write = write,
        .read = read,
        .atomic = atomic,
    };
};

World::World(const Options& options) : options_(options), posted_(options.buffers)
{
    dapx_xrc_requester_init(&requester,
                            options.spare ? &Operations::of_lent_to : &Operations::of_requester,
                            options.room, options.retry_limit);
    dapx_xrc_responder_init(&responder, &Operations::of_responder);
    requester.world = this;
    responder.world = this;
    requester.next_seq = requester.acked = responder.expected = options.start;
    requester.sent = arrived_ = options.start;
    requester.limit = granted_ = options.start + requester.limit;
}

World::World(const World& other)
    : requester(other.requester), responder(other.responder), to_responder(other.to_responder),
      to_requester(other.to_requester), timer(other.timer), timers(other.timers),
      not_ready(other.not_ready), not_ready_inside(other.not_ready_inside), shared(other.shared),
      submit_again(other.submit_again), options_(other.options_), messages_(other.messages_),
      queues_(other.queues_), regions_(other.regions_), violations_(other.violations_),
      done_(other.done_), sending_(other.sending_), lent_(other.lent_),
      buffers_out_(other.buffers_out_), granted_(other.granted_), arrived_(other.arrived_),
      posted_(other.posted_), used_(other.used_), owes_answer_(other.owes_answer_)
{
    requester.world = this;
    responder.world = this;
    INIT_LIST_HEAD(&requester.messages);
    for (std::size_t i = 0; i < messages_.size(); ++i) {
        if (other.requester.next == &other.messages_[i])
            requester.next = &messages_[i];
        if (!messages_[i].status)
            list_add_tail(&messages_[i].entry, &requester.messages);
    }
}

std::size_t World::add_queue(std::size_t receives, std::uint64_t size)
{
    queues_.push_back({.srqn = static_cast<std::uint32_t>(0x700 + queues_.size())});
    for (std::size_t i = 0; i < receives; ++i)
        post(queues_.size() - 1, size);
    return queues_.size() - 1;
}

void World::post(std::size_t queue, std::uint64_t size, std::uint64_t broken_at)
{
    queues_[queue].receives.push_back({.size = size, .broken_at = broken_at});
}

std::size_t World::enqueue(const Wanted& wanted)
{
    const std::size_t index = messages_.size();
    Message& message = messages_.emplace_back();
    message.opcode = wanted.opcode;
    message.fence = wanted.fence;
    message.solicited = wanted.solicited;
    message.srqn = wanted.srqn ? *wanted.srqn : queues_.at(wanted.queue).srqn;
    message.total = dapx_xrc_is_atomic(message.opcode) ? sizeof(u64) : wanted.total;
    message.imm = wanted.imm;
    message.compare_add = wanted.compare_add;
    message.swap = wanted.swap;
    message.seed = static_cast<std::uint8_t>((index * 37 + 1) % period);
    message.broken_at = wanted.broken_at;
    if (message.opcode >= DAPX_OP_RDMA_WRITE) {
        message.rkey = wanted.rkey.value_or(static_cast<std::uint32_t>(0x900 + index));
        message.addr = 0x10000 + index * 8;
        if (std::ranges::find(regions_, message.rkey, &Region::rkey) == regions_.end())
            regions_.push_back({.rkey = message.rkey,
                                .addr = message.addr,
                                .length = message.total,
                                .seed = message.seed});
    }
    dapx_xrc_submit(&requester, &message);
    return index;
}

std::size_t World::submit(const Wanted& wanted)
{
    const std::size_t index = enqueue(wanted);
    transmit();
    return index;
}

void World::transmit()
{
    dapx_xrc_transmit(&requester);
    expect_nothing_kept();
}

/// Buffers are held by those who wait for nothing.
void World::expect_nothing_kept()
{
    expect(buffers_out_ == 0, "the requester keeps a buffer");
    expect(requester.room + sending_ == options_.room + lent_, "room was lost");
}

Region& World::region(std::uint32_t rkey)
{
    return *std::ranges::find(regions_, rkey, &Region::rkey);
}

void World::kill(std::size_t queue)
{
    queues_[queue].alive = false;
    dapx_xrc_queue_gone(&responder, handle(queue));
}

void World::break_requester(dapx_status status)
{
    dapx_xrc_requester_fail(&requester, status);
    to_requester.clear();
}

void World::break_responder()
{
    dapx_xrc_responder_end(&responder);
    for (const Queue& queue : queues_) {
        for (const Receive& receive : queue.receives)
            expect(!queue.alive || !receive.taken || receive.arrival, "a receive never ends");
    }
}

bool World::deliver_request()
{
    if (to_responder.empty())
        return false;
    const Segment segment = std::move(to_responder.front());
    to_responder.pop_front();
    expect(posted_ > 0 && arrived_ != granted_, "no buffer for what arrives");
    --posted_;
    ++arrived_;
    // No byte more than promised, so that a sanitizer sees one.
    const std::unique_ptr<std::byte[]> buffer(new std::byte[DAPX_XRC_SEGMENT_SIZE]);
    std::fill_n(buffer.get(), DAPX_XRC_SEGMENT_SIZE, stale);
    std::ranges::copy(*segment.bytes, buffer.get());
    const std::uint32_t expected = responder.expected;
    dapx_xrc_reply reply{};
    dapx_xrc_respond(&responder, buffer.get(), static_cast<u32>(segment.bytes->size()), &reply);
    if (reply.status == DAPX_STATUS_RECEIVER_NOT_READY) {
        expect(!responder.receive && reply.now, "not ready, and yet something is kept");
        not_ready_inside += responder.expected != expected ? 1 : 0;
    }
    if (reply.type != 0 && reply.now)
        answer(reply, buffer.get());
    else if (reply.type != 0)
        owes_answer_ = true;
    ++used_;
    if (!options_.own_steps)
        (void)recycle();
    return true;
}

void World::answer(const dapx_xrc_reply& reply, std::byte* buffer)
{
    const u32 length = dapx_xrc_reply_build(&responder, &reply, limit(), buffer);
    expect(length <= DAPX_XRC_SEGMENT_SIZE, "an answer is too long");
    owes_answer_ = false;
    not_ready += reply.status == DAPX_STATUS_RECEIVER_NOT_READY ? 1 : 0;
    put_answer(Bytes(buffer, buffer + length));
}

void World::put_answer(Bytes bytes)
{
    if (bytes.size() >= 12)
        granted_ = words_of(bytes)[2];
    put(to_requester, std::move(bytes));
}

/// Without data, and about no request in particular.
void World::answer_unasked()
{
    std::array<std::byte, DAPX_XRC_SEGMENT_SIZE> buffer{};
    dapx_xrc_reply reply{};
    reply.type = DAPX_XRC_ANSWER;
    answer(reply, buffer.data());
}

bool World::deliver_answer()
{
    if (to_requester.empty())
        return false;
    const Segment segment = std::move(to_requester.front());
    to_requester.pop_front();
    const std::unique_ptr<std::byte[]> copy(new std::byte[segment.bytes->size()]);
    std::ranges::copy(*segment.bytes, copy.get());
    dapx_xrc_answered(&requester, copy.get(), static_cast<u32>(segment.bytes->size()));
    expect_nothing_kept();
    return true;
}

bool World::complete_send()
{
    if (sending_ == 0)
        return false;
    --sending_;
    if (lent_ > 0)
        --lent_;
    else
        ++requester.room;
    transmit();
    return true;
}

bool World::recycle()
{
    if (used_ == 0)
        return false;
    --used_;
    ++posted_;
    if (options_.tells_unasked && responder.greeted && !responder.failed && granted_ == arrived_)
        answer_unasked();
    return true;
}

bool World::tell()
{
    if (!owes_answer_ || responder.failed)
        return false;
    answer_unasked();
    return true;
}

bool World::fire()
{
    // Ten seconds are not over while something is on its way.
    if (!timer || (*timer > 1'000'000 && !(to_responder.empty() && to_requester.empty())))
        return false;
    timer.reset();
    dapx_xrc_waited(&requester);
    expect_nothing_kept();
    return true;
}

bool World::settle(int timers_left)
{
    for (;;) {
        if (deliver_request() || deliver_answer() || complete_send() || recycle())
            continue;
        if (options_.own_steps && tell())
            continue;
        if (all_done() || !timer)
            return true;
        if (timers_left-- == 0)
            return false;
        (void)fire();
    }
}

Segment World::sealed(Bytes bytes)
{
    Digest digest;
    digest.add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    return {std::make_shared<const Bytes>(std::move(bytes)), digest.value()};
}

void World::expect(bool condition, const char* text)
{
    if (!condition)
        violations_.emplace_back(text);
}

Message* World::by_key(std::uint32_t rkey)
{
    const auto found = std::ranges::find_if(
        messages_, [&](const Message& message) { return message.rkey == rkey && !message.landed; });
    return found == messages_.end() ? nullptr : &*found;
}

/// All that a message brings has come.
void World::land(Message& message)
{
    for (const Message& earlier : messages_) {
        if (&earlier == &message)
            break;
        expect(earlier.landed || leaves_no_trace(earlier), "one message overtakes another");
    }
    message.landed = true;
}

std::uint64_t World::fingerprint() const
{
    Digest digest;
    const auto add = [&](auto... values) { (digest.add(static_cast<std::uint64_t>(values)), ...); };

    // Counters of credits only grow: what counts is how far they are apart.
    const Requester& req = requester;
    add(req.next_seq, req.acked, req.queued, req.sent - arrived_, req.limit - arrived_, req.payload,
        req.room, req.hellos, req.tries, req.greeted, req.waiting, req.failed);
    bool turn = true;
    for (const Message& message : messages_) {
        add(message.landed, message.scattered, message.executed,
            message.status ? 1 + *message.status : 0);
        // The first request's number counts once it is the message's turn.
        const bool next = &message == req.next;
        add(next, turn && !message.status ? message.first : 0);
        turn = turn && !next;
    }
    add(messages_.size());

    const Responder& resp = responder;
    add(resp.expected, resp.demand, resp.greeted, resp.dropping, resp.failed, resp.open,
        resp.opcode, resp.solicited, resp.srqn, resp.total, resp.done, resp.rkey, resp.imm,
        resp.addr, index_of(resp.queue), index_of(resp.receive));
    for (const Queue& queue : queues_) {
        add(queue.alive, queue.next, queue.receives.size());
        for (const Receive& receive : queue.receives)
            add(receive.filled, receive.taken, receive.arrival ? 1 + receive.arrival->status : 0);
    }
    for (const Region& region : regions_)
        add(region.filled, region.word, region.readable, region.writable);

    for (const Segment& segment : to_responder)
        add(segment.digest);
    add(to_responder.size());
    for (const Segment& segment : to_requester) {
        const auto words = words_of(*segment.bytes);
        add(words[0], words[1], words[2] - arrived_, segment.bytes->size());
    }
    add(to_requester.size());
    add(timer.value_or(~0U), sending_, lent_, buffers_out_, granted_ - arrived_, posted_, used_,
        owes_answer_, violations_.size());
    return digest.value();
}

} // namespace dapx::xrc
