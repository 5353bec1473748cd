#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ranges_test.sh HVDRUN PROFILER HOST_PROGRAM GPU_PROGRAM: what a profiler sees of a job of one rank.
hvdrun=$1 profiler=$2 host=$3 gpu=$4
# shellcheck source=tests/report.sh
. "$(dirname "$0")/../../report.sh"
export FAKE_NVTX_LOG="$work/out" # a failure shows it

# run [VARIABLE=VALUE...] PROGRAM ARG...
run()
{
    : >"$work/out"
    env "$@" >"$work/said" 2>&1
    report $? "the program runs"
    sed 's/^/# /' "$work/said" | head -n 5
}

# sees PATTERN PROMISE: a range of this domain, payload and message began.
sees()
{
    grep -q "^+[0-9]* $1\$" "$work/out"
    report $? "$2"
}

# Each range that begins ends once, later, in its domain.
are_closed()
{
    awk '/^\+/ { id = substr($1, 2); if (id in open) bad = 1; open[id] = $2 }
         /^-/ { id = substr($1, 2); if (open[id] != $2) bad = 1; delete open[id] }
         END { for (id in open) bad = 1; exit bad }' "$work/out" && [ -s "$work/out" ]
    report $? "each range that begins ends"
}

run NVTX_INJECTION64_PATH="$profiler" "$hvdrun" -np 1 "$host" steps
sees "HorovodOps 32 HorovodAllreduce" "a request is a range, its bytes are the payload"
sees "HorovodOps [0-9]* HorovodAllgather" "so is an allgather"
sees "HorovodOps 64 HorovodBroadcast" "a broadcast"
sees "HorovodOps [0-9]* HorovodAlltoall" "an alltoall"
sees "HorovodOps [0-9]* HorovodReducescatter" "a reducescatter"
are_closed
! grep -q Timeline "$work/out"
report $? "without a timeline there are no ranges of one"
run NVTX_INJECTION64_PATH="$profiler" HOROVOD_TIMELINE="$work/trace" "$hvdrun" -np 1 "$host" steps
sees "HorovodTimeline -1 NEGOTIATE_ALLGATHER gathered" "with one there are"
sees "HorovodTimeline -1 ALLGATHER gathered" "of what was agreed"
sees "HorovodTimelineActivities -1 QUEUE gathered" "and of what it went through"
are_closed
run NVTX_INJECTION64_PATH="$profiler" "$hvdrun" -np 1 "$gpu" steps
sees "HorovodOps 512 HorovodGroupedAllreduce" "a group on a GPU is one range"
are_closed
run NVTX_INJECTION64_PATH="$profiler" HOROVOD_DISABLE_NVTX_RANGES=1 "$hvdrun" -np 1 "$host" steps
[ ! -s "$work/out" ]
report $? "HOROVOD_DISABLE_NVTX_RANGES=1: there are none"
run NVTX_INJECTION64_PATH="$profiler" FAKE_NVTX_REFUSES=1 "$hvdrun" -np 1 "$host" steps
[ ! -s "$work/out" ]
report $? "nor for a profiler that does not want them"
run NVTX_INJECTION64_PATH=/nonexistent.so "$hvdrun" -np 1 "$host" steps
echo "1..$count"
exit $failed
