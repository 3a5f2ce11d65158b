#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What 'make install' puts in place, used as anybody would: the module by its name, programs of packages with nothing
# but the provider's name given to them, programs that are built against it; and then taken away.
# shellcheck disable=SC2317  # functions are called by name
set -u

cd "$(dirname "$0")/../.." || exit 1
build=${DAPX_BUILD:-build}
# shellcheck source=selftests/module/harness/tap.sh
. selftests/module/harness/tap.sh
# shellcheck source=selftests/module/harness/dat.sh
. selftests/module/harness/dat.sh
server=''
dat2=/usr/include/dat2/udat.h
[[ -e $dat2 ]] || dat2=''
# Whoever comes next may need other modules than these few.
trap '[[ -z $server ]] || kill "$server" 2>/dev/null; umount "/lib/modules/$(uname -r)" 2>/dev/null; rm -rf "$work"' EXIT
unset DAT_OVERRIDE LD_LIBRARY_PATH

# What an installation touches.
listing() {
	find /usr/local /lib/modules/"$(uname -r)" \( ! -type d -o -name '*dapx*' -o -name dat \) ! -name 'modules.*' | sort
	! cat /etc/dat.conf 2>/dev/null
}

# depmod reads all modules there are, which takes minutes here: those that have to do with RDMA will do.
few_modules() {
	local here few=$work/modules
	here=/lib/modules/$(uname -r)
	mkdir -p "$few/kernel/drivers" &&
		cp "$here"/modules.{builtin,builtin.modinfo,order} "$few" &&
		cp -r "$here/kernel/drivers/infiniband" "$few/kernel/drivers" &&
		mount --bind "$few" "$here"
}

# Where no dynamic linker looks.
elsewhere() {
	local root=$work/elsewhere tool
	uname -r >"$build/kmod/release"
	make install BUILD="$build" DESTDIR="$root" PREFIX=/opt/dapx || return
	for tool in dapxctl dapx-ping dapx-perf; do
		"$root/opt/dapx/bin/$tool" --version || return
	done
	"$root/opt/dapx/bin/dapx-run" true || return
	make uninstall DESTDIR="$root" PREFIX=/opt/dapx && [[ -z $(find "$root" ! -type d) && ! -e $root/opt/dapx/share/dapx ]]
}

# For the kernel that runs, whichever was built last.
install_it() {
	few_modules || return
	listing >"$work/before"
	uname -r >"$build/kmod/release"
	make install BUILD="$build"
}

by_its_name() { rmmod dapx && modprobe dapx && [[ $(modinfo -F filename dapx) = */updates/dapx.ko && -c /dev/dapx ]]; }

configuration() {
	dapxctl dat-conf --install && grep -q "^dapx-$DAPX_DEV u1.2 .* libdapx-dat.so.1 " /etc/dat.conf &&
		{ [[ -z $dat2 ]] || grep -q "^dapx-$DAPX_DEV u2.0 .* libdapx-dat.so.2 " /etc/dat.conf; }
}

# serve TEXT PROGRAM...: until it says TEXT
serve() {
	local text=$1 tries
	shift
	stdbuf -oL "$@" >"$work/server" 2>&1 &
	server=$!
	for ((tries = 0; tries < 600; tries++)); do
		! grep -q "$text" "$work/server" || return 0
		sleep 0.1
	done
	cat "$work/server"
	return 1
}

ended() {
	wait "$server" || { cat "$work/server"; return 1; }
	server=''
}

packaged() {
	local to=(-s "$DAPX_PEER_IP" -D "dapx-$DAPX_DEV" -n 20000)
	serve "Service Point Ready" dapltest -T S -D "dapx-$DAPX_PEER_DEV" -n 20000 || return
	dapltest -T T "${to[@]}" -i 20 -t 1 -w 1 client SR 256 server RW 4096 client RR 4096 server SR 256 >"$work/client" 2>&1
	cat "$work/client"
	grep -q 'Total WQE' "$work/client" && clean "$work/client" || return
	dapltest -T Q "${to[@]}" >/dev/null && ended
}

# As the example's first lines say.
of_1_2() {
	cc -o "$work/dat12" Documentation/examples/dat12.c -ldat && serve listens "$work/dat12" "dapx-$DAPX_PEER_DEV" || return
	seq 100 | timeout 100 "$work/dat12" "dapx-$DAPX_DEV" "$DAPX_PEER_IP" && ended && seq 100 | diff - <(grep -v listens "$work/server")
}

with_the_library() {
	local options
	cat >"$work/opens.c" <<-'EOF'
		#include <dapx/c.h>
		int main(int argc, char **argv) { return argc != 2 || !dapxc_open(argv[1], 0); }
	EOF
	options=$(pkg-config --cflags --libs dapx-c)
	# shellcheck disable=SC2086  # options
	cc -o "$work/opens" "$work/opens.c" $options && "$work/opens" "$DAPX_DEV" && ! "$work/opens" nodevice
}

# Verbs, and a program that OFED's header is for.
of_verbs() {
	local options
	cat >"$work/domain.c" <<-'EOF'
		#include <infiniband/verbs.h>
		#include <fcntl.h>
		#include <string.h>
		int main(int argc, char **argv)
		{
			struct ibv_device **list = ibv_get_device_list(NULL), **one;
			for (one = list; list && *one; one++)
				if (argc == 2 && !strcmp(ibv_get_device_name(*one), argv[1])) {
					struct ibv_context *context = ibv_open_device(*one);
					struct ibv_xrc_domain *domain = ibv_open_xrc_domain(context, -1, O_CREAT);
					return !domain || ibv_close_xrc_domain(domain);
				}
			return 2;
		}
	EOF
	options=$(pkg-config --cflags --libs dapx-ofed)
	# shellcheck disable=SC2086  # options
	cc -o "$work/domain" "$work/domain.c" $options && "$work/domain" "dapx_$DAPX_DEV" && ! "$work/domain" nodevice &&
		dapx-run ibv_devices | grep -w "dapx_$DAPX_DEV"
}

# bash-completion looks for the command's name in this folder.
completions() {
	local command
	for command in dapxctl dapx-ping dapx-perf dapx-run; do
		# shellcheck disable=SC2016  # the other shell's
		bash -c '. "/usr/local/share/bash-completion/completions/$1" && complete -p "$1"' - "$command" || return
	done
}

# Whatever was built since.
taken_away() {
	echo 1.2.3 >"$build/kmod/release"
	dapxctl dat-conf --remove && make uninstall BUILD="$build" && listing | diff "$work/before" - || return
	make uninstall BUILD="$build" 2>&1 | grep "there is no /usr/local/share/dapx/manifest; is PREFIX the same?"
}

echo "TAP version 13"
result "make install, elsewhere" elsewhere
result "make install" install_it
result "the module by its name" by_its_name
result "dat.conf is told of the providers" configuration
if [[ -n $dat2 ]]; then
	result "a program of the package" packaged
else
	skip "a program of the package" "there is no DAT 2.0 here"
fi
result "a program of DAT 1.2" of_1_2
result "a program with the library" with_the_library
result "programs of verbs" of_verbs
result "completions" completions
result "make uninstall" taken_away
end_of_results
