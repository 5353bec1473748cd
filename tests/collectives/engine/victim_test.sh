#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# victim_test.sh HVDRUN LAYOUT VICTIM PROGRAM [ARG...]: the end of one rank (kill -9, or as the program
# is told) must end the pending and the next call of every other rank, with an error that names the dead
# rank and its host and, for the pending call, the operation and its tensor. VICTIM_IN: which ones, an
# extended regular expression. That takes seconds at most; the limit is for machines that are very busy,
# and below the time in which the network would find out. What the job has printed goes to the file
# VICTIM_SAID.
hvdrun=$1 layout=$2 victim=$3 program=$4
shift 4
here=$(dirname "$0")
ranks=$(($(echo "$layout" | tr , +)))
out=$("$here/../own_shm.sh" "$here/../job.sh" "$hvdrun" "$layout" "$program" "$victim" "$@" 2>&1)
echo "$out" >"${VICTIM_SAID:-/dev/null}"
case $out in
*"1..0 # SKIP"*)
    echo "$out" | grep SKIP
    exit 0
    ;;
esac
failed=0
operation="[a-z]+ '[^']+'"
check()
{
    if [ "$2" = yes ]; then echo "ok - $1"; else
        echo "not ok - $1"
        failed=1
    fi
}
matches()
{
    if echo "$out" | grep -Eq "$1"; then echo yes; else echo no; fi
}
rank=0
while [ "$rank" -lt "$ranks" ]; do
    if [ "$rank" -ne "$victim" ]; then
        check "rank $rank: the pending call fails and names rank $victim and its host" \
            "$(matches "pending $rank: -5 [0-5]?[0-9]\.[0-9] .*rank $victim (on|\(host) [^ ]+")"
        # It is told before the next call where it comes between two.
        check "rank $rank: and its own operation" \
            "$(matches "pending $rank: .*, (in|before) ${VICTIM_IN:-$operation}\$")"
        check "rank $rank: so does the next call" "$(matches "next $rank: -5 .*rank $victim ")"
    fi
    rank=$((rank + 1))
done
case $out in
*"no /dev/shm of its own"*) echo "ok - nothing is left in /dev/shm # SKIP no mount namespaces" ;;
*) check "nothing is left in /dev/shm" "$([ "$(matches '^left in /dev/shm')" = no ] && echo yes || echo no)" ;;
esac
echo "1..$((3 * (ranks - 1) + 1))"
[ "$failed" -eq 0 ] || echo "$out" | sed 's/^/# /'
exit "$failed"
