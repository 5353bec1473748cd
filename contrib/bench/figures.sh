#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# figures.sh BUILD OUT [PART...]: the figures by which hvd is judged, as tables and pictures, from the
# build folder BUILD (meson setup -Dbench=true) into the new folder OUT. Needs root, an otherwise idle
# machine, and an hour for all parts, more than half of it for training:
#
#   node      allreduce of 2, 4 and 8 ranks on one node beside the peers that are installed, and
#             beside Open MPI over UCX, which is what it chooses on InfiniBand
#   nodes     the same of 1,1 and 2,2 ranks on two nodes (two_nodes.sh)
#   moves     the other collectives on one node and on two beside MPI
#   sums      what adding up costs by type and instruction set
#   lists     all gradients of a model beside one tensor of the same bytes
#   thread    what it costs that the progress thread has to be woken, where it is left alone by
#             default (too few cpus) and where a cycle time is set
#   training  steps beside torch DDP, and Horovod where contrib/bench/horovod_env.sh has built it
#   simulate  the published case, hvd on the same machine, and 1,024 nodes
#
# OUT/NAME.txt is what was printed, with the command on top; tables also as CSV, JSON, PNG, SVG.
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
build=$(readlink -f "$1") out=$2
shift 2
parts=("$@")
[ $# -gt 0 ] || parts=(node nodes moves sums lists thread training simulate)
mkdir "$out"
out=$(readlink -f "$out")
bench=$build/contrib/bench/hvd_bench/hvd-bench
hvdrun=$build/pmix_boot/hvdrun/hvdrun
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hvd-bench
# The shell's group gets the cpu before what else the machine may do.
echo -20 >/proc/self/autogroup 2>/dev/null || true

# NAME COMMAND...: prints what it does, and keeps it. A part that fails does not end the others.
record()
{
    local name=$1
    shift
    {
        echo "\$ $*"
        "$@" 2>&1 || echo "failed with status $?"
    } | tee "$out/$name.txt"
    echo
}

# NAME COMMAND...: of a command that also makes tables and pictures.
record_all()
{
    local name=$1
    shift
    record "$name" "$@" --csv "$out/$name.csv" --json "$out/$name.json" --plot "$out/$name"
}

mpirun=(mpirun --allow-run-as-root --oversubscribe --bind-to none)
over_ucx=(--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any)

# NAME RANKS ARGUMENT...
on_one_node()
{
    local name=$1 ranks=$2
    shift 2
    record_all "$name" "${mpirun[@]}" -np "$ranks" "$bench" "$@"
}

# NAME LAYOUT ARGUMENT...
on_two_nodes()
{
    local name=$1 layout=$2
    shift 2
    record_all "$name" "$here/two_nodes.sh" mpirun "$layout" "$bench" "$@"
}

peers=mpi,gloo

node()
{
    on_one_node node-2 2 allreduce --sizes 8,64,1K,16K,256K,4M,64M,256M --level team,runtime \
        --vs "$peers,limit"
    for ranks in 4 8; do
        on_one_node "node-$ranks" "$ranks" allreduce --sizes 8,1K,16K,256K,4M,64M --level team \
            --vs "$peers,limit"
    done
    local mpirun=("${mpirun[@]}" "${over_ucx[@]}")
    for ranks in 2 4; do
        on_one_node "node-$ranks-ucx" "$ranks" allreduce --sizes 8,1K,16K,256K,4M,64M --level team \
            --vs mpi
    done
}

nodes()
{
    for layout in 1,1 2,2; do
        on_two_nodes "nodes-$layout" "$layout" allreduce --sizes 8,1K,16K,64K,256K,1M,4M,64M \
            --level team,runtime --vs ucx-limit,mpi,gloo
    done
}

moves()
{
    local what=(allgather broadcast alltoall reducescatter barrier --sizes "8,1K,16K,256K,16M"
        --level team --vs mpi)
    for ranks in 2 4; do
        on_one_node "moves-$ranks" "$ranks" "${what[@]}"
    done
    for layout in 1,1 2,2; do
        on_two_nodes "moves-$layout" "$layout" "${what[@]}"
    done
}

sums()
{
    record sums "$build/contrib/bench/reduce_speed"
}

lists()
{
    local what=(allreduce --list "resnet50,vgg16,bert_base" --level runtime --vs one --blocks 15)
    record lists-2 "$hvdrun" -np 2 "$bench" "${what[@]}"
    record lists-1,1 "$here/two_nodes.sh" "$hvdrun" 1,1 "$bench" "${what[@]}"
}

thread()
{
    record thread "$hvdrun" -np 2 "$build/contrib/bench/wake_thread"
    record thread-cycle env HOROVOD_CYCLE_TIME=1 "$hvdrun" -np 2 "$build/contrib/bench/wake_thread"
}

training()
{
    local python=$cache/horovod-0.28.1/bin/python options=(--build "$build")
    [ ! -x "$python" ] || options+=(--horovod "$python")
    for layout in 2 1,1; do
        record "training-mlp-$layout" /usr/bin/python3 "$here/torch_training/bench.py" \
            --models mlp --layout "$layout" "${options[@]}"
        record "training-resnet50-$layout" /usr/bin/python3 "$here/torch_training/bench.py" \
            --models resnet50 --layout "$layout" --turns 2 --steps 4 "${options[@]}"
    done
}

simulate()
{
    record simulate "$bench" --simulate --tables
}

for part in "${parts[@]}"; do
    "$part"
done
