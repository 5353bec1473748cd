# SPDX-License-Identifier: Apache-2.0
# Shell functions for the tests of the plugin; comes after harness.sh.
# shellcheck shell=bash

# The plugin as an admin would enable it, in a file that tests may replace: Slurm reads it anew for
# each step. `enable_plugin WORD...` adds words of plugstack.conf.
enable_plugin()
{
    local installed
    installed=$(find "$prefix" -path '*plugstack.conf.d/hvd.conf' -print -quit)
    sed "s|^optional \(.*\)|optional $prefix\1 $*|" "$installed" \
        >"$work/cluster/etc/plugstack.conf.d/hvd.conf"
}

disable_plugin()
{
    rm -f "$work/cluster/etc/plugstack.conf.d/hvd.conf"
}

# batch OPTIONS SCRIPT: submits SCRIPT with OPTIONS as #SBATCH line, waits, shows its output and
# returns its status.
batch()
{
    printf '#!/bin/bash\n#SBATCH %s\n%s\n' "$1" "$2" >"$home/batch.sh"
    chmod a+r "$home/batch.sh"
    # shellcheck disable=SC2016 # expands inside
    as_user "${@:3}" sh -c 'rm -f out; sbatch --quiet --wait -o out batch.sh
        status=$?; cat out; exit $status'
}

# The output of a command as one sorted line.
in_line()
{
    "$@" | sort | paste -sd ' '
}
