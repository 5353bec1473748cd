# SPDX-License-Identifier: Apache-2.0
# Shell functions for tests of boot under Slurm's PMIx; comes after cluster/harness.sh. Arguments of
# a test: BOOT_CLIENT HVD_BOOT
# shellcheck shell=bash disable=SC2154 # home, work and prefix come from harness.sh
client=$1 helper=$2

# step SRUN_ARGUMENT...: a step as Slurm starts it without the plugin.
step()
{
    as_user HVD_BOOT_HELPER="$home/hvd-boot" srun "$@"
}

# said COMMAND...: writes its output to $work/said.
said()
{
    "$@" >"$work/said" 2>&1 </dev/null
}

# counts PROMISE NUMBER REGEX: NUMBER lines of the last step match.
counts()
{
    local found
    found=$(grep -Ec -- "$3" "$work/said")
    [ "$found" = "$2" ] || tap_note "$(cat "$work/said")"
    prints "$1" "^$2$" echo "$found"
}

install_hvd
start_cluster 2 --sockets 1 --cores 4 --gpus 0 --prefix "$prefix"
has_pmix || tap_skip_all "$no_pmix"
cp "$client" "$helper" "$home/"
mkdir "$home/hvd" "$home/logs"
cp "$helper" "$home/hvd/" # where a program beside it looks
touch "$home/counter" "$home/regroups"
chmod -R a+rwX "$home/logs" "$home/counter" "$home/regroups"
chmod -R a+rX "$home/boot_client" "$home/hvd-boot" "$home/hvd"
