// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Figures: taken, and written for people.
#pragma once

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tools {

using Nanoseconds = std::chrono::nanoseconds;

/// "27.1 us", "3.12 ms".
std::string time_text(Nanoseconds time);
/// "33.1 MiB", "8 bytes".
std::string bytes_text(std::uint64_t bytes);
/// "65.3 MiB/s".
std::string rate_text(std::uint64_t bytes, Nanoseconds time);
/// "152341/s".
std::string count_rate_text(std::uint64_t count, Nanoseconds time);

/// Latencies of many operations.
class Latencies {
public:
    void reserve(std::size_t count) { samples_.reserve(count); }
    void add(Nanoseconds sample)
    {
        samples_.push_back(sample);
        sorted_ = false;
    }

    [[nodiscard]] std::size_t count() const { return samples_.size(); }

    /// The smallest sample that @p percent of all do not exceed; 0 without samples.
    [[nodiscard]] Nanoseconds percentile(double percent) const;
    [[nodiscard]] Nanoseconds min() const { return percentile(0); }
    [[nodiscard]] Nanoseconds median() const { return percentile(50); }
    [[nodiscard]] Nanoseconds p99() const { return percentile(99); }
    [[nodiscard]] Nanoseconds max() const { return percentile(100); }

    /// "min 25.0 us, median 27.1 us, p99 40.2 us, max 1.10 ms".
    [[nodiscard]] std::string text() const;
    /// In microseconds.
    [[nodiscard]] nlohmann::json json() const;

private:
    mutable std::vector<Nanoseconds> samples_;
    mutable bool sorted_ = false;
};

/// Columns as wide as their widest cell; the first column's and others' cells to the left, those
/// of columns named in @p right to the right.
std::string table_text(const std::vector<std::vector<std::string>>& rows,
                       const std::vector<std::size_t>& right = {});

/// How far a transfer is: a bar on a terminal, else a line every few percent.
class Progress {
public:
    /// @p enabled false: prints nothing.
    Progress(std::string title, std::uint64_t total, bool enabled);

    void update(std::uint64_t done);
    /// Ends the line.
    void finish(const std::string& result);

private:
    void print_bar(std::uint64_t done) const;

    std::string title_;
    std::uint64_t total_;
    bool enabled_;
    bool terminal_;
    std::uint64_t next_line_;
    std::chrono::steady_clock::time_point next_bar_{};
};

} // namespace tools
