#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boots under Slurm's PMIx on two nodes: with ranks that are late or never come, hundreds of times in one
# step, and with some of the step's ranks.
# usage: boot_slurm_often_test.sh BOOT_CLIENT HVD_BOOT EARLY_CLIENT
# EARLY_CLIENT is the library of early_client.c.
# shellcheck disable=SC2016,SC2154 # $ expands inside; home, work and prefix come from harness.sh
. "$(dirname "$0")/../cluster/harness.sh"
. "$(dirname "$0")/slurm.sh"
early_client=$3

# missing_ranks RANK HOST: that rank does not boot, and ends after the others. It waits until each of them
# has reported through a pipe that it holds a shared lock, then until all have ended and released the lock.
missing_ranks()
{
    local rank=$1 host=$2
    said step --mpi=pmix -K0 -N 2 -n 4 -m plane=3 sh -c \
        "exec 9>>counter
        if [ \$SLURM_PROCID = $rank ]; then
            exec 8<>up; read -r a <&8; read -r a <&8; read -r a <&8; flock -x 9
        else
            flock -s 9; echo up >up; ./boot_client show 10 9>&- || true
        fi"
    counts "rank $rank on $host never boots: the others name it and its host in time" 3 \
        "^error -6: 1 of 4 ranks did not start within 10 s: rank $rank \(on $host\);"
}

# Rank 3 is the only rank of its node, and ends at once, so that the node leaves the step. Slurm 24.11 then
# waits for that node instead of answering PMIx, and the other ranks cannot learn which ranks are there.
missing_nodes()
{
    said step --mpi=pmix -K0 -N 2 -n 4 -m plane=3 sh -c \
        '[ $SLURM_PROCID = 3 ] || ./boot_client show 10 || true'
    counts 'a node that ends: the others name its rank, or the reason why they cannot' 3 \
        '^error -6: (1 of 4 ranks did not start within 10 s: rank 3 \(on n2\);|rank . found 1 of 4 ranks within 10 s, then .*stopped answering)'
}

# Finds processes of all nodes, because all nodes of the test run on this machine.
three_are_there()
{
    [ "$(pgrep -cf "^\./boot_client show 120\\.$$\$")" = 3 ]
}

late_rank()
{
    mkfifo -m 666 "$home/order"
    begin_job step --mpi=pmix -N 2 -n 4 -m plane=3 sh -c \
        "if [ \$SLURM_PROCID = 3 ]; then read -r _ <order; fi; ./boot_client show 120.$$"
    succeeds 'three of four ranks boot' waits_for three_are_there
    timeout "$limit" sh -c 'echo >"$0"' "$home/order"
    end_job
    counts 'three ranks wait for a late rank on the other node' 4 '^rank .* wrong 0 '
}

again_and_again()
{
    said step --mpi=pmix -N 2 -n 4 -m plane=3 ./boot_client cycles 300 counter
    tap_note "$(cat "$work/said")"
    counts '4 ranks on 2 nodes boot 300 times, never with a card of an earlier boot' 4 '^cycles 300 wrong 0 '
    counts 'descriptors, threads and memory do not grow' 4 \
        'descriptors \+0 threads \+0 memory (-[0-9]+|\+[0-9]{1,2}|\+[12][0-9]{2}) kB'
}

# in_lists LIST...: rank 0 joins the job of the ranks in the first LIST, rank 1 that of the second, ... A rank
# that is done waits for the others, because a node answers no more PMIx requests when its last task has ended.
in_lists()
{
    said step --mpi=pmix -N 2 -n 4 --ntasks-per-node=2 sh -c 'exec 9>>counter; flock -s 9
        shift $SLURM_PROCID; ./boot_client among $1 120 9>&- || true; flock -x 9' sh "$@"
}

some_of_the_ranks()
{
    in_lists 0,1 0,1 2,3 2,3
    counts 'the ranks of each node start a job of their own at the same time' 2 \
        '^rank 0/2 local 0/2 node 0/1 .* wrong 0 '
    in_lists 2,0 3,1 2,0 3,1
    counts 'pairs across the nodes start jobs of their own at the same time' 2 \
        '^rank 0/2 local 0/1 node 0/2 .* wrong 0 .* on n2 n1$'
    counts 'each pair has both ranks' 2 '^rank 1/2 local 0/1 node 1/2 .* wrong 0 .* on n2 n1$'
    in_lists 0,3 0,3 2 0,3
    counts 'a job can have ranks of both nodes' 2 '^rank ./2 local 0/1 node ./2 .* wrong 0 .* on n1 n2$'
    counts 'a rank that is not in the list of a job is told so' 1 \
        '^error -1: rank 1 is not in the list of 2 ranks'
    said step --mpi=pmix -N 2 -n 4 --ntasks-per-node=2 ./boot_client regroup 60 regroups
    tap_note "$(grep '^regrouped' "$work/said")"
    counts '4 ranks boot 60 times, in pairs and all together, never with a wrong card' 4 \
        '^regrouped 60 wrong 0 '
}

# The server removes its memory while rank 0 is connected. Without connecting anew, rank 0 would never find the
# value of rank 1, which has found that of rank 0 and moves on.
stale_view()
{
    cp "$early_client" "$home/early_client.so"
    chmod a+rx "$home/early_client.so"
    : >"$home/regroups"
    said step --mpi=pmix -N 2 -n 4 --ntasks-per-node=2 sh -c 'if [ $SLURM_PROCID = 0 ]; then
            export LD_PRELOAD='"$home"'/early_client.so HVD_TEST_EARLY_CLIENT=early
        fi
        exec ./boot_client regroup 4 regroups'
    counts 'a rank whose view of its node is stale finds the others' 4 '^regrouped 4 wrong 0 '
}

mkfifo "$home/up"
chmod a+rw "$home/up"
missing_ranks 1 n1
missing_ranks 3 n2
missing_nodes
late_rank
some_of_the_ranks
stale_view
: >"$home/counter" # the counter of `cycles` starts at 0
again_and_again
tap_done
