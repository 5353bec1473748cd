#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# architectures_test.sh HVDRUN PROGRAM MODULE: on GPUs for which the module has kernels or
# PTX, the kernels are used; on other GPUs, collectives are right without kernels. The nvcc
# that compiled the kernels decides which GPUs these are.
hvdrun=$1 program=$2 module=$3
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tap.sh"
tap_begin
export HVD_GPU_MODULE="$module" HOROVOD_LOG_LEVEL=info

# on ARCHITECTURE: runs the program there; prints whether it failed or used kernels.
on()
{
    if ! FAKE_GPU_ARCHITECTURE=$1 "$hvdrun" -np 2 "$program" 1 >"$work/out" 2>&1; then
        echo failed
    elif grep -q 'without kernels: cuModuleLoadData failed: .* 209: .*built for sm_' "$work/out"; then
        echo without
    else
        echo with
    fi
}

# has NAME: whether the module has a binary for this architecture.
has()
{
    grep -aq "$1, .*PTX of sm_" "$module"
}

v100=without
! has sm_70 || v100=with
[ "$(on 70)" = $v100 ]
report $? "V100: $v100 kernels"
[ "$(on 60)" = without ]
report $? 'P100: without kernels'
for architecture in 75 80 86; do
    [ "$(on $architecture)" = with ]
    report $? "sm_$architecture: with kernels"
done
[ "$(on 90)$(on 100)$(on 121)$(on 150)" = withwithwithwith ] || ! has sm_90
report $? 'H100 and later: with kernels'
tap_done
