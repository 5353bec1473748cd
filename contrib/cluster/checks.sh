# SPDX-License-Identifier: Apache-2.0
# Checks whether a cluster can start on this machine. A failed check ends the script with the problem and the remedy.
# shellcheck shell=bash disable=SC2154 # settings come from `cluster`, which reads this file

check_packages()
{
    local entry missing=''
    for entry in munged:munge slurmctld:slurmctld slurmd:slurmd srun:slurm-client ip:iproute2 \
        nsenter:util-linux unshare:util-linux setpriv:util-linux mount:mount; do
        command -v "${entry%:*}" >/dev/null || missing+=" ${entry#*:}"
    done
    [ -z "$missing" ] || die_impossible "missing programs; on Debian: apt-get install$missing"
}

check_root()
{
    [ "$(id -u)" = 0 ] ||
        die_impossible "needs root to create namespaces; you are $(id -un): use sudo"
}

check_namespaces()
{
    local message
    message=$(unshare --mount --uts --ipc --net --pid --fork mount -t tmpfs none /tmp 2>&1) ||
        die_impossible "cannot create namespaces ($message); a container needs --privileged"
}

check_cgroups()
{
    local controller
    [ "$constrain" = yes ] || return 0
    for controller in $cgroup_controllers; do
        [ -d "/sys/fs/cgroup/$controller" ] ||
            die_impossible "--constrain needs cgroup v1 with $cgroup_controllers:" \
                "found $(stat -f -c %T /sys/fs/cgroup) in /sys/fs/cgroup without $controller"
    done
}

check_directory()
{
    case $dir/ in
    /tmp/* | /dev/shm/*) die "$dir: choose another directory, because nodes have their own /tmp" ;;
    esac
    [ ${#dir} -le 70 ] || die "$dir: the path is too long for a socket, at most 70 characters"
    if [ -e "$dir" ] || [ -L "$dir" ]; then
        die "$dir exists: a cluster runs there or has crashed; remove it by cluster down"
    fi
    [ ! -d "${dir%/*}/" ] || is_safe_place "$(dirname "$dir")" ||
        die "$dir: other users may write to a directory above it: choose another, such as one in /var/tmp"
}

# Warns if the kernel's table of neighbours may become full, because connections then time out. All network
# namespaces share the table, and each node may connect to every other.
tell_of_neighbours()
{
    local needed=$((nodes * (nodes + 1))) most
    most=$(cat /proc/sys/net/ipv4/neigh/default/gc_thresh3 2>/dev/null) || return 0
    [ "$most" -ge "$needed" ] || echo "cluster: $nodes nodes may need $needed entries in the kernel's table of" \
        "neighbours, which has $most, and connections then time out:" \
        "sysctl -w net.ipv4.neigh.default.gc_thresh3=$((2 * needed)) net.ipv4.neigh.default.gc_thresh2=$needed" >&2
}

check_machine()
{
    check_root
    check_packages
    check_namespaces
    check_cgroups
}
