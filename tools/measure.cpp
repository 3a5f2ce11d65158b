// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <unistd.h>

namespace tools {

namespace {

constexpr int title_width = 12;
constexpr std::uint64_t bar_width = 40;
constexpr std::uint64_t lines = 10;

/// Three significant digits.
std::string three_digits(double value)
{
    return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

} // namespace

std::string time_text(Nanoseconds time)
{
    const auto ns = static_cast<double>(time.count());
    if (ns < 1e3)
        return fmt::format("{} ns", time.count());
    if (ns < 1e6)
        return three_digits(ns / 1e3) + " us";
    if (ns < 1e9)
        return three_digits(ns / 1e6) + " ms";
    return three_digits(ns / 1e9) + " s";
}

std::string bytes_text(std::uint64_t bytes)
{
    if (bytes < 1024)
        return fmt::format("{} bytes", bytes);
    static constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < std::size(units)) {
        value /= 1024;
        ++unit;
    }
    if (value == std::floor(value))
        return fmt::format("{:.0f} {}", value, units[unit]);
    return three_digits(value) + " " + units[unit];
}

std::string rate_text(std::uint64_t bytes, Nanoseconds time)
{
    const double seconds = std::chrono::duration<double>(time).count();
    return three_digits(static_cast<double>(bytes) / (1024 * 1024) / seconds) + " MiB/s";
}

std::string count_rate_text(std::uint64_t count, Nanoseconds time)
{
    const double seconds = std::chrono::duration<double>(time).count();
    return fmt::format("{:.0f}/s", static_cast<double>(count) / seconds);
}

Nanoseconds Latencies::percentile(double percent) const
{
    if (samples_.empty())
        return {};
    if (!sorted_) {
        std::ranges::sort(samples_);
        sorted_ = true;
    }
    const double rank = std::ceil(percent / 100 * static_cast<double>(samples_.size()));
    const auto index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
    return samples_[std::min(index, samples_.size() - 1)];
}

std::string Latencies::text() const
{
    return fmt::format("min {}, median {}, p99 {}, max {}", time_text(min()), time_text(median()),
                       time_text(p99()), time_text(max()));
}

nlohmann::json Latencies::json() const
{
    const auto us = [](Nanoseconds time) { return static_cast<double>(time.count()) / 1e3; };
    return {{"samples", count()},
            {"min_us", us(min())},
            {"median_us", us(median())},
            {"p99_us", us(p99())},
            {"max_us", us(max())}};
}

std::string table_text(const std::vector<std::vector<std::string>>& rows,
                       const std::vector<std::size_t>& right)
{
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], row[i].size());
    }
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const bool to_right = std::ranges::find(right, i) != right.end();
            line += to_right ? fmt::format("{:>{}}", row[i], widths[i])
                             : fmt::format("{:<{}}", row[i], widths[i]);
            line += "  ";
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

Progress::Progress(std::string title, std::uint64_t total, bool enabled)
    : title_(std::move(title)), total_(std::max<std::uint64_t>(total, 1)), enabled_(enabled),
      terminal_(::isatty(STDOUT_FILENO) == 1), next_line_(total_ / lines)
{
    if (enabled_ && terminal_)
        print_bar(0);
}

void Progress::update(std::uint64_t done)
{
    if (!enabled_)
        return;
    if (terminal_) {
        const auto now = std::chrono::steady_clock::now();
        if (now < next_bar_)
            return;
        next_bar_ = now + std::chrono::milliseconds(50);
        print_bar(done);
    } else if (done >= next_line_ && done < total_) {
        fmt::print("{:<{}}{:3}%  {} of {}\n", title_, title_width, done * 100 / total_,
                   bytes_text(done), bytes_text(total_));
        std::fflush(stdout);
        next_line_ = (done * lines / total_ + 1) * total_ / lines;
    }
}

void Progress::finish(const std::string& result)
{
    if (!enabled_)
        return;
    if (terminal_)
        fmt::print("\r\033[K");
    fmt::print("{:<{}}100%  {}\n", title_, title_width, result);
    std::fflush(stdout);
}

void Progress::print_bar(std::uint64_t done) const
{
    const std::uint64_t filled = std::min(done, total_) * bar_width / total_;
    fmt::print("\r{:<{}}[{}{}] {:3}%", title_, title_width, std::string(filled, '#'),
               std::string(bar_width - filled, '.'), std::min(done, total_) * 100 / total_);
    std::fflush(stdout);
}

} // namespace tools
