#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Slurm's PMIx trusts the user id that a client claims, unless mpi.conf makes it ask munge. Another user tries to end
# a step with both settings.
# shellcheck disable=SC2154 # harness.sh sets variables
. "$(dirname "$0")/harness.sh"

stranger=65534
limit=40

# Puts the munge socket where libpmix looks for it, in the node's own file system.
show_munge()
{
    as_root --node n1 sh -c 'mkdir -p /run/munge && mount -t tmpfs tmpfs /run/munge &&
        ln -s "$1" /run/munge/munge.socket.2' sh "$work/cluster/munge/socket"
}

# Makes PMIx ask munge for user ids. slurmd reads mpi.conf only when it starts or is reconfigured.
use_munge()
{
    echo PMIxEnv=PMIX_MCA_psec=munge >"$work/cluster/etc/mpi.conf"
    as_root scontrol reconfigure
}

# Starts a step of one task, which waits on the fifo `go`.
begin_step()
{
    as_user rm -f go
    as_user mkfifo go
    begin_job as_user srun --mpi=pmix -n1 sh -c 'env | grep ^PMIX_ >place; echo begun; cat go'
    await_said '^begun$'
}

# Another user runs pmix_intruder, which claims to be the job user and rank 0 of the step.
intrude()
{
    local variables
    mapfile -t variables <"$home/place"
    as_root --node n1 setpriv --reuid "$stranger" --regid "$stranger" --clear-groups --inh-caps=-all \
        env "${variables[@]}" "$@" PMIX_MCA_gds=hash INTRUDER_CLAIMS="$uid" "$home/pmix_intruder"
}

# Lets the task end by itself, and returns the status of srun.
end_step()
{
    as_root timeout 10 sh -c "echo done >'$home/go'"
    end_job
}

status_of_step()
{
    end_job
    echo $?
}

install_hvd
start_cluster 1 --sockets 1 --cores 4 --gpus 0 --prefix "$prefix"
[[ $(as_user srun --mpi=list 2>&1) == *pmix* ]] || tap_skip_all 'this Slurm has no PMIx'
cp "$MESON_BUILD_ROOT/tests/cluster/pmix_intruder" "$home/"
chmod a+rx "$home/pmix_intruder"
uid=$(as_user id -u)
show_munge

prints 'hvd-info warns that PMIx trusts the user id that a process claims' \
    '^n1: PMIx: believes the user id that a process claims' as_user srun --hvd --mpi=pmix -n2 hvd-info --check
begin_step
prints 'with default settings of PMIx, another user can end a step' '^abort: SUCCESS$' intrude PMIX_SECURITY_MODE=native
prints 'that user chooses the exit status of the step' '^7$' status_of_step

use_munge
begin_step
fails 'with munge that user is rejected' intrude
fails 'with munge that user is rejected also in another security mode' intrude PMIX_SECURITY_MODE=native
succeeds 'the step ends by itself' end_step
prints 'hvd-info reports that PMIx asks munge' '^n1: PMIx: asks munge for the user' \
    as_user srun --hvd --mpi=pmix -n2 hvd-info --check
prints 'jobs of hvd start by this PMIx' 'start: 2 ranks, by the PMIx of the launcher' \
    as_user HOROVOD_LOG_LEVEL=info HVD_START_BY=pmix srun --hvd --mpi=pmix -n2 \
    /usr/bin/python3 -c 'import horovod.common.basics as hvd; hvd.init()'
tap_done
