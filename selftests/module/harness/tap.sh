# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For tests in shell, sourced: TAP, and a folder of their own. What a case prints is shown if it fails, and what its
# server printed, if that is in $work/server.
work=$(mktemp -d)
number=0 failed=0

# result NAME COMMAND...: one case
result() {
	((number++))
	if "${@:2}" >"$work/output" 2>&1; then
		echo "ok $number - $1"
	else
		((failed++))
		echo "not ok $number - $1"
		sed 's/^/# /' "$work/output"
		[[ ! -e $work/server ]] || sed 's/^/# server: /' "$work/server"
	fi
}

# skip NAME REASON: a case that cannot be here
skip() { echo "ok $((++number)) - $1 # SKIP $2"; }

# The last of all.
end_of_results() {
	echo "1..$number"
	((failed == 0))
}
