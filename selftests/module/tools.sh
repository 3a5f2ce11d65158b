#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tools against the module: what they print, what they carry, what they say when something is missing. With the argument
# "short", less of it: for the debug kernel, which takes seconds for each program.
set -u

tools=${DAPX_BUILD:-build}/tools
ctl=$tools/dapxctl ping=$tools/dapx-ping perf=$tools/dapx-perf
ko=${DAPX_BUILD:-build}/kmod/$(uname -r)/dapx.ko
# shellcheck source=selftests/module/harness/tap.sh
. "$(dirname "$0")/harness/tap.sh"
server=''
short=${1-}
# An emulated debug kernel takes a while for each.
count=200 file_size=3000001
[[ $DAPX_KERNEL != debug ]] || count=40 file_size=500001
trap 'stop_server; rm -rf "$work"' EXIT

# await COMMAND...: until it succeeds
await() {
	local tries
	for ((tries = 0; tries < 600; tries++)); do
		! "$@" || return 0
		sleep 0.1
	done
	echo "in vain: $*"
	return 1
}

# serve PROGRAM [ARGUMENT...]: its server at the peer's device, when it listens
serve() {
	: >"$work/server" # what the one before said is not this one's
	"$@" --server -d "$DAPX_PEER_DEV" >>"$work/server" 2>&1 &
	server=$!
	await grep -q . "$work/server" && grep '^listening on .*'"$DAPX_PEER_IP" "$work/server" && return
	said "$work/server"
	return 1
}

stop_server() {
	[[ -z $server ]] || { kill "$server"; wait "$server"; } 2>/dev/null
	server=''
	rm -f "$work/server"
}

# Put in, once however often, and taken out to the byte.
dat_conf() {
	local conf=$work/dat.conf lines=4
	printf 'ofa-v2 u2.0 x\n# without an end' >"$conf"
	cp "$conf" "$work/before"
	"$ctl" dat-conf | grep -F "dapx-$DAPX_DEV u1.2 nonthreadsafe default libdapx-dat.so.1 dapx.0.1 \"$DAPX_DEV\" \"\"" || return
	if [[ -e /usr/include/dat2/udat.h ]]; then
		"$ctl" dat-conf | grep -q "^dapx-$DAPX_DEV u2.0 threadsafe    default libdapx-dat.so.2 " || return
		lines=8
	fi
	"$ctl" dat-conf --install --file "$conf" && grep -q "^dapx-$DAPX_PEER_DEV u1.2 threadsafe " "$conf" || return
	cp "$conf" "$work/once"
	"$ctl" dat-conf --install --file "$conf" && cmp "$conf" "$work/once" || return
	"$ctl" dat-conf --remove --file "$conf" && cmp "$conf" "$work/before" || return
	"$ctl" dat-conf --json >"$work/json" && json "len(d) == $lines and d[0]['ia'] == 'dapx-' + d[0]['device']" "$work/json"
}

# One for all: to start a program takes a second on the debug kernel.
coproc JUDGE { python3 -u -c '
import json, sys
while expression := sys.stdin.readline():
    try:
        d = json.load(open(sys.stdin.readline().strip()))
        print("true" if eval(expression) else f"not so: {expression.strip()}, but {d}")
    except Exception as error:
        print("{}: {}".format(expression.strip(), error).replace("\n", " "))'; }
# shellcheck disable=SC2153  # coproc's name
judge=("${JUDGE[@]}")

# json EXPRESSION FILE: true of what is in it
json() {
	local answer
	printf '%s\n' "$@" >&"${judge[1]}"
	read -r answer <&"${judge[0]}"
	[[ $answer = true ]] || { echo "$answer"; return 1; }
}

# one_line TEXT FILE: all that a tool says is a line with TEXT
one_line() {
	local lines
	mapfile -t lines <"$2"
	((${#lines[@]} == 1)) || { echo "not one line"; return 1; }
	[[ ${lines[0]} =~ ^dapx(ctl|-ping|-perf):\  ]] || { echo "not said who says it"; return 1; }
	[[ ${lines[0]} = *"$1"* ]] || { echo "not said: $1"; return 1; }
}

# said FILE...: what is in them, without a program
said() {
	local file
	for file; do
		printf '%s\n' "$(<"$file")"
	done
}

# sentence TEXT COMMAND...: exit code 1, and one line on stderr, with TEXT
sentence() {
	local rc=0
	timeout 100 "${@:2}" >"$work/out" 2>"$work/err" </dev/null || rc=$?
	said "$work/out" "$work/err"
	((rc == 1)) || { echo "exit code $rc"; return 1; }
	one_line "$1" "$work/err"
}

usage_error() { # usage_error TEXT COMMAND...
	local rc=0
	"${@:2}" >"$work/out" 2>"$work/err" || rc=$?
	said "$work/out" "$work/err"
	((rc == 2)) && [[ ! -s $work/out ]] && one_line "$1" "$work/err"
}

# Somebody without rights may not reach the tree.
for_all=$work/bin
mkdir "$for_all"
cp "$ctl" "$ping" "$perf" "$(ldd "$ctl" | sed -n 's/.*libdapx.* => \([^ ]*\) .*/\1/p')" "$for_all"
chmod -R a+rX "$work"
as_nobody=(env "LD_LIBRARY_PATH=$for_all" setpriv --reuid 65534 --regid 65534 --clear-groups)

info() {
	"$ctl" info >"$work/out" && "$ctl" info -j >"$work/j" || return
	said "$work/out" "$work/j"
	grep -q '^module  *loaded$' "$work/out" &&
		json "d['module'] is True and d['node'] == '/dev/dapx' and 'rc' in d['features'] and d['feature_bits'] & 1" \
			"$work/j" &&
		json "d['limits']['segments'] >= 8 and all(v > 0 for v in d['limits'].values()) and len(d['limits']) == 6" \
			"$work/j"
}

devices() {
	"$ctl" devices >"$work/out" && "$ctl" devices -j >"$work/j" || return
	said "$work/out" "$work/j"
	grep -q "^$DAPX_DEV  *$RDMA .* ACTIVE .*$DAPX_IP.* yes\$" "$work/out" &&
		json "[x['name'] for x in d if x['usable']] == ['$DAPX_DEV', '$DAPX_PEER_DEV']" "$work/j" &&
		json "all(x['driver'] == '$RDMA' and x['transport'] for x in d)" "$work/j" &&
		json "all(x['limits']['send_segments'] > 0 and 'mtu' in x['limits'] and len(x['limits']) == 14 for x in d)" "$work/j" &&
		json "d[0]['limits']['private_data'] == {'connect': 56, 'accept': 196, 'reject': 148, 'xrc_connect': 48, 'xrc_accept': 188}" "$work/j" &&
		json "'$DAPX_IP' in d[0]['addresses'] and '$DAPX_PEER_IP6' in d[1]['addresses']" "$work/j" &&
		json "d[0]['ports'][0]['netdev'] == '$DAPX_NETDEV' and d[1]['ports'][0]['state'] == 'ACTIVE'" "$work/j"
}

# The same in one line and in many.
pretty() {
	local words
	for words in info devices "show all" xrcd "xrcd show" dat-conf; do
		# shellcheck disable=SC2086  # several
		"$ctl" $words -j >"$work/line" && "$ctl" $words -jp >"$work/j" || return
		[[ $(wc -l <"$work/line") = 1 ]] || { said "$work/line"; return 1; }
		json "d == json.load(open('$work/line')) and (not d or len(open('$work/j').readlines()) > 2)" "$work/j" || return
	done
	"$ctl" devices -p >"$work/out" && "$ctl" devices | diff - "$work/out"
}

# completes EXPECTED WORD...: what the last WORD can become, by spaces
completes() {
	local got
	# shellcheck disable=SC2016  # the other shell's
	got=$(bash -c '. tools/completions/dapx.bash && complete -p "${1##*/}" >/dev/null || exit
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_dapx "$1" "${!#}" && echo "${COMPREPLY[*]}"' - "${@:2}") || return
	[[ $got = "$1" ]] || { echo "${*:2} becomes $got, not $1"; return 1; }
}

completion() {
	local command options all="$DAPX_DEV $DAPX_PEER_DEV"
	completes "info devices doctor xrcd show monitor rxe dat-conf" "$ctl" "" &&
		completes "all cm context ep evd mr pd rmr srq xrc-qp xrcd" "$ctl" show "" &&
		completes "xrc-qp xrcd" "$ctl" show -j x && completes "add del" "$ctl" rxe "" &&
		completes "$DAPX_NETDEV" "$ctl" rxe add "$DAPX_NETDEV" && completes "$all" "$ctl" monitor -d "" &&
		completes "$all" "$perf" --device "" && completes "" "$perf" --port "" &&
		completes "latency" "$perf" --test l && completes "fetch-add" "$ping" --op f && completes "" "$ctl" show --nonsense= &&
		completes "$work/bin" "$perf" --file "$work/bi" && completes setpriv "$tools/dapx-run" setpri &&
		completes "" "$tools/dapx-run" ls --he || return
	[[ $RDMA != rxe ]] || completes "$all" "$ctl" rxe del "" || return
	# Not one that --help has is forgotten.
	for command in "$ctl" "$ctl info" "$ctl show" "$ctl doctor" "$ctl dat-conf" "$ping" "$perf" "$tools/dapx-run"; do
		# shellcheck disable=SC2086  # program and arguments
		options=$($command --help | grep -oE '^  -[^ ]*' | tr ',' '\n' | xargs)
		# shellcheck disable=SC2086
		[[ $options = *--help* ]] && completes "$options" $command - || return
	done
}

# rxe_devices NETDEV: rxe devices on it
rxe_devices() { grep -lxs "$1" /sys/class/infiniband/*/parent; }

# On a pair of interfaces of their own.
rxe_life() {
	local rc=0
	ip link add da type veth peer name db || return
	rxe_works || rc=1
	rdma link del rxe2 2>/dev/null
	ip link del da
	return $rc
}

rxe_works() {
	# As rdma-ndd does: what anybody may write there does not say what the device is.
	"$ctl" rxe add da >"$work/out" && echo "host rxe2" >/sys/class/infiniband/rxe2/node_desc || return
	said "$work/out"
	[[ $(<"$work/out") = "rxe2: made on da" && $(rxe_devices da) = /sys/class/infiniband/rxe2/parent ]] &&
		"$ctl" devices -j >"$work/j" && json "d[2]['name'] == 'rxe2' and d[2]['driver'] == 'rxe' and d[2]['usable']" "$work/j" &&
		sentence "cannot make an rxe device on da: it has one, rxe2; use that" "$ctl" rxe add da rxe9 &&
		sentence "cannot make an rxe device on db: the name $DAPX_DEV is taken; choose another" "$ctl" rxe add db "$DAPX_DEV" &&
		sentence "cannot make an rxe device on nosuch: there is no network interface nosuch" "$ctl" rxe add nosuch &&
		sentence "a name has up to 63 characters" "$ctl" rxe add db "$(printf 'r%.0s' {1..64})" &&
		sentence "the kernel does not take the name r%s; choose another" "$ctl" rxe add db r%s &&
		sentence "cannot make an rxe device on db: permission denied; run it as root" "${as_nobody[@]}" \
			"$for_all/dapxctl" rxe add db &&
		sentence "cannot delete rxe2: permission denied; run it as root" "${as_nobody[@]}" "$for_all/dapxctl" rxe del rxe2 ||
		return
	"$ctl" rxe del rxe2 >"$work/out" && [[ $(<"$work/out") = "rxe2: deleted" && -z $(rxe_devices da) ]] &&
		sentence "cannot delete rxe2: there is no such RDMA device; there are: $DAPX_DEV, $DAPX_PEER_DEV" "$ctl" rxe del rxe2
}

# The kernel loads the driver on its own, or says that it cannot.
rxe_without_driver() {
	local rc=0
	"$ctl" rxe del "$DAPX_DEV" && "$ctl" rxe del "$DAPX_PEER_DEV" && rmmod rdma_rxe || return
	echo "install rdma_rxe /bin/false" >/etc/modprobe.d/test.conf
	sentence "the kernel module rdma_rxe cannot be loaded; 'modprobe rdma_rxe' as root says why" \
		"$ctl" rxe add "$DAPX_NETDEV" "$DAPX_DEV" || rc=1
	rm /etc/modprobe.d/test.conf
	"$ctl" rxe add "$DAPX_NETDEV" "$DAPX_DEV" && "$ctl" rxe add "$DAPX_PEER_NETDEV" "$DAPX_PEER_DEV" || return
	await grep -q ACTIVE "/sys/class/infiniband/$DAPX_PEER_DEV/ports/1/state" && devices || rc=1
	return $rc
}

ping_once() { # ping_once OP ADDRESS [OPTION...]
	local size=1024
	[[ $1 != fetch-add ]] || size=8
	"$ping" -d "$DAPX_DEV" -c 5 -i 0.01 -s 1k --op "$1" -j "${@:3}" "$2" >"$work/j" || return
	said "$work/j"
	json "d['sent'] == 5 and d['received'] == 5 and d['latency']['samples'] == 5" "$work/j" &&
		json "d['op'] == '$1' and d['size'] == $size and d['device'] == '$DAPX_DEV' and '$2' in d['peer']" "$work/j" &&
		json "0 <= d['latency']['min_us'] <= d['latency']['median_us'] <= d['latency']['p99_us']" "$work/j" &&
		json "d['latency']['p99_us'] <= d['latency']['max_us'] and d['connect_us'] >= 0" "$work/j"
}

ping_xrc() { # ping_xrc OP
	ping_once "$1" "$DAPX_PEER_IP" --xrc && json "d['xrc'] is True" "$work/j"
}

# A client that is gone does not keep the next from being served.
ping_xrc_again() {
	local client
	: >"$work/out"
	"$ping" -d "$DAPX_DEV" --xrc -i 0.05 -s 100 "$DAPX_PEER_IP" >"$work/out" 2>"$work/err" &
	client=$!
	await grep -q "seq=3 " "$work/out" && kill -KILL "$client" || return
	wait "$client"
	ping_xrc send
}

# answered FILE: how many answers it prints
answered() { grep -c "^100 bytes from $DAPX_PEER_IP: seq=[0-9]* time=" "$1"; }

ping_lines() { # ping_lines COUNT [OPTION...]: prints so many answers
	"$ping" -d "$DAPX_DEV" -c 3 -i 0.01 -s 100 "${@:2}" "$DAPX_PEER_IP" >"$work/out" || return
	said "$work/out"
	[[ $(answered "$work/out") = "$1" ]] && grep -q '^3 sent, 3 answered, connected in ' "$work/out" &&
		grep -q '^round trip min .*, median .*, p99 .*, max ' "$work/out"
}

# The least and the greatest message, and one of many packets.
ping_sizes() {
	local size
	for size in 1 4097 1048576; do
		"$ping" -d "$DAPX_DEV" -W 60 -c 2 -i 0 -s $size -j "$DAPX_PEER_IP" >"$work/j" || return
		json "d['size'] == $size and d['received'] == 2" "$work/j" || return
	done
}

start_ping() {
	: >"$work/out" # what the one before said is not this one's
	"$ping" -d "$DAPX_DEV" -i 0.05 -s 100 "$DAPX_PEER_IP" >"$work/out" 2>"$work/err" &
	client=$!
	await grep -q "seq=3 " "$work/out"
}

# All that was answered is in the summary.
ping_summary() {
	local n
	n=$(answered "$work/out")
	tail -n 2 "$work/out" | grep -qE "^($n|$((n + 1))) sent, $n answered" &&
		tail -n 1 "$work/out" | grep -q '^round trip min '
}

ping_interrupted() {
	local rc=0 client
	start_ping && kill -INT "$client" && { wait "$client" || rc=$?; }
	said "$work/out" "$work/err"
	((rc == 0)) && ping_summary && [[ ! -s $work/err ]]
}

kill_server() {
	kill -KILL "$server"
	wait "$server" 2>/dev/null
	server=''
}

ping_loses_server() {
	local rc=0 client
	start_ping || return
	kill_server
	wait "$client" || rc=$?
	said "$work/out" "$work/err"
	((rc == 1)) && one_line "$DAPX_PEER_IP:7710" "$work/err" && ping_summary
}

# Of two clients the second is told; the first goes on.
ping_too_many() {
	local rc=0 client
	"$ping" -d "$DAPX_DEV" -i 0.05 -s 100 "$DAPX_PEER_IP" >"$work/first" 2>&1 &
	client=$!
	await grep -q "seq=3 " "$work/first" &&
		sentence "cannot connect to $DAPX_PEER_IP:7710: this server has all its --max-clients; try again later" \
			"$ping" -d "$DAPX_DEV" "$DAPX_PEER_IP" &&
		await grep -q "seq=$(($(answered "$work/first") + 3)) " "$work/first" || rc=1
	kill -INT "$client" && wait "$client" && return $rc
}

# Longer between two messages than the server's idle time-out.
ping_pauses() {
	local op
	for op in send write; do
		"$ping" -d "$DAPX_DEV" -c 2 -i 2.5 --op $op -j "$@" "$DAPX_PEER_IP" >"$work/j" || return
		json "d['received'] == 2" "$work/j" || return
	done
}

# A client that does not run any more is ended, and its place is free for another.
ping_idle() {
	local client
	start_ping && kill -STOP "$client" && await grep -q "a client was lost: nothing came from $DAPX_IP" "$work/server" || return
	ping_once send "$DAPX_PEER_IP" || return
	kill -CONT "$client"
	! wait "$client" && one_line "$DAPX_PEER_IP:7710" "$work/err"
}

# Server and client stand still together, as the machine may have: that is no reason to end a client.
ping_stalled() {
	local client rc=0
	start_ping && kill -STOP "$client" && sleep 0.2 && kill -STOP "$server" && sleep 1.5 && kill -CONT "$server" &&
		sleep 0.1 && kill -CONT "$client" || return
	await grep -q "seq=$(($(answered "$work/out") + 20)) " "$work/out" || rc=1
	kill -INT "$client" && wait "$client" && return $rc
}

# Each has a PD and an XRC domain of its own.
ping_isolated() {
	local class i rc=0 clients=()
	for ((i = 0; i < 2; i++)); do
		"$ping" -d "$DAPX_DEV" --xrc -i 0.05 "$DAPX_PEER_IP" >"$work/out$i" 2>&1 &
		clients+=($!)
		await grep -q "seq=3 " "$work/out$i" || rc=1
	done
	for class in pd xrcd srq; do
		"$ctl" show $class -j --pid "$server" >"$work/j" && json "len(d) == 2" "$work/j" || rc=1
	done
	kill -INT "${clients[@]}"
	wait "${clients[0]}" && wait "${clients[1]}" && return $rc
}

carried() { cat "/sys/class/net/$DAPX_NETDEV/statistics/tx_bytes"; }
carried_more() { (($(carried) > $1)); }

# A server that always has something to do.
perf_server_is_interrupted() {
	local rc=0 client
	"$perf" -d "$DAPX_DEV" -t 600 -q 256 --test rate --op send --poll "$DAPX_PEER_IP" >"$work/out" 2>"$work/err" &
	client=$!
	await carried_more $(($(carried) + 100000)) && kill -TERM "$server" && { wait "$server" || rc=$?; }
	server=''
	! wait "$client" && ((rc == 0)) && one_line "$DAPX_PEER_IP:7711" "$work/err"
}

perf_loses_server() { # perf_loses_server [OPTION...]
	local rc=0 client
	"$perf" -d "$DAPX_DEV" -t 600 -s 4k --test bandwidth --op write "$@" "$DAPX_PEER_IP" >"$work/out" 2>"$work/err" &
	client=$!
	await carried_more $(($(carried) + 500000)) || return
	kill_server
	wait "$client" || rc=$?
	said "$work/out" "$work/err"
	((rc == 1)) && one_line "$DAPX_PEER_IP:7711" "$work/err"
}

# What was measured till then is shown.
perf_interrupted() { # perf_interrupted TEST [OPTION...]
	local rc=0 client
	"$perf" -d "$DAPX_DEV" -t 600 -s 4k --test "$1" --op send -j "${@:2}" "$DAPX_PEER_IP" >"$work/j" 2>"$work/err" &
	client=$!
	await carried_more $(($(carried) + 100000)) && kill -INT "$client" && { wait "$client" || rc=$?; }
	said "$work/j" "$work/err"
	((rc == 0)) && [[ ! -s $work/err ]] && json "len(d['results']) == 1 and d['results'][0]['count'] > 0" "$work/j"
}

perf_tests() { # perf_tests True|False [OPTION...]: whether it is by XRC
	local tests ops
	"$perf" -d "$DAPX_DEV" -n "$count" -j "${@:2}" "$DAPX_PEER_IP" >"$work/j" || return
	said "$work/j"
	tests="['latency', 'rate', 'bandwidth']" ops="['send', 'write', 'read']"
	json "[(x['test'], x['op']) for x in d['results']] == [(t, o) for t in $tests for o in $ops]" "$work/j" &&
		json "all(x['count'] == $count for x in d['results']) and d['xrc'] is $1" "$work/j" &&
		json "all(x['size'] == (65536 if x['test'] == 'bandwidth' else 8) for x in d['results'])" "$work/j" &&
		json "all(x['latency']['samples'] == $count for x in d['results'] if x['test'] == 'latency')" "$work/j" &&
		json "all(x['bytes_per_s'] > 0 for x in d['results'] if x['test'] != 'latency')" "$work/j"
}

perf_table() { # perf_table HEAD [OPTION...]: the first line ends so
	"$perf" -d "$DAPX_DEV" -n 20 -s 100,2k -q 4 --test latency,rate --op write "${@:2}" "$DAPX_PEER_IP" >"$work/out" || return
	said "$work/out"
	[[ $(head -n 1 "$work/out") = *" ($DAPX_DEV)$1" && $(grep -cE '^write +(100|2048) +(20|4 +20) ' "$work/out") = 4 ]]
}

# While one has its memory, there is not enough for another.
perf_memory() {
	local rc=0 client
	"$perf" -d "$DAPX_DEV" -t 600 -s 900k --test bandwidth --op write -j "$DAPX_PEER_IP" >"$work/j" 2>"$work/err" &
	client=$!
	await carried_more $(($(carried) + 1000000)) &&
		sentence "cannot connect to $DAPX_PEER_IP:7711: this server's memory is in use; try again later" \
			"$perf" -d "$DAPX_DEV" -s 900k --test bandwidth --op write "$DAPX_PEER_IP" || rc=1
	kill -INT "$client" && wait "$client" && json "d['results'][0]['count'] > 0" "$work/j" && return $rc
}

# What the server does not see lasts longer than its idle time-out.
perf_unseen() { # perf_unseen OP [OPTION...]
	"$perf" -d "$DAPX_DEV" -t 1.5 -s 1k --test latency,bandwidth --op "$1" -j "${@:2}" "$DAPX_PEER_IP" >"$work/j" &&
		json "all(r['count'] > 0 for r in d['results']) and len(d['results']) == 2" "$work/j"
}

# The file that is sent, which does not end where a message does.
make_file() {
	[[ -e $work/sent ]] || head -c $file_size /dev/urandom >"$work/sent"
	rm -f "$work/received"
}

perf_file() {
	make_file && "$perf" -d "$DAPX_DEV" --file "$work/sent" "$DAPX_PEER_IP" >"$work/out" || return
	said "$work/out"
	wait "$server" || { said "$work/server"; return 1; }
	server=''
	cmp "$work/sent" "$work/received" && [[ $(grep -c 'crc32 .* there: the same$' "$work/out") = 2 ]]
}

perf_file_json() {
	local crc
	make_file
	crc=$(python3 -c 'import sys, zlib; print("%08x" % zlib.crc32(open(sys.argv[1], "rb").read()))' "$work/sent")
	"$perf" -d "$DAPX_DEV" -j --file "$work/sent" -s 10000 "$DAPX_PEER_IP" >"$work/j" || return
	said "$work/j"
	cmp "$work/sent" "$work/received" &&
		json "d['crc32'] == '$crc' and d['bytes'] == $file_size and d['message_size'] == 10000" "$work/j" &&
		json "[x['op'] for x in d['transfers']] == ['send', 'RDMA write']" "$work/j" &&
		json "all(x['match'] and x['peer_crc32'] == '$crc' and x['messages'] == $((file_size / 10000 + 1)) for x in d['transfers'])" "$work/j"
}

# The old file is there as long as the new one is not, and nothing else is.
perf_disk_full() {
	local rc=0
	make_file && stop_server && mkdir "$work/full" && mount -t tmpfs -o size=256k none "$work/full" || return
	echo old >"$work/full/received"
	serve "$perf" --output "$work/full/received" &&
		! "$perf" -d "$DAPX_DEV" --file "$work/sent" "$DAPX_PEER_IP" >"$work/out" 2>"$work/err" &&
		await grep -q "cannot write $work/full/received: No space left on device" "$work/server" &&
		one_line "$DAPX_PEER_IP:7711" "$work/err" &&
		[[ $(<"$work/full/received") = old && $(ls "$work/full") = received ]] || rc=1
	stop_server
	umount "$work/full"
	return $rc
}

# A name that is no UTF-8 can be sent, and told in JSON.
perf_file_odd_name() {
	local name=$work/$'sent\xff'
	make_file && ln -f "$work/sent" "$name" && "$perf" -d "$DAPX_DEV" -j --file "$name" "$DAPX_PEER_IP" >"$work/j" || return
	json "d['file'] == 'sent\ufffd' and all(x['match'] for x in d['transfers'])" "$work/j"
}

# dapx-perf with these, as somebody who may lock so much, called TEXT
locked_memory() { # locked_memory BYTES TEXT OPTION...
	local mode rc
	mode=$(stat -c %a /dev/dapx)
	chmod 666 /dev/dapx
	sentence "this process may lock $2 (RLIMIT_MEMLOCK); raise it with 'ulimit -l'" "${as_nobody[@]}" \
		prlimit "--memlock=$1:$1" "$for_all/dapx-perf" -d "$DAPX_DEV" "${@:3}" "$DAPX_PEER_IP"
	rc=$?
	chmod "$mode" /dev/dapx
	return $rc
}

# An address behind which there is nobody: what is sent there vanishes.
unreachable() {
	local rc
	ip route add 10.0.0.9 dev "$DAPX_NETDEV"
	ip neigh add 10.0.0.9 dev "$DAPX_NETDEV" lladdr 02:da:00:00:00:09 nud permanent
	# siw does not let go of an attempt before TCP does: see Documentation/architecture.rst.
	echo 1 >/proc/sys/net/ipv4/tcp_syn_retries
	sentence "cannot connect to 10.0.0.9:7710: no answer in time; see whether the address is right" \
		"$ping" -d "$DAPX_DEV" -W 2 10.0.0.9
	rc=$?
	ip neigh del 10.0.0.9 dev "$DAPX_NETDEV"
	ip route del 10.0.0.9 dev "$DAPX_NETDEV"
	return $rc
}

info_without_permission() {
	sentence "permission denied" "${as_nobody[@]}" "$for_all/dapxctl" info -j &&
		json "d['module'] is True and 'permission denied' in d['reason']" "$work/out"
}

# hold FILE COMMAND...: somebody, by COMMAND, who has the domain of FILE open, with a receive queue pair, until killed
hold() {
	"${@:2}" python3 -c '
import fcntl, os, struct, sys
dapx = os.open("/dev/dapx", os.O_RDWR)
fcntl.ioctl(dapx, 0xDA81, struct.pack("II64s", 72, 0, sys.argv[2].encode()))		# ATTACH
command = bytearray(struct.pack("IIiIQ", 24, 1, os.open(sys.argv[1], os.O_RDWR), 0, 0))
fcntl.ioctl(dapx, 0xDA9F, command)							# XRCD_OPEN
xrcd = struct.unpack_from("I", command, 12)[0]
fcntl.ioctl(dapx, 0xDAA2, bytearray(struct.pack("IIIIQII", 32, 0, xrcd, 0, 0, 0, 0)))	# XRC_QP_CREATE
print("held", flush=True)
sys.stdin.read()' "$1" "$DAPX_DEV" <"$work/until" >>"$work/held" &
}

two_hold() {
	local mode holders=() fd rc
	mode=$(stat -c %a /dev/dapx)
	chmod 666 /dev/dapx
	mkfifo "$work/until"
	exec {fd}<>"$work/until"
	: >"$work/held"
	touch "$work/job"
	chmod 666 "$work/job"
	hold "$work/job" env
	holders+=($!)
	hold "$work/job" "${as_nobody[@]}"
	holders+=($!)
	await both_hold
	rc=$?
	((rc != 0)) || { "$@" "${holders[@]}"; rc=$?; }
	kill "${holders[@]}"
	wait "${holders[@]}" 2>/dev/null
	exec {fd}>&-
	rm -f "$work/until" "$work/job"
	chmod "$mode" /dev/dapx
	return $rc
}

both_hold() { [[ $(wc -l <"$work/held") = 2 ]]; }

xrcd_none() {
	"$ctl" xrcd >"$work/out" && "$ctl" xrcd -j >"$work/j" || return
	said "$work/out" "$work/j"
	grep -qx 'no open XRC domain' "$work/out" && json "d == []" "$work/j"
}

xrcd_all() { # xrcd_all PID PID
	"$ctl" xrcd >"$work/out" && "$ctl" xrcd show -j >"$work/j" || return
	said "$work/out" "$work/j"
	grep -qxF "$work/job on $DAPX_DEV" "$work/out" && grep -qE "^ +$1 +1  python3" "$work/out" &&
		[[ $(grep -cE '^ +[0-9]+  reset +1 +0 +0$' "$work/out") = 2 ]] &&
		json "len(d) == 1 and d[0]['path'] == '$work/job' and d[0]['device'] == '$DAPX_DEV'" "$work/j" &&
		json "sorted(x['pid'] for x in d[0]['processes']) == sorted([$1, $2]) and not d[0]['partial']" "$work/j" &&
		json "len(d[0]['qps']) == 2 and d[0]['srqs'] == [] and not any(d[0]['hidden'].values())" "$work/j"
}

xrcd_own() { # xrcd_own PID PID: nobody's is the second
	"${as_nobody[@]}" "$for_all/dapxctl" xrcd >"$work/out" && "${as_nobody[@]}" "$for_all/dapxctl" xrcd -j >"$work/j" ||
		return
	said "$work/out" "$work/j"
	grep -qF "hidden, of other users: 1 open, 0 SRQs, 1 QP; shown with CAP_NET_ADMIN" "$work/out" &&
		json "[x['pid'] for x in d[0]['processes']] == [$2] and d[0]['partial'] and len(d[0]['qps']) == 1" "$work/j" &&
		json "d[0]['hidden'] == {'opens': 1, 'srqs': 0, 'qps': 1}" "$work/j"
}

# Both hold a context with a domain and a receive queue pair; nobody's is the second.
show_all() { # show_all PID PID
	"$ctl" show >"$work/out" && "$ctl" show all -s >>"$work/out" && "$ctl" show -j >"$work/j" || return
	said "$work/out" "$work/j"
	grep -qE "^ +[0-9]+  $DAPX_DEV +$2  python3 +65534 +[0-9]+$" "$work/out" &&
		grep -qxF xrc-qp "$work/out" &&
		json "len(d) == 2 and {(x['pid'], x['user']) for x in d} == {($1, 0), ($2, 65534)} and not any(x['ending'] for x in d)" "$work/j" &&
		"$ctl" show xrcd -j --pid "$1" >"$work/j" &&
		json "len(d) == 1 and d[0]['class'] == 'xrcd' and d[0]['domain'] > 0 and d[0]['device'] == '$DAPX_DEV'" "$work/j" &&
		"$ctl" show xrcd -j --device "$DAPX_PEER_DEV" >"$work/j" && json "d == []" "$work/j"
}

show_own() { # show_own PID PID
	"${as_nobody[@]}" "$for_all/dapxctl" show all -j >"$work/j" || return
	json "{x['pid'] for x in d} == {$2} and {x['class'] for x in d} >= {'xrcd', 'xrc-qp'}" "$work/j"
}

show_watches() {
	local rc=0
	timeout -s INT 2 "$ctl" show evd -w 0.2 >"$work/out" || rc=$?
	[[ $rc = 0 || $rc = 124 ]] && (($(grep -c '^no evd' "$work/out") > 3)) && return
	cat "$work/out"
	return 1
}

# A server that is killed: what becomes of it is told at once.
monitor_kill() {
	local monitor server rc=0
	"$ctl" monitor -j >"$work/j" &
	monitor=$!
	sleep 1
	"$ping" --server -d "$DAPX_PEER_DEV" >"$work/serves" 2>&1 &
	server=$!
	await grep -q listening "$work/serves" && "$ping" -d "$DAPX_DEV" -c 1 "$DAPX_PEER_IP" >/dev/null || rc=1
	kill -KILL "$server"
	wait "$server" 2>/dev/null
	await grep -q "context-ended.*\"pid\":$server," "$work/j" || rc=1
	kill -INT "$monitor"
	wait "$monitor" || rc=1
	grep "\"pid\":$server," "$work/j" | sed 's/.*"event":"\([^"]*\)".*/\1/' >"$work/events"
	[[ $rc = 0 && $(head -n 1 "$work/events") = context-new && $(tail -n 2 "$work/events" | xargs) = "context-ending context-ended" ]] &&
		grep -q ep-state "$work/events" && grep -q '"cause":"process ended"' "$work/j" && return
	cat "$work/j" "$work/serves"
	return 1
}

told_without_module() {
	local why="cannot open /dev/dapx: the dapx module is not loaded; run 'modprobe dapx' as root"
	sentence "cannot list the XRC domains: ${why#*: }" "$ctl" xrcd || return
	sentence "cannot list the contexts: ${why#*: }" "$ctl" show || return
	sentence "cannot list the objects: ${why#*: }" "$ctl" show ep || return
	sentence "cannot listen to events: ${why#*: }" "$ctl" monitor || return
	sentence "$why" "$ctl" info && sentence "$why" "$ping" -d "$DAPX_DEV" "$DAPX_PEER_IP" &&
		sentence "$why" "$ping" --server -d "$DAPX_DEV" && sentence "$why" "$perf" -d "$DAPX_DEV" "$DAPX_PEER_IP" &&
		sentence "$why" "$perf" --server -d "$DAPX_DEV" || return
	sentence "$why" "$ctl" info -j && json "d == {'module': False, 'reason': \"$why\"}" "$work/out" &&
		"$ctl" devices -j >"$work/j" && json "len(d) == 2 and not any(x['usable'] for x in d)" "$work/j"
}

without_module() {
	local rc
	rmmod dapx || return
	told_without_module
	rc=$?
	insmod "$ko" && "$ctl" info || return
	return $rc
}

in_full() { [[ $short = short ]] || result "$@"; }

echo "TAP version 13"
result "dapxctl info" info
result "dapxctl devices" devices
in_full "JSON for people" pretty
# No work for a kernel, and long where each fork is.
[[ $DAPX_KERNEL = debug ]] || in_full "completion" completion
result "dapxctl xrcd, without any" xrcd_none
result "dapxctl xrcd" two_hold xrcd_all
in_full "dapxctl xrcd, of one's own" two_hold xrcd_own
result "dapxctl show" two_hold show_all
in_full "dapxctl show, of one's own" two_hold show_own
result "dapxctl show watches" show_watches
result "dapxctl monitor" monitor_kill

result "dapx-ping serves" serve "$ping"
for op in send write read fetch-add; do
	if [[ $op = fetch-add && $RDMA = siw ]]; then
		result "dapx-ping $op is not there" sentence "RDMA device $DAPX_DEV has no atomics; choose another --op" \
			"$ping" -d "$DAPX_DEV" --op $op "$DAPX_PEER_IP"
		continue
	fi
	result "dapx-ping $op" ping_once $op "$DAPX_PEER_IP"
	result "dapx-ping $op over IPv6" ping_once $op "$DAPX_PEER_IP6"
done
in_full "dapx-ping of any size" ping_sizes
in_full "dapx-ping prints each answer" ping_lines 3
in_full "dapx-ping is quiet" ping_lines 0 -q
result "dapx-ping is interrupted" ping_interrupted
in_full "dapx-ping's server takes no other client" \
	sentence "cannot connect to $DAPX_PEER_IP:7710: this is a dapx-ping server, for dapx-ping only" \
	"$perf" -d "$DAPX_DEV" -p 7710 "$DAPX_PEER_IP"
in_full "dapx-ping's server has no XRC" \
	sentence "cannot connect to $DAPX_PEER_IP:7710: the server was started without --xrc" \
	"$ping" -d "$DAPX_DEV" --xrc "$DAPX_PEER_IP"
result "dapx-ping loses its server" ping_loses_server

result "dapx-ping serves one client" serve "$ping" --max-clients 1 --idle-timeout 1
in_full "dapx-ping's server takes no more" ping_too_many
in_full "dapx-ping pauses" ping_pauses
in_full "dapx-ping's server was not running itself" ping_stalled
result "dapx-ping's server ends an idle client" ping_idle
stop_server

in_full "dapx-ping serves XRC without a file" serve "$ping" --xrc --idle-timeout 1
in_full "dapx-ping's server keeps its clients apart" ping_isolated
in_full "dapx-ping by XRC pauses" ping_pauses --xrc
stop_server
result "dapx-ping serves XRC" serve "$ping" --xrc --domain "$work/domain"
for op in send write read fetch-add; do
	result "dapx-ping $op by XRC" ping_xrc $op
done
in_full "dapx-ping serves both kinds" ping_once send "$DAPX_PEER_IP"
result "dapx-ping by XRC after a client that died" ping_xrc_again
stop_server
in_full "dapx-ping's domain is of a file" sentence "cannot open $work: Is a directory" \
	"$ping" --server -d "$DAPX_PEER_DEV" --xrc --domain "$work"

result "dapx-perf serves" serve "$perf" --output "$work/received"
result "dapx-perf measures" perf_tests False
in_full "dapx-perf prints a table" perf_table ""
for test in latency bandwidth; do
	result "dapx-perf $test is interrupted" perf_interrupted $test
done
in_full "dapx-perf's server has no XRC" \
	sentence "cannot connect to $DAPX_PEER_IP:7711: the server was started without --xrc" \
	"$perf" -d "$DAPX_DEV" --xrc "$DAPX_PEER_IP"
in_full "dapx-perf sends a file in odd pieces" perf_file_json
in_full "dapx-perf sends a file of any name" perf_file_odd_name
in_full "too little locked memory" locked_memory 65536 "64 KiB" -s 8m --test bandwidth
in_full "too little locked memory for a file" locked_memory 65536 "64 KiB" --file "$for_all/dapxctl"
in_full "no locked memory" locked_memory 0 "0 bytes"
result "dapx-perf's server is interrupted while it is busy" perf_server_is_interrupted
result "dapx-perf serves again" serve "$perf" --output "$work/received"
result "dapx-perf loses its server" perf_loses_server
in_full "dapx-perf serves with limits" serve "$perf" --max-size 1m --max-memory 1500k
in_full "dapx-perf's server has a limit for a client" \
	sentence "cannot connect to $DAPX_PEER_IP:7711: larger than this server's --max-size" \
	"$perf" -d "$DAPX_DEV" -s 200k --test latency --op send "$DAPX_PEER_IP"
in_full "dapx-perf's server has a limit for all clients" perf_memory
stop_server
# A client with more memory may need longer than that on a debug kernel until its first message.
in_full "dapx-perf serves clients that are not idle" serve "$perf" --idle-timeout 1
for op in write read; do
	in_full "dapx-perf $op takes longer than the idle time-out" perf_unseen $op
done
stop_server
result "dapx-perf serves XRC" serve "$perf" --xrc --max-size 1m
result "dapx-perf measures by XRC" perf_tests True --xrc
in_full "dapx-perf measures by XRC with many in flight" perf_tests True --xrc -q 4096
in_full "dapx-perf prints a table of XRC" perf_table " by XRC" --xrc
in_full "dapx-perf serves both kinds" perf_table ""
in_full "dapx-perf by XRC is interrupted" perf_interrupted bandwidth --xrc
in_full "dapx-perf's server has a limit for a client of XRC" \
	sentence "cannot connect to $DAPX_PEER_IP:7711: larger than this server's --max-size" \
	"$perf" -d "$DAPX_DEV" --xrc -s 2m --test latency --op send "$DAPX_PEER_IP"
stop_server
in_full "dapx-perf serves clients of XRC that are not idle" serve "$perf" --xrc --idle-timeout 1
for op in send write; do
	in_full "dapx-perf $op by XRC takes longer than the idle time-out" perf_unseen $op --xrc
done
in_full "dapx-perf by XRC loses its server" perf_loses_server --xrc
result "dapx-perf takes a file" serve "$perf" --once --output "$work/received"
result "dapx-perf sends a file" perf_file
stop_server
in_full "dapx-perf's server has a full disk" perf_disk_full

result "nobody listens" sentence "cannot connect to $DAPX_PEER_IP:7710: nobody listens there; start the server" \
	"$ping" -d "$DAPX_DEV" "$DAPX_PEER_IP"
in_full "nobody listens for dapx-perf" \
	sentence "cannot connect to $DAPX_PEER_IP:7711: nobody listens there; start the server" \
	"$perf" -d "$DAPX_DEV" "$DAPX_PEER_IP"
result "nobody answers" unreachable
in_full "no route" \
	sentence "cannot connect to 192.0.2.9:7710: there is no way to the address from this RDMA device; name" \
	"$ping" -d "$DAPX_DEV" 192.0.2.9
in_full "foreign source" sentence "the address is not one of this RDMA device; 'dapxctl devices' shows which are" \
	"$ping" -d "$DAPX_DEV" -S 10.0.0.77 "$DAPX_PEER_IP"
if [[ $RDMA = siw ]]; then
	result "a siw device is no rxe device" sentence \
		"cannot delete $DAPX_DEV: it is no rxe device, its driver is siw; 'dapxctl devices' shows which are" \
		"$ctl" rxe del "$DAPX_DEV"
fi
# These do not depend on the kind of device.
if [[ $RDMA != siw ]]; then
	in_full "unknown device" sentence "there is no RDMA device rxe7; there are: $DAPX_DEV, $DAPX_PEER_DEV" \
		"$ping" -d rxe7 "$DAPX_PEER_IP"
	in_full "no device named" \
		sentence "there are several RDMA devices: $DAPX_DEV, $DAPX_PEER_DEV; name the one to use with -d" \
		"$perf" "$DAPX_PEER_IP"
	in_full "unknown host" sentence "mind the spelling, or give an IP address" \
		"$ping" -d "$DAPX_DEV" no.such.host.invalid
	in_full "no such file" sentence "cannot read $work/nothing: No such file or directory" \
		"$perf" -d "$DAPX_DEV" --file "$work/nothing" "$DAPX_PEER_IP"
	for tool in "dapxctl info" "dapx-ping -d $DAPX_DEV $DAPX_PEER_IP" "dapx-perf --server -d $DAPX_DEV"; do
		# shellcheck disable=SC2086  # program and arguments
		in_full "no permission for ${tool%% *}" sentence "cannot open /dev/dapx: permission denied: it is for root and group" \
			"${as_nobody[@]}" "$for_all/"$tool
	done
	in_full "no permission, as JSON" info_without_permission
	result "no module" without_module
	result "dapxctl rxe" rxe_life
	result "dapxctl rxe loads the driver" rxe_without_driver
	in_full "lines of dat.conf" dat_conf
	in_full "dat.conf that may not be written" sentence "cannot write $work/none/dat.conf: No such file or directory" \
		"$ctl" dat-conf --install --file "$work/none/dat.conf"
	in_full "wrong usage of dapxctl" usage_error "subcommand" "$ctl" nonsense
	in_full "wrong usage of dapx-ping" usage_error "--size" "$ping" -s 0 "$DAPX_PEER_IP"
	in_full "wrong usage of dapx-perf" usage_error "--test: 'nonsense' is none of bandwidth, latency, rate" "$perf" --test nonsense "$DAPX_PEER_IP"
	in_full "no file by XRC" usage_error "--file needs the server's answers, which XRC has none of; leave out --xrc" \
		"$perf" --xrc --file "$for_all/dapxctl" "$DAPX_PEER_IP"
	in_full "neither server nor host" usage_error "give either --server or the host" "$ping" -d "$DAPX_DEV"
fi
end_of_results
