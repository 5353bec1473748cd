#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# idle_test.sh HVDRUN PROGRAM: two idle ranks use less than 0.05 s of CPU together in 10 s, and fall
# idle each time when nothing is left to do.
out=$("$1" -np 2 "$2" 10 1000 2>&1)
echo "$out" | sed 's/^/# /'
busy=$(echo "$out" | awk '/rounds [01]: busy in/ { sum += $5 } END { print sum + 0 }')
if echo "$out" | grep -c 'rounds [01]: busy in' | grep -qx 2 && [ "$busy" = 0 ]; then
    echo "ok 1 - in none of 1000 rounds a rank was busy with nothing"
else
    echo "not ok 1 - in none of 1000 rounds a rank was busy with nothing, but in $busy"
fi
total=$(echo "$out" | awk '/idle [01]: / { sum += $(NF - 6) } END { print sum + 0 }')
if echo "$out" | grep -c 'idle [01]: ' | grep -qx 2 && awk "BEGIN { exit !($total < 0.05) }"; then
    echo "ok 2 - two idle ranks used $total s of CPU in 10 s"
else
    echo "not ok 2 - two idle ranks used $total s of CPU in 10 s, less than 0.05 allowed"
fi
echo 1..2
