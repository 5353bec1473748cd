# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034 # the scripts that source this read the variables
# Functions for tests that are shell scripts and print TAP. Tests that only start a job and check its output are
# tables for tests/jobs.py instead.
#
#   tap_begin                             makes a directory $work, removed at the end of the test
#   report STATUS PROMISE                 prints a line; a failure shows $work/out, the last output
#   tap_result ok|'not ok' PROMISE        prints a line
#   tap_skip PROMISE REASON, tap_skip_all REASON, tap_note TEXT
#   tap_done                              prints the plan; exits with 1 if a promise has failed
tap_count=0
tap_failed=0

tap_begin()
{
    work=$(mktemp -d) || exit 1
    trap 'rm -rf "$work"' EXIT
}

tap_note()
{
    printf '%s\n' "$*" | sed 's/^/# /'
}

tap_result()
{
    tap_count=$((tap_count + 1))
    [ "$1" = ok ] || tap_failed=$((tap_failed + 1))
    echo "$1 $tap_count - $2"
}

report()
{
    if [ "$1" -eq 0 ]; then
        tap_result ok "$2"
    else
        tap_result 'not ok' "$2"
        [ ! -e "$work/out" ] || sed 's/^/# /' "$work/out"
    fi
}

tap_skip()
{
    tap_result ok "$1 # SKIP $2"
}

tap_skip_all()
{
    echo "1..0 # SKIP $*"
    exit 0
}

tap_done()
{
    echo "1..$tap_count"
    [ "$tap_failed" = 0 ]
    exit
}
