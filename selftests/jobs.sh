# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sourced by what runs several things side by side: however it ends, all that they started ends with it. A job has a
# process group of its own for that, since bash lets what is in the background ignore Ctrl-C, and does not forward a
# signal to what is in the foreground. Whoever sources this calls end_jobs in its EXIT trap. A job does so by itself: those
# that it starts are in groups of their own again, and a subshell has none of the traps of its shell.

# job COMMAND...   starts it; its process is $!
job() {
	set -m
	{ exit_on_signals; trap end_jobs EXIT; "$@"; } &
	set +m
}

# Those that still run: the number of another may be somebody else's by now.
end_jobs() {
	local job
	for job in $(jobs -pr); do
		kill -- "-$job" 2>/dev/null || true
	done
}

# Only on the first: make forwards a signal that the process group has had already, and the second exit would be one in the
# middle of the EXIT trap.
exit_on_signals() { trap 'trap "" INT TERM HUP; exit 130' INT TERM HUP; }
exit_on_signals
