#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stalls_test.sh HVDRUN LAYOUT PROGRAM [replayed]: what rank 0 says of a late rank, and how a job ends
# that is told not to wait.
hvdrun=$1 layout=$2 program=$3
shift 3
here=$(dirname "$0")
ranks=$(($(echo "$layout" | tr , +)))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/collectives/engine/stalled_job.sh
. "$here/stalled_job.sh"

# let_go: passes on what the job says. Two whole warnings are printed when the third begins: then the
# late rank may come. A loop of the shell, since mawk reads a pipe in blocks and would see them late.
let_go()
{
    warnings=0
    while IFS= read -r line; do
        printf '%s\n' "$line"
        case $line in
        *'waiting for remainder of ranks'*)
            warnings=$((warnings + 1))
            [ "$warnings" -ne 3 ] || echo come >"$work/go"
            ;;
        esac
    done
}

job="$here/../job.sh $hvdrun $layout $program"
shutdown='Horovod has been shut down. This was caused by an exception on one of the ranks or an attempt to allreduce, allgather or broadcast a tensor after one of the ranks finished execution. If the shutdown was caused by an exception, you should see the exception in the log before the first shutdown message.'
missing='^1: \[step\.1, step\.2, step\.3, step\.4, step\.5, step\.6 \.\.\.\]$'

mkfifo "$work/go"
# shellcheck disable=SC2086 # several words
out=$(env HOROVOD_STALL_CHECK_TIME_SECONDS=1 $job "$work/go" "$@" 2>&1 | let_go)
skip_if_told
taken=$(echo "$out" | sed -n 's/^step 0: 0 \([0-9]*\).*/\1/p')
check "rank 0 names the late rank and the tensors that it lacks" "$(is "$(count "$missing")" -ge 2)"
check "and, of the late rank's own tensor, all others" \
    "$(is "$(count '^[02-9]: \[own\]$')" -ge $((2 * (ranks - 1))))"
check "not more often than each second" \
    "$(is "$(count 'waiting for remainder of ranks for more than 1 seconds')" -le "${taken:-0}")"
check "no other rank says anything" "$(is "$(count ' W hvd rank [1-9]')" -eq 0)"
check "the step ends well on all ranks" "$(is "$(count '^step [0-9]+: 0 ')" -eq "$ranks")"

# shellcheck disable=SC2086
out=$(env HOROVOD_STALL_CHECK_TIME_SECONDS=1 HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=2 $job end "$@" 2>&1)
skip_if_told
check "past the shutdown time every rank's requests end with Horovod's words" \
    "$(is "$(count "^step [0-9]+: -10 [0-9.]+ $shutdown A tensor has waited for longer than HOROVOD_STALL_SHUTDOWN_TIME_SECONDS: .*\$")" -eq "$ranks")"
check "those of the late rank too" "$(is "$(count "^own 1: -10 $shutdown A tensor has waited for longer than HOROVOD_STALL_SHUTDOWN_TIME_SECONDS: .*\$")" -eq 1)"
check "the others not before" "$(is "$(count '^step [02-9]: -10 ([2-9]|[1-9][0-9]+)\.')" -eq $((ranks - 1)))"
check "rank 0 says why" "$(is "$(count 'is stalled for longer than 2 seconds. Will shutdown')" -ge 1)"
finish
