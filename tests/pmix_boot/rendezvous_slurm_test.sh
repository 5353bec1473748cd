#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# srun --hvd without PMIx on two nodes: ranks find each other through the service that srun starts.
# usage: rendezvous_slurm_test.sh BOOT_CLIENT HVD_BOOT
# shellcheck disable=SC2016,SC2154 # $ expands inside; home, work and prefix come from harness.sh
. "$(dirname "$0")/../cluster/harness.sh"

install_hvd
start_cluster 2 --sockets 1 --cores 4 --gpus 0 --prefix "$prefix"
mkdir "$home/hvd"
cp "$1" "$MESON_BUILD_ROOT/tests/info/live_ranks" "$home/"
cp "$2" "$home/hvd/" # where boot_client looks for it
chmod -R a+rX "$home/boot_client" "$home/hvd"
user=$(as_user id -u)
library=$(dirname "$(find "$prefix" -name libhvd.so -print -quit)")

step()
{
    as_user srun --hvd=on "$@"
}

# layout PROMISE SRUN_ARGUMENT...: compares rank, local rank and size, node, cross rank and size of four ranks.
layout()
{
    local promise=$1
    shift
    prints "$promise" '^rank' step -N 2 --ntasks-per-node=2 "$@" ./boot_client show 120
    cp "$work/output" "$work/said"
    prints "$promise: all numbers are right, and all cards" \
        '^0:0/2:0:0/2 1:1/2:0:0/2 2:0/2:1:1/2 3:1/2:1:1/2$' numbers
}

numbers()
{
    sed -n 's,^rank \([0-9]*\)/4 local \([0-9/]*\) node \([0-9]*\)/2 cross \([0-9/]*\) wrong 0 .*,\1:\2:\3:\4,p' \
        "$work/said" | sort | paste -sd ' '
}

# without_plugins COMMAND...: runs COMMAND as the job user, with Slurm's PMIx plugins hidden.
without_plugins()
{
    local folder copy=$work/plugins
    folder=$(dirname "$(find /usr/lib* -name mpi_none.so -print -quit)")
    rm -rf "$copy"
    cp -r "$folder" "$copy"
    chmod -R a+rX "$copy"
    rm -f "$copy"/mpi_pmix*
    as_root unshare --mount sh -c 'mount --bind "$1" "$2" || exit; cd "$3" && shift 3 &&
        exec setpriv --reuid "$0" --regid "$0" --clear-groups "$@"' "$user" "$copy" "$folder" "$home" "$@"
}

# hetero: three ranks in a step of two components.
hetero()
{
    as_user srun --mpi=none --hvd=on -N1 -n2 ./boot_client show 120 : \
        --mpi=none --hvd=on -N1 -n1 ./boot_client show 120
}

layout 'ranks boot with --mpi=none' --mpi=none
layout 'ranks boot with --mpi=pmi2' --mpi=pmi2
layout "ranks boot with srun's default" --exclusive
needs_pmix prints 'ranks have PMIx, too, if it is installed' '^[0-3]:[0-9.,]*:[0-9]*:[0-9a-f]{64}$' \
    step -N 2 --ntasks-per-node=2 sh -c 'echo $PMIX_RANK:$HVD_RENDEZVOUS'
prints 'a heterogeneous step is one job' '^rank 2/3 .* wrong 0 ' hetero
prints '--hvd works in a Slurm without PMIx' '^rank 3/4 .* wrong 0 ' \
    without_plugins srun --hvd=on -N 2 --ntasks-per-node=2 ./boot_client show 120
prints 'a single task is rank 0 of 1' '^rank 0/1 ' step --mpi=none -n 1 ./boot_client show
prints 'a single task has no service' '^none$' step --mpi=none -n 1 sh -c 'echo ${HVD_RENDEZVOUS:-none}'
prints 'an srun in a rank does not inherit its service' '^none$' \
    step --mpi=none -n 2 -N 1 sh -c '[ $SLURM_PROCID != 0 ] ||
        srun --overlap --mpi=none -n 1 sh -c "echo \${HVD_RENDEZVOUS:-none}"'
prints 'ranks that found each other allreduce' 'start: 4 ranks, by hvd.s rendezvous service' \
    as_user HOROVOD_LOG_LEVEL=info srun --hvd=on --mpi=none -N 2 --ntasks-per-node=2 \
    "$prefix/bin/hvd-bench" allreduce --sizes 1024
prints 'the others name a rank that never boots' \
    'error -6: 1 of 4 ranks did not start within 5 s: rank 3 \(on n2\); they have ended, hang, or never called init' \
    step --mpi=none -N 2 --ntasks-per-node=2 sh -c '[ $SLURM_PROCID = 3 ] || ./boot_client show 5 || true'
prints 'the others name a rank that dies while it waits, with its node, before the time limit' \
    'error -5: rank 3 on n2 has ended, or lost its network, before all 4 ranks had started' \
    step --mpi=none -N 2 --ntasks-per-node=2 sh -c '
        case $SLURM_PROCID in
        1 | 2) ./boot_client show 120 || true ;;
        3)
            ./boot_client show 120 &
            until ls -l /proc/$!/fd 2>/dev/null | grep -q socket; do sleep 0.1; done
            sleep 2 # by now it has a connection and has sent its card
            kill -9 $!
            ;;
        esac'
# Asked from outside: rank 1 runs the script, rank 2 is stopped.
begin_job as_user LD_LIBRARY_PATH="$library" srun --hvd=on --mpi=none -N 2 --ntasks-per-node=2 ./live_ranks
are_waiting()
{
    asked=$(as_user squeue --noheader --states=RUNNING --format=%i) &&
        as_user "$prefix/bin/hvd-info" --job "$asked" | grep -q "in allreduce 'gradient' for ranks 1-2"
}
succeeds 'ranks run, of which one is stopped and one does not call hvd' waits_for are_waiting
prints 'hvd-info --job asks the ranks of all nodes' \
    "^ +3  n2 .* 2 +5  has waited [0-9.]+ s in allreduce 'gradient' for ranks 1-2$" \
    as_user "$prefix/bin/hvd-info" --job "$asked"
prints 'it names the ranks that are late, with their nodes' \
    '^late: rank 2 on n2 \(pid [0-9]+\), which is stopped, by a signal or a debugger$' \
    as_user "$prefix/bin/hvd-info" --job "$asked.0"
prints 'root gets the answer, too' "^job $asked.0: 4 of 4 ranks$" as_root "$prefix/bin/hvd-info" --job "$asked"
complains 'a job that does not exist is an error' 'squeue knows no running job 999999' as_user "$prefix/bin/hvd-info" --job 999999
complains 'a step that does not exist is an error, with the steps that do' 'has no running step 9, but these: .*0' \
    as_user "$prefix/bin/hvd-info" --job "$asked.9"
as_user scancel "$asked"
end_job
succeeds 'no service is left' as_root sh -c '! pgrep -x hvd-rendezvous'
tap_done
