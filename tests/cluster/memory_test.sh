#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A rank needs more memory than Slurm allows: srun and the other ranks name the reason.
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/elastic.sh"

# ranks PLACE HOW: runs four ranks on two nodes; rank 2 fails at PLACE by HOW.
ranks()
{
    job srun --hvd -N 2 --ntasks-per-node=2 --mem=400 ./fault_rank 2 "$1" "$2" 100000 30
}

memory_is_used_up()
{
    local status=0
    begin_job ranks large memory
    end_job || status=$?
    prints 'a rank needs more memory than the job has: srun fails' '^(1|137)$' echo "$status"
    prints 'Slurm names the reason' 'Out Of Memory|oom_kill' cat "$work/said"
    says_times 'the other ranks name the rank and the operation' 3 \
        "^said [0-9]+ [0-9]+ -5 rank 2 on n2 .*, in allreduce '(large|more)'"
}

install_hvd
start_cluster 2 --sockets 1 --cores 2 --gpus 0 --memory 800 --prefix "$prefix"
library=$(dirname "$(find "$prefix" -name libhvd.so -print -quit)")
cp "$MESON_BUILD_ROOT/tests/faults/fault_rank" "$home/"
chmod a+rx "$home"/*
memory_is_used_up
tap_done
