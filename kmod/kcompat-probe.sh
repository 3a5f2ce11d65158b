#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kcompat-probe.sh KDIR OUTDIR: finds out by compiling how this kernel differs from the newest
# upstream, and writes OUTDIR/kcompat_config.h for kcompat.h. A control probe comes first: without
# it, a broken build tree would read as "this kernel has nothing".
set -euo pipefail

kdir=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
work=$out/kcompat
mkdir -p "$work"

probe() { # name, headers, code
	{
		printf '#include <linux/module.h>\n#include <rdma/ib_verbs.h>\n'
		printf '%b\n' "$2"
		printf 'void probe_function(void);\nvoid probe_function(void)\n{\n%s\n}\n' "$3"
		printf 'MODULE_LICENSE("GPL");\n'
	} >"$work/$1.c"
	names+=("$1")
}

names=()
probe control '' 'pr_info("control\n");'
probe have_vm_flags_set '#include <linux/mm.h>' \
	'vm_flags_set((struct vm_area_struct *)NULL, VM_DONTCOPY);'
probe have_file_mnt_idmap '#include <linux/fs.h>' 'file_mnt_idmap((struct file *)NULL);'
probe have_eventfd_signal_one_arg '#include <linux/eventfd.h>' \
	'eventfd_signal((struct eventfd_ctx *)NULL);'
probe have_hrtimer_setup '#include <linux/hrtimer.h>' \
	'hrtimer_setup((struct hrtimer *)NULL, NULL, CLOCK_MONOTONIC, HRTIMER_MODE_REL);'
probe have_netlink_broadcast_filtered '#include <linux/netlink.h>' \
	'netlink_broadcast_filtered(NULL, NULL, 0, 0, GFP_KERNEL, NULL, NULL);'
probe have_ib_umem_get_va '#include <rdma/ib_umem.h>' 'ib_umem_get_va(NULL, 0, 0, 0);'

: >"$work/Kbuild"
for name in "${names[@]}"; do
	echo "obj-m += $name.o" >>"$work/Kbuild"
	rm -f "$work/$name.o"
done
make -k -C "$kdir" M="$work" "${names[@]/%/.o}" >"$work/output.log" 2>&1 || true

if [ ! -e "$work/control.o" ]; then
	echo "cannot build any module against $kdir: see $work/output.log" >&2
	exit 1
fi

{
	echo "/* SPDX-License-Identifier: GPL-2.0 */"
	echo "/* Written by kcompat-probe.sh for $kdir */"
	for name in "${names[@]:1}"; do
		[ ! -e "$work/$name.o" ] || echo "#define ${name^^} 1"
	done
} >"$out/kcompat_config.h.new"
if cmp -s "$out/kcompat_config.h.new" "$out/kcompat_config.h"; then
	rm "$out/kcompat_config.h.new"
else
	mv "$out/kcompat_config.h.new" "$out/kcompat_config.h"
fi
