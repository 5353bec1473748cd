#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sanitizer_test.sh TOOL PROGRAM [ARG...]: NVIDIA's compute-sanitizer, TOOL, finds nothing in the kernels that
# the program runs on a device.
tool=$1
shift
# shellcheck source=tests/report.sh
. "$(dirname "$0")/../../report.sh"

if ! [ -x "$tool" ]; then
    echo '1..0 # SKIP no compute-sanitizer on PATH or in /usr/local/cuda/bin'
    exit 0
fi
for check in memcheck racecheck synccheck; do
    "$tool" --tool "$check" --error-exitcode 9 "$@" >"$work/out" 2>&1
    report $? "$check is clean"
done
echo "1..$count"
exit $failed
