#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# idle_test.sh HVDRUN PROGRAM: two idle ranks use less than 0.05 s of CPU together in 10 s.
out=$("$1" -np 2 "$2" 10 2>&1)
echo "$out" | sed 's/^/# /'
total=$(echo "$out" | awk '/idle [01]: / { sum += $(NF - 6) } END { print sum + 0 }')
if echo "$out" | grep -c 'idle [01]: ' | grep -qx 2 && awk "BEGIN { exit !($total < 0.05) }"; then
    echo "ok 1 - two idle ranks used $total s of CPU in 10 s"
else
    echo "not ok 1 - two idle ranks used $total s of CPU in 10 s, less than 0.05 allowed"
fi
echo 1..1
