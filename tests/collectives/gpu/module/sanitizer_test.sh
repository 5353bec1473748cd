#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sanitizer_test.sh TOOL PROGRAM [ARG...]: NVIDIA's compute-sanitizer, TOOL, finds no fault in
# the kernels that the program runs on a device.
tool=$1
shift
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tap.sh"
tap_begin

if ! [ -x "$tool" ]; then
    tap_skip_all 'no compute-sanitizer on PATH or in /usr/local/cuda/bin'
fi
for check in memcheck racecheck synccheck; do
    "$tool" --tool "$check" --error-exitcode 9 "$@" >"$work/out" 2>&1
    report $? "$check finds no fault"
done
tap_done
