#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gpu_victim_test.sh HVDRUN LAYOUT VICTIM PROGRAM [connect|[pair:][FUNCTION:]CALL]: as victim_test.sh, and the
# other ranks were in the middle of a collective on their GPUs, which ends; or NCCL connected, and nothing
# is left; or a tensor went in pieces, or two were measured for, and nobody writes to them any more.
here=$(dirname "$0")
ranks=$(($(echo "$2" | tr , +)))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkfifo "$work/launched"
exec 3<>"$work/launched" # a pipe that nobody has open forgets what is in it
VICTIM_SAID=$work/said VICTIM_PIPE=$work/launched "$here/../engine/victim_test.sh" "$@" >"$work/out"
code=$?
grep -v '^1\.\.' "$work/out"
if grep -q '^1\.\.0 # SKIP' "$work/out"; then
    grep '^1\.\.0' "$work/out"
    exit 0
fi
count=0
case $5 in
'') words="launched stream poisoned" ;;
connect) words="nothing stream" ;;
*) words="alone stream" ;;
esac
for word in $words; do
    if [ "$(grep -c "$word [0-9]" "$work/said")" -eq $((ranks - 1)) ]; then
        echo "ok - each other rank says: $word"
    else
        echo "not ok - each other rank says: $word"
        sed 's/^/# /' "$work/said"
        code=1
    fi
    count=$((count + 1))
done
echo "1..$(($(grep -c '^\(not \)\?ok' "$work/out") + count))"
exit $code
