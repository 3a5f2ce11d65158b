#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The examples of the library: a message is sent, a window is lent and taken back, and in a poll loop each side's lines
# arrive on the other. Those of XRC are in xrc_job.sh, those of DAT in dat_programs.sh.
# shellcheck disable=SC2317  # functions are called by name
set -u

example=${DAPX_BUILD:-build}/Documentation/examples/dapx-example
talk=$example-epoll
# shellcheck source=selftests/module/harness/tap.sh
. "$(dirname "$0")/harness/tap.sh"
server=''
trap '[[ -z $server ]] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT

# serve COMMAND... of one side, which listens
serve() {
	"$@" >"$work/server" 2>&1 &
	server=$!
}

# reach COMMAND... of the other: it comes again as long as nobody listens. Both have to succeed.
reach() {
	local tries
	for ((tries = 0; tries < 100; tries++)); do
		! "$@" >"$work/client" 2>&1 || break
		grep -q "nobody listens" "$work/client" || { cat "$work/client"; return 1; }
		sleep 0.1
	done
	wait "$server" || return
	server=''
}

a_message() {
	serve "$example-send" "$DAPX_PEER_DEV" "$DAPX_PEER_IP"
	reach "$example-send" "$DAPX_DEV" "$DAPX_PEER_IP" "good morning" && grep -qx "good morning" "$work/server"
}

# The lender fails if a byte changes after the end of the window, or if none had changed before.
a_window() {
	serve "$example-window" "$DAPX_PEER_DEV" "$DAPX_PEER_IP" lend
	reach "$example-window" "$DAPX_DEV" "$DAPX_PEER_IP" write && grep -q "lender: 0 bytes changed" "$work/server" &&
		grep -q "does not give this access" "$work/client"
}

both_ways() {
	local tries client
	mkfifo "$work/words" "$work/answers"
	"$talk" "$DAPX_PEER_DEV" "$DAPX_PEER_IP" listen <"$work/answers" >"$work/server" 2>&1 &
	server=$!
	exec 4>"$work/answers"
	# What it says arrives, or it has ended, as nobody listened yet.
	for ((tries = 0; tries < 100; tries++)); do
		timeout 50 "$talk" "$DAPX_DEV" "$DAPX_PEER_IP" connect <"$work/words" >"$work/client" 2>&1 &
		client=$!
		exec 3>"$work/words"
		(echo one >&3) 2>/dev/null
		until grep -qx one "$work/server" || ! kill -0 "$client" 2>/dev/null; do sleep 0.1; done
		! grep -qx one "$work/server" || break
		exec 3>&-
		if ! grep -q "nobody listens" "$work/client" || ! kill -0 "$server"; then
			cat "$work/client"
			return 1
		fi
	done
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
result "a message is sent" a_message
# siw does not tell the writer why its connection ended.
[[ ${RDMA-} = siw ]] || result "a window is taken back" a_window
result "lines go both ways" both_ways
end_of_results
