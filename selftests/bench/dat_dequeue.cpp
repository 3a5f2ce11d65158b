// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// bench-dat-dequeue CALLS   what dat_evd_dequeue() costs on an empty EVD, in ns, above a call of a
//                           function. DAT_OVERRIDE names a dat.conf with an interface adapter "ia".
#include <dat2/udat.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

using Function = DAT_RETURN (*)(DAT_EVD_HANDLE, DAT_EVENT*);

[[gnu::noinline]] DAT_RETURN nothing(DAT_EVD_HANDLE evd, DAT_EVENT* event)
{
    asm volatile("" : : "r"(evd), "r"(event) : "memory");
    return DAT_QUEUE_EMPTY;
}

double measure(Function call, DAT_EVD_HANDLE evd, long calls)
{
    // Both by a pointer that the compiler does not know.
    const Function volatile function = call;
    const auto begin = std::chrono::steady_clock::now();
    DAT_EVENT event;
    for (long i = 0; i < calls; ++i)
        if (DAT_GET_TYPE(function(evd, &event)) != DAT_QUEUE_EMPTY)
            std::exit(1);
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    return time.count() / static_cast<double>(calls);
}

} // namespace

int main(int argc, char** argv)
{
    const long calls = argc > 1 ? std::atol(argv[1]) : 1000000;
    char name[] = "ia";
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    if (dat_ia_open(name, 8, &async, &ia) != DAT_SUCCESS ||
        dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd) != DAT_SUCCESS)
        return 1;
    measure(dat_evd_dequeue, evd, calls / 10);
    const double dequeue = measure(dat_evd_dequeue, evd, calls);
    std::printf("dequeue %f\n", dequeue - measure(nothing, evd, calls));
    return dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS ? 0 : 1;
}
