#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# device.sh: tests and measures the hvd that pack.sh has packed here, on a machine with one GPU.
#
# Runs steps in order of value. Each has its own time limit, and a failure does not stop the next ones. Prints
# a line with the findings of each step, also into $OUT/summary.txt; all output goes to $OUT/log.txt. The
# exit status is 1 if a step failed or a probe found a defect. Ranks that share the GPU reach each other over
# the loopback interface, so only ratios of their times are meaningful.
#
#   OUT=FOLDER        results, default /tmp/gpu-kit
#   KIT_SECONDS=545   ends within that time, and skips steps that have no time left
#   KIT_ONLY=REGEX    only steps whose names match
#   KIT_MPS=1         also the figures of two ranks under MPS, whose daemon it starts and stops
#   KIT_PYTHON=FILE   the interpreter with PyTorch for CUDA, default python3
#   KIT_FAKE=1        programs in C on the stand-ins of CUDA and NCCL (PACK_FAKE=1), to rehearse without a GPU
#   KIT_DEVICE=cpu    programs in Python on the CPU, also to rehearse; may be combined with KIT_FAKE=1
set -u
export LC_ALL=C
kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scripts=$kit/src/contrib/bench/gpu_kit
case ${1-} in --help | -h) sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" && exit ;; esac
if [ ! -e "$kit/PACKED" ]; then
    echo 'device.sh: runs in a folder that pack.sh has made' >&2
    exit 2
fi
out=${OUT:-/tmp/gpu-kit}
seconds=${KIT_SECONDS:-545}
python=${KIT_PYTHON:-$(command -v python3)}
is_fake=${KIT_FAKE:-0}
device=${KIT_DEVICE:-cuda}
hvdrun=$kit/build/pmix_boot/hvdrun/hvdrun
tests=$kit/build/tests/collectives/gpu
began=$SECONDS
mkdir -p "$out"
log=$out/log.txt
summary=$out/summary.txt
: >"$log"
: >"$summary"
work=$(mktemp -d)
session='' has_mps=''

# Ends a step that was interrupted, and the daemon of MPS.
clean_up()
{
    [ -z "$session" ] || end_session "$session"
    [ -z "$has_mps" ] || echo quit | nvidia-cuda-mps-control >>"$log" 2>&1
    rm -rf "$work"
}
trap clean_up EXIT

# --- surroundings ---

# Copies the kit's libraries that this machine lacks, and no others: torch searches this folder, too, and must find
# the libraries that it was built with.
choose_libraries()
{
    local here file
    here=$({ ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null)
    mkdir -p "$work/lib"
    for file in "$kit"/lib/*; do
        grep -qF "$(basename "$file") (libc6,x86-64" <<<"$here" || cp "$file" "$work/lib/"
    done
}

# Prints the path of the NCCL in torch's packages, or else of any NCCL on the machine.
find_nccl()
{
    "$python" -c 'import glob, nvidia
print(*[file for place in nvidia.__path__ for file in glob.glob(place + "/*/lib/libnccl.so.2")][:1])' 2>/dev/null |
        grep . || find / -xdev -name libnccl.so.2 2>/dev/null | head -n 1
}

chmod -R u+rwX "$kit/build" 2>/dev/null
chmod -R u+x "$kit/build" 2>/dev/null
choose_libraries
export LD_LIBRARY_PATH=$work/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export HVD_LIBRARY=$kit/build/collectives/libhvd.so HVD_GPU_MODULE=$kit/build/collectives/gpu/module/hvd_gpu.so
export PYTHONPATH=$kit/src/contrib/python PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
export HVD_TEST_PYTHON=$python HVD_TEST_LAUNCHER=$hvdrun HVD_TEST_TIMES=1 HVD_TEST_DEVICE=$device
export NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_MNNVL_ENABLE=0 NCCL_DEBUG=${NCCL_DEBUG:-WARN} GLOO_SOCKET_IFNAME=lo
if [ "$is_fake" != 0 ]; then
    if [ ! -e "$kit/fake/libcuda.so.1" ]; then
        echo 'device.sh: KIT_FAKE=1 needs the stand-ins: pack with PACK_FAKE=1' >&2
        exit 2
    fi
    LD_LIBRARY_PATH=$kit/fake:$LD_LIBRARY_PATH
    HVD_GPU_MODULE=$kit/fake/hvd_gpu_with_kernels.so
elif [ -z "${HVD_NCCL_LIBRARY-}" ] && [ "$device" = cuda ]; then
    HVD_NCCL_LIBRARY=$(find_nccl)
    export HVD_NCCL_LIBRARY
    [ -n "$HVD_NCCL_LIBRARY" ] || unset HVD_NCCL_LIBRARY
fi

# --- steps ---

say()
{
    echo "$*" | tee -a "$summary"
}

skip()
{
    [[ ! $1 =~ ${KIT_ONLY:-.} ]] || say "-- $1: $2"
}

# end_session ID: kills processes that a step has left behind. setsid gave each step a session of its own.
end_session()
{
    local stat line words
    for stat in /proc/[0-9]*/stat; do
        { read -r line <"$stat"; } 2>/dev/null || continue
        read -ra words <<<"${line##*) }"
        [ "${words[3]-}" != "$1" ] || kill -KILL "${line%% *}" 2>/dev/null
    done
}

# verdict FILE: prints how many TAP tests passed. For an output without TAP, prints its last line, unless it has
# lines of its own for the summary.
verdict()
{
    local good bad
    good=$(grep -cE '^ok [0-9]+ - ' "$1")
    bad=$(grep -cE '^not ok' "$1")
    if [ $((good + bad)) -gt 0 ]; then
        echo "$good passed, $bad failed$(sed -nE '/^ok .*# SKIP/{s/.*# SKIP/; skipped:/p;q}' "$1")"
    elif ! grep -qE '^(ok |BAD|fig|\|) ' "$1"; then
        grep -v '^ *$' "$1" | tail -n 1 | cut -c 1-160
    fi
}

# findings FILE STATUS: prints lines for the summary: findings of probes, failed tests, tables, and the last lines
# of a failure.
findings()
{
    grep -E '^(ok |BAD|fig|\|) ' "$1" | cut -c 1-400
    grep -E '^not ok|^# rank [0-9]+: not so' "$1" | head -n 12 | cut -c 1-300
    [ "$2" = 0 ] || grep -vE '^(ok|BAD|fig|\||not ok|1\.\.| *$)' "$1" | tail -n 6 | cut -c 1-240 | sed 's/^/> /'
}

# step NAME LIMIT COMMAND...: runs a command for at most LIMIT seconds. EXPECT is the exit status of success, default 0.
step()
{
    local name=$1 limit=$2 left begin=$SECONDS status took result words
    shift 2
    [[ $name =~ ${KIT_ONLY:-.} ]] || return 0
    left=$((seconds - (SECONDS - began)))
    if [ "$left" -lt 12 ]; then
        say "-- $name: no time left"
        return 0
    fi
    [ "$limit" -lt "$left" ] || limit=$left
    printf '\n===== %s: %s\n' "$name" "$*" >>"$log"
    setsid timeout -k 3 "$limit" "$@" >"$work/out" 2>&1 </dev/null &
    session=$!
    wait $session
    status=$?
    end_session $session
    session=
    cat "$work/out" >>"$log"
    took=$((SECONDS - begin))
    [ $status != "${EXPECT-0}" ] || status=0
    case $status in
    0) result="ok $name ($took s)" ;;
    124 | 137) result="TIMEOUT $name ($limit s)" ;;
    *) result="FAILED $name (status $status, $took s)" ;;
    esac
    words=$(verdict "$work/out")
    say "$result${words:+: $words}"
    findings "$work/out" $status | sed 's/^/   /' | tee -a "$summary"
}

# in_c NAME LIMIT COMMAND...: runs a step that needs a GPU or the stand-ins, or skips it.
in_c()
{
    if [ "$device" = cuda ] || [ "$is_fake" != 0 ]; then
        step "$@"
    else
        skip "$1" 'runs on a GPU or with KIT_FAKE=1'
    fi
}

# in_python NAME LIMIT COMMAND...: runs a step that needs a GPU that torch sees, or the CPU; else skips it.
in_python()
{
    if [ "$is_fake" = 0 ] || [ "$device" = cpu ]; then
        step "$@"
    else
        skip "$1" 'runs on a GPU or with KIT_DEVICE=cpu'
    fi
}

# on_gpu NAME LIMIT COMMAND...: runs a step that needs a real GPU, or skips it.
on_gpu()
{
    if [ "$device" = cuda ] && [ "$is_fake" = 0 ]; then
        step "$@"
    else
        skip "$1" 'runs on a GPU'
    fi
}

# c_test NAME LIMIT RANKS PROGRAM...: runs a test in C. NCCL accepts several ranks on one GPU if each claims to be on a host of
# its own.
c_test()
{
    local name=$1 limit=$2 ranks=$3 program=$4
    shift 4
    # shellcheck disable=SC2016 # the rank's own variable
    in_c "$name" "$limit" "$hvdrun" -np "$ranks" sh -c 'NCCL_HOSTID="kit.$HOROVOD_RANK" exec "$@"' rank \
        "$tests/$program" "$@"
}

# nodes_test NAME LIMIT PROGRAM: runs a test in C as two ranks on each of two nodes.
nodes_test()
{
    # shellcheck disable=SC2016 # the rank's own variable
    if HOROVOD_RANK=0 "$kit/on_nodes.sh" 2,2 true 2>/dev/null; then
        in_c "$1" "$2" "$hvdrun" -np 4 "$kit/on_nodes.sh" 2,2 \
            sh -c 'NCCL_HOSTID="kit.$HOROVOD_RANK" exec "$@"' rank "$tests/$3"
    else
        skip "$1" 'several nodes need root or user namespaces'
    fi
}

# probe NAME LIMIT RANKS PART...: runs parts of probe.py, whose ranks set their NCCL_HOSTID.
probe()
{
    in_python "$1" "$2" "$hvdrun" -np "$3" "$python" -W ignore "$scripts/probe.py" "${@:4}" --device "$device"
}

# Prints facts of the machine; fails if a program lacks a library.
describe_machine()
{
    local file lacking=0
    cat "$kit/PACKED"
    sed -n 's/^PRETTY_NAME=//p' /etc/os-release
    ldd --version | head -n 1
    echo "processors: $(nproc)"
    nvidia-smi --query-gpu=name,driver_version,memory.total,mig.mode.current,compute_mode --format=csv,noheader
    nvidia-smi topo -m
    command -v nvidia-cuda-mps-control compute-sanitizer nvcc
    echo "NCCL: ${HVD_NCCL_LIBRARY:-where the loader finds it}"
    df -h /dev/shm | tail -n 1
    "$kit/build/contrib/info/hvd-info" --check | sed -E 's/^(GPU|NCCL|kernels)/fig &/'
    for file in "$HVD_LIBRARY" "$HVD_GPU_MODULE" "$hvdrun" "$kit/build/contrib/info/hvd-info"; do
        ldd "$file" | grep 'not found' && echo "BAD $file lacks a library" && lacking=1
    done
    return $lacking
}

describe_torch()
{
    "$python" -W ignore -c 'import torch
sees = torch.cuda.is_available()
print("fig torch", torch.__version__, "CUDA", torch.version.cuda, "NCCL", torch.cuda.nccl.version() if sees else "-",
      torch.cuda.get_device_name() if sees else "no GPU seen")'
}

say "hvd on a GPU: $(head -n 1 "$kit/PACKED"), $(date -u +%T)"
say "libraries that this machine lacks, taken from the kit: $(find "$work/lib" -type f -printf '%f ')"
export -f describe_machine describe_torch
export kit python hvdrun
step machine 60 bash -c describe_machine
in_python torch 40 bash -c describe_torch

# --- 1. correctness: kernels, NCCL of one rank and of two, the host path, the caller's streams ---

in_c kernels-bits 60 "$tests/module/gpu_kernels_test" "$HVD_GPU_MODULE"
c_test nccl-1 40 1 gpu_collectives_test 2
c_test nccl-2 60 2 gpu_collectives_test 1
HVD_GPU_PATH=host c_test host-2 30 2 gpu_collectives_test 1
c_test api-2 30 2 gpu_api_test
probe memory-2 60 2 memory
probe streams-1 45 1 streams graphs
if [ "$device" = cuda ] || [ "$is_fake" != 0 ]; then
    in_python torch-device-2 75 "$python" "$kit/src/tests/python/launch.py" 2 device_test
else
    skip torch-device-2 'runs on a GPU or with KIT_FAKE=1'
fi

# --- 2. figures; on one rank, NCCL launches nothing for a tensor in place, so the time is that of hvd alone ---

gpu_kernels=$kit/build/contrib/bench/gpu_kernels
if [ "$is_fake" != 0 ]; then
    in_c bandwidth 30 "$gpu_kernels" "$HVD_GPU_MODULE" 1 1
else
    in_c bandwidth 30 "$gpu_kernels" "$HVD_GPU_MODULE" 256 9
fi
probe beside-nccl-1 45 1 beside
probe overhead-1 40 1 overhead
probe resnet-1 75 1 resnet
probe launch-2 40 2 launch
NCCL_COMM_BLOCKING=1 probe launch-2-blocking 40 2 launch
HVD_GPU_PATH=host probe hostpath-2 45 2 hostpath
probe gathers-2 45 2 gathers

# --- 3. difficult cases: torch.distributed, deaths, a full GPU, more than 2^31 elements ---

probe distributed-1 40 1 futures distributed
probe distributed-2 40 2 distributed wrappers
EXPECT=137 probe kill-2 45 2 kill # hvdrun ends with the status of the rank that was killed
probe full-2 60 2 full
probe big-1 45 1 big
probe streams-2 60 2 streams graphs graphed
c_test mix-2 30 2 gpu_mix_test
c_test join-2 30 2 gpu_join_test
c_test wire-2 30 2 gpu_wire_test
HVD_GPU_ALLREDUCE=hierarchical HVD_MEMORY_LIMIT=1000000 nodes_test hierarchical-4 60 gpu_wire_test
probe same-2 60 2 same
probe beside-nccl-2 60 2 beside
probe resnet-2 90 2 resnet overhead
c_test nccl-4 60 4 gpu_collectives_test 1
probe packing-2 60 2 packing

sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
if [ -x "$sanitizer" ]; then
    on_gpu sanitizer 90 "$sanitizer" --tool memcheck --error-exitcode 9 "$tests/module/gpu_kernels_test" "$HVD_GPU_MODULE"
else
    skip sanitizer 'no compute-sanitizer here'
fi

# From 2.30 on NCCL lets two ranks of one host share a GPU and reach each other through its memory.
if [ -e "$kit/nccl/libnccl.so.2" ]; then
    HVD_NCCL_LIBRARY=$kit/nccl/libnccl.so.2 NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_MAX_CTAS=4 HVD_GPU_PATH=nccl \
        on_gpu nccl-2-in-gpu 45 "$hvdrun" -np 2 "$tests/gpu_api_test"
else
    skip nccl-2-in-gpu 'no NCCL packed (PACK_NCCL)'
fi

# NCCL registers windows only for ranks that reach each other's memory: here, both are on one host and one GPU, as in
# nccl-2-in-gpu.
# in_windows COMMAND...: runs a step with the NCCL that was packed, or without a GPU.
in_windows()
{
    if [ -e "$kit/nccl/libnccl.so.2" ] && [ "$is_fake" = 0 ] && [ "$device" = cuda ]; then
        HVD_NCCL_LIBRARY=$kit/nccl/libnccl.so.2 NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_MAX_CTAS=4 HVD_GPU_PATH=nccl \
            NCCL_HOSTID=kit "$@"
    elif [ "$is_fake" != 0 ] || [ "$device" != cuda ]; then
        FAKE_NCCL_VERSION=22703 "$@"
    else
        skip "$2" 'no NCCL packed (PACK_NCCL)'
    fi
}
HVD_GPU_ONE_KERNEL=4194304 in_windows in_c one-kernel-wire-2 30 "$hvdrun" -np 2 "$tests/gpu_wire_test"
in_windows probe one-kernel-2 45 2 one_kernel
HVD_NCCL_WINDOWS=1 in_windows in_c windows-wire-2 30 "$hvdrun" -np 2 "$tests/gpu_wire_test"
in_windows probe windows-2 45 2 windows

# --- 4. under MPS two ranks compute at the same time, so their figures are like those of two GPUs ---

if [ "${KIT_MPS:-0}" = 1 ] && command -v nvidia-cuda-mps-control >/dev/null; then
    export CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/mps-log
    mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
    nvidia-cuda-mps-control -d >>"$log" 2>&1
    has_mps=yes
    c_test mps-nccl-2 40 2 gpu_collectives_test 1
    probe mps-beside-nccl-2 50 2 beside
    probe mps-launch-2 30 2 launch
    in_windows probe mps-one-kernel-2 45 2 one_kernel
    NCCL_COMM_BLOCKING=1 probe mps-launch-2-blocking 30 2 launch
    probe mps-resnet-2 60 2 resnet overhead
    echo quit | nvidia-cuda-mps-control >>"$log" 2>&1
    has_mps=
    cat "$CUDA_MPS_LOG_DIRECTORY"/*.log >>"$log" 2>/dev/null
fi

passed=$(grep -c '^ok ' "$summary")
failed=$(grep -cE '^(FAILED|TIMEOUT)' "$summary")
defects=$(grep -c '^   BAD' "$summary")
say "$passed steps passed, $failed failed, $(grep -c '^-- ' "$summary") skipped; $defects defects found; $((SECONDS - began)) s"
[ "$failed" = 0 ] && [ "$defects" = 0 ]
