#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The plugin against wrong use by users and admins: options injected past srun, nodes without the plugin, a plugin of
# another Slurm; and the users as which Slurm calls plugins.
# shellcheck disable=SC2016 # variables of jobs expand in the jobs
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/spank.sh"

install_hvd
start_cluster 2 --sockets 2 --cores 8 --gpus 2
enable_plugin
# shellcheck disable=SC2154 # harness.sh
plugins=$work/cluster/etc/plugstack.conf.d
injected=_SLURM_SPANK_OPTION_hvd_hvd

all_idle()
{
    [ "$(as_root sinfo --noheader --Node --states idle --format %N | sort -u | wc -l)" = 2 ]
}

prints 'an option injected past srun works like --hvd' '^1/1$' as_user "$injected=on" \
    srun -n1 sh -c 'echo $HVD_LAUNCH/$HOROVOD_SIZE'
# slurmstepd puts its name before its errors, or the time (Slurm 26.05).
complains 'its text is checked on the node' \
    '^(slurmstepd-n1:|\[[^]]*\]) error: hvd: --hvd: unknown word' \
    as_user "$injected=rubbish" srun -n1 true
complains 'format characters and escapes are rejected' 'character 1 \(code 0x25\) is not allowed' \
    as_user "$injected=%n%s%n" srun -n1 true
complains 'a long text is rejected unread' 'longer than 1024 characters' \
    as_user "$injected=$(printf 'on,%.0s' $(seq 3000))on" srun -n1 true
hostile_step()
{
    as_user SLURM_STEP_GPUS="$1" CUDA_VISIBLE_DEVICES="$1" SLURM_STEP_TASKS_PER_NODE="$1" \
        SLURM_CPU_BIND_TYPE="$1" SLURMD_TRES_BIND="$1" \
        srun --hvd=verbose -n2 true
}
succeeds 'hostile variables of the step do no harm' hostile_step '%n%s../../etc/passwd'
succeeds 'long variables do no harm, either' hostile_step "$(printf '9%.0s' $(seq 9000))"

batch_with()
{
    batch '-N1' 'echo ran' "$injected=$1"
}
prints 'a bad option does not stop a batch job' '^ran$' batch_with rubbish
succeeds 'a bad option does not drain a node' all_idle
prints 'an option of 100 kB does not stop a batch job' '^ran$' batch_with "$(head -c 100000 /dev/zero | tr '\0' x)"
succeeds 'after that both nodes are idle' all_idle

mkdir "$work/empty"
succeeds '(n2 loses the plugin)' as_root --node n2 mount --bind "$work/empty" "$plugins"
prints 'a node without the plugin runs its tasks unbound' '^n1:1:1 n2::1$' in_line \
    as_user srun --hvd -N2 -n2 sh -c 'echo $(hostname):$HVD_LAUNCH:$SLURM_HVD'
lost()
{
    as_user srun --hvd -N2 -n2 python3 -c 'import horovod.torch as hvd; hvd.init()'
}
checked()
{
    as_user srun --hvd -N2 "$prefix/bin/hvd-info" --check 2>&1 | tee "$work/checked"
}
if [ -n "$(find "$prefix" -name libhvd.so)" ]; then
    complains 'libhvd on that node gives an error that names the missing plugin' \
        'the hvd plugin is not installed on node n2: ask the administrator' lost
    complains 'hvd-info --check names the node and what it lacks' \
        '^n2: red: start: .* the hvd plugin is not installed on node n2: ask the administrator to install it there' \
        checked
    prints 'and its verdict is bad' '^verdict: bad$' cat "$work/checked"
else
    tap_skip 'libhvd on that node gives an error that names the missing plugin' 'no libhvd in this build'
fi
verbose()
{
    as_user srun --hvd=verbose -N2 -n2 true 2>&1 | grep -o '^hvd: n[12]: 1 rank,' | paste -sd ' '
}
prints '--hvd=verbose prints no line for that node' '^hvd: n1: 1 rank,$' verbose
succeeds '(n2 gets the plugin back)' as_root --node n2 umount "$plugins"

# inspect STATUS: succeeds if hvd-info --slurm has this exit status; its output is also in $work/inspected.
inspect()
{
    local status=0
    as_user "$prefix/bin/hvd-info" --slurm >"$work/inspected" 2>&1 || status=$?
    cat "$work/inspected"
    [ "$status" = "$1" ]
}

# Slurm's commands load plugins as the job user, who may not be able to read the build directory.
install -m 644 "$MESON_BUILD_ROOT"/tests/cluster/uid_probe*.so "$work"
other=$work/uid_probe_other.so
echo "optional $other" >"$plugins/other.conf"
prints 'an optional plugin of another Slurm does not stop a step' '^1$' \
    as_user srun --hvd -n1 printenv HVD_LAUNCH
prints 'an optional plugin of another Slurm does not stop a batch job' '^ran$' batch_with on
prints 'hvd-info --slurm names its line' "^wrong: $plugins/other.conf:1: .* is for Slurm 1\.02, but srun is [0-9.]+, so" \
    inspect 1
echo "required $other" >"$plugins/other.conf"
prints 'hvd-info --slurm says which required plugin stops srun' '^wrong: srun does not start: .*spank' inspect 1
prints 'and its line' "^wrong: $plugins/other.conf:1: .*uid_probe_other.so is for Slurm 1\.02" cat "$work/inspected"
rm "$plugins/other.conf"
prints 'without it hvd-info --slurm finds nothing wrong' '^verdict: good$' inspect 0
prints 'and has asked the slurmd of all nodes' '^slurmd: [0-9.]+ on n\[1-2\]$' cat "$work/inspected"
succeeds 'the nodes are still idle' all_idle

echo "optional $work/uid_probe.so $home/uids" >"$plugins/probe.conf"
succeeds '(the probe runs)' as_user sh -c \
    'touch uids && chmod 666 uids && srun --probe -n1 true && sbatch --quiet --probe -o out --wrap true'
called_as()
{
    grep -E "^$1 " "$home/uids" | sort -u | paste -sd ' '
}
user=$(as_user id -u)
# These promises check the table at the head of spank/dispatch.c.
prints 'srun and sbatch call plugins as the user' '^[^/]*$' sh -c \
    "grep -E '^(srun|alloc) ' '$home/uids' | grep -v ' $user/$user/$user\$' | wc -l | sed 's/[1-9].*/root \\/ &/'"
prints 'slurmstepd: init, options, init_post_opt and exit as root' \
    '^stepd exit 0/0/0 stepd init 0/0/0 stepd init_post_opt 0/0/0 stepd option 0/0/0$' \
    called_as 'stepd (init|option|init_post_opt|exit)'
prints 'user_init with the real user root' "^stepd user_init 0/$user/0\$" called_as 'stepd user_init'
prints 'task_init with all ids of the user' "^stepd task_init $user/$user/$user\$" \
    called_as 'stepd task_init'
tap_done
