#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# errors.sh DAPXCTL PING PERF RUN: what goes wrong without the module is told in one sentence, with exit code 1, and wrong
# usage has exit code 2.
set -u
ctl=$1 ping=$2 perf=$3 run=$4
if [ -e /dev/dapx ]; then
	echo "SKIP: the module is loaded here"
	exit 4
fi
failed=0

# expect CODE TEXT COMMAND...: it exits with CODE, and if that is an error says one line with TEXT on stderr.
expect() {
	code=$1 text=$2
	shift 2
	output=$("$@" 2>&1 >/dev/null)
	got=$?
	case $output in
	*"$text"*) ;;
	*) echo "not said: $text: $*: $output"; failed=1 ;;
	esac
	if [ $got -ne "$code" ]; then
		echo "exit code $got instead of $code: $*"
		failed=1
	fi
	if [ "$code" -ne 0 ]; then
		case $output in
		"$(basename "$1"): "*) ;;
		*) echo "not said who says it: $*: $output"; failed=1 ;;
		esac
		if [ "$(printf '%s\n' "$output" | wc -l)" -ne 1 ]; then
			echo "more than one line: $*: $output"
			failed=1
		fi
	fi
}

no_module="cannot open /dev/dapx: the dapx module is not loaded; run 'modprobe dapx' as root"
expect 1 "dapxctl: $no_module" "$ctl" info
expect 1 "dapxctl: cannot list the XRC domains: ${no_module#*: }" "$ctl" xrcd
expect 1 "dapxctl: cannot list the XRC domains: ${no_module#*: }" "$ctl" xrcd show -j
expect 1 "dapx-ping: $no_module" "$ping" 10.0.0.2
expect 1 "dapx-ping: $no_module" "$ping" -d rxe0 10.0.0.2
expect 1 "dapx-ping: $no_module" "$ping" --server
expect 1 "dapx-perf: $no_module" "$perf" 10.0.0.2
expect 1 "dapx-perf: $no_module" "$perf" --server -d rxe0
expect 1 "dapx-perf: cannot read /nonexistent" "$perf" --file /nonexistent 10.0.0.2
expect 2 "subcommand is required" "$ctl"
expect 2 "dapxctl: 'frobnicate' is no subcommand; there are info, devices, doctor, " "$ctl" frobnicate
expect 2 "dapxctl: 'frobnicate' is no subcommand; there are add, del" "$ctl" rxe frobnicate
expect 2 "subcommand is required" "$ctl" rxe
expect 2 "netdev is required" "$ctl" rxe add
expect 1 "dapxctl: cannot make an rxe device on nosuch0: there is no network interface nosuch0" "$ctl" rxe add nosuch0
expect 1 "dapxctl: cannot delete nosuch0: there is no such RDMA device; nor any other" "$ctl" rxe del nosuch0
expect 2 "give either --server or the host" "$ping"
expect 2 "give either --server or the host" "$ping" --server 10.0.0.2
expect 2 "--size" "$ping" -s 0 10.0.0.2
expect 2 "--op" "$ping" --op teleport 10.0.0.2
for seconds in 1e10 nan inf -1 soon; do
	expect 2 "--timeout: '$seconds' is no number of seconds" "$ping" -W "$seconds" 10.0.0.2
	expect 2 "--interval: '$seconds' is no number of seconds" "$ping" -i "$seconds" 10.0.0.2
	expect 2 "--time: '$seconds' is no number of seconds" "$perf" -t "$seconds" 10.0.0.2
	expect 2 "--idle-timeout: '$seconds' is no number of seconds" "$perf" --server --idle-timeout "$seconds"
done
expect 1 "dapx-ping: $no_module" "$ping" --xrc 10.0.0.2
expect 1 "dapx-ping: $no_module" "$ping" --server --xrc --domain /nonexistent/x
expect 2 "--domain requires --xrc" "$ping" --server --domain x
expect 2 "--domain requires --server" "$ping" --xrc --domain x 10.0.0.2
expect 2 "--wait" "$perf" --poll --wait 10.0.0.2
expect 2 "--test" "$perf" --test height 10.0.0.2
expect 0 "" "$ctl" devices
expect 0 "" "$ping" --help
expect 0 "" "$perf" --version
expect 0 "" "$run" --version
expect 0 "" "$run" --help
expect 2 "dapx-run: no program is named" "$run"
expect 2 "--file needs the server's answers, which XRC has none of; leave out --xrc" "$perf" --xrc --file x 10.0.0.2
expect 1 "dapx-perf: $no_module" "$perf" --xrc 10.0.0.2
expect 1 "dapx-perf: $no_module" "$perf" --server --xrc

case $("$ctl" info -j 2>/dev/null) in
'{"module":false,'*"$no_module"*) ;;
*) echo "no JSON without the module"; failed=1 ;;
esac
# A full disk is an error; one behind stderr changes no exit code.
for command in "devices -j" "devices" "--help"; do
	# shellcheck disable=SC2086  # words
	message=$("$ctl" $command 2>&1 >/dev/full)
	got=$?
	if [ $got -ne 1 ] || [ "$message" != "dapxctl: cannot write the output: No space left on device" ]; then
		echo "exit code $got with a full disk: $command: $message"
		failed=1
	fi
done
expect_silent() { # expect_silent CODE COMMAND...
	code=$1
	shift
	"$@" 2>/dev/full
	got=$?
	if [ $got -ne "$code" ]; then
		echo "exit code $got instead of $code without stderr: $*"
		failed=1
	fi
}
expect_silent 1 "$ctl" info
expect_silent 2 "$ctl" frobnicate
expect_silent 2 "$ping" --server 10.0.0.2

# Whatever is here, and whoever asks: told on stdout, and not well without the module.
output=$("$ctl" doctor)
if [ $? -ne 1 ] || ! printf '%s\n' "$output" | grep -q '^error  *module  *not loaded'; then
	echo "doctor does not say that the module is not loaded: $output"
	failed=1
fi
exit $failed
