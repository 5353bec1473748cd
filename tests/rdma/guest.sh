#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The only program of a guest of rdma.sh: makes a soft-RoCE adapter, runs the cases that the kernel's command line names,
# and turns the guest off. Lines for rdma.sh begin with "TAP ": results without numbers, and comments.
export PATH=/usr/sbin:/usr/bin HOME=/root LANG=C.UTF-8
programs='' prefix='' times=4
# shellcheck source=/dev/null
. /settings # sets these variables

word()
{
    sed -n "s/.*hvd\.$1=\([^ ]*\).*/\1/p" /proc/cmdline
}

guest=$(word guest) mode=$(word mode)

tap()
{
    sed 's/^/TAP /'
}

# promise STATUS TEXT FILE...: prints a result; if STATUS is not 0, with the ends of the files.
promise()
{
    local status=$1 text=$2
    shift 2
    if [ "$status" = 0 ]; then
        echo "TAP ok - $text"
    else
        echo "TAP not ok - $text"
        tail -n 20 -- "$@" | sed 's/^/# /' | tap
    fi
}

note()
{
    echo "TAP # guest $guest, $(cut -d ' ' -f 1 /proc/uptime) s: $*"
}

# pass_on FILE: passes on lines of TAP of a program, without their numbers and the plan.
pass_on()
{
    grep -E '^(ok|not ok|#)' "$1" | sed -E 's/^(ok|not ok) [0-9]+/\1/' | tap
}

# rest: waits until the guest is off. It starts no program, because /usr may be gone by then.
rest()
{
    while true; do
        read -rt 60 _
    done </dev/console
}

turn_off()
{
    sync
    echo o >/proc/sysrq-trigger
    rest
}

# --- the adapter ---

# IPv6 addresses become GIDs that UCX accepts for its datagrams. rxe reports "last work request reached" more than
# once, an event for which UCX has an assertion: UCX_IB_ASYNC_EVENTS=n ignores it.
make_adapter()
{
    local device=dummy0 index
    [ ! -e /sys/class/net/eth0 ] || device=eth0
    [ $device = eth0 ] || ip link set dummy0 mtu 4200
    ip link set lo up
    ip addr add "10.9.0.$guest/24" dev $device
    ip -6 addr add "fd00:9::$guest/64" dev $device nodad
    ip link set $device up
    rdma link add rxe0 type rxe netdev $device
    for index in 0 1 2 3 4 5; do
        ! grep -qi '^fd00:' "/sys/class/infiniband/rxe0/ports/1/gids/$index" || break
    done 2>/dev/null
    export UCX_NET_DEVICES=rxe0:1 UCX_TLS=rc_v,ud_v,self UCX_IB_GID_INDEX=$index UCX_IB_ASYNC_EVENTS=n UCX_VFS_ENABLE=n
    [ -e /dev/infiniband/uverbs0 ]
}

counter()
{
    cat "/sys/class/infiniband/rxe0/ports/1/hw_counters/$1"
}

# --- jobs ---

# "${on_node[@]}" COMMAND...: runs a command on a host of its own, as far as it can tell: nodeN, for rank N, which is in
# $NODE, or in $HOROVOD_RANK under hvdrun.
# shellcheck disable=SC2016 # for the shell inside
on_node=(unshare --uts sh -c 'hostname "node${NODE-$HOROVOD_RANK}" && exec "$@"' -)

# ranks CASE LIMIT [COMMAND...]: runs both ranks of rdma_rank on this guest as two nodes, at most LIMIT seconds each,
# under COMMAND. The outputs are /tmp/rank0 and /tmp/rank1, the exit statuses $status0 and $status1.
ranks()
{
    local case=$1 limit=$2 folder rank pids=()
    shift 2
    folder=$(mktemp -d /tmp/job.XXXXXX)
    for rank in 0 1; do
        run_rank $rank "$folder" "$case" "$limit" "$@" >/tmp/rank$rank 2>&1 &
        pids+=($!)
    done
    wait "${pids[0]}"
    status0=$?
    wait "${pids[1]}"
    status1=$?
}

# run_rank RANK FOLDER CASE LIMIT [COMMAND...]
run_rank()
{
    local rank=$1 folder=$2 case=$3 limit=$4
    shift 4
    NODE=$rank timeout --kill-after=2 "$limit" "${on_node[@]}" \
        "$@" "$programs/rdma/rdma_rank" "$rank" 2 "$folder" "$case"
}

both_end()
{
    [ "$status0" = 0 ] && [ "$status1" = 0 ]
}

# one_dies: rank 1 was killed, and rank 0 ended with an error that names it.
one_dies()
{
    [ "$status0" = 0 ] && [ "$status1" = 137 ]
}

# --- one guest ---

collectives()
{
    local before
    note 'collectives'
    before=$(counter rdma_sends)
    HOROVOD_LOG_LEVEL=info ranks collectives $((15 * times))
    pass_on /tmp/rank0
    both_end
    promise $? 'two ranks on two nodes end well' /tmp/rank0 /tmp/rank1
    grep -q 'between nodes: UCX' /tmp/rank0
    promise $? 'hvd chooses UCX for the nodes' /tmp/rank0
    [ $(($(counter rdma_sends) - before)) -gt 100 ]
    promise $? "the adapter has sent messages of RDMA ($before before, $(counter rdma_sends) after)"
}

bench()
{
    note 'hvdrun and hvd-bench'
    HVD_NET=ucx timeout --kill-after=2 $((15 * times)) "$prefix/bin/hvdrun" -np 2 \
        "${on_node[@]}" "$prefix/bin/hvd-bench" allreduce --sizes 8,64K --time 0.1 >/tmp/bench 2>&1 &&
        grep -q 'all results checked' /tmp/bench
    promise $? 'hvd-bench, installed and started by hvdrun, finds all results right' /tmp/bench
}

death()
{
    note 'death of a rank'
    ranks death $((10 * times))
    pass_on /tmp/rank0
    one_dies
    promise $? 'if a rank is killed, the other ends in seconds with an error that names it' /tmp/rank0 /tmp/rank1
}

# test_program NAME [ARGUMENT]: runs a test of collectives/transport/net over RDMA.
test_program()
{
    HVD_NET=ucx HVD_UCX_MODULE=$programs/../collectives/transport/net/ucx/hvd_ucx.so \
        timeout --kill-after=2 $((25 * times)) "$programs/collectives/transport/net/$1" "${@:2}" >/tmp/program 2>&1
    promise $? "$1 ends well over RDMA" /tmp/program
    pass_on /tmp/program
}

# Its ranks sleep after each message: a lost wake-up stops it until UCX's keepalive, after 20 s.
messages()
{
    note 'messages and wake-ups'
    test_program net_test alive
}

# The forged messages come from a process that knows the addresses, but not the secret.
forged()
{
    note 'forged messages'
    test_program stranger_test
}

forks()
{
    note 'fork'
    ranks fork $((15 * times))
    pass_on /tmp/rank0
    both_end
    promise $? 'ranks that fork end well' /tmp/rank0 /tmp/rank1
}

# Root may lock any amount of memory by CAP_IPC_LOCK, so the ranks give that up.
memlock()
{
    local little=(setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock prlimit --memlock=65536:65536)
    note 'locked memory'
    ranks collectives $((15 * times)) "${little[@]}"
    both_end && grep -q 'TCP, because rank 0 on node0 does not use UCX: a rank may lock only 64 KiB' /tmp/rank0
    promise $? 'with ulimit -l 64, the job uses TCP, a warning says why, and the results are right' /tmp/rank0 /tmp/rank1
    HVD_NET=ucx ranks collectives $((15 * times)) "${little[@]}"
    [ "$status0$status1" = 11 ] && grep -q 'hvd_init: a rank may lock only 64 KiB' /tmp/rank0
    promise $? 'with HVD_NET=ucx, too, hvd_init fails with this reason' /tmp/rank0 /tmp/rank1
}

alone()
{
    local case
    for case in $(word cases | tr , ' '); do
        if declare -F "$case" >/dev/null; then
            $case
        else
            promise 1 "guest.sh has the case $case" /dev/null
        fi
    done
}

# --- two guests ---

# half CASE LIMIT: runs this guest's rank of a job of both guests; its output is /tmp/half.
half()
{
    mkdir -p "/share/$1"
    run_rank $((guest - 1)) "/share/$1" "$1" "$2" >/tmp/half 2>&1
}

# meet NAME: waits until the other guest has come to the call with this name, too.
meet()
{
    local i
    : >"/share/met-$1-$guest"
    for ((i = 0; i < 50 * times; i++)); do
        [ ! -e "/share/met-$1-$((3 - guest))" ] || return 0
        sleep 0.3
    done
    return 1
}

pair()
{
    local before status
    meet start
    promise $? "guest $guest meets the other"
    note 'collectives of two guests'
    before=$(counter rdma_sends)
    HOROVOD_LOG_LEVEL=info half collectives $((25 * times))
    promise $? "the rank of guest $guest ends well" /tmp/half
    pass_on /tmp/half
    [ $(($(counter rdma_sends) - before)) -gt 50 ]
    promise $? "its adapter has sent messages of RDMA ($before before, $(counter rdma_sends) after)"
    note 'death of a rank in the other guest'
    half death $((15 * times))
    status=$?
    if [ "$guest" = 1 ]; then
        pass_on /tmp/half
        promise $status 'if the rank of guest 2 is killed, that of guest 1 ends with an error that names it' /tmp/half
    fi
    meet died
    note 'loss of the other guest'
    if [ "$guest" = 2 ]; then
        half endless $((15 * times)) &
        sleep 8
        echo 'TAP # guest 2 stops without a word'
        echo 'TAP end'
        stty -F /dev/console sane # waits until the console has sent all that was written
        echo b >/proc/sysrq-trigger
        rest
    fi
    half endless $((30 * times))
    status=$?
    pass_on /tmp/half
    promise $status 'if guest 2 stops, the rank of guest 1 ends with an error that names rank 1' /tmp/half
}

# --- main ---

mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
ulimit -l unlimited
ulimit -c 0
echo # ends the line of the firmware
make_adapter
promise $? "guest $guest, Linux $(uname -r), has an RDMA adapter of rdma_rxe"
$mode
echo 'TAP end'
turn_off
