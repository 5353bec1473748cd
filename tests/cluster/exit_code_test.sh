#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The exit status of srun when one of four ranks on two nodes ends: the table in contrib/docs/slurm.md.
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/elastic.sh"

# returns STATUS PROMISE HOW [CODE]: rank 1 ends by HOW (see exit_code.py); srun returns STATUS.
returns()
{
    local status=0
    begin_job job srun --hvd -N 2 --ntasks-per-node=2 python3 exit_code.py "${@:3}"
    end_job || status=$?
    prints "$2: srun returns $1" "^$1\$" echo "$status"
    [[ $status =~ ^$1$ ]] || tap_note "$(cat "$work/said")"
}

three_say_who()
{
    says_times 'the three others have named the rank' 3 \
        '^[a-zA-Z.]*(HorovodInternalError|JobShutDownError): .* ?rank 1 (on|host) n1'
}

non_elastic()
{
    returns 7 'a rank exits with 7' exit
    three_say_who
    returns 1 'a rank raises an exception' raise
    three_say_who
    # The status is 143 if Slurm's SIGTERM ends the other ranks before they notice.
    returns '1(37|43)' 'a rank is killed' kill
    returns 1 'a rank exits with 0' leave
    three_say_who
    returns 9 'a rank raises an exception, the others return 9' raise 9
}

elastic()
{
    local status=0
    rm -f "$home/go"
    begin_job job HVD_TRAINER_GO=go HVD_TRAINER_PAUSE_MS=50 srun --hvd=elastic -N 2 \
        --ntasks-per-node=2 ./trainer 20
    await_said 'waits at step 5'
    as_root --node n1 pkill -9 -n -x trainer
    await_said 'generation 2 begins, 3 ranks'
    touch "$home/go"
    end_job || status=$?
    says_times 'a rank of an elastic job is killed: the others have all steps' 3 \
        'rank [0-2] of 3, steps 20, value 20'
    prints 'srun returns 137 for the elastic job' '^137$' echo "$status"
}

start_elastic "$MESON_BUILD_ROOT/tests/pmix_boot/rendezvous/trainer" "$tests_dir/exit_code.py"
non_elastic
elastic
tap_done
