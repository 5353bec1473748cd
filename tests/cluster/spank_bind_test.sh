#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The cpus of ranks and the GPUs that ranks may open, on nodes where Slurm confines jobs to their cores and devices.
# Needs two cpus.
# shellcheck disable=SC2016 # variables of jobs expand in the jobs
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/spank.sh"

[ "$(nproc)" -ge 2 ] || tap_skip_all 'needs two cpus'
install_hvd
start_cluster 2 --sockets 2 --cores 1 --gpus 2 --constrain
enable_plugin
mask='echo $HOROVOD_LOCAL_RANK:$(sed -n "s/^Cpus_allowed_list:\t//p" /proc/self/status):$HVD_CPUS'
# Opens both GPUs. ENXIO, "No such device", means that the task may open the file, which has no device behind it;
# EPERM means that it may not.
devices='echo $HOROVOD_LOCAL_RANK:$CUDA_VISIBLE_DEVICES:$HVD_GPUS:$(for gpu in 0 1; do
    cat '"$work"'/cluster/dev/gpu$gpu 2>&1 | grep -c "No such device"; done | paste -sd " ")'

on_node()
{
    in_line as_user srun -N1 "$@"
}

prints 'ranks that Slurm bound keep their number of cores' '^0:0:0 1:1:1$' \
    on_node --hvd -n2 sh -c "$mask"
cores=$(lscpu -p=CPU,CORE | grep -E '^[01],' | cut -d , -f 2 | sort -u | wc -l)
with_cores()
{
    if [ "$cores" = 2 ]; then
        prints "$@"
    else
        tap_skip "$1" 'the first two cpus are one core'
    fi
}
with_cores 'bind=socket: ranks use all cores of the step, each rank its own' '^0:0:0 1:1:1$' \
    on_node --hvd=bind=socket -n2 sh -c "$mask"
threads='echo $OMP_NUM_THREADS:$MKL_NUM_THREADS'
with_cores 'a rank has as many threads as cores' '^2:2$' \
    batch '-N1 -n2' "srun -n1 -c2 --hvd=bind=socket sh -c '$threads'"
prints 'ranks that share cores divide the threads' '^1:1 1:1 1:1$' \
    in_line batch '-N1 -n2' "srun --overcommit -n3 --hvd=bind=socket sh -c '$threads'"
prints 'OMP_NUM_THREADS of the user stays' '^7:$' \
    in_line as_user OMP_NUM_THREADS=7 srun -N1 -n1 --hvd sh -c "$threads"
prints 'if there are more ranks than cores, the ranks share them' '^0:0-1:0-1 1:0-1:0-1 2:0-1:0-1$' \
    in_line batch '-N1 -n2' "srun --overcommit -n3 --hvd=bind=socket sh -c '$mask'"
prints 'bind=cores: each rank has its own core' '^0:0:0 1:1:1$' on_node --hvd=bind=cores -n2 sh -c "$mask"
prints 'bind=none: the binding of Slurm stays' '^0:1:1 1:0:0$' \
    on_node --hvd=bind=none -n2 --cpu-bind=map_cpu:1,0 sh -c "$mask"
prints '--cpu-bind of the user stays' '^0:1:1 1:0:0$' \
    on_node --hvd -n2 --cpu-bind=map_cpu:1,0 sh -c "$mask"
prints 'SLURM_CPU_BIND of the user stays' '^0:1:1 1:0:0$' \
    in_line as_user SLURM_CPU_BIND=map_cpu:1,0 srun -N1 -n2 --hvd sh -c "$mask"
prints 'SLURM_CPU_BIND of the user stays also with bind=socket' '^0:1:1 1:0:0$' \
    on_node --hvd=bind=socket -n2 --cpu-bind=map_cpu:1,0 sh -c "$mask"
prints 'the plugin says so' 'bind=socket has no effect, because --cpu-bind' \
    as_user srun -N1 --hvd=bind=socket -n2 --cpu-bind=map_cpu:1,0 true
one_core()
{
    batch '-N1 -n2' 'srun -n1 --exact --hvd=bind=socket sh -c "
        taskset -cp \$\$ | grep -o [^:]*\$"' | tr -d ' '
}
prints 'a rank does not leave the cores of its step' '^[01]$' one_core
prints 'an srun inside a rank is not bound like that rank' '^0:0:0 1:1:1$' \
    in_line batch "--hvd -N1 -n2" "srun -n1 --overlap srun --overlap -n2 sh -c '$mask'"

prints 'each rank can open all GPUs of the step' '^0:0,1:all:1 1 1:0,1:all:1 1$' \
    on_node --hvd --gres=gpu:2 -n2 sh -c "$devices"
prints 'each rank can open all GPUs also if the job asked for one per task' '^0:0,1:all:1 1 1:0,1:all:1 1$' \
    in_line batch "--hvd -N1 --ntasks-per-node=2 --gpus-per-task=1" "srun sh -c '$devices'"
prints 'with --gpu-bind of the user, each rank can open one GPU' \
    '^0:0:isolated:(1 0|0 1) 1:0:isolated:(1 0|0 1)$' \
    on_node --hvd --gres=gpu:2 -n2 --gpu-bind=single:1 sh -c "$devices"
prints 'the user is told the cost of --gpu-bind' 'hides the ranks. GPUs from each other' \
    as_user srun -N1 --hvd --gres=gpu:2 -n2 --gpu-bind=single:1 true
prints 'gpus=keep leaves GPUs to Slurm' '^0:0:isolated:(1 0|0 1) 1:0:isolated:(1 0|0 1)$' \
    on_node --hvd=gpus=keep --ntasks-per-node=2 --gpus-per-task=1 sh -c "$devices"
prints 'ranks cannot open GPUs that the step did not ask for' '^0:::0 0$' on_node --hvd -n1 sh -c "$devices"
tap_done
