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

# Three processes on one host, which have a file in common. The one that made the receiving end is killed.
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

for ((i = 1; i <= 3; i++)); do
	"$xrc" "$DAPX_PEER_DEV" "$DAPX_PEER_IP" receive "$work/domain" >"$work/xrc.$i" 2>&1 &
	receivers+=($!)
	await "$i" 'receive queue pair'
done
await 1 'listens'
mkfifo "$work/orders"
"$xrc" "$DAPX_DEV" "$DAPX_PEER_IP" send <"$work/orders" >"$work/xrc.sender" 2>&1 &
server=$!
exec 3>"$work/orders"
echo 1 2 3 >&3
await 3 'has its message'
await 3 'as sent'
echo
grep -hv listens "$work"/xrc.[1-3]
cat "$work/xrc.sender"
echo
"$tools/dapxctl" xrcd
kill -KILL "${receivers[0]}"
wait "${receivers[0]}" 2>/dev/null || true
echo
echo "process ${receivers[0]}, which made the receive queue pair, has been killed"
echo 2 3 >&3
await 5 'has its message'
await 5 'as sent'
echo
"$tools/dapxctl" xrcd
echo
exec 3>&-
wait "$server"
server=''
await 2 'the peer is gone'
tail -qn 2 "$work"/xrc.[23]
tail -n 2 "$work/xrc.sender"
