#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# idle_test.sh HVDRUN PROGRAM: two idle ranks use less than 0.05 s of CPU together in 10 s, and fall
# idle when nothing is left to do. Two pauses of 2000 may count as busy: a virtual machine whose cpu is
# taken away for that long counts the time as used. A bell left ringing makes it 6 to 19.
out=$("$1" -np 2 "$2" 10 1000 2>&1)
echo "$out" | sed 's/^/# /'
busy=$(echo "$out" | awk '/rounds [01]: busy in/ { sum += $5 } END { print sum + 0 }')
if echo "$out" | grep -c 'rounds [01]: busy in' | grep -qx 2 && [ "$busy" -le 2 ]; then
    echo "ok 1 - ranks fall idle: $busy of 2000 pauses were busy"
else
    echo "not ok 1 - ranks fall idle: $busy of 2000 pauses were busy, 2 allowed"
fi
total=$(echo "$out" | awk '/idle [01]: / { sum += $(NF - 6) } END { print sum + 0 }')
if echo "$out" | grep -c 'idle [01]: ' | grep -qx 2 && awk "BEGIN { exit !($total < 0.05) }"; then
    echo "ok 2 - two idle ranks used $total s of CPU in 10 s"
else
    echo "not ok 2 - two idle ranks used $total s of CPU in 10 s, less than 0.05 allowed"
fi
echo 1..2
