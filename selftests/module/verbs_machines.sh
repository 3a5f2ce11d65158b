#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs of Debian's ibverbs-utils, rdmacm-utils and perftest, unmodified, between two machines: by dapx-run at both
# ends, and with libibverbs and librdmacm at either end where the transport is RC. The second machine serves. Runs in both.
# shellcheck disable=SC2317  # functions are called by name
set -u

build=$(realpath "${DAPX_BUILD:-build}")
# shellcheck source=selftests/module/harness/tap.sh
. "$(dirname "$0")/harness/tap.sh"
# shellcheck source=selftests/module/harness/machines.sh
. "$(dirname "$0")/harness/machines.sh"
trap 'rm -rf "$work"' EXIT

# Those of pingpongs and perftest by TCP, others by the RDMA CM.
listens() { ss -Hltn "sport = :$1" | grep -q . || rdma res show cm_id | grep -q "LISTEN.*:$1 "; }

# both SAYS PROGRAM OPTIONS SERVER-OPTIONS CLIENT-OPTIONS [CLIENT-PROGRAM]: what each end says when all went well
port=18800
both() {
	local says=$1 rc=0 tries program
	((port++))
	if ((HOST == 2)); then
		# shellcheck disable=SC2086  # options
		timeout 100 "${run[@]}" "$2" -p $port $3 $4 >"$work/said" 2>&1 &
		program=$!
		for ((tries = 0; tries < 300; tries++)); do
			! listens $port || break
			sleep 0.1
		done
		meet || rc=1
		wait "$program" || rc=1
	else
		meet || rc=1
		# shellcheck disable=SC2086  # options
		timeout 100 "${run[@]}" "${6:-$2}" -p $port $3 $5 >"$work/said" 2>&1 || rc=1
	fi
	grep -qE "$says" "$work/said" && ((rc == 0)) && return
	cat "$work/said"
	return 1
}

gid=$(grep -l '^0000:0000:0000:0000:0000:ffff:' "/sys/class/infiniband/$DAPX_DEV/ports/1/gids/"* 2>/dev/null | tail -n 1)
gid=${gid##*/}
line='^ *[0-9]+ +100 +[0-9.]+'

rc_pingpong() { both "100 iters in" ibv_rc_pingpong "-d $device -g $gid -n 100 -c" "" "$DAPX_PEER_IP"; }
srq_pingpong() { both "100 iters in" ibv_srq_pingpong "-d $device -g $gid -n 100 -e" "" "$DAPX_PEER_IP"; }
xsrq_pingpong() { both success ibv_xsrq_pingpong "-d $device -g $gid -n 100" "" "$DAPX_PEER_IP"; }
send_bw() { both "$line" ib_send_bw "-d $device -x $gid -n 100" "" "$DAPX_PEER_IP"; }
write_lat_of_xrc() { both "$line" ib_write_lat "-d $device -x $gid -n 100 -c XRC" "" "$DAPX_PEER_IP"; }
rping() { both "ping data: rdma-ping-9:" rping "-C 10 -v -V" -s "-c -a $DAPX_PEER_IP"; }
ucmatose() { both "return status 0" ucmatose "-c 10" "" "-s $DAPX_PEER_IP"; }
client_and_server() { both "end 0" rdma_server "" "" "-s $DAPX_PEER_IP" rdma_client; }
xclient_and_xserver() { both "end 0" rdma_xserver "-c x" "" "-s $DAPX_PEER_IP" rdma_xclient; }

echo "TAP version 13"
for pair in "dapx dapx" "dapx libibverbs" "libibverbs dapx"; do
	read -r server client <<<"$pair"
	if ((HOST == 1)); then mine=$client; else mine=$server; fi
	run=() device=$DAPX_DEV programs="rc_pingpong srq_pingpong send_bw rping ucmatose client_and_server"
	[[ $mine = libibverbs ]] || run=("$build/tools/dapx-run") device=dapx_$DAPX_DEV
	[[ $pair = *libibverbs* ]] || programs+=" xsrq_pingpong write_lat_of_xrc xclient_and_xserver"
	for program in $programs; do
		result "$program, $client asks $server" "$program"
	done
done
end_of_results
