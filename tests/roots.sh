# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Root directories of releases of Debian, made by debootstrap, for scripts that test in them.

# Prints the archive that this machine installs from; nothing if it is not a Debian, so debootstrap uses its default.
mirror()
{
    cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1
}

# in_root ROOT COMMAND...: runs COMMAND as root in that root directory, in new pid and mount namespaces; all its
# processes end with it. Only the variables of tests/run.sh are passed on.
in_root()
{
    local root=$1 variable
    local environment=(HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin)
    shift
    for variable in HVD_TEST_JOBS HVD_TEST_TIMES HVD_TEST_SEED; do
        [ -z "${!variable-}" ] || environment+=("$variable=${!variable}")
    done
    # shellcheck disable=SC2016 # for the shell inside
    unshare --mount --propagation private --pid --fork --kill-child bash -euc '
        mount --bind "$0" "$0"
        cd "$0"
        mkdir -p outside
        mount -t proc proc proc
        mount --rbind /sys sys
        mount --rbind /dev dev
        mount -t tmpfs tmpfs run
        mount -t tmpfs tmpfs dev/shm
        pivot_root . outside
        umount -l /outside
        exec env -i "$@"' "$root" "${environment[@]}" "$@"
}

# make_root ROOT NAME: makes the root of a release with its smallest set of packages.
make_root()
{
    local root=$1 name=$2
    rm -rf "$root.part"
    # shellcheck disable=SC2046 # no argument if empty
    debootstrap --variant=minbase "$name" "$root.part" $(mirror) &&
        apt-config dump | grep '^Acquire::' >"$root.part/etc/apt/apt.conf.d/99outside" &&
        mv "$root.part" "$root"
}

# Prints why this machine cannot have such roots, or nothing.
obstacle()
{
    local message
    if [ "$(id -u)" != 0 ]; then
        echo 'a root of another release needs root'
    elif ! message=$("$(dirname "${BASH_SOURCE[0]}")/../contrib/packages.sh" install distros 2>&1); then
        echo "no debootstrap: $(tail -n 1 <<<"$message")"
    elif ! message=$(unshare --mount --propagation private --pid --fork mount -t tmpfs tmpfs /mnt 2>&1); then
        echo "cannot make a mount namespace: $message"
    fi
}
