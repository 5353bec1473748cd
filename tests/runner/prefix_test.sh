#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/run.sh installs only into a directory that it has made itself.
# usage: prefix_test.sh
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tests/tap.sh
. "$here/tap.sh"
tap_begin
prefix=$work/prefix
eval "$(sed -n '/^make_prefix()/,/^}/p' "$here/run.sh")"

mkdir "$prefix" && touch "$prefix/old"
make_prefix >"$work/out" 2>&1 && [ -z "$(ls -A "$prefix")" ]
report $? 'what an earlier run has left is removed'
mkdir "$work/elsewhere"
rm -rf "$prefix"
# Somebody is faster than what follows the removal.
faster()
{
    rm()
    {
        ln -s "$work/elsewhere" "$prefix"
    }
    make_prefix
}
! (faster) >"$work/out" 2>&1 && [ -z "$(ls -A "$work/elsewhere")" ]
report $? 'a link that somebody puts in its place is not installed into'
tap_done
