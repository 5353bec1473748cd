#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# reinit_test.sh HVDRUN PROGRAM CYCLES SANITIZER: repeated init, allreduce and shutdown on 4 ranks
# leak neither descriptors nor threads nor memory. Memory is not measured under a SANITIZER (other than
# "none"), which keeps freed memory for a while and finds leaks itself.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tap.sh"
tap_begin
out=$("$1" -np 4 "$2" "$3" 2>&1)
echo "$out" >"$work/out"
check()
{
    [ "$(grep -Ec "$2" "$work/out")" -eq 4 ]
    report $? "$1"
}
grown()
{
    echo "$out" | sed -n 's/.*memory \([-+][0-9]*\) kB$/\1/p' | awk -v most=$((2 * $1)) '$1 > most { print }' | wc -l
}
check "all 4 ranks go through $3 cycles" "reinit: $3 cycles"
check "no descriptor is left over" "descriptors [+]0,"
check "no thread is left over" "threads [+]0,"
if [ "$4" = none ]; then
    [ "$(grep -c 'memory [-+][0-9]* kB$' "$work/out")" -eq 4 ] && [ "$(grown $(($3 - 20)))" -eq 0 ]
    report $? 'memory does not grow by more than 2 kB a cycle'
else
    tap_skip 'memory does not grow' 'measured without sanitizers only'
fi
tap_done
