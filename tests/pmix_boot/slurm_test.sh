#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boot under Slurm's PMIx on two nodes, and hvdrun in an allocation.
# usage: slurm_test.sh BOOT_CLIENT HVD_BOOT
# shellcheck disable=SC2016,SC2154 # $ expands inside; home, work and prefix come from harness.sh
. "$(dirname "$0")/../cluster/harness.sh"
client=$1 helper=$2

# A step as Slurm itself starts it, without the plugin.
step()
{
    as_user HVD_BOOT_HELPER="$home/hvd-boot" srun "$@"
}

# layout NAME NUMBERS OPTIONS...: rank, local rank and size, node, cross rank and size of each rank.
layout()
{
    prints "$1: a step of four ranks boots" '^rank' step --mpi=pmix -N 2 -n 4 "${@:3}" ./boot_client show
    cp "$work/output" "$work/said"
    prints "$1: all numbers are right, and all cards" "^$2\$" numbers
}

numbers()
{
    sed -n 's,^rank \([0-9]*\)/4 local \([0-9/]*\) node \([0-9]*\)/2 cross \([0-9/]*\) wrong 0 .*,\1:\2:\3:\4,p' \
        "$work/said" | sort | paste -sd ' '
}

layouts()
{
    layout 'two and two' '0:0/2:0:0/2 1:1/2:0:0/2 2:0/2:1:1/2 3:1/2:1:1/2' --ntasks-per-node=2
    layout 'three and one' '0:0/3:0:0/2 1:1/3:0:0/1 2:2/3:0:0/1 3:0/1:1:1/2' -m plane=3
    layout 'in turns' '0:0/2:0:0/2 1:0/2:1:1/2 2:1/2:0:0/2 3:1/2:1:1/2' \
        --ntasks-per-node=2 -m cyclic
    counts 'all ranks know the hosts of all' 4 ' on n1 n2 n1 n2$'
}

# counts PROMISE NUMBER REGEX: so many lines of the last step match.
counts()
{
    local found
    found=$(grep -Ec -- "$3" "$work/said")
    [ "$found" = "$2" ] || tap_note "$(cat "$work/said")"
    prints "$1" "^$2$" echo "$found"
}

missing_ranks()
{
    local rank=$1 host=$2
    step --mpi=pmix -K0 -N 2 -n 4 -m plane=3 sh -c \
        "[ \$SLURM_PROCID = $rank ] || ./boot_client show 3 || true" >"$work/said" 2>&1 </dev/null
    counts "rank $rank on $host never boots: the others name it and its host in time" 3 \
        "^error -6: 1 of 4 ranks did not start within 3 s: rank $rank \(on $host\);"
}

late_rank()
{
    step --mpi=pmix -N 2 -n 4 -m plane=3 sh -c \
        'if [ $SLURM_PROCID = 3 ]; then sleep 7; fi; ./boot_client show 9' >"$work/said" 2>&1 </dev/null
    counts 'a rank of the other node that comes in the last moments is waited for' 4 '^rank .* wrong 0 '
}

# After boot a rank may go: PMIx is closed, so Slurm does not end the step.
rank_leaves()
{
    prints 'ranks that end after boot do not end the step' '^0 goes on' step --mpi=pmix -N 2 -n 4 \
        sh -c './boot_client show; if [ $SLURM_PROCID = 0 ]; then sleep 2; echo 0 goes on; fi'
}

again_and_again()
{
    step --mpi=pmix -N 2 -n 4 -m plane=3 ./boot_client cycles 300 counter >"$work/said" 2>&1 </dev/null
    tap_note "$(cat "$work/said")"
    counts '4 ranks on 2 nodes boot 300 times, never with an old card' 4 '^cycles 300 wrong 0 '
    counts 'nothing grows' 4 'descriptors \+0 threads \+0 memory (-[0-9]+|\+[0-9]{1,2}|\+[12][0-9]{2}) kB'
}

# Each rank joins the list that is given for it. Those who are done stay for a while, as ranks of
# a job do: a node whose last task ends does not answer questions any more.
in_lists()
{
    step --mpi=pmix -N 2 -n 4 --ntasks-per-node=2 sh -c \
        'shift $SLURM_PROCID; ./boot_client among $1 20 || true; sleep 2' sh "$@" >"$work/said" 2>&1 </dev/null
}

some_of_the_ranks()
{
    in_lists 0,1 0,1 2,3 2,3
    counts 'the ranks of each node start a job of their own at the same time' 2 \
        '^rank 0/2 local 0/2 node 0/1 .* wrong 0 '
    in_lists 2,0 3,1 2,0 3,1
    counts 'so do pairs across the nodes' 2 '^rank 0/2 local 0/1 node 0/2 .* wrong 0 .* on n2 n1$'
    counts 'with both of their ranks' 2 '^rank 1/2 local 0/1 node 1/2 .* wrong 0 .* on n2 n1$'
    in_lists 0,3 0,3 2 0,3
    counts 'a job has ranks of both nodes' 2 '^rank ./2 local 0/1 node ./2 .* wrong 0 .* on n1 n2$'
    counts 'a rank that is not in the list of a job is told so' 1 \
        '^error -1: rank 1 is not in the list of 2 ranks'
    step --mpi=pmix -N 2 -n 4 --ntasks-per-node=2 ./boot_client regroup 60 regroups >"$work/said" 2>&1 </dev/null
    tap_note "$(grep '^regrouped' "$work/said")"
    counts '4 ranks boot 60 times, in pairs and all together, never with a wrong card' 4 \
        '^regrouped 60 wrong 0 '
}

without_pmix()
{
    complains 'a step without PMIx is an error that says what to type' \
        'error -8: this Slurm step has 4 tasks but no PMIx.* srun --hvd' step --mpi=none -N 2 -n 4 ./boot_client show
    complains 'so is one with PMI2' 'error -8: this Slurm step has 2 tasks' step --mpi=pmi2 -n 2 ./boot_client show
    prints 'one task without PMIx is alone' '^rank 0/1' step --mpi=none -n 1 ./boot_client show
    complains 'a step without PMIx in one that has it does not take that for its own' \
        '2 tasks but no PMIx' step --mpi=pmix -n 2 -N 1 sh -c \
        'if [ $SLURM_PROCID = 0 ]; then exec srun --overlap --mpi=none -n 2 -N 1 ./boot_client show; else sleep 2; fi'
    prints 'a shell of salloc is alone' '^rank 0/1' as_user salloc -N 2 -n 4 ./boot_client show
}

hvdrun_in_allocation()
{
    prints 'hvdrun in an allocation is srun --hvd' 'rank 3/4 .* wrong 0 .* on n1 n1 n2 n2' \
        as_user salloc --quiet -N 2 --ntasks-per-node=2 "$run" -np 4 ./boot_client show
    prints 'it places ranks on the hosts that -H names' 'rank 3/4 .* wrong 0 .* on n1 n1 n1 n2' \
        as_user salloc --quiet -N 2 --ntasks-per-node=3 "$run" -np 4 -H n1:3,n2:1 ./boot_client show
    succeeds 'it keeps output in files' \
        as_user salloc --quiet -N 2 --ntasks-per-node=2 "$run" -np 4 --output-filename logs ./boot_client show
    succeeds 'one for each rank' grep -q '^rank 3/4' "$home/logs/rank.3/stdout"
    prints 'in a task of srun it starts ranks itself' '^rank 2/3 local 2/3 .* wrong 0 ' \
        as_user srun --mpi=pmix -n 1 -c 2 "$run" -np 3 ./boot_client show
    complains 'it returns the exit code of a rank' 'Exited with exit code 7' \
        as_user salloc --quiet -N 2 --ntasks-per-node=2 "$run" -np 4 sh -c 'exit 7'
}

# A job that asked for --hvd may turn it off for a step; that is no missing plugin.
hvd_turned_off()
{
    prints 'a step with --hvd=off in a job with --hvd boots by --mpi=pmix' 'rank 1/2 .* wrong 0' \
        as_user HVD_BOOT_HELPER="$home/hvd-boot" salloc --quiet -N 2 -n 2 --hvd \
        srun --hvd=off --mpi=pmix -N 2 ./boot_client show
}

install_hvd
start_cluster 2 --sockets 1 --cores 4 --gpus 0 --prefix "$prefix"
cp "$client" "$helper" "$home/"
mkdir "$home/hvd" "$home/logs"
cp "$helper" "$home/hvd/" # where a program beside it looks
touch "$home/counter" "$home/regroups"
chmod -R a+rwX "$home/logs" "$home/counter" "$home/regroups"
chmod -R a+rX "$home/boot_client" "$home/hvd-boot" "$home/hvd"
run=$(find "$prefix" -name hvdrun -type f -print -quit)
layouts
missing_ranks 1 n1
missing_ranks 3 n2
late_rank
rank_leaves
again_and_again
some_of_the_ranks
without_pmix
hvdrun_in_allocation
hvd_turned_off
tap_done
