#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boots under Slurm's PMIx on two nodes, and with hvdrun in an allocation.
# usage: boot_slurm_test.sh BOOT_CLIENT HVD_BOOT
# shellcheck disable=SC2016,SC2154 # $ expands inside; home, work and prefix come from harness.sh
. "$(dirname "$0")/../cluster/harness.sh"
. "$(dirname "$0")/slurm.sh"

# layout NAME NUMBERS OPTIONS...: compares rank, local rank and size, node, cross rank and size of all ranks.
layout()
{
    prints "$1: a step of four ranks boots" '^rank' step --mpi=pmix -N 2 -n 4 "${@:3}" ./boot_client show
    cp "$work/output" "$work/said"
    prints "$1: all numbers are right, and all cards" "^$2\$" numbers
}

numbers()
{
    sed -n 's,^rank \([0-9]*\)/4 local \([0-9/]*\) node \([0-9]*\)/2 cross \([0-9/]*\) wrong 0 .*,\1:\2:\3:\4,p' \
        "$work/said" | sort | paste -sd ' '
}

layouts()
{
    layout 'two and two' '0:0/2:0:0/2 1:1/2:0:0/2 2:0/2:1:1/2 3:1/2:1:1/2' --ntasks-per-node=2
    layout 'three and one' '0:0/3:0:0/2 1:1/3:0:0/1 2:2/3:0:0/1 3:0/1:1:1/2' -m plane=3
    layout 'in turns' '0:0/2:0:0/2 1:0/2:1:1/2 2:1/2:0:0/2 3:1/2:1:1/2' \
        --ntasks-per-node=2 -m cyclic
    counts 'each rank knows the hosts of all ranks' 4 ' on n1 n2 n1 n2$'
}

# After boot a rank may end: PMIx is closed, so Slurm does not end the step. Each rank holds a shared lock
# until it ends.
rank_leaves()
{
    install -m 666 /dev/null "$home/ranks"
    prints 'ranks that end after boot do not end the step' '^0 goes on' step --mpi=pmix -N 2 -n 4 sh -c '
        exec 9>>ranks; flock -s 9; ./boot_client show 9>&-
        [ $SLURM_PROCID != 0 ] || { flock -x 9; echo 0 goes on; }'
}

without_pmix()
{
    complains 'a step without PMIx is an error that says what to type' \
        'error -8: this Slurm step has 4 tasks but no PMIx.* srun --hvd' step --mpi=none -N 2 -n 4 ./boot_client show
    complains 'a step with PMI2 is an error that says what to type' 'error -8: this Slurm step has 2 tasks' \
        step --mpi=pmi2 -n 2 ./boot_client show
    prints 'a single task without PMIx is rank 0 of 1' '^rank 0/1' step --mpi=none -n 1 ./boot_client show
    complains 'a step without PMIx inside a step with PMIx does not use the outer PMIx' \
        '2 tasks but no PMIx' step --mpi=pmix -n 2 -N 1 sh -c \
        '[ $SLURM_PROCID != 0 ] || exec srun --overlap --mpi=none -n 2 -N 1 ./boot_client show'
    prints 'a shell of salloc is rank 0 of 1' '^rank 0/1' as_user salloc -N 2 -n 4 ./boot_client show
}

hvdrun_in_allocation()
{
    local run
    run=$(find "$prefix" -path '*/bin/hvdrun' -type f -print -quit)
    prints 'hvdrun in an allocation is srun --hvd' 'rank 3/4 .* wrong 0 .* on n1 n1 n2 n2' \
        as_user salloc --quiet -N 2 --ntasks-per-node=2 "$run" -np 4 ./boot_client show
    prints 'hvdrun places ranks on the hosts of -H' 'rank 3/4 .* wrong 0 .* on n1 n1 n1 n2' \
        as_user salloc --quiet -N 2 --ntasks-per-node=3 "$run" -np 4 -H n1:3,n2:1 ./boot_client show
    succeeds 'hvdrun writes output to files' \
        as_user salloc --quiet -N 2 --ntasks-per-node=2 "$run" -np 4 --output-filename logs ./boot_client show
    succeeds 'each rank has an output file' grep -q '^rank 3/4' "$home/logs/rank.3/stdout"
    prints 'in a task of srun, hvdrun starts ranks itself' '^rank 2/3 local 2/3 .* wrong 0 ' \
        as_user srun --mpi=pmix -n 1 -c 2 "$run" -np 3 ./boot_client show
    complains 'hvdrun returns the exit code of a rank' 'Exited with exit code 7' \
        as_user salloc --quiet -N 2 --ntasks-per-node=2 "$run" -np 4 sh -c 'exit 7'
}

# A job with --hvd may turn it off for a step, which must not look like a missing plugin.
hvd_turned_off()
{
    prints 'a step with --hvd=off in a job with --hvd boots by --mpi=pmix' 'rank 1/2 .* wrong 0' \
        as_user HVD_BOOT_HELPER="$home/hvd-boot" salloc --quiet -N 2 -n 2 --hvd \
        srun --hvd=off --mpi=pmix -N 2 ./boot_client show
}

layouts
rank_leaves
without_pmix
hvdrun_in_allocation
hvd_turned_off
tap_done
