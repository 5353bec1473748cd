#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# If a signal or a crash ends the start of a cluster, at whatever moment, nothing is left behind.
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/machine.sh"

# up_and_signal SIGNAL FILE: starts a cluster, and sends SIGNAL to `up` before its first command after FILE
# exists in its directory. Prints the exit status of `up`.
up_and_signal()
{
    local status=0
    cat >"$work/hook" <<HOOK
set -T
trap '[ ! -e "$work/c1/$2" ] || { trap - DEBUG && kill -$1 \$\$; }' DEBUG
HOOK
    BASH_ENV=$work/hook env --default-signal=INT "$cluster" up --dir "$work/c1" \
        >"$work/up.log" 2>&1 || status=$?
    echo "$status"
}

test_signals()
{
    local moment
    for moment in '' machine-etc/passwd run/holder run/ctl run/n1 run/munged.pid; do
        prints "Ctrl-C when /$moment is made ends up" '^130$' up_and_signal INT "$moment"
        succeeds 'nothing is left' machine_is_clean
    done
}

test_crashes()
{
    local moment
    for moment in '' settings run/holder run/n1 run/slurmctld.pid; do
        prints "kill -9 when /$moment is made ends up" '^137$' up_and_signal KILL "$moment"
        succeeds "down runs after it" down 1
        succeeds 'nothing is left' machine_is_clean
    done
}

enter_machine
test_signals
test_crashes
tap_done
