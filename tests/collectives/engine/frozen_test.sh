#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# frozen_test.sh HVDRUN LAYOUT VICTIM PROGRAM [large]: what the others say of a rank that is stopped,
# and how a job ends that is told not to wait; the rank goes on later.
hvdrun=$1 layout=$2 victim=$3 program=$4
shift 4
here=$(dirname "$0")
ranks=$(($(echo "$layout" | tr , +)))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/collectives/engine/stalled_job.sh
. "$here/stalled_job.sh"

# Prints what it reads, and continues the stopped rank at the first line like that. (awk would wait for
# more lines.)
go_on()
{
    while IFS= read -r read; do
        printf '%s\n' "$read"
        if [ -e "$work/pid" ] && printf '%s\n' "$read" | grep -Eq "$1"; then
            kill -CONT "$(cat "$work/pid")"
            rm "$work/pid"
        fi
    done
}

# what_to_await SETTING...
run()
{
    await=$1
    shift
    rm -f "$work/pid" "$work/done"
    # shellcheck disable=SC2086 # several words
    out=$(env "$@" $job 2>&1 | go_on "$await")
    skip_if_told
}

job="$here/../job.sh $hvdrun $layout $program $victim $work $*"
# A rank behind the stopped one only knows that nothing comes from rank 0.
reason="(rank $victim on [^ ]+|rank 0 on [^ ]+, or rank [0-9]+ on [^ ]+ between it and rank [0-9]+,) does not answer: its process is stopped, swapped out or starved of cpu\. ALLREDUCE life has waited for [0-9]+ seconds"
line="^$victim!?: on [^ ]+, silent for [0-9]+ seconds; ALLREDUCE life waits for [0-9]+ seconds"
[ "$victim" -ne 0 ] || line=$reason

run "$line" HOROVOD_STALL_CHECK_TIME_SECONDS=2
check "the stopped rank is named, with its host and the tensor that waits for it" \
    "$(is "$(count "$line")" -ge 1)"
check "the job goes on when it does" "$(is "$(count '^end [0-9]+: 0 ')" -eq "$ranks")"

run "^end [0-9]+: -" HOROVOD_STALL_CHECK_TIME_SECONDS=4 HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=6
check "past the shutdown time the job ends" "$(is "$(count 'is stalled for longer than 6 seconds. Will shutdown')" -ge 1)"
check "every other rank gets the reason" \
    "$(is "$(echo "$out" | grep -E "^end [0-9]+: -[0-9]+ $reason" | grep -vc "^end $victim:")" -eq $((ranks - 1)))"
check "the stopped rank fails too, when it goes on" "$(is "$(count "^end $victim: -")" -eq 1)"
check "and nobody crashes" "$(is "$(count '(ended by signal|Sanitizer)')" -eq 0)"
finish
