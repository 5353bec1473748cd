#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gpu.sh BUILD [PART...]: what hvd costs on this machine's GPU, from the build folder BUILD; some five
# minutes for all parts. Ratios are of things that took turns in one run.
#
#   machine    device, driver, NCCL and torch
#   same       2 ranks on one GPU: every result equals the reference, to the last bit
#   allreduce  one allreduce by hvd beside torch.distributed's, which is little more than a call of
#              NCCL: microseconds of the caller and on the stream; 1 rank, then 2 on one GPU
#   packing    groups of equal tensors of several sizes, packed, not packed, and by the limit that hvd
#              has measured, of which it prints the figures; on all GPUs, or 2 ranks on one
#   training   steps of ResNet-50 by hvd and by DistributedDataParallel beside alone, likewise
#   kernels    bandwidth of the kernels, where the build has that benchmark
#
# HVD_BENCH_PYTHON is an interpreter with a torch for CUDA, default python3. Status 1, and what is
# lacking, where nothing can be measured. Ranks that share a GPU do not reach each other through it:
# the figures of 2 are those of NCCL over sockets, good for the ratios only.
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
python=${HVD_BENCH_PYTHON:-python3}

case ${1---help} in --help | -h) sed -n '3,19s/^# \{0,1\}//p' "$0" && exit ;; esac
build=$(readlink -m "$1")
shift
everything=(machine same allreduce packing training kernels)
parts=("$@")
[ $# -gt 0 ] || parts=("${everything[@]}")
for part in "${parts[@]}"; do
    [[ " ${everything[*]} " == *" $part "* ]] || { echo "gpu.sh: no part $part: ${everything[*]}" >&2 && exit 2; }
done
hvdrun=$build/pmix_boot/hvdrun/hvdrun
export HVD_LIBRARY=$build/collectives/libhvd.so
export HVD_GPU_MODULE=$build/collectives/gpu/module/hvd_gpu.so
export PYTHONPATH=$here/../python${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1

# --- what is needed ---

lacking=()

need_build()
{
    local file
    for file in "$hvdrun" "$HVD_LIBRARY" "$HVD_GPU_MODULE" "$build/contrib/info/hvd-info"; do
        [ -e "$file" ] || lacking+=("the build: no ${file#"$build"/} in $build")
    done
}

need_gpu()
{
    local found
    [ ${#lacking[@]} = 0 ] || return 0
    found=$("$build/contrib/info/hvd-info" --check 2>&1) || true
    while read -r line; do
        lacking+=("$line")
    # An NCCL that comes with torch is found by torch only; UCX and profilers are not needed.
    done < <(grep -v '^NCCL: unusable, not found\|^NVTX\|^UCX' <<<"$found" | grep -i 'unusable\|cannot')
}

need_torch()
{
    local problem
    problem=$("$python" -W ignore -c 'import torch
if not torch.cuda.is_available():
    print("torch", torch.__version__, "sees no GPU")
elif not torch.distributed.is_nccl_available():
    print("torch", torch.__version__, "has no NCCL")' 2>&1 | tail -n 1) || true
    [ -z "$problem" ] || lacking+=("$python (HVD_BENCH_PYTHON): $problem")
}

# --- parts ---

machine()
{
    echo '# machine'
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv,noheader \
        2>/dev/null || echo 'no nvidia-smi here'
    "$build/contrib/info/hvd-info" --check
    "$python" -c 'import torch
print("torch:", torch.__version__, "CUDA:", torch.version.cuda, "its NCCL:", torch.cuda.nccl.version())'
    echo
}

# COMMAND OPTION... on so many ranks of one GPU
cost()
{
    local ranks=$1
    shift
    "$hvdrun" -np "$ranks" "$python" "$here/gpu_cost.py" "$@"
    echo
}

same()
{
    cost 2 same
}

allreduce()
{
    cost 1 allreduce
    cost 2 allreduce
}

packing()
{
    local gpus log
    gpus=$(nvidia-smi --list-gpus 2>/dev/null | wc -l)
    log=$(mktemp)
    HOROVOD_LOG_LEVEL=info cost $((gpus > 1 ? gpus : 2)) packing 2>"$log" || { cat "$log" >&2 && return 1; }
    grep -o 'process set 0: tensors below .* measured .*' "$log" || echo 'no limit was measured'
    rm -f "$log"
    echo
}

training()
{
    for layout in 1 2; do
        echo "# training, $layout rank(s) on one GPU"
        "$python" "$here/torch_training/bench.py" --build "$build" --python "$python" --device cuda \
            --models resnet50 --layout "$layout" --pixels 224 --batch 32 --starts 2 --turns 6 \
            --backends alone,hvd,ddp
        echo
    done
}

kernels()
{
    local program=$build/contrib/bench/gpu_kernels
    echo '# kernels'
    if [ -x "$program" ]; then
        "$program" "$build/collectives/gpu/module/hvd_gpu.so"
    else
        echo 'not measured: the build lacks contrib/bench/gpu_kernels (meson configure -Dbench=true)'
    fi
}

need_build
need_gpu
need_torch
if [ ${#lacking[@]} -gt 0 ]; then
    echo 'gpu.sh: nothing can be measured here, for want of' >&2
    printf '  %s\n' "${lacking[@]}" >&2
    exit 1
fi
for part in "${parts[@]}"; do
    "$part"
done
