#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The tool `cluster` trusts the directory of a cluster only if no other user can change it, and it reads the settings there
# without running them.
# usage: settings_test.sh CLUSTER
set -u
cluster=$1
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin
chmod 755 "$work"
other=65534

# write DIRECTORY: writes a file of settings as `up` writes it.
write()
{
    mkdir -p "$1"
    printf '%s\n' nodes=2 user=hvduser uid=61000 gid=61000 prefix= constrain=no >"$1/settings"
}

# status_says REGEX PROMISE: the output of `cluster status` matches, and nothing was run.
status_says()
{
    "$cluster" status --dir "$work/c" >"$work/out" 2>&1
    grep -Eq "$1" "$work/out" && [ ! -e "$work/ran" ]
    report $? "$2"
    rm -rf "$work/c" "$work/elsewhere" "$work/ran"
}

# strange FILE...: gives files to another user, if the test runs as root.
strange()
{
    [ "$(id -u)" = 0 ] && chown -h "$other" "$@"
}

write "$work/c"
status_says 'has crashed' 'the directory of a cluster that has crashed is recognised'
write "$work/c"
# shellcheck disable=SC2016 # it must not expand
echo 'prefix=/$(touch '"$work"'/ran)' >>"$work/c/settings"
status_says 'has crashed' 'a value is not run'
write "$work/c"
echo "touch $work/ran" >>"$work/c/settings"
status_says 'no cluster in' 'a line that is not a setting is not run, either'
write "$work/c"
echo 'PATH=/elsewhere' >>"$work/c/settings"
status_says 'no cluster in' 'no other variable can be set'
write "$work/c"
chmod 777 "$work/c"
status_says 'no cluster in' 'a directory that others may write to is not trusted'
write "$work/c"
chmod 666 "$work/c/settings"
status_says 'no cluster in' 'settings that others may change are not trusted'
write "$work/elsewhere"
mkdir "$work/c"
ln -s "$work/elsewhere/settings" "$work/c/settings"
status_says 'no cluster in' 'a link to settings is not trusted'
if [ "$(id -u)" = 0 ]; then
    write "$work/elsewhere"
    mkdir "$work/c"
    ln -s "$work/elsewhere/settings" "$work/c/settings"
    strange "$work/c" "$work/c/settings"
    status_says 'no cluster in' "a directory of another user with a link to our settings is not trusted"
    write "$work/c"
    strange "$work/c"
    status_says 'no cluster in' 'any other directory of another user is not trusted'
    write "$work/top/c"
    strange "$work/top"
    ln -s top/c "$work/c"
    status_says 'no cluster in' 'a directory inside a directory of another user is not trusted'
else
    tap_skip 'directories of other users are not trusted' 'needs root, to make some'
fi
tap_done
