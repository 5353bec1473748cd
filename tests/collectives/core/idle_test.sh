#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# idle_test.sh HVDRUN PROGRAM SECONDS ROUNDS: two idle ranks together are woken less than ten times a second,
# and use less than 0.05 s of CPU in SECONDS. Before that, they become idle in the pause after each of ROUNDS
# rounds. Two pauses may be busy, because a virtual machine counts CPU time that its host took away as used. If
# wake-ups were not always drained, 6 to 19 of 2000 pauses would be busy.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tap.sh"
tap_begin
seconds=$3 rounds=$4
out=$("$1" -np 2 "$2" "$seconds" "$rounds" 2>&1)
echo "$out" >"$work/out"

# judge PROMISE CONDITION: reports whether CONDITION, an expression of awk, is true.
judge()
{
    awk "BEGIN { exit !($2) }"
    report $? "$1"
}

said=$(echo "$out" | grep -c '^rounds [01]: busy in\|^idle [01]: woken')
busy=$(echo "$out" | awk '/^rounds [01]: busy in/ { sum += $5 } END { print sum + 0 }')
woken=$(echo "$out" | awk '/^idle [01]: woken/ { sum += $4 } END { print sum + 0 }')
total=$(echo "$out" | awk '/^idle [01]: woken/ { sum += $6 } END { print sum + 0 }')
judge "ranks become idle: $busy of $((2 * rounds)) pauses were busy, 2 allowed" "$said == 4 && $busy <= 2"
judge "two idle ranks were woken $woken times in $seconds s" "$said == 4 && $woken < 10 * $seconds"
judge "two idle ranks used $total s of CPU, less than 0.05 allowed" "$said == 4 && $total < 0.05"
tap_done
