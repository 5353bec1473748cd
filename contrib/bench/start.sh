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

bench=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cluster=$bench/../cluster/cluster
[ $# -ge 2 ] || { sed -n '3,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 2; }
program=$(realpath "$1")/contrib/bench/first_allreduce
prefix=$(realpath "$2")
shift 2
[ -x "$program" ] || { echo "there is no $program: configure with -Dbench=true" >&2 && exit 1; }
for layout; do
    [[ $layout =~ ^[1-9][0-9]*x[1-9][0-9]*$ ]] || {
        echo "start.sh: layout '$layout': expected NODESxRANKS, such as 2x4" >&2
        exit 2
    }
done
library=$(find "$prefix" -name libhvd.so -print -quit)
[ -n "$library" ] || { echo "start.sh: there is no libhvd.so in $prefix: run meson install" >&2 && exit 1; }
library=$(dirname "$library")
rounds=${ROUNDS:-5}
work=$(mktemp -d /var/tmp/hvd-start.XXXXXX)
chmod 755 "$work"

# An interrupted `up` removes its part of the cluster before it ends.
clean_up()
{
    trap '' INT TERM HUP
    [ -z "$up" ] || { kill "$up" 2>/dev/null && wait "$up"; } || :
    "$cluster" down --dir "$work/cluster" >/dev/null 2>&1 || :
    rm -rf "$work"
}

# bring_up ARGUMENT...: runs cluster up in the background, because a signal ends this script at once.
bring_up()
{
    "$cluster" up "$@" >"$work/up" 2>&1 &
    up=$!
    wait "$up" || { up= && cat "$work/up" >&2 && exit 1; }
    up=
}

up=
trap clean_up EXIT

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
    bring_up "$nodes" --dir "$work/cluster" --sockets 1 --cores "$((ranks > 4 ? ranks : 4))" --gpus 0 \
        --prefix "$prefix"
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
