#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The examples of XRC, as a job runs them: its receivers are killed at random and started again, the one that leads, too,
# and in the end each has processed each message once.
# shellcheck disable=SC2317  # functions are called by name
set -u

build=${DAPX_BUILD:-build}
job=$build/Documentation/examples/dapx-example-xrc-job
ctl=$build/tools/dapxctl
# shellcheck source=selftests/tap.sh
. "$(dirname "$0")/tap.sh"
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

# A process that ended by itself before it was told to is a failure.
kill_one() {
	local who=$((RANDOM % receivers)) rc=0
	# Every other time it is the one that leads: the last one that said so.
	((RANDOM % 2)) || who=$(grep -l leads "$work"/receiver.* | xargs ls -t | head -n 1 | sed 's/.*\.//')
	kill -KILL "${pids[who]}" || return
	wait "${pids[who]}" 2>/dev/null || rc=$?
	((rc == 137)) || { echo "receiver $who ended by itself: $rc"; return 1; }
	start "$who"
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
	for ((who = 0; who < receivers; who++)); do
		wait "${pids[who]}" || { cat "$work"/receiver.*; return 1; }
	done
	pids=()
	cat "$work/sender" "$work"/receiver.*
	((killed > 2)) && (($(grep -c "^receiver [0-9]: $count messages; " <(cat "$work"/receiver.*)) == receivers))
}

# It went with its last process.
nothing_is_left() { "$ctl" xrcd | grep -qx 'no open XRC domain'; }

echo "TAP version 13"
result "a job whose receivers are killed at random" killed_at_random
sed 's/^/# /' "$work/sender"
result "nothing of it is left" nothing_is_left
end_of_results
