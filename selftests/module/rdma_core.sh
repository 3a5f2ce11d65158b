#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# rdma-core's own tests, which Debian has with its Python binding, on a device of dapx. They skip what a device has not.
# shellcheck disable=SC2317  # functions are called by name
set -u

build=$(realpath "${DAPX_BUILD:-build}")
# shellcheck source=selftests/module/harness/tap.sh
. "$(dirname "$0")/harness/tap.sh"
trap 'rm -rf "$work"' EXIT
theirs=/usr/share/doc/rdma-core/tests

# Left out: multicast, and what only certain devices have.
modules="test_atomic test_cq test_cq_events test_cqex test_device test_fork test_mr test_pd test_qp test_qpex
	test_relaxed_ordering test_shared_pd"

passes() {
	cp -r "$theirs" "$work/tests" || return
	gunzip -f "$work"/tests/*.gz
	# These use libraries of devices that are not here.
	rm -f "$work"/tests/test_mlx5* "$work"/tests/test_efa* "$work"/tests/test_cuda*
	# Debian 13's asks sysfs for a device of this name, which the kernel does not know.
	sed -i 's/def test_get_pkey_index/def left_out_get_pkey_index/' "$work/tests/test_device.py"
	# shellcheck disable=SC2086  # a list
	(cd "$work" && PYTHONDONTWRITEBYTECODE=1 timeout 240 "$build/tools/dapx-run" \
		python3 tests/run_tests.py -v --dev "dapx_$DAPX_DEV" --port 1 $modules) >"$work/said" 2>&1 &&
		[[ $(grep -c '\.\.\. ok$' "$work/said") -ge 50 ]] && return
	cat "$work/said"
	return 1
}

echo "TAP version 13"
if [[ -e $theirs/run_tests.py ]]; then
	result "rdma-core's tests" passes
else
	skip "rdma-core's tests" "no $theirs: the package's documentation was left out"
fi
end_of_results
