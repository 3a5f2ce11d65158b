// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/detail/owner.hpp>

#include "explain.hpp"

#include <atomic>
#include <cerrno>

#include <sys/mman.h>
#include <unistd.h>

namespace dapx::detail {

namespace {

/// A word that the kernel sets to zero in every child, also in one that was made without
/// fork(3). The page of it is never unmapped.
std::atomic<std::uint32_t*> shared_word = nullptr;
/// Inherited, so that no child takes the number of one of its ancestors.
std::atomic<std::uint32_t> last_generation = 0;

std::uint32_t* map_word() noexcept
{
    const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return nullptr;
    std::uint32_t* expected = nullptr;
    auto* const word = static_cast<std::uint32_t*>(page);
    if (::madvise(page, size, MADV_WIPEONFORK) == 0 &&
        shared_word.compare_exchange_strong(expected, word))
        return word;
    const int error = errno;
    ::munmap(page, size);
    errno = error;
    // Not null if another thread was first.
    return expected;
}

} // namespace

Result<Owner> Owner::current() noexcept
{
    std::uint32_t* word = shared_word.load();
    if (word == nullptr)
        word = map_word();
    if (word == nullptr)
        return std::unexpected(
            explain_system(errno, "mmap", "cannot map a page that fork() clears"));
    std::uint32_t generation = __atomic_load_n(word, __ATOMIC_RELAXED);
    if (generation == 0) {
        const std::uint32_t fresh = ++last_generation;
        // Threads may race here; the first one's number is that of all.
        if (__atomic_compare_exchange_n(word, &generation, fresh, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            generation = fresh;
    }
    return Owner(word, generation);
}

} // namespace dapx::detail
