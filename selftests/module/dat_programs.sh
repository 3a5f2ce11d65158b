#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# dapltest, dtest, dtestcm and dtestsrq of Debian's dapl2-utils, unmodified, on dapx.
#
# They exit with 0, and dapltest says "Result: PASS", also if something has failed: what they print is looked through.
# shellcheck disable=SC2317  # functions are called by name
set -u

build=$(realpath "${DAPX_BUILD:-build}")
ko=$build/kmod/$(uname -r)/dapx.ko
# shellcheck source=selftests/module/harness/tap.sh
. "$(dirname "$0")/harness/tap.sh"
# shellcheck source=selftests/module/harness/dat.sh
. "$(dirname "$0")/harness/dat.sh"
server=''
trap '[[ -z $server ]] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT

export DAT_OVERRIDE=$work/dat.conf
"$build/tools/dapxctl" dat-conf --library-folder "$build/lib/dat" >"$DAT_OVERRIDE" || exit 1
ia=dapx-$DAPX_DEV
# Its own default is a port of the system's ephemeral ones; it uses some hundred more from there on.
port=20000

# dapltest ARGUMENT...: true if nothing of what it prints is a failure
run() {
	timeout 120 dapltest "$@" >"$work/said" 2>&1 || { echo "exit code $?: dapltest $*"; tail -n 20 "$work/said"; return 1; }
	clean "$work/said" || { echo "by: dapltest $*"; return 1; }
}

# fft NAME COUNT [CASE...]
fft() {
	run -T F -D "$ia" -f "$1" "${@:3}" || return
	[[ $(grep -c 'Result: *PASS' "$work/said") = "$2" ]] || { echo "not $2 cases"; cat "$work/said"; return 1; }
}

# 13 and 15 hand handle 1 to the registry, which reads from there itself; 5 says that it is not written yet.
query_cases() {
	local i
	for i in {0..4} {6..12} 14 16 17; do
		fft queryinfo 1 "case$i" || return
	done
}

limits() {
	local limit
	# size_lmr: rxe warns of registrations as large as that, by whomever.
	for limit in ia pz cno evd ep rsp psp lmr rpost; do
		run -T L -D "$ia" -w 1 -m 20 "limit_$limit" || return
	done
}

serve() {
	dapltest -T S -D "dapx-$DAPX_PEER_DEV" -n "$port" >"$work/server" 2>&1 &
	server=$!
	local tries
	for ((tries = 0; tries < 300; tries++)); do
		! grep -q "Service Point Ready" "$work/server" || return 0
		sleep 0.1
	done
	cat "$work/server"
	return 1
}

ask() { run -T "$1" -s "$DAPX_PEER_IP" -n "$port" -D "$ia" "${@:2}"; }

transactions() {
	ask T -i 50 -t 1 -w 1 client SR 256 server RW 4096 server SR 256 client RR 4096 server SR 100 &&
		ask T -V -i 20 -t 1 -w 1 client SR 256 server RW 4096 server SR 256 client RR 4096 server SR 100 &&
		ask T -r -i 20 -t 1 -w 2 client SR 256 server SR 256 &&
		ask T -V -P -i 20 -t 1 -w 1 client SR 1024 3 server SR 1536 2 &&
		ask T -i 10 -t 2 -w 4 client SR 1024 3 server SR 1536 2 client RR 8192 server RW 1000
}

performance() {
	ask P -i 100 -m b RW 4096 2 && ask P -i 100 -m p -p 8 RW 4096 2 && ask P -i 100 -m p -p 4 RR 4096 1
}

leave() {
	ask Q && wait "$server" || return
	server=''
	! grep -iE 'fail|error' "$work/server"
}

# pair LISTENS HOST PROGRAM ARGUMENT...: LISTENS: what the server prints when it does; HOST: where its client finds it
pair() {
	local listens=$1 host=$2 rc=0 tries
	shift 2
	# Emptied here: else what the last server said is taken for this one's word.
	: >"$work/server"
	ia_registry "$DAPX_PEER_DEV" >"$work/server.conf"
	ia_registry "$DAPX_DEV" >"$work/client.conf"
	DAT_OVERRIDE=$work/server.conf timeout 120 stdbuf -oL "$@" -P ia >"$work/server" 2>&1 &
	server=$!
	for ((tries = 0; tries < 300; tries++)); do
		! grep -q "$listens" "$work/server" || break
		sleep 0.1
	done
	DAT_OVERRIDE=$work/client.conf timeout 120 "$@" -P ia -h "$host" >"$work/said" 2>&1 || rc=1
	wait "$server" || rc=1
	server=''
	clean "$work/server" "$work/said" && ((rc == 0)) && return
	tail -n 20 "$work/server" "$work/said"
	return 1
}

# Memory is lent, and taken back while the peer writes.
example() {
	local program=$build/Documentation/examples/dapx-example-dat tries
	timeout 120 "$program" "dapx-$DAPX_PEER_DEV" lend >"$work/lender" 2>&1 &
	server=$!
	for ((tries = 0; tries < 300; tries++)); do
		! grep -q listens "$work/lender" || break
		sleep 0.1
	done
	timeout 120 "$program" "$ia" write "$DAPX_PEER_IP" || { cat "$work/lender"; return 1; }
	wait "$server" || { cat "$work/lender"; return 1; }
	server=''
	grep 'written by the peer, and taken back: hello by RDMA' "$work/lender"
}

# DAT 1.2, for which there are no programs in packages.
example_of_1_2() {
	local program=$build/Documentation/examples/dapx-example-dat12 tries
	timeout 120 "$program" "dapx-$DAPX_PEER_DEV" >"$work/printed" 2>"$work/printer" &
	server=$!
	for ((tries = 0; tries < 300; tries++)); do
		! grep -q listens "$work/printer" || break
		sleep 0.1
	done
	seq 1000 | timeout 120 "$program" "$ia" "$DAPX_PEER_IP" || { cat "$work/printer"; return 1; }
	wait "$server" || { cat "$work/printer"; return 1; }
	server=''
	seq 1000 | cmp - "$work/printed"
}

# No module, no provider: the program gets the code, and whoever asks gets the reason.
without_the_module() {
	rmmod dapx || return
	DAT_DBG_TYPE=1 timeout 60 dapltest -T L -D "$ia" -m 1 limit_ia >"$work/said" 2>&1
	DAT_DBG_TYPE=1 timeout 60 "$build/Documentation/examples/dapx-example-dat12" "$ia" >"$work/said12" 2>&1
	insmod "$ko" || return
	local said
	for said in "$work/said" "$work/said12"; do
		if ! grep "^$ia: .*the dapx module is not loaded; run 'modprobe dapx'" "$said" ||
			! grep DAT_PROVIDER_NOT_FOUND "$said"; then
			cat "$said"
			return 1
		fi
	done
}

echo "TAP version 13"
result "functions: hwconn" fft hwconn 4
result "functions: endpoint" fft endpoint 3
result "functions: pz" fft pz 3
result "functions: mem" fft mem 5
result "functions: connmgt" fft connmgt 2
result "functions: queryinfo" query_cases
result "limits" limits
result "a server" serve
result "transactions" transactions
result "performance" performance
result "the server is told to go" leave
# These clients ask by TCP where to connect to, which within one machine goes by loopback.
result "dtest" pair "waiting for client" 127.0.0.1 dtest -b 16384 -B 20
result "dtestcm" in_order pair "waiting for client" 127.0.0.1 dtestcm -c 100
result "dtestsrq" pair "ready on port" "$DAPX_PEER_IP" dtestsrq
result "the example" example
result "the example of DAT 1.2" example_of_1_2
result "without the module" without_the_module
end_of_results
