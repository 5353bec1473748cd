#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts jobs of up to 1,024 ranks on 64 nodes, which are all on this machine (contrib/cluster), reduces the
# gradients of LeNet-5, and prints what the start, a step and each rank cost. At the end it runs the last job
# once more, kills one of its ranks, and counts the survivors that name it, and what the jobs have left behind.
#
# usage: scale.sh BUILD PREFIX [NODESxRANKS...]
# BUILD was configured with -Dbench=true and is installed in PREFIX; RANKS is the number of ranks per node.
# Default: 16x1 64x1 64x4 64x16. Needs root, and 8 GiB of memory for 1,024 ranks. STEPS=N: steps of each job,
# default 30. START_BY=pmix: start by Slurm's PMIx instead of hvd's service.
set -euo pipefail

rank_program=scale_ranks
# shellcheck source=contrib/bench/bench_cluster.sh
. "$(dirname "$0")/bench_cluster.sh"
[ $# -gt 0 ] || set -- 16x1 64x1 64x4 64x16
mpi=none
[ "${START_BY:-}" = pmix ] && mpi=pmix

# start NODES RANKS ARGUMENT...: runs the job, with its output in $work/out.
start()
{
    local nodes=$1 ranks=$2 by=()
    shift 2
    [ "$mpi" = none ] || by=(HVD_START_BY=pmix)
    begin_ns=$(date +%s%N)
    "$cluster" run --dir "$work/cluster" LD_LIBRARY_PATH="$library" "${by[@]}" HOROVOD_LOG_LEVEL=info TZ=UTC0 \
        HVD_SCALE_BEGIN_NS="$begin_ns" srun --mpi="$mpi" --hvd=bind=none --cpu-bind=none --overcommit \
        "${kill_flag[@]}" -N "$nodes" --ntasks-per-node="$ranks" ./scale_ranks "$@" >"$work/out" 2>&1
}

# value NAME RANK: prints a value of the rank's line.
value()
{
    sed -n "s/^rank=$2 .*\b$1=\([0-9.]*\).*/\1/p" "$work/out"
}

# both NAME: prints the values of rank 0 and of the last rank.
both()
{
    echo "$(value "$1" 0) $(value "$1" "$all")"
}

# exchanged: prints when rank 0 had the addresses of all ranks, in ms since srun was started; its log tells.
exchanged()
{
    local stamp
    stamp=$(sed -n 's/^\[\([^]]*\): I [^]]*\] start: .*/\1/p' "$work/out" | head -n 1)
    echo $((($(TZ=UTC0 date -d "$stamp" +%s%N) - begin_ns) / 1000000))
}

most=0
for layout; do
    [ "${layout%x*}" -le "$most" ] || most=${layout%x*}
    last=$layout
done
bring_up "$most" --sockets 1 --cores 16 --gpus 0 --wait 300
cp "$program" "$work/cluster/home/"
chmod a+rx "$work/cluster/home/scale_ranks"
kill_flag=()
cat <<EOF
cores: $(nproc). Each row is a job of ${STEPS:-30} steps.
main to first: ms since srun was started, until the last rank is in main, rank 0 has the addresses of all
ranks, the last rank has left hvd_init, and rank 0 has the first sum. step, cpu: ms of a step, the median, and
of processor time in each rank, the mean. switches: of context, in each rank. memory: KiB beyond the program's
own, pss: KiB of the process with a share of what ranks have in common. memory, pss, files and conns: the most of all ranks.
agreement: bytes that rank 0 and the last rank send to agree on a step that does not repeat, and TCP packets.
join: ms until all have joined after half of the ranks have reduced one step more.
EOF
printf '%-7s %7s %7s %7s %7s %7s %6s %8s %7s %7s %5s %5s %12s %12s %7s\n' ranks main cards init first step cpu \
    switches memory pss files conns agreement packets join
for layout; do
    nodes=${layout%x*} ranks=${layout#*x} all=$((${layout%x*} * ${layout#*x} - 1))
    start "$nodes" "$ranks" "${STEPS:-30}" || { tail -5 "$work/out" && exit 1; }
    printf '%-7s %7s %7s %7s %7s %7s %6s %8s %7s %7s %5s %5s %12s %12s %7s\n' "$layout" "$(value main 0)" \
        "$(exchanged)" "$(value init 0)" "$(value first 0)" "$(value step 0)" \
        "$(awk '{ print $1 + $2 }' <<<"$(value user 0) $(value system 0)")" \
        "$(awk '{ print $1 + $2 }' <<<"$(value sleeps 0) $(value preemptions 0)")" "$(value rss 0)" \
        "$(value pss 0)" "$(value descriptors 0)" "$(value connections 0)" "$(both agreement)" \
        "$(both agreement_packets)" "$(value join 0)"
done

# After the death of a rank, srun must not end the others before they have told.
nodes=${last%x*} ranks=${last#*x} victim=$((${last%x*} * ${last#*x} / 2))
kill_flag=(--kill-on-bad-exit=0)
start "$nodes" "$ranks" 4 "$victim" 2 || true
echo "rank $victim was killed: $(grep -c "^failed: .*rank $victim on " "$work/out") of $((nodes * ranks - 1))" \
    "survivors name it"

# Processes of the jobs, srun's service among them, are in the cluster's home. Each node, and the controller, where srun
# runs, has a /tmp and a /dev/shm of its own.
processes=$({ find /proc -maxdepth 2 -name cwd -lname "$work/cluster/home*" 2>/dev/null || true; } | wc -l)
files=0
for node in ctl $(seq -f 'n%.0f' "$most"); do
    found=$("$cluster" run --dir "$work/cluster" --root --node "$node" \
        sh -c "find /dev/shm /tmp -maxdepth 2 -name '*hvd*' | wc -l")
    files=$((files + found))
done
echo "left behind: $processes processes, $files files"
