# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What tests of stalled jobs have in common; to be sourced. The output of a job is in $out.
number=0
failed=0
out=

# Ends the test if the job says that it cannot run here.
skip_if_told()
{
    case $out in
    *"1..0 # SKIP"*)
        echo "$out"
        exit 0
        ;;
    esac
}

check()
{
    number=$((number + 1))
    if [ "$2" = yes ]; then echo "ok $number - $1"; else
        echo "not ok $number - $1"
        echo "$out" | sed 's/^/# /'
        failed=1
    fi
}

# is NUMBER OPERATOR NUMBER
is()
{
    if test "$@"; then echo yes; else echo no; fi
}

count()
{
    echo "$out" | grep -Ec "$1"
}

# The plan of TAP; the exit status tells whether a check has failed.
finish()
{
    echo "1..$number"
    exit "$failed"
}
