# SPDX-License-Identifier: Apache-2.0
# Shell functions for tests that a cluster leaves nothing behind. A test sources this file after harness.sh.
# shellcheck shell=bash disable=SC2154 # work, cluster and tests_dir come from harness.sh

# Runs the test file again in new namespaces, as on an idle machine: all processes, mounts, links and files in
# /tmp, /dev/shm and /run that it sees are its own, whatever else runs on this machine. The root file system is
# read-only there, except $work: a cluster that writes outside its directory does not start. A checkout in /tmp
# keeps its path.
enter_machine()
{
    local reason
    if [ -n "${HVD_TEST_MACHINE-}" ]; then
        work=$HVD_TEST_MACHINE
        close_machine || tap_skip_all 'cannot mount in a namespace of its own'
        before=$(machine)
        return
    fi
    make_work
    reason=$("$cluster" check 2>&1) || tap_skip_all "$reason"
    HVD_TEST_MACHINE=$work unshare --mount --uts --ipc --net --pid --fork --kill-child \
        --mount-proc "$0"
    exit
}

close_machine()
{
    local place checkout
    checkout=$(cd "$tests_dir/../.." && pwd)
    mount --bind "$work" "$work" && mkdir "$work/checkout" &&
        mount --bind "$checkout" "$work/checkout" && mount -o remount,bind,ro / || return
    for place in /tmp /dev/shm /run; do
        mount -t tmpfs -o mode=1777 tmpfs "$place" || return
    done
    [ -e "$checkout" ] || { mkdir -p "$checkout" && mount --bind "$work/checkout" "$checkout"; }
}

# Prints the number in the names of a cluster's cgroups.
checksum()
{
    printf %s "$work/c$1" | cksum | cut -d ' ' -f 1
}

# Lists everything on this machine that a cluster could leave behind, without this shell and its commands.
# A process in brackets has already freed its memory and closed its files: it ends as soon as it gets the CPU.
machine()
{
    ps -e -o stat=,args= >"$work/processes"
    grep -vF -e "$0" -e 'ps -e -o' "$work/processes" | grep -v -e '^Z' -e '^[^ ]* *\[[^]]*\]$'
    cat /proc/self/mountinfo /proc/sys/kernel/hostname /proc/sysvipc/{shm,sem,msg}
    ip -brief link | cut -d ' ' -f 1
    find /sys/fs/cgroup -maxdepth 3 \( -name "hvd-$(checksum 1)-*" -o -name "hvd-$(checksum 2)-*" \)
    find /tmp /dev/shm /run -xdev -path /run/mount -prune -o -print # /run/mount: mount(8) writes there
    find "$work" -maxdepth 1 \( -name 'c[0-9]' -o -name 'hvd-test.*' \)
}

# Prints what exists now and did not before; fails if there is anything. (Mounts may disappear: the kernel removes
# a mount when its directory is removed outside.)
machine_is_clean()
{
    local now left
    now=$(machine)
    left=$(grep -vxF -e "$before" <<<"$now")
    [ -z "$left" ] || { sed 's/^/left: /' <<<"$left" && return 1; }
}

up()
{
    "$cluster" up --dir "$work/c$1" "${@:2}"
}

down()
{
    "$cluster" down --dir "$work/c$1"
}
