#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gpu_bench_test.sh BENCH_FOLDER BUILD FAKES PYTHON: contrib/bench/gpu.sh says what it lacks where there is no
# GPU, and what its ranks run works on CPUs. Prints TAP.
bench=$1 build=$2 fakes=$3 python=$4
export HVD_LIBRARY="$build/collectives/libhvd.so" PYTHONPATH="$bench/../python" PYTHONDONTWRITEBYTECODE=1
count=0
failed=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT

verdict()
{
    count=$((count + 1))
    if [ "$2" = 0 ]; then
        echo "ok $count - $1"
    else
        echo "not ok $count - $1"
        sed 's/^/# /' "$out"
        failed=1
    fi
}

# refuses PROMISE PATTERN BUILD [VARIABLE=VALUE...]: ends with 1, and with the pattern on a line.
refuses()
{
    promise=$1 pattern=$2 folder=$3
    shift 3
    env "$@" "$bench/gpu.sh" "$folder" >"$out" 2>&1
    [ $? = 1 ] && grep -q 'nothing can be measured here' "$out" && grep -q "$pattern" "$out"
    verdict "$promise" $?
}

# works PROMISE PATTERN COMMAND...
works()
{
    promise=$1 pattern=$2
    shift 2
    "$@" >"$out" 2>&1 && grep -q "$pattern" "$out"
    verdict "$promise" $?
}

refuses 'a folder that is no build is named' 'the build: no pmix_boot/hvdrun/hvdrun in /' /
refuses 'a missing interpreter is named' '/nonexistent (HVD_BENCH_PYTHON)' "$build" HVD_BENCH_PYTHON=/nonexistent
refuses 'GPUs that the driver does not find are told' 'GPUs: unusable: cuInit failed' "$build" \
    LD_LIBRARY_PATH="$fakes" FAKE_GPU_COUNT=0 HVD_BENCH_PYTHON=/nonexistent
refuses 'so is NCCL that is too old' 'NCCL: unusable, .*2.7 or later' "$build" \
    LD_LIBRARY_PATH="$fakes" FAKE_NCCL_VERSION=2604 HVD_BENCH_PYTHON=/nonexistent
refuses 'but not UCX, which is not needed' 'nonexistent (HVD_BENCH_PYTHON)' "$build" \
    LD_LIBRARY_PATH="$fakes" HVD_UCX_MODULE=/nonexistent HVD_BENCH_PYTHON=/nonexistent
! grep -q UCX "$out"
verdict 'nor is it told of then' $?
if "$python" -c 'import torch, sys; sys.exit(torch.cuda.is_available())' 2>/dev/null; then
    refuses 'torch without a GPU is named' 'torch .* sees no GPU' "$build" HVD_BENCH_PYTHON="$python"
    works 'two ranks have the reference'"'"'s bits' '# 75 of 75 allreduces of 2 rank(s) on one cpu equal' \
        "$build/pmix_boot/hvdrun/hvdrun" -np 2 "$python" "$bench/gpu_cost.py" same --device cpu
    works 'they measure beside torch.distributed' '^| 8 | [0-9.]* | [0-9.]* | [0-9.]* |' \
        "$build/pmix_boot/hvdrun/hvdrun" -np 2 "$python" "$bench/gpu_cost.py" allreduce --device cpu --turns 3 \
        --calls 3 --most 65536
    works 'they pack groups of tensors' '^| 65536 | [0-9.]* | [0-9.]* | [0-9.]* | [0-9.]* |' \
        "$build/pmix_boot/hvdrun/hvdrun" -np 2 "$python" "$bench/gpu_cost.py" packing --device cpu --turns 1 \
        --calls 2 --most 65536
else
    echo "ok $((count += 1)) - its ranks work on CPUs # SKIP no torch without a GPU in $python"
fi
"$bench/gpu.sh" "$build" machine rm >"$out" 2>&1
[ $? = 2 ] && grep -q 'no part rm: machine same' "$out"
verdict 'a part that there is not is named' $?
works 'it tells what its parts are' 'training   steps of ResNet-50' "$bench/gpu.sh" --help
echo "1..$count"
exit $failed
