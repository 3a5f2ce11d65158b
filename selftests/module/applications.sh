#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Applications that Debian has, unmodified, on dapx by dapx-run: libfabric, qperf, fio and QEMU's live migration, which
# connect by the RDMA CM and send by verbs. With the argument "mpi", Open MPI, whose ranks use libfabric.
# shellcheck disable=SC2317  # functions are called by name
set -u

build=$(realpath "${DAPX_BUILD:-build}")
here=$(realpath "$(dirname "$0")")
# shellcheck source=selftests/module/harness/tap.sh
. "$here/harness/tap.sh"
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; rm -rf "$work"' EXIT

dapx=$build/tools/dapx-run
plain="env"
# Completion queues for this many ranks. By default it is 256, which rxe has not enough room for.
export FI_UNIVERSE_SIZE=4

# has NAME PROGRAM: whether there is one; else the case is skipped
has() {
	type -P "$2" >/dev/null || { skip "$1" "no $2"; return 1; }
}

# until_true COMMAND...: within 20 s
until_true() {
	local try
	for ((try = 0; try < 200; try++)); do
		"$@" && return
		sleep 0.1
	done
	echo "not true after 20 s: $*"
	return 1
}

listens_by_tcp() { ss -Hltn "sport = :$1" | grep -q .; }
listens_by_rdma() { rdma res show cm_id | grep -q "LISTEN.*:$1 "; }

# serve COMMAND...: in the background, with its output in $work/server
serve() {
	timeout 120 "$@" >"$work/server" 2>&1 &
	pids=("$!")
}

# served COMMAND...: what serve started ends without an error, and COMMAND before it
served() {
	timeout 120 "$@" >"$work/said" 2>&1 || { cat "$work/said"; kill "${pids[@]}"; return 1; }
	wait "${pids[@]}"
}

# fi_pingpong SERVER CLIENT OPTION...: messages of all sizes; each end looks at what it gets
fi_pingpong() {
	local at=$1 with=$2
	shift 2
	serve "$at" fi_pingpong "$@" -I 2 -c
	until_true listens_by_tcp 47592 && served "$with" fi_pingpong "$@" -I 2 -c "$DAPX_PEER_IP" &&
		grep -q '^1m ' "$work/said" && grep -q '^1m ' "$work/server"
}

# measures CLIENT TEST: qperf's server (0.4.11) tells its port before it listens there, so a client that is rejected,
# as it can be on libibverbs, comes again
measures() {
	local try
	for ((try = 0; try < 20; try++)); do
		timeout 120 "$1" qperf "$DAPX_PEER_IP" -t 1 -cm 1 "$2" >"$work/numbers" 2>&1
		grep -qE '(latency|bw|msg_rate) +=' "$work/numbers" && return
		grep -q 'Event rejected' "$work/numbers" || break
	done
	cat "$work/numbers"
	return 1
}

qperf() { # qperf SERVER CLIENT TEST...
	local client=$2 test
	serve "$1" qperf
	until_true listens_by_tcp 19765 || return
	for test in "${@:3}"; do
		measures "$client" "$test" || { kill "${pids[@]}"; return 1; }
	done
	served "$client" qperf "$DAPX_PEER_IP" quit
}

fio() { # fio SERVER CLIENT
	local verb port=18800
	for verb in send write read; do
		((port++))
		serve "$1" fio --name=receive --ioengine=rdma --port=$port --bs=64k --size=4m --rw=read --iodepth=16
		until_true listens_by_rdma $port &&
			served "$2" fio --name=$verb --ioengine=rdma --hostname="$DAPX_PEER_IP" --port=$port --verb=$verb \
				--bs=64k --size=4m --rw=write --iodepth=8 --iodepth_batch_complete=4 || return
		grep -q 'WRITE: .*io=4096KiB' "$work/said" || { cat "$work/said"; return 1; }
	done
}

# machine COMMANDS FILE [OPTION...]: one whose memory has FILE at 16 MiB, and which obeys COMMANDS
machine() {
	timeout 120 "$dapx" qemu-system-x86_64 -M pc,accel=tcg -m 64 -nodefaults -display none -S -monitor stdio \
		-device loader,file="$2",addr=0x1000000,force-raw=on "${@:3}" <"$1"
}

is_migrated() {
	echo "info migrate" >&"$source"
	grep -q 'Migration status: \(completed\|failed\)' "$work/source.log"
}

migration() { # migration on|off: whether all memory is pinned
	local source destination
	head -c 4M /dev/urandom >"$work/memory"
	head -c 4M /dev/zero >"$work/zero"
	rm -f "$work"/{source,destination}{,.log} "$work/arrived"
	mkfifo "$work/source" "$work/destination"
	exec {source}<>"$work/source" {destination}<>"$work/destination"
	machine "$work/destination" "$work/zero" -incoming "rdma:$DAPX_PEER_IP:18850" >"$work/destination.log" 2>&1 &
	pids=("$!")
	machine "$work/source" "$work/memory" >"$work/source.log" 2>&1 &
	pids+=("$!")
	until_true listens_by_rdma 18850 && {
		echo "migrate_set_capability rdma-pin-all $1"
		echo "migrate -d rdma:$DAPX_PEER_IP:18850"
	} >&"$source" && until_true is_migrated
	echo quit >&"$source"
	echo "pmemsave 0x1000000 0x400000 \"$work/arrived\"" >&"$destination"
	echo quit >&"$destination"
	wait "${pids[@]}"
	exec {source}>&- {destination}>&-
	cmp "$work/memory" "$work/arrived" || { cat "$work/source.log" "$work/destination.log"; return 1; }
}

mpi() {
	mpicc -Wall -o "$work/ring" "$here/mpi_ring.c" || return
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=$work \
		timeout 120 mpirun --oversubscribe -np 4 --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "verbs;ofi_rxm" \
		"$dapx" "$work/ring"
}

echo "TAP version 13"
if [[ ${1:-} = mpi ]]; then
	has "Open MPI" mpicc && result "Open MPI" mpi
	end_of_results
	exit
fi
if has "libfabric" fi_pingpong; then
	result "libfabric, messages" fi_pingpong "$dapx" "$dapx" -p verbs -e msg
	result "libfabric, messages, the server on librdmacm" fi_pingpong "$plain" "$dapx" -p verbs -e msg
	result "libfabric, messages, the client on librdmacm" fi_pingpong "$dapx" "$plain" -p verbs -e msg
	result "libfabric, reliable datagrams" fi_pingpong "$dapx" "$dapx" -p "verbs;ofi_rxm" -e rdm
fi
if has "qperf" qperf; then
	result "qperf" qperf "$dapx" "$dapx" rc_lat rc_rdma_read_lat rc_rdma_write_bw rc_compare_swap_mr rc_fetch_add_mr
	result "qperf, the server on librdmacm" qperf "$plain" "$dapx" rc_bw
	result "qperf, the client on librdmacm" qperf "$dapx" "$plain" rc_bw
fi
has "fio" fio && result "fio" fio "$dapx" "$dapx"
result "live migration by QEMU" migration off
result "live migration by QEMU, all memory pinned" migration on
end_of_results
