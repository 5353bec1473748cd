# SPDX-License-Identifier: Apache-2.0
# The first process of the controller and of each node, each in its own namespaces.
# shellcheck shell=bash disable=SC2154 # settings come from `cluster`, which reads this file

# A shell makes background commands ignore SIGINT and SIGQUIT, which jobs would inherit: reset both.
new_namespaces=(env --default-signal=INT --default-signal=QUIT
    unshare --mount --uts --ipc --net --pid --fork --kill-child)

# Mounts this node's part of each cgroup v1 hierarchy in place of the whole hierarchy.
confine_cgroups()
{
    local controller part file
    for controller in $cgroup_controllers; do
        part=/sys/fs/cgroup/$controller/$(cgroup_name "$1")
        mkdir -p "$part"
        if [ "$controller" = cpuset ]; then
            for file in cpuset.cpus cpuset.mems; do
                cat "/sys/fs/cgroup/cpuset/$file" >"$part/$file"
            done
        fi
        mount --bind "$part" "/sys/fs/cgroup/$controller"
    done
}

# Mounts a new /sys, which shows the network namespace in which it is mounted, and moves the cgroups to it.
mount_sys()
{
    mount --rbind /sys/fs/cgroup "$dir/run/cgroup"
    mount -t sysfs sysfs /sys
    mount --move "$dir/run/cgroup" /sys/fs/cgroup
}

isolate()
{
    echo "$1" >/proc/sys/kernel/hostname
    mount -t tmpfs -o mode=1777 tmpfs /tmp
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    mount --bind "$dir/machine-etc" /etc
    mount_sys
    mount -t proc proc /proc
    ip link set lo up
}

# Reaps orphans, as pid 1 must: the shell does so while it waits for a child that never ends.
collect_the_dead()
{
    while :; do
        sleep infinity &
        wait $! || :
    done
}

# fails_as NAME: if this shell ends, records NAME, so that `up` shows the right log.
fails_as()
{
    failed_part=$1
    trap 'echo "$failed_part" >>"$dir/run/failed"' EXIT
}

node_main()
{
    local name=$1 pid
    fails_as "$name"
    read -r pid _ </proc/self/stat # /proc is still that of the machine
    record_process "$pid" "$dir/run/$name"
    isolate "$name"
    [ "$constrain" = no ] || confine_cgroups "$name"
    await ip link set eth0 up 2>/dev/null
    ip addr add "$network.${name#n}/24" dev eth0
    await test -S "$dir/munge/socket"
    slurmd -N "$name"
    collect_the_dead
}

start_node()
{
    "${new_namespaces[@]}" "$self" _node --dir "$dir" "$1" >>"$dir/log/$1.log" 2>&1 &
    node_pids[$1]=$!
}

connect_node()
{
    ip link add "to-$1" type veth peer name eth0 netns "${node_pids[$1]}"
    ip link set dev "to-$1" master br up
}

controller_main()
{
    local name pid
    declare -A node_pids
    fails_as controller
    read -r pid _ </proc/self/stat
    record_process "$pid" "$dir/run/ctl"
    living_process "$dir/run/holder" >/dev/null # fails if the holder died before --kill-child took effect
    for name in $(node_names); do
        start_node "$name"
    done
    # Nodes must have started before isolate: it mounts another /proc, which hides their ids, and another /tmp, where
    # this script may lie.
    for name in $(node_names); do
        await test -s "$dir/run/$name"
    done
    isolate ctl
    munged --force --num-threads=2 --key-file="$dir/munge/key" --socket="$dir/munge/socket" \
        --pid-file="$dir/run/munged.pid" --log-file="$dir/log/munged.log" \
        --seed-file="$dir/munge/seed"
    ip link add name br type bridge
    ip addr add "$network.254/24" dev br
    ip link set dev br up
    for name in $(node_names); do
        connect_node "$name"
    done
    slurmctld
    collect_the_dead
}
