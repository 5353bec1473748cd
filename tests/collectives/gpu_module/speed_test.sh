#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# speed_test.sh GPU_KERNELS MODULE: the benchmark of the kernels runs, and has a figure for each way. What the
# figure is does not matter here.
# shellcheck source=tests/report.sh
. "$(dirname "$0")/../../report.sh"

timeout 60 "$1" "$2" 1 1 >"$work/out" 2>&1 && [ "$(grep -c '^| .* | [0-9.]* | [0-9]* % |$' "$work/out")" -eq 12 ]
report $? 'the kernels are timed'
echo "1..$count"
exit $failed
