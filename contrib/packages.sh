#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The only list of the Debian packages that hvd needs; the demo and the tests install from it.
#
# usage: packages.sh list GROUP...       print the names
#        packages.sh missing GROUP...    print the packages that are not installed
#        packages.sh install GROUP...    install the missing packages; needs root only if some are
#                                        missing
# Groups: build (to compile), cluster (contrib/cluster), torch (to train with Debian's PyTorch),
#         test (tests/run.sh), engines (tests/run.sh engines), bench (contrib/bench: Open MPI, and tools to build Horovod),
#         distros (tests/run.sh distros), rdma (tests/run.sh rdma), deb, rpm and wheel (contrib/packaging)
# A name may be "NEW|OLD" if releases differ: the first that the release has is used.
set -euo pipefail

group_packages()
{
    case $1 in
    build) echo gcc libc6-dev meson pkg-config libhwloc-dev libpmix-dev libucx-dev libsodium-dev \
        libslurm-dev libyaml-dev scdoc ;;
    cluster) echo munge slurmctld slurmd slurm-client slurm-wlm-basic-plugins iproute2 mount \
        util-linux procps ;;
    torch) echo python3 python3-torch python3-numpy python3-cloudpickle python3-sklearn ;;
    test) echo git node-d3 chromium clang clang-format clang-tidy cppcheck 'libclang-rt-dev|libclang-rt-14-dev' shellcheck strace openmpi-bin \
        libopenmpi-dev python3-venv python3-wheel python3-mpi4py binutils libquadmath0 environment-modules scdoc mandoc \
        bash-completion zsh gnupg man-db lua5.3 lua-filesystem lua-json lua-posix lua-term ;; # Lua: for tests/lmod_env.sh
    bench) echo g++ make cmake python3-dev python3-venv python3-wheel \
        python3-cffi python3-matplotlib python3-psutil python3-yaml python3-packaging libtorch-dev \
        pybind11-dev \
        openmpi-bin libopenmpi-dev ;;
    engines) echo default-jre-headless ;; # for Spark
    distros) echo debootstrap ;;
    rdma) echo qemu-system-x86 busybox-static kmod xz-utils zstd iproute2 ibverbs-providers ;;
    deb) echo git build-essential debhelper lintian node-d3 scdoc python3 ;;
    rpm) echo git rpm rpmlint scdoc python3 ;;
    wheel) echo git node-d3 python3-venv make patch autoconf automake libtool dpkg-dev libibverbs-dev ;;
    *) echo "packages.sh: no group $1: build, cluster, torch, test, engines, bench, distros, rdma, deb, rpm, wheel" >&2 && return 1 ;;
    esac
}

list()
{
    local group
    [ $# -gt 0 ] || { echo 'packages.sh: no group given' >&2 && return 1; }
    for group in "$@"; do
        group_packages "$group" | tr ' ' '\n'
    done
}

# first_that QUESTION NEW|OLD: prints the first name for which the function answers yes, if any.
first_that()
{
    local names name
    IFS='|' read -ra names <<<"$2"
    for name in "${names[@]}"; do
        if "$1" "$name"; then
            echo "$name"
            return
        fi
    done
    return 1
}

is_installed()
{
    [ "$(dpkg-query -Wf '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

is_known()
{
    apt-cache show "$1" >/dev/null 2>&1
}

# Prints the missing packages; the last name if apt knows none, because it has no lists yet.
missing()
{
    local package
    list "$@" | while read -r package; do
        first_that is_installed "$package" >/dev/null || first_that is_known "$package" ||
            echo "${package##*|}"
    done
}

# Keeps services from starting during the installation: Slurm and munge run only in clusters.
refuse_services()
{
    local policy=/usr/sbin/policy-rc.d
    [ ! -e $policy ] || return 0
    # shellcheck disable=SC2064
    trap "rm -f $policy" EXIT
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod 755 $policy
}

install_missing()
{
    local packages
    list "$@" >/dev/null
    mapfile -t packages < <(missing "$@")
    [ ${#packages[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ]; then
        echo "missing packages; as root: apt-get install ${packages[*]}" >&2
        return 1
    fi
    refuse_services
    export DEBIAN_FRONTEND=noninteractive
    apt-get update --quiet=2 || echo 'apt-get update failed; using the present package lists' >&2
    mapfile -t packages < <(missing "$@") # with names from the new lists
    apt-get install --quiet=2 --yes --no-install-recommends "${packages[@]}" </dev/null
}

command=${1-}
[ $# = 0 ] || shift
case $command in
list) list "$@" ;;
missing) missing "$@" ;;
install) install_missing "$@" ;;
*) sed -n '3,12s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
