# SPDX-License-Identifier: Apache-2.0
# Shell functions for tests of boot under Slurm's PMIx. A test sources this file after cluster/harness.sh,
# and has the arguments BOOT_CLIENT HVD_BOOT.
# shellcheck shell=bash disable=SC2154 # home, work and prefix come from harness.sh
client=$1 helper=$2

# step SRUN_ARGUMENT...: runs a step without hvd's plugin; ranks learn from a variable where hvd-boot is.
step()
{
    as_user HVD_BOOT_HELPER="$home/hvd-boot" srun "$@"
}

# said COMMAND...: runs COMMAND with its output in $work/said.
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
cp "$helper" "$home/hvd/" # where boot_client looks for it
touch "$home/counter" "$home/regroups"
chmod -R a+rwX "$home/logs" "$home/counter" "$home/regroups"
chmod -R a+rX "$home/boot_client" "$home/hvd-boot" "$home/hvd"
