#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Two machines, joined by a cable: the second serves, the first asks. Runs in both.
set -u

tools=${DAPX_BUILD:-build}/tools
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
file_size=4000001

# The same file in both, without carrying it over: the test is about the other way.
head -c $file_size /dev/zero | openssl enc -aes-128-ctr -K 00 -iv 00 -nosalt >"$work/file" 2>/dev/null

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
	return $rc
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

echo "TAP version 13"
echo "1..1"
if ((HOST == 1)); then
	name="messages and a file go to the other machine" do=call
else
	name="messages and a file come from the other machine" do=serve
fi
if output=$($do 2>&1); then
	echo "ok 1 - $name"
else
	echo "not ok 1 - $name"
	echo "# ${output//$'\n'/$'\n'# }"
	exit 1
fi
