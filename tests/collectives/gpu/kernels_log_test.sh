#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kernels_log_test.sh HVDRUN PROGRAM: a driver that takes no kernels is told of in one line of the log at level
# info, with its word for it, and breaks nothing; with kernels there is none.
hvdrun=$1 program=$2
# shellcheck source=tests/report.sh
. "$(dirname "$0")/../../report.sh"

# lines NAME=VALUE...: how many tell of it, where the program ends well.
lines()
{
    env HOROVOD_LOG_LEVEL=info "$@" "$hvdrun" -np 1 "$program" 1 >"$work/out" 2>&1 || echo "failed"
    grep -c 'without kernels' "$work/out"
}

[ "$(lines FAKE_GPU_KERNELS=222)" = 1 ] &&
    grep -q 'GPU 0 is opened through .*, without kernels: cuModuleLoadData failed: .* 222: .*built for the stand-in' "$work/out"
report $? 'a driver that takes no kernels is told of, once'
[ "$(lines FAKE_GPU_COUNT=1)" = 0 ]
report $? 'one that does is not'
echo "1..$count"
exit $failed
