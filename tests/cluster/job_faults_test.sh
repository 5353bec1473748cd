#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Faults of Slurm, and actions of Slurm on running jobs: four ranks on two nodes do steps with known results
# (steady.c) until the test ends them.
#
# HVD_TEST_RUNS=20 repeats all faults, each time at other moments, drawn from HVD_TEST_SEED.
# shellcheck disable=SC2016 # variables of jobs expand in the jobs
. "$(dirname "$0")/harness.sh"

# Sleeps up to half a second.
pause()
{
    sleep "$(printf '0.%03d' $((RANDOM % 500)))"
}

start_steps()
{
    rm -f "$home/end"
    begin_job as_user HVD_TEST_CANARY=canary LD_LIBRARY_PATH="$library" srun --hvd -N 2 \
        --ntasks-per-node=2 ./steady
    await_said '^steady: 4 ranks'
    pause
}

# Lets the job end; all ranks end after the same step. Returns srun's status.
let_go()
{
    touch "$home/end"
    end_job
}

right='^rank [0-3]: [0-9]+ steps, 0 wrong, status 0 *$'

# all_are_right PROMISE [FILE]: all ranks finished without a wrong result.
all_are_right()
{
    prints "$1" '^4$' grep -cE "$right" "${2-$work/said}"
}

nothing_is_left()
{
    local node
    for node in n1 n2; do
        have_ended "$node" steady || return
        have_ended "$node" slurmstepd || return
    done
    ! as_root pgrep -x hvd-rendezvous
}

slurmd_is_killed()
{
    start_steps
    as_root --node n2 pkill -9 -x slurmd
    succeeds 'slurmd is killed: the job goes on' let_go
    all_are_right 'all ranks finish with right results'
    as_root --node n2 slurmd -N n2
    prints 'the node comes back' '^n2$' as_user srun -w n2 hostname
}

slurmstepd_is_killed()
{
    start_steps
    as_root --node n2 pkill -9 -x slurmstepd
    succeeds 'slurmstepd is killed on n2' have_ended n2 slurmstepd
    touch "$home/end"
    await_said '^rank 0: '
    prints 'rank 0 on n1 finishes its steps' \
        '^rank 0: [0-9]+ steps, 0 wrong, status 0 ' cat "$work/said"
    as_user scancel --user hvduser
    as_root pkill -9 -x srun # srun would wait for the lost slurmstepd
    end_job
    succeeds 'after scancel nothing is left' nothing_is_left
}

job_is_suspended()
{
    local id
    start_steps
    id=$(as_user squeue --noheader --format %i)
    as_root scontrol suspend "$id"
    prints 'the processes of a suspended job are stopped' '^T' as_root --node n2 ps --no-headers -o stat -C steady
    sleep "$suspended"
    as_root scontrol resume "$id"
    succeeds "after $suspended s it goes on" let_go
    all_are_right 'all ranks finish with right results'
}

job_is_cancelled()
{
    start_steps
    as_user scancel --user hvduser
    complains 'scancel ends the job' '' end_job
    succeeds 'nothing of the job is left' nothing_is_left
}

# Moves the job's time limit to now. slurmctld ends the job up to half a minute later, when it checks the limits.
time_is_over()
{
    start_steps
    as_root scontrol update "jobid=$(as_user squeue --noheader --format %i)" EndTime=now
    complains 'the time limit ends the job' '' end_job
    prints 'srun names the time limit' 'TIME LIMIT' cat "$work/said"
    succeeds 'nothing of the job is left' nothing_is_left
}

srun_is_killed()
{
    local status=0
    start_steps
    as_root pkill -9 -x srun
    end_job || status=$?
    prints '(srun is killed)' '^137$' echo "$status"
    touch "$home/end"
    as_user scancel --user hvduser
    succeeds 'after scancel nothing is left' nothing_is_left
}

# Removes node names from /etc/hosts. Slurm has the addresses in slurm.conf; hvd asks each node for
# its own address.
names_do_not_resolve()
{
    local hosts=$work/cluster/machine-etc/hosts
    cp "$hosts" "$work/hosts"
    sed -i '/ n[0-9]*$/d' "$hosts"
    fails 'the name of a node does not resolve' as_user getent hosts n2
    start_steps
    succeeds 'the job runs without names' let_go
    all_are_right 'all ranks finish with right results'
    cat "$work/hosts" >"$hosts"
}

# appear SECONDS REGEX COUNT: waits up to SECONDS until COUNT lines of the requeued job match.
appear()
{
    timeout "$1" grep -m "$3" -E -- "$2" < <(exec tail -n +1 -f "$home/requeued.out") | cat >/dev/null
    return "${PIPESTATUS[0]}" # `cat`: grep stops at the first match if it writes to /dev/null
}

is_pending()
{
    [ -n "$(as_root squeue --noheader --jobs "$1" --states PENDING)" ]
}

# begin_anew JOB: makes Slurm start a requeued job after about three seconds, instead of two minutes. In the second
# in which the first run ended, slurmd would confuse the two runs, so StartTime is set to `now` only when the job has
# been pending in two earlier seconds. A StartTime in the future would not wake the scheduler.
begin_anew()
{
    local i seen=0
    for ((i = 0; i < 60; i++)); do
        ! is_pending "$1" || seen=$((seen + 1))
        [ "$seen" -lt 3 ] || as_root scontrol update "jobid=$1" StartTime=now >/dev/null 2>&1
        ! appear 1 '^start 1$' 1 || return 0
    done
    return 1
}

# Preempts the job by one that takes both nodes, in a partition with a higher priority.
preempt()
{
    prints 'a job with a higher priority preempts the other' '^n1$' \
        as_user srun -p urgent -N 2 --exclusive hostname
}

requeue()
{
    as_root scontrol requeue "$1"
}

# job_is_requeued HOW: requeues a job by HOW; it starts again, with a new service and secret.
job_is_requeued()
{
    local id
    rm -f "$home/end"
    install -m 666 /dev/null "$home/requeued.out"
    cat >"$home/requeued.sh" <<SCRIPT
#!/bin/sh
export HVD_TEST_CANARY=canary LD_LIBRARY_PATH=$library
echo "start \${SLURM_RESTART_COUNT:-0}"
exec srun --hvd ./steady
SCRIPT
    id=$(as_user sbatch --parsable --requeue --open-mode=append --output=requeued.out -N 2 --ntasks-per-node=2 \
        requeued.sh)
    appear 200 'steady: 4 ranks' 1
    pause
    "$1" "$id"
    begin_anew "$id"
    appear 200 'steady: 4 ranks' 2
    touch "$home/end"
    appear 200 "$right" 4
    prints "after $1 the job starts again" '^start 1$' cat "$home/requeued.out"
    all_are_right 'all ranks finish with right results' "$home/requeued.out"
    succeeds 'nothing of the job is left' nothing_is_left
}

suspended=8 # longer than a rank may be silent
install_hvd
start_cluster 2 --sockets 1 --cores 4 --gpus 0 --prefix "$prefix" \
    --conf PreemptType=preempt/partition_prio --conf PreemptMode=REQUEUE \
    --conf 'PartitionName=urgent Nodes=ALL PriorityTier=10 State=UP'
library=$(dirname "$(find "$prefix" -name libhvd.so -print -quit)")
cp "$MESON_BUILD_ROOT/tests/cluster/steady" "$home/"
chmod a+rx "$home"/*
seed=${HVD_TEST_SEED:-$$}
tap_note "seed $seed (repeat with HVD_TEST_SEED=$seed)"
RANDOM=$seed
for ((run = 0; run < ${HVD_TEST_RUNS:-1}; run++)); do
    slurmd_is_killed
    slurmstepd_is_killed
    job_is_suspended
    job_is_cancelled
    time_is_over
    srun_is_killed
    names_do_not_resolve
    job_is_requeued requeue
    job_is_requeued preempt
done
tap_done
