#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: explain_list_test.sh HVD_BENCH SOURCE_ROOT
# The list of algorithms agrees with the files of collectives/schedule.
bench=$1
folder=$2/collectives/schedule
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin

"$bench" --explain --list >"$work/list"
report $? 'the list is printed without a job'

# Files that begin with schedule are shared by algorithms; those that begin with algorithm choose one.
for file in "$folder"/*.c; do
    basename "$file" .c
done | grep -Ev '^(schedule|algorithm)(_|$)' | sort >"$work/files"
cut -d ' ' -f 1 "$work/list" | sort >"$work/names"
diff "$work/files" "$work/names" >"$work/diff"
report $? 'each algorithm is a file of its name'
sed 's/^/# /' "$work/diff"

! grep -Evq '^[a-z_]+ +[a-z].{20}' "$work/list"
report $? 'each algorithm has a sentence'

grep -qx 'two_shot *two-shot: reduce-scatter and allgather in shared memory' "$work/list"
report $? 'the sentences use the words of the field'
tap_done
