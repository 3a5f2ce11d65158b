// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "devices.hpp"
#include "fake_module.hpp"
#include "fake_sysfs.hpp"

#include <dapx/device_list.hpp>

#include <gtest/gtest.h>

#include <cerrno>

namespace dapx::test {
namespace {

TEST(DeviceList, EmptyWithoutDevices)
{
    const FakeSysfs sysfs;
    const DeviceList list(detail::read_devices(sysfs.path(), "/nonexistent/dapx"));
    EXPECT_TRUE(list.devices().empty());
    const auto only = list.only_usable();
    ASSERT_FALSE(only);
    EXPECT_EQ(only.error().code(), ENODEV);
    EXPECT_NE(only.error().message().find("rdma link add"), std::string::npos);
}

TEST(DeviceList, WithoutTheModuleNoneIsUsable)
{
    FakeSysfs sysfs;
    sysfs.rxe("rxe0", "lo");
    const DeviceList list(detail::read_devices(sysfs.path(), "/nonexistent/dapx"));
    ASSERT_EQ(list.devices().size(), 1U);
    EXPECT_FALSE(list.devices()[0].usable);
    EXPECT_NE(list.devices()[0].reason.find("not loaded"), std::string::npos);
    EXPECT_EQ(list.only_usable().error().message(), list.devices()[0].reason);
}

TEST(DeviceList, ReadsWhatSysfsTells)
{
    FakeModule module;
    module.devices = {"rxe0"};
    FakeSysfs sysfs;
    sysfs.rxe("rxe0", "lo");
    sysfs.hardware("mlx5_0", "mlx5_core");
    // An iWARP device has no table of interfaces: its first GID is the Ethernet address.
    sysfs.device("siw0", "4: RNIC", "4: ACTIVE", "Ethernet");
    sysfs.file("class/infiniband/siw0/ports/1/gids/0", "0242:ac11:0002:0000:0000:0000:0000:0000\n");
    sysfs.file("class/net/eth7/address", "02:42:ac:11:00:02\n");

    const DeviceList list(detail::read_devices(sysfs.path(), module.node()));
    ASSERT_EQ(list.devices().size(), 3U);
    const DeviceInfo& mlx = list.devices()[0];
    EXPECT_EQ(mlx.name, "mlx5_0");
    EXPECT_EQ(mlx.driver, "mlx5_core");
    EXPECT_EQ(mlx.transport, "InfiniBand");
    EXPECT_EQ(mlx.ports.at(0).state, "DOWN");
    EXPECT_EQ(mlx.ports.at(0).netdev, "");
    EXPECT_FALSE(mlx.usable);
    const DeviceInfo& rxe = list.devices()[1];
    EXPECT_EQ(rxe.transport, "RoCE");
    EXPECT_EQ(rxe.ports.at(0).number, 1U);
    EXPECT_EQ(rxe.ports.at(0).netdev, "lo");
    EXPECT_EQ(rxe.addresses.at(0).host(), "127.0.0.1");
    EXPECT_TRUE(rxe.usable);
    const DeviceInfo& siw = list.devices()[2];
    EXPECT_EQ(siw.transport, "iWARP");
    EXPECT_EQ(siw.ports.at(0).netdev, "eth7");
    EXPECT_EQ(list.only_usable().value(), "rxe0");
}

TEST(DeviceList, SeveralUsableAreNamed)
{
    FakeModule module;
    module.devices = {"rxe0", "rxe1"};
    FakeSysfs sysfs;
    sysfs.rxe("rxe0", "lo");
    sysfs.rxe("rxe1", "lo");
    const auto only = DeviceList(detail::read_devices(sysfs.path(), module.node())).only_usable();
    ASSERT_FALSE(only);
    EXPECT_EQ(only.error().code(), ENOTUNIQ);
    EXPECT_NE(only.error().message().find("rxe0, rxe1"), std::string::npos);
}

} // namespace
} // namespace dapx::test
