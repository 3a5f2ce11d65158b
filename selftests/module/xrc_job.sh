#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The examples of XRC, as a job runs them: its receivers are killed at random and started again, the one that leads, too,
# and in the end each has processed each message once.
# shellcheck disable=SC2317  # functions are called by name
set -u

build=${DAPX_BUILD:-build}
job=$build/Documentation/examples/dapx-example-xrc-job simple=$build/Documentation/examples/dapx-example-xrc
ctl=$build/tools/dapxctl
# shellcheck source=selftests/module/harness/tap.sh
. "$(dirname "$0")/harness/tap.sh"
receivers=10
if [[ ${DAPX_SCALE:-1} = full ]]; then
	count=50000
else
	count=$(awk "BEGIN { n = 2000 * (\"${DAPX_SCALE:-1}\" + 0); print n < 300 ? 300 : n }")
fi
pids=()
trap 'kill -KILL "${pids[@]}" $sender 2>/dev/null; rm -rf "$work"' EXIT
sender=''

start() { # start WHO
	"$job" "$DAPX_PEER_DEV" "$DAPX_PEER_IP" receive "$work/domain" "$1" >>"$work/receiver.$1" 2>&1 &
	pids[$1]=$!
}

# A process that fails by itself is a failure. They end when the sender has ended, which may be just now.
kill_one() {
	local who=$((RANDOM % receivers)) rc=0
	# Every other time it is the one that leads: the last one that said so.
	((RANDOM % 2)) || who=$(grep -l leads "$work"/receiver.* | xargs ls -t | head -n 1 | sed 's/.*\.//')
	[[ -n ${pids[who]-} ]] || return 0
	kill -KILL "${pids[who]}" 2>/dev/null
	wait "${pids[who]}" 2>/dev/null || rc=$?
	case $rc in
	137) start "$who" ;;
	0) unset "pids[who]" ;;
	*) echo "receiver $who ended by itself: $rc"; return 1 ;;
	esac
}

killed_at_random() {
	local who killed
	for ((who = 0; who < receivers; who++)); do
		start "$who"
	done
	"$job" "$DAPX_DEV" "$DAPX_PEER_IP" send "$count" >"$work/sender" 2>&1 &
	sender=$!
	for ((killed = 0; ; killed++)); do
		sleep "0.$((RANDOM % 4 + 1))"
		kill -0 "$sender" 2>/dev/null || break
		kill_one || return
	done
	echo "$killed kills"
	wait "$sender" || { cat "$work/sender" "$work"/receiver.*; return 1; }
	sender=''
	for who in "${!pids[@]}"; do
		wait "${pids[who]}" || { cat "$work"/receiver.*; return 1; }
	done
	pids=()
	cat "$work/sender" "$work"/receiver.*
	((killed > 2)) && (($(grep -c "^receiver [0-9]: $count messages; " <(cat "$work"/receiver.*)) == receivers))
}

# It went with its last process.
nothing_is_left() { "$ctl" xrcd | grep -qx 'no open XRC domain'; }

# The sender makes its one connection anew when it meets the queue of the dead one, and loses no line.
one_of_two_dies() {
	local rc=0 who i
	for who in 0 1; do
		"$simple" "$DAPX_PEER_DEV" "$DAPX_PEER_IP" "$work/two" $((who + 1)) >"$work/two.$who" 2>&1 &
		pids[who]=$!
	done
	mkfifo "$work/lines"
	"$simple" "$DAPX_DEV" "$DAPX_PEER_IP" <"$work/lines" >"$work/two.sender" 2>&1 &
	sender=$!
	exec 3>"$work/lines"
	printf '%s before\n' 1 2 >&3
	has 2 ": before$" || rc=1
	who=$(grep -l makes "$work"/two.?)
	who=${who##*.}
	kill -KILL "${pids[who]}"
	wait "${pids[who]}" 2>/dev/null
	printf '%s after\n' $((2 - who)) $((who + 1)) >&3
	has 1 "no such shared receive queue" || rc=1
	"$simple" "$DAPX_PEER_DEV" "$DAPX_PEER_IP" "$work/two" $((who + 1)) >>"$work/two.$who" 2>&1 3>&- &
	pids[who]=$!
	has 2 ": after$" || rc=1
	exec 3>&-
	for i in "$sender" "${pids[@]}"; do
		wait "$i" || rc=1
	done
	sender='' pids=()
	cat "$work"/two.*
	[[ $rc = 0 && $(grep -c "send done" "$work/two.sender") = 4 && $(cat "$work"/two.? | grep -c ": after$") = 2 ]]
}

has() { # has COUNT TEXT: so many lines of the simple example's processes
	local i
	for ((i = 0; i < 600; i++)); do
		(($(cat "$work"/two.* | grep -c "$2") < $1)) || return 0
		sleep 0.1
	done
	return 1
}

echo "TAP version 13"
result "two receivers, of which the one dies that made the connection's receiving end" one_of_two_dies
result "a job whose receivers are killed at random" killed_at_random
sed 's/^/# /' "$work/sender"
result "nothing of it is left" nothing_is_left
end_of_results
