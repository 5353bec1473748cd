#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boots hundreds of times through hvdrun's rendezvous service and mpirun's PMIx, and once with a rank that
# dies meanwhile.
# usage: boot_often_test.sh HVDRUN BOOT_CLIENT
# shellcheck disable=SC2016 # $ expands in the ranks
. "$(dirname "$0")/../cluster/harness.sh"
. "$(dirname "$0")/launch.sh"
hvdrun=$1 client=$2
limit=$((10 * limit)) # for hundreds of boots, each of which has the usual limit elsewhere

# Rank 1 is killed while it waits for rank 0, and rank 0 boots when rank 1 is gone. Each rank waits for a line
# from its pipe.
a_rank_dies_while_it_waits()
{
    mkfifo "$work/order0" "$work/order1"
    begin_job env HOROVOD_LOG_LEVEL=debug timeout "$limit" "$hvdrun" -np 4 sh -c '
        case $HOROVOD_RANK in
        0) read -r _ <"$1/order0"; "$0" show 120 || : ;;
        1) "$0" show 120 & read -r _ <"$1/order1"; kill -9 $! ;;
        *) "$0" show 120 || : ;;
        esac' "$client" "$work"
    succeeds 'the service logs which rank has come' await_said 'rendezvous: rank 1 on .* is here'
    echo >"$work/order1"
    succeeds 'the service logs which rank is gone' await_said 'rendezvous: rank 1 on .* is gone'
    echo >"$work/order0"
    succeeds 'a job ends although a rank dies while it waits for another' end_job
    cp "$work/said" "$work/output"
    counts "the other ranks are told, at once or when they come" 3 \
        '^error -5: rank 1 on .* has ended, or lost its network, before all 4 ranks had started'
}

boot_again_and_again()
{
    # AddressSanitizer would keep freed memory for a while, which looks like growth.
    local give_back=quarantine_size_mb=0:thread_local_quarantine_size_kb=0
    succeeds "4 ranks boot 300 times" env ASAN_OPTIONS="${ASAN_OPTIONS-}:$give_back" \
        timeout "$limit" "$hvdrun" -np 4 "$client" cycles 300 "$work/counter"
    tap_note "$(cat "$work/output")"
    counts "no boot gets a card of an earlier one" 4 '^cycles 300 wrong 0 '
    counts "no descriptor and no thread is leaked" 4 'descriptors \+0 threads \+0 '
    counts "memory does not grow by 1 kB a cycle" 4 'memory (-[0-9]+|\+[0-9]{1,2}|\+[12][0-9]{2}) kB'
}

pairs_again_and_again()
{
    succeeds "4 ranks boot 200 times, in pairs and all together" timeout "$limit" \
        "$hvdrun" -np 4 "$client" regroup 200 "$work/counter3"
    tap_note "$(cat "$work/output")"
    counts "no boot gets a wrong card" 4 '^regrouped 200 wrong 0 '
}

# Boots all ranks together, never pairs: mpirun's PMIx server may not answer a client that connects while
# another one leaves.
mpirun_again_and_again()
{
    command -v mpirun >/dev/null || {
        tap_skip "ranks of mpirun boot often" "there is no mpirun"
        return
    }
    [ -x "$(dirname "$hvdrun")/../hvd-boot" ] || {
        tap_skip "ranks of mpirun boot often" "this build has no PMIx"
        return
    }
    # A PMIx fence would take a minute if it waited for a rank that the server no longer counts.
    succeeds "4 ranks of mpirun boot 300 times" timeout "$limit" \
        mpirun --allow-run-as-root --oversubscribe -np 4 "$client" cycles 300 "$work/counter2" 100
    tap_note "$(cat "$work/output")"
    counts "no boot gets a card of an earlier one" 4 '^cycles 300 wrong 0 '
}

a_rank_dies_while_it_waits
boot_again_and_again
pairs_again_and_again
mpirun_again_and_again
succeeds "nothing is left in TMPDIR" is_clean
tap_done
