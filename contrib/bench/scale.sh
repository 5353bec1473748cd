#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts jobs of up to 1,024 ranks on 64 nodes, which are all on this machine (contrib/cluster), reduces the
# gradients of LeNet-5, and prints what the start, a step and each rank cost. At the end it kills a rank of
# the largest job, and counts the survivors that name it.
#
# usage: scale.sh BUILD PREFIX [NODESxRANKS...]
# BUILD was configured with -Dbench=true and is installed in PREFIX; RANKS is the number of ranks per node.
# Default: 16x1 64x1 64x4 64x16. Needs root, and 8 GiB of memory for 1,024 ranks. STEPS=N: steps of each job,
# default 30. START_BY=pmix: start by Slurm's PMIx instead of hvd's service.
set -euo pipefail

bench=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cluster=$bench/../cluster/cluster
[ $# -ge 2 ] || { sed -n '3,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 2; }
program=$(realpath "$1")/contrib/bench/scale_ranks
prefix=$(realpath "$2")
shift 2
[ -x "$program" ] || { echo "there is no $program: configure with -Dbench=true" >&2 && exit 1; }
library=$(dirname "$(find "$prefix" -name libhvd.so -print -quit)")
work=$(mktemp -d /var/tmp/hvd-scale.XXXXXX)
chmod 755 "$work"
trap '"$cluster" down --dir "$work/cluster" >/dev/null 2>&1; rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- 16x1 64x1 64x4 64x16
mpi=none
[ "${START_BY:-}" = pmix ] && mpi=pmix

# start NODES RANKS ARGUMENT...: runs the job, with its output in $work/out.
start()
{
    local nodes=$1 ranks=$2 by=()
    shift 2
    [ "$mpi" = none ] || by=(HVD_START_BY=pmix)
    "$cluster" run --dir "$work/cluster" LD_LIBRARY_PATH="$library" "${by[@]}" \
        HVD_SCALE_BEGIN_NS="$(date +%s%N)" srun --mpi="$mpi" --hvd=bind=none --cpu-bind=none --overcommit \
        "${kill_flag[@]}" -N "$nodes" --ntasks-per-node="$ranks" ./scale_ranks "$@" >"$work/out" 2>&1
}

# value NAME RANK: prints a value of the rank's line.
value()
{
    sed -n "s/^rank=$2 .*\b$1=\([0-9.]*\).*/\1/p" "$work/out"
}

most=0
for layout; do
    [ "${layout%x*}" -le "$most" ] || most=${layout%x*}
    last=$layout
done
"$cluster" up "$most" --dir "$work/cluster" --sockets 1 --cores 16 --gpus 0 --prefix "$prefix" --wait 300 \
    >"$work/up" || { cat "$work/up" && exit 1; }
cp "$program" "$work/cluster/home/"
chmod a+rx "$work/cluster/home/scale_ranks"
kill_flag=()
echo "cores: $(nproc). Times in ms: of the slowest rank from srun to main, hvd_init, the first allreduce; the"
echo "median of ${STEPS:-30} steps. Memory in KiB, descriptors, threads and connections: the most of all ranks,"
echo "memory without the program's own. Bytes and packets that rank 0 and the last rank sent."
printf '%-7s %8s %8s %8s %8s %7s %5s %8s %6s %18s %14s\n' ranks start hvd_init first step memory files threads \
    conns 'bytes 0, last' 'packets'
for layout; do
    nodes=${layout%x*} ranks=${layout#*x} all=$((${layout%x*} * ${layout#*x} - 1))
    start "$nodes" "$ranks" "${STEPS:-30}" || { tail -5 "$work/out" && exit 1; }
    printf '%-7s %8s %8s %8s %8s %7s %5s %8s %6s %18s %14s\n' "$layout" "$(value started 0)" "$(value init 0)" \
        "$(value first 0)" "$(value step 0)" "$(value rss 0)" "$(value descriptors 0)" "$(value threads 0)" \
        "$(value connections 0)" "$(value sent 0) $(value sent "$all")" "$(value packets 0) $(value packets "$all")"
done

# After the death of a rank, srun must not end the others before they have told.
nodes=${last%x*} ranks=${last#*x} victim=$((${last%x*} * ${last#*x} / 2))
kill_flag=(--kill-on-bad-exit=0)
start "$nodes" "$ranks" 4 "$victim" 2 || true
echo "rank $victim was killed: $(grep -c "^failed: .*rank $victim on " "$work/out") of $((nodes * ranks - 1))" \
    "survivors name it"
