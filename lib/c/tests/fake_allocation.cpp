// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Allocations that fail. In a file of its own: where the compiler sees through them, it takes
// malloc(3) and operator delete for a mismatch.
#include "fake_module.hpp"
#include "fake_module_c.h"

#include <cstdlib>
#include <new>

namespace {

std::size_t allocations_until_failure = 0;
bool allocation_failed = false;

void* allocate(std::size_t size) noexcept
{
    if (allocations_until_failure != 0 && !dapx::test::FakeModule::busy_itself &&
        --allocations_until_failure == 0) {
        allocation_failed = true;
        return nullptr;
    }
    return std::malloc(size);
}

} // namespace

// Of the whole program; the library's are meant.
void* operator new(std::size_t size)
{
    void* memory = allocate(size);
    if (memory == nullptr)
        throw std::bad_alloc();
    return memory;
}

void* operator new(std::size_t size, const std::nothrow_t&) noexcept
{
    return allocate(size);
}

void operator delete(void* memory) noexcept
{
    std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept
{
    std::free(memory);
}

void fake_fail_allocation(size_t before)
{
    allocation_failed = false;
    allocations_until_failure = before + 1;
}

int fake_allocation_failed()
{
    allocations_until_failure = 0;
    return allocation_failed ? 1 : 0;
}
