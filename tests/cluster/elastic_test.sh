#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Elastic jobs on two nodes: a rank is killed, then a slurmd, then a node is switched off, and the job still
# succeeds; ranks of a further step join.
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/elastic.sh"

# Starts four ranks, which repeat a step in the middle of the training until let_go is called.
start_steps()
{
    rm -f "$home/go"
    begin_job job HVD_TRAINER_GO=go HVD_TRAINER_PAUSE_MS=50 srun --hvd=elastic,metrics=metrics -N 2 \
        --ntasks-per-node=2 ./trainer 20
    await_said 'waits at step 5'
}

let_go()
{
    touch "$home/go"
    end_job
}

rank_and_slurmd_die()
{
    start_steps
    as_root --node n1 pkill -9 -n -x trainer
    succeeds 'when a rank is killed the others begin anew' await_said 'generation 2 begins, 3 ranks'
    as_root --node n2 pkill -9 -x slurmd
    let_go
    says_times 'a rank and a slurmd are killed: the others have all steps and the right value' 3 \
        'rank [0-2] of 3, steps 20, value 20, begun 2 times'
    prints 'the metrics show the second generation' '^hvd_generation\{.*node="n1"\} 2$' \
        sh -c 'cat "$1"/*.prom' sh "$home/metrics"
    as_root --node n2 slurmd -N n2
    prints 'the node comes back' '^n2$' as_user srun -w n2 hostname
}

others_join()
{
    begin_job job HVD_TRAINER_HOLD=4 srun --hvd=elastic,meet=run.hvd -w n1 -n 2 ./trainer 20
    await_said 'waits at step 5'
    prints 'only the user can read the file of meet=' '^600$' stat -c %a "$home/run.hvd"
    prints 'ranks of a further step join' 'rank 3 of 4, steps 20, value 20' \
        job HVD_TRAINER_HOLD=4 srun --hvd=elastic,meet=run.hvd -w n2 -n 2 ./trainer 20
    end_job
    says 'the ranks of the first step continue with the new ones' \
        'rank 0 of 4, steps 20, value 20, begun 2 times'
    fails 'the file is removed with the step that made it' test -e "$home/run.hvd"
}

# The stopped rank is the only one on its node.
one_is_stopped()
{
    rm -f "$home/go"
    begin_job job HVD_TRAINER_GO=go HVD_TRAINER_PAUSE_MS=50 HOROVOD_STALL_CHECK_TIME_SECONDS=1 \
        HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=2 HOROVOD_ELASTIC_TIMEOUT=3 \
        srun --hvd=elastic -N 2 -n 3 ./trainer 20
    await_said 'waits at step 5'
    as_root --node n2 pkill -STOP -x trainer
    succeeds 'a rank that is stopped is dropped, with host and pid' \
        await_said 'rank 2 on n2 \(pid [0-9]+\) did not rejoin within 3 s'
    succeeds 'the others begin anew' await_said 'generation 2 begins, 2 ranks'
    succeeds 'the stopped rank is ended' \
        await_said 'rank 2 on n2 \(pid [0-9]+\) was ended'
    fails 'its process has ended' as_root --node n2 pgrep -x trainer
    let_go
    says_times 'srun ends by itself; the others have all steps and the right value' 2 \
        'rank [01] of 2, steps 20, value 20, begun 2 times'
}

# Milliseconds since the epoch.
now_ms()
{
    date +%s%3N
}

# The spare is the last task, which is on n2.
a_spare_steps_in()
{
    local before after
    rm -f "$home/go"
    begin_job job HVD_TRAINER_GO=go HVD_TRAINER_PAUSE_MS=20 srun --hvd=elastic,min=2,spares=1 --exclusive \
        -N 2 -n 5 ./trainer 20
    await_said 'waits at step 5'
    before=$(now_ms)
    as_root --node n1 pkill -9 -n -x trainer
    after=$(now_ms)
    succeeds 'when a rank is killed, as many ranks begin anew with the spare' \
        await_said 'generation 2 begins, 4 ranks; spares: 0'
    succeeds 'the spare trains' await_said 'slot 4: waits at step 5'
    tap_note "the spare trains $(($(now_ms) - after)) ms after pkill has ended, which took $((after - before)) ms"
    let_go
    says_times 'four ranks have all steps and the right value' 4 'rank [0-3] of 4, steps 20, value 20'
}

a_spare_is_not_needed()
{
    prints 'a spare that is not needed exits with 0 when the training is done' \
        'slot 2: init: another rank has reported that the training is done' \
        job srun --hvd=elastic,spares=1 -N 2 -n 3 ./trainer 20
}

# Task 2 begins after the others have done all steps.
one_is_late()
{
    prints 'a task that begins after the training is done is not waited for, and is not a failure' \
        'slot 2: init: another rank has reported that the training is done' \
        job HVD_START_TIMEOUT=3 srun --hvd=elastic,min=2 -w n1 -n 3 sh -c '
            until [ "$SLURM_PROCID" != 2 ] || [ -e done ]; do sleep 0.1; done
            ./trainer 20 && touch done'
}

# srun returns 137 for the rank that was killed, or 143 if it has ended the other by SIGTERM.
a_rank_dies_without_elastic()
{
    local promise='without elastic a dead rank ends the others' status=0
    local command=(job srun --hvd -N 2 -n 2 ./trainer 20 1:idle:5:0)
    capture "${command[@]}" || status=$?
    if [[ $status =~ ^1(37|43)$ ]] && output_matches 'rank 1 on n. died'; then
        tap_result ok "$promise"
    else
        tap_failure "$promise" "$status, wanted 137 or 143 and /rank 1 on n. died/" "${command[@]}"
    fi
}

rules()
{
    complains 'a min= above the number of tasks is rejected' 'elastic,min=3, but this step has 2 tasks: use --ntasks=3' \
        job srun --hvd=elastic,min=3 -n 2 ./trainer 20
    complains 'as many spares as tasks are rejected' 'elastic,spares=2, but this step has 2 tasks, of which 1 or more must train: use --ntasks=3' \
        job srun --hvd=elastic,spares=2 -n 2 ./trainer 20
    a_rank_dies_without_elastic
    prints 'a step inside an elastic step is a job of its own' 'rank 0 of 1, .* begun 1 times' \
        job srun --hvd=elastic -n 1 srun --hvd --overlap -n 1 ./trainer 20
}

node_dies()
{
    start_steps
    n2_is_switched_off
    let_go
    says_times 'the ranks that are left have all steps' 2 'rank [01] of 2, steps 20, value 20, begun 2 times'
    succeeds 'no service is left' none_serves
}

none_serves()
{
    ! as_root pgrep -x hvd-rendezvous
}

start_elastic "$MESON_BUILD_ROOT/tests/pmix_boot/rendezvous/trainer"
rank_and_slurmd_die
a_spare_steps_in
a_spare_is_not_needed
one_is_stopped
others_join
# shellcheck disable=SC2016 # $ expands in the tasks
one_is_late
rules
node_dies
tap_done
