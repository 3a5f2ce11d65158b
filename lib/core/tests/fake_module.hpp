// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/dapx.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace dapx::test {

/// Stands in for /dev/dapx in this process, while it lives: open(2) of node() and ioctl(2) on
/// what that returns come here. It records every command, keeps handles and rings, and does no
/// RDMA. As the module, it obeys no forked child, and none inherits what is mapped.
class FakeModule {
public:
    FakeModule();
    FakeModule(const FakeModule&) = delete;
    FakeModule& operator=(const FakeModule&) = delete;
    ~FakeModule();

    [[nodiscard]] const char* node() const { return "/fake/dapx"; }

    /// Names that can be attached to.
    std::vector<std::string> devices = {"rxe0"};

    /// The next command @p request answers @p error, once for each call of this.
    void fail_next(unsigned long request, int error) { errors_[request].push_back(error); }

    /// The mmap(2) that follows @p before others answers @p error.
    void fail_mmap(std::size_t before, int error);

    /// What was mapped of it: address and bytes.
    std::vector<std::pair<void*, std::size_t>> mappings;

    /// Handles that are in use: freeing answers EBUSY.
    std::set<std::uint32_t> busy;

    /// Number of commands @p request so far.
    [[nodiscard]] std::size_t count(unsigned long request) const;

    /// The argument of the last command @p request, as it came in: @p size bytes.
    void copy_last(unsigned long request, void* argument, std::size_t size) const
    {
        for (const Call& call : calls_)
            if (call.request == request)
                std::memcpy(argument, call.argument.data(), std::min(size, call.argument.size()));
    }

    template <class T> [[nodiscard]] T last(unsigned long request) const
    {
        T argument{};
        copy_last(request, &argument, sizeof(T));
        return argument;
    }

    /// Handles that exist.
    [[nodiscard]] const std::map<std::uint32_t, std::uint32_t>& objects() const { return objects_; }

    /// A ring as the module sees it.
    struct Ring {
        std::byte* base = nullptr;
        dapx_ring_layout layout{};

        [[nodiscard]] std::uint32_t* word(std::uint32_t offset) const
        {
            return reinterpret_cast<std::uint32_t*>(base + offset);
        }
        [[nodiscard]] std::uint32_t* head() const { return word(layout.head_off); }
        [[nodiscard]] std::uint32_t* tail() const { return word(layout.tail_off); }
        [[nodiscard]] std::uint32_t* flags() const { return word(layout.flags_off); }
        [[nodiscard]] std::uint32_t* armed() const { return word(layout.arm_off); }
        [[nodiscard]] std::byte* entry(std::uint32_t index) const
        {
            return base + layout.entries_off + std::size_t{index % layout.depth} * layout.stride;
        }
    };
    [[nodiscard]] const Ring& evd_ring(std::uint32_t evd) const { return rings_.at({evd, 0}); }
    [[nodiscard]] const Ring& send_ring(std::uint32_t ep) const { return rings_.at({ep, 0}); }
    [[nodiscard]] const Ring& recv_ring(std::uint32_t ep) const { return rings_.at({ep, 1}); }

    /// Sets the state word of an endpoint.
    void set_state(std::uint32_t ep, dapx_ep_state state);

    /// Puts an event into an EVD's ring.
    void put_event(std::uint32_t evd, const dapx_event& event);

    /// What the next layouts get wrong, to see that the library refuses them.
    enum class Flaw { none, outside, odd_depth, short_stride, arm_outside } flaw = Flaw::none;

    /// Events that DAPX_CM_QUERY says are not acknowledged.
    std::uint32_t unacked = 0;

    /// Whether DAPX_CM_QUERY says that the peer's endpoint is one of XRC.
    bool xrc_request = false;

    /// Numbers of XRC receive queue pairs, with the handle of the registration.
    std::map<std::uint32_t, std::uint32_t> xrc_qps;

    // For the wrapped system calls.
    int open_node();
    [[nodiscard]] bool owns(int fd) const { return fds_.contains(fd); }
    int command(unsigned long request, void* argument);
    [[nodiscard]] bool mmap_fails() noexcept;
    static FakeModule* active;
    /// Whether one of them is at work: what is allocated then is not the library's.
    static bool busy_itself;

private:
    struct Call {
        unsigned long request;
        std::vector<std::byte> argument;
    };

    std::uint32_t add(std::uint32_t type);
    std::size_t map_pages(std::size_t size);
    dapx_ring_layout lay_out(std::uint64_t offset, std::uint32_t mapping_size,
                             std::uint32_t ring_offset, std::uint32_t depth, std::uint32_t stride);
    int run(unsigned long request, void* argument);
    int run_xrc(unsigned long request, void* argument);
    [[nodiscard]] int find_xrc_qp(std::uint32_t qp_num) const;
    int create_evd(dapx_evd_create& argument);
    int resize_evd(dapx_evd_resize& argument);
    int resize_srq(dapx_srq_resize& argument);
    int create_ep(dapx_ep_create& argument);
    /// Gives an endpoint new rings: for dapx_ep_create or dapx_ep_resize.
    template <class Argument> void make_rings(std::uint32_t ep, Argument& argument);

    int owner_ = 0;
    std::size_t mmaps_until_error_ = 0;
    int mmap_error_ = 0;
    int memory_fd_ = -1;
    std::byte* memory_ = nullptr;
    std::size_t used_ = 0;
    std::set<int> fds_;
    std::uint32_t next_handle_ = 100;
    std::vector<Call> calls_;
    std::map<unsigned long, std::deque<int>> errors_;
    std::map<std::uint32_t, std::uint32_t> objects_;
    std::map<std::pair<std::uint32_t, int>, Ring> rings_;
    std::map<std::uint32_t, std::uint32_t> state_offsets_;
};

} // namespace dapx::test
