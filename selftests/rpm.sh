#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# rpm.sh DEBS RPMS   on the host, of the Debian packages in the folder DEBS and the RPM packages below RPMS: each has the
# same files
set -u

here=$(cd "$(dirname "$0")" && pwd)
debs=$1 rpms=$2
# shellcheck source=selftests/module/harness/tap.sh
. "$here/module/harness/tap.sh"
trap 'rm -rf "$work"' EXIT

# Distributions differ in where libraries are, in whether manual pages are compressed, and in the files about licences
# and changes.
alike() {
	sed -E 's,^/usr/lib/[a-z0-9_]+-linux-gnu/,/usr/lib64/,; s,\.gz$,,' |
		grep -vE '^/usr/share/(doc|licenses|lintian)/|^/usr/lib/\.build-id/' | sort
}

deb_files() { # deb_files NAME
	dpkg-deb --fsys-tarfile "$debs/$1"_[0-9]*.deb | tar -t | sed -n 's,^\.\(/.*[^/]\)$,\1,p' | alike
}

rpm_files() { # rpm_files NAME: folders are named as well
	rpm -qp --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' "$rpms"/RPMS/*/"$1"-[0-9]*.rpm | sed -n 's,^[^d][^ ]* ,,p' | alike
}

same_files() { # same_files DEB [RPM]
	local a b
	a=$(deb_files "$1") && b=$(rpm_files "${2-$1}") || return
	[[ -n $a ]] && diff <(echo "$a") <(echo "$b")
}

for name in dapx-dkms libdapx0.1 libdapx-c1 libdapx-verbs libdat1-dapx dapx-dat-provider dapx-utils; do
	result "$name has the same files as Debian's" same_files "$name"
done
result "libdapx-devel has the same files as Debian's libdapx-dev" same_files libdapx-dev libdapx-devel
end_of_results
