#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gpu_algorithm_test.sh HVDRUN LAYOUT PROGRAM LINES PATTERN [NAME=VALUE...]: runs the program with these
# variables, in small chunks; so many of its log lines must have the pattern, with the same words on all ranks.
hvdrun=$1 layout=$2 program=$3 lines=$4 pattern=$5
shift 5
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# With less memory, chunks are smaller: 128 KiB of each rank.
env HVD_MEMORY_LIMIT=1000000 HOROVOD_LOG_LEVEL=debug "$@" \
    "$here/../job.sh" "$hvdrun" "$layout" "$program" >"$work/out" 2>"$work/err"
code=$?
if grep -q SKIP "$work/out"; then
    cat "$work/out"
    exit 0
fi
grep -v '^1\.\.' "$work/out"
cat "$work/out" "$work/err" | grep -o "process set 0: $pattern.*" >"$work/told"
if [ "$(wc -l <"$work/told")" -eq "$lines" ] && [ "$(sort -u "$work/told" | wc -l)" -le 1 ]; then
    echo "ok - $lines ranks say the same: $(head -n 1 "$work/told")"
else
    echo "not ok - $lines ranks say: $pattern"
    code=1
fi
[ "$code" -eq 0 ] || sed 's/^/# /' "$work/err"
echo "1..$(($(grep -c '^\(not \)\?ok' "$work/out") + 1))"
exit "$code"
