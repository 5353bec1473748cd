# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by scripts whose arguments are BUILD PREFIX [NODESxRANKS...], with the name of a program of
# contrib/bench in rank_program. Checks the arguments, and leaves the layouts as arguments. Sets program (the
# path of the program), prefix, library (the folder of libhvd.so), cluster (the command) and work (a folder).
# bring_up starts a throw-away cluster in $work/cluster; it and $work are gone when the script ends.

bench=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
script=$(basename "$0")
cluster=$bench/../cluster/cluster
[ $# -ge 2 ] || { sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0" && exit 2; }
program=$(realpath "$1")/contrib/bench/${rank_program:?}
prefix=$(realpath "$2")
shift 2
[ -x "$program" ] || { echo "$script: there is no $program: configure with -Dbench=true" >&2 && exit 1; }
for layout; do
    [[ $layout =~ ^[1-9][0-9]*x[1-9][0-9]*$ ]] || {
        echo "$script: layout '$layout': expected NODESxRANKS, such as 2x4" >&2
        exit 2
    }
done
library=$(find "$prefix" -name libhvd.so -print -quit)
[ -n "$library" ] || { echo "$script: there is no libhvd.so in $prefix: run meson install" >&2 && exit 1; }
library=$(dirname "$library")
work=$(mktemp -d "/var/tmp/hvd-${script%.sh}.XXXXXX")
chmod 755 "$work"

# An interrupted `up` removes its part of the cluster before it ends.
clean_up()
{
    trap '' INT TERM HUP
    [ -z "$up" ] || { kill "$up" 2>/dev/null && wait "$up"; } || :
    "$cluster" down --dir "$work/cluster" >/dev/null 2>&1 || :
    rm -rf "$work"
}

# bring_up NODES OPTION...: runs cluster up in the background, because a signal ends this script at once.
bring_up()
{
    "$cluster" up "$1" --dir "$work/cluster" --prefix "$prefix" "${@:2}" >"$work/up" 2>&1 &
    up=$!
    wait "$up" || { up= && cat "$work/up" >&2 && exit 1; }
    up=
}

up=
trap clean_up EXIT
