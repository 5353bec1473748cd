#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# idle_test.sh HVDRUN PROGRAM SECONDS ROUNDS: two idle ranks are woken less than ten times a second together
# and use less than 0.05 s of CPU in these seconds, and they fall idle when nothing is left to do. Two pauses
# may count as busy: a virtual machine whose cpu is taken away for that long counts the time as used. A bell
# left ringing now and then makes it 6 to 19 of 2000.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tap.sh"
tap_begin
seconds=$3 rounds=$4
out=$("$1" -np 2 "$2" "$seconds" "$rounds" 2>&1)
echo "$out" >"$work/out"

# judge PROMISE CONDITION: both ranks have said their part, and awk's condition holds.
judge()
{
    awk "BEGIN { exit !($2) }"
    report $? "$1"
}

said=$(echo "$out" | grep -c '^rounds [01]: busy in\|^idle [01]: woken')
busy=$(echo "$out" | awk '/^rounds [01]: busy in/ { sum += $5 } END { print sum + 0 }')
woken=$(echo "$out" | awk '/^idle [01]: woken/ { sum += $4 } END { print sum + 0 }')
total=$(echo "$out" | awk '/^idle [01]: woken/ { sum += $6 } END { print sum + 0 }')
judge "ranks fall idle: $busy of $((2 * rounds)) pauses were busy, 2 allowed" "$said == 4 && $busy <= 2"
judge "two idle ranks were woken $woken times in $seconds s" "$said == 4 && $woken < 10 * $seconds"
judge "and used $total s of CPU, less than 0.05 allowed" "$said == 4 && $total < 0.05"
tap_done
