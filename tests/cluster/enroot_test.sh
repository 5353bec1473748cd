#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The environment of ranks in containers of enroot, where the image and another hook set variables that the plugin
# sets, too. A script stands in for enroot and pyxis: it runs the hooks and makes the environment as they do.
# shellcheck disable=SC2016 # variables of jobs expand in the jobs
. "$(dirname "$0")/harness.sh"

install_hvd
start_cluster 2 --sockets 1 --cores 4 --gpus 0 --prefix "$prefix"
mkdir "$home/hooks"
cat >"$home/image" <<'IMAGE'
PATH=/usr/bin:/bin
PYTHONPATH=/image
OMP_NUM_THREADS=7
RANK=17
IMAGE
cat >"$home/hooks/50-other.sh" <<'HOOK'
#!/bin/sh
for variable in MASTER_ADDR=elsewhere MASTER_PORT=61000 WORLD_SIZE=99 LOCAL_RANK=99 MKL_NUM_THREADS=1; do
    grep -q "^${variable%=*}=" "$ENROOT_ENVIRON" || echo "$variable" >>"$ENROOT_ENVIRON"
done
HOOK
cat >"$home/contain" <<'SCRIPT'
#!/usr/bin/env bash
# contain RUNTIME COMMAND...: runs COMMAND with the environment that it has in a container. enroot starts a container
# for each task, with the variables of the container alone. pyxis adds the container's variables to those of the
# task; hooks see the variables of another task, without SLURM_PROCID.
set -euo pipefail
runtime=$1 hooks=$(dirname "$0")/hooks
shift
ENROOT_ENVIRON=$(mktemp)
export ENROOT_ENVIRON
cp "$(dirname "$0")/image" "$ENROOT_ENVIRON"
if [ "$runtime" = pyxis ]; then
    (unset SLURM_PROCID SLURM_LOCALID
        export HOROVOD_RANK=98 RANK=98 OMP_NUM_THREADS=98
        run-parts --regex '\.sh$' "$hooks")
    readarray -t variables <"$ENROOT_ENVIRON"
else
    run-parts --regex '\.sh$' "$hooks"
    readarray -t variables <"$ENROOT_ENVIRON"
    variables=(-i "${variables[@]}")
fi
rm "$ENROOT_ENVIRON"
exec env "${variables[@]}" "$@"
SCRIPT
cat >"$home/values" <<'SCRIPT'
#!/usr/bin/env bash
# Prints the variables of a task that the plugin has set, except PYTHONPATH.
tr , '\n' <<<"$HVD_EXPORTED" | cut -d : -f 1 | grep -v PYTHONPATH | while read -r name; do
    echo "$name=${!name}"
done
SCRIPT
chmod -R a+rX "$home/image" "$home/hooks"
chmod 755 "$home/hooks/50-other.sh" "$home/contain" "$home/values"

# differences RUNTIME: prints the variables that differ inside the containers of four ranks on two nodes.
differences()
{
    rm -f "$home"/values.?
    as_user HOROVOD_FUSION_THRESHOLD=1000 srun --hvd -N 2 --ntasks-per-node=2 sh -c '
        ./values >values.$SLURM_PROCID
        ./contain $0 ./values | diff values.$SLURM_PROCID - | sed -n "s/^< \(.*\)=.*/\1/p"' "$1" &&
        [ "$(cat "$home"/values.[0-3] | grep -c ^MASTER_PORT=)" = 4 ]
}

have_none()
{
    differences "$1" >"$work/differences" 2>&1 && ! grep . "$work/differences"
}

# inside RUNTIME NAME: prints the variable in each of four containers.
inside()
{
    as_user HOROVOD_FUSION_THRESHOLD=1000 srun --hvd -N 2 --ntasks-per-node=2 ./contain "$1" printenv "$2" | sort -u
}

prints 'without the hook, another hook wins' '^MASTER_PORT$' differences pyxis
prints 'without the hook, ranks have the number that the image sets' '^17$' inside pyxis RANK
# check: hvd-info --check in a container of pyxis. Its status is that of GPU tensors.
check()
{
    as_user srun --hvd -n 1 ./contain pyxis "$prefix/bin/hvd-info" --check; true
}
prints 'without the hook, hvd-info --check names the variables that were changed' \
    'plugin has set and that were changed: .*RANK.*MASTER_PORT.*PYTHONPATH' check
install -m 755 "$prefix/share/hvd/enroot/90-hvd.sh" "$home/hooks"
for runtime in pyxis enroot; do
    succeeds "with the hook, ranks in containers of $runtime have the values of the plugin" have_none "$runtime"
    prints "the plugin's directory is added to PYTHONPATH of the image in $runtime" "^/image:$prefix/lib/hvd/python\$" \
        inside "$runtime" PYTHONPATH
    prints "ranks in containers of $runtime have the user's settings" '^1000$' inside "$runtime" HOROVOD_FUSION_THRESHOLD
done
prints 'with the hook, hvd-info --check finds all variables unchanged' 'plugin has set: unchanged' check
prints 'without --hvd, the hook changes nothing' '^61000$' as_user srun -n 1 ./contain pyxis printenv MASTER_PORT
tap_done
