#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# 'make demo', in the virtual machine: a file goes from a process on one RDMA host to a process on the other.
set -euo pipefail

tools=${DAPX_BUILD:-build}/tools
work=$(mktemp -d)
server=''
trap '[[ -z $server ]] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT

# What a machine surely has: its kernel, with some of its modules.
cd "$DAPX_KERNEL_DIR"
tar -cf "$work/kernel.tar" "boot/vmlinuz-$(uname -r)" \
	"lib/modules/$(uname -r)/kernel"/{arch,crypto,fs,lib,net,sound,drivers/net}
cd "$OLDPWD"

echo "Linux $(uname -r), two RDMA hosts: $DAPX_DEV has $DAPX_IP, $DAPX_PEER_DEV has $DAPX_PEER_IP"
echo
"$tools/dapxctl" devices
echo
"$tools/dapx-perf" --server --once --device "$DAPX_PEER_DEV" --output "$work/received.tar" >"$work/server.log" 2>&1 &
server=$!
for ((i = 0; i < 100; i++)); do
	[[ ! -s $work/server.log ]] || break
	sleep 0.1
done
if ! "$tools/dapx-perf" --device "$DAPX_DEV" --file "$work/kernel.tar" "$DAPX_PEER_IP"; then
	cat "$work/server.log"
	exit 1
fi
wait "$server" || { cat "$work/server.log"; exit 1; }
server=''
cmp "$work/kernel.tar" "$work/received.tar"
echo "received.tar, which the other process wrote, is kernel.tar to the last byte"

echo
window=${DAPX_BUILD:-build}/Documentation/examples/dapx-example-window
"$window" "$DAPX_PEER_DEV" "$DAPX_PEER_IP" lend >"$work/lender.log" 2>&1 &
server=$!
for ((i = 0; i < 100; i++)); do
	! "$window" "$DAPX_DEV" "$DAPX_PEER_IP" write >"$work/writer.log" 2>&1 || break
	# It does not listen yet.
	sleep 0.1
done
wait "$server" || { cat "$work/lender.log" "$work/writer.log"; exit 1; }
server=''
cat "$work/lender.log" "$work/writer.log"

# Two processes on one host, which have a file in common, and one on the other: three, with one connection. The one that
# made its receiving end is killed, and comes again.
xrc=${DAPX_BUILD:-build}/Documentation/examples/dapx-example-xrc
receivers=()
trap 'kill "${receivers[@]}" $server 2>/dev/null || true; rm -rf "$work"' EXIT

await() { # await COUNT TEXT: so many lines of all of them have it
	local i
	for ((i = 0; i < 600; i++)); do
		(($(cat "$work"/xrc.* | grep -c "$2") < $1)) || return 0
		sleep 0.1
	done
	cat "$work"/xrc.*
	return 1
}

receiver() { # receiver WHO
	"$xrc" "$DAPX_PEER_DEV" "$DAPX_PEER_IP" "$work/domain" "$1" >>"$work/xrc.$1" 2>&1 3>&- &
	receivers[$1]=$!
	await "$2" "^receiver $1: process"
}

receiver 1 1
receiver 2 1
mkfifo "$work/orders"
"$xrc" "$DAPX_DEV" "$DAPX_PEER_IP" <"$work/orders" >"$work/xrc.sender" 2>&1 &
server=$!
exec 3>"$work/orders"
printf '%s\n' '1 good morning' '2 good morning' >&3
await 2 ': good morning'
echo
cat "$work"/xrc.[12] "$work/xrc.sender"
echo
"$tools/dapxctl" xrcd
read -r _ maker _ < <(grep -h makes "$work"/xrc.[12])
maker=${maker%:} other=$((3 - ${maker%:}))
kill -KILL "${receivers[maker]}"
wait "${receivers[maker]}" 2>/dev/null || true
echo
echo "process ${receivers[maker]}, which made the receive queue pair, has been killed"
printf '%s\n' "$other by the same connection" "$maker are you there?" >&3
await 1 'no such shared receive queue'
receiver "$maker" 2
await 1 ': are you there'
exec 3>&-
wait "$server"
server=''
wait "${receivers[@]}"
echo
sed -s '1,/good morning/d' "$work"/xrc.[12]
echo
tail -n +4 "$work/xrc.sender"
