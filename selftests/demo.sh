#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
set -euo pipefail
rping -s -a 10.0.0.2 -C 5 -S 65536 2>/dev/null &
sleep 1
rping -c -a 10.0.0.2 -I 10.0.0.1 -C 5 -S 65536 2>/dev/null
wait
echo "5 rounds of 64 KiB from rxe0 to rxe1"
