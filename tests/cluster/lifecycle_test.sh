#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The cluster's beginning and end: it leaves nothing, also after a signal, a crash, a failed start.
. "$(dirname "$0")/harness.sh"

# What the names of a cluster's cgroups are made from.
checksum()
{
    printf %s "$work/c$1" | cksum | cut -d ' ' -f 1
}

# The machine as it must be found again. Left out is what others may change meanwhile, except
# where it carries a mark of ours: our directory, our cgroup names, our job user's id.
machine()
{
    cat /etc/passwd /etc/group /proc/sys/kernel/hostname
    ls /run/netns 2>/dev/null
    ip -brief link | cut -d ' ' -f 1
    grep "$work" /proc/self/mountinfo
    find /sys/fs/cgroup -maxdepth 2 | grep -E "/hvd-($(checksum 1)|$(checksum 2))-"
    find /dev/shm /tmp -uid 61000
    find "$work" -maxdepth 1 -name 'c[0-9]'
    pgrep -af "$work/c[0-9]"
}

# Namespaces that live in a cluster, as seen in its processes; empty when all are gone.
namespaces_of()
{
    local name pid
    for name in ctl n1 n2; do
        read -r pid _ <"$1/run/$name" && readlink "/proc/$pid/ns/net" "/proc/$pid/ns/mnt"
    done
}

living_namespaces()
{
    local known
    known=$(readlink /proc/[0-9]*/ns/net /proc/[0-9]*/ns/mnt 2>/dev/null)
    grep -Fx "$1" <<<"$known"
}

machine_is_clean()
{
    local now
    now=$(machine)
    [ "$now" = "$before" ] || diff <(echo "$before") <(echo "$now")
}

up()
{
    "$cluster" up --dir "$work/c$1" "${@:2}"
}

down()
{
    "$cluster" down --dir "$work/c$1"
}

hosts_of()
{
    timeout -k 5 "$limit" "$cluster" run --dir "$work/c$1" srun -N2 hostname | sort | paste -sd ' '
}

# up_and_signal SIGNAL FILE: starts a cluster and sends the signal as soon as FILE exists in its
# directory. Prints the exit status of `up`.
up_and_signal()
{
    local status=0 pid
    env --default-signal=INT "$cluster" up --dir "$work/c1" >"$work/up.log" 2>&1 &
    pid=$!
    until [ -e "$work/c1/$2" ] || ! kill -0 $pid 2>/dev/null; do
        sleep 0.002
    done
    kill "-$1" $pid
    wait $pid || status=$?
    echo "$status"
}

# Ready before the signal came is no failure of the promise, but shows nothing.
interrupted_at()
{
    local status
    status=$(up_and_signal INT "$2")
    if [ "$status" = 0 ]; then
        down 1
        tap_skip "$1" 'the cluster was faster than the signal'
    else
        prints "$1" '^130$' echo "$status"
    fi
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
    complains 'without namespaces, up says so' 'no namespaces.*--privileged' \
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
    local namespaces
    succeeds 'up' up 1
    complains 'up where one runs says so' 'exists' up 1
    prints 'the first runs steps' '^n1 n2$' hosts_of 1
    namespaces=$(namespaces_of "$work/c1")
    prints 'its namespaces can be seen' 'net' living_namespaces "$namespaces"
    succeeds 'up of a second, beside the first' up 2
    prints 'the second runs steps' '^n1 n2$' hosts_of 2
    succeeds 'down of the first' down 1
    fails 'its namespaces are gone' living_namespaces "$namespaces"
    prints 'the second goes on' '^n1 n2$' hosts_of 2
    succeeds 'down of the second' down 2
    prints 'down again does nothing' 'nothing in' down 2
    succeeds 'both have left nothing' machine_is_clean
}

# What `cluster up` says with Slurm's plugins for MPI but those of PMIx, and what a step prints then.
without_pmix()
{
    local plugins
    plugins=$(dirname "$(find /usr/lib* -name mpi_pmi2.so -path '*slurm*' -print -quit)")
    cp -a "$plugins" "$work/plugins"
    rm -f "$work"/plugins/mpi_pmix*
    # shellcheck disable=SC2016 # expands there
    unshare --mount sh -c 'mount --bind "$1" "$2" && shift 2 && exec "$@"' sh \
        "$work/plugins" "$plugins" "$cluster" up --dir "$work/c1"
}

test_without_pmix()
{
    prints 'without the PMIx plugin, up says so and goes on' \
        'no PMIx plugin \(srun --mpi=list: none .*--hvd=elastic' without_pmix
    prints 'and steps run' '^n1 n2$' hosts_of 1
    succeeds 'down' down 1
}

test_down_with_jobs()
{
    succeeds 'up again' up 1
    succeeds 'a daemon escapes from its step' "$cluster" run --dir "$work/c1" \
        srun -N2 setsid sh -c 'sleep 1000 >/dev/null 2>&1 & touch /dev/shm/left /tmp/left'
    succeeds 'down with a daemon of a job' down 1
    succeeds 'it has left nothing' machine_is_clean
}

test_failed_start()
{
    complains 'a wrong slurm.conf shows in the log' 'Colour' up 1 --conf 'Colour=blue'
    complains 'a plugin that cannot load shows in the log' 'nonesuch' up 1 --plugstack "$work/stack"
    complains 'a prefix without the plugin says so' 'no spank_hvd.so' up 1 --prefix "$work"
    complains 'up gives up when its time is over' 'not ready after 0' up 1 --wait 0
    succeeds 'failed starts have left nothing' machine_is_clean
}

test_signals()
{
    local moment
    for moment in '' machine-etc/passwd run/holder run/ctl run/n1 run/munged.pid; do
        interrupted_at "Ctrl-C when /$moment is made ends up" "$moment"
        succeeds 'and leaves nothing' machine_is_clean
    done
}

test_crashes()
{
    local moment
    for moment in '' settings run/holder run/n1 run/slurmctld.pid; do
        tap_note "kill -9 when /$moment is made: status $(up_and_signal KILL "$moment")"
        succeeds "down after a crash when /$moment is made" down 1
        succeeds 'leaves nothing' machine_is_clean
    done
}

# What `meson test` does to a test at its time limit.
# shellcheck disable=SC2016 # expands there
kill_a_test()
{
    local pid
    setsid bash -c '. "$1"; start_cluster; echo "$work" >"$2/work"; as_user sleep 1000' \
        bash "$tests_dir/harness.sh" "$work" &
    pid=$!
    disown
    until [ -s "$work/work" ]; do
        sleep 0.05
    done
    kill -KILL -- "-$pid"
}

test_killed_test()
{
    succeeds 'a test is killed' kill_a_test
    # shellcheck disable=SC2016 # expands there
    succeeds 'what it made goes nevertheless' timeout 30 bash -c \
        'while [ -e "$(cat "$1/work")" ]; do sleep 0.1; done' bash "$work"
}

make_work
reason=$("$cluster" check 2>&1) || tap_skip_all "$reason"
mkdir "$work/stack"
echo 'required /nonesuch.so' >"$work/stack/wrong.conf"
before=$(machine)
test_refusals
test_life
test_without_pmix
test_down_with_jobs
test_failed_start
test_signals
test_crashes
test_killed_test
tap_done
