#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header of the tree compiles alone, included twice, without a warning.
# usage: headers.sh SOURCE_ROOT COMPILER...
set -u
root=$1
shift
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
tap_begin
flags="-std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -I$root -I$root/gpu_binding/base"
for library in hwloc pmix ucx libsodium; do
    flags="$flags $(pkg-config --cflags "$library" 2>/dev/null)"
done

cd "$root" || exit 1
for header in $(find gpu_binding pmix_boot collectives spank contrib tests -name '*.h' | sort); do
    printf '#include "%s"\n#include "%s"\n' "$header" "$header" >"$work/alone.c"
    # shellcheck disable=SC2086
    if "$@" $flags -fsyntax-only "$work/alone.c" >"$work/out" 2>&1; then
        report 0 "$header compiles alone"
    elif missing=$(sed -n 's/.*fatal error:.*//; s/.*#include <\(.*\)>.*/\1/p' "$work/out") &&
        [ -n "$missing" ] && grep -q 'fatal error: .*No such file\|fatal error: .*file not found' "$work/out"; then
        tap_skip "$header compiles alone" "$missing is not installed"
    else
        report 1 "$header compiles alone"
    fi
done
tap_done
