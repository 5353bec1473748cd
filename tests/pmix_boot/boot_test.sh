#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boots through hvdrun's rendezvous service, and through a real PMIx server, that of Open MPI's mpirun.
# usage: boot_test.sh HVDRUN BOOT_CLIENT [PMIX_VERSION]
# PMIX_VERSION is the library of pmix_version.c; it is left out if the programs have sanitizers.
# shellcheck disable=SC2016 # $ expands in the ranks
. "$(dirname "$0")/../cluster/harness.sh"
. "$(dirname "$0")/launch.sh"
hvdrun=$1 client=$2 pmix_version=${3-}

# launch N COMMAND...: starts N ranks by the launcher $by.
launch()
{
    case $by in
    mpirun) timeout "$limit" mpirun --allow-run-as-root --oversubscribe --bind-to none -np "$@" ;;
    *) timeout "$limit" "$hvdrun" -np "$@" ;;
    esac
}

ranks_find_each_other()
{
    local size=$1
    succeeds "$size ranks boot by $by" launch "$size" "$client" show
    counts "each of the $size knows its numbers, and all cards are right" "$size" \
        "^rank ([0-9]+)/$size local \1/$size node 0/1 cross 0/1 wrong 0 "
    local secrets
    secrets=$(sed 's/.*secret \([0-9a-f]*\).*/\1/' "$work/output" | sort -u | wc -l)
    succeeds "the $size ranks have the same secret" test "$secrets" = 1
}

# with_rank RANK COMMAND SECONDS: four ranks boot with this time limit; RANK runs COMMAND before it boots.
with_rank()
{
    local rank=$1 does=$2 seconds=$3
    launch 4 sh -c '
        if [ "${PMIX_RANK-$HOROVOD_RANK}" = "$1" ]; then eval "$2"; fi
        "$0" show "$3" || true' "$client" "$rank" "$does" "$seconds"
}

# there_are NUMBER SECONDS: NUMBER ranks are in boot. The time limit SECONDS identifies the processes of this test.
there_are()
{
    [ "$(pgrep -cf "boot_client show $2\$")" = "$1" ]
}

late_ranks_are_waited_for()
{
    local order=$work/order.$by
    mkfifo "$order"
    begin_job with_rank 3 "read -r _ <$order" "120.$$"
    succeeds 'three of four ranks are there' waits_for there_are 3 "120.$$"
    timeout "$limit" sh -c 'echo >"$0"' "$order"
    succeeds 'a rank is late' end_job
    cp "$work/said" "$work/output"
    counts 'all four boot' 4 '^rank ./4 .* wrong 0 '
}

ranks_that_have_ended_are_named()
{
    succeeds "when a rank never boots, the others go on with an error" \
        with_rank 2 'exit 0' 120
    counts "the other three ranks are told that it has ended" 3 \
        '^error -5: rank 2 exited with status 0 and did not call init'
}

# A rank starts its next process when the earlier processes of all ranks have ended: each holds a shared lock
# while it runs.
processes_follow_each_other()
{
    succeeds "each rank boots three times, in processes that follow each other" \
        launch 3 sh -c 'for i in 1 2 3; do
            exec 9>>"$1.$i"; flock -s 9; "$0" show 9>&-; flock -x 9
        done' "$client" "$work/lock.$by"
    counts "each process gets cards of its own round" 9 '^rank ./3 .* wrong 0 '
}

# in_lists LIST...: rank 0 joins the job of the ranks in the first LIST, rank 1 that of the second, ...
in_lists()
{
    launch 4 env seconds="${seconds-120}" sh -c '
        shift "${PMIX_RANK-$HOROVOD_RANK}"
        "$0" among "$1" "$seconds" || true' "$client" "$@"
}

all_in_another_order()
{
    succeeds "all four boot in another order" in_lists 3,1,0,2 3,1,0,2 3,1,0,2 3,1,0,2
    counts "all four get the right cards" 4 '^rank ./4 .* wrong 0 '
}

some_of_the_ranks()
{
    succeeds "two pairs of ranks boot at the same time" in_lists 0,2 1,3 0,2 1,3
    counts "each pair has two ranks, the right cards and the order of its list" 2 '^rank 0/2 local 0/2 .* wrong 0 '
    counts "the second rank of each list has the right cards, too" 2 '^rank 1/2 local 1/2 .* wrong 0 '
    local secrets
    secrets=$(sed 's/.*secret \([0-9a-f]*\).*/\1/' "$work/output" | sort -u | wc -l)
    succeeds "each pair has a secret of its own" test "$secrets" = 2
    succeeds "one rank boots alone, three boot together" in_lists 0 3,2,1 3,2,1 3,2,1
    counts "the one rank is rank 0 of 1" 1 '^rank 0/1 local 0/1 .* wrong 0 '
    counts "the others are three ranks" 3 '^rank ./3 .* wrong 0 '
}

wrong_lists()
{
    succeeds "a rank joins a list that it is not in" in_lists 0,2 0,2 0,2 0,2
    counts "the ranks that are not in it are told so" 2 '^error -1: rank [13] is not in the list of 2 ranks'
    counts "the others are not affected" 2 '^rank ./2 .* wrong 0 '
    succeeds "a list has a rank that does not exist" in_lists 0,4 1,4 2,4 3,4
    counts "the rank is named" 4 '^error -1: there is no rank 4: the launcher started 4 ranks'
    seconds=10 succeeds "two ranks join lists that differ" in_lists 0,1 1,0 2,3 2,3
    counts "each is told that the other is missing, and the likely reason" 2 \
        '^error -[56]: (1 of 2 ranks did not start within 10 s: )?rank [01].* init with (the same|this) list of ranks'
    succeeds "each rank passes an impossible list" in_lists 3,-1 3,-1 2,2 ''
    counts "a list with a negative rank is rejected" 2 '^error -1: there is no rank -1'
    counts "a list with a rank twice is rejected" 1 '^error -1: rank 2 is in the list of ranks twice'
    counts "a list without ranks is rejected" 1 '^error -1: a job of 0 ranks'
}

process_is_untouched()
{
    local all='signals same mask same threads same descriptors same environment same children none'
    succeeds "boot returns" launch 2 "$client" untouched
    counts "boot has changed nothing in the process" 2 "^$all"
    prints "boot changes nothing in a process that runs alone" "^$all" "$client" untouched
    succeeds "a program that waits for all its children boots" \
        launch 3 "$client" reaping
    counts "it is one of three ranks" 3 '^rank ./3 .* wrong 0 '
    succeeds "a program that ignores SIGCHLD boots" \
        launch 3 sh -c 'trap "" CHLD; exec "$0" show' "$client"
    counts "it is one of three ranks, too" 3 '^rank ./3 .* wrong 0 '
}

mpirun_is_unusable()
{
    complains "without PMIx, ranks of mpirun do not start as three jobs of one rank" \
        'OMPI_COMM_WORLD_SIZE is 3 but there is no PMIx' launch 3 env -u PMIX_RANK "$client" show
    mkdir "$work/alone"
    cp "$client" "$work/alone/"
    complains "under mpirun, an hvd that was built without PMIx is an error that says so" \
        '^error -8: the launcher serves PMIx .* no hvd-boot .*-Dpmix=enabled' launch 2 "$work/alone/boot_client" show
}

helper_is_unusable()
{
    complains "a PMIx server that is gone is an error; the rank does not start alone" 'cannot reach the PMIx server' \
        env PMIX_NAMESPACE=x PMIX_RANK=0 PMIX_SERVER_URI2='x;tcp4://127.0.0.1:1' "$client" show
    complains "a helper that cannot run is named" '^error -8: cannot start /nonexistent' \
        env HVD_BOOT_HELPER=/nonexistent PMIX_NAMESPACE=x PMIX_RANK=0 "$client" show
    printf '#!/bin/sh\necho "$0: error while loading shared libraries: libpmix.so.2: no such file" >&2\nexit 127\n' \
        >"$work/bare"
    chmod +x "$work/bare"
    complains "a helper without its libraries is an error with their names" \
        "^error -8: $work/bare cannot start: error while loading shared libraries: libpmix.so.2: no such file" \
        env HVD_BOOT_HELPER="$work/bare" PMIX_NAMESPACE=x PMIX_RANK=0 "$client" show
    prints "ranks use hvd's service if there is one, as in a container without libpmix" '^rank 1/2 ' \
        env HVD_BOOT_HELPER="$work/bare" PMIX_NAMESPACE=x PMIX_RANK=0 "$hvdrun" -np 2 "$client" show
    complains "a helper that ends without an answer is named" 'ended without an answer, exit status' \
        env HVD_BOOT_HELPER=/bin/true PMIX_NAMESPACE=x PMIX_RANK=0 "$client" show
}

# as_version VERSION COMMAND...: runs COMMAND with a libpmix of that version, as under Slurm's PMIx.
as_version()
{
    env LD_PRELOAD="$pmix_version" HVD_TEST_PMIX_VERSION="OpenPMIx $1 (PMIx Standard: 4.2)" \
        PMIX_NAMESPACE=slurm.pmix.1.0 SLURM_JOB_ID=1 SLURM_STEP_ID=0 PMIX_RANK=0 "${@:2}"
}

library_would_hang()
{
    [ -n "$pmix_version" ] || {
        tap_skip 'a libpmix that hangs under Slurm is not used' 'sanitizers must be loaded first'
        return
    }
    complains 'a libpmix that hangs under Slurm is not used' \
        '^error -8: libpmix 5.0.8 hangs under Slurm before 25.11.2' as_version 5.0.8 "$client" show
    prints "ranks use hvd's service if there is one" '^rank 1/2 ' as_version 5.0.9 "$hvdrun" -np 2 "$client" show
    complains 'the next release of libpmix is used' 'cannot reach the PMIx server' \
        as_version 5.0.10 env PMIX_SERVER_URI2='x;tcp4://127.0.0.1:1' "$client" show
}

# mpirun under LSF, and a launcher that sets jsrun's variables beside those of PMIx.
recorded_lsf()
{
    returns "ranks of a recorded LSF job find each other by PMIx" 0 '^rank 1/2 .* wrong 0 ' \
        timeout "$limit" env LSB_JOBID=7 LSB_HOSTS='n1 n1' LSB_MCPU_HOSTS='n1 2 ' LSB_DJOB_NUMPROC=2 \
        LSF_BINDIR=/opt/lsf/bin mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2 \
        sh -c 'JSM_NAMESPACE_RANK=$PMIX_RANK JSM_NAMESPACE_SIZE=2 exec "$0" show' "$client"
}

no_launcher()
{
    prints "without a launcher a process is rank 0 of 1" '^rank 0/1 local 0/1 node 0/1' "$client" show
    prints "without a launcher a process is rank 0 of the list 0" '^rank 0/1 local 0/1 node 0/1' "$client" among 0
    complains "without a launcher other ranks do not exist" \
        '^error -1: there is no rank 1: this process was started alone' \
        "$client" among 0,1
}

# All ranks boot together: mpirun's PMIx server may not answer a client that connects while another one
# leaves.
boot_by()
{
    by=$1
    for size in 1 2 3 4 7; do
        ranks_find_each_other "$size"
    done
    late_ranks_are_waited_for
    processes_follow_each_other
    all_in_another_order
    process_is_untouched
}

boot_by hvdrun
ranks_that_have_ended_are_named
some_of_the_ranks
wrong_lists
if [ ! -x "$(dirname "$hvdrun")/../hvd-boot" ]; then
    tap_skip "ranks find each other by PMIx" "this build has none"
else
    if command -v mpirun >/dev/null; then
        boot_by mpirun
        mpirun_is_unusable
        recorded_lsf
    else
        tap_skip "ranks of mpirun find each other" "there is no mpirun"
    fi
    helper_is_unusable
    library_would_hang
fi
no_launcher
succeeds "nothing is left in TMPDIR" is_clean
tap_done
