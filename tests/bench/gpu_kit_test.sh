#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpu_kit_test.sh CHECKOUT BUILD PYTHON all|some: contrib/bench/gpu_kit packs this build, and the kit runs outside
# of the checkout: programs in C on the stand-ins of CUDA and NCCL, those in Python on the CPU. "some" runs a few
# steps of both, "all" every step that does not need a GPU. Prints TAP.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin
checkout=$1 build=$2 python=$3 extent=$4
kit=$work/kit

PACK_FAKE=1 "$checkout/contrib/bench/gpu_kit/pack.sh" "$checkout" "$kit" "$build" >"$work/out" 2>&1
report $? 'this build is packed'
[ "$(du -sm "$kit" | cut -f 1)" -lt 60 ]
report $? 'the kit is small'
! grep -rlI "$checkout" "$kit" >"$work/out"
report $? 'no file of the kit contains the path of the checkout'

mkdir "$work/full" && touch "$work/full/file"
! "$checkout/contrib/bench/gpu_kit/pack.sh" "$checkout" "$work/full" "$build" >"$work/out" 2>&1 &&
    [ -e "$work/full/file" ] && grep -q 'has files that pack.sh has not made' "$work/out"
report $? 'a folder with other files is not changed'
! "$checkout/contrib/bench/gpu_kit/pack.sh" "$checkout" "$work/none" "$work/full" >"$work/out" 2>&1 &&
    grep -q 'lacks collectives/libhvd.so.0: build there' "$work/out"
report $? 'a program that a build lacks is named'

# Prints the names of all steps except those under MPS.
names()
{
    grep -oE '\b(step|in_c|in_python|on_gpu|c_test|probe) [a-z][a-z0-9-]+ [0-9]' "$kit/device.sh" |
        cut -d ' ' -f 2 | grep -v '^mps-' | sort -u
}

# play PATTERN VARIABLE=VALUE...: runs the steps whose names match; the results are in $work/r.
play()
{
    rm -rf "$work/r"
    env -u HVD_GPU_MODULE -u HVD_LIBRARY OUT="$work/r" KIT_SECONDS=3000 KIT_ONLY="$1" KIT_PYTHON="$python" \
        "${@:2}" bash "$kit/device.sh" >"$work/out" 2>&1
}

# succeeded NAME: whether the step has passed, and has run tests if it consists of tests.
succeeded()
{
    grep -E "^ok $1 \(" "$work/r/summary.txt" | grep -qvE ': 0 passed|1\.\.0'
}

in_c='machine|kernels-bits|nccl-1|nccl-2|host-2|api-2|bandwidth|mix-2|join-2|wire-2|nccl-4|windows-wire-2|one-kernel-wire-2'
in_python=$(names | grep -vE "^($in_c|sanitizer|nccl-2-in-gpu)\$" | paste -sd '|')
if [ "$extent" = some ]; then
    in_c='machine|nccl-2|api-2|bandwidth'
    in_python='memory-2|distributed-2'
else
    in_c="$in_c|hierarchical-4"
fi
if "$python" -c 'import torch' 2>/dev/null; then
    played="$in_c|$in_python"
    play "^($played)\$" KIT_FAKE=1 KIT_DEVICE=cpu
else
    played=$in_c
    play "^($played)\$" KIT_FAKE=1
    tap_skip 'steps in Python' "no torch in $python"
fi
report $? 'no step fails, and no probe finds a defect'
for name in ${played//|/ }; do
    succeeded "$name"
    report $? "step $name works"
done
[ "$(grep -c '^===== ' "$work/r/log.txt")" = "$(tr '|' '\n' <<<"$played" | wc -l)" ]
report $? 'the log has the output of all steps'

play '^machine$' KIT_FAKE=1 KIT_SECONDS=5
[ $? = 0 ] && grep -q '^-- machine: no time left' "$work/r/summary.txt"
report $? 'a step without time left is skipped, and named'
rm "$kit/build/collectives/gpu/module/hvd_gpu.so" "$kit/build/contrib/bench/gpu_kernels"
play '^(bandwidth|api-2)$' KIT_FAKE=1
[ $? = 1 ] && grep -q '^FAILED bandwidth' "$work/r/summary.txt" && succeeded api-2
report $? 'a step that fails is reported, and does not stop the next'
tap_done
