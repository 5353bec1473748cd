#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# figures.sh BUILD OUT [PART...]: measures the figures of README and bench.md with the build folder BUILD
# (meson setup -Dbench=true), and writes tables and pictures into the new folder OUT. Needs root, an
# otherwise idle machine, and two hours for all parts, mostly for training:
#
#   node      allreduce of 2 ranks on one node, and of the other libraries that are installed
#   nodes     the same between two nodes of one rank (two_nodes.sh)
#   training  steps of trainings with hvd, with DDP, and with Horovod if horovod_env.sh has built it
#
# OUT/NAME.txt has the output, with the command on top; tables are also written as JSON, PNG and SVG. Each
# measurement begins with a line of what runs, what is done and for how long, and what is left.
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
[ $# -ge 2 ] || { sed -n '3,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 2; }
build=$(realpath "$1") out=$2
shift 2
parts=("$@")
[ $# -gt 0 ] || parts=(node nodes training)
bench=$build/contrib/bench/hvd_bench/hvd-bench
[ -x "$bench" ] || { echo "figures.sh: there is no $bench: build it with -Dbench=true" >&2 && exit 1; }
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hvd-bench
# Gives this shell's group precedence over other work on the machine.
echo -20 >/proc/self/autogroup 2>/dev/null || true

declare -A measurements=([node]=1 [nodes]=1 [training]=4)
total=0 begun=0
for part in "${parts[@]}"; do
    [ -n "${measurements[$part]-}" ] || { echo "figures.sh: no part '$part', parts are node, nodes, training" >&2 && exit 2; }
    total=$((total + measurements[$part]))
done
mkdir "$out"
out=$(readlink -f "$out")

# A measurement is a process group, so that it ends with this script.
measurement=
trap '[ -z "$measurement" ] || kill -- "-$measurement"' EXIT

# record NAME COMMAND...: prints the output and keeps it. A part that fails does not end the others.
record()
{
    local name=$1 printer
    shift
    begun=$((begun + 1))
    echo "== $name: measurement $begun of $total, $((SECONDS / 60)) min since the start"
    exec 3> >(tee "$out/$name.txt")
    printer=$!
    echo "\$ $*" >&3
    set -m
    "$@" >&3 2>&1 3>&- </dev/null &
    measurement=$!
    set +m
    wait "$measurement" || echo "failed with status $?" >&3
    measurement=
    exec 3>&-
    wait "$printer"
    echo
}

# record_all NAME COMMAND...: records a command of hvd-bench, with its JSON file and plots.
record_all()
{
    local name=$1
    shift
    record "$name" "$@" --json "$out/$name.json" --plot "$out/$name"
}

mpirun=(mpirun --allow-run-as-root --oversubscribe --bind-to none)

node()
{
    record_all node-2 "${mpirun[@]}" -np 2 "$bench" allreduce --sizes 8,64,1K,16K,256K,4M,64M,256M \
        --level team,runtime --vs mpi,gloo,limit
}

nodes()
{
    record_all nodes-1,1 "$here/two_nodes.sh" mpirun 1,1 "$bench" allreduce \
        --sizes 8,1K,16K,64K,256K,1M,4M,64M --level team,runtime --vs ucx-limit,mpi,gloo
}

# train NAME MODEL BATCH PER_NODE NODES LAUNCHER...: measures steps of a training with each available backend.
train()
{
    local name=$1 model=$2 batch=$3 per_server=$4 servers=$5 backends=alone,hvd,gloo,gloo-views
    local horovod=$cache/horovod-0.28.1/bin/python
    shift 5
    [ ! -x "$horovod" ] || backends=$backends,horovod=$horovod
    HVD_LIBRARY=$build/collectives/libhvd.so record "$name" /usr/bin/python3 "$here/hvd_bench/lab.py" \
        --python /usr/bin/python3 --sizes '' --backends "$backends" --model "$model" --batch "$batch" --steps 20 --turns 5 \
        --servers "$servers" --per-server "$per_server" --launch "$*" --out "$out/$name"
}

training()
{
    local hvdrun=$build/pmix_boot/hvdrun/hvdrun model words
    for model in 'mlp 2' 'resnet50 32'; do
        read -ra words <<<"$model"
        train "training-${words[0]}-2" "${words[@]}" 2 1 "$hvdrun" -np '{ranks}'
        train "training-${words[0]}-1,1" "${words[@]}" 1 2 "$here/two_nodes.sh" "$hvdrun" '{layout}'
    done
}

for part in "${parts[@]}"; do
    "$part"
done
