#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gpu_victim_test.sh HVDRUN LAYOUT VICTIM PROGRAM [connect|[pair:][FUNCTION:]CALL]: as victim_test.sh, and the
# other ranks were in the middle of a collective on their GPUs, which ends; or NCCL connected, and nothing
# is left; or a tensor went in pieces, or two were measured for, and nobody writes to them any more.
here=$(dirname "$0")
ranks=$(($(echo "$2" | tr , +)))
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$here/../engine/victim_test.sh" "$@" >"$out"
code=$?
grep -v '^1\.\.' "$out"
if grep -q SKIP "$out"; then
    cat "$out"
    exit 0
fi
text=$("$here/../job.sh" "$1" "$2" "$4" "$3" ${5:+"$5"} 2>&1)
count=0
case $5 in
'') words="launched stream" ;;
connect) words="nothing stream" ;;
*) words="alone stream" ;;
esac
for word in $words; do
    if [ "$(echo "$text" | grep -c "$word [0-9]")" -eq $((ranks - 1)) ]; then
        echo "ok - each other rank says: $word"
    else
        echo "not ok - each other rank says: $word"
        echo "$text" | sed 's/^/# /'
        code=1
    fi
    count=$((count + 1))
done
echo "1..$(($(grep -c '^\(not \)\?ok' "$out") + count))"
exit $code
