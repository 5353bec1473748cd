#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures how long jobs take to start, by Slurm's PMIx and by hvd's rendezvous service in turns, on a
# throw-away cluster on this machine (contrib/cluster). Prints medians in milliseconds: of the whole srun,
# of hvd_init on rank 0, and of the first allreduce.
#
# usage: start.sh BUILD PREFIX [NODESxRANKS...]
# BUILD was configured with -Dbench=true and is installed in PREFIX; RANKS is the number of ranks per node.
# Default: 2x2 4x16. Needs root. ROUNDS=N: number of turns, default 5.
set -euo pipefail

rank_program=first_allreduce
# shellcheck source=contrib/bench/bench_cluster.sh
. "$(dirname "$0")/bench_cluster.sh"
rounds=${ROUNDS:-5}

now_ms()
{
    echo $(($(date +%s%N) / 1000000))
}

# run NODES RANKS WAY: adds a line "srun init first" to $work/WAY.
run()
{
    local begin output
    begin=$(now_ms)
    output=$("$cluster" run --dir "$work/cluster" LD_LIBRARY_PATH="$library" HVD_START_BY=pmix srun \
        "--mpi=$3" --hvd=bind=none --cpu-bind=none -N "$1" --ntasks-per-node="$2" ./first_allreduce)
    echo "$(($(now_ms) - begin)) $(sed -n 's/^init \(.*\) first \(.*\)/\1 \2/p' <<<"$output")" >>"$work/$3"
}

# median COLUMN WAY: prints the median of a column of $work/WAY.
median()
{
    cut -d ' ' -f "$1" "$work/$2" | sort -n | sed -n "$(((rounds + 1) / 2))p"
}

# way WAY: prints what the table calls this way to start.
way()
{
    case $1 in
    pmix) echo "Slurm's PMIx" ;;
    none) echo "hvd's service" ;;
    esac
}

measure()
{
    local nodes=${1%x*} ranks=${1#*x} round ways=(none) name
    bring_up "$nodes" --sockets 1 --cores "$((ranks > 4 ? ranks : 4))" --gpus 0
    ! grep -q 'no PMIx plugin' "$work/up" && ways=(pmix none)
    cp "$program" "$work/cluster/home/"
    chmod a+rx "$work/cluster/home/first_allreduce"
    rm -f "$work/pmix" "$work/none"
    for ((round = 0; round <= rounds; round++)); do
        for name in "${ways[@]}"; do
            run "$nodes" "$ranks" "$name"
        done
        [ "$round" != 0 ] || rm -f "$work/pmix" "$work/none" # a round that only brings files into memory
    done
    for name in "${ways[@]}"; do
        printf '%-8s %-14s %8s %8s %8s\n' "$1" "$(way "$name")" "$(median 1 "$name")" "$(median 2 "$name")" \
            "$(median 3 "$name")"
    done
    "$cluster" down --dir "$work/cluster" >/dev/null
}

printf '%-8s %-14s %8s %8s %8s\n' ranks start srun hvd_init first
[ $# -gt 0 ] || set -- 2x2 4x16
for layout; do
    measure "$layout"
done
