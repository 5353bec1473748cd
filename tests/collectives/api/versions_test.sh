#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# versions_test.sh HVDRUN HVD_INFO LIBHVD OTHER: ranks that have different versions of libhvd do not start, and the error
# names the rank, the host and both versions. OTHER is a libhvd of version 0.0.9.
hvdrun=$1 info=$2
library=$(realpath "$3") other=$(realpath "$4")
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tap.sh"
tap_begin
own=$("$info" --version | cut -d ' ' -f 2)
export HVD_LIBRARY="$library" OTHER="$other" INFO="$info" HVD_START_TIMEOUT=20
host=$(hostname)

# says PROMISE TEXT SCRIPT: two ranks of the script fail, and print a line with the text
says()
{
    "$hvdrun" -np 2 sh -c "$3" >"$work/out" 2>&1
    [ $? -ne 0 ] && grep -qF -e "$2" "$work/out"
    report $? "$1"
}

# shellcheck disable=SC2016 # expands in the ranks
{
    says 'a libhvd of another version than hvdrun is named' \
        "rank 1 on $host was started by hvd $own, hvdrun, but has hvd 0.0.9, $other: install the same version of both" \
        '[ $HOROVOD_RANK = 0 ] || export HVD_LIBRARY=$OTHER; exec "$INFO" --check'
    says 'a rank of another version is named by the others' \
        "rank 1 on $host has hvd 0.0.9, but this rank, 0 on $host, has hvd $own: install the same version on both hosts" \
        'unset HVD_LAUNCH_VERSION; [ $HOROVOD_RANK = 0 ] || exec env HVD_LIBRARY=$OTHER "$INFO" --check; "$INFO" --check; sleep 1; exit 1'
    says 'and names them itself' \
        "rank 0 on $host has hvd $own, but this rank, 1 on $host, has hvd 0.0.9" \
        'unset HVD_LAUNCH_VERSION; [ $HOROVOD_RANK = 0 ] && exec "$INFO" --check; HVD_LIBRARY=$OTHER "$INFO" --check; sleep 1; exit 1'
}
"$hvdrun" -np 2 "$info" --check >"$work/out" 2>&1 && grep -q 'verdict: good' "$work/out"
report $? 'ranks of one version start'
tap_done
