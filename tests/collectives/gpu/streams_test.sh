#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# streams_test.sh HVDRUN VICTIM_PROGRAM: three ranks, of which one has another HOROVOD_NUM_NCCL_STREAMS: each is
# told who has what. In the program no rank dies.
hvdrun=$1 program=$2
# shellcheck source=tests/report.sh
. "$(dirname "$0")/../../report.sh"

# shellcheck disable=SC2016  # it is for the rank's shell
on_rank='test "$PMIX_RANK" != 1 || export HOROVOD_NUM_NCCL_STREAMS=2
exec "$@"'
"$hvdrun" -np 3 sh -c "$on_rank" rank "$program" 99 >"$work/out" 2>&1
code=$?
[ "$code" -ne 0 ]
report $? "another number of streams on one rank is an error"
told='HOROVOD_NUM_NCCL_STREAMS=2 on rank 1 on [^ ]*, but 1 on rank 0 on [^ ]*: give all ranks the same'
for rank in 0 1 2; do
    grep -q "^pending $rank: -[0-9]* .*$told" "$work/out"
    report $? "rank $rank is told who has what"
done
echo "1..$count"
exit $failed
