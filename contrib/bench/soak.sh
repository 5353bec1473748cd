#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs as many steps as a day of training has: gradients of a small model, and between them all other
# collectives, messages, process sets that come and go, and join. Checks every result, and whether memory,
# descriptors or threads grow. Prints the progress twenty times, and a verdict.
#
# usage: soak.sh BUILD [STEPS [LAYOUT]]
# BUILD was configured with -Dbench=true or -Dtests=true. STEPS: default 250000, about 3 steps a second for a
# day. LAYOUT: ranks of each node, default 2 (1,1: two nodes, which are both on this machine).
set -euo pipefail

bench=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -ge 1 ] || { sed -n '3,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 2; }
build=$(realpath "$1") steps=${2:-250000} layout=${3:-2}
[[ $steps =~ ^[1-9][0-9]*$ ]] || { echo "soak.sh: STEPS '$steps': expected a number above 0" >&2 && exit 2; }
[[ $layout =~ ^[0-9]+(,[0-9]+)*$ ]] || {
    echo "soak.sh: layout '$layout': expected the number of ranks of each node, such as 2 or 1,1" >&2
    exit 2
}
program=$build/contrib/bench/soak_ranks
[ -x "$program" ] || { echo "there is no $program: configure with -Dbench=true" >&2 && exit 1; }
on_nodes=()
[[ $layout != *,* ]] || on_nodes=("$bench/on_nodes.sh" "$layout")
exec "$build/pmix_boot/hvdrun/hvdrun" -np "$(($(tr , + <<<"$layout")))" "${on_nodes[@]}" "$program" "$steps"
