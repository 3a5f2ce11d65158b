# SPDX-License-Identifier: GPL-2.0
#
# For scripts that run in two machines at once: sourced by them, behind tap.sh.
# shellcheck shell=bash

# Both machines have come to the same place.
meet() {
	local tries ping=${DAPX_BUILD:-build}/tools/dapx-ping
	if ((HOST == 2)); then
		timeout 300 "$ping" --server --once -d "$DAPX_DEV" >/dev/null
		return
	fi
	for ((tries = 0; tries < 1000; tries++)); do
		! timeout 60 "$ping" -d "$DAPX_DEV" -c 1 "$DAPX_PEER_IP" >/dev/null 2>&1 || return 0
		sleep 0.2
	done
	return 1
}
