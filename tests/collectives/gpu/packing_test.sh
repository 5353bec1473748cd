#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# packing_test.sh HVDRUN RANKS PROGRAM CALLS LINES PATTERN COMMANDS: ranks, each of which runs the commands
# first, need so many calls of NCCL for a group of tensors, and so many lines of their log at level info
# have the pattern.
hvdrun=$1 ranks=$2 program=$3 calls=$4 lines=$5 pattern=$6 commands=$7
# shellcheck source=tests/report.sh
. "$(dirname "$0")/../../report.sh"

HOROVOD_LOG_LEVEL=info "$hvdrun" -np "$ranks" sh -c "$commands
exec \"\$@\"" rank "$program" "$calls" >"$work/out" 2>"$work/err"
code=$?
found=$(grep -c "process set 0: $pattern" "$work/err")
grep -v '^1\.\.' "$work/out"
count=$(grep -c '^\(not \)\?ok' "$work/out")
[ "$code" = 0 ] && [ "$count" -eq 2 ]
report $? "all ranks end well"
[ "$found" -eq "$lines" ]
report $? "$lines lines of the log have: $pattern"
[ "$failed" = 0 ] || sed 's/^/# /' "$work/err"
echo "1..$count"
exit "$failed"
