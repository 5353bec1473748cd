#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The directory of a cluster is believed only where no other user can have a hand in it, and what is
# written in it is read, not run.
# usage: settings_test.sh CLUSTER
set -u
cluster=$1
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin
chmod 755 "$work"
other=65534

# write DIRECTORY: what `up` writes, but for one line.
write()
{
    mkdir -p "$1"
    printf '%s\n' nodes=2 user=hvduser uid=61000 gid=61000 prefix= constrain=no >"$1/settings"
}

# status_says REGEX PROMISE: `cluster status` does, and nothing was run.
status_says()
{
    "$cluster" status --dir "$work/c" >"$work/out" 2>&1
    grep -Eq "$1" "$work/out" && [ ! -e "$work/ran" ]
    report $? "$2"
    rm -rf "$work/c" "$work/elsewhere" "$work/ran"
}

# Of others, if this is root.
strange()
{
    [ "$(id -u)" = 0 ] && chown -h "$other" "$@"
}

write "$work/c"
status_says 'has crashed' 'the directory of a cluster that has ended is recognised'
write "$work/c"
# shellcheck disable=SC2016 # it must not expand
echo 'prefix=/$(touch '"$work"'/ran)' >>"$work/c/settings"
status_says 'has crashed' 'a value is not run'
write "$work/c"
echo "touch $work/ran" >>"$work/c/settings"
status_says 'no cluster in' 'nor is a line that is no setting'
write "$work/c"
echo 'PATH=/elsewhere' >>"$work/c/settings"
status_says 'no cluster in' 'no other variable can be set'
write "$work/c"
chmod 777 "$work/c"
status_says 'no cluster in' 'a directory that others may write to is not believed'
write "$work/c"
chmod 666 "$work/c/settings"
status_says 'no cluster in' 'nor are settings that others may change'
write "$work/elsewhere"
mkdir "$work/c"
ln -s "$work/elsewhere/settings" "$work/c/settings"
status_says 'no cluster in' 'nor is a link'
if [ "$(id -u)" = 0 ]; then
    write "$work/elsewhere"
    mkdir "$work/c"
    ln -s "$work/elsewhere/settings" "$work/c/settings"
    strange "$work/c" "$work/c/settings"
    status_says 'no cluster in' "a directory of another user with a link to a file of this one's is not believed"
    write "$work/c"
    strange "$work/c"
    status_says 'no cluster in' 'nor is any other directory of another user'
    write "$work/top/c"
    strange "$work/top"
    ln -s top/c "$work/c"
    status_says 'no cluster in' 'nor is one in a directory of another user'
else
    tap_skip 'directories of other users are not believed' 'needs root, to make some'
fi
tap_done
