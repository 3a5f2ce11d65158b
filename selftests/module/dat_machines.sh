#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# dapltest, dtest, dtestcm and dtestsrq of Debian's dapl2-utils, unmodified, between two machines: on dapx at both ends,
# and with libdaplofa as either end's provider. The second machine serves. Runs in both.
# shellcheck disable=SC2317  # functions are called by name
set -u

build=$(realpath "${DAPX_BUILD:-build}")
# shellcheck source=selftests/module/harness/tap.sh
. "$(dirname "$0")/harness/tap.sh"
# shellcheck source=selftests/module/harness/machines.sh
. "$(dirname "$0")/harness/machines.sh"
# shellcheck source=selftests/module/harness/dat.sh
. "$(dirname "$0")/harness/dat.sh"
trap 'rm -rf "$work"' EXIT
export DAT_OVERRIDE=$work/dat.conf

provider() { # provider dapx|ofa
	case $1 in
	dapx) ia_registry "$DAPX_DEV" >"$DAT_OVERRIDE" ;;
	ofa) echo "ia u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"$DAPX_NETDEV 0\" \"\"" >"$DAT_OVERRIDE" ;;
	esac
}

# Who asks goes when it has the server's last message, and libdaplofa may do so before rxe has acknowledged that one: the
# server's send is flushed, and it says so in a line of PATTERN. Had a message not arrived, the other end would fail.
unheard() { # unheard PATTERN: takes that line out, if it is there
	[[ $asks = ofa ]] && grep -q "$1" "$work/said" && sed -i "/$1/d" "$work/said"
}

# both LISTENS OPTION... -- PROGRAM ARGUMENT...: OPTIONs are the client's. LISTENS: what the server prints when it does
both() {
	local listens=$1 client=() rc=0 ended=0 tries program
	shift
	while [[ $1 != -- ]]; do
		client+=("$1")
		shift
	done
	shift
	: >"$work/said"
	if ((HOST == 2)); then
		timeout 200 stdbuf -oL "$@" >"$work/said" 2>&1 &
		program=$!
		for ((tries = 0; tries < 600; tries++)); do
			! grep -q "$listens" "$work/said" || break
			sleep 0.1
		done
		meet || rc=1
		wait "$program" || ended=$?
		unheard '^ ERROR: DTO REQ size 0, status 1$' || ((ended == 0)) || rc=1
	else
		meet || rc=1
		timeout 200 "$@" "${client[@]}" >"$work/said" 2>&1 || rc=1
	fi
	clean "$work/said" && ((rc == 0)) && return
	tail -n 30 "$work/said"
	return 1
}

# Less than its default, which is some gigabytes.
dtest_messages() { both "waiting for client" -h "$DAPX_PEER_IP" -- dtest -P ia -b 16384 -B 20; }
dtest_connections() { in_order both "waiting for client" -h "$DAPX_PEER_IP" -- dtestcm -P ia -c 100; }
dtest_srq() { both "ready on port" -h "$DAPX_PEER_IP" -- dtestsrq -P ia; }

dapltest_all() {
	local rc=0 server
	if ((HOST == 2)); then
		timeout 300 stdbuf -oL dapltest -T S -D ia -n 20000 >"$work/said" 2>&1 &
		server=$!
		until grep -q "Service Point Ready" "$work/said" || ! kill -0 "$server"; do sleep 0.1; done
		meet || rc=1
		wait "$server" || rc=1
		unheard 'Server_Info_Send-reaping DTO problem'
		clean "$work/said" || rc=1
		return "$rc"
	fi
	meet || return
	ask() {
		local good=yes
		timeout 200 dapltest -T "$1" -s "$DAPX_PEER_IP" -D ia -n 20000 "${@:2}" >"$work/said" 2>&1 || good=
		clean "$work/said" || good=
		[[ -z $good ]] || return 0
		tail -n 30 "$work/said"
		rc=1
	}
	ask T -V -i 20 -t 1 -w 2 client SR 256 server RW 4096 server SR 256 client RR 4096 server SR 100
	ask P -i 50 -m p -p 4 RW 4096 1
	ask Q
	return "$rc"
}

echo "TAP version 13"
for pair in "dapx dapx" "dapx ofa" "ofa dapx"; do
	read -r serves asks <<<"$pair"
	if ((HOST == 1)); then provider "$asks"; else provider "$serves"; fi
	for program in dapltest_all dtest_messages dtest_connections dtest_srq; do
		# dtestsrq waits for the last receive's event at its end: rxe has none for libdaplofa there.
		if [[ $DAPX_KERNEL = 6.1 && $program = dtest_srq && "$serves $asks" = *ofa* ]]; then
			echo "ok $((++number)) - $program, $asks asks $serves # SKIP libdaplofa does not end on rxe of 6.1"
			continue
		fi
		result "$program, $asks asks $serves" $program
	done
done
end_of_results
