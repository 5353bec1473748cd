#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tap.sh must not take a failure for a success.
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tests/tap.sh
. "$here/tap.sh"
tap_begin

# gives STATUS TEXT COMMANDS: a test of these commands prints TEXT (lines joined by ;) and exits with STATUS.
gives()
{
    (
        tap_count=0
        tap_begin
        eval "$3"
    ) >"$work/out" 2>&1
    [ $? -eq "$1" ] && [ "$(paste -sd ';' "$work/out")" = "$2" ]
}

gives 0 'ok 1 - one;ok 2 - two;1..2' 'report 0 one; report 0 two; tap_done'
report $? 'a test that keeps its promises succeeds'
gives 1 'ok 1 - one;not ok 2 - two;# said;1..2' 'echo said >"$work/out"; report 0 one; report 1 two; tap_done'
report $? 'a failure shows the last output, and fails the test'
gives 1 'not ok 1 - one;ok 2 - two;1..2' 'report 1 one; report 0 two; tap_done'
report $? 'a success does not undo a failure'
gives 0 'ok 1 - one # SKIP no gpu;1..1' 'tap_skip one "no gpu"; tap_done'
report $? 'a promise is skipped with its reason'
gives 0 '1..0 # SKIP no gpu' 'tap_skip_all no gpu; echo never'
report $? 'a whole test is skipped with its reason'
gives 0 '# two;# lines' 'tap_note "two
lines"'
report $? 'each line of a note is a comment'
tap_done
