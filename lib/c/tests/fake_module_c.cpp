// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "fake_module_c.h"

#include "fake_module.hpp"

#include <memory>

namespace {

std::unique_ptr<dapx::test::FakeModule> module_of_test;

} // namespace

const char* fake_begin()
{
    module_of_test = std::make_unique<dapx::test::FakeModule>();
    return module_of_test->node();
}

void fake_end()
{
    module_of_test.reset();
}

void fake_fail_next(unsigned long request, int error)
{
    module_of_test->fail_next(request, error);
}

void fake_busy(__u32 handle)
{
    module_of_test->busy.clear();
    if (handle != 0)
        module_of_test->busy.insert(handle);
}

size_t fake_count(unsigned long request)
{
    return module_of_test->count(request);
}

void fake_last(unsigned long request, void* argument, size_t size)
{
    module_of_test->copy_last(request, argument, size);
}

size_t fake_objects()
{
    return module_of_test->objects().size();
}

const void* fake_last_send(__u32 ep)
{
    const auto& ring = module_of_test->send_ring(ep);
    return ring.entry(*ring.tail() - 1);
}

const void* fake_last_recv(__u32 ep_or_srq)
{
    const auto& ring = module_of_test->recv_ring(ep_or_srq);
    return ring.entry(*ring.tail() - 1);
}

void fake_set_state(__u32 ep, __u32 state)
{
    module_of_test->set_state(ep, static_cast<dapx_ep_state>(state));
}

void fake_put_event(__u32 evd, const dapx_event* event)
{
    module_of_test->put_event(evd, *event);
}

void fake_kill_evd(__u32 evd)
{
    *module_of_test->evd_ring(evd).flags() |= DAPX_RING_DEAD;
}

void fake_unacked(__u32 events)
{
    module_of_test->unacked = events;
}

void fake_xrc_request(int xrc)
{
    module_of_test->xrc_request = xrc != 0;
}

void fake_foreign_xrc_qp(__u32 qp_num)
{
    module_of_test->xrc_qps[qp_num] = 0;
}
