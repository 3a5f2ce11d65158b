#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# dapxctl doctor on a machine that is well, and on one that was broken in one way after the other: it names what was broken,
# and how to mend it.
# shellcheck disable=SC2317  # functions are called by name
set -u

build=${DAPX_BUILD:-build}
ctl=$build/tools/dapxctl
release=$(uname -r)
ko=$build/kmod/$release/dapx.ko
# shellcheck source=selftests/module/harness/tap.sh
. "$(dirname "$0")/harness/tap.sh"
trap 'rm -rf "$work"; rm -f "/boot/config-$(uname -r)"' EXIT
unset DAT_OVERRIDE

# Somebody without rights may not reach the tree.
for_all=$work/bin
mkdir "$for_all"
cp "$ctl" "$(ldd "$ctl" | sed -n 's/.*libdapx.* => \([^ ]*\) .*/\1/p')" "$for_all"
chmod -R a+rX "$work"
as_nobody=(env "LD_LIBRARY_PATH=$for_all" setpriv --reuid 65534 --regid 65534 --clear-groups)
nobodys=("${as_nobody[@]}" "$for_all/dapxctl")
getent group rdma >/dev/null || groupadd -r rdma

# await COMMAND...: until it succeeds
await() {
	local tries
	for ((tries = 0; tries < 100; tries++)); do
		! "$@" || return 0
		sleep 0.1
	done
	echo "in vain: $*"
	return 1
}

# doctor CODE PROGRAM...: its lines into $work/out; it exits with CODE, and has nothing for stderr
doctor() {
	local rc=0
	timeout 60 "${@:2}" doctor >"$work/out" 2>"$work/err" </dev/null || rc=$?
	cat "$work/out" "$work/err"
	[[ ! -s $work/err ]] || return
	((rc == $1)) || { echo "exit code $rc, not $1"; return 1; }
}

# ok NAME...: it says so of these
ok() {
	local name
	for name; do
		grep -qE "^ok +$name  " "$work/out" || { echo "not ok: $name"; return 1; }
	done
}

# line STATE NAME CAUSE REMEDY: one of its lines
line() {
	local found
	found=$(grep -E "^$1 +$2  " "$work/out")
	[[ $found = *" $3"*"; "*"$4"* && $found != *$'\n'* ]] && return
	echo "no line '$1 $2': $3; $4"
	return 1
}

# alone COUNT: no more than so many lines are not ok
alone() { (($(grep -vc '^ok ' "$work/out") == $1)) || { echo "not $1 of its lines are about what is wrong"; return 1; }; }

# broken BREAK MEND TEST...: what BREAK has broken MEND mends, and TEST is in between
broken() {
	local rc=0
	"$1" || { echo "cannot be broken: $1"; return 1; }
	"${@:3}" || rc=1
	"$2" || { echo "cannot be mended: $2"; return 1; }
	doctor 0 "$ctl" && alone 0 && return $rc
}

# error NAME CAUSE REMEDY: that alone is wrong
error() { doctor 1 "$ctl" && line error "$@" && alone 1; }
warning() { doctor 0 "$ctl" && line warning "$@" && alone 1; }

healthy() {
	doctor 0 "$ctl" && alone 0 && ok kernel module version node parameters "locked memory" devices "device $DAPX_DEV" \
		"device $DAPX_PEER_DEV"
}

# The kernel's own, which is not in the guest's /boot from the start.
config=/boot/config-$release
own_config=$DAPX_KERNEL_DIR/boot/config-$release
enough() { doctor 0 "$ctl" && grep -q "^ok  *kernel .* has what dapx needs" "$work/out"; }

# Compressed, as kernels give theirs in /proc, and plain.
config_is_read() { gzip <"$own_config" >"$config" && enough && cp "$own_config" "$config" && enough; }

no_option() { sed 's/^CONFIG_INFINIBAND_USER_MEM=.*/# & is not set/' "$own_config" >"$config"; }
options_again() { cp "$own_config" "$config"; }

# modules FILE...: what the folder of modules has, in the stead of what it had, and the module is not loaded
modules() {
	local file
	rm -rf "$work/modules"
	mkdir -p "$work/modules"
	for file; do
		mkdir -p "$work/modules/${file%/*}" && : >"$work/modules/$file" || return
	done
	[[ ! -d $work/modules/$release ]] || echo "$indexed" >"$work/modules/$release/modules.dep"
	mount --bind "$work/modules" /lib/modules && rmmod dapx
}
indexed=
not_loaded() { indexed='updates/dapx.ko: kernel/x.ko' modules "$release/updates/dapx.ko"; }
not_indexed() { modules "$release/updates/dapx.ko"; }
not_installed() { modules "$release/kernel/x.ko"; }
other_kernel() { modules "$release/kernel/x.ko" 6.99.0-other/updates/dkms/dapx.ko.xz; }
no_modules() { modules 6.99.0-other/kernel/x.ko; }
blacklisted() { not_loaded && printf '# by\nblacklist dapx\n' >/etc/modprobe.d/test.conf; }
barred() { not_loaded && echo "install dapx /bin/false" >/etc/modprobe.d/test.conf; }
modules_again() {
	rm -f /etc/modprobe.d/test.conf
	umount /lib/modules && insmod "$ko"
}

# Whoever it is, and nothing else is told than what is known.
without_module() {
	local of
	error module "not loaded" "run 'modprobe dapx' as root" || return
	for of in version node parameters; do
		! grep -qE "^[a-z]+ +$of " "$work/out" || { echo "told of $of"; return 1; }
	done
	doctor 1 "${nobodys[@]}" && line error module "not loaded" "run 'modprobe dapx' as root"
}

no_node() {
	node=$(stat -c 'c 0x%t 0x%T' /dev/dapx)
	rm /dev/dapx
}
# The zero device, which a node with an old number could have become.
foreign_node() { no_node && mknod -m 666 /dev/dapx c 1 5; }
# A number that no device has.
stale_node() { no_node && mknod -m 666 /dev/dapx c 10 254 && ! : </dev/dapx; } 2>/dev/null
plain_node() { no_node && : >/dev/dapx; }
# shellcheck disable=SC2086  # several
node_again() { rm -f /dev/dapx && mknod -m 600 /dev/dapx $node; }

# What it says, done.
node_by_remedy() { # node_by_remedy CAUSE
	local remedy
	error node "$1" "mknod -m 660 /dev/dapx c $own; chgrp rdma /dev/dapx' as root" || return
	remedy=$(sed -n "s/^error  *node .* run '\([^']*\)' as root/\1/p" "$work/out")
	eval "$remedy" && doctor 0 "$ctl" && alone 0
}

node_is() { mode=$(stat -c %a /dev/dapx) && chown "$1" /dev/dapx && chmod "$2" /dev/dapx; }
roots_node() { node_is root:root 600; }
groups_node() { node_is root:rdma 660; }
everybodys_node() { node_is root:root 666; }
old_node() { chown root:root /dev/dapx && chmod "$mode" /dev/dapx; }

denied() { # denied REMEDY
	doctor 1 "${nobodys[@]}" && line error node "nobody may not open /dev/dapx: it is $(stat -c '%U:%G, 0%a' /dev/dapx)" "$1" &&
		ok module version devices
}

denied_member() {
	local rc
	cp /etc/group "$work/group"
	usermod -aG rdma nobody
	denied "log in again: nobody is in group rdma since"
	rc=$?
	cat "$work/group" >/etc/group
	return $rc
}

allowed() { doctor 0 "${nobodys[@]}" && ok node; }

little_memory() { # little_memory BYTES CODE STATE TEXT
	doctor "$2" prlimit "--memlock=$1:$1" "${nobodys[@]}" && line "$3" "locked memory" "nobody may lock $4" "raise it with 'ulimit -l'"
}

# Without the two that programs use: no more than one is well, or none.
no_devices() { rdma link del "$DAPX_DEV" && rdma link del "$DAPX_PEER_DEV"; }
devices_again() {
	rdma link add "$DAPX_DEV" type "$RDMA" netdev "$DAPX_NETDEV" &&
		rdma link add "$DAPX_PEER_DEV" type "$RDMA" netdev "$DAPX_PEER_NETDEV" && await active "$DAPX_PEER_DEV"
}
active() { grep -q ACTIVE "/sys/class/infiniband/$1/ports/1/state"; }
not_active() { ! active "$1"; }

# One on a pair of interfaces of its own.
add_spare() {
	ip link add da type veth peer name db && ip link set da up && ip link set db up && ip addr add 192.0.2.1/24 dev da &&
		rdma link add spare type "$RDMA" netdev da && await active spare
}
del_spare() { rdma link del spare && ip link del da; }
spare_alone() { add_spare && no_devices; }
devices_for_spare() { del_spare && devices_again; }

spare_down() { spare_alone && ip link set da down && await not_active spare; }
beside_down() { add_spare && ip link set da down && await not_active spare; }
spare_unplugged() { spare_alone && ip link set db down && await not_active spare; }
spare_unaddressed() { spare_alone && echo 1 >/proc/sys/net/ipv6/conf/da/disable_ipv6 && ip addr flush dev da; }

# What it says, done.
no_device() {
	local netdev
	error devices "there is no RDMA device" "'dapxctl rxe add $DAPX_NETDEV' as root makes one on a network interface" || return
	netdev=$(sed -n "s/.*'dapxctl rxe add \([^ ]*\)' as root.*/\1/p" "$work/out")
	"$ctl" rxe add "$netdev" && await active rxe0 && doctor 0 "$ctl" && alone 0 && "$ctl" rxe del rxe0
}

namespace() { ip netns add elsewhere; }
no_namespace() { ip netns del elsewhere; }
of_another_namespace() {
	doctor 1 ip netns exec elsewhere "$ctl" && line error "device $DAPX_DEV" \
		"its network interface $DAPX_NETDEV is in another network namespace" "run programs there"
}

exclusive() { rdma system set netns exclusive && namespace; }
shared() { no_namespace && await rdma system set netns shared; }
not_of_this_namespace() {
	doctor 0 "$ctl" && grep -q '^ok  *devices .*, of this network namespace alone' "$work/out" || return
	doctor 1 ip netns exec elsewhere "$ctl" &&
		line error devices "this network namespace has no RDMA device, and sees no other's ('rdma system': exclusive)" \
			"run 'rdma dev set DEVICE netns NAME'" && alone 1
}

# dat_conf DEVICE LIBRARY: names them
dat_conf() {
	cp /etc/dat.conf "$work/dat.conf" 2>/dev/null
	printf '# by a test\ndapx-x u1.2 threadsafe default %s dapx.0.1 "%s" ""\n' "$2" "$1" >/etc/dat.conf
}
dat_conf_again() { if [[ -e $work/dat.conf ]]; then cat "$work/dat.conf" >/etc/dat.conf; else rm /etc/dat.conf; fi; }
provider=$(realpath "$build")/lib/dat/libdapx-dat.so.1
dat_well() { dat_conf "$DAPX_DEV" "$provider"; }
dat_device() { dat_conf gone0 "$provider"; }
dat_library() { dat_conf "$DAPX_DEV" libdapx-dat.so.99; }
dat_named() { doctor 0 "$ctl" && alone 0 && ok dat.conf; }

# As after an upgrade.
old_version() { echo 0.0.9 >"$work/version" && mount --bind "$work/version" /sys/module/dapx/version; }
right_version() { umount /sys/module/dapx/version; }

parameters=/sys/module/dapx/parameters
no_objects() { echo 0 >$parameters/max_objects; }
# What else fails then depends on who asks.
told_of_parameters() { doctor 1 "$ctl" && line error parameters "the module's max_objects is 0" "modinfo -p dapx"; }
objects_again() { echo 65536 >$parameters/max_objects; }
few_requests() { echo 2 >$parameters/max_backlog; }
requests_again() { echo 1024 >$parameters/max_backlog; }

# The copy still looks for libraries where the build put them.
no_verbs() { : >"$for_all/dapx-run" && mount -t tmpfs none "$build/lib/ofed" && everybodys_node; }
verbs_again() { rm "$for_all/dapx-run" && umount "$build/lib/ofed" && old_node; }
library_missing() { doctor 0 "${nobodys[@]}" && line warning dapx-run "cannot load its library: libdapx-verbs.so: " "run 'ldconfig' as root"; }

as_json() {
	"$ctl" doctor -j >"$work/json" && python3 - "$work/json" "$1" <<-'EOF'
		import json, sys
		checks = json.load(open(sys.argv[1]))
		assert all(set(check) == {"name", "state", "text", "remedy"} for check in checks), checks
		assert all((check["remedy"] is None) == (check["state"] == "ok") for check in checks), checks
		assert [check["name"] for check in checks if check["state"] != "ok"] == sys.argv[2].split(), checks
		assert [check["name"] for check in checks][:4] == ["kernel", "module", "version", "node"], checks
	EOF
}

echo "TAP version 13"
result "a machine that is well" healthy
result "the same, as JSON" as_json ""
result "the kernel's configuration" config_is_read
result "a kernel that lacks an option" broken no_option options_again \
	error kernel "$release lacks CONFIG_INFINIBAND_USER_MEM (by /boot/config-$release)" "boot a kernel that has it"
result "the module is not loaded" broken not_loaded modules_again without_module
result "the module is not in modules.dep" broken not_indexed modules_again \
	error module "not loaded: /lib/modules/$release/updates/dapx.ko is not in modules.dep" "run 'depmod; modprobe dapx' as root"
result "the module is not installed" broken not_installed modules_again \
	error module "not loaded: it is not installed for this kernel, $release" "install dapx-dkms and this kernel's headers"
result "the module is another kernel's" broken other_kernel modules_again \
	error module "not loaded: it is not installed for this kernel, $release, but for 6.99.0-other" "run 'dkms autoinstall'"
result "no modules of this kernel" broken no_modules modules_again \
	error module "not loaded, and there is no /lib/modules/$release" "restart the machine"
result "the module is blacklisted" broken blacklisted modules_again \
	error module "not loaded when the machine started: blacklisted by /etc/modprobe.d/test.conf, line 2" "take that out, and run 'modprobe dapx'"
result "the module is barred" broken barred modules_again \
	error module "not loaded: blacklisted by /etc/modprobe.d/test.conf, line 1" "take that out, and run 'modprobe dapx'"
result "a module of another version" broken old_version right_version \
	warning version "the module that is loaded is 0.0.9, the library " "run 'rmmod dapx; modprobe dapx' as root"
own=$(tr : ' ' </sys/class/misc/dapx/dev)
result "no node" broken no_node node_again node_by_remedy "there is no /dev/dapx, though the module is loaded"
result "a node of another device" broken foreign_node node_again node_by_remedy \
	"/dev/dapx is device 1 5, and the module is device $own"
result "a node of no device" broken stale_node node_again node_by_remedy "/dev/dapx is device 10 254, and the module is device $own"
result "a file for a node" broken plain_node node_again node_by_remedy "/dev/dapx is no character device, and the module is device $own"
result "a node of root's" broken roots_node old_node denied "run 'chgrp rdma /dev/dapx; chmod 660 /dev/dapx; usermod -aG rdma nobody'"
result "a node of a group's" broken groups_node old_node denied "run 'usermod -aG rdma nobody' as root and log in again"
result "a group that was joined just now" broken groups_node old_node denied_member
result "a node of everybody's" broken everybodys_node old_node allowed
result "no objects" broken no_objects objects_again told_of_parameters
result "few requests" broken few_requests requests_again \
	warning parameters "the module's max_backlog is 2" "mend it in /etc/modprobe.d/dapx.conf"
result "little locked memory" broken everybodys_node old_node little_memory 65536 0 warning "64 KiB (RLIMIT_MEMLOCK)"
result "no locked memory" broken everybodys_node old_node little_memory 0 1 error "0 bytes (RLIMIT_MEMLOCK): no memory can be registered"
result "no RDMA device" broken no_devices devices_again no_device
result "an interface that is down" broken spare_down devices_for_spare \
	error "device spare" "port 1 is DOWN: its network interface da is down" "run 'ip link set da up' as root"
result "the same, beside devices that work" broken beside_down del_spare \
	warning "device spare" "port 1 is DOWN: its network interface da is down" "run 'ip link set da up' as root"
result "an interface without carrier" broken spare_unplugged devices_for_spare \
	error "device spare" "port 1 is DOWN: its network interface da has no carrier" "see its cable"
result "an interface without address" broken spare_unaddressed devices_for_spare \
	error "device spare" "its network interface da has no IP address" "run 'ip addr add ADDRESS/PREFIX dev da' as root"
result "an interface of another namespace" broken namespace no_namespace of_another_namespace
result "RDMA devices of one namespace each" broken exclusive shared not_of_this_namespace
result "lines of dat.conf" broken dat_well dat_conf_again dat_named
result "dat.conf names a device that is gone" broken dat_device dat_conf_again \
	warning dat.conf "/etc/dat.conf, line 2: there is no RDMA device gone0" "run 'dapxctl dat-conf --install' as root"
result "dat.conf names a library that is gone" broken dat_library dat_conf_again \
	warning dat.conf "/etc/dat.conf, line 2: libdapx-dat.so.99 cannot be loaded" "install dapx-dat-provider"
result "dapx-run without its library" broken no_verbs verbs_again library_missing
result "what is wrong, as JSON" broken few_requests requests_again as_json parameters
result "a machine that is well again" healthy
end_of_results
