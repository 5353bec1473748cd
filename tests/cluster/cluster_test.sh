#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A running cluster: nodes, job user, isolation, GPUs, faults.
# shellcheck disable=SC2016 # what is in single quotes is expanded inside the cluster
. "$(dirname "$0")/harness.sh"

start_cluster 4 --gpus 4

control()
{
    "$cluster" "$1" --dir "$work/cluster" "${@:2}"
}

# step SRUN_ARGUMENT...: prints the output of all ranks of a step, sorted, as one line.
step()
{
    as_user srun --label "$@" | sort | paste -sd ' '
}

exit_status_of_user()
{
    local status=0
    as_user sh -c "exit $1" || status=$?
    echo "$status"
}

batch_job()
{
    as_user sh -c 'mkfifo name && printf "#!/bin/sh\nid -un >name\n" >job.sh && sbatch --quiet job.sh &&
        cat name'
}

# Sends a signal to `cluster run` and waits for the end of the step. The task holds the pipe open until then.
interrupted_run()
{
    mkfifo -m 666 "$home/alive"
    exec {alive}<>"$home/alive"
    begin_job "$cluster" run --dir "$work/cluster" srun -N1 sh -c 'exec 9>alive; echo runs; sleep infinity'
    await_said '^runs'
    kill -TERM "$job"
    end_job
    exec {reader}<"$home/alive" {alive}>&-
    timeout "$limit" cat <&"$reader"
}

# Runs a command that ignores SIGTERM until its time limit has passed. The reader of its output, `cat`, ends only
# when the command has ended.
deaf_run()
{
    limit=1 as_user sh -c 'trap "" TERM; echo $$ >deaf; while :; do sleep infinity; done' | cat
    as_user sh -c 'test -s deaf && ! kill -0 "$(cat deaf)" 2>&1'
}

# both_make_files DIRECTORY: each of two nodes makes a file there; prints how many files each node sees. The nodes have
# names, because Slurm gives a second job other nodes while the first still completes.
both_make_files()
{
    step -w 'n[1-2]' sh -c 'touch "$0/mine.$SLURM_PROCID"' "$1" && step -w 'n[1-2]' sh -c 'ls "$0" | grep -c mine' "$1"
}

prints 'status lists the nodes' 'n4 idle' control status
prints 'a step runs on four nodes' '^0: n1 1: n2 2: n3 3: n4$' step -N4 hostname
prints 'a step runs two tasks on each of two nodes' '^0: n1 1: n1 2: n2 3: n2$' \
    step -N2 --ntasks-per-node=2 hostname
needs_pmix prints 'PMIx gives each task its rank' '^0: 0 1: 1 2: 2 3: 3$' \
    step -N2 --ntasks-per-node=2 --mpi=pmix printenv PMIX_RANK
prints 'Slurm allocates the GPUs' '^0: 0,1,2 1: 0,1,2$' \
    step -N2 --gres=gpu:3 printenv CUDA_VISIBLE_DEVICES
prints 'a batch job runs as the job user' '^hvduser$' batch_job

succeeds 'a command that ignores the signal of its time limit is killed' deaf_run
prints 'run starts in the home of the job user' '/home$' as_user sh -c 'test -w . && pwd'
prints 'the job user has no privileges' 'CapEff:\s0+$' as_user grep CapEff /proc/self/status
fails 'the job user cannot become root' as_user setpriv --reuid 0 true
prints 'run passes on a variable that is given' '^yes$' as_user ANSWER=yes printenv ANSWER
export ANSWER=yes
fails 'run passes on no other variable' as_user printenv ANSWER
prints 'run passes on the exit status' '^7$' exit_status_of_user 7
prints 'run --root runs as root' '^0$' as_root id -u
prints 'run --node enters the node' '^n3$' as_user --node n3 hostname
complains 'run --node fails for a node that does not run' 'n9 does not run' as_user --node n9 true
complains 'run --node rejects a name that is not a node' 'not a node' as_user --node ../home true
succeeds 'a signal to run ends the step' interrupted_run

prints 'each node has its own /tmp' '^0: 1 1: 1$' both_make_files /tmp
prints 'each node has its own /dev/shm' '^0: 1 1: 1$' both_make_files /dev/shm
prints 'each node has its own network card' '^0: eth0 0: lo 1: eth0 1: lo$' step -N2 ls /sys/class/net
prints 'each node sees only its own processes' '^0: 1 1: 1$' step -N2 pgrep -cx slurmd
prints 'each node has its own ipc namespace' '^2$' as_user sh -c \
    'srun -N2 readlink /proc/self/ns/ipc | sort -u | wc -l'
prints 'nodes know each other by name' '^10.79.0.2' as_user --node n1 getent hosts n2

succeeds 'root can shrink /dev/shm of a node' as_root --node n1 \
    mount -o remount,size=64k /dev/shm
complains 'a full /dev/shm gives an error' 'No space' as_user --node n1 \
    dd if=/dev/zero of=/dev/shm/big bs=1k count=128
succeeds 'root can cut a link' as_root --node n3 ip link set eth0 down
fails 'a cut link carries nothing' as_user --node n3 bash -c 'exec 3<>/dev/tcp/ctl/6817'
succeeds 'root can mend a link' as_root --node n3 ip link set eth0 up
succeeds 'a mended link works' as_user --node n3 bash -c 'exec 3<>/dev/tcp/ctl/6817'
succeeds 'crash switches a node off' control crash n4
complains 'status names the node that is off' 'n4 is switched off' control status
prints 'the other nodes go on' '^0: n1 1: n2 2: n3$' step -N3 -w 'n[1-3]' hostname
tap_done
