#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A user without rights on the nodes of another user's job (attacker.py) learns nothing, changes nothing and stops
# nothing. A decoy proves that the attacker finds open resources.
# shellcheck disable=SC2016,SC2154 # variables of jobs expand in the jobs; harness.sh sets others
. "$(dirname "$0")/harness.sh"

stranger=65534
floods=10000
no_port=1 # nothing listens on this port

# attacker NODE ARGUMENTS...: attacks on a node; logs its attempts to $loot/NODE.tried, its finds to $loot/NODE.
attacker()
{
    attacker_as "$stranger" "$@"
}

attacker_as()
{
    local as=$1 node=$2
    shift 2
    as_root --node "$node" setpriv --reuid "$as" --regid "$as" --clear-groups --inh-caps=-all \
        --bounding-set=-all /usr/bin/python3 "$home/attacker.py" "$loot/$node" "$uid" "$@" \
        >>"$loot/$node.tried" 2>&1 </dev/null
}

empty_loot()
{
    loot=$work/loot
    rm -rf "$loot"
    mkdir -m 1777 "$loot"
}

# tried NODES REGEX: prints how many lines of the logs match; fails if an attack has not finished.
tried()
{
    local node
    for node in $1; do
        grep -q '^end .*: done$' "$loot/$node.tried" || { tail "$loot/$node.tried" >&2 && return 1; }
        grep -E -- "$2" "$loot/$node.tried"
    done >"$work/tried"
    sed 's/^/# /' "$work/tried" | head -n 20 >&2
    wc -l <"$work/tried"
}

# leaked SECRET...: prints how many of the secrets are in the loot, as text or as bytes.
leaked()
{
    /usr/bin/python3 - "$loot" "$@" <<'PYTHON'
import pathlib
import sys

loot = b''.join(path.read_bytes() for path in pathlib.Path(sys.argv[1]).iterdir() if path.is_file())
found = [text for text in sys.argv[2:] if text.encode() in loot or bytes.fromhex(text) in loot]
print(len(sys.argv) - 2, 'secrets,', len(found), 'leaked', *found)
PYTHON
}

# Attacks the decoy: another user gets only what is open on purpose; the same user gets everything.
attack_decoy()
{
    local what
    empty_loot
    begin_job as_user --node n1 "$home/knowing" /usr/bin/python3 "$home/decoy.py" "$home/end"
    await_said '^decoy: open'
    attacker n1 once
    prints 'the attacker reads a file that is open on purpose' '^1$' \
        tried n1 '^file /dev/shm/decoy read: GOT 32 bytes'
    prints 'the attacker could write to that file' '^1$' tried n1 '^file /dev/shm/decoy write: GOT'
    prints 'the attacker receives data from a port that is open on purpose' '^[1-9]' \
        tried n1 '^port .* silence: GOT .* 32 bytes'
    prints 'the attacker receives data from an abstract socket' '^[1-9]' \
        tried n1 '^socket decoy silence: GOT .* 32 bytes'
    prints 'that socket sends the attacker a descriptor' '^[1-9]' tried n1 '^socket a descriptor: GOT'
    prints 'a secret in the loot is found' '^1 secrets, 1 leaked' leaked "$canary"
    prints 'the attacker gets nothing from the process of another user' '^0$' \
        tried n1 '^(process|control) .*: GOT'
    empty_loot
    attacker_as "$uid" n1 once
    for what in environ mem maps fd ptrace process_vm_readv pidfd_getfd; do
        prints "as the job's own user it succeeds: $what" '^[1-9]' tried n1 "^process [0-9]* $what: GOT"
    done
    for what in process_vm_writev SIGSTOP prlimit sched_setaffinity; do
        prints "as the job's own user it succeeds: $what" '^[1-9]' tried n1 "^control [0-9]* $what: GOT"
    done
    touch "$home/end"
    end_job
    rm "$home/end"
}

# Prints the keys in the environment of a rank.
keys()
{
    as_root --node n1 sh -c 'tr "\0" "\n" </proc/$(pgrep -n -x steady)/environ' |
        sed -n 's/^SLURM_HVD_KEY=//p; s/^HVD_RENDEZVOUS=.*://p'
}

# attack_job NAME SRUN_OPTION...: runs all attacks at once while the job does its steps.
attack_job()
{
    local name=$1 lurkers=() attacks=() node port=$no_port
    shift
    empty_loot
    rm -f "$home/end" "$home/attack"
    for node in n1 n2; do
        attacker "$node" until "$home/attack" &
        lurkers+=($!)
    done
    begin_job as_user LD_LIBRARY_PATH="$library" ./knowing srun "$@" -N 2 --ntasks-per-node=2 ./steady
    succeeds "$name: the job starts while strangers talk to each port that it opens" \
        await_said '^steady: 4 ranks'
    mapfile -t secrets < <(keys)
    [ "$name" != elastic ] || port=$(service_port)
    touch "$home/attack"
    wait "${lurkers[@]}"
    for node in n1 n2; do
        attacker "$node" once &
        attacks+=($!)
    done
    attacker ctl once "$port"
    [ "$name" != elastic ] || attacker ctl flood "$port" "$floods"
    wait "${attacks[@]}"
    touch "$home/end"
    end_job
    judge_job "$name"
}

service_port()
{
    as_root --node n1 sh -c 'tr "\0" "\n" </proc/$(pgrep -n -x steady)/environ' |
        sed -n 's/^HVD_RENDEZVOUS=.*:\([0-9]*\):.*/\1/p'
}

judge_job()
{
    local name=$1
    prints "$name: no environment, memory or descriptor of its processes is open" '^0$' \
        tried 'n1 n2 ctl' '^process .*: GOT'
    prints "$name: no process can be changed or stopped" '^0$' tried 'n1 n2 ctl' '^control .*: GOT'
    prints "$name: no file or memory with a name is open" '^0$' tried 'n1 n2 ctl' '^file .*: GOT'
    prints "$name: no descriptor is handed out" '^0$' tried 'n1 n2 ctl' '^socket a descriptor: GOT'
    prints "$name: each rank challenges a process that claims to be a rank" '^[4-9]' \
        tried_once '^port .* hello to [0-3]: GOT .* 104 bytes'
    prints "$name: no rank accepts a process without a proof" '^0$' tried_once '^port .* proof for [0-3]: GOT'
    prints "$name: its ports do not answer other messages" '^0$' \
        tried_once '^port .* (silence|magic|noise|long|http|func): GOT .* [1-9][0-9]* bytes'
    fails "$name: no data from the attacker is executed" ls -d "$loot"/*.executed
    prints "$name: the attacker has read no secret" "^[2-9] secrets, 0 leaked" \
        leaked "$canary" "${secrets[@]}"
    grep -E '^rank [0-3]: [0-9]+ steps, 0 wrong, status 0' "$work/said" >"$work/ranks"
    [ "$(grep -c . "$work/ranks")" = 4 ] || tap_note "$(cat "$work/said")"
    prints "$name: every result is right to the end, on all four ranks" '^4$' grep -c . "$work/ranks"
    tap_note "$name: $(grep -h 'before the attack' "$work/said")"
    tap_note "$name: $(cat "$loot"/*.tried | grep -Ec '^[a-z]+ .*: ') attempts"
}

# tried_once REGEX: the same as tried, but without the attacks that began before the job started.
tried_once()
{
    local node
    for node in n1 n2; do
        sed -n '/^seed [0-9]*: once/,$p' "$loot/$node.tried"
    done >"$loot/late.tried"
    tried late "$1"
}

install_hvd
start_cluster 2 --sockets 1 --cores 4 --gpus 0 --prefix "$prefix"
library=$(dirname "$(find "$prefix" -name libhvd.so -print -quit)")
cp "$MESON_BUILD_ROOT/tests/cluster/steady" "$tests_dir/attacker.py" "$tests_dir/decoy.py" "$home/"
chmod a+rx "$home"/*
uid=$(as_user id -u)
canary=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
# The secret must not be on a command line, which all users can read.
as_user sh -c 'umask 077 && cat >knowing && chmod u+x knowing' <<KNOWING
#!/bin/sh
HVD_TEST_CANARY=$canary exec "\$@"
KNOWING
attack_decoy
attack_job job --hvd
attack_job elastic --hvd=elastic
tap_done
