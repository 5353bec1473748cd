#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# System calls of the plugin while slurmstepd can be root: strace traces a step with the plugin and one without it,
# and the traces are compared.
# shellcheck disable=SC2016 # variables expand in other shells
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/spank.sh"

command -v strace >/dev/null || tap_skip_all 'no strace here'
install_hvd
start_cluster 1 --sockets 1 --cores 2 --gpus 0
calls_of=$tests_dir/root_calls.py
traces=$work/cluster/log

# traced NAME SRUN_ARGUMENT...: runs a step while slurmd and all its children are traced.
traced()
{
    local name=$1
    shift
    : >"$work/strace"
    as_root --node n1 sh -c 'exec strace -f -o "$1" -p "$(cat "$2")"' sh "$traces/$name" \
        "$work/cluster/run/slurmd-n1.pid" >"$work/strace" 2>&1 &
    # waits until strace is attached, or has ended
    tail -n +1 -f -s 0.1 --pid=$! "$work/strace" | grep -q -m 1 ' attached' || :
    as_user srun -n1 "$@"
    have_ended n1 slurmstepd # it ends after its srun
    as_root --node n1 pkill -INT -x strace
    wait
}

# adds_nothing PROMISE TRACE WITHOUT...: TRACE has no calls that none of the traces WITHOUT has.
adds_nothing()
{
    local promise=$1
    shift
    /usr/bin/python3 "$calls_of" "$@" >"$work/added" 2>&1
    prints "$promise" '^0 calls$' sh -c 'cat "$0" >&2; echo "$(grep -c . "$0") calls"' "$work/added"
}

disable_plugin
succeeds '(a step without the plugin is traced)' traced none --mpi=none true
[ -s "$traces/none" ] || tap_skip_all "strace cannot attach here: $(tail -n 1 "$work/strace")"
succeeds '(and again: Slurm itself varies)' traced none2 --mpi=none true
enable_plugin
succeeds '(a step that does not use the plugin)' traced idle --mpi=none true
succeeds '(and again)' traced idle2 --mpi=none true
succeeds '(a step that uses it)' traced elastic --hvd=elastic true

succeeds 'the trace shows files that root opens' grep -q "spank_hvd.so" "$traces/idle"
adds_nothing '--hvd adds no file, socket or process as root' \
    "$traces/elastic" "$traces/idle" "$traces/idle2"
if has_pmix; then
    succeeds '(a step with PMIx)' traced pmix --mpi=pmix true
    succeeds '(and again)' traced pmix2 --mpi=pmix true
    succeeds '(a step that uses the plugin with PMIx)' traced hvd --hvd true
    adds_nothing '--hvd with PMIx adds none, either' "$traces/hvd" "$traces/pmix" "$traces/pmix2" "$traces/idle"
else
    tap_skip '--hvd with PMIx adds none, either' "$no_pmix"
fi
/usr/bin/python3 "$calls_of" "$traces/idle" "$traces/none" "$traces/none2" >"$work/ours"
tap_note "as root: $(cat "$work/ours")"
# The loader may look for libraries that the plugin needs and Slurm has not loaded.
prints 'as root, the plugin is only loaded, and its line of plugstack.conf read' '^none$' sh -c \
    'grep -vE "^(openat|newfstatat|stat|access) .*(/spank_hvd\.so|/hvd\.conf|\.so(\.N)*|/ld\.so\.cache)$" "$0" || echo none' \
    "$work/ours"
tap_done
