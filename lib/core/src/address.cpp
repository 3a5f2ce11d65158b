// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dapx/address.hpp>

#include "explain.hpp"
#include "source.hpp"
#include "sysfs.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

namespace dapx {

namespace {

const ::sockaddr_in& as_ipv4(const ::sockaddr_storage& storage) noexcept
{
    return reinterpret_cast<const ::sockaddr_in&>(storage);
}

const ::sockaddr_in6& as_ipv6(const ::sockaddr_storage& storage) noexcept
{
    return reinterpret_cast<const ::sockaddr_in6&>(storage);
}

/// IPv4 first, then global IPv6, then link-local IPv6: what a person would try first.
int rank(const Address& address) noexcept
{
    return (address.family() == AF_INET6 ? 1 : 0) + (address.is_link_local() ? 2 : 0);
}

/// The address alone, in network order; nothing of no family.
std::span<const std::uint8_t> octets(const ::sockaddr_storage& storage) noexcept
{
    if (storage.ss_family == AF_INET)
        return {reinterpret_cast<const std::uint8_t*>(&as_ipv4(storage).sin_addr), 4};
    if (storage.ss_family == AF_INET6)
        return {as_ipv6(storage).sin6_addr.s6_addr, 16};
    return {};
}

bool same_host(const Address& a, const Address& b) noexcept
{
    return a.with_port(0) == b.with_port(0);
}

/// Whether family and scope permit it.
bool fits(const Address& source, const Address& destination) noexcept
{
    if (source.family() != destination.family() ||
        source.is_link_local() != destination.is_link_local())
        return false;
    if (source.family() != AF_INET6 || !source.is_link_local())
        return true;
    const auto scope = as_ipv6(destination.storage()).sin6_scope_id;
    return scope == 0 || scope == as_ipv6(source.storage()).sin6_scope_id;
}

std::vector<detail::LocalAddress> local_addresses(const std::vector<std::string>& interfaces)
{
    std::vector<detail::LocalAddress> addresses;
    ::ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0)
        return addresses;
    const std::unique_ptr<::ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
    for (const ::ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
        if (entry->ifa_addr == nullptr ||
            std::ranges::find(interfaces, entry->ifa_name) == interfaces.end())
            continue;
        const Address address(*entry->ifa_addr);
        if (!address)
            continue;
        unsigned prefix = 0;
        if (entry->ifa_netmask != nullptr) {
            const Address mask(*entry->ifa_netmask);
            for (const std::uint8_t octet : octets(mask.storage()))
                prefix += static_cast<unsigned>(std::popcount(octet));
        }
        addresses.push_back({address, prefix});
    }
    std::ranges::stable_sort(addresses, {},
                             [](const detail::LocalAddress& local) { return rank(local.address); });
    return addresses;
}

Result<std::vector<std::string>> interfaces_of(const std::string& device, const std::string& sysfs)
{
    const std::string ports = sysfs + "/class/infiniband/" + device + "/ports";
    if (!detail::is_directory(ports))
        return std::unexpected(detail::explain_attach(ENODEV, device, sysfs));
    std::vector<std::string> netdevs;
    for (const std::string& port : detail::list_directory(ports))
        for (std::string& name : detail::port_netdevs(device, port, sysfs))
            netdevs.push_back(std::move(name));
    return netdevs;
}

} // namespace

namespace detail {

bool on_link(const LocalAddress& local, const Address& destination) noexcept
{
    const auto own = octets(local.address.storage());
    const auto other = octets(destination.storage());
    if (local.prefix == 0 || own.size() != other.size() || local.prefix > 8 * own.size())
        return false;
    for (unsigned bit = 0; bit < local.prefix; ++bit)
        if (((own[bit / 8] ^ other[bit / 8]) & (0x80U >> (bit % 8))) != 0)
            return false;
    return true;
}

const Address* best_source(std::span<const LocalAddress> addresses,
                           const Address& destination) noexcept
{
    const LocalAddress* best = nullptr;
    // Greater is better: another than the destination, then the closest subnet, then the first.
    const auto worth = [&](const LocalAddress& local) {
        return (same_host(local.address, destination) ? 0U : 1000U) +
               (on_link(local, destination) ? local.prefix : 0);
    };
    for (const LocalAddress& local : addresses)
        if (fits(local.address, destination) && (best == nullptr || worth(local) > worth(*best)))
            best = &local;
    return best != nullptr ? &best->address : nullptr;
}

Result<std::vector<Address>> addresses_of_device(const std::string& device,
                                                 const std::string& sysfs) noexcept
{
    const auto interfaces = interfaces_of(device, sysfs);
    if (!interfaces)
        return std::unexpected(interfaces.error());
    return Address::of_interfaces(*interfaces);
}

Result<Address> source_for(const std::string& device, const Address& destination,
                           const std::string& sysfs) noexcept
{
    const auto interfaces = interfaces_of(device, sysfs);
    if (!interfaces)
        return std::unexpected(interfaces.error());
    const auto addresses = local_addresses(*interfaces);
    if (const Address* found = best_source(addresses, destination); found != nullptr)
        return *found;
    const char* kind = destination.family() == AF_INET6 ? "IPv6" : "IPv4";
    return std::unexpected(Error(
        EADDRNOTAVAIL, "getifaddrs",
        "RDMA device " + device + " has no " + kind + " address from which " + destination.host() +
            " can be reached; give its network interface one with 'ip addr add', or name a source"));
}

} // namespace detail

Address::Address(const ::sockaddr& address) noexcept
{
    if (address.sa_family == AF_INET)
        std::memcpy(&storage_, &address, sizeof(::sockaddr_in));
    else if (address.sa_family == AF_INET6)
        std::memcpy(&storage_, &address, sizeof(::sockaddr_in6));
}

Result<std::vector<Address>> Address::parse_all(const std::string& host,
                                                std::uint16_t port) noexcept
{
    std::string name = host;
    if (name.size() > 2 && name.front() == '[' && name.back() == ']')
        name = name.substr(1, name.size() - 2);
    ::addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    ::addrinfo* found = nullptr;
    const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &found);
    if (error != 0)
        return std::unexpected(Error(EADDRNOTAVAIL, "getaddrinfo",
                                     "cannot find the address of host '" + host +
                                         "': " + ::gai_strerror(error) +
                                         "; mind the spelling, or give an IP address"));
    const std::unique_ptr<::addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
    std::vector<Address> addresses;
    for (const ::addrinfo* entry = found; entry != nullptr; entry = entry->ai_next)
        addresses.push_back(Address(*entry->ai_addr).with_port(port));
    return addresses;
}

Result<Address> Address::parse(const std::string& host, std::uint16_t port) noexcept
{
    auto addresses = parse_all(host, port);
    if (!addresses)
        return std::unexpected(std::move(addresses).error());
    return addresses->front();
}

Address Address::any(int family, std::uint16_t port) noexcept
{
    Address address;
    address.storage_.ss_family = static_cast<sa_family_t>(family);
    return address.with_port(port);
}

Result<std::vector<Address>> Address::of_device(const std::string& device) noexcept
{
    return detail::addresses_of_device(device, "/sys");
}

std::vector<Address> Address::of_interfaces(const std::vector<std::string>& names) noexcept
{
    std::vector<Address> addresses;
    for (const detail::LocalAddress& local : local_addresses(names))
        addresses.push_back(local.address);
    return addresses;
}

Result<Address> Address::source_for(const std::string& device, const Address& destination) noexcept
{
    return detail::source_for(device, destination, "/sys");
}

std::uint16_t Address::port() const noexcept
{
    switch (family()) {
    case AF_INET:
        return ntohs(as_ipv4(storage_).sin_port);
    case AF_INET6:
        return ntohs(as_ipv6(storage_).sin6_port);
    default:
        return 0;
    }
}

Address Address::with_port(std::uint16_t port) const noexcept
{
    Address copy = *this;
    if (family() == AF_INET)
        reinterpret_cast<::sockaddr_in&>(copy.storage_).sin_port = htons(port);
    else if (family() == AF_INET6)
        reinterpret_cast<::sockaddr_in6&>(copy.storage_).sin6_port = htons(port);
    return copy;
}

bool Address::is_link_local() const noexcept
{
    if (family() == AF_INET)
        return (ntohl(as_ipv4(storage_).sin_addr.s_addr) >> 16) == 0xa9fe;
    if (family() == AF_INET6)
        return IN6_IS_ADDR_LINKLOCAL(&as_ipv6(storage_).sin6_addr);
    return false;
}

bool Address::is_any() const noexcept
{
    if (family() == AF_INET)
        return as_ipv4(storage_).sin_addr.s_addr == INADDR_ANY;
    if (family() == AF_INET6)
        return IN6_IS_ADDR_UNSPECIFIED(&as_ipv6(storage_).sin6_addr);
    return false;
}

std::string Address::host() const noexcept
{
    char text[INET6_ADDRSTRLEN] = "-";
    if (family() == AF_INET) {
        ::inet_ntop(AF_INET, &as_ipv4(storage_).sin_addr, text, sizeof(text));
    } else if (family() == AF_INET6) {
        const ::sockaddr_in6& address = as_ipv6(storage_);
        ::inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof(text));
        if (address.sin6_scope_id != 0) {
            char name[IF_NAMESIZE];
            return std::string(text) + "%" +
                   (::if_indextoname(address.sin6_scope_id, name) != nullptr
                        ? std::string(name)
                        : std::to_string(address.sin6_scope_id));
        }
    }
    return text;
}

std::string Address::to_string() const noexcept
{
    if (!*this)
        return "-";
    const std::string text = host();
    return (family() == AF_INET6 ? "[" + text + "]" : text) + ":" + std::to_string(port());
}

bool operator==(const Address& a, const Address& b) noexcept
{
    if (a.family() != b.family())
        return false;
    if (a.family() == AF_INET) {
        return as_ipv4(a.storage_).sin_addr.s_addr == as_ipv4(b.storage_).sin_addr.s_addr &&
               a.port() == b.port();
    }
    if (a.family() == AF_INET6) {
        const ::sockaddr_in6& left = as_ipv6(a.storage_);
        const ::sockaddr_in6& right = as_ipv6(b.storage_);
        return IN6_ARE_ADDR_EQUAL(&left.sin6_addr, &right.sin6_addr) &&
               left.sin6_scope_id == right.sin6_scope_id && a.port() == b.port();
    }
    return true;
}

} // namespace dapx
