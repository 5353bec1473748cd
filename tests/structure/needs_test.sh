#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needs_test.sh LIBHVD: checks which libraries libhvd.so needs, because every container would need them, too.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin
needed=$(LC_ALL=C readelf --dynamic --wide "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
more=$(echo "$needed" | grep -Ev '^(lib(c|m|dl|rt|pthread)|ld-linux.*|libsodium)\.so')
echo "$more" >"$work/out"
[ -n "$needed" ] && [ -z "$more" ]
report $? 'libhvd.so needs the C library and libsodium, and nothing else'
tap_done
