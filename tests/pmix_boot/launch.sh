# SPDX-License-Identifier: Apache-2.0
# Shell functions for tests that start ranks on this machine. A test sources this file after
# cluster/harness.sh, whose functions it needs.
# shellcheck shell=bash disable=SC2154 # work comes from harness.sh

# returns PROMISE CODE REGEX COMMAND...: the exit code is CODE, the output matches.
returns()
{
    local promise=$1 code=$2 regex=$3 status=0
    shift 3
    capture "$@" || status=$?
    if [ "$status" = "$code" ] && output_matches "$regex"; then
        tap_result ok "$promise"
    else
        tap_failure "$promise" "$status, wanted $code and /$regex/" "$@"
    fi
}

# counts PROMISE NUMBER REGEX: NUMBER lines of the last output match.
counts()
{
    local found
    found=$(grep -Ec -- "$3" "$work/output")
    if [ "$found" = "$2" ]; then
        tap_result ok "$1"
    else
        tap_failure "$1" "$found lines match /$3/, wanted $2" "see the command before"
    fi
}

# If ranks or hvdrun leave files behind, the files are in this TMPDIR, see is_clean.
make_work
chmod 1777 "$work"
TMPDIR=$work/tmp
mkdir -m 1777 "$TMPDIR"
export TMPDIR

is_clean()
{
    [ -z "$(ls -A "$TMPDIR")" ]
}
