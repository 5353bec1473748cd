#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header of the tree compiles alone, twice over, without a warning.
# usage: headers.sh SOURCE_ROOT COMPILER...
set -u
root=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -I$root -I$root/gpu_binding/base"
for library in hwloc pmix ucx libsodium; do
    flags="$flags $(pkg-config --cflags "$library" 2>/dev/null)"
done
count=0
failed=0

cd "$root" || exit 1
for header in $(find gpu_binding pmix_boot collectives spank contrib tests -name '*.h' | sort); do
    count=$((count + 1))
    printf '#include "%s"\n#include "%s"\n' "$header" "$header" >"$work/alone.c"
    # shellcheck disable=SC2086
    if "$@" $flags -fsyntax-only "$work/alone.c" >"$work/log" 2>&1; then
        echo "ok $count - $header compiles alone"
    elif missing=$(sed -n 's/.*fatal error:.*//; s/.*#include <\(.*\)>.*/\1/p' "$work/log") &&
        [ -n "$missing" ] && grep -q 'fatal error: .*No such file\|fatal error: .*file not found' "$work/log"; then
        echo "ok $count - $header compiles alone # SKIP $missing is not installed"
    else
        echo "not ok $count - $header compiles alone"
        sed 's/^/# /' "$work/log"
        failed=1
    fi
done
echo "1..$count"
exit $failed
