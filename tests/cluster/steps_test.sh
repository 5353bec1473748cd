#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The kinds of steps that Slurm knows, by Slurm's PMIx and by hvd's own service: the ranks of each step find exactly
# each other, or an error says what to type. The table "Kinds of steps" of slurm.md tells users the same.
# shellcheck disable=SC2016 # variables of jobs expand in the jobs
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/spank.sh"

# is_since RELEASE: tells whether Slurm is of this release or a later one.
is_since()
{
    { echo "$1" && slurmd -V | grep -oE '[0-9]+\.[0-9]+' | head -n 1; } | sort -VC
}

install_hvd
settings=(--conf SlurmctldParameters=enable_configless)
! is_since 24.05 || settings=(--conf 'SlurmctldParameters=enable_configless,enable_stepmgr' --conf PrologFlags=contain)
start_cluster 2 --sockets 2 --cores 8 --gpus 4 "${settings[@]}"
enable_plugin
library=$(dirname "$(find "$prefix" -name libhvd.so -print -quit)")
cp "$MESON_BUILD_ROOT/tests/cluster/sum_of_ranks" "$home/"
printf '%s\n' '0-1 ./sum_of_ranks' '2 sh -c ./sum_of_ranks' '3 ./sum_of_ranks' >"$home/programs"
printf '%s\n' '#!/bin/sh' 'srun $hvd ./sum_of_ranks' >"$home/script"
cat >"$home/requeued" <<'END'
#!/bin/sh
srun $hvd ./sum_of_ranks
[ -n "$SLURM_RESTART_COUNT" ] || { scontrol requeue $SLURM_JOB_ID && sleep infinity; }
touch end.$SLURM_JOB_ID
END
# Trains six steps, and gets the signal of the time limit after the third one.
cat >"$home/train.py" <<'END'
import os, signal, subprocess, sys, time
import horovod.common.basics as hvd
job, runs = os.environ['SLURM_JOB_ID'], os.environ.get('SLURM_RESTART_COUNT', '0')
saved = f'saved.{job}'
hvd.init()
hvd.stop_on_signals()
step = int(open(saved).read()) if os.path.exists(saved) else 0
if hvd.rank() == 0:
    print(f'run {runs} from {step}', flush=True)
if 'early' in sys.argv:
    os.kill(os.getpid(), signal.SIGUSR1)
while step < 6 and not hvd.should_stop():
    step += 1
    if hvd.rank() == 0 and step == 3:
        # the signal goes to all processes of the step, and ends scancel
        subprocess.run(['scancel', '--signal=USR1', job + '.' + os.environ['SLURM_STEP_ID']])
        time.sleep(1)
if hvd.rank() == 1:
    with open(saved, 'w') as file:
        print(step, file=file)
if step == 6:
    open(f'end.{job}', 'w').close()
END
printf '%s\n' '#!/bin/sh' 'srun $hvd --hvd=requeue /usr/bin/python3 train.py early' >"$home/early"
printf '%s\n' '#!/bin/sh' 'srun $hvd --hvd=requeue /usr/bin/python3 train.py' >"$home/trains"
# Submits a job that requeues itself, and makes Slurm start it again at once, instead of two minutes later. In the
# second in which a job ends, slurmd would confuse the two starts, so this waits for two more seconds.
cat >"$home/requeue" <<'END'
#!/bin/sh
id=$(sbatch --parsable --requeue --open-mode=append -o said.%j -N2 -n2 $1) seen=0
until [ -e end.$id ]; do
    sleep 1
    [ -z "$(squeue --noheader --jobs $id --states PENDING)" ] || seen=$((seen + 1))
    [ $seen -lt 3 ] || scontrol update jobid=$id StartTime=now >/dev/null 2>&1
done
cat said.$id
END
chmod a+rx "$home"/*
ways='none pmix'
has_pmix || ways=none

# try_way MPI COMMAND: runs COMMAND with `--hvd --mpi=MPI` in $hvd, which it gives to srun. Ranks that have PMIx start by
# it. Writes the sorted lines of its output to a file as one line.
try_way()
{
    local status=0
    as_user LD_LIBRARY_PATH="$library" HVD_START_BY=pmix hvd="--hvd --mpi=$1" sh -c "$2" >"$work/said.$1" 2>&1 </dev/null || status=$?
    tr -d '\r\0' <"$work/said.$1" | LC_ALL=C sort | paste -sd ' ' >"$work/line.$1"
    return "$status"
}

has_result()
{
    case $1 in
    works) [ "$2" = 0 ] ;;
    fails) [ "$2" != 0 ] && [ "$2" != 124 ] ;; # srun returns 137 if it has killed ranks
    esac
}

# try_kind works|fails PROMISE REGEX COMMAND: tries Slurm's PMIx and hvd's own service, both at once to save time.
try_kind()
{
    local way status
    declare -A pids
    for way in $ways; do
        try_way "$way" "$4" &
        pids[$way]=$!
    done
    for way in $ways; do
        status=0
        wait "${pids[$way]}" || status=$?
        cp "$work/said.$way" "$work/output"
        if has_result "$1" "$status" && grep -Eq -- "$3" "$work/line.$way"; then
            tap_result ok "--mpi=$way: $2"
        else
            tap_failure "--mpi=$way: $2" "$status, wanted /$3/" "$4"
        fi
    done
}

works()
{
    try_kind works "$@"
}

is_refused()
{
    try_kind fails "$@"
}

four='0/4=10 1/4=10 2/4=10 3/4=10'
pairs='0/2=3 0/2=3 1/2=3 1/2=3' # two steps of two ranks
three='0/3=6 1/3=6 2/3=6'

works 'a step with -n N, without a number per node, works' "^$three\$" 'srun $hvd -n3 ./sum_of_ranks'
works 'a step with different numbers of ranks per node works' "^$four\$" 'srun $hvd -N2 -n4 -m plane=3 ./sum_of_ranks'
is_refused 'more ranks than GPUs on one of the nodes are refused' 'n1: 3 tasks but 2 GPUs: use --ntasks-per-node=2' \
    'srun $hvd -N2 -n4 -m plane=3 --gres=gpu:2 ./sum_of_ranks'
works '--cpus-per-task works' '^0/2=3 1/2=3$' 'srun $hvd -N2 -n2 --cpus-per-task=3 ./sum_of_ranks'
works 'with --gpus-per-task a rank sees the GPUs of all ranks on its node' \
    "^$four"' sees [0-3],[0-3] sees [0-3],[0-3] sees [0-3],[0-3] sees [0-3],[0-3]$' \
    'srun $hvd -N2 --ntasks-per-node=2 --gpus-per-task=1 sh -c "./sum_of_ranks && echo sees \$CUDA_VISIBLE_DEVICES"'
works 'with --gpu-bind a rank sees the GPU that Slurm chose, and a warning comes' \
    "^$four hvd: --gpu-bind hides .* sees [0-3] sees [0-3] sees [0-3] sees [0-3]\$" \
    'srun $hvd -N2 --ntasks-per-node=2 --gres=gpu:2 --gpu-bind=single:1 sh -c "./sum_of_ranks &&
        echo sees \$CUDA_VISIBLE_DEVICES" 2>&1'
works 'the programs of --multi-prog are one job' "^$four\$" 'srun $hvd -N2 -n4 --multi-prog programs'
works 'a step with --exclusive works' "^$four\$" 'srun --quiet $hvd -N2 --ntasks-per-node=2 --exclusive ./sum_of_ranks'
works 'steps of one job that run at once are jobs of their own' "^$pairs\$" 'salloc --quiet -N2 --ntasks-per-node=4 \
    sh -c "srun $hvd --exclusive -N1 -n2 ./sum_of_ranks & srun $hvd --exclusive -N2 -n2 ./sum_of_ranks & wait"'
works 'so are steps that share their cores by --overlap' "^$pairs\$" 'salloc --quiet -N2 --ntasks-per-node=1 sh -c "
    srun $hvd --overlap ./sum_of_ranks & srun $hvd --overlap ./sum_of_ranks & wait"'
works '--relative works' '^0/2=3 1/2=3 n2 n2$' 'salloc --quiet -N2 --ntasks-per-node=2 \
    srun $hvd --relative=1 -N1 -n2 sh -c "hostname && ./sum_of_ranks"'
pty='with --pty all ranks run, and Slurm shows the output of rank 0'
if command -v script >/dev/null; then
    works "$pty" '^[^1]*0/2=3$' 'script -qec "srun $hvd -N2 -n2 --pty ./sum_of_ranks" /dev/null'
else
    tap_skip "$pty" 'script is not installed: it makes a terminal'
fi
works 'the tasks of a job array are jobs of their own' "^$pairs\$" \
    'id=$(sbatch --parsable --wait --array=0-1 -N2 -n2 -o array.%A.%a script) && cat array.$id.*'
works 'the ranks of a requeued job find each other again' '^0/2=3 0/2=3 1/2=3 1/2=3( .*JOB REQUEUE.*)?$' './requeue requeued'
works 'SIGUSR1 makes a step with --hvd=requeue stop, and the job start again where it has stopped' \
    '^hvd: job [0-9]+ is requeued run 0 from 0 run 1 from 3( .*JOB REQUEUE.*)?$' './requeue trains'
is_refused 'SIGUSR1 before the first should_stop() ends the job with exit code 93' \
    '^exit 93 hvd: job [0-9]+ is not requeued: SIGUSR1 arrived before should_stop.* run 0 from 0' \
    'sbatch --wait --parsable -N2 -n2 -o early.%j early >job.$$; code=$?; cat early.$(cat job.$$)
    echo exit $code; exit $code'

# --- a rank that ends before the others have started ---

cat >"$home/early.py" <<'END'
import os, sys
import horovod.common.basics as hvd
if os.environ['HOROVOD_RANK'] == '1':
    sys.exit(0)
hvd.init()
END
chmod a+r "$home/early.py"
is_refused 'a rank that ends with 0 before hvd.init() is named at once' \
    'rank 1 on n2 exited with status 0 and did not call init' \
    'timeout -k 1 40 srun $hvd -N2 -n2 /usr/bin/python3 early.py'
works 'another program of the task may import horovod and end before' '^0/2=3 1/2=3$' \
    'srun --quiet $hvd -N2 -n2 sh -c "/usr/bin/python3 -c \"import horovod.common.basics\" && ./sum_of_ranks"'

# --- a batch script that forgets srun ---

printf '%s\n' 'import horovod.common.basics as hvd' 'hvd.init()' 'hvd.shutdown()' 'hvd.init()' \
    'print(hvd.size())' >"$home/twice.py"
chmod a+r "$home/twice.py"
prints 'a program without srun in a batch script of four tasks is told once that it is alone' \
    '^1 [^,]*this Slurm job has 4 tasks, but [^,]*, as rank 0 of 1: start it with srun --hvd$' \
    in_line batch '--hvd -n4' '/usr/bin/python3 twice.py'
prints 'a program without srun in a batch script of one task is told nothing' '^1$' \
    in_line batch '--hvd -n1' '/usr/bin/python3 twice.py'

# srun of Slurm 22.05 sometimes hangs after a heterogeneous step, because its PMIx plugin waits for a thread that
# missed the signal to end: so each has a time limit of its own.
works 'the components of a heterogeneous step are one job' "^$three\$" 'timeout -k 1 20 \
    srun --quiet $hvd -N1 -n2 ./sum_of_ranks : -N1 -n1 ./sum_of_ranks; true'
works 'so are the components that --het-group names' "^$three\$" 'salloc --quiet -N1 -n2 : -N1 -n1 \
    timeout -k 1 20 srun $hvd --het-group=0,1 ./sum_of_ranks; true'
works '--het-group may name one component' '^0/2=3 1/2=3$' 'salloc --quiet -N1 -n1 : -N1 -n2 \
    srun $hvd --het-group=1 ./sum_of_ranks'
works 'without --het-group a step of a heterogeneous job runs on the first component' '^0/2=3 1/2=3$' \
    'salloc --quiet -N1 -n2 : -N1 -n1 srun $hvd ./sum_of_ranks'
is_refused '--hvd in the second component of a heterogeneous step alone is refused' 'holds for all components' \
    'srun -N1 -n2 ./sum_of_ranks : --hvd -N1 -n1 ./sum_of_ranks'
is_refused '--hvd=off in the second component of a heterogeneous step alone is refused' 'holds for all components' \
    'srun $hvd -N1 -n2 ./sum_of_ranks : --hvd=off -N1 -n1 ./sum_of_ranks'

# --- kinds of later releases ---

stepmgr='steps of a job with --stepmgr are jobs of their own'
if is_since 24.05; then
    works "$stepmgr" "^$pairs\$" 'salloc --quiet --stepmgr -N2 --ntasks-per-node=2 \
        sh -c "srun $hvd -N1 -n2 ./sum_of_ranks; srun $hvd -N2 -n2 ./sum_of_ranks"'
else
    tap_skip "$stepmgr" 'Slurm is older than 24.05'
fi
async='--async is refused if the ranks need the rendezvous service'
if is_since 26.05; then
    complains "$async" 'leave out --async, or use --mpi=pmix' \
        as_user salloc --quiet -n2 srun --hvd --mpi=none --async true
    complains 'also for an elastic step' 'leave out --async$' as_user salloc --quiet -n2 srun --hvd=elastic --async true
else
    tap_skip "$async" 'Slurm is older than 26.05'
fi

# --- configless Slurm ---

# go_configless PLUGSTACK: the nodes have no directory of slurm.conf any more, and get their files from slurmctld,
# which has PLUGSTACK as plugstack.conf.
go_configless()
{
    local name etc=$work/cluster/etc
    sed -i /^PlugStackConfig/d "$etc/slurm.conf"
    echo "$1" >"$etc/plugstack.conf"
    as_root scontrol reconfigure
    for name in n1 n2; do
        as_root --node "$name" sh -c 'pkill -x slurmd
            while pgrep -x slurmd; do sleep 0.1; done
            mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs "$1/etc" && mkdir /run/munge &&
            ln -s "$1/munge/socket" /run/munge/munge.socket.2 && # where slurmd looks before it has slurm.conf
            env -u SLURM_CONF slurmd -N "$2" --conf-server 10.79.0.254' sh "$work/cluster" "$name" >/dev/null
    done
    waits_for "$cluster" status --dir "$work/cluster"
}
mkdir "$work/site"
cp "$work/cluster/etc/plugstack.conf.d/hvd.conf" "$work/site/"
go_configless "include $work/site/*.conf"
prints 'a configless Slurm works if the nodes can read the file that plugstack.conf includes' '^1/2=3$' \
    as_user --node n1 LD_LIBRARY_PATH="$library" env -u SLURM_CONF srun --hvd -N2 -n2 ./sum_of_ranks
on_node()
{
    as_user --node n1 env -u SLURM_CONF "$@"
}
sed -i 's/^optional.*/& timeout=7/' "$work/site/hvd.conf"
prints 'a change of the included file takes effect without scontrol reconfigure' '^7$' \
    on_node srun --hvd -n1 printenv SLURM_PMIX_TIMEOUT
mkdir "$work/other"
sed 's/^optional.*/& default=on/' "$work/site/hvd.conf" >"$work/other/hvd.conf"
echo "include $work/other/*.conf" >"$work/cluster/etc/plugstack.conf"
complains 'a change of plugstack.conf does not reach configless nodes' 'Exited with exit code 1' \
    on_node srun -n1 printenv HVD_LAUNCH
as_root scontrol reconfigure
succeeds 'but it does after scontrol reconfigure' waits_for on_node srun -n1 printenv HVD_LAUNCH
tap_done
