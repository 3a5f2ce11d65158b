// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "counters.hpp"

#include "bench.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <linux/perf_event.h>
#include <sched.h>
#include <sstream>
#include <string_view>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>
#include <x86intrin.h>

namespace bench {

namespace {

unsigned measured_runs = 5;

/// In virtual time it follows from the number of instructions.
std::uint64_t ticks()
{
    return __rdtsc();
}

/// What an instruction takes of that, a power of two.
double ticks_per_instruction()
{
    // The kernel may still be busy, and take turns with this thread: one of many short tries is
    // not interrupted.
    constexpr std::uint64_t turns = 1'000;
    double each = std::numeric_limits<double>::infinity();
    for (int tries = 0; tries < 200; ++tries) {
        std::uint64_t left = turns;
        const std::uint64_t before = ticks();
        asm volatile("1: dec %0\n\tjnz 1b" : "+r"(left));
        each = std::min(each, static_cast<double>(ticks() - before) / (2.0 * turns));
    }
    for (double known : {1.0, 2.0, 4.0, 8.0})
        if (each > known * 0.99 && each < known * 1.1)
            return known;
    die("not in virtual time: an instruction takes %g ticks", each);
}

int tracepoint(const char* name)
{
    perf_event_attr attr{};
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.size = sizeof(attr);
    std::ifstream(std::string("/sys/kernel/tracing/events/") + name + "/id") >> attr.config;
    const int fd =
        static_cast<int>(syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC));
    if (attr.config == 0 || fd < 0)
        die("cannot count %s: %m", name);
    return fd;
}

double read_counter(int fd)
{
    std::uint64_t now = 0;
    if (read(fd, &now, sizeof(now)) != sizeof(now))
        die("cannot read a counter: %m");
    return static_cast<double>(now);
}

} // namespace

void prepare(Turns turns)
{
    // A thread that waits in a loop goes on until its turn is over, and how long that takes is
    // chance: of many runs, the shortest hardly waits.
    if (turns == Turns::fair)
        measured_runs = 20;
    // What follows changes the whole machine, until it is booted again.
    const char* time = std::getenv("DAPX_TIME");
    if (time == nullptr || std::string_view(time) != "virtual")
        die("this takes a CPU from the machine: use 'make bench COUNT=1', which boots one for it");
    write_file("/sys/devices/system/cpu/cpu1/online", "0\n");
    write_file("/proc/sys/kernel/sched_rt_runtime_us", "-1\n");
    // Sums up what the CPUs count, each second.
    write_file("/proc/sys/vm/stat_interval", "3600\n");
    if (turns == Turns::fair)
        return;
    const sched_param first{.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO, &first) != 0)
        die("cannot change how this thread is scheduled: %m");
}

void look_later()
{
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

Meter::Meter(bool traced)
{
    if (!traced)
        return;
    system_calls_ = tracepoint("raw_syscalls/sys_enter");
    work_items_ = tracepoint("workqueue/workqueue_execute_start");
}

Meter::~Meter()
{
    if (system_calls_ >= 0)
        close(system_calls_);
    if (work_items_ >= 0)
        close(work_items_);
}

std::map<std::string, double> Meter::read() const
{
    std::map<std::string, double> now;
    const auto each_line = [](const char* path, auto take) {
        std::ifstream file(path);
        for (std::string line; std::getline(file, line);) {
            std::istringstream words(line);
            std::string name;
            double value = 0;
            if (words >> name >> value)
                take(name, value);
        }
    };
    each_line("/proc/stat", [&](const std::string& name, double value) {
        if (name == "ctxt")
            now["context_switches"] = value;
    });
    each_line("/proc/interrupts", [&](const std::string& name, double value) {
        if (name == "IWI:")
            now["irq_works"] = value;
    });
    each_line("/proc/softirqs", [&](std::string name, double value) {
        name.pop_back();
        std::ranges::transform(name, name.begin(), [](char c) { return std::tolower(c); });
        if (name != "timer" && name != "hrtimer" && name != "sched" && name != "rcu")
            now["softirq_" + name] = value;
    });
    // "  .idle_sleeptime : 1234 nsecs"
    std::ifstream timers("/proc/timer_list");
    for (std::string line; std::getline(timers, line);) {
        const auto colon = line.find(" : ");
        if (colon != std::string::npos &&
            (line.contains(".idle_sleeptime") || line.contains(".iowait_sleeptime")))
            now["idle"] += std::stod(line.substr(colon + 3));
    }
    if (!now.contains("idle"))
        die("/proc/timer_list does not tell how long the machine was idle");
    if (system_calls_ >= 0) {
        now["work_items"] = read_counter(work_items_);
        now["system_calls"] = read_counter(system_calls_);
    }
    return now;
}

void Meter::start()
{
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    before_ = read();
    started_ = ticks();
}

void Meter::stop()
{
    const std::uint64_t stopped = ticks();
    const double before_reading = system_calls_ < 0 ? 0 : read_counter(system_calls_);
    counts_ = read();
    if (system_calls_ >= 0)
        // Reading it is one, and so was the last read in start().
        counts_["system_calls"] = before_reading - 1;
    for (auto& [name, value] : counts_)
        value -= before_[name];
    static const double scale = ticks_per_instruction();
    counts_["instructions"] = (static_cast<double>(stopped - started_) - counts_["idle"]) / scale;
    counts_.erase("idle");
}

void count(unsigned operations, const std::function<void(Meter&)>& body)
{
    std::vector<std::map<std::string, double>> runs;
    for (unsigned run = 0; run <= measured_runs; ++run) {
        Meter meter(false);
        body(meter);
        // The first one warms up.
        if (run > 0)
            runs.push_back(meter.counts());
    }
    std::ranges::sort(runs, {}, [](const auto& run) { return run.at("instructions"); });
    std::map<std::string, double> counts = runs.front();
    const double spread = runs[runs.size() / 2]["instructions"] / counts["instructions"] - 1;

    Meter meter(true);
    body(meter);
    for (const char* name : {"system_calls", "work_items"})
        counts[name] = meter.counts().at(name);
    for (const auto& [name, value] : counts)
        report(name.c_str(), value / operations);
    report("spread", spread);
}

} // namespace bench
