#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The cluster's beginning and end: it leaves nothing, also after a failed start and a killed test.
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/machine.sh"

hosts_of()
{
    timeout -k 5 "$limit" "$cluster" run --dir "$work/c$1" srun -N2 hostname | sort | paste -sd ' '
}

# Each kind of thing that could be left is seen where it is left.
test_the_test()
{
    local pid group=/sys/fs/cgroup/cpuset
    touch /dev/shm/left
    complains 'a file in /dev/shm is seen' '^left: /dev/shm/left$' machine_is_clean
    rm /dev/shm/left
    coproc cat
    pid=$COPROC_PID
    echo runs >&"${COPROC[1]}"
    read -r <&"${COPROC[0]}"
    complains 'a process is seen' '^left: .* cat$' machine_is_clean
    kill "$pid"
    wait "$pid"
    mount -t tmpfs none /tmp
    complains 'a mount is seen' '^left: .* /tmp .* tmpfs' machine_is_clean
    umount /tmp
    ip link add left type bridge
    complains 'a link is seen' '^left: left$' machine_is_clean
    ip link del left
    [ -d "$group" ] || group=/sys/fs/cgroup
    mkdir "$group/hvd-$(checksum 1)-n1"
    complains 'a cgroup is seen' '^left: .*/hvd-[0-9]*-n1$' machine_is_clean
    rmdir "$group/hvd-$(checksum 1)-n1"
    succeeds 'without them nothing is seen' machine_is_clean
}

test_refusals()
{
    local copy=$work/tools
    cp -r "$(dirname "$cluster")" "$copy"
    complains 'without root, up says so' 'needs root.*nobody' \
        setpriv --reuid 65534 --clear-groups "$copy/cluster" up --dir "$work/c1"
    complains 'without root, down says so' 'needs root' \
        setpriv --reuid 65534 --clear-groups "$copy/cluster" down --dir "$work/c1"
    complains 'without Slurm, up names the packages' 'apt-get install.* slurmctld' \
        unshare --mount sh -c 'mount -t tmpfs none /usr/sbin && "$@"' sh \
        "$cluster" up --dir "$work/c1"
    complains 'without namespaces, up says so' 'cannot create namespaces.*--privileged' \
        setpriv --bounding-set -sys_admin "$cluster" up --dir "$work/c1"
    complains 'a directory in /tmp is refused' 'own /tmp' "$cluster" up --dir /tmp/c1
    complains 'run without a cluster says so' 'no cluster in' "$cluster" run --dir "$work/c1" true
    complains 'status without a cluster says so' 'no cluster in' "$cluster" status --dir "$work/c1"
    complains 'an unknown option is refused' 'unknown option --fast' up 1 --fast yes
    complains 'a number is checked' 'needs a number' up 1 --gpus many
    succeeds 'all this has left nothing' machine_is_clean
}

test_life()
{
    succeeds 'up' up 1
    complains 'up where one runs says so' 'exists' up 1
    prints 'the first runs steps' '^n1 n2$' hosts_of 1
    succeeds 'up of a second, beside the first' up 2
    prints 'the second runs steps' '^n1 n2$' hosts_of 2
    succeeds 'down of the first' down 1
    complains 'the second is seen, and nothing of the first' "^left: $work/c2\$" machine_is_clean
    fails 'not even a process' grep -F "$work/c1/" "$work/processes"
    prints 'the second goes on' '^n1 n2$' hosts_of 2
    succeeds 'down of the second' down 2
    prints 'down again does nothing' 'nothing in' down 2
    succeeds 'both have left nothing' machine_is_clean
}

# without COMMAND...: where Slurm lacks its plugins for PMIx and, if it starts so, for cgroups; and
# no cgroups are mounted.
without()
{
    local plugins
    plugins=$(dirname "$(find /usr/lib* -name mpi_pmi2.so -path '*slurm*' -print -quit)")
    cp -a "$plugins" "$work/plugins"
    rm -f "$work"/plugins/{mpi_pmix,cgroup_v2}*
    case $(slurmd -V) in
    *' 22.'* | *' 23.02'*) ;; # slurmd wants one, though it does not use it then
    *) rm -f "$work"/plugins/cgroup_v1* ;;
    esac
    # shellcheck disable=SC2016 # expands there
    unshare --mount sh -c 'mount --bind "$1" "$2" && mount -t tmpfs none /sys/fs/cgroup && shift 2 &&
        exec "$@"' sh "$work/plugins" "$plugins" "$@"
}

test_with_less()
{
    complains 'without cgroups, --constrain says what it needs and what there is' \
        'needs cgroup v1 with cpuset .*: found tmpfs .* without cpuset' \
        without "$cluster" up --dir "$work/c1" --constrain
    rm -r "$work/plugins"
    prints 'without PMIx and cgroups, up says that it lacks PMIx, and goes on' \
        'no PMIx plugin \(srun --mpi=list: none .*rendezvous service' \
        without "$cluster" up --dir "$work/c1"
    prints 'and steps run' '^n1 n2$' hosts_of 1
    succeeds 'down' down 1
}

test_down_with_jobs()
{
    local constrain=()
    ! "$cluster" check --constrain >/dev/null 2>&1 ||
        constrain=(--constrain --sockets 1 --cores 1)
    succeeds 'up again' up 1 "${constrain[@]}"
    succeeds 'a daemon escapes from its step' "$cluster" run --dir "$work/c1" srun -N2 setsid sh -c \
        'sleep infinity >/dev/null 2>&1 & touch /dev/shm/left /tmp/left'
    succeeds 'down with a daemon of a job' down 1
    succeeds 'it has left nothing' machine_is_clean
}

test_failed_start()
{
    mkdir "$work/stack"
    echo 'required /nonesuch.so' >"$work/stack/wrong.conf"
    complains 'a wrong slurm.conf shows in the log' 'Colour' up 1 --conf 'Colour=blue'
    complains 'a plugin that cannot load shows in the log' 'nonesuch' up 1 --plugstack "$work/stack"
    complains 'a prefix that nodes do not see is refused' 'nodes have their own /tmp' up 1 --prefix /tmp
    complains 'a prefix without the plugin says so' 'no spank_hvd.so' up 1 --prefix "$work/stack"
    complains 'up gives up when its time is over' 'not ready after 0' up 1 --wait 0
    succeeds 'failed starts have left nothing' machine_is_clean
}

# What `meson test` does to a test at its time limit. Everything of the test has the end of a pipe
# open, at the other end of which we read: a line when it is at work, the end when all have ended.
# shellcheck disable=SC2016 # expands there
kill_a_test()
{
    local pid
    mkfifo "$work/alive"
    setsid bash -c '. "$1"; work_parent=$2; start_cluster; echo "$work" >&9; as_user sleep infinity' \
        bash "$tests_dir/harness.sh" "$work" 9>"$work/alive" &
    pid=$!
    disown
    exec 8<"$work/alive"
    read -r killed <&8
    kill -KILL -- "-$pid"
}

# By its descriptor: opening the pipe again would wait for a writer, of which none may be left.
read_to_the_end()
{
    cat <&8
}

test_killed_test()
{
    local killed=''
    succeeds 'a test is killed' kill_a_test
    prints 'it had a directory' "^$work/hvd-test" echo "$killed"
    succeeds 'its processes end' read_to_the_end
    fails 'its directory goes' test -e "$killed"
    succeeds 'nothing is left of it' machine_is_clean
}

enter_machine
test_the_test
test_refusals
test_life
test_with_less
test_down_with_jobs
test_failed_start
test_killed_test
tap_done
