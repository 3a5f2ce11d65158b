#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs of Debian's ibverbs-utils and perftest, unmodified, on dapx by dapx-run: between two devices of dapx, and with
# either end on libibverbs where the transport is RC. With the argument "short", some of them once: for the debug
# kernel, which is slow.
# shellcheck disable=SC2317  # functions are called by name
set -u

build=$(realpath "${DAPX_BUILD:-build}")
# shellcheck source=selftests/module/harness/tap.sh
. "$(dirname "$0")/harness/tap.sh"
server=''
trap '[[ -z $server ]] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT

run=$build/tools/dapx-run
here=dapx_$DAPX_DEV there=dapx_$DAPX_PEER_DEV
# How often they send; more, where the kernel is quick.
count=$(awk "BEGIN { n = 200 * (\"${DAPX_SCALE:-1}\" + 0); print n < 20 ? 20 : n }")
# Of programs that ask for a name: where the other one is.
host=127.0.0.1
port=18600

# gid DEVICE: the index of its GID of RoCE version 2 and an IPv4 address
gid() {
	local dir=/sys/class/infiniband/${1#dapx_}/ports/1 index
	for index in "$dir"/gids/*; do
		index=${index##*/}
		grep -q '^0000:0000:0000:0000:0000:ffff:' "$dir/gids/$index" 2>/dev/null || continue
		[[ $(<"$dir/gid_attrs/types/$index") = "RoCE v2" ]] && echo "$index" && return
	done
	return 1
}

every="send_lat send_bw write_lat write_bw read_lat read_bw atomic_lat atomic_bw"
some="send_bw write_lat read_bw atomic_lat"

# As a client, until the server listens: those programs do not say when they do.
until_heard() {
	local try
	for ((try = 0; try < 100; try++)); do
		ss -Hltn "sport = :$port" | grep -q . && break
		sleep 0.1
	done
	timeout 120 "$@" >"$work/said" 2>&1
}

# between SERVER-DEVICE CLIENT-DEVICE GID-OPTION PROGRAM [OPTION...]: both ends of a program, each of which has to succeed
between() {
	local server_device=$1 client_device=$2 option=$3 program=$4 ok=0
	shift 4
	((port++))
	timeout 120 "$run" "$program" -d "$server_device" -p $port "$option" "$(gid "$server_device")" "$@" >"$work/server" 2>&1 &
	server=$!
	until_heard "$run" "$program" -d "$client_device" -p $port "$option" "$(gid "$client_device")" "$@" $host || ok=1
	[[ $ok = 0 ]] || { kill "$server" 2>/dev/null; cat "$work/said"; }
	wait "$server" || ok=1
	server=''
	return $ok
}

# Its data checked, by polling and with events.
pingpong() { # pingpong SERVER-DEVICE CLIENT-DEVICE PROGRAM WHAT-IT-SAYS [OPTION...]
	between "$1" "$2" -g "$3" -n "$count" "${@:5}" && grep -q "$4" "$work/said" && grep -q "$4" "$work/server"
}

rc_pingpong() {
	pingpong "$1" "$2" ibv_rc_pingpong "$count iters in" -c && pingpong "$1" "$2" ibv_rc_pingpong "$count iters in" -e
}
srq_pingpong() {
	pingpong "$1" "$2" ibv_srq_pingpong "$count iters in" && pingpong "$1" "$2" ibv_srq_pingpong "$count iters in" -e
}
xsrq_pingpong() {
	pingpong "$there" "$here" ibv_xsrq_pingpong success && pingpong "$there" "$here" ibv_xsrq_pingpong success -e
}

# Its table has a line of the size and the number of iterations.
# On a busy machine it does not trust its own clock: then again.
perftest() { # perftest SERVER-DEVICE CLIENT-DEVICE WHAT [OPTION...]
	local try
	for try in 1 2 3; do
		between "$1" "$2" -x "ib_$3" -n "$count" "${@:4}" >"$work/why" &&
			grep -qE "^ *[0-9]+ +$count +[0-9.]+" "$work/said" && return
		grep -q 'Correlation coefficient' "$work/said" "$work/server" || break
	done
	echo "try $try"
	cat "$work/why" "$work/said" "$work/server"
	return 1
}

perftests() { # perftests "WHAT..." SERVER-DEVICE CLIENT-DEVICE [OPTION...]
	local what
	for what in $1; do
		perftest "$2" "$3" "$what" "${@:4}" || { echo "ib_$what"; return 1; }
	done
}

devices() {
	"$run" ibv_devices >"$work/said" && grep -qw "$here" "$work/said" && grep -qw "$DAPX_DEV" "$work/said" &&
		! ibv_devices | grep -q dapx_
}

device_information() {
	local info
	info=$("$run" ibv_devinfo -v -d "$here") || return
	local text
	for text in "state:.*PORT_ACTIVE" XRC "::ffff:$DAPX_IP, RoCE v2"; do
		grep -q "$text" <<<"$info" || { echo "no '$text':"; echo "$info"; return 1; }
	done
	# That of libibverbs is as it was.
	diff <("$run" ibv_devinfo -v -d "$DAPX_DEV") <(ibv_devinfo -v -d "$DAPX_DEV")
}

# What is not of dapx goes through.
device_of_libibverbs() { rc_pingpong "$DAPX_PEER_DEV" "$DAPX_DEV"; }

wrong_use() {
	local said
	said=$("$run" 2>&1); [[ $? = 2 && $said = *"no program is named" ]] || { echo "$said"; return 1; }
	said=$("$run" /nonexistent 2>&1); [[ $? = 127 && $said = *"cannot run /nonexistent: "* ]] || { echo "$said"; return 1; }
	said=$("$run" /etc/passwd 2>&1); [[ $? = 126 ]] || { echo "$said"; return 1; }
	# shellcheck disable=SC2016  # that shell is to expand it
	said=$("$run" sh -c 'echo $LD_PRELOAD; exit 7'); [[ $? = 7 && $said = /*libdapx-verbs.so ]] || { echo "$said"; return 1; }
}

echo "TAP version 13"
result "ibv_devices" devices
result "ibv_devinfo" device_information
if [[ ${1:-} = short ]]; then
	result "ibv_rc_pingpong" pingpong "$there" "$here" ibv_rc_pingpong "$count iters in" -c
	result "ibv_srq_pingpong" pingpong "$there" "$here" ibv_srq_pingpong "$count iters in" -e
	result "ibv_xsrq_pingpong" pingpong "$there" "$here" ibv_xsrq_pingpong success
	result "perftest, RC" perftests "send_lat write_bw" "$there" "$here"
	result "perftest, XRC" perftests "send_bw atomic_lat" "$there" "$here" -c XRC
	end_of_results
	exit
fi
result "ibv_rc_pingpong" rc_pingpong "$there" "$here"
result "ibv_rc_pingpong, the server on libibverbs" rc_pingpong "$DAPX_PEER_DEV" "$here"
result "ibv_rc_pingpong, the client on libibverbs" rc_pingpong "$there" "$DAPX_DEV"
result "ibv_srq_pingpong" srq_pingpong "$there" "$here"
result "ibv_srq_pingpong, the server on libibverbs" srq_pingpong "$DAPX_PEER_DEV" "$here"
result "ibv_srq_pingpong, the client on libibverbs" srq_pingpong "$there" "$DAPX_DEV"
result "ibv_xsrq_pingpong" xsrq_pingpong
result "perftest, RC" perftests "$every" "$there" "$here"
result "perftest, RC, the server on libibverbs" perftests "$some" "$DAPX_PEER_DEV" "$here"
result "perftest, RC, the client on libibverbs" perftests "$some" "$there" "$DAPX_DEV"
result "perftest, XRC" perftests "$every" "$there" "$here" -c XRC
result "a device of libibverbs under dapx-run" device_of_libibverbs
result "dapx-run used wrongly" wrong_use
end_of_results
