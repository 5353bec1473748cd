#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The output of hvd-info is exactly the text in expected/, for every line of golden_cases.txt.
# usage: golden.sh HVD_INFO SOURCE_ROOT [--update]
# Topologies of other projects are not in this tree; their cases are skipped unless ../shared has them.
set -u
info=$1
root=$2
update=${3-}
here=$root/tests/gpu_binding
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin
found=$work/found

find_topology() {
    for folder in "$here/topologies" "$root/../shared/topologies"; do
        if [ -e "$folder/$1.xml" ]; then
            echo "$folder/$1.xml"
            return
        fi
    done
}

check() {
    name=$1
    file=$(find_topology "$2")
    shift 2
    if [ -z "$file" ]; then
        tap_skip "golden_$name" 'the topology is not in ../shared/topologies'
        return
    fi
    "$info" --topology "$file" "$@" >"$found" 2>&1
    if [ "$update" = --update ]; then
        cp "$found" "$here/expected/$name.txt"
    fi
    diff -u "$here/expected/$name.txt" "$found" >"$work/out" && [ -s "$found" ]
    report $? "golden_$name"
}

while IFS='|' read -r name topology arguments; do
    case $name in
    '#'* | '') continue ;;
    esac
    # The arguments of a case are split at blanks.
    # shellcheck disable=SC2086
    check $name $topology $arguments
done <"$here/golden_cases.txt"
tap_done
