// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric.h"
#include "machine.h"

static const char *netdev_of(const struct host *host)
{
	static char netdev[2][64];
	const char *line;
	char path[128];

	/* Remembered, for when the device is not there to be asked. */
	if (!netdev[host->number][0]) {
		snprintf(path, sizeof(path),
			 "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/0",
			 host->device);
		line = read_line(path);
		if (line)
			snprintf(netdev[host->number],
				 sizeof(netdev[host->number]), "%.60s", line);
	}
	return netdev[host->number];
}

int device_note(const struct host *host)
{
	return *netdev_of(host) ? 0 : because("%s has no network device", host->device);
}

int device_remove(const struct host *host)
{
	if (device_note(host))
		return -1;
	return run("timeout 60 rdma link delete %s", host->device);
}

int device_add(const struct host *host)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	__u8 gid[16];

	if (run("rdma link add %s type %s netdev %s", host->device,
		on_siw() ? "siw" : "rxe", netdev_of(host)))
		return -1;
	if (on_siw())
		return 0;
	while (host_gid_index(host, gid) < 0) {
		if (now_ns() > deadline)
			return -1;
		sleep_ms(10);
	}
	return 0;
}

int cable_set(const struct host *from, const struct host *to, bool whole)
{
	/* What goes to somebody who is not there vanishes. */
	static const __u8 nobody[] = { 0x02, 0xda, 0, 0, 0, 0x99 };
	struct arpreq entry = { .arp_flags = ATF_PERM | ATF_COM };
	struct ifreq ifr = {};
	int fd, ret;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return because("socket: %m");
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", netdev_of(to));
	ret = ioctl(fd, SIOCGIFHWADDR, &ifr);
	if (!ret) {
		((struct sockaddr_in *)&entry.arp_pa)->sin_family = AF_INET;
		inet_pton(AF_INET, to->addr,
			  &((struct sockaddr_in *)&entry.arp_pa)->sin_addr);
		entry.arp_ha = ifr.ifr_hwaddr;
		if (!whole)
			memcpy(entry.arp_ha.sa_data, nobody, sizeof(nobody));
		snprintf(entry.arp_dev, sizeof(entry.arp_dev), "%s",
			 netdev_of(from));
		ret = ioctl(fd, SIOCSARP, &entry);
	}
	if (ret)
		because("the way from %s to %s: %m", netdev_of(from), to->addr);
	close(fd);
	return ret;
}

int host_mute(const struct host *host, bool muted)
{
	return run("tc qdisc replace dev %s root %s", netdev_of(host),
		   muted ? "blackhole" : "noqueue");
}

int link_set(const struct host *host, const struct host *to, bool up)
{
	const unsigned int table = 10 + host->number;
	char path[128], mac[32], dev[64];
	const char *line;
	__u8 gid[16];
	__u64 deadline;

	snprintf(dev, sizeof(dev), "%s", netdev_of(host));
	if (!up)
		return run("ip link set %s down", dev);
	snprintf(path, sizeof(path), "/sys/class/net/%s/address",
		 netdev_of(to));
	line = read_line(path);
	if (!line)
		return because("%s: %m", path);
	snprintf(mac, sizeof(mac), "%.31s", line);
	/* As selftests/vm/guest made it. */
	if (run("ip link set %s up", dev) ||
	    run("ip -6 addr replace %s/128 dev %s nodad", host->addr6, dev) ||
	    run("ip route replace %s dev %s src %s table %u", to->addr, dev,
		host->addr, table) ||
	    run("ip -6 route replace %s dev %s src %s table %u", to->addr6,
		dev, host->addr6, table) ||
	    run("ip neigh replace %s dev %s lladdr %s nud permanent", to->addr,
		dev, mac) ||
	    run("ip neigh replace %s dev %s lladdr %s nud permanent",
		to->addr6, dev, mac) ||
	    run("ip neigh replace fe80::da:ff:fe00:%u dev %s lladdr %s nud permanent",
		to->number + 1, dev, mac))
		return -1;
	deadline = in_ms(PATIENCE_MS);
	while (!on_siw() && host_gid_index(host, gid) < 0) {
		if (now_ns() > deadline)
			return -1;
		sleep_ms(10);
	}
	return 0;
}
