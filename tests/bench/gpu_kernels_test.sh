#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gpu_kernels_test.sh GPU_KERNELS MODULE: the benchmark of the kernels prints a figure for each way, and
# refuses a file that is not a module. The values of the figures do not matter here.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin

"$1" "$2" 1 1 >"$work/out" 2>&1 &&
    [ "$(grep -c '^| [^|]* | [0-9][0-9.]* | [0-9][0-9]* % |$' "$work/out")" -eq 12 ]
report $? 'each of 12 ways has a figure'
! "$1" "$work/none.so" 1 1 >"$work/out" 2>&1 && grep -q 'none\.so' "$work/out"
report $? 'a missing module is named'
tap_done
