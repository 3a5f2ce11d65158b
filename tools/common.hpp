// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the tools share: errors, addresses, waiting, memory, signals.
#pragma once

#include <dapx/dapx.hpp>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace tools {

inline constexpr int exit_failure = 1; ///< it did not work; one sentence says why
inline constexpr int exit_usage = 2;   ///< wrong usage

/// Ends the tool with one sentence and exit_failure.
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Ends the tool with one sentence and exit_usage.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The value, or Failure with the error's sentence.
template <class T> T must(dapx::Result<T> result)
{
    if (!result)
        throw Failure(result.error().message());
    if constexpr (!std::is_void_v<T>)
        return std::move(*result);
}

/// Failure unless it was posted. @p call e.g. "post_send".
void must(dapx::PostResult post, const char* call);

/// The device to use: @p wanted if not empty, else the only one that dapx can use.
std::string choose_device(const std::string& wanted);

/// Both ends of a connection.
struct Route {
    dapx::Address peer;
    dapx::Address source;
};

/// The way from @p device to @p host: of the addresses that the host has, the first for which the
/// device has one to connect from. @p source: that, if not empty.
Route choose_route(const std::string& host, std::uint16_t port, const std::string& source,
                   const std::string& device);

/// True after SIGINT or SIGTERM, once catch_interrupts() was called.
bool interrupted();
void catch_interrupts();

/// How to wait for events.
enum class Waiting {
    wait,  ///< sleep in the kernel: costs nothing, takes a little longer
    poll,  ///< look at the ring again and again: quickest, takes a processor
    mixed, ///< poll for a moment, then sleep
};

/// Why there is no event.
enum class NoEvent { interrupted, late };

/// The next event of @p evd, or why there is none till @p deadline. Failure on any error.
std::expected<dapx::Event, NoEvent> try_next_event(dapx::Evd& evd, Waiting waiting,
                                                   dapx::Deadline deadline);

/// The next event of @p evd; none if it was interrupted(). Failure on any error.
/// @p deadline: Failure if nothing came till then.
std::optional<dapx::Event> next_event(dapx::Evd& evd, Waiting waiting,
                                      dapx::Deadline deadline = dapx::no_deadline);

/// Page-aligned memory of zeroes.
class Buffer {
public:
    explicit Buffer(std::size_t size);
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer();

    [[nodiscard]] std::byte* data() noexcept { return data_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::span<std::byte> span() noexcept { return {data_, size_}; }
    [[nodiscard]] std::span<std::byte> part(std::size_t offset, std::size_t length) noexcept
    {
        return span().subspan(offset, length);
    }

private:
    std::byte* data_;
    std::size_t size_;
};

/// Waits until @p endpoint, which is connecting, is connected.
/// @param evd of its connection events. Failure with the cause if it does not come to that.
void await_connection(const dapx::EndpointBase& endpoint, dapx::Evd& evd, const dapx::Address& peer,
                      dapx::Deadline deadline);

/// Gives the passive side of a new connection over iWARP the time to begin to read: what comes
/// before, siw leaves unread until more comes.
void await_reader(const dapx::Context& context);

/// What to throw when @p event of a connection to @p peer is not what was waited for.
Failure lost(const dapx::Address& peer, const dapx::Event& event);

} // namespace tools
