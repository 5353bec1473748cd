#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tables_test.sh HVDRUN LAYOUT PROGRAM: the program, direct_test, by every algorithm that a table can
# name for the layout; and tables that cannot be used. Prints TAP.
hvdrun=$1 layout=$2 program=$3
here=$(dirname "$0")
# shellcheck source=tests/report.sh
. "$here/../../report.sh"

# run_with TABLE-BY-RANK: each rank takes what sh makes of the words, in which $HOROVOD_RANK is its own.
run_with()
{
    # shellcheck disable=SC2016
    "$here/../job.sh" "$hvdrun" "$layout" sh -c \
        'HVD_TUNE_TABLE=$(eval echo "$0") exec "$@"' "$1" "$program" >"$work/out" 2>&1
    status=$?
    if grep -q '^1..0 # SKIP' "$work/out"; then
        cat "$work/out"
        exit 0
    fi
}

nodes=$(echo "$layout" | tr , '\n' | wc -l)
most=$(echo "$layout" | tr , '\n' | sort -n | tail -1)
case $layout in
1,1) sums='pair|pair window=130K|linear|linear lanes=one chunk=5000' ;;
*,*,*) sums='linear|linear lanes=one|direct|direct lanes=one|direct chunk=5000' ;;
*,*) sums='linear|linear lanes=one|linear chunk=5000' ;;
*) sums='ll one_shot two_shot|one_shot|one_shot chunk=5000|cma_reduce|two_shot|two_shot chunk=5000' ;;
esac

# write ALGORITHM: of "ll one_shot two_shot" each in its turn.
write()
{
    echo "[nodes=$nodes ranks=$most]"
    for collective in allreduce reducescatter; do
        case $1 in
        ll*) printf "$collective %s\n" '0 ll' '25 one_shot' '1K two_shot' ;;
        *) echo "$collective 0 $1" ;;
        esac
    done
    case $nodes-$1 in
    1-*chunk*) printf '%s chunk=3000\n' 'broadcast 0 rolling' 'allgather 0 cico' 'alltoall 0 cico' ;;
    1-one_shot) printf '%s\n' 'broadcast 0 rolling' 'allgather 0 cico' 'alltoall 0 cico' ;;
    1-two_shot) printf '%s 0 cma_write\n' broadcast allgather alltoall ;;
    1-*) printf '%s 0 cma_read\n' broadcast allgather alltoall ;;
    *) printf '%s chunk=3000\n' 'broadcast 0 tree' 'allgather 0 ring' 'alltoall 0 pairwise' ;;
    esac
}

IFS='|'
for algorithm in $sums; do
    unset IFS
    write "$algorithm" >"$work/table"
    run_with "$work/table"
    [ "$status" -eq 0 ] && ! grep -q '^not ok' "$work/out"
    report $? "right by $algorithm"
done

cp "$work/table" "$work/table.0"
sed 's/3000/4000/' "$work/table" >"$work/table.1"
ranks=$(($(echo "$layout" | tr , +)))
for rank in $(seq 2 $((ranks - 1))); do
    cp "$work/table" "$work/table.$rank"
done
run_with "$work/table.\$HOROVOD_RANK"
[ "$status" -ne 0 ] && grep -q "rank 1 on .* has another table of algorithms than rank 0 on .*$work/table\.[0-9]:" "$work/out"
report $? 'of two tables each rank says whose differ, and names its own'

echo 'allreduce 1K quick' >>"$work/table.1"
run_with "$work/table.\$HOROVOD_RANK"
[ "$status" -ne 0 ] && grep -Eq "$work/table.1 line [0-9]+: expected .* found \"quick\"|rank 1 on .* cannot read its table" "$work/out"
report $? 'a table that one rank cannot read ends all at once'

run_with "$work/none"
[ "$status" -ne 0 ] && grep -q "cannot open the table of algorithms $work/none: No such file" "$work/out"
report $? 'a file that is not there is named'

run_with 'builtin'
[ "$status" -eq 0 ]
report $? 'the built-in table can be asked for'
echo "1..$count"
exit "$failed"
