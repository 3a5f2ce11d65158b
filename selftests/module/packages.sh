#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The Debian packages, as an administrator sees them: installed, upgraded and downgraded while programs use what is in them,
# removed and purged, and what is left then. They are in build/deb, those of a later version in a folder of that name
# there; build/deb/dkms has what DKMS built of them on the host (dkms.sh), as that takes minutes here. 'make check-packages'
# makes all of it.
# shellcheck disable=SC2317  # functions are called by name
set -u

cd "$(dirname "$0")/../.." || exit 1
debs=${DAPX_BUILD:-build}/deb
# shellcheck source=selftests/module/harness/tap.sh
. selftests/module/harness/tap.sh
server='' client=''
trap 'stop_all; rm -rf "$work"' EXIT
unset DAT_OVERRIDE LD_LIBRARY_PATH

release=$(uname -r)
old=$(echo "$debs"/dapx-dkms_*.deb) new=$(echo "$debs"/*/dapx-dkms_*.deb)
if [[ ! -e $old || ! -e $new || ! -d $debs/dkms/$release ]]; then
	echo "1..0 # SKIP $debs lacks packages, or the module that DKMS built for $release: run 'make check-packages'"
	exit 4
fi
old=$(dpkg-deb -f "$old" Version) new=$(dpkg-deb -f "$new" Version)
packages=$(sed -n 's/^Package: //p' packaging/debian/control)

stop_all() {
	local pid
	for pid in $client $server; do
		kill "$pid" && wait "$pid"
	done 2>/dev/null
	server='' client=''
}

# depmod reads all modules there are, which takes minutes here: those that have to do with RDMA will do.
few_modules() {
	local few=$work/modules
	mkdir -p "$few/kernel/drivers" && cp "/lib/modules/$release"/modules.{builtin,builtin.modinfo,order} "$few" &&
		cp -r "/lib/modules/$release/kernel/drivers/infiniband" "$few/kernel/drivers" &&
		mount --bind "$few" "/lib/modules/$release"
}

# What packages of this kind touch; what is found but not of them is the same before and after.
listing() {
	find /etc /usr/bin /usr/include /usr/src /usr/lib/udev /usr/lib/modules-load.d /usr/share/doc /usr/share/man/man[13] \
		/usr/share/lintian /var/lib/dkms /var/lib/dpkg/info "/lib/modules/$release" ! -name 'modules.*' ! -name ld.so.cache
	find "/usr/lib/$(gcc -print-multiarch)" -maxdepth 3
}

# set_of VERSION: its packages, without those of debug symbols
set_of() {
	local folder=$debs package
	[[ $1 = "$old" ]] || folder=$debs/$1
	for package in $packages; do
		echo "$folder/${package}_$1"_*.deb
	done
}

# DKMS without kernel headers leaves the module unbuilt. Here it finds it built, and does the rest.
dkms_installs() {
	local version=${1%-*}
	dkms status -m dapx -v "$version" | grep "added" && cp -r "$debs/dkms/$release" "/var/lib/dkms/dapx/$version" &&
		dkms install -m dapx -v "$version" -k "$release" && dkms status | tee "$work/status" &&
		grep -q "^dapx/$version, $release, .*: installed" "$work/status" && (($(wc -l <"$work/status") == 1))
}

# put VERSION: of all the packages
put() {
	local package
	# shellcheck disable=SC2046  # several
	dpkg --force-unsafe-io --force-downgrade -i $(set_of "$1") >"$work/dpkg" 2>&1 || { cat "$work/dpkg"; return 1; }
	cat "$work/dpkg"
	for package in $packages; do
		[[ $(dpkg-query -W -f '${db:Status-Abbrev} ${Version}\n' "$package") = "ii  $1" ]] || { dpkg -s "$package"; return 1; }
	done
	dkms_installs "$1"
}

nothing_of_it() {
	few_modules || return
	# As with no rdma-core.
	groupdel rdma
	# The guest's manual pages have no readers.
	rm -f /var/lib/man-db/auto-update
	[[ ! -e /sys/module/dapx ]] || rmmod dapx || return
	cp /etc/dat.conf "$work/dat.conf"
	listing | sort >"$work/before"
	! grep dapx "$work/before"
}

installed() {
	put "$old" && getent group rdma && ldconfig -p | grep libdapx.so.0.1 && ldconfig -p | grep libdapx-c.so.1 || return
	grep -x dapx /usr/lib/modules-load.d/dapx.conf && [[ -x /usr/bin/dapxctl && ! -e /dev/dapx ]] || return
	# Nothing but comments, until somebody wants something.
	! grep -v '^#' /etc/modprobe.d/dapx.conf && sed -i 's/^#\(options dapx max_backlog=\).*/\177/' /etc/modprobe.d/dapx.conf
}

by_its_name() {
	modprobe dapx && [[ $(modinfo -F filename dapx) = */updates/dkms/dapx.ko* && -c /dev/dapx ]] &&
		[[ $(</sys/module/dapx/parameters/max_backlog) = 77 ]] || return
	# There is no udevd here; what it would do, this does.
	udevadm test --action=add "$(udevadm info -q path /sys/class/misc/dapx)" >"$work/udev" 2>&1
	grep -E '60-dapx.rules|GROUP|MODE' "$work/udev"
	[[ $(stat -c '%U:%G %a' /dev/dapx) = "root:rdma 660" ]] || { stat /dev/dapx; return 1; }
}

# serve: the server, when it listens
serve() {
	: >"$work/server"
	dapx-ping --server -d "$DAPX_PEER_DEV" >>"$work/server" 2>&1 &
	server=$!
	local tries
	for ((tries = 0; tries < 600; tries++)); do
		! grep -q '^listening' "$work/server" || return 0
		sleep 0.1
	done
	cat "$work/server"
	return 1
}

exchange() { dapx-ping -q -c "$1" -i 0 -d "$DAPX_DEV" "$DAPX_PEER_IP"; }

tools_work() {
	dapxctl devices | grep -w "$DAPX_DEV" && serve && exchange 200 && dapx-run ibv_devices | grep -w "dapx_$DAPX_DEV" &&
		man -w dapx-ping dat_ep_connect ibv_open_xrc_domain && stop_all
}

programs_are_built() {
	local options
	cat >"$work/opens.c" <<-'END'
		#include <dapx/c.h>
		int main(int argc, char **argv) { return argc != 2 || !dapxc_open(argv[1], 0); }
	END
	options=$(pkg-config --cflags --libs dapx-c)
	# shellcheck disable=SC2086  # options
	cc -o "$work/opens" "$work/opens.c" $options && "$work/opens" "$DAPX_DEV" && ! "$work/opens" nodevice || return
	cc -o "$work/dat12" /usr/share/doc/libdapx-dev/examples/dat12.c -ldat && ldd "$work/dat12" | grep libdat.so.1
}

dat_conf() {
	dapxctl dat-conf --install && grep "^dapx-$DAPX_DEV u1.2 .* libdapx-dat.so.1 " /etc/dat.conf || return
	# Debian 13 has no registry of DAT 2.0.
	[[ ! -e /usr/include/dat2/udat.h ]] || grep "^dapx-$DAPX_DEV u2.0 .* libdapx-dat.so.2 " /etc/dat.conf
}

# Messages in both directions, all the time from here on. Started once: it is what has to outlive everything.
traffic() {
	serve || return
	dapx-ping -c 100000 -i 0.05 -d "$DAPX_DEV" "$DAPX_PEER_IP" >"$work/client" 2>&1 &
	client=$!
	goes_on
}

# Both programs are those from before, and messages are exchanged.
goes_on() {
	local tries before
	before=$(wc -l <"$work/client")
	for ((tries = 0; tries < 300; tries++)); do
		if ! kill -0 "$server" || ! kill -0 "$client"; then
			break
		fi
		(($(wc -l <"$work/client") < before + 20)) || return 0
		sleep 0.1
	done
	tail -n 3 "$work/client" "$work/server"
	return 1
}

# changed VERSION SOURCE-VERSION: while messages go to and fro
changed() {
	local address
	address=$(cat /sys/module/dapx/sections/.text)
	put "$1" && goes_on && grep "dapx: the module from before .* stays loaded.*rmmod dapx; modprobe dapx" "$work/dpkg" || return
	# The one that is loaded was not touched, and new programs use it as well.
	[[ $(cat /sys/module/dapx/sections/.text) = "$address" ]] && exchange 20 &&
		[[ -e /usr/src/dapx-${1%-*} && $(echo /usr/src/dapx-*) = "/usr/src/dapx-${1%-*}" ]] || return
	# A configuration file that was changed stays as it is.
	grep -x 'options dapx max_backlog=77' /etc/modprobe.d/dapx.conf && [[ $(modinfo -F filename dapx) = */updates/dkms/dapx.ko* ]]
}

removed() {
	# shellcheck disable=SC2086  # several
	dpkg --force-unsafe-io -r $packages >"$work/dpkg" 2>&1 || { cat "$work/dpkg"; return 1; }
	cat "$work/dpkg"
	goes_on && [[ -e /sys/module/dapx && -c /dev/dapx && ! -e /usr/bin/dapx-ping && -z $(dkms status) ]] && ! modinfo dapx || return
	grep "dapx: the module stays loaded.*'rmmod dapx'" "$work/dpkg" &&
		grep "dapx: /etc/dat.conf names .*'dapxctl dat-conf --remove', or an editor" "$work/dpkg" || return
	# The configuration is there until it is purged.
	[[ -e /etc/modprobe.d/dapx.conf ]]
}

purged() {
	# shellcheck disable=SC2086  # several
	dpkg --force-unsafe-io -P $packages && goes_on && [[ ! -e /etc/modprobe.d/dapx.conf ]]
}

# What postrm said to do. The programs end in order, with all messages answered.
then_unloaded() {
	! rmmod dapx || return
	kill -INT "$client"
	wait "$client" || { tail "$work/client"; return 1; }
	client=''
	tail -n 2 "$work/client"
	stop_all
	rmmod dapx && [[ ! -e /sys/module/dapx && ! -e /dev/dapx ]]
}

# But for what the administrator put there, and was told to take out.
nothing_is_left() {
	sed -i '/^# Written by .dapxctl dat-conf/,/^# End of what .dapxctl dat-conf/d' /etc/dat.conf
	diff "$work/dat.conf" /etc/dat.conf && getent group rdma && listing | sort | diff "$work/before" - && ! dpkg -l | grep dapx
}

was_loaded=''
[[ ! -e /sys/module/dapx ]] || was_loaded=yes
echo "TAP version 13"
result "nothing of it is there" nothing_of_it
result "install" installed
result "the module by its name, with its options and its rule" by_its_name
result "tools" tools_work
result "programs are built with libdapx-dev" programs_are_built
result "dat.conf is told of the providers" dat_conf
result "messages go to and fro" traffic
result "upgrade meanwhile" changed "$new"
result "downgrade meanwhile" changed "$old"
result "remove meanwhile" removed
result "purge meanwhile" purged
result "programs end, and the module goes" then_unloaded
result "nothing is left" nothing_is_left
# The tests that come after this one want it.
[[ -z $was_loaded ]] || insmod "${DAPX_BUILD:-build}/kmod/$release/dapx.ko"
end_of_results
