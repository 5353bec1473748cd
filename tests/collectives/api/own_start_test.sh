#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# own_start_test.sh LIBRARY HEADER_DIRS SOURCE SANITIZE: the example with a store of its own compiles with the
# installed headers alone, and its ranks, which this shell starts, find each other. Arguments as in fit_test.sh.
. "$(dirname "$0")/../../cluster/harness.sh"
. "$(dirname "$0")/../../pmix_boot/launch.sh"
library=$1 source=$3 sanitize=$4
IFS=: read -r collectives base <<<"$2"

compile()
{
    local flags=()
    [ "$sanitize" = none ] || flags=(-fsanitize="$sanitize")
    mkdir "$work/include"
    cp "$collectives/hvd.h" "$base/hvd_status.h" "$work/include/"
    cc -std=c11 -Wall -Wextra -Werror "${flags[@]}" -I "$work/include" "$source" -o "$work/own_start" \
        -L "$(dirname "$library")" -lhvd -Wl,-rpath,"$(dirname "$library")"
}

# ranks FOLDER SIZE RANK...: starts these ranks of a job of SIZE ranks; fails if one of them fails.
ranks()
{
    local folder=$1 size=$2 failed=0 pids=() rank
    shift 2
    for rank in "$@"; do
        timeout "$limit" "$work/own_start" "$work/$folder" "$rank" "$size" 2>&1 &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do
        wait "$rank" || failed=1
    done
    return $failed
}

unset "${!PMIX_@}" "${!SLURM_@}"
succeeds "the example compiles with the installed headers alone" compile
mkdir "$work"/{one,two,four,missing,more}
succeeds "a single rank starts" ranks one 1 0
counts "the single rank starts twice" 2 '^start [12]: rank 0 of 1, sum 0$'
succeeds "two ranks find each other" ranks two 2 1 0
counts "two ranks add up their numbers in both starts" 4 '^start [12]: rank [01] of 2, sum 1$'
succeeds "the folder serves a second job of all ranks" ranks two 2 0 1
counts "the second job starts twice, too" 4 '^start [12]: rank [01] of 2, sum 1$'
succeeds "four ranks find each other" ranks four 4 3 1 0 2
counts "each of four ranks knows its number in both starts" 8 '^start [12]: rank [0-3] of 4, sum 6$'
HVD_START_TIMEOUT=2 complains "ranks that never start are named" \
    '2 of 3 ranks did not start within 2 s: ranks 1-2;' ranks missing 3 0
complains "a rank that comes too late gets the same error" \
    '2 of 3 ranks did not start within 2 s: ranks 1-2;' ranks missing 3 2
complains "a folder that does not exist is named" 'store cannot (get|put) hvd.2.1.0: cannot read or write .*/none/' \
    env HVD_START_TIMEOUT=60 "$work/own_start" "$work/none" 0 2
complains "a rank outside of the job is refused" 'rank 2 of 2: .* numbered from 0' \
    "$work/own_start" "$work/more" 2 2
succeeds "nothing is left in TMPDIR" is_clean
tap_done
