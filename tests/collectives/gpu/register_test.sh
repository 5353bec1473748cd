#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# register_test.sh HVDRUN PROGRAM YES|NO PATTERN COMMANDS: two ranks, each of which runs the commands first,
# agree on whether they register memory with NCCL, and one line of the log at level info has the pattern.
hvdrun=$1 program=$2 registers=$3 pattern=$4 commands=$5
# shellcheck source=tests/report.sh
. "$(dirname "$0")/../../report.sh"

HOROVOD_LOG_LEVEL=info "$hvdrun" -np 2 sh -c "$commands
exec \"\$@\"" rank "$program" "$registers" >"$work/out" 2>&1
code=$?
grep -q '^ok 3' "$work/out" && [ "$code" = 0 ]
report $? "the ranks agree: $registers"
[ "$(grep -c "process set 0: $pattern" "$work/out")" -ge 1 ]
report $? "and say so: $pattern"
[ "$failed" = 0 ] || sed 's/^/# /' "$work/out"
echo "1..$count"
exit $failed
