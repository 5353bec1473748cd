#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# python_environment_test.sh: Python environments are made by one caller, for whom the others wait.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0 failed=0

check()
{
    local promise=$1
    count=$((count + 1))
    shift
    if "$@"; then
        echo "ok $count - $promise"
    else
        echo "not ok $count - $promise"
        failed=1
    fi
}

# make NAME: an environment of that name, of which it writes down that it was made. The first maker
# says so, and goes on when it is told to.
make()
(
    # shellcheck source=contrib/python_environment.sh
    . "$here/../../contrib/python_environment.sh"
    environment=$work/$1
    fill_environment()
    {
        mkdir -p "$environment"
        echo made >>"$work/made"
        echo begun >"$work/begun"
        read -r _ <"$work/go"
    }
    use_environment
)

mkfifo "$work/begun" "$work/go"
make one >"$work/first" &
first=$!
read -r _ <"$work/begun"
make one >"$work/second" &
second=$!
check 'another environment is free meanwhile' flock --nonblock "$work/two.lock" true
check 'that of the first caller is locked' test ! "$(flock --nonblock "$work/one.lock" echo free)"
echo >"$work/go"
wait "$first" "$second"
check 'both callers get it' cmp "$work/first" "$work/second"
check 'it is the python of the environment' grep -qx "$work/one/bin/python" "$work/second"
check 'it was made once' test "$(wc -l <"$work/made")" = 1
echo "1..$count"
exit $failed
