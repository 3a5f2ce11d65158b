// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "perf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace perf {

namespace {

using namespace std::chrono_literals;
using tools::must;

constexpr auto connect_timeout = 10s;
// Far above what any healthy peer takes for one operation.
constexpr auto answer_timeout = 30s;

} // namespace

const char* name_of(Test test)
{
    switch (test) {
    case Test::latency:
        return "latency";
    case Test::rate:
        return "rate";
    case Test::bandwidth:
        return "bandwidth";
    case Test::file:
        return "file";
    }
    return "?";
}

const char* name_of(Op op)
{
    switch (op) {
    case Op::send:
        return "send";
    case Op::write:
        return "write";
    case Op::read:
        return "read";
    }
    return "?";
}

dapx::EndpointOptions endpoint_options(const dapx::Context& context, std::uint32_t sends,
                                       std::uint32_t receives, std::uint64_t id)
{
    constexpr std::uint32_t reads = 16;
    const dapx::DeviceAttributes device = must(context.query_device());
    return {.send_depth = sends,
            .recv_depth = receives,
            .max_rd_atomic = static_cast<std::uint16_t>(std::min(device.max_rd_atomic, reads)),
            .max_dest_rd_atomic =
                static_cast<std::uint16_t>(std::min(device.max_dest_rd_atomic, reads)),
            .user_data = id};
}

Target::Target(const Options& options)
    : device(tools::choose_device(options.device)),
      route(tools::choose_route(options.host, options.port, options.source, device)),
      context(must(dapx::Context::open(device))), pd(must(dapx::Pd::create(context)))
{
}

dapx::MemoryRegion Connection::make_region(const Target& target, const Options& options,
                                           std::span<std::byte> memory)
{
    return must(
        dapx::MemoryRegion::create(target.pd, memory, dapx::Access::local_write, 0,
                                   options.xrc ? dapx::RegionFlags::xrc : dapx::RegionFlags::none));
}

Connection::Connection(const Target& target, const Options& options, Hello hello)
    : options_(options), peer_(target.route.peer),
      evd_(must(dapx::Evd::create(target.context, {.depth = 4 * hello.depth + 64}))),
      control_(control_slots * sizeof(Control)),
      control_region_(make_region(target, options, control_.span())),
      endpoint_(
          target.pd, evd_,
          endpoint_options(target.context, std::max<std::uint32_t>(hello.depth, 64), control_slots),
          options.xrc),
      credit_(first_credit(hello.depth))
{
    hello.magic = hello_magic;
    // The latency test's echoes are as long as its messages: their receives are the test's.
    const bool echo = Test{std::uint32_t{hello.test}} == Test::latency;
    for (std::uint64_t slot = 0; !echo && !options.xrc && slot < control_slots; ++slot)
        post_control(control_wr_id + slot);
    const auto start = dapx::Clock::now();
    const auto deadline = start + connect_timeout;
    must(endpoint_->connect(peer_, {.source = target.route.source,
                                    .deadline = deadline,
                                    .private_data = tools::bytes_of(hello)}));
    tools::await_connection(*endpoint_, evd_, peer_, deadline + 1s);
    connect_time_ = dapx::Clock::now() - start;
    tools::await_reader(endpoint_->context());
    const std::vector<std::byte> answer = must(endpoint_->query()).private_data;
    const auto welcome = tools::message_from<Welcome>(answer);
    const auto xrc = tools::message_from<XrcWelcome>(answer);
    if (!welcome || (options.xrc && !xrc))
        throw tools::Failure("the peer's answer is not that of a dapx-perf server");
    if (options.xrc)
        endpoint_.set_srq(xrc->srq);
    remote_ = {.addr = welcome->addr, .rkey = welcome->rkey};
    if (welcome->idle_timeout != 0) {
        alive_interval_ = std::chrono::milliseconds(welcome->idle_timeout) / 3;
        next_alive_ = dapx::Clock::now() + alive_interval_;
    }
}

void Connection::post_control(std::uint64_t wr_id)
{
    const std::uint64_t offset = (wr_id - control_wr_id) * sizeof(Control);
    must(endpoint_.rc().post_recv(wr_id, control_region_.segment(offset, sizeof(Control))),
         "post_recv");
}

void Connection::keep_alive(dapx::Deadline now)
{
    if (now < next_alive_)
        return;
    const dapx::PostResult post = endpoint_.post([](auto& to) {
        return to.post_send(0, std::span<const dapx::Segment>(), dapx::SendFlags::none);
    });
    // A full ring has room when the next operation ends.
    if (post == dapx::PostResult::full)
        return;
    must(post, "post_send");
    next_alive_ = now + alive_interval_;
}

std::optional<dapx::Event> Connection::next()
{
    return tools::next_event(evd_, options_.waiting, dapx::Clock::now() + answer_timeout);
}

bool Connection::handle(const dapx::Event& event)
{
    if (!event.is_completion() || event.status() != dapx::Status::success)
        throw tools::lost(peer_, event);
    if (event.wr_id() < control_wr_id)
        return true;
    Control control;
    std::memcpy(&control, control_.data() + (event.wr_id() - control_wr_id) * sizeof(Control),
                sizeof(control));
    if (control.kind == Control::credit)
        credit_ = control.value;
    else
        report_ = control.value;
    post_control(event.wr_id());
    return false;
}

Stream Connection::stream(const StreamOptions& options, const PostOne& post_one,
                          const OnProgress& on_progress)
{
    const std::uint32_t depth = std::max<std::uint32_t>(options.depth, 1);
    Stream result;
    std::vector<dapx::Deadline> starts(options.timed ? depth : 0);
    if (options.timed)
        result.latencies.reserve(options.count);
    const std::uint64_t doorbells = endpoint_->send_doorbells();
    std::uint64_t posted = 0;
    std::uint64_t done = 0;
    bool more = true;
    const auto start = dapx::Clock::now();
    while (more || done < posted) {
        const dapx::Deadline now = dapx::Clock::now();
        more = more && !tools::interrupted() && (options.count != 0 || now < options.until);
        if (!options.needs_credit)
            keep_alive(now);
        while (more && posted - done < depth && (!options.needs_credit || posted < credit_)) {
            if (options.timed)
                starts[posted % depth] = dapx::Clock::now();
            const bool last_of_batch = (posted + 1) % options.batch == 0;
            must(post_one(posted, last_of_batch ? dapx::Doorbell::now : dapx::Doorbell::later),
                 "post");
            ++posted;
            more = options.count == 0 || posted < options.count;
        }
        must(endpoint_->submit(), "submit");
        if (done == posted && !more)
            break;
        // At least one event, and what else is there.
        std::optional<dapx::Event> event = next();
        if (!event)
            break;
        do {
            if (!handle(*event))
                continue;
            if (options.timed)
                result.latencies.add(dapx::Clock::now() - starts[event->wr_id() % depth]);
            ++done;
        } while (evd_.poll(*event));
        if (on_progress)
            on_progress(done);
    }
    result.time = dapx::Clock::now() - start;
    result.count = done;
    result.doorbells = endpoint_->send_doorbells() - doorbells;
    return result;
}

std::optional<std::uint64_t> Connection::await_report()
{
    while (!report_) {
        const auto event = next();
        if (!event)
            return std::nullopt;
        (void)handle(*event);
    }
    return std::exchange(report_, std::nullopt);
}

bool Connection::await(dapx::Opcode opcode)
{
    while (const auto event = next())
        if (handle(*event) && event->opcode() == opcode)
            return true;
    return false;
}

void Connection::close()
{
    if (!endpoint_->disconnect())
        return;
    // The end is an event; what was flushed before it is of no interest.
    while (const auto event =
               tools::next_event(evd_, tools::Waiting::wait, dapx::Clock::now() + connect_timeout))
        if (event->type() == dapx::EventType::connection)
            return;
}

} // namespace perf
