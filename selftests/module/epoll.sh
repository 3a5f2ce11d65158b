#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The example of a poll loop: each side's lines arrive on the other.
# shellcheck disable=SC2317  # functions are called by name
set -u

talk=${DAPX_BUILD:-build}/Documentation/examples/dapx-example-epoll
# shellcheck source=selftests/module/harness/tap.sh
. "$(dirname "$0")/harness/tap.sh"
server=''
trap '[[ -z $server ]] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT

both_ways() {
	local tries
	mkfifo "$work/words" "$work/answers"
	"$talk" "$DAPX_PEER_DEV" "$DAPX_PEER_IP" listen <"$work/answers" >"$work/server" 2>&1 &
	server=$!
	exec 4>"$work/answers"
	for ((tries = 0; tries < 100; tries++)); do
		timeout 50 "$talk" "$DAPX_DEV" "$DAPX_PEER_IP" connect <"$work/words" >"$work/client" 2>&1 &
		client=$!
		exec 3>"$work/words"
		sleep 0.3
		! kill -0 "$client" 2>/dev/null || break
		exec 3>&-
		grep -q "nobody listens" "$work/client" || break
	done
	echo "one" >&3
	until grep -qx one "$work/server"; do sleep 0.1; done
	echo "two" >&4
	until grep -qx two "$work/client"; do sleep 0.1; done
	seq 50 >&3
	exec 3>&-
	wait "$client" && wait "$server" || return
	server=''
	exec 4>&-
	(echo one && seq 50) | cmp - "$work/server" && echo two | cmp - "$work/client"
}

echo "TAP version 13"
result "lines go both ways" both_ways
end_of_results
