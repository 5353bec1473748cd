#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Start and end of the cluster: it leaves nothing behind, also after a failed start and a killed test.
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/machine.sh"

hosts_of()
{
    timeout -k 5 "$limit" "$cluster" run --dir "$work/c$1" srun -N2 hostname | sort | paste -sd ' '
}

# Checks that machine_is_clean finds each kind of leftover.
test_the_test()
{
    local pid group=/sys/fs/cgroup/cpuset
    touch /dev/shm/left
    complains 'a file in /dev/shm is found' '^left: /dev/shm/left$' machine_is_clean
    rm /dev/shm/left
    coproc cat
    pid=$COPROC_PID
    echo runs >&"${COPROC[1]}"
    read -r <&"${COPROC[0]}"
    complains 'a process is found' '^left: .* cat$' machine_is_clean
    kill "$pid"
    wait "$pid"
    mount -t tmpfs none /tmp
    complains 'a mount is found' '^left: .* /tmp .* tmpfs' machine_is_clean
    umount /tmp
    ip link add left type bridge
    complains 'a network link is found' '^left: left$' machine_is_clean
    ip link del left
    [ -d "$group" ] || group=/sys/fs/cgroup
    mkdir "$group/hvd-$(checksum 1)-n1"
    complains 'a cgroup is found' '^left: .*/hvd-[0-9]*-n1$' machine_is_clean
    rmdir "$group/hvd-$(checksum 1)-n1"
    succeeds 'a clean machine is found clean' machine_is_clean
}

test_refusals()
{
    local copy=$work/tools
    cp -r "$(dirname "$cluster")" "$copy"
    complains 'up without root is an error' 'needs root.*nobody' \
        setpriv --reuid 65534 --clear-groups "$copy/cluster" up --dir "$work/c1"
    complains 'down without root is an error' 'needs root' \
        setpriv --reuid 65534 --clear-groups "$copy/cluster" down --dir "$work/c1"
    complains 'up without Slurm names the packages' 'apt-get install.* slurmctld' \
        unshare --mount sh -c 'mount -t tmpfs none /usr/sbin && "$@"' sh \
        "$cluster" up --dir "$work/c1"
    complains 'up without namespaces is an error' 'cannot create namespaces.*--privileged' \
        setpriv --bounding-set -sys_admin "$cluster" up --dir "$work/c1"
    complains 'a directory in /tmp is rejected' 'own /tmp' "$cluster" up --dir /tmp/c1
    complains 'run without a cluster is an error' 'no cluster in' "$cluster" run --dir "$work/c1" true
    complains 'status without a cluster is an error' 'no cluster in' "$cluster" status --dir "$work/c1"
    complains 'an unknown option is rejected' 'unknown option --fast' up 1 --fast yes
    complains 'a value that is not a number is rejected' 'needs a number' up 1 --gpus many
    succeeds 'these errors have left nothing' machine_is_clean
}

test_life()
{
    succeeds 'the first cluster starts' up 1
    complains 'up in the directory of a running cluster is an error' 'exists' up 1
    prints 'the first cluster runs steps' '^n1 n2$' hosts_of 1
    succeeds 'a second cluster starts beside the first' up 2
    prints 'the second cluster runs steps' '^n1 n2$' hosts_of 2
    succeeds 'the first cluster ends' down 1
    complains 'only the directory of the second cluster is left' "^left: $work/c2\$" machine_is_clean
    fails 'no process of the first cluster is left' grep -F "$work/c1/" "$work/processes"
    prints 'the second cluster still runs steps' '^n1 n2$' hosts_of 2
    succeeds 'the second cluster ends' down 2
    prints 'down again does nothing' 'nothing in' down 2
    succeeds 'both clusters have left nothing' machine_is_clean
}

# without COMMAND...: runs COMMAND without cgroups and without Slurm's PMIx plugins. Slurm's cgroup plugins are
# hidden, too, except one that older releases of slurmd need.
without()
{
    local plugins
    plugins=$(dirname "$(find /usr/lib* -name mpi_pmi2.so -path '*slurm*' -print -quit)")
    cp -a "$plugins" "$work/plugins"
    rm -f "$work"/plugins/{mpi_pmix,cgroup_v2}*
    case $(slurmd -V) in
    *' 22.'* | *' 23.02'*) ;; # slurmd needs a cgroup plugin, although it does not use it here
    *) rm -f "$work"/plugins/cgroup_v1* ;;
    esac
    # shellcheck disable=SC2016 # expands there
    unshare --mount sh -c 'mount --bind "$1" "$2" && mount -t tmpfs none /sys/fs/cgroup && shift 2 &&
        exec "$@"' sh "$work/plugins" "$plugins" "$@"
}

test_with_less()
{
    complains 'without cgroups, --constrain names what it needs and what it found' \
        'needs cgroup v1 with cpuset .*: found tmpfs .* without cpuset' \
        without "$cluster" up --dir "$work/c1" --constrain
    rm -r "$work/plugins"
    prints 'without PMIx and cgroups, up notes the lack of PMIx and succeeds' \
        'no PMIx plugin \(srun --mpi=list: none .*rendezvous service' \
        without "$cluster" up --dir "$work/c1"
    prints 'steps run without PMIx and cgroups' '^n1 n2$' hosts_of 1
    succeeds 'down succeeds' down 1
}

test_down_with_jobs()
{
    local constrain=()
    ! "$cluster" check --constrain >/dev/null 2>&1 ||
        constrain=(--constrain --sockets 1 --cores 1)
    succeeds 'a cluster starts again' up 1 "${constrain[@]}"
    succeeds 'a daemon escapes from its step' "$cluster" run --dir "$work/c1" srun -N2 setsid sh -c \
        'sleep infinity >/dev/null 2>&1 & touch /dev/shm/left /tmp/left'
    succeeds 'down ends a cluster with the daemon' down 1
    succeeds 'the cluster has left nothing' machine_is_clean
}

test_failed_start()
{
    mkdir "$work/stack"
    echo 'required /nonesuch.so' >"$work/stack/wrong.conf"
    complains 'up shows the error in a wrong slurm.conf' 'Colour' up 1 --conf 'Colour=blue'
    complains 'up shows a plugin that cannot be loaded' 'nonesuch' up 1 --plugstack "$work/stack"
    complains 'a prefix that nodes do not see is rejected' 'nodes have their own /tmp' up 1 --prefix /tmp
    complains 'a prefix without the plugin is rejected' 'no spank_hvd.so' up 1 --prefix "$work/stack"
    complains 'up fails at its time limit' 'not ready after 0' up 1 --wait 0
    succeeds 'failed starts have left nothing' machine_is_clean
}

# Kills a test as `meson test` does at its time limit. All processes of the test hold one end of a pipe open. This
# test reads the other end: a line when the test is at work, and the end of file when all processes have ended.
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

# Reads from the open descriptor. To open the pipe again would wait for a writer, and there may be none.
read_to_the_end()
{
    cat <&8
}

test_killed_test()
{
    local killed=''
    succeeds 'a test is killed' kill_a_test
    prints 'the killed test had a directory' "^$work/hvd-test" echo "$killed"
    succeeds 'its processes end' read_to_the_end
    fails 'its directory is removed' test -e "$killed"
    succeeds 'the killed test has left nothing' machine_is_clean
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
