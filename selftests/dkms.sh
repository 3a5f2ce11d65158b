#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# dkms.sh FOLDER [KERNEL...]   on the host, of the package dapx-dkms in FOLDER: DKMS builds the module for these kernels
# (6.1 and 6.12), and leaves those alone that it is not for. Nothing of the host's DKMS is touched. What it builds goes
# to FOLDER/dkms, for packages.sh.
# shellcheck disable=SC2317  # functions are called by name
set -u

here=$(cd "$(dirname "$0")" && pwd)
folder=$(cd "$1" && pwd) || exit 1
shift
(($# > 0)) || set -- 6.1 6.12
# shellcheck source=selftests/module/harness/tap.sh
. "$here/module/harness/tap.sh"
trap 'rm -rf "$work"' EXIT

debs=("$folder"/dapx-dkms_*.deb)
version=$(dpkg-deb -f "${debs[0]}" Version) || { echo "1..0 # SKIP no dapx-dkms_*.deb in $folder: run 'make deb'"; exit 4; }
version=${version%-*}
mkdir "$work/tree" "$work/modules"
dpkg-deb -x "${debs[0]}" "$work" || exit 1
rm -rf "$folder/dkms"
mkdir "$folder/dkms"

# of_dkms COMMAND [ARGUMENT...]
of_dkms() {
	dkms "$1" -m dapx -v "$version" --dkmstree "$work/tree" --sourcetree "$work/usr/src" --installtree "$work/modules" "${@:2}"
}

added() { of_dkms add && of_dkms status | grep -x "dapx/$version: added"; }

builds() { # builds KERNEL
	local dir release module
	dir=$("$here/vm/kernel" "$1") || return
	release=$(<"$dir/release")
	# As for Secure Boot, with a key of its own: DKMS takes these from its configuration or the environment.
	sign_file=$dir/build/scripts/sign-file mok_signing_key=$work/mok.key mok_certificate=$work/mok.pub \
		of_dkms build -k "$release" --kernelsourcedir "$dir/build" --no-depmod ||
		{ cat "$work/tree/dapx/$version/build/make.log" "$work/tree/dapx/$version/build/kcompat/output.log"; return 1; }
	module=$(echo "$work/tree/dapx/$version/$release"/*/module/dapx.ko*)
	modinfo "$module" && [[ $(modinfo -F vermagic "$module") = "$release "* && $(modinfo -F depends "$module") = *ib_uverbs* ]] || return
	[[ -n $(modinfo -F signer "$module") ]] && openssl x509 -inform der -in "$work/mok.pub" -noout -subject || return
	cp -r "$work/tree/dapx/$version/$release" "$folder/dkms"
}

left_alone() { # left_alone RELEASE [OPTION]: a kernel of this release, or without this option
	local tree=$work/none rc=0
	mkdir -p "$tree/include"
	printf 'CONFIG_%s=y\n' INFINIBAND INFINIBAND_ADDR_TRANS INFINIBAND_USER_ACCESS INFINIBAND_USER_MEM MMU_NOTIFIER |
		grep -vx "CONFIG_${2-}=y" >"$tree/.config"
	of_dkms build -k "$1" --kernelsourcedir "$tree" || rc=$?
	# It would fail otherwise, as there is nothing to build with.
	((rc == 77))
}

all_left_alone() {
	left_alone 5.10.0-9-amd64 && left_alone 6.0.0-1-amd64 && left_alone 6.12.1 INFINIBAND_ADDR_TRANS &&
		left_alone 6.1.0-1-amd64 INFINIBAND_USER_ACCESS && left_alone 10.0.1 MMU_NOTIFIER &&
		! left_alone 6.1.0-1-amd64 && ! left_alone 6.10.5 && ! left_alone 7.0.1
}

removed() { of_dkms remove --all && [[ -z $(of_dkms status) && ! -e $work/tree/dapx/$version ]]; }

echo "TAP version 13"
result "DKMS takes the package's source" added
for kernel; do
	result "DKMS builds it for $kernel" builds "$kernel"
done
result "DKMS leaves other kernels alone" all_left_alone
result "DKMS takes it out again" removed
end_of_results
