#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ranks of a static job find each other through the rendezvous service over TCP, without PMIx. boot_test.sh
# tests late ranks, lists of ranks and processes that follow each other with the same service, under hvdrun.
# usage: static_test.sh SERVE_RANKS HVD_RENDEZVOUS BOOT_CLIENT
# shellcheck disable=SC2016 # $ expands in the ranks
. "$(dirname "$0")/../../cluster/harness.sh"
. "$(dirname "$0")/../launch.sh"
serve=$1 service=$2 client=$3

# run N COMMAND...
run()
{
    timeout -k 5 "$limit" "$serve" "$service" "$@"
}

secrets_are()
{
    local secrets
    secrets=$(sed 's/.*secret \([0-9a-f]*\).*/\1/' "$work/output" | sort -u | wc -l)
    succeeds "$1" test "$secrets" = "$2"
}

ranks_find_each_other()
{
    local size=$1
    succeeds "$size ranks boot" run "$size" "$client" show 120
    counts "each of the $size knows its numbers, and all cards are right" "$size" \
        "^rank ([0-9]+)/$size local \1/$size node 0/1 cross 0/1 wrong 0 "
    secrets_are "the $size ranks have the same secret" 1
}

# Rank 0 posts its address. Rank 1 asks for it before that, rank 2 at any time, rank 3 afterwards.
notes()
{
    succeeds 'ranks ask for the address of rank 0' run 4 sh -c '
        case $HOROVOD_RANK in
        0) until [ -e "$1/asked" ]; do sleep 0.1; done; "$0" post 0 "10.1.2.3 4711" && touch "$1/posted" ;;
        1) touch "$1/asked"; "$0" ask 1 ;;
        2) "$0" ask 2 ;;
        3) until [ -e "$1/posted" ]; do sleep 0.1; done; "$0" ask 3 ;;
        esac' "$service" "$work"
    counts 'each gets it, and rank 0 gets a confirmation' 4 '^at 10\.1\.2\.3 4711$'
    long=$(printf '%0200d' 0)
    complains 'a text that is too long is rejected' \
        '^no a note of 200 bytes: at most 128' run 1 "$service" post 0 "$long"
    complains 'a rank that asks for an address that is never posted fails after ten seconds' \
        '^no rank 0 has not told its address within 10 s' run 1 "$service" ask 1
    complains 'without a service there is an error' '^no cannot reach the rendezvous service' \
        env HVD_RENDEZVOUS="127.0.0.1:1:$(printf '%064d' 0)" "$service" ask 1
}

# The service is the sibling of rank 0. Its address is known, so it has opened its own descriptors.
inherited()
{
    exec 7<"$service"
    succeeds 'the launcher leaves a descriptor open' run 1 sh -c '
        for pid in $(ps -o pid= --ppid "$PPID"); do
            [ "$(readlink "/proc/$pid/exe")" = "$0" ] || continue
            ls -l "/proc/$pid/fd"
            echo "the service has $(ls "/proc/$pid/fd" | wc -l) descriptors"
        done' "$(realpath "$service")"
    exec 7<&-
    counts 'the service is found' 1 '^the service has [0-9]+ descriptors'
    counts 'the service has not inherited the descriptor' 0 'hvd-rendezvous$'
}

missing_ranks()
{
    succeeds "a rank runs but never boots" run 4 sh -c '
        if [ "$HOROVOD_RANK" = 2 ]; then touch "$1/there"; until [ -e "$1/over" ]; do sleep 0.1; done; exit; fi
        until [ -e "$1/there" ]; do sleep 0.1; done
        "$0" show 3; [ "$HOROVOD_RANK" != 0 ] || touch "$1/over"' "$client" "$work"
    counts "the other three name it" 3 \
        '^error -6: 1 of 4 ranks did not start within 3 s: rank 2; they have ended, hang, or never called init'
    # Rank 1 is killed before or while it waits in hvd_init. The others get the same error in both cases.
    fails "a rank is killed while it starts" run 3 sh -c '
        case $HOROVOD_RANK in
        2) until [ -e "$1/killed" ]; do sleep 0.1; done ;;
        1) (sleep 1; kill -9 $$; touch "$1/killed") & ;;
        esac
        exec "$0" show 120 || true' "$client" "$work"
    counts "the others are told, whether they wait or come later" 2 \
        '^error -5: rank 1 (on .* )?has ended'
}

# The client without a command ends before it boots.
early_ends()
{
    fails "the process that Slurm has started as the task ends before it boots" run 3 sh -c '
        [ "$HOROVOD_RANK" = 1 ] || exec "$0" show 120
        export SLURM_TASK_PID=$$
        exec "$0"' "$client"
    counts "the others are told, with its host" 2 \
        "^error -5: rank 1 on $(hostname) exited with status [0-9]+ and did not call init"
    succeeds "another process of the task ends before that" run 3 sh -c '
        export SLURM_TASK_PID=$$
        "$0" || :
        exec "$0" show 120' "$client"
    counts "nobody is told, and all ranks boot" 3 '^rank ./3 .* wrong 0 '
}

again_and_again()
{
    succeeds "ranks boot 300 times" run 3 "$client" cycles 300 "$work/counter" 120
    local digits=${ASAN_OPTIONS:+6}
    digits=${digits:-3}
    # With AddressSanitizer any growth is allowed: it keeps freed memory for a while, and finds leaks itself.
    counts "each time with cards of that boot, and without leaks" 3 \
        "^cycles 300 wrong 0 descriptors \+0 threads \+0 memory \+[0-9]{1,$digits} kB"
    tap_note "$(grep -m1 -Eo 'ms [0-9.]+$' "$work/output") per boot of 3 ranks"
    succeeds "ranks boot by turns in pairs and all together" run 4 "$client" regroup 100 "$work/regroup"
    counts "always with the ranks of their list" 4 '^regrouped 100 wrong 0 '
}

wrong_places()
{
    complains "a service that is gone is an error" '^error -4: cannot reach the rendezvous service' \
        env HVD_RENDEZVOUS="127.0.0.1:1:$(printf '%064d' 0)" HOROVOD_RANK=0 HOROVOD_SIZE=2 "$client" show 1
    complains "an address with a wrong form is an error" '^error -1: .*HVD_RENDEZVOUS is not HOST:PORT:KEY' \
        env HVD_RENDEZVOUS=nonsense HOROVOD_RANK=0 HOROVOD_SIZE=2 "$client" show
    complains "a rank outside the job is an error" '^error -9: HVD_RENDEZVOUS is set, but HOROVOD_RANK=2' \
        env HVD_RENDEZVOUS="127.0.0.1:1:$(printf '%064d' 0)" HOROVOD_RANK=2 HOROVOD_SIZE=2 "$client" show
    succeeds "the first of two addresses leads nowhere" run 2 sh -c '
        HVD_RENDEZVOUS=127.0.0.2,$HVD_RENDEZVOUS "$0" show 120' "$client"
    counts "the ranks use the second one" 2 '^rank ./2 .* wrong 0 '
    complains "if no address works, the error names all" \
        'cannot reach the rendezvous service at 127.0.0.2,127.0.0.3: cannot connect to 127.0.0.[23]' \
        env HVD_RENDEZVOUS="127.0.0.2,127.0.0.3:1:$(printf '%064d' 0)" HOROVOD_RANK=0 HOROVOD_SIZE=2 "$client" show 1
    succeeds "two processes start as rank 0" run 2 sh -c '
        HOROVOD_RANK=0 "$0" show 3 || true' "$client"
    counts "one of the two processes gets an error at once" 1 '^error -9: there are two processes with rank 0'
    succeeds "a rank calls with a wrong key" run 1 sh -c '
        HVD_RENDEZVOUS=${HVD_RENDEZVOUS%?????}00000 "$0" show 2 || "$0" show 20' "$client"
    counts "a rank with a wrong key is rejected" 1 \
        '^error -4: the server on 127.0.0.1 port [0-9]* is not the rendezvous service'
    counts "with the right key the rank is served" 1 '^rank 0/1 '
}

for size in 1 2 4 7; do
    ranks_find_each_other "$size"
done
notes
inherited
missing_ranks
early_ends
again_and_again
wrong_places
succeeds "nothing is left in TMPDIR" is_clean
tap_done
