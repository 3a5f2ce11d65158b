#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Two machines, joined by a cable: the second serves, the first asks. Runs in both.
# shellcheck disable=SC2317  # functions are called by name
set -u

tools=${DAPX_BUILD:-build}/tools
xrc=${DAPX_BUILD:-build}/Documentation/examples/dapx-example-xrc
# shellcheck source=selftests/module/harness/tap.sh
. "$(dirname "$0")/harness/tap.sh"
trap 'rm -rf "$work"' EXIT
file_size=4000001

# The same file in both, without carrying it over: the test is about the other way.
seq 1000000 | head -c $file_size >"$work/file"

carried() { cat "/sys/class/net/$DAPX_NETDEV/statistics/$1_bytes"; } # carried rx|tx

# By sends, and by writes.
came_over() { (($1 >= 2 * file_size)) || { echo "only $1 bytes went over $DAPX_NETDEV"; return 1; }; }

serve() {
	local rc=0 before
	before=$(carried rx)
	timeout 120 "$tools/dapx-ping" --server --once -d "$DAPX_DEV" || rc=1
	timeout 120 "$tools/dapx-perf" --server --once -d "$DAPX_DEV" --output "$work/received" || rc=1
	cmp "$work/file" "$work/received" || rc=1
	came_over $(($(carried rx) - before)) || rc=1
	return "$rc"
}

# ask COMMAND...: until the other machine listens
ask() {
	local tries
	for ((tries = 0; tries < 100; tries++)); do
		timeout 120 "$@" >"$work/said" 2>&1 && { cat "$work/said"; return 0; }
		grep -q "nobody listens" "$work/said" || break
		sleep 0.3
	done
	cat "$work/said"
	return 1
}

call() {
	local before
	ask "$tools/dapx-ping" -d "$DAPX_DEV" -c 20 -i 0.01 -s 2k "$DAPX_PEER_IP" || return
	grep -q "^20 sent, 20 answered" "$work/said" || return
	before=$(carried tx)
	ask "$tools/dapx-perf" -d "$DAPX_DEV" --file "$work/file" "$DAPX_PEER_IP" || return
	[[ $(grep -c "there: the same$" "$work/said") = 2 ]] || return
	came_over $(($(carried tx) - before))
}

# Two processes with one domain; the one that made the connection's receiving end is killed, the other has the next
# message by the same connection, and its successor by the next one. That it is dead, the other machine learns by a ping
# that is answered.
receive() {
	local i pids=() maker
	for i in 1 2; do
		"$xrc" "$DAPX_DEV" "$DAPX_IP" "$work/domain" "$i" >"$work/receiver.$i" 2>&1 &
		pids[i]=$!
		until grep -q "process" "$work/receiver.$i"; do sleep 0.1; done
	done
	until [[ $(cat "$work"/receiver.? | grep -c ": first$") = 2 ]] || ! kill -0 "${pids[@]}" 2>/dev/null; do sleep 0.1; done
	maker=$(grep -l makes "$work"/receiver.?)
	maker=${maker##*.}
	kill -KILL "${pids[maker]}"
	wait "${pids[maker]}"
	"$xrc" "$DAPX_DEV" "$DAPX_IP" "$work/domain" "$maker" >>"$work/receiver.$maker" 2>&1 &
	pids[maker]=$!
	timeout 120 "$tools/dapx-ping" --server --once -d "$DAPX_DEV" || return
	wait "${pids[@]}"
	cat "$work"/receiver.?
	[[ $(grep -c ": second$" "$work"/receiver.? | cut -d: -f2 | tr '\n' ' ') = "1 1 " ]]
}

send() {
	local sender rc=0
	mkfifo "$work/orders"
	timeout 120 "$xrc" "$DAPX_DEV" "$DAPX_PEER_IP" <"$work/orders" >"$work/sent" 2>&1 &
	sender=$!
	exec 3>"$work/orders"
	printf '%s first\n' 1 2 >&3
	ask "$tools/dapx-ping" -d "$DAPX_DEV" -c 1 "$DAPX_PEER_IP" || rc=1
	printf '%s second\n' 1 2 >&3
	exec 3>&-
	wait "$sender" || rc=1
	cat "$work/sent"
	[[ $rc = 0 && $(grep -c "send done" "$work/sent") = 4 ]]
}

echo "TAP version 13"
if ((HOST == 1)); then
	result "messages and a file go to the other machine" call
	result "messages to two processes by one connection, whose maker dies and comes again" send
else
	result "messages and a file come from the other machine" serve
	result "messages for two processes by one connection, whose maker dies and comes again" receive
fi
end_of_results
