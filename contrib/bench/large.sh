#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs all collectives and messages with tensors of many GiB of bytes, so that numbers of elements exceed 2^31
# and 2^32, and compares every byte of the results. Prints a line for each, and a verdict.
#
# usage: large.sh BUILD MIB [LAYOUT [REAL [OPERATION...]]]
# BUILD was configured with -Dbench=true. LAYOUT: ranks of each node, default 2 (1,1: two nodes, which are both
# on this machine and communicate over TCP). REAL: the only rank with memory for its results, default -1: all
# ranks. The job needs MIB of memory for each such rank, and half a GiB more.
set -euo pipefail

bench=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -ge 2 ] || { sed -n '3,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 2; }
build=$(realpath "$1") mib=$2 layout=${3:-2} real=${4:--1}
shift $(($# < 4 ? $# : 4))
[[ $mib =~ ^[1-9][0-9]*$ ]] || { echo "large.sh: MIB '$mib': expected a number above 0" >&2 && exit 2; }
[[ $layout =~ ^[0-9]+(,[0-9]+)*$ ]] || {
    echo "large.sh: layout '$layout': expected the number of ranks of each node, such as 2 or 1,1" >&2
    exit 2
}
[[ $real =~ ^(-1|[0-9]+)$ ]] || { echo "large.sh: REAL '$real': expected a rank, or -1 for all" >&2 && exit 2; }
program=$build/contrib/bench/large_ranks hvdrun=$build/pmix_boot/hvdrun/hvdrun
[ -x "$program" ] || { echo "there is no $program: configure with -Dbench=true" >&2 && exit 1; }
ranks=$(($(tr , + <<<"$layout")))
needed=$((mib * (real < 0 ? ranks : 1) + 512))
available=$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1024))
[ "$available" -ge "$needed" ] || {
    echo "this needs $needed MiB of memory, and $available MiB are available: give a smaller MIB, or REAL=0" >&2
    exit 1
}
on_nodes=()
[[ $layout != *,* ]] || on_nodes=("$bench/on_nodes.sh" "$layout")
exec "$hvdrun" -np "$ranks" "${on_nodes[@]}" "$program" "$mib" "$real" "$@"
