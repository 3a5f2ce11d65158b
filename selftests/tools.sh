#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tools against the module: what they print, what they carry, what they say when something is missing.
set -u

tools=${DAPX_BUILD:-build}/tools
ctl=$tools/dapxctl ping=$tools/dapx-ping perf=$tools/dapx-perf
ko=${DAPX_BUILD:-build}/kmod/$(uname -r)/dapx.ko
work=$(mktemp -d)
server='' number=0 failed=0
trap 'stop_server; rm -rf "$work"' EXIT

# result NAME COMMAND...: one case
result() {
	((number++))
	if "${@:2}" >"$work/said" 2>&1; then
		echo "ok $number - $1"
	else
		((failed++))
		echo "not ok $number - $1"
		sed 's/^/# /' "$work/said"
	fi
}

skip() { echo "ok $((++number)) - $1 # SKIP $2"; }

# serve PROGRAM [ARGUMENT...]: its server at the peer's device, when it listens
serve() {
	"$@" --server -d "$DAPX_PEER_DEV" >"$work/server" 2>&1 &
	server=$!
	for _ in {1..100}; do
		[[ ! -s $work/server ]] || return 0
		sleep 0.1
	done
	cat "$work/server"
	return 1
}

stop_server() {
	[[ -z $server ]] || { kill "$server"; wait "$server"; } 2>/dev/null
	server=''
}

# json EXPRESSION FILE: true of what is in it
json() { python3 -c 'import json, sys; d = json.load(open(sys.argv[2])); assert eval(sys.argv[1]), d' "$@"; }

# sentence TEXT COMMAND...: exit code 1, and one line on stderr, with TEXT
sentence() {
	local rc=0
	"${@:2}" >"$work/out" 2>"$work/err" </dev/null || rc=$?
	cat "$work/out" "$work/err"
	((rc == 1)) || { echo "exit code $rc"; return 1; }
	[[ $(wc -l <"$work/err") = 1 ]] || { echo "not one line"; return 1; }
	grep -qF -- "$1" "$work/err" || { echo "not said: $1"; return 1; }
}

usage_error() {
	local rc=0
	"$@" || rc=$?
	((rc == 2))
}

# Somebody without rights may not reach the tree.
for_all=$work/bin
mkdir "$for_all"
cp "$ctl" "$perf" "$(ldd "$ctl" | sed -n 's/.*libdapx.* => \([^ ]*\) .*/\1/p')" "$for_all"
chmod -R a+rX "$work"
as_nobody() { LD_LIBRARY_PATH=$for_all setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }

info() { "$ctl" info && "$ctl" info -j >"$work/j" && json "d['module'] is True and 'rc' in d['features'] and d['limits']['segments'] >= 8" "$work/j"; }

devices() {
	"$ctl" devices && "$ctl" devices -j >"$work/j" &&
		json "[x['name'] for x in d if x['usable']] == ['$DAPX_DEV', '$DAPX_PEER_DEV']" "$work/j"
}

ping_once() { # ping_once OP ADDRESS
	"$ping" -d "$DAPX_DEV" -c 5 -i 0.01 -s 1k --op "$1" -j "$2" >"$work/j" || return
	cat "$work/j"
	json "d['sent'] == 5 and d['received'] == 5 and d['latency']['samples'] == 5" "$work/j"
}

ping_lines() {
	"$ping" -d "$DAPX_DEV" -c 3 -i 0.01 "$DAPX_PEER_IP" >"$work/out" || return
	cat "$work/out"
	[[ $(grep -c 'time' "$work/out") -ge 3 ]]
}

ping_interrupted() {
	"$ping" -d "$DAPX_DEV" -i 0.05 "$DAPX_PEER_IP" >"$work/out" 2>&1 &
	local pid=$! rc=0
	sleep 2
	kill -INT $pid
	wait $pid || rc=$?
	cat "$work/out"
	((rc == 0)) && tail -n 3 "$work/out" | grep -q 'sent\|min'
}

server_killed() {
	local pid rc=0
	"$ping" -d "$DAPX_DEV" -i 0.05 "$DAPX_PEER_IP" >"$work/out" 2>"$work/err" &
	pid=$!
	sleep 2
	kill -KILL "$server"
	wait "$server" 2>/dev/null
	server=''
	wait $pid || rc=$?
	cat "$work/err"
	((rc == 1)) && [[ $(wc -l <"$work/err") = 1 ]]
}

perf_tests() {
	"$perf" -d "$DAPX_DEV" -n 200 -j "$DAPX_PEER_IP" >"$work/j" || return
	cat "$work/j"
	json "len(d) > 0" "$work/j"
}

perf_file() {
	head -c 3000001 /dev/urandom >"$work/sent" &&
		"$perf" -d "$DAPX_DEV" --file "$work/sent" "$DAPX_PEER_IP" && wait "$server" && server='' &&
		cmp "$work/sent" "$work/received"
}

locked_memory() {
	chmod 666 /dev/dapx
	sentence "ulimit -l" as_nobody \
		bash -c "ulimit -l 64; exec $for_all/dapx-perf -d $DAPX_DEV -s 8m --test bandwidth $DAPX_PEER_IP"
	local rc=$?
	chmod 600 /dev/dapx
	return $rc
}

without_module() {
	rmmod dapx || return
	sentence "modprobe dapx" "$ctl" info && sentence "modprobe dapx" "$ping" -d "$DAPX_DEV" "$DAPX_PEER_IP" &&
		sentence "modprobe dapx" "$perf" --server -d "$DAPX_DEV"
	local rc=$?
	insmod "$ko"
	return $rc
}

echo "TAP version 13"
result "dapxctl info" info
result "dapxctl devices" devices

result "dapx-ping serves" serve "$ping"
for op in send write read fetch-add; do
	if [[ $op = fetch-add && $RDMA = siw ]]; then
		skip "dapx-ping $op" "iWARP has no atomics"
		continue
	fi
	result "dapx-ping $op" ping_once $op "$DAPX_PEER_IP"
done
result "dapx-ping over IPv6" ping_once send "$DAPX_PEER_IP6"
result "dapx-ping prints each answer" ping_lines
result "dapx-ping is interrupted" ping_interrupted
result "dapx-ping loses its server" server_killed

result "dapx-perf serves" serve "$perf"
result "dapx-perf measures" perf_tests
result "too little locked memory" locked_memory
stop_server
result "dapx-perf takes a file" serve "$perf" --once --output "$work/received"
result "dapx-perf sends a file" perf_file
stop_server

result "unknown device" sentence "rxe7" "$ping" -d rxe7 "$DAPX_PEER_IP"
result "nobody listens" sentence "$DAPX_PEER_IP" "$ping" -d "$DAPX_DEV" "$DAPX_PEER_IP"
result "unknown host" sentence "no.such.host.invalid" "$ping" -d "$DAPX_DEV" no.such.host.invalid
chmod 600 /dev/dapx
result "no permission" sentence "permission denied" as_nobody "$for_all/dapxctl" info
result "no module" without_module
result "wrong usage of dapxctl" usage_error "$ctl" nonsense
result "wrong usage of dapx-ping" usage_error "$ping" -s 0 "$DAPX_PEER_IP"
result "wrong usage of dapx-perf" usage_error "$perf" --test nonsense "$DAPX_PEER_IP"
echo "1..$number"
((failed == 0))
