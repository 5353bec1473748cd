# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034  # the scripts that source this exit with `failed`
# For tests that are shell scripts and print TAP line by line: a folder $work that goes with the test,
# in which $work/out is what was printed last, and report. `failed` tells the exit status, `count`
# the plan.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
failed=0

# report STATUS PROMISE: a failure shows the last output.
report()
{
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        sed 's/^/# /' "$work/out"
        failed=1
    fi
}
