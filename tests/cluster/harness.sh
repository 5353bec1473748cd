# SPDX-License-Identifier: Apache-2.0
# Shell functions for tests that need a Slurm cluster; a test file is a program that prints TAP.
# shellcheck shell=bash
#
# To add one, write tests/cluster/NAME_test.sh and list it in meson.build:
#
#   . "$(dirname "$0")/harness.sh"
#   install_hvd                               # optional: sets $prefix
#   start_cluster 2 --gpus 4 --prefix "$prefix"     # arguments of `cluster up`; may skip the file
#   prints "task runs on the second node" '^n2$' as_user srun -w n2 hostname
#   tap_done
#
# Each file has a cluster of its own (it starts in less than a second), so files do not disturb
# each other and choose their own nodes, cores and GPUs. It ends with the file, whatever happens.
#
#   as_user [--node n2] [VAR=VALUE...] COMMAND...   inside, as the job user, in its home $home
#   as_root [--node n2] COMMAND...                  inside, as root: faults, daemons, scontrol
#   succeeds PROMISE COMMAND...                     exit status 0; a failure shows the output
#   fails PROMISE COMMAND...                        exit status is not 0, nor that of a time limit
#   prints PROMISE REGEX COMMAND...                 succeeds, and the output matches (grep -E)
#   complains PROMISE REGEX COMMAND...              fails, and the output matches
#   needs_pmix prints PROMISE...                    skips that promise on a Slurm without PMIx
#   begin_job COMMAND...                            runs a job in the background
#   await_said REGEX                                reads the job's lines until one matches
#   end_job                                         reads the other lines; the job's exit status
#   waits_for COMMAND...                            repeats COMMAND until it succeeds
#   tap_skip PROMISE REASON, tap_skip_all REASON, tap_note TEXT, tap_done    of tests/tap.sh
#
# Every command inside ends after $limit seconds and then counts as failed. The limit is for commands
# that hang, not for slow ones. All lines of a job so far are in $work/said.
# Files for jobs go to $home (owned by root: chmod a+r); $work is private to the test file.
set -uo pipefail

tests_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cluster=$tests_dir/../../contrib/cluster/cluster
limit=$((60 * ${HVD_TEST_TIMES:-4}))
work='' work_parent=/var/tmp
# shellcheck source=tests/tap.sh
. "$tests_dir/../tap.sh"

# --- TAP ---

# tap_failure PROMISE STATUS COMMAND...: prints a failed promise, with the command, its status and output.
tap_failure()
{
    local promise=$1 status=$2
    shift 2
    tap_result 'not ok' "$promise"
    tap_note "command: $*"
    tap_note "exit status: $status; output:"
    tap_note "$(tail -n 60 "$work/output")"
}

# --- promises ---

capture()
{
    "$@" >"$work/output" 2>&1 </dev/null
}

# Tells whether a time limit ended the command: the status of timeout(1), or of a process that it killed.
is_timeout()
{
    [ "$1" = 124 ] || [ "$1" = 137 ]
}

output_matches()
{
    [ -z "$1" ] || grep -Eq -- "$1" "$work/output"
}

prints()
{
    local promise=$1 regex=$2 status=0
    shift 2
    capture "$@" || status=$?
    if [ "$status" = 0 ] && output_matches "$regex"; then
        tap_result ok "$promise"
    else
        tap_failure "$promise" "$status, wanted 0 and /$regex/" "$@"
    fi
}

complains()
{
    local promise=$1 regex=$2 status=0
    shift 2
    capture "$@" || status=$?
    if [ "$status" != 0 ] && ! is_timeout "$status" && output_matches "$regex"; then
        tap_result ok "$promise"
    else
        tap_failure "$promise" "$status, wanted an error and /$regex/" "$@"
    fi
}

succeeds()
{
    local promise=$1
    shift
    prints "$promise" '' "$@"
}

fails()
{
    local promise=$1
    shift
    complains "$promise" '' "$@"
}

# --- a job that goes on while the test does something to it ---

begin_job()
{
    : >"$work/said"
    exec {lines}< <("$@" 2>&1 </dev/null)
    job=$!
}

await_said()
{
    local line
    while IFS= read -r line <&"$lines"; do
        printf '%s\n' "$line" >>"$work/said"
        [[ ! $line =~ $1 ]] || return 0
    done
    return 1
}

end_job()
{
    cat <&"$lines" >>"$work/said"
    exec {lines}<&-
    wait "$job"
}

# waits_for COMMAND...: repeats COMMAND until it succeeds. For events without a notice, such as the end of a
# process that is not our child.
waits_for()
{
    local until=$((SECONDS + limit))
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$until" ] || return 1
        sleep 0.1
    done
}

# Tells whether the cluster's Slurm has a PMIx plugin; `cluster up` prints a note if not.
has_pmix()
{
    ! no_pmix=$(grep -o 'this Slurm has no PMIx plugin ([^)]*)' "$work/up")
}

needs_pmix()
{
    if has_pmix; then
        "$@"
    else
        tap_skip "$2" "$no_pmix"
    fi
}

# --- the cluster ---

# Makes $work: outside /tmp, because each node has its own, and open to the job user.
make_work()
{
    [ -z "$work" ] || return 0
    work=$(mktemp -d "$work_parent/hvd-test.XXXXXX") || tap_skip_all "no room in $work_parent"
    chmod 755 "$work"
    start_guard
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

remove_work()
{
    local settings
    for settings in "$work"/*/settings "$work"/*/*/settings; do
        [ ! -e "$settings" ] || "$cluster" down --dir "${settings%/*}"
    done
    rm -rf "$work"
}

# Cleans up after a test that was killed, as `meson test` does at its time limit.
start_guard()
{
    work=$work cluster=$cluster setsid bash -c "$(declare -f remove_work)
        tail --pid=$$ -f /dev/null; remove_work" >/dev/null 2>&1 </dev/null &
    guard=$!
    disown
}

clean_up()
{
    trap '' INT TERM HUP
    remove_work
    kill -KILL -- "-$guard" 2>/dev/null
}

# start_cluster [options of `cluster up`]: starts a cluster and sets $home. Skips the file if none can run.
start_cluster()
{
    local status=0
    make_work
    "$cluster" up --dir "$work/cluster" "$@" >"$work/up" 2>&1 </dev/null || status=$?
    case $status in
    0) ;;
    3) tap_skip_all "$(tail -n 1 "$work/up")" ;;
    *)
        tap_note "$(cat "$work/up")"
        echo "Bail out! cluster up failed"
        exit 1
        ;;
    esac
    # shellcheck disable=SC2034 # for the test files
    home=$work/cluster/home
}

as_user()
{
    "$cluster" run --dir "$work/cluster" --limit "$limit" "$@"
}

as_root()
{
    as_user --root "$@"
}

# have_ended NODE NAME: waits up to 10 s for the end of all processes of that name.
have_ended()
{
    as_root --node "$1" sh -c 'for pid in $(pgrep -x "$1"); do timeout 10 tail --pid="$pid" -f /dev/null; done
        ! pgrep -a -x "$1"' sh "$2"
}

# Sets $prefix to where hvd is installed: $HVD_TEST_PREFIX if set, else a temporary directory into which this
# build is installed. meson.build passes the build directory and the prefix that it was configured with.
install_hvd()
{
    make_work
    prefix=${HVD_TEST_PREFIX-}
    [ -z "$prefix" ] || return 0
    [ -n "${MESON_BUILD_ROOT-}" ] || tap_skip_all "set HVD_TEST_PREFIX or run with meson test"
    DESTDIR=$work/installed meson install -C "$MESON_BUILD_ROOT" --no-rebuild --quiet \
        >"$work/install" 2>&1 || tap_skip_all "meson install failed: $(tail -n 1 "$work/install")"
    prefix=$work/installed$MESON_INSTALL_PREFIX
}
