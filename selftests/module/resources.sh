#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What 'rdma resource show' says of resources of dapx: whose they are, by what dapxctl says, and that none is left of
# processes that were killed.
set -u

tools=${DAPX_BUILD:-build}/tools
# shellcheck source=selftests/module/harness/tap.sh
. "$(dirname "$0")/harness/tap.sh"
server='' clients=()
trap 'end; rm -rf "$work"' EXIT

end() {
	trap 'rm -rf "$work"' EXIT
	[[ -z $server ]] || kill -KILL "$server" "${clients[@]}"
	wait
} 2>/dev/null

# await COMMAND...: until it succeeds
await() {
	local tries
	for ((tries = 0; tries < 100; tries++)); do
		! "$@" || return 0
		sleep 0.1
	done
	echo "in vain: $*"
	return 1
}

# A server, a client by a connection and one by XRC, all of them at work.
begin() {
	"$tools/dapx-ping" --server -d "$DAPX_PEER_DEV" --xrc --domain "$work/domain" >"$work/server" 2>&1 &
	server=$!
	await grep -q '^listening' "$work/server" || return
	"$tools/dapx-ping" -d "$DAPX_DEV" -i 0.1 "$DAPX_PEER_IP" >"$work/one" 2>&1 &
	clients=($!)
	"$tools/dapx-ping" -d "$DAPX_DEV" -i 0.1 --xrc "$DAPX_PEER_IP" >"$work/two" 2>&1 &
	clients+=($!)
	await grep -q 'seq=2 ' "$work/one" && await grep -q 'seq=2 ' "$work/two"
}

# judge PYTHON: true of what is shown: r by kind, d by class as dapxctl has it, server and clients
judge() {
	local kind class
	for kind in pd cq qp mr cm_id; do
		rdma resource show $kind -j >"$work/$kind" || return
	done
	for class in pd ep xrc-qp xrcd; do
		"$tools/dapxctl" show $class -j >"$work/dapx.$class" || return
	done
	python3 - "$1" "$work" "$server" "${clients[@]}" <<-'EOF'
		import json, sys
		load = lambda name: json.load(open(sys.argv[2] + "/" + name))
		r = {kind: [x for x in load(kind) if x.get("comm") != "ib_core"] for kind in ("pd", "cq", "qp", "mr", "cm_id")}
		d = {kind: load("dapx." + kind) for kind in ("pd", "ep", "xrc-qp", "xrcd")}
		server, clients = int(sys.argv[3]), [int(x) for x in sys.argv[4:]]
		processes = {"dapx:%d" % pid for pid in [server, *clients]}
		if not eval("(" + sys.argv[1] + ")"):
		    print(json.dumps([r, d, sorted(processes)], indent=1))
		    sys.exit(1)
	EOF
}

# Of the server's domain there is one receive queue pair.
queue_pairs() {
	judge '{(x["ifname"], x["lqpn"], x["comm"]) for x in r["qp"]} ==
		{(x["device"], x["qp"], "dapx:%d" % x["pid"]) for x in d["ep"]} |
		{(x["device"], x["qp"], "dapx:xrcd:%d" % x["domain"]) for x in d["xrc-qp"]} and
		len(d["xrc-qp"]) == 1 and len(d["ep"]) == 3'
}

domains() {
	judge '{x["comm"] for x in r["cq"]} == processes | {"dapx:xrcd:%d" % x["domain"] for x in d["xrcd"]}'
}

protection_domains() {
	judge '{x["comm"] for x in r["pd"]} - {"dapx"} == processes and
		sum(x["comm"] in processes for x in r["pd"]) == len(d["pd"]) and
		{x["comm"] for x in r["mr"]} == processes'
}

cm_ids() {
	judge '{x.get("pid") for x in r["cm_id"]} == {server, *clients}'
}

# Who is killed has nothing any more, and what was a domain's is gone with the last.
nothing_left() {
	local kind
	end
	for kind in pd cq qp mr cm_id; do
		await judge "not [x for x in r['$kind'] if x.get('comm') != 'dapx']" || return
	done
}

result "they are at work" begin
result "queue pairs are their process', or their domain's" queue_pairs
result "completion queues as well" domains
result "protection domains and memory regions are their process'" protection_domains
result "CM ids are their process', also those of requests" cm_ids
result "nothing is left of the killed" nothing_left
end_of_results
