#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A hook of enroot: a program in a container gets the variables that hvd's plugin has set for its task, whatever the
# image and other hooks have set. Copy it to hooks.d in enroot's configuration. enroot runs hooks in the order of
# their names, so this one follows 50-slurm-pytorch.sh, which sets MASTER_PORT and OMP_NUM_THREADS, too.
#
# pyxis starts one container for all tasks of a node, and copies the container's variables over those of each task.
# It hides SLURM_PROCID from enroot. A variable that is removed here keeps the value that it has in each task.
# Otherwise the container belongs to one task and gets none of its variables, so the hook adds them.
set -euo pipefail

[ -n "${HVD_EXPORTED-}" ] || exit 0

# The names in HVD_EXPORTED, which is NAME:CHECKSUM,...
readarray -t names < <(tr , '\n' <<<"$HVD_EXPORTED" | cut -d : -f 1)
[ ! -v SLURM_PROCID ] || readarray -t -O "${#names[@]}" names < <(compgen -e | grep -E '^(HVD_|HOROVOD_|SLURM_HVD)')

# A name goes into a command of sed, and a value into a line of the file.
is_line()
{
    [[ $1 =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]] && [[ ${!1-} != *$'\n'* ]]
}

image_path=$(sed -n 's/^PYTHONPATH=//p' "$ENROOT_ENVIRON" | tail -n 1)
for name in "${names[@]}"; do
    is_line "$name" || continue
    sed -i "/^$name=/d" "$ENROOT_ENVIRON"
    if [ "$name" = PYTHONPATH ]; then
        printf 'PYTHONPATH=%s\n' "${image_path:+$image_path:}${PYTHONPATH-}" >>"$ENROOT_ENVIRON"
    elif [ -v SLURM_PROCID ] && [ -v "$name" ]; then
        printf '%s=%s\n' "$name" "${!name}" >>"$ENROOT_ENVIRON"
    fi
done
