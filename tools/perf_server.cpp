// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// dapx-perf --server: one session class for each thing that a client can do.
#include "files.hpp"
#include "perf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>

namespace perf {

namespace {

using tools::must;

constexpr std::uint32_t max_depth = 4096;

/// What a client may do to the memory that it learns of.
dapx::Access rights(const Hello& hello)
{
    return Op{std::uint32_t{hello.op}} == Op::read
               ? dapx::Access::remote_read
               : dapx::Access::local_write | dapx::Access::remote_write;
}

Welcome welcome(const dapx::MemoryRegion& region, const tools::SessionResources& resources)
{
    Welcome welcome = {.addr = {},
                       .rkey = {},
                       .idle_timeout = static_cast<std::uint64_t>(resources.idle_timeout.count())};
    if (region.rkey() != 0) {
        const dapx::RemoteAddress remote = region.remote();
        welcome.addr = remote.addr;
        welcome.rkey = remote.rkey;
    }
    return welcome;
}

/// As of any file that this process makes.
mode_t new_file_mode()
{
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return 0666 & ~mask;
}

/// Memory, an endpoint, and the client's wishes: what every session has.
class BaseSession : public tools::Session {
public:
    void accept(dapx::CmId&& request) override
    {
        must(endpoint_.accept(std::move(request), {.private_data = tools::bytes_of(welcome_)}));
    }
    [[nodiscard]] bool is_last() const override { return hello_.more == 0; }

protected:
    BaseSession(const tools::SessionResources& resources, const Hello& hello,
                tools::MemoryBudget::Share&& share, dapx::Access rights, std::uint32_t sends,
                std::uint32_t receives)
        : hello_(hello), share_(std::move(share)), memory_(share_.bytes()),
          region_(must(dapx::MemoryRegion::create(resources.pd, memory_.span(), rights))),
          endpoint_(must(dapx::Endpoint::create(
              resources.pd, resources.evd,
              endpoint_options(resources.pd.context(), sends, receives, resources.id)))),
          welcome_(welcome(region_, resources))
    {
    }

    [[nodiscard]] std::uint32_t size() const { return hello_.size; }
    [[nodiscard]] std::uint32_t depth() const { return hello_.depth; }
    [[nodiscard]] const Hello& hello() const { return hello_; }
    [[nodiscard]] tools::Buffer& memory() { return memory_; }

    void post_receive(std::uint64_t wr_id, std::uint64_t offset,
                      dapx::Doorbell when = dapx::Doorbell::now)
    {
        must(endpoint_.post_recv(wr_id, region_.segment(offset, size()), when), "post_recv");
    }

    /// Afterwards the client changes no byte of memory() any more.
    void close_memory() { must(region_.free()); }

    /// For a message without data, of which only the arrival counts.
    void post_empty_receive()
    {
        must(endpoint_.post_recv(0, std::span<const dapx::Segment>()), "post_recv");
    }

    void echo(std::uint64_t wr_id, std::uint64_t offset, std::uint32_t length)
    {
        must(endpoint_.post_send(wr_id, region_.segment(offset, length)), "post_send");
    }

    void send_control(Control::Kind kind, std::uint64_t value)
    {
        const Control control = {.kind = static_cast<std::uint32_t>(kind), .value = value};
        must(endpoint_.post_send_inline(0, tools::bytes_of(control), dapx::SendFlags::none),
             "post_send_inline");
    }

private:
    Hello hello_;
    tools::MemoryBudget::Share share_;
    tools::Buffer memory_;
    dapx::MemoryRegion region_;
    dapx::Endpoint endpoint_;
    Welcome welcome_;
};

/// Latency of sends: each message goes back.
class EchoSession : public BaseSession {
public:
    EchoSession(const tools::SessionResources& resources, const Hello& hello,
                tools::MemoryBudget& budget)
        : BaseSession(resources, hello, budget.take(std::uint64_t{slots} * hello.size),
                      dapx::Access::local_write, slots, slots)
    {
        for (std::uint64_t slot = 0; slot < slots; ++slot)
            post_receive(slot, slot * size());
    }

    void on_completion(const dapx::Event& event) override
    {
        const std::uint64_t slot = event.wr_id();
        if (event.opcode() == dapx::Opcode::recv)
            echo(slot, slot * size(), event.byte_len());
        else
            post_receive(slot, slot * size());
    }

private:
    // A slot is free again when its echo has arrived, so a few are in turn.
    static constexpr std::uint32_t slots = 8;
};

/// Writes and reads: memory, and nothing to do but to hear that the client is there.
class MemorySession : public BaseSession {
public:
    MemorySession(const tools::SessionResources& resources, const Hello& hello,
                  tools::MemoryBudget& budget)
        : BaseSession(resources, hello, budget.take(hello.size), rights(hello), 1, receives)
    {
        for (std::uint32_t i = 0; i < receives; ++i)
            post_empty_receive();
    }

    void on_completion(const dapx::Event&) override { post_empty_receive(); }

private:
    static constexpr std::uint32_t receives = 4;
};

/// Rate and bandwidth of sends: all messages go to the same memory.
class SinkSession : public BaseSession {
public:
    SinkSession(const tools::SessionResources& resources, const Hello& hello,
                tools::MemoryBudget& budget)
        : BaseSession(resources, hello, budget.take(hello.size), dapx::Access::local_write, 16,
                      static_cast<std::uint32_t>(first_credit(hello.depth)))
    {
        for (; posted_ < first_credit(depth()); ++posted_)
            post_receive(0, 0);
        told_ = posted_;
    }

    void on_completion(const dapx::Event& event) override
    {
        if (event.opcode() != dapx::Opcode::recv)
            return;
        post_receive(0, 0);
        ++posted_;
        if (posted_ - told_ >= std::max<std::uint64_t>(depth() / 2, 1)) {
            send_control(Control::credit, posted_);
            told_ = posted_;
        }
    }

private:
    std::uint64_t posted_ = 0;
    std::uint64_t told_ = 0;
};

/// A file: by sends, chunk after chunk into its place; then by writes, which the client ends
/// with a message of one byte.
class FileSession : public BaseSession {
public:
    FileSession(const tools::SessionResources& resources, const Hello& hello,
                const std::string& output, tools::MemoryBudget& budget)
        : BaseSession(resources, hello, budget.take(memory_size(hello)),
                      dapx::Access::local_write | dapx::Access::remote_write, 16,
                      static_cast<std::uint32_t>(first_credit(hello.depth))),
          chunks_(chunks(hello)), peer_(resources.peer), output_(output)
    {
        while (posted_ < std::min(first_credit(depth()), chunks_ + 1))
            post_next();
        told_ = first_credit(depth());
    }

    void on_completion(const dapx::Event& event) override
    {
        if (event.opcode() != dapx::Opcode::recv)
            return;
        if (event.wr_id() == chunks_) {
            if (event.byte_len() != 0)
                finish_writes();
            else
                post_receive(chunks_, chunks_ * size());
            return;
        }
        bytes_ += event.byte_len();
        if (++received_ == chunks_)
            finish_sends();
        if (posted_ > chunks_)
            return;
        post_next();
        if (posted_ > chunks_ || posted_ >= told_ + std::max<std::uint64_t>(depth() / 2, 1)) {
            send_control(Control::credit, posted_);
            told_ = posted_;
        }
    }

private:
    static std::uint64_t chunks(const Hello& hello)
    {
        return hello.total / hello.size + (hello.total % hello.size != 0 ? 1 : 0);
    }

    /// The last chunk may be shorter, its receive is not; and the final message takes one.
    static std::uint64_t memory_size(const Hello& hello)
    {
        std::uint64_t bytes = 0;
        if (__builtin_mul_overflow(chunks(hello) + 1, std::uint64_t{hello.size}, &bytes))
            throw tools::Refused("larger than this server's --max-size");
        return bytes;
    }

    void post_next()
    {
        post_receive(posted_, posted_ * size());
        ++posted_;
    }

    std::span<std::byte> file() { return memory().part(0, hello().total); }

    void finish_sends()
    {
        const std::uint32_t sum = checksum(file());
        fmt::print("{}: {} by sends, crc32 {:08x}\n", peer_.host(), tools::bytes_text(bytes_), sum);
        std::fflush(stdout);
        // So that the writes have to bring all of it once more.
        std::memset(memory().data(), 0, memory().size());
        send_control(Control::report, sum);
    }

    void finish_writes()
    {
        close_memory();
        const std::uint32_t sum = checksum(file());
        fmt::print("{}: {} by RDMA writes, crc32 {:08x}\n", peer_.host(),
                   tools::bytes_text(hello().total), sum);
        if (!output_.empty()) {
            must(tools::write_file(output_, file(), new_file_mode()));
            fmt::print("{}: written to {}\n", peer_.host(), output_);
        }
        std::fflush(stdout);
        send_control(Control::report, sum);
    }

    std::uint64_t chunks_;
    dapx::Address peer_;
    const std::string& output_;
    std::uint64_t posted_ = 0;
    std::uint64_t received_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t told_ = 0;
};

/// By XRC: all that a client can measure needs a queue for its messages, and memory. Its domain is
/// its own, so that no other client reaches them.
class XrcSession : public tools::Session {
public:
    XrcSession(const tools::SessionResources& resources, const Hello& hello,
               tools::MemoryBudget& budget)
        : hello_(hello), share_(budget.take(hello.size)), memory_(share_.bytes()),
          region_(must(dapx::MemoryRegion::create(resources.pd, memory_.span(),
                                                  dapx::Access::local_write | rights(hello), 0,
                                                  dapx::RegionFlags::xrc))),
          domain_(must(dapx::XrcDomain::open(resources.pd.context(), -1, O_CREAT))),
          srq_(must(dapx::Srq::create_xrc(domain_, resources.pd, resources.evd,
                                          {.depth = receives(hello), .user_data = resources.id}))),
          qp_(must(dapx::XrcQp::create(domain_, &resources.evd, resources.id))),
          welcome_{.memory = welcome(region_, resources), .srq = srq_.number()}
    {
        for (std::uint32_t i = 0; i < receives(hello); ++i)
            post_receive();
    }

    void accept(dapx::CmId&& request) override
    {
        must(qp_.accept(std::move(request), tools::bytes_of(welcome_)));
    }
    [[nodiscard]] bool is_last() const override { return hello_.more == 0; }

    void on_completion(const dapx::Event&) override { post_receive(); }

private:
    /// A message that finds none is sent once more, with all behind it: that is seldom with these.
    static std::uint32_t receives(const Hello& hello)
    {
        return std::max<std::uint32_t>(static_cast<std::uint32_t>(first_credit(hello.depth)), 256);
    }

    /// All messages go to the same memory.
    void post_receive() { must(srq_.post_recv(0, region_.segment(0, hello_.size)), "post_recv"); }

    Hello hello_;
    tools::MemoryBudget::Share share_;
    tools::Buffer memory_;
    dapx::MemoryRegion region_;
    dapx::XrcDomain domain_;
    dapx::Srq srq_;
    dapx::XrcQp qp_;
    XrcWelcome welcome_;
};

} // namespace

std::unique_ptr<tools::Session> make_session(const tools::SessionResources& resources,
                                             const Options& options, tools::MemoryBudget& budget)
{
    const auto hello = tools::message_from<Hello>(resources.hello);
    if (!hello || hello->magic != hello_magic)
        throw tools::Refused("this is a dapx-perf server, for dapx-perf only");
    if (hello->size == 0 || hello->depth == 0 || hello->depth > max_depth)
        throw tools::Refused("bad message size or depth");
    const Test test{std::uint32_t{hello->test}};
    if (test == Test::file && hello->total == 0)
        throw tools::Refused("an empty file");
    if (resources.xrc) {
        if (!options.xrc)
            throw tools::Refused("the server was started without --xrc");
        if (test == Test::file)
            throw tools::Refused("XRC has no answers, which a file needs");
        return std::make_unique<XrcSession>(resources, *hello, budget);
    }
    const bool sends = Op{std::uint32_t{hello->op}} == Op::send;
    switch (test) {
    case Test::latency:
        if (sends)
            return std::make_unique<EchoSession>(resources, *hello, budget);
        return std::make_unique<MemorySession>(resources, *hello, budget);
    case Test::rate:
    case Test::bandwidth:
        if (sends)
            return std::make_unique<SinkSession>(resources, *hello, budget);
        return std::make_unique<MemorySession>(resources, *hello, budget);
    case Test::file:
        return std::make_unique<FileSession>(resources, *hello, options.output, budget);
    }
    throw tools::Refused("unknown test; use the same version of dapx-perf on both sides");
}

} // namespace perf
