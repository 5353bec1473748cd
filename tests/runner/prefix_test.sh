#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/run.sh installs only into a directory that it has created itself.
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
report $? 'files of an earlier run are removed'
mkdir "$work/elsewhere"
rm -rf "$prefix"
# Another process puts a link there between the removal and the mkdir.
faster()
{
    rm()
    {
        ln -s "$work/elsewhere" "$prefix"
    }
    make_prefix
}
! (faster) >"$work/out" 2>&1 && [ -z "$(ls -A "$work/elsewhere")" ]
report $? 'hvd is not installed into a link that takes the place of the directory'
tap_done
