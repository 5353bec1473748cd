#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The number of ranks that --hvd starts, options of the user that take precedence, steps that are rejected before
# they start, and the layout that ranks are told.
# shellcheck disable=SC2016 # variables of jobs expand in the jobs
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/spank.sh"

install_hvd
start_cluster 2 --sockets 2 --cores 8 --gpus 4
enable_plugin
rank='echo $HOROVOD_RANK/$HOROVOD_SIZE'
host='echo $(hostname):$HOROVOD_LOCAL_RANK/$HOROVOD_LOCAL_SIZE'
cross='echo $HOROVOD_RANK:$HOROVOD_CROSS_RANK/$HOROVOD_CROSS_SIZE'
job="--hvd -N2 --gres=gpu:4 --cpus-per-gpu=2"

prints 'a batch job gets one rank per GPU on each node' \
    '^n1:0/4 n1:1/4 n1:2/4 n1:3/4 n2:0/4 n2:1/4 n2:2/4 n2:3/4$' \
    in_line batch "$job" "srun sh -c '$host'"
prints 'a step on some of its nodes gets one rank per GPU, too' '^n1:0/4 n1:1/4 n1:2/4 n1:3/4$' \
    in_line batch "$job" "srun -N1 -w n1 sh -c '$host'"
prints 'a step with fewer GPUs gets one rank per GPU of the step' '^n1:0/2 n1:1/2 n2:0/2 n2:1/2$' \
    in_line batch "$job" "srun --gres=gpu:2 sh -c '$host'"
prints 'a step outside a job gets one rank per GPU' '^n1:0/2 n1:1/2 n2:0/2 n2:1/2$' \
    in_line as_user srun -N2 --gres=gpu:2 --hvd sh -c "$host"
prints 'salloc with GPUs per node gets one rank per GPU' '^n1:0/2 n1:1/2 n2:0/2 n2:1/2$' in_line \
    as_user salloc --quiet --hvd -N2 --gpus-per-node=2 --cpus-per-gpu=1 srun sh -c "$host"
unknown_gpus()
{
    as_user salloc --quiet --hvd -N2 --gres=gpu:2 --cpus-per-gpu=1 srun "$@" true 2>&1
}
prints 'if srun does not know the GPUs, one task for several GPUs gives a warning' \
    'n1: 1 task for 2 GPUs, .* use srun --ntasks-per-node=2' unknown_gpus
silent()
{
    test -z "$(unknown_gpus "$@")"
}
succeeds 'no warning comes if the user asked for that' silent --hvd=tasks=keep
prints '-n of the user takes precedence, without a warning' '^n1:0/3 n1:1/3 n1:2/3 n2:0/2 n2:1/2$' \
    in_line batch "$job" "srun -n5 sh -c '$host' 2>&1"
prints '--ntasks-per-node of the user takes precedence' '^n1:0/1 n2:0/1$' \
    in_line batch "$job" "srun --ntasks-per-node=1 sh -c '$host' 2>&1"
prints '#SBATCH --ntasks-per-node takes precedence' '^n1:0/3 n1:1/3 n1:2/3 n2:0/3 n2:1/3 n2:2/3$' \
    in_line batch "$job --ntasks-per-node=3" "srun sh -c '$host'"
prints 'tasks=keep leaves the number to Slurm' '^n1:0/1 n2:0/1$' \
    in_line batch "$job" "srun --hvd=tasks=keep sh -c '$host'"
prints 'without GPUs Slurm chooses the number of ranks, and any number is accepted' \
    '^n1:0/6 n1:1/6 n1:2/6 n1:3/6 n1:4/6 n1:5/6$' in_line as_user srun --hvd -N1 -n6 sh -c "$host"
prints 'a step without GPUs may have more ranks than the job has GPUs' '^7/8$' \
    batch "$job" "srun --gres=none --ntasks-per-node=4 --hvd sh -c '$rank'"
prints 'cpus per task of the job reach the step' '^3$' \
    batch '--hvd -n2 -c3' 'srun -n1 printenv SLURM_CPUS_PER_TASK'

complains 'more ranks than GPUs are rejected' \
    '12 tasks on 2 nodes, but 4 GPUs per node: use --ntasks-per-node=4' \
    batch "$job" "srun --ntasks-per-node=6 sh -c 'echo started'"
complains 'more ranks than GPUs are rejected on one node of an uneven step' \
    'tasks but 4 GPUs: use --ntasks-per-node=4|8 tasks on 1 node' \
    batch "$job" "srun -N1 -n8 sh -c 'echo started'"
complains 'too few cpus are rejected; the error says what to type' \
    'needs 4 cpus but the job has 1: use #SBATCH --ntasks-per-node=4' \
    batch "--hvd -N2 --gres=gpu:4" "srun sh -c 'echo started'"
complains 'too few cpus for --cpus-per-task are rejected' 'needs 16 cpus but the job has 8' \
    batch "$job" "srun -c4 sh -c 'echo started'"
complains 'different numbers of GPUs per node are rejected' '5 GPUs on 2 nodes' \
    batch "--hvd -N2 --gpus=5 --ntasks-per-node=4 --cpus-per-gpu=1" \
    "unset SLURM_NTASKS SLURM_NTASKS_PER_NODE SLURM_NPROCS; srun sh -c 'echo started'"
refused()
{
    batch "$job" 'srun -n16 sh -c "echo started"' | grep -c started
}
complains 'no task of a rejected step starts' '^0$' refused

prints 'cross ranks of an even layout' '^0:0/2 1:0/2 2:1/2 3:1/2$' \
    in_line as_user srun --hvd -N2 --ntasks-per-node=2 sh -c "$cross"
prints 'cross ranks of 3 + 1' '^0:0/2 1:0/1 2:0/1 3:1/2$' \
    in_line as_user srun --hvd -N2 -n4 -m plane=3 sh -c "$cross"
prints 'cross ranks of a cyclic layout' '^0:0/2 1:1/2 2:0/2 3:1/2$' \
    in_line as_user srun --hvd -N2 --ntasks-per-node=2 -m cyclic sh -c "$cross"
arbitrary()
{
    printf 'n2\nn1\nn2\n' >"$home/hosts"
    in_line as_user SLURM_HOSTFILE="$home/hosts" srun --hvd -n3 -m arbitrary sh -c "$1"
}
prints 'an arbitrary layout has no cross ranks' '^0:/ 1:/ 2:/$' arbitrary "$cross"
needs_pmix prints 'an arbitrary layout has the ranks of PMIx' '^0 1 2$' \
    arbitrary 'test $HOROVOD_RANK = $PMIX_RANK && echo $PMIX_RANK'
# two_parts COMMAND: runs a heterogeneous step and does not wait for its end: srun of Slurm 22.05 sometimes hangs
# after such a step, because its PMIx plugin waits for a thread that missed the signal to end.
two_parts()
{
    begin_job "$cluster" run --dir "$work/cluster" \
        srun --hvd -N1 -n2 sh -c "$1" : --hvd -N1 -n1 sh -c "$1"
    await_said ^./ && await_said ^./ && await_said ^./
    grep ^./ "$work/said"
    kill "$job" 2>/dev/null
    exec {lines}<&-
}
three_ranks='0/3: 1/3: 2/3:'
! has_pmix || three_ranks='0/3:0 1/3:1 2/3:2'
prints 'a heterogeneous step counts all ranks' "^$three_ranks\$" in_line two_parts "$rank:\$PMIX_RANK"

two_ranks='0/2/ 1/2/' # the third field is empty without Slurm's PMIx
! has_pmix || two_ranks='0/2/0 1/2/1'
nested='srun --overlap -n2 --hvd sh -c "echo \$HOROVOD_RANK/\$HOROVOD_SIZE/\$PMIX_RANK"'
prints 'an srun inside a rank has ranks of its own' "^$two_ranks\$" \
    in_line batch '--hvd -N1 -n2' "srun -n1 $nested"
prints 'an srun in a shell that srun started has ranks of its own' "^$two_ranks\$" \
    in_line batch '-N1 -n2' "srun -n1 --mpi=none $nested"
tap_done
