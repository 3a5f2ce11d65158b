// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "fake_sysfs.hpp"
#include "source.hpp"

#include <dapx/address.hpp>

#include <gtest/gtest.h>

#include <cerrno>

#include <netinet/in.h>

namespace dapx::test {
namespace {

TEST(Address, Ipv4)
{
    const auto address = Address::parse("10.0.0.1", 7471);
    ASSERT_TRUE(address);
    EXPECT_EQ(address->family(), AF_INET);
    EXPECT_EQ(address->port(), 7471);
    EXPECT_EQ(address->host(), "10.0.0.1");
    EXPECT_EQ(address->to_string(), "10.0.0.1:7471");
    EXPECT_FALSE(address->is_link_local());
    EXPECT_FALSE(address->is_any());
    const auto& raw = reinterpret_cast<const sockaddr_in&>(address->storage());
    EXPECT_EQ(ntohl(raw.sin_addr.s_addr), 0x0a000001U);
    EXPECT_EQ(ntohs(raw.sin_port), 7471);
}

TEST(Address, Ipv6)
{
    const auto address = Address::parse("fd00::2", 1);
    ASSERT_TRUE(address);
    EXPECT_EQ(address->family(), AF_INET6);
    EXPECT_EQ(address->to_string(), "[fd00::2]:1");
    const auto bracketed = Address::parse("[fd00::2]", 1);
    ASSERT_TRUE(bracketed);
    EXPECT_EQ(*address, *bracketed);
}

TEST(Address, LinkLocalKeepsItsInterface)
{
    const auto address = Address::parse("fe80::1%lo", 5);
    ASSERT_TRUE(address);
    EXPECT_TRUE(address->is_link_local());
    EXPECT_EQ(address->to_string(), "[fe80::1%lo]:5");
    EXPECT_NE(*address, *Address::parse("fe80::1", 5));
}

TEST(Address, NoneAndAny)
{
    const Address none;
    EXPECT_FALSE(none);
    EXPECT_EQ(none.to_string(), "-");
    EXPECT_EQ(none.port(), 0);
    EXPECT_TRUE(Address::any(AF_INET, 3).is_any());
    EXPECT_EQ(Address::any(AF_INET, 3).to_string(), "0.0.0.0:3");
    EXPECT_EQ(Address::any(AF_INET6, 3).to_string(), "[::]:3");
    EXPECT_TRUE(Address::any(AF_INET6, 3).is_any());
    sockaddr other{};
    other.sa_family = AF_UNIX;
    EXPECT_FALSE(Address(other));
}

TEST(Address, Equality)
{
    const Address a = *Address::parse("10.0.0.1", 1);
    EXPECT_EQ(a, *Address::parse("10.0.0.1", 1));
    EXPECT_NE(a, a.with_port(2));
    EXPECT_NE(a, *Address::parse("10.0.0.2", 1));
    EXPECT_NE(a, *Address::parse("::1", 1));
    EXPECT_EQ(Address(), Address());
}

TEST(Address, Nonsense)
{
    for (const char* host : {"", "10.0.0.256", "no such host", "[", "1.2.3.4.5", "fe80::1::2"}) {
        const auto address = Address::parse(host, 1);
        ASSERT_FALSE(address) << host;
        EXPECT_EQ(address.error().code(), EADDRNOTAVAIL);
        EXPECT_NE(address.error().message().find("cannot find the address"), std::string::npos);
    }
}

TEST(Address, OfDevice)
{
    FakeSysfs sysfs;
    sysfs.rxe("rxe0", "lo");
    const auto addresses = detail::addresses_of_device("rxe0", sysfs.path());
    ASSERT_TRUE(addresses);
    ASSERT_FALSE(addresses->empty());
    EXPECT_EQ(addresses->front().host(), "127.0.0.1");
    EXPECT_EQ(detail::addresses_of_device("rxe1", sysfs.path()).error().code(), ENODEV);
    sysfs.rxe("rxe2", "no-such-interface");
    EXPECT_TRUE(detail::addresses_of_device("rxe2", sysfs.path())->empty());
}

TEST(Address, SourceFitsTheDestination)
{
    FakeSysfs sysfs;
    sysfs.rxe("rxe0", "lo");
    const auto source = detail::source_for("rxe0", *Address::parse("10.0.0.2", 7), sysfs.path());
    ASSERT_TRUE(source) << source.error().message();
    EXPECT_EQ(source->host(), "127.0.0.1");
    EXPECT_EQ(source->port(), 0);
    const auto none = detail::source_for("rxe0", *Address::parse("fe80::9", 7), sysfs.path());
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code(), EADDRNOTAVAIL);
    EXPECT_NE(none.error().message().find("no IPv6 address"), std::string::npos);
}

/// "192.0.2.1/24"
detail::LocalAddress local(const std::string& text)
{
    const auto slash = text.find('/');
    return {Address::parse(text.substr(0, slash), 0).value(),
            static_cast<unsigned>(std::stoul(text.substr(slash + 1)))};
}

/// Which of @p addresses is taken; "" for none.
std::string source(const std::vector<std::string>& addresses, const std::string& destination)
{
    std::vector<detail::LocalAddress> locals;
    for (const std::string& text : addresses)
        locals.push_back(local(text));
    const Address* found = detail::best_source(locals, Address::parse(destination, 7).value());
    return found != nullptr ? found->host() : "";
}

TEST(Address, SourceIsOfTheSubnetOfTheDestination)
{
    EXPECT_EQ(source({"10.0.0.1/24", "192.168.1.5/24"}, "192.168.1.9"), "192.168.1.5");
    EXPECT_EQ(source({"10.0.0.1/8", "10.1.0.1/16"}, "10.1.2.3"), "10.1.0.1");
    EXPECT_EQ(source({"10.1.0.1/16", "10.0.0.1/8"}, "10.2.2.3"), "10.0.0.1");
    EXPECT_EQ(source({"10.0.0.1/30", "10.0.0.5/30"}, "10.0.0.6"), "10.0.0.5");
    EXPECT_EQ(source({"fd00:1::1/64", "fd00:2::1/64"}, "fd00:2::9"), "fd00:2::1");
    EXPECT_EQ(source({"fd00:1::1/128", "fd00:2::1/128"}, "fd00:2::9"), "fd00:1::1");
}

TEST(Address, SourceBehindARouterIsTheFirst)
{
    EXPECT_EQ(source({"10.0.0.1/24", "192.168.1.5/24"}, "198.51.100.1"), "10.0.0.1");
    EXPECT_EQ(source({"10.0.0.1/24"}, "fd00:2::9"), "");
}

TEST(Address, SourceIsTheDestinationOnlyIfThereIsNoOther)
{
    EXPECT_EQ(source({"10.0.0.1/24", "10.0.0.2/24"}, "10.0.0.1"), "10.0.0.2");
    EXPECT_EQ(source({"10.0.0.1/24", "192.168.1.5/24"}, "10.0.0.1"), "192.168.1.5");
    EXPECT_EQ(source({"10.0.0.1/24"}, "10.0.0.1"), "10.0.0.1");
}

TEST(Address, AllAnswersInTheirOrder)
{
    const auto all = Address::parse_all("10.0.0.1", 7);
    ASSERT_TRUE(all);
    EXPECT_EQ(*all, std::vector{*Address::parse("10.0.0.1", 7)});
    EXPECT_EQ(Address::parse_all("localhost", 7).value().front(),
              Address::parse("localhost", 7).value());
    EXPECT_EQ(Address::parse_all("10.0.0.256", 7).error().code(), EADDRNOTAVAIL);
}

} // namespace
} // namespace dapx::test
