#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install_test.sh BUILD PREFIX PLUGSTACK: `meson install` says what to do next. PLUGSTACK is the folder that
# plugstack.conf includes, or empty in a build without the plugin.
build=$1 prefix=$2 plugstack=$3
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
tap_begin

# With this tag it installs no file, and runs one script.
unset DESTDIR
steps=$(meson install -C "$build" --no-rebuild --tags next_steps 2>&1 | cat)

# says LINE: returns whether this is a line of the output.
says()
{
    printf '%s\n' "$steps" | grep -qxF "    $1" || { printf '%s\n' "$steps" | sed 's/^/# /' && return 1; }
}

if [ -n "$plugstack" ]; then
    says "include $plugstack/*.conf" && says "srun --hvd -N2 -n2 $prefix/bin/hvd-info --check"
    report $? 'meson install prints the line of plugstack.conf, and how to check the installation'
else
    says 'hvdrun -np 2 hvd-info --check'
    report $? 'meson install prints how to check the installation'
fi

# An upgrade keeps the words that an admin has added to the plugin's line.
conf=$work/etc/hvd.conf
echo 'optional old.so default=on' >"$work/new"
install_conf()
{
    DESTDIR='' "$(dirname "$0")/../spank/install_conf.sh" "$work/new" "$conf"
}
install_conf && cmp -s "$work/new" "$conf"
report $? 'the line of the plugin is installed'
echo 'optional old.so forbid=off' >"$conf"
install_conf && grep -q 'forbid=off' "$conf" && cmp -s "$work/new" "$conf.new"
report $? 'a line that has been edited stays, and the new one lies beside it'
cp "$work/new" "$conf"
install_conf && [ ! -e "$conf.new" ]
report $? 'no new line lies beside one that is equal'
tap_done
