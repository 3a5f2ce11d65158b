#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs of Debian's rdmacm-utils and perftest that connect by the RDMA CM, unmodified, on dapx by dapx-run: between
# two devices of dapx, and with either end on librdmacm and libibverbs where the transport is RC. With the argument
# "short", each program once: for the debug kernel, which is slow.
# shellcheck disable=SC2317  # functions are called by name
set -u

build=$(realpath "${DAPX_BUILD:-build}")
# shellcheck source=selftests/module/harness/tap.sh
. "$(dirname "$0")/harness/tap.sh"
server=''
trap '[[ -z $server ]] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT

dapx=$build/tools/dapx-run
plain="env"
# How often they send, and how many connections there are; more, where the kernel is quick.
count=$(awk "BEGIN { n = 100 * (\"${DAPX_SCALE:-1}\" + 0); print n < 10 ? 10 : n }")
connections=$((count / 5))
port=18700

# talk SERVER CLIENT PROGRAM SERVER-OPTIONS CLIENT-OPTIONS [CLIENT-PROGRAM]: both ends, by $dapx or $plain; each of them
# has to succeed. {port} in the options is the port.
talk() {
	local at=$1 with=$2 program=$3 options ok=0 try
	((port++))
	options=${4//'{port}'/$port}
	# shellcheck disable=SC2086  # options
	timeout 60 "$at" "$program" $options >"$work/server" 2>&1 &
	server=$!
	for ((try = 0; try < 100; try++)); do
		rdma res show cm_id | grep -q "LISTEN.*:$port " && break
		sleep 0.1
	done
	options=${5//'{port}'/$port}
	# shellcheck disable=SC2086  # options
	timeout 60 "$with" "${6:-$program}" $options >"$work/said" 2>&1 || ok=1
	[[ $ok = 0 && $program != cmtime ]] || kill "$server" 2>/dev/null
	wait "$server" || [[ $program = cmtime ]] || ok=1
	server=''
	[[ $ok = 0 ]] || { cat "$work/said"; echo "and the server:"; cat "$work/server"; }
	return $ok
}

# Its exit code is 0 whatever happened; with -V it compares what came.
rping() {
	talk "$1" "$2" rping "-s -p {port} -C $count -v -V" "-c -a $DAPX_PEER_IP -p {port} -C $count -v -V" || return
	[[ $(grep -c 'ping data' "$work/said") = "$count" && $(grep -c 'ping data' "$work/server") = "$count" ]] && return
	tail -n 3 "$work/said" "$work/server"
	return 1
}

ucmatose() { # ucmatose SERVER CLIENT [OPTION...]
	local option
	for option in "" "${@:3}"; do
		talk "$1" "$2" ucmatose "-p {port} -c $connections $option" "-s $DAPX_PEER_IP -p {port} -c $connections $option" || return
		[[ $(grep -c 'return status 0' "$work/said" "$work/server") = *:1*:1 ]] || { cat "$work/said" "$work/server"; return 1; }
	done
}

# Its server goes on for ever.
cmtime() {
	talk "$1" "$2" cmtime "-p {port} -c $connections" "-s $DAPX_PEER_IP -p {port} -c $connections" &&
		grep -q '^connect *: ' "$work/said" && grep -q '^destroy *: ' "$work/said"
}

# That of newer rdma-cores, after its own queue pairs, connects numbers that are of none.
cmtimes() { # cmtimes NAME SERVER CLIENT
	if grep -q rdma_init_qp_attr "$(type -P cmtime)"; then
		skip "$1" "this cmtime also connects where there is no queue pair"
	else
		result "$1" cmtime "$2" "$3"
	fi
}

client_and_server() {
	talk "$1" "$2" rdma_server "-p {port}" "-s $DAPX_PEER_IP -p {port}" rdma_client &&
		grep -q 'end 0' "$work/said" && grep -q 'end 0' "$work/server"
}

# xclient_and_xserver SERVER CLIENT r|x
xclient_and_xserver() {
	talk "$1" "$2" rdma_xserver "-p {port} -c $3" "-s $DAPX_PEER_IP -p {port} -c $3" rdma_xclient &&
		grep -q 'end 0' "$work/said" && grep -q 'end 0' "$work/server"
}

# Its table has a line of the size and the number of iterations. Its server listens for the second connection when the first
# one is there, for which its client does not wait; and on a busy machine it does not trust its own clock: then again. No
# client on librdmacm: that crashes where it is refused.
perftest() { # perftest SERVER CLIENT WHAT
	local try
	for try in {1..8}; do
		talk "$1" "$2" "ib_$3" "-R -p {port} -n $count" "-R -p {port} -n $count $DAPX_PEER_IP" >"$work/why" &&
			grep -qE "^ *[0-9]+ +$count +[0-9.]+" "$work/said" && return
		grep -q 'REJECTED\|Correlation coefficient' "$work/why" || break
	done
	echo "ib_$3, try $try"
	cat "$work/why"
	return 1
}

perftests() { # perftests SERVER CLIENT WHAT...
	local what
	for what in "${@:3}"; do
		perftest "$1" "$2" "$what" || return
	done
}

# Nothing is listening there.
refused() {
	"$dapx" rping -c -a "$DAPX_PEER_IP" -p 18699 -C 1 >"$work/said" 2>&1
	grep -q 'RDMA_CM_EVENT_REJECTED\|RDMA_CM_EVENT_UNREACHABLE' "$work/said" || { cat "$work/said"; return 1; }
}

echo "TAP version 13"
if [[ ${1:-} = short ]]; then
	result "rping" rping "$dapx" "$dapx"
	result "rping, nobody listens" refused
	result "ucmatose" ucmatose "$dapx" "$dapx"
	cmtimes "cmtime" "$dapx" "$dapx"
	result "rdma_client and rdma_server" client_and_server "$dapx" "$dapx"
	result "rdma_xclient and rdma_xserver, XRC" xclient_and_xserver "$dapx" "$dapx" x
	result "perftest -R" perftests "$dapx" "$dapx" send_lat
	end_of_results
	exit
fi
result "rping" rping "$dapx" "$dapx"
result "rping, the server on librdmacm" rping "$plain" "$dapx"
result "rping, the client on librdmacm" rping "$dapx" "$plain"
result "rping, nobody listens" refused
result "ucmatose" ucmatose "$dapx" "$dapx" -m "-S 4096"
result "ucmatose, the server on librdmacm" ucmatose "$plain" "$dapx"
result "ucmatose, the client on librdmacm" ucmatose "$dapx" "$plain"
cmtimes "cmtime" "$dapx" "$dapx"
cmtimes "cmtime, the server on librdmacm" "$plain" "$dapx"
cmtimes "cmtime, the client on librdmacm" "$dapx" "$plain"
result "rdma_client and rdma_server" client_and_server "$dapx" "$dapx"
result "rdma_client, the server on librdmacm" client_and_server "$plain" "$dapx"
result "rdma_server, the client on librdmacm" client_and_server "$dapx" "$plain"
result "rdma_xclient and rdma_xserver, RC" xclient_and_xserver "$dapx" "$dapx" r
result "rdma_xclient, the server on librdmacm" xclient_and_xserver "$plain" "$dapx" r
result "rdma_xserver, the client on librdmacm" xclient_and_xserver "$dapx" "$plain" r
result "rdma_xclient and rdma_xserver, XRC" xclient_and_xserver "$dapx" "$dapx" x
result "perftest -R" perftests "$dapx" "$dapx" send_lat write_bw read_lat
result "perftest -R, the server on librdmacm" perftests "$plain" "$dapx" send_bw
end_of_results
