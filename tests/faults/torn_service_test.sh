#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# hvd's service, and the ranks of static and elastic jobs that talk to it, while torn_io.c tears up their reads and
# writes, and resets one connection: every rank starts, and an elastic job does all steps.
# usage: torn_service_test.sh TORN_IO SERVE_RANKS HVD_RENDEZVOUS BOOT_CLIENT HVDRUN TRAINER
# HVD_TEST_SEED repeats a run with other choices.
# shellcheck disable=SC2016 # $ expands in the ranks
. "$(dirname "$0")/../cluster/harness.sh"
. "$(dirname "$0")/../pmix_boot/launch.sh"
torn=$(realpath "$1") serve=$2 service=$(realpath "$3") client=$4 hvdrun=$5 trainer=$6
export HVD_TEST_SEED=${HVD_TEST_SEED:-7}
tap_note "seed $HVD_TEST_SEED: HVD_TEST_SEED=$HVD_TEST_SEED repeats it"

# The sockets of rank $1 are torn, and its $2-th read or write resets the connection. The rest is the rank's command.
victim='rank=$1 number=$2; shift 2; [ "$HOROVOD_RANK" != "$rank" ] ||
    export LD_PRELOAD='"$torn"' HVD_TEST_TORN_RESET="$number"; exec "$@"'

# resets PROMISE RANKS REGEX NUMBERS COMMAND...: for each number, the command, with the number for NUMBER,
# succeeds, and RANKS lines match. At least half of the numbers must have reset a connection.
resets()
{
    local promise=$1 ranks=$2 regex=$3 numbers=$4 number done=0 jobs=0
    shift 4
    for number in $numbers; do
        if ! capture timeout -k 5 "$limit" "${@//NUMBER/$number}" ||
            [ "$(grep -Ec -- "$regex" "$work/output")" -lt "$ranks" ]; then
            tap_failure "$promise" "after a reset by read or write $number" "${@//NUMBER/$number}"
            return
        fi
        jobs=$((jobs + 1))
        ! grep -q '^torn_io: reset a connection' "$work/output" || done=$((done + 1))
    done
    tap_note "$done of $jobs jobs had a reset"
    succeeds "$promise" test "$((2 * done))" -ge "$jobs"
}

boots=' wrong 0 '
trained='^slot [0-9]+: rank [0-9]+ of [0-9]+, steps 20, value 20, '

for rank in 0 1; do
    resets "static job: rank $rank asks again after each reset, and all ranks start" 3 "$boots" "$(seq 1 12)" \
        "$serve" "$service" 3 sh -c "$victim" sh "$rank" NUMBER "$client" show 200
done
printf '#!/bin/sh\nexport LD_PRELOAD=%s HVD_TEST_TORN_RESET="$HVD_TEST_SERVICE_RESET"\nexec %s "$@"\n' \
    "$torn" "$service" >"$work/service"
chmod a+x "$work/service"
resets 'static job: the service resets a connection, and all ranks start' 3 "$boots" "$(seq 1 4 41)" \
    env HVD_TEST_SERVICE_RESET=NUMBER "$serve" "$work/service" 3 "$client" show 200

# Under hvdrun, all processes have torn sockets: hvdrun, its service and the ranks.
succeeds 'static job under hvdrun: all ranks start' env LD_PRELOAD="$torn" "$hvdrun" -np 4 "$client" show 200
counts 'and all have the right cards' 4 "$boots"
succeeds 'elastic job under hvdrun: the job succeeds' env LD_PRELOAD="$torn" "$hvdrun" -np 3 --min-np 1 "$trainer" 20
counts 'and all ranks have done all steps' 3 "$trained"
succeeds 'elastic job under hvdrun, a rank is killed: the job succeeds' \
    env LD_PRELOAD="$torn" "$hvdrun" -np 3 --min-np 1 "$trainer" 20 1:collective:7:100
counts 'and the others have done all steps' 2 "$trained"

# A rank that joins again when the others are about to end is not needed any more.
for rank in 0 1; do
    resets "elastic job: after each reset of rank $rank, the job succeeds and at least two ranks do all steps" 2 \
        "$trained" "1 3 5 7 $(seq 9 20) 24 31 40 60" "$hvdrun" -np 3 --min-np 1 sh -c "$victim" sh "$rank" NUMBER "$trainer" 20
done
succeeds 'nothing is left in TMPDIR' is_clean
tap_done
