#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# next_steps.sh VERSION PREFIX BINDIR ENVFILE [PLUGSTACK]: an install script of meson. Prints what to do after the
# installation: with the plugin, its folder PLUGSTACK is to be included in plugstack.conf; without, ENVFILE gives a
# shell hvdrun.
version=$1 prefix=$2 bindir=$3 envfile=$4 plugstack=${5-}

[ -z "${MESON_INSTALL_QUIET-}" ] || exit 0

print_steps()
{
    printf '\nhvd %s is installed in %s' "$version" "$prefix"
    if [ -n "$plugstack" ]; then
        cat <<TEXT
. Next, add this line to plugstack.conf on all machines with srun or slurmd:

    include $plugstack/*.conf

Then check the installation on two nodes, with --gpus-per-node=1 if they have GPUs:

    srun --hvd -N2 -n2 $bindir/hvd-info --check

TEXT
    else
        cat <<TEXT
, without the plugin for srun --hvd. Next, check the installation:

    . $envfile
    hvdrun -np 2 hvd-info --check

TEXT
    fi
}

# meson shows the output of a script only if it fails, so this one writes to the output of meson, its parent. A log
# file is left alone: meson, which does not append, would write over these lines.
out=/proc/$PPID/fd/1
[ ! -f "$out" ] || out=/dev/null
{ print_steps >>"$out"; } 2>/dev/null || true
