# SPDX-License-Identifier: GPL-2.0
#
# For scripts that run the programs of dapl2-utils: sourced by them, behind tap.sh. $build is theirs.
# shellcheck shell=bash disable=SC2154

# Prints a registry with one name, "ia", for DEVICE. dtest's client takes the name from its server, so both ends have it,
# each in a registry of its own.
ia_registry() { # ia_registry DEVICE
	"$build/tools/dapxctl" dat-conf --library-folder "$build/lib/dat" | sed "s/^dapx-$1/ia/"
}

# Prints what they say when something is wrong, and is false then. They exit with 0 all the same.
clean() { # clean FILE...
	! grep -nE 'FAIL|failed in file|can not continue|fails: |ERR|rror|Warning' "$@" | grep -v 'Checking ASYNC'
}

# dtestcm's server takes as many events as it has connections for their beginnings, and the next ones for their ends, without
# a look at what they are. So no end may be told before the beginning of another connection: the CM handles messages in the
# order in which they come if they come on one CPU.
in_order() { # in_order COMMAND...
	local cpus=/sys/devices/virtual/workqueue/cpumask all rc
	all=$(<"$cpus")
	echo 1 >"$cpus"
	"$@"
	rc=$?
	echo "$all" >"$cpus"
	return "$rc"
}
