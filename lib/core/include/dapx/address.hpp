// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include <dapx/error.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <sys/socket.h>

namespace dapx {

/// An IPv4 or IPv6 address with a port, or none (family 0). A plain value.
class DAPX_EXPORT Address {
public:
    /// No address: "what the routing table says" where a source is asked for.
    Address() = default;

    /// @param address of any family; what is not IPv4 or IPv6 gives no address.
    explicit Address(const ::sockaddr& address) noexcept;

    /// @param storage of a query's answer.
    explicit Address(const ::sockaddr_storage& storage) noexcept : storage_(storage) {}

    /// A name or an address in figures: "10.0.0.1", "fe80::1%eth0", "[::1]", "host1".
    /// Names are asked for with getaddrinfo(3), which may take time; the first answer is taken.
    /// @param port in host order; 0 for any.
    /// Errors: EADDRNOTAVAIL (name not known). Thread safety: any thread.
    [[nodiscard]] static Result<Address> parse(const std::string& host,
                                               std::uint16_t port) noexcept;

    /// The same with all answers, at least one, in the order in which to try them. Not each can be
    /// reached from any device: source_for() tells.
    [[nodiscard]] static Result<std::vector<Address>> parse_all(const std::string& host,
                                                                std::uint16_t port) noexcept;

    /// The unspecified address: for listening on all of the device's. @p family AF_INET or AF_INET6.
    [[nodiscard]] static Address any(int family, std::uint16_t port) noexcept;

    /// Addresses of an RDMA device's network interfaces, as the system has them now: IPv4 first,
    /// then global IPv6, then link-local IPv6. Empty if it has none.
    /// @param device e.g. "rxe0".
    /// Errors: ENODEV (no such device). Thread safety: any thread.
    [[nodiscard]] static Result<std::vector<Address>> of_device(const std::string& device) noexcept;

    /// The same of these network interfaces, for who knows the device's: that takes reading its GID
    /// table, which sysfs has in some hundred files.
    [[nodiscard]] static std::vector<Address>
    of_interfaces(const std::vector<std::string>& names) noexcept;

    /// An address of @p device that can be the source of a connection to @p destination: of its
    /// family, link-local if and only if that is, of its scope, not the destination itself if
    /// there is another, and of its subnet, the closest, if one is. The kernel takes the source
    /// from the routing table otherwise, which may be another device's.
    /// Errors: ENODEV, EADDRNOTAVAIL. Thread safety: any thread.
    [[nodiscard]] static Result<Address> source_for(const std::string& device,
                                                    const Address& destination) noexcept;

    /// AF_INET, AF_INET6, or 0.
    [[nodiscard]] int family() const noexcept { return storage_.ss_family; }

    /// True if there is an address.
    explicit operator bool() const noexcept { return family() != AF_UNSPEC; }

    /// In host order.
    [[nodiscard]] std::uint16_t port() const noexcept;

    /// The same address with another port.
    [[nodiscard]] Address with_port(std::uint16_t port) const noexcept;

    /// True if it is 169.254.0.0/16 or fe80::/10.
    [[nodiscard]] bool is_link_local() const noexcept;

    /// True if it is 0.0.0.0 or ::.
    [[nodiscard]] bool is_any() const noexcept;

    /// "10.0.0.1", "fe80::1%eth0"; "-" for none.
    [[nodiscard]] std::string host() const noexcept;

    /// "10.0.0.1:7471", "[fe80::1%eth0]:7471"; "-" for none.
    [[nodiscard]] std::string to_string() const noexcept;

    /// The bytes, in network order.
    [[nodiscard]] const ::sockaddr_storage& storage() const noexcept { return storage_; }

    /// Same family, address, scope and port.
    friend DAPX_EXPORT bool operator==(const Address& a, const Address& b) noexcept;

private:
    ::sockaddr_storage storage_{};
};

} // namespace dapx
