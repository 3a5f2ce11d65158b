#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# outside BUILD   the libraries as programs outside of this tree find them: installed with a prefix that BUILD was not
#                 configured for, and moved afterwards
set -euo pipefail

build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*" >&2; exit 1; }

DESTDIR=$work/stage cmake --install "$build" --prefix /opt/somewhere >/dev/null
mv "$work/stage/opt/somewhere" "$work/here"
pkgconfig=$(cd "$(dirname "$(find "$work/here" -name dapx.pc)")" && pwd)
lib=$(dirname "$pkgconfig")
export PKG_CONFIG_PATH=$pkgconfig LD_LIBRARY_PATH=$lib

cat >"$work/cpp.cpp" <<-'EOF'
	#include <dapx/dapx.hpp>
	int main() { return dapx::Context::open_node("/nonexistent") ? 1 : 0; }
EOF
cat >"$work/c.c" <<-'EOF'
	#include <dapx/c.h>
	int main(void) { return dapxc_open("none", "/nonexistent") != NULL; }
EOF
cat >"$work/ofed.c" <<-'EOF'
	#include <infiniband/verbs.h>
	int main(void) { return ibv_open_xrc_domain == NULL; }
EOF
# Which C++ a program is written in is its own matter.
for name in dapx dapx-c dapx-ofed; do
	flags=$(pkg-config --cflags --libs "$name")
	[[ $flags != *-std=* ]] || fail "$name.pc chooses the language: $flags"
	[[ $(realpath "$(pkg-config --variable=prefix "$name")") = "$work/here" ]] || fail "$name.pc is of another prefix: $flags"
done
# shellcheck disable=SC2046  # options
{
	c++ -std=c++23 -o "$work/cpp" "$work/cpp.cpp" $(pkg-config --cflags --libs dapx)
	cc -o "$work/c" "$work/c.c" $(pkg-config --cflags --libs dapx-c)
	cc -o "$work/ofed" "$work/ofed.c" $(pkg-config --cflags --libs dapx-ofed)
}
"$work/cpp"
"$work/c"
# The library for C is not to need that for C++, whose ABI changes.
! readelf -d "$work/c" "$lib/libdapx-c.so" | grep -F 'NEEDED' | grep -F 'libdapx.so' || fail "libdapx-c needs libdapx"

mkdir "$work/project"
cp "$work/cpp.cpp" "$work/c.c" "$work/project"
cat >"$work/project/CMakeLists.txt" <<-'EOF'
	cmake_minimum_required(VERSION 3.25)
	project(outside LANGUAGES C CXX)
	find_package(dapx REQUIRED)
	add_executable(outside cpp.cpp)
	target_link_libraries(outside PRIVATE dapx::dapx)
	add_executable(outside-c c.c)
	target_link_libraries(outside-c PRIVATE dapx::dapx-c)
EOF
if ! { cmake -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$work/here" &&
	cmake --build "$work/project/build"; } >"$work/log" 2>&1; then
	cat "$work/log" >&2
	fail "not found by CMake"
fi
found=$(sed -n 's/^dapx_DIR:PATH=//p' "$work/project/build/CMakeCache.txt")
[[ $found = "$work/here"/* ]] || fail "CMake found another one: $found"
"$work/project/build/outside"
"$work/project/build/outside-c"
